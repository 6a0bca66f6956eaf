/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbour solicitations and advertisements, read and written. */
#include <errno.h>

#include "net_cksum.h"
#include "net_nd.h"
#include "net_priv.h"

#define ND_HOP_LIMIT 255
#define ND_OPT_SOURCE_MAC 1
#define ND_OPT_TARGET_MAC 2
#define ND_BODY 24 /* ICMP header, flags, target */
#define ND_CKSUM_OFF 2

static uint8_t
mac_option(uint8_t type)
{
	return type == NET_ND_NS ? ND_OPT_SOURCE_MAC : ND_OPT_TARGET_MAC;
}

/* Unknown options are skipped, one of length 0 spoils the message (RFC 4861 4.6). */
static int
parse_options(const uint8_t *opt, size_t len, struct net_nd *nd)
{
	size_t n;

	for (; len >= 2; opt += n, len -= n) {
		n = opt[1] * (size_t)8;
		if (n == 0 || n > len)
			return -EBADMSG;
		if (opt[0] == mac_option(nd->type) && n == 8) {
			memcpy(nd->mac.addr_bytes, opt + 2, RTE_ETHER_ADDR_LEN);
			nd->has_mac = true;
		}
	}
	return len == 0 ? 0 : -EBADMSG;
}

/* The rules of RFC 4861 7.1.1 and 7.1.2 that follow those on options. */
static int
check_addresses(const struct net_nd *nd)
{
	struct net_ip group = net_ip_solicited_node(&nd->target);

	if (net_ip_is_multicast(&nd->target) || net_ip_is_v4(&nd->target) ||
			net_ip_is_zero(&nd->target))
		return -EBADMSG;
	if (nd->has_mac && !rte_is_valid_assigned_ether_addr(&nd->mac))
		return -EBADMSG;
	if (nd->type == NET_ND_NS && net_ip_is_zero(&nd->src) &&
			(nd->has_mac || !net_ip_eq(&nd->dst, &group)))
		return -EBADMSG;
	if (nd->type == NET_ND_NA && net_ip_is_multicast(&nd->dst) &&
			(nd->flags & NET_ND_SOLICITED))
		return -EBADMSG;
	return 0;
}

int
net_nd_parse(const uint8_t *ip6, size_t len, struct net_nd *nd)
{
	const uint8_t *icmp = ip6 + sizeof(struct rte_ipv6_hdr);
	struct rte_ipv6_hdr h;
	size_t icmp_len;
	uint16_t sum;

	if (len < sizeof(h) + NET_ICMP_HDR_LEN)
		return -EBADMSG;
	memcpy(&h, ip6, sizeof(h));
	icmp_len = len - sizeof(h);
	if (h.proto != IPPROTO_ICMPV6 || h.hop_limits != ND_HOP_LIMIT ||
			rte_be_to_cpu_16(h.payload_len) != icmp_len)
		return -EBADMSG;
	if (icmp[0] != NET_ND_NS && icmp[0] != NET_ND_NA)
		return -EPROTONOSUPPORT;
	if (icmp[1] != 0 || icmp_len < ND_BODY)
		return -EBADMSG;
	*nd = (struct net_nd){
		.type = icmp[0],
		.flags = icmp[0] == NET_ND_NA ? icmp[4] & 0xe0 : 0,
		.src = net_ip_from_bytes(h.src_addr),
		.dst = net_ip_from_bytes(h.dst_addr),
		.target = net_ip_from_bytes(icmp + 8),
	};
	sum = net_cksum_pseudo(&nd->src, &nd->dst, IPPROTO_ICMPV6, (uint32_t)icmp_len);
	if (net_cksum_add(sum, icmp, icmp_len) != 0xffff)
		return -EBADMSG;
	if (parse_options(icmp + ND_BODY, icmp_len - ND_BODY, nd) != 0)
		return -EBADMSG;
	return check_addresses(nd);
}

uint16_t
net_nd_emit(const struct net_nd *nd, const struct rte_ether_addr *smac,
	const struct rte_ether_addr *dmac, uint16_t tci, uint8_t *frame)
{
	uint16_t icmp_len = nd->has_mac ? ND_BODY + 8 : ND_BODY;
	struct rte_ipv6_hdr h = {
		.vtc_flow = RTE_BE32(6u << 28),
		.payload_len = rte_cpu_to_be_16(icmp_len),
		.proto = IPPROTO_ICMPV6,
		.hop_limits = ND_HOP_LIMIT,
	};
	uint16_t off = net_l2_emit(frame, dmac, smac, tci, RTE_ETHER_TYPE_IPV6);
	uint8_t *icmp = frame + off + sizeof(h);
	uint16_t sum;

	memcpy(h.src_addr, nd->src.b, sizeof(h.src_addr));
	memcpy(h.dst_addr, nd->dst.b, sizeof(h.dst_addr));
	memcpy(frame + off, &h, sizeof(h));
	memset(icmp, 0, ND_BODY);
	icmp[0] = nd->type;
	icmp[4] = nd->flags;
	memcpy(icmp + 8, nd->target.b, sizeof(nd->target.b));
	if (nd->has_mac) {
		icmp[ND_BODY] = mac_option(nd->type);
		icmp[ND_BODY + 1] = 1;
		memcpy(icmp + ND_BODY + 2, nd->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	}
	sum = net_cksum_pseudo(&nd->src, &nd->dst, IPPROTO_ICMPV6, icmp_len);
	sum = (uint16_t)~net_cksum_add(sum, icmp, icmp_len);
	memcpy(icmp + ND_CKSUM_OFF, &sum, sizeof(sum));
	return (uint16_t)(off + sizeof(h) + icmp_len);
}
