/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No lost wake-up: a worker that sleeps as soon as it can, without a time limit, and others that
 * give it one thing after the other, each only when the one before is answered. A wake-up that
 * is lost hangs the test.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring_bell.h"
#include "worker_fixture.h"

#define ROUNDS 3000

static struct fx f;

static void *
run(void *arg)
{
	worker_main(arg);
	return NULL;
}

static void
start(uint32_t workers)
{
	fx_init(&f, workers);
	worker_clock_init(&f.s.clock);
	f.s.idle_us = 1; /* sleeps at the first chance */
	f.s.ctl_kick_fd = eventfd(0, 0);
	fx_start_ring(&f, worker_ctl_ring_size(&f.s, 64));
}

/** The control thread's sleep: until something is told. */
static struct worker_msg *
await_told(void)
{
	struct pollfd p = {.fd = f.s.ctl_kick_fd, .events = POLLIN};
	struct worker_msg *m;
	uint64_t n;

	while ((m = fx_told(&f)) == NULL) {
		ring_sleep_enter(&f.s.ctl_sleep);
		if ((m = fx_told(&f)) == NULL) {
			ck_assert_int_eq(poll(&p, 1, -1), 1);
			ck_assert_int_eq(read(f.s.ctl_kick_fd, &n, sizeof(n)), sizeof(n));
		}
		ring_sleep_leave(&f.s.ctl_sleep);
		if (m != NULL)
			break;
	}
	return m;
}

START_TEST(sleep__mail_wakes)
{
	struct worker_msg m = {.type = WORKER_MSG_QUIESCE};
	pthread_t t;

	start(1);
	ck_assert_int_eq(pthread_create(&t, NULL, run, f.s.worker[0]), 0);
	for (int i = 0; i < ROUNDS; i++) {
		ck_assert(worker_send(f.s.worker[0], &m));
		ck_assert_ptr_eq(await_told(), &m);
	}
	worker_stop(f.s.worker[0]); /* wakes it as well */
	pthread_join(t, NULL);
	ck_assert_uint_gt(fx_count(&f, 0, WORKER_C_SLEEPS), 0);
	fx_stop(&f);
}
END_TEST

/** A sleeping worker is offline: nobody waits for its quiescence. */
START_TEST(sleep__offline)
{
	struct worker_msg m = {.type = WORKER_MSG_QUIESCE};
	uint64_t token;
	pthread_t t;

	start(1);
	ck_assert_int_eq(pthread_create(&t, NULL, run, f.s.worker[0]), 0);
	for (int i = 0; i < 100; i++) {
		ck_assert(worker_send(f.s.worker[0], &m));
		await_told();
		token = rte_rcu_qsbr_start(f.s.qsbr);
		while (rte_rcu_qsbr_check(f.s.qsbr, token, false) != 1)
			;
	}
	worker_stop(f.s.worker[0]);
	pthread_join(t, NULL);
	fx_stop(&f);
}
END_TEST

/** A packet for a worker that sleeps. */
START_TEST(sleep__hand_over_wakes)
{
	struct worker_msg m = {.type = WORKER_MSG_QUIESCE};
	struct rte_mbuf *pkt;
	pthread_t t;

	start(2);
	/* Worker 1 sleeps; worker 0 is this thread, and hands over. */
	ck_assert_int_eq(pthread_create(&t, NULL, run, f.s.worker[1]), 0);
	for (int i = 0; i < ROUNDS; i++) {
		pkt = pool_frame(f.pool, v_udp4, sizeof(v_udp4));
		ck_assert(worker_hand_over(f.s.worker[0], 1, pkt));
		worker_poll(f.s.worker[0]);
		while (fx_count(&f, 1, WORKER_C_HANDOVER_RX) != (uint64_t)i + 1)
			;
	}
	ck_assert(worker_send(f.s.worker[1], &m));
	ck_assert_ptr_eq(await_told(), &m);
	worker_stop(f.s.worker[1]);
	pthread_join(t, NULL);
	fx_stop(&f);
}
END_TEST

/* A context, its first bells, and a thread that runs the worker that polls it. */
struct polled {
	struct worker_ctx *ctx;
	struct ring_bell_chunk *bells;
	struct ring_bell_daemon *words;
	pthread_t t;
	int fd;
};

static void
polled_start(struct polled *p)
{
	struct worker_msg m = {.type = WORKER_MSG_CTX_ADD};

	start(1);
	p->ctx = fx_alloc(sizeof(*p->ctx) + sizeof(p->ctx->at[0]));
	p->bells = fx_alloc(sizeof(*p->bells));
	p->words = fx_alloc(sizeof(*p->words));
	p->fd = eventfd(0, EFD_NONBLOCK);
	p->ctx->at[0].chunk[0] = p->bells;
	p->ctx->at[0].slots[0] = calloc(RING_BELL_SLOTS, sizeof(void *));
	p->ctx->at[0].num_chunks = 1;
	p->ctx->at[0].daemon = p->words;
	p->ctx->at[0].kick_fd = p->fd;
	m.ctx = p->ctx;
	ck_assert_int_eq(fx_call(&f, 0, &m), 0);
	ck_assert_int_eq(pthread_create(&p->t, NULL, run, f.s.worker[0]), 0);
}

/* The client's part, the control thread's, and until it is taken. */
static void
polled_ring(struct polled *p, uint32_t slot)
{
	const uint64_t one = 1;

	ring_bell_set(p->bells, slot);
	if (ring_kick_needed(p->words)) {
		ck_assert_int_eq(write(p->fd, &one, sizeof(one)), sizeof(one));
		worker_ctx_kick(f.s.worker[0], p->ctx);
	}
	while (atomic_load(&p->bells->top) != 0)
		;
}

static void
polled_end(struct polled *p)
{
	struct worker_msg m = {.type = WORKER_MSG_CTX_DEL};

	worker_stop(f.s.worker[0]);
	pthread_join(p->t, NULL);
	m.ctx = p->ctx;
	ck_assert_int_eq(fx_call(&f, 0, &m), 0);
	fx_stop(&f);
	close(p->fd);
	free(p->ctx->at[0].slots[0]);
	free(p->ctx);
	free(p->bells);
	free(p->words);
}

/** Bells of an idle context: the client's kick reaches the worker's own epoll. */
START_TEST(sleep__kick_wakes)
{
	struct polled p;

	polled_start(&p);
	for (uint32_t i = 0; i < 200; i++) {
		while (!ring_kick_needed(p.words))
			; /* until it has gone idle */
		polled_ring(&p, i);
	}
	ck_assert_uint_gt(fx_count(&f, 0, WORKER_C_CTX_KICKED), 0);
	polled_end(&p);
}
END_TEST

/** Without a receive interrupt it naps, and wakes by itself for what the port has. */
START_TEST(sleep__naps)
{
	uint64_t nap = 0;

	fx_init(&f, 1);
	f.port[1].wakes = false;
	fx_start_ring(&f, 1024);
	worker_poll(f.s.worker[0]);
	for (int i = 0; i < 20; i++) {
		uint64_t before = nap;

		ck_assert(worker_sleep(f.s.worker[0], &nap));
		ck_assert_uint_eq(nap, before == 0 ? WORKER_NAP_MIN_NS :
				  RTE_MIN(2 * before, WORKER_NAP_MAX_NS));
	}
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_NAPS), 20);
	/* Something is there at the last look: no nap. */
	fx_receive(&f, 1, 0, v_udp4, sizeof(v_udp4));
	ck_assert(!worker_sleep(f.s.worker[0], &nap));
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_NAPS), 20);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_RX_ROCE), 1);
	fx_stop(&f);
}
END_TEST

static _Atomic uint32_t yields;
static _Atomic bool late; /* whoever gets the CPU does not give it back at once */

/* In place of libc's: a worker's offers of its CPU. */
int
sched_yield(void)
{
	atomic_fetch_add(&yields, 1);
	for (uint64_t from = rte_rdtsc(); atomic_load(&late) && /* twice the limit */
	     rte_rdtsc() - from < rte_get_tsc_hz() * 2 * WORKER_YIELD_LOST_NS / 1000000000;)
		;
	return (int)syscall(SYS_sched_yield);
}

/* Offered after so many loops without work, and seldom to who keeps it. */
START_TEST(poll__offers_its_cpu)
{
	pthread_t t;
	uint64_t loops;
	uint32_t n;

	start(1);
	f.s.idle_us = 0; /* never sleeps */
	pthread_create(&t, NULL, run, f.s.worker[0]);
	while (atomic_load(&yields) < 1000)
		syscall(SYS_sched_yield);
	atomic_store(&late, true);
	n = atomic_load(&yields);
	while (atomic_load(&yields) < n + 3)
		syscall(SYS_sched_yield);
	worker_stop(f.s.worker[0]);
	pthread_join(t, NULL);
	loops = fx_count(&f, 0, WORKER_C_LOOPS);
	n = atomic_load(&yields);
	ck_assert_uint_le(n * (uint64_t)WORKER_YIELD_LOOPS, loops);
	/* between the last two lie the offers that were left out */
	ck_assert_uint_ge(loops, (n + 1ull * WORKER_YIELD_HOLD) * WORKER_YIELD_LOOPS);
	fx_stop(&f);
}
END_TEST

/* While a context keeps it from sleeping it polls on, and offers its CPU as ever. */
START_TEST(polled__offers_its_cpu)
{
	struct polled p;

	polled_start(&p);
	for (uint32_t i = 0; atomic_load(&yields) < 10; i = (i + 1) % RING_BELL_SLOTS) {
		polled_ring(&p, i);
		syscall(SYS_sched_yield);
	}
	polled_end(&p);
}
END_TEST

UNIT_MAIN("worker_sleep", sleep__mail_wakes, sleep__offline, sleep__hand_over_wakes,
	  sleep__kick_wakes, sleep__naps, poll__offers_its_cpu, polled__offers_its_cpu)
