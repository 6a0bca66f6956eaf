/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests without packets: local invalidate, memory window binds, fast registration. Each
 * changes what a key means, so it is complete when no other worker and no copier can still go by
 * the old meaning; the queue behind it waits, so that what is sent next goes by the new one.
 * A bind or registration claims its key first and changes it after that wait (mr_table.h).
 */
#include "roce_priv.h"

#define LOCAL_ELEMS 1024u   /* of a list, that are counted */
#define LOCAL_ELEM_COST 32u /* bytes of a turn, that each is worth */

static struct mr_bind
bind_of(const struct roce_qp *qp, const struct verbs_wqe *wqe)
{
	return (struct mr_bind){
		.window = wqe->bind.mw_key,
		.new_key = wqe->rkey,
		.region = wqe->bind.mr_lkey,
		.access = wqe->bind.access,
		.addr = wqe->remote_addr,
		.length = wqe->bind.length,
		.pd = qp->v.pd,
		.qpn = qp->v.qpn,
	};
}

/** The key whose entry it is about. */
static uint32_t
local_key(const struct verbs_wqe *wqe)
{
	if (wqe->opcode == RING_WR_BIND_MW)
		return wqe->bind.mw_key;
	return wqe->opcode == RING_WR_FAST_REG ? wqe->rkey : wqe->imm;
}

static enum mr_result
local_begin(struct roce *r, struct roce_qp *qp, const struct verbs_wqe *wqe)
{
	struct mr_bind b;

	switch (wqe->opcode) {
	case RING_WR_BIND_MW:
		b = bind_of(qp, wqe);
		return mr_bind_begin(r->w->mrs, &b);
	case RING_WR_FAST_REG:
		return mr_fast_begin(r->w->mrs, wqe->rkey, qp->v.pd);
	default:
		if (base_bug(BUG_KEY_AFTER_INV))
			return MR_OK;
		return mr_invalidate(r->w->mrs, wqe->imm, qp->v.pd, qp->v.qpn);
	}
}

uint64_t
roce_local_grace(struct roce *r, uint32_t key)
{
	uint64_t token;

	if (r->cfg.quiesce_start == NULL)
		return MR_GRACE_NONE;
	token = mr_grace(r->w->mrs, key);
	if (token == 0) {
		token = r->cfg.quiesce_start(r->cfg.ctx);
		mr_grace_set(r->w->mrs, key, token);
	}
	return token;
}

bool
roce_local_passed(const struct roce *r, uint64_t token)
{
	return token == MR_GRACE_NONE || r->cfg.quiesced(r->cfg.ctx, token);
}

/* ---- the second half ---------- */

/**
 * The list of a fast registration is read here and now, so it must be memory that is mapped here:
 * the application's arenas, or shared memory.
 */
static enum wc_status
local_fast_reg(struct roce *r, struct roce_qp *qp, const struct verbs_wqe *wqe)
{
	const struct verbs_fast_reg *w = &wqe->fast_reg;
	struct mr_fast_req f = {
		.key = wqe->rkey,
		.pd = qp->v.pd,
		.access = w->access,
		.num = w->list_len,
		.iova = wqe->remote_addr,
		.length = w->length,
	};
	enum mr_result res;
	struct mr_ref ref;

	res = mr_check(r->w->mrs, w->list_lkey, qp->v.pd, qp->v.qpn, w->list_addr,
		       (uint64_t)w->list_len * sizeof(struct mr_elem), 0, &ref);
	if (res != MR_OK || ref.ptr == NULL) {
		counter_inc(&r->w->refused[res == MR_OK ? MR_BAD_ACCESS : res]);
		mr_fast_abort(r->w->mrs, wqe->rkey);
		return WC_LOC_PROT_ERR;
	}
	f.list = ref.ptr;
	res = mr_fast_commit(r->w->mrs, &f);
	if (res == MR_OK)
		return WC_SUCCESS;
	counter_inc(&r->w->refused[res]);
	return WC_LOC_QP_OP_ERR;
}

static enum wc_status
local_commit(struct roce *r, struct roce_qp *qp, const struct verbs_wqe *wqe)
{
	enum mr_result res = MR_OK;
	struct mr_bind b;

	if (wqe->opcode == RING_WR_FAST_REG)
		return local_fast_reg(r, qp, wqe);
	if (wqe->opcode == RING_WR_BIND_MW) {
		b = bind_of(qp, wqe);
		res = mr_bind_commit(r->w->mrs, &b);
	}
	if (res == MR_OK)
		return WC_SUCCESS;
	counter_inc(&r->w->refused[res]);
	return WC_MW_BIND_ERR;
}

/** Whether copiers are at work by the key's old meaning. */
static bool
local_busy(const struct roce *r, const struct verbs_wqe *wqe)
{
	if (wqe->opcode == RING_WR_LOCAL_INV)
		return mr_busy(r->w->mrs, wqe->imm);
	return mr_claim_busy(r->w->mrs, local_key(wqe));
}

/** @return whether it is done; the request has completed then, perhaps. */
static bool
local_poll(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe)
{
	enum wc_status status;

	/* In this order: a worker that has not passed may still begin an access. */
	if (!roce_local_passed(r, qp->cold->local_token) || local_busy(r, wqe)) {
		roce_timer_set(r, qp, ROCE_T_LOCAL, r->now + ROCE_LOCAL_POLL_NS);
		return false;
	}
	status = local_commit(r, qp, wqe);
	if (status != WC_SUCCESS) {
		roce_req_fail(r, qp, wqe, status);
		return false;
	}
	wqe->tstate = ROCE_WQE_DONE;
	roce_comp_reap(r, qp);
	return true;
}

/* ---- the first ---------- */

/** It sends nothing, but a queue full of it must not keep the worker for itself. */
static int32_t
local_cost(const struct verbs_wqe *wqe)
{
	uint32_t elems = wqe->opcode == RING_WR_FAST_REG ? wqe->fast_reg.list_len : 0;

	return (int32_t)(ROCE_PKT_COST + RTE_MIN(elems, LOCAL_ELEMS) * LOCAL_ELEM_COST);
}

bool
roce_local_start(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe)
{
	enum mr_result res;

	qp->v.deficit -= local_cost(wqe);
	/* Sending again may need the key: fenced, it outlives all that came before. */
	if ((wqe->flags & RING_WR_FENCE) && qp->v.wqe_head != wqe) {
		wqe->tstate = ROCE_WQE_FENCED;
		return false;
	}
	res = local_begin(r, qp, wqe);
	if (res != MR_OK) {
		counter_inc(&r->w->refused[res]);
		roce_req_fail(r, qp, wqe,
			      wqe->opcode == RING_WR_BIND_MW ? WC_MW_BIND_ERR : WC_LOC_QP_OP_ERR);
		return false;
	}
	wqe->tstate = ROCE_WQE_LOCAL;
	qp->cold->local_token = roce_local_grace(r, local_key(wqe));
	return local_poll(r, qp, wqe);
}

static inline bool
is_waiting(const struct verbs_wqe *wqe)
{
	return wqe && (wqe->tstate == ROCE_WQE_LOCAL || wqe->tstate == ROCE_WQE_FENCED);
}

bool
roce_local_waits(struct roce *r, struct roce_qp *qp)
{
	struct verbs_wqe *last = qp->v.wqe_tail;

	if (likely(qp->v.wqe_head == NULL || !is_waiting(last)))
		return false;
	if (last->tstate == ROCE_WQE_LOCAL)
		local_poll(r, qp, last);
	else
		roce_local_start(r, qp, last);
	return qp->v.wqe_head != NULL && is_waiting(qp->v.wqe_tail);
}

void
roce_local_abort(struct roce *r, struct roce_qp *qp)
{
	struct verbs_wqe *wqe = qp->v.wqe_head ? qp->v.wqe_tail : NULL;
	struct mr_bind b;

	if (likely(wqe == NULL || wqe->tstate != ROCE_WQE_LOCAL))
		return;
	wqe->tstate = ROCE_WQE_FENCED; /* it has not begun: once */
	if (wqe->opcode == RING_WR_BIND_MW) {
		b = bind_of(qp, wqe);
		mr_bind_abort(r->w->mrs, &b);
	} else if (wqe->opcode == RING_WR_FAST_REG) {
		mr_fast_abort(r->w->mrs, wqe->rkey);
	}
}
