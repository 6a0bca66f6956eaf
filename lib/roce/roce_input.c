/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received packets. Stage 1, for the whole burst: one piece, ICRC, headers, the QP; its lines
 * are fetched meanwhile. Stage 2: what any packet must fulfil to reach the QP, then requester or
 * responder by opcode. Nothing that fails before the QP is answered (A17 CA17-24 to -33).
 */
#include <rte_prefetch.h>

#include "roce_ud_priv.h"

/* ---- stage 1 ---------- */

/** One contiguous piece, in another buffer if need be. */
static bool
input_join(struct roce *r, struct net_pkt *np)
{
	struct rte_mbuf *copy;

	if (likely(np->m->nb_segs == 1) || rte_pktmbuf_linearize(np->m) == 0)
		return true;
	copy = rte_pktmbuf_copy(np->m, r->cfg.tx_pool, 0, UINT32_MAX);
	if (copy && copy->nb_segs == 1) {
		rte_pktmbuf_free(np->m);
		np->m = copy;
		return true;
	}
	rte_pktmbuf_free(copy);
	roce_count(r, ROCE_C_DROP_SCATTERED);
	return false;
}

static bool
input_icrc_ok(struct roce *r, const struct net_pkt *np)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(np->m, const uint8_t *, np->l3_off);

	if (unlikely(np->m->ol_flags & r->checked))
		return true; /* another worker's copy for groups */
	if (likely(roce_icrc_check(l3, np->v6,
				   (size_t)(np->payload_off - np->l3_off) + np->payload_len)))
		return true;
	roce_count(r, ROCE_C_ICRC_ERRORS);
	return false;
}

/** Headers. The opcode's class is held against the QP's type in stage 2. */
static bool
input_parse(struct roce *r, const struct net_pkt *np, struct roce_rx *rx)
{
	const void *bth = rte_pktmbuf_mtod_offset(np->m, const void *, np->payload_off);
	int drop = roce_parse(bth, np->payload_len - ROCE_ICRC_LEN, &rx->p);

	if (unlikely(drop != ROCE_OK)) {
		roce_count(r, drop == ROCE_DROP_QP0 ? ROCE_C_DROP_NO_QP
						    : ROCE_C_DROP_MALFORMED);
		return false;
	}
	rx->m = np->m;
	rx->bth_off = np->payload_off;
	rx->ecn = np->ecn;
	return true;
}

/** Groups have a number in common; QP1 is the control thread's. */
static void
input_no_qp(struct roce *r, struct net_pkt *np, const struct roce_rx *rx)
{
	if (rx->p.info->transport == ROCE_TR_CNP) /* neither a group's nor a MAD */
		roce_count(r, ROCE_C_DROP_NO_QP);
	else if (rx->p.dest_qpn == ROCE_QPN_MCAST)
		roce_mcast_input(r, np, rx);
	else if (rx->p.dest_qpn != ROCE_QPN_GSI || r->cfg.mad == NULL)
		roce_count(r, ROCE_C_DROP_NO_QP);
	else if (!r->cfg.mad(r->cfg.ctx, np, &rx->p))
		roce_count(r, ROCE_C_GSI_DROPPED);
}

/** The QP, if it is this worker's; else the packet goes to the one whose it is. */
static bool
input_lookup(struct roce *r, struct net_pkt *np, struct roce_rx *rx)
{
	uint32_t worker = 0;
	struct verbs_qp *qp = roce_qpn_lookup(r->cfg.qpns, rx->p.dest_qpn, &worker);

	if (unlikely(qp == NULL)) {
		input_no_qp(r, np, rx);
		return false;
	}
	if (unlikely(worker != r->w->id)) {
		if (r->cfg.handoff && r->cfg.handoff(r->cfg.ctx, worker, np->m)) {
			roce_count(r, ROCE_C_RX_HANDOFF);
			np->m = NULL;
		} else {
			roce_count(r, ROCE_C_HANDOFF_FULL);
		}
		return false;
	}
	rx->qp = (struct roce_qp *)qp;
	for (unsigned int i = 0; i < 6; i++)
		rte_prefetch0((const char *)qp + i * RTE_CACHE_LINE_SIZE);
	return true;
}

static bool
input_stage1(struct roce *r, struct net_pkt *np, struct roce_rx *rx)
{
	roce_count(r, ROCE_C_RX_PACKETS);
	if (unlikely(np->payload_len < ROCE_BTH_LEN + ROCE_ICRC_LEN)) {
		roce_count(r, ROCE_C_DROP_MALFORMED);
		return false;
	}
	if (!input_join(r, np))
		return false;
	if (!input_icrc_ok(r, np) || !input_parse(r, np, rx))
		return false;
	return input_lookup(r, np, rx);
}

/* ---- stage 2 ---------- */

/** The class of a type's packets. */
static const uint8_t input_class[] = {
	[VERBS_QPT_GSI] = ROCE_TR_UD,	    [VERBS_QPT_RC] = ROCE_TR_RC,
	[VERBS_QPT_UC] = ROCE_TR_UC,	    [VERBS_QPT_UD] = ROCE_TR_UD,
	[VERBS_QPT_XRC_SEND] = ROCE_TR_XRC, [VERBS_QPT_XRC_RECV] = ROCE_TR_XRC,
};

/** Addresses are those of the connection, both of them (C-66). */
static bool
input_address_ok(const struct roce_qp *qp, const struct net_pkt *np)
{
	struct net_ip src = net_pkt_src(np), dst = net_pkt_dst(np);

	return np->v6 == qp->path.v6 && net_ip_eq(&src, &qp->path.dst) &&
	       net_ip_eq(&dst, &qp->path.src);
}

/** An XRC QP has one direction: requests are for targets, responses for initiators. */
static inline bool
input_wrong_end(const struct roce_qp *qp, const struct roce_rx *rx)
{
	return (qp->v.type == VERBS_QPT_XRC_SEND && roce_any(rx->p.info->mask, ROCE_REQUEST)) ||
	       (qp->v.type == VERBS_QPT_XRC_RECV && roce_any(rx->p.info->mask, ROCE_RESPONSE));
}

/** np: NULL, where addresses are of no matter, as in all UD. */
static inline bool
input_admit(struct roce *r, const struct net_pkt *np, const struct roce_rx *rx)
{
	const struct roce_qp *qp = rx->qp;
	enum roce_counter why;

	if (unlikely(rx->p.info->transport != input_class[qp->v.type] ||
		     input_wrong_end(qp, rx))) /* C-8 */
		why = ROCE_C_DROP_QP_TYPE;
	else if (unlikely(!verbs_qp_may_receive(qp->v.state)))
		why = ROCE_C_DROP_QP_STATE;
	else if (rx->p.info->transport != ROCE_TR_UD && unlikely(!input_address_ok(qp, np)))
		why = ROCE_C_DROP_ADDRESS;
	else if (unlikely(!roce_pkey_ok(rx->p.pkey)))
		why = ROCE_C_DROP_PKEY;
	else
		return true;
	roce_count(r, why);
	return false;
}

bool
roce_rx_admit(struct roce *r, const struct roce_rx *rx)
{
	return input_admit(r, NULL, rx);
}

enum roce_rx_result
roce_rx_dispatch(struct roce *r, struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;
	uint8_t class = rx->p.info->transport;

	/* RC and XRC are one machine */
	if (unlikely(class != ROCE_TR_RC && class != ROCE_TR_XRC))
		return class == ROCE_TR_UC ? roce_uc_packet(r, rx) : roce_ud_packet(r, rx);
	if (roce_any(rx->p.info->mask, ROCE_REQUEST))
		return roce_resp_packet(r, rx);
	if (qp->v.state == RING_QPS_RTS || qp->v.state == RING_QPS_SQD)
		return roce_comp_packet(r, rx);
	roce_count(r, ROCE_C_DROP_QP_STATE);
	return ROCE_RX_FREE;
}

enum roce_rx_result
roce_rx_placed(struct roce *r, struct roce_rx *rx, int status, uint64_t original)
{
	switch (rx->p.info->transport) {
	case ROCE_TR_UC:
		return roce_uc_placed(r, rx, status);
	case ROCE_TR_UD:
		return roce_ud_placed(r, rx, status);
	default:
		return roce_any(rx->p.info->mask, ROCE_REQUEST)
			       ? roce_resp_placed(r, rx, status, original)
			       : roce_comp_placed(r, rx, status);
	}
}

/** Neither acknowledged nor in sequence; the 16 bytes may hold anything (C-64). */
static void
input_cnp(struct roce *r, const struct net_pkt *np, const struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;

	if (!verbs_qp_may_receive(qp->v.state))
		roce_count(r, ROCE_C_DROP_QP_STATE);
	else if (!input_address_ok(qp, np))
		roce_count(r, ROCE_C_DROP_ADDRESS);
	else if (!roce_pkey_ok(rx->p.pkey))
		roce_count(r, ROCE_C_DROP_PKEY);
	else
		roce_cc_notified(r, qp);
}

static inline enum roce_rx_result
rx_take(struct roce *r, struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;

	if (likely(qp->placing == NULL && qp->waiting.head == NULL))
		return roce_rx_dispatch(r, rx);
	if (roce_hold_append(r, qp, &qp->waiting, rx)) {
		roce_count(r, ROCE_C_RX_HELD);
		return ROCE_RX_KEPT;
	}
	roce_count(r, ROCE_C_RX_HELD_DROPPED);
	return ROCE_RX_FREE;
}

enum roce_rx_result
roce_rx_take(struct roce *r, struct roce_rx *rx)
{
	return rx_take(r, rx);
}

static enum roce_rx_result
input_stage2(struct roce *r, const struct net_pkt *np, struct roce_rx *rx)
{
	if (unlikely(rx->p.info->transport == ROCE_TR_CNP)) {
		input_cnp(r, np, rx);
		return ROCE_RX_FREE;
	}
	if (!input_admit(r, np, rx))
		return ROCE_RX_FREE;
	if (unlikely(np->ecn == ROCE_ECN_CE))
		roce_cc_marked(r, rx->qp, rx->p.pkey);
	return rx_take(r, rx);
}

bool
roce_rx_resume(struct roce *r, struct roce_qp *qp)
{
	struct roce_rx rx;

	qp->rx_again = false;
	roce_comp_resume(r, qp);
	/* What was kept behind a hole that filled meanwhile: nobody else would come for it. */
	if (unlikely(qp->early.head != NULL) && qp->v.state != RING_QPS_ERR)
		roce_comp_drain(r, qp);
	if (unlikely(qp->behind_hole.head != NULL) && qp->v.state != RING_QPS_ERR)
		roce_resp_drain(r, qp);
	while (qp->waiting.head && qp->placing == NULL && !qp->rx_again) {
		roce_hold_pop(r, qp, &qp->waiting, &rx);
		if (!verbs_qp_may_receive(qp->v.state) ||
		    roce_rx_dispatch(r, &rx) == ROCE_RX_FREE)
			rte_pktmbuf_free(rx.m);
	}
	/* Without its share of ios it is not the turn that it waits for. */
	return qp->rx_again && !(qp->v.flags & VERBS_QP_WANTS(VERBS_POOL_IO));
}

static void
input_burst(struct roce *r, struct net_pkt *pkts, unsigned int n)
{
	struct roce_rx rx[ROCE_BURST];
	struct rte_mbuf *done[ROCE_BURST];
	unsigned int num_done = 0;

	for (unsigned int i = 0; i < n; i++) {
		rx[i].qp = NULL;
		if (!input_stage1(r, &pkts[i], &rx[i]) && pkts[i].m)
			done[num_done++] = pkts[i].m;
	}
	for (unsigned int i = 0; i < n; i++)
		if (rx[i].qp && input_stage2(r, &pkts[i], &rx[i]) == ROCE_RX_FREE)
			done[num_done++] = rx[i].m;
	rte_pktmbuf_free_bulk(done, num_done);
}

void
roce_input(struct roce *r, struct net_pkt *pkts, unsigned int n, uint64_t now)
{
	r->now = now;
	for (unsigned int i = 0; i < n; i += ROCE_BURST)
		input_burst(r, pkts + i, n - i < ROCE_BURST ? n - i : ROCE_BURST);
}
