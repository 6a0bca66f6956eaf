/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions for the tests of lib/mr_table, and windows and fast-register keys bound by hand, in
 * the way the verbs that bind them do.
 */
#ifndef MR_FIXTURE_H
#define MR_FIXTURE_H

#include <string.h>

#include "mr_table_priv.h"
#include "unit.h"

enum { PD = 7, OTHER_PD = 8, QPN = 0x112233, OTHER_QPN = 0x112234 };
#define ALL_RIGHTS \
	(MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_MW_BIND)

/** ck_assert() for long loops: Check makes a system call for each assertion that holds. */
#define FIX_REQUIRE(cond) \
	do { \
		if (!(cond)) \
			ck_abort_msg("%s", #cond); \
	} while (0)

static inline struct mr_table *
fix_table(uint32_t capacity)
{
	struct mr_table *t = mr_table_create(capacity);

	ck_assert_ptr_nonnull(t);
	return t;
}

/** A region of one direct run at `ptr`, which nobody follows. */
static inline int
fix_try(struct mr_table *t, uint64_t iova, uint64_t length, uint32_t access, void *ptr,
	uint32_t *key)
{
	struct mr_seg seg = {.length = length, .kind = MR_SEG_DIRECT, .ptr = ptr};
	struct mr_desc d = {
		.type = MR_TYPE_REGION,
		.pd = PD,
		.access = access,
		.iova = iova,
		.length = length,
		.segs = &seg,
		.num_segs = length > 0,
		.owner = t,
	};

	return mr_register(t, &d, key);
}

static inline uint32_t
fix_region(struct mr_table *t, uint64_t iova, uint64_t length, uint32_t access, void *ptr)
{
	uint32_t key = 0;

	FIX_REQUIRE(fix_try(t, iova, length, access, ptr, &key) == 0);
	return key;
}

/** A key that is not bound yet. */
static inline uint32_t
fix_free_key(struct mr_table *t, enum mr_type type)
{
	struct mr_desc d = {.type = type, .pd = PD, .owner = t};
	uint32_t key = 0;

	ck_assert_int_eq(mr_register(t, &d, &key), 0);
	return key;
}

/** Bind a FREE window to [off, off + len) of a region. @return its key, with that variant. */
static inline uint32_t
fix_bind(struct mr_table *t, uint32_t window, uint32_t region, uint8_t variant, uint64_t off,
	uint64_t len, uint32_t access)
{
	struct mr *w = mr_slot(t, window);
	struct mr *r = mr_slot(t, region);
	enum mr_type type = mr_word_type(atomic_load(&w->word));
	uint32_t key = (window & ~0xffu) | variant;

	ck_assert(mr_bound_get(r));
	w->iova = r->iova + off;
	w->length = len;
	w->base = r->base != NULL ? r->base + off : NULL;
	w->shift = off;
	w->segs = r->segs;
	w->lane = r->lane;
	w->parent = r;
	w->pd_mask = type == MR_TYPE_WINDOW_2A ? 0 : UINT32_MAX;
	w->qpn = type == MR_TYPE_WINDOW_1 ? 0 : QPN;
	w->qpn_mask = type == MR_TYPE_WINDOW_1 ? 0 : UINT32_MAX;
	atomic_store_explicit(
		&w->word, mr_word(key, access, type, MR_STATE_VALID), memory_order_release);
	return key;
}

/** Make a FREE fast-register key valid over bytes of no region. */
static inline uint32_t
fix_fast_reg(struct mr_table *t, uint32_t free_key, uint8_t variant, uint64_t iova, uint64_t len,
	uint32_t access, uint8_t *ptr)
{
	struct mr *m = mr_slot(t, free_key);
	uint32_t key = (free_key & ~0xffu) | variant;

	m->iova = iova;
	m->length = len;
	m->base = ptr;
	atomic_store(&m->bound, 0);
	atomic_store_explicit(&m->word,
		mr_word(key, access | MR_LOCAL_READ, MR_TYPE_FAST_REG, MR_STATE_VALID),
		memory_order_release);
	return key;
}

static inline enum mr_result
fix_check(struct mr_table *t, uint32_t key, uint64_t addr, uint64_t len, uint32_t access)
{
	struct mr_ref ref;

	return mr_check(t, key, PD, QPN, addr, len, access, &ref);
}

/** Kill and release, with nobody to wait for. */
static inline void
fix_deregister(struct mr_table *t, uint32_t key)
{
	FIX_REQUIRE(mr_kill(t, key) == 0);
	FIX_REQUIRE(!mr_busy(t, key));
	FIX_REQUIRE(mr_release(t, key) == t);
}

#endif /* MR_FIXTURE_H */
