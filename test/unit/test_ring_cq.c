/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: phases, overrun, hostile consumers, resize, arming, channels. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ring_arm.h"
#include "ring_channel.h"
#include "ring_cq.h"

struct cq {
	struct ring_cqe ring[2][64];
	struct ring_cq_client client;
	struct ring_cq_daemon daemon;
	struct ring_cq_prod prod;
	struct ring_cq_cons cons;
};

static struct cq *
cq_new(uint32_t entries, uint32_t start)
{
	struct cq *q = aligned_alloc(RING_LINE, sizeof(*q));

	ck_assert_ptr_nonnull(q);
	memset(q, 0, sizeof(*q));
	ck_assert_uint_eq(start % (2 * entries), 0);
	atomic_store(&q->client.cons[0], start);
	q->prod = (struct ring_cq_prod){q->ring[0], &q->client.cons[0], entries - 1, start, start};
	q->cons = (struct ring_cq_cons){q->ring[0], &q->client.cons[0], entries - 1, start};
	return q;
}

static bool
cq_put(struct cq *q, uint32_t value)
{
	struct ring_cqe *e = ring_cq_reserve(&q->prod);

	if (!e)
		return false;
	e->wqe_index = value;
	e->timestamp = ~(uint64_t)value;
	ring_cq_commit(&q->prod, 0);
	return true;
}

static void
cq_get(struct cq *q, uint32_t value)
{
	const struct ring_cqe *e = ring_cq_peek(&q->cons);

	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->wqe_index, value);
	ck_assert(e->timestamp == ~(uint64_t)value);
	ring_cq_advance(&q->cons);
}

/* B149 for CQs: small rings, fill and drain over 2^32, by all distances. */
START_TEST(cq__wraps)
{
	uint32_t entries = 2u << _i;
	struct cq *q = cq_new(entries, 0u - 64);
	uint32_t in = 0, out = 0;

	for (uint32_t round = 0; round < 200; round++) {
		uint32_t n = round % entries; /* 0 .. entries - 1 */

		for (uint32_t i = 0; i < n; i++)
			ck_assert(cq_put(q, in++));
		if (n == entries - 1)
			ck_assert(!cq_put(q, in)); /* one is kept for a SWITCH */
		for (uint32_t i = 0; i < n; i++)
			cq_get(q, out++);
		ck_assert_ptr_null(ring_cq_peek(&q->cons));
		ring_cq_release(&q->cons);
	}
	ck_assert_uint_lt(q->prod.tail, 1u << 30);
	free(q);
}
END_TEST

/* An index that cannot be counts as full, whatever it is; a later good one mends it. */
/* Every fill level at every place of the ring, counted one by one and by halving. */
static void
count_both(const struct ring_cq_cons *q)
{
	struct ring_cq_cons at = *q;
	uint32_t n = 0;

	for (; n <= q->mask && ring_cq_peek(&at) != NULL; n++)
		ring_cq_advance(&at);
	ck_assert_uint_eq(ring_cq_count(q), n);
}

START_TEST(cq__count)
{
	for (uint32_t entries = 2; entries <= 64; entries *= 2) {
		struct cq *q = cq_new(entries, 0u - 2 * entries);
		uint32_t put = 0, got = 0;

		for (uint32_t round = 0; round < 6 * entries; round++) {
			while (cq_put(q, put))
				count_both(&q->cons), put++;
			ck_assert_uint_eq(ring_cq_count(&q->cons), entries - 1);
			for (uint32_t i = 0; i <= round % entries && got < put; i++) {
				cq_get(q, got++);
				count_both(&q->cons);
			}
			ring_cq_release(&q->cons);
		}
		q->cons.head += 5; /* not where it is: some number, and no more than there are */
		ck_assert_uint_le(ring_cq_count(&q->cons), entries);
		free(q);
	}
}
END_TEST

START_TEST(cq__hostile_consumer)
{
	static const uint32_t bad[] = {8, 100, 1u << 31, (1u << 31) + 7, UINT32_MAX, 0u - 8};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cq *q = cq_new(8, 0);

		for (uint32_t n = 0; n < 7; n++)
			ck_assert(cq_put(q, n));
		atomic_store(&q->client.cons[0], bad[i]);
		ck_assert(!cq_put(q, 7));
		ck_assert_uint_eq(q->prod.cons_cache, 0); /* not believed */
		atomic_store(&q->client.cons[0], 5);
		for (uint32_t n = 7; n < 12; n++)
			ck_assert(cq_put(q, n));
		atomic_store(&q->client.cons[0], 4); /* back, though within the ring */
		ck_assert(!cq_put(q, 12));
		ck_assert_uint_eq(q->prod.cons_cache, 5);
		free(q);
	}
}
END_TEST

/* From any index, full or not, to a larger and a smaller ring: nothing lost, no phantom. */
START_TEST(cq__resize)
{
	static const uint32_t new_entries[] = {2, 4, 8, 16, 32};
	uint32_t before = (uint32_t)_i % 40, pending = (uint32_t)_i / 40;
	uint32_t mask = new_entries[_i % 5] - 1;
	struct cq *q = cq_new(8, 0u - 16);
	const struct ring_cqe *e;
	uint32_t in = 0, out = 0, start;

	while (in < before) {
		ck_assert(cq_put(q, in++));
		cq_get(q, out++);
		ring_cq_release(&q->cons);
	}
	for (uint32_t i = 0; i < pending; i++)
		ck_assert(cq_put(q, in++));
	ring_cq_switch(&q->prod, q->ring[1], mask);
	start = q->prod.tail;
	for (uint32_t i = 0; i < mask; i++)
		ck_assert(cq_put(q, in++)); /* the new one's full size, at once */
	ck_assert(!cq_put(q, in));
	ck_assert(!ring_cq_switched(&q->prod, start));
	for (uint32_t i = 0; i < pending; i++)
		cq_get(q, out++);
	ring_cq_release(&q->cons);
	ck_assert(!ring_cq_switched(&q->prod, start));
	ck_assert(!cq_put(q, in));
	e = ring_cq_peek(&q->cons);
	ck_assert_ptr_nonnull(e);
	ck_assert(atomic_load(&e->tag) & RING_CQE_SWITCH);
	ring_cq_follow(&q->cons, q->ring[1], mask);
	ck_assert(ring_cq_switched(&q->prod, start));
	while (out < in)
		cq_get(q, out++);
	ck_assert_ptr_null(ring_cq_peek(&q->cons));
	ring_cq_release(&q->cons);
	ck_assert(cq_put(q, in++));
	cq_get(q, out++);
	free(q);
}
END_TEST

/* An empty new ring shows no phantoms, from whichever index it begins. */
START_TEST(cq__resize_empty)
{
	struct cq *q = cq_new(2, 0);

	for (int i = 0; i < _i; i++) {
		ck_assert(cq_put(q, 1));
		cq_get(q, 1);
		ring_cq_release(&q->cons);
	}
	ring_cq_switch(&q->prod, q->ring[1], 7);
	ck_assert_ptr_nonnull(ring_cq_peek(&q->cons));
	ring_cq_follow(&q->cons, q->ring[1], 7);
	ck_assert_ptr_null(ring_cq_peek(&q->cons));
	free(q);
}
END_TEST

/* One arming, one notification; B155. */
START_TEST(arm__once)
{
	struct cq *q = cq_new(8, 0);
	struct ring_cq_client *c = &q->client;
	struct ring_cq_daemon *d = &q->daemon;

	ck_assert(!ring_cq_should_notify(c, d, true));
	ck_assert(cq_put(q, 0)); /* there before the arming: the poll's, no event */
	ck_assert(!ring_cq_should_notify(c, d, true));
	ring_cq_arm(c, d, RING_CQ_ARMED_NEXT);
	ck_assert_ptr_nonnull(ring_cq_peek(&q->cons));
	ck_assert(ring_cq_should_notify(c, d, false));
	ck_assert(!ring_cq_should_notify(c, d, true));
	ring_cq_arm(c, d, RING_CQ_ARMED_NEXT);
	ring_cq_arm(c, d, RING_CQ_ARMED_NEXT);
	ring_cq_arm(c, d, RING_CQ_ARMED_SOLICITED); /* does not weaken it */
	ck_assert(ring_cq_should_notify(c, d, false));
	ck_assert(!ring_cq_should_notify(c, d, true));
	free(q);
}
END_TEST

START_TEST(arm__solicited)
{
	struct cq *q = cq_new(8, 0);
	struct ring_cq_client *c = &q->client;
	struct ring_cq_daemon *d = &q->daemon;

	ck_assert(!ring_cqe_is_solicited(RING_CQE_RECV, 0));
	ck_assert(ring_cqe_is_solicited(RING_CQE_RECV | RING_CQE_SOLICITED, 0));
	ck_assert(ring_cqe_is_solicited(0, 5)); /* an error wakes */
	ring_cq_arm(c, d, RING_CQ_ARMED_SOLICITED);
	ck_assert(!ring_cq_should_notify(c, d, false));
	ck_assert(ring_cq_should_notify(c, d, true));
	ring_cq_arm(c, d, RING_CQ_ARMED_SOLICITED);
	ck_assert(!ring_cq_should_notify(c, d, false));
	ring_cq_arm(c, d, RING_CQ_ARMED_NEXT); /* strengthened */
	ck_assert(ring_cq_should_notify(c, d, false));
	ck_assert(!ring_cq_should_notify(c, d, true));
	free(q);
}
END_TEST

/* The sequence wraps at 30 bits; and a worker with an older arming at hand does not answer. */
START_TEST(arm__wraps)
{
	struct cq *q = cq_new(8, 0);
	struct ring_cq_client *c = &q->client;
	struct ring_cq_daemon *d = &q->daemon;

	atomic_store(&c->armed, 0xfffffff4u | RING_CQ_ARMED_NEXT);
	atomic_store(&d->notify_seq, 0x3ffffffdu);
	for (int i = 0; i < 10; i++) {
		ring_cq_arm(c, d, RING_CQ_ARMED_NEXT);
		ck_assert(ring_cq_should_notify(c, d, false));
		ck_assert(!ring_cq_should_notify(c, d, false));
	}
	atomic_store(&c->armed, 0x3ffffffeu << 2 | RING_CQ_ARMED_NEXT); /* of before the wrap */
	ck_assert(!ring_cq_should_notify(c, d, false));
	free(q);
}
END_TEST

START_TEST(channel__overtaken)
{
	struct ring_channel_sub *s = aligned_alloc(RING_LINE, sizeof(*s));
	struct ring_channel_reader r = {0};
	uint32_t cqn = 0;

	memset(s, 0, sizeof(*s));
	ck_assert_int_eq(ring_channel_pop(s, &r, &cqn), RING_CHANNEL_EMPTY);
	for (uint32_t i = 0; i < RING_CHANNEL_ENTRIES - 1; i++)
		ring_channel_push(s, i);
	for (uint32_t i = 0; i < RING_CHANNEL_ENTRIES - 1; i++) {
		ck_assert_int_eq(ring_channel_pop(s, &r, &cqn), RING_CHANNEL_CQ);
		ck_assert_uint_eq(cqn, i);
	}
	ck_assert_int_eq(ring_channel_pop(s, &r, &cqn), RING_CHANNEL_EMPTY);
	for (uint32_t i = 0; i < RING_CHANNEL_ENTRIES + 5; i++)
		ring_channel_push(s, i);
	ck_assert_int_eq(ring_channel_pop(s, &r, &cqn), RING_CHANNEL_ALL);
	ck_assert_int_eq(ring_channel_pop(s, &r, &cqn), RING_CHANNEL_EMPTY);

	/* exactly a ring behind, and the push that overwrites the next entry has begun */
	r.head = atomic_load(&s->tail) - RING_CHANNEL_ENTRIES;
	atomic_store(&s->cqn[r.head % RING_CHANNEL_ENTRIES], 999);
	ck_assert_int_eq(ring_channel_pop(s, &r, &cqn), RING_CHANNEL_ALL);
	ring_channel_lose(s);
	ck_assert_int_eq(ring_channel_pop(s, &r, &cqn), RING_CHANNEL_ALL);
	ring_channel_push(s, 9);
	ck_assert_int_eq(ring_channel_pop(s, &r, &cqn), RING_CHANNEL_CQ);
	ck_assert_uint_eq(cqn, 9);
	free(s);
}
END_TEST

#define STRESS 30000

/* A worker: publishes, resizes once in the middle, counts its notifications. */
static void *
stress_worker(void *arg)
{
	struct cq *q = arg;
	uintptr_t notified = 0;

	for (uint32_t i = 0; i < STRESS; i++) {
		if (i == STRESS / 2)
			ring_cq_switch(&q->prod, q->ring[1], 31);
		while (!cq_put(q, i))
			sched_yield();
		ring_fence();
		if (ring_cq_should_notify(&q->client, &q->daemon, false))
			notified++;
	}
	return (void *)notified;
}

/* B151: two sides of a ring, under TSan too. */
START_TEST(cq__threads)
{
	struct cq *q = cq_new(16, 0u - 64);
	uint32_t taken = 0;
	pthread_t t;
	void *notified;

	ck_assert_int_eq(pthread_create(&t, NULL, stress_worker, q), 0);
	while (taken < STRESS) {
		const struct ring_cqe *e = ring_cq_peek(&q->cons);
		uint32_t seq;

		if (!e) {
			ring_cq_release(&q->cons);
			ring_cq_arm(&q->client, &q->daemon, RING_CQ_ARMED_NEXT);
			seq = atomic_load(&q->client.armed) >> 2;
			/* asleep: only a notification may wake, and it must come */
			while (!ring_cq_peek(&q->cons) && atomic_load(&q->daemon.notify_seq) != seq)
				sched_yield();
			continue;
		}
		if (atomic_load(&e->tag) & RING_CQE_SWITCH) {
			ring_cq_follow(&q->cons, q->ring[1], 31);
			continue;
		}
		cq_get(q, taken++);
		if (taken % 3 == 0)
			ring_cq_release(&q->cons);
	}
	ck_assert_int_eq(pthread_join(t, &notified), 0);
	ck_assert_uint_le((uintptr_t)notified, atomic_load(&q->client.armed) >> 2);
	free(q);
}
END_TEST

struct flood {
	struct ring_channel_sub sub;
	_Atomic uint32_t done;
};

static void *
flood_writer(void *arg)
{
	struct flood *f = arg;

	for (uint32_t i = 0; i < 300000; i++)
		ring_channel_push(&f->sub, i);
	atomic_store(&f->done, 1);
	return NULL;
}

/* However far the writer runs ahead, what is popped is what was pushed there. */
START_TEST(channel__threads)
{
	struct flood *f = aligned_alloc(RING_LINE, sizeof(*f));
	struct ring_channel_reader r = {0};
	pthread_t t;

	memset(f, 0, sizeof(*f));
	ck_assert_int_eq(pthread_create(&t, NULL, flood_writer, f), 0);
	for (;;) {
		bool last = atomic_load(&f->done);
		uint32_t tail = atomic_load(&f->sub.tail), cqn, at;
		enum ring_channel_result rc;

		if (!last && tail > RING_CHANNEL_ENTRIES)
			r.head = tail - RING_CHANNEL_ENTRIES; /* just what is overwritten next */
		at = r.head;
		rc = ring_channel_pop(&f->sub, &r, &cqn);
		if (rc == RING_CHANNEL_CQ)
			ck_assert_uint_eq(cqn, at);
		if (rc == RING_CHANNEL_EMPTY && last)
			break;
	}
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	free(f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ring_cq");
	TCase *tc = tcase_create("cq");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 0); /* meson watches the time */
	tcase_add_loop_test(tc, cq__wraps, 0, 4);
	tcase_add_test(tc, cq__count);
	tcase_add_test(tc, cq__hostile_consumer);
	tcase_add_loop_test(tc, cq__resize, 0, 40 * 8);
	tcase_add_loop_test(tc, cq__resize_empty, 0, 40);
	tcase_add_test(tc, arm__once);
	tcase_add_test(tc, arm__solicited);
	tcase_add_test(tc, arm__wraps);
	tcase_add_test(tc, channel__overtaken);
	tcase_add_test(tc, cq__threads);
	tcase_add_test(tc, channel__threads);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
