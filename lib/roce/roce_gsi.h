/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP1, the general services interface, which no application has. What comes to it is checked by
 * the receiving worker's engine (roce_config.mad) and told to the control thread, whose answers
 * are whole packets made here, that a worker only sends. Pure but for the counters.
 *
 * Control thread: ctl_gsi_send(), ctl_gsi_reply() and worker_device.gsi_rx (ctl_priv.h).
 */
#ifndef ROCE_GSI_H
#define ROCE_GSI_H

#include "net_addr.h"

struct net_path;
struct net_pkt;
struct roce;
struct roce_pkt;

#define ROCE_MAD_LEN 256
#define ROCE_MAD_BASE_VERSION 1
#define ROCE_MAD_CLASS_CM 7
/** Longest frame of roce_gsi_emit(): headers through UDP, BTH, DETH, MAD, ICRC. */
#define ROCE_GSI_FRAME_MAX (14 + 4 + 40 + 8 + 12 + 8 + ROCE_MAD_LEN + 4)

/** A MAD that came to QP1, and where from. Nobody has looked into it beyond base version, class. */
struct roce_mad {
	struct net_ip src, dst; /* dst is an own address, never a group's */
	struct rte_ether_addr smac;
	uint16_t vlan_tci; /* NET_VLAN_NONE: no tag */
	uint16_t port;	   /* index in the daemon; the hairpin's for MADs of our own */
	uint16_t pkey;
	uint8_t tclass, hop_limit;
	uint32_t src_qpn;
	uint32_t psn;
	uint32_t worker; /* whose queue it came to; set by the worker */
	uint8_t data[ROCE_MAD_LEN];
};

/**
 * Fill *mad from a packet whose ICRC and headers were right and whose DestQP is 1. @return false,
 * counted: it is no UD packet, its Q_Key is not QP1's, its P_Key not ours, it is for a group, not
 * of ROCE_MAD_LEN bytes, or of another class than the CM's.
 */
bool roce_gsi_take(struct roce *r, const struct net_pkt *np, const struct roce_pkt *p,
		   struct roce_mad *mad);

/**
 * A whole frame from our QP1 to a peer's. The path's source port must be net_udp_sport_ud(1), l2 a
 * usable word of its neighbour. @return its length; room for ROCE_GSI_FRAME_MAX.
 */
uint32_t roce_gsi_emit(const struct net_path *path, uint64_t l2, uint32_t psn, const uint8_t *mad,
		       uint8_t *frame);

#endif /* ROCE_GSI_H */
