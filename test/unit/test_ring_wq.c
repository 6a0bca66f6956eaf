/* SPDX-License-Identifier: BSD-3-Clause */
/* Work queues: index arithmetic, hostile tails and slot counts, two threads. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "ring_wq.h"

struct wq {
	struct ring_qp_client shared;
	uint8_t slots[64 * RING_SLOT_SIZE];
	struct ring_wq_prod prod;
	struct ring_wq_cons cons;
};

static struct wq *
wq_new(uint32_t slots, uint32_t start)
{
	struct wq *w = aligned_alloc(RING_LINE, sizeof(*w));

	ck_assert_ptr_nonnull(w);
	memset(w, 0, sizeof(*w));
	atomic_store(&w->shared.sq_tail, start);
	w->prod = (struct ring_wq_prod){w->slots, &w->shared.sq_tail, slots - 1, start, start};
	w->cons = (struct ring_wq_cons){w->slots, &w->shared.sq_tail, slots - 1, start, start};
	return w;
}

static void
wq_post(struct wq *w, uint8_t num_slots, uint32_t mark)
{
	for (uint32_t i = 0; i < num_slots; i++) {
		uint8_t *s = ring_wq_slot(&w->prod, w->prod.tail + i);

		memset(s, 0, RING_SLOT_SIZE);
		if (i == 0)
			s[offsetof(struct ring_wqe, num_slots)] = num_slots;
		memcpy(s + 32, &mark, sizeof(mark));
	}
	w->prod.tail += num_slots;
}

START_TEST(slots__counts)
{
	ck_assert_uint_eq(ring_wqe_slots_sge(0), 1);
	ck_assert_uint_eq(ring_wqe_slots_sge(2), 1);
	ck_assert_uint_eq(ring_wqe_slots_sge(3), 2);
	ck_assert_uint_eq(ring_wqe_slots_sge(6), 2);
	ck_assert_uint_eq(ring_wqe_slots_sge(7), 3);
	ck_assert_uint_eq(ring_wqe_slots_sge(RING_MAX_SGE), 9);
	ck_assert_uint_eq(ring_wqe_slots_inline(0), 1);
	ck_assert_uint_eq(ring_wqe_slots_inline(32), 1);
	ck_assert_uint_eq(ring_wqe_slots_inline(33), 2);
	ck_assert_uint_eq(ring_wqe_slots_inline(96), 2);
	ck_assert_uint_eq(ring_wqe_slots_inline(97), 3);
	ck_assert_uint_eq(ring_wqe_slots_inline(RING_MAX_INLINE), RING_MAX_WQE_SLOTS);
	ck_assert_uint_eq(ring_rwqe_slots(3), 1);
	ck_assert_uint_eq(ring_rwqe_slots(4), 2);
	ck_assert_uint_eq(ring_rwqe_slots(RING_MAX_SGE), 9);
}
END_TEST

/* B149: rings of 1, 2 and 4, full, drained and wrapped, over 2^32. */
START_TEST(wq__wraps)
{
	static const uint32_t sizes[] = {1, 2, 4};
	struct wq *w = wq_new(sizes[_i], UINT32_MAX - 9);
	uint32_t taken = 0, mark = 0;
	uint8_t copy[RING_MAX_WQE_SLOTS * RING_SLOT_SIZE];

	for (int round = 0; round < 30; round++) {
		while (ring_wq_free(&w->prod))
			wq_post(w, 1, mark++);
		ck_assert_uint_eq(w->prod.tail - w->prod.head, sizes[_i]);
		ring_wq_publish(&w->prod);
		ck_assert_int_eq(ring_wq_poll(&w->cons), sizes[_i]);
		while (ring_wq_take(&w->cons, offsetof(struct ring_wqe, num_slots), copy) > 0) {
			uint32_t m;

			memcpy(&m, copy + 32, sizeof(m));
			ck_assert_uint_eq(m, taken++);
			w->prod.head++;
		}
		ck_assert_int_eq(ring_wq_poll(&w->cons), 0);
	}
	ck_assert_uint_eq(taken, mark);
	ck_assert_uint_lt(w->cons.head, 1000); /* past 2^32 */
	free(w);
}
END_TEST

/* A request's slots wrap inside the ring and come out in order. */
START_TEST(wq__request_wraps)
{
	struct wq *w = wq_new(8, UINT32_MAX - 2);
	uint8_t copy[RING_MAX_WQE_SLOTS * RING_SLOT_SIZE];

	wq_post(w, 6, 77);
	ring_wq_publish(&w->prod);
	ck_assert_int_eq(ring_wq_poll(&w->cons), 6);
	ck_assert_int_eq(ring_wq_take(&w->cons, offsetof(struct ring_wqe, num_slots), copy), 6);
	for (int i = 0; i < 6; i++) {
		uint32_t m;

		memcpy(&m, copy + i * RING_SLOT_SIZE + 32, sizeof(m));
		ck_assert_uint_eq(m, 77);
	}
	ck_assert_int_eq(ring_wq_take(&w->cons, offsetof(struct ring_wqe, num_slots), copy), 0);
	free(w);
}
END_TEST

/* A tail that cannot be is an error, and changes nothing. */
START_TEST(wq__hostile_tail)
{
	static const uint32_t bad[] = {
		-1u, 9u, 100u, 1u << 31, (1u << 31) + 4, UINT32_MAX - 8, 3u};
	struct wq *w = wq_new(8, UINT32_MAX);

	wq_post(w, 5, 0);
	ring_wq_publish(&w->prod);
	ck_assert_int_eq(ring_wq_poll(&w->cons), 5);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		atomic_store(&w->shared.sq_tail, bad[i]);
		if (bad[i] == 3) /* within the ring, but before what was said: 4 */
			ck_assert(ring_wq_moved(&w->cons));
		ck_assert_int_eq(ring_wq_poll(&w->cons), -1);
		ck_assert_uint_eq(w->cons.tail, 4);
		ck_assert_uint_eq(w->cons.head, UINT32_MAX);
	}
	atomic_store(&w->shared.sq_tail, 7);
	ck_assert_int_eq(ring_wq_poll(&w->cons), 8);
	free(w);
}
END_TEST

START_TEST(wq__hostile_slot_count)
{
	static const uint8_t bad[] = {0, 5, 17, 255};
	struct wq *w = wq_new(64, 0);
	uint8_t copy[RING_MAX_WQE_SLOTS * RING_SLOT_SIZE + 1];

	copy[sizeof(copy) - 1] = 0xa5;
	wq_post(w, 4, 0);
	ring_wq_publish(&w->prod);
	ck_assert_int_eq(ring_wq_poll(&w->cons), 4);
	w->slots[offsetof(struct ring_wqe, num_slots)] = bad[_i];
	ck_assert_int_eq(ring_wq_take(&w->cons, offsetof(struct ring_wqe, num_slots), copy), -1);
	ck_assert_uint_eq(w->cons.head, 0);

	/* more than a request may take, though the ring has as many */
	wq_post(w, 36, 0);
	ring_wq_publish(&w->prod);
	ck_assert_int_eq(ring_wq_poll(&w->cons), 40);
	if (bad[_i] != 5)
		ck_assert_int_eq(
			ring_wq_take(&w->cons, offsetof(struct ring_wqe, num_slots), copy), -1);
	ck_assert_uint_eq(copy[sizeof(copy) - 1], 0xa5);
	free(w);
}
END_TEST

#define STRESS 20000

static void *
stress_consumer(void *arg)
{
	struct wq *w = arg;
	uint8_t copy[RING_MAX_WQE_SLOTS * RING_SLOT_SIZE];
	uint32_t want = 0;

	while (want < STRESS) {
		int n = 0;

		if (ring_wq_poll(&w->cons) < 0)
			return (void *)1;
		while ((n = ring_wq_take(&w->cons, offsetof(struct ring_wqe, num_slots), copy)) >
		       0) {
			for (int i = 0; i < n; i++) {
				uint32_t m;

				memcpy(&m, copy + i * RING_SLOT_SIZE + 32, sizeof(m));
				if (m != want)
					return (void *)2;
			}
			want++;
			/* as completions would: the producer's head comes back by rq_tail */
			atomic_fetch_add_explicit(&w->shared.rq_tail, (uint32_t)n,
						  memory_order_release);
		}
		if (n < 0)
			return (void *)3;
		sched_yield();
	}
	return NULL;
}

/* B151: two sides of a ring, under TSan too. */
START_TEST(wq__threads)
{
	struct wq *w = wq_new(16, UINT32_MAX - 100);
	pthread_t t;
	void *rc;

	atomic_store(&w->shared.rq_tail, w->prod.head);
	ck_assert_int_eq(pthread_create(&t, NULL, stress_consumer, w), 0);
	for (uint32_t i = 0; i < STRESS; i++) {
		uint8_t n = (uint8_t)(1 + i % 5);

		while (w->prod.head = atomic_load_explicit(&w->shared.rq_tail,
							   memory_order_acquire),
		       ring_wq_free(&w->prod) < n)
			sched_yield();
		wq_post(w, n, i);
		ring_wq_publish(&w->prod);
	}
	ck_assert_int_eq(pthread_join(t, &rc), 0);
	ck_assert_ptr_null(rc);
	free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ring_wq");
	TCase *tc = tcase_create("wq");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 0); /* meson watches the time */
	tcase_add_test(tc, slots__counts);
	tcase_add_loop_test(tc, wq__wraps, 0, 3);
	tcase_add_test(tc, wq__request_wraps);
	tcase_add_test(tc, wq__hostile_tail);
	tcase_add_loop_test(tc, wq__hostile_slot_count, 0, 4);
	tcase_add_test(tc, wq__threads);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
