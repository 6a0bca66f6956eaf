/* SPDX-License-Identifier: BSD-3-Clause */
/* Responder rules, each named by its item of the conformance list in docs/wire.md. */
#include <errno.h>

#include "wire.h"

#define ACK31 roce_syn_ack(ROCE_CREDIT_CODE_NONE)

static uint8_t data[8192];

static struct wire *
start(struct wire_params p)
{
	wire_pattern(data, sizeof(data), 3);
	return wire_new(&p);
}

static struct roce_pkt
req(uint8_t opcode, uint32_t psn)
{
	return (struct roce_pkt){.opcode = opcode, .psn = psn, .ackreq = true};
}

static struct roce_pkt
rdma(const struct wire *w, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	struct roce_pkt p = req(opcode, psn);

	p.va = WIRE_VA + off;
	p.rkey = w->key;
	p.dma_len = len;
	return p;
}

static struct roce_pkt
atomic(const struct wire *w, uint8_t opcode, uint32_t psn, uint32_t off, uint64_t swap_add,
	uint64_t compare)
{
	struct roce_pkt p = rdma(w, opcode, psn, off, 0);

	p.swap_add = swap_add;
	p.compare = compare;
	return p;
}

START_TEST(ROCE_C_7_and_8__strangers_are_dropped)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = req(ROCE_RC_SEND_ONLY, 0x200);

	p.dest_qpn = 0x778899;
	wire_pkt(w, p, data, 8);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_NO_QP), 1);
	wire_pkt(w, req(ROCE_UC_SEND_ONLY, 0x200), data, 8);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_QP_TYPE), 1);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_13__short_first)
{
	struct wire *w = start((struct wire_params){0});

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_FIRST, 0x200, 0, 2000), data, 1000);
	wire_expect_ack(w, 0x200, ROCE_NAK_INVALID_REQ, 0);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	ck_assert(wire_event(w, VERBS_EVENT_QP_REQ_ERR));
	ck_assert_uint_eq(w->mem[0], 0);
	wire_free(w);
}
END_TEST

START_TEST(last__length_is_the_messages)
{
	struct wire *w = start((struct wire_params){0});

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_FIRST, 0x200, 0, 1100), data, 1024);
	wire_expect_ack(w, 0x200, ACK31, 0);
	wire_pkt(w, req(ROCE_RC_WRITE_LAST, 0x201), data, _i ? 77 : 75);
	wire_expect_ack(w, 0x201, ROCE_NAK_INVALID_REQ, 0);
	wire_free(w);
}
END_TEST

START_TEST(send__completes_once)
{
	struct wire *w = start((struct wire_params){0});

	wire_post_recv(w, 0, 64);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x200), data, 8);
	wire_expect_ack(w, 0x200, ACK31, 1);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, 8);
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_16__zero_length_needs_no_key)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = req(ROCE_RC_WRITE_ONLY, 0x200);

	p.rkey = 0xdeadbeef;
	wire_pkt(w, p, NULL, 0);
	wire_expect_ack(w, 0x200, ACK31, 1);
	p.opcode = ROCE_RC_READ_REQ;
	p.psn = 0x201;
	wire_pkt(w, p, NULL, 0);
	wire_expect(w, ROCE_RC_READ_RESP_ONLY, 0x201, NULL);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_17__one_nak_for_a_hole)
{
	struct wire *w = start((struct wire_params){.strict = _i});

	for (uint32_t i = 0; i < 4; i++)
		wire_post_recv(w, i * 1024, 1024);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x201), data, 8);
	wire_expect_ack(w, 0x200, ROCE_NAK_PSN_SEQ, 0);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x202), data, 8);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x201), data, 8);
	wire_expect_none(w);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x200), data, 8);
	/* kept packets are handled with the hole's; a strict receiver has dropped them */
	wire_expect_ack(w, _i ? 0x200 : 0x202, ACK31, _i ? 1 : 3);
	wire_cqe(w, WC_SUCCESS);
	wire_free(w);
}
END_TEST

START_TEST(kept__next_hole_is_naked_at_once)
{
	struct wire *w = start((struct wire_params){0});

	for (uint32_t i = 0; i < 4; i++)
		wire_post_recv(w, i * 1024, 1024);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x201), data, 8);
	wire_expect_ack(w, 0x200, ROCE_NAK_PSN_SEQ, 0);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x203), data, 8);
	wire_expect_none(w);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x200), data, 8);
	wire_expect_ack(w, 0x202, ROCE_NAK_PSN_SEQ, 2);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x202), data, 8);
	wire_expect_ack(w, 0x203, ACK31, 4);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_18__duplicate_write)
{
	struct wire *w = start((struct wire_params){0});

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 8), data, 8);
	wire_expect_ack(w, 0x200, ACK31, 1);
	memset(w->mem, 0xee, 8);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 8), data, 8);
	wire_expect_ack(w, 0x200, ACK31, 1);
	ck_assert_uint_eq(w->mem[0], 0xee);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_19__duplicate_read)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p;

	wire_pattern(w->mem, 4096, 1);
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x200, 0, 3000), NULL, 0);
	wire_expect(w, ROCE_RC_READ_RESP_FIRST, 0x200, NULL);
	wire_expect(w, ROCE_RC_READ_RESP_MIDDLE, 0x201, NULL);
	wire_expect(w, ROCE_RC_READ_RESP_LAST, 0x202, NULL);
	wire_pattern(w->mem, 4096, 9);
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x201, 1024, 1976), NULL, 0);
	wire_expect(w, ROCE_RC_READ_RESP_FIRST, 0x201, &p);
	ck_assert_mem_eq(p.payload, w->mem + 1024, 1024); /* today's memory */
	wire_expect(w, ROCE_RC_READ_RESP_LAST, 0x202, &p);
	ck_assert_uint_eq(p.payload_len, 3000 - 2048);
	/* outside the range: other address, too long, other key */
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x201, 0, 1976), NULL, 0);
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x201, 1024, 1977), NULL, 0);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_20__duplicate_atomic)
{
	struct wire *w = start((struct wire_params){0});
	uint64_t v = 40;
	struct roce_pkt p;

	memcpy(w->mem + 64, &v, 8);
	wire_pkt(w, atomic(w, ROCE_RC_FETCH_ADD, 0x200, 64, 2, 77), NULL, 0); /* C-69 */
	wire_expect(w, ROCE_RC_ATOMIC_ACK, 0x200, &p);
	ck_assert_uint_eq(p.orig, 40);
	wire_pkt(w, atomic(w, ROCE_RC_FETCH_ADD, 0x200, 64, 2, 77), NULL, 0);
	wire_expect(w, ROCE_RC_ATOMIC_ACK, 0x200, &p);
	ck_assert_uint_eq(p.orig, 40);
	memcpy(&v, w->mem + 64, 8);
	ck_assert_uint_eq(v, 42);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_21__duplicate_read_inside_a_write)
{
	struct wire *w = start((struct wire_params){0});

	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x200, 4096, 8), NULL, 0);
	wire_expect(w, ROCE_RC_READ_RESP_ONLY, 0x200, NULL);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_FIRST, 0x201, 0, 1032), data, 1024);
	wire_expect_ack(w, 0x201, ACK31, 1);
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x200, 4096, 8), NULL, 0);
	wire_expect(w, ROCE_RC_READ_RESP_ONLY, 0x200, NULL);
	wire_pkt(w, req(ROCE_RC_WRITE_LAST, 0x202), data + 1024, 8);
	wire_expect_ack(w, 0x202, ACK31, 2);
	ck_assert_mem_eq(w->mem, data, 1032);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_22__duplicate_write_before_a_read)
{
	struct wire *w = start((struct wire_params){0});

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 8), data, 8);
	wire_expect_ack(w, 0x200, ACK31, 1);
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x201, 0, 8), NULL, 0);
	wire_expect(w, ROCE_RC_READ_RESP_ONLY, 0x201, NULL);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 8), data, 8);
	wire_expect_ack(w, 0x200, ACK31, 2);
	wire_free(w);
}
END_TEST

START_TEST(ack_does_not_overtake_a_read)
{
	struct wire *w = start((struct wire_params){0});

	wire_pkt_only(w, rdma(w, ROCE_RC_READ_REQ, 0x200, 0, 2048), NULL, 0);
	wire_pkt_only(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x202, 8192, 8), data, 8);
	roce_flush(w->r, w->now); /* even when a burst ends before the QP's turn */
	wire_go(w);
	wire_expect(w, ROCE_RC_READ_RESP_FIRST, 0x200, NULL);
	wire_expect(w, ROCE_RC_READ_RESP_LAST, 0x201, NULL);
	wire_expect_ack(w, 0x202, ACK31, 2);
	wire_free(w);
}
END_TEST

START_TEST(ack_is_coalesced)
{
	struct wire *w = start((struct wire_params){0});

	for (uint32_t i = 0; i < 8; i++)
		wire_pkt_only(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200 + i, i * 8, 8), data, 8);
	wire_go(w);
	wire_expect_ack(w, 0x207, ACK31, 8);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_27__receiver_not_ready)
{
	struct wire *w = start((struct wire_params){.min_rnr_timer = 12});

	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x200), data, 8);
	wire_expect_ack(w, 0x200, roce_syn_rnr(12), 0);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x201), data, 8);
	wire_expect_none(w);
	wire_post_recv(w, 0, 64);
	wire_post_recv(w, 64, 64);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x200), data, 8);
	wire_expect_ack(w, 0x201, ACK31, 2);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_33__write_past_the_end)
{
	struct wire *w = start((struct wire_params){0});

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_FIRST, 0x200, WIRE_MEM - 1999, 2000), data, 1024);
	wire_expect_ack(w, 0x200, ROCE_NAK_REM_ACCESS, 0);
	ck_assert(wire_event(w, VERBS_EVENT_QP_ACCESS_ERR));
	for (uint32_t i = WIRE_MEM - 2000; i < WIRE_MEM; i++)
		ck_assert_uint_eq(w->mem[i], 0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_34__rights)
{
	static const uint32_t without[] = {MR_REMOTE_WRITE, MR_REMOTE_READ, MR_REMOTE_ATOMIC};
	uint32_t all = MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC;
	struct wire *w = start((struct wire_params){.access = all & ~without[_i]});

	if (_i == 0)
		wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 8), data, 8);
	else if (_i == 1)
		wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x200, 0, 8), NULL, 0);
	else
		wire_pkt(w, atomic(w, ROCE_RC_FETCH_ADD, 0x200, 0, 1, 0), NULL, 0);
	wire_expect_ack(w, 0x200, ROCE_NAK_INVALID_REQ, 0);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_35__send_too_long)
{
	struct wire *w = start((struct wire_params){0});

	wire_post_recv(w, 0, 100);
	wire_post_recv(w, 0, 100);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x200), data, 101);
	wire_expect_ack(w, 0x200, ROCE_NAK_INVALID_REQ, 0);
	wire_cqe(w, WC_LOC_LEN_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_36__order_of_opcodes)
{
	struct wire *w = start((struct wire_params){0});

	if (_i) {
		wire_pkt(w, rdma(w, ROCE_RC_WRITE_FIRST, 0x200, 0, 4000), data, 1024);
		wire_expect_ack(w, 0x200, ACK31, 0);
		wire_pkt(w, rdma(w, ROCE_RC_WRITE_FIRST, 0x201, 0, 4000), data, 1024);
	} else {
		wire_pkt(w, req(ROCE_RC_WRITE_MIDDLE, 0x200), data, 1024);
	}
	wire_expect_ack(w, _i ? 0x201 : 0x200, ROCE_NAK_INVALID_REQ, 0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_37__misaligned_atomic)
{
	struct wire *w = start((struct wire_params){0});

	wire_pkt(w, atomic(w, ROCE_RC_CMP_SWAP, 0x200, 4, 1, 0), NULL, 0);
	wire_expect_ack(w, 0x200, ROCE_NAK_INVALID_REQ, 0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_45__flush_and_post_in_error)
{
	struct wire *w = start((struct wire_params){.credits = true});

	for (uint32_t i = 0; i < 3; i++)
		wire_post_recv(w, 0, 64);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_uint_eq(wire_cqe(w, WC_WR_FLUSH_ERR).wqe_index, i);
	wire_post(w, RING_WR_SEND, 0, 8, 0, 0, 0);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x200), data, 8);
	wire_expect_none(w);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_QP_STATE), 1);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_66__wrong_address)
{
	struct wire *w = start((struct wire_params){0});
	struct net_ip peer = w->peer;

	w->peer.b[15]++;
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 8), data, 8);
	w->peer = peer;
	wire_expect_none(w);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_ADDRESS), 1);
	wire_free(w);
}
END_TEST

START_TEST(credits__of_posted_receives)
{
	struct wire *w = start((struct wire_params){.credits = true});

	for (uint32_t i = 0; i < 7; i++)
		wire_post_recv(w, 0, 64);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x200), data, 8);
	wire_expect_ack(w, 0x200, roce_syn_ack(5), 1); /* six are left: code 5 */
	wire_free(w);
}
END_TEST

START_TEST(comm_est__in_rtr_once)
{
	struct wire *w = start((struct wire_params){.stop_at_rtr = true});

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 8), data, 8);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x201, 0, 8), data, 8);
	ck_assert(wire_event(w, VERBS_EVENT_COMM_EST));
	ck_assert_uint_eq(w->num_events, 1);
	wire_expect_ack(w, 0x200, ACK31, 1);
	wire_expect_ack(w, 0x201, ACK31, 2);
	wire_free(w);
}
END_TEST

START_TEST(foreign__write_is_acknowledged_when_placed)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 64);

	p.rkey = w->far_key;
	wire_pkt(w, p, data, 64);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x201, 0, 64), data, 64);
	wire_expect_none(w);
	ck_assert_uint_eq(roce_rx_held(w->r), 2);
	wire_io(w, _i ? -EFAULT : 0);
	if (_i) {
		wire_expect_ack(w, 0x200, ROCE_NAK_REM_ACCESS, 0);
	} else {
		ck_assert_mem_eq(w->far, data, 64);
		wire_expect_ack(w, 0x201, ACK31, 2);
	}
	wire_free(w);
}
END_TEST

START_TEST(foreign__read_and_atomic)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = rdma(w, ROCE_RC_READ_REQ, 0x200, 0, 64), got;

	memcpy(w->far, data, 64);
	p.rkey = w->far_key;
	wire_pkt(w, p, NULL, 0);
	wire_expect_none(w);
	wire_io(w, 0);
	wire_expect(w, ROCE_RC_READ_RESP_ONLY, 0x200, &got);
	ck_assert_mem_eq(got.payload, data, 64);
	p = atomic(w, ROCE_RC_FETCH_ADD, 0x201, 64, 5, 0);
	p.rkey = w->far_key;
	wire_pkt(w, p, NULL, 0);
	wire_expect_none(w);
	wire_io(w, 0);
	wire_expect(w, ROCE_RC_ATOMIC_ACK, 0x201, &got);
	ck_assert_uint_eq(got.orig, 0);
	ck_assert_uint_eq(w->far[64], 5);
	wire_free(w);
}
END_TEST

START_TEST(foreign__reset_while_pending)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = rdma(w, _i ? ROCE_RC_READ_REQ : ROCE_RC_WRITE_ONLY, 0x200, 0, 64);

	p.rkey = w->far_key;
	wire_pkt(w, p, data, _i ? 0 : 64);
	ck_assert_uint_eq(w->num_io, 1);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RESET), 0);
	/* A copier that writes to the application holds the QP; one that reads does not. */
	ck_assert_int_eq(roce_qp_idle(w->qp), _i);
	wire_io(w, 0);
	ck_assert(roce_qp_idle(w->qp));
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/* An SRQ's receive that a message has begun comes back when its QP goes, once. */
START_TEST(srq__half_received_on_reset)
{
	struct wire *w = start((struct wire_params){0});
	uint32_t key;
	struct ring_cqe e;

	if (_i) { /* while a copier still writes to it: not before that has ended */
		key = w->key;
		w->key = w->far_key;
		wire_post_recv(w, 0, 4096);
		w->key = key;
	} else {
		wire_post_recv(w, 0, 4096);
	}
	wire_pkt(w, req(ROCE_RC_SEND_FIRST, 0x200), data, 1024);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RESET), 0);
	if (_i) {
		wire_no_cqe(w);
		wire_io(w, 0);
	}
	e = wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(e.wqe_index, 0);
	ck_assert_uint_ne(atomic_load(&e.tag) & RING_CQE_RECV, 0);
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_resp");
	TCase *c = tcase_create("resp");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_test(c, ROCE_C_7_and_8__strangers_are_dropped);
	tcase_add_test(c, ROCE_C_13__short_first);
	tcase_add_loop_test(c, last__length_is_the_messages, 0, 2);
	tcase_add_test(c, send__completes_once);
	tcase_add_test(c, ROCE_C_16__zero_length_needs_no_key);
	tcase_add_loop_test(c, ROCE_C_17__one_nak_for_a_hole, 0, 2);
	tcase_add_test(c, kept__next_hole_is_naked_at_once);
	tcase_add_test(c, ROCE_C_18__duplicate_write);
	tcase_add_test(c, ROCE_C_19__duplicate_read);
	tcase_add_test(c, ROCE_C_20__duplicate_atomic);
	tcase_add_test(c, ROCE_C_21__duplicate_read_inside_a_write);
	tcase_add_test(c, ROCE_C_22__duplicate_write_before_a_read);
	tcase_add_test(c, ack_does_not_overtake_a_read);
	tcase_add_test(c, ack_is_coalesced);
	tcase_add_test(c, ROCE_C_27__receiver_not_ready);
	tcase_add_test(c, ROCE_C_33__write_past_the_end);
	tcase_add_loop_test(c, ROCE_C_34__rights, 0, 3);
	tcase_add_test(c, ROCE_C_35__send_too_long);
	tcase_add_loop_test(c, ROCE_C_36__order_of_opcodes, 0, 2);
	tcase_add_test(c, ROCE_C_37__misaligned_atomic);
	tcase_add_test(c, ROCE_C_45__flush_and_post_in_error);
	tcase_add_test(c, ROCE_C_66__wrong_address);
	tcase_add_test(c, credits__of_posted_receives);
	tcase_add_test(c, comm_est__in_rtr_once);
	tcase_add_loop_test(c, foreign__write_is_acknowledged_when_placed, 0, 2);
	tcase_add_test(c, foreign__read_and_atomic);
	tcase_add_loop_test(c, foreign__reset_while_pending, 0, 2);
	tcase_add_loop_test(c, srq__half_received_on_reset, 0, 2);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
