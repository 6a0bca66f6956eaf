/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums against the examples of RFC 1071 and RFC 1624, and scapy's packets. */
#include "net_test.h"

/* RFC 1071 section 3: the sum of these bytes is ddf2. */
START_TEST(cksum_add__rfc1071)
{
	const uint8_t data[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };
	uint16_t sum = net_cksum_add(0, data, sizeof(data));

	ck_assert_uint_eq(sum, RTE_BE16(0xddf2));
	/* In pieces, and with an odd end. */
	sum = net_cksum_add(net_cksum_add(0, data, 4), data + 4, 4);
	ck_assert_uint_eq(sum, RTE_BE16(0xddf2));
	ck_assert_uint_eq(net_cksum_add(0, data, 3), RTE_BE16(0xf201));
}
END_TEST

/* All carries at once. */
START_TEST(cksum_add__ones)
{
	uint8_t data[1500];

	memset(data, 0xff, sizeof(data));
	for (size_t len = 2; len <= sizeof(data); len += 2)
		ck_assert_uint_eq(net_cksum_add(0xffff, data, len), 0xffff);
}
END_TEST

/* RFC 1624 section 4: dd2f, 5555 becomes 3285, 0000 is right and ffff is not. */
START_TEST(cksum_update__rfc1624)
{
	ck_assert_uint_eq(net_cksum_update(0xdd2f, 0x5555, 0x3285), 0x0000);
}
END_TEST

static bool
l4_ok(const uint8_t *data, size_t len, uint64_t ol_flags)
{
	struct rte_mbuf m;
	struct net_pkt p;
	bool ok;

	frame_make(&m, data, len, 0);
	m.ol_flags = ol_flags;
	ck_assert(!net_kind_is_drop(net_parse(&m, &p)));
	ok = net_l4_cksum_ok(&p);
	frame_free(&m);
	return ok;
}

/* Right as it is, wrong with any bit past the IP header turned over. */
static void
check_l4(const uint8_t *data, size_t len, size_t from)
{
	uint8_t copy[256];

	ck_assert(l4_ok(data, len, 0));
	for (size_t i = from; i < len; i++) {
		memcpy(copy, data, len);
		copy[i] ^= 0x10;
		ck_assert(!l4_ok(copy, len, 0));
	}
}

START_TEST(l4_cksum__scapy)
{
	check_l4(v_udp4_cksum, sizeof(v_udp4_cksum), 42);
	check_l4(v_udp6_cksum, sizeof(v_udp6_cksum), 62);
	check_l4(v_tcp4, sizeof(v_tcp4), 34);
	check_l4(v_tcp6, sizeof(v_tcp6), 54);
	check_l4(v_echo4, sizeof(v_echo4), 36);
	check_l4(v_echo6, sizeof(v_echo6), 56);
	check_l4(v_ns_us, sizeof(v_ns_us), 62);
}
END_TEST

START_TEST(l4_cksum__zero_and_offload)
{
	uint8_t bad[sizeof(v_tcp4)];

	ck_assert(l4_ok(v_udp4, sizeof(v_udp4), 0));
	ck_assert(l4_ok(v_udp6, sizeof(v_udp6), 0));
	memcpy(bad, v_tcp4, sizeof(bad));
	bad[60] ^= 1;
	ck_assert(l4_ok(bad, sizeof(bad), RTE_MBUF_F_RX_L4_CKSUM_GOOD));
	ck_assert(!l4_ok(bad, sizeof(bad), RTE_MBUF_F_RX_L4_CKSUM_NONE));
	ck_assert(l4_ok(v_tcp4, sizeof(v_tcp4), RTE_MBUF_F_RX_L4_CKSUM_BAD));
}
END_TEST

/* The payload cut in two at each place, odd ones above all. */
START_TEST(l4_cksum__chain)
{
	const size_t len = sizeof(v_udp4_cksum);
	struct rte_mbuf a, b;
	struct net_pkt p;

	for (size_t at = 42; at <= len; at++) {
		frame_make(&a, v_udp4_cksum, at, 0);
		frame_make(&b, v_udp4_cksum + at, len - at, 0);
		a.next = &b;
		a.nb_segs = 2;
		a.pkt_len = (uint32_t)len;
		ck_assert_int_eq(net_parse(&a, &p), NET_UDP);
		ck_assert(net_l4_cksum_ok(&p));
		*rte_pktmbuf_mtod_offset(&a, uint8_t *, 40) ^= 1;
		ck_assert(!net_l4_cksum_ok(&p));
		frame_free(&a);
		frame_free(&b);
	}
}
END_TEST

UNIT_MAIN("net_cksum", cksum_add__rfc1071, cksum_add__ones, cksum_update__rfc1624,
	l4_cksum__scapy, l4_cksum__zero_and_offload, l4_cksum__chain)
