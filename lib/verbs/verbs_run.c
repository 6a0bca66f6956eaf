/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The run list: QPs that have something to do, served by deficit round robin (Shreedhar and
 * Varghese, 1995). Being on it and ring_qp_daemon.active are one and the same; the way off it
 * is one side of the doorbell protocol that ring_bell.h describes and test/model proves.
 * A QP that could run but for its share of a pool is in a list of that share's instead.
 */
#include <rte_prefetch.h>

#include "base_bug.h"
#include "ring_bell.h"

#include "verbs_priv.h"

/* What one look at those that wait may cost. */
#define STARVED_SHARES 32u
#define STARVED_QPS 8u

static inline void
run_append(struct verbs_worker *w, struct verbs_qp *qp)
{
	qp->run_next = NULL;
	qp->run_prev = w->run_tail;
	if (w->run_head == NULL)
		w->run_head = qp;
	else
		w->run_tail->run_next = qp;
	w->run_tail = qp;
}

static inline void
run_pop(struct verbs_worker *w)
{
	w->run_head = w->run_head->run_next;
	if (w->run_head == NULL)
		w->run_tail = NULL;
}

/* ---- QPs that wait for their share of a pool ---------- */

static void
starve_link(struct verbs_worker *w, struct verbs_qp *qp)
{
	struct verbs_share *s = qp->share;

	qp->flags |= VERBS_QP_STARVED;
	s->wants |= qp->flags & VERBS_QP_WANTS_ANY;
	qp->run_next = NULL;
	qp->run_prev = s->wait_tail;
	if (s->wait_head == NULL) {
		s->wait_head = qp;
		TAILQ_INSERT_TAIL(&w->starved, s, link);
		w->num_starved++;
	} else {
		s->wait_tail->run_next = qp;
	}
	s->wait_tail = qp;
}

static void
starve_unlink(struct verbs_worker *w, struct verbs_qp *qp)
{
	struct verbs_share *s = qp->share;

	if (qp == s->wait_head)
		s->wait_head = qp->run_next;
	else
		qp->run_prev->run_next = qp->run_next;
	if (qp == s->wait_tail)
		s->wait_tail = s->wait_head ? qp->run_prev : NULL;
	else
		qp->run_next->run_prev = qp->run_prev;
	qp->flags &= (uint8_t)~(VERBS_QP_STARVED | VERBS_QP_WANTS_ANY);
	if (s->wait_head == NULL) {
		s->wants = 0;
		TAILQ_REMOVE(&w->starved, s, link);
		w->num_starved--;
	}
}

/** While it runs it stays where it is: run_leave() puts it into the list. */
void
verbs_starve(struct verbs_worker *w, struct verbs_qp *qp, enum verbs_pool pool)
{
	counter_inc(&w->counter[pool == VERBS_POOL_IO ? VERBS_C_IO_EMPTY : VERBS_C_SHADOW_EMPTY]);
	counter_inc(&qp->share->refused[pool]);
	qp->flags |= (uint8_t)VERBS_QP_WANTS(pool);
	if (qp->flags & VERBS_QP_STARVED)
		qp->share->wants |= (uint8_t)VERBS_QP_WANTS(pool);
	else if (!qp->on_run_list)
		starve_link(w, qp);
}

/** VERBS_QP_WANTS() of the pools that would give the share another one. */
static uint8_t
starve_may(const struct verbs_worker *w, const struct verbs_share *s)
{
	const uint32_t used[] = {w->shadows_used, w->blocks_used, w->ios_used};
	const uint32_t total[] = {w->shadows, w->blocks, w->ios};
	uint8_t may = 0;

	for (unsigned int p = 0; p < VERBS_POOLS; p++)
		if (verbs_share_may(s->used[p], used[p], total[p]))
			may |= (uint8_t)VERBS_QP_WANTS(p);
	return may & s->wants;
}

/** The share's next few; those for whom there is nothing go to its end. */
static void
starve_serve(struct verbs_worker *w, struct verbs_share *s)
{
	uint8_t may = starve_may(w, s);

	for (unsigned int i = 0; may != 0 && i < STARVED_QPS && s->wait_head; i++) {
		struct verbs_qp *qp = s->wait_head;
		uint8_t wants = qp->flags & VERBS_QP_WANTS_ANY;

		if (wants & may) {
			verbs_run_add(w, qp);
		} else {
			starve_unlink(w, qp);
			qp->flags |= wants;
			starve_link(w, qp);
		}
	}
}

void
verbs_starved_wake(struct verbs_worker *w)
{
	uint32_t n = w->num_starved < STARVED_SHARES ? w->num_starved : STARVED_SHARES;

	while (n-- > 0 && w->num_starved != 0) {
		struct verbs_share *s = TAILQ_FIRST(&w->starved);

		TAILQ_REMOVE(&w->starved, s, link);
		TAILQ_INSERT_TAIL(&w->starved, s, link);
		starve_serve(w, s);
	}
}

/* ---- the run list ---------- */

void
verbs_run_add(struct verbs_worker *w, struct verbs_qp *qp)
{
	if (qp->on_run_list)
		return;
	if (unlikely(qp->flags & VERBS_QP_STARVED))
		starve_unlink(w, qp);
	ring_bell_enter(qp->daemon);
	qp->on_run_list = true;
	w->run_count++;
	run_append(w, qp);
}

/** The last QP of the round goes: its predecessor is the last now, unless that ran already. */
static void
run_unlink(struct verbs_worker *w, struct verbs_qp *qp)
{
	struct verbs_qp *prev = qp == w->run_head ? NULL : qp->run_prev;

	if (w->run_last == qp)
		w->run_last = prev;
	if (prev)
		prev->run_next = qp->run_next;
	else
		w->run_head = qp->run_next;
	if (qp->run_next)
		qp->run_next->run_prev = prev;
	else
		w->run_tail = prev;
	if (prev == NULL)
		w->run_resume = false;
}

void
verbs_run_remove(struct verbs_worker *w, struct verbs_qp *qp)
{
	if (qp->flags & VERBS_QP_STARVED)
		starve_unlink(w, qp);
	if (!qp->on_run_list)
		return;
	qp->flags &= (uint8_t)~VERBS_QP_WANTS_ANY;
	run_unlink(w, qp);
	qp->on_run_list = false;
	qp->deficit = 0;
	w->run_count--;
	atomic_store_explicit(&qp->daemon->active, 0, memory_order_seq_cst);
}

/**
 * Store active = 0 and look once more. Whoever posts from the store on rings; whoever posted
 * before is seen here. Receives count only where they are to be flushed.
 */
static bool
run_off(struct verbs_qp *qp)
{
	const struct ring_wq_cons *sq = qp->sq.slots ? &qp->sq : NULL;
	const struct ring_wq_cons *rq = NULL;

	if (qp->state == RING_QPS_ERR && qp->srq == NULL && qp->rq.slots)
		rq = &qp->rq;
	if ((sq == NULL && rq == NULL) || base_bug(BUG_BELL_RACE)) {
		atomic_store_explicit(&qp->daemon->active, 0, memory_order_seq_cst);
		return true;
	}
	return ring_bell_leave(qp->daemon, sq ? sq : rq, sq ? rq : NULL);
}

/** The QP at the head has no more to do: nothing is left, or an event must come first. */
static void
run_leave(struct verbs_worker *w, struct verbs_qp *qp, bool idle)
{
	run_pop(w);
	if (!idle) {
		atomic_store_explicit(&qp->daemon->active, 0, memory_order_seq_cst);
	} else if (!run_off(qp)) {
		run_append(w, qp);
		return;
	}
	qp->on_run_list = false;
	w->run_count--;
	/* A debt is kept by one that waits, or waiting would pay. */
	if (idle || qp->deficit > 0)
		qp->deficit = 0;
	if (unlikely(qp->flags & VERBS_QP_WANTS_ANY))
		starve_link(w, qp);
}

/** Serve the head. @return false: the round ends here. */
static inline bool
run_one(struct verbs_worker *w, uint32_t quantum,
	enum verbs_run (*step)(void *arg, struct verbs_qp *qp), void *arg, unsigned int *did)
{
	struct verbs_qp *qp = w->run_head;
	enum verbs_run result;
	int64_t share;
	int32_t before;

	if (!w->run_resume) {
		share = (int64_t)qp->deficit + quantum;
		qp->deficit = share < INT32_MAX / 2 ? (int32_t)share : INT32_MAX / 2;
	}
	w->run_resume = false;
	before = qp->deficit;
	if (unlikely(qp->flags & VERBS_QP_WANTS_ANY))
		qp->flags &= (uint8_t)~VERBS_QP_WANTS_ANY; /* it sees for itself */
	result = step(arg, qp);
	if (unlikely(w->run_head != qp)) { /* it took itself off */
		(*did)++;
		return true;
	}
	*did += result == VERBS_RUN_MORE || result == VERBS_RUN_FULL || qp->deficit != before;
	switch (result) {
	case VERBS_RUN_FULL:
		w->run_resume = true;
		return false;
	case VERBS_RUN_MORE:
		run_pop(w);
		run_append(w, qp);
		break;
	case VERBS_RUN_IDLE:
	case VERBS_RUN_WAIT:
		run_leave(w, qp, result == VERBS_RUN_IDLE);
		break;
	}
	return true;
}

unsigned int
verbs_run_round(struct verbs_worker *w, uint32_t quantum,
		enum verbs_run (*step)(void *arg, struct verbs_qp *qp), void *arg)
{
	unsigned int did = 0;
	bool more = true;

	w->run_last = w->run_tail;
	while (more && w->run_last != NULL) {
		struct verbs_qp *qp = w->run_head;

		if (qp->run_next)
			rte_prefetch0(qp->run_next);
		more = run_one(w, quantum, step, arg, &did);
		if (qp == w->run_last) /* or the step made it the last */
			break;
	}
	w->run_last = NULL;
	return did;
}
