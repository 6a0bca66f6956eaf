/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects for tests of the control thread: one client, `cl`, and what it makes. */
#ifndef CTL_OBJECTS_H
#define CTL_OBJECTS_H

#include <sys/eventfd.h>

#include "ctl_fixture.h"

static _Thread_local struct fx_client cl; /* a test may have threads that are clients */

struct pair {
	uint32_t pd, cqn, qpn[2];
	struct ring_ctrl_create_qp_rep qp[2];
	struct ring_ctrl_create_cq_rep cq;
};

static inline void
setup(void)
{
	struct worker_config cfg = fx_config();

	fx_start(&cfg);
	fx_connect(&cl);
	ck_assert_int_eq(fx_hello(&cl), 0);
}

/** Everything of every client is gone, and nothing of the device is left in use. */
static inline void
expect_clean(void)
{
	fx_settle(0);
	ck_assert_uint_eq(mr_table_count(fx_dev->sh.mrs), 0);
	ck_assert_uint_eq(roce_qpn_count(fx_dev->sh.qpns), 0);
	ck_assert_uint_eq(roce_qpn_count(fx_dev->sh.srqns), 0);
	for (int i = 0; i < CTL_KINDS; i++)
		ck_assert_uint_eq(fx_dev->objs[i].count, 0);
	ck_assert_uint_eq(fx_dev->domains.count, 0);
	ck_assert_uint_eq(fx_dev->exports.count, 0);
	ck_assert_uint_eq(fx_dev->xrcs.count, 0);
	ck_assert_uint_eq(fx_dev->xrc_files.count, 0);
	ck_assert_uint_eq(fx_dev->targets.count, 0);
	ck_assert(LIST_EMPTY(&fx_dev->users));
	fx_expect_no_packet();
	ck_assert_uint_eq(fx_dev->num_timewait, 0);
}

static inline void
teardown(void)
{
	fx_close(&cl);
	expect_clean();
	worker_device_destroy(fx_dev);
}

static inline uint32_t
make_pd(void)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_handle_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_PD, &req, &rep), 0);
	return rep.handle;
}

static inline void
make_pair_of(struct pair *p, uint32_t pd, uint8_t type)
{
	struct ring_ctrl_create_cq_req cq = {.entries = 64, .channel = RING_NO_HANDLE};

	p->pd = pd;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CQ, &cq, &p->cq), 0);
	p->cqn = p->cq.cqn;
	for (int i = 0; i < 2; i++) {
		struct ring_ctrl_create_qp_req qp = {
			.type = type,
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

static inline void
make_pair_in(struct pair *p, uint32_t pd)
{
	make_pair_of(p, pd, RING_QPT_RC);
}

static inline void
make_pair(struct pair *p)
{
	make_pair_in(p, make_pd());
}

static inline int
modify(uint32_t qpn, uint32_t mask, const struct ring_ctrl_qp_attr *attr, uint32_t *state)
{
	struct ring_ctrl_modify_qp_req req = {.qpn = qpn, .mask = mask, .attr = *attr};
	struct ring_ctrl_modify_qp_rep rep = {0};
	int err = fx_call(&cl, RING_CTRL_MODIFY_QP, &req, &rep);

	if (state != NULL)
		*state = rep.state;
	return err;
}

static inline int
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

static inline struct ring_ctrl_qp_attr
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

static inline int
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

static inline void
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

/** Application memory of a C arena and its address here. */
static inline uint8_t *
make_mem(uint64_t size)
{
	struct ring_ctrl_alloc_mem_req mem = {.size = size, .align = 64};
	struct ring_ctrl_alloc_mem_rep memr;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MEM, &mem, &memr), 0);
	return fx_ptr(&cl, memr.loc);
}

static inline int
reg_mr(uint32_t pd, const void *addr, uint64_t len, uint32_t access,
	struct ring_ctrl_reg_mr_rep *rep)
{
	struct ring_ctrl_reg_mr_req mr = {
		.addr = (uintptr_t)addr,
		.iova = (uintptr_t)addr,
		.length = len,
		.access = access,
		.pd = pd,
	};

	return fx_call(&cl, RING_CTRL_REG_MR, &mr, rep);
}

static inline void
post_recv(struct pair *p, int i, uint32_t index, const void *addr, uint32_t len, uint32_t lkey)
{
	struct ring_rwqe *r = (struct ring_rwqe *)fx_ptr(&cl, p->qp[i].rq) + index;
	struct ring_qp_client *words = fx_ptr(&cl, p->qp[i].client);

	*r = (struct ring_rwqe){.num_slots = 1, .num_sge = 1};
	r->sge[0] = (struct ring_sge){.addr = (uintptr_t)addr, .length = len, .lkey = lkey};
	atomic_store(&words->rq_tail, index + 1);
}

static inline void
post_send(struct pair *p, int i, uint32_t index, const struct ring_wqe *wqe)
{
	struct ring_wqe *w = (struct ring_wqe *)fx_ptr(&cl, p->qp[i].sq) + index;
	struct ring_qp_client *words = fx_ptr(&cl, p->qp[i].client);

	*w = *wqe;
	atomic_store(&words->sq_tail, index + 1);
	for (uint32_t j = 0; j < FX_WORKERS; j++) {
		ring_bell_set(fx_ptr(&cl, cl.bells.chunk_loc[j]), p->qp[i].bell);
		if (ring_kick_needed(fx_ptr(&cl, cl.bells.daemon_loc[j])))
			ck_assert_int_eq(eventfd_write(cl.fds[j], 1), 0);
	}
}

/** Step until the pair's CQ has `n` completions; the last one. */
static inline const struct ring_cqe *
wait_cqes(struct pair *p, uint32_t n)
{
	struct ring_cq_daemon *cqd = fx_ptr(&cl, p->cq.daemon);
	const struct ring_cqe *cqe =
		fx_ptr(&cl, RING_LOC(cqd->sub[0].arena, cqd->sub[0].offset));

	ck_assert_uint_ge(atomic_load(&cqd->num_sub), 1);
	while (!(atomic_load(&cqe[n - 1].tag) & RING_CQE_PHASE))
		fx_step();
	return &cqe[n - 1];
}

#endif /* CTL_OBJECTS_H */
