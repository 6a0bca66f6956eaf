/* SPDX-License-Identifier: BSD-3-Clause */
/* What verbs asks of its surroundings: wake a client, tell an event, start a foreign access. */
#include <errno.h>
#include <unistd.h>

#include "worker_priv.h"

/** EAGAIN: the pipe is readable already. Its reader gone: nobody is there to be woken. */
void
worker_channel_write(const struct worker_channel *ch)
{
	ssize_t rc;

	do
		rc = write(ch->wr_fd, "", 1);
	while (rc < 0 && errno == EINTR);
}

void
worker_notify(void *ctx, struct verbs_cq *cq)
{
	const struct worker_cq *owner = cq->owner;
	struct worker *w = ctx;
	struct worker_msg *m;

	if (owner == NULL || owner->channel == NULL)
		return;
	ring_channel_push(owner->channel->sub[w->id], cq->cqn);
	if (w->notified >= WORKER_NOTIFY_CAP &&
	    (m = worker_own_get(w, WORKER_OWN_NOTIFY)) != NULL) {
		m->type = WORKER_MSG_NOTIFY;
		m->notify = cq;
		worker_tell(w, m);
		worker_count(w, WORKER_C_NOTIFY_DEFERRED, 1);
		return;
	}
	w->notified += w->notified < WORKER_NOTIFY_CAP;
	worker_channel_write(owner->channel);
	worker_count(w, WORKER_C_NOTIFY, 1);
}

void
worker_event(void *ctx, enum verbs_event event, void *obj)
{
	struct worker *w = ctx;
	struct worker_msg *m = worker_own_get(w, WORKER_OWN_EVENT);

	if (m == NULL) {
		worker_count(w, WORKER_C_EVENTS_LOST, 1);
		return;
	}
	m->type = WORKER_MSG_EVENT;
	m->event.event = event;
	m->event.obj = obj;
	worker_tell(w, m);
	worker_count(w, WORKER_C_EVENTS, 1);
}

void
worker_io_submit(void *ctx, struct verbs_io *io)
{
	struct worker *w = ctx;

	w->s->io_submit(w->s->io_ctx, w->id, io);
}
