/* SPDX-License-Identifier: BSD-3-Clause */
/* See wire.h. */

#include "eal_start.h"
#include "wire.h"

#define US "192.0.2.2"
#define PEER "192.0.2.3"

static const struct rte_ether_addr mac_us = {{0x52, 0x54, 0, 0, 0, 2}};
static const struct rte_ether_addr mac_peer = {{0x52, 0x54, 0, 0, 0, 3}};

/* ---- surroundings ---------- */

static void
wire_notify(void *ctx, struct verbs_cq *cq)
{
	(void)ctx;
	(void)cq;
}

static void
wire_on_event(void *ctx, enum verbs_event event, void *obj)
{
	struct wire *w = ctx;

	(void)obj;
	ck_assert_uint_lt(w->num_events, WIRE_EVENTS);
	w->event[w->num_events++] = event;
}

static void
wire_io_submit(void *ctx, struct verbs_io *io)
{
	struct wire *w = ctx;

	ck_assert_uint_lt(w->num_io, WIRE_IOS);
	w->io[w->num_io++] = io;
}

static uint16_t
wire_burst(void *ctx, struct rte_mbuf **m, uint16_t n)
{
	struct wire *w = ctx;

	if (w->tx_stuck)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		ck_assert_uint_lt(w->num_out, WIRE_OUT);
		w->out[w->num_out++] = m[i];
	}
	return n;
}

static struct rte_mempool *
wire_pool(void)
{
	char arg[][32] = {"wire", "--no-huge", "-m", "64", "--no-pci", "--no-shconf",
			  "--no-telemetry", "--log-level=error", "--file-prefix=rnic-wire"};
	char *argv[RTE_DIM(arg)], name[16];
	static unsigned int pools;
	struct rte_mempool *mp;

	for (size_t i = 0; i < RTE_DIM(arg); i++)
		argv[i] = arg[i];
	if (pools == 0)
		ck_assert_int_ge(eal_start(RTE_DIM(argv), argv), 0);
	snprintf(name, sizeof(name), "wire%u", pools++);
	mp = rte_pktmbuf_pool_create(name, 2047, 0, 0, 6144, SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(mp);
	return mp;
}

static void *
wire_zalloc(size_t n)
{
	void *p = NULL;

	ck_assert_int_eq(posix_memalign(&p, RING_LINE, n), 0);
	memset(p, 0, n);
	return p;
}

/* ---- objects ---------- */

static void
wire_cq(struct wire *w)
{
	w->cq = wire_zalloc(verbs_cq_size(1));
	w->cqes = wire_zalloc(WIRE_CQES * sizeof(*w->cqes));
	w->cq->num_workers = 1;
	w->cq->daemon = &w->cq_daemon;
	w->cq->client = &w->cq_client;
	verbs_cq_init_ends(w->cq);
	w->cq->end[0].prod.ring = w->cqes;
	w->cq->end[0].prod.cons = &w->cq_client.cons[0];
	w->cq->end[0].prod.mask = WIRE_CQES - 1;
	w->cons.ring = w->cqes;
	w->cons.shared = &w->cq_client.cons[0];
	w->cons.mask = WIRE_CQES - 1;
}

static uint32_t
wire_register(struct wire *w, struct mr_seg seg)
{
	struct mr_desc d = {
		.type = MR_TYPE_REGION,
		.pd = WIRE_PD,
		.access = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC |
			  MR_MW_BIND | MR_FLUSH_GLOBAL,
		.iova = WIRE_VA,
		.length = WIRE_MEM,
		.segs = &seg,
		.num_segs = 1,
		.lane = w,
	};
	uint32_t key = 0;

	ck_assert_int_eq(mr_register(w->vw.mrs, &d, &key), 0);
	return key;
}

static void
wire_memory(struct wire *w)
{
	w->mem = wire_zalloc(WIRE_MEM);
	w->far = wire_zalloc(WIRE_MEM);
	w->key = wire_register(w, (struct mr_seg){0, WIRE_MEM, MR_SEG_DIRECT, w->mem, 0});
	w->far_key = wire_register(
		w, (struct mr_seg){0, WIRE_MEM, MR_SEG_FOREIGN, NULL, (uintptr_t)w->far});
}

static void
wire_neigh_send(void *ctx, uint16_t port, const uint8_t *frame, uint16_t len)
{
	(void)ctx;
	(void)port;
	(void)frame;
	(void)len;
}

static void
wire_neigh_event(void *ctx, enum net_neigh_event ev, struct net_neigh *n, const struct net_ip *ip,
	const struct rte_ether_addr *mac)
{
	(void)ctx;
	(void)ev;
	(void)n;
	(void)ip;
	(void)mac;
}

static void
wire_neigh(struct wire *w)
{
	struct net_neigh_ops ops = {.send = wire_neigh_send, .event = wire_neigh_event};

	net_iface_publish(&w->iface, net_iface_view_new(&mac_us, 0, 1500));
	w->neighs = net_neigh_table_new(&w->iface, 16, &ops);
	ck_assert_ptr_nonnull(w->neighs);
	ck_assert_int_eq(net_neigh_set_static(w->neighs, &w->peer, 0, &mac_peer), 0);
	w->neigh = net_neigh_get(w->neighs, &w->peer, 0, w->now);
	ck_assert_ptr_nonnull(w->neigh);
}

static void
wire_srq(struct wire *w)
{
	w->srq_ring = wire_zalloc(WIRE_SLOTS * sizeof(*w->srq_ring));
	w->srq_where = (struct verbs_srq_ring){
		.slots = w->rq, .index = w->srq_ring, .mask = WIRE_SLOTS - 1,
		.entries = WIRE_SLOTS,
	};
	w->srq = (struct verbs_srq){
		.srqn = 1, .pd = WIRE_PD, .ring = &w->srq_where, .daemon = &w->srq_daemon,
		.client = &w->srq_client, .stride = RING_SLOT_SIZE, .max_sge = RING_RWQE_SGES,
	};
	if (w->params.type != VERBS_QPT_XRC_RECV)
		return;
	w->srq.srqn = WIRE_SRQN;
	w->srq.xrcd = WIRE_XRCD;
	w->srq.serial = 1;
	w->srq.cq = w->cq;
	w->srqns = roce_qpn_table_create(16);
	ck_assert_int_eq(roce_qpn_take(w->srqns, WIRE_SRQN), 0);
	roce_srqn_set(w->srqns, WIRE_SRQN, &w->srq);
}

static uint32_t
or_default(uint32_t v, uint32_t d)
{
	return v ? v : d;
}

static void
wire_qp(struct wire *w, const struct wire_params *p)
{
	struct roce_qp_init init = {
		.qpn = or_default(p->qpn, WIRE_QPN), .pd = WIRE_PD,
		.type = p->type ? p->type : VERBS_QPT_RC,
		.send_cq = w->cq, .recv_cq = w->cq, .srq = p->credits ? NULL : &w->srq,
		.daemon = &w->daemon, .client = &w->client, .sq_slots = w->sq,
		.rq_slots = p->credits ? w->rq : NULL, .sq_entries = WIRE_SLOTS,
		.rq_entries = WIRE_SLOTS, .max_inline = 400, .max_send_sge = 8,
		.max_recv_sge = RING_RWQE_SGES,
	};

	if (p->type == VERBS_QPT_XRC_RECV) {
		init.pd = WIRE_XRCD;
		init.send_cq = init.recv_cq = NULL;
		init.sq_slots = NULL;
	}
	if (p->type == VERBS_QPT_XRC_RECV || p->type == VERBS_QPT_XRC_SEND) {
		init.srq = NULL;
		init.rq_slots = NULL;
	}
	w->qp = roce_qp_create(&init);
	ck_assert_ptr_nonnull(w->qp);
	ck_assert_int_eq(roce_qpn_take(w->qpns, init.qpn), 0);
	roce_qpn_set(w->qpns, init.qpn, w->qp, 0);
}

/* What only a QP that is acknowledged has. */
#define ACKED_ATTRS \
	(VERBS_QP_TIMEOUT | VERBS_QP_RETRY_CNT | VERBS_QP_RNR_RETRY | VERBS_QP_MIN_RNR_TIMER | \
	 VERBS_QP_MAX_QP_RD_ATOMIC | VERBS_QP_MAX_DEST_RD_ATOMIC)

/* And what one that is connected has. */
#define CONNECTED_ATTRS \
	(VERBS_QP_AV | VERBS_QP_PATH_MTU | VERBS_QP_DEST_QPN | VERBS_QP_RQ_PSN | \
	 VERBS_QP_ACCESS_FLAGS)

static void
wire_step_modify(struct wire *w, struct verbs_qp_attr *a, unsigned int state, uint32_t mask)
{
	a->state = (uint8_t)state;
	mask |= VERBS_QP_STATE;
	if (w->qp->type == VERBS_QPT_UC || w->qp->type == VERBS_QPT_UD)
		mask &= ~(uint32_t)ACKED_ATTRS;
	if (w->qp->type == VERBS_QPT_XRC_SEND)
		mask &= ~(uint32_t)(VERBS_QP_MIN_RNR_TIMER | VERBS_QP_MAX_DEST_RD_ATOMIC);
	if (w->qp->type == VERBS_QPT_XRC_RECV)
		mask &= ~(uint32_t)(VERBS_QP_RETRY_CNT | VERBS_QP_RNR_RETRY |
				    VERBS_QP_MAX_QP_RD_ATOMIC);
	if (w->qp->type == VERBS_QPT_UD)
		mask = (mask & ~(uint32_t)CONNECTED_ATTRS) |
		       (state == RING_QPS_INIT ? VERBS_QP_QKEY : 0);
	ck_assert_int_eq(verbs_qp_modify_check(w->qp->type, w->qp->state, state, mask), 0);
	ck_assert_int_eq(roce_qp_prepare(w->qp, a, mask), 0);
	ck_assert_int_eq(roce_qp_modify(w->r, w->qp, a, mask, w->now), 0);
	free(roce_qp_take_garbage(w->qp));
}

static void
wire_connect(struct wire *w, const struct wire_params *p)
{
	uint8_t rd = p->rd_atomic ? p->rd_atomic : 4;
	struct verbs_qp_attr a = {
		.access = p->access ? p->access
				    : MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC |
					      MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT,
		.dest_qpn = or_default(p->dest_qpn, WIRE_PEER_QPN),
		.qkey = or_default(p->qkey, WIRE_QKEY),
		.rq_psn = or_default(p->rq_psn, 0x200),
		.sq_psn = or_default(p->sq_psn, 0x100),
		.path_mtu = or_default(p->mtu, 1024),
		.timeout = p->timeout, .retry_cnt = p->retry_cnt, .rnr_retry = p->rnr_retry,
		.min_rnr_timer = p->min_rnr_timer, .max_rd_atomic = rd,
		.max_dest_rd_atomic = p->dest_rd_atomic ? p->dest_rd_atomic : 4,
		.av = {.vlan = 0xffff, .neigh = w->neigh, .hop_limit = 64,
		       .flow_label = p->flow_label, .tclass = p->tclass},
	};

	memcpy(a.av.sgid, w->us.b, 16);
	memcpy(a.av.dgid, w->peer.b, 16);
	memcpy(a.av.smac, mac_us.addr_bytes, 6);
	wire_step_modify(w, &a, RING_QPS_INIT,
			 VERBS_QP_PKEY_INDEX | VERBS_QP_PORT | VERBS_QP_ACCESS_FLAGS);
	wire_step_modify(w, &a, RING_QPS_RTR,
			 VERBS_QP_AV | VERBS_QP_PATH_MTU | VERBS_QP_DEST_QPN | VERBS_QP_RQ_PSN |
				 VERBS_QP_MAX_DEST_RD_ATOMIC | VERBS_QP_MIN_RNR_TIMER);
	if (p->stop_at_rtr)
		return;
	wire_step_modify(w, &a, RING_QPS_RTS,
			 VERBS_QP_TIMEOUT | VERBS_QP_RETRY_CNT | VERBS_QP_RNR_RETRY |
				 VERBS_QP_SQ_PSN | VERBS_QP_MAX_QP_RD_ATOMIC);
}

static bool
wire_handoff(void *ctx, uint32_t worker, struct rte_mbuf *m)
{
	struct wire *w = ctx;

	ck_assert_uint_eq(worker, 0);
	if (w->num_loop == WIRE_LOOP)
		return false;
	w->loop[w->num_loop++] = m;
	return true;
}

/** Packets from ourselves to ourselves, as by the worker's hand-over ring. */
static unsigned int
wire_loop(struct wire *w)
{
	unsigned int n = w->num_loop;
	struct net_pkt p[WIRE_LOOP];

	w->num_loop = 0;
	for (unsigned int i = 0; i < n; i++)
		ck_assert_int_eq(net_parse(w->loop[i], &p[i]), NET_UDP);
	roce_input(w->r, p, n, w->now);
	return n;
}

static void
wire_engine(struct wire *w, const struct wire_params *p)
{
	struct roce_config cfg = {
		.verbs = &w->vw, .qpns = w->qpns, .srqns = w->srqns, .tx = w->txs, .num_ports = 1,
		.tx_pool = w->pool, .max_rx_held = 256,
		.max_rx_held_qp = or_default(p->max_rx_held_qp, 64),
		.max_inflight = p->max_inflight, .max_reap = p->max_reap,
		.strict_responder = p->strict, .go_back_n = p->go_back_n,
		.ahs = w->ahs, .mcast = w->mcast, .mtu = w->mtu, .ctx = w,
		.handoff = p->type == VERBS_QPT_UD ? wire_handoff : NULL,
	};

	w->r = roce_create(&cfg, w->now);
	ck_assert_ptr_nonnull(w->r);
	if (p->cc)
		roce_cc_set(w->r, 0, &roce_cc_defaults);
}

struct wire *
wire_new(const struct wire_params *p)
{
	struct wire *w = wire_zalloc(sizeof(*w));
	struct verbs_host host = {wire_notify, wire_on_event, wire_io_submit, w};
	struct mr_table *mrs = mr_table_create(64);

	w->params = *p;
	w->now = 1000000;
	w->pool = wire_pool();
	ck_assert_int_eq(net_ip_parse(p->us ? p->us : US, &w->us), 0);
	ck_assert_int_eq(net_ip_parse(p->peer ? p->peer : PEER, &w->peer), 0);
	ck_assert_int_eq(verbs_worker_init(&w->vw, 0, mrs, &host, 2047, 16, 16), 0);
	w->vw.now = w->now;
	wire_neigh(w);
	net_tx_init(&w->tx, wire_burst, w);
	w->txs[0] = &w->tx;
	w->qpns = roce_qpn_table_create(64);
	w->ahs = roce_ah_table_create(32);
	w->mcast = roce_mcast_table_create();
	w->mtu[0] = or_default(p->mtu, 1024);
	w->sq = wire_zalloc(WIRE_SLOTS * RING_SLOT_SIZE);
	w->rq = wire_zalloc(WIRE_SLOTS * RING_SLOT_SIZE);
	wire_memory(w);
	wire_cq(w);
	wire_srq(w);
	wire_engine(w, p);
	wire_qp(w, p);
	wire_connect(w, p);
	if (p->type == VERBS_QPT_UD)
		w->ah = wire_ah(w, p->peer ? p->peer : PEER, false);
	return w;
}

int
wire_modify(struct wire *w, unsigned int state)
{
	struct verbs_qp_attr a = {.state = (uint8_t)state, .en_sqd_async_notify = true};
	uint32_t mask = VERBS_QP_STATE;
	int ret;

	if (state == RING_QPS_SQD)
		mask |= VERBS_QP_EN_SQD_ASYNC_NOTIFY;
	ret = roce_qp_modify(w->r, w->qp, &a, mask, w->now);
	if (ret == 0)
		wire_go(w);
	return ret;
}

void
wire_connect_again(struct wire *w)
{
	ck_assert_int_eq(wire_modify(w, RING_QPS_RESET), 0);
	free(roce_qp_take_garbage(w->qp));
	wire_connect(w, &w->params);
}

static void
wire_drop_out(struct wire *w)
{
	if (w->next_out > 0)
		rte_pktmbuf_free(w->out[w->next_out - 1]);
	while (w->next_out < w->num_out)
		rte_pktmbuf_free(w->out[w->next_out++]);
	w->next_out = w->num_out = 0;
	net_tx_purge(&w->tx);
}

void
wire_free(struct wire *w)
{
	wire_drop_out(w);
	ck_assert_uint_eq(w->num_io, 0);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RESET), 0);
	free(roce_qp_take_garbage(w->qp));
	ck_assert(roce_qp_idle(w->qp));
	ck_assert_uint_eq(roce_rx_held(w->r), 0);
	ck_assert_uint_eq(w->vw.shadows_used, 0);
	ck_assert_uint_eq(w->vw.blocks_used, 0);
	ck_assert_uint_eq(w->vw.ios_used, 0);
	ck_assert_uint_eq(roce_next_deadline(w->r), UINT64_MAX);
	roce_qp_free(w->qp);
	roce_destroy(w->r);
	roce_qpn_table_free(w->qpns);
	roce_qpn_table_free(w->srqns);
	roce_ah_table_free(w->ahs);
	roce_mcast_table_free(w->mcast);
	ck_assert_uint_eq(rte_mempool_in_use_count(w->pool), 0);
	net_neigh_put(w->neigh);
	net_neigh_table_free(w->neighs);
	net_iface_view_free(net_iface_get(&w->iface));
	mr_table_free(w->vw.mrs);
	verbs_worker_fini(&w->vw);
	free(w->sq);
	free(w->rq);
	free(w->mem);
	free(w->far);
	free(w->srq_ring);
	free(w->cq);
	free(w->cqes);
	rte_mempool_free(w->pool);
	free(w);
}

/* ---- driving ---------- */

static enum verbs_run
wire_step(void *arg, struct verbs_qp *qp)
{
	struct wire *w = arg;

	return roce_run(w->r, qp, w->now);
}

void
wire_go(struct wire *w)
{
	unsigned int did;

	w->vw.now = w->now;
	do {
		did = verbs_run_round(&w->vw, 16384, wire_step, w);
		did += roce_timers(w->r, w->now);
		roce_flush(w->r, w->now);
		net_tx_flush(&w->tx);
		did += wire_loop(w);
		verbs_cq_burst_end(&w->vw);
	} while ((did || w->vw.run_head) && !w->tx_stuck);
}

void
wire_wait(struct wire *w, uint64_t ns)
{
	uint64_t end = w->now + ns, next;

	while ((next = roce_next_deadline(w->r)) <= end) {
		w->now = next > w->now ? next : w->now;
		wire_go(w);
	}
	w->now = end;
	wire_go(w);
}

void
wire_frame_only(struct wire *w, const void *frame, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);
	struct net_pkt p;

	ck_assert_ptr_nonnull(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	m->port = 0;
	ck_assert_int_eq(net_parse(m, &p), NET_UDP);
	roce_input(w->r, &p, 1, w->now);
}

void
wire_frame(struct wire *w, const void *frame, size_t len)
{
	wire_frame_only(w, frame, len);
	wire_go(w);
}

void
wire_pkt_only(struct wire *w, struct roce_pkt p, const void *payload, uint32_t len)
{
	struct net_path_params prm = {.src = w->peer, .dst = w->us, .smac = mac_peer,
				      .vlan_tci = NET_VLAN_NONE, .sport = 0xd000,
				      .tclass = w->rx_tclass};
	struct net_path path;
	uint8_t frame[8192], body[6144], *at;
	size_t n;

	ck_assert_int_eq(net_path_init(&path, &prm), 0);
	p.dest_qpn = or_default(p.dest_qpn, w->qp->qpn);
	p.pkey = p.pkey ? p.pkey : ROCE_PKEY_DEFAULT;
	p.info = &roce_opcodes[p.opcode];
	p.payload = payload ? payload : (const uint8_t *)"";
	p.payload_len = len;
	p.pad = (uint8_t)roce_pad(len);
	n = roce_emit(&p, body, sizeof(body));
	ck_assert_uint_ne(n, 0);
	at = net_path_emit(&path, frame, (uint16_t)(n + ROCE_ICRC_LEN),
			   net_neigh_l2_pack(&mac_us, NET_NEIGH_REACHABLE));
	memcpy(at, body, n);
	n += (size_t)(at - frame) + ROCE_ICRC_LEN;
	roce_icrc_write(frame + path.l3_off, path.v6, n - path.l3_off);
	wire_frame_only(w, frame, n);
}

void
wire_pkt(struct wire *w, struct roce_pkt p, const void *payload, uint32_t len)
{
	wire_pkt_only(w, p, payload, len);
	wire_go(w);
}

void
wire_ack(struct wire *w, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_ACK, .psn = psn, .syndrome = syndrome,
				      .msn = msn}, NULL, 0);
}

/* ---- what was sent ---------- */

struct rte_mbuf *
wire_last(struct wire *w)
{
	return w->out[w->next_out - 1];
}

bool
wire_sent(struct wire *w, struct roce_pkt *p)
{
	struct net_pkt np;
	struct rte_mbuf *m;

	if (w->next_out > 0) { /* the one before */
		rte_pktmbuf_free(w->out[w->next_out - 1]);
		w->out[w->next_out - 1] = NULL;
	}
	if (w->next_out == w->num_out) {
		w->next_out = w->num_out = 0;
		return false;
	}
	m = w->out[w->next_out++];
	ck_assert_int_eq(net_parse(m, &np), NET_UDP);
	ck_assert_uint_eq(np.dport, ROCE_UDP_PORT);
	ck_assert(roce_icrc_check(rte_pktmbuf_mtod_offset(m, void *, np.l3_off), np.v6,
				  (size_t)(np.payload_off - np.l3_off) + np.payload_len));
	ck_assert_int_eq(roce_parse(rte_pktmbuf_mtod_offset(m, void *, np.payload_off),
				    np.payload_len - ROCE_ICRC_LEN, p), ROCE_OK);
	ck_assert(p->migreq == (p->opcode != ROCE_CNP));
	ck_assert_uint_eq(p->pkey, ROCE_PKEY_DEFAULT);
	return true;
}

void
wire_expect(struct wire *w, uint8_t opcode, uint32_t psn, struct roce_pkt *p)
{
	struct roce_pkt own;

	if (p == NULL)
		p = &own;
	ck_assert_msg(wire_sent(w, p), "nothing was sent, %s %#x expected",
		      roce_opcode_name(opcode), psn);
	ck_assert_msg(p->opcode == opcode && p->psn == psn, "%s %#x (%#x) sent, %s %#x expected",
		      roce_opcode_name(p->opcode), p->psn, p->syndrome, roce_opcode_name(opcode),
		      psn);
}

void
wire_expect_ack(struct wire *w, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct roce_pkt p;

	wire_expect(w, ROCE_RC_ACK, psn, &p);
	ck_assert_uint_eq(p.syndrome, syndrome);
	ck_assert_uint_eq(p.msn, msn);
}

void
wire_expect_none(struct wire *w)
{
	struct roce_pkt p;

	if (wire_sent(w, &p))
		ck_abort_msg("%s %#x (%#x) sent, nothing expected", roce_opcode_name(p.opcode),
			     p.psn, p.syndrome);
}

void
wire_forget(struct wire *w)
{
	struct roce_pkt p;

	while (wire_sent(w, &p))
		;
}

/* ---- the client ---------- */

void
wire_post_raw(struct wire *w, const struct ring_wqe *q)
{
	memcpy(w->sq + (w->sq_tail & (WIRE_SLOTS - 1)) * RING_SLOT_SIZE, q, sizeof(*q));
	w->sq_tail++;
	atomic_store(&w->client.sq_tail, w->sq_tail);
	verbs_run_add(&w->vw, w->qp);
}

void
wire_post(struct wire *w, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags, uint64_t raddr,
	  uint32_t rkey)
{
	struct ring_wqe q = {.opcode = opcode, .flags = flags | RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = len ? 1 : 0, .rkey = rkey, .remote_addr = raddr,
			     .imm = 0x11223344};

	if (len)
		q.sge[0] = (struct ring_sge){WIRE_VA + off, len, w->key};
	wire_post_raw(w, &q);
	wire_go(w);
}

uint32_t
wire_ah(struct wire *w, const char *to, bool dead)
{
	struct verbs_av av = {.vlan = 0xffff, .hop_limit = 64};
	struct net_ip dst;
	uint32_t number;

	ck_assert_int_eq(net_ip_parse(to, &dst), 0);
	if (!dead && !net_ip_is_multicast(&dst))
		ck_assert_int_eq(net_neigh_set_static(w->neighs, &dst, 0, &mac_peer), 0);
	av.neigh = net_neigh_get(w->neighs, &dst, 0, w->now);
	ck_assert_ptr_nonnull(av.neigh);
	net_neigh_put(av.neigh); /* the table outlives all */
	memcpy(av.dgid, dst.b, 16);
	memcpy(av.sgid, w->us.b, 16);
	memcpy(av.smac, mac_us.addr_bytes, 6);
	ck_assert_int_eq(roce_ah_add(w->ahs, WIRE_PD, &av, 0, &number), 0);
	return number;
}

void
wire_post_ud(struct wire *w, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags, uint32_t ah,
	     uint32_t qpn, uint32_t qkey)
{
	struct ring_wqe q = {.opcode = opcode, .flags = flags | RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = len ? 1 : 0, .qkey = qkey, .ah = ah, .remote_qpn = qpn,
			     .imm = 0x11223344};

	if (len)
		q.sge[0] = (struct ring_sge){WIRE_VA + off, len, w->key};
	wire_post_raw(w, &q);
	wire_go(w);
}

void
wire_post_recv(struct wire *w, uint32_t off, uint32_t len)
{
	uint32_t i = w->rq_tail++ & (WIRE_SLOTS - 1);
	struct ring_rwqe q = {.num_slots = 1, .num_sge = 1,
			      .sge = {{WIRE_VA + off, len, w->key}}};

	memcpy(w->rq + i * RING_SLOT_SIZE, &q, sizeof(q));
	w->srq_ring[i] = i;
	atomic_store(&w->srq_client.tail, w->rq_tail);
	atomic_store(&w->client.rq_tail, w->rq_tail);
}

struct ring_cqe
wire_cqe(struct wire *w, enum wc_status status)
{
	const struct ring_cqe *e = ring_cq_peek(&w->cons);
	struct ring_cqe out;

	ck_assert_msg(e != NULL, "no completion, %s expected", wc_status_name(status));
	memcpy(&out, e, sizeof(out));
	ring_cq_advance(&w->cons);
	ring_cq_release(&w->cons);
	ck_assert_str_eq(wc_status_name(out.qpn_status >> 24), wc_status_name(status));
	return out;
}

void
wire_no_cqe(struct wire *w)
{
	ck_assert_ptr_null(ring_cq_peek(&w->cons));
}

bool
wire_event(const struct wire *w, enum verbs_event e)
{
	for (unsigned int i = 0; i < w->num_events; i++)
		if (w->event[i] == e)
			return true;
	return false;
}

static void
wire_copy(struct verbs_io *io)
{
	for (unsigned int i = 0; i < io->num; i++) {
		uint64_t *word = (uint64_t *)(uintptr_t)io->piece[i].remote;

		if (io->op == VERBS_IO_READ) {
			memcpy(io->piece[i].local, word, io->piece[i].len);
		} else if (io->op == VERBS_IO_WRITE) {
			memcpy(word, io->piece[i].local, io->piece[i].len);
		} else {
			io->original = *word;
			if (io->op == VERBS_IO_FETCH_ADD)
				*word += io->compare_add;
			else if (*word == io->compare_add)
				*word = io->swap;
		}
	}
}

void
wire_io(struct wire *w, int status)
{
	struct verbs_io *io = w->io[0];
	unsigned int dir = io->dir;
	void *user = io->user;
	struct verbs_qp *qp;
	uint64_t original;

	ck_assert_uint_gt(w->num_io, 0);
	memmove(w->io, w->io + 1, --w->num_io * sizeof(w->io[0]));
	io->status = status;
	if (status == 0)
		wire_copy(io);
	qp = verbs_io_finish(&w->vw, io, &status, &original);
	if (qp)
		roce_io_done(w->r, qp, dir, status, original, w->now);
	else
		roce_io_orphan(w->r, user);
	wire_go(w);
}

uint64_t
wire_counter(const struct wire *w, enum roce_counter c)
{
	return roce_counters(w->r)[c];
}

void
wire_mr_key(struct wire *w, uint32_t key, uint64_t va, uint8_t *ptr, uint64_t len, uint32_t access)
{
	struct mr *mr = mr_slot(w->vw.mrs, key);

	/* Keys are random: ours may lie there, and moves. */
	if (mr == mr_slot(w->vw.mrs, w->key))
		w->key = wire_register(w, (struct mr_seg){0, WIRE_MEM, MR_SEG_DIRECT, w->mem, 0});
	else if (mr == mr_slot(w->vw.mrs, w->far_key))
		w->far_key = wire_register(w, (struct mr_seg){0, WIRE_MEM, MR_SEG_FOREIGN, NULL,
							      (uintptr_t)w->far});
	mr->iova = va;
	mr->length = len;
	mr->base = ptr;
	mr->pd = WIRE_PD;
	mr->pd_mask = UINT32_MAX;
	mr->qpn = mr->qpn_mask = 0;
	mr->shift = 0;
	atomic_store(&mr->word,
		     mr_word(key, access | MR_LOCAL_READ, MR_TYPE_REGION, MR_STATE_VALID));
}

struct mr *
wire_key_fast(struct wire *w)
{
	struct mr *mr = mr_slot(w->vw.mrs, w->key);

	atomic_store(&mr->word, mr_word(w->key, MR_LOCAL_READ | MR_LOCAL_WRITE | MR_REMOTE_WRITE |
							MR_REMOTE_READ,
					MR_TYPE_FAST_REG, MR_STATE_VALID));
	return mr;
}

void
wire_pattern(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8) * 13);
}
