/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive classification. A chain of checks, each either names the reason to
 * drop or goes on to the next layer; nothing is read before its length is known.
 */
#include <assert.h>

#include "net_cksum.h"
#include "net_parse.h"
#include "net_priv.h"

const struct counter_desc net_kind_desc[] = {
	NET_DROP_LIST(COUNTERS_DESC_ITEM)
	[NET_ARP] = { "arp", "ARP messages" },
	[NET_ND] = { "nd", "ICMPv6 neighbour and router messages" },
	[NET_GROUP] = { "group", "IGMP and MLD messages" },
	[NET_ICMP_ECHO] = { "icmp_echo", "echo requests" },
	[NET_ICMP_ERROR] = { "icmp_error", "ICMP errors" },
	[NET_UDP] = { "udp", "UDP packets" },
	[NET_TCP] = { "tcp", "TCP segments" },
	[NET_OTHER] = { "other", "frames for another stack" },
};
static_assert(RTE_DIM(net_kind_desc) == NET_KIND_COUNT, "a name for each kind");

/* Why @len bytes at @off cannot be read in place. */
static enum net_kind
why_short(const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	return off + len > rte_pktmbuf_pkt_len(m) ? NET_DROP_SHORT : NET_DROP_SPLIT;
}

static inline bool
have(const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	return off + len <= rte_pktmbuf_data_len(m);
}

/* Drop the Ethernet padding of short frames: the ICRC is at the packet's end. */
static void
cut(struct rte_mbuf *m, uint32_t len)
{
	struct rte_mbuf *seg = m;
	uint32_t left = len;

	if (m->pkt_len == len)
		return;
	m->pkt_len = len;
	while (seg->next != NULL && seg->data_len < left) {
		left -= seg->data_len;
		seg = seg->next;
	}
	seg->data_len = (uint16_t)left;
	if (seg->next != NULL) {
		rte_pktmbuf_free(seg->next);
		seg->next = NULL;
		m->nb_segs = 1;
		for (seg = m; seg->next != NULL; seg = seg->next)
			m->nb_segs++;
	}
}

static void
set_tclass(struct net_pkt *p, uint8_t tclass)
{
	p->tclass = tclass;
	p->dscp = tclass >> 2;
	p->ecn = tclass & 3;
}

static enum net_kind
parse_udp(struct net_pkt *p)
{
	const struct rte_udp_hdr *udp;

	if (p->payload_len < sizeof(*udp))
		return NET_DROP_UDP_LEN;
	if (!have(p->m, p->l4_off, sizeof(*udp)))
		return NET_DROP_SPLIT;
	udp = rte_pktmbuf_mtod_offset(p->m, const struct rte_udp_hdr *, p->l4_off);
	if (rte_be_to_cpu_16(udp->dgram_len) != p->payload_len)
		return NET_DROP_UDP_LEN;
	p->sport = rte_be_to_cpu_16(udp->src_port);
	p->dport = rte_be_to_cpu_16(udp->dst_port);
	p->payload_off = (uint16_t)(p->l4_off + sizeof(*udp));
	p->payload_len = (uint16_t)(p->payload_len - sizeof(*udp));
	return NET_UDP;
}

/* TCP's own checks are lib/tcp's; ports are enough to find the connection. */
static enum net_kind
parse_tcp(struct net_pkt *p)
{
	const struct rte_tcp_hdr *tcp;

	if (p->payload_len < sizeof(*tcp))
		return NET_DROP_SHORT;
	if (!have(p->m, p->l4_off, sizeof(*tcp)))
		return NET_DROP_SPLIT;
	tcp = rte_pktmbuf_mtod_offset(p->m, const struct rte_tcp_hdr *, p->l4_off);
	p->sport = rte_be_to_cpu_16(tcp->src_port);
	p->dport = rte_be_to_cpu_16(tcp->dst_port);
	return NET_TCP;
}

static enum net_kind
icmp4_kind(uint8_t type)
{
	switch (type) {
	case RTE_IP_ICMP_ECHO_REQUEST:
		return NET_ICMP_ECHO;
	case NET_ICMP4_UNREACHABLE:
	case NET_ICMP4_TIME_EXCEEDED:
	case NET_ICMP4_PARAMETER:
		return NET_ICMP_ERROR;
	default:
		return NET_OTHER;
	}
}

static enum net_kind
icmp6_kind(uint8_t type)
{
	if (type >= NET_ICMP6_UNREACHABLE && type <= NET_ICMP6_PARAMETER)
		return NET_ICMP_ERROR;
	if (type == NET_ICMP6_ECHO_REQUEST)
		return NET_ICMP_ECHO;
	if (type >= NET_ICMP6_ND_FIRST && type <= NET_ICMP6_ND_LAST)
		return NET_ND;
	return NET_OTHER;
}

static enum net_kind
parse_icmp(struct net_pkt *p)
{
	uint8_t type;

	if (p->payload_len < NET_ICMP_HDR_LEN)
		return NET_DROP_SHORT;
	if (!have(p->m, p->l4_off, NET_ICMP_HDR_LEN))
		return NET_DROP_SPLIT;
	type = *rte_pktmbuf_mtod_offset(p->m, const uint8_t *, p->l4_off);
	return p->v6 ? icmp6_kind(type) : icmp4_kind(type);
}

/* Messages of MLD are behind a router alert (RFC 3810 5); nothing else of ours has options. */
static enum net_kind
parse_hop_by_hop(struct net_pkt *p)
{
	const uint8_t *h, *icmp;
	uint16_t len;

	if (p->payload_len < 8 || !have(p->m, p->l4_off, 8))
		return NET_OTHER;
	h = rte_pktmbuf_mtod_offset(p->m, const uint8_t *, p->l4_off);
	len = (uint16_t)((h[1] + 1) * 8);
	if (h[0] != IPPROTO_ICMPV6 || p->payload_len < len + NET_ICMP_HDR_LEN ||
			!have(p->m, p->l4_off, len + (uint32_t)NET_ICMP_HDR_LEN))
		return NET_OTHER;
	icmp = h + len;
	if (icmp[0] != NET_ICMP6_MLD2_REPORT &&
			(icmp[0] < NET_ICMP6_MLD_QUERY || icmp[0] > NET_ICMP6_MLD_DONE))
		return NET_OTHER;
	p->proto = IPPROTO_ICMPV6;
	p->l4_off = p->payload_off = (uint16_t)(p->l4_off + len);
	p->payload_len = (uint16_t)(p->payload_len - len);
	return NET_GROUP;
}

static enum net_kind
parse_l4(struct net_pkt *p)
{
	switch (p->proto) {
	case IPPROTO_UDP:
		return parse_udp(p);
	case IPPROTO_TCP:
		return parse_tcp(p);
	case IPPROTO_ICMP:
		return p->v6 ? NET_OTHER : parse_icmp(p);
	case IPPROTO_ICMPV6:
		return p->v6 ? parse_icmp(p) : NET_OTHER;
	case IPPROTO_IGMP:
		return p->v6 ? NET_OTHER : NET_GROUP;
	case IPPROTO_HOPOPTS: /* which is 0 */
		return p->v6 ? parse_hop_by_hop(p) : NET_OTHER;
	case IPPROTO_FRAGMENT:
		return p->v6 ? NET_DROP_IP_FRAGMENT : NET_OTHER;
	default: /* extension headers, too: we neither send nor take any */
		return NET_OTHER;
	}
}

/* Groups, broadcast and loopback are no sources (RFC 1122 3.2.1.3). */
static bool
ipv4_bad_source(rte_be32_t src)
{
	uint32_t a = rte_be_to_cpu_32(src);

	return a >= 0xe0000000 || a >> 24 == 127;
}

/*
 * Nor are, over IPv6, ::1 and ::ffff:a.b.c.d (RFC 4291 2.5.3, RFC 4942 2.2):
 * the latter would pass for an IPv4 peer in our tables.
 */
static bool
ipv6_bad_address(const struct rte_ipv6_hdr *ip6)
{
	struct net_ip src = net_ip_from_bytes(ip6->src_addr);
	struct net_ip dst = net_ip_from_bytes(ip6->dst_addr);

	return src.b[0] == 0xff || net_ip_is_v4(&src) || net_ip_is_v4(&dst) ||
		(net_ip_word(&src, 0) == 0 && net_ip_word(&src, 1) == RTE_BE64(1));
}

static enum net_kind
parse_ipv4(struct net_pkt *p)
{
	const struct rte_ipv4_hdr *ip;
	struct rte_mbuf *m = p->m;
	uint16_t hlen, total;

	if (!have(m, p->l3_off, sizeof(*ip)))
		return why_short(m, p->l3_off, sizeof(*ip));
	ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, p->l3_off);
	if (ip->version_ihl >> 4 != 4)
		return NET_DROP_IP_VERSION;
	hlen = (uint16_t)((ip->version_ihl & 0xf) * 4);
	if (hlen < sizeof(*ip))
		return NET_DROP_IP_HDR_LEN;
	total = rte_be_to_cpu_16(ip->total_length);
	if (total < hlen || p->l3_off + (uint32_t)total > rte_pktmbuf_pkt_len(m))
		return NET_DROP_IP_LEN;
	if (!have(m, p->l3_off, hlen))
		return NET_DROP_SPLIT;
	if ((m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) != RTE_MBUF_F_RX_IP_CKSUM_GOOD &&
			(hlen == sizeof(*ip) ? !net_cksum_ipv4_ok(ip) :
			net_cksum_add(0, ip, hlen) != 0xffff))
		return NET_DROP_IP_CKSUM;
	if (ipv4_bad_source(ip->src_addr))
		return NET_DROP_IP_SOURCE;
	cut(m, p->l3_off + (uint32_t)total);
	p->proto = ip->next_proto_id;
	p->hop_limit = ip->time_to_live;
	set_tclass(p, ip->type_of_service);
	p->l4_off = p->payload_off = (uint16_t)(p->l3_off + hlen);
	p->payload_len = (uint16_t)(total - hlen);
	if ((ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)) != 0)
		return NET_DROP_IP_FRAGMENT;
	if (hlen != sizeof(*ip) && p->proto != IPPROTO_IGMP) /* which has the router alert */
		return p->proto == IPPROTO_UDP || p->proto == IPPROTO_TCP ?
			NET_DROP_IP_OPTIONS : NET_OTHER;
	return parse_l4(p);
}

static enum net_kind
parse_ipv6(struct net_pkt *p)
{
	const struct rte_ipv6_hdr *ip6;
	struct rte_mbuf *m = p->m;
	uint32_t vtc, end;

	if (!have(m, p->l3_off, sizeof(*ip6)))
		return why_short(m, p->l3_off, sizeof(*ip6));
	ip6 = rte_pktmbuf_mtod_offset(m, const struct rte_ipv6_hdr *, p->l3_off);
	vtc = rte_be_to_cpu_32(ip6->vtc_flow);
	if (vtc >> 28 != 6)
		return NET_DROP_IP_VERSION;
	p->v6 = 1;
	p->l4_off = p->payload_off = (uint16_t)(p->l3_off + sizeof(*ip6));
	p->payload_len = rte_be_to_cpu_16(ip6->payload_len);
	end = p->l4_off + (uint32_t)p->payload_len;
	if (end > rte_pktmbuf_pkt_len(m))
		return NET_DROP_IP_LEN;
	if (ipv6_bad_address(ip6))
		return NET_DROP_IP_SOURCE;
	cut(m, end);
	p->proto = ip6->proto;
	p->hop_limit = ip6->hop_limits;
	set_tclass(p, (uint8_t)(vtc >> 20));
	return parse_l4(p);
}

static enum net_kind
parse_l3(struct net_pkt *p, rte_be16_t type)
{
	p->l3_off = p->l4_off = p->payload_off = p->l2_len;
	p->payload_len = (uint16_t)RTE_MIN(rte_pktmbuf_pkt_len(p->m) - p->l2_len,
			(uint32_t)UINT16_MAX);
	switch (type) {
	case RTE_BE16(RTE_ETHER_TYPE_IPV4):
		return parse_ipv4(p);
	case RTE_BE16(RTE_ETHER_TYPE_IPV6):
		return parse_ipv6(p);
	case RTE_BE16(RTE_ETHER_TYPE_ARP):
		return NET_ARP;
	default: /* LLDP, 802.3 lengths, a second tag, ... */
		return NET_OTHER;
	}
}

static enum net_kind
parse_l2(struct net_pkt *p)
{
	const struct rte_ether_hdr *eth;
	const struct rte_vlan_hdr *tag;
	struct rte_mbuf *m = p->m;
	rte_be16_t type;

	if (!have(m, 0, sizeof(*eth)))
		return why_short(m, 0, sizeof(*eth));
	eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	if (rte_is_multicast_ether_addr(&eth->src_addr))
		return NET_DROP_L2_SOURCE;
	type = eth->ether_type;
	p->l2_len = sizeof(*eth);
	if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) {
		if ((m->vlan_tci & 0xfff) == 0xfff)
			return NET_DROP_VLAN;
		p->vlan_tci = m->vlan_tci;
	} else if (type == RTE_BE16(RTE_ETHER_TYPE_VLAN)) {
		if (!have(m, sizeof(*eth), sizeof(*tag)))
			return why_short(m, sizeof(*eth), sizeof(*tag));
		tag = (const struct rte_vlan_hdr *)(eth + 1);
		/* Reserved (802.1Q table 9-2); with PCP 7 it would read as no tag. */
		if ((tag->vlan_tci & RTE_BE16(0xfff)) == RTE_BE16(0xfff))
			return NET_DROP_VLAN;
		p->vlan_tci = rte_be_to_cpu_16(tag->vlan_tci);
		type = tag->eth_proto;
		p->l2_len += sizeof(*tag);
	}
	return parse_l3(p, type);
}

enum net_kind
net_parse(struct rte_mbuf *m, struct net_pkt *out)
{
	enum net_kind kind;

	*out = (struct net_pkt){ .m = m, .vlan_tci = NET_VLAN_NONE, .port = m->port };
	kind = parse_l2(out);
	out->kind = (uint8_t)kind;
	return kind;
}
