/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's arenas: made when there is no room, handed over, sealed, and given out in blocks.
 * Who needs memory that is not there yet waits (struct ctl_wait) and tries again.
 *
 *   POPULATE (helper) -> SENT -> client's ARENA_MAPPED -> READY             D: sealed before
 *   POPULATE (helper) -> SENT -> client's ARENA_MAPPED -> SEAL (helper) -> READY         C
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_priv.h"

#define FIRST_SIZE (UINT64_C(256) << 10)
#define LAST_SIZE (UINT64_C(16) << 20)
#define MAX_ARENAS 4096
#define ARENAS_UNIT 256 /* that are looked at in a unit of a client's turn */

/* ---- waiting ---------- */

void
ctl_wait_add(struct ctl_client *c, struct ctl_wait *w)
{
	if (!w->queued)
		TAILQ_INSERT_TAIL(&c->waits, w, link);
	w->queued = true;
}

void
ctl_wait_del(struct ctl_client *c, struct ctl_wait *w)
{
	if (w->queued)
		TAILQ_REMOVE(&c->waits, w, link);
	w->queued = false;
}

/* All try again; who still finds nothing queues anew, behind the mark. */
void
ctl_wait_wake(struct ctl_client *c, int status)
{
	struct ctl_wait mark = {.queued = true}, *w;

	TAILQ_INSERT_TAIL(&c->waits, &mark, link);
	while ((w = TAILQ_FIRST(&c->waits)) != &mark) {
		ctl_wait_del(c, w);
		w->resume(w, status);
	}
	ctl_wait_del(c, &mark);
}

/* ---- an arena's life ---------- */

static void
arena_close(struct ctl_arena *a)
{
	if (a->mem.fd < 0)
		return;
	arena_mem_close_fd(&a->mem);
	ctl_user_fds_put(a->client->user, 1);
}

static bool
arena_unmap_step(struct ctl_job *j)
{
	return arena_mem_unmap(&((struct ctl_arena *)j)->mem);
}

static void
arena_unmapped(struct worker_device *d, struct ctl_job *j)
{
	struct ctl_arena *a = (struct ctl_arena *)j;
	struct ctl_client *c = a->client;

	(void)d;
	ctl_user_uncharge(c->user, a->charged);
	free(a->pages);
	free(a);
	if (--c->arenas_left == 0)
		ctl_client_reap(c);
}

/* The last reference of gigabytes is ours, as a rule: freeing them is the helper's work. */
bool
ctl_arenas_free(struct ctl_client *c)
{
	if (c->unmapping)
		return c->arenas_left == 0;
	c->unmapping = true;
	c->arenas_left = c->num_arenas;
	for (uint32_t i = 0; i < c->num_arenas; i++) {
		struct ctl_arena *a = c->arenas[i];

		arena_space_fini(&a->space);
		arena_close(a);
		a->charged = a->mem.size;
		a->job.step = arena_unmap_step;
		a->job.done = arena_unmapped;
		ctl_helper_submit(c->dev, &a->job);
	}
	free(c->arenas);
	c->arenas = NULL;
	c->num_arenas = 0;
	return c->arenas_left == 0;
}

static void
arena_bad(struct ctl_arena *a, int status)
{
	a->state = CTL_ARENA_BAD;
	arena_close(a);
	ctl_wait_wake(a->client, status);
}

static void
arena_send(struct ctl_arena *a)
{
	struct ring_ctrl_arena push = {
		.arena = a->number,
		.kind = a->kind,
		.size = a->mem.size,
		.page_size = a->mem.page_size,
	};

	a->state = CTL_ARENA_SENT;
	ctl_client_push(a->client, RING_CTRL_ARENA, &push, &a->mem.fd);
}

/* Helper thread. */
static bool
arena_step(struct ctl_job *j)
{
	struct ctl_arena *a = (struct ctl_arena *)j;

	a->status = arena_mem_populate(&a->mem);
	return a->status == 1;
}

static void
arena_stepped(struct worker_device *d, struct ctl_job *j)
{
	struct ctl_arena *a = (struct ctl_arena *)j;
	struct ctl_client *c = a->client;

	(void)d;
	c->jobs--;
	if (c->state == CTL_CLIENT_DYING) {
		ctl_client_reap(c);
		return;
	}
	if (a->status == 0 && a->state == CTL_ARENA_SEAL) {
		a->state = CTL_ARENA_READY;
		ctl_wait_wake(c, 0);
		return;
	}
	if (a->status == 0 && a->kind == RING_ARENA_D)
		a->status = arena_mem_seal(&a->mem);
	if (a->status == 0)
		arena_send(a);
	else
		arena_bad(a, -ENOMEM);
}

static void
arena_populate(struct ctl_arena *a)
{
	a->job.client = a->client;
	a->job.pool = CTL_POOL_ARENA;
	a->job.step = arena_step;
	a->job.done = arena_stepped;
	a->client->jobs++;
	ctl_helper_submit(a->client->dev, &a->job);
}

void
ctl_arena_mapped(struct ctl_client *c, const struct ring_ctrl_arena_mapped *m)
{
	struct ctl_arena *a = m->arena < c->num_arenas ? c->arenas[m->arena] : NULL;

	if (a == NULL || a->state != CTL_ARENA_SENT) {
		ctl_client_kill(c, "says it mapped an arena that it was not given");
		return;
	}
	if (m->status != 0) {
		arena_bad(a, -ENOMEM);
		return;
	}
	a->client_addr = m->addr;
	if (a->kind == RING_ARENA_D) {
		arena_close(a);
		a->state = CTL_ARENA_READY;
		ctl_wait_wake(c, 0);
		return;
	}
	if (arena_mem_seal(&a->mem) < 0) {
		ctl_client_kill(c, "sealed or resized an arena by itself");
		return;
	}
	arena_close(a);
	a->state = CTL_ARENA_SEAL;
	arena_populate(a);
}

static int
arena_enter(struct ctl_client *c, struct ctl_arena *a)
{
	struct ctl_arena **more;

	if (c->num_arenas >= MAX_ARENAS)
		return -ENOMEM;
	more = realloc(c->arenas, (c->num_arenas + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	c->arenas = more;
	a->number = c->num_arenas;
	c->arenas[c->num_arenas++] = a;
	return 0;
}

static uint64_t
next_size(struct ctl_client *c, unsigned int kind)
{
	uint64_t size = c->next_size[kind] != 0 ? c->next_size[kind] : FIRST_SIZE;

	c->next_size[kind] = 2 * size < LAST_SIZE ? 2 * size : LAST_SIZE;
	return size;
}

static int
arena_new(struct ctl_client *c, unsigned int kind, uint64_t need)
{
	struct worker_device *d = c->dev;
	uint64_t limit = d->cfg.quota_arena_bytes - c->user->bytes;
	struct ctl_arena *a;
	uint64_t size;
	int err;

	if (need > d->cfg.quota_arena_bytes)
		return -EDQUOT;
	if (c->user->bytes > d->cfg.quota_arena_bytes || need > limit) {
		/* Perhaps a program is started again, and its last run still being taken down. */
		c->user->waits |= c->user->dying != 0;
		return c->user->dying != 0 ? -EAGAIN : -EDQUOT;
	}
	size = next_size(c, kind);
	if (size < need || size > limit)
		size = need;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return -ENOMEM;
	a->client = c;
	a->kind = (uint8_t)kind;
	a->wanted = need;
	err = ctl_user_fds(d, c->user, 1);
	if (err < 0)
		goto free_arena;
	err = arena_mem_create(&a->mem, size, d->cfg.huge_arenas);
	if (err < 0)
		goto put_fd;
	err = ctl_user_charge(d, c->user, a->mem.size); /* rounded up to pages */
	if (err < 0)
		goto free_mem;
	err = arena_space_init(&a->space, a->mem.size, a);
	if (err < 0)
		goto uncharge;
	err = arena_enter(c, a);
	if (err < 0)
		goto fini;
	arena_populate(a);
	return -EAGAIN;
fini:
	arena_space_fini(&a->space);
uncharge:
	ctl_user_uncharge(c->user, a->mem.size);
free_mem:
	arena_mem_destroy(&a->mem);
put_fd:
	ctl_user_fds_put(c->user, 1);
free_arena:
	free(a);
	return err;
}

/* ---- blocks ---------- */

int
ctl_mem_alloc(struct ctl_client *c, unsigned int kind, uint64_t size, uint64_t align, bool zero,
	struct arena_block **out)
{
	struct arena_block *b = NULL;
	bool coming = false;

	if (*out != NULL)
		return 0; /* of an earlier try */
	c->spent += c->num_arenas / ARENAS_UNIT;
	for (uint32_t i = c->num_arenas; b == NULL && i-- > 0;) {
		struct ctl_arena *a = c->arenas[i];

		if (a->kind != kind || a->state == CTL_ARENA_BAD)
			continue;
		if (a->state == CTL_ARENA_READY)
			b = arena_space_alloc(&a->space, size, align);
		else
			coming |= a->mem.size >= size + align;
	}
	if (b == NULL) {
		/* Aligned to a page at most without slack: an arena starts at one. */
		uint64_t slack = align > 4096 ? align : 0;

		return coming ? -EAGAIN : arena_new(c, kind, size + slack);
	}
	if (zero && b->dirty) {
		memset(ctl_block_ptr(b), 0, b->size);
		c->spent += (uint32_t)(b->size / CTL_CLEAR_UNIT);
	}
	*out = b;
	return 0;
}

void
ctl_mem_free(struct arena_block **b)
{
	if (*b != NULL)
		arena_space_free(*b);
	*b = NULL;
}

/* ---- memory for the application ---------- */

#define PAGE UINT64_C(4096)

/* Which block each page of the arena belongs to: how MRs find it. */
static int
pages_mark(struct ctl_mem *m, struct ctl_mem *owner)
{
	struct ctl_arena *a = ctl_block_arena(m->block);

	if (a->pages == NULL)
		a->pages = calloc(a->mem.size / PAGE, sizeof(*a->pages));
	if (a->pages == NULL)
		return -ENOMEM;
	for (uint64_t i = 0; i < m->block->size / PAGE; i++)
		a->pages[m->block->offset / PAGE + i] = owner;
	a->client->spent += (uint32_t)(m->block->size / PAGE * sizeof(*a->pages) / CTL_CLEAR_UNIT);
	return 0;
}

int
ctl_op_alloc_mem(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_alloc_mem_req *r = req;
	struct ring_ctrl_alloc_mem_rep *p = rep;
	struct arena_block *b = NULL;
	struct ctl_mem *m;
	uint64_t align = r->align, size;
	int err;

	(void)e;
	if (r->size == 0 || r->size > c->dev->cfg.quota_arena_bytes || align < ARENA_ALIGN ||
		align > (2u << 20) || (align & (align - 1)) != 0)
		return -EINVAL;
	/* Whole pages, so that each page has one owner. */
	align = align < PAGE ? PAGE : align;
	size = (r->size + PAGE - 1) & ~(PAGE - 1);
	err = ctl_mem_alloc(c, RING_ARENA_C, size, align, false, &b);
	if (err < 0)
		return err == -EAGAIN ? CTL_AGAIN : err;
	m = calloc(1, sizeof(*m));
	err = -ENOMEM;
	if (m == NULL)
		goto free_block;
	m->block = b;
	m->size = size;
	err = pages_mark(m, m);
	if (err < 0)
		goto free_mem;
	err = ctl_obj_add(c, &m->o, CTL_MEM, ctl_block_loc(b));
	if (err < 0)
		goto unmark;
	p->loc = ctl_block_loc(b);
	p->size = size;
	return 0;
unmark:
	pages_mark(m, NULL);
free_mem:
	free(m);
free_block:
	ctl_mem_free(&b);
	return err;
}

void
ctl_mem_destroy(struct ctl_obj *o)
{
	struct ctl_mem *m = (struct ctl_mem *)o;

	pages_mark(m, NULL);
	ctl_mem_free(&m->block);
	ctl_obj_del(o, 0);
	free(m);
}

int
ctl_op_free_mem(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_free_mem_req *r = req;
	struct ctl_mem *m = ctl_obj_find(c, CTL_MEM, r->loc);

	(void)rep;
	(void)e;
	if (m == NULL)
		return -EINVAL;
	if (m->o.refs != 0)
		return -EBUSY;
	ctl_mem_destroy(&m->o);
	return 0;
}
