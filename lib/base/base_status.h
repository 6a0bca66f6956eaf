/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion statuses, numbered as verbs numbers them (ibv_wc_status), since
 * they leave the daemon in CQEs and in control replies.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

enum wc_status {
	WC_SUCCESS = 0,
	WC_LOC_LEN_ERR = 1,
	WC_LOC_QP_OP_ERR = 2,
	WC_LOC_EEC_OP_ERR = 3,
	WC_LOC_PROT_ERR = 4,
	WC_WR_FLUSH_ERR = 5,
	WC_MW_BIND_ERR = 6,
	WC_BAD_RESP_ERR = 7,
	WC_LOC_ACCESS_ERR = 8,
	WC_REM_INV_REQ_ERR = 9,
	WC_REM_ACCESS_ERR = 10,
	WC_REM_OP_ERR = 11,
	WC_RETRY_EXC_ERR = 12,
	WC_RNR_RETRY_EXC_ERR = 13,
	WC_LOC_RDD_VIOL_ERR = 14,
	WC_REM_INV_RD_REQ_ERR = 15,
	WC_REM_ABORT_ERR = 16,
	WC_INV_EECN_ERR = 17,
	WC_INV_EEC_STATE_ERR = 18,
	WC_FATAL_ERR = 19,
	WC_RESP_TIMEOUT_ERR = 20,
	WC_GENERAL_ERR = 21,
	WC_STATUS_COUNT
};

/** The status's name as verbs spells it, without the prefix; never NULL. */
const char *wc_status_name(unsigned int status);

#endif /* BASE_STATUS_H */
