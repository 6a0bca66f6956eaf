/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells and kicks: every bit is found, a flood is bounded, nothing is lost between threads. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ring_bell.h"
#include "ring_kick.h"

static uint8_t *seen; /* by slot */
static unsigned int num_seen;

static void
found(void *arg, uint32_t slot)
{
	ck_assert_ptr_null(arg);
	ck_assert_uint_lt(slot, RING_BELL_SLOTS);
	seen[slot]++;
	num_seen++;
}

static struct ring_bell_chunk *chunk;

static void
setup(void)
{
	chunk = aligned_alloc(RING_LINE, sizeof(*chunk));
	memset(chunk, 0, sizeof(*chunk));
	seen = calloc(1, RING_BELL_SLOTS);
	num_seen = 0;
}

static void
teardown(void)
{
	free(chunk);
	free(seen);
}

START_TEST(bell__every_slot)
{
	struct ring_bell_scan scan = {0};

	for (uint32_t slot = 0; slot < RING_BELL_SLOTS; slot += 61) {
		ring_bell_set(chunk, slot);
		ring_bell_set(chunk, slot);
		ck_assert(ring_bell_any(chunk));
		ck_assert(!ring_bell_collect(chunk, &scan, 100, found, NULL));
		ck_assert_uint_eq(seen[slot], 1);
		ck_assert(!ring_bell_any(chunk));
	}
	ck_assert_uint_eq(num_seen, (RING_BELL_SLOTS + 60) / 61);
}
END_TEST

/* A client that sets all it can: each call stays within its budget, and all are found. */
START_TEST(bell__flood)
{
	struct ring_bell_scan scan = {0};
	unsigned int calls = 0;
	bool more;

	memset(chunk, 0xff, sizeof(*chunk));
	do {
		unsigned int before = num_seen;

		more = ring_bell_collect(chunk, &scan, 256, found, NULL);
		ck_assert_uint_le(num_seen - before, 256 + 64);
		calls++;
	} while (more);
	ck_assert_uint_eq(num_seen, RING_BELL_SLOTS);
	ck_assert_uint_ge(calls, RING_BELL_SLOTS / (256 + 64));

	/* summaries over nothing cost words, not bits: bounded as well */
	memset(chunk, 0xff, offsetof(struct ring_bell_chunk, leaf));
	calls = 0;
	while (ring_bell_collect(chunk, &scan, 256, found, NULL))
		calls++;
	ck_assert_uint_eq(num_seen, RING_BELL_SLOTS);
	ck_assert_uint_ge(calls, 4096 / 256);
}
END_TEST

START_TEST(bell__leave)
{
	struct ring_qp_client c = {0};
	struct ring_qp_daemon d = {0};
	uint8_t slot[RING_SLOT_SIZE] = {0};
	struct ring_wq_cons sq = {slot, &c.sq_tail, 0, 0, 0};
	struct ring_wq_cons rq = {slot, &c.rq_tail, 0, 0, 0};

	ring_bell_enter(&d);
	ck_assert(!ring_bell_needed(&d));
	ck_assert(ring_bell_leave(&d, &sq, NULL));
	ck_assert(ring_bell_needed(&d));
	atomic_store(&c.sq_tail, 1);
	ck_assert(!ring_bell_leave(&d, &sq, NULL));
	ck_assert(!ring_bell_needed(&d));
	ck_assert_int_eq(ring_wq_poll(&sq), 1);
	atomic_store(&c.rq_tail, 1);
	ck_assert(ring_bell_leave(&d, &sq, NULL));
	ck_assert(!ring_bell_leave(&d, &sq, &rq)); /* receives to flush */

	/* receive posts ring to be flushed, and for nothing else */
	atomic_store(&d.active, 0);
	atomic_store(&d.state, RING_QPS_RTS);
	ck_assert(!ring_bell_needed_recv(&d));
	atomic_store(&d.state, RING_QPS_ERR);
	ck_assert(ring_bell_needed_recv(&d));
	ring_bell_enter(&d);
	ck_assert(!ring_bell_needed_recv(&d));
}
END_TEST

START_TEST(kick__idle)
{
	struct ring_bell_daemon d = {0};

	ck_assert(!ring_kick_needed(&d));
	ck_assert(ring_kick_idle(&d, &chunk, 1));
	ck_assert(ring_kick_needed(&d));
	ring_kick_awake(&d);
	ring_bell_set(chunk, 3);
	ck_assert(!ring_kick_idle(&d, &chunk, 1));
	ck_assert(!ring_kick_needed(&d));
}
END_TEST

#define STRESS 20000
#define POSTERS 2

/* Everything the two sides share, and the kick as a counter in place of the eventfd. */
static struct {
	struct ring_bell_chunk bells;
	struct ring_bell_daemon ctx;
	struct ring_qp_client qp[POSTERS];
	struct ring_qp_daemon st[POSTERS];
	struct ring_wq_cons sq[POSTERS];
	_Atomic uint32_t kicks;
	struct ring_sleep sleep;
	_Atomic uint32_t consumed[POSTERS];
} sh;

/* Slots under one mid word: summaries are shared. */
#define SLOT(q) ((q) * 64u)

static void *
poster(void *arg)
{
	uint32_t q = (uint32_t)(uintptr_t)arg;
	struct ring_wq_prod p = {NULL, &sh.qp[q].sq_tail, 63, 0, 0};

	while (p.tail < STRESS) {
		p.head = atomic_load_explicit(&sh.consumed[q], memory_order_acquire);
		if (ring_wq_free(&p) == 0) {
			sched_yield();
			continue;
		}
		p.tail++;
		ring_wq_publish(&p);
		if (!ring_bell_needed(&sh.st[q]))
			continue;
		ring_bell_set(&sh.bells, SLOT(q));
		if (ring_kick_needed(&sh.ctx))
			atomic_fetch_add(&sh.kicks, 1);
	}
	return NULL;
}

static void
serve(void *arg, uint32_t slot)
{
	uint32_t q = slot / 64;

	(void)arg;
	ring_bell_enter(&sh.st[q]);
	do {
		int64_t n = ring_wq_poll(&sh.sq[q]);

		ck_assert_int_ge(n, 0);
		sh.sq[q].head += (uint32_t)n;
		atomic_store_explicit(&sh.consumed[q], sh.sq[q].head, memory_order_release);
	} while (!ring_bell_leave(&sh.st[q], &sh.sq[q], NULL));
}

/*
 * B151, under TSan too: the worker sleeps until kicked whenever it may; a lost wake-up ends in the
 * test's time-out.
 */
START_TEST(bell__threads)
{
	struct ring_bell_chunk *chunks[] = {&sh.bells};
	struct ring_bell_scan scan = {0};
	pthread_t t[POSTERS];
	uint32_t kicks = 0;

	for (uint32_t q = 0; q < POSTERS; q++) {
		sh.sq[q] = (struct ring_wq_cons){NULL, &sh.qp[q].sq_tail, 63, 0, 0};
		ck_assert_int_eq(pthread_create(&t[q], NULL, poster, (void *)(uintptr_t)q), 0);
	}
	while (sh.sq[0].head < STRESS || sh.sq[1].head < STRESS) {
		if (ring_bell_any(&sh.bells)) {
			while (ring_bell_collect(&sh.bells, &scan, 4, serve, NULL))
				;
			continue;
		}
		if (!ring_kick_idle(&sh.ctx, chunks, 1))
			continue;
		while (atomic_load(&sh.kicks) == kicks)
			sched_yield();
		kicks = atomic_load(&sh.kicks);
		ring_kick_awake(&sh.ctx);
	}
	for (uint32_t q = 0; q < POSTERS; q++)
		ck_assert_int_eq(pthread_join(t[q], NULL), 0);
}
END_TEST

static _Atomic uint32_t mail;

static void *
mailer(void *arg)
{
	for (uint32_t i = 1; i <= STRESS; i++) {
		atomic_store_explicit(&mail, i, memory_order_release);
		if (ring_sleep_kick_needed(&sh.sleep))
			atomic_fetch_add(&sh.kicks, 1);
		while (atomic_load(&sh.consumed[0]) < i)
			sched_yield();
	}
	return arg;
}

START_TEST(sleep__threads)
{
	uint32_t kicks = 0, got = 0;
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, mailer, NULL), 0);
	while (got < STRESS) {
		ring_sleep_enter(&sh.sleep);
		if (atomic_load_explicit(&mail, memory_order_acquire) == got) {
			while (atomic_load(&sh.kicks) == kicks)
				sched_yield();
			kicks = atomic_load(&sh.kicks);
		}
		ring_sleep_leave(&sh.sleep);
		got = atomic_load_explicit(&mail, memory_order_acquire);
		atomic_store(&sh.consumed[0], got);
	}
	ck_assert_int_eq(pthread_join(t, NULL), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ring_bell");
	TCase *tc = tcase_create("bell");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 0); /* meson watches the time */
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, bell__every_slot);
	tcase_add_test(tc, bell__flood);
	tcase_add_test(tc, bell__leave);
	tcase_add_test(tc, kick__idle);
	tcase_add_test(tc, bell__threads);
	tcase_add_test(tc, sleep__threads);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
