/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mailboxes: messages in both directions over rte_rings, and what each does to the worker. What
 * a worker sends of its own comes from a pool in shares, so that no kind starves another and
 * nothing is allocated; what it answers is the sender's memory. The order towards the control
 * thread is kept, so that nothing about an object arrives after the answer that ended it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_ring.h>

#include "roce_ah.h"
#include "worker_priv.h"

/* ---- rings ---------- */

static const uint32_t shares[WORKER_OWN_COUNT] = {
	[WORKER_OWN_EVENT] = WORKER_EVENTS,
	[WORKER_OWN_RX_CTL] = WORKER_RX_CTL,
	[WORKER_OWN_GSI] = WORKER_GSI,
	[WORKER_OWN_NOTIFY] = WORKER_NOTIFIES,
};

static uint32_t
share(const struct worker_shared *s, enum worker_own kind)
{
	return kind == WORKER_OWN_EVENT && s->max_events ? s->max_events : shares[kind];
}

static uint32_t
own_total(const struct worker_shared *s)
{
	uint32_t n = 0;

	for (int kind = 0; kind < WORKER_OWN_COUNT; kind++)
		n += share(s, (enum worker_own)kind);
	return n;
}

uint32_t
worker_ctl_ring_size(const struct worker_shared *s, uint32_t requests)
{
	return rte_align32pow2(s->num_workers * own_total(s) + requests + 1);
}

/** A ring of pointers in plain memory: tests and several devices in a process need no names. */
static struct rte_ring *
ring_new(uint32_t count, unsigned int flags)
{
	struct rte_ring *r = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(
		(size_t)rte_ring_get_memsize(count), (size_t)RTE_CACHE_LINE_SIZE));

	if (r != NULL && rte_ring_init(r, "worker", count, flags) != 0) {
		free(r);
		return NULL;
	}
	return r;
}

/** Control thread: the message is the worker's again. */
static void
own_done(struct worker_msg *m)
{
	struct worker_own_msg *own = (struct worker_own_msg *)m;

	rte_ring_enqueue(own->w->own_back, own); /* has room for all of them */
}

static int
own_create(struct worker *w)
{
	uint32_t n = own_total(w->s);

	w->own_back = ring_new(rte_align32pow2(n + 1), RING_F_SC_DEQ);
	w->own_memory = calloc(n, sizeof(*w->own_memory));
	if (w->own_back == NULL || w->own_memory == NULL)
		return -ENOMEM;
	for (int kind = 0; kind < WORKER_OWN_COUNT; kind++)
		w->own_left[kind] = share(w->s, (enum worker_own)kind);
	for (uint32_t i = 0; i < n; i++) {
		w->own_memory[i].w = w;
		w->own_memory[i].m.done = own_done;
		w->own_memory[i].m.next = w->own_free;
		w->own_free = &w->own_memory[i].m;
	}
	return 0;
}

int
worker_mbox_create(struct worker *w)
{
	worker_fifo_init(&w->outbox);
	w->mailbox = ring_new(WORKER_MAILBOX, RING_F_SC_DEQ);
	w->handover = ring_new(WORKER_HANDOVER, RING_F_SC_DEQ);
	if (w->mailbox == NULL || w->handover == NULL)
		return -ENOMEM;
	return own_create(w);
}

void
worker_mbox_destroy(struct worker *w)
{
	struct rte_mbuf *pkt;
	struct worker_msg *m;

	while (w->mailbox != NULL && rte_ring_dequeue(w->mailbox, (void **)&m) == 0) {
		if (m->type == WORKER_MSG_TX)
			rte_pktmbuf_free(m->pkt.m);
		if (m->done != NULL)
			m->done(m);
	}
	while (w->handover != NULL && rte_ring_dequeue(w->handover, (void **)&pkt) == 0)
		rte_pktmbuf_free(pkt);
	free(w->mailbox);
	free(w->handover);
	free(w->own_back);
	free(w->own_memory);
}

/* ---- sending ---------- */

bool
worker_send(struct worker *w, struct worker_msg *m)
{
	if (rte_ring_enqueue(w->mailbox, m) != 0)
		return false;
	if (ring_sleep_kick_needed(&w->sleep))
		worker_kick(w);
	return true;
}

unsigned int
worker_ctl_dequeue(struct worker_shared *s, struct worker_msg **m, unsigned int n)
{
	return rte_ring_dequeue_burst(s->to_ctl, (void **)m, n, NULL);
}

void
worker_tell(struct worker *w, struct worker_msg *m)
{
	w->told = true;
	if (likely(w->outbox.head == NULL) && rte_ring_enqueue(w->s->to_ctl, m) == 0)
		return;
	m->next = NULL;
	*w->outbox.tail = m;
	w->outbox.tail = &m->next;
}

static void
reply(struct worker *w, struct worker_msg *m, int status)
{
	m->status = status;
	m->reply = true;
	worker_tell(w, m);
}

void
worker_own_put(struct worker *w, struct worker_msg *m)
{
	w->own_left[((struct worker_own_msg *)m)->kind]++;
	m->next = w->own_free;
	w->own_free = m;
}

void
worker_own_reclaim(struct worker *w)
{
	struct worker_own_msg *own;

	while (rte_ring_dequeue(w->own_back, (void **)&own) == 0) {
		if (own->kind == WORKER_OWN_GSI)
			worker_gsi_back(w, own->m.mad);
		worker_own_put(w, &own->m);
	}
}

struct worker_msg *
worker_own_get(struct worker *w, enum worker_own kind)
{
	struct worker_msg *m;

	if (w->own_left[kind] == 0)
		worker_own_reclaim(w);
	if (w->own_left[kind] == 0)
		return NULL;
	w->own_left[kind]--;
	if (w->own_free == NULL)
		worker_own_reclaim(w);
	m = w->own_free;
	w->own_free = m->next;
	((struct worker_own_msg *)m)->kind = (uint8_t)kind;
	m->reply = false;
	m->status = 0;
	return m;
}

static void
outbox_flush(struct worker *w)
{
	struct worker_msg *m;

	while ((m = w->outbox.head) != NULL) {
		struct worker_msg *next = m->next; /* the receiver's, once enqueued */

		if (rte_ring_enqueue(w->s->to_ctl, m) != 0)
			return;
		w->told = true;
		w->outbox.head = next;
	}
	worker_fifo_init(&w->outbox);
}

void
worker_mbox_flush(struct worker *w)
{
	if (unlikely(w->outbox.head != NULL))
		outbox_flush(w);
	w->notified = 0;
	if (unlikely(worker_is_late(w)))
		worker_late(w); /* at the next loop's expense */
	if (unlikely(w->told)) {
		w->told = false;
		if (ring_sleep_kick_needed(&w->s->ctl_sleep))
			worker_write_eventfd(w->s->ctl_kick_fd);
	}
	while (unlikely(w->handed != 0)) {
		struct worker *to = w->s->worker[__builtin_ctz(w->handed)];

		w->handed &= w->handed - 1;
		if (to != w && ring_sleep_kick_needed(&to->sleep))
			worker_kick(to);
	}
}

/* ---- handling ---------- */

static void
bell_assign(const struct worker *w, const struct worker_msg *m, struct verbs_qp *qp)
{
	struct worker_ctx_at *at = &m->qp.ctx->at[w->id];
	uint32_t chunk = m->qp.bell_slot / RING_BELL_SLOTS;
	uint32_t slot = m->qp.bell_slot % RING_BELL_SLOTS;

	if (m->qp.bell_slot == UINT32_MAX) /* an XRC target has nothing to post */
		return;
	at->slots_used[chunk] = RTE_MAX(at->slots_used[chunk], slot + 1);
	at->slots[chunk][slot] = qp;
}

static void
qp_bind(struct worker *w, struct worker_msg *m)
{
	struct verbs_qp *qp = m->qp.qp;
	int rc;

	qp->share = &m->qp.ctx->at[w->id].share;
	rc = roce_qp_modify(w->roce, qp, &m->qp.attr, m->qp.mask, w->now);
	if (rc == 0) {
		bell_assign(w, m, qp);
		atomic_store_explicit(&qp->daemon->worker, w->id, memory_order_seq_cst);
		verbs_run_add(&w->verbs, qp); /* bells rung elsewhere until now were for us */
	}
	reply(w, m, rc);
}

static void
qp_modify(struct worker *w, struct worker_msg *m)
{
	struct verbs_qp *qp = m->qp.qp;
	unsigned int next = (m->qp.mask & VERBS_QP_STATE) ? m->qp.attr.state : qp->state;
	int rc;

	/* The control thread looked at the state too, but the engine may have left it since. */
	rc = verbs_qp_modify_check(qp->type, qp->state, next, m->qp.mask);
	if (rc == 0)
		rc = roce_qp_modify(w->roce, qp, &m->qp.attr, m->qp.mask, w->now);
	if (rc == 0)
		verbs_run_add(&w->verbs, qp);
	reply(w, m, rc);
}

static void
qp_unbind(struct worker *w, struct worker_msg *m)
{
	struct worker_qp *owner = m->qp.qp->owner;

	bell_assign(w, m, NULL);
	roce_qp_detach(w->roce, m->qp.qp);
	verbs_run_remove(&w->verbs, m->qp.qp);
	if (owner != NULL)
		worker_late_drop(w, &owner->late);
	if (roce_qp_idle(m->qp.qp)) {
		reply(w, m, 0);
		return;
	}
	m->next = w->unbinding;
	w->unbinding = m;
}

/**
 * Whether anything of the worker's still counts for the context: an access that its QPs have
 * left behind counts until the copier gives it back, from a lane that may be another client's.
 */
static bool
ctx_in_use(const struct worker *w, const struct worker_ctx *ctx)
{
	const struct verbs_share *s = &ctx->at[w->id].share;

	for (unsigned int p = 0; p < VERBS_POOLS; p++)
		if (s->used[p] != 0)
			return true;
	return false;
}

static void
ctx_del(struct worker *w, struct worker_msg *m)
{
	worker_ctx_del(w, m->ctx);
	if (!ctx_in_use(w, m->ctx)) {
		reply(w, m, 0);
		return;
	}
	m->next = w->leaving;
	w->leaving = m;
}

/** Answer those of a list that wait for nothing any more. */
static void
answer_done(struct worker *w, struct worker_msg **at)
{
	struct worker_msg *m;

	while ((m = *at) != NULL) {
		if (m->type == WORKER_MSG_CTX_DEL ? ctx_in_use(w, m->ctx)
						  : !roce_qp_idle(m->qp.qp)) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		reply(w, m, 0);
	}
}

/** The first ring of this worker's end, or the next one after a resize. */
static void
cq_sub(struct worker *w, struct worker_msg *m)
{
	struct verbs_cq *cq = m->cq.cq;
	struct ring_cq_prod *prod = &cq->end[w->id].prod;

	if (prod->ring != NULL) {
		verbs_cq_switch(&w->verbs, cq, m->cq.ring, m->cq.entries - 1);
	} else {
		prod->ring = m->cq.ring;
		prod->cons = m->cq.cons;
		prod->mask = m->cq.entries - 1;
	}
	m->cq.start = prod->tail;
	reply(w, m, 0);
}

/** It is on the list of CQs completed to in this burst, perhaps: empty that, and what is late. */
static void
cq_del(struct worker *w, struct worker_msg *m)
{
	struct verbs_cq *cq = m->cq.cq;
	struct worker_cq *owner = cq != NULL ? cq->owner : NULL;

	verbs_cq_burst_end(&w->verbs);
	if (owner != NULL && cq->end[w->id].late)
		worker_late_drop(w, &owner->late);
	if (owner != NULL && owner->channel != NULL)
		worker_channel_settle(w, owner->channel);
	reply(w, m, 0);
}

/** Its QPs have gone: what is left are events that could not be told at once. */
static void
srq_del(struct worker *w, struct worker_msg *m)
{
	struct worker_srq *owner = m->srq->owner;

	if (owner != NULL)
		worker_late_drop(w, &owner->late[w->id]);
	reply(w, m, 0);
}

static void
bell_chunk(struct worker *w, struct worker_msg *m)
{
	struct worker_ctx_at *at = &m->bell.ctx->at[w->id];
	uint32_t n = m->bell.number;

	if (n != at->num_chunks || n >= RING_BELL_CHUNKS) {
		reply(w, m, -EINVAL);
		return;
	}
	at->chunk[n] = m->bell.chunk;
	at->slots[n] = m->bell.slots;
	at->num_chunks++;
	reply(w, m, 0);
}

static void
send_packet(struct worker *w, struct worker_msg *m)
{
	if (m->pkt.port < w->num_tx && net_tx_push(w->tx[m->pkt.port], m->pkt.m)) {
		worker_count(w, WORKER_C_TX_CTL, 1);
	} else {
		worker_count(w, WORKER_C_DROP_TX_CTL, 1);
		rte_pktmbuf_free(m->pkt.m);
	}
	if (m->done != NULL)
		m->done(m);
}

/** A foreign access is back. If its QP has gone, the packet that it was for is ours to free. */
static void
io_done(struct worker *w, struct worker_msg *m)
{
	struct verbs_io *io = m->io;
	unsigned int dir = io->dir;
	void *packet = io->user;
	struct verbs_qp *qp;
	uint64_t original;
	int status;

	if (m->done != NULL)
		m->done(m);
	qp = verbs_io_finish(&w->verbs, io, &status, &original);
	if (qp != NULL)
		roce_io_done(w->roce, qp, dir, status, original, w->now);
	else
		rte_pktmbuf_free(packet);
}

static void
handle(struct worker *w, struct worker_msg *m)
{
	switch ((enum worker_msg_type)m->type) {
	case WORKER_MSG_CTX_ADD:
		worker_ctx_add(w, m->ctx);
		break;
	case WORKER_MSG_CTX_DEL:
		ctx_del(w, m);
		return;
	case WORKER_MSG_BELL_CHUNK:
		bell_chunk(w, m);
		return;
	case WORKER_MSG_QP_BIND:
		qp_bind(w, m);
		return;
	case WORKER_MSG_QP_MODIFY:
		qp_modify(w, m);
		return;
	case WORKER_MSG_QP_QUERY:
		roce_qp_query(m->qp.qp, &m->qp.attr);
		break;
	case WORKER_MSG_QP_UNBIND:
		qp_unbind(w, m);
		return;
	case WORKER_MSG_CQ_SUB:
		cq_sub(w, m);
		return;
	case WORKER_MSG_CQ_DEL:
		cq_del(w, m);
		return;
	case WORKER_MSG_SRQ_DEL:
		srq_del(w, m);
		return;
	case WORKER_MSG_NEIGH:
		roce_neigh_resolved(w->roce, m->neigh.neigh, w->now);
		break;
	case WORKER_MSG_AH_FORGET:
		roce_ah_forget(w->roce, m->ah);
		break;
	case WORKER_MSG_QUIESCE:
		m->next = w->quiescing;
		w->quiescing = m;
		return;
	case WORKER_MSG_TX:
		send_packet(w, m);
		return;
	case WORKER_MSG_IO_DONE:
		io_done(w, m);
		return;
	case WORKER_MSG_CC:
		roce_cc_set(w->roce, m->cc.port, &m->cc.params);
		if (m->done != NULL)
			m->done(m);
		return;
	case WORKER_MSG_STOP:
		atomic_store_explicit(&w->stop, true, memory_order_relaxed);
		if (m->done != NULL)
			m->done(m);
		return;
	case WORKER_MSG_EVENT:
	case WORKER_MSG_RX_CTL:
	case WORKER_MSG_RX_GSI:
	case WORKER_MSG_NOTIFY:
		reply(w, m, -EINVAL); /* these go the other way */
		return;
	}
	reply(w, m, 0);
}

unsigned int
worker_mail(struct worker *w)
{
	struct worker_msg *m[WORKER_MAIL_BURST];
	unsigned int n;

	n = rte_ring_dequeue_burst(w->mailbox, (void **)m, WORKER_MAIL_BURST, NULL);
	for (unsigned int i = 0; i < n; i++)
		handle(w, m[i]);
	worker_count(w, WORKER_C_MAIL, n);
	if (unlikely(w->unbinding != NULL))
		answer_done(w, &w->unbinding);
	if (unlikely(w->leaving != NULL))
		answer_done(w, &w->leaving);
	return n;
}

void
worker_mail_quiesced(struct worker *w)
{
	struct worker_msg *m = w->quiescing;

	w->quiescing = NULL;
	while (m != NULL) {
		struct worker_msg *next = m->next;

		reply(w, m, 0);
		m = next;
	}
	worker_mbox_flush(w);
}
