/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues. Workers take entry numbers off the index ring by compare-and-swap on
 * a head that only the daemon writes; the entry is the client's until then and again after its
 * completion, so what is copied from it can only hurt the client.
 */
#include <errno.h>

#include "verbs_priv.h"

/** Tell the control thread, once an arming, that the queue runs low. */
static void
srq_check_limit(struct verbs_worker *w, struct verbs_srq *srq, uint32_t left)
{
	uint32_t limit = atomic_load_explicit(&srq->limit, memory_order_relaxed);

	if (likely(left >= limit))
		return;
	if (atomic_compare_exchange_strong_explicit(&srq->limit, &limit, 0, memory_order_relaxed,
						    memory_order_relaxed))
		w->host.event(w->host.ctx, VERBS_EVENT_SRQ_LIMIT_REACHED, srq);
}

/** Take an entry's number. @return 1, 0: none, -EBADMSG. */
static int
srq_pop(struct verbs_worker *w, struct verbs_srq *srq, uint32_t *entry)
{
	uint32_t head = atomic_load_explicit(&srq->daemon->head, memory_order_acquire);
	uint32_t left;

	do {
		/* pairs with the client's release: the number and its entry are written */
		uint32_t tail = atomic_load_explicit(&srq->client->tail, memory_order_acquire);

		left = tail - head;
		if (left == 0)
			return 0;
		if (unlikely(left > srq->mask + 1)) {
			counter_inc(&w->counter[VERBS_C_TAIL_BAD]);
			return -EBADMSG;
		}
		*entry = atomic_load_explicit(&srq->ring[head & srq->mask], memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(&srq->daemon->head, &head, head + 1,
							memory_order_acq_rel,
							memory_order_acquire));
	srq_check_limit(w, srq, left - 1);
	return 1;
}

int
verbs_srq_fetch(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_rwqe *out)
{
	struct verbs_srq *srq = qp->srq;
	struct ring_rwqe r = {0};
	struct verbs_slots s;
	uint32_t entry;
	int ret;

	/* A popped entry cannot be put back, so what it may need must be there before. */
	if (unlikely(srq->max_sge > VERBS_WQE_SGES && !verbs_block_may(w, qp->share))) {
		counter_inc(&qp->share->refused[VERBS_POOL_BLOCK]);
		counter_inc(&w->counter[VERBS_C_SHADOW_EMPTY]);
		return -EAGAIN;
	}
	ret = srq_pop(w, srq, &entry);
	if (unlikely(ret <= 0))
		return ret;
	out->wqe_index = entry;
	out->pd = srq->pd;
	if (likely(entry < srq->entries)) {
		s.base = srq->slots + (size_t)entry * srq->stride;
		memcpy(&r, s.base, sizeof(r));
		verbs_copied(&r);
	} else {
		s.base = srq->slots;
		r.num_slots = 0; /* no request has that: refused */
	}
	s.index = 0;
	s.mask = UINT32_MAX; /* an entry does not wrap */
	return verbs_rwqe_take(w, qp->share, &r, s, srq->max_sge, out);
}
