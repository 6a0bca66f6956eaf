/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues through the socket: made, used, resized, their limits and their ends. */
#include "ctl_objects.h"

#define WR 8u
#define MEM (256u << 10)

/** A queue as its client has it, and what was made with it. */
struct shared {
	uint32_t pd, n;
	struct ring_ctrl_create_srq_rep q;
	uint32_t log_index;
	ring_loc_t index, slots;
	uint32_t tail;
	uint8_t *mem;
	struct ring_ctrl_reg_mr_rep mr;
};

static int
create(uint32_t pd, uint32_t max_wr, uint32_t max_sge, struct ring_ctrl_create_srq_rep *rep)
{
	struct ring_ctrl_create_srq_req req = {
		.pd = pd,
		.max_wr = max_wr,
		.max_sge = max_sge,
		.xrcd = RING_NO_HANDLE,
		.cqn = RING_NO_HANDLE,
		.user_handle = 99,
	};

	return fx_call(&cl, RING_CTRL_CREATE_SRQ, &req, rep);
}

static void
make_srq(struct shared *s, uint32_t max_wr)
{
	memset(s, 0, sizeof(*s));
	s->pd = make_pd();
	ck_assert_int_eq(create(s->pd, max_wr, 2, &s->q), 0);
	s->log_index = s->q.log_index;
	s->index = s->q.index;
	s->slots = s->q.slots;
	s->mem = make_mem(MEM);
	ck_assert_int_eq(reg_mr(s->pd, s->mem, MEM, RING_ACCESS_LOCAL_WRITE, &s->mr), 0);
}

static void
post_len(struct shared *s, uint32_t entry, uint32_t len)
{
	uint32_t *index = fx_ptr(&cl, s->index);
	struct ring_rwqe *r = (struct ring_rwqe *)fx_ptr(&cl, s->slots) + entry * s->q.slots_per_wr;
	struct ring_srq_client *words = fx_ptr(&cl, s->q.client);

	*r = (struct ring_rwqe){.num_slots = 1, .num_sge = 1};
	r->sge[0] = (struct ring_sge){(uintptr_t)s->mem + entry * 256, len, s->mr.lkey};
	index[s->tail & ((1u << s->log_index) - 1)] = entry;
	atomic_store(&words->tail, ++s->tail);
}

/** Post this entry: 256 bytes at its own place of the memory. */
static void
post(struct shared *s, uint32_t entry)
{
	post_len(s, entry, 256);
}

static uint32_t
head(const struct shared *s)
{
	struct ring_srq_daemon *words = fx_ptr(&cl, s->q.daemon);

	return atomic_load(&words->head);
}

static int
modify_srq(const struct shared *s, uint32_t mask, uint32_t max_wr, uint32_t limit,
	struct ring_ctrl_modify_srq_rep *rep)
{
	struct ring_ctrl_modify_srq_req req = {s->q.srqn, mask, max_wr, limit};

	return fx_call(&cl, RING_CTRL_MODIFY_SRQ, &req, rep);
}

static struct ring_ctrl_query_srq_rep
query(const struct shared *s)
{
	struct ring_ctrl_handle_req req = {.handle = s->q.srqn};
	struct ring_ctrl_query_srq_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_SRQ, &req, &rep), 0);
	return rep;
}

/** A QP of the queue, on a CQ of that vector. */
static uint32_t
make_user(const struct shared *s, uint32_t vector, struct ring_ctrl_create_cq_rep *cq,
	struct ring_ctrl_create_qp_rep *qp)
{
	struct ring_ctrl_create_cq_req cr = {
		.entries = 64, .channel = RING_NO_HANDLE, .comp_vector = vector};
	struct ring_ctrl_create_qp_req req = {
		.type = RING_QPT_RC, .pd = s->pd, .srqn = s->q.srqn, .xrcd = RING_NO_HANDLE,
		.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1,
		.max_inline = 32, .user_handle = 77,
	};

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CQ, &cr, cq), 0);
	req.send_cq = req.recv_cq = cq->cqn;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &req, qp), 0);
	return qp->qpn;
}

/** Two QPs of one CQ, joined, both on the queue. */
static void
make_users(const struct shared *s, struct pair *p)
{
	struct ring_ctrl_create_qp_req req = {
		.type = RING_QPT_RC, .pd = s->pd, .srqn = s->q.srqn, .xrcd = RING_NO_HANDLE,
		.max_send_wr = 16, .max_send_sge = 1, .max_inline = 32,
	};

	p->pd = s->pd;
	p->qpn[0] = make_user(s, 0, &p->cq, &p->qp[0]);
	p->cqn = req.send_cq = req.recv_cq = p->cq.cqn;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_QP, &req, &p->qp[1]), 0);
	p->qpn[1] = p->qp[1].qpn;
	connect_pair(p);
}

static void
send_hello(struct pair *p, int i, uint32_t index)
{
	struct ring_wqe w = {.opcode = RING_WR_SEND, .flags = RING_WR_INLINE, .num_slots = 1,
		.inline_len = 5};

	memcpy(w.data, "hello", 5);
	post_send(p, i, index, &w);
}

/** The next event, which must be the queue's. */
static void
wait_event(const struct shared *s, uint32_t n, uint32_t type)
{
	while (cl.num_events < n) {
		fx_step();
		fx_recv(&cl);
	}
	ck_assert_uint_eq(cl.num_events, n);
	ck_assert_uint_eq(cl.event.type, type);
	ck_assert_uint_eq(cl.event.object, RING_EVENT_OF_SRQ);
	ck_assert_uint_eq(cl.event.handle, s->q.srqn);
	ck_assert_uint_eq(cl.event.user_handle, 99);
}

static void
no_event(uint32_t n)
{
	for (int i = 0; i < 50; i++) {
		fx_step();
		fx_recv(&cl);
	}
	ck_assert_uint_eq(cl.num_events, n);
}

START_TEST(create__sizes)
{
	static const struct {
		uint32_t max_wr, max_sge;
		int err;
	} t[] = {
		{1, 0, 0}, {1, 1, 0}, {3, 3, 0}, {5, 4, 0}, {17, RING_MAX_SGE, 0},
		{CTL_MAX_SRQ_WR, 1, 0}, {0, 1, -EINVAL}, {CTL_MAX_SRQ_WR + 1, 1, -EINVAL},
		{UINT32_MAX, 1, -EINVAL}, {1, RING_MAX_SGE + 1, -EINVAL}, {1, UINT32_MAX, -EINVAL},
	};
	struct ring_ctrl_create_srq_rep r;
	uint32_t pd = make_pd();

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		ck_assert_int_eq(create(pd, t[i].max_wr, t[i].max_sge, &r), t[i].err);
		if (t[i].err != 0)
			continue;
		ck_assert_uint_eq(r.max_wr, t[i].max_wr);
		ck_assert_uint_ge(r.max_sge, t[i].max_sge);
		ck_assert_uint_ge(1u << r.log_index, r.max_wr);
		ck_assert_uint_eq(r.slots_per_wr, ring_rwqe_slots(r.max_sge));
		ck_assert_uint_lt(r.srqn, 1u << 24);
		fx_ptr(&cl, r.slots + (uint64_t)r.max_wr * r.slots_per_wr * RING_SLOT_SIZE - 1);
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_SRQ, r.srqn), 0);
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_SRQ, r.srqn), -EINVAL);
	}
	ck_assert_int_eq(create(pd + 1, 1, 1, &r), -EINVAL);
	ck_assert_uint_eq(roce_qpn_count(fx_dev->sh.srqns), 0);
}
END_TEST

START_TEST(create__quota)
{
	struct roce_qpn_table *full = roce_qpn_table_create(16), *all = fx_dev->sh.srqns;
	struct ring_ctrl_create_srq_rep r;
	uint32_t pd = make_pd();

	ck_assert_uint_eq(cl.hello.quota_srq, fx_dev->cfg.quota_srqs);
	ck_assert_int_eq(create(pd, 1, 1, &r), 0);
	while (roce_qpn_alloc(full) != 0)
		;
	fx_dev->sh.srqns = full;
	ck_assert_int_eq(create(pd, 1, 1, &r), -ENOMEM);
	fx_dev->cfg.quota_srqs = 1;
	ck_assert_int_eq(create(pd, 1, 1, &r), -EDQUOT);
	fx_dev->sh.srqns = all;
	ck_assert_int_eq(create(pd, 1, 1, &r), -EDQUOT);
	roce_qpn_table_free(full);
}
END_TEST

/* Two QPs take from it in the order of the index; a completion names the entry. */
START_TEST(send__entries_of_one_queue)
{
	const struct ring_cqe *e;
	struct shared s;
	struct pair p;

	make_srq(&s, WR);
	make_users(&s, &p);
	ck_assert_uint_eq(p.qp[0].max_recv_wr, 0);
	ck_assert_uint_eq(p.qp[0].rq, RING_NO_LOC);
	for (uint32_t i = 0; i < 6; i++)
		post(&s, i * 3 % WR);
	for (uint32_t i = 0; i < 6; i++) {
		send_hello(&p, (int)(i % 2), i / 2);
		e = wait_cqes(&p, i + 1);
		ck_assert_uint_eq(e->qpn_status, p.qpn[1 - i % 2]); /* status 0 */
		ck_assert_uint_eq(e->wqe_index, i * 3 % WR);
		ck_assert_mem_eq(s.mem + i * 3 % WR * 256, "hello", 5);
	}
	ck_assert_uint_eq(head(&s), 6);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_SRQ, s.q.srqn), -EBUSY);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p.qpn[0]), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_SRQ, s.q.srqn), -EBUSY);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p.qpn[1]), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, s.mr.lkey), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, s.pd), -EBUSY);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_SRQ, s.q.srqn), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, s.pd), 0);
}
END_TEST

/* Its QPs go to its home, whatever their CQs prefer. */
START_TEST(home__of_the_first_qp)
{
	struct ring_ctrl_create_cq_rep cq;
	struct ring_ctrl_create_qp_rep qp;
	struct ring_ctrl_query_qp_rep q;
	struct shared s;

	make_srq(&s, WR);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t qpn = make_user(&s, 1 - i % 2, &cq, &qp);
		struct ring_ctrl_handle_req req = {.handle = qpn};
		struct ring_ctrl_qp_attr a = rtr_attr(qpn, 1);

		ck_assert_int_eq(to_init(qpn), 0);
		ck_assert_int_eq(modify(qpn, RTR_MASK, &a, NULL), 0);
		ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &req, &q), 0);
		ck_assert_uint_eq(q.worker, 1);
	}
}
END_TEST

START_TEST(limit__once_an_arming)
{
	struct ring_ctrl_modify_srq_rep r;
	struct shared s;
	struct pair p;

	make_srq(&s, WR);
	make_users(&s, &p);
	for (uint32_t i = 0; i < 6; i++)
		post(&s, i);
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_LIMIT, 0, 5, &r), 0);
	ck_assert_uint_eq(query(&s).limit, 5);
	send_hello(&p, 0, 0);
	wait_cqes(&p, 1);
	no_event(0);
	send_hello(&p, 0, 1);
	wait_cqes(&p, 2);
	wait_event(&s, 1, RING_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_uint_eq(query(&s).limit, 0);
	send_hello(&p, 0, 2);
	wait_cqes(&p, 3);
	no_event(1);
	/* three are left: told at once, and armed no more */
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_LIMIT, 0, 4, &r), 0);
	wait_event(&s, 2, RING_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_uint_eq(query(&s).limit, 0);
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_LIMIT, 0, 3, &r), 0);
	no_event(2);
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_LIMIT, 0, 0, &r), 0);
	send_hello(&p, 0, 3);
	wait_cqes(&p, 4);
	no_event(2);
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_LIMIT, 0, WR + 1, &r), -EINVAL);
	ck_assert_int_eq(modify_srq(&s, 4, 0, 0, &r), -EINVAL);
}
END_TEST

/* An incredible tail: the queue is dead, and so is each QP that would take from it. */
START_TEST(broken__event_and_qps)
{
	struct ring_srq_client *words;
	struct ring_ctrl_modify_srq_rep r;
	struct shared s;
	struct pair p;
	uint32_t seen = 0;

	make_srq(&s, WR);
	make_users(&s, &p);
	words = fx_ptr(&cl, s.q.client);
	atomic_store(&words->tail, WR + 1000);
	send_hello(&p, 0, 0);
	for (uint32_t n = 0; seen != 3;) {
		fx_step();
		fx_recv(&cl);
		if (cl.num_events == n)
			continue;
		n = cl.num_events;
		if (cl.event.object == RING_EVENT_OF_SRQ) {
			ck_assert_uint_eq(cl.event.type, RING_EVENT_SRQ_ERR);
			ck_assert_int_eq(cl.event.cause, -EBADMSG);
			seen |= 1;
		} else {
			seen |= cl.event.handle == p.qpn[1] ? 2 : 0;
		}
	}
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_MAX_WR, 2 * WR, 0, &r), -EINVAL);
	ck_assert_uint_eq(query(&s).max_wr, WR);
}
END_TEST

/* B157, B158. What is posted stays; the rest of the queue's life is at the new place. */
START_TEST(resize__with_entries_posted)
{
	struct ring_ctrl_modify_srq_rep r;
	struct shared s;
	struct pair p;

	make_srq(&s, WR);
	make_users(&s, &p);
	for (uint32_t i = 0; i < WR; i++)
		post(&s, i);
	for (uint32_t i = 0; i < 3; i++)
		send_hello(&p, 0, i);
	wait_cqes(&p, 3);
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_MAX_WR, 4, 0, &r), -EINVAL); /* 5 are posted */
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_MAX_WR, 0, 0, &r), -EINVAL);
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_MAX_WR, CTL_MAX_SRQ_WR + 1, 0, &r), -EINVAL);
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_MAX_WR | RING_SRQ_LIMIT, 20, 21, &r), -EINVAL);
	ck_assert_uint_eq(query(&s).max_wr, WR);
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_MAX_WR | RING_SRQ_LIMIT, 20, 4, &r), 0);
	ck_assert_uint_eq(r.max_wr, 20);
	ck_assert_uint_eq(r.entries, 20);
	ck_assert_uint_eq(r.log_index, 5);
	ck_assert(r.index != s.index);
	memset(fx_ptr(&cl, s.slots), 0xff, WR * RING_SLOT_SIZE); /* nobody's any more */
	s.index = r.index;
	s.slots = r.slots;
	s.log_index = r.log_index;
	post(&s, 19);
	for (uint32_t i = 3; i < WR + 1; i++) {
		send_hello(&p, 0, i);
		ck_assert_uint_eq(wait_cqes(&p, i + 1)->wqe_index, i < WR ? i : 19);
	}
	wait_event(&s, 1, RING_EVENT_SRQ_LIMIT_REACHED);
	ck_assert_uint_eq(query(&s).max_wr, 20);
	/* a smaller one moves nothing */
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_MAX_WR, 2, 0, &r), 0);
	ck_assert_uint_eq(r.max_wr, 2);
	ck_assert_uint_eq(r.entries, 20);
	ck_assert_uint_eq(r.index, s.index);
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_MAX_WR, 20, 0, &r), 0);
	ck_assert_uint_eq(r.index, s.index);
}
END_TEST

/* Another change, and the end, wait for nothing: they are refused, or the client is gone. */
START_TEST(resize__one_at_a_time)
{
	struct ring_ctrl_modify_srq_req req = {.mask = RING_SRQ_MAX_WR, .max_wr = 64};
	struct ring_ctrl_modify_srq_rep r;
	struct shared s;
	uint32_t id;

	make_srq(&s, WR);
	req.srqn = s.q.srqn;
	id = cl.next_id + 1;
	cl.next_id += 2;
	fx_send(&cl, RING_CTRL_MODIFY_SRQ, id, &req, 1);
	fx_send(&cl, RING_CTRL_MODIFY_SRQ, id + 1, &req, 1);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_SRQ, s.q.srqn), -EBUSY);
	while (query(&s).max_wr != 64)
		;
	ck_assert_int_eq(modify_srq(&s, RING_SRQ_MAX_WR, 65, 0, &r), 0);
	req.max_wr = 128;
	fx_send(&cl, RING_CTRL_MODIFY_SRQ, ++cl.next_id, &req, 1);
	worker_ctl_poll(fx_dev, 0);
}
END_TEST

/* A message has begun to fill a receive when its client dies: teardown finds all gone. */
START_TEST(client_dies__receive_in_use)
{
	struct ring_wqe w = {.opcode = RING_WR_SEND, .num_slots = 1, .num_sge = 1};
	struct shared s;
	struct pair p;

	make_srq(&s, WR);
	make_users(&s, &p);
	post_len(&s, 0, MEM);
	post(&s, 1);
	w.sge[0] = (struct ring_sge){(uintptr_t)s.mem, MEM, s.mr.lkey};
	post_send(&p, 0, 0, &w);
	while (head(&s) == 0)
		fx_step();
	ck_assert_uint_eq(head(&s), 1);
}
END_TEST

/* LAST_WQE_REACHED, once, when a QP of the queue goes to ERR; what is posted stays (B084). */
START_TEST(error__last_wqe_reached)
{
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_ERR};
	struct shared s;
	struct pair p;

	make_srq(&s, WR);
	make_users(&s, &p);
	post(&s, 0);
	ck_assert_int_eq(modify(p.qpn[1], RING_QP_STATE, &a, NULL), 0);
	while (cl.num_events == 0) {
		fx_step();
		fx_recv(&cl);
	}
	ck_assert_uint_eq(cl.event.type, RING_EVENT_QP_LAST_WQE_REACHED);
	ck_assert_uint_eq(cl.event.handle, p.qpn[1]);
	ck_assert_int_eq(modify(p.qpn[1], RING_QP_STATE, &a, NULL), 0);
	no_event(1);
	ck_assert_uint_eq(head(&s), 0);
}
END_TEST

FX_MAIN("ctl_srq", setup, teardown, create__sizes, create__quota, send__entries_of_one_queue,
	home__of_the_first_qp, limit__once_an_arming, broken__event_and_qps,
	resize__with_entries_posted, resize__one_at_a_time, client_dies__receive_in_use,
	error__last_wqe_reached)
