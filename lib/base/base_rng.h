/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small seeded generator (xoshiro256**, Blackman and Vigna) for engines that are
 * given their randomness, and for tests. Not for keys, QPNs, PSNs or ISNs: those
 * are drawn from arc4random.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

struct rng {
	uint64_t s[4];
};

/** Any seed will do; the state is filled by splitmix64, as the authors advise. */
static inline void
rng_seed(struct rng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = seed += UINT64_C(0x9E3779B97F4A7C15);

		z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
		z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
		r->s[i] = z ^ (z >> 31);
	}
}

static inline uint64_t
rng_rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static inline uint64_t
rng_u64(struct rng *r)
{
	uint64_t result = rng_rotl(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;

	r->s[2] ^= r->s[0];
	r->s[3] ^= r->s[1];
	r->s[1] ^= r->s[2];
	r->s[0] ^= r->s[3];
	r->s[2] ^= t;
	r->s[3] = rng_rotl(r->s[3], 45);
	return result;
}

static inline uint32_t
rng_u32(struct rng *r)
{
	return (uint32_t)(rng_u64(r) >> 32);
}

/** 0 .. n - 1, and 0 for n = 0; the bias is below n / 2^32. */
static inline uint32_t
rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)(((uint64_t)rng_u32(r) * n) >> 32);
}

#endif /* BASE_RNG_H */
