/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's context at the workers: HELLO, its bells and the eventfds by which it wakes them.
 * The eventfds are watched edge-triggered and never read, since the client can fill them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl_priv.h"

struct ctl_kick {
	struct ctl_source src;
	struct worker *worker;
	struct worker_ctx *ctx;
};

struct ctl_ctx_msg {
	struct ctl_msg msg;
	struct ctl_client *client;
};

#define SLOTS_BYTES (RING_BELL_SLOTS * sizeof(struct verbs_qp *))

/* ---- bells ---------- */

static int
chunk_alloc(struct ctl_client *c, uint32_t chunk)
{
	for (uint32_t w = 0; w < c->dev->sh.num_workers; w++) {
		int err = ctl_mem_alloc(c, RING_ARENA_C, sizeof(struct ring_bell_chunk), RING_LINE,
			true, &c->bell_chunk[chunk][w]);

		if (err == 0)
			err = ctl_mem_alloc(c, RING_ARENA_D, sizeof(struct ring_bell_daemon),
				RING_LINE, true, &c->bell_daemon[w]);
		if (err < 0)
			return err;
	}
	return 0;
}

/* A worker's table of a chunk: mapped, so that only what is used takes memory. */
static struct verbs_qp **
slots_new(void)
{
	void *p = mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void
chunk_push(struct ctl_client *c, uint32_t chunk)
{
	struct ring_ctrl_bells push = {.chunk = chunk, .num_workers = c->dev->sh.num_workers};

	for (uint32_t w = 0; w < RING_MAX_WORKERS; w++) {
		bool there = w < c->dev->sh.num_workers;

		push.chunk_loc[w] =
			there ? ctl_block_loc(c->bell_chunk[chunk][w]) : RING_NO_LOC;
		push.daemon_loc[w] = there ? ctl_block_loc(c->bell_daemon[w]) : RING_NO_LOC;
	}
	ctl_client_push(c, RING_CTRL_BELLS, &push, NULL);
}

static void
chunk_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_client *c = ((struct ctl_ctx_msg *)m)->client;

	(void)d;
	c->jobs--;
	ctl_client_reap(c);
	free(m);
}

/*
 * Tell the workers. Mailboxes keep the order, so a worker knows the chunk before it is given a
 * QP with a slot in it, and nobody needs to wait.
 */
static int
chunk_send(struct ctl_client *c, uint32_t chunk)
{
	uint32_t n = c->dev->sh.num_workers;
	struct ctl_ctx_msg *m[RING_MAX_WORKERS] = {NULL};
	struct verbs_qp **slots[RING_MAX_WORKERS] = {NULL};
	bool ok = true;

	for (uint32_t w = 0; w < n; w++) {
		m[w] = calloc(1, sizeof(*m[w]));
		slots[w] = slots_new();
		ok = ok && m[w] != NULL && slots[w] != NULL;
	}
	for (uint32_t w = 0; w < n && ok; w++) {
		m[w]->client = c;
		m[w]->msg.m.type = WORKER_MSG_BELL_CHUNK;
		m[w]->msg.m.bell.ctx = c->ctx;
		m[w]->msg.m.bell.chunk = ctl_block_ptr(c->bell_chunk[chunk][w]);
		m[w]->msg.m.bell.slots = c->bell_slots[chunk][w] = slots[w];
		m[w]->msg.m.bell.number = chunk;
		m[w]->msg.replied = chunk_replied;
		c->jobs++;
		ctl_msg_send(c->dev, w, &m[w]->msg);
	}
	for (uint32_t w = 0; w < n && !ok; w++) {
		free(m[w]);
		if (slots[w] != NULL)
			munmap(slots[w], SLOTS_BYTES);
	}
	return ok ? 0 : -ENOMEM;
}

#define SLOTS_PAGE (4096 / sizeof(struct verbs_qp *))

/* The first slot of a page: here it takes no time of a worker's to be there. */
static void
slot_touch(struct ctl_client *c, uint32_t bell)
{
	struct verbs_qp ***slots = c->bell_slots[bell / RING_BELL_SLOTS];

	if (bell % SLOTS_PAGE != 0)
		return;
	for (uint32_t w = 0; w < c->dev->sh.num_workers; w++)
		slots[w][bell % RING_BELL_SLOTS] = NULL;
}

int
ctl_bell_get(struct ctl_client *c, uint32_t *bell)
{
	int err;

	if (c->num_bell_free > 0) {
		*bell = c->bell_free[--c->num_bell_free];
		return 0;
	}
	if (c->bells_used == c->bell_chunks * RING_BELL_SLOTS) {
		if (c->bell_chunks == RING_BELL_CHUNKS)
			return -ENOMEM;
		err = chunk_alloc(c, c->bell_chunks);
		if (err == 0)
			err = chunk_send(c, c->bell_chunks);
		if (err < 0)
			return err;
		chunk_push(c, c->bell_chunks++);
	}
	/* Room to give it back is made now: that cannot fail later. */
	if (c->cap_bell_free < c->bells_used + 1) {
		uint32_t cap = c->cap_bell_free ? 2 * c->cap_bell_free : 64;
		uint32_t *more = realloc(c->bell_free, cap * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		c->bell_free = more;
		c->cap_bell_free = cap;
	}
	slot_touch(c, c->bells_used);
	*bell = c->bells_used++;
	return 0;
}

void
ctl_bell_put(struct ctl_client *c, uint32_t bell)
{
	c->bell_free[c->num_bell_free++] = bell;
}

/* ---- HELLO ---------- */

static void
kick_ready(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	struct ctl_kick *k = (struct ctl_kick *)s;

	(void)d;
	(void)events;
	worker_ctx_kick(k->worker, k->ctx);
}

static void
ctx_free(struct ctl_client *c)
{
	struct worker_ctx *ctx = c->ctx;

	for (uint32_t w = 0; w < ctx->num_workers; w++) {
		if (c->kicks != NULL && c->kicks[w].worker != NULL)
			ctl_source_del(c->dev, &c->kicks[w].src);
		if (ctx->at[w].kick_fd >= 0)
			close(ctx->at[w].kick_fd);
		for (uint32_t i = 0; i < RING_BELL_CHUNKS; i++) {
			if (ctx->at[w].slots[i] != NULL)
				munmap(ctx->at[w].slots[i], SLOTS_BYTES);
		}
	}
	free(c->kicks);
	free(c->ctx_msgs);
	free(ctx);
	c->kicks = NULL;
	c->ctx_msgs = NULL;
	c->ctx = NULL;
}

static int
ctx_fill_worker(struct ctl_client *c, uint32_t w)
{
	struct worker_ctx_at *at = &c->ctx->at[w];
	int err;

	at->slots[0] = slots_new();
	at->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (at->slots[0] == NULL || at->kick_fd < 0)
		return -ENOMEM;
	c->bell_slots[0][w] = at->slots[0];
	c->kicks[w].src.fd = at->kick_fd;
	c->kicks[w].src.ready = kick_ready;
	c->kicks[w].ctx = c->ctx;
	err = ctl_source_add(c->dev, &c->kicks[w].src, EPOLLIN | EPOLLET);
	if (err == 0)
		c->kicks[w].worker = c->dev->workers[w];
	return err;
}

static int
ctx_new(struct ctl_client *c)
{
	uint32_t n = c->dev->sh.num_workers;
	size_t size = sizeof(*c->ctx) + n * sizeof(c->ctx->at[0]);
	int err = 0;

	if (c->ctx != NULL)
		return 0;
	c->ctx = aligned_alloc(RING_LINE, RTE_ALIGN_CEIL(size, RING_LINE));
	if (c->ctx == NULL)
		return -ENOMEM;
	memset(c->ctx, 0, size);
	c->ctx->id = c->id;
	c->ctx->num_workers = n;
	for (uint32_t w = 0; w < n; w++)
		c->ctx->at[w].kick_fd = -1;
	c->kicks = calloc(n, sizeof(*c->kicks));
	c->ctx_msgs = calloc(n, sizeof(*c->ctx_msgs));
	if (c->kicks == NULL || c->ctx_msgs == NULL)
		err = -ENOMEM;
	for (uint32_t w = 0; w < n && err == 0; w++)
		err = ctx_fill_worker(c, w);
	if (err < 0)
		ctx_free(c);
	return err;
}

static void
hello_reply(struct ctl_client *c)
{
	struct worker_device *d = c->dev;
	struct ring_ctrl_hello_rep *p = ctl_elem_rep(c->hello);
	struct ctl_call *call = c->hello.call;

	for (uint32_t w = 0; w < d->sh.num_workers; w++) {
		int fd = ctl_user_fds(d, c->user, 1);

		if (fd == 0) {
			fd = fcntl(c->ctx->at[w].kick_fd, F_DUPFD_CLOEXEC, 0);
			if (fd < 0)
				ctl_user_fds_put(c->user, 1);
		}
		if (fd < 0) {
			ctl_client_kill(c, "cannot be given its eventfds");
			ctl_elem_done(c->hello, -EMFILE);
			return;
		}
		call->fds[call->num_fds++] = fd;
	}
	p->context = c->id;
	memcpy(p->device, d->name, sizeof(p->device));
	memcpy(p->boot_id, d->boot_id, sizeof(p->boot_id));
	p->num_workers = d->sh.num_workers;
	p->transport = RING_TRANSPORT_ROCE;
	p->num_ports = d->sh.num_ports;
	p->num_comp_vectors = d->sh.num_workers;
	p->quota_bytes = d->cfg.quota_arena_bytes;
	p->quota_qp = ctl_quota(d, CTL_QP);
	p->quota_ah = ctl_quota(d, CTL_AH);
	p->quota_cq = ctl_quota(d, CTL_CQ);
	p->quota_mr = ctl_quota(d, CTL_MR);
	p->quota_pd = ctl_quota(d, CTL_PD);
	p->quota_srq = ctl_quota(d, CTL_SRQ);
	c->state = CTL_CLIENT_OPEN;
	ctl_elem_done(c->hello, 0);
}

static void
ctx_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_client *c = ((struct ctl_ctx_msg *)m)->client;

	(void)d;
	if (--c->ctx_pending > 0)
		return;
	if (c->ctx_deleting) {
		ctx_free(c);
	} else if (c->state == CTL_CLIENT_DYING) {
		ctl_elem_done(c->hello, -ECONNRESET);
	} else {
		hello_reply(c);
	}
	ctl_client_reap(c);
}

static void
ctx_send(struct ctl_client *c, enum worker_msg_type type)
{
	c->ctx_pending = c->dev->sh.num_workers;
	for (uint32_t w = 0; w < c->dev->sh.num_workers; w++) {
		struct ctl_ctx_msg *m = &c->ctx_msgs[w];

		*m = (struct ctl_ctx_msg){.client = c};
		m->msg.m.type = (uint8_t)type;
		m->msg.m.ctx = c->ctx;
		m->msg.replied = ctx_replied;
		ctl_msg_send(c->dev, w, &m->msg);
	}
}

int
ctl_op_hello(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_hello_req *r = req;
	int err;

	(void)rep;
	if (r->reserved != 0 || memchr(r->device, 0, sizeof(r->device)) == NULL)
		return -EINVAL;
	if (r->device[0] != '\0' && strcmp(r->device, c->dev->name) != 0)
		return -ENODEV;
	err = ctx_new(c);
	if (err == 0)
		err = chunk_alloc(c, 0);
	if (err < 0)
		return err == -EAGAIN ? CTL_AGAIN : err;
	for (uint32_t w = 0; w < c->dev->sh.num_workers; w++) {
		c->ctx->at[w].chunk[0] = ctl_block_ptr(c->bell_chunk[0][w]);
		c->ctx->at[w].daemon = ctl_block_ptr(c->bell_daemon[w]);
		c->ctx->at[w].num_chunks = 1;
	}
	c->bell_chunks = 1;
	chunk_push(c, 0);
	c->hello = e;
	c->ctx_added = 1;
	ctx_send(c, WORKER_MSG_CTX_ADD);
	return CTL_LATER;
}

void
ctl_context_del(struct ctl_client *c)
{
	if (c->ctx_pending > 0 || c->jobs > 0)
		return; /* a reply, or a chunk on its way, comes first */
	if (!c->ctx_added) {
		ctx_free(c);
		ctl_client_reap(c);
		return;
	}
	c->ctx_deleting = true;
	ctx_send(c, WORKER_MSG_CTX_DEL);
}

/* ---- devices ---------- */

int
ctl_op_list_device(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ring_ctrl_list_device_rep *p = rep;
	struct rte_ether_addr mac;

	(void)e;
	if (r->reserved != 0)
		return -EINVAL;
	if (r->handle != 0)
		return -ENODEV;
	memcpy(mac.addr_bytes, c->dev->port[0].mac, sizeof(mac.addr_bytes));
	net_eui64(&mac, (uint8_t *)&p->node_guid);
	p->transport = RING_TRANSPORT_ROCE;
	memcpy(p->device, c->dev->name, sizeof(p->device));
	p->num_ports = c->dev->sh.num_ports;
	p->num_devices = 1;
	return 0;
}
