/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one access check, and what is done with a checked reference. Runs on workers for every
 * gather element and every packet that names a key: one cache line for a region in one piece,
 * no lock, no division.
 */
#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "mr_table_priv.h"

static const char *const result_names[] = {
	[MR_OK] = "ok",
	[MR_NO_KEY] = "no_key",
	[MR_BAD_STATE] = "bad_state",
	[MR_BAD_PD] = "bad_pd",
	[MR_BAD_ACCESS] = "bad_access",
	[MR_BAD_RANGE] = "bad_range",
};
_Static_assert(sizeof(result_names) / sizeof(result_names[0]) == MR_RESULT_COUNT,
	"a name for each result");

const char *
mr_result_name(enum mr_result r)
{
	return (unsigned int)r < MR_RESULT_COUNT ? result_names[r] : "unknown";
}

/* Which of key, state, PD and right was wrong, in this order. */
static enum mr_result
mr_refusal(const struct mr *mr, uint64_t word, uint32_t key, uint32_t pd, uint32_t qpn)
{
	if (mr_word_key(word) != key || mr_word_state(word) == MR_STATE_EMPTY)
		return MR_NO_KEY;
	if (mr_word_state(word) != MR_STATE_VALID)
		return MR_BAD_STATE;
	/* VALID: only now may the plain fields be read. */
	return mr_scope_differs(mr, pd, qpn) ? MR_BAD_PD : MR_BAD_ACCESS;
}

/* The address of an access to a region of several runs, when it lies in one direct run. */
static uint8_t *
mr_locate(const struct mr *mr, uint64_t offset, uint64_t len)
{
	const struct mr_seg *s;
	uint64_t into;

	if (mr->segs == NULL)
		return NULL;
	s = mr_segs_find(mr->segs, offset);
	into = offset - s->start;
	if (s->kind != MR_SEG_DIRECT || len > s->length - into)
		return NULL;
	return s->ptr + into;
}

enum mr_result
mr_check(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t addr, uint64_t len,
	uint32_t access, struct mr_ref *out)
{
	struct mr *mr = mr_slot(t, key);
	/* Pairs with the release store in mr_register() and the exchanges of binds. */
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_acquire);
	uint32_t need = (access & MR_ACCESS_MASK) != 0 ? access : MR_LOCAL_READ;
	uint64_t want = mr_word(key, need, MR_TYPE_NONE, MR_STATE_VALID);
	uint64_t offset;

	if (unlikely((word & (MR_WORD_KEY | MR_WORD_STATE | want)) != want))
		return mr_refusal(mr, word, key, pd, qpn);
	if (unlikely(mr_scope_differs(mr, pd, qpn)))
		return MR_BAD_PD;
	offset = addr - mr->iova;
	if (unlikely(addr < mr->iova || offset > mr->length || len > mr->length - offset))
		return MR_BAD_RANGE;
	out->mr = mr;
	out->offset = offset + mr->shift;
	if (likely(mr->base != NULL))
		out->ptr = mr->base + offset;
	else
		out->ptr = mr_locate(mr, out->offset, len);
	return MR_OK;
}

enum mr_result
mr_check_whole(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, uint32_t access,
	struct mr_ref *out)
{
	struct mr *mr = mr_slot(t, key);
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_acquire);
	uint64_t want = mr_word(key, access, MR_TYPE_NONE, MR_STATE_VALID);

	if (unlikely((word & (MR_WORD_KEY | MR_WORD_STATE | want)) != want))
		return mr_refusal(mr, word, key, pd, qpn);
	if (unlikely(mr_scope_differs(mr, pd, qpn)))
		return MR_BAD_PD;
	*out = (struct mr_ref){.mr = mr, .offset = mr->shift, .ptr = mr->base};
	return MR_OK;
}

void
mr_prefetch(const struct mr_table *t, uint32_t key)
{
	rte_prefetch0(mr_slot(t, key));
}

void *
mr_lane(const struct mr_ref *ref)
{
	return ref->mr->lane;
}

/*
 * Of a region's own bytes, which is nearly always, only the hot line is read. An entry's type
 * is for life.
 */
struct mr *
mr_under(const struct mr_ref *ref, uint64_t off)
{
	const struct mr *mr = ref->mr;
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_relaxed);

	if (likely(mr_word_type(word) == MR_TYPE_REGION))
		return NULL;
	if (mr->fast == NULL && mr->parent != NULL) {
		if (mr->parent->fast == NULL)
			return mr->parent;
		mr = mr->parent; /* a window on a fast registration */
	}
	if (mr->fast == NULL || mr->segs == NULL)
		return NULL;
	return mr->fast->owner[mr_segs_find(mr->segs, ref->offset + off) - mr->segs->seg];
}

/* Relaxed: the holder is inside a read-side section, whose end the killer waits for. */
void
mr_hold(struct mr *mr, struct mr *under)
{
	if (under != NULL)
		atomic_fetch_add_explicit(&under->holds, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&mr->holds, 1, memory_order_relaxed);
}

/* Release: the copier's accesses come before; pairs with the acquire load of mr_busy(). */
void
mr_unhold(struct mr *mr, struct mr *under)
{
	atomic_fetch_sub_explicit(&mr->holds, 1, memory_order_release);
	if (under != NULL)
		atomic_fetch_sub_explicit(&under->holds, 1, memory_order_release);
}

bool
mr_still_valid(const struct mr_ref *ref, uint32_t key)
{
	uint64_t word = atomic_load_explicit(&ref->mr->word, memory_order_acquire);

	return mr_word_key(word) == key && mr_word_state(word) == MR_STATE_VALID;
}
