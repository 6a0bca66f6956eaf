/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement: what lands, what is left alone, and what a polling application may see. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "base_copy.h"
#include "base_rng.h"
#include "unit.h"

#define SIZE 9216
#define EDGE 128

static uint8_t src[SIZE + EDGE] __attribute__((aligned(64)));
static uint8_t dst[SIZE + 2 * EDGE] __attribute__((aligned(64)));
static uint8_t before[SIZE + 2 * EDGE];

static void
check_copy(size_t to, size_t from, size_t n)
{
	memset(dst, 0xA5, to + n + EDGE);
	copy_place(dst + to, src + from, n);
	if (memcmp(dst + to, src + from, n) != 0)
		ck_abort_msg("copy of %zu from %zu to %zu", n, from, to);
	if (memcmp(dst, before, to) != 0 || memcmp(dst + to + n, before, EDGE) != 0)
		ck_abort_msg("copy of %zu from %zu to %zu writes beside it", n, from, to);
}

static void
setup(struct rng *r, uint64_t seed)
{
	rng_seed(r, seed);
	memset(before, 0xA5, sizeof(before));
	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)rng_u32(r);
}

START_TEST(place__every_length_and_alignment)
{
	struct rng r;

	setup(&r, 1);
	for (size_t n = 0; n <= 520; n++)
		for (size_t to = 0; to < 64; to++)
			check_copy(to, rng_below(&r, 64), n);
}
END_TEST

START_TEST(place__long)
{
	struct rng r;

	setup(&r, 2);
	for (int i = 0; i < 5000; i++)
		check_copy(rng_below(&r, 64), rng_below(&r, 64), rng_below(&r, SIZE + 1));
}
END_TEST

/* A thread that places messages of one byte value each, while another one watches. */
struct watch {
	size_t to, n;
	uint64_t wrong;
	int asked; /* messages that the watcher is ready for */
	int stop;
};

static int
get(int *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void
put(int *p, int v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static void *
place_freely(void *arg)
{
	struct watch *w = arg;

	for (int value = 1; !get(&w->stop); value++) {
		memset(src, value, w->n);
		copy_place(dst + w->to, src, w->n);
	}
	return NULL;
}

static void *
place_when_asked(void *arg)
{
	struct watch *w = arg;

	for (int value = 1; !get(&w->stop); value++) {
		memset(src, value, w->n);
		while (get(&w->asked) < value && !get(&w->stop))
			sched_yield();
		copy_place(dst + w->to, src, w->n);
	}
	return NULL;
}

/* A word is all of one generation. */
static void
watch_words(struct watch *w, struct rng *r)
{
	size_t first = (w->to + 7) / 8, words = (w->to + w->n) / 8 - first;
	const uint64_t *p = (const uint64_t *)(void *)dst + first;

	for (int i = 0; i < 20000; i++) {
		uint64_t v = __atomic_load_n(p + rng_below(r, (uint32_t)words), __ATOMIC_RELAXED);

		w->wrong += v != (v & 0xFF) * UINT64_C(0x0101010101010101);
	}
}

static uint8_t
peek(size_t i)
{
	return __atomic_load_n(&dst[i], __ATOMIC_ACQUIRE);
}

/* Once the last byte is there, so is the rest. Looks nearest to the end first. */
static void
watch_order(struct watch *w, struct rng *r)
{
	size_t last = w->to + w->n - 1;

	for (int value = 1; value <= 2000; value++) {
		put(&w->asked, value);
		for (int spins = 0; peek(last) != (uint8_t)value; spins++)
			if (spins > 1000)
				sched_yield();
		for (size_t i = 1; i < w->n && i < 4; i++)
			w->wrong += peek(last - 20 * i % w->n) != (uint8_t)value;
		w->wrong += peek(w->to + rng_below(r, (uint32_t)w->n)) != (uint8_t)value;
	}
}

static void
run_watch(void *(*place)(void *), void (*look)(struct watch *, struct rng *), uint64_t seed)
{
	static const size_t lengths[] = {16, 40, 64, 100, 200, 1000, 4096};
	struct rng r;

	rng_seed(&r, seed);
	for (size_t i = 0; i < 4 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct watch w = {.to = rng_below(&r, 64), .n = lengths[i / 4]};
		pthread_t thread;

		memset(dst, 0, sizeof(dst));
		ck_assert_int_eq(pthread_create(&thread, NULL, place, &w), 0);
		look(&w, &r);
		put(&w.stop, 1);
		pthread_join(thread, NULL);
		ck_assert_msg(w.wrong == 0, "%zu bytes at %zu: %lu wrong", w.n, w.to,
			(unsigned long)w.wrong);
	}
}

START_TEST(place__words_are_never_torn)
{
	run_watch(place_freely, watch_words, 3);
}
END_TEST

START_TEST(place__last_byte_last)
{
	run_watch(place_when_asked, watch_order, 4);
}
END_TEST

UNIT_MAIN("base_copy", place__every_length_and_alignment, place__long, place__words_are_never_torn,
	place__last_byte_last)
