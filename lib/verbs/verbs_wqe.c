/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests: copied out of shared memory once, checked, and only then believed. Which
 * operation may be posted on which QP is one table. Payload posted inline stays in its slots:
 * whatever the client makes of it, it is bytes.
 */
#include <errno.h>

#include <rte_prefetch.h>

#include "verbs_priv.h"

#define RC (1u << VERBS_QPT_RC)
#define UC (1u << VERBS_QPT_UC)
#define UD (1u << VERBS_QPT_UD)
#define GSI (1u << VERBS_QPT_GSI)
#define XRC (1u << VERBS_QPT_XRC_SEND)
#define LIST VERBS_WR_LIST
#define INLINE VERBS_WR_INLINE
#define EIGHT VERBS_WR_EIGHT
#define LEN VERBS_WR_LEN

/*
 * Which QP types may post what (IBTA 11.4.1.1, and the annexes for FLUSH and ATOMIC WRITE). SEND
 * with invalidate is not for UC, whose opcodes 0x20 to 0x2b have no invalidate; FLUSH and ATOMIC
 * WRITE are RC's alone, since no source at hand gives XRC opcodes of them.
 */
const struct verbs_wr_info verbs_wr_info[RING_WR_OPCODE_COUNT] = {
	[RING_WR_RDMA_WRITE] = {RC | UC | XRC, LIST | INLINE, RING_WC_RDMA_WRITE},
	[RING_WR_RDMA_WRITE_WITH_IMM] = {RC | UC | XRC, LIST | INLINE, RING_WC_RDMA_WRITE},
	[RING_WR_SEND] = {RC | UC | UD | GSI | XRC, LIST | INLINE, RING_WC_SEND},
	[RING_WR_SEND_WITH_IMM] = {RC | UC | UD | GSI | XRC, LIST | INLINE, RING_WC_SEND},
	[RING_WR_SEND_WITH_INV] = {RC | XRC, LIST | INLINE, RING_WC_SEND},
	[RING_WR_RDMA_READ] = {RC | XRC, LIST | LEN, RING_WC_RDMA_READ},
	[RING_WR_ATOMIC_CMP_AND_SWP] = {RC | XRC, LIST | EIGHT | LEN, RING_WC_COMP_SWAP},
	[RING_WR_ATOMIC_FETCH_AND_ADD] = {RC | XRC, LIST | EIGHT | LEN, RING_WC_FETCH_ADD},
	[RING_WR_ATOMIC_WRITE] = {RC, LIST | INLINE | EIGHT, RING_WC_ATOMIC_WRITE},
	[RING_WR_FLUSH] = {RC, VERBS_WR_RANGE, RING_WC_FLUSH},
	[RING_WR_LOCAL_INV] = {RC | UC | XRC, 0, RING_WC_LOCAL_INV},
	[RING_WR_BIND_MW] = {RC | UC | XRC, 0, RING_WC_BIND_MW},
	[RING_WR_FAST_REG] = {RC | UC | XRC, 0, RING_WC_FAST_REG},
};

#define ALL_FLAGS (RING_WR_FENCE | RING_WR_SIGNALED | RING_WR_SOLICITED | RING_WR_INLINE)

/** Slots to take, 0: none, or -EBADMSG. Reloads the tail only when the known part is used up. */
static inline int64_t
queue_avail(struct verbs_worker *w, struct ring_wq_cons *q)
{
	int64_t n = q->tail - q->head;

	if (n == 0) {
		if (unlikely(q->slots == NULL))
			return 0;
		n = ring_wq_poll(q);
		if (unlikely(n < 0)) {
			counter_inc(&w->counter[VERBS_C_TAIL_BAD]);
			return -EBADMSG;
		}
	}
	return n;
}

static inline bool
is_atomic(const struct ring_wqe *r)
{
	return r->opcode == RING_WR_ATOMIC_CMP_AND_SWP || r->opcode == RING_WR_ATOMIC_FETCH_AND_ADD;
}

/** All that the first slot's copy alone tells. */
static inline bool
send_header_ok(const struct verbs_qp *qp, const struct ring_wqe *r)
{
	const struct verbs_wr_info *op;

	if (unlikely(r->opcode >= RING_WR_OPCODE_COUNT))
		return false;
	op = &verbs_wr_info[r->opcode];
	if (unlikely(!(op->types & (1u << qp->type)) || (r->flags & ~ALL_FLAGS)))
		return false;
	if (r->flags & RING_WR_INLINE)
		return (op->mask & INLINE) && r->num_sge == 0 && r->inline_len <= qp->max_inline &&
		       r->num_slots == ring_wqe_slots_inline(r->inline_len) &&
		       (!(op->mask & EIGHT) || r->inline_len == 8);
	if (r->inline_len != 0 && !(op->mask & VERBS_WR_RANGE)) /* there it is flush_len */
		return false;
	if (op->mask & EIGHT)
		return r->num_sge == 1 && r->num_slots == 1;
	return r->num_sge <= ((op->mask & LIST) ? qp->max_send_sge : 0) &&
	       r->num_slots == ring_wqe_slots_sge(r->num_sge);
}

static inline struct verbs_sge
sge_of(const struct ring_sge *s)
{
	return (struct verbs_sge){s->addr, s->length, s->lkey};
}

/** Copy the elements in the slots after the first; returns the sum of their lengths. */
static uint64_t
take_more(struct verbs_slots s, struct verbs_sge *to, uint32_t num)
{
	struct ring_sge slot[RING_SLOT_SGES];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < num; i++) {
		if (i % RING_SLOT_SGES == 0) {
			memcpy(slot, verbs_slot(s, 1 + i / RING_SLOT_SGES), sizeof(slot));
			verbs_copied(slot);
		}
		to[i] = sge_of(&slot[i % RING_SLOT_SGES]);
		sum += to[i].length;
	}
	return sum;
}

/** The elements of a send request's list into the shadow; returns their sum. */
static inline uint64_t
take_send_list(const struct ring_wq_cons *q, const struct ring_wqe *r, struct verbs_wqe *wqe)
{
	struct verbs_sge *to = wqe->block ? wqe->block->sge : wqe->sge;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->num_sge && i < RING_WQE_SGES; i++) {
		to[i] = sge_of(&r->sge[i]);
		sum += to[i].length;
	}
	if (unlikely(r->num_sge > RING_WQE_SGES))
		sum += take_more((struct verbs_slots){q->slots, q->head, q->mask},
				 to + RING_WQE_SGES, r->num_sge - RING_WQE_SGES);
	return sum;
}

static inline void
take_atomic(const struct ring_wqe *r, struct verbs_wqe *wqe)
{
	wqe->compare_add = r->atomic.compare_add;
	wqe->swap = r->atomic.swap;
	wqe->sge[0] = sge_of(&r->atomic.sge);
}

/** FLUSH: some placement type of the two, a range or the whole region; no other bit. */
static inline bool
flush_ok(uint32_t flush)
{
	uint32_t type = flush & 15, level = flush >> 4;

	return type != 0 && type <= 3 && level <= 1;
}

static void
take_key_op(const struct ring_wqe *r, struct verbs_wqe *wqe)
{
	if (r->opcode == RING_WR_BIND_MW) {
		wqe->bind.length = r->bind.length;
		wqe->bind.mr_lkey = r->bind.mr_lkey;
		wqe->bind.access = r->bind.access;
		wqe->bind.mw_key = r->bind.mw_key;
	} else if (r->opcode == RING_WR_FAST_REG) {
		wqe->fast_reg.length = r->fast_reg.length;
		wqe->fast_reg.list_addr = r->fast_reg.list_addr;
		wqe->fast_reg.list_len = r->fast_reg.list_len;
		wqe->fast_reg.list_lkey = r->fast_reg.list_lkey;
		wqe->fast_reg.access = r->fast_reg.access;
	}
}

/** The payload's whereabouts and length; a status if they do not fit the operation. */
static inline enum wc_status
take_payload(const struct verbs_qp *qp, const struct ring_wqe *r, struct verbs_wqe *wqe)
{
	uint32_t mask = verbs_wr_info[r->opcode].mask;
	uint64_t sum;

	if (r->flags & RING_WR_INLINE) {
		sum = r->inline_len;
	} else if (mask & VERBS_WR_RANGE) {
		sum = r->flush_len;
		if (unlikely(!flush_ok(r->flush)))
			return WC_LOC_QP_OP_ERR;
	} else if (unlikely(is_atomic(r))) {
		take_atomic(r, wqe);
		sum = wqe->sge[0].length;
	} else if (likely(mask & LIST)) {
		sum = take_send_list(&qp->sq, r, wqe);
	} else {
		take_key_op(r, wqe);
		sum = 0;
	}
	if (unlikely(sum > VERBS_MAX_MESSAGE))
		return WC_LOC_LEN_ERR;
	if (unlikely((mask & EIGHT) && sum != 8))
		return WC_LOC_QP_OP_ERR;
	wqe->length = (uint32_t)sum;
	return WC_SUCCESS;
}

static inline void
append_started(struct verbs_qp *qp, struct verbs_wqe *wqe)
{
	wqe->next = NULL;
	if (qp->wqe_head == NULL)
		qp->wqe_head = wqe;
	else
		qp->wqe_tail->next = wqe;
	qp->wqe_tail = wqe;
}

/** A shadow, with a block if the list is long; NULL: the QP waits for one. */
static inline struct verbs_wqe *
shadow_alloc(struct verbs_worker *w, struct verbs_qp *qp, bool long_list)
{
	struct verbs_share *s = qp->share;
	struct verbs_wqe *wqe = w->free_wqes;
	struct verbs_sgl_block *block = NULL;

	if (unlikely(!verbs_share_may(s->used[VERBS_POOL_WQE], w->shadows_used, w->shadows))) {
		verbs_starve(w, qp, VERBS_POOL_WQE);
		return NULL;
	}
	if (unlikely(long_list && (block = verbs_block_alloc(w, s)) == NULL)) {
		verbs_starve(w, qp, VERBS_POOL_BLOCK);
		return NULL;
	}
	w->free_wqes = wqe->next;
	w->shadows_used++;
	s->used[VERBS_POOL_WQE]++;
	wqe->block = block;
	return wqe;
}

static inline void
shadow_fill(struct verbs_wqe *wqe, const struct verbs_qp *qp, const struct ring_wqe *r)
{
	wqe->wqe_index = qp->sq.head;
	wqe->opcode = r->opcode;
	wqe->flags = r->flags;
	wqe->num_sge = r->num_sge;
	wqe->num_slots = r->num_slots;
	wqe->length = 0;
	wqe->imm = r->imm;
	wqe->rkey = r->rkey;
	wqe->flush = r->flush;
	wqe->remote_addr = r->remote_addr;
	wqe->first_psn = wqe->last_psn = wqe->ssn = wqe->done = 0;
	wqe->tstate = 0;
	wqe->reserved = 0;
	wqe->srqn = r->srqn;
	wqe->pd = qp->pd;
}

/** Make a refused request harmless: only its place in the queue is left of it. */
static void
shadow_refuse(struct verbs_worker *w, struct verbs_wqe *wqe)
{
	counter_inc(&w->counter[VERBS_C_WQE_BAD]);
	if (wqe->block) {
		verbs_block_free(w, wqe->block);
		wqe->block = NULL;
	}
	wqe->flags = RING_WR_SIGNALED;
	wqe->num_sge = 0;
	wqe->length = 0;
}

int
verbs_sq_fetch(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_wqe **out)
{
	struct ring_wq_cons *q = &qp->sq;
	int64_t avail = queue_avail(w, q);
	struct verbs_wqe *wqe;
	struct ring_wqe r;
	bool ok;

	if (unlikely(avail <= 0))
		return (int)avail;
	memcpy(&r, ring_wq_cons_slot(q, q->head), sizeof(r));
	verbs_copied(&r);
	if (unlikely(r.num_slots == 0 || r.num_slots > RING_MAX_WQE_SLOTS || r.num_slots > avail)) {
		counter_inc(&w->counter[VERBS_C_WQE_BAD]);
		return -EBADMSG;
	}
	ok = send_header_ok(qp, &r);
	wqe = shadow_alloc(w, qp, ok && r.num_sge > VERBS_WQE_SGES);
	if (unlikely(wqe == NULL))
		return -EAGAIN;
	shadow_fill(wqe, qp, &r);
	wqe->status = ok ? take_payload(qp, &r, wqe) : WC_LOC_QP_OP_ERR;
	if (unlikely(wqe->status != WC_SUCCESS))
		shadow_refuse(w, wqe);
	q->head += r.num_slots;
	rte_prefetch0(ring_wq_cons_slot(q, q->head));
	append_started(qp, wqe);
	counter_inc(&w->counter[VERBS_C_WQE_STARTED]);
	*out = wqe;
	return 1;
}

bool
verbs_sq_has_work(struct verbs_qp *qp)
{
	return qp->sq.slots != NULL &&
	       atomic_load_explicit(qp->sq.shared_tail, memory_order_relaxed) != qp->sq.head;
}

int
verbs_rwqe_take(struct verbs_worker *w, struct verbs_share *share, const struct ring_rwqe *r,
		struct verbs_slots s, uint32_t max_sge, struct verbs_rwqe *out)
{
	struct verbs_sge *to = out->sge;
	uint64_t sum = 0;

	out->num_slots = r->num_slots;
	out->num_sge = 0;
	out->length = 0;
	out->block = NULL;
	out->valid = r->num_sge <= max_sge && r->num_slots == ring_rwqe_slots(r->num_sge);
	if (unlikely(!out->valid)) {
		counter_inc(&w->counter[VERBS_C_WQE_BAD]);
		return 1;
	}
	if (unlikely(r->num_sge > VERBS_WQE_SGES)) {
		out->block = verbs_block_alloc(w, share);
		if (out->block == NULL) {
			counter_inc(&share->refused[VERBS_POOL_BLOCK]);
			counter_inc(&w->counter[VERBS_C_SHADOW_EMPTY]);
			return -EAGAIN;
		}
		to = out->block->sge;
	}
	for (uint32_t i = 0; i < r->num_sge && i < RING_RWQE_SGES; i++) {
		to[i] = sge_of(&r->sge[i]);
		sum += to[i].length;
	}
	if (unlikely(r->num_sge > RING_RWQE_SGES))
		sum += take_more(s, to + RING_RWQE_SGES, r->num_sge - RING_RWQE_SGES);
	out->num_sge = r->num_sge;
	out->length = sum < VERBS_MAX_MESSAGE ? (uint32_t)sum : VERBS_MAX_MESSAGE;
	return 1;
}

int
verbs_rq_fetch(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_rwqe *out)
{
	struct ring_wq_cons *q = &qp->rq;
	struct ring_rwqe r;
	int64_t avail;
	int ret;

	if (qp->srq)
		return verbs_srq_fetch(w, qp, qp->srq, out);
	avail = queue_avail(w, q);
	if (unlikely(avail <= 0))
		return (int)avail;
	memcpy(&r, ring_wq_cons_slot(q, q->head), sizeof(r));
	verbs_copied(&r);
	if (unlikely(r.num_slots == 0 || r.num_slots > RING_MAX_WQE_SLOTS || r.num_slots > avail)) {
		counter_inc(&w->counter[VERBS_C_WQE_BAD]);
		return -EBADMSG;
	}
	ret = verbs_rwqe_take(w, qp->share, &r, (struct verbs_slots){q->slots, q->head, q->mask},
			      qp->max_recv_sge, out);
	if (unlikely(ret < 0))
		return ret;
	out->wqe_index = q->head;
	out->pd = qp->pd;
	q->head += r.num_slots;
	if (qp->rq_posted)
		qp->rq_posted--;
	rte_prefetch0(ring_wq_cons_slot(q, q->head));
	return 1;
}

static_assert(offsetof(struct ring_rwqe, num_slots) == 0, "read by rq_count_walk()");

/** New requests that one look counts: for an ACK, and each is a line of client memory. */
#define RQ_COUNT_MAX 64u

/**
 * Requests of several slots are told apart by walking what was posted since the last look. A
 * walk that was cut goes on at the next look: fewer credits than there are receives are legal
 * (IBTA 9.7.7.2), and what was counted is not walked again.
 */
static uint32_t
rq_count_walk(struct verbs_qp *qp)
{
	const struct ring_wq_cons *q = &qp->rq;
	uint32_t slots = q->tail - q->head;

	if (q->tail - qp->rq_counted > slots) { /* taken further than it was counted */
		qp->rq_counted = q->head;
		qp->rq_posted = 0;
	}
	for (uint32_t i = 0; i < RQ_COUNT_MAX && qp->rq_counted != q->tail; i++) {
		/* the first byte of struct ring_rwqe */
		const _Atomic uint8_t *count = ring_wq_cons_slot(q, qp->rq_counted);
		uint32_t n = atomic_load_explicit(count, memory_order_relaxed);

		if (n == 0 || n > q->tail - qp->rq_counted)
			break; /* verbs_rq_fetch() will say so */
		qp->rq_counted += n;
		qp->rq_posted++;
	}
	return qp->rq_posted < slots ? qp->rq_posted : slots;
}

uint32_t
verbs_rq_count(struct verbs_qp *qp)
{
	int64_t slots;

	if (qp->srq || qp->rq.slots == NULL)
		return 0;
	slots = ring_wq_poll(&qp->rq);
	if (slots <= 0)
		return 0;
	if (qp->max_recv_sge <= RING_RWQE_SGES)
		return (uint32_t)slots;
	return rq_count_walk(qp);
}

void
verbs_rwqe_release(struct verbs_worker *w, struct verbs_rwqe *r)
{
	if (r->block) {
		verbs_block_free(w, r->block);
		r->block = NULL;
	}
	r->num_sge = 0;
	r->valid = false;
}
