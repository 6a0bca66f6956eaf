/* SPDX-License-Identifier: BSD-3-Clause */
/* Classification: scapy's frames, the captures, every truncation, garbage (C-5). */
#include "capture.h"
#include "net_test.h"

static enum net_kind
kind_of(const uint8_t *data, size_t len)
{
	struct rte_mbuf m;
	struct net_pkt p;
	enum net_kind kind = frame_parse(&m, &p, data, len);

	ck_assert_int_eq(p.kind, kind);
	frame_free(&m);
	return kind;
}

#define KIND(name) kind_of(v_##name, sizeof(v_##name))

START_TEST(parse__kinds)
{
	ck_assert_int_eq(KIND(udp4), NET_UDP);
	ck_assert_int_eq(KIND(udp6), NET_UDP);
	ck_assert_int_eq(KIND(tcp4), NET_TCP);
	ck_assert_int_eq(KIND(tcp6), NET_TCP);
	ck_assert_int_eq(KIND(arp_req_us), NET_ARP);
	ck_assert_int_eq(KIND(arp_req_us_tagged), NET_ARP);
	ck_assert_int_eq(KIND(ns_us), NET_ND);
	ck_assert_int_eq(KIND(na_peer_is), NET_ND);
	ck_assert_int_eq(KIND(echo4), NET_ICMP_ECHO);
	ck_assert_int_eq(KIND(echo6), NET_ICMP_ECHO);
	ck_assert_int_eq(KIND(echo4_reply), NET_OTHER);
	ck_assert_int_eq(KIND(echo6_reply), NET_OTHER);
	ck_assert_int_eq(KIND(frag_needed), NET_ICMP_ERROR);
	ck_assert_int_eq(KIND(too_big), NET_ICMP_ERROR);
	ck_assert_int_eq(KIND(qinq), NET_OTHER);
	ck_assert_int_eq(KIND(igmp), NET_GROUP);
	ck_assert_int_eq(KIND(hopopt6), NET_OTHER);
}
END_TEST

START_TEST(parse__drops)
{
	ck_assert_int_eq(KIND(vlan_4095), NET_DROP_VLAN);
	ck_assert_int_eq(KIND(mcast_smac), NET_DROP_L2_SOURCE);
	ck_assert_int_eq(KIND(options4), NET_DROP_IP_OPTIONS);
	ck_assert_int_eq(KIND(frag4_first), NET_DROP_IP_FRAGMENT);
	ck_assert_int_eq(KIND(frag4_last), NET_DROP_IP_FRAGMENT);
	ck_assert_int_eq(KIND(frag6), NET_DROP_IP_FRAGMENT);
	ck_assert_int_eq(KIND(version4), NET_DROP_IP_VERSION);
	ck_assert_int_eq(KIND(version6), NET_DROP_IP_VERSION);
	ck_assert_int_eq(KIND(ihl4), NET_DROP_IP_HDR_LEN);
	ck_assert_int_eq(KIND(ip_cksum), NET_DROP_IP_CKSUM);
	ck_assert_int_eq(KIND(ip_len_long), NET_DROP_IP_LEN);
	ck_assert_int_eq(KIND(ip_len_short), NET_DROP_IP_LEN);
	ck_assert_int_eq(KIND(ip6_len_long), NET_DROP_IP_LEN);
	ck_assert_int_eq(KIND(udp_len_short), NET_DROP_UDP_LEN);
	ck_assert_int_eq(KIND(udp_len_long), NET_DROP_UDP_LEN);
	ck_assert_int_eq(KIND(udp6_len_short), NET_DROP_UDP_LEN);
	ck_assert_int_eq(KIND(src4_mcast), NET_DROP_IP_SOURCE);
	ck_assert_int_eq(KIND(src4_loop), NET_DROP_IP_SOURCE);
	ck_assert_int_eq(KIND(src4_bcast), NET_DROP_IP_SOURCE);
	ck_assert_int_eq(KIND(src6_mcast), NET_DROP_IP_SOURCE);
	ck_assert_int_eq(KIND(src6_loop), NET_DROP_IP_SOURCE);
	ck_assert_int_eq(KIND(src6_mapped), NET_DROP_IP_SOURCE);
	ck_assert_int_eq(KIND(dst6_mapped), NET_DROP_IP_SOURCE);
}
END_TEST

START_TEST(parse__fields4)
{
	struct net_ip src, dst, peer = ip("192.0.2.3"), us = ip("192.0.2.2");
	struct rte_mbuf m;
	struct net_pkt p;

	ck_assert_int_eq(frame_parse(&m, &p, v_udp4_tagged, sizeof(v_udp4_tagged)), NET_UDP);
	ck_assert_uint_eq(p.vlan_tci, 0x6005);
	ck_assert_uint_eq(p.l2_len, 18);
	ck_assert_uint_eq(p.l3_off, 18);
	ck_assert_uint_eq(p.l4_off, 38);
	ck_assert_uint_eq(p.payload_off, 46);
	ck_assert_uint_eq(p.payload_len, 16);
	ck_assert_uint_eq(p.sport, 0xc123);
	ck_assert_uint_eq(p.dport, 4791);
	ck_assert_uint_eq(p.tclass, 0x6b);
	ck_assert_uint_eq(p.dscp, 0x1a);
	ck_assert_uint_eq(p.ecn, 3);
	ck_assert_uint_eq(p.hop_limit, 64);
	ck_assert(!p.v6);
	src = net_pkt_src(&p);
	dst = net_pkt_dst(&p);
	ck_assert(net_ip_eq(&src, &peer) && net_ip_eq(&dst, &us));
	frame_free(&m);
}
END_TEST

START_TEST(parse__fields6)
{
	struct net_ip src, dst, peer = ip("2001:db8::3"), us = ip("2001:db8::2");
	struct rte_mbuf m;
	struct net_pkt p;

	ck_assert_int_eq(frame_parse(&m, &p, v_udp6_tagged, sizeof(v_udp6_tagged)), NET_UDP);
	ck_assert_uint_eq(p.vlan_tci, 0xeffe);
	ck_assert_uint_eq(p.l4_off, 58);
	ck_assert_uint_eq(p.payload_off, 66);
	ck_assert_uint_eq(p.payload_len, 16);
	ck_assert_uint_eq(p.tclass, 0x6b);
	ck_assert_uint_eq(p.hop_limit, 3);
	ck_assert(p.v6);
	src = net_pkt_src(&p);
	dst = net_pkt_dst(&p);
	ck_assert(net_ip_eq(&src, &peer) && net_ip_eq(&dst, &us));
	frame_free(&m);
}
END_TEST

/* B187: a priority tag is no VLAN; a stripped tag counts like one in the frame. */
START_TEST(parse__tags)
{
	struct rte_mbuf m;
	struct net_pkt p;

	ck_assert_int_eq(frame_parse(&m, &p, v_udp4_prio, sizeof(v_udp4_prio)), NET_UDP);
	ck_assert_uint_eq(p.vlan_tci, 0xc000);
	ck_assert_uint_eq(net_vlan_id(p.vlan_tci), 0);
	frame_free(&m);
	ck_assert_int_eq(frame_parse(&m, &p, v_udp4, sizeof(v_udp4)), NET_UDP);
	ck_assert_uint_eq(p.vlan_tci, NET_VLAN_NONE);
	m.vlan_tci = 0x6005;
	m.ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	ck_assert_int_eq(net_parse(&m, &p), NET_UDP);
	ck_assert_uint_eq(p.vlan_tci, 0x6005);
	ck_assert_uint_eq(p.l2_len, 14);
	m.vlan_tci = 0xffff;
	ck_assert_int_eq(net_parse(&m, &p), NET_DROP_VLAN);
	frame_free(&m);
}
END_TEST

START_TEST(parse__padding_is_cut)
{
	struct rte_mbuf m;
	struct net_pkt p;

	ck_assert_int_eq(frame_parse(&m, &p, v_udp4_padded, sizeof(v_udp4_padded)), NET_UDP);
	ck_assert_uint_eq(p.payload_len, 2);
	ck_assert_uint_eq(m.pkt_len, 44);
	ck_assert_uint_eq(m.data_len, 44);
	frame_free(&m);
	ck_assert_int_eq(frame_parse(&m, &p, v_udp6_padded, sizeof(v_udp6_padded)), NET_UDP);
	ck_assert_uint_eq(p.payload_len, 2);
	ck_assert_uint_eq(m.pkt_len, 64);
	frame_free(&m);
}
END_TEST

/* Padding that begins in any segment; what lies beyond goes back to the pool. */
START_TEST(parse__padding_of_chain)
{
	struct rte_mempool *mp = test_pool();
	struct rte_mbuf *a, *b, *c;
	struct net_pkt p;

	for (uint16_t at = 42; at < sizeof(v_udp4_padded); at++) {
		a = pool_frame(mp, v_udp4_padded, at);
		b = pool_frame(mp, v_udp4_padded + at, (uint16_t)(sizeof(v_udp4_padded) - at));
		c = pool_frame(mp, "padding", 7);
		a->next = b;
		b->next = c;
		a->nb_segs = 3;
		a->pkt_len = sizeof(v_udp4_padded) + 7;
		ck_assert_int_eq(net_parse(a, &p), NET_UDP);
		ck_assert_uint_eq(a->pkt_len, 44);
		ck_assert_uint_eq(a->nb_segs, at < 44 ? 2 : 1);
		ck_assert_uint_eq(a->data_len + (a->next ? a->next->data_len : 0), 44);
		rte_pktmbuf_free(a);
		ck_assert_uint_eq(rte_mempool_in_use_count(mp), 0);
	}
}
END_TEST

START_TEST(parse__ip_cksum_offload)
{
	struct rte_mbuf m;
	struct net_pkt p;

	ck_assert_int_eq(frame_parse(&m, &p, v_ip_cksum, sizeof(v_ip_cksum)), NET_DROP_IP_CKSUM);
	m.ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	ck_assert_int_eq(net_parse(&m, &p), NET_UDP);
	m.ol_flags = RTE_MBUF_F_RX_IP_CKSUM_NONE;
	ck_assert_int_eq(net_parse(&m, &p), NET_DROP_IP_CKSUM);
	frame_free(&m);
	/* The PMD's BAD is not believed either. */
	frame_make(&m, v_udp4, sizeof(v_udp4), 0);
	m.ol_flags = RTE_MBUF_F_RX_IP_CKSUM_BAD;
	ck_assert_int_eq(net_parse(&m, &p), NET_UDP);
	frame_free(&m);
}
END_TEST

static void
check_truncations(const uint8_t *data, size_t len)
{
	struct rte_mbuf m;
	struct net_pkt p;
	bool is_ip;

	for (size_t n = 0; n < len; n++) {
		enum net_kind kind = frame_parse(&m, &p, data, n);

		/* An IP packet says how long it is; the others are their readers' business. */
		is_ip = p.proto != 0 || p.v6;
		if (n < 14)
			ck_assert_int_eq(kind, NET_DROP_SHORT);
		ck_assert(net_kind_is_drop(kind) || !is_ip || p.payload_off + p.payload_len <= n);
		frame_free(&m);
	}
}

START_TEST(parse__truncated)
{
#define X(name) check_truncations(v_##name, sizeof(v_##name));
	NET_VECTORS(X)
#undef X
	for (size_t n = 0; n < sizeof(v_udp4); n++)
		ck_assert(net_kind_is_drop(kind_of(v_udp4, n)));
	for (size_t n = 0; n < sizeof(v_udp6_tagged); n++)
		ck_assert(net_kind_is_drop(kind_of(v_udp6_tagged, n)));
}
END_TEST

/* Headers over two segments are refused by name, not misread. */
START_TEST(parse__split)
{
	const size_t len = sizeof(v_udp6_tagged);
	struct rte_mbuf a, b;
	struct net_pkt p;

	for (size_t at = 0; at <= len; at++) {
		frame_make(&a, v_udp6_tagged, at, 0);
		frame_make(&b, v_udp6_tagged + at, len - at, 0);
		a.next = &b;
		a.nb_segs = 2;
		a.pkt_len = (uint32_t)len;
		ck_assert_int_eq(net_parse(&a, &p), at < 66 ? NET_DROP_SPLIT : NET_UDP);
		frame_free(&a);
		frame_free(&b);
	}
}
END_TEST

/* Damaged frames of every kind, by a fixed generator. */
START_TEST(parse__garbage)
{
	static const struct { const uint8_t *data; size_t len; } all[] = {
#define X(name) { v_##name, sizeof(v_##name) },
		NET_VECTORS(X)
#undef X
	};
	uint64_t seed = 1;
	struct net_icmp_error err;
	struct rte_mbuf m;
	struct net_pkt p;

	for (unsigned int i = 0; i < 100000; i++) {
		size_t which = i % RTE_DIM(all), n, at;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		n = seed % 8 == 0 ? (seed >> 8) % (all[which].len + 1) : all[which].len;
		frame_make(&m, all[which].data, n, 4);
		for (unsigned int k = 0; k < 4 && n != 0; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			at = (seed >> 16) % n;
			*rte_pktmbuf_mtod_offset(&m, uint8_t *, at) = (uint8_t)(seed >> 56);
		}
		m.ol_flags = seed & 0x8000 ? RTE_MBUF_F_RX_IP_CKSUM_GOOD |
			RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0;
		if (!net_kind_is_drop(net_parse(&m, &p)) && p.proto != 0) {
			ck_assert_uint_le(p.payload_off + p.payload_len, m.pkt_len);
			net_l4_cksum_ok(&p);
			net_icmp_parse_error(&p, &err);
			net_icmp_echo_reply(&p, &test_us);
		}
		frame_free(&m);
	}
}
END_TEST

static void
check_capture(const char *name, void *arg)
{
	struct capture *c = capture_open(name);
	bool roce = strncmp(name, "roce", 4) == 0, v6;
	struct rte_mbuf m;
	struct net_pkt p;
	uint8_t *at;
	size_t len;

	while (capture_next(c)) {
		at = capture_ip(c, &len, &v6);
		ck_assert_ptr_nonnull(at);
		ck_assert_int_eq(frame_parse(&m, &p, c->data, c->len), roce ? NET_UDP : NET_TCP);
		ck_assert_uint_eq(p.v6, v6);
		ck_assert_uint_eq(p.payload_off + p.payload_len, at - c->data + (long)len);
		ck_assert_uint_eq(m.pkt_len, p.payload_off + p.payload_len);
		ck_assert(!roce || p.dport == 4791);
		ck_assert(net_l4_cksum_ok(&p));
		frame_free(&m);
		++*(unsigned int *)arg;
	}
	capture_close(c);
}

START_TEST(parse__captures)
{
	unsigned int frames = 0;

	ck_assert_uint_ge(capture_each("roce-", check_capture, &frames), 31);
	ck_assert_uint_ge(frames, 1097);
	ck_assert_uint_ge(capture_each("iwarp-", check_capture, &frames), 20);
}
END_TEST

START_TEST(parse__names)
{
	for (unsigned int i = 0; i < NET_KIND_COUNT; i++) {
		ck_assert_ptr_nonnull(net_kind_desc[i].name);
		ck_assert_ptr_nonnull(net_kind_desc[i].help);
	}
}
END_TEST

UNIT_MAIN("net_parse", parse__kinds, parse__drops, parse__fields4, parse__fields6, parse__tags,
	parse__padding_is_cut, parse__padding_of_chain, parse__ip_cksum_offload, parse__truncated,
	parse__split, parse__garbage, parse__captures, parse__names)
