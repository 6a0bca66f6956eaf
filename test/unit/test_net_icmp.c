/* SPDX-License-Identifier: BSD-3-Clause */
/* Echo replies byte for byte as scapy makes them; errors and their limits. */
#include "net_test.h"

static int
reply_to(struct rte_mbuf *m, const uint8_t *data, size_t len, uint16_t headroom, uint16_t stripped)
{
	struct net_pkt p;

	frame_make(m, data, len, headroom);
	if (stripped != NET_VLAN_NONE) {
		m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
		m->vlan_tci = stripped;
	}
	net_parse(m, &p);
	return net_icmp_echo_reply(&p, &test_us);
}

static void
check_reply(const uint8_t *req, size_t req_len, uint16_t headroom, uint16_t stripped,
	const uint8_t *want, size_t want_len)
{
	struct rte_mbuf m;

	ck_assert_int_eq(reply_to(&m, req, req_len, headroom, stripped), 0);
	ck_assert_uint_eq(m.pkt_len, want_len);
	ck_assert_mem_eq(rte_pktmbuf_mtod(&m, const uint8_t *), want, want_len);
	ck_assert_uint_eq(m.ol_flags, 0);
	frame_free(&m);
}

START_TEST(echo__replies)
{
	check_reply(v_echo4, sizeof(v_echo4), 0, NET_VLAN_NONE, v_echo4_reply,
		sizeof(v_echo4_reply));
	check_reply(v_echo6, sizeof(v_echo6), 0, NET_VLAN_NONE, v_echo6_reply,
		sizeof(v_echo6_reply));
	check_reply(v_echo4_tagged, sizeof(v_echo4_tagged), 0, NET_VLAN_NONE, v_echo4_reply_tagged,
		sizeof(v_echo4_reply_tagged));
	check_reply(v_echo4, sizeof(v_echo4), 4, 0x6005, v_echo4_reply_tagged,
		sizeof(v_echo4_reply_tagged));
}
END_TEST

static void
check_refused(const uint8_t *req, size_t len, uint16_t stripped, int want)
{
	struct rte_mbuf m;

	ck_assert_int_eq(reply_to(&m, req, len, 0, stripped), want);
	frame_free(&m);
}

START_TEST(echo__refused)
{
	uint8_t bad[sizeof(v_echo4)];

	memcpy(bad, v_echo4, sizeof(bad));
	bad[sizeof(bad) - 1] ^= 1;
	check_refused(bad, sizeof(bad), NET_VLAN_NONE, -EBADMSG);
	check_refused(v_echo4, sizeof(v_echo4), 0x6005, -ENOBUFS);
	check_refused(v_echo4_mcast, sizeof(v_echo4_mcast), NET_VLAN_NONE, -EINVAL);
	check_refused(v_echo4_from_zero, sizeof(v_echo4_from_zero), NET_VLAN_NONE, -EINVAL);
	check_refused(v_udp4, sizeof(v_udp4), NET_VLAN_NONE, -EINVAL);
}
END_TEST

static int
error_of(const uint8_t *data, size_t len, struct net_icmp_error *err)
{
	struct rte_mbuf m;
	struct net_pkt p;
	int rc;

	frame_parse(&m, &p, data, len);
	rc = net_icmp_parse_error(&p, err);
	frame_free(&m);
	return rc;
}

#define ERROR_OF(name, err) error_of(v_##name, sizeof(v_##name), err)

static void
check_error(const struct net_icmp_error *e, enum net_icmp_what what, const char *src,
	const char *dst, uint16_t sport, uint16_t dport, uint32_t mtu)
{
	struct net_ip s = ip(src), d = ip(dst);

	ck_assert_int_eq(e->what, what);
	ck_assert(net_ip_eq(&e->src, &s));
	ck_assert(net_ip_eq(&e->dst, &d));
	ck_assert_uint_eq(e->sport, sport);
	ck_assert_uint_eq(e->dport, dport);
	ck_assert_uint_eq(e->mtu, mtu);
}

START_TEST(error__too_big)
{
	struct net_icmp_error e;

	ck_assert_int_eq(ERROR_OF(frag_needed, &e), 0);
	check_error(&e, NET_ICMP_TOO_BIG, "192.0.2.2", "192.0.2.3", 0xe123, 4791, 1400);
	ck_assert_int_eq(ERROR_OF(too_big, &e), 0);
	check_error(&e, NET_ICMP_TOO_BIG, "2001:db8::2", "2001:db8::3", 0xe123, 4791, 1400);
	/* RFC 1191 7: 1500 is above the plateau 1492. */
	ck_assert_int_eq(ERROR_OF(frag_needed_old, &e), 0);
	ck_assert_uint_eq(e.mtu, 1492);
	/* Below what any IP link carries: a forgery. */
	ck_assert_int_eq(ERROR_OF(frag_needed_tiny, &e), -EBADMSG);
	ck_assert_int_eq(ERROR_OF(too_big_tiny, &e), -EBADMSG);
}
END_TEST

START_TEST(error__unreachable)
{
	struct net_icmp_error e;

	ck_assert_int_eq(ERROR_OF(port_unreachable, &e), 0);
	check_error(&e, NET_ICMP_UNREACHABLE, "192.0.2.2", "192.0.2.3", 7174, 49152, 0);
	ck_assert_uint_eq(e.code, 3);
	ck_assert_uint_eq(e.proto, 6);
	ck_assert_uint_eq(e.l4_word, 0x01020304);
	ck_assert_int_eq(ERROR_OF(unreachable6, &e), 0);
	check_error(&e, NET_ICMP_UNREACHABLE, "2001:db8::2", "2001:db8::3", 0xe123, 4791, 0);
	ck_assert_int_eq(ERROR_OF(icmp_quote_short, &e), -EBADMSG);
	ck_assert_int_eq(ERROR_OF(echo4, &e), -EBADMSG);
}
END_TEST

UNIT_MAIN("net_icmp", echo__replies, echo__refused, error__too_big, error__unreachable)
