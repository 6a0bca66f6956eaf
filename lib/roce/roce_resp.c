/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responder, receiving side: a request runs through a chain of checks, each of which names the
 * next state, in the order of IBTA 9.7.4 (docs/wire.md lists it). A packet that passes all is
 * executed, and only then do ePSN and MSN move. Responses are roce_resp_tx.c's.
 */
#include <errno.h>

#include "roce_priv.h"

enum resp_state {
	RESP_PSN,
	RESP_SEQUENCE,
	RESP_PERMITTED,
	RESP_RESOURCE,
	RESP_LENGTH,
	RESP_KEY,
	RESP_EXECUTE,
	RESP_COMMIT,
	RESP_DUPLICATE,
	RESP_AHEAD,
	RESP_RNR,
	RESP_ERR_INVALID, /* NAK 0x61 */
	RESP_ERR_ACCESS,  /* NAK 0x62 */
	RESP_ERR_OP,	  /* NAK 0x63 */
	RESP_DROP,	  /* as if it had been lost */
	RESP_KEPT,
	RESP_DONE,
	RESP_STATE_COUNT
};

/** A request on its way through the checks. */
struct resp {
	struct roce *r;
	struct roce_qp *qp;
	struct roce_rx *rx;
	const struct roce_pkt *p;
	roce_mask mask;
	enum wc_status why; /* of the receive request, when it fails */
	uint32_t pd;	    /* that keys must belong to */
	struct verbs_srq *srq; /* XRC: that the request names */
	struct mr_ref ref;
	uint64_t original;
};

static inline bool
resp_is(const struct resp *c, roce_mask m)
{
	return roce_any(c->mask, m);
}

/** Bytes of the message before this packet. */
static inline uint32_t
resp_base(const struct resp *c)
{
	return resp_is(c, ROCE_START) ? 0 : c->qp->msg_done;
}

/* ---- checks ---------- */

static enum resp_state
resp_check_psn(struct resp *c)
{
	struct roce_qp *qp = c->qp;
	int32_t d = psn_diff(c->p->psn, qp->epsn);

	if (unlikely(qp->resp_closed))
		return RESP_DROP;
	if (base_bug(BUG_PSN_WRAP))
		d = (int32_t)c->p->psn - (int32_t)qp->epsn;
	if (likely(d == 0)) {
		qp->nak_sent = false;
		return RESP_SEQUENCE;
	}
	return d < 0 ? RESP_DUPLICATE : RESP_AHEAD;
}

/** Middle and Last go on with a message of their kind; anything else begins one (C-36). */
static enum resp_state
resp_check_sequence(struct resp *c)
{
	uint32_t kind = c->mask.bits & (ROCE_B_SEND | ROCE_B_WRITE);

	if (resp_is(c, ROCE_START))
		return c->qp->msg == 0 ? RESP_PERMITTED : RESP_ERR_INVALID;
	return c->qp->msg != 0 && c->qp->msg == kind ? RESP_PERMITTED : RESP_ERR_INVALID;
}

/** The rights that a request needs, of the QP and of the key; 0: none, or it makes no sense. */
static uint32_t
resp_rights(const struct resp *c)
{
	if (resp_is(c, roce_or(ROCE_WRITE, ROCE_ATOMIC_WRITE)))
		return MR_REMOTE_WRITE;
	if (resp_is(c, ROCE_READ_REQ))
		return MR_REMOTE_READ;
	if (resp_is(c, ROCE_ATOMIC))
		return MR_REMOTE_ATOMIC;
	return resp_is(c, ROCE_FLUSH) ? roce_flush_rights(c->p) : 0;
}

/** XRC: an SRQ of the QP's domain, in every request; its PD is the request's (A14). */
static bool
resp_check_xrc(struct resp *c)
{
	c->srq = roce_xrc_request(c->r, c->qp, c->p);
	if (c->srq)
		c->pd = c->srq->pd;
	return c->srq != NULL;
}

static enum resp_state
resp_check_permitted(struct resp *c)
{
	uint32_t need;

	if (unlikely(resp_is(c, ROCE_XRCETH)) && !resp_check_xrc(c))
		return RESP_ERR_INVALID;
	if (resp_is(c, ROCE_SEND))
		return RESP_RESOURCE;
	need = resp_rights(c);
	return need != 0 && (c->qp->v.access & need) == need ? RESP_RESOURCE : RESP_ERR_INVALID;
}

static enum resp_state
resp_take_rwqe(struct resp *c)
{
	struct roce_qp *qp = c->qp;
	int ret;

	if (qp->rwqe_used)
		return RESP_LENGTH;
	if (unlikely(c->srq != NULL))
		ret = verbs_srq_fetch(c->r->w, &qp->v, c->srq, &qp->rwqe);
	else
		ret = verbs_rq_fetch(c->r->w, &qp->v, &qp->rwqe);
	if (ret == 0 || ret == -EAGAIN)
		return RESP_RNR;
	if (ret < 0)
		return RESP_ERR_OP;
	qp->rwqe_used = true;
	if (qp->rwqe.valid)
		return RESP_LENGTH;
	c->why = WC_LOC_QP_OP_ERR;
	return RESP_ERR_OP;
}

static enum resp_state
resp_check_resource(struct resp *c)
{
	struct roce_qp *qp = c->qp;

	if (resp_is(c, ROCE_NEEDS_RWQE))
		return resp_take_rwqe(c);
	if (resp_is(c, ROCE_ANSWERED) && !roce_res_room(qp))
		return RESP_ERR_INVALID; /* more than was agreed upon */
	return RESP_LENGTH;
}

static enum resp_state
resp_check_write_len(struct resp *c)
{
	uint32_t left = resp_is(c, ROCE_START) ? c->p->dma_len : c->qp->msg_left;

	if (left > ROCE_MAX_MSG)
		return RESP_ERR_INVALID;
	if (resp_is(c, ROCE_END)) {
		if (c->p->payload_len != left && !base_bug(BUG_LAST_LEN))
			return RESP_ERR_INVALID;
	} else if (c->p->payload_len >= left) {
		return RESP_ERR_INVALID;
	}
	return RESP_KEY;
}

static enum resp_state
resp_check_length(struct resp *c)
{
	struct roce_qp *qp = c->qp;

	if (!roce_payload_ok(c->p->info, c->p->payload_len, c->p->pad, roce_mtu(qp)))
		return RESP_ERR_INVALID;
	if (resp_is(c, ROCE_SEND)) {
		if (c->p->payload_len <= qp->rwqe.length - resp_base(c))
			return RESP_EXECUTE;
		c->why = WC_LOC_LEN_ERR;
		return RESP_ERR_INVALID;
	}
	if (resp_is(c, ROCE_WRITE))
		return resp_check_write_len(c);
	if (resp_is(c, ROCE_READ_REQ))
		return c->p->dma_len <= ROCE_MAX_MSG &&
				       roce_num_psns(qp, c->p->dma_len) <= ROCE_PSN_WINDOW
			       ? RESP_KEY
			       : RESP_ERR_INVALID;
	if (resp_is(c, roce_or(ROCE_FLUSH, ROCE_ATOMIC_WRITE)))
		return roce_note_len_ok(c->p) ? RESP_KEY : RESP_ERR_INVALID;
	return c->p->va % sizeof(uint64_t) ? RESP_ERR_INVALID : RESP_KEY; /* C-37 */
}

/** The whole range at First, so that nothing of a bad message is written (C-33). */
static enum resp_state
resp_check_key(struct resp *c)
{
	struct roce_qp *qp = c->qp;
	uint64_t va = c->p->va, len = c->p->dma_len;
	uint32_t key = c->p->rkey;
	enum mr_result res;

	if (resp_is(c, ROCE_WRITE) && !resp_is(c, ROCE_START)) {
		va = qp->msg_va + qp->msg_done;
		len = c->p->payload_len;
		key = qp->msg_rkey;
	} else if (resp_is(c, ROCE_ATOMIC)) {
		len = sizeof(uint64_t);
	}
	if (unlikely(resp_is(c, ROCE_FLUSH)))
		res = roce_flush_check(c->r, qp, c->p, &c->ref);
	else if (len == 0)
		return RESP_EXECUTE; /* neither key nor address matters (C-16) */
	else
		res = mr_check(c->r->w->mrs, key, c->pd, qp->v.qpn, va, len, resp_rights(c),
			       &c->ref);
	if (likely(res == MR_OK))
		return RESP_EXECUTE;
	counter_inc(&c->r->w->refused[res]);
	return RESP_ERR_ACCESS;
}

/* ---- execution ---------- */

static enum resp_state
resp_execute(struct resp *c)
{
	struct roce_qp *qp = c->qp;
	struct verbs_worker *w = c->r->w;
	const struct roce_pkt *p = c->p;
	enum verbs_io_result res = VERBS_DONE;
	enum resp_state failed = RESP_ERR_ACCESS;

	if (resp_is(c, ROCE_SEND)) {
		c->why = WC_LOC_PROT_ERR;
		failed = RESP_ERR_OP;
		res = verbs_scatter(w, &qp->v, verbs_rwqe_sgl(&qp->rwqe), resp_base(c),
				    p->payload, p->payload_len, &c->why);
	} else if (resp_is(c, ROCE_WRITE)) {
		if (p->payload_len)
			res = verbs_place(w, &qp->v, &c->ref,
					  resp_is(c, ROCE_START) ? p->rkey : qp->msg_rkey, 0,
					  p->payload, p->payload_len);
	} else if (resp_is(c, ROCE_ATOMIC)) {
		bool cas = p->opcode == (ROCE_RC_CMP_SWAP | qp->op_base);

		failed = RESP_ERR_INVALID;
		res = verbs_atomic(w, &qp->v, &c->ref, p->rkey, cas,
				   cas ? p->compare : p->swap_add, p->swap_add, &c->original);
	} else if (resp_is(c, ROCE_ATOMIC_WRITE)) {
		failed = RESP_ERR_INVALID;
		res = verbs_atomic_write(w, &qp->v, &c->ref, p->rkey, p->payload);
	} else if (resp_is(c, ROCE_FLUSH)) {
		roce_flush_done();
	}
	switch (res) {
	case VERBS_DONE:
		return RESP_COMMIT;
	case VERBS_PENDING:
		roce_hold_placing(c->r, qp, c->rx);
		return RESP_KEPT;
	case VERBS_AGAIN:
		return roce_hold_again(c->r, qp, c->rx) ? RESP_KEPT : RESP_DROP;
	case VERBS_ERROR:
		break;
	}
	return failed;
}

/** Remember how far the message has come. */
static void
resp_note_message(struct resp *c)
{
	struct roce_qp *qp = c->qp;

	if (resp_is(c, ROCE_START)) {
		qp->msg = (uint8_t)(c->mask.bits & (ROCE_B_SEND | ROCE_B_WRITE));
		qp->msg_done = 0;
		qp->msg_va = c->p->va;
		qp->msg_rkey = c->p->rkey;
		qp->msg_left = c->p->dma_len;
	}
	qp->msg_done += c->p->payload_len;
	qp->msg_left -= c->p->payload_len;
	counter_add(&c->r->counter[ROCE_C_RX_BYTES], c->p->payload_len);
	qp->epsn = psn_add(qp->epsn, 1);
	if (resp_is(c, ROCE_END)) {
		qp->msg = 0;
		qp->msn = psn_add(qp->msn, 1);
	}
}

static void
resp_complete(struct resp *c)
{
	struct roce_qp *qp = c->qp;
	struct verbs_recv_done d;

	roce_recv_fill(qp, c->p, &d);
	roce_recv_complete(c->r, qp, &d);
	if (base_bug(BUG_DOUBLE_COMPLETION))
		roce_recv_complete(c->r, qp, &d);
	roce_qp_check_cqs(c->r, qp);
}

/** A READ, or its like, was accepted: its answer is due, and says what an ACK would have said. */
static void
resp_add_resource(struct resp *c)
{
	struct roce_qp *qp = c->qp;
	struct roce_res *e = roce_res_new(qp);
	uint32_t psns = 1;

	if (e == NULL)
		return; /* resp_check_resource() saw that there is one */
	qp->msn = psn_add(qp->msn, 1); /* a READ counts when it is accepted (C9-148) */
	*e = (struct roce_res){.pending = true, .first_psn = c->p->psn, .msn = qp->msn};
	if (resp_is(c, ROCE_READ_REQ)) {
		e->type = ROCE_RES_READ;
		e->va = c->p->va;
		e->rkey = c->p->rkey;
		e->pd = c->pd;
		e->length = e->upto = c->p->dma_len;
		psns = roce_num_psns(qp, c->p->dma_len);
	} else if (resp_is(c, ROCE_ATOMIC)) {
		e->type = ROCE_RES_ATOMIC;
		e->orig = c->original;
	} else {
		e->type = ROCE_RES_NOTE;
		counter_add(&c->r->counter[ROCE_C_RX_BYTES], c->p->payload_len);
	}
	e->start_psn = e->cur_psn = e->first_psn;
	e->last_psn = e->end_psn = psn_add(e->first_psn, psns - 1);
	qp->epsn = psn_add(qp->epsn, psns);
	qp->res_pending++;
	/* the answer acknowledges all before; a NAK not said yet named a PSN that has come */
	if (qp->say == ROCE_SAY_ACK || qp->say == ROCE_SAY_NAK)
		qp->say = ROCE_SAY_NOTHING;
	verbs_run_add(c->r->w, &qp->v);
}

/** The rest, once the message's data and key are dealt with. */
static enum resp_state
resp_finish(struct resp *c)
{
	struct roce_qp *qp = c->qp;

	if (resp_is(c, ROCE_ANSWERED)) {
		resp_add_resource(c);
		return RESP_DONE;
	}
	resp_note_message(c);
	if (resp_is(c, ROCE_RECV_COMP))
		resp_complete(c);
	/* ePSN has moved: what was to be said and is not said yet would be out of date */
	if ((c->p->ackreq || qp->say != ROCE_SAY_NOTHING) && qp->v.state != RING_QPS_ERR)
		roce_resp_say(c->r, qp, ROCE_SAY_ACK, 0, c->p->psn);
	return RESP_DONE;
}

/** The data is placed. A key to be ended is, before the completion can be seen (C-41). */
static enum resp_state
resp_commit(struct resp *c)
{
	struct roce_qp *qp = c->qp;
	struct roce *r = c->r;
	enum mr_result res;

	if (likely(!resp_is(c, ROCE_INV)) || base_bug(BUG_KEY_AFTER_INV))
		return resp_finish(c);
	res = mr_invalidate_remote(r->w->mrs, c->p->inv_rkey, c->pd, qp->v.qpn);
	if (res != MR_OK) {
		counter_inc(&r->w->refused[res]);
		c->why = WC_REM_INV_REQ_ERR;
		return RESP_ERR_ACCESS;
	}
	qp->cold->inv_token = roce_local_grace(r, c->p->inv_rkey);
	if (roce_local_passed(r, qp->cold->inv_token) && !mr_busy(r->w->mrs, c->p->inv_rkey))
		return resp_finish(c);
	qp->inv_wait = true;
	roce_hold_placing(r, qp, c->rx);
	roce_timer_set(r, qp, ROCE_T_LOCAL, r->now + ROCE_LOCAL_POLL_NS);
	return RESP_KEPT;
}

/* ---- other ways out ---------- */

/** The part of an earlier READ that is asked for again, from today's memory (C-19). */
static void
resp_repeat_read(struct resp *c, struct roce_res *e)
{
	uint32_t off = psn_sub(c->p->psn, e->first_psn) << c->qp->mtu_shift;
	uint32_t last = psn_add(c->p->psn, roce_num_psns(c->qp, c->p->dma_len) - 1);

	if (c->p->rkey != e->rkey || c->p->va != e->va + off || off > e->length ||
	    c->p->dma_len > e->length - off)
		return;
	if (!e->pending) {
		e->pending = e->replay = true;
		c->qp->res_pending++;
		e->cur_psn = c->p->psn;
		e->end_psn = psn_sub(last, 1);
	}
	/* What is under way already and what is asked for now, in one. */
	if (psn_after(last, e->end_psn)) {
		e->end_psn = last;
		e->upto = off + c->p->dma_len;
	}
	if (psn_diff(c->p->psn, e->cur_psn) <= 0)
		e->start_psn = e->cur_psn = c->p->psn;
	verbs_run_add(c->r->w, &c->qp->v);
}

/** Executed once, answered as often as it is asked (C-20). */
static void
resp_repeat_once(struct resp *c, struct roce_res *e)
{
	if (base_bug(BUG_DUP_ATOMIC) && resp_check_key(c) == RESP_EXECUTE)
		resp_execute(c);
	if (e->pending)
		return;
	e->pending = e->replay = true;
	e->cur_psn = e->first_psn;
	c->qp->res_pending++;
	verbs_run_add(c->r->w, &c->qp->v);
}

static enum resp_state
resp_duplicate(struct resp *c)
{
	struct roce_qp *qp = c->qp;
	struct roce_res *e;

	roce_count(c->r, ROCE_C_DUPLICATE);
	if (resp_is(c, roce_or(ROCE_SEND, ROCE_WRITE))) {
		/* Never past a READ, whose response may be what was lost (C-22). */
		roce_resp_say(c->r, qp, ROCE_SAY_ACK, 0, roce_res_ack_limit(qp, c->p->psn));
		return RESP_DONE;
	}
	e = roce_res_find(qp, c->p->psn);
	if (e == NULL)
		return RESP_DONE;
	if (resp_is(c, ROCE_READ_REQ) && e->type == ROCE_RES_READ)
		resp_repeat_read(c, e);
	else if ((resp_is(c, ROCE_ATOMIC) && e->type == ROCE_RES_ATOMIC) ||
		 (resp_is(c, roce_or(ROCE_FLUSH, ROCE_ATOMIC_WRITE)) && e->type == ROCE_RES_NOTE))
		resp_repeat_once(c, e);
	return RESP_DONE;
}

static void
resp_say_hole(struct roce *r, struct roce_qp *qp)
{
	uint32_t psn = base_bug(BUG_STALE_EPSN) ? psn_sub(qp->epsn, 1) : qp->epsn;

	if (qp->nak_sent)
		return;
	qp->nak_sent = true; /* once, until ePSN comes (C-17) */
	roce_resp_say(r, qp, ROCE_SAY_NAK, ROCE_NAK_PSN_SEQ, psn);
}

static enum resp_state
resp_ahead(struct resp *c)
{
	struct roce_qp *qp = c->qp;
	bool kept = !c->r->cfg.strict_responder &&
		    roce_hold_insert(c->r, qp, &qp->behind_hole, c->rx);

	roce_count(c->r, ROCE_C_OUT_OF_SEQUENCE);
	roce_count(c->r, kept ? ROCE_C_OOO_KEPT : ROCE_C_OOO_DROPPED);
	resp_say_hole(c->r, qp);
	return kept ? RESP_KEPT : RESP_DONE;
}

static enum resp_state
resp_rnr(struct resp *c)
{
	c->qp->nak_sent = true;
	roce_resp_say(c->r, c->qp, ROCE_SAY_NAK, roce_syn_rnr(c->qp->min_rnr_timer), c->p->psn);
	return RESP_DONE;
}

/** The QP's end: the receive request in use tells why, else an event; then the NAK. */
static enum resp_state
resp_error(struct resp *c, uint8_t syndrome)
{
	struct roce_qp *qp = c->qp;
	struct verbs_recv_done d = {.status = c->why};

	if (d.status == WC_SUCCESS)
		d.status = roce_status_of_syndrome(syndrome);
	if (qp->rwqe_used) {
		roce_recv_complete(c->r, qp, &d);
	} else {
		c->r->w->host.event(c->r->w->host.ctx, roce_event_of_syndrome(syndrome), &qp->v);
	}
	qp->resp_closed = true;
	roce_resp_say(c->r, qp, ROCE_SAY_FATAL, syndrome, c->p->psn);
	return RESP_DONE;
}

/* ---- the machine ---------- */

static enum resp_state
resp_step(struct resp *c, enum resp_state s)
{
	switch (s) {
	case RESP_PSN:
		return resp_check_psn(c);
	case RESP_SEQUENCE:
		return resp_check_sequence(c);
	case RESP_PERMITTED:
		return resp_check_permitted(c);
	case RESP_RESOURCE:
		return resp_check_resource(c);
	case RESP_LENGTH:
		return resp_check_length(c);
	case RESP_KEY:
		return resp_check_key(c);
	case RESP_EXECUTE:
		return resp_execute(c);
	case RESP_COMMIT:
		return resp_commit(c);
	case RESP_DUPLICATE:
		return resp_duplicate(c);
	case RESP_AHEAD:
		return resp_ahead(c);
	case RESP_RNR:
		return resp_rnr(c);
	case RESP_ERR_INVALID:
		return resp_error(c, ROCE_NAK_INVALID_REQ);
	case RESP_ERR_ACCESS:
		return resp_error(c, ROCE_NAK_REM_ACCESS);
	case RESP_ERR_OP:
		return resp_error(c, ROCE_NAK_REM_OP);
	case RESP_DROP:
	case RESP_KEPT:
	case RESP_DONE:
	case RESP_STATE_COUNT:
		break;
	}
	return RESP_DONE;
}

/**
 * The way of nearly every packet through the machine, unrolled: it saves the dispatch of each
 * state. Whatever turns off it goes on in resp_step().
 */
static inline enum resp_state
resp_usual(struct resp *c)
{
	enum resp_state s = resp_check_psn(c);

	if (likely(s == RESP_SEQUENCE))
		s = resp_check_sequence(c);
	if (likely(s == RESP_PERMITTED))
		s = resp_check_permitted(c);
	if (likely(s == RESP_RESOURCE))
		s = resp_check_resource(c);
	if (likely(s == RESP_LENGTH))
		s = resp_check_length(c);
	if (s == RESP_KEY)
		s = resp_check_key(c);
	if (likely(s == RESP_EXECUTE))
		s = resp_execute(c);
	if (likely(s == RESP_COMMIT))
		s = resp_commit(c);
	return s;
}

static enum roce_rx_result
resp_machine(struct roce *r, struct roce_rx *rx, enum resp_state s, uint64_t original)
{
	struct resp c;

	c.r = r;
	c.qp = rx->qp;
	c.rx = rx;
	c.p = &rx->p;
	c.mask = rx->p.info->mask;
	c.why = WC_SUCCESS;
	c.pd = rx->qp->v.pd;
	c.srq = NULL;
	c.original = original;
	if (unlikely(s != RESP_PSN && rx->qp->v.type == VERBS_QPT_XRC_RECV)) {
		c.srq = roce_xrc_message(r, rx->qp);
		c.pd = c.srq ? c.srq->pd : 0; /* no PD's number */
	}
	if (s == RESP_ERR_OP)
		c.why = WC_LOC_PROT_ERR;
	if (likely(s == RESP_PSN))
		s = resp_usual(&c);
	while (s < RESP_DROP)
		s = resp_step(&c, s);
	return s == RESP_KEPT ? ROCE_RX_KEPT : ROCE_RX_FREE;
}

enum roce_rx_result
roce_resp_packet(struct roce *r, struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;
	enum roce_rx_result res;

	roce_contact(r, qp);
	res = resp_machine(r, rx, RESP_PSN, 0);
	if (unlikely(qp->behind_hole.head != NULL))
		roce_resp_drain(r, qp);
	return res;
}

enum roce_rx_result
roce_resp_placed(struct roce *r, struct roce_rx *rx, int status, uint64_t original)
{
	enum resp_state s = RESP_COMMIT;

	if (status)
		s = roce_any(rx->p.info->mask, ROCE_SEND) ? RESP_ERR_OP : RESP_ERR_ACCESS;
	return resp_machine(r, rx, s, original);
}

void
roce_resp_inv_poll(struct roce *r, struct roce_qp *qp)
{
	struct roce_rx rx;
	struct resp c;

	roce_rx_reparse(&rx, qp, qp->placing);
	if (!roce_local_passed(r, qp->cold->inv_token) || mr_busy(r->w->mrs, rx.p.inv_rkey)) {
		roce_timer_set(r, qp, ROCE_T_LOCAL, r->now + ROCE_LOCAL_POLL_NS);
		return;
	}
	qp->inv_wait = false;
	c = (struct resp){.r = r, .qp = qp, .rx = &rx, .p = &rx.p, .mask = rx.p.info->mask};
	resp_finish(&c);
	rte_pktmbuf_free(roce_unhold_placing(r, qp));
	roce_resp_drain(r, qp);
	if (qp->rx_again || roce_rx_resume(r, qp))
		verbs_run_add(r->w, &qp->v);
}

void
roce_resp_drain(struct roce *r, struct roce_qp *qp)
{
	struct roce_rx rx;

	while (qp->behind_hole.head && qp->placing == NULL && !qp->rx_again &&
	       !qp->resp_closed) {
		uint32_t psn = roce_hold_psn(&qp->behind_hole);

		if (psn_after(psn, qp->epsn)) {
			resp_say_hole(r, qp);
			return;
		}
		roce_hold_pop(r, qp, &qp->behind_hole, &rx);
		if (base_bug(BUG_HELD_LOST) && psn == qp->epsn)
			qp->epsn = psn_add(qp->epsn, 1);
		if (psn_before(psn, qp->epsn) ||
		    resp_machine(r, &rx, RESP_PSN, 0) == ROCE_RX_FREE)
			rte_pktmbuf_free(rx.m);
	}
}
