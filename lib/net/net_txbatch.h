/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmit batch of one worker and port. Packets leave in the order of their
 * push. What the port does not take stays queued; a full batch is back-pressure
 * for the producers, never a drop.
 */
#ifndef NET_TXBATCH_H
#define NET_TXBATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define NET_TX_BATCH 128

/** Takes up to @n packets, returns how many; ethdev's contract. One call a burst. */
typedef uint16_t (*net_tx_burst_fn)(void *ctx, struct rte_mbuf **m, uint16_t n);

struct net_tx_batch {
	struct rte_mbuf *m[NET_TX_BATCH];
	uint16_t n; /* queued, m[0] the oldest */
	net_tx_burst_fn burst;
	void *ctx;
	uint64_t packets; /* handed to the port */
	uint64_t bursts;
	uint64_t partial; /* bursts the port did not take whole */
};

void net_tx_init(struct net_tx_batch *b, net_tx_burst_fn burst, void *ctx);

/** How many more packets can be pushed. */
static inline uint16_t
net_tx_room(const struct net_tx_batch *b)
{
	return (uint16_t)(NET_TX_BATCH - b->n);
}

/** False when full: @m stays the caller's. */
static inline bool
net_tx_push(struct net_tx_batch *b, struct rte_mbuf *m)
{
	if (__builtin_expect(b->n == NET_TX_BATCH, 0))
		return false;
	b->m[b->n++] = m;
	return true;
}

uint16_t net_tx_flush_slow(struct net_tx_batch *b);

/** One burst to the port; returns how many packets are still queued. */
static inline uint16_t
net_tx_flush(struct net_tx_batch *b)
{
	return b->n == 0 ? 0 : net_tx_flush_slow(b);
}

/** Free what is queued (port gone); returns how many. */
uint16_t net_tx_purge(struct net_tx_batch *b);

#endif /* NET_TXBATCH_H */
