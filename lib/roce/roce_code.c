/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of the codes in AETH syndromes, and the inverse of the timeout exponent. */
#include "roce_code.h"

#define CREDIT_CODE_MAX 0x1e

static const uint16_t credits[CREDIT_CODE_MAX + 1] = {
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

/* In steps of 10 us. Code 0 is the longest; 1 to 31 ascend. */
static const uint32_t rnr_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

uint32_t
roce_credit_decode(uint8_t code)
{
	code &= 31;
	return code <= CREDIT_CODE_MAX ? credits[code] : ROCE_CREDIT_UNLIMITED;
}

uint8_t
roce_credit_encode(uint32_t free_rwqes)
{
	unsigned int octave;

	if (free_rwqes >= 32768)
		return CREDIT_CODE_MAX;
	if (free_rwqes < 4)
		return free_rwqes;
	/* From 4 on two codes an octave: 2^n has code 2n, 1.5 * 2^n the next. */
	octave = 31 - __builtin_clz(free_rwqes);
	return 2 * octave + (free_rwqes >> (octave - 1) & 1);
}

uint64_t
roce_rnr_ns(uint8_t code)
{
	return rnr_10us[code & 31] * UINT64_C(10000);
}

uint8_t
roce_rnr_code(uint64_t ns)
{
	unsigned int code;

	for (code = 1; code < 32; code++)
		if (roce_rnr_ns(code) >= ns)
			return code;
	return 0;
}

uint8_t
roce_timeout_code(uint64_t ns)
{
	unsigned int code;

	for (code = 1; code < 31; code++)
		if (roce_timeout_ns(code) >= ns)
			break;
	return code;
}
