/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received packets that stay for a while: behind a hole, or while foreign memory is written.
 * Bounded for each QP and for the engine; at a bound the newest is not kept, and recovered like
 * a lost one. A kept packet is its mbuf alone and is parsed again when its time comes.
 */
#include "roce_priv.h"

static bool
hold_room(struct roce *r, const struct roce_qp *qp)
{
	return qp->rx_held < r->cfg.max_rx_held_qp && r->rx_held < r->cfg.max_rx_held;
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

bool
roce_hold_append(struct roce *r, struct roce_qp *qp, struct roce_pktq *q, const struct roce_rx *rx)
{
	if (!hold_room(r, qp))
		return false;
	hold_stamp(rx);
	rx->m->next = NULL;
	if (q->head)
		q->tail->next = rx->m;
	else
		q->head = rx->m;
	q->tail = rx->m;
	hold_account(r, qp, 1);
	return true;
}

bool
roce_hold_insert(struct roce *r, struct roce_qp *qp, struct roce_pktq *q, const struct roce_rx *rx)
{
	struct rte_mbuf *prev = NULL, *m;

	if (q->head == NULL || psn_after(rx->p.psn, q->tail->hash.fdir.lo))
		return roce_hold_append(r, qp, q, rx);
	if (!hold_room(r, qp))
		return false;
	for (m = q->head; psn_before(m->hash.fdir.lo, rx->p.psn); m = m->next)
		prev = m;
	if (m->hash.fdir.lo == rx->p.psn)
		return false;
	hold_stamp(rx);
	rx->m->next = m;
	if (prev)
		prev->next = rx->m;
	else
		q->head = rx->m;
	hold_account(r, qp, 1);
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
	struct rte_mbuf *m = q->head;

	q->head = m->next;
	m->next = NULL;
	hold_account(r, qp, -1);
	roce_rx_reparse(rx, qp, m);
}

uint32_t
roce_hold_psn(const struct roce_pktq *q)
{
	return q->head->hash.fdir.lo;
}

void
roce_hold_drop(struct roce *r, struct roce_qp *qp, struct roce_pktq *q)
{
	while (q->head) {
		struct rte_mbuf *m = q->head;

		q->head = m->next;
		m->next = NULL;
		rte_pktmbuf_free(m);
		hold_account(r, qp, -1);
	}
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
