/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects through the socket: made, changed, used over the hairpin, destroyed, and left nothing. */
#include "ctl_fixture.h"

static struct fx_client cl;

struct pair {
	uint32_t pd, cqn, qpn[2];
	struct ring_ctrl_create_qp_rep qp[2];
	struct ring_ctrl_create_cq_rep cq;
};

static void
setup(void)
{
	struct worker_config cfg = fx_config();

	fx_start(&cfg);
	fx_connect(&cl);
	ck_assert_int_eq(fx_hello(&cl), 0);
}

static void
teardown(void)
{
	fx_close(&cl);
	fx_settle(0);
	ck_assert_uint_eq(mr_table_count(fx_dev->sh.mrs), 0);
	ck_assert_uint_eq(roce_qpn_count(fx_dev->sh.qpns), 0);
	for (int i = 0; i < CTL_KINDS; i++)
		ck_assert_uint_eq(fx_dev->objs[i].count, 0);
	ck_assert(LIST_EMPTY(&fx_dev->users));
	ck_assert_uint_eq(rte_mempool_in_use_count(fx_pool), 0);
	worker_device_destroy(fx_dev);
}

static uint32_t
make_pd(void)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_handle_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_PD, &req, &rep), 0);
	return rep.handle;
}

static void
make_pair(struct pair *p)
{
	struct ring_ctrl_create_cq_req cq = {.entries = 64, .channel = RING_NO_HANDLE};

	p->pd = make_pd();
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CQ, &cq, &p->cq), 0);
	p->cqn = p->cq.cqn;
	for (int i = 0; i < 2; i++) {
		struct ring_ctrl_create_qp_req qp = {
			.type = RING_QPT_RC,
			.pd = p->pd,
			.send_cq = p->cqn,
			.recv_cq = p->cqn,
			.srqn = RING_NO_HANDLE,
			.xrcd = RING_NO_HANDLE,
			.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline = 32,
			.user_handle = 77,
		};

		ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &qp, &p->qp[i]), 0);
		p->qpn[i] = p->qp[i].qpn;
	}
}

static int
modify(uint32_t qpn, uint32_t mask, const struct ring_ctrl_qp_attr *attr, uint32_t *state)
{
	struct ring_ctrl_modify_qp_req req = {.qpn = qpn, .mask = mask, .attr = *attr};
	struct ring_ctrl_modify_qp_rep rep = {0};
	int err = fx_call(&cl, RING_CTRL_MODIFY_QP, &req, &rep);

	if (state != NULL)
		*state = rep.state;
	return err;
}

static int
to_init(uint32_t qpn)
{
	struct ring_ctrl_qp_attr a = {
		.state = RING_QPS_INIT,
		.port = 1,
		.access = RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ,
	};

	return modify(qpn,
		RING_QP_STATE | RING_QP_PORT | RING_QP_PKEY_INDEX | RING_QP_ACCESS_FLAGS, &a, NULL);
}

#define RTR_MASK \
	(RING_QP_STATE | RING_QP_AV | RING_QP_PATH_MTU | RING_QP_DEST_QPN | RING_QP_RQ_PSN | \
		RING_QP_MAX_DEST_RD_ATOMIC | RING_QP_MIN_RNR_TIMER)

static struct ring_ctrl_qp_attr
rtr_attr(uint32_t dest, uint8_t last_byte)
{
	struct ring_ctrl_qp_attr a = {
		.state = RING_QPS_RTR,
		.path_mtu = RING_MTU_1024,
		.dest_qpn = dest,
		.rq_psn = 100,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.av = {.port = 1, .is_global = 1, .sgid_index = 1, .hop_limit = 64},
	};
	const uint8_t v4[16] = {[10] = 0xff, 0xff, 192, 0, 2, last_byte};

	memcpy(a.av.dgid.raw, v4, sizeof(v4));
	return a;
}

static int
to_rts(uint32_t qpn)
{
	struct ring_ctrl_qp_attr a = {
		.state = RING_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = 100,
		.max_rd_atomic = 4,
	};

	return modify(qpn,
		RING_QP_STATE | RING_QP_TIMEOUT | RING_QP_RETRY_CNT | RING_QP_RNR_RETRY |
			RING_QP_SQ_PSN | RING_QP_MAX_QP_RD_ATOMIC,
		&a, NULL);
}

static void
connect_pair(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		struct ring_ctrl_qp_attr a = rtr_attr(p->qpn[1 - i], 1);

		ck_assert_int_eq(to_init(p->qpn[i]), 0);
		ck_assert_int_eq(modify(p->qpn[i], RTR_MASK, &a, NULL), 0);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(to_rts(p->qpn[i]), 0);
}

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

/* A SEND with inline data from one QP to the other: rings, bells, engine, hairpin, CQ. */
START_TEST(send__over_the_hairpin)
{
	struct ring_ctrl_alloc_mem_req mem = {.size = 4096, .align = 64};
	struct ring_ctrl_alloc_mem_rep memr;
	struct ring_ctrl_reg_mr_req mr = {.length = 4096, .access = RING_ACCESS_LOCAL_WRITE};
	struct ring_ctrl_reg_mr_rep mrr;
	struct ring_cq_daemon *cqd;
	struct ring_qp_client *words;
	struct ring_rwqe *r;
	struct ring_wqe *w;
	const struct ring_cqe *cqe;
	struct pair p;
	uint8_t *buf;
	bool done = false;

	make_pair(&p);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MEM, &mem, &memr), 0);
	buf = fx_ptr(&cl, memr.loc);
	mr.addr = mr.iova = (uintptr_t)buf;
	mr.pd = p.pd;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REG_MR, &mr, &mrr), 0);
	ck_assert_uint_eq(mrr.how, RING_MR_ARENA);
	connect_pair(&p);

	r = fx_ptr(&cl, p.qp[1].rq);
	*r = (struct ring_rwqe){.num_slots = 1, .num_sge = 1};
	r->sge[0] = (struct ring_sge){.addr = (uintptr_t)buf, .length = 4096, .lkey = mrr.lkey};
	words = fx_ptr(&cl, p.qp[1].client);
	atomic_store(&words->rq_tail, 1);
	w = fx_ptr(&cl, p.qp[0].sq);
	*w = (struct ring_wqe){.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED | RING_WR_INLINE,
		.num_slots = 1, .inline_len = 5};
	memcpy(w->data, "hello", 5);
	words = fx_ptr(&cl, p.qp[0].client);
	atomic_store(&words->sq_tail, 1);
	for (uint32_t i = 0; i < FX_WORKERS; i++)
		ring_bell_set(fx_ptr(&cl, cl.bells.chunk_loc[i]), p.qp[0].bell);
	cqd = fx_ptr(&cl, p.cq.daemon);
	ck_assert_uint_ge(atomic_load(&cqd->num_sub), 1);
	cqe = fx_ptr(&cl, RING_LOC(cqd->sub[0].arena, cqd->sub[0].offset));
	for (int i = 0; i < 10000 && !done; i++) {
		fx_step();
		done = atomic_load(&cqe[1].tag) & RING_CQE_PHASE;
	}
	ck_assert(done);
	ck_assert_uint_eq(cqe[0].qpn_status >> 24, 0);
	ck_assert_uint_eq(cqe[1].qpn_status >> 24, 0);
	ck_assert_mem_eq(buf, "hello", 5);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, mrr.lkey), 0);
}
END_TEST

FX_MAIN("ctl_qp", setup, teardown, objects__made_and_destroyed, send__over_the_hairpin)
