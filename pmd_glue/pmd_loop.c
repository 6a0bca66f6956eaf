/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The built-in port without an ethdev: what a queue sends comes back from the same queue. Each
 * queue belongs to one worker, so its ring needs no synchronisation; only the counters are read
 * by others.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_mbuf.h>

#include "base_counters.h"
#include "pmd_priv.h"

#define LOOP_RING 1024 /* packets; a power of two */

struct pmd_loop_queue {
	uint32_t head, tail; /* free-running */
	struct counter packets, bytes;
	struct rte_mbuf *ring[LOOP_RING];
} __rte_cache_aligned;

int
pmd_loop_open(struct pmd_port *p)
{
	size_t size = p->num_queues * sizeof(*p->loop);

	p->loop = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (p->loop == NULL)
		return -ENOMEM;
	memset(p->loop, 0, size);
	/* Locally administered; differs from one port of the daemon to the next. */
	p->mac = (struct rte_ether_addr){{0x02, 0x53, 0x52, 0x4e, (uint8_t)(p->index >> 8),
					  (uint8_t)p->index}};
	p->link_up = true;
	return 0;
}

void
pmd_loop_close(struct pmd_port *p)
{
	for (uint16_t i = 0; i < p->num_queues; i++) {
		struct pmd_loop_queue *q = &p->loop[i];

		while (q->head != q->tail)
			rte_pktmbuf_free(q->ring[q->head++ % LOOP_RING]);
	}
	free(p->loop);
}

uint16_t
pmd_loop_rx(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct pmd_loop_queue *q = &p->loop[queue];
	uint16_t i;

	for (i = 0; i < n && q->head != q->tail; i++)
		m[i] = q->ring[q->head++ % LOOP_RING];
	return i;
}

uint16_t
pmd_loop_tx(struct pmd_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct pmd_loop_queue *q = &p->loop[queue];
	uint64_t bytes = 0;
	uint16_t i;

	for (i = 0; i < n && q->tail - q->head < LOOP_RING; i++) {
		bytes += rte_pktmbuf_pkt_len(m[i]);
		q->ring[q->tail++ % LOOP_RING] = m[i];
	}
	counter_add(&q->packets, i);
	counter_add(&q->bytes, bytes);
	return i;
}

bool
pmd_loop_ready(const struct pmd_port *p, uint16_t queue)
{
	return p->loop[queue].head != p->loop[queue].tail;
}

void
pmd_loop_stats(const struct pmd_port *p, struct pmd_port_stats *s)
{
	for (uint16_t i = 0; i < p->num_queues; i++) {
		s->tx_packets += counter_read(&p->loop[i].packets);
		s->tx_bytes += counter_read(&p->loop[i].bytes);
	}
	s->rx_packets = s->tx_packets; /* what goes out is in already */
	s->rx_bytes = s->tx_bytes;
}
