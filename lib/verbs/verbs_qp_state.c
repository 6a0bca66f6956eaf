/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP state machine (IBTA 10.3.1) as one table: which attributes each transition needs
 * and which it also takes. Pure; who calls it changes nothing when it says no.
 */
#include <errno.h>

#include "verbs.h"

/* Attributes by their short names, to keep the table in sight. */
#define EN_SQD VERBS_QP_EN_SQD_ASYNC_NOTIFY
#define CUR VERBS_QP_CUR_STATE
#define ACCESS VERBS_QP_ACCESS_FLAGS
#define PKEY VERBS_QP_PKEY_INDEX
#define PORT VERBS_QP_PORT
#define QKEY VERBS_QP_QKEY
#define AV VERBS_QP_AV
#define MTU VERBS_QP_PATH_MTU
#define TIMEOUT VERBS_QP_TIMEOUT
#define RETRY VERBS_QP_RETRY_CNT
#define RNR VERBS_QP_RNR_RETRY
#define RQ_PSN VERBS_QP_RQ_PSN
#define MAX_RD VERBS_QP_MAX_QP_RD_ATOMIC
#define ALT VERBS_QP_ALT_PATH
#define MIN_RNR VERBS_QP_MIN_RNR_TIMER
#define SQ_PSN VERBS_QP_SQ_PSN
#define MAX_DEST VERBS_QP_MAX_DEST_RD_ATOMIC
#define MIG VERBS_QP_PATH_MIG_STATE
#define DEST VERBS_QP_DEST_QPN

enum qp_class {
	CLASS_RC,
	CLASS_UC,
	CLASS_UD,
	CLASS_GSI,
	CLASS_XRC_SEND,
	CLASS_XRC_RECV,
	CLASS_COUNT
};

struct qp_transition {
	bool allowed;
	uint32_t required;
	uint32_t optional;
};

/* CUR stands only in rows from RTR, RTS, SQD and SQE: no other state may be claimed. */
#define T(need, also) {true, (need), (also)}

static const struct qp_transition
qp_table[CLASS_COUNT][RING_QPS_COUNT][RING_QPS_COUNT] = {
	[CLASS_RC] = {
		[RING_QPS_RESET][RING_QPS_INIT] = T(PKEY | PORT | ACCESS, 0),
		[RING_QPS_INIT][RING_QPS_INIT] = T(0, PKEY | PORT | ACCESS),
		[RING_QPS_INIT][RING_QPS_RTR] =
			T(AV | MTU | DEST | RQ_PSN | MAX_DEST | MIN_RNR, ALT | ACCESS | PKEY),
		[RING_QPS_RTR][RING_QPS_RTS] = T(TIMEOUT | RETRY | RNR | SQ_PSN | MAX_RD,
						 CUR | ALT | ACCESS | MIN_RNR | MIG),
		[RING_QPS_RTS][RING_QPS_RTS] = T(0, CUR | ACCESS | ALT | MIG | MIN_RNR),
		[RING_QPS_RTS][RING_QPS_SQD] = T(0, EN_SQD),
		[RING_QPS_SQD][RING_QPS_RTS] = T(0, CUR | ALT | ACCESS | MIN_RNR | MIG),
		[RING_QPS_SQD][RING_QPS_SQD] =
			T(0, PORT | AV | TIMEOUT | RETRY | RNR | MAX_RD | MAX_DEST | ALT |
				     ACCESS | PKEY | MIN_RNR | MIG),
	},
	[CLASS_UC] = {
		[RING_QPS_RESET][RING_QPS_INIT] = T(PKEY | PORT | ACCESS, 0),
		[RING_QPS_INIT][RING_QPS_INIT] = T(0, PKEY | PORT | ACCESS),
		[RING_QPS_INIT][RING_QPS_RTR] = T(AV | MTU | DEST | RQ_PSN, ALT | ACCESS | PKEY),
		[RING_QPS_RTR][RING_QPS_RTS] = T(SQ_PSN, CUR | ALT | ACCESS | MIG),
		[RING_QPS_RTS][RING_QPS_RTS] = T(0, CUR | ACCESS | ALT | MIG),
		[RING_QPS_RTS][RING_QPS_SQD] = T(0, EN_SQD),
		[RING_QPS_SQD][RING_QPS_RTS] = T(0, CUR | ALT | ACCESS | MIG),
		[RING_QPS_SQD][RING_QPS_SQD] = T(0, AV | ALT | ACCESS | PKEY | MIG),
		[RING_QPS_SQE][RING_QPS_RTS] = T(0, CUR | ACCESS),
	},
	[CLASS_UD] = {
		[RING_QPS_RESET][RING_QPS_INIT] = T(PKEY | PORT | QKEY, 0),
		[RING_QPS_INIT][RING_QPS_INIT] = T(0, PKEY | PORT | QKEY),
		[RING_QPS_INIT][RING_QPS_RTR] = T(0, PKEY | QKEY),
		[RING_QPS_RTR][RING_QPS_RTS] = T(SQ_PSN, CUR | QKEY),
		[RING_QPS_RTS][RING_QPS_RTS] = T(0, CUR | QKEY),
		[RING_QPS_RTS][RING_QPS_SQD] = T(0, EN_SQD),
		[RING_QPS_SQD][RING_QPS_RTS] = T(0, CUR | QKEY),
		[RING_QPS_SQD][RING_QPS_SQD] = T(0, PKEY | QKEY),
		[RING_QPS_SQE][RING_QPS_RTS] = T(0, CUR | QKEY),
	},
	[CLASS_GSI] = { /* UD whose port is given by what it is */
		[RING_QPS_RESET][RING_QPS_INIT] = T(PKEY | QKEY, 0),
		[RING_QPS_INIT][RING_QPS_INIT] = T(0, PKEY | QKEY),
		[RING_QPS_INIT][RING_QPS_RTR] = T(0, PKEY | QKEY),
		[RING_QPS_RTR][RING_QPS_RTS] = T(SQ_PSN, CUR | QKEY),
		[RING_QPS_RTS][RING_QPS_RTS] = T(0, CUR | QKEY),
		[RING_QPS_RTS][RING_QPS_SQD] = T(0, EN_SQD),
		[RING_QPS_SQD][RING_QPS_RTS] = T(0, CUR | QKEY),
		[RING_QPS_SQD][RING_QPS_SQD] = T(0, PKEY | QKEY),
		[RING_QPS_SQE][RING_QPS_RTS] = T(0, CUR | QKEY),
	},
	[CLASS_XRC_SEND] = { /* RC without the responder's attributes */
		[RING_QPS_RESET][RING_QPS_INIT] = T(PKEY | PORT | ACCESS, 0),
		[RING_QPS_INIT][RING_QPS_INIT] = T(0, PKEY | PORT | ACCESS),
		[RING_QPS_INIT][RING_QPS_RTR] = T(AV | MTU | DEST | RQ_PSN, ALT | ACCESS | PKEY),
		[RING_QPS_RTR][RING_QPS_RTS] = T(TIMEOUT | RETRY | RNR | SQ_PSN | MAX_RD,
						 CUR | ALT | ACCESS | MIG),
		[RING_QPS_RTS][RING_QPS_RTS] = T(0, CUR | ACCESS | ALT | MIG),
		[RING_QPS_RTS][RING_QPS_SQD] = T(0, EN_SQD),
		[RING_QPS_SQD][RING_QPS_RTS] = T(0, CUR | ALT | ACCESS | MIG),
		[RING_QPS_SQD][RING_QPS_SQD] = T(0, PORT | AV | TIMEOUT | RETRY | RNR | MAX_RD |
							    ALT | ACCESS | PKEY | MIG),
	},
	[CLASS_XRC_RECV] = { /* RC without the requester's attributes */
		[RING_QPS_RESET][RING_QPS_INIT] = T(PKEY | PORT | ACCESS, 0),
		[RING_QPS_INIT][RING_QPS_INIT] = T(0, PKEY | PORT | ACCESS),
		[RING_QPS_INIT][RING_QPS_RTR] =
			T(AV | MTU | DEST | RQ_PSN | MAX_DEST | MIN_RNR, ALT | ACCESS | PKEY),
		[RING_QPS_RTR][RING_QPS_RTS] =
			T(TIMEOUT | SQ_PSN, CUR | ALT | ACCESS | MIN_RNR | MIG),
		[RING_QPS_RTS][RING_QPS_RTS] = T(0, CUR | ACCESS | ALT | MIG | MIN_RNR),
		[RING_QPS_RTS][RING_QPS_SQD] = T(0, EN_SQD),
		[RING_QPS_SQD][RING_QPS_RTS] = T(0, CUR | ALT | ACCESS | MIN_RNR | MIG),
		[RING_QPS_SQD][RING_QPS_SQD] = T(0, PORT | AV | TIMEOUT | MAX_DEST | ALT | ACCESS |
							    PKEY | MIN_RNR | MIG),
	},
};

static enum qp_class
qp_class_of(enum verbs_qp_type type)
{
	switch (type) {
	case VERBS_QPT_RC:
		return CLASS_RC;
	case VERBS_QPT_UC:
		return CLASS_UC;
	case VERBS_QPT_UD:
		return CLASS_UD;
	case VERBS_QPT_GSI:
		return CLASS_GSI;
	case VERBS_QPT_XRC_SEND:
		return CLASS_XRC_SEND;
	case VERBS_QPT_XRC_RECV:
		return CLASS_XRC_RECV;
	}
	return CLASS_COUNT;
}

bool
verbs_qp_may_receive(unsigned int state)
{
	return state >= RING_QPS_RTR && state <= RING_QPS_SQE;
}

int
verbs_qp_modify_check(enum verbs_qp_type type, unsigned int cur, unsigned int next, uint32_t mask)
{
	enum qp_class class = qp_class_of(type);
	const struct qp_transition *t;

	if (class == CLASS_COUNT || cur >= RING_QPS_COUNT || next >= RING_QPS_COUNT)
		return -EINVAL;
	mask &= ~(uint32_t)VERBS_QP_STATE; /* told by cur != next */
	if (next == RING_QPS_RESET || (next == RING_QPS_ERR && cur != RING_QPS_RESET))
		return mask == 0 ? 0 : -EINVAL;
	t = &qp_table[class][cur][next];
	if (!t->allowed || (mask & t->required) != t->required ||
	    (mask & ~(t->required | t->optional)) != 0)
		return -EINVAL;
	return 0;
}

static const char *const qp_state_name[] = {
	[RING_QPS_RESET] = "RESET",
	[RING_QPS_INIT] = "INIT",
	[RING_QPS_RTR] = "RTR",
	[RING_QPS_RTS] = "RTS",
	[RING_QPS_SQD] = "SQD",
	[RING_QPS_SQE] = "SQE",
	[RING_QPS_ERR] = "ERR",
};
static_assert(sizeof(qp_state_name) / sizeof(qp_state_name[0]) == RING_QPS_COUNT,
	      "every state has a name");

const char *
verbs_qp_type_name(unsigned int type)
{
	static const char *const name[] = {
		[VERBS_QPT_GSI] = "GSI",
		[VERBS_QPT_RC] = "RC",
		[VERBS_QPT_UC] = "UC",
		[VERBS_QPT_UD] = "UD",
		[VERBS_QPT_XRC_SEND] = "XRC_SEND",
		[VERBS_QPT_XRC_RECV] = "XRC_RECV",
	};

	return type < sizeof(name) / sizeof(name[0]) && name[type] ? name[type] : "?";
}

const char *
verbs_qp_state_name(unsigned int state)
{
	return state < RING_QPS_COUNT ? qp_state_name[state] : "?";
}
