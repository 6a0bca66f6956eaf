/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that workers end by themselves: invalidation, and the count of windows that a region
 * carries. How they come to be valid is mr_bind.c's and mr_fast.c's. A key leaves VALID by
 * compare-and-swap, so of an invalidation and a deregistration that meet exactly one does what
 * follows from it.
 */
#include "mr_table_priv.h"

bool
mr_type_is_consumers(enum mr_type type)
{
	return type == MR_TYPE_WINDOW_2A || type == MR_TYPE_WINDOW_2B || type == MR_TYPE_FAST_REG;
}

bool
mr_bound_get(struct mr *mr)
{
	uint32_t n = atomic_load_explicit(&mr->bound, memory_order_relaxed);

	do {
		if ((n & MR_BOUND_CLOSED) != 0 || n + 1 == MR_BOUND_CLOSED)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&mr->bound, &n, n + 1, memory_order_acq_rel, memory_order_relaxed));
	return true;
}

void
mr_bound_put(struct mr *mr)
{
	atomic_fetch_sub_explicit(&mr->bound, 1, memory_order_release);
}

bool
mr_bound_close(struct mr *mr)
{
	uint32_t n = 0;

	return atomic_compare_exchange_strong_explicit(&mr->bound, &n, MR_BOUND_CLOSED,
		       memory_order_acq_rel, memory_order_acquire) ||
		n == MR_BOUND_CLOSED;
}

/*
 * At once, although workers may still be inside accesses through the window: a deregistration
 * of the region that this allows waits for them itself.
 */
void
mr_window_unbound(struct mr *mr)
{
	if (mr->fast != NULL) {
		for (uint32_t i = 0; mr->segs != NULL && i < mr->segs->num; i++)
			mr_bound_put(mr->fast->owner[i]);
	} else if (mr->parent != NULL) {
		mr_bound_put(mr->parent);
	}
}

/* A peer may only name what it has rights to; a window exists for nothing else. */
static bool
mr_is_remote(uint64_t word)
{
	const uint32_t remote = MR_REMOTE_READ | MR_REMOTE_WRITE | MR_REMOTE_ATOMIC |
		MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT;

	return mr_word_type(word) != MR_TYPE_FAST_REG || (mr_word_access(word) & remote) != 0;
}

/* Whether this peer or consumer may invalidate the key whose word was read. */
static enum mr_result
mr_invalidate_check(const struct mr *mr, uint64_t word, uint32_t key, uint32_t pd, uint32_t qpn)
{
	if (mr_word_key(word) != key || mr_word_state(word) == MR_STATE_EMPTY)
		return MR_NO_KEY;
	if (mr_word_state(word) != MR_STATE_VALID)
		return MR_BAD_STATE;
	if (mr_scope_differs(mr, pd, qpn))
		return MR_BAD_PD;
	return mr_type_is_consumers(mr_word_type(word)) ? MR_OK : MR_BAD_ACCESS;
}

static enum mr_result
mr_invalidate_by(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, bool peer)
{
	struct mr *mr = mr_slot(t, key);
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_acquire);
	enum mr_result r;

	do {
		r = mr_invalidate_check(mr, word, key, pd, qpn);
		if (r != MR_OK)
			return r;
		if (peer && !mr_is_remote(word))
			return MR_BAD_ACCESS;
		if (!mr_bound_close(mr))
			return MR_BAD_STATE;
	} while (!atomic_compare_exchange_weak_explicit(&mr->word, &word,
		mr_word_set_state(word, MR_STATE_FREE), memory_order_acq_rel,
		memory_order_acquire));
	mr_window_unbound(mr);
	return MR_OK;
}

enum mr_result
mr_invalidate(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn)
{
	return mr_invalidate_by(t, key, pd, qpn, false);
}

enum mr_result
mr_invalidate_remote(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn)
{
	return mr_invalidate_by(t, key, pd, qpn, true);
}
