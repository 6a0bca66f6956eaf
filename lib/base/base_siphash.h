/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SipHash-1-3 (Aumasson and Bernstein, 2012) for hash tables whose keys others choose: who does not
 * know the key cannot find more keys of one bucket than chance gives. Not a MAC.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stdint.h>

struct siphash {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t
siphash_rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

static inline void
siphash_round(struct siphash *s)
{
	s->v0 += s->v1;
	s->v1 = siphash_rotl(s->v1, 13) ^ s->v0;
	s->v0 = siphash_rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = siphash_rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = siphash_rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = siphash_rotl(s->v1, 17) ^ s->v2;
	s->v2 = siphash_rotl(s->v2, 32);
}

static inline void
siphash_word(struct siphash *s, uint64_t w)
{
	s->v3 ^= w;
	siphash_round(s);
	s->v0 ^= w;
}

/** Of @n whole words, each as a little-endian machine reads 8 bytes. */
static inline uint64_t
siphash_words(const uint64_t key[2], const uint64_t *w, unsigned int n)
{
	struct siphash s = {
		key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
		key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573),
	};

	for (unsigned int i = 0; i < n; i++)
		siphash_word(&s, w[i]);
	siphash_word(&s, (uint64_t)n << 59); /* the length in bytes, modulo 256, on top */
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		siphash_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#endif /* BASE_SIPHASH_H */
