/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memberships: what is told when, on virtual time, against frames made by scapy. Random delays are
 * held against their limits.
 */
#include "net_group.h"
#include "net_iface.h"
#include "net_igmp.h"
#include "net_test.h"

#define GROUP4 "239.129.2.3"
#define GROUP6 "ff0e::8:9"
#define MS UINT64_C(1000000)
#define SENT 128

static struct net_iface iface;
static struct net_groups *t;
static uint64_t now;
static struct {
	uint64_t at;
	uint16_t len;
	uint8_t frame[NET_IGMP_FRAME_MAX];
} sent[SENT];
static unsigned int num_sent, next_sent;

static void
on_send(void *ctx, uint16_t port, const uint8_t *frame, uint16_t len)
{
	(void)ctx;
	ck_assert_uint_eq(port, 3);
	ck_assert_uint_lt(num_sent, SENT);
	sent[num_sent].at = now;
	sent[num_sent].len = len;
	memcpy(sent[num_sent++].frame, frame, len);
}

static void
address(const char *text, uint8_t plen, uint16_t vid)
{
	struct net_iface_view *v = net_iface_view_dup(net_iface_get(&iface));
	struct net_ip a = ip(text);

	ck_assert_int_eq(net_iface_view_add(v, &a, plen, vid), 0);
	net_iface_view_free(net_iface_publish(&iface, v));
}

static void
begin(uint64_t seed)
{
	struct net_group_ops ops = {.send = on_send};

	net_iface_publish(&iface, net_iface_view_new(&test_us, 3, 1500));
	address("192.0.2.2", 120, 0);
	address("2001:db8::2", 64, 0);
	t = net_groups_new(&iface, 3, seed, &ops);
	ck_assert_ptr_nonnull(t);
	now = 1000 * MS;
	num_sent = next_sent = 0;
}

static void
end(void)
{
	net_groups_free(t);
	net_iface_view_free(net_iface_get(&iface));
}

/** Let time pass, tick by tick. */
static void
pass(uint64_t ms)
{
	uint64_t until = now + ms * MS, due;

	while ((due = net_groups_next_deadline(t)) <= until) {
		now = due > now ? due : now;
		net_groups_tick(t, now);
	}
	now = until;
}

static void
join(const char *group)
{
	struct net_ip g = ip(group);

	ck_assert_int_ge(net_group_join(t, &g, now), 0);
}

static void
leave(const char *group)
{
	struct net_ip g = ip(group);

	ck_assert_int_ge(net_group_leave(t, &g, now), 0);
}

static void
hear(const uint8_t *frame, size_t len)
{
	struct rte_mbuf m;
	struct net_pkt p;

	ck_assert_int_eq(frame_parse(&m, &p, frame, len), NET_GROUP);
	net_group_input(t, &p, now);
	frame_free(&m);
}

/** The same on VLAN 5. */
static void
hear_tagged(const uint8_t *frame, size_t len)
{
	static const uint8_t tag[] = {0x81, 0, 0, 5};
	uint8_t tagged[256];

	ck_assert_uint_le(len + sizeof(tag), sizeof(tagged));
	memcpy(tagged, frame, 12);
	memcpy(tagged + 12, tag, sizeof(tag));
	memcpy(tagged + 12 + sizeof(tag), frame + 12, len - 12);
	hear(tagged, len + sizeof(tag));
}

#define HEAR(v) hear(v_##v, sizeof(v_##v))
#define HEAR_TAGGED(v) hear_tagged(v_##v, sizeof(v_##v))

static void
expect_frame(const uint8_t *frame, size_t len)
{
	ck_assert_uint_lt(next_sent, num_sent);
	ck_assert_uint_eq(sent[next_sent].len, len);
	ck_assert_mem_eq(sent[next_sent].frame, frame, len);
	next_sent++;
}

#define EXPECT(v) expect_frame(v_##v, sizeof(v_##v))
#define EXPECT_NONE() ck_assert_uint_eq(next_sent, num_sent)

/** A join is told at once and once more within a second (robustness 2), then no more. */
START_TEST(join__told_twice)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		begin(seed);
		join(GROUP4);
		EXPECT(igmp_join);
		join(GROUP4); /* a second member: nothing new */
		EXPECT_NONE();
		pass(1000);
		EXPECT(igmp_join);
		ck_assert_uint_gt(sent[1].at, sent[0].at);
		ck_assert_uint_le(sent[1].at, sent[0].at + 1000 * MS);
		pass(1000000);
		EXPECT_NONE();
		leave(GROUP4);
		EXPECT_NONE();
		leave(GROUP4);
		EXPECT(igmp_leave);
		pass(1000);
		EXPECT(igmp_leave);
		ck_assert_uint_eq(net_groups_next_deadline(t), UINT64_MAX);
		end();
	}
}
END_TEST

START_TEST(join__mld)
{
	begin(1);
	join(GROUP6);
	EXPECT(mld_join);
	pass(1000);
	EXPECT(mld_join);
	leave(GROUP6);
	EXPECT(mld_leave);
	end();
}
END_TEST

/** Left while the join is still to be told again: only the leave is. */
START_TEST(leave__overtakes_the_join)
{
	begin(2);
	join(GROUP4);
	EXPECT(igmp_join);
	leave(GROUP4);
	EXPECT(igmp_leave);
	pass(5000);
	EXPECT(igmp_leave);
	EXPECT_NONE();
	end();
}
END_TEST

/** All-hosts groups and those within the node are nobody's business (RFC 3376 5, 3810 6). */
START_TEST(join__not_reported)
{
	begin(3);
	join("224.0.0.1");
	join("ff02::1");
	join("ff01::5");
	pass(100000);
	HEAR(igmp_query3);
	HEAR(mld_query2);
	pass(100000);
	EXPECT_NONE();
	end();
}
END_TEST

START_TEST(join__of_no_group)
{
	struct net_ip unicast = ip("192.0.2.9"), v6 = ip("2001:db8::9"), g = ip(GROUP4);

	begin(3);
	ck_assert_int_eq(net_group_join(t, &unicast, now), -EINVAL);
	ck_assert_int_eq(net_group_join(t, &v6, now), -EINVAL);
	ck_assert_int_eq(net_group_leave(t, &g, now), -ENOENT);
	ck_assert_uint_eq(net_groups_list(t, NULL, 0), 0);
	end();
}
END_TEST

/** A query about all is answered once, within its maximum, and not always at the same time. */
START_TEST(query__answered_late_enough)
{
	uint64_t first = 0, spread = 0;

	for (uint64_t seed = 0; seed < 50; seed++) {
		begin(seed);
		join(GROUP4);
		pass(5000);
		next_sent = num_sent;
		HEAR(igmp_query3);
		HEAR(igmp_query3); /* one answer is under way: no second one */
		EXPECT_NONE();
		pass(2000);
		EXPECT(igmp_answer);
		EXPECT_NONE();
		if (seed == 0)
			first = sent[num_sent - 1].at;
		spread += sent[num_sent - 1].at != first;
		end();
	}
	ck_assert_uint_gt(spread, 40);
}
END_TEST

START_TEST(query__about_one_group)
{
	begin(4);
	join(GROUP4);
	join("239.1.1.1");
	join(GROUP6);
	pass(5000);
	next_sent = num_sent;
	HEAR(igmp_query3_group);
	pass(1000);
	EXPECT(igmp_answer);
	HEAR(igmp_query3_sources);
	pass(1000);
	EXPECT(igmp_answer);
	HEAR(mld_query2_group);
	pass(1000);
	EXPECT(mld_answer);
	EXPECT_NONE();
	leave(GROUP4);
	pass(5000);
	next_sent = num_sent;
	HEAR(igmp_query3_group);
	pass(5000);
	EXPECT_NONE();
	end();
}
END_TEST

START_TEST(query__ignored)
{
	begin(5);
	join(GROUP4);
	join(GROUP6);
	pass(5000);
	next_sent = num_sent;
	HEAR(igmp_query_ttl);
	HEAR(igmp_query_cksum);
	HEAR(igmp_query_unicast);
	HEAR(mld_query_hlim);
	HEAR(mld_query_global);
	HEAR(mld_query_no_alert);
	pass(100000);
	EXPECT_NONE();
	ck_assert_uint_eq(counter_read(&net_groups_counters(t)[NET_GROUP_N_IGNORED]), 6);
	end();
}
END_TEST

/** A querier of an older version is spoken to in its own, for as long as it may be there. */
START_TEST(version__of_the_querier)
{
	begin(6);
	join(GROUP4);
	pass(5000);
	next_sent = num_sent;
	HEAR(igmp_query2);
	pass(10000);
	EXPECT(igmp2_report);
	EXPECT_NONE();
	leave(GROUP4);
	EXPECT(igmp2_leave);
	pass(10000);
	EXPECT(igmp2_leave);
	EXPECT_NONE();
	pass(260000); /* 2 * 125 s + 10 s after it was heard: version 3 again */
	join(GROUP4);
	EXPECT(igmp_join);
	end();
}
END_TEST

START_TEST(version__one_has_no_leave)
{
	begin(7);
	HEAR(igmp_query1);
	join(GROUP4);
	EXPECT(igmp1_report);
	pass(10000);
	EXPECT(igmp1_report);
	leave(GROUP4);
	pass(20000);
	EXPECT_NONE();
	end();
}
END_TEST

START_TEST(version__mld1)
{
	begin(8);
	HEAR(mld_query1);
	join(GROUP6);
	EXPECT(mld1_report);
	pass(10000);
	EXPECT(mld1_report);
	leave(GROUP6);
	EXPECT(mld1_leave);
	/* of IPv6 alone: IPv4 has its own queriers */
	join(GROUP4);
	EXPECT(igmp_join);
	end();
}
END_TEST

/** In older versions another member's report is answer enough; in version 3 it is not. */
START_TEST(version__suppression)
{
	begin(9);
	join(GROUP4);
	pass(5000);
	next_sent = num_sent;
	HEAR(igmp_query2);
	HEAR(igmp_report_other);
	pass(20000);
	EXPECT_NONE();
	end();
	begin(9);
	join(GROUP4);
	pass(5000);
	next_sent = num_sent;
	HEAR(igmp_query3_group);
	HEAR(igmp_report_other);
	pass(20000);
	EXPECT(igmp_answer);
	end();
}
END_TEST

/** On each VLAN with an address of the family, from that address; on new ones when they come. */
START_TEST(vlan__told_on_each)
{
	begin(10);
	join(GROUP4);
	pass(5000);
	next_sent = num_sent;
	address("198.51.100.2", 120, 5);
	net_groups_readdress(t, now);
	EXPECT(igmp_join);
	EXPECT(igmp_join_tagged);
	pass(1000);
	EXPECT(igmp_join);
	EXPECT(igmp_join_tagged);
	net_groups_readdress(t, now);
	EXPECT_NONE();
	end();
}
END_TEST

/** More groups than a report holds: several reports, each group once. */
START_TEST(query__many_groups)
{
	struct net_ip g = ip("239.0.0.0"), ips[200];
	unsigned int records = 0;

	begin(11);
	for (unsigned int i = 0; i < 100; i++) {
		g.b[15] = (uint8_t)i;
		num_sent = 0;
		ck_assert_int_eq(net_group_join(t, &g, now), 1);
	}
	num_sent = 0;
	for (int i = 0; i < 100; i++) { /* the second tellings */
		pass(10);
		num_sent = 0;
	}
	next_sent = 0;
	HEAR(igmp_query3);
	pass(2000);
	ck_assert_uint_eq(num_sent, 2);
	for (unsigned int i = 0; i < num_sent; i++)
		records += sent[i].frame[14 + 24 + 7];
	ck_assert_uint_eq(records, 100);
	ck_assert_uint_eq(net_groups_list(t, ips, 200), 100);
	end();
}
END_TEST

/** How many groups are members is told: a port's filter follows these changes alone. */
START_TEST(join__first_and_last)
{
	struct net_ip g = ip(GROUP4);

	begin(12);
	ck_assert_int_eq(net_group_join(t, &g, now), 1);
	ck_assert_int_eq(net_group_join(t, &g, now), 0);
	ck_assert_int_eq(net_group_leave(t, &g, now), 0);
	ck_assert_int_eq(net_group_leave(t, &g, now), 1);
	ck_assert_int_eq(net_group_join(t, &g, now), 1);
	end();
}
END_TEST

/** Of many that were left the oldest are forgotten at once: their leave is told but once. */
START_TEST(leave__many_groups)
{
	struct net_ip g = ip("239.0.0.0");

	begin(13);
	for (unsigned int i = 0; i < 200; i++) {
		g.b[15] = (uint8_t)i;
		num_sent = 0;
		ck_assert_int_eq(net_group_join(t, &g, now), 1);
		ck_assert_int_eq(net_group_leave(t, &g, now), 1);
		ck_assert_uint_eq(num_sent, 2);
	}
	num_sent = 0;
	pass(2000);
	ck_assert_uint_eq(num_sent, 64);
	for (unsigned int i = 0; i < num_sent; i++) {
		ck_assert_uint_eq(sent[i].frame[14 + 24 + 8], 3); /* to include nothing */
		ck_assert_uint_ge(sent[i].frame[14 + 24 + 8 + 7], 200 - 64);
	}
	ck_assert_uint_eq(net_groups_next_deadline(t), UINT64_MAX);
	/* joined again, none is taken for one that was left */
	for (unsigned int i = 0; i < 200; i++) {
		g.b[15] = (uint8_t)i;
		num_sent = 0;
		ck_assert_int_eq(net_group_join(t, &g, now), 1);
		if (i < 10)
			ck_assert_int_eq(net_group_leave(t, &g, now), 1);
		if (i < 10)
			ck_assert_int_eq(net_group_join(t, &g, now), 1);
	}
	ck_assert_uint_eq(net_groups_list(t, NULL, 0), 200);
	end();
}
END_TEST

static void
begin_tagged(uint64_t seed)
{
	begin(seed);
	address("198.51.100.2", 120, 5);
	join(GROUP4);
	pass(5000);
	next_sent = num_sent;
}

/** A query is answered where it was heard, and nowhere else. */
START_TEST(vlan__answered_on_its_own)
{
	begin_tagged(14);
	HEAR(igmp_query3_group);
	pass(5000);
	EXPECT(igmp_answer);
	EXPECT_NONE();
	HEAR(igmp_query2);
	pass(20000);
	EXPECT(igmp2_report);
	EXPECT_NONE();
	end();
}
END_TEST

/** Members of another VLAN have answered for that one alone. */
START_TEST(vlan__suppression)
{
	for (int other = 0; other < 2; other++) {
		begin_tagged(15);
		HEAR(igmp_query2);
		HEAR_TAGGED(igmp_query2);
		if (other)
			HEAR_TAGGED(igmp_report_other);
		else
			HEAR(igmp_report_other);
		ck_assert_uint_eq(
			counter_read(&net_groups_counters(t)[NET_GROUP_N_SUPPRESSED]), 1);
		pass(20000);
		ck_assert_uint_eq(num_sent, next_sent + 1);
		ck_assert_int_eq(sent[next_sent].frame[12] == 0x08, other);
		end();
	}
}
END_TEST

/** An older querier of one VLAN does not keep a change from being told again on another. */
START_TEST(vlan__version)
{
	begin(16);
	address("198.51.100.2", 120, 5);
	join(GROUP4);
	EXPECT(igmp_join);
	EXPECT(igmp_join_tagged);
	HEAR(igmp_query1);
	HEAR(igmp_report_other);
	pass(5000);
	EXPECT(igmp_join_tagged);
	EXPECT_NONE();
	end();
}
END_TEST

/** A link that has gone leaves nothing to another that comes in its place. */
START_TEST(vlan__gone)
{
	struct net_iface_view *v;

	begin_tagged(17);
	HEAR_TAGGED(igmp_query2);
	v = net_iface_view_new(&test_us, 3, 1500);
	net_iface_view_free(net_iface_publish(&iface, v));
	address("192.0.2.2", 120, 0);
	address("203.0.113.2", 120, 6);
	net_groups_readdress(t, now);
	pass(20000);
	ck_assert_uint_eq(num_sent, next_sent + 4); /* told twice on each, the new one too */
	for (; next_sent < num_sent; next_sent++) {
		unsigned int tag = sent[next_sent].frame[12] == 0x81 ? 4 : 0;

		ck_assert_uint_eq(sent[next_sent].frame[14 + tag + 24 + 8], 4); /* no answer */
	}
	end();
}
END_TEST

/** Queries do not shorten a delay that is under way (RFC 2236 3), unless they ask for less. */
START_TEST(query__keeps_the_delay)
{
	uint64_t due;

	for (uint64_t seed = 0; seed < 20; seed++) {
		begin(seed);
		join(GROUP4);
		pass(5000);
		HEAR(igmp_query2);
		due = net_groups_next_deadline(t);
		for (int i = 0; i < 50; i++)
			HEAR(igmp_query2);
		ck_assert_uint_eq(net_groups_next_deadline(t), due);
		HEAR(igmp_query3_group);
		ck_assert_uint_le(net_groups_next_deadline(t), now + 1000 * MS);
		end();
	}
}
END_TEST

/** Of many answers that are due at once some wait: a query is no reason for a flood. */
START_TEST(query__answered_in_portions)
{
	struct net_ip g = ip("239.0.0.0");
	unsigned int sum = 0, ticks = 0;
	bool told[100] = {false};

	begin(18);
	for (unsigned int i = 0; i < 100; i++) {
		g.b[15] = (uint8_t)i;
		num_sent = 0;
		ck_assert_int_eq(net_group_join(t, &g, now), 1);
	}
	for (int i = 0; i < 100; i++) {
		pass(20);
		num_sent = 0;
	}
	HEAR(igmp_query2);
	now += 20000 * MS;
	for (; sum < 100; ticks++) {
		num_sent = 0;
		net_groups_tick(t, now);
		ck_assert_uint_gt(num_sent, 0);
		ck_assert_uint_le(num_sent, 32);
		for (unsigned int i = 0; i < num_sent; i++)
			told[sent[i].frame[33]] = true; /* to the group itself */
		sum += num_sent;
		if (sum < 100)
			ck_assert_uint_gt(net_groups_next_deadline(t), now);
		now += 10 * MS;
	}
	ck_assert_uint_eq(ticks, 4);
	for (unsigned int i = 0; i < 100; i++)
		ck_assert(told[i]);
	ck_assert_uint_eq(net_groups_next_deadline(t), UINT64_MAX);
	end();
}
END_TEST

UNIT_MAIN("net_group", join__told_twice, join__mld, leave__overtakes_the_join, join__not_reported,
	  join__of_no_group, query__answered_late_enough, query__about_one_group, query__ignored,
	  version__of_the_querier, version__one_has_no_leave, version__mld1, version__suppression,
	  vlan__told_on_each, query__many_groups,
	  join__first_and_last, leave__many_groups, vlan__answered_on_its_own, vlan__suppression,
	  vlan__version, vlan__gone, query__keeps_the_delay, query__answered_in_portions)
