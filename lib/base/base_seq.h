/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequence arithmetic: 24-bit packet sequence numbers (IBTA 9.7.2) and 32-bit
 * TCP sequence numbers (RFC 9293 3.4). Nothing else in the tree compares them.
 */
#ifndef BASE_SEQ_H
#define BASE_SEQ_H

#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK UINT32_C(0xFFFFFF)

static inline uint32_t
psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

static inline uint32_t
psn_sub(uint32_t psn, uint32_t n)
{
	return (psn - n) & PSN_MASK;
}

/** Signed distance a - b, -2^23 .. 2^23 - 1. Bits above 23 are ignored. */
static inline int32_t
psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline bool
psn_before(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) < 0;
}

static inline bool
psn_after(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) > 0;
}

/** Signed distance a - b, -2^31 .. 2^31 - 1. */
static inline int32_t
seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static inline bool
seq_lt(uint32_t a, uint32_t b)
{
	return seq_diff(a, b) < 0;
}

static inline bool
seq_le(uint32_t a, uint32_t b)
{
	return seq_diff(a, b) <= 0;
}

static inline bool
seq_gt(uint32_t a, uint32_t b)
{
	return seq_diff(a, b) > 0;
}

static inline bool
seq_ge(uint32_t a, uint32_t b)
{
	return seq_diff(a, b) >= 0;
}

#endif /* BASE_SEQ_H */
