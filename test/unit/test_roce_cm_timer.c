/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm_fixture.h"

START_TEST(code__is_cut)
{
	ck_assert_uint_eq(cm_code_ns(20, 24), UINT64_C(4096) << 20);
	ck_assert_uint_eq(cm_code_ns(31, 24), UINT64_C(4096) << 24);
	ck_assert_uint_eq(cm_code_ns(0, 24), UINT64_C(4096) << 8);
	ck_assert_uint_eq(cm_code_ns(9, 24), UINT64_C(4096) << 9);
}
END_TEST

/* What a peer names neither floods the network nor holds memory for hours. */
START_TEST(peer__cannot_choose_any_interval)
{
	static const uint8_t codes[][2] = { { 0, 0 }, { 12, 0 }, { 16, 16 }, { 31, 20 } };

	for (unsigned int i = 0; i < RTE_DIM(codes); i++) {
		const uint64_t interval = codes[i][1] ? UINT64_C(4096) << codes[i][1] :
							100 * CM_MS;
		struct cm_fix *f = cm_fix_new(NULL);
		struct roce_cm_msg m = cm_msg_req(f);
		const struct roce_cm_accept a = cm_accept_default();
		struct roce_cm_conn *c;

		cm_listen(f);
		m.req.local_response_timeout = codes[i][0];
		m.req.remote_response_timeout = codes[i][0];
		m.req.primary.ack_timeout = codes[i][0];
		cm_in_mad(f, &m);
		c = cm_told(f, ROCE_CM_EV_REQ)->conn;
		ck_assert_uint_ge(c->timer.deadline - f->now, CM_EXPIRE_MIN);
		ck_assert_uint_le(c->timer.deadline - f->now, 120 * CM_SEC);
		ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
		ck_assert_uint_eq(c->timer.deadline - f->now, interval);
		ck_assert_int_eq(roce_cm_established(f->cm, CM_US_QPN, f->now), 0);
		cm_told(f, ROCE_CM_EV_ESTABLISHED);
		ck_assert_int_eq(roce_cm_disconnect(c, NULL, 0, f->now), 0);
		m = cm_msg(ROCE_CM_DREP, c->local_id);
		cm_in_mad(f, &m);
		cm_told(f, ROCE_CM_EV_DISCONNECTED);
		ck_assert_uint_le(c->timer.deadline - f->now, UINT64_C(4096) << 23);
		ck_assert_uint_ge(c->timer.deadline - f->now, UINT64_C(4096) << 8);
		cm_let_go(f, c);
		cm_fix_end(f);
	}
}
END_TEST

static struct roce_cm_conn *
slow_stranger(struct cm_fix *f, struct roce_cm_msg *m)
{
	*m = cm_msg_req(f);
	cm_listen(f);
	m->req.local_response_timeout = m->req.remote_response_timeout = 31;
	m->req.primary.ack_timeout = 31;
	cm_in_mad(f, m);
	return cm_told(f, ROCE_CM_EV_REQ)->conn;
}

/* Repeated or not: a REQ that nobody answers here is held for two minutes. */
START_TEST(stranger__cannot_hold_a_request)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_msg m;
	struct roce_cm_conn *c = slow_stranger(f, &m);

	for (unsigned int i = 0; i < 11; i++) {
		cm_pass(f, 10 * CM_SEC);
		cm_in_mad(f, &m);
		cm_sent(f, ROCE_CM_MRA);
	}
	cm_pass(f, 10 * CM_SEC - 10000);
	cm_quiet(f);
	cm_pass(f, 20000);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_UNREACHABLE)->ev.status, -ECANCELED);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* Nor do accepts make it longer; a message that names our id does. */
START_TEST(stranger__until_heard_of)
{
	for (unsigned int heard = 0; heard < 2; heard++) {
		struct cm_fix *f = cm_fix_new(NULL);
		const struct roce_cm_accept a = cm_accept_default();
		struct roce_cm_msg m;
		struct roce_cm_conn *c = slow_stranger(f, &m);

		cm_pass(f, 100 * CM_SEC);
		ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
		if (heard) {
			m = cm_msg(ROCE_CM_MRA, c->local_id);
			m.mra.about = ROCE_CM_ABOUT_REP;
			m.mra.timeout = 23;
			cm_in_mad(f, &m);
			cm_told(f, ROCE_CM_EV_MRA);
		}
		cm_pass(f, 20 * CM_SEC + 20000);
		cm_state_is(c, heard ? ROCE_CM_MRA_REP_RCVD : ROCE_CM_TIMEWAIT);
		if (!heard)
			ck_assert_int_eq(cm_told(f, ROCE_CM_EV_UNREACHABLE)->ev.status,
					 -ETIMEDOUT);
		f->out_tail = f->out_head;
		cm_let_go(f, c);
		cm_fix_end(f);
	}
}
END_TEST

START_TEST(retries__as_the_peer_says)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_msg m = cm_msg_req(f);
	const struct roce_cm_accept a = cm_accept_default();
	struct roce_cm_conn *c;

	cm_listen(f);
	m.req.max_cm_retries = 2;
	cm_in_mad(f, &m);
	c = cm_told(f, ROCE_CM_EV_REQ)->conn;
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
	cm_pass(f, 30 * CM_SEC);
	for (unsigned int i = 0; i < 3; i++)
		cm_sent(f, ROCE_CM_REP);
	cm_sent(f, ROCE_CM_REJ);
	cm_told(f, ROCE_CM_EV_UNREACHABLE);
	cm_count_is(f, ROCE_CM_C_RETRY, 2);
	cm_count_is(f, ROCE_CM_C_RETRY_EXCEEDED, 1);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* No timer where only the owner or the QP can tell. */
START_TEST(idle__has_none)
{
	static const enum roce_cm_state states[] = { ROCE_CM_IDLE, ROCE_CM_REP_RCVD,
		ROCE_CM_MRA_REP_SENT, ROCE_CM_ESTABLISHED };

	for (unsigned int i = 0; i < 4; i++) {
		struct cm_fix *f = cm_fix_new(NULL);
		struct roce_cm_conn *c = cm_at(f, states[i]);

		ck_assert_uint_eq(roce_cm_next_deadline(f->cm), UINT64_MAX);
		cm_let_go(f, c);
		cm_fix_end(f);
	}
}
END_TEST

/* A turn's work is bounded; what is left is due at once. */
START_TEST(timers__in_portions)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_conn *c[100];

	for (unsigned int i = 0; i < 100; i++) {
		a.qpn = 1000 + i;
		ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c[i]), 0);
		cm_sent(f, ROCE_CM_REQ);
	}
	f->now += c[0]->interval + 10000;
	ck_assert_uint_eq(roce_cm_timers(f->cm, f->now, 30), 30);
	ck_assert_uint_le(roce_cm_next_deadline(f->cm), f->now);
	ck_assert_uint_eq(roce_cm_timers(f->cm, f->now, 1000), 70);
	ck_assert_uint_eq(roce_cm_timers(f->cm, f->now, 1000), 0);
	ck_assert_uint_gt(roce_cm_next_deadline(f->cm), f->now);
	for (unsigned int i = 0; i < 100; i++)
		cm_sent(f, ROCE_CM_REQ);
	for (unsigned int i = 0; i < 100; i++)
		roce_cm_conn_free(c[i], f->now);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

UNIT_MAIN("roce_cm_timer",
	code__is_cut,
	peer__cannot_choose_any_interval,
	stranger__cannot_hold_a_request,
	stranger__until_heard_of,
	retries__as_the_peer_says,
	idle__has_none,
	timers__in_portions)
