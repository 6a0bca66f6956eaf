/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: order, limits, hostile rings, resize, and workers at one queue. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "verbs_fixture.h"

#define ENTRIES 8u
#define STRIDE (2 * RING_SLOT_SIZE)

struct sx {
	struct fx *f;
	struct verbs_srq srq;
	struct verbs_srq_ring where;
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
	s->where = (struct verbs_srq_ring){
		.slots = fx_aligned(ENTRIES * STRIDE), .index = s->ring, .mask = ENTRIES - 1,
		.entries = ENTRIES,
	};
	s->srq = (struct verbs_srq){
		.srqn = 1, .pd = FX_PD + 5, .ring = &s->where, .daemon = &s->daemon,
		.client = &s->client, .stride = STRIDE, .max_sge = 7,
	};
	s->f->qp.srq = &s->srq;
	return s;
}

static void
sx_free(struct sx *s)
{
	free((uint8_t *)(uintptr_t)s->where.slots);
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
	memcpy((uint8_t *)(uintptr_t)s->where.slots + entry * STRIDE, buf, STRIDE);
	s->ring[s->client.tail & s->where.mask] = entry;
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
	verbs_srq_arm(&s->srq, 4);
	ck_assert_uint_eq(verbs_srq_armed(&s->srq), 4);
	ck_assert(!verbs_srq_reached(&s->srq));
	ck_assert_int_eq(fetch(s, &r), 1); /* 5 left */
	ck_assert_int_eq(fetch(s, &r), 1); /* 4: not below */
	ck_assert_uint_eq(s->f->num_event, 0);
	ck_assert_int_eq(fetch(s, &r), 1);
	ck_assert_uint_eq(s->f->num_event, 1);
	ck_assert_int_eq(s->f->event[0], VERBS_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_ptr_eq(s->f->event_obj[0], &s->srq);
	ck_assert_int_eq(fetch(s, &r), 1);
	ck_assert_uint_eq(s->f->num_event, 1);
	ck_assert_uint_eq(verbs_srq_armed(&s->srq), 0);
	/* armed again, and again before it is reached: once for each that is */
	verbs_srq_arm(&s->srq, 2);
	verbs_srq_arm(&s->srq, 2);
	ck_assert_int_eq(fetch(s, &r), 1);
	ck_assert_uint_eq(s->f->num_event, 2);
	verbs_srq_arm(&s->srq, 2);
	ck_assert(verbs_srq_reached(&s->srq)); /* already: the caller tells, once */
	ck_assert(!verbs_srq_reached(&s->srq));
	ck_assert_int_eq(fetch(s, &r), 1);
	ck_assert_int_eq(fetch(s, &r), 0);
	ck_assert_uint_eq(s->f->num_event, 2);
	verbs_srq_arm(&s->srq, 0);
	ck_assert(!verbs_srq_reached(&s->srq));
	ck_assert_uint_eq(s->f->w.counter[VERBS_C_SRQ].value, 6);
	ck_assert_uint_eq(s->f->w.counter[VERBS_C_SRQ_EMPTY].value, 1);
	ck_assert_uint_eq(s->f->w.counter[VERBS_C_SRQ_LIMIT].value, 2);
	sx_free(s);
}
END_TEST

/* Who has seen an older arming does not answer the new one. */
START_TEST(limit__stale_arming)
{
	struct sx *s = sx_new(0);
	uint64_t before;

	verbs_srq_arm(&s->srq, 3);
	before = atomic_load(&s->srq.limit);
	verbs_srq_arm(&s->srq, 3);
	ck_assert(atomic_load(&s->srq.limit) != before);
	ck_assert(verbs_srq_reached(&s->srq));
	verbs_srq_arm(&s->srq, 3);
	ck_assert(atomic_load(&s->srq.limit) != before);
	sx_free(s);
}
END_TEST

/* Told once; nobody takes from it any more, whatever its tail says then. */
START_TEST(broken__one_event)
{
	struct sx *s = sx_new(7);
	struct verbs_rwqe r;

	post(s, 0, 1);
	atomic_fetch_add(&s->client.tail, ENTRIES);
	ck_assert_uint_eq(verbs_srq_count(&s->srq), UINT32_MAX);
	ck_assert_int_eq(fetch(s, &r), -EBADMSG);
	ck_assert_int_eq(fetch(s, &r), -EBADMSG);
	ck_assert_uint_eq(s->f->num_event, 1);
	ck_assert_int_eq(s->f->event[0], VERBS_EVENT_SRQ_ERR);
	ck_assert_ptr_eq(s->f->event_obj[0], &s->srq);
	atomic_fetch_sub(&s->client.tail, ENTRIES);
	ck_assert_int_eq(fetch(s, &r), -EBADMSG);
	ck_assert_uint_eq(s->f->num_event, 1);
	ck_assert_uint_eq(s->daemon.head, 7);
	sx_free(s);
}
END_TEST

/* A larger one elsewhere: what was posted is found there, and what is posted from then on. */
START_TEST(resize__same_entries)
{
	static _Atomic uint32_t more[4 * ENTRIES];
	struct sx *s = sx_new(0xfffffffau);
	struct verbs_srq_ring to = {.index = more, .mask = 4 * ENTRIES - 1, .entries = 3 * ENTRIES};
	uint8_t *slots = fx_aligned(3 * ENTRIES * STRIDE), *old;
	struct verbs_rwqe r;

	for (uint32_t i = 0; i < ENTRIES; i++)
		post(s, (i * 3) % ENTRIES, 2);
	ck_assert_int_eq(fetch(s, &r), 1);
	for (uint32_t i = s->daemon.head; i != s->client.tail; i++)
		more[i & to.mask] = s->ring[i & s->where.mask];
	memcpy(slots, s->where.slots, ENTRIES * STRIDE);
	to.slots = slots;
	atomic_store(&s->srq.ring, &to);
	old = (uint8_t *)(uintptr_t)s->where.slots;
	memset(old, 0xff, ENTRIES * STRIDE);
	more[s->client.tail & to.mask] = 2 * ENTRIES + 1;
	memcpy(slots + (2 * ENTRIES + 1) * STRIDE, slots, STRIDE);
	atomic_fetch_add(&s->client.tail, 1);
	for (uint32_t i = 1; i <= ENTRIES; i++) {
		ck_assert_int_eq(fetch(s, &r), 1);
		ck_assert(r.valid);
		ck_assert_uint_eq(r.wqe_index, i < ENTRIES ? i * 3 % ENTRIES : 2 * ENTRIES + 1);
	}
	ck_assert_int_eq(fetch(s, &r), 0);
	free(slots);
	sx_free(s);
}
END_TEST

/* No entry's number: taken, and refused, though what lies there looks like a receive. */
START_TEST(hostile__no_entry)
{
	struct sx *s = sx_new(0);
	struct verbs_rwqe r;

	s->where.entries = ENTRIES - 1;
	post(s, ENTRIES - 1, 1);
	post(s, 0, 1);
	ck_assert_int_eq(fetch(s, &r), 1);
	ck_assert(!r.valid);
	verbs_rwqe_release(&s->f->w, &r);
	ck_assert_int_eq(fetch(s, &r), 1);
	ck_assert(r.valid);
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
		uint8_t *slots = (uint8_t *)(uintptr_t)s->where.slots;
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
	struct verbs_srq_ring where = {.slots = slots, .index = ring, .mask = 4095,
				       .entries = 4096};
	struct verbs_srq srq = {.pd = 1, .ring = &where, .daemon = &daemon, .client = &client,
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

/* ---- workers that take, and a client that posts again what has come back ---------- */

#define FEW 4u /* entries: the ring is short, so that it goes round under a slow worker */
#define LIVE_TAKERS 3
#define LIVE_TAKES 60000u

struct live {
	struct verbs_srq srq;
	struct verbs_srq_ring where;
	struct ring_srq_client client;
	struct ring_srq_daemon daemon;
	_Atomic uint32_t ring[FEW];
	_Alignas(RING_LINE) struct ring_rwqe slots[FEW];
	_Alignas(RING_LINE) _Atomic bool back[FEW]; /* completed: the client's again */
	_Atomic uint32_t taken, events, armed, failed;
	_Atomic bool over;
};

struct live_taker {
	struct verbs_worker w;
	struct verbs_qp qp;
	struct live *l;
};

static void
live_event(void *ctx, enum verbs_event event, void *obj)
{
	struct live *l = ctx;

	(void)obj;
	if (event == VERBS_EVENT_SRQ_LIMIT_REACHED)
		atomic_fetch_add(&l->events, 1);
	else
		atomic_fetch_add(&l->failed, 1);
}

static void *
live_take(void *arg)
{
	struct live_taker *t = arg;
	struct live *l = t->l;

	while (!atomic_load(&l->over)) {
		struct verbs_rwqe r;
		int ret = verbs_rq_fetch(&t->w, &t->qp, &r);

		if (ret == 0)
			sched_yield();
		if (ret < 0)
			atomic_fetch_add(&l->failed, 1);
		if (ret != 1)
			continue;
		/* one whom nobody else has, as it was posted */
		if (!r.valid || r.wqe_index >= FEW || r.sge[0].lkey != r.wqe_index ||
		    atomic_exchange(&l->back[r.wqe_index], true))
			atomic_fetch_add(&l->failed, 1);
		atomic_fetch_add(&l->taken, 1);
	}
	return NULL;
}

static void
live_post(struct live *l, uint32_t entry, uint64_t number)
{
	uint32_t tail = atomic_load_explicit(&l->client.tail, memory_order_relaxed);

	l->slots[entry] = (struct ring_rwqe){.num_slots = 1, .num_sge = 1};
	l->slots[entry].sge[0] = (struct ring_sge){number, 1, entry};
	l->ring[tail & (FEW - 1)] = entry;
	atomic_store_explicit(&l->client.tail, tail + 1, memory_order_release);
}

/* Armings of a control thread: each one has its event before the next. */
static void
live_arm(struct live *l)
{
	uint32_t armed = atomic_load(&l->armed);

	if (atomic_load(&l->events) != armed)
		return;
	atomic_store(&l->armed, armed + 1);
	verbs_srq_arm(&l->srq, FEW);
	if (verbs_srq_reached(&l->srq))
		atomic_fetch_add(&l->events, 1);
}

START_TEST(threads__posted_again)
{
	struct live *l = fx_aligned(sizeof(*l));
	struct verbs_host host = {.event = live_event, .ctx = l};
	struct live_taker t[LIVE_TAKERS];
	pthread_t id[LIVE_TAKERS];
	uint64_t number = 0;

	l->where = (struct verbs_srq_ring){.slots = (const uint8_t *)l->slots, .index = l->ring,
					   .mask = FEW - 1, .entries = FEW};
	l->srq = (struct verbs_srq){.pd = 1, .ring = &l->where, .daemon = &l->daemon,
				    .client = &l->client, .stride = RING_SLOT_SIZE, .max_sge = 3};
	for (uint32_t i = 0; i < FEW; i++)
		atomic_store(&l->back[i], true);
	for (uint32_t i = 0; i < LIVE_TAKERS; i++) {
		t[i].l = l;
		ck_assert_int_eq(verbs_worker_init(&t[i].w, i, NULL, &host, 1, 1, 1), 0);
		t[i].qp = (struct verbs_qp){.srq = &l->srq, .share = &t[i].w.everyone};
		ck_assert_int_eq(pthread_create(&id[i], NULL, live_take, &t[i]), 0);
	}
	while (atomic_load(&l->taken) < LIVE_TAKES && atomic_load(&l->failed) == 0) {
		bool did = false;

		for (uint32_t i = 0; i < FEW; i++)
			if (atomic_load(&l->back[i])) {
				atomic_store(&l->back[i], false);
				live_post(l, i, number++);
				did = true;
			}
		live_arm(l);
		if (!did)
			sched_yield();
	}
	atomic_store(&l->over, true);
	for (int i = 0; i < LIVE_TAKERS; i++) {
		ck_assert_int_eq(pthread_join(id[i], NULL), 0);
		verbs_worker_fini(&t[i].w);
	}
	ck_assert_uint_eq(l->failed, 0);
	ck_assert_uint_gt(l->events, 1);
	ck_assert_uint_le(l->events, l->armed);
	free(l);
}
END_TEST

UNIT_MAIN("verbs_srq", fetch__in_posting_order, fetch__without_blocks_takes_nothing,
	  limit__one_event_an_arming, limit__stale_arming, broken__one_event,
	  resize__same_entries, hostile__no_entry, hostile__numbers_and_tails,
	  threads__each_entry_once, threads__posted_again)
