/* SPDX-License-Identifier: BSD-3-Clause */
/* No client has the control thread for longer than its turn, whatever it asks for or leaves. */
#include <sys/epoll.h>

#include "ctl_objects.h"

static struct fx_client other;

static struct ctl_client *
newest(void)
{
	return TAILQ_LAST(&fx_dev->clients, ctl_client_list);
}

static void
ask(struct fx_client *c, unsigned int messages, unsigned int count)
{
	struct ring_ctrl_query_port_req req[64];

	memset(req, 0, sizeof(req));
	for (unsigned int i = 0; i < 64; i++)
		req[i].port = 1;
	for (unsigned int i = 0; i < messages; i++)
		ck_assert_int_eq(fx_send(c, RING_CTRL_QUERY_PORT, 1000 + i, req, count), 0);
}

/* ---- requests ---------- */

START_TEST(requests__a_turn_at_a_time)
{
	const unsigned int messages = 12, count = 64;
	struct ctl_client *c;
	unsigned int replies = 0;

	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	c = newest();
	ask(&other, messages, count);
	ask(&cl, 1, 1);
	worker_ctl_poll(fx_dev, 0);
	ck_assert(c->ready);
	ck_assert_uint_le(c->spent, CTL_TURN + 2);
	ck_assert_uint_eq(c->wanted & EPOLLIN, 0);
	ck_assert(fx_recv(&cl)); /* who came behind it is answered in the same turn */
	/* There is work: it does not sleep, and comes to an end. */
	for (int i = 0; i < 100 && replies < messages; i++) {
		worker_ctl_poll(fx_dev, -1);
		while (fx_recv(&other))
			replies++;
	}
	ck_assert_uint_eq(replies, messages);
	ck_assert(!c->ready);
	ck_assert_uint_eq(c->wanted, EPOLLIN);
	fx_close(&other);
	fx_settle(1);
}
END_TEST

/* It dies, or is cut off, with a turn to come. */
START_TEST(requests__death_between_turns)
{
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	ask(&other, 12, 64);
	worker_ctl_poll(fx_dev, 0);
	ck_assert(newest()->ready);
	ck_assert_uint_eq(fx_dev->num_ready, 1);
	ctl_client_kill(newest(), NULL);
	ck_assert_uint_eq(fx_dev->num_ready, 0);
	ck_assert(TAILQ_EMPTY(&fx_dev->ready));
	fx_close(&other);
	fx_settle(1);
}
END_TEST

/* ---- clearing ---------- */

static uint32_t
make_cq(uint32_t vector)
{
	struct ring_ctrl_create_cq_req req = {.entries = 64, .channel = RING_NO_HANDLE,
		.comp_vector = vector};
	struct ring_ctrl_create_cq_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CQ, &req, &rep), 0);
	return rep.cqn;
}

/* A QP that is bound to the worker of `rcq`. */
static void
bind_qp(uint32_t pd, uint32_t scq, uint32_t rcq)
{
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_ERR};
	struct ring_ctrl_create_qp_req req = {.type = RING_QPT_RC, .pd = pd, .send_cq = scq,
		.recv_cq = rcq, .srqn = RING_NO_HANDLE, .xrcd = RING_NO_HANDLE, .max_send_wr = 1,
		.max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	struct ring_ctrl_create_qp_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &req, &rep), 0);
	ck_assert_int_eq(to_init(rep.qpn), 0);
	ck_assert_int_eq(modify(rep.qpn, RING_QP_STATE, &a, NULL), 0);
}

/* The client has gone on to the new rings: the old ones may be given back at the next resize. */
static void
follow(struct ctl_cq *cq)
{
	struct ring_cq_client *words = ctl_block_ptr(cq->client_words);

	for (uint32_t w = 0; w < FX_WORKERS; w++)
		atomic_store(&words->cons[w], cq->sub[w].start);
}

static void
resize(struct ctl_cq *cq, uint32_t entries, int status)
{
	struct ring_ctrl_resize_cq_req req = {.cqn = cq->vcq->cqn, .entries = entries};

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_RESIZE_CQ, &req, NULL), status);
	follow(cq);
}

#define MANY 65535u /* entries, of 32 bytes: a turn's worth of clearing */

/* A CQ with a sub-ring at each worker, and in its arena two dirty blocks for large ones. */
static struct ctl_cq *
dirty_cq(void)
{
	uint32_t pd = make_pd(), first = make_cq(0), second = make_cq(1);
	struct ctl_cq *cq = ctl_cq_find(newest(), first);

	bind_qp(pd, first, first);
	bind_qp(pd, first, second);
	ck_assert(cq->sub[0].made && cq->sub[1].made);
	follow(cq);
	resize(cq, MANY, 0);
	resize(cq, 1, 0);
	resize(cq, 1, 0);
	return cq;
}

START_TEST(resize__a_ring_at_a_time)
{
	struct ring_ctrl_resize_cq_req req = {.entries = MANY};
	struct ctl_cq *cq = dirty_cq();

	req.cqn = cq->vcq->cqn;
	fx_send(&cl, RING_CTRL_RESIZE_CQ, 500, &req, 1);
	worker_ctl_poll(fx_dev, 0);
	ck_assert(newest()->ready);
	ck_assert_ptr_nonnull(cq->sub[0].fresh);
	ck_assert_ptr_null(cq->sub[1].fresh);
	ck_assert(fx_wait(&cl, 500));
	ck_assert_int_eq(*(int32_t *)ring_ctrl_body(cl.buf), 0);
	ck_assert_uint_eq(cq->sub[0].entries, MANY + 1);
	ck_assert_uint_eq(cq->sub[1].entries, MANY + 1);
	ck_assert_ptr_null(cq->sub[0].fresh);
}
END_TEST

/* Killed in the middle: what it has got so far goes with the rest (the teardown counts). */
START_TEST(resize__death_between_rings)
{
	struct ring_ctrl_resize_cq_req req = {.entries = MANY};
	struct ctl_cq *cq = dirty_cq();

	req.cqn = cq->vcq->cqn;
	fx_send(&cl, RING_CTRL_RESIZE_CQ, 500, &req, 1);
	worker_ctl_poll(fx_dev, 0);
	ck_assert_ptr_nonnull(cq->sub[0].fresh);
}
END_TEST

/* ---- death ---------- */

static struct ctl_client *
client_with_qps(uint32_t num, bool bound)
{
	uint32_t pd = make_pd(), cqn = make_cq(0);
	struct ctl_client *c = newest();

	for (uint32_t i = 0; i < num; i++) {
		if (bound) {
			bind_qp(pd, cqn, cqn);
			continue;
		}
		struct ring_ctrl_create_qp_req req = {.type = RING_QPT_RC, .pd = pd,
			.send_cq = cqn, .recv_cq = cqn, .srqn = RING_NO_HANDLE,
			.xrcd = RING_NO_HANDLE};

		ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &req, NULL), 0);
	}
	ck_assert_uint_eq(c->num_objs[CTL_QP], num);
	return c;
}

/* A turn's worth, and the loop does not sleep over the rest. */
START_TEST(death__a_turn_at_a_time)
{
	struct ctl_client *c = client_with_qps(3 * CTL_REAP_TURN, false);

	fx_close(&cl);
	worker_ctl_poll(fx_dev, 0);
	ck_assert_uint_eq(c->num_objs[CTL_QP], 2 * CTL_REAP_TURN);
	worker_ctl_poll(fx_dev, -1);
	worker_ctl_poll(fx_dev, -1);
	ck_assert_uint_eq(c->num_objs[CTL_QP], 0);
}
END_TEST

/* What waits for the workers is bounded, is not looked at again, and leads to the rest. */
START_TEST(death__few_on_their_way)
{
	const uint32_t more = CTL_REAP_UNDERWAY + 100;
	struct ctl_client *c = client_with_qps(more, true);

	fx_close(&cl);
	for (int i = 0; i < 8; i++)
		worker_ctl_poll(fx_dev, 0); /* the workers do not run */
	ck_assert_uint_eq(c->num_dying[CTL_QP], CTL_REAP_UNDERWAY);
	ck_assert_uint_eq(c->num_objs[CTL_QP], 100);
	ck_assert(!c->reap);
	fx_settle(0);
}
END_TEST

/* ---- unmapping ---------- */

/* A job that keeps the helper that unmaps until it is let go. */
struct stall {
	struct ctl_job job;
	int fd[2];
	bool over;
};

static bool
stall_step(struct ctl_job *j)
{
	char b;

	(void)!read(((struct stall *)j)->fd[0], &b, 1);
	return false;
}

static void
stall_done(struct worker_device *d, struct ctl_job *j)
{
	(void)d;
	((struct stall *)j)->over = true;
}

static void
stall_begin(struct stall *s)
{
	*s = (struct stall){.job = {.pool = CTL_POOL_ARENA, .step = stall_step,
		.done = stall_done}};
	ck_assert_int_eq(pipe2(s->fd, O_CLOEXEC), 0);
	ctl_helper_submit(fx_dev, &s->job);
}

static void
stall_end(struct stall *s)
{
	close(s->fd[1]);
	while (!s->over)
		fx_step();
	close(s->fd[0]);
}

/* What a client leaves is unmapped by the helper, while the control thread goes on. */
START_TEST(death__arenas_by_the_helper)
{
	struct ctl_client *c;
	struct stall s;
	uint32_t arenas;

	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	c = newest();
	arenas = c->num_arenas;
	ck_assert_uint_gt(arenas, 0);
	stall_begin(&s);
	fx_close(&other);
	while (!c->unmapping)
		fx_step();
	for (int i = 0; i < 50; i++)
		fx_step();
	ck_assert_uint_eq(fx_dev->num_clients, 2);
	ck_assert_uint_eq(c->arenas_left, arenas);
	ask(&cl, 1, 1);
	ck_assert(fx_wait(&cl, 1000));
	stall_end(&s);
	fx_settle(1);
}
END_TEST

/* A deregistration is answered when the memory is free again, for the next to be charged. */
START_TEST(dereg__by_the_helper)
{
	struct ring_ctrl_handle_req req = {0};
	struct ring_ctrl_reg_mr_rep mr;
	struct ctl_user *u = newest()->user;
	struct stall s;
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_int_eq(reg_mr(make_pd(), p, 8192, RING_ACCESS_LOCAL_WRITE, &mr), 0);
	if (mr.how != RING_MR_MAPPED) {
		printf("dereg__by_the_helper: skipped, needs root\n");
		return;
	}
	stall_begin(&s);
	req.handle = mr.lkey;
	fx_send(&cl, RING_CTRL_DEREG_MR, 700, &req, 1);
	for (int i = 0; i < 50; i++) {
		fx_step();
		ck_assert(!fx_recv(&cl));
	}
	ck_assert_uint_eq(atomic_load(&u->mapped), 8192);
	stall_end(&s);
	ck_assert(fx_wait(&cl, 700));
	ck_assert_uint_eq(atomic_load(&u->mapped), 0);
	munmap(p, 8192);
}
END_TEST

/* A program that is started again while its last run is taken down waits for its memory. */
START_TEST(quota__waits_for_the_dying)
{
	struct ring_ctrl_alloc_mem_req req = {.size = 40 << 20, .align = 64};
	struct ring_ctrl_alloc_mem_rep rep;
	struct stall s;

	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	ck_assert_int_eq(fx_call(&other, RING_CTRL_ALLOC_MEM, &req, &rep), 0);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MEM, &req, &rep), -EDQUOT);
	stall_begin(&s);
	fx_close(&other);
	while (newest()->state != CTL_CLIENT_DYING)
		fx_step();
	fx_send(&cl, RING_CTRL_ALLOC_MEM, 800, &req, 1);
	for (int i = 0; i < 50; i++) {
		fx_step();
		ck_assert(!fx_recv(&cl));
	}
	stall_end(&s);
	ck_assert(fx_wait(&cl, 800));
	ck_assert_int_eq(*(int32_t *)ring_ctrl_body(cl.buf), 0);
	fx_settle(1);
}
END_TEST

/* ---- how long it may sleep ---------- */

static int slept_ms; /* that the last epoll_wait() might have */

/* In place of libc's: the device does not wait here. EAL's own thread does. */
int
epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout_ms)
{
	if (fx_dev != NULL && epfd == fx_dev->epfd) {
		slept_ms = timeout_ms;
		timeout_ms = 0;
	}
	return epoll_pwait(epfd, ev, max, timeout_ms, NULL);
}

/* Lanes and helpers that are at work are looked at when that is due, not all the time. */
START_TEST(lanes__no_polling)
{
	fx_settle(1);
	fx_dev->lanes_busy = true;
	fx_dev->lanes_due = UINT64_MAX;
	worker_ctl_poll(fx_dev, -1);
	ck_assert_int_gt(slept_ms, 1);
	fx_dev->lanes_due = ctl_now(fx_dev) + 20000000;
	worker_ctl_poll(fx_dev, -1);
	ck_assert_int_le(slept_ms, 20);
}
END_TEST

FX_MAIN("ctl_turn", setup, teardown, requests__a_turn_at_a_time, requests__death_between_turns,
	resize__a_ring_at_a_time, resize__death_between_rings, death__a_turn_at_a_time,
	death__few_on_their_way, death__arenas_by_the_helper, dereg__by_the_helper,
	quota__waits_for_the_dying, lanes__no_polling)
