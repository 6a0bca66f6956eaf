/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control calls. There is no thread of the library's own: whoever waits for something of the
 * daemon waits at the socket, for everybody; the others wait for the condition. Replies find
 * their call by its id. When the daemon goes, all calls end, and all that can be waited on wakes.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_priv.h"

bool
client_fd_blocks(int fd)
{
	return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* The counter cannot fill up and the descriptor is our own: neither can fail. */
void
client_fd_raise(int event_fd)
{
	eventfd_write(event_fd, 1);
}

void
client_fd_lower(int event_fd)
{
	eventfd_t n;

	eventfd_read(event_fd, &n);
}

static void
close_all(const int *fds, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		close(fds[i]);
}

static struct client_call **
call_find(struct rnic_context *ctx, uint32_t id)
{
	struct client_call **c = &ctx->calls;

	while (*c && (*c)->id != id)
		c = &(*c)->next;
	return c;
}

static void
call_end(struct client_call **at, int status)
{
	struct client_call *c = *at;

	*at = c->next;
	c->status = status;
	c->done = true;
}

void
client_die(struct rnic_context *ctx, int why)
{
	struct rnic_async_event fatal = {.event_type = RNIC_EVENT_DEVICE_FATAL, .cause = why};

	if (ctx->dead)
		return;
	ctx->dead = why;
	__atomic_store_n(ctx->gate, CLIENT_GATE_DEAD, __ATOMIC_RELEASE);
	while (ctx->calls)
		call_end(&ctx->calls, why);
	/* A hung-up socket is readable for ever; from here on event_fd speaks, for ever too. */
	epoll_ctl(ctx->async_fd, EPOLL_CTL_DEL, ctx->sock, NULL);
	shutdown(ctx->sock, SHUT_RDWR);
	client_event_queue(ctx, NULL, &fatal);
	client_fd_raise(ctx->event_fd);
	for (struct rnic_channel *ch = ctx->channels; ch; ch = ch->next)
		client_fd_raise(ch->event_fd);
	client_cm_die(ctx);
	pthread_cond_broadcast(&ctx->cond);
}

/* A reply that nobody waits for, or not of this form, is as bad as a malformed one. */
static int
take_reply(struct rnic_context *ctx, uint8_t *msg, int *fds)
{
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)(void *)msg;
	struct client_call **at = call_find(ctx, h->id);
	struct client_call *c = *at;

	if (!c || c->op != h->op || h->num_fds > c->max_fds ||
		(h->status == 0 && h->count != c->count)) {
		close_all(fds, h->num_fds);
		return -EPROTO;
	}
	if (h->status == 0)
		memcpy(c->reps, ring_ctrl_body(msg),
			(size_t)c->count * ring_ctrl_info(c->op)->reply_size);
	c->num_fds = h->num_fds;
	for (unsigned int i = 0; i < h->num_fds; i++)
		c->fds[i] = fds[i];
	call_end(at, h->status);
	return 0;
}

static int
take_push(struct rnic_context *ctx, uint8_t *msg, int *fds)
{
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)(void *)msg;
	void *body = ring_ctrl_body(msg);

	switch (h->op) {
	case RING_CTRL_ARENA:
		if (h->num_fds != 1)
			return -EPROTO;
		return client_arena_push(ctx, body, fds[0]);
	case RING_CTRL_BELLS:
		return client_bells_push(ctx, body);
	case RING_CTRL_EVENT:
		return client_event_push(ctx, body);
	default:
		return 0; /* of a later minor version */
	}
}

static int
take_message(struct rnic_context *ctx, size_t len, int *fds)
{
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)(void *)ctx->rx;
	int rc = ring_ctrl_check(ctx->rx, len, false);

	if (rc == 0)
		return h->flags == RING_CTRL_REPLY ? take_reply(ctx, ctx->rx, fds)
						   : take_push(ctx, ctx->rx, fds);
	close_all(fds, h->num_fds);
	if (rc == -EOPNOTSUPP && h->flags == RING_CTRL_PUSH)
		return 0;
	return rc == -EPROTONOSUPPORT ? rc : -EPROTO;
}

void
client_drain(struct rnic_context *ctx)
{
	int fds[RING_CTRL_MAX_FDS];

	while (!ctx->dead) {
		ptrdiff_t n = ring_ctrl_recv(
			ctx->sock, ctx->rx, RING_CTRL_MAX_LEN, fds, RING_CTRL_MAX_FDS);
		int rc;

		if (n == -EAGAIN)
			return;
		if (n <= 0)
			rc = n == -EBADMSG ? -EPROTO : -ENOTCONN;
		else
			rc = take_message(ctx, (size_t)n, fds);
		if (rc)
			client_die(ctx, rc);
	}
}

void
client_wait_step(struct rnic_context *ctx, short events)
{
	struct pollfd p = {.fd = ctx->sock, .events = events};

	if (ctx->reading) {
		pthread_cond_wait(&ctx->cond, &ctx->lock);
		return;
	}
	if (ctx->num_owed)
		p.events |= POLLOUT;
	ctx->reading = true;
	pthread_mutex_unlock(&ctx->lock);
	poll(&p, 1, -1);
	pthread_mutex_lock(&ctx->lock);
	ctx->reading = false;
	if (ctx->num_owed && !ctx->dead) {
		int rc = client_notices_send(ctx);

		if (rc)
			client_die(ctx, rc);
	}
	client_drain(ctx);
	pthread_cond_broadcast(&ctx->cond);
}

void
client_look(struct rnic_context *ctx)
{
	if (pthread_mutex_trylock(&ctx->lock))
		return;
	if (!ctx->reading) {
		client_drain(ctx);
		pthread_cond_broadcast(&ctx->cond);
	}
	pthread_mutex_unlock(&ctx->lock);
}

/* With the lock. A full socket empties as the daemon works, which its replies tell. */
static int
send_message(struct rnic_context *ctx, const void *msg, size_t len)
{
	for (;;) {
		int rc = ctx->dead ? ctx->dead : ring_ctrl_send(ctx->sock, msg, len, NULL);

		if (rc == -EAGAIN || rc == -ENOBUFS) {
			client_wait_step(ctx, POLLIN | POLLOUT);
			continue;
		}
		if (rc == -EPIPE || rc == -ECONNRESET) {
			client_drain(ctx); /* it may have said why */
			client_die(ctx, -ENOTCONN);
			rc = ctx->dead;
		}
		return rc;
	}
}

int
client_start(struct rnic_context *ctx, struct client_call *call, unsigned int op, const void *reqs,
	unsigned int count)
{
	size_t len = ring_ctrl_size(op, count, true);
	uint8_t *msg = malloc(len);
	struct ring_ctrl_hdr h;
	int rc;

	if (!msg)
		return -ENOMEM;
	memcpy(msg + sizeof(h), reqs, len - sizeof(h));
	pthread_mutex_lock(&ctx->lock);
	call->id = ctx->next_id++;
	call->op = (uint16_t)op;
	call->count = (uint16_t)count;
	call->done = false;
	ring_ctrl_hdr_init(&h, op, 0, call->id, count);
	memcpy(msg, &h, sizeof(h));
	call->next = ctx->calls; /* before the sending, which may wait and take the reply in */
	ctx->calls = call;
	rc = send_message(ctx, msg, len);
	if (rc && !call->done)
		call_end(call_find(ctx, call->id), rc);
	pthread_mutex_unlock(&ctx->lock);
	free(msg);
	return rc;
}

int
client_wait(struct rnic_context *ctx, struct client_call *call)
{
	pthread_mutex_lock(&ctx->lock);
	while (!call->done)
		client_wait_step(ctx, POLLIN);
	pthread_mutex_unlock(&ctx->lock);
	return call->status;
}

int
client_call_fds(struct rnic_context *ctx, unsigned int op, const void *req, void *rep, int *fds,
	unsigned int max_fds, unsigned int *num_fds)
{
	struct client_call call = {.reps = rep, .fds = fds, .max_fds = (uint16_t)max_fds};
	int32_t status;
	int rc;

	rc = client_start(ctx, &call, op, req, 1);
	if (rc == 0)
		rc = client_wait(ctx, &call);
	if (rc == 0) {
		memcpy(&status, rep, sizeof(status));
		rc = status > 0 ? -EPROTO : status;
	}
	if (rc)
		close_all(fds, call.num_fds);
	else
		*num_fds = call.num_fds;
	return rc;
}

int
client_call(
	struct rnic_context *ctx, unsigned int op, const void *reqs, void *reps, unsigned int count)
{
	struct client_call call = {.reps = reps};
	int rc = client_start(ctx, &call, op, reqs, count);

	return rc ? rc : client_wait(ctx, &call);
}

int
client_call1(struct rnic_context *ctx, unsigned int op, const void *req, void *rep)
{
	unsigned int none;
	int rc = client_gate(ctx);

	return rc ? rc : client_call_fds(ctx, op, req, rep, NULL, 0, &none);
}
