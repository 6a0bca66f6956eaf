/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager (IBTA 12, annex A11; A17 for RoCE): connections and service ID
 * resolution over QP1, both sides. One thread, no clock, no socket: time comes as `now` in ns,
 * randomness and what leaves go through callbacks. It knows no QP: it is given a QPN and gives
 * back what the QP must be modified with.
 *
 * A connection is known by its handle from roce_cm_connect() or from the event REQ until
 * roce_cm_conn_free(), which is always allowed and does what the wire needs; each handle is to
 * be freed once, whatever happened to it. A QPN that was lent to it stays held, past that too,
 * until the callback qpn_free.
 *
 *   active                                     passive
 *   roce_cm_connect()       REQ ->             event REQ
 *   event REP               <- REP             QP to RTR, roce_cm_accept()
 *   QP to RTR and RTS, roce_cm_rtu()  RTU ->   event ESTABLISHED: QP to RTS
 *   event DISCONNECTED      <- DREQ            roce_cm_disconnect()
 *   (QP to ERR)             DREP ->            event DISCONNECTED
 */
#ifndef ROCE_CM_H
#define ROCE_CM_H

#include <stdbool.h>
#include <stdint.h>

#include "net_addr.h"
#include "roce_cm_msg.h"

struct roce_cm;
struct roce_cm_conn;
struct roce_cm_listener;
struct roce_cm_quota;

#define ROCE_CM_PSN_RANDOM UINT32_MAX /* a PSN that the engine shall draw */
#define ROCE_CM_ANY_PORT UINT16_MAX
#define ROCE_CM_MRA_TIMEOUT 24	  /* code of what an automatic MRA asks for: 69 s */
#define ROCE_CM_PACKET_LIFE 18	  /* code; what Linux has where nothing tells: 1.07 s */
#define ROCE_CM_RESPONSE_TIMEOUT 20 /* code, of both sides: 4.3 s */
#define ROCE_CM_MAX_RETRIES 15

/** Counters of the engine: the identifier, the name, what it counts. */
#define ROCE_CM_COUNTERS(X)                                                               \
	X(RX_REQ, "rx_req", "REQ received")                                               \
	X(RX_MRA, "rx_mra", "MRA received")                                               \
	X(RX_REJ, "rx_rej", "REJ received")                                               \
	X(RX_REP, "rx_rep", "REP received")                                               \
	X(RX_RTU, "rx_rtu", "RTU received")                                               \
	X(RX_DREQ, "rx_dreq", "DREQ received")                                            \
	X(RX_DREP, "rx_drep", "DREP received")                                            \
	X(RX_SIDR_REQ, "rx_sidr_req", "SIDR_REQ received")                                \
	X(RX_SIDR_REP, "rx_sidr_rep", "SIDR_REP received")                                \
	X(RX_LAP, "rx_lap", "LAP received")                                               \
	X(RX_APR, "rx_apr", "APR received")                                               \
	X(TX_REQ, "tx_req", "REQ sent, first time and again")                             \
	X(TX_MRA, "tx_mra", "MRA sent")                                                   \
	X(TX_REJ, "tx_rej", "REJ sent")                                                   \
	X(TX_REP, "tx_rep", "REP sent, first time and again")                             \
	X(TX_RTU, "tx_rtu", "RTU sent, first time and again")                             \
	X(TX_DREQ, "tx_dreq", "DREQ sent, first time and again")                          \
	X(TX_DREP, "tx_drep", "DREP sent, first time and again")                          \
	X(TX_SIDR_REQ, "tx_sidr_req", "SIDR_REQ sent, first time and again")              \
	X(TX_SIDR_REP, "tx_sidr_rep", "SIDR_REP sent, first time and again")              \
	X(TX_LAP, "tx_lap", "LAP sent: never")                                            \
	X(TX_APR, "tx_apr", "APR sent: alternate paths are refused")                      \
	X(TX_BUSY, "tx_busy", "messages that could not be sent when they were due")       \
	X(RETRY, "retry", "messages sent again since no answer came")                     \
	X(RETRY_EXCEEDED, "retry_exceeded", "messages given up on")                       \
	X(DUPLICATE, "duplicate", "messages seen before")                                 \
	X(DROP_MALFORMED, "drop_malformed", "MADs of a wrong length, class or method")    \
	X(DROP_UNKNOWN, "drop_unknown", "messages for no connection of ours and the sender") \
	X(DROP_STATE, "drop_state", "messages that the connection's state does not take") \
	X(STALE, "stale", "connections whose peer has begun to use its QP anew")          \
	X(REJECT_SERVICE, "reject_service", "requests for a service nobody listens to")   \
	X(REJECT_INVALID, "reject_invalid", "requests refused for what they say")         \
	X(REJECT_BACKLOG, "reject_backlog", "requests refused, the listener has enough")  \
	X(REJECT_PEER, "reject_peer", "requests refused, their sender has enough")        \
	X(REJECT_LIMIT, "reject_limit", "requests refused at the owner's or the engine's limit") \
	X(EXPIRED, "expired", "requests that nobody answered in time")

enum roce_cm_counter {
#define X(id, name, help) ROCE_CM_C_##id,
	ROCE_CM_COUNTERS(X)
#undef X
	ROCE_CM_C_COUNT
};
/** Name and help of a counter. */
const char *roce_cm_counter_name(enum roce_cm_counter c);
const char *roce_cm_counter_help(enum roce_cm_counter c);

/** Where a MAD goes and how; also the path of a connection's QP. */
struct roce_cm_av {
	struct net_ip sgid, dgid; /* ours, the peer's; one family */
	uint16_t port;		  /* index in the daemon */
	uint16_t vlan;		  /* VLAN id, 0xffff: untagged */
	uint16_t pkey;
	uint32_t flow_label; /* of the QP: it makes the UDP source port; MADs have QP1's */
	uint8_t sl, tclass, hop_limit;
	uint8_t mtu; /* code: the largest that the port and the path take */
};

/** What is known of a MAD that has come. */
struct roce_cm_rx {
	struct net_ip src, dst; /* dst: the GID of ours that it was sent to */
	uint16_t port, vlan; /* as of struct roce_cm_av */
	uint16_t pkey;	     /* of the BTH */
	uint8_t sl, tclass;
	uint8_t mtu; /* code: the largest that the port takes */
};

/** What a connection has for its QP: for the events REQ and REP, and at any time after. */
struct roce_cm_params {
	struct roce_cm_av av; /* of the QP: av.flow_label is the REQ's on both sides (C-10) */
	enum roce_cm_transport transport;
	uint32_t local_qpn, dest_qpn;
	uint32_t rq_psn;		/* what we expect first: what we said in our message */
	uint32_t sq_psn;		/* what we send first: what the peer said (C-70) */
	uint8_t path_mtu;		/* code */
	uint8_t initiator_depth;	/* max_rd_atomic */
	uint8_t responder_resources;	/* max_dest_rd_atomic */
	uint8_t timeout;		/* code: local ACK timeout */
	uint8_t retry_count, rnr_retry;
	bool flow_control, peer_srq;
};

enum roce_cm_event_type {
	/* A connection wants in: answer by accept, reject or free, now or later; conn is new,
	 * its user is the listener's until roce_cm_conn_set_user(). params, ip, service_id,
	 * private data. */
	ROCE_CM_EV_REQ,
	/* The peer accepts: params, private data. Answer by roce_cm_rtu(), reject or free. */
	ROCE_CM_EV_REP,
	/* The peer asks for patience (an MRA): nothing to do. Private data. */
	ROCE_CM_EV_MRA,
	/* Passive: the RTU has come (private data), or data has come before it. */
	ROCE_CM_EV_ESTABLISHED,
	/* Over. reason, info, private data. The QP to ERR. Also when we refused a REP as stale. */
	ROCE_CM_EV_REJECTED,
	/* Over: no answer to REQ or REP after all retries (-ETIMEDOUT), or nobody answered the
	 * peer's REQ for as long as the peer can be waiting (-ECANCELED). The QP to ERR. */
	ROCE_CM_EV_UNREACHABLE,
	/* Over: the peer's DREQ (status 0, private data), the DREP to ours (0, private data), no
	 * DREP after all retries (-ETIMEDOUT), or the peer's QP is in use for another
	 * connection (-ECONNRESET). Before the DREP leaves: roce_cm_drep() from within the
	 * callback puts private data into it. The QP to ERR. */
	ROCE_CM_EV_DISCONNECTED,
	/* Somebody asks for a QPN: answer by roce_cm_sidr_reply() or free. ip, service_id,
	 * private data; params.av alone. */
	ROCE_CM_EV_SIDR_REQ,
	/* The answer: reason is its status; params.dest_qpn, qkey, info, private data. Or no
	 * answer: status -ETIMEDOUT. */
	ROCE_CM_EV_SIDR_REP,
};

struct roce_cm_event {
	enum roce_cm_event_type type;
	int status;		     /* 0 or -errno */
	uint16_t reason;	     /* of REJECTED and SIDR_REP */
	uint64_t service_id;	     /* of REQ and SIDR_REQ */
	struct roce_cm_listener *listener; /* of REQ and SIDR_REQ */
	uint32_t qkey;		     /* of SIDR_REP */
	bool has_ip;		     /* ip is that of REQ or SIDR_REQ */
	struct roce_cm_ip ip;
	struct roce_cm_params params;
	const uint8_t *info; /* valid in the callback, as private_data */
	uint8_t info_len;
	/* All that the message has room for, the zeros behind the data too (B120); NULL when no
	 * message has come. The header of RDMA-CM is not in it. */
	const uint8_t *private_data;
	uint8_t private_len;
};

struct roce_cm_config {
	/**
	 * Send a MAD of 256 bytes from QP1 to QP1: Q_Key 0x80010000, av->pkey. Not from within:
	 * calls into the engine.
	 * @return false: cannot be sent now. What has a retry is tried again soon.
	 */
	bool (*send_mad)(void *ctx, const struct roce_cm_av *av, const uint8_t *mad);
	/**
	 * Something has happened to a connection. Any call of this file is allowed from within,
	 * roce_cm_conn_free(conn) too, but roce_cm_free().
	 */
	void (*event)(void *ctx, struct roce_cm_conn *conn, void *user,
		      const struct roce_cm_event *ev);
	/**
	 * A QPN lent by connect or accept is no longer held: no packet of its connection is
	 * under way any more (timewait is over). Once for each such call that succeeded. Not
	 * from within: calls into the engine.
	 */
	void (*qpn_free)(void *ctx, uint32_t qpn);
	/** Unpredictable bytes: communication ids, PSNs, the tables' seeds. */
	void (*random)(void *ctx, void *buf, uint32_t len);
	void *ctx;
	uint64_t ca_guid;	/* EUI-64 of the first port's MAC */
	uint8_t ack_delay;	/* code: how long the responder may take to ACK; 0: 15 */
	uint8_t max_rd_atomic;	/* cap of depth and resources; 0: ROCE_MAX_RD_ATOMIC */
	uint32_t max_conns;	/* records in all, those in timewait too; 0: 262144 */
	uint32_t max_half_open_peer; /* unanswered REQs from one address; 0: 65536 */
	uint32_t max_conns_peer;     /* records with one address; 0: max_conns */
	uint32_t max_resolved;	     /* SIDR answers remembered for repeated questions; 0: 1024 */
};

/** @return NULL without memory. */
struct roce_cm *roce_cm_create(const struct roce_cm_config *cfg, uint64_t now);
/** Frees all there is, handles too; no callback, nothing is sent. */
void roce_cm_free(struct roce_cm *cm);

/* ---- quotas: one a context or user, shared by its listeners and connections ---------- */

/** Records, timewait included, that what is opened with this may have. NULL without memory. */
struct roce_cm_quota *roce_cm_quota_create(uint32_t max);
/** It goes when the last record and listener of it have gone. */
void roce_cm_quota_free(struct roce_cm_quota *q);
uint32_t roce_cm_quota_used(const struct roce_cm_quota *q);

/* ---- listeners ---------- */

struct roce_cm_listen {
	uint64_t service_id;
	struct net_ip addr; /* all zero: any address */
	uint16_t port;	    /* or ROCE_CM_ANY_PORT */
	bool v4_only, v6_only; /* with any address */
	bool ip;		/* requests begin with RDMA-CM's header, others are refused */
	bool rc, uc, xrc, sidr; /* what is taken */
	uint32_t backlog;	/* REQ and SIDR_REQ not answered yet; 0: 128 */
	struct roce_cm_quota *quota; /* or NULL */
	void *user;
};

/** @return 0, -EADDRINUSE (same service, address, port and family), -ENOMEM, -EINVAL. */
int roce_cm_listen(struct roce_cm *cm, const struct roce_cm_listen *l,
		   struct roce_cm_listener **out);
/** No event names it any more. Connections that it has told stay with who got them. */
void roce_cm_listener_free(struct roce_cm_listener *l);

/* ---- connections ---------- */

struct roce_cm_connect {
	struct roce_cm_av av;
	uint64_t service_id;
	enum roce_cm_transport transport; /* RC, UC, EXTENDED for XRC */
	bool has_ip;			  /* begin private data with RDMA-CM's header */
	struct roce_cm_ip ip;
	uint32_t qpn;
	uint32_t psn; /* that we expect first, or ROCE_CM_PSN_RANDOM */
	uint8_t initiator_depth, responder_resources; /* cut to max_rd_atomic */
	uint8_t retry_count, rnr_retry;		      /* cut to 7 */
	bool flow_control, srq;
	uint8_t packet_life;	  /* code; 0: ROCE_CM_PACKET_LIFE */
	uint8_t response_timeout; /* code, ours and what we ask of the peer; 0: 20 */
	uint8_t max_cm_retries;	  /* 1..15; 0: 15 */
	const void *private_data;
	uint8_t private_len; /* 92 bytes at most, 56 with has_ip */
	struct roce_cm_quota *quota;
};

/**
 * Send a REQ. @return 0 and *out, -EINVAL, -EBUSY (the QPN is held by another connection),
 * -ENOBUFS (quota or the engine's limit), -ENOMEM.
 */
int roce_cm_connect(struct roce_cm *cm, const struct roce_cm_connect *c, void *user, uint64_t now,
		    struct roce_cm_conn **out);

struct roce_cm_accept {
	uint32_t qpn;
	uint32_t psn; /* that we expect first, or ROCE_CM_PSN_RANDOM */
	/* At most these; and never more than the REQ offers. UINT8_MAX: as the REQ has it. */
	uint8_t initiator_depth, responder_resources;
	uint8_t rnr_retry; /* for the peer's requester */
	bool flow_control, srq;
	const void *private_data;
	uint8_t private_len; /* 196 bytes at most */
};

/**
 * After event REQ: send a REP. The QP should be in RTR: data may come at once. To know the
 * PSN before that, use roce_cm_draw_psn().
 * @return 0, -EINVAL, -EBUSY, -ETIMEDOUT (the peer has given up, or the request has expired).
 */
int roce_cm_accept(struct roce_cm_conn *conn, const struct roce_cm_accept *a, uint64_t now);
/** A starting PSN, 24 bits. */
uint32_t roce_cm_draw_psn(struct roce_cm *cm);

/** After event REP: send the RTU; private data up to 224 bytes. 0, -EINVAL, -ENOTCONN: gone. */
int roce_cm_rtu(struct roce_cm_conn *conn, const void *data, uint8_t len, uint64_t now);

/**
 * Refuse a REQ or a REP; info up to 72 bytes, private data up to 148. After it there is no
 * connection, the handle is still to be freed.
 * @return 0, -EINVAL, -ENOTCONN: the peer has given up or the state is another (B121).
 */
int roce_cm_reject(struct roce_cm_conn *conn, uint16_t reason, const void *info,
		   uint8_t info_len, const void *data, uint8_t len, uint64_t now);

/**
 * Ask the peer for patience with a REQ or REP, up to 4.096 us * 2^timeout. Not needed for that
 * alone: repeated REQs and REPs are answered so by themselves.
 */
int roce_cm_mra(struct roce_cm_conn *conn, uint8_t timeout, const void *data, uint8_t len,
		uint64_t now);

/**
 * End it: DREQ when it is established, a REJ before that, nothing when it is over. The event
 * DISCONNECTED follows when a DREQ was sent. private data up to 220 bytes.
 * @return 0, -EINVAL, -ENOTCONN: it was over already.
 */
int roce_cm_disconnect(struct roce_cm_conn *conn, const void *data, uint8_t len, uint64_t now);
/** In the callback of DISCONNECTED by a DREQ: private data of the DREP, up to 224 bytes. */
int roce_cm_drep(struct roce_cm_conn *conn, const void *data, uint8_t len);

/**
 * The QPN's first packet has come (VERBS_EVENT_COMM_EST): counts as the RTU, which may be lost
 * or late (C-58). @return 0, -EISCONN: it is established; -ENOTCONN: no connection waits so.
 */
int roce_cm_established(struct roce_cm *cm, uint32_t qpn, uint64_t now);

/** The handle is no longer used. Ends the connection like roce_cm_disconnect(), without events. */
void roce_cm_conn_free(struct roce_cm_conn *conn, uint64_t now);

void roce_cm_conn_set_user(struct roce_cm_conn *conn, void *user);
void *roce_cm_conn_user(const struct roce_cm_conn *conn);
void roce_cm_conn_params(const struct roce_cm_conn *conn, struct roce_cm_params *p);
/** Whether a connection, or its timewait, holds the QPN. */
bool roce_cm_qpn_held(const struct roce_cm *cm, uint32_t qpn);

/* ---- service ID resolution: datagram QPs ---------- */

struct roce_cm_sidr {
	struct roce_cm_av av;
	uint64_t service_id;
	bool has_ip;
	struct roce_cm_ip ip;
	uint8_t response_timeout; /* code; 0: 20 */
	uint8_t max_cm_retries;	  /* 1..15; 0: 15 */
	const void *private_data;
	uint8_t private_len; /* 216 bytes at most, 180 with has_ip */
	struct roce_cm_quota *quota;
};

/** Ask for a QPN: SIDR_REQ. Event SIDR_REP follows. Errors as of roce_cm_connect(). */
int roce_cm_resolve(struct roce_cm *cm, const struct roce_cm_sidr *s, void *user, uint64_t now,
		    struct roce_cm_conn **out);

struct roce_cm_sidr_reply {
	uint8_t status; /* enum roce_cm_sidr_status */
	uint32_t qpn, qkey; /* sent as 0 unless status is OK */
	const void *info;
	uint8_t info_len; /* 72 bytes at most */
	const void *private_data;
	uint8_t private_len; /* 136 bytes at most */
};

/** After event SIDR_REQ. The handle is still to be freed. @return 0, -EINVAL, -ENOTCONN. */
int roce_cm_sidr_reply(struct roce_cm_conn *conn, const struct roce_cm_sidr_reply *r,
		       uint64_t now);

/* ---- driving ---------- */

/** Take a MAD of class 7 that QP1 has received. */
void roce_cm_input(struct roce_cm *cm, const void *mad, uint32_t len, const struct roce_cm_rx *rx,
		   uint64_t now);
/** Run up to `max` timers that are due. @return how many. */
unsigned int roce_cm_timers(struct roce_cm *cm, uint64_t now, unsigned int max);
/** Earliest deadline, UINT64_MAX: none. */
uint64_t roce_cm_next_deadline(const struct roce_cm *cm);

const uint64_t *roce_cm_counters(const struct roce_cm *cm);

/** States, as IBTA 12.9.5 and 12.9.7 name them. */
enum roce_cm_state {
	ROCE_CM_IDLE, /* over, or not begun */
	ROCE_CM_REQ_SENT,
	ROCE_CM_MRA_REQ_RCVD,
	ROCE_CM_REP_RCVD,
	ROCE_CM_MRA_REP_SENT,
	ROCE_CM_REQ_RCVD,
	ROCE_CM_MRA_REQ_SENT,
	ROCE_CM_REP_SENT,
	ROCE_CM_MRA_REP_RCVD,
	ROCE_CM_ESTABLISHED,
	ROCE_CM_DREQ_SENT,
	ROCE_CM_DREQ_RCVD,
	ROCE_CM_TIMEWAIT,
	ROCE_CM_SIDR_REQ_SENT,
	ROCE_CM_SIDR_REQ_RCVD,
	ROCE_CM_SIDR_RESOLVED, /* answered; kept for repeated questions */
	ROCE_CM_STATES
};
const char *roce_cm_state_name(enum roce_cm_state s);
enum roce_cm_state roce_cm_conn_state(const struct roce_cm_conn *conn);

/** What rnicctl shows of a connection. */
struct roce_cm_info {
	enum roce_cm_state state;
	bool active;
	bool owned; /* a handle of it is out */
	uint32_t local_id, remote_id;
	uint64_t service_id;
	struct roce_cm_params params;
	uint8_t retries_left;
	uint64_t deadline; /* of what it waits for, ns; UINT64_MAX: nothing */
};
void roce_cm_conn_info(const struct roce_cm_conn *conn, struct roce_cm_info *info);
/** Calls each() for all records, those in timewait too; it must not call the engine. */
void roce_cm_walk(const struct roce_cm *cm,
		  void (*each)(void *arg, const struct roce_cm_info *info), void *arg);

/** Sizes of the tables: all zero, listeners aside, when nothing is under way. */
struct roce_cm_sizes {
	uint32_t conns;	    /* records in all */
	uint32_t half_open; /* of these, REQs that are not answered yet */
	uint32_t timewait, resolved;
	uint32_t peers; /* addresses that there are records with */
	uint32_t listeners;
};
void roce_cm_sizes(const struct roce_cm *cm, struct roce_cm_sizes *sizes);

/* ---- parameters ---------- */

/**
 * The local ACK timeout's code for a path: life of a packet there and back and what the
 * responder takes, as the Linux CM rounds it.
 */
uint8_t roce_cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life);

#endif /* ROCE_CM_H */
