/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs and CQs through the socket: made, changed, used over the hairpin, destroyed. */
#include "ctl_objects.h"

START_TEST(objects__made_and_destroyed)
{
	struct pair p;

	make_pair(&p);
	ck_assert_uint_eq(p.cq.entries & (p.cq.entries - 1), 0);
	ck_assert_uint_ge(p.qp[0].max_send_wr, 16);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, p.pd), -EBUSY);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_CQ, p.cqn), -EBUSY);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p.qpn[i]), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p.qpn[0]), -EINVAL);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_CQ, p.cqn), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, p.pd), 0);
}
END_TEST

/* What the engine does not run is refused when it is asked for, and not first by the peer. */
START_TEST(create__refuses_other_types)
{
	struct ring_ctrl_create_qp_rep rep;
	struct pair p;
	struct ring_ctrl_create_qp_req qp = {
		.type = RING_QPT_RAW_PACKET, .srqn = RING_NO_HANDLE, .xrcd = RING_NO_HANDLE,
		.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
	};

	make_pair(&p);
	qp.pd = p.pd;
	qp.send_cq = qp.recv_cq = p.cqn;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &qp, &rep), -EOPNOTSUPP);
}
END_TEST

/* A SEND with inline data from one QP to the other: rings, bells, engine, hairpin, CQ. */
static int
one_more_qp(const struct pair *p)
{
	struct ring_ctrl_create_qp_req req = {.type = RING_QPT_RC, .pd = p->pd,
		.send_cq = p->cqn, .recv_cq = p->cqn, .srqn = RING_NO_HANDLE,
		.xrcd = RING_NO_HANDLE, .max_send_wr = 1, .max_recv_wr = 1,
		.max_send_sge = 1, .max_recv_sge = 1};
	struct ring_ctrl_create_qp_rep rep;

	return fx_call(&cl, RING_CTRL_CREATE_QP, &req, &rep);
}

/* The quota answers first: there is no number to be had here, which would be -ENOMEM. */
START_TEST(create__quota_before_a_number)
{
	struct roce_qpn_table *full = roce_qpn_table_create(16), *all = fx_dev->sh.qpns;
	uint32_t quota = fx_dev->cfg.quota_qps;
	struct pair p;

	make_pair(&p);
	for (int i = 0; i < 16; i++)
		ck_assert_uint_ne(roce_qpn_alloc(full), 0);
	ck_assert_uint_eq(roce_qpn_alloc(full), 0);
	fx_dev->sh.qpns = full;
	ck_assert_int_eq(one_more_qp(&p), -ENOMEM);
	fx_dev->cfg.quota_qps = 2;
	ck_assert_int_eq(one_more_qp(&p), -EDQUOT);
	fx_dev->sh.qpns = all;
	ck_assert_int_eq(one_more_qp(&p), -EDQUOT);
	fx_dev->cfg.quota_qps = quota;
	ck_assert_int_eq(one_more_qp(&p), 0);
	roce_qpn_table_free(full);
}
END_TEST

START_TEST(send__over_the_hairpin)
{
	struct ring_wqe w = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED | RING_WR_INLINE,
		.num_slots = 1, .inline_len = 5};
	struct ring_ctrl_reg_mr_rep mr;
	struct pair p;
	uint8_t *buf;

	make_pair(&p);
	buf = make_mem(4096);
	ck_assert_int_eq(reg_mr(p.pd, buf, 4096, RING_ACCESS_LOCAL_WRITE, &mr), 0);
	ck_assert_uint_eq(mr.how, RING_MR_ARENA);
	connect_pair(&p);
	post_recv(&p, 1, 0, buf, 4096, mr.lkey);
	memcpy(w.data, "hello", 5);
	post_send(&p, 0, 0, &w);
	ck_assert_uint_eq(wait_cqes(&p, 2)->qpn_status >> 24, 0);
	ck_assert_mem_eq(buf, "hello", 5);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, mr.lkey), 0);
}
END_TEST

/* B179: what was set comes back; what was not is zero (B098). */
START_TEST(query__tells_what_was_set)
{
	struct ring_ctrl_handle_req req;
	struct ring_ctrl_query_qp_rep q;
	struct pair p;

	make_pair(&p);
	req = (struct ring_ctrl_handle_req){.handle = p.qpn[0]};
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &req, &q), 0);
	ck_assert_uint_eq(q.attr.state, RING_QPS_RESET);
	ck_assert_uint_eq(q.attr.timeout, 0);
	ck_assert_uint_eq(q.worker, RING_NO_HANDLE);
	connect_pair(&p);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &req, &q), 0);
	ck_assert_uint_eq(q.attr.state, RING_QPS_RTS);
	ck_assert_uint_eq(q.attr.path_mtu, RING_MTU_1024);
	ck_assert_uint_eq(q.attr.dest_qpn, p.qpn[1]);
	ck_assert_uint_eq(q.attr.timeout, 14);
	ck_assert_uint_eq(q.attr.retry_cnt, 7);
	ck_assert_uint_eq(q.attr.rnr_retry, 7);
	ck_assert_uint_eq(q.attr.min_rnr_timer, 12);
	ck_assert_uint_eq(q.attr.rq_psn, 100);
	ck_assert_uint_eq(q.attr.sq_psn, 100);
	ck_assert_uint_lt(q.worker, FX_WORKERS);
}
END_TEST

START_TEST(modify__refused_leaves_the_state)
{
	struct ring_ctrl_qp_attr a;
	uint32_t state = 99;
	struct pair p;

	make_pair(&p);
	a = rtr_attr(p.qpn[1], 1);
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, &state), -EINVAL); /* from RESET */
	ck_assert_uint_eq(state, RING_QPS_RESET);
	ck_assert_int_eq(to_init(p.qpn[0]), 0);
	a.av.sgid_index = 9; /* no such GID */
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, &state), -EINVAL);
	ck_assert_uint_eq(state, RING_QPS_INIT);
	a.av.sgid_index = 0; /* an IPv6 address, to an IPv4 one: B186 */
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, &state), -EINVAL);
	a = rtr_attr(p.qpn[1], 1);
	a.av.dgid.raw[12] = 10; /* 10.0.2.1: no route */
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, &state), -ENETUNREACH);
	a = rtr_attr(p.qpn[1], 1);
	a.max_dest_rd_atomic = ROCE_MAX_RD_ATOMIC + 1;
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, &state), -EINVAL);
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK | RING_QP_CAP, &a, &state), -EINVAL);
	ck_assert_uint_eq(state, RING_QPS_INIT);
}
END_TEST

/* B185: nobody answers for an address of the subnet; the QP stays as it is, others go on. */
START_TEST(modify__unresolved_neighbour)
{
	struct ring_ctrl_qp_attr a;
	uint32_t state = 99;
	struct pair p;

	make_pair(&p);
	ck_assert_int_eq(to_init(p.qpn[0]), 0);
	a = rtr_attr(p.qpn[1], 77);
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, &state), -EHOSTUNREACH);
	ck_assert_uint_eq(state, RING_QPS_INIT);
}
END_TEST

/* The first of three requests waits for a neighbour; a destroy behind it does not. */
START_TEST(destroy__while_a_modify_waits)
{
	struct ring_ctrl_modify_qp_req req = {.mask = RTR_MASK};
	struct ring_ctrl_handle_req end;
	struct pair p;

	make_pair(&p);
	ck_assert_int_eq(to_init(p.qpn[0]), 0);
	req.qpn = end.handle = p.qpn[0];
	end.reserved = 0;
	req.attr = rtr_attr(p.qpn[1], 78);
	fx_send(&cl, RING_CTRL_MODIFY_QP, 1000, &req, 1);
	fx_send(&cl, RING_CTRL_DESTROY_QP, 1001, &end, 1);
	ck_assert(fx_wait(&cl, 1000));
	ck_assert_int_eq(*(int32_t *)ring_ctrl_body(cl.buf), -ECANCELED);
	ck_assert(fx_wait(&cl, 1001));
	ck_assert_int_eq(*(int32_t *)ring_ctrl_body(cl.buf), 0);
}
END_TEST

/* RESET lets the QP go from its worker; it can be used again. */
START_TEST(modify__reset_and_again)
{
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_RESET};
	struct pair p;

	make_pair(&p);
	for (int turn = 0; turn < 3; turn++) {
		uint32_t state;

		connect_pair(&p);
		for (int i = 0; i < 2; i++) {
			ck_assert_int_eq(modify(p.qpn[i], RING_QP_STATE, &a, &state), 0);
			ck_assert_uint_eq(state, RING_QPS_RESET);
		}
		ck_assert_uint_eq(fx_dev->qps_on[0] + fx_dev->qps_on[1], 0);
	}
}
END_TEST

/* B095: destroyed in every state, bound or not. */
START_TEST(destroy__in_every_state)
{
	for (int state = 0; state < 5; state++) {
		struct ring_ctrl_qp_attr a = {.state = RING_QPS_ERR};
		struct pair p;

		make_pair(&p);
		if (state == 1 || state == 4)
			ck_assert_int_eq(to_init(p.qpn[0]), 0);
		if (state == 2)
			connect_pair(&p);
		if (state == 3) {
			connect_pair(&p);
			a.state = RING_QPS_SQD;
		}
		if (state >= 3)
			ck_assert_int_eq(modify(p.qpn[0], RING_QP_STATE, &a, NULL), 0);
		for (int i = 0; i < 2; i++)
			ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p.qpn[i]), 0);
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_CQ, p.cqn), 0);
	}
}
END_TEST

/* The client is told where each new ring is before the worker sends it there. */
START_TEST(cq__resize)
{
	struct ring_ctrl_resize_cq_req req = {.entries = 1000};
	struct ring_ctrl_resize_cq_rep rep;
	struct ring_cq_daemon *cqd;
	struct ring_cq_client *words;
	const struct ring_cqe *cqe;
	struct pair p;

	make_pair(&p);
	req.cqn = p.cqn;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_RESIZE_CQ, &req, &rep), 0); /* no sub-ring yet */
	ck_assert_uint_eq(rep.entries, 1024);
	connect_pair(&p);
	cqd = fx_ptr(&cl, p.cq.daemon);
	words = fx_ptr(&cl, p.cq.client);
	ck_assert_uint_eq(cqd->sub[0].log_entries, 10);
	req.entries = 100;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_RESIZE_CQ, &req, &rep), 0);
	cqe = fx_ptr(&cl, RING_LOC(cqd->sub[0].arena, cqd->sub[0].offset));
	ck_assert_uint_ne(atomic_load(&cqe[0].tag) & RING_CQE_SWITCH, 0);
	ck_assert_uint_eq(cqd->sub[RING_MAX_WORKERS].log_entries, 7);
	ck_assert_uint_eq(cqd->sub[RING_MAX_WORKERS].generation, 1);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_RESIZE_CQ, &req, &rep), -EBUSY);
	atomic_store(&words->cons[cqd->sub[0].worker], ring_cq_switch_index(0, 127));
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_RESIZE_CQ, &req, &rep), 0);
	ck_assert_uint_eq(cqd->sub[0].generation, 2);
}
END_TEST

/* Nobody answers on the loop port, and the caller does not want to wait until that is certain. */
START_TEST(resolve__its_own_time_limit)
{
	struct ring_ctrl_resolve_req req = {.timeout_ms = 1};
	uint64_t before = ctl_now(fx_dev);
	struct ring_ctrl_resolve_rep rep;

	req.av = rtr_attr(0, 99).av;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_RESOLVE, &req, &rep), -ETIMEDOUT);
	ck_assert_uint_ge(ctl_now(fx_dev) - before, 1000000);
	ck_assert_uint_eq(fx_dev->neigh_due, UINT64_MAX);
}
END_TEST

/* Not to fewer entries than the client has not taken. */
START_TEST(cq__resize_below_what_is_in_use)
{
	struct ring_ctrl_resize_cq_req req;
	struct ring_ctrl_resize_cq_rep rep;
	struct ring_ctrl_reg_mr_rep mr;
	struct ring_wqe w = {.opcode = RING_WR_RDMA_WRITE, .flags = RING_WR_SIGNALED,
		.num_slots = 1, .num_sge = 1};
	struct ring_cq_client *words;
	struct pair p;
	uint8_t *mem;

	make_pair(&p);
	connect_pair(&p);
	mem = make_mem(128);
	ck_assert_int_eq(reg_mr(p.pd, mem, 128,
				 RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE, &mr), 0);
	w.rkey = mr.rkey;
	w.remote_addr = (uintptr_t)mem + 64;
	w.sge[0] = (struct ring_sge){.addr = (uintptr_t)mem, .length = 64, .lkey = mr.lkey};
	for (uint32_t i = 0; i < 5; i++) {
		post_send(&p, 0, i, &w);
		wait_cqes(&p, i + 1);
	}
	req = (struct ring_ctrl_resize_cq_req){.cqn = p.cqn, .entries = 4};
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_RESIZE_CQ, &req, &rep), -EINVAL);
	words = fx_ptr(&cl, p.cq.client);
	for (int i = 0; i < FX_WORKERS; i++)
		atomic_store(&words->cons[i], 1);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_RESIZE_CQ, &req, &rep), 0);
}
END_TEST

/*
 * A thread of the client posts before it knows of RESET: these slots are no requests, neither
 * of this connection nor of the next.
 */
START_TEST(modify__reset_beside_posts)
{
	struct ring_wqe junk = {.num_slots = 0}, w = {.num_slots = 1, .opcode = RING_WR_SEND};
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_RESET};
	const struct ring_cqe *cqe;
	struct pair p;

	make_pair(&p);
	connect_pair(&p);
	for (int i = 0; i < 2; i++) {
		struct ring_rwqe *r = (struct ring_rwqe *)fx_ptr(&cl, p.qp[i].rq);

		ck_assert_int_eq(modify(p.qpn[i], RING_QP_STATE, &a, NULL), 0);
		post_send(&p, i, 0, &junk);
		post_recv(&p, i, 0, NULL, 0, 0);
		memset(r, 0, sizeof(*r));
	}
	connect_pair(&p);
	post_recv(&p, 1, 1, NULL, 0, 0);
	((struct ring_rwqe *)fx_ptr(&cl, p.qp[1].rq))[1].num_sge = 0;
	w.flags = RING_WR_SIGNALED;
	post_send(&p, 0, 1, &w);
	cqe = wait_cqes(&p, 2);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(cqe[-i].wqe_index, 1);
		ck_assert_uint_eq(cqe[-i].qpn_status >> 24, 0);
	}
}
END_TEST

static void
connect_uc(struct pair *p)
{
	const uint32_t rtr = RTR_MASK &
		~(uint32_t)(RING_QP_MAX_DEST_RD_ATOMIC | RING_QP_MIN_RNR_TIMER);
	struct ring_ctrl_qp_attr a;

	for (int i = 0; i < 2; i++) {
		a = rtr_attr(p->qpn[1 - i], 1);
		ck_assert_int_eq(to_init(p->qpn[i]), 0);
		ck_assert_int_eq(modify(p->qpn[i], RTR_MASK, &a, NULL), -EINVAL);
		ck_assert_int_eq(modify(p->qpn[i], rtr, &a, NULL), 0);
	}
	a = (struct ring_ctrl_qp_attr){.state = RING_QPS_RTS, .sq_psn = 100};
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(to_rts(p->qpn[i]), -EINVAL); /* as RC */
		ck_assert_int_eq(
			modify(p->qpn[i], RING_QP_STATE | RING_QP_SQ_PSN, &a, NULL), 0);
	}
}

/* UC has fewer attributes, and SQE, out of which RTS leads. */
START_TEST(uc__over_the_hairpin)
{
	struct ring_wqe w = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED | RING_WR_INLINE,
		.num_slots = 1, .inline_len = 5};
	struct ring_wqe bad = {.opcode = RING_WR_RDMA_READ, .num_slots = 1};
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_RTS, .cur_state = RING_QPS_SQE};
	struct ring_ctrl_reg_mr_rep mr;
	struct pair p;
	uint8_t *buf;

	make_pair_of(&p, make_pd(), RING_QPT_UC);
	buf = make_mem(4096);
	ck_assert_int_eq(reg_mr(p.pd, buf, 4096, RING_ACCESS_LOCAL_WRITE, &mr), 0);
	connect_uc(&p);
	post_recv(&p, 1, 0, buf, 4096, mr.lkey);
	post_send(&p, 0, 0, &bad);
	ck_assert_uint_eq(wait_cqes(&p, 1)->qpn_status >> 24, WC_LOC_QP_OP_ERR);
	ck_assert_int_eq(modify(p.qpn[0], RING_QP_STATE | RING_QP_CUR_STATE, &a, NULL), 0);
	memcpy(w.data, "hello", 5);
	post_send(&p, 0, 1, &w);
	ck_assert_uint_eq(wait_cqes(&p, 3)->qpn_status >> 24, 0);
	ck_assert_mem_eq(buf, "hello", 5);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, mr.lkey), 0);
}
END_TEST

FX_MAIN("ctl_qp", setup, teardown, objects__made_and_destroyed, create__refuses_other_types,
	create__quota_before_a_number, send__over_the_hairpin,
	query__tells_what_was_set, modify__refused_leaves_the_state,
	modify__unresolved_neighbour, destroy__while_a_modify_waits, modify__reset_and_again,
	modify__reset_beside_posts,
	destroy__in_every_state, cq__resize, uc__over_the_hairpin,
	resolve__its_own_time_limit, cq__resize_below_what_is_in_use)
