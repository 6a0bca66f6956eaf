/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers that travel in control messages and mean what they mean in verbs: the compat library
 * passes them through untranslated, so each equals its IBV_ namesake (verbs.h). What work
 * requests and completions carry is in ring_abi.h.
 */
#ifndef RING_VERBS_H
#define RING_VERBS_H

/** Types of QPs, as enum ibv_qp_type. */
enum ring_qp_type {
	RING_QPT_RC = 2,
	RING_QPT_UC = 3,
	RING_QPT_UD = 4,
	RING_QPT_RAW_PACKET = 8,
	RING_QPT_XRC_SEND = 9,
	RING_QPT_XRC_RECV = 10,
};

/** Which attributes a MODIFY_QP sets, as enum ibv_qp_attr_mask. */
enum ring_qp_attr_mask {
	RING_QP_STATE = 1 << 0,
	RING_QP_CUR_STATE = 1 << 1,
	RING_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	RING_QP_ACCESS_FLAGS = 1 << 3,
	RING_QP_PKEY_INDEX = 1 << 4,
	RING_QP_PORT = 1 << 5,
	RING_QP_QKEY = 1 << 6,
	RING_QP_AV = 1 << 7,
	RING_QP_PATH_MTU = 1 << 8,
	RING_QP_TIMEOUT = 1 << 9,
	RING_QP_RETRY_CNT = 1 << 10,
	RING_QP_RNR_RETRY = 1 << 11,
	RING_QP_RQ_PSN = 1 << 12,
	RING_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	RING_QP_ALT_PATH = 1 << 14, /* refused: no path migration */
	RING_QP_MIN_RNR_TIMER = 1 << 15,
	RING_QP_SQ_PSN = 1 << 16,
	RING_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	RING_QP_PATH_MIG_STATE = 1 << 18, /* only MIGRATED (0) */
	RING_QP_CAP = 1 << 19,		  /* refused: queues are not resized */
	RING_QP_DEST_QPN = 1 << 20,
	RING_QP_RATE_LIMIT = 1 << 25,
};

/** Access rights, as enum ibv_access_flags. */
enum ring_access {
	RING_ACCESS_LOCAL_WRITE = 1 << 0,
	RING_ACCESS_REMOTE_WRITE = 1 << 1,
	RING_ACCESS_REMOTE_READ = 1 << 2,
	RING_ACCESS_REMOTE_ATOMIC = 1 << 3,
	RING_ACCESS_MW_BIND = 1 << 4,
	RING_ACCESS_ZERO_BASED = 1 << 5,
	RING_ACCESS_ON_DEMAND = 1 << 6,
	RING_ACCESS_HUGETLB = 1 << 7,
	RING_ACCESS_FLUSH_GLOBAL = 1 << 8,
	RING_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	RING_ACCESS_OPTIONAL = 0x3ff00000, /* the range of hints: accepted, no effect (B077) */
};

/** What a REREG_MR changes, as enum ibv_rereg_mr_flags. */
enum ring_rereg {
	RING_REREG_TRANSLATION = 1 << 0,
	RING_REREG_PD = 1 << 1,
	RING_REREG_ACCESS = 1 << 2,
};

/** What a MODIFY_SRQ sets, as enum ibv_srq_attr_mask. */
enum ring_srq_attr_mask {
	RING_SRQ_MAX_WR = 1 << 0,
	RING_SRQ_LIMIT = 1 << 1,
};

/** Path MTU, as enum ibv_mtu. */
enum ring_mtu {
	RING_MTU_256 = 1,
	RING_MTU_512 = 2,
	RING_MTU_1024 = 3,
	RING_MTU_2048 = 4,
	RING_MTU_4096 = 5,
};

/** As enum ibv_port_state, the states that an Ethernet port has. */
enum ring_port_state {
	RING_PORT_DOWN = 1,
	RING_PORT_ACTIVE = 4,
};

/** As enum ibv_transport_type, those offered. */
enum ring_transport {
	RING_TRANSPORT_ROCE = 0, /* IBV_TRANSPORT_IB */
	RING_TRANSPORT_IWARP = 1,
};

/** Types of memory windows, as enum ibv_mw_type. */
enum ring_mw_type {
	RING_MW_TYPE_1 = 1,
	RING_MW_TYPE_2 = 2,  /* 2B: of the QP and its PD */
	RING_MW_TYPE_2A = 3, /* of the QP alone; verbs have no number for it */
};

/** Asynchronous events, as enum ibv_event_type. */
enum ring_event_type {
	RING_EVENT_CQ_ERR = 0,
	RING_EVENT_QP_FATAL = 1,
	RING_EVENT_QP_REQ_ERR = 2,
	RING_EVENT_QP_ACCESS_ERR = 3,
	RING_EVENT_COMM_EST = 4,
	RING_EVENT_SQ_DRAINED = 5,
	RING_EVENT_PATH_MIG = 6,     /* never sent */
	RING_EVENT_PATH_MIG_ERR = 7, /* never sent */
	RING_EVENT_DEVICE_FATAL = 8,
	RING_EVENT_PORT_ACTIVE = 9,
	RING_EVENT_PORT_ERR = 10,
	RING_EVENT_LID_CHANGE = 11,  /* never sent */
	RING_EVENT_PKEY_CHANGE = 12, /* never sent */
	RING_EVENT_SM_CHANGE = 13,   /* never sent */
	RING_EVENT_SRQ_ERR = 14,
	RING_EVENT_SRQ_LIMIT_REACHED = 15,
	RING_EVENT_QP_LAST_WQE_REACHED = 16,
	RING_EVENT_CLIENT_REREGISTER = 17, /* never sent */
	RING_EVENT_GID_CHANGE = 18,
	RING_EVENT_WQ_FATAL = 19, /* never sent */
	RING_EVENT_COUNT
};

#endif /* RING_VERBS_H */
