/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues: an index ring over an array of slots. Slots complete out of order, so
 * they are handed out by a free list of our own. A queue that has become larger lies elsewhere.
 */
#include <stdlib.h>

#include "client_priv.h"
#include "ring_wq.h"

static void
srq_release(struct client_obj *obj)
{
	struct rnic_srq *srq = CLIENT_OF(struct rnic_srq, obj, obj);

	free(srq->free_next);
	free(srq->wr_ids);
	free(srq);
}

/* Where its entries lie, which a resize changes. With the context's lock. */
static int
srq_entries(struct rnic_srq *srq, ring_loc_t index, ring_loc_t slots, uint32_t entries,
	unsigned int log_index)
{
	uint64_t bytes = (uint64_t)entries * srq->slots_per_wr * RING_SLOT_SIZE;
	struct rnic_context *ctx = srq->context;
	uint32_t *at;

	if (!entries || entries > RING_MAX_ENTRIES || log_index > 20 || entries > 1u << log_index)
		return -EPROTO;
	at = client_loc(ctx, index, sizeof(uint32_t) << log_index, RING_LINE, RING_ARENA_C);
	srq->slots = client_loc(ctx, slots, bytes, RING_LINE, RING_ARENA_C);
	if (!at || !srq->slots)
		return -EPROTO;
	srq->index = at;
	srq->index_mask = (1u << log_index) - 1;
	return 0;
}

/* With the context's lock. */
static int
srq_places(struct rnic_srq *srq, const struct ring_ctrl_create_srq_rep *rep)
{
	struct rnic_context *ctx = srq->context;
	int rc;

	if (rep->max_sge > RING_MAX_SGE || rep->slots_per_wr < ring_rwqe_slots(rep->max_sge))
		return -EPROTO;
	rc = srq_entries(srq, rep->index, rep->slots, rep->max_wr, rep->log_index);
	if (rc)
		return rc;
	srq->client = client_loc(ctx, rep->client, sizeof(*srq->client), RING_LINE, RING_ARENA_C);
	if (!srq->client)
		return -EPROTO;
	return client_map_put(&ctx->srqs, rep->srqn, srq) ? -EPROTO : 0;
}

/* Room for what is known of so many slots; none is lost when there is none. */
static int
srq_room(struct rnic_srq *srq, uint32_t entries)
{
	uint32_t *next = realloc(srq->free_next, entries * sizeof(*next));
	uint64_t *ids;

	if (!next)
		return -ENOMEM;
	srq->free_next = next;
	ids = realloc(srq->wr_ids, entries * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	srq->wr_ids = ids;
	return 0;
}

/* The slots up to `entries` are there: those that are new are free, the lowest first. */
static void
srq_extend(struct rnic_srq *srq, uint32_t entries)
{
	for (uint32_t i = entries; i-- > srq->entries;) {
		srq->free_next[i] = srq->free_head;
		srq->free_head = i;
	}
	srq->entries = entries;
}

static int
srq_setup(struct rnic_srq *srq, const struct ring_ctrl_create_srq_rep *rep)
{
	int rc;

	srq->srqn = rep->srqn;
	srq->max_wr = rep->max_wr;
	srq->max_sge = rep->max_sge;
	srq->slots_per_wr = rep->slots_per_wr;
	srq->free_head = CLIENT_SRQ_END;
	pthread_mutex_lock(&srq->context->lock);
	rc = srq_places(srq, rep);
	pthread_mutex_unlock(&srq->context->lock);
	if (rc == 0)
		rc = srq_room(srq, rep->max_wr);
	if (rc == 0)
		srq_extend(srq, rep->max_wr);
	return rc;
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
		.xrcd = attr->xrcd ? attr->xrcd->handle : RING_NO_HANDLE,
		.cqn = attr->cq ? attr->cq->handle : RING_NO_HANDLE,
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
	srq->xrcd = attr->xrcd;
	srq->cq = attr->cq;
	srq->user_context = attr->user_context;
	srq->lock.none = (attr->flags | ctx->flags) & RNIC_THREAD_UNSAFE;
	req.user_handle = (uintptr_t)srq;
	rc = client_call1(ctx, RING_CTRL_CREATE_SRQ, &req, &rep);
	if (rc)
		goto fail;
	rc = srq_setup(srq, &rep);
	if (rc == 0 && srq->cq)
		rc = client_cq_attach_srq(srq->cq, srq);
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

/* What the daemon says of it now. An answer that makes no sense is the end of the context. */
static int
srq_modified(struct rnic_srq *srq, const struct ring_ctrl_modify_srq_rep *rep, uint32_t room)
{
	struct rnic_context *ctx = srq->context;
	int rc = -EPROTO;

	pthread_mutex_lock(&ctx->lock);
	if (rep->entries >= srq->entries && rep->entries <= room && rep->max_wr <= rep->entries)
		rc = srq_entries(srq, rep->index, rep->slots, rep->entries, rep->log_index);
	if (rc)
		client_die(ctx, -EPROTO);
	pthread_mutex_unlock(&ctx->lock);
	if (rc)
		return rc;
	srq_extend(srq, rep->entries);
	srq->max_wr = rep->max_wr;
	return 0;
}

/*
 * Nothing is posted while the daemon moves what is there, and nothing completes: who polls
 * meanwhile waits.
 */
int
rnic_modify_srq(struct rnic_srq *srq, const struct rnic_srq_attr *attr, unsigned int mask)
{
	struct ring_ctrl_modify_srq_req req = {
		.srqn = srq->srqn,
		.mask = mask,
		.max_wr = attr->max_wr,
		.limit = attr->srq_limit,
	};
	struct ring_ctrl_modify_srq_rep rep;
	uint32_t room;
	int rc = client_gate(srq->context);

	if (rc)
		return rc;
	if (!(mask & RNIC_SRQ_MAX_WR))
		return client_call1(srq->context, RING_CTRL_MODIFY_SRQ, &req, &rep);
	if (attr->max_wr > RING_MAX_ENTRIES)
		return -EINVAL;
	client_lock(&srq->lock);
	room = srq->entries;
	if (attr->max_wr > room) {
		room = attr->max_wr;
		rc = srq_room(srq, room);
	}
	if (rc == 0)
		rc = client_call1(srq->context, RING_CTRL_MODIFY_SRQ, &req, &rep);
	if (rc == 0)
		rc = srq_modified(srq, &rep, room);
	client_unlock(&srq->lock);
	return rc;
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
	if (srq->cq)
		client_cq_detach_srq(srq->cq, srq);
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
	ok = slot < srq->entries && srq->free_next[slot] == CLIENT_SRQ_POSTED;
	if (ok) {
		*wr_id = srq->wr_ids[slot];
		srq->free_next[slot] = srq->free_head;
		srq->free_head = slot;
		srq->in_use--;
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
	if (srq->in_use >= srq->max_wr || slot == CLIENT_SRQ_END)
		return -ENOMEM;
	srq->in_use++;
	srq->free_head = srq->free_next[slot];
	srq->free_next[slot] = CLIENT_SRQ_POSTED;
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
