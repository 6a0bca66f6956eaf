/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRCs by carry-less multiplication of 512 bits (see base_crc_priv.h). Masked
 * loads make the first 64 bytes whole, so that no length has a tail.
 */
#include "base_crc_priv.h"

#ifdef __x86_64__
#include <immintrin.h>

#define TARGET                                                                             \
	__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,vpclmulqdq,pclmul,"  \
			      "sse4.2,bmi2")))
#define INLINE static inline __attribute__((always_inline)) TARGET

/* The compiler must not read memory again for a value that it has. */
#define LOADED_ONCE(v) __asm__("" : "+v"(v))

#define WIDE 64		       /* bytes */
#define ROWS (WIDE / 16)       /* a vector takes */
#define LANES 4		       /* vectors folded in step */
#define DIRECT (2 * LANES - 1) /* vectors that the rows reach */

/*
 * Where the next vector comes from and, unless it is null, goes to; `ones`, unless
 * it is null, is or-ed to the first 64 bytes, which lie in one vector or two.
 */
struct cursor {
	const uint8_t *src;
	uint8_t *dst;
	const uint8_t *ones;
};

static const _Alignas(WIDE) uint8_t positions[WIDE] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
	25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
	48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/*
 * 1 to 64 bytes at the end of a vector. A masked byte does not fault, but its cache line is
 * fetched all the same: the load begins no earlier than the first byte's line, and touches no
 * line without a byte of ours.
 */
INLINE __m512i
load_last(const uint8_t *src, size_t size, __mmask64 mask)
{
	uintptr_t at = (uintptr_t)src - (WIDE - size), line = (uintptr_t)src & -(uintptr_t)WIDE;
	size_t late = line > at ? line - at : 0;
	__m512i v = _mm512_maskz_loadu_epi8(mask >> late, (const void *)(at + late));
	__m512i from = _mm512_sub_epi8(_mm512_load_si512(positions), _mm512_set1_epi8((char)late));

	return _mm512_maskz_permutexvar_epi8(mask, from, v);
}

/* The first 1 to 64 bytes, with zeros in front of them. */
INLINE __m512i
first_vector(struct cursor *c, size_t size)
{
	size_t pad = WIDE - size;
	__mmask64 mask = ~UINT64_C(0) << pad;
	__m512i v = load_last(c->src, size, mask);

	c->src += size;
	if (c->dst != NULL) {
		LOADED_ONCE(v);
		_mm512_mask_storeu_epi8((void *)((uintptr_t)c->dst - pad), mask, v);
		c->dst += size;
	}
	if (c->ones != NULL)
		v = _mm512_or_si512(v, _mm512_maskz_loadu_epi8(mask,
			(const void *)((uintptr_t)c->ones - pad)));
	return v;
}

INLINE __m512i
next_vector(struct cursor *c)
{
	__m512i v = _mm512_loadu_si512(c->src);

	c->src += WIDE;
	if (c->dst != NULL) {
		LOADED_ONCE(v);
		_mm512_storeu_si512(c->dst, v);
		c->dst += WIDE;
	}
	return v;
}

/* The vector behind a first one of `size` bytes, with what is left of ones and state. */
INLINE __m512i
second_vector(struct cursor *c, size_t size, __m512i spill)
{
	__m512i v = next_vector(c);

	if (c->ones != NULL) {
		__mmask64 mask = (UINT64_C(1) << (WIDE - size)) - 1;

		v = _mm512_or_si512(v, _mm512_maskz_loadu_epi8(mask, c->ones + size));
	}
	return _mm512_xor_si512(v, spill);
}

/* sum + v * k */
INLINE __m512i
add_times(__m512i sum, __m512i v, __m512i k)
{
	__m512i low = _mm512_clmulepi64_epi128(v, k, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(v, k, 0x11);

	return _mm512_ternarylogic_epi64(sum, low, high, 0x96);
}

INLINE __m512i
rows(const struct crc_tables *t, size_t vectors)
{
	return _mm512_load_si512(crc_rows(t, ROWS * vectors));
}

/* 512 bits to 128, then as base_crc_pclmul.c does it; CRC-32C has an instruction. */
INLINE uint32_t
reduce(const struct crc_tables *t, __m512i wide, bool castagnoli)
{
	__m256i half = _mm256_xor_si256(
		_mm512_castsi512_si256(wide), _mm512_extracti64x4_epi64(wide, 1));
	__m128i q,
		v = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));

	if (castagnoli) {
		uint64_t low = (uint64_t)_mm_cvtsi128_si64(v);
		uint64_t high = (uint64_t)_mm_extract_epi64(v, 1);

		return (uint32_t)_mm_crc32_u64(_mm_crc32_u64(0, low), high);
	}
	q = _mm_clmulepi64_si128(v, _mm_loadl_epi64((const __m128i *)&t->x96), 0x00);
	v = _mm_xor_si128(_mm_srli_si128(v, 8), q);
	q = _mm_clmulepi64_si128(v, _mm_loadl_epi64((const __m128i *)&t->quotient), 0x00);
	q = _mm_clmulepi64_si128(q, _mm_loadl_epi64((const __m128i *)&t->poly), 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(v, q), 2);
}

/* More than DIRECT vectors: the first two and those that follow, all but fewer than LANES. */
INLINE __m512i
fold_lanes(const struct crc_tables *t, struct cursor *c, __m512i v, __m512i second,
	size_t *vectors)
{
	const __m512i k = _mm512_broadcast_i32x4(
		_mm_load_si128((const __m128i *)crc_rows(t, LANES * ROWS + 1)));
	__m512i sum[LANES] = {v};
	size_t left = *vectors;

	sum[1] = second;
	sum[2] = next_vector(c);
	sum[3] = next_vector(c);
	for (left -= LANES; left >= LANES; left -= LANES)
		for (int i = 0; i < LANES; i++)
			sum[i] = add_times(next_vector(c), sum[i], k);
	v = _mm512_setzero_si512();
	for (size_t i = 0; i < LANES; i++)
		v = add_times(v, sum[i], rows(t, left + LANES - i));
	*vectors = left;
	return v;
}

/* At least 4 bytes. */
INLINE uint32_t
update(const struct crc_tables *t, uint32_t state, struct cursor c, size_t n, bool castagnoli)
{
	size_t vectors = (n + WIDE - 1) / WIDE, first = n - (vectors - 1) * WIDE;
	size_t pad = WIDE - first;
	/* The state goes over the message's first four bytes, in one vector or two. */
	unsigned int turn = 8 * (pad & 3);
	uint32_t turned = state << turn | (uint32_t)((uint64_t)state >> (32 - turn));
	__m512i s = _mm512_set1_epi32((int)turned);
	__m512i v = first_vector(&c, first), sum;

	v = _mm512_xor_si512(v, _mm512_maskz_mov_epi8(UINT64_C(0xF) << pad, s));
	if (vectors == 1) {
		sum = add_times(_mm512_setzero_si512(), v, rows(t, 1));
		return reduce(t, sum, castagnoli);
	}
	s = _mm512_maskz_mov_epi8(UINT64_C(0xF) >> (first - 1) >> 1, s);
	s = second_vector(&c, first, s);
	if (vectors > DIRECT) {
		sum = fold_lanes(t, &c, v, s, &vectors);
	} else {
		sum = add_times(_mm512_setzero_si512(), v, rows(t, vectors));
		sum = add_times(sum, s, rows(t, vectors - 1));
		vectors -= 2;
	}
	for (; vectors > 0; vectors--)
		sum = add_times(sum, next_vector(&c), rows(t, vectors));
	return reduce(t, sum, castagnoli);
}

TARGET static uint32_t
vpclmul_crc32(uint32_t state, const void *p, size_t n)
{
	if (n < 4)
		return crc_bytes(&crc32_tables, state, p, n);
	return update(&crc32_tables, state, (struct cursor){p, NULL, NULL}, n, false);
}

TARGET static uint32_t
vpclmul_crc32_or(uint32_t state, const void *p, size_t n, const uint8_t *ones)
{
	if (n < 4)
		return crc32_or_buffered(state, p, n, ones);
	return update(&crc32_tables, state, (struct cursor){p, NULL, ones}, n, false);
}

TARGET static uint32_t
vpclmul_crc32_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	if (n < 4) {
		const uint8_t *p = src;
		uint8_t *d = dst;

		for (size_t i = 0; i < n; i++)
			d[i] = p[i];
		__asm__ volatile("" ::: "memory"); /* the CRC is that of the copy */
		return crc_bytes(&crc32_tables, state, dst, n);
	}
	return update(&crc32_tables, state, (struct cursor){src, dst, NULL}, n, false);
}

/* Up to here the chain of the CRC-32C instruction is the shorter one. */
#define SERIAL_MAX 96

TARGET static uint32_t
vpclmul_crc32c(uint32_t state, const void *p, size_t n)
{
	if (n <= SERIAL_MAX)
		return crc32c_sse42(state, p, n);
	return update(&crc32c_tables, state, (struct cursor){p, NULL, NULL}, n, true);
}

TARGET static uint32_t
vpclmul_crc32c_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	if (n <= SERIAL_MAX)
		return crc32c_sse42_copy(state, dst, src, n);
	return update(&crc32c_tables, state, (struct cursor){src, dst, NULL}, n, true);
}

static const struct crc_impl vpclmul = {
	.name = "vpclmul",
	.crc32 = vpclmul_crc32,
	.crc32_or = vpclmul_crc32_or,
	.crc32c = vpclmul_crc32c,
	.crc32_copy = vpclmul_crc32_copy,
	.crc32c_copy = vpclmul_crc32c_copy,
};

const struct crc_impl *
crc_vpclmul(void)
{
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
		!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512vbmi") ||
		!__builtin_cpu_supports("vpclmulqdq") || !__builtin_cpu_supports("bmi2") ||
		crc_pclmul() == NULL)
		return NULL;
	return &vpclmul;
}

#else

const struct crc_impl *
crc_vpclmul(void)
{
	return NULL;
}

#endif
