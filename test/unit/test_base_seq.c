/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequence arithmetic at the seams of its circles. */
#include "base_seq.h"
#include "unit.h"

START_TEST(psn__wraps)
{
	ck_assert_uint_eq(psn_add(0xFFFFFF, 1), 0);
	ck_assert_uint_eq(psn_add(0xFFFFF0, 0x20), 0x10);
	ck_assert_uint_eq(psn_sub(0, 1), 0xFFFFFF);
	ck_assert_uint_eq(psn_sub(0x10, 0x20), 0xFFFFF0);
}
END_TEST

START_TEST(psn__distance)
{
	ck_assert_int_eq(psn_diff(5, 5), 0);
	ck_assert_int_eq(psn_diff(0, 0xFFFFFF), 1);
	ck_assert_int_eq(psn_diff(0xFFFFFF, 0), -1);
	ck_assert_int_eq(psn_diff(0x7FFFFF, 0), 0x7FFFFF);
	ck_assert_int_eq(psn_diff(0x800000, 0), -0x800000);
	ck_assert_int_eq(psn_diff(0x400000, 0xC00001), 0x7FFFFF);
	/* Bits above the PSN, a reserved byte say, do not count. */
	ck_assert_int_eq(psn_diff(0xAB000001, 0xCD000000), 1);
}
END_TEST

START_TEST(psn__order)
{
	ck_assert(psn_before(0xFFFFFE, 3));
	ck_assert(!psn_before(3, 0xFFFFFE));
	ck_assert(!psn_before(3, 3));
	ck_assert(psn_after(3, 0xFFFFFE));
	ck_assert(!psn_after(3, 3));
	/* Half the circle away counts as the past: IBTA's duplicate region. */
	ck_assert(psn_before(0x800000, 0));
	ck_assert(psn_after(0x7FFFFF, 0));
}
END_TEST

START_TEST(seq__order)
{
	ck_assert(seq_lt(0xFFFFFFFF, 0));
	ck_assert(!seq_lt(0, 0xFFFFFFFF));
	ck_assert(!seq_lt(7, 7));
	ck_assert(seq_le(7, 7));
	ck_assert(seq_le(0xFFFFFFFF, 0));
	ck_assert(!seq_le(0, 0xFFFFFFFF));
	ck_assert(seq_gt(0, 0xFFFFFFFF));
	ck_assert(!seq_gt(7, 7));
	ck_assert(seq_ge(7, 7));
	ck_assert(seq_ge(0x7FFFFFFF, 0));
	ck_assert(!seq_ge(0xFFFFFFFF, 0));
	ck_assert_int_eq(seq_diff(5, 0xFFFFFFFB), 10);
	ck_assert_int_eq(seq_diff(0xFFFFFFFB, 5), -10);
}
END_TEST

UNIT_MAIN("base_seq", psn__wraps, psn__distance, psn__order, seq__order)
