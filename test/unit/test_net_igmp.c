/* SPDX-License-Identifier: BSD-3-Clause */
/* Group membership messages against scapy's: read, refused, written byte for byte. */
#include "net_igmp.h"
#include "net_test.h"

#define GROUP4 "239.129.2.3"
#define GROUP6 "ff0e::8:9"

static struct net_igmp msg;

static int
parse(const uint8_t *frame, size_t len)
{
	struct rte_mbuf m;
	struct net_pkt p;
	int rc;

	ck_assert_int_eq(frame_parse(&m, &p, frame, len), NET_GROUP);
	rc = net_igmp_parse(&p, &msg);
	frame_free(&m);
	return rc;
}

#define PARSE(v) parse(v_##v, sizeof(v_##v))

static void
expect_query(uint8_t version, const char *group, uint32_t max_resp_ms)
{
	struct net_ip g = group ? ip(group) : (struct net_ip){{0}};

	ck_assert_int_eq(msg.what, NET_IGMP_QUERY);
	ck_assert_uint_eq(msg.version, version);
	ck_assert(net_ip_eq(&msg.group, &g));
	ck_assert_uint_eq(msg.max_resp_ms, max_resp_ms);
}

/** Versions by length and code (RFC 3376 7.1); codes with an exponent (4.1.1, 4.1.7). */
START_TEST(parse__igmp_queries)
{
	ck_assert_int_eq(PARSE(igmp_query3), 0);
	expect_query(3, NULL, 2000);
	ck_assert_uint_eq(msg.robustness, 2);
	ck_assert_uint_eq(msg.interval_s, 125);
	ck_assert_int_eq(PARSE(igmp_query3_slow), 0);
	expect_query(3, NULL, ((0x9a & 15) | 16) * 16 * 100);
	ck_assert_uint_eq(msg.interval_s, (10 | 16) << 3);
	ck_assert_int_eq(PARSE(igmp_query3_group), 0);
	expect_query(3, GROUP4, 1000);
	ck_assert_int_eq(PARSE(igmp_query3_sources), 0);
	expect_query(3, GROUP4, 1000);
	ck_assert_int_eq(PARSE(igmp_query2), 0);
	expect_query(2, NULL, 10000);
	ck_assert_int_eq(PARSE(igmp_query1), 0);
	expect_query(1, NULL, 10000);
}
END_TEST

START_TEST(parse__mld_queries)
{
	ck_assert_int_eq(PARSE(mld_query2), 0);
	expect_query(3, NULL, 2000);
	ck_assert_int_eq(PARSE(mld_query2_slow), 0);
	expect_query(3, NULL, (0xabc | 0x1000) << (1 + 3));
	ck_assert_int_eq(PARSE(mld_query2_group), 0);
	expect_query(3, GROUP6, 1000);
	ck_assert_int_eq(PARSE(mld_query1), 0);
	expect_query(2, NULL, 10000);
}
END_TEST

START_TEST(parse__reports)
{
	struct net_ip g4 = ip(GROUP4), g6 = ip(GROUP6);

	ck_assert_int_eq(PARSE(igmp_report_other), 0);
	ck_assert_int_eq(msg.what, NET_IGMP_REPORT);
	ck_assert(net_ip_eq(&msg.group, &g4));
	ck_assert_int_eq(PARSE(mld_report_other), 0);
	ck_assert_int_eq(msg.what, NET_IGMP_REPORT);
	ck_assert(net_ip_eq(&msg.group, &g6));
	ck_assert_int_eq(PARSE(igmp_join), 0);
	ck_assert_int_eq(msg.what, NET_IGMP_OTHER);
	ck_assert_int_eq(PARSE(mld_join), 0);
	ck_assert_int_eq(msg.what, NET_IGMP_OTHER);
}
END_TEST

/** From afar, of a wrong checksum or length, to one alone: ignored (RFC 3376 9.1, 3810 5.1). */
START_TEST(parse__refused)
{
	ck_assert_int_eq(PARSE(igmp), -EBADMSG); /* TTL 64 */
	ck_assert_int_eq(PARSE(igmp_query_ttl), -EBADMSG);
	ck_assert_int_eq(PARSE(igmp_query_cksum), -EBADMSG);
	ck_assert_int_eq(PARSE(igmp_query_unicast), -EBADMSG);
	ck_assert_int_eq(PARSE(igmp_query_10), -EBADMSG);
	ck_assert_int_eq(PARSE(mld_query_hlim), -EBADMSG);
	ck_assert_int_eq(PARSE(mld_query_global), -EBADMSG);
	ck_assert_int_eq(PARSE(mld_query_no_alert), -EBADMSG);
	ck_assert_int_eq(PARSE(mld_query_cksum), -EBADMSG);
}
END_TEST

/** Cut anywhere: no byte beyond is read (ASan sees it). */
START_TEST(parse__cut)
{
	for (size_t len = 0; len < sizeof(v_mld_query2); len++) {
		struct rte_mbuf m;
		struct net_pkt p;

		if (frame_parse(&m, &p, v_mld_query2, len) == NET_GROUP)
			ck_assert_int_ne(net_igmp_parse(&p, &msg), 0);
		frame_free(&m);
	}
}
END_TEST

static const struct net_igmp_head head4 = {.smac = {{0x52, 0x54, 0, 0, 0, 2}},
	.vlan_tci = NET_VLAN_NONE};

#define SAME(v) \
	do { \
		ck_assert_uint_eq(len, sizeof(v_##v)); \
		ck_assert_mem_eq(frame, v_##v, len); \
	} while (0)

START_TEST(emit__reports)
{
	struct net_igmp_head h = head4;
	struct net_igmp_group g = {ip(GROUP4), NET_IGMP_TO_EXCLUDE};
	uint8_t frame[NET_IGMP_FRAME_MAX];
	uint16_t len;

	h.src = ip("192.0.2.2");
	len = net_igmp_emit_report(&h, &g, 1, frame);
	SAME(igmp_join);
	g.record = NET_IGMP_IS_EXCLUDE;
	len = net_igmp_emit_report(&h, &g, 1, frame);
	SAME(igmp_answer);
	len = net_igmp_emit_old(&h, &g.group, 2, false, frame);
	SAME(igmp2_report);
	len = net_igmp_emit_old(&h, &g.group, 2, true, frame);
	SAME(igmp2_leave);
	len = net_igmp_emit_old(&h, &g.group, 1, false, frame);
	SAME(igmp1_report);
	h.src = net_ip_link_local(&h.smac);
	g.group = ip(GROUP6);
	g.record = NET_IGMP_TO_INCLUDE;
	len = net_igmp_emit_report(&h, &g, 1, frame);
	SAME(mld_leave);
	len = net_igmp_emit_old(&h, &g.group, 2, false, frame);
	SAME(mld1_report);
	len = net_igmp_emit_old(&h, &g.group, 2, true, frame);
	SAME(mld1_leave);
}
END_TEST

/** The longest report: its lengths agree, and it fits any Ethernet. */
START_TEST(emit__full)
{
	struct net_igmp_group g[NET_IGMP_RECORDS];
	struct net_igmp_head h = head4;
	uint8_t frame[NET_IGMP_FRAME_MAX];
	struct rte_mbuf m;
	struct net_pkt p;
	uint16_t len;

	h.src = net_ip_link_local(&h.smac);
	h.vlan_tci = 5;
	for (uint32_t i = 0; i < NET_IGMP_RECORDS; i++) {
		g[i] = (struct net_igmp_group){ip(GROUP6), NET_IGMP_IS_EXCLUDE};
		g[i].group.b[15] = (uint8_t)i;
	}
	len = net_igmp_emit_report(&h, g, NET_IGMP_RECORDS, frame);
	ck_assert_uint_le(len, NET_IGMP_FRAME_MAX);
	ck_assert_uint_le(len - 18u, 1400);
	ck_assert_int_eq(frame_parse(&m, &p, frame, len), NET_GROUP);
	ck_assert_int_eq(net_igmp_parse(&p, &msg), 0);
	ck_assert_uint_eq(net_vlan_id(p.vlan_tci), 5);
	frame_free(&m);
}
END_TEST

UNIT_MAIN("net_igmp", parse__igmp_queries, parse__mld_queries, parse__reports, parse__refused,
	  parse__cut, emit__reports, emit__full)
