/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: their attributes and states. */
#include <stdlib.h>

#include "client_priv.h"

static void
attr_to_ctrl(struct ring_ctrl_qp_attr *a, const struct rnic_qp_attr *attr, unsigned int mask)
{
	*a = (struct ring_ctrl_qp_attr){
		.access = attr->qp_access_flags,
		.dest_qpn = attr->dest_qp_num,
		.rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn,
		.qkey = attr->qkey,
		.rate_limit = attr->rate_limit,
		.pkey_index = attr->pkey_index,
		.state = (uint8_t)attr->qp_state,
		.cur_state = (uint8_t)attr->cur_qp_state,
		.path_mtu = (uint8_t)attr->path_mtu,
		.path_mig_state = (uint8_t)attr->path_mig_state,
		.en_sqd_async_notify = attr->en_sqd_async_notify,
		.port = attr->port_num,
		.timeout = attr->timeout,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.min_rnr_timer = attr->min_rnr_timer,
		.max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
	};
	if (mask & RNIC_QP_AV)
		client_av_to_ctrl(&a->av, &attr->ah_attr);
}

/* Numbers that the message has less room for than ibv_qp_attr. */
static bool
attr_fits(const struct rnic_qp_attr *attr, unsigned int mask)
{
	return !((mask & RNIC_QP_STATE && attr->qp_state > UINT8_MAX) ||
		(mask & RNIC_QP_CUR_STATE && attr->cur_qp_state > UINT8_MAX) ||
		(mask & RNIC_QP_PATH_MTU && attr->path_mtu > UINT8_MAX) ||
		(mask & RNIC_QP_PATH_MIG_STATE && attr->path_mig_state > UINT8_MAX));
}

/*
 * RESET empties the queues: both ends go on from the tail. Indices run on, so completions from
 * before are known by theirs.
 */
static void
wq_reset(struct rnic_wq *q)
{
	if (!q->capacity)
		return;
	q->tail = __atomic_load_n(q->shared_tail, __ATOMIC_RELAXED);
	__atomic_store_n(&q->head, q->tail, __ATOMIC_RELEASE);
}

/*
 * With the locks of both who move it: a poll moves the head, a post the tail. The state first, so
 * that nobody posts behind it what neither end would know of.
 */
static void
queue_reset(struct client_qp *qp, struct rnic_wq *q, struct client_lock *lock, struct rnic_cq *cq)
{
	if (cq)
		client_lock(&client_cq(cq)->lock);
	client_lock(lock);
	atomic_store_explicit(&qp->state, RING_QPS_RESET, memory_order_relaxed);
	wq_reset(q);
	client_unlock(lock);
	if (cq)
		client_unlock(&client_cq(cq)->lock);
}

static void
qp_reset(struct client_qp *qp)
{
	queue_reset(qp, &qp->pub.sq, &qp->sq_lock, qp->pub.send_cq);
	queue_reset(qp, &qp->pub.rq, &qp->rq_lock, qp->pub.recv_cq);
}

static int
modified(struct client_qp *qp, const struct ring_ctrl_modify_qp_rep *rep)
{
	if (rep->status > 0 || rep->state >= RING_QPS_COUNT)
		return -EPROTO;
	if (rep->status == 0 && rep->state == RING_QPS_RESET)
		qp_reset(qp);
	if (rep->status == 0)
		atomic_store_explicit(&qp->state, rep->state, memory_order_relaxed);
	return rep->status;
}

/* One message's worth. */
static int
modify_some(struct rnic_qp *const *qps, const struct rnic_qp_attr *attrs, unsigned int mask,
	int *status, unsigned int n)
{
	struct ring_ctrl_modify_qp_req *reqs = calloc(n, sizeof(*reqs));
	struct ring_ctrl_modify_qp_rep *reps = calloc(n, sizeof(*reps));
	int first = 0;
	int rc = -ENOMEM;

	if (!reqs || !reps)
		goto out;
	for (unsigned int i = 0; i < n; i++) {
		reqs[i].qpn = qps[i]->qp_num;
		reqs[i].mask = mask;
		attr_to_ctrl(&reqs[i].attr, &attrs[i], mask);
	}
	rc = client_call(qps[0]->context, RING_CTRL_MODIFY_QP, reqs, reps, n);
out:
	for (unsigned int i = 0; i < n; i++) {
		int one = rc ? rc : modified(client_qp(qps[i]), &reps[i]);

		if (status)
			status[i] = one;
		if (one && !first)
			first = one;
	}
	free(reqs);
	free(reps);
	return first;
}

int
rnic_modify_qps(struct rnic_qp *const *qps, const struct rnic_qp_attr *attrs, unsigned int mask,
	int *status, int n)
{
	unsigned int max = ring_ctrl_info(RING_CTRL_MODIFY_QP)->max_count;
	int first = 0;

	if (n <= 0)
		return -EINVAL;
	for (int i = 0; i < n; i++) {
		int rc = client_gate(qps[i]->context);

		if (rc == 0 && (qps[i]->context != qps[0]->context || !attr_fits(&attrs[i], mask)))
			rc = -EINVAL;
		if (rc)
			return rc;
	}
	for (int i = 0; i < n; i += (int)max) {
		unsigned int some = (unsigned int)(n - i) < max ? (unsigned int)(n - i) : max;
		int rc = modify_some(qps + i, attrs + i, mask, status ? status + i : NULL, some);

		if (rc && !first)
			first = rc;
	}
	return first;
}

int
rnic_modify_qp(struct rnic_qp *qp, const struct rnic_qp_attr *attr, unsigned int mask)
{
	return rnic_modify_qps(&qp, attr, mask, NULL, 1);
}

void
client_qp_attr_from_ctrl(struct rnic_qp_attr *attr, const struct ring_ctrl_qp_attr *a)
{
	*attr = (struct rnic_qp_attr){
		.qp_state = a->state,
		.cur_qp_state = a->cur_state,
		.path_mtu = a->path_mtu,
		.path_mig_state = a->path_mig_state,
		.qkey = a->qkey,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qp_num = a->dest_qpn,
		.qp_access_flags = a->access,
		.rate_limit = a->rate_limit,
		.pkey_index = a->pkey_index,
		.en_sqd_async_notify = a->en_sqd_async_notify,
		.sq_draining = a->sq_draining,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.port_num = a->port,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
	};
	client_av_from_ctrl(&attr->ah_attr, &a->av);
}

static void
attr_from_query(struct rnic_qp_attr *attr, const struct ring_ctrl_query_qp_rep *rep)
{
	client_qp_attr_from_ctrl(attr, &rep->attr);
	attr->cap = (struct rnic_qp_cap){
		.max_send_wr = rep->max_send_wr,
		.max_recv_wr = rep->max_recv_wr,
		.max_send_sge = rep->max_send_sge,
		.max_recv_sge = rep->max_recv_sge,
		.max_inline_data = rep->max_inline,
	};
}

int
rnic_query_qp(struct rnic_qp *pub, struct rnic_qp_attr *attr, struct rnic_qp_init_attr *init)
{
	struct ring_ctrl_handle_req req = {.handle = pub->qp_num};
	struct ring_ctrl_query_qp_rep rep;
	struct rnic_qp_attr all;
	int rc = client_call1(pub->context, RING_CTRL_QUERY_QP, &req, &rep);

	if (rc)
		return rc;
	attr_from_query(&all, &rep);
	if (attr)
		*attr = all;
	if (init)
		*init = (struct rnic_qp_init_attr){
			.user_context = pub->user_context,
			.send_cq = pub->send_cq,
			.recv_cq = pub->recv_cq,
			.srq = pub->srq,
			.cap = all.cap,
			.qp_type = pub->qp_type,
			.sq_sig_all = client_qp(pub)->sig_all,
		};
	return 0;
}
