/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs of connections: the attributes of each state, and moving those that are ours to
 * move. An id may end while its QP is being moved: whoever goes on then looks for it by number.
 */
#include <bsd/stdlib.h>
#include <errno.h>

#include "ctl_cm.h"
#include "ctl_qp.h"

#define MIN_RNR_TIMER 12 /* code: 0.64 ms; nothing in the messages says it */
#define UDP_QKEY 0x01234567u

/* ---- attributes ---------- */

static uint32_t
attr_init(const struct ctl_cm_id *id, struct ring_ctrl_qp_attr *a)
{
	uint32_t mask = RING_QP_STATE | RING_QP_PKEY_INDEX | RING_QP_PORT;

	a->port = id->av.port;
	if (id->qp_type == RING_QPT_UD) {
		a->qkey = UDP_QKEY;
		return mask | RING_QP_QKEY;
	}
	a->access = RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE;
	if (id->qp_type == RING_QPT_RC)
		a->access |= RING_ACCESS_REMOTE_READ | RING_ACCESS_REMOTE_ATOMIC;
	return mask | RING_QP_ACCESS_FLAGS;
}

static uint32_t
attr_rtr(struct ctl_cm_id *id, struct ring_ctrl_qp_attr *a)
{
	uint32_t mask = RING_QP_STATE;

	if (id->qp_type == RING_QPT_UD)
		return mask;
	ctl_cm_roce_qp_attr(id, a);
	a->min_rnr_timer = MIN_RNR_TIMER;
	mask |= RING_QP_AV | RING_QP_PATH_MTU | RING_QP_DEST_QPN | RING_QP_RQ_PSN;
	if (id->qp_type == RING_QPT_RC)
		mask |= RING_QP_MAX_DEST_RD_ATOMIC | RING_QP_MIN_RNR_TIMER;
	return mask;
}

static uint32_t
attr_rts(struct ctl_cm_id *id, struct ring_ctrl_qp_attr *a)
{
	uint32_t mask = RING_QP_STATE | RING_QP_SQ_PSN;

	if (id->qp_type == RING_QPT_UD) {
		a->sq_psn = arc4random() & 0xffffff;
		return mask;
	}
	ctl_cm_roce_qp_attr(id, a);
	if (id->has_ack_timeout)
		a->timeout = id->ack_timeout;
	if (id->qp_type == RING_QPT_RC)
		mask |= RING_QP_TIMEOUT | RING_QP_RETRY_CNT | RING_QP_RNR_RETRY |
			RING_QP_MAX_QP_RD_ATOMIC;
	return mask;
}

int
ctl_cm_qp_attr(struct ctl_cm_id *id, unsigned int state, struct ring_ctrl_qp_attr *a,
	uint32_t *mask)
{
	bool peer = id->qp_type == RING_QPT_UD || id->conn != NULL;

	memset(a, 0, sizeof(*a));
	if (id->av.port == 0)
		return -EINVAL;
	if (state == RING_QPS_INIT)
		*mask = attr_init(id, a);
	else if (state == RING_QPS_RTR && peer)
		*mask = attr_rtr(id, a);
	else if (state == RING_QPS_RTS && peer)
		*mask = attr_rts(id, a);
	else
		return -EINVAL;
	a->state = (uint8_t)state;
	return 0;
}

int
ctl_op_cm_qp_attr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_qp_attr_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, UINT32_MAX);
	struct ring_ctrl_cm_qp_attr_rep *p = rep;

	(void)e;
	return id != NULL ? ctl_cm_qp_attr(id, r->state, &p->attr, &p->mask) : -EINVAL;
}

/* ---- which QP ---------- */

/*
 * A program may have several contexts, its QP in another one than its id; but what others have
 * cannot be named, or nobody but who named it could connect it.
 */
struct ctl_qp *
ctl_cm_qp_find(struct ctl_cm_id *id, uint32_t qpn)
{
	struct ctl_client *c = id->o.client;
	struct ctl_obj *o = (struct ctl_obj *)ctl_map_find(&c->dev->objs[CTL_QP], qpn);

	if (o == NULL || o->dying || ((struct ctl_qp *)o)->type != id->qp_type ||
		o->client->user != c->user)
		return NULL;
	return (struct ctl_qp *)o;
}

int
ctl_cm_qp_hold(struct ctl_cm_id *id, uint32_t qpn)
{
	int err = ctl_map_add(&id->o.client->dev->cm.by_qpn, &id->qpn_node, qpn);

	if (err < 0)
		return err == -EEXIST ? -EBUSY : err;
	id->by_qpn = true;
	id->qpn = qpn;
	return 0;
}

void
ctl_cm_qp_unhold(struct ctl_cm_id *id)
{
	if (id->by_qpn)
		ctl_map_del(&id->o.client->dev->cm.by_qpn, &id->qpn_node);
	id->by_qpn = false;
}

/* ---- moving ---------- */

static void move_step(struct ctl_cm_id *id);

static void
step_told(struct ctl_client *c, uint32_t who, int status)
{
	struct ctl_cm_id *id = ctl_obj_find(c, CTL_CM_ID, who);

	if (id == NULL || id->moved == NULL)
		return;
	if (status == 0 && id->move_next < id->move_last) {
		id->move_next++;
		move_step(id);
	} else {
		void (*moved)(struct ctl_cm_id *i, int s) = id->moved;

		id->moved = NULL;
		moved(id, status);
	}
}

static void
move_step(struct ctl_cm_id *id)
{
	struct ctl_qp_change ch = {
		.worker = id->worker, .tell_est = id->state == CTL_CM_REQUEST,
		.told = step_told, .who = ctl_obj_handle(&id->o)};
	struct ctl_qp *qp = ctl_obj_find(id->o.client, CTL_QP, id->qpn);
	int err = qp != NULL ? ctl_cm_qp_attr(id, id->move_next, &ch.attr, &ch.mask) : -EINVAL;

	if (err == 0)
		err = ctl_qp_modify(qp, &ch);
	if (err < 0)
		step_told(id->o.client, ctl_obj_handle(&id->o), err);
}

void
ctl_cm_qp_move(struct ctl_cm_id *id, unsigned int from, unsigned int to,
	void (*moved)(struct ctl_cm_id *id, int status))
{
	id->move_next = (uint8_t)from;
	id->move_last = (uint8_t)to;
	id->moved = moved;
	move_step(id);
}

void
ctl_cm_qp_fail(struct ctl_cm_id *id)
{
	struct ctl_qp_change ch = {
		.attr.state = RING_QPS_ERR, .mask = RING_QP_STATE, .worker = RING_NO_HANDLE};
	struct ctl_qp *qp = id->moves ? ctl_obj_find(id->o.client, CTL_QP, id->qpn) : NULL;

	if (qp != NULL && ctl_qp_state(qp) != RING_QPS_RESET)
		ctl_qp_modify(qp, &ch); /* without memory it stays, and its retries run out */
}
