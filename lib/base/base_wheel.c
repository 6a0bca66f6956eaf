/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timer wheel, see base_wheel.h. An entry stands on the level of the highest byte
 * in which its tick differs from the wheel's. So the slots in use on a level lie
 * after the wheel's own one there, an entry of a lower level is always earlier
 * than one of a higher level, and time jumps from one slot in use to the next
 * without a look at those between: work is done per entry, not per tick.
 */
#include <assert.h>
#include <string.h>

#include "base_wheel.h"

/* Entries that a call of wheel_expire() may move before it returns. */
#define MOVES_MAX 256

enum {
	/* Ticks with other bits above the last level's; sorted in when those come. */
	LIST_FAR = WHEEL_LEVELS * WHEEL_SLOTS,
	/* The slot that time has reached: due entries, or to be placed anew. */
	LIST_TODO,
};

static_assert(offsetof(struct wheel_entry, link) == 0, "a link is an entry");
static_assert(WHEEL_SLOTS == 256, "a level is a byte of the tick");

static bool
list_empty(const struct wheel_link *head)
{
	return head->next == head;
}

static void
list_append(struct wheel_link *head, struct wheel_link *l)
{
	l->next = head;
	l->prev = head->prev;
	head->prev->next = l;
	head->prev = l;
}

static void
list_move_all(struct wheel_link *to, struct wheel_link *from)
{
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	from->next = from->prev = from;
}

static void
mark(struct wheel *w, size_t list, bool in_use)
{
	uint64_t bit = UINT64_C(1) << (list % 64);
	uint64_t *word;

	if (list >= LIST_FAR)
		return;
	word = &w->used[list / WHEEL_SLOTS][list % WHEEL_SLOTS / 64];
	*word = in_use ? *word | bit : *word & ~bit;
}

static void
unlink_entry(struct wheel *w, struct wheel_entry *e)
{
	struct wheel_link *next = e->link.next, *prev = e->link.prev;

	next->prev = prev;
	prev->next = next;
	e->link.next = NULL;
	if (next == prev) /* both are the head: the list is empty now */
		mark(w, (size_t)(next - w->list), false);
}

/* First tick at or after a time. */
static uint64_t
tick_of(uint64_t ns)
{
	return (ns >> WHEEL_TICK_SHIFT) + ((ns & (WHEEL_TICK_NS - 1)) != 0);
}

/* Place an entry by a tick, which is after the wheel's own. */
static void
place(struct wheel *w, struct wheel_entry *e, uint64_t tick)
{
	uint64_t differs = tick ^ w->tick;
	unsigned int level = (63 - (unsigned int)__builtin_clzll(differs)) / 8;
	size_t list = LIST_FAR;

	if (level < WHEEL_LEVELS)
		list = level * WHEEL_SLOTS + (tick >> (8 * level)) % WHEEL_SLOTS;
	e->placed = e->deadline;
	list_append(&w->list[list], &e->link);
	mark(w, list, true);
}

void
wheel_init(struct wheel *w, uint64_t now_ns)
{
	w->tick = now_ns >> WHEEL_TICK_SHIFT;
	memset(w->used, 0, sizeof(w->used));
	for (size_t i = 0; i < WHEEL_LISTS; i++)
		w->list[i].next = w->list[i].prev = &w->list[i];
}

void
wheel_arm(struct wheel *w, struct wheel_entry *e, uint64_t deadline_ns)
{
	uint64_t tick = tick_of(deadline_ns);

	if (wheel_armed(e))
		unlink_entry(w, e);
	e->deadline = deadline_ns;
	place(w, e, tick > w->tick ? tick : w->tick + 1);
}

void
wheel_cancel(struct wheel *w, struct wheel_entry *e)
{
	if (wheel_armed(e))
		unlink_entry(w, e);
}

/* First slot in use after slot `i` of a level; WHEEL_SLOTS when there is none. */
static unsigned int
next_slot(const uint64_t *used, unsigned int i)
{
	for (i++; i < WHEEL_SLOTS; i = (i | 63) + 1) {
		uint64_t word = used[i / 64] >> (i % 64);

		if (word != 0)
			return i + (unsigned int)__builtin_ctzll(word);
	}
	return WHEEL_SLOTS;
}

/*
 * The list that time reaches next and the tick at which it does. That is a slot's
 * first tick, for a slot of an upper level perhaps before any deadline in it.
 * False when nothing is armed.
 */
static bool
next_list(const struct wheel *w, uint64_t *tick, size_t *list)
{
	for (unsigned int level = 0; level < WHEEL_LEVELS; level++) {
		unsigned int shift = 8 * level;
		unsigned int slot = next_slot(w->used[level], (w->tick >> shift) % WHEEL_SLOTS);

		if (slot < WHEEL_SLOTS) {
			*tick = (w->tick >> shift >> 8 << 8 | slot) << shift;
			*list = level * WHEEL_SLOTS + slot;
			return true;
		}
	}
	*tick = ((w->tick >> 8 * WHEEL_LEVELS) + 1) << 8 * WHEEL_LEVELS;
	*list = LIST_FAR;
	return !list_empty(&w->list[LIST_FAR]);
}

/* Go to the next list in use, or to the present when it comes first. */
static bool
advance(struct wheel *w, uint64_t now_tick)
{
	uint64_t tick;
	size_t list;

	if (!next_list(w, &tick, &list) || tick > now_tick) {
		if (now_tick > w->tick)
			w->tick = now_tick;
		return false;
	}
	w->tick = tick;
	list_move_all(&w->list[LIST_TODO], &w->list[list]);
	mark(w, list, false);
	return true;
}

struct wheel_entry *
wheel_expire(struct wheel *w, uint64_t now_ns)
{
	uint64_t now_tick = now_ns >> WHEEL_TICK_SHIFT;
	struct wheel_link *todo = &w->list[LIST_TODO];

	for (unsigned int moves = 0; moves < MOVES_MAX; moves++) {
		struct wheel_entry *e;
		uint64_t tick;

		if (list_empty(todo) && !advance(w, now_tick))
			return NULL;
		e = (struct wheel_entry *)todo->next;
		unlink_entry(w, e);
		tick = tick_of(e->deadline);
		if (tick <= w->tick)
			return e;
		place(w, e, tick);
	}
	return NULL;
}

uint64_t
wheel_next(const struct wheel *w)
{
	uint64_t tick;
	size_t list;

	if (!list_empty(&w->list[LIST_TODO]))
		return w->tick << WHEEL_TICK_SHIFT;
	if (!next_list(w, &tick, &list) || tick > UINT64_MAX >> WHEEL_TICK_SHIFT)
		return UINT64_MAX;
	return tick << WHEEL_TICK_SHIFT;
}
