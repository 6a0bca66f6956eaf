/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events: from the daemon's push to the application's acknowledgement. */
#include <poll.h>
#include <stdlib.h>

#include "client_priv.h"

#define MAX_EVENTS 65536 /* untold: the daemon's own queue is shorter */

int
client_event_queue(
	struct rnic_context *ctx, struct client_obj *obj, const struct rnic_async_event *event)
{
	struct client_event *e;

	if (ctx->num_events >= MAX_EVENTS)
		return -ENOBUFS;
	e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	*e = (struct client_event){.obj = obj, .event = *event};
	*ctx->events_end = e;
	ctx->events_end = &e->next;
	if (ctx->num_events++ == 0)
		client_fd_raise(ctx->event_fd);
	return 0;
}

/* An object that the daemon names but we do not have is one that is just being made: its
 * creation's reply is later. Nobody can be told of it yet, and nothing can have happened to it. */
int
client_event_push(struct rnic_context *ctx, const struct ring_ctrl_event *e)
{
	struct rnic_async_event ev = {
		.event_type = e->type,
		.cause = e->cause,
		.kind = e->object,
	};
	struct client_obj *obj = NULL;
	void *p = NULL;

	switch (e->object) {
	case RING_EVENT_OF_QP:
		p = client_map_get(&ctx->qps, e->handle);
		if (p) {
			ev.element.qp = &((struct client_qp *)p)->pub;
			obj = &((struct client_qp *)p)->obj;
		}
		break;
	case RING_EVENT_OF_CQ:
		p = client_map_get(&ctx->cqs, e->handle);
		if (p) {
			ev.element.cq = &((struct client_cq *)p)->pub;
			obj = &((struct client_cq *)p)->obj;
		}
		break;
	case RING_EVENT_OF_SRQ:
		p = client_map_get(&ctx->srqs, e->handle);
		if (p) {
			ev.element.srq = p;
			obj = &((struct rnic_srq *)p)->obj;
		}
		break;
	default:
		ev.element.port_num = e->handle;
		return client_event_queue(ctx, NULL, &ev);
	}
	return obj ? client_event_queue(ctx, obj, &ev) : 0;
}

static void
event_take(struct rnic_context *ctx, struct rnic_async_event *event)
{
	struct client_event *e = ctx->events;

	ctx->events = e->next;
	if (!ctx->events)
		ctx->events_end = &ctx->events;
	if (--ctx->num_events == 0 && !ctx->dead)
		client_fd_lower(ctx->event_fd);
	if (e->obj)
		e->obj->unacked++;
	*event = e->event;
	free(e);
}

int
rnic_async_fd(const struct rnic_context *ctx)
{
	return ctx->async_fd;
}

int
rnic_get_async_event(struct rnic_context *ctx, struct rnic_async_event *event)
{
	int rc = 0;

	if (client_is_child(ctx))
		return -EPERM;
	pthread_mutex_lock(&ctx->lock);
	while (!ctx->events) {
		if (!ctx->reading)
			client_drain(ctx);
		if (ctx->events)
			break;
		rc = ctx->dead ? -ENOTCONN : client_fd_blocks(ctx->async_fd) ? 0 : -EAGAIN;
		if (rc)
			goto out;
		client_wait_step(ctx, POLLIN);
	}
	event_take(ctx, event);
	rc = 0;
out:
	pthread_cond_broadcast(&ctx->cond);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

void
rnic_ack_async_event(struct rnic_context *ctx, const struct rnic_async_event *event)
{
	struct client_obj *obj = NULL;

	if (client_is_child(ctx))
		return;
	pthread_mutex_lock(&ctx->lock);
	if (event->kind == RING_EVENT_OF_QP)
		obj = &client_qp(event->element.qp)->obj;
	else if (event->kind == RING_EVENT_OF_CQ)
		obj = &client_cq(event->element.cq)->obj;
	else if (event->kind == RING_EVENT_OF_SRQ)
		obj = &event->element.srq->obj;
	if (obj && obj->unacked && --obj->unacked == 0)
		pthread_cond_broadcast(&ctx->cond);
	pthread_mutex_unlock(&ctx->lock);
}
