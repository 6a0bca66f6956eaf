/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushing and purging of a transmit batch. */
#include <string.h>

#include "net_txbatch.h"

void
net_tx_init(struct net_tx_batch *b, net_tx_burst_fn burst, void *ctx)
{
	memset(b, 0, sizeof(*b));
	b->burst = burst;
	b->ctx = ctx;
}

uint16_t
net_tx_flush_slow(struct net_tx_batch *b)
{
	uint16_t sent = b->burst(b->ctx, b->m, b->n);

	b->bursts++;
	b->packets += sent;
	b->n = (uint16_t)(b->n - sent);
	if (b->n != 0) {
		b->partial++;
		memmove(b->m, b->m + sent, b->n * sizeof(b->m[0]));
	}
	return b->n;
}

uint16_t
net_tx_purge(struct net_tx_batch *b)
{
	uint16_t n = b->n;

	rte_pktmbuf_free_bulk(b->m, n);
	b->n = 0;
	return n;
}
