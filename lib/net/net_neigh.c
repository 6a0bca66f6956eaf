/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbour table and its state machine. Packets are read in
 * net_neigh_input.c and written in net_neigh_output.c. Timers: 1 s between
 * solicits and after a failure, 30 s of reachability (RFC 4861 10).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <rte_mbuf.h>

#include "net_neigh_priv.h"

/* How long a worker's mark may go unseen. */
#define POLL_NS UINT64_C(100000000)

static const char *const state_names[] = {
	[NET_NEIGH_NONE] = "none",
	[NET_NEIGH_INCOMPLETE] = "incomplete",
	[NET_NEIGH_REACHABLE] = "reachable",
	[NET_NEIGH_STALE] = "stale",
	[NET_NEIGH_FAILED] = "failed",
};
static_assert(RTE_DIM(state_names) == NET_NEIGH_STATE_COUNT, "a name for each state");

const char *
net_neigh_state_name(unsigned int state)
{
	return state < NET_NEIGH_STATE_COUNT ? state_names[state] : "unknown";
}

COUNTERS_TABLE(net_neigh_counter_desc, NET_NEIGH_COUNTERS);

const struct counter *
net_neigh_counters(const struct net_neigh_table *t)
{
	return t->counter;
}

static void
move(struct neigh_entry *e, enum net_neigh_list list)
{
	struct net_neigh_table *t = e->n.table;

	TAILQ_REMOVE(&t->list[e->list], e, on_list);
	e->list = (uint8_t)list;
	TAILQ_INSERT_TAIL(&t->list[list], e, on_list);
}

static void
wait_for(struct neigh_entry *e, enum net_neigh_list list, uint64_t deadline)
{
	e->deadline = deadline;
	move(e, list);
}

/* The one writer of l2. Workers load it relaxed: it says all in one word. */
static void
set_l2(struct neigh_entry *e, uint64_t l2)
{
	struct net_neigh_table *t = e->n.table;

	t->n_incomplete -= neigh_state(e) == NET_NEIGH_INCOMPLETE;
	t->n_incomplete += net_neigh_l2_state(l2) == NET_NEIGH_INCOMPLETE;
	atomic_store_explicit(&e->n.l2, l2, memory_order_relaxed);
}

static void
set_state(struct neigh_entry *e, enum net_neigh_state state)
{
	set_l2(e, (neigh_l2(e) & NET_NEIGH_MAC_MASK) | (uint64_t)state << 48);
}

static void
clear_hint(struct neigh_entry *e)
{
	atomic_store_explicit(&e->n.hint, 0, memory_order_relaxed);
}

void
net_neigh_mark(struct net_neigh *n, uint8_t hint)
{
	if (atomic_load_explicit(&n->hint, memory_order_relaxed) >= hint)
		return;
	atomic_store_explicit(&n->hint, hint, memory_order_relaxed);
	/* Pairs with the exchange in take_hints(). */
	atomic_store_explicit(&n->table->attention, 1, memory_order_release);
}

static void
event(struct neigh_entry *e, enum net_neigh_event ev)
{
	const struct net_neigh_ops *ops = &e->n.table->ops;
	struct rte_ether_addr mac = net_neigh_l2_mac(neigh_l2(e));

	ops->event(ops->ctx, ev, &e->n, &e->n.ip, &mac);
}

static void
drop_pending(struct neigh_entry *e)
{
	counter_add(&e->n.table->counter[NET_NEIGH_N_DROP_PENDING], e->n_pending);
	rte_pktmbuf_free_bulk(e->pending, e->n_pending);
	e->n_pending = 0;
}

static void
release(struct neigh_entry *e, struct rte_mbuf **m, uint16_t n)
{
	const struct net_neigh_ops *ops = &e->n.table->ops;
	uint64_t l2 = neigh_l2(e);
	uint16_t i;

	for (i = 0; i < n; i++)
		memcpy(rte_pktmbuf_mtod(m[i], void *), &l2, RTE_ETHER_ADDR_LEN);
	ops->release(ops->ctx, e->n.port, m, n);
}

static struct neigh_bucket *
bucket_of(const struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid)
{
	return &t->bucket[net_ip_hash(ip, vid) & t->bucket_mask];
}

struct net_neigh_table *
net_neigh_table_new(const struct net_iface *iface, uint32_t capacity,
	const struct net_neigh_ops *ops)
{
	struct net_neigh_table *t = calloc(1, sizeof(*t));
	uint32_t i;

	if (t == NULL)
		return NULL;
	t->iface = iface;
	t->ops = *ops;
	t->capacity = capacity;
	t->bucket_mask = rte_align32pow2(capacity) - 1;
	t->bucket = calloc(t->bucket_mask + 1u, sizeof(*t->bucket));
	t->entry = calloc(capacity, sizeof(*t->entry));
	if (capacity == 0 || t->bucket == NULL || t->entry == NULL) {
		free(t->bucket);
		free(t->entry);
		free(t);
		return NULL;
	}
	for (i = 0; i < NEIGH_LISTS; i++)
		TAILQ_INIT(&t->list[i]);
	TAILQ_INIT(&t->unref);
	for (i = 0; i < capacity; i++) {
		t->entry[i].n.table = t;
		TAILQ_INSERT_TAIL(&t->list[NEIGH_FREE], &t->entry[i], on_list);
	}
	return t;
}

void
net_neigh_table_free(struct net_neigh_table *t)
{
	uint32_t i;

	if (t == NULL)
		return;
	for (i = 0; i < t->capacity; i++)
		drop_pending(&t->entry[i]);
	free(t->bucket);
	free(t->entry);
	free(t);
}

struct net_neigh *
net_neigh_find(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid)
{
	struct neigh_entry *e;

	LIST_FOREACH(e, bucket_of(t, ip, vid), hash)
		if (e->n.vid == vid && net_ip_eq(&e->n.ip, ip))
			return &e->n;
	return NULL;
}

static void
recycle(struct neigh_entry *e)
{
	struct net_neigh_table *t = e->n.table;

	drop_pending(e);
	set_l2(e, 0);
	LIST_REMOVE(e, hash);
	TAILQ_REMOVE(&t->unref, e, unref);
	move(e, NEIGH_FREE);
	neigh_count(t, NET_NEIGH_N_RECYCLED);
}

struct neigh_entry *
net_neigh_create(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid)
{
	struct neigh_entry *e;

	if (TAILQ_EMPTY(&t->list[NEIGH_FREE]) && !TAILQ_EMPTY(&t->unref))
		recycle(TAILQ_FIRST(&t->unref));
	e = TAILQ_FIRST(&t->list[NEIGH_FREE]);
	if (e == NULL) {
		neigh_count(t, NET_NEIGH_N_DROP_FULL);
		return NULL;
	}
	e->n.ip = *ip;
	e->n.vid = vid;
	e->n.port = net_iface_get(t->iface)->port;
	e->fixed = false;
	e->solicits = 0;
	clear_hint(e);
	LIST_INSERT_HEAD(bucket_of(t, ip, vid), e, hash);
	TAILQ_INSERT_TAIL(&t->unref, e, unref);
	move(e, NEIGH_IDLE);
	return e;
}

void
net_neigh_ref(struct net_neigh *n)
{
	struct neigh_entry *e = neigh_entry_of(n);

	if (e->refs++ == 0) {
		TAILQ_REMOVE(&n->table->unref, e, unref);
		n->table->n_referenced++;
	}
}

void
net_neigh_put(struct net_neigh *n)
{
	struct neigh_entry *e = neigh_entry_of(n);

	if (--e->refs == 0) {
		TAILQ_INSERT_TAIL(&n->table->unref, e, unref);
		n->table->n_referenced--;
	}
}

static void
solicit_again(struct neigh_entry *e, bool unicast, uint64_t now)
{
	e->solicits++;
	e->last_solicit = now;
	wait_for(e, NEIGH_RETRANS, now + NET_NEIGH_RETRANS_NS);
	net_neigh_solicit(e, unicast);
}

/* Resolve from scratch, unless too many are in doubt already. */
static bool
start(struct neigh_entry *e, uint64_t now)
{
	struct net_neigh_table *t = e->n.table;

	if (t->n_incomplete >= RTE_MAX(1u, t->capacity / 4)) {
		neigh_count(t, NET_NEIGH_N_DROP_INCOMPLETE);
		clear_hint(e); /* so that the next use is noticed */
		return false;
	}
	set_l2(e, (uint64_t)NET_NEIGH_INCOMPLETE << 48);
	e->solicits = 0;
	solicit_again(e, false, now);
	return true;
}

static void
fail(struct neigh_entry *e, uint64_t now)
{
	set_l2(e, (uint64_t)NET_NEIGH_FAILED << 48);
	clear_hint(e);
	drop_pending(e);
	wait_for(e, NEIGH_RETRANS, now + NET_NEIGH_RETRANS_NS);
	neigh_count(e->n.table, NET_NEIGH_N_FAILED);
	event(e, NET_NEIGH_LOST);
}

static struct neigh_entry *
get_new(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid, uint64_t now)
{
	struct neigh_entry *e = net_neigh_create(t, ip, vid);
	struct rte_ether_addr mac;

	if (e == NULL)
		return NULL;
	if (net_ip_is_multicast(ip)) {
		mac = net_ip_multicast_mac(ip);
		e->fixed = true;
		set_l2(e, net_neigh_l2_pack(&mac, NET_NEIGH_REACHABLE));
	} else if (!start(e, now)) {
		recycle(e);
		return NULL;
	}
	return e;
}

struct net_neigh *
net_neigh_get(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid, uint64_t now_ns)
{
	struct net_neigh *n = net_neigh_find(t, ip, vid);
	struct neigh_entry *e;

	if (n == NULL) {
		e = get_new(t, ip, vid, now_ns);
		if (e == NULL)
			return NULL;
		n = &e->n;
	} else {
		e = neigh_entry_of(n);
		if (neigh_state(e) == NET_NEIGH_FAILED && e->list == NEIGH_IDLE)
			start(e, now_ns);
	}
	net_neigh_ref(n);
	return n;
}

int
net_neigh_set_static(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid,
	const struct rte_ether_addr *mac)
{
	struct net_neigh *n = net_neigh_find(t, ip, vid);
	struct neigh_entry *e = n != NULL ? neigh_entry_of(n) : net_neigh_create(t, ip, vid);

	if (e == NULL)
		return -ENOSPC;
	if (!e->fixed)
		net_neigh_ref(&e->n); /* the configuration's own */
	net_neigh_learn(e, mac, NET_NEIGH_REACHABLE, 0);
	e->fixed = true;
	move(e, NEIGH_IDLE);
	return 0;
}

void
net_neigh_learn(struct neigh_entry *e, const struct rte_ether_addr *mac,
	enum net_neigh_state state, uint64_t now_ns)
{
	struct net_neigh_table *t = e->n.table;
	uint64_t was = neigh_l2(e), is = net_neigh_l2_pack(mac, state);
	struct rte_mbuf *m[NET_NEIGH_PENDING];
	uint16_t n = e->n_pending;

	set_l2(e, is);
	clear_hint(e);
	e->solicits = 0;
	if (state == NET_NEIGH_REACHABLE)
		wait_for(e, NEIGH_REACH, now_ns + NET_NEIGH_REACHABLE_NS);
	else
		move(e, NEIGH_IDLE);
	memcpy(m, e->pending, n * sizeof(m[0]));
	e->n_pending = 0;
	if (n != 0)
		release(e, m, n);
	if (!net_neigh_l2_usable(was)) {
		neigh_count(t, NET_NEIGH_N_RESOLVED);
		event(e, NET_NEIGH_RESOLVED);
	} else if (((was ^ is) & NET_NEIGH_MAC_MASK) != 0) {
		neigh_count(t, NET_NEIGH_N_MAC_CHANGES);
		event(e, NET_NEIGH_CHANGED);
	}
}

void
net_neigh_queue(struct net_neigh *n, struct rte_mbuf *m)
{
	struct neigh_entry *e = neigh_entry_of(n);
	uint64_t l2 = neigh_l2(e);

	if (net_neigh_l2_usable(l2)) {
		net_neigh_use(n);
		release(e, &m, 1);
		return;
	}
	if (net_neigh_l2_state(l2) != NET_NEIGH_INCOMPLETE) {
		net_neigh_mark(n, 1);
		neigh_count(n->table, NET_NEIGH_N_DROP_PENDING);
		rte_pktmbuf_free(m);
		return;
	}
	/* The newest replaces the oldest (RFC 4861 7.2.2). */
	if (e->n_pending == NET_NEIGH_PENDING) {
		neigh_count(n->table, NET_NEIGH_N_DROP_PENDING);
		rte_pktmbuf_free(e->pending[0]);
		e->n_pending--;
		memmove(e->pending, e->pending + 1, e->n_pending * sizeof(e->pending[0]));
	}
	e->pending[e->n_pending++] = m;
}

/*
 * A worker's mark on an entry. Those that RETRANS holds keep it: being asked
 * about already, or held down until the second is over.
 */
static void
take_hint(struct neigh_entry *e, uint8_t hint, uint64_t now)
{
	if (e->fixed || e->list == NEIGH_FREE)
		return;
	if (e->list == NEIGH_RETRANS) {
		/* A suspect is not worth more unicast probes. */
		if (hint == 2 && neigh_state(e) == NET_NEIGH_STALE)
			e->solicits = RTE_MAX(e->solicits, (uint8_t)NET_NEIGH_SOLICITS);
		return;
	}
	if (neigh_state(e) == NET_NEIGH_FAILED) {
		start(e, now);
		return;
	}
	if (hint < 2 && neigh_state(e) == NET_NEIGH_REACHABLE) {
		clear_hint(e);
		return;
	}
	if (hint == 2 && now - e->last_solicit < NET_NEIGH_RETRANS_NS) {
		/* Asked less than a second ago: look again later. */
		atomic_store_explicit(&e->n.table->attention, 1, memory_order_relaxed);
		return;
	}
	set_state(e, NET_NEIGH_STALE);
	/* A suspect does not get the unicast half of the probes. */
	e->solicits = hint == 2 ? NET_NEIGH_SOLICITS : 0;
	solicit_again(e, hint != 2, now);
}

/* Rare, so it may look at every entry. Pairs with net_neigh_mark(). */
static void
take_hints(struct net_neigh_table *t, uint64_t now)
{
	uint8_t hint;
	uint32_t i;

	if (atomic_exchange_explicit(&t->attention, 0, memory_order_acquire) == 0)
		return;
	for (i = 0; i < t->capacity; i++) {
		hint = atomic_load_explicit(&t->entry[i].n.hint, memory_order_relaxed);
		if (hint != 0)
			take_hint(&t->entry[i], hint, now);
	}
}

static void
retrans_due(struct neigh_entry *e, uint64_t now)
{
	switch (neigh_state(e)) {
	case NET_NEIGH_INCOMPLETE:
		if (e->solicits >= NET_NEIGH_SOLICITS)
			fail(e, now);
		else
			solicit_again(e, false, now);
		return;
	case NET_NEIGH_STALE:
		if (e->solicits >= 2 * NET_NEIGH_SOLICITS)
			fail(e, now);
		else
			solicit_again(e, e->solicits < NET_NEIGH_SOLICITS, now);
		return;
	default: /* FAILED, the hold-down is over: used meanwhile? */
		move(e, NEIGH_IDLE);
		if (atomic_load_explicit(&e->n.hint, memory_order_relaxed) != 0 && e->refs != 0)
			start(e, now);
		return;
	}
}

static struct neigh_entry *
first_due(struct net_neigh_table *t, enum net_neigh_list list, uint64_t now)
{
	struct neigh_entry *e = TAILQ_FIRST(&t->list[list]);

	return e != NULL && e->deadline <= now ? e : NULL;
}

void
net_neigh_tick(struct net_neigh_table *t, uint64_t now_ns)
{
	struct neigh_entry *e;

	take_hints(t, now_ns);
	while ((e = first_due(t, NEIGH_RETRANS, now_ns)) != NULL)
		retrans_due(e, now_ns);
	while ((e = first_due(t, NEIGH_REACH, now_ns)) != NULL) {
		set_state(e, NET_NEIGH_STALE);
		move(e, NEIGH_IDLE);
	}
}

uint64_t
net_neigh_next_deadline(const struct net_neigh_table *t, uint64_t now_ns)
{
	const struct neigh_entry *a = TAILQ_FIRST(&t->list[NEIGH_RETRANS]);
	const struct neigh_entry *b = TAILQ_FIRST(&t->list[NEIGH_REACH]);
	uint64_t due = t->n_referenced != 0 ? now_ns + POLL_NS : UINT64_MAX;

	if (a != NULL)
		due = RTE_MIN(due, a->deadline);
	if (b != NULL)
		due = RTE_MIN(due, b->deadline);
	return due;
}

void
net_neigh_walk(const struct net_neigh_table *t,
	void (*fn)(void *arg, const struct net_neigh *n, uint32_t refs), void *arg)
{
	uint32_t i;

	for (i = 0; i < t->capacity; i++)
		if (t->entry[i].list != NEIGH_FREE)
			fn(arg, &t->entry[i].n, t->entry[i].refs);
}
