/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses bear verbs' numbers (enum ibv_wc_status) and a name each. */
#include "base_status.h"
#include "unit.h"

START_TEST(status__numbers_of_verbs)
{
	ck_assert_int_eq(WC_SUCCESS, 0);
	ck_assert_int_eq(WC_WR_FLUSH_ERR, 5);
	ck_assert_int_eq(WC_REM_ACCESS_ERR, 10);
	ck_assert_int_eq(WC_RNR_RETRY_EXC_ERR, 13);
	ck_assert_int_eq(WC_GENERAL_ERR, 21);
}
END_TEST

START_TEST(status__names)
{
	for (unsigned int i = 0; i < WC_STATUS_COUNT; i++)
		ck_assert_ptr_nonnull(wc_status_name(i));
	ck_assert_str_eq(wc_status_name(WC_RETRY_EXC_ERR), "RETRY_EXC_ERR");
	ck_assert_str_eq(wc_status_name(WC_STATUS_COUNT), "unknown status");
	ck_assert_str_eq(wc_status_name(~0u), "unknown status");
}
END_TEST

UNIT_MAIN("base_status", status__numbers_of_verbs, status__names)
