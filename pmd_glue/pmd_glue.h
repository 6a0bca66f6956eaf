/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports: the only user of rte_ethdev. Brings a port up with one receive and one transmit queue
 * a worker, negotiates offloads with a software fallback for each, and moves bursts. Also the
 * built-in `loop` port, which has no ethdev: what is sent to it comes back from it.
 */
#ifndef PMD_GLUE_H
#define PMD_GLUE_H

#include <stdbool.h>
#include <stdint.h>

struct net_iface;
struct rte_mbuf;
struct rte_mempool;

#define PMD_MAX_PORTS 16
#define PMD_PORT_LOOP UINT16_MAX /* ethdev number that stands for the built-in port */

struct pmd_port;

struct pmd_port_config {
	uint16_t ethdev;	/* DPDK's port id, or PMD_PORT_LOOP */
	uint16_t index;		/* the daemon's number of it */
	uint16_t num_queues;	/* one a worker */
	uint16_t mtu;		/* 0: leave as it is */
	uint16_t rx_desc, tx_desc; /* 0: default */
	struct rte_mempool *rx_pool;
	uint64_t no_offload;	/* bits of enum pmd_offload not to use */
};

enum pmd_offload {
	PMD_OFFLOAD_RX_IPV4_CKSUM,
	PMD_OFFLOAD_TX_IPV4_CKSUM,
	PMD_OFFLOAD_TX_MULTI_SEGS,
	PMD_OFFLOAD_RX_SCATTER,
	PMD_OFFLOAD_TX_FAST_FREE,
	PMD_OFFLOAD_VLAN_STRIP,
	PMD_OFFLOAD_RSS,
	PMD_OFFLOAD_COUNT
};
const char *pmd_offload_name(enum pmd_offload o);

struct pmd_port_info {
	char name[64];	  /* ethdev's */
	char driver[32];
	char netdev[16];  /* kernel interface it stands on (af_packet, af_xdp, tap), or "" */
	uint8_t mac[6];
	uint16_t mtu;
	bool link_up;
	uint32_t link_mbps;
	uint64_t used, offered; /* bits of enum pmd_offload */
	const char *why_not[PMD_OFFLOAD_COUNT]; /* reason for each that is not used */
	bool rx_interrupts;
	bool builtin; /* the loop port: nothing comes to it of itself */
};

struct pmd_port_stats {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
	uint64_t rx_missed, rx_errors, rx_nombuf, tx_errors;
};

/**
 * Configure and start a port. Control thread, before workers run.
 * @return 0 or -errno; *why is then a sentence for the user that says what to do.
 */
int pmd_port_open(const struct pmd_port_config *cfg, struct pmd_port **out, const char **why);
void pmd_port_close(struct pmd_port *p);
void pmd_port_get_info(const struct pmd_port *p, struct pmd_port_info *info);
void pmd_port_get_stats(const struct pmd_port *p, struct pmd_port_stats *s);
/**
 * Which groups' frames the port is to take: n MACs of six bytes, or UINT32_MAX: all. Where the
 * driver has no such filter, or too small a one, it takes all. Control thread.
 */
void pmd_port_set_groups(struct pmd_port *p, const void *macs, uint32_t n);
/** Link changes since the last call. Control thread. @return whether the state changed. */
bool pmd_port_poll_link(struct pmd_port *p, bool *up);

/** Worker: a burst from its queue. Marks m->port with the daemon's index. */
uint16_t pmd_rx_burst(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
/** Worker: a burst to its queue; what is not taken stays the caller's. */
uint16_t pmd_tx_burst(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n);
/** Enable a receive interrupt and get its fd for epoll; -ENOTSUP where the PMD has none. */
int pmd_rx_intr_fd(struct pmd_port *p, uint16_t queue);
int pmd_rx_intr_enable(struct pmd_port *p, uint16_t queue);
int pmd_rx_intr_disable(struct pmd_port *p, uint16_t queue);
/** Whether something waits in the queue, where the PMD can tell; else true. */
bool pmd_rx_maybe_ready(struct pmd_port *p, uint16_t queue);

#endif /* PMD_GLUE_H */
