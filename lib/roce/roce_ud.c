/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD, both ways. Sending: each request names an address handle, which is looked up as the number of
 * a stranger, and is one packet, done when the batch has it (IBTA 9.8.3). Receiving: Q_Key, a
 * receive request, 40 bytes for the network header, payload; what does not fit, or finds no
 * request, is dropped (classes D and E of 9.9.3). PSNs are counted and never looked at.
 */
#include <errno.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include "roce_ud_priv.h"

#define QKEY_OF_QP 0x80000000u /* in a request: the QP's is sent (10.2.5) */

/* ---- sending ---------- */

uint32_t
roce_ah_mtu(const struct roce *r, const struct roce_ah *ah)
{
	if (r->cfg.mtu == NULL)
		return ROCE_UD_MTU_MAX;
	return atomic_load_explicit(&r->cfg.mtu[ah->home], memory_order_relaxed);
}

/** The oldest request fails, and the send queue with it: SQE, not ERR. */
static void
ud_fail(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe, enum wc_status status)
{
	qp->req_wqe = NULL;
	verbs_complete_send(r->w, &qp->v, wqe, status);
	roce_qp_send_error(r, qp);
	roce_qp_check_cqs(r, qp);
}

static void
ud_done(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe)
{
	qp->req_wqe = NULL;
	verbs_complete_send(r->w, &qp->v, wqe, WC_SUCCESS);
	roce_qp_check_cqs(r, qp);
	if (unlikely(qp->v.state == RING_QPS_SQD))
		roce_qp_check_drained(r, qp);
}

/** Headers of UD behind a BTH that roce_tx_open_path() has made; the port is the sender's own. */
static void
ud_headers(const struct roce_qp *qp, const struct verbs_wqe *wqe, const struct roce_out *out)
{
	uint32_t qkey = (wqe->qkey & QKEY_OF_QP) ? qp->qkey : wqe->qkey;
	uint16_t sport = rte_cpu_to_be_16(net_udp_sport_ud(qp->v.qpn));

	memcpy(out->bth - sizeof(struct rte_udp_hdr), &sport, sizeof(sport));
	roce_deth_emit(out->ext, qkey, qp->v.qpn);
	if (wqe->opcode == RING_WR_SEND_WITH_IMM)
		roce_immdt_emit(out->ext + sizeof(struct roce_deth), wqe->imm);
}

static void
ud_set_mac(struct rte_mbuf *m, uint64_t l2)
{
	struct rte_ether_addr mac = net_neigh_l2_mac(l2);

	rte_ether_addr_copy(&mac, rte_pktmbuf_mtod(m, struct rte_ether_addr *));
}

/** Members on this host get a copy, as if the switch had sent it back (IBTA 10.5.2.1). */
static void
ud_loop_copy(struct roce *r, const struct roce_ah *ah, struct rte_mbuf *m)
{
	struct rte_mbuf *copy;

	if (r->cfg.handoff == NULL || !roce_mcast_has(r->cfg.mcast, ah->home, &ah->path.dst))
		return;
	/* Not a reference: a driver may free what it has sent without counting them. */
	copy = rte_pktmbuf_copy(m, r->cfg.tx_pool, 0, UINT32_MAX);
	if (copy == NULL) {
		roce_count(r, ROCE_C_MCAST_DROPPED);
		return;
	}
	copy->port = ah->home;
	copy->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD; /* our own arithmetic */
	if (r->cfg.handoff(r->cfg.ctx, r->w->id, copy)) {
		roce_count(r, ROCE_C_MCAST_LOOPED);
		return;
	}
	roce_count(r, ROCE_C_HANDOFF_FULL);
	rte_pktmbuf_free(copy);
}

/** A packet that is complete leaves; without a MAC it waits, which is nobody else's matter. */
static void
ud_leave(struct roce *r, struct roce_ah *ah, struct rte_mbuf *m, uint64_t l2)
{
	if (unlikely(ah->group))
		ud_loop_copy(r, ah, m);
	if (unlikely(!net_neigh_l2_usable(l2))) {
		roce_ud_wait(r, ah, m);
		return;
	}
	roce_tx_push(r, ah->port, m);
}

/**
 * The MAC to send to; none while datagrams of the same handle wait here, which go first: they were
 * posted before, and their neighbour may have become known a moment ago.
 */
static uint64_t
ud_l2(const struct roce *r, const struct roce_ah *ah)
{
	uint64_t l2 = net_neigh_use(ah->path.neigh);

	return unlikely(roce_ud_waits(r, ah)) ? 0 : l2;
}

static inline void
ud_charge(struct roce *r, struct roce_qp *qp, uint32_t len)
{
	qp->snd_max = qp->nxt_psn = psn_add(qp->snd_max, 1);
	qp->v.deficit -= (int32_t)(len + ROCE_PKT_COST);
	counter_add(&r->counter[ROCE_C_TX_BYTES], len);
}

static enum roce_tx_result
ud_emit(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe, struct roce_ah *ah)
{
	uint8_t opcode = wqe->opcode == RING_WR_SEND_WITH_IMM ? ROCE_UD_SEND_ONLY_IMM
							       : ROCE_UD_SEND_ONLY;
	uint8_t se = (wqe->flags & RING_WR_SOLICITED) ? ROCE_BTH_SE : 0;
	enum wc_status why = WC_SUCCESS;
	uint32_t state, *crc;
	struct roce_out out;
	uint64_t l2 = ud_l2(r, ah);

	roce_tx_open_path(r, &ah->path, l2, opcode, se, wqe->remote_qpn, qp->snd_max, wqe->length,
			  &out);
	ud_headers(qp, wqe, &out);
	crc = roce_tx_crc(&out, &state);
	switch (verbs_gather(r->w, &qp->v, wqe, 0, wqe->length, out.payload, crc, &why)) {
	case VERBS_DONE:
		if (likely(net_neigh_l2_usable(l2) && !ah->group)) {
			roce_tx_seal(r, &out, crc);
			roce_tx_push(r, ah->port, out.m);
		} else {
			roce_tx_seal_now(&out, crc); /* it is copied, or leaves later */
			ud_leave(r, ah, out.m, l2);
		}
		ud_charge(r, qp, wqe->length);
		return ROCE_TX_SENT;
	case VERBS_PENDING:
		roce_tx_park(qp, &out, qp->snd_max, false);
		ud_charge(r, qp, wqe->length);
		return ROCE_TX_PARKED;
	case VERBS_AGAIN:
		roce_tx_cancel(r, &out);
		return ROCE_TX_WAIT;
	case VERBS_ERROR:
		break;
	}
	roce_tx_cancel(r, &out);
	ud_fail(r, qp, wqe, why);
	return ROCE_TX_ERROR;
}

/** The oldest request, which may have been tried before. */
static enum roce_tx_result
ud_send(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe)
{
	enum wc_status status = wqe->status;
	enum roce_tx_result res;
	struct roce_ah *ah;

	if (unlikely(status != WC_SUCCESS)) {
		ud_fail(r, qp, wqe, status);
		return ROCE_TX_ERROR;
	}
	ah = roce_ah_lookup(r->cfg.ahs, wqe->ah, wqe->pd);
	if (unlikely(ah == NULL || wqe->remote_qpn > ROCE_QPN_MASK ||
		     ah->port >= r->cfg.num_ports)) {
		roce_count(r, ROCE_C_UD_BAD_AH);
		ud_fail(r, qp, wqe, WC_LOC_QP_OP_ERR);
		return ROCE_TX_ERROR;
	}
	if (unlikely(wqe->length > roce_ah_mtu(r, ah))) {
		roce_count(r, ROCE_C_UD_TOO_LONG_SENT);
		ud_done(r, qp, wqe); /* no packet, and no error either (C-51, C10-93.1.1) */
		return ROCE_TX_SENT;
	}
	if (unlikely(roce_ud_waits(r, ah)))
		roce_ud_wait_run(r);
	if (!roce_tx_ready_port(r, ah->port))
		return ROCE_TX_FULL;
	res = ud_emit(r, qp, wqe, ah);
	if (res == ROCE_TX_SENT)
		ud_done(r, qp, wqe);
	return res;
}

/** The parked packet's payload is there; its handle may have gone meanwhile. */
static enum roce_tx_result
ud_unpark(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe)
{
	struct roce_ah *ah = roce_ah_lookup(r->cfg.ahs, wqe->ah, wqe->pd);
	struct rte_mbuf *m = qp->parked;
	uint32_t off = qp->parked_l3;
	uint64_t l2;

	if (ah == NULL) {
		rte_pktmbuf_free(m);
		qp->parked = NULL;
		roce_count(r, ROCE_C_UD_BAD_AH);
		ud_fail(r, qp, wqe, WC_LOC_QP_OP_ERR);
		return ROCE_TX_ERROR;
	}
	if (unlikely(roce_ud_waits(r, ah)))
		roce_ud_wait_run(r);
	if (net_tx_room(r->cfg.tx[ah->port]) == 0)
		return ROCE_TX_FULL;
	roce_icrc_write(rte_pktmbuf_mtod_offset(m, void *, off), qp->parked_v6, m->pkt_len - off);
	qp->parked = NULL;
	l2 = ud_l2(r, ah);
	ud_set_mac(m, l2);
	ud_leave(r, ah, m, l2);
	ud_done(r, qp, wqe);
	return ROCE_TX_SENT;
}

void
roce_ud_parked_failed(struct roce *r, struct roce_qp *qp)
{
	if (qp->v.wqe_head)
		ud_fail(r, qp, qp->v.wqe_head, WC_LOC_PROT_ERR);
}

/** Take the next request into req_wqe. VERBS_RUN_MORE: there is one. */
static enum verbs_run
ud_next(struct roce *r, struct roce_qp *qp)
{
	int ret;

	if (qp->v.state != RING_QPS_RTS)
		return VERBS_RUN_WAIT; /* RTR, SQD: a modify puts it back */
	ret = verbs_sq_fetch(r->w, &qp->v, &qp->req_wqe);
	if (ret > 0)
		return VERBS_RUN_MORE;
	qp->req_wqe = NULL;
	if (ret == 0)
		return VERBS_RUN_IDLE;
	if (ret == -EAGAIN)
		return VERBS_RUN_WAIT;
	r->w->host.event(r->w->host.ctx, VERBS_EVENT_QP_FATAL, &qp->v);
	roce_qp_fail(r, qp);
	return VERBS_RUN_IDLE; /* and ERR puts it on the list again */
}

enum verbs_run
roce_ud_run(struct roce *r, struct roce_qp *qp)
{
	while (qp->v.deficit > 0) {
		enum roce_tx_result res;

		if (unlikely(qp->parked && !qp->parked_ready))
			return VERBS_RUN_WAIT;
		if (qp->req_wqe == NULL) {
			enum verbs_run next = ud_next(r, qp);

			if (next != VERBS_RUN_MORE)
				return roce_sq_dead(qp) ? VERBS_RUN_MORE : next;
		}
		res = qp->parked ? ud_unpark(r, qp, qp->req_wqe) : ud_send(r, qp, qp->req_wqe);
		if (roce_sq_dead(qp))
			break;
		if (res == ROCE_TX_FULL)
			return r->num_mbufs ? VERBS_RUN_FULL : VERBS_RUN_MORE;
		if (res == ROCE_TX_WAIT)
			return VERBS_RUN_WAIT;
	}
	return VERBS_RUN_MORE;
}

/* ---- receiving ---------- */

/** What goes before the payload: an IPv6 header, or zeroes and an IPv4 one (A17 17.4.5.2). */
static uint32_t
ud_parts(const struct roce_rx *rx, struct verbs_part *part)
{
	static const uint8_t zero[ROCE_UD_GRH_LEN - sizeof(struct rte_ipv4_hdr)];
	const uint8_t *bth = rte_pktmbuf_mtod_offset(rx->m, const uint8_t *, rx->bth_off);
	bool v6 = roce_rx_is_v6(rx);
	uint32_t n = 0;

	if (!v6)
		part[n++] = (struct verbs_part){zero, sizeof(zero)};
	part[n++] = (struct verbs_part){
		bth - (v6 ? ROCE_L3L4_LEN_V6 : ROCE_L3L4_LEN_V4),
		v6 ? ROCE_UD_GRH_LEN : (uint32_t)sizeof(struct rte_ipv4_hdr)};
	part[n++] = (struct verbs_part){rx->p.payload, rx->p.payload_len};
	return n;
}

static void
ud_complete(struct roce *r, struct roce_qp *qp, const struct verbs_recv_done *d)
{
	qp->rwqe_used = false;
	verbs_complete_recv(r->w, &qp->v, &qp->rwqe, d);
	roce_qp_check_cqs(r, qp);
}

/** The receive request's own fault (class A): the QP goes with it. */
static enum roce_rx_result
ud_recv_failed(struct roce *r, struct roce_qp *qp, enum wc_status why)
{
	if (qp->rwqe_used)
		ud_complete(r, qp, &(struct verbs_recv_done){.status = why});
	else
		r->w->host.event(r->w->host.ctx, VERBS_EVENT_QP_FATAL, &qp->v);
	roce_qp_fail(r, qp);
	return ROCE_RX_FREE;
}

static enum roce_rx_result
ud_received(struct roce *r, const struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;
	struct verbs_recv_done d = {
		.status = WC_SUCCESS,
		.opcode = RING_WC_RECV,
		.byte_len = ROCE_UD_GRH_LEN + rx->p.payload_len,
		.cqe_flags = RING_CQE_GRH,
		.imm = rx->p.imm_be,
		.src_qpn = rx->p.src_qpn,
	};

	if (roce_any(rx->p.info->mask, ROCE_IMM))
		d.cqe_flags |= RING_CQE_WITH_IMM;
	if (rx->p.se)
		d.cqe_flags |= RING_CQE_SOLICITED;
	counter_add(&r->counter[ROCE_C_RX_BYTES], rx->p.payload_len);
	ud_complete(r, qp, &d);
	return ROCE_RX_FREE;
}

static enum roce_rx_result
ud_place(struct roce *r, struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;
	enum wc_status why = WC_SUCCESS;
	struct verbs_part part[3];
	uint32_t n = ud_parts(rx, part);

	switch (verbs_scatter_parts(r->w, &qp->v, verbs_rwqe_sgl(&qp->rwqe), part, n, &why)) {
	case VERBS_DONE:
		return ud_received(r, rx);
	case VERBS_PENDING:
		roce_hold_placing(r, qp, rx);
		return ROCE_RX_KEPT;
	case VERBS_AGAIN:
		/* its receive request is the next one's if it cannot stay */
		return roce_hold_again(r, qp, rx) ? ROCE_RX_KEPT : ROCE_RX_FREE;
	case VERBS_ERROR:
		break;
	}
	return ud_recv_failed(r, qp, why);
}

/**
 * Too long for the receive request: dropped, and the request is the next datagram's; one out of a
 * shared queue completes in error, since nobody would bring it back.
 */
static enum roce_rx_result
ud_too_long(struct roce *r, struct roce_qp *qp)
{
	roce_count(r, ROCE_C_UD_TOO_LONG);
	if (qp->v.srq)
		ud_complete(r, qp, &(struct verbs_recv_done){.status = WC_LOC_LEN_ERR});
	return ROCE_RX_FREE;
}

/** @return 1, 0: there is none, -EBADMSG: it or its queue is not to be believed. */
static int
ud_take_rwqe(struct roce *r, struct roce_qp *qp)
{
	int ret;

	if (qp->rwqe_used)
		return 1;
	ret = verbs_rq_fetch(r->w, &qp->v, &qp->rwqe);
	if (unlikely(ret == -EAGAIN))
		ret = 0;
	if (unlikely(ret <= 0))
		return ret;
	qp->rwqe_used = true;
	return qp->rwqe.valid ? 1 : -EBADMSG;
}

enum roce_rx_result
roce_ud_packet(struct roce *r, struct roce_rx *rx)
{
	struct roce_qp *qp = rx->qp;
	int ret;

	if (unlikely(rx->p.qkey != qp->qkey)) { /* C-50 */
		roce_count(r, ROCE_C_DROP_QKEY);
		return ROCE_RX_FREE;
	}
	if (unlikely(rx->p.payload_len > ROCE_UD_MTU_MAX)) {
		roce_count(r, ROCE_C_DROP_MALFORMED);
		return ROCE_RX_FREE;
	}
	roce_contact(r, qp);
	ret = ud_take_rwqe(r, qp);
	if (unlikely(ret == 0)) {
		roce_count(r, ROCE_C_UD_NO_RECV);
		return ROCE_RX_FREE;
	}
	if (unlikely(ret < 0))
		return ud_recv_failed(r, qp, WC_LOC_QP_OP_ERR);
	if (unlikely(qp->rwqe.length < ROCE_UD_GRH_LEN + rx->p.payload_len))
		return ud_too_long(r, qp);
	return ud_place(r, rx);
}

enum roce_rx_result
roce_ud_placed(struct roce *r, struct roce_rx *rx, int status)
{
	if (status != 0)
		return ud_recv_failed(r, rx->qp, WC_LOC_PROT_ERR);
	return ud_received(r, rx);
}
