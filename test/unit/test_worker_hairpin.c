/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Own to own addresses: QPs of two workers joined by the hairpin, a WRITE and a SEND across
 * it, and the bells, bindings and unbindings that belong to it.
 */
#include "mr_table_priv.h"
#include "ring_bell.h"
#include "worker_fixture.h"

#define DEPTH 16
#define PD 7
#define BYTES 5000
#define TURNS 10000 /* of both workers: far more than any of this needs */

static struct fx f;

struct end {
	uint32_t worker, qpn, key, bell_slot;
	struct verbs_qp *qp;
	struct verbs_cq *cq;
	struct ring_cqe *cqes;
	struct ring_cq_client *cq_client;
	struct ring_cq_cons cons;
	struct ring_qp_client *client;
	struct ring_qp_daemon *daemon;
	struct ring_wq_prod sq, rq;
	uint8_t *buf;
};

static struct worker_ctx *ctx;
static struct ring_bell_daemon *bell_words[FX_WORKERS];
static struct net_neigh_table *neighs;

static void
no_send(void *arg, uint16_t port, const uint8_t *frame, uint16_t len)
{
	(void)arg;
	(void)port;
	(void)frame;
	(void)len;
	ck_abort_msg("an own address needs no resolution");
}

static void
no_event(void *arg, enum net_neigh_event ev, struct net_neigh *n, const struct net_ip *addr,
	 const struct rte_ether_addr *mac)
{
	(void)arg;
	(void)ev;
	(void)n;
	(void)addr;
	(void)mac;
}

static void
add_context(void)
{
	const struct net_neigh_ops ops = {.send = no_send, .event = no_event};
	struct net_ip own = ip("192.0.2.2");

	neighs = net_neigh_table_new(&f.s.iface[0], 16, &ops);
	ck_assert_int_eq(net_neigh_set_static(neighs, &own, 0, &test_us), 0);
	ctx = fx_alloc(sizeof(*ctx) + FX_WORKERS * sizeof(ctx->at[0]));
	ctx->num_workers = f.s.num_workers;
	for (uint32_t w = 0; w < f.s.num_workers; w++) {
		struct worker_msg m = {.type = WORKER_MSG_CTX_ADD, .ctx = ctx};

		ctx->at[w].daemon = bell_words[w] = fx_alloc(sizeof(*bell_words[w]));
		ctx->at[w].chunk[0] = fx_alloc(sizeof(struct ring_bell_chunk));
		ctx->at[w].slots[0] = calloc(RING_BELL_SLOTS, sizeof(void *));
		ctx->at[w].num_chunks = 1;
		ctx->at[w].kick_fd = -1;
		ck_assert_int_eq(fx_call(&f, w, &m), 0);
	}
}

static void
make_cq(struct end *e)
{
	struct worker_msg m = {.type = WORKER_MSG_CQ_SUB};

	e->cqes = fx_alloc(64 * sizeof(*e->cqes));
	e->cq_client = fx_alloc(sizeof(*e->cq_client));
	e->cq = fx_alloc(verbs_cq_size(f.s.num_workers));
	e->cq->num_workers = f.s.num_workers;
	e->cq->daemon = fx_alloc(sizeof(*e->cq->daemon));
	e->cq->client = e->cq_client;
	verbs_cq_init_ends(e->cq);
	e->cons = (struct ring_cq_cons){e->cqes, &e->cq_client->cons[e->worker], 63, 0};
	m.cq.cq = e->cq;
	m.cq.ring = e->cqes;
	m.cq.cons = e->cons.shared;
	m.cq.entries = 64;
	ck_assert_int_eq(fx_call(&f, e->worker, &m), 0);
}

static void
make_mr(struct end *e)
{
	struct mr_seg seg = {.length = BYTES, .kind = MR_SEG_DIRECT};
	struct mr_desc d = {.type = MR_TYPE_REGION, .pd = PD, .length = BYTES, .segs = &seg,
			    .num_segs = 1, .access = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_MW_BIND};

	e->buf = fx_alloc(BYTES);
	seg.ptr = e->buf;
	d.iova = (uintptr_t)e->buf;
	ck_assert_int_eq(mr_register(f.s.mrs, &d, &e->key), 0);
}

static void
make_end(struct end *e, uint32_t worker)
{
	const struct verbs_qp_attr attr = {.state = RING_QPS_INIT, .access = MR_REMOTE_WRITE};
	struct roce_qp_init init = {.qpn = roce_qpn_alloc(f.s.qpns), .type = VERBS_QPT_RC,
		.pd = PD, .sq_entries = DEPTH, .rq_entries = DEPTH, .max_send_sge = 1,
		.max_recv_sge = 1};

	memset(e, 0, sizeof(*e));
	e->worker = worker;
	e->qpn = init.qpn;
	e->bell_slot = 100 + worker;
	make_cq(e);
	make_mr(e);
	e->client = fx_alloc(sizeof(*e->client));
	e->daemon = fx_alloc(sizeof(*e->daemon));
	e->sq = (struct ring_wq_prod){fx_alloc(DEPTH * RING_SLOT_SIZE), &e->client->sq_tail,
				      DEPTH - 1, 0, 0};
	e->rq = (struct ring_wq_prod){fx_alloc(DEPTH * RING_SLOT_SIZE), &e->client->rq_tail,
				      DEPTH - 1, 0, 0};
	init.send_cq = init.recv_cq = e->cq;
	init.daemon = e->daemon;
	init.client = e->client;
	init.sq_slots = e->sq.slots;
	init.rq_slots = e->rq.slots;
	e->qp = roce_qp_create(&init);
	ck_assert_ptr_nonnull(e->qp);
	ck_assert_int_eq(roce_qp_modify(NULL, e->qp, &attr, VERBS_QP_STATE | VERBS_QP_PKEY_INDEX |
					VERBS_QP_PORT | VERBS_QP_ACCESS_FLAGS, 0), 0);
}

static void
fill_msg(struct worker_msg *m, struct end *e, enum worker_msg_type type)
{
	memset(m, 0, sizeof(*m));
	m->type = (uint8_t)type;
	m->qp.ctx = ctx;
	m->qp.qp = e->qp;
	m->qp.bell_slot = e->bell_slot;
}

static void
to_rtr(struct end *e, uint32_t dest)
{
	struct net_ip own = ip("192.0.2.2");
	struct worker_msg m;

	fill_msg(&m, e, WORKER_MSG_QP_BIND);
	m.qp.mask = VERBS_QP_STATE | VERBS_QP_AV | VERBS_QP_PATH_MTU | VERBS_QP_DEST_QPN |
		    VERBS_QP_RQ_PSN | VERBS_QP_MAX_DEST_RD_ATOMIC | VERBS_QP_MIN_RNR_TIMER;
	m.qp.attr = (struct verbs_qp_attr){.state = RING_QPS_RTR, .path_mtu = 1024,
		.dest_qpn = dest, .rq_psn = 5, .min_rnr_timer = 1};
	memcpy(m.qp.attr.av.dgid, own.b, 16);
	memcpy(m.qp.attr.av.sgid, own.b, 16);
	memcpy(m.qp.attr.av.smac, test_us.addr_bytes, 6);
	m.qp.attr.av.vlan = NET_VLAN_NONE;
	m.qp.attr.av.port = worker_hairpin_port(&f.s);
	m.qp.attr.av.neigh = net_neigh_get(neighs, &own, 0, 0);
	ck_assert_int_eq(roce_qp_prepare(e->qp, &m.qp.attr, m.qp.mask), 0);
	ck_assert_int_eq(fx_call(&f, e->worker, &m), 0);
	roce_qpn_set(f.s.qpns, e->qpn, e->qp, e->worker);
	ck_assert_uint_eq(atomic_load(&e->daemon->worker), e->worker);
}

static void
to_rts(struct end *e)
{
	struct worker_msg m;

	fill_msg(&m, e, WORKER_MSG_QP_MODIFY);
	m.qp.mask = VERBS_QP_STATE | VERBS_QP_TIMEOUT | VERBS_QP_RETRY_CNT | VERBS_QP_RNR_RETRY |
		    VERBS_QP_SQ_PSN | VERBS_QP_MAX_QP_RD_ATOMIC;
	m.qp.attr = (struct verbs_qp_attr){.state = RING_QPS_RTS, .timeout = 0, .retry_cnt = 7,
		.rnr_retry = 7, .sq_psn = 5};
	ck_assert_int_eq(fx_call(&f, e->worker, &m), 0);
}

static void
post(struct end *e, enum ring_wr_opcode op, const struct end *to, uint32_t len)
{
	struct ring_wqe *w = ring_wq_slot(&e->sq, e->sq.tail++);

	*w = (struct ring_wqe){.opcode = (uint8_t)op, .flags = RING_WR_SIGNALED, .num_slots = 1,
		.num_sge = 1, .rkey = to->key, .remote_addr = (uintptr_t)to->buf};
	w->sge[0] = (struct ring_sge){(uintptr_t)e->buf, len, e->key};
	ring_wq_publish(&e->sq);
	if (ring_bell_needed(e->daemon))
		ring_bell_set(ctx->at[ring_bell_worker(e->daemon)].chunk[0], e->bell_slot);
}

static const struct ring_cqe *
await(struct end *e)
{
	const struct ring_cqe *c = NULL;

	for (int i = 0; i < TURNS && (c = ring_cq_peek(&e->cons)) == NULL; i++)
		for (uint32_t w = 0; w < f.s.num_workers; w++)
			worker_poll(f.s.worker[w]);
	ck_assert_ptr_nonnull(c);
	ring_cq_advance(&e->cons);
	ring_cq_release(&e->cons);
	ck_assert_uint_eq(c->qpn_status, e->qpn); /* status 0 */
	return c;
}

static void
unbind(struct end *e)
{
	struct worker_msg m;

	roce_qpn_set(f.s.qpns, e->qpn, NULL, 0);
	fill_msg(&m, e, WORKER_MSG_QP_UNBIND);
	ck_assert_int_eq(fx_call(&f, e->worker, &m), 0);
	ck_assert_ptr_null(ctx->at[e->worker].slots[0][e->bell_slot]);
	ck_assert(!e->qp->on_run_list);
	roce_qp_free(e->qp);
	roce_qpn_release(f.s.qpns, e->qpn);
	free(e->buf);
	free(e->client);
	free(e->daemon);
	free(e->sq.slots);
	free(e->rq.slots);
	free(e->cqes);
	free(e->cq_client);
	free(e->cq->daemon);
	free(e->cq);
}

static void
drop_context(void)
{
	for (uint32_t w = 0; w < f.s.num_workers; w++) {
		struct worker_msg m = {.type = WORKER_MSG_CTX_DEL, .ctx = ctx};

		ck_assert_int_eq(fx_call(&f, w, &m), 0);
		free(ctx->at[w].slots[0]);
		free(ctx->at[w].chunk[0]);
		free(bell_words[w]);
	}
	free(ctx);
}

static void
talk(uint32_t wa, uint32_t wb)
{
	struct end a, b;

	make_end(&a, wa);
	make_end(&b, wb);
	b.bell_slot++;
	to_rtr(&a, b.qpn);
	to_rtr(&b, a.qpn);
	to_rts(&a);
	to_rts(&b);
	for (uint32_t i = 0; i < BYTES; i++)
		a.buf[i] = (uint8_t)(i * 7 + 1);
	post(&a, RING_WR_RDMA_WRITE, &b, BYTES);
	ck_assert_uint_eq(await(&a)->src_opcode >> 24, RING_WC_RDMA_WRITE);
	ck_assert_mem_eq(a.buf, b.buf, BYTES);
	/* And back, without the run list's help: each has been idle meanwhile. */
	memset(b.buf, 0xee, 100);
	post(&b, RING_WR_RDMA_WRITE, &a, 100);
	await(&b);
	ck_assert_mem_eq(a.buf, b.buf, 100);
	ck_assert_uint_gt(fx_count(&f, wa, WORKER_C_HAIRPIN), 4);
	ck_assert_uint_gt(fx_count(&f, wb, WORKER_C_HAIRPIN), 0);
	ck_assert_uint_eq(f.port[0].q[0].num_tx + f.port[1].q[0].num_tx, 0);
	unbind(&a);
	unbind(&b);
}

START_TEST(hairpin__two_workers)
{
	fx_start(&f, 3);
	add_context();
	talk(0, 2);
	/* Straight to the owner: nobody in between. */
	ck_assert_uint_eq(fx_count(&f, 1, WORKER_C_HANDOVER_RX), 0);
	ck_assert_uint_gt(fx_count(&f, 2, WORKER_C_HANDOVER_RX), 4);
	for (uint32_t w = 0; w < 3; w++)
		ck_assert_uint_eq(roce_counters(f.s.worker[w]->roce)[ROCE_C_RX_HANDOFF], 0);
	drop_context();
	fx_stop(&f);
}
END_TEST

START_TEST(hairpin__one_worker)
{
	fx_start(&f, 1);
	add_context();
	talk(0, 0);
	drop_context();
	fx_stop(&f);
}
END_TEST

/**
 * The application sees a receive, and its process goes at once: what the engine owes the peer
 * for it leaves before the control thread can take the QP away.
 */
START_TEST(hairpin__acknowledged_before_the_qp_goes)
{
	struct worker_msg m;
	struct end a, b;

	fx_start(&f, 1);
	add_context();
	make_end(&a, 0);
	make_end(&b, 0);
	b.bell_slot++;
	to_rtr(&a, b.qpn);
	to_rtr(&b, a.qpn);
	to_rts(&a);
	to_rts(&b);
	memset(a.buf, 0x5a, BYTES);
	post(&a, RING_WR_RDMA_WRITE, &b, 8);
	for (int i = 0; i < TURNS && b.buf[0] != 0x5a; i++)
		worker_poll(f.s.worker[0]);
	ck_assert_uint_eq(b.buf[0], 0x5a);
	roce_qpn_set(f.s.qpns, b.qpn, NULL, 0);
	fill_msg(&m, &b, WORKER_MSG_QP_UNBIND);
	ck_assert_int_eq(fx_call(&f, 0, &m), 0);
	await(&a);
	/* Bound again, to go the usual way. */
	b.qp->state = RING_QPS_INIT;
	to_rtr(&b, a.qpn);
	unbind(&a);
	unbind(&b);
	drop_context();
	fx_stop(&f);
}
END_TEST

/* ---- invalidates wait for the other workers ---------- */

/** A key as FAST_REG leaves it: valid, and the consumer's to end. */
static uint32_t
fast_key(void)
{
	struct mr_desc d = {.type = MR_TYPE_FAST_REG, .pd = PD};
	struct mr *mr;
	uint32_t key;

	ck_assert_int_eq(mr_register(f.s.mrs, &d, &key), 0);
	mr = mr_slot(f.s.mrs, key);
	mr_grace_set(f.s.mrs, key, 0);
	atomic_store(&mr->word, mr_word(key, MR_REMOTE_WRITE, MR_TYPE_FAST_REG, MR_STATE_VALID));
	return key;
}

/** Turns of one worker, far apart in time: all of its timers have run. */
static void
turns(uint32_t worker)
{
	for (int i = 0; i < 100; i++) {
		f.s.clock.ns0 += 100000;
		worker_poll(f.s.worker[worker]);
	}
}

static void
post_inv(struct end *e, enum ring_wr_opcode op, uint32_t key)
{
	struct ring_wqe *w = ring_wq_slot(&e->sq, e->sq.tail++);

	*w = (struct ring_wqe){.opcode = (uint8_t)op, .flags = RING_WR_SIGNALED, .num_slots = 1,
			       .imm = key};
	ring_wq_publish(&e->sq);
	if (ring_bell_needed(e->daemon))
		ring_bell_set(ctx->at[ring_bell_worker(e->daemon)].chunk[0], e->bell_slot);
}

static void
post_recv(struct end *e)
{
	struct ring_rwqe *r = ring_wq_slot(&e->rq, e->rq.tail++);

	*r = (struct ring_rwqe){.num_slots = 1};
	ring_wq_publish(&e->rq);
}

/** Two QPs on worker 0 and 1; the key's end is told on worker 0. */
static void
invalidate_start(struct end *a, struct end *b, uint32_t workers)
{
	fx_start(&f, workers);
	add_context();
	make_end(a, 0);
	make_end(b, workers > 1);
	b->bell_slot += workers == 1;
	to_rtr(a, b->qpn);
	to_rtr(b, a->qpn);
	to_rts(a);
	to_rts(b);
}

static void
invalidate_stop(struct end *a, struct end *b)
{
	unbind(a);
	unbind(b);
	drop_context();
	fx_stop(&f);
}

/** An access of another worker, checked before the key ended, may go on to its burst's end. */
START_TEST(invalidate__local_waits_for_the_other_worker)
{
	struct end a, b;

	invalidate_start(&a, &b, 2);
	post_inv(&a, RING_WR_LOCAL_INV, fast_key());
	turns(0);
	ck_assert_ptr_null(ring_cq_peek(&a.cons));
	worker_poll(f.s.worker[1]);
	turns(0);
	ck_assert_uint_eq(await(&a)->src_opcode >> 24, RING_WC_LOCAL_INV);
	invalidate_stop(&a, &b);
}
END_TEST

START_TEST(invalidate__by_the_peer_waits_for_the_other_worker)
{
	const struct ring_cqe *c;
	uint32_t key;
	struct end a, b;

	invalidate_start(&a, &b, 2);
	key = fast_key();
	post_recv(&a);
	post_inv(&b, RING_WR_SEND_WITH_INV, key);
	worker_poll(f.s.worker[1]); /* sends, and is quiescent behind it: before the key ends */
	turns(0);
	ck_assert_uint_eq(mr_word_state(atomic_load(&mr_slot(f.s.mrs, key)->word)), MR_STATE_FREE);
	ck_assert_ptr_null(ring_cq_peek(&a.cons));
	worker_poll(f.s.worker[1]);
	turns(0);
	c = await(&a);
	ck_assert_uint_eq(c->imm, key);
	ck_assert_uint_eq(await(&b)->src_opcode >> 24, RING_WC_SEND);
	invalidate_stop(&a, &b);
}
END_TEST

/** Nobody waits for one that sleeps. */
START_TEST(invalidate__waits_for_no_sleeper)
{
	struct end a, b;

	invalidate_start(&a, &b, 2);
	rte_rcu_qsbr_thread_offline(f.s.qsbr, 1);
	post_inv(&a, RING_WR_LOCAL_INV, fast_key());
	turns(0);
	ck_assert_ptr_nonnull(ring_cq_peek(&a.cons));
	await(&a);
	rte_rcu_qsbr_thread_online(f.s.qsbr, 1);
	invalidate_stop(&a, &b);
}
END_TEST

START_TEST(invalidate__at_once_where_there_is_one_worker)
{
	struct end a, b;

	invalidate_start(&a, &b, 1);
	post_inv(&a, RING_WR_LOCAL_INV, fast_key());
	worker_poll(f.s.worker[0]);
	ck_assert_ptr_nonnull(ring_cq_peek(&a.cons));
	await(&a);
	invalidate_stop(&a, &b);
}
END_TEST

static uint32_t
post_bind(struct end *e, const struct end *of, uint32_t window, uint32_t len)
{
	struct ring_wqe *w = ring_wq_slot(&e->sq, e->sq.tail++);

	*w = (struct ring_wqe){.opcode = RING_WR_BIND_MW, .flags = RING_WR_SIGNALED,
			       .num_slots = 1, .rkey = (window & ~0xffu) | (len & 0xff),
			       .remote_addr = (uintptr_t)of->buf,
			       .bind = {.length = len, .mr_lkey = of->key,
					.access = MR_REMOTE_WRITE, .mw_key = window}};
	ring_wq_publish(&e->sq);
	if (ring_bell_needed(e->daemon))
		ring_bell_set(ctx->at[ring_bell_worker(e->daemon)].chunk[0], e->bell_slot);
	return w->rkey;
}

static enum mr_state
state_of(uint32_t key)
{
	return mr_word_state(atomic_load(&mr_slot(f.s.mrs, key)->word));
}

/**
 * Bound on one worker, used by packets that another one receives: the window is open when the
 * next request of the queue leaves. Bound anew, it first waits for that other worker, which may
 * be inside by the old binding; the request behind waits, too.
 */
START_TEST(bind__used_by_the_other_worker)
{
	struct mr_desc d = {.type = MR_TYPE_WINDOW_1, .pd = PD};
	uint32_t window, old;
	struct end a, b;

	invalidate_start(&a, &b, 2);
	ck_assert_int_eq(mr_register(f.s.mrs, &d, &window), 0);
	old = b.key;
	b.key = post_bind(&a, &b, window, 8);
	a.buf[0] = 0x77;
	post(&a, RING_WR_RDMA_WRITE, &b, 8);
	ck_assert_uint_eq(await(&a)->src_opcode >> 24, RING_WC_BIND_MW);
	await(&a);
	ck_assert_uint_eq(b.buf[0], 0x77);
	b.key = old;
	b.key = post_bind(&a, &b, window, 9);
	post(&a, RING_WR_RDMA_WRITE, &b, 9);
	turns(0);
	ck_assert_ptr_null(ring_cq_peek(&a.cons));
	ck_assert_int_eq(state_of(window), MR_STATE_CLAIMED);
	worker_poll(f.s.worker[1]);
	turns(0);
	ck_assert_uint_eq(await(&a)->src_opcode >> 24, RING_WC_BIND_MW);
	await(&a);
	ck_assert_uint_eq(b.buf[8], a.buf[8]);
	invalidate_stop(&a, &b);
}
END_TEST

/** Ended on one worker, bound anew on another at once: that waits for the same as the end does. */
START_TEST(bind__waits_for_the_last_life)
{
	struct mr_desc d = {.type = MR_TYPE_WINDOW_2A, .pd = PD};
	uint32_t window, key;
	struct end a, b;

	invalidate_start(&a, &b, 2);
	ck_assert_int_eq(mr_register(f.s.mrs, &d, &window), 0);
	key = post_bind(&a, &a, window, 8);
	post_inv(&a, RING_WR_LOCAL_INV, key);
	turns(0); /* the bind is complete, the invalidate waits for worker 1 */
	post_bind(&b, &b, window, 9);
	for (int i = 0; i < 4; i++) /* it begins, and its timer does not run */
		worker_poll(f.s.worker[1]);
	ck_assert_int_eq(state_of(window), MR_STATE_CLAIMED);
	turns(1);
	ck_assert_int_eq(state_of(window), MR_STATE_VALID);
	await(&b);
	ck_assert_uint_eq(await(&a)->src_opcode >> 24, RING_WC_BIND_MW);
	ck_assert_uint_eq(await(&a)->src_opcode >> 24, RING_WC_LOCAL_INV);
	invalidate_stop(&a, &b);
}
END_TEST

static struct verbs_io *held;

static void
hold_io(void *arg, uint32_t worker, struct verbs_io *io)
{
	(void)arg;
	(void)worker;
	ck_assert_ptr_null(held);
	held = io;
}

/** Of b's memory only the application's own process can be asked. */
static void
make_foreign(struct end *e)
{
	struct mr_seg seg = {.length = BYTES, .kind = MR_SEG_FOREIGN};
	struct mr_desc d = {.type = MR_TYPE_REGION, .pd = PD, .length = BYTES, .segs = &seg,
			    .num_segs = 1, .access = MR_LOCAL_WRITE | MR_REMOTE_WRITE, .lane = &f};

	seg.remote = d.iova = (uintptr_t)e->buf;
	ck_assert_int_eq(mr_register(f.s.mrs, &d, &e->key), 0);
}

static void
io_returns(uint32_t worker)
{
	struct worker_msg m = {.type = WORKER_MSG_IO_DONE, .io = held};

	held->status = 0;
	held = NULL;
	ck_assert(worker_send(f.s.worker[worker], &m));
	worker_poll(f.s.worker[worker]);
}

/**
 * The answer to a destruction or RESET gives the memory back to the application: it does not
 * come while a copier still writes there.
 */
static void
wait_for_copier(bool reset)
{
	struct worker_msg m;
	struct end a, b;

	fx_start(&f, 1);
	f.s.io_submit = hold_io;
	add_context();
	make_end(&a, 0);
	make_end(&b, 0);
	make_foreign(&b);
	b.bell_slot++;
	to_rtr(&a, b.qpn);
	to_rtr(&b, a.qpn);
	to_rts(&a);
	to_rts(&b);
	post(&a, RING_WR_RDMA_WRITE, &b, 8);
	for (int i = 0; i < TURNS && held == NULL; i++)
		worker_poll(f.s.worker[0]);
	ck_assert_ptr_nonnull(held);
	if (reset) {
		fill_msg(&m, &b, WORKER_MSG_QP_MODIFY);
		m.qp.mask = VERBS_QP_STATE;
		m.qp.attr.state = RING_QPS_RESET;
		ck_assert_int_eq(fx_call(&f, 0, &m), 0);
	}
	roce_qpn_set(f.s.qpns, b.qpn, NULL, 0);
	fill_msg(&m, &b, WORKER_MSG_QP_UNBIND);
	ck_assert(worker_send(f.s.worker[0], &m));
	for (int i = 0; i < 100; i++)
		worker_poll(f.s.worker[0]);
	ck_assert_ptr_null(fx_told(&f));
	ck_assert(!roce_qp_idle(b.qp));
	io_returns(0);
	ck_assert_ptr_eq(fx_told(&f), &m);
	ck_assert_int_eq(m.status, 0);
	ck_assert(roce_qp_idle(b.qp));
	ck_assert_uint_eq(b.qp->state, RING_QPS_RESET);
	unbind(&a);
	unbind(&b);
	drop_context();
	fx_stop(&f);
}

/** RSS brought it to a worker that is not the QP's. */
START_TEST(hairpin__handed_over_by_the_engine)
{
	struct worker *to;

	fx_start(&f, 2);
	to = f.s.worker[1];
	ck_assert(worker_hand_over(f.s.worker[0], 1, pool_frame(f.pool, v_udp4, sizeof(v_udp4))));
	ck_assert_uint_eq(f.s.worker[0]->handed, 2);
	worker_poll(f.s.worker[0]);
	ck_assert_uint_eq(f.s.worker[0]->handed, 0);
	ck_assert_uint_eq(worker_poll(to), 1);
	ck_assert_uint_eq(fx_count(&f, 1, WORKER_C_RX_ROCE), 1);
	fx_stop(&f);
}
END_TEST

/** The ring is bounded; what does not fit stays with the sender, in order. */
START_TEST(hairpin__full_ring)
{
	struct rte_mbuf *m[8];
	unsigned int n = 0;

	fx_start(&f, 1);
	while (worker_hand_over(f.s.worker[0], 0, (m[0] = pool_frame(f.pool, v_arp_req_us,
						    sizeof(v_arp_req_us))))) {
		n++;
		if (n == 1500) /* the pool is smaller than the ring */
			break;
	}
	/* ARP does not come this way: dropped and counted. */
	while (worker_poll(f.s.worker[0]) != 0)
		;
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_DROP_OTHER), n);
	fx_stop(&f);
}
END_TEST

START_TEST(unbind__waits_for_a_copier__destroy)
{
	wait_for_copier(false);
}
END_TEST

START_TEST(unbind__waits_for_a_copier__reset)
{
	wait_for_copier(true);
}
END_TEST

/**
 * A QP leaves an access behind that reads for it: nothing of the application's waits for that.
 * Its context does, for whose share it counts until the copier, perhaps another client's, is
 * through with it.
 */
START_TEST(ctx_del__waits_for_a_copier)
{
	struct worker_msg m = {.type = WORKER_MSG_CTX_DEL};
	struct end a, b;

	fx_start(&f, 1);
	f.s.io_submit = hold_io;
	add_context();
	make_end(&a, 0);
	make_end(&b, 0);
	make_foreign(&a);
	b.bell_slot++;
	to_rtr(&a, b.qpn);
	to_rts(&a);
	post(&a, RING_WR_RDMA_WRITE, &b, 8);
	for (int i = 0; i < TURNS && held == NULL; i++)
		worker_poll(f.s.worker[0]);
	ck_assert_ptr_nonnull(held);
	unbind(&a);
	m.ctx = ctx;
	ck_assert(worker_send(f.s.worker[0], &m));
	for (int i = 0; i < 100; i++)
		worker_poll(f.s.worker[0]);
	ck_assert_ptr_null(fx_told(&f));
	ck_assert_uint_eq(ctx->at[0].share.used[VERBS_POOL_IO], 1);
	io_returns(0);
	ck_assert_ptr_eq(fx_told(&f), &m);
	ck_assert_int_eq(m.status, 0);
	unbind(&b);
	drop_context();
	fx_stop(&f);
}
END_TEST

UNIT_MAIN("worker_hairpin", hairpin__two_workers, hairpin__one_worker,
	  hairpin__acknowledged_before_the_qp_goes, invalidate__local_waits_for_the_other_worker,
	  invalidate__by_the_peer_waits_for_the_other_worker, invalidate__waits_for_no_sleeper,
	  invalidate__at_once_where_there_is_one_worker, bind__used_by_the_other_worker,
	  bind__waits_for_the_last_life, unbind__waits_for_a_copier__destroy,
	  unbind__waits_for_a_copier__reset, ctx_del__waits_for_a_copier,
	  hairpin__handed_over_by_the_engine, hairpin__full_ring)
