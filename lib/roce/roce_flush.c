/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responder: what is special about FLUSH and ATOMIC WRITE (IBTA annex A19). Both are executed
 * once, in their order, and answered by a READ response without data, again when asked again.
 *
 * Requests are executed in order, and one that a copier works on holds up those behind it: when a
 * FLUSH is executed, all data of the QP's earlier packets has been stored, or written by the
 * copier. What is left for global visibility is a fence. No memory here is persistent, so nobody
 * can register it for MR_FLUSH_PERSISTENT, and who asks for persistence lacks the right.
 */
#include <stdatomic.h>

#include "roce_priv.h"

/** 0: a placement type, or selectivity, that there is not. */
uint32_t
roce_flush_rights(const struct roce_pkt *p)
{
	uint32_t need = 0;

	if (p->flush_plt > (ROCE_FETH_PLT_GLOBAL | ROCE_FETH_PLT_PERSISTENT) ||
	    p->flush_sel > ROCE_FETH_SEL_MR)
		return 0;
	if (p->flush_plt & ROCE_FETH_PLT_GLOBAL)
		need |= MR_FLUSH_GLOBAL;
	if (p->flush_plt & ROCE_FETH_PLT_PERSISTENT)
		need |= MR_FLUSH_PERSISTENT;
	return need;
}

bool
roce_note_len_ok(const struct roce_pkt *p)
{
	if (roce_any(p->info->mask, ROCE_FLUSH))
		return p->flush_sel == ROCE_FETH_SEL_MR || p->dma_len <= ROCE_MAX_MSG;
	return p->dma_len == sizeof(uint64_t) && p->va % sizeof(uint64_t) == 0;
}

/** The key always, even for no bytes; address and length unless the whole region is meant. */
enum mr_result
roce_flush_check(struct roce *r, struct roce_qp *qp, const struct roce_pkt *p, struct mr_ref *ref)
{
	uint32_t need = roce_flush_rights(p);

	if (p->flush_sel == ROCE_FETH_SEL_MR)
		return mr_check_whole(r->w->mrs, p->rkey, qp->v.pd, qp->v.qpn, need, ref);
	return mr_check(r->w->mrs, p->rkey, qp->v.pd, qp->v.qpn, p->va, p->dma_len, need, ref);
}

void
roce_flush_done(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}
