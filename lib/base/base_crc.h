/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 (Ethernet, IBTA ICRC; reflected 0xEDB88320) and CRC-32C (MPA, RFC 5044;
 * reflected 0x82F63B78), the fastest way that the CPU knows.
 *
 * All functions take and give the bare register: no inversion before or after.
 * Start with CRC_INIT, chain pieces as you like, complement at the end; the wire
 * carries the complement with its low byte first.
 */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRC_INIT UINT32_C(0xFFFFFFFF)

/* Register of CRC-32 after eight bytes 0xFF: the ICRC's dummy LRH (IBTA A17). */
#define CRC_ICRC_INIT UINT32_C(0xDEBB20E3)

/** One implementation; the functions agree on every input. */
struct crc_impl {
	const char *name;
	uint32_t (*crc32)(uint32_t state, const void *p, size_t n);
	uint32_t (*crc32_or)(uint32_t state, const void *p, size_t n, const uint8_t *ones);
	uint32_t (*crc32c)(uint32_t state, const void *p, size_t n);
	uint32_t (*crc32_copy)(uint32_t state, void *dst, const void *src, size_t n);
	uint32_t (*crc32c_copy)(uint32_t state, void *dst, const void *src, size_t n);
};

/* Set before main() runs, changed by crc_select() alone. */
extern struct crc_impl crc_impl_now;

/** Pick the best implementation; runs before main() too, later calls do nothing. */
void crc_init(void);

const char *crc_impl_name(void);

/**
 * Use the implementation of this name ("portable", "pclmul", "vpclmul"), for
 * tests and benches: not while another thread computes. False when it is unknown
 * or the CPU lacks it.
 */
bool crc_select(const char *name);

static inline uint32_t
crc32_update(uint32_t state, const void *p, size_t n)
{
	return crc_impl_now.crc32(state, p, n);
}

#define CRC_OR_LEN 64

/**
 * CRC-32 of `p` as if its first bytes had been or-ed with the CRC_OR_LEN bytes at
 * `ones`: fields that a CRC takes as ones need not be masked in a copy first,
 * whose reload would wait for its stores.
 */
static inline uint32_t
crc32_or(uint32_t state, const void *p, size_t n, const uint8_t *ones)
{
	return crc_impl_now.crc32_or(state, p, n, ones);
}

static inline uint32_t
crc32c_update(uint32_t state, const void *p, size_t n)
{
	return crc_impl_now.crc32c(state, p, n);
}

/**
 * Copy and CRC at once. What lands in `dst` is what was summed, even while
 * somebody else writes `src`; `dst` is private to the caller and does not overlap.
 */
static inline uint32_t
crc32_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	return crc_impl_now.crc32_copy(state, dst, src, n);
}

static inline uint32_t
crc32c_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	return crc_impl_now.crc32c_copy(state, dst, src, n);
}

#endif /* BASE_CRC_H */
