/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm_fixture.h"

START_TEST(names__all_there)
{
	for (unsigned int i = 0; i < ROCE_CM_C_COUNT; i++) {
		ck_assert_ptr_nonnull(roce_cm_counter_name(i));
		ck_assert_uint_gt(strlen(roce_cm_counter_help(i)), 3);
	}
	for (unsigned int i = 0; i < ROCE_CM_STATES; i++)
		ck_assert_ptr_nonnull(roce_cm_state_name(i));
	ck_assert_str_eq(roce_cm_state_name(ROCE_CM_TIMEWAIT), "TIMEWAIT");
	ck_assert_str_eq(roce_cm_state_name(ROCE_CM_STATES), "?");
}
END_TEST

/* The table that the Linux CM's rule makes, and rxe's row: delay 15, life 18. */
START_TEST(ack_timeout__rounds_as_linux)
{
	ck_assert_uint_eq(roce_cm_ack_timeout(15, 18), 19);
	ck_assert_uint_eq(roce_cm_ack_timeout(18, 18), 20); /* as large as one way: double */
	ck_assert_uint_eq(roce_cm_ack_timeout(17, 18), 19);
	ck_assert_uint_eq(roce_cm_ack_timeout(19, 18), 20);
	ck_assert_uint_eq(roce_cm_ack_timeout(20, 18), 21);
	ck_assert_uint_eq(roce_cm_ack_timeout(21, 18), 21);
	ck_assert_uint_eq(roce_cm_ack_timeout(0, 0), 2);
	ck_assert_uint_eq(roce_cm_ack_timeout(31, 30), 31);
	ck_assert_uint_eq(roce_cm_ack_timeout(31, 0), 31);
}
END_TEST

/* rxe rounds its depth up to a power of two: so are the resources that it may need. */
START_TEST(params__resources_rounded_up)
{
	struct cm_fix *f = cm_fix_new(NULL);
	static const uint8_t want[][2] = { { 0, 0 }, { 1, 1 }, { 3, 4 }, { 16, 16 }, { 17, 32 },
		{ 128, 128 }, { 200, 128 } };

	cm_listen(f);
	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct roce_cm_msg m = cm_msg_req(f);
		struct roce_cm_conn *c;
		struct roce_cm_params p;

		m.req.initiator_depth = want[i][0];
		m.req.responder_resources = want[i][0];
		cm_in_mad(f, &m);
		c = cm_told(f, ROCE_CM_EV_REQ)->conn;
		roce_cm_conn_params(c, &p);
		ck_assert_uint_eq(p.responder_resources, want[i][1]);
		ck_assert_uint_eq(p.initiator_depth, want[i][0] > 128 ? 128 : want[i][0]);
		cm_let_go(f, c);
	}
	cm_fix_end(f);
}
END_TEST

struct seen {
	unsigned int n;
	struct roce_cm_info info;
};

static void
see(void *arg, const struct roce_cm_info *info)
{
	struct seen *s = arg;

	s->n++;
	s->info = *info;
}

START_TEST(info__and_walk)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepting(f);
	struct seen s = { 0 };

	roce_cm_walk(f->cm, see, &s);
	ck_assert_uint_eq(s.n, 1);
	ck_assert_uint_eq(s.info.state, ROCE_CM_REP_SENT);
	ck_assert(!s.info.active && s.info.owned);
	ck_assert_uint_eq(s.info.local_id, c->local_id);
	ck_assert_uint_eq(s.info.remote_id, CM_PEER_ID);
	ck_assert_uint_eq(s.info.service_id, CM_SERVICE);
	ck_assert_uint_eq(s.info.params.local_qpn, CM_US_QPN);
	ck_assert_uint_eq(s.info.retries_left, 15);
	ck_assert_uint_eq(s.info.deadline, f->now + roce_timeout_ns(20));
	roce_cm_conn_set_user(c, &s);
	ck_assert_ptr_eq(roce_cm_conn_user(c), &s);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

START_TEST(sizes__follow_the_states)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_sizes s;
	struct roce_cm_conn *c = cm_requested(f);
	struct roce_cm_accept a = cm_accept_default();

	roce_cm_sizes(f->cm, &s);
	ck_assert_uint_eq(s.conns, 1);
	ck_assert_uint_eq(s.half_open, 1);
	ck_assert_uint_eq(s.peers, 1);
	ck_assert_uint_eq(s.listeners, 1);
	ck_assert_uint_eq(f->listener->pending, 1);
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
	roce_cm_sizes(f->cm, &s);
	ck_assert_uint_eq(s.half_open, 0);
	ck_assert_uint_eq(f->listener->pending, 0);
	roce_cm_conn_free(c, f->now);
	roce_cm_sizes(f->cm, &s);
	ck_assert_uint_eq(s.timewait, 1);
	ck_assert_uint_eq(s.conns, 1);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

/* All at once, whatever the states: nothing left, nothing said (under ASan). */
START_TEST(free__with_everything_under_way)
{
	for (unsigned int state = CM_FIRST_STATE; state <= CM_LAST_STATE; state++) {
		struct cm_fix *f = cm_fix_new(NULL);

		if (state == ROCE_CM_DREQ_RCVD) {
			cm_fix_end(f);
			continue;
		}
		cm_at(f, state);
		roce_cm_free(f->cm);
		cm_silent(f);
		free(f);
	}
	roce_cm_free(NULL);
}
END_TEST

/* The limits, one by one. */
START_TEST(limits__quota_engine_and_peer)
{
	const struct roce_cm_config cfg = { .max_conns = 4, .max_conns_peer = 3,
		.max_half_open_peer = 1 };
	struct cm_fix *f = cm_fix_new(&cfg);
	struct roce_cm_listen l = cm_listen_default();
	struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_conn *c[8];
	struct roce_cm_msg m;

	f->quota = roce_cm_quota_create(1);
	l.quota = f->quota;
	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
	c[0] = cm_requested(f);
	m = cm_msg_req(f);
	m.local_id++, m.req.qpn++;
	cm_in_mad(f, &m); /* one half open a peer */
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_NO_RESOURCES);
	cm_count_is(f, ROCE_CM_C_REJECT_PEER, 1);
	f->rx.src = cm_ip4(4);
	m = cm_msg_req(f);
	cm_in_mad(f, &m); /* one with this quota */
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_NO_RESOURCES);
	cm_count_is(f, ROCE_CM_C_REJECT_LIMIT, 1);
	a.quota = f->quota;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c[1]), -ENOBUFS);
	a.quota = NULL;
	for (unsigned int i = 1; i < 3; i++) {
		a.qpn = 100 + i;
		ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c[i]), 0);
	}
	a.qpn = 200;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c[3]), -ENOBUFS); /* a peer */
	a.av.dgid = cm_ip4(5);
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c[3]), 0);
	a.qpn = 201;
	a.av.dgid = cm_ip4(6);
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c[4]), -ENOBUFS); /* in all */
	for (unsigned int i = 0; i < 4; i++)
		roce_cm_conn_free(c[i], f->now);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

/* A quota is given up while records count to it: it goes with the last one (under ASan). */
START_TEST(quota__outlives_its_owner)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_listen l = cm_listen_default();
	struct roce_cm_quota *q = roce_cm_quota_create(2);
	struct roce_cm_conn *c;

	a.quota = q;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	ck_assert_uint_eq(roce_cm_quota_used(q), 1);
	roce_cm_quota_free(q);
	cm_sent(f, ROCE_CM_REQ);
	cm_let_go(f, c);
	roce_cm_quota_free(NULL);
	q = roce_cm_quota_create(1);
	l.quota = q;
	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
	roce_cm_quota_free(q);
	c = cm_requested(f);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

START_TEST(draw_psn__is_24_bits)
{
	struct cm_fix *f = cm_fix_new(NULL);
	uint32_t or = 0;

	for (unsigned int i = 0; i < 100; i++)
		or |= roce_cm_draw_psn(f->cm);
	ck_assert_uint_eq(or, 0xffffff);
	cm_fix_end(f);
}
END_TEST

UNIT_MAIN("roce_cm",
	names__all_there,
	ack_timeout__rounds_as_linux,
	params__resources_rounded_up,
	info__and_walk,
	sizes__follow_the_states,
	free__with_everything_under_way,
	limits__quota_engine_and_peer,
	quota__outlives_its_owner,
	draw_psn__is_24_bits)
