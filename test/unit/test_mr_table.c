/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of keys: given, refused, killed, released, never the same again. */
#include <errno.h>

#include "mr_fixture.h"

static uint8_t bytes[4096];

START_TEST(create__capacity_is_rounded_up)
{
	static const uint32_t want[][2] = {{0, 1}, {1, 1}, {2, 2}, {3, 4}, {1000, 1024}};
	uint32_t key;

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct mr_table *t = fix_table(want[i][0]);

		for (uint32_t n = 0; n < want[i][1]; n++)
			ck_assert_int_eq(fix_try(t, 0, 16, 0, bytes, &key), 0);
		ck_assert_int_eq(fix_try(t, 0, 16, 0, bytes, &key), -ENOSPC);
		ck_assert_uint_eq(mr_table_count(t), want[i][1]);
		mr_table_free(t); /* with all keys in use: the leak checker looks on */
	}
	mr_table_free(NULL);
}
END_TEST

START_TEST(create__largest)
{
	/* More than 2^24 is 2^24; there a slot's only index may be a reserved one. */
	static const uint32_t size[] = {1u << 23, 1u << 24, UINT32_MAX};
	static const uint32_t slots[] = {1u << 23, 1u << 24, 1u << 24};

	for (int i = 0; i < 3; i++) {
		struct mr_table *t = fix_table(size[i]);
		uint32_t key;

		ck_assert_uint_eq(t->mask + 1, slots[i]);
		ck_assert_uint_eq(t->capacity, slots[i] - 2);
		/* The list's first place is slot 1, and a slot that is given back is itself. */
		t->num_free = 1;
		for (int n = 0; n < 3; n++) {
			key = fix_region(t, 0, 16, 0, bytes);
			ck_assert_uint_eq((key >> 8) & t->mask, 1);
			fix_deregister(t, key);
		}
		t->num_free = t->capacity;
		for (int n = 0; n < 10; n++) {
			key = fix_region(t, 0, 16, 0, bytes);
			ck_assert_int_eq(fix_check(t, key, 0, 16, 0), MR_OK);
			fix_deregister(t, key);
		}
		mr_table_free(t);
	}
}
END_TEST

START_TEST(key_make__reserved_and_repeated)
{
	struct mr_table small = {.mask = 15, .bits = 4};
	struct mr_table full = {.mask = MR_INDEX_MAX, .bits = MR_INDEX_BITS};

	/* The slot replaces the low bits of the index, the rest comes from the random bits. */
	ck_assert_uint_eq(mr_key_make(&small, 5, 0, 0xabcdef12), 0xabcde512);
	/* Index 0 and index 2^24 - 1 are nobody's. */
	ck_assert_uint_eq(mr_key_make(&small, 0, 0x77700000, 0x00000f55), 0);
	ck_assert_uint_eq(mr_key_make(&small, 0, 0x77700000, 0x00001f55), 0x00001055);
	ck_assert_uint_eq(mr_key_make(&small, 15, 0, 0xffffff55), 0);
	ck_assert_uint_eq(mr_key_make(&small, 15, 0, 0xffffef55), 0xffffef55);
	/* Not the index of the last key, whatever the variant. */
	ck_assert_uint_eq(mr_key_make(&small, 5, 0xabcde501, 0xabcdef12), 0);
	ck_assert_uint_eq(mr_key_make(&small, 5, 0xabcdf512, 0xabcdef12), 0xabcde512);
	/* Where a slot has one index only, not the same variant. */
	ck_assert_uint_eq(mr_key_make(&full, 0x123456, 0x12345678, 0xffffff78), 0);
	ck_assert_uint_eq(mr_key_make(&full, 0x123456, 0x12345678, 0xffffff79), 0x12345679);
	ck_assert_uint_eq(mr_key_make(&full, 0, 0x12345678, 0xffffff79), 0);
	ck_assert_uint_eq(mr_key_make(&full, MR_INDEX_MAX, 0x12345678, 0xffffff79), 0);
}
END_TEST

START_TEST(keys__small_constants_name_nothing)
{
	struct mr_table *t = fix_table(256);
	uint32_t key;

	while (fix_try(t, 0, UINT64_C(1) << 48, ALL_RIGHTS, bytes, &key) == 0)
		ck_assert(key > 0xff && key < 0xffffff00);
	for (uint32_t k = 0; k < 256; k++) {
		ck_assert_int_eq(fix_check(t, k, 0, 1, 0), MR_NO_KEY);
		ck_assert_int_eq(fix_check(t, ~k, 0, 1, 0), MR_NO_KEY);
	}
	mr_table_free(t);
}
END_TEST

/* An empty slot holds state EMPTY and key 0, or the last key: none of them is there. */
START_TEST(keys__empty_slots)
{
	struct mr_table *t = fix_table(1);

	ck_assert_int_eq(fix_check(t, 0, 0, 0, 0), MR_NO_KEY);
	ck_assert_int_eq(mr_invalidate(t, 0, PD, QPN), MR_NO_KEY);
	ck_assert_int_eq(mr_kill(t, 0), -ENOENT);
	ck_assert(!mr_busy(t, 0));
	ck_assert_ptr_null(mr_release(t, 0));
	mr_table_free(t);
}
END_TEST

START_TEST(keys__drawn_from_everywhere)
{
	struct mr_table *t = fix_table(4096);
	uint32_t all_or = 0, all_and = UINT32_MAX, ascending = 0, last = 0;

	for (int i = 0; i < 1000; i++) {
		uint32_t key = fix_region(t, 0, 16, 0, bytes);
		uint32_t slot = (key >> 8) & t->mask;

		all_or |= key;
		all_and &= key;
		ascending += slot > last;
		last = slot;
	}
	/* A bit that never changed in 1000 draws is not random; chance is below 2^-990. */
	ck_assert_uint_eq(all_or, UINT32_MAX);
	ck_assert_uint_eq(all_and, 0);
	/* Nor is an order: one half ascends, +-6 deviations of 9 for such pairs. */
	ck_assert_uint_gt(ascending, 440);
	ck_assert_uint_lt(ascending, 560);
	mr_table_free(t);
}
END_TEST

/* B075: who comes late with an old key finds nothing. */
START_TEST(keys__released_ones_never_match_again)
{
	/* One slot makes reuse certain, many make it random. */
	for (uint32_t capacity = 1; capacity <= 64; capacity *= 8) {
		struct mr_table *t = fix_table(capacity);
		uint32_t stale[64] = {0};

		for (int i = 0; i < 100000; i++) {
			uint32_t key = fix_region(t, 0, 16, 0, bytes);

			if (capacity == 1)
				FIX_REQUIRE(key >> 8 != stale[(i + 63) % 64] >> 8);
			FIX_REQUIRE(fix_check(t, key, 0, 16, 0) == MR_OK);
			for (int k = 0; k < 64; k++) {
				/* 32 random bits may come again, if not next. */
				if (stale[k] != key &&
					fix_check(t, stale[k], 0, 16, 0) != MR_NO_KEY)
					ck_abort_msg("stale key %#x matches", stale[k]);
			}
			fix_deregister(t, key);
			FIX_REQUIRE(fix_check(t, key, 0, 16, 0) == MR_NO_KEY);
			FIX_REQUIRE(mr_kill(t, key) == -ENOENT);
			stale[i % 64] = key;
		}
		ck_assert_uint_eq(mr_table_count(t), 0);
		mr_table_free(t);
	}
}
END_TEST

START_TEST(table__exhaustion_and_recovery)
{
	enum { N = 512 };
	struct mr_table *t = fix_table(N);
	uint32_t key[N], more = 77;
	bool seen[N];

	for (int round = 0; round < 20; round++) {
		memset(seen, 0, sizeof(seen));
		for (int i = 0; i < N; i++) {
			key[i] = fix_region(t, 0, 16, 0, bytes);
			/* Each slot is given once: the list holds no slot twice. */
			ck_assert(!seen[(key[i] >> 8) % N]);
			seen[(key[i] >> 8) % N] = true;
		}
		ck_assert_uint_eq(mr_table_count(t), N);
		ck_assert_int_eq(fix_try(t, 0, 16, 0, bytes, &more), -ENOSPC);
		ck_assert_uint_eq(more, 77);
		for (int i = 0; i < N; i++)
			ck_assert_int_eq(fix_check(t, key[i], 0, 16, 0), MR_OK);
		for (int i = 0; i < N; i++)
			fix_deregister(t, key[(i * 37 + round) % N]);
		ck_assert_uint_eq(mr_table_count(t), 0);
	}
	mr_table_free(t);
}
END_TEST

START_TEST(access_valid__combinations)
{
	ck_assert(mr_access_valid(0));
	ck_assert(mr_access_valid(MR_LOCAL_WRITE));
	ck_assert(mr_access_valid(MR_REMOTE_READ));
	ck_assert(mr_access_valid(MR_MW_BIND | MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT));
	ck_assert(mr_access_valid(MR_ON_DEMAND | MR_HUGETLB | MR_ZERO_BASED));
	/* C10-74 */
	ck_assert(!mr_access_valid(MR_REMOTE_WRITE));
	ck_assert(!mr_access_valid(MR_REMOTE_ATOMIC));
	ck_assert(!mr_access_valid(MR_REMOTE_ATOMIC | MR_REMOTE_WRITE | MR_REMOTE_READ));
	ck_assert(mr_access_valid(MR_REMOTE_WRITE | MR_LOCAL_WRITE));
	ck_assert(mr_access_valid(MR_REMOTE_ATOMIC | MR_LOCAL_WRITE));
	for (int bit = 0; bit < 32; bit++) {
		bool known = bit <= 9 || (bit >= 20 && bit <= 29);

		ck_assert_int_eq(mr_access_valid(1u << bit | MR_LOCAL_WRITE), known);
	}
}
END_TEST

/* One thing wrong at a time. */
START_TEST(register__refusals)
{
	struct mr_table *t = fix_table(16);
	struct mr_seg seg = {.length = 64, .kind = MR_SEG_DIRECT, .ptr = bytes};
	const struct mr_desc good = {
		.type = MR_TYPE_REGION, .iova = 4096, .length = 64, .segs = &seg, .num_segs = 1};
	struct mr_desc d = good;
	uint32_t key = 77;

#define REFUSED(change) \
	do { \
		d = good; \
		change; \
		ck_assert_int_eq(mr_register(t, &d, &key), -EINVAL); \
	} while (0)
	REFUSED(d.type = MR_TYPE_NONE);
	REFUSED(d.type = MR_TYPE_FAST_REG + 1);
	REFUSED(d.access = MR_REMOTE_WRITE);
	REFUSED(d.access = 1 << 15);
	REFUSED(d.length = 63);
	REFUSED(d.length = 65);
	REFUSED(d.num_segs = 0);
	REFUSED(d.length = 0);
	REFUSED(d.iova = UINT64_MAX - 62);
	/* A key to be bound later has nothing yet. */
	for (int type = MR_TYPE_WINDOW_1; type <= MR_TYPE_FAST_REG; type++) {
		REFUSED(d.type = type);
		REFUSED((d.type = type, d.length = d.num_segs = 0));
		REFUSED((d.type = type, d.iova = 0));
		REFUSED((d.type = type, d.iova = d.length = 0));
		REFUSED((d.type = type, d.iova = d.num_segs = 0));
		REFUSED((d.type = type, d.iova = d.length = d.num_segs = 0,
			d.access = MR_REMOTE_READ));
	}
#undef REFUSED
	ck_assert_uint_eq(key, 77);
	ck_assert_uint_eq(mr_table_count(t), 0);
	ck_assert_uint_eq(t->num_free, 16);
	mr_table_free(t);
}
END_TEST

START_TEST(register__edges)
{
	struct mr_table *t = fix_table(16);
	const uint64_t most = UINT64_C(1) << 48;
	const struct mr_seg two[] = {
		{.length = most, .kind = MR_SEG_DIRECT, .ptr = bytes},
		{.start = most, .length = 1, .kind = MR_SEG_DIRECT, .ptr = bytes},
	};
	uint32_t key;

	ck_assert_int_eq(fix_try(t, 0, most, 0, bytes, &key), 0);
	ck_assert_int_eq(fix_try(t, 0, most + 1, 0, bytes, &key), -EINVAL);
	/* Nor as a sum of runs. */
	ck_assert_int_eq(mr_register(t,
				 &(struct mr_desc){.type = MR_TYPE_REGION,
					 .length = most + 1,
					 .segs = two,
					 .num_segs = 2},
				 &key),
		-EINVAL);
	/* The last byte is at 2^64 - 1. */
	ck_assert_int_eq(fix_try(t, 0 - most, most, 0, bytes, &key), 0);
	ck_assert_int_eq(fix_try(t, 0 - most + 1, most, 0, bytes, &key), -EINVAL);
	ck_assert_int_eq(fix_try(t, UINT64_MAX, 1, 0, bytes, &key), 0);
	ck_assert_int_eq(fix_try(t, UINT64_MAX, 2, 0, bytes, &key), -EINVAL);
	/* Zero based: the iova does not count. */
	ck_assert_int_eq(fix_try(t, UINT64_MAX, 2, MR_ZERO_BASED, bytes, &key), 0);
	ck_assert_int_eq(fix_check(t, key, 0, 2, 0), MR_OK);
	/* No bytes at all. */
	ck_assert_int_eq(fix_try(t, UINT64_MAX, 0, 0, NULL, &key), 0);
	ck_assert_int_eq(fix_check(t, key, UINT64_MAX, 0, 0), MR_OK);
	ck_assert_int_eq(fix_check(t, key, UINT64_MAX, 1, 0), MR_BAD_RANGE);
	/* Hints are taken. */
	ck_assert_int_eq(
		fix_try(t, 0, 1, MR_ON_DEMAND | MR_HUGETLB | MR_RELAXED_ORDERING, bytes, &key), 0);
	mr_table_free(t);
}
END_TEST

START_TEST(kill__protocol)
{
	struct mr_table *t = fix_table(16);
	uint32_t key = fix_region(t, 0, 64, ALL_RIGHTS, bytes);
	struct mr_ref ref;

	/* Not without a kill. */
	ck_assert_ptr_null(mr_release(t, key));
	ck_assert_int_eq(mr_check(t, key, PD, QPN, 8, 8, 0, &ref), MR_OK);
	mr_hold(ref.mr, NULL);
	mr_hold(ref.mr, NULL);
	ck_assert(mr_still_valid(&ref, key));
	ck_assert(!mr_still_valid(&ref, key ^ 1));
	/* Another variant or index is not this key. */
	ck_assert_int_eq(mr_kill(t, key ^ 1), -ENOENT);
	ck_assert_int_eq(mr_kill(t, key ^ 0x80000000), -ENOENT);
	ck_assert(mr_busy(t, key));
	ck_assert(!mr_busy(t, key ^ 1));
	ck_assert_int_eq(mr_kill(t, key), 0);
	ck_assert_int_eq(mr_kill(t, key), -ENOENT);
	ck_assert_int_eq(fix_check(t, key, 8, 8, 0), MR_BAD_STATE);
	ck_assert(!mr_still_valid(&ref, key));
	/* Dying, it still counts and keeps its slot. */
	ck_assert_uint_eq(mr_table_count(t), 1);
	ck_assert_ptr_null(mr_release(t, key));
	mr_unhold(ref.mr, NULL);
	ck_assert(mr_busy(t, key));
	ck_assert_ptr_null(mr_release(t, key));
	mr_unhold(ref.mr, NULL);
	ck_assert(!mr_busy(t, key));
	ck_assert_ptr_null(mr_release(t, key ^ 1));
	ck_assert_ptr_eq(mr_release(t, key), t);
	ck_assert_uint_eq(mr_table_count(t), 0);
	ck_assert_ptr_null(mr_release(t, key));
	ck_assert(!mr_busy(t, key));
	ck_assert(!mr_still_valid(&ref, key));
	mr_table_free(t);
}
END_TEST

START_TEST(kill__unbound_keys)
{
	struct mr_table *t = fix_table(16);

	for (int type = MR_TYPE_WINDOW_1; type <= MR_TYPE_FAST_REG; type++) {
		uint32_t key = fix_free_key(t, type);

		ck_assert_int_eq(fix_check(t, key, 0, 0, 0), MR_BAD_STATE);
		fix_deregister(t, key);
	}
	ck_assert_uint_eq(mr_table_count(t), 0);
	mr_table_free(t);
}
END_TEST

/* Consumers choose the variant of these; the control thread means them by their index. */
START_TEST(kill__consumers_variant)
{
	struct mr_table *t = fix_table(16);
	uint32_t made = fix_free_key(t, MR_TYPE_FAST_REG);
	uint32_t key = fix_fast_reg(t, made, (uint8_t)(made + 1), 0, 64, 0, bytes);
	struct mr_ref ref;

	ck_assert_int_eq(fix_check(t, made, 0, 8, 0), MR_NO_KEY);
	ck_assert_int_eq(mr_check(t, key, PD, QPN, 0, 8, 0, &ref), MR_OK);
	mr_hold(ref.mr, NULL);
	ck_assert(mr_busy(t, made));
	mr_unhold(ref.mr, NULL);
	fix_deregister(t, made);
	/* A region's variant is ours. */
	key = fix_region(t, 0, 64, 0, bytes);
	ck_assert_int_eq(mr_kill(t, key + 1), -ENOENT);
	mr_table_free(t);
}
END_TEST

UNIT_MAIN("mr_table", create__capacity_is_rounded_up, create__largest,
	key_make__reserved_and_repeated, keys__small_constants_name_nothing, keys__empty_slots,
	keys__drawn_from_everywhere, keys__released_ones_never_match_again,
	table__exhaustion_and_recovery, access_valid__combinations, register__refusals,
	register__edges, kill__protocol, kill__unbound_keys, kill__consumers_variant)
