/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections by ids: made, refused, ended, from one context to itself by the hairpin. */
#include "ctl_cm_fixture.h"
#include "roce_gsi.h"
#include "worker_priv.h"

struct conn {
	struct chan ch;
	struct pair p;
	uint16_t port;
	uint32_t listener, active, passive;
};

static void
conn_begin(struct conn *k)
{
	k->ch = make_chan(&cl);
	make_pair(&k->p);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(to_init(k->p.qpn[i]), 0);
	k->listener = listener(&k->ch, own(0), 0, &k->port);
	k->active = routed_id(&k->ch, RING_CM_PS_TCP, RING_QPT_RC, own(k->port));
}

/* A request, with what it says. */
static struct ring_ctrl_cm_event_rep
conn_request(struct conn *k)
{
	struct ring_ctrl_cm_conn_req r = conn_req(k->active, k->p.qpn[0]);
	struct ring_ctrl_cm_event_rep ev;

	memcpy(r.private_data, "knock", 5);
	r.private_len = 5;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	ev = expect_event(&k->ch, RING_CM_CONNECT_REQUEST, 0);
	ck_assert_uint_eq(ev.listen, k->listener);
	k->passive = ev.id;
	return ev;
}

static void
conn_up(struct conn *k)
{
	struct ring_ctrl_cm_conn_req r;
	struct ring_ctrl_cm_event_rep ev[2];

	conn_begin(k);
	conn_request(k);
	r = conn_req(k->passive, k->p.qpn[1]);
	memcpy(r.private_data, "enter", 5);
	r.private_len = 5;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_ACCEPT, &r, NULL), 0);
	ev[0] = expect_event(&k->ch, RING_CM_ESTABLISHED, 0);
	ev[1] = expect_event(&k->ch, RING_CM_ESTABLISHED, 0);
	ck_assert_uint_eq(ev[0].id + ev[1].id, k->active + k->passive);
	if (ev[0].id != k->active)
		ev[0] = ev[1];
	ck_assert_mem_eq(ev[0].private_data, "enter", 6);
	ck_assert_uint_eq(ev[0].private_len, ROCE_CM_REP_PRIVATE); /* B120: padded */
	ck_assert_uint_eq(ev[0].qpn, k->p.qpn[1]);
}

START_TEST(request__says_who_and_what)
{
	struct ring_ctrl_cm_event_rep ev;
	struct conn k;

	conn_begin(&k);
	ev = conn_request(&k);
	ck_assert_mem_eq(ev.private_data, "knock", 6);
	ck_assert_uint_eq(ev.private_len, ROCE_CM_IP_REQ_PRIVATE);
	ck_assert_uint_eq(ev.qpn, k.p.qpn[0]);
	/* crossed: what it can serve we may ask */
	ck_assert_uint_eq(ev.initiator_depth, 4);
	ck_assert_uint_eq(ev.responder_resources, 4); /* room for 3, which come in powers of 2 */
	ck_assert_uint_eq(ev.retry_count, 7);
	ck_assert_uint_eq(ev.src.port, k.port);
	ck_assert_uint_ge(ev.dst.port, 32768);
	ck_assert_mem_eq(ev.src.ip.raw, own(0).ip.raw, 16);
	ck_assert_mem_eq(ev.dst.ip.raw, own(0).ip.raw, 16);
	ck_assert_uint_eq(ev.port, 1);
}
END_TEST

static void
attr_of(uint32_t qpn, struct ring_ctrl_query_qp_rep *q)
{
	struct ring_ctrl_handle_req req = {.handle = qpn};

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &req, q), 0);
	ck_assert_uint_eq(q->attr.state, RING_QPS_RTS);
}

START_TEST(connect__moves_both_qps)
{
	struct ring_ctrl_query_qp_rep a, b;
	struct conn k;

	conn_up(&k);
	attr_of(k.p.qpn[0], &a);
	attr_of(k.p.qpn[1], &b);
	ck_assert_uint_eq(a.attr.dest_qpn, k.p.qpn[1]);
	ck_assert_uint_eq(b.attr.dest_qpn, k.p.qpn[0]);
	ck_assert_uint_eq(a.attr.rq_psn, b.attr.sq_psn);
	ck_assert_uint_eq(a.attr.sq_psn, b.attr.rq_psn);
	ck_assert_uint_eq(a.attr.max_rd_atomic, 3);
	ck_assert_uint_eq(a.attr.max_dest_rd_atomic, 4); /* room for the 3 that will be asked */
	ck_assert_uint_eq(b.attr.max_rd_atomic, 3);
	ck_assert_uint_eq(b.attr.max_dest_rd_atomic, 4);
	ck_assert_uint_eq(a.attr.retry_cnt, 7);
	ck_assert_uint_eq(a.attr.path_mtu, b.attr.path_mtu);
	ck_assert_uint_ne(a.attr.timeout, 0);
}
END_TEST

/* DESIGN 1: with the CM, the worker whose queue received the REQ. */
START_TEST(accept__binds_where_the_request_came)
{
	struct ring_ctrl_query_qp_rep b;
	struct ctl_cm_id *id;
	struct conn k;

	conn_begin(&k);
	conn_request(&k);
	id = ctl_obj_find(TAILQ_FIRST(&fx_dev->clients), CTL_CM_ID, k.passive);
	ck_assert_uint_lt(id->worker, FX_WORKERS);
	for (uint32_t w = 0; w < 1; w++) {
		struct ring_ctrl_cm_conn_req r = conn_req(k.passive, k.p.qpn[1]);

		id->worker = FX_WORKERS - 1 - id->worker; /* whichever it is, by this alone */
		w = id->worker;
		ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_ACCEPT, &r, NULL), 0);
		expect_event(&k.ch, RING_CM_ESTABLISHED, 0);
		expect_event(&k.ch, RING_CM_ESTABLISHED, 0);
		attr_of(k.p.qpn[1], &b);
		ck_assert_uint_eq(b.worker, w);
		break;
	}
}
END_TEST

START_TEST(disconnect__ends_both_and_then_timewait)
{
	struct ring_ctrl_cm_event_rep ev[2];
	struct conn k;

	conn_up(&k);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DISCONNECT, k.passive), 0);
	ev[0] = expect_event(&k.ch, RING_CM_DISCONNECTED, 0);
	ev[1] = expect_event(&k.ch, RING_CM_DISCONNECTED, 0);
	ck_assert_uint_eq(ev[0].id + ev[1].id, k.active + k.passive);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(qp_state(k.p.qpn[i]), RING_QPS_ERR);
	/* both have ended it: no more than that is said */
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DISCONNECT, k.active), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DISCONNECT, k.passive), 0);
	expect_none(&k.ch);
	ck_assert(ctl_cm_qpn_held(fx_dev, k.p.qpn[0]));
	jump_seconds(60);
	ev[0] = expect_event(&k.ch, RING_CM_TIMEWAIT_EXIT, 0);
	ev[1] = expect_event(&k.ch, RING_CM_TIMEWAIT_EXIT, 0);
	ck_assert_uint_eq(ev[0].id + ev[1].id, k.active + k.passive);
	ck_assert(!ctl_cm_qpn_held(fx_dev, k.p.qpn[0]));
}
END_TEST

/* DESIGN 1: a QPN is never used again inside timewait. */
START_TEST(qpn__rests_as_long_as_the_connection)
{
	struct conn k;

	conn_up(&k);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DISCONNECT, k.active), 0);
	expect_event(&k.ch, RING_CM_DISCONNECTED, 0);
	expect_event(&k.ch, RING_CM_DISCONNECTED, 0);
	ck_assert_int_eq(destroy_id(&cl, k.active, NULL), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, k.p.qpn[0]), 0);
	for (int i = 0; i < 100; i++)
		fx_step();
	ck_assert_uint_ge(fx_dev->num_timewait, 1);
	jump_seconds(60);
	while (fx_dev->num_timewait != 0)
		fx_step();
}
END_TEST

/* B108, C-59 */
START_TEST(connect__nobody_listens)
{
	struct ring_ctrl_cm_conn_req r;
	struct conn k;

	conn_begin(&k);
	ck_assert_int_eq(destroy_id(&cl, k.listener, NULL), 0);
	r = conn_req(k.active, k.p.qpn[0]);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	expect_event(&k.ch, RING_CM_REJECTED, ROCE_CM_REJ_SERVICE_ID);
	ck_assert_uint_eq(qp_state(k.p.qpn[0]), RING_QPS_ERR);
}
END_TEST

/* C-59 */
START_TEST(reject__says_why)
{
	struct ring_ctrl_cm_reject_req no = {.private_len = 4};
	struct ring_ctrl_cm_event_rep ev;
	struct conn k;

	conn_begin(&k);
	conn_request(&k);
	no.id = k.passive;
	memcpy(no.private_data, "nope", 4);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_REJECT, &no, NULL), 0);
	ev = expect_event(&k.ch, RING_CM_REJECTED, ROCE_CM_REJ_CONSUMER);
	ck_assert_uint_eq(ev.id, k.active);
	ck_assert_mem_eq(ev.private_data, "nope", 5);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_REJECT, &no, NULL), -ENOTCONN); /* B121 */
}
END_TEST

START_TEST(backlog__clean_refusal_beyond)
{
	struct ring_ctrl_cm_conn_req r;
	struct chan ch = make_chan(&cl), other = make_chan(&cl);
	uint32_t id[5], refused = 0;
	struct pair p[5];
	uint16_t port;

	listener(&other, own(0), 2, &port);
	for (int i = 0; i < 5; i++) {
		make_pair(&p[i]);
		ck_assert_int_eq(to_init(p[i].qpn[0]), 0);
		id[i] = routed_id(&ch, RING_CM_PS_TCP, RING_QPT_RC, own(port));
	}
	for (int i = 0; i < 5; i++) {
		r = conn_req(id[i], p[i].qpn[0]);
		ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	}
	for (; refused < 3; refused++)
		expect_event(&ch, RING_CM_REJECTED, ROCE_CM_REJ_NO_RESOURCES);
	expect_none(&ch);
	ck_assert_uint_eq(fx_dev->cm.requests_refused, 3);
	/* one that was fetched makes room, answered or not */
	expect_event(&other, RING_CM_CONNECT_REQUEST, 0);
	expect_event(&other, RING_CM_CONNECT_REQUEST, 0);
	expect_none(&other);
	ck_assert_uint_eq(fx_dev->objs[CTL_CM_ID].count, 1 + 5 + 2);
}
END_TEST

/* A listener goes: requests to it that nobody has seen are refused, and their bytes are told. */
START_TEST(listener__goes_with_its_requests)
{
	struct ring_ctrl_cm_moved_rep moved;
	struct ring_ctrl_cm_conn_req r;
	struct conn k;

	conn_begin(&k);
	r = conn_req(k.active, k.p.qpn[0]);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	while (fx_dev->objs[CTL_CM_ID].count != 3)
		fx_step();
	ck_assert_int_eq(destroy_id(&cl, k.listener, &moved), 0);
	ck_assert_uint_eq(moved.waiting, 1);
	ck_assert_uint_eq(fx_dev->objs[CTL_CM_ID].count, 1);
	for (uint32_t i = 0; i < moved.waiting; i++) {
		char b;

		ck_assert_int_eq(read(k.ch.pipe, &b, 1), 1);
	}
	ck_assert_int_gt(next_event(&k.ch).result, 0); /* rejected */
}
END_TEST

/* B124: an id whose request waits for a dead host is destroyed at once. */
START_TEST(destroy__while_the_request_is_out)
{
	struct ring_ctrl_cm_conn_req r;
	struct conn k;

	conn_begin(&k);
	r = conn_req(k.active, k.p.qpn[0]);
	fx_dev->gsi_rx = NULL; /* nobody is there */
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	ck_assert_int_eq(destroy_id(&cl, k.active, NULL), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, k.p.qpn[0]), 0);
}
END_TEST

/* The peer has gone: after all retries. */
START_TEST(connect__peer_is_dead)
{
	struct ring_ctrl_cm_conn_req r;
	struct ring_ctrl_cm_event_rep ev;
	struct conn k;

	conn_begin(&k);
	r = conn_req(k.active, k.p.qpn[0]);
	fx_dev->gsi_rx = NULL;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	for (int i = 0; i < 40 && !poll_event(&k.ch, &ev); i++) {
		jump_seconds(7);
		fx_step();
	}
	ck_assert_uint_eq(ev.event, RING_CM_UNREACHABLE);
	ck_assert_int_eq(ev.result, -ETIMEDOUT);
}
END_TEST

/* B109 */
START_TEST(disconnect__peer_is_dead)
{
	struct ring_ctrl_cm_event_rep ev;
	struct conn k;

	conn_up(&k);
	fx_dev->gsi_rx = NULL;
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DISCONNECT, k.active), 0);
	for (int i = 0; i < 40 && !poll_event(&k.ch, &ev); i++) {
		jump_seconds(7);
		fx_step();
	}
	ck_assert_uint_eq(ev.event, RING_CM_DISCONNECTED);
	ck_assert_int_eq(ev.result, -ETIMEDOUT);
}
END_TEST

/* C-58: the RTU is lost, data is not. */
START_TEST(established__by_data)
{
	struct ring_wqe w = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED | RING_WR_INLINE,
		.num_slots = 1, .inline_len = 5};
	struct ring_ctrl_cm_conn_req r;
	struct ring_ctrl_reg_mr_rep mr;
	struct conn k;
	uint8_t *buf;

	conn_begin(&k);
	conn_request(&k);
	buf = make_mem(4096);
	ck_assert_int_eq(reg_mr(k.p.pd, buf, 4096, RING_ACCESS_LOCAL_WRITE, &mr), 0);
	post_recv(&k.p, 1, 0, buf, 4096, mr.lkey);
	r = conn_req(k.passive, k.p.qpn[1]);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_ACCEPT, &r, NULL), 0);
	ck_assert_uint_eq(expect_event(&k.ch, RING_CM_ESTABLISHED, 0).id, k.active);
	fx_dev->gsi_rx = NULL; /* from here on nothing reaches it, the RTU is under way */
	while (fx_dev->gsi_head != NULL)
		fx_step();
	ck_assert_uint_eq(qp_state(k.p.qpn[1]), RING_QPS_RTS);
	post_send(&k.p, 0, 0, &w);
	ck_assert_uint_eq(expect_event(&k.ch, RING_CM_ESTABLISHED, 0).id, k.passive);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, mr.lkey), 0);
}
END_TEST

static int
qp_attr(uint32_t id, unsigned int state, struct ring_ctrl_cm_qp_attr_rep *rep)
{
	struct ring_ctrl_cm_qp_attr_req req = {.id = id, .state = state};

	return fx_call(&cl, RING_CTRL_CM_QP_ATTR, &req, rep);
}

static void
move_by_hand(uint32_t id, uint32_t qpn, unsigned int state)
{
	struct ring_ctrl_cm_qp_attr_rep a;

	ck_assert_int_eq(qp_attr(id, state, &a), 0);
	ck_assert_int_eq(modify(qpn, a.mask, &a.attr, NULL), 0);
}

/* The application has QPs of its own and moves them: rdma_init_qp_attr(), rdma_establish(). */
START_TEST(connect__qps_of_the_application)
{
	struct ring_ctrl_cm_conn_req r;
	struct ring_ctrl_cm_qp_attr_rep a;
	struct conn k;

	k.ch = make_chan(&cl);
	make_pair(&k.p);
	k.listener = listener(&k.ch, own(0), 0, &k.port);
	k.active = routed_id(&k.ch, RING_CM_PS_TCP, RING_QPT_RC, own(k.port));
	ck_assert_int_eq(qp_attr(k.active, RING_QPS_RTR, &a), -EINVAL);
	move_by_hand(k.active, k.p.qpn[0], RING_QPS_INIT);
	r = conn_req(k.active, k.p.qpn[0]);
	r.flags = 0;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	k.passive = expect_event(&k.ch, RING_CM_CONNECT_REQUEST, 0).id;
	for (unsigned int s = RING_QPS_INIT; s <= RING_QPS_RTS; s++)
		move_by_hand(k.passive, k.p.qpn[1], s);
	r = conn_req(k.passive, k.p.qpn[1]);
	r.flags = 0;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_ACCEPT, &r, NULL), 0);
	ck_assert_uint_eq(expect_event(&k.ch, RING_CM_CONNECT_RESPONSE, 0).id, k.active);
	move_by_hand(k.active, k.p.qpn[0], RING_QPS_RTR);
	move_by_hand(k.active, k.p.qpn[0], RING_QPS_RTS);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_ESTABLISH, k.active), 0);
	ck_assert_uint_eq(expect_event(&k.ch, RING_CM_ESTABLISHED, 0).id, k.passive);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DISCONNECT, k.active), 0);
	expect_event(&k.ch, RING_CM_DISCONNECTED, 0);
	expect_event(&k.ch, RING_CM_DISCONNECTED, 0);
	ck_assert_uint_eq(qp_state(k.p.qpn[0]), RING_QPS_RTS); /* it is the application's */
}
END_TEST

/* A connection's QP is one of the client's own, and of one connection at a time. */
START_TEST(connect__whose_qp)
{
	struct ring_ctrl_cm_conn_req r;
	uint32_t second;
	struct conn k;

	conn_begin(&k);
	r = conn_req(k.active, 0x123456);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), -EINVAL);
	r.flags = 0;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), -EINVAL);
	conn_request(&k);
	second = routed_id(&k.ch, RING_CM_PS_TCP, RING_QPT_RC, own(k.port));
	r = conn_req(second, k.p.qpn[0]);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), -EBUSY);
	r = conn_req(second, k.p.qpn[1]);
	r.private_len = 57; /* more than a REQ has room for */
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), -EINVAL);
	r.private_len = 56;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
}
END_TEST

START_TEST(migrate__events_go_along)
{
	struct ring_ctrl_cm_migrate_req req;
	struct ring_ctrl_cm_moved_rep rep;
	struct chan to = make_chan(&cl), ch = make_chan(&cl);
	uint32_t id = make_id(&ch, RING_CM_PS_TCP, RING_QPT_RC);
	char b;

	ck_assert_int_eq(resolve_to(&cl, id, own(7)), 0);
	req = (struct ring_ctrl_cm_migrate_req){.id = id, .channel = to.handle};
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_MIGRATE, &req, &rep), 0);
	ck_assert_uint_eq(rep.waiting, 1);
	ck_assert_int_eq(read(ch.pipe, &b, 1), 1);
	expect_event(&to, RING_CM_ADDR_RESOLVED, 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DESTROY_CHANNEL, to.handle), -EBUSY);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DESTROY_CHANNEL, ch.handle), 0);
	ck_assert_int_eq(destroy_id(&cl, id, &rep), 0);
	ck_assert_uint_eq(rep.events, 1);
	ck_assert_uint_eq(rep.waiting, 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DESTROY_CHANNEL, to.handle), 0);
}
END_TEST

/* Another context at each end: whoever dies at whatever step, the other is told, nothing stays. */
static void
death_at(int step)
{
	static struct fx_client peer;
	struct ring_ctrl_cm_conn_req r;
	struct ring_ctrl_cm_event_rep ev;
	struct chan ch, theirs;
	uint16_t port;
	struct pair p;
	uint32_t id;

	fx_connect(&peer);
	ck_assert_int_eq(fx_hello(&peer), 0);
	ch = make_chan(&cl);
	theirs = make_chan(&peer);
	make_pair(&p);
	ck_assert_int_eq(to_init(p.qpn[0]), 0);
	listener(&theirs, own(0), 0, &port);
	id = routed_id(&ch, RING_CM_PS_TCP, RING_QPT_RC, own(port));
	r = conn_req(id, p.qpn[0]);
	if (step > 0)
		ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	if (step == 2)
		ev = expect_event(&theirs, RING_CM_CONNECT_REQUEST, 0);
	if (step > 1)
		for (int i = 0; i < 20; i++)
			fx_step();
	fx_close(&peer);
	while (fx_dev->num_clients != 1)
		fx_step();
	if (step == 0)
		ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	ev = next_event(&ch);
	ck_assert_uint_eq(ev.event, RING_CM_REJECTED);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p.qpn[0]), 0);
	ck_assert_int_eq(destroy_id(&cl, id, NULL), 0);
}

START_TEST(death__of_the_listener)
{
	for (int step = 0; step < 4; step++)
		death_at(step);
}
END_TEST

/* The daemon itself says DREQ for who died connected. */
START_TEST(death__of_a_connected_peer)
{
	struct ring_ctrl_cm_conn_req r;
	static struct fx_client peer;
	struct chan ch, theirs;
	uint32_t id, active;
	uint16_t port;
	struct pair p;

	ch = make_chan(&cl);
	make_pair(&p);
	ck_assert_int_eq(to_init(p.qpn[0]), 0);
	id = listener(&ch, own(0), 0, &port);
	fx_connect(&peer);
	ck_assert_int_eq(fx_hello(&peer), 0);
	theirs = make_chan(&peer);
	{
		/* theirs has a QP of its own, by the same helpers */
		static struct fx_client mine;
		struct pair q;

		memcpy(&mine, &cl, sizeof(cl));
		memcpy(&cl, &peer, sizeof(cl));
		make_pair(&q);
		ck_assert_int_eq(to_init(q.qpn[0]), 0);
		theirs.c = &cl;
		active = routed_id(&theirs, RING_CM_PS_TCP, RING_QPT_RC, own(port));
		r = conn_req(active, q.qpn[0]);
		ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
		memcpy(&peer, &cl, sizeof(cl));
		memcpy(&cl, &mine, sizeof(cl));
	}
	r = conn_req(expect_event(&ch, RING_CM_CONNECT_REQUEST, 0).id, p.qpn[0]);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_ACCEPT, &r, NULL), 0);
	expect_event(&ch, RING_CM_ESTABLISHED, 0);
	fx_close(&peer);
	expect_event(&ch, RING_CM_DISCONNECTED, 0);
	ck_assert_uint_eq(qp_state(p.qpn[0]), RING_QPS_ERR);
	ck_assert_int_eq(destroy_id(&cl, id, NULL), 0);
}
END_TEST

/* B131: connected again at once, with a QP made anew. */
START_TEST(connect__again_at_once)
{
	struct conn k;

	for (int i = 0; i < 20; i++) {
		conn_up(&k);
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DISCONNECT, k.active), 0);
		expect_event(&k.ch, RING_CM_DISCONNECTED, 0);
		expect_event(&k.ch, RING_CM_DISCONNECTED, 0);
		ck_assert_int_eq(destroy_id(&cl, k.active, NULL), 0);
		ck_assert_int_eq(destroy_id(&cl, k.passive, NULL), 0);
		ck_assert_int_eq(destroy_id(&cl, k.listener, NULL), 0);
		for (int j = 0; j < 2; j++)
			ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, k.p.qpn[j]), 0);
	}
}
END_TEST

/** Frames that the port brought back and that were to another station. */
static uint64_t
for_others(void)
{
	uint64_t n = 0;

	for (uint32_t w = 0; w < FX_WORKERS; w++)
		n += counter_read(&worker_get(fx_dev, w)->counter[WORKER_C_DROP_MAC]);
	return n;
}

/* Answers above the rate go back to the station they came from, and nobody is asked for an address
 * of which nothing is known but that a stranger wrote it. */
START_TEST(flood__answers_need_no_neighbour)
{
	const struct roce_cm_msg dreq = {.attr = ROCE_CM_DREQ, .local_id = 1, .remote_id = 2};
	struct roce_mad mad = {.smac = {{2, 0, 0, 0, 0, 9}}, .vlan_tci = NET_VLAN_NONE,
		.pkey = 0xffff};

	ck_assert_int_eq(net_ip_parse("192.0.2.1", &mad.dst), 0);
	ck_assert_int_eq(net_ip_parse("192.0.2.10", &mad.src), 0);
	ck_assert_int_eq(roce_cm_emit(&dreq, mad.data), 0);
	fx_dev->cm.mad_time = ctl_now(fx_dev) + UINT64_C(1000000000); /* the burst is used up */
	for (unsigned int i = 0; i < 200; i++) {
		fx_dev->gsi_rx(fx_dev, &mad); /* DREPs: nobody's connection */
		mad.src.b[15]++;
	}
	ck_assert_uint_eq(fx_dev->cm.num_mads, 200);
	ck_assert_uint_eq(for_others(), 0);
	jump_seconds(2);
	while (fx_dev->cm.num_mads != 0)
		fx_step();
	for (int i = 0; i < 20; i++)
		fx_step();
	ck_assert_uint_eq(for_others(), 200);
}
END_TEST

FX_MAIN("ctl_cm", setup, cm_teardown, request__says_who_and_what, connect__moves_both_qps,
	accept__binds_where_the_request_came, disconnect__ends_both_and_then_timewait,
	qpn__rests_as_long_as_the_connection, connect__nobody_listens, reject__says_why,
	backlog__clean_refusal_beyond, listener__goes_with_its_requests,
	destroy__while_the_request_is_out, connect__peer_is_dead, disconnect__peer_is_dead,
	established__by_data, connect__qps_of_the_application, connect__whose_qp,
	migrate__events_go_along, death__of_the_listener, death__of_a_connected_peer,
	connect__again_at_once, flood__answers_need_no_neighbour)
