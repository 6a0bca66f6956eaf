/* SPDX-License-Identifier: BSD-3-Clause */
/* Names are there for every number, and for none a NULL. */
#include <errno.h>
#include <string.h>

#include "rnic.h"
#include "unit.h"

START_TEST(names__never_null)
{
	for (uint32_t i = 0; i < 300; i++) {
		ck_assert_ptr_nonnull(rnic_wc_status_str(i));
		ck_assert_ptr_nonnull(rnic_wc_opcode_str(i));
		ck_assert_ptr_nonnull(rnic_event_type_str(i));
		ck_assert_ptr_nonnull(rnic_qp_state_str(i));
		ck_assert_ptr_nonnull(rnic_port_state_str(i));
		ck_assert_ptr_nonnull(rnic_transport_str(i));
		ck_assert_ptr_nonnull(rnic_strerror(-(int)i));
	}
}
END_TEST

START_TEST(names__some)
{
	ck_assert_str_eq(rnic_wc_status_str(RNIC_WC_GENERAL_ERR), "general error");
	ck_assert_str_eq(rnic_wc_status_str(RNIC_WC_GENERAL_ERR + 1), "unknown");
	ck_assert_str_eq(rnic_wc_opcode_str(RNIC_WC_RECV), "RECV");
	ck_assert_str_eq(rnic_event_type_str(6), "unknown");
	ck_assert_str_eq(rnic_qp_state_str(RNIC_QPS_SQE), "SQE");
	ck_assert_str_eq(rnic_strerror(-ENOTCONN), rnic_strerror(ENOTCONN));
}
END_TEST

UNIT_MAIN("client_str", names__never_null, names__some)
