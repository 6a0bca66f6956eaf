/* SPDX-License-Identifier: BSD-3-Clause */
/* B172: attacks by words in shared memory: tails, consumer indices, bells, arming, all of it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

static struct hx_rig rig;

/* The daemon's own word about a QP, in time. */
static bool
wait_state(struct hx_qp *q, uint32_t state)
{
	uint64_t end = hx_now_ms() + HX_WAIT_MS;

	while (atomic_load(&q->daemon->state) != state && hx_now_ms() < end)
		hx_pass(&rig.h, 1);
	return atomic_load(&q->daemon->state) == state;
}

/*
 * One WRITE more, until it is completed: a tail that goes back over a request which the worker
 * has not taken yet is no fault, it only withdraws that.
 */
static void
wait_taken(struct hx_qp *q)
{
	struct ring_wqe w = hx_write(&rig, 0, 65536, 8);
	uint32_t index = q->sq.tail;
	uint64_t end = hx_now_ms() + HX_WAIT_MS;
	struct ring_cqe c;

	hx_post(&rig, q, &w);
	while (hx_now_ms() < end && atomic_load(&q->daemon->state) != RING_QPS_ERR)
		if (hx_poll_wait(&rig.h, &rig.cq, &c, 10) == 0 && c.wqe_index == index &&
		    (c.qpn_status & 0xffffff) == q->qpn && !(atomic_load(&c.tag) & RING_CQE_RECV))
			return;
}

/* A tail that cannot be puts the QP into error, and no other. */
static void
ring_tail(struct hostile *t)
{
	static const uint32_t jumps[] = {0x80000000, 0x7fffffff, 0xffffffff, 100000, 0xfffffff0};

	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		struct hx_qp *q;

		if (!hostile_rig(t, &rig))
			return;
		hostile_traffic(t, &rig, 16);
		q = &rig.qp[hostile_below(t, 2)];
		wait_taken(q);
		atomic_store(&q->client->sq_tail, q->sq.tail + jumps[i]);
		hx_ring(&rig.h, q);
		if (!wait_state(q, RING_QPS_ERR))
			FAULT(t, "sq_tail + %#x: the QP is in state %u", jumps[i],
			      atomic_load(&q->daemon->state));
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

/* The receive queue's tail: looked at when a SEND arrives. */
static void
ring_recv_tail(struct hostile *t)
{
	struct ring_wqe w;

	if (!hostile_rig(t, &rig))
		return;
	w = hx_write(&rig, 0, 0, 64);
	w.opcode = RING_WR_SEND;
	atomic_store(&rig.qp[1].client->rq_tail, 0x80000000u + hostile_below(t, 1000));
	hx_post(&rig, &rig.qp[0], &w);
	if (!wait_state(&rig.qp[1], RING_QPS_ERR))
		FAULT(t, "a hostile rq_tail: the QP is in state %u",
		      atomic_load(&rig.qp[1].daemon->state));
	hostile_alive(t, &rig.h);
}

static void
ring_tail_storm(struct hostile *t)
{
	uint64_t end = hx_now_ms() + 400;

	if (!hostile_rig(t, &rig))
		return;
	while (hx_now_ms() < end) {
		struct hx_qp *q = &rig.qp[hostile_below(t, 2)];

		for (int i = 0; i < 1000; i++) {
			atomic_store(&q->client->sq_tail, (uint32_t)hostile_value(t));
			atomic_store(&q->client->rq_tail, (uint32_t)hostile_value(t));
		}
		hx_ring(&rig.h, q);
	}
	hostile_alive(t, &rig.h);
}

/* Consumer indices that cannot be count as a full ring: overrun, never a write beyond it. */
static void
ring_cons(struct hostile *t)
{
	if (!hostile_rig(t, &rig))
		return;
	for (int round = 0; round < 20; round++) {
		for (uint32_t w = 0; w < RING_MAX_WORKERS; w++)
			atomic_store(&rig.cq.client->cons[w], (uint32_t)hostile_value(t));
		for (int i = 0; i < 40; i++) {
			struct ring_wqe w = hx_write(&rig, 0, 65536, 8);

			hx_post(&rig, &rig.qp[i & 1], &w);
		}
		hx_pass(&rig.h, 5);
	}
	hostile_alive(t, &rig.h);
}

/* More completions than the CQ has room for, none taken. */
static void
ring_overrun(struct hostile *t)
{
	struct hx_cq small;
	struct hx_qp q[2];
	struct ring_ctrl_hdr hdr;
	uint64_t end = hx_now_ms() + HX_WAIT_MS;

	if (!hostile_rig(t, &rig) || hx_create_cq(&rig.h, 4, RING_NO_HANDLE, &small))
		return;
	for (int i = 0; i < 2; i++)
		if (hx_create_qp(&rig.h, rig.pd, small.cqn, 64, &q[i]))
			return;
	for (int i = 0; i < 2; i++)
		if (hx_connect_qp(&rig.h, &q[i], q[!i].qpn, &rig.av))
			return;
	for (int i = 0; i < 60; i++) {
		struct ring_wqe w = hx_write(&rig, 0, 65536, 8);

		hx_post(&rig, &q[0], &w);
	}
	while (!rig.h.num_events && hx_now_ms() < end)
		if (hx_receive(&rig.h, &hdr, 100) == -ENOTCONN)
			break;
	MUST(t, rig.h.num_events > 0, "an overrun, and no event");
	MUST(t, atomic_load(&small.daemon->overrun) != 0, "an overrun, and the CQ has no mark");
	hostile_alive(t, &rig.h);
}

/* All bits of all bells at all workers, again and again. */
static void
ring_bells(struct hostile *t)
{
	uint64_t end = hx_now_ms() + 500, one = 1;

	if (!hostile_rig(t, &rig))
		return;
	while (hx_now_ms() < end) {
		for (uint32_t w = 0; w < rig.h.num_workers; w++) {
			struct ring_bell_chunk *b = rig.h.bell[w];

			if (!b)
				continue;
			if (hostile_below(t, 2))
				memset(b, 0xff, sizeof(*b));
			else
				atomic_store(&b->top, hostile_rand(t));
			if (w < rig.h.num_kicks &&
			    write(rig.h.kick[w], &one, sizeof(one)) < 0)
				break;
		}
	}
	hostile_traffic(t, &rig, 16);
	hostile_alive(t, &rig.h);
}

/* Bells of QPs that are not there, not yet bound, or another worker's. */
static void
ring_dead_bells(struct hostile *t)
{
	struct hx_qp unbound;

	if (!hostile_rig(t, &rig) || hx_create_qp(&rig.h, rig.pd, rig.cq.cqn, 16, &unbound))
		return;
	for (int i = 0; i < 2000; i++) {
		uint32_t w = hostile_below(t, rig.h.num_workers);
		uint32_t slot = hostile_below(t, 2) ? hostile_below(t, RING_BELL_SLOTS)
						    : hostile_below(t, 8);

		ring_bell_set(rig.h.bell[w], i % 3 ? slot : unbound.bell % RING_BELL_SLOTS);
		if (i % 256 == 0)
			hostile_traffic(t, &rig, 2);
	}
	hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, unbound.qpn);
	for (uint32_t w = 0; w < rig.h.num_workers; w++)
		ring_bell_set(rig.h.bell[w], unbound.bell % RING_BELL_SLOTS);
	hostile_traffic(t, &rig, 8);
	hostile_alive(t, &rig.h);
}

/* A channel whose pipe nobody reads, and an armed word of any value. */
static void
ring_armed(struct hostile *t)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_create_channel_rep rep;
	struct hx_cq cq;
	struct hx_qp q[2];

	if (!hostile_rig(t, &rig))
		return;
	if (hx_call(&rig.h, RING_CTRL_CREATE_CHANNEL, &req, &rep, sizeof(rep)) ||
	    hx_create_cq(&rig.h, 256, rep.handle, &cq)) {
		FAULT(t, "no channel");
		return;
	}
	for (int i = 0; i < 2; i++)
		if (hx_create_qp(&rig.h, rig.pd, cq.cqn, 64, &q[i]))
			return;
	for (int i = 0; i < 2; i++)
		if (hx_connect_qp(&rig.h, &q[i], q[!i].qpn, &rig.av))
			return;
	for (uint32_t i = 0; i < 3000; i++) {
		struct ring_wqe w = hx_write(&rig, 0, 65536, 8);
		struct ring_cqe c;

		atomic_store(&cq.client->armed, i % 2 ? (i + 1) << 2 | RING_CQ_ARMED_NEXT
						      : (uint32_t)hostile_value(t));
		hx_post(&rig, &q[0], &w);
		if (i % 16 == 15)
			while (!hx_poll_wait(&rig.h, &cq, &c, 1))
				;
	}
	/* the daemon must be able to destroy them with the pipe full */
	hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, q[0].qpn);
	hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, q[1].qpn);
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_CQ, cq.cqn) == 0, "DESTROY_CQ");
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_CHANNEL, rep.handle) == 0,
	     "DESTROY_CHANNEL");
	hostile_alive(t, &rig.h);
}

/* Every byte that the client can write, at random, under traffic. */
static void
ring_scribble(struct hostile *t)
{
	uint64_t end = hx_now_ms() + 700;

	if (!hostile_rig(t, &rig))
		return;
	hostile_traffic(t, &rig, 16);
	while (hx_now_ms() < end) {
		for (uint32_t n = 0; n < HX_ARENAS; n++) {
			struct hx_arena *a = &rig.h.arena[n];

			if (!a->base || a->kind != RING_ARENA_C)
				continue;
			for (int i = 0; i < 256; i++) {
				uint64_t at = hostile_rand(t) % (a->size / 8) * 8;
				uint64_t v = hostile_value(t);

				/* most of it lies in the first pages */
				if (hostile_below(t, 2))
					at %= a->size < 65536 ? a->size : 65536;
				memcpy(a->base + at, &v, 8);
			}
		}
		for (uint32_t w = 0; w < rig.h.num_workers; w++)
			if (rig.h.bell[w])
				ring_bell_set(rig.h.bell[w],
					      rig.qp[hostile_below(t, 2)].bell % RING_BELL_SLOTS);
	}
	hostile_alive(t, &rig.h);
}

static void *
scribbler(void *arg)
{
	struct hostile *t = arg;

	for (;;) {
		struct hx_qp *q = &rig.qp[hostile_below(t, 2)];
		uint32_t n = hostile_below(t, (q->sq.mask + 1) * RING_SLOT_SIZE / 8);
		uint64_t v = hostile_value(t);

		memcpy(q->sq.slots + n * 8, &v, 8);
		pthread_testcancel();
	}
	return NULL;
}

/* Requests that change while they are read. */
static void
ring_race(struct hostile *t)
{
	struct hostile other = *t;
	pthread_t thread;

	other.rng ^= 0x5555;
	for (int round = 0; round < 5; round++) {
		if (!hostile_rig(t, &rig))
			return;
		pthread_create(&thread, NULL, scribbler, &other);
		for (int i = 0; i < 8; i++)
			hostile_traffic(t, &rig, 8);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

/* Resizes without consuming, with hostile indices in the old ring. */
static void
ring_resize(struct hostile *t)
{
	if (!hostile_rig(t, &rig))
		return;
	for (int i = 0; i < 60; i++) {
		struct ring_ctrl_resize_cq_req r = {
			.cqn = rig.cq.cqn,
			.entries = hostile_below(t, 3) ? 1 + hostile_below(t, 1024)
						       : (uint32_t)hostile_value(t),
		};
		struct ring_wqe w = hx_write(&rig, 0, 65536, 8);

		MUST(t, hx_call(&rig.h, RING_CTRL_RESIZE_CQ, &r, NULL, 0) != -ETIMEDOUT,
		     "RESIZE_CQ: no answer");
		hx_post(&rig, &rig.qp[0], &w);
		if (hostile_below(t, 3) == 0)
			atomic_store(&rig.cq.client->cons[0], (uint32_t)hostile_value(t));
	}
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, rig.qp[0].qpn) == 0, "DESTROY_QP");
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, rig.qp[1].qpn) == 0, "DESTROY_QP");
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_CQ, rig.cq.cqn) == 0, "DESTROY_CQ");
	hostile_alive(t, &rig.h);
}

const struct hostile_case hostile_ring_cases[] = {
	{"ring_tail", ring_tail, "send tails that cannot be", false},
	{"ring_recv_tail", ring_recv_tail, "a receive tail that cannot be", false},
	{"ring_tail_storm", ring_tail_storm, "tails that change all the time", false},
	{"ring_cons", ring_cons, "consumer indices that cannot be", false},
	{"ring_overrun", ring_overrun, "a CQ that nobody polls", false},
	{"ring_bells", ring_bells, "all bells at once, again and again", false},
	{"ring_dead_bells", ring_dead_bells, "bells of QPs that are not there", false},
	{"ring_armed", ring_armed, "armed words of any value, a pipe that nobody reads", false},
	{"ring_scribble", ring_scribble, "all writable memory overwritten under traffic", false},
	{"ring_race", ring_race, "requests that change while they are read", false},
	{"ring_resize", ring_resize, "resizes that nobody follows", false},
	{NULL, NULL, NULL, false},
};
