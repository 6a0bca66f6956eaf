/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received packets that stay for a while: behind a hole, or while foreign memory is written or
 * waited for.
 * Bounded for each QP and for the engine; at a bound the newest is not kept, and recovered like
 * a lost one. A kept packet is its mbuf alone and is parsed again when its time comes.
 */
#include "roce_priv.h"

/** Links that an insertion may follow: more is work that a peer could ask for with each packet. */
#define HOLD_STEPS 32u

/**
 * One of the QP, which may hold a part of what is left, so that the first ones with a hole do not
 * leave nothing to the others.
 */
static bool
hold_room(const struct roce *r, const struct roce_qp *qp)
{
	return qp->rx_held < r->cfg.max_rx_held_qp &&
	       r->rx_held + qp->rx_held < r->cfg.max_rx_held;
}

static void
hold_account(struct roce *r, struct roce_qp *qp, int n)
{
	qp->rx_held += (uint32_t)n;
	r->rx_held += (uint32_t)n;
}

static void
hold_stamp(const struct roce_rx *rx)
{
	rx->m->hash.fdir.lo = rx->p.psn;
	rx->m->hash.fdir.hi = rx->bth_off;
}

static struct rte_mbuf *
hold_prev(const struct rte_mbuf *m)
{
	return (struct rte_mbuf *)(uintptr_t)m->tx_offload;
}

static void
hold_set_prev(struct rte_mbuf *m, struct rte_mbuf *prev)
{
	m->tx_offload = (uintptr_t)prev;
}

/** Behind prev, or first. */
static void
hold_link(struct roce_pktq *q, struct rte_mbuf *prev, struct rte_mbuf *m)
{
	struct rte_mbuf *next = prev ? prev->next : q->head;

	m->next = next;
	hold_set_prev(m, prev);
	if (prev)
		prev->next = m;
	else
		q->head = m;
	if (next)
		hold_set_prev(next, m);
	else
		q->tail = m;
}

/** The first, taken out. */
static struct rte_mbuf *
hold_unlink(struct roce *r, struct roce_qp *qp, struct roce_pktq *q)
{
	struct rte_mbuf *m = q->head;

	q->head = m->next;
	if (qp->cold->hold_last == m)
		qp->cold->hold_last = NULL;
	if (q->head)
		hold_set_prev(q->head, NULL);
	m->next = NULL;
	m->tx_offload = 0;
	hold_account(r, qp, -1);
	return m;
}

bool
roce_hold_append(struct roce *r, struct roce_qp *qp, struct roce_pktq *q, const struct roce_rx *rx)
{
	if (!hold_room(r, qp))
		return false;
	hold_stamp(rx);
	hold_link(q, q->head ? q->tail : NULL, rx->m);
	hold_account(r, qp, 1);
	return true;
}

static uint32_t
hold_distance(const struct rte_mbuf *m, uint32_t psn)
{
	int32_t d = psn_diff(psn, m->hash.fdir.lo);

	return (uint32_t)(d < 0 ? -d : d);
}

/** Where to look from: no two are of one PSN, so that the PSNs' distance bounds the way. */
static struct rte_mbuf *
hold_nearest(const struct roce_qp *qp, const struct roce_pktq *q, uint32_t psn)
{
	struct rte_mbuf *last = qp->cold->hold_queue == q ? qp->cold->hold_last : NULL;
	struct rte_mbuf *m = q->tail;

	if (hold_distance(q->head, psn) < hold_distance(m, psn))
		m = q->head;
	if (last && hold_distance(last, psn) < hold_distance(m, psn))
		m = last;
	return m;
}

bool
roce_hold_insert(struct roce *r, struct roce_qp *qp, struct roce_pktq *q, const struct roce_rx *rx)
{
	uint32_t psn = rx->p.psn, steps = HOLD_STEPS;
	struct rte_mbuf *m;

	if (q->head == NULL)
		return roce_hold_append(r, qp, q, rx);
	if (!hold_room(r, qp))
		return false;
	/* The newest one that is not behind psn. */
	m = hold_nearest(qp, q, psn);
	while (m && psn_after(m->hash.fdir.lo, psn) && steps-- > 0)
		m = hold_prev(m);
	while (m && m->next && !psn_after(m->next->hash.fdir.lo, psn) && steps-- > 0)
		m = m->next;
	if (steps > HOLD_STEPS || (m && m->hash.fdir.lo == psn))
		return false; /* too far to look, or there already */
	hold_stamp(rx);
	hold_link(q, m, rx->m);
	hold_account(r, qp, 1);
	qp->cold->hold_last = rx->m;
	qp->cold->hold_queue = q;
	return true;
}

void
roce_rx_reparse(struct roce_rx *rx, struct roce_qp *qp, struct rte_mbuf *m)
{
	rx->m = m;
	rx->qp = qp;
	rx->bth_off = m->hash.fdir.hi;
	rx->ecn = 0;
	/* it was parsed before, from the same bytes */
	roce_parse(rte_pktmbuf_mtod_offset(m, void *, rx->bth_off),
		   m->pkt_len - rx->bth_off - ROCE_ICRC_LEN, &rx->p);
}

void
roce_hold_pop(struct roce *r, struct roce_qp *qp, struct roce_pktq *q, struct roce_rx *rx)
{
	roce_rx_reparse(rx, qp, hold_unlink(r, qp, q));
}

uint32_t
roce_hold_psn(const struct roce_pktq *q)
{
	return q->head->hash.fdir.lo;
}

void
roce_hold_drop(struct roce *r, struct roce_qp *qp, struct roce_pktq *q)
{
	while (q->head)
		rte_pktmbuf_free(hold_unlink(r, qp, q));
}

bool
roce_hold_again(struct roce *r, struct roce_qp *qp, const struct roce_rx *rx)
{
	if (!hold_room(r, qp)) {
		roce_count(r, ROCE_C_RX_HELD_DROPPED);
		return false;
	}
	hold_stamp(rx);
	hold_link(&qp->waiting, NULL, rx->m);
	hold_account(r, qp, 1);
	roce_count(r, ROCE_C_RX_HELD);
	qp->rx_again = true;
	return true;
}

void
roce_hold_placing(struct roce *r, struct roce_qp *qp, const struct roce_rx *rx)
{
	hold_stamp(rx);
	qp->placing = rx->m;
	if (qp->v.io[VERBS_RX])
		qp->v.io[VERBS_RX]->user = rx->m;
	hold_account(r, qp, 1);
	roce_count(r, ROCE_C_RX_HELD);
}

struct rte_mbuf *
roce_unhold_placing(struct roce *r, struct roce_qp *qp)
{
	struct rte_mbuf *m = qp->placing;

	qp->placing = NULL;
	if (m)
		hold_account(r, qp, -1);
	return m;
}
