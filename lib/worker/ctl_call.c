/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests: a table of the operations' functions, beginning elements in order and answering
 * when the last is done. A request that needs memory which is not there stops those behind it,
 * of its own client alone; so does the end of the client's turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_call.h"

static const ctl_op_fn ops[RING_CTRL_OP_COUNT] = {
	[RING_CTRL_HELLO] = ctl_op_hello,
	[RING_CTRL_LIST_DEVICE] = ctl_op_list_device,
	[RING_CTRL_QUERY_DEVICE] = ctl_op_query_device,
	[RING_CTRL_QUERY_PORT] = ctl_op_query_port,
	[RING_CTRL_QUERY_GID] = ctl_op_query_gid,
	[RING_CTRL_RESOLVE] = ctl_op_resolve,
	[RING_CTRL_ALLOC_PD] = ctl_op_alloc_pd,
	[RING_CTRL_DEALLOC_PD] = ctl_op_dealloc_pd,
	[RING_CTRL_ALLOC_MEM] = ctl_op_alloc_mem,
	[RING_CTRL_FREE_MEM] = ctl_op_free_mem,
	[RING_CTRL_REG_MR] = ctl_op_reg_mr,
	[RING_CTRL_REREG_MR] = ctl_op_rereg_mr,
	[RING_CTRL_DEREG_MR] = ctl_op_dereg_mr,
	[RING_CTRL_ALLOC_MW] = ctl_op_alloc_mw,
	[RING_CTRL_DEALLOC_MW] = ctl_op_dealloc_mw,
	[RING_CTRL_ALLOC_FAST_MR] = ctl_op_alloc_fast_mr,
	[RING_CTRL_EXPORT] = ctl_op_export,
	[RING_CTRL_IMPORT] = ctl_op_import,
	[RING_CTRL_CREATE_CHANNEL] = ctl_op_create_channel,
	[RING_CTRL_DESTROY_CHANNEL] = ctl_op_destroy_channel,
	[RING_CTRL_CREATE_CQ] = ctl_op_create_cq,
	[RING_CTRL_RESIZE_CQ] = ctl_op_resize_cq,
	[RING_CTRL_DESTROY_CQ] = ctl_op_destroy_cq,
	[RING_CTRL_CREATE_QP] = ctl_op_create_qp,
	[RING_CTRL_MODIFY_QP] = ctl_op_modify_qp,
	[RING_CTRL_QUERY_QP] = ctl_op_query_qp,
	[RING_CTRL_DESTROY_QP] = ctl_op_destroy_qp,
	[RING_CTRL_CREATE_SRQ] = ctl_op_create_srq,
	[RING_CTRL_MODIFY_SRQ] = ctl_op_modify_srq,
	[RING_CTRL_QUERY_SRQ] = ctl_op_query_srq,
	[RING_CTRL_DESTROY_SRQ] = ctl_op_destroy_srq,
	[RING_CTRL_ALLOC_XRCD] = ctl_op_alloc_xrcd,
	[RING_CTRL_DEALLOC_XRCD] = ctl_op_dealloc_xrcd,
	[RING_CTRL_OPEN_QP] = ctl_op_open_qp,
	[RING_CTRL_CREATE_AH] = ctl_op_create_ah,
	[RING_CTRL_DESTROY_AH] = ctl_op_destroy_ah,
	[RING_CTRL_ATTACH_MCAST] = ctl_op_attach_mcast,
	[RING_CTRL_DETACH_MCAST] = ctl_op_detach_mcast,
	[RING_CTRL_CM_LISTEN] = ctl_op_cm_listen,
	[RING_CTRL_CM_CONNECT] = ctl_op_cm_connect,
	[RING_CTRL_CM_ACCEPT] = ctl_op_cm_accept,
	[RING_CTRL_CM_REJECT] = ctl_op_cm_reject,
	[RING_CTRL_CM_ESTABLISH] = ctl_op_cm_establish,
	[RING_CTRL_CM_DISCONNECT] = ctl_op_cm_disconnect,
	[RING_CTRL_CM_GET_EVENT] = ctl_op_cm_get_event,
	[RING_CTRL_CM_CREATE_CHANNEL] = ctl_op_cm_create_channel,
	[RING_CTRL_CM_DESTROY_CHANNEL] = ctl_op_cm_destroy_channel,
	[RING_CTRL_CM_CREATE_ID] = ctl_op_cm_create_id,
	[RING_CTRL_CM_DESTROY_ID] = ctl_op_cm_destroy_id,
	[RING_CTRL_CM_MIGRATE] = ctl_op_cm_migrate,
	[RING_CTRL_CM_BIND] = ctl_op_cm_bind,
	[RING_CTRL_CM_RESOLVE_ADDR] = ctl_op_cm_resolve_addr,
	[RING_CTRL_CM_RESOLVE_ROUTE] = ctl_op_cm_resolve_route,
	[RING_CTRL_CM_NOTIFY] = ctl_op_cm_notify,
	[RING_CTRL_CM_QP_ATTR] = ctl_op_cm_qp_attr,
	[RING_CTRL_CM_QUERY] = ctl_op_cm_query,
	[RING_CTRL_CM_SET_OPTION] = ctl_op_cm_set_option,
	[RING_CTRL_CM_JOIN_MCAST] = ctl_op_cm_join_mcast,
	[RING_CTRL_CM_LEAVE_MCAST] = ctl_op_cm_leave_mcast,
};

bool
ctl_op_known(unsigned int op)
{
	return op < RING_CTRL_OP_COUNT && ops[op] != NULL;
}

/* ---- elements ---------- */

void *
ctl_elem_rep(struct ctl_elem e)
{
	return e.call->rep + ring_ctrl_size(e.call->op, e.index, false);
}

const void *
ctl_elem_req(struct ctl_elem e)
{
	return e.call->req + (size_t)e.index * ring_ctrl_info(e.call->op)->request_size;
}

static void
set_status(struct ctl_elem e, int status)
{
	int32_t *rep = ctl_elem_rep(e); /* every reply begins with it */

	/* MODIFY_QP tells the state whatever the status, DESTROY_* have counted events */
	if (status < 0 && e.call->op != RING_CTRL_MODIFY_QP)
		memset(rep, 0, ring_ctrl_info(e.call->op)->reply_size);
	*rep = status;
}

static void
call_free(struct ctl_call *call)
{
	for (uint32_t i = 0; i < call->num_fds; i++)
		close(call->fds[i]);
	ctl_user_fds_put(call->client->user, call->num_fds);
	free(call->req);
	free(call);
}

/* Nothing of it is left to be done: answer. */
static void
call_finish(struct ctl_call *call)
{
	struct ctl_client *c = call->client;
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)call->rep;

	TAILQ_REMOVE(&c->calls, call, link);
	c->num_elems -= call->count;
	if (c->state != CTL_CLIENT_DYING) {
		ring_ctrl_hdr_init(h, call->op, RING_CTRL_REPLY, call->id, call->count);
		h->num_fds = (uint16_t)call->num_fds;
		ctl_client_send(c, h, ring_ctrl_size(call->op, call->count, false), call->fds);
	} else {
		ctl_client_reap(c);
	}
	call_free(call);
}

static void
call_unpend(struct ctl_call *call)
{
	if (--call->pending == 0 && call->begun == call->count)
		call_finish(call);
}

void
ctl_elem_done(struct ctl_elem e, int status)
{
	if (e.call == NULL)
		return;
	set_status(e, status);
	call_unpend(e.call);
}

/* ---- beginning ---------- */

struct ctl_call *
ctl_call_new(struct ctl_client *c, const struct ring_ctrl_hdr *h, const void *body)
{
	const struct ring_ctrl_info *info = ring_ctrl_info(h->op);
	size_t req = ((size_t)info->request_size * h->count + 7) & ~(size_t)7;
	struct ctl_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->req = calloc(1, req + ring_ctrl_size(h->op, h->count, false));
	if (call->req == NULL) {
		free(call);
		return NULL;
	}
	memcpy(call->req, body, (size_t)info->request_size * h->count);
	call->rep = call->req + req;
	call->client = c;
	call->op = h->op;
	call->id = h->id;
	call->count = h->count;
	TAILQ_INSERT_TAIL(&c->queue, call, link);
	c->num_elems += call->count;
	c->queue_bytes += req;
	return call;
}

/* The first request of the queue has all its elements begun. */
static void
call_begun(struct ctl_client *c, struct ctl_call *call)
{
	size_t req = ((size_t)ring_ctrl_info(call->op)->request_size * call->count + 7) &
		~(size_t)7;

	TAILQ_REMOVE(&c->queue, call, link);
	c->queue_bytes -= req;
	TAILQ_INSERT_TAIL(&c->calls, call, link);
}

/* The rest of its queue waits for the client's next turn. */
static void
end_turn(struct ctl_client *c)
{
	if (c->ready || c->state == CTL_CLIENT_DYING)
		return;
	c->ready = true;
	c->dev->num_ready++;
	TAILQ_INSERT_TAIL(&c->dev->ready, c, ready_link);
}

/* @return false: stalled, or the turn is over. */
static bool
elem_begin(struct ctl_client *c, struct ctl_call *call)
{
	struct ctl_elem e = {call, call->begun};
	int r = c->stall_status;

	if (ctl_client_spent(c)) {
		end_turn(c);
		return false;
	}
	c->spent++;
	c->stall_status = 0;
	call->pending++;
	if (r == 0)
		r = ops[call->op](c, ctl_elem_req(e), ctl_elem_rep(e), e);
	if (r == CTL_AGAIN || r == CTL_YIELD) {
		call->pending--;
		if (r == CTL_YIELD) {
			end_turn(c);
		} else {
			c->stalled = true;
			ctl_wait_add(c, &c->stall);
		}
		return false;
	}
	call->begun++;
	if (r == CTL_LATER)
		return true;
	if (call->op == RING_CTRL_HELLO && r < 0 && c->state == CTL_CLIENT_HELLO)
		c->state = CTL_CLIENT_NEW; /* it may try another device */
	set_status(e, r);
	call->pending--;
	return true;
}

void
ctl_client_run(struct ctl_client *c)
{
	struct ctl_call *call;

	while (c->state != CTL_CLIENT_DYING && !c->stalled && !c->ready &&
		(call = TAILQ_FIRST(&c->queue)) != NULL) {
		/* Held while elements are begun: the last of those begun so far may finish. */
		call->pending++;
		while (call->begun < call->count && c->state != CTL_CLIENT_DYING)
			if (!elem_begin(c, call))
				break;
		if (call->begun < call->count) {
			call->pending--;
			return;
		}
		call_begun(c, call);
		call_unpend(call);
	}
}

/* Memory has come, or will not come: the stalled element is begun again, or fails. */
void
ctl_client_resume(struct ctl_wait *w, int status)
{
	struct ctl_client *c =
		(struct ctl_client *)((uint8_t *)w - offsetof(struct ctl_client, stall));

	c->stalled = false;
	c->stall_status = status;
	ctl_client_run(c);
}

/* What was not begun is forgotten; of one begun in part only the rest is. */
void
ctl_client_drop_queue(struct ctl_client *c)
{
	struct ctl_call *call;

	while ((call = TAILQ_FIRST(&c->queue)) != NULL) {
		call->pending++;
		call_begun(c, call);
		call->begun = call->count;
		call_unpend(call);
	}
}
