/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine of one worker: made and freed, a QP's turn on the run list, the end of a burst,
 * and what comes back from outside: foreign accesses and neighbours' addresses.
 */
#include <stdlib.h>

#include <rte_mbuf_dyn.h>

#include "roce_ud_priv.h"

static const struct {
	const char *name, *help;
} counter_text[ROCE_C_COUNT] = {
#define X(id, name, help) [ROCE_C_##id] = {name, help},
	ROCE_COUNTERS(X)
#undef X
};

const char *
roce_counter_name(enum roce_counter c)
{
	return c < ROCE_C_COUNT ? counter_text[c].name : "?";
}

const char *
roce_counter_help(enum roce_counter c)
{
	return c < ROCE_C_COUNT ? counter_text[c].help : "?";
}

/** The bit of it is the process's; 0 where there is none left: groups end at a worker then. */
static uint64_t
roce_checked_flag(void)
{
	static const struct rte_mbuf_dynflag flag = {.name = "rnic_roce_checked"};
	int bit = rte_mbuf_dynflag_register(&flag);

	return bit >= 0 ? UINT64_C(1) << bit : 0;
}

struct roce *
roce_create(const struct roce_config *cfg, uint64_t now)
{
	struct roce *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->cfg = *cfg;
	if (cfg->max_reap == 0)
		r->cfg.max_reap = ROCE_REAP;
	r->w = cfg->verbs;
	r->tx_data_off = sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(cfg->tx_pool) +
			 RTE_PKTMBUF_HEADROOM;
	r->now = now;
	r->checked = roce_checked_flag();
	r->cc = roce_cc_create(cfg->num_ports, cfg->cc_blocks, now);
	if (r->cc == NULL) {
		free(r);
		return NULL;
	}
	wheel_init(&r->wheel, now);
	rng_seed(&r->rng, cfg->seed);
	return r;
}

void
roce_destroy(struct roce *r)
{
	if (r == NULL)
		return;
	roce_ud_wait_drop(r);
	roce_tx_release(r);
	roce_cc_destroy(r->cc);
	free(r);
}

const uint64_t *
roce_counters(const struct roce *r)
{
	return &r->counter[0].value;
}

uint32_t
roce_rx_held(const struct roce *r)
{
	return r->rx_held;
}

/* ---- a QP's turn ---------- */

/** What waited for its payload goes out first. VERBS_RUN_IDLE: it has, or there is nothing. */
static enum verbs_run
run_parked(struct roce *r, struct roce_qp *qp)
{
	if (likely(qp->parked == NULL))
		return VERBS_RUN_IDLE;
	if (!qp->parked_ready)
		return VERBS_RUN_WAIT;
	if (qp->rnr_wait && !qp->parked_response) { /* sent again after the wait */
		rte_pktmbuf_free(qp->parked);
		qp->parked = NULL;
		return VERBS_RUN_IDLE;
	}
	return roce_tx_unpark(r, qp) ? VERBS_RUN_IDLE : VERBS_RUN_FULL;
}

void
roce_rwqe_flush(struct roce *r, struct roce_qp *qp)
{
	struct verbs_recv_done d = {.status = WC_WR_FLUSH_ERR};

	if (!qp->rwqe_used)
		return;
	roce_recv_complete(r, qp, &d);
}

/**
 * In ERR. A completion gives memory back to the application, so none is made while a copier
 * still writes for this QP: roce_io_done() goes on.
 */
static enum verbs_run
run_flush(struct roce *r, struct roce_qp *qp)
{
	if (qp->v.io[VERBS_RX])
		return VERBS_RUN_WAIT;
	roce_rwqe_flush(r, qp);
	if (qp->last_wqe) { /* once, behind the last receive (B084) */
		qp->last_wqe = false;
		r->w->host.event(r->w->host.ctx, VERBS_EVENT_QP_LAST_WQE_REACHED, &qp->v);
	}
	return verbs_qp_flush(r->w, &qp->v, ROCE_FLUSH_CQES) ? VERBS_RUN_IDLE : VERBS_RUN_MORE;
}

/**
 * In SQE all that is posted is flushed, receives are not; back in RTS what was posted before.
 * VERBS_RUN_IDLE: there is no more of it now.
 */
static enum verbs_run
run_sq_flush(struct roce *r, struct roce_qp *qp)
{
	bool sqe = qp->v.state == RING_QPS_SQE || base_bug(BUG_UC_SQE);
	bool done = verbs_sq_flush(r->w, &qp->v, ROCE_FLUSH_CQES,
				   sqe ? NULL : &qp->cold->flush_to);

	roce_qp_check_cqs(r, qp);
	if (!done || qp->v.state == RING_QPS_ERR)
		return VERBS_RUN_MORE;
	qp->sq_flush = sqe;
	return VERBS_RUN_IDLE;
}

static bool
run_reachable(struct roce *r, struct roce_qp *qp)
{
	if (roce_qp_reachable(r, qp))
		return true;
	/* No time-out ends a request of UC: what is for nobody is sent to nobody. */
	if (roce_is_uc(qp) && net_neigh_l2_state(r->l2) == NET_NEIGH_FAILED) {
		roce_neigh_unlink(r, qp);
		return true;
	}
	qp->stalled = false; /* roce_neigh_resolved() or the timer puts it back */
	return false;
}

/** Neither to send nor to say; a wait for the neighbour ends even so. */
static bool
run_nothing(struct roce_qp *qp)
{
	return qp->res_pending == 0 && qp->say == ROCE_SAY_NOTHING && !qp->neigh_wait &&
	       !qp->parked && !qp->resend && qp->req_wqe == NULL && !verbs_sq_has_work(&qp->v) &&
	       qp->v.wqe_head == NULL;
}

/**
 * A turn of requests between many responses: a peer that asks for READs without a pause would
 * keep a full port for them, and requests of ours run out of retries that were never sent.
 */
static enum verbs_run
run_between(struct roce *r, struct roce_qp *qp)
{
	int32_t before = qp->v.deficit;
	enum verbs_run res = roce_req_run(r, qp);

	if (res != VERBS_RUN_FULL || qp->v.deficit != before)
		qp->resp_burst = 0; /* else it is still their turn */
	return res == VERBS_RUN_FULL || roce_sq_dead(qp) ? res : VERBS_RUN_IDLE;
}

/** Responses, the acknowledgement, requests: but behind a parked one what must not overtake it. */
static enum verbs_run
run_send(struct roce *r, struct roce_qp *qp)
{
	enum verbs_run parked = run_parked(r, qp), res;

	if (unlikely(parked == VERBS_RUN_FULL || (qp->parked && qp->parked_response)))
		return parked;
	if (unlikely(qp->resp_burst >= ROCE_RESP_BURST && parked == VERBS_RUN_IDLE)) {
		res = run_between(r, qp);
		if (res != VERBS_RUN_IDLE)
			return res;
	}
	res = roce_resp_run(r, qp);
	if (res != VERBS_RUN_IDLE)
		return res;
	if (qp->say != ROCE_SAY_NOTHING)
		roce_ack_enqueue(r, qp);
	return likely(parked == VERBS_RUN_IDLE) ? roce_req_run(r, qp) : parked;
}

enum verbs_run
roce_run(struct roce *r, struct verbs_qp *v, uint64_t now)
{
	struct roce_qp *qp = (struct roce_qp *)v;
	enum verbs_run res;

	r->now = now;
	if (unlikely(v->state < RING_QPS_RTR))
		return VERBS_RUN_WAIT; /* a modify puts it back, whatever was posted */
	if (unlikely(qp->inv_wait))
		roce_resp_inv_poll(r, qp);
	if (unlikely(qp->rx_again) && roce_rx_resume(r, qp))
		return VERBS_RUN_MORE;
	if (unlikely(v->state == RING_QPS_ERR))
		return run_flush(r, qp);
	if (unlikely(qp->sq_flush)) {
		res = run_sq_flush(r, qp);
		if (res == VERBS_RUN_MORE || v->state == RING_QPS_SQE)
			return res;
	}
	if (unlikely(qp->v.type == VERBS_QPT_UD))
		return roce_ud_run(r, qp);
	if (run_nothing(qp))
		return VERBS_RUN_IDLE;
	if (!run_reachable(r, qp))
		return VERBS_RUN_WAIT;
	return run_send(r, qp);
}

/* ---- the burst's end ---------- */

/** @return false: no room, it stays on the list. */
static bool
flush_qp(struct roce *r, struct roce_qp *qp)
{
	if (qp->say == ROCE_SAY_NOTHING)
		return true;
	if ((qp->res_pending || (qp->parked && qp->parked_response)) &&
	    !base_bug(BUG_ACK_OVERTAKES)) {
		verbs_run_add(r->w, &qp->v); /* which comes back here when they have left */
		return true;
	}
	if (!roce_qp_reachable(r, qp))
		return true; /* and again from roce_run() */
	return roce_resp_speak(r, qp);
}

void
roce_flush(struct roce *r, uint64_t now)
{
	struct roce_qp *qp, *left = NULL;

	r->now = now;
	while ((qp = r->ack_list) != NULL) {
		r->ack_list = qp->ack_next;
		qp->on_ack_list = false;
		if (!flush_qp(r, qp)) {
			qp->ack_next = left;
			left = qp;
		}
	}
	while ((qp = left) != NULL) {
		left = qp->ack_next;
		roce_ack_enqueue(r, qp);
	}
	roce_tx_finish_late(r);
	/* Idle: buffers in hand would be missing elsewhere. */
	if (r->num_mbufs && r->tx_at_flush == counter_read(&r->counter[ROCE_C_TX_PACKETS]))
		roce_tx_release(r);
	r->tx_at_flush = counter_read(&r->counter[ROCE_C_TX_PACKETS]);
}

/* ---- from outside ---------- */

static void
io_done_tx(struct roce *r, struct roce_qp *qp, int status)
{
	struct verbs_wqe *wqe;
	bool response = qp->parked_response;

	if (qp->parked == NULL)
		return;
	verbs_run_add(r->w, &qp->v);
	if (status == 0) {
		qp->parked_ready = true;
		return;
	}
	rte_pktmbuf_free(qp->parked);
	qp->parked = NULL;
	if (response) {
		roce_resp_parked_failed(r, qp);
	} else if (qp->v.type == VERBS_QPT_UD) {
		roce_ud_parked_failed(r, qp);
	} else {
		wqe = roce_wqe_find(qp, qp->parked_psn);
		if (wqe)
			roce_req_fail(r, qp, wqe, WC_LOC_PROT_ERR);
	}
}

static void
io_done_rx(struct roce *r, struct roce_qp *qp, int status, uint64_t original)
{
	struct rte_mbuf *m = roce_unhold_placing(r, qp);
	struct roce_rx rx;

	if (m == NULL)
		return;
	if (qp->v.state == RING_QPS_ERR || qp->v.state == RING_QPS_RESET) {
		rte_pktmbuf_free(m);
		if (qp->v.state == RING_QPS_ERR)
			verbs_run_add(r->w, &qp->v);
		else
			roce_rwqe_flush(r, qp);
		return;
	}
	roce_rx_reparse(&rx, qp, m);
	if (roce_rx_placed(r, &rx, status, original) == ROCE_RX_FREE)
		rte_pktmbuf_free(m);
	roce_resp_drain(r, qp);
	roce_comp_drain(r, qp);
	if (qp->rx_again || roce_rx_resume(r, qp))
		verbs_run_add(r->w, &qp->v);
}

void
roce_io_done(struct roce *r, struct verbs_qp *v, unsigned int dir, int status, uint64_t original,
	     uint64_t now)
{
	struct roce_qp *qp = (struct roce_qp *)v;

	r->now = now;
	if (dir == VERBS_TX)
		io_done_tx(r, qp, status);
	else
		io_done_rx(r, qp, status, original);
}

void
roce_io_orphan(struct roce *r, void *user)
{
	(void)r;
	rte_pktmbuf_free(user);
}

void
roce_neigh_resolved(struct roce *r, struct net_neigh *n, uint64_t now)
{
	r->now = now;
	if (r->ud_wait.num != 0)
		roce_ud_wait_run(r);
	for (struct roce_qp *qp = r->neigh_list; qp != NULL; qp = qp->neigh_next)
		if (qp->path.neigh == n)
			verbs_run_add(r->w, &qp->v);
}
