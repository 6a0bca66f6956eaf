/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where two things meet: an answer and an unknown neighbour, a drain or a fence and a local
 * invalidate, foreign memory and timers, a modify and what is under way.
 */
#include <errno.h>

#include "wire.h"

#define ACK31 roce_syn_ack(ROCE_CREDIT_CODE_NONE)
#define RADDR 0x7000000u
#define RKEY 0x1234u
#define T(code) (UINT64_C(4096) << (code))

static uint8_t data[8192];

static struct wire *
start(struct wire_params p)
{
	if (p.timeout == 0)
		p.timeout = 10;
	wire_pattern(data, sizeof(data), 3);
	return wire_new(&p);
}

static struct roce_pkt
rdma(const struct wire *w, uint8_t opcode, uint32_t psn, uint32_t len)
{
	return (struct roce_pkt){.opcode = opcode, .psn = psn, .ackreq = true, .va = WIRE_VA,
				 .rkey = w->key, .dma_len = len};
}

static void
post_write(struct wire *w, uint8_t flags)
{
	wire_post(w, RING_WR_RDMA_WRITE, 0, 8, flags, RADDR, RKEY);
}

static void
post_local_inv(struct wire *w, uint32_t key, uint8_t flags)
{
	struct ring_wqe q = {.opcode = RING_WR_LOCAL_INV, .flags = flags | RING_WR_SIGNALED,
			     .num_slots = 1, .imm = key};

	wire_post_raw(w, &q);
	wire_go(w);
}

static uint64_t
neigh_lose(struct wire *w)
{
	return atomic_exchange(&w->neigh->l2, (uint64_t)NET_NEIGH_INCOMPLETE << 48);
}

static void
neigh_find(struct wire *w, uint64_t l2)
{
	atomic_store(&w->neigh->l2, l2);
	roce_neigh_resolved(w->r, w->neigh, w->now);
	wire_go(w);
}

/* ---- what is to be said ---------- */

/* Packets of one burst in another order: the NAK of the first is out of date by its end. */
START_TEST(ROCE_C_17__no_nak_for_what_has_come)
{
	struct wire *w = start((struct wire_params){.strict = _i & 1});
	struct roce_pkt p = rdma(w, _i & 2 ? ROCE_RC_READ_REQ : ROCE_RC_WRITE_ONLY, 0x200, 8);

	p.ackreq = false;
	wire_pkt_only(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x201, 8), data, 8);
	wire_pkt_only(w, p, data, _i & 2 ? 0 : 8);
	wire_go(w);
	if (_i & 2)
		wire_expect(w, ROCE_RC_READ_RESP_ONLY, 0x200, NULL);
	if (!(_i & 1))
		wire_expect_ack(w, 0x201, ACK31, 2);
	else if (!(_i & 2))
		wire_expect_ack(w, 0x200, ACK31, 1);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(neighbour__answer_waits_for_it)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});
	uint64_t l2 = neigh_lose(w);

	/* one to be acknowledged, one that is fatal */
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 8), data, _i ? 7 : 8);
	wire_expect_none(w);
	neigh_find(w, l2);
	wire_expect_ack(w, 0x200, _i ? ROCE_NAK_INVALID_REQ : ACK31, _i ? 0 : 1);
	ck_assert_uint_eq(w->qp->state, _i ? RING_QPS_ERR : RING_QPS_RTS);
	wire_wait(w, 1000000000); /* and nothing goes on for ever */
	ck_assert_uint_eq(roce_next_deadline(w->r), UINT64_MAX);
	wire_free(w);
}
END_TEST

START_TEST(neighbour__answers_cost_no_retry)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});
	uint64_t l2 = neigh_lose(w);

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 8), data, 8);
	wire_wait(w, 10 * T(10));
	neigh_find(w, l2);
	wire_expect_ack(w, 0x200, ACK31, 1);
	post_write(w, 0);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x100, NULL);
	wire_wait(w, T(10) + 10000);
	wire_no_cqe(w);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x100, NULL);
	wire_free(w);
}
END_TEST

/* A request posted while answers wait for the neighbour does not wait for ever either. */
START_TEST(neighbour__request_behind_an_answer)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});
	uint64_t l2 = neigh_lose(w);

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 8), data, 8);
	post_write(w, 0);
	wire_wait(w, 3 * T(10));
	wire_cqe(w, WC_RETRY_EXC_ERR);
	atomic_store(&w->neigh->l2, l2);
	wire_free(w);
}
END_TEST

/* ---- local invalidate ---------- */

START_TEST(B054__fenced_invalidate_waits_for_all)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 7});
	uint32_t key;

	wire_key_fast(w);
	key = w->key;
	post_write(w, 0);
	post_local_inv(w, key, RING_WR_FENCE);
	post_write(w, 0);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x100, NULL);
	wire_expect_none(w);
	wire_wait(w, T(10) + 10000); /* lost: sent again, out of memory that is still there */
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x100, NULL);
	wire_ack(w, 0x100, ACK31, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_LOC_PROT_ERR); /* and now it is gone */
	wire_free(w);
}
END_TEST

START_TEST(B066__invalidate_waits_for_copiers)
{
	struct wire *w = start((struct wire_params){0});
	struct mr *mr = wire_key_fast(w);

	atomic_store(&mr->holds, 1);
	post_local_inv(w, w->key, 0);
	wire_wait(w, 1000000);
	wire_no_cqe(w);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 8), data, 8); /* no longer accepted */
	wire_expect_ack(w, 0x200, ROCE_NAK_REM_ACCESS, 0);
	ck_assert_uint_eq(w->mem[0], 0);
	wire_wait(w, 0);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	atomic_store(&mr->holds, 0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_44__drain_waits_for_local_work)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 7});
	struct mr *mr = wire_key_fast(w);

	if (_i) /* fenced, behind a WRITE; else held by a copier */
		post_write(w, 0);
	else
		atomic_store(&mr->holds, 1);
	post_local_inv(w, w->key, _i ? RING_WR_FENCE : 0);
	ck_assert_int_eq(wire_modify(w, RING_QPS_SQD), 0);
	wire_wait(w, 100000);
	ck_assert_uint_eq(w->num_events, 0);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RTS), -EBUSY);
	if (_i)
		wire_ack(w, 0x100, ACK31, 1);
	else
		atomic_store(&mr->holds, 0);
	wire_wait(w, 100000);
	wire_cqe(w, WC_SUCCESS);
	if (_i)
		wire_cqe(w, WC_SUCCESS);
	ck_assert(wire_event(w, VERBS_EVENT_SQ_DRAINED));
	ck_assert_uint_eq(w->num_events, 1);
	wire_free(w);
}
END_TEST

/* ---- foreign memory ---------- */

/* The answer is here; that the copier is slow is not the peer's fault. */
START_TEST(foreign__slow_placement_costs_no_retry)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});
	struct ring_wqe q = {.opcode = RING_WR_RDMA_READ, .flags = RING_WR_SIGNALED,
			     .num_slots = 1, .num_sge = 1, .rkey = RKEY, .remote_addr = RADDR,
			     .sge = {{WIRE_VA, 64, w->far_key}}};

	wire_post_raw(w, &q);
	wire_go(w);
	wire_expect(w, ROCE_RC_READ_REQ, 0x100, NULL);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_ONLY, .psn = 0x100,
				      .syndrome = ACK31, .msn = 1}, data, 64);
	wire_wait(w, 10 * T(10));
	wire_expect_none(w);
	wire_no_cqe(w); /* a completion would give the memory back under the copier */
	wire_io(w, 0);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_mem_eq(w->far, data, 64);
	wire_free(w);
}
END_TEST

START_TEST(foreign__no_io_left)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});
	struct ring_wqe q = {.opcode = RING_WR_SEND, .num_slots = 1, .num_sge = 1,
			     .sge = {{WIRE_VA, 64, w->far_key}}};
	struct roce_pkt p = rdma(w, ROCE_RC_READ_REQ, 0x200, 64);

	w->vw.ios_used = w->vw.ios; /* others have them */
	if (_i) {
		p.rkey = w->far_key;
		wire_pkt(w, p, NULL, 0);
	} else {
		wire_post_raw(w, &q);
		wire_go(w);
	}
	wire_wait(w, 1000000);
	wire_expect_none(w);
	ck_assert_uint_eq(roce_next_deadline(w->r), UINT64_MAX); /* it waits, and does not look */
	ck_assert_uint_eq(counter_read(&w->vw.everyone.refused[VERBS_POOL_IO]), 1);
	w->vw.ios_used = 0;
	wire_go(w);
	wire_io(w, 0);
	wire_expect(w, _i ? ROCE_RC_READ_RESP_ONLY : ROCE_RC_SEND_ONLY, _i ? 0x200 : 0x100, NULL);
	wire_free(w);
}
END_TEST

/* A packet that waits for its payload is finished as it was begun, whatever the path is by then. */
START_TEST(foreign__path_changes_meanwhile)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_wqe q = {.opcode = RING_WR_SEND, .num_slots = 1, .num_sge = 1,
			     .sge = {{WIRE_VA, 64, w->far_key}}};
	struct verbs_qp_attr a;

	wire_post_raw(w, &q);
	wire_go(w);
	ck_assert_int_eq(wire_modify(w, RING_QPS_SQD), 0);
	roce_qp_query(w->qp, &a);
	a.av.vlan = 5; /* headers are longer */
	ck_assert_int_eq(roce_qp_modify(w->r, w->qp, &a, VERBS_QP_AV, w->now), 0);
	wire_io(w, 0);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x100, NULL); /* its ICRC is right */
	wire_free(w);
}
END_TEST

/* A request's payload that does not come keeps no answer back. */
START_TEST(foreign__answers_pass_a_parked_request)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_wqe q = {.opcode = RING_WR_SEND, .num_slots = 1, .num_sge = 1,
			     .sge = {{WIRE_VA, 64, w->far_key}}};
	struct roce_pkt p = rdma(w, ROCE_RC_READ_REQ, 0x203, 64);

	wire_post_raw(w, &q);
	wire_go(w);
	wire_expect_none(w);
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x200, 2048), NULL, 0);
	wire_expect(w, ROCE_RC_READ_RESP_FIRST, 0x200, NULL);
	wire_expect(w, ROCE_RC_READ_RESP_LAST, 0x201, NULL);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x202, 8), data, 8);
	wire_expect_ack(w, 0x202, ACK31, 2);
	p.rkey = w->far_key; /* but one that needs the same copier waits */
	wire_pkt(w, p, NULL, 0);
	wire_expect_none(w);
	wire_io(w, 0);
	wire_expect(w, ROCE_RC_SEND_ONLY, 0x100, NULL);
	wire_wait(w, 1000000);
	wire_io(w, 0);
	wire_expect(w, ROCE_RC_READ_RESP_ONLY, 0x203, NULL);
	wire_free(w);
}
END_TEST

/* All that a RESET replaces is the control thread's to free. */
START_TEST(reset__gives_everything_back)
{
	struct wire *w = start((struct wire_params){0});
	struct verbs_qp_attr a = {.max_dest_rd_atomic = 8};
	void *old[2];

	ck_assert_int_eq(roce_qp_prepare(w->qp, &a, VERBS_QP_MAX_DEST_RD_ATOMIC), 0);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RESET), 0);
	old[0] = roce_qp_take_garbage(w->qp);
	old[1] = roce_qp_take_garbage(w->qp);
	ck_assert_ptr_nonnull(old[0]);
	ck_assert_ptr_nonnull(old[1]);
	ck_assert_ptr_ne(old[0], old[1]);
	ck_assert_ptr_null(roce_qp_take_garbage(w->qp));
	free(old[0]);
	free(old[1]);
	wire_free(w);
}
END_TEST

/* What comes meanwhile waits behind it, in order, and nobody pays for that with a retry. */
START_TEST(foreign__no_io_left_to_receive)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});
	struct ring_wqe q = {.opcode = RING_WR_RDMA_READ, .flags = RING_WR_SIGNALED,
			     .num_slots = 1, .num_sge = 1, .rkey = RKEY, .remote_addr = RADDR,
			     .sge = {{WIRE_VA, 64, w->far_key}}};
	struct roce_pkt p = rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 64);

	wire_post_raw(w, &q);
	wire_go(w);
	wire_expect(w, ROCE_RC_READ_REQ, 0x100, NULL);
	w->vw.ios_used = w->vw.ios;
	p.rkey = w->far_key;
	p.va = WIRE_VA + 128;
	if (_i)
		wire_pkt(w, p, data, 64);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_ONLY, .psn = 0x100,
				      .syndrome = ACK31, .msn = 1}, data, 64);
	if (!_i)
		wire_pkt(w, p, data, 64);
	wire_wait(w, 10 * T(10));
	wire_expect_none(w);
	wire_no_cqe(w);
	ck_assert_uint_eq(roce_rx_held(w->r), 2);
	w->vw.ios_used = 0;
	wire_go(w);
	for (int i = 0; i < 2; i++) {
		if (_i == i)
			wire_no_cqe(w);
		wire_io(w, 0);
	}
	wire_cqe(w, WC_SUCCESS);
	wire_expect_ack(w, 0x200, ACK31, 1);
	wire_expect_none(w);
	ck_assert_mem_eq(w->far, data, 64);
	ck_assert_mem_eq(w->far + 128, data, 64);
	wire_free(w);
}
END_TEST

/* An atomic's result is turned in the packet, and must be what it was when that is seen again. */
START_TEST(foreign__no_io_left_for_an_atomic)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});
	struct ring_wqe q = {.opcode = RING_WR_ATOMIC_FETCH_AND_ADD, .flags = RING_WR_SIGNALED,
			     .num_slots = 1, .num_sge = 1, .rkey = RKEY, .remote_addr = RADDR,
			     .atomic = {.sge = {WIRE_VA, 8, w->far_key}}};
	uint64_t result;

	wire_post_raw(w, &q);
	wire_go(w);
	wire_expect(w, ROCE_RC_FETCH_ADD, 0x100, NULL);
	w->vw.ios_used = w->vw.ios;
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_ATOMIC_ACK, .psn = 0x100, .msn = 1,
				      .syndrome = ACK31, .orig = 0x1122334455667788}, NULL, 0);
	wire_no_cqe(w);
	w->vw.ios_used = 0;
	wire_go(w);
	wire_io(w, 0);
	wire_cqe(w, WC_SUCCESS);
	memcpy(&result, w->far, 8);
	ck_assert_uint_eq(result, 0x1122334455667788);
	wire_free(w);
}
END_TEST

START_TEST(foreign__gone_while_it_waits_for_an_io)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 1});
	struct roce_pkt p = rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 64);

	w->vw.ios_used = w->vw.ios;
	p.rkey = w->far_key;
	wire_pkt(w, p, data, 64);
	ck_assert_uint_eq(w->vw.num_starved, 1);
	ck_assert_int_eq(wire_modify(w, _i ? RING_QPS_RESET : RING_QPS_ERR), 0);
	ck_assert_uint_eq(w->vw.num_starved, 0);
	ck_assert_uint_eq(roce_rx_held(w->r), 0);
	w->vw.ios_used = 0;
	wire_free(w);
}
END_TEST

START_TEST(foreign__repeated_read_fails_silently)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = rdma(w, ROCE_RC_READ_REQ, 0x200, 2048);

	p.rkey = w->far_key;
	wire_pkt(w, p, NULL, 0);
	wire_io(w, 0);
	wire_io(w, 0);
	wire_forget(w);
	wire_pkt(w, p, NULL, 0);
	wire_io(w, -EFAULT);
	wire_expect_none(w);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x202, 8), data, 8);
	wire_expect_ack(w, 0x202, ACK31, 2);
	wire_free(w);
}
END_TEST

START_TEST(foreign__modify_keeps_off)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = rdma(w, _i ? ROCE_RC_FETCH_ADD : ROCE_RC_READ_REQ, 0x200, 64);
	struct verbs_qp_attr a = {.max_dest_rd_atomic = 0};

	p.rkey = w->far_key;
	wire_pkt(w, p, NULL, 0);
	ck_assert_int_eq(wire_modify(w, RING_QPS_SQD), 0);
	ck_assert_int_eq(roce_qp_modify(w->r, w->qp, &a, VERBS_QP_MAX_DEST_RD_ATOMIC, w->now),
			 -EBUSY);
	wire_io(w, -EFAULT);
	wire_expect_ack(w, 0x200, ROCE_NAK_REM_ACCESS, _i ? 0 : 1);
	wire_free(w);
}
END_TEST

START_TEST(B084__last_wqe_behind_the_last_receive)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_rwqe q = {.num_slots = 1, .num_sge = 1, .sge = {{WIRE_VA, 64, w->far_key}}};

	wire_post_recv(w, 0, 64);
	memcpy(w->rq, &q, sizeof(q));
	wire_pkt(w, rdma(w, ROCE_RC_SEND_ONLY, 0x200, 0), data, 64);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	wire_no_cqe(w); /* a copier still writes */
	ck_assert_uint_eq(w->num_events, 0);
	wire_io(w, 0);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert(wire_event(w, VERBS_EVENT_QP_LAST_WQE_REACHED));
	ck_assert_uint_eq(w->num_events, 1);
	wire_free(w);
}
END_TEST

/* ---- the rest ---------- */

/* What failed while it was sent again stops all behind it; what is before may need more. */
START_TEST(failed__nothing_behind_it_is_sent)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 7, .go_back_n = true});
	struct mr *mr = mr_slot(w->vw.mrs, w->key);
	uint64_t word;

	wire_post(w, RING_WR_RDMA_WRITE, 0, 0, 0, RADDR, RKEY);
	post_write(w, 0);
	wire_post(w, RING_WR_RDMA_READ, 0, 0, 0, RADDR, RKEY);
	wire_forget(w);
	word = atomic_exchange(&mr->word, mr_word_set_state(atomic_load(&mr->word),
							    MR_STATE_DYING));
	for (int i = 0; i < 2; i++) {
		wire_wait(w, T(10) + 10000);
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x100, NULL);
		wire_expect_none(w);
	}
	wire_ack(w, 0x100, ACK31, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_LOC_PROT_ERR);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	atomic_store(&mr->word, word);
	wire_free(w);
}
END_TEST

START_TEST(posted_too_early__is_no_work)
{
	struct wire *w = start((struct wire_params){.stop_at_rtr = true});
	struct ring_wqe q = {.opcode = RING_WR_RDMA_WRITE, .num_slots = 1};

	wire_post_raw(w, &q);
	wire_go(w);
	ck_assert(!w->qp->on_run_list);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(timer__idle_has_none)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 7});

	post_write(w, 0);
	ck_assert_uint_ne(roce_next_deadline(w->r), UINT64_MAX);
	wire_ack(w, 0x100, ACK31, 1);
	wire_wait(w, 2 * T(10));
	ck_assert_uint_eq(roce_next_deadline(w->r), UINT64_MAX);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_TIMEOUT), 0);
	wire_free(w);
}
END_TEST

/* A region that dies while a long READ of it is answered: one NAK, where the answer ends. */
START_TEST(B022__region_dies_under_a_read)
{
	struct wire *w = start((struct wire_params){0});
	struct mr *mr = mr_slot(w->vw.mrs, w->key);
	uint32_t psn = 0x200;
	struct roce_pkt p;

	w->tx_stuck = true;
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x200, 200 << 10), NULL, 0);
	atomic_store(&mr->word, mr_word_set_state(atomic_load(&mr->word), MR_STATE_DYING));
	w->tx_stuck = false;
	wire_go(w);
	while (wire_sent(w, &p) && p.opcode != ROCE_RC_ACK)
		ck_assert_uint_eq(p.psn, psn++);
	ck_assert_uint_gt(psn, 0x200);
	ck_assert_uint_lt(psn, 0x200 + 200);
	ck_assert_uint_eq(p.psn, psn);
	ck_assert_uint_eq(p.syndrome, ROCE_NAK_REM_ACCESS);
	wire_expect_none(w);
	ck_assert_uint_eq(w->num_events, 2);
	ck_assert(wire_event(w, VERBS_EVENT_QP_ACCESS_ERR));
	ck_assert(wire_event(w, VERBS_EVENT_QP_LAST_WQE_REACHED));
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	wire_free(w);
}
END_TEST

START_TEST(cq__overrun_takes_the_qp)
{
	struct wire *w = start((struct wire_params){0});

	for (uint32_t i = 0; i <= WIRE_CQES && w->qp->state == RING_QPS_RTS; i++) {
		post_write(w, 0);
		wire_forget(w);
		wire_ack(w, 0x100 + i, ACK31, i + 1);
	}
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	ck_assert(wire_event(w, VERBS_EVENT_CQ_ERR));
	ck_assert(wire_event(w, VERBS_EVENT_QP_FATAL));
	wire_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_edge");
	TCase *c = tcase_create("edge");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, ROCE_C_17__no_nak_for_what_has_come, 0, 4);
	tcase_add_loop_test(c, neighbour__answer_waits_for_it, 0, 2);
	tcase_add_test(c, neighbour__answers_cost_no_retry);
	tcase_add_test(c, neighbour__request_behind_an_answer);
	tcase_add_test(c, B054__fenced_invalidate_waits_for_all);
	tcase_add_test(c, B066__invalidate_waits_for_copiers);
	tcase_add_loop_test(c, ROCE_C_44__drain_waits_for_local_work, 0, 2);
	tcase_add_test(c, foreign__slow_placement_costs_no_retry);
	tcase_add_loop_test(c, foreign__no_io_left, 0, 2);
	tcase_add_loop_test(c, foreign__no_io_left_to_receive, 0, 2);
	tcase_add_test(c, foreign__no_io_left_for_an_atomic);
	tcase_add_loop_test(c, foreign__gone_while_it_waits_for_an_io, 0, 2);
	tcase_add_test(c, foreign__path_changes_meanwhile);
	tcase_add_test(c, foreign__answers_pass_a_parked_request);
	tcase_add_test(c, reset__gives_everything_back);
	tcase_add_test(c, foreign__repeated_read_fails_silently);
	tcase_add_loop_test(c, foreign__modify_keeps_off, 0, 2);
	tcase_add_test(c, B084__last_wqe_behind_the_last_receive);
	tcase_add_test(c, failed__nothing_behind_it_is_sent);
	tcase_add_test(c, posted_too_early__is_no_work);
	tcase_add_test(c, timer__idle_has_none);
	tcase_add_test(c, B022__region_dies_under_a_read);
	tcase_add_test(c, cq__overrun_takes_the_qp);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
