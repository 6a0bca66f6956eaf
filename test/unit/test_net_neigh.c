/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbour table on virtual time: what it sends is compared with scapy's
 * frames, what it hears are scapy's frames.
 */
#include "net_test.h"

#define SEC UINT64_C(1000000000)
#define CAPACITY 16

static struct {
	struct net_iface iface;
	struct net_neigh_table *t;
	uint64_t now;
	unsigned int n_sent, n_released, n_events;
	uint8_t sent[NET_ND_FRAME_MAX]; /* the last */
	uint16_t sent_len;
	struct rte_mbuf *released[64];
	enum net_neigh_event last;
	const struct net_neigh *last_n;
	struct rte_ether_addr last_mac;
} w;

static void
on_send(void *ctx, uint16_t port, const uint8_t *frame, uint16_t len)
{
	ck_assert_ptr_eq(ctx, &w);
	ck_assert_uint_eq(port, 3);
	memcpy(w.sent, frame, len);
	w.sent_len = len;
	w.n_sent++;
}

static void
on_release(void *ctx, uint16_t port, struct rte_mbuf **m, uint16_t n)
{
	(void)ctx;
	(void)port;
	for (uint16_t i = 0; i < n; i++)
		w.released[w.n_released++] = m[i];
}

static void
on_event(void *ctx, enum net_neigh_event ev, struct net_neigh *n, const struct net_ip *a,
	const struct rte_ether_addr *mac)
{
	(void)ctx;
	(void)a;
	w.last = ev;
	w.last_n = n;
	w.last_mac = *mac;
	w.n_events++;
}

static void
setup(void)
{
	const struct net_neigh_ops ops = { on_send, on_release, on_event, &w };
	struct net_iface_view *v = net_iface_view_new(&test_us, 3, 1500);
	struct net_ip a4 = ip("192.0.2.2"), a6 = ip("2001:db8::2"), tagged = ip("198.51.100.2");

	memset(&w, 0, sizeof(w));
	ck_assert_int_eq(net_iface_view_add(v, &a4, 120, 0), 0);
	ck_assert_int_eq(net_iface_view_add(v, &a6, 64, 0), 0);
	ck_assert_int_eq(net_iface_view_add(v, &tagged, 120, 5), 0);
	net_iface_publish(&w.iface, v);
	w.t = net_neigh_table_new(&w.iface, CAPACITY, &ops);
	w.now = 100 * SEC;
}

static void
teardown(void)
{
	net_neigh_table_free(w.t);
	net_iface_view_free(net_iface_get(&w.iface));
}

static void
hear(const uint8_t *data, size_t len)
{
	struct rte_mbuf m;
	struct net_pkt p;

	ck_assert(!net_kind_is_drop(frame_parse(&m, &p, data, len)));
	net_neigh_input(w.t, &p, w.now);
	frame_free(&m);
}

#define HEAR(name) hear(v_##name, sizeof(v_##name))

/* Exactly one frame went out since the last look, and it is this one. */
#define SENT(name)                                                             \
	do {                                                                   \
		ck_assert_uint_eq(w.n_sent, 1);                                \
		ck_assert_uint_eq(w.sent_len, sizeof(v_##name));               \
		ck_assert_mem_eq(w.sent, v_##name, sizeof(v_##name));          \
		w.n_sent = 0;                                                  \
	} while (0)

#define SENT_NOTHING() ck_assert_uint_eq(w.n_sent, 0)

static void
wait_ns(uint64_t ns)
{
	w.now += ns;
	net_neigh_tick(w.t, w.now);
}

static struct net_neigh *
get(const char *text)
{
	struct net_ip a = ip(text);

	return net_neigh_get(w.t, &a, 0, w.now);
}

static void
check(struct net_neigh *n, enum net_neigh_state state, const struct rte_ether_addr *mac)
{
	uint64_t l2 = atomic_load(&n->l2);
	struct rte_ether_addr is = net_neigh_l2_mac(l2);

	ck_assert_str_eq(net_neigh_state_name(net_neigh_l2_state(l2)), net_neigh_state_name(state));
	ck_assert_int_eq(net_neigh_l2_usable(l2),
		state == NET_NEIGH_REACHABLE || state == NET_NEIGH_STALE);
	if (mac != NULL)
		ck_assert(rte_is_same_ether_addr(&is, mac));
}

static void
check_event(enum net_neigh_event ev, const struct net_neigh *n)
{
	ck_assert_uint_eq(w.n_events, 1);
	ck_assert_int_eq(w.last, ev);
	ck_assert_ptr_eq(w.last_n, n);
	w.n_events = 0;
}

static uint64_t
counter(enum net_neigh_counter c)
{
	return counter_read(&net_neigh_counters(w.t)[c]);
}

static struct net_neigh *
reachable(void)
{
	struct net_neigh *n = get("192.0.2.3");

	SENT(arp_ask_peer);
	HEAR(arp_peer_is);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	check_event(NET_NEIGH_RESOLVED, n);
	return n;
}

START_TEST(neigh__resolves4)
{
	struct net_neigh *n;

	setup();
	n = reachable();
	ck_assert_ptr_eq(get("192.0.2.3"), n);
	SENT_NOTHING();
	wait_ns(29 * SEC);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	wait_ns(SEC);
	check(n, NET_NEIGH_STALE, &test_peer);
	SENT_NOTHING();
	/* Unused, it stays. Used, it is asked by unicast. */
	wait_ns(1000 * SEC);
	SENT_NOTHING();
	check(n, NET_NEIGH_STALE, &test_peer);
	net_neigh_use(n);
	SENT_NOTHING();
	wait_ns(1);
	SENT(arp_ask_peer_unicast);
	HEAR(arp_peer_is);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	ck_assert_uint_eq(w.n_events, 0);
	teardown();
}
END_TEST

START_TEST(neigh__resolves6)
{
	struct net_neigh *n;

	setup();
	n = get("2001:db8::3");
	SENT(ns_ask_peer);
	check(n, NET_NEIGH_INCOMPLETE, NULL);
	HEAR(na_peer_confirm); /* without a MAC it is no answer */
	check(n, NET_NEIGH_INCOMPLETE, NULL);
	HEAR(na_peer_is);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	check_event(NET_NEIGH_RESOLVED, n);
	wait_ns(30 * SEC);
	check(n, NET_NEIGH_STALE, &test_peer);
	net_neigh_use(n);
	wait_ns(1);
	SENT(ns_ask_peer_unicast);
	HEAR(na_peer_confirm);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	teardown();
}
END_TEST

/* B185: three solicits, then the failure is known; it is tried again when used. */
START_TEST(neigh__fails)
{
	struct net_neigh *n;

	setup();
	n = get("192.0.2.3");
	SENT(arp_ask_peer);
	wait_ns(SEC - 1);
	SENT_NOTHING();
	wait_ns(1);
	SENT(arp_ask_peer);
	wait_ns(SEC);
	SENT(arp_ask_peer);
	ck_assert_uint_eq(net_neigh_next_deadline(w.t, w.now), w.now + SEC / 10);
	wait_ns(SEC);
	SENT_NOTHING();
	check(n, NET_NEIGH_FAILED, NULL);
	check_event(NET_NEIGH_LOST, n);
	/* Held down for a second, whoever asks. */
	ck_assert_ptr_eq(get("192.0.2.3"), n);
	net_neigh_use(n);
	wait_ns(SEC / 2);
	SENT_NOTHING();
	wait_ns(SEC / 2);
	SENT(arp_ask_peer);
	check(n, NET_NEIGH_INCOMPLETE, NULL);
	wait_ns(SEC);
	wait_ns(SEC);
	wait_ns(SEC);
	check(n, NET_NEIGH_FAILED, NULL);
	w.n_sent = w.n_events = 0;
	/* Unused, it is left alone; then a use, and an answer. */
	wait_ns(10 * SEC);
	SENT_NOTHING();
	net_neigh_use(n);
	wait_ns(1);
	SENT(arp_ask_peer);
	HEAR(arp_peer_is);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	check_event(NET_NEIGH_RESOLVED, n);
	teardown();
}
END_TEST

/* Three unicast probes, three by broadcast, then it is lost. */
START_TEST(neigh__probe_fails)
{
	struct net_neigh *n;

	setup();
	n = reachable();
	wait_ns(30 * SEC);
	net_neigh_use(n);
	wait_ns(1);
	for (unsigned int i = 0; i < 6; i++) {
		check(n, NET_NEIGH_STALE, &test_peer);
		if (i < 3)
			SENT(arp_ask_peer_unicast);
		else
			SENT(arp_ask_peer);
		wait_ns(SEC);
	}
	check(n, NET_NEIGH_FAILED, NULL);
	check_event(NET_NEIGH_LOST, n);
	teardown();
}
END_TEST

/* B191: the gateway's MAC changes, announced or found out by lost packets. */
START_TEST(neigh__mac_changes)
{
	struct net_neigh *n;

	setup();
	n = reachable();
	HEAR(arp_gratuitous);
	check(n, NET_NEIGH_STALE, &test_gw);
	check_event(NET_NEIGH_CHANGED, n);
	HEAR(arp_gratuitous_reply);
	check(n, NET_NEIGH_STALE, &test_gw);
	ck_assert_uint_eq(w.n_events, 0);
	net_neigh_use(n);
	wait_ns(1);
	ck_assert_uint_eq(w.n_sent, 1);
	w.n_sent = 0;
	HEAR(arp_peer_is);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	check_event(NET_NEIGH_CHANGED, n);
	/* Silent: the retransmitting QP suspects it; asked at once, by broadcast. */
	wait_ns(2 * SEC);
	net_neigh_suspect(n);
	net_neigh_suspect(n);
	wait_ns(1);
	SENT(arp_ask_peer);
	check(n, NET_NEIGH_STALE, &test_peer);
	HEAR(arp_peer_moved);
	check(n, NET_NEIGH_REACHABLE, &test_gw);
	check_event(NET_NEIGH_CHANGED, n);
	/* Suspected again at once: not more than one question a second. */
	net_neigh_suspect(n);
	wait_ns(SEC / 2);
	SENT_NOTHING();
	wait_ns(SEC / 2);
	SENT(arp_ask_peer);
	teardown();
}
END_TEST

/* RFC 4861 appendix C: override, no override, solicited. */
START_TEST(neigh__na_rules)
{
	struct net_neigh *n;

	setup();
	HEAR(na_peer_is); /* unknown: no entry is made */
	ck_assert_uint_eq(counter(NET_NEIGH_N_IGNORED), 1);
	n = get("2001:db8::3");
	HEAR(na_peer_is);
	w.n_events = 0;
	HEAR(na_peer_moved_no_override);
	check(n, NET_NEIGH_STALE, &test_peer);
	ck_assert_uint_eq(w.n_events, 0);
	HEAR(na_peer_moved_override);
	check(n, NET_NEIGH_STALE, &test_gw);
	check_event(NET_NEIGH_CHANGED, n);
	HEAR(na_peer_is);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	teardown();
}
END_TEST

START_TEST(neigh__answers)
{
	struct net_ip peer4 = ip("192.0.2.3"), peer6 = ip("2001:db8::3"), v5 = ip("198.51.100.3");

	setup();
	HEAR(arp_req_us);
	SENT(arp_rep_us);
	HEAR(arp_req_us_tagged);
	SENT(arp_rep_us_tagged);
	HEAR(arp_probe_us);
	SENT(arp_rep_probe);
	HEAR(ns_us);
	SENT(na_us);
	HEAR(ns_dad_us);
	SENT(na_all_us);
	/* Who asks will be spoken to: known, but not proven. */
	check(net_neigh_find(w.t, &peer4, 0), NET_NEIGH_STALE, &test_peer);
	check(net_neigh_find(w.t, &peer6, 0), NET_NEIGH_STALE, &test_peer);
	check(net_neigh_find(w.t, &v5, 5), NET_NEIGH_STALE, &test_peer);
	ck_assert_ptr_null(net_neigh_find(w.t, &v5, 0));
	HEAR(arp_others);
	HEAR(arp_announce_us); /* our own, come back */
	SENT_NOTHING();
	teardown();
}
END_TEST

START_TEST(neigh__malformed)
{
	setup();
	get("192.0.2.3");
	w.n_sent = 0;
	HEAR(arp_mcast_mac);
	HEAR(arp_zero_mac);
	HEAR(arp_token_ring);
	HEAR(ns_hop_limit);
	HEAR(ns_opt_zero);
	ck_assert_uint_eq(counter(NET_NEIGH_N_DROP_MALFORMED), 5);
	SENT_NOTHING();
	ck_assert_uint_eq(w.n_events, 0);
	teardown();
}
END_TEST

/* RFC 5227 2.4: defended once in ten seconds. */
START_TEST(neigh__conflict)
{
	setup();
	HEAR(arp_conflict);
	SENT(arp_announce_us);
	check_event(NET_NEIGH_CONFLICT, NULL);
	ck_assert(rte_is_same_ether_addr(&w.last_mac, &test_gw));
	HEAR(arp_conflict);
	SENT_NOTHING();
	check_event(NET_NEIGH_CONFLICT, NULL);
	wait_ns(10 * SEC);
	HEAR(na_conflict);
	SENT(na_all_us);
	check_event(NET_NEIGH_CONFLICT, NULL);
	teardown();
}
END_TEST

/* A scan fills a quarter of the table at most, and leaves the rest usable. */
START_TEST(neigh__scan)
{
	struct net_neigh *n, *held[CAPACITY];
	unsigned int i, got = 0;
	char text[32];

	setup();
	n = reachable();
	for (i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "192.0.2.%u", 20 + i);
		held[got] = get(text);
		if (held[got] != NULL)
			got++;
	}
	ck_assert_uint_eq(got, CAPACITY / 4);
	ck_assert_uint_eq(counter(NET_NEIGH_N_DROP_INCOMPLETE), 200 - CAPACITY / 4);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	for (i = 0; i < 3; i++)
		wait_ns(SEC);
	while (got > 0)
		net_neigh_put(held[--got]);
	ck_assert_ptr_nonnull(get("192.0.2.99"));
	teardown();
}
END_TEST

/* Referenced entries stay; the oldest without references makes room. */
START_TEST(neigh__recycles)
{
	struct rte_ether_addr mac = test_peer;
	struct net_neigh *n;
	struct net_ip a;

	setup();
	n = reachable();
	for (uint32_t i = 0; i < 3 * CAPACITY; i++) {
		a = net_ip_from_v4(rte_cpu_to_be_32(0xc6336400 + i));
		if (net_neigh_set_static(w.t, &a, 5, &mac) != 0)
			break;
		net_neigh_put(net_neigh_find(w.t, &a, 5));
	}
	ck_assert_uint_eq(counter(NET_NEIGH_N_RECYCLED), 2 * CAPACITY + 1);
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	a = ip("198.51.100.0");
	ck_assert_ptr_null(net_neigh_find(w.t, &a, 5));
	a = net_ip_from_v4(rte_cpu_to_be_32(0xc6336400 + 3 * CAPACITY - 1));
	ck_assert_ptr_nonnull(net_neigh_find(w.t, &a, 5));
	teardown();
}
END_TEST

START_TEST(neigh__full)
{
	struct net_ip a;

	setup();
	for (uint32_t i = 0; i < CAPACITY; i++) {
		a = net_ip_from_v4(rte_cpu_to_be_32(0xc6336400 + i));
		ck_assert_int_eq(net_neigh_set_static(w.t, &a, 5, &test_peer), 0);
	}
	ck_assert_ptr_null(get("192.0.2.3"));
	HEAR(arp_req_us); /* answered all the same */
	SENT(arp_rep_us);
	ck_assert_uint_eq(counter(NET_NEIGH_N_DROP_FULL), 2);
	teardown();
}
END_TEST

START_TEST(neigh__static_and_multicast)
{
	const struct rte_ether_addr group = { { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 } };
	struct net_ip a = ip("192.0.2.3"), b = ip("2001:db8::3");
	struct net_neigh *n;

	setup();
	ck_assert_int_eq(net_neigh_set_static(w.t, &b, 0, &test_gw), 0);
	HEAR(ns_us);
	check(net_neigh_find(w.t, &b, 0), NET_NEIGH_REACHABLE, &test_gw);
	ck_assert_int_eq(net_neigh_set_static(w.t, &a, 0, &test_peer), 0);
	n = get("192.0.2.3");
	HEAR(arp_gratuitous);
	HEAR(arp_req_us);
	net_neigh_suspect(n);
	w.n_sent = 0;
	wait_ns(1000 * SEC);
	SENT_NOTHING();
	check(n, NET_NEIGH_REACHABLE, &test_peer);
	n = get("239.1.2.3");
	check(n, NET_NEIGH_REACHABLE, &group);
	wait_ns(1000 * SEC);
	check(n, NET_NEIGH_REACHABLE, &group);
	SENT_NOTHING();
	teardown();
}
END_TEST

/* Four wait, the oldest gives way, all leave with the MAC and in order. */
START_TEST(neigh__pending)
{
	struct rte_mempool *mp = test_pool();
	struct rte_mbuf *m[6];
	struct net_neigh *n;

	setup();
	n = get("192.0.2.3");
	for (unsigned int i = 0; i < 6; i++) {
		m[i] = pool_frame(mp, v_out4, sizeof(v_out4));
		memset(rte_pktmbuf_mtod(m[i], void *), 0, 6);
		net_neigh_queue(n, m[i]);
	}
	ck_assert_uint_eq(w.n_released, 0);
	ck_assert_uint_eq(counter(NET_NEIGH_N_DROP_PENDING), 2);
	ck_assert_uint_eq(rte_mempool_in_use_count(mp), 4);
	HEAR(arp_peer_is);
	ck_assert_uint_eq(w.n_released, 4);
	for (unsigned int i = 0; i < 4; i++) {
		ck_assert_ptr_eq(w.released[i], m[i + 2]);
		ck_assert_mem_eq(rte_pktmbuf_mtod(m[i + 2], void *), v_out4, sizeof(v_out4));
	}
	net_neigh_queue(n, pool_frame(mp, v_out4, sizeof(v_out4)));
	ck_assert_uint_eq(w.n_released, 5);
	rte_pktmbuf_free_bulk(w.released, w.n_released);
	/* What waits for one that never answers is freed, and at the end all is. */
	n = get("192.0.2.4");
	net_neigh_queue(n, pool_frame(mp, v_out4, sizeof(v_out4)));
	for (unsigned int i = 0; i < 3; i++)
		wait_ns(SEC);
	check(n, NET_NEIGH_FAILED, NULL);
	ck_assert_uint_eq(rte_mempool_in_use_count(mp), 0);
	net_neigh_queue(n, pool_frame(mp, v_out4, sizeof(v_out4)));
	ck_assert_uint_eq(rte_mempool_in_use_count(mp), 0);
	net_neigh_queue(get("192.0.2.5"), pool_frame(mp, v_out4, sizeof(v_out4)));
	teardown();
	ck_assert_uint_eq(rte_mempool_in_use_count(mp), 0);
}
END_TEST

START_TEST(neigh__deadline)
{
	struct net_neigh *n;

	setup();
	ck_assert_uint_eq(net_neigh_next_deadline(w.t, w.now), UINT64_MAX);
	n = reachable();
	/* Held: marks of workers are looked for ten times a second. */
	ck_assert_uint_eq(net_neigh_next_deadline(w.t, w.now), w.now + SEC / 10);
	net_neigh_put(n);
	ck_assert_uint_eq(net_neigh_next_deadline(w.t, w.now), w.now + 30 * SEC);
	wait_ns(30 * SEC);
	ck_assert_uint_eq(net_neigh_next_deadline(w.t, w.now), UINT64_MAX);
	teardown();
}
END_TEST

static void
count(void *arg, const struct net_neigh *n, uint32_t refs)
{
	(void)n;
	*(uint32_t *)arg += refs + 100;
}

START_TEST(neigh__walk)
{
	uint32_t sum = 0;

	setup();
	get("192.0.2.3");
	get("192.0.2.3");
	HEAR(ns_us);
	net_neigh_walk(w.t, count, &sum);
	ck_assert_uint_eq(sum, 202);
	teardown();
}
END_TEST

UNIT_MAIN("net_neigh", neigh__resolves4, neigh__resolves6, neigh__fails, neigh__probe_fails,
	neigh__mac_changes, neigh__na_rules, neigh__answers, neigh__malformed, neigh__conflict,
	neigh__scan, neigh__recycles, neigh__full, neigh__static_and_multicast, neigh__pending,
	neigh__deadline, neigh__walk)
