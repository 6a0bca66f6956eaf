/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection manager on virtual time whose peer is made of messages by hand: what it sends,
 * tells and gives back is kept in order, to be taken one by one. Nothing here decides what is
 * right, but that nothing may be left over.
 */
#ifndef CM_FIXTURE_H
#define CM_FIXTURE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base_rng.h"
#include "roce_cm.h"
#include "roce_cm_priv.h"
#include "roce_code.h"
#include "unit.h"

#define CM_OUT 512
#define CM_US_QPN 0x1234u
#define CM_PEER_QPN 0x5678u
#define CM_PEER_ID 0xcafe0001u
#define CM_PEER_GUID UINT64_C(0x505400fffe000099)
#define CM_GUID UINT64_C(0x505400fffe000002)
#define CM_PSN 0x111111u
#define CM_PEER_PSN 0x222222u
#define CM_TID UINT64_C(0x400000abc)
#define CM_MS UINT64_C(1000000)
#define CM_SEC UINT64_C(1000000000)
#define CM_SERVICE UINT64_C(0x1064853) /* TCP 18515 */

struct cm_sent {
	struct roce_cm_av av;
	struct roce_cm_msg m; /* its pointers go into mad */
	uint8_t mad[ROCE_MAD_LEN];
};

struct cm_told {
	struct roce_cm_conn *conn;
	void *user;
	struct roce_cm_event ev; /* its pointers go into data and info */
	uint8_t data[256], info[128];
};

struct cm_fix {
	struct roce_cm *cm;
	uint64_t now;
	struct rng rng;
	struct roce_cm_rx rx; /* how a message of the peer comes in */
	struct cm_sent out[CM_OUT];
	struct cm_told told[CM_OUT];
	uint32_t freed[CM_OUT];
	unsigned int out_head, out_tail, told_head, told_tail, freed_head, freed_tail;
	bool busy;	/* sending fails */
	unsigned int lost; /* that were to be sent while busy */
	void (*on_event)(struct cm_fix *f, struct roce_cm_conn *c, const struct roce_cm_event *ev);
	struct roce_cm_listener *listener;
	struct roce_cm_quota *quota;
	struct roce_cm_sizes start;
};

static inline bool
cm_fix_send(void *ctx, const struct roce_cm_av *av, const uint8_t *mad)
{
	struct cm_fix *f = ctx;
	struct cm_sent *s = &f->out[f->out_head % CM_OUT];

	if (f->busy) {
		f->lost++;
		return false;
	}
	ck_assert_uint_lt(f->out_head - f->out_tail, CM_OUT);
	f->out_head++;
	s->av = *av;
	memcpy(s->mad, mad, ROCE_MAD_LEN);
	ck_assert_int_eq(roce_cm_parse(s->mad, ROCE_MAD_LEN, &s->m), 0);
	return true;
}

static inline void
cm_fix_event(void *ctx, struct roce_cm_conn *conn, void *user, const struct roce_cm_event *ev)
{
	struct cm_fix *f = ctx;
	struct cm_told *t = &f->told[f->told_head++ % CM_OUT];

	ck_assert_uint_le(f->told_head - f->told_tail, CM_OUT);
	t->conn = conn;
	t->user = user;
	t->ev = *ev;
	if (ev->private_data)
		t->ev.private_data = memcpy(t->data, ev->private_data, ev->private_len);
	if (ev->info)
		t->ev.info = memcpy(t->info, ev->info, ev->info_len);
	if (f->on_event)
		f->on_event(f, conn, ev);
}

static inline void
cm_fix_qpn_free(void *ctx, uint32_t qpn)
{
	struct cm_fix *f = ctx;

	f->freed[f->freed_head++ % CM_OUT] = qpn;
}

static inline void
cm_fix_random(void *ctx, void *buf, uint32_t len)
{
	struct cm_fix *f = ctx;
	uint8_t *b = buf;

	while (len--)
		*b++ = (uint8_t)rng_u32(&f->rng);
}

static inline struct net_ip
cm_ip4(uint8_t last)
{
	return (struct net_ip){ .b = { [10] = 0xff, 0xff, 192, 0, 2, last } };
}

static inline struct cm_fix *
cm_fix_new(const struct roce_cm_config *more)
{
	struct cm_fix *f = calloc(1, sizeof(*f));
	struct roce_cm_config cfg = { 0 };

	ck_assert_ptr_nonnull(f);
	if (more)
		cfg = *more;
	cfg.send_mad = cm_fix_send;
	cfg.event = cm_fix_event;
	cfg.qpn_free = cm_fix_qpn_free;
	cfg.random = cm_fix_random;
	cfg.ctx = f;
	cfg.ca_guid = CM_GUID;
	f->now = CM_SEC;
	rng_seed(&f->rng, 7);
	f->rx = (struct roce_cm_rx){ .src = cm_ip4(3), .dst = cm_ip4(2), .vlan = 0xffff,
		.pkey = 0xffff, .mtu = 3 };
	f->cm = roce_cm_create(&cfg, f->now);
	ck_assert_ptr_nonnull(f->cm);
	return f;
}

/* ---- taking what has happened ---------- */

/** The oldest message that was sent and not taken yet, of this kind. */
static inline struct cm_sent *
cm_sent(struct cm_fix *f, unsigned int attr)
{
	struct cm_sent *s = &f->out[f->out_tail % CM_OUT];

	ck_assert_msg(f->out_head != f->out_tail, "%s not sent", roce_cm_attr_name(attr));
	f->out_tail++;
	ck_assert_msg(s->m.attr == attr, "%s sent, not %s", roce_cm_attr_name(s->m.attr),
		roce_cm_attr_name(attr));
	return s;
}

static inline void
cm_silent(struct cm_fix *f)
{
	ck_assert_msg(f->out_head == f->out_tail, "%s sent",
		roce_cm_attr_name(f->out[f->out_tail % CM_OUT].m.attr));
}

static inline struct cm_told *
cm_told(struct cm_fix *f, enum roce_cm_event_type type)
{
	struct cm_told *t = &f->told[f->told_tail % CM_OUT];

	ck_assert_msg(f->told_head != f->told_tail, "event %d not told", type);
	f->told_tail++;
	ck_assert_msg(t->ev.type == type, "event %d, not %d", t->ev.type, type);
	return t;
}

static inline void
cm_quiet(struct cm_fix *f)
{
	cm_silent(f);
	ck_assert_msg(f->told_head == f->told_tail, "event %d told",
		f->told[f->told_tail % CM_OUT].ev.type);
}

/** The QPN has been given back, and it alone since. */
static inline void
cm_qpn_back(struct cm_fix *f, uint32_t qpn)
{
	ck_assert_uint_eq(f->freed_head - f->freed_tail, 1);
	ck_assert_uint_eq(f->freed[f->freed_tail++ % CM_OUT], qpn);
}

static inline void
cm_count_is(struct cm_fix *f, enum roce_cm_counter c, uint64_t n)
{
	ck_assert_msg(roce_cm_counters(f->cm)[c] == n, "%s is %llu, not %llu",
		roce_cm_counter_name(c), (unsigned long long)roce_cm_counters(f->cm)[c],
		(unsigned long long)n);
}

/* ---- time ---------- */

/** Time goes to `t`; each timer at its own time. */
static inline void
cm_until(struct cm_fix *f, uint64_t t)
{
	for (;;) {
		const uint64_t next = roce_cm_next_deadline(f->cm);

		if (next > t)
			break;
		f->now = next > f->now ? next : f->now;
		roce_cm_timers(f->cm, f->now, 64);
	}
	f->now = t;
}

static inline void
cm_pass(struct cm_fix *f, uint64_t ns)
{
	cm_until(f, f->now + ns);
}

/** After this nothing may be there but listeners. */
static inline void
cm_fix_end(struct cm_fix *f)
{
	struct roce_cm_sizes s;

	cm_pass(f, 100 * CM_SEC);
	ck_assert_uint_eq(roce_cm_next_deadline(f->cm), UINT64_MAX);
	roce_cm_sizes(f->cm, &s);
	s.listeners = 0;
	ck_assert_mem_eq(&s, &f->start, sizeof(s));
	if (f->quota)
		ck_assert_uint_eq(roce_cm_quota_used(f->quota), 0);
	roce_cm_listener_free(f->listener);
	roce_cm_free(f->cm);
	roce_cm_quota_free(f->quota);
	free(f);
}

/* ---- messages of the peer ---------- */

static inline void
cm_in_mad(struct cm_fix *f, const struct roce_cm_msg *m)
{
	uint8_t mad[ROCE_MAD_LEN];

	ck_assert_int_eq(roce_cm_emit(m, mad), 0);
	roce_cm_input(f->cm, mad, sizeof(mad), &f->rx, f->now);
}

/** What Linux would ask, but for the RDMA-CM header. */
static inline struct roce_cm_msg
cm_msg_req(const struct cm_fix *f)
{
	struct roce_cm_msg m = {
		.attr = ROCE_CM_REQ,
		.tid = CM_TID,
		.local_id = CM_PEER_ID,
		.req = {
			.service_id = CM_SERVICE,
			.ca_guid = CM_PEER_GUID,
			.qpn = CM_PEER_QPN,
			.responder_resources = 4,
			.initiator_depth = 3,
			.remote_response_timeout = 20,
			.local_response_timeout = 20,
			.psn = CM_PEER_PSN,
			.retry_count = 6,
			.rnr_retry = 5,
			.pkey = 0xffff,
			.mtu = 3,
			.max_cm_retries = 15,
			.primary = { .local_lid = 0xffff, .remote_lid = 0xffff,
				.flow_label = 0xafa45, .tclass = 104, .hop_limit = 64,
				.ack_timeout = 19 },
		},
	};

	memcpy(m.req.primary.local_gid, f->rx.src.b, 16);
	memcpy(m.req.primary.remote_gid, f->rx.dst.b, 16);
	return m;
}

/** Another message of the peer, from its id to ours. */
static inline struct roce_cm_msg
cm_msg(uint16_t attr, uint32_t our_id)
{
	return (struct roce_cm_msg){ .attr = attr, .tid = CM_TID, .local_id = CM_PEER_ID,
		.remote_id = our_id };
}

static inline struct roce_cm_msg
cm_msg_rep(uint32_t our_id)
{
	struct roce_cm_msg m = cm_msg(ROCE_CM_REP, our_id);

	m.rep.qpn = CM_PEER_QPN;
	m.rep.psn = CM_PEER_PSN;
	m.rep.responder_resources = 2;
	m.rep.initiator_depth = 1;
	m.rep.target_ack_delay = 15;
	m.rep.rnr_retry = 4;
	m.rep.ca_guid = CM_PEER_GUID;
	return m;
}

static inline struct roce_cm_msg
cm_msg_dreq(uint32_t our_id)
{
	struct roce_cm_msg m = cm_msg(ROCE_CM_DREQ, our_id);

	m.dreq.qpn = CM_US_QPN;
	return m;
}

static inline struct roce_cm_msg
cm_msg_rej(uint32_t our_id, uint16_t reason, uint8_t about)
{
	struct roce_cm_msg m = cm_msg(ROCE_CM_REJ, our_id);

	m.rej.reason = reason;
	m.rej.about = about;
	return m;
}

/* ---- our side ---------- */

static inline struct roce_cm_listen
cm_listen_default(void)
{
	return (struct roce_cm_listen){ .service_id = CM_SERVICE, .port = ROCE_CM_ANY_PORT,
		.rc = true, .uc = true, .user = &cm_fix_event };
}

static inline void
cm_listen(struct cm_fix *f)
{
	const struct roce_cm_listen l = cm_listen_default();

	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
}

static inline struct roce_cm_connect
cm_connect_default(const struct cm_fix *f)
{
	return (struct roce_cm_connect){
		.av = { .sgid = f->rx.dst, .dgid = f->rx.src, .vlan = 0xffff, .pkey = 0xffff,
			.flow_label = 0x12345, .tclass = 8, .hop_limit = 64, .mtu = 3 },
		.service_id = CM_SERVICE,
		.qpn = CM_US_QPN,
		.psn = CM_PSN,
		.initiator_depth = 3,
		.responder_resources = 5,
		.retry_count = 7,
		.rnr_retry = 7,
	};
}

/** Active, REQ_SENT; the REQ is taken. */
static inline struct roce_cm_conn *
cm_connecting(struct cm_fix *f)
{
	const struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_conn *c = NULL;

	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	cm_sent(f, ROCE_CM_REQ);
	return c;
}

/** Active, REP_RCVD. */
static inline struct roce_cm_conn *
cm_replied(struct cm_fix *f)
{
	struct roce_cm_conn *c = cm_connecting(f);
	const struct roce_cm_msg m = cm_msg_rep(c->local_id);

	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_REP);
	return c;
}

/** Active, ESTABLISHED. */
static inline struct roce_cm_conn *
cm_connected(struct cm_fix *f)
{
	struct roce_cm_conn *c = cm_replied(f);

	ck_assert_int_eq(roce_cm_rtu(c, NULL, 0, f->now), 0);
	cm_sent(f, ROCE_CM_RTU);
	return c;
}

/** Passive, REQ_RCVD. */
static inline struct roce_cm_conn *
cm_requested(struct cm_fix *f)
{
	const struct roce_cm_msg m = cm_msg_req(f);

	if (f->listener == NULL)
		cm_listen(f);
	cm_in_mad(f, &m);
	return cm_told(f, ROCE_CM_EV_REQ)->conn;
}

static inline struct roce_cm_accept
cm_accept_default(void)
{
	return (struct roce_cm_accept){ .qpn = CM_US_QPN, .psn = CM_PSN,
		.initiator_depth = UINT8_MAX, .responder_resources = UINT8_MAX, .rnr_retry = 7 };
}

/** Passive, REP_SENT. */
static inline struct roce_cm_conn *
cm_accepting(struct cm_fix *f)
{
	const struct roce_cm_accept a = cm_accept_default();
	struct roce_cm_conn *c = cm_requested(f);

	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
	cm_sent(f, ROCE_CM_REP);
	return c;
}

/** Passive, ESTABLISHED. */
static inline struct roce_cm_conn *
cm_accepted(struct cm_fix *f)
{
	struct roce_cm_conn *c = cm_accepting(f);
	const struct roce_cm_msg m = cm_msg(ROCE_CM_RTU, c->local_id);

	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_ESTABLISHED);
	return c;
}

/** A connection in this state (no SIDR), all that led there taken. */
static inline struct roce_cm_conn *
cm_at(struct cm_fix *f, enum roce_cm_state state)
{
	struct roce_cm_conn *c = NULL;
	struct roce_cm_msg m;

	switch (state) {
	case ROCE_CM_REQ_SENT: return cm_connecting(f);
	case ROCE_CM_REP_RCVD: return cm_replied(f);
	case ROCE_CM_REQ_RCVD: return cm_requested(f);
	case ROCE_CM_REP_SENT: return cm_accepting(f);
	case ROCE_CM_ESTABLISHED: return cm_accepted(f);
	case ROCE_CM_MRA_REQ_RCVD:
	case ROCE_CM_MRA_REP_RCVD:
		c = state == ROCE_CM_MRA_REQ_RCVD ? cm_connecting(f) : cm_accepting(f);
		m = cm_msg(ROCE_CM_MRA, c->local_id);
		m.mra.about = state == ROCE_CM_MRA_REP_RCVD;
		m.mra.timeout = 21;
		cm_in_mad(f, &m);
		cm_told(f, ROCE_CM_EV_MRA);
		return c;
	case ROCE_CM_MRA_REP_SENT:
	case ROCE_CM_MRA_REQ_SENT:
		c = state == ROCE_CM_MRA_REP_SENT ? cm_replied(f) : cm_requested(f);
		ck_assert_int_eq(roce_cm_mra(c, 21, NULL, 0, f->now), 0);
		cm_sent(f, ROCE_CM_MRA);
		return c;
	case ROCE_CM_DREQ_SENT:
	case ROCE_CM_TIMEWAIT:
		c = cm_accepted(f);
		ck_assert_int_eq(roce_cm_disconnect(c, NULL, 0, f->now), 0);
		cm_sent(f, ROCE_CM_DREQ);
		if (state == ROCE_CM_DREQ_SENT)
			return c;
		m = cm_msg(ROCE_CM_DREP, c->local_id);
		cm_in_mad(f, &m);
		cm_told(f, ROCE_CM_EV_DISCONNECTED);
		return c;
	case ROCE_CM_IDLE:
		c = cm_requested(f);
		ck_assert_int_eq(roce_cm_reject(c, 28, NULL, 0, NULL, 0, f->now), 0);
		cm_sent(f, ROCE_CM_REJ);
		return c;
	default: ck_abort_msg("no such state");
	}
}

#define CM_FIRST_STATE ROCE_CM_IDLE
#define CM_LAST_STATE ROCE_CM_TIMEWAIT /* DREQ_RCVD is within a callback only */

/** Let go of it whatever it is, and of all that this brings. */
static inline void
cm_let_go(struct cm_fix *f, struct roce_cm_conn *c)
{
	roce_cm_conn_free(c, f->now);
	cm_pass(f, 500 * CM_SEC);
	f->out_tail = f->out_head;
	ck_assert_uint_eq(f->told_head, f->told_tail);
}

static inline void
cm_state_is(const struct roce_cm_conn *c, enum roce_cm_state s)
{
	ck_assert_str_eq(roce_cm_state_name(roce_cm_conn_state(c)), roce_cm_state_name(s));
}

#endif /* CM_FIXTURE_H */
