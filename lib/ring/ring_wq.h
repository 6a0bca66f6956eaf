/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send and receive queues: the two ends of a ring of 64-byte slots. The client's end fills
 * slots and moves the tail; the daemon's end copies work requests out, once, and never writes.
 * How far the daemon got is told by completions alone.
 */
#ifndef RING_WQ_H
#define RING_WQ_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ring_abi.h"

/** The client's end. Private to the client; the daemon sees the slots and the tail. */
struct ring_wq_prod {
	uint8_t *slots;
	_Atomic uint32_t *shared_tail;
	uint32_t mask;
	uint32_t tail; /* of the last publication, plus what is prepared */
	uint32_t head; /* freed by completions */
};

/** The daemon's end. */
struct ring_wq_cons {
	const uint8_t *slots;
	const _Atomic uint32_t *shared_tail;
	uint32_t mask;
	uint32_t head; /* next slot to take */
	uint32_t tail; /* last credible tail */
};

static inline uint32_t
ring_wq_free(const struct ring_wq_prod *q)
{
	return q->mask + 1 - (q->tail - q->head);
}

static inline void *
ring_wq_slot(const struct ring_wq_prod *q, uint32_t index)
{
	return q->slots + (size_t)(index & q->mask) * RING_SLOT_SIZE;
}

/** Slots that a send request of so many SGEs takes. */
static inline uint32_t
ring_wqe_slots_sge(uint32_t num_sge)
{
	return num_sge <= RING_WQE_SGES
		       ? 1
		       : 1 + (num_sge - RING_WQE_SGES + RING_SLOT_SGES - 1) / RING_SLOT_SGES;
}

/** Slots that a send request of so many inline bytes takes. */
static inline uint32_t
ring_wqe_slots_inline(uint32_t len)
{
	return len <= 32 ? 1 : 1 + (len - 32 + RING_SLOT_SIZE - 1) / RING_SLOT_SIZE;
}

/** Slots that a receive request takes. */
static inline uint32_t
ring_rwqe_slots(uint32_t num_sge)
{
	return num_sge <= RING_RWQE_SGES
		       ? 1
		       : 1 + (num_sge - RING_RWQE_SGES + RING_SLOT_SGES - 1) / RING_SLOT_SGES;
}

/**
 * Make the prepared slots visible. Sequentially consistent: the exchange and the load that must
 * follow it (ring_bell_needed(), ring_bell_needed_recv()) are one side of the doorbell's
 * store-load pair (ring_bell.h).
 */
static inline void
ring_wq_publish(struct ring_wq_prod *q)
{
	atomic_exchange_explicit(q->shared_tail, q->tail, memory_order_seq_cst);
}

/**
 * Look at the client's tail. Returns the number of slots to take, or -1 when the tail is not
 * credible (further from the head than the ring is long, or moved back): the QP is to go to
 * error.
 */
static inline int64_t
ring_wq_poll(struct ring_wq_cons *q)
{
	/* pairs with the exchange of ring_wq_publish() */
	uint32_t tail = atomic_load_explicit(q->shared_tail, memory_order_acquire);

	if (tail - q->head > q->mask + 1 || (int32_t)(tail - q->tail) < 0)
		return -1;
	q->tail = tail;
	return tail - q->head;
}

/** Whether the tail is another than was polled last: after a seq_cst store (ring_bell.h). */
static inline bool
ring_wq_moved(const struct ring_wq_cons *q)
{
	return atomic_load_explicit(q->shared_tail, memory_order_seq_cst) != q->tail;
}

static inline const void *
ring_wq_cons_slot(const struct ring_wq_cons *q, uint32_t index)
{
	return q->slots + (size_t)(index & q->mask) * RING_SLOT_SIZE;
}

/**
 * Copy the request at the head out, every byte once, and move the head past it. `num_slots_at`
 * is where its slot count lies (offsetof in ring_wqe or ring_rwqe); it is read from the copy,
 * since the client can change the ring meanwhile. `dst` has room for RING_MAX_WQE_SLOTS.
 * Number of slots taken; 0 when ring_wq_poll() found none; -1 when the request claims none, more
 * than there may be or more than there are: the QP is to go to error.
 */
static inline int
ring_wq_take(struct ring_wq_cons *q, size_t num_slots_at, void *dst)
{
	uint8_t *d = dst;
	uint32_t n;

	if (q->tail == q->head)
		return 0;
	memcpy(d, ring_wq_cons_slot(q, q->head), RING_SLOT_SIZE);
	atomic_signal_fence(memory_order_seq_cst); /* what follows comes from the copy */
	n = d[num_slots_at];
	if (n == 0 || n > RING_MAX_WQE_SLOTS || n > q->tail - q->head)
		return -1;
	for (uint32_t i = 1; i < n; i++)
		memcpy(d + i * RING_SLOT_SIZE, ring_wq_cons_slot(q, q->head + i), RING_SLOT_SIZE);
	atomic_signal_fence(memory_order_seq_cst);
	q->head += n;
	return (int)n;
}

#endif /* RING_WQ_H */
