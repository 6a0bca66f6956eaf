/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC: the receiver, and when a request of ours is done (IBTA 9.8). Nothing is answered. A
 * message of which a packet is missing or refused is dropped whole, without a word, and the next
 * First or Only begins anew whatever its PSN (C-47). The receive request of a dropped message is
 * the next one's, from its start; one out of a shared queue completes in error, since nobody
 * would bring it back (classes D1 and E of IBTA 9.9.3). Only the receive request's own fault
 * fails the QP (class A).
 */
#include <errno.h>

#include "roce_priv.h"

enum uc_state {
	UC_SEQUENCE,
	UC_PERMITTED,
	UC_RESOURCE,
	UC_LENGTH,
	UC_KEY,
	UC_EXECUTE,
	UC_COMMIT,
	UC_REFUSE, /* the message, with `why` */
	UC_FAIL,   /* the QP, with `why` */
	UC_DROP,
	UC_KEPT,
	UC_DONE,
};

/** A packet on its way through the checks. */
struct uc {
	struct roce *r;
	struct roce_qp *qp;
	struct roce_rx *rx;
	const struct roce_pkt *p;
	roce_mask mask;
	enum wc_status why; /* of the receive request, when it fails */
	struct mr_ref ref;
};

static inline bool
uc_is(const struct uc *c, roce_mask m)
{
	return roce_any(c->mask, m);
}

/** Bytes of the message before this packet. */
static inline uint32_t
uc_base(const struct uc *c)
{
	return uc_is(c, ROCE_START) ? 0 : c->qp->msg_done;
}

/* ---- requester ---------- */

void
roce_uc_sent(struct roce *r, struct roce_qp *qp)
{
	qp->una = qp->ack_max = qp->snd_max;
	qp->inflight = 0;
	roce_comp_reap(r, qp);
}

/* ---- ends of a message ---------- */

static void
uc_complete(struct uc *c, const struct verbs_recv_done *d)
{
	struct roce_qp *qp = c->qp;

	qp->rwqe_used = false;
	verbs_complete_recv(c->r->w, &qp->v, &qp->rwqe, d);
	roce_qp_check_cqs(c->r, qp);
}

/** What there was of a message is worth nothing; its receive request may be. */
static void
uc_abandon(struct uc *c, enum wc_status why)
{
	struct roce_qp *qp = c->qp;

	qp->msg = 0;
	if (base_bug(BUG_UC_RECV))
		qp->rwqe_used = false;
	if (qp->rwqe_used && qp->v.srq)
		uc_complete(c, &(struct verbs_recv_done){.status = why});
}

static enum uc_state
uc_drop(struct uc *c)
{
	roce_count(c->r, ROCE_C_UC_DROPPED);
	return UC_DONE;
}

static enum uc_state
uc_refuse(struct uc *c)
{
	uc_abandon(c, c->why);
	return UC_DROP;
}

static enum uc_state
uc_fail(struct uc *c)
{
	struct roce_qp *qp = c->qp;

	if (qp->rwqe_used)
		uc_complete(c, &(struct verbs_recv_done){.status = c->why});
	else
		c->r->w->host.event(c->r->w->host.ctx, VERBS_EVENT_QP_FATAL, &qp->v);
	roce_qp_fail(c->r, qp);
	return UC_DONE;
}

/* ---- checks ---------- */

/** First and Only begin a message wherever they stand; all else goes on with one of its kind. */
static enum uc_state
uc_check_sequence(struct uc *c)
{
	struct roce_qp *qp = c->qp;
	uint32_t kind = c->mask.bits & (ROCE_B_SEND | ROCE_B_WRITE);
	bool expected = c->p->psn == qp->epsn;

	qp->epsn = psn_add(c->p->psn, 1);
	if (unlikely(!expected))
		roce_count(c->r, ROCE_C_OUT_OF_SEQUENCE);
	if (likely(uc_is(c, ROCE_START))) {
		if (unlikely(qp->msg != 0))
			uc_abandon(c, WC_REM_INV_REQ_ERR);
		return UC_PERMITTED;
	}
	if (likely((expected || base_bug(BUG_UC_GAP)) && qp->msg == kind))
		return UC_PERMITTED;
	return UC_REFUSE;
}

static enum uc_state
uc_check_permitted(struct uc *c)
{
	if (uc_is(c, ROCE_SEND) || (c->qp->v.access & MR_REMOTE_WRITE))
		return UC_RESOURCE;
	return UC_REFUSE;
}

static enum uc_state
uc_check_resource(struct uc *c)
{
	struct roce_qp *qp = c->qp;
	int ret;

	if (!uc_is(c, ROCE_NEEDS_RWQE) || qp->rwqe_used)
		return UC_LENGTH;
	ret = verbs_rq_fetch(c->r->w, &qp->v, &qp->rwqe);
	if (unlikely(ret == 0 || ret == -EAGAIN))
		return UC_REFUSE; /* C-48 */
	if (unlikely(ret < 0))
		return UC_FAIL;
	qp->rwqe_used = true;
	if (likely(qp->rwqe.valid))
		return UC_LENGTH;
	c->why = WC_LOC_QP_OP_ERR;
	return UC_FAIL;
}

static enum uc_state
uc_check_write_len(const struct uc *c)
{
	uint32_t left = uc_is(c, ROCE_START) ? c->p->dma_len : c->qp->msg_left;
	bool fits = uc_is(c, ROCE_END) ? c->p->payload_len == left : c->p->payload_len < left;

	return fits && left <= ROCE_MAX_MSG ? UC_KEY : UC_REFUSE;
}

static enum uc_state
uc_check_length(struct uc *c)
{
	if (unlikely(!roce_payload_ok(c->p->info, c->p->payload_len, c->p->pad, roce_mtu(c->qp))))
		return UC_REFUSE;
	if (uc_is(c, ROCE_WRITE))
		return uc_check_write_len(c);
	return c->p->payload_len <= c->qp->rwqe.length - uc_base(c) ? UC_EXECUTE : UC_REFUSE;
}

/** The whole range at First, so that nothing of a bad message is written (C-33). */
static enum uc_state
uc_check_key(struct uc *c)
{
	struct roce_qp *qp = c->qp;
	bool start = uc_is(c, ROCE_START);
	uint64_t va = start ? c->p->va : qp->msg_va + qp->msg_done;
	uint32_t len = start ? c->p->dma_len : c->p->payload_len;
	enum mr_result res;

	if (len == 0)
		return UC_EXECUTE; /* neither key nor address matters (C-16) */
	res = mr_check(c->r->w->mrs, start ? c->p->rkey : qp->msg_rkey, qp->v.pd, qp->v.qpn, va,
		       len, MR_REMOTE_WRITE, &c->ref);
	if (likely(res == MR_OK))
		return UC_EXECUTE;
	counter_inc(&c->r->w->refused[res]);
	c->why = WC_REM_ACCESS_ERR;
	return UC_REFUSE;
}

/* ---- execution ---------- */

/** The packet is the first to be looked at again, as if it came now. */
static enum uc_state
uc_again(struct uc *c)
{
	if (!roce_hold_again(c->r, c->qp, c->rx))
		return UC_REFUSE;
	c->qp->epsn = c->p->psn;
	return UC_KEPT;
}

static enum uc_state
uc_execute(struct uc *c)
{
	struct roce_qp *qp = c->qp;
	const struct roce_pkt *p = c->p;
	enum verbs_io_result res = VERBS_DONE;

	if (uc_is(c, ROCE_SEND))
		res = verbs_scatter(c->r->w, &qp->v, verbs_rwqe_sgl(&qp->rwqe), uc_base(c),
				    p->payload, p->payload_len, &c->why);
	else if (p->payload_len)
		res = verbs_place(c->r->w, &qp->v, &c->ref,
				  uc_is(c, ROCE_START) ? p->rkey : qp->msg_rkey, 0, p->payload,
				  p->payload_len);
	switch (res) {
	case VERBS_DONE:
		return UC_COMMIT;
	case VERBS_PENDING:
		roce_hold_placing(c->r, qp, c->rx);
		return UC_KEPT;
	case VERBS_AGAIN:
		return uc_again(c);
	case VERBS_ERROR:
		break;
	}
	return uc_is(c, ROCE_SEND) ? UC_FAIL : UC_REFUSE;
}

/** The data is placed: remember how far the message has come, tell of it when it is whole. */
static enum uc_state
uc_commit(struct uc *c)
{
	struct roce_qp *qp = c->qp;
	const struct roce_pkt *p = c->p;
	struct verbs_recv_done d;

	if (uc_is(c, ROCE_START)) {
		qp->msg = (uint8_t)(c->mask.bits & (ROCE_B_SEND | ROCE_B_WRITE));
		qp->msg_done = 0;
		qp->msg_va = p->va;
		qp->msg_rkey = p->rkey;
		qp->msg_left = p->dma_len;
	}
	qp->msg_done += p->payload_len;
	qp->msg_left -= p->payload_len;
	counter_add(&c->r->counter[ROCE_C_RX_BYTES], p->payload_len);
	if (!uc_is(c, ROCE_END))
		return UC_DONE;
	qp->msg = 0;
	qp->msn = psn_add(qp->msn, 1);
	if (uc_is(c, ROCE_RECV_COMP)) {
		roce_recv_fill(qp, p, &d);
		uc_complete(c, &d);
	}
	return UC_DONE;
}

/* ---- the machine ---------- */

static enum uc_state
uc_step(struct uc *c, enum uc_state s)
{
	switch (s) {
	case UC_SEQUENCE:
		return uc_check_sequence(c);
	case UC_PERMITTED:
		return uc_check_permitted(c);
	case UC_RESOURCE:
		return uc_check_resource(c);
	case UC_LENGTH:
		return uc_check_length(c);
	case UC_KEY:
		return uc_check_key(c);
	case UC_EXECUTE:
		return uc_execute(c);
	case UC_COMMIT:
		return uc_commit(c);
	case UC_REFUSE:
		return uc_refuse(c);
	case UC_FAIL:
		return uc_fail(c);
	case UC_DROP:
		return uc_drop(c);
	case UC_KEPT:
	case UC_DONE:
		break;
	}
	return UC_DONE;
}

static enum roce_rx_result
uc_machine(struct roce *r, struct roce_rx *rx, enum uc_state s, enum wc_status why)
{
	struct uc c;

	c.r = r;
	c.qp = rx->qp;
	c.rx = rx;
	c.p = &rx->p;
	c.mask = rx->p.info->mask;
	c.why = why;
	while (s < UC_KEPT)
		s = uc_step(&c, s);
	return s == UC_KEPT ? ROCE_RX_KEPT : ROCE_RX_FREE;
}

enum roce_rx_result
roce_uc_packet(struct roce *r, struct roce_rx *rx)
{
	roce_contact(r, rx->qp);
	return uc_machine(r, rx, UC_SEQUENCE, WC_REM_INV_REQ_ERR);
}

enum roce_rx_result
roce_uc_placed(struct roce *r, struct roce_rx *rx, int status)
{
	if (status == 0)
		return uc_machine(r, rx, UC_COMMIT, WC_SUCCESS);
	if (roce_any(rx->p.info->mask, ROCE_SEND))
		return uc_machine(r, rx, UC_FAIL, WC_LOC_PROT_ERR);
	return uc_machine(r, rx, UC_REFUSE, WC_REM_ACCESS_ERR);
}
