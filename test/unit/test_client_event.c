/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and asynchronous events: telling, waiting, acknowledging, dying. */
#include "client_fake.h"

static bool
readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void
nonblocking(int fd)
{
	ck_assert_int_eq(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

struct chan_set {
	struct fake_set s;
	struct rnic_channel *ch;
	struct rnic_cq *cq; /* number 1 at the fake, of the channel */
};

static struct chan_set
chan_setup(void)
{
	struct chan_set c = {.s = fake_setup(4)};
	struct rnic_cq_attr attr = {.cqe = 15};

	ck_assert_int_eq(rnic_create_channel(c.s.ctx, &c.ch), 0);
	attr.channel = c.ch;
	ck_assert_int_eq(rnic_create_cq(c.s.ctx, &attr, &c.cq), 0);
	fake_sub(c.s.f, 1, 0);
	return c;
}

/* As a worker after a burst. */
static bool
notify(struct fake *f, uint32_t cq, bool solicited)
{
	if (!ring_cq_should_notify(f->cq[cq].client, f->cq[cq].daemon, solicited))
		return false;
	ring_channel_push(&f->channel[0], FAKE_CQN(cq));
	ck_assert_int_eq(write(f->pipe, "", 1), 1);
	return true;
}

/* A worker that was late pays several bytes in one write. */
START_TEST(channel__bytes_in_one_write)
{
	struct chan_set c = chan_setup();
	struct rnic_cq_attr attr = {.cqe = 3, .channel = c.ch};
	struct rnic_cq *two, *cq[2];

	nonblocking(rnic_channel_fd(c.ch));
	ck_assert_int_eq(rnic_create_cq(c.s.ctx, &attr, &two), 0);
	ck_assert_int_eq(rnic_req_notify_cq(c.cq, 0), 0);
	ck_assert_int_eq(rnic_req_notify_cq(two, 0), 0);
	for (uint32_t i = 1; i <= 2; i++) {
		ck_assert(ring_cq_should_notify(c.s.f->cq[i].client, c.s.f->cq[i].daemon, false));
		ring_channel_push(&c.s.f->channel[0], FAKE_CQN(i));
	}
	ck_assert_int_eq(write(c.s.f->pipe, "xx", 2), 2);
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq[0]), 0);
	ck_assert(readable(rnic_channel_fd(c.ch)));
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq[1]), 0);
	ck_assert_ptr_eq(cq[0], c.cq);
	ck_assert_ptr_eq(cq[1], two);
	ck_assert(!readable(rnic_channel_fd(c.ch)));
	rnic_ack_cq_events(c.cq, 1);
	rnic_ack_cq_events(two, 1);
	ck_assert_int_eq(rnic_destroy_cq(two), 0);
	fake_teardown(&c.s);
}
END_TEST

START_TEST(channel__one_event_an_arming)
{
	struct chan_set c = chan_setup();
	struct rnic_cq *cq;

	nonblocking(rnic_channel_fd(c.ch));
	ck_assert_int_eq(rnic_req_notify_cq(c.s.cq, 0), -EINVAL); /* has no channel */
	ck_assert(!notify(c.s.f, 1, true));
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq), -EAGAIN);
	ck_assert_int_eq(rnic_req_notify_cq(c.cq, 1), 0);
	ck_assert(!notify(c.s.f, 1, false));
	ck_assert(notify(c.s.f, 1, true));
	ck_assert(!notify(c.s.f, 1, true));
	ck_assert(readable(rnic_channel_fd(c.ch)));
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq), 0);
	ck_assert_ptr_eq(cq, c.cq);
	ck_assert(!readable(rnic_channel_fd(c.ch)));
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq), -EAGAIN);
	ck_assert_int_eq(rnic_destroy_channel(c.ch), -EBUSY);
	rnic_ack_cq_events(cq, 1);
	ck_assert_int_eq(rnic_destroy_cq(c.cq), 0);
	ck_assert_int_eq(rnic_destroy_channel(c.ch), 0);
	fake_teardown(&c.s);
}
END_TEST

/* A CQ that fired and was destroyed is not told of, and hints of others behind it are. */
START_TEST(channel__destroyed_cq)
{
	struct chan_set c = chan_setup();
	struct rnic_cq_attr attr = {.cqe = 3, .channel = c.ch};
	struct rnic_cq *two, *cq;

	nonblocking(rnic_channel_fd(c.ch));
	ck_assert_int_eq(rnic_create_cq(c.s.ctx, &attr, &two), 0);
	ck_assert_int_eq(rnic_req_notify_cq(c.cq, 0), 0);
	ck_assert_int_eq(rnic_req_notify_cq(two, 0), 0);
	ck_assert(notify(c.s.f, 1, false));
	ck_assert(notify(c.s.f, 2, false));
	ck_assert_int_eq(rnic_destroy_cq(c.cq), 0);
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq), 0);
	ck_assert_ptr_eq(cq, two);
	rnic_ack_cq_events(two, 1);
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq), -EAGAIN);
	fake_teardown(&c.s);
}
END_TEST

/* Hints were lost: both CQs are found, and the descriptor stays readable for the second. */
START_TEST(channel__lost_hints)
{
	struct chan_set c = chan_setup();
	struct rnic_cq_attr attr = {.cqe = 3, .channel = c.ch};
	struct rnic_cq *two, *cq[2];

	nonblocking(rnic_channel_fd(c.ch));
	ck_assert_int_eq(rnic_create_cq(c.s.ctx, &attr, &two), 0);
	ck_assert_int_eq(rnic_req_notify_cq(c.cq, 0), 0);
	ck_assert_int_eq(rnic_req_notify_cq(two, 0), 0);
	ck_assert(ring_cq_should_notify(c.s.f->cq[1].client, c.s.f->cq[1].daemon, false));
	ck_assert(ring_cq_should_notify(c.s.f->cq[2].client, c.s.f->cq[2].daemon, false));
	ring_channel_lose(&c.s.f->channel[2]);
	ck_assert_int_eq(write(c.s.f->pipe, "", 1), 1);
	for (int i = 0; i < 2; i++) {
		ck_assert(readable(rnic_channel_fd(c.ch)));
		ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq[i]), 0);
		rnic_ack_cq_events(cq[i], 1);
	}
	ck_assert_ptr_ne(cq[0], cq[1]);
	ck_assert(!readable(rnic_channel_fd(c.ch)));
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq[0]), -EAGAIN);
	ck_assert_int_eq(rnic_destroy_cq(two), 0);
	fake_teardown(&c.s);
}
END_TEST

static void *
wait_cq_event(void *arg)
{
	struct chan_set *c = arg;
	struct rnic_cq *cq;
	int rc = rnic_get_cq_event(c->ch, &cq);

	if (rc == 0)
		rnic_ack_cq_events(cq, 1);
	return (void *)(intptr_t)rc;
}

static void *
wait_async(void *arg)
{
	struct fake_set *s = arg;
	struct rnic_async_event ev;

	if (rnic_get_async_event(s->ctx, &ev) || ev.event_type != RNIC_EVENT_DEVICE_FATAL)
		return s;
	return rnic_get_async_event(s->ctx, &ev) == -ENOTCONN ? NULL : s;
}

START_TEST(death__wakes_all)
{
	struct chan_set c = chan_setup();
	pthread_t t[2];
	void *rc[2];

	pthread_create(&t[0], NULL, wait_cq_event, &c);
	pthread_create(&t[1], NULL, wait_async, &c.s);
	fake_die(c.s.f);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], &rc[i]);
	ck_assert_int_eq((int)(intptr_t)rc[0], -ENOTCONN);
	ck_assert_ptr_null(rc[1]);
	ck_assert(readable(rnic_channel_fd(c.ch)));
	ck_assert(readable(rnic_async_fd(c.s.ctx)));
	ck_assert_int_eq(rnic_destroy_cq(c.cq), 0);
	fake_teardown(&c.s);
}
END_TEST

static void
event_push(struct fake *f, uint32_t type, uint32_t object, uint32_t handle)
{
	struct ring_ctrl_event e = {.type = type, .object = object, .handle = handle, .cause = 3};

	fake_push(f, RING_CTRL_EVENT, &e, sizeof(e), -1);
}

START_TEST(async__kinds)
{
	struct fake_set s = fake_setup(2);
	struct rnic_async_event ev;

	nonblocking(rnic_async_fd(s.ctx));
	ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), -EAGAIN);
	event_push(s.f, RNIC_EVENT_QP_FATAL, RING_EVENT_OF_QP, 12345); /* no such QP */
	event_push(s.f, RNIC_EVENT_QP_FATAL, RING_EVENT_OF_QP, s.qp->qp_num);
	event_push(s.f, RNIC_EVENT_CQ_ERR, RING_EVENT_OF_CQ, s.cq->handle);
	event_push(s.f, RNIC_EVENT_PORT_ERR, RING_EVENT_OF_PORT, 1);
	ck_assert(readable(rnic_async_fd(s.ctx)));
	ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), 0);
	ck_assert_uint_eq(ev.event_type, RNIC_EVENT_QP_FATAL);
	ck_assert_ptr_eq(ev.element.qp, s.qp);
	ck_assert_int_eq(ev.cause, 3);
	rnic_ack_async_event(s.ctx, &ev);
	ck_assert(readable(rnic_async_fd(s.ctx))); /* the socket is empty, the queue is not */
	ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), 0);
	ck_assert_ptr_eq(ev.element.cq, s.cq);
	rnic_ack_async_event(s.ctx, &ev);
	ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), 0);
	ck_assert_uint_eq(ev.element.port_num, 1);
	rnic_ack_async_event(s.ctx, &ev);
	ck_assert(!readable(rnic_async_fd(s.ctx)));
	ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), -EAGAIN);
	fake_teardown(&s);
}
END_TEST

static _Atomic int destroyed;

static void *
destroyer(void *arg)
{
	int rc = rnic_destroy_qp(arg);

	atomic_store(&destroyed, 1);
	return (void *)(intptr_t)rc;
}

/* Events not told go with the object; one that was told is waited for. */
START_TEST(async__destroy_waits_for_ack)
{
	struct fake_set s = fake_setup(2);
	struct rnic_async_event ev;
	pthread_t t;
	void *rc;

	nonblocking(rnic_async_fd(s.ctx));
	event_push(s.f, RNIC_EVENT_COMM_EST, RING_EVENT_OF_QP, s.qp->qp_num);
	event_push(s.f, RNIC_EVENT_QP_FATAL, RING_EVENT_OF_QP, s.qp->qp_num);
	event_push(s.f, RNIC_EVENT_GID_CHANGE, RING_EVENT_OF_PORT, 1);
	ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), 0);
	pthread_create(&t, NULL, destroyer, s.qp);
	while (!atomic_load(&s.f->calls[RING_CTRL_DESTROY_QP]))
		sched_yield();
	for (int i = 0; i < 1000; i++)
		sched_yield();
	ck_assert_int_eq(atomic_load(&destroyed), 0);
	rnic_ack_async_event(s.ctx, &ev);
	pthread_join(t, &rc);
	ck_assert_int_eq((int)(intptr_t)rc, 0);
	ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), 0);
	ck_assert_uint_eq(ev.event_type, RNIC_EVENT_GID_CHANGE);
	ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), -EAGAIN);
	fake_teardown(&s);
}
END_TEST

/* An event comes in while another thread's call waits for its reply: nothing is lost. */
START_TEST(async__beside_calls)
{
	struct fake_set s = fake_setup(2);
	struct rnic_async_event ev;
	struct rnic_pd *pd;

	for (int i = 0; i < 50; i++) {
		event_push(s.f, RNIC_EVENT_GID_CHANGE, RING_EVENT_OF_PORT, (uint32_t)i);
		ck_assert_int_eq(rnic_alloc_pd(s.ctx, &pd), 0);
	}
	for (uint32_t i = 0; i < 50; i++) {
		ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), 0);
		ck_assert_uint_eq(ev.element.port_num, i);
	}
	fake_teardown(&s);
}
END_TEST

static void *
late_completion(void *arg)
{
	struct chan_set *c = arg;

	/* armed: the waiter has looked once before, or will look again */
	while (!(atomic_load(&c->s.f->cq[1].client->armed) & 3))
		sched_yield();
	fake_done(c->s.f, 1, 0, 1, 0, 0);
	ring_fence();
	notify(c->s.f, 1, false);
	return NULL;
}

START_TEST(wait_cq__wakes)
{
	struct chan_set c = chan_setup();
	struct rnic_send_wr wr = {.wr_id = 77, .opcode = RNIC_WR_SEND};
	struct rnic_wc wc;
	struct rnic_qp *qp;
	pthread_t t;

	c.s.cq = c.cq;
	qp = fake_qp_in(&c.s, RNIC_QPT_RC, NULL);
	ck_assert_int_eq(rnic_wait_cq(c.cq, 1, &wc, 0), 0);
	ck_assert_int_eq(rnic_post_send(qp, &wr, NULL), 0);
	pthread_create(&t, NULL, late_completion, &c);
	ck_assert_int_eq(rnic_wait_cq(c.cq, 1, &wc, -1), 1);
	ck_assert_uint_eq(wc.wr_id, 77);
	pthread_join(t, NULL);
	ck_assert_int_eq(rnic_wait_cq(c.cq, 1, &wc, 1), 0);
	fake_teardown(&c.s);
}
END_TEST

/* A byte that stands for nothing, as behind a CQ that was destroyed: the time goes on. */
START_TEST(wait_cq__time_over_after_lost_byte)
{
	struct chan_set c = chan_setup();
	struct rnic_wc wc;

	ck_assert_int_eq(write(c.s.f->pipe, "", 1), 1);
	ck_assert_int_eq(rnic_wait_cq(c.cq, 1, &wc, 10), 0);
	ck_assert(!readable(rnic_channel_fd(c.ch)));
	fake_teardown(&c.s);
}
END_TEST

/* What a look at all told of is not told again by the hints that were left in other subs. */
START_TEST(channel__stale_hints)
{
	struct chan_set c = chan_setup();
	struct rnic_cq *cq;

	nonblocking(rnic_channel_fd(c.ch));
	ring_channel_lose(&c.s.f->channel[0]);
	ck_assert_int_eq(rnic_req_notify_cq(c.cq, 0), 0);
	ck_assert(ring_cq_should_notify(c.s.f->cq[1].client, c.s.f->cq[1].daemon, false));
	ring_channel_push(&c.s.f->channel[1], FAKE_CQN(1));
	ck_assert_int_eq(write(c.s.f->pipe, "xx", 2), 2);
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq), 0);
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq), -EAGAIN);
	rnic_ack_cq_events(c.cq, 1);
	/* armed and answered twice before anybody looked: two events, as ever */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(rnic_req_notify_cq(c.cq, 0), 0);
		ck_assert(notify(c.s.f, 1, false));
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq), 0);
	ck_assert_int_eq(rnic_get_cq_event(c.ch, &cq), -EAGAIN);
	rnic_ack_cq_events(c.cq, 2);
	fake_teardown(&c.s);
}
END_TEST

UNIT_MAIN("client_event", channel__one_event_an_arming, channel__bytes_in_one_write,
	channel__destroyed_cq, channel__lost_hints,
	death__wakes_all, async__kinds, async__destroy_waits_for_ack, async__beside_calls,
	wait_cq__wakes, wait_cq__time_over_after_lost_byte, channel__stale_hints)
