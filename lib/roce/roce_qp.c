/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP's life: made, changed, failed, reset. Which attributes a transition takes was checked
 * by the verbs state table; here are their values, and what each state means to the engine.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "roce_priv.h"

#define REMOTE_RIGHTS \
	(MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_FLUSH_GLOBAL | \
	 MR_FLUSH_PERSISTENT)

static inline struct roce_qp *
qp_of(struct verbs_qp *v)
{
	return (struct roce_qp *)v;
}

/* ---- making ---------- */

/** What a QP's type means to its packets: the class of opcodes, and whether anybody answers. */
static void
qp_init_transport(struct roce_qp *qp)
{
	static const struct {
		uint8_t op_base;
		bool acked;
	} of_type[] = {
		[VERBS_QPT_GSI] = {ROCE_UD_SEND_ONLY & 0xe0, false},
		[VERBS_QPT_RC] = {ROCE_RC_SEND_ONLY & 0xe0, true},
		[VERBS_QPT_UC] = {ROCE_UC_SEND_ONLY & 0xe0, false},
		[VERBS_QPT_UD] = {ROCE_UD_SEND_ONLY & 0xe0, false},
		[VERBS_QPT_XRC_SEND] = {ROCE_XRC_SEND_ONLY & 0xe0, true},
		[VERBS_QPT_XRC_RECV] = {ROCE_XRC_SEND_ONLY & 0xe0, true},
	};

	qp->op_base = of_type[qp->v.type].op_base;
	qp->acked = of_type[qp->v.type].acked;
	qp->credit_unlimited = !qp->acked;
}

static void
qp_init_queues(struct verbs_qp *v, const struct roce_qp_init *init)
{
	if (init->sq_slots) {
		v->sq.slots = init->sq_slots;
		v->sq.shared_tail = &init->client->sq_tail;
		v->sq.mask = init->sq_entries - 1;
	}
	if (init->rq_slots) {
		v->rq.slots = init->rq_slots;
		v->rq.shared_tail = &init->client->rq_tail;
		v->rq.mask = init->rq_entries - 1;
	}
}

struct verbs_qp *
roce_qp_create(const struct roce_qp_init *init)
{
	size_t size = RTE_ALIGN_CEIL(sizeof(struct roce_qp), RTE_CACHE_LINE_SIZE);
	struct roce_qp *qp = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	struct verbs_qp *v;

	if (qp == NULL)
		return NULL;
	memset(qp, 0, size);
	qp->cold = calloc(1, sizeof(*qp->cold));
	if (qp->cold == NULL) {
		free(qp);
		return NULL;
	}
	v = &qp->v;
	v->qpn = init->qpn;
	v->type = (uint8_t)init->type;
	v->flags = init->sig_all ? VERBS_QP_SIG_ALL : 0;
	v->pd = init->pd;
	v->send_cq = init->send_cq;
	v->recv_cq = init->recv_cq;
	v->srq = init->srq;
	v->daemon = init->daemon;
	v->owner = init->owner;
	v->max_inline = init->max_inline;
	v->max_send_sge = init->max_send_sge;
	v->max_recv_sge = init->max_recv_sge;
	qp_init_transport(qp);
	qp_init_queues(v, init);
	return v;
}

void
roce_qp_free(struct verbs_qp *v)
{
	struct roce_qp *qp = qp_of(v);
	void *garbage;

	free(qp->res);
	free(qp->cold->res_new);
	while ((garbage = roce_qp_take_garbage(v)) != NULL)
		free(garbage);
	free(qp->cold);
	free(qp);
}

bool
roce_qp_idle(const struct verbs_qp *v)
{
	const struct roce_qp *qp = (const struct roce_qp *)v;

	return v->io[VERBS_TX] == NULL && v->io[VERBS_RX] == NULL && qp->parked == NULL &&
	       qp->placing == NULL && qp->rx_held == 0;
}

int
roce_qp_prepare(struct verbs_qp *v, const struct verbs_qp_attr *attr, uint32_t mask)
{
	struct roce_qp *qp = qp_of(v);
	struct roce_res_ring *ring;
	uint32_t size;

	if (!(mask & VERBS_QP_MAX_DEST_RD_ATOMIC) || attr->max_dest_rd_atomic == 0)
		return 0;
	if (attr->max_dest_rd_atomic > ROCE_MAX_RD_ATOMIC)
		return -EINVAL;
	size = rte_align32pow2(attr->max_dest_rd_atomic);
	ring = calloc(1, sizeof(*ring) + size * sizeof(ring->e[0]));
	if (ring == NULL)
		return -ENOMEM;
	ring->size = size;
	ring->depth = attr->max_dest_rd_atomic;
	free(qp->cold->res_new);
	qp->cold->res_new = ring;
	return 0;
}

void *
roce_qp_take_garbage(struct verbs_qp *v)
{
	struct roce_qp_cold *cold = qp_of(v)->cold;
	struct roce_res_ring *old = cold->res_old;

	if (old)
		cold->res_old = old->next;
	return old;
}

/** Workers do not call free(): roce_qp_take_garbage() gives it to the control thread. */
static void
qp_throw_away(struct roce_qp_cold *cold, struct roce_res_ring *ring)
{
	if (ring == NULL)
		return;
	ring->next = cold->res_old;
	cold->res_old = ring;
}

/* ---- state ---------- */

void
roce_qp_set_state(struct roce_qp *qp, unsigned int state)
{
	qp->v.state = (uint8_t)state;
	/* in ERR, before any look at rq_tail: see ring_bell.h */
	atomic_store_explicit(&qp->v.daemon->state, state, memory_order_seq_cst);
}

void
roce_ack_unlink(struct roce *r, struct roce_qp *qp)
{
	struct roce_qp **p = &r->ack_list;

	if (!qp->on_ack_list)
		return;
	while (*p != qp)
		p = &(*p)->ack_next;
	*p = qp->ack_next;
	qp->on_ack_list = false;
}

void
roce_neigh_unlink(struct roce *r, struct roce_qp *qp)
{
	struct roce_qp **p = &r->neigh_list;

	if (!qp->neigh_wait)
		return;
	while (*p != qp)
		p = &(*p)->neigh_next;
	*p = qp->neigh_next;
	qp->neigh_wait = false;
	roce_timer_stop(qp, ROCE_T_NEIGH);
}

bool
roce_qp_reachable(struct roce *r, struct roce_qp *qp)
{
	r->l2 = net_neigh_use(qp->path.neigh);
	if (likely(net_neigh_l2_usable(r->l2))) {
		if (unlikely(qp->neigh_wait))
			roce_neigh_unlink(r, qp);
		return true;
	}
	if (!qp->neigh_wait) {
		roce_count(r, ROCE_C_NEIGH_WAIT);
		qp->neigh_wait = true;
		qp->neigh_next = r->neigh_list;
		r->neigh_list = qp;
		roce_timer_set(r, qp, ROCE_T_NEIGH, r->now + ROCE_NEIGH_RETRY_NS);
	}
	/* Requests do not wait for ever; what is to be answered costs no retry. */
	if (qp->v.state == RING_QPS_RTS && roce_req_has_work(qp))
		roce_timer_sent(r, qp);
	return false;
}

/**
 * Let go of every packet; one that an io still reads into is that io's (its user). A placement
 * under way stays the QP's: it writes to the application's memory until roce_io_done().
 */
static void
qp_drop_packets(struct roce *r, struct roce_qp *qp)
{
	struct verbs_io *placing = qp->v.io[VERBS_RX];
	struct rte_mbuf *m;

	roce_hold_drop(r, qp, &qp->behind_hole);
	roce_hold_drop(r, qp, &qp->early);
	roce_hold_drop(r, qp, &qp->waiting);
	m = placing ? NULL : roce_unhold_placing(r, qp);
	if (m)
		rte_pktmbuf_free(m);
	if (qp->parked && qp->v.io[VERBS_TX] == NULL)
		rte_pktmbuf_free(qp->parked);
	qp->parked = NULL;
	qp->inv_wait = qp->rx_again = false;
	qp->v.io[VERBS_RX] = NULL;
	verbs_io_abandon(&qp->v);
	qp->v.io[VERBS_RX] = placing;
}

/** Off every list and timer of this worker. */
static void
qp_quiet(struct roce *r, struct roce_qp *qp)
{
	roce_ack_unlink(r, qp);
	roce_neigh_unlink(r, qp);
	roce_local_abort(r, qp);
	wheel_cancel(&r->wheel, &qp->timer);
	roce_cc_drop(r, qp);
	memset(qp->due, 0, sizeof(qp->due));
	qp_drop_packets(r, qp);
	qp->say = ROCE_SAY_NOTHING;
	for (uint32_t i = 0; qp->res && i < qp->res->size; i++)
		qp->res->e[i].pending = false;
	qp->res_pending = 0;
	qp->req_wqe = qp->rd_head = NULL;
	qp->resend = qp->recovering = qp->rnr_wait = false;
}

void
roce_qp_fail(struct roce *r, struct roce_qp *qp)
{
	if (qp->v.state == RING_QPS_ERR || qp->v.state == RING_QPS_RESET)
		return;
	roce_qp_set_state(qp, RING_QPS_ERR);
	qp_quiet(r, qp);
	qp->last_wqe = qp->v.srq != NULL;
	roce_count(r, ROCE_C_QP_ERRORS);
	verbs_run_add(r->w, &qp->v);
}

void
roce_qp_send_error(struct roce *r, struct roce_qp *qp)
{
	if (qp->v.state != RING_QPS_RTS && qp->v.state != RING_QPS_SQD)
		return;
	roce_qp_set_state(qp, RING_QPS_SQE);
	roce_count(r, ROCE_C_SQ_ERRORS);
	/* PSNs that were given and not used are the next request's */
	qp->req_psn = qp->nxt_psn = qp->una = qp->ack_max = qp->snd_max;
	qp->req_wqe = NULL;
	qp->inflight = 0;
	qp->sq_flush = true;
	roce_neigh_unlink(r, qp);
	verbs_run_add(r->w, &qp->v);
}

static inline bool
qp_cq_overrun(const struct verbs_cq *cq)
{
	return cq != NULL && atomic_load_explicit(&cq->overrun, memory_order_relaxed);
}

void
roce_qp_check_cqs(struct roce *r, struct roce_qp *qp)
{
	if (likely(!qp_cq_overrun(qp->v.send_cq) && !qp_cq_overrun(qp->v.recv_cq)))
		return;
	if (qp->v.state == RING_QPS_ERR)
		return;
	r->w->host.event(r->w->host.ctx, VERBS_EVENT_QP_FATAL, &qp->v);
	roce_qp_fail(r, qp);
}

void
roce_qp_check_drained(struct roce *r, struct roce_qp *qp)
{
	if (qp->drained || qp->v.wqe_head)
		return;
	qp->drained = true;
	if (qp->drain_event)
		r->w->host.event(r->w->host.ctx, VERBS_EVENT_SQ_DRAINED, &qp->v);
	qp->drain_event = false; /* once (C-44) */
}

void
roce_qp_detach(struct roce *r, struct verbs_qp *v)
{
	struct roce_qp *qp = qp_of(v);

	qp_quiet(r, qp);
	roce_qp_set_state(qp, RING_QPS_RESET); /* a placement that ends later goes no further */
	verbs_run_remove(r->w, v);
	if (!v->srq && v->type != VERBS_QPT_XRC_RECV && qp->rwqe_used) {
		qp->rwqe_used = false;
		verbs_rwqe_release(r->w, &qp->rwqe);
	}
	if (!v->io[VERBS_RX])
		roce_rwqe_flush(r, qp);
	verbs_qp_drop(r->w, v);
}

/* ---- modify: values ---------- */

static bool
modify_av_ok(const struct roce *r, const struct verbs_av *av)
{
	struct net_ip s = net_ip_from_bytes(av->sgid), d = net_ip_from_bytes(av->dgid);

	return net_ip_is_v4(&s) == net_ip_is_v4(&d) && av->sl <= 7 && av->neigh != NULL &&
	       !net_ip_is_multicast(&d) && (r == NULL || av->port < r->cfg.num_ports) &&
	       (av->vlan == 0xffff || av->vlan < 4095) && av->flow_label < 1u << 20;
}

static bool
modify_numbers_ok(const struct verbs_qp_attr *a, uint32_t mask)
{
	if ((mask & VERBS_QP_PATH_MTU) &&
	    (a->path_mtu < 256 || a->path_mtu > 4096 || (a->path_mtu & (a->path_mtu - 1))))
		return false;
	if ((mask & VERBS_QP_TIMEOUT) && a->timeout > 31)
		return false;
	if ((mask & VERBS_QP_RETRY_CNT) && a->retry_cnt > 7)
		return false;
	if ((mask & VERBS_QP_RNR_RETRY) && a->rnr_retry > 7)
		return false;
	if ((mask & VERBS_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return false;
	if ((mask & VERBS_QP_RQ_PSN) && a->rq_psn > PSN_MASK)
		return false;
	if ((mask & VERBS_QP_SQ_PSN) && a->sq_psn > PSN_MASK)
		return false;
	if ((mask & VERBS_QP_DEST_QPN) && a->dest_qpn > ROCE_QPN_MASK)
		return false;
	if ((mask & VERBS_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > ROCE_MAX_RD_ATOMIC)
		return false;
	return !(mask & VERBS_QP_MAX_DEST_RD_ATOMIC) ||
	       a->max_dest_rd_atomic <= ROCE_MAX_RD_ATOMIC;
}

static int
modify_check(const struct roce *r, const struct roce_qp *qp, const struct verbs_qp_attr *a,
	     uint32_t mask, unsigned int next)
{
	if (!modify_numbers_ok(a, mask))
		return -EINVAL;
	if ((mask & VERBS_QP_PKEY_INDEX) && a->pkey_index != 0)
		return -EINVAL; /* one entry: the default */
	if ((mask & VERBS_QP_ACCESS_FLAGS) &&
	    (a->access & ~(uint32_t)(REMOTE_RIGHTS | MR_LOCAL_WRITE)))
		return -EINVAL;
	if ((mask & VERBS_QP_AV) && !modify_av_ok(r, &a->av))
		return -EINVAL;
	if ((mask & VERBS_QP_CUR_STATE) && a->cur_state != qp->v.state)
		return -EINVAL;
	if ((mask & VERBS_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic && !qp->cold->res_new)
		return -EINVAL; /* roce_qp_prepare() was not called */
	if (qp->v.state == RING_QPS_SQD && next == RING_QPS_RTS && qp->v.wqe_head)
		return -EBUSY;
	/* what is under way goes by the old resources */
	if ((mask & VERBS_QP_MAX_DEST_RD_ATOMIC) &&
	    (qp->res_pending || qp->placing || (qp->parked && qp->parked_response)))
		return -EBUSY;
	return 0;
}

/* ---- modify: effects ---------- */

static void
modify_path(const struct roce *r, struct roce_qp *qp)
{
	const struct verbs_av *av = &qp->cold->av;
	struct net_path_params prm = {
		.neigh = av->neigh,
		.src = net_ip_from_bytes(av->sgid),
		.dst = net_ip_from_bytes(av->dgid),
		.vlan_tci = av->vlan == 0xffff ? NET_VLAN_NONE : net_vlan_tci(av->vlan, av->sl),
		.sport = net_udp_sport_hash(av->flow_label, qp->v.qpn, qp->dest_qpn),
		.flow_label = av->flow_label,
		.tclass = av->tclass & 0xfc,
		.hop_limit = av->hop_limit,
	};

	/* ECN 00 without congestion management (A17 CA17-5) */
	qp->ect = r && roce_cc_enabled(r, av->port);
	if (qp->ect)
		prm.tclass |= ROCE_ECN_ECT0;
	memcpy(prm.smac.addr_bytes, av->smac, sizeof(av->smac));
	net_path_init(&qp->path, &prm);
	qp->port = av->port;
}

/** The new ring remembers the newest of what the old one did. */
static void
modify_resources(struct roce_qp *qp, uint8_t depth)
{
	struct roce_res_ring *old = qp->res, *new = depth ? qp->cold->res_new : NULL;

	for (uint32_t i = 1; old && new && i <= old->size && i <= new->size; i++)
		new->e[(qp->res_tail - i) & (new->size - 1)] =
			old->e[(qp->res_tail - i) & (old->size - 1)];
	if (!depth)
		qp_throw_away(qp->cold, qp->cold->res_new);
	qp_throw_away(qp->cold, old);
	qp->res = new;
	qp->cold->res_new = NULL;
	qp->cold->max_dest_rd_atomic = depth;
}

/**
 * Half of the window, so that one piece is under way while the next is asked for; with a depth of
 * one all of it. READs under way keep their pieces.
 */
static void
modify_pieces(struct roce_qp *qp)
{
	uint32_t psns = qp->max_inflight >> qp->mtu_shift;

	if (qp->v.wqe_head)
		return;
	if (qp->max_rd_atomic > 1)
		psns /= 2;
	qp->piece_shift = (uint8_t)(psns ? 31 - __builtin_clz(psns) : 0);
}

static void
modify_apply(const struct roce *r, struct roce_qp *qp, const struct verbs_qp_attr *a, uint32_t mask)
{
	if (a->tell_est && qp->comm_est == ROCE_EST_NONE)
		qp->comm_est = ROCE_EST_TELL;
	if (mask & VERBS_QP_ACCESS_FLAGS)
		qp->v.access = a->access & REMOTE_RIGHTS;
	if (mask & VERBS_QP_DEST_QPN)
		qp->dest_qpn = a->dest_qpn;
	if (mask & VERBS_QP_QKEY)
		qp->qkey = a->qkey;
	if (mask & VERBS_QP_PATH_MTU)
		qp->mtu_shift = (uint8_t)__builtin_ctz(a->path_mtu);
	if (mask & VERBS_QP_TIMEOUT)
		qp->timeout = a->timeout;
	if (mask & VERBS_QP_RETRY_CNT)
		qp->retry_left = qp->retry_cnt = a->retry_cnt;
	if (mask & VERBS_QP_RNR_RETRY)
		qp->rnr_left = qp->rnr_retry = a->rnr_retry;
	if (mask & VERBS_QP_MIN_RNR_TIMER)
		qp->min_rnr_timer = a->min_rnr_timer;
	if (mask & VERBS_QP_MAX_QP_RD_ATOMIC)
		qp->max_rd_atomic = a->max_rd_atomic;
	if (mask & VERBS_QP_RQ_PSN)
		qp->epsn = qp->cold->rq_psn = a->rq_psn;
	if (mask & VERBS_QP_SQ_PSN)
		qp->req_psn = qp->snd_max = qp->nxt_psn = qp->una = qp->ack_max =
			qp->cold->sq_psn = a->sq_psn;
	if (mask & VERBS_QP_MAX_DEST_RD_ATOMIC)
		modify_resources(qp, a->max_dest_rd_atomic);
	if (mask & VERBS_QP_AV)
		qp->cold->av = a->av;
	if (mask & (VERBS_QP_AV | VERBS_QP_DEST_QPN))
		modify_path(r, qp);
	if (mask & VERBS_QP_PATH_MTU)
		roce_set_inflight(qp, roce_inflight_cap(r));
	if (mask & (VERBS_QP_PATH_MTU | VERBS_QP_MAX_QP_RD_ATOMIC))
		modify_pieces(qp);
}

/** As new: PSNs, MSN, message, resources, counters of retries (IBTA 10.3.1: RESET). */
static void
modify_reset(struct roce *r, struct roce_qp *qp)
{
	struct roce_qp_cold *cold = qp->cold;
	struct roce_res_ring *garbage;
	uint32_t srqn = cold->xrc_srqn;
	uint64_t serial = cold->xrc_serial;
	bool rwqe_used;

	if (r)
		roce_qp_detach(r, &qp->v);
	qp_throw_away(cold, cold->res_new);
	qp_throw_away(cold, qp->res);
	garbage = cold->res_old;
	qp->v.access = 0;
	rwqe_used = qp->rwqe_used; /* an SRQ's, until the placement under way has ended */
	memset((char *)qp + offsetof(struct roce_qp, path), 0,
	       offsetof(struct roce_qp, res) - offsetof(struct roce_qp, path));
	qp->rwqe_used = rwqe_used;
	qp_init_transport(qp);
	qp->res = NULL;
	qp->res_tail = 0;
	memset(cold, 0, sizeof(*cold));
	cold->res_old = garbage;
	cold->xrc_srqn = srqn;
	cold->xrc_serial = serial;
}

/** SQE to RTS: what was posted in SQE is flushed still, what comes now is not. */
static void
modify_resume(struct roce_qp *qp)
{
	qp->req_stopped = false;
	qp->cold->flush_to = qp->v.sq.slots ? atomic_load_explicit(qp->v.sq.shared_tail,
								   memory_order_acquire)
					    : 0;
}

static void
modify_state(struct roce *r, struct roce_qp *qp, const struct verbs_qp_attr *a, uint32_t mask,
	     unsigned int next)
{
	unsigned int cur = qp->v.state;

	if (next == RING_QPS_RESET) {
		modify_reset(r, qp);
	} else if (cur == RING_QPS_RESET && next == RING_QPS_INIT) {
		verbs_qp_skip(&qp->v); /* what was posted while the client did not know yet */
	} else if (next == RING_QPS_ERR) {
		if (r)
			roce_qp_fail(r, qp);
		return;
	}
	if (cur == RING_QPS_SQE && next == RING_QPS_RTS)
		modify_resume(qp);
	roce_qp_set_state(qp, next);
	if (next == RING_QPS_SQD && cur == RING_QPS_RTS) {
		qp->drained = false;
		qp->drain_event = (mask & VERBS_QP_EN_SQD_ASYNC_NOTIFY) && a->en_sqd_async_notify;
		roce_qp_check_drained(r, qp);
	}
	if (r && (next == RING_QPS_RTS || next == RING_QPS_SQD))
		verbs_run_add(r->w, &qp->v);
}

int
roce_qp_modify(struct roce *r, struct verbs_qp *v, const struct verbs_qp_attr *attr, uint32_t mask,
	       uint64_t now)
{
	struct roce_qp *qp = qp_of(v);
	unsigned int next = (mask & VERBS_QP_STATE) ? attr->state : v->state;
	int ret;

	if (r) {
		r->now = now;
		if (v->share == NULL)
			v->share = &r->w->everyone;
	}
	ret = modify_check(r, qp, attr, mask, next);
	if (ret)
		return ret;
	modify_apply(r, qp, attr, mask);
	if (next != v->state)
		modify_state(r, qp, attr, mask, next);
	return 0;
}

/* ---- looking ---------- */

void
roce_qp_query(const struct verbs_qp *v, struct verbs_qp_attr *attr)
{
	const struct roce_qp *qp = (const struct roce_qp *)v;

	*attr = (struct verbs_qp_attr){
		.state = v->state,
		.cur_state = v->state,
		.en_sqd_async_notify = qp->drain_event,
		.access = v->access,
		.dest_qpn = qp->dest_qpn,
		.qkey = qp->qkey,
		.rq_psn = qp->v.state >= RING_QPS_RTR ? qp->epsn : 0,
		.sq_psn = qp->nxt_psn,
		.path_mtu = qp->mtu_shift ? roce_mtu(qp) : 0,
		.timeout = qp->timeout,
		.retry_cnt = qp->retry_cnt,
		.rnr_retry = qp->rnr_retry,
		.min_rnr_timer = qp->min_rnr_timer,
		.max_rd_atomic = qp->max_rd_atomic,
		.max_dest_rd_atomic = qp->cold->max_dest_rd_atomic,
		.av = qp->cold->av,
	};
}

void
roce_qp_get_info(const struct verbs_qp *v, struct roce_qp_info *info)
{
	const struct roce_qp *qp = (const struct roce_qp *)v;

	*info = (struct roce_qp_info){
		.qpn = v->qpn,
		.dest_qpn = qp->dest_qpn,
		.epsn = qp->epsn,
		.msn = qp->msn,
		.sq_psn = qp->nxt_psn,
		.una_psn = qp->una,
		.inflight_bytes = qp->inflight,
		.rx_held = qp->rx_held,
		.state = v->state,
		.retry_left = qp->retry_left,
		.rnr_left = qp->rnr_left,
		.keeps_out_of_order = qp->keeps == ROCE_KEEPS_YES,
		.retransmits = qp->cold->retransmits,
		.timeouts = qp->cold->timeouts,
		.naks_sent = qp->cold->naks_sent,
		.naks_rcvd = qp->cold->naks_rcvd,
		.rnrs_sent = qp->cold->rnrs_sent,
		.rnrs_rcvd = qp->cold->rnrs_rcvd,
	};
	roce_cc_get_info(qp, info);
}
