/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC (IBTA annex A14): which SRQ a request is for, whose PD and CQ count, what names none; and
 * what an initiator sends. What RC and XRC have in common is tested with RC.
 */
#include "wire.h"

#define OTHER_SRQN 0x333333u

static uint8_t data[8192];

static struct wire *
start(enum verbs_qp_type type)
{
	struct wire_params p = {.type = type, .min_rnr_timer = 12, .timeout = 14, .retry_cnt = 3,
				.rnr_retry = 3};

	wire_pattern(data, sizeof(data), 5);
	return wire_new(&p);
}

static struct roce_pkt
req(uint8_t opcode, uint32_t psn)
{
	return (struct roce_pkt){.opcode = opcode, .psn = psn, .ackreq = true, .srqn = WIRE_SRQN};
}

static struct roce_pkt
rdma(struct wire *w, uint8_t opcode, uint32_t psn, uint32_t len)
{
	struct roce_pkt p = req(opcode, psn);

	p.va = WIRE_VA;
	p.rkey = w->key;
	p.dma_len = len;
	return p;
}

static void
expect_ack(struct wire *w, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct roce_pkt p;

	wire_expect(w, ROCE_XRC_ACK, psn, &p);
	ck_assert_uint_eq(p.syndrome, syndrome);
	ck_assert_uint_eq(p.msn, msn);
}

/** A completion of the SRQ: names it, and the QP. */
static struct ring_cqe
xrc_cqe(struct wire *w, enum wc_status status)
{
	struct ring_cqe e = wire_cqe(w, status);
	uint32_t tag = atomic_load(&e.tag);

	ck_assert_uint_eq(tag & (RING_CQE_XRC | RING_CQE_RECV), RING_CQE_XRC | RING_CQE_RECV);
	ck_assert_uint_eq(e.src_opcode & 0xffffff, WIRE_SRQN);
	ck_assert_uint_eq(e.qpn_status & 0xffffff, w->qp->qpn);
	return e;
}

START_TEST(target__send_to_the_srq)
{
	struct wire *w = start(VERBS_QPT_XRC_RECV);
	struct ring_cqe e;

	for (uint32_t i = 0; i < 3; i++)
		wire_post_recv(w, i * 4096, 4096);
	wire_pkt(w, req(ROCE_XRC_SEND_ONLY_IMM, 0x200), data, 64);
	expect_ack(w, 0x200, 31, 1);
	e = xrc_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.wqe_index, 0);
	ck_assert_uint_eq(e.byte_len, 64);
	ck_assert_uint_eq(e.src_opcode >> 24, RING_WC_RECV);
	ck_assert_uint_ne(atomic_load(&e.tag) & RING_CQE_WITH_IMM, 0);
	ck_assert_mem_eq(w->mem, data, 64);
	wire_pkt(w, req(ROCE_XRC_SEND_FIRST, 0x201), data, 1024);
	wire_pkt(w, req(ROCE_XRC_SEND_MIDDLE, 0x202), data + 1024, 1024);
	wire_pkt(w, req(ROCE_XRC_SEND_LAST, 0x203), data + 2048, 100);
	e = xrc_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.wqe_index, 1);
	ck_assert_uint_eq(e.byte_len, 2148);
	ck_assert_mem_eq(w->mem + 4096, data, 2148);
	wire_forget(w);
	wire_pkt(w, rdma(w, ROCE_XRC_WRITE_ONLY_IMM, 0x204, 8), data, 8);
	expect_ack(w, 0x204, 31, 3);
	ck_assert_uint_eq(xrc_cqe(w, WC_SUCCESS).src_opcode >> 24, RING_WC_RECV_RDMA_WITH_IMM);
	wire_free(w);
}
END_TEST

START_TEST(target__write_read_atomic)
{
	struct wire *w = start(VERBS_QPT_XRC_RECV);
	struct roce_pkt p;
	uint64_t seven = 7;

	wire_pkt(w, rdma(w, ROCE_XRC_WRITE_FIRST, 0x200, 1500), data, 1024);
	wire_pkt(w, req(ROCE_XRC_WRITE_LAST, 0x201), data + 1024, 476);
	ck_assert_mem_eq(w->mem, data, 1500);
	wire_forget(w);
	wire_pkt(w, rdma(w, ROCE_XRC_READ_REQ, 0x202, 1500), NULL, 0);
	wire_expect(w, ROCE_XRC_READ_RESP_FIRST, 0x202, &p);
	ck_assert_mem_eq(p.payload, data, 1024);
	ck_assert_uint_eq(p.syndrome, 31);
	wire_expect(w, ROCE_XRC_READ_RESP_LAST, 0x203, &p);
	ck_assert_mem_eq(p.payload, data + 1024, 476);
	memcpy(w->mem, &seven, 8);
	p = rdma(w, ROCE_XRC_FETCH_ADD, 0x204, 0);
	p.swap_add = 5;
	wire_pkt(w, p, NULL, 0);
	wire_expect(w, ROCE_XRC_ATOMIC_ACK, 0x204, &p);
	ck_assert_uint_eq(p.orig, 7);
	ck_assert_uint_eq(*(uint64_t *)(void *)w->mem, 12);
	p = rdma(w, ROCE_XRC_CMP_SWAP, 0x205, 0);
	p.compare = 12;
	p.swap_add = 99;
	wire_pkt(w, p, NULL, 0);
	wire_expect(w, ROCE_XRC_ATOMIC_ACK, 0x205, &p);
	ck_assert_uint_eq(p.orig, 12);
	ck_assert_uint_eq(*(uint64_t *)(void *)w->mem, 99);
	wire_no_cqe(w);
	ck_assert_uint_eq(atomic_load(&w->srq_daemon.head), 0);
	wire_free(w);
}
END_TEST

/* No such SRQ, or one of another domain: invalid request, whatever the operation. */
START_TEST(srqn__not_of_the_domain)
{
	static const uint8_t ops[] = {ROCE_XRC_SEND_ONLY, ROCE_XRC_WRITE_ONLY, ROCE_XRC_READ_REQ,
				      ROCE_XRC_FETCH_ADD};
	struct wire *w = start(VERBS_QPT_XRC_RECV);
	struct roce_pkt p = rdma(w, ops[_i / 2], 0x200, 0);

	wire_post_recv(w, 0, 64);
	if (_i % 2)
		w->srq.xrcd = WIRE_XRCD + 1;
	else
		p.srqn = OTHER_SRQN;
	wire_pkt(w, p, NULL, 0);
	expect_ack(w, 0x200, ROCE_NAK_INVALID_REQ, 0);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	ck_assert(wire_event(w, VERBS_EVENT_QP_REQ_ERR));
	ck_assert(!wire_event(w, VERBS_EVENT_QP_LAST_WQE_REACHED)); /* it has no SRQ */
	ck_assert_uint_eq(wire_counter(w, ROCE_C_XRC_NO_SRQ), 1);
	ck_assert_uint_eq(atomic_load(&w->srq_daemon.head), 0);
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

/* One message, one SRQ: another in a later packet is an invalid request. */
START_TEST(srqn__changes_within_a_message)
{
	struct wire *w = start(VERBS_QPT_XRC_RECV);
	struct verbs_srq other = w->srq;
	struct roce_pkt p = req(ROCE_XRC_SEND_LAST, 0x201);

	other.srqn = OTHER_SRQN;
	other.serial = 2;
	ck_assert_int_eq(roce_qpn_take(w->srqns, OTHER_SRQN), 0);
	roce_srqn_set(w->srqns, OTHER_SRQN, &other);
	wire_post_recv(w, 0, 4096);
	wire_pkt(w, req(ROCE_XRC_SEND_FIRST, 0x200), data, 1024);
	wire_forget(w);
	p.srqn = OTHER_SRQN;
	wire_pkt(w, p, data, 64);
	expect_ack(w, 0x201, ROCE_NAK_INVALID_REQ, 0);
	xrc_cqe(w, WC_REM_INV_REQ_ERR); /* the receive in use tells the SRQ that had it */
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

/** A receive whose list has a block of the worker's: wire_free() sees whether it is given back. */
static void
post_wide(struct wire *w)
{
	struct ring_sge more[2] = {{WIRE_VA + 2048, 1024, w->key}, {WIRE_VA + 3072, 1024, w->key}};
	struct ring_rwqe q = {.num_slots = 2, .num_sge = RING_RWQE_SGES + 2};

	for (uint32_t i = 0; i < RING_RWQE_SGES; i++)
		q.sge[i] = (struct ring_sge){WIRE_VA + i * 512, 512, w->key};
	w->srq.stride = 2 * RING_SLOT_SIZE;
	w->srq.max_sge = RING_RWQE_SGES + 2;
	memcpy(w->rq, &q, sizeof(q));
	memcpy(w->rq + RING_SLOT_SIZE, more, sizeof(more));
	atomic_store(&w->srq_client.tail, 1);
}

/*
 * The SRQ goes while a message is under way: nobody is told of the receive, not even another SRQ
 * that has got its number; the next packet names none.
 */
START_TEST(srq__goes_within_a_message)
{
	struct wire *w = start(VERBS_QPT_XRC_RECV);

	post_wide(w);
	wire_pkt(w, req(ROCE_XRC_SEND_FIRST, 0x200), data, 1024);
	wire_forget(w);
	if (_i == 0)
		roce_srqn_set(w->srqns, WIRE_SRQN, NULL);
	else
		w->srq.serial++;
	if (_i == 2) {
		ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	} else {
		wire_pkt(w, req(ROCE_XRC_SEND_LAST, 0x201), data, 64);
		expect_ack(w, 0x201, ROCE_NAK_INVALID_REQ, 0);
	}
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

/* Keys are of the SRQ's PD: SENDs by its entries, WRITE, READ and atomics by the request. */
START_TEST(pd__is_the_srqs)
{
	struct wire *w = start(VERBS_QPT_XRC_RECV);
	struct roce_pkt p = rdma(w, _i == 2 ? ROCE_XRC_READ_REQ : ROCE_XRC_WRITE_ONLY, 0x200, 8);

	w->srq.pd = WIRE_PD + 1;
	if (_i == 0) {
		wire_post_recv(w, 0, 64);
		wire_pkt(w, req(ROCE_XRC_SEND_ONLY, 0x200), data, 8);
		expect_ack(w, 0x200, ROCE_NAK_REM_OP, 0);
		xrc_cqe(w, WC_LOC_PROT_ERR);
	} else {
		wire_pkt(w, p, data, _i == 2 ? 0 : 8);
		expect_ack(w, 0x200, ROCE_NAK_REM_ACCESS, 0);
	}
	wire_free(w);
}
END_TEST

/* Empty: RNR; broken: NAK 0x63, and SRQ_ERR. */
START_TEST(srq__empty_and_broken)
{
	struct wire *w = start(VERBS_QPT_XRC_RECV);

	wire_pkt(w, req(ROCE_XRC_SEND_ONLY, 0x200), data, 8);
	expect_ack(w, 0x200, roce_syn_rnr(12), 0);
	wire_post_recv(w, 0, 64);
	wire_pkt(w, req(ROCE_XRC_SEND_ONLY, 0x200), data, 8);
	expect_ack(w, 0x200, 31, 1);
	xrc_cqe(w, WC_SUCCESS);
	atomic_store(&w->srq_client.tail, WIRE_SLOTS + 5);
	wire_pkt(w, req(ROCE_XRC_SEND_ONLY, 0x201), data, 8);
	expect_ack(w, 0x201, ROCE_NAK_REM_OP, 1);
	ck_assert(wire_event(w, VERBS_EVENT_SRQ_ERR));
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

/* Half received when the QP is reset: flushed to the SRQ's CQ, after a copier that still writes. */
START_TEST(target__half_received_on_reset)
{
	struct wire *w = start(VERBS_QPT_XRC_RECV);
	uint32_t key = w->key;

	w->key = _i ? w->far_key : key;
	wire_post_recv(w, 0, 4096);
	w->key = key;
	wire_pkt(w, req(ROCE_XRC_SEND_FIRST, 0x200), data, 1024);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RESET), 0);
	if (_i) {
		wire_no_cqe(w);
		wire_io(w, 0);
	}
	xrc_cqe(w, WC_WR_FLUSH_ERR);
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

/* Each end takes what is for it: RC packets, responses to a target, requests to an initiator. */
START_TEST(ROCE_C_8__wrong_class_or_end)
{
	struct wire *w = start(_i ? VERBS_QPT_XRC_SEND : VERBS_QPT_XRC_RECV);
	struct roce_pkt p = req(_i ? ROCE_XRC_SEND_ONLY : ROCE_XRC_ACK, 0x200);

	wire_post_recv(w, 0, 64);
	p.syndrome = 31;
	wire_pkt(w, p, NULL, 0);
	p = req(_i ? ROCE_RC_ACK : ROCE_RC_SEND_ONLY, 0x200);
	wire_pkt(w, p, NULL, 0);
	wire_expect_none(w);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_QP_TYPE), 2);
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

static void
post(struct wire *w, uint8_t opcode, uint32_t len)
{
	struct ring_wqe q = {.opcode = opcode, .flags = RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = 1, .rkey = 77, .remote_addr = 0x5000, .imm = 0x11223344,
			     .srqn = WIRE_SRQN};

	if (opcode == RING_WR_ATOMIC_FETCH_AND_ADD || opcode == RING_WR_ATOMIC_CMP_AND_SWP) {
		q.atomic.compare_add = 3;
		q.atomic.swap = 4;
		q.atomic.sge = (struct ring_sge){WIRE_VA, 8, w->key};
	} else {
		q.sge[0] = (struct ring_sge){WIRE_VA, len, w->key};
	}
	wire_post_raw(w, &q);
	wire_go(w);
}

static void
expect_req(struct wire *w, uint8_t opcode, uint32_t psn)
{
	struct roce_pkt p;

	wire_expect(w, opcode, psn, &p);
	ck_assert_uint_eq(p.srqn, WIRE_SRQN);
	if (roce_any(p.info->mask, roce_or(ROCE_RETH, ROCE_ATOMICETH))) {
		ck_assert_uint_eq(p.va, 0x5000);
		ck_assert_uint_eq(p.rkey, 77);
	}
}

static void
ack(struct wire *w, uint32_t psn, uint32_t msn)
{
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_XRC_ACK, .psn = psn, .syndrome = 31,
				      .msn = msn}, NULL, 0);
	wire_cqe(w, WC_SUCCESS);
}

/* An XRCETH with the SRQ in every request. */
START_TEST(initiator__requests)
{
	struct wire *w = start(VERBS_QPT_XRC_SEND);
	struct roce_pkt p = {.syndrome = 31};

	memcpy(w->mem, data, sizeof(data));
	post(w, RING_WR_SEND, 2100);
	expect_req(w, ROCE_XRC_SEND_FIRST, 0x100);
	expect_req(w, ROCE_XRC_SEND_MIDDLE, 0x101);
	expect_req(w, ROCE_XRC_SEND_LAST, 0x102);
	ack(w, 0x102, 1);
	post(w, RING_WR_SEND_WITH_IMM, 4);
	expect_req(w, ROCE_XRC_SEND_ONLY_IMM, 0x103);
	ack(w, 0x103, 2);
	post(w, RING_WR_RDMA_WRITE_WITH_IMM, 1025);
	expect_req(w, ROCE_XRC_WRITE_FIRST, 0x104);
	expect_req(w, ROCE_XRC_WRITE_LAST_IMM, 0x105);
	ack(w, 0x105, 3);
	post(w, RING_WR_RDMA_READ, 64);
	expect_req(w, ROCE_XRC_READ_REQ, 0x106);
	p.opcode = ROCE_XRC_READ_RESP_ONLY;
	p.psn = 0x106;
	p.msn = 4;
	wire_pkt(w, p, data + 4096, 64);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_mem_eq(w->mem, data + 4096, 64);
	post(w, RING_WR_ATOMIC_FETCH_AND_ADD, 8);
	expect_req(w, ROCE_XRC_FETCH_ADD, 0x107);
	p.opcode = ROCE_XRC_ATOMIC_ACK;
	p.psn = 0x107;
	p.orig = 42;
	wire_pkt(w, p, NULL, 0);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(*(uint64_t *)(void *)w->mem, 42);
	post(w, RING_WR_ATOMIC_CMP_AND_SWP, 8);
	expect_req(w, ROCE_XRC_CMP_SWAP, 0x108);
	wire_free(w);
}
END_TEST

/* What is sent again names the SRQ again; a fatal NAK fails it as RC's does. */
START_TEST(initiator__again_and_refused)
{
	struct wire *w = start(VERBS_QPT_XRC_SEND);

	post(w, RING_WR_SEND, 64);
	expect_req(w, ROCE_XRC_SEND_ONLY, 0x100);
	wire_wait(w, 70000000);
	expect_req(w, ROCE_XRC_SEND_ONLY, 0x100);
	wire_forget(w);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_XRC_ACK, .psn = 0x100,
				      .syndrome = ROCE_NAK_INVALID_REQ}, NULL, 0);
	wire_cqe(w, WC_REM_INV_REQ_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	wire_free(w);
}
END_TEST

/* Of RC's operations XRC has no FLUSH and no ATOMIC WRITE. */
START_TEST(initiator__operations_not_there)
{
	struct wire *w = start(VERBS_QPT_XRC_SEND);
	struct ring_wqe q = {.opcode = _i ? RING_WR_FLUSH : RING_WR_ATOMIC_WRITE, .num_slots = 1,
			     .flags = RING_WR_SIGNALED, .num_sge = _i ? 0 : 1,
			     .sge = {{WIRE_VA, 8, w->key}}};

	wire_post_raw(w, &q);
	wire_go(w);
	wire_expect_none(w);
	wire_cqe(w, WC_LOC_QP_OP_ERR);
	wire_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_xrc");
	TCase *c = tcase_create("xrc");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_test(c, target__send_to_the_srq);
	tcase_add_test(c, target__write_read_atomic);
	tcase_add_loop_test(c, srqn__not_of_the_domain, 0, 8);
	tcase_add_test(c, srqn__changes_within_a_message);
	tcase_add_loop_test(c, srq__goes_within_a_message, 0, 3);
	tcase_add_loop_test(c, pd__is_the_srqs, 0, 3);
	tcase_add_test(c, srq__empty_and_broken);
	tcase_add_loop_test(c, target__half_received_on_reset, 0, 2);
	tcase_add_loop_test(c, ROCE_C_8__wrong_class_or_end, 0, 2);
	tcase_add_test(c, initiator__requests);
	tcase_add_test(c, initiator__again_and_refused);
	tcase_add_loop_test(c, initiator__operations_not_there, 0, 2);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
