/* SPDX-License-Identifier: BSD-3-Clause */
/* The run list: turns, shares, leaving and the doorbell race with a posting thread. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "ring_bell.h"
#include "verbs_fixture.h"
#include "verbs_priv.h"

#define QPS 8

/** QPs that send from a budget of their own, and a script of what happens in a step. */
struct rx {
	struct verbs_worker w;
	struct verbs_qp qp[QPS];
	struct ring_qp_client client[QPS];
	struct ring_qp_daemon daemon[QPS];
	uint64_t slots[QPS][RING_SLOT_SIZE / 8];
	int64_t left[QPS];  /* bytes to send */
	uint64_t sent[QPS];
	int32_t packet[QPS];
	enum verbs_run when_done;
	int room; /* packets until FULL; -1: no end */
	char order[64]; /* who was stepped */
	size_t num;
	void (*during)(struct rx *x, struct verbs_qp *qp);
};

static struct rx *
rx_new(void)
{
	struct rx *x = fx_aligned(sizeof(*x));
	struct verbs_host host = {0};

	ck_assert_int_eq(verbs_worker_init(&x->w, 0, NULL, &host, 1, 1, 1), 0);
	x->room = -1;
	x->when_done = VERBS_RUN_IDLE;
	for (uint32_t i = 0; i < QPS; i++) {
		x->packet[i] = 1000;
		x->qp[i].qpn = i;
		x->qp[i].daemon = &x->daemon[i];
		x->qp[i].state = RING_QPS_RTS;
		x->qp[i].sq = (struct ring_wq_cons){(uint8_t *)x->slots[i], &x->client[i].sq_tail,
						    0, 0, 0};
	}
	return x;
}

static void
rx_free(struct rx *x)
{
	uint32_t n = 0;

	for (struct verbs_qp *q = x->w.run_head; q; q = q->run_next, n++) {
		ck_assert(q->on_run_list);
		ck_assert(q->run_next == NULL || q->run_next->run_prev == q);
		ck_assert(q->run_next != NULL || x->w.run_tail == q);
	}
	ck_assert_uint_eq(n, x->w.run_count);
	for (uint32_t i = 0; i < QPS; i++)
		ck_assert_uint_eq(x->daemon[i].active, x->qp[i].on_run_list);
	verbs_worker_fini(&x->w);
	free(x);
}

static enum verbs_run
step(void *arg, struct verbs_qp *qp)
{
	struct rx *x = arg;
	uint32_t i = qp->qpn;

	ck_assert_uint_lt(x->num, sizeof(x->order) - 1);
	x->order[x->num++] = (char)('A' + i);
	if (x->during)
		x->during(x, qp);
	while (x->left[i] > 0 && qp->deficit > 0) {
		if (x->room == 0)
			return VERBS_RUN_FULL;
		if (x->room > 0)
			x->room--;
		qp->deficit -= x->packet[i];
		x->left[i] -= x->packet[i];
		x->sent[i] += (uint64_t)x->packet[i];
	}
	return x->left[i] > 0 ? VERBS_RUN_MORE : x->when_done;
}

/** One round; who was stepped, as letters. */
static const char *
run(struct rx *x, uint32_t quantum, unsigned int want)
{
	memset(x->order, 0, sizeof(x->order));
	x->num = 0;
	ck_assert_uint_eq(verbs_run_round(&x->w, quantum, step, x), want);
	ck_assert_ptr_null(x->w.run_last);
	return x->order;
}

static void
add(struct rx *x, const char *who, int64_t bytes)
{
	for (; *who; who++) {
		x->left[*who - 'A'] = bytes;
		verbs_run_add(&x->w, &x->qp[*who - 'A']);
	}
}

/* ---- QPs that wait for their share of a pool ---------- */

static enum verbs_run
step_starved(void *arg, struct verbs_qp *qp)
{
	struct rx *x = arg;

	x->order[x->num++] = (char)('A' + qp->qpn);
	if (qp->share->used[VERBS_POOL_WQE] + x->w.shadows_used >= x->w.shadows)
		verbs_starve(&x->w, qp, VERBS_POOL_WQE);
	return VERBS_RUN_WAIT;
}

static const char *
run_starved(struct rx *x)
{
	memset(x->order, 0, sizeof(x->order));
	x->num = 0;
	verbs_cq_burst_end(&x->w);
	verbs_run_round(&x->w, 1000, step_starved, x);
	return x->order;
}

/** A and B of one context, which has all four shadows, C of another. */
static struct rx *
starved_new(struct verbs_share *s)
{
	struct rx *x = rx_new();

	memset(s, 0, 2 * sizeof(*s));
	x->qp[0].share = x->qp[1].share = &s[0];
	x->qp[2].share = &s[1];
	x->w.shadows = x->w.shadows_used = s[0].used[VERBS_POOL_WQE] = 4;
	add(x, "ABC", 0);
	ck_assert_str_eq(run_starved(x), "ABC");
	ck_assert_uint_eq(x->w.num_starved, 2);
	return x;
}

START_TEST(starved__each_context_in_its_turn)
{
	struct verbs_share s[2];
	struct rx *x = starved_new(s);

	ck_assert_uint_eq(x->w.run_count, 0);
	ck_assert_uint_eq(x->daemon[0].active, 0);
	ck_assert_str_eq(run_starved(x), ""); /* nobody looks in vain */
	x->w.shadows_used = s[0].used[VERBS_POOL_WQE] = 3;
	ck_assert_str_eq(run_starved(x), "C"); /* the other one has enough */
	x->w.shadows_used = s[0].used[VERBS_POOL_WQE] = 1;
	ck_assert_str_eq(run_starved(x), "AB");
	ck_assert_str_eq(run_starved(x), "");
	ck_assert_uint_eq(x->w.num_starved, 0);
	ck_assert_uint_eq(counter_read(&s[0].refused[VERBS_POOL_WQE]), 2);
	rx_free(x);
}
END_TEST

START_TEST(starved__goes_and_comes)
{
	struct verbs_share s[2];
	struct rx *x = starved_new(s);

	verbs_run_remove(&x->w, &x->qp[0]);
	verbs_run_remove(&x->w, &x->qp[2]);
	ck_assert_uint_eq(x->w.num_starved, 1);
	add(x, "B", 0); /* for another reason; what it wants it does not get */
	ck_assert_uint_eq(x->w.num_starved, 0);
	ck_assert_str_eq(run_starved(x), "B");
	ck_assert_uint_eq(x->w.num_starved, 1);
	verbs_starve(&x->w, &x->qp[0], VERBS_POOL_IO); /* on a packet's arrival, off the list */
	x->w.ios = 1;
	ck_assert_str_eq(run_starved(x), "A"); /* it wants something else than B */
	verbs_run_remove(&x->w, &x->qp[0]);
	verbs_run_remove(&x->w, &x->qp[1]);
	ck_assert_uint_eq(x->w.num_starved, 0);
	rx_free(x);
}
END_TEST

/** A look in vain leaves those that wait as they are, however much there is that nobody wants. */
START_TEST(starved__looks_in_vain)
{
	struct verbs_share s[2];
	struct rx *x = starved_new(s);
	struct verbs_qp *first = s[0].wait_head, *second = first->run_next;

	x->w.ios = x->w.blocks = 4;
	x->qp[3].share = &s[0];
	verbs_starve(&x->w, &x->qp[3], VERBS_POOL_WQE); /* of three, eight steps move the first */
	for (int i = 0; i < 2; i++) {
		ck_assert_str_eq(run_starved(x), "");
		ck_assert_ptr_eq(s[0].wait_head, first);
		ck_assert_ptr_eq(first->run_next, second);
	}
	verbs_starve(&x->w, second, VERBS_POOL_IO); /* while it waits already */
	ck_assert_str_eq(run_starved(x), "B");
	rx_free(x);
}
END_TEST

START_TEST(add__idempotent)
{
	struct rx *x = rx_new();

	ck_assert_str_eq(run(x, 1000, 0), "");
	add(x, "ABA", 1000);
	ck_assert_uint_eq(x->w.run_count, 2);
	ck_assert_uint_eq(x->daemon[0].active, 1);
	ck_assert_uint_eq(x->daemon[2].active, 0);
	ck_assert_str_eq(run(x, 1000, 2), "AB");
	ck_assert_uint_eq(x->w.run_count, 0);
	ck_assert_uint_eq(x->daemon[0].active, 0);
	ck_assert_int_eq(x->qp[0].deficit, 0);
	rx_free(x);
}
END_TEST

START_TEST(round__shares_are_bytes)
{
	struct rx *x = rx_new();

	x->packet[0] = 100;
	x->packet[1] = 1700;
	x->packet[2] = 4096;
	add(x, "ABC", 1 << 30);
	for (int i = 0; i < 1000; i++)
		ck_assert_str_eq(run(x, 4096, 3), "ABC");
	for (int i = 0; i < 3; i++) /* no one is more than a packet off */
		ck_assert(llabs((int64_t)x->sent[i] - 1000 * 4096) <= 4096);
	rx_free(x);
}
END_TEST

START_TEST(round__no_saving_up)
{
	struct rx *x = rx_new();

	add(x, "A", 100);
	x->packet[0] = 100;
	run(x, 4096, 1);
	ck_assert_int_eq(x->qp[0].deficit, 0); /* what it did not need is gone */
	x->when_done = VERBS_RUN_WAIT;
	x->packet[0] = 9000;
	add(x, "A", 9000);
	run(x, 4096, 1);
	ck_assert_int_eq(x->qp[0].deficit, 4096 - 9000); /* a debt stays */
	add(x, "A", 0);
	ck_assert_str_eq(run(x, 100, 0), "A");
	ck_assert_int_eq(x->qp[0].deficit, 4096 - 9000 + 100);
	x->qp[0].deficit = INT32_MAX - 5; /* a transport that never subtracts */
	add(x, "A", 0);
	ck_assert_str_eq(run(x, 4096, 0), "A");
	rx_free(x);
}
END_TEST

START_TEST(full__keeps_its_turn_and_share)
{
	struct rx *x = rx_new();

	add(x, "ABC", 10000);
	x->room = 5;
	ck_assert_str_eq(run(x, 4000, 2), "AB"); /* A sends 4, B 1 */
	ck_assert_int_eq(x->qp[1].deficit, 3000);
	x->room = -1;
	ck_assert_str_eq(run(x, 4000, 3), "BCA");
	ck_assert_uint_eq(x->sent[0], 8000);
	ck_assert_uint_eq(x->sent[1], 4000); /* one share, not two */
	ck_assert_uint_eq(x->sent[2], 4000);
	/* gone while it held the turn: the next head gets a share of its own */
	x->room = 0;
	ck_assert_str_eq(run(x, 4000, 1), "B");
	verbs_run_remove(&x->w, &x->qp[1]);
	x->room = -1;
	ck_assert_str_eq(run(x, 4000, 2), "CA");
	ck_assert_uint_eq(x->sent[2], 8000);
	rx_free(x);
}
END_TEST

static void
add_d_and_b(struct rx *x, struct verbs_qp *qp)
{
	(void)qp;
	add(x, "DB", 1000);
}

START_TEST(round__added_ones_wait)
{
	struct rx *x = rx_new();

	x->during = add_d_and_b;
	add(x, "AC", 1000);
	ck_assert_str_eq(run(x, 1000, 2), "AC");
	x->during = NULL;
	ck_assert_str_eq(run(x, 1000, 2), "DB");
	rx_free(x);
}
END_TEST

/* Removal in a step: of itself, of the next, of the last, of all; each runs at most once. */
static const char *victims;
static void
remove_victims(struct rx *x, struct verbs_qp *qp)
{
	if (qp->qpn != (uint32_t)(victims[0] - 'A'))
		return;
	for (const char *v = victims + 1; *v; v++)
		verbs_run_remove(&x->w, &x->qp[*v - 'A']);
}

START_TEST(remove__in_a_step)
{
	static const struct {
		const char *victims, *first, *second;
	} cases[] = {
		{"AA", "ABCD", "BCD"}, {"AB", "ACD", "ACD"},   {"AD", "ABC", "ABC"},
		{"BA", "ABCD", "BCD"}, {"DD", "ABCD", "ABC"},  {"BD", "ABC", "ABC"},
		{"AABCD", "A", ""},    {"CD", "ABC", "ABC"},   {"BBD", "ABC", "AC"},
		{"DABC", "ABCD", "D"}, {"ADCB", "A", "A"},     {"CCD", "ABC", "AB"},
		{"AAD", "ABC", "BC"},  {"BCDB", "AB", "A"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rx *x = rx_new();

		add(x, "ABCD", 1 << 20);
		victims = cases[i].victims;
		x->during = remove_victims;
		verbs_run_round(&x->w, 1000, step, x);
		ck_assert_msg(strcmp(x->order, cases[i].first) == 0, "%s: %s, want %s", victims,
			      x->order, cases[i].first);
		memset(x->order, 0, sizeof(x->order));
		x->num = 0;
		x->during = NULL;
		verbs_run_round(&x->w, 1000, step, x);
		ck_assert_msg(strcmp(x->order, cases[i].second) == 0, "%s then: %s, want %s",
			      victims, x->order, cases[i].second);
		rx_free(x);
	}
}
END_TEST

/* The last of the round goes and comes back: it runs in the next round, not twice. */
static void
bounce_last(struct rx *x, struct verbs_qp *qp)
{
	if (qp->qpn == 0) {
		verbs_run_remove(&x->w, &x->qp[2]);
		verbs_run_add(&x->w, &x->qp[2]);
	}
}

START_TEST(remove__and_add_again)
{
	struct rx *x = rx_new();

	add(x, "ABC", 1 << 20);
	x->during = bounce_last;
	ck_assert_str_eq(run(x, 1000, 2), "AB");
	x->during = NULL;
	ck_assert_str_eq(run(x, 1000, 3), "CAB");
	rx_free(x);
}
END_TEST

/* A random life: the list stays a list, and a round steps nobody twice. */
static uint64_t seed = 12;
static void
random_changes(struct rx *x, struct verbs_qp *qp)
{
	(void)qp;
	for (unsigned int n = fx_random(&seed) % 4; n > 0; n--) {
		struct verbs_qp *q = &x->qp[fx_random(&seed) % QPS];

		if (fx_random(&seed) % 2)
			verbs_run_add(&x->w, q);
		else
			verbs_run_remove(&x->w, q);
	}
	x->left[fx_random(&seed) % QPS] = (int64_t)(fx_random(&seed) % 3000);
	x->when_done = fx_random(&seed) % 2 ? VERBS_RUN_IDLE : VERBS_RUN_WAIT;
	x->room = (int)(fx_random(&seed) % 4) - 1;
}

START_TEST(round__random)
{
	struct rx *x = rx_new();

	x->during = random_changes;
	for (int n = 0; n < 20000; n++) {
		uint32_t count = 0;

		memset(x->order, 0, sizeof(x->order));
		x->num = 0;
		random_changes(x, NULL);
		verbs_run_round(&x->w, 1500, step, x);
		for (size_t i = 0; i < x->num; i++)
			ck_assert_ptr_null(strchr(x->order + i + 1, x->order[i]));
		for (struct verbs_qp *q = x->w.run_head; q; q = q->run_next, count++)
			ck_assert(q->on_run_list && (q->run_next || q == x->w.run_tail));
		ck_assert_uint_eq(count, x->w.run_count);
		for (uint32_t i = 0; i < QPS; i++)
			ck_assert_uint_eq(x->daemon[i].active, x->qp[i].on_run_list);
	}
	rx_free(x);
}
END_TEST

/* ---- leaving ---------- */

static void
post_late(struct rx *x, struct verbs_qp *qp)
{
	atomic_fetch_add(&x->client[qp->qpn].sq_tail, 1);
}

START_TEST(leave__sees_what_was_posted)
{
	struct rx *x = rx_new();

	x->during = post_late; /* after the step's own look, before active = 0 */
	add(x, "A", 0);
	ck_assert_str_eq(run(x, 1000, 0), "A");
	ck_assert_uint_eq(x->daemon[0].active, 1);
	ck_assert(x->qp[0].on_run_list);
	x->during = NULL;
	x->qp[0].sq.head = x->qp[0].sq.tail = 1; /* taken */
	ck_assert_str_eq(run(x, 1000, 0), "A");
	ck_assert(!x->qp[0].on_run_list);

	x->when_done = VERBS_RUN_WAIT; /* what cannot be started does not hold it */
	x->during = post_late;
	add(x, "A", 0);
	ck_assert_str_eq(run(x, 1000, 0), "A");
	ck_assert(!x->qp[0].on_run_list);
	rx_free(x);
}
END_TEST

/* Receives hold a QP in ERR alone, where they are flushed; queues that are not there never do. */
START_TEST(leave__receives_and_missing_queues)
{
	struct rx *x = rx_new();
	struct verbs_qp *qp = &x->qp[0];

	qp->rq = (struct ring_wq_cons){(uint8_t *)x->slots[1], &x->client[0].rq_tail, 0, 0, 0};
	x->client[0].rq_tail = 1;
	for (int srq = 0; srq < 2; srq++)
		for (int state = RING_QPS_RTR; state <= RING_QPS_ERR; state++) {
			struct verbs_srq s = {0};

			qp->state = (uint8_t)state;
			qp->srq = srq ? &s : NULL;
			add(x, "A", 0);
			run(x, 1000, 0);
			ck_assert_int_eq(qp->on_run_list, state == RING_QPS_ERR && !srq);
			verbs_run_remove(&x->w, qp);
		}
	qp->state = RING_QPS_ERR;
	x->client[0].sq_tail = 5; /* of a send queue that there is not */
	qp->srq = NULL;
	qp->sq = (struct ring_wq_cons){0};
	add(x, "A", 0);
	run(x, 1000, 0);
	ck_assert(qp->on_run_list);
	x->client[0].rq_tail = 0;
	run(x, 1000, 0);
	ck_assert(!qp->on_run_list);
	qp->rq = (struct ring_wq_cons){0};
	add(x, "A", 0);
	run(x, 1000, 0);
	ck_assert(!qp->on_run_list);
	rx_free(x);
}
END_TEST

/* ---- a posting thread ---------- */

#define POSTS 20000u

struct thread_ctx {
	struct fx *f;
	struct ring_bell_chunk *bells;
	uint32_t taken;
};

static void *
poster(void *arg)
{
	struct thread_ctx *t = arg;
	struct fx *f = t->f;
	struct ring_wq_prod p = {f->sq, &f->client.sq_tail, FX_SLOTS - 1, 0, 0};
	struct ring_wqe send = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED, .num_slots = 1};
	struct ring_cqe e;

	for (uint32_t posted = 0, seen = 0; seen < POSTS;) {
		while (fx_poll(f, &e)) {
			p.head = e.wqe_index + 1;
			seen++;
		}
		if (posted == POSTS || ring_wq_free(&p) == 0) {
			sched_yield();
			continue;
		}
		memcpy(ring_wq_slot(&p, p.tail), &send, sizeof(send));
		p.tail++;
		posted++;
		ring_wq_publish(&p);
		if (ring_bell_needed(&f->daemon))
			ring_bell_set(t->bells, 4711);
		if (posted % 5 == 0) /* let the worker go off the list now and then */
			sched_yield();
	}
	return NULL;
}

static enum verbs_run
take(void *arg, struct verbs_qp *qp)
{
	struct thread_ctx *t = arg;
	struct verbs_wqe *q;
	int ret;

	while ((ret = verbs_sq_fetch(&t->f->w, qp, &q)) == 1) {
		t->taken++;
		verbs_complete_send(&t->f->w, qp, q, q->status);
	}
	ck_assert_int_eq(ret, 0);
	return VERBS_RUN_IDLE;
}

static void
found(void *arg, uint32_t slot)
{
	struct thread_ctx *t = arg;

	ck_assert_uint_eq(slot, 4711);
	verbs_run_add(&t->f->w, &t->f->qp);
}

START_TEST(threads__no_post_is_lost)
{
	struct thread_ctx t = {fx_new(4, 1, 1, 0), fx_aligned(sizeof(struct ring_bell_chunk)), 0};
	struct ring_bell_scan scan = {0};
	pthread_t id;

	ck_assert_int_eq(pthread_create(&id, NULL, poster, &t), 0);
	while (t.taken < POSTS) {
		if (ring_bell_any(t.bells))
			ring_bell_collect(t.bells, &scan, 1000, found, &t);
		verbs_run_round(&t.f->w, 4096, take, &t);
		if (t.f->w.run_head == NULL)
			sched_yield();
	}
	ck_assert_int_eq(pthread_join(id, NULL), 0);
	ck_assert_uint_eq(t.taken, POSTS);
	free(t.bells);
	fx_free(t.f);
}
END_TEST

UNIT_MAIN("verbs_run", starved__each_context_in_its_turn, starved__goes_and_comes,
	  starved__looks_in_vain, add__idempotent, round__shares_are_bytes, round__no_saving_up,
	  full__keeps_its_turn_and_share, round__added_ones_wait, remove__in_a_step,
	  remove__and_add_again, round__random, leave__sees_what_was_posted,
	  leave__receives_and_missing_queues, threads__no_post_is_lost)
