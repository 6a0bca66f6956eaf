/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Going idle without losing a wake-up. Model: test/model/kick.pml.
 *
 * A context at a worker (bells):            A worker (mailbox, hand-over rings):
 *   client          worker                    producer        worker
 *   set bell bits   need_kick = 1 (seq_cst)   enqueue         sleeping = 1
 *   if (need_kick)  look at all bells         fence           fence
 *     write eventfd any? need_kick = 0        if (sleeping)   look at everything
 *                   none? stop polling it       kick          any? sleeping = 0
 *                                                             none? epoll
 *
 * A worker sleeps only when all its contexts are idle by the left protocol. The eventfds are
 * watched edge-triggered and never read: by the worker itself while it sleeps, and by the control
 * thread, which puts the context into the mailbox of a worker that does not.
 */
#ifndef RING_KICK_H
#define RING_KICK_H

#include <stdbool.h>

#include "ring_abi.h"
#include "ring_fence.h"

/** Client, after ring_bell_set(): whether to write the worker's eventfd. */
static inline bool
ring_kick_needed(const struct ring_bell_daemon *d)
{
	return atomic_load_explicit(&d->need_kick, memory_order_seq_cst) != 0;
}

/** Worker: the context is polled again. */
static inline void
ring_kick_awake(struct ring_bell_daemon *d)
{
	atomic_store_explicit(&d->need_kick, 0, memory_order_relaxed);
}

/**
 * Worker: stop polling a context's bells. True: done, its eventfd will tell. False: there are
 * bells. Chunks that are made later come through the mailbox, before the client knows them; no
 * chunk may have an unfinished ring_bell_scan.
 */
static inline bool
ring_kick_idle(struct ring_bell_daemon *d, struct ring_bell_chunk *const *chunks, unsigned int n)
{
	atomic_store_explicit(&d->need_kick, 1, memory_order_seq_cst);
	for (unsigned int i = 0; i < n; i++) {
		if (atomic_load_explicit(&chunks[i]->top, memory_order_seq_cst)) {
			ring_kick_awake(d);
			return false;
		}
	}
	return true;
}

/** A worker's sleep, in the daemon's own memory. */
struct ring_sleep {
	_Alignas(RING_LINE) _Atomic uint32_t sleeping;
};

/** Worker: from here on producers kick. Look at every source once more before the epoll. */
static inline void
ring_sleep_enter(struct ring_sleep *s)
{
	atomic_store_explicit(&s->sleeping, 1, memory_order_relaxed);
	ring_fence();
}

/** Worker: awake, or there was something. */
static inline void
ring_sleep_leave(struct ring_sleep *s)
{
	atomic_store_explicit(&s->sleeping, 0, memory_order_relaxed);
}

/** Producer, after its enqueue: whether to kick the worker. */
static inline bool
ring_sleep_kick_needed(const struct ring_sleep *s)
{
	ring_fence();
	return atomic_load_explicit(&s->sleeping, memory_order_relaxed) != 0;
}

#endif /* RING_KICK_H */
