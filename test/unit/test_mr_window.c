/* SPDX-License-Identifier: BSD-3-Clause */
/* Invalidation, windows over regions, and the regions that must outlive them. */
#include <errno.h>

#include "mr_fixture.h"

static uint8_t bytes[4096];

static enum mr_result
check_as(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn)
{
	struct mr_ref ref;

	return mr_check(t, key, pd, qpn, 0x1010, 8, MR_REMOTE_READ, &ref);
}

/* Type 1: the PD. Type 2A: the QP. Type 2B: both. */
START_TEST(window__scope)
{
	struct mr_table *t = fix_table(16);
	uint32_t region = fix_region(t, 0x1000, 64, ALL_RIGHTS, bytes);
	uint32_t w1 = fix_bind(
		t, fix_free_key(t, MR_TYPE_WINDOW_1), region, 1, 16, 8, MR_REMOTE_READ);
	uint32_t w2a = fix_bind(
		t, fix_free_key(t, MR_TYPE_WINDOW_2A), region, 2, 16, 8, MR_REMOTE_READ);
	uint32_t w2b = fix_bind(
		t, fix_free_key(t, MR_TYPE_WINDOW_2B), region, 3, 16, 8, MR_REMOTE_READ);

	ck_assert_int_eq(check_as(t, w1, PD, QPN), MR_OK);
	ck_assert_int_eq(check_as(t, w1, PD, OTHER_QPN), MR_OK);
	ck_assert_int_eq(check_as(t, w1, OTHER_PD, QPN), MR_BAD_PD);
	ck_assert_int_eq(check_as(t, w2a, PD, QPN), MR_OK);
	ck_assert_int_eq(check_as(t, w2a, PD, OTHER_QPN), MR_BAD_PD);
	ck_assert_int_eq(check_as(t, w2a, OTHER_PD, QPN), MR_OK);
	ck_assert_int_eq(check_as(t, w2b, PD, QPN), MR_OK);
	ck_assert_int_eq(check_as(t, w2b, PD, OTHER_QPN), MR_BAD_PD);
	ck_assert_int_eq(check_as(t, w2b, OTHER_PD, QPN), MR_BAD_PD);
	mr_table_free(t);
}
END_TEST

/* A window's key is a peer's: it opens nothing to local reads and writes. */
START_TEST(window__is_no_lkey)
{
	struct mr_table *t = fix_table(16);
	uint32_t region = fix_region(t, 0x1000, 64, ALL_RIGHTS, bytes);
	uint32_t w = fix_bind(t, fix_free_key(t, MR_TYPE_WINDOW_2B), region, 1, 0, 64,
		MR_REMOTE_READ | MR_REMOTE_WRITE);

	ck_assert_int_eq(fix_check(t, w, 0x1000, 8, MR_REMOTE_WRITE), MR_OK);
	ck_assert_int_eq(fix_check(t, w, 0x1000, 8, 0), MR_BAD_ACCESS);
	ck_assert_int_eq(fix_check(t, w, 0x1000, 8, MR_LOCAL_WRITE), MR_BAD_ACCESS);
	/* Only a hint is asked for: a local read. */
	ck_assert_int_eq(fix_check(t, w, 0x1000, 8, MR_RELAXED_ORDERING), MR_BAD_ACCESS);
	mr_table_free(t);
}
END_TEST

START_TEST(window__inside_one_run)
{
	struct mr_table *t = fix_table(16);
	uint32_t region = fix_region(t, 0x1000, 64, ALL_RIGHTS, bytes);
	uint32_t w = fix_bind(
		t, fix_free_key(t, MR_TYPE_WINDOW_2B), region, 1, 16, 8, MR_REMOTE_READ);
	struct mr_ref ref;

	ck_assert_int_eq(mr_check(t, w, PD, QPN, 0x1012, 6, MR_REMOTE_READ, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 18);
	ck_assert_uint_eq(ref.offset, 18);
	ck_assert_int_eq(fix_check(t, w, 0x1012, 7, MR_REMOTE_READ), MR_BAD_RANGE);
	ck_assert_int_eq(fix_check(t, w, 0x100f, 1, MR_REMOTE_READ), MR_BAD_RANGE);
	mr_table_free(t);
}
END_TEST

/* A window into the middle of a region of runs gives the region's bytes, and no more. */
START_TEST(window__bytes_of_its_region)
{
	const struct mr_seg segs[] = {
		{.start = 0, .length = 10, .kind = MR_SEG_DIRECT, .ptr = bytes},
		{.start = 10, .length = 10, .kind = MR_SEG_FOREIGN, .remote = 0x5000},
		{.start = 20, .length = 10, .kind = MR_SEG_DIRECT, .ptr = bytes + 100},
	};
	int lane;
	const struct mr_desc d = {.type = MR_TYPE_REGION,
		.pd = PD,
		.access = ALL_RIGHTS,
		.iova = 0x1000,
		.length = 30,
		.segs = segs,
		.num_segs = 3,
		.lane = &lane,
		.owner = &lane};
	struct mr_table *t = fix_table(16);
	uint32_t region, w, made = fix_free_key(t, MR_TYPE_WINDOW_2B);
	uint64_t run, remote;
	struct mr_ref ref;

	ck_assert_int_eq(mr_register(t, &d, &region), 0);
	w = fix_bind(t, made, region, 1, 15, 10, MR_REMOTE_READ);
	ck_assert_int_eq(mr_check(t, w, PD, QPN, 0x1000 + 15, 10, MR_REMOTE_READ, &ref), MR_OK);
	ck_assert_ptr_null(ref.ptr);
	ck_assert_uint_eq(ref.offset, 15);
	ck_assert_ptr_eq(mr_lane(&ref), &lane);
	ck_assert_ptr_null(mr_segment(&ref, 0, &run, &remote));
	ck_assert_uint_eq(run, 5);
	ck_assert_uint_eq(remote, 0x5005);
	ck_assert_ptr_eq(mr_segment(&ref, 5, &run, &remote), bytes + 100);
	ck_assert_int_eq(mr_check(t, w, PD, QPN, 0x1000 + 21, 4, MR_REMOTE_READ, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 101);
	ck_assert_int_eq(fix_check(t, w, 0x1000 + 14, 1, MR_REMOTE_READ), MR_BAD_RANGE);
	ck_assert_int_eq(fix_check(t, w, 0x1000 + 21, 5, MR_REMOTE_READ), MR_BAD_RANGE);
	/* It does not own the runs: released, the region still has them. */
	ck_assert_int_eq(mr_kill(t, made), 0);
	ck_assert_ptr_eq(mr_release(t, made), t);
	ck_assert_int_eq(fix_check(t, region, 0x1000, 30, 0), MR_OK);
	ck_assert_int_eq(mr_kill(t, region), 0);
	ck_assert_ptr_eq(mr_release(t, region), &lane);
	mr_table_free(t);
}
END_TEST

START_TEST(kill__waits_for_windows)
{
	struct mr_table *t = fix_table(16);
	uint32_t region = fix_region(t, 0x1000, 64, ALL_RIGHTS, bytes);
	uint32_t made = fix_free_key(t, MR_TYPE_WINDOW_1);
	uint32_t w1 = fix_bind(t, made, region, (uint8_t)made, 0, 8, MR_REMOTE_READ);
	uint32_t w2 = fix_bind(
		t, fix_free_key(t, MR_TYPE_WINDOW_2B), region, 9, 0, 8, MR_REMOTE_READ);

	ck_assert_int_eq(mr_kill(t, region), -EBUSY);
	ck_assert_int_eq(fix_check(t, region, 0x1000, 8, 0), MR_OK);
	ck_assert_int_eq(mr_invalidate(t, w2, PD, QPN), MR_OK);
	ck_assert_int_eq(mr_kill(t, region), -EBUSY);
	/* Killing a window that is invalidated already unbinds nothing more. */
	fix_deregister(t, w2);
	ck_assert_int_eq(mr_kill(t, region), -EBUSY);
	/* Refused, it still takes windows. */
	ck_assert(mr_bound_get(mr_slot(t, region)));
	mr_bound_put(mr_slot(t, region));
	ck_assert_int_eq(mr_kill(t, w1), 0);
	ck_assert_int_eq(mr_kill(t, region), 0);
	/* On its way out it takes none. */
	ck_assert(!mr_bound_get(mr_slot(t, region)));
	ck_assert_ptr_eq(mr_release(t, region), t);
	ck_assert_ptr_eq(mr_release(t, w1), t);
	mr_table_free(t);
}
END_TEST

START_TEST(bound__does_not_overflow)
{
	struct mr m = {.bound = MR_BOUND_CLOSED - 2};

	ck_assert(mr_bound_get(&m));
	ck_assert(!mr_bound_get(&m));
	ck_assert_uint_eq(m.bound, MR_BOUND_CLOSED - 1);
	ck_assert(!mr_bound_close(&m));
}
END_TEST

/* A copier that came through a window holds the region's bytes as well. */
START_TEST(hold__reaches_the_region)
{
	struct mr_table *t = fix_table(16);
	uint32_t region = fix_region(t, 0x1000, 64, ALL_RIGHTS, bytes);
	uint32_t w = fix_bind(
		t, fix_free_key(t, MR_TYPE_WINDOW_2B), region, 1, 0, 8, MR_REMOTE_READ);
	struct mr_ref ref;

	ck_assert_int_eq(mr_check(t, w, PD, QPN, 0x1000, 8, MR_REMOTE_READ, &ref), MR_OK);
	mr_hold(ref.mr, mr_under(&ref, 0));
	ck_assert_int_eq(mr_invalidate(t, w, PD, QPN), MR_OK);
	ck_assert(!mr_still_valid(&ref, w));
	ck_assert(mr_busy(t, w));
	ck_assert_int_eq(mr_kill(t, region), 0);
	ck_assert(mr_busy(t, region));
	ck_assert_ptr_null(mr_release(t, region));
	mr_unhold(ref.mr, mr_under(&ref, 0));
	ck_assert(!mr_busy(t, w));
	ck_assert_ptr_eq(mr_release(t, region), t);
	fix_deregister(t, w);
	mr_table_free(t);
}
END_TEST

START_TEST(invalidate__types)
{
	struct mr_table *t = fix_table(16);
	uint32_t region = fix_region(t, 0x1000, 64, ALL_RIGHTS, bytes);

	ck_assert_int_eq(mr_invalidate(t, region, PD, QPN), MR_BAD_ACCESS);
	for (int type = MR_TYPE_WINDOW_1; type <= MR_TYPE_FAST_REG; type++) {
		enum mr_result want = type == MR_TYPE_WINDOW_1 ? MR_BAD_ACCESS : MR_OK;
		uint32_t made = fix_free_key(t, type);
		uint32_t key;

		ck_assert_int_eq(mr_invalidate(t, made, PD, QPN), MR_BAD_STATE);
		if (type == MR_TYPE_FAST_REG)
			key = fix_fast_reg(t, made, 7, 0x1000, 64, MR_REMOTE_READ, bytes);
		else
			key = fix_bind(t, made, region, 7, 0, 64, MR_REMOTE_READ);
		ck_assert_int_eq(mr_invalidate(t, key ^ 1, PD, QPN), MR_NO_KEY);
		ck_assert_int_eq(mr_invalidate(t, key, PD, QPN), want);
		ck_assert_int_eq(fix_check(t, key, 0x1000, 8, MR_REMOTE_READ),
			want == MR_OK ? MR_BAD_STATE : MR_OK);
		/* Twice is once. */
		ck_assert_int_eq(
			mr_invalidate(t, key, PD, QPN), want == MR_OK ? MR_BAD_STATE : want);
	}
	mr_table_free(t);
}
END_TEST

START_TEST(invalidate__scope)
{
	struct mr_table *t = fix_table(16);
	uint32_t region = fix_region(t, 0x1000, 64, ALL_RIGHTS, bytes);
	uint32_t w2a = fix_bind(t, fix_free_key(t, MR_TYPE_WINDOW_2A), region, 1, 0, 8, 0);
	uint32_t w2b = fix_bind(t, fix_free_key(t, MR_TYPE_WINDOW_2B), region, 1, 0, 8, 0);
	uint32_t fast = fix_fast_reg(t, fix_free_key(t, MR_TYPE_FAST_REG), 1, 0, 8, 0, bytes);

	ck_assert_int_eq(mr_invalidate(t, w2a, PD, OTHER_QPN), MR_BAD_PD);
	ck_assert_int_eq(mr_invalidate(t, w2b, PD, OTHER_QPN), MR_BAD_PD);
	ck_assert_int_eq(mr_invalidate(t, w2b, OTHER_PD, QPN), MR_BAD_PD);
	ck_assert_int_eq(mr_invalidate(t, fast, OTHER_PD, QPN), MR_BAD_PD);
	ck_assert_int_eq(mr_invalidate(t, w2a, OTHER_PD, QPN), MR_OK);
	/* Without rights a window still is one. */
	ck_assert_int_eq(mr_invalidate_remote(t, w2b, PD, QPN), MR_OK);
	ck_assert_int_eq(mr_invalidate(t, fast, PD, OTHER_QPN), MR_OK);
	mr_table_free(t);
}
END_TEST

START_TEST(invalidate__dying)
{
	struct mr_table *t = fix_table(4);
	uint32_t fast = fix_fast_reg(t, fix_free_key(t, MR_TYPE_FAST_REG), 1, 0, 8, 0, bytes);

	ck_assert_int_eq(mr_kill(t, fast), 0);
	ck_assert_int_eq(mr_invalidate(t, fast, PD, QPN), MR_BAD_STATE);
	ck_assert_int_eq(mr_word_state(mr_slot(t, fast)->word), MR_STATE_DYING);
	ck_assert_ptr_eq(mr_release(t, fast), t);
	ck_assert_int_eq(mr_invalidate(t, fast, PD, QPN), MR_NO_KEY);
	mr_table_free(t);
}
END_TEST

START_TEST(invalidate__with_windows)
{
	struct mr_table *t = fix_table(16);
	uint32_t fast = fix_fast_reg(
		t, fix_free_key(t, MR_TYPE_FAST_REG), 1, 0x1000, 64, ALL_RIGHTS, bytes);
	uint32_t w = fix_bind(t, fix_free_key(t, MR_TYPE_WINDOW_2B), fast, 1, 0, 8, MR_REMOTE_READ);

	ck_assert_int_eq(mr_invalidate(t, fast, PD, QPN), MR_BAD_STATE);
	ck_assert_int_eq(fix_check(t, fast, 0x1000, 8, 0), MR_OK);
	ck_assert_int_eq(mr_invalidate(t, w, PD, QPN), MR_OK);
	ck_assert_int_eq(mr_invalidate(t, fast, PD, QPN), MR_OK);
	mr_table_free(t);
}
END_TEST

/* B057: a peer may not name what was never given to peers. */
START_TEST(invalidate_remote__needs_a_remote_right)
{
	static const uint32_t remote[] = {MR_REMOTE_READ, MR_REMOTE_WRITE, MR_REMOTE_ATOMIC,
		MR_FLUSH_GLOBAL, MR_FLUSH_PERSISTENT};
	struct mr_table *t = fix_table(64);
	uint32_t made = fix_free_key(t, MR_TYPE_FAST_REG);
	uint32_t key = fix_fast_reg(t, made, 1, 0, 8, MR_LOCAL_WRITE | MR_MW_BIND, bytes);

	ck_assert_int_eq(mr_invalidate_remote(t, key, PD, QPN), MR_BAD_ACCESS);
	ck_assert_int_eq(mr_invalidate(t, key, PD, QPN), MR_OK);
	for (int i = 0; i < 5; i++) {
		key = fix_fast_reg(t, made, (uint8_t)i, 0, 8, remote[i], bytes);
		ck_assert_int_eq(mr_invalidate_remote(t, key, OTHER_PD, QPN), MR_BAD_PD);
		ck_assert_int_eq(mr_invalidate_remote(t, key, PD, QPN), MR_OK);
	}
	mr_table_free(t);
}
END_TEST

UNIT_MAIN("mr_window", window__scope, window__is_no_lkey, window__inside_one_run,
	window__bytes_of_its_region, kill__waits_for_windows, bound__does_not_overflow,
	hold__reaches_the_region, invalidate__types, invalidate__scope, invalidate__dying,
	invalidate__with_windows, invalidate_remote__needs_a_remote_right)
