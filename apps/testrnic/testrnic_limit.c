/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The touch loop: one core copies payload into mbufs, the other copies it out, a CRC on both
 * sides. No protocol, no completion, one rte_ring. What it does is fixed: recorded figures of
 * all machines are compared by it, so change nothing but how it is called.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>
#include <rte_net_crc.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#include "testrnic_engine.h"
#include "testrnic_limit.h"

#define BURST 32
#define HEADER 64 /* room for Ethernet, IP, UDP and transport headers, written by the sender */
#define MAX_SAMPLES 64

struct side {
	char *payload; /* working_set bytes */
	char *table;   /* stands for connection state */
	uint64_t rng;
	size_t pos;
	uint32_t sum; /* keeps the CRC from being optimised away */
};

static struct rte_ring *wire;
static struct rte_mempool *pool;
static struct limit_row row;
static struct side tx, rx;
static unsigned int num_samples;
static double rate[MAX_SAMPLES];
static _Atomic bool stop;
static _Atomic uint64_t received;

static char *
next_line(struct side *s)
{
	s->rng = s->rng * 6364136223846793005ULL + 1442695040888963407ULL;
	return s->table + (s->rng >> 20) % (row.table / 64) * 64;
}

/* Touch the state of a burst of packets: all prefetches first, then read-modify-write. */
static void
touch_state(struct side *s, unsigned int packets)
{
	char *line[BURST * 16];
	size_t n = packets * row.lines;

	for (size_t i = 0; i < n; i++) {
		line[i] = next_line(s);
		rte_prefetch0(line[i]);
	}
	for (size_t i = 0; i < n; i++)
		(*(uint64_t *)line[i])++;
}

static char *
next_payload(struct side *s)
{
	char *p = s->payload + s->pos;

	s->pos += row.size;
	if (s->pos + row.size > row.working_set)
		s->pos = 0;
	return p;
}

static void
receive(struct rte_mbuf **m, unsigned int n)
{
	if (row.lines)
		touch_state(&rx, n);
	for (unsigned int i = 0; i < n; i++) {
		char *data = rte_pktmbuf_mtod(m[i], char *) + HEADER;

		if (row.crc)
			rx.sum ^= rte_net_crc_calc(data, row.size, RTE_NET_CRC32_ETH);
		rte_memcpy(next_payload(&rx), data, row.size);
	}
	rte_pktmbuf_free_bulk(m, n);
	atomic_store_explicit(&received,
			      atomic_load_explicit(&received, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static int
receiver(void *arg)
{
	struct rte_mbuf *m[BURST];

	(void)arg;
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		unsigned int n = rte_ring_sc_dequeue_burst(wire, (void **)m, BURST, NULL);

		if (n > 0)
			receive(m, n);
	}
	return 0;
}

static void
send_burst(void)
{
	struct rte_mbuf *m[BURST];

	if (rte_pktmbuf_alloc_bulk(pool, m, BURST) != 0)
		return;
	if (row.lines)
		touch_state(&tx, BURST);
	for (int i = 0; i < BURST; i++) {
		char *p = rte_pktmbuf_mtod(m[i], char *);

		memset(p, 0, HEADER);
		rte_memcpy(p + HEADER, next_payload(&tx), row.size);
		if (row.crc)
			tx.sum ^= rte_net_crc_calc(p + HEADER, row.size, RTE_NET_CRC32_ETH);
	}
	for (unsigned int done = 0; done < BURST;)
		done += rte_ring_sp_enqueue_burst(wire, (void **)m + done, BURST - done, NULL);
}

static int
sender(void *arg)
{
	uint64_t hz = rte_get_tsc_hz(), last = rte_rdtsc(), count = 0;
	unsigned int n = 0;

	(void)arg;
	while (n < num_samples) {
		uint64_t now;

		send_burst();
		now = rte_rdtsc();
		if (now - last > hz / 20) {
			uint64_t r = atomic_load_explicit(&received, memory_order_relaxed);

			rate[n++] = (double)(r - count) * hz / (now - last);
			count = r;
			last = now;
		}
	}
	while (rte_ring_count(wire))
		;
	return 0;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool
side_init(struct side *s, uint64_t seed)
{
	s->payload = rte_malloc(NULL, row.working_set, 64);
	s->table = row.lines ? rte_malloc(NULL, row.table, 64) : NULL;
	s->rng = seed;
	s->pos = 0;
	if (s->payload == NULL || (row.lines && s->table == NULL))
		return false;
	memset(s->payload, (int)seed, row.working_set);
	if (s->table)
		memset(s->table, 0, row.table);
	return true;
}

static void
side_fini(struct side *s)
{
	rte_free(s->payload);
	rte_free(s->table);
	s->payload = s->table = NULL;
}

int
limit_init(void)
{
	rte_net_crc_set_alg(RTE_NET_CRC_AVX512);
	wire = rte_ring_create("limit_wire", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	pool = rte_pktmbuf_pool_create("limit_pool", 8191, 256, 0, 9216 + RTE_PKTMBUF_HEADROOM,
				       SOCKET_ID_ANY);
	return wire && pool ? 0 : -ENOMEM;
}

void
limit_fini(void)
{
	rte_ring_free(wire);
	rte_mempool_free(pool);
}

double
limit_touch(unsigned int tx_lcore, unsigned int rx_lcore, const struct limit_row *r,
	    unsigned int samples)
{
	bool ready;

	row = *r;
	num_samples = samples < MAX_SAMPLES ? samples : MAX_SAMPLES;
	ready = side_init(&tx, 1);
	ready = side_init(&rx, 2) && ready;
	if (ready) {
		atomic_store(&stop, false);
		atomic_store(&received, 0);
		rte_eal_remote_launch(receiver, NULL, rx_lcore);
		rte_eal_remote_launch(sender, NULL, tx_lcore);
		engine_wait_lcore(tx_lcore);
		atomic_store(&stop, true);
		engine_wait_lcore(rx_lcore);
		qsort(rate, num_samples, sizeof(rate[0]), by_value);
	}
	side_fini(&tx);
	side_fini(&rx);
	return ready ? rate[num_samples / 2] : -1;
}
