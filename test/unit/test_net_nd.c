/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbour discovery against scapy's packets; the checks of RFC 4861 7.1 one by one. */
#include "net_test.h"

#define PARSE(name, nd) net_nd_parse(v_##name + 14, sizeof(v_##name) - 14, nd)

START_TEST(nd__parse_ns)
{
	struct net_ip src = ip("2001:db8::3"), dst = ip("ff02::1:ff00:2"), us = ip("2001:db8::2");
	struct net_nd nd;

	ck_assert_int_eq(PARSE(ns_us, &nd), 0);
	ck_assert_uint_eq(nd.type, NET_ND_NS);
	ck_assert_uint_eq(nd.flags, 0);
	ck_assert(nd.has_mac && rte_is_same_ether_addr(&nd.mac, &test_peer));
	ck_assert(net_ip_eq(&nd.src, &src) && net_ip_eq(&nd.dst, &dst));
	ck_assert(net_ip_eq(&nd.target, &us));
	ck_assert_int_eq(PARSE(ns_dad_us, &nd), 0);
	ck_assert(!nd.has_mac && net_ip_is_zero(&nd.src));
	ck_assert_int_eq(PARSE(ns_opt_unknown, &nd), 0);
	ck_assert(nd.has_mac);
}
END_TEST

START_TEST(nd__parse_na)
{
	struct net_nd nd;

	ck_assert_int_eq(PARSE(na_peer_is, &nd), 0);
	ck_assert_uint_eq(nd.type, NET_ND_NA);
	ck_assert_uint_eq(nd.flags, NET_ND_SOLICITED | NET_ND_OVERRIDE);
	ck_assert(nd.has_mac && rte_is_same_ether_addr(&nd.mac, &test_peer));
	ck_assert_int_eq(PARSE(na_peer_confirm, &nd), 0);
	ck_assert_uint_eq(nd.flags, NET_ND_SOLICITED);
	ck_assert(!nd.has_mac);
}
END_TEST

START_TEST(nd__parse_refuses)
{
	uint8_t msg[sizeof(v_ns_us) - 14];
	struct net_nd nd;

	ck_assert_int_eq(PARSE(ns_hop_limit, &nd), -EBADMSG);
	ck_assert_int_eq(PARSE(ns_mcast_target, &nd), -EBADMSG);
	ck_assert_int_eq(PARSE(ns_dad_with_mac, &nd), -EBADMSG);
	ck_assert_int_eq(PARSE(ns_dad_unicast, &nd), -EBADMSG);
	ck_assert_int_eq(PARSE(ns_opt_zero, &nd), -EBADMSG);
	ck_assert_int_eq(PARSE(ns_opt_long, &nd), -EBADMSG);
	ck_assert_int_eq(PARSE(na_mcast_solicited, &nd), -EBADMSG);
	ck_assert_int_eq(PARSE(ra, &nd), -EPROTONOSUPPORT);
	for (size_t n = 0; n < sizeof(msg); n++)
		ck_assert_int_ne(net_nd_parse(v_ns_us + 14, n, &nd), 0);
	/* The checksum covers what the hop limit and the lengths do not. */
	for (size_t i = 8; i < sizeof(msg); i++) {
		memcpy(msg, v_ns_us + 14, sizeof(msg));
		msg[i] ^= 0x04;
		ck_assert_int_ne(net_nd_parse(msg, sizeof(msg), &nd), 0);
	}
}
END_TEST

START_TEST(nd__emit)
{
	struct net_nd nd = { .type = NET_ND_NA, .flags = NET_ND_SOLICITED | NET_ND_OVERRIDE,
		.has_mac = true, .mac = test_us, .src = ip("2001:db8::2"),
		.dst = ip("2001:db8::3"), .target = ip("2001:db8::2") };
	uint8_t frame[NET_ND_FRAME_MAX];

	ck_assert_uint_eq(net_nd_emit(&nd, &test_us, &test_peer, NET_VLAN_NONE, frame),
		sizeof(v_na_us));
	ck_assert_mem_eq(frame, v_na_us, sizeof(v_na_us));
}
END_TEST

UNIT_MAIN("net_nd", nd__parse_ns, nd__parse_na, nd__parse_refuses, nd__emit)
