/* SPDX-License-Identifier: BSD-3-Clause */
/* Order, back-pressure and no loss in the transmit batch. */
#include "net_test.h"

struct port {
	uint16_t takes;
	uint16_t n;
	struct rte_mbuf *got[3 * NET_TX_BATCH];
};

static uint16_t
burst(void *ctx, struct rte_mbuf **m, uint16_t n)
{
	struct port *p = ctx;
	uint16_t i;

	for (i = 0; i < n && i < p->takes; i++)
		p->got[p->n++] = m[i];
	return i;
}

START_TEST(tx__order_over_partial_bursts)
{
	static struct rte_mbuf m[2 * NET_TX_BATCH];
	struct port port = { .takes = 7 };
	struct net_tx_batch b;
	unsigned int next = 0;

	net_tx_init(&b, burst, &port);
	ck_assert_uint_eq(net_tx_flush(&b), 0);
	ck_assert_uint_eq(b.bursts, 0);
	while (port.n < RTE_DIM(m)) {
		while (next < RTE_DIM(m) && net_tx_room(&b) > 0)
			ck_assert(net_tx_push(&b, &m[next++]));
		if (next < RTE_DIM(m))
			ck_assert(!net_tx_push(&b, &m[0]));
		net_tx_flush(&b);
	}
	for (unsigned int i = 0; i < RTE_DIM(m); i++)
		ck_assert_ptr_eq(port.got[i], &m[i]);
	ck_assert_uint_eq(b.n, 0);
	ck_assert_uint_eq(b.packets, RTE_DIM(m));
	ck_assert_uint_ge(b.partial, RTE_DIM(m) / 7);
}
END_TEST

/* B168: a full ring of the port's costs time, and no packet. */
START_TEST(tx__stuck_port_drops_nothing)
{
	static struct rte_mbuf m[NET_TX_BATCH];
	struct port port = { .takes = 0 };
	struct net_tx_batch b;

	net_tx_init(&b, burst, &port);
	for (unsigned int i = 0; i < NET_TX_BATCH; i++)
		ck_assert(net_tx_push(&b, &m[i]));
	ck_assert_uint_eq(net_tx_flush(&b), NET_TX_BATCH);
	ck_assert_uint_eq(net_tx_room(&b), 0);
	port.takes = 1000;
	ck_assert_uint_eq(net_tx_flush(&b), 0);
	ck_assert_ptr_eq(port.got[0], &m[0]);
	ck_assert_uint_eq(port.n, NET_TX_BATCH);
}
END_TEST

START_TEST(tx__purge)
{
	struct rte_mempool *mp = test_pool();
	struct net_tx_batch b;

	net_tx_init(&b, burst, NULL);
	for (unsigned int i = 0; i < 5; i++)
		ck_assert(net_tx_push(&b, pool_frame(mp, v_udp4, sizeof(v_udp4))));
	ck_assert_uint_eq(net_tx_purge(&b), 5);
	ck_assert_uint_eq(rte_mempool_in_use_count(mp), 0);
	ck_assert_uint_eq(b.n, 0);
}
END_TEST

UNIT_MAIN("net_txbatch", tx__order_over_partial_bursts, tx__stuck_port_drops_nothing, tx__purge)
