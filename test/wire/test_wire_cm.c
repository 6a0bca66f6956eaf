/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scripts of the connection manager: a peer made of messages by hand, virtual time. What each
 * side says; when the other falls silent: test_wire_cm_vanish.c.
 */
#include "cm_fixture.h"

#define INTERVAL_REQ (UINT64_C(4096) * ((2u << 18) + (1u << 20))) /* 2 lives, 1 response */
#define INTERVAL_REP (UINT64_C(4096) << 20)
#define TIMEWAIT_19 (UINT64_C(4096) << 19)

/* ---- both sides as the standard draws them ---------- */

START_TEST(active__connect_and_disconnect)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	struct roce_cm_params p;
	struct roce_cm_msg m = cm_msg_rep(c->local_id);
	struct cm_told *t;
	struct cm_sent *s;

	cm_in_mad(f, &m);
	t = cm_told(f, ROCE_CM_EV_REP);
	ck_assert_ptr_eq(t->conn, c);
	ck_assert_uint_eq(t->ev.private_len, ROCE_CM_REP_PRIVATE); /* B120 */
	roce_cm_conn_params(c, &p);
	ck_assert_uint_eq(p.dest_qpn, CM_PEER_QPN);
	ck_assert_uint_eq(p.rnr_retry, 4);	/* the REP's */
	ck_assert_uint_eq(p.retry_count, 7);	/* ours */
	ck_assert_uint_eq(p.timeout, 19);
	ck_assert_uint_eq(p.path_mtu, 3);
	ck_assert_uint_eq(p.initiator_depth, 2);     /* wanted 3, the peer serves 2 */
	ck_assert_uint_eq(p.responder_resources, 1); /* offered 5, the peer wants 1 */
	cm_silent(f);
	ck_assert_int_eq(roce_cm_rtu(c, "x", 1, f->now), 0);
	s = cm_sent(f, ROCE_CM_RTU);
	ck_assert_uint_eq(s->m.local_id, c->local_id);
	ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
	ck_assert_uint_eq(s->m.private_data[0], 'x');
	cm_state_is(c, ROCE_CM_ESTABLISHED);
	ck_assert_int_eq(roce_cm_disconnect(c, "bye", 3, f->now), 0);
	s = cm_sent(f, ROCE_CM_DREQ);
	ck_assert_uint_eq(s->m.dreq.qpn, CM_PEER_QPN);
	ck_assert_mem_eq(s->m.private_data, "bye", 3);
	m = cm_msg(ROCE_CM_DREP, c->local_id);
	cm_in_mad(f, &m);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_DISCONNECTED)->ev.status, 0);
	cm_state_is(c, ROCE_CM_TIMEWAIT);
	ck_assert(roce_cm_qpn_held(f->cm, CM_US_QPN));
	cm_pass(f, TIMEWAIT_19 - 10000);
	ck_assert_uint_eq(f->freed_head, 0);
	cm_pass(f, 20000);
	cm_qpn_back(f, CM_US_QPN);
	cm_state_is(c, ROCE_CM_IDLE);
	roce_cm_conn_free(c, f->now);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

START_TEST(passive__accept_and_be_disconnected)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepted(f);
	struct roce_cm_msg m = cm_msg_dreq(c->local_id);
	struct cm_sent *s;

	cm_silent(f);
	m.tid = 0x99;
	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_DREP);
	ck_assert_uint_eq(s->m.tid, 0x99); /* of the DREQ */
	ck_assert_uint_eq(s->m.local_id, c->local_id);
	ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_DISCONNECTED)->ev.status, 0);
	cm_state_is(c, ROCE_CM_TIMEWAIT);
	/* it was lost: the DREQ comes again */
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_DREP)->m.tid, 0x99);
	ck_assert_int_eq(roce_cm_disconnect(c, NULL, 0, f->now), -ENOTCONN);
	roce_cm_conn_free(c, f->now);
	cm_quiet(f);
	cm_pass(f, TIMEWAIT_19 + 10000);
	cm_qpn_back(f, CM_US_QPN);
	cm_fix_end(f);
}
END_TEST

static void
say_drep(struct cm_fix *f, struct roce_cm_conn *c, const struct roce_cm_event *ev)
{
	(void)f;
	if (ev->type == ROCE_CM_EV_DISCONNECTED)
		ck_assert_int_eq(roce_cm_drep(c, "later", 5), 0);
}

START_TEST(drep__private_data_also_when_repeated)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepted(f);
	const struct roce_cm_msg m = cm_msg_dreq(c->local_id);

	f->on_event = say_drep;
	ck_assert_int_eq(roce_cm_drep(c, "x", 1), -ENOTCONN);
	cm_in_mad(f, &m);
	ck_assert_mem_eq(cm_sent(f, ROCE_CM_DREP)->m.private_data, "later", 5);
	roce_cm_conn_free(c, f->now);
	cm_in_mad(f, &m);
	ck_assert_mem_eq(cm_sent(f, ROCE_CM_DREP)->m.private_data, "later", 5);
	cm_fix_end(f);
}
END_TEST

/* ---- the list ---------- */

/* Class 7, version 2; that QP1 and its Q_Key carry it is the packet path's. */
START_TEST(ROCE_C_52__mad_header)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c;
	const struct roce_cm_connect a = cm_connect_default(f);
	const uint8_t head[] = { 1, 7, 2, 3, 0, 0, 0, 0 };

	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	ck_assert_mem_eq(cm_sent(f, ROCE_CM_REQ)->mad, head, sizeof(head));
	roce_cm_conn_free(c, f->now);
	cm_sent(f, ROCE_CM_REJ);
	cm_fix_end(f);
}
END_TEST

START_TEST(ROCE_C_53__req_says_what_was_asked)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_conn *c;
	struct cm_sent *s;

	a.private_data = "hello";
	a.private_len = 5;
	a.srq = true;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	s = cm_sent(f, ROCE_CM_REQ);
	ck_assert_uint_eq(s->m.local_id, c->local_id);
	ck_assert_uint_eq(s->m.req.service_id, CM_SERVICE);
	ck_assert_uint_eq(s->m.req.ca_guid, CM_GUID);
	ck_assert_uint_eq(s->m.req.qpn, CM_US_QPN);
	ck_assert_uint_eq(s->m.req.psn, CM_PSN);
	ck_assert_uint_eq(s->m.req.initiator_depth, 3);
	ck_assert_uint_eq(s->m.req.responder_resources, 5);
	ck_assert_uint_eq(s->m.req.remote_response_timeout, 20);
	ck_assert_uint_eq(s->m.req.local_response_timeout, 20);
	ck_assert_uint_eq(s->m.req.max_cm_retries, 15);
	ck_assert_uint_eq(s->m.req.retry_count, 7);
	ck_assert_uint_eq(s->m.req.rnr_retry, 7);
	ck_assert_uint_eq(s->m.req.mtu, 3);
	ck_assert(s->m.req.srq);
	ck_assert_uint_eq(s->m.req.primary.ack_timeout, 19);
	ck_assert_uint_eq(s->m.req.primary.flow_label, 0x12345);
	ck_assert_uint_eq(s->m.req.primary.tclass, 8);
	ck_assert_uint_eq(s->m.req.primary.hop_limit, 64);
	ck_assert_uint_eq(s->m.req.primary.local_lid, 0); /* A17 CA17-34 */
	ck_assert_mem_eq(s->m.req.primary.local_gid, f->rx.dst.b, 16);
	ck_assert_mem_eq(s->m.req.primary.remote_gid, f->rx.src.b, 16);
	ck_assert_mem_eq(s->m.private_data, "hello", 6); /* and a zero */
	roce_cm_conn_free(c, f->now);
	cm_sent(f, ROCE_CM_REJ);
	cm_fix_end(f);
}
END_TEST

static void
header_of_family(struct cm_fix *f)
{
	struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_conn *c;
	struct roce_cm_ip ip;
	uint8_t want[ROCE_CM_IP_LEN];
	struct cm_sent *s;

	a.has_ip = true;
	a.ip.sport = 5000;
	memcpy(a.ip.src, f->rx.dst.b, 16);
	memcpy(a.ip.dst, f->rx.src.b, 16);
	a.private_data = "hello";
	a.private_len = 5;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	s = cm_sent(f, ROCE_CM_REQ);
	roce_cm_ip_emit(&a.ip, want);
	ck_assert_mem_eq(s->m.private_data, want, sizeof(want));
	ck_assert_mem_eq(s->m.private_data + sizeof(want), "hello", 5);
	ck_assert_int_eq(roce_cm_ip_parse(s->m.private_data, &ip), 0);
	ck_assert_mem_eq(&ip, &a.ip, sizeof(ip));
	roce_cm_conn_free(c, f->now);
	cm_sent(f, ROCE_CM_REJ);
	a.private_len = ROCE_CM_IP_REQ_PRIVATE + 1;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), -EINVAL);
}

START_TEST(ROCE_C_54__ip_header_of_both_families)
{
	struct cm_fix *f = cm_fix_new(NULL);

	header_of_family(f);
	cm_pass(f, 10 * CM_SEC);
	f->rx.src = (struct net_ip){ .b = { 0x20, 1, 0xd, 0xb8, [15] = 3 } };
	f->rx.dst = (struct net_ip){ .b = { 0x20, 1, 0xd, 0xb8, [15] = 2 } };
	header_of_family(f);
	cm_fix_end(f);
}
END_TEST

/* A passive side that wants the header: the event has what it says, the application the rest. */
START_TEST(ROCE_C_54__ip_header_is_checked)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_listen l = cm_listen_default();
	struct roce_cm_msg m = cm_msg_req(f);
	struct roce_cm_ip ip = { .sport = 5000 };
	uint8_t data[92] = { [36] = 'h', [91] = 'z' };
	struct cm_told *t;

	l.ip = true;
	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
	memcpy(ip.src, f->rx.src.b, 16);
	memcpy(ip.dst, f->rx.dst.b, 16);
	roce_cm_ip_emit(&ip, data);
	m.private_data = data;
	m.private_len = sizeof(data);
	data[1] = 0x50; /* neither family */
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_CONSUMER);
	data[1] = 0x40;
	data[19]++; /* not who sent it */
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_CONSUMER);
	data[19]--;
	cm_in_mad(f, &m);
	t = cm_told(f, ROCE_CM_EV_REQ);
	ck_assert(t->ev.has_ip);
	ck_assert_mem_eq(&t->ev.ip, &ip, sizeof(ip));
	ck_assert_uint_eq(t->ev.private_len, ROCE_CM_IP_REQ_PRIVATE);
	ck_assert_uint_eq(t->ev.private_data[0], 'h');
	ck_assert_uint_eq(t->ev.private_data[55], 'z');
	roce_cm_conn_free(t->conn, f->now);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_CONSUMER);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

START_TEST(ROCE_C_55__no_listener_at_the_next_port)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_msg m = cm_msg_req(f);

	cm_listen(f);
	m.req.service_id = roce_cm_service_id(ROCE_CM_PS_TCP, 18516);
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_SERVICE_ID);
	m.req.service_id = roce_cm_service_id(ROCE_CM_PS_TCP, 18515);
	cm_in_mad(f, &m);
	roce_cm_conn_free(cm_told(f, ROCE_CM_EV_REQ)->conn, f->now);
	cm_sent(f, ROCE_CM_REJ);
	cm_fix_end(f);
}
END_TEST

/* The RTU was lost: each REP that comes again gets one more. */
START_TEST(ROCE_C_56__repeated_rep_gets_a_fresh_rtu)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_replied(f);
	const struct roce_cm_msg m = cm_msg_rep(c->local_id);

	ck_assert_int_eq(roce_cm_rtu(c, "me", 2, f->now), 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct cm_sent *s = cm_sent(f, ROCE_CM_RTU);

		ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
		ck_assert_mem_eq(s->m.private_data, "me", 2);
		cm_in_mad(f, &m);
	}
	cm_sent(f, ROCE_CM_RTU);
	cm_quiet(f);
	cm_count_is(f, ROCE_CM_C_DUPLICATE, 3);
	roce_cm_conn_free(c, f->now);
	cm_sent(f, ROCE_CM_DREQ);
	cm_pass(f, 16 * INTERVAL_REQ);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

/* The RTU was lost and the REP comes again from a peer that is not the one. */
START_TEST(ROCE_C_56__only_the_peer_gets_it)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connected(f);
	struct roce_cm_msg m = cm_msg_rep(c->local_id);

	f->rx.src = cm_ip4(9);
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_COMM_ID);
	f->rx.src = cm_ip4(3);
	m.local_id++;
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_COMM_ID);
	cm_quiet(f);
	cm_state_is(c, ROCE_CM_ESTABLISHED);
	roce_cm_conn_free(c, f->now);
	cm_pass(f, 17 * INTERVAL_REQ);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

START_TEST(ROCE_C_57__repeated_req_is_one_connection)
{
	struct cm_fix *f = cm_fix_new(NULL);
	const struct roce_cm_msg req = cm_msg_req(f);
	const struct roce_cm_accept a = cm_accept_default();
	struct roce_cm_conn *c = cm_requested(f);
	struct cm_sent *s;

	/* not answered yet: patience, please, as much as Linux asks for */
	for (unsigned int i = 0; i < 2; i++) {
		cm_in_mad(f, &req);
		s = cm_sent(f, ROCE_CM_MRA);
		ck_assert_uint_eq(s->m.mra.about, ROCE_CM_ABOUT_REQ);
		ck_assert_uint_eq(s->m.mra.timeout, 24);
		cm_quiet(f);
		cm_state_is(c, ROCE_CM_MRA_REQ_SENT);
	}
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
	s = cm_sent(f, ROCE_CM_REP);
	/* the REP was lost, or crosses it */
	cm_in_mad(f, &req);
	ck_assert_mem_eq(cm_sent(f, ROCE_CM_REP)->mad, s->mad, ROCE_MAD_LEN);
	cm_quiet(f);
	ck_assert_int_eq(roce_cm_established(f->cm, CM_US_QPN, f->now), 0);
	cm_told(f, ROCE_CM_EV_ESTABLISHED);
	cm_in_mad(f, &req); /* an old one */
	cm_quiet(f);
	cm_count_is(f, ROCE_CM_C_DUPLICATE, 4);
	roce_cm_conn_free(c, f->now);
	cm_sent(f, ROCE_CM_DREQ);
	cm_in_mad(f, &req);
	cm_quiet(f);
	cm_pass(f, 15 * INTERVAL_REP + 1000000);
	f->out_tail = f->out_head;
	cm_pass(f, INTERVAL_REP); /* no DREP: timewait */
	cm_in_mad(f, &req);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_STALE);
	cm_fix_end(f);
}
END_TEST

/* The same id in another request: it is the peer's fault. */
START_TEST(ROCE_C_57__other_request_of_the_same_id)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_msg m = cm_msg_req(f);
	struct roce_cm_conn *c = cm_requested(f);

	m.tid++;
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_DUPLICATE_COMM_ID);
	cm_quiet(f);
	roce_cm_conn_free(c, f->now);
	cm_sent(f, ROCE_CM_REJ);
	cm_fix_end(f);
}
END_TEST

START_TEST(ROCE_C_58__data_before_the_rtu)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepting(f);
	struct roce_cm_msg m = cm_msg(ROCE_CM_RTU, c->local_id);

	ck_assert_int_eq(roce_cm_established(f->cm, CM_US_QPN + 1, f->now), -ENOTCONN);
	ck_assert_int_eq(roce_cm_established(f->cm, CM_US_QPN, f->now), 0);
	ck_assert_ptr_null(cm_told(f, ROCE_CM_EV_ESTABLISHED)->ev.private_data);
	cm_state_is(c, ROCE_CM_ESTABLISHED);
	ck_assert_int_eq(roce_cm_established(f->cm, CM_US_QPN, f->now), -EISCONN);
	ck_assert_uint_eq(roce_cm_next_deadline(f->cm), UINT64_MAX);
	ck_assert_ptr_null(c->mad);
	cm_pass(f, 100 * INTERVAL_REP); /* the REP is not repeated */
	cm_in_mad(f, &m);		/* late */
	cm_quiet(f);
	m = cm_msg_dreq(c->local_id);
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_DISCONNECTED);
	cm_sent(f, ROCE_CM_DREP);
	roce_cm_conn_free(c, f->now);
	cm_fix_end(f);
}
END_TEST

/* B108: to a port where nobody listens: REJ 8, at once. */
START_TEST(ROCE_C_59__no_listener_and_consumer)
{
	struct cm_fix *f = cm_fix_new(NULL);
	const struct roce_cm_msg m = cm_msg_req(f);
	struct roce_cm_conn *c;
	struct cm_sent *s;

	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_REJ);
	ck_assert_uint_eq(s->m.rej.reason, 8);
	ck_assert_uint_eq(s->m.rej.about, ROCE_CM_ABOUT_REQ);
	ck_assert_uint_eq(s->m.local_id, 0);
	ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
	ck_assert_uint_eq(s->m.tid, CM_TID);
	ck_assert_uint_eq(s->m.info_len, 0);
	c = cm_requested(f);
	ck_assert_int_eq(roce_cm_reject(c, 28, NULL, 0, "go away", 7, f->now), 0);
	s = cm_sent(f, ROCE_CM_REJ);
	ck_assert_uint_eq(s->m.rej.reason, 28);
	ck_assert_uint_eq(s->m.local_id, c->local_id);
	ck_assert_mem_eq(s->m.private_data, "go away", 7);
	ck_assert_int_eq(roce_cm_reject(c, 28, NULL, 0, NULL, 0, f->now), -ENOTCONN);
	roce_cm_conn_free(c, f->now);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

START_TEST(ROCE_C_59__we_are_refused)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	struct roce_cm_msg m = cm_msg_rej(c->local_id, 28, ROCE_CM_ABOUT_REQ);
	struct cm_told *t;

	m.local_id = 0; /* as Linux without a listener */
	m.private_data = (const uint8_t *)"sorry";
	m.private_len = 5;
	m.info = (const uint8_t *)"ari";
	m.info_len = 3;
	cm_in_mad(f, &m);
	t = cm_told(f, ROCE_CM_EV_REJECTED);
	ck_assert_uint_eq(t->ev.reason, 28);
	ck_assert_mem_eq(t->ev.private_data, "sorry", 5);
	ck_assert_mem_eq(t->ev.info, "ari", 3);
	ck_assert_uint_eq(t->ev.info_len, 3);
	cm_qpn_back(f, CM_US_QPN); /* nothing can be on its way */
	cm_in_mad(f, &m);
	cm_quiet(f);
	roce_cm_conn_free(c, f->now);
	cm_fix_end(f);
}
END_TEST

START_TEST(ROCE_C_60__dreq_for_nobody)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_msg m = cm_msg_dreq(0x777);
	struct cm_sent *s;

	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_DREP);
	ck_assert_uint_eq(s->m.local_id, 0x777);
	ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
	ck_assert_uint_eq(s->m.tid, CM_TID);
	ck_assert(net_ip_eq(&s->av.dgid, &f->rx.src));
	ck_assert(net_ip_eq(&s->av.sgid, &f->rx.dst));
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

/* One that names another QP than the connection has is nobody's business. */
START_TEST(ROCE_C_60__dreq_of_another_qp)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepted(f);
	struct roce_cm_msg m = cm_msg_dreq(c->local_id);

	m.dreq.qpn++;
	cm_in_mad(f, &m);
	cm_quiet(f);
	cm_state_is(c, ROCE_CM_ESTABLISHED);
	cm_count_is(f, ROCE_CM_C_DROP_STATE, 1);
	m.dreq.qpn--;
	cm_in_mad(f, &m);
	cm_sent(f, ROCE_CM_DREP);
	roce_cm_conn_free(c, f->now);
	cm_fix_end(f);
}
END_TEST

/* The peer has started anew and has the same QPN: REJ 10, and a DREQ for what we still have. */
START_TEST(ROCE_C_61__stale)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepted(f);
	struct roce_cm_msg m = cm_msg_req(f);
	struct cm_told *t;

	m.local_id = 0x1111;
	m.tid = 0x2222;
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, 10);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_DREQ)->m.remote_id, CM_PEER_ID);
	t = cm_told(f, ROCE_CM_EV_DISCONNECTED);
	ck_assert_ptr_eq(t->conn, c);
	ck_assert_int_eq(t->ev.status, -ECONNRESET);
	cm_count_is(f, ROCE_CM_C_STALE, 1);
	/* it does not know that one any more */
	m = cm_msg(ROCE_CM_DREP, c->local_id);
	cm_in_mad(f, &m);
	cm_quiet(f); /* told once */
	/* and its next attempt is welcome */
	m = cm_msg_req(f);
	m.local_id = 0x1112;
	m.tid = 0x2223;
	cm_in_mad(f, &m);
	t = cm_told(f, ROCE_CM_EV_REQ);
	roce_cm_conn_free(t->conn, f->now);
	cm_sent(f, ROCE_CM_REJ);
	roce_cm_conn_free(c, f->now);
	cm_fix_end(f);
}
END_TEST

/* The same QPN of another host is another QP, whatever GUID the REQ names. */
START_TEST(ROCE_C_61__not_of_another_host)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepted(f), *d;
	struct roce_cm_msg m;

	f->rx.src = cm_ip4(4);
	m = cm_msg_req(f);
	cm_in_mad(f, &m);
	d = cm_told(f, ROCE_CM_EV_REQ)->conn;
	cm_quiet(f);
	cm_state_is(c, ROCE_CM_ESTABLISHED);
	roce_cm_conn_free(d, f->now);
	f->rx.src = cm_ip4(3);
	m = cm_msg_dreq(c->local_id);
	cm_in_mad(f, &m);
	roce_cm_conn_free(c, f->now);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

/* A half-open connection of the same QP: it is given up, the new one refused for now. */
START_TEST(ROCE_C_61__stale_half_open)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_requested(f);
	struct roce_cm_msg m = cm_msg_req(f);
	struct roce_cm_accept a = cm_accept_default();

	m.local_id++;
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, 10);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_UNREACHABLE)->ev.status, -ECONNRESET);
	cm_quiet(f);
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), -ETIMEDOUT);
	roce_cm_conn_free(c, f->now);
	cm_in_mad(f, &m);
	roce_cm_conn_free(cm_told(f, ROCE_CM_EV_REQ)->conn, f->now);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

/* In our timewait the peer's QP is its own to use again: its own timewait was for that. */
START_TEST(ROCE_C_61__not_in_timewait)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_at(f, ROCE_CM_TIMEWAIT), *d;
	struct roce_cm_msg m = cm_msg_req(f);

	m.local_id++;
	cm_in_mad(f, &m);
	d = cm_told(f, ROCE_CM_EV_REQ)->conn;
	cm_quiet(f);
	roce_cm_conn_free(d, f->now);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* A REP with a QP that is connected here already. */
START_TEST(ROCE_C_61__stale_rep)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *old = cm_connected(f), *c;
	struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_msg m;
	struct cm_sent *s;

	a.qpn++;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	cm_sent(f, ROCE_CM_REQ);
	m = cm_msg_rep(c->local_id);
	m.local_id++;
	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_REJ);
	ck_assert_uint_eq(s->m.rej.reason, 10);
	ck_assert_uint_eq(s->m.rej.about, ROCE_CM_ABOUT_REP);
	cm_sent(f, ROCE_CM_DREQ);
	ck_assert_ptr_eq(cm_told(f, ROCE_CM_EV_DISCONNECTED)->conn, old);
	ck_assert_ptr_eq(cm_told(f, ROCE_CM_EV_REJECTED)->conn, c);
	cm_state_is(c, ROCE_CM_TIMEWAIT);
	roce_cm_conn_free(c, f->now);
	roce_cm_conn_free(old, f->now);
	m = cm_msg(ROCE_CM_DREP, old->local_id);
	cm_in_mad(f, &m);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

/* Each side's PSN is what it wants to see first: requests carry the other's. */
START_TEST(ROCE_C_70__starting_psns)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_replied(f);
	struct roce_cm_params p;

	roce_cm_conn_params(c, &p);
	ck_assert_uint_eq(p.sq_psn, CM_PEER_PSN);
	ck_assert_uint_eq(p.rq_psn, CM_PSN);
	roce_cm_conn_free(c, f->now);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.about, ROCE_CM_ABOUT_REP);
	cm_pass(f, 3 * CM_SEC);
	c = cm_accepting(f);
	ck_assert_uint_eq(f->out[(f->out_tail - 1) % CM_OUT].m.rep.psn, CM_PSN);
	roce_cm_conn_params(c, &p);
	ck_assert_uint_eq(p.sq_psn, CM_PEER_PSN);
	ck_assert_uint_eq(p.rq_psn, CM_PSN);
	roce_cm_conn_free(c, f->now);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

/* What the passive side's QP gets, and what its MADs look like. */
START_TEST(ROCE_C_10__passive_side_has_the_req_s_path)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_requested(f);
	struct roce_cm_params p = f->told[0].ev.params;

	ck_assert_uint_eq(p.av.flow_label, 0xafa45);
	ck_assert_uint_eq(p.av.tclass, 104);
	ck_assert(net_ip_eq(&p.av.sgid, &f->rx.dst));
	ck_assert(net_ip_eq(&p.av.dgid, &f->rx.src));
	ck_assert_uint_eq(p.path_mtu, 3);
	ck_assert_uint_eq(p.timeout, 19);
	ck_assert_uint_eq(p.retry_count, 6);
	ck_assert_uint_eq(p.rnr_retry, 5);
	ck_assert_uint_eq(p.initiator_depth, 4);     /* crossed */
	ck_assert_uint_eq(p.responder_resources, 4); /* 3, rounded up as rxe does its depth */
	ck_assert_uint_eq(p.dest_qpn, CM_PEER_QPN);
	roce_cm_reject(c, 28, NULL, 0, NULL, 0, f->now);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->av.tclass, 104);
	roce_cm_conn_free(c, f->now);
	cm_fix_end(f);
}
END_TEST

/* An XRC target is named in the place of an EE context, in the REP and in the DREQ. */
START_TEST(xrc__active_side)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_params p;
	struct roce_cm_conn *c;
	struct roce_cm_msg m;
	struct cm_sent *s;

	a.transport = ROCE_CM_EXTENDED;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	s = cm_sent(f, ROCE_CM_REQ);
	ck_assert_uint_eq(s->m.req.transport, 3);
	ck_assert_uint_eq(s->m.req.ext_transport, 1);
	m = cm_msg_rep(c->local_id);
	m.rep.qpn = 0;
	m.rep.eecn = 0x777;
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_REP);
	roce_cm_conn_params(c, &p);
	ck_assert_uint_eq(p.dest_qpn, 0x777);
	ck_assert_int_eq(roce_cm_rtu(c, NULL, 0, f->now), 0);
	cm_sent(f, ROCE_CM_RTU);
	ck_assert_int_eq(roce_cm_disconnect(c, NULL, 0, f->now), 0);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_DREQ)->m.dreq.qpn, 0x777);
	m = cm_msg(ROCE_CM_DREP, c->local_id);
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_DISCONNECTED);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

START_TEST(rep__says_the_exact_numbers)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_requested(f);
	struct roce_cm_accept a = cm_accept_default();
	struct cm_sent *s;

	a.initiator_depth = 2;
	a.responder_resources = 100;
	a.private_data = "yes";
	a.private_len = 3;
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
	s = cm_sent(f, ROCE_CM_REP);
	ck_assert_uint_eq(s->m.tid, CM_TID);
	ck_assert_uint_eq(s->m.rep.initiator_depth, 2);
	ck_assert_uint_eq(s->m.rep.responder_resources, 3); /* never more than the REQ wants */
	ck_assert_uint_eq(s->m.rep.target_ack_delay, 15);
	ck_assert_uint_eq(s->m.rep.ca_guid, CM_GUID);
	ck_assert_uint_eq(s->m.rep.qpn, CM_US_QPN);
	ck_assert_uint_eq(s->m.rep.rnr_retry, 7);
	ck_assert_uint_eq(s->m.rep.failover, 0);
	ck_assert_mem_eq(s->m.private_data, "yes", 3);
	roce_cm_conn_free(c, f->now);
	cm_sent(f, ROCE_CM_REJ);
	cm_fix_end(f);
}
END_TEST

/* ---- ends that cross ---------- */

/* Both disconnect at once. */
START_TEST(dreq__crossing)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepted(f);
	struct roce_cm_msg m = cm_msg_dreq(c->local_id);

	ck_assert_int_eq(roce_cm_disconnect(c, NULL, 0, f->now), 0);
	cm_sent(f, ROCE_CM_DREQ);
	cm_in_mad(f, &m);
	cm_sent(f, ROCE_CM_DREP);
	cm_told(f, ROCE_CM_EV_DISCONNECTED);
	m = cm_msg(ROCE_CM_DREP, c->local_id);
	cm_in_mad(f, &m); /* to ours */
	cm_quiet(f);
	roce_cm_conn_free(c, f->now);
	cm_fix_end(f);
}
END_TEST

/* The peer disconnects before its RTU has come through. */
START_TEST(dreq__instead_of_the_rtu)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepting(f);
	const struct roce_cm_msg m = cm_msg_dreq(c->local_id);

	cm_in_mad(f, &m);
	cm_sent(f, ROCE_CM_DREP);
	cm_told(f, ROCE_CM_EV_DISCONNECTED);
	roce_cm_conn_free(c, f->now);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

/* ---- what is refused ---------- */

START_TEST(lap__is_refused_by_an_apr)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepted(f);
	struct roce_cm_msg m = cm_msg(ROCE_CM_LAP, c->local_id);
	struct cm_sent *s;

	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_APR);
	ck_assert_uint_eq(s->m.apr.status, ROCE_CM_APR_UNSUPPORTED);
	ck_assert_uint_eq(s->m.local_id, c->local_id);
	ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
	m.remote_id++;
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_APR)->m.apr.status, ROCE_CM_APR_COMM_ID);
	m = cm_msg(ROCE_CM_APR, c->local_id);
	cm_in_mad(f, &m);
	cm_quiet(f);
	cm_state_is(c, ROCE_CM_ESTABLISHED);
	m = cm_msg_dreq(c->local_id);
	cm_in_mad(f, &m);
	roce_cm_conn_free(c, f->now);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

START_TEST(backlog__ends_with_clean_rejs)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_listen l = cm_listen_default();
	struct roce_cm_conn *c[4];

	l.backlog = 4;
	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
	for (unsigned int i = 0; i < 6; i++) {
		struct roce_cm_msg m = cm_msg_req(f);

		m.local_id += i;
		m.tid += i;
		m.req.qpn += i;
		cm_in_mad(f, &m);
		if (i < 4) {
			c[i] = cm_told(f, ROCE_CM_EV_REQ)->conn;
			cm_silent(f);
		} else {
			ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason,
				ROCE_CM_REJ_NO_RESOURCES);
		}
		cm_quiet(f);
	}
	cm_count_is(f, ROCE_CM_C_REJECT_BACKLOG, 2);
	for (unsigned int i = 0; i < 4; i++) {
		struct roce_cm_accept a = cm_accept_default();

		a.qpn += i;
		ck_assert_int_eq(roce_cm_accept(c[i], &a, f->now), 0); /* room again */
		cm_sent(f, ROCE_CM_REP);
	}
	ck_assert_ptr_nonnull(f->listener);
	{
		struct roce_cm_msg m = cm_msg_req(f);

		m.local_id += 9;
		m.req.qpn += 9;
		cm_in_mad(f, &m);
		roce_cm_conn_free(cm_told(f, ROCE_CM_EV_REQ)->conn, f->now);
	}
	for (unsigned int i = 0; i < 4; i++)
		roce_cm_conn_free(c[i], f->now);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

UNIT_MAIN("wire_cm",
	active__connect_and_disconnect,
	passive__accept_and_be_disconnected,
	drep__private_data_also_when_repeated,
	ROCE_C_52__mad_header,
	ROCE_C_53__req_says_what_was_asked,
	ROCE_C_54__ip_header_of_both_families,
	ROCE_C_54__ip_header_is_checked,
	ROCE_C_55__no_listener_at_the_next_port,
	ROCE_C_56__repeated_rep_gets_a_fresh_rtu,
	ROCE_C_56__only_the_peer_gets_it,
	ROCE_C_57__repeated_req_is_one_connection,
	ROCE_C_57__other_request_of_the_same_id,
	ROCE_C_58__data_before_the_rtu,
	ROCE_C_59__no_listener_and_consumer,
	ROCE_C_59__we_are_refused,
	ROCE_C_60__dreq_for_nobody,
	ROCE_C_60__dreq_of_another_qp,
	ROCE_C_61__stale,
	ROCE_C_61__not_of_another_host,
	ROCE_C_61__stale_half_open,
	ROCE_C_61__not_in_timewait,
	ROCE_C_61__stale_rep,
	ROCE_C_70__starting_psns,
	ROCE_C_10__passive_side_has_the_req_s_path,
	xrc__active_side,
	rep__says_the_exact_numbers,
	dreq__crossing,
	dreq__instead_of_the_rtu,
	lap__is_refused_by_an_apr,
	backlog__ends_with_clean_rejs)
