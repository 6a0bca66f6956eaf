/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responder, sending side: READ responses and atomic results from the ring of resources, and
 * behind them the one acknowledgement or NAK that is due. Responses leave in the order of their
 * requests: an ACK that overtook a READ response would acknowledge it (IBTA 9.7.5.1.2).
 */
#include "roce_priv.h"

/* ---- resources ---------- */

static struct roce_res *
res_at(const struct roce_qp *qp, uint32_t index)
{
	return &qp->res->e[index & (qp->res->size - 1)];
}

/**
 * The peer has `depth` requests out at most, the new one among them. What is older has been
 * answered to its satisfaction; a repetition of it that is still due need not be sent.
 */
bool
roce_res_room(struct roce_qp *qp)
{
	if (qp->res == NULL || qp->res->depth == 0)
		return false;
	for (uint32_t i = qp->res->depth; i <= qp->res->size; i++) {
		struct roce_res *e = res_at(qp, qp->res_tail - i);

		if (!e->pending)
			continue;
		if (!e->replay)
			return false;
		e->pending = false;
		qp->res_pending--;
	}
	return true;
}

struct roce_res *
roce_res_new(struct roce_qp *qp)
{
	/* an atomic may have waited for its memory since there was room */
	if (!roce_res_room(qp))
		return NULL;
	return res_at(qp, qp->res_tail++);
}

struct roce_res *
roce_res_find(struct roce_qp *qp, uint32_t psn)
{
	for (uint32_t i = 1; qp->res && i <= qp->res->depth; i++) {
		struct roce_res *e = res_at(qp, qp->res_tail - i);

		if (e->type != ROCE_RES_NONE && psn_sub(psn, e->first_psn) <=
						       psn_sub(e->last_psn, e->first_psn))
			return e;
	}
	return NULL;
}

uint32_t
roce_res_ack_limit(struct roce_qp *qp, uint32_t psn)
{
	uint32_t limit = psn_sub(qp->epsn, 1);

	for (uint32_t i = 1; qp->res && i <= qp->res->depth; i++) {
		struct roce_res *e = res_at(qp, qp->res_tail - i);

		if (e->type != ROCE_RES_NONE && psn_after(e->first_psn, psn) &&
		    psn_diff(e->first_psn, limit) <= 0)
			limit = psn_sub(e->first_psn, 1);
	}
	return limit;
}

/** The oldest resource with something to send. */
static struct roce_res *
res_first_pending(struct roce_qp *qp)
{
	for (uint32_t i = qp->res->size; i > 0; i--) {
		struct roce_res *e = res_at(qp, qp->res_tail - i);

		if (e->pending)
			return e;
	}
	return NULL;
}

/* ---- responses ---------- */

static uint8_t
read_opcode(const struct roce_qp *qp, const struct roce_res *e)
{
	uint8_t base = qp->op_base;

	if (e->cur_psn == e->start_psn)
		return base | (e->cur_psn == e->end_psn ? ROCE_RC_READ_RESP_ONLY
							: ROCE_RC_READ_RESP_FIRST);
	return base |
	       (e->cur_psn == e->end_psn ? ROCE_RC_READ_RESP_LAST : ROCE_RC_READ_RESP_MIDDLE);
}

static void
res_advance(struct roce_qp *qp, struct roce_res *e)
{
	if (e->cur_psn == e->end_psn) {
		e->pending = false;
		qp->res_pending--;
	}
	e->cur_psn = psn_add(e->cur_psn, 1);
}

/** The memory of a READ response could not be read: a NAK takes its place. */
static void
resp_read_failed(struct roce *r, struct roce_qp *qp, uint32_t psn)
{
	for (uint32_t i = 0; i < qp->res->size; i++)
		qp->res->e[i].pending = false;
	qp->res_pending = 0;
	qp->resp_closed = true;
	qp->say = ROCE_SAY_NOTHING;
	r->w->host.event(r->w->host.ctx, VERBS_EVENT_QP_ACCESS_ERR, &qp->v);
	roce_resp_say(r, qp, ROCE_SAY_FATAL, ROCE_NAK_REM_ACCESS, psn);
}

static void
resp_refuse(struct roce *r, struct roce_qp *qp, struct roce_res *e, uint32_t psn)
{
	if (!e->replay) {
		resp_read_failed(r, qp, psn);
	} else if (e->pending) { /* a repeated request is never NAKed */
		e->pending = false;
		qp->res_pending--;
	}
}

void
roce_resp_parked_failed(struct roce *r, struct roce_qp *qp)
{
	struct roce_res *e = roce_res_find(qp, qp->parked_psn);

	if (e)
		resp_refuse(r, qp, e, qp->parked_psn);
}

static enum verbs_io_result
read_gather(struct roce *r, struct roce_qp *qp, struct roce_res *e, uint32_t off, uint32_t len,
	    struct roce_out *out, uint32_t *crc)
{
	struct mr_ref ref;
	enum mr_result res;

	if (len == 0)
		return VERBS_DONE;
	res = mr_check(r->w->mrs, e->rkey, e->pd, qp->v.qpn, e->va + off, len, MR_REMOTE_READ,
		       &ref);
	if (res != MR_OK) {
		counter_inc(&r->w->refused[res]);
		return VERBS_ERROR;
	}
	return verbs_gather_ref(r->w, &qp->v, &ref, e->rkey, 0, len, out->payload, crc);
}

static void
resp_read_sent(struct roce *r, struct roce_qp *qp, struct roce_res *e, uint32_t len)
{
	qp->v.deficit -= (int32_t)(len + ROCE_PKT_COST);
	if (unlikely(qp->paced))
		roce_cc_sent(r, qp, len + ROCE_PKT_COST);
	res_advance(qp, e);
}

static enum roce_tx_result
resp_read_packet(struct roce *r, struct roce_qp *qp, struct roce_res *e)
{
	uint32_t psn = e->cur_psn;
	uint32_t off = psn_sub(psn, e->first_psn) << qp->mtu_shift;
	uint32_t left = e->upto - off;
	uint32_t len = left < roce_mtu(qp) ? left : roce_mtu(qp);
	uint8_t opcode = read_opcode(qp, e);
	uint32_t state, *crc;
	struct roce_out out;

	roce_tx_open(r, qp, opcode, 0, psn, len, &out);
	if (roce_opcodes[opcode].aeth)
		roce_aeth_emit(out.ext, roce_resp_credits(qp), e->msn);
	crc = roce_tx_crc(&out, &state);
	switch (read_gather(r, qp, e, off, len, &out, crc)) {
	case VERBS_DONE:
		roce_tx_close(r, qp, &out, crc);
		break;
	case VERBS_PENDING:
		roce_tx_park(qp, &out, psn, true);
		resp_read_sent(r, qp, e, len);
		return ROCE_TX_PARKED;
	case VERBS_AGAIN:
		roce_tx_cancel(r, &out);
		return ROCE_TX_WAIT;
	case VERBS_ERROR:
		roce_tx_cancel(r, &out);
		resp_refuse(r, qp, e, psn);
		return ROCE_TX_ERROR;
	}
	resp_read_sent(r, qp, e, len);
	return ROCE_TX_SENT;
}

static enum roce_tx_result
resp_atomic_packet(struct roce *r, struct roce_qp *qp, struct roce_res *e)
{
	struct roce_out out;

	roce_tx_open(r, qp, ROCE_RC_ATOMIC_ACK | qp->op_base, 0, e->first_psn, 0, &out);
	roce_aeth_emit(out.ext, roce_resp_credits(qp), e->msn);
	roce_atomack_emit(out.ext + sizeof(struct roce_aeth), e->orig);
	roce_tx_close(r, qp, &out, NULL);
	qp->v.deficit -= 64;
	res_advance(qp, e);
	return ROCE_TX_SENT;
}

/* ---- acknowledgements ---------- */

uint8_t
roce_resp_credits(struct roce_qp *qp)
{
	if (qp->v.srq || qp->v.rq.slots == NULL)
		return roce_syn_ack(ROCE_CREDIT_CODE_NONE);
	return roce_syn_ack(roce_credit_encode(verbs_rq_count(&qp->v)));
}

void
roce_ack_enqueue(struct roce *r, struct roce_qp *qp)
{
	if (qp->on_ack_list)
		return;
	qp->on_ack_list = true;
	qp->ack_next = r->ack_list;
	r->ack_list = qp;
}

void
roce_resp_say(struct roce *r, struct roce_qp *qp, enum roce_say say, uint8_t syndrome, uint32_t psn)
{
	if (qp->say == ROCE_SAY_FATAL)
		return;
	/* What is due already says more, or names a hole that this does not fill. */
	if (say == ROCE_SAY_ACK && qp->say != ROCE_SAY_NOTHING && psn_before(psn, qp->say_psn))
		return;
	qp->say = (uint8_t)say;
	qp->syndrome = syndrome;
	qp->say_psn = psn;
	roce_ack_enqueue(r, qp);
}

static void
speak_count(struct roce *r, struct roce_qp *qp)
{
	if (qp->say == ROCE_SAY_ACK) {
		roce_count(r, ROCE_C_ACK_SENT);
		return;
	}
	roce_count(r, roce_counter_of_syndrome(qp->syndrome));
	if (roce_syn_is(qp->syndrome, ROCE_SYN_RNR))
		qp->cold->rnrs_sent++;
	else
		qp->cold->naks_sent++;
}

bool
roce_resp_speak(struct roce *r, struct roce_qp *qp)
{
	uint8_t say = qp->say, syndrome = qp->syndrome;
	struct roce_out out;

	if (say == ROCE_SAY_NOTHING)
		return true;
	if (!roce_tx_ready(r, qp))
		return false;
	if (say == ROCE_SAY_ACK)
		syndrome = roce_resp_credits(qp);
	roce_tx_open(r, qp, ROCE_RC_ACK | qp->op_base, 0, qp->say_psn, 0, &out);
	roce_aeth_emit(out.ext, syndrome, qp->msn);
	roce_tx_close(r, qp, &out, NULL);
	speak_count(r, qp);
	qp->say = ROCE_SAY_NOTHING;
	if (say == ROCE_SAY_FATAL)
		roce_qp_fail(r, qp);
	return true;
}

/* ---- driving ---------- */

static enum roce_tx_result
resp_packet(struct roce *r, struct roce_qp *qp, struct roce_res *e)
{
	if (!roce_tx_ready(r, qp))
		return ROCE_TX_FULL;
	if (e->type == ROCE_RES_ATOMIC)
		return resp_atomic_packet(r, qp, e);
	if (unlikely(qp->paced) && !roce_cc_may_send(r, qp))
		return ROCE_TX_WAIT;
	return resp_read_packet(r, qp, e);
}

/** VERBS_RUN_IDLE: all responses have left. */
enum verbs_run
roce_resp_run(struct roce *r, struct roce_qp *qp)
{
	enum roce_tx_result res;
	struct roce_res *e;

	while (qp->res_pending > 0) {
		if (qp->v.deficit <= 0)
			return VERBS_RUN_MORE;
		e = res_first_pending(qp);
		if (e == NULL)
			break;
		do {
			res = resp_packet(r, qp, e);
			qp->resp_burst += res == ROCE_TX_SENT && qp->resp_burst < ROCE_RESP_BURST;
		} while (res == ROCE_TX_SENT && e->pending && qp->v.deficit > 0);
		if (res == ROCE_TX_FULL)
			return net_tx_room(r->cfg.tx[qp->port]) ? VERBS_RUN_MORE : VERBS_RUN_FULL;
		if (res == ROCE_TX_WAIT || res == ROCE_TX_PARKED)
			return VERBS_RUN_WAIT;
	}
	return VERBS_RUN_IDLE;
}
