/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that is known of a RoCE opcode, in one const table indexed by the eight
 * bits of the wire: class, headers and where they lie, payload rule.
 *
 * An opcode is a number, a class mask a struct: testing the one against the
 * bits of the other does not compile (an 8-bit opcode never has bit 8 set, and
 * a length check written that way never fires).
 */
#ifndef ROCE_OPCODE_H
#define ROCE_OPCODE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The whole 8-bit opcode: bits 7:5 transport, 4:0 operation. RD (0x40) is not
 * implemented and unknown here.
 *
 * If you add one: an OP() line in roce_opcode.c (it makes the name too), the
 * row in test/unit/test_roce_opcode.c; a new extension header needs a struct
 * in roce_hdr.h, a parse and an emit branch in roce_hdr.c.
 */
enum roce_opcode {
	ROCE_RC_SEND_FIRST = 0x00,
	ROCE_RC_SEND_MIDDLE = 0x01,
	ROCE_RC_SEND_LAST = 0x02,
	ROCE_RC_SEND_LAST_IMM = 0x03,
	ROCE_RC_SEND_ONLY = 0x04,
	ROCE_RC_SEND_ONLY_IMM = 0x05,
	ROCE_RC_WRITE_FIRST = 0x06,
	ROCE_RC_WRITE_MIDDLE = 0x07,
	ROCE_RC_WRITE_LAST = 0x08,
	ROCE_RC_WRITE_LAST_IMM = 0x09,
	ROCE_RC_WRITE_ONLY = 0x0a,
	ROCE_RC_WRITE_ONLY_IMM = 0x0b,
	ROCE_RC_READ_REQ = 0x0c,
	ROCE_RC_READ_RESP_FIRST = 0x0d,
	ROCE_RC_READ_RESP_MIDDLE = 0x0e,
	ROCE_RC_READ_RESP_LAST = 0x0f,
	ROCE_RC_READ_RESP_ONLY = 0x10,
	ROCE_RC_ACK = 0x11,
	ROCE_RC_ATOMIC_ACK = 0x12,
	ROCE_RC_CMP_SWAP = 0x13,
	ROCE_RC_FETCH_ADD = 0x14,
	ROCE_RC_SEND_LAST_INV = 0x16,
	ROCE_RC_SEND_ONLY_INV = 0x17,
	ROCE_RC_FLUSH = 0x1c,
	ROCE_RC_ATOMIC_WRITE = 0x1d,

	ROCE_UC_SEND_FIRST = 0x20,
	ROCE_UC_SEND_MIDDLE = 0x21,
	ROCE_UC_SEND_LAST = 0x22,
	ROCE_UC_SEND_LAST_IMM = 0x23,
	ROCE_UC_SEND_ONLY = 0x24,
	ROCE_UC_SEND_ONLY_IMM = 0x25,
	ROCE_UC_WRITE_FIRST = 0x26,
	ROCE_UC_WRITE_MIDDLE = 0x27,
	ROCE_UC_WRITE_LAST = 0x28,
	ROCE_UC_WRITE_LAST_IMM = 0x29,
	ROCE_UC_WRITE_ONLY = 0x2a,
	ROCE_UC_WRITE_ONLY_IMM = 0x2b,

	ROCE_UD_SEND_ONLY = 0x64,
	ROCE_UD_SEND_ONLY_IMM = 0x65,

	ROCE_CNP = 0x81,

	ROCE_XRC_SEND_FIRST = 0xa0,
	ROCE_XRC_SEND_MIDDLE = 0xa1,
	ROCE_XRC_SEND_LAST = 0xa2,
	ROCE_XRC_SEND_LAST_IMM = 0xa3,
	ROCE_XRC_SEND_ONLY = 0xa4,
	ROCE_XRC_SEND_ONLY_IMM = 0xa5,
	ROCE_XRC_WRITE_FIRST = 0xa6,
	ROCE_XRC_WRITE_MIDDLE = 0xa7,
	ROCE_XRC_WRITE_LAST = 0xa8,
	ROCE_XRC_WRITE_LAST_IMM = 0xa9,
	ROCE_XRC_WRITE_ONLY = 0xaa,
	ROCE_XRC_WRITE_ONLY_IMM = 0xab,
	ROCE_XRC_READ_REQ = 0xac,
	ROCE_XRC_READ_RESP_FIRST = 0xad,
	ROCE_XRC_READ_RESP_MIDDLE = 0xae,
	ROCE_XRC_READ_RESP_LAST = 0xaf,
	ROCE_XRC_READ_RESP_ONLY = 0xb0,
	ROCE_XRC_ACK = 0xb1,
	ROCE_XRC_ATOMIC_ACK = 0xb2,
	ROCE_XRC_CMP_SWAP = 0xb3,
	ROCE_XRC_FETCH_ADD = 0xb4,
	ROCE_XRC_SEND_LAST_INV = 0xb6,
	ROCE_XRC_SEND_ONLY_INV = 0xb7,
};

/** The transport that an opcode belongs to; 0 is none, an unknown opcode. */
enum roce_transport {
	ROCE_TR_NONE = 0,
	ROCE_TR_RC,
	ROCE_TR_UC,
	ROCE_TR_UD,
	ROCE_TR_XRC,
	ROCE_TR_CNP,
};

/** What length the payload, pad not counted, may have. */
enum roce_payload_rule {
	ROCE_PAYLOAD_NONE = 0,
	ROCE_PAYLOAD_PMTU,	/* exactly the path MTU: First, Middle */
	ROCE_PAYLOAD_1_PMTU,	/* Last */
	ROCE_PAYLOAD_0_PMTU,	/* Only */
	ROCE_PAYLOAD_8,		/* ATOMIC WRITE */
};

/** A set of class bits. Made from the ROCE_* constants below alone. */
typedef struct {
	uint32_t bits;
} roce_mask;

/* Bit numbers of roce_mask; the table's own, use the constants below. */
enum roce_mask_bit {
	/* operation */
	ROCE_B_SEND = 1u << 0,
	ROCE_B_WRITE = 1u << 1,
	ROCE_B_READ_REQ = 1u << 2,
	ROCE_B_READ_RESP = 1u << 3,
	ROCE_B_ATOMIC = 1u << 4,
	ROCE_B_ACK = 1u << 5,
	ROCE_B_ATOMIC_WRITE = 1u << 6,
	ROCE_B_FLUSH = 1u << 7,
	/* place in its message */
	ROCE_B_FIRST = 1u << 8,
	ROCE_B_MIDDLE = 1u << 9,
	ROCE_B_LAST = 1u << 10,
	ROCE_B_ONLY = 1u << 11,
	/* what it does beside */
	ROCE_B_IMM = 1u << 12,
	ROCE_B_INV = 1u << 13,
	ROCE_B_REQUEST = 1u << 14,
	ROCE_B_RESPONSE = 1u << 15,
	ROCE_B_NEEDS_RWQE = 1u << 16,
	ROCE_B_RECV_COMP = 1u << 17,
	/* extension headers */
	ROCE_B_RETH = 1u << 20,
	ROCE_B_AETH = 1u << 21,
	ROCE_B_ATOMICETH = 1u << 22,
	ROCE_B_ATOMACK = 1u << 23,
	ROCE_B_IMMDT = 1u << 24,
	ROCE_B_IETH = 1u << 25,
	ROCE_B_DETH = 1u << 26,
	ROCE_B_XRCETH = 1u << 27,
	ROCE_B_FETH = 1u << 28,
};

#define ROCE_SEND ((roce_mask){ROCE_B_SEND})
#define ROCE_WRITE ((roce_mask){ROCE_B_WRITE})
#define ROCE_READ_REQ ((roce_mask){ROCE_B_READ_REQ})
#define ROCE_READ_RESP ((roce_mask){ROCE_B_READ_RESP})
#define ROCE_ATOMIC ((roce_mask){ROCE_B_ATOMIC}) /* CmpSwap, FetchAdd */
#define ROCE_ACK ((roce_mask){ROCE_B_ACK}) /* Acknowledge, ATOMIC Acknowledge */
#define ROCE_ATOMIC_WRITE ((roce_mask){ROCE_B_ATOMIC_WRITE})
#define ROCE_FLUSH ((roce_mask){ROCE_B_FLUSH})
/* Requests with an answer of their own, which a responder resource stands for. */
#define ROCE_ANSWERED \
	((roce_mask){ROCE_B_READ_REQ | ROCE_B_ATOMIC | ROCE_B_ATOMIC_WRITE | ROCE_B_FLUSH})
#define ROCE_FIRST ((roce_mask){ROCE_B_FIRST})
#define ROCE_MIDDLE ((roce_mask){ROCE_B_MIDDLE})
#define ROCE_LAST ((roce_mask){ROCE_B_LAST})
/* One-packet messages; every request that is not SEND or WRITE too. */
#define ROCE_ONLY ((roce_mask){ROCE_B_ONLY})
#define ROCE_START ((roce_mask){ROCE_B_FIRST | ROCE_B_ONLY})
#define ROCE_END ((roce_mask){ROCE_B_LAST | ROCE_B_ONLY})
#define ROCE_IMM ((roce_mask){ROCE_B_IMM})
#define ROCE_INV ((roce_mask){ROCE_B_INV})
#define ROCE_REQUEST ((roce_mask){ROCE_B_REQUEST})
#define ROCE_RESPONSE ((roce_mask){ROCE_B_RESPONSE})
#define ROCE_NEEDS_RWQE ((roce_mask){ROCE_B_NEEDS_RWQE}) /* takes a receive WQE from the queue */
/* Completes the receive WQE it or its First took. */
#define ROCE_RECV_COMP ((roce_mask){ROCE_B_RECV_COMP})
#define ROCE_RETH ((roce_mask){ROCE_B_RETH})
#define ROCE_AETH ((roce_mask){ROCE_B_AETH})
#define ROCE_ATOMICETH ((roce_mask){ROCE_B_ATOMICETH})
#define ROCE_ATOMACK ((roce_mask){ROCE_B_ATOMACK})
#define ROCE_IMMDT ((roce_mask){ROCE_B_IMMDT})
#define ROCE_IETH ((roce_mask){ROCE_B_IETH})
#define ROCE_DETH ((roce_mask){ROCE_B_DETH})
#define ROCE_XRCETH ((roce_mask){ROCE_B_XRCETH})
#define ROCE_FETH ((roce_mask){ROCE_B_FETH})

/**
 * One opcode. Offsets count from the first byte of the BTH and are 0 for a
 * header that the opcode lacks. Four entries share a cache line.
 */
struct roce_opcode_info {
	roce_mask mask;
	uint8_t transport;	/* enum roce_transport, ROCE_TR_NONE: unknown opcode */
	uint8_t payload;	/* enum roce_payload_rule */
	uint8_t ext_len;	/* bytes between the BTH and the payload */
	uint8_t reth;
	uint8_t aeth;
	uint8_t atomiceth;
	uint8_t atomack;
	uint8_t immdt;
	uint8_t ieth;
	uint8_t deth;
	uint8_t xrceth;
	uint8_t feth;
};
static_assert(sizeof(struct roce_opcode_info) == 16, "four opcodes a cache line");

extern const struct roce_opcode_info roce_opcodes[256];

/** Whether m has at least one bit of want. */
static inline bool
roce_any(roce_mask m, roce_mask want)
{
	return (m.bits & want.bits) != 0;
}

/** Whether m has every bit of want. */
static inline bool
roce_all(roce_mask m, roce_mask want)
{
	return (m.bits & want.bits) == want.bits;
}

static inline roce_mask
roce_or(roce_mask a, roce_mask b)
{
	return (roce_mask){a.bits | b.bits};
}

static inline bool
roce_opcode_known(uint8_t opcode)
{
	return roce_opcodes[opcode].transport != ROCE_TR_NONE;
}

/** "RC_SEND_FIRST" and so on; "unknown" for the others, never NULL. */
const char *roce_opcode_name(uint8_t opcode);

/**
 * Whether a payload of len bytes followed by pad pad bytes obeys the opcode's
 * rule on a path of pmtu bytes. A breach is NAKed as an invalid request on RC
 * and dropped on UC and UD, hence not a matter of roce_parse().
 */
bool roce_payload_ok(const struct roce_opcode_info *info, uint32_t len, unsigned int pad,
	uint32_t pmtu);

#endif /* ROCE_OPCODE_H */
