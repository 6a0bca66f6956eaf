/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offloads: names (as --no-offload takes them), and which are used. Each has a software
 * fallback, and each that is not used has a reason that `rnicctl show ports` prints.
 */
#include <stddef.h>

#include "pmd_priv.h"

/* Where ethdev tells of an offload; RSS is told by the hash types and the queues. */
static const struct offload {
	const char *name;
	uint64_t rx, tx;
	const char *never; /* why it is left alone where it is offered */
} offloads[PMD_OFFLOAD_COUNT] = {
	[PMD_OFFLOAD_RX_IPV4_CKSUM] = {"rx-ipv4-cksum", .rx = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM},
	[PMD_OFFLOAD_TX_IPV4_CKSUM] = {"tx-ipv4-cksum", .tx = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM,
		.never = "the header comes from a template: its checksum is two additions"},
	[PMD_OFFLOAD_TX_MULTI_SEGS] = {"tx-multi-segs", .tx = RTE_ETH_TX_OFFLOAD_MULTI_SEGS},
	[PMD_OFFLOAD_RX_SCATTER] = {"rx-scatter", .rx = RTE_ETH_RX_OFFLOAD_SCATTER},
	[PMD_OFFLOAD_TX_FAST_FREE] = {"tx-fast-free", .tx = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE,
		.never = "a queue sends buffers of several pools, some with references"},
	[PMD_OFFLOAD_VLAN_STRIP] = {"vlan-strip", .rx = RTE_ETH_RX_OFFLOAD_VLAN_STRIP,
		.never = "a tag is read in place, and stays in captures"},
	[PMD_OFFLOAD_RSS] = {"rss"},
};

#define RSS_TYPES (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP)

const char *
pmd_offload_name(enum pmd_offload o)
{
	return (unsigned int)o < PMD_OFFLOAD_COUNT ? offloads[o].name : NULL;
}

static bool
offered(enum pmd_offload o, const struct rte_eth_dev_info *info)
{
	const struct offload *f = &offloads[o];

	if (o == PMD_OFFLOAD_RSS)
		return (info->flow_type_rss_offloads & RSS_TYPES) != 0 && info->max_rx_queues > 1;
	return (info->rx_offload_capa & f->rx) != 0 || (info->tx_offload_capa & f->tx) != 0;
}

/** Why an offered and allowed offload is not used; NULL: it is. */
static const char *
needless(enum pmd_offload o, const struct pmd_port *p, uint32_t frame, uint32_t room)
{
	if (offloads[o].never != NULL)
		return offloads[o].never;
	if (o == PMD_OFFLOAD_RX_SCATTER && frame <= room)
		return "the longest frame fits one receive buffer";
	if (o == PMD_OFFLOAD_RSS && p->num_queues < 2)
		return "there is one queue";
	return NULL;
}

void
pmd_offload_negotiate(struct pmd_port *p, const struct rte_eth_dev_info *info, uint64_t refused,
		      uint32_t frame, uint32_t room, struct rte_eth_conf *conf)
{
	for (enum pmd_offload o = 0; o < PMD_OFFLOAD_COUNT; o++) {
		uint64_t bit = UINT64_C(1) << o;

		if (!offered(o, info)) {
			p->why_not[o] = "not offered by the driver";
			continue;
		}
		p->offered |= bit;
		p->why_not[o] = (refused & bit) ? "turned off by the configuration" :
						  needless(o, p, frame, room);
		if (p->why_not[o] != NULL)
			continue;
		p->used |= bit;
		conf->rxmode.offloads |= offloads[o].rx;
		conf->txmode.offloads |= offloads[o].tx;
	}
	if (p->used & UINT64_C(1) << PMD_OFFLOAD_RSS) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf = RSS_TYPES & info->flow_type_rss_offloads;
	}
}
