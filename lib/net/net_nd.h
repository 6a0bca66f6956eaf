/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbour solicitation and advertisement (RFC 4861): wire format alone. */
#ifndef NET_ND_H
#define NET_ND_H

#include "net_addr.h"

#define NET_ND_NS 135
#define NET_ND_NA 136
#define NET_ND_FRAME_MAX (14 + 4 + 40 + 24 + 8)

#define NET_ND_ROUTER 0x80
#define NET_ND_SOLICITED 0x40
#define NET_ND_OVERRIDE 0x20

struct net_nd {
	uint8_t type;  /* NET_ND_NS or NET_ND_NA */
	uint8_t flags; /* NA: NET_ND_ROUTER, ... */
	bool has_mac;  /* source (NS) or target (NA) link-layer address option */
	struct rte_ether_addr mac;
	struct net_ip src;
	struct net_ip dst;
	struct net_ip target;
};

/**
 * The IPv6 packet at @ip6, cut at its length. 0; -EBADMSG when a check of RFC
 * 4861 7.1 fails; -EPROTONOSUPPORT for another ND type (router messages and
 * redirects: routes come from the configuration).
 */
int net_nd_parse(const uint8_t *ip6, size_t len, struct net_nd *nd);

/** A whole frame from @smac to @dmac, checksum done; returns its length. */
uint16_t net_nd_emit(const struct net_nd *nd, const struct rte_ether_addr *smac,
	const struct rte_ether_addr *dmac, uint16_t tci, uint8_t *frame);

#endif /* NET_ND_H */
