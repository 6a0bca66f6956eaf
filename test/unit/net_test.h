/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of lib/net share: addresses of net_vectors.h, mbufs. */
#ifndef NET_TEST_H
#define NET_TEST_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "eal_start.h"
#include "net.h"
#include "net_vectors.h"
#include "unit.h"

static const struct rte_ether_addr test_us = { { 0x52, 0x54, 0, 0, 0, 2 } };
static const struct rte_ether_addr test_peer = { { 0x52, 0x54, 0, 0, 0, 3 } };
static const struct rte_ether_addr test_gw = { { 0x52, 0x54, 0, 0, 0, 0xfe } };

static inline struct net_ip
ip(const char *text)
{
	struct net_ip a;

	ck_assert_int_eq(net_ip_parse(text, &a), 0);
	return a;
}

/* An mbuf without a pool over exactly @len heap bytes: ASan sees each step too far. */
static inline void
frame_make(struct rte_mbuf *m, const void *data, size_t len, uint16_t headroom)
{
	memset(m, 0, sizeof(*m));
	m->buf_addr = malloc(headroom + len + (headroom + len == 0));
	m->buf_len = (uint16_t)(headroom + len);
	m->data_off = headroom;
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	m->nb_segs = 1;
	m->refcnt = 1;
	if (len != 0)
		memcpy(rte_pktmbuf_mtod(m, void *), data, len);
}

static inline void
frame_free(struct rte_mbuf *m)
{
	free(m->buf_addr);
}

static inline enum net_kind
frame_parse(struct rte_mbuf *m, struct net_pkt *p, const void *data, size_t len)
{
	frame_make(m, data, len, 0);
	return net_parse(m, p);
}

/* A pool, with EAL under it; one a test, since Check forks for each. */
static inline struct rte_mempool *
test_pool(void)
{
	char arg[][32] = { "test", "--no-huge", "-m", "64", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=error", "--file-prefix=rnic-unit" };
	char *argv[RTE_DIM(arg)];
	struct rte_mempool *mp;

	for (size_t i = 0; i < RTE_DIM(arg); i++)
		argv[i] = arg[i];
	ck_assert_int_ge(eal_start(RTE_DIM(argv), argv), 0);
	mp = rte_pktmbuf_pool_create("test", 63, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	ck_assert_ptr_nonnull(mp);
	return mp;
}

static inline struct rte_mbuf *
pool_frame(struct rte_mempool *mp, const void *data, uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(mp);

	ck_assert_ptr_nonnull(m);
	memcpy(rte_pktmbuf_append(m, len), data, len);
	return m;
}

#endif /* NET_TEST_H */
