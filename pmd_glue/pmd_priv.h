/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside pmd_glue: what a port is made of. */
#ifndef PMD_PRIV_H
#define PMD_PRIV_H

#include <rte_ethdev.h>

#include "base_log.h"
#include "pmd_glue.h"

LOG_TYPE_DECLARE(pmd_log);

struct pmd_loop_queue;

struct pmd_port {
	/* Workers read these. */
	uint16_t ethdev;
	uint16_t index;
	uint16_t num_queues;
	struct pmd_loop_queue *loop; /* one a queue; NULL: an ethdev */

	/* Control thread. */
	uint16_t mtu;
	bool started;
	bool rx_interrupts;
	bool link_up;
	bool all_groups; /* no filter */
	uint32_t link_mbps;
	uint64_t used, offered;
	const char *why_not[PMD_OFFLOAD_COUNT];
	struct rte_ether_addr mac;
	char netdev[16];
	char why[256]; /* sentence of a failed opening */
};

/**
 * Decide on offloads: fills in p->offered, used and why_not, and the flags of *conf.
 * @param frame longest frame in bytes, room: of a receive buffer.
 */
void pmd_offload_negotiate(struct pmd_port *p, const struct rte_eth_dev_info *info,
			   uint64_t refused, uint32_t frame, uint32_t room,
			   struct rte_eth_conf *conf);

/** The kernel interface under a port: its name, or "". */
void pmd_netdev_name(const struct rte_eth_dev_info *info, char name[16]);
/** Its MTU, or 0. */
uint32_t pmd_netdev_mtu(const char *name);
/** Whether the interface says that it is down or has no carrier: af_packet never does. */
bool pmd_netdev_down(const char *name);
/** Largest MTU that af_packet's frames hold; 0: not an af_packet port. */
uint32_t pmd_afpacket_mtu(const struct rte_eth_dev_info *info);

int pmd_loop_open(struct pmd_port *p);
void pmd_loop_close(struct pmd_port *p);
uint16_t pmd_loop_rx(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
uint16_t pmd_loop_tx(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
void pmd_loop_stats(const struct pmd_port *p, struct pmd_port_stats *s);
bool pmd_loop_ready(const struct pmd_port *p, uint16_t queue);

#endif /* PMD_PRIV_H */
