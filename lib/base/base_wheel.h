/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hierarchical timer wheel: four levels of 256 slots, a tick of 4.096 us (the
 * unit of IBTA's timeouts), a horizon of 17592 s; what lies beyond is kept too.
 *
 * Single owner, no allocation, no clock: time is an argument. An entry fires at
 * the first tick at or after its deadline, never before; one armed at or before
 * the present tick fires at the next, so that a handler which re-arms in the past
 * cannot hold its caller's loop. Equal ticks fire in the order of arming.
 */
#ifndef BASE_WHEEL_H
#define BASE_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEEL_LEVELS 4
#define WHEEL_SLOTS 256 /* a level */
#define WHEEL_TICK_SHIFT 12
#define WHEEL_TICK_NS (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define WHEEL_LISTS (WHEEL_LEVELS * WHEEL_SLOTS + 2) /* and `far` and `todo` */

struct wheel_link {
	struct wheel_link *next, *prev;
};

/** Lies in its owner; all zero is an unarmed entry. */
struct wheel_entry {
	struct wheel_link link; /* first: a link is an entry */
	uint64_t deadline;	/* ns; the owner may postpone it */
	uint64_t placed;	/* ns; the deadline that chose the slot */
};

struct wheel {
	uint64_t tick;				       /* the last one that expiry has reached */
	uint64_t used[WHEEL_LEVELS][WHEEL_SLOTS / 64]; /* slots with an entry */
	struct wheel_link list[WHEEL_LISTS];
};

void wheel_init(struct wheel *w, uint64_t now_ns);

/** Arm or re-arm for `deadline_ns`. */
void wheel_arm(struct wheel *w, struct wheel_entry *e, uint64_t deadline_ns);

/** No-op for an unarmed entry; fine at any time, also between two expirations. */
void wheel_cancel(struct wheel *w, struct wheel_entry *e);

static inline bool
wheel_armed(const struct wheel_entry *e)
{
	return e->link.next != NULL;
}

/**
 * Move an armed entry's deadline by a single store; expiry puts the entry back
 * when it comes upon it too early. False, and nothing done, when the entry is not
 * armed or the deadline is before the one that it was placed for: use wheel_arm().
 */
static inline bool
wheel_postpone(struct wheel_entry *e, uint64_t deadline_ns)
{
	if (!wheel_armed(e) || deadline_ns < e->placed)
		return false;
	e->deadline = deadline_ns;
	return true;
}

/**
 * The next due entry, already unarmed, or NULL; call until NULL. A call that has
 * moved many entries which are not due yet also returns NULL, to bound its time;
 * wheel_next() then is not after `now_ns`, and the next call goes on.
 */
struct wheel_entry *wheel_expire(struct wheel *w, uint64_t now_ns);

/**
 * A time before which wheel_expire() has nothing to do and returns NULL; at that
 * time it makes progress. UINT64_MAX when no entry is armed.
 */
uint64_t wheel_next(const struct wheel *w);

#endif /* BASE_WHEEL_H */
