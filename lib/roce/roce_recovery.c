/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss recovery of the sender. Nothing of it shows on the wire to a peer that knows none of it.
 *
 * A NAK names a hole p: all before it arrived, p did not, and of what follows nothing is known.
 * A receiver of ours keeps what follows; others drop it. So at first p alone is sent again, and
 * sending goes on where it was. If the cumulative acknowledgement then jumps past p, over
 * packets that were not sent again, the peer keeps packets: remembered (ROCE_KEEPS_YES). If it
 * stops right behind p although more had been sent, the peer dropped the rest, or the next one
 * is lost as well: go-back-N from there and for this QP (ROCE_KEEPS_NO), until an
 * acknowledgement passes what has been sent again, which shows that the peer keeps after all.
 *
 * With a peer that keeps, each NAK costs one packet. What is sent into a hole may be lost like
 * anything else, and the peer, having said its one NAK, stays silent: the PROBE timer sends it
 * again after about two round trips, doubling. Three holes in a row that lie side by side look
 * like a peer that ran out of room: go-back-N once.
 *
 * READ responses and atomic results are the same seen from the other side: a response behind a
 * hole is kept, and the missing part of that READ is asked for, once.
 *
 * While a hole is filled, another window may be sent each time that a hole shows: what was in
 * flight before has left the network. So a loss costs no pause, and the rate stays what it was.
 *
 * Nobody may be left to name a hole: the newest packets are lost, or the NAK is. When nothing has
 * come for a time in which it should have, una is sent again (the PROBE timer without a hole). An
 * ACK that stops right behind a probe says that the peer has nothing more: all is sent again.
 *
 * One packet in eight lost is congestion that nobody marks: then the window is halved, at a
 * time-out as well, and grows again with each round trip without a hole; and holes are filled one
 * after the other, with nothing sent behind them.
 *
 * A round of retries is counted once, however many NAKs name its hole (C-68). Probes use none.
 */
#include "roce_priv.h"

#define PROBE_MIN_NS UINT64_C(20000)
#define PROBE_DEFAULT_NS UINT64_C(1000000)
#define PROBE_MAX_SHIFT 6
/* Without a hole: not sooner, since a peer may have other work, and a wheel has its price. */
#define TAIL_MIN_NS UINT64_C(200000)
#define TAIL_FEW_NS UINT64_C(4000000) /* of few packets, or where a READ is to be asked for again */
#define TAIL_FEW 8u
#define TAIL_MAX_NS UINT64_C(50000000)
#define LATE_NS UINT64_C(100000) /* who looks that late has been away: what came is still unread */
#define HOLES_IN_A_ROW 3
#define LOSS_LOOK 64u /* PSNs */
#define LOSS_HEAVY 8u /* one in so many */
#define WINDOW_LEAST 8u /* packets */

/** @return false: the retries are used up, and the QP with them. */
static bool
recovery_take_retry(struct roce *r, struct roce_qp *qp)
{
	qp->charged = true;
	if (qp->retry_left == 0) {
		roce_count(r, ROCE_C_RETRY_EXCEEDED);
		roce_comp_fatal(r, qp, WC_RETRY_EXC_ERR);
		return false;
	}
	qp->retry_left--;
	return true;
}

/** A hole costs a retry once in a round, and a round ends with progress or a time-out. */
static bool
recovery_charge_hole(struct roce *r, struct roce_qp *qp)
{
	return qp->charged || recovery_take_retry(r, qp);
}

static void
recovery_narrow(struct roce_qp *qp)
{
	uint32_t least = WINDOW_LEAST << qp->mtu_shift, half = qp->max_inflight / 2;

	if (half >= least)
		roce_set_inflight(qp, half);
	qp->since_ackreq = qp->ack_every; /* the next one asks */
}

void
roce_recovery_widen(const struct roce *r, struct roce_qp *qp)
{
	uint32_t cap = roce_inflight_cap(r), more = cap / 32 + roce_mtu(qp);

	roce_set_inflight(qp, cap - qp->max_inflight > more ? qp->max_inflight + more : cap);
}

static void
recovery_count_hole(struct roce_qp *qp)
{
	struct roce_qp_cold *cold = qp->cold;
	uint32_t psns = psn_sub(qp->una, cold->loss_psn);

	cold->holes += cold->holes < UINT16_MAX;
	if (psns < LOSS_LOOK)
		return;
	if (cold->holes * LOSS_HEAVY > psns)
		recovery_narrow(qp);
	cold->holes = 0;
	cold->loss_psn = qp->una;
}

/** Few are lost: what helps then would make congestion worse. */
static bool
recovery_few_lost(const struct roce_qp *qp)
{
	return qp->cold->holes * LOSS_HEAVY <= LOSS_LOOK;
}

static uint64_t
probe_delay(const struct roce_qp *qp)
{
	uint64_t base = qp->srtt ? 2 * qp->srtt + PROBE_MIN_NS : PROBE_DEFAULT_NS;

	return base << (qp->probes < PROBE_MAX_SHIFT ? qp->probes : PROBE_MAX_SHIFT);
}

static void
recovery_set(struct roce_qp *qp, uint32_t psn, bool probed)
{
	qp->recovering = true;
	qp->nak_psn = psn;
	qp->cold->rec_end = qp->snd_max;
	qp->cold->rec_window = 0;
	qp->cold->asked_end = qp->una;
	qp->cold->probed = probed;
	qp->rtt_at = 0;
}

/** The peer or we keep what is behind the hole: another window may follow it. */
static void
recovery_go_on(struct roce_qp *qp)
{
	if (!recovery_few_lost(qp))
		return;
	qp->cold->rec_window = qp->inflight + psn_sub(qp->snd_max, qp->una) * ROCE_PKT_COST +
			       qp->max_inflight;
}

static void
recovery_begin(struct roce *r, struct roce_qp *qp, uint32_t psn)
{
	recovery_set(qp, psn, false);
	recovery_count_hole(qp);
	qp->probes = 0;
	roce_timer_set(r, qp, ROCE_T_PROBE, r->now + probe_delay(qp));
	roce_timer_progress(r, qp);
}

static void
recovery_end(struct roce_qp *qp)
{
	qp->recovering = false;
	qp->hole_steps = 0;
	qp->probes = 0;
	roce_timer_stop(qp, ROCE_T_PROBE);
}

void
roce_recovery_go_back(struct roce *r, struct roce_qp *qp, uint32_t psn)
{
	qp->resend = false;
	qp->cold->sel_psn = qp->cold->sel_end = psn; /* what was chosen before is no more */
	roce_req_set(qp, psn);
	verbs_run_add(r->w, &qp->v);
}

static void
recovery_send_alone(struct roce *r, struct roce_qp *qp, uint32_t psn, uint32_t end)
{
	qp->resend = true;
	qp->cold->sel_psn = psn;
	qp->cold->sel_end = end;
	verbs_run_add(r->w, &qp->v);
}

/** Whether psn is the first that was not sent again with the hole: of a READ all is. */
static bool
recovery_is_next(const struct roce_qp *qp, uint32_t psn)
{
	const struct roce_qp_cold *cold = qp->cold;

	if (!qp->recovering)
		return false;
	return psn == psn_add(qp->nak_psn, 1) ||
	       (cold->sel_psn == qp->nak_psn && psn == psn_add(cold->sel_end, 1));
}

/** The missing responses from psn on have been asked for, and are on their way perhaps. */
static bool
recovery_asked(const struct roce_qp *qp, uint32_t psn)
{
	const struct roce_qp_cold *cold = qp->cold;

	if (!qp->recovering)
		return false;
	return psn == qp->nak_psn || psn_before(psn, cold->asked_end) ||
	       psn_sub(psn, cold->sel_psn) <= psn_sub(cold->sel_end, cold->sel_psn);
}

/**
 * A response has come behind a hole that was asked for. What is missing between the two is a hole
 * of its own, which is asked for at once, not when its turn comes.
 */
static void
recovery_ask_next(struct roce *r, struct roce_qp *qp, uint32_t psn, bool kept)
{
	struct roce_qp_cold *cold = qp->cold;

	if (r->cfg.go_back_n || psn_before(psn, cold->asked_end) ||
	    psn_before(qp->req_psn, qp->snd_max))
		return;
	if (psn != cold->asked_end) {
		recovery_count_hole(qp);
		if (qp->resend || !recovery_few_lost(qp))
			return; /* with the next that comes, both; or in its turn */
		recovery_send_alone(r, qp, cold->asked_end, psn_sub(psn, 1));
	}
	cold->asked_end = psn_add(psn, kept);
}

void
roce_recovery_nak(struct roce *r, struct roce_qp *qp, uint32_t psn)
{
	bool again = qp->recovering && qp->nak_psn == psn;
	bool next = recovery_is_next(qp, psn);
	struct verbs_wqe *wqe;

	if (again || !recovery_charge_hole(r, qp))
		return;
	qp->hole_steps = next ? qp->hole_steps + 1 : 0;
	if (next && qp->keeps == ROCE_KEEPS_UNKNOWN)
		qp->keeps = ROCE_KEEPS_NO;
	recovery_begin(r, qp, psn);
	if (r->cfg.go_back_n || qp->keeps == ROCE_KEEPS_NO || qp->hole_steps >= HOLES_IN_A_ROW) {
		qp->hole_steps = 0;
		roce_recovery_go_back(r, qp, psn);
	} else {
		if (qp->keeps == ROCE_KEEPS_YES)
			recovery_go_on(qp);
		/* A READ whole: the peer has not seen it, and takes as many PSNs as it says. */
		wqe = roce_wqe_find(qp, psn);
		recovery_send_alone(r, qp, psn,
				    wqe && roce_wqe_has_response(wqe) ? wqe->last_psn : psn);
	}
}

void
roce_recovery_missing(struct roce *r, struct roce_qp *qp, uint32_t upto, bool kept)
{
	if (recovery_asked(qp, qp->una)) {
		recovery_ask_next(r, qp, upto, kept);
		return;
	}
	roce_count(r, ROCE_C_IMPLIED_NAK);
	if (!recovery_charge_hole(r, qp))
		return;
	recovery_begin(r, qp, qp->una);
	if (r->cfg.go_back_n) {
		roce_recovery_go_back(r, qp, qp->una);
	} else {
		recovery_go_on(qp);
		recovery_send_alone(r, qp, qp->una, psn_sub(upto, 1));
		qp->cold->asked_end = psn_add(upto, kept);
	}
}

void
roce_recovery_progress(struct roce *r, struct roce_qp *qp, uint32_t old_una)
{
	bool had_resent = psn_before(qp->req_psn, qp->snd_max);

	if (had_resent && psn_after(qp->una, qp->req_psn) && !qp->rnr_wait)
		qp->keeps = ROCE_KEEPS_YES;
	if (!qp->recovering)
		return;
	if (psn_after(qp->una, psn_add(qp->nak_psn, 1)) && old_una == qp->nak_psn &&
	    qp->keeps == ROCE_KEEPS_UNKNOWN && !had_resent && !qp->cold->probed)
		qp->keeps = ROCE_KEEPS_YES;
	if (psn_diff(qp->una, qp->cold->rec_end) >= 0) {
		recovery_end(qp);
		return;
	}
	if (qp->una == psn_add(qp->nak_psn, 1) && qp->keeps == ROCE_KEEPS_UNKNOWN) {
		struct verbs_wqe *wqe = roce_wqe_find(qp, qp->nak_psn);

		if (wqe && roce_wqe_has_response(wqe))
			return; /* the rest of the answer is on its way */
		qp->keeps = ROCE_KEEPS_NO;
		recovery_end(qp);
		roce_recovery_go_back(r, qp, qp->una);
		return;
	}
	qp->probes = 0;
	roce_timer_set(r, qp, ROCE_T_PROBE, r->now + probe_delay(qp));
}

/**
 * Our own application's memory does not come: a message of ours stands half sent, a response
 * behind which nothing is sent is not read yet, or the answer may be here behind a placement.
 * No fault of the peer's, and sending again would not help.
 */
static bool
recovery_ours(const struct roce_qp *qp)
{
	return qp->placing || qp->rx_again || (qp->v.flags & VERBS_QP_WANTS(VERBS_POOL_IO)) ||
	       (qp->parked && !qp->parked_ready);
}

void
roce_recovery_acked(struct roce *r, struct roce_qp *qp)
{
	const struct roce_qp_cold *cold = qp->cold;

	if (qp->una != psn_add(cold->sel_end, 1) || !psn_before(qp->una, cold->rec_end) ||
	    qp->resend || qp->rnr_wait || psn_before(qp->req_psn, qp->snd_max))
		return;
	if (!cold->probed) /* the NAK said that more had come */
		qp->keeps = ROCE_KEEPS_NO;
	recovery_end(qp);
	roce_recovery_go_back(r, qp, qp->una);
	roce_timer_progress(r, qp);
}

void
roce_recovery_timeout(struct roce *r, struct roce_qp *qp)
{
	struct verbs_wqe *wqe;

	if (qp->v.state != RING_QPS_RTS && qp->v.state != RING_QPS_SQD)
		return;
	if (qp->una == qp->snd_max && !(qp->neigh_wait && roce_req_has_work(qp)))
		return;
	if (recovery_ours(qp)) {
		roce_timer_set(r, qp, ROCE_T_ACK, r->now + roce_timeout_ns(qp->timeout));
		return;
	}
	roce_count(r, ROCE_C_TIMEOUT);
	qp->cold->timeouts++;
	/* Nobody answers, not even to ask where the peer is: the request that waits fails. */
	if (qp->retry_left == 0 && qp->v.wqe_head == NULL &&
	    verbs_sq_fetch(r->w, &qp->v, &wqe) <= 0)
		return;
	if (!recovery_take_retry(r, qp))
		return;
	net_neigh_suspect(qp->path.neigh);
	recovery_end(qp);
	recovery_narrow(qp);
	qp->rtt_at = 0;
	roce_recovery_go_back(r, qp, qp->una);
	roce_timer_set(r, qp, ROCE_T_ACK, r->now + roce_timeout_ns(qp->timeout));
}

/** Of a READ what is missing, up to the first response that was kept. */
static uint32_t
recovery_probe_end(const struct roce_qp *qp, const struct verbs_wqe *wqe)
{
	if (!roce_wqe_has_response(wqe))
		return qp->una;
	if (qp->early.head && psn_after(roce_hold_psn(&qp->early), qp->una))
		return psn_sub(roce_hold_psn(&qp->early), 1);
	return wqe->last_psn;
}

uint64_t
roce_recovery_tail(const struct roce_qp *qp)
{
	uint64_t tail = 4 * qp->srtt, least = TAIL_MIN_NS;

	if (qp->srtt == 0)
		return 0;
	if (psn_sub(qp->snd_max, qp->una) < TAIL_FEW || qp->rd_out)
		least = TAIL_FEW_NS;
	tail = tail < least ? least : tail < TAIL_MAX_NS ? tail : TAIL_MAX_NS;
	return tail << (qp->probes < PROBE_MAX_SHIFT ? qp->probes : PROBE_MAX_SHIFT);
}

static uint64_t
recovery_again(const struct roce_qp *qp)
{
	return qp->recovering ? probe_delay(qp) : roce_recovery_tail(qp);
}

void
roce_recovery_probe(struct roce *r, struct roce_qp *qp, uint64_t late)
{
	struct verbs_wqe *wqe;

	if ((qp->v.state != RING_QPS_RTS && qp->v.state != RING_QPS_SQD) ||
	    qp->una == qp->snd_max || qp->rnr_wait || qp->neigh_wait)
		return;
	if (qp->probes > PROBE_MAX_SHIFT)
		return; /* the response timer's turn */
	wqe = roce_wqe_find(qp, qp->una);
	if (wqe == NULL)
		return;
	if (late < LATE_NS && !recovery_ours(qp) && !psn_before(qp->req_psn, qp->snd_max)) {
		qp->probes++;
		if (!qp->recovering)
			recovery_set(qp, qp->una, true);
		qp->cold->probed = true;
		roce_count(r, ROCE_C_PROBE);
		recovery_send_alone(r, qp, qp->una, recovery_probe_end(qp, wqe));
	}
	roce_timer_set(r, qp, ROCE_T_PROBE, r->now + recovery_again(qp));
}
