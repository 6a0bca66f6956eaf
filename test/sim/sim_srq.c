/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints whose receives are in a shared receive queue: entries in any order, limits, sizes that
 * grow under traffic. A queue is one endpoint's here, so that its receives complete in the order
 * of their posting all the same; that several share one is unit/test_verbs_srq's. Its random
 * numbers are its own: a seed is what it was without.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define STRIDE (RING_MAX_WQE_SLOTS * RING_SLOT_SIZE)

struct sim_srq {
	struct verbs_srq v;
	struct verbs_srq_ring where[2];
	struct ring_srq_client client;
	struct ring_srq_daemon daemon;
	struct rng rng;
	_Atomic uint32_t *index;
	uint8_t *slots;
	uint32_t entries, mask, tail, done;
	bool used[SIM_RECVS];
	bool armed, last_wqe;
};

static void *
get(size_t n)
{
	void *p = aligned_alloc(RING_LINE, (n + RING_LINE - 1) & ~(size_t)(RING_LINE - 1));

	if (p == NULL)
		abort();
	memset(p, 0, n);
	return p;
}

/** Another place, of more entries, with all that is posted; the old one is filled with nonsense. */
static void
grow(struct sim_srq *q, uint32_t entries)
{
	const struct verbs_srq_ring *old = atomic_load(&q->v.ring);
	struct verbs_srq_ring *to = &q->where[old == &q->where[0]];
	uint32_t mask = 1;
	_Atomic uint32_t *index;
	uint8_t *slots = get((size_t)entries * STRIDE);

	while (mask + 1 < entries)
		mask = 2 * mask + 1;
	index = get((mask + 1) * sizeof(*index));
	for (uint32_t i = atomic_load(&q->daemon.head); q->index && i != q->tail; i++)
		index[i & mask] = q->index[i & q->mask];
	if (q->slots) {
		memcpy(slots, q->slots, (size_t)q->entries * STRIDE);
		memset(q->slots, 0xff, (size_t)q->entries * STRIDE);
		free(q->slots);
		free(q->index);
	}
	*to = (struct verbs_srq_ring){.slots = slots, .index = index, .mask = mask,
				      .entries = entries};
	q->slots = slots;
	q->index = index;
	q->mask = mask;
	q->entries = entries;
	atomic_store(&q->v.ring, to);
}

void
sim_srq_new(struct sim_ep *ep)
{
	struct sim_srq *q;
	struct rng rng;

	rng_seed(&rng, ep->s->seed * SIM_EPS + ep->id);
	if (rng_below(&rng, 3) != 0 || sim_is_uc(ep->s))
		return;
	q = get(sizeof(*q));
	q->rng = rng;
	q->v.pd = ep->pd;
	q->v.daemon = &q->daemon;
	q->v.client = &q->client;
	q->v.stride = STRIDE;
	q->v.max_sge = RING_MAX_SGE;
	q->v.owner = ep;
	q->tail = rng_u32(&q->rng);
	atomic_store(&q->client.tail, q->tail);
	atomic_store(&q->daemon.head, q->tail);
	q->done = q->tail;
	grow(q, sim_between(&q->rng, 2, SIM_RECVS / 2));
	ep->srq = q;
}

struct verbs_srq *
sim_srq_verbs(const struct sim_ep *ep)
{
	return ep->srq ? &ep->srq->v : NULL;
}

void
sim_srq_free(struct sim_ep *ep)
{
	if (ep->srq == NULL)
		return;
	free(ep->srq->slots);
	free(ep->srq->index);
	free(ep->srq);
	ep->srq = NULL;
}

bool
sim_srq_room(const struct sim_ep *ep)
{
	for (uint32_t i = 0; i < ep->srq->entries; i++)
		if (!ep->srq->used[i])
			return true;
	return false;
}

void
sim_srq_post(struct sim_ep *ep, struct sim_recv *r, const struct ring_rwqe *head,
	     const struct ring_sge *more, uint32_t bytes)
{
	struct sim_srq *q = ep->srq;
	uint32_t entry = rng_below(&q->rng, q->entries);
	uint8_t *at;

	if (q->entries < SIM_RECVS && rng_below(&q->rng, 32) == 0)
		grow(q, sim_between(&q->rng, q->entries + 1, SIM_RECVS));
	while (q->used[entry])
		entry = (entry + 1) % q->entries;
	at = q->slots + (size_t)entry * STRIDE;
	memcpy(at, head, sizeof(*head));
	memcpy(at + sizeof(*head), more, bytes);
	q->used[entry] = true;
	q->index[q->tail++ & q->mask] = entry;
	r->index = entry;
}

/** The limit is armed now and then; an event must come for it, by itself or from here. */
void
sim_srq_publish(struct sim_ep *ep)
{
	struct sim_srq *q = ep->srq;

	atomic_store_explicit(&q->client.tail, q->tail, memory_order_release);
	if (q->armed || rng_below(&q->rng, 4) != 0)
		return;
	q->armed = true;
	verbs_srq_arm(&q->v, sim_between(&q->rng, 1, q->entries));
	if (verbs_srq_reached(&q->v))
		sim_srq_event(&q->v, VERBS_EVENT_SRQ_LIMIT_REACHED);
}

void
sim_srq_event(struct verbs_srq *v, enum verbs_event event)
{
	struct sim_ep *ep = v->owner;

	sim_note(ep->s, "ep %u: event %u of its SRQ", ep->id, event);
	if (event != VERBS_EVENT_SRQ_LIMIT_REACHED)
		sim_fail(ep->s, "ep %u: event %u of its SRQ", ep->id, event);
	if (!ep->srq->armed)
		sim_fail(ep->s, "ep %u: a limit is told that was not armed", ep->id);
	ep->srq->armed = false;
}

void
sim_srq_last_wqe(struct sim_ep *ep)
{
	if (ep->srq == NULL || ep->srq->last_wqe)
		sim_fail(ep->s, "ep %u: LAST_WQE_REACHED %s", ep->id,
			 ep->srq ? "twice" : "without an SRQ");
	ep->srq->last_wqe = true;
}

void
sim_srq_connect(struct sim_ep *ep)
{
	if (ep->srq == NULL)
		return;
	ep->srq->last_wqe = false;
}

void
sim_srq_done(struct sim_ep *ep, uint32_t entry)
{
	ep->srq->used[entry] = false;
	ep->srq->done++;
}

/** Taken by the QP, and not completed. */
uint32_t
sim_srq_taken(const struct sim_ep *ep)
{
	return ep->srq ? atomic_load(&ep->srq->daemon.head) - ep->srq->done : 0;
}

/** What the QP will not take any more: the client has it back, the last first. */
bool
sim_srq_take_back(struct sim_ep *ep, struct sim_recv *r)
{
	struct sim_srq *q = ep->srq;

	if (q->tail == atomic_load(&q->daemon.head))
		return false;
	q->tail--;
	if (q->index[q->tail & q->mask] != r->index)
		sim_fail(ep->s, "ep %u: entry %u is where %u was posted", ep->id,
			 q->index[q->tail & q->mask], r->index);
	q->used[r->index] = false;
	atomic_store(&q->client.tail, q->tail);
	q->armed = false; /* no receive fell below the limit: the client did */
	verbs_srq_arm(&q->v, 0);
	return true;
}

/** In ERR: whether all that it took has completed, and the event has said so. */
bool
sim_srq_flushed(struct sim_ep *ep)
{
	if (!ep->srq->last_wqe || sim_srq_taken(ep) != 0)
		return false;
	if (verbs_srq_count(&ep->srq->v) != ep->recv_tail - ep->recv_head)
		sim_fail(ep->s, "ep %u: %u are in its SRQ, not %u", ep->id,
			 verbs_srq_count(&ep->srq->v), ep->recv_tail - ep->recv_head);
	if (ep->srq->armed && verbs_srq_count(&ep->srq->v) < verbs_srq_armed(&ep->srq->v))
		sim_fail(ep->s, "ep %u: its SRQ is below its limit, and nobody was told", ep->id);
	return true;
}
