/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains and target QPs through the socket: who shares them, and who outlives whom. */
#include "ctl_objects.h"

#define NONE RING_NO_HANDLE

static struct fx_client other;

/* The helpers of ctl_objects.h speak as `cl`. */
static void
change_places(void)
{
	static struct fx_client tmp;

	memcpy(&tmp, &cl, sizeof(tmp));
	memcpy(&cl, &other, sizeof(tmp));
	memcpy(&other, &tmp, sizeof(tmp));
}

static void
second_client(void)
{
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
}

static int
open_xrcd(uint32_t flags, uint64_t dev, uint64_t ino, uint32_t *handle)
{
	struct ring_ctrl_alloc_xrcd_req req = {.flags = flags, .dev = dev, .ino = ino};
	struct ring_ctrl_handle_rep rep;
	int err = fx_call(&cl, RING_CTRL_ALLOC_XRCD, &req, &rep);

	if (err == 0)
		*handle = rep.handle;
	return err;
}

static uint32_t
file_xrcd(void)
{
	uint32_t handle = 0;

	ck_assert_int_eq(open_xrcd(RING_XRCD_FILE | RING_XRCD_CREATE, 8, 77, &handle), 0);
	return handle;
}

static int
open_qp(uint32_t xrcd, uint32_t qpn)
{
	struct ring_ctrl_open_qp_req req = {.xrcd = xrcd, .qpn = qpn, .user_handle = 55};

	return fx_call(&cl, RING_CTRL_OPEN_QP, &req, NULL);
}

static int
create_target(uint32_t xrcd, uint32_t *qpn)
{
	struct ring_ctrl_create_qp_req req = {.type = RING_QPT_XRC_RECV, .pd = NONE,
		.send_cq = NONE, .recv_cq = NONE, .srqn = NONE, .xrcd = xrcd, .user_handle = 66};
	struct ring_ctrl_create_qp_rep rep;
	int err = fx_call(&cl, RING_CTRL_CREATE_QP, &req, &rep);

	if (err == 0) {
		ck_assert_uint_eq(rep.sq, RING_NO_LOC);
		ck_assert_uint_eq(rep.daemon, RING_NO_LOC);
		*qpn = rep.qpn;
	}
	return err;
}

/** A receiver: an XRC SRQ in the domain, with its CQ, and receives in it. */
struct receiver {
	uint32_t pd;
	struct ring_ctrl_create_cq_rep cq;
	struct ring_ctrl_create_srq_rep srq;
	struct ring_ctrl_reg_mr_rep mr;
	uint8_t *mem;
};

static int
create_srq(uint32_t pd, uint32_t xrcd, uint32_t cqn, struct ring_ctrl_create_srq_rep *rep)
{
	struct ring_ctrl_create_srq_req req = {
		.pd = pd, .max_wr = 8, .max_sge = 1, .xrcd = xrcd, .cqn = cqn, .user_handle = 44};

	return fx_call(&cl, RING_CTRL_CREATE_SRQ, &req, rep);
}

static void
make_receiver(struct receiver *v, uint32_t xrcd)
{
	struct ring_ctrl_create_cq_req cq = {.entries = 64, .channel = NONE};
	struct ring_srq_client *words;
	uint32_t *index;

	v->pd = make_pd();
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CQ, &cq, &v->cq), 0);
	ck_assert_int_eq(create_srq(v->pd, xrcd, v->cq.cqn, &v->srq), 0);
	v->mem = make_mem(4096);
	ck_assert_int_eq(reg_mr(v->pd, v->mem, 4096,
				 RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE, &v->mr), 0);
	index = fx_ptr(&cl, v->srq.index);
	words = fx_ptr(&cl, v->srq.client);
	for (uint32_t i = 0; i < 8; i++) {
		struct ring_rwqe *r = (struct ring_rwqe *)fx_ptr(&cl, v->srq.slots) + i;

		*r = (struct ring_rwqe){.num_slots = 1, .num_sge = 1};
		r->sge[0] = (struct ring_sge){(uintptr_t)v->mem + i * 64, 64, v->mr.lkey};
		index[i] = i;
	}
	atomic_store(&words->tail, 8);
}

/** An initiator of cl's own, in p->qp[0]; joined to a target. */
static void
make_initiator(struct pair *p)
{
	struct ring_ctrl_create_cq_req cq = {.entries = 64, .channel = NONE};
	struct ring_ctrl_create_qp_req req = {.type = RING_QPT_XRC_SEND, .recv_cq = NONE,
		.srqn = NONE, .xrcd = NONE, .max_send_wr = 16, .max_send_sge = 1,
		.max_inline = 32};

	p->pd = req.pd = make_pd();
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CQ, &cq, &p->cq), 0);
	p->cqn = req.send_cq = p->cq.cqn;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &req, &p->qp[0]), 0);
	ck_assert_uint_eq(p->qp[0].rq, RING_NO_LOC);
	p->qpn[0] = p->qp[0].qpn;
}

static void
connect_initiator(struct pair *p, uint32_t target)
{
	struct ring_ctrl_qp_attr a = rtr_attr(target, 1);
	struct ring_ctrl_qp_attr rts = {.state = RING_QPS_RTS, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .sq_psn = 100, .max_rd_atomic = 4};

	ck_assert_int_eq(to_init(p->qpn[0]), 0);
	ck_assert_int_eq(modify(p->qpn[0], RTR_MASK & ~(RING_QP_MAX_DEST_RD_ATOMIC |
						       RING_QP_MIN_RNR_TIMER), &a, NULL), 0);
	ck_assert_int_eq(modify(p->qpn[0], RING_QP_STATE | RING_QP_TIMEOUT | RING_QP_RETRY_CNT |
				RING_QP_RNR_RETRY | RING_QP_SQ_PSN | RING_QP_MAX_QP_RD_ATOMIC,
				&rts, NULL), 0);
}

static void
connect_target(uint32_t target, uint32_t initiator)
{
	struct ring_ctrl_qp_attr a = rtr_attr(initiator, 1);

	ck_assert_int_eq(to_init(target), 0);
	ck_assert_int_eq(modify(target, RTR_MASK, &a, NULL), 0);
}

static void
send_hello(struct pair *p, uint32_t index, uint32_t srqn)
{
	struct ring_wqe w = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED | RING_WR_INLINE,
		.num_slots = 1, .inline_len = 5, .srqn = srqn};

	memcpy(w.data, "hello", 5);
	post_send(p, 0, index, &w);
}

/** The n-th completion of the receiver, in whichever of its sub-rings; as `cl`. */
static const struct ring_cqe *
received(const struct receiver *v, uint32_t n)
{
	struct ring_cq_daemon *d = fx_ptr(&cl, v->cq.daemon);

	ck_assert_uint_eq(atomic_load(&d->num_sub), FX_WORKERS);
	for (;;) {
		for (uint32_t i = 0; i < FX_WORKERS; i++) {
			const struct ring_cqe *e =
				fx_ptr(&cl, RING_LOC(d->sub[i].arena, d->sub[i].offset));

			if (atomic_load(&e[n].tag) & RING_CQE_PHASE)
				return &e[n];
		}
		fx_step();
	}
}

START_TEST(domain__of_a_file)
{
	uint32_t a, b, c, d;

	ck_assert_int_eq(open_xrcd(RING_XRCD_FILE, 8, 77, &a), -ENOENT);
	a = file_xrcd();
	b = file_xrcd();
	ck_assert_uint_ne(a, b);
	ck_assert_uint_eq(fx_dev->xrcs.count, 1);
	ck_assert_int_eq(open_xrcd(RING_XRCD_FILE, 8, 77, &c), 0);
	ck_assert_int_eq(open_xrcd(RING_XRCD_FILE | RING_XRCD_CREATE | RING_XRCD_EXCL, 8, 77, &d),
		-EEXIST);
	ck_assert_int_eq(open_xrcd(RING_XRCD_FILE | RING_XRCD_CREATE | RING_XRCD_EXCL, 8, 78, &d),
		0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, d), 0);
	ck_assert_int_eq(open_xrcd(0, 0, 0, &d), -EINVAL);
	ck_assert_int_eq(open_xrcd(RING_XRCD_CREATE, 8, 77, &d), -EINVAL);
	ck_assert_int_eq(open_xrcd(RING_XRCD_FILE | RING_XRCD_EXCL, 8, 77, &d), -EINVAL);
	ck_assert_int_eq(open_xrcd(8, 0, 0, &d), -EINVAL);
	ck_assert_int_eq(open_xrcd(RING_XRCD_CREATE, 0, 0, &d), 0);
	ck_assert_uint_eq(fx_dev->xrcs.count, 2);
	second_client();
	change_places();
	ck_assert_int_eq(open_xrcd(RING_XRCD_FILE, 8, 77, &d), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, a), -EINVAL); /* another's */
	change_places();
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, a), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, b), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, c), 0);
	ck_assert_int_eq(open_xrcd(RING_XRCD_FILE, 8, 77, &a), 0); /* the other has it still */
	fx_close(&other);
}
END_TEST

START_TEST(domain__by_token)
{
	struct ring_ctrl_export_req x = {.kind = RING_EXPORT_XRCD};
	struct ring_ctrl_export_rep xr;
	struct ring_ctrl_import_req m = {.kind = RING_EXPORT_XRCD};
	struct ring_ctrl_import_rep mr;
	uint32_t qpn = 0;

	ck_assert_int_eq(open_xrcd(RING_XRCD_CREATE, 0, 0, &x.handle), 0);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_EXPORT, &x, &xr), 0);
	ck_assert_int_eq(create_target(x.handle, &qpn), 0);
	memcpy(m.token, xr.token, sizeof(m.token));
	second_client();
	change_places();
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_IMPORT, &m, &mr), 0);
	ck_assert_uint_eq(fx_dev->xrcs.count, 1);
	ck_assert_int_eq(open_qp(mr.handle, qpn), 0);
	change_places();
	fx_close(&other);
	fx_settle(1);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, qpn), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, x.handle), 0);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_IMPORT, &m, &mr), -ENOENT);
}
END_TEST

/* The initiator is one client's, the SRQ another's, and the target either's. */
START_TEST(send__between_clients)
{
	const struct ring_cqe *e;
	struct receiver v;
	uint32_t xrcd, qpn = 0;
	struct pair p;

	second_client();
	make_initiator(&p);
	change_places(); /* the receiving side */
	xrcd = file_xrcd();
	make_receiver(&v, xrcd);
	ck_assert_int_eq(create_target(xrcd, &qpn), 0);
	connect_target(qpn, p.qpn[0]);
	change_places();
	connect_initiator(&p, qpn);
	for (uint32_t i = 0; i < 3; i++) {
		send_hello(&p, i, v.srq.srqn);
		ck_assert_uint_eq(wait_cqes(&p, i + 1)->qpn_status >> 24, 0);
	}
	change_places();
	e = received(&v, 2);
	ck_assert_uint_eq(e->qpn_status, qpn);
	ck_assert_uint_eq(e->src_opcode & 0xffffff, v.srq.srqn);
	ck_assert_uint_eq(e->wqe_index, 2);
	ck_assert_uint_ne(atomic_load(&e->tag) & RING_CQE_XRC, 0);
	ck_assert_mem_eq(v.mem + 128, "hello", 5);
	/* everything has users */
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, xrcd), -EBUSY);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_CQ, v.cq.cqn), -EBUSY);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_SRQ, v.srq.srqn), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_CQ, v.cq.cqn), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, xrcd), -EBUSY);
	change_places();
	send_hello(&p, 3, v.srq.srqn); /* it names none now */
	ck_assert_uint_eq(wait_cqes(&p, 4)->qpn_status >> 24, 9); /* REM_INV_REQ_ERR */
	change_places();
	while (cl.num_events == 0) {
		fx_step();
		fx_recv(&cl);
	}
	ck_assert_uint_eq(cl.event.handle, qpn);
	ck_assert_uint_eq(cl.event.user_handle, 66);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, qpn), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, xrcd), 0);
	ck_assert_uint_eq(fx_dev->targets.count, 0);
	fx_close(&other);
}
END_TEST

/* Who made it dies; it goes on, for others that have the domain and open it. */
START_TEST(target__outlives_its_creator)
{
	struct ring_ctrl_handle_req req;
	struct ring_ctrl_query_qp_rep q;
	uint32_t xrcd, theirs, qpn = 0;
	struct receiver v;
	struct pair p;

	second_client();
	make_initiator(&p);
	xrcd = file_xrcd();
	make_receiver(&v, xrcd);
	change_places();
	theirs = file_xrcd();
	ck_assert_int_eq(create_target(theirs, &qpn), 0);
	connect_target(qpn, p.qpn[0]);
	fx_close(&cl);
	change_places();
	fx_settle(1);
	ck_assert_uint_eq(fx_dev->targets.count, 1);
	connect_initiator(&p, qpn);
	send_hello(&p, 0, v.srq.srqn);
	ck_assert_uint_eq(wait_cqes(&p, 1)->qpn_status >> 24, 0);
	ck_assert_uint_eq(received(&v, 0)->wqe_index, 0);
	/* it is there to be opened, and not before */
	req = (struct ring_ctrl_handle_req){.handle = qpn};
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &req, &q), -EINVAL);
	ck_assert_int_eq(open_qp(xrcd, qpn + 1), -EINVAL);
	ck_assert_int_eq(open_qp(xrcd, qpn), 0);
	ck_assert_int_eq(open_qp(xrcd, qpn), -EBUSY);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &req, &q), 0);
	ck_assert_uint_eq(q.type, RING_QPT_XRC_RECV);
	ck_assert_uint_eq(q.attr.state, RING_QPS_RTR);
	ck_assert_uint_eq(q.attr.rq_psn, 101);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, qpn), 0); /* the last that has it */
	ck_assert_uint_eq(fx_dev->targets.count, 0);
}
END_TEST

/* One who closes it leaves it to the other; events are for both. */
START_TEST(target__opened_by_two)
{
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_ERR};
	struct ring_ctrl_qp_attr bad = rtr_attr(0, 1);
	uint32_t xrcd, theirs, qpn = 0;

	xrcd = file_xrcd();
	ck_assert_int_eq(create_target(xrcd, &qpn), 0);
	connect_target(qpn, 0x1234);
	second_client();
	change_places();
	theirs = file_xrcd();
	ck_assert_int_eq(modify(qpn, RING_QP_STATE, &a, NULL), -EINVAL); /* not open here */
	ck_assert_int_eq(open_qp(theirs, qpn), 0);
	ck_assert_int_eq(modify(qpn, RTR_MASK, &bad, NULL), -EINVAL);
	ck_assert_int_eq(modify(qpn, RING_QP_STATE, &a, NULL), 0);
	change_places();
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, qpn), 0);
	ck_assert_uint_eq(fx_dev->targets.count, 1);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, qpn), -EINVAL);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, xrcd), 0);
	change_places();
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_XRCD, theirs), -EBUSY);
	fx_close(&cl); /* the last of the domain: it goes, and so does its target */
	change_places();
	fx_settle(1);
	while (fx_dev->xrcs.count != 0)
		fx_step();
	ck_assert_uint_eq(fx_dev->targets.count, 0);
}
END_TEST

START_TEST(create__what_does_not_fit)
{
	struct ring_ctrl_create_cq_req cq = {.entries = 64, .channel = NONE};
	struct ring_ctrl_create_cq_rep cqr;
	struct ring_ctrl_create_qp_req rc = {.type = RING_QPT_RC, .xrcd = NONE, .max_send_wr = 1,
		.max_send_sge = 1};
	struct ring_ctrl_create_qp_req target = {.type = RING_QPT_XRC_RECV, .pd = NONE,
		.send_cq = NONE, .recv_cq = NONE, .srqn = NONE};
	struct ring_ctrl_create_srq_rep srq;
	uint32_t pd = make_pd(), xrcd = file_xrcd(), qpn = 0;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CQ, &cq, &cqr), 0);
	ck_assert_int_eq(create_srq(pd, xrcd, NONE, &srq), -EINVAL);
	ck_assert_int_eq(create_srq(pd, NONE, cqr.cqn, &srq), -EINVAL);
	ck_assert_int_eq(create_srq(pd, xrcd, cqr.cqn, &srq), 0);
	rc.pd = pd;
	rc.send_cq = rc.recv_cq = cqr.cqn;
	rc.srqn = srq.srqn; /* no QP's: requests name it */
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &rc, NULL), -EINVAL);
	rc.srqn = NONE;
	rc.xrcd = xrcd;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &rc, NULL), -EINVAL);
	target.xrcd = NONE;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &target, NULL), -EINVAL);
	target.xrcd = xrcd;
	target.pd = pd;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &target, NULL), -EINVAL);
	ck_assert_int_eq(create_target(xrcd, &qpn), 0);
	fx_dev->cfg.quota_qps = 1;
	ck_assert_int_eq(create_target(xrcd, &qpn), -EDQUOT);
}
END_TEST

/* All goes at once, with a message under way. */
START_TEST(client_dies__with_all_of_it)
{
	struct receiver v;
	uint32_t xrcd = file_xrcd(), qpn = 0;
	struct pair p;

	make_receiver(&v, xrcd);
	make_initiator(&p);
	ck_assert_int_eq(create_target(xrcd, &qpn), 0);
	connect_target(qpn, p.qpn[0]);
	connect_initiator(&p, qpn);
	for (uint32_t i = 0; i < 4; i++)
		send_hello(&p, i, v.srq.srqn);
}
END_TEST

FX_MAIN("ctl_xrc", setup, teardown, domain__of_a_file, domain__by_token, send__between_clients,
	target__outlives_its_creator, target__opened_by_two, create__what_does_not_fit,
	client_dies__with_all_of_it)
