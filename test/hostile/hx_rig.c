/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of an honest session, made one by one, and its traffic. */
#include "hx_rig.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ALL_ACCESS                                                                                 \
	(RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ |            \
	 RING_ACCESS_REMOTE_ATOMIC)

int
hx_alloc_pd(struct hx *h, uint32_t *pd)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_handle_rep rep;
	int ret = hx_call(h, RING_CTRL_ALLOC_PD, &req, &rep, sizeof(rep));

	if (!ret)
		*pd = rep.handle;
	return ret;
}

int
hx_alloc_mem(struct hx *h, uint64_t size, ring_loc_t *loc, void **addr)
{
	struct ring_ctrl_alloc_mem_req req = {.size = size, .align = 4096};
	struct ring_ctrl_alloc_mem_rep rep;
	int ret = hx_call(h, RING_CTRL_ALLOC_MEM, &req, &rep, sizeof(rep));

	if (ret)
		return ret;
	*loc = rep.loc;
	*addr = hx_at(h, rep.loc, size);
	return *addr ? 0 : -EPROTO;
}

int
hx_reg_mr(struct hx *h, uint32_t pd, const void *addr, uint64_t length, uint32_t access,
	  uint32_t *key, uint32_t *how)
{
	struct ring_ctrl_reg_mr_req req = {
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = (uintptr_t)addr,
		.access = access,
		.pd = pd,
	};
	struct ring_ctrl_reg_mr_rep rep;
	int ret = hx_call(h, RING_CTRL_REG_MR, &req, &rep, sizeof(rep));

	if (ret)
		return ret;
	*key = rep.lkey;
	if (how)
		*how = rep.how;
	return 0;
}

int
hx_create_cq(struct hx *h, uint32_t entries, uint32_t channel, struct hx_cq *cq)
{
	struct ring_ctrl_create_cq_req req = {.entries = entries, .channel = channel};
	struct ring_ctrl_create_cq_rep rep;
	int ret = hx_call(h, RING_CTRL_CREATE_CQ, &req, &rep, sizeof(rep));

	if (ret)
		return ret;
	*cq = (struct hx_cq){
		.cqn = rep.cqn,
		.client = hx_at(h, rep.client, sizeof(*cq->client)),
		.daemon = hx_at(h, rep.daemon, sizeof(*cq->daemon)),
	};
	return cq->client && cq->daemon ? 0 : -EPROTO;
}

int
hx_create_qp(struct hx *h, uint32_t pd, uint32_t cqn, uint32_t depth, struct hx_qp *qp)
{
	return hx_create_qp_srq(h, pd, cqn, depth, RING_NO_HANDLE, qp);
}

int
hx_create_qp_srq(struct hx *h, uint32_t pd, uint32_t cqn, uint32_t depth, uint32_t srqn,
		 struct hx_qp *qp)
{
	return hx_create_qp_type(h, RING_QPT_RC, pd, cqn, depth, srqn, qp);
}

int
hx_create_qp_type(struct hx *h, uint8_t type, uint32_t pd, uint32_t cqn, uint32_t depth,
		  uint32_t srqn, struct hx_qp *qp)
{
	struct ring_ctrl_create_qp_req req = {
		.type = type,
		.max_inline = 64,
		.pd = pd,
		.send_cq = cqn,
		.recv_cq = cqn,
		.srqn = srqn,
		.xrcd = RING_NO_HANDLE,
		.max_send_wr = depth,
		.max_recv_wr = depth,
		.max_send_sge = 2,
		.max_recv_sge = 2,
	};
	struct ring_ctrl_create_qp_rep rep;
	int ret = hx_call(h, RING_CTRL_CREATE_QP, &req, &rep, sizeof(rep));

	if (ret)
		return ret;
	*qp = (struct hx_qp){
		.qpn = rep.qpn,
		.bell = rep.bell,
		.client = hx_at(h, rep.client, sizeof(*qp->client)),
		.daemon = hx_at(h, rep.daemon, sizeof(*qp->daemon)),
		.sq = {.slots = hx_at(h, rep.sq, (uint64_t)RING_SLOT_SIZE << rep.log_sq_slots),
		       .mask = (1u << rep.log_sq_slots) - 1},
	};
	if (rep.rq != RING_NO_LOC) {
		qp->rq.slots = hx_at(h, rep.rq, (uint64_t)RING_SLOT_SIZE << rep.log_rq_slots);
		qp->rq.mask = (1u << rep.log_rq_slots) - 1;
	}
	if (!qp->client || !qp->daemon || !qp->sq.slots ||
	    (rep.rq != RING_NO_LOC && !qp->rq.slots))
		return -EPROTO;
	qp->sq.shared_tail = &qp->client->sq_tail;
	qp->rq.shared_tail = &qp->client->rq_tail;
	return 0;
}

int
hx_find_av(struct hx *h, struct ring_ctrl_av *av)
{
	int found = -ENODATA;

	for (uint32_t i = 0; i < 16; i++) {
		struct ring_ctrl_query_gid_req req = {.port = 1, .index = i};
		struct ring_ctrl_query_gid_rep rep;
		int ret = hx_call(h, RING_CTRL_QUERY_GID, &req, &rep, sizeof(rep));

		if (ret == -ENOTCONN || ret == -ETIMEDOUT)
			return ret;
		if (ret)
			continue;
		*av = (struct ring_ctrl_av){
			.dgid = rep.gid,
			.sgid_index = (uint8_t)i,
			.port = 1,
			.is_global = 1,
		};
		found = 0;
	}
	return found;
}

struct ring_ctrl_modify_qp_req
hx_modify_req(const struct hx_qp *qp, uint32_t peer, const struct ring_ctrl_av *av,
	      unsigned int state)
{
	static const uint32_t masks[] = {
		[RING_QPS_INIT] = RING_QP_STATE | RING_QP_PKEY_INDEX | RING_QP_PORT |
				  RING_QP_ACCESS_FLAGS,
		[RING_QPS_RTR] = RING_QP_STATE | RING_QP_AV | RING_QP_PATH_MTU |
				 RING_QP_DEST_QPN | RING_QP_RQ_PSN |
				 RING_QP_MAX_DEST_RD_ATOMIC | RING_QP_MIN_RNR_TIMER,
		[RING_QPS_RTS] = RING_QP_STATE | RING_QP_TIMEOUT | RING_QP_RETRY_CNT |
				 RING_QP_RNR_RETRY | RING_QP_SQ_PSN | RING_QP_MAX_QP_RD_ATOMIC,
	};
	struct ring_ctrl_modify_qp_req m = {
		.qpn = qp->qpn,
		.mask = state <= RING_QPS_RTS && masks[state] ? masks[state] : RING_QP_STATE,
		.attr = {
			.av = *av,
			.access = ALL_ACCESS,
			.dest_qpn = peer,
			.rq_psn = peer & 0xffffff,
			.sq_psn = qp->qpn & 0xffffff,
			.state = (uint8_t)state,
			.path_mtu = RING_MTU_1024,
			.port = 1,
			.timeout = 8,
			.retry_cnt = 3,
			.rnr_retry = 3,
			.min_rnr_timer = 1,
			.max_rd_atomic = 4,
			.max_dest_rd_atomic = 4,
		},
	};

	return m;
}

int
hx_connect_qp(struct hx *h, struct hx_qp *qp, uint32_t peer, const struct ring_ctrl_av *av)
{
	for (unsigned int s = RING_QPS_INIT; s <= RING_QPS_RTS; s++) {
		struct ring_ctrl_modify_qp_req m = hx_modify_req(qp, peer, av, s);
		int ret = hx_call(h, RING_CTRL_MODIFY_QP, &m, NULL, 0);

		if (ret)
			return ret;
	}
	return 0;
}

int
hx_query_state(struct hx *h, uint32_t qpn)
{
	struct ring_ctrl_handle_req req = {.handle = qpn};
	struct ring_ctrl_query_qp_rep rep;
	int ret = hx_call(h, RING_CTRL_QUERY_QP, &req, &rep, sizeof(rep));

	return ret ? ret : rep.attr.state;
}

int
hx_rig_open_bare(struct hx_rig *r, const char *path)
{
	void *mem;
	int ret = hx_open(&r->h, path);

	r->channel = RING_NO_HANDLE;
	if (!ret)
		ret = hx_alloc_pd(&r->h, &r->pd);
	if (!ret)
		ret = hx_create_cq(&r->h, 4 * HX_RIG_DEPTH, RING_NO_HANDLE, &r->cq);
	if (!ret)
		ret = hx_alloc_mem(&r->h, HX_RIG_BYTES, &r->mem_loc, &mem);
	if (ret)
		return ret;
	r->mem = mem;
	ret = hx_reg_mr(&r->h, r->pd, mem, HX_RIG_BYTES, ALL_ACCESS, &r->key, NULL);
	return ret ? ret : hx_find_av(&r->h, &r->av);
}

int
hx_rig_open(struct hx_rig *r, const char *path)
{
	int ret = hx_rig_open_bare(r, path);

	for (int i = 0; i < 2 && !ret; i++)
		ret = hx_create_qp(&r->h, r->pd, r->cq.cqn, HX_RIG_DEPTH, &r->qp[i]);
	for (int i = 0; i < 2 && !ret; i++)
		ret = hx_connect_qp(&r->h, &r->qp[i], r->qp[!i].qpn, &r->av);
	return ret;
}

void
hx_rig_close(struct hx_rig *r)
{
	hx_close(&r->h);
}

void
hx_ring(struct hx *h, const struct hx_qp *qp)
{
	uint32_t w = ring_bell_worker(qp->daemon);
	uint64_t one = 1;

	if (w >= h->num_workers || !h->bell[w] || qp->bell >= RING_BELL_SLOTS)
		return;
	ring_bell_set(h->bell[w], qp->bell);
	if (w < h->num_kicks && h->bell_daemon[w] &&
	    atomic_load(&h->bell_daemon[w]->need_kick) != 0 &&
	    write(h->kick[w], &one, sizeof(one)) < 0)
		return;
}

void
hx_post(struct hx_rig *r, struct hx_qp *qp, const struct ring_wqe *w)
{
	memcpy(ring_wq_slot(&qp->sq, qp->sq.tail), w, sizeof(*w));
	qp->sq.tail++;
	ring_wq_publish(&qp->sq);
	if (ring_bell_needed(qp->daemon))
		hx_ring(&r->h, qp);
}

void
hx_post_recv(struct hx_rig *r, struct hx_qp *qp, uint64_t addr, uint32_t len, uint32_t key)
{
	struct ring_rwqe w = {
		.num_slots = 1,
		.num_sge = 1,
		.sge[0] = {.addr = addr, .length = len, .lkey = key},
	};

	memcpy(ring_wq_slot(&qp->rq, qp->rq.tail), &w, sizeof(w));
	qp->rq.tail++;
	ring_wq_publish(&qp->rq);
	if (ring_bell_needed_recv(qp->daemon))
		hx_ring(&r->h, qp);
}

struct ring_wqe
hx_write(const struct hx_rig *r, uint32_t from, uint32_t to, uint32_t len)
{
	struct ring_wqe w = {
		.opcode = RING_WR_RDMA_WRITE,
		.flags = RING_WR_SIGNALED,
		.num_slots = 1,
		.num_sge = 1,
		.rkey = r->key,
		.remote_addr = (uintptr_t)r->mem + to,
	};

	w.sge[0] = (struct ring_sge){(uintptr_t)r->mem + from, len, r->key};
	return w;
}

/* Look at sub-rings that were made meanwhile. */
static void
find_subs(struct hx *h, struct hx_cq *cq)
{
	uint32_t n = atomic_load_explicit(&cq->daemon->num_sub, memory_order_acquire);

	while (cq->num_sub < n && cq->num_sub < RING_MAX_WORKERS) {
		const struct ring_cq_sub *s = &cq->daemon->sub[cq->num_sub];
		uint64_t bytes = sizeof(struct ring_cqe) << s->log_entries;
		void *ring = hx_at(h, RING_LOC(s->arena, s->offset), bytes);

		if (!ring || s->worker >= RING_MAX_WORKERS)
			return;
		cq->sub[cq->num_sub++] = (struct ring_cq_cons){
			.ring = ring,
			.shared = &cq->client->cons[s->worker],
			.mask = (1u << s->log_entries) - 1,
		};
	}
}

int
hx_poll(struct hx *h, struct hx_cq *cq, struct ring_cqe *out)
{
	find_subs(h, cq);
	for (uint32_t i = 0; i < cq->num_sub; i++) {
		const struct ring_cqe *e = ring_cq_peek(&cq->sub[i]);

		if (!e || (atomic_load(&e->tag) & RING_CQE_SWITCH))
			continue; /* who resizes follows by itself */
		memcpy(out, e, sizeof(*out));
		ring_cq_advance(&cq->sub[i]);
		ring_cq_release(&cq->sub[i]);
		return 1;
	}
	return 0;
}

int
hx_poll_wait(struct hx *h, struct hx_cq *cq, struct ring_cqe *out, int timeout_ms)
{
	uint64_t end = hx_now_ms() + (uint64_t)timeout_ms;

	while (!hx_poll(h, cq, out)) {
		struct ring_ctrl_hdr hdr;
		int ret = hx_receive(h, &hdr, 1);

		if (ret == -ENOTCONN)
			return ret;
		if (hx_now_ms() >= end)
			return -ETIMEDOUT;
	}
	return 0;
}
