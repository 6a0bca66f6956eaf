/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues: an index ring over an array of slots. Slots complete out of order, so
 * they are handed out by a free list of our own.
 */
#include <stdlib.h>

#include "client_priv.h"
#include "ring_wq.h"

#define POSTED(srq) ((srq)->num_wr + 1) /* in free_next: the slot is with the daemon */

static void
srq_release(struct client_obj *obj)
{
	struct rnic_srq *srq = CLIENT_OF(struct rnic_srq, obj, obj);

	free(srq->free_next);
	free(srq->wr_ids);
	free(srq);
}

/* With the context's lock. */
static int
srq_places(struct rnic_srq *srq, const struct ring_ctrl_create_srq_rep *rep)
{
	struct rnic_context *ctx = srq->context;
	uint64_t slots = (uint64_t)rep->max_wr * rep->slots_per_wr;

	if (!rep->max_wr || rep->max_wr > RING_MAX_ENTRIES || rep->log_index > 20 ||
		rep->max_wr > 1u << rep->log_index || rep->max_sge > RING_MAX_SGE ||
		rep->slots_per_wr < ring_rwqe_slots(rep->max_sge))
		return -EPROTO;
	srq->index = client_loc(
		ctx, rep->index, sizeof(uint32_t) << rep->log_index, RING_LINE, RING_ARENA_C);
	srq->slots = client_loc(ctx, rep->slots, slots * RING_SLOT_SIZE, RING_LINE, RING_ARENA_C);
	srq->client = client_loc(ctx, rep->client, sizeof(*srq->client), RING_LINE, RING_ARENA_C);
	if (!srq->index || !srq->slots || !srq->client)
		return -EPROTO;
	return client_map_put(&ctx->srqs, rep->srqn, srq) ? -EPROTO : 0;
}

static int
srq_setup(struct rnic_srq *srq, const struct ring_ctrl_create_srq_rep *rep)
{
	int rc;

	srq->srqn = rep->srqn;
	srq->num_wr = rep->max_wr;
	srq->max_sge = rep->max_sge;
	srq->slots_per_wr = rep->slots_per_wr;
	srq->index_mask = (1u << (rep->log_index & 31)) - 1;
	pthread_mutex_lock(&srq->context->lock);
	rc = srq_places(srq, rep);
	pthread_mutex_unlock(&srq->context->lock);
	if (rc)
		return rc;
	srq->free_next = malloc(srq->num_wr * sizeof(*srq->free_next));
	srq->wr_ids = calloc(srq->num_wr, sizeof(*srq->wr_ids));
	if (!srq->free_next || !srq->wr_ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < srq->num_wr; i++)
		srq->free_next[i] = i + 1;
	return 0;
}

static void
srq_unmap(struct rnic_srq *srq)
{
	pthread_mutex_lock(&srq->context->lock);
	if (client_map_get(&srq->context->srqs, srq->srqn) == srq)
		client_map_del(&srq->context->srqs, srq->srqn);
	pthread_mutex_unlock(&srq->context->lock);
}

int
rnic_create_srq(struct rnic_pd *pd, struct rnic_srq_init_attr *attr, struct rnic_srq **out)
{
	struct ring_ctrl_create_srq_req req = {
		.pd = pd->handle,
		.max_wr = attr->attr.max_wr,
		.max_sge = attr->attr.max_sge,
		.limit = attr->attr.srq_limit,
		.xrcd = RING_NO_HANDLE,
		.cqn = RING_NO_HANDLE,
	};
	struct ring_ctrl_create_srq_rep rep;
	struct rnic_context *ctx = pd->context;
	struct rnic_srq *srq;
	int rc = client_gate(ctx);

	if (rc)
		return rc;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->context = ctx;
	srq->pd = pd;
	srq->user_context = attr->user_context;
	srq->lock.none = (attr->flags | ctx->flags) & RNIC_THREAD_UNSAFE;
	req.user_handle = (uintptr_t)srq;
	rc = client_call1(ctx, RING_CTRL_CREATE_SRQ, &req, &rep);
	if (rc)
		goto fail;
	rc = srq_setup(srq, &rep);
	if (rc) {
		srq_unmap(srq);
		client_destroy_call(ctx, RING_CTRL_DESTROY_SRQ, rep.srqn);
		goto fail;
	}
	attr->attr.max_wr = rep.max_wr;
	attr->attr.max_sge = rep.max_sge;
	client_obj_add(ctx, &srq->obj, srq_release);
	*out = srq;
	return 0;
fail:
	srq_release(&srq->obj);
	return rc;
}

int
rnic_modify_srq(struct rnic_srq *srq, const struct rnic_srq_attr *attr, unsigned int mask)
{
	struct ring_ctrl_modify_srq_req req = {
		.srqn = srq->srqn,
		.mask = mask,
		.max_wr = attr->max_wr,
		.limit = attr->srq_limit,
	};
	struct ring_ctrl_done_rep rep;

	return client_call1(srq->context, RING_CTRL_MODIFY_SRQ, &req, &rep);
}

int
rnic_query_srq(struct rnic_srq *srq, struct rnic_srq_attr *attr)
{
	struct ring_ctrl_handle_req req = {.handle = srq->srqn};
	struct ring_ctrl_query_srq_rep rep;
	int rc = client_call1(srq->context, RING_CTRL_QUERY_SRQ, &req, &rep);

	if (rc == 0)
		*attr = (struct rnic_srq_attr){
			.max_wr = rep.max_wr,
			.max_sge = rep.max_sge,
			.srq_limit = rep.limit,
		};
	return rc;
}

int
rnic_destroy_srq(struct rnic_srq *srq)
{
	struct rnic_context *ctx = srq->context;
	int rc = client_destroy_call(ctx, RING_CTRL_DESTROY_SRQ, srq->srqn);

	if (rc)
		return rc;
	srq_unmap(srq);
	client_obj_del(ctx, &srq->obj);
	srq_release(&srq->obj);
	return 0;
}

uint32_t
rnic_srq_num(const struct rnic_srq *srq)
{
	return srq->srqn;
}

void *
rnic_srq_user_context(const struct rnic_srq *srq)
{
	return srq->user_context;
}

bool
client_srq_complete(struct rnic_srq *srq, uint32_t slot, uint64_t *wr_id)
{
	bool ok;

	client_lock(&srq->lock);
	ok = slot < srq->num_wr && srq->free_next[slot] == POSTED(srq);
	if (ok) {
		*wr_id = srq->wr_ids[slot];
		srq->free_next[slot] = srq->free_head;
		srq->free_head = slot;
	}
	client_unlock(&srq->lock);
	return ok;
}

/* With the lock. */
static int
srq_post_one(struct rnic_srq *srq, const struct rnic_recv_wr *wr)
{
	uint32_t slot = srq->free_head;
	struct ring_rwqe *w;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge)
		return -EINVAL;
	if (slot == srq->num_wr)
		return -ENOMEM;
	srq->free_head = srq->free_next[slot];
	srq->free_next[slot] = POSTED(srq);
	srq->wr_ids[slot] = wr->wr_id;
	w = (struct ring_rwqe *)(void *)(srq->slots +
		(size_t)slot * srq->slots_per_wr * RING_SLOT_SIZE);
	memset(w, 0, offsetof(struct ring_rwqe, sge));
	w->num_slots = (uint8_t)ring_rwqe_slots((uint32_t)wr->num_sge);
	w->num_sge = (uint8_t)wr->num_sge;
	if (wr->num_sge)
		memcpy((uint8_t *)w + offsetof(struct ring_rwqe, sge), wr->sg_list,
			(size_t)wr->num_sge * sizeof(struct ring_sge));
	srq->index[srq->tail++ & srq->index_mask] = slot;
	return 0;
}

int
rnic_post_srq_recv(
	struct rnic_srq *srq, const struct rnic_recv_wr *wr, const struct rnic_recv_wr **bad)
{
	int rc = client_gate(srq->context);

	if (rc == 0) {
		client_lock(&srq->lock);
		for (; wr; wr = wr->next) {
			rc = srq_post_one(srq, wr);
			if (rc)
				break;
		}
		/* pairs with the worker's acquire: slots and index are there before the tail */
		atomic_store_explicit(&srq->client->tail, srq->tail, memory_order_release);
		client_unlock(&srq->lock);
	}
	if (rc && bad)
		*bad = wr;
	return rc;
}
