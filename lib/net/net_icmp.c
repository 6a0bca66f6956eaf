/* SPDX-License-Identifier: BSD-3-Clause */
/* Echo replies in place, and what ICMP errors say of our packets. */
#include <errno.h>

#include "net_cksum.h"
#include "net_icmp.h"
#include "net_parse.h"
#include "net_priv.h"

#define IPV6_MTU_MIN 1280 /* RFC 8200 5 */
#define IPV4_MTU_MIN 68	  /* RFC 791 3.2 */

/* Unicast to unicast alone: no smurf amplifier, no answer to nobody (RFC 1122 3.2.2.6). */
static bool
may_answer(const struct net_pkt *p)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(p->m, const struct rte_ether_hdr *);
	struct net_ip src = net_pkt_src(p), dst = net_pkt_dst(p);

	return !rte_is_multicast_ether_addr(&eth->dst_addr) && !net_ip_is_multicast(&dst) &&
		(p->v6 ? !net_ip_is_zero(&src) : net_ip_v4(&src) != 0);
}

static void
turn_ipv4(uint8_t *l3)
{
	struct rte_ipv4_hdr ip;
	rte_be32_t src;

	memcpy(&ip, l3, sizeof(ip));
	src = ip.src_addr;
	ip.src_addr = ip.dst_addr;
	ip.dst_addr = src;
	ip.time_to_live = NET_HOP_LIMIT;
	ip.hdr_checksum = 0;
	ip.hdr_checksum = (uint16_t)~net_cksum_add(0, &ip, sizeof(ip));
	memcpy(l3, &ip, sizeof(ip));
}

/* Swapped addresses leave the pseudo-header's sum as it is. */
static void
turn_ipv6(uint8_t *l3)
{
	struct rte_ipv6_hdr ip6;
	struct net_ip src;

	memcpy(&ip6, l3, sizeof(ip6));
	src = net_ip_from_bytes(ip6.src_addr);
	memcpy(ip6.src_addr, ip6.dst_addr, sizeof(ip6.src_addr));
	memcpy(ip6.dst_addr, src.b, sizeof(ip6.dst_addr));
	ip6.hop_limits = NET_HOP_LIMIT;
	memcpy(l3, &ip6, sizeof(ip6));
}

static void
turn_icmp(uint8_t *icmp, bool v6)
{
	uint16_t was, is, cksum;

	memcpy(&was, icmp, sizeof(was));
	icmp[0] = v6 ? NET_ICMP6_ECHO_REPLY : RTE_IP_ICMP_ECHO_REPLY;
	memcpy(&is, icmp, sizeof(is));
	memcpy(&cksum, icmp + 2, sizeof(cksum));
	cksum = net_cksum_update(cksum, was, is);
	memcpy(icmp + 2, &cksum, sizeof(cksum));
}

/* The offload that stripped the tag may lack its twin on transmit. */
static int
put_tag_back(struct net_pkt *p)
{
	uint8_t *start;

	if (p->vlan_tci == NET_VLAN_NONE || p->l2_len != RTE_ETHER_HDR_LEN)
		return 0;
	start = (uint8_t *)rte_pktmbuf_prepend(p->m, sizeof(struct rte_vlan_hdr));
	if (start == NULL)
		return -ENOBUFS;
	memmove(start, start + 4, 2 * RTE_ETHER_ADDR_LEN);
	start[12] = 0x81;
	start[13] = 0x00;
	start[14] = (uint8_t)(p->vlan_tci >> 8);
	start[15] = (uint8_t)p->vlan_tci;
	p->l2_len += 4;
	p->l3_off += 4;
	p->l4_off += 4;
	p->payload_off += 4;
	return 0;
}

int
net_icmp_echo_reply(struct net_pkt *p, const struct rte_ether_addr *mac)
{
	struct rte_ether_hdr *eth;
	int rc;

	if (p->kind != NET_ICMP_ECHO || !may_answer(p))
		return -EINVAL;
	if (!net_l4_cksum_ok(p))
		return -EBADMSG;
	rc = put_tag_back(p);
	if (rc != 0)
		return rc;
	p->m->ol_flags = 0;
	eth = rte_pktmbuf_mtod(p->m, struct rte_ether_hdr *);
	eth->dst_addr = eth->src_addr;
	eth->src_addr = *mac;
	if (p->v6)
		turn_ipv6((uint8_t *)eth + p->l3_off);
	else
		turn_ipv4((uint8_t *)eth + p->l3_off);
	turn_icmp((uint8_t *)eth + p->l4_off, p->v6);
	return 0;
}

/* The offending packet's ports and second word, if it has any that we know. */
static void
quoted_l4(const uint8_t *l4, struct net_icmp_error *err)
{
	rte_be16_t ports[2];
	rte_be32_t word;

	if (err->proto != IPPROTO_UDP && err->proto != IPPROTO_TCP)
		return;
	memcpy(ports, l4, sizeof(ports));
	memcpy(&word, l4 + 4, sizeof(word));
	err->sport = rte_be_to_cpu_16(ports[0]);
	err->dport = rte_be_to_cpu_16(ports[1]);
	err->l4_word = rte_be_to_cpu_32(word);
}

/* RFC 1191 7: the next plateau below, for routers that leave the MTU 0. */
static uint32_t
plateau_below(uint32_t len)
{
	static const uint16_t plateau[] = { 32000, 17914, 8166, 4352, 2002, 1492, 1006, 508,
		296, 68 };
	unsigned int i;

	for (i = 0; i < RTE_DIM(plateau) - 1 && plateau[i] >= len; i++)
		;
	return plateau[i];
}

static int
parse_error4(const uint8_t *icmp, size_t len, struct net_icmp_error *err)
{
	const uint8_t *q = icmp + NET_ICMP_HDR_LEN;
	struct rte_ipv4_hdr ip;
	uint16_t hlen;

	if (len < NET_ICMP_HDR_LEN + sizeof(ip) + 8)
		return -EBADMSG;
	memcpy(&ip, q, sizeof(ip));
	hlen = (uint16_t)((ip.version_ihl & 0xf) * 4);
	if (ip.version_ihl >> 4 != 4 || hlen != sizeof(ip))
		return -EBADMSG; /* our packets have no options */
	err->proto = ip.next_proto_id;
	err->src = net_ip_from_v4(ip.src_addr);
	err->dst = net_ip_from_v4(ip.dst_addr);
	if ((ip.fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK)) == 0)
		quoted_l4(q + hlen, err);
	err->what = NET_ICMP_OTHER_ERROR;
	if (err->type != NET_ICMP4_UNREACHABLE)
		return 0;
	err->what = NET_ICMP_UNREACHABLE;
	if (err->code != NET_ICMP4_UNREACHABLE_FRAG)
		return 0;
	err->what = NET_ICMP_TOO_BIG;
	err->mtu = (uint32_t)icmp[6] << 8 | icmp[7];
	if (err->mtu == 0)
		err->mtu = plateau_below(rte_be_to_cpu_16(ip.total_length));
	return err->mtu < IPV4_MTU_MIN ? -EBADMSG : 0;
}

static int
parse_error6(const uint8_t *icmp, size_t len, struct net_icmp_error *err)
{
	const uint8_t *q = icmp + NET_ICMP_HDR_LEN;
	struct rte_ipv6_hdr ip6;
	rte_be32_t mtu;

	if (len < NET_ICMP_HDR_LEN + sizeof(ip6) + 8)
		return -EBADMSG;
	memcpy(&ip6, q, sizeof(ip6));
	if (rte_be_to_cpu_32(ip6.vtc_flow) >> 28 != 6)
		return -EBADMSG;
	err->proto = ip6.proto;
	err->src = net_ip_from_bytes(ip6.src_addr);
	err->dst = net_ip_from_bytes(ip6.dst_addr);
	if (net_ip_is_v4(&err->src) || net_ip_is_v4(&err->dst))
		return -EBADMSG;
	quoted_l4(q + sizeof(ip6), err);
	err->what = NET_ICMP_OTHER_ERROR;
	if (err->type == NET_ICMP6_UNREACHABLE)
		err->what = NET_ICMP_UNREACHABLE;
	if (err->type != NET_ICMP6_TOO_BIG)
		return 0;
	err->what = NET_ICMP_TOO_BIG;
	memcpy(&mtu, icmp + 4, sizeof(mtu));
	err->mtu = rte_be_to_cpu_32(mtu);
	return err->mtu < IPV6_MTU_MIN ? -EBADMSG : 0; /* RFC 8201 4 */
}

int
net_icmp_parse_error(const struct net_pkt *p, struct net_icmp_error *err)
{
	uint8_t copy[NET_ICMP_HDR_LEN + sizeof(struct rte_ipv6_hdr) + 8];
	size_t len = RTE_MIN((size_t)p->payload_len, sizeof(copy));
	const uint8_t *icmp;

	if (p->kind != NET_ICMP_ERROR || !net_l4_cksum_ok(p))
		return -EBADMSG;
	icmp = rte_pktmbuf_read(p->m, p->l4_off, (uint32_t)len, copy);
	if (icmp == NULL)
		return -EBADMSG;
	*err = (struct net_icmp_error){ .type = icmp[0], .code = icmp[1] };
	return p->v6 ? parse_error6(icmp, len, err) : parse_error4(icmp, len, err);
}
