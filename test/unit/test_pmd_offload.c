/* SPDX-License-Identifier: BSD-3-Clause */
/* Which offloads are used, and a reason for each that is not: with each of them off (B212). */
#include "pmd_priv.h"
#include "unit.h"

#define BIT(o) (UINT64_C(1) << (o))

static const struct rte_eth_dev_info all = {
	.rx_offload_capa = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_SCATTER |
			   RTE_ETH_RX_OFFLOAD_VLAN_STRIP,
	.tx_offload_capa = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_MULTI_SEGS |
			   RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE,
	.flow_type_rss_offloads = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP,
	.max_rx_queues = 8,
};

static struct pmd_port port;
static struct rte_eth_conf conf;

static void
negotiate(const struct rte_eth_dev_info *info, uint16_t queues, uint64_t refused, uint32_t frame)
{
	memset(&port, 0, sizeof(port));
	memset(&conf, 0, sizeof(conf));
	port.num_queues = queues;
	pmd_offload_negotiate(&port, info, refused, frame, 2048, &conf);
	for (enum pmd_offload o = 0; o < PMD_OFFLOAD_COUNT; o++)
		ck_assert_msg(!(port.used & BIT(o)) == (port.why_not[o] != NULL),
			      "%s: a reason exactly when it is not used", pmd_offload_name(o));
	ck_assert_uint_eq(port.used & ~port.offered, 0);
}

START_TEST(offload__all_offered)
{
	negotiate(&all, 4, 0, 9000);
	ck_assert_uint_eq(port.offered, BIT(PMD_OFFLOAD_COUNT) - 1);
	ck_assert_uint_eq(port.used, BIT(PMD_OFFLOAD_RX_IPV4_CKSUM) |
			  BIT(PMD_OFFLOAD_TX_MULTI_SEGS) | BIT(PMD_OFFLOAD_RX_SCATTER) |
			  BIT(PMD_OFFLOAD_RSS));
	ck_assert_uint_eq(conf.rxmode.offloads,
			  RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_SCATTER);
	ck_assert_uint_eq(conf.txmode.offloads, RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
	ck_assert_int_eq(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_RSS);
	/* Hash types that the port does not have are not asked for: ethdev would refuse. */
	ck_assert_uint_eq(conf.rx_adv_conf.rss_conf.rss_hf & ~all.flow_type_rss_offloads, 0);
}
END_TEST

START_TEST(offload__needless)
{
	negotiate(&all, 1, 0, 2048);
	ck_assert_uint_eq(port.used & (BIT(PMD_OFFLOAD_RX_SCATTER) | BIT(PMD_OFFLOAD_RSS)), 0);
	ck_assert_str_eq(port.why_not[PMD_OFFLOAD_RSS], "there is one queue");
	ck_assert_int_eq(conf.rxmode.mq_mode, RTE_ETH_MQ_RX_NONE);
}
END_TEST

START_TEST(offload__none_offered)
{
	const struct rte_eth_dev_info none = {.max_rx_queues = 8};

	negotiate(&none, 4, 0, 9000);
	ck_assert_uint_eq(port.offered | port.used, 0);
	ck_assert_uint_eq(conf.rxmode.offloads | conf.txmode.offloads, 0);
}
END_TEST

START_TEST(offload__turned_off)
{
	negotiate(&all, 4, BIT(PMD_OFFLOAD_RX_IPV4_CKSUM), 9000);
	ck_assert_uint_eq(port.used & BIT(PMD_OFFLOAD_RX_IPV4_CKSUM), 0);
	ck_assert_str_eq(port.why_not[PMD_OFFLOAD_RX_IPV4_CKSUM],
			 "turned off by the configuration");
	ck_assert_uint_eq(conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM, 0);
}
END_TEST

START_TEST(offload__names)
{
	for (int o = 0; o < PMD_OFFLOAD_COUNT; o++)
		ck_assert_ptr_nonnull(pmd_offload_name((enum pmd_offload)o));
	ck_assert_ptr_null(pmd_offload_name(PMD_OFFLOAD_COUNT));
}
END_TEST

UNIT_MAIN("pmd_offload", offload__all_offered, offload__needless, offload__none_offered,
	  offload__turned_off, offload__names)
