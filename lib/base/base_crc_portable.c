/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRCs in plain C: slicing by eight. For CPUs without carry-less multiplication
 * and as the yardstick of the other implementations.
 */
#include <endian.h>
#include <string.h>

#include "base_crc_priv.h"

static inline uint32_t
word(const struct crc_tables *t, uint32_t state, uint64_t w)
{
	w = le64toh(w) ^ state;
	return t->slice[7][w & 0xFF] ^ t->slice[6][(w >> 8) & 0xFF] ^
		t->slice[5][(w >> 16) & 0xFF] ^ t->slice[4][(w >> 24) & 0xFF] ^
		t->slice[3][(w >> 32) & 0xFF] ^ t->slice[2][(w >> 40) & 0xFF] ^
		t->slice[1][(w >> 48) & 0xFF] ^ t->slice[0][w >> 56];
}

/* A null `dst` is a constant at each caller, so that the test goes away. */
static inline __attribute__((always_inline)) uint32_t
update(const struct crc_tables *t, uint32_t state, uint8_t *dst, const uint8_t *p, size_t n)
{
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t w;

		memcpy(&w, p, 8);
		__asm__("" : "+r"(w)); /* one load: the compiler must not read p again */
		if (dst != NULL) {
			memcpy(dst, &w, 8);
			dst += 8;
		}
		state = word(t, state, w);
	}
	if (dst != NULL) {
		memcpy(dst, p, n);
		p = dst;
	}
	return crc_bytes(t, state, p, n);
}

static uint32_t
portable_crc32(uint32_t state, const void *p, size_t n)
{
	return update(&crc32_tables, state, NULL, p, n);
}

static uint32_t
portable_crc32c(uint32_t state, const void *p, size_t n)
{
	return update(&crc32c_tables, state, NULL, p, n);
}

static uint32_t
portable_crc32_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	return update(&crc32_tables, state, dst, src, n);
}

static uint32_t
portable_crc32c_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	return update(&crc32c_tables, state, dst, src, n);
}

static const struct crc_impl portable = {
	.name = "portable",
	.crc32 = portable_crc32,
	.crc32_or = crc32_or_buffered,
	.crc32c = portable_crc32c,
	.crc32_copy = portable_crc32_copy,
	.crc32c_copy = portable_crc32c_copy,
};

const struct crc_impl *
crc_portable(void)
{
	return &portable;
}
