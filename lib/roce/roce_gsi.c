/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP1: what a management datagram must fulfil to be looked at (13.4, 9.6.1, and A17 17.4), and
 * how one is written. State and meaning of MADs are the control thread's.
 */
#include <string.h>

#include "roce_gsi.h"
#include "roce_priv.h"

/** Offsets in the MAD header (13.4.2). */
#define MAD_BASE_VERSION 0
#define MAD_CLASS 1

static bool
gsi_is_mad(const struct roce_pkt *p)
{
	return p->opcode == ROCE_UD_SEND_ONLY && p->payload_len == ROCE_MAD_LEN &&
	       p->payload[MAD_BASE_VERSION] == ROCE_MAD_BASE_VERSION &&
	       p->payload[MAD_CLASS] == ROCE_MAD_CLASS_CM;
}

/** Cheap checks first: what is refused here costs the control thread nothing. */
static bool
gsi_admit(struct roce *r, const struct net_pkt *np, const struct roce_pkt *p)
{
	struct net_ip dst = net_pkt_dst(np), src = net_pkt_src(np);
	enum roce_counter why;

	if (p->info->transport != ROCE_TR_UD)
		why = ROCE_C_DROP_QP_TYPE;
	else if (net_ip_is_multicast(&dst) || net_ip_is_zero(&src))
		why = ROCE_C_DROP_ADDRESS;
	else if (!roce_pkey_ok(p->pkey))
		why = ROCE_C_DROP_PKEY;
	else if (p->qkey != ROCE_QKEY_GSI)
		why = ROCE_C_DROP_QKEY;
	else if (!gsi_is_mad(p))
		why = ROCE_C_GSI_BAD;
	else
		return true;
	roce_count(r, why);
	return false;
}

bool
roce_gsi_take(struct roce *r, const struct net_pkt *np, const struct roce_pkt *p,
	      struct roce_mad *mad)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(np->m, const struct rte_ether_hdr *);

	if (!gsi_admit(r, np, p))
		return false;
	roce_count(r, ROCE_C_GSI_RCVD);
	mad->src = net_pkt_src(np);
	mad->dst = net_pkt_dst(np);
	mad->smac = eth->src_addr;
	mad->vlan_tci = np->vlan_tci;
	mad->port = np->port;
	mad->pkey = p->pkey;
	mad->tclass = np->tclass;
	mad->hop_limit = np->hop_limit;
	mad->src_qpn = p->src_qpn;
	mad->psn = p->psn;
	mad->worker = r->w->id;
	memcpy(mad->data, p->payload, sizeof(mad->data));
	return true;
}

uint32_t
roce_gsi_emit(const struct net_path *path, uint64_t l2, uint32_t psn, const uint8_t *mad,
	      uint8_t *frame)
{
	const uint32_t udp = ROCE_BTH_LEN + sizeof(struct roce_deth) + ROCE_MAD_LEN + ROCE_ICRC_LEN;
	uint8_t *bth = net_path_emit(path, frame, (uint16_t)udp, l2);
	uint8_t *payload = bth + ROCE_BTH_LEN + sizeof(struct roce_deth);

	roce_bth_emit(bth, ROCE_UD_SEND_ONLY, ROCE_BTH_MIGREQ, ROCE_PKEY_DEFAULT, ROCE_QPN_GSI,
		      psn & ROCE_PSN_MASK);
	roce_deth_emit(bth + ROCE_BTH_LEN, ROCE_QKEY_GSI, ROCE_QPN_GSI);
	memcpy(payload, mad, ROCE_MAD_LEN);
	roce_icrc_write(frame + path->l3_off, path->v6,
			(size_t)(bth - frame) + udp - path->l3_off);
	return (uint32_t)(bth - frame) + udp;
}
