/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fast registration: an entry made by the control thread, with room for its runs, to which a work
 * request gives bytes. There are no physical pages here: the list names bytes of regions that
 * are registered already, and the key is another name for them, in the order of the list.
 */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "mr_table_priv.h"

struct mr_fast *
mr_fast_new(uint32_t max_segs)
{
	size_t head = sizeof(struct mr_fast) + max_segs * sizeof(struct mr *);
	size_t at = (head + alignof(struct mr_segs) - 1) & ~(alignof(struct mr_segs) - 1);
	struct mr_fast *f =
		malloc(at + sizeof(struct mr_segs) + max_segs * sizeof(struct mr_seg));

	if (f == NULL)
		return NULL;
	f->max = max_segs;
	f->segs = (struct mr_segs *)(void *)((uint8_t *)f + at);
	f->segs->num = 0;
	return f;
}

enum mr_result
mr_fast_begin(struct mr_table *t, uint32_t key, uint32_t pd)
{
	struct mr *mr = mr_slot(t, key);
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_acquire);

	if (mr_word_state(word) == MR_STATE_EMPTY || mr_word_type(word) != MR_TYPE_FAST_REG ||
		(mr_word_key(word) ^ key) >> MR_VARIANT_BITS != 0)
		return MR_NO_KEY;
	if (mr_word_state(word) != MR_STATE_FREE)
		return MR_BAD_STATE;
	if (mr->pd != pd)
		return MR_BAD_PD;
	return mr_claim(mr, &word) ? MR_OK : MR_BAD_STATE;
}

void
mr_fast_abort(struct mr_table *t, uint32_t key)
{
	struct mr *mr = mr_slot(t, key);
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_acquire);

	mr_claim_end(mr, mr_word_set_state(word, MR_STATE_FREE));
	mr_claim_drop(mr);
}

/* ---- the list ---------- */

/* Another run, behind those that are there; the region is counted once for it. */
static enum mr_result
fast_add_run(struct mr *mr, struct mr *r, uint64_t start, uint64_t offset, uint64_t *len)
{
	struct mr_segs *segs = mr->fast->segs;
	const struct mr_seg *s = mr_segs_find(r->segs, offset);
	uint64_t into = offset - s->start;
	struct mr_seg run = {.start = start, .length = s->length - into, .kind = s->kind};

	if (run.length > *len)
		run.length = *len;
	if (segs->num == mr->fast->max)
		return MR_BAD_RANGE;
	if (s->kind == MR_SEG_FOREIGN) {
		if (mr->lane != NULL && mr->lane != r->lane)
			return MR_BAD_RANGE; /* two processes' */
		mr->lane = r->lane;
		run.remote = s->remote + into;
	} else {
		run.ptr = s->ptr + into;
	}
	if (!mr_bound_get(r))
		return MR_BAD_STATE;
	mr->fast->owner[segs->num] = r;
	segs->seg[segs->num++] = run;
	*len = run.length;
	return MR_OK;
}

/* An element of the list: one run, or as many as its region has there. */
static enum mr_result
fast_add(struct mr_table *t, struct mr *mr, const struct mr_fast_req *f, const struct mr_elem *e,
	uint64_t *at)
{
	struct mr *r = mr_slot(t, e->lkey);
	uint64_t offset, done, n;
	enum mr_result res = mr_parent_get(
		r, e->lkey, f->pd, mr->context, mr_rights_below(f->access));

	if (res != MR_OK)
		return res;
	/* Regions alone, so that nothing is more than two steps from its bytes. */
	if (r->fast != NULL || r->segs == NULL)
		res = MR_BAD_ACCESS;
	else if (!mr_range_in(r, e->addr, e->length, &offset))
		res = MR_BAD_RANGE;
	for (done = 0; res == MR_OK && done < e->length; done += n) {
		n = e->length - done;
		res = fast_add_run(mr, r, *at + done, offset + done, &n);
	}
	*at += e->length;
	mr_bound_put(r); /* each run has counted it for itself */
	return res;
}

static enum mr_result
fast_list(struct mr_table *t, struct mr *mr, const struct mr_fast_req *f)
{
	const uint8_t *list = f->list;
	enum mr_result res = MR_OK;
	uint64_t at = 0;

	for (uint32_t i = 0; i < f->num && res == MR_OK; i++) {
		struct mr_elem e;

		memcpy(&e, list + i * sizeof(e), sizeof(e));
		__asm__ volatile("" : : "r"(&e) : "memory"); /* the copy is what is looked at */
		if (e.length != 0)
			res = fast_add(t, mr, f, &e, &at);
	}
	return res == MR_OK && at != f->length ? MR_BAD_RANGE : res;
}

/* ---- commit ---------- */

static enum mr_result
fast_check(const struct mr *mr, const struct mr_fast_req *f)
{
	if (!mr_access_valid(f->access))
		return MR_BAD_ACCESS;
	if (f->length == 0 || f->length > MR_MAX_LENGTH || f->num > mr->fast->max)
		return MR_BAD_RANGE;
	if ((f->access & MR_ZERO_BASED) != 0)
		return f->iova == 0 ? MR_OK : MR_BAD_RANGE;
	return f->iova > UINT64_MAX - (f->length - 1) ? MR_BAD_RANGE : MR_OK;
}

/* Everything but the word, of an entry that is claimed and that nobody reads. */
static enum mr_result
fast_fill(struct mr_table *t, struct mr *mr, const struct mr_fast_req *f)
{
	struct mr_segs *segs = mr->fast->segs;
	enum mr_result res = fast_check(mr, f);

	segs->num = 0;
	mr->segs = segs;
	mr->lane = NULL;
	if (res == MR_OK)
		res = fast_list(t, mr, f);
	if (res != MR_OK) {
		mr_window_unbound(mr);
		segs->num = 0;
		return res;
	}
	mr->iova = f->iova;
	mr->length = f->length;
	mr->base = segs->num == 1 && segs->seg[0].kind == MR_SEG_DIRECT ? segs->seg[0].ptr : NULL;
	mr->shift = 0;
	atomic_store_explicit(&mr->grace, 0, memory_order_relaxed);
	atomic_store_explicit(&mr->bound, 0, memory_order_relaxed);
	return MR_OK;
}

enum mr_result
mr_fast_commit(struct mr_table *t, const struct mr_fast_req *f)
{
	struct mr *mr = mr_slot(t, f->key);
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_acquire);
	uint64_t valid = mr_word(f->key, (f->access & MR_ACCESS_MASK) | MR_LOCAL_READ,
		MR_TYPE_FAST_REG, MR_STATE_VALID);
	enum mr_result res = MR_BAD_STATE;

	if (mr_word_state(word) == MR_STATE_CLAIMED)
		res = fast_fill(t, mr, f);
	if (res != MR_OK) {
		mr_claim_end(mr, mr_word_set_state(word, MR_STATE_FREE));
	} else if (!mr_claim_end(mr, valid)) {
		/* Killed: nobody has seen it VALID, and its regions' count is ours to give back. */
		atomic_store_explicit(&mr->bound, MR_BOUND_CLOSED, memory_order_relaxed);
		mr_window_unbound(mr);
		res = MR_BAD_STATE;
	}
	mr_claim_drop(mr);
	return res;
}
