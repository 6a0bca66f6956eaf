/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of DPDK's ring driver and the built-in one: opening, bursts, refusals. */
#include <rte_dev.h>

#include "net_test.h"
#include "pmd_priv.h"

static struct pmd_port *port;
static const char *why;

static struct pmd_port_config
config(struct rte_mempool *pool, uint16_t queues)
{
	uint16_t id;

	ck_assert_int_eq(rte_eal_hotplug_add("vdev", "net_ring0", ""), 0);
	ck_assert_int_eq(rte_eth_dev_get_port_by_name("net_ring0", &id), 0);
	return (struct pmd_port_config){.ethdev = id, .index = 5, .num_queues = queues,
					.rx_pool = pool};
}

static void
echo_burst(struct rte_mempool *pool)
{
	struct rte_mbuf *m = pool_frame(pool, v_udp4, sizeof(v_udp4)), *got[4];

	ck_assert_uint_eq(pmd_rx_burst(port, 0, got, 4), 0);
	ck_assert_uint_eq(pmd_tx_burst(port, 0, &m, 1), 1);
	ck_assert(pmd_rx_maybe_ready(port, 0));
	ck_assert_uint_eq(pmd_rx_burst(port, 0, got, 4), 1);
	ck_assert_ptr_eq(got[0], m);
	ck_assert_uint_eq(m->port, 5); /* the daemon's number, not ethdev's */
	rte_pktmbuf_free(m);
}

START_TEST(port__ring)
{
	struct rte_mempool *pool = test_pool();
	struct pmd_port_config cfg = config(pool, 1);
	struct pmd_port_info info;
	struct pmd_port_stats stats;
	bool up;

	ck_assert_int_eq(pmd_port_open(&cfg, &port, &why), 0);
	ck_assert_ptr_null(why);
	echo_burst(pool);
	pmd_port_get_info(port, &info);
	ck_assert_str_eq(info.name, "net_ring0");
	ck_assert_str_eq(info.netdev, "");
	ck_assert(!info.builtin);
	ck_assert(!info.rx_interrupts);
	ck_assert_uint_eq(info.mtu, 1500);
	ck_assert_int_lt(pmd_rx_intr_fd(port, 0), 0);
	pmd_port_get_stats(port, &stats);
	ck_assert_uint_eq(stats.rx_packets, 1);
	ck_assert_uint_eq(stats.tx_packets, 1);
	ck_assert(pmd_port_poll_link(port, &up));
	ck_assert(up);
	ck_assert(!pmd_port_poll_link(port, &up));
	pmd_port_close(port);
}
END_TEST

START_TEST(port__too_many_workers)
{
	struct rte_mempool *pool = test_pool();
	struct pmd_port_config cfg = config(pool, 500);

	ck_assert_int_eq(pmd_port_open(&cfg, &port, &why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "500 workers need one each"));
}
END_TEST

START_TEST(port__unknown)
{
	struct pmd_port_config cfg = {.ethdev = 17, .num_queues = 1, .rx_pool = test_pool()};

	ck_assert_int_ne(pmd_port_open(&cfg, &port, &why), 0);
	ck_assert_str_eq(why, "there is no port 17 of DPDK");
}
END_TEST

/** A frame of that MTU does not fit a buffer, and may not be spread over several. */
START_TEST(port__mtu_beyond_the_buffers)
{
	struct rte_mempool *pool = test_pool();
	struct pmd_port_config cfg = config(pool, 1);

	cfg.mtu = 9000;
	cfg.no_offload = UINT64_C(1) << PMD_OFFLOAD_RX_SCATTER;
	ck_assert_int_eq(pmd_port_open(&cfg, &port, &why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "turned off by the configuration"));
}
END_TEST

START_TEST(port__loop)
{
	struct rte_mempool *pool = test_pool();
	struct pmd_port_config cfg = {.ethdev = PMD_PORT_LOOP, .index = 5, .num_queues = 2,
				      .mtu = 4200, .rx_pool = pool};
	struct pmd_port_info info;
	struct pmd_port_stats stats;
	struct rte_mbuf *m, *got;
	bool up;

	ck_assert_int_eq(pmd_port_open(&cfg, &port, &why), 0);
	echo_burst(pool);
	/* A queue hears itself alone. */
	m = pool_frame(pool, v_udp4, sizeof(v_udp4));
	ck_assert_uint_eq(pmd_tx_burst(port, 1, &m, 1), 1);
	ck_assert(!pmd_rx_maybe_ready(port, 0));
	ck_assert_uint_eq(pmd_rx_burst(port, 0, &got, 1), 0);
	ck_assert_uint_eq(pmd_rx_burst(port, 1, &got, 1), 1);
	rte_pktmbuf_free(got);
	pmd_port_get_info(port, &info);
	ck_assert_str_eq(info.name, "loop");
	ck_assert(info.builtin && info.link_up);
	ck_assert_uint_eq(info.mtu, 4200);
	ck_assert_uint_eq(info.mac[0] & 3, 2); /* local, unicast */
	pmd_port_get_stats(port, &stats);
	ck_assert_uint_eq(stats.tx_packets, 2);
	ck_assert_uint_eq(stats.rx_bytes, 2 * sizeof(v_udp4));
	ck_assert(!pmd_port_poll_link(port, &up));
	ck_assert(up);
	pmd_port_close(port);
}
END_TEST

/** It takes so much and no more, and frees what nobody fetched. */
START_TEST(port__loop_is_bounded)
{
	struct rte_mempool *pool = test_pool();
	unsigned int full = rte_mempool_avail_count(pool), n = 0;
	struct pmd_port_config cfg = {.ethdev = PMD_PORT_LOOP, .num_queues = 1, .rx_pool = pool};
	struct rte_mbuf *m = pool_frame(pool, v_udp4, sizeof(v_udp4));

	ck_assert_int_eq(pmd_port_open(&cfg, &port, &why), 0);
	do {
		rte_mbuf_refcnt_update(m, 1); /* one packet stands for a thousand */
		n++;
	} while (pmd_tx_burst(port, 0, &m, 1) == 1);
	ck_assert_uint_eq(n, 1025);
	pmd_port_close(port);
	ck_assert_uint_eq(rte_mbuf_refcnt_read(m), 2);
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(m);
	ck_assert_uint_eq(rte_mempool_avail_count(pool), full);
}
END_TEST

UNIT_MAIN("pmd_port", port__ring, port__too_many_workers, port__unknown,
	  port__mtu_beyond_the_buffers, port__loop, port__loop_is_bounded)
