/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups: the table, and delivery (IBTA 10.5.2, A17 17.4). A packet is checked by the
 * worker that received it; each other worker with members gets one reference to it, marked so that
 * it neither checks nor hands on again, and delivers it to its own QPs. A QP that keeps the packet
 * for a while gets a reference of its own.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "roce_ud_priv.h"

#define BUCKETS 1024u /* a power of two */
#define QPNS_FIRST 4u

struct mcast_group {
	_Atomic(struct mcast_group *) next;
	struct net_ip ip;
	uint16_t port;
	uint16_t room; /* of qpn; constant */
	uint32_t num;  /* the control thread's */
	_Atomic uint32_t qpn[]; /* 0: nobody */
};

struct roce_mcast_table {
	uint32_t num;
	_Atomic(struct mcast_group *) bucket[BUCKETS];
};

/* ---- the table: control thread ---------- */

struct roce_mcast_table *
roce_mcast_table_create(void)
{
	return calloc(1, sizeof(struct roce_mcast_table));
}

static struct mcast_group *
group_load(const _Atomic(struct mcast_group *) *at)
{
	return atomic_load_explicit(at, memory_order_acquire);
}

void
roce_mcast_table_free(struct roce_mcast_table *t)
{
	struct mcast_group *g, *next;

	for (uint32_t i = 0; t && i < BUCKETS; i++)
		for (g = group_load(&t->bucket[i]); g != NULL; g = next) {
			next = group_load(&g->next);
			free(g);
		}
	free(t);
}

static uint32_t
bucket_of(uint16_t port, const struct net_ip *ip)
{
	return net_ip_hash(ip, port) & (BUCKETS - 1);
}

/** Where the pointer to the group is, or the NULL behind the last. */
static _Atomic(struct mcast_group *) *
group_place(struct roce_mcast_table *t, uint16_t port, const struct net_ip *ip)
{
	_Atomic(struct mcast_group *) *at = &t->bucket[bucket_of(port, ip)];
	struct mcast_group *g;

	while ((g = group_load(at)) != NULL && (g->port != port || !net_ip_eq(&g->ip, ip)))
		at = &g->next;
	return at;
}

/** A group like `old` (or an empty one) with more room. */
static struct mcast_group *
group_new(uint16_t port, const struct net_ip *ip, const struct mcast_group *old)
{
	uint32_t room = old ? old->room * 2u : QPNS_FIRST;
	struct mcast_group *g;

	if (room > ROCE_MCAST_QPS)
		room = ROCE_MCAST_QPS;
	g = calloc(1, sizeof(*g) + room * sizeof(g->qpn[0]));
	if (g == NULL)
		return NULL;
	g->ip = *ip;
	g->port = port;
	g->room = (uint16_t)room;
	for (uint32_t i = 0; old && i < old->room; i++)
		atomic_init(&g->qpn[i], atomic_load_explicit(&old->qpn[i], memory_order_relaxed));
	g->num = old ? old->num : 0;
	return g;
}

static uint32_t
qpn_place(const struct mcast_group *g, uint32_t qpn)
{
	uint32_t i = 0;

	while (i < g->room && atomic_load_explicit(&g->qpn[i], memory_order_relaxed) != qpn)
		i++;
	return i;
}

int
roce_mcast_attach(struct roce_mcast_table *t, uint16_t port, const struct net_ip *group,
		  uint32_t qpn, void **garbage)
{
	_Atomic(struct mcast_group *) *at = group_place(t, port, group);
	struct mcast_group *old = group_load(at), *g = old;

	*garbage = NULL;
	if (old != NULL && qpn_place(old, qpn) < old->room)
		return -EEXIST;
	if (old == NULL ? t->num == ROCE_MCAST_GROUPS : old->num == ROCE_MCAST_QPS)
		return -ENOSPC;
	if (old == NULL || old->num == old->room) {
		g = group_new(port, group, old);
		if (g == NULL)
			return -ENOMEM;
	}
	atomic_store_explicit(&g->qpn[qpn_place(g, 0)], qpn, memory_order_relaxed);
	g->num++;
	if (g == old)
		return (int)g->num;
	if (old != NULL)
		atomic_init(&g->next, group_load(&old->next));
	else
		t->num++;
	/* Readers see all of it or the old one, whose own link stays as it is. */
	atomic_store_explicit(at, g, memory_order_release);
	*garbage = old;
	return (int)g->num;
}

int
roce_mcast_detach(struct roce_mcast_table *t, uint16_t port, const struct net_ip *group,
		  uint32_t qpn, void **garbage)
{
	_Atomic(struct mcast_group *) *at = group_place(t, port, group);
	struct mcast_group *g = group_load(at);
	uint32_t i = g ? qpn_place(g, qpn) : 0;

	*garbage = NULL;
	if (g == NULL || i == g->room)
		return -ENOENT;
	atomic_store_explicit(&g->qpn[i], 0, memory_order_relaxed);
	if (--g->num != 0)
		return (int)g->num;
	atomic_store_explicit(at, group_load(&g->next), memory_order_release);
	t->num--;
	*garbage = g;
	return 0;
}

uint32_t
roce_mcast_groups(const struct roce_mcast_table *t)
{
	return t->num;
}

/* ---- workers ---------- */

static const struct mcast_group *
group_find(const struct roce_mcast_table *t, uint16_t port, const struct net_ip *ip)
{
	const struct mcast_group *g = group_load(&t->bucket[bucket_of(port, ip)]);

	while (g != NULL && (g->port != port || !net_ip_eq(&g->ip, ip)))
		g = group_load(&g->next);
	return g;
}

bool
roce_mcast_has(const struct roce_mcast_table *t, uint16_t port, const struct net_ip *group)
{
	return t != NULL && group_find(t, port, group) != NULL;
}

/**
 * Another reference to the packet's bytes. Not rte_pktmbuf_clone(): the packet may be linked to
 * others that a QP keeps.
 */
static struct rte_mbuf *
mcast_reference(struct roce *r, struct rte_mbuf *m)
{
	struct rte_mbuf *ref = rte_pktmbuf_alloc(r->cfg.tx_pool);

	if (ref != NULL)
		rte_pktmbuf_attach(ref, m);
	else
		roce_count(r, ROCE_C_MCAST_DROPPED);
	return ref;
}

/** To a QP of ours. @return whether it has kept rx->m. */
static bool
mcast_to_qp(struct roce *r, struct roce_rx *rx, struct verbs_qp *qp)
{
	rx->qp = (struct roce_qp *)qp;
	if (!roce_rx_admit(r, rx))
		return false;
	roce_count(r, ROCE_C_MCAST_DELIVERED);
	return roce_rx_take(r, rx) == ROCE_RX_KEPT;
}

static void
mcast_to_worker(struct roce *r, uint32_t worker, struct rte_mbuf *m)
{
	struct rte_mbuf *ref = mcast_reference(r, m);

	if (ref == NULL)
		return;
	ref->ol_flags |= r->checked;
	if (r->cfg.handoff && r->cfg.handoff(r->cfg.ctx, worker, ref)) {
		roce_count(r, ROCE_C_RX_HANDOFF);
		return;
	}
	roce_count(r, ROCE_C_HANDOFF_FULL);
	rte_pktmbuf_free(ref);
}

/** To our members, the workers of the others are told. */
static uint32_t
mcast_to_own(struct roce *r, const struct mcast_group *g, struct roce_rx *rx, struct net_pkt *np)
{
	uint32_t others = 0, worker;

	for (uint32_t i = 0; i < g->room && np->m != NULL; i++) {
		uint32_t qpn = atomic_load_explicit(&g->qpn[i], memory_order_relaxed);
		struct verbs_qp *qp = qpn ? roce_qpn_lookup(r->cfg.qpns, qpn, &worker) : NULL;

		if (qp == NULL)
			continue;
		if (worker != r->w->id)
			others |= 1u << (worker & 31);
		else if (mcast_to_qp(r, rx, qp))
			rx->m = np->m = mcast_reference(r, np->m);
	}
	return others;
}

void
roce_mcast_input(struct roce *r, struct net_pkt *np, const struct roce_rx *in)
{
	struct net_ip ip = net_pkt_dst(np);
	const struct mcast_group *g = NULL;
	bool checked = np->m->ol_flags & r->checked;
	struct roce_rx rx = *in;
	uint32_t others;

	if (r->cfg.mcast != NULL && rx.p.info->transport == ROCE_TR_UD &&
	    net_ip_is_multicast(&ip))
		g = group_find(r->cfg.mcast, np->port, &ip);
	if (g == NULL) {
		roce_count(r, ROCE_C_MCAST_DROPPED);
		return;
	}
	if (!checked)
		roce_count(r, ROCE_C_MCAST_RCVD);
	others = mcast_to_own(r, g, &rx, np);
	if (r->checked == 0)
		others = 0; /* unmarked, they would hand it on among themselves for ever */
	while (!checked && others != 0 && np->m != NULL) {
		mcast_to_worker(r, (uint32_t)__builtin_ctz(others), np->m);
		others &= others - 1;
	}
}
