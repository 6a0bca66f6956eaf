/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bringing a port up and down, and what is known of it. Works with whatever ethdev offers: a
 * refusal is a sentence that says what to change. Not here: steering, exception path, capture.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "pmd_priv.h"

#define DEFAULT_DESC 1024
#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN)

LOG_TYPE_DEFINE(pmd_log, pmd_glue, NOTICE);

/** A sentence that outlives the port: one opening at a time, on the control thread. */
static char last_why[256];

static int __rte_format_printf(3, 4)
refuse(struct pmd_port *p, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- MTU ---------- */

/**
 * af_packet (22.11) says that 1518 bytes are its longest frame and refuses a larger MTU, but
 * moves what its frames (framesz=) and the netdev allow. Those two are what counts.
 */
static int
afpacket_mtu(struct pmd_port *p, uint32_t frames, uint32_t wanted)
{
	uint32_t netdev = pmd_netdev_mtu(p->netdev);

	if (wanted == 0)
		wanted = netdev != 0 ? RTE_MIN(netdev, frames) : RTE_ETHER_MTU;
	if (wanted > frames)
		return refuse(p, -EINVAL, "port %u: MTU %u does not fit af_packet's frames; add "
			      "framesz=%u,blocksz=%u to its arguments", p->index, wanted,
			      rte_align32pow2(wanted + 128), rte_align32pow2(wanted + 128));
	if (netdev != 0 && wanted > netdev)
		return refuse(p, -EINVAL, "port %u: MTU %u is more than the %u of %s; "
			      "ip link set dev %s mtu %u", p->index, wanted, netdev, p->netdev,
			      p->netdev, wanted);
	p->mtu = (uint16_t)wanted;
	return 0;
}

static int
choose_mtu(struct pmd_port *p, const struct rte_eth_dev_info *info, uint16_t wanted,
	   struct rte_eth_conf *conf)
{
	uint32_t frames = pmd_afpacket_mtu(info);
	uint16_t present = RTE_ETHER_MTU;

	if (frames != 0)
		return afpacket_mtu(p, frames, wanted);
	rte_eth_dev_get_mtu(p->ethdev, &present);
	p->mtu = wanted != 0 ? wanted : present;
	if (p->mtu < info->min_mtu || (info->max_mtu != 0 && p->mtu > info->max_mtu))
		return refuse(p, -EINVAL, "port %u (%s): MTU %u is outside of what the driver "
			      "takes, %u to %u", p->index, info->driver_name, p->mtu,
			      info->min_mtu, info->max_mtu);
	conf->rxmode.mtu = p->mtu;
	return 0;
}

/** A frame has to fit one buffer, or the driver has to spread it over several. */
static int
check_room(struct pmd_port *p, uint32_t frame, uint32_t room)
{
	if (frame <= room || (p->used & UINT64_C(1) << PMD_OFFLOAD_RX_SCATTER))
		return 0;
	return refuse(p, -EINVAL, "port %u: frames of %u bytes do not fit receive buffers of %u, "
		      "and the driver does not scatter (%s); use larger buffers or a lower MTU",
		      p->index, frame, room, p->why_not[PMD_OFFLOAD_RX_SCATTER]);
}

/* ---- starting ---------- */

static int
check_queues(struct pmd_port *p, const struct rte_eth_dev_info *info)
{
	uint16_t most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);

	if (p->num_queues <= most)
		return 0;
	return refuse(p, -EINVAL, "port %u (%s) has %u queues, %u workers need one each; start "
		      "fewer workers or give the driver more queues (af_packet: qpairs=%u)",
		      p->index, info->driver_name, most, p->num_queues, p->num_queues);
}

static int
setup_queues(struct pmd_port *p, const struct pmd_port_config *cfg,
	     const struct rte_eth_dev_info *info)
{
	uint16_t rx = cfg->rx_desc ? cfg->rx_desc : info->default_rxportconf.ring_size;
	uint16_t tx = cfg->tx_desc ? cfg->tx_desc : info->default_txportconf.ring_size;
	int socket = rte_eth_dev_socket_id(p->ethdev);
	int rc;

	rx = rx ? rx : DEFAULT_DESC;
	tx = tx ? tx : DEFAULT_DESC;
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->ethdev, &rx, &tx);
	for (uint16_t q = 0; q < p->num_queues && rc == 0; q++) {
		rc = rte_eth_rx_queue_setup(p->ethdev, q, rx, (unsigned int)socket, NULL,
					    cfg->rx_pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(p->ethdev, q, tx, (unsigned int)socket, NULL);
	}
	if (rc != 0)
		return refuse(p, rc, "port %u (%s): queues of %u and %u descriptors: %s", p->index,
			      info->driver_name, rx, tx, strerror(-rc));
	return 0;
}

/** Group addresses are needed: neighbour solicitations come to them. */
static void
accept_groups(struct pmd_port *p)
{
	p->all_groups = true;
	if (rte_eth_allmulticast_enable(p->ethdev) != 0 &&
	    rte_eth_promiscuous_enable(p->ethdev) != 0)
		LOG(pmd_log, WARNING, "port %u takes no group addresses: IPv6 neighbours may "
		    "not find it", p->index);
}

void
pmd_port_set_groups(struct pmd_port *p, const void *macs, uint32_t n)
{
	/* the call copies the list and means no harm to it */
	struct rte_ether_addr *list = (struct rte_ether_addr *)(uintptr_t)macs;

	if (p->loop != NULL)
		return;
	if (n != UINT32_MAX && rte_eth_dev_set_mc_addr_list(p->ethdev, list, n) == 0) {
		if (p->all_groups && rte_eth_allmulticast_disable(p->ethdev) == 0)
			p->all_groups = false;
		return;
	}
	if (!p->all_groups)
		accept_groups(p);
}

/** Receive interrupts are found out about by asking for them. */
static int
configure(struct pmd_port *p, const struct pmd_port_config *cfg,
	  const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	int rc = -ENOTSUP;

	for (int intr = 1; intr >= 0; intr--) {
		conf->intr_conf.rxq = (uint32_t)intr;
		rc = rte_eth_dev_configure(p->ethdev, p->num_queues, p->num_queues, conf);
		if (rc != 0)
			continue;
		rc = setup_queues(p, cfg, info);
		if (rc != 0)
			return rc;
		rc = rte_eth_dev_start(p->ethdev);
		if (rc == 0) {
			p->started = true;
			p->rx_interrupts = intr != 0 &&
				rte_eth_dev_rx_intr_ctl_q_get_fd(p->ethdev, 0) >= 0;
			return 0;
		}
	}
	return refuse(p, rc, "port %u (%s) does not start: %s", p->index, info->driver_name,
		      strerror(-rc));
}

static int
open_ethdev(struct pmd_port *p, const struct pmd_port_config *cfg)
{
	uint32_t room = rte_pktmbuf_data_room_size(cfg->rx_pool) - RTE_PKTMBUF_HEADROOM;
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	int rc;

	rc = rte_eth_dev_info_get(p->ethdev, &info);
	if (rc != 0)
		return refuse(p, rc, "there is no port %u of DPDK", p->ethdev);
	pmd_netdev_name(&info, p->netdev);
	rc = check_queues(p, &info);
	if (rc == 0)
		rc = choose_mtu(p, &info, cfg->mtu, &conf);
	if (rc != 0)
		return rc;
	pmd_offload_negotiate(p, &info, cfg->no_offload, p->mtu + FRAME_OVERHEAD, room, &conf);
	rc = check_room(p, p->mtu + FRAME_OVERHEAD, room);
	if (rc == 0)
		rc = configure(p, cfg, &info, &conf);
	if (rc != 0)
		return rc;
	accept_groups(p);
	rte_eth_macaddr_get(p->ethdev, &p->mac);
	if (rte_is_zero_ether_addr(&p->mac)) /* net_ring has none; neighbours must tell us apart */
		rte_eth_random_addr(p->mac.addr_bytes);
	return 0;
}

int
pmd_port_open(const struct pmd_port_config *cfg, struct pmd_port **out, const char **why)
{
	struct pmd_port *p = calloc(1, sizeof(*p));
	int rc;

	*why = "out of memory";
	if (p == NULL)
		return -ENOMEM;
	p->ethdev = cfg->ethdev;
	p->index = cfg->index;
	p->num_queues = cfg->num_queues;
	if (cfg->ethdev == PMD_PORT_LOOP) {
		p->mtu = cfg->mtu != 0 ? cfg->mtu : RTE_ETHER_MTU;
		rc = pmd_loop_open(p);
	} else {
		rc = open_ethdev(p, cfg);
	}
	if (rc != 0) {
		if (p->why[0] != '\0') {
			memcpy(last_why, p->why, sizeof(last_why));
			*why = last_why;
		}
		pmd_port_close(p);
		return rc;
	}
	*why = NULL;
	*out = p;
	return 0;
}

void
pmd_port_close(struct pmd_port *p)
{
	if (p->loop != NULL) {
		pmd_loop_close(p);
	} else if (p->started) {
		rte_eth_dev_stop(p->ethdev);
		rte_eth_dev_close(p->ethdev);
	}
	free(p);
}

/* ---- what is known ---------- */

void
pmd_port_get_info(const struct pmd_port *p, struct pmd_port_info *info)
{
	struct rte_eth_dev_info dev;

	memset(info, 0, sizeof(*info));
	memcpy(info->mac, p->mac.addr_bytes, sizeof(info->mac));
	memcpy(info->netdev, p->netdev, sizeof(info->netdev));
	memcpy(info->why_not, p->why_not, sizeof(info->why_not));
	info->mtu = p->mtu;
	info->link_up = p->link_up;
	info->link_mbps = p->link_mbps;
	info->used = p->used;
	info->offered = p->offered;
	info->rx_interrupts = p->rx_interrupts;
	info->builtin = p->loop != NULL;
	if (p->loop != NULL) {
		strcpy(info->name, "loop");
		strcpy(info->driver, "builtin");
		return;
	}
	if (rte_eth_dev_get_name_by_port(p->ethdev, info->name) != 0)
		info->name[0] = '\0';
	if (rte_eth_dev_info_get(p->ethdev, &dev) == 0 && dev.driver_name != NULL)
		snprintf(info->driver, sizeof(info->driver), "%s", dev.driver_name);
}

void
pmd_port_get_stats(const struct pmd_port *p, struct pmd_port_stats *s)
{
	struct rte_eth_stats e;

	memset(s, 0, sizeof(*s));
	if (p->loop != NULL) {
		pmd_loop_stats(p, s);
		return;
	}
	if (rte_eth_stats_get(p->ethdev, &e) != 0)
		return;
	s->rx_packets = e.ipackets;
	s->rx_bytes = e.ibytes;
	s->tx_packets = e.opackets;
	s->tx_bytes = e.obytes;
	s->rx_missed = e.imissed;
	s->rx_errors = e.ierrors;
	s->rx_nombuf = e.rx_nombuf;
	s->tx_errors = e.oerrors;
}

bool
pmd_port_poll_link(struct pmd_port *p, bool *up)
{
	struct rte_eth_link link = {0};
	bool was = p->link_up;

	if (p->loop == NULL && rte_eth_link_get_nowait(p->ethdev, &link) == 0) {
		p->link_up = link.link_status == RTE_ETH_LINK_UP && !pmd_netdev_down(p->netdev);
		p->link_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	}
	*up = p->link_up;
	return p->link_up != was;
}
