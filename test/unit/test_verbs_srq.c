/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: order, limits, hostile rings, and two workers at one queue. */
#include <errno.h>
#include <pthread.h>

#include "verbs_fixture.h"

#define ENTRIES 8u
#define STRIDE (2 * RING_SLOT_SIZE)

struct sx {
	struct fx *f;
	struct verbs_srq srq;
	struct ring_srq_client client;
	struct ring_srq_daemon daemon;
	_Atomic uint32_t ring[ENTRIES];
};

static uint8_t buf[RING_MAX_WQE_SLOTS * RING_SLOT_SIZE];

static struct sx *
sx_new(uint32_t start)
{
	struct sx *s = fx_aligned(sizeof(*s));

	s->f = fx_new(1, 2, 1, 0);
	s->client.tail = s->daemon.head = start;
	s->srq = (struct verbs_srq){
		.srqn = 1, .pd = FX_PD + 5, .slots = fx_aligned(ENTRIES * STRIDE), .ring = s->ring,
		.daemon = &s->daemon, .client = &s->client, .mask = ENTRIES - 1,
		.entries = ENTRIES, .stride = STRIDE, .max_sge = 7,
	};
	s->f->qp.srq = &s->srq;
	return s;
}

static void
sx_free(struct sx *s)
{
	free((uint8_t *)(uintptr_t)s->srq.slots);
	fx_free(s->f);
	free(s);
}

static void
post(struct sx *s, uint32_t entry, uint8_t num_sge)
{
	struct ring_sge l[RING_MAX_SGE] = {{0}};

	for (uint32_t i = 0; i < num_sge; i++)
		l[i] = (struct ring_sge){entry, 100 + i, i};
	fx_rwqe(buf, l, num_sge);
	memcpy((uint8_t *)(uintptr_t)s->srq.slots + entry * STRIDE, buf, STRIDE);
	s->ring[s->client.tail & s->srq.mask] = entry;
	atomic_fetch_add_explicit(&s->client.tail, 1, memory_order_release);
}

static int
fetch(struct sx *s, struct verbs_rwqe *r)
{
	return verbs_rq_fetch(&s->f->w, &s->f->qp, r);
}

START_TEST(fetch__in_posting_order)
{
	struct sx *s = sx_new(0xfffffffdu);
	struct verbs_rwqe r;

	ck_assert_int_eq(fetch(s, &r), 0);
	for (uint32_t round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < ENTRIES; i++)
			post(s, (i * 5 + round) % ENTRIES, (uint8_t)i);
		for (uint32_t i = 0; i < ENTRIES; i++) {
			ck_assert_int_eq(fetch(s, &r), 1);
			ck_assert(r.valid);
			ck_assert_uint_eq(r.wqe_index, (i * 5 + round) % ENTRIES);
			ck_assert_uint_eq(r.num_sge, i);
			ck_assert_uint_eq(r.pd, FX_PD + 5);
			for (uint32_t k = 0; k < i; k++)
				ck_assert_uint_eq(verbs_rwqe_sgl(&r).sge[k].lkey, k);
			verbs_rwqe_release(&s->f->w, &r);
		}
		ck_assert_int_eq(fetch(s, &r), 0);
	}
	ck_assert_uint_eq(verbs_rq_count(&s->f->qp), 0); /* no credits from an SRQ */
	sx_free(s);
}
END_TEST

START_TEST(fetch__without_blocks_takes_nothing)
{
	struct sx *s = sx_new(0);
	struct verbs_rwqe r[3];

	for (uint32_t i = 0; i < 3; i++)
		post(s, i, 6);
	ck_assert_int_eq(fetch(s, &r[0]), 1);
	ck_assert_int_eq(fetch(s, &r[1]), 1);
	ck_assert_int_eq(fetch(s, &r[2]), -EAGAIN);
	ck_assert_uint_eq(s->daemon.head, 2);
	verbs_rwqe_release(&s->f->w, &r[0]);
	ck_assert_int_eq(fetch(s, &r[2]), 1);
	ck_assert_uint_eq(r[2].wqe_index, 2);
	verbs_rwqe_release(&s->f->w, &r[1]);
	verbs_rwqe_release(&s->f->w, &r[2]);
	sx_free(s);
}
END_TEST

START_TEST(limit__one_event_an_arming)
{
	struct sx *s = sx_new(0);
	struct verbs_rwqe r;

	for (uint32_t i = 0; i < 6; i++)
		post(s, i, 0);
	s->srq.limit = 4;
	ck_assert_int_eq(fetch(s, &r), 1); /* 5 left */
	ck_assert_int_eq(fetch(s, &r), 1); /* 4: not below */
	ck_assert_uint_eq(s->f->num_event, 0);
	ck_assert_int_eq(fetch(s, &r), 1);
	ck_assert_uint_eq(s->f->num_event, 1);
	ck_assert_int_eq(s->f->event[0], VERBS_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_ptr_eq(s->f->event_obj[0], &s->srq);
	ck_assert_int_eq(fetch(s, &r), 1);
	ck_assert_uint_eq(s->f->num_event, 1);
	ck_assert_uint_eq(s->srq.limit, 0);
	sx_free(s);
}
END_TEST

START_TEST(hostile__numbers_and_tails)
{
	unsigned int valid = 0;
	uint64_t seed = 5;

	for (unsigned int n = 0; n < 600; n++) {
		struct sx *s = sx_new((uint32_t)fx_random(&seed));
		uint32_t posted = (uint32_t)(fx_random(&seed) % (2 * ENTRIES));
		uint8_t *slots = (uint8_t *)(uintptr_t)s->srq.slots;
		struct verbs_rwqe r;
		int ret;

		for (uint32_t i = 0; i < ENTRIES; i++) {
			s->ring[i] = (uint32_t)(fx_random(&seed) >> (n % 2 ? 0 : 60));
			for (uint32_t k = 0; k < STRIDE; k++)
				slots[i * STRIDE + k] = (uint8_t)fx_random(&seed);
			slots[i * STRIDE] = (uint8_t)(slots[i * STRIDE] % (n % 3 ? 18 : 2));
			slots[i * STRIDE + 1] %= 40;
		}
		s->client.tail += posted;
		ret = fetch(s, &r);
		if (posted == 0 || posted > ENTRIES) {
			ck_assert_int_eq(ret, posted ? -EBADMSG : 0);
		} else {
			ck_assert_int_eq(ret, 1);
			valid += r.valid;
			ck_assert(r.wqe_index < ENTRIES || !r.valid);
			ck_assert(!r.valid || r.num_sge <= 7);
			verbs_rwqe_release(&s->f->w, &r);
		}
		sx_free(s);
	}
	ck_assert_uint_gt(valid, 0);
}
END_TEST

/* ---- two workers ---------- */

#define THREAD_TAKES 4000u
static _Atomic uint32_t taken[THREAD_TAKES];

struct taker {
	struct verbs_worker w;
	struct verbs_qp qp;
};

static void *
take_all(void *arg)
{
	struct taker *t = arg;
	struct verbs_rwqe r;

	while (verbs_rq_fetch(&t->w, &t->qp, &r) == 1)
		atomic_fetch_add_explicit(&taken[verbs_rwqe_sgl(&r).sge[0].addr], 1,
					  memory_order_relaxed);
	return NULL;
}

START_TEST(threads__each_entry_once)
{
	static _Atomic uint32_t ring[4096];
	uint8_t *slots = fx_aligned((size_t)4096 * RING_SLOT_SIZE);
	struct ring_srq_client client = {0};
	struct ring_srq_daemon daemon = {0};
	struct verbs_srq srq = {.pd = 1, .slots = slots, .ring = ring, .daemon = &daemon,
				.client = &client, .mask = 4095, .entries = 4096,
				.stride = RING_SLOT_SIZE, .max_sge = 3};
	struct verbs_host host = {0};
	struct taker t[2];
	pthread_t id[2];

	for (uint32_t i = 0; i < THREAD_TAKES; i++) {
		struct ring_sge s = {i, 1, 1};

		fx_rwqe(buf, &s, 1);
		memcpy(slots + (size_t)i * RING_SLOT_SIZE, buf, RING_SLOT_SIZE);
		ring[i] = i;
	}
	client.tail = THREAD_TAKES;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(verbs_worker_init(&t[i].w, (uint32_t)i, NULL, &host, 1, 1, 1), 0);
		t[i].qp = (struct verbs_qp){.srq = &srq, .share = &t[i].w.everyone};
		ck_assert_int_eq(pthread_create(&id[i], NULL, take_all, &t[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(pthread_join(id[i], NULL), 0);
		verbs_worker_fini(&t[i].w);
	}
	for (uint32_t i = 0; i < THREAD_TAKES; i++)
		ck_assert_uint_eq(taken[i], 1);
	free(slots);
}
END_TEST

UNIT_MAIN("verbs_srq", fetch__in_posting_order, fetch__without_blocks_takes_nothing,
	  limit__one_event_an_arming, hostile__numbers_and_tails, threads__each_entry_once)
