/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates of the CRC implementations beside DPDK's, in cache. "chained" gives each
 * call the result of the one before, as latency; "apart" lets calls overlap.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_net_crc.h>
#include <rte_vect.h>

#include "base_crc.h"
#include "bench_util.h"

static uint8_t src[65536 + 64] __attribute__((aligned(64)));
static uint8_t dst[65536 + 64] __attribute__((aligned(64)));

static void
line(const char *impl, const char *what, size_t n, double chained, double apart)
{
	printf("%-9s %-12s %6zu B  chained %8.1f ns %7.2f GB/s  apart %8.1f ns %7.2f GB/s\n", impl,
		what, n, chained, (double)n / chained, apart, (double)n / apart);
}

static void
measure(const char *impl, size_t n)
{
	volatile uint32_t sink;
	uint32_t s = 1;
	double chained, apart;

	BENCH(chained, s = crc32_update(s, src + 2, n));
	BENCH(apart, sink = crc32_update(1, src + 2, n));
	line(impl, "crc32", n, chained, apart);
	BENCH(chained, s = crc32_copy(s, dst + 2, src + 16, n));
	BENCH(apart, sink = crc32_copy(1, dst + 2, src + 16, n));
	line(impl, "crc32_copy", n, chained, apart);
	BENCH(chained, s = crc32c_update(s, src + 2, n));
	BENCH(apart, sink = crc32c_update(1, src + 2, n));
	line(impl, "crc32c", n, chained, apart);
	BENCH(chained, s = crc32c_copy(s, dst + 2, src + 16, n));
	BENCH(apart, sink = crc32c_copy(1, dst + 2, src + 16, n));
	line(impl, "crc32c_copy", n, chained, apart);
	sink = s;
	(void)sink;
}

static void
measure_dpdk(size_t n)
{
	volatile uint32_t sink;
	uint32_t s = 1;
	double chained, apart;

	BENCH(chained, s = rte_net_crc_calc(src + 2 + (s & 1), (uint32_t)n, RTE_NET_CRC32_ETH));
	BENCH(apart, sink = rte_net_crc_calc(src + 2, (uint32_t)n, RTE_NET_CRC32_ETH));
	line("dpdk", "crc32", n, chained, apart);
	sink = s;
	(void)sink;
}

int
main(int argc, char **argv)
{
	static const size_t sizes[] = {20, 64, 128, 200, 256, 1024, 4096, 9000, 65536};
	static const char *const impls[] = {"portable", "pclmul", "vpclmul"};
	const char *only = argc > 1 ? argv[1] : crc_impl_name();

	rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
	rte_net_crc_set_alg(RTE_NET_CRC_AVX512);
	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 7);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		for (size_t i = 0; i < sizeof(impls) / sizeof(impls[0]); i++) {
			if (only[0] != 'a' && strcmp(only, impls[i]) != 0)
				continue;
			if (crc_select(impls[i]))
				measure(impls[i], sizes[k]);
		}
		measure_dpdk(sizes[k]);
	}
	return EXIT_SUCCESS;
}
