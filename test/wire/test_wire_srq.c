/* SPDX-License-Identifier: BSD-3-Clause */
/* A responder on a shared receive queue: credits, an empty queue, limits, its end. */
#include "wire.h"

static uint8_t data[4096];

static struct wire *
start(void)
{
	struct wire_params p = {.min_rnr_timer = 12};

	wire_pattern(data, sizeof(data), 3);
	return wire_new(&p);
}

static void
send_only(struct wire *w, uint32_t psn, uint32_t len)
{
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_SEND_ONLY, .psn = psn, .ackreq = true},
		 data, len);
}

static unsigned int
events(const struct wire *w, enum verbs_event e)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < w->num_events; i++)
		n += w->event[i] == e;
	return n;
}

/* Code 31 in whatever has an AETH, whatever is posted (9.7.7.2). */
START_TEST(credits__none)
{
	struct wire *w = start();
	struct roce_pkt p;

	for (uint32_t i = 0; i < 3; i++)
		wire_post_recv(w, i * 64, 64);
	send_only(w, 0x200, 64);
	wire_expect_ack(w, 0x200, roce_syn_ack(ROCE_CREDIT_CODE_NONE), 1);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_REQ, .psn = 0x201, .va = WIRE_VA,
				      .rkey = w->key, .dma_len = 64}, NULL, 0);
	wire_expect(w, ROCE_RC_READ_RESP_ONLY, 0x201, &p);
	ck_assert_uint_eq(p.syndrome, roce_syn_ack(ROCE_CREDIT_CODE_NONE));
	send_only(w, 0x202, 64);
	wire_expect_ack(w, 0x202, 31, 3);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_SUCCESS);
	wire_free(w);
}
END_TEST

/* Empty: RNR NAK; the same message again when there is one, and it takes that one alone. */
START_TEST(empty__rnr_then_taken)
{
	struct wire *w = start();
	struct ring_cqe e;

	send_only(w, 0x200, 64);
	wire_expect_ack(w, 0x200, roce_syn_rnr(12), 0);
	wire_no_cqe(w);
	wire_post_recv(w, 256, 64);
	wire_post_recv(w, 512, 64);
	send_only(w, 0x200, 64);
	wire_expect_ack(w, 0x200, 31, 1);
	e = wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.wqe_index, 0);
	ck_assert_mem_eq(w->mem + 256, data, 64);
	send_only(w, 0x200, 64); /* a duplicate takes none */
	wire_expect_ack(w, 0x200, 31, 1);
	ck_assert_uint_eq(atomic_load(&w->srq_daemon.head), 1);
	ck_assert_uint_eq(w->vw.counter[VERBS_C_SRQ].value, 1);
	ck_assert_uint_eq(w->vw.counter[VERBS_C_SRQ_EMPTY].value, 1);
	wire_free(w);
}
END_TEST

/* Before the message that went below has completed; and not again. */
START_TEST(limit__event_of_the_message)
{
	struct wire *w = start();

	for (uint32_t i = 0; i < 4; i++)
		wire_post_recv(w, i * 64, 64);
	verbs_srq_arm(&w->srq, 3);
	send_only(w, 0x200, 64);
	ck_assert_uint_eq(events(w, VERBS_EVENT_SRQ_LIMIT_REACHED), 0);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_WRITE_ONLY_IMM, .psn = 0x201,
				      .va = WIRE_VA, .rkey = w->key, .dma_len = 8,
				      .ackreq = true}, data, 8);
	ck_assert_uint_eq(events(w, VERBS_EVENT_SRQ_LIMIT_REACHED), 1);
	send_only(w, 0x202, 64);
	ck_assert_uint_eq(events(w, VERBS_EVENT_SRQ_LIMIT_REACHED), 1);
	for (int i = 0; i < 3; i++)
		wire_cqe(w, WC_SUCCESS);
	wire_forget(w);
	wire_free(w);
}
END_TEST

/* B084: to ERR with a message half received: that one is flushed, then the event, once. */
START_TEST(B084__half_received)
{
	struct wire *w = start();
	struct ring_cqe e;

	wire_post_recv(w, 0, 4096);
	wire_post_recv(w, 4096, 4096);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_SEND_FIRST, .psn = 0x200}, data, 1024);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	e = wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(e.wqe_index, 0);
	wire_no_cqe(w); /* what is posted is for others */
	ck_assert_uint_eq(events(w, VERBS_EVENT_QP_LAST_WQE_REACHED), 1);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	ck_assert_uint_eq(events(w, VERBS_EVENT_QP_LAST_WQE_REACHED), 1);
	ck_assert_uint_eq(atomic_load(&w->srq_daemon.head), 1);
	wire_free(w);
}
END_TEST

/* Its client has spoilt the queue: NAK 0x63, the QP fails, one event of the queue. */
START_TEST(broken__operational_error)
{
	struct wire *w = start();

	atomic_store(&w->srq_client.tail, WIRE_SLOTS + 1);
	send_only(w, 0x200, 64);
	wire_expect_ack(w, 0x200, ROCE_NAK_REM_OP, 0);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	ck_assert_uint_eq(events(w, VERBS_EVENT_SRQ_ERR), 1);
	ck_assert_uint_eq(events(w, VERBS_EVENT_QP_LAST_WQE_REACHED), 1);
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

/* An entry that is none completes as such, by the number that it was posted under. */
START_TEST(entry__of_no_such_number)
{
	struct wire *w = start();
	struct ring_cqe e;

	wire_post_recv(w, 0, 64);
	atomic_store(&w->srq_ring[0], WIRE_SLOTS);
	send_only(w, 0x200, 64);
	wire_expect_ack(w, 0x200, ROCE_NAK_REM_OP, 0);
	e = wire_cqe(w, WC_LOC_QP_OP_ERR);
	ck_assert_uint_eq(e.wqe_index, WIRE_SLOTS);
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_srq");
	TCase *c = tcase_create("srq");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_test(c, credits__none);
	tcase_add_test(c, empty__rnr_then_taken);
	tcase_add_test(c, limit__event_of_the_message);
	tcase_add_test(c, B084__half_received);
	tcase_add_test(c, broken__operational_error);
	tcase_add_test(c, entry__of_no_such_number);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
