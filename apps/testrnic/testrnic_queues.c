/* SPDX-License-Identifier: BSD-3-Clause */
/* Making and connecting the queues of a load, and the memory under it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "testrnic_load_priv.h"

#define RNR_FOREVER 7

static uint32_t
mtu_code(uint32_t bytes)
{
	uint32_t code = RNIC_MTU_256;

	while (code < RNIC_MTU_4096 && 128u << (code + 1) <= bytes)
		code++;
	return code;
}

static bool
is_ipv4(const union rnic_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

/** The first IPv4 address, else the first of any kind. */
static int
find_gid(struct load_end *e)
{
	struct rnic_port_attr port;
	struct rnic_gid_entry g;
	bool found = false;
	int rc = rnic_query_port(e->ctx, 1, &port);

	for (uint32_t i = 0; rc == 0 && i < port.gid_tbl_len && i < 256; i++) {
		if (rnic_query_gid(e->ctx, 1, i, &g) != 0 || (found && !is_ipv4(&g.gid)))
			continue;
		found = true;
		e->gid = g.gid;
		e->gid_index = (uint8_t)i;
		if (is_ipv4(&g.gid))
			break;
	}
	return rc < 0 ? rc : found ? 0 : -ENODATA;
}

int
load_end_open(struct load_end *e, struct rnic_context *ctx, size_t len)
{
	void *p = NULL;
	int rc;

	*e = (struct load_end){ .ctx = ctx, .len = len };
	rc = find_gid(e);
	if (rc == 0)
		rc = rnic_alloc_pd(ctx, &e->pd);
	if (rc == 0)
		rc = rnic_alloc(ctx, len, 4096, &p);
	if (rc == 0) {
		e->buf = p;
		rc = rnic_reg_mr(e->pd, p, len,
				 RNIC_ACCESS_LOCAL_WRITE | RNIC_ACCESS_REMOTE_WRITE |
					 RNIC_ACCESS_REMOTE_READ, &e->mr);
	}
	if (rc < 0)
		load_end_close(e);
	return rc;
}

void
load_end_close(struct load_end *e)
{
	if (e->mr)
		rnic_dereg_mr(e->mr);
	if (e->buf)
		rnic_free(e->ctx, e->buf);
	if (e->pd)
		rnic_dealloc_pd(e->pd);
	*e = (struct load_end){ 0 };
}

/* ---- queues ---------- */

/** Twice what the sender may have outstanding: an acknowledgement may outrun our repost. */
uint32_t
load_recv_depth(const struct load *l)
{
	return l->spec.op == LOAD_SEND ? 2 * l->spec.depth : 0;
}

static int
make(struct load *l, struct load_queues *q)
{
	uint32_t n = l->spec.qps, recvs = q == &l->rx ? load_recv_depth(l) : 0;
	struct rnic_cq_attr ca = { .cqe = n * (l->spec.depth + recvs),
				   .flags = RNIC_THREAD_UNSAFE };
	struct rnic_qp_init_attr qa = {
		.cap = { .max_send_wr = l->spec.depth, .max_recv_wr = recvs ? recvs : 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = RNIC_QPT_RC,
		.flags = RNIC_THREAD_UNSAFE,
	};
	int rc;

	q->qp = calloc(n, sizeof(*q->qp));
	if (q->qp == NULL)
		return -ENOMEM;
	rc = rnic_create_cq(q->end->ctx, &ca, &q->cq);
	if (rc < 0)
		return rc;
	qa.send_cq = qa.recv_cq = q->cq;
	rc = rnic_create_qps(q->end->pd, &qa, q->qp, (int)n);
	return rc < 0 ? rc : rc < (int)n ? -ENOMEM : 0;
}

static int
to_init(struct load *l, struct load_queues *q)
{
	struct rnic_qp_attr a = {
		.qp_state = RNIC_QPS_INIT, .port_num = 1,
		.qp_access_flags = RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ,
	};
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < l->spec.qps; i++)
		rc = rnic_modify_qp(q->qp[i], &a, RNIC_QP_STATE | RNIC_QP_PKEY_INDEX |
				    RNIC_QP_PORT | RNIC_QP_ACCESS_FLAGS);
	return rc;
}

/** PSNs are made from the QPNs: both sides know them. */
static int
to_rts(struct load *l, const struct load_queues *q, const struct load_queues *peer, uint32_t i)
{
	struct rnic_qp_attr a = {
		.qp_state = RNIC_QPS_RTR,
		.path_mtu = mtu_code(l->spec.mtu),
		.dest_qp_num = peer->qp[i]->qp_num,
		.rq_psn = peer->qp[i]->qp_num ^ 0x5a5a5a,
		.sq_psn = q->qp[i]->qp_num ^ 0x5a5a5a,
		.max_dest_rd_atomic = 16, .max_rd_atomic = 16,
		.min_rnr_timer = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = RNR_FOREVER,
		.ah_attr = { .dgid = peer->end->gid, .sgid_index = q->end->gid_index,
			     .hop_limit = 64, .port_num = 1, .is_global = 1 },
	};
	int rc = rnic_modify_qp(q->qp[i], &a, RNIC_QP_STATE | RNIC_QP_AV | RNIC_QP_PATH_MTU |
				RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN |
				RNIC_QP_MAX_DEST_RD_ATOMIC | RNIC_QP_MIN_RNR_TIMER);

	if (rc < 0)
		return rc;
	a.qp_state = RNIC_QPS_RTS;
	return rnic_modify_qp(q->qp[i], &a, RNIC_QP_STATE | RNIC_QP_TIMEOUT |
			      RNIC_QP_RETRY_CNT | RNIC_QP_RNR_RETRY | RNIC_QP_SQ_PSN |
			      RNIC_QP_MAX_QP_RD_ATOMIC);
}

int
load_queues_open(struct load *l)
{
	int rc = make(l, &l->tx);

	if (rc == 0)
		rc = make(l, &l->rx);
	if (rc == 0)
		rc = to_init(l, &l->tx);
	if (rc == 0)
		rc = to_init(l, &l->rx);
	if (rc == 0)
		rc = load_post_recvs(l);
	for (uint32_t i = 0; rc == 0 && i < l->spec.qps; i++) {
		rc = to_rts(l, &l->rx, &l->tx, i);
		if (rc == 0)
			rc = to_rts(l, &l->tx, &l->rx, i);
	}
	return rc;
}

static void
unmake(struct load *l, struct load_queues *q)
{
	for (uint32_t i = 0; q->qp && i < l->spec.qps; i++)
		if (q->qp[i])
			rnic_destroy_qp(q->qp[i]);
	if (q->cq)
		rnic_destroy_cq(q->cq);
	free(q->qp);
}

void
load_queues_close(struct load *l)
{
	unmake(l, &l->tx);
	unmake(l, &l->rx);
}

/* ---- receives ---------- */

bool
load_prep_recv(struct load *l, uint32_t qp, uint64_t n)
{
	struct rnic_rwqe *w = rnic_rq_get(l->rx.qp[qp], qp, 1);

	if (w == NULL)
		return false;
	rnic_prep_recv_sge(l->rx.qp[qp], w, (uintptr_t)load_slot(l, &l->rx, qp, n),
			   l->spec.size, l->rx.end->mr->lkey);
	return true;
}

int
load_post_recvs(struct load *l)
{
	for (uint32_t q = 0; q < l->spec.qps && load_recv_depth(l); q++) {
		for (uint64_t n = 0; n < load_recv_depth(l); n++)
			if (!load_prep_recv(l, q, n))
				return -ENOMEM;
		rnic_rq_submit(l->rx.qp[q]);
	}
	return 0;
}
