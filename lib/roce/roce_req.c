/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requester, sending side: takes requests from the send queue, gives them PSNs, cuts them into
 * packets. What may hold a request back before its first packet: fence, credit, depth, window.
 * What is sent again goes through the same code, from whatever PSN recovery says.
 */
#include <errno.h>

#include "roce_priv.h"

/** Opcodes of a request's packets, of RC: op_base makes them the QP's. */
struct req_op {
	uint8_t first, middle, last, only;
	bool takes_rwqe; /* at the peer: needs credit */
};

static const struct req_op req_ops[RING_WR_OPCODE_COUNT] = {
	[RING_WR_SEND] = {ROCE_RC_SEND_FIRST, ROCE_RC_SEND_MIDDLE, ROCE_RC_SEND_LAST,
			  ROCE_RC_SEND_ONLY, true},
	[RING_WR_SEND_WITH_IMM] = {ROCE_RC_SEND_FIRST, ROCE_RC_SEND_MIDDLE,
				   ROCE_RC_SEND_LAST_IMM, ROCE_RC_SEND_ONLY_IMM, true},
	[RING_WR_SEND_WITH_INV] = {ROCE_RC_SEND_FIRST, ROCE_RC_SEND_MIDDLE,
				   ROCE_RC_SEND_LAST_INV, ROCE_RC_SEND_ONLY_INV, true},
	[RING_WR_RDMA_WRITE] = {ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_MIDDLE, ROCE_RC_WRITE_LAST,
				ROCE_RC_WRITE_ONLY, false},
	[RING_WR_RDMA_WRITE_WITH_IMM] = {ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_MIDDLE,
					 ROCE_RC_WRITE_LAST_IMM, ROCE_RC_WRITE_ONLY_IMM, true},
	[RING_WR_RDMA_READ] = {.only = ROCE_RC_READ_REQ},
	[RING_WR_ATOMIC_CMP_AND_SWP] = {.only = ROCE_RC_CMP_SWAP},
	[RING_WR_ATOMIC_FETCH_AND_ADD] = {.only = ROCE_RC_FETCH_ADD},
	[RING_WR_ATOMIC_WRITE] = {.only = ROCE_RC_ATOMIC_WRITE},
	[RING_WR_FLUSH] = {.only = ROCE_RC_FLUSH},
};

/** From the oldest one on: for PSNs that are una, or near. */
struct verbs_wqe *
roce_wqe_find(const struct roce_qp *qp, uint32_t psn)
{
	struct verbs_wqe *wqe = qp->v.wqe_head;

	while (wqe && !(roce_wqe_has_psns(wqe) && roce_wqe_holds(wqe, psn)))
		wqe = wqe->next;
	return wqe;
}

void
roce_req_set(struct roce_qp *qp, uint32_t psn)
{
	qp->req_psn = psn;
	qp->req_wqe = roce_wqe_find(qp, psn);
}

void
roce_req_fail(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe, enum wc_status status)
{
	wqe->tstate = ROCE_WQE_FAILED;
	wqe->status = (uint8_t)status;
	qp->req_stopped = true;
	qp->req_wqe = NULL;
	qp->req_psn = qp->snd_max;
	roce_comp_reap(r, qp);
}

/* ---- starting ---------- */

/** What must hold before the first packet, beside fence, credit and window. */
static enum wc_status
req_check(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe)
{
	if (!roce_wqe_has_response(wqe))
		return req_ops[wqe->opcode].only ? WC_SUCCESS : WC_LOC_QP_OP_ERR;
	if (qp->max_rd_atomic == 0)
		return WC_LOC_QP_OP_ERR; /* it could never be sent */
	if (wqe->opcode == RING_WR_FLUSH || wqe->opcode == RING_WR_ATOMIC_WRITE)
		return WC_SUCCESS; /* nothing comes back but that it is done */
	if (roce_num_psns(qp, wqe->length) > ROCE_PSN_WINDOW)
		return WC_LOC_LEN_ERR;
	return verbs_sgl_check(r->w, &qp->v, verbs_wqe_sgl(wqe), MR_LOCAL_WRITE);
}

/** A fresh request gets its PSNs. @return false: the queue stops here. */
static bool
req_start(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe)
{
	enum wc_status status = wqe->status;

	wqe->first_psn = qp->nxt_psn;
	wqe->last_psn = psn_sub(qp->nxt_psn, 1);
	if (status == WC_SUCCESS && roce_wqe_is_local(wqe))
		return roce_local_start(r, qp, wqe);
	if (status == WC_SUCCESS)
		status = req_check(r, qp, wqe);
	if (unlikely(status != WC_SUCCESS)) {
		roce_req_fail(r, qp, wqe, status);
		return false;
	}
	wqe->tstate = ROCE_WQE_NEW;
	wqe->last_psn = psn_add(wqe->first_psn,
				roce_wqe_has_response(wqe) && wqe->opcode != RING_WR_RDMA_READ
					? 0
					: roce_num_psns(qp, wqe->length) - 1);
	wqe->ssn = qp->ssn = psn_add(qp->ssn, 1);
	qp->nxt_psn = psn_add(wqe->last_psn, 1);
	qp->req_wqe = wqe;
	return true;
}

/** Take the next request. VERBS_RUN_MORE: there is one to send. */
static enum verbs_run
req_next(struct roce *r, struct roce_qp *qp)
{
	struct verbs_wqe *wqe;
	int ret;

	for (;;) {
		/* local work first: SQD waits for what has been started */
		if (unlikely(roce_local_waits(r, qp)))
			return VERBS_RUN_WAIT;
		if (unlikely(qp->v.state != RING_QPS_RTS || qp->req_stopped))
			return roce_sq_dead(qp) ? VERBS_RUN_MORE : VERBS_RUN_WAIT;
		/* PSNs outstanding stay comparable, whatever the next one's length. */
		if (unlikely(qp->v.wqe_head &&
			     psn_sub(qp->nxt_psn, qp->una) >= ROCE_PSN_WINDOW / 2))
			return VERBS_RUN_WAIT;
		ret = verbs_sq_fetch(r->w, &qp->v, &wqe);
		if (ret == 0)
			return VERBS_RUN_IDLE;
		if (ret == -EAGAIN)
			return VERBS_RUN_WAIT; /* its turn comes */
		if (ret < 0) {
			r->w->host.event(r->w->host.ctx, VERBS_EVENT_QP_FATAL, &qp->v);
			roce_qp_fail(r, qp);
			return VERBS_RUN_MORE;
		}
		if (!req_start(r, qp, wqe))
			return roce_sq_dead(qp) ? VERBS_RUN_MORE : VERBS_RUN_WAIT;
		if (qp->req_wqe || qp->v.deficit <= 0) /* local work has its price */
			return VERBS_RUN_MORE;
	}
}

/* ---- gates ---------- */

/** It will have a response. */
static void
req_await(struct roce_qp *qp, struct verbs_wqe *wqe)
{
	qp->rd_out++;
	wqe->link = NULL;
	if (qp->rd_head)
		qp->rd_tail->link = wqe;
	else
		qp->rd_head = wqe;
	qp->rd_tail = wqe;
}

/** Whether a request that was not sent yet may be. */
static bool
req_may_open(struct roce_qp *qp, struct verbs_wqe *wqe)
{
	if ((wqe->flags & RING_WR_FENCE) && qp->rd_out && !base_bug(BUG_FENCE_IGNORED))
		return false;
	if (roce_wqe_has_response(wqe)) {
		if (qp->rd_out >= qp->max_rd_atomic)
			return false;
		/* a READ takes all its PSNs at once */
		if (psn_sub(wqe->last_psn, qp->una) >= ROCE_PSN_WINDOW)
			return false;
	}
	/* Beyond the credits one request may go, as a probe (IBTA 9.7.7.2.4). */
	if (req_ops[wqe->opcode].takes_rwqe && !qp->credit_unlimited &&
	    !base_bug(BUG_CREDIT_IGNORED) && psn_diff(wqe->ssn, psn_add(qp->lsn, 1)) > 0)
		return false;
	wqe->tstate = ROCE_WQE_OPEN;
	if (roce_wqe_has_response(wqe))
		req_await(qp, wqe);
	return true;
}

/** Bytes in flight, headers too, or small ones had no end: the cap, but two packets always. */
static bool
req_window_open(const struct roce_qp *qp)
{
	uint32_t psns = psn_sub(qp->snd_max, qp->una);
	uint32_t bytes = qp->inflight + psns * ROCE_PKT_COST;

	if (likely(bytes < qp->max_inflight || psns < 2))
		return psns < ROCE_PSN_WINDOW - 1;
	/* What was in flight when the hole showed has arrived by now, or will never. */
	return unlikely(qp->recovering) && bytes < qp->cold->rec_window && psns < ROCE_KEPT_MOST;
}

/* ---- packets ---------- */

static inline uint8_t
req_opcode(const struct roce_qp *qp, const struct verbs_wqe *wqe, uint32_t psn)
{
	const struct req_op *op = &req_ops[wqe->opcode];

	if (psn == wqe->last_psn)
		return qp->op_base | (psn == wqe->first_psn ? op->only : op->last);
	return qp->op_base | (psn == wqe->first_psn ? op->first : op->middle);
}

/** AckReq: on the last packet, on what is sent again alone, and every so often. */
static inline uint32_t
req_ackreq(struct roce_qp *qp, const struct verbs_wqe *wqe, uint32_t psn)
{
	if (psn != wqe->last_psn && !qp->resend && ++qp->since_ackreq < qp->ack_every)
		return 0;
	qp->since_ackreq = 0;
	return (uint32_t)qp->acked * ROCE_BTH_ACKREQ;
}

/** First of what follows the BTH, in each XRC request. */
static inline void
req_xrceth(const struct verbs_wqe *wqe, const struct roce_opcode_info *info,
	   const struct roce_out *out)
{
	if (unlikely(info->xrceth != 0))
		roce_xrceth_emit(out->bth + info->xrceth, wqe->srqn);
}

static inline void
req_ext(const struct verbs_wqe *wqe, uint8_t opcode, const struct roce_out *out)
{
	const struct roce_opcode_info *info = &roce_opcodes[opcode];

	req_xrceth(wqe, info, out);
	if (info->reth)
		roce_reth_emit(out->bth + info->reth, wqe->remote_addr, wqe->rkey, wqe->length);
	if (info->immdt)
		roce_immdt_emit(out->bth + info->immdt, wqe->imm);
	if (info->ieth)
		roce_ieth_emit(out->bth + info->ieth, wqe->imm);
}

static enum roce_tx_result
req_emit_data(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe, uint32_t psn)
{
	uint32_t off = psn_sub(psn, wqe->first_psn) << qp->mtu_shift;
	uint32_t left = wqe->length - off;
	uint32_t len = left < roce_mtu(qp) ? left : roce_mtu(qp);
	uint8_t opcode = req_opcode(qp, wqe, psn);
	enum wc_status why = WC_SUCCESS;
	struct roce_out out;
	uint32_t state, *crc;
	uint8_t se = 0;

	if ((wqe->flags & RING_WR_SOLICITED) && psn == wqe->last_psn &&
	    roce_any(roce_opcodes[opcode].mask, ROCE_RECV_COMP))
		se = ROCE_BTH_SE;
	roce_tx_open(r, qp, opcode, se, psn | req_ackreq(qp, wqe, psn), len, &out);
	req_ext(wqe, opcode, &out);
	crc = roce_tx_crc(&out, &state);
	switch (verbs_gather(r->w, &qp->v, wqe, off, len, out.payload, crc, &why)) {
	case VERBS_DONE:
		roce_tx_close(r, qp, &out, crc);
		return ROCE_TX_SENT;
	case VERBS_PENDING:
		roce_tx_park(qp, &out, psn, false);
		return ROCE_TX_PARKED;
	case VERBS_AGAIN:
		roce_tx_cancel(r, &out);
		return ROCE_TX_WAIT;
	case VERBS_ERROR:
		break;
	}
	roce_tx_cancel(r, &out);
	roce_req_fail(r, qp, wqe, why);
	return ROCE_TX_ERROR;
}

/** A READ request for the responses psn .. end, of which psn is the first that is missing. */
static void
req_emit_read(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe, uint32_t psn, uint32_t end)
{
	uint32_t off = psn_sub(psn, wqe->first_psn) << qp->mtu_shift;
	uint32_t len = wqe->length - off;
	uint64_t va = wqe->remote_addr + off;
	uint8_t opcode = ROCE_RC_READ_REQ | qp->op_base;
	struct roce_out out;

	if (end != wqe->last_psn)
		len = (psn_sub(end, psn) + 1) << qp->mtu_shift;
	if (base_bug(BUG_WRONG_RETH))
		va = wqe->remote_addr;
	qp->since_ackreq = 0;
	roce_tx_open(r, qp, opcode, 0, psn | ROCE_BTH_ACKREQ, 0, &out);
	req_xrceth(wqe, &roce_opcodes[opcode], &out);
	roce_reth_emit(out.bth + roce_opcodes[opcode].reth, va, wqe->rkey, len);
	roce_tx_close(r, qp, &out, NULL);
}

static void
req_emit_atomic(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe)
{
	bool cas = wqe->opcode == RING_WR_ATOMIC_CMP_AND_SWP;
	uint8_t opcode = req_ops[wqe->opcode].only | qp->op_base;
	struct roce_out out;

	qp->since_ackreq = 0;
	roce_tx_open(r, qp, opcode, 0, wqe->first_psn | ROCE_BTH_ACKREQ, 0, &out);
	req_xrceth(wqe, &roce_opcodes[opcode], &out);
	roce_atomiceth_emit(out.bth + roce_opcodes[opcode].atomiceth, wqe->remote_addr, wqe->rkey,
			    cas ? wqe->swap : wqe->compare_add, cas ? wqe->compare_add : 0);
	roce_tx_close(r, qp, &out, NULL);
}

static void
req_emit_flush(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe)
{
	const struct roce_opcode_info *info = &roce_opcodes[ROCE_RC_FLUSH];
	struct roce_out out;

	qp->since_ackreq = 0;
	roce_tx_open(r, qp, ROCE_RC_FLUSH, 0, wqe->first_psn | ROCE_BTH_ACKREQ, 0, &out);
	roce_feth_emit(out.bth + info->feth, wqe->flush >> 4, wqe->flush & 15);
	roce_reth_emit(out.bth + info->reth, wqe->remote_addr, wqe->rkey, wqe->length);
	roce_tx_close(r, qp, &out, NULL);
}

/**
 * A READ longer than a piece is asked for in pieces, each a READ of its own to the peer, to its
 * MSN and to the depth: a peer sends what it is asked for at once, and a hole at its beginning
 * would cost all that follows, again and again. Pieces begin where they begin however often they
 * are asked for, since the peer knows no other.
 */
static uint32_t
req_piece_end(const struct roce_qp *qp, const struct verbs_wqe *wqe, uint32_t psn)
{
	uint32_t end = psn_sub(psn, wqe->first_psn) | (roce_piece(qp) - 1);

	if (wqe->opcode != RING_WR_RDMA_READ || end >= psn_sub(wqe->last_psn, wqe->first_psn))
		return wqe->last_psn;
	return psn_add(wqe->first_psn, end);
}

/** Send what begins at psn; *last is the newest PSN that it covers. */
static enum roce_tx_result
req_emit(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe, uint32_t psn, uint32_t end,
	 uint32_t *last)
{
	*last = psn;
	if (!roce_wqe_has_response(wqe) || wqe->opcode == RING_WR_ATOMIC_WRITE)
		return req_emit_data(r, qp, wqe, psn);
	if (wqe->opcode == RING_WR_RDMA_READ) {
		*last = req_piece_end(qp, wqe, psn);
		if (roce_wqe_holds(wqe, end) && psn_before(end, *last))
			*last = end;
		if (psn_before(psn, qp->snd_max) && !psn_before(*last, qp->snd_max))
			*last = psn_sub(qp->snd_max, 1); /* what was asked for, not more */
		req_emit_read(r, qp, wqe, psn, *last);
	} else if (wqe->opcode == RING_WR_FLUSH) {
		req_emit_flush(r, qp, wqe);
	} else {
		req_emit_atomic(r, qp, wqe);
	}
	return ROCE_TX_SENT;
}

/** Account for what left: psn .. last of a request. */
static void
req_sent(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe, uint32_t psn, uint32_t last)
{
	uint32_t off = psn_sub(psn, wqe->first_psn) << qp->mtu_shift;
	uint32_t len = wqe->length - off;
	uint32_t most = (psn_sub(last, psn) + 1) << qp->mtu_shift;

	if (len > most && most != 0)
		len = most;
	if (roce_wqe_is_note(wqe))
		len = 0;
	if (psn_before(psn, qp->snd_max)) {
		roce_count(r, ROCE_C_RETRANSMIT);
		qp->cold->retransmits++;
	} else {
		if (wqe->opcode == RING_WR_RDMA_READ && psn != wqe->first_psn) {
			qp->ssn = psn_add(qp->ssn, 1);
			qp->rd_out++;
		}
		qp->snd_max = psn_add(last, 1);
		qp->inflight += len;
		if (qp->rtt_at == 0 && !qp->recovering) {
			qp->rtt_at = r->now;
			qp->rtt_psn = last;
		}
	}
	len = (roce_wqe_has_response(wqe) ? 0 : len) + ROCE_PKT_COST;
	qp->v.deficit -= (int32_t)len;
	if (unlikely(qp->paced))
		roce_cc_sent(r, qp, len);
	roce_timer_sent(r, qp);
}

/** One packet of recovery's choice, before all else. */
static enum roce_tx_result
req_resend(struct roce *r, struct roce_qp *qp)
{
	struct verbs_wqe *wqe = NULL;
	enum roce_tx_result res = ROCE_TX_SENT;
	uint32_t last;

	/* Else it is answered meanwhile, and looking for it would be a walk over all. */
	if (!psn_before(qp->cold->sel_psn, qp->una))
		wqe = roce_wqe_find(qp, qp->cold->sel_psn);
	if (wqe && wqe->tstate == ROCE_WQE_OPEN && psn_before(qp->cold->sel_psn, qp->snd_max)) {
		res = req_emit(r, qp, wqe, qp->cold->sel_psn, qp->cold->sel_end, &last);
		if (res == ROCE_TX_SENT || res == ROCE_TX_PARKED) {
			req_sent(r, qp, wqe, qp->cold->sel_psn, last);
			qp->cold->sel_end = last; /* a READ's piece, not all of it */
		}
	}
	if (res != ROCE_TX_WAIT)
		qp->resend = false;
	return res;
}

/** On to the next request with packets. Nothing behind one that has failed is sent again. */
static void
req_advance(struct roce_qp *qp, struct verbs_wqe *wqe)
{
	while (wqe && !roce_wqe_has_psns(wqe)) {
		if (wqe->tstate == ROCE_WQE_FAILED) {
			qp->req_psn = qp->snd_max;
			wqe = NULL;
			break;
		}
		wqe = wqe->next;
	}
	qp->req_wqe = wqe;
}

/** Whether a packet that was not sent yet may be: a READ's next piece, while one is under way. */
static bool
req_may_send(const struct roce_qp *qp, const struct verbs_wqe *wqe, uint32_t psn)
{
	if (!req_window_open(qp))
		return false;
	if (wqe->opcode != RING_WR_RDMA_READ || psn == wqe->first_psn)
		return true;
	if (unlikely(qp->recovering) && qp->cold->rec_window && qp->rd_out < qp->max_rd_atomic)
		return true;
	return qp->rd_out < qp->max_rd_atomic && psn_sub(psn, qp->una) <= roce_piece(qp);
}

/**
 * UC: nothing holds a packet back, and with the last one the request is done. To a next hop that
 * does not answer it is lost here, as it would be anywhere behind.
 */
static enum roce_tx_result
req_packet_uc(struct roce *r, struct roce_qp *qp)
{
	struct verbs_wqe *wqe = qp->req_wqe;
	uint32_t psn = qp->req_psn;
	enum roce_tx_result res = ROCE_TX_SENT;

	wqe->tstate = ROCE_WQE_OPEN;
	if (likely(net_neigh_l2_usable(r->l2)))
		res = req_emit_data(r, qp, wqe, psn);
	else
		roce_count(r, ROCE_C_UC_UNREACHABLE);
	if (res != ROCE_TX_SENT && res != ROCE_TX_PARKED)
		return res;
	req_sent(r, qp, wqe, psn, psn);
	qp->req_psn = psn_add(psn, 1);
	if (psn == wqe->last_psn)
		req_advance(qp, wqe->next);
	if (res == ROCE_TX_SENT || base_bug(BUG_UC_EARLY))
		roce_uc_sent(r, qp);
	return res;
}

static enum roce_tx_result
req_packet(struct roce *r, struct roce_qp *qp)
{
	struct verbs_wqe *wqe = qp->req_wqe;
	uint32_t psn = qp->req_psn, last;
	enum roce_tx_result res;

	if (unlikely(roce_is_uc(qp)))
		return req_packet_uc(r, qp);
	if (wqe->tstate == ROCE_WQE_NEW && !req_may_open(qp, wqe))
		return ROCE_TX_WAIT;
	if (psn == qp->snd_max && !req_may_send(qp, wqe, psn))
		return ROCE_TX_WAIT;
	res = req_emit(r, qp, wqe, psn, wqe->last_psn, &last);
	if (res != ROCE_TX_SENT && res != ROCE_TX_PARKED)
		return res;
	req_sent(r, qp, wqe, psn, last);
	qp->req_psn = psn_add(last, 1);
	if (last == wqe->last_psn)
		req_advance(qp, wqe->next);
	return res;
}

/** What a QP with nothing more to send answers, having been stopped by res. */
static enum verbs_run
req_result(struct roce *r, struct roce_qp *qp, enum roce_tx_result res)
{
	if (roce_sq_dead(qp))
		return VERBS_RUN_MORE;
	if (res == ROCE_TX_FULL)
		return net_tx_room(r->cfg.tx[qp->port]) ? VERBS_RUN_MORE : VERBS_RUN_FULL;
	qp->stalled = true;
	return VERBS_RUN_WAIT;
}

enum verbs_run
roce_req_run(struct roce *r, struct roce_qp *qp)
{
	enum roce_tx_result res = ROCE_TX_SENT;
	enum verbs_run next;

	if (qp->v.state != RING_QPS_RTS && qp->v.state != RING_QPS_SQD)
		return VERBS_RUN_WAIT; /* what was posted too early must not keep it on the list */
	qp->stalled = false;
	if (qp->rnr_wait)
		return req_result(r, qp, ROCE_TX_WAIT);
	while (qp->v.deficit > 0) {
		if (!qp->resend && qp->req_wqe == NULL) {
			next = req_next(r, qp);
			if (qp->req_wqe == NULL) {
				qp->stalled = next == VERBS_RUN_WAIT;
				return next;
			}
		}
		if (unlikely(qp->paced) && !roce_cc_may_send(r, qp))
			return VERBS_RUN_WAIT; /* and no progress need wake it */
		if (!roce_tx_ready(r, qp))
			return req_result(r, qp, ROCE_TX_FULL);
		res = qp->resend ? req_resend(r, qp) : req_packet(r, qp);
		if (res != ROCE_TX_SENT)
			return req_result(r, qp, res);
	}
	return VERBS_RUN_MORE;
}
