/* SPDX-License-Identifier: BSD-3-Clause */
/* The limit of latency: one mbuf thrown to and fro over a pair of ports, nothing done to it. */
#include <stdatomic.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_mbuf.h>

#include "pmd_glue.h"
#include "testrnic_engine.h"
#include "testrnic_limit.h"

#define FRAME 122 /* bytes of a RoCE v2 WRITE of 64 bytes: 14+20+8+12+16+64+4, less FCS, even */
#define WARM_UP 1000u

struct ping {
	struct pmd_port *a, *b;
	unsigned int rounds, done;
	struct rte_mempool *pool;
	uint32_t *cycles;
	_Atomic bool stop;
};

/* NULL: told to stop. */
static struct rte_mbuf *
catch_one(struct ping *p, struct pmd_port *port)
{
	struct rte_mbuf *m;

	while (pmd_rx_burst(port, 0, &m, 1) == 0)
		if (atomic_load_explicit(&p->stop, memory_order_relaxed))
			return NULL;
	return m;
}

static void
throw_one(struct pmd_port *port, struct rte_mbuf *m)
{
	while (pmd_tx_burst(port, 0, &m, 1) == 0)
		;
}

static int
returner(void *arg)
{
	struct ping *p = arg;
	struct rte_mbuf *m;

	while ((m = catch_one(p, p->b)) != NULL)
		throw_one(p->b, m);
	return 0;
}

static int
thrower(void *arg)
{
	struct ping *p = arg;
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->pool);
	uint64_t until = rte_rdtsc() + rte_get_tsc_hz();

	if (m == NULL || rte_pktmbuf_append(m, FRAME) == NULL)
		return -1;
	for (unsigned int i = 0; i < p->rounds + WARM_UP; i++) {
		uint64_t start = rte_rdtsc();

		throw_one(p->a, m);
		m = catch_one(p, p->a);
		if (i >= WARM_UP)
			p->cycles[p->done++] = rte_rdtsc() - start;
		if (start > until)
			break;
	}
	rte_pktmbuf_free(m);
	return 0;
}

static int
by_cycles(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

double
limit_ping(unsigned int a_lcore, unsigned int b_lcore, struct pmd_port *a, struct pmd_port *b,
	   unsigned int rounds)
{
	struct ping p = { .a = a, .b = b, .rounds = rounds };
	double ns = -1;

	p.pool = rte_mempool_lookup("limit_pool");
	p.cycles = calloc(rounds, sizeof(*p.cycles));
	if (p.pool && p.cycles) {
		rte_eal_remote_launch(returner, &p, b_lcore);
		rte_eal_remote_launch(thrower, &p, a_lcore);
		if (engine_wait_lcore(a_lcore) == 0 && p.done > 0) {
			qsort(p.cycles, p.done, sizeof(*p.cycles), by_cycles);
			ns = p.cycles[p.done / 2] * 1e9 / rte_get_tsc_hz() / 2;
		}
		atomic_store(&p.stop, true);
		engine_wait_lcore(b_lcore);
	}
	free(p.cycles);
	return ns;
}
