/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of keys as the control thread sees it: create, register, kill, release. A slot is
 * found in constant time and at random, and a key is never one that the slot had just before.
 * Waiting for workers and copiers between kill and release is the caller's.
 */
#include <bsd/stdlib.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "mr_table_priv.h"

/*
 * A mapping of its own: zeroed, aligned, and huge where possible, since peers name keys at
 * random. MR_STATE_EMPTY and key 0 are all zeroes.
 */
static struct mr *
mr_slots_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE); /* a wish */
	return p;
}

struct mr_table *
mr_table_create(uint32_t capacity)
{
	uint32_t slots = rte_align32pow2(RTE_MIN(capacity, MR_INDEX_MAX + 1));
	struct mr_table *t = aligned_alloc(MR_CACHE_LINE, sizeof(*t));

	if (t == NULL)
		return NULL;
	slots = RTE_MAX(slots, 1u);
	*t = (struct mr_table){
		.mask = slots - 1,
		.bits = rte_bsf32(slots),
		.bytes = slots * sizeof(struct mr),
	};
	/*
	 * The first and the last index are never given. When a slot has but one or two indices
	 * that would leave some slots without a choice, so those are not used at all.
	 */
	t->first = t->bits >= MR_INDEX_BITS - 1;
	t->capacity = slots - 2 * t->first;
	t->num_free = t->capacity;
	t->slots = mr_slots_map(t->bytes);
	t->free_list = calloc(t->capacity, sizeof(*t->free_list));
	if (t->slots == NULL || t->free_list == NULL) {
		mr_table_free(t);
		return NULL;
	}
	return t;
}

/* What an entry owns: a window's runs are its region's, a fast registration's in its block. */
static void
mr_free_bytes(struct mr *mr, uint64_t word)
{
	if (mr->fast != NULL)
		free(mr->fast);
	else if (!mr_type_is_window(mr_word_type(word)))
		free((void *)(uintptr_t)mr->segs);
	mr->segs = NULL;
	mr->fast = NULL;
}

void
mr_table_free(struct mr_table *t)
{
	uint32_t i;

	if (t == NULL)
		return;
	/* Segments of keys that nobody released. */
	for (i = 0; t->slots != NULL && t->num_free < t->capacity && i <= t->mask; i++) {
		uint64_t word = atomic_load_explicit(&t->slots[i].word, memory_order_relaxed);

		if (mr_word_state(word) != MR_STATE_EMPTY)
			mr_free_bytes(&t->slots[i], word);
	}
	if (t->slots != NULL)
		munmap(t->slots, t->bytes);
	free(t->free_list);
	free(t);
}

uint32_t
mr_table_count(const struct mr_table *t)
{
	return atomic_load_explicit(&t->count, memory_order_relaxed);
}

uint32_t
mr_key_make(const struct mr_table *t, uint32_t slot, uint32_t last, uint32_t random)
{
	uint32_t index = ((random >> MR_VARIANT_BITS) & ~t->mask) | slot;
	uint32_t key = index << MR_VARIANT_BITS | (random & 0xff);

	if (index == 0 || index == MR_INDEX_MAX)
		return 0;
	/* A full index space has one index a slot: there the variant must do. */
	if (t->bits == MR_INDEX_BITS)
		return key != last ? key : 0;
	return index != last >> MR_VARIANT_BITS ? key : 0;
}

/*
 * The list's first num_free places hold the free slots; one is taken at random and the last
 * fills its place. A place holds slot xor its own number, so that zeroed memory is a full list.
 */
static uint32_t
mr_slot_take(struct mr_table *t)
{
	uint32_t at = arc4random_uniform(t->num_free);
	uint32_t end = --t->num_free;
	uint32_t slot = (t->free_list[at] ^ at) + t->first;
	uint32_t moved = t->free_list[end] ^ end;

	t->free_list[at] = moved ^ at;
	return slot;
}

static void
mr_slot_give(struct mr_table *t, uint32_t slot)
{
	uint32_t at = t->num_free++;

	t->free_list[at] = (slot - t->first) ^ at;
}

bool
mr_access_valid(uint32_t access)
{
	const uint32_t known = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ |
		MR_REMOTE_ATOMIC | MR_MW_BIND | MR_ZERO_BASED | MR_ON_DEMAND | MR_HUGETLB |
		MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT | MR_OPTIONAL_MASK;

	if ((access & ~known) != 0)
		return false;
	return (access & (MR_REMOTE_WRITE | MR_REMOTE_ATOMIC)) == 0 ||
		(access & MR_LOCAL_WRITE) != 0;
}

static bool
mr_region_valid(const struct mr_desc *d)
{
	if (!mr_access_valid(d->access) || d->length > MR_MAX_LENGTH)
		return false;
	/* The last byte must have an address; the one behind it need not. */
	if ((d->access & MR_ZERO_BASED) == 0 && d->length > 0 &&
		d->iova > UINT64_MAX - (d->length - 1))
		return false;
	return mr_segs_valid(d);
}

static bool
mr_desc_valid(const struct mr_desc *d)
{
	switch (d->type) {
	case MR_TYPE_REGION:
		return mr_region_valid(d);
	case MR_TYPE_WINDOW_1:
	case MR_TYPE_WINDOW_2A:
	case MR_TYPE_WINDOW_2B:
	case MR_TYPE_FAST_REG:
		return d->access == 0 && d->iova == 0 && d->length == 0 && d->num_segs == 0;
	case MR_TYPE_NONE:
		break;
	}
	return false;
}

/* Everything but the word. Other threads look at the word of an EMPTY entry and no further. */
static void
mr_fill(struct mr *mr, const struct mr_desc *d, const struct mr_segs *segs, struct mr_fast *fast)
{
	bool whole = segs != NULL && segs->num == 1 && segs->seg[0].kind == MR_SEG_DIRECT;

	mr->iova = (d->access & MR_ZERO_BASED) != 0 ? 0 : d->iova;
	mr->length = d->length;
	mr->base = whole ? segs->seg[0].ptr : NULL;
	mr->pd = d->pd;
	mr->pd_mask = UINT32_MAX;
	mr->qpn = 0;
	mr->qpn_mask = 0;
	mr->shift = 0;
	mr->segs = segs;
	mr->parent = NULL;
	mr->lane = d->lane;
	mr->owner = d->owner;
	mr->fast = fast;
	mr->context = d->context;
	atomic_store_explicit(&mr->grace, MR_GRACE_NONE, memory_order_relaxed);
	atomic_store_explicit(&mr->holds, 0, memory_order_relaxed);
	atomic_store_explicit(
		&mr->bound, d->type == MR_TYPE_REGION ? 0 : MR_BOUND_CLOSED, memory_order_relaxed);
}

/* The word of a new key in a slot: random, other than the one before. */
static uint64_t
mr_new_word(const struct mr_table *t, const struct mr_desc *d, uint32_t slot, uint32_t *key)
{
	uint32_t last = mr_word_key(
		atomic_load_explicit(&t->slots[slot].word, memory_order_relaxed));

	do {
		*key = mr_key_make(t, slot, last, arc4random());
	} while (*key == 0);
	if (d->type != MR_TYPE_REGION)
		return mr_word(*key, 0, d->type, MR_STATE_FREE);
	return mr_word(*key, (d->access & MR_ACCESS_MASK) | MR_LOCAL_READ, d->type, MR_STATE_VALID);
}

int
mr_register(struct mr_table *t, const struct mr_desc *d, uint32_t *key)
{
	struct mr_segs *segs = NULL;
	struct mr_fast *fast = NULL;
	uint32_t slot;

	if (!mr_desc_valid(d))
		return -EINVAL;
	if (t->num_free == 0)
		return -ENOSPC;
	if (d->num_segs > 0) {
		segs = mr_segs_build(d->segs, d->num_segs);
		if (segs == NULL)
			return -ENOMEM;
	}
	if (d->type == MR_TYPE_FAST_REG) {
		fast = mr_fast_new(d->max_segs);
		if (fast == NULL)
			return -ENOMEM;
	}
	slot = mr_slot_take(t);
	mr_fill(&t->slots[slot], d, segs, fast);
	/* Publish: pairs with the acquire load in mr_check(). */
	atomic_store_explicit(
		&t->slots[slot].word, mr_new_word(t, d, slot, key), memory_order_release);
	atomic_fetch_add_explicit(&t->count, 1, memory_order_relaxed);
	return 0;
}

/* Whether the control thread's key means this entry, whose word was read. */
static bool
mr_word_named(uint64_t word, uint32_t key)
{
	uint32_t differ = mr_word_key(word) ^ key;

	if (mr_word_state(word) == MR_STATE_EMPTY)
		return false;
	if (mr_word_type(word) != MR_TYPE_REGION)
		differ >>= MR_VARIANT_BITS;
	return differ == 0;
}

int
mr_kill(struct mr_table *t, uint32_t key)
{
	struct mr *mr = mr_slot(t, key);
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_acquire);

	if (!mr_word_named(word, key) || mr_word_state(word) == MR_STATE_DYING)
		return -ENOENT;
	if (!mr_bound_close(mr))
		return -EBUSY;
	/* Workers may invalidate it meanwhile; the state that is left decides. */
	while (!atomic_compare_exchange_weak_explicit(&mr->word, &word,
		mr_word_set_state(word, MR_STATE_DYING), memory_order_acq_rel,
		memory_order_acquire))
		;
	if (mr_word_state(word) == MR_STATE_VALID)
		mr_window_unbound(mr);
	return 0;
}

bool
mr_busy(const struct mr_table *t, uint32_t key)
{
	const struct mr *mr = mr_slot(t, key);
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_acquire);

	return mr_word_named(word, key) &&
		atomic_load_explicit(&mr->holds, memory_order_acquire) != 0;
}

void *
mr_release(struct mr_table *t, uint32_t key)
{
	struct mr *mr = mr_slot(t, key);
	uint64_t word = atomic_load_explicit(&mr->word, memory_order_acquire);
	void *owner = mr->owner;

	if (!mr_word_named(word, key) || mr_word_state(word) != MR_STATE_DYING || mr_busy(t, key))
		return NULL;
	mr_free_bytes(mr, word);
	atomic_store_explicit(
		&mr->word, mr_word_set_state(word, MR_STATE_EMPTY), memory_order_release);
	mr_slot_give(t, (uint32_t)(mr - t->slots));
	atomic_fetch_sub_explicit(&t->count, 1, memory_order_relaxed);
	return owner;
}
