/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended reliable connections (IBTA annex A14): RC whose requests name the SRQ that they are
 * for. A target QP has no receive queue, CQ or PD: those of the SRQ count, which must be of its
 * domain. SRQs come and go while messages for them are under way, so a message knows its SRQ by
 * number and serial, and looks it up anew with each packet.
 */
#include "roce_priv.h"

/* SRQ numbers are drawn and looked up as QP numbers are. */
void
roce_srqn_set(struct roce_qpn_table *t, uint32_t srqn, struct verbs_srq *srq)
{
	roce_qpn_set(t, srqn, (struct verbs_qp *)srq, 0);
}

static struct verbs_srq *
xrc_lookup(const struct roce *r, const struct roce_qp *qp, uint32_t srqn)
{
	uint32_t worker;
	struct verbs_srq *srq = r->cfg.srqns ? (struct verbs_srq *)roce_qpn_lookup(
						       r->cfg.srqns, srqn, &worker)
					     : NULL;

	return srq != NULL && srq->xrcd == qp->v.xrcd ? srq : NULL;
}

struct verbs_srq *
roce_xrc_message(const struct roce *r, const struct roce_qp *qp)
{
	struct verbs_srq *srq = xrc_lookup(r, qp, qp->cold->xrc_srqn);

	return srq != NULL && srq->serial == qp->cold->xrc_serial ? srq : NULL;
}

struct verbs_srq *
roce_xrc_request(struct roce *r, struct roce_qp *qp, const struct roce_pkt *p)
{
	struct verbs_srq *srq = xrc_lookup(r, qp, p->srqn);
	bool start = roce_any(p->info->mask, ROCE_START) && !qp->rwqe_used;

	/* one message, one SRQ: what follows names it again, as does a first packet that had
	 * to wait when it had its receive already */
	if (srq != NULL && !start && srq->serial != qp->cold->xrc_serial)
		srq = NULL;
	if (unlikely(srq == NULL)) {
		roce_count(r, ROCE_C_XRC_NO_SRQ);
		return NULL;
	}
	if (start) {
		qp->cold->xrc_srqn = p->srqn;
		qp->cold->xrc_serial = srq->serial;
	}
	return srq;
}

/** An SRQ that is gone has nobody who could be told, nor a CQ. */
static void
xrc_complete(struct roce *r, struct roce_qp *qp, const struct verbs_recv_done *d)
{
	struct verbs_srq *srq = roce_xrc_message(r, qp);

	if (srq == NULL) {
		verbs_rwqe_release(r->w, &qp->rwqe);
		return;
	}
	verbs_complete_xrc(r->w, &qp->v, srq, &qp->rwqe, d);
	if (likely(!atomic_load_explicit(&srq->cq->overrun, memory_order_relaxed)) ||
	    qp->v.state == RING_QPS_ERR || qp->v.state == RING_QPS_RESET)
		return;
	r->w->host.event(r->w->host.ctx, VERBS_EVENT_QP_FATAL, &qp->v);
	roce_qp_fail(r, qp);
}

void
roce_recv_complete(struct roce *r, struct roce_qp *qp, const struct verbs_recv_done *d)
{
	qp->rwqe_used = false;
	if (unlikely(qp->v.type == VERBS_QPT_XRC_RECV))
		xrc_complete(r, qp, d);
	else
		verbs_complete_recv(r->w, &qp->v, &qp->rwqe, d);
}
