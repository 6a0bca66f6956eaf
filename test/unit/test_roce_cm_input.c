/* SPDX-License-Identifier: BSD-3-Clause */
/* Each message in each state: the pairs that mean something are listed, all others do nothing. */
#include "cm_fixture.h"

/* What leaves at once when the message comes in the state; 0: nothing. */
#define NOTHING 0u
#define ANY (~0u)

struct want {
	uint16_t attr;
	unsigned int states; /* that take it */
	uint16_t sends;	     /* there */
	uint16_t else_sends; /* in other states that know the peer's id */
};

static const struct want wants[] = {
	{ ROCE_CM_MRA, S_REP_OUT, 0, 0 }, /* about a REP */
	{ ROCE_CM_REJ, S_REQ_IN | S_REP_OUT | S_REP_IN | S(ESTABLISHED) | S(DREQ_SENT), 0, 0 },
	{ ROCE_CM_RTU, S_REP_OUT, 0, 0 },
	{ ROCE_CM_DREQ, S_REP_OUT | S_REP_IN | S(ESTABLISHED) | S(DREQ_SENT) | S(TIMEWAIT),
	  ROCE_CM_DREP, 0 },
	{ ROCE_CM_DREP, S(DREQ_SENT), 0, 0 },
	{ ROCE_CM_LAP, S(ESTABLISHED), ROCE_CM_APR, 0 },
	{ ROCE_CM_APR, 0, 0, 0 },
};

static void
try(enum roce_cm_state state, const struct want *w)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_at(f, state);
	struct roce_cm_msg m = cm_msg(w->attr, c->local_id);
	const bool takes = 1u << state & w->states;
	/* before its REP the peer has no id here, and messages that have one are nobody's */
	const bool known = c->remote_id != 0;
	uint64_t before[ROCE_CM_C_COUNT];

	if (w->attr == ROCE_CM_MRA)
		m.mra.about = ROCE_CM_ABOUT_REP;
	if (w->attr == ROCE_CM_REJ) {
		m.rej.about = ROCE_CM_ABOUT_OTHER;
		m.rej.reason = ROCE_CM_REJ_CONSUMER;
	}
	if (w->attr == ROCE_CM_DREQ)
		m.dreq.qpn = c->local_qpn;
	memcpy(before, roce_cm_counters(f->cm), sizeof(before));
	cm_in_mad(f, &m);
	if (takes && w->sends) {
		cm_sent(f, w->sends);
	} else if (!takes && !known && w->attr == ROCE_CM_DREQ) {
		cm_sent(f, ROCE_CM_DREP);
	} else if (!takes && !known && w->attr == ROCE_CM_LAP) {
		cm_sent(f, ROCE_CM_APR);
	}
	cm_silent(f);
	if (!takes) {
		const uint64_t *after = roce_cm_counters(f->cm);

		ck_assert_ptr_eq(cm_find_local_id(f->cm, c->local_id), c);
		cm_state_is(c, state);
		ck_assert_uint_eq(f->told_head, f->told_tail);
		ck_assert_msg(after[ROCE_CM_C_DROP_STATE] + after[ROCE_CM_C_DROP_UNKNOWN] +
			after[ROCE_CM_C_DUPLICATE] == before[ROCE_CM_C_DROP_STATE] +
			before[ROCE_CM_C_DROP_UNKNOWN] + before[ROCE_CM_C_DUPLICATE] + 1,
			"%s in %s not counted", roce_cm_attr_name(w->attr),
			roce_cm_state_name(state));
	}
	f->told_tail = f->told_head;
	cm_let_go(f, c);
	cm_fix_end(f);
}

START_TEST(messages__in_all_states)
{
	for (unsigned int i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		for (unsigned int state = CM_FIRST_STATE; state <= CM_LAST_STATE; state++)
			if (state != ROCE_CM_DREQ_RCVD)
				try(state, &wants[i]);
}
END_TEST

/* From another address, to another address of ours, or with another id of the peer: nobody's. */
START_TEST(stranger__has_no_say)
{
	static const enum roce_cm_state states[] = { ROCE_CM_REQ_SENT, ROCE_CM_REP_SENT,
		ROCE_CM_ESTABLISHED, ROCE_CM_DREQ_SENT };

	for (unsigned int i = 0; i < 4 * 3 * 6; i++) {
		const enum roce_cm_state state = states[i % 4];
		const uint16_t attr = (uint16_t)(ROCE_CM_MRA + i / 12);
		struct cm_fix *f = cm_fix_new(NULL);
		struct roce_cm_conn *c = cm_at(f, state);
		struct roce_cm_msg m = cm_msg(attr, c->local_id);

		if (attr == ROCE_CM_REP)
			m = cm_msg_rep(c->local_id);
		if (attr == ROCE_CM_MRA)
			m.mra.about = state != ROCE_CM_REQ_SENT;
		if (attr == ROCE_CM_REJ)
			m.rej.about = state == ROCE_CM_REQ_SENT ? ROCE_CM_ABOUT_REQ :
								  ROCE_CM_ABOUT_OTHER;
		if (attr == ROCE_CM_DREQ)
			m.dreq.qpn = c->local_qpn;
		switch (i / 4 % 3) {
		case 0: f->rx.src = cm_ip4(77); break;
		case 1: f->rx.dst = cm_ip4(78); break;
		default: m.local_id++; break;
		}
		if (state == ROCE_CM_REQ_SENT && i / 4 % 3 == 2) {
			cm_let_go(f, c); /* any id is the peer's first */
			cm_fix_end(f);
			continue;
		}
		cm_in_mad(f, &m);
		cm_state_is(c, state);
		ck_assert_uint_eq(f->told_head, f->told_tail);
		f->out_tail = f->out_head; /* DREP, or REJ 6 */
		cm_let_go(f, c);
		cm_fix_end(f);
	}
}
END_TEST

START_TEST(rep__of_what_is_no_qp)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	struct roce_cm_msg m = cm_msg_rep(c->local_id);
	struct cm_sent *s;

	m.rep.qpn = 1;
	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_REJ);
	ck_assert_uint_eq(s->m.rej.reason, ROCE_CM_REJ_UNSUPPORTED);
	ck_assert_uint_eq(s->m.rej.about, ROCE_CM_ABOUT_REP);
	m = cm_msg_rep(c->local_id);
	m.local_id = 0;
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_COMM_ID);
	cm_quiet(f);
	cm_state_is(c, ROCE_CM_REQ_SENT);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* A REJ to who is disconnecting ends it like a DREP. */
START_TEST(rej__while_disconnecting)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_at(f, ROCE_CM_DREQ_SENT);
	const struct roce_cm_msg m = cm_msg_rej(c->local_id, 28, ROCE_CM_ABOUT_OTHER);

	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_DISCONNECTED);
	cm_state_is(c, ROCE_CM_TIMEWAIT);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* REJ 10 to our REQ: the peer holds the QP for an old connection; packets may come. */
START_TEST(rej__stale_means_timewait)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	const struct roce_cm_msg m = cm_msg_rej(c->local_id, 10, ROCE_CM_ABOUT_REQ);

	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_told(f, ROCE_CM_EV_REJECTED)->ev.reason, 10);
	cm_state_is(c, ROCE_CM_TIMEWAIT);
	ck_assert_uint_eq(f->freed_head, 0);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

START_TEST(malformed__counted)
{
	struct cm_fix *f = cm_fix_new(NULL);
	uint8_t mad[ROCE_MAD_LEN] = { 0 };

	roce_cm_input(f->cm, mad, 0, &f->rx, f->now);
	roce_cm_input(f->cm, mad, sizeof(mad), &f->rx, f->now);
	cm_count_is(f, ROCE_CM_C_DROP_MALFORMED, 2);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

/*
 * A peer that sends anything at any time: mutated messages of all kinds with right ids, an
 * owner that answers at random. The tables are empty in the end (under ASan: no fault).
 */
static void
erratic(struct cm_fix *f, struct roce_cm_conn *c, const struct roce_cm_event *ev)
{
	const struct roce_cm_accept a = { .qpn = 2 + rng_below(&f->rng, 50),
		.psn = ROCE_CM_PSN_RANDOM, .initiator_depth = UINT8_MAX };

	f->told_tail = f->told_head;
	f->out_tail = f->out_head;
	switch (rng_below(&f->rng, 6)) {
	case 0: roce_cm_accept(c, &a, f->now); break;
	case 1: roce_cm_reject(c, 28, "x", 1, "y", 1, f->now); break;
	case 2: roce_cm_rtu(c, "z", rng_below(&f->rng, 2), f->now); break;
	case 3: roce_cm_disconnect(c, NULL, 0, f->now); break;
	case 4: roce_cm_mra(c, 19, NULL, 0, f->now); break;
	default:
		if (ev->type == ROCE_CM_EV_DISCONNECTED)
			roce_cm_drep(c, "w", 1);
		break;
	}
}

#define FUZZ_CONNS 24

static void
fuzz_message(struct cm_fix *f, struct roce_cm_conn *const *c)
{
	struct roce_cm_msg m = cm_msg_req(f);
	const struct roce_cm_conn *one = c[rng_below(&f->rng, FUZZ_CONNS)];
	uint8_t mad[ROCE_MAD_LEN];

	m.attr = (uint16_t)(ROCE_CM_REQ + rng_below(&f->rng, ROCE_CM_ATTRS));
	if (m.attr != ROCE_CM_REQ)
		m = cm_msg(m.attr, one ? one->local_id : 0);
	if (m.attr == ROCE_CM_REP)
		m = cm_msg_rep(m.remote_id);
	if (m.attr == ROCE_CM_DREQ)
		m.dreq.qpn = one ? one->local_qpn : 0;
	m.local_id += rng_below(&f->rng, 4);
	if (m.attr == ROCE_CM_REQ)
		m.req.qpn += rng_below(&f->rng, 4);
	ck_assert_int_eq(roce_cm_emit(&m, mad), 0);
	for (unsigned int n = rng_below(&f->rng, 4); n-- > 0; )
		mad[rng_below(&f->rng, 256)] ^= (uint8_t)(1 << rng_below(&f->rng, 8));
	f->busy = rng_below(&f->rng, 16) == 0;
	roce_cm_input(f->cm, mad, sizeof(mad), &f->rx, f->now);
}

static void
collect(struct cm_fix *f, struct roce_cm_conn **c)
{
	/* handles that the engine has told of; one taken twice would be freed twice */
	for (; f->told_tail != f->told_head; f->told_tail++) {
		struct cm_told *t = &f->told[f->told_tail % CM_OUT];
		unsigned int i = rng_below(&f->rng, FUZZ_CONNS);

		if (t->ev.type != ROCE_CM_EV_REQ && t->ev.type != ROCE_CM_EV_SIDR_REQ)
			continue;
		if (c[i])
			roce_cm_conn_free(c[i], f->now);
		c[i] = t->conn;
	}
}

START_TEST(fuzz__anything_at_any_time)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c[FUZZ_CONNS] = { 0 };
	struct roce_cm_listen l = cm_listen_default();

	rng_seed(&f->rng, 11);
	l.sidr = true;
	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
	for (unsigned int n = 0; n < 60000; n++) {
		struct roce_cm_connect a = cm_connect_default(f);
		const unsigned int i = rng_below(&f->rng, FUZZ_CONNS);
		struct roce_cm_event none = { 0 };

		a.qpn = 2 + rng_below(&f->rng, 50);
		fuzz_message(f, c);
		collect(f, c);
		if (c[i] == NULL && rng_below(&f->rng, 4) == 0) {
			if (roce_cm_connect(f->cm, &a, NULL, f->now, &c[i]) != 0)
				c[i] = NULL;
		} else if (c[i] && rng_below(&f->rng, 3) == 0) {
			erratic(f, c[i], &none);
		} else if (c[i] && rng_below(&f->rng, 8) == 0) {
			roce_cm_conn_free(c[i], f->now);
			c[i] = NULL;
		}
		f->out_tail = f->out_head;
		cm_pass(f, rng_below(&f->rng, 1u << rng_below(&f->rng, 31)));
		collect(f, c);
		f->out_tail = f->out_head;
	}
	f->busy = false;
	for (unsigned int i = 0; i < FUZZ_CONNS; i++)
		roce_cm_conn_free(c[i], f->now);
	for (unsigned int i = 0; i < 100; i++) {
		cm_pass(f, 20 * CM_SEC);
		f->out_tail = f->out_head;
	}
	cm_fix_end(f);
}
END_TEST

UNIT_MAIN("roce_cm_input",
	messages__in_all_states,
	stranger__has_no_say,
	rep__of_what_is_no_qp,
	rej__while_disconnecting,
	rej__stale_means_timewait,
	malformed__counted,
	fuzz__anything_at_any_time)
