/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement copy, see base_copy.h for what an application may rely on.
 *
 * Up to the last 64 bytes order does not matter, so the widest stores do; they lie
 * on multiples of 16 and thus never split a word. The last 64 bytes are written
 * in pieces of 16 bytes and less, each aligned to its size: every one becomes
 * visible as a whole and after those before it. A wider store may cross a cache
 * line, and then its end can be seen before its beginning.
 */
#include <stdint.h>
#include <string.h>

#include "base_copy.h"

#define LAST 64

#define INLINE static inline __attribute__((always_inline))

struct cursor {
	uint8_t *dst;
	const uint8_t *src;
	size_t left;
};

/*
 * One store of a power of two of bytes, to its own alignment, visible after all
 * before it. (A release store is an ordinary one on x86.)
 */
#define PUT(c, type) \
	do { \
		type v_; \
		memcpy(&v_, (c)->src, sizeof(v_)); \
		__atomic_store_n((type *)(void *)(c)->dst, v_, __ATOMIC_RELEASE); \
		(c)->dst += sizeof(v_); \
		(c)->src += sizeof(v_); \
		(c)->left -= sizeof(v_); \
	} while (0)

/* Bytes up to the next aligned word, or as many as there are. */
INLINE void
put_head(struct cursor *c)
{
	if (((uintptr_t)c->dst & 1) && c->left >= 1)
		PUT(c, uint8_t);
	if (((uintptr_t)c->dst & 2) && c->left >= 2)
		PUT(c, uint16_t);
	if (((uintptr_t)c->dst & 4) && c->left >= 4)
		PUT(c, uint32_t);
}

/* What is left once no whole word is. */
INLINE void
put_tail(struct cursor *c)
{
	if (c->left & 4)
		PUT(c, uint32_t);
	if (c->left & 2)
		PUT(c, uint16_t);
	if (c->left & 1)
		PUT(c, uint8_t);
}

#ifdef __x86_64__
#include <immintrin.h>

/* To a multiple of 16: atomic on CPUs with AVX (Intel SDM 3A, guaranteed atomic operations). */
INLINE void
put_16(struct cursor *c)
{
	_mm_store_si128((__m128i *)(void *)c->dst, _mm_loadu_si128((const __m128i *)c->src));
	__asm__ volatile("" ::: "memory"); /* in this order */
	c->dst += 16;
	c->src += 16;
	c->left -= 16;
}

typedef size_t (*bulk_fn)(uint8_t *dst, const uint8_t *src, size_t n);

/* Multiples of 64 bytes; `dst` is a multiple of 16, and of 64 where that pays. */
__attribute__((target("avx512f"))) static size_t
bulk_avx512(uint8_t *dst, const uint8_t *src, size_t n)
{
	size_t i = 0;

	for (; i + 64 <= n; i += 64)
		_mm512_storeu_si512(dst + i, _mm512_loadu_si512(src + i));
	return i;
}

__attribute__((target("avx2"))) static size_t
bulk_avx2(uint8_t *dst, const uint8_t *src, size_t n)
{
	size_t i = 0;

	for (; i + 64 <= n; i += 64) {
		__m256i a = _mm256_loadu_si256((const __m256i *)(src + i));
		__m256i b = _mm256_loadu_si256((const __m256i *)(src + i + 32));

		_mm256_storeu_si256((__m256i *)(dst + i), a);
		_mm256_storeu_si256((__m256i *)(dst + i + 32), b);
	}
	return i;
}

static size_t
bulk_sse2(uint8_t *dst, const uint8_t *src, size_t n)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		_mm_store_si128((__m128i *)(dst + i), _mm_loadu_si128((const __m128i *)(src + i)));
	return i;
}

static bulk_fn bulk = bulk_sse2;

__attribute__((constructor)) static void
bulk_init(void)
{
	if (__builtin_cpu_supports("avx512f"))
		bulk = bulk_avx512;
	else if (__builtin_cpu_supports("avx2"))
		bulk = bulk_avx2;
}

/* All but the last 64 bytes. */
static void
put_bulk(struct cursor *c)
{
	size_t done = bulk(c->dst, c->src, c->left - LAST);

	__asm__ volatile("" ::: "memory");
	c->dst += done;
	c->src += done;
	c->left -= done;
}

INLINE void
put_words(struct cursor *c)
{
	if (((uintptr_t)c->dst & 8) && c->left >= 8)
		PUT(c, uint64_t);
	if (c->left >= 4 * LAST) {
		while ((uintptr_t)c->dst & 63)
			put_16(c);
	}
	if (c->left >= 2 * LAST)
		put_bulk(c);
	while (c->left >= 16)
		put_16(c);
	if (c->left >= 8)
		PUT(c, uint64_t);
}

#else

INLINE void
put_words(struct cursor *c)
{
	size_t i, bulk = c->left > LAST ? (c->left - LAST) & ~(size_t)7 : 0;

	for (i = 0; i < bulk; i += 8) {
		uint64_t word;

		memcpy(&word, c->src + i, 8);
		__atomic_store_n((uint64_t *)(void *)(c->dst + i), word, __ATOMIC_RELAXED);
	}
	c->dst += bulk;
	c->src += bulk;
	c->left -= bulk;
	while (c->left >= 8)
		PUT(c, uint64_t);
}

#endif

void
copy_place(void *dst, const void *src, size_t n)
{
	struct cursor c = {dst, src, n};

	if ((uintptr_t)dst & 7)
		put_head(&c);
	if (c.left >= 8)
		put_words(&c);
	if (c.left != 0)
		put_tail(&c);
}
