/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: what clients ask of them, and what becomes of an id when the transport says that
 * something has happened. The order of an id's states is in docs/design.md.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_cm.h"
#include "ctl_qp.h"

#define OVER_OR(state) (CTL_CM_IN(state) | CTL_CM_IN(OVER))

/* ---- listening ---------- */

int
ctl_op_cm_listen(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	static const struct ring_cm_addr any = {
		.ip.raw = {[10] = 0xff, [11] = 0xff}, .version = 4};
	const struct ring_ctrl_cm_arg_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, CTL_CM_IN(IDLE) | CTL_CM_IN(BOUND));
	int err = id != NULL ? 0 : -EINVAL;

	(void)rep;
	(void)e;
	if (err == 0 && id->state == CTL_CM_IDLE) {
		err = ctl_cm_addr_bind(id, &any);
		if (err == 0)
			err = ctl_cm_port_take(id);
		if (err == 0)
			id->state = CTL_CM_BOUND;
	}
	if (err == 0)
		err = ctl_cm_port_listen(id);
	if (err == 0)
		err = ctl_cm_roce_listen(id);
	if (err < 0)
		return err;
	id->backlog = r->arg != 0 && r->arg < CTL_CM_MAX_BACKLOG ? r->arg : CTL_CM_MAX_BACKLOG;
	id->state = CTL_CM_LISTEN;
	return 0;
}

/* ---- connecting ---------- */

static bool
conn_ok(const struct ring_ctrl_cm_conn_req *r)
{
	return r->private_len <= RING_CM_PRIVATE && (r->flags & ~RING_CM_MOVE_QP) == 0 &&
		(r->reserved[0] | r->reserved[1] | r->reserved[2]) == 0 && r->flow_control <= 1 &&
		r->srq <= 1;
}

/* The QP of a connection: one of the right type; if it is ours to move, of this context. */
static int
conn_qp(struct ctl_cm_id *id, const struct ring_ctrl_cm_conn_req *r)
{
	struct ctl_qp *qp = ctl_cm_qp_find(id, r->qpn);

	if (qp == NULL)
		return -EINVAL;
	id->moves = (r->flags & RING_CM_MOVE_QP) != 0;
	if (id->moves &&
		(qp->o.client != id->o.client || ctl_qp_state(qp) != RING_QPS_INIT ||
			qp->attr.port != id->av.port))
		return -EINVAL;
	return ctl_cm_qp_hold(id, r->qpn);
}

int
ctl_op_cm_connect(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_conn_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, CTL_CM_IN(ROUTE_RESOLVED));
	int err = id != NULL && conn_ok(r) ? 0 : -EINVAL;

	(void)rep;
	(void)e;
	if (err == 0 && id->qp_type != RING_QPT_UD)
		err = conn_qp(id, r);
	if (err == 0)
		err = ctl_cm_roce_connect(id, r);
	if (err < 0) {
		if (id != NULL)
			ctl_cm_qp_unhold(id);
		return err;
	}
	id->state = CTL_CM_CONNECT;
	return 0;
}

static void
response_up(struct ctl_cm_id *id, int status)
{
	static const struct ring_ctrl_cm_reject_req no = {0};
	struct ctl_cm_event *e = id->held;

	id->held = NULL;
	if (id->state != CTL_CM_CONNECT) {
		free(e); /* it was over before */
		return;
	}
	if (status == 0)
		status = ctl_cm_roce_confirm(id);
	else
		ctl_cm_roce_reject(id, &no);
	if (status < 0) {
		free(e);
		ctl_cm_conn_over(
			id, ctl_cm_event_new(id, RING_CM_CONNECT_ERROR, status, NULL, 0));
		return;
	}
	id->state = CTL_CM_ESTABLISHED;
	id->connected = true;
	ctl_cm_event_send(e);
}

void
ctl_cm_conn_response(struct ctl_cm_id *id, struct ctl_cm_event *e)
{
	if (!id->moves) {
		id->state = CTL_CM_RESPONSE;
		ctl_cm_event_send(e);
		return;
	}
	e->rep.event = RING_CM_ESTABLISHED;
	id->held = e;
	ctl_cm_qp_move(id, RING_QPS_RTR, RING_QPS_RTS, response_up);
}

int
ctl_op_cm_establish(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->handle, OVER_OR(RESPONSE));
	int err;

	(void)rep;
	(void)e;
	if (id == NULL || r->reserved != 0)
		return -EINVAL;
	if (id->state == CTL_CM_OVER)
		return -ENOTCONN;
	err = ctl_cm_roce_confirm(id);
	if (err == 0) {
		id->state = CTL_CM_ESTABLISHED;
		id->connected = true;
	}
	return err;
}

/* ---- accepting ---------- */

/*
 * Its QP is ready for the peer: say so to it, and to whoever asked. It is in RTS, since whoever
 * receives what comes before the peer's confirmation may want to answer it.
 */
static void
accept_up(struct ctl_cm_id *id, int status)
{
	struct ctl_elem e = id->accepter;

	id->accepter.call = NULL;
	if (id->state != CTL_CM_REQUEST)
		status = -ENOTCONN; /* the peer has given up meanwhile */
	else if (status == 0)
		status = ctl_cm_roce_accept(id, &id->accept);
	if (status == 0)
		id->state = CTL_CM_ACCEPT;
	else
		ctl_cm_qp_unhold(id);
	ctl_elem_done(e, status);
}

static int
accept_connected(struct ctl_cm_id *id, struct ctl_elem e)
{
	int err = conn_qp(id, &id->accept);

	if (err < 0)
		return err;
	if (id->moves) {
		id->accepter = e;
		ctl_cm_qp_move(id, RING_QPS_RTR, RING_QPS_RTS, accept_up);
		return CTL_LATER;
	}
	err = ctl_cm_roce_accept(id, &id->accept);
	if (err == 0)
		id->state = CTL_CM_ACCEPT;
	else
		ctl_cm_qp_unhold(id);
	return err;
}

int
ctl_op_cm_accept(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_conn_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, OVER_OR(REQUEST));
	int err;

	(void)rep;
	if (id == NULL || !conn_ok(r) || id->accepter.call != NULL)
		return -EINVAL;
	if (id->state == CTL_CM_OVER)
		return -ENOTCONN;
	id->accept = *r;
	if (id->qp_type != RING_QPT_UD)
		return accept_connected(id, e);
	if (ctl_cm_qp_find(id, r->qpn) == NULL)
		return -EINVAL;
	err = ctl_cm_roce_accept(id, r);
	if (err == 0)
		id->state = CTL_CM_ESTABLISHED;
	return err;
}

void
ctl_cm_conn_established(struct ctl_cm_id *id, struct ctl_cm_event *e)
{
	id->state = CTL_CM_ESTABLISHED;
	id->connected = true;
	ctl_cm_event_send(e);
}

int
ctl_op_cm_notify(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_notify_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, UINT32_MAX);
	int err;

	(void)rep;
	(void)e;
	if (id == NULL || r->event != RING_EVENT_COMM_EST || !id->by_qpn)
		return -EINVAL;
	err = ctl_cm_roce_notify(c->dev, id->qpn);
	return err == -EISCONN ? 0 : err;
}

/* ---- the end of it ---------- */

int
ctl_op_cm_reject(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_reject_req *r = req;
	struct ctl_cm_id *id =
		ctl_cm_id_find(c, r->id, OVER_OR(REQUEST) | CTL_CM_IN(RESPONSE));
	int err;

	(void)rep;
	(void)e;
	if (id == NULL || r->private_len > RING_CM_PRIVATE || id->accepter.call != NULL)
		return -EINVAL;
	if (id->state == CTL_CM_OVER)
		return -ENOTCONN;
	err = ctl_cm_roce_reject(id, r);
	if (err != -EINVAL)
		ctl_cm_conn_over(id, NULL);
	return err;
}

int
ctl_op_cm_disconnect(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->handle,
		CTL_CM_IN(CONNECT) | CTL_CM_IN(RESPONSE) | CTL_CM_IN(ACCEPT) |
			CTL_CM_IN(ESTABLISHED) | CTL_CM_IN(DISCONNECT) | CTL_CM_IN(OVER));

	(void)rep;
	(void)e;
	if (id == NULL || r->reserved != 0 || id->qp_type == RING_QPT_UD)
		return -EINVAL;
	if (id->state == CTL_CM_OVER || id->state == CTL_CM_DISCONNECT)
		return 0;
	ctl_cm_qp_fail(id);
	/* Whoever was not connected yet is not told to, and nothing more comes of it. */
	if (id->state != CTL_CM_ESTABLISHED || ctl_cm_roce_disconnect(id) < 0) {
		ctl_cm_roce_disconnect(id);
		ctl_cm_conn_over(
			id, ctl_cm_event_new(id, RING_CM_DISCONNECTED, 0, NULL, 0));
	} else {
		id->state = CTL_CM_DISCONNECT;
	}
	return 0;
}

void
ctl_cm_conn_over(struct ctl_cm_id *id, struct ctl_cm_event *e)
{
	if (id->moved == NULL) { /* else whoever moves its QP finds it here */
		free(id->held);
		id->held = NULL;
	}
	id->state = CTL_CM_OVER;
	ctl_cm_qp_fail(id);
	/* To whom the request was not told its end is not either. */
	if (e != NULL && id->asked == NULL)
		ctl_cm_event_send(e);
	else
		free(e);
}
