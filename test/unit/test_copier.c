/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a lane is given up, and what of it: a lane without its thread, whose steps this test does
 * in its place. The source is included for them.
 */
#include "ctl_objects.h"
#include "copier.c"
#include "worker_priv.h"

#define LIMIT UINT64_C(3000000000)

static struct copier_lane *lane;
static struct verbs_io ios[3];
static uint8_t bytes[64];

static void
start(void)
{
	setup();
	lane = aligned_alloc(RING_LINE, RTE_ALIGN_CEIL(sizeof(*lane), (size_t)RING_LINE));
	memset(lane, 0, sizeof(*lane));
	lane->s = &fx_dev->sh;
	lane->mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	lane->wake = -1;
	atomic_store(&lane->refs, 1);
	sem_init(&lane->ready, 0, 0);
	ck_assert_int_eq(lane_memory(lane), 0);
	memset(ios, 0, sizeof(ios));
	for (int i = 0; i < 3; i++) {
		ios[i].lane = lane;
		ios[i].op = VERBS_IO_READ;
		ios[i].num = 1;
		ios[i].piece[0].remote = (uintptr_t)bytes;
		ios[i].piece[0].local = malloc(64);
		ios[i].piece[0].len = 64;
		copier_submit(NULL, 0, &ios[i]);
	}
}

/* What was given back is still in the mailbox: its worker has not run since. */
static void
end(void)
{
	for (int i = 0; i < 3; i++)
		free(ios[i].piece[0].local);
	ck_assert(!copier_lane_busy(lane) || atomic_load(&lane->state) == LANE_ABANDONED);
	lane_free(lane);
	teardown();
}

static struct copier_msg *
next(void)
{
	struct copier_msg *c;

	ck_assert_int_eq(rte_ring_dequeue(lane->todo, (void **)&c), 0);
	return c;
}

/* Take what was given back out of the mailbox, as its worker would. */
static uint32_t
given_back(void)
{
	uint32_t n = 0;
	void *m;

	ctl_msg_retry(fx_dev);
	while (rte_ring_dequeue(fx_dev->workers[0]->mailbox, &m) == 0) {
		msg_done(m);
		n++;
	}
	return n;
}

/* The thread stands between the ring and the call, for as long as the scheduler likes. */
START_TEST(not_in_a_call__not_abandoned)
{
	struct copier_msg *c = next();
	struct verbs_io copy;
	uint64_t late, original = 0;
	int status;

	lane_take(lane, c, &copy);
	late = c->since + 10 * LIMIT;
	ck_assert(!copier_lane_stuck(lane, late, LIMIT));
	copier_lane_kill(lane);
	ck_assert(!copier_lane_drain(lane));
	ck_assert_uint_eq(given_back(), 0);
	ck_assert(lane_do(lane, &copy, &status, &original));
	ck_assert_int_eq(status, -ESRCH);
	atomic_store(&lane->state, LANE_IDLE);
}
END_TEST

START_TEST(in_a_call__abandoned_once)
{
	struct copier_msg *c = next();
	struct verbs_io copy;

	lane_take(lane, c, &copy);
	ck_assert(call_begin(lane));
	ck_assert(!copier_lane_stuck(lane, c->since + LIMIT, LIMIT));
	ck_assert(copier_lane_stuck(lane, c->since + LIMIT + 1, LIMIT));
	copier_lane_kill(lane);
	ck_assert_uint_eq(given_back(), 3); /* and the two that waited */
	ck_assert_int_eq(ios[0].status, -ETIMEDOUT);
	ck_assert_int_eq(ios[2].status, -ESRCH);
	ck_assert(!call_end(lane));
	copier_lane_kill(lane);
	ck_assert_uint_eq(given_back(), 0);
}
END_TEST

/* Each of a client's accesses stays below the limit; those behind them wait all the same. */
START_TEST(queue__counts)
{
	struct copier_msg *c = next();
	struct verbs_io copy;
	int status;
	uint64_t original = 0;

	lane_take(lane, c, &copy);
	ck_assert(lane_do(lane, &copy, &status, &original));
	ck_assert_int_eq(status, 0);
	give_back(c, 0);
	c = next();
	c->since -= LIMIT; /* it has waited for the first */
	lane_take(lane, c, &copy);
	ck_assert(call_begin(lane));
	ck_assert(copier_lane_stuck(lane, worker_clock_now(&lane->s->clock) + 1, LIMIT));
	copier_lane_kill(lane);
	ck_assert_uint_eq(given_back(), 3);
}
END_TEST

/* A mailbox that is full keeps the control thread from nothing. */
START_TEST(full_mailbox__not_waited_for)
{
	struct rte_ring *mbox = fx_dev->workers[0]->mailbox;
	static struct worker_msg fill;
	struct copier_msg *c = next();
	struct verbs_io copy;
	void *m;

	while (rte_ring_enqueue(mbox, &fill) == 0)
		;
	lane_take(lane, c, &copy);
	ck_assert(call_begin(lane));
	copier_lane_kill(lane);
	while (rte_ring_dequeue(mbox, &m) == 0)
		ck_assert_ptr_eq(m, &fill);
	ck_assert_uint_eq(given_back(), 3);
}
END_TEST

/* ---- what it leaves behind ---------- */

static sem_t call_returns;

static void *
hanging_call(void *arg)
{
	struct copier_lane *l = arg;

	while (sem_wait(&call_returns) < 0)
		;
	atomic_store(&l->ended, true);
	lane_free(l);
	return NULL;
}

/* A lane put while its thread is in a call that hangs; another reference is the test's. */
static struct ctl_user *
put_hanging(void)
{
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);

	sem_init(&call_returns, 0, 0);
	lane->wake = eventfd(0, EFD_CLOEXEC);
	atomic_store(&lane->refs, 3);
	ck_assert_int_eq(pthread_create(&lane->thread, NULL, hanging_call, lane), 0);
	atomic_store(&lane->state, LANE_ABANDONED);
	copier_lane_put(lane, u);
	return u;
}

START_TEST(abandoned__charged_until_it_ends)
{
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	uint32_t fds = u->fds;

	put_hanging();
	ck_assert(!copier_lanes_join(fx_dev, false)); /* no hurry */
	ck_assert_uint_eq(u->abandoned, 1);
	ck_assert_uint_eq(u->fds, fds + COPIER_LANE_FDS);
	sem_post(&call_returns);
	while (!atomic_load(&lane->ended))
		sched_yield();
	ck_assert(!copier_lanes_join(fx_dev, false));
	ck_assert_uint_eq(u->abandoned, 0);
	ck_assert_uint_eq(u->fds, fds);
	ck_assert_ptr_null(fx_dev->lanes_ending);
}
END_TEST

/* The device goes, and waits for no such thread. */
START_TEST(abandoned__not_waited_for)
{
	struct ctl_user *u = put_hanging();

	copier_lanes_join(fx_dev, true);
	ck_assert_uint_eq(u->abandoned, 0);
	ck_assert_ptr_null(fx_dev->lanes_ending);
	sem_post(&call_returns);
	while (atomic_load(&lane->refs) != 1)
		sched_yield();
}
END_TEST

/* Its uid is known for as long. */
START_TEST(abandoned__keeps_its_user)
{
	struct ctl_user *u = put_hanging();

	fx_close(&cl);
	fx_settle(0);
	ck_assert_ptr_eq(LIST_FIRST(&fx_dev->users), u);
	ck_assert_uint_eq(u->fds, COPIER_LANE_FDS);
	sem_post(&call_returns);
	while (!atomic_load(&lane->ended))
		sched_yield();
	copier_lanes_join(fx_dev, false);
	ck_assert_ptr_null(LIST_FIRST(&fx_dev->users));
}
END_TEST

FX_MAIN("copier", start, end, not_in_a_call__not_abandoned, in_a_call__abandoned_once,
	queue__counts, full_mailbox__not_waited_for, abandoned__charged_until_it_ends,
	abandoned__not_waited_for, abandoned__keeps_its_user)
