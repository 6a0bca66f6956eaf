/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/verbs: the pools' free lists and what is known of each send operation. */
#ifndef VERBS_PRIV_H
#define VERBS_PRIV_H

#include <rte_branch_prediction.h>

#include "verbs.h"

/** Longest message (IBTA 9.7.7.2.4: 2^31 bytes). */
#define VERBS_MAX_MESSAGE (1u << 31)

#define VERBS_WR_LIST 1u   /* takes a gather or scatter list */
#define VERBS_WR_INLINE 2u /* takes inline payload */
#define VERBS_WR_EIGHT 4u  /* moves eight bytes, of one element */
#define VERBS_WR_RANGE 8u  /* flush_len is the length of a remote range */
#define VERBS_WR_LEN 16u   /* its completion tells a length */

struct verbs_wr_info {
	uint16_t types; /* bit a VERBS_QPT_* that may post it */
	uint8_t mask;	/* VERBS_WR_* */
	uint8_t wc;	/* enum ring_wc_opcode */
};
extern const struct verbs_wr_info verbs_wr_info[RING_WR_OPCODE_COUNT];

/** Fewer than are left; so there is one. */
static inline bool
verbs_share_may(uint32_t used_by_it, uint32_t used, uint32_t total)
{
	return used_by_it + used < total;
}

/** It got none: it is told when it may try again. */
void verbs_starve(struct verbs_worker *w, struct verbs_qp *qp, enum verbs_pool pool);
/** Of those that wait, some for whom there is something. */
void verbs_starved_wake(struct verbs_worker *w);

static inline bool
verbs_block_may(const struct verbs_worker *w, const struct verbs_share *s)
{
	return verbs_share_may(s->used[VERBS_POOL_BLOCK], w->blocks_used, w->blocks);
}

static inline struct verbs_sgl_block *
verbs_block_alloc(struct verbs_worker *w, struct verbs_share *s)
{
	struct verbs_sgl_block *b = w->free_blocks;

	if (unlikely(!verbs_block_may(w, s)))
		return NULL;
	w->free_blocks = b->next;
	w->blocks_used++;
	s->used[VERBS_POOL_BLOCK]++;
	b->share = s;
	return b;
}

static inline void
verbs_block_free(struct verbs_worker *w, struct verbs_sgl_block *b)
{
	b->next = w->free_blocks;
	w->free_blocks = b;
	w->blocks_used--;
	b->share->used[VERBS_POOL_BLOCK]--;
}

static inline void
verbs_wqe_free(struct verbs_worker *w, const struct verbs_qp *qp, struct verbs_wqe *q)
{
	if (unlikely(q->block != NULL))
		verbs_block_free(w, q->block);
	q->next = w->free_wqes;
	w->free_wqes = q;
	w->shadows_used--;
	qp->share->used[VERBS_POOL_WQE]--;
}

static inline struct verbs_io *
verbs_io_alloc(struct verbs_worker *w, struct verbs_share *s)
{
	struct verbs_io *io = w->free_ios;

	if (unlikely(!verbs_share_may(s->used[VERBS_POOL_IO], w->ios_used, w->ios)))
		return NULL;
	w->free_ios = io->next;
	w->ios_used++;
	s->used[VERBS_POOL_IO]++;
	io->share = s;
	return io;
}

static inline void
verbs_io_free(struct verbs_worker *w, struct verbs_io *io)
{
	io->next = w->free_ios;
	w->free_ios = io;
	w->ios_used--;
	io->share->used[VERBS_POOL_IO]--;
}

/**
 * Make a copy out of shared memory the only thing that is looked at from here on: the
 * compiler may not load the original again.
 */
static inline void
verbs_copied(void *copy)
{
	__asm__ volatile("" : : "r"(copy) : "memory");
}

/** Where a receive request lies: slots of a ring of mask + 1, or of an SRQ's entry. */
struct verbs_slots {
	const uint8_t *base;
	uint32_t index, mask;
};
static inline const uint8_t *
verbs_slot(struct verbs_slots s, uint32_t i)
{
	return s.base + (size_t)((s.index + i) & s.mask) * RING_SLOT_SIZE;
}

/**
 * Fill in a receive request from its copied first slot, and the further ones it says it has.
 * @return 1 (out->valid tells whether it was well-formed), -EAGAIN: no block left to the share.
 */
int verbs_rwqe_take(struct verbs_worker *w, struct verbs_share *share, const struct ring_rwqe *r,
		    struct verbs_slots s, uint32_t max_sge, struct verbs_rwqe *out);

#endif /* VERBS_PRIV_H */
