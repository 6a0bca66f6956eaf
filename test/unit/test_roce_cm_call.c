/* SPDX-License-Identifier: BSD-3-Clause */
/* Each call in each state: where it is not meant to be, nothing changes and nothing is sent. */
#include "cm_fixture.h"

enum call { ACCEPT, REJECT, RTU, MRA, DISCONNECT, DREP, SIDR_REPLY, CALLS };

static int
do_call(struct cm_fix *f, struct roce_cm_conn *c, enum call call)
{
	const struct roce_cm_accept a = cm_accept_default();
	const struct roce_cm_sidr_reply r = { .qpn = 5 };

	switch (call) {
	case ACCEPT: return roce_cm_accept(c, &a, f->now);
	case REJECT: return roce_cm_reject(c, 28, NULL, 0, NULL, 0, f->now);
	case RTU: return roce_cm_rtu(c, NULL, 0, f->now);
	case MRA: return roce_cm_mra(c, 20, NULL, 0, f->now);
	case DISCONNECT: return roce_cm_disconnect(c, NULL, 0, f->now);
	case DREP: return roce_cm_drep(c, NULL, 0);
	default: return roce_cm_sidr_reply(c, &r, f->now);
	}
}

/* States in which a call works, and what it sends there. */
static const struct {
	unsigned int states;
	uint16_t sends;
} meant[CALLS] = {
	[ACCEPT] = { S_REQ_IN, ROCE_CM_REP },
	[REJECT] = { S_REQ_IN | S_REP_IN, ROCE_CM_REJ },
	[RTU] = { S_REP_IN, ROCE_CM_RTU },
	[MRA] = { S_REQ_IN | S_REP_IN, ROCE_CM_MRA },
	[DISCONNECT] = { S_REQ_OUT | S_REQ_IN | S_REP_OUT | S_REP_IN | S(ESTABLISHED), 0 },
	[DREP] = { 0, 0 },
	[SIDR_REPLY] = { 0, 0 },
};

static void
try(enum roce_cm_state state, enum call call)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_at(f, state);
	const uint64_t next = roce_cm_next_deadline(f->cm);
	int rc = do_call(f, c, call);

	if (1u << state & meant[call].states) {
		ck_assert_msg(rc == 0, "call %d in %s: %d", call, roce_cm_state_name(state), rc);
		if (meant[call].sends)
			cm_sent(f, meant[call].sends);
		else if (call == DISCONNECT)
			cm_sent(f, state == ROCE_CM_ESTABLISHED ? ROCE_CM_DREQ : ROCE_CM_REJ);
	} else {
		ck_assert_msg(rc < 0, "call %d in %s", call, roce_cm_state_name(state));
		cm_state_is(c, state);
		ck_assert_uint_eq(roce_cm_next_deadline(f->cm), next);
	}
	cm_quiet(f);
	roce_cm_conn_free(c, f->now);
	cm_pass(f, 500 * CM_SEC);
	ck_assert_uint_eq(f->told_head, f->told_tail);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}

START_TEST(calls__in_all_states)
{
	for (unsigned int state = CM_FIRST_STATE; state <= CM_LAST_STATE; state++)
		for (unsigned int call = 0; state != ROCE_CM_DREQ_RCVD && call < CALLS; call++)
			try(state, call);
}
END_TEST

/* B097, B121: let go in each state; what the peer is told, and the QPN comes back once. */
static const uint16_t said[ROCE_CM_STATES] = {
	[ROCE_CM_REQ_SENT] = ROCE_CM_REJ, [ROCE_CM_MRA_REQ_RCVD] = ROCE_CM_REJ,
	[ROCE_CM_REP_RCVD] = ROCE_CM_REJ, [ROCE_CM_MRA_REP_SENT] = ROCE_CM_REJ,
	[ROCE_CM_REQ_RCVD] = ROCE_CM_REJ, [ROCE_CM_MRA_REQ_SENT] = ROCE_CM_REJ,
	[ROCE_CM_REP_SENT] = ROCE_CM_REJ, [ROCE_CM_MRA_REP_RCVD] = ROCE_CM_REJ,
	[ROCE_CM_ESTABLISHED] = ROCE_CM_DREQ,
};

START_TEST(free__in_all_states)
{
	for (unsigned int state = CM_FIRST_STATE; state <= CM_LAST_STATE; state++) {
		struct cm_fix *f = cm_fix_new(NULL);

		if (state != ROCE_CM_DREQ_RCVD) {
			const bool held = !(1u << state & (S_REQ_IN | S(IDLE)));
			struct roce_cm_conn *c = cm_at(f, state);
			struct roce_cm_msg m = cm_msg(ROCE_CM_DREP, c->local_id);

			roce_cm_conn_free(c, f->now);
			if (said[state])
				cm_sent(f, said[state]);
			cm_quiet(f);
			cm_in_mad(f, &m); /* ends a DREQ; nothing to the others */
			cm_pass(f, 10 * CM_SEC);
			cm_quiet(f);
			if (held)
				cm_qpn_back(f, CM_US_QPN);
			ck_assert_uint_eq(f->freed_head, f->freed_tail);
		}
		cm_fix_end(f);
	}
}
END_TEST

static void
free_it(struct cm_fix *f, struct roce_cm_conn *c, const struct roce_cm_event *ev)
{
	(void)ev;
	roce_cm_conn_free(c, f->now);
}

/* The same from within the callback, for each event that there is, under ASan (B113). */
START_TEST(free__from_each_event)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	struct roce_cm_msg m = cm_msg_rep(c->local_id);
	const struct roce_cm_connect a = cm_connect_default(f);

	f->on_event = free_it;
	cm_in_mad(f, &m); /* REP */
	cm_told(f, ROCE_CM_EV_REP);
	cm_sent(f, ROCE_CM_REJ);
	cm_pass(f, 10 * CM_SEC);
	cm_listen(f);
	m = cm_msg_req(f);
	cm_in_mad(f, &m); /* REQ */
	cm_told(f, ROCE_CM_EV_REQ);
	cm_sent(f, ROCE_CM_REJ);
	cm_pass(f, 10 * CM_SEC);
	f->on_event = NULL;
	c = cm_accepting(f);
	f->on_event = free_it;
	m = cm_msg(ROCE_CM_RTU, c->local_id);
	cm_in_mad(f, &m); /* ESTABLISHED */
	cm_told(f, ROCE_CM_EV_ESTABLISHED);
	cm_sent(f, ROCE_CM_DREQ);
	m = cm_msg(ROCE_CM_DREP, c->local_id);
	cm_in_mad(f, &m);
	cm_pass(f, 10 * CM_SEC);
	f->on_event = NULL;
	c = cm_accepted(f);
	f->on_event = free_it;
	m = cm_msg_dreq(c->local_id);
	cm_in_mad(f, &m); /* DISCONNECTED */
	cm_told(f, ROCE_CM_EV_DISCONNECTED);
	cm_sent(f, ROCE_CM_DREP);
	cm_pass(f, 10 * CM_SEC);
	f->on_event = NULL;
	c = cm_connecting(f);
	f->on_event = free_it;
	m = cm_msg_rej(c->local_id, 8, ROCE_CM_ABOUT_REQ);
	cm_in_mad(f, &m); /* REJECTED */
	cm_told(f, ROCE_CM_EV_REJECTED);
	f->on_event = NULL;
	c = cm_connecting(f);
	f->on_event = free_it;
	m = cm_msg(ROCE_CM_MRA, c->local_id);
	cm_in_mad(f, &m); /* MRA */
	cm_told(f, ROCE_CM_EV_MRA);
	cm_sent(f, ROCE_CM_REJ);
	cm_pass(f, 10 * CM_SEC);
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	cm_pass(f, 120 * CM_SEC); /* UNREACHABLE */
	cm_told(f, ROCE_CM_EV_UNREACHABLE);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

START_TEST(connect__values)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_connect a, good = cm_connect_default(f);
	struct roce_cm_conn *c;

#define BAD(what) do { a = good; a.what; \
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), -EINVAL); } while (0)
	BAD(qpn = 0);
	BAD(qpn = 1);
	BAD(qpn = 0xffffff);
	BAD(qpn = 0x1000000);
	BAD(psn = 0x1000000);
	BAD(transport = ROCE_CM_RD);
	BAD(av.mtu = 0);
	BAD(av.mtu = 6);
	BAD(av.sl = 8);
	BAD(av.flow_label = 0x100000);
	BAD(private_len = ROCE_CM_REQ_PRIVATE + 1);
	BAD(av.dgid.b[0] = 0x20);
	BAD(av.dgid.b[12] = 224);
#undef BAD
	cm_quiet(f);
	a = good;
	a.retry_count = a.rnr_retry = 9;
	a.initiator_depth = a.responder_resources = 255;
	a.av.hop_limit = 0;
	a.max_cm_retries = 99;
	a.response_timeout = 16;
	a.psn = ROCE_CM_PSN_RANDOM;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	{
		const struct roce_cm_req *q = &cm_sent(f, ROCE_CM_REQ)->m.req;

		ck_assert_uint_eq(q->retry_count, 7);
		ck_assert_uint_eq(q->rnr_retry, 7);
		ck_assert_uint_eq(q->initiator_depth, 128);
		ck_assert_uint_eq(q->responder_resources, 128);
		ck_assert_uint_eq(q->primary.hop_limit, 64);
		ck_assert_uint_eq(q->max_cm_retries, 15);
		ck_assert_uint_eq(q->remote_response_timeout, 16);
		ck_assert_uint_eq(q->psn, c->rq_psn);
	}
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

START_TEST(data__too_long)
{
	struct cm_fix *f = cm_fix_new(NULL);
	uint8_t big[256] = { 0 };
	struct roce_cm_conn *c = cm_requested(f);
	struct roce_cm_accept a = cm_accept_default();

	a.private_data = big;
	a.private_len = ROCE_CM_REP_PRIVATE + 1;
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), -EINVAL);
	a = cm_accept_default();
	a.qpn = 1;
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), -EINVAL);
	a.qpn = CM_US_QPN;
	a.psn = 0x1000000;
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), -EINVAL);
	ck_assert_int_eq(roce_cm_reject(c, 28, big, 73, NULL, 0, f->now), -EINVAL);
	ck_assert_int_eq(roce_cm_reject(c, 28, NULL, 0, big, 149, f->now), -EINVAL);
	ck_assert_int_eq(roce_cm_mra(c, 32, NULL, 0, f->now), -EINVAL);
	ck_assert_int_eq(roce_cm_mra(c, 3, big, 223, f->now), -EINVAL);
	cm_quiet(f);
	cm_state_is(c, ROCE_CM_REQ_RCVD);
	cm_let_go(f, c);
	c = cm_replied(f);
	ck_assert_int_eq(roce_cm_rtu(c, big, 225, f->now), -EINVAL);
	cm_state_is(c, ROCE_CM_REP_RCVD);
	ck_assert_int_eq(roce_cm_rtu(c, big, 224, f->now), 0);
	ck_assert_int_eq(roce_cm_disconnect(c, big, 221, f->now), -EINVAL);
	cm_state_is(c, ROCE_CM_ESTABLISHED);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* A QPN that another connection holds is not lent twice, and nothing of the request is lost. */
START_TEST(accept__qpn_in_use)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *other = cm_connecting(f), *c = cm_requested(f);
	struct roce_cm_accept a = cm_accept_default();

	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), -EBUSY);
	cm_state_is(c, ROCE_CM_REQ_RCVD);
	a.qpn++;
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
	cm_sent(f, ROCE_CM_REP);
	roce_cm_conn_free(other, f->now);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

UNIT_MAIN("roce_cm_call",
	calls__in_all_states,
	free__in_all_states,
	free__from_each_event,
	connect__values,
	data__too_long,
	accept__qpn_in_use)
