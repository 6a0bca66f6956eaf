/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scripts of the connection manager whose peer falls silent, at each step; and of service ID
 * resolution. Virtual time: what is repeated, when, and how it ends.
 */
#include "cm_fixture.h"

#define INTERVAL_REQ (UINT64_C(4096) * ((2u << 18) + (1u << 20))) /* 2 lives, 1 response */
#define INTERVAL_REP (UINT64_C(4096) << 20)
#define MRA_24 ((UINT64_C(4096) << 24) + (UINT64_C(8192) << 18))
#define TIMEWAIT_19 (UINT64_C(4096) << 19)

/* ---- the peer vanishes at each step ---------- */

static void
repeated(struct cm_fix *f, unsigned int attr, uint64_t interval, unsigned int retries)
{
	for (unsigned int i = 0; i < retries; i++) {
		cm_pass(f, interval - 10000);
		cm_quiet(f);
		cm_pass(f, 20000);
		cm_sent(f, attr);
		f->now -= 10000; /* the timer's own time */
		cm_quiet(f);
	}
	cm_pass(f, interval - 10000);
	cm_quiet(f);
	cm_pass(f, 20000);
}

START_TEST(vanish__no_answer_to_the_req)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	struct cm_sent *s;

	repeated(f, ROCE_CM_REQ, INTERVAL_REQ, 15); /* 16 in all */
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_UNREACHABLE)->ev.status, -ETIMEDOUT);
	s = cm_sent(f, ROCE_CM_REJ); /* should it hear without being heard */
	ck_assert_uint_eq(s->m.rej.reason, ROCE_CM_REJ_TIMEOUT);
	ck_assert_uint_eq(s->m.info_len, 8);
	ck_assert_mem_eq(s->m.info, "\x50\x54\x00\xff\xfe\x00\x00\x02", 8);
	cm_state_is(c, ROCE_CM_TIMEWAIT);
	cm_pass(f, TIMEWAIT_19 + 10000);
	cm_qpn_back(f, CM_US_QPN);
	roce_cm_conn_free(c, f->now);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

/* The same REQ each time, byte by byte: it is one request (C-57). */
START_TEST(vanish__repeated_req_is_the_same)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	uint8_t first[ROCE_MAD_LEN];

	memcpy(first, f->out[0].mad, sizeof(first));
	cm_pass(f, INTERVAL_REQ + 10000);
	ck_assert_mem_eq(cm_sent(f, ROCE_CM_REQ)->mad, first, sizeof(first));
	roce_cm_conn_free(c, f->now);
	cm_sent(f, ROCE_CM_REJ);
	cm_fix_end(f);
}
END_TEST

/* B124: nobody waits for a dead host. */
START_TEST(vanish__free_during_connect)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	struct cm_sent *s;

	roce_cm_conn_free(c, f->now);
	s = cm_sent(f, ROCE_CM_REJ);
	ck_assert_uint_eq(s->m.rej.reason, ROCE_CM_REJ_TIMEOUT);
	ck_assert_uint_eq(s->m.remote_id, 0);
	cm_pass(f, 3 * CM_SEC);
	cm_qpn_back(f, CM_US_QPN);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

START_TEST(vanish__after_its_mra)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	struct roce_cm_msg m = cm_msg(ROCE_CM_MRA, c->local_id);

	m.mra.timeout = 24;
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_MRA);
	cm_state_is(c, ROCE_CM_MRA_REQ_RCVD);
	cm_pass(f, MRA_24 / 2);
	cm_in_mad(f, &m); /* once is enough until the REQ has gone out again */
	cm_told(f, ROCE_CM_EV_MRA);
	cm_pass(f, MRA_24 / 2 - 100000);
	cm_quiet(f);
	cm_pass(f, 200000);
	cm_sent(f, ROCE_CM_REQ);
	f->now -= 100000;
	repeated(f, ROCE_CM_REQ, INTERVAL_REQ, 14);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_UNREACHABLE)->ev.status, -ETIMEDOUT);
	cm_sent(f, ROCE_CM_REJ);
	roce_cm_conn_free(c, f->now);
	cm_fix_end(f);
}
END_TEST

/* An MRA never shortens the wait, and asks for no more than 137 s. */
START_TEST(mra__bounds)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connecting(f);
	struct roce_cm_msg m = cm_msg(ROCE_CM_MRA, c->local_id);

	cm_in_mad(f, &m);
	cm_pass(f, INTERVAL_REQ - 10000);
	cm_silent(f);
	cm_pass(f, 20000);
	cm_sent(f, ROCE_CM_REQ);
	m.mra.timeout = 31;
	cm_in_mad(f, &m);
	cm_pass(f, 140 * CM_SEC);
	cm_sent(f, ROCE_CM_REQ);
	roce_cm_conn_free(c, f->now);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

/* Our application takes its time, and the peer that asked is gone. */
START_TEST(vanish__while_the_application_thinks)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_requested(f);
	const struct roce_cm_accept a = cm_accept_default();

	cm_pass(f, 16 * INTERVAL_REQ - CM_SEC); /* as long as it may ask again */
	cm_quiet(f);
	cm_pass(f, 2 * CM_SEC);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_UNREACHABLE)->ev.status, -ECANCELED);
	cm_silent(f);
	cm_count_is(f, ROCE_CM_C_EXPIRED, 1);
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), -ETIMEDOUT); /* B121 */
	ck_assert_int_eq(roce_cm_reject(c, 28, NULL, 0, NULL, 0, f->now), -ENOTCONN);
	ck_assert_uint_eq(f->freed_head, 0); /* no QPN was lent */
	roce_cm_conn_free(c, f->now);
	cm_fix_end(f);
}
END_TEST

/* It gives up and says so, without knowing our id. */
START_TEST(vanish__peer_takes_its_req_back)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_requested(f);
	struct roce_cm_msg m = cm_msg_rej(0, ROCE_CM_REJ_TIMEOUT, ROCE_CM_ABOUT_OTHER);
	const struct roce_cm_accept a = cm_accept_default();

	f->rx.src = cm_ip4(9); /* not for others to take back */
	cm_in_mad(f, &m);
	cm_quiet(f);
	f->rx.src = cm_ip4(3);
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_told(f, ROCE_CM_EV_REJECTED)->ev.reason, ROCE_CM_REJ_TIMEOUT);
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), -ETIMEDOUT);
	roce_cm_conn_free(c, f->now);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

START_TEST(vanish__no_rtu)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepting(f);
	struct cm_sent *s;

	repeated(f, ROCE_CM_REP, INTERVAL_REP, 15);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_UNREACHABLE)->ev.status, -ETIMEDOUT);
	s = cm_sent(f, ROCE_CM_REJ);
	ck_assert_uint_eq(s->m.rej.reason, ROCE_CM_REJ_TIMEOUT);
	ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
	ck_assert_uint_eq(s->m.info_len, 8);
	roce_cm_conn_free(c, f->now);
	cm_pass(f, TIMEWAIT_19 + 10000);
	cm_qpn_back(f, CM_US_QPN);
	cm_fix_end(f);
}
END_TEST

START_TEST(vanish__no_rtu_after_its_mra)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepting(f);
	struct roce_cm_msg m = cm_msg(ROCE_CM_MRA, c->local_id);

	m.mra.timeout = 24;
	cm_in_mad(f, &m); /* about a REQ: not ours */
	cm_quiet(f);
	m.mra.about = ROCE_CM_ABOUT_REP;
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_MRA);
	cm_state_is(c, ROCE_CM_MRA_REP_RCVD);
	cm_pass(f, MRA_24 - 10 * CM_MS);
	cm_quiet(f);
	cm_pass(f, 20 * CM_MS);
	cm_sent(f, ROCE_CM_REP);
	m = cm_msg(ROCE_CM_RTU, c->local_id);
	cm_in_mad(f, &m);
	cm_told(f, ROCE_CM_EV_ESTABLISHED);
	roce_cm_conn_free(c, f->now);
	cm_pass(f, 17 * INTERVAL_REP);
	f->out_tail = f->out_head;
	cm_fix_end(f);
}
END_TEST

/* Our application does not answer the REP; the peer asks for it, then refuses. */
START_TEST(vanish__before_our_rtu)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_replied(f);
	struct roce_cm_msg m = cm_msg_rep(c->local_id);
	struct cm_sent *s;

	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_MRA);
	ck_assert_uint_eq(s->m.mra.about, ROCE_CM_ABOUT_REP);
	ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
	cm_state_is(c, ROCE_CM_MRA_REP_SENT);
	m = cm_msg_rej(c->local_id, ROCE_CM_REJ_TIMEOUT, ROCE_CM_ABOUT_OTHER);
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_told(f, ROCE_CM_EV_REJECTED)->ev.reason, ROCE_CM_REJ_TIMEOUT);
	ck_assert_int_eq(roce_cm_rtu(c, NULL, 0, f->now), -ENOTCONN);
	cm_state_is(c, ROCE_CM_TIMEWAIT);
	roce_cm_conn_free(c, f->now);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

/* B109: a peer that is dead at the end is an end with a status. */
START_TEST(vanish__no_drep)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connected(f);

	ck_assert_int_eq(roce_cm_disconnect(c, NULL, 0, f->now), 0);
	cm_sent(f, ROCE_CM_DREQ);
	repeated(f, ROCE_CM_DREQ, INTERVAL_REQ, 15);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_DISCONNECTED)->ev.status, -ETIMEDOUT);
	cm_silent(f);
	roce_cm_conn_free(c, f->now);
	cm_pass(f, TIMEWAIT_19 + 10000);
	cm_qpn_back(f, CM_US_QPN);
	cm_fix_end(f);
}
END_TEST

/* The owner dies: the engine goes on by itself, with nobody to tell. */
START_TEST(vanish__our_application)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepted(f);
	const uint32_t id = c->local_id;
	struct roce_cm_msg m;

	roce_cm_conn_free(c, f->now);
	cm_sent(f, ROCE_CM_DREQ);
	cm_pass(f, INTERVAL_REP + 10000);
	cm_sent(f, ROCE_CM_DREQ);
	m = cm_msg(ROCE_CM_DREP, id);
	cm_in_mad(f, &m);
	cm_quiet(f);
	ck_assert(roce_cm_qpn_held(f->cm, CM_US_QPN));
	cm_pass(f, TIMEWAIT_19 + 10000);
	cm_qpn_back(f, CM_US_QPN);
	cm_fix_end(f);
}
END_TEST

/* ---- service ID resolution ---------- */

static struct roce_cm_msg
msg_sidr_req(uint32_t id)
{
	return (struct roce_cm_msg){ .attr = ROCE_CM_SIDR_REQ, .tid = CM_TID, .local_id = id,
		.sidr_req = { .service_id = CM_SERVICE, .pkey = 0xffff } };
}

static void
listen_sidr(struct cm_fix *f)
{
	struct roce_cm_listen l = cm_listen_default();

	l.rc = l.uc = false;
	l.sidr = true;
	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
}

START_TEST(sidr__answers_and_repeats_itself)
{
	struct cm_fix *f = cm_fix_new(NULL);
	const struct roce_cm_msg m = msg_sidr_req(0x42);
	const struct roce_cm_sidr_reply r = { .qpn = 0x17, .qkey = ROCE_CM_UDP_QKEY,
		.private_data = "hi", .private_len = 2 };
	struct roce_cm_conn *c;
	struct cm_sent *s;

	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_SIDR_REP);
	ck_assert_uint_eq(s->m.sidr_rep.status, ROCE_CM_SIDR_UNSUPPORTED);
	ck_assert_uint_eq(s->m.local_id, 0x42);
	ck_assert_uint_eq(s->m.sidr_rep.service_id, CM_SERVICE);
	listen_sidr(f);
	cm_in_mad(f, &m);
	c = cm_told(f, ROCE_CM_EV_SIDR_REQ)->conn;
	cm_in_mad(f, &m); /* the application has not answered: nothing to say yet */
	cm_quiet(f);
	ck_assert_int_eq(roce_cm_sidr_reply(c, &r, f->now), 0);
	ck_assert_int_eq(roce_cm_sidr_reply(c, &r, f->now), -ENOTCONN);
	s = cm_sent(f, ROCE_CM_SIDR_REP);
	ck_assert_uint_eq(s->m.tid, CM_TID);
	ck_assert_uint_eq(s->m.sidr_rep.status, ROCE_CM_SIDR_OK);
	ck_assert_uint_eq(s->m.sidr_rep.qpn, 0x17);
	ck_assert_uint_eq(s->m.sidr_rep.qkey, ROCE_CM_UDP_QKEY);
	ck_assert_mem_eq(s->m.private_data, "hi", 2);
	roce_cm_conn_free(c, f->now);
	cm_in_mad(f, &m); /* the answer was lost */
	ck_assert_mem_eq(cm_sent(f, ROCE_CM_SIDR_REP)->mad, s->mad, ROCE_MAD_LEN);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

START_TEST(sidr__refused)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_msg m = msg_sidr_req(0x42), req = cm_msg_req(f);
	const struct roce_cm_sidr_reply no = { .status = ROCE_CM_SIDR_REJECT, .qpn = 0x17,
		.qkey = 9, .private_data = "no", .private_len = 2 };
	struct roce_cm_conn *c;
	struct cm_sent *s;

	listen_sidr(f);
	cm_in_mad(f, &m);
	c = cm_told(f, ROCE_CM_EV_SIDR_REQ)->conn;
	ck_assert_int_eq(roce_cm_sidr_reply(c, &no, f->now), 0);
	s = cm_sent(f, ROCE_CM_SIDR_REP);
	ck_assert_uint_eq(s->m.sidr_rep.status, ROCE_CM_SIDR_REJECT);
	ck_assert_uint_eq(s->m.sidr_rep.qpn, 0); /* as Linux */
	ck_assert_uint_eq(s->m.sidr_rep.qkey, 0);
	ck_assert_mem_eq(s->m.private_data, "no", 2);
	roce_cm_conn_free(c, f->now);
	m.local_id++;
	cm_in_mad(f, &m);
	roce_cm_conn_free(cm_told(f, ROCE_CM_EV_SIDR_REQ)->conn, f->now);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_SIDR_REP)->m.sidr_rep.status, ROCE_CM_SIDR_REJECT);
	m.local_id++;
	m.sidr_req.pkey = 1;
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_SIDR_REP)->m.sidr_rep.status, ROCE_CM_SIDR_REJECT);
	cm_in_mad(f, &req); /* a connection to what is none of that kind */
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_TRANSPORT);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

static struct roce_cm_conn *
ask(struct cm_fix *f)
{
	const struct roce_cm_connect a = cm_connect_default(f);
	const struct roce_cm_sidr q = { .av = a.av, .service_id = CM_SERVICE,
		.private_data = "who", .private_len = 3 };
	struct roce_cm_conn *c;

	ck_assert_int_eq(roce_cm_resolve(f->cm, &q, f, f->now, &c), 0);
	ck_assert_mem_eq(cm_sent(f, ROCE_CM_SIDR_REQ)->m.private_data, "who", 3);
	return c;
}

START_TEST(sidr__asks)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = ask(f);
	struct roce_cm_msg m = { .attr = ROCE_CM_SIDR_REP, .local_id = c->local_id,
		.sidr_rep = { .service_id = CM_SERVICE, .qpn = 0x17, .qkey = 5 } };
	struct cm_told *t;

	m.sidr_rep.service_id++;
	cm_in_mad(f, &m); /* of something else */
	cm_quiet(f);
	m.sidr_rep.service_id--;
	cm_pass(f, INTERVAL_REP + 10000);
	cm_sent(f, ROCE_CM_SIDR_REQ);
	cm_in_mad(f, &m);
	t = cm_told(f, ROCE_CM_EV_SIDR_REP);
	ck_assert_ptr_eq(t->user, f);
	ck_assert_uint_eq(t->ev.reason, 0);
	ck_assert_uint_eq(t->ev.params.dest_qpn, 0x17);
	ck_assert_uint_eq(t->ev.qkey, 5);
	cm_in_mad(f, &m);
	cm_quiet(f);
	roce_cm_conn_free(c, f->now);
	c = ask(f);
	repeated(f, ROCE_CM_SIDR_REQ, INTERVAL_REP, 15);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_SIDR_REP)->ev.status, -ETIMEDOUT);
	cm_quiet(f);
	roce_cm_conn_free(c, f->now);
	c = ask(f);
	roce_cm_conn_free(c, f->now);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

UNIT_MAIN("wire_cm_vanish",
	vanish__no_answer_to_the_req,
	vanish__repeated_req_is_the_same,
	vanish__free_during_connect,
	vanish__after_its_mra,
	mra__bounds,
	vanish__while_the_application_thinks,
	vanish__peer_takes_its_req_back,
	vanish__no_rtu,
	vanish__no_rtu_after_its_mra,
	vanish__before_our_rtu,
	vanish__no_drep,
	vanish__our_application,
	sidr__answers_and_repeats_itself,
	sidr__refused,
	sidr__asks)
