/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues. Workers take entry numbers off the index ring by compare-and-swap on
 * a head that only the daemon writes; the entry is the client's until then and again after its
 * completion, so what is copied from it can only hurt the client.
 *
 * The limit's word has the number of its arming in the upper half: a worker that has looked at
 * an older arming cannot answer the new one.
 */
#include <errno.h>

#include "verbs_priv.h"

#define ARMING(word) ((word) >> 32)

static bool
srq_disarm(struct verbs_srq *srq, uint64_t limit)
{
	return atomic_compare_exchange_strong_explicit(&srq->limit, &limit,
						       ARMING(limit) << 32, memory_order_relaxed,
						       memory_order_relaxed);
}

void
verbs_srq_arm(struct verbs_srq *srq, uint32_t limit)
{
	uint64_t arming = ARMING(atomic_load_explicit(&srq->limit, memory_order_relaxed)) + 1;

	/* sequentially consistent, as the heads are moved: see verbs_srq_reached() */
	atomic_exchange_explicit(&srq->limit, arming << 32 | limit, memory_order_seq_cst);
}

/**
 * One end of it after the other, so that they may not belong together: other workers and the
 * client move them meanwhile. @return false: the head has not moved, and the tail cannot be.
 */
static inline bool
srq_left(const struct verbs_srq *srq, const struct verbs_srq_ring *ring, uint32_t *head,
	 uint32_t *left)
{
	/* pairs with the client's release: the number and its entry are written */
	uint32_t tail = atomic_load_explicit(&srq->client->tail, memory_order_acquire);
	uint32_t now;

	while (unlikely((*left = tail - *head) > ring->mask + 1)) {
		/* What was taken since has been given back and posted again, perhaps. */
		now = atomic_load_explicit(&srq->daemon->head, memory_order_acquire);
		if (now == *head)
			return false;
		*head = now;
		tail = atomic_load_explicit(&srq->client->tail, memory_order_acquire);
	}
	return true;
}

uint32_t
verbs_srq_count(struct verbs_srq *srq)
{
	const struct verbs_srq_ring *ring = atomic_load_explicit(&srq->ring, memory_order_acquire);
	uint32_t head = atomic_load_explicit(&srq->daemon->head, memory_order_seq_cst);
	uint32_t left;

	return srq_left(srq, ring, &head, &left) ? left : UINT32_MAX;
}

bool
verbs_srq_reached(struct verbs_srq *srq)
{
	/* Either this sees the head of the last who took one, or that one saw this limit. */
	uint64_t limit = atomic_load_explicit(&srq->limit, memory_order_seq_cst);

	return verbs_srq_count(srq) < (uint32_t)limit && srq_disarm(srq, limit);
}

/** Its client has spoilt it: one event, and an end to all who would take from it. */
static int
srq_broken(struct verbs_worker *w, struct verbs_srq *srq)
{
	if (!atomic_exchange_explicit(&srq->broken, true, memory_order_relaxed)) {
		counter_inc(&w->counter[VERBS_C_SRQ_ERR]);
		w->host.event(w->host.ctx, VERBS_EVENT_SRQ_ERR, srq);
	}
	counter_inc(&w->counter[VERBS_C_TAIL_BAD]);
	return -EBADMSG;
}

/** Take an entry's number. @return 1, 0: none, -EBADMSG. */
static int
srq_pop(struct verbs_worker *w, struct verbs_srq *srq, const struct verbs_srq_ring *ring,
	uint32_t *entry)
{
	uint32_t head = atomic_load_explicit(&srq->daemon->head, memory_order_acquire);
	uint64_t limit;
	uint32_t left;

	if (unlikely(atomic_load_explicit(&srq->broken, memory_order_relaxed)))
		return srq_broken(w, srq);
	do {
		if (unlikely(!srq_left(srq, ring, &head, &left)))
			return srq_broken(w, srq);
		if (left == 0) {
			counter_inc(&w->counter[VERBS_C_SRQ_EMPTY]);
			return 0;
		}
		*entry = atomic_load_explicit(&ring->index[head & ring->mask],
					      memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(&srq->daemon->head, &head, head + 1,
							memory_order_seq_cst,
							memory_order_acquire));
	limit = atomic_load_explicit(&srq->limit, memory_order_seq_cst);
	if (unlikely(left - 1 < (uint32_t)limit) && verbs_srq_reached(srq)) {
		counter_inc(&w->counter[VERBS_C_SRQ_LIMIT]);
		w->host.event(w->host.ctx, VERBS_EVENT_SRQ_LIMIT_REACHED, srq);
	}
	return 1;
}

int
verbs_srq_fetch(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_srq *srq,
		struct verbs_rwqe *out)
{
	const struct verbs_srq_ring *ring = atomic_load_explicit(&srq->ring, memory_order_acquire);
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
	ret = srq_pop(w, srq, ring, &entry);
	if (unlikely(ret <= 0))
		return ret;
	counter_inc(&w->counter[VERBS_C_SRQ]);
	out->wqe_index = entry;
	out->pd = srq->pd;
	if (likely(entry < ring->entries)) {
		s.base = ring->slots + (size_t)entry * srq->stride;
		memcpy(&r, s.base, sizeof(r));
		verbs_copied(&r);
	} else {
		s.base = ring->slots;
		r.num_slots = 0; /* no request has that: refused */
	}
	s.index = 0;
	s.mask = UINT32_MAX; /* an entry does not wrap */
	return verbs_rwqe_take(w, qp->share, &r, s, srq->max_sge, out);
}
