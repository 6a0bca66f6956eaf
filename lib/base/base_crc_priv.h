/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the CRC implementations share; see base_crc.c for the choice among them.
 *
 * Folding, as the wide implementations do it. A register's low bit is its highest
 * power: bit i of w bits stands for x^(w-1-i), and a carry-less product of two
 * 64-bit registers is, as a 128-bit register, their product times x. The message
 * is cut into 128-bit blocks from its end; the first is filled up with zeros in
 * front, which leave a CRC alone. A block that is D bits from the end adds
 * block * x^D to the remainder, hence low half * x^(D+64) + high half * x^D, where
 * both powers may be taken modulo the polynomial. The sum over all blocks has 128
 * bits and the CRC of the message; crc_reduce() brings it down to 32.
 */
#ifndef BASE_CRC_PRIV_H
#define BASE_CRC_PRIV_H

#include "base_crc.h"

#define CRC32_POLY UINT32_C(0xEDB88320)
#define CRC32C_POLY UINT32_C(0x82F63B78)
#define CRC_ROWS 32

struct crc_row {
	uint64_t low, high; /* factors of a block's halves */
} __attribute__((aligned(16)));

struct crc_tables {
	/* Slicing: [k][b] is byte b followed by k zero bytes. */
	uint32_t slice[8][256];
	/* Folding: [i] holds the factors for blocks (CRC_ROWS - 1 - i) before the last. */
	struct crc_row row[CRC_ROWS] __attribute__((aligned(64)));
	/* Reduction: x^31 * (x^96 mod P), the quotient x^95 / P, and P * x^31. */
	uint64_t x96, quotient, poly;
};

/* Made by crc_tables_init(), constant after. */
extern struct crc_tables crc32_tables;
extern struct crc_tables crc32c_tables;

void crc_tables_init(void);

/* x^n modulo the polynomial, as the 32-bit register that a CRC is. */
uint32_t crc_power(uint32_t poly, unsigned int n);

/* NULL where the compiler's target or the CPU lacks the instructions. */
const struct crc_impl *crc_portable(void);
const struct crc_impl *crc_pclmul(void);
const struct crc_impl *crc_vpclmul(void);

/* CRC-32C of x86's instruction; where crc_pclmul() gives anything. */
uint32_t crc32c_sse42(uint32_t state, const void *p, size_t n);
uint32_t crc32c_sse42_copy(uint32_t state, void *dst, const void *src, size_t n);

/* crc32_or() by way of a buffer and the crc32() in use. */
uint32_t crc32_or_buffered(uint32_t state, const void *p, size_t n, const uint8_t *ones);

/* The row for `blocks` blocks, the last included: its first factors. */
static inline const struct crc_row *
crc_rows(const struct crc_tables *t, size_t blocks)
{
	return &t->row[CRC_ROWS - blocks];
}

/* Byte by byte: pieces too short for the wide ways. */
static inline uint32_t
crc_bytes(const struct crc_tables *t, uint32_t state, const uint8_t *p, size_t n)
{
	while (n-- != 0)
		state = t->slice[0][(state ^ *p++) & 0xFF] ^ (state >> 8);
	return state;
}

#endif /* BASE_CRC_PRIV_H */
