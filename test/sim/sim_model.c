/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must be: memory and completions. The model is the order of posting. A target's bytes are
 * what the newest request made them, at its posting: the transport keeps that order. Requests
 * that do not succeed leave their target unsure (tainted) until the connection is made anew; an
 * endpoint's own memory is never unsure: what a completed request, failed ones too, has left
 * there is adopted, and nobody may write there after the completion.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ring_arm.h"

#include "sim.h"

static uint8_t scratch[SIM_MAX_LEN + SIM_BLOCK];

uint8_t *
sim_scratch(void)
{
	return scratch;
}

void
sim_pattern(uint64_t seed, uint8_t *to, uint32_t len)
{
	uint64_t x = seed | 1;

	for (uint32_t i = 0; i < len; i += 8) {
		uint64_t w;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		w = x * UINT64_C(0x2545F4914F6CDD1D);
		memcpy(to + i, &w, len - i < 8 ? len - i : 8);
	}
}

/* ---- local memory ---------- */

/** A free range of a part, in blocks of its own; false: none found. */
bool
sim_alloc(struct sim_ep *ep, enum sim_part part, uint32_t len, struct sim_range *r)
{
	uint32_t lead = rng_below(&ep->rng, SIM_BLOCK);
	uint32_t want = (lead + len + SIM_BLOCK - 1) / SIM_BLOCK;
	uint32_t blocks = ep->part_size / SIM_BLOCK;
	uint8_t *busy = ep->busy + part * blocks;

	if (want > blocks)
		return false;
	for (unsigned int i = 0; i < 8; i++) {
		uint32_t at = rng_below(&ep->rng, blocks - want + 1);

		if (memchr(busy + at, 1, want))
			continue;
		memset(busy + at, 1, want);
		r->off = part * ep->part_size + at * SIM_BLOCK + lead;
		r->len = len;
		return true;
	}
	return false;
}

void
sim_free(struct sim_ep *ep, const struct sim_range *r)
{
	uint32_t first = r->off / SIM_BLOCK, end = (r->off + r->len + SIM_BLOCK - 1) / SIM_BLOCK;

	memset(ep->busy + first, 0, end - first);
}

void
sim_adopt(struct sim_ep *ep, uint32_t off, uint32_t len)
{
	memcpy(ep->model + off, ep->mem + off, len);
	memset(ep->taint + off, 0, len);
}

void
sim_taint(struct sim_ep *ep, uint32_t off, uint32_t len)
{
	memset(ep->taint + off, 1, len);
}

void
sim_range_gather(const struct sim_ep *ep, const uint8_t *mem, const struct sim_range *r,
		 uint32_t num, uint8_t *to)
{
	(void)ep;
	for (uint32_t i = 0; i < num; i++) {
		memcpy(to, mem + r[i].off, r[i].len);
		to += r[i].len;
	}
}

void
sim_range_scatter(const struct sim_ep *ep, uint8_t *mem, const struct sim_range *r, uint32_t num,
		  const uint8_t *from, uint32_t len)
{
	(void)ep;
	for (uint32_t i = 0; i < num && len; i++) {
		uint32_t n = r[i].len < len ? r[i].len : len;

		memcpy(mem + r[i].off, from, n);
		from += n;
		len -= n;
	}
}

static void
ranges_done(struct sim_ep *ep, const struct sim_range *r, uint32_t num, bool adopt)
{
	for (uint32_t i = 0; i < num; i++) {
		if (adopt)
			sim_adopt(ep, r[i].off, r[i].len);
		sim_free(ep, &r[i]);
	}
}

/** Memory is as the model says, but for what is unsure. */
void
sim_check_memory(struct sim_ep *ep, const char *when)
{
	if (sim_is_uc(ep->s)) {
		sim_uc_check_memory(ep, when);
		return;
	}
	if (memcmp(ep->mem, ep->model, ep->mem_size) == 0)
		return;
	for (uint32_t i = 0; i < ep->mem_size; i++)
		if (ep->mem[i] != ep->model[i] && !ep->taint[i])
			sim_fail(ep->s,
				 "ep %u: memory differs %s: part %u offset %u is %02x, not %02x",
				 ep->id, when, i / ep->part_size, i % ep->part_size, ep->mem[i],
				 ep->model[i]);
}

static void
check_ranges(struct sim_ep *ep, const struct sim_range *r, uint32_t num, const char *what,
	     uint32_t index)
{
	for (uint32_t i = 0; i < num; i++) {
		const uint8_t *have = ep->mem + r[i].off, *want = ep->model + r[i].off;

		for (uint32_t j = 0; j < r[i].len; j++)
			if (have[j] != want[j])
				sim_fail(ep->s,
					 "ep %u: %s %u: element %u/%u byte %u/%u: %02x, not %02x",
					 ep->id, what, index, i, num, j, r[i].len, have[j],
					 want[j]);
	}
}

/* ---- send completions ---------- */

static uint8_t
wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case RING_WR_RDMA_WRITE:
	case RING_WR_RDMA_WRITE_WITH_IMM:
		return RING_WC_RDMA_WRITE;
	case RING_WR_RDMA_READ:
		return RING_WC_RDMA_READ;
	case RING_WR_ATOMIC_CMP_AND_SWP:
		return RING_WC_COMP_SWAP;
	case RING_WR_ATOMIC_FETCH_AND_ADD:
		return RING_WC_FETCH_ADD;
	case RING_WR_LOCAL_INV:
		return RING_WC_LOCAL_INV;
	case RING_WR_BIND_MW:
		return RING_WC_BIND_MW;
	case RING_WR_FAST_REG:
		return RING_WC_FAST_REG;
	case RING_WR_ATOMIC_WRITE:
		return RING_WC_ATOMIC_WRITE;
	case RING_WR_FLUSH:
		return RING_WC_FLUSH;
	default:
		return RING_WC_SEND;
	}
}

static bool
is_atomic(const struct sim_op *op)
{
	return op->opcode == RING_WR_ATOMIC_CMP_AND_SWP ||
	       op->opcode == RING_WR_ATOMIC_FETCH_AND_ADD;
}

/** The memory that a READ or atomic has filled. */
static void
check_result(struct sim_ep *ep, struct sim_op *op)
{
	if (op->unsure) {
		ranges_done(ep, op->range, op->num, true);
		return;
	}
	if (op->opcode == RING_WR_RDMA_READ)
		sim_range_scatter(ep, ep->model, op->range, op->num, op->expect, op->len);
	else if (is_atomic(op))
		sim_range_scatter(ep, ep->model, op->range, op->num,
				  (const uint8_t *)&op->original, 8);
	check_ranges(ep, op->range, op->num, "result of request", op->index);
	ranges_done(ep, op->range, op->num, false);
}

static void
op_succeeded(struct sim_ep *ep, struct sim_op *op)
{
	if (ep->sq_failed || sim_uc_flushes(ep))
		sim_fail(ep->s, "ep %u: request %u succeeded behind one that failed", ep->id,
			 op->index);
	if (op->bad)
		sim_fail(ep->s, "ep %u: request %u succeeded although it must not", ep->id,
			 op->index);
	if (op->has_target && !op->unsure && !sim_is_uc(ep->s))
		memset(ep->peer->taint + op->target, 0, op->len);
	if (op->inval) {
		op->inval->gone = true;
		op->inval->busy = false;
	}
	if (op->binds) {
		op->binds->key = op->rkey;
		op->binds->iova = op->new_iova;
		op->binds->alive = true;
		op->binds->busy = false;
		ep->list_busy &= op->binds->kind != KEY_FAST;
	}
	check_result(ep, op);
	ep->completed++;
	ep->s->ops_done++;
	ep->s->bytes_done += op->len;
}

/** Statuses that an endpoint in this trouble may see first. */
static uint32_t
allowed_statuses(const struct sim_ep *ep, const struct sim_op *op)
{
	uint32_t c = ep->causes, ok = op->bad;

	if (sim_is_uc(ep->s))
		return sim_uc_statuses(ep, op);
	if (c & (CAUSE_PEER | CAUSE_RETRY))
		ok |= 1u << WC_RETRY_EXC_ERR;
	if (c & CAUSE_RNR)
		ok |= 1u << WC_RNR_RETRY_EXC_ERR;
	if (c & (CAUSE_LOCAL | CAUSE_BAD_RECV | CAUSE_MEMORY | CAUSE_CQ))
		ok |= 1u << WC_WR_FLUSH_ERR;
	if (c & CAUSE_MUTATED)
		ok |= 1u << WC_REM_INV_REQ_ERR;
	if (c & CAUSE_MEMORY)
		ok |= 1u << WC_LOC_PROT_ERR | 1u << WC_REM_ACCESS_ERR | 1u << WC_REM_OP_ERR |
		      1u << WC_LOC_ACCESS_ERR;
	/* a READ that is asked for again, after its key has gone, is not answered (docs/wire.md) */
	if ((c & CAUSE_MEMORY) && op->opcode == RING_WR_RDMA_READ)
		ok |= 1u << WC_RETRY_EXC_ERR;
	return ok;
}

static void
op_failed(struct sim_ep *ep, struct sim_op *op, unsigned int status)
{
	if (ep->sq_failed || sim_uc_flushes(ep)) {
		if (status != WC_WR_FLUSH_ERR)
			sim_fail(ep->s, "ep %u: request %u ended with %s behind a failed one",
				 ep->id, op->index, wc_status_name(status));
	} else if (!(allowed_statuses(ep, op) & 1u << status)) {
		sim_fail(ep->s, "ep %u: request %u (opcode %u, length %u) ended with %s", ep->id,
			 op->index, op->opcode, op->len, wc_status_name(status));
	}
	ep->sq_failed = !sim_uc_flushes(ep);
	ep->failed++;
	ep->s->ops_failed++;
	ranges_done(ep, op->range, op->num, true);
	if (sim_is_uc(ep->s)) {
		sim_uc_failed(ep, status);
		return;
	}
	if (op->has_target)
		sim_taint(ep->peer, op->target, op->len);
	sim_life_break(ep, 0, wc_status_name(status));
}

static void
op_retire(struct sim_ep *ep, struct sim_op *op)
{
	free(op->expect);
	op->expect = NULL;
	ep->sq.head = op->index + op->slots;
	ep->op_head++;
}

static void
complete_send(struct sim_ep *ep, const struct ring_cqe *e)
{
	unsigned int status = e->qpn_status >> 24;
	struct sim_op *op;
	uint32_t len;

	for (;;) {
		if (ep->op_head == ep->op_tail)
			sim_fail(ep->s, "ep %u: send completion %u %s: nothing is out", ep->id,
				 e->wqe_index, wc_status_name(status));
		op = &ep->op[ep->op_head % SIM_OPS];
		if (op->index == e->wqe_index)
			break;
		if ((op->flags & RING_WR_SIGNALED) || ep->sig_all || ep->sq_failed)
			sim_fail(ep->s, "ep %u: completion of index %u before that of %u", ep->id,
				 e->wqe_index, op->index);
		op_succeeded(ep, op);
		op_retire(ep, op);
	}
	if (status != WC_SUCCESS) {
		op_failed(ep, op, status);
		op_retire(ep, op);
		return;
	}
	len = op->opcode == RING_WR_RDMA_READ || is_atomic(op) ? op->len : 0;
	if (!(op->flags & RING_WR_SIGNALED) && !ep->sig_all)
		sim_fail(ep->s, "ep %u: a completion of unsignalled request %u", ep->id, op->index);
	if (e->src_opcode >> 24 != wc_opcode(op->opcode) || e->byte_len != len)
		sim_fail(ep->s, "ep %u: completion of %u: opcode %u length %u, not %u and %u",
			 ep->id, op->index, e->src_opcode >> 24, e->byte_len,
			 wc_opcode(op->opcode), len);
	op_succeeded(ep, op);
	op_retire(ep, op);
}

/* ---- receive completions ---------- */

static bool
msg_is_write(const struct sim_msg *m)
{
	return m->opcode == RING_WR_RDMA_WRITE_WITH_IMM;
}

static void
check_recv_cqe(struct sim_ep *ep, const struct ring_cqe *e, const struct sim_msg *m)
{
	uint8_t opcode = msg_is_write(m) ? RING_WC_RECV_RDMA_WITH_IMM : RING_WC_RECV;
	uint32_t flags = RING_CQE_RECV, tag = atomic_load_explicit(&e->tag, memory_order_relaxed);
	uint32_t imm = 0;

	if (msg_is_write(m) || m->opcode == RING_WR_SEND_WITH_IMM)
		flags |= RING_CQE_WITH_IMM;
	if (m->opcode == RING_WR_SEND_WITH_INV)
		flags |= RING_CQE_WITH_INV;
	if (flags & (RING_CQE_WITH_IMM | RING_CQE_WITH_INV))
		imm = m->imm;
	if (m->flags & RING_WR_SOLICITED)
		flags |= RING_CQE_SOLICITED;
	if (e->src_opcode >> 24 != opcode || e->byte_len != m->len ||
	    (tag & ~(uint32_t)RING_CQE_PHASE) != flags ||
	    ((flags & (RING_CQE_WITH_IMM | RING_CQE_WITH_INV)) && e->imm != imm))
		sim_fail(ep->s,
			 "ep %u: receive %u: opcode %u len %u tag %x imm %08x, not %u %u %x %08x",
			 ep->id, e->wqe_index, e->src_opcode >> 24, e->byte_len, tag, e->imm,
			 opcode, m->len, flags, imm);
}

static void
recv_succeeded(struct sim_ep *ep, struct sim_recv *r, const struct ring_cqe *e)
{
	struct sim_ep *peer = ep->peer;
	const struct sim_msg *m;

	if (ep->rq_failed)
		sim_fail(ep->s, "ep %u: receive %u succeeded behind one that failed", ep->id,
			 r->index);
	if (sim_is_uc(ep->s)) {
		sim_uc_received(ep, r, e);
		return;
	}
	if (peer->msg_head == peer->msg_tail)
		sim_fail(ep->s, "ep %u: receive %u completed, but nothing was sent", ep->id,
			 r->index);
	m = &peer->msg[peer->msg_head % SIM_OPS];
	if (m->bad)
		sim_fail(ep->s, "ep %u: receive %u took a message that must fail", ep->id,
			 r->index);
	check_recv_cqe(ep, e, m);
	if (!msg_is_write(m)) {
		sim_pattern(m->seed, scratch, m->len);
		sim_range_scatter(ep, ep->model, r->range, r->num, scratch, m->len);
	}
	peer->msg_head++;
	ep->received++;
	check_ranges(ep, r->range, r->num, "receive", r->index);
	ranges_done(ep, r->range, r->num, false);
}

static void
recv_failed(struct sim_ep *ep, struct sim_recv *r, unsigned int status)
{
	uint32_t ok = 1u << WC_WR_FLUSH_ERR;

	if (!ep->rq_failed && ep->causes & (CAUSE_BAD_RECV | CAUSE_MEMORY))
		ok |= 1u << WC_REM_INV_REQ_ERR | 1u << WC_LOC_LEN_ERR | 1u << WC_LOC_PROT_ERR |
		      1u << WC_REM_ACCESS_ERR | 1u << WC_LOC_QP_OP_ERR | 1u << WC_REM_OP_ERR |
		      1u << WC_LOC_ACCESS_ERR;
	if (!(ok & 1u << status) || !ep->causes)
		sim_fail(ep->s, "ep %u: receive %u ended with %s", ep->id, r->index,
			 wc_status_name(status));
	/* only the one that a message had begun to fill may have changed */
	if (ep->rq_failed)
		check_ranges(ep, r->range, r->num, "flushed receive", r->index);
	ranges_done(ep, r->range, r->num, true);
	ep->rq_failed = true;
	sim_life_break(ep, 0, "a receive failed");
}

static void
complete_recv(struct sim_ep *ep, const struct ring_cqe *e)
{
	unsigned int status = e->qpn_status >> 24;
	struct sim_recv *r = &ep->recv[ep->recv_head % SIM_RECVS];

	if (ep->recv_head == ep->recv_tail || r->index != e->wqe_index)
		sim_fail(ep->s, "ep %u: receive completion of index %u, status %s, expected %u",
			 ep->id, e->wqe_index, wc_status_name(status),
			 ep->recv_head == ep->recv_tail ? 0xffffffff : r->index);
	if (status == WC_SUCCESS)
		recv_succeeded(ep, r, e);
	else
		recv_failed(ep, r, status);
	if (ep->srq)
		sim_srq_done(ep, r->index);
	else
		ep->rq.head = r->index + r->slots;
	ep->recv_head++;
}

void
sim_complete(struct sim_ep *ep, const struct ring_cqe *e)
{
	uint32_t tag = atomic_load_explicit(&e->tag, memory_order_relaxed);

	ep->s->progress_at = ep->s->now;
	sim_note(ep->s, "ep %u qp %06x: %s %u %s", ep->id, ep->qpn,
		 tag & RING_CQE_RECV ? "receive" : "send", e->wqe_index,
		 wc_status_name(e->qpn_status >> 24));
	if (tag & RING_CQE_RECV)
		complete_recv(ep, e);
	else
		complete_send(ep, e);
}

void
sim_flush_silent(struct sim_ep *ep)
{
	if (ep->qp == NULL || ep->qp->state != RING_QPS_ERR || ep->sq_failed ||
	    ep->qp->wqe_head || verbs_sq_has_work(ep->qp))
		return;
	sim_cq_poll(ep->send_cq->owner, true);
	while (ep->op_head != ep->op_tail) {
		struct sim_op *op = &ep->op[ep->op_head % SIM_OPS];

		if ((op->flags & RING_WR_SIGNALED) || ep->sig_all)
			sim_fail(ep->s, "ep %u: request %u was flushed without a completion",
				 ep->id, op->index);
		op_succeeded(ep, op);
		op_retire(ep, op);
	}
}

void
sim_forget_srq(struct sim_ep *ep)
{
	while (ep->recv_head != ep->recv_tail) {
		struct sim_recv *r = &ep->recv[(ep->recv_tail - 1) % SIM_RECVS];

		if (!sim_srq_take_back(ep, r))
			return;
		ranges_done(ep, r->range, r->num, true);
		ep->recv_tail--;
	}
}

void
sim_forget(struct sim_ep *ep)
{
	sim_cq_poll(ep->send_cq->owner, true);
	sim_cq_poll(ep->recv_cq->owner, true);
	ep->late_copier |= sim_copier_at_work(ep);
	for (; ep->op_head != ep->op_tail; ep->op_head++) {
		struct sim_op *op = &ep->op[ep->op_head % SIM_OPS];

		if (op->has_target && !sim_is_uc(ep->s))
			sim_taint(ep->peer, op->target, op->len);
		ranges_done(ep, op->range, op->num, true);
		free(op->expect);
		op->expect = NULL;
	}
	for (; !ep->srq && ep->recv_head != ep->recv_tail; ep->recv_head++) {
		struct sim_recv *r = &ep->recv[ep->recv_head % SIM_RECVS];

		ranges_done(ep, r->range, r->num, true);
	}
	if (ep->srq)
		sim_forget_srq(ep);
	ep->sq.head = ep->sq.tail;
	ep->rq.head = ep->rq.tail;
}

/* ---- the client of a CQ ---------- */

static bool
cq_take(struct sim_cq *c, struct sim *s, struct sim_node *n)
{
	const struct ring_cqe *e = ring_cq_peek(&c->cons);
	struct sim_ep *ep;

	if (e == NULL)
		return false;
	if (e->timestamp > s->now)
		sim_fail(s, "a completion of the future");
	ep = sim_ep_of_qpn(n, e->qpn_status & 0xffffff);
	if (ep == NULL)
		sim_fail(s, "node %u: a completion of unknown QP %06x", n->id,
			 e->qpn_status & 0xffffff);
	sim_complete(ep, e);
	ring_cq_advance(&c->cons);
	return true;
}

void
sim_cq_poll(struct sim_cq *c, bool force)
{
	struct sim_node *n = c->node;
	struct sim *s = n->s;
	bool any = false;

	if (!force && c->asleep && !c->notified)
		return;
	if (!force && s->prof->overrun && rng_below(&s->rng, 8)) {
		sim_node_wake(n, s->now + 200 * SIM_US); /* a client that is slow */
		return;
	}
	c->asleep = c->notified = false;
	for (;;) {
		while (cq_take(c, s, n))
			any = true;
		if (any)
			ring_cq_release(&c->cons);
		if (!c->sleepy)
			return;
		ring_cq_arm(&c->client, &c->daemon, RING_CQ_ARMED_NEXT);
		if (ring_cq_peek(&c->cons) == NULL)
			break;
	}
	c->asleep = true;
}
