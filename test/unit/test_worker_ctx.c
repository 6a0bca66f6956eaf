/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: bells reach QPs, quiet ones are no longer polled, kicks bring them back. */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring_bell.h"
#include "worker_fixture.h"

static struct fx f;
static struct worker *w;

static struct worker_ctx *
new_ctx(uint32_t chunks)
{
	struct worker_msg m = {.type = WORKER_MSG_CTX_ADD};
	struct worker_ctx *ctx = fx_alloc(sizeof(*ctx) + sizeof(ctx->at[0]));

	ctx->num_workers = 1;
	ctx->at[0].daemon = fx_alloc(sizeof(struct ring_bell_daemon));
	for (uint32_t i = 0; i < chunks; i++) {
		ctx->at[0].chunk[i] = fx_alloc(sizeof(struct ring_bell_chunk));
		ctx->at[0].slots[i] = calloc(RING_BELL_SLOTS, sizeof(void *));
	}
	ctx->at[0].num_chunks = chunks;
	ctx->at[0].kick_fd = eventfd(0, EFD_NONBLOCK);
	m.ctx = ctx;
	ck_assert_int_eq(fx_call(&f, 0, &m), 0);
	return ctx;
}

static void
del_ctx(struct worker_ctx *ctx)
{
	struct worker_msg m = {.type = WORKER_MSG_CTX_DEL, .ctx = ctx};

	ck_assert_int_eq(fx_call(&f, 0, &m), 0);
	for (uint32_t i = 0; i < ctx->at[0].num_chunks; i++) {
		free(ctx->at[0].chunk[i]);
		free(ctx->at[0].slots[i]);
	}
	close(ctx->at[0].kick_fd);
	free(ctx->at[0].daemon);
	free(ctx);
}

/** A look at the bells at a time of the test's choice. */
static unsigned int
bells_at(uint64_t now)
{
	w->now = now;
	return worker_bells(w);
}

static uint32_t
need_kick(const struct worker_ctx *ctx)
{
	return atomic_load(&ctx->at[0].daemon->need_kick);
}

static void
start(void)
{
	fx_start(&f, 1);
	w = f.s.worker[0];
}

START_TEST(ctx__bell_of_a_qp)
{
	struct ring_qp_daemon *words = fx_alloc(sizeof(*words));
	struct verbs_qp qp = {.daemon = words};
	struct worker_ctx *ctx;

	start();
	ctx = new_ctx(2);
	ctx->at[0].slots[1][4242] = &qp;
	ctx->at[0].slots_used[1] = 4243;
	ring_bell_set(ctx->at[0].chunk[0], 4242); /* nobody's: ignored */
	ring_bell_set(ctx->at[0].chunk[1], 4242);
	ck_assert_uint_gt(worker_bells(w), 0);
	ck_assert_ptr_eq(w->verbs.run_head, &qp);
	ck_assert_uint_eq(w->verbs.run_count, 1);
	verbs_run_remove(&w->verbs, &qp);
	ck_assert_uint_eq(worker_bells(w), 0);
	del_ctx(ctx);
	fx_stop(&f);
	free(words);
}
END_TEST

/** Behind the slots that have had a QP there is no memory yet, and none is asked for. */
START_TEST(ctx__bells_of_nobody)
{
	const size_t size = RING_BELL_SLOTS * sizeof(void *);
	uint8_t *slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	struct worker_ctx *ctx;
	unsigned char there;

	ck_assert_ptr_ne(slots, MAP_FAILED);
	start();
	ctx = new_ctx(1);
	free(ctx->at[0].slots[0]);
	ctx->at[0].slots[0] = (void *)slots;
	ring_bell_set(ctx->at[0].chunk[0], RING_BELL_SLOTS - 1);
	ck_assert_uint_gt(worker_bells(w), 0);
	ck_assert_int_eq(mincore(slots + size - 4096, 4096, &there), 0);
	ck_assert_uint_eq(there & 1, 0);
	munmap(slots, size);
	ctx->at[0].slots[0] = NULL;
	del_ctx(ctx);
	fx_stop(&f);
}
END_TEST

START_TEST(ctx__idle_and_kicked)
{
	struct worker_ctx *ctx, *other;
	uint64_t t;

	start();
	ctx = new_ctx(1);
	other = new_ctx(1);
	t = ctx->at[0].last_bell = other->at[0].last_bell = w->now;
	bells_at(t + WORKER_CTX_IDLE_NS);
	ck_assert_uint_eq(need_kick(ctx), 0);
	ring_bell_set(other->at[0].chunk[0], 1);
	bells_at(t + WORKER_CTX_IDLE_NS + 1);
	ck_assert_uint_eq(need_kick(ctx), 1);
	ck_assert_uint_eq(need_kick(other), 0);
	ck_assert_ptr_eq(w->idle, ctx);
	ck_assert_ptr_eq(w->polled, other);
	/* The client rings, sees need_kick, and the control thread sees its kick. */
	ring_bell_set(ctx->at[0].chunk[0], 5);
	ck_assert_uint_eq(bells_at(t + WORKER_CTX_IDLE_NS + 2), 0);
	worker_ctx_kick(w, ctx);
	ck_assert_uint_gt(bells_at(t + WORKER_CTX_IDLE_NS + 3), 0);
	ck_assert_uint_eq(need_kick(ctx), 0);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_CTX_KICKED), 1);
	del_ctx(other);
	del_ctx(ctx);
	ck_assert_ptr_null(w->polled);
	ck_assert_ptr_null(w->idle);
	fx_stop(&f);
}
END_TEST

/** Bits without an end: each look takes a bounded part, and the place is kept. */
START_TEST(ctx__bells_are_bounded)
{
	struct worker_ctx *ctx;
	unsigned int looks = 0;

	start();
	ctx = new_ctx(1);
	for (int i = 0; i < 64; i++)
		ctx->at[0].chunk[0]->mid[i] = UINT64_MAX;
	for (int i = 0; i < 64 * 64; i++)
		ctx->at[0].chunk[0]->leaf[i] = UINT64_MAX;
	ctx->at[0].chunk[0]->top = UINT64_MAX;
	while (worker_bells(w) != 0) {
		ck_assert_uint_le(fx_count(&f, 0, WORKER_C_BELLS),
				  (looks + 1) * (WORKER_BELL_BUDGET + 65ull));
		looks++;
	}
	ck_assert_uint_ge(looks, RING_BELL_SLOTS / (WORKER_BELL_BUDGET + 65));
	for (int i = 0; i < 64 * 64; i++)
		ck_assert_uint_eq(ctx->at[0].chunk[0]->leaf[i], 0);
	del_ctx(ctx);
	fx_stop(&f);
}
END_TEST

/** Bells half taken are work: the context does not go idle over them. */
START_TEST(ctx__not_idle_within_a_scan)
{
	struct worker_ctx *ctx;

	start();
	ctx = new_ctx(1);
	ctx->at[0].scan[0].top = 1;
	ctx->at[0].chunk[0]->mid[0] = 1;
	ctx->at[0].chunk[0]->leaf[0] = 1;
	ck_assert_uint_gt(bells_at(w->now + 2 * WORKER_CTX_IDLE_NS), 0);
	ck_assert_uint_eq(need_kick(ctx), 0);
	ck_assert_uint_eq(ctx->at[0].chunk[0]->leaf[0], 0);
	del_ctx(ctx);
	fx_stop(&f);
}
END_TEST

START_TEST(ctx__chunk_by_chunk)
{
	struct worker_msg m = {.type = WORKER_MSG_BELL_CHUNK};
	struct worker_ctx *ctx;

	start();
	ctx = new_ctx(1);
	m.bell.ctx = ctx;
	m.bell.chunk = fx_alloc(sizeof(struct ring_bell_chunk));
	m.bell.slots = calloc(RING_BELL_SLOTS, sizeof(void *));
	m.bell.number = 2; /* not the next one */
	ck_assert_int_eq(fx_call(&f, 0, &m), -EINVAL);
	m.bell.number = 1;
	ck_assert_int_eq(fx_call(&f, 0, &m), 0);
	ck_assert_uint_eq(ctx->at[0].num_chunks, 2);
	ring_bell_set(m.bell.chunk, 0);
	ck_assert_uint_gt(worker_bells(w), 0);
	del_ctx(ctx);
	fx_stop(&f);
}
END_TEST

UNIT_MAIN("worker_ctx", ctx__bell_of_a_qp, ctx__bells_of_nobody, ctx__idle_and_kicked,
	  ctx__bells_are_bounded,
	  ctx__not_idle_within_a_scan, ctx__chunk_by_chunk)
