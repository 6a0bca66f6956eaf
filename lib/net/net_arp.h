/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP for IPv4 over Ethernet (RFC 826): wire format alone. */
#ifndef NET_ARP_H
#define NET_ARP_H

#include "net_addr.h"

#define NET_ARP_LEN 28
#define NET_ARP_FRAME_MAX (14 + 4 + NET_ARP_LEN)

struct net_arp {
	uint16_t op; /* RTE_ARP_OP_REQUEST or RTE_ARP_OP_REPLY */
	struct rte_ether_addr sha;
	struct rte_ether_addr tha;
	struct net_ip spa;
	struct net_ip tpa;
};

/** The ARP message at @buf. 0, or -EBADMSG when it is not IPv4 over Ethernet. */
int net_arp_parse(const uint8_t *buf, size_t len, struct net_arp *arp);

/** A whole frame to @dst; returns its length. @frame has NET_ARP_FRAME_MAX bytes. */
uint16_t net_arp_emit(const struct net_arp *arp, const struct rte_ether_addr *dst, uint16_t tci,
	uint8_t *frame);

#endif /* NET_ARP_H */
