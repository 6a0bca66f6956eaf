/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The placement copy beside rte_memcpy and memcpy: in cache, and over 64 MiB a
 * side as row 2 of the budgets cycles through.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_memcpy.h>

#include "base_copy.h"
#include "bench_util.h"

#define BIG (64u << 20)

static size_t at;

/* How far from its page's start the source begins: far from the target's, since the CPU
 * takes a load for dependent on a store with the same low 12 bits. */
#define SKEW 2050

/* The next place in the working set, at this offset in a 64-byte line. */
static size_t
next(size_t set, size_t n)
{
	at += (n + 127) & ~(size_t)63;
	if (at + n + 128 > set)
		at = 0;
	return at;
}

static void
measure(uint8_t *dst, uint8_t *src, size_t set, size_t to, size_t n)
{
	double place, rte, libc;
	size_t i;

	BENCH(place, (i = next(set, n), copy_place(dst + i + to, src + i + SKEW, n)));
	BENCH(rte, (i = next(set, n), rte_memcpy(dst + i + to, src + i + SKEW, n)));
	BENCH(libc, (i = next(set, n), memcpy(dst + i + to, src + i + SKEW, n)));
	printf("%6zu B to %2zu, set %6zu KiB: copy_place %7.1f ns %6.2f GB/s"
	       "  rte_memcpy %7.1f ns  memcpy %7.1f ns\n",
		n, to, set >> 10, place, (double)n / place, rte, libc);
}

int
main(void)
{
	static const size_t sizes[] = {8, 64, 128, 256, 1024, 4096, 9000};
	static const size_t offsets[] = {0, 8, 16, 3};
	uint8_t *dst = aligned_alloc(4096, BIG + 4096), *src = aligned_alloc(4096, BIG + 4096);

	if (dst == NULL || src == NULL)
		return EXIT_FAILURE;
	memset(dst, 1, BIG + 4096);
	memset(src, 2, BIG + 4096);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++)
			measure(dst, src, 8 << 10, offsets[k], sizes[i]);
	measure(dst, src, BIG, 0, 4096);
	measure(dst, src, BIG, 8, 4096);
	free(dst);
	free(src);
	return EXIT_SUCCESS;
}
