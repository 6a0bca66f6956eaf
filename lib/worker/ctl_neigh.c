/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting until a neighbour's MAC is known. A resolution is of the share of the uid whose request
 * began it, until the neighbour table says how it ended, whoever still waits for it: the table has
 * room for so many at a time, and requests of a uid that has used up its share stand in line.
 * What the table says is noted where it says it, for all who wait at once, since it must not be
 * entered again there, and told by ctl_neigh_tell(), some in each turn of the control thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "ctl_priv.h"

#define GRID_NS UINT64_C(10000000) /* time limits are looked at so often at most */

/* The table's account of a neighbour that is being resolved. */
struct ctl_resolution {
	struct ctl_map_node node; /* by the neighbour's address */
	TAILQ_ENTRY(ctl_resolution) link;
	struct net_neigh *neigh; /* referenced */
	struct ctl_user *user;	 /* whose share; NULL: a worker's QPs asked for it, or given back */
	struct ctl_neigh_waits waits;
};

static struct ctl_resolution *
resolution_of(struct worker_device *d, const struct net_neigh *n)
{
	return (struct ctl_resolution *)ctl_map_find(&d->resolutions, (uintptr_t)n);
}

static struct ctl_resolution *
resolution_new(struct worker_device *d, struct net_neigh *n, struct ctl_user *u)
{
	struct ctl_resolution *r = calloc(1, sizeof(*r));

	if (r == NULL || ctl_map_add(&d->resolutions, &r->node, (uintptr_t)n) < 0) {
		free(r);
		return NULL;
	}
	net_neigh_ref(n);
	r->neigh = n;
	r->user = u;
	if (u != NULL)
		u->resolving++;
	ctl_neigh_waits_init(&r->waits, -EINPROGRESS);
	TAILQ_INSERT_TAIL(&d->resolving, r, link);
	return r;
}

static void
resolution_free(struct ctl_resolution *r)
{
	net_neigh_put(r->neigh);
	free(r);
}

/* ---- waits ---------- */

void
ctl_neigh_waits_init(struct ctl_neigh_waits *l, int status)
{
	TAILQ_INIT(&l->all);
	l->status = status;
}

static void
wait_move(struct ctl_neigh_wait *w, struct ctl_neigh_waits *to)
{
	TAILQ_REMOVE(&w->list->all, w, link);
	w->list = to;
	TAILQ_INSERT_TAIL(&to->all, w, link);
}

static int
wait_add(struct ctl_client *c, struct ctl_neigh_wait *w, struct ctl_neigh_waits *list)
{
	struct worker_device *d = c->dev;

	w->user = c->user;
	w->list = list;
	TAILQ_INSERT_TAIL(&list->all, w, link);
	if (w->due == 0)
		return -EINPROGRESS;
	LIST_INSERT_HEAD(&d->neigh_timed, w, timed);
	if (w->due < d->neigh_due)
		d->neigh_due = w->due;
	return -EINPROGRESS;
}

static void
wait_end(struct worker_device *d, struct ctl_neigh_wait *w)
{
	TAILQ_REMOVE(&w->list->all, w, link);
	if (w->list == &d->neigh_again)
		w->user->woken--;
	w->list = NULL;
	if (w->due != 0)
		LIST_REMOVE(w, timed);
	if (w->neigh != NULL)
		net_neigh_put(w->neigh);
	w->neigh = NULL;
}

/* As many of those in line as there is room for: they try again. */
static void
line_advance(struct worker_device *d, struct ctl_user *u)
{
	while (u->resolving + u->woken < d->neigh_share && !TAILQ_EMPTY(&u->line.all)) {
		wait_move(TAILQ_FIRST(&u->line.all), &d->neigh_again);
		u->woken++;
	}
}

/* If it was its turn, it is another's now. */
void
ctl_neigh_cancel(struct worker_device *d, struct ctl_neigh_wait *w)
{
	wait_end(d, w);
	line_advance(d, w->user);
}

static void
unreachable(struct worker_device *d, const struct net_neigh *n)
{
	uint64_t l2 = atomic_load_explicit(&n->l2, memory_order_relaxed);
	char text[NET_IP_TEXT];

	LOG_LIMITED(&d->unreachable_told, ctl_log, NOTICE,
		"no host answers for %s on port %u (neighbour %s)", net_ip_format(&n->ip, text),
		n->port, net_neigh_state_name(net_neigh_l2_state(l2)));
}

/* ---- asking ---------- */

int
ctl_neigh_get(struct ctl_client *c, struct net_neigh_table *t, const struct net_ip *ip,
	uint16_t vid, struct net_neigh **out)
{
	struct worker_device *d = c->dev;
	struct net_neigh *n = net_neigh_find(t, ip, vid);
	unsigned int state = n != NULL ? net_neigh_l2_state(atomic_load(&n->l2)) : NET_NEIGH_NONE;
	bool begins = state == NET_NEIGH_NONE || state == NET_NEIGH_FAILED;

	if (begins && c->user->resolving >= d->neigh_share)
		return -EAGAIN;
	n = net_neigh_get(t, ip, vid, ctl_now(d));
	if (n == NULL)
		return -ENOMEM;
	state = net_neigh_l2_state(atomic_load(&n->l2));
	if (begins && state == NET_NEIGH_INCOMPLETE && resolution_new(d, n, c->user) == NULL) {
		net_neigh_put(n);
		return -ENOMEM;
	}
	*out = n;
	return 0;
}

int
ctl_neigh_wait(struct ctl_client *c, struct net_neigh *n, struct ctl_neigh_wait *w)
{
	uint64_t l2 = atomic_load_explicit(&n->l2, memory_order_relaxed);
	struct worker_device *d = c->dev;
	struct ctl_resolution *r;

	if (net_neigh_l2_usable(l2))
		return 0;
	if (net_neigh_l2_state(l2) == NET_NEIGH_FAILED) {
		unreachable(d, n);
		return -EHOSTUNREACH;
	}
	r = resolution_of(d, n);
	if (r == NULL)
		r = resolution_new(d, n, NULL);
	if (r == NULL)
		return -ENOMEM;
	net_neigh_ref(n);
	w->neigh = n;
	return wait_add(c, w, &r->waits);
}

int
ctl_neigh_line(struct ctl_client *c, struct ctl_neigh_wait *w)
{
	w->neigh = NULL;
	return wait_add(c, w, &c->user->line);
}

/* ---- what became of it ---------- */

void
ctl_neigh_event(struct worker_device *d, const struct net_neigh *n, int status)
{
	struct ctl_resolution *r = resolution_of(d, n);

	if (r == NULL)
		return;
	ctl_map_del(&d->resolutions, &r->node);
	TAILQ_REMOVE(&d->resolving, r, link);
	TAILQ_INSERT_TAIL(&d->resolved, r, link);
	r->waits.status = status;
}

uint64_t
ctl_neigh_expire(struct worker_device *d, uint64_t now)
{
	struct ctl_neigh_wait *w;
	uint64_t next = UINT64_MAX;

	LIST_FOREACH(w, &d->neigh_timed, timed) {
		if (w->list->status != -EINPROGRESS)
			continue;
		if (w->due <= now)
			wait_move(w, &d->neigh_late);
		else if (w->due < next)
			next = w->due;
	}
	return next == UINT64_MAX || next > now + GRID_NS ? next : now + GRID_NS;
}

static void
give_back(struct worker_device *d)
{
	struct ctl_resolution *r;

	while ((r = TAILQ_FIRST(&d->resolved)) != NULL) {
		struct ctl_user *u = r->user;

		TAILQ_REMOVE(&d->resolved, r, link);
		TAILQ_INSERT_TAIL(&d->telling, r, link);
		r->user = NULL;
		if (u == NULL)
			continue;
		u->resolving--;
		line_advance(d, u);
		ctl_user_free(u);
	}
}

/* Who is to be told next: by what was found first, so that nobody comes before them for ever. */
static struct ctl_neigh_wait *
told_next(struct worker_device *d)
{
	struct ctl_neigh_wait *w;
	struct ctl_resolution *r;

	while ((r = TAILQ_FIRST(&d->telling)) != NULL) {
		w = TAILQ_FIRST(&r->waits.all);
		if (w != NULL)
			return w;
		TAILQ_REMOVE(&d->telling, r, link);
		resolution_free(r);
	}
	w = TAILQ_FIRST(&d->neigh_late.all);
	return w != NULL ? w : TAILQ_FIRST(&d->neigh_again.all);
}

bool
ctl_neigh_untold(const struct worker_device *d)
{
	return !TAILQ_EMPTY(&d->resolved) || !TAILQ_EMPTY(&d->telling) ||
		!TAILQ_EMPTY(&d->neigh_late.all) || !TAILQ_EMPTY(&d->neigh_again.all);
}

void
ctl_neigh_tell(struct worker_device *d)
{
	struct ctl_neigh_wait *w;

	give_back(d);
	for (uint32_t n = 0; n < CTL_NEIGH_TURN && (w = told_next(d)) != NULL; n++) {
		struct ctl_user *u = w->user; /* it has a client at least: whose wait this is */
		int status = w->list->status;

		if (status == -EHOSTUNREACH)
			unreachable(d, w->neigh);
		wait_end(d, w);
		w->resolved(w, status);
		line_advance(d, u);
	}
}

void
ctl_neigh_init(struct worker_device *d)
{
	TAILQ_INIT(&d->resolving);
	TAILQ_INIT(&d->resolved);
	TAILQ_INIT(&d->telling);
	LIST_INIT(&d->neigh_timed);
	ctl_neigh_waits_init(&d->neigh_late, -ETIMEDOUT);
	ctl_neigh_waits_init(&d->neigh_again, -EAGAIN);
	d->neigh_due = UINT64_MAX;
}

/* Nobody waits any more; the tables still resolve, perhaps. */
void
ctl_neigh_fini(struct worker_device *d)
{
	struct ctl_resolution *r;

	while ((r = TAILQ_FIRST(&d->resolving)) != NULL)
		ctl_neigh_event(d, r->neigh, -ENODEV);
	give_back(d);
	(void)told_next(d); /* frees them: they have no waits */
	ctl_map_fini(&d->resolutions);
}
