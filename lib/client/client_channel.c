/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels. The daemon pushes a CQ's number into a ring and a byte into a pipe; here
 * each byte is traded for one number, so that the pipe is readable as long as there is
 * something to tell. When numbers were lost all CQs are looked at, and an eventfd stands for
 * those that are found beyond the byte in hand; the channel's descriptor is an epoll of both.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client_priv.h"

#define SEQ_MASK ((1u << 30) - 1) /* of ring_cq_daemon.notify_seq */

static void
channel_release(struct client_obj *obj)
{
	struct rnic_channel *ch = CLIENT_OF(struct rnic_channel, obj, obj);

	if (ch->pipe >= 0)
		close(ch->pipe);
	if (ch->event_fd >= 0)
		close(ch->event_fd);
	if (ch->fd >= 0)
		close(ch->fd);
	client_map_fini(&ch->map);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
}

static int
channel_fds(struct rnic_channel *ch)
{
	struct epoll_event ev = {.events = EPOLLIN};

	ch->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ch->event_fd < 0)
		return -errno;
	ch->fd = epoll_create1(EPOLL_CLOEXEC);
	if (ch->fd < 0)
		return -errno;
	if (epoll_ctl(ch->fd, EPOLL_CTL_ADD, ch->event_fd, &ev) ||
		epoll_ctl(ch->fd, EPOLL_CTL_ADD, ch->pipe, &ev))
		return -errno;
	return 0;
}

static int
channel_setup(struct rnic_channel *ch, const struct ring_ctrl_create_channel_rep *rep,
	unsigned int num_fds)
{
	struct rnic_context *ctx = ch->context;

	ch->handle = rep->handle;
	ch->num_subs = rep->num_subs;
	if (num_fds != 1 || client_fd_blocks(ch->pipe) || rep->num_subs < 1 ||
		rep->num_subs > RING_MAX_WORKERS + 1)
		return -EPROTO;
	pthread_mutex_lock(&ctx->lock);
	ch->subs = client_loc(
		ctx, rep->subs, rep->num_subs * sizeof(*ch->subs), RING_LINE, RING_ARENA_D);
	pthread_mutex_unlock(&ctx->lock);
	return ch->subs ? channel_fds(ch) : -EPROTO;
}

/* The context's death must find it. */
static void
channel_link(struct rnic_channel *ch)
{
	struct rnic_context *ctx = ch->context;

	pthread_mutex_lock(&ctx->lock);
	ch->next = ctx->channels;
	ctx->channels = ch;
	if (ctx->dead)
		client_fd_raise(ch->event_fd);
	pthread_mutex_unlock(&ctx->lock);
	client_obj_add(ctx, &ch->obj, channel_release);
}

static void
channel_unlink(struct rnic_channel *ch)
{
	struct rnic_channel **at = &ch->context->channels;

	pthread_mutex_lock(&ch->context->lock);
	while (*at != ch)
		at = &(*at)->next;
	*at = ch->next;
	pthread_mutex_unlock(&ch->context->lock);
}

int
rnic_create_channel(struct rnic_context *ctx, struct rnic_channel **out)
{
	struct ring_ctrl_create_channel_rep rep;
	struct ring_ctrl_empty_req req = {0};
	unsigned int num_fds = 0;
	struct rnic_channel *ch;
	int rc = client_gate(ctx);

	if (rc)
		return rc;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	pthread_mutex_init(&ch->lock, NULL);
	ch->context = ctx;
	ch->fired_end = &ch->fired;
	ch->pipe = ch->event_fd = ch->fd = -1;
	rc = client_call_fds(ctx, RING_CTRL_CREATE_CHANNEL, &req, &rep, &ch->pipe, 1, &num_fds);
	if (rc) {
		ch->pipe = -1; /* closed already */
		channel_release(&ch->obj);
		return rc;
	}
	rc = channel_setup(ch, &rep, num_fds);
	if (rc) {
		client_destroy_call(ctx, RING_CTRL_DESTROY_CHANNEL, rep.handle);
		channel_release(&ch->obj);
		return rc;
	}
	channel_link(ch);
	*out = ch;
	return 0;
}

int
rnic_destroy_channel(struct rnic_channel *ch)
{
	struct rnic_context *ctx = ch->context;
	int rc;

	if (client_is_child(ctx))
		return -EPERM;
	if (ch->cqs)
		return -EBUSY;
	rc = client_destroy_call(ctx, RING_CTRL_DESTROY_CHANNEL, ch->handle);
	if (rc)
		return rc;
	channel_unlink(ch);
	client_obj_del(ctx, &ch->obj);
	channel_release(&ch->obj);
	return 0;
}

int
rnic_channel_fd(const struct rnic_channel *ch)
{
	return ch->fd;
}

int
client_channel_add(struct rnic_channel *ch, struct client_cq *cq)
{
	int rc;

	pthread_mutex_lock(&ch->lock);
	rc = client_map_put(&ch->map, cq->pub.handle, cq);
	if (rc == 0) {
		cq->chan_next = ch->cqs;
		ch->cqs = cq;
	}
	pthread_mutex_unlock(&ch->lock);
	return rc;
}

static void
raised_set(struct rnic_channel *ch, bool raised)
{
	if (ch->raised == raised)
		return;
	ch->raised = raised;
	if (raised)
		client_fd_raise(ch->event_fd);
	else if (client_gate(ch->context) == 0) /* dead: it stays up */
		client_fd_lower(ch->event_fd);
}

void
client_channel_del(struct rnic_channel *ch, struct client_cq *cq)
{
	struct client_cq **at;

	pthread_mutex_lock(&ch->lock);
	client_map_del(&ch->map, cq->pub.handle);
	for (at = &ch->cqs; *at != cq; at = &(*at)->chan_next)
		;
	*at = cq->chan_next;
	for (at = &ch->fired; *at; at = &(*at)->fired_next) {
		if (*at == cq) {
			*at = cq->fired_next;
			break;
		}
	}
	for (at = &ch->fired; *at; at = &(*at)->fired_next)
		;
	ch->fired_end = at;
	cq->fired = 0;
	if (!ch->fired)
		raised_set(ch, false);
	pthread_mutex_unlock(&ch->lock);
}

/* Armings of the CQ that were answered and not told yet; numbers are of 30 bits. */
static uint32_t
untold(const struct client_cq *cq)
{
	uint32_t seq = atomic_load_explicit(&cq->daemon->notify_seq, memory_order_seq_cst);

	return (seq - cq->told_seq) & SEQ_MASK;
}

static void
fire(struct rnic_channel *ch, struct client_cq *cq, uint32_t answered)
{
	cq->told_seq += answered;
	if (cq->fired++)
		return;
	cq->fired_next = NULL;
	*ch->fired_end = cq;
	ch->fired_end = &cq->fired_next;
}

/* Hints were lost: what was answered since we last told of it must have fired. */
static void
fire_all(struct rnic_channel *ch)
{
	for (struct client_cq *cq = ch->cqs; cq; cq = cq->chan_next) {
		uint32_t n = untold(cq);

		if (n)
			fire(ch, cq, n);
	}
}

/*
 * One hint, for one byte. The next instead if the CQ is no more, or when what it speaks of was
 * told already by a look at all.
 */
static void
hint_take(struct rnic_channel *ch)
{
	for (uint32_t i = 0; i < ch->num_subs;) {
		uint32_t sub = ch->next_sub;
		uint32_t cqn;
		struct client_cq *cq;

		switch (ring_channel_pop(&ch->subs[sub], &ch->readers[sub], &cqn)) {
		case RING_CHANNEL_CQ:
			cq = client_map_get(&ch->map, cqn);
			if (!cq || !untold(cq))
				continue;
			fire(ch, cq, 1);
			ch->next_sub = (sub + 1) % ch->num_subs;
			return;
		case RING_CHANNEL_ALL:
			fire_all(ch);
			if (ch->fired)
				return;
			continue;
		case RING_CHANNEL_EMPTY:
			ch->next_sub = (sub + 1) % ch->num_subs;
			i++;
			break;
		}
	}
}

static struct client_cq *
fired_take(struct rnic_channel *ch)
{
	struct client_cq *cq = ch->fired;

	if (!cq)
		return NULL;
	if (--cq->fired == 0) {
		ch->fired = cq->fired_next;
		if (!ch->fired)
			ch->fired_end = &ch->fired;
	}
	raised_set(ch, ch->fired != NULL);
	return cq;
}

static void
channel_wait(struct rnic_channel *ch)
{
	struct pollfd p[2] = {
		{.fd = ch->pipe, .events = POLLIN},
		{.fd = ch->event_fd, .events = POLLIN},
	};

	pthread_mutex_unlock(&ch->lock);
	poll(p, 2, -1);
	pthread_mutex_lock(&ch->lock);
}

/* 0, or why there is nothing. */
static int
channel_next(struct rnic_channel *ch, bool may_wait, struct client_cq **cq)
{
	char byte;
	ssize_t n;

	while (!(*cq = fired_take(ch))) {
		if (client_gate(ch->context))
			return -ENOTCONN;
		n = read(ch->pipe, &byte, 1);
		if (n == 1)
			hint_take(ch);
		else if (n == 0)
			return -ENOTCONN; /* nobody has the other end: the daemon died */
		else if (errno == EAGAIN && !may_wait)
			return -EAGAIN;
		else if (errno == EAGAIN)
			channel_wait(ch);
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int
client_channel_take(struct rnic_channel *ch, bool may_wait, struct rnic_cq **out)
{
	struct rnic_context *ctx = ch->context;
	struct client_cq *cq;
	int rc;

	pthread_mutex_lock(&ch->lock);
	rc = channel_next(ch, may_wait, &cq);
	if (rc == 0) {
		pthread_mutex_lock(&ctx->lock);
		cq->unacked++;
		pthread_mutex_unlock(&ctx->lock);
		*out = &cq->pub;
	}
	pthread_mutex_unlock(&ch->lock);
	if (rc == -ENOTCONN)
		client_look(ctx);
	return rc;
}

int
rnic_get_cq_event(struct rnic_channel *ch, struct rnic_cq **cq)
{
	if (client_is_child(ch->context))
		return -EPERM;
	return client_channel_take(ch, client_fd_blocks(ch->fd), cq);
}

void
rnic_ack_cq_events(struct rnic_cq *pub, unsigned int count)
{
	struct rnic_context *ctx = pub->context;
	struct client_cq *cq = client_cq(pub);

	if (client_is_child(ctx))
		return;
	pthread_mutex_lock(&ctx->lock);
	cq->unacked -= count < cq->unacked ? count : cq->unacked;
	if (cq->unacked == 0)
		pthread_cond_broadcast(&ctx->cond);
	pthread_mutex_unlock(&ctx->lock);
}
