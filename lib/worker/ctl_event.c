/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events and the notifications that workers leave to the control thread. An event's
 * object exists: whatever a worker says of it comes before the answer that lets it go.
 */
#include <errno.h>

#include "base_status.h"
#include "ctl_priv.h"

/* For people: a completion status, as of the side that failed, or -errno. */
static int32_t
cause_of(unsigned int type)
{
	switch (type) {
	case RING_EVENT_CQ_ERR:
		return -EOVERFLOW; /* more completions than entries */
	case RING_EVENT_SRQ_ERR:
		return -EBADMSG; /* incredible indices */
	case RING_EVENT_QP_REQ_ERR:
		return WC_REM_INV_REQ_ERR;
	case RING_EVENT_QP_ACCESS_ERR:
		return WC_REM_ACCESS_ERR;
	case RING_EVENT_QP_FATAL:
		return WC_FATAL_ERR;
	case RING_EVENT_PORT_ERR:
		return -ENETDOWN;
	case RING_EVENT_DEVICE_FATAL:
		return -ESHUTDOWN;
	default:
		return 0;
	}
}

void
ctl_event_push(struct ctl_client *c, const struct ring_ctrl_event *ev)
{
	struct ring_ctrl_event push = *ev;

	push.cause = cause_of(ev->type);
	if (c->state == CTL_CLIENT_OPEN)
		ctl_client_push(c, RING_CTRL_EVENT, &push, NULL);
}

void
ctl_event_all(struct worker_device *d, unsigned int type, unsigned int object, uint32_t handle)
{
	const struct ring_ctrl_event ev = {.type = type, .object = object, .handle = handle};
	struct ctl_client *c;

	TAILQ_FOREACH(c, &d->clients, link)
		ctl_event_push(c, &ev);
}

void
ctl_event_object(struct ctl_obj *o, unsigned int type, unsigned int object)
{
	ctl_event_of(o, type, object, ctl_obj_handle(o));
}

void
ctl_event_of(struct ctl_obj *o, unsigned int type, unsigned int object, uint32_t handle)
{
	const struct ring_ctrl_event ev = {
		.type = type,
		.object = object,
		.handle = handle,
		.user_handle = o->user_handle,
	};

	/* Its destruction is being answered: none may follow. */
	if (o->dying)
		return;
	o->events++;
	ctl_event_push(o->client, &ev);
}

static struct ctl_qp *
qp_of(const struct verbs_qp *qp)
{
	return (struct ctl_qp *)((uint8_t *)qp->owner - offsetof(struct ctl_qp, w));
}

static void
qp_event(struct ctl_qp *qp, unsigned int type)
{
	if (qp->xrc != NULL)
		ctl_target_event(qp, type);
	else
		ctl_event_object(&qp->o, type, RING_EVENT_OF_QP);
}

void
ctl_event_from_worker(struct worker_device *d, const struct worker_msg *m)
{
	const struct verbs_qp *qp = m->event.obj;
	const struct verbs_cq *cq = m->event.obj;
	const struct verbs_srq *srq = m->event.obj;

	/* Types are numbered alike on both sides. */
	switch (m->event.event) {
	case VERBS_EVENT_CQ_ERR:
		ctl_event_object(&((struct ctl_cq *)cq->owner)->o, RING_EVENT_CQ_ERR,
			RING_EVENT_OF_CQ);
		break;
	case VERBS_EVENT_COMM_EST:
		ctl_cm_qp_established(d, ctl_obj_handle(&qp_of(qp)->o));
		qp_event(qp_of(qp), m->event.event);
		break;
	case VERBS_EVENT_QP_FATAL:
	case VERBS_EVENT_QP_REQ_ERR:
	case VERBS_EVENT_QP_ACCESS_ERR:
	case VERBS_EVENT_SQ_DRAINED:
	case VERBS_EVENT_QP_LAST_WQE_REACHED:
		qp_event(qp_of(qp), m->event.event);
		break;
	case VERBS_EVENT_SRQ_ERR:
	case VERBS_EVENT_SRQ_LIMIT_REACHED:
		ctl_event_object(&ctl_srq_of_verbs(srq)->o, m->event.event, RING_EVENT_OF_SRQ);
		break;
	}
}

void
ctl_notify(struct worker_device *d, struct verbs_cq *cq)
{
	const struct worker_cq *w = cq->owner;

	(void)d;
	/* The worker has pushed the CQ's number; the pipe was left to us. */
	if (w->channel != NULL)
		worker_channel_write(w->channel, 1);
}
