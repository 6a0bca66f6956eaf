/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared-memory layout between librnic and rnicd: what lies in the arenas and who writes
 * it. Little-endian, naturally aligned, free of pointers. Any change of a layout is a new
 * RING_ABI_MAJOR; docs/abi.md lists the history. Operations are in ring_wq.h, ring_bell.h and
 * ring_cq.h, the socket's messages in ring_ctrl.h.
 *
 * C arenas are written by the client, D arenas by the daemon; bells alone by both (the worker
 * clears the bits that it takes). Fresh objects are all zero. An arena belongs to one context.
 */
#ifndef RING_ABI_H
#define RING_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define RING_MAGIC 0x434e5253u /* "SRNC" */
#define RING_ABI_MAJOR 1
#define RING_ABI_MINOR 1

#define RING_LINE 64	      /* cache line; no line has two writers */
#define RING_SLOT_SIZE 64     /* one slot of a work queue */
#define RING_MAX_WQE_SLOTS 16 /* slots of the largest work request */
#define RING_MAX_SGE 32
#define RING_MAX_INLINE (32 + 64 * (RING_MAX_WQE_SLOTS - 1))
#define RING_MAX_WORKERS 32
#define RING_MAX_ENTRIES (1u << 20) /* slots of a work queue, entries of a CQ: at most */

/** Operations of send work requests, numbered as enum ibv_wr_opcode where that has them. */
enum ring_wr_opcode {
	RING_WR_RDMA_WRITE = 0,
	RING_WR_RDMA_WRITE_WITH_IMM = 1,
	RING_WR_SEND = 2,
	RING_WR_SEND_WITH_IMM = 3,
	RING_WR_RDMA_READ = 4,
	RING_WR_ATOMIC_CMP_AND_SWP = 5,
	RING_WR_ATOMIC_FETCH_AND_ADD = 6,
	RING_WR_LOCAL_INV = 7,
	RING_WR_BIND_MW = 8,
	RING_WR_SEND_WITH_INV = 9,
	RING_WR_FLUSH = 14,
	RING_WR_ATOMIC_WRITE = 15,
	RING_WR_FAST_REG = 32,
	RING_WR_OPCODE_COUNT
};

/** Flags of send work requests, as enum ibv_send_flags. */
enum ring_wr_flag {
	RING_WR_FENCE = 1,
	RING_WR_SIGNALED = 2,
	RING_WR_SOLICITED = 4,
	RING_WR_INLINE = 8,
};

/** A gather or scatter element. */
struct ring_sge {
	uint64_t addr; /* the application's address, or an offset if the MR is zero-based */
	uint32_t length;
	uint32_t lkey;
};
static_assert(sizeof(struct ring_sge) == 16, "ABI");

/**
 * First slot of a send work request. SGEs or inline bytes begin in `data` and go on at the
 * start of the slots that follow (modulo the ring).
 */
struct ring_wqe {
	uint8_t opcode;	   /* enum ring_wr_opcode */
	uint8_t flags;	   /* enum ring_wr_flag */
	uint8_t num_slots; /* 1 .. RING_MAX_WQE_SLOTS, this one included */
	uint8_t num_sge;   /* 0 with RING_WR_INLINE */
	uint32_t imm;	   /* immediate in network order, or the key to invalidate */
	union {
		uint32_t rkey;
		uint32_t qkey; /* UD */
	};
	union {
		uint32_t inline_len; /* bytes, with RING_WR_INLINE */
		uint32_t flush_len;  /* FLUSH: bytes of the remote range */
	};
	union {
		uint64_t remote_addr;
		struct {
			uint32_t ah; /* UD: the address handle's number */
			uint32_t remote_qpn;
		};
	};
	uint32_t srqn;	/* XRC: the remote SRQ */
	uint32_t flush; /* FLUSH: placement type, bits 0-3, and selectivity, bits 4-5 */
	union {
		struct ring_sge sge[2];
		uint8_t data[32];
		struct {
			uint64_t compare_add;
			uint64_t swap;
			struct ring_sge sge;
		} atomic; /* of 8 bytes exactly */
		struct {
			uint64_t length; /* rkey: the window's new key, remote_addr: its start */
			uint32_t mr_lkey;
			uint32_t access;
			uint32_t mw_key; /* the window's present key */
			uint32_t reserved[3];
		} bind;
		struct {
			uint64_t length; /* rkey: the new key, remote_addr: the iova */
			uint32_t access;
			uint32_t list_lkey; /* of the list of segments (struct ring_sge each) */
			uint64_t list_addr;
			uint32_t list_len;
			uint32_t reserved;
		} fast_reg;
	};
};
static_assert(sizeof(struct ring_wqe) == RING_SLOT_SIZE, "ABI");

#define RING_WQE_SGES 2	 /* in the first slot of a send request */
#define RING_SLOT_SGES 4 /* in each further slot */
#define RING_RWQE_SGES 3 /* in the first slot of a receive request */

/** First slot of a receive work request. */
struct ring_rwqe {
	uint8_t num_slots;
	uint8_t num_sge;
	uint8_t reserved[14];
	struct ring_sge sge[RING_RWQE_SGES];
};
static_assert(sizeof(struct ring_rwqe) == RING_SLOT_SIZE, "ABI");

/** The client's words of a QP (C arena). Tails run free and are masked on access. */
struct ring_qp_client {
	_Alignas(RING_LINE) _Atomic uint32_t sq_tail;
	_Alignas(RING_LINE) _Atomic uint32_t rq_tail;
};
static_assert(sizeof(struct ring_qp_client) == 2 * RING_LINE, "ABI");

/** The daemon's words of a QP (D arena). */
struct ring_qp_daemon {
	_Alignas(RING_LINE) _Atomic uint32_t active; /* on its worker's run list: no bell needed */
	_Atomic uint32_t state;			     /* enum ring_qp_state */
	_Atomic uint32_t worker;		     /* whose bell to ring, when state > INIT */
	uint32_t reserved[13];
};
static_assert(sizeof(struct ring_qp_daemon) == RING_LINE, "ABI");

/** QP states, as enum ibv_qp_state. */
enum ring_qp_state {
	RING_QPS_RESET = 0,
	RING_QPS_INIT = 1,
	RING_QPS_RTR = 2,
	RING_QPS_RTS = 3,
	RING_QPS_SQD = 4,
	RING_QPS_SQE = 5,
	RING_QPS_ERR = 6,
	RING_QPS_COUNT
};

/** The client's words of an SRQ (C arena): an index ring over a slot array. */
struct ring_srq_client {
	_Alignas(RING_LINE) _Atomic uint32_t tail;
};

/** The daemon's words of an SRQ (D arena). Workers take entries by compare-and-swap on head. */
struct ring_srq_daemon {
	_Alignas(RING_LINE) _Atomic uint32_t head;
};

/**
 * Bells of one context at one worker (C arena): a bit a QP, with two summary levels over it.
 * A context with more QPs has more chunks.
 */
#define RING_BELL_SLOTS (64u * 64 * 64)
#define RING_BELL_CHUNKS 16
struct ring_bell_chunk {
	_Alignas(RING_LINE) _Atomic uint64_t top; /* bit i: mid[i] may be non-zero */
	_Alignas(RING_LINE) _Atomic uint64_t mid[64];
	_Alignas(RING_LINE) _Atomic uint64_t leaf[64 * 64];
};
static_assert(sizeof(struct ring_bell_chunk) == 64 + 512 + 32768, "ABI");

/** The daemon's words of one context at one worker (D arena). */
struct ring_bell_daemon {
	_Alignas(RING_LINE) _Atomic uint32_t need_kick; /* write the eventfd after ringing */
};

/** A completion. */
struct ring_cqe {
	uint32_t wqe_index;   /* free-running index of the request's first slot; SRQ: slot number */
	uint32_t qpn_status;  /* QP number 24 bits, status (enum wc_status) in the top 8 */
	uint32_t byte_len;    /* receives, READ and atomics */
	uint32_t imm;	      /* immediate in network order, or the invalidated key */
	/* Source QP (RING_CQE_XRC: the SRQ) 24 bits, opcode (enum ring_wc_opcode) in the top 8 */
	uint32_t src_opcode;
	_Atomic uint32_t tag; /* RING_CQE_*; written last, with release */
	uint64_t timestamp;   /* ns of the device's clock */
};
static_assert(sizeof(struct ring_cqe) == 32, "ABI");

#define RING_CQE_PHASE 1u     /* differs from one pass over the ring to the next */
#define RING_CQE_WITH_IMM 2u
#define RING_CQE_WITH_INV 4u
#define RING_CQE_GRH 8u
#define RING_CQE_RECV 16u     /* of a receive queue or SRQ, whatever the status */
#define RING_CQE_SOLICITED 32u
#define RING_CQE_SWITCH 64u   /* no completion: go on in the CQ's next ring */
#define RING_CQE_XRC 128u     /* of an XRC SRQ, whatever the status; the QP may be anybody's */

/** Opcodes of completions, as enum ibv_wc_opcode, RECV = 128 upwards. */
enum ring_wc_opcode {
	RING_WC_SEND = 0,
	RING_WC_RDMA_WRITE = 1,
	RING_WC_RDMA_READ = 2,
	RING_WC_COMP_SWAP = 3,
	RING_WC_FETCH_ADD = 4,
	RING_WC_BIND_MW = 5,
	RING_WC_LOCAL_INV = 6,
	RING_WC_FLUSH = 8,
	RING_WC_ATOMIC_WRITE = 9,
	RING_WC_FAST_REG = 10,
	RING_WC_RECV = 128,
	RING_WC_RECV_RDMA_WITH_IMM = 129,
};

/** Where one of a CQ's sub-rings lies. */
struct ring_cq_sub {
	uint32_t arena;	     /* number of a D arena */
	uint32_t log_entries; /* log2 of its entries; one of them is kept for a SWITCH */
	uint64_t offset;     /* within that arena */
	uint32_t worker;     /* index into ring_cq_client.cons */
	uint32_t generation; /* resizes of this sub-ring so far */
};
static_assert(sizeof(struct ring_cq_sub) == 24, "ABI");

/**
 * The daemon's words of a CQ (D arena). Sub-ring i (in the order of making, i < num_sub) has two
 * places: sub[i] and sub[i + RING_MAX_WORKERS]. It begins in the first with generation 0; each
 * resize of it writes the other place, then the SWITCH that sends the client there. A CQ is not
 * resized again before the client is past every SWITCH (ring_cq.h), so two places are enough.
 */
struct ring_cq_daemon {
	_Alignas(RING_LINE) _Atomic uint32_t num_sub; /* sub-rings; stored after they are */
	_Atomic uint32_t notify_seq;		      /* last arm sequence answered (ring_arm.h) */
	_Atomic uint32_t overrun;		      /* non-zero: completions were lost */
	uint32_t reserved[13];
	struct ring_cq_sub sub[2 * RING_MAX_WORKERS];
};
static_assert(sizeof(struct ring_cq_daemon) == RING_LINE + 64 * 24, "ABI");

enum ring_cq_armed {
	RING_CQ_UNARMED = 0,
	RING_CQ_ARMED_NEXT = 1,
	RING_CQ_ARMED_SOLICITED = 2,
};

/** The client's words of a CQ (C arena). */
struct ring_cq_client {
	/* (arm sequence << 2) | enum ring_cq_armed: each arming has a number, so that it is
	 * answered once although the daemon cannot clear the word (ring_arm.h) */
	_Alignas(RING_LINE) _Atomic uint32_t armed;
	_Alignas(RING_LINE) _Atomic uint32_t cons[RING_MAX_WORKERS]; /* consumer indices */
};

/**
 * Which CQs of a channel fired (D arena). Each worker and the control thread has its own, so
 * that each has one writer. The writer never waits: a reader that falls behind by more than the
 * ring, or sees `lost` moved, looks at all its CQs (ring_channel.h).
 */
#define RING_CHANNEL_ENTRIES 1024
struct ring_channel_sub {
	_Alignas(RING_LINE) _Atomic uint32_t tail;
	_Atomic uint32_t lost;
	_Alignas(RING_LINE) _Atomic uint32_t cqn[RING_CHANNEL_ENTRIES];
};
static_assert(sizeof(struct ring_channel_sub) == RING_LINE + 4096, "ABI");

#endif /* RING_ABI_H */
