/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: making, many at once, and ending. */
#include <stdlib.h>

#include "client_priv.h"

#define OP(name) (1ull << RNIC_WR_##name)

/* IBV_DEVICE_*, as in verbs.h: what a device may do beyond its transport's least. */
static const struct {
	uint64_t caps; /* any of them */
	uint64_t opcodes;
} optional[] = {
	{1ull << 17 | 1ull << 23 | 1ull << 24, OP(BIND_MW)}, /* MEM_WINDOW, TYPE_2A, TYPE_2B */
	{1ull << 21, OP(FAST_REG)},			     /* MEM_MGT_EXTENSIONS */
	{1ull << 38 | 1ull << 39, OP(FLUSH)},		     /* FLUSH_GLOBAL, FLUSH_PERSISTENT */
	{1ull << 40, OP(ATOMIC_WRITE)},
};

uint64_t
client_opcodes_lacking(uint64_t device_caps)
{
	uint64_t lacking = 0;

	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		if (!(device_caps & optional[i].caps))
			lacking |= optional[i].opcodes;
	}
	return lacking;
}

/*
 * What the transport of a QP type can do (IBTA table 38; iWARP's limits are the daemon's), as
 * verbs_wr_info has it: SEND with invalidate is of reliable connections alone.
 */
static uint64_t
opcodes_of(uint32_t type)
{
	const uint64_t ud = OP(SEND) | OP(SEND_WITH_IMM);
	const uint64_t uc = ud | OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM) | OP(LOCAL_INV) |
		OP(BIND_MW) | OP(FAST_REG);
	const uint64_t xrc = uc | OP(RDMA_READ) | OP(ATOMIC_CMP_AND_SWP) |
		OP(ATOMIC_FETCH_AND_ADD) | OP(SEND_WITH_INV);

	switch (type) {
	case RNIC_QPT_RC:
		return xrc | OP(FLUSH) | OP(ATOMIC_WRITE);
	case RNIC_QPT_XRC_SEND:
		return xrc;
	case RNIC_QPT_UC:
		return uc;
	case RNIC_QPT_UD:
		return ud;
	case RNIC_QPT_RAW_PACKET:
		return OP(SEND);
	default:
		return 0;
	}
}

static bool
is_xrc(uint32_t type)
{
	return type == RNIC_QPT_XRC_SEND || type == RNIC_QPT_XRC_RECV;
}

static void
qp_release(struct client_obj *obj)
{
	struct client_qp *qp = CLIENT_OF(struct client_qp, obj, obj);

	free(qp->pub.sq.entries);
	free(qp->pub.rq.entries);
	free(qp);
}

/* A queue of 2^log slots at `loc`. Entries begin with an index that none of theirs can have. */
static int
wq_setup(struct rnic_context *ctx, struct rnic_wq *q, ring_loc_t loc, unsigned int log,
	_Atomic uint32_t *tail)
{
	uint32_t n;

	q->gate = ctx->gate;
	q->shared_tail = (uint32_t *)(uintptr_t)tail;
	if (loc == RING_NO_LOC)
		return 0;
	if (log > 20)
		return -EPROTO;
	n = 1u << log;
	q->slots = client_loc(ctx, loc, (uint64_t)n * RING_SLOT_SIZE, RING_LINE, RING_ARENA_C);
	if (!q->slots)
		return -EPROTO;
	q->entries = malloc(n * sizeof(*q->entries));
	if (!q->entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		q->entries[i] = (struct rnic_wq_entry){.index = i + 1, .end = i + 1};
	q->mask = n - 1;
	q->capacity = n;
	return 0;
}

/* With the context's lock. */
static int
qp_setup(struct client_qp *qp, const struct ring_ctrl_create_qp_rep *rep)
{
	struct rnic_context *ctx = qp->pub.context;
	struct ring_qp_client *client;
	int rc;

	if (qp->pub.qp_type == RNIC_QPT_XRC_RECV) { /* a number is all that one has of it */
		qp->pub.qp_num = rep->qpn;
		qp->pub.sq.gate = qp->pub.rq.gate = ctx->gate;
		return rep->qpn < 1u << 24 && !client_map_put(&ctx->qps, rep->qpn, qp) ? 0
										       : -EPROTO;
	}
	client = client_loc(ctx, rep->client, sizeof(*client), RING_LINE, RING_ARENA_C);
	qp->daemon = client_loc(ctx, rep->daemon, sizeof(*qp->daemon), RING_LINE, RING_ARENA_D);
	qp->bell_chunk = rep->bell / RING_BELL_SLOTS;
	qp->bell_slot = rep->bell % RING_BELL_SLOTS;
	if (!client || !qp->daemon || qp->bell_chunk >= RING_BELL_CHUNKS ||
		!ctx->chunks[qp->bell_chunk][0] || rep->qpn >= 1u << 24 ||
		rep->max_send_sge > RING_MAX_SGE || rep->max_recv_sge > RING_MAX_SGE ||
		rep->max_inline > RING_MAX_INLINE)
		return -EPROTO;
	qp->pub.active = (const uint32_t *)(uintptr_t)&qp->daemon->active;
	qp->pub.qp_num = rep->qpn;
	rc = wq_setup(ctx, &qp->pub.sq, rep->sq, rep->log_sq_slots, &client->sq_tail);
	if (rc == 0)
		rc = wq_setup(ctx, &qp->pub.rq, qp->pub.srq ? RING_NO_LOC : rep->rq,
			rep->log_rq_slots, &client->rq_tail);
	if (rc)
		return rc;
	qp->pub.sq.max_inline = rep->max_inline;
	qp->pub.sq.max_sge = rep->max_send_sge;
	qp->pub.rq.max_sge = rep->max_recv_sge;
	return client_map_put(&ctx->qps, rep->qpn, qp) ? -EPROTO : 0;
}

static void
qp_unmap(struct client_qp *qp)
{
	struct rnic_context *ctx = qp->pub.context;

	pthread_mutex_lock(&ctx->lock);
	client_map_del(&ctx->qps, qp->pub.qp_num);
	pthread_mutex_unlock(&ctx->lock);
}

static int
qp_attach(struct client_qp *qp)
{
	int rc = client_cq_attach(qp->pub.send_cq, qp);

	if (rc == 0 && qp->pub.recv_cq != qp->pub.send_cq) {
		rc = client_cq_attach(qp->pub.recv_cq, qp);
		if (rc)
			client_cq_detach(qp->pub.send_cq, qp);
	}
	return rc;
}

static struct client_qp *
qp_new(struct rnic_context *ctx, struct rnic_pd *pd, const struct rnic_qp_init_attr *attr)
{
	struct client_qp *qp;
	bool none = (attr->flags | ctx->flags) & RNIC_THREAD_UNSAFE;

	if (posix_memalign((void **)&qp, _Alignof(struct client_qp), sizeof(*qp)))
		return NULL;
	memset(qp, 0, sizeof(*qp));
	qp->pub.context = ctx;
	qp->pub.user_context = attr->user_context;
	qp->pub.pd = pd;
	if (attr->qp_type != RNIC_QPT_XRC_RECV)
		qp->pub.send_cq = attr->send_cq;
	if (!is_xrc(attr->qp_type)) {
		qp->pub.recv_cq = attr->recv_cq;
		qp->pub.srq = attr->srq;
	}
	qp->pub.qp_type = attr->qp_type;
	qp->opcodes = opcodes_of(attr->qp_type);
	qp->lacking = ctx->opcodes_lacking;
	qp->sig_all = attr->sq_sig_all != 0;
	qp->sq_lock.none = none;
	qp->rq_lock.none = none;
	return qp;
}

/* From the daemon's reply. On failure its side is destroyed too. */
static int
qp_make(struct rnic_context *ctx, struct rnic_pd *pd, const struct rnic_qp_init_attr *attr,
	const struct ring_ctrl_create_qp_rep *rep, struct rnic_qp **out)
{
	struct client_qp *qp = qp_new(ctx, pd, attr);
	int rc = -ENOMEM;

	if (!qp)
		goto destroy;
	pthread_mutex_lock(&ctx->lock);
	rc = qp_setup(qp, rep);
	pthread_mutex_unlock(&ctx->lock);
	if (rc)
		goto release;
	rc = qp_attach(qp);
	if (rc) {
		qp_unmap(qp);
		goto release;
	}
	client_obj_add(ctx, &qp->obj, qp_release);
	*out = &qp->pub;
	return 0;
release:
	qp_release(&qp->obj);
destroy:
	client_destroy_call(ctx, RING_CTRL_DESTROY_QP, rep->qpn);
	return rc;
}

static int
create_req(struct ring_ctrl_create_qp_req *req, const struct rnic_pd *pd,
	const struct rnic_qp_init_attr *attr)
{
	const struct rnic_qp_cap *cap = &attr->cap;

	if (attr->qp_type > UINT8_MAX || cap->max_inline_data > UINT16_MAX ||
		cap->max_send_sge > UINT16_MAX || cap->max_recv_sge > UINT16_MAX)
		return -EINVAL;
	*req = (struct ring_ctrl_create_qp_req){
		.type = (uint8_t)attr->qp_type,
		.flags = attr->sq_sig_all ? RING_QP_SIG_ALL : 0,
		.max_inline = (uint16_t)cap->max_inline_data,
		.pd = pd ? pd->handle : RING_NO_HANDLE,
		.send_cq = attr->send_cq ? attr->send_cq->handle : RING_NO_HANDLE,
		.recv_cq = attr->recv_cq ? attr->recv_cq->handle : RING_NO_HANDLE,
		.srqn = attr->srq ? attr->srq->srqn : RING_NO_HANDLE,
		.xrcd = attr->xrcd ? attr->xrcd->handle : RING_NO_HANDLE,
		.max_send_wr = cap->max_send_wr,
		.max_recv_wr = cap->max_recv_wr,
		.max_send_sge = (uint16_t)cap->max_send_sge,
		.max_recv_sge = (uint16_t)cap->max_recv_sge,
		.user_handle = (uintptr_t)attr->user_context,
	};
	/* what verbs let callers leave there, though it means nothing */
	if (is_xrc(attr->qp_type))
		req->recv_cq = req->srqn = RING_NO_HANDLE;
	if (attr->qp_type == RNIC_QPT_XRC_RECV)
		req->pd = req->send_cq = RING_NO_HANDLE;
	else
		req->xrcd = RING_NO_HANDLE;
	return 0;
}

struct create_part {
	struct client_call call;
	int rc;
};

/* All messages first, then all replies. Elements of a message that failed have its status. */
static int
create_call(struct rnic_context *ctx, const struct ring_ctrl_create_qp_req *req,
	struct ring_ctrl_create_qp_rep *reps, unsigned int n)
{
	unsigned int max = ring_ctrl_info(RING_CTRL_CREATE_QP)->max_count;
	unsigned int num = (n + max - 1) / max;
	struct create_part *parts = calloc(num, sizeof(*parts));
	struct ring_ctrl_create_qp_req *reqs = malloc((n < max ? n : max) * sizeof(*reqs));

	if (!parts || !reqs) {
		free(parts);
		free(reqs);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < max && i < n; i++)
		reqs[i] = *req;
	for (unsigned int i = 0; i < num; i++) {
		unsigned int some = n - i * max < max ? n - i * max : max;

		parts[i].call.reps = reps + i * max;
		parts[i].rc = client_start(ctx, &parts[i].call, RING_CTRL_CREATE_QP, reqs, some);
	}
	for (unsigned int i = 0; i < num; i++) {
		int rc = parts[i].rc ? parts[i].rc : client_wait(ctx, &parts[i].call);

		for (unsigned int k = i * max; rc && k < n && k < (i + 1) * max; k++)
			reps[k].status = rc;
	}
	free(parts);
	free(reqs);
	return 0;
}

int
rnic_create_qps(struct rnic_pd *pd, struct rnic_qp_init_attr *attr, struct rnic_qp **qps, int n)
{
	struct rnic_context *ctx = pd ? pd->context : attr->xrcd ? attr->xrcd->context : NULL;
	struct ring_ctrl_create_qp_rep *reps;
	struct ring_ctrl_create_qp_req req;
	int made = 0;
	int rc = ctx ? client_gate(ctx) : -EINVAL;

	if (rc == 0 && attr->qp_type == RNIC_QPT_XRC_RECV)
		pd = NULL;
	if (rc == 0)
		rc = n <= 0 ? -EINVAL : create_req(&req, pd, attr);
	if (rc)
		return rc;
	reps = calloc((size_t)n, sizeof(*reps));
	if (!reps)
		return -ENOMEM;
	rc = create_call(ctx, &req, reps, (unsigned int)n);
	for (int i = 0; rc == 0 && i < n; i++) {
		rc = reps[i].status > 0 ? -EPROTO : reps[i].status;
		if (rc == 0)
			rc = qp_make(ctx, pd, attr, &reps[i], &qps[i]);
		if (rc == 0)
			made++;
	}
	/* What the daemon made behind the first that failed would be a hole in the array. */
	for (int i = made + 1; i < n; i++) {
		if (reps[i].status == 0 && reps[i].qpn)
			client_destroy_call(ctx, RING_CTRL_DESTROY_QP, reps[i].qpn);
	}
	if (made)
		attr->cap = (struct rnic_qp_cap){
			.max_send_wr = reps[0].max_send_wr,
			.max_recv_wr = reps[0].max_recv_wr,
			.max_send_sge = reps[0].max_send_sge,
			.max_recv_sge = reps[0].max_recv_sge,
			.max_inline_data = reps[0].max_inline,
		};
	free(reps);
	return made ? made : rc;
}

int
rnic_create_qp(struct rnic_pd *pd, struct rnic_qp_init_attr *attr, struct rnic_qp **qp)
{
	int rc = rnic_create_qps(pd, attr, qp, 1);

	return rc < 0 ? rc : 0;
}

int
rnic_open_qp(struct rnic_xrcd *xrcd, uint32_t qp_num, void *user_context, struct rnic_qp **out)
{
	struct rnic_qp_init_attr attr = {
		.user_context = user_context, .qp_type = RNIC_QPT_XRC_RECV, .xrcd = xrcd};
	struct ring_ctrl_open_qp_req req = {
		.xrcd = xrcd->handle, .qpn = qp_num, .user_handle = (uintptr_t)user_context};
	struct ring_ctrl_create_qp_rep as = {.qpn = qp_num};
	struct ring_ctrl_done_rep rep;
	int rc = client_call1(xrcd->context, RING_CTRL_OPEN_QP, &req, &rep);

	return rc ? rc : qp_make(xrcd->context, NULL, &attr, &as, out);
}

int
rnic_destroy_qp(struct rnic_qp *pub)
{
	struct client_qp *qp = client_qp(pub);
	struct rnic_context *ctx = pub->context;
	int rc = client_destroy_call(ctx, RING_CTRL_DESTROY_QP, pub->qp_num);

	if (rc)
		return rc;
	client_cq_detach(pub->send_cq, qp);
	if (pub->recv_cq != pub->send_cq)
		client_cq_detach(pub->recv_cq, qp);
	qp_unmap(qp);
	client_obj_del(ctx, &qp->obj);
	qp_release(&qp->obj);
	return 0;
}

static int
mcast(struct rnic_qp *qp, unsigned int op, const union rnic_gid *gid)
{
	struct ring_ctrl_mcast_req req = {.qpn = qp->qp_num};
	struct ring_ctrl_done_rep rep;

	memcpy(req.gid.raw, gid->raw, sizeof(req.gid.raw));
	return client_call1(qp->context, op, &req, &rep);
}

int
rnic_attach_mcast(struct rnic_qp *qp, const union rnic_gid *gid)
{
	return mcast(qp, RING_CTRL_ATTACH_MCAST, gid);
}

int
rnic_detach_mcast(struct rnic_qp *qp, const union rnic_gid *gid)
{
	return mcast(qp, RING_CTRL_DETACH_MCAST, gid);
}
