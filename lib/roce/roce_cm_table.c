/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom the connection manager knows by what: records by our communication id, by the peer's id
 * and address, by the peer's QPN and address, by our QPN; addresses; listeners by service id.
 * Chained tables of fixed size with a keyed hash, since peers choose half of the keys.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "base_siphash.h"
#include "roce_cm_priv.h"

static uint32_t
hash(const struct roce_cm *cm, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t w[3] = { a, b, c };

	return (uint32_t)siphash_words(cm->seed, w, 3);
}

static uint32_t
hash_number(const struct roce_cm *cm, uint32_t n)
{
	return hash(cm, n, 0, 0) & cm->mask;
}

/* Of a number that a peer has chosen: an id or a QPN. */
static uint32_t
hash_theirs(const struct roce_cm *cm, uint32_t n, const struct net_ip *addr, uint32_t scope)
{
	return hash(cm, (uint64_t)scope << 32 | n, net_ip_word(addr, 0), net_ip_word(addr, 1)) &
	       cm->mask;
}

static void *
buckets(const struct roce_cm *cm)
{
	/* a list's head is a pointer: zeros are an empty list */
	return calloc((size_t)cm->mask + 1, sizeof(void *));
}

int
cm_tables_create(struct roce_cm *cm)
{
	const uint32_t n = RTE_MIN(RTE_MAX(cm->cfg.max_conns / 2, 64u), 1u << 20);

	static_assert(sizeof(struct cm_conn_head) == sizeof(void *), "buckets()");
	static_assert(sizeof(struct cm_peer_head) == sizeof(void *), "buckets()");
	cm->mask = rte_align32pow2(n) - 1;
	cm->local_ids = buckets(cm);
	cm->remote_ids = buckets(cm);
	cm->remote_qpns = buckets(cm);
	cm->local_qpns = buckets(cm);
	cm->peers = buckets(cm);
	if (cm->local_ids && cm->remote_ids && cm->remote_qpns && cm->local_qpns && cm->peers)
		return 0;
	cm_tables_free(cm);
	return -ENOMEM;
}

void
cm_tables_free(struct roce_cm *cm)
{
	free(cm->local_ids);
	free(cm->remote_ids);
	free(cm->remote_qpns);
	free(cm->local_qpns);
	free(cm->peers);
}

/* ---- records ---------- */

void
cm_add_local_id(struct roce_cm_conn *c)
{
	do {
		c->cm->cfg.random(c->cm->cfg.ctx, &c->local_id, sizeof(c->local_id));
	} while (c->local_id == 0 || cm_find_local_id(c->cm, c->local_id) != NULL);
	LIST_INSERT_HEAD(&c->cm->local_ids[hash_number(c->cm, c->local_id)], c, by_local_id);
	c->in_local_id = true;
}

void
cm_del_local_id(struct roce_cm_conn *c)
{
	if (c->in_local_id)
		LIST_REMOVE(c, by_local_id);
	c->in_local_id = false;
}

struct roce_cm_conn *
cm_find_local_id(const struct roce_cm *cm, uint32_t id)
{
	struct roce_cm_conn *c;

	LIST_FOREACH(c, &cm->local_ids[hash_number(cm, id)], by_local_id)
		if (c->local_id == id)
			return c;
	return NULL;
}

/* Ids of requests and of SIDR questions are numbers of their own. */
static uint32_t
their_id_scope(uint32_t scope, bool sidr)
{
	return scope ^ (sidr ? UINT32_C(0x80000000) : 0);
}

void
cm_add_remote_id(struct roce_cm_conn *c)
{
	const uint32_t scope = their_id_scope(c->peer->scope, c->sidr);
	const uint32_t i = hash_theirs(c->cm, c->remote_id, &c->peer->addr, scope);

	LIST_INSERT_HEAD(&c->cm->remote_ids[i], c, by_remote_id);
	c->in_remote_id = true;
}

void
cm_del_remote_id(struct roce_cm_conn *c)
{
	if (c->in_remote_id)
		LIST_REMOVE(c, by_remote_id);
	c->in_remote_id = false;
}

struct roce_cm_conn *
cm_find_remote_id(const struct roce_cm *cm, uint32_t id, bool sidr, const struct net_ip *addr,
		  uint32_t scope)
{
	const uint32_t i = hash_theirs(cm, id, addr, their_id_scope(scope, sidr));
	struct roce_cm_conn *c;

	LIST_FOREACH(c, &cm->remote_ids[i], by_remote_id)
		if (c->remote_id == id && c->sidr == sidr && c->peer->scope == scope &&
		    net_ip_eq(&c->peer->addr, addr))
			return c;
	return NULL;
}

void
cm_add_remote_qpn(struct roce_cm_conn *c)
{
	const uint32_t i = hash_theirs(c->cm, c->dest_qpn, &c->peer->addr, c->peer->scope);

	LIST_INSERT_HEAD(&c->cm->remote_qpns[i], c, by_remote_qpn);
	c->in_remote_qpn = true;
}

void
cm_del_remote_qpn(struct roce_cm_conn *c)
{
	if (c->in_remote_qpn)
		LIST_REMOVE(c, by_remote_qpn);
	c->in_remote_qpn = false;
}

struct roce_cm_conn *
cm_find_remote_qpn(const struct roce_cm *cm, uint32_t qpn, const struct net_ip *addr,
		   uint32_t scope)
{
	struct roce_cm_conn *c;

	LIST_FOREACH(c, &cm->remote_qpns[hash_theirs(cm, qpn, addr, scope)], by_remote_qpn)
		if (c->dest_qpn == qpn && c->peer->scope == scope &&
		    net_ip_eq(&c->peer->addr, addr))
			return c;
	return NULL;
}

void
cm_add_local_qpn(struct roce_cm_conn *c)
{
	LIST_INSERT_HEAD(&c->cm->local_qpns[hash_number(c->cm, c->local_qpn)], c, by_local_qpn);
	c->in_local_qpn = true;
}

void
cm_del_local_qpn(struct roce_cm_conn *c)
{
	if (c->in_local_qpn)
		LIST_REMOVE(c, by_local_qpn);
	c->in_local_qpn = false;
}

struct roce_cm_conn *
cm_find_local_qpn(const struct roce_cm *cm, uint32_t qpn)
{
	struct roce_cm_conn *c;

	LIST_FOREACH(c, &cm->local_qpns[hash_number(cm, qpn)], by_local_qpn)
		if (c->local_qpn == qpn)
			return c;
	return NULL;
}

/* ---- addresses ---------- */

struct cm_peer *
cm_peer_find(const struct roce_cm *cm, const struct net_ip *addr, uint32_t scope)
{
	struct cm_peer *p;

	LIST_FOREACH(p, &cm->peers[hash_theirs(cm, 0, addr, scope)], hash)
		if (p->scope == scope && net_ip_eq(&p->addr, addr))
			return p;
	return NULL;
}

struct cm_peer *
cm_peer_get(struct roce_cm *cm, const struct net_ip *addr, uint32_t scope)
{
	struct cm_peer *p = cm_peer_find(cm, addr, scope);

	if (p == NULL) {
		p = calloc(1, sizeof(*p));
		if (p == NULL)
			return NULL;
		p->addr = *addr;
		p->scope = scope;
		LIST_INSERT_HEAD(&cm->peers[hash_theirs(cm, 0, addr, scope)], p, hash);
		cm->sizes.peers++;
	}
	p->conns++;
	return p;
}

void
cm_peer_put(struct roce_cm *cm, struct cm_peer *p)
{
	if (--p->conns)
		return;
	LIST_REMOVE(p, hash);
	free(p);
	cm->sizes.peers--;
}

/* ---- quotas ---------- */

struct roce_cm_quota *
roce_cm_quota_create(uint32_t max)
{
	struct roce_cm_quota *q = calloc(1, sizeof(*q));

	if (q) {
		q->max = max;
		q->owned = true;
	}
	return q;
}

void
roce_cm_quota_free(struct roce_cm_quota *q)
{
	if (q == NULL)
		return;
	q->owned = false;
	cm_quota_reap(q);
}

void
cm_quota_reap(struct roce_cm_quota *q)
{
	if (q && q->used == 0 && q->listeners == 0 && !q->owned)
		free(q);
}

uint32_t
roce_cm_quota_used(const struct roce_cm_quota *q)
{
	return q->used;
}

/* ---- listeners ---------- */

static struct cm_listener_head *
listener_bucket(struct roce_cm *cm, uint64_t service_id)
{
	return &cm->listeners[hash(cm, service_id, 0, 0) % CM_LISTENER_BUCKETS];
}

/* How closely a listener fits; 0: not at all. */
static unsigned int
listener_fit(const struct roce_cm_listen *l, uint64_t service_id, const struct net_ip *dst,
	     uint16_t port)
{
	const bool any = net_ip_is_zero(&l->addr), any_port = l->port == ROCE_CM_ANY_PORT;

	if (l->service_id != service_id || !(any_port || l->port == port))
		return 0;
	if (!any)
		return net_ip_eq(&l->addr, dst) ? 6 - any_port : 0;
	if (net_ip_is_v4(dst) ? l->v6_only : l->v4_only)
		return 0;
	return 1 + (l->v4_only || l->v6_only) + 2 * !any_port;
}

struct roce_cm_listener *
cm_listener_find(struct roce_cm *cm, uint64_t service_id, const struct net_ip *dst, uint16_t port)
{
	struct roce_cm_listener *l, *best = NULL;
	unsigned int best_fit = 0;

	LIST_FOREACH(l, listener_bucket(cm, service_id), hash) {
		const unsigned int fit = listener_fit(&l->l, service_id, dst, port);

		if (fit > best_fit) {
			best = l;
			best_fit = fit;
		}
	}
	return best;
}

static bool
listener_same(const struct roce_cm_listen *a, const struct roce_cm_listen *b)
{
	return a->service_id == b->service_id && net_ip_eq(&a->addr, &b->addr) &&
	       a->port == b->port && a->v4_only == b->v4_only && a->v6_only == b->v6_only;
}

int
roce_cm_listen(struct roce_cm *cm, const struct roce_cm_listen *l, struct roce_cm_listener **out)
{
	struct cm_listener_head *head = listener_bucket(cm, l->service_id);
	struct roce_cm_listener *n;

	if ((l->v4_only && l->v6_only) || !(l->rc || l->uc || l->xrc || l->sidr))
		return -EINVAL;
	LIST_FOREACH(n, head, hash)
		if (listener_same(&n->l, l))
			return -EADDRINUSE;
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return -ENOMEM;
	n->cm = cm;
	n->l = *l;
	if (n->l.backlog == 0)
		n->l.backlog = 128;
	if (l->quota)
		l->quota->listeners++;
	LIST_INIT(&n->half_open);
	LIST_INSERT_HEAD(head, n, hash);
	cm->sizes.listeners++;
	*out = n;
	return 0;
}

void
roce_cm_listener_free(struct roce_cm_listener *l)
{
	struct roce_cm_conn *c;

	if (l == NULL)
		return;
	while ((c = LIST_FIRST(&l->half_open)) != NULL) {
		LIST_REMOVE(c, of_listener);
		c->listener = NULL;
	}
	LIST_REMOVE(l, hash);
	l->cm->sizes.listeners--;
	if (l->l.quota)
		l->l.quota->listeners--;
	cm_quota_reap(l->l.quota);
	free(l);
}
