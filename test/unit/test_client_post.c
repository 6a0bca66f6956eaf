/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: what lies in the slots, limits, lists that fail midway, bells and kicks. */
#include "client_fake.h"
#include "client_priv.h"

static struct rnic_sge sges[16];
static uint8_t bytes[256];

static struct rnic_send_wr
send_wr(uint64_t id, int num_sge)
{
	struct rnic_send_wr wr = {
		.wr_id = id,
		.sg_list = sges,
		.num_sge = num_sge,
		.opcode = RNIC_WR_SEND,
		.send_flags = RNIC_SEND_SIGNALED,
	};

	for (uint32_t i = 0; i < 16; i++)
		sges[i] = (struct rnic_sge){.addr = 0x1000 + i, .length = i + 1, .lkey = 77 + i};
	return wr;
}

/* Take the next request as a worker does; its slots in a row. */
static int
take(struct fake_set *s, uint8_t *dst)
{
	struct ring_wq_cons *q = &s->f->qp[0].sq;

	ck_assert_int_ge(ring_wq_poll(q), 0);
	return ring_wq_take(q, offsetof(struct ring_wqe, num_slots), dst);
}

START_TEST(send__fields)
{
	struct fake_set s = fake_setup(4);
	struct rnic_send_wr wr = send_wr(9, 2);
	struct ring_wqe w;

	wr.opcode = RNIC_WR_SEND_WITH_IMM;
	wr.imm_data = 0xaabbccdd;
	wr.send_flags |= RNIC_SEND_SOLICITED | RNIC_SEND_FENCE;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_int_eq(take(&s, (uint8_t *)&w), 1);
	ck_assert_uint_eq(w.opcode, RING_WR_SEND_WITH_IMM);
	ck_assert_uint_eq(w.flags, RING_WR_SIGNALED | RING_WR_SOLICITED | RING_WR_FENCE);
	ck_assert_uint_eq(w.num_sge, 2);
	ck_assert_uint_eq(w.imm, 0xaabbccdd);
	ck_assert_uint_eq(w.sge[1].addr, 0x1001);
	ck_assert_uint_eq(w.sge[1].length, 2);
	ck_assert_uint_eq(w.sge[1].lkey, 78);
	fake_teardown(&s);
}
END_TEST

START_TEST(send__atomic_flush_bind_fast_reg_inv)
{
	struct fake_set s = fake_setup(4);
	struct rnic_send_wr wr = send_wr(1, 1);
	struct rnic_mw *mw;
	struct rnic_mr *mr;
	struct ring_wqe w;

	wr.opcode = RNIC_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.remote_addr = 0x11;
	wr.wr.atomic.compare_add = 0x22;
	wr.wr.atomic.swap = 0x33;
	wr.wr.atomic.rkey = 0x44;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_int_eq(take(&s, (uint8_t *)&w), 1);
	ck_assert_uint_eq(w.remote_addr, 0x11);
	ck_assert_uint_eq(w.atomic.compare_add, 0x22);
	ck_assert_uint_eq(w.atomic.swap, 0x33);
	ck_assert_uint_eq(w.rkey, 0x44);
	ck_assert_uint_eq(w.atomic.sge.lkey, 77);
	wr.num_sge = 2;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), -EINVAL);

	wr = send_wr(2, 0);
	wr.opcode = RNIC_WR_FLUSH;
	wr.wr.flush.length = 4096;
	wr.wr.flush.type = 2;
	wr.wr.flush.level = 1;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_int_eq(take(&s, (uint8_t *)&w), 1);
	ck_assert_uint_eq(w.flush, 2 | 1 << 4);
	ck_assert_uint_eq(w.flush_len, 4096);

	ck_assert_int_eq(rnic_reg_mr(s.pd, bytes, sizeof(bytes), 0, &mr), 0);
	ck_assert_int_eq(rnic_alloc_mw(s.pd, RNIC_MW_TYPE_1, &mw), 0);
	wr.opcode = RNIC_WR_BIND_MW;
	wr.wr.bind_mw.mw = mw;
	wr.wr.bind_mw.mr = mr;
	wr.wr.bind_mw.addr = 0x77;
	wr.wr.bind_mw.length = 8;
	wr.wr.bind_mw.access = RNIC_ACCESS_REMOTE_READ;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), -EINVAL); /* type 1: bind_mw */
	uint32_t key = mw->rkey;
	ck_assert_uint_eq(key & 0xff, 0xff);
	ck_assert_int_eq(rnic_bind_mw(s.qp, mw, &wr), 0);
	ck_assert_uint_eq(mw->rkey, key & ~0xffu); /* the variant wraps, the index stays */
	ck_assert_int_eq(take(&s, (uint8_t *)&w), 1);
	ck_assert_uint_eq(w.bind.mw_key, key);
	ck_assert_uint_eq(w.rkey, mw->rkey);
	ck_assert_uint_eq(w.bind.mr_lkey, mr->lkey);
	ck_assert_uint_eq(w.remote_addr, 0x77);

	wr = send_wr(3, 0);
	wr.opcode = RNIC_WR_FAST_REG;
	wr.wr.fast_reg.iova = 5;
	wr.wr.fast_reg.list_len = 3;
	wr.wr.fast_reg.list_lkey = 6;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_int_eq(take(&s, (uint8_t *)&w), 1);
	ck_assert_uint_eq(w.remote_addr, 5);
	ck_assert_uint_eq(w.fast_reg.list_len, 3);
	ck_assert_uint_eq(w.fast_reg.list_lkey, 6);

	wr.opcode = RNIC_WR_LOCAL_INV;
	wr.invalidate_rkey = 0x5555;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_int_eq(take(&s, (uint8_t *)&w), 1);
	ck_assert_uint_eq(w.imm, 0x5555);
	fake_teardown(&s);
}
END_TEST

/* What would only fail the QP is refused, alone: by the device's word or the QP's type. */
START_TEST(send__operations_not_there)
{
	static const uint32_t optional[] = {RNIC_WR_BIND_MW, RNIC_WR_FAST_REG, RNIC_WR_FLUSH,
		RNIC_WR_ATOMIC_WRITE};
	const struct rnic_send_wr *bad;
	struct rnic_mr mr = {.lkey = 1};
	struct rnic_mw *mw;

	fake_lacks = UINT64_MAX;
	struct fake_set s = fake_setup(4);
	struct rnic_send_wr two = send_wr(2, 0), wr = send_wr(1, 0);

	ck_assert_int_eq(rnic_alloc_mw(s.pd, RNIC_MW_TYPE_2, &mw), 0);
	wr.next = &two;
	for (uint32_t i = 0; i < 4; i++) {
		two.opcode = optional[i];
		two.wr.bind_mw.mw = mw;
		two.wr.bind_mw.mr = &mr;
		two.wr.bind_mw.length = 1;
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EOPNOTSUPP);
		ck_assert_ptr_eq(bad, &two);
		ck_assert_uint_eq(atomic_load(&s.f->qp[0].client->sq_tail), i + 1);
	}
	mw->type = RNIC_MW_TYPE_1;
	ck_assert_int_eq(rnic_bind_mw(s.qp, mw, &wr), -EOPNOTSUPP);
	two.opcode = RNIC_WR_SEND_WITH_INV;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	struct rnic_qp *uc = fake_qp_in(&s, RNIC_QPT_UC, NULL);
	ck_assert_int_eq(rnic_post_send(uc, &two, NULL), -EINVAL);
	fake_teardown(&s);
	/* each goes by its own capability */
	for (uint32_t i = 0; i < 4; i++) {
		static const uint64_t caps[] = {1ull << 17, 1ull << 21, 1ull << 38, 1ull << 40};

		ck_assert_uint_eq(client_opcodes_lacking(~caps[i]) >> optional[i] & 1,
			optional[i] != RNIC_WR_BIND_MW && optional[i] != RNIC_WR_FLUSH);
		ck_assert_uint_eq(client_opcodes_lacking(caps[i]) >> optional[i] & 1, 0);
	}
}
END_TEST

struct binder {
	struct rnic_qp *qp;
	struct rnic_mw *mw;
};

static void *
bind_one(void *arg)
{
	const struct binder *b = arg;
	struct rnic_send_wr wr = {.wr_id = 1, .send_flags = RNIC_SEND_SIGNALED};

	if (rnic_bind_mw(b->qp, b->mw, &wr))
		abort();
	return NULL;
}

/* A bind is stopped between the choice of its key and its post: another's key is another. */
START_TEST(bind__keys_of_two_threads)
{
	struct fake_set s = fake_setup(4);
	struct binder b[2] = {{.qp = s.qp}, {.qp = fake_qp_in(&s, RNIC_QPT_RC, NULL)}};
	struct ring_wqe w[2];
	pthread_t t[2];

	ck_assert_int_eq(rnic_alloc_mw(s.pd, RNIC_MW_TYPE_1, &b[0].mw), 0);
	b[1].mw = b[0].mw;
	client_lock(&client_qp(b[0].qp)->sq_lock);
	for (int i = 0; i < 2; i++) {
		pthread_create(&t[i], NULL, bind_one, &b[i]);
		for (int k = 0; k < 1000; k++)
			sched_yield();
	}
	client_unlock(&client_qp(b[0].qp)->sq_lock);
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], NULL);
		ck_assert_int_ge(ring_wq_poll(&s.f->qp[i].sq), 0);
		ck_assert_int_eq(ring_wq_take(&s.f->qp[i].sq, offsetof(struct ring_wqe, num_slots),
			(uint8_t *)&w[i]), 1);
	}
	ck_assert_uint_ne(w[0].rkey, w[1].rkey);
	ck_assert(w[0].bind.mw_key == w[1].rkey || w[1].bind.mw_key == w[0].rkey);
	fake_teardown(&s);
}
END_TEST

/* Requests of several slots at every place in a ring of 8, so that some wrap inside. */
START_TEST(send__wraps)
{
	struct fake_set s = fake_setup(3);
	struct rnic_send_wr wr = send_wr(0, 12);
	struct rnic_wc wc;

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	for (uint32_t round = 0; round < 40; round++) {
		uint8_t got[RING_MAX_WQE_SLOTS * RING_SLOT_SIZE];
		struct ring_wqe *w = (struct ring_wqe *)(void *)got;
		uint32_t len = 200 - round;
		uint32_t index = s.f->qp[0].sq.head;
		struct rnic_sge two[2] = {
			{.addr = (uintptr_t)bytes, .length = 10},
			{.addr = (uintptr_t)bytes + 10, .length = len - 10},
		};

		wr.wr_id = round;
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
		ck_assert_int_eq(take(&s, got), 4);
		ck_assert_int_eq(memcmp(w->data, sges, 12 * sizeof(sges[0])), 0);
		ck_assert(fake_done(s.f, 0, 0, 0, index, 0));
		ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
		ck_assert_uint_eq(wc.wr_id, round);

		struct rnic_send_wr in = wr;

		in.sg_list = two;
		in.num_sge = 2;
		in.send_flags |= RNIC_SEND_INLINE;
		index = s.f->qp[0].sq.head;
		ck_assert_int_eq(rnic_post_send(s.qp, &in, NULL), 0);
		ck_assert_int_eq(take(&s, got), (int)ring_wqe_slots_inline(len));
		ck_assert_uint_eq(w->inline_len, len);
		ck_assert_uint_eq(w->num_sge, 0);
		ck_assert_int_eq(memcmp(w->data, bytes, len), 0);
		ck_assert(fake_done(s.f, 0, 0, 0, index, 0));
		ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	}
	fake_teardown(&s);
}
END_TEST

START_TEST(send__limits)
{
	struct fake_set s = fake_setup(4);
	const struct rnic_send_wr *bad = NULL;
	struct rnic_send_wr wr = send_wr(1, 13);
	struct rnic_sge big = {.addr = (uintptr_t)bytes, .length = 201};

	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EINVAL);
	ck_assert_ptr_eq(bad, &wr);
	wr.num_sge = -1;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EINVAL);
	wr.num_sge = 1;
	wr.sg_list = &big;
	wr.send_flags = RNIC_SEND_INLINE;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EINVAL);
	big.length = UINT32_MAX;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EINVAL);
	big.length = 200;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), 0);
	wr.opcode = RNIC_WR_RDMA_READ; /* nothing to send inline */
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EINVAL);
	wr.send_flags = 0x10;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EINVAL);
	wr.send_flags = 0;
	for (uint32_t op = 0; op < 300; op++) {
		bool known = op <= 9 || op == 14 || op == 15 || op == 32;

		if (known)
			continue;
		wr.opcode = op;
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EINVAL);
	}
	fake_teardown(&s);
}
END_TEST

START_TEST(send__by_type_and_state)
{
	struct fake_set s = fake_setup(4);
	struct rnic_qp *ud = fake_qp_in(&s, RNIC_QPT_UD, NULL);
	struct rnic_qp *uc = fake_qp_in(&s, RNIC_QPT_UC, NULL);
	struct rnic_ah_attr aa = {.is_global = 1};
	struct rnic_send_wr wr = send_wr(1, 1);
	const struct rnic_send_wr *bad;
	struct rnic_recv_wr rwr = {.wr_id = 1};
	struct rnic_ah *ah;
	const struct ring_wqe *w;

	ck_assert_int_eq(rnic_create_ah(s.pd, &aa, &ah), 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x77;
	wr.wr.ud.remote_qkey = 0x88;
	ck_assert_int_eq(rnic_post_send(ud, &wr, &bad), 0);
	w = ring_wq_cons_slot(&s.f->qp[1].sq, 0);
	ck_assert_uint_eq(w->ah, ah->handle);
	ck_assert_uint_eq(w->remote_qpn, 0x77);
	ck_assert_uint_eq(w->qkey, 0x88);
	wr.opcode = RNIC_WR_RDMA_WRITE;
	ck_assert_int_eq(rnic_post_send(ud, &wr, &bad), -EINVAL);
	ck_assert_int_eq(rnic_post_send(uc, &wr, &bad), 0);
	wr.opcode = RNIC_WR_RDMA_READ;
	ck_assert_int_eq(rnic_post_send(uc, &wr, &bad), -EINVAL);

	fake_to_state(s.qp, RNIC_QPS_ERR);
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), 0); /* to be flushed: B081 */
	fake_to_state(s.qp, RNIC_QPS_RESET);
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EINVAL);
	ck_assert_int_eq(rnic_post_recv(s.qp, &rwr, NULL), -EINVAL);
	fake_to_state(s.qp, RNIC_QPS_INIT);
	ck_assert_int_eq(rnic_post_recv(s.qp, &rwr, NULL), 0);
	fake_to_state(s.qp, RNIC_QPS_RTR);
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -EINVAL);
	s.f->qp[0].daemon->state = RING_QPS_RTS; /* as a connection manager does it */
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), 0);
	fake_teardown(&s);
}
END_TEST

START_TEST(send__list_stops_at_bad)
{
	struct fake_set s = fake_setup(2);
	struct rnic_send_wr wr[6];
	const struct rnic_send_wr *bad = NULL;
	struct ring_wqe w;

	for (int i = 0; i < 6; i++) {
		wr[i] = send_wr((uint64_t)i, 1);
		wr[i].next = i < 5 ? &wr[i + 1] : NULL;
	}
	wr[2].opcode = 99;
	ck_assert_int_eq(rnic_post_send(s.qp, wr, &bad), -EINVAL);
	ck_assert_ptr_eq(bad, &wr[2]);
	ck_assert_int_eq(take(&s, (uint8_t *)&w), 1); /* those before it are posted */
	ck_assert_int_eq(take(&s, (uint8_t *)&w), 1);
	ck_assert_int_eq(take(&s, (uint8_t *)&w), 0);
	wr[2].opcode = RNIC_WR_SEND;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr[2], &bad), -ENOMEM); /* 4 slots in all */
	ck_assert_ptr_eq(bad, &wr[4]);
	fake_teardown(&s);
}
END_TEST

/* Unsignalled requests give their slots back with the next completion, not before. */
START_TEST(send__unsignalled_slots)
{
	struct fake_set s = fake_setup(2);
	struct rnic_send_wr wr = send_wr(5, 1);
	struct rnic_wc wc;

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), -ENOMEM);
	ck_assert(fake_done(s.f, 0, 0, 0, 2, 0));
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), -ENOMEM);
	fake_teardown(&s);
}
END_TEST

/* Both ends a few requests before 2^32. */
START_TEST(send__index_wraps)
{
	struct fake_set s = fake_setup(2);
	struct rnic_send_wr wr = send_wr(0, 3); /* 2 slots */
	uint32_t start = UINT32_MAX - 5;
	struct ring_wq_cons *q = &s.f->qp[0].sq;
	struct rnic_wc wc;

	atomic_store(&s.f->qp[0].client->sq_tail, start);
	s.qp->sq.tail = s.qp->sq.head = start;
	q->head = q->tail = start;
	for (uint64_t i = 0; i < 20; i++) {
		uint8_t got[2 * RING_SLOT_SIZE];
		uint32_t index = q->head;

		wr.wr_id = 1000 + i;
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
		ck_assert_int_eq(take(&s, got), 2);
		ck_assert(fake_done(s.f, 0, 0, 0, index, 0));
		ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1);
		ck_assert_uint_eq(wc.wr_id, 1000 + i);
	}
	ck_assert_uint_eq(q->head, start + 40);
	fake_teardown(&s);
}
END_TEST

static void
found(void *arg, uint32_t slot)
{
	*(uint32_t *)arg += slot + 1;
}

static uint32_t
bells(struct fake_set *s, uint32_t worker)
{
	struct ring_bell_scan scan = {0};
	uint32_t n = 0;

	ring_bell_collect(s->f->chunk[worker], &scan, 1000, found, &n);
	return n;
}

START_TEST(bell__only_when_needed)
{
	struct fake_set s = fake_setup(4);
	struct rnic_send_wr wr = send_wr(1, 0);
	struct rnic_recv_wr rwr = {.wr_id = 1};
	struct ring_qp_daemon *d = s.f->qp[0].daemon;
	eventfd_t kicks;

	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_uint_eq(bells(&s, 0), 1);
	ck_assert_int_eq(eventfd_read(s.f->kick[0], &kicks), -1); /* not idle: no kick */
	d->active = 1;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_uint_eq(bells(&s, 0), 0);
	d->active = 0;
	d->worker = 1;
	s.f->bell[1]->need_kick = 1;
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert_uint_eq(bells(&s, 0), 0);
	ck_assert_uint_eq(bells(&s, 1), 1);
	ck_assert_int_eq(eventfd_read(s.f->kick[1], &kicks), 0);
	ck_assert_uint_eq(kicks, 1);
	ck_assert_int_eq(rnic_post_recv(s.qp, &rwr, NULL), 0);
	ck_assert_uint_eq(bells(&s, 1), 0);
	d->state = RING_QPS_ERR;
	ck_assert_int_eq(rnic_post_recv(s.qp, &rwr, NULL), 0);
	ck_assert_uint_eq(bells(&s, 1), 1);
	for (uint32_t w = 2; w < 100; w += 31) { /* no such worker */
		d->worker = w;
		ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	}
	fake_teardown(&s);
}
END_TEST

START_TEST(recv__fields_limits)
{
	struct fake_set s = fake_setup(2);
	struct rnic_recv_wr wr = {.wr_id = 4, .sg_list = sges, .num_sge = 11};
	const struct rnic_recv_wr *bad = NULL;
	uint8_t got[4 * RING_SLOT_SIZE];
	struct ring_rwqe *w = (struct ring_rwqe *)(void *)got;
	struct ring_wq_cons *q = &s.f->qp[0].rq;

	send_wr(0, 0);
	ck_assert_int_eq(rnic_post_recv(s.qp, &wr, NULL), 0);
	ck_assert_int_eq(ring_wq_poll(q), 3);
	ck_assert_int_eq(ring_wq_take(q, offsetof(struct ring_rwqe, num_slots), got), 3);
	ck_assert_uint_eq(w->num_sge, 11);
	ck_assert_int_eq(memcmp(w->sge, sges, 11 * sizeof(sges[0])), 0);
	ck_assert_int_eq(rnic_post_recv(s.qp, &wr, &bad), -ENOMEM);
	ck_assert_ptr_eq(bad, &wr);
	wr.num_sge = 12;
	ck_assert_int_eq(rnic_post_recv(s.qp, &wr, &bad), -EINVAL);
	fake_teardown(&s);
}
END_TEST

START_TEST(fast__same_slots)
{
	struct fake_set s = fake_setup(2);
	struct rnic_sge result = {.addr = 1, .length = 8, .lkey = 2};
	uint8_t got[4 * RING_SLOT_SIZE];
	struct ring_wqe *w = (struct ring_wqe *)(void *)got;
	struct rnic_wqe *f;
	struct rnic_rwqe *r;
	struct rnic_wc wc;

	f = rnic_sq_get(s.qp, 50, 1);
	rnic_prep_write(f, 0x123, 0x456, RNIC_SEND_SIGNALED);
	rnic_prep_imm(f, 7);
	rnic_prep_sge(s.qp, f, 0x1, 2, 3);
	f = rnic_sq_get(s.qp, 51, rnic_slots_inline(150));
	rnic_prep_send(f, 0);
	rnic_prep_inline(s.qp, f, bytes, 150);
	ck_assert_ptr_null(rnic_sq_get(s.qp, 52, 1));
	ck_assert_int_eq(take(&s, got), 0); /* not submitted yet */
	rnic_sq_submit(s.qp);
	ck_assert_uint_eq(bells(&s, 0), 1);
	ck_assert_int_eq(take(&s, got), 1);
	ck_assert_uint_eq(w->opcode, RING_WR_RDMA_WRITE_WITH_IMM);
	ck_assert_uint_eq(w->remote_addr, 0x123);
	ck_assert_uint_eq(w->rkey, 0x456);
	ck_assert_uint_eq(w->num_sge, 1);
	ck_assert_uint_eq(w->sge[0].length, 2);
	ck_assert_int_eq(take(&s, got), 3);
	ck_assert_uint_eq(w->inline_len, 150);
	ck_assert_int_eq(memcmp(w->data, bytes, 150), 0);
	ck_assert(fake_done(s.f, 0, 0, 0, 1, 0));
	ck_assert_int_eq(rnic_poll_cq(s.cq, 4, &wc), 1);
	ck_assert_uint_eq(wc.wr_id, 51);
	f = rnic_sq_get(s.qp, 53, 1);
	rnic_prep_atomic(f, RNIC_WR_ATOMIC_FETCH_AND_ADD, 8, 9, 10, 0, &result, 0);
	rnic_sq_submit(s.qp);
	ck_assert_int_eq(take(&s, got), 1);
	ck_assert_uint_eq(w->atomic.compare_add, 10);
	ck_assert_uint_eq(w->atomic.sge.lkey, 2);
	r = rnic_rq_get(s.qp, 60, rnic_slots_recv(4));
	for (uint32_t i = 0; i < 4; i++)
		rnic_prep_recv_sge(s.qp, r, i, i, i);
	rnic_rq_submit(s.qp);
	ck_assert_int_eq(ring_wq_poll(&s.f->qp[0].rq), 2);
	for (uint32_t n = 0; n <= 32; n++) {
		ck_assert_uint_eq(rnic_slots_sge(n), ring_wqe_slots_sge(n));
		ck_assert_uint_eq(rnic_slots_recv(n), ring_rwqe_slots(n));
	}
	for (uint32_t n = 0; n <= RING_MAX_INLINE; n++)
		ck_assert_uint_eq(rnic_slots_inline(n), ring_wqe_slots_inline(n));
	fake_teardown(&s);
}
END_TEST

UNIT_MAIN("client_post", send__fields, send__atomic_flush_bind_fast_reg_inv,
	send__operations_not_there, bind__keys_of_two_threads, send__wraps,
	send__limits, send__by_type_and_state, send__list_stops_at_bad, send__unsignalled_slots,
	send__index_wraps, bell__only_when_needed, recv__fields_limits, fast__same_slots)
