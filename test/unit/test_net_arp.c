/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP messages against scapy's, both ways. */
#include <rte_arp.h>

#include "net_test.h"

static void
check_emit(const struct net_arp *arp, const struct rte_ether_addr *dst, uint16_t tci,
	const uint8_t *want, size_t len)
{
	uint8_t frame[NET_ARP_FRAME_MAX];

	ck_assert_uint_eq(net_arp_emit(arp, dst, tci, frame), len);
	ck_assert_mem_eq(frame, want, len);
}

START_TEST(arp__emit)
{
	const struct rte_ether_addr all = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };
	struct net_arp req = { .op = RTE_ARP_OP_REQUEST, .sha = test_us, .spa = ip("192.0.2.2"),
		.tpa = ip("192.0.2.3") };
	struct net_arp rep = { .op = RTE_ARP_OP_REPLY, .sha = test_us, .tha = test_peer,
		.spa = ip("198.51.100.2"), .tpa = ip("198.51.100.3") };

	check_emit(&req, &all, NET_VLAN_NONE, v_arp_ask_peer, sizeof(v_arp_ask_peer));
	check_emit(&rep, &test_peer, 5, v_arp_rep_us_tagged, sizeof(v_arp_rep_us_tagged));
}
END_TEST

START_TEST(arp__parse)
{
	struct net_ip peer = ip("192.0.2.3"), us = ip("192.0.2.2");
	struct net_arp arp;

	ck_assert_int_eq(net_arp_parse(v_arp_peer_is + 14, 28, &arp), 0);
	ck_assert_uint_eq(arp.op, RTE_ARP_OP_REPLY);
	ck_assert(rte_is_same_ether_addr(&arp.sha, &test_peer));
	ck_assert(rte_is_same_ether_addr(&arp.tha, &test_us));
	ck_assert(net_ip_eq(&arp.spa, &peer) && net_ip_eq(&arp.tpa, &us));
}
END_TEST

START_TEST(arp__parse_refuses)
{
	static const uint8_t at[] = { 0, 1, 2, 3, 4, 5, 6, 7 }; /* all fixed fields */
	uint8_t msg[28];
	struct net_arp arp;

	for (size_t n = 0; n < 28; n++)
		ck_assert_int_eq(net_arp_parse(v_arp_peer_is + 14, n, &arp), -EBADMSG);
	ck_assert_int_eq(net_arp_parse(v_arp_token_ring + 14, 28, &arp), -EBADMSG);
	for (size_t i = 0; i < RTE_DIM(at); i++) {
		memcpy(msg, v_arp_peer_is + 14, 28);
		msg[at[i]] ^= 0x10;
		ck_assert_int_eq(net_arp_parse(msg, 28, &arp), -EBADMSG);
	}
}
END_TEST

UNIT_MAIN("net_arp", arp__emit, arp__parse, arp__parse_refuses)
