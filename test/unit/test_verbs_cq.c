/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions: what a CQE says, overruns, notifications, flush and drop; and a producer and a
 * consumer in two threads, for TSan. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "verbs_fixture.h"

static uint8_t buf[RING_MAX_WQE_SLOTS * RING_SLOT_SIZE];

static struct verbs_wqe *
start(struct fx *f, uint8_t opcode, uint8_t flags, uint32_t length)
{
	struct ring_sge s = {FX_IOVA, length, f->key};
	struct ring_wqe *r = fx_wqe(buf, opcode, &s, length ? 1 : 0);
	struct verbs_wqe *q = NULL;

	r->flags = flags;
	if (opcode == RING_WR_ATOMIC_CMP_AND_SWP || opcode == RING_WR_ATOMIC_FETCH_AND_ADD) {
		r->num_sge = 1;
		r->atomic.sge.length = 8;
	}
	fx_post(f, buf, 1);
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), 1);
	return q;
}

/* Numbers of enum ibv_wc_opcode. */
static const struct {
	uint8_t wr;
	uint32_t length;
	uint8_t wc;
	uint32_t byte_len;
} sends[] = {
	{RING_WR_SEND, 10, 0, 0},
	{RING_WR_SEND_WITH_IMM, 10, 0, 0},
	{RING_WR_SEND_WITH_INV, 10, 0, 0},
	{RING_WR_RDMA_WRITE, 10, 1, 0},
	{RING_WR_RDMA_WRITE_WITH_IMM, 10, 1, 0},
	{RING_WR_RDMA_READ, 10, 2, 10},
	{RING_WR_ATOMIC_CMP_AND_SWP, 0, 3, 8},
	{RING_WR_ATOMIC_FETCH_AND_ADD, 0, 4, 8},
	{RING_WR_BIND_MW, 0, 5, 0},
	{RING_WR_LOCAL_INV, 0, 6, 0},
	{RING_WR_FLUSH, 0, 8, 0},
	{RING_WR_ATOMIC_WRITE, 8, 9, 0},
	{RING_WR_FAST_REG, 0, 10, 0},
};

START_TEST(send__each_operation)
{
	struct fx *f = fx_new(2, 1, 1, 0x12345);
	struct ring_cqe e;

	memset(f->cqes, 0, sizeof(*f->cqes));
	for (size_t i = 0; i < sizeof(sends) / sizeof(sends[0]); i++) {
		struct verbs_wqe *q = start(f, sends[i].wr, RING_WR_SIGNALED, sends[i].length);

		f->w.now = 5000 + i;
		verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);
		ck_assert(fx_poll(f, &e));
		ck_assert_uint_eq(e.wqe_index, 0x12345 + i);
		ck_assert_uint_eq(e.qpn_status, FX_QPN);
		ck_assert_uint_eq(e.src_opcode, (uint32_t)sends[i].wc << 24);
		ck_assert_uint_eq(e.byte_len, sends[i].byte_len);
		ck_assert_uint_eq(e.timestamp, 5000 + i);
		ck_assert_uint_eq(e.tag & ~RING_CQE_PHASE, 0);
		ck_assert(!fx_poll(f, &e));
	}
	fx_free(f);
}
END_TEST

START_TEST(send__signalled_or_failed)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	struct ring_cqe e;

	for (unsigned int status = 0; status < WC_STATUS_COUNT; status++)
		for (unsigned int sig = 0; sig < 4; sig++) {
			struct verbs_wqe *q =
				start(f, RING_WR_RDMA_READ, (sig & 1) ? RING_WR_SIGNALED : 0, 10);

			f->qp.flags = (sig & 2) ? VERBS_QP_SIG_ALL : 0;
			verbs_complete_send(&f->w, &f->qp, q, status);
			ck_assert_int_eq(fx_poll(f, &e), status != 0 || sig != 0);
			if (status) {
				ck_assert_uint_eq(e.qpn_status, FX_QPN | status << 24);
				ck_assert_uint_eq(e.byte_len, 0);
				ck_assert_uint_eq(e.imm, 0);
			}
		}
	fx_free(f);
}
END_TEST

START_TEST(recv__fields_and_errors)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	struct verbs_recv_done d = {WC_SUCCESS, RING_WC_RECV_RDMA_WITH_IMM, 0xffffffff, 123, 0x99,
				    0xabcdef12};
	struct ring_cqe e;
	struct verbs_rwqe r;

	for (int i = 0; i < 2; i++) {
		struct ring_sge five[5] = {{0}};

		fx_rwqe(buf, five, 5);
		fx_post_recv(f, buf, 2);
		ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), 1);
		verbs_complete_recv(&f->w, &f->qp, &r, &d);
		ck_assert_uint_eq(f->w.blocks_used, 0);
		ck_assert(fx_poll(f, &e));
		ck_assert_uint_eq(e.wqe_index, 2 * i);
		ck_assert_uint_eq(e.qpn_status, FX_QPN | (uint32_t)d.status << 24);
		ck_assert_uint_eq(e.byte_len, i ? 0 : 123);
		ck_assert_uint_eq(e.imm, i ? 0 : 0x99);
		ck_assert_uint_eq(e.src_opcode, i ? 0 : 129u << 24 | 0xcdef12);
		ck_assert_uint_eq(e.tag & ~RING_CQE_PHASE,
				  i ? RING_CQE_RECV
				    : RING_CQE_RECV | RING_CQE_WITH_IMM | RING_CQE_WITH_INV |
					      RING_CQE_GRH | RING_CQE_SOLICITED);
		d.status = WC_LOC_PROT_ERR;
	}
	fx_free(f);
}
END_TEST

static void
complete(struct fx *f, enum wc_status status)
{
	verbs_complete_send(&f->w, &f->qp, start(f, RING_WR_SEND, RING_WR_SIGNALED, 0), status);
}

START_TEST(overrun__once_and_for_all)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	struct ring_cqe e;
	unsigned int n;

	for (n = 0; !f->cq->overrun; n++)
		complete(f, WC_SUCCESS);
	ck_assert_uint_eq(n, FX_CQES); /* one entry is kept for a SWITCH */
	ck_assert_uint_eq(f->cq_daemon.overrun, 1);
	ck_assert_uint_eq(f->num_event, 1);
	ck_assert_int_eq(f->event[0], VERBS_EVENT_CQ_ERR);
	ck_assert_ptr_eq(f->event_obj[0], f->cq);
	while (fx_poll(f, &e))
		n--;
	ck_assert_uint_eq(n, 1);
	complete(f, WC_SUCCESS); /* there would be room, but the CQ is dead */
	complete(f, WC_GENERAL_ERR);
	ck_assert(!fx_poll(f, &e));
	ck_assert_uint_eq(f->num_event, 1);
	ck_assert_uint_eq(counter_read(&f->w.counter[VERBS_C_CQ_OVERRUN]), 3);
	fx_free(f);
}
END_TEST

START_TEST(overrun__no_ring_yet)
{
	struct fx *f = fx_new(2, 1, 1, 0);

	memset(&f->cq->end[0].prod, 0, sizeof(f->cq->end[0].prod));
	complete(f, WC_SUCCESS);
	ck_assert(f->cq->overrun);
	ck_assert_uint_eq(f->num_event, 1);
	fx_free(f);
}
END_TEST

START_TEST(overrun__incredible_consumer)
{
	static const uint32_t cons[] = {FX_CQES, 0x80000000u, 0xffffffffu};

	for (unsigned int i = 0; i < 3; i++) {
		struct fx *f = fx_new(2, 1, 1, 0);

		for (unsigned int n = 0; n < FX_CQES - 1; n++)
			complete(f, WC_SUCCESS);
		ck_assert(!f->cq->overrun);
		f->cq_client.cons[0] = cons[i];
		complete(f, WC_SUCCESS);
		ck_assert(f->cq->overrun);
		fx_free(f);
	}
}
END_TEST

START_TEST(switch__goes_on_in_the_next_ring)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	struct ring_cqe *next = fx_aligned(8 * sizeof(*next));
	struct ring_cqe e;

	complete(f, WC_SUCCESS);
	verbs_cq_switch(&f->w, f->cq, next, 7);
	complete(f, WC_SUCCESS);
	ck_assert(fx_poll(f, &e));
	ck_assert_uint_eq(e.wqe_index, 0);
	ck_assert(fx_poll(f, &e));
	ck_assert(e.tag & RING_CQE_SWITCH);
	ck_assert(!fx_poll(f, &e));
	ck_assert_uint_eq(next[0].wqe_index, 1);
	free(next);
	fx_free(f);
}
END_TEST

START_TEST(notify__one_an_arming)
{
	struct fx *f = fx_new(2, 1, 1, 0);

	complete(f, WC_SUCCESS);
	verbs_cq_burst_end(&f->w);
	ck_assert_uint_eq(f->num_notify, 0); /* not armed */
	ring_cq_arm(&f->cq_client, &f->cq_daemon, RING_CQ_ARMED_NEXT);
	verbs_cq_burst_end(&f->w);
	ck_assert_uint_eq(f->num_notify, 0); /* nothing new: B155 */
	complete(f, WC_SUCCESS);
	complete(f, WC_SUCCESS);
	verbs_cq_burst_end(&f->w);
	ck_assert_uint_eq(f->num_notify, 1);
	complete(f, WC_SUCCESS);
	verbs_cq_burst_end(&f->w);
	ck_assert_uint_eq(f->num_notify, 1);
	ck_assert_uint_eq(counter_read(&f->w.counter[VERBS_C_NOTIFY]), 1);
	fx_free(f);
}
END_TEST

/* C-42: solicited-only is woken by SE and by errors, and by what came before in the burst. */
START_TEST(notify__solicited)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	struct verbs_recv_done d = {WC_SUCCESS, RING_WC_RECV, 0, 0, 0, 0};
	unsigned int want = 0;

	for (unsigned int i = 0; i < 3; i++) {
		struct verbs_rwqe r;

		ring_cq_arm(&f->cq_client, &f->cq_daemon, RING_CQ_ARMED_SOLICITED);
		complete(f, WC_SUCCESS);
		verbs_cq_burst_end(&f->w);
		ck_assert_uint_eq(f->num_notify, want);
		fx_rwqe(buf, NULL, 0);
		fx_post_recv(f, buf, 1);
		ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), 1);
		d.cqe_flags = i == 0 ? RING_CQE_SOLICITED : 0;
		d.status = i == 1 ? WC_LOC_LEN_ERR : WC_SUCCESS;
		verbs_complete_recv(&f->w, &f->qp, &r, &d);
		complete(f, i == 2 ? WC_RETRY_EXC_ERR : WC_SUCCESS);
		complete(f, WC_SUCCESS);
		verbs_cq_burst_end(&f->w);
		ck_assert_uint_eq(f->num_notify, ++want);
	}
	fx_free(f);
}
END_TEST

/* C-45: started ones, then posted sends, then receives; each once, in order; bounded. */
START_TEST(flush__in_order_and_bounded)
{
	for (unsigned int max = 1; max < 12; max++) {
		struct fx *f = fx_new(3, 1, 1, 0xfffffffcu);
		struct ring_sge five[5] = {{0}};
		struct ring_cqe e;
		unsigned int calls = 0;

		start(f, RING_WR_SEND, 0, 0);
		start(f, RING_WR_SEND, 0, 0);
		for (int i = 0; i < 3; i++) { /* of two slots, more than there are shadows */
			fx_wqe(buf, RING_WR_SEND, five, 5);
			fx_post(f, buf, 2);
			fx_rwqe(buf, five, 5);
			fx_post_recv(f, buf, 2);
		}
		f->qp.state = RING_QPS_ERR;
		while (!verbs_qp_flush(&f->w, &f->qp, max))
			calls++;
		ck_assert_uint_eq(calls, (8 - 1) / max);
		for (unsigned int i = 0; i < 8; i++) {
			static const uint32_t index[] = {0, 1, 2, 4, 6, 0, 2, 4};

			ck_assert(fx_poll(f, &e));
			ck_assert_uint_eq(e.wqe_index, 0xfffffffcu + index[i]);
			ck_assert_uint_eq(e.qpn_status >> 24, WC_WR_FLUSH_ERR);
			ck_assert_int_eq((e.tag & RING_CQE_RECV) != 0, i >= 5);
		}
		ck_assert(!fx_poll(f, &e));
		ck_assert(verbs_qp_flush(&f->w, &f->qp, max));
		fx_wqe(buf, RING_WR_SEND, NULL, 0); /* posting in ERR flushes */
		fx_post(f, buf, 1);
		verbs_qp_flush(&f->w, &f->qp, 10);
		ck_assert(fx_poll(f, &e));
		fx_free(f);
	}
}
END_TEST

START_TEST(flush__srq_entries_stay)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	struct verbs_srq srq = {0};
	struct ring_cqe e;

	f->qp.srq = &srq;
	fx_rwqe(buf, NULL, 0);
	fx_post_recv(f, buf, 1); /* nobody's queue now */
	ck_assert(verbs_qp_flush(&f->w, &f->qp, 10));
	ck_assert(!fx_poll(f, &e));
	fx_free(f);
}
END_TEST

/* A client that writes nonsense while its QP is flushed neither hangs nor busies the worker. */
START_TEST(flush__hostile)
{
	uint64_t s = 77;

	for (unsigned int n = 0; n < 3000; n++) {
		struct fx *f = fx_new(2, 1, 1, (uint32_t)fx_random(&s));
		unsigned int calls = 0;

		for (uint32_t i = 0; i < FX_SLOTS; i++) {
			f->sq[i * RING_SLOT_SIZE + 2] = (uint8_t)(fx_random(&s) %
				(n % 2 ? 256 : 4));
			f->rq[i * RING_SLOT_SIZE] = (uint8_t)(fx_random(&s) % (n % 2 ? 256 : 4));
		}
		f->client.sq_tail += (uint32_t)(fx_random(&s) % 20) * (n % 5 ? 1 : 0x1234567);
		f->client.rq_tail += (uint32_t)(fx_random(&s) % 20);
		while (!verbs_qp_flush(&f->w, &f->qp, 3))
			ck_assert_uint_lt(calls++, 20);
		ck_assert_uint_eq(f->qp.sq.head, f->client.sq_tail);
		ck_assert_uint_eq(f->qp.rq.head, f->client.rq_tail);
		ck_assert_uint_le(counter_read(&f->w.counter[VERBS_C_CQE]), 2 * FX_SLOTS);
		fx_free(f);
	}
}
END_TEST

START_TEST(drop__silent_and_usable_again)
{
	struct fx *f = fx_new(3, 2, 1, 0);
	struct ring_sge five[5] = {{0}};
	struct verbs_wqe *q;
	struct verbs_rwqe r;
	struct ring_cqe e;

	fx_wqe(buf, RING_WR_SEND, five, 5);
	fx_post(f, buf, 2);
	fx_post(f, buf, 2);
	fx_post(f, buf, 2);
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), 1);
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), 1);
	f->rq_tail = 0x7000; /* incredible */
	f->client.rq_tail = 0x7000;
	ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), -EBADMSG);
	verbs_qp_drop(&f->w, &f->qp);
	ck_assert_uint_eq(f->w.shadows_used, 0);
	ck_assert_uint_eq(f->w.blocks_used, 0);
	ck_assert(!fx_poll(f, &e));
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), 0);
	fx_rwqe(buf, NULL, 0);
	fx_post_recv(f, buf, 1);
	ck_assert_uint_eq(verbs_rq_count(&f->qp), 1);
	ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), 1);
	ck_assert_uint_eq(r.wqe_index, 0x7000);
	fx_free(f);
}
END_TEST

/* ---- two threads ---------- */

#define THREAD_CQES 20000u

static void *
consumer(void *arg)
{
	struct fx *f = arg;

	for (uint32_t i = 0; i < THREAD_CQES;) {
		struct ring_cqe e;

		if (!fx_poll(f, &e)) {
			sched_yield();
			continue;
		}
		if (e.wqe_index != i || e.timestamp != i * 3 || e.qpn_status != FX_QPN)
			return (void *)1;
		i++;
	}
	return NULL;
}

START_TEST(threads__every_completion_whole_and_in_order)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	pthread_t t;
	void *bad;

	ck_assert_int_eq(pthread_create(&t, NULL, consumer, f), 0);
	for (uint32_t i = 0; i < THREAD_CQES; i++) {
		while (f->cq->end[0].prod.tail -
			       atomic_load_explicit(&f->cq_client.cons[0], memory_order_acquire) >
		       FX_CQES - 2)
			sched_yield();
		f->w.now = i * 3;
		complete(f, WC_SUCCESS);
		verbs_cq_burst_end(&f->w);
	}
	ck_assert_int_eq(pthread_join(t, &bad), 0);
	ck_assert_ptr_null(bad);
	ck_assert(!f->cq->overrun);
	fx_free(f);
}
END_TEST

START_TEST(size__ends_on_lines_of_their_own)
{
	struct verbs_cq *cq = fx_aligned(verbs_cq_size(3));

	cq->num_workers = 3;
	verbs_cq_init_ends(cq);
	for (int i = 0; i < 3; i++) {
		ck_assert_ptr_eq(cq->end[i].cq, cq);
		ck_assert_uint_eq((uintptr_t)&cq->end[i] % RING_LINE, 0);
	}
	ck_assert_ptr_eq((uint8_t *)cq + verbs_cq_size(3), (uint8_t *)&cq->end[3]);
	free(cq);
}
END_TEST

UNIT_MAIN("verbs_cq", send__each_operation, send__signalled_or_failed, recv__fields_and_errors,
	  overrun__once_and_for_all, overrun__no_ring_yet, overrun__incredible_consumer,
	  switch__goes_on_in_the_next_ring, notify__one_an_arming, notify__solicited,
	  flush__in_order_and_bounded, flush__srq_entries_stay, flush__hostile,
	  drop__silent_and_usable_again, threads__every_completion_whole_and_in_order,
	  size__ends_on_lines_of_their_own)
