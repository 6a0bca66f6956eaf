/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues. What the client posts lies in one block, index ring and entries; a larger
 * size is a new block, to which what is posted is copied while workers go on taking: they find
 * the same under the same index in both, and the old one goes when none can be looking there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_priv.h"

/* ---- memory ---------- */

static uint64_t
index_bytes(uint32_t entries)
{
	uint64_t n = (uint64_t)rte_align32pow2(entries) * sizeof(uint32_t);

	return n < RING_LINE ? RING_LINE : n;
}

static int
entries_alloc(struct ctl_client *c, const struct ctl_srq *srq, uint32_t n, struct arena_block **b)
{
	return ctl_mem_alloc(c, RING_ARENA_C, index_bytes(n) + (uint64_t)n * srq->v.stride,
		RING_LINE, true, b);
}

static struct verbs_srq_ring
entries_at(const struct arena_block *b, uint32_t n)
{
	const uint8_t *base = ctl_block_ptr(b);

	return (struct verbs_srq_ring){
		.index = (const _Atomic uint32_t *)base,
		.slots = base + index_bytes(n),
		.mask = rte_align32pow2(n) - 1,
		.entries = n,
	};
}

static const struct verbs_srq_ring *
where(const struct ctl_srq *srq)
{
	return atomic_load_explicit(&srq->v.ring, memory_order_relaxed);
}

static void
srq_free(struct ctl_srq *srq)
{
	ctl_mem_free(&srq->client_words);
	ctl_mem_free(&srq->daemon_words);
	ctl_mem_free(&srq->entries);
	free(srq);
}

/* ---- making ---------- */

static bool
size_ok(uint32_t max_wr, uint32_t limit)
{
	return max_wr != 0 && max_wr <= CTL_MAX_SRQ_WR && limit <= max_wr;
}

static struct ctl_srq *
srq_new(const struct ctl_client *c, const struct ring_ctrl_create_srq_req *r)
{
	uint32_t n = c->dev->sh.num_workers;
	struct ctl_srq *srq = calloc(1, sizeof(*srq) + n * sizeof(srq->w.late[0]));

	if (srq == NULL)
		return NULL;
	srq->w.num_workers = n;
	srq->home = RING_NO_HANDLE;
	srq->max_wr = r->max_wr;
	srq->v.owner = &srq->w;
	srq->v.max_sge = r->max_sge != 0 ? (uint8_t)r->max_sge : 1;
	srq->v.stride = RING_SLOT_SIZE * ring_rwqe_slots(srq->v.max_sge);
	return srq;
}

static int
srq_memory(struct ctl_client *c, struct ctl_srq *srq)
{
	int err = ctl_mem_alloc(c, RING_ARENA_C, sizeof(struct ring_srq_client), RING_LINE, true,
		&srq->client_words);

	if (err == 0)
		err = ctl_mem_alloc(c, RING_ARENA_D, sizeof(struct ring_srq_daemon), RING_LINE,
			true, &srq->daemon_words);
	if (err == 0)
		err = entries_alloc(c, srq, srq->max_wr, &srq->entries);
	if (err < 0)
		return err;
	srq->v.client = ctl_block_ptr(srq->client_words);
	srq->v.daemon = ctl_block_ptr(srq->daemon_words);
	srq->where[0] = entries_at(srq->entries, srq->max_wr);
	atomic_store_explicit(&srq->v.ring, &srq->where[0], memory_order_relaxed);
	return 0;
}

static int
srq_enter(struct ctl_client *c, struct ctl_srq *srq)
{
	struct roce_qpn_table *srqns = c->dev->sh.srqns;
	int err;

	srq->v.srqn = roce_qpn_alloc(srqns);
	if (srq->v.srqn == 0)
		return ctl_total_out(c->dev, CTL_SRQ);
	err = ctl_obj_add(c, &srq->o, CTL_SRQ, srq->v.srqn);
	if (err < 0)
		roce_qpn_release(srqns, srq->v.srqn);
	return err;
}

static void
create_reply(const struct ctl_srq *srq, struct ring_ctrl_create_srq_rep *p)
{
	p->srqn = srq->v.srqn;
	p->max_wr = srq->max_wr;
	p->max_sge = srq->v.max_sge;
	p->log_index = (uint8_t)rte_log2_u32(where(srq)->mask + 1);
	p->slots_per_wr = (uint8_t)(srq->v.stride / RING_SLOT_SIZE);
	p->index = ctl_block_loc(srq->entries);
	p->slots = p->index + index_bytes(srq->max_wr);
	p->client = ctl_block_loc(srq->client_words);
	p->daemon = ctl_block_loc(srq->daemon_words);
}

/* What it needs beside memory. XRC: a domain and a CQ; else neither. */
static int
create_refs(struct ctl_client *c, struct ctl_srq *srq, const struct ring_ctrl_create_srq_req *r)
{
	srq->pd = ctl_obj_find(c, CTL_PD, r->pd);
	if (srq->pd == NULL)
		return -EINVAL;
	if (r->xrcd == RING_NO_HANDLE && r->cqn == RING_NO_HANDLE)
		return 0;
	srq->xrcd = ctl_obj_find(c, CTL_XRCD, r->xrcd);
	srq->cq = ctl_cq_find(c, r->cqn);
	if (srq->xrcd == NULL || srq->cq == NULL)
		return -EINVAL;
	srq->v.xrcd = (uint32_t)srq->xrcd->xrc->node.key;
	srq->v.cq = srq->cq->vcq;
	srq->v.serial = ++c->dev->next_serial;
	return 0;
}

static void
refs_get(struct ctl_srq *srq)
{
	srq->pd->o.refs++;
	if (srq->cq != NULL) {
		srq->cq->o.refs++;
		srq->xrcd->o.refs++;
	}
}

static void
refs_put(struct ctl_srq *srq)
{
	srq->pd->o.refs--;
	if (srq->cq != NULL) {
		srq->cq->o.refs--;
		srq->xrcd->o.refs--;
	}
}

static void
srq_gone(struct worker_device *d, struct ctl_srq *srq)
{
	roce_qpn_release(d->sh.srqns, srq->v.srqn);
	refs_put(srq);
	ctl_obj_del(&srq->o, 0);
	srq_free(srq);
}

/* ---- XRC: the workers' ends of the CQ ---------- */

static void ends_step(struct ctl_srq *srq);

static void
ends_done(struct ctl_srq *srq, int status)
{
	struct worker_device *d = srq->o.client->dev;
	struct ctl_elem e = srq->resizer;

	srq->making = false;
	if (status == 0 && srq->o.dying)
		status = -ECONNRESET;
	if (status == 0) {
		create_reply(srq, ctl_elem_rep(e));
		roce_srqn_set(d->sh.srqns, srq->v.srqn, &srq->v);
	}
	ctl_elem_done(e, status);
	if (srq->o.dying)
		ctl_srq_destroy(&srq->o);
	else if (status < 0)
		srq_gone(d, srq);
}

static void
ends_mem(struct ctl_wait *w, int status)
{
	struct ctl_srq *srq =
		(struct ctl_srq *)((uint8_t *)w - offsetof(struct ctl_srq, mem_wait));

	if (status < 0)
		ends_done(srq, status);
	else
		ends_step(srq);
}

static void
ends_cq(struct ctl_cq_waiter *w, int status)
{
	struct ctl_srq *srq = (struct ctl_srq *)((uint8_t *)w - offsetof(struct ctl_srq, cq_wait));

	if (status < 0)
		ends_done(srq, status);
	else
		ends_step(srq);
}

/* Any worker may have a target of the domain, now or later. */
static void
ends_step(struct ctl_srq *srq)
{
	struct ctl_client *c = srq->o.client;
	int err = 0;

	srq->cq_wait.resume = ends_cq;
	srq->mem_wait.resume = ends_mem;
	for (uint32_t w = 0; w < c->dev->sh.num_workers && err == 0; w++)
		err = ctl_cq_sub_get(srq->cq, w, &srq->cq_wait);
	if (err == -EINPROGRESS)
		return;
	if (err == -EAGAIN && c->state != CTL_CLIENT_DYING)
		ctl_wait_add(c, &srq->mem_wait);
	else
		ends_done(srq, err);
}

static int
create_made(struct ctl_srq *srq, const struct ring_ctrl_create_srq_req *r, void *rep,
	struct ctl_elem e)
{
	srq->o.user_handle = r->user_handle;
	srq->v.pd = ctl_pd_number(srq->pd);
	refs_get(srq);
	verbs_srq_arm(&srq->v, r->limit); /* for those that will be posted */
	if (srq->cq == NULL) {
		create_reply(srq, rep);
		return 0;
	}
	srq->making = true;
	srq->resizer = e;
	ends_step(srq);
	return CTL_LATER;
}

int
ctl_op_create_srq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_create_srq_req *r = req;
	struct ctl_srq *srq;
	int err;

	if (!size_ok(r->max_wr, r->limit) || r->max_sge > RING_MAX_SGE)
		return -EINVAL;
	err = ctl_obj_room(c, CTL_SRQ);
	if (err < 0)
		return err;
	srq = srq_new(c, r);
	if (srq == NULL)
		return -ENOMEM;
	err = create_refs(c, srq, r);
	if (err == 0)
		err = srq_memory(c, srq);
	if (err == 0)
		err = srq_enter(c, srq);
	if (err < 0) {
		srq_free(srq);
		return err == -EAGAIN ? CTL_AGAIN : err;
	}
	return create_made(srq, r, rep, e);
}

uint32_t
ctl_srq_worker(struct worker_device *d, struct ctl_srq *srq, const struct ctl_cq *cq)
{
	if (srq->home == RING_NO_HANDLE)
		srq->home = ctl_worker_for(d, cq);
	return ctl_worker_near(d, srq->home);
}

/* ---- changing ---------- */

/* The change has been made. Of a limit that is reached already nobody else would tell. */
static void
modified(struct ctl_srq *srq, const struct ring_ctrl_modify_srq_req *r,
	struct ring_ctrl_modify_srq_rep *p)
{
	if (r->mask & RING_SRQ_MAX_WR)
		srq->max_wr = r->max_wr;
	if (r->mask & RING_SRQ_LIMIT) {
		verbs_srq_arm(&srq->v, r->limit);
		if (verbs_srq_reached(&srq->v))
			ctl_event_object(&srq->o, RING_EVENT_SRQ_LIMIT_REACHED,
				RING_EVENT_OF_SRQ);
	}
	if (p == NULL)
		return;
	p->max_wr = srq->max_wr;
	p->entries = where(srq)->entries;
	p->log_index = (uint8_t)rte_log2_u32(where(srq)->mask + 1);
	p->index = ctl_block_loc(srq->entries);
	p->slots = p->index + index_bytes(p->entries);
}

static void
resize_passed(struct worker_device *d, struct ctl_grace *g)
{
	struct ctl_srq *srq = (struct ctl_srq *)((uint8_t *)g - offsetof(struct ctl_srq, grace));
	struct ctl_elem e = srq->resizer;

	(void)d;
	ctl_mem_free(&srq->old);
	srq->resizing = false;
	modified(srq, &srq->modify, ctl_elem_rep(e));
	ctl_elem_done(e, 0);
	if (srq->o.dying)
		ctl_srq_destroy(&srq->o);
}

/*
 * Its client posts nothing meanwhile, if it is honest; workers take. All that may be posted lies
 * within a ring's length of any head, so that of this one will do.
 */
static void
entries_copy(const struct ctl_srq *srq, const struct verbs_srq_ring *to, struct arena_block *b)
{
	const struct verbs_srq_ring *from = where(srq);
	uint32_t head = atomic_load_explicit(&srq->v.daemon->head, memory_order_acquire);
	uint32_t *index = ctl_block_ptr(b);
	uint8_t *slots = (uint8_t *)index + index_bytes(to->entries);

	for (uint32_t i = head; i - head <= from->mask; i++)
		index[i & to->mask] = atomic_load_explicit(&from->index[i & from->mask],
			memory_order_relaxed);
	memcpy(slots, from->slots, (size_t)from->entries * srq->v.stride);
}

static int
resize(struct ctl_client *c, struct ctl_srq *srq, const struct ring_ctrl_modify_srq_req *r,
	struct ctl_elem e)
{
	struct verbs_srq_ring *to = &srq->where[where(srq) == &srq->where[0]];
	struct arena_block *b = NULL;
	int err = entries_alloc(c, srq, r->max_wr, &b);

	if (err < 0)
		return err == -EAGAIN ? CTL_AGAIN : err;
	*to = entries_at(b, r->max_wr);
	entries_copy(srq, to, b);
	c->spent += (uint32_t)((uint64_t)where(srq)->entries * srq->v.stride / CTL_CLEAR_UNIT);
	srq->old = srq->entries;
	srq->entries = b;
	srq->resizing = true;
	srq->resizer = e;
	srq->modify = *r;
	/* pairs with the acquire of the workers' fetch: what lies there is copied */
	atomic_store_explicit(&srq->v.ring, to, memory_order_release);
	srq->grace.passed = resize_passed;
	ctl_grace_add(c->dev, &srq->grace);
	return CTL_LATER;
}

int
ctl_op_modify_srq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_modify_srq_req *r = req;
	struct ctl_srq *srq = ctl_obj_find(c, CTL_SRQ, r->srqn);
	uint32_t max_wr, limit;

	if (srq == NULL || (r->mask & ~(uint32_t)(RING_SRQ_MAX_WR | RING_SRQ_LIMIT)) != 0)
		return -EINVAL;
	if (srq->resizing || srq->making)
		return -EBUSY;
	max_wr = (r->mask & RING_SRQ_MAX_WR) ? r->max_wr : srq->max_wr;
	limit = (r->mask & RING_SRQ_LIMIT) ? r->limit : verbs_srq_armed(&srq->v);
	if (!size_ok(max_wr, limit))
		return -EINVAL;
	if ((r->mask & RING_SRQ_MAX_WR) && verbs_srq_count(&srq->v) > max_wr)
		return -EINVAL;
	if (max_wr > where(srq)->entries)
		return resize(c, srq, r, e);
	modified(srq, r, rep);
	return 0;
}

int
ctl_op_query_srq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ring_ctrl_query_srq_rep *p = rep;
	struct ctl_srq *srq = ctl_obj_find(c, CTL_SRQ, r->handle);

	(void)e;
	if (srq == NULL || r->reserved != 0)
		return -EINVAL;
	p->max_wr = srq->max_wr;
	p->max_sge = srq->v.max_sge;
	p->limit = verbs_srq_armed(&srq->v);
	return 0;
}

/* ---- the end ---------- */

/* One worker after the other: what each of them has to tell of it comes before its answer. */
static void
del_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_srq *srq = (struct ctl_srq *)((uint8_t *)m - offsetof(struct ctl_srq, msg));

	if (srq->told == d->sh.num_workers) {
		srq_gone(d, srq);
		return;
	}
	m->m = (struct worker_msg){.type = WORKER_MSG_SRQ_DEL, .srq = &srq->v};
	m->replied = del_replied;
	ctl_msg_send(d, srq->told++, m);
}

void
ctl_srq_destroy(struct ctl_obj *o)
{
	struct ctl_srq *srq = (struct ctl_srq *)o;

	ctl_obj_dying(o);
	if (srq->resizing || srq->making)
		return; /* it comes here again */
	roce_srqn_set(o->client->dev->sh.srqns, srq->v.srqn, NULL);
	del_replied(o->client->dev, &srq->msg);
}

int
ctl_op_destroy_srq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_srq *srq = ctl_obj_find(c, CTL_SRQ, r->handle);

	(void)rep;
	if (srq == NULL || r->reserved != 0)
		return -EINVAL;
	if (srq->o.refs != 0 || srq->resizing || srq->making)
		return -EBUSY;
	srq->o.destroyer = e;
	ctl_srq_destroy(&srq->o);
	return CTL_LATER;
}
