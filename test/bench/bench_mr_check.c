/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an access check costs: one key over and over, and keys at random from a full table, with
 * and without a prefetch ahead. Not a test: prints nanoseconds, judges nothing.
 * usage: bench_mr_check [keys]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base_rng.h"
#include "bench_util.h"
#include "mr_table.h"

enum { CHECKS = 1 << 22, AHEAD = 16, RUNS = 7 };

static uint8_t bytes[4096];

static uint32_t
add_region(struct mr_table *t)
{
	const struct mr_seg seg = {.length = sizeof(bytes), .kind = MR_SEG_DIRECT, .ptr = bytes};
	const struct mr_desc d = {.type = MR_TYPE_REGION,
		.pd = 1,
		.access = MR_LOCAL_WRITE | MR_REMOTE_WRITE,
		.iova = 0x10000,
		.length = sizeof(bytes),
		.segs = &seg,
		.num_segs = 1};
	uint32_t key;

	if (mr_register(t, &d, &key) != 0) {
		fprintf(stderr, "table full\n");
		exit(EXIT_FAILURE);
	}
	return key;
}

/* The best of some runs over an order of keys; `ahead` of 0 is no prefetch. */
static double
measure(struct mr_table *t, const uint32_t *order, size_t mask, size_t ahead)
{
	double best = 1e30;
	uint64_t sum = 0;

	for (int run = 0; run < RUNS; run++) {
		double start = bench_now(), took;

		for (size_t i = 0; i < CHECKS; i++) {
			struct mr_ref ref = {0};

			if (ahead > 0)
				mr_prefetch(t, order[(i + ahead) & mask]);
			if (mr_check(t, order[i & mask], 1, 0, 0x10000 + (i & 2047), 64,
				    MR_REMOTE_WRITE, &ref) != MR_OK)
				exit(EXIT_FAILURE);
			sum += (uintptr_t)ref.ptr;
		}
		took = bench_now() - start;
		best = took < best ? took : best;
	}
	if (sum == 1)
		printf("\n"); /* the sum is used */
	return best / CHECKS;
}

int
main(int argc, char **argv)
{
	size_t keys = argc > 1 ? strtoul(argv[1], NULL, 0) : 1 << 16;
	uint32_t *all = calloc(keys + 1, sizeof(*all));
	uint32_t *order = calloc(CHECKS, sizeof(*order));
	struct mr_table *t = mr_table_create((uint32_t)keys);
	struct rng rng;

	if (keys == 0 || keys > 1 << 23 || all == NULL || order == NULL || t == NULL)
		return EXIT_FAILURE;
	for (size_t i = 0; i < keys; i++)
		all[i] = add_region(t);
	rng_seed(&rng, 1);
	for (size_t i = 0; i < CHECKS; i++)
		order[i] = all[rng_below(&rng, (uint32_t)keys)];
	printf("one key:                    %6.2f ns\n", measure(t, order, 0, 0));
	printf("%8zu keys, random:      %6.2f ns\n", keys, measure(t, order, CHECKS - 1, 0));
	printf("  prefetched %2d ahead:      %6.2f ns\n", AHEAD,
		measure(t, order, CHECKS - 1, AHEAD));
	mr_table_free(t);
	free(order);
	free(all);
	return EXIT_SUCCESS;
}
