/* SPDX-License-Identifier: BSD-3-Clause */
/* Group membership messages, read and written. */
#include <errno.h>

#include "net_cksum.h"
#include "net_igmp.h"
#include "net_parse.h"
#include "net_priv.h"

#define IGMP_V1_REPORT 0x12
#define IGMP_V2_REPORT 0x16
#define IGMP_V2_LEAVE 0x17
#define IGMP_V3_REPORT 0x22
#define IGMP_LEN 8
#define IGMP_V3_QUERY_LEN 12
#define IGMP_TOS 0xc0 /* internetwork control (RFC 3376 4) */
#define MLD_LEN 24
#define MLD_V2_QUERY_LEN 28
#define V1_MAX_RESP_MS 10000 /* RFC 3376 4.1.1, of a code of 0 */

#define IPV4_RA_LEN 4 /* router alert (RFC 2113) */
#define IPV6_RA_LEN 8 /* hop-by-hop header with it (RFC 2711) and PadN */

static const uint8_t ipv4_ra[IPV4_RA_LEN] = { 0x94, 4, 0, 0 };
static const uint8_t ipv6_ra[IPV6_RA_LEN] = { IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0 };

/* ---- reading ---------- */

/* Codes from `linear` on are a mantissa and an exponent (RFC 3376 4.1.1 and 4.1.7, 3810 5.1.3). */
static uint32_t
code_value(uint32_t code, uint32_t linear, unsigned int mant_bits)
{
	uint32_t mant = code & ((1u << mant_bits) - 1);

	if (code < linear)
		return code;
	return (mant | 1u << mant_bits) << ((code >> mant_bits & 7) + 3);
}

static void
v3_query(const uint8_t *tail, struct net_igmp *msg)
{
	msg->version = 3;
	msg->robustness = tail[0] & 7;
	msg->interval_s = (uint16_t)code_value(tail[1], 128, 4);
}

static int
parse_igmp_query(const struct net_pkt *p, const uint8_t *m, struct net_igmp *msg)
{
	struct net_ip all = net_ip_from_v4(RTE_BE32(0xe0000001)), dst = net_pkt_dst(p);
	rte_be32_t group;

	memcpy(&group, m + 4, sizeof(group));
	if (group != 0)
		msg->group = net_ip_from_v4(group);
	else if (!net_ip_eq(&dst, &all))
		return -EBADMSG; /* RFC 3376 9.1 */
	if (group != 0 && !net_ip_is_multicast(&msg->group))
		return -EBADMSG;
	msg->what = NET_IGMP_QUERY;
	msg->max_resp_ms = m[1] * 100u;
	if (p->payload_len == IGMP_LEN) { /* RFC 3376 7.1 */
		msg->version = m[1] == 0 ? 1 : 2;
		if (m[1] == 0)
			msg->max_resp_ms = V1_MAX_RESP_MS;
		return 0;
	}
	if (p->payload_len < IGMP_V3_QUERY_LEN)
		return -EBADMSG;
	v3_query(m + 8, msg);
	msg->max_resp_ms = code_value(m[1], 128, 4) * 100;
	return 0;
}

static int
parse_igmp(const struct net_pkt *p, const uint8_t *m, struct net_igmp *msg)
{
	rte_be32_t group;

	if (p->payload_len < IGMP_LEN || p->hop_limit != 1 ||
			net_cksum_add(0, m, p->payload_len) != 0xffff)
		return -EBADMSG;
	if (m[0] == 0x11)
		return parse_igmp_query(p, m, msg);
	if (m[0] != IGMP_V1_REPORT && m[0] != IGMP_V2_REPORT) {
		msg->what = NET_IGMP_OTHER;
		return 0;
	}
	memcpy(&group, m + 4, sizeof(group));
	msg->group = net_ip_from_v4(group);
	msg->what = NET_IGMP_REPORT;
	msg->version = m[0] == IGMP_V1_REPORT ? 1 : 2;
	return net_ip_is_multicast(&msg->group) ? 0 : -EBADMSG;
}

/* The router alert option is not looked for among others: who sends one sends it alone. */
static bool
has_router_alert(const struct net_pkt *p, const uint8_t *ip6)
{
	return p->l4_off == p->l3_off + sizeof(struct rte_ipv6_hdr) + IPV6_RA_LEN &&
		memcmp(ip6 + sizeof(struct rte_ipv6_hdr) + 2, ipv6_ra + 2, 2) == 0;
}

static int
parse_mld_query(const struct net_pkt *p, const uint8_t *m, struct net_igmp *msg)
{
	uint32_t code = (uint32_t)m[4] << 8 | m[5];

	msg->what = NET_IGMP_QUERY;
	msg->group = net_ip_from_bytes(m + 8);
	if (!net_ip_is_zero(&msg->group) && msg->group.b[0] != 0xff)
		return -EBADMSG;
	msg->version = 2;
	msg->max_resp_ms = code;
	if (p->payload_len == MLD_LEN) /* RFC 3810 8.1 */
		return 0;
	if (p->payload_len < MLD_V2_QUERY_LEN)
		return -EBADMSG;
	v3_query(m + MLD_LEN, msg);
	msg->max_resp_ms = code_value(code, 32768, 12);
	return 0;
}

static int
parse_mld(const struct net_pkt *p, const uint8_t *ip6, const uint8_t *m, struct net_igmp *msg)
{
	struct net_ip src = net_pkt_src(p), dst = net_pkt_dst(p);
	uint16_t sum;

	if (p->payload_len < NET_ICMP_HDR_LEN || p->hop_limit != 1 || !has_router_alert(p, ip6))
		return -EBADMSG;
	sum = net_cksum_pseudo(&src, &dst, IPPROTO_ICMPV6, p->payload_len);
	if (net_cksum_add(sum, m, p->payload_len) != 0xffff || m[1] != 0)
		return -EBADMSG;
	msg->what = NET_IGMP_OTHER;
	if (m[0] != NET_ICMP6_MLD_QUERY && m[0] != NET_ICMP6_MLD_REPORT)
		return 0;
	if (p->payload_len < MLD_LEN || !net_ip_is_link_local(&src))
		return -EBADMSG; /* RFC 3810 5.1.14 */
	if (m[0] == NET_ICMP6_MLD_QUERY)
		return parse_mld_query(p, m, msg);
	msg->what = NET_IGMP_REPORT;
	msg->version = 2;
	msg->group = net_ip_from_bytes(m + 8);
	return msg->group.b[0] == 0xff ? 0 : -EBADMSG;
}

int
net_igmp_parse(const struct net_pkt *p, struct net_igmp *msg)
{
	uint8_t *start = rte_pktmbuf_mtod(p->m, uint8_t *);

	*msg = (struct net_igmp){ 0 };
	if (p->kind != NET_GROUP ||
			p->l4_off + (uint32_t)p->payload_len > rte_pktmbuf_data_len(p->m))
		return -EBADMSG;
	return p->v6 ? parse_mld(p, start + p->l3_off, start + p->l4_off, msg)
		     : parse_igmp(p, start + p->l4_off, msg);
}

/* ---- writing ---------- */

/* Headers before the message, which goes where is returned. */
static uint8_t *
emit_ipv4(const struct net_igmp_head *h, const struct net_ip *dst, uint16_t len, uint8_t *frame)
{
	struct rte_ether_addr dmac = net_ip_multicast_mac(dst);
	uint8_t *l3 = frame + net_l2_emit(frame, &dmac, &h->smac, h->vlan_tci,
		RTE_ETHER_TYPE_IPV4);
	struct rte_ipv4_hdr ip = {
		.version_ihl = 4 << 4 | (sizeof(ip) + IPV4_RA_LEN) / 4,
		.type_of_service = IGMP_TOS,
		.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(ip) + IPV4_RA_LEN + len)),
		.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = 1,
		.next_proto_id = IPPROTO_IGMP,
		.src_addr = net_ip_v4(&h->src),
		.dst_addr = net_ip_v4(dst),
	};

	memcpy(l3 + sizeof(ip), ipv4_ra, sizeof(ipv4_ra));
	ip.hdr_checksum = (uint16_t)~net_cksum_add(net_cksum_add(0, &ip, sizeof(ip)), ipv4_ra,
		sizeof(ipv4_ra));
	memcpy(l3, &ip, sizeof(ip));
	return l3 + sizeof(ip) + IPV4_RA_LEN;
}

static uint8_t *
emit_ipv6(const struct net_igmp_head *h, const struct net_ip *dst, uint16_t len, uint8_t *frame)
{
	struct rte_ether_addr dmac = net_ip_multicast_mac(dst);
	uint8_t *l3 = frame + net_l2_emit(frame, &dmac, &h->smac, h->vlan_tci,
		RTE_ETHER_TYPE_IPV6);
	struct rte_ipv6_hdr ip6 = {
		.vtc_flow = RTE_BE32(6u << 28),
		.payload_len = rte_cpu_to_be_16((uint16_t)(IPV6_RA_LEN + len)),
		.proto = IPPROTO_HOPOPTS,
		.hop_limits = 1,
	};

	memcpy(ip6.src_addr, h->src.b, sizeof(ip6.src_addr));
	memcpy(ip6.dst_addr, dst->b, sizeof(ip6.dst_addr));
	memcpy(l3, &ip6, sizeof(ip6));
	memcpy(l3 + sizeof(ip6), ipv6_ra, sizeof(ipv6_ra));
	return l3 + sizeof(ip6) + IPV6_RA_LEN;
}

static void
put_cksum(const struct net_igmp_head *h, const struct net_ip *dst, uint8_t *m, uint16_t len)
{
	uint16_t sum = 0;

	if (!net_ip_is_v4(dst))
		sum = net_cksum_pseudo(&h->src, dst, IPPROTO_ICMPV6, len);
	sum = (uint16_t)~net_cksum_add(sum, m, len);
	memcpy(m + 2, &sum, sizeof(sum));
}

uint16_t
net_igmp_emit_report(const struct net_igmp_head *h, const struct net_igmp_group *g, uint32_t n,
	uint8_t *frame)
{
	bool v4 = net_ip_is_v4(&g[0].group);
	uint16_t each = v4 ? 8 : 20;
	uint16_t len = (uint16_t)(IGMP_LEN + n * each);
	/* 224.0.0.22, ff02::16 */
	struct net_ip dst = v4 ? net_ip_from_v4(RTE_BE32(0xe0000016))
			       : (struct net_ip){ .b = { 0xff, 2, [15] = 0x16 } };
	uint8_t *m = v4 ? emit_ipv4(h, &dst, len, frame) : emit_ipv6(h, &dst, len, frame);
	uint8_t *at = m + IGMP_LEN;

	memset(m, 0, len);
	m[0] = v4 ? IGMP_V3_REPORT : NET_ICMP6_MLD2_REPORT;
	m[6] = (uint8_t)(n >> 8);
	m[7] = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++, at += each) {
		at[0] = g[i].record;
		memcpy(at + 4, g[i].group.b + (v4 ? 12 : 0), each - 4u);
	}
	put_cksum(h, &dst, m, len);
	return (uint16_t)(m - frame + len);
}

uint16_t
net_igmp_emit_old(const struct net_igmp_head *h, const struct net_ip *group, uint8_t version,
	bool leave, uint8_t *frame)
{
	bool v4 = net_ip_is_v4(group);
	uint16_t len = v4 ? IGMP_LEN : MLD_LEN;
	struct net_ip dst = *group;
	uint8_t *m;

	if (leave) /* to all routers: 224.0.0.2, ff02::2 */
		dst = v4 ? net_ip_from_v4(RTE_BE32(0xe0000002))
			 : (struct net_ip){ .b = { 0xff, 2, [15] = 2 } };
	m = v4 ? emit_ipv4(h, &dst, len, frame) : emit_ipv6(h, &dst, len, frame);
	memset(m, 0, len);
	if (v4) {
		m[0] = leave ? IGMP_V2_LEAVE : version == 1 ? IGMP_V1_REPORT : IGMP_V2_REPORT;
		memcpy(m + 4, group->b + 12, 4);
	} else {
		m[0] = leave ? NET_ICMP6_MLD_DONE : NET_ICMP6_MLD_REPORT;
		memcpy(m + 8, group->b, sizeof(group->b));
	}
	put_cksum(h, &dst, m, len);
	return (uint16_t)(m - frame + len);
}
