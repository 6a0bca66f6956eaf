/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC, the receiver: what is dropped, with how much of it, and what of a message stays. Nothing
 * is ever answered: every script ends with that.
 */
#include <errno.h>

#include "wire.h"

#define RECV_AT(i) (4096u * (i)) /* of the i-th receive, of 3000 bytes */

static uint8_t data[8192];

/** rq: a receive queue of its own, else a shared one. */
static struct wire *
start(struct wire_params p, bool rq)
{
	p.type = VERBS_QPT_UC;
	p.credits = rq;
	wire_pattern(data, sizeof(data), 3);
	return wire_new(&p);
}

static void
end(struct wire *w)
{
	wire_expect_none(w);
	wire_no_cqe(w);
	wire_free(w);
}

static struct roce_pkt
pkt(uint8_t opcode, uint32_t psn)
{
	return (struct roce_pkt){.opcode = opcode, .psn = psn};
}

static void
arrive(struct wire *w, uint8_t opcode, uint32_t psn, uint32_t len)
{
	wire_pkt(w, pkt(opcode, psn), data, len);
}

static struct roce_pkt
rdma(const struct wire *w, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	return (struct roce_pkt){.opcode = opcode, .psn = psn, .va = WIRE_VA + off,
				 .rkey = w->key, .dma_len = len, .imm_be = 0x55667788};
}

static void
post_recvs(struct wire *w, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		wire_post_recv(w, RECV_AT(i), 3000);
}

/** The next completion: that receive, of so many bytes of data. */
static void
expect_recv(struct wire *w, uint32_t index, uint32_t len)
{
	struct ring_cqe e = wire_cqe(w, WC_SUCCESS);

	ck_assert_uint_eq(e.wqe_index, index);
	ck_assert_uint_eq(e.byte_len, len);
	ck_assert_uint_eq(e.src_opcode, (uint32_t)RING_WC_RECV << 24 | WIRE_PEER_QPN);
	ck_assert_int_eq(memcmp(w->mem + RECV_AT(index), data, len < 1024 ? len : 1024), 0);
}

/** A message was dropped whose receive is the n-th: which one does the next message take? */
static uint32_t
after_drop(struct wire *w, uint32_t n, bool rq, enum wc_status why)
{
	if (rq)
		return n;
	ck_assert_uint_eq(wire_cqe(w, why).wqe_index, n);
	return n + 1;
}

/* ---- what a message is ---------- */

START_TEST(send__completes_without_an_answer)
{
	struct wire *w = start((struct wire_params){0}, _i);
	struct roce_pkt p = pkt(ROCE_UC_SEND_ONLY_IMM, 0x200);
	struct ring_cqe e;

	post_recvs(w, 3);
	p.ackreq = true; /* means nothing here */
	p.se = true;
	p.imm_be = 0x11223344;
	wire_pkt(w, p, data, 9);
	e = wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.imm, 0x11223344);
	ck_assert_uint_eq(atomic_load(&e.tag) & ~(uint32_t)RING_CQE_PHASE,
			  RING_CQE_RECV | RING_CQE_WITH_IMM | RING_CQE_SOLICITED);
	arrive(w, ROCE_UC_SEND_FIRST, 0x201, 1024);
	arrive(w, ROCE_UC_SEND_MIDDLE, 0x202, 1024);
	wire_no_cqe(w);
	arrive(w, ROCE_UC_SEND_LAST, 0x203, 7);
	expect_recv(w, 1, 2055);
	arrive(w, ROCE_UC_SEND_ONLY, 0x204, 0);
	expect_recv(w, 2, 0);
	end(w);
}
END_TEST

START_TEST(write__places_without_a_word)
{
	struct wire *w = start((struct wire_params){0}, true);
	struct roce_pkt last = rdma(w, ROCE_UC_WRITE_LAST_IMM, 0x201, 0, 0);
	struct ring_cqe e;

	wire_pkt(w, rdma(w, ROCE_UC_WRITE_FIRST, 0x200, 100, 1100), data, 1024);
	post_recvs(w, 1);
	wire_pkt(w, last, data + 1024, 76);
	ck_assert_int_eq(memcmp(w->mem + 100, data, 1100), 0);
	e = wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.src_opcode >> 24, RING_WC_RECV_RDMA_WITH_IMM);
	ck_assert_uint_eq(e.byte_len, 1100);
	ck_assert_uint_eq(e.imm, 0x55667788);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_ONLY, 0x202, 5000, 33), data, 33);
	ck_assert_int_eq(memcmp(w->mem + 5000, data, 33), 0);
	last = rdma(w, ROCE_UC_WRITE_ONLY, 0x203, 0, 0);
	last.rkey = 0xdead; /* of no bytes: not looked at (C-16) */
	wire_pkt(w, last, NULL, 0);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UC_DROPPED), 0);
	end(w);
}
END_TEST

START_TEST(ROCE_C_8__other_classes_are_dropped)
{
	static const uint8_t other[] = {ROCE_RC_SEND_ONLY, ROCE_RC_READ_REQ, ROCE_RC_ACK,
					ROCE_UD_SEND_ONLY, ROCE_XRC_SEND_ONLY};
	struct wire *w = start((struct wire_params){0}, _i);

	post_recvs(w, 1);
	for (unsigned int i = 0; i < sizeof(other); i++) {
		bool payload = other[i] != ROCE_RC_READ_REQ && other[i] != ROCE_RC_ACK;

		wire_pkt(w, rdma(w, other[i], 0x200, 0, 8), data, payload ? 8 : 0);
		ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_QP_TYPE), i + 1);
	}
	arrive(w, ROCE_UC_SEND_ONLY, 0x200, 8);
	expect_recv(w, 0, 8);
	end(w);
}
END_TEST

START_TEST(comm_est__once)
{
	struct wire *w = start((struct wire_params){.stop_at_rtr = true}, true);

	post_recvs(w, 2);
	arrive(w, ROCE_UC_SEND_ONLY, 0x200, 8);
	arrive(w, ROCE_UC_SEND_ONLY, 0x201, 8);
	expect_recv(w, 0, 8);
	expect_recv(w, 1, 8);
	ck_assert_uint_eq(w->num_events, 1);
	ck_assert(wire_event(w, VERBS_EVENT_COMM_EST));
	end(w);
}
END_TEST

/* ---- loss ---------- */

START_TEST(ROCE_C_47__lost_first)
{
	struct wire *w = start((struct wire_params){0}, _i);

	post_recvs(w, 2);
	arrive(w, ROCE_UC_SEND_MIDDLE, 0x201, 1024);
	arrive(w, ROCE_UC_SEND_LAST, 0x202, 8);
	wire_no_cqe(w);
	ck_assert_uint_eq(w->mem[0] | w->mem[1023], 0);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UC_DROPPED), 2);
	arrive(w, ROCE_UC_SEND_ONLY, 0x203, 8);
	expect_recv(w, 0, 8);
	arrive(w, ROCE_UC_SEND_FIRST, 0x400, 1024); /* whatever its PSN */
	arrive(w, ROCE_UC_SEND_LAST, 0x401, 8);
	expect_recv(w, 1, 1032);
	end(w);
}
END_TEST

START_TEST(ROCE_C_47__lost_first_of_a_write)
{
	struct wire *w = start((struct wire_params){0}, true);

	wire_pkt(w, rdma(w, ROCE_UC_WRITE_ONLY, 0x200, 0, 8), data, 8);
	wire_pkt(w, pkt(ROCE_UC_WRITE_LAST, 0x202), data + 100, 100); /* it would go on there */
	ck_assert_int_eq(memcmp(w->mem, data, 8), 0);
	ck_assert_uint_eq(w->mem[8], 0);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_ONLY, 0x203, 64, 8), data, 8);
	ck_assert_int_eq(memcmp(w->mem + 64, data, 8), 0);
	end(w);
}
END_TEST

/* A packet inside is missing: what is left of the message is dropped, and the next one arrives. */
START_TEST(ROCE_C_47__lost_middle)
{
	bool rq = _i & 1;
	struct wire *w = start((struct wire_params){0}, rq);
	uint32_t next;

	post_recvs(w, 3);
	arrive(w, ROCE_UC_SEND_FIRST, 0x200, 1024);
	arrive(w, _i & 2 ? ROCE_UC_SEND_MIDDLE : ROCE_UC_SEND_LAST, 0x202, _i & 2 ? 1024 : 8);
	next = after_drop(w, 0, rq, WC_REM_INV_REQ_ERR);
	wire_no_cqe(w);
	arrive(w, ROCE_UC_SEND_LAST, 0x203, 8); /* of the same, in sequence again */
	wire_no_cqe(w);
	arrive(w, ROCE_UC_SEND_ONLY, 0x204, 20);
	expect_recv(w, next, 20);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	ck_assert_uint_eq(w->num_events, 0);
	end(w);
}
END_TEST

/* The last packet is missing, and the next message comes: it begins at the receive's start. */
START_TEST(ROCE_C_47__first_inside_a_message)
{
	bool rq = _i & 1, write = _i & 2;
	struct wire *w = start((struct wire_params){0}, rq);
	uint32_t next;

	post_recvs(w, 3);
	if (write)
		wire_pkt(w, rdma(w, ROCE_UC_WRITE_FIRST, 0x200, 20000, 2000), data, 1024);
	else
		arrive(w, ROCE_UC_SEND_FIRST, 0x200, 1024);
	arrive(w, ROCE_UC_SEND_FIRST, 0x202, 1024);
	next = write ? 0 : after_drop(w, 0, rq, WC_REM_INV_REQ_ERR);
	arrive(w, ROCE_UC_SEND_LAST, 0x203, 100);
	expect_recv(w, next, 1124);
	end(w);
}
END_TEST

/* Middle and Last go on with their own kind alone. */
START_TEST(sequence__kinds_do_not_mix)
{
	struct wire *w = start((struct wire_params){0}, true);

	post_recvs(w, 2);
	arrive(w, ROCE_UC_SEND_FIRST, 0x200, 1024);
	wire_pkt(w, pkt(ROCE_UC_WRITE_LAST, 0x201), data, 8);
	arrive(w, ROCE_UC_SEND_LAST, 0x202, 8);
	wire_no_cqe(w);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_FIRST, 0x203, 20000, 1100), data, 1024);
	arrive(w, ROCE_UC_SEND_LAST, 0x204, 8);
	wire_no_cqe(w);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	arrive(w, ROCE_UC_SEND_ONLY, 0x205, 8);
	expect_recv(w, 0, 8);
	end(w);
}
END_TEST

START_TEST(ROCE_C_48__no_receive)
{
	struct wire *w = start((struct wire_params){0}, _i);

	arrive(w, ROCE_UC_SEND_ONLY, 0x200, 8);
	arrive(w, ROCE_UC_SEND_FIRST, 0x201, 1024);
	post_recvs(w, 2);
	arrive(w, ROCE_UC_SEND_LAST, 0x202, 8); /* too late for this one */
	wire_no_cqe(w);
	ck_assert_uint_eq(w->mem[0], 0);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_RNR_SENT), 0);
	arrive(w, ROCE_UC_SEND_ONLY, 0x203, 8);
	expect_recv(w, 0, 8);
	end(w);
}
END_TEST

/* A WRITE with immediate takes its receive last: what came before is placed. */
START_TEST(ROCE_C_48__no_receive_for_the_immediate)
{
	struct wire *w = start((struct wire_params){0}, _i);

	wire_pkt(w, rdma(w, ROCE_UC_WRITE_FIRST, 0x200, 0, 1100), data, 1024);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_LAST_IMM, 0x201, 0, 0), data + 1024, 76);
	ck_assert_int_eq(memcmp(w->mem, data, 1024), 0);
	ck_assert_uint_eq(w->mem[1024], 0);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_ONLY_IMM, 0x202, 2000, 8), data, 8);
	ck_assert_uint_eq(w->mem[2000], 0);
	end(w);
}
END_TEST

/* ---- what is refused ---------- */

START_TEST(write__not_allowed)
{
	struct wire *w = start((struct wire_params){.access = MR_REMOTE_READ}, _i);

	post_recvs(w, 1);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_ONLY, 0x200, 0, 8), data, 8);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_ONLY_IMM, 0x201, 0, 8), data, 8);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_FIRST, 0x202, 0, 2000), data, 1024);
	wire_pkt(w, pkt(ROCE_UC_WRITE_LAST, 0x203), data, 976);
	ck_assert_uint_eq(w->mem[0], 0);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	ck_assert_uint_eq(w->num_events, 0);
	end(w);
}
END_TEST

/* A wrong key, and one byte too many: nothing of the message is written (C-33). */
START_TEST(write__bad_key)
{
	struct wire *w = start((struct wire_params){0}, _i);
	struct roce_pkt p = rdma(w, ROCE_UC_WRITE_ONLY, 0x200, 0, 8);

	p.rkey ^= 1;
	wire_pkt(w, p, data, 8);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_FIRST, 0x201, WIRE_MEM - 1100, 1101), data, 1024);
	wire_pkt(w, pkt(ROCE_UC_WRITE_LAST, 0x202), data, 77);
	ck_assert_uint_eq(w->mem[0] | w->mem[WIRE_MEM - 1100], 0);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	ck_assert_uint_eq(w->num_events, 0);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_ONLY, 0x203, 0, 8), data, 8);
	ck_assert_int_eq(memcmp(w->mem, data, 8), 0);
	end(w);
}
END_TEST

/* With immediate the receive was taken already: its own queue's waits, a shared one's is over. */
START_TEST(write__bad_key_with_immediate)
{
	struct wire *w = start((struct wire_params){0}, _i);
	struct roce_pkt p = rdma(w, ROCE_UC_WRITE_ONLY_IMM, 0x200, 8000, 8);
	uint32_t next;

	post_recvs(w, 2);
	p.rkey ^= 1;
	wire_pkt(w, p, data, 8);
	next = after_drop(w, 0, _i, WC_REM_ACCESS_ERR);
	arrive(w, ROCE_UC_SEND_ONLY, 0x201, 8);
	expect_recv(w, next, 8);
	end(w);
}
END_TEST

START_TEST(length__of_the_place)
{
	static const struct {
		uint8_t opcode;
		uint32_t len;
	} bad[] = {{ROCE_UC_SEND_FIRST, 1020},
		   {ROCE_UC_SEND_ONLY, 1025},
		   {ROCE_UC_SEND_FIRST, 1028}};
	struct wire *w = start((struct wire_params){0}, true);

	post_recvs(w, 1);
	for (uint32_t i = 0; i < 3; i++) {
		arrive(w, bad[i].opcode, 0x200 + 2 * i, bad[i].len);
		arrive(w, ROCE_UC_SEND_LAST, 0x201 + 2 * i, 8);
	}
	wire_no_cqe(w);
	arrive(w, ROCE_UC_SEND_FIRST, 0x210, 1024);
	arrive(w, ROCE_UC_SEND_LAST, 0x211, 0); /* Last has a byte at least */
	wire_no_cqe(w);
	arrive(w, ROCE_UC_SEND_ONLY, 0x212, 8);
	expect_recv(w, 0, 8);
	end(w);
}
END_TEST

START_TEST(length__of_the_write)
{
	struct wire *w = start((struct wire_params){0}, true);

	post_recvs(w, 1);
	/* more than it said, less, and what Only says of itself */
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_FIRST, 0x200, 0, 1100), data, 1024);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_LAST_IMM, 0x201, 0, 0), data, _i ? 77 : 75);
	ck_assert_uint_eq(w->mem[1024], 0);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_ONLY, 0x202, 2000, 8), data, _i ? 9 : 7);
	ck_assert_uint_eq(w->mem[2000], 0);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_FIRST, 0x203, 4000, 1024), data, 1024);
	ck_assert_uint_eq(w->mem[4000], 0);
	wire_pkt(w, rdma(w, ROCE_UC_WRITE_FIRST, 0x204, 4000, 0x80000001), data, 1024);
	ck_assert_uint_eq(w->mem[4000], 0);
	end(w);
}
END_TEST

START_TEST(length__of_the_receive)
{
	struct wire *w = start((struct wire_params){0}, _i);
	uint32_t next;

	post_recvs(w, 2);
	arrive(w, ROCE_UC_SEND_FIRST, 0x200, 1024);
	arrive(w, ROCE_UC_SEND_MIDDLE, 0x201, 1024);
	arrive(w, ROCE_UC_SEND_LAST, 0x202, 953);
	next = after_drop(w, 0, _i, WC_REM_INV_REQ_ERR);
	ck_assert_uint_eq(w->mem[3000], 0);
	arrive(w, ROCE_UC_SEND_ONLY, 0x203, 8);
	expect_recv(w, next, 8);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	end(w);
}
END_TEST

/* The receive request's own fault is an error of the QP. */
START_TEST(receive__bad)
{
	struct wire *w = start((struct wire_params){0}, _i & 1);
	struct ring_rwqe q = {.num_slots = 1, .num_sge = _i & 2 ? 1 : RING_RWQE_SGES + 1,
			      .sge = {{WIRE_VA, 64, w->key ^ 1}}};

	post_recvs(w, 2);
	memcpy(w->rq, &q, sizeof(q));
	arrive(w, ROCE_UC_SEND_ONLY, 0x200, 8);
	wire_cqe(w, _i & 2 ? WC_LOC_PROT_ERR : WC_LOC_QP_OP_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	if (_i & 1)
		wire_cqe(w, WC_WR_FLUSH_ERR);
	else
		ck_assert(wire_event(w, VERBS_EVENT_QP_LAST_WQE_REACHED));
	arrive(w, ROCE_UC_SEND_ONLY, 0x201, 8);
	end(w);
}
END_TEST

/* The receive that a dropped message left is flushed, too: in order, once. */
START_TEST(receive__kept_one_is_flushed)
{
	struct wire *w = start((struct wire_params){0}, true);

	post_recvs(w, 2);
	arrive(w, ROCE_UC_SEND_FIRST, 0x200, 1024);
	arrive(w, ROCE_UC_SEND_LAST, 0x202, 8);
	wire_no_cqe(w);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	ck_assert_uint_eq(wire_cqe(w, WC_WR_FLUSH_ERR).wqe_index, 0);
	ck_assert_uint_eq(wire_cqe(w, WC_WR_FLUSH_ERR).wqe_index, 1);
	end(w);
}
END_TEST

START_TEST(ROCE_C_66__strangers_are_dropped)
{
	struct wire *w = start((struct wire_params){0}, true);

	post_recvs(w, 1);
	w->peer.b[15]++;
	arrive(w, ROCE_UC_SEND_ONLY, 0x200, 8);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_ADDRESS), 1);
	w->peer.b[15]--;
	end(w);
}
END_TEST

/* ---- foreign memory ---------- */

static void
post_far(struct wire *w, uint32_t off, uint32_t len)
{
	struct ring_rwqe q = {.num_slots = 1, .num_sge = 1,
			      .sge = {{WIRE_VA + off, len, w->far_key}}};
	uint32_t i = w->rq_tail & (WIRE_SLOTS - 1);

	wire_post_recv(w, 0, 8);
	memcpy(w->rq + i * RING_SLOT_SIZE, &q, sizeof(q));
}

START_TEST(foreign__in_order)
{
	struct wire *w = start((struct wire_params){0}, _i);

	post_far(w, 0, 3000);
	post_recvs(w, 2);
	arrive(w, ROCE_UC_SEND_FIRST, 0x200, 1024);
	arrive(w, ROCE_UC_SEND_LAST, 0x201, 8);
	arrive(w, ROCE_UC_SEND_ONLY, 0x202, 8);
	wire_no_cqe(w);
	wire_io(w, 0);
	wire_no_cqe(w);
	wire_io(w, 0);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, 1032);
	ck_assert_int_eq(memcmp(w->far, data, 1024), 0);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).wqe_index, 1);
	end(w);
}
END_TEST

START_TEST(foreign__fails)
{
	struct wire *w = start((struct wire_params){0}, true);
	struct roce_pkt p = rdma(w, ROCE_UC_WRITE_FIRST, 0x200, 0, 1100);

	p.rkey = w->far_key;
	post_far(w, 0, 3000);
	wire_pkt(w, p, data, 1024);
	wire_pkt(w, pkt(ROCE_UC_WRITE_LAST, 0x201), data + 1024, 76);
	wire_io(w, -EFAULT); /* a WRITE's: nobody hears of it, and its rest goes no further */
	ck_assert_uint_eq(w->num_io, 0);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	ck_assert_uint_eq(w->num_events, 0);
	arrive(w, ROCE_UC_SEND_ONLY, 0x202, 8);
	wire_io(w, -EFAULT); /* a receive's */
	wire_cqe(w, WC_LOC_PROT_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	end(w);
}
END_TEST

/* No io is free: the packet waits for its turn, its receive taken once, and all behind it. */
START_TEST(foreign__waits_for_an_io)
{
	struct wire *w = start((struct wire_params){0}, _i);

	post_far(w, 0, 3000);
	post_recvs(w, 2);
	w->vw.ios_used = w->vw.ios;
	wire_pkt_only(w, pkt(ROCE_UC_SEND_FIRST, 0x200), data, 1024);
	wire_pkt_only(w, pkt(ROCE_UC_SEND_LAST, 0x201), data, 8);
	wire_pkt_only(w, pkt(ROCE_UC_SEND_ONLY, 0x202), data, 8);
	wire_go(w);
	wire_no_cqe(w);
	w->vw.ios_used = 0;
	wire_go(w);
	wire_io(w, 0);
	wire_io(w, 0);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, 1032);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).wqe_index, 1);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_OUT_OF_SEQUENCE), 0);
	end(w);
}
END_TEST

/* ---- states ---------- */

START_TEST(reset__forgets_the_message)
{
	struct wire *w = start((struct wire_params){0}, true);

	post_recvs(w, 1);
	arrive(w, ROCE_UC_SEND_FIRST, 0x200, 1024);
	wire_connect_again(w);
	wire_post_recv(w, RECV_AT(1), 3000);
	arrive(w, ROCE_UC_SEND_LAST, 0x201, 8);
	wire_no_cqe(w);
	arrive(w, ROCE_UC_SEND_ONLY, 0x202, 8);
	expect_recv(w, 1, 8);
	end(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_uc");
	TCase *c = tcase_create("receiver");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, send__completes_without_an_answer, 0, 2);
	tcase_add_test(c, write__places_without_a_word);
	tcase_add_loop_test(c, ROCE_C_8__other_classes_are_dropped, 0, 2);
	tcase_add_test(c, comm_est__once);
	tcase_add_loop_test(c, ROCE_C_47__lost_first, 0, 2);
	tcase_add_test(c, ROCE_C_47__lost_first_of_a_write);
	tcase_add_loop_test(c, ROCE_C_47__lost_middle, 0, 4);
	tcase_add_loop_test(c, ROCE_C_47__first_inside_a_message, 0, 4);
	tcase_add_test(c, sequence__kinds_do_not_mix);
	tcase_add_loop_test(c, ROCE_C_48__no_receive, 0, 2);
	tcase_add_loop_test(c, ROCE_C_48__no_receive_for_the_immediate, 0, 2);
	tcase_add_loop_test(c, write__not_allowed, 0, 2);
	tcase_add_loop_test(c, write__bad_key, 0, 2);
	tcase_add_loop_test(c, write__bad_key_with_immediate, 0, 2);
	tcase_add_test(c, length__of_the_place);
	tcase_add_loop_test(c, length__of_the_write, 0, 2);
	tcase_add_loop_test(c, length__of_the_receive, 0, 2);
	tcase_add_loop_test(c, receive__bad, 0, 4);
	tcase_add_test(c, receive__kept_one_is_flushed);
	tcase_add_test(c, ROCE_C_66__strangers_are_dropped);
	tcase_add_loop_test(c, foreign__in_order, 0, 2);
	tcase_add_test(c, foreign__fails);
	tcase_add_loop_test(c, foreign__waits_for_an_io, 0, 2);
	tcase_add_test(c, reset__forgets_the_message);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
