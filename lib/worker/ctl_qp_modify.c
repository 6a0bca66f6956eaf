/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MODIFY_QP. Checks, then what must be got ready (path, neighbour, responder resources, the
 * worker's ends of the CQs), then the change itself: here in RESET and INIT, on the QP's worker
 * from INIT -> RTR or ERR on, where it is bound, until RESET lets it go again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_qp.h"

#define ACCESS_OK \
	(RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ | \
		RING_ACCESS_REMOTE_ATOMIC | RING_ACCESS_FLUSH_GLOBAL | \
		RING_ACCESS_FLUSH_PERSISTENT)

static void
modify_done(struct ctl_qp_op *op, int status)
{
	struct ring_ctrl_modify_qp_rep *p = op->e.call != NULL ? ctl_elem_rep(op->e) : NULL;

	if (op->has_neigh)
		net_neigh_put(op->attr.av.neigh);
	if (p != NULL)
		p->state = ctl_qp_state(op->qp);
	if (op->told != NULL)
		op->told(op->qp->o.client, op->who, status);
	ctl_qp_op_done(op, status);
}

/* ---- what queries show ---------- */

static void
remember(struct ctl_qp *qp, const struct ctl_qp_op *op)
{
	const struct ring_ctrl_qp_attr *r = &op->ring;
	struct ring_ctrl_qp_attr *a = &qp->attr;
	uint32_t m = op->mask;

	if (op->next == RING_QPS_RESET) {
		memset(a, 0, sizeof(*a));
		return;
	}
#define KEEP(bit, field) \
	do { \
		if (m & RING_QP_##bit) \
			a->field = r->field; \
	} while (0)
	KEEP(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	KEEP(ACCESS_FLAGS, access);
	KEEP(PKEY_INDEX, pkey_index);
	KEEP(PORT, port);
	KEEP(QKEY, qkey);
	KEEP(AV, av);
	KEEP(PATH_MTU, path_mtu);
	KEEP(TIMEOUT, timeout);
	KEEP(RETRY_CNT, retry_cnt);
	KEEP(RNR_RETRY, rnr_retry);
	KEEP(MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(MIN_RNR_TIMER, min_rnr_timer);
	KEEP(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(PATH_MIG_STATE, path_mig_state);
	KEEP(DEST_QPN, dest_qpn);
#undef KEEP
}

/* The change has been made. */
static void
made(struct ctl_qp_op *op)
{
	struct ctl_qp *qp = op->qp;
	void *garbage;

	remember(qp, op);
	while ((garbage = roce_qp_take_garbage(qp->vqp)) != NULL)
		free(garbage);
	if (op->has_neigh) {
		struct net_neigh *old = qp->neigh;

		qp->neigh = op->attr.av.neigh;
		op->has_neigh = false;
		if (old != NULL)
			net_neigh_put(old);
	}
	modify_done(op, 0);
}

/* ---- at the worker ---------- */

void
ctl_qp_unbound(struct ctl_qp *qp)
{
	qp->bound = false;
	qp->dev->qps_on[qp->worker]--;
}

static void
reset_unbound(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_qp *qp = ctl_qp_of_msg(m);

	(void)d;
	ctl_qp_unbound(qp);
	made(TAILQ_FIRST(&qp->ops));
}

static void
modify_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_qp *qp = ctl_qp_of_msg(m);
	struct ctl_qp_op *op = TAILQ_FIRST(&qp->ops);

	if (m->m.status < 0) {
		modify_done(op, m->m.status);
	} else if (op->next == RING_QPS_RESET) {
		roce_qpn_set(d->sh.qpns, ctl_obj_handle(&qp->o), NULL, 0);
		ctl_qp_send(qp, WORKER_MSG_QP_UNBIND, reset_unbound);
	} else {
		made(op);
	}
}

static void
bind_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_qp *qp = ctl_qp_of_msg(m);
	struct ctl_qp_op *op = TAILQ_FIRST(&qp->ops);

	if (m->m.status < 0) {
		d->qps_on[qp->worker]--;
		modify_done(op, m->m.status);
		return;
	}
	qp->bound = true;
	qp->was_connected = true;
	roce_qpn_set(d->sh.qpns, ctl_obj_handle(&qp->o), qp->vqp, qp->worker);
	made(op);
}

static void
send_modify(struct ctl_qp_op *op, enum worker_msg_type type)
{
	struct ctl_qp *qp = op->qp;

	qp->msg.m.qp.attr = op->attr;
	qp->msg.m.qp.mask = op->mask;
	ctl_qp_send(qp, type, type == WORKER_MSG_QP_BIND ? bind_replied : modify_replied);
}

/* ---- binding ---------- */

static void bind_step(struct ctl_qp_op *op);

static void
bind_failed(struct ctl_qp_op *op, int status)
{
	op->qp->dev->qps_on[op->qp->worker]--;
	modify_done(op, status);
}

static void
bind_mem(struct ctl_wait *w, int status)
{
	struct ctl_qp_op *op =
		(struct ctl_qp_op *)((uint8_t *)w - offsetof(struct ctl_qp_op, mem_wait));

	if (status < 0)
		bind_failed(op, status);
	else
		bind_step(op);
}

static void
bind_cq(struct ctl_cq_waiter *w, int status)
{
	struct ctl_qp_op *op =
		(struct ctl_qp_op *)((uint8_t *)w - offsetof(struct ctl_qp_op, cq_wait));

	if (status < 0)
		bind_failed(op, status);
	else
		bind_step(op);
}

/* The worker needs its ends of both CQs first. */
static void
bind_step(struct ctl_qp_op *op)
{
	struct ctl_qp *qp = op->qp;
	int err;

	if (qp->xrc != NULL) { /* has none: SRQs have */
		send_modify(op, WORKER_MSG_QP_BIND);
		return;
	}
	op->cq_wait.resume = bind_cq;
	err = ctl_cq_sub_get(qp->scq, qp->worker, &op->cq_wait);
	if (err == 0)
		err = ctl_cq_sub_get(qp->rcq, qp->worker, &op->cq_wait);
	if (err == -EINPROGRESS)
		return;
	if (err == -EAGAIN && qp->o.client->state != CTL_CLIENT_DYING) {
		op->mem_wait.resume = bind_mem;
		ctl_wait_add(qp->o.client, &op->mem_wait);
	} else if (err < 0) {
		bind_failed(op, err);
	} else {
		send_modify(op, WORKER_MSG_QP_BIND);
	}
}

/* ---- getting ready ---------- */

/* Home of its SRQ; where a connection's request came; home of its CQ. */
static uint32_t
worker_of(struct worker_device *d, const struct ctl_qp_op *op)
{
	const struct ctl_qp *qp = op->qp;

	if (qp->xrc != NULL)
		return ctl_worker_near(d, ctl_obj_handle(&qp->o) % d->sh.num_workers);
	if (qp->srq != NULL)
		return ctl_srq_worker(d, qp->srq, qp->rcq);
	return op->worker < d->sh.num_workers ? op->worker : ctl_worker_for(d, qp->rcq);
}

static void
apply(struct ctl_qp_op *op)
{
	struct ctl_qp *qp = op->qp;
	struct worker_device *d = qp->dev;
	int err = roce_qp_prepare(qp->vqp, &op->attr, op->mask);

	if (err < 0) {
		modify_done(op, err);
	} else if (qp->bound) {
		send_modify(op, WORKER_MSG_QP_MODIFY);
	} else if (op->next == RING_QPS_RESET || op->next == RING_QPS_INIT) {
		err = roce_qp_modify(NULL, qp->vqp, &op->attr, op->mask, ctl_now(d));
		if (err < 0)
			modify_done(op, err);
		else
			made(op);
	} else {
		qp->worker = worker_of(d, op);
		d->qps_on[qp->worker]++;
		bind_step(op);
	}
}

static void path(struct ctl_qp_op *op);

static void
neigh_resolved(struct ctl_neigh_wait *w, int status)
{
	struct ctl_qp_op *op =
		(struct ctl_qp_op *)((uint8_t *)w - offsetof(struct ctl_qp_op, neigh_wait));

	if (status == -EAGAIN)
		path(op); /* it stood in line */
	else if (status < 0)
		modify_done(op, status);
	else
		apply(op);
}

void
ctl_qp_cancel_wait(struct ctl_qp *qp)
{
	struct ctl_qp_op *op = TAILQ_FIRST(&qp->ops);

	if (op != NULL && op->neigh_wait.list != NULL) {
		ctl_neigh_cancel(qp->dev, &op->neigh_wait);
		modify_done(op, -ECANCELED);
	}
}

static void
path(struct ctl_qp_op *op)
{
	/* who asks, who may not be the QP's only one; the daemon asks for the QP's own */
	struct ctl_client *c = op->e.call != NULL ? op->e.call->client : op->qp->o.client;
	int err = ctl_av_resolve(c, &op->ring.av, &op->attr.av);

	op->neigh_wait.resolved = neigh_resolved;
	if (err == -EAGAIN) {
		ctl_neigh_line(c, &op->neigh_wait);
		return;
	}
	if (err < 0) {
		modify_done(op, err);
		return;
	}
	op->has_neigh = true;
	err = ctl_neigh_wait(c, op->attr.av.neigh, &op->neigh_wait);
	if (err == -EINPROGRESS)
		return;
	if (err < 0)
		modify_done(op, err);
	else
		apply(op);
}

/* ---- checks ---------- */

#define QKEY_PRIVILEGED 0x80000000u

static bool
path_mtu_ok(struct worker_device *d, unsigned int port, unsigned int mtu)
{
	if (mtu < RING_MTU_256 || mtu > RING_MTU_4096)
		return false;
	return port == 0 || mtu <= ctl_mtu_of(d->port[port - 1].mtu); /* B194 */
}

static bool
values_ok(struct worker_device *d, const struct ctl_qp *qp, const struct ctl_qp_op *op)
{
	const struct ring_ctrl_qp_attr *a = &op->ring;
	unsigned int port = (op->mask & RING_QP_PORT) ? a->port : qp->attr.port;

	if ((op->mask & RING_QP_PORT) && (a->port == 0 || a->port > d->sh.num_ports))
		return false;
	if ((op->mask & RING_QP_AV) && a->av.port != port)
		return false;
	if ((op->mask & RING_QP_PATH_MTU) && !path_mtu_ok(d, port, a->path_mtu))
		return false;
	if ((op->mask & RING_QP_PKEY_INDEX) && a->pkey_index != 0)
		return false;
	if ((op->mask & RING_QP_PATH_MIG_STATE) && a->path_mig_state != 0)
		return false;
	if ((op->mask & RING_QP_EN_SQD_ASYNC_NOTIFY) && a->en_sqd_async_notify > 1)
		return false;
	/* Rights that a QP does not know (B077) are ignored as ibv_modify_qp() does. */
	return !(op->mask & RING_QP_ACCESS_FLAGS) ||
		(a->access & ~(uint32_t)(ACCESS_OK | RING_ACCESS_OPTIONAL)) == 0;
}

/*
 * Q_Keys with bit 31 are privileged (IBTA 10.2.5): with QP1's anybody could send messages of the
 * connection manager in this host's name, and end the connections of others.
 */
static bool
qkey_allowed(const struct ctl_qp *qp, uint32_t qkey)
{
	return !(qkey & QKEY_PRIVILEGED) || (qp->o.client != NULL && qp->o.client->uid == 0);
}

static void
translate(struct ctl_qp_op *op)
{
	const struct ring_ctrl_qp_attr *r = &op->ring;

	op->attr = (struct verbs_qp_attr){
		.state = (uint8_t)op->next,
		.tell_est = op->tell_est,
		.cur_state = r->cur_state,
		.en_sqd_async_notify = r->en_sqd_async_notify,
		.pkey_index = r->pkey_index,
		.access = r->access & ACCESS_OK,
		.qkey = r->qkey,
		.dest_qpn = r->dest_qpn,
		.rq_psn = r->rq_psn,
		.sq_psn = r->sq_psn,
		.path_mtu = 128u << (r->path_mtu & 7),
		.timeout = r->timeout,
		.retry_cnt = r->retry_cnt,
		.rnr_retry = r->rnr_retry,
		.min_rnr_timer = r->min_rnr_timer,
		.max_rd_atomic = r->max_rd_atomic,
		.max_dest_rd_atomic = r->max_dest_rd_atomic,
	};
}

#define MASK_REFUSED (RING_QP_ALT_PATH | RING_QP_CAP | RING_QP_RATE_LIMIT)

static void
modify_begin(struct ctl_qp_op *op)
{
	const struct ring_ctrl_qp_attr *a = &op->ring;
	struct ctl_qp *qp = op->qp;
	unsigned int cur = ctl_qp_state(qp);
	int err;

	op->next = (op->mask & RING_QP_STATE) ? a->state : cur;
	if ((op->mask & RING_QP_CUR_STATE) && a->cur_state != cur)
		err = -EINVAL;
	else
		err = verbs_qp_modify_check((enum verbs_qp_type)qp->type, cur, op->next, op->mask);
	if (err == 0 && (op->mask & MASK_REFUSED) != 0)
		err = -EOPNOTSUPP;
	if (err == 0 && !values_ok(qp->dev, qp, op))
		err = -EINVAL;
	if (err == 0 && (op->mask & RING_QP_QKEY) && !qkey_allowed(qp, a->qkey))
		err = -EPERM;
	if (err < 0) {
		modify_done(op, err);
		return;
	}
	translate(op);
	op->mask |= RING_QP_STATE;
	if (op->mask & RING_QP_AV)
		path(op);
	else
		apply(op);
}

static int
modify_add(struct ctl_qp *qp, struct ctl_elem e, const struct ctl_qp_change *change)
{
	int err = ctl_qp_op_add(qp, e, modify_begin);
	struct ctl_qp_op *op;

	if (err < 0)
		return err;
	op = TAILQ_LAST(&qp->ops, ctl_qp_ops);
	op->ring = change->attr;
	op->mask = change->mask;
	op->worker = change->worker;
	op->tell_est = change->tell_est;
	op->told = change->told;
	op->who = change->who;
	return 0;
}

int
ctl_qp_modify(struct ctl_qp *qp, const struct ctl_qp_change *change)
{
	int err = modify_add(qp, (struct ctl_elem){NULL, 0}, change);

	if (err == 0)
		ctl_qp_op_next(qp);
	return err;
}

int
ctl_op_modify_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_modify_qp_req *r = req;
	struct ctl_qp_change change = {
		.attr = r->attr, .mask = r->mask, .worker = RING_NO_HANDLE};
	struct ctl_qp *qp = ctl_qp_find(c, r->qpn);
	int err;

	(void)rep;
	if (qp == NULL || r->attr.reserved != 0)
		return -EINVAL;
	err = modify_add(qp, e, &change);
	if (err < 0)
		return err;
	ctl_qp_op_next(qp);
	return CTL_LATER;
}
