/* SPDX-License-Identifier: BSD-3-Clause */
/* Counter tables from one list, and the sums over workers. */
#include "base_counters.h"
#include "unit.h"

#define DOOR_COUNTERS(X) \
	X(DOOR_OPENED, "opened", "times that it opened") \
	X(DOOR_SLAMMED, "slammed", "times that it fell shut")
COUNTERS_ENUM(door_counter, DOOR_COUNTERS, DOOR_COUNTER_COUNT);
static COUNTERS_TABLE(door_desc, DOOR_COUNTERS);

START_TEST(counters__one_list)
{
	ck_assert_int_eq(DOOR_COUNTER_COUNT, 2);
	ck_assert_uint_eq(sizeof(door_desc) / sizeof(door_desc[0]), DOOR_COUNTER_COUNT);
	ck_assert_str_eq(door_desc[DOOR_SLAMMED].name, "slammed");
	ck_assert_str_eq(door_desc[DOOR_OPENED].help, "times that it opened");
}
END_TEST

START_TEST(counters__count_and_sum)
{
	struct counter worker[2][DOOR_COUNTER_COUNT] = {0};
	uint64_t sum[DOOR_COUNTER_COUNT] = {0};

	counter_inc(&worker[0][DOOR_OPENED]);
	counter_inc(&worker[0][DOOR_OPENED]);
	counter_add(&worker[1][DOOR_OPENED], UINT64_C(1) << 40);
	counter_inc(&worker[1][DOOR_SLAMMED]);
	for (int i = 0; i < 2; i++)
		counters_sum(sum, worker[i], DOOR_COUNTER_COUNT);
	ck_assert_uint_eq(sum[DOOR_OPENED], (UINT64_C(1) << 40) + 2);
	ck_assert_uint_eq(sum[DOOR_SLAMMED], 1);
	ck_assert_uint_eq(counter_read(&worker[0][DOOR_SLAMMED]), 0);
}
END_TEST

START_TEST(counters__find)
{
	ck_assert_int_eq(counters_find(door_desc, DOOR_COUNTER_COUNT, "slammed"), DOOR_SLAMMED);
	ck_assert_int_eq(counters_find(door_desc, DOOR_COUNTER_COUNT, "slam"), -1);
}
END_TEST

UNIT_MAIN("base_counters", counters__one_list, counters__count_and_sum, counters__find)
