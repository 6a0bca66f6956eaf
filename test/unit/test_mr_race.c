/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers that check, hold, invalidate and write, beside a control thread that registers, kills
 * and releases: no access succeeds on bytes that were given back, and ThreadSanitizer sees no
 * race. Quiescence is counted by hand, so that the order of memory is the one that is tested
 * and the test depends on nothing but itself.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base_rng.h"
#include "mr_fixture.h"

enum { WORKERS = 2, KEYS = 8, ROUNDS = 500, BUFFER = 64 };

/* A buffer's bytes are plain memory: TSan reports a worker's store that the owner can meet. */
struct buffer {
	uint8_t bytes[BUFFER];
};

struct worker {
	pthread_t thread;
	struct race *race;
	uint64_t seed;
	_Alignas(64) _Atomic uint64_t quiescent; /* passes counted; odd: gone offline */
	unsigned int ok, refused, invalidated, late;
};

struct race {
	struct mr_table *t;
	_Atomic uint32_t keys[KEYS]; /* hints for workers, stale as often as not */
	_Atomic bool stop;
	struct buffer bufs[KEYS];
	struct worker workers[WORKERS];
};

static void
wait_quiescent(struct race *r)
{
	for (int i = 0; i < WORKERS; i++) {
		struct worker *w = &r->workers[i];
		uint64_t seen = atomic_load_explicit(&w->quiescent, memory_order_seq_cst);

		while ((seen & 1) == 0 &&
			atomic_load_explicit(&w->quiescent, memory_order_acquire) == seen)
			sched_yield();
	}
}

/* A copier: longer than the worker's pass, so under a hold and with a look at the key before. */
static void
copy_held(struct worker *w, struct mr_ref *ref, uint32_t key)
{
	mr_hold(ref->mr, NULL);
	for (int pass = 0; pass < 20; pass++) {
		atomic_fetch_add_explicit(&w->quiescent, 2, memory_order_acq_rel);
		sched_yield();
	}
	/* Written in any case: a hold promises that the bytes are still there. */
	ref->ptr[w - w->race->workers] = 1;
	w->late += !mr_still_valid(ref, key);
	mr_unhold(ref->mr, NULL);
}

static void
worker_pass(struct worker *w, struct rng *rng)
{
	uint32_t key = atomic_load_explicit(
		&w->race->keys[rng_below(rng, KEYS)], memory_order_relaxed);
	struct mr_ref ref;

	if (mr_check(w->race->t, key, PD, QPN, 0, BUFFER, 0, &ref) != MR_OK) {
		w->refused++;
		return;
	}
	w->ok++;
	/* Each worker has bytes of its own in each buffer: their races are not the subject. */
	ref.ptr[w - w->race->workers] = 1;
	switch (rng_below(rng, 16)) {
	case 0:
		copy_held(w, &ref, key);
		break;
	case 1:
		w->invalidated += mr_invalidate(w->race->t, key, PD, QPN) == MR_OK;
		break;
	}
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	struct rng rng;

	rng_seed(&rng, w->seed);
	while (!atomic_load_explicit(&w->race->stop, memory_order_relaxed)) {
		worker_pass(w, &rng);
		atomic_fetch_add_explicit(&w->quiescent, 2, memory_order_acq_rel);
	}
	atomic_fetch_add_explicit(&w->quiescent, 1, memory_order_acq_rel);
	return NULL;
}

/* Half of the keys are regions, half can be invalidated by the workers. */
static uint32_t
give_key(struct race *r, int i)
{
	if (i % 2 == 0)
		return fix_region(r->t, 0, BUFFER, 0, r->bufs[i].bytes);
	return fix_fast_reg(
		r->t, fix_free_key(r->t, MR_TYPE_FAST_REG), 7, 0, BUFFER, 0, r->bufs[i].bytes);
}

/* Back to the owner, who writes all of it, as an application may after deregistration. */
static void
take_back(struct race *r, int i, uint32_t key)
{
	FIX_REQUIRE(mr_kill(r->t, key) == 0);
	wait_quiescent(r);
	while (mr_busy(r->t, key))
		sched_yield();
	memset(r->bufs[i].bytes, 0, BUFFER);
	FIX_REQUIRE(mr_release(r->t, key) == r->t);
	for (int k = 0; k < BUFFER; k++)
		FIX_REQUIRE(r->bufs[i].bytes[k] == 0);
}

static void
start(struct race *r)
{
	r->t = fix_table(KEYS);
	for (int i = 0; i < KEYS; i++)
		r->keys[i] = give_key(r, i);
	for (int i = 0; i < WORKERS; i++) {
		r->workers[i].race = r;
		r->workers[i].seed = (uint64_t)i + 1;
		ck_assert_int_eq(
			pthread_create(&r->workers[i].thread, NULL, worker_main, &r->workers[i]),
			0);
	}
}

static void
stop(struct race *r)
{
	atomic_store(&r->stop, true);
	for (int i = 0; i < WORKERS; i++) {
		ck_assert_int_eq(pthread_join(r->workers[i].thread, NULL), 0);
		ck_assert_uint_gt(r->workers[i].ok, 0);
	}
}

START_TEST(race__check_kill_release)
{
	static struct race r;
	struct rng rng;

	rng_seed(&rng, 99);
	start(&r);
	for (int round = 0; round < ROUNDS; round++) {
		int i = (int)rng_below(&rng, KEYS);
		uint32_t key = atomic_load_explicit(&r.keys[i], memory_order_relaxed);

		take_back(&r, i, key);
		atomic_store_explicit(&r.keys[i], give_key(&r, i), memory_order_relaxed);
	}
	stop(&r);
	for (int i = 0; i < KEYS; i++)
		fix_deregister(r.t, r.keys[i]);
	ck_assert_uint_eq(mr_table_count(r.t), 0);
	mr_table_free(r.t);
}
END_TEST

/* Of all who invalidate or kill a key at once, one alone takes it out of VALID. */
struct contest {
	struct mr_table *t;
	pthread_barrier_t barrier;
	uint32_t key;
	bool done;
	unsigned int won[WORKERS];
};

struct contestant {
	pthread_t thread;
	struct contest *c;
	int number;
};

static void *
contest_main(void *arg)
{
	struct contestant *me = arg;
	struct contest *c = me->c;

	for (;;) {
		pthread_barrier_wait(&c->barrier);
		if (c->done)
			return NULL;
		c->won[me->number] = mr_invalidate(c->t, c->key, PD, QPN) == MR_OK;
		pthread_barrier_wait(&c->barrier);
	}
}

/* The region's count of windows shows who won: it falls once, by the winner. */
static void
contest_round(struct contest *c, uint32_t region, int round)
{
	uint32_t made = fix_free_key(c->t, MR_TYPE_WINDOW_2B);
	unsigned int won;

	c->key = fix_bind(c->t, made, region, 5, 0, 8, MR_REMOTE_READ);
	FIX_REQUIRE(mr_kill(c->t, region) == -EBUSY);
	pthread_barrier_wait(&c->barrier);
	if (round % 2 == 0)
		FIX_REQUIRE(mr_kill(c->t, made) == 0);
	pthread_barrier_wait(&c->barrier);
	won = c->won[0] + c->won[1];
	FIX_REQUIRE(won <= 1 && (round % 2 == 0 || won == 1));
	FIX_REQUIRE(atomic_load(&mr_slot(c->t, region)->bound) == 0);
	FIX_REQUIRE(round % 2 == 0 || mr_kill(c->t, made) == 0);
	FIX_REQUIRE(mr_release(c->t, made) == c->t);
}

START_TEST(race__one_winner)
{
	static uint8_t bytes[64];
	struct contest c = {.t = fix_table(4)};
	struct contestant who[WORKERS];
	uint32_t region = fix_region(c.t, 0, 64, ALL_RIGHTS, bytes);

	pthread_barrier_init(&c.barrier, NULL, WORKERS + 1);
	for (int i = 0; i < WORKERS; i++) {
		who[i] = (struct contestant){.c = &c, .number = i};
		ck_assert_int_eq(pthread_create(&who[i].thread, NULL, contest_main, &who[i]), 0);
	}
	for (int round = 0; round < ROUNDS; round++)
		contest_round(&c, region, round);
	c.done = true;
	pthread_barrier_wait(&c.barrier);
	for (int i = 0; i < WORKERS; i++)
		ck_assert_int_eq(pthread_join(who[i].thread, NULL), 0);
	pthread_barrier_destroy(&c.barrier);
	fix_deregister(c.t, region);
	mr_table_free(c.t);
}
END_TEST

/* ---- binds ---------- */

enum { WINDOWS = 4, BINDS = 300 };

/* Quiescence in tokens, as roce_local.c goes by it: each worker tells the newest it has seen. */
struct binder {
	pthread_t thread;
	struct bindings *b;
	uint64_t seed;
	_Alignas(64) _Atomic uint64_t seen;
	unsigned int ok, bound, killed;
};

struct bindings {
	struct mr_table *t;
	_Atomic uint32_t keys[WINDOWS]; /* as last bound; hints */
	uint32_t made[WINDOWS]; /* as registered; the control thread's */
	uint32_t regions[2];
	_Atomic uint64_t epoch;
	_Atomic bool stop;
	uint8_t bytes[2][BUFFER];
	struct binder workers[WORKERS];
};

static void
pass(struct binder *w)
{
	uint64_t now = atomic_load_explicit(&w->b->epoch, memory_order_seq_cst);

	atomic_store_explicit(&w->seen, now, memory_order_release);
}

static bool
passed(const struct bindings *b, uint64_t token)
{
	for (int i = 0; i < WORKERS; i++)
		if (atomic_load_explicit(&b->workers[i].seen, memory_order_acquire) < token)
			return false;
	return true;
}

static uint64_t
grace(struct bindings *b, uint32_t key)
{
	uint64_t token = mr_grace(b->t, key);

	if (token == 0) {
		token = atomic_fetch_add(&b->epoch, 1) + 1;
		mr_grace_set(b->t, key, token);
	}
	return token == MR_GRACE_NONE ? 0 : token;
}

/* From turn to turn, as a worker does; the bytes differ in all that a binding has. */
static void
bind_turns(struct binder *w, struct rng *rng, int at)
{
	struct bindings *b = w->b;
	uint32_t key = atomic_load_explicit(&b->keys[at], memory_order_relaxed);
	int to = (int)rng_below(rng, 2);
	struct mr_bind req = {.window = key, .new_key = (key & ~0xffu) | (key + 1) % 256,
		.region = b->regions[to], .access = MR_REMOTE_WRITE, .addr = 0x1000 + 16 * to,
		.length = 16, .pd = PD, .qpn = QPN};
	uint64_t token;

	if (mr_bind_begin(b->t, &req) != MR_OK)
		return;
	token = grace(b, key);
	do {
		pass(w);
		sched_yield();
	} while (!passed(b, token) || mr_claim_busy(b->t, key));
	if (mr_bind_commit(b->t, &req) == MR_OK) {
		w->bound++;
		atomic_store_explicit(&b->keys[at], req.new_key, memory_order_relaxed);
	} else {
		w->killed++;
	}
}

static void
use_window(struct binder *w, struct rng *rng, uint32_t key)
{
	struct bindings *b = w->b;
	struct mr_ref ref;
	struct mr *under;
	int in = 0;

	for (; in < 2; in++)
		if (mr_check(b->t, key, PD, QPN, 0x1000 + 16 * (uint64_t)in, 8, MR_REMOTE_WRITE,
			    &ref) == MR_OK)
			break;
	if (in == 2)
		return;
	w->ok++;
	if (ref.ptr != b->bytes[in] + 16 * in || ref.offset != 16 * (uint64_t)in)
		abort();
	under = mr_under(&ref, 0);
	if (under != mr_slot(b->t, b->regions[in]))
		abort();
	if (rng_below(rng, 4) == 0) {
		mr_hold(ref.mr, under);
		pass(w);
		ref.ptr[w - b->workers] = 1;
		mr_unhold(ref.mr, under);
	}
}

static void *
binder_main(void *arg)
{
	struct binder *w = arg;
	struct rng rng;

	rng_seed(&rng, w->seed);
	while (!atomic_load_explicit(&w->b->stop, memory_order_relaxed)) {
		int at = (int)rng_below(&rng, WINDOWS);

		if (rng_below(&rng, 4) == 0)
			bind_turns(w, &rng, at);
		else
			use_window(w, &rng,
				atomic_load_explicit(&w->b->keys[at], memory_order_relaxed));
		pass(w);
	}
	atomic_store_explicit(&w->seen, UINT64_MAX, memory_order_release);
	return NULL;
}

static void
window_away(struct bindings *b, uint32_t key)
{
	uint64_t token;

	FIX_REQUIRE(mr_kill(b->t, key) == 0);
	token = atomic_fetch_add(&b->epoch, 1) + 1;
	while (!passed(b, token))
		sched_yield();
	while (mr_release(b->t, key) == NULL)
		sched_yield();
}

/*
 * Workers bind windows of type 1 anew while others use them and the control thread takes them away
 * and makes others: nobody meets half a binding, and the regions' counts come out even.
 */
START_TEST(race__bind)
{
	static struct bindings b;
	struct rng rng;

	rng_seed(&rng, 5);
	b.t = fix_table(16);
	for (int i = 0; i < 2; i++)
		b.regions[i] = fix_region(b.t, 0x1000, BUFFER, ALL_RIGHTS, b.bytes[i]);
	for (int i = 0; i < WINDOWS; i++)
		b.keys[i] = b.made[i] = fix_free_key(b.t, MR_TYPE_WINDOW_1);
	for (int i = 0; i < WORKERS; i++) {
		b.workers[i].b = &b;
		b.workers[i].seed = (uint64_t)i + 1;
		ck_assert_int_eq(pthread_create(&b.workers[i].thread, NULL, binder_main,
					 &b.workers[i]), 0);
	}
	for (int round = 0; round < BINDS; round++) {
		int at = (int)rng_below(&rng, WINDOWS);

		window_away(&b, b.made[at]);
		b.made[at] = fix_free_key(b.t, MR_TYPE_WINDOW_1);
		atomic_store_explicit(&b.keys[at], b.made[at], memory_order_relaxed);
		for (int i = 0; i < 20; i++)
			sched_yield();
	}
	atomic_store(&b.stop, true);
	for (int i = 0; i < WORKERS; i++) {
		ck_assert_int_eq(pthread_join(b.workers[i].thread, NULL), 0);
		ck_assert_uint_gt(b.workers[i].bound, 0);
		ck_assert_uint_gt(b.workers[i].ok, 0);
	}
	for (int i = 0; i < WINDOWS; i++)
		fix_deregister(b.t, b.made[i]);
	for (int i = 0; i < 2; i++)
		fix_deregister(b.t, b.regions[i]);
	ck_assert_uint_eq(mr_table_count(b.t), 0);
	mr_table_free(b.t);
}
END_TEST

UNIT_MAIN("mr_race", race__check_kill_release, race__one_winner, race__bind)
