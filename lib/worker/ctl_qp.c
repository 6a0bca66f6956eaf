/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: making, querying and destroying them. Operations on one QP are done one after the
 * other, in the order of their requests, each as far as it can go without waiting.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_qp.h"

#define MAX_QP_WR 32768u

/* ---- creation ---------- */

static bool
create_ok(const struct ring_ctrl_create_qp_req *r)
{
	return r->max_send_wr <= MAX_QP_WR && r->max_recv_wr <= MAX_QP_WR &&
		r->max_send_sge <= RING_MAX_SGE && r->max_recv_sge <= RING_MAX_SGE &&
		r->max_inline <= RING_MAX_INLINE && (r->flags & ~RING_QP_SIG_ALL) == 0 &&
		r->reserved == 0 && (r->type == RING_QPT_XRC_RECV || r->xrcd == RING_NO_HANDLE);
}

/* What the engine does not run is refused when it is asked for, and not first by the peer. */
static bool
type_offered(unsigned int type)
{
	switch (type) {
	case RING_QPT_RC:
	case RING_QPT_UC:
	case RING_QPT_UD:
	case RING_QPT_XRC_SEND:
	case RING_QPT_XRC_RECV:
		return true;
	default:
		return false;
	}
}

/* Slots for that many requests of the largest kind; and so many fit then. */
static uint32_t
queue_slots(uint32_t *wrs, uint32_t slots_per_wr)
{
	uint32_t n = rte_align32pow2((*wrs != 0 ? *wrs : 1) * slots_per_wr);

	*wrs = n / slots_per_wr;
	return n;
}

static void
size_queues(struct ctl_qp *qp, const struct ring_ctrl_create_qp_req *r)
{
	uint32_t of_sge = ring_wqe_slots_sge(r->max_send_sge);
	uint32_t of_inline = ring_wqe_slots_inline(r->max_inline);

	bool rq = qp->srq == NULL && r->type != RING_QPT_XRC_SEND;

	qp->max_send_wr = r->max_send_wr;
	qp->max_recv_wr = rq ? r->max_recv_wr : 0;
	qp->sq_slots = queue_slots(&qp->max_send_wr, of_sge > of_inline ? of_sge : of_inline);
	if (rq)
		qp->rq_slots =
			queue_slots(&qp->max_recv_wr, ring_rwqe_slots(r->max_recv_sge));
	qp->max_inline = r->max_inline;
	qp->max_send_sge = r->max_send_sge != 0 ? (uint8_t)r->max_send_sge : 1;
	if (rq)
		qp->max_recv_sge = r->max_recv_sge != 0 ? (uint8_t)r->max_recv_sge : 1;
	qp->type = r->type;
	qp->flags = r->flags;
}

/* The client's words, then the SQ's slots, then the RQ's, in one block. */
#define SQ_OFFSET sizeof(struct ring_qp_client)

static int
qp_memory(struct ctl_client *c, struct ctl_qp *qp)
{
	uint64_t size = SQ_OFFSET + (uint64_t)(qp->sq_slots + qp->rq_slots) * RING_SLOT_SIZE;
	int err = ctl_mem_alloc(c, RING_ARENA_C, size, RING_LINE, true, &qp->queues);

	if (err == 0)
		err = ctl_mem_alloc(c, RING_ARENA_D, sizeof(struct ring_qp_daemon), RING_LINE,
			true, &qp->daemon);
	if (err == 0)
		qp->words = ctl_block_ptr(qp->daemon);
	return err;
}

static int
qp_engine(struct ctl_qp *qp, uint32_t qpn)
{
	uint8_t *base = ctl_block_ptr(qp->queues);
	struct roce_qp_init init = {
		.qpn = qpn,
		.type = (enum verbs_qp_type)qp->type,
		.pd = ctl_pd_number(qp->pd),
		.send_cq = qp->scq->vcq,
		.recv_cq = qp->rcq->vcq,
		.daemon = qp->words,
		.client = (const struct ring_qp_client *)base,
		.sq_slots = base + SQ_OFFSET,
		.srq = qp->srq != NULL ? &qp->srq->v : NULL,
		.sq_entries = qp->sq_slots,
		.rq_entries = qp->rq_slots,
		.sig_all = (qp->flags & RING_QP_SIG_ALL) != 0,
		.max_inline = qp->max_inline,
		.max_send_sge = qp->max_send_sge,
		.max_recv_sge = qp->max_recv_sge,
		.owner = &qp->w,
	};

	if (qp->rq_slots != 0)
		init.rq_slots = base + SQ_OFFSET + (size_t)qp->sq_slots * RING_SLOT_SIZE;
	qp->vqp = roce_qp_create(&init);
	return qp->vqp != NULL ? 0 : -ENOMEM;
}

static void
create_reply(struct ctl_qp *qp, struct ring_ctrl_create_qp_rep *p)
{
	ring_loc_t base = ctl_block_loc(qp->queues);

	p->qpn = ctl_obj_handle(&qp->o);
	p->bell = qp->bell;
	p->max_send_wr = qp->max_send_wr;
	p->max_recv_wr = qp->max_recv_wr;
	p->max_inline = qp->max_inline;
	p->max_send_sge = qp->max_send_sge;
	p->max_recv_sge = qp->max_recv_sge;
	p->log_sq_slots = (uint8_t)rte_log2_u32(qp->sq_slots);
	p->log_rq_slots = qp->rq_slots != 0 ? (uint8_t)rte_log2_u32(qp->rq_slots) : 0;
	p->client = base;
	p->sq = base + SQ_OFFSET;
	p->rq = qp->rq_slots != 0
			? base + SQ_OFFSET + (uint64_t)qp->sq_slots * RING_SLOT_SIZE
			: RING_NO_LOC;
	p->daemon = ctl_block_loc(qp->daemon);
}

static int
qp_make(struct ctl_client *c, struct ctl_qp *qp)
{
	struct roce_qpn_table *qpns = c->dev->sh.qpns;
	int err = ctl_obj_room(c, CTL_QP); /* before a number is looked for */
	uint32_t qpn;

	if (err == 0)
		err = qp_memory(c, qp);
	if (err < 0)
		return err;
	err = ctl_bell_get(c, &qp->bell);
	if (err < 0)
		return err;
	qpn = roce_qpn_alloc(qpns);
	err = qpn != 0 ? qp_engine(qp, qpn) : ctl_total_out(c->dev, CTL_QP);
	if (err == 0)
		err = ctl_obj_add(c, &qp->o, CTL_QP, qpn);
	if (err == 0)
		return 0;
	if (qp->vqp != NULL)
		roce_qp_free(qp->vqp);
	if (qpn != 0)
		roce_qpn_release(qpns, qpn);
	ctl_bell_put(c, qp->bell);
	return err;
}

static int
create_refs(struct ctl_client *c, struct ctl_qp *qp, const struct ring_ctrl_create_qp_req *r)
{
	qp->pd = ctl_obj_find(c, CTL_PD, r->pd);
	qp->scq = ctl_cq_find(c, r->send_cq);
	if (r->type == RING_QPT_XRC_SEND) {
		if (r->recv_cq != RING_NO_HANDLE || r->srqn != RING_NO_HANDLE)
			return -EINVAL;
		qp->rcq = qp->scq;
	} else {
		qp->rcq = ctl_cq_find(c, r->recv_cq);
	}
	if (r->srqn != RING_NO_HANDLE) {
		qp->srq = ctl_obj_find(c, CTL_SRQ, r->srqn);
		if (qp->srq == NULL || qp->srq->cq != NULL) /* requests name an XRC SRQ, not QPs */
			return -EINVAL;
	}
	return qp->pd != NULL && qp->scq != NULL && qp->rcq != NULL ? 0 : -EINVAL;
}

int
ctl_op_create_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_create_qp_req *r = req;
	struct ctl_qp *qp;
	int err;

	(void)e;
	if (!create_ok(r))
		return -EINVAL;
	if (!type_offered(r->type))
		return -EOPNOTSUPP;
	if (r->type == RING_QPT_XRC_RECV)
		return ctl_target_create(c, r, rep);
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return -ENOMEM;
	TAILQ_INIT(&qp->ops);
	qp->dev = c->dev;
	LIST_INIT(&qp->mcasts);
	err = create_refs(c, qp, r);
	if (err == 0) {
		size_queues(qp, r);
		err = qp_make(c, qp);
	}
	if (err < 0) {
		ctl_mem_free(&qp->queues);
		ctl_mem_free(&qp->daemon);
		free(qp);
		return err == -EAGAIN ? CTL_AGAIN : err;
	}
	qp->o.user_handle = r->user_handle;
	qp->pd->o.refs++;
	qp->scq->o.refs++;
	qp->rcq->o.refs++;
	if (qp->srq != NULL)
		qp->srq->o.refs++;
	create_reply(qp, rep);
	return 0;
}

/* ---- one operation after the other ---------- */

unsigned int
ctl_qp_state(const struct ctl_qp *qp)
{
	return atomic_load_explicit(&qp->words->state, memory_order_acquire);
}

static void
op_begin(struct ctl_qp *qp)
{
	struct ctl_qp_op *op = TAILQ_FIRST(&qp->ops);

	/* An operation that ends at once begins the next from ctl_qp_op_done(): not nested. */
	while (!qp->busy && op != NULL) {
		qp->busy = true;
		op->begin(op);
		op = TAILQ_FIRST(&qp->ops);
		if (qp->gone)
			break;
	}
}

int
ctl_qp_op_add(struct ctl_qp *qp, struct ctl_elem e, void (*begin)(struct ctl_qp_op *op))
{
	struct ctl_qp_op *op = calloc(1, sizeof(*op));

	if (op == NULL)
		return -ENOMEM;
	op->qp = qp;
	op->e = e;
	op->begin = begin;
	TAILQ_INSERT_TAIL(&qp->ops, op, link);
	return 0;
}

void
ctl_qp_op_next(struct ctl_qp *qp)
{
	if (!qp->running) {
		qp->running = true;
		op_begin(qp);
		qp->running = false;
	}
	if (qp->gone)
		ctl_qp_free(qp);
}

void
ctl_qp_op_done(struct ctl_qp_op *op, int status)
{
	struct ctl_qp *qp = op->qp;
	struct ctl_elem e = op->e;

	TAILQ_REMOVE(&qp->ops, op, link);
	free(op);
	qp->busy = false;
	ctl_elem_done(e, status);
	if (!qp->running)
		ctl_qp_op_next(qp);
}

void
ctl_qp_send(struct ctl_qp *qp, enum worker_msg_type type,
	void (*replied)(struct worker_device *d, struct ctl_msg *m))
{
	struct worker_msg *m = &qp->msg.m;

	m->type = (uint8_t)type;
	m->qp.ctx = qp->xrc != NULL ? qp->xrc->ctx : qp->o.client->ctx;
	m->qp.qp = qp->vqp;
	m->qp.bell_slot = qp->bell;
	qp->msg.replied = replied;
	ctl_msg_send(qp->dev, qp->worker, &qp->msg);
}

/* ---- query ---------- */

static void
query_done(struct ctl_qp *qp, const struct verbs_qp_attr *a)
{
	struct ctl_qp_op *op = TAILQ_FIRST(&qp->ops);
	struct ring_ctrl_query_qp_rep *p = ctl_elem_rep(op->e);

	p->max_send_wr = qp->max_send_wr;
	p->max_recv_wr = qp->max_recv_wr;
	p->max_inline = qp->max_inline;
	p->max_send_sge = qp->max_send_sge;
	p->max_recv_sge = qp->max_recv_sge;
	p->type = qp->type;
	p->flags = qp->flags;
	p->worker = qp->bound ? qp->worker : RING_NO_HANDLE;
	p->attr = qp->attr;
	p->attr.state = a->state;
	p->attr.cur_state = a->state;
	p->attr.rq_psn = a->rq_psn;
	p->attr.sq_psn = a->sq_psn;
	ctl_qp_op_done(op, 0);
}

static void
query_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_qp *qp = ctl_qp_of_msg(m);

	(void)d;
	query_done(qp, &m->m.qp.attr);
}

static void
query_begin(struct ctl_qp_op *op)
{
	struct ctl_qp *qp = op->qp;
	struct verbs_qp_attr a;

	if (qp->bound) {
		ctl_qp_send(qp, WORKER_MSG_QP_QUERY, query_replied);
		return;
	}
	memset(&a, 0, sizeof(a));
	roce_qp_query(qp->vqp, &a);
	query_done(qp, &a);
}

int
ctl_op_query_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_qp *qp = ctl_qp_find(c, r->handle);
	int err;

	(void)rep;
	if (qp == NULL || r->reserved != 0)
		return -EINVAL;
	err = ctl_qp_op_add(qp, e, query_begin);
	if (err < 0)
		return err;
	ctl_qp_op_next(qp);
	return CTL_LATER;
}

/* ---- destruction ---------- */

void
ctl_qpn_retire(struct worker_device *d, struct ctl_qp *qp)
{
	struct ctl_timewait *t = NULL;
	uint32_t qpn = ctl_obj_handle(&qp->o);

	/* Packets of the old connection may be under way: the number stays unused for a while. */
	if (qp->was_connected || ctl_cm_qpn_held(d, qpn))
		t = malloc(sizeof(*t));
	if (t == NULL) {
		roce_qpn_release(d->sh.qpns, qpn);
		return;
	}
	t->qpn = qpn;
	t->due = ctl_now(d) + d->timewait_ns;
	STAILQ_INSERT_TAIL(&d->timewait, t, link);
	d->num_timewait++;
}

void
ctl_timewait_poll(struct worker_device *d, uint64_t now)
{
	struct ctl_timewait *t;

	for (uint32_t n = d->num_timewait;
		n > 0 && (t = STAILQ_FIRST(&d->timewait)) != NULL && t->due <= now; n--) {
		STAILQ_REMOVE_HEAD(&d->timewait, link);
		if (now != UINT64_MAX && ctl_cm_qpn_held(d, t->qpn)) {
			/* its connection's is longer than ours */
			t->due = now + d->timewait_ns;
			STAILQ_INSERT_TAIL(&d->timewait, t, link);
			continue;
		}
		roce_qpn_release(d->sh.qpns, t->qpn);
		d->num_timewait--;
		free(t);
	}
}

void
ctl_qp_free(struct ctl_qp *qp)
{
	struct ctl_client *c = qp->o.client;

	if (qp->xrc != NULL) {
		ctl_target_free(qp);
		return;
	}
	ctl_mcast_qp_gone(qp);
	if (qp->neigh != NULL)
		net_neigh_put(qp->neigh);
	roce_qp_free(qp->vqp); /* and what is left of its garbage */
	ctl_qpn_retire(c->dev, qp);
	ctl_bell_put(c, qp->bell);
	ctl_mem_free(&qp->queues);
	ctl_mem_free(&qp->daemon);
	qp->pd->o.refs--;
	qp->scq->o.refs--;
	qp->rcq->o.refs--;
	if (qp->srq != NULL)
		qp->srq->o.refs--;
	ctl_obj_del(&qp->o, 0);
	free(qp);
}

static void
destroy_passed(struct worker_device *d, struct ctl_grace *g)
{
	struct ctl_qp *qp = (struct ctl_qp *)((uint8_t *)g - offsetof(struct ctl_qp, grace));
	struct ctl_qp_op *op = TAILQ_FIRST(&qp->ops);

	(void)d;
	qp->o.destroyer = op->e;
	op->e.call = NULL; /* ctl_obj_del() answers, when all is done */
	qp->gone = true;
	ctl_qp_op_done(op, 0);
}

static void
destroy_unbound(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_qp *qp = ctl_qp_of_msg(m);

	ctl_qp_unbound(qp);
	qp->grace.passed = destroy_passed;
	ctl_grace_add(d, &qp->grace);
}

static void
destroy_begin(struct ctl_qp_op *op)
{
	struct ctl_qp *qp = op->qp;
	struct worker_device *d = qp->dev;

	if (qp->bound) {
		roce_qpn_set(d->sh.qpns, ctl_obj_handle(&qp->o), NULL, 0);
		ctl_qp_send(qp, WORKER_MSG_QP_UNBIND, destroy_unbound);
	} else if (qp->was_connected) {
		qp->grace.passed = destroy_passed;
		ctl_grace_add(d, &qp->grace); /* a worker may still hold what it looked up */
	} else {
		destroy_passed(d, &qp->grace);
	}
}

void
ctl_qp_end(struct ctl_qp *qp, struct ctl_qp_op *op)
{
	bool nested;

	op->qp = qp;
	op->begin = destroy_begin;
	TAILQ_INSERT_TAIL(&qp->ops, op, link);
	/* What is cancelled may not begin the destruction and free the QP under us. */
	nested = qp->running;
	qp->running = true;
	ctl_qp_cancel_wait(qp);
	qp->running = nested;
	ctl_qp_op_next(qp);
}

static int
destroy_add(struct ctl_qp *qp, struct ctl_elem e)
{
	struct ctl_qp_op *op = calloc(1, sizeof(*op));

	if (op == NULL)
		return -ENOMEM;
	op->e = e;
	ctl_obj_dying(&qp->o);
	ctl_qp_end(qp, op);
	return 0;
}

void
ctl_qp_destroy(struct ctl_obj *o)
{
	/* Without memory for the operation the next look at the dying client tries again. */
	if (destroy_add((struct ctl_qp *)o, (struct ctl_elem){NULL, 0}) < 0) {
		o->client->reap_vain = 0;
		ctl_client_reap(o->client);
	}
}

int
ctl_op_destroy_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_qp *qp = ctl_qp_find(c, r->handle);
	int err;

	if (qp == NULL || r->reserved != 0)
		return -EINVAL;
	if (qp->xrc != NULL)
		return ctl_target_close(c, qp, rep, e);
	err = destroy_add(qp, e);
	return err < 0 ? err : CTL_LATER;
}
