/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 by carry-less multiplication of 128 bits (see base_crc_priv.h), CRC-32C
 * by the instruction that SSE4.2 has for it. For x86 without AVX-512.
 */
#include "base_crc_priv.h"

#ifdef __x86_64__
#include <string.h>

#include <immintrin.h>

#define TARGET __attribute__((target("sse4.2,pclmul")))
#define INLINE static inline __attribute__((always_inline)) TARGET

/* The compiler must not read memory again for a value that it has. */
#define LOADED_ONCE(v) __asm__("" : "+x"(v))

/* Blocks folded in step. Five cycles of latency, two products a block. */
#define LANES 4

/* Loads at 16 - n shift left by n bytes, at 16 + n right. */
static const uint8_t shifts[48] = {128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
	128, 128, 128, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 128, 128, 128, 128,
	128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128};

/* Where the next block comes from and, unless it is null, goes to. */
struct cursor {
	const uint8_t *src;
	uint8_t *dst;
};

INLINE __m128i
next_block(struct cursor *c, size_t step)
{
	__m128i v = _mm_loadu_si128((const __m128i *)c->src);

	c->src += step;
	if (c->dst != NULL) {
		LOADED_ONCE(v);
		_mm_storeu_si128((__m128i *)c->dst, v);
		c->dst += step;
	}
	return v;
}

INLINE __m128i
shift(__m128i v, int by)
{
	return _mm_shuffle_epi8(v, _mm_loadu_si128((const __m128i *)(shifts + 16 - by)));
}

INLINE __m128i
times(__m128i v, const struct crc_row *row)
{
	__m128i k = _mm_load_si128((const __m128i *)row);

	return _mm_xor_si128(_mm_clmulepi64_si128(v, k, 0x00), _mm_clmulepi64_si128(v, k, 0x11));
}

/*
 * 128 bits to 32: fold the low half into 96 bits, times x^32; then Barrett, whose
 * quotient of 64 bits is exact.
 */
INLINE uint32_t
reduce(const struct crc_tables *t, __m128i v)
{
	__m128i q;

	v = _mm_xor_si128(_mm_clmulepi64_si128(v, _mm_cvtsi64_si128((int64_t)t->x96), 0x00),
		_mm_srli_si128(v, 8));
	q = _mm_clmulepi64_si128(v, _mm_cvtsi64_si128((int64_t)t->quotient), 0x00);
	q = _mm_clmulepi64_si128(q, _mm_cvtsi64_si128((int64_t)t->poly), 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(v, q), 2);
}

/* 4 to 15 bytes: right-aligned in a block, the state over the first four. */
INLINE uint32_t
update_short(const struct crc_tables *t, uint32_t state, const uint8_t *p, size_t n)
{
	uint64_t low = 0, high;

	if (n >= 8) {
		memcpy(&low, p, 8);
		memcpy(&high, p + n - 8, 8);
		low = (low ^ state) << (8 * (15 - n)) << 8;
		high ^= (uint64_t)state >> (8 * (n - 8));
	} else {
		uint32_t first, last;

		memcpy(&first, p, 4);
		memcpy(&last, p + n - 4, 4);
		high = (uint64_t)last << 32 | (uint64_t)first << (8 * (8 - n));
		high ^= (uint64_t)state << (8 * (8 - n));
	}
	return reduce(t, _mm_set_epi64x((int64_t)high, (int64_t)low));
}

/* At least eight blocks; leaves fewer than LANES of them. */
INLINE __m128i
fold_lanes(
	const struct crc_tables *t, struct cursor *c, __m128i first, __m128i spill, size_t *blocks)
{
	__m128i sum[LANES] = {first};
	size_t left = *blocks;

	sum[1] = _mm_xor_si128(next_block(c, 16), spill);
	sum[2] = next_block(c, 16);
	sum[3] = next_block(c, 16);
	for (left -= LANES; left >= LANES; left -= LANES) {
		for (int i = 0; i < LANES; i++) {
			__m128i next = next_block(c, 16);

			sum[i] = _mm_xor_si128(next, times(sum[i], crc_rows(t, LANES + 1)));
		}
	}
	for (size_t i = 0; i < LANES; i++)
		sum[i] = times(sum[i], crc_rows(t, left + LANES - i));
	*blocks = left;
	return _mm_xor_si128(_mm_xor_si128(sum[0], sum[1]), _mm_xor_si128(sum[2], sum[3]));
}

/*
 * At least 16 bytes. The first block's tail is also the second one's: these bytes
 * count as the second load has them, in the copy too.
 */
INLINE uint32_t
update_blocks(const struct crc_tables *t, uint32_t state, struct cursor c, size_t n)
{
	size_t blocks = (n + 15) / 16, first = n - (blocks - 1) * 16;
	__m128i s = _mm_cvtsi32_si128((int)state);
	__m128i spill = shift(s, -(int)first); /* where the first block has under 4 bytes */
	__m128i sum = shift(_mm_xor_si128(next_block(&c, first), s), 16 - (int)first);

	if (blocks >= 2 * LANES) {
		sum = fold_lanes(t, &c, sum, spill, &blocks);
	} else {
		sum = times(sum, crc_rows(t, blocks));
		if (--blocks > 0) {
			__m128i next = _mm_xor_si128(next_block(&c, 16), spill);

			sum = _mm_xor_si128(sum, times(next, crc_rows(t, blocks)));
			blocks--;
		}
	}
	for (; blocks > 0; blocks--)
		sum = _mm_xor_si128(sum, times(next_block(&c, 16), crc_rows(t, blocks)));
	return reduce(t, sum);
}

TARGET static uint32_t
pclmul_crc32(uint32_t state, const void *p, size_t n)
{
	if (n >= 16)
		return update_blocks(&crc32_tables, state, (struct cursor){p, NULL}, n);
	if (n >= 4)
		return update_short(&crc32_tables, state, p, n);
	return crc_bytes(&crc32_tables, state, p, n);
}

TARGET static uint32_t
pclmul_crc32_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	if (n >= 16)
		return update_blocks(&crc32_tables, state, (struct cursor){src, dst}, n);
	memcpy(dst, src, n);
	__asm__ volatile("" ::: "memory"); /* the CRC is that of the copy */
	return pclmul_crc32(state, dst, n);
}

INLINE uint64_t
next_word(struct cursor *c)
{
	uint64_t w;

	memcpy(&w, c->src, 8);
	c->src += 8;
	if (c->dst != NULL) {
		__asm__("" : "+r"(w));
		memcpy(c->dst, &w, 8);
		c->dst += 8;
	}
	return w;
}

/*
 * Three stretches of `words` words side by side, which hides the instruction's
 * latency of three cycles; then the first two are moved up over the rest.
 */
INLINE uint32_t
crc32c_three(uint32_t state, struct cursor *c, size_t words, const struct crc_row *k)
{
	struct cursor c1 = {c->src + 8 * words, c->dst == NULL ? NULL : c->dst + 8 * words};
	struct cursor c2 = {c->src + 16 * words, c->dst == NULL ? NULL : c->dst + 16 * words};
	uint64_t s0 = state, s1 = 0, s2 = 0;
	__m128i up, row = _mm_load_si128((const __m128i *)k);

	for (size_t i = 0; i < words; i++) {
		s0 = _mm_crc32_u64(s0, next_word(c));
		s1 = _mm_crc32_u64(s1, next_word(&c1));
		s2 = _mm_crc32_u64(s2, next_word(&c2));
	}
	*c = c2;
	up = _mm_xor_si128(_mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)s0), row, 0x00),
		_mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)s1), row, 0x10));
	return (uint32_t)(_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(up)) ^ s2);
}

enum {
	LONG_WORDS = 64,
	SHORT_WORDS = 8,
};
/* x^(bits - 33) modulo the polynomial, for two stretches in `low` and one in `high`. */
static struct crc_row long_up, short_up;

INLINE uint32_t
crc32c_words(uint32_t state, struct cursor c, size_t n)
{
	uint64_t s;

	for (; n >= 24 * LONG_WORDS; n -= 24 * LONG_WORDS)
		state = crc32c_three(state, &c, LONG_WORDS, &long_up);
	for (; n >= 24 * SHORT_WORDS; n -= 24 * SHORT_WORDS)
		state = crc32c_three(state, &c, SHORT_WORDS, &short_up);
	s = state;
	for (; n >= 8; n -= 8)
		s = _mm_crc32_u64(s, next_word(&c));
	if (c.dst != NULL) {
		memcpy(c.dst, c.src, n);
		__asm__ volatile("" ::: "memory");
		c.src = c.dst;
	}
	for (; n > 0; n--)
		s = _mm_crc32_u8((uint32_t)s, *c.src++);
	return (uint32_t)s;
}

TARGET uint32_t
crc32c_sse42(uint32_t state, const void *p, size_t n)
{
	return crc32c_words(state, (struct cursor){p, NULL}, n);
}

TARGET uint32_t
crc32c_sse42_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	return crc32c_words(state, (struct cursor){src, dst}, n);
}

static const struct crc_impl pclmul = {
	.name = "pclmul",
	.crc32 = pclmul_crc32,
	.crc32_or = crc32_or_buffered,
	.crc32c = crc32c_sse42,
	.crc32_copy = pclmul_crc32_copy,
	.crc32c_copy = crc32c_sse42_copy,
};

static void
up_init(struct crc_row *up, unsigned int words)
{
	up->low = crc_power(CRC32C_POLY, 128 * words - 33);
	up->high = crc_power(CRC32C_POLY, 64 * words - 33);
}

const struct crc_impl *
crc_pclmul(void)
{
	if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.2"))
		return NULL;
	up_init(&long_up, LONG_WORDS);
	up_init(&short_up, SHORT_WORDS);
	return &pclmul;
}

#else

const struct crc_impl *
crc_pclmul(void)
{
	return NULL;
}

#endif
