/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells: idempotent bits that say "look at this QP's tail". They are hints: a stale bit
 * costs a look, and none is ever needed while the QP is on its worker's run list.
 *
 * Client, after ring_wq_publish():      Worker, to leave the run list:
 *   if (active, seq_cst) done             active = 0 (seq_cst)
 *   set leaf, mid, top                    reload sq_tail; moved? active = 1, go on
 *
 * Either the client sees active = 0 and rings, or the worker sees the new tail.
 * test/model holds the proof.
 */
#ifndef RING_BELL_H
#define RING_BELL_H

#include <stdbool.h>

#include "ring_abi.h"

/** Ring for a QP's slot (0 .. RING_BELL_SLOTS - 1 of this chunk). Any thread. */
static inline void
ring_bell_set(struct ring_bell_chunk *b, uint32_t slot)
{
	uint32_t word = slot / 64;

	atomic_fetch_or_explicit(&b->leaf[word], 1ull << (slot % 64), memory_order_seq_cst);
	atomic_fetch_or_explicit(&b->mid[word / 64], 1ull << (word % 64), memory_order_seq_cst);
	atomic_fetch_or_explicit(&b->top, 1ull << (word / 64), memory_order_seq_cst);
}

/** Whether a QP's post needs its bell: false while the worker has it on its run list. */
static inline bool
ring_bell_needed(const struct ring_qp_daemon *d)
{
	return atomic_load_explicit(&d->active, memory_order_seq_cst) == 0;
}

/** Worker: cheap look whether a chunk has bits. */
static inline bool
ring_bell_any(const struct ring_bell_chunk *b)
{
	return atomic_load_explicit(&b->top, memory_order_relaxed) != 0;
}

/**
 * Worker: take all bits of a chunk; found(arg, slot) is called for each. Summaries are cleared
 * before what they summarise is read, so that no bit set meanwhile is lost.
 */
static inline unsigned int
ring_bell_collect(struct ring_bell_chunk *b, void (*found)(void *arg, uint32_t slot), void *arg)
{
	uint64_t top = atomic_exchange_explicit(&b->top, 0, memory_order_seq_cst);
	unsigned int n = 0;

	while (top) {
		uint32_t i = (uint32_t)__builtin_ctzll(top);
		uint64_t mid = atomic_exchange_explicit(&b->mid[i], 0, memory_order_seq_cst);

		top &= top - 1;
		while (mid) {
			uint32_t j = i * 64 + (uint32_t)__builtin_ctzll(mid);
			uint64_t leaf =
				atomic_exchange_explicit(&b->leaf[j], 0, memory_order_seq_cst);

			mid &= mid - 1;
			for (; leaf; leaf &= leaf - 1, n++)
				found(arg, j * 64 + (uint32_t)__builtin_ctzll(leaf));
		}
	}
	return n;
}

#endif /* RING_BELL_H */
