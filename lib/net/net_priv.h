/* SPDX-License-Identifier: BSD-3-Clause */
/* Wire constants and small emitters shared inside lib/net. */
#ifndef NET_PRIV_H
#define NET_PRIV_H

#include <netinet/in.h>

#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "net_addr.h"

#define NET_ICMP_HDR_LEN 8

/* RFC 792 */
#define NET_ICMP4_UNREACHABLE 3
#define NET_ICMP4_UNREACHABLE_FRAG 4 /* code */
#define NET_ICMP4_TIME_EXCEEDED 11
#define NET_ICMP4_PARAMETER 12

/* RFC 4443, RFC 4861 */
#define NET_ICMP6_UNREACHABLE 1
#define NET_ICMP6_TOO_BIG 2
#define NET_ICMP6_PARAMETER 4
#define NET_ICMP6_ECHO_REQUEST 128
#define NET_ICMP6_ECHO_REPLY 129
#define NET_ICMP6_MLD_QUERY 130
#define NET_ICMP6_MLD_REPORT 131
#define NET_ICMP6_MLD_DONE 132
#define NET_ICMP6_MLD2_REPORT 143
#define NET_ICMP6_ND_FIRST 133
#define NET_ICMP6_ND_LAST 137

#define NET_HOP_LIMIT 64

/* Ethernet header with an optional tag; returns its length. */
static inline uint16_t
net_l2_emit(uint8_t *buf, const struct rte_ether_addr *dst, const struct rte_ether_addr *src,
	uint16_t tci, uint16_t type)
{
	rte_be16_t w[3] = { RTE_BE16(RTE_ETHER_TYPE_VLAN), rte_cpu_to_be_16(tci),
		rte_cpu_to_be_16(type) };

	memcpy(buf, dst, RTE_ETHER_ADDR_LEN);
	memcpy(buf + 6, src, RTE_ETHER_ADDR_LEN);
	if (tci == NET_VLAN_NONE) {
		memcpy(buf + 12, &w[2], 2);
		return 14;
	}
	memcpy(buf + 12, w, 6);
	return 18;
}

#endif /* NET_PRIV_H */
