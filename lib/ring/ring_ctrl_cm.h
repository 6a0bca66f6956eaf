/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies of the control messages of connection management, under the rules of ring_ctrl_msg.h.
 * Nothing in them is of one transport: what a transport does not know is zero. An id is an
 * endpoint, as in rdma_cm; numbers are those of rdma_cm, ports in host order.
 *
 * Events wait in the daemon, in the queue of the id's event channel, until they are fetched: for
 * each a byte lies in the channel's pipe. There are never more than an id's state allows, and a
 * listener's backlog counts the requests that nobody has fetched.
 */
#ifndef RING_CTRL_CM_H
#define RING_CTRL_CM_H

#include "ring_ctrl_msg.h"

#define RING_CM_PRIVATE 256 /* bytes of private data: more than any transport carries */

/** As enum rdma_port_space. */
enum ring_cm_ps {
	RING_CM_PS_IPOIB = 0x0002, /* refused */
	RING_CM_PS_TCP = 0x0106,
	RING_CM_PS_UDP = 0x0111,
	RING_CM_PS_IB = 0x013f,
};

/** As enum rdma_cm_event_type. */
enum ring_cm_event {
	RING_CM_ADDR_RESOLVED = 0,
	RING_CM_ADDR_ERROR = 1,
	RING_CM_ROUTE_RESOLVED = 2,
	RING_CM_ROUTE_ERROR = 3,
	RING_CM_CONNECT_REQUEST = 4,
	RING_CM_CONNECT_RESPONSE = 5,
	RING_CM_CONNECT_ERROR = 6,
	RING_CM_UNREACHABLE = 7,
	RING_CM_REJECTED = 8,
	RING_CM_ESTABLISHED = 9,
	RING_CM_DISCONNECTED = 10,
	RING_CM_DEVICE_REMOVAL = 11,
	RING_CM_MULTICAST_JOIN = 12,
	RING_CM_MULTICAST_ERROR = 13,
	RING_CM_ADDR_CHANGE = 14,
	RING_CM_TIMEWAIT_EXIT = 15,
	RING_CM_EVENT_COUNT
};

/** An address with a port; version 0: none. */
struct ring_cm_addr {
	union ring_gid ip; /* IPv4 as ::ffff:a.b.c.d; all zero, or ::ffff:0.0.0.0: any */
	uint32_t scope;	   /* link-local: the interface's index (QUERY_GID); 0: any */
	uint16_t port;
	uint8_t version; /* 0, 4, 6 */
	uint8_t reserved;
};
static_assert(sizeof(struct ring_cm_addr) == 24, "ABI");

/** With the read end of the channel's pipe, non-blocking: a byte for each event that waits. */
struct ring_ctrl_cm_create_channel_rep {
	int32_t status;
	uint32_t handle;
};
RING_CTRL_SIZE(ring_ctrl_cm_create_channel_rep, 8);

struct ring_ctrl_cm_create_id_req {
	uint32_t channel;
	uint16_t ps;	 /* enum ring_cm_ps */
	uint8_t qp_type; /* enum ring_qp_type of its QPs: RC, UC; UD with PS_UDP and PS_IB */
	uint8_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_cm_create_id_req, 8);

/** The id's events that wait go along. */
struct ring_ctrl_cm_migrate_req {
	uint32_t id;
	uint32_t channel;
};
RING_CTRL_SIZE(ring_ctrl_cm_migrate_req, 8);

/** Of DESTROY_ID too. */
struct ring_ctrl_cm_moved_rep {
	int32_t status;
	uint32_t events;  /* of the id that were fetched, all in all */
	uint32_t waiting; /* that were not, and left a byte behind in the (old) channel's pipe */
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_cm_moved_rep, 16);

/**
 * BIND, RESOLVE_ADDR. -EADDRINUSE: another id has the port; -EADDRNOTAVAIL: not an own address,
 * or no port is free; -EACCES: a port below 1024, for whose uid is not 0. RESOLVE_ADDR's
 * outcome is an event.
 */
struct ring_ctrl_cm_addr_req {
	uint32_t id;
	uint32_t timeout_ms; /* RESOLVE_ADDR */
	struct ring_cm_addr src; /* RESOLVE_ADDR: version 0, as bound, or any */
	struct ring_cm_addr dst; /* RESOLVE_ADDR */
};
RING_CTRL_SIZE(ring_ctrl_cm_addr_req, 56);

struct ring_ctrl_cm_addr_rep {
	int32_t status;
	uint32_t port; /* that it is bound to, from 1; 0: any */
	struct ring_cm_addr src;
};
RING_CTRL_SIZE(ring_ctrl_cm_addr_rep, 32);

/** RESOLVE_ROUTE, LISTEN. */
struct ring_ctrl_cm_arg_req {
	uint32_t id;
	uint32_t arg; /* timeout in ms; backlog, 0: the most there is */
};
RING_CTRL_SIZE(ring_ctrl_cm_arg_req, 8);

enum ring_cm_flag {
	/*
	 * The QP is the library's to set up: the daemon moves it through its states, and puts it
	 * into ERR when the connection ends. There is no CONNECT_RESPONSE.
	 */
	RING_CM_MOVE_QP = 1,
};

/** CONNECT, ACCEPT, of ESTABLISH the id alone: the answer to CONNECT_RESPONSE. */
struct ring_ctrl_cm_conn_req {
	uint32_t id;
	uint32_t qpn;  /* 24 bits; with MOVE_QP one of the context's; ignored by UD's CONNECT */
	uint32_t qkey; /* UD's ACCEPT; 0: the port space's */
	uint16_t private_len;
	uint8_t flags; /* enum ring_cm_flag */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t reserved[3];
	uint8_t private_data[RING_CM_PRIVATE];
};
RING_CTRL_SIZE(ring_ctrl_cm_conn_req, 280);

struct ring_ctrl_cm_reject_req {
	uint32_t id;
	uint16_t reason; /* 0: the consumer's (28); else the transport's code */
	uint16_t private_len;
	uint8_t private_data[RING_CM_PRIVATE];
};
RING_CTRL_SIZE(ring_ctrl_cm_reject_req, 264);

/** NOTIFY: an asynchronous event of a QP that is the application's (COMM_EST). */
struct ring_ctrl_cm_notify_req {
	uint32_t id;
	uint32_t event; /* enum ring_event_type */
};
RING_CTRL_SIZE(ring_ctrl_cm_notify_req, 8);

struct ring_ctrl_cm_qp_attr_req {
	uint32_t id;
	uint32_t state; /* enum ring_qp_state: INIT, RTR, RTS */
};
RING_CTRL_SIZE(ring_ctrl_cm_qp_attr_req, 8);

struct ring_ctrl_cm_qp_attr_rep {
	int32_t status;
	uint32_t mask; /* enum ring_qp_attr_mask */
	struct ring_ctrl_qp_attr attr;
};
RING_CTRL_SIZE(ring_ctrl_cm_qp_attr_rep, 80);

struct ring_ctrl_cm_query_rep {
	int32_t status;
	uint32_t port; /* from 1; 0: none yet */
	struct ring_cm_addr src, dst;
	struct ring_ctrl_av av; /* once resolved */
	uint32_t path_mtu;	/* enum ring_mtu; 0: no route */
	uint32_t vlan;
	uint64_t node_guid; /* network order */
	uint8_t smac[6], dmac[6];
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_cm_query_rep, 120);

/** As RDMA_OPTION_ID_*. */
enum ring_cm_option {
	RING_CM_OPT_TOS = 0,	     /* before RESOLVE_ADDR's outcome is used: any time */
	RING_CM_OPT_REUSEADDR = 1,   /* before BIND */
	RING_CM_OPT_AFONLY = 2,	     /* before BIND */
	RING_CM_OPT_ACK_TIMEOUT = 3, /* before CONNECT or ACCEPT; 0 .. 31 */
	RING_CM_OPT_COUNT
};

struct ring_ctrl_cm_option_req {
	uint32_t id;
	uint32_t option; /* enum ring_cm_option */
	uint32_t value;
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_cm_option_req, 16);

/** JOIN_MCAST; its outcome is an event with the same user_handle. LEAVE_MCAST by the same group. */
struct ring_ctrl_cm_mcast_req {
	uint32_t id;
	uint32_t qpn; /* attached on success; RING_NO_HANDLE: none is */
	uint64_t user_handle;
	struct ring_cm_addr group;
};
RING_CTRL_SIZE(ring_ctrl_cm_mcast_req, 40);

struct ring_ctrl_cm_get_event_req {
	uint32_t channel;
	uint32_t reserved;
};
RING_CTRL_SIZE(ring_ctrl_cm_get_event_req, 8);

/** An event. -EAGAIN: none waits. */
struct ring_ctrl_cm_event_rep {
	int32_t status;
	uint32_t event;	 /* enum ring_cm_event */
	uint32_t id;	 /* CONNECT_REQUEST: a new one of the context's */
	uint32_t listen; /* CONNECT_REQUEST: the listener; else RING_NO_HANDLE */
	uint64_t user_handle; /* MULTICAST_*: the join's; else 0 */
	int32_t result;	      /* 0, -errno, or the reason of a REJECTED */
	uint32_t port;	      /* from 1, of the id; 0: none */
	uint32_t qpn;	      /* the peer's */
	uint32_t qkey;	      /* UD, MULTICAST_JOIN */
	uint16_t private_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	struct ring_cm_addr src, dst;
	struct ring_ctrl_av av; /* UD, MULTICAST_JOIN */
	uint8_t private_data[RING_CM_PRIVATE];
};
RING_CTRL_SIZE(ring_ctrl_cm_event_rep, 384);

#endif /* RING_CTRL_CM_H */
