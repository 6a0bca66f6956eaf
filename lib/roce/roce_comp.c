/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requester, receiving side: acknowledgements, READ responses, atomic results; what they
 * complete and what they say is missing. A response with PSN p acknowledges every earlier SEND
 * and WRITE, but a READ or atomic completes by its own response alone (IBTA 9.7.5.1.2).
 */
#include <string.h>

#include "roce_priv.h"

/* ---- completing ---------- */

static void
comp_progress_reset(struct roce_qp *qp)
{
	qp->charged = false;
	if (base_bug(BUG_RETRY_NOT_RESET))
		return;
	qp->retry_left = qp->retry_cnt;
	qp->rnr_left = qp->rnr_retry;
}

void
roce_comp_fatal(struct roce *r, struct roce_qp *qp, enum wc_status status)
{
	roce_local_abort(r, qp); /* it may be the oldest one */
	if (qp->v.wqe_head)
		verbs_complete_send(r->w, &qp->v, qp->v.wqe_head, status);
	if (unlikely(roce_is_uc(qp)))
		roce_qp_send_error(r, qp);
	else
		roce_qp_fail(r, qp);
}

void
roce_comp_reap(struct roce *r, struct roce_qp *qp)
{
	struct verbs_wqe *wqe;
	bool behind = psn_before(qp->req_psn, qp->una);

	if (behind)
		qp->req_wqe = NULL; /* may be about to complete */
	while ((wqe = qp->v.wqe_head) != NULL) {
		if (wqe->tstate == ROCE_WQE_FAILED) {
			roce_comp_fatal(r, qp, wqe->status);
			return;
		}
		if (wqe->tstate != ROCE_WQE_DONE &&
		    (wqe->tstate != ROCE_WQE_OPEN || psn_diff(wqe->last_psn, qp->una) >= 0))
			break;
		if (roce_wqe_has_response(wqe) && wqe->tstate == ROCE_WQE_OPEN) {
			qp->rd_out--;
			qp->rd_head = wqe->link;
		}
		verbs_complete_send(r->w, &qp->v, wqe, WC_SUCCESS);
	}
	if (behind)
		roce_req_set(qp, qp->una);
	roce_qp_check_cqs(r, qp);
	if (unlikely(qp->v.state == RING_QPS_SQD))
		roce_qp_check_drained(r, qp);
}

/** Bytes of a SEND or WRITE that an acknowledgement up to una has covered. */
static void
comp_account(struct roce_qp *qp, struct verbs_wqe *wqe)
{
	uint64_t done = (uint64_t)psn_sub(qp->una, wqe->first_psn) << qp->mtu_shift;

	if (done > wqe->length)
		done = wqe->length;
	qp->inflight -= (uint32_t)done - wqe->done;
	wqe->done = (uint32_t)done;
}

enum comp_acked {
	COMP_ALL,
	COMP_NO_ANSWER, /* not past a READ or atomic without one */
	COMP_MORE,	/* enough for now: the QP goes on when it has its turn */
};

/** All before psn was received in order by the peer: una moves there. */
static enum comp_acked
comp_ack_before(struct roce *r, struct roce_qp *qp, uint32_t psn)
{
	struct verbs_wqe *wqe = qp->v.wqe_head;
	uint32_t left = r->cfg.max_reap;

	for (; wqe && psn_before(qp->una, psn); wqe = wqe->next) {
		if (unlikely(left-- == 0)) {
			qp->rx_again = true;
			verbs_run_add(r->w, &qp->v);
			return COMP_MORE;
		}
		if (!roce_wqe_has_psns(wqe) || psn_before(wqe->last_psn, qp->una))
			continue;
		if (roce_wqe_has_response(wqe) && !base_bug(BUG_IMPLIED_ACK))
			return COMP_NO_ANSWER;
		qp->una = psn_after(psn, wqe->last_psn) ? psn_add(wqe->last_psn, 1) : psn;
		comp_account(qp, wqe);
	}
	return COMP_ALL;
}

/** A time-out's base: from a packet's first sending to the acknowledgement that covers it. */
static void
comp_rtt(struct roce *r, struct roce_qp *qp)
{
	uint64_t rtt;

	if (qp->rtt_at == 0 || !psn_after(qp->una, qp->rtt_psn))
		return;
	rtt = r->now - qp->rtt_at;
	qp->rtt_at = 0;
	qp->srtt = qp->srtt ? qp->srtt - qp->srtt / 8 + rtt / 8 : rtt;
	if (unlikely(qp->max_inflight < roce_inflight_cap(r)))
		roce_recovery_widen(r, qp);
}

/** una has moved from old_una: counters, timer, recovery, and what can complete does. */
static void
comp_progress(struct roce *r, struct roce_qp *qp, uint32_t old_una)
{
	if (qp->una == old_una)
		return;
	comp_progress_reset(qp);
	comp_rtt(r, qp);
	if (psn_before(qp->ack_max, qp->una))
		qp->ack_max = qp->una;
	if (qp->rnr_wait && psn_after(qp->una, qp->cold->rnr_psn)) {
		qp->rnr_wait = false;
		roce_timer_stop(qp, ROCE_T_RNR);
	}
	roce_recovery_progress(r, qp, old_una);
	roce_timer_progress(r, qp);
	roce_comp_reap(r, qp);
	roce_wake(r, qp);
}

/** Credits of an AETH: requests up to MSN + credits may be sent. */
static void
comp_credits(struct roce *r, struct roce_qp *qp, const struct roce_pkt *p)
{
	uint32_t credits = 0, lsn;

	if (qp->credit_unlimited)
		return;
	if (roce_syn_is(p->syndrome, ROCE_SYN_ACK)) {
		if ((p->syndrome & ROCE_SYN_VALUE) == ROCE_CREDIT_CODE_NONE) {
			qp->credit_unlimited = true;
			roce_wake(r, qp);
			return;
		}
		credits = roce_credit_decode(p->syndrome & ROCE_SYN_VALUE);
	}
	lsn = psn_add(p->msn, credits);
	if (psn_after(lsn, qp->lsn)) {
		qp->lsn = lsn;
		roce_wake(r, qp);
	}
}

/* ---- acknowledgements ---------- */

/** What the packet says of its own PSN waits until all before it is completed. */
static enum roce_rx_result
comp_later(struct roce *r, struct roce_rx *rx)
{
	return roce_hold_again(r, rx->qp, rx) ? ROCE_RX_KEPT : ROCE_RX_FREE;
}

static void
comp_remember_ack(struct roce_qp *qp, uint32_t upto)
{
	if (psn_after(upto, qp->ack_max))
		qp->ack_max = upto;
}

static void
comp_ack(struct roce *r, struct roce_qp *qp, uint32_t psn)
{
	uint32_t old = qp->una, upto = psn_add(psn, 1);
	enum comp_acked got;

	comp_remember_ack(qp, upto);
	got = comp_ack_before(r, qp, upto);
	comp_progress(r, qp, old);
	if (unlikely(qp->recovering) && qp->una != old)
		roce_recovery_acked(r, qp);
	if (unlikely(got == COMP_NO_ANSWER) && qp->v.state != RING_QPS_ERR)
		roce_recovery_missing(r, qp, upto, false);
}

void
roce_comp_resume(struct roce *r, struct roce_qp *qp)
{
	uint32_t old = qp->una;

	if (!psn_after(qp->ack_max, old) ||
	    (qp->v.state != RING_QPS_RTS && qp->v.state != RING_QPS_SQD))
		return;
	comp_ack_before(r, qp, qp->ack_max);
	comp_progress(r, qp, old);
}

/** As long as the peer says, from now: each of its refusals asks for the whole of it. */
static void
comp_rnr_wait(struct roce *r, struct roce_qp *qp, const struct roce_pkt *p)
{
	roce_timer_set(r, qp, ROCE_T_RNR, r->now + roce_rnr_ns(p->syndrome & ROCE_SYN_VALUE));
}

static void
comp_rnr(struct roce *r, struct roce_qp *qp, const struct roce_pkt *p)
{
	roce_count(r, ROCE_C_RNR_RCVD);
	qp->cold->rnrs_rcvd++;
	if (qp->rnr_wait && p->psn == qp->cold->rnr_psn) {
		comp_rnr_wait(r, qp, p); /* of one sent again meanwhile: no retry more */
		return;
	}
	if (qp->rnr_left == 0) {
		roce_count(r, ROCE_C_RNR_RETRY_EXCEEDED);
		roce_comp_fatal(r, qp, WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (qp->rnr_retry != ROCE_RETRY_FOREVER)
		qp->rnr_left--;
	qp->rnr_wait = true;
	qp->cold->rnr_psn = p->psn;
	qp->rtt_at = 0;
	roce_timer_stop(qp, ROCE_T_ACK);
	comp_rnr_wait(r, qp, p);
	roce_recovery_go_back(r, qp, p->psn);
}

static void
comp_nak_seq(struct roce *r, struct roce_qp *qp, uint32_t psn)
{
	roce_count(r, ROCE_C_NAK_SEQ_RCVD);
	qp->cold->naks_rcvd++;
	if (qp->rnr_wait && psn == qp->cold->rnr_psn) { /* C-71 */
		if (base_bug(BUG_RNR_CUT))
			roce_timer_set(r, qp, ROCE_T_RNR, r->now);
		return;
	}
	roce_recovery_nak(r, qp, psn);
}

static void
comp_nak_here(struct roce *r, struct roce_qp *qp, const struct roce_pkt *p)
{
	if (p->syndrome == ROCE_NAK_PSN_SEQ) {
		comp_nak_seq(r, qp, p->psn);
	} else if (roce_syn_is(p->syndrome, ROCE_SYN_RNR)) {
		comp_rnr(r, qp, p);
	} else {
		roce_count(r, ROCE_C_NAK_ERR_RCVD);
		roce_comp_fatal(r, qp, roce_status_of_syndrome(p->syndrome));
	}
}

static enum roce_rx_result
comp_nak(struct roce *r, struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;
	const struct roce_pkt *p = &rx->p;
	uint32_t old = qp->una;
	enum comp_acked got;

	comp_remember_ack(qp, p->psn);
	got = comp_ack_before(r, qp, p->psn);
	comp_progress(r, qp, old);
	if (qp->v.state == RING_QPS_ERR)
		return ROCE_RX_FREE;
	if (unlikely(got == COMP_MORE))
		return comp_later(r, rx);
	if (got == COMP_NO_ANSWER) /* before it */
		roce_recovery_missing(r, qp, p->psn, false);
	else
		comp_nak_here(r, qp, p);
	return ROCE_RX_FREE;
}

/* ---- responses with data ---------- */

/** The READ or atomic that waits for this PSN: of the few of them, not of all requests. */
static struct verbs_wqe *
comp_awaiting(const struct roce_qp *qp, uint32_t psn)
{
	struct verbs_wqe *wqe = qp->rd_head;

	while (wqe && !roce_wqe_holds(wqe, psn))
		wqe = wqe->link;
	return wqe;
}

/** Bytes that the response of this PSN must carry. */
static uint32_t
comp_expected_len(const struct roce_qp *qp, const struct verbs_wqe *wqe, uint32_t psn)
{
	uint32_t off = psn_sub(psn, wqe->first_psn) << qp->mtu_shift;

	if (unlikely(roce_wqe_is_note(wqe)))
		return 0;
	return psn == wqe->last_psn ? wqe->length - off : roce_mtu(qp);
}

/** The response at una is in its place: go on behind it. */
static void
comp_accept(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe, uint32_t len)
{
	uint32_t old = qp->una;

	wqe->done += len;
	qp->inflight -= len;
	qp->una = psn_add(qp->una, 1);
	if (unlikely((psn_sub(qp->una, wqe->first_psn) & (roce_piece(qp) - 1)) == 0) &&
	    !psn_after(qp->una, wqe->last_psn))
		qp->rd_out--; /* a piece of several */
	counter_add(&r->counter[ROCE_C_RX_BYTES], len);
	if (psn_after(qp->ack_max, qp->una))
		comp_ack_before(r, qp, qp->ack_max); /* what an ACK beyond has told already */
	comp_progress(r, qp, old);
}

static enum roce_rx_result
comp_place(struct roce *r, struct roce_rx *rx, struct verbs_wqe *wqe, const uint8_t *src,
	   uint32_t len)
{
	struct roce_qp *qp = rx->qp;
	uint32_t off = psn_sub(rx->p.psn, wqe->first_psn) << qp->mtu_shift;
	enum wc_status why = WC_SUCCESS;

	switch (verbs_scatter(r->w, &qp->v, verbs_wqe_sgl(wqe), off, src, len, &why)) {
	case VERBS_DONE:
		comp_accept(r, qp, wqe, len);
		return ROCE_RX_FREE;
	case VERBS_PENDING:
		roce_hold_placing(r, qp, rx);
		return ROCE_RX_KEPT;
	case VERBS_AGAIN:
		return comp_later(r, rx);
	case VERBS_ERROR:
		break;
	}
	roce_comp_fatal(r, qp, why);
	return ROCE_RX_FREE;
}

enum roce_rx_result
roce_comp_placed(struct roce *r, struct roce_rx *rx, int status)
{
	struct roce_qp *qp = rx->qp;
	struct verbs_wqe *wqe = comp_awaiting(qp, rx->p.psn);

	if (wqe == NULL || rx->p.psn != qp->una)
		return ROCE_RX_FREE;
	if (status)
		roce_comp_fatal(r, qp, WC_LOC_PROT_ERR);
	else
		comp_accept(r, qp, wqe, comp_expected_len(qp, wqe, rx->p.psn));
	return ROCE_RX_FREE;
}

static enum roce_rx_result
comp_bad_response(struct roce *r, struct roce_qp *qp, enum wc_status status)
{
	roce_count(r, ROCE_C_BAD_RESPONSE);
	roce_comp_fatal(r, qp, status);
	return ROCE_RX_FREE;
}

/** The result is in host order in memory and big-endian on the wire; turned in the packet. */
static enum roce_rx_result
comp_atomic(struct roce *r, struct roce_rx *rx, struct verbs_wqe *wqe)
{
	uint8_t *at = rte_pktmbuf_mtod_offset(rx->m, uint8_t *, rx->bth_off) +
		      rx->p.info->atomack;
	enum roce_rx_result res;

	memcpy(at, &rx->p.orig, sizeof(rx->p.orig));
	res = comp_place(r, rx, wqe, at, sizeof(rx->p.orig));
	if (unlikely(rx->qp->waiting.head == rx->m)) /* and back: it will be parsed again */
		roce_atomack_emit(at, rx->p.orig);
	return res;
}

/** The response at una, of the oldest request that waits for one. */
static enum roce_rx_result
comp_in_order(struct roce *r, struct roce_rx *rx, struct verbs_wqe *wqe)
{
	struct roce_qp *qp = rx->qp;
	bool read = roce_any(rx->p.info->mask, ROCE_READ_RESP);

	if (read != (wqe->opcode == RING_WR_RDMA_READ || roce_wqe_is_note(wqe)))
		return comp_bad_response(r, qp, WC_BAD_RESP_ERR);
	if (!read)
		return comp_atomic(r, rx, wqe);
	/* First, Middle, Last and Only alike: a resumed READ begins anywhere (C-26). */
	if (rx->p.payload_len != comp_expected_len(qp, wqe, rx->p.psn))
		return comp_bad_response(r, qp, WC_LOC_LEN_ERR);
	return comp_place(r, rx, wqe, rx->p.payload, rx->p.payload_len);
}

static enum roce_rx_result
comp_early(struct roce *r, struct roce_rx *rx, const struct verbs_wqe *wqe)
{
	struct roce_qp *qp = rx->qp;
	bool kept = !r->cfg.go_back_n && roce_hold_insert(r, qp, &qp->early, rx);

	roce_count(r, kept ? ROCE_C_OOO_KEPT : ROCE_C_OOO_DROPPED);
	comp_remember_ack(qp, wqe->first_psn); /* the SENDs and WRITEs before it: 9.7.5.1.2 */
	roce_recovery_missing(r, qp, rx->p.psn, kept);
	return kept ? ROCE_RX_KEPT : ROCE_RX_FREE;
}

/** A READ response or atomic result within the outstanding PSNs. */
static enum roce_rx_result
comp_data(struct roce *r, struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;
	struct verbs_wqe *wqe = comp_awaiting(qp, rx->p.psn);
	uint32_t old = qp->una;
	enum comp_acked got;

	if (wqe == NULL) /* a SEND's or WRITE's, or that of one that has failed */
		return qp->req_stopped ? ROCE_RX_FREE : comp_bad_response(r, qp, WC_BAD_RESP_ERR);
	got = comp_ack_before(r, qp, wqe->first_psn);
	comp_progress(r, qp, old);
	if (qp->v.state == RING_QPS_ERR)
		return ROCE_RX_FREE;
	if (unlikely(got == COMP_MORE))
		return comp_later(r, rx);
	if (rx->p.psn != qp->una)
		return comp_early(r, rx, wqe);
	return comp_in_order(r, rx, wqe);
}

void
roce_comp_drain(struct roce *r, struct roce_qp *qp)
{
	while (qp->early.head && qp->placing == NULL && !qp->rx_again) {
		uint32_t psn = roce_hold_psn(&qp->early);
		struct roce_rx rx;

		if (psn_after(psn, qp->una)) {
			roce_recovery_missing(r, qp, psn, true);
			return;
		}
		roce_hold_pop(r, qp, &qp->early, &rx);
		if (psn_before(psn, qp->una) || comp_data(r, &rx) == ROCE_RX_FREE)
			rte_pktmbuf_free(rx.m);
	}
}

enum roce_rx_result
roce_comp_packet(struct roce *r, struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;
	enum roce_rx_result res = ROCE_RX_FREE;
	const struct roce_pkt *p = &rx->p;

	if (p->info->aeth && !psn_after(p->psn, psn_sub(qp->snd_max, 1)) &&
	    p->syndrome != ROCE_NAK_PSN_SEQ)
		comp_credits(r, qp, p);
	/* The PSN is unsigned within what is outstanding, or it answers nothing. */
	if (psn_sub(p->psn, qp->una) >= psn_sub(qp->snd_max, qp->una)) {
		roce_count(r, ROCE_C_GHOST_ACK);
		return ROCE_RX_FREE;
	}
	if (p->info->aeth && !roce_syn_is(p->syndrome, ROCE_SYN_ACK))
		res = comp_nak(r, rx);
	else if (p->opcode == (ROCE_RC_ACK | qp->op_base))
		comp_ack(r, qp, p->psn);
	else
		res = comp_data(r, rx);
	if (unlikely(qp->early.head != NULL) && qp->v.state != RING_QPS_ERR)
		roce_comp_drain(r, qp);
	return res;
}
