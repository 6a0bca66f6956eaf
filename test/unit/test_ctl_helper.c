/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose jobs the helper threads do when. Steps of these jobs stop at a gate until it is opened;
 * their clients are only as much of one as a turn takes. The source is included for its counts.
 */
#include <semaphore.h>

#include "ctl_helper.c"
#include "ctl_objects.h"

#define JOBS 50

struct test_job {
	struct ctl_job j;
	sem_t *gate; /* NULL: none */
	uint32_t *order; /* NULL, or where its number of steps done by all goes */
	uint32_t more; /* steps after the first */
	bool done;
};

static _Atomic uint32_t steps, at_gate;

static bool
test_step(struct ctl_job *j)
{
	struct test_job *t = (struct test_job *)j;

	if (t->gate != NULL) {
		atomic_fetch_add(&at_gate, 1);
		sem_wait(t->gate);
	}
	if (t->order != NULL)
		*t->order = atomic_fetch_add(&steps, 1);
	return t->more != 0 && t->more-- != 0;
}

static void
test_done(struct worker_device *d, struct ctl_job *j)
{
	(void)d;
	((struct test_job *)j)->done = true;
}

static void
submit(struct test_job *t, struct ctl_client *c, enum ctl_pool pool)
{
	t->j.client = c;
	t->j.pool = (uint8_t)pool;
	t->j.step = test_step;
	t->j.done = test_done;
	ctl_helper_submit(fx_dev, &t->j);
}

static void
wait_done(const struct test_job *t)
{
	while (!t->done)
		fx_step();
}

static void
start(void)
{
	setup();
	atomic_store(&steps, 0);
	atomic_store(&at_gate, 0);
}

/* A registration whose step does not end: clients come and their arenas grow all the same. */
START_TEST(arenas__beside_registrations)
{
	static struct fx_client other;
	struct test_job held = {0};
	sem_t gate;

	sem_init(&gate, 0, 0);
	held.gate = &gate;
	submit(&held, NULL, CTL_POOL_PROCESS);
	while (atomic_load(&at_gate) == 0)
		sched_yield();
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	ck_assert(!held.done);
	sem_post(&gate);
	wait_done(&held);
	fx_close(&other);
	sem_destroy(&gate);
}
END_TEST

/*
 * Who comes with one job waits for one step of each other client, not for all that they queued;
 * and another uid's for one step of each uid.
 */
static void
turns(struct ctl_user *users, uint32_t *one, uint32_t *last)
{
	static struct test_job many[2][JOBS], single, held;
	static uint32_t order[2][JOBS];
	struct ctl_client c[3] = {{.user = &users[0]}, {.user = &users[0]}, {.user = &users[1]}};
	sem_t gate;

	memset(many, 0, sizeof(many));
	memset(&single, 0, sizeof(single));
	memset(&held, 0, sizeof(held));
	atomic_store(&steps, 0);
	atomic_store(&at_gate, 0);
	sem_init(&gate, 0, 0);
	held.gate = &gate;
	submit(&held, NULL, CTL_POOL_ARENA);
	while (atomic_load(&at_gate) == 0)
		sched_yield();
	for (int i = 0; i < 2 * JOBS; i++) {
		many[i % 2][i / 2].order = &order[i % 2][i / 2];
		submit(&many[i % 2][i / 2], &c[i % 2], CTL_POOL_ARENA);
	}
	single.order = one;
	submit(&single, &c[2], CTL_POOL_ARENA);
	sem_post(&gate);
	for (int i = 0; i < 2 * JOBS; i++)
		wait_done(&many[i % 2][i / 2]);
	wait_done(&single);
	wait_done(&held);
	for (int i = 1; i < JOBS; i++) /* a client's own in their order */
		ck_assert_uint_lt(order[0][i - 1], order[0][i]);
	*last = order[0][JOBS - 1];
	sem_destroy(&gate);
}

START_TEST(clients__take_turns)
{
	struct ctl_user *users = calloc(2, sizeof(*users));
	uint32_t one, last;

	turns(users, &one, &last);
	ck_assert_uint_le(one, 1);
	ck_assert_uint_ge(last, 2 * JOBS - 2); /* neither of the two was before the other */
	free(users);
}
END_TEST

/* Steps that hang: others go on, on other threads; a uid keeps no more than its share. */
START_TEST(hanging__others_go_on)
{
	struct ctl_user *users = calloc(2, sizeof(*users));
	struct ctl_client *c = calloc(11, sizeof(*c));
	static struct test_job held[10], single;
	uint32_t one;
	sem_t gate;

	sem_init(&gate, 0, 0);
	for (int i = 0; i < 10; i++) {
		c[i].user = &users[0];
		held[i].gate = &gate;
		submit(&held[i], &c[i], CTL_POOL_PROCESS);
	}
	c[10].user = &users[1];
	single.order = &one;
	submit(&single, &c[10], CTL_POOL_PROCESS);
	wait_done(&single);
	while (atomic_load(&at_gate) < 8)
		fx_step();
	memset(&single, 0, sizeof(single));
	single.order = &one;
	submit(&single, &c[10], CTL_POOL_PROCESS);
	wait_done(&single); /* all that may hang do: there is still a thread for this */
	ck_assert_uint_eq(atomic_load(&at_gate), 8);
	ck_assert_uint_eq(users[0].turns[CTL_POOL_PROCESS].running, 8);
	for (int i = 0; i < 10; i++)
		sem_post(&gate);
	for (int i = 0; i < 10; i++)
		wait_done(&held[i]);
	ck_assert_uint_eq(users[0].turns[CTL_POOL_PROCESS].running, 0);
	sem_destroy(&gate);
	free(c);
	free(users);
}
END_TEST

/* What a job holds between its steps is held by one job of a client at a time. */
START_TEST(job__to_its_end)
{
	struct ctl_user *u = calloc(1, sizeof(*u));
	struct test_job held = {0}, job[3];
	struct ctl_client c = {.user = u};
	uint32_t last[3];
	sem_t gate;

	sem_init(&gate, 0, 0);
	held.gate = &gate;
	submit(&held, NULL, CTL_POOL_PROCESS);
	while (atomic_load(&at_gate) == 0)
		sched_yield();
	for (int i = 0; i < 3; i++) {
		job[i] = (struct test_job){.order = &last[i], .more = 4};
		submit(&job[i], &c, CTL_POOL_PROCESS);
	}
	sem_post(&gate);
	wait_done(&held);
	for (uint32_t i = 0; i < 3; i++) {
		wait_done(&job[i]);
		ck_assert_uint_eq(last[i], 5 * i + 4);
	}
	sem_destroy(&gate);
	free(u);
}
END_TEST

/* What a client has whose look hangs is not given back soon: nobody waits for it. */
START_TEST(hanging__not_waited_for)
{
	struct ring_ctrl_alloc_mem_req mem = {.size = 40 << 20, .align = 64};
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	struct test_job held = {0};
	static struct fx_client other;
	struct ctl_client *c;
	sem_t gate;

	fx_dev->lane_limit_ns = UINT64_MAX;
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	ck_assert_int_eq(fx_call(&other, RING_CTRL_ALLOC_MEM, &mem, NULL), 0);
	c = TAILQ_LAST(&fx_dev->clients, ctl_client_list);
	c->jobs++;
	sem_init(&gate, 0, 0);
	held.gate = &gate;
	submit(&held, c, CTL_POOL_PROCESS);
	while (atomic_load(&at_gate) == 0)
		sched_yield();
	fx_close(&other);
	fx_send(&cl, RING_CTRL_ALLOC_MEM, 99, &mem, 1);
	while (!u->waits)
		fx_step();
	ck_assert_uint_eq(u->dying, 1);
	fx_dev->lane_limit_ns = 1;
	ck_assert(fx_wait(&cl, 99));
	ck_assert_int_eq(*(int32_t *)ring_ctrl_body(cl.buf), -EDQUOT);
	ck_assert_uint_eq(u->dying, 0);
	sem_post(&gate);
	wait_done(&held);
	c->jobs--;
	ctl_client_reap(c);
	fx_settle(1);
	ck_assert_uint_eq(u->dying, 0);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MEM, &mem, NULL), 0);
	sem_destroy(&gate);
}
END_TEST

static void
pretend_slow(uint32_t n)
{
	pthread_mutex_lock(&fx_dev->helper->lock);
	fx_dev->helper->pool[CTL_POOL_PROCESS].slow += n;
	pthread_mutex_unlock(&fx_dev->helper->lock);
}

/* The more threads hang, the fewer a uid may keep: those that have none get one still. */
START_TEST(hanging__shares_shrink)
{
	struct ctl_user *users = calloc(2, sizeof(*users));
	struct ctl_client *c = calloc(4, sizeof(*c));
	struct test_job held[3] = {0}, single = {0};
	sem_t gate;

	pretend_slow(THREADS - 4);
	sem_init(&gate, 0, 0);
	for (int i = 0; i < 3; i++) {
		c[i].user = &users[0];
		held[i].gate = &gate;
		submit(&held[i], &c[i], CTL_POOL_PROCESS);
	}
	c[3].user = &users[1];
	for (int i = 0; i < 2; i++) { /* before the second the other uid has its turn */
		single.done = false;
		submit(&single, &c[3], CTL_POOL_PROCESS);
		wait_done(&single);
	}
	ck_assert_uint_eq(atomic_load(&at_gate), 1);
	for (int i = 0; i < 3; i++)
		sem_post(&gate);
	for (int i = 0; i < 3; i++)
		wait_done(&held[i]);
	pretend_slow(-(uint32_t)(THREADS - 4));
	ck_assert_uint_eq(fx_dev->helper->pool[CTL_POOL_PROCESS].slow, 0);
	sem_destroy(&gate);
	free(c);
	free(users);
}
END_TEST

FX_MAIN("ctl_helper", start, teardown, arenas__beside_registrations, clients__take_turns,
	hanging__others_go_on, job__to_its_end,
	hanging__not_waited_for, hanging__shares_shrink)
