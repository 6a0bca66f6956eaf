/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: what ids ask of the daemon, one or many at a time; and multicast groups. */
#include <stdlib.h>

#include "client_cm_priv.h"

/* ---- many at once ---- */

/** What is asked of each id. */
struct batch {
	unsigned int op; /* answered by a ring_ctrl_done_rep */
	int (*fill)(const struct batch *b, void *req, const struct rnic_cm_id *id, int i);
	const struct rnic_cm_param *params;
	const struct ring_ctrl_cm_addr_req *addr;
	uint32_t arg;
};

/* One message's worth. An element that cannot be filled in fails them all: none is sent. */
static int
batch_some(const struct batch *b, struct rnic_cm_id *const *ids, int first, unsigned int n,
	int *status)
{
	size_t size = ring_ctrl_info(b->op)->request_size;
	uint8_t *reqs = calloc(n, size);
	struct ring_ctrl_done_rep *reps = calloc(n, sizeof(*reps));
	int rc = reqs && reps ? 0 : -ENOMEM;
	int failed = 0;

	for (unsigned int i = 0; rc == 0 && i < n; i++)
		rc = b->fill(b, reqs + i * size, ids[first + (int)i], first + (int)i);
	if (rc == 0)
		rc = client_call(ids[0]->context, b->op, reqs, reps, n);
	for (unsigned int i = 0; i < n; i++) {
		int one = rc ? rc : reps[i].status > 0 ? -EPROTO : reps[i].status;

		if (status)
			status[first + (int)i] = one;
		if (one && !failed)
			failed = one;
	}
	free(reqs);
	free(reps);
	return failed;
}

static int
batch(const struct batch *b, struct rnic_cm_id *const *ids, int *status, int n)
{
	unsigned int max = ring_ctrl_info(b->op)->max_count;
	int first = 0;
	int rc = n > 0 ? client_gate(ids[0]->context) : -EINVAL;

	for (int i = 0; rc == 0 && i < n; i++) {
		if (ids[i]->context != ids[0]->context)
			rc = -EINVAL;
	}
	if (rc)
		return rc;
	for (int i = 0; i < n; i += (int)max) {
		unsigned int some = (unsigned int)(n - i) < max ? (unsigned int)(n - i) : max;

		rc = batch_some(b, ids, i, some, status);
		if (rc && !first)
			first = rc;
	}
	return first;
}

/* ---- addresses and routes ---- */

static int
fill_addr(const struct batch *b, void *req, const struct rnic_cm_id *id, int i)
{
	struct ring_ctrl_cm_addr_req *r = req;

	(void)i;
	*r = *b->addr;
	r->id = id->handle;
	return 0;
}

int
rnic_cm_resolve_addrs(struct rnic_cm_id *const *ids, const struct sockaddr *src,
	const struct sockaddr *dst, unsigned int timeout_ms, int *status, int n)
{
	struct ring_ctrl_cm_addr_req addr = {.timeout_ms = timeout_ms};
	struct batch b = {.op = RING_CTRL_CM_RESOLVE_ADDR, .fill = fill_addr, .addr = &addr};
	int rc = dst ? client_cm_addr_to_ctrl(&addr.src, src) : -EINVAL;

	if (rc == 0)
		rc = client_cm_addr_to_ctrl(&addr.dst, dst);
	return rc ? rc : batch(&b, ids, status, n);
}

int
rnic_cm_resolve_addr(struct rnic_cm_id *id, const struct sockaddr *src, const struct sockaddr *dst,
	unsigned int timeout_ms)
{
	return rnic_cm_resolve_addrs(&id, src, dst, timeout_ms, NULL, 1);
}

static int
fill_arg(const struct batch *b, void *req, const struct rnic_cm_id *id, int i)
{
	struct ring_ctrl_cm_arg_req *r = req;

	(void)i;
	r->id = id->handle;
	r->arg = b->arg;
	return 0;
}

int
rnic_cm_resolve_routes(struct rnic_cm_id *const *ids, unsigned int timeout_ms, int *status, int n)
{
	struct batch b = {
		.op = RING_CTRL_CM_RESOLVE_ROUTE, .fill = fill_arg, .arg = timeout_ms};

	return batch(&b, ids, status, n);
}

int
rnic_cm_resolve_route(struct rnic_cm_id *id, unsigned int timeout_ms)
{
	return rnic_cm_resolve_routes(&id, timeout_ms, NULL, 1);
}

/* ---- connecting ---- */

static int
private_fill(uint8_t *to, uint16_t *to_len, const void *data, uint16_t len)
{
	if (len > RING_CM_PRIVATE || (len && !data))
		return -EINVAL;
	if (len)
		memcpy(to, data, len);
	*to_len = len;
	return 0;
}

static int
fill_conn(const struct batch *b, void *req, const struct rnic_cm_id *id, int i)
{
	struct ring_ctrl_cm_conn_req *r = req;
	const struct rnic_cm_param *p = b->params ? &b->params[i] : NULL;

	r->id = id->handle;
	if (p) {
		r->qpn = p->qp_num;
		r->qkey = p->qkey;
		r->responder_resources = p->responder_resources;
		r->initiator_depth = p->initiator_depth;
		r->flow_control = p->flow_control;
		r->retry_count = p->retry_count;
		r->rnr_retry_count = p->rnr_retry_count;
		r->srq = p->srq;
	}
	if (!p && b->op == RING_CTRL_CM_ACCEPT) /* whatever the request has offered */
		r->responder_resources = r->initiator_depth = UINT8_MAX;
	if (id->qp) {
		r->qpn = id->qp->qp_num;
		r->srq = id->qp->srq != NULL;
		r->flags = RING_CM_MOVE_QP;
	}
	return p ? private_fill(r->private_data, &r->private_len, p->private_data,
			   p->private_data_len)
		 : 0;
}

int
rnic_cm_connects(
	struct rnic_cm_id *const *ids, const struct rnic_cm_param *params, int *status, int n)
{
	struct batch b = {.op = RING_CTRL_CM_CONNECT, .fill = fill_conn, .params = params};

	return batch(&b, ids, status, n);
}

int
rnic_cm_connect(struct rnic_cm_id *id, const struct rnic_cm_param *param)
{
	return rnic_cm_connects(&id, param, NULL, 1);
}

int
rnic_cm_accepts(
	struct rnic_cm_id *const *ids, const struct rnic_cm_param *params, int *status, int n)
{
	struct batch b = {.op = RING_CTRL_CM_ACCEPT, .fill = fill_conn, .params = params};

	return batch(&b, ids, status, n);
}

int
rnic_cm_accept(struct rnic_cm_id *id, const struct rnic_cm_param *param)
{
	return rnic_cm_accepts(&id, param, NULL, 1);
}

int
rnic_cm_reject_reason(
	struct rnic_cm_id *id, uint16_t reason, const void *private_data, uint16_t len)
{
	struct ring_ctrl_cm_reject_req req = {.id = id->handle, .reason = reason};
	struct ring_ctrl_done_rep rep;
	int rc = private_fill(req.private_data, &req.private_len, private_data, len);

	return rc ? rc : client_call1(id->context, RING_CTRL_CM_REJECT, &req, &rep);
}

int
rnic_cm_reject(struct rnic_cm_id *id, const void *private_data, uint16_t len)
{
	return rnic_cm_reject_reason(id, 0, private_data, len);
}

static int
fill_handle(const struct batch *b, void *req, const struct rnic_cm_id *id, int i)
{
	struct ring_ctrl_handle_req *r = req;

	(void)b;
	(void)i;
	r->handle = id->handle;
	return 0;
}

int
rnic_cm_establish(struct rnic_cm_id *id)
{
	struct batch b = {.op = RING_CTRL_CM_ESTABLISH, .fill = fill_handle};

	return batch(&b, &id, NULL, 1);
}

int
rnic_cm_disconnects(struct rnic_cm_id *const *ids, int *status, int n)
{
	struct batch b = {.op = RING_CTRL_CM_DISCONNECT, .fill = fill_handle};

	return batch(&b, ids, status, n);
}

int
rnic_cm_disconnect(struct rnic_cm_id *id)
{
	return rnic_cm_disconnects(&id, NULL, 1);
}

int
rnic_cm_notify(struct rnic_cm_id *id, uint32_t event)
{
	struct ring_ctrl_cm_notify_req req = {.id = id->handle, .event = event};
	struct ring_ctrl_done_rep rep;

	return client_call1(id->context, RING_CTRL_CM_NOTIFY, &req, &rep);
}

/* ---- multicast ---- */

static int
mcast_call(struct rnic_cm_id *id, unsigned int op, const struct sockaddr *group, void *context)
{
	struct ring_ctrl_cm_mcast_req req = {
		.id = id->handle,
		.qpn = id->qp ? id->qp->qp_num : RING_NO_HANDLE,
		.user_handle = (uintptr_t)context,
	};
	struct ring_ctrl_done_rep rep;
	int rc = group ? client_cm_addr_to_ctrl(&req.group, group) : -EINVAL;

	return rc ? rc : client_call1(id->context, op, &req, &rep);
}

int
rnic_cm_join_multicast(struct rnic_cm_id *id, const struct sockaddr *group, void *context)
{
	return mcast_call(id, RING_CTRL_CM_JOIN_MCAST, group, context);
}

int
rnic_cm_leave_multicast(struct rnic_cm_id *id, const struct sockaddr *group)
{
	return mcast_call(id, RING_CTRL_CM_LEAVE_MCAST, group, NULL);
}
