/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Polling: the sub-rings of a CQ in turn, batch by batch. What a completion says is checked
 * against what was posted; one that fits nothing (of a destroyed or reset QP, or plain wrong) is
 * discarded and counted.
 */
#include "client_priv.h"

#define YIELD_EVERY 512 /* empty polls in a row: some 10 us, of which a yield is 3 % */
#define LOOK_EVERY 8192 /* empty polls between looks at the socket: well under 1 % of the time */

/* Where a sub-ring lies, read once from the D arena. With the context's lock. */
static const struct ring_cqe *
sub_ring(struct client_cq *cq, const struct ring_cq_sub *s, uint32_t *mask)
{
	uint32_t entries = s->log_entries < 31 ? 1u << s->log_entries : 0;

	if (entries < 2 || entries > 2 * RING_MAX_ENTRIES)
		return NULL;
	*mask = entries - 1;
	return client_loc(cq->pub.context, RING_LOC(s->arena, s->offset & ((1ull << 48) - 1)),
		entries * sizeof(struct ring_cqe), sizeof(struct ring_cqe), RING_ARENA_D);
}

static void
sub_open(struct client_cq *cq, uint32_t i)
{
	struct rnic_context *ctx = cq->pub.context;
	struct client_sub *sub = &cq->sub[i];
	struct ring_cq_sub s = cq->daemon->sub[i];

	pthread_mutex_lock(&ctx->lock);
	sub->cons.ring = sub_ring(cq, &s, &sub->cons.mask);
	if (!sub->cons.ring || s.worker >= RING_MAX_WORKERS || s.generation != 0) {
		client_die(ctx, -EPROTO);
		sub->cons.ring = NULL;
	} else {
		sub->cons.shared = &cq->client->cons[s.worker];
	}
	pthread_mutex_unlock(&ctx->lock);
}

/* More sub-rings than we know. Their places are stored before their number. */
static void
subs_open(struct client_cq *cq, uint32_t num)
{
	if (num > RING_MAX_WORKERS)
		num = RING_MAX_WORKERS;
	while (cq->num_sub < num) {
		sub_open(cq, cq->num_sub);
		if (!cq->sub[cq->num_sub].cons.ring)
			return;
		cq->num_sub++;
	}
}

/* Sub-ring i goes on in its other place. */
static bool
sub_follow(struct client_cq *cq, uint32_t i, struct client_sub *sub)
{
	struct rnic_context *ctx = cq->pub.context;
	uint32_t generation = sub->generation + 1;
	struct ring_cq_sub s = cq->daemon->sub[i + (generation & 1) * RING_MAX_WORKERS];
	const struct ring_cqe *ring;
	uint32_t mask;

	pthread_mutex_lock(&ctx->lock);
	ring = sub_ring(cq, &s, &mask);
	if (!ring || s.generation != generation) {
		client_die(ctx, -EPROTO);
		ring = NULL;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (!ring)
		return false;
	sub->generation = generation;
	ring_cq_follow(&sub->cons, ring, mask);
	return true;
}

static struct client_qp *
qp_find(struct client_cq *cq, uint32_t qpn)
{
	if (!cq->last || cq->last_qpn != qpn) {
		cq->last = client_map_get(&cq->qps, qpn);
		cq->last_qpn = qpn;
	}
	return cq->last;
}

/* The request of this index is done, and so are those before it. */
static inline bool
wq_complete(struct rnic_wq *q, uint32_t index, uint64_t *wr_id)
{
	const struct rnic_wq_entry *e;
	uint32_t end;

	if (!q->capacity)
		return false;
	e = &q->entries[index & q->mask];
	if (__atomic_load_n(&e->index, __ATOMIC_RELAXED) != index || (int32_t)(index - q->head) < 0)
		return false;
	*wr_id = __atomic_load_n(&e->wr_id, __ATOMIC_RELAXED);
	end = __atomic_load_n(&e->end, __ATOMIC_RELAXED);
	__atomic_store_n(&q->head, end, __ATOMIC_RELEASE); /* pairs with rnic_wq_get() */
	return true;
}

static uint32_t
wc_flags(uint32_t tag)
{
	return (tag & RING_CQE_GRH ? RNIC_WC_GRH : 0u) |
		(tag & RING_CQE_WITH_IMM ? RNIC_WC_WITH_IMM : 0u) |
		(tag & RING_CQE_WITH_INV ? RNIC_WC_WITH_INV : 0u);
}

static bool
complete(struct client_cq *cq, const struct ring_cqe *e, uint32_t tag, struct rnic_wc *wc)
{
	uint32_t qpn_status = e->qpn_status;
	uint32_t src_opcode = e->src_opcode;
	struct client_qp *qp = NULL;
	struct rnic_srq *srq = NULL;
	bool ok;

	if (tag & RING_CQE_XRC) {
		srq = client_map_get(&cq->srqs, src_opcode & 0xffffff);
		src_opcode &= 0xff000000;
	} else {
		qp = qp_find(cq, qpn_status & 0xffffff);
		srq = qp && (tag & RING_CQE_RECV) ? qp->pub.srq : NULL;
	}
	if (!qp && !srq)
		return false;
	if (srq)
		ok = client_srq_complete(srq, e->wqe_index, &wc->wr_id);
	else if (tag & RING_CQE_RECV)
		ok = wq_complete(&qp->pub.rq, e->wqe_index, &wc->wr_id);
	else
		ok = wq_complete(&qp->pub.sq, e->wqe_index, &wc->wr_id);
	wc->status = qpn_status >> 24;
	wc->opcode = src_opcode >> 24;
	wc->byte_len = e->byte_len;
	wc->imm_data = e->imm;
	wc->qp_num = qpn_status & 0xffffff;
	wc->src_qp = src_opcode & 0xffffff;
	wc->wc_flags = wc_flags(tag);
	wc->vendor_err = 0;
	wc->timestamp = e->timestamp;
	wc->qp = qp ? &qp->pub : NULL;
	wc->srq = srq;
	return ok;
}

static int
poll_sub(struct client_cq *cq, struct client_sub *sub, int n, struct rnic_wc *wc)
{
	bool moved = false;
	int got = 0;

	while (got < n) {
		const struct ring_cqe *e = ring_cq_peek(&sub->cons);
		uint32_t tag;

		if (!e)
			break;
		tag = atomic_load_explicit(&e->tag, memory_order_relaxed);
		if (tag & RING_CQE_SWITCH) {
			if (!sub_follow(cq, (uint32_t)(sub - cq->sub), sub))
				break;
			moved = false;
			continue;
		}
		if (complete(cq, e, tag, &wc[got]))
			got++;
		else
			atomic_fetch_add_explicit(&cq->pub.context->stale, 1, memory_order_relaxed);
		ring_cq_advance(&sub->cons);
		moved = true;
	}
	if (moved)
		ring_cq_release(&sub->cons);
	return got;
}

/* Round robin from call to call, so that no worker's completions wait for another's. */
static int
poll_subs(struct client_cq *cq, int n, struct rnic_wc *wc)
{
	uint32_t num = atomic_load_explicit(&cq->daemon->num_sub, memory_order_acquire);
	int got = 0;

	if (num != cq->num_sub)
		subs_open(cq, num);
	for (uint32_t i = 0; i < cq->num_sub && got < n; i++) {
		got += poll_sub(cq, &cq->sub[cq->next_sub], n - got, wc + got);
		if (++cq->next_sub >= cq->num_sub)
			cq->next_sub = 0;
	}
	return got;
}

/*
 * Nothing there: is there a reason? Those who only poll must learn of the daemon's death too, an
 * overrun CQ's poller like any other.
 */
static int
poll_empty(struct client_cq *cq)
{
	int rc;

	if (++cq->idle % LOOK_EVERY == 0)
		client_look(cq->pub.context);
	rc = client_gate(cq->pub.context);
	if (rc)
		return rc;
	return atomic_load_explicit(&cq->daemon->overrun, memory_order_relaxed) ? -EOVERFLOW : 0;
}

int
rnic_poll_cq(struct rnic_cq *pub, int n, struct rnic_wc *wc)
{
	struct client_cq *cq = client_cq(pub);
	bool yield = false;
	int got;

	if (client_is_child(pub->context))
		return -EPERM;
	if (n <= 0)
		return n ? -EINVAL : 0;
	client_lock(&cq->lock);
	got = poll_subs(cq, n, wc);
	if (got) {
		cq->idle = 0;
	} else {
		got = poll_empty(cq);
		yield = cq->idle % YIELD_EVERY == 0;
	}
	client_unlock(&cq->lock);
	if (yield) /* the worker, or the peer, may be waiting for this CPU */
		sched_yield();
	return got;
}

/* On a copy: the poller meets all of it again, and a ring is read once round at most. */
static void
clean_sub(struct client_cq *cq, uint32_t i, const struct client_qp *qp)
{
	struct client_sub sub = cq->sub[i];
	_Atomic uint32_t nowhere; /* the daemon is told nothing */
	const struct ring_cqe *e;
	uint64_t wr_id;

	sub.cons.shared = &nowhere;
	for (uint32_t seen = 0; seen <= sub.cons.mask && (e = ring_cq_peek(&sub.cons)); seen++) {
		uint32_t tag = atomic_load_explicit(&e->tag, memory_order_relaxed);

		if (tag & RING_CQE_SWITCH) {
			/* one resize at most waits for the poller: a second is no daemon's */
			if (sub.generation != cq->sub[i].generation || !sub_follow(cq, i, &sub))
				return;
			seen = 0;
			continue;
		}
		if ((tag & RING_CQE_RECV) && (e->qpn_status & 0xffffff) == qp->pub.qp_num)
			client_srq_complete(qp->pub.srq, e->wqe_index, &wr_id);
		ring_cq_advance(&sub.cons);
	}
}

/* Only what an SRQ lent matters: other completions are discarded when they are met. */
void
client_cq_clean(struct client_cq *cq, struct client_qp *qp)
{
	if (!qp->pub.srq)
		return;
	subs_open(cq, atomic_load_explicit(&cq->daemon->num_sub, memory_order_acquire));
	for (uint32_t i = 0; i < cq->num_sub; i++)
		clean_sub(cq, i, qp);
}
