/* SPDX-License-Identifier: BSD-3-Clause */
/* What all objects have in common: the context's list of them, and how they end. */
#include <stdlib.h>

#include "client_priv.h"

void
client_obj_add(
	struct rnic_context *ctx, struct client_obj *obj, void (*release)(struct client_obj *))
{
	pthread_mutex_lock(&ctx->lock);
	obj->release = release;
	obj->next = ctx->objects;
	obj->prev = &ctx->objects;
	if (obj->next)
		obj->next->prev = &obj->next;
	ctx->objects = obj;
	pthread_mutex_unlock(&ctx->lock);
}

/* Events that were never told need no acknowledgement. */
static void
events_purge(struct rnic_context *ctx, const struct client_obj *obj)
{
	struct client_event **at = &ctx->events;
	uint32_t before = ctx->num_events;

	while (*at) {
		struct client_event *e = *at;

		if (e->obj != obj) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
		ctx->num_events--;
	}
	ctx->events_end = at;
	if (before && !ctx->num_events && !ctx->dead)
		client_fd_lower(ctx->event_fd);
}

void
client_obj_del(struct rnic_context *ctx, struct client_obj *obj)
{
	pthread_mutex_lock(&ctx->lock);
	events_purge(ctx, obj);
	while (obj->unacked)
		pthread_cond_wait(&ctx->cond, &ctx->lock);
	*obj->prev = obj->next;
	if (obj->next)
		obj->next->prev = obj->prev;
	pthread_mutex_unlock(&ctx->lock);
}

int
client_destroy_call(struct rnic_context *ctx, unsigned int op, uint32_t handle)
{
	struct ring_ctrl_handle_req req = {.handle = handle};
	struct ring_ctrl_done_rep rep;
	int rc = client_gate(ctx);

	if (rc == 0)
		rc = client_call1(ctx, op, &req, &rep);
	/* What the daemon had of it went with the context. */
	return rc != -EPERM && client_gate(ctx) == -ENOTCONN ? 0 : rc;
}
