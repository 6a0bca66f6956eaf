/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion sub-rings: one producer (a worker), one consumer (the client), entries in a
 * D arena, the consumer's index in a C arena. The entry's tag carries a phase that differs
 * from pass to pass, so the consumer needs no producer index.
 */
#ifndef RING_CQ_H
#define RING_CQ_H

#include <stdbool.h>
#include <stddef.h>

#include "ring_abi.h"

/** The worker's end. */
struct ring_cq_prod {
	struct ring_cqe *ring;
	const _Atomic uint32_t *cons; /* client's, believed only if credible */
	uint32_t mask;
	uint32_t tail;	     /* free-running */
	uint32_t cons_cache; /* last credible consumer index */
};

/** The client's end. */
struct ring_cq_cons {
	const struct ring_cqe *ring;
	_Atomic uint32_t *shared; /* the index published to the daemon */
	uint32_t mask;
	uint32_t head; /* free-running */
};

static inline uint32_t
ring_cq_phase(uint32_t index, uint32_t mask)
{
	return (index & (mask + 1)) ? 0 : RING_CQE_PHASE;
}

/** Slow part: reload the client's index. An incredible one counts as full. */
static inline bool
ring_cq_refresh(struct ring_cq_prod *q)
{
	uint32_t cons = atomic_load_explicit(q->cons, memory_order_acquire);

	if (q->tail - cons > q->mask + 1 || (int32_t)(cons - q->cons_cache) < 0)
		return false;
	q->cons_cache = cons;
	return q->tail - cons <= q->mask;
}

/** The next free entry to fill in, or NULL: overrun. */
static inline struct ring_cqe *
ring_cq_reserve(struct ring_cq_prod *q)
{
	if (q->tail - q->cons_cache > q->mask && !ring_cq_refresh(q))
		return NULL;
	return &q->ring[q->tail & q->mask];
}

/** Publish the reserved entry with these RING_CQE_* flags (the phase is added here). */
static inline void
ring_cq_commit(struct ring_cq_prod *q, uint32_t flags)
{
	struct ring_cqe *e = &q->ring[q->tail & q->mask];

	atomic_store_explicit(&e->tag, flags | ring_cq_phase(q->tail, q->mask),
			      memory_order_release); /* pairs with ring_cq_peek() */
	q->tail++;
}

/** Client: the next completion, or NULL. */
static inline const struct ring_cqe *
ring_cq_peek(const struct ring_cq_cons *q)
{
	const struct ring_cqe *e = &q->ring[q->head & q->mask];
	uint32_t tag = atomic_load_explicit(&e->tag, memory_order_acquire);

	return (tag & RING_CQE_PHASE) == ring_cq_phase(q->head, q->mask) ? e : NULL;
}

/** Client: done with the entry; ring_cq_release() tells the daemon, once a batch. */
static inline void
ring_cq_advance(struct ring_cq_cons *q)
{
	q->head++;
}

static inline void
ring_cq_release(struct ring_cq_cons *q)
{
	atomic_store_explicit(q->shared, q->head, memory_order_release);
}

#endif /* RING_CQ_H */
