/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels and queues. A CQ has a sub-ring for each worker that owns a QP of it, made
 * when the first such QP is bound; a resize gives each of them a new ring, one SWITCH each.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_priv.h"
#include "ring_cq.h"

/* ---- channels ---------- */

/* Our end is the channel's, the other goes with the reply. */
static int
channel_pipe(struct ctl_channel *ch, struct ctl_call *call)
{
	struct ctl_client *c = call->client;
	int fd[2], err = ctl_user_fds(c->dev, c->user, 2);

	if (err < 0)
		return err;
	if (pipe2(fd, O_NONBLOCK | O_CLOEXEC) < 0) {
		err = -errno;
		ctl_user_fds_put(c->user, 2);
		return err;
	}
	ch->ch.wr_fd = fd[1];
	call->fds[call->num_fds++] = fd[0];
	return 0;
}

int
ctl_op_create_channel(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_empty_req *r = req;
	struct ring_ctrl_create_channel_rep *p = rep;
	uint32_t n = c->dev->sh.num_workers + 1;
	struct arena_block *b = NULL;
	struct ctl_channel *ch;
	int err;

	if (r->reserved != 0)
		return -EINVAL;
	err = ctl_mem_alloc(c, RING_ARENA_D, n * sizeof(struct ring_channel_sub), RING_LINE, true,
		&b);
	if (err < 0)
		return err == -EAGAIN ? CTL_AGAIN : err;
	ch = calloc(1, sizeof(*ch));
	err = -ENOMEM;
	if (ch == NULL)
		goto free_block;
	ch->subs = b;
	for (uint32_t i = 0; i < n; i++)
		ch->ch.sub[i] = (struct ring_channel_sub *)ctl_block_ptr(b) + i;
	err = channel_pipe(ch, e.call);
	if (err < 0)
		goto free_channel;
	err = ctl_obj_add_numbered(c, &ch->o, CTL_CHANNEL);
	if (err < 0)
		goto close_pipe;
	p->handle = ctl_obj_handle(&ch->o);
	p->num_subs = n;
	p->subs = ctl_block_loc(b);
	return 0;
close_pipe:
	close(ch->ch.wr_fd);
	close(e.call->fds[--e.call->num_fds]);
	ctl_user_fds_put(c->user, 2);
free_channel:
	free(ch);
free_block:
	ctl_mem_free(&b);
	return err;
}

void
ctl_channel_destroy(struct ctl_obj *o)
{
	struct ctl_channel *ch = (struct ctl_channel *)o;

	close(ch->ch.wr_fd);
	ctl_user_fds_put(o->client->user, 1);
	ctl_mem_free(&ch->subs);
	ctl_obj_del(o, 0);
	free(ch);
}

int
ctl_op_destroy_channel(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_channel *ch = ctl_obj_find(c, CTL_CHANNEL, r->handle);

	(void)rep;
	(void)e;
	if (ch == NULL || r->reserved != 0)
		return -EINVAL;
	if (ch->o.refs != 0)
		return -EBUSY;
	ctl_channel_destroy(&ch->o);
	return 0;
}

/* ---- CQs ---------- */

static struct ctl_cq *
cq_of(struct ctl_obj *o)
{
	return (struct ctl_cq *)((uint8_t *)o - offsetof(struct ctl_cq, o));
}

static struct ctl_cq *
cq_find(struct ctl_client *c, uint32_t cqn)
{
	struct ctl_obj *o = ctl_obj_find(c, CTL_CQ, cqn);

	return o != NULL ? cq_of(o) : NULL;
}

struct ctl_cq *
ctl_cq_find(struct ctl_client *c, uint32_t cqn)
{
	return cq_find(c, cqn);
}

static void
cq_free(struct ctl_cq *cq)
{
	ctl_mem_free(&cq->client_words);
	ctl_mem_free(&cq->daemon_words);
	for (uint32_t w = 0; cq->vcq != NULL && w < cq->vcq->num_workers; w++) {
		ctl_mem_free(&cq->sub[w].ring);
		ctl_mem_free(&cq->sub[w].old);
		ctl_mem_free(&cq->sub[w].fresh);
	}
	free(cq->vcq);
	free(cq);
}

static int
cq_alloc(struct ctl_client *c, struct ctl_cq **out)
{
	uint32_t n = c->dev->sh.num_workers;
	struct ctl_cq *cq = calloc(1, sizeof(*cq) + n * sizeof(cq->sub[0]));
	size_t size = RTE_ALIGN_CEIL(verbs_cq_size(n), RING_LINE);

	if (cq == NULL)
		return -ENOMEM;
	TAILQ_INIT(&cq->waiters);
	cq->vcq = aligned_alloc(RING_LINE, size);
	if (cq->vcq == NULL) {
		free(cq);
		return -ENOMEM;
	}
	memset(cq->vcq, 0, size);
	cq->vcq->num_workers = n;
	verbs_cq_init_ends(cq->vcq);
	*out = cq;
	return 0;
}

static uint32_t
cq_size(uint32_t entries)
{
	/* One entry of a ring is kept for a SWITCH. */
	return rte_align32pow2(entries + 1);
}

#define MAX_CQE ((1u << 18) - 1)

static int
cq_memory(struct ctl_client *c, struct ctl_cq *cq)
{
	int err = ctl_mem_alloc(c, RING_ARENA_C, sizeof(struct ring_cq_client), RING_LINE, true,
		&cq->client_words);

	if (err == 0)
		err = ctl_mem_alloc(c, RING_ARENA_D, sizeof(struct ring_cq_daemon), RING_LINE,
			true, &cq->daemon_words);
	return err;
}

int
ctl_op_create_cq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_create_cq_req *r = req;
	struct ring_ctrl_create_cq_rep *p = rep;
	struct ctl_channel *ch = NULL;
	struct ctl_cq *cq;
	int err;

	(void)e;
	if (r->entries == 0 || r->entries > MAX_CQE || r->flags != 0 ||
		r->comp_vector >= c->dev->sh.num_workers)
		return -EINVAL;
	if (r->channel != RING_NO_HANDLE) {
		ch = ctl_obj_find(c, CTL_CHANNEL, r->channel);
		if (ch == NULL)
			return -EINVAL;
	}
	err = cq_alloc(c, &cq);
	if (err < 0)
		return err;
	err = cq_memory(c, cq);
	if (err == 0)
		err = ctl_obj_add_numbered(c, &cq->o, CTL_CQ);
	if (err < 0) {
		cq_free(cq);
		return err == -EAGAIN ? CTL_AGAIN : err;
	}
	cq->entries = cq_size(r->entries);
	cq->comp_vector = r->comp_vector;
	cq->o.user_handle = r->user_handle;
	cq->channel = ch;
	if (ch != NULL) {
		ch->o.refs++;
		cq->w.channel = &ch->ch;
	}
	cq->vcq->cqn = ctl_obj_handle(&cq->o);
	cq->vcq->client = ctl_block_ptr(cq->client_words);
	cq->vcq->daemon = ctl_block_ptr(cq->daemon_words);
	cq->vcq->owner = &cq->w;
	p->cqn = cq->vcq->cqn;
	p->entries = cq->entries;
	p->client = ctl_block_loc(cq->client_words);
	p->daemon = ctl_block_loc(cq->daemon_words);
	return 0;
}

/* ---- sub-rings ---------- */

/* Tell the client where the sub-ring's ring is; the worker does not write to it yet. */
static void
sub_publish(struct ctl_cq_sub *s, uint32_t place)
{
	struct ring_cq_daemon *words = s->cq->vcq->daemon;

	words->sub[place] = (struct ring_cq_sub){
		.arena = ctl_block_arena(s->ring)->number,
		.log_entries = rte_log2_u32(s->entries),
		.offset = s->ring->offset,
		.worker = s->worker,
		.generation = s->generation,
	};
}

static void
resume_all(struct ctl_cq *cq, int status)
{
	TAILQ_HEAD(, ctl_cq_waiter) all = TAILQ_HEAD_INITIALIZER(all);
	struct ctl_cq_waiter *w;

	TAILQ_CONCAT(&all, &cq->waiters, link);
	while ((w = TAILQ_FIRST(&all)) != NULL) {
		TAILQ_REMOVE(&all, w, link);
		w->resume(w, status);
	}
}

static void
sub_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_cq_sub *s = (struct ctl_cq_sub *)m;
	struct ctl_cq *cq = s->cq;

	(void)d;
	s->making = false;
	s->made = true;
	sub_publish(s, s->index);
	atomic_store_explicit(&cq->vcq->daemon->num_sub, cq->num_subs, memory_order_release);
	resume_all(cq, 0);
}

static void
sub_send(struct ctl_cq_sub *s)
{
	struct worker_msg *m = &s->msg.m;

	*m = (struct worker_msg){.type = WORKER_MSG_CQ_SUB};
	m->cq.cq = s->cq->vcq;
	m->cq.ring = ctl_block_ptr(s->ring);
	m->cq.cons = &((struct ring_cq_client *)ctl_block_ptr(s->cq->client_words))
			      ->cons[s->worker];
	m->cq.entries = s->entries;
	ctl_msg_send(s->cq->o.client->dev, s->worker, &s->msg);
}

int
ctl_cq_sub_get(struct ctl_cq *cq, uint32_t worker, struct ctl_cq_waiter *w)
{
	struct ctl_cq_sub *s = &cq->sub[worker];
	int err;

	if (s->made)
		return 0;
	/* One at a time: num_sub says how many are complete, in order of making. */
	for (uint32_t i = 0; i < cq->vcq->num_workers; i++) {
		if (cq->sub[i].making || cq->resizer.call != NULL) {
			TAILQ_INSERT_TAIL(&cq->waiters, w, link);
			return -EINPROGRESS;
		}
	}
	err = ctl_mem_alloc(cq->o.client, RING_ARENA_D,
		(uint64_t)cq->entries * sizeof(struct ring_cqe), RING_LINE, true, &s->ring);
	if (err < 0)
		return err;
	s->cq = cq;
	s->worker = worker;
	s->entries = cq->entries;
	s->index = cq->num_subs++;
	s->making = true;
	s->msg.replied = sub_replied;
	sub_send(s);
	TAILQ_INSERT_TAIL(&cq->waiters, w, link);
	return -EINPROGRESS;
}

uint32_t
ctl_worker_for(struct worker_device *d, const struct ctl_cq *cq)
{
	return ctl_worker_near(d, cq->comp_vector);
}

uint32_t
ctl_worker_near(const struct worker_device *d, uint32_t best)
{
	for (uint32_t w = 0; w < d->sh.num_workers; w++) {
		if (2 * d->qps_on[w] + 16 < d->qps_on[best])
			best = w;
	}
	return best;
}

/* ---- resize ---------- */

/* Whether the client has followed the last SWITCH of every sub-ring. */
static bool
cq_followed(struct ctl_cq *cq)
{
	const struct ring_cq_client *words = ctl_block_ptr(cq->client_words);

	for (uint32_t w = 0; w < cq->vcq->num_workers; w++) {
		const struct ctl_cq_sub *s = &cq->sub[w];
		uint32_t cons;

		if (s->old == NULL)
			continue;
		cons = atomic_load_explicit(&words->cons[w], memory_order_acquire);
		if ((int32_t)(cons - s->start) < 0)
			return false;
	}
	return true;
}

static void
resize_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_cq_sub *s = (struct ctl_cq_sub *)m;
	struct ctl_cq *cq = s->cq;
	struct ring_ctrl_resize_cq_rep *p;

	(void)d;
	s->start = s->msg.m.cq.start;
	if (--cq->pending > 0)
		return;
	if (cq->resizer.call != NULL) {
		struct ctl_elem e = cq->resizer;

		p = ctl_elem_rep(e);
		p->entries = cq->entries;
		cq->resizer.call = NULL;
		ctl_elem_done(e, 0);
	}
	resume_all(cq, 0);
	if (cq->o.dying)
		ctl_cq_destroy(&cq->o);
}

static bool
cq_busy(const struct ctl_cq *cq)
{
	for (uint32_t w = 0; w < cq->vcq->num_workers; w++) {
		if (cq->sub[w].making)
			return true;
	}
	return cq->pending > 0;
}

/*
 * Completions that the client has not taken, as it would count them itself: a nonsensical index
 * of its own can only make its own request be refused or not.
 */
static uint64_t
cq_in_use(const struct ctl_cq *cq)
{
	const struct ring_cq_client *words = ctl_block_ptr(cq->client_words);
	uint64_t n = 0;

	for (uint32_t w = 0; w < cq->vcq->num_workers; w++) {
		const struct ctl_cq_sub *s = &cq->sub[w];
		struct ring_cq_cons q = {.mask = s->entries - 1};

		if (!s->made)
			continue;
		q.ring = ctl_block_ptr(s->ring);
		q.head = atomic_load_explicit(&words->cons[w], memory_order_acquire);
		n += ring_cq_count(&q);
	}
	return n;
}

static void
resize_forget(struct ctl_cq *cq)
{
	for (uint32_t w = 0; w < cq->vcq->num_workers; w++)
		ctl_mem_free(&cq->sub[w].fresh);
}

/*
 * New rings for all sub-rings, in as many turns as clearing them takes: those that are there wait
 * for the others, and go again when it fails.
 */
static int
resize_memory(struct ctl_cq *cq, uint32_t entries)
{
	int err = 0;

	if (cq->fresh_entries != entries)
		resize_forget(cq); /* of a request that got no further */
	cq->fresh_entries = entries;
	for (uint32_t w = 0; w < cq->vcq->num_workers && err == 0; w++) {
		struct ctl_cq_sub *s = &cq->sub[w];

		if (!s->made || s->fresh != NULL)
			continue;
		if (ctl_client_spent(cq->o.client))
			return CTL_YIELD;
		err = ctl_mem_alloc(cq->o.client, RING_ARENA_D,
			(uint64_t)entries * sizeof(struct ring_cqe), RING_LINE, true, &s->fresh);
	}
	if (err == -EAGAIN)
		return CTL_AGAIN;
	if (err < 0)
		resize_forget(cq);
	return err;
}

/* IBTA 11.2.8.3: not to fewer entries than are outstanding. */
static int
resize_check(struct ctl_cq *cq, uint32_t entries)
{
	int err = 0;

	if (cq_busy(cq) || !cq_followed(cq))
		err = -EBUSY;
	else if (cq_in_use(cq) > entries)
		err = -EINVAL;
	if (err < 0)
		resize_forget(cq); /* of an earlier turn */
	return err;
}

int
ctl_op_resize_cq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_resize_cq_req *r = req;
	struct ring_ctrl_resize_cq_rep *p = rep;
	struct ctl_cq *cq = cq_find(c, r->cqn);
	int err;

	if (cq == NULL || r->entries == 0 || r->entries > MAX_CQE)
		return -EINVAL;
	err = resize_check(cq, r->entries);
	if (err == 0)
		err = resize_memory(cq, cq_size(r->entries));
	if (err != 0)
		return err;
	cq->entries = cq_size(r->entries);
	for (uint32_t w = 0; w < cq->vcq->num_workers; w++) {
		struct ctl_cq_sub *s = &cq->sub[w];

		if (!s->made)
			continue;
		ctl_mem_free(&s->old);
		s->old = s->ring;
		s->ring = s->fresh;
		s->fresh = NULL;
		s->entries = cq->entries;
		s->generation++;
		/* The other place of this sub-ring; the SWITCH sends the client there. */
		sub_publish(s, s->index + (s->generation & 1) * RING_MAX_WORKERS);
		s->msg.replied = resize_replied;
		cq->pending++;
		sub_send(s);
	}
	if (cq->pending == 0) {
		p->entries = cq->entries;
		return 0;
	}
	cq->resizer = e;
	return CTL_LATER;
}

/* ---- the end ---------- */

static void
del_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_cq *cq = ((struct ctl_cq_sub *)m)->cq;

	(void)d;
	if (--cq->pending > 0)
		return;
	if (cq->channel != NULL)
		cq->channel->o.refs--;
	ctl_obj_del(&cq->o, 0);
	cq_free(cq);
}

void
ctl_cq_destroy(struct ctl_obj *o)
{
	struct ctl_cq *cq = cq_of(o);

	ctl_obj_dying(o);
	if (cq->pending > 0)
		return; /* of a resize: its last reply comes here again */
	for (uint32_t w = 0; w < cq->vcq->num_workers; w++) {
		struct ctl_cq_sub *s = &cq->sub[w];

		s->cq = cq;
		s->msg.m = (struct worker_msg){.type = WORKER_MSG_CQ_DEL};
		s->msg.m.cq.cq = cq->vcq;
		s->msg.replied = del_replied;
		cq->pending++;
		ctl_msg_send(o->client->dev, w, &s->msg);
	}
}

int
ctl_op_destroy_cq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_cq *cq = cq_find(c, r->handle);

	(void)rep;
	if (cq == NULL || r->reserved != 0)
		return -EINVAL;
	if (cq->o.refs != 0 || cq_busy(cq))
		return -EBUSY;
	cq->o.destroyer = e;
	ctl_cq_destroy(&cq->o);
	return CTL_LATER;
}
