/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librnic: connections by address, the same over every transport. Names, numbers and meanings are
 * those of rdma_cm; what differs is said here and in rnic_cm(7).
 *
 * A connection manager's channel carries events of its ids, and has a descriptor. An id is an
 * endpoint: a listener, a connection, or the address of datagrams. Whoever connects goes
 * resolve_addr, resolve_route, create_qp, connect; whoever listens goes bind_addr, listen, and
 * gets an id with each CONNECT_REQUEST: create_qp, accept or reject. Each step but the local ones
 * ends in an event.
 *
 * Errors and threads are as in rnic.h. -EINVAL is also what a call gives in a state that it is not
 * for. This header stands apart from rnic.h, which it includes: it needs socket addresses, and
 * programs that connect their QPs themselves need neither.
 */
#ifndef RNIC_CM_H
#define RNIC_CM_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "rnic.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rnic_cm_channel;

/* ---- numbers, as in rdma_cma.h ----------------------------------------------------------- */

enum rnic_cm_event_type {
	RNIC_CM_EVENT_ADDR_RESOLVED = 0,
	RNIC_CM_EVENT_ADDR_ERROR = 1,
	RNIC_CM_EVENT_ROUTE_RESOLVED = 2,
	RNIC_CM_EVENT_ROUTE_ERROR = 3,
	RNIC_CM_EVENT_CONNECT_REQUEST = 4,
	RNIC_CM_EVENT_CONNECT_RESPONSE = 5, /* only with a QP that the application moves itself */
	RNIC_CM_EVENT_CONNECT_ERROR = 6,
	RNIC_CM_EVENT_UNREACHABLE = 7,
	RNIC_CM_EVENT_REJECTED = 8,
	RNIC_CM_EVENT_ESTABLISHED = 9,
	RNIC_CM_EVENT_DISCONNECTED = 10,
	RNIC_CM_EVENT_DEVICE_REMOVAL = 11,
	RNIC_CM_EVENT_MULTICAST_JOIN = 12,
	RNIC_CM_EVENT_MULTICAST_ERROR = 13,
	RNIC_CM_EVENT_ADDR_CHANGE = 14,
	RNIC_CM_EVENT_TIMEWAIT_EXIT = 15
};

enum rnic_port_space {
	RNIC_PS_TCP = 0x0106, /* connections: RC, UC */
	RNIC_PS_UDP = 0x0111, /* datagrams: UD */
	RNIC_PS_IB = 0x013f   /* any of them */
};

enum rnic_cm_option {
	RNIC_CM_OPTION_TOS = 0,	       /* traffic class */
	RNIC_CM_OPTION_REUSEADDR = 1,  /* ids that do not listen may share a port */
	RNIC_CM_OPTION_AFONLY = 2,     /* of IPv6: not IPv4 too */
	RNIC_CM_OPTION_ACK_TIMEOUT = 3 /* of the QPs at both ends: 4.096 us << value */
};

#define RNIC_CM_UDP_QKEY 0x01234567u /* of datagrams in RNIC_PS_UDP */
#define RNIC_CM_MAX_PRIVATE 256	     /* bytes; transports carry less, see rnic_cm(7) */

/* ---- channels and events ----------------------------------------------------------------- */

struct rnic_cm_id {
	struct rnic_context *context;
	struct rnic_cm_channel *channel;
	void *user_context;
	struct rnic_qp *qp; /* of rnic_cm_create_qp() */
	uint32_t handle;
	uint32_t ps;	   /* enum rnic_port_space */
	uint32_t qp_type;  /* enum rnic_qp_type */
	uint32_t port_num; /* the device's port; 0: not bound to one */
	struct sockaddr_storage src_addr;
	struct sockaddr_storage dst_addr;
};

/**
 * Of connections, and the peer's in events. NULL where one is taken: all zero; accepting, as many
 * READs and atomics as the request offers (so does 255 in both fields).
 */
struct rnic_cm_param {
	const void *private_data;
	uint16_t private_data_len;
	uint8_t responder_resources; /* READs and atomics of the peer at a time */
	uint8_t initiator_depth;     /* own READs and atomics at a time */
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count; /* 7: for ever */
	uint8_t srq;		 /* qp_num's is one; for id->qp it is known */
	uint32_t qp_num;	 /* of a QP that is not id->qp: the application moves it itself */
	uint32_t qkey;		 /* datagrams: accepting; 0: the port space's */
};

struct rnic_cm_event {
	struct rnic_cm_id *id;	      /* CONNECT_REQUEST: a new one */
	struct rnic_cm_id *listen_id; /* CONNECT_REQUEST */
	uint32_t event;		      /* enum rnic_cm_event_type */
	/* 0; -errno; REJECTED: the transport's reason, positive (RoCE: 28 the peer's program did,
	 * 8 nobody listens there; IBTA 12.6.7.2) */
	int32_t status;
	struct rnic_cm_param param; /* private_data lasts until the event is acknowledged */
	/* datagrams (ESTABLISHED of whoever connects) and MULTICAST_JOIN: whereto, qp_num and qkey
	 * with it are in param */
	struct rnic_ah_attr ah_attr;
	void *mcast_context; /* MULTICAST_*: of rnic_cm_join_multicast() */
};

int rnic_cm_create_channel(struct rnic_context *ctx, struct rnic_cm_channel **channel);
/** -EBUSY while ids use it. */
int rnic_cm_destroy_channel(struct rnic_cm_channel *channel);
/** Readable when an event waits. Blocking unless O_NONBLOCK is set on it. Not to be read. */
int rnic_cm_channel_fd(const struct rnic_cm_channel *channel);
/** The next event. -EAGAIN if non-blocking; -ENOTCONN when the daemon died. */
int rnic_cm_get_event(struct rnic_cm_channel *channel, struct rnic_cm_event **event);
/** Frees it. An id's destruction waits until all its events are. */
void rnic_cm_ack_event(struct rnic_cm_event *event);

/* ---- ids --------------------------------------------------------------------------------- */

/** `qp_type`: of its QPs; 0: what the port space has (RC; UD). */
int rnic_cm_create_id(struct rnic_cm_channel *channel, uint32_t ps, uint32_t qp_type,
	void *user_context, struct rnic_cm_id **id);
/**
 * Whatever it was about ends: a connection is taken down, a request refused, a listener's requests
 * that nobody has fetched are refused. id->qp must have been destroyed (-EBUSY). Waits for its
 * events to be acknowledged.
 */
int rnic_cm_destroy_id(struct rnic_cm_id *id);
/** Its events come from that channel now, those that wait too. */
int rnic_cm_migrate_id(struct rnic_cm_id *id, struct rnic_cm_channel *channel);
/** `value`: TOS and ACK_TIMEOUT a number, the others 0 or 1. */
int rnic_cm_set_option(struct rnic_cm_id *id, uint32_t option, uint32_t value);

/**
 * An own address, any, or a loopback address (the first own of the family then, and peers of this
 * daemon alone). Port 0: a free one, see id->src_addr. -EADDRINUSE, -EADDRNOTAVAIL; -EACCES: a
 * port below 1024 for whose uid is not 0.
 */
int rnic_cm_bind_addr(struct rnic_cm_id *id, const struct sockaddr *addr);
/**
 * Source (NULL: as bound, else by route) and destination; binds the id. ADDR_RESOLVED, or
 * ADDR_ERROR with -ENETUNREACH (no route), -EHOSTUNREACH (no answer) or -ETIMEDOUT.
 */
int rnic_cm_resolve_addr(struct rnic_cm_id *id, const struct sockaddr *src,
	const struct sockaddr *dst, unsigned int timeout_ms);
/** ROUTE_RESOLVED or ROUTE_ERROR. */
int rnic_cm_resolve_route(struct rnic_cm_id *id, unsigned int timeout_ms);
/** `backlog`: requests that were not fetched yet; beyond it they are refused. 0: the most. */
int rnic_cm_listen(struct rnic_cm_id *id, unsigned int backlog);

/**
 * A QP of the id, in INIT (UD: in RTS): receives can be posted. It goes through its states by
 * itself: sends may be posted once ESTABLISHED is told, or rnic_cm_accept() has returned, and it is
 * in the error state when the connection ends. attr->qp_type is the id's.
 */
int rnic_cm_create_qp(struct rnic_cm_id *id, struct rnic_pd *pd, struct rnic_qp_init_attr *attr);
int rnic_cm_destroy_qp(struct rnic_cm_id *id);
/** A QP for each of `n` ids, few messages for all. 0, or -errno and none is made. */
int rnic_cm_create_qps(struct rnic_cm_id *const *ids, struct rnic_pd *pd,
	struct rnic_qp_init_attr *attr, int n);
/**
 * A QP that is there, in INIT on the id's port, becomes the id's to go through its states; or NULL:
 * the id lets go of it.
 */
int rnic_cm_set_qp(struct rnic_cm_id *id, struct rnic_qp *qp);

/**
 * ESTABLISHED (or CONNECT_RESPONSE, if the application moves its QP itself); REJECTED; UNREACHABLE
 * with -ETIMEDOUT; CONNECT_ERROR. Of datagrams: asks for the peer's QP.
 */
int rnic_cm_connect(struct rnic_cm_id *id, const struct rnic_cm_param *param);
/** Answer a CONNECT_REQUEST. ESTABLISHED, or CONNECT_ERROR; of datagrams: nothing more comes. */
int rnic_cm_accept(struct rnic_cm_id *id, const struct rnic_cm_param *param);
/** The same for a request, or a CONNECT_RESPONSE. -ENOTCONN: the peer has given up. */
int rnic_cm_reject(struct rnic_cm_id *id, const void *private_data, uint16_t private_data_len);
/** With a reason of the transport's, for those who speak for it. */
int rnic_cm_reject_reason(struct rnic_cm_id *id, uint16_t reason, const void *private_data,
	uint16_t private_data_len);
/** The answer to CONNECT_RESPONSE, when the QP is in RTS. */
int rnic_cm_establish(struct rnic_cm_id *id);
/** DISCONNECTED (-ETIMEDOUT: the peer did not answer), then TIMEWAIT_EXIT. */
int rnic_cm_disconnect(struct rnic_cm_id *id);
/** RNIC_EVENT_COMM_EST came for its QP: it is connected. The daemon knows, as a rule. */
int rnic_cm_notify(struct rnic_cm_id *id, uint32_t event);

/**
 * `n` ids of one channel at once, in few messages; status[i] (if not NULL) is each one's result. 0
 * or the first failure. `params`: one for each id.
 */
int rnic_cm_create_ids(struct rnic_cm_channel *channel, uint32_t ps, uint32_t qp_type,
	void *const *user_contexts, struct rnic_cm_id **ids, int n);
int rnic_cm_resolve_addrs(struct rnic_cm_id *const *ids, const struct sockaddr *src,
	const struct sockaddr *dst, unsigned int timeout_ms, int *status, int n);
int rnic_cm_resolve_routes(
	struct rnic_cm_id *const *ids, unsigned int timeout_ms, int *status, int n);
int rnic_cm_connects(
	struct rnic_cm_id *const *ids, const struct rnic_cm_param *params, int *status, int n);
int rnic_cm_accepts(
	struct rnic_cm_id *const *ids, const struct rnic_cm_param *params, int *status, int n);
int rnic_cm_disconnects(struct rnic_cm_id *const *ids, int *status, int n);

/* ---- what it is made of ------------------------------------------------------------------ */

/**
 * What to modify a QP with that the application moves itself: for attr->qp_state INIT, RTR or RTS,
 * once there is a route; for RTR and RTS once the request or response has come.
 */
int rnic_cm_init_qp_attr(struct rnic_cm_id *id, struct rnic_qp_attr *attr, unsigned int *mask);

/** The way to the peer. */
struct rnic_cm_route {
	struct rnic_ah_attr ah_attr;
	union rnic_gid sgid;
	uint64_t node_guid; /* network order; of the device */
	uint32_t path_mtu;  /* enum rnic_mtu; 0: not resolved */
	uint32_t vlan;
	uint8_t smac[6];
	uint8_t dmac[6];
};
int rnic_cm_query_route(struct rnic_cm_id *id, struct rnic_cm_route *route);

/* ---- multicast --------------------------------------------------------------------------- */

/**
 * MULTICAST_JOIN or MULTICAST_ERROR, with `context`. id->qp is attached. The id is bound, or has
 * its address resolved.
 */
int rnic_cm_join_multicast(struct rnic_cm_id *id, const struct sockaddr *group, void *context);
int rnic_cm_leave_multicast(struct rnic_cm_id *id, const struct sockaddr *group);

/** Never NULL. */
const char *rnic_cm_event_str(uint32_t event);

#ifdef __cplusplus
}
#endif

#endif /* RNIC_CM_H */
