/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines joined by a wire in virtual time that loses packets by a seed: random operations
 * complete once, in order and with the right data. The simulator does far more; this one is
 * small enough to debug by.
 */
#include "base_rng.h"
#include "wire.h"

#define OPS 60
#define STEP_NS 20000

struct pair {
	struct wire *n[2];
	struct rng rng;
	uint32_t loss; /* of 1000 */
	uint32_t lost;
};

static struct pair *
pair_new(uint64_t seed, uint32_t loss, bool strict, bool go_back_n)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct wire_params a = {.qpn = 0x1001, .dest_qpn = 0x2002, .sq_psn = 0xfffff0,
				.rq_psn = 0x777777, .timeout = 8, .retry_cnt = 7, .rnr_retry = 7,
				.min_rnr_timer = 1, .strict = strict, .go_back_n = go_back_n,
				.credits = true};
	struct wire_params b = {.qpn = 0x2002, .dest_qpn = 0x1001, .sq_psn = 0x777777,
				.rq_psn = 0xfffff0, .timeout = 8, .retry_cnt = 7, .rnr_retry = 7,
				.min_rnr_timer = 1, .strict = strict, .go_back_n = go_back_n,
				.credits = true, .us = "192.0.2.3", .peer = "192.0.2.2"};

	rng_seed(&p->rng, seed);
	p->loss = loss;
	p->n[0] = wire_new(&a);
	p->n[1] = wire_new(&b);
	return p;
}

static bool
pair_carry(struct pair *p, unsigned int from)
{
	struct wire *a = p->n[from], *b = p->n[!from];
	struct roce_pkt pkt;
	bool any = false;

	while (wire_sent(a, &pkt)) {
		struct rte_mbuf *m = wire_last(a);

		any = true;
		if (rng_below(&p->rng, 1000) < p->loss) {
			p->lost++;
			continue;
		}
		wire_frame_only(b, rte_pktmbuf_mtod(m, void *), m->pkt_len);
	}
	return any;
}

/** One round of both; @return false: nothing will happen any more. */
static bool
pair_step(struct pair *p)
{
	bool any;
	uint64_t d0, d1;

	wire_go(p->n[0]);
	wire_go(p->n[1]);
	any = pair_carry(p, 0);
	any |= pair_carry(p, 1);
	p->n[0]->now += STEP_NS;
	p->n[1]->now += STEP_NS;
	d0 = roce_next_deadline(p->n[0]->r);
	d1 = roce_next_deadline(p->n[1]->r);
	return any || d0 != UINT64_MAX || d1 != UINT64_MAX;
}

static void
pair_post_random(struct pair *p, unsigned int from, unsigned int i)
{
	static const uint8_t ops[] = {RING_WR_SEND, RING_WR_RDMA_WRITE, RING_WR_RDMA_READ,
				      RING_WR_SEND_WITH_IMM, RING_WR_RDMA_WRITE_WITH_IMM,
				      RING_WR_ATOMIC_FETCH_AND_ADD};
	struct wire *a = p->n[from], *b = p->n[!from];
	uint8_t op = ops[rng_below(&p->rng, sizeof(ops))];
	uint32_t len = rng_below(&p->rng, 4) ? rng_below(&p->rng, 3000)
					     : rng_below(&p->rng, 20000);
	struct ring_wqe q = {.opcode = op, .flags = RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = 1, .rkey = b->key, .imm = i};

	if (rng_below(&p->rng, 8) == 0)
		q.flags |= RING_WR_FENCE;
	q.remote_addr = WIRE_VA + 65536 + rng_below(&p->rng, 65536);
	q.sge[0] = (struct ring_sge){WIRE_VA + rng_below(&p->rng, 65536 - 20000), len, a->key};
	if (op == RING_WR_ATOMIC_FETCH_AND_ADD) {
		q.remote_addr = WIRE_VA + 200000;
		q.atomic.compare_add = 1;
		q.atomic.swap = 0;
		q.atomic.sge = (struct ring_sge){WIRE_VA + 210000 + 8 * i, 8, a->key};
	}
	if (op == RING_WR_SEND || op == RING_WR_SEND_WITH_IMM ||
	    op == RING_WR_RDMA_WRITE_WITH_IMM)
		wire_post_recv(b, 140000, 20000);
	wire_post_raw(a, &q);
}

static unsigned int
pair_reap(struct wire *w, uint32_t *next)
{
	const struct ring_cqe *e;
	unsigned int n = 0;

	while ((e = ring_cq_peek(&w->cons)) != NULL) {
		ck_assert_uint_eq(e->qpn_status >> 24, WC_SUCCESS);
		if (!(e->tag & RING_CQE_RECV)) {
			ck_assert_uint_eq(e->wqe_index, *next);
			(*next)++;
			n++;
		}
		ring_cq_advance(&w->cons);
		ring_cq_release(&w->cons);
	}
	return n;
}

static void
pair_run(uint64_t seed, uint32_t loss, bool strict, bool go_back_n)
{
	struct pair *p = pair_new(seed, loss, strict, go_back_n);
	uint32_t next[2] = {0, 0}, steps = 0;
	uint64_t adds[2];

	for (unsigned int i = 0; i < OPS; i++)
		for (unsigned int f = 0; f < 2; f++)
			pair_post_random(p, f, i);
	while (next[0] < OPS || next[1] < OPS) {
		ck_assert_msg(steps++ < 20000, "seed %llu loss %u: stuck at %u, %u",
			      (unsigned long long)seed, loss, next[0], next[1]);
		pair_step(p);
		pair_reap(p->n[0], &next[0]);
		pair_reap(p->n[1], &next[1]);
	}
	while (pair_step(p))
		ck_assert_msg(steps++ < 40000, "seed %llu: never quiet", (unsigned long long)seed);
	for (unsigned int f = 0; f < 2; f++) {
		memcpy(&adds[f], p->n[f]->mem + 200000, 8);
		wire_no_cqe(p->n[f]);
	}
	ck_assert_uint_le(adds[0], OPS);
	wire_free(p->n[0]);
	wire_free(p->n[1]);
	free(p);
}

START_TEST(pair__no_loss)
{
	pair_run(1, 0, false, false);
}
END_TEST

/* B048: of each thousand packets 30 are lost, and no retry count is exhausted. */
START_TEST(pair__loss)
{
	pair_run(2 + (uint64_t)_i, 30, _i & 1, _i & 2);
}
END_TEST

static Suite *
pair_suite(void)
{
	Suite *s = suite_create("wire_pair");
	TCase *c = tcase_create("pair");

	tcase_set_timeout(c, 0);
	tcase_add_test(c, pair__no_loss);
	tcase_add_loop_test(c, pair__loss, 0, 16);
	suite_add_tcase(s, c);
	return s;
}

int
main(void)
{
	SRunner *r = srunner_create(pair_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
