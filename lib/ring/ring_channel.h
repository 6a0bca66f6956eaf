/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: which CQs fired. Writer (a worker or the control thread): push, then one
 * byte into the channel's pipe; EAGAIN is fine, the pipe is readable already. Reader: read
 * bytes, then pop all subs. A byte may come without a hint left to pop and the other way round:
 * a reader that pops nothing goes back to the pipe, and keeps what it pops beyond its need.
 *
 * Hints say where to look: a CQ fired if its notify_seq is another than the reader took last,
 * whether it was named or found by looking at all.
 *
 * The writer does not know how far the reader is and overwrites the oldest. The reader notices,
 * during the read even: an entry of a later pass, once seen, carries with it the tail before it.
 */
#ifndef RING_CHANNEL_H
#define RING_CHANNEL_H

#include "ring_abi.h"

/** Writer: CQ `cqn` fired. */
static inline void
ring_channel_push(struct ring_channel_sub *s, uint32_t cqn)
{
	uint32_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);

	atomic_store_explicit(&s->cqn[tail % RING_CHANNEL_ENTRIES], cqn, memory_order_release);
	atomic_store_explicit(&s->tail, tail + 1, memory_order_release);
}

/** Writer: fired CQs could not be named (for instance an object that is no more). */
static inline void
ring_channel_lose(struct ring_channel_sub *s)
{
	atomic_fetch_add_explicit(&s->lost, 1, memory_order_release);
}

/** A reader's place in a sub; all zero at first. */
struct ring_channel_reader {
	uint32_t head;
	uint32_t lost;
};

enum ring_channel_result {
	RING_CHANNEL_EMPTY,
	RING_CHANNEL_CQ,  /* *cqn fired */
	RING_CHANNEL_ALL, /* any may have: look at all */
};

/** Reader: the next hint. One thread at a time. */
static inline enum ring_channel_result
ring_channel_pop(const struct ring_channel_sub *s, struct ring_channel_reader *r, uint32_t *cqn)
{
	uint32_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
	uint32_t lost = atomic_load_explicit(&s->lost, memory_order_acquire);

	if (lost != r->lost || tail - r->head > RING_CHANNEL_ENTRIES)
		goto all;
	if (tail == r->head)
		return RING_CHANNEL_EMPTY;
	*cqn = atomic_load_explicit(&s->cqn[r->head % RING_CHANNEL_ENTRIES],
				    memory_order_acquire);
	tail = atomic_load_explicit(&s->tail, memory_order_acquire);
	if (tail - r->head >= RING_CHANNEL_ENTRIES)
		goto all; /* its overwriting may have begun */
	r->head++;
	return RING_CHANNEL_CQ;
all:
	r->head = tail;
	r->lost = lost;
	return RING_CHANNEL_ALL;
}

#endif /* RING_CHANNEL_H */
