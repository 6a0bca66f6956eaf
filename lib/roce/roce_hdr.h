/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE v2 transport headers: the BTH and its extension headers, parse and emit.
 * Pure functions over bytes; no packet buffers, no QP, no policy. What lies in
 * front (IP, UDP) and the ICRC behind are not this file's.
 */
#ifndef ROCE_HDR_H
#define ROCE_HDR_H

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "roce_opcode.h"

#define ROCE_UDP_PORT 4791
#define ROCE_ICRC_LEN 4
#define ROCE_BTH_LEN 12
#define ROCE_HDR_MAX 44 /* BTH, XRCETH, AtomicETH */
#define ROCE_CNP_RESV_LEN 16

#define ROCE_QPN_MASK 0xffffffu
#define ROCE_PSN_MASK 0xffffffu
#define ROCE_QPN_GSI 1u
#define ROCE_QPN_MCAST 0xffffffu
#define ROCE_QKEY_GSI 0x80010000u
#define ROCE_PKEY_DEFAULT 0xffffu

/* Fields as they lie on the wire, most significant byte first. */
typedef uint16_t roce_be16;
typedef uint32_t roce_be32;
typedef uint64_t roce_be64;

/** Base transport header, in every packet. */
struct roce_bth {
	uint8_t opcode;		/* enum roce_opcode */
	uint8_t flags;		/* SE 0x80, MigReq 0x40, PadCnt 0x30, TVer 0x0f */
	roce_be16 pkey;
	roce_be32 qpn;		/* FECN 1, BECN 1, reserved 6 (all not in the ICRC), DestQP 24 */
	roce_be32 apsn;		/* AckReq 1, reserved 7 (in the ICRC), PSN 24 */
} __attribute__((packed));
static_assert(sizeof(struct roce_bth) == ROCE_BTH_LEN, "BTH");

#define ROCE_BTH_SE 0x80u
#define ROCE_BTH_MIGREQ 0x40u
#define ROCE_BTH_PAD_SHIFT 4
#define ROCE_BTH_PAD_MASK 0x30u
#define ROCE_BTH_TVER_MASK 0x0fu
#define ROCE_BTH_FECN (1u << 31)
#define ROCE_BTH_BECN (1u << 30)
#define ROCE_BTH_ACKREQ (1u << 31)

/** RDMA: WRITE and READ requests, FLUSH, ATOMIC WRITE. */
struct roce_reth {
	roce_be64 va;
	roce_be32 rkey;
	roce_be32 dma_len;
} __attribute__((packed));
static_assert(sizeof(struct roce_reth) == 16, "RETH");

/** Acknowledge: also first, last and only READ responses. */
struct roce_aeth {
	roce_be32 word;		/* syndrome 8, MSN 24 */
} __attribute__((packed));
static_assert(sizeof(struct roce_aeth) == 4, "AETH");

/** Compare-and-swap, fetch-and-add. */
struct roce_atomiceth {
	roce_be64 va;
	roce_be32 rkey;
	roce_be64 swap_add;
	roce_be64 compare;	/* not looked at in fetch-and-add */
} __attribute__((packed));
static_assert(sizeof(struct roce_atomiceth) == 28, "AtomicETH");

/** The value that the atomic found. */
struct roce_atomack {
	roce_be64 orig;
} __attribute__((packed));
static_assert(sizeof(struct roce_atomack) == 8, "AtomicAckETH");

/** Immediate data: opaque, goes to the completion as it lies. */
struct roce_immdt {
	roce_be32 imm;
} __attribute__((packed));
static_assert(sizeof(struct roce_immdt) == 4, "ImmDt");

/** The key that a SEND with invalidate ends. */
struct roce_ieth {
	roce_be32 rkey;
} __attribute__((packed));
static_assert(sizeof(struct roce_ieth) == 4, "IETH");

/** Datagram. */
struct roce_deth {
	roce_be32 qkey;
	roce_be32 src_qpn;	/* reserved 8, source QP 24 */
} __attribute__((packed));
static_assert(sizeof(struct roce_deth) == 8, "DETH");

/** XRC requests: the shared receive queue that they are for. */
struct roce_xrceth {
	roce_be32 srqn;		/* reserved 8, SRQ number 24 */
} __attribute__((packed));
static_assert(sizeof(struct roce_xrceth) == 4, "XRCETH");

/** FLUSH. */
struct roce_feth {
	roce_be32 word;		/* reserved 26, selectivity 2, placement type 4 */
} __attribute__((packed));
static_assert(sizeof(struct roce_feth) == 4, "FETH");

#define ROCE_FETH_SEL_RANGE 0u
#define ROCE_FETH_SEL_MR 1u
#define ROCE_FETH_PLT_GLOBAL 1u		/* bits of the placement type; may be or-ed */
#define ROCE_FETH_PLT_PERSISTENT 2u

/** Why roce_parse() refuses a packet; each is a silent drop and a counter. */
enum roce_drop {
	ROCE_OK = 0,
	ROCE_DROP_SHORT = -1,	/* shorter than the headers of its opcode */
	ROCE_DROP_TVER = -2,	/* transport version is not 0 */
	ROCE_DROP_OPCODE = -3,	/* reserved, RD, vendor */
	ROCE_DROP_PAD = -4,	/* more pad than there is behind the headers */
	ROCE_DROP_QP0 = -5,	/* QP 0 is not there in RoCE (A17 CA17-33) */
};

/** "short", "tver" and so on, for counters; never NULL. */
const char *roce_drop_name(int drop);

/**
 * A packet, parsed: host order but for imm_be. A field of a header that the
 * opcode lacks is 0. The reserved bits of all headers are ignored and sent 0.
 */
struct roce_pkt {
	const struct roce_opcode_info *info;
	const uint8_t *payload;	/* into the packet, never NULL after a parse */
	uint32_t payload_len;	/* bytes, without pad */
	uint32_t dest_qpn;
	uint32_t psn;
	uint16_t pkey;
	uint8_t opcode;		/* enum roce_opcode */
	uint8_t pad;		/* bytes, 0..3 */
	uint8_t tver;
	bool se;
	bool migreq;
	bool fecn;
	bool becn;
	bool ackreq;
	uint8_t syndrome;	/* AETH */
	uint8_t flush_sel;	/* FETH: ROCE_FETH_SEL_* */
	uint8_t flush_plt;	/* FETH: ROCE_FETH_PLT_* */
	uint32_t msn;		/* AETH */
	uint64_t va;		/* RETH, AtomicETH */
	uint32_t rkey;		/* RETH, AtomicETH */
	uint32_t dma_len;	/* RETH; up to 2^32 - 1 here, the limit is the responder's */
	uint64_t swap_add;	/* AtomicETH */
	uint64_t compare;	/* AtomicETH */
	uint64_t orig;		/* AtomicAckETH */
	roce_be32 imm_be;	/* ImmDt, in network order, as the CQE wants it */
	uint32_t inv_rkey;	/* IETH */
	uint32_t qkey;		/* DETH */
	uint32_t src_qpn;	/* DETH */
	uint32_t srqn;		/* XRCETH */
};

/**
 * Parse a packet from its BTH on; len is the UDP payload's without the ICRC.
 * Reads no byte beyond len. Returns ROCE_OK or a negative enum roce_drop, and
 * then *pkt holds nothing of use but, when len >= ROCE_BTH_LEN, the BTH.
 *
 * Not checked here: whether the payload's length is allowed (roce_payload_ok(),
 * since RC answers a breach), whether payload and pad make up a multiple of 4.
 */
int roce_parse(const void *bth, size_t len, struct roce_pkt *pkt);

/**
 * Emit BTH, extension headers, payload and zero pad (pkt->pad bytes). Returns
 * the bytes written, or 0 when the opcode is unknown or room too small. Headers
 * alone: roce_emit_headers(). For tests, tools and management packets; the
 * transmit path writes its headers one by one with the inlines below.
 */
size_t roce_emit(const struct roce_pkt *pkt, void *buf, size_t room);
size_t roce_emit_headers(const struct roce_pkt *pkt, void *buf, size_t room);

/** Pad bytes behind a payload of len bytes. */
static inline unsigned int
roce_pad(uint32_t len)
{
	return -len & 3;
}

static inline uint32_t
roce_bth_qpn(const struct roce_bth *bth)
{
	return be32toh(bth->qpn) & ROCE_QPN_MASK;
}

static inline uint32_t
roce_bth_psn(const struct roce_bth *bth)
{
	return be32toh(bth->apsn) & ROCE_PSN_MASK;
}

static inline unsigned int
roce_bth_pad(const struct roce_bth *bth)
{
	return (bth->flags & ROCE_BTH_PAD_MASK) >> ROCE_BTH_PAD_SHIFT;
}

/**
 * flags: ROCE_BTH_SE | ROCE_BTH_MIGREQ | pad << ROCE_BTH_PAD_SHIFT.
 * qpn and psn are 24-bit values, or-ed with ROCE_BTH_BECN and ROCE_BTH_ACKREQ.
 */
static inline void
roce_bth_emit(void *at, uint8_t opcode, uint8_t flags, uint16_t pkey, uint32_t qpn, uint32_t psn)
{
	*(struct roce_bth *)at = (struct roce_bth){
		.opcode = opcode,
		.flags = flags,
		.pkey = htobe16(pkey),
		.qpn = htobe32(qpn),
		.apsn = htobe32(psn),
	};
}

static inline void
roce_reth_emit(void *at, uint64_t va, uint32_t rkey, uint32_t dma_len)
{
	*(struct roce_reth *)at = (struct roce_reth){
		.va = htobe64(va), .rkey = htobe32(rkey), .dma_len = htobe32(dma_len),
	};
}

static inline void
roce_aeth_emit(void *at, uint8_t syndrome, uint32_t msn)
{
	((struct roce_aeth *)at)->word =
		htobe32((uint32_t)syndrome << 24 | (msn & ROCE_PSN_MASK));
}

static inline void
roce_atomiceth_emit(void *at, uint64_t va, uint32_t rkey, uint64_t swap_add, uint64_t compare)
{
	*(struct roce_atomiceth *)at = (struct roce_atomiceth){
		.va = htobe64(va), .rkey = htobe32(rkey),
		.swap_add = htobe64(swap_add), .compare = htobe64(compare),
	};
}

static inline void
roce_atomack_emit(void *at, uint64_t orig)
{
	((struct roce_atomack *)at)->orig = htobe64(orig);
}

static inline void
roce_immdt_emit(void *at, roce_be32 imm_be)
{
	((struct roce_immdt *)at)->imm = imm_be;
}

static inline void
roce_ieth_emit(void *at, uint32_t rkey)
{
	((struct roce_ieth *)at)->rkey = htobe32(rkey);
}

static inline void
roce_deth_emit(void *at, uint32_t qkey, uint32_t src_qpn)
{
	*(struct roce_deth *)at = (struct roce_deth){
		.qkey = htobe32(qkey), .src_qpn = htobe32(src_qpn & ROCE_QPN_MASK),
	};
}

static inline void
roce_xrceth_emit(void *at, uint32_t srqn)
{
	((struct roce_xrceth *)at)->srqn = htobe32(srqn & ROCE_QPN_MASK);
}

static inline void
roce_feth_emit(void *at, unsigned int sel, unsigned int plt)
{
	((struct roce_feth *)at)->word = htobe32((sel & 3) << 4 | (plt & 15));
}

#endif /* ROCE_HDR_H */
