/* SPDX-License-Identifier: BSD-3-Clause */
/* Which status, counter and event a syndrome means (docs/wire.md, error mapping). Pure. */
#include "roce_priv.h"

enum wc_status
roce_status_of_syndrome(uint8_t syndrome)
{
	switch (syndrome) {
	case ROCE_NAK_PSN_SEQ: /* when the retries are used up */
		return WC_RETRY_EXC_ERR;
	case ROCE_NAK_INVALID_REQ:
		return WC_REM_INV_REQ_ERR;
	case ROCE_NAK_REM_ACCESS:
		return WC_REM_ACCESS_ERR;
	case ROCE_NAK_REM_OP:
		return WC_REM_OP_ERR;
	case ROCE_NAK_INVALID_RD:
		return WC_REM_INV_RD_REQ_ERR;
	default:
		if (roce_syn_is(syndrome, ROCE_SYN_RNR))
			return WC_RNR_RETRY_EXC_ERR;
		return WC_BAD_RESP_ERR; /* reserved: never a success (C-67) */
	}
}

enum roce_counter
roce_counter_of_syndrome(uint8_t syndrome)
{
	switch (syndrome) {
	case ROCE_NAK_PSN_SEQ:
		return ROCE_C_NAK_SEQ_SENT;
	case ROCE_NAK_INVALID_REQ:
		return ROCE_C_NAK_INV_SENT;
	case ROCE_NAK_REM_ACCESS:
		return ROCE_C_NAK_ACCESS_SENT;
	case ROCE_NAK_REM_OP:
		return ROCE_C_NAK_OP_SENT;
	default:
		return roce_syn_is(syndrome, ROCE_SYN_RNR) ? ROCE_C_RNR_SENT : ROCE_C_ACK_SENT;
	}
}

enum verbs_event
roce_event_of_syndrome(uint8_t syndrome)
{
	switch (syndrome) {
	case ROCE_NAK_INVALID_REQ:
		return VERBS_EVENT_QP_REQ_ERR;
	case ROCE_NAK_REM_ACCESS:
		return VERBS_EVENT_QP_ACCESS_ERR;
	default:
		return VERBS_EVENT_QP_FATAL;
	}
}
