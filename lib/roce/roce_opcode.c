/* SPDX-License-Identifier: BSD-3-Clause */
/* The opcode table. */
#include <stddef.h>

#include "roce_opcode.h"

/*
 * Headers behind the BTH, the first at offset b. Requests begin behind what
 * their transport puts first (XRCETH, DETH), which R_* adds.
 */
#define H_NONE(b) .ext_len = (b) - 12
#define H_IMM(b) .immdt = (b), .ext_len = (b) - 12 + 4
#define H_INV(b) .ieth = (b), .ext_len = (b) - 12 + 4
#define H_RETH(b) .reth = (b), .ext_len = (b) - 12 + 16
#define H_RETH_IMM(b) .reth = (b), .immdt = (b) + 16, .ext_len = (b) - 12 + 20
#define H_ATOMIC(b) .atomiceth = (b), .ext_len = (b) - 12 + 28
#define H_AETH(b) .aeth = (b), .ext_len = (b) - 12 + 4
#define H_AETH_ORIG(b) .aeth = (b), .atomack = (b) + 4, .ext_len = (b) - 12 + 12
#define H_FETH_RETH(b) .feth = (b), .reth = (b) + 4, .ext_len = (b) - 12 + 20

#define B_NONE 0
#define B_IMM (ROCE_B_IMM | ROCE_B_IMMDT)
#define B_INV (ROCE_B_INV | ROCE_B_IETH)
#define B_RETH ROCE_B_RETH
#define B_RETH_IMM (ROCE_B_RETH | ROCE_B_IMM | ROCE_B_IMMDT)
#define B_ATOMIC ROCE_B_ATOMICETH
#define B_AETH ROCE_B_AETH
#define B_AETH_ORIG (ROCE_B_AETH | ROCE_B_ATOMACK)
#define B_FETH_RETH (ROCE_B_FETH | ROCE_B_RETH)

/* What a transport's requests begin with: mask bits, offset of the rest, fields. */
#define RB_RC 0
#define RO_RC 12
#define RF_RC .xrceth = 0
#define RB_UC 0
#define RO_UC 12
#define RF_UC .xrceth = 0
#define RB_UD ROCE_B_DETH
#define RO_UD 20
#define RF_UD .deth = 12
#define RB_XRC ROCE_B_XRCETH
#define RO_XRC 16
#define RF_XRC .xrceth = 12

#define SEND ROCE_B_SEND
#define WRITE ROCE_B_WRITE
#define FIRST ROCE_B_FIRST
#define MIDDLE ROCE_B_MIDDLE
#define LAST ROCE_B_LAST
#define ONLY ROCE_B_ONLY
#define TAKE ROCE_B_NEEDS_RWQE
#define COMP ROCE_B_RECV_COMP

/* A request and a response; X(transport, operation, headers, bits, payload). */
#define REQUEST(tr, op, hdr, bits_, rule) \
	[ROCE_##tr##_##op] = { \
		.mask = {ROCE_B_REQUEST | RB_##tr | B_##hdr | (bits_)}, \
		.transport = ROCE_TR_##tr, .payload = ROCE_PAYLOAD_##rule, \
		RF_##tr, H_##hdr(RO_##tr), \
	},
#define RESPONSE(tr, op, hdr, bits_, rule) \
	[ROCE_##tr##_##op] = { \
		.mask = {ROCE_B_RESPONSE | B_##hdr | (bits_)}, \
		.transport = ROCE_TR_##tr, .payload = ROCE_PAYLOAD_##rule, \
		H_##hdr(12), \
	},

/* SEND Only, which UD has too. */
#define ALL_OPS(REQ, tr) \
	REQ(tr, SEND_ONLY, NONE, SEND | ONLY | TAKE | COMP, 0_PMTU) \
	REQ(tr, SEND_ONLY_IMM, IMM, SEND | ONLY | TAKE | COMP, 0_PMTU)

/* RC, UC, XRC. */
#define CONNECTED_OPS(REQ, tr) \
	REQ(tr, SEND_FIRST, NONE, SEND | FIRST | TAKE, PMTU) \
	REQ(tr, SEND_MIDDLE, NONE, SEND | MIDDLE, PMTU) \
	REQ(tr, SEND_LAST, NONE, SEND | LAST | COMP, 1_PMTU) \
	REQ(tr, SEND_LAST_IMM, IMM, SEND | LAST | COMP, 1_PMTU) \
	ALL_OPS(REQ, tr) \
	REQ(tr, WRITE_FIRST, RETH, WRITE | FIRST, PMTU) \
	REQ(tr, WRITE_MIDDLE, NONE, WRITE | MIDDLE, PMTU) \
	REQ(tr, WRITE_LAST, NONE, WRITE | LAST, 1_PMTU) \
	REQ(tr, WRITE_LAST_IMM, IMM, WRITE | LAST | TAKE | COMP, 1_PMTU) \
	REQ(tr, WRITE_ONLY, RETH, WRITE | ONLY, 0_PMTU) \
	REQ(tr, WRITE_ONLY_IMM, RETH_IMM, WRITE | ONLY | TAKE | COMP, 0_PMTU)

/* RC, XRC. */
#define RELIABLE_OPS(REQ, RESP, tr) \
	CONNECTED_OPS(REQ, tr) \
	REQ(tr, READ_REQ, RETH, ROCE_B_READ_REQ | ONLY, NONE) \
	RESP(tr, READ_RESP_FIRST, AETH, ROCE_B_READ_RESP | FIRST, PMTU) \
	RESP(tr, READ_RESP_MIDDLE, NONE, ROCE_B_READ_RESP | MIDDLE, PMTU) \
	RESP(tr, READ_RESP_LAST, AETH, ROCE_B_READ_RESP | LAST, 1_PMTU) \
	RESP(tr, READ_RESP_ONLY, AETH, ROCE_B_READ_RESP | ONLY, 0_PMTU) \
	RESP(tr, ACK, AETH, ROCE_B_ACK | ONLY, NONE) \
	RESP(tr, ATOMIC_ACK, AETH_ORIG, ROCE_B_ACK | ONLY, NONE) \
	REQ(tr, CMP_SWAP, ATOMIC, ROCE_B_ATOMIC | ONLY, NONE) \
	REQ(tr, FETCH_ADD, ATOMIC, ROCE_B_ATOMIC | ONLY, NONE) \
	REQ(tr, SEND_LAST_INV, INV, SEND | LAST | COMP, 1_PMTU) \
	REQ(tr, SEND_ONLY_INV, INV, SEND | ONLY | TAKE | COMP, 0_PMTU)

#define EVERY_OP(REQ, RESP) \
	RELIABLE_OPS(REQ, RESP, RC) \
	REQ(RC, FLUSH, FETH_RETH, ROCE_B_FLUSH | ONLY, NONE) \
	REQ(RC, ATOMIC_WRITE, RETH, ROCE_B_ATOMIC_WRITE | ONLY, 8) \
	CONNECTED_OPS(REQ, UC) \
	ALL_OPS(REQ, UD) \
	RELIABLE_OPS(REQ, RESP, XRC)

const struct roce_opcode_info roce_opcodes[256] = {
	EVERY_OP(REQUEST, RESPONSE)
	/* The 16 reserved bytes are as good as a header: always there, never looked at. */
	[ROCE_CNP] = {.transport = ROCE_TR_CNP, .payload = ROCE_PAYLOAD_NONE, .ext_len = 16},
};

#define NAME(tr, op, hdr, bits_, rule) [ROCE_##tr##_##op] = #tr "_" #op,
static const char *const names[256] = {
	EVERY_OP(NAME, NAME)
	[ROCE_CNP] = "CNP",
};

const char *
roce_opcode_name(uint8_t opcode)
{
	return names[opcode] != NULL ? names[opcode] : "unknown";
}

bool
roce_payload_ok(const struct roce_opcode_info *info, uint32_t len, unsigned int pad, uint32_t pmtu)
{
	switch (info->payload) {
	case ROCE_PAYLOAD_PMTU:
		return len == pmtu && pad == 0;
	case ROCE_PAYLOAD_1_PMTU:
		return len >= 1 && len <= pmtu;
	case ROCE_PAYLOAD_0_PMTU:
		return len <= pmtu;
	case ROCE_PAYLOAD_8:
		return len == 8 && pad == 0;
	default:
		return len == 0 && pad == 0;
	}
}
