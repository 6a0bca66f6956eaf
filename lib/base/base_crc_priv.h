/* SPDX-License-Identifier: BSD-3-Clause */
/* What the CRC implementations share; see base_crc.c for the choice among them. */
#ifndef BASE_CRC_PRIV_H
#define BASE_CRC_PRIV_H

#include "base_crc.h"

/* Slicing tables: [k][b] is byte b followed by k zero bytes. */
struct crc_tables {
	uint32_t slice[8][256];
};
extern struct crc_tables crc32_tables;
extern struct crc_tables crc32c_tables;

void crc_portable_init(void);

/* NULL where the compiler's target or the CPU lacks the instructions. */
const struct crc_impl *crc_portable(void);
const struct crc_impl *crc_pclmul(void);
const struct crc_impl *crc_vpclmul(void);

/* Byte by byte: ends of pieces too short for the wide ways. */
static inline uint32_t
crc_bytes(const struct crc_tables *t, uint32_t state, const uint8_t *p, size_t n)
{
	while (n-- != 0)
		state = t->slice[0][(state ^ *p++) & 0xFF] ^ (state >> 8);
	return state;
}

#endif /* BASE_CRC_PRIV_H */
