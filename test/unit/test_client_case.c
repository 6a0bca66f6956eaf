/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults that users of other verbs libraries met, named by their ids in docs/cases.md. */
#include <stddef.h>

#include "client_fake.h"

/* ---- B024: a request as short as its operation allows ---------- */

static struct rnic_mr mr = {.lkey = 7};
static struct rnic_mw *mw;

#define UPTO(member) (offsetof(struct rnic_send_wr, member) + \
	sizeof(((struct rnic_send_wr *)0)->member))

static const struct {
	uint32_t opcode;
	size_t size; /* bytes of the request that are there */
} shorts[] = {
	{RNIC_WR_SEND, offsetof(struct rnic_send_wr, wr)},
	{RNIC_WR_SEND_WITH_IMM, offsetof(struct rnic_send_wr, wr)},
	{RNIC_WR_SEND_WITH_INV, offsetof(struct rnic_send_wr, wr)},
	{RNIC_WR_LOCAL_INV, offsetof(struct rnic_send_wr, wr)},
	{RNIC_WR_RDMA_WRITE, UPTO(wr.rdma.rkey)},
	{RNIC_WR_RDMA_WRITE_WITH_IMM, UPTO(wr.rdma.rkey)},
	{RNIC_WR_RDMA_READ, UPTO(wr.rdma.rkey)},
	{RNIC_WR_ATOMIC_WRITE, UPTO(wr.rdma.rkey)},
	{RNIC_WR_FLUSH, UPTO(wr.flush.level)},
	{RNIC_WR_ATOMIC_FETCH_AND_ADD, UPTO(wr.atomic.rkey)},
	{RNIC_WR_ATOMIC_CMP_AND_SWP, UPTO(wr.atomic.rkey)},
	{RNIC_WR_BIND_MW, UPTO(wr.bind_mw.rkey)},
};

START_TEST(B024__short_requests)
{
	static struct rnic_sge sge = {.addr = 0x1000, .length = 8, .lkey = 5};
	const size_t page = 4096, size = (shorts[_i].size + 7) & ~(size_t)7; /* aligned */
	struct fake_set s = fake_setup(4);
	struct rnic_send_wr full = {.wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = shorts[_i].opcode}, *wr;
	uint8_t *mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);

	ck_assert_ptr_ne(mem, MAP_FAILED);
	ck_assert_int_eq(mprotect(mem + page, page, PROT_NONE), 0);
	if (full.opcode == RNIC_WR_BIND_MW) {
		ck_assert_int_eq(rnic_alloc_mw(s.pd, RNIC_MW_TYPE_2, &mw), 0);
		full.wr.bind_mw.mw = mw;
		full.wr.bind_mw.mr = &mr;
		full.wr.bind_mw.length = 8;
		full.wr.bind_mw.rkey = rnic_key_variant(mw->rkey, 1);
	}
	wr = (struct rnic_send_wr *)(mem + page - size);
	memcpy(wr, &full, size);
	ck_assert_int_eq(rnic_post_send(s.qp, wr, NULL), 0);
	munmap(mem, 2 * page);
	fake_teardown(&s);
}
END_TEST

/* ---- B162: inline data ---------- */

/* Of one and of many elements, over the ring's end too; the buffers are the caller's at once. */
START_TEST(B162__inline_of_many_elements)
{
	struct fake_set s = fake_setup(4);
	uint8_t from[256], want[256], got[5 * RING_SLOT_SIZE];
	const uint32_t n = (uint32_t)_i + 1, most = s.qp->sq.max_inline;
	struct rnic_send_wr wr = {.opcode = RNIC_WR_SEND, .num_sge = (int)n,
		.send_flags = RNIC_SEND_SIGNALED | RNIC_SEND_INLINE};
	struct rnic_sge sge[12];
	struct rnic_wc wc;

	ck_assert_uint_le(most, sizeof(want));
	wr.sg_list = sge;
	for (uint32_t turn = 0; turn < 20; turn++) {
		struct ring_wq_cons *q = &s.f->qp[0].sq;
		const struct ring_wqe *w = (const struct ring_wqe *)got;
		/* 4 slots and 3 of 16: over the end now and then */
		uint32_t at = 0, index = q->head, total = turn & 1 ? most - 50 : most;

		for (uint32_t i = 0; i < total; i++)
			from[i] = want[i] = (uint8_t)(turn * 31 + i * 7 + 1);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t len = i + 1 < n ? total / n : total - at;

			sge[i] = (struct rnic_sge){.addr = (uintptr_t)from + at, .length = len};
			at += len;
		}
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
		memset(from, 0xee, sizeof(from));
		memset(sge, 0xee, sizeof(sge));
		ck_assert_int_ge(ring_wq_poll(q), 0);
		ck_assert_int_gt(ring_wq_take(q, offsetof(struct ring_wqe, num_slots), got), 0);
		ck_assert_uint_eq(w->inline_len, total);
		ck_assert_mem_eq(w->data, want, total);
		ck_assert(fake_done(s.f, 0, 0, 0, index, 0));
		ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	}
	fake_teardown(&s);
}
END_TEST

/* ---- B086: an event that was got and not acknowledged ---------- */

static _Atomic int destroyed;

static void *
destroyer(void *cq)
{
	int rc = rnic_destroy_cq(cq);

	atomic_store(&destroyed, 1);
	return (void *)(intptr_t)rc;
}

/* As ibv_destroy_cq(): it waits for the acknowledgement, and for nothing else. */
START_TEST(B086__destroy_waits_for_the_acknowledgement)
{
	struct fake_set s = fake_setup(4);
	struct rnic_cq_attr attr = {.cqe = 15};
	struct rnic_channel *ch;
	struct rnic_cq *cq, *got;
	pthread_t t;
	void *rc;

	atomic_store(&destroyed, 0);
	ck_assert_int_eq(rnic_create_channel(s.ctx, &ch), 0);
	attr.channel = ch;
	ck_assert_int_eq(rnic_create_cq(s.ctx, &attr, &cq), 0);
	fake_sub(s.f, 1, 0);
	ck_assert_int_eq(rnic_req_notify_cq(cq, 0), 0);
	ck_assert(ring_cq_should_notify(s.f->cq[1].client, s.f->cq[1].daemon, false));
	ring_channel_push(&s.f->channel[0], FAKE_CQN(1));
	ck_assert_int_eq(write(s.f->pipe, "", 1), 1);
	ck_assert_int_eq(rnic_get_cq_event(ch, &got), 0);
	ck_assert_ptr_eq(got, cq);
	pthread_create(&t, NULL, destroyer, cq);
	while (!atomic_load(&s.f->calls[RING_CTRL_DESTROY_CQ]))
		sched_yield();
	for (int i = 0; i < 1000; i++)
		sched_yield();
	ck_assert_int_eq(atomic_load(&destroyed), 0);
	rnic_ack_cq_events(cq, 1);
	pthread_join(t, &rc);
	ck_assert_int_eq((int)(intptr_t)rc, 0);
	ck_assert_int_eq(rnic_destroy_channel(ch), 0);
	fake_teardown(&s);
}
END_TEST

/* ---- B085: completions ---------- */

/* Flushed ones come out of poll as all others: none is kept back. */
START_TEST(B085__flushed_ones_are_polled)
{
	struct fake_set s = fake_setup(4);
	struct rnic_send_wr wr = {.opcode = RNIC_WR_SEND, .send_flags = RNIC_SEND_SIGNALED};
	struct rnic_wc wc[16];

	for (uint32_t i = 0; i < 8; i++) {
		wr.wr_id = 100 + i;
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	}
	for (uint32_t i = 0; i < 8; i++) {
		struct ring_cqe e = {.wqe_index = i, .qpn_status = FAKE_QPN(0)};

		if (i >= 3)
			e.qpn_status |= (uint32_t)RNIC_WC_WR_FLUSH_ERR << 24;
		ck_assert(fake_cqe(s.f, 0, 0, &e, 0));
	}
	ck_assert_int_eq(rnic_poll_cq(s.cq, 16, wc), 8);
	for (uint32_t i = 0; i < 8; i++) {
		ck_assert_uint_eq(wc[i].wr_id, 100 + i);
		ck_assert_uint_eq(wc[i].status, i < 3 ? RNIC_WC_SUCCESS : RNIC_WC_WR_FLUSH_ERR);
	}
	fake_teardown(&s);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("client_case");
	TCase *c = tcase_create("case");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, B024__short_requests, 0, (int)(sizeof(shorts) / sizeof(shorts[0])));
	tcase_add_loop_test(c, B162__inline_of_many_elements, 0, 12);
	tcase_add_test(c, B086__destroy_waits_for_the_acknowledgement);
	tcase_add_test(c, B085__flushed_ones_are_polled);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
