/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of completion statuses, for people and for JSON. */
#include <assert.h>
#include <stddef.h>

#include "base_status.h"

static const char *const names[] = {
	[WC_SUCCESS] = "SUCCESS",
	[WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
	[WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
	[WC_LOC_EEC_OP_ERR] = "LOC_EEC_OP_ERR",
	[WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
	[WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
	[WC_MW_BIND_ERR] = "MW_BIND_ERR",
	[WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
	[WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
	[WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
	[WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
	[WC_REM_OP_ERR] = "REM_OP_ERR",
	[WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
	[WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
	[WC_LOC_RDD_VIOL_ERR] = "LOC_RDD_VIOL_ERR",
	[WC_REM_INV_RD_REQ_ERR] = "REM_INV_RD_REQ_ERR",
	[WC_REM_ABORT_ERR] = "REM_ABORT_ERR",
	[WC_INV_EECN_ERR] = "INV_EECN_ERR",
	[WC_INV_EEC_STATE_ERR] = "INV_EEC_STATE_ERR",
	[WC_FATAL_ERR] = "FATAL_ERR",
	[WC_RESP_TIMEOUT_ERR] = "RESP_TIMEOUT_ERR",
	[WC_GENERAL_ERR] = "GENERAL_ERR",
};
static_assert(sizeof(names) / sizeof(names[0]) == WC_STATUS_COUNT, "a name for each status");

const char *
wc_status_name(unsigned int status)
{
	return status < WC_STATUS_COUNT ? names[status] : "unknown status";
}
