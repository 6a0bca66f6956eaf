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
 * Make the prepared slots visible. Sequentially consistent: the exchange and the load of
 * ring_qp_daemon.active that must follow it are one side of the doorbell's store-load pair
 * (ring_bell.h).
 */
static inline void
ring_wq_publish(struct ring_wq_prod *q)
{
	atomic_exchange_explicit(q->shared_tail, q->tail, memory_order_seq_cst);
}

/**
 * Look at the client's tail. Returns the number of slots to take, or -1 when the tail is not
 * credible (further than the ring is long, or moved back): the QP is to go to error.
 */
static inline int64_t
ring_wq_poll(struct ring_wq_cons *q)
{
	uint32_t tail = atomic_load_explicit(q->shared_tail, memory_order_acquire);

	if (tail - q->head > q->mask + 1 || (int32_t)(tail - q->tail) < 0)
		return -1;
	q->tail = tail;
	return tail - q->head;
}

/** The same with a sequentially consistent load, as leaving the run list needs it. */
static inline int64_t
ring_wq_poll_seq_cst(struct ring_wq_cons *q)
{
	atomic_thread_fence(memory_order_seq_cst);
	return ring_wq_poll(q);
}

static inline const void *
ring_wq_cons_slot(const struct ring_wq_cons *q, uint32_t index)
{
	return q->slots + (size_t)(index & q->mask) * RING_SLOT_SIZE;
}

#endif /* RING_WQ_H */
