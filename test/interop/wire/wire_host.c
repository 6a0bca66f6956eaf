/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic-wire: peer-qp (peer/guest) on this project's engine, in one process without daemon,
 * sockets or librnic: the milestone before these, and the way to a debugger in the engine.
 *
 * usage: rnic-wire EAL-ARGS... -- ADDRESS[,ADDRESS] MTU PEER-QP-ARGS...
 *
 * Addresses are text with a prefix length, "192.0.2.1/24". GID 0 is the link-local one, 1 the
 * first address. This file has the port, the worker's thread and a small control thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "wire.h"
#include "worker_priv.h"

#define POOL 8191
#define ROOM (RTE_PKTMBUF_HEADROOM + 9216)
#define TICK_MS 20

int peer_qp_main(int argc, char **argv);

struct wire wire = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

struct call {
	struct worker_msg m;
	bool done; /* under wire.lock */
};

void *
wire_alloc(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	if (p == NULL)
		rte_exit(EXIT_FAILURE, "out of memory\n");
	return memset(p, 0, size);
}

/* ---- control thread ---------- */

static void
msg_free(struct worker_msg *m)
{
	free(m);
}

static struct worker_msg *
msg_new(enum worker_msg_type type)
{
	struct worker_msg *m = calloc(1, sizeof(*m));

	m->type = (uint8_t)type;
	m->done = msg_free;
	return m;
}

static void
post(struct worker_msg *m)
{
	while (!worker_send(wire.s.worker[0], m))
		sched_yield();
}

int
wire_call(struct worker_msg *m)
{
	struct call c = {.m = *m};

	c.m.done = NULL;
	c.m.cookie = (uintptr_t)&c;
	post(&c.m);
	pthread_mutex_lock(&wire.lock);
	while (!c.done)
		pthread_cond_wait(&wire.news, &wire.lock);
	pthread_mutex_unlock(&wire.lock);
	*m = c.m;
	return m->status;
}

static void
send_packet(struct rte_mbuf *pkt)
{
	struct worker_msg *m = msg_new(WORKER_MSG_TX);

	m->pkt.m = pkt;
	post(m);
}

static void
neigh_send(void *ctx, uint16_t port, const uint8_t *frame, uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(wire.s.tx_pool);

	(void)ctx;
	(void)port;
	if (m == NULL)
		return;
	memcpy(rte_pktmbuf_append(m, len), frame, len);
	send_packet(m);
}

static void
neigh_release(void *ctx, uint16_t port, struct rte_mbuf **m, uint16_t n)
{
	(void)ctx;
	(void)port;
	for (uint16_t i = 0; i < n; i++)
		send_packet(m[i]);
}

static void
neigh_event(void *ctx, enum net_neigh_event ev, struct net_neigh *n, const struct net_ip *ip,
	    const struct rte_ether_addr *mac)
{
	struct worker_msg *m;

	(void)ctx;
	(void)ip;
	(void)mac;
	if (ev != NET_NEIGH_RESOLVED && ev != NET_NEIGH_CHANGED)
		return;
	m = msg_new(WORKER_MSG_NEIGH);
	m->neigh.neigh = n;
	post(m);
}

static void
received(struct rte_mbuf *m)
{
	struct net_pkt p;
	enum net_kind kind = net_parse(m, &p);

	if (kind == NET_ARP || kind == NET_ND)
		net_neigh_input(wire.neigh, &p, worker_clock_now(&wire.s.clock));
	rte_pktmbuf_free(m);
}

static void
handle(struct worker_msg *m)
{
	if (m->reply && m->done != NULL) {
		m->done(m);
	} else if (m->reply) {
		((struct call *)(uintptr_t)m->cookie)->done = true;
	} else {
		if (m->type == WORKER_MSG_RX_CTL)
			received(m->pkt.m);
		else if (m->type == WORKER_MSG_EVENT)
			printf("event %d\n", m->event.event);
		m->done(m);
	}
}

static unsigned int
look(void)
{
	struct worker_msg *m[32];
	unsigned int n = worker_ctl_dequeue(&wire.s, m, RTE_DIM(m));

	pthread_mutex_lock(&wire.lock);
	for (unsigned int i = 0; i < n; i++)
		handle(m[i]);
	net_neigh_tick(wire.neigh, worker_clock_now(&wire.s.clock));
	pthread_cond_broadcast(&wire.news);
	pthread_mutex_unlock(&wire.lock);
	return n;
}

static void *
control(void *arg)
{
	struct epoll_event ev[2];
	int n;

	for (;;) {
		ring_sleep_enter(&wire.s.ctl_sleep);
		n = look() == 0 ? epoll_wait(wire.epoll_fd, ev, RTE_DIM(ev), TICK_MS) : 0;
		ring_sleep_leave(&wire.s.ctl_sleep);
		for (int i = 0; i < n; i++)
			if (ev[i].data.fd == wire.kick_fd)
				worker_ctx_kick(wire.s.worker[0], wire.ctx);
	}
	return arg;
}

static void *
work(void *arg)
{
	rte_thread_register(); /* for the pools' caches */
	worker_main(arg);
	return NULL;
}

struct net_neigh *
wire_resolve(const struct net_ip *ip)
{
	struct net_neigh *n;

	pthread_mutex_lock(&wire.lock);
	n = net_neigh_get(wire.neigh, ip, 0, worker_clock_now(&wire.s.clock));
	while (n != NULL && !net_neigh_l2_usable(n->l2) &&
	       net_neigh_l2_state(n->l2) != NET_NEIGH_FAILED)
		pthread_cond_wait(&wire.news, &wire.lock);
	pthread_mutex_unlock(&wire.lock);
	return n != NULL && net_neigh_l2_usable(n->l2) ? n : NULL;
}

/* ---- start ---------- */

static void
fail(const char *what)
{
	rte_exit(EXIT_FAILURE, "rnic-wire: %s\n", what);
}

static int
watched_eventfd(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.fd = fd};

	if (fd < 0 || epoll_ctl(wire.epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
		fail("eventfd");
	return fd;
}

static void
start_iface(char *addrs, uint16_t port)
{
	struct net_iface_view *v;
	struct rte_ether_addr mac;
	uint8_t plen;

	memcpy(mac.addr_bytes, wire.port.mac, sizeof(mac.addr_bytes));
	v = net_iface_view_new(&mac, port, wire.port.mtu);
	v->link_up = 1;
	wire.gid[wire.num_gids] = net_ip_link_local(&mac);
	net_iface_view_add(v, &wire.gid[wire.num_gids++], 64, 0);
	for (char *a = strtok(addrs, ","); a != NULL; a = strtok(NULL, ",")) {
		if (wire.num_gids == RTE_DIM(wire.gid) ||
		    net_prefix_parse(a, &wire.gid[wire.num_gids], &plen) != 0 ||
		    net_iface_view_add(v, &wire.gid[wire.num_gids], plen, 0) != 0)
			fail("an address is wrong");
		wire.num_gids++;
	}
	net_iface_publish(&wire.s.iface[port], v);
}

static void
start_port(char *addrs, uint16_t mtu)
{
	struct pmd_port_config cfg = {.num_queues = 1, .mtu = mtu};
	const char *why;

	cfg.rx_pool = rte_pktmbuf_pool_create("rx", POOL, 256, 0, ROOM, SOCKET_ID_ANY);
	wire.s.tx_pool = rte_pktmbuf_pool_create("tx", POOL, 256, 0, ROOM, SOCKET_ID_ANY);
	if (cfg.rx_pool == NULL || wire.s.tx_pool == NULL)
		fail("no memory for packets");
	if (pmd_port_open(&cfg, &wire.s.port[0], &why) != 0)
		fail(why);
	pmd_port_get_info(wire.s.port[0], &wire.port);
	wire.s.num_ports = 1;
	wire.s.rx_pool_size = POOL;
	start_iface(addrs, 0);
}

static void
start_context(void)
{
	struct worker_msg m = {.type = WORKER_MSG_CTX_ADD};

	wire.bells = wire_alloc(sizeof(*wire.bells));
	wire.bell_words = wire_alloc(sizeof(*wire.bell_words));
	wire.ctx = wire_alloc(sizeof(*wire.ctx) + sizeof(wire.ctx->at[0]));
	wire.ctx->num_workers = 1;
	wire.ctx->at[0].chunk[0] = wire.bells;
	wire.ctx->at[0].slots[0] = wire_alloc(RING_BELL_SLOTS * sizeof(void *));
	wire.ctx->at[0].num_chunks = 1;
	wire.ctx->at[0].daemon = wire.bell_words;
	wire.ctx->at[0].kick_fd = wire.kick_fd = watched_eventfd();
	m.ctx = wire.ctx;
	wire_call(&m);
}

static void
start_worker(void)
{
	const struct net_neigh_ops ops = {neigh_send, neigh_release, neigh_event, NULL};
	struct worker_shared *s = &wire.s;
	pthread_t thread;
	const char *why;

	s->num_workers = 1;
	s->idle_us = 2000;
	s->mrs = mr_table_create(1024);
	s->qpns = roce_qpn_table_create(1024);
	s->qsbr = wire_alloc(rte_rcu_qsbr_get_memsize(1));
	rte_rcu_qsbr_init(s->qsbr, 1);
	worker_clock_init(&s->clock);
	s->to_ctl = rte_ring_create("ctl", worker_ctl_ring_size(s, 64), SOCKET_ID_ANY, 0);
	wire.neigh = net_neigh_table_new(&s->iface[0], 256, &ops);
	wire.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->ctl_kick_fd = watched_eventfd();
	if (worker_create(s, 0, &why) == NULL)
		fail(why);
	if (pthread_create(&thread, NULL, work, s->worker[0]) != 0 ||
	    pthread_create(&thread, NULL, control, NULL) != 0)
		fail("no threads");
}

/** What the engine counted, for the one who looks at a failure. */
static void
print_counters(void)
{
	const uint64_t *c = roce_counters(wire.s.worker[0]->roce);

	for (int i = 0; i < ROCE_C_COUNT; i++)
		if (c[i] != 0)
			printf("%s %" PRIu64 "\n", roce_counter_name((enum roce_counter)i), c[i]);
}

int
main(int argc, char **argv)
{
	int n;

	setvbuf(stdout, NULL, _IOLBF, 0);
	n = rte_eal_init(argc, argv);
	if (n < 0 || argc - n < 3)
		fail("usage: rnic-wire EAL-ARGS... -- ADDRESS[,ADDRESS] MTU PEER-QP-ARGS...");
	start_port(argv[n + 1], (uint16_t)atoi(argv[n + 2]));
	start_worker();
	start_context();
	printf("ready " RTE_ETHER_ADDR_PRT_FMT "\n",
	       RTE_ETHER_ADDR_BYTES((struct rte_ether_addr *)wire.port.mac));
	n = peer_qp_main(argc - n - 2, argv + n + 2);
	print_counters();
	return n;
}
