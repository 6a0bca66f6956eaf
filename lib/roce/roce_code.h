/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small codes inside RoCE headers and MADs: AETH syndromes with their credit
 * and RNR timer codes, path MTU, timeout exponents.
 */
#ifndef ROCE_CODE_H
#define ROCE_CODE_H

#include <stdbool.h>
#include <stdint.h>

/* AETH syndrome: bit 7 zero, 6:5 type, 4:0 value. */
#define ROCE_SYN_TYPE 0xe0u	/* bit 7 included: a set one makes the type unknown */
#define ROCE_SYN_VALUE 0x1fu
#define ROCE_SYN_ACK 0x00u	/* value: credit code */
#define ROCE_SYN_RNR 0x20u	/* value: RNR timer code */
#define ROCE_SYN_NAK 0x60u	/* value: enum roce_nak; 0x40 and 0x80 up are reserved */

#define ROCE_CREDIT_CODE_NONE 0x1fu		/* "no credit information" */
#define ROCE_CREDIT_UNLIMITED UINT32_MAX

/** Whole syndromes of NAKs. */
enum roce_nak {
	ROCE_NAK_PSN_SEQ = 0x60,
	ROCE_NAK_INVALID_REQ = 0x61,
	ROCE_NAK_REM_ACCESS = 0x62,
	ROCE_NAK_REM_OP = 0x63,
	ROCE_NAK_INVALID_RD = 0x64,
};

static inline uint8_t
roce_syn_ack(uint8_t credit_code)
{
	return ROCE_SYN_ACK | (credit_code & ROCE_SYN_VALUE);
}

static inline uint8_t
roce_syn_rnr(uint8_t timer_code)
{
	return ROCE_SYN_RNR | (timer_code & ROCE_SYN_VALUE);
}

static inline bool
roce_syn_is(uint8_t syndrome, unsigned int type)
{
	return (syndrome & ROCE_SYN_TYPE) == type;
}

/** Receive WQEs that a credit code (0..31) stands for; ROCE_CREDIT_UNLIMITED for 31. */
uint32_t roce_credit_decode(uint8_t code);
/** The largest code that promises no more than free_rwqes, never 31. */
uint8_t roce_credit_encode(uint32_t free_rwqes);

/** The least time to wait after an RNR NAK of this code (0..31), in ns. */
uint64_t roce_rnr_ns(uint8_t code);
/** The code of the shortest timer that is not shorter than ns; 0 (655.36 ms) if none is. */
uint8_t roce_rnr_code(uint64_t ns);

/** 4.096 us * 2^code; 0 for code 0, which means no timeout. code is 5 bits. */
static inline uint64_t
roce_timeout_ns(uint8_t code)
{
	return (code & 31) ? UINT64_C(4096) << (code & 31) : 0;
}

/** The smallest code >= 1 whose timeout is not shorter than ns, at most 31. */
uint8_t roce_timeout_code(uint64_t ns);

/** Path MTU of a code (1..5), in bytes; 0 for a code that is none. */
static inline uint32_t
roce_mtu_bytes(uint8_t code)
{
	return code >= 1 && code <= 5 ? 128u << code : 0;
}

/** The largest path MTU code that fits into bytes; 0 below 256. */
static inline uint8_t
roce_mtu_code(uint32_t bytes)
{
	if (bytes < 256)
		return 0;
	return bytes >= 4096 ? 5 : 24 - __builtin_clz(bytes);
}

#endif /* ROCE_CODE_H */
