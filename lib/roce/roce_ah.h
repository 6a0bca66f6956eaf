/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles: address vectors made ready for sending, named in work requests by numbers that
 * clients may make up. The control thread writes the table, all workers read it; a handle that was
 * taken out is freed when every worker has been quiescent and no packet waits by it.
 */
#ifndef ROCE_AH_H
#define ROCE_AH_H

#include <stdbool.h>
#include <stdint.h>

struct roce;
struct roce_ah;
struct roce_ah_table;
struct verbs_av;

/** capacity is rounded up to a power of two, 65536 at most. NULL without memory. */
struct roce_ah_table *roce_ah_table_create(uint32_t capacity);
/** Handles that are still in it are freed, too. */
void roce_ah_table_free(struct roce_ah_table *t);

/**
 * Make a handle of a protection domain, which nobody finds before roce_ah_enter(): it has a number
 * of its own, and roce_ah_unmake() gives both back.
 * @param av its port is where packets leave; the neighbour stays referenced while the handle is.
 * Of a group it is not looked at.
 * @param home port that the source address is of: its MTU is the longest message.
 * @return 0, the handle and its number, not 0; -EINVAL, -ENOMEM, -ENOSPC.
 */
int roce_ah_make(struct roce_ah_table *t, uint32_t pd, const struct verbs_av *av, uint16_t home,
		 struct roce_ah **made, uint32_t *number);
void roce_ah_enter(struct roce_ah_table *t, struct roce_ah *ah);
void roce_ah_unmake(struct roce_ah_table *t, struct roce_ah *ah);
/** Make and enter it. */
int roce_ah_add(struct roce_ah_table *t, uint32_t pd, const struct verbs_av *av, uint16_t home,
		uint32_t *number);
/** Nobody finds it any more. NULL: there is no such number. */
struct roce_ah *roce_ah_remove(struct roce_ah_table *t, uint32_t number);
/** After a grace period: whether packets wait for its neighbour in a worker's engine. */
bool roce_ah_waits(const struct roce_ah *ah);
void roce_ah_free(struct roce_ah *ah);
uint32_t roce_ah_count(const struct roce_ah_table *t);

/** On each worker, for one that waits: its packets are dropped. */
void roce_ah_forget(struct roce *r, const struct roce_ah *ah);

#endif /* ROCE_AH_H */
