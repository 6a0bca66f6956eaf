/* SPDX-License-Identifier: BSD-3-Clause */
/* Polling: sub-rings, resizes, wr_id, discarded completions, what a hostile daemon could say. */
#include <sys/syscall.h>

#include "client_fake.h"
#include "client_priv.h"

static void
post(struct fake_set *s, uint64_t id)
{
	struct rnic_send_wr wr = {.wr_id = id, .opcode = RNIC_WR_SEND, .send_flags = 2};

	ck_assert_int_eq(rnic_post_send(s->qp, &wr, NULL), 0);
}

static void
post_recv(struct rnic_qp *qp, uint64_t id)
{
	struct rnic_recv_wr wr = {.wr_id = id};

	ck_assert_int_eq(rnic_post_recv(qp, &wr, NULL), 0);
}

START_TEST(poll__fields)
{
	struct fake_set s = fake_setup(4);
	struct ring_cqe e = {
		.wqe_index = 0,
		.qpn_status = FAKE_QPN(0) | (uint32_t)RNIC_WC_REM_ACCESS_ERR << 24,
		.byte_len = 17,
		.imm = 0x01020304,
		.src_opcode = 0x654321 | 129u << 24,
		.timestamp = 99,
	};
	struct rnic_wc wc;

	post_recv(s.qp, 40);
	post(&s, 41);
	ck_assert(fake_cqe(s.f, 0, 0, &e, RING_CQE_RECV | RING_CQE_WITH_IMM | RING_CQE_GRH));
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 40); /* the receive queue's index 0, not the send queue's */
	ck_assert_uint_eq(wc.status, RNIC_WC_REM_ACCESS_ERR);
	ck_assert_uint_eq(wc.opcode, RNIC_WC_RECV_RDMA_WITH_IMM);
	ck_assert_uint_eq(wc.byte_len, 17);
	ck_assert_uint_eq(wc.imm_data, 0x01020304);
	ck_assert_uint_eq(wc.qp_num, FAKE_QPN(0));
	ck_assert_uint_eq(wc.src_qp, 0x654321);
	ck_assert_uint_eq(wc.wc_flags, RNIC_WC_WITH_IMM | RNIC_WC_GRH);
	ck_assert_uint_eq(wc.timestamp, 99);
	ck_assert_ptr_eq(wc.qp, s.qp);
	e.qpn_status = FAKE_QPN(0);
	ck_assert(fake_cqe(s.f, 0, 0, &e, RING_CQE_WITH_INV));
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 41);
	ck_assert_uint_eq(wc.wc_flags, RNIC_WC_WITH_INV);
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 0);
	ck_assert_int_eq(rnic_poll_cq(s.cq, 0, &wc), 0);
	ck_assert_int_eq(rnic_poll_cq(s.cq, -1, &wc), -EINVAL);
	fake_teardown(&s);
}
END_TEST

/* A full ring is read out batch by batch, and only then has room again. */
START_TEST(poll__batches_and_release)
{
	struct fake_set s = fake_setup(6);
	uint32_t cap = s.f->cq[0].entries - 1;
	struct rnic_wc wc[8];
	uint32_t posted = 0;
	uint32_t polled = 0;

	for (int round = 0; round < 50; round++) {
		uint32_t done = posted;

		while (posted - polled < cap)
			post(&s, 100 + posted++);
		for (; done < posted; done++)
			ck_assert(fake_done(s.f, 0, 0, 0, done, 0));
		ck_assert(!fake_done(s.f, 0, 0, 0, done, 0));
		for (uint32_t want = polled + 1 + (uint32_t)round % 8; polled < want; polled++) {
			ck_assert_int_eq(rnic_poll_cq(s.cq, 1, wc), 1);
			ck_assert_uint_eq(wc[0].wr_id, 100 + polled);
		}
	}
	ck_assert_int_eq(rnic_poll_cq(s.cq, 8, wc), 8);
	fake_teardown(&s);
}
END_TEST

START_TEST(poll__two_subs_in_turn)
{
	struct fake_set s = fake_setup(4);
	struct rnic_qp *qp2 = fake_qp_in(&s, RNIC_QPT_RC, NULL);
	uint32_t seen[2] = {0, 0};
	struct rnic_wc wc;

	for (uint64_t i = 0; i < 4; i++) {
		post(&s, i);
		post_recv(qp2, 100 + i);
	}
	for (uint32_t i = 0; i < 4; i++)
		ck_assert(fake_done(s.f, 0, 0, 0, i, 0));
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 0);
	fake_sub(s.f, 0, 1); /* made later */
	for (uint32_t i = 0; i < 4; i++)
		ck_assert(fake_done(s.f, 0, 1, 1, i, RING_CQE_RECV));
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
		seen[wc.wr_id >= 100]++;
	}
	ck_assert_uint_eq(seen[0], 2); /* neither waits for the other */
	ck_assert_uint_eq(seen[1], 2);
	ck_assert_uint_ne(atomic_load(&s.f->cq[0].client->cons[1]), 0);
	fake_teardown(&s);
}
END_TEST

static void
resize(struct fake_set *s, uint32_t entries)
{
	struct fake_cq *c = &s->f->cq[0];
	uint32_t gen = c->daemon->sub[0].generation;
	struct ring_cq_sub *place;
	static uint32_t generation;

	gen = ++generation;
	place = &c->daemon->sub[(gen & 1) * RING_MAX_WORKERS];
	struct ring_cqe *ring = fake_ring(s->f, entries, place);

	place->worker = 0;
	place->generation = gen;
	ring_cq_switch(&c->prod[0], ring, entries - 1);
}

START_TEST(poll__resize)
{
	struct fake_set s = fake_setup(6);
	static const uint32_t sizes[] = {64, 4, 16, 128, 2};
	uint32_t index = 0;
	uint32_t polled = 0;
	struct rnic_wc wc[64];

	for (uint32_t k = 0; k < 5; k++) {
		uint32_t was = index;

		while (index - was < s.f->cq[0].prod[0].mask) { /* the old one is full */
			post(&s, index);
			if (!fake_done(s.f, 0, 0, 0, index, 0))
				break;
			index++;
			if (index - was == 12)
				break;
		}
		resize(&s, sizes[k]);
		post(&s, index);
		ck_assert(fake_done(s.f, 0, 0, 0, index++, 0));
		while (polled < index) {
			int n = rnic_poll_cq(s.cq, 64, wc);

			ck_assert_int_gt(n, 0);
			for (int i = 0; i < n; i++)
				ck_assert_uint_eq(wc[i].wr_id, polled++);
		}
		ck_assert(ring_cq_switched(&s.f->cq[0].prod[0], s.f->cq[0].prod[0].tail));
	}
	fake_teardown(&s);
}
END_TEST

START_TEST(poll__discards_what_fits_nothing)
{
	struct fake_set s = fake_setup(2);
	struct rnic_wc wc;

	post(&s, 7);
	post(&s, 8);
	ck_assert(fake_done(s.f, 0, 0, 99, 0, 0));	      /* no such QP */
	ck_assert(fake_done(s.f, 0, 0, 0, 5, 0));	      /* never posted */
	ck_assert(fake_done(s.f, 0, 0, 0, UINT32_MAX, 0));    /* nonsense */
	ck_assert(fake_done(s.f, 0, 0, 0, 0, RING_CQE_RECV)); /* no receive was posted */
	ck_assert(fake_done(s.f, 0, 0, 0, 1, 0));
	ck_assert(fake_done(s.f, 0, 0, 0, 1, 0)); /* twice */
	ck_assert(fake_done(s.f, 0, 0, 0, 0, 0)); /* implied by the other */
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 8);
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 0);
	ck_assert_uint_eq(rnic_stale_completions(s.ctx), 6);
	fake_teardown(&s);
}
END_TEST

START_TEST(poll__destroyed_and_reset_qp)
{
	struct fake_set s = fake_setup(2);
	struct rnic_qp *qp2 = fake_qp_in(&s, RNIC_QPT_RC, NULL);
	struct rnic_wc wc;

	post_recv(qp2, 1);
	ck_assert(fake_done(s.f, 0, 0, 1, 0, RING_CQE_RECV));
	ck_assert_int_eq(rnic_destroy_qp(qp2), 0);
	for (uint64_t i = 0; i < 4; i++)
		post(&s, i);
	ck_assert(fake_done(s.f, 0, 0, 0, 0, 0));
	fake_to_state(s.qp, RNIC_QPS_RESET);
	fake_to_state(s.qp, RNIC_QPS_INIT);
	fake_to_state(s.qp, RNIC_QPS_RTR);
	fake_to_state(s.qp, RNIC_QPS_RTS);
	for (uint64_t i = 0; i < 4; i++)
		post(&s, 100 + i); /* all slots are free again */
	ck_assert(fake_done(s.f, 0, 0, 0, 4, 0));
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 100);
	ck_assert_uint_eq(rnic_stale_completions(s.ctx), 2);
	fake_teardown(&s);
}
END_TEST

START_TEST(poll__overrun_told_last)
{
	struct fake_set s = fake_setup(2);
	struct rnic_wc wc;

	post(&s, 1);
	ck_assert(fake_done(s.f, 0, 0, 0, 0, 0));
	s.f->cq[0].daemon->overrun = 1;
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), -EOVERFLOW);
	/* who does nothing else learns of the daemon's death all the same */
	fake_die(s.f);
	for (int i = 0; i < 100000 && rnic_poll_cq(s.cq, 1, &wc) == -EOVERFLOW; i++)
		;
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), -ENOTCONN);
	fake_teardown(&s);
}
END_TEST

static void *
resetter(void *arg)
{
	fake_to_state(arg, RNIC_QPS_RESET);
	return NULL;
}

static bool
ends_soon(pthread_t t)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 100000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_timedjoin_np(t, NULL, &until) == 0;
}

/* A poll that has judged a completion moves the head next: RESET is not to come between. */
START_TEST(poll__reset_waits)
{
	for (int q = 0; q < 3; q++) {
		struct fake_set s = fake_setup(2);
		struct client_qp *qp = client_qp(s.qp);
		struct client_lock *lock = q == 0 ? &client_cq(s.cq)->lock
			: q == 1			  ? &qp->sq_lock
							  : &qp->rq_lock;
		struct rnic_send_wr wr = {.opcode = RNIC_WR_SEND};
		pthread_t t;

		post(&s, 1);
		client_lock(lock);
		pthread_create(&t, NULL, resetter, s.qp);
		ck_assert(!ends_soon(t));
		client_unlock(lock);
		pthread_join(t, NULL);
		ck_assert_uint_eq(s.qp->sq.head, s.qp->sq.tail);
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), -EINVAL);
		fake_teardown(&s);
	}
}
END_TEST

/* A sub-ring's place that makes no sense ends the context, not the process. */
START_TEST(poll__hostile_places)
{
	static const struct ring_cq_sub bad[] = {
		{.arena = 7, .log_entries = 4},
		{.arena = 0, .log_entries = 4}, /* a C arena */
		{.arena = 1, .log_entries = 0},
		{.arena = 1, .log_entries = 30},
		{.arena = 1, .log_entries = 200},
		{.arena = 1, .log_entries = 4, .offset = FAKE_ARENA - 32},
		{.arena = 1, .log_entries = 4, .offset = UINT64_MAX - 31},
		{.arena = 1, .log_entries = 4, .offset = 4},
		{.arena = 1, .log_entries = 4, .worker = 32},
		{.arena = 1, .log_entries = 4, .generation = 1},
	};

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fake_set s = fake_setup(2);
		struct rnic_wc wc;

		ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 0);
		s.f->cq[0].daemon->sub[1] = bad[i];
		s.f->cq[0].daemon->num_sub = i & 1 ? 2 : UINT32_MAX;
		ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), -ENOTCONN);
		ck_assert_int_eq(rnic_status(s.ctx), -ENOTCONN);
		fake_teardown(&s);
	}
}
END_TEST

START_TEST(poll__hostile_switch)
{
	struct fake_set s = fake_setup(2);
	struct rnic_wc wc;

	post(&s, 1);
	ck_assert(fake_done(s.f, 0, 0, 0, 0, RING_CQE_SWITCH)); /* there is no other place */
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), -ENOTCONN);
	fake_teardown(&s);
}
END_TEST

static _Atomic uint32_t yields;

/* In place of libc's: how often the CPU is offered. */
int
sched_yield(void)
{
	atomic_fetch_add(&yields, 1);
	return (int)syscall(SYS_sched_yield);
}

/* Who polls in vain for long may keep the worker from the CPU; who finds something does not. */
START_TEST(poll__in_vain_offers_the_cpu)
{
	struct fake_set s = fake_setup(4);
	uint32_t index = 0;
	struct rnic_wc wc;

	atomic_store(&yields, 0);
	for (int i = 0; i < 4 * 512; i++)
		ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 0);
	ck_assert_uint_eq(atomic_load(&yields), 4);
	for (int i = 0; i < 4 * 512; i++) {
		if (i % 256 == 0) {
			post(&s, 1);
			ck_assert(fake_done(s.f, 0, 0, 0, index++, 0));
		}
		rnic_poll_cq(s.cq, 1, &wc);
	}
	ck_assert_uint_eq(atomic_load(&yields), 4);
	fake_teardown(&s);
}
END_TEST

START_TEST(srq__slots)
{
	struct fake_set s = fake_setup(2);
	struct rnic_srq_init_attr attr = {.attr = {4, 5, 0}};
	struct rnic_sge sge[5] = {{.addr = 1}, {.addr = 2}, {.addr = 3}, {.addr = 4}, {.addr = 5}};
	struct rnic_recv_wr wr = {.sg_list = sge, .num_sge = 5};
	struct rnic_srq *srq;
	struct rnic_qp *qp;
	struct rnic_wc wc;

	ck_assert_int_eq(rnic_create_srq(s.pd, &attr, &srq), 0);
	qp = fake_qp_in(&s, RNIC_QPT_RC, srq);
	ck_assert_int_eq(rnic_post_recv(qp, &wr, NULL), -EINVAL); /* its SRQ is posted to */
	for (wr.wr_id = 0; wr.wr_id < 4; wr.wr_id++)
		ck_assert_int_eq(rnic_post_srq_recv(srq, &wr, NULL), 0);
	ck_assert_int_eq(rnic_post_srq_recv(srq, &wr, NULL), -ENOMEM);
	wr.num_sge = 6;
	ck_assert_int_eq(rnic_post_srq_recv(srq, &wr, NULL), -EINVAL);
	wr.num_sge = 5;
	ck_assert_uint_eq(atomic_load(&s.f->srq.client->tail), 4);
	uint32_t third = s.f->srq.index[2];
	const struct ring_rwqe *w = (const void *)(s.f->srq.slots + third * 2 * RING_SLOT_SIZE);
	ck_assert_uint_eq(w->num_sge, 5);
	ck_assert_uint_eq(w->num_slots, 2);
	ck_assert_int_eq(memcmp(w->sge, sge, sizeof(sge)), 0);
	/* out of order, one twice, one that does not exist */
	ck_assert(fake_done(s.f, 0, 0, 1, third, RING_CQE_RECV));
	ck_assert(fake_done(s.f, 0, 0, 1, third, RING_CQE_RECV));
	ck_assert(fake_done(s.f, 0, 0, 1, 4, RING_CQE_RECV));
	ck_assert(fake_done(s.f, 0, 0, 1, s.f->srq.index[0], RING_CQE_RECV));
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 2);
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 0);
	ck_assert_uint_eq(rnic_stale_completions(s.ctx), 2);
	/* two slots are back; a third comes back with the QP that had taken it */
	ck_assert(fake_done(s.f, 0, 0, 1, s.f->srq.index[1], RING_CQE_RECV));
	ck_assert_int_eq(rnic_destroy_qp(qp), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rnic_post_srq_recv(srq, &wr, NULL), 0);
	ck_assert_int_eq(rnic_post_srq_recv(srq, &wr, NULL), -ENOMEM);
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 0);
	ck_assert_int_eq(rnic_destroy_srq(srq), 0);
	fake_teardown(&s);
}
END_TEST

/* Slots come back with their QP from sub-rings that nobody polled, and from behind a resize. */
START_TEST(srq__slots_of_destroyed_qp)
{
	struct fake_set s = fake_setup(2);
	struct rnic_srq_init_attr attr = {.attr = {4, 5, 0}};
	struct rnic_recv_wr wr = {.wr_id = 0};
	struct rnic_srq *srq;
	struct rnic_qp *qp;
	struct rnic_wc wc;

	ck_assert_int_eq(rnic_create_srq(s.pd, &attr, &srq), 0);
	qp = fake_qp_in(&s, RNIC_QPT_RC, srq);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(rnic_post_srq_recv(srq, &wr, NULL), 0);
	fake_sub(s.f, 0, 1);
	for (uint32_t i = 0; i < 3; i++) {
		if (i == 2)
			resize(&s, 4);
		ck_assert(fake_done(s.f, 0, i == 0, 1, s.f->srq.index[i], RING_CQE_RECV));
	}
	ck_assert_int_eq(rnic_destroy_qp(qp), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rnic_post_srq_recv(srq, &wr, NULL), 0);
	ck_assert_int_eq(rnic_post_srq_recv(srq, &wr, NULL), -ENOMEM);
	/* the poller goes the same way, and tells the daemon how far it is */
	ck_assert(!ring_cq_switched(&s.f->cq[0].prod[0], s.f->cq[0].prod[0].tail - 1));
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 0);
	ck_assert(ring_cq_switched(&s.f->cq[0].prod[0], s.f->cq[0].prod[0].tail - 1));
	ck_assert_uint_eq(rnic_stale_completions(s.ctx), 3);
	fake_teardown(&s);
}
END_TEST

/* Two threads post, two poll one CQ: each request completes once. */
#define PER_THREAD 2000
static struct fake_set shared;
static _Atomic uint32_t total;
static _Atomic uint8_t count[2][PER_THREAD];
static struct rnic_qp *qps[2];

static void *
poster(void *arg)
{
	uint32_t k = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < PER_THREAD;) {
		struct rnic_send_wr wr = {
			.wr_id = (uint64_t)k << 32 | i,
			.opcode = RNIC_WR_SEND,
		};
		int rc = rnic_post_send(qps[k], &wr, NULL);

		if (rc == 0)
			i++;
		else if (rc != -ENOMEM)
			abort();
		else
			sched_yield();
	}
	return NULL;
}

static void *
poller(void *arg)
{
	struct rnic_wc wc[4];

	while (atomic_load(&total) < 2 * PER_THREAD) {
		int n = rnic_poll_cq(shared.cq, 4, wc);

		for (int i = 0; i < n; i++)
			atomic_fetch_add(&count[wc[i].wr_id >> 32][(uint32_t)wc[i].wr_id], 1);
		atomic_fetch_add(&total, (uint32_t)n);
		if (n == 0)
			sched_yield();
	}
	return arg;
}

START_TEST(threads__post_and_poll)
{
	pthread_t t[4];

	shared = fake_setup(3);
	qps[0] = shared.qp;
	qps[1] = fake_qp_in(&shared, RNIC_QPT_RC, NULL);
	for (uintptr_t k = 0; k < 2; k++) {
		pthread_create(&t[k], NULL, poster, (void *)k);
		pthread_create(&t[2 + k], NULL, poller, NULL);
	}
	while (atomic_load(&total) < 2 * PER_THREAD) { /* the worker */
		for (uint32_t k = 0; k < 2; k++) {
			struct ring_wq_cons *q = &shared.f->qp[k].sq;

			if (ring_wq_poll(q) > 0 && fake_done(shared.f, 0, 0, k, q->head, 0))
				q->head++;
		}
		sched_yield();
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	for (uint32_t i = 0; i < PER_THREAD; i++) {
		ck_assert_uint_eq(count[0][i], 1);
		ck_assert_uint_eq(count[1][i], 1);
	}
	fake_teardown(&shared);
}
END_TEST

UNIT_MAIN("client_poll", poll__fields, poll__batches_and_release, poll__two_subs_in_turn,
	poll__resize, poll__discards_what_fits_nothing, poll__destroyed_and_reset_qp,
	poll__overrun_told_last, poll__reset_waits, poll__hostile_places, poll__hostile_switch,
	srq__slots, srq__slots_of_destroyed_qp, poll__in_vain_offers_the_cpu,
	threads__post_and_poll)
