/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions: writing them into this worker's sub-ring of the CQ, waking clients once a burst,
 * and what becomes of requests when a QP fails or is reset.
 */
#include <assert.h>

#include "base_bug.h"
#include "ring_arm.h"
#include "ring_fence.h"

#include "verbs_priv.h"

size_t
verbs_cq_size(uint32_t num_workers)
{
	return sizeof(struct verbs_cq) + num_workers * sizeof(struct verbs_cq_end);
}

void
verbs_cq_init_ends(struct verbs_cq *cq)
{
	for (uint32_t i = 0; i < cq->num_workers; i++)
		cq->end[i].cq = cq;
}

void
verbs_cq_switch(struct verbs_worker *w, struct verbs_cq *cq, struct ring_cqe *ring, uint32_t mask)
{
	ring_cq_switch(&cq->end[w->id].prod, ring, mask);
}

/* ---- one completion ---------- */

/** The client did not keep up: the CQ is of no use from here on. Told once, by one worker. */
static void
cq_overrun(struct verbs_worker *w, struct verbs_cq *cq)
{
	counter_inc(&w->counter[VERBS_C_CQ_OVERRUN]);
	if (atomic_exchange_explicit(&cq->overrun, true, memory_order_relaxed))
		return;
	atomic_store_explicit(&cq->daemon->overrun, 1, memory_order_release);
	w->host.event(w->host.ctx, VERBS_EVENT_CQ_ERR, cq);
}

/** An entry to fill in and cq_commit(), or NULL: overrun. */
static inline struct ring_cqe *
cq_reserve(struct verbs_worker *w, struct verbs_cq *cq)
{
	struct verbs_cq_end *end = &cq->end[w->id];
	struct ring_cqe *e = NULL;

	if (likely(!atomic_load_explicit(&cq->overrun, memory_order_relaxed) &&
		   end->prod.ring != NULL))
		e = ring_cq_reserve(&end->prod);
	if (unlikely(e == NULL))
		cq_overrun(w, cq);
	return e;
}

static inline void
cq_commit(struct verbs_worker *w, struct verbs_cq *cq, uint32_t flags, enum wc_status status)
{
	struct verbs_cq_end *end = &cq->end[w->id];

	end->solicited |= ring_cqe_is_solicited(flags, status);
	ring_cq_commit(&end->prod, flags);
	counter_inc(&w->counter[VERBS_C_CQE]);
	if (!end->dirty) {
		end->dirty = true;
		end->dirty_next = w->dirty;
		w->dirty = end;
	}
}

static inline void
cqe_fill(struct ring_cqe *e, const struct verbs_worker *w, uint32_t wqe_index, uint32_t qpn,
	 enum wc_status status)
{
	e->wqe_index = wqe_index;
	e->qpn_status = (qpn & 0xffffff) | (uint32_t)status << 24;
	e->timestamp = w->now;
}

/** Only index, QP, SRQ and status of an error mean anything; the rest is zero, not left over. */
static void
cq_post_error_of(struct verbs_worker *w, const struct verbs_qp *qp, struct verbs_cq *cq,
		 uint32_t wqe_index, enum wc_status status, uint32_t flags, uint32_t srqn)
{
	struct ring_cqe *e = cq_reserve(w, cq);

	if (e == NULL)
		return;
	cqe_fill(e, w, wqe_index, qp->qpn, status);
	e->byte_len = 0;
	e->imm = 0;
	e->src_opcode = srqn;
	cq_commit(w, cq, flags, status);
}

static void
cq_post_error(struct verbs_worker *w, const struct verbs_qp *qp, struct verbs_cq *cq,
	      uint32_t wqe_index, enum wc_status status, uint32_t flags)
{
	cq_post_error_of(w, qp, cq, wqe_index, status, flags, 0);
}

static inline void
cq_post_send(struct verbs_worker *w, const struct verbs_qp *qp, const struct verbs_wqe *wqe)
{
	const struct verbs_wr_info *op = &verbs_wr_info[wqe->opcode];
	struct ring_cqe *e = cq_reserve(w, qp->send_cq);

	if (unlikely(e == NULL))
		return;
	cqe_fill(e, w, wqe->wqe_index, qp->qpn, WC_SUCCESS);
	e->byte_len = (op->mask & VERBS_WR_LEN) ? wqe->length : 0;
	e->imm = 0;
	e->src_opcode = (uint32_t)op->wc << 24;
	cq_commit(w, qp->send_cq, 0, WC_SUCCESS);
}

void
verbs_complete_send(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_wqe *wqe,
		    enum wc_status status)
{
	assert(qp->wqe_head == wqe);
	qp->wqe_head = wqe->next;
	if (qp->wqe_head == NULL)
		qp->wqe_tail = NULL;
	if (unlikely(status != WC_SUCCESS))
		cq_post_error(w, qp, qp->send_cq, wqe->wqe_index, status, 0);
	else if ((wqe->flags & RING_WR_SIGNALED) || (qp->flags & VERBS_QP_SIG_ALL))
		cq_post_send(w, qp, wqe);
	verbs_wqe_free(w, qp, wqe);
}

#define RECV_FLAGS (RING_CQE_WITH_IMM | RING_CQE_WITH_INV | RING_CQE_GRH | RING_CQE_SOLICITED)

/** A receive that went well; src: of the completion. */
static inline void
cq_post_recv(struct verbs_worker *w, const struct verbs_qp *qp, struct verbs_cq *cq,
	     const struct verbs_rwqe *r, const struct verbs_recv_done *d, uint32_t src,
	     uint32_t kind)
{
	struct ring_cqe *e = cq_reserve(w, cq);

	if (unlikely(e == NULL))
		return;
	cqe_fill(e, w, r->wqe_index, qp->qpn, WC_SUCCESS);
	e->byte_len = d->byte_len;
	e->imm = d->imm;
	e->src_opcode = (src & 0xffffff) | (uint32_t)d->opcode << 24;
	cq_commit(w, cq, (d->cqe_flags & RECV_FLAGS) | kind, WC_SUCCESS);
}

void
verbs_complete_recv(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_rwqe *r,
		    const struct verbs_recv_done *d)
{
	if (unlikely(d->status != WC_SUCCESS))
		cq_post_error(w, qp, qp->recv_cq, r->wqe_index, d->status, RING_CQE_RECV);
	else
		cq_post_recv(w, qp, qp->recv_cq, r, d, d->src_qpn, RING_CQE_RECV);
	verbs_rwqe_release(w, r);
}

void
verbs_complete_xrc(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_srq *srq,
		   struct verbs_rwqe *r, const struct verbs_recv_done *d)
{
	const uint32_t kind = RING_CQE_RECV | RING_CQE_XRC;

	if (d->status != WC_SUCCESS)
		cq_post_error_of(w, qp, srq->cq, r->wqe_index, d->status, kind, srq->srqn);
	else
		cq_post_recv(w, qp, srq->cq, r, d, srq->srqn, kind);
	verbs_rwqe_release(w, r);
}

void
verbs_cq_burst_end(struct verbs_worker *w)
{
	struct verbs_cq_end *end = w->dirty;

	if (unlikely(w->num_starved != 0))
		verbs_starved_wake(w);
	if (end == NULL)
		return;
	w->dirty = NULL;
	ring_fence(); /* all completions of the burst before any look at `armed` */
	while (end != NULL) {
		struct verbs_cq_end *next = end->dirty_next;
		struct verbs_cq *cq = end->cq;

		if (ring_cq_should_notify(cq->client, cq->daemon, end->solicited)) {
			counter_inc(&w->counter[VERBS_C_NOTIFY]);
			w->host.notify(w->host.ctx, cq);
		}
		end->dirty = false;
		end->solicited = false;
		end->dirty_next = NULL;
		end = next;
	}
}

/* ---- flushing and dropping ---------- */

/** Go on from wherever the client's tail is, credible or not: what lies before it is gone. */
static void
queue_skip(struct ring_wq_cons *q)
{
	if (q->slots != NULL)
		q->head = q->tail = atomic_load_explicit(q->shared_tail, memory_order_acquire);
}

/**
 * Flush requests that were posted and never taken, up to an index if one is given. Of each only
 * its slot count is looked at. @return what is left of max.
 */
static unsigned int
flush_queue(struct verbs_worker *w, const struct verbs_qp *qp, struct ring_wq_cons *q,
	    size_t num_slots_at, struct verbs_cq *cq, uint32_t cqe_flags, unsigned int max,
	    const uint32_t *upto)
{
	if (q->slots == NULL)
		return max;
	while (max > 0) {
		int64_t avail = ring_wq_poll(q);
		const _Atomic uint8_t *count;
		uint32_t n;

		if (avail == 0 || (upto != NULL && (int32_t)(*upto - q->head) <= 0))
			return max;
		count = (const _Atomic uint8_t *)ring_wq_cons_slot(q, q->head) + num_slots_at;
		n = avail > 0 ? atomic_load_explicit(count, memory_order_relaxed) : 0;
		if (n == 0 || n > RING_MAX_WQE_SLOTS || n > avail) {
			counter_inc(&w->counter[avail < 0 ? VERBS_C_TAIL_BAD : VERBS_C_WQE_BAD]);
			queue_skip(q);
			return max;
		}
		cq_post_error(w, qp, cq, q->head, WC_WR_FLUSH_ERR, cqe_flags);
		q->head += n;
		max--;
	}
	return 0;
}

static bool
queue_empty(struct ring_wq_cons *q)
{
	return q->slots == NULL || ring_wq_poll(q) == 0;
}

/** Started and posted sends. @return what is left of max; 0: there may be more. */
static unsigned int
flush_sends(struct verbs_worker *w, struct verbs_qp *qp, unsigned int max, const uint32_t *upto)
{
	for (; qp->wqe_head != NULL && max > 0; max--)
		verbs_complete_send(w, qp, qp->wqe_head, WC_WR_FLUSH_ERR);
	return flush_queue(w, qp, &qp->sq, offsetof(struct ring_wqe, num_slots), qp->send_cq, 0,
			   max, upto);
}

bool
verbs_sq_flush(struct verbs_worker *w, struct verbs_qp *qp, unsigned int max, const uint32_t *upto)
{
	return flush_sends(w, qp, max, upto) > 0;
}

bool
verbs_qp_flush(struct verbs_worker *w, struct verbs_qp *qp, unsigned int max)
{
	max = flush_sends(w, qp, max, NULL);
	if (qp->wqe_head != NULL)
		return false;
	qp->rq_posted = 0;
	if (qp->srq == NULL && !base_bug(BUG_FLUSH_RECV))
		max = flush_queue(w, qp, &qp->rq, offsetof(struct ring_rwqe, num_slots),
				  qp->recv_cq, RING_CQE_RECV, max, NULL);
	if (max > 0)
		return true;
	return queue_empty(&qp->sq) && (qp->srq != NULL || queue_empty(&qp->rq));
}

void
verbs_qp_skip(struct verbs_qp *qp)
{
	queue_skip(&qp->sq);
	queue_skip(&qp->rq);
}

void
verbs_qp_drop(struct verbs_worker *w, struct verbs_qp *qp)
{
	while (qp->wqe_head != NULL) {
		struct verbs_wqe *wqe = qp->wqe_head;

		qp->wqe_head = wqe->next;
		if (base_bug(BUG_BLOCK_LEAK))
			wqe->block = NULL;
		verbs_wqe_free(w, qp, wqe);
	}
	qp->wqe_tail = NULL;
	verbs_qp_skip(qp);
	qp->rq_posted = 0;
	qp->deficit = 0;
}
