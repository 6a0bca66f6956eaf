/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Classification of a received frame: Ethernet, one VLAN tag, IPv4 or IPv6,
 * UDP. Says where the layers are and whether the lengths and the IPv4 header
 * checksum hold; whether the addresses are ours is the caller's question.
 */
#ifndef NET_PARSE_H
#define NET_PARSE_H

#include <rte_ip.h>
#include <rte_mbuf.h>

#include "base_counters.h"
#include "net_addr.h"

/* Reasons to drop; base_counters.h says how the list is used. */
#define NET_DROP_LIST(X) \
	X(NET_DROP_SHORT, "drop_short", "frame ends inside a header") \
	X(NET_DROP_SPLIT, "drop_split", "headers spread over mbuf segments") \
	X(NET_DROP_L2_SOURCE, "drop_l2_source", "frame from a group's MAC") \
	X(NET_DROP_VLAN, "drop_vlan", "reserved VLAN 4095") \
	X(NET_DROP_IP_VERSION, "drop_ip_version", "IP version contradicts the Ethertype") \
	X(NET_DROP_IP_HDR_LEN, "drop_ip_hdr_len", "IPv4 header length below 5") \
	X(NET_DROP_IP_OPTIONS, "drop_ip_options", "UDP or TCP behind IPv4 options") \
	X(NET_DROP_IP_LEN, "drop_ip_len", "IP length longer than the frame or too short") \
	X(NET_DROP_IP_CKSUM, "drop_ip_cksum", "wrong IPv4 header checksum") \
	X(NET_DROP_IP_FRAGMENT, "drop_ip_fragment", "fragment of an IP packet") \
	X(NET_DROP_IP_SOURCE, "drop_ip_source", "address that no host may use on a wire") \
	X(NET_DROP_UDP_LEN, "drop_udp_len", "UDP length is not that of the IP payload")

enum net_kind {
	NET_DROP_LIST(COUNTERS_ENUM_ITEM)
	NET_DROP_COUNT,
	NET_ARP = NET_DROP_COUNT,
	NET_ND,		/* ICMPv6 133 to 137 */
	NET_GROUP,	/* IGMP, and ICMPv6 130 to 132 and 143 behind hop-by-hop options */
	NET_ICMP_ECHO,	/* a request, either family */
	NET_ICMP_ERROR, /* unreachable, too big, time exceeded, ... */
	NET_UDP,
	NET_TCP,
	NET_OTHER, /* sound as far as looked at, for another stack */
	NET_KIND_COUNT
};

struct net_pkt {
	struct rte_mbuf *m;
	uint16_t l2_len;      /* Ethernet and tag */
	uint16_t l3_off;
	uint16_t l4_off;
	uint16_t payload_off; /* past UDP's header; else equal to l4_off */
	uint16_t payload_len; /* to the IP packet's end: no Ethernet padding */
	uint16_t vlan_tci;    /* NET_VLAN_NONE: no tag, in frame or stripped */
	uint16_t port;	      /* m->port */
	uint16_t sport;	      /* UDP and TCP; host order */
	uint16_t dport;
	uint8_t kind;	      /* enum net_kind */
	uint8_t v6;	      /* IPv6 header at l3_off, else IPv4 */
	uint8_t proto;	      /* IP protocol or first next header */
	uint8_t tclass;	      /* TOS or traffic class, all 8 bits */
	uint8_t dscp;
	uint8_t ecn;
	uint8_t hop_limit;
};

static inline bool
net_kind_is_drop(enum net_kind kind)
{
	return kind < NET_DROP_COUNT;
}

/**
 * What a kernel behind the exception path may still want: whole packets that
 * only RoCE and our TCP refuse (C-5), and all that is not ours.
 */
static inline bool
net_kind_for_kernel(enum net_kind kind)
{
	return kind == NET_OTHER || kind == NET_GROUP || kind == NET_DROP_IP_FRAGMENT ||
		kind == NET_DROP_IP_OPTIONS;
}

static inline struct net_ip
net_pkt_src(const struct net_pkt *p)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(p->m, const uint8_t *, p->l3_off);
	rte_be32_t v4;

	if (p->v6)
		return net_ip_from_bytes(l3 + offsetof(struct rte_ipv6_hdr, src_addr));
	memcpy(&v4, l3 + offsetof(struct rte_ipv4_hdr, src_addr), sizeof(v4));
	return net_ip_from_v4(v4);
}

static inline struct net_ip
net_pkt_dst(const struct net_pkt *p)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(p->m, const uint8_t *, p->l3_off);
	rte_be32_t v4;

	if (p->v6)
		return net_ip_from_bytes(l3 + offsetof(struct rte_ipv6_hdr, dst_addr));
	memcpy(&v4, l3 + offsetof(struct rte_ipv4_hdr, dst_addr), sizeof(v4));
	return net_ip_from_v4(v4);
}

/**
 * Classify @m and fill @out. An IP packet's mbuf is cut at the IP length, so
 * that its pkt_len ends at the ICRC. All headers must be in the first segment;
 * the payload may be a chain. The IPv4 header checksum is computed unless the
 * PMD says GOOD.
 */
enum net_kind net_parse(struct rte_mbuf *m, struct net_pkt *out);

/** Names and helps by enum net_kind, drops and all the others. */
extern const struct counter_desc net_kind_desc[NET_KIND_COUNT];

#endif /* NET_PARSE_H */
