/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes: an engine, its port, and an application that keeps each send queue full. */
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "net_parse.h"
#include "net_path.h"

#include "flow_priv.h"

#define TX_MBUFS 4095
#define RX_MBUFS 8191
#define DATAROOM (128 + 4096 + 256)
#define BURST 32
#define QUANTUM (16u << 10)
#define LOOP_NS 300 /* of a worker's loop that has work */
#define CQES 8192u
#define SLOTS 256u
#define OUT_BYTES (2u << 20) /* requests kept posted, at least two */
#define PD 1u
#define VA UINT64_C(0x100000)

static struct rte_mempool *tx_pool, *rx_pool;

int
flow_node_pools(void)
{
	tx_pool = rte_pktmbuf_pool_create("flow_tx", TX_MBUFS, 0, 0, DATAROOM, SOCKET_ID_ANY);
	rx_pool = rte_pktmbuf_pool_create("flow_rx", RX_MBUFS, 0, 0, DATAROOM, SOCKET_ID_ANY);
	return tx_pool && rx_pool ? 0 : -1;
}

static void *
zalloc(size_t n)
{
	void *p = aligned_alloc(RING_LINE, (n + RING_LINE - 1) & ~(size_t)(RING_LINE - 1));

	if (p == NULL)
		abort();
	memset(p, 0, n);
	return p;
}

static void
node_ip(uint32_t id, uint8_t *ip)
{
	memset(ip, 0, 16);
	ip[10] = ip[11] = 0xff;
	ip[12] = 10;
	ip[15] = (uint8_t)(id + 1);
}

/* ---- port ---------- */

static uint16_t
node_tx(void *ctx, struct rte_mbuf **m, uint16_t n)
{
	struct flow_node *node = ctx;
	uint16_t i;

	for (i = 0; i < n && flow_wire_room(node->s, node->id); i++) {
		flow_wire_send(node->s, node->id, rte_pktmbuf_mtod(m[i], void *), m[i]->data_len);
		rte_pktmbuf_free(m[i]);
	}
	return i;
}

/** The deaf QP's packets die here, as if nobody were there. */
static bool
is_deaf(const struct flow_node *n, const struct flow_pkt *p)
{
	uint32_t qpn = (uint32_t)p->data[14 + 28 + 5] << 16 | (uint32_t)p->data[14 + 28 + 6] << 8 |
		       p->data[14 + 28 + 7];

	for (const struct flow_end *e = n->ends; n->s->p->deaf && e; e = e->next)
		if (e->odd && e->qpn == qpn)
			return true;
	return false;
}

static unsigned int
node_input(struct flow_node *n)
{
	struct net_pkt pkts[BURST];
	unsigned int num = 0, seen = 0;
	struct flow_pkt *p;

	while (seen < BURST && (p = flow_fifo_get(&n->rx)) != NULL) {
		struct rte_mbuf *m = is_deaf(n, p) ? NULL : rte_pktmbuf_alloc(rx_pool);

		seen++;
		if (m) {
			memcpy(rte_pktmbuf_append(m, (uint16_t)p->len), p->data, p->len);
			if (net_parse(m, &pkts[num]) != NET_UDP)
				abort();
			num++;
		}
		free(p);
	}
	if (num)
		roce_input(n->roce, pkts, num, n->s->now);
	return seen;
}

/* ---- application ---------- */

static void
bell(struct flow_end *e)
{
	if (ring_bell_needed(&e->daemon))
		verbs_run_add(&e->node->verbs, e->qp);
}

static void
post_recv(struct flow_end *e)
{
	struct ring_rwqe *q = ring_wq_slot(&e->rq, e->rq.tail);

	*q = (struct ring_rwqe){.num_slots = 1, .num_sge = 1};
	q->sge[0] = (struct ring_sge){.addr = VA, .length = e->msg, .lkey = e->key};
	e->rq.tail++;
	ring_wq_publish(&e->rq);
}

static void
post_send(struct flow_end *e)
{
	static const uint8_t opcodes[FLOW_OPS] = {
		[FLOW_WRITE] = RING_WR_RDMA_WRITE,
		[FLOW_READ] = RING_WR_RDMA_READ,
		[FLOW_SEND] = RING_WR_SEND,
	};
	struct ring_wqe *q = ring_wq_slot(&e->sq, e->sq.tail);
	uint8_t opcode = e->odd && e->node->s->p->not_ready ? RING_WR_SEND
							    : opcodes[e->node->s->p->op];

	*q = (struct ring_wqe){.opcode = opcode, .flags = RING_WR_SIGNALED, .num_slots = 1,
			       .num_sge = 1, .rkey = e->peer->key, .remote_addr = VA};
	q->sge[0] = (struct ring_sge){.addr = VA, .length = e->msg, .lkey = e->key};
	e->sq.tail++;
	e->out++;
}

static void
keep_full(struct flow_end *e)
{
	uint32_t before = e->out;

	while (e->posts && e->out < e->depth && ring_wq_free(&e->sq) > 0)
		post_send(e);
	if (e->out == before)
		return;
	ring_wq_publish(&e->sq);
	bell(e);
}

static struct flow_end *
end_of(struct flow_node *n, uint32_t qpn)
{
	struct flow_end *e = n->ends;

	while (e && e->qpn != qpn)
		e = e->next;
	return e;
}

static void
poll_cq(struct flow_node *n)
{
	const struct ring_cqe *c;
	bool any = false;

	while ((c = ring_cq_peek(&n->cons)) != NULL) {
		struct flow_end *e = end_of(n, c->qpn_status & 0xffffff);

		if (e == NULL || (c->qpn_status >> 24 != WC_SUCCESS && !e->odd))
			abort();
		if (atomic_load(&c->tag) & RING_CQE_RECV) {
			e->rq.head = c->wqe_index + 1;
			post_recv(e);
		} else {
			e->sq.head = c->wqe_index + 1;
			e->out--;
			if (n->s->counting)
				e->bytes += e->msg;
			if (c->qpn_status >> 24 == WC_SUCCESS)
				keep_full(e);
		}
		ring_cq_advance(&n->cons);
		any = true;
	}
	if (any)
		ring_cq_release(&n->cons);
}

/* ---- loop ---------- */

static enum verbs_run
run_qp(void *arg, struct verbs_qp *qp)
{
	struct flow_node *n = arg;

	return roce_run(n->roce, qp, n->s->now);
}

void
flow_node_step(struct flow_node *n)
{
	uint64_t now = n->s->now, due;

	n->verbs.now = now;
	node_input(n);
	if (n->verbs.run_head)
		verbs_run_round(&n->verbs, QUANTUM, run_qp, n);
	roce_timers(n->roce, now);
	roce_flush(n->roce, now);
	net_tx_flush(&n->tx);
	verbs_cq_burst_end(&n->verbs);
	poll_cq(n);
	due = roce_next_deadline(n->roce);
	n->wake = due > now ? due : now + LOOP_NS;
	if (n->tx.n && flow_wire_room_at(n->s, n->id) > now)
		due = flow_wire_room_at(n->s, n->id); /* the port is full: nothing goes before */
	else
		due = now + LOOP_NS;
	if (n->rx.head)
		due = now + LOOP_NS;
	if ((n->rx.head || n->tx.n || n->verbs.run_head) && due < n->wake)
		n->wake = due;
}

/* ---- making ---------- */

static void
host_notify(void *ctx, struct verbs_cq *cq)
{
	(void)ctx;
	(void)cq;
}

static void
host_event(void *ctx, enum verbs_event event, void *obj)
{
	(void)ctx;
	(void)obj;
	if (event == VERBS_EVENT_CQ_ERR)
		abort();
}

static void
host_io(void *ctx, struct verbs_io *io)
{
	(void)ctx;
	(void)io;
	abort(); /* all memory is ours */
}

static void
node_cq(struct flow_node *n)
{
	n->cq = zalloc(verbs_cq_size(1));
	n->ring = zalloc(CQES * sizeof(struct ring_cqe));
	n->cq->num_workers = 1;
	n->cq->daemon = &n->cq_daemon;
	n->cq->client = &n->cq_client;
	verbs_cq_init_ends(n->cq);
	n->cq->end[0].prod = (struct ring_cq_prod){
		.ring = n->ring, .cons = &n->cq_client.cons[0], .mask = CQES - 1};
	n->cons = (struct ring_cq_cons){
		.ring = n->ring, .shared = &n->cq_client.cons[0], .mask = CQES - 1};
}

static void
node_neighbours(struct flow_node *n)
{
	for (uint32_t i = 0; i < FLOW_NODES; i++) {
		struct rte_ether_addr mac = {{2, 0, 0, 0, 0, (uint8_t)(i + 1)}};

		n->neigh[i].hint = 2; /* marked: nobody asks the table that is not there */
		n->neigh[i].l2 = net_neigh_l2_pack(&mac, NET_NEIGH_REACHABLE);
	}
	n->neigh[FLOW_NODES].hint = 2; /* of nobody: no address */
}

void
flow_node_init(struct flow_world *s, uint32_t id)
{
	struct flow_node *n = &s->node[id];
	const struct verbs_host host = {host_notify, host_event, host_io, n};
	struct roce_config cfg = {
		.verbs = &n->verbs, .tx = n->tx_list, .num_ports = 1, .tx_pool = tx_pool,
		.ctx = n, .seed = rng_u64(&s->rng), .max_inflight = s->p->max_inflight,
		.max_rx_held = RX_MBUFS / 4, .max_rx_held_qp = RX_MBUFS / 16 + 1,
		.go_back_n = s->p->go_back_n,
		.strict_responder = s->p->go_back_n || (s->p->strict_peer && id == 0),
	};

	memset(n, 0, sizeof(*n));
	n->s = s;
	n->id = id;
	n->wake = FLOW_NEVER;
	n->mrs = mr_table_create(256);
	n->qpns = cfg.qpns = roce_qpn_table_create(256);
	node_cq(n);
	net_tx_init(&n->tx, node_tx, n);
	n->tx_list[0] = &n->tx;
	node_neighbours(n);
	if (verbs_worker_init(&n->verbs, 0, n->mrs, &host, 4096, 16, 16))
		abort();
	n->roce = roce_create(&cfg, s->now);
	if (n->mrs == NULL || n->qpns == NULL || n->roce == NULL)
		abort();
	if (s->p->cc)
		roce_cc_set(n->roce, 0, &s->p->ccp);
}

void
flow_node_fini(struct flow_node *n)
{
	net_tx_purge(&n->tx);
	roce_destroy(n->roce);
	verbs_worker_fini(&n->verbs);
	mr_table_free(n->mrs);
	roce_qpn_table_free(n->qpns);
	free(n->cq);
	free(n->ring);
}

static struct flow_end *
end_new(struct flow_world *s, struct flow_node *n, bool odd)
{
	struct flow_end *e = zalloc(sizeof(*e));
	struct mr_seg seg;
	struct mr_desc d = {.type = MR_TYPE_REGION, .pd = PD, .iova = VA, .segs = &seg,
			    .num_segs = 1, .lane = e, .owner = e,
			    .access = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ};
	struct roce_qp_init init = {
		.type = VERBS_QPT_RC, .pd = PD, .send_cq = n->cq, .recv_cq = n->cq,
		.daemon = &e->daemon, .sq_entries = SLOTS, .rq_entries = SLOTS,
		.client = &e->client, .max_send_sge = 2, .max_recv_sge = 2, .owner = e,
	};

	e->node = n;
	e->odd = odd;
	e->msg = s->p->odd_msg && (s->num_ends / 2) % 2 ? s->p->odd_msg : s->p->msg;
	e->depth = OUT_BYTES / e->msg;
	e->depth = e->depth < 2 ? 2 : e->depth > SLOTS / 2 ? SLOTS / 2 : e->depth;
	e->mem = zalloc(e->msg);
	seg = (struct mr_seg){.length = e->msg, .ptr = e->mem};
	d.length = e->msg;
	if (mr_register(n->mrs, &d, &e->key))
		abort();
	e->sq = (struct ring_wq_prod){zalloc(SLOTS * RING_SLOT_SIZE), &e->client.sq_tail,
				      SLOTS - 1, 0, 0};
	e->rq = (struct ring_wq_prod){zalloc(SLOTS * RING_SLOT_SIZE), &e->client.rq_tail,
				      SLOTS - 1, 0, 0};
	init.sq_slots = e->sq.slots;
	init.rq_slots = e->rq.slots;
	init.qpn = e->qpn = roce_qpn_alloc(n->qpns);
	e->qp = roce_qp_create(&init);
	if (e->qp == NULL)
		abort();
	e->qp->share = &n->share;
	e->next = n->ends;
	n->ends = e;
	s->end[s->num_ends++] = e;
	return e;
}

static void
modify(struct flow_end *e, struct verbs_qp_attr *a, uint8_t state, uint32_t mask)
{
	a->state = state;
	mask |= VERBS_QP_STATE;
	if (roce_qp_prepare(e->qp, a, mask) ||
	    roce_qp_modify(state == RING_QPS_INIT ? NULL : e->node->roce, e->qp, a, mask,
			   e->node->s->now))
		abort();
}

static void
connect_end(struct flow_end *e)
{
	const struct flow_params *p = e->node->s->p;
	uint32_t to = e->peer->node->id;
	struct verbs_qp_attr a = {
		.access = MR_REMOTE_WRITE | MR_REMOTE_READ, .path_mtu = p->mtu,
		.dest_qpn = e->peer->qpn, .rq_psn = 0x1000, .sq_psn = 0x1000,
		.max_rd_atomic = 16, .max_dest_rd_atomic = 16, .min_rnr_timer = 12,
		.timeout = p->timeout, .retry_cnt = 7, .rnr_retry = 7,
		.av = {.vlan = 0xffff, .hop_limit = 64, .smac = {2, 0, 0, 0, 0}},
	};

	if (e->odd && e->posts && p->unresolved)
		to = FLOW_NODES;
	a.av.neigh = &e->node->neigh[to];
	a.av.smac[5] = (uint8_t)(e->node->id + 1);
	node_ip(e->node->id, a.av.sgid);
	node_ip(e->peer->node->id, a.av.dgid);
	modify(e, &a, RING_QPS_INIT,
	       VERBS_QP_PKEY_INDEX | VERBS_QP_PORT | VERBS_QP_ACCESS_FLAGS);
	modify(e, &a, RING_QPS_RTR,
	       VERBS_QP_AV | VERBS_QP_PATH_MTU | VERBS_QP_DEST_QPN | VERBS_QP_RQ_PSN |
		       VERBS_QP_MAX_DEST_RD_ATOMIC | VERBS_QP_MIN_RNR_TIMER);
	roce_qpn_set(e->node->qpns, e->qpn, e->qp, 0);
	modify(e, &a, RING_QPS_RTS,
	       VERBS_QP_TIMEOUT | VERBS_QP_RETRY_CNT | VERBS_QP_RNR_RETRY | VERBS_QP_SQ_PSN |
		       VERBS_QP_MAX_QP_RD_ATOMIC);
	for (uint32_t i = 0; !e->posts && !(e->odd && p->not_ready) && i < SLOTS; i++)
		post_recv(e);
	e->node->wake = e->node->s->now;
}

void
flow_pair(struct flow_world *s, struct flow_node *from, struct flow_node *to, bool odd)
{
	struct flow_end *a = end_new(s, from, odd), *b = end_new(s, to, odd);

	a->peer = b;
	b->peer = a;
	b->msg = a->msg;
	a->posts = true;
	connect_end(b);
	connect_end(a);
	keep_full(a);
}
