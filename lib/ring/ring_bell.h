/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells: idempotent bits that say "look at this QP's tail". They are hints: a stale bit
 * costs a look, and none is ever needed while the QP is on its worker's run list.
 *
 * Client, after ring_wq_publish():      Worker, to leave the run list (ring_bell_leave()):
 *   if (active, seq_cst) done             active = 0 (seq_cst)
 *   set leaf, mid, top                    reload sq_tail (seq_cst); moved? active = 1, go on
 *   if (need_kick) kick (ring_kick.h)
 *
 * Either the client sees active = 0 and rings, or the worker sees the new tail. Receive posts
 * ring only in ERR, where somebody must flush them: the worker stores the state (seq_cst) before
 * it looks at rq_tail. Model: test/model/bell.pml.
 */
#ifndef RING_BELL_H
#define RING_BELL_H

#include <stdbool.h>

#include "ring_abi.h"
#include "ring_wq.h"

/** Ring for a QP's slot (0 .. RING_BELL_SLOTS - 1 of this chunk). Any thread. */
static inline void
ring_bell_set(struct ring_bell_chunk *b, uint32_t slot)
{
	uint32_t word = slot / 64;

	atomic_fetch_or_explicit(&b->leaf[word], 1ull << (slot % 64), memory_order_seq_cst);
	atomic_fetch_or_explicit(&b->mid[word / 64], 1ull << (word % 64), memory_order_seq_cst);
	atomic_fetch_or_explicit(&b->top, 1ull << (word / 64), memory_order_seq_cst);
}

/** Whether a send post needs its bell: false while the worker has the QP on its run list. */
static inline bool
ring_bell_needed(const struct ring_qp_daemon *d)
{
	return atomic_load_explicit(&d->active, memory_order_seq_cst) == 0;
}

/** Whether a receive post needs a bell: only when it is to be flushed. */
static inline bool
ring_bell_needed_recv(const struct ring_qp_daemon *d)
{
	return atomic_load_explicit(&d->state, memory_order_seq_cst) == RING_QPS_ERR &&
	       ring_bell_needed(d);
}

/**
 * Whose bell to ring. Loaded after the tail is published: a QP that is bound to another worker
 * meanwhile is looked at by that one after its binding, so a bell at the old one is harmless.
 */
static inline uint32_t
ring_bell_worker(const struct ring_qp_daemon *d)
{
	return atomic_load_explicit(&d->worker, memory_order_seq_cst);
}

/** Worker: the QP is on the run list. */
static inline void
ring_bell_enter(struct ring_qp_daemon *d)
{
	atomic_store_explicit(&d->active, 1, memory_order_relaxed);
}

/**
 * Worker: take the QP off the run list. Before it, the worker has tried all that lies before
 * sq->tail; and before rq->tail, if receives are to be flushed (`rq` is NULL otherwise). True:
 * it is off. False: a tail has moved, the QP is still on the list, poll again.
 */
static inline bool
ring_bell_leave(struct ring_qp_daemon *d, const struct ring_wq_cons *sq,
		const struct ring_wq_cons *rq)
{
	atomic_store_explicit(&d->active, 0, memory_order_seq_cst);
	if (!ring_wq_moved(sq) && (!rq || !ring_wq_moved(rq)))
		return true;
	ring_bell_enter(d);
	return false;
}

/** Worker: cheap look whether a chunk has bits. */
static inline bool
ring_bell_any(const struct ring_bell_chunk *b)
{
	return atomic_load_explicit(&b->top, memory_order_relaxed) != 0;
}

/** Where a worker stands in taking a chunk's bits. Private to it; all zero at first. */
struct ring_bell_scan {
	uint64_t top; /* taken and not looked at yet */
	uint64_t mid; /* taken from mid[i] and not looked at yet */
	uint32_t i;
};

/**
 * Worker: take bits of a chunk; found(arg, slot) is called for each. Summaries are cleared
 * before what they summarise is read, so that no bit set meanwhile is lost. A client can set
 * all bits as often as it likes: `budget` bounds words read plus bits found (up to 64 over), and
 * `scan` keeps the place for the next call. True when there is more to take.
 */
static inline bool
ring_bell_collect(struct ring_bell_chunk *b, struct ring_bell_scan *scan, int budget,
		  void (*found)(void *arg, uint32_t slot), void *arg)
{
	if (!scan->mid && !scan->top)
		scan->top = atomic_exchange_explicit(&b->top, 0, memory_order_seq_cst);
	while (scan->mid || scan->top) {
		uint32_t word;
		uint64_t leaf;

		if (budget-- <= 0)
			return true;
		if (!scan->mid) {
			scan->i = (uint32_t)__builtin_ctzll(scan->top);
			scan->top &= scan->top - 1;
			scan->mid = atomic_exchange_explicit(&b->mid[scan->i], 0,
							     memory_order_seq_cst);
			continue;
		}
		word = scan->i * 64 + (uint32_t)__builtin_ctzll(scan->mid);
		scan->mid &= scan->mid - 1;
		leaf = atomic_exchange_explicit(&b->leaf[word], 0, memory_order_seq_cst);
		for (; leaf; leaf &= leaf - 1, budget--)
			found(arg, word * 64 + (uint32_t)__builtin_ctzll(leaf));
	}
	return false;
}

#endif /* RING_BELL_H */
