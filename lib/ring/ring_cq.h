/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion sub-rings: one producer (a worker), one consumer (the client), entries in a
 * D arena, the consumer's index in a C arena. The entry's tag carries a phase that differs
 * from pass to pass, so the consumer needs no producer index.
 *
 * A ring of n entries takes n - 1 completions: one entry is kept for the SWITCH of a resize,
 * which is wanted most when the ring is full. Indices go on in the new ring, rounded up to a
 * multiple of twice its size: its zeroed entries then have the wrong phase, and a consumer index
 * of the old ring is behind any of the new, so it cannot be taken for progress there. Model:
 * test/model/cq.pml.
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

/** Index at which the ring after a SWITCH begins, given that of the SWITCH. */
static inline uint32_t
ring_cq_switch_index(uint32_t index, uint32_t new_mask)
{
	uint32_t align = 2 * (new_mask + 1);

	return (index + align) & ~(align - 1);
}

/**
 * Slow part, of a ring that looks full: reload the client's index. One that is not credible
 * (ahead of the tail, or behind the last credible one) counts as full.
 */
static inline bool
ring_cq_refresh(struct ring_cq_prod *q)
{
	uint32_t cons = atomic_load_explicit(q->cons, memory_order_acquire);

	/* pairs with ring_cq_release() */
	if (q->tail - cons > q->mask)
		return false;
	q->cons_cache = cons;
	return q->tail - cons < q->mask;
}

/** The next free entry to fill in, or NULL: overrun. */
static inline struct ring_cqe *
ring_cq_reserve(struct ring_cq_prod *q)
{
	if (q->tail - q->cons_cache >= q->mask && !ring_cq_refresh(q))
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

/**
 * Go on in another ring, of `new_mask` + 1 zeroed entries, whose place is in ring_cq_daemon.sub
 * already. Always possible: an entry is left for it.
 */
static inline void
ring_cq_switch(struct ring_cq_prod *q, struct ring_cqe *new_ring, uint32_t new_mask)
{
	uint32_t start = ring_cq_switch_index(q->tail, new_mask);

	ring_cq_commit(q, RING_CQE_SWITCH);
	q->ring = new_ring;
	q->mask = new_mask;
	q->tail = start;
	q->cons_cache = start;
}

/**
 * Daemon: whether the client is past the SWITCH that led to the ring beginning at `start`: the
 * old ring is free, and another resize may begin.
 */
static inline bool
ring_cq_switched(const struct ring_cq_prod *q, uint32_t start)
{
	return (int32_t)(atomic_load_explicit(q->cons, memory_order_acquire) - start) >= 0;
}

/**
 * Client: the next completion, or NULL. When its tag has RING_CQE_SWITCH it is none: call
 * ring_cq_follow(). The load is sequentially consistent for the look that must follow an arming
 * (ring_arm.h); on x86 that is free.
 */
static inline const struct ring_cqe *
ring_cq_peek(const struct ring_cq_cons *q)
{
	const struct ring_cqe *e = &q->ring[q->head & q->mask];
	uint32_t tag = atomic_load_explicit(&e->tag, memory_order_seq_cst);

	return (tag & RING_CQE_PHASE) == ring_cq_phase(q->head, q->mask) ? e : NULL;
}

/**
 * Entries from the head on that are completions, without going through all of them: those with
 * the head's phase and those without it are two runs (a producer never passes the head by more
 * than a ring), so the border is found by halving. A head that is not the client's true one
 * gives some number of at most a ring's entries.
 */
static inline uint32_t
ring_cq_count(const struct ring_cq_cons *q)
{
	uint32_t low = 0, high = q->mask + 1;

	while (low < high) {
		struct ring_cq_cons at = *q;

		at.head += low + (high - low) / 2;
		if (ring_cq_peek(&at) != NULL)
			low = at.head - q->head + 1;
		else
			high = at.head - q->head;
	}
	return low;
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

/** Client: the entry at the head is a SWITCH; go on in the sub-ring's other place. */
static inline void
ring_cq_follow(struct ring_cq_cons *q, const struct ring_cqe *new_ring, uint32_t new_mask)
{
	q->head = ring_cq_switch_index(q->head, new_mask);
	q->ring = new_ring;
	q->mask = new_mask;
	ring_cq_release(q);
}

#endif /* RING_CQ_H */
