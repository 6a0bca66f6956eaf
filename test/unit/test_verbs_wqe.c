/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests, honest and hostile: what is taken, what is refused, and that nothing else is
 * touched. Runs under ASan and UBSan in the sanitizer builds. */
#include <errno.h>

#include "verbs_fixture.h"

static uint8_t buf[RING_MAX_WQE_SLOTS * RING_SLOT_SIZE];
static struct ring_sge list[256];

static void
fill_list(void)
{
	for (uint32_t i = 0; i < 256; i++)
		list[i] = (struct ring_sge){0x1000 * i, 10 + i, 0x100 + i};
}

static struct verbs_wqe *
fetch(struct fx *f)
{
	struct verbs_wqe *q = NULL;

	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), 1);
	return q;
}

START_TEST(fetch__every_field)
{
	struct fx *f = fx_new(4, 1, 1, 0xfffffffeu);
	struct ring_wqe *r;
	struct verbs_wqe *q;

	fill_list();
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), 0);
	ck_assert(!verbs_sq_has_work(&f->qp));
	r = fx_wqe(buf, RING_WR_RDMA_WRITE_WITH_IMM, list, 2);
	r->flags = RING_WR_FENCE | RING_WR_SOLICITED;
	r->srqn = 77;
	fx_post(f, buf, 1);
	ck_assert(verbs_sq_has_work(&f->qp));
	q = fetch(f);
	ck_assert_int_eq(q->status, WC_SUCCESS);
	ck_assert_uint_eq(q->wqe_index, 0xfffffffeu);
	ck_assert_uint_eq(q->opcode, RING_WR_RDMA_WRITE_WITH_IMM);
	ck_assert_uint_eq(q->flags, RING_WR_FENCE | RING_WR_SOLICITED);
	ck_assert_uint_eq(q->num_sge, 2);
	ck_assert_uint_eq(q->num_slots, 1);
	ck_assert_uint_eq(q->length, 21);
	ck_assert_uint_eq(q->imm, 0x11223344);
	ck_assert_uint_eq(q->rkey, 0x55667788);
	ck_assert_uint_eq(q->remote_addr, 0x1122334455667788);
	ck_assert_uint_eq(q->srqn, 77);
	ck_assert_uint_eq(q->pd, FX_PD);
	ck_assert_uint_eq(q->sge[1].addr, 0x1000);
	ck_assert_uint_eq(q->sge[1].length, 11);
	ck_assert_uint_eq(q->sge[1].lkey, 0x101);
	ck_assert(!verbs_sq_has_work(&f->qp));
	verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);
	fx_free(f);
}
END_TEST

/* Every length of list, at every place of the ring, so that each wraps everywhere. */
START_TEST(fetch__lists_wrap)
{
	fill_list();
	for (uint32_t at = 0; at < FX_SLOTS; at++)
		for (uint8_t n = 0; n <= RING_MAX_SGE; n++) {
			struct fx *f = fx_new(1, 1, 1, at - 8);
			struct verbs_wqe *q;
			uint32_t sum = 0;

			fx_wqe(buf, RING_WR_SEND, list, n);
			fx_post(f, buf, ring_wqe_slots_sge(n));
			q = fetch(f);
			ck_assert_int_eq(q->status, WC_SUCCESS);
			ck_assert_int_eq(q->block != NULL, n > VERBS_WQE_SGES);
			for (uint32_t i = 0; i < n; i++) {
				const struct verbs_sge *s = &verbs_wqe_sgl(q).sge[i];

				ck_assert_uint_eq(s->addr, list[i].addr);
				ck_assert_uint_eq(s->length, list[i].length);
				ck_assert_uint_eq(s->lkey, list[i].lkey);
				sum += s->length;
			}
			ck_assert_uint_eq(q->length, sum);
			ck_assert_uint_eq(f->qp.sq.head, f->sq_tail);
			verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);
			fx_free(f);
		}
}
END_TEST

START_TEST(fetch__atomic_bind_reg_flush)
{
	struct fx *f = fx_new(8, 1, 1, 0);
	struct ring_wqe *r = fx_wqe(buf, RING_WR_ATOMIC_CMP_AND_SWP, NULL, 0);
	struct verbs_wqe *q;

	r->num_sge = 1;
	r->atomic.compare_add = 1;
	r->atomic.swap = 2;
	r->atomic.sge = (struct ring_sge){3, 8, 4};
	fx_post(f, buf, 1);
	q = fetch(f);
	ck_assert_int_eq(q->status, WC_SUCCESS);
	ck_assert_uint_eq(q->compare_add, 1);
	ck_assert_uint_eq(q->swap, 2);
	ck_assert_uint_eq(q->sge[0].addr, 3);
	ck_assert_uint_eq(q->sge[0].lkey, 4);
	ck_assert_uint_eq(q->length, 8);
	verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);

	r = fx_wqe(buf, RING_WR_BIND_MW, NULL, 0);
	r->bind.length = 1ull << 40;
	r->bind.mr_lkey = 5;
	r->bind.access = 6;
	r->bind.mw_key = 7;
	fx_post(f, buf, 1);
	q = fetch(f);
	ck_assert_int_eq(q->status, WC_SUCCESS);
	ck_assert_uint_eq(q->bind.length, 1ull << 40);
	ck_assert_uint_eq(q->bind.mr_lkey, 5);
	ck_assert_uint_eq(q->bind.access, 6);
	ck_assert_uint_eq(q->bind.mw_key, 7);
	verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);

	r = fx_wqe(buf, RING_WR_FAST_REG, NULL, 0);
	r->fast_reg.length = 8;
	r->fast_reg.access = 9;
	r->fast_reg.list_lkey = 10;
	r->fast_reg.list_addr = 11;
	r->fast_reg.list_len = 12;
	fx_post(f, buf, 1);
	q = fetch(f);
	ck_assert_int_eq(q->status, WC_SUCCESS);
	ck_assert_uint_eq(q->fast_reg.length, 8);
	ck_assert_uint_eq(q->fast_reg.access, 9);
	ck_assert_uint_eq(q->fast_reg.list_lkey, 10);
	ck_assert_uint_eq(q->fast_reg.list_addr, 11);
	ck_assert_uint_eq(q->fast_reg.list_len, 12);
	verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);

	r = fx_wqe(buf, RING_WR_FLUSH, NULL, 0);
	r->flush = 0x11;
	r->flush_len = 1u << 31;
	fx_post(f, buf, 1);
	q = fetch(f);
	ck_assert_int_eq(q->status, WC_SUCCESS);
	ck_assert_uint_eq(q->flush, 0x11);
	ck_assert_uint_eq(q->length, 1u << 31);
	verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);
	fx_free(f);
}
END_TEST

/* B043. Rows are operations, columns RC UC UD GSI XRC-send XRC-receive. */
static const struct {
	uint8_t opcode;
	const char *may;
} matrix[] = {
	{RING_WR_RDMA_WRITE, "xx..x."},	       {RING_WR_RDMA_WRITE_WITH_IMM, "xx..x."},
	{RING_WR_SEND, "xxxxx."},	       {RING_WR_SEND_WITH_IMM, "xxxxx."},
	{RING_WR_RDMA_READ, "x...x."},	       {RING_WR_ATOMIC_CMP_AND_SWP, "x...x."},
	{RING_WR_ATOMIC_FETCH_AND_ADD, "x...x."}, {RING_WR_LOCAL_INV, "xx..x."},
	{RING_WR_BIND_MW, "xx..x."},	       {RING_WR_SEND_WITH_INV, "x...x."},
	{RING_WR_FLUSH, "x....."},	       {RING_WR_ATOMIC_WRITE, "x....."},
	{RING_WR_FAST_REG, "xx..x."},
};
static const uint8_t matrix_type[] = {VERBS_QPT_RC, VERBS_QPT_UC, VERBS_QPT_UD, VERBS_QPT_GSI,
				      VERBS_QPT_XRC_SEND, VERBS_QPT_XRC_RECV};

static bool
in_matrix(unsigned int opcode, unsigned int type)
{
	for (size_t i = 0; i < sizeof(matrix) / sizeof(matrix[0]); i++)
		if (matrix[i].opcode == opcode)
			return matrix[i].may[type] == 'x';
	return false;
}

static struct ring_wqe *
well_formed(unsigned int opcode)
{
	struct ring_wqe *r = fx_wqe(buf, (uint8_t)opcode, NULL, 0);

	if (opcode == RING_WR_ATOMIC_CMP_AND_SWP || opcode == RING_WR_ATOMIC_FETCH_AND_ADD) {
		r->num_sge = 1;
		r->atomic.sge.length = 8;
	} else if (opcode == RING_WR_ATOMIC_WRITE) {
		r->num_sge = 1;
		r->sge[0].length = 8;
	} else if (opcode == RING_WR_FLUSH) {
		r->flush = 1;
	}
	return r;
}

START_TEST(fetch__opcode_matrix)
{
	struct fx *f = fx_new(2, 1, 1, 0);

	for (unsigned int opcode = 0; opcode < 256; opcode++)
		for (unsigned int t = 0; t < sizeof(matrix_type); t++) {
			struct verbs_wqe *q;

			f->qp.type = matrix_type[t];
			well_formed(opcode);
			fx_post(f, buf, 1);
			q = fetch(f);
			ck_assert_msg(
				q->status == (in_matrix(opcode, t) ? WC_SUCCESS : WC_LOC_QP_OP_ERR),
				"opcode %u on type %u: %u", opcode, matrix_type[t], q->status);
			verbs_complete_send(&f->w, &f->qp, q, WC_WR_FLUSH_ERR);
			verbs_cq_burst_end(&f->w);
			struct ring_cqe e;
			ck_assert(fx_poll(f, &e));
		}
	fx_free(f);
}
END_TEST

/* One request with one thing wrong: the status it ends with. */
static void
expect_status(const struct ring_wqe *r, enum wc_status want, const char *what, uint64_t v)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	struct verbs_wqe *q;

	fx_post(f, r, r->num_slots);
	q = fetch(f);
	ck_assert_msg(q->status == want, "%s = %#lx: status %u, want %u", what, v, q->status, want);
	if (want != WC_SUCCESS) {
		ck_assert_uint_eq(q->num_sge, 0);
		ck_assert_uint_eq(q->length, 0);
		ck_assert_uint_eq(counter_read(&f->w.counter[VERBS_C_WQE_BAD]), 1);
		ck_assert_uint_eq(f->w.blocks_used, 0);
	}
	ck_assert_uint_eq(f->qp.sq.head, r->num_slots);
	verbs_complete_send(&f->w, &f->qp, q, q->status);
	fx_free(f);
}

START_TEST(refuse__flags)
{
	for (unsigned int v = 0; v < 256; v++) {
		struct ring_wqe *r = fx_wqe(buf, RING_WR_SEND, NULL, 0);

		r->flags = (uint8_t)v;
		expect_status(r, v < 16 ? WC_SUCCESS : WC_LOC_QP_OP_ERR, "flags", v);
	}
}
END_TEST

START_TEST(refuse__slots_and_sges)
{
	fill_list();
	for (unsigned int n = 0; n < 256; n++)
		for (unsigned int slots = 1; slots <= RING_MAX_WQE_SLOTS; slots++) {
			struct ring_wqe *r = fx_wqe(buf, RING_WR_SEND, list, RING_MAX_SGE);
			bool ok = n <= RING_MAX_SGE && slots == (n <= 2 ? 1 : 1 + (n + 1) / 4);

			r->num_sge = (uint8_t)n;
			r->num_slots = (uint8_t)slots;
			expect_status(r, ok ? WC_SUCCESS : WC_LOC_QP_OP_ERR, "num_sge", n);
		}
}
END_TEST

START_TEST(refuse__max_sge)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	struct verbs_wqe *q;

	fill_list();
	f->qp.max_send_sge = 5;
	for (uint8_t n = 5; n <= 6; n++) {
		fx_wqe(buf, RING_WR_SEND, list, n);
		fx_post(f, buf, 2);
		q = fetch(f);
		ck_assert_int_eq(q->status, n == 5 ? WC_SUCCESS : WC_LOC_QP_OP_ERR);
		verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);
	}
	fx_free(f);
}
END_TEST

START_TEST(refuse__inline)
{
	static const uint32_t lens[] = {0, 1, 31, 32, 33, 96, 97, 399, 400, 401, 1023, 1u << 31,
					0xfffffff0u, 0xffffffffu};

	for (unsigned int op = 0; op < RING_WR_OPCODE_COUNT; op++)
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct ring_wqe *r = well_formed(op);
			bool takes = op <= RING_WR_SEND_WITH_IMM || op == RING_WR_SEND_WITH_INV;

			r->num_sge = 0;
			r->flags |= RING_WR_INLINE;
			r->inline_len = lens[i];
			r->num_slots = lens[i] <= 32 ? 1
				: lens[i] < 992	     ? 1 + (lens[i] + 31) / 64
						     : 16;
			expect_status(r, takes && lens[i] <= 400 ? WC_SUCCESS : WC_LOC_QP_OP_ERR,
				      "inline_len", lens[i]);
			r->num_sge = 1;
			expect_status(r, WC_LOC_QP_OP_ERR, "inline with an SGE", lens[i]);
			r->num_sge = 0;
			r->num_slots = r->num_slots == 16 ? 15 : r->num_slots + 1;
			expect_status(r, WC_LOC_QP_OP_ERR, "inline slots", lens[i]);
		}
	for (uint32_t n = 0; n < 20; n++) { /* ATOMIC WRITE carries eight bytes */
		struct ring_wqe *r = fx_wqe(buf, RING_WR_ATOMIC_WRITE, NULL, 0);

		r->flags |= RING_WR_INLINE;
		r->inline_len = n;
		expect_status(r, n == 8 ? WC_SUCCESS : WC_LOC_QP_OP_ERR, "atomic write", n);
	}
}
END_TEST

START_TEST(refuse__inline_len_without_inline)
{
	for (unsigned int op = 0; op < RING_WR_OPCODE_COUNT; op++) {
		struct ring_wqe *r = well_formed(op);

		r->inline_len = 5;
		expect_status(r, op == RING_WR_FLUSH ? WC_SUCCESS : WC_LOC_QP_OP_ERR, "opcode", op);
	}
}
END_TEST

/* Placement in bits 0 to 3: global, persistent or both; selectivity above: a range or all. */
START_TEST(refuse__flush)
{
	for (uint64_t v = 0; v < 256; v++) {
		struct ring_wqe *r = well_formed(RING_WR_FLUSH);
		uint32_t type = v & 15;

		r->flush = (uint32_t)v;
		expect_status(r, type >= 1 && type <= 3 && v < 32 ? WC_SUCCESS : WC_LOC_QP_OP_ERR,
			      "flush", v);
	}
	for (unsigned int bit = 8; bit < 32; bit++) {
		struct ring_wqe *r = well_formed(RING_WR_FLUSH);

		r->flush |= 1u << bit;
		expect_status(r, WC_LOC_QP_OP_ERR, "flush", r->flush);
	}
}
END_TEST

/* B174: 2^31 bytes, and not one more. */
START_TEST(refuse__lengths)
{
	struct ring_sge two[2] = {{0, 1u << 31, 1}, {0, 0, 1}};
	struct ring_sge many[RING_MAX_SGE];
	struct ring_wqe *r;

	expect_status(fx_wqe(buf, RING_WR_SEND, two, 2), WC_SUCCESS, "2^31", 0);
	two[1].length = 1;
	expect_status(fx_wqe(buf, RING_WR_SEND, two, 2), WC_LOC_LEN_ERR, "2^31 + 1", 0);
	/* a sum that would be small in 32 bits */
	for (unsigned int i = 0; i < RING_MAX_SGE; i++)
		many[i] = (struct ring_sge){0, 1u << 31, 1};
	expect_status(fx_wqe(buf, RING_WR_RDMA_READ, many, RING_MAX_SGE), WC_LOC_LEN_ERR, "sum", 0);
	r = well_formed(RING_WR_FLUSH);
	r->flush_len = (1u << 31) + 1;
	expect_status(r, WC_LOC_LEN_ERR, "flush", 0);
	for (uint32_t n = 0; n < 20; n++) {
		r = well_formed(RING_WR_ATOMIC_FETCH_AND_ADD);
		r->atomic.sge.length = n;
		expect_status(r, n == 8 ? WC_SUCCESS : WC_LOC_QP_OP_ERR, "atomic", n);
	}
	r = well_formed(RING_WR_ATOMIC_CMP_AND_SWP);
	r->num_sge = 0;
	expect_status(r, WC_LOC_QP_OP_ERR, "atomic, no SGE", 0);
	r->num_sge = 2;
	expect_status(r, WC_LOC_QP_OP_ERR, "atomic, two SGEs", 0);
	r = fx_wqe(buf, RING_WR_LOCAL_INV, two, 1);
	expect_status(r, WC_LOC_QP_OP_ERR, "SGE of an invalidate", 0);
}
END_TEST

START_TEST(incredible__slot_counts)
{
	for (unsigned int n = 0; n < 256; n++) {
		struct fx *f = fx_new(2, 1, 1, 0);
		struct ring_wqe *r = fx_wqe(buf, RING_WR_SEND, NULL, 0);
		struct verbs_wqe *q;
		int ret;

		r->num_slots = (uint8_t)n;
		fx_post(f, buf, 3); /* three slots are there */
		ret = verbs_sq_fetch(&f->w, &f->qp, &q);
		ck_assert_int_eq(ret, n == 0 || n > 3 ? -EBADMSG : 1);
		if (ret == 1)
			verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);
		fx_free(f);
	}
}
END_TEST

START_TEST(incredible__tails)
{
	static const uint32_t tails[] = {FX_SLOTS + 1, 0x80000000u, 0xffffffffu, 1000};

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct fx *f = fx_new(2, 1, 1, 5);
		struct verbs_wqe *q = NULL;
		struct verbs_rwqe r;

		f->client.sq_tail = 5 + tails[i];
		f->client.rq_tail = 5 + tails[i];
		ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), -EBADMSG);
		ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), -EBADMSG);
		ck_assert_uint_eq(verbs_rq_count(&f->qp), 0);
		ck_assert_uint_eq(counter_read(&f->w.counter[VERBS_C_TAIL_BAD]), 2);
		fx_free(f);
	}
}
END_TEST

/* One that never completes anything leaves shadows to others, and is told that it did not. */
START_TEST(pools__a_share_of_them)
{
	struct fx *f = fx_new(4, 4, 1, 0);
	struct verbs_share other = {.used = {0}};
	struct verbs_wqe *q[6], *more;

	fill_list();
	fx_wqe(buf, RING_WR_SEND, list, 1);
	for (unsigned int i = 0; i < 7; i++)
		fx_post(f, buf, 1);
	for (unsigned int i = 0; i < 4; i++)
		q[i] = fetch(f);
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &more), -EAGAIN);
	ck_assert_uint_eq(counter_read(&f->w.everyone.refused[VERBS_POOL_WQE]), 1);
	ck_assert_uint_eq(f->w.num_starved, 1);
	verbs_run_remove(&f->w, &f->qp);
	f->qp.share = &other; /* as another context's QP */
	q[4] = fetch(f);
	q[5] = fetch(f);
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &more), -EAGAIN);
	ck_assert_uint_eq(counter_read(&other.refused[VERBS_POOL_WQE]), 1);
	verbs_run_remove(&f->w, &f->qp);
	other.used[VERBS_POOL_WQE] += 4; /* all are completed by one */
	for (unsigned int i = 0; i < 6; i++)
		verbs_complete_send(&f->w, &f->qp, q[i], WC_SUCCESS);
	ck_assert_uint_eq(other.used[VERBS_POOL_WQE], 0);
	fx_free(f);
}
END_TEST

START_TEST(pools__empty_and_again)
{
	struct fx *f = fx_new(2, 1, 1, 0);
	struct verbs_wqe *q[2], *more;

	fill_list();
	fx_wqe(buf, RING_WR_SEND, list, 5);
	fx_post(f, buf, 2);
	fx_post(f, buf, 2);
	q[0] = fetch(f);
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &more), -EAGAIN); /* no block */
	ck_assert_uint_eq(f->qp.sq.head, 2);
	ck_assert_uint_eq(f->w.shadows_used, 1);
	verbs_complete_send(&f->w, &f->qp, q[0], WC_SUCCESS);
	q[0] = fetch(f);
	fx_wqe(buf, RING_WR_SEND, list, 1);
	fx_post(f, buf, 1);
	fx_post(f, buf, 1);
	q[1] = fetch(f);
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &more), -EAGAIN); /* no shadow */
	ck_assert_uint_eq(counter_read(&f->w.counter[VERBS_C_SHADOW_EMPTY]), 2);
	ck_assert_ptr_eq(f->qp.wqe_head, q[0]);
	ck_assert_ptr_eq(q[0]->next, q[1]);
	verbs_complete_send(&f->w, &f->qp, q[0], WC_SUCCESS);
	verbs_complete_send(&f->w, &f->qp, q[1], WC_SUCCESS);
	q[0] = fetch(f);
	ck_assert_uint_eq(q[0]->wqe_index, 5);
	verbs_complete_send(&f->w, &f->qp, q[0], WC_SUCCESS);
	fx_free(f);
}
END_TEST

/* Whatever the slots hold, the shadow that says SUCCESS keeps all the promises. */
START_TEST(hostile__random)
{
	struct fx *f = fx_new(2, 1, 1, 0xffff0000u);
	uint64_t s = 0x5eed;

	for (unsigned int n = 0; n < 50000; n++) {
		struct verbs_wqe *q = NULL;
		struct ring_wqe *r;
		struct ring_cqe e;
		uint64_t sum = 0;
		int ret;

		for (size_t i = 0; i < FX_SLOTS * RING_SLOT_SIZE / 8; i++)
			((uint64_t *)(void *)f->sq)[i] = fx_random(&s);
		r = (struct ring_wqe *)(void *)fx_slot(f->sq, f->qp.sq.head);
		f->qp.type = matrix_type[fx_random(&s) % 6];
		if (fx_random(&s) % 8) { /* near enough to be let in now and then */
			r->opcode &= 15;
			r->flags &= 15;
			r->num_sge &= 7;
			r->num_slots = (uint8_t)(1 + (r->num_slots & 1));
			r->inline_len = (r->flags & RING_WR_INLINE) ? r->inline_len & 127 : 0;
			for (int i = 0; i < 2; i++)
				r->sge[i].length &= 0xffffff;
		}
		f->client.sq_tail = f->qp.sq.head + (uint32_t)(fx_random(&s) % (FX_SLOTS + 2));
		ret = verbs_sq_fetch(&f->w, &f->qp, &q);
		if (ret != 1) {
			ck_assert(ret == 0 || ret == -EBADMSG);
			verbs_qp_drop(&f->w, &f->qp);
			continue;
		}
		if (q->status == WC_SUCCESS) {
			ck_assert_uint_le(q->num_sge, RING_MAX_SGE);
			ck_assert_uint_le(q->length, 1u << 31);
			for (unsigned int i = 0; i < q->num_sge; i++)
				sum += verbs_wqe_sgl(q).sge[i].length;
			ck_assert(q->num_sge == 0 || sum == q->length);
			ck_assert(q->num_sge <= VERBS_WQE_SGES || q->block != NULL);
			if (q->flags & RING_WR_INLINE)
				ck_assert_uint_le(q->length, f->qp.max_inline);
		}
		verbs_complete_send(&f->w, &f->qp, q, q->status);
		verbs_qp_drop(&f->w, &f->qp);
		while (fx_poll(f, &e))
			;
	}
	fx_free(f);
}
END_TEST

START_TEST(recv__lists)
{
	fill_list();
	for (uint32_t at = 0; at < FX_SLOTS; at++)
		for (uint8_t n = 0; n <= RING_MAX_SGE; n++) {
			struct fx *f = fx_new(1, 1, 1, at - 8);
			struct verbs_rwqe r;
			uint32_t sum = 0;

			fx_rwqe(buf, list, n);
			fx_post_recv(f, buf, ring_rwqe_slots(n));
			ck_assert_uint_eq(verbs_rq_count(&f->qp), 1);
			ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), 1);
			ck_assert(r.valid);
			ck_assert_uint_eq(r.wqe_index, at - 8);
			ck_assert_uint_eq(r.num_sge, n);
			for (uint32_t i = 0; i < n; i++) {
				ck_assert_uint_eq(verbs_rwqe_sgl(&r).sge[i].addr, list[i].addr);
				ck_assert_uint_eq(verbs_rwqe_sgl(&r).sge[i].lkey, list[i].lkey);
				sum += list[i].length;
			}
			ck_assert_uint_eq(r.length, sum);
			ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), 0);
			verbs_rwqe_release(&f->w, &r);
			fx_free(f);
		}
}
END_TEST

START_TEST(recv__malformed)
{
	fill_list();
	for (unsigned int n = 0; n < 256; n++)
		for (unsigned int slots = 0; slots < 20; slots++) {
			struct fx *f = fx_new(1, 1, 1, 0);
			struct ring_rwqe *r = fx_rwqe(buf, list, RING_MAX_SGE);
			struct verbs_rwqe out = {0};
			bool ok = n <= RING_MAX_SGE && slots == (n <= 3 ? 1 : 1 + n / 4);

			r->num_sge = (uint8_t)n;
			r->num_slots = (uint8_t)slots;
			fx_post_recv(f, buf, FX_SLOTS);
			if (slots == 0 || slots > RING_MAX_WQE_SLOTS) {
				ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &out), -EBADMSG);
			} else {
				ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &out), 1);
				ck_assert_msg(out.valid == ok, "num_sge %u slots %u", n, slots);
				ck_assert_uint_eq(out.num_sge, ok ? n : 0);
				ck_assert_uint_eq(f->qp.rq.head, slots);
			}
			verbs_rwqe_release(&f->w, &out);
			fx_free(f);
		}
}
END_TEST

START_TEST(recv__length_is_cut)
{
	struct ring_sge two[2] = {{0, 0xffffffffu, 1}, {0, 0xffffffffu, 1}};
	struct fx *f = fx_new(1, 1, 1, 0);
	struct verbs_rwqe r;

	fx_rwqe(buf, two, 2);
	fx_post_recv(f, buf, 1);
	ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), 1);
	ck_assert(r.valid);
	ck_assert_uint_eq(r.length, 1u << 31);
	verbs_rwqe_release(&f->w, &r);
	fx_free(f);
}
END_TEST

START_TEST(recv__count)
{
	struct fx *f = fx_new(1, 4, 1, 0xfffffff5u);
	struct verbs_rwqe r;
	uint32_t posted = 0;
	uint64_t s = 3;

	fill_list();
	for (unsigned int i = 0; i < 2000; i++) {
		uint8_t n = (uint8_t)(fx_random(&s) % 12);
		uint32_t room = FX_SLOTS - (f->rq_tail - f->qp.rq.head);

		if (fx_random(&s) % 2 && ring_rwqe_slots(n) <= room) {
			fx_rwqe(buf, list, n);
			fx_post_recv(f, buf, ring_rwqe_slots(n));
			posted++;
		} else if (posted) {
			ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), 1);
			verbs_rwqe_release(&f->w, &r);
			posted--;
		}
		if (fx_random(&s) % 3 == 0)
			ck_assert_uint_eq(verbs_rq_count(&f->qp), posted);
	}
	f->qp.max_recv_sge = 3; /* then each request is one slot */
	fx_rwqe(buf, list, 3);
	while (verbs_rq_fetch(&f->w, &f->qp, &r) == 1)
		verbs_rwqe_release(&f->w, &r);
	fx_post_recv(f, buf, 1);
	ck_assert_uint_eq(verbs_rq_count(&f->qp), 1);
	fx_free(f);
}
END_TEST

/* Many at once: so many a look, from where the last one stopped, and none twice. */
START_TEST(recv__count_bounded)
{
	struct fx *f = fx_new(1, 4, 1, 0);
	uint8_t *slots = aligned_alloc(RING_LINE, 256 * RING_SLOT_SIZE);
	struct verbs_rwqe r;

	memset(slots, 0, 256 * RING_SLOT_SIZE);
	for (uint32_t i = 0; i < 256; i++)
		slots[i * RING_SLOT_SIZE] = 1;
	f->qp.rq.slots = slots;
	f->qp.rq.mask = 255;
	f->client.rq_tail = 256;
	ck_assert_uint_eq(verbs_rq_count(&f->qp), 64);
	ck_assert_uint_eq(verbs_rq_count(&f->qp), 128);
	for (unsigned int i = 0; i < 130; i++)
		ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), 1);
	/* taken further than it was counted */
	ck_assert_uint_eq(verbs_rq_count(&f->qp), 64);
	ck_assert_uint_eq(verbs_rq_count(&f->qp), 126);
	free(slots);
	fx_free(f);
}
END_TEST

/* A client that changes slot counts after they were counted gets no more than it has slots. */
START_TEST(recv__count_hostile)
{
	uint64_t s = 9;

	for (unsigned int i = 0; i < 500; i++) {
		struct fx *f = fx_new(1, 4, 1, 0);
		struct verbs_rwqe r;

		for (unsigned int k = 0; k < 8; k++) {
			for (uint32_t j = 0; j < FX_SLOTS; j++)
				f->rq[j * RING_SLOT_SIZE] = (uint8_t)(fx_random(&s) % 4);
			f->client.rq_tail = f->qp.rq.head + (uint32_t)(fx_random(&s) % 17);
			ck_assert_uint_le(verbs_rq_count(&f->qp), FX_SLOTS);
			ck_assert_uint_le(verbs_rq_count(&f->qp), f->qp.rq.tail - f->qp.rq.head);
			if (verbs_rq_fetch(&f->w, &f->qp, &r) == 1)
				verbs_rwqe_release(&f->w, &r);
		}
		fx_free(f);
	}
}
END_TEST

START_TEST(recv__no_queue)
{
	struct fx *f = fx_new(1, 1, 1, 0);
	struct verbs_rwqe r;
	struct verbs_wqe *q;

	f->qp.rq = f->qp.sq = (struct ring_wq_cons){0};
	ck_assert_int_eq(verbs_rq_fetch(&f->w, &f->qp, &r), 0);
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), 0);
	ck_assert_uint_eq(verbs_rq_count(&f->qp), 0);
	ck_assert(!verbs_sq_has_work(&f->qp));
	ck_assert(verbs_qp_flush(&f->w, &f->qp, 10));
	verbs_qp_drop(&f->w, &f->qp);
	fx_free(f);
}
END_TEST

UNIT_MAIN("verbs_wqe", fetch__every_field, fetch__lists_wrap, fetch__atomic_bind_reg_flush,
	  fetch__opcode_matrix, refuse__flags, refuse__slots_and_sges, refuse__max_sge,
	  refuse__inline, refuse__inline_len_without_inline, refuse__flush, refuse__lengths,
	  incredible__slot_counts, incredible__tails, pools__a_share_of_them,
	  pools__empty_and_again, hostile__random,
	  recv__lists, recv__malformed, recv__length_is_cut, recv__count, recv__count_bounded,
	  recv__count_hostile,
	  recv__no_queue)
