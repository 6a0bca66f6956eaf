/* SPDX-License-Identifier: BSD-3-Clause */
/* Requester rules, each named by its item of the conformance list in docs/wire.md. */
#include <errno.h>

#include "wire_req.h"

static struct wire *
start(struct wire_params p)
{
	if (p.timeout == 0)
		p.timeout = 10;
	return wire_req_start(p);
}

static void
post_write(struct wire *w, uint32_t len)
{
	wire_post(w, RING_WR_RDMA_WRITE, 0, len, 0, RADDR, RKEY);
}

static void
post_send(struct wire *w, uint32_t len)
{
	wire_post(w, RING_WR_SEND, 0, len, 0, 0, 0);
}

static void
post_read(struct wire *w, uint32_t len)
{
	wire_post(w, RING_WR_RDMA_READ, 16384, len, 0, RADDR, RKEY);
}

static void
read_resp(struct wire *w, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	wire_pkt(w, (struct roce_pkt){.opcode = opcode, .psn = psn, .syndrome = ACK31, .msn = 2},
		 data + off, len);
}

START_TEST(ROCE_C_12__pads)
{
	static const uint32_t len[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1023, 1024, 1025};
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p;

	post_send(w, len[_i]);
	wire_expect(w, len[_i] > 1024 ? ROCE_RC_SEND_FIRST : ROCE_RC_SEND_ONLY, 0x101, &p);
	ck_assert_uint_eq(p.pad, roce_pad(len[_i] > 1024 ? 1024 : len[_i]));
	ck_assert_mem_eq(p.payload, data, p.payload_len);
	for (uint32_t i = 0; i < p.pad; i++)
		ck_assert_uint_eq(p.payload[p.payload_len + i], 0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_14__three_packets_over_the_wrap)
{
	struct wire *w = wire_new(&(struct wire_params){.sq_psn = 0xffffff, .timeout = 10});
	struct roce_pkt p;

	wire_pattern(w->mem, 4096, 1);
	wire_post(w, RING_WR_RDMA_WRITE, 0, 2049, 0, RADDR, RKEY);
	wire_expect(w, ROCE_RC_WRITE_FIRST, 0xffffff, &p);
	ck_assert(!p.ackreq);
	ck_assert_uint_eq(p.va, RADDR);
	ck_assert_uint_eq(p.rkey, RKEY);
	ck_assert_uint_eq(p.dma_len, 2049);
	wire_expect(w, ROCE_RC_WRITE_MIDDLE, 0, NULL);
	wire_expect(w, ROCE_RC_WRITE_LAST, 1, &p);
	ck_assert(p.ackreq);
	ck_assert_uint_eq(p.payload_len, 1);
	wire_ack(w, 1, ACK31, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_23__coalesced_ack)
{
	struct wire *w = start((struct wire_params){0});

	for (uint32_t i = 0; i < 4; i++)
		post_write(w, 8);
	wire_ack(w, 0x103, ACK31, 4);
	for (uint32_t i = 0; i < 3; i++)
		wire_cqe(w, WC_SUCCESS);
	wire_no_cqe(w);
	wire_ack(w, 0x102, ACK31, 4); /* old: ignored */
	ck_assert_uint_eq(wire_counter(w, ROCE_C_GHOST_ACK), 1);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_24__read_response_acknowledges_a_send)
{
	struct wire *w = start((struct wire_params){0});

	post_send(w, 8);
	post_read(w, 100);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x102, 0, 100);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, 100);
	ck_assert_mem_eq(w->mem + 16384, data, 100);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_25__ack_beyond_a_read)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});

	post_read(w, 100);
	post_send(w, 8);
	wire_expect(w, ROCE_RC_READ_REQ, 0x101, NULL);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x102, NULL);
	wire_ack(w, 0x102, ACK31, 3);
	wire_no_cqe(w);
	wire_expect(w, ROCE_RC_READ_REQ, 0x101, NULL);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x101, 0, 100);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_SUCCESS); /* what the ACK said is not forgotten */
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_26__lost_read_response)
{
	struct wire *w = start((struct wire_params){.go_back_n = _i, .retry_cnt = 1});
	struct roce_pkt p;

	post_read(w, 3000);
	wire_expect(w, ROCE_RC_READ_REQ, 0x101, NULL);
	read_resp(w, ROCE_RC_READ_RESP_FIRST, 0x101, 0, 1024);
	read_resp(w, ROCE_RC_READ_RESP_LAST, 0x103, 2048, 952);
	wire_expect(w, ROCE_RC_READ_REQ, 0x102, &p);
	ck_assert_uint_eq(p.va, RADDR + 1024);
	/* what came early is kept, unless told not to */
	ck_assert_uint_eq(p.dma_len, _i ? 1976 : 1024);
	if (_i) {
		read_resp(w, ROCE_RC_READ_RESP_MIDDLE, 0x102, 1024, 1024);
		read_resp(w, ROCE_RC_READ_RESP_LAST, 0x103, 2048, 952);
	} else {
		read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x102, 1024, 1024);
	}
	wire_cqe(w, WC_SUCCESS);
	ck_assert_mem_eq(w->mem + 16384, data, 3000);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_28_and_71__rnr_wait)
{
	struct wire *w = start((struct wire_params){.rnr_retry = 2, .retry_cnt = 3});

	post_send(w, 8);
	post_send(w, 8);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x101, NULL);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x102, NULL);
	wire_ack(w, 0x101, roce_syn_rnr(20), 1); /* 10.24 ms */
	wire_ack(w, 0x101, ROCE_NAK_PSN_SEQ, 1);
	wire_wait(w, 10230000);
	wire_expect_none(w);
	wire_wait(w, 20000);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x101, NULL);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x102, NULL);
	wire_ack(w, 0x102, ACK31, 3);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_SUCCESS);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_29__rnr_retries)
{
	struct wire *w = start((struct wire_params){.rnr_retry = (uint8_t)_i});
	unsigned int tries = _i == 7 ? 20 : (unsigned int)_i + 1;

	post_send(w, 8);
	for (unsigned int i = 0; i < tries; i++) {
		wire_no_cqe(w);
		wire_expect(w, ROCE_RC_SEND_ONLY, 0x101, NULL);
		wire_ack(w, 0x101, roce_syn_rnr(1), 1);
		wire_wait(w, 20000);
	}
	if (_i == 7)
		wire_expect(w, ROCE_RC_SEND_ONLY, 0x101, NULL);
	else
		wire_cqe(w, WC_RNR_RETRY_EXC_ERR);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_30__retries)
{
	struct wire *w = start((struct wire_params){.retry_cnt = (uint8_t)_i});
	uint64_t start_at;

	post_write(w, 8);
	post_write(w, 8);
	for (int i = 0; i <= _i; i++) {
		wire_no_cqe(w);
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101, NULL);
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x102, NULL);
		wire_expect_none(w);
		for (start_at = w->now; w->num_out == 0 && ring_cq_peek(&w->cons) == NULL;)
			wire_wait(w, 4096);
		/* C-31: not before T, not after 4 T */
		ck_assert_uint_ge(w->now - start_at, T(10));
		ck_assert_uint_le(w->now - start_at, 4 * T(10));
	}
	wire_cqe(w, WC_RETRY_EXC_ERR);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	wire_expect_none(w);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_30__progress_gives_retries_back)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});

	post_write(w, 8);
	post_write(w, 8);
	wire_wait(w, T(10) + 5000);
	wire_ack(w, 0x101, ACK31, 2);
	wire_wait(w, T(10) + 5000);
	wire_cqe(w, WC_SUCCESS);
	wire_no_cqe(w);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_32__fatal_naks)
{
	static const struct {
		uint8_t syndrome;
		enum wc_status status;
	} nak[] = {
		{ROCE_NAK_INVALID_REQ, WC_REM_INV_REQ_ERR},
		{ROCE_NAK_REM_ACCESS, WC_REM_ACCESS_ERR},
		{ROCE_NAK_REM_OP, WC_REM_OP_ERR},
		{0x45, WC_BAD_RESP_ERR}, /* C-67 */
	};
	struct wire *w = start((struct wire_params){0});

	for (uint32_t i = 0; i < 3; i++)
		post_write(w, 8);
	wire_ack(w, 0x102, nak[_i].syndrome, 2);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, nak[_i].status);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_43__credits)
{
	struct wire *w = wire_new(&(struct wire_params){.timeout = 10});

	for (uint32_t i = 0; i < 5; i++)
		post_send(w, 8);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x100, NULL); /* the probe */
	wire_expect_none(w);
	wire_ack(w, 0x100, roce_syn_ack(1), 1); /* one more, and a probe */
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x101, NULL);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x102, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x101, ACK31, 2);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x103, NULL);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x104, NULL);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_44__drain)
{
	struct wire *w = start((struct wire_params){0});

	post_write(w, 8);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101, NULL);
	ck_assert_int_eq(wire_modify(w, RING_QPS_SQD), 0);
	post_write(w, 8);
	wire_expect_none(w);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RTS), -EBUSY);
	ck_assert_uint_eq(w->num_events, 0);
	wire_ack(w, 0x101, ACK31, 2);
	wire_cqe(w, WC_SUCCESS);
	ck_assert(wire_event(w, VERBS_EVENT_SQ_DRAINED));
	ck_assert_uint_eq(w->num_events, 1);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RTS), 0);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x102, NULL);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_68__two_naks_one_retry)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});

	for (uint32_t i = 0; i < 3; i++)
		post_write(w, 8);
	wire_ack(w, 0x101, ROCE_NAK_PSN_SEQ, 1);
	wire_ack(w, 0x101, ROCE_NAK_PSN_SEQ, 1);
	wire_ack(w, 0x101, ROCE_NAK_PSN_SEQ, 1);
	wire_no_cqe(w);
	wire_ack(w, 0x103, ACK31, 4);
	for (uint32_t i = 0; i < 3; i++)
		wire_cqe(w, WC_SUCCESS);
	wire_free(w);
}
END_TEST

START_TEST(fence__waits_for_reads)
{
	struct wire *w = start((struct wire_params){0});

	post_read(w, 8);
	wire_post(w, RING_WR_SEND, 0, 8, RING_WR_FENCE, 0, 0);
	wire_expect(w, ROCE_RC_READ_REQ, 0x101, NULL);
	wire_expect_none(w);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x101, 0, 8);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x102, NULL);
	wire_free(w);
}
END_TEST

START_TEST(depth__stalls)
{
	struct wire *w = start((struct wire_params){.rd_atomic = 2});

	for (uint32_t i = 0; i < 3; i++)
		post_read(w, 8);
	wire_expect(w, ROCE_RC_READ_REQ, 0x101, NULL);
	wire_expect(w, ROCE_RC_READ_REQ, 0x102, NULL);
	wire_expect_none(w);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x101, 0, 8);
	wire_expect(w, ROCE_RC_READ_REQ, 0x103, NULL);
	wire_free(w);
}
END_TEST

START_TEST(window__caps_what_is_in_flight)
{
	struct wire *w = start((struct wire_params){.max_inflight = 4096});
	struct roce_pkt p;

	post_write(w, 8000);
	wire_expect(w, ROCE_RC_WRITE_FIRST, 0x101, &p);
	ck_assert(p.ackreq); /* a quarter of the window */
	for (uint32_t i = 0x102; i < 0x105; i++)
		wire_expect(w, ROCE_RC_WRITE_MIDDLE, i, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x102, ACK31, 1);
	wire_expect(w, ROCE_RC_WRITE_MIDDLE, 0x105, NULL);
	wire_expect(w, ROCE_RC_WRITE_MIDDLE, 0x106, NULL);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/* Without payload too: each counts for its headers. */
START_TEST(window__caps_empty_packets)
{
	struct wire *w = start((struct wire_params){.max_inflight = 512});
	uint32_t i;

	for (i = 0; i < 12; i++)
		post_write(w, 0);
	for (i = 0x101; i < 0x109; i++)
		wire_expect(w, ROCE_RC_WRITE_ONLY, i, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x103, ACK31, 3);
	for (; i < 0x10c; i++)
		wire_expect(w, ROCE_RC_WRITE_ONLY, i, NULL);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/* As rxe answers: a READ of the whole would flood us, and begin again at each hole. */
START_TEST(window__asks_for_a_read_in_pieces)
{
	struct wire *w = start((struct wire_params){.max_inflight = 4096, .retry_cnt = 1,
						    .rd_atomic = 1});
	struct roce_pkt p;

	post_read(w, 8000);
	wire_expect(w, ROCE_RC_READ_REQ, 0x101, &p);
	ck_assert_uint_eq(p.dma_len, 4096);
	wire_expect_none(w);
	read_resp(w, ROCE_RC_READ_RESP_FIRST, 0x101, 0, 1024);
	read_resp(w, ROCE_RC_READ_RESP_MIDDLE, 0x102, 1024, 1024);
	wire_expect_none(w);
	/* what is asked for again is no more than that piece */
	read_resp(w, ROCE_RC_READ_RESP_LAST, 0x104, 3072, 1024);
	wire_expect(w, ROCE_RC_READ_REQ, 0x103, &p);
	ck_assert_uint_eq(p.dma_len, 1024);
	wire_expect_none(w);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x103, 2048, 1024);
	wire_expect(w, ROCE_RC_READ_REQ, 0x105, &p);
	ck_assert_uint_eq(p.dma_len, 8000 - 4096);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/* With a depth for it the next piece is asked for before the one under way has all come. */
START_TEST(window__pieces_of_a_read_overlap)
{
	struct wire *w = start((struct wire_params){.max_inflight = 4096, .retry_cnt = 7,
						    .rd_atomic = 2});
	struct roce_pkt p;

	post_read(w, 7 * 1024);
	wire_expect(w, ROCE_RC_READ_REQ, 0x101, &p);
	ck_assert_uint_eq(p.dma_len, 2048);
	wire_expect(w, ROCE_RC_READ_REQ, 0x103, &p);
	ck_assert_uint_eq(p.dma_len, 2048);
	ck_assert_uint_eq(p.va, RADDR + 2048);
	wire_expect_none(w); /* two are the depth */
	read_resp(w, ROCE_RC_READ_RESP_FIRST, 0x101, 0, 1024);
	wire_expect_none(w);
	read_resp(w, ROCE_RC_READ_RESP_LAST, 0x102, 1024, 1024);
	wire_expect(w, ROCE_RC_READ_REQ, 0x105, &p);
	ck_assert_uint_eq(p.dma_len, 2048);
	/* Nothing more comes: asked for again by the pieces that the peer knows. */
	wire_wait(w, T(10) + 10000);
	wire_expect(w, ROCE_RC_READ_REQ, 0x103, &p);
	ck_assert_uint_eq(p.dma_len, 2048);
	wire_expect(w, ROCE_RC_READ_REQ, 0x105, &p);
	ck_assert_uint_eq(p.dma_len, 2048);
	wire_expect_none(w);
	read_resp(w, ROCE_RC_READ_RESP_FIRST, 0x103, 2048, 1024);
	wire_forget(w);
	read_resp(w, ROCE_RC_READ_RESP_FIRST, 0x105, 4096, 1024); /* 0x104 is lost */
	wire_expect(w, ROCE_RC_READ_REQ, 0x104, &p);
	ck_assert_uint_eq(p.dma_len, 1024);
	ck_assert_uint_eq(p.va, RADDR + 3 * 1024);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x104, 3 * 1024, 1024);
	wire_expect(w, ROCE_RC_READ_REQ, 0x107, &p);
	ck_assert_uint_eq(p.dma_len, 1024);
	wire_expect_none(w);
	read_resp(w, ROCE_RC_READ_RESP_LAST, 0x106, 5 * 1024, 1024);
	post_send(w, 0); /* it counts the pieces: the peer's MSN does */
	wire_forget(w);
	wire_no_cqe(w);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x107, 6 * 1024, 1024);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(((struct roce_qp *)w->qp)->rd_out, 0);
	ck_assert_mem_eq(w->mem + 16384, data, 7 * 1024);
	wire_ack(w, 0x108, ACK31, 6);
	wire_cqe(w, WC_SUCCESS);
	wire_free(w);
}
END_TEST

START_TEST(response__bad_length_and_type)
{
	struct wire *w = start((struct wire_params){0});

	post_read(w, 100);
	if (_i)
		wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_ATOMIC_ACK, .psn = 0x101,
					      .syndrome = ACK31}, NULL, 0);
	else
		read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x101, 0, 99);
	wire_cqe(w, _i ? WC_BAD_RESP_ERR : WC_LOC_LEN_ERR);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_BAD_RESPONSE), 1);
	wire_free(w);
}
END_TEST

START_TEST(gather__bad_key_fails_in_its_turn)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_wqe q = {.opcode = RING_WR_SEND, .num_slots = 1, .num_sge = 1,
			     .sge = {{WIRE_VA, 8, 0x999}}};

	post_write(w, 8);
	wire_post_raw(w, &q);
	wire_go(w);
	wire_no_cqe(w);
	wire_ack(w, 0x101, ACK31, 2);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_LOC_PROT_ERR);
	wire_free(w);
}
END_TEST

START_TEST(gather__foreign_memory)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_wqe q = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = 1, .sge = {{WIRE_VA, 2000, w->far_key}}};
	struct roce_pkt p;

	memcpy(w->far, data, 2000);
	wire_post_raw(w, &q);
	wire_go(w);
	wire_expect_none(w);
	wire_io(w, 0);
	wire_expect(w, ROCE_RC_SEND_FIRST, 0x101, &p);
	ck_assert_mem_eq(p.payload, data, 1024);
	wire_io(w, _i ? -EFAULT : 0);
	if (_i) {
		wire_cqe(w, WC_LOC_PROT_ERR);
	} else {
		wire_expect(w, ROCE_RC_SEND_LAST, 0x102, &p);
		ck_assert_mem_eq(p.payload, data + 1024, 976);
	}
	wire_free(w);
}
END_TEST

START_TEST(scatter__foreign_memory_and_atomic)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_wqe q = {.opcode = RING_WR_ATOMIC_FETCH_AND_ADD, .flags = RING_WR_SIGNALED,
			     .num_slots = 1, .num_sge = 1, .rkey = RKEY, .remote_addr = RADDR,
			     .atomic = {.compare_add = 3, .sge = {WIRE_VA, 8, w->far_key}}};
	struct roce_pkt p;
	uint64_t v;

	wire_post_raw(w, &q);
	wire_go(w);
	wire_expect(w, ROCE_RC_FETCH_ADD, 0x101, &p);
	ck_assert_uint_eq(p.swap_add, 3);
	ck_assert_uint_eq(p.compare, 0);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_ATOMIC_ACK, .psn = 0x101,
				      .syndrome = ACK31, .orig = 0x1122334455667788}, NULL, 0);
	wire_no_cqe(w);
	wire_io(w, 0);
	wire_cqe(w, WC_SUCCESS);
	memcpy(&v, w->far, 8);
	ck_assert_uint_eq(v, 0x1122334455667788);
	wire_free(w);
}
END_TEST

START_TEST(port__full_batch)
{
	struct wire *w = start((struct wire_params){0});

	w->tx_stuck = true;
	for (uint32_t i = 0; i < 200; i++) {
		struct ring_wqe q = {.opcode = RING_WR_RDMA_WRITE, .num_slots = 1, .num_sge = 1,
				     .sge = {{WIRE_VA, 8, w->key}}};
		wire_post_raw(w, &q);
	}
	wire_go(w);
	ck_assert_uint_eq(w->tx.n, NET_TX_BATCH);
	w->tx_stuck = false;
	wire_go(w);
	for (uint32_t i = 0; i < 200; i++)
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101 + i, NULL);
	wire_free(w);
}
END_TEST

START_TEST(neighbour__unknown)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});
	uint64_t l2 = atomic_load(&w->neigh->l2);

	atomic_store(&w->neigh->l2, (uint64_t)NET_NEIGH_INCOMPLETE << 48);
	post_write(w, 8);
	wire_expect_none(w);
	if (_i) { /* for ever */
		wire_wait(w, 3 * T(10));
		wire_cqe(w, WC_RETRY_EXC_ERR);
	} else {
		atomic_store(&w->neigh->l2, l2);
		roce_neigh_resolved(w->r, w->neigh, w->now);
		wire_go(w);
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101, NULL);
	}
	atomic_store(&w->neigh->l2, l2);
	wire_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_req");
	TCase *c = tcase_create("req");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, ROCE_C_12__pads, 0, 13);
	tcase_add_test(c, ROCE_C_14__three_packets_over_the_wrap);
	tcase_add_test(c, ROCE_C_23__coalesced_ack);
	tcase_add_test(c, ROCE_C_24__read_response_acknowledges_a_send);
	tcase_add_test(c, ROCE_C_25__ack_beyond_a_read);
	tcase_add_loop_test(c, ROCE_C_26__lost_read_response, 0, 2);
	tcase_add_test(c, ROCE_C_28_and_71__rnr_wait);
	tcase_add_loop_test(c, ROCE_C_29__rnr_retries, 0, 8);
	tcase_add_loop_test(c, ROCE_C_30__retries, 0, 8);
	tcase_add_test(c, ROCE_C_30__progress_gives_retries_back);
	tcase_add_loop_test(c, ROCE_C_32__fatal_naks, 0, 4);
	tcase_add_test(c, ROCE_C_43__credits);
	tcase_add_test(c, ROCE_C_44__drain);
	tcase_add_test(c, ROCE_C_68__two_naks_one_retry);
	tcase_add_test(c, fence__waits_for_reads);
	tcase_add_test(c, depth__stalls);
	tcase_add_test(c, window__caps_what_is_in_flight);
	tcase_add_test(c, window__caps_empty_packets);
	tcase_add_test(c, window__asks_for_a_read_in_pieces);
	tcase_add_test(c, window__pieces_of_a_read_overlap);
	tcase_add_loop_test(c, response__bad_length_and_type, 0, 2);
	tcase_add_test(c, gather__bad_key_fails_in_its_turn);
	tcase_add_loop_test(c, gather__foreign_memory, 0, 2);
	tcase_add_test(c, scatter__foreign_memory_and_atomic);
	tcase_add_test(c, port__full_batch);
	tcase_add_loop_test(c, neighbour__unknown, 0, 2);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
