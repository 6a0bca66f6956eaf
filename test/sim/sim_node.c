/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node: one worker with its engine, and what surrounds it: the loop's order (docs/design.md,
 * worker loop), the port, the host that reaches foreign memory, the clients of its CQs.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "net_parse.h"
#include "net_path.h"

#include "sim.h"

#define TX_MBUFS 512
#define RX_MBUFS 1023
#define DATAROOM (128 + 4096 + 256)
#define BURST 32

static struct rte_mempool *pools[SIM_NODES][2];

struct rte_mempool *
sim_pool(uint32_t node, bool rx)
{
	if (pools[node][rx] == NULL) {
		char name[32];

		snprintf(name, sizeof(name), "sim_%s%u", rx ? "rx" : "tx", node);
		pools[node][rx] = rte_pktmbuf_pool_create(name, rx ? RX_MBUFS : TX_MBUFS, 0, 0,
							  DATAROOM, SOCKET_ID_ANY);
		if (pools[node][rx] == NULL)
			abort();
	}
	return pools[node][rx];
}

void
sim_node_wake(struct sim_node *n, uint64_t at)
{
	if (at < n->wake_at)
		n->wake_at = at;
}

void
sim_node_ip(const struct sim *s, uint32_t id, uint8_t *ip)
{
	memset(ip, 0, 16);
	if (s->v6) {
		ip[0] = 0xfd;
	} else {
		ip[10] = ip[11] = 0xff;
		ip[12] = 10;
	}
	ip[15] = (uint8_t)(id + 1);
}

struct sim_ep *
sim_ep_of_qpn(struct sim_node *n, uint32_t qpn)
{
	for (uint32_t i = 0; i < n->s->num_eps; i++)
		if (n->s->ep[i]->node == n && n->s->ep[i]->qpn == qpn)
			return n->s->ep[i];
	return NULL;
}

/* ---- the port ---------- */

static uint16_t
node_tx(void *ctx, struct rte_mbuf **m, uint16_t n)
{
	struct sim_node *node = ctx;
	struct sim *s = node->s;
	uint8_t buf[DATAROOM];
	uint16_t i;

	for (i = 0; i < n; i++) {
		const void *data;

		if (!sim_wire_room(s, node->id) ||
		    (s->prof->squeeze && sim_chance(&s->wire.rng, 100000)))
			break;
		data = rte_pktmbuf_read(m[i], 0, m[i]->pkt_len, buf);
		if (data == NULL)
			sim_fail(s, "node %u: a packet of %u bytes", node->id, m[i]->pkt_len);
		sim_snoop_tx(node, data, m[i]->pkt_len);
		sim_wire_send(s, node->id, data, m[i]->pkt_len);
		rte_pktmbuf_free(m[i]);
	}
	return i;
}

/** A frame into an mbuf, classified; false: not for the engine, and gone. */
static bool
node_rx(struct sim_node *n, const struct sim_pkt *p, struct net_pkt *out)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(n->rx_pool);
	struct net_ip self, dst;
	uint16_t tag = n->s->vlan == 0xffff ? NET_VLAN_NONE : net_vlan_tci(n->s->vlan, n->s->sl);

	if (m == NULL) {
		n->rx_no_mbuf++;
		return false;
	}
	sim_snoop_rx(n, p->data, p->len);
	memcpy(rte_pktmbuf_append(m, (uint16_t)p->len), p->data, p->len);
	sim_node_ip(n->s, n->id, self.b);
	if (net_parse(m, out) == NET_UDP && out->dport == NET_ROCE_PORT) {
		if (out->vlan_tci != tag)
			sim_fail(n->s, "node %u: a frame with tag %04x, not %04x", n->id,
				 out->vlan_tci, tag);
		dst = net_pkt_dst(out);
		if (net_ip_eq(&dst, &self))
			return true;
	}
	rte_pktmbuf_free(m);
	return false;
}

static void
node_input(struct sim_node *n)
{
	struct net_pkt pkts[BURST];
	unsigned int num = 0;

	while (n->rx_head && num < BURST) {
		struct sim_pkt *p = n->rx_head;

		n->rx_head = p->next;
		n->rx_count--;
		if (node_rx(n, p, &pkts[num]))
			num++;
		free(p);
	}
	if (num)
		roce_input(n->roce, pkts, num, n->s->now);
}

/* ---- the host ---------- */

static void
host_notify(void *ctx, struct verbs_cq *cq)
{
	struct sim_cq *c = cq->owner;

	(void)ctx;
	if (!c->asleep)
		return; /* the poll that follows every arming was first */
	c->notified = true;
}

static void
host_event(void *ctx, enum verbs_event event, void *obj)
{
	struct sim_node *n = ctx;
	struct verbs_qp *qp = obj;
	struct sim_ep *ep;

	if (event == VERBS_EVENT_CQ_ERR) {
		for (uint32_t i = 0; i < n->s->num_eps; i++) {
			ep = n->s->ep[i];
			if (ep->send_cq == obj || ep->recv_cq == obj)
				sim_life_break(ep, CAUSE_CQ, "its CQ overran");
		}
		if (!n->s->prof->overrun)
			sim_fail(n->s, "node %u: a CQ overran", n->id);
		return;
	}
	if (event == VERBS_EVENT_SRQ_ERR || event == VERBS_EVENT_SRQ_LIMIT_REACHED) {
		sim_srq_event(obj, event);
		return;
	}
	ep = qp->owner;
	sim_note(n->s, "ep %u qp %06x: event %u", ep->id, ep->qpn, event);
	if (event == VERBS_EVENT_SQ_DRAINED) {
		if (ep->drained || !ep->in_sqd)
			sim_fail(n->s, "ep %u: SQ_DRAINED %s", ep->id,
				 ep->drained ? "twice" : "although it was not asked for");
		ep->drained = true;
	} else if (event == VERBS_EVENT_QP_LAST_WQE_REACHED) {
		sim_srq_last_wqe(ep);
	} else if (event != VERBS_EVENT_COMM_EST) {
		sim_life_break(ep, 0, "event");
	}
}

static void
host_io_submit(void *ctx, struct verbs_io *io)
{
	struct sim_node *n = ctx;
	struct sim_ep *ep = io->lane;
	struct sim_io *e = calloc(1, sizeof(*e)), **at = &n->ios;

	if (e == NULL)
		abort();
	e->io = io;
	e->at = n->s->now + 500 + rng_below(&ep->rng, 1u << sim_between(&ep->rng, 1, 18));
	if (e->at <= ep->io_last)
		e->at = ep->io_last + 1; /* a lane keeps its order */
	ep->io_last = e->at;
	if (sim_chance(&ep->rng, n->s->prof->io_fault)) {
		e->status = -14; /* EFAULT */
		sim_note(n->s, "ep %u: foreign memory faults", ep->id);
		ep->causes |= CAUSE_MEMORY;
		ep->peer->causes |= CAUSE_MEMORY;
	}
	while (*at && (*at)->at <= e->at)
		at = &(*at)->next;
	e->next = *at;
	*at = e;
}

/** What a copier does. */
static void
host_copy(struct verbs_io *io)
{
	for (unsigned int i = 0; i < io->num; i++) {
		uint8_t *remote = (uint8_t *)(uintptr_t)io->piece[i].remote;
		uint64_t word;

		if (io->op == VERBS_IO_READ) {
			memcpy(io->piece[i].local, remote, io->piece[i].len);
			continue;
		}
		if (io->op == VERBS_IO_WRITE) {
			memcpy(remote, io->piece[i].local, io->piece[i].len);
			continue;
		}
		memcpy(&word, remote, sizeof(word));
		io->original = word;
		if (io->op == VERBS_IO_FETCH_ADD)
			word += io->compare_add;
		else if (word == io->compare_add)
			word = io->swap;
		memcpy(remote, &word, sizeof(word));
	}
}

static void
host_run(struct sim_node *n)
{
	while (n->ios && n->ios->at <= n->s->now) {
		struct sim_io *e = n->ios;
		struct verbs_io *io = e->io;
		void *user = io->user;
		unsigned int dir = io->dir;
		struct verbs_qp *qp;
		uint64_t original;
		int status;

		n->ios = e->next;
		io->status = e->status;
		if (e->status == 0)
			host_copy(io);
		free(e);
		qp = verbs_io_finish(&n->verbs, io, &status, &original);
		if (qp)
			roce_io_done(n->roce, qp, dir, status, original, n->s->now);
		else if (user)
			roce_io_orphan(n->roce, user);
	}
}

/* ---- the other workers, which are not there ---------- */

static uint64_t
other_quiesce_start(void *ctx)
{
	struct sim_node *n = ctx;

	return n->s->now + rng_below(&n->s->rng, 1u << sim_between(&n->s->rng, 1, 18));
}

static bool
other_quiesced(void *ctx, uint64_t token)
{
	const struct sim_node *n = ctx;

	return n->s->now >= token;
}

/* ---- the loop ---------- */

static void
bell_found(void *arg, uint32_t slot)
{
	struct sim_node *n = arg;

	for (uint32_t i = 0; i < n->s->num_eps; i++) {
		struct sim_ep *ep = n->s->ep[i];

		if (ep->node == n && ep->slot == slot && ep->qp && ep->qp->state > RING_QPS_INIT)
			verbs_run_add(&n->verbs, ep->qp);
	}
}

static enum verbs_run
node_qp(void *arg, struct verbs_qp *qp)
{
	struct sim_node *n = arg;
	enum verbs_run result = roce_run(n->roce, qp, n->s->now);

	if (result == VERBS_RUN_IDLE)
		sim_app_race(qp->owner);
	return result;
}

static void
node_engine(struct sim_node *n)
{
	struct sim *s = n->s;
	bool more;

	n->verbs.now = s->now;
	node_input(n);
	host_run(n);
	more = ring_bell_collect(n->bell, &n->scan, 64, bell_found, n);
	verbs_run_round(&n->verbs, n->quantum, node_qp, n);
	roce_timers(n->roce, s->now);
	roce_flush(n->roce, s->now);
	net_tx_flush(&n->tx);
	verbs_cq_burst_end(&n->verbs);
	sim_snoop_stepped(n);
	if (more)
		sim_node_wake(n, s->now + 1);
}

static void
node_app(struct sim_node *n)
{
	struct sim *s = n->s;

	for (unsigned int i = 0; i < SIM_CQS; i++)
		sim_cq_poll(&n->cq[i], false);
	for (uint32_t i = 0; i < s->num_eps; i++)
		if (s->ep[i]->node == n)
			sim_node_wake(n, sim_app_run(s->ep[i]));
}

void
sim_node_step(struct sim_node *n)
{
	struct sim *s = n->s;
	uint64_t loop = sim_between(&s->rng, 200, 2000);
	uint64_t due;

	n->wake_at = SIM_NEVER;
	n->steps++;
	if (n->dead)
		return;
	node_engine(n);
	node_app(n);
	if (n->rx_head)
		sim_node_wake(n, s->now + loop);
	if (n->verbs.run_head || n->tx.n || ring_bell_any(n->bell))
		sim_node_wake(n, s->now + loop);
	if (n->ios)
		sim_node_wake(n, n->ios->at);
	due = roce_next_deadline(n->roce);
	sim_node_wake(n, due > s->now ? due : s->now + loop);
}

/* ---- making and ending ---------- */

/** Leave few buffers in a pool. */
static void
node_steal(struct sim_node *n, struct rte_mempool *pool, uint32_t leave)
{
	uint32_t have = rte_mempool_avail_count(pool);

	while (have-- > leave) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		if (m == NULL)
			sim_fail(n->s, "node %u: a pool counts wrongly", n->id);
		n->stolen[n->num_stolen++] = m;
	}
}

static void
node_cq(struct sim_node *n, struct sim_cq *c, uint32_t num)
{
	struct sim *s = n->s;
	uint32_t entries = s->prof->overrun ? 32 : 8192;

	c->cq = aligned_alloc(RING_LINE, verbs_cq_size(1));
	c->ring = aligned_alloc(RING_LINE, entries * sizeof(struct ring_cqe));
	if (c->cq == NULL || c->ring == NULL)
		abort();
	memset(c->cq, 0, verbs_cq_size(1));
	memset(c->ring, 0, entries * sizeof(struct ring_cqe));
	c->node = n;
	c->cq->cqn = num;
	c->cq->num_workers = 1;
	c->cq->daemon = &c->daemon;
	c->cq->client = &c->client;
	c->cq->owner = c;
	verbs_cq_init_ends(c->cq);
	c->cq->end[0].prod = (struct ring_cq_prod){
		.ring = c->ring, .cons = &c->client.cons[0], .mask = entries - 1};
	c->cons = (struct ring_cq_cons){
		.ring = c->ring, .shared = &c->client.cons[0], .mask = entries - 1};
	c->sleepy = rng_below(&s->rng, 3) == 0;
}

static void
node_neighbours(struct sim_node *n)
{
	for (uint32_t i = 0; i < SIM_NODES; i++) {
		struct rte_ether_addr mac = {{2, 0, 0, 0, 0, (uint8_t)(i + 1)}};

		memset(&n->neigh[i], 0, sizeof(n->neigh[i]));
		n->neigh[i].hint = 2; /* marked: nobody asks the table that is not there */
		n->neigh[i].l2 = net_neigh_l2_pack(&mac, NET_NEIGH_REACHABLE);
		n->neigh[i].ip.b[15] = (uint8_t)i;
	}
}

static void
node_engine_new(struct sim_node *n)
{
	struct sim *s = n->s;
	struct verbs_host host = {host_notify, host_event, host_io_submit, n};
	bool few = s->prof->squeeze, gbn = s->prof->gbn_peer && (n->id & 1);
	struct roce_config cfg = {
		.verbs = &n->verbs, .qpns = n->qpns, .tx = n->tx_list, .num_ports = 1,
		.tx_pool = n->tx_pool, .seed = rng_u64(&s->rng),
		.max_rx_held = RX_MBUFS / 4, .max_rx_held_qp = sim_between(&s->rng, 4, 128),
		.strict_responder = s->prof->strict_responder || gbn,
		.go_back_n = s->prof->go_back_n || gbn,
		/* in every second node a window from a packet or two on */
		.max_inflight = sim_between(&s->rng, 0, 1) *
				sim_between(&s->rng, 256, 512u << rng_below(&s->rng, 8)),
		/* in some, completions that take turns */
		.max_reap = sim_between(&s->rng, 0, 1) * sim_between(&s->rng, 1, 8),
		.quiesce_start = other_quiesce_start, .quiesced = other_quiesced, .ctx = n,
	};

	if (verbs_worker_init(&n->verbs, 0, n->mrs, &host,
			      few ? sim_between(&s->rng, 2, 20) : 512,
			      /* a message of UC that never ends keeps its receive's for ever */
			      few && !sim_is_uc(s) ? 2 : 256,
			      few ? sim_between(&s->rng, 1, 4) : 64))
		abort();
	n->roce = roce_create(&cfg, s->now);
	if (n->roce == NULL)
		abort();
	if (few) {
		node_steal(n, n->tx_pool, sim_between(&s->rng, 40, 120));
		node_steal(n, n->rx_pool, sim_between(&s->rng, 40, 200));
	}
}

void
sim_node_init(struct sim *s, uint32_t id)
{
	struct sim_node *n = &s->node[id];

	memset(n, 0, sizeof(*n));
	n->s = s;
	n->id = id;
	n->wake_at = SIM_NEVER;
	n->quantum = 1024u << rng_below(&s->rng, 7);
	n->mrs = mr_table_create(256);
	n->qpns = roce_qpn_table_create(64);
	n->bell = aligned_alloc(RING_LINE, sizeof(*n->bell));
	if (n->mrs == NULL || n->qpns == NULL || n->bell == NULL)
		abort();
	memset(n->bell, 0, sizeof(*n->bell));
	for (uint32_t i = 0; i < SIM_CQS; i++)
		node_cq(n, &n->cq[i], i);
	net_tx_init(&n->tx, node_tx, n);
	n->tx_list[0] = &n->tx;
	n->tx_pool = sim_pool(id, false);
	n->rx_pool = sim_pool(id, true);
	node_neighbours(n);
	node_engine_new(n);
}

/** Everything back at its start. */
static void
node_check_engine(struct sim_node *n)
{
	const struct verbs_worker *w = &n->verbs;

	if (w->shadows_used || w->blocks_used || w->ios_used)
		sim_fail(n->s, "node %u: %u shadows, %u blocks, %u ios are still in use", n->id,
			 w->shadows_used, w->blocks_used, w->ios_used);
	if (w->run_count || w->run_head)
		sim_fail(n->s, "node %u: %u QPs are still on the run list", n->id, w->run_count);
	if (w->num_starved)
		sim_fail(n->s, "node %u: QPs still wait for %u shares", n->id, w->num_starved);
	for (unsigned int i = 0; i < 2 * VERBS_POOLS; i++)
		if (n->share[i % 2].used[i / 2])
			sim_fail(n->s, "node %u: context %u still has %u of pool %u", n->id, i % 2,
				 n->share[i % 2].used[i / 2], i / 2);
	if (roce_rx_held(n->roce))
		sim_fail(n->s, "node %u: %u packets are still held", n->id, roce_rx_held(n->roce));
	if (roce_next_deadline(n->roce) != UINT64_MAX)
		sim_fail(n->s, "node %u: a timer is still armed", n->id);
}

static void
node_check_pools(struct sim_node *n)
{
	for (unsigned int rx = 0; rx < 2; rx++) {
		struct rte_mempool *p = rx ? n->rx_pool : n->tx_pool;

		if (rte_mempool_avail_count(p) != p->size)
			sim_fail(n->s, "node %u: %u of %u %s buffers are back", n->id,
				 rte_mempool_avail_count(p), p->size, rx ? "receive" : "transmit");
	}
}

void
sim_node_fini(struct sim_node *n)
{
	while (n->rx_head) {
		struct sim_pkt *p = n->rx_head;

		n->rx_head = p->next;
		free(p);
	}
	node_check_engine(n);
	roce_destroy(n->roce);
	net_tx_purge(&n->tx);
	verbs_worker_fini(&n->verbs);
	while (n->num_stolen)
		rte_pktmbuf_free(n->stolen[--n->num_stolen]);
	node_check_pools(n);
	if (mr_table_count(n->mrs) || roce_qpn_count(n->qpns))
		sim_fail(n->s, "node %u: %u keys and %u QPNs are still there", n->id,
			 mr_table_count(n->mrs), roce_qpn_count(n->qpns));
	mr_table_free(n->mrs);
	roce_qpn_table_free(n->qpns);
	for (unsigned int i = 0; i < SIM_CQS; i++) {
		free(n->cq[i].cq);
		free(n->cq[i].ring);
	}
	free(n->bell);
}
