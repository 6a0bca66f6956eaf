/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's recovery, and what one packet may cost: holes and who asks for them, refusals,
 * waits that are our own, completions in turns.
 */
#include "wire_req.h"

static struct wire *
start(struct wire_params p)
{
	if (p.timeout == 0)
		p.timeout = 14;
	if (p.retry_cnt == 0)
		p.retry_cnt = 7;
	return wire_req_start(p);
}

static struct roce_qp *
qp_of(const struct wire *w)
{
	return (struct roce_qp *)w->qp;
}

static void
post_write(struct wire *w, uint32_t len)
{
	wire_post(w, RING_WR_RDMA_WRITE, 0, len, 0, RADDR, RKEY);
}

static void
post_read(struct wire *w, uint32_t len)
{
	wire_post(w, RING_WR_RDMA_READ, 16384, len, 0, RADDR, RKEY);
}

/** One of an MTU's bytes, or fewer, of the data from off on. */
static void
read_resp(struct wire *w, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	wire_pkt(w, (struct roce_pkt){.opcode = opcode, .psn = psn, .syndrome = ACK31, .msn = 2},
		 data + off, len);
}

/** The next is a READ request of our own for these. */
static void
expect_read(struct wire *w, uint32_t psn, uint32_t len)
{
	struct roce_pkt p;

	wire_expect(w, ROCE_RC_READ_REQ, psn, &p);
	ck_assert_uint_eq(p.dma_len, len);
}

static unsigned int
count_cqes(struct wire *w)
{
	unsigned int n = 0;

	for (; ring_cq_peek(&w->cons); n++)
		wire_cqe(w, WC_SUCCESS);
	return n;
}

/* ---- holes ---------- */

START_TEST(recovery__peer_that_keeps)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 7});
	struct roce_qp_info info;

	for (uint32_t i = 0; i < 4; i++)
		post_write(w, 8);
	for (uint32_t i = 0; i < 4; i++)
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101 + i, NULL);
	wire_ack(w, 0x102, ROCE_NAK_PSN_SEQ, 2);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x102, NULL);
	wire_expect_none(w); /* that one alone */
	wire_ack(w, 0x104, ACK31, 5);
	roce_qp_get_info(w->qp, &info);
	ck_assert(info.keeps_out_of_order);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(recovery__peer_that_drops)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 7});
	struct roce_qp_info info;

	for (uint32_t i = 0; i < 4; i++)
		post_write(w, 8);
	for (uint32_t i = 0; i < 4; i++)
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101 + i, NULL);
	wire_ack(w, 0x102, ROCE_NAK_PSN_SEQ, 2);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x102, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x102, ACK31, 3); /* and no further */
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x103, NULL);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x104, NULL);
	roce_qp_get_info(w->qp, &info);
	ck_assert(!info.keeps_out_of_order);
	wire_free(w);
}
END_TEST

/*
 * A peer that drops, and a READ in pieces of which the first is lost: the piece is sent again, not
 * one PSN, so that the next NAK is right behind the piece; it is enough to know the peer.
 */
START_TEST(recovery__peer_that_drops_pieces)
{
	struct wire *w = start((struct wire_params){.max_inflight = 4096, .rd_atomic = 2});

	post_read(w, 8 * 1024);
	expect_read(w, 0x101, 2048); /* lost */
	expect_read(w, 0x103, 2048);
	wire_ack(w, 0x101, ROCE_NAK_PSN_SEQ, 1);
	expect_read(w, 0x101, 2048);
	wire_expect_none(w);
	read_resp(w, ROCE_RC_READ_RESP_FIRST, 0x101, 0, 1024);
	read_resp(w, ROCE_RC_READ_RESP_LAST, 0x102, 1024, 1024);
	expect_read(w, 0x105, 2048); /* in its turn, and dropped like the one before */
	wire_expect_none(w);
	wire_ack(w, 0x103, ROCE_NAK_PSN_SEQ, 2);
	expect_read(w, 0x103, 2048);
	expect_read(w, 0x105, 2048);
	wire_expect_none(w);
	ck_assert_uint_eq(qp_of(w)->keeps, ROCE_KEEPS_NO);
	wire_free(w);
}
END_TEST

/* Six responses are lost together: they are asked for together and once. */
START_TEST(recovery__hole_of_many_responses)
{
	struct wire *w = start((struct wire_params){0});

	post_read(w, 8192);
	expect_read(w, 0x101, 8192);
	read_resp(w, ROCE_RC_READ_RESP_FIRST, 0x101, 0, 1024);
	read_resp(w, ROCE_RC_READ_RESP_LAST, 0x108, 7168, 1024);
	expect_read(w, 0x102, 6 * 1024);
	for (uint32_t i = 1; i < 7; i++) {
		wire_expect_none(w);
		read_resp(w, ROCE_RC_READ_RESP_MIDDLE, 0x101 + i, i * 1024, 1024);
	}
	wire_expect_none(w);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_mem_eq(w->mem + 16384, data, 8192);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_IMPLIED_NAK), 1);
	wire_free(w);
}
END_TEST

/* The next hole is another one: asked for as soon as it shows, and not again in its turn. */
START_TEST(recovery__hole_behind_a_hole)
{
	struct wire *w = start((struct wire_params){0});

	post_read(w, 8192);
	expect_read(w, 0x101, 8192);
	read_resp(w, ROCE_RC_READ_RESP_MIDDLE, 0x104, 3 * 1024, 1024);
	expect_read(w, 0x101, 3 * 1024);
	read_resp(w, ROCE_RC_READ_RESP_LAST, 0x108, 7 * 1024, 1024);
	expect_read(w, 0x105, 3 * 1024);
	for (uint32_t i = 0; i < 7; i++) {
		wire_expect_none(w);
		if (i != 3)
			read_resp(w, ROCE_RC_READ_RESP_MIDDLE, 0x101 + i, i * 1024, 1024);
	}
	wire_expect_none(w);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_mem_eq(w->mem + 16384, data, 8192);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_IMPLIED_NAK), 1);
	wire_free(w);
}
END_TEST

/* ---- nobody is left to name a hole ---------- */

#define US UINT64_C(1000)

/** A round trip of 10 us is known; one ACK has come, n small WRITEs are out from 0x102 on. */
static struct wire *
start_tail(uint32_t n)
{
	struct wire *w = start((struct wire_params){.timeout = 14, .retry_cnt = 7});

	for (uint32_t i = 0; i <= n; i++)
		post_write(w, 8);
	for (uint32_t i = 0; i <= n; i++)
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101 + i, NULL);
	wire_wait(w, 10 * US);
	wire_ack(w, 0x101, ACK31, 2);
	wire_cqe(w, WC_SUCCESS);
	return w;
}

START_TEST(recovery__silence_is_asked_about)
{
	struct wire *w = start_tail(8);

	wire_wait(w, 199 * US);
	wire_expect_none(w);
	wire_wait(w, 6 * US);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x102, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x109, ACK31, 10); /* it was the acknowledgement that had been lost */
	ck_assert_uint_eq(count_cqes(w), 8);
	wire_wait(w, 100000 * US);
	wire_expect_none(w);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_TIMEOUT), 0);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_PROBE), 1);
	wire_free(w);
}
END_TEST

/* Small things wait longer: the wheel is not to turn for each of them. */
START_TEST(recovery__silence_behind_few)
{
	struct wire *w = start_tail(7);

	wire_wait(w, 3990 * US);
	wire_expect_none(w);
	wire_wait(w, 20 * US);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x102, NULL);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/* The answer stops behind what was asked about: there was nothing else there. */
START_TEST(recovery__lost_tail)
{
	struct wire *w = start_tail(8);
	struct roce_qp_info info;

	wire_wait(w, 205 * US);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x102, NULL);
	wire_ack(w, 0x102, ACK31, 3);
	for (uint32_t i = 1; i < 8; i++)
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x102 + i, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x109, ACK31, 10);
	roce_qp_get_info(w->qp, &info);
	ck_assert_uint_eq(info.timeouts, 0);
	ck_assert_uint_eq(info.retry_left, 7);
	wire_free(w);
}
END_TEST

/* No probe costs a retry or moves the response timer; there are few, further and further apart. */
START_TEST(recovery__probes_are_beside_the_timer)
{
	struct wire *w = start_tail(8);
	struct roce_qp_info info;
	unsigned int n = 0;
	struct roce_pkt p;

	wire_wait(w, T(14) - 1);
	while (wire_sent(w, &p))
		n++;
	ck_assert_uint_eq(n, 7);
	roce_qp_get_info(w->qp, &info);
	ck_assert_uint_eq(info.timeouts, 0);
	ck_assert_uint_eq(info.retry_left, 7);
	wire_wait(w, 10 * US);
	roce_qp_get_info(w->qp, &info);
	ck_assert_uint_eq(info.timeouts, 1);
	wire_free(w);
}
END_TEST

/* Who was away has not read yet what came meanwhile. */
START_TEST(recovery__own_absence_is_no_silence)
{
	struct wire *w = start_tail(8);

	w->now += 1000 * US;
	wire_go(w);
	wire_expect_none(w);
	wire_wait(w, 205 * US);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x102, NULL);
	wire_free(w);
}
END_TEST

/* While a peer that keeps waits for a hole's packet, another window follows. */
START_TEST(recovery__goes_on_behind_a_hole)
{
	struct wire *w = start((struct wire_params){.max_inflight = 4 * (1024 + 64)});

	for (uint32_t i = 0; i < 12; i++)
		post_write(w, 1024);
	for (uint32_t i = 0; i < 4; i++)
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101 + i, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x101, ROCE_NAK_PSN_SEQ, 1); /* not known: the hole alone */
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x104, ACK31, 5);
	for (uint32_t i = 4; i < 8; i++)
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101 + i, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x105, ROCE_NAK_PSN_SEQ, 5);
	for (uint32_t i = 0; i < 5; i++) /* the hole, and four more */
		wire_expect(w, ROCE_RC_WRITE_ONLY, i ? 0x108 + i : 0x105, NULL);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/* What fills a hole is lost, too: asked for again up to what is here, no further. */
START_TEST(recovery__probe_for_the_hole_alone)
{
	struct wire *w = start((struct wire_params){0});

	post_read(w, 4096);
	expect_read(w, 0x101, 4096);
	read_resp(w, ROCE_RC_READ_RESP_FIRST, 0x101, 0, 1024);
	read_resp(w, ROCE_RC_READ_RESP_MIDDLE, 0x103, 2048, 1024);
	expect_read(w, 0x102, 1024);
	wire_expect_none(w);
	wire_wait(w, 2000000);
	expect_read(w, 0x102, 1024);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_TIMEOUT), 0);
	wire_free(w);
}
END_TEST

/* A response that is kept acknowledges the WRITE before it, whatever else is missing. */
START_TEST(recovery__kept_response_acknowledges)
{
	struct wire *w = start((struct wire_params){.go_back_n = _i});

	post_read(w, 2048);
	post_write(w, 8);
	post_read(w, 8);
	wire_forget(w);
	read_resp(w, ROCE_RC_READ_RESP_LAST, 0x102, 1024, 1024);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x104, 0, 8);
	wire_forget(w);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x101, 0, 1024);
	if (_i) { /* not kept: it tells the same */
		read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x102, 1024, 1024);
		ck_assert_uint_eq(count_cqes(w), 2);
		ck_assert_uint_eq(qp_of(w)->una, 0x104);
	} else {
		ck_assert_uint_eq(count_cqes(w), 3);
		wire_expect_none(w);
	}
	wire_free(w);
}
END_TEST

/* ---- waits ---------- */

/* Two of a SEND were under way: the second refusal asks for a wait of its own, but no retry. */
START_TEST(rnr__refused_twice)
{
	struct wire *w = start((struct wire_params){.rnr_retry = 1, .timeout = 18});

	wire_post(w, RING_WR_SEND, 0, 8, 0, 0, 0);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x101, NULL);
	wire_ack(w, 0x101, roce_syn_rnr(20), 1); /* 10.24 ms */
	wire_wait(w, 5000000);
	wire_ack(w, 0x101, roce_syn_rnr(20), 1);
	wire_wait(w, 10230000);
	wire_no_cqe(w);
	wire_expect_none(w);
	wire_wait(w, 20000);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x101, NULL);
	wire_expect_none(w);
	wire_ack(w, 0x101, roce_syn_rnr(20), 1);
	wire_cqe(w, WC_RNR_RETRY_EXC_ERR);
	wire_free(w);
}
END_TEST

/* The memory that a peer READs does not come: nothing can be sent, and no retry is used. */
START_TEST(timeout__own_response_waits_for_memory)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});

	post_write(w, 8);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101, NULL);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_REQ, .psn = 0x200, .va = WIRE_VA,
				      .rkey = w->far_key, .dma_len = 64, .ackreq = true}, NULL, 0);
	for (int i = 0; i < 4; i++)
		wire_wait(w, T(14) + 100000);
	wire_no_cqe(w);
	wire_expect_none(w);
	ck_assert_uint_eq(qp_of(w)->retry_left, 1);
	wire_io(w, 0);
	wire_expect(w, ROCE_RC_READ_RESP_ONLY, 0x200, NULL);
	wire_wait(w, T(14) + 100000);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101, NULL);
	ck_assert_uint_eq(qp_of(w)->retry_left, 0);
	wire_free(w);
}
END_TEST

/* ---- what one packet may cost: bounded, whatever was lost (B039) ---------- */

/* Many requests end by one packet: a part of them at once, the others when the QP has its turn. */
START_TEST(work__completions_of_one_packet)
{
	struct wire *w = start((struct wire_params){.timeout = 14, .retry_cnt = 7});
	struct roce_pkt p = {.opcode = ROCE_RC_ACK, .psn = 0x101 + 600, .syndrome = ACK31,
			     .msn = 602};
	unsigned int n;

	for (uint32_t i = 0; i < 600; i++) {
		wire_post(w, RING_WR_RDMA_WRITE, 0, 0, 0, RADDR, RKEY);
		wire_forget(w);
	}
	wire_post(w, _i == 2 ? RING_WR_RDMA_READ : RING_WR_RDMA_WRITE, 0, 0, 0, RADDR, RKEY);
	wire_forget(w);
	if (_i == 1)
		p.syndrome = ROCE_NAK_PSN_SEQ;
	if (_i == 2)
		p.opcode = ROCE_RC_READ_RESP_ONLY;
	wire_pkt_only(w, p, NULL, 0);
	n = count_cqes(w);
	ck_assert_uint_le(n, 256);
	ck_assert_uint_gt(n, 0);
	wire_go(w);
	ck_assert_uint_eq(n + count_cqes(w), _i == 1 ? 600 : 601);
	if (_i == 1)
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101 + 600, NULL);
	wire_expect_none(w);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_IMPLIED_NAK), 0);
	wire_free(w);
}
END_TEST

/* A response is looked for among the READs, not among all that the QP has started. */
START_TEST(work__response_behind_many)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 7});
	struct roce_pkt p = {.opcode = ROCE_RC_READ_RESP_ONLY, .psn = 0x103, .msn = 4,
			     .syndrome = ACK31};
	struct verbs_wqe *next;

	wire_post(w, RING_WR_RDMA_READ, 0, 8, 0, RADDR, RKEY);
	wire_post(w, RING_WR_RDMA_WRITE, 0, 8, 0, RADDR, RKEY);
	wire_post(w, RING_WR_RDMA_READ, 8, 8, 0, RADDR, RKEY);
	next = w->qp->wqe_head->next;
	w->qp->wqe_head->next = (struct verbs_wqe *)(uintptr_t)8; /* who goes there crashes */
	wire_pkt_only(w, p, data, 8);
	wire_pkt_only(w, p, data, 8);
	w->qp->wqe_head->next = next;
	p.psn = 0x101;
	p.msn = 2;
	wire_pkt(w, p, data, 8);
	/* both READs, and the WRITE, which the response behind it has acknowledged */
	ck_assert_uint_eq(count_cqes(w), 3);
	wire_free(w);
}
END_TEST

/* Completions take turns while a response is here: who looks at it then? */
START_TEST(work__kept_response_behind_turns)
{
	struct wire *w = start((struct wire_params){.max_reap = 2});

	post_read(w, 2048); /* 0x101, 0x102 */
	for (uint32_t i = 0; i < 7; i++)
		post_write(w, 0);
	post_read(w, 8); /* 0x10a */
	wire_forget(w);
	read_resp(w, ROCE_RC_READ_RESP_LAST, 0x102, 1024, 1024);
	wire_ack(w, 0x109, ACK31, 9);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x10a, 0, 8);
	wire_forget(w);
	read_resp(w, ROCE_RC_READ_RESP_ONLY, 0x101, 0, 1024);
	ck_assert_uint_eq(count_cqes(w), 9);
	wire_expect_none(w);
	ck_assert_uint_eq(qp_of(w)->rx_held, 0);
	wire_free(w);
}
END_TEST

/* The same for requests of the peer's that were kept. */
START_TEST(work__kept_request_behind_turns)
{
	struct wire *w = start((struct wire_params){.max_reap = 2});
	struct roce_pkt q = {.opcode = ROCE_RC_WRITE_ONLY, .psn = 0x201, .va = WIRE_VA,
			     .rkey = w->key, .dma_len = 8, .ackreq = true};
	struct roce_pkt a = {.opcode = ROCE_RC_ACK, .psn = 0x107, .syndrome = ACK31, .msn = 8};

	for (uint32_t i = 0; i < 7; i++)
		post_write(w, 0);
	wire_pkt(w, q, data, 8);
	wire_forget(w);
	wire_pkt_only(w, a, NULL, 0);
	q.psn = 0x200;
	wire_pkt_only(w, q, data, 8);
	wire_go(w);
	ck_assert_uint_eq(count_cqes(w), 7);
	ck_assert_uint_eq(qp_of(w)->epsn, 0x202);
	ck_assert_uint_eq(qp_of(w)->rx_held, 0);
	wire_expect_ack(w, 0x200, ACK31, 1);
	wire_expect_ack(w, 0x201, ACK31, 2);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/* A turn is due for others while the result is placed: it is turned to host order and stays so. */
START_TEST(work__atomic_result_behind_turns)
{
	struct wire *w = start((struct wire_params){.max_reap = 2});
	struct roce_pkt a = {.opcode = ROCE_RC_ACK, .psn = 0x103, .syndrome = ACK31, .msn = 4};
	struct roce_pkt res = {.opcode = ROCE_RC_ATOMIC_ACK, .psn = 0x104, .syndrome = ACK31,
			       .msn = 5, .orig = UINT64_C(0x1122334455667788)};
	struct ring_wqe q = {.opcode = RING_WR_ATOMIC_FETCH_AND_ADD, .flags = RING_WR_SIGNALED,
			     .num_slots = 1, .num_sge = 1, .rkey = RKEY, .remote_addr = RADDR,
			     .atomic = {.compare_add = 3, .sge = {WIRE_VA, 8, w->far_key}}};
	uint64_t v;

	for (uint32_t i = 0; i < 3; i++)
		post_write(w, 0);
	wire_post_raw(w, &q);
	wire_go(w);
	wire_forget(w);
	wire_pkt_only(w, a, NULL, 0);
	ck_assert(qp_of(w)->rx_again);
	wire_pkt_only(w, res, NULL, 0);
	wire_go(w);
	wire_io(w, 0);
	memcpy(&v, w->far, 8);
	ck_assert_uint_eq(v, res.orig);
	ck_assert_uint_eq(count_cqes(w), 4);
	wire_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_recovery");
	TCase *c = tcase_create("recovery");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_test(c, recovery__peer_that_keeps);
	tcase_add_test(c, recovery__peer_that_drops);
	tcase_add_test(c, recovery__peer_that_drops_pieces);
	tcase_add_test(c, recovery__hole_of_many_responses);
	tcase_add_test(c, recovery__hole_behind_a_hole);
	tcase_add_test(c, recovery__silence_is_asked_about);
	tcase_add_test(c, recovery__silence_behind_few);
	tcase_add_test(c, recovery__lost_tail);
	tcase_add_test(c, recovery__probes_are_beside_the_timer);
	tcase_add_test(c, recovery__own_absence_is_no_silence);
	tcase_add_test(c, recovery__goes_on_behind_a_hole);
	tcase_add_test(c, recovery__probe_for_the_hole_alone);
	tcase_add_loop_test(c, recovery__kept_response_acknowledges, 0, 2);
	tcase_add_test(c, rnr__refused_twice);
	tcase_add_test(c, timeout__own_response_waits_for_memory);
	tcase_add_loop_test(c, work__completions_of_one_packet, 0, 3);
	tcase_add_test(c, work__response_behind_many);
	tcase_add_test(c, work__kept_response_behind_turns);
	tcase_add_test(c, work__kept_request_behind_turns);
	tcase_add_test(c, work__atomic_result_behind_turns);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
