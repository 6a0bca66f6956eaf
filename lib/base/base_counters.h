/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Named counters. One list makes the enum and the table of names and helps, so
 * that none is without:
 *
 *	#define ROCE_COUNTERS(X) \
 *		X(ROCE_ICRC_ERRORS, "icrc_errors", "packets dropped for a wrong ICRC") \
 *		X(ROCE_DUPLICATES, "duplicate_requests", "requests seen before")
 *	COUNTERS_ENUM(roce_counter, ROCE_COUNTERS, ROCE_COUNTER_COUNT);
 *	COUNTERS_TABLE(roce_counter_desc, ROCE_COUNTERS);	(in one .c)
 *
 * A block is an array of `struct counter`, one per worker: a single thread writes
 * it, any thread reads it at any time.
 */
#ifndef BASE_COUNTERS_H
#define BASE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

struct counter_desc {
	const char *name; /* snake_case, unique in its block */
	const char *help; /* one line, for people */
};

struct counter {
	uint64_t value; /* only through the functions below */
};

#define COUNTERS_ENUM_ITEM(id, name, help) id,
#define COUNTERS_DESC_ITEM(id, name, help) [id] = {name, help},

#define COUNTERS_ENUM(tag, list, count) enum tag { list(COUNTERS_ENUM_ITEM) count }
#define COUNTERS_TABLE(table, list) const struct counter_desc table[] = {list(COUNTERS_DESC_ITEM)}

/** Owner only: no locked instruction. */
static inline void
counter_add(struct counter *c, uint64_t n)
{
	uint64_t v = __atomic_load_n(&c->value, __ATOMIC_RELAXED);

	__atomic_store_n(&c->value, v + n, __ATOMIC_RELAXED);
}

static inline void
counter_inc(struct counter *c)
{
	counter_add(c, 1);
}

static inline uint64_t
counter_read(const struct counter *c)
{
	return __atomic_load_n(&c->value, __ATOMIC_RELAXED);
}

/** Add a block to a sum, for totals over workers. */
void counters_sum(uint64_t *sum, const struct counter *block, size_t count);

/** Index of a name, -1 when the table has none such. */
int counters_find(const struct counter_desc *table, size_t count, const char *name);

#endif /* BASE_COUNTERS_H */
