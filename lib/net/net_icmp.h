/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP and ICMPv6 (RFC 792, RFC 4443): echo replies, and errors about our packets. */
#ifndef NET_ICMP_H
#define NET_ICMP_H

#include "net_addr.h"

struct net_pkt;

enum net_icmp_what {
	NET_ICMP_TOO_BIG,     /* fragmentation needed, packet too big */
	NET_ICMP_UNREACHABLE, /* soft: a hint, never to close on (RFC 5927) */
	NET_ICMP_OTHER_ERROR  /* time exceeded, parameter problem, ... */
};

struct net_icmp_error {
	enum net_icmp_what what;
	uint8_t type;
	uint8_t code;
	uint8_t proto;	   /* of the packet in error, like all below */
	uint16_t sport;	   /* host order; 0 unless UDP or TCP */
	uint16_t dport;
	uint32_t l4_word;  /* second word: TCP's sequence number; host order */
	uint32_t mtu;	   /* TOO_BIG: of the next hop, IP header included */
	struct net_ip src; /* ours, to be checked by the caller */
	struct net_ip dst; /* whose path is concerned */
};

/**
 * Make the echo request @p its own reply, in place, ready to transmit from
 * @mac; a tag that was stripped is put back. 0; -EBADMSG for a wrong checksum,
 * -EINVAL for a request to or from what must not be answered, -ENOBUFS without
 * room for the tag. The mbuf stays the caller's.
 */
int net_icmp_echo_reply(struct net_pkt *p, const struct rte_ether_addr *mac);

/** What a NET_ICMP_ERROR packet says. 0 or -EBADMSG. */
int net_icmp_parse_error(const struct net_pkt *p, struct net_icmp_error *err);

#endif /* NET_ICMP_H */
