/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What librnic costs: posting and polling, by lists and one by one, with rnic_post_send() and
 * the inline face, locks and none. The worker is a few lines in this thread, timed apart. Not a
 * test: prints nanoseconds a request, judges nothing.
 */
#include <stdio.h>

#include "../unit/client_fake.h"
#include "bench_util.h"

enum { DEPTH = 32, ROUNDS = 20000, RUNS = 5 };

struct cost {
	double post, poll;
};

static void
post_list(struct rnic_qp *qp, struct rnic_send_wr *wr, bool list)
{
	for (int i = 0; i < DEPTH; i++)
		wr[i].next = list && i < DEPTH - 1 ? &wr[i + 1] : NULL;
	for (int i = 0; i < (list ? 1 : DEPTH); i++) {
		if (rnic_post_send(qp, &wr[i], NULL))
			abort();
	}
}

static void
post_inline_face(struct rnic_qp *qp, bool list)
{
	for (int i = 0; i < DEPTH; i++) {
		struct rnic_wqe *w = rnic_sq_get(qp, (uint64_t)i, 1);

		if (!w)
			abort();
		rnic_prep_write(w, 0x1000, 5, RNIC_SEND_SIGNALED);
		rnic_prep_sge(qp, w, 0x2000, 64, 7);
		if (!list)
			rnic_sq_submit(qp);
	}
	if (list)
		rnic_sq_submit(qp);
}

static void
work(struct fake_set *s)
{
	struct ring_wq_cons *q = &s->f->qp[0].sq;

	for (int64_t n = ring_wq_poll(q); n > 0; n--) {
		if (!fake_done(s->f, 0, 0, 0, q->head++, 0))
			abort();
	}
}

static struct cost
measure(struct fake_set *s, struct rnic_send_wr *wr, bool fast, bool list)
{
	struct cost c = {0, 0};
	struct rnic_wc wc[DEPTH];

	for (int i = 0; i < ROUNDS; i++) {
		double t = bench_now();

		if (fast)
			post_inline_face(s->qp, list);
		else
			post_list(s->qp, wr, list);
		c.post += bench_now() - t;
		work(s);
		t = bench_now();
		for (int got = 0; got < DEPTH;) {
			int n = rnic_poll_cq(s->cq, list ? DEPTH : 1, wc);

			if (n <= 0)
				abort();
			got += n;
		}
		c.poll += bench_now() - t;
	}
	c.post /= (double)ROUNDS * DEPTH;
	c.poll /= (double)ROUNDS * DEPTH;
	return c;
}

static void
report(struct fake_set *s, struct rnic_send_wr *wr, const char *locks)
{
	for (int k = 0; k < 4; k++) {
		struct cost best = {1e30, 1e30};

		for (int run = 0; run < RUNS; run++) {
			struct cost c = measure(s, wr, k & 1, !(k & 2));

			best.post = c.post < best.post ? c.post : best.post;
			best.poll = c.poll < best.poll ? c.poll : best.poll;
		}
		printf("%-9s %-14s lists of %-2d  post %6.1f  poll %6.1f ns\n", locks,
			k & 1 ? "inline" : "rnic_post_send", k & 2 ? 1 : DEPTH, best.post,
			best.poll);
	}
}

static void
bench(uint32_t flags, const char *locks)
{
	static struct rnic_sge sge = {.addr = 0x2000, .length = 64, .lkey = 7};
	struct rnic_send_wr wr[DEPTH];
	struct rnic_cq_attr ca = {.cqe = 127, .flags = flags};
	struct rnic_open_attr oa = {.flags = flags};
	struct fake_set s = {.f = fake_new()};

	s.f->log_sq = s.f->log_rq = 7;
	fake_start(s.f);
	if (rnic_open_fd(s.f->client, &oa, &s.ctx) || rnic_alloc_pd(s.ctx, &s.pd) ||
		rnic_create_cq(s.ctx, &ca, &s.cq))
		abort();
	fake_sub(s.f, 0, 0);
	s.qp = fake_qp_in(&s, RNIC_QPT_RC, NULL);
	s.f->qp[0].daemon->active = 1; /* a busy QP needs no bell */
	for (int i = 0; i < DEPTH; i++)
		wr[i] = (struct rnic_send_wr){
			.wr_id = (uint64_t)i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = RNIC_WR_RDMA_WRITE,
			.send_flags = RNIC_SEND_SIGNALED,
		};
	report(&s, wr, locks);
	fake_teardown(&s);
}

/* The fake daemon's own checks want a test around them. */
START_TEST(costs)
{
	bench(0, "locks");
	bench(RNIC_THREAD_UNSAFE, "no locks");
}
END_TEST

UNIT_MAIN("bench_client", costs)
