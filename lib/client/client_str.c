/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of numbers, as verbs has them. */
#include <errno.h>

#include "rnic.h"
#include "rnic_cm.h"

#define NAME_OF(table, i) \
	((i) < sizeof(table) / sizeof((table)[0]) && (table)[i] ? (table)[i] : "unknown")

static const char *const wc_status[] = {
	[RNIC_WC_SUCCESS] = "success",
	[RNIC_WC_LOC_LEN_ERR] = "local length error",
	[RNIC_WC_LOC_QP_OP_ERR] = "local QP operation error",
	[RNIC_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
	[RNIC_WC_LOC_PROT_ERR] = "local protection error",
	[RNIC_WC_WR_FLUSH_ERR] = "work request flushed",
	[RNIC_WC_MW_BIND_ERR] = "memory window bind error",
	[RNIC_WC_BAD_RESP_ERR] = "bad response",
	[RNIC_WC_LOC_ACCESS_ERR] = "local access error",
	[RNIC_WC_REM_INV_REQ_ERR] = "remote invalid request error",
	[RNIC_WC_REM_ACCESS_ERR] = "remote access error",
	[RNIC_WC_REM_OP_ERR] = "remote operation error",
	[RNIC_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
	[RNIC_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
	[RNIC_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
	[RNIC_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
	[RNIC_WC_REM_ABORT_ERR] = "remote aborted",
	[RNIC_WC_INV_EECN_ERR] = "invalid EE context number",
	[RNIC_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
	[RNIC_WC_FATAL_ERR] = "fatal error",
	[RNIC_WC_RESP_TIMEOUT_ERR] = "response timeout",
	[RNIC_WC_GENERAL_ERR] = "general error",
};

static const char *const send_opcode[] = {
	[RNIC_WC_SEND] = "SEND",
	[RNIC_WC_RDMA_WRITE] = "RDMA_WRITE",
	[RNIC_WC_RDMA_READ] = "RDMA_READ",
	[RNIC_WC_COMP_SWAP] = "COMP_SWAP",
	[RNIC_WC_FETCH_ADD] = "FETCH_ADD",
	[RNIC_WC_BIND_MW] = "BIND_MW",
	[RNIC_WC_LOCAL_INV] = "LOCAL_INV",
	[RNIC_WC_FLUSH] = "FLUSH",
	[RNIC_WC_ATOMIC_WRITE] = "ATOMIC_WRITE",
	[RNIC_WC_FAST_REG] = "FAST_REG",
};

static const char *const event_type[] = {
	[RNIC_EVENT_CQ_ERR] = "CQ error",
	[RNIC_EVENT_QP_FATAL] = "local work queue catastrophic error",
	[RNIC_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
	[RNIC_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
	[RNIC_EVENT_COMM_EST] = "communication established",
	[RNIC_EVENT_SQ_DRAINED] = "send queue drained",
	[RNIC_EVENT_DEVICE_FATAL] = "local catastrophic error",
	[RNIC_EVENT_PORT_ACTIVE] = "port active",
	[RNIC_EVENT_PORT_ERR] = "port error",
	[RNIC_EVENT_SRQ_ERR] = "SRQ catastrophic error",
	[RNIC_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
	[RNIC_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
	[RNIC_EVENT_GID_CHANGE] = "GID table change",
};

static const char *const qp_state[] = {
	[RNIC_QPS_RESET] = "RESET",
	[RNIC_QPS_INIT] = "INIT",
	[RNIC_QPS_RTR] = "RTR",
	[RNIC_QPS_RTS] = "RTS",
	[RNIC_QPS_SQD] = "SQD",
	[RNIC_QPS_SQE] = "SQE",
	[RNIC_QPS_ERR] = "ERR",
};

static const char *const cm_event[] = {
	[RNIC_CM_EVENT_ADDR_RESOLVED] = "ADDR_RESOLVED",
	[RNIC_CM_EVENT_ADDR_ERROR] = "ADDR_ERROR",
	[RNIC_CM_EVENT_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
	[RNIC_CM_EVENT_ROUTE_ERROR] = "ROUTE_ERROR",
	[RNIC_CM_EVENT_CONNECT_REQUEST] = "CONNECT_REQUEST",
	[RNIC_CM_EVENT_CONNECT_RESPONSE] = "CONNECT_RESPONSE",
	[RNIC_CM_EVENT_CONNECT_ERROR] = "CONNECT_ERROR",
	[RNIC_CM_EVENT_UNREACHABLE] = "UNREACHABLE",
	[RNIC_CM_EVENT_REJECTED] = "REJECTED",
	[RNIC_CM_EVENT_ESTABLISHED] = "ESTABLISHED",
	[RNIC_CM_EVENT_DISCONNECTED] = "DISCONNECTED",
	[RNIC_CM_EVENT_DEVICE_REMOVAL] = "DEVICE_REMOVAL",
	[RNIC_CM_EVENT_MULTICAST_JOIN] = "MULTICAST_JOIN",
	[RNIC_CM_EVENT_MULTICAST_ERROR] = "MULTICAST_ERROR",
	[RNIC_CM_EVENT_ADDR_CHANGE] = "ADDR_CHANGE",
	[RNIC_CM_EVENT_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
};

const char *
rnic_wc_status_str(uint32_t status)
{
	return NAME_OF(wc_status, status);
}

const char *
rnic_wc_opcode_str(uint32_t opcode)
{
	if (opcode == RNIC_WC_RECV)
		return "RECV";
	if (opcode == RNIC_WC_RECV_RDMA_WITH_IMM)
		return "RECV_RDMA_WITH_IMM";
	return NAME_OF(send_opcode, opcode);
}

const char *
rnic_event_type_str(uint32_t type)
{
	return NAME_OF(event_type, type);
}

const char *
rnic_cm_event_str(uint32_t event)
{
	return NAME_OF(cm_event, event);
}

const char *
rnic_qp_state_str(uint32_t state)
{
	return NAME_OF(qp_state, state);
}

const char *
rnic_port_state_str(uint32_t state)
{
	if (state == RNIC_PORT_ACTIVE)
		return "ACTIVE";
	return state == RNIC_PORT_DOWN ? "DOWN" : "unknown";
}

const char *
rnic_transport_str(uint32_t transport)
{
	if (transport == RNIC_TRANSPORT_ROCE)
		return "RoCE v2";
	return transport == RNIC_TRANSPORT_IWARP ? "iWARP" : "unknown";
}

const char *
rnic_strerror(int err)
{
	switch (err < 0 ? -err : err) {
	case 0:
		return "success";
	case ENOTCONN:
		return "the daemon is gone";
	case EPERM:
		return "the context belongs to the parent process";
	case EPROTONOSUPPORT:
		return "the daemon speaks another major version";
	case EPROTO:
		return "the daemon's answer makes no sense";
	case EOPNOTSUPP:
		return "the device does not offer this";
	case EADDRINUSE:
		return "another id has that port";
	case EADDRNOTAVAIL:
		return "not an address of the device's, or no port is free";
	case EDQUOT:
		return "the user's quota at the daemon is used up";
	case ENOMEM:
		return "out of memory, or the queue is full";
	case EINVAL:
		return "invalid argument, or not allowed in this state";
	case EBUSY:
		return "still in use";
	case EFAULT:
		return "the memory is not mapped, or not with these rights";
	case ENODATA:
		return "an empty entry";
	case ENODEV:
		return "no such device";
	case ENETUNREACH:
		return "no route to that address";
	case EHOSTUNREACH:
		return "the neighbour does not answer";
	case EOVERFLOW:
		return "the completion queue overran";
	case EAGAIN:
		return "nothing there yet";
	case ENOENT:
	case ECONNREFUSED:
		return "no daemon listens there";
	default:
		return strerror(err < 0 ? -err : err);
	}
}
