/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows, fast registration and invalidates by work requests and by the peer, and the
 * operations of annex A19: FLUSH and ATOMIC WRITE, on both sides.
 */
#include <errno.h>

#include "wire.h"

#define ACK31 roce_syn_ack(ROCE_CREDIT_CODE_NONE)
#define RADDR 0x7000000u
#define RKEY 0x1234u
#define T(code) (UINT64_C(4096) << (code))

static uint8_t data[8192];

static struct wire *
start(struct wire_params p)
{
	if (p.timeout == 0)
		p.timeout = 10;
	wire_pattern(data, sizeof(data), 3);
	return wire_new(&p);
}

static struct roce_pkt
rdma(const struct wire *w, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	return (struct roce_pkt){.opcode = opcode, .psn = psn, .ackreq = true,
				 .va = WIRE_VA + off, .rkey = w->key, .dma_len = len};
}

static struct roce_pkt
flush(const struct wire *w, uint32_t psn, uint32_t off, uint32_t len)
{
	struct roce_pkt p = rdma(w, ROCE_RC_FLUSH, psn, off, len);

	p.flush_plt = ROCE_FETH_PLT_GLOBAL;
	return p;
}

/** The next that was sent is a READ response without data. */
static void
expect_note(struct wire *w, uint32_t psn, uint32_t msn)
{
	struct roce_pkt p;

	wire_expect(w, ROCE_RC_READ_RESP_ONLY, psn, &p);
	ck_assert_uint_eq(p.payload_len, 0);
	ck_assert_uint_eq(p.syndrome, ACK31);
	ck_assert_uint_eq(p.msn, msn);
}

static uint32_t
make_key(struct wire *w, enum mr_type type)
{
	struct mr_desc d = {.type = type, .pd = WIRE_PD, .max_segs = 8};
	uint32_t key;

	ck_assert_int_eq(mr_register(w->vw.mrs, &d, &key), 0);
	return key;
}

static uint32_t
bound(const struct wire *w)
{
	return atomic_load(&mr_slot(w->vw.mrs, w->key)->bound);
}

static enum mr_state
state_of(const struct wire *w, uint32_t key)
{
	return mr_word_state(atomic_load(&mr_slot(w->vw.mrs, key)->word));
}

/* ---- responder: ATOMIC WRITE ---------- */

START_TEST(ROCE_C_39__atomic_write)
{
	struct wire *w = start((struct wire_params){0});
	uint64_t *at = (uint64_t *)(void *)(w->mem + 16);
	struct roce_pkt p = rdma(w, ROCE_RC_ATOMIC_WRITE, 0x200, 16, 8);

	wire_pkt(w, p, data, 8);
	expect_note(w, 0x200, 1);
	wire_expect_none(w);
	ck_assert_mem_eq(at, data, 8);
	ck_assert_uint_eq(w->mem[15] | w->mem[24], 0);
	/* Seen again: answered, not executed (C-20's like). */
	*at = 0;
	wire_pkt(w, p, data, 8);
	expect_note(w, 0x200, 1);
	ck_assert_uint_eq(*at, 0);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x201, 0, 8), data, 8);
	wire_expect_ack(w, 0x201, ACK31, 2);
	wire_free(w);
}
END_TEST

/* One wrong thing each. */
static const struct {
	uint32_t off, len, payload, access;
	bool bad_key;
	uint8_t nak;
} bad_write[] = {
	{4, 8, 8, 0, false, ROCE_NAK_INVALID_REQ},
	{0, 16, 8, 0, false, ROCE_NAK_INVALID_REQ},
	{0, 4, 8, 0, false, ROCE_NAK_INVALID_REQ},
	{0, 0, 8, 0, false, ROCE_NAK_INVALID_REQ},
	{0, 8, 16, 0, false, ROCE_NAK_INVALID_REQ},
	{0, 8, 0, 0, false, ROCE_NAK_INVALID_REQ},
	{0, 8, 8, MR_REMOTE_READ | MR_REMOTE_ATOMIC, false, ROCE_NAK_INVALID_REQ},
	{0, 8, 8, 0, true, ROCE_NAK_REM_ACCESS},
	{WIRE_MEM, 8, 8, 0, false, ROCE_NAK_REM_ACCESS},
};

START_TEST(ROCE_C_39__atomic_write_refused)
{
	struct wire *w = start((struct wire_params){.access = bad_write[_i].access});
	struct roce_pkt p = rdma(w, ROCE_RC_ATOMIC_WRITE, 0x200, bad_write[_i].off,
				 bad_write[_i].len);

	if (bad_write[_i].bad_key)
		p.rkey ^= 1;
	wire_pkt(w, p, data, bad_write[_i].payload);
	wire_expect_ack(w, 0x200, bad_write[_i].nak, 0);
	for (uint32_t i = 0; i < 32; i++)
		ck_assert_uint_eq(w->mem[i], 0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_39__atomic_write_by_a_copier)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = rdma(w, ROCE_RC_ATOMIC_WRITE, 0x200, 8, 8);

	p.rkey = w->far_key;
	wire_pkt(w, p, data, 8);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x201, 0, 8), data, 8);
	wire_expect_none(w);
	wire_io(w, _i ? -EFAULT : 0);
	if (_i) {
		wire_expect_ack(w, 0x200, ROCE_NAK_REM_ACCESS, 0);
	} else {
		expect_note(w, 0x200, 1);
		wire_expect_ack(w, 0x201, ACK31, 2);
		ck_assert_mem_eq(w->far + 8, data, 8);
	}
	wire_free(w);
}
END_TEST

/* ---- responder: FLUSH ---------- */

START_TEST(ROCE_C_40__flush)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = flush(w, 0x201, 0, 100);

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 100), data, 100);
	wire_expect_ack(w, 0x200, ACK31, 1);
	wire_pkt(w, p, NULL, 0);
	expect_note(w, 0x201, 2);
	wire_pkt(w, p, NULL, 0);
	expect_note(w, 0x201, 2);
	/* No bytes, and all of the region, whatever range it says. */
	wire_pkt(w, flush(w, 0x202, 0, 0), NULL, 0);
	expect_note(w, 0x202, 3);
	p = flush(w, 0x203, 0, UINT32_MAX);
	p.va = 1;
	p.flush_sel = ROCE_FETH_SEL_MR;
	wire_pkt(w, p, NULL, 0);
	expect_note(w, 0x203, 4);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

static const struct {
	uint8_t plt, sel, payload;
	uint32_t off, len, access; /* access: of the QP */
	uint32_t key;		   /* 0: the right one; 1: without the right; 2: none */
	uint8_t nak;
} bad_flush[] = {
	{0, 0, 0, 0, 8, 0, 0, ROCE_NAK_INVALID_REQ},
	{4, 0, 0, 0, 8, 0, 0, ROCE_NAK_INVALID_REQ},
	{1, 2, 0, 0, 8, 0, 0, ROCE_NAK_INVALID_REQ},
	{1, 3, 0, 0, 8, 0, 0, ROCE_NAK_INVALID_REQ},
	{1, 0, 4, 0, 8, 0, 0, ROCE_NAK_INVALID_REQ},
	{1, 0, 0, 0, (1u << 31) + 1, 0, 0, ROCE_NAK_INVALID_REQ},
	{1, 0, 0, 0, 8, MR_REMOTE_WRITE | MR_FLUSH_PERSISTENT, 0, ROCE_NAK_INVALID_REQ},
	{3, 0, 0, 0, 8, MR_REMOTE_WRITE | MR_FLUSH_GLOBAL, 0, ROCE_NAK_INVALID_REQ},
	{1, 0, 0, 0, 8, 0, 1, ROCE_NAK_REM_ACCESS},
	{1, 1, 0, 0, 8, 0, 1, ROCE_NAK_REM_ACCESS},
	{1, 0, 0, 0, 0, 0, 2, ROCE_NAK_REM_ACCESS},
	{1, 1, 0, 0, 0, 0, 2, ROCE_NAK_REM_ACCESS},
	{1, 0, 0, WIRE_MEM - 7, 8, 0, 0, ROCE_NAK_REM_ACCESS},
	{2, 0, 0, 0, 8, 0, 0, ROCE_NAK_REM_ACCESS}, /* it is not persistent */
	{3, 1, 0, 0, 8, 0, 0, ROCE_NAK_REM_ACCESS},
};

START_TEST(ROCE_C_40__flush_refused)
{
	struct wire *w = start((struct wire_params){.access = bad_flush[_i].access});
	struct roce_pkt p = flush(w, 0x200, bad_flush[_i].off, bad_flush[_i].len);

	p.flush_plt = bad_flush[_i].plt;
	p.flush_sel = bad_flush[_i].sel;
	if (bad_flush[_i].key == 1) {
		p.rkey = 0x77000000;
		wire_mr_key(w, p.rkey, WIRE_VA, w->mem, WIRE_MEM,
			    MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ);
	} else if (bad_flush[_i].key == 2) {
		p.rkey ^= 1;
	}
	wire_pkt(w, p, data, bad_flush[_i].payload);
	wire_expect_ack(w, 0x200, bad_flush[_i].nak, 0);
	ck_assert(wire_event(w, bad_flush[_i].nak == ROCE_NAK_INVALID_REQ
					? VERBS_EVENT_QP_REQ_ERR
					: VERBS_EVENT_QP_ACCESS_ERR));
	wire_free(w);
}
END_TEST

/* What was written before it, by a copier too, is there when it is answered. */
START_TEST(ROCE_C_40__flush_behind_a_copier)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 64), f = flush(w, 0x201, 0, 64);

	p.rkey = f.rkey = w->far_key;
	p.ackreq = false;
	wire_pkt(w, p, data, 64);
	wire_pkt(w, f, NULL, 0);
	wire_expect_none(w);
	wire_io(w, 0);
	expect_note(w, 0x201, 2);
	ck_assert_mem_eq(w->far, data, 64);
	wire_free(w);
}
END_TEST

/* They are answered like READs, so they keep to the depth that was agreed upon. */
START_TEST(ROCE_C_40__depth)
{
	struct wire *w = start((struct wire_params){.dest_rd_atomic = 1});

	for (uint32_t i = 0; i < 2; i++) /* both before the first is answered */
		wire_pkt_only(w, _i ? flush(w, 0x200 + i, 0, 8)
				    : rdma(w, ROCE_RC_ATOMIC_WRITE, 0x200 + i, 0, 8), data,
			      _i ? 0 : 8);
	wire_go(w);
	expect_note(w, 0x200, 1);
	wire_expect_ack(w, 0x201, ROCE_NAK_INVALID_REQ, 1);
	wire_free(w);
}
END_TEST

/* ---- requester ---------- */

static void
post_flush(struct wire *w, uint32_t len, uint32_t how, uint8_t flags)
{
	struct ring_wqe q = {.opcode = RING_WR_FLUSH, .flags = flags | RING_WR_SIGNALED,
			     .num_slots = 1, .rkey = RKEY, .remote_addr = RADDR,
			     .flush_len = len, .flush = how};

	wire_post_raw(w, &q);
	wire_go(w);
}

static void
note(struct wire *w, uint32_t psn, uint32_t msn)
{
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_ONLY, .psn = psn,
				      .syndrome = ACK31, .msn = msn}, NULL, 0);
}

START_TEST(ROCE_C_40__flush_posted)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 2});
	struct roce_pkt p;
	struct ring_cqe e;

	post_flush(w, 0x12345678, 0x13, 0);
	for (int i = 0; i < 2; i++) { /* sent, and when nothing comes sent again */
		wire_expect(w, ROCE_RC_FLUSH, 0x100, &p);
		ck_assert_uint_eq(p.flush_plt, 3);
		ck_assert_uint_eq(p.flush_sel, 1);
		ck_assert_uint_eq(p.va, RADDR);
		ck_assert_uint_eq(p.rkey, RKEY);
		ck_assert_uint_eq(p.dma_len, 0x12345678);
		ck_assert(p.ackreq);
		if (i == 0)
			wire_wait(w, T(10) + 10000);
	}
	wire_ack(w, 0x100, ACK31, 1); /* no answer to it: asked for again */
	wire_no_cqe(w);
	wire_expect(w, ROCE_RC_FLUSH, 0x100, NULL);
	note(w, 0x100, 1);
	e = wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.src_opcode >> 24, RING_WC_FLUSH);
	ck_assert_uint_eq(((struct roce_qp *)w->qp)->inflight, 0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_39__atomic_write_posted)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 2});
	struct ring_wqe q = {.opcode = RING_WR_ATOMIC_WRITE, .flags = RING_WR_SIGNALED,
			     .num_slots = 1, .num_sge = 1, .rkey = RKEY, .remote_addr = RADDR,
			     .sge = {{WIRE_VA, 8, _i ? w->far_key : w->key}}};
	struct roce_pkt p;

	memcpy(_i ? w->far : w->mem, data, 8);
	wire_post_raw(w, &q);
	wire_go(w);
	if (_i) {
		wire_expect_none(w);
		wire_io(w, 0);
	}
	wire_expect(w, ROCE_RC_ATOMIC_WRITE, 0x100, &p);
	ck_assert_uint_eq(p.payload_len, 8);
	ck_assert_mem_eq(p.payload, data, 8);
	ck_assert_uint_eq(p.va, RADDR);
	ck_assert_uint_eq(p.dma_len, 8);
	ck_assert(p.ackreq);
	note(w, 0x100, 1);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).src_opcode >> 24, RING_WC_ATOMIC_WRITE);
	ck_assert_uint_eq(((struct roce_qp *)w->qp)->inflight, 0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_39_and_40__wrong_answers)
{
	static const enum wc_status want[] = {WC_BAD_RESP_ERR, WC_LOC_LEN_ERR, WC_REM_ACCESS_ERR};
	struct wire *w = start((struct wire_params){0});

	if (_i % 2)
		post_flush(w, 64, 1, 0);
	else
		wire_post(w, RING_WR_ATOMIC_WRITE, 0, 8, 0, RADDR, RKEY);
	wire_forget(w);
	if (_i / 2 == 0)
		wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_ATOMIC_ACK, .psn = 0x100,
					      .syndrome = ACK31, .msn = 1}, NULL, 0);
	else if (_i / 2 == 1)
		wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_ONLY, .psn = 0x100,
					      .syndrome = ACK31, .msn = 1}, data, 8);
	else
		wire_ack(w, 0x100, ROCE_NAK_REM_ACCESS, 0);
	wire_cqe(w, want[_i / 2]);
	wire_free(w);
}
END_TEST

/* A fence waits for them as it does for READs, and so does the depth. */
START_TEST(ROCE_C_39_and_40__fence_and_depth)
{
	struct wire *w = start((struct wire_params){.rd_atomic = 1});

	post_flush(w, 64, 1, 0);
	wire_expect(w, ROCE_RC_FLUSH, 0x100, NULL);
	if (_i)
		wire_post(w, RING_WR_RDMA_WRITE, 0, 8, RING_WR_FENCE, RADDR, RKEY);
	else
		wire_post(w, RING_WR_ATOMIC_WRITE, 0, 8, 0, RADDR, RKEY);
	wire_expect_none(w);
	note(w, 0x100, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_expect(w, _i ? ROCE_RC_WRITE_ONLY : ROCE_RC_ATOMIC_WRITE, 0x101, NULL);
	if (_i)
		wire_ack(w, 0x101, ACK31, 2);
	else
		note(w, 0x101, 2);
	wire_cqe(w, WC_SUCCESS);
	wire_free(w);
}
END_TEST

/* ---- windows ---------- */

static struct ring_wqe
bind_wqe(const struct wire *w, uint32_t window, uint32_t off, uint64_t len)
{
	return (struct ring_wqe){.opcode = RING_WR_BIND_MW, .flags = RING_WR_SIGNALED,
				 .num_slots = 1, .rkey = (window & ~0xffu) | 0x42,
				 .remote_addr = WIRE_VA + off,
				 .bind = {.length = len, .mr_lkey = w->key,
					  .access = MR_REMOTE_WRITE | MR_REMOTE_READ,
					  .mw_key = window}};
}

static uint32_t
post_bind(struct wire *w, uint32_t window, uint32_t off, uint64_t len)
{
	struct ring_wqe q = bind_wqe(w, window, off, len);

	wire_post_raw(w, &q);
	wire_go(w);
	return q.rkey;
}

static void
post_local_inv(struct wire *w, uint32_t key, uint8_t flags)
{
	struct ring_wqe q = {.opcode = RING_WR_LOCAL_INV, .flags = flags | RING_WR_SIGNALED,
			     .num_slots = 1, .imm = key};

	wire_post_raw(w, &q);
	wire_go(w);
}

START_TEST(bind__opens_the_window)
{
	struct wire *w = start((struct wire_params){0});
	uint32_t key = post_bind(w, make_key(w, MR_TYPE_WINDOW_1 + _i), 64, 32);
	struct roce_pkt p = rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 64, 32);

	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).src_opcode >> 24, RING_WC_BIND_MW);
	wire_expect_none(w);
	p.rkey = key;
	wire_pkt(w, p, data, 32);
	wire_expect_ack(w, 0x200, ACK31, 1);
	ck_assert_mem_eq(w->mem + 64, data, 32);
	p.psn = 0x201;
	p.dma_len = 33;
	wire_pkt(w, p, data, 33);
	wire_expect_ack(w, 0x201, ROCE_NAK_REM_ACCESS, 1);
	wire_free(w);
}
END_TEST

START_TEST(bind__refused)
{
	struct wire *w = start((struct wire_params){0});
	uint32_t window = make_key(w, MR_TYPE_WINDOW_2B);

	post_bind(w, window, WIRE_MEM - 8, 16);
	wire_cqe(w, WC_MW_BIND_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	post_bind(w, window, 0, 16);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(bound(w), 0);
	ck_assert_int_eq(state_of(w, window), MR_STATE_FREE);
	wire_free(w);
}
END_TEST

/* UC binds as well; what is refused leaves the QP in SQE, which takes packets by old windows. */
START_TEST(bind__on_uc)
{
	struct wire *w = start((struct wire_params){.type = VERBS_QPT_UC});
	uint32_t key = post_bind(w, make_key(w, MR_TYPE_WINDOW_2B), 64, 32);
	struct roce_pkt p = rdma(w, ROCE_UC_WRITE_ONLY, 0x200, 64, 32);

	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).src_opcode >> 24, RING_WC_BIND_MW);
	post_bind(w, key, 0, 64); /* it is bound */
	wire_cqe(w, WC_MW_BIND_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_SQE);
	p.rkey = key;
	wire_pkt(w, p, data, 32);
	wire_expect_none(w);
	ck_assert_mem_eq(w->mem + 64, data, 32);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RTS), 0);
	post_local_inv(w, key, 0);
	post_bind(w, key, 0, 64);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(bound(w), 1);
	wire_free(w);
}
END_TEST

/* The SEND that tells the peer of it leaves when the window is open, not before. */
START_TEST(bind__before_what_follows)
{
	struct wire *w = start((struct wire_params){0});
	uint32_t window = make_key(w, MR_TYPE_WINDOW_1), key;
	struct mr *mr = mr_slot(w->vw.mrs, window);

	key = post_bind(w, window, 0, 64);
	wire_cqe(w, WC_SUCCESS);
	mr_hold(mr, NULL); /* a copier, by the old binding */
	ck_assert_uint_eq(post_bind(w, window, 64, 64), key);
	wire_post(w, RING_WR_RDMA_WRITE, 0, 8, 0, RADDR, RKEY);
	wire_wait(w, 1000000);
	wire_expect_none(w);
	wire_no_cqe(w);
	ck_assert_int_eq(state_of(w, window), MR_STATE_CLAIMED);
	mr_unhold(mr, NULL);
	wire_wait(w, 100000);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_int_eq(state_of(w, window), MR_STATE_VALID);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x100, NULL);
	wire_ack(w, 0x100, ACK31, 1);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(bound(w), 1);
	wire_free(w);
}
END_TEST

/* The QP goes while its bind waits: the window is as unbound as before, and nobody waits. */
START_TEST(bind__abandoned)
{
	struct wire *w = start((struct wire_params){0});
	bool fast = _i & 2;
	uint32_t key = make_key(w, fast ? MR_TYPE_FAST_REG : MR_TYPE_WINDOW_2A);
	struct mr *mr = mr_slot(w->vw.mrs, key);
	struct ring_wqe q = bind_wqe(w, key, 0, 64);

	mr_hold(mr, NULL);
	if (fast) {
		q.opcode = RING_WR_FAST_REG;
		memset(&q.fast_reg, 0, sizeof(q.fast_reg));
	}
	wire_post_raw(w, &q);
	wire_go(w);
	ck_assert_int_eq(state_of(w, key), MR_STATE_CLAIMED);
	ck_assert_int_eq(wire_modify(w, _i & 1 ? RING_QPS_ERR : RING_QPS_RESET), 0);
	wire_go(w);
	if (_i & 1)
		wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert_int_eq(state_of(w, key), MR_STATE_FREE);
	ck_assert_uint_eq(bound(w), 0);
	ck_assert_uint_eq(atomic_load(&mr->holds), 1);
	mr_unhold(mr, NULL);
	wire_free(w);
}
END_TEST

START_TEST(B054__fenced_bind_waits_for_all)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_wqe q = bind_wqe(w, make_key(w, MR_TYPE_WINDOW_2B), 0, 64);

	wire_post(w, RING_WR_RDMA_WRITE, 0, 8, 0, RADDR, RKEY);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x100, NULL);
	q.flags |= RING_WR_FENCE;
	wire_post_raw(w, &q);
	wire_go(w);
	ck_assert_int_eq(state_of(w, q.rkey), MR_STATE_FREE);
	wire_ack(w, 0x100, ACK31, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_int_eq(state_of(w, q.rkey), MR_STATE_VALID);
	wire_free(w);
}
END_TEST

START_TEST(B059__bind_invalidate_bind)
{
	struct wire *w = start((struct wire_params){0});
	uint32_t window = make_key(w, MR_TYPE_WINDOW_2A), key;

	for (int i = 0; i < 3; i++) { /* in one go, with the same key each time */
		key = post_bind(w, window, 0, 64);
		post_local_inv(w, key, 0);
		wire_cqe(w, WC_SUCCESS);
		ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).src_opcode >> 24, RING_WC_LOCAL_INV);
		window = key;
	}
	ck_assert_uint_eq(bound(w), 0);
	post_local_inv(w, key, 0);
	wire_cqe(w, WC_LOC_QP_OP_ERR);
	wire_free(w);
}
END_TEST

/* Local work sends nothing, and yet a queue full of it leaves the worker to others in its turn. */
START_TEST(local__has_its_price)
{
	struct wire *w = start((struct wire_params){0});
	uint32_t window = make_key(w, MR_TYPE_WINDOW_1);
	struct verbs_qp *qp = w->qp;
	uint64_t started;

	for (int i = 0; i < 20; i++) {
		struct ring_wqe q = bind_wqe(w, window, 0, 0);

		q.flags = 0;
		wire_post_raw(w, &q);
		window = q.rkey;
	}
	started = counter_read(&w->vw.counter[VERBS_C_WQE_STARTED]);
	qp->deficit = 5 * ROCE_PKT_COST;
	ck_assert_int_eq(roce_run(w->r, qp, w->now), VERBS_RUN_MORE);
	ck_assert_uint_eq(counter_read(&w->vw.counter[VERBS_C_WQE_STARTED]) - started, 5);
	wire_go(w);
	ck_assert_uint_eq(counter_read(&w->vw.counter[VERBS_C_WQE_STARTED]) - started, 20);
	wire_free(w);
}
END_TEST

/* ---- ended by the peer ---------- */

START_TEST(ROCE_C_41__send_with_invalidate)
{
	struct wire *w = start((struct wire_params){0});
	uint32_t key = post_bind(w, make_key(w, MR_TYPE_WINDOW_2A + _i), 0, 64);
	struct roce_pkt p = {.opcode = ROCE_RC_SEND_ONLY_INV, .psn = 0x200, .ackreq = true,
			     .inv_rkey = key};
	struct ring_cqe e;

	wire_cqe(w, WC_SUCCESS);
	wire_post_recv(w, 1024, 64);
	wire_pkt(w, p, data, 16);
	e = wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.imm, key);
	ck_assert(atomic_load(&e.tag) & RING_CQE_WITH_INV);
	ck_assert_mem_eq(w->mem + 1024, data, 16);
	ck_assert_int_eq(state_of(w, key), MR_STATE_FREE);
	ck_assert_uint_eq(bound(w), 0);
	wire_expect_ack(w, 0x200, ACK31, 1);
	p = rdma(w, ROCE_RC_WRITE_ONLY, 0x201, 0, 8);
	p.rkey = key;
	wire_pkt(w, p, data, 8);
	wire_expect_ack(w, 0x201, ROCE_NAK_REM_ACCESS, 1);
	ck_assert_uint_eq(w->mem[0], 0);
	wire_free(w);
}
END_TEST

/* Not the peer's to end: a region, a window of type 1, another QP's, one that is not bound. */
START_TEST(ROCE_C_41__keys_that_a_peer_may_not_end)
{
	struct wire *w = start((struct wire_params){0});
	uint32_t window = make_key(w, _i == 1 ? MR_TYPE_WINDOW_1 : MR_TYPE_WINDOW_2B);
	struct roce_pkt p = {.opcode = ROCE_RC_SEND_ONLY_INV, .psn = 0x200, .ackreq = true,
			     .inv_rkey = window};
	enum mr_state before;

	if (_i < 3) {
		p.inv_rkey = post_bind(w, window, 0, 64);
		wire_cqe(w, WC_SUCCESS);
	}
	if (_i == 0)
		p.inv_rkey = w->key;
	if (_i == 2)
		mr_slot(w->vw.mrs, window)->qpn++;
	before = state_of(w, p.inv_rkey);
	wire_post_recv(w, 1024, 64);
	wire_pkt(w, p, data, 16);
	wire_cqe(w, WC_REM_INV_REQ_ERR);
	wire_expect_ack(w, 0x200, ROCE_NAK_REM_ACCESS, 0);
	ck_assert_int_eq(state_of(w, p.inv_rkey), before);
	wire_free(w);
}
END_TEST

/* ---- fast registration ---------- */

/** Two elements, the second before the first, their list at 4096 of mem. */
static struct ring_wqe
fast_wqe(struct wire *w, uint32_t key, uint32_t list_lkey)
{
	const struct ring_sge list[] = {{WIRE_VA + 512, 100, w->key}, {WIRE_VA, 28, w->key}};

	memcpy(w->mem + 4096, list, sizeof(list));
	memcpy(w->far + 4096, list, sizeof(list));
	return (struct ring_wqe){.opcode = RING_WR_FAST_REG, .flags = RING_WR_SIGNALED,
				 .num_slots = 1, .rkey = (key & ~0xffu) | 0x17,
				 .remote_addr = 0x900000,
				 .fast_reg = {.length = 128,
					      .access = MR_LOCAL_WRITE | MR_REMOTE_WRITE,
					      .list_lkey = list_lkey,
					      .list_addr = WIRE_VA + 4096, .list_len = 2}};
}

START_TEST(fast_reg__a_name_for_a_list)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_wqe q = fast_wqe(w, make_key(w, MR_TYPE_FAST_REG), w->key);
	struct roce_pkt p = rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 128);

	wire_post_raw(w, &q);
	wire_go(w);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).src_opcode >> 24, RING_WC_FAST_REG);
	p.va = 0x900000;
	p.rkey = q.rkey;
	wire_pkt(w, p, data, 128);
	wire_expect_ack(w, 0x200, ACK31, 1);
	ck_assert_mem_eq(w->mem + 512, data, 100);
	ck_assert_mem_eq(w->mem, data + 100, 28);
	ck_assert_uint_eq(w->mem[28] | w->mem[612], 0);
	post_local_inv(w, q.rkey, 0);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(bound(w), 0);
	p.psn = 0x201;
	wire_pkt(w, p, data, 128);
	wire_expect_ack(w, 0x201, ROCE_NAK_REM_ACCESS, 1);
	wire_free(w);
}
END_TEST

START_TEST(fast_reg__refused)
{
	static const enum wc_status want[] = {
		WC_LOC_PROT_ERR, WC_LOC_PROT_ERR, WC_LOC_PROT_ERR, WC_LOC_QP_OP_ERR,
		WC_LOC_QP_OP_ERR, WC_LOC_QP_OP_ERR, WC_LOC_QP_OP_ERR};
	struct wire *w = start((struct wire_params){0});
	uint32_t key = make_key(w, MR_TYPE_FAST_REG);
	struct ring_wqe q = fast_wqe(w, key, w->key);

	switch (_i) {
	case 0: /* a list that only a copier could read */
		q.fast_reg.list_lkey = w->far_key;
		break;
	case 1:
		q.fast_reg.list_addr = WIRE_VA + WIRE_MEM - 31;
		break;
	case 2:
		q.fast_reg.list_len = UINT32_MAX;
		break;
	case 3:
		q.fast_reg.length++;
		break;
	case 4:
		w->mem[4096 + 12] ^= 1; /* the first element's key */
		break;
	case 5:
		q.rkey = w->key;
		break;
	default:
		q.fast_reg.access = MR_REMOTE_WRITE;
	}
	wire_post_raw(w, &q);
	wire_go(w);
	wire_cqe(w, want[_i]);
	ck_assert_int_eq(state_of(w, key), MR_STATE_FREE);
	ck_assert_uint_eq(bound(w), 0);
	ck_assert_uint_eq(atomic_load(&mr_slot(w->vw.mrs, key)->holds), 0);
	wire_free(w);
}
END_TEST

/* Through copiers: what is under the list's elements is held, not the new name alone. */
START_TEST(fast_reg__of_foreign_memory)
{
	struct wire *w = start((struct wire_params){0});
	const struct ring_sge list[] = {{WIRE_VA, 64, w->far_key}};
	struct ring_wqe q = fast_wqe(w, make_key(w, MR_TYPE_FAST_REG), w->key);
	struct roce_pkt p = rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 64);
	struct mr *far = mr_slot(w->vw.mrs, w->far_key);

	memcpy(w->mem + 4096, list, sizeof(list));
	q.fast_reg.list_len = 1;
	q.fast_reg.length = 64;
	wire_post_raw(w, &q);
	wire_go(w);
	wire_cqe(w, WC_SUCCESS);
	p.va = 0x900000;
	p.rkey = q.rkey;
	wire_pkt(w, p, data, 64);
	ck_assert_uint_eq(atomic_load(&far->holds), 1);
	wire_io(w, 0);
	ck_assert_uint_eq(atomic_load(&far->holds), 0);
	wire_expect_ack(w, 0x200, ACK31, 1);
	ck_assert_mem_eq(w->far, data, 64);
	wire_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_key");
	TCase *c = tcase_create("key");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_test(c, ROCE_C_39__atomic_write);
	tcase_add_loop_test(c, ROCE_C_39__atomic_write_refused, 0,
			    sizeof(bad_write) / sizeof(bad_write[0]));
	tcase_add_loop_test(c, ROCE_C_39__atomic_write_by_a_copier, 0, 2);
	tcase_add_test(c, ROCE_C_40__flush);
	tcase_add_loop_test(c, ROCE_C_40__flush_refused, 0,
			    sizeof(bad_flush) / sizeof(bad_flush[0]));
	tcase_add_test(c, ROCE_C_40__flush_behind_a_copier);
	tcase_add_loop_test(c, ROCE_C_40__depth, 0, 2);
	tcase_add_test(c, ROCE_C_40__flush_posted);
	tcase_add_loop_test(c, ROCE_C_39__atomic_write_posted, 0, 2);
	tcase_add_loop_test(c, ROCE_C_39_and_40__wrong_answers, 0, 6);
	tcase_add_loop_test(c, ROCE_C_39_and_40__fence_and_depth, 0, 2);
	tcase_add_loop_test(c, bind__opens_the_window, 0, 3);
	tcase_add_test(c, bind__refused);
	tcase_add_test(c, bind__on_uc);
	tcase_add_test(c, bind__before_what_follows);
	tcase_add_loop_test(c, bind__abandoned, 0, 4);
	tcase_add_test(c, B054__fenced_bind_waits_for_all);
	tcase_add_test(c, B059__bind_invalidate_bind);
	tcase_add_test(c, local__has_its_price);
	tcase_add_loop_test(c, ROCE_C_41__send_with_invalidate, 0, 2);
	tcase_add_loop_test(c, ROCE_C_41__keys_that_a_peer_may_not_end, 0, 4);
	tcase_add_test(c, fast_reg__a_name_for_a_list);
	tcase_add_loop_test(c, fast_reg__refused, 0, 7);
	tcase_add_test(c, fast_reg__of_foreign_memory);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
