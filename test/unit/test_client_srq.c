/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues of the library: another size, daemons that lie, threads. */
#include <fcntl.h>

#include "client_fake.h"
#include "unit.h"

static struct rnic_srq *
make_srq(struct fake_set *s)
{
	struct rnic_srq_init_attr attr = {.attr = {4, 5, 0}};
	struct rnic_srq *srq;

	ck_assert_int_eq(rnic_create_srq(s->pd, &attr, &srq), 0);
	ck_assert_uint_eq(attr.attr.max_wr, 4);
	return srq;
}

static int
post(struct rnic_srq *srq, uint64_t id)
{
	struct rnic_recv_wr wr = {.wr_id = id};

	return rnic_post_srq_recv(srq, &wr, NULL);
}

static int
resize(struct rnic_srq *srq, uint32_t max_wr)
{
	struct rnic_srq_attr attr = {.max_wr = max_wr};

	return rnic_modify_srq(srq, &attr, RNIC_SRQ_MAX_WR);
}

/** The daemon takes the next one and completes it. */
static void
take(struct fake *f)
{
	uint32_t head = atomic_fetch_add(&f->srq.daemon->head, 1);

	ck_assert(fake_done(f, 0, 0, 1, f->srq.index[head & ((1u << f->srq.log_index) - 1)],
		RING_CQE_RECV));
}

START_TEST(resize__larger_and_smaller)
{
	struct fake_set s = fake_setup(2);
	struct rnic_srq *srq = make_srq(&s);
	struct rnic_wc wc;
	uint64_t id = 0, next = 0;

	fake_qp_in(&s, RNIC_QPT_RC, srq);
	while (post(srq, id) == 0)
		id++;
	ck_assert_uint_eq(id, 4);
	take(s.f);
	ck_assert_int_eq(resize(srq, 7), 0); /* B158 */
	while (post(srq, id) == 0)
		id++;
	ck_assert_uint_eq(id, 7); /* the one that was taken is not polled yet */
	for (; next < 7; next++) {
		if (next > 0)
			take(s.f);
		ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
		ck_assert_uint_eq(wc.wr_id, next);
	}
	ck_assert_int_eq(resize(srq, 2), 0);
	ck_assert_int_eq(post(srq, 1), 0);
	ck_assert_int_eq(post(srq, 2), 0);
	ck_assert_int_eq(post(srq, 3), -ENOMEM);
	ck_assert_int_eq(resize(srq, 7), 0);
	ck_assert_int_eq(post(srq, 3), 0);
	ck_assert_uint_eq(rnic_stale_completions(s.ctx), 0);
	fake_teardown(&s);
}
END_TEST

/* B157: refused, it is as before; and can be asked again. */
START_TEST(resize__refused)
{
	struct fake_set s = fake_setup(2);
	struct rnic_srq *srq = make_srq(&s);
	struct rnic_srq_attr attr = {.srq_limit = 1};

	ck_assert_int_eq(resize(srq, 0), -EINVAL);
	ck_assert_int_eq(resize(srq, 0), -EINVAL);
	ck_assert_int_eq(resize(srq, UINT32_MAX), -EINVAL);
	ck_assert_int_eq(rnic_modify_srq(srq, &attr, RNIC_SRQ_LIMIT), 0);
	for (uint64_t i = 0; i < 4; i++)
		ck_assert_int_eq(post(srq, i), 0);
	ck_assert_int_eq(post(srq, 4), -ENOMEM);
	fake_teardown(&s);
}
END_TEST

/* Places that are none, fewer entries than there were, more than were asked for. */
static int
lie(struct fake *f, struct ring_ctrl_hdr *h, int len)
{
	struct ring_ctrl_modify_srq_rep *r = ring_ctrl_body(h);

	if (h->op != RING_CTRL_MODIFY_SRQ)
		return len;
	switch (f->arg) {
	case 0:
		r->index = RING_NO_LOC;
		break;
	case 1:
		r->slots = RING_LOC(1, 0); /* the daemon's arena */
		break;
	case 2:
		r->entries = 3;
		break;
	case 3:
		r->entries = 9;
		break;
	case 4:
		r->log_index = 2;
		break;
	case 5:
		r->log_index = 200;
		break;
	default:
		r->max_wr = 9;
	}
	return len;
}

START_TEST(resize__lies)
{
	for (uint32_t i = 0; i < 7; i++) {
		struct fake_set s = fake_setup(2);
		struct rnic_srq *srq = make_srq(&s);

		s.f->arg = i;
		s.f->spoil = lie;
		ck_assert_int_eq(resize(srq, 8), -EPROTO);
		ck_assert_int_eq(post(srq, 0), -ENOTCONN);
		fake_teardown(&s);
	}
}
END_TEST

/* A thread posts, one polls, one changes the size all the while. */
#define TOTAL 3000

struct crowd {
	struct fake_set s;
	struct rnic_srq *srq;
	pthread_mutex_t daemon; /* who takes, and who moves what is taken from */
	_Atomic uint32_t polled;
	_Atomic bool failed;
};

static void *
poster(void *arg)
{
	struct crowd *c = arg;

	for (uint64_t id = 0; id < TOTAL;) {
		int rc = post(c->srq, id);

		if (rc == 0)
			id++;
		else if (rc == -ENOMEM)
			sched_yield();
		else
			break;
	}
	return NULL;
}

static void *
resizer(void *arg)
{
	struct crowd *c = arg;

	for (uint32_t i = 5; i < 40; i++) {
		pthread_mutex_lock(&c->daemon);
		if (resize(c->srq, i) != 0 || resize(c->srq, i - 1) != 0 ||
			resize(c->srq, i) != 0)
			atomic_store(&c->failed, true);
		pthread_mutex_unlock(&c->daemon);
		sched_yield();
	}
	return NULL;
}

START_TEST(resize__beside_others)
{
	struct crowd c = {.s = fake_setup(2)};
	pthread_t id[2];
	uint64_t next = 0;

	c.srq = make_srq(&c.s);
	pthread_mutex_init(&c.daemon, NULL);
	fake_qp_in(&c.s, RNIC_QPT_RC, c.srq);
	ck_assert_int_eq(pthread_create(&id[0], NULL, poster, &c), 0);
	ck_assert_int_eq(pthread_create(&id[1], NULL, resizer, &c), 0);
	while (next < TOTAL) {
		struct fake_srq *f = &c.s.f->srq;
		struct rnic_wc wc;

		pthread_mutex_lock(&c.daemon);
		if (atomic_load_explicit(&f->client->tail, memory_order_acquire) !=
			atomic_load(&f->daemon->head))
			take(c.s.f);
		pthread_mutex_unlock(&c.daemon);
		if (rnic_poll_cq(c.s.cq, 1, &wc) == 1) {
			ck_assert_uint_eq(wc.wr_id, next);
			next++;
		}
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(id[i], NULL), 0);
	ck_assert(!atomic_load(&c.failed));
	ck_assert_uint_eq(rnic_stale_completions(c.s.ctx), 0);
	fake_teardown(&c.s);
}
END_TEST

/* A completion of an XRC SRQ names it, whoever's the QP is; the CQ stays while it has one. */
START_TEST(xrc__completions)
{
	struct fake_set s = fake_setup(2);
	struct rnic_srq_init_attr attr = {.attr = {4, 5, 0}, .cq = s.cq};
	struct ring_cqe e = {.qpn_status = 0x777777, .byte_len = 9,
		.src_opcode = 128u << 24 | FAKE_SRQN};
	struct rnic_srq *srq;
	struct rnic_wc wc;

	ck_assert_int_eq(rnic_open_xrcd(s.ctx, -1, O_CREAT, &attr.xrcd), 0);
	ck_assert_int_eq(rnic_open_xrcd(s.ctx, -1, O_TRUNC, &attr.xrcd), -EINVAL);
	ck_assert_int_eq(rnic_open_xrcd(s.ctx, 1 << 20, O_CREAT, &attr.xrcd), -EBADF);
	ck_assert_int_eq(rnic_create_srq(s.pd, &attr, &srq), 0);
	for (uint64_t i = 0; i < 4; i++)
		ck_assert_int_eq(post(srq, 10 + i), 0);
	e.wqe_index = s.f->srq.index[2];
	ck_assert(fake_cqe(s.f, 0, 0, &e, RING_CQE_RECV | RING_CQE_XRC));
	e.src_opcode = FAKE_SRQN; /* an error's; the second of the same entry */
	e.qpn_status |= 5u << 24;
	ck_assert(fake_cqe(s.f, 0, 0, &e, RING_CQE_RECV | RING_CQE_XRC));
	e.wqe_index = s.f->srq.index[0];
	ck_assert(fake_cqe(s.f, 0, 0, &e, RING_CQE_RECV | RING_CQE_XRC));
	e.src_opcode = FAKE_SRQN + 1; /* of none that is known */
	ck_assert(fake_cqe(s.f, 0, 0, &e, RING_CQE_RECV | RING_CQE_XRC));
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 12);
	ck_assert_ptr_eq(wc.srq, srq);
	ck_assert_ptr_null(wc.qp);
	ck_assert_uint_eq(wc.qp_num, 0x777777);
	ck_assert_uint_eq(wc.opcode, RNIC_WC_RECV);
	ck_assert_uint_eq(wc.src_qp, 0);
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 10);
	ck_assert_uint_eq(wc.status, RNIC_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 0);
	ck_assert_uint_eq(rnic_stale_completions(s.ctx), 2);
	ck_assert_int_eq(rnic_destroy_qp(s.qp), 0);
	ck_assert_int_eq(rnic_destroy_cq(s.cq), -EBUSY);
	ck_assert_int_eq(rnic_destroy_srq(srq), 0);
	ck_assert_int_eq(rnic_destroy_cq(s.cq), 0);
	fake_teardown(&s);
}
END_TEST

/* What each end of XRC posts: requests that name an SRQ, or nothing. */
START_TEST(xrc__ends)
{
	struct fake_set s = fake_setup(2);
	struct rnic_send_wr wr = {.opcode = RNIC_WR_SEND, .srqn = 0x4321};
	struct rnic_recv_wr rwr = {.wr_id = 1};
	struct rnic_qp_init_attr attr = {.qp_type = RNIC_QPT_XRC_RECV};
	struct rnic_qp *send, *recv;
	const struct ring_wqe *w;

	send = fake_qp_in(&s, RNIC_QPT_XRC_SEND, NULL);
	ck_assert_ptr_null(send->recv_cq);
	ck_assert_int_eq(rnic_post_send(send, &wr, NULL), 0);
	w = (const void *)s.f->qp[1].sq.slots;
	ck_assert_uint_eq(w->srqn, 0x4321);
	ck_assert_int_eq(rnic_create_qp(NULL, &attr, &recv), -EINVAL); /* without a domain */
	ck_assert_int_eq(rnic_open_xrcd(s.ctx, 0, O_CREAT, &attr.xrcd), 0);
	ck_assert_int_eq(rnic_create_qp(NULL, &attr, &recv), 0);
	fake_to_state(recv, RNIC_QPS_RTS);
	ck_assert_int_eq(rnic_post_send(recv, &wr, NULL), -EINVAL);
	ck_assert_int_eq(rnic_post_recv(recv, &rwr, NULL), -EINVAL);
	ck_assert_ptr_null(rnic_sq_get(recv, 1, 1));
	fake_to_state(recv, RNIC_QPS_RESET);
	ck_assert_int_eq(rnic_destroy_qp(recv), 0);
	ck_assert_int_eq(rnic_open_qp(attr.xrcd, 0x5555, NULL, &recv), 0);
	ck_assert_uint_eq(recv->qp_num, 0x5555);
	ck_assert_int_eq(rnic_destroy_qp(recv), 0);
	ck_assert_int_eq(rnic_close_xrcd(attr.xrcd), 0);
	fake_teardown(&s);
}
END_TEST

UNIT_MAIN("client_srq", resize__larger_and_smaller, resize__refused, resize__lies,
	resize__beside_others, xrc__completions, xrc__ends)
