/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arming a CQ for one notification. Model: test/model/arm.pml.
 *
 * Client:                               Worker, after a burst:
 *   ring_cq_arm() (seq_cst)               publish CQEs of all CQs
 *   poll once more (seq_cst loads)        ring_fence(), once
 *   nothing? sleep on the channel         ring_cq_should_notify() for each CQ? notify
 *
 * Either the client's last poll finds the CQE or the worker sees the arming (case B155). A CQE
 * that is there when the CQ is armed makes no notification of its own; one that is published
 * at the same time may be found by the poll and notified too.
 *
 * The daemon cannot clear `armed`, so each arming has a number, and `notify_seq` is the last one
 * that was answered. Workers race for it by compare-and-swap: one answer an arming, whatever the
 * number of sub-rings. While an arming is unanswered, another is the same one, unless it
 * strengthens SOLICITED to NEXT; so numbers never run away from notify_seq.
 */
#ifndef RING_ARM_H
#define RING_ARM_H

#include <stdbool.h>

#include "ring_abi.h"
#include "ring_fence.h"

/** Client: ask for one notification. Any thread, any number of them. */
static inline void
ring_cq_arm(struct ring_cq_client *c, const struct ring_cq_daemon *d, enum ring_cq_armed kind)
{
	uint32_t old = atomic_load_explicit(&c->armed, memory_order_seq_cst);
	uint32_t new;

	do {
		uint32_t answered = atomic_load_explicit(&d->notify_seq, memory_order_seq_cst);
		bool pending = ((old >> 2) ^ answered) << 2;

		if (pending && (old & 3) != RING_CQ_UNARMED && (old & 3) <= (uint32_t)kind)
			new = old; /* the exchange orders it all the same */
		else
			new = ((old >> 2) + 1) << 2 | (uint32_t)kind;
	} while (!atomic_compare_exchange_weak_explicit(&c->armed, &old, new,
							memory_order_seq_cst,
							memory_order_seq_cst));
}

/** Whether a completion wakes a CQ armed for solicited ones: SE of the sender, or an error. */
static inline bool
ring_cqe_is_solicited(uint32_t flags, unsigned int status)
{
	return status != 0 || (flags & RING_CQE_SOLICITED);
}

/**
 * Worker: whether to notify, and if so, this worker is the one. After a ring_fence() that
 * follows the publication of the burst; `solicited`: one of its CQEs was. The client's word may
 * be anything: at worst its own process is woken in vain, or not at all.
 */
static inline bool
ring_cq_should_notify(const struct ring_cq_client *c, struct ring_cq_daemon *d, bool solicited)
{
	uint32_t armed = atomic_load_explicit(&c->armed, memory_order_seq_cst);
	uint32_t kind = armed & 3;
	uint32_t seq = armed >> 2;
	uint32_t answered;

	if (kind != RING_CQ_ARMED_NEXT && !(kind == RING_CQ_ARMED_SOLICITED && solicited))
		return false;
	answered = atomic_load_explicit(&d->notify_seq, memory_order_relaxed);
	do {
		/* 30-bit serial numbers. Another worker may have answered a later one. */
		if ((int32_t)((seq - answered) << 2) <= 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&d->notify_seq, &answered, seq,
							memory_order_seq_cst,
							memory_order_relaxed));
	return true;
}

#endif /* RING_ARM_H */
