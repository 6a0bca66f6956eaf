/* SPDX-License-Identifier: BSD-3-Clause */
/* REQs that are refused, each for its reason; and what the good ones say. */
#include "cm_fixture.h"

struct bad {
	const char *what;
	void (*spoil)(struct roce_cm_msg *m);
	uint16_t reason;
	uint8_t info_len;
	enum roce_cm_counter counter;
};

static void id_0(struct roce_cm_msg *m) { m->local_id = 0; }
static void rd(struct roce_cm_msg *m) { m->req.transport = ROCE_CM_RD; }
static void ext_2(struct roce_cm_msg *m) { m->req.transport = 3, m->req.ext_transport = 2; }
static void xrc(struct roce_cm_msg *m) { m->req.transport = 3, m->req.ext_transport = 1; }
static void qpn_0(struct roce_cm_msg *m) { m->req.qpn = 0; }
static void qpn_1(struct roce_cm_msg *m) { m->req.qpn = 1; }
static void qpn_mcast(struct roce_cm_msg *m) { m->req.qpn = 0xffffff; }
static void their_gid(struct roce_cm_msg *m) { m->req.primary.local_gid[15]++; }
static void our_gid(struct roce_cm_msg *m) { m->req.primary.remote_gid[15]++; }
static void service(struct roce_cm_msg *m) { m->req.service_id++; }
static void pkey(struct roce_cm_msg *m) { m->req.pkey = 0x8001; }
static void sl_8(struct roce_cm_msg *m) { m->req.primary.sl = 8; }
static void mtu_0(struct roce_cm_msg *m) { m->req.mtu = 0; }
static void mtu_6(struct roce_cm_msg *m) { m->req.mtu = 6; }
static void mtu_4(struct roce_cm_msg *m) { m->req.mtu = 4; }

static const struct bad bad[] = {
	{ "id 0", id_0, ROCE_CM_REJ_COMM_ID, 0, ROCE_CM_C_REJECT_INVALID },
	{ "RD", rd, ROCE_CM_REJ_TRANSPORT, 0, ROCE_CM_C_REJECT_INVALID },
	{ "extended 2", ext_2, ROCE_CM_REJ_TRANSPORT, 0, ROCE_CM_C_REJECT_INVALID },
	{ "XRC, not listened for", xrc, ROCE_CM_REJ_TRANSPORT, 0, ROCE_CM_C_REJECT_INVALID },
	{ "QPN 0", qpn_0, ROCE_CM_REJ_UNSUPPORTED, 0, ROCE_CM_C_REJECT_INVALID },
	{ "QPN 1", qpn_1, ROCE_CM_REJ_UNSUPPORTED, 0, ROCE_CM_C_REJECT_INVALID },
	{ "multicast QPN", qpn_mcast, ROCE_CM_REJ_UNSUPPORTED, 0, ROCE_CM_C_REJECT_INVALID },
	{ "GID not its own", their_gid, ROCE_CM_REJ_GID, 0, ROCE_CM_C_REJECT_INVALID },
	{ "GID not ours", our_gid, ROCE_CM_REJ_GID, 16, ROCE_CM_C_REJECT_INVALID },
	{ "service", service, ROCE_CM_REJ_SERVICE_ID, 0, ROCE_CM_C_REJECT_SERVICE },
	{ "P_Key", pkey, ROCE_CM_REJ_UNSUPPORTED, 0, ROCE_CM_C_REJECT_INVALID },
	{ "SL 8", sl_8, ROCE_CM_REJ_SL, 0, ROCE_CM_C_REJECT_INVALID },
	{ "MTU code 0", mtu_0, ROCE_CM_REJ_MTU, 1, ROCE_CM_C_REJECT_INVALID },
	{ "MTU code 6", mtu_6, ROCE_CM_REJ_MTU, 1, ROCE_CM_C_REJECT_INVALID },
	{ "MTU over the port's", mtu_4, ROCE_CM_REJ_MTU, 1, ROCE_CM_C_REJECT_INVALID },
};

START_TEST(refused__for_its_reason)
{
	const struct bad *b = &bad[_i];
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_msg m = cm_msg_req(f);
	struct cm_sent *s;

	cm_listen(f);
	b->spoil(&m);
	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_REJ);
	ck_assert_msg(s->m.rej.reason == b->reason, "%s: reason %u", b->what, s->m.rej.reason);
	ck_assert_uint_eq(s->m.rej.about, ROCE_CM_ABOUT_REQ);
	ck_assert_uint_eq(s->m.local_id, 0);
	ck_assert_uint_eq(s->m.remote_id, m.local_id);
	ck_assert_uint_eq(s->m.tid, m.tid);
	ck_assert_uint_eq(s->m.info_len, b->info_len);
	if (b->info_len == 16)
		ck_assert_mem_eq(s->m.info, f->rx.dst.b, 16);
	if (b->info_len == 1)
		ck_assert_uint_eq(s->m.info[0], 3);
	cm_count_is(f, b->counter, 1);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

/* None of these takes an existing connection down. */
START_TEST(refused__before_it_is_stale)
{
	const struct bad *b = &bad[_i];
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_accepted(f);
	struct roce_cm_msg m = cm_msg_req(f);

	m.local_id++;
	b->spoil(&m);
	if (b->spoil == service || b->spoil == pkey || b->spoil == sl_8 || b->spoil == mtu_0 ||
	    b->spoil == mtu_4 || b->spoil == mtu_6 || b->spoil == xrc) {
		cm_let_go(f, c); /* what is asked for does not matter: the QP is in use again */
		cm_fix_end(f);
		return;
	}
	cm_in_mad(f, &m);
	cm_sent(f, ROCE_CM_REJ);
	cm_quiet(f);
	cm_state_is(c, ROCE_CM_ESTABLISHED);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

START_TEST(version__is_told)
{
	struct cm_fix *f = cm_fix_new(NULL);
	const struct roce_cm_msg m = cm_msg_req(f);
	uint8_t mad[ROCE_MAD_LEN];
	struct cm_sent *s;

	ck_assert_int_eq(roce_cm_emit(&m, mad), 0);
	mad[2] = 1;
	roce_cm_input(f->cm, mad, sizeof(mad), &f->rx, f->now);
	s = cm_sent(f, ROCE_CM_REJ);
	ck_assert_uint_eq(s->m.rej.reason, ROCE_CM_REJ_CLASS_VERSION);
	ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
	ck_assert_uint_eq(s->m.info_len, 1);
	ck_assert_uint_eq(s->m.info[0], 2);
	mad[17] = ROCE_CM_SIDR_REQ;
	roce_cm_input(f->cm, mad, sizeof(mad), &f->rx, f->now);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_SIDR_REP)->m.sidr_rep.status, ROCE_CM_SIDR_VERSION);
	mad[17] = ROCE_CM_REP;
	roce_cm_input(f->cm, mad, sizeof(mad), &f->rx, f->now);
	cm_quiet(f);
	cm_fix_end(f);
}
END_TEST

/* An alternate path is no reason to refuse: the REP says that there will be none. */
START_TEST(alternate__path_is_not_taken)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_msg m = cm_msg_req(f);
	const struct roce_cm_accept a = cm_accept_default();
	struct roce_cm_conn *c;

	cm_listen(f);
	m.req.alternate = m.req.primary;
	cm_in_mad(f, &m);
	c = cm_told(f, ROCE_CM_EV_REQ)->conn;
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REP)->m.rep.failover, 1);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

START_TEST(transports__uc_and_xrc)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_listen l = cm_listen_default();
	struct roce_cm_msg m = cm_msg_req(f);
	const struct roce_cm_accept a = cm_accept_default();
	struct roce_cm_conn *c;
	struct cm_told *t;
	struct cm_sent *s;

	l.rc = false;
	l.xrc = true;
	ck_assert_int_eq(roce_cm_listen(f->cm, &l, &f->listener), 0);
	m.req.transport = ROCE_CM_UC;
	cm_in_mad(f, &m);
	t = cm_told(f, ROCE_CM_EV_REQ);
	ck_assert_uint_eq(t->ev.params.transport, ROCE_CM_UC);
	cm_let_go(f, t->conn);
	xrc(&m);
	cm_in_mad(f, &m);
	c = cm_told(f, ROCE_CM_EV_REQ)->conn;
	ck_assert_int_eq(roce_cm_accept(c, &a, f->now), 0);
	s = cm_sent(f, ROCE_CM_REP);
	ck_assert_uint_eq(s->m.rep.qpn, 0); /* an XRC target is named like an EE context */
	ck_assert_uint_eq(s->m.rep.eecn, CM_US_QPN);
	ck_assert(s->m.rep.srq);
	cm_let_go(f, c);
	m.req.transport = ROCE_CM_RC;
	cm_in_mad(f, &m);
	ck_assert_uint_eq(cm_sent(f, ROCE_CM_REJ)->m.rej.reason, ROCE_CM_REJ_TRANSPORT);
	cm_fix_end(f);
}
END_TEST

/* MADs for the link-local address of two ports meet their own listeners and peers. */
START_TEST(link_local__per_port)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c, *d;
	struct roce_cm_msg m;

	cm_listen(f);
	f->rx.src = (struct net_ip){ .b = { 0xfe, 0x80, [15] = 3 } };
	f->rx.dst = (struct net_ip){ .b = { 0xfe, 0x80, [15] = 2 } };
	m = cm_msg_req(f);
	cm_in_mad(f, &m);
	c = cm_told(f, ROCE_CM_EV_REQ)->conn;
	f->rx.port = 1;
	cm_in_mad(f, &m); /* the same address, id and QPN on another link */
	d = cm_told(f, ROCE_CM_EV_REQ)->conn;
	ck_assert_uint_eq(d->av.port, 1);
	roce_cm_conn_free(d, f->now);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("roce_cm_req");
	TCase *c = tcase_create("req");
	SRunner *r;
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, refused__for_its_reason, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_loop_test(c, refused__before_it_is_stale, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(c, version__is_told);
	tcase_add_test(c, alternate__path_is_not_taken);
	tcase_add_test(c, transports__uc_and_xrc);
	tcase_add_test(c, link_local__per_port);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
