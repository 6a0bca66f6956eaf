/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Header template of a flow. net_path_init() builds Ethernet, tag, IP and UDP
 * once; the emit functions copy that and patch the destination MAC, the lengths
 * and the IPv4 checksum, with no branch on the layout.
 *
 * IPv4: DF set, id 0: an atomic datagram (RFC 6864). UDP checksum 0, as RoCE
 * v2 has it over both families (IBTA A17 17.3.2.4).
 */
#ifndef NET_PATH_H
#define NET_PATH_H

#include <assert.h>

#include <rte_common.h>

#include "net_addr.h"
#include "net_neigh.h"

#define NET_ROCE_PORT 4791
#define NET_PATH_MAX (14 + 4 + 40 + 8) /* longest header */

struct net_path_params {
	struct net_neigh *neigh; /* may be NULL where the MAC is passed another way */
	struct net_ip src;
	struct net_ip dst;
	struct rte_ether_addr smac;
	uint16_t vlan_tci; /* NET_VLAN_NONE: no tag; with VLAN 0 a priority tag */
	uint16_t sport;	   /* UDP */
	uint16_t dport;	   /* UDP; 0 means NET_ROCE_PORT */
	uint32_t flow_label;
	uint8_t proto; /* 0 means UDP; others end at the IP header */
	uint8_t tclass;
	uint8_t hop_limit; /* 0 means 64 */
};

struct net_path {
	uint8_t tmpl[NET_PATH_MAX]; /* lengths and IPv4 checksum 0 */
	uint8_t tmpl_len;
	uint8_t l3_off;
	uint8_t len_off;  /* of the IP length field */
	uint8_t len_base; /* added to the L4 length: 20 for IPv4, 0 for IPv6 */
	bool v6;
	uint8_t proto;
	struct net_neigh *neigh;
	uint32_t cksum; /* IPv4: sum of the header with length 0, memory order */
	uint32_t flow_label;
	struct net_ip src;
	struct net_ip dst;
	uint16_t udp_sport;
	uint16_t vlan_tci;
	uint8_t tclass;
	uint8_t hop_limit;
} __rte_aligned(64);
static_assert(sizeof(struct net_path) == 128, "two lines a path");

/** 0, or -EINVAL when the families differ or a field is out of range. */
int net_path_init(struct net_path *p, const struct net_path_params *prm);

/* 34 to 66 bytes without a branch: both ends, and what they leave between. */
static inline void
net_path_copy(const struct net_path *p, uint8_t *dst, uint64_t l2)
{
	uint64_t w;

	memcpy(dst, p->tmpl, 32);
	memcpy(dst + 32, p->tmpl + 32, 2);
	memcpy(dst + p->tmpl_len - 32, p->tmpl + p->tmpl_len - 32, 32);
	memcpy(&w, p->tmpl, sizeof(w));
	w = (w & ~NET_NEIGH_MAC_MASK) | (l2 & NET_NEIGH_MAC_MASK);
	memcpy(dst, &w, sizeof(w));
}

static inline void
net_path_patch_ip(const struct net_path *p, uint8_t *dst, uint32_t l4_len, uint8_t ecn)
{
	uint16_t len = rte_cpu_to_be_16((uint16_t)(l4_len + p->len_base));
	uint32_t sum = p->cksum + len + rte_cpu_to_be_16(ecn);
	uint16_t cksum;

	memcpy(dst + p->len_off, &len, sizeof(len));
	if (p->v6) {
		dst[p->l3_off + 1] |= (uint8_t)(ecn << 4);
		return;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	cksum = (uint16_t)~(sum + (sum >> 16));
	memcpy(dst + p->l3_off + 10, &cksum, sizeof(cksum));
	dst[p->l3_off + 1] |= ecn;
}

/**
 * Write all headers to @dst for a UDP payload of @len bytes; returns where the
 * payload goes. Writes p->tmpl_len bytes and no more. @l2 is a usable word of
 * net_neigh_use().
 */
static inline uint8_t *
net_path_emit(const struct net_path *p, void *dst, uint16_t len, uint64_t l2)
{
	uint8_t *d = dst;
	uint16_t udp_len = rte_cpu_to_be_16((uint16_t)(len + 8));

	net_path_copy(p, d, l2);
	net_path_patch_ip(p, d, len + 8u, 0);
	memcpy(d + p->tmpl_len - 4, &udp_len, sizeof(udp_len));
	return d + p->tmpl_len;
}

/**
 * The same for a path whose protocol is not UDP: headers through IP, for
 * @l4_len bytes. @ecn is or-ed into the codepoint of this packet.
 */
static inline uint8_t *
net_path_emit_ip(const struct net_path *p, void *dst, uint16_t l4_len, uint8_t ecn, uint64_t l2)
{
	net_path_copy(p, dst, l2);
	net_path_patch_ip(p, dst, l4_len, ecn);
	return (uint8_t *)dst + p->tmpl_len;
}

/** Source port of a flow label, as the Linux RDMA core maps it. */
static inline uint16_t
net_udp_sport_flow(uint32_t fl)
{
	return (uint16_t)(((fl & 0x3fff) ^ ((fl & 0xfc000) >> 14)) | 0xc000);
}

/** RC and UC: from the flow label, or from the two QPNs where that is 0. */
static inline uint16_t
net_udp_sport_hash(uint32_t fl, uint32_t lqpn, uint32_t rqpn)
{
	uint64_t v = (uint64_t)lqpn * rqpn;

	v ^= v >> 20;
	v ^= v >> 40;
	return net_udp_sport_flow(fl != 0 ? fl : (uint32_t)v & 0xfffff);
}

/** UD and GSI: from the own QPN. */
static inline uint16_t
net_udp_sport_ud(uint32_t qpn)
{
	return (uint16_t)(0xc000 + (qpn * UINT32_C(0x61c88647) >> 18));
}

#endif /* NET_PATH_H */
