/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event channels of connection management. An event waits here until it is fetched, and a byte
 * for it in the channel's pipe. How many can wait is bounded by the ids that there are, which
 * their uid's quota bounds: a client that does not read costs no more than that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_cm.h"

/* ---- events ---------- */

struct ctl_cm_event *
ctl_cm_event_new(struct ctl_cm_id *id, unsigned int event, int result, const void *data,
	uint32_t len)
{
	struct ctl_cm_event *e;

	if (len > RING_CM_PRIVATE)
		len = RING_CM_PRIVATE;
	e = calloc(1, sizeof(*e) + len);
	if (e == NULL) {
		ctl_client_kill(id->o.client, "no memory for its events");
		return NULL;
	}
	e->id = id;
	e->rep.event = event;
	e->rep.result = result;
	e->rep.id = ctl_obj_handle(&id->o);
	e->rep.listen = RING_NO_HANDLE;
	e->rep.private_len = (uint16_t)len;
	if (len != 0)
		memcpy(e->private_data, data, len);
	return e;
}

/* What the pipe has no room for is written when some of it has been read. */
static void
pay(struct ctl_cm_channel *ch)
{
	static const char bytes[64];

	while (ch->owed > 0) {
		size_t n = ch->owed < sizeof(bytes) ? ch->owed : sizeof(bytes);
		ssize_t done = write(ch->wr_fd, bytes, n);

		if (done <= 0)
			return; /* full; or the client has closed its end, and wants none */
		ch->owed -= (uint32_t)done;
	}
}

void
ctl_cm_event_send(struct ctl_cm_event *e)
{
	struct ctl_cm_id *of = e->listener != NULL ? e->listener : e->id;

	of->waiting++;
	e->id->o.client->dev->cm.events_sent++;
	TAILQ_INSERT_TAIL(&of->channel->events, e, link);
	TAILQ_INSERT_TAIL(&of->events, e, of_link);
	if (e->listener != NULL) {
		of->unfetched++;
		e->id->asked = e;
	}
	of->channel->owed++;
	pay(of->channel);
}

/* Out of the queues. @return whose it was. */
static struct ctl_cm_id *
event_take(struct ctl_cm_event *e)
{
	struct ctl_cm_id *of = e->listener != NULL ? e->listener : e->id;

	TAILQ_REMOVE(&of->channel->events, e, link);
	TAILQ_REMOVE(&of->events, e, of_link);
	of->waiting--;
	if (e->listener != NULL) {
		of->unfetched--;
		e->id->asked = NULL;
	}
	return of;
}

void
ctl_cm_tell(struct ctl_cm_id *id, unsigned int event, int result)
{
	struct ctl_cm_event *e = ctl_cm_event_new(id, event, result, NULL, 0);

	if (e != NULL)
		ctl_cm_event_send(e);
}

/* Bytes that the client is to take out: of events that go, those it was not owed still. */
static uint32_t
unowe(struct ctl_cm_channel *ch, uint32_t n)
{
	uint32_t owed = ch->owed < n ? ch->owed : n;

	ch->owed -= owed;
	return n - owed;
}

uint32_t
ctl_cm_events_drop(struct ctl_cm_id *id)
{
	struct ctl_cm_event *e;
	uint32_t n = 0;

	/* Of a request that is dropped with its id: the listener's byte is its own affair. */
	if (id->asked != NULL) {
		e = id->asked;
		unowe(event_take(e)->channel, 1);
		free(e);
	}
	for (; n < CTL_CM_DROP_TURN && (e = TAILQ_FIRST(&id->events)) != NULL; n++) {
		event_take(e);
		if (e->listener == id)
			ctl_cm_id_end(e->id); /* refuses the request */
		free(e);
	}
	return unowe(id->channel, n);
}

static void
fill(struct ctl_cm_event *e, struct ring_ctrl_cm_event_rep *p)
{
	struct ctl_cm_id *id = e->id;

	*p = e->rep;
	p->src = id->src;
	p->dst = id->dst;
	p->port = id->av.port;
	memcpy(p->private_data, e->private_data, e->rep.private_len);
}

int
ctl_op_cm_get_event(struct ctl_client *c, const void *req, void *rep, struct ctl_elem el)
{
	const struct ring_ctrl_cm_get_event_req *r = req;
	struct ctl_cm_channel *ch = ctl_cm_channel_find(c, r->channel);
	struct ctl_cm_event *e;

	(void)el;
	if (ch == NULL || r->reserved != 0)
		return -EINVAL;
	e = TAILQ_FIRST(&ch->events);
	if (e == NULL)
		return -EAGAIN;
	fill(e, rep);
	event_take(e)->fetched++;
	free(e);
	pay(ch);
	return 0;
}

/* ---- channels ---------- */

struct ctl_cm_channel *
ctl_cm_channel_find(struct ctl_client *c, uint32_t handle)
{
	return ctl_obj_find(c, CTL_CM_CHANNEL, handle);
}

/* Our end is the channel's, the other goes with the reply. */
static int
channel_pipe(struct ctl_cm_channel *ch, struct ctl_call *call)
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
	ch->wr_fd = fd[1];
	call->fds[call->num_fds++] = fd[0];
	return 0;
}

int
ctl_op_cm_create_channel(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_empty_req *r = req;
	struct ring_ctrl_cm_create_channel_rep *p = rep;
	struct ctl_cm_channel *ch;
	int err;

	if (r->reserved != 0)
		return -EINVAL;
	ch = calloc(1, sizeof(*ch));
	if (ch == NULL)
		return -ENOMEM;
	TAILQ_INIT(&ch->events);
	err = channel_pipe(ch, e.call);
	if (err < 0)
		goto free_channel;
	err = ctl_obj_add_numbered(c, &ch->o, CTL_CM_CHANNEL);
	if (err < 0)
		goto close_pipe;
	p->handle = ctl_obj_handle(&ch->o);
	return 0;
close_pipe:
	close(ch->wr_fd);
	close(e.call->fds[--e.call->num_fds]);
	ctl_user_fds_put(c->user, 2);
free_channel:
	free(ch);
	return err;
}

void
ctl_cm_channel_destroy(struct ctl_obj *o)
{
	struct ctl_cm_channel *ch = (struct ctl_cm_channel *)o;

	if (o->refs != 0)
		return; /* its ids come first */
	close(ch->wr_fd);
	ctl_user_fds_put(o->client->user, 1);
	ctl_obj_del(o, 0);
	free(ch);
}

int
ctl_op_cm_destroy_channel(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_cm_channel *ch = ctl_cm_channel_find(c, r->handle);

	(void)rep;
	(void)e;
	if (ch == NULL || r->reserved != 0)
		return -EINVAL;
	if (ch->o.refs != 0)
		return -EBUSY;
	ctl_cm_channel_destroy(&ch->o);
	return 0;
}

int
ctl_op_cm_migrate(struct ctl_client *c, const void *req, void *rep, struct ctl_elem el)
{
	const struct ring_ctrl_cm_migrate_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, UINT32_MAX);
	struct ctl_cm_channel *to = ctl_cm_channel_find(c, r->channel), *from;
	struct ring_ctrl_cm_moved_rep *p = rep;
	struct ctl_cm_event *e;

	(void)el;
	if (id == NULL || to == NULL)
		return -EINVAL;
	from = id->channel;
	p->events = id->fetched;
	if (from == to)
		return 0;
	TAILQ_FOREACH(e, &id->events, of_link) {
		TAILQ_REMOVE(&from->events, e, link);
		TAILQ_INSERT_TAIL(&to->events, e, link);
		if (e->listener == id) { /* a new id goes with its request */
			from->o.refs--;
			to->o.refs++;
			e->id->channel = to;
		}
	}
	c->spent += id->waiting / 16;
	to->owed += id->waiting;
	pay(to);
	p->waiting = unowe(from, id->waiting);
	from->o.refs--;
	to->o.refs++;
	id->channel = to;
	return 0;
}
