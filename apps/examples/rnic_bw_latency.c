/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency: one message in the air. WRITE: each side polls the last word of its own memory,
 * SEND: each side polls its queue, READ: the client alone. Each round's number is the data.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "rnic_bw.h"

#define SPINS 1000 /* looks before another process gets the core */

static uint64_t *
last_word(uint8_t *slot, uint32_t size)
{
	return (uint64_t *)(uintptr_t)(slot + size / 8 * 8 - 8);
}

static void
await_word(uint8_t *slot, uint32_t size, uint64_t want)
{
	for (unsigned int i = 1; __atomic_load_n(last_word(slot, size), __ATOMIC_ACQUIRE) != want;
	     i++)
		if (i % SPINS == 0)
			sched_yield();
}

/** Wait for the completions of a round: of our request, and of a receive where there is one. */
static void
await_completions(struct bw_end *e, int want)
{
	struct rnic_wc wc[2];

	for (unsigned int i = 1; want > 0; i++) {
		int n = ex_check(rnic_poll_cq(e->cq, want, wc), "completion queue");

		for (int k = 0; k < n; k++)
			ex_check_wc(&wc[k]);
		want -= n;
		if (n == 0 && i % SPINS == 0)
			sched_yield();
	}
}

static void
throw_one(struct bw_end *e, uint64_t round)
{
	const struct bw_test *t = &e->test;
	struct rnic_wqe *w = rnic_sq_get(e->qp[0], 0, 1);
	uint8_t *from = bw_slot(e, 0, t->op == BW_LAT_SEND ? e->slots - 1 : 0);

	if (!w)
		ex_fail("the send queue is full");
	*last_word(from, t->size) = round;
	if (t->op == BW_LAT_SEND)
		rnic_prep_send(w, RNIC_SEND_SIGNALED);
	else if (t->op == BW_LAT_READ)
		rnic_prep_read(w, bw_remote_slot(e, 0, 0), e->rkey, RNIC_SEND_SIGNALED);
	else
		rnic_prep_write(w, bw_remote_slot(e, 0, 1), e->rkey, RNIC_SEND_SIGNALED);
	rnic_prep_sge(e->qp[0], w, (uintptr_t)from, t->size, e->mr->lkey);
	rnic_sq_submit(e->qp[0]);
}

/** Receive `round` lies in slot round % depth: the last slot is the one that is sent from. */
static void
catch_send(struct bw_end *e, uint64_t round, int completions)
{
	uint8_t *slot;

	await_completions(e, completions);
	slot = bw_slot(e, 0, round % bw_recv_depth(&e->test));
	if (*last_word(slot, e->test.size) != round + 1)
		e->wrong++;
	bw_post_recv(e, 0, round % bw_recv_depth(&e->test));
	rnic_rq_submit(e->qp[0]);
}

/** One round of the client. Round numbers count from 1, so that 0 is no answer. */
static void
round_trip(struct bw_end *e, uint32_t i)
{
	uint64_t seed;

	throw_one(e, i + 1);
	switch (e->test.op) {
	case BW_LAT_WRITE:
		await_word(bw_slot(e, 0, 1), e->test.size, i + 1);
		break;
	case BW_LAT_SEND:
		catch_send(e, i, 2);
		return;
	default:
		break;
	}
	await_completions(e, 1);
	seed = bw_seed(0, 0);
	if (e->test.op == BW_LAT_READ)
		bw_right(e, 0, 0, seed);
}

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void
bw_measure_latency(struct bw_end *e, uint32_t rounds, struct bw_result *r)
{
	double unit = e->test.op == BW_LAT_READ ? 1e3 : 2e3; /* ns of a round trip to us */
	uint64_t *ns = calloc(rounds, sizeof(*ns)), start = ex_now_ns();

	if (!ns)
		ex_fail("no memory");
	ex_say(&e->conn, "rounds %u", rounds);
	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t t = ex_now_ns();

		round_trip(e, i);
		ns[i] = ex_now_ns() - t;
	}
	r->seconds = (double)(ex_now_ns() - start) / 1e9;
	r->messages = rounds;
	r->wrong = e->wrong;
	qsort(ns, rounds, sizeof(*ns), by_value);
	r->min_us = ns[0] / unit;
	r->p50_us = ns[rounds / 2] / unit;
	r->p99_us = ns[(uint64_t)rounds * 99 / 100] / unit;
	r->max_us = ns[rounds - 1] / unit;
	free(ns);
}

void
bw_answer_latency(struct bw_end *e, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds && e->test.op != BW_LAT_READ; i++) {
		if (e->test.op == BW_LAT_WRITE)
			await_word(bw_slot(e, 0, 1), e->test.size, i + 1);
		else
			catch_send(e, i, 1);
		throw_one(e, i + 1);
		await_completions(e, 1);
	}
}
