/* SPDX-License-Identifier: BSD-3-Clause */
/* The generator against its authors' reference output. */
#include "base_rng.h"
#include "unit.h"

/* xoshiro256** from the state 1, 2, 3, 4, as its authors' C code (prng.di.unimi.it) prints. */
START_TEST(rng__reference)
{
	static const uint64_t expected[] = {
		UINT64_C(11520),
		UINT64_C(0),
		UINT64_C(1509978240),
		UINT64_C(1215971899390074240),
	};
	struct rng r = {{1, 2, 3, 4}};

	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(rng_u64(&r), expected[i]);
}
END_TEST

/* splitmix64 from 0 begins so in its reference implementation. */
START_TEST(rng__seed)
{
	struct rng r;

	rng_seed(&r, 0);
	ck_assert_uint_eq(r.s[0], UINT64_C(0xE220A8397B1DCDAF));
	ck_assert_uint_eq(r.s[1], UINT64_C(0x6E789E6AA1B965F4));
}
END_TEST

START_TEST(rng__below)
{
	unsigned int seen[7] = {0};
	struct rng r;

	rng_seed(&r, 42);
	for (int i = 0; i < 70000; i++) {
		uint32_t v = rng_below(&r, 7);

		ck_assert_uint_lt(v, 7);
		seen[v]++;
	}
	for (int i = 0; i < 7; i++)
		ck_assert(seen[i] > 9500 && seen[i] < 10500);
	ck_assert_uint_eq(rng_below(&r, 0), 0);
	ck_assert_uint_eq(rng_below(&r, 1), 0);
}
END_TEST

UNIT_MAIN("base_rng", rng__reference, rng__seed, rng__below)
