/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections from their making to their end, as applications and the control thread do it:
 * drained and resumed, failed by one end or by what it posted, flushed, reset under traffic,
 * made anew on the same QP or another, destroyed. Nodes that stop for a while.
 */
#include "verbs.h"

#include "sim.h"

static struct sim_ep *
even_of(struct sim_ep *ep)
{
	return (ep->id & 1) ? ep->peer : ep;
}

static unsigned int
state_of(const struct sim_ep *ep)
{
	return ep->qp ? ep->qp->state : RING_QPS_ERR;
}

void
sim_life_break(struct sim_ep *ep, uint32_t cause, const char *why)
{
	struct sim_ep *even = even_of(ep);

	ep->causes |= cause;
	if (ep->causes == 0)
		sim_fail(ep->s, "ep %u fails for no reason: %s", ep->id, why);
	ep->peer->causes |= CAUSE_PEER;
	if (even->phase != PHASE_UP)
		return;
	sim_note(ep->s, "ep %u: connection broken: %s", ep->id, why);
	even->phase = PHASE_BROKEN;
	even->phase_at = ep->s->now + rng_below(&ep->rng, 3000) * SIM_US;
}

static bool
flushed(struct sim_ep *ep)
{
	if (ep->op_head != ep->op_tail)
		return false;
	if (ep->srq && state_of(ep) == RING_QPS_ERR && sim_srq_flushed(ep))
		sim_forget_srq(ep); /* posted for others: not flushed */
	return ep->recv_head == ep->recv_tail ||
	       (ep->srq && state_of(ep) == RING_QPS_RESET); /* one that a copier writes to */
}

static bool
sent_all(const struct sim_ep *ep)
{
	return ep->ops_left == 0 && ep->op_head == ep->op_tail && ep->msg_head == ep->msg_tail;
}

/** After a RESET the memory is the application's when the copiers are done. */
bool
sim_copier_at_work(const struct sim_ep *ep)
{
	for (const struct sim_io *e = ep->node->ios; e; e = e->next)
		if (e->io->lane == ep)
			return true;
	return false;
}

/* ---- disturbances ---------- */

static void
disturb_drain(struct sim_ep *ep)
{
	if (ep->in_sqd || state_of(ep) != RING_QPS_RTS)
		return;
	ep->in_sqd = true;
	ep->drained = false;
	ep->sqd_until = ep->s->now + rng_below(&ep->rng, 500) * SIM_US;
	sim_ep_modify(ep, RING_QPS_SQD);
}

/** A node stops for a while. */
static void
disturb_node(struct sim_ep *ep)
{
	struct sim_node *n = ep->node;

	n->dead = true;
	n->dead_until = ep->s->now + rng_below(&ep->rng, 2000000) * SIM_US;
	sim_note(ep->s, "node %u stops", n->id);
	for (uint32_t i = 0; i < ep->s->num_eps; i++)
		if (ep->s->ep[i]->node == n || ep->s->ep[i]->peer->node == n)
			ep->s->ep[i]->causes |= CAUSE_PEER | CAUSE_RETRY;
}

static void
disturb(struct sim_ep *even)
{
	struct sim_ep *ep = rng_below(&even->rng, 2) ? even : even->peer;

	if (ep->node->dead)
		return;
	switch (rng_below(&even->rng, even->s->prof->death ? 5 : 4)) {
	case 0:
	case 1:
		disturb_drain(ep);
		break;
	case 2:
		sim_life_break(ep, CAUSE_LOCAL, "modified to ERR");
		sim_ep_modify(ep, RING_QPS_ERR);
		break;
	case 3:
		sim_life_break(ep, CAUSE_LOCAL, "modified to RESET");
		sim_ep_modify(ep, RING_QPS_RESET);
		sim_forget(ep);
		break;
	default:
		disturb_node(ep);
	}
}

static void
run_sqd(struct sim_ep *ep)
{
	if (!ep->in_sqd || !ep->drained || ep->sqd_until > ep->s->now ||
	    state_of(ep) != RING_QPS_SQD)
		return;
	ep->in_sqd = false;
	sim_ep_modify(ep, RING_QPS_RTS);
}

/* ---- phases ---------- */

/** Whether all is sent and told of; *at: when to look again, if somebody must. */
static bool
ended(struct sim_ep *e, uint64_t *at)
{
	if (sim_is_uc(e->s))
		return sim_uc_ended(e, at);
	return sent_all(e) && sent_all(e->peer) && !e->in_sqd && !e->peer->in_sqd;
}

static uint64_t
run_up(struct sim_ep *e)
{
	struct sim *s = e->s;
	uint64_t at = SIM_NEVER, resume = sim_uc_resume(e), other = sim_uc_resume(e->peer);

	run_sqd(e);
	run_sqd(e->peer);
	if (ended(e, &at)) {
		if (sim_is_uc(s)) {
			sim_uc_check_end(e);
			sim_uc_check_end(e->peer);
		}
		sim_check_memory(e, "at the end");
		sim_check_memory(e->peer, "at the end");
		e->reconnects = 0;
		sim_life_break(e, CAUSE_LOCAL, "done");
		sim_life_break(e->peer, CAUSE_LOCAL, "done");
		return e->phase_at;
	}
	if (s->prof->life && e->disturb_at <= s->now) {
		if (e->disturb_at && sim_chance(&e->rng, s->prof->life * 10))
			disturb(e);
		e->disturb_at = s->now + rng_below(&e->rng, 400) * SIM_US;
	}
	if (s->prof->inval) {
		sim_keys_disturb(e);
		sim_keys_disturb(e->peer);
	}
	if (e->phase != PHASE_UP)
		return e->phase_at;
	if (resume < at)
		at = resume;
	if (other < at)
		at = other;
	return s->prof->life && e->disturb_at < at ? e->disturb_at : at;
}

/** Whether it goes straight to RESET, with requests under way. */
static bool
impatient(struct sim_ep *ep)
{
	return ep->causes & CAUSE_CQ || (ep->s->prof->life && rng_below(&ep->rng, 3) == 0);
}

static uint64_t
run_broken(struct sim_ep *e)
{
	if (e->phase_at > e->s->now)
		return e->phase_at;
	if (e->node->dead || e->peer->node->dead)
		return e->phase_at = e->s->now + SIM_MS;
	for (struct sim_ep *ep = e;; ep = e->peer) {
		ep->in_sqd = ep->in_sqe = false;
		ep->causes |= CAUSE_LOCAL;
		if (state_of(ep) != RING_QPS_RESET && impatient(ep)) {
			sim_ep_modify(ep, RING_QPS_RESET);
			sim_forget(ep);
		} else if (state_of(ep) != RING_QPS_RESET && state_of(ep) != RING_QPS_ERR) {
			sim_ep_modify(ep, RING_QPS_ERR);
		}
		if (ep == e->peer)
			break;
	}
	e->phase = PHASE_FLUSH;
	return e->s->now;
}

static uint64_t
run_flush(struct sim_ep *e)
{
	struct sim *s = e->s;

	sim_flush_silent(e);
	sim_flush_silent(e->peer);
	if (!flushed(e) || !flushed(e->peer)) /* completions call again, but an SRQ's event not */
		return e->srq || e->peer->srq ? s->now + 20 * SIM_US : SIM_NEVER;
	/* whatever its PSN, a First in a batch would begin a message of the next connection */
	if (sim_is_uc(s) && (e->node->tx.n || e->peer->node->tx.n))
		return s->now + 20 * SIM_US;
	for (struct sim_ep *ep = e;; ep = e->peer) {
		if (state_of(ep) != RING_QPS_RESET)
			sim_ep_modify(ep, RING_QPS_RESET);
		if (ep == e->peer)
			break;
	}
	e->phase = PHASE_QUIET;
	return e->phase_at = s->now + sim_wire_lifetime(s);
}

static void
revive(struct sim_ep *ep)
{
	sim_adopt(ep, PART_TGT * ep->part_size, ep->part_size);
	sim_windows_drop(ep);
	sim_uc_reset(ep);
	ep->msg_head = ep->msg_tail;
	ep->recv_at = SIM_NEVER;
	ep->post_at = ep->s->now;
	if (!ep->same_qpn)
		sim_ep_qp_create(ep);
}

static uint64_t
run_quiet(struct sim_ep *e)
{
	struct sim *s = e->s;
	bool again = e->reconnects > 0 && !((e->causes | e->peer->causes) & CAUSE_CQ);

	if (e->phase_at > s->now)
		return e->phase_at;
	for (struct sim_ep *ep = e;; ep = e->peer) {
		if (ep->node->dead || (ep->qp && !roce_qp_idle(ep->qp)) || sim_copier_at_work(ep))
			return e->phase_at = s->now + 20 * SIM_US;
		if (ep == e->peer)
			break;
	}
	for (struct sim_ep *ep = e;; ep = e->peer) {
		if (ep->recv_head != ep->recv_tail)
			sim_cq_poll(ep->recv_cq->owner, true);
		if (ep->recv_head != ep->recv_tail)
			sim_fail(s, "ep %u: a receive of its SRQ has not come back", ep->id);
		if (ep == e->peer)
			break;
	}
	s->progress_at = s->now;
	for (struct sim_ep *ep = e;; ep = e->peer) {
		if (ep->late_copier) { /* the memory is the application's only now */
			sim_adopt(ep, 0, ep->mem_size);
			ep->late_copier = false;
		}
		sim_check_memory(ep, "after the connection");
		if (!again || !ep->same_qpn)
			sim_ep_qp_destroy(ep);
		if (ep == e->peer)
			break;
	}
	if (!again) {
		e->phase = PHASE_DONE;
		return SIM_NEVER;
	}
	e->reconnects--;
	revive(e);
	revive(e->peer);
	sim_ep_connect(e);
	sim_ep_connect(e->peer);
	e->phase = PHASE_UP;
	sim_node_wake(e->node, s->now);
	sim_node_wake(e->peer->node, s->now);
	return s->now;
}

uint64_t
sim_life_run(struct sim *s, struct sim_ep *e)
{
	(void)s;
	switch (e->phase) {
	case PHASE_UP:
		return run_up(e);
	case PHASE_BROKEN:
		return run_broken(e);
	case PHASE_FLUSH:
		return run_flush(e);
	case PHASE_QUIET:
		return run_quiet(e);
	case PHASE_DONE:
		break;
	}
	return SIM_NEVER;
}

bool
sim_life_done(const struct sim *s)
{
	for (uint32_t i = 0; i < s->num_eps; i += 2)
		if (s->ep[i]->phase != PHASE_DONE)
			return false;
	return true;
}
