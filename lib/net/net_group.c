/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port's groups and their timers. A link is a VLAN and a family on which the port has an address:
 * it has a querier's version, and a timer of the answer to a query about all groups. A group has a
 * timer of its own for changes to be told again, and one for the answer to a query about it; each
 * goes with the links that it is for, since every link has a querier and members of its own.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base_rng.h"
#include "net_group.h"
#include "net_iface.h"
#include "net_igmp.h"
#include "net_parse.h"

#define NEVER UINT64_MAX
#define MS UINT64_C(1000000)
#define CHANGE_MS 1000	     /* RFC 3376 8.11, RFC 3810 9.11 */
#define CHANGE_OLD_MS 10000  /* RFC 2236 8.10, RFC 2710 7.10 */
#define INTERVAL_S 125	     /* of a querier that does not tell: RFC 3376 8.2 */
#define ANSWER_MIN_MS 100    /* that answers are spread over, whatever a querier wants */
#define LINKS (2 * NET_IFACE_ADDRS)
#define LEFT_MAX 64u	     /* groups whose leave is to be told again */
#define TICK_REPORTS 32u     /* about single groups; what else is due comes a little later */
#define TICK_MS 10
#define BUCKETS 256u

static_assert(NET_IFACE_ADDRS <= 64, "a family's links have a bit each");

struct group {
	struct group *next;  /* in its bucket */
	TAILQ_ENTRY(group) of_left; /* if left */
	struct net_ip ip;
	bool left;
	uint32_t joins;
	uint8_t changes_left; /* how often the last change is to be told */
	uint64_t change_at, answer_at;
	uint64_t change_links, answer_links; /* their bits */
};

struct link {
	uint64_t bit; /* nobody else's of the family while there is this link */
	uint16_t vid;
	bool v6;
	uint64_t answer_at;
	uint64_t old_until[3]; /* by version: a querier of version 1, of 2, was heard */
};

struct net_groups {
	const struct net_iface *iface;
	struct net_group_ops ops;
	uint16_t port;
	uint32_t num_left, num_links;
	uint32_t cursor;   /* bucket where a tick begins */
	uint32_t tick_sent; /* reports about groups, in this tick */
	uint64_t due;
	struct rng rng;
	struct counter counter[NET_GROUP_COUNTER_COUNT];
	struct link link[LINKS];
	struct group *bucket[BUCKETS];
	TAILQ_HEAD(, group) left; /* by age, the oldest first */
	/* a report being filled */
	struct net_igmp_group record[NET_IGMP_RECORDS];
	uint32_t num_records;
};

COUNTERS_TABLE(net_group_counter_desc, NET_GROUP_COUNTERS);

static void
count(struct net_groups *t, enum net_group_counter c)
{
	counter_inc(&t->counter[c]);
}

const struct counter *
net_groups_counters(const struct net_groups *t)
{
	return t->counter;
}

struct net_groups *
net_groups_new(const struct net_iface *iface, uint16_t port, uint64_t seed,
	const struct net_group_ops *ops)
{
	struct net_groups *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->iface = iface;
	t->port = port;
	t->ops = *ops;
	t->due = NEVER;
	TAILQ_INIT(&t->left);
	rng_seed(&t->rng, seed);
	return t;
}

void
net_groups_free(struct net_groups *t)
{
	for (uint32_t i = 0; t != NULL && i < BUCKETS; i++)
		while (t->bucket[i] != NULL) {
			struct group *g = t->bucket[i];

			t->bucket[i] = g->next;
			free(g);
		}
	free(t);
}

static uint64_t
soon(struct net_groups *t, uint64_t now, uint32_t max_ms)
{
	return now + 1 + rng_below(&t->rng, max_ms * 1000) * UINT64_C(1000);
}

static void
arm(struct net_groups *t, uint64_t *timer, uint64_t when)
{
	*timer = when;
	if (when < t->due)
		t->due = when;
}

/* ---- links ---------- */

static struct link *
link_find(struct net_groups *t, uint16_t vid, bool v6)
{
	for (uint32_t i = 0; i < t->num_links; i++)
		if (t->link[i].vid == vid && t->link[i].v6 == v6)
			return &t->link[i];
	return NULL;
}

static uint64_t
link_bits(const struct net_groups *t, bool v6)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < t->num_links; i++)
		if (t->link[i].v6 == v6)
			bits |= t->link[i].bit;
	return bits;
}

/** Nothing is to be told there any more. */
static void
group_drop_links(struct group *g, uint64_t bits)
{
	g->answer_links &= ~bits;
	if (g->answer_links == 0)
		g->answer_at = NEVER;
	g->change_links &= ~bits;
	if (g->change_links == 0) {
		g->change_at = NEVER;
		g->changes_left = 0;
	}
}

static void
links_gone(struct net_groups *t, bool v6, uint64_t bits)
{
	for (uint32_t i = 0; bits != 0 && i < BUCKETS; i++)
		for (struct group *g = t->bucket[i]; g != NULL; g = g->next)
			if (g->joins != 0 && net_ip_is_v4(&g->ip) != v6)
				group_drop_links(g, bits);
}

/** New links get bits that those before them left free: there are no more links than bits. */
static bool
links_number(struct net_groups *t, bool v6, uint64_t bits_were)
{
	uint64_t used = link_bits(t, v6), kept = used;

	links_gone(t, v6, bits_were & ~used);
	for (uint32_t i = 0; i < t->num_links; i++)
		if (t->link[i].v6 == v6 && t->link[i].bit == 0) {
			t->link[i].bit = ~used & (used + 1);
			used |= t->link[i].bit;
		}
	return used != kept;
}

/* The links of the addresses that there are now; what others knew is forgotten. True: new ones. */
static bool
links_follow(struct net_groups *t)
{
	const struct net_iface_view *v = net_iface_get(t->iface);
	uint64_t were4 = link_bits(t, false), were6 = link_bits(t, true);
	struct link was[LINKS];
	uint32_t num_was = t->num_links;
	bool new4;

	memcpy(was, t->link, num_was * sizeof(was[0]));
	t->num_links = 0;
	for (unsigned int i = 0; v != NULL && i < v->n_addr; i++) {
		struct link new = { .vid = v->addr[i].vid, .v6 = !net_ip_is_v4(&v->addr[i].ip),
			.answer_at = NEVER };

		if (link_find(t, new.vid, new.v6) != NULL)
			continue;
		for (uint32_t k = 0; k < num_was; k++)
			if (was[k].vid == new.vid && was[k].v6 == new.v6)
				new = was[k];
		t->link[t->num_links++] = new;
	}
	new4 = links_number(t, false, were4);
	return links_number(t, true, were6) || new4;
}

/** The oldest version that a querier of the link has spoken lately (RFC 3376 7.2.1). */
static uint8_t
link_version(const struct link *l, uint64_t now)
{
	if (l->old_until[1] > now)
		return 1;
	return l->old_until[2] > now ? 2 : 3;
}

/** What reports on a link begin with. */
static struct net_igmp_head
link_head(const struct net_groups *t, const struct link *l)
{
	const struct net_iface_view *v = net_iface_get(t->iface);
	struct net_igmp_head h = {
		.smac = v->mac,
		.vlan_tci = l->vid == 0 ? NET_VLAN_NONE : l->vid,
		.src = net_ip_link_local(&v->mac), /* RFC 3810 5.2.13 */
	};

	for (unsigned int i = 0; !l->v6 && i < v->n_addr; i++)
		if (v->addr[i].vid == l->vid && net_ip_is_v4(&v->addr[i].ip)) {
			h.src = v->addr[i].ip;
			break;
		}
	return h;
}

/* ---- reports ---------- */

static void
report_flush(struct net_groups *t, const struct link *l)
{
	uint8_t frame[NET_IGMP_FRAME_MAX];
	struct net_igmp_head h;

	if (t->num_records == 0)
		return;
	h = link_head(t, l);
	t->ops.send(t->ops.ctx, t->port, frame,
		net_igmp_emit_report(&h, t->record, t->num_records, frame));
	count(t, NET_GROUP_N_REPORTS);
	t->tick_sent++;
	t->num_records = 0;
}

static void
report_old(struct net_groups *t, const struct link *l, const struct group *g, uint8_t version,
	bool leave)
{
	struct net_igmp_head h = link_head(t, l);
	uint8_t frame[NET_IGMP_FRAME_MAX];

	if (leave && version == 1)
		return; /* it had no word for it */
	t->ops.send(t->ops.ctx, t->port, frame,
		net_igmp_emit_old(&h, &g->ip, version, leave, frame));
	count(t, NET_GROUP_N_REPORTS);
	t->tick_sent++;
}

/** Into the report under way, or at once in an older version. */
static void
report_add(struct net_groups *t, const struct link *l, const struct group *g,
	enum net_igmp_record record, uint64_t now)
{
	uint8_t version = link_version(l, now);

	if (version < 3) {
		report_old(t, l, g, version, record == NET_IGMP_TO_INCLUDE);
		return;
	}
	t->record[t->num_records++] = (struct net_igmp_group){ g->ip, record };
	if (t->num_records == NET_IGMP_RECORDS)
		report_flush(t, l);
}

static bool
of_link(const struct group *g, const struct link *l)
{
	return net_ip_is_v4(&g->ip) != l->v6;
}

/** A group on those of its links. */
static void
report_group(struct net_groups *t, const struct group *g, uint64_t links,
	enum net_igmp_record record, uint64_t now)
{
	for (uint32_t i = 0; i < t->num_links; i++) {
		if (!of_link(g, &t->link[i]) || !(links & t->link[i].bit))
			continue;
		report_add(t, &t->link[i], g, record, now);
		report_flush(t, &t->link[i]);
	}
}

/* ---- groups ---------- */

static struct group **
place(struct net_groups *t, const struct net_ip *ip)
{
	struct group **at = &t->bucket[net_ip_hash(ip, 0) % BUCKETS];

	while (*at != NULL && !net_ip_eq(&(*at)->ip, ip))
		at = &(*at)->next;
	return at;
}

/** Groups that hosts report: not all-hosts, not those within the node (RFC 3810 6). */
static bool
reportable(const struct net_ip *ip)
{
	if (net_ip_is_v4(ip))
		return net_ip_v4(ip) != RTE_BE32(0xe0000001);
	return (ip->b[1] & 0x0f) > 1 && !(net_ip_word(ip, 0) == RTE_BE64(0xff02000000000000) &&
			net_ip_word(ip, 1) == RTE_BE64(1));
}

/** Tell what has become of a group, now and again. */
static void
change(struct net_groups *t, struct group *g, uint64_t now)
{
	bool old = false;

	if (!reportable(&g->ip)) {
		g->changes_left = 0;
		return;
	}
	for (uint32_t i = 0; i < t->num_links; i++)
		old |= of_link(g, &t->link[i]) && (g->change_links & t->link[i].bit) &&
			link_version(&t->link[i], now) < 3;
	if (g->joins == 0)
		count(t, NET_GROUP_N_LEAVES);
	report_group(t, g, g->change_links,
		g->joins != 0 ? NET_IGMP_TO_EXCLUDE : NET_IGMP_TO_INCLUDE, now);
	if (g->changes_left > 0)
		g->changes_left--;
	g->change_at = NEVER;
	if (g->changes_left > 0)
		arm(t, &g->change_at, soon(t, now, old ? CHANGE_OLD_MS : CHANGE_MS));
}

/** To be told from now on, on all links. */
static void
changed(struct net_groups *t, struct group *g, uint64_t now)
{
	g->changes_left = NET_GROUP_ROBUSTNESS;
	g->change_links = link_bits(t, !net_ip_is_v4(&g->ip));
	change(t, g, now);
}

static void
left_remove(struct net_groups *t, struct group *g)
{
	if (!g->left)
		return;
	TAILQ_REMOVE(&t->left, g, of_left);
	t->num_left--;
	g->left = false;
}

static void
forget(struct net_groups *t, struct group **at)
{
	struct group *g = *at;

	left_remove(t, g);
	*at = g->next;
	free(g);
}

static void
forget_left(struct net_groups *t, struct group **at)
{
	if ((*at)->joins == 0 && (*at)->changes_left == 0)
		forget(t, at);
}

/** It stays until its leave has been told again, unless many do: then the oldest goes. */
static void
linger(struct net_groups *t, struct group *g)
{
	TAILQ_INSERT_TAIL(&t->left, g, of_left);
	g->left = true;
	if (++t->num_left > LEFT_MAX)
		forget(t, place(t, &TAILQ_FIRST(&t->left)->ip));
}

int
net_group_join(struct net_groups *t, const struct net_ip *ip, uint64_t now_ns)
{
	struct group **at = place(t, ip), *g = *at;

	if (!net_ip_is_multicast(ip))
		return -EINVAL;
	if (g == NULL) {
		g = calloc(1, sizeof(*g));
		if (g == NULL)
			return -ENOMEM;
		g->ip = *ip;
		g->change_at = g->answer_at = NEVER;
		*at = g;
	}
	if (g->joins++ != 0)
		return 0;
	left_remove(t, g);
	links_follow(t);
	changed(t, g, now_ns);
	return 1;
}

int
net_group_leave(struct net_groups *t, const struct net_ip *ip, uint64_t now_ns)
{
	struct group **at = place(t, ip), *g = *at;

	if (g == NULL || g->joins == 0)
		return -ENOENT;
	if (--g->joins != 0)
		return 0;
	links_follow(t);
	g->answer_at = NEVER;
	g->answer_links = 0;
	changed(t, g, now_ns);
	if (g->changes_left == 0)
		forget(t, at);
	else
		linger(t, g);
	return 1;
}

uint32_t
net_groups_list(const struct net_groups *t, struct net_ip *ips, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < BUCKETS; i++)
		for (const struct group *g = t->bucket[i]; g != NULL; g = g->next) {
			if (g->joins == 0)
				continue;
			if (n < max)
				ips[n] = g->ip;
			n++;
		}
	return n;
}

void
net_groups_readdress(struct net_groups *t, uint64_t now_ns)
{
	if (!links_follow(t))
		return;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct group *g = t->bucket[i]; g != NULL; g = g->next) {
			if (g->joins != 0)
				changed(t, g, now_ns);
		}
}

/* ---- queries ---------- */

/** How long an older querier is taken to be there (RFC 3376 8.12). */
static uint64_t
old_querier_ns(const struct net_igmp *q)
{
	return (NET_GROUP_ROBUSTNESS * UINT64_C(1000) * INTERVAL_S + q->max_resp_ms) * MS;
}

/** Another version is another way of speaking: what was to be said is forgotten (7.2.1). */
static void
note_version(struct net_groups *t, struct link *l, const struct net_igmp *q, uint64_t now)
{
	uint8_t was = link_version(l, now);

	if (q->version == 3)
		return;
	count(t, NET_GROUP_N_OLD_QUERIES);
	l->old_until[q->version] = now + old_querier_ns(q);
	if (link_version(l, now) == was)
		return;
	l->answer_at = NEVER;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct group *g = t->bucket[i]; g != NULL; g = g->next)
			if (of_link(g, l) && g->joins != 0)
				group_drop_links(g, l->bit);
}

/**
 * One answer is under way at a time, and keeps its delay unless that is longer than is now wanted
 * (RFC 2236 3, RFC 2710 5): else many queries would make a short one of it.
 */
static void
answer_soon(struct net_groups *t, uint64_t *timer, const struct net_igmp *q, uint64_t now)
{
	uint32_t max = q->max_resp_ms > ANSWER_MIN_MS ? q->max_resp_ms : ANSWER_MIN_MS;

	if (*timer > now + max * MS)
		arm(t, timer, soon(t, now, max));
}

/** About a group, on the link of the query alone. What other links wait for may come sooner. */
static void
answer_group(struct net_groups *t, struct group *g, const struct link *l, const struct net_igmp *q,
	uint64_t now)
{
	g->answer_links |= l->bit;
	answer_soon(t, &g->answer_at, q, now);
}

/** In older versions each group has a delay of its own: another member may answer first. */
static void
answer_each(struct net_groups *t, const struct link *l, const struct net_igmp *q, uint64_t now)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct group *g = t->bucket[i]; g != NULL; g = g->next)
			if (g->joins != 0 && of_link(g, l) && reportable(&g->ip))
				answer_group(t, g, l, q, now);
}

static void
queried(struct net_groups *t, struct link *l, const struct net_igmp *q, uint64_t now)
{
	struct group *g;

	if (net_ip_is_zero(&q->group)) {
		note_version(t, l, q, now);
		count(t, NET_GROUP_N_QUERIES);
		if (link_version(l, now) == 3)
			answer_soon(t, &l->answer_at, q, now);
		else
			answer_each(t, l, q, now);
		return;
	}
	g = *place(t, &q->group);
	if (g == NULL || g->joins == 0 || !of_link(g, l) || !reportable(&g->ip)) {
		count(t, NET_GROUP_N_IGNORED);
		return;
	}
	count(t, NET_GROUP_N_QUERIES);
	if (l->answer_at == NEVER || l->answer_at > now + q->max_resp_ms * MS)
		answer_group(t, g, l, q, now);
}

/** Somebody else has answered: in older versions that is enough (RFC 2236 3). */
static void
reported(struct net_groups *t, const struct link *l, const struct net_igmp *r, uint64_t now)
{
	struct group *g = *place(t, &r->group);

	if (g == NULL || link_version(l, now) == 3 || !(g->answer_links & l->bit))
		return;
	g->answer_links &= ~l->bit;
	if (g->answer_links == 0)
		g->answer_at = NEVER;
	count(t, NET_GROUP_N_SUPPRESSED);
}

void
net_group_input(struct net_groups *t, const struct net_pkt *p, uint64_t now_ns)
{
	struct net_igmp msg;
	struct link *l;

	links_follow(t);
	l = link_find(t, net_vlan_id(p->vlan_tci), p->v6 != 0);
	if (l == NULL || net_igmp_parse(p, &msg) != 0) {
		count(t, NET_GROUP_N_IGNORED);
		return;
	}
	if (msg.what == NET_IGMP_QUERY)
		queried(t, l, &msg, now_ns);
	else if (msg.what == NET_IGMP_REPORT)
		reported(t, l, &msg, now_ns);
}

/* ---- timers ---------- */

/** All groups of a link, in as few reports as hold them. */
static void
answer_link(struct net_groups *t, struct link *l, uint64_t now)
{
	l->answer_at = NEVER;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct group *g = t->bucket[i]; g != NULL; g = g->next)
			if (g->joins != 0 && of_link(g, l) && reportable(&g->ip))
				report_add(t, l, g, NET_IGMP_IS_EXCLUDE, now);
	report_flush(t, l);
}

static void
tick_group(struct net_groups *t, struct group *g, uint64_t now)
{
	if (g->change_at <= now)
		change(t, g, now);
	else if (g->change_at < t->due)
		t->due = g->change_at;
	if (g->answer_at <= now) {
		uint64_t links = g->answer_links;

		g->answer_at = NEVER;
		g->answer_links = 0;
		report_group(t, g, links, NET_IGMP_IS_EXCLUDE, now);
	} else if (g->answer_at < t->due) {
		t->due = g->answer_at;
	}
}

/** False: enough has been said. */
static bool
tick_bucket(struct net_groups *t, uint32_t b, uint64_t now)
{
	for (struct group **at = &t->bucket[b], *g; (g = *at) != NULL;) {
		if (t->tick_sent >= TICK_REPORTS)
			return false;
		tick_group(t, g, now);
		forget_left(t, at);
		if (*at == g)
			at = &g->next;
	}
	return true;
}

/** Where it ends early, the next tick goes on. */
static void
tick_groups(struct net_groups *t, uint64_t now)
{
	t->tick_sent = 0;
	for (uint32_t i = 0; i < BUCKETS; i++) {
		uint32_t b = (t->cursor + i) % BUCKETS;

		if (tick_bucket(t, b, now))
			continue;
		t->cursor = b;
		if (t->due > now + TICK_MS * MS)
			t->due = now + TICK_MS * MS;
		return;
	}
}

void
net_groups_tick(struct net_groups *t, uint64_t now_ns)
{
	if (now_ns < t->due)
		return;
	t->due = NEVER;
	links_follow(t);
	for (uint32_t i = 0; i < t->num_links; i++) {
		struct link *l = &t->link[i];

		if (l->answer_at <= now_ns)
			answer_link(t, l, now_ns);
		else if (l->answer_at < t->due)
			t->due = l->answer_at;
	}
	tick_groups(t, now_ns);
}

uint64_t
net_groups_next_deadline(const struct net_groups *t)
{
	return t->due;
}
