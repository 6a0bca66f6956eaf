/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Insides of the connection manager. A record (struct roce_cm_conn) stands for a connection or
 * a service ID resolution, either side. It lives while a handle of it is out or its state is
 * not IDLE. Functions that call back do so last: the record may be gone then.
 */
#ifndef ROCE_CM_PRIV_H
#define ROCE_CM_PRIV_H

#include <assert.h>
#include <sys/queue.h>

#include "base_wheel.h"
#include "roce_cm.h"

/* Codes that a peer names are cut to these: nobody waits for hours on a stranger's word. */
#define CM_CODE_MIN 8		/* 1.05 ms */
#define CM_RESPONSE_CODE_MAX 24 /* 69 s: its answers */
#define CM_MRA_CODE_MAX 25	/* 137 s: its patience */
#define CM_TIMEWAIT_CODE_MAX 23 /* 34 s */
#define CM_EXPIRE_MIN UINT64_C(30000000000)
#define CM_STRANGER_NS UINT64_C(120000000000) /* for one who has sent but a REQ */
#define CM_REP_CODE_MAX 20 /* 4.3 s: between our REPs or DREQs, on the passive side */
#define CM_REP_MIN_NS UINT64_C(100000000)
#define CM_RESOLVED_NS UINT64_C(10000000000) /* twice Linux's interval of SIDR_REQs */
#define CM_BUSY_NS UINT64_C(10000000)	     /* until the next attempt when sending failed */
#define CM_BUSY_MAX 200			     /* such attempts, then it counts as sent */
#define CM_HOP_LIMIT 64

#define CM_QPN_MAX 0xffffffu /* the multicast QPN: no connection's */

/* Sets of states. */
#define S(state) (1u << ROCE_CM_##state)
#define S_REQ_OUT (S(REQ_SENT) | S(MRA_REQ_RCVD))
#define S_REQ_IN (S(REQ_RCVD) | S(MRA_REQ_SENT))
#define S_REP_OUT (S(REP_SENT) | S(MRA_REP_RCVD))
#define S_REP_IN (S(REP_RCVD) | S(MRA_REP_SENT))
#define S_HALF_OPEN (S_REQ_IN | S(SIDR_REQ_RCVD))
#define S_REPEATED (S_REQ_OUT | S_REP_OUT | S(DREQ_SENT) | S(SIDR_REQ_SENT))

/** An address that there are records with. */
struct cm_peer {
	LIST_ENTRY(cm_peer) hash;
	struct net_ip addr;
	uint32_t scope; /* cm_scope() */
	uint32_t conns, half_open;
};

struct roce_cm_quota {
	uint32_t max, used; /* records */
	uint32_t listeners;
	bool owned;
};

struct roce_cm_listener {
	LIST_ENTRY(roce_cm_listener) hash;
	struct roce_cm *cm;
	struct roce_cm_listen l;
	LIST_HEAD(, roce_cm_conn) half_open;
	uint32_t pending; /* length of half_open */
};

struct roce_cm_conn {
	struct wheel_entry timer; /* first: the wheel's entry is the record */
	LIST_ENTRY(roce_cm_conn) by_local_id, by_remote_id, by_remote_qpn, by_local_qpn;
	LIST_ENTRY(roce_cm_conn) of_listener; /* while half open */
	TAILQ_ENTRY(roce_cm_conn) resolved;   /* while SIDR_RESOLVED */
	struct roce_cm *cm;
	struct cm_peer *peer;
	struct roce_cm_listener *listener; /* while half open */
	struct roce_cm_quota *quota;
	void *user;
	uint8_t *mad; /* what is, or may have to be, sent again */
	struct roce_cm_av av;
	uint64_t tid, service_id;
	uint64_t interval; /* ns between repetitions */
	uint64_t patience; /* passive: ns until an unanswered request expires */
	uint64_t stranger_until; /* passive: the end, unless more has come than the REQ */
	uint32_t local_id, remote_id; /* 0: not known */
	uint32_t local_qpn, dest_qpn; /* 0: none lent, not known */
	uint32_t rq_psn, sq_psn;
	uint8_t state;	 /* enum roce_cm_state */
	uint8_t transport;
	uint8_t max_retries, retries_left;
	uint8_t busy;	 /* attempts in a row that found no way out */
	uint8_t packet_life, timeout; /* codes; timeout: local ACK timeout */
	uint8_t path_mtu;
	uint8_t initiator_depth, responder_resources; /* as on the wire */
	uint8_t retry_count, rnr_retry;
	bool owned;	 /* a handle is out */
	bool active;
	bool sidr;
	bool mra_seen;	 /* since the last repetition */
	bool told;	 /* that it is over: DISCONNECTED is an event once */
	bool failover;	 /* the REQ named an alternate path */
	bool flow_control, peer_srq;
	bool in_local_id, in_remote_id, in_remote_qpn, in_local_qpn;
};

LIST_HEAD(cm_conn_head, roce_cm_conn);
LIST_HEAD(cm_peer_head, cm_peer);
LIST_HEAD(cm_listener_head, roce_cm_listener);
TAILQ_HEAD(cm_resolved_head, roce_cm_conn);

#define CM_LISTENER_BUCKETS 1024u

struct roce_cm {
	struct roce_cm_config cfg;
	struct wheel wheel;
	uint32_t mask; /* buckets of each table of records, and of peers */
	struct cm_conn_head *local_ids, *remote_ids, *remote_qpns, *local_qpns;
	struct cm_peer_head *peers;
	struct cm_listener_head listeners[CM_LISTENER_BUCKETS];
	struct cm_resolved_head resolved; /* oldest first */
	uint64_t seed[2];
	uint32_t tid_high;
	struct roce_cm_sizes sizes;
	uint64_t counters[ROCE_CM_C_COUNT];
};

static inline void
cm_count(struct roce_cm *cm, enum roce_cm_counter c)
{
	cm->counters[c]++;
}

static inline bool
cm_in(const struct roce_cm_conn *c, unsigned int states)
{
	return 1u << c->state & states;
}

/** Link-local addresses mean a peer only together with the link. */
static inline uint32_t
cm_scope(const struct net_ip *addr, uint16_t port, uint16_t vlan)
{
	return net_ip_is_link_local(addr) ? (uint32_t)port << 16 | vlan : 0;
}

static inline bool
cm_qpn_ok(uint32_t qpn)
{
	return qpn > 1 && qpn < CM_QPN_MAX;
}

/* ---- roce_cm_table.c: who is known by what ---------- */

int cm_tables_create(struct roce_cm *cm);
void cm_tables_free(struct roce_cm *cm);
/** Draw a communication id that is not in use and enter the record under it. */
void cm_add_local_id(struct roce_cm_conn *c);
void cm_add_remote_id(struct roce_cm_conn *c);
void cm_add_remote_qpn(struct roce_cm_conn *c);
void cm_add_local_qpn(struct roce_cm_conn *c);
void cm_del_remote_qpn(struct roce_cm_conn *c);
void cm_del_remote_id(struct roce_cm_conn *c);
void cm_del_local_qpn(struct roce_cm_conn *c);
void cm_del_local_id(struct roce_cm_conn *c);
struct roce_cm_conn *cm_find_local_id(const struct roce_cm *cm, uint32_t id);
struct roce_cm_conn *cm_find_remote_id(const struct roce_cm *cm, uint32_t id, bool sidr,
				       const struct net_ip *addr, uint32_t scope);
struct roce_cm_conn *cm_find_remote_qpn(const struct roce_cm *cm, uint32_t qpn,
					const struct net_ip *addr, uint32_t scope);
struct roce_cm_conn *cm_find_local_qpn(const struct roce_cm *cm, uint32_t qpn);
/** NULL: unknown. */
struct cm_peer *cm_peer_find(const struct roce_cm *cm, const struct net_ip *addr, uint32_t scope);
/** Known or made; counts the record. NULL without memory. */
struct cm_peer *cm_peer_get(struct roce_cm *cm, const struct net_ip *addr, uint32_t scope);
void cm_peer_put(struct roce_cm *cm, struct cm_peer *p);
/** Frees a quota that nobody has any more; NULL is fine. */
void cm_quota_reap(struct roce_cm_quota *q);
/** The most specific listener, NULL: none. */
struct roce_cm_listener *cm_listener_find(struct roce_cm *cm, uint64_t service_id,
					  const struct net_ip *dst, uint16_t port);

/* ---- roce_cm.c: records and their states ---------- */

/** A new record in IDLE, owned, with its peer, quota and local id. NULL and *err. */
struct roce_cm_conn *cm_conn_create(struct roce_cm *cm, const struct roce_cm_av *av,
				    struct roce_cm_quota *quota, bool sidr, int *err);
/** Whether a record more with the address may be. 0, or the counter of what is in the way. */
enum roce_cm_counter cm_conn_refused(struct roce_cm *cm, const struct net_ip *addr,
				     uint32_t scope, const struct roce_cm_quota *quota);
void cm_set_state(struct roce_cm_conn *c, enum roce_cm_state state);
/** Over, with nothing on its way: a lent QPN is given back. cm_tell() or cm_reap() follows. */
void cm_to_idle(struct roce_cm_conn *c);
/** Over, but packets may be on their way. */
void cm_to_timewait(struct roce_cm_conn *c, uint64_t now);
void cm_mad_drop(struct roce_cm_conn *c);
/** The record goes if it is over and nobody has a handle. */
void cm_reap(struct roce_cm_conn *c);
/** Tell the owner; without one cm_reap(). Last thing to do: the record may be gone. */
void cm_tell(struct roce_cm_conn *c, struct roce_cm_event *ev);
/** The same for a plain end. */
void cm_tell_status(struct roce_cm_conn *c, enum roce_cm_event_type type, int status);

/* ---- roce_cm_send.c: messages of a record ---------- */

/** Send once, kept or not. */
bool cm_send(struct roce_cm *cm, const struct roce_cm_av *av, const struct roce_cm_msg *msg);
bool cm_send_mad(struct roce_cm *cm, const struct roce_cm_av *av, const uint8_t *mad);
/** Emit into c->mad, to be sent again. 0, -EINVAL, -ENOMEM. */
int cm_keep(struct roce_cm_conn *c, const struct roce_cm_msg *msg);
/** The first transmission of what is kept, with all retries ahead. */
void cm_send_first(struct roce_cm_conn *c, uint64_t now);
/** And one more of it. */
void cm_send_again(struct roce_cm_conn *c, uint64_t now);
void cm_send_rej(struct roce_cm_conn *c, uint16_t reason, const void *info, uint8_t info_len,
		 const void *data, uint8_t len);
/** REJ 4 with the GUID by which Linux finds the connection. */
void cm_send_rej_timeout(struct roce_cm_conn *c);
void cm_send_mra(struct roce_cm_conn *c, uint8_t timeout, const void *data, uint8_t len);
/** The RTU or DREP: the kept one, or one without private data. */
void cm_send_rtu(struct roce_cm_conn *c);
void cm_send_drep(struct roce_cm_conn *c);
/** DREQ and DREQ_SENT; without memory timewait at once. */
void cm_send_dreq(struct roce_cm_conn *c, const void *data, uint8_t len, uint64_t now);
/** Answers to who is not known: the ids of `to` crossed. */
void cm_reply_rej(struct roce_cm *cm, const struct roce_cm_msg *to, const struct roce_cm_rx *rx,
		  uint8_t about, uint16_t reason, const void *info, uint8_t info_len);
void cm_reply_drep(struct roce_cm *cm, const struct roce_cm_msg *to, const struct roce_cm_rx *rx);
void cm_reply_apr(struct roce_cm *cm, const struct roce_cm_msg *to, const struct roce_cm_rx *rx,
		  uint8_t status);
void cm_reply_sidr(struct roce_cm *cm, const struct roce_cm_msg *to, const struct roce_cm_rx *rx,
		   uint8_t status);
/** The path back to a MAD's sender. */
struct roce_cm_av cm_av_back(const struct roce_cm_rx *rx);

/* ---- roce_cm_call.c ---------- */

/** Two addresses of a family, the peer's one that can answer. */
bool cm_av_ok(const struct roce_cm_av *av);

/* ---- roce_cm_timer.c ---------- */

void cm_arm(struct roce_cm_conn *c, uint64_t deadline);
/** Whether nothing of the peer has named our id yet: its address may be forged. */
bool cm_is_stranger(const struct roce_cm_conn *c);
void cm_disarm(struct roce_cm_conn *c);
/** ns of a code that a peer has named, cut to CM_CODE_MIN .. max. */
uint64_t cm_code_ns(unsigned int code, unsigned int max);
/** The peer's MRA: its time begins now. */
void cm_extend(struct roce_cm_conn *c, unsigned int code, uint64_t now);

/* ---- roce_cm_req.c, roce_cm_sidr.c: requests that come ---------- */

void cm_on_req(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx,
	       uint64_t now);
void cm_on_sidr_req(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx,
		    uint64_t now);
void cm_on_sidr_rep(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx);
/** The owner lets an unanswered question go. */
void cm_sidr_refuse(struct roce_cm_conn *c, uint64_t now);
/** A record for a request, half open. NULL: there is no room, counted. */
struct roce_cm_conn *cm_request_create(struct roce_cm_listener *l, const struct roce_cm_rx *rx,
				       bool sidr);
/** A lingering answer is forgotten. */
void cm_resolved_forget(struct roce_cm_conn *c);
/** The connection's peer uses its QP for something new: DREQ, or the end of a half-open one. */
void cm_stale(struct roce_cm_conn *c, uint64_t now);
/**
 * RDMA-CM's header of a request, checked against the packet: fills the event's ip, and its
 * private data is what follows. False: it is not what the listener wants.
 */
bool cm_request_header(const struct roce_cm_listener *l, const struct roce_cm_msg *m,
		       const struct roce_cm_rx *rx, struct roce_cm_event *ev);

#endif /* ROCE_CM_PRIV_H */
