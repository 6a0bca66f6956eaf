/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers on ports that are arrays, and the control thread's end in the test's hands. The
 * pmd_* functions that workers call are defined here, so that pmd_glue's are not linked.
 */
#ifndef WORKER_FIXTURE_H
#define WORKER_FIXTURE_H

#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "net_test.h"
#include "worker_priv.h"

#define FX_PORTS 2
#define FX_WORKERS 3
#define FX_QUEUE 512

struct pmd_port {
	struct {
		struct rte_mbuf *rx[FX_QUEUE], *tx[FX_QUEUE];
		uint16_t num_rx, num_tx;
	} q[FX_WORKERS];
	uint16_t index;
	uint16_t takes; /* packets of a transmit burst */
	bool wakes;	/* else workers nap */
};

uint16_t
pmd_rx_burst(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t have = RTE_MIN(n, p->q[queue].num_rx);

	if (have == 0)
		return 0; /* a fake port of a sleeping worker is nobody's to write to */
	for (uint16_t i = 0; i < have; i++) {
		m[i] = p->q[queue].rx[i];
		m[i]->port = p->index;
	}
	p->q[queue].num_rx = (uint16_t)(p->q[queue].num_rx - have);
	memmove(p->q[queue].rx, p->q[queue].rx + have, p->q[queue].num_rx * sizeof(*m));
	return have;
}

uint16_t
pmd_tx_burst(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n && i < p->takes; i++)
		p->q[queue].tx[p->q[queue].num_tx++] = m[i];
	return i;
}

int
pmd_rx_intr_fd(struct pmd_port *p, uint16_t queue)
{
	(void)p;
	(void)queue;
	return -ENOTSUP;
}

int
pmd_rx_intr_enable(struct pmd_port *p, uint16_t queue)
{
	return pmd_rx_intr_fd(p, queue);
}

int
pmd_rx_intr_disable(struct pmd_port *p, uint16_t queue)
{
	return pmd_rx_intr_fd(p, queue);
}

bool
pmd_rx_maybe_ready(struct pmd_port *p, uint16_t queue)
{
	return p->q[queue].num_rx != 0;
}

/** One that wakes looks like the built-in port, to which nothing comes of itself. */
void
pmd_port_get_info(const struct pmd_port *p, struct pmd_port_info *info)
{
	memset(info, 0, sizeof(*info));
	info->builtin = p->wakes;
}

struct fx {
	struct worker_shared s;
	struct pmd_port port[FX_PORTS];
	struct rte_mempool *pool;
	unsigned int pool_full;
};

static inline void *
fx_alloc(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	ck_assert_ptr_nonnull(p);
	return memset(p, 0, size);
}

static inline void
fx_iface(struct fx *f, uint32_t port)
{
	struct net_iface_view *v = net_iface_view_new(&test_us, (uint16_t)port, 1500);
	struct net_ip v4 = ip("192.0.2.2"), v6 = ip("2001:db8::2");

	ck_assert_int_eq(net_iface_view_add(v, &v4, 120, 0), 0);
	ck_assert_int_eq(net_iface_view_add(v, &v6, 64, 0), 0);
	net_iface_publish(&f->s.iface[port], v);
}

/** Everything but the workers, so that a test may still change what they see. */
static inline void
fx_init(struct fx *f, uint32_t workers)
{
	memset(f, 0, sizeof(*f));
	test_pool(); /* EAL */
	f->pool = rte_pktmbuf_pool_create("fx", 2047, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					  SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(f->pool);
	f->pool_full = rte_mempool_avail_count(f->pool);
	f->s.num_workers = workers;
	f->s.num_ports = FX_PORTS;
	for (uint32_t i = 0; i < FX_PORTS; i++) {
		f->port[i].index = (uint16_t)i;
		f->port[i].takes = UINT16_MAX;
		f->port[i].wakes = true;
		f->s.port[i] = &f->port[i];
		fx_iface(f, i);
	}
	f->s.tx_pool = f->pool;
	f->s.rx_pool_size = 1024;
	f->s.shadows = 64;
	f->s.max_events = 8;
	f->s.mrs = mr_table_create(64);
	f->s.qpns = roce_qpn_table_create(64);
	f->s.qsbr = fx_alloc(rte_rcu_qsbr_get_memsize(FX_WORKERS));
	rte_rcu_qsbr_init(f->s.qsbr, FX_WORKERS);
	f->s.clock.ns0 = UINT64_C(1000000000); /* and stands still: mult is 0 */
	f->s.ctl_kick_fd = -1;
}

static inline void
fx_start_ring(struct fx *f, uint32_t entries)
{
	const char *why;

	f->s.to_ctl = fx_alloc((size_t)rte_ring_get_memsize(entries));
	ck_assert_int_eq(rte_ring_init(f->s.to_ctl, "ctl", entries, 0), 0);
	for (uint32_t i = 0; i < f->s.num_workers; i++) {
		ck_assert_ptr_nonnull(worker_create(&f->s, i, &why));
		ck_assert_ptr_null(why);
	}
}

static inline void
fx_start(struct fx *f, uint32_t workers)
{
	fx_init(f, workers);
	fx_start_ring(f, worker_ctl_ring_size(&f->s, 64));
}

static inline void
fx_free_sent(struct fx *f)
{
	for (int i = 0; i < FX_PORTS; i++)
		for (int q = 0; q < FX_WORKERS; q++) {
			rte_pktmbuf_free_bulk(f->port[i].q[q].tx, f->port[i].q[q].num_tx);
			f->port[i].q[q].num_tx = 0;
		}
}

/** Every packet is back in the pool. */
static inline void
fx_stop(struct fx *f)
{
	fx_free_sent(f);
	for (uint32_t i = 0; i < f->s.num_workers; i++)
		worker_destroy(f->s.worker[i]);
	ck_assert_uint_eq(rte_mempool_avail_count(f->pool), f->pool_full);
	for (uint32_t i = 0; i < FX_PORTS; i++)
		net_iface_view_free(net_iface_get(&f->s.iface[i]));
	mr_table_free(f->s.mrs);
	roce_qpn_table_free(f->s.qpns);
	free(f->s.qsbr);
	free(f->s.to_ctl);
}

static inline void
fx_receive(struct fx *f, uint32_t port, uint32_t queue, const void *frame, size_t len)
{
	ck_assert_uint_lt(f->port[port].q[queue].num_rx, FX_QUEUE);
	f->port[port].q[queue].rx[f->port[port].q[queue].num_rx++] =
		pool_frame(f->pool, frame, (uint16_t)len);
}

/** The next message for the control thread, or NULL. */
static inline struct worker_msg *
fx_told(struct fx *f)
{
	struct worker_msg *m;

	return worker_ctl_dequeue(&f->s, &m, 1) == 1 ? m : NULL;
}

static inline uint64_t
fx_count(const struct fx *f, uint32_t w, enum worker_counter c)
{
	return counter_read(&f->s.worker[w]->counter[c]);
}

/** Send a message and poll its worker; the answer is the next thing told. */
static inline int
fx_call(struct fx *f, uint32_t w, struct worker_msg *m)
{
	m->reply = false;
	m->status = 1;
	ck_assert(worker_send(f->s.worker[w], m));
	worker_poll(f->s.worker[w]);
	ck_assert_ptr_eq(fx_told(f), m);
	ck_assert(m->reply);
	return m->status;
}

#endif /* WORKER_FIXTURE_H */
