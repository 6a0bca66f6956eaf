/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management on the control thread: what its files share. Ids and event channels are
 * clients' objects; what speaks on the wire is a transport's (ctl_cm_roce.c), which knows ids by
 * pointer and is known here by the functions at the end.
 *
 * An id's connection outlives it at the transport, for as long as the wire needs.
 */
#ifndef CTL_CM_H
#define CTL_CM_H

#include "ctl_priv.h"
#include "ring_ctrl_cm.h"

struct ctl_qp_op;
struct roce_cm_conn;
struct roce_cm_listener;

/** An id's states; docs/design.md has the table. If you add one: its name in ctl_cm_id.c. */
enum ctl_cm_state {
	CTL_CM_IDLE,
	CTL_CM_BOUND,
	CTL_CM_ADDR_QUERY,	/* RESOLVE_ADDR is under way */
	CTL_CM_ADDR_RESOLVED,
	CTL_CM_ROUTE_RESOLVED,
	CTL_CM_LISTEN,
	CTL_CM_CONNECT,		/* a request is out, or its answer is being acted upon */
	CTL_CM_RESPONSE,	/* the application moves its QP, ESTABLISH is to come */
	CTL_CM_REQUEST,		/* a request is in */
	CTL_CM_ACCEPT,		/* accepted; the peer is to confirm */
	CTL_CM_ESTABLISHED,
	CTL_CM_DISCONNECT,	/* asked for, the peer is to confirm */
	CTL_CM_OVER,		/* rejected, failed, or disconnected */
	CTL_CM_STATES
};

#define CTL_CM_IN(state) (1u << CTL_CM_##state)
#define CTL_CM_MAX_BACKLOG 65536u
#define CTL_CM_MAX_EVENTS 64u /* of an id that wait, beyond which it may not ask for more */

struct ctl_cm_event {
	TAILQ_ENTRY(ctl_cm_event) link; /* of the channel */
	TAILQ_ENTRY(ctl_cm_event) of_link; /* of the id; or the listener */
	struct ctl_cm_id *id;
	struct ctl_cm_id *listener; /* CONNECT_REQUEST, to it */
	struct ring_ctrl_cm_event_rep rep; /* but the private data */
	uint8_t private_data[];
};

struct ctl_cm_channel {
	struct ctl_obj o; /* refs: ids */
	int wr_fd;
	uint32_t owed; /* events that wait whose byte the pipe had no room for */
	TAILQ_HEAD(ctl_cm_events, ctl_cm_event) events;
};

/** A port number of a port space, and who has it. */
struct ctl_cm_port {
	struct ctl_map_node node; /* by space and number */
	LIST_HEAD(, ctl_cm_id) ids;
};

struct ctl_cm_mcast {
	LIST_ENTRY(ctl_cm_mcast) link;
	struct net_ip group;
	uint32_t qpn; /* attached; RING_NO_HANDLE: none */
	uint32_t port;
};

struct ctl_cm_id {
	struct ctl_obj o;
	struct ctl_cm_channel *channel;
	uint16_t ps; /* enum ring_cm_ps */
	uint8_t qp_type, state;
	bool reuseaddr, afonly, loopback; /* loopback: for peers of this daemon alone */
	bool has_tos, has_ack_timeout;
	bool timed; /* counts among its uid's resolutions with a time limit */
	uint8_t tos, ack_timeout;
	struct ring_cm_addr src, dst;
	LIST_ENTRY(ctl_cm_id) bound_link;
	struct ctl_cm_port *bound; /* NULL: to no port number */
	struct ctl_cm_events events; /* that wait, requests to it among them */
	uint32_t waiting, fetched;
	struct ctl_cm_event *asked; /* the request that made it, while that waits */

	/* the way to the peer */
	struct ring_ctrl_av av; /* port 0: not bound to a device's */
	struct net_neigh *neigh;
	struct ctl_neigh_wait wait; /* on a list while ADDR_QUERY waits */
	uint8_t path_mtu;
	uint16_t vlan;

	/* listeners */
	struct roce_cm_listener *listener;
	uint32_t backlog, unfetched;

	/* connections */
	struct roce_cm_conn *conn;
	struct ctl_map_node qpn_node; /* in the device's table, while by_qpn */
	bool by_qpn;
	bool moves;	/* its QP is ours to move */
	bool connected; /* once */
	uint32_t qpn, psn; /* psn: that we expect first */
	uint32_t worker;   /* whose queue received its request */
	uint8_t move_next, move_last; /* states that its QP is being moved through */
	void (*moved)(struct ctl_cm_id *id, int status);
	struct ctl_elem accepter; /* waits for its QP */
	struct ring_ctrl_cm_conn_req accept; /* what it said */
	struct ctl_cm_event *held; /* ESTABLISHED, until the QP is there */
	LIST_HEAD(, ctl_cm_mcast) mcasts;
};

/* ---- channels and events (ctl_cm.c) ---------- */

struct ctl_cm_channel *ctl_cm_channel_find(struct ctl_client *c, uint32_t handle);
/** An event of the id with room for private data; NULL: without memory its client is cut off. */
struct ctl_cm_event *ctl_cm_event_new(struct ctl_cm_id *id, unsigned int event, int result,
				      const void *data, uint32_t len);
/** Have it wait at the id's channel; or the listener's, whose request it is. */
void ctl_cm_event_send(struct ctl_cm_event *e);
/** Both at once, for events that say nothing more. */
void ctl_cm_tell(struct ctl_cm_id *id, unsigned int event, int result);
#define CTL_CM_DROP_TURN 64u
/**
 * Drop a turn's worth of the id's events; requests to it are refused, their ids end. @return how
 * many left a byte in the pipe.
 */
uint32_t ctl_cm_events_drop(struct ctl_cm_id *id);

/* ---- ids (ctl_cm_id.c) ---------- */

/** NULL unless it is in one of these states. */
struct ctl_cm_id *ctl_cm_id_find(struct ctl_client *c, uint32_t handle, uint32_t states);
/** An id in IDLE, on that channel. 0, -EDQUOT, -ENOMEM. */
int ctl_cm_id_new(struct ctl_cm_channel *ch, uint16_t ps, uint8_t qp_type, struct ctl_cm_id **id);
const char *ctl_cm_state_name(unsigned int state);
/** The id and what it was about go. */
void ctl_cm_id_end(struct ctl_cm_id *id);

/* ---- port numbers (ctl_cm_port.c) ---------- */

/**
 * Take the number of id->src, or a free one if that is 0, by addresses and options as they stand
 * in the id. -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -ENOMEM.
 */
int ctl_cm_port_take(struct ctl_cm_id *id);
/** It is to listen there: 0 or -EADDRINUSE. */
int ctl_cm_port_listen(struct ctl_cm_id *id);
void ctl_cm_port_release(struct ctl_cm_id *id);

/* ---- addresses (ctl_cm_addr.c) ---------- */

/** Whether a client may say so. */
bool ctl_cm_addr_ok(const struct ring_cm_addr *a);
bool ctl_cm_addr_any(const struct ring_cm_addr *a);
/** A bind address: the device's port that has it, or any. 0 or -EADDRNOTAVAIL. */
int ctl_cm_addr_bind(struct ctl_cm_id *id, const struct ring_cm_addr *a);
/** Resolving ends now, without an event. */
void ctl_cm_addr_cancel(struct ctl_cm_id *id);
/** The way to a peer that has come to us. */
void ctl_cm_addr_from_peer(struct ctl_cm_id *id, uint32_t port, const struct net_ip *own,
			   const struct net_ip *peer);
struct net_ip ctl_cm_ip(const struct ring_cm_addr *a);

/* ---- multicast (ctl_cm_mcast.c) ---------- */

/** It leaves all groups. */
void ctl_cm_mcast_end(struct ctl_cm_id *id);

/* ---- queue pairs (ctl_cm_qp.c) ---------- */

/** Attributes for a state. 0, -EINVAL: not in the id's state. */
int ctl_cm_qp_attr(struct ctl_cm_id *id, unsigned int state, struct ring_ctrl_qp_attr *a,
		   uint32_t *mask);
/** A QP of the client's uid. */
struct ctl_qp *ctl_cm_qp_find(struct ctl_cm_id *id, uint32_t qpn);
/** A connection's QP is held: events of it find the id. */
int ctl_cm_qp_hold(struct ctl_cm_id *id, uint32_t qpn);
void ctl_cm_qp_unhold(struct ctl_cm_id *id);
/**
 * Move the id's QP through these states, one after the other; then `moved` is called, if the id is
 * still there, and perhaps before this returns.
 */
void ctl_cm_qp_move(struct ctl_cm_id *id, unsigned int from, unsigned int to,
		    void (*moved)(struct ctl_cm_id *id, int status));
/** To ERR, whatever it does. */
void ctl_cm_qp_fail(struct ctl_cm_id *id);

/* ---- the transport (ctl_cm_roce.c) ---------- */

int ctl_cm_roce_listen(struct ctl_cm_id *id);
int ctl_cm_roce_connect(struct ctl_cm_id *id, const struct ring_ctrl_cm_conn_req *r);
/** With a QP in place. */
int ctl_cm_roce_accept(struct ctl_cm_id *id, const struct ring_ctrl_cm_conn_req *r);
int ctl_cm_roce_reject(struct ctl_cm_id *id, const struct ring_ctrl_cm_reject_req *r);
/** The QP is up: tell the peer. */
int ctl_cm_roce_confirm(struct ctl_cm_id *id);
int ctl_cm_roce_disconnect(struct ctl_cm_id *id);
/** 0, -ENOTCONN, -EISCONN. */
int ctl_cm_roce_notify(struct worker_device *d, uint32_t qpn);
/** The id lets go of what it has there; the wire is told what it needs. */
void ctl_cm_roce_end(struct ctl_cm_id *id);
/** What modify needs: of an id with a peer. */
void ctl_cm_roce_qp_attr(struct ctl_cm_id *id, struct ring_ctrl_qp_attr *a);

/* ---- its MADs (ctl_cm_mad.c) ---------- */

struct roce_cm_av;
/** As roce_cm_config.send_mad, of a device. */
bool ctl_cm_mad_send(void *ctx, const struct roce_cm_av *av, const uint8_t *mad);
/** Those that wait, as far as they may leave. */
void ctl_cm_mad_run(struct worker_device *d, uint64_t now);
uint64_t ctl_cm_mad_due(const struct worker_device *d);
void ctl_cm_mad_fini(struct worker_device *d);

/* ---- what an event of the transport does (ctl_cm_conn.c) ---------- */

/** The peer has accepted: `e` is the event, as CONNECT_RESPONSE. */
void ctl_cm_conn_response(struct ctl_cm_id *id, struct ctl_cm_event *e);
void ctl_cm_conn_established(struct ctl_cm_id *id, struct ctl_cm_event *e);
/** It is over: the event says how; NULL: nobody needs to know. */
void ctl_cm_conn_over(struct ctl_cm_id *id, struct ctl_cm_event *e);

#endif /* CTL_CM_H */
