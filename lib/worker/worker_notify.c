/* SPDX-License-Identifier: BSD-3-Clause */
/* What verbs asks of its surroundings: wake a client, tell an event, start a foreign access. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "worker_priv.h"

/*
 * EAGAIN: the pipe is readable already, and for longer than there are numbers to pop. Its reader
 * gone: nobody is there to be woken.
 */
bool
worker_channel_write(const struct worker_channel *ch, uint32_t n)
{
	static const char bytes[WORKER_NOTIFY_BYTES];
	ssize_t rc;

	static_assert(sizeof(bytes) <= PIPE_BUF, "written whole or not at all");
	do
		rc = write(ch->wr_fd, bytes, n);
	while (rc < 0 && errno == EINTR);
	return rc > 0;
}

/* ---- notifications ---------- */

/*
 * The number is pushed in every case; what is put off, when the loop has written its share and
 * the control thread has all that it is given, is the byte. A reader trades each byte for one
 * number, so a byte is owed for each, and a write pays many. No more are owed than the channel
 * has room for numbers: a reader that is further behind looks at all of its CQs.
 */
void
worker_notify(void *ctx, struct verbs_cq *cq)
{
	const struct worker_cq *owner = cq->owner;
	struct worker_channel_at *at;
	struct worker *w = ctx;
	struct worker_msg *m;

	if (owner == NULL || owner->channel == NULL)
		return;
	ring_channel_push(owner->channel->sub[w->id], cq->cqn);
	at = &owner->channel->at[w->id];
	if (at->due != NULL) {
		at->owed += at->owed < WORKER_NOTIFY_OWED;
		worker_count(w, WORKER_C_NOTIFY_LATE, 1);
	} else if (w->notified < WORKER_NOTIFY_CAP) {
		w->notified++;
		worker_channel_write(owner->channel, 1);
		worker_count(w, WORKER_C_NOTIFY, 1);
	} else if ((m = worker_own_get(w, WORKER_OWN_NOTIFY)) != NULL) {
		m->type = WORKER_MSG_NOTIFY;
		m->notify = cq;
		worker_tell(w, m);
		worker_count(w, WORKER_C_NOTIFY_DEFERRED, 1);
	} else {
		at->due = owner->channel;
		at->owed = 1;
		TAILQ_INSERT_TAIL(&w->due, at, link);
		worker_count(w, WORKER_C_NOTIFY_LATE, 1);
	}
}

/* A write's worth of what is owed; behind the others again if there is more. */
static void
channel_pay(struct worker *w, struct worker_channel_at *at)
{
	uint32_t n = RTE_MIN(at->owed, (uint32_t)WORKER_NOTIFY_BYTES);

	TAILQ_REMOVE(&w->due, at, link);
	at->owed = worker_channel_write(at->due, n) ? at->owed - n : 0;
	worker_count(w, WORKER_C_NOTIFY, 1);
	if (at->owed != 0)
		TAILQ_INSERT_TAIL(&w->due, at, link);
	else
		at->due = NULL;
}

/* All that is owed now: a CQ goes, and the channel perhaps with it. */
void
worker_channel_settle(struct worker *w, struct worker_channel *ch)
{
	while (ch->at[w->id].due != NULL)
		channel_pay(w, &ch->at[w->id]);
}

/* ---- events ---------- */

/* Where an object keeps what is late. NULL: of no object that we know. */
static struct worker_late *
late_of(const struct worker *w, enum verbs_event event, void *obj)
{
	struct worker_srq *srq;
	struct worker_cq *cq;
	struct worker_qp *qp;

	switch (event) {
	case VERBS_EVENT_CQ_ERR:
		cq = ((struct verbs_cq *)obj)->owner;
		return cq != NULL ? &cq->late : NULL;
	case VERBS_EVENT_SRQ_ERR:
	case VERBS_EVENT_SRQ_LIMIT_REACHED:
		srq = ((struct verbs_srq *)obj)->owner;
		return srq != NULL ? &srq->late[w->id] : NULL;
	default:
		qp = ((struct verbs_qp *)obj)->owner;
		return qp != NULL ? &qp->late : NULL;
	}
}

static bool
tell(struct worker *w, enum verbs_event event, void *obj)
{
	struct worker_msg *m = worker_own_get(w, WORKER_OWN_EVENT);

	if (m == NULL)
		return false;
	m->type = WORKER_MSG_EVENT;
	m->event.event = event;
	m->event.obj = obj;
	worker_tell(w, m);
	worker_count(w, WORKER_C_EVENTS, 1);
	return true;
}

/* What some clients do in a burst is not another's loss: it is only told later. */
void
worker_event(void *ctx, enum verbs_event event, void *obj)
{
	struct worker *w = ctx;
	struct worker_late *l = late_of(w, event, obj);

	if ((l == NULL || l->obj == NULL) && tell(w, event, obj))
		return;
	if (l == NULL) {
		worker_count(w, WORKER_C_EVENTS_LOST, 1);
		return;
	}
	worker_count(w, WORKER_C_EVENTS_LATE, 1);
	l->events |= 1u << event;
	if (l->obj == NULL) {
		l->obj = obj;
		TAILQ_INSERT_TAIL(&w->late, l, link);
	}
	if (event == VERBS_EVENT_CQ_ERR)
		((struct verbs_cq *)obj)->end[w->id].late = true;
}

void
worker_late_drop(struct worker *w, struct worker_late *l)
{
	if (l->obj == NULL)
		return;
	worker_count(w, WORKER_C_EVENTS_LOST, (uint64_t)__builtin_popcount(l->events));
	TAILQ_REMOVE(&w->late, l, link);
	l->obj = NULL;
	l->events = 0;
}

/* @return false: no message is free. */
static bool
late_tell(struct worker *w, struct worker_late *l)
{
	while (l->events != 0) {
		if (!tell(w, (enum verbs_event)__builtin_ctz(l->events), l->obj))
			return false;
		l->events &= l->events - 1;
	}
	TAILQ_REMOVE(&w->late, l, link);
	l->obj = NULL;
	return true;
}

void
worker_late(struct worker *w)
{
	struct worker_channel_at *at;
	struct worker_late *l;

	while ((l = TAILQ_FIRST(&w->late)) != NULL && late_tell(w, l))
		;
	while (w->notified < WORKER_NOTIFY_CAP && (at = TAILQ_FIRST(&w->due)) != NULL) {
		w->notified++;
		channel_pay(w, at);
	}
}

/* ---- foreign memory ---------- */

void
worker_io_submit(void *ctx, struct verbs_io *io)
{
	struct worker *w = ctx;

	w->s->io_submit(w->s->io_ctx, w->id, io);
}
