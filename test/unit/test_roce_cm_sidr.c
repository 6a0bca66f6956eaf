/* SPDX-License-Identifier: BSD-3-Clause */
/* What the scripts of test/wire do not reach: limits, memory of answers, strangers. */
#include "cm_fixture.h"

static struct roce_cm_msg
question(uint32_t id)
{
	return (struct roce_cm_msg){ .attr = ROCE_CM_SIDR_REQ, .tid = CM_TID + id, .local_id = id,
		.sidr_req = { .service_id = CM_SERVICE, .pkey = 0xffff } };
}

static void
answer(struct cm_fix *f, struct roce_cm_conn *c, const struct roce_cm_event *ev)
{
	const struct roce_cm_sidr_reply r = { .qpn = 9 };

	if (ev->type != ROCE_CM_EV_SIDR_REQ)
		return;
	ck_assert_int_eq(roce_cm_sidr_reply(c, &r, f->now), 0);
	roce_cm_conn_free(c, f->now);
}

static struct cm_fix *
server(uint32_t max_resolved, uint32_t max_conns, uint32_t backlog)
{
	const struct roce_cm_config cfg = { .max_resolved = max_resolved, .max_conns = max_conns };
	struct cm_fix *f = cm_fix_new(&cfg);
	struct roce_cm_listen l = cm_listen_default();

	l.sidr = true;
	l.backlog = backlog;
	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
	return f;
}

START_TEST(resolved__is_bounded)
{
	struct cm_fix *f = server(2, 0, 0);
	struct roce_cm_msg m;

	f->on_event = answer;
	for (uint32_t id = 1; id <= 3; id++) {
		m = question(id);
		cm_in_mad(f, &m);
		cm_told(f, ROCE_CM_EV_SIDR_REQ);
		cm_sent(f, ROCE_CM_SIDR_REP);
	}
	ck_assert_uint_eq(f->cm->sizes.resolved, 2);
	m = question(3);
	cm_in_mad(f, &m);
	cm_sent(f, ROCE_CM_SIDR_REP);
	cm_quiet(f); /* remembered */
	m = question(1);
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_SIDR_REQ); /* the oldest is not */
	cm_sent(f, ROCE_CM_SIDR_REP);
	cm_pass(f, CM_RESOLVED_NS + 10000);
	ck_assert_uint_eq(f->cm->sizes.conns, 0);
	cm_fix_end(f);
}
END_TEST

/* The record that gives way is the last of the very peer that asks again. */
START_TEST(resolved__of_the_same_peer_gives_way)
{
	struct cm_fix *f = server(0, 1, 0);

	f->on_event = answer;
	for (uint32_t id = 1; id <= 3; id++) {
		struct roce_cm_msg m = question(id);

		cm_in_mad(f, &m);
		cm_told(f, ROCE_CM_EV_SIDR_REQ);
		cm_sent(f, ROCE_CM_SIDR_REP);
		ck_assert_uint_eq(f->cm->sizes.conns, 1);
	}
	cm_pass(f, CM_RESOLVED_NS + 10000);
	ck_assert_uint_eq(f->cm->sizes.conns, 0);
	cm_fix_end(f);
}
END_TEST

START_TEST(resolved__gives_way_to_connections)
{
	struct cm_fix *f = server(0, 2, 0);
	struct roce_cm_msg m = question(1);
	struct roce_cm_conn *c, *d;

	f->on_event = answer;
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_SIDR_REQ);
	cm_sent(f, ROCE_CM_SIDR_REP);
	c = cm_connecting(f);
	ck_assert_uint_eq(f->cm->sizes.conns, 2);
	d = cm_requested(f);
	ck_assert_uint_eq(f->cm->sizes.resolved, 0);
	roce_cm_conn_free(d, f->now);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* An answer of the same id but of another question is a new question. */
START_TEST(again__only_the_same_question)
{
	struct cm_fix *f = server(0, 0, 0);
	struct roce_cm_msg m = question(1);

	f->on_event = answer;
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_SIDR_REQ);
	m.tid++;
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_SIDR_REQ);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

START_TEST(backlog__no_qp)
{
	struct cm_fix *f = server(0, 0, 1);
	struct roce_cm_msg m = question(1);
	struct roce_cm_conn *c;

	cm_in_mad(f, &m);
	c = cm_told(f, ROCE_CM_EV_SIDR_REQ)->conn;
	m = question(2);
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_SIDR_REP)->m.sidr_rep.status, ROCE_CM_SIDR_NO_QP);
	cm_count_is(f, ROCE_CM_C_REJECT_BACKLOG, 1);
	cm_pass(f, CM_EXPIRE_MIN + 10000); /* nobody answers */
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_UNREACHABLE)->ev.status, -ECANCELED);
	roce_cm_conn_free(c, f->now);
	cm_fix_end(f);
}
END_TEST

/* Ids of questions and of connections are different numbers. */
START_TEST(ids__are_their_own)
{
	struct cm_fix *f = server(0, 0, 0);
	struct roce_cm_msg m = question(CM_PEER_ID);
	struct roce_cm_conn *c = cm_requested(f), *d;

	cm_in_mad(f, &m);
	d = cm_told(f, ROCE_CM_EV_SIDR_REQ)->conn;
	/* and no message of a connection is for a question */
	m = cm_msg_dreq(d->local_id);
	cm_in_mad(f, &m);
	cm_sent(f, ROCE_CM_DREP);
	cm_state_is(d, ROCE_CM_SIDR_REQ_RCVD);
	roce_cm_conn_free(d, f->now);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

START_TEST(reply__only_from_who_was_asked)
{
	struct cm_fix *f = cm_fix_new(NULL);
	const struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_sidr q = { .av = a.av, .service_id = CM_SERVICE };
	struct roce_cm_conn *c, *d;
	struct roce_cm_msg m = { .attr = ROCE_CM_SIDR_REP,
		.sidr_rep = { .service_id = CM_SERVICE, .qpn = 9 } };

	q.private_len = ROCE_CM_SIDR_REQ_PRIVATE + 1;
	ck_assert_int_eq(roce_cm_resolve(f->cm, &q, NULL, f->now, &c), -EINVAL);
	q.has_ip = true;
	q.private_len = ROCE_CM_IP_SIDR_PRIVATE + 1;
	ck_assert_int_eq(roce_cm_resolve(f->cm, &q, NULL, f->now, &c), -EINVAL);
	q.has_ip = false;
	q.private_len = 0;
	ck_assert_int_eq(roce_cm_resolve(f->cm, &q, NULL, f->now, &c), 0);
	cm_sent(f, ROCE_CM_SIDR_REQ);
	m.local_id = c->local_id;
	f->rx.src = cm_ip4(9);
	cm_in_mad(f, &m);
	f->rx.src = cm_ip4(3);
	d = cm_connecting(f);
	m.local_id = d->local_id; /* a connection's id */
	cm_in_mad(f, &m);
	cm_quiet(f);
	cm_count_is(f, ROCE_CM_C_DROP_UNKNOWN, 2);
	cm_state_is(c, ROCE_CM_SIDR_REQ_SENT);
	roce_cm_conn_free(d, f->now);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

UNIT_MAIN("roce_cm_sidr",
	resolved__is_bounded,
	resolved__gives_way_to_connections,
	resolved__of_the_same_peer_gives_way,
	again__only_the_same_question,
	backlog__no_qp,
	ids__are_their_own,
	reply__only_from_who_was_asked)
