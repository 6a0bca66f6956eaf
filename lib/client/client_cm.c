/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels of connection management and their events. Events wait in the daemon, a byte in the
 * pipe for each; who wants one takes bytes, fetches as many events, and keeps what it does not
 * need yet. An eventfd stands for those; the channel's descriptor is an epoll of both.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client_cm_priv.h"

#define FETCH 32u /* events at a time */

/* ---- making and ending ---- */

static void
close_if(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
channel_release(struct client_obj *obj)
{
	struct rnic_cm_channel *ch = CLIENT_OF(struct rnic_cm_channel, obj, obj);

	while (ch->events) {
		struct client_cm_event *e = ch->events;

		ch->events = e->next;
		free(e);
	}
	close_if(&ch->pipe);
	close_if(&ch->event_fd);
	close_if(&ch->fd);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
}

static int
channel_fds(struct rnic_cm_channel *ch)
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

/* The context's death must find it. */
static void
channel_link(struct rnic_cm_channel *ch)
{
	struct rnic_context *ctx = ch->context;

	pthread_mutex_lock(&ctx->lock);
	ch->next = ctx->cm_channels;
	ctx->cm_channels = ch;
	if (ctx->dead)
		client_fd_raise(ch->event_fd);
	pthread_mutex_unlock(&ctx->lock);
	client_obj_add(ctx, &ch->obj, channel_release);
}

static void
channel_unlink(struct rnic_cm_channel *ch)
{
	struct rnic_cm_channel **at = &ch->context->cm_channels;

	pthread_mutex_lock(&ch->context->lock);
	while (*at != ch)
		at = &(*at)->next;
	*at = ch->next;
	pthread_mutex_unlock(&ch->context->lock);
}

static struct rnic_cm_channel *
channel_new(struct rnic_context *ctx)
{
	struct rnic_cm_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	pthread_mutex_init(&ch->lock, NULL);
	ch->context = ctx;
	ch->events_end = &ch->events;
	ch->pipe = ch->event_fd = ch->fd = -1;
	return ch;
}

int
rnic_cm_create_channel(struct rnic_context *ctx, struct rnic_cm_channel **out)
{
	struct ring_ctrl_cm_create_channel_rep rep;
	struct ring_ctrl_empty_req req = {0};
	unsigned int num_fds = 0;
	struct rnic_cm_channel *ch;
	int rc = client_gate(ctx);

	if (rc)
		return rc;
	ch = channel_new(ctx);
	if (!ch)
		return -ENOMEM;
	rc = client_call_fds(
		ctx, RING_CTRL_CM_CREATE_CHANNEL, &req, &rep, &ch->pipe, 1, &num_fds);
	if (rc) {
		ch->pipe = -1; /* closed already */
		channel_release(&ch->obj);
		return rc;
	}
	ch->handle = rep.handle;
	rc = num_fds == 1 && !client_fd_blocks(ch->pipe) ? channel_fds(ch) : -EPROTO;
	if (rc) {
		client_destroy_call(ctx, RING_CTRL_CM_DESTROY_CHANNEL, rep.handle);
		channel_release(&ch->obj);
		return rc;
	}
	channel_link(ch);
	*out = ch;
	return 0;
}

int
rnic_cm_destroy_channel(struct rnic_cm_channel *ch)
{
	struct rnic_context *ctx = ch->context;
	uint32_t ids;
	int rc;

	if (client_is_child(ctx))
		return -EPERM;
	pthread_mutex_lock(&ctx->lock);
	ids = ch->num_ids;
	pthread_mutex_unlock(&ctx->lock);
	if (ids)
		return -EBUSY;
	rc = client_destroy_call(ctx, RING_CTRL_CM_DESTROY_CHANNEL, ch->handle);
	if (rc)
		return rc;
	channel_unlink(ch);
	client_obj_del(ctx, &ch->obj);
	channel_release(&ch->obj);
	return 0;
}

int
rnic_cm_channel_fd(const struct rnic_cm_channel *ch)
{
	return ch->fd;
}

void
client_cm_die(struct rnic_context *ctx)
{
	for (struct rnic_cm_channel *ch = ctx->cm_channels; ch; ch = ch->next)
		client_fd_raise(ch->event_fd);
}

void
client_cm_child_close(struct rnic_context *ctx)
{
	for (struct rnic_cm_channel *ch = ctx->cm_channels; ch; ch = ch->next) {
		close_if(&ch->pipe);
		close_if(&ch->event_fd);
		close_if(&ch->fd);
	}
}

/* ---- events that are here ---- */

static void
raised_set(struct rnic_cm_channel *ch)
{
	bool raised = ch->events != NULL;

	if (ch->raised == raised)
		return;
	ch->raised = raised;
	if (raised)
		client_fd_raise(ch->event_fd);
	else if (client_gate(ch->context) == 0) /* dead: it stays up */
		client_fd_lower(ch->event_fd);
}

static void
event_append(struct rnic_cm_channel *ch, struct client_cm_event *e)
{
	e->next = NULL;
	*ch->events_end = e;
	ch->events_end = &e->next;
}

struct client_cm_event *
client_cm_events_take(struct rnic_cm_channel *ch, struct rnic_cm_id *id)
{
	struct client_cm_event **at = &ch->events, *list = NULL, **end = &list;

	while (*at) {
		struct client_cm_event *e = *at;

		if (e->pub.id != id && e->pub.listen_id != id) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		*end = e;
		end = &e->next;
	}
	*end = NULL;
	ch->events_end = at;
	raised_set(ch);
	return list;
}

void
client_cm_events_put(struct rnic_cm_channel *ch, struct client_cm_event *list)
{
	while (list) {
		struct client_cm_event *e = list;

		list = e->next;
		event_append(ch, e);
	}
	raised_set(ch);
}

void
client_cm_bytes_drop(struct rnic_cm_channel *ch, uint32_t n)
{
	char bytes[256];

	while (n) {
		ssize_t got = read(ch->pipe, bytes, n < sizeof(bytes) ? n : sizeof(bytes));

		if (got <= 0 && (got == 0 || errno != EINTR))
			return;
		if (got > 0)
			n -= (uint32_t)got;
	}
}

/* ---- fetching ---- */

static void
event_fill(struct client_cm_event *e, const struct ring_ctrl_cm_event_rep *rep)
{
	struct rnic_cm_param *p = &e->pub.param;

	e->pub.event = rep->event;
	e->pub.status = rep->result;
	*p = (struct rnic_cm_param){
		.private_data_len = rep->private_len,
		.responder_resources = rep->responder_resources,
		.initiator_depth = rep->initiator_depth,
		.flow_control = rep->flow_control,
		.retry_count = rep->retry_count,
		.rnr_retry_count = rep->rnr_retry_count,
		.srq = rep->srq,
		.qp_num = rep->qpn,
		.qkey = rep->qkey,
	};
	if (rep->private_len) {
		memcpy(e->private_data, rep->private_data, rep->private_len);
		p->private_data = e->private_data;
	}
	client_av_from_ctrl(&e->pub.ah_attr, &rep->av);
	if (rep->event == RING_CM_MULTICAST_JOIN || rep->event == RING_CM_MULTICAST_ERROR)
		e->pub.mcast_context = (void *)(uintptr_t)rep->user_handle;
}

/* What the daemon has learnt of the id's ends. */
static void
id_update(struct client_cm_id *id, const struct ring_ctrl_cm_event_rep *rep)
{
	id->pub.port_num = rep->port;
	client_cm_addr_from_ctrl(&id->pub.src_addr, &rep->src);
	client_cm_addr_from_ctrl(&id->pub.dst_addr, &rep->dst);
}

static struct client_cm_id *
id_find(struct rnic_context *ctx, uint32_t handle)
{
	struct client_cm_id *id;

	pthread_mutex_lock(&ctx->lock);
	id = client_map_get(&ctx->cm_ids, handle);
	pthread_mutex_unlock(&ctx->lock);
	return id;
}

/* A listener that is no more had its requests refused: so is this one that came later. */
static int
request_fill(struct rnic_cm_channel *ch, struct client_cm_event *e,
	const struct ring_ctrl_cm_event_rep *rep)
{
	struct client_cm_id *listener = id_find(ch->context, rep->listen);
	struct client_cm_id *id;

	id = listener ? client_cm_id_new(ch, rep->id) : NULL;
	if (!id) {
		struct ring_ctrl_handle_req req = {.handle = rep->id};
		struct ring_ctrl_cm_moved_rep gone;

		client_call1(ch->context, RING_CTRL_CM_DESTROY_ID, &req, &gone);
		return -ENOENT;
	}
	id->pub.ps = listener->pub.ps;
	id->pub.qp_type = listener->pub.qp_type;
	id->pub.user_context = listener->pub.user_context;
	id_update(id, rep);
	e->pub.id = &id->pub;
	e->pub.listen_id = &listener->pub;
	return 0;
}

static int
event_take(struct rnic_cm_channel *ch, const struct ring_ctrl_cm_event_rep *rep)
{
	struct client_cm_event *e;
	struct client_cm_id *id;

	if (rep->event >= RING_CM_EVENT_COUNT || rep->private_len > RING_CM_PRIVATE)
		return -EPROTO;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	event_fill(e, rep);
	if (rep->event == RING_CM_CONNECT_REQUEST) {
		if (request_fill(ch, e, rep)) {
			free(e);
			return 0;
		}
	} else {
		id = id_find(ch->context, rep->id);
		if (!id) {
			free(e);
			return 0; /* it is being destroyed */
		}
		if (rep->event == RING_CM_ADDR_RESOLVED)
			id_update(id, rep);
		e->pub.id = &id->pub;
	}
	event_append(ch, e);
	return 0;
}

/* As many events as bytes were taken. Without memory for one there is no telling whose it was. */
static int
fetch(struct rnic_cm_channel *ch, unsigned int n)
{
	struct ring_ctrl_cm_get_event_req reqs[FETCH];
	struct ring_ctrl_cm_event_rep *reps = calloc(n, sizeof(*reps));
	int rc = reps ? 0 : -ENOMEM;

	for (unsigned int i = 0; i < n; i++)
		reqs[i] = (struct ring_ctrl_cm_get_event_req){.channel = ch->handle};
	if (rc == 0)
		rc = client_call(ch->context, RING_CTRL_CM_GET_EVENT, reqs, reps, n);
	for (unsigned int i = 0; rc == 0 && i < n; i++) {
		if (reps[i].status == 0)
			rc = event_take(ch, &reps[i]);
		else if (reps[i].status != -EAGAIN)
			rc = reps[i].status > 0 ? -EPROTO : reps[i].status;
	}
	free(reps);
	if (rc && rc != -ENOTCONN) {
		pthread_mutex_lock(&ch->context->lock);
		client_die(ch->context, rc);
		pthread_mutex_unlock(&ch->context->lock);
	}
	return rc;
}

static void
channel_wait(struct rnic_cm_channel *ch)
{
	struct pollfd p[2] = {
		{.fd = ch->pipe, .events = POLLIN},
		{.fd = ch->event_fd, .events = POLLIN},
	};

	pthread_mutex_unlock(&ch->lock);
	poll(p, 2, -1);
	pthread_mutex_lock(&ch->lock);
}

/* With the channel's lock. 0: an event is here, or why there is none. */
static int
channel_next(struct rnic_cm_channel *ch, bool may_wait)
{
	char bytes[FETCH];
	int rc = 0;

	while (rc == 0 && !ch->events) {
		ssize_t n;

		if (client_gate(ch->context))
			return -ENOTCONN;
		n = read(ch->pipe, bytes, sizeof(bytes));
		if (n > 0)
			rc = fetch(ch, (unsigned int)n);
		else if (n == 0)
			return -ENOTCONN; /* nobody has the other end: the daemon died */
		else if (errno == EAGAIN && !may_wait)
			return -EAGAIN;
		else if (errno == EAGAIN)
			channel_wait(ch);
		else if (errno != EINTR)
			return -errno;
	}
	return rc;
}

/* Whose destruction waits for the event. */
static struct client_obj *
event_obj(const struct rnic_cm_event *e)
{
	return &client_cm_id(e->listen_id ? e->listen_id : e->id)->obj;
}

int
rnic_cm_get_event(struct rnic_cm_channel *ch, struct rnic_cm_event **out)
{
	struct rnic_context *ctx = ch->context;
	int rc;

	if (client_is_child(ctx))
		return -EPERM;
	pthread_mutex_lock(&ch->lock);
	rc = channel_next(ch, client_fd_blocks(ch->fd));
	if (rc == 0) {
		struct client_cm_event *e = ch->events;

		ch->events = e->next;
		if (!ch->events)
			ch->events_end = &ch->events;
		pthread_mutex_lock(&ctx->lock);
		event_obj(&e->pub)->unacked++;
		pthread_mutex_unlock(&ctx->lock);
		*out = &e->pub;
	}
	raised_set(ch);
	pthread_mutex_unlock(&ch->lock);
	if (rc == -ENOTCONN)
		client_look(ctx);
	return rc;
}

void
rnic_cm_ack_event(struct rnic_cm_event *pub)
{
	struct client_cm_event *e = CLIENT_OF(struct client_cm_event, pub, pub);
	/* The id of a request may be no more: it is its listener that waits. */
	struct rnic_context *ctx = (pub->listen_id ? pub->listen_id : pub->id)->context;

	if (client_is_child(ctx))
		return;
	pthread_mutex_lock(&ctx->lock);
	if (--event_obj(pub)->unacked == 0)
		pthread_cond_broadcast(&ctx->cond);
	pthread_mutex_unlock(&ctx->lock);
	free(e);
}
