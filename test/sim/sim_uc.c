/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must be on UC. Every request completes once and in order, with success unless it is its
 * own fault, and then the send queue alone stands still (SQE) until the application goes on. A
 * message arrives whole or not at all: in the order of sending and at most once, unless the
 * network changes that. Of memory that a WRITE names each byte is what it was, or what one of
 * the WRITEs to it carried; where nothing is lost it is what the last one carried.
 */
#include <string.h>

#include "sim.h"

/** Whether every packet arrives, in order, and is taken. */
static bool
network_is_whole(const struct sim *s)
{
	const struct sim_profile *p = s->prof;

	return !(p->loss || p->burst || p->reorder || p->dup || p->corrupt || p->blackout ||
		 p->mutate || p->squeeze || p->death || p->foreign || p->inval || p->life);
}

static bool
order_is_kept(const struct sim *s)
{
	return !s->prof->reorder && !s->prof->dup;
}

/* ---- requests ---------- */

void
sim_uc_write(struct sim_ep *ep, const struct sim_op *op)
{
	uint32_t off = op->target;

	if (ep->num_writes == SIM_WRITES)
		sim_fail(ep->s, "ep %u: more WRITEs than the model remembers", ep->id);
	ep->write[ep->num_writes++] = (struct sim_write){op->seed, off, op->len};
	if (network_is_whole(ep->s) && op->opcode == RING_WR_RDMA_WRITE && !op->bad) {
		sim_pattern(op->seed, ep->peer->model + off, op->len);
		memset(ep->peer->taint + off, 0, op->len);
	} else {
		sim_taint(ep->peer, off, op->len); /* it may want a receive, or be lost */
	}
}

/** Posted in SQE, or before what was: the next to complete must be flushed. */
bool
sim_uc_flushes(const struct sim_ep *ep)
{
	return (int32_t)(ep->flush_upto - ep->op_head) > 0;
}

uint32_t
sim_uc_statuses(const struct sim_ep *ep, const struct sim_op *op)
{
	uint32_t ok = op->bad;

	if (ep->causes & (CAUSE_LOCAL | CAUSE_CQ | CAUSE_MEMORY))
		ok |= 1u << WC_WR_FLUSH_ERR;
	if (ep->causes & CAUSE_MEMORY)
		ok |= 1u << WC_LOC_PROT_ERR;
	return ok;
}

/** A request failed: a fault of its own stops the send queue, and no more. */
void
sim_uc_failed(struct sim_ep *ep, unsigned int status)
{
	if (status == WC_WR_FLUSH_ERR) {
		if (!ep->in_sqe && !sim_uc_flushes(ep))
			sim_life_break(ep, 0, "flushed");
		return;
	}
	if (ep->qp->state != RING_QPS_SQE && ep->qp->state != RING_QPS_ERR &&
	    ep->qp->state != RING_QPS_RESET)
		sim_fail(ep->s, "ep %u: a request failed with %s, and the QP is in %s", ep->id,
			 wc_status_name(status), verbs_qp_state_name(ep->qp->state));
	ep->in_sqe = true;
	ep->in_sqd = false;
	ep->sqe_until = ep->s->now + rng_below(&ep->rng, 300) * SIM_US;
	sim_node_wake(ep->node, ep->sqe_until);
}

/** Out of SQE, with or without requests that are to be flushed yet. */
uint64_t
sim_uc_resume(struct sim_ep *ep)
{
	if (!ep->in_sqe || ep->qp == NULL || ep->qp->state != RING_QPS_SQE)
		return SIM_NEVER;
	if (ep->sqe_until > ep->s->now)
		return ep->sqe_until;
	ep->in_sqe = ep->sq_failed = false;
	ep->flush_upto = ep->op_tail;
	sim_ep_modify(ep, RING_QPS_RTS);
	return SIM_NEVER;
}

/* ---- messages ---------- */

/** Whether the receive has what the message carries. */
static bool
holds(const struct sim_ep *ep, const struct sim_recv *r, const struct sim_msg *m)
{
	uint8_t *have = sim_scratch();
	static uint8_t want[SIM_MAX_LEN];

	if (m->opcode == RING_WR_RDMA_WRITE_WITH_IMM)
		return true;
	if (m->len > r->len)
		return false;
	sim_range_gather(ep, ep->mem, r->range, r->num, have);
	sim_pattern(m->seed, want, m->len);
	return memcmp(have, want, m->len) == 0;
}

static bool
tells(const struct ring_cqe *e, const struct sim_msg *m)
{
	uint32_t tag = atomic_load_explicit(&e->tag, memory_order_relaxed);
	bool write = m->opcode == RING_WR_RDMA_WRITE_WITH_IMM;
	uint32_t flags = RING_CQE_RECV;

	if (write || m->opcode == RING_WR_SEND_WITH_IMM)
		flags |= RING_CQE_WITH_IMM;
	if (m->flags & RING_WR_SOLICITED)
		flags |= RING_CQE_SOLICITED;
	return e->src_opcode >> 24 == (write ? RING_WC_RECV_RDMA_WITH_IMM : RING_WC_RECV) &&
	       e->byte_len == m->len && (tag & ~(uint32_t)RING_CQE_PHASE) == flags &&
	       (!(flags & RING_CQE_WITH_IMM) || e->imm == m->imm);
}

/** The oldest message that it can be; those before it are lost, if order is kept. */
static struct sim_msg *
find(struct sim_ep *from, const struct sim_ep *ep, const struct sim_recv *r,
     const struct ring_cqe *e)
{
	for (uint32_t i = from->msg_head; i != from->msg_tail; i++) {
		struct sim_msg *m = &from->msg[i % SIM_OPS];

		if (m->bad || (m->told && !ep->s->prof->dup) || !tells(e, m) || !holds(ep, r, m))
			continue;
		if (order_is_kept(ep->s))
			from->msg_head = i + 1;
		return m;
	}
	return NULL;
}

void
sim_uc_received(struct sim_ep *ep, struct sim_recv *r, const struct ring_cqe *e)
{
	struct sim_msg *m = find(ep->peer, ep, r, e);

	if (m == NULL)
		sim_fail(ep->s, "ep %u: receive %u of %u bytes is none of the messages sent",
			 ep->id, r->index, e->byte_len);
	m->told = true;
	ep->received++;
	/* behind the message there may be some of a longer one that was dropped */
	for (uint32_t i = 0; i < r->num; i++) {
		sim_adopt(ep, r->range[i].off, r->range[i].len);
		sim_free(ep, &r->range[i]);
	}
}

/* ---- the end ---------- */

static bool
sent_all(const struct sim_ep *ep)
{
	return ep->ops_left == 0 && ep->op_head == ep->op_tail && !ep->in_sqe && !ep->in_sqd;
}

static bool
quiet(const struct sim_ep *ep)
{
	struct roce_qp_info info;

	roce_qp_get_info(ep->qp, &info);
	return info.rx_held == 0 && !sim_copier_at_work(ep) && ep->node->rx_head == NULL &&
	       !ep->node->dead;
}

/** Whether both have sent all, and it has arrived or never will; *at: when to look again. */
bool
sim_uc_ended(struct sim_ep *e, uint64_t *at)
{
	struct sim *s = e->s;

	if (!sent_all(e) || !sent_all(e->peer)) {
		e->rest_at = 0;
		return false;
	}
	/* what stands in a batch is done, and not on the wire */
	if (e->rest_at == 0 || e->node->tx.n || e->peer->node->tx.n)
		e->rest_at = s->now + sim_wire_lifetime(s);
	s->progress_at = s->now;
	*at = e->rest_at > s->now ? e->rest_at : s->now + 20 * SIM_US;
	return e->rest_at <= s->now && quiet(e) && quiet(e->peer);
}

static uint64_t
dropped(const struct sim_ep *ep)
{
	const uint64_t *c = roce_counters(ep->node->roce);

	return c[ROCE_C_UC_DROPPED] + ep->node->rx_no_mbuf;
}

/** What was sent has arrived, where nothing is a reason that it did not. */
void
sim_uc_check_end(struct sim_ep *ep)
{
	struct sim *s = ep->s;

	sim_cq_poll(ep->recv_cq->owner, true);
	if (ep->recv_head != ep->recv_tail) { /* a message that was dropped may have begun in it */
		const struct sim_recv *r = &ep->recv[ep->recv_head % SIM_RECVS];

		for (uint32_t i = 0; i < r->num; i++)
			sim_adopt(ep, r->range[i].off, r->range[i].len);
	}
	if (!network_is_whole(s))
		return;
	if (roce_counters(ep->node->roce)[ROCE_C_OUT_OF_SEQUENCE] && ep->node->rx_no_mbuf == 0)
		sim_fail(s, "ep %u: a packet is out of sequence, and the network is whole", ep->id);
	for (uint32_t i = ep->peer->msg_head; i != ep->peer->msg_tail; i++)
		if (!ep->peer->msg[i % SIM_OPS].bad && dropped(ep) == 0)
			sim_fail(s, "ep %u: a message of ep %u is lost, and nothing lost it",
				 ep->id, ep->peer->id);
}

/** Each byte that the model is not sure of is as it was, or as a WRITE had it. */
static void
allow(const struct sim_ep *ep, uint8_t *ok)
{
	const struct sim_ep *peer = ep->peer;

	for (uint32_t i = 0; i < peer->num_writes; i++) {
		const struct sim_write *w = &peer->write[i];

		sim_pattern(w->seed, sim_scratch(), w->len);
		for (uint32_t j = 0; j < w->len; j++)
			ok[w->off + j] |= ep->mem[w->off + j] == sim_scratch()[j];
	}
}

void
sim_uc_check_memory(struct sim_ep *ep, const char *when)
{
	static uint8_t ok[PARTS * 4 * SIM_MAX_LEN];

	if (memcmp(ep->mem, ep->model, ep->mem_size) == 0)
		return;
	memset(ok, 0, ep->mem_size);
	allow(ep, ok);
	for (uint32_t i = 0; i < ep->mem_size; i++)
		if (ep->mem[i] != ep->model[i] && !(ep->taint[i] && ok[i]))
			sim_fail(ep->s,
				 "ep %u: memory differs %s: part %u offset %u is %02x, not %02x%s",
				 ep->id, when, i / ep->part_size, i % ep->part_size, ep->mem[i],
				 ep->model[i], ep->taint[i] ? " or of a WRITE" : "");
}

void
sim_uc_reset(struct sim_ep *ep)
{
	ep->num_writes = 0;
	ep->flush_upto = ep->op_head;
	ep->in_sqe = false;
	ep->rest_at = 0;
}
