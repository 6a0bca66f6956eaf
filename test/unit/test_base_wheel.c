/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timer wheel against a model that looks at every entry: random operations,
 * far jumps of time, operations from within expiry (case B203).
 */
#include <string.h>

#include "base_rng.h"
#include "base_wheel.h"
#include "unit.h"

#define ENTRIES 300

/* An entry and what the model knows of it. */
struct timer {
	struct wheel_entry e;
	bool armed;
	uint64_t fires; /* the tick at which it must */
	uint64_t slot;	/* the same when it was last armed */
};

static struct wheel w;
static struct timer timers[ENTRIES];

static uint64_t
ceil_tick(uint64_t ns)
{
	return ns / WHEEL_TICK_NS + (ns % WHEEL_TICK_NS != 0);
}

static void
setup(uint64_t now)
{
	memset(timers, 0, sizeof(timers));
	wheel_init(&w, now);
}

static void
arm(struct timer *t, uint64_t deadline)
{
	wheel_arm(&w, &t->e, deadline);
	ck_assert(wheel_armed(&t->e));
	ck_assert_uint_eq(t->e.deadline, deadline);
	t->armed = true;
	t->fires = ceil_tick(deadline);
	if (t->fires <= w.tick)
		t->fires = w.tick + 1;
	t->slot = t->fires;
}

static void
cancel(struct timer *t)
{
	wheel_cancel(&w, &t->e);
	ck_assert(!wheel_armed(&t->e));
	t->armed = false;
}

/* Also to before the deadline it has, as long as that is not before its slot's. */
static void
postpone(struct timer *t, uint64_t deadline)
{
	bool fine = wheel_armed(&t->e) && deadline >= t->e.placed;
	uint64_t tick = ceil_tick(deadline);

	ck_assert(wheel_postpone(&t->e, deadline) == fine);
	if (fine)
		t->fires = tick > t->slot ? tick : t->slot;
}

static uint64_t
model_next(void)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < ENTRIES; i++)
		if (timers[i].armed && timers[i].fires < next)
			next = timers[i].fires;
	return next;
}

static uint64_t
random_delay(struct rng *r)
{
	/* From less than a tick to beyond the horizon of 2^44 ns. */
	return rng_u64(r) >> (18 + rng_below(r, 46));
}

static void
random_op(struct rng *r, uint64_t now)
{
	struct timer *t = &timers[rng_below(r, ENTRIES)];
	uint64_t back = rng_below(r, 4) == 0 ? random_delay(r) >> 20 : 0;

	switch (rng_below(r, 5)) {
	case 0:
	case 1:
		arm(t, now + random_delay(r));
		break;
	case 2: /* the past */
		arm(t, now > back ? now - back : 0);
		break;
	case 3:
		cancel(t);
		break;
	default:
		postpone(t, now + random_delay(r));
		break;
	}
}

/* All that is due, in order, with other operations between. */
static void
drain(struct rng *r, uint64_t now, unsigned int ops)
{
	uint64_t last = 0;

	do {
		struct wheel_entry *e;

		while ((e = wheel_expire(&w, now)) != NULL) {
			struct timer *t = (struct timer *)e;

			ck_assert(t->armed);
			ck_assert(!wheel_armed(e));
			ck_assert_uint_le(e->deadline, now);
			ck_assert_uint_le(t->fires, now / WHEEL_TICK_NS);
			ck_assert_uint_eq(t->fires, w.tick);
			ck_assert_uint_ge(t->fires, last);
			last = t->fires;
			t->armed = false;
			if (ops > 0 && rng_below(r, 2) == 0) {
				ops--;
				random_op(r, now);
			}
		}
	} while (wheel_next(&w) <= now);
}

static void
check(uint64_t now)
{
	uint64_t next = wheel_next(&w), model = model_next();

	for (int i = 0; i < ENTRIES; i++)
		if (wheel_armed(&timers[i].e) != timers[i].armed)
			ck_abort_msg("timer %d: armed is %d", i, !timers[i].armed);
	/* Nothing due was left behind; the bound is a bound and lies ahead. */
	ck_assert_uint_gt(model, now / WHEEL_TICK_NS);
	ck_assert_uint_gt(next, now);
	if (model == UINT64_MAX)
		ck_assert_uint_eq(next, UINT64_MAX);
	else if (model <= UINT64_MAX / WHEEL_TICK_NS)
		ck_assert_uint_le(next, model * WHEEL_TICK_NS);
}

START_TEST(wheel__random_against_model)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rng r;
		uint64_t now;

		rng_seed(&r, seed);
		now = rng_u64(&r) >> (8 + rng_below(&r, 40));
		setup(now);
		for (int step = 0; step < 400; step++) {
			for (uint32_t n = rng_below(&r, 6); n > 0; n--)
				random_op(&r, now);
			now += random_delay(&r) >> rng_below(&r, 20);
			if (rng_below(&r, 3) == 0 && wheel_next(&w) != UINT64_MAX)
				now = now > wheel_next(&w) ? now : wheel_next(&w);
			drain(&r, now, 20);
			check(now);
		}
	}
}
END_TEST

/* IB's longest time-out, code 31, and each power of two below: on time to the tick. */
START_TEST(wheel__each_distance)
{
	for (int code = 0; code <= 31; code++) {
		uint64_t start = 123456789, delay = UINT64_C(4096) << code;
		uint64_t due = ceil_tick(start + delay) * WHEEL_TICK_NS;

		setup(start);
		arm(&timers[0], start + delay);
		ck_assert_ptr_null(wheel_expire(&w, due - 1));
		ck_assert_uint_le(wheel_next(&w), due);
		ck_assert_ptr_eq(wheel_expire(&w, due), &timers[0].e);
		ck_assert_ptr_null(wheel_expire(&w, due));
		ck_assert_uint_eq(wheel_next(&w), UINT64_MAX);
	}
}
END_TEST

/* Following wheel_next() alone reaches any deadline in a few steps, as a sleeper does. */
START_TEST(wheel__sleeper)
{
	static const uint64_t delays[] = {
		1, 4096, 1 << 20, UINT64_C(8796093022208), UINT64_C(1) << 50};

	for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
		uint64_t now = 999999;
		int steps = 0;

		setup(now);
		arm(&timers[0], now + delays[i]);
		do {
			ck_assert_uint_gt(wheel_next(&w), now);
			now = wheel_next(&w);
			steps++;
		} while (wheel_expire(&w, now) == NULL);
		ck_assert_uint_ge(now, 999999 + delays[i]);
		ck_assert_uint_lt(now, 999999 + delays[i] + WHEEL_TICK_NS);
		ck_assert_int_le(steps, delays[i] >> 44 ? 70 : 4);
	}
}
END_TEST

/* B203: the handler of one due timer cancels or re-arms another that is due too. */
START_TEST(wheel__cancel_in_expiry)
{
	setup(0);
	for (int i = 0; i < 4; i++)
		arm(&timers[i], 5000);
	ck_assert_ptr_eq(wheel_expire(&w, 10000), &timers[0].e);
	cancel(&timers[1]);
	arm(&timers[2], 50000);
	cancel(&timers[0]); /* no longer armed: nothing happens */
	ck_assert_ptr_eq(wheel_expire(&w, 10000), &timers[3].e);
	ck_assert_ptr_null(wheel_expire(&w, 10000));
	ck_assert(!wheel_armed(&timers[1].e));
	ck_assert_ptr_eq(wheel_expire(&w, 60000), &timers[2].e);
	ck_assert_uint_eq(wheel_next(&w), UINT64_MAX);
}
END_TEST

/* A handler that re-arms in the past does not hold the loop. */
START_TEST(wheel__past_fires_at_next_tick)
{
	struct wheel_entry *e;
	int fired = 0;

	setup(1000000);
	arm(&timers[0], 10);
	ck_assert_ptr_null(wheel_expire(&w, 1000000));
	while ((e = wheel_expire(&w, 1000000 + 10 * WHEEL_TICK_NS)) != NULL) {
		fired++;
		wheel_arm(&w, e, 10);
	}
	ck_assert_int_eq(fired, 10);
}
END_TEST

START_TEST(wheel__postpone)
{
	struct wheel_entry *e = &timers[0].e;

	setup(0);
	ck_assert(!wheel_postpone(e, 100));
	wheel_arm(&w, e, 100000);
	ck_assert(!wheel_postpone(e, 99999));
	ck_assert(wheel_postpone(e, 5000000));
	ck_assert(wheel_postpone(e, 3000000)); /* back, but after its slot */
	ck_assert_ptr_null(wheel_expire(&w, 3002367));
	ck_assert_ptr_eq(wheel_expire(&w, 3002368), e);
}
END_TEST

/* A call's time is bounded even when a slot of an upper level comes due at once. */
START_TEST(wheel__bounded_call)
{
	static struct wheel_entry many[5000];
	uint64_t due = UINT64_C(1) << 36, now = due - due / 300;
	int calls = 0, fired = 0;

	setup(0);
	memset(many, 0, sizeof(many));
	for (int i = 0; i < 5000; i++)
		wheel_arm(&w, &many[i], due + (uint64_t)i);
	ck_assert_ptr_null(wheel_expire(&w, now));
	now = due + 2 * WHEEL_TICK_NS;
	do {
		while (wheel_expire(&w, now) != NULL)
			fired++;
		calls++;
	} while (wheel_next(&w) <= now);
	ck_assert_int_eq(fired, 5000);
	ck_assert_int_ge(calls, 5000 / 256);
	for (int i = 0; i < 5000; i++) {
		wheel_arm(&w, &many[i], now + 1);
		ck_assert(wheel_postpone(&many[i], now + (UINT64_C(1) << 30)));
	}
	now += 2 * WHEEL_TICK_NS;
	calls = 0;
	do {
		ck_assert_ptr_null(wheel_expire(&w, now));
		calls++;
	} while (wheel_next(&w) <= now);
	ck_assert_int_ge(calls, 5000 / 256);
}
END_TEST

START_TEST(wheel__order_of_arming)
{
	setup(0);
	for (int i = 0; i < 50; i++)
		arm(&timers[i], 900000000 + (uint64_t)(i % 2));
	for (int i = 0; i < 50; i++)
		ck_assert_ptr_eq(wheel_expire(&w, 1000000000), &timers[i].e);
}
END_TEST

/* Never, and the end of time. */
START_TEST(wheel__no_overflow)
{
	setup(UINT64_MAX - 100000);
	arm(&timers[0], UINT64_MAX);
	ck_assert_ptr_null(wheel_expire(&w, UINT64_MAX));
	ck_assert_uint_eq(wheel_next(&w), UINT64_MAX);
	setup(5);
	arm(&timers[1], UINT64_MAX);
	ck_assert_ptr_null(wheel_expire(&w, UINT64_C(1) << 50));
	ck_assert_uint_gt(wheel_next(&w), UINT64_C(1) << 50);
	cancel(&timers[1]);
	ck_assert_uint_eq(wheel_next(&w), UINT64_MAX);
}
END_TEST

/* A clock that stands still or goes back does no harm. */
START_TEST(wheel__time_back)
{
	setup(1000000);
	arm(&timers[0], 2000000);
	ck_assert_ptr_null(wheel_expire(&w, 500000));
	ck_assert_ptr_null(wheel_expire(&w, 1500000));
	ck_assert_ptr_null(wheel_expire(&w, 1000000));
	ck_assert_ptr_eq(wheel_expire(&w, 2004096), &timers[0].e);
}
END_TEST

UNIT_MAIN("base_wheel", wheel__random_against_model, wheel__each_distance, wheel__sleeper,
	wheel__cancel_in_expiry, wheel__past_fires_at_next_tick, wheel__postpone,
	wheel__bounded_call, wheel__order_of_arming, wheel__no_overflow, wheel__time_back)
