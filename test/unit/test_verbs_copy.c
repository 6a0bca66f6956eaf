/* SPDX-License-Identifier: BSD-3-Clause */
/* Gather, scatter, place and atomics over mapped and foreign memory, against a flat model. */
#include <errno.h>

#include "base_crc.h"
#include "verbs_fixture.h"

#define NUM(a) (sizeof(a) / sizeof((a)[0]))

static uint8_t buf[RING_MAX_WQE_SLOTS * RING_SLOT_SIZE];
static uint8_t dst[FX_MEM], src[FX_MEM];

/** A started request of this list; the caller completes it. */
static struct verbs_wqe *
start(struct fx *f, uint8_t opcode, const struct ring_sge *sge, uint8_t num)
{
	struct verbs_wqe *q = NULL;

	fx_wqe(buf, opcode, sge, num);
	fx_post(f, buf, ring_wqe_slots_sge(num));
	ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), 1);
	ck_assert_int_eq(q->status, WC_SUCCESS);
	return q;
}

static void
done(struct fx *f, struct verbs_wqe *q)
{
	verbs_complete_send(&f->w, &f->qp, q, WC_SUCCESS);
	verbs_cq_burst_end(&f->w);
}

static struct ring_sge
sge(uint32_t key, uint32_t off, uint32_t len)
{
	return (struct ring_sge){FX_IOVA + off, len, key};
}

/** What a key's byte at an offset is: the mapped one or the far one. */
static uint8_t *
byte_at(struct fx *f, uint32_t key, uint32_t off)
{
	bool far = key == f->far_key || (key == f->mix_key && off / 4096 % 2 == 0);

	return (far ? f->far : f->mem) + off;
}

static struct fx *
fx_patterned(void)
{
	struct fx *f = fx_new(4, 2, 4, 0);

	fx_pattern(f->mem, FX_MEM, 1);
	fx_pattern(f->far, FX_MEM, 101);
	fx_pattern(src, FX_MEM, 37);
	memset(dst, 0, sizeof(dst));
	return f;
}

START_TEST(gather__one_mapped)
{
	struct fx *f = fx_patterned();
	struct ring_sge s = sge(f->key, 100, 1000);
	struct verbs_wqe *q = start(f, RING_WR_SEND, &s, 1);
	enum wc_status why = WC_SUCCESS;
	uint32_t crc = 5;

	ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 10, 300, dst, &crc, &why), VERBS_DONE);
	ck_assert_mem_eq(dst, f->mem + 110, 300);
	ck_assert_uint_eq(dst[300], 0);
	ck_assert_uint_eq(crc, crc32_update(5, f->mem + 110, 300));
	ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 990, 10, dst, NULL, &why), VERBS_DONE);
	ck_assert_mem_eq(dst, f->mem + 1090, 10);
	ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 1000, 0, dst, &crc, &why), VERBS_DONE);
	ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 1000, 1, dst, &crc, &why), VERBS_ERROR);
	ck_assert_int_eq(why, WC_LOC_LEN_ERR);
	ck_assert_int_eq(
		verbs_gather(&f->w, &f->qp, q, 0xffffffff, 2, dst, &crc, &why), VERBS_ERROR);
	done(f, q);
	fx_free(f);
}
END_TEST

/* B162: inline of every length, at each place of the ring, cut anywhere. */
START_TEST(gather__inline)
{
	for (uint32_t at = 0; at < FX_SLOTS; at++)
		for (uint32_t n = 0; n <= 400; n += 13) {
			struct fx *f = fx_new(1, 0, 0, at);
			struct ring_wqe *r = fx_wqe(buf, RING_WR_SEND, NULL, 0);
			enum wc_status why;
			struct verbs_wqe *q;
			uint32_t crc = 1;

			r->flags |= RING_WR_INLINE;
			r->inline_len = n;
			r->num_slots = (uint8_t)ring_wqe_slots_inline(n);
			fx_pattern(buf + 32, n, 3);
			fx_pattern(src, n, 3);
			fx_post(f, buf, r->num_slots);
			ck_assert_int_eq(verbs_sq_fetch(&f->w, &f->qp, &q), 1);
			ck_assert_uint_eq(q->length, n);
			for (uint32_t off = 0; off < n; off += 50) {
				uint32_t len = n - off < 50 ? n - off : 50;

				ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, off, len, dst + off,
							      &crc, &why), VERBS_DONE);
			}
			ck_assert_mem_eq(dst, src, n);
			ck_assert_uint_eq(crc, crc32_update(1, src, n));
			done(f, q);
			fx_free(f);
		}
}
END_TEST

START_TEST(gather__keys_refused)
{
	struct fx *f = fx_patterned();
	struct ring_sge bad[] = {
		sge(f->key ^ 1, 0, 8),		  /* variant */
		sge(f->key ^ 0x80000000, 0, 8),	  /* index */
		sge(f->key, FX_MEM - 7, 8),	  /* one byte too far */
		{FX_IOVA - 1, 8, f->key},	  /* one too early */
		{0xfffffffffffffffcull, 8, f->key}, /* wraps */
	};
	uint32_t crc = 9;

	for (size_t i = 0; i < NUM(bad); i++) {
		struct verbs_wqe *q = start(f, RING_WR_SEND, &bad[i], 1);
		enum wc_status why = WC_SUCCESS;

		ck_assert_int_eq(
			verbs_gather(&f->w, &f->qp, q, 0, 8, dst, &crc, &why), VERBS_ERROR);
		ck_assert_int_eq(why, WC_LOC_PROT_ERR);
		/* the part beyond the wrap must not land on low addresses either */
		ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 7, 1, dst, &crc, &why),
				 i == 3 ? VERBS_DONE : VERBS_ERROR);
		done(f, q);
	}
	ck_assert_uint_eq(counter_read(&f->w.refused[MR_NO_KEY]), 4);
	ck_assert_uint_eq(counter_read(&f->w.refused[MR_BAD_RANGE]), 2 + 1 + 2);
	f->qp.pd = FX_PD + 1;
	struct ring_sge s = sge(f->key, 0, 8);
	struct verbs_wqe *q = start(f, RING_WR_SEND, &s, 1);
	enum wc_status why = WC_SUCCESS;
	ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 0, 8, dst, &crc, &why), VERBS_ERROR);
	ck_assert_uint_eq(counter_read(&f->w.refused[MR_BAD_PD]), 1);
	done(f, q);
	fx_free(f);
}
END_TEST

/* An iova near the top: an element whose later bytes would wrap to a region at low addresses. */
START_TEST(gather__wrapping_element)
{
	struct fx *f = fx_patterned();
	struct ring_sge s = {0ull - 0x20000, 0x40000, f->key};
	struct verbs_wqe *q = start(f, RING_WR_SEND, &s, 1);
	enum wc_status why;
	uint32_t crc = 0;

	ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 0x20000 + FX_IOVA, 8, dst, &crc, &why),
			 VERBS_ERROR);
	ck_assert_int_eq(why, WC_LOC_PROT_ERR);
	done(f, q);
	fx_free(f);
}
END_TEST

/** Gather part of a list and compare, whatever memory it is in. */
static void
gather_and_compare(struct fx *f, const struct ring_sge *l, uint8_t num, uint32_t off, uint32_t len)
{
	struct verbs_wqe *q = start(f, RING_WR_SEND, l, num);
	uint8_t want[FX_MEM];
	uint32_t n = 0, crc = 77;
	enum wc_status why;
	enum verbs_io_result r;

	for (unsigned int i = 0; i < num; i++)
		for (uint32_t k = 0; k < l[i].length; k++)
			want[n++] = *byte_at(f, l[i].lkey, (uint32_t)(l[i].addr - FX_IOVA) + k);
	memset(dst, 0xee, sizeof(dst));
	r = verbs_gather(&f->w, &f->qp, q, off, len, dst, &crc, &why);
	if (r == VERBS_PENDING) {
		struct verbs_io *io = f->io[--f->num_io];
		uint64_t original;
		int status;

		ck_assert_ptr_eq(f->qp.io[VERBS_TX], io);
		ck_assert_ptr_eq(io->lane, f);
		ck_assert_uint_eq(crc, 77);
		ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, off, len, dst, &crc, &why),
				 VERBS_AGAIN); /* parked */
		fx_io_copy(io);
		ck_assert_ptr_eq(verbs_io_finish(&f->w, io, &status, &original), &f->qp);
		ck_assert_int_eq(status, 0);
		ck_assert_ptr_null(f->qp.io[VERBS_TX]);
	} else {
		ck_assert_int_eq(r, VERBS_DONE);
		ck_assert_uint_eq(crc, crc32_update(77, want + off, len));
	}
	ck_assert_mem_eq(dst, want + off, len);
	ck_assert_uint_eq(dst[len], 0xee);
	done(f, q);
	struct ring_cqe e;
	ck_assert(fx_poll(f, &e));
}

START_TEST(gather__lists_of_all_sorts)
{
	struct fx *f = fx_patterned();
	uint64_t s = 42;
	unsigned int pending = 0;

	for (unsigned int n = 0; n < 3000; n++) {
		struct ring_sge l[RING_MAX_SGE];
		uint8_t num = (uint8_t)(1 + fx_random(&s) % (n % 4 ? 3 : RING_MAX_SGE));
		uint32_t sum = 0, off, keys[] = {f->key, f->far_key, f->mix_key};

		for (unsigned int i = 0; i < num; i++) {
			uint32_t len = (uint32_t)(fx_random(&s) % (num > 3 ? 200 : 5000));

			l[i] = sge(keys[fx_random(&s) % (n % 3 ? 3 : 1)],
				   (uint32_t)(fx_random(&s) % (FX_MEM - len)), len);
			sum += len;
		}
		off = sum ? (uint32_t)(fx_random(&s) % sum) : 0;
		gather_and_compare(f, l, num, off, (uint32_t)(fx_random(&s) % (sum - off + 1)));
	}
	pending = (unsigned int)counter_read(&f->w.counter[VERBS_C_IO_SUBMIT]);
	ck_assert_uint_gt(pending, 500);
	ck_assert(!mr_busy(f->w.mrs, f->far_key));
	ck_assert(!mr_busy(f->w.mrs, f->mix_key));
	fx_free(f);
}
END_TEST

/* Elements of no bytes need no key; others do, once their bytes are wanted. */
START_TEST(gather__empty_elements)
{
	struct fx *f = fx_patterned();
	struct ring_sge l[3] = {{1, 0, 0xdead}, sge(f->key, 0, 8), {1, 0, 0xdead}};
	struct verbs_wqe *q = start(f, RING_WR_SEND, l, 3);
	enum wc_status why;
	uint32_t crc = 0;

	ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 0, 8, dst, &crc, &why), VERBS_DONE);
	ck_assert_int_eq(verbs_sgl_check(&f->w, &f->qp, verbs_wqe_sgl(q), 0), WC_SUCCESS);
	ck_assert_int_eq(verbs_sgl_check(&f->w, &f->qp, verbs_wqe_sgl(q), MR_LOCAL_WRITE),
			 WC_SUCCESS);
	done(f, q);
	l[2].length = 1;
	q = start(f, RING_WR_SEND, l, 3);
	ck_assert_int_eq(verbs_sgl_check(&f->w, &f->qp, verbs_wqe_sgl(q), 0), WC_LOC_PROT_ERR);
	ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 0, 9, dst, &crc, &why), VERBS_ERROR);
	done(f, q);
	fx_free(f);
}
END_TEST

static struct verbs_sgl
sgl_of(struct verbs_sge *v, const struct ring_sge *l, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++)
		v[i] = (struct verbs_sge){l[i].addr, l[i].length, l[i].lkey};
	return (struct verbs_sgl){v, num, FX_PD};
}

/** Both memories as they must be after a scatter. */
static uint8_t model_mem[FX_MEM], model_far[FX_MEM];

static void
model_write(struct fx *f, const struct ring_sge *l, uint32_t num, uint32_t off, uint32_t len)
{
	uint32_t pos = 0, at = 0;

	memcpy(model_mem, f->mem, FX_MEM);
	memcpy(model_far, f->far, FX_MEM);
	for (unsigned int i = 0; i < num; i++)
		for (uint32_t k = 0; k < l[i].length; k++, pos++) {
			uint32_t o = (uint32_t)(l[i].addr - FX_IOVA) + k;

			if (pos < off || at >= len)
				continue;
			if (byte_at(f, l[i].lkey, o) == f->mem + o)
				model_mem[o] = src[at++];
			else
				model_far[o] = src[at++];
		}
}

START_TEST(scatter__lists_of_all_sorts)
{
	struct fx *f = fx_patterned();
	uint64_t s = 4711;

	for (unsigned int n = 0; n < 1500; n++) {
		struct ring_sge l[4];
		struct verbs_sge v[4];
		uint32_t num = 1 + (uint32_t)(fx_random(&s) % 4), sum = 0, off, len;
		uint32_t keys[] = {f->key, f->far_key, f->mix_key};
		enum wc_status why;
		enum verbs_io_result r;

		for (unsigned int i = 0; i < num; i++) { /* quarters, so that none overlaps */
			uint32_t part = (uint32_t)(fx_random(&s) % 4000);

			l[i] = sge(keys[fx_random(&s) % 3],
				   i * 4096 + (uint32_t)(fx_random(&s) % (4096 - part)), part);
			sum += part;
		}
		if (num == 1)
			l[0] = sge(l[0].lkey, 1000, sum = 11000);
		off = (uint32_t)(fx_random(&s) % (sum + 1));
		len = (uint32_t)(fx_random(&s) % (sum - off + 1));
		fx_pattern(src, len, (uint8_t)n);
		model_write(f, l, num, off, len);
		r = verbs_scatter(&f->w, &f->qp, sgl_of(v, l, num), off, src, len, &why);
		if (r == VERBS_PENDING) {
			struct verbs_io *io = f->io[--f->num_io];
			uint64_t original;
			int status;

			fx_io_copy(io);
			verbs_io_finish(&f->w, io, &status, &original);
			ck_assert_int_eq(status, 0);
		} else {
			ck_assert_int_eq(r, VERBS_DONE);
		}
		ck_assert_mem_eq(f->mem, model_mem, FX_MEM);
		ck_assert_mem_eq(f->far, model_far, FX_MEM);
	}
	ck_assert(!mr_busy(f->w.mrs, f->mix_key));
	fx_free(f);
}
END_TEST

/* Nothing is written before all is known to be writable, and the last bytes come last. */
START_TEST(scatter__all_or_nothing)
{
	struct fx *f = fx_patterned();
	struct ring_sge l[3] = {sge(f->key, 0, 64), sge(f->key, 4096, 64), sge(f->key + 1, 0, 64)};
	struct verbs_sge v[3];
	enum wc_status why = WC_SUCCESS;

	model_write(f, l, 0, 0, 0);
	ck_assert_int_eq(verbs_scatter(&f->w, &f->qp, sgl_of(v, l, 3), 0, src, 192, &why),
			 VERBS_ERROR);
	ck_assert_int_eq(why, WC_LOC_PROT_ERR);
	ck_assert_int_eq(verbs_scatter(&f->w, &f->qp, sgl_of(v, l, 2), 0, src, 129, &why),
			 VERBS_ERROR);
	ck_assert_int_eq(why, WC_LOC_LEN_ERR);
	ck_assert_int_eq(
		verbs_scatter(&f->w, &f->qp, sgl_of(v, l, 0), 0, src, 1, &why), VERBS_ERROR);
	ck_assert_mem_eq(f->mem, model_mem, FX_MEM);
	ck_assert_int_eq(verbs_scatter(&f->w, &f->qp, sgl_of(v, l, 3), 0, src, 128, &why),
			 VERBS_DONE); /* the bad one is not needed */
	fx_free(f);
}
END_TEST

START_TEST(scatter__needs_local_write)
{
	struct fx *f = fx_patterned();
	struct mr_seg seg = {0, FX_MEM, MR_SEG_DIRECT, f->mem, 0};
	uint32_t ro = fx_register(f, &seg, 1, FX_MEM, MR_REMOTE_READ);
	struct ring_sge l = sge(ro, 0, 64);
	struct verbs_sge v;
	enum wc_status why;

	ck_assert_int_eq(verbs_scatter(&f->w, &f->qp, sgl_of(&v, &l, 1), 0, src, 64, &why),
			 VERBS_ERROR);
	ck_assert_uint_eq(counter_read(&f->w.refused[MR_BAD_ACCESS]), 1);
	ck_assert_int_eq(verbs_sgl_check(&f->w, &f->qp, sgl_of(&v, &l, 1), MR_LOCAL_WRITE),
			 WC_LOC_PROT_ERR);
	fx_free(f);
}
END_TEST

static struct mr_ref
ref_of(struct fx *f, uint32_t key, uint32_t off, uint32_t len)
{
	struct mr_ref ref;

	ck_assert_int_eq(mr_check(f->w.mrs, key, FX_PD, FX_QPN, FX_IOVA + off, len,
				  MR_REMOTE_WRITE, &ref), MR_OK);
	return ref;
}

/* far page, mapped page, far page, start of a mapped page: the last waits for the copier. */
START_TEST(place__mixed_last_bytes_last)
{
	struct fx *f = fx_patterned();
	struct ring_sge l = sge(f->mix_key, 4000, 8500);
	struct mr_ref ref = ref_of(f, f->mix_key, 4000, 8500);
	struct verbs_io *io;
	uint64_t original;
	int status;

	model_write(f, &l, 1, 0, 8500);
	ck_assert_int_eq(verbs_place(&f->w, &f->qp, &ref, f->mix_key, 0, src, 8500), VERBS_PENDING);
	io = f->io[0];
	ck_assert_ptr_eq(f->qp.io[VERBS_RX], io);
	ck_assert_uint_eq(io->num, 2);
	ck_assert_mem_eq(f->mem + 4096, model_mem + 4096, 4096);
	ck_assert_mem_ne(f->mem + 12288, model_mem + 12288, 212); /* not yet */
	fx_io_copy(io);
	ck_assert_mem_ne(f->mem + 12288, model_mem + 12288, 212);
	verbs_io_finish(&f->w, io, &status, &original);
	ck_assert_int_eq(status, 0);
	ck_assert_mem_eq(f->mem, model_mem, FX_MEM);
	ck_assert_mem_eq(f->far, model_far, FX_MEM);
	fx_free(f);
}
END_TEST

/* The copier fails, or the key dies meanwhile: the last bytes do not land. */
START_TEST(place__mixed_fails_late)
{
	for (int killed = 0; killed < 2; killed++) {
		struct fx *f = fx_patterned();
		struct mr_ref ref = ref_of(f, f->mix_key, 4000, 200);
		struct verbs_io *io;
		uint64_t original;
		int status;

		memcpy(model_mem, f->mem, FX_MEM);
		ck_assert_int_eq(verbs_place(&f->w, &f->qp, &ref, f->mix_key, 0, src, 200),
				 VERBS_PENDING);
		io = f->io[0];
		ck_assert(mr_busy(f->w.mrs, f->mix_key) || !killed);
		if (killed)
			ck_assert_int_eq(mr_kill(f->w.mrs, f->mix_key), 0);
		else
			io->status = -EFAULT;
		ck_assert_ptr_eq(verbs_io_finish(&f->w, io, &status, &original), &f->qp);
		ck_assert_int_eq(status, killed ? -EACCES : -EFAULT);
		ck_assert_mem_eq(f->mem, model_mem, FX_MEM);
		ck_assert_uint_eq(counter_read(&f->w.counter[VERBS_C_IO_FAULT]), !killed);
		if (killed) {
			ck_assert(!mr_busy(f->w.mrs, f->mix_key));
			ck_assert_ptr_null(mr_release(f->w.mrs, f->mix_key));
		}
		fx_free(f);
	}
}
END_TEST

/* The QP goes while the copier works: quietly, once, with nothing of the QP touched. */
START_TEST(io__abandoned)
{
	struct fx *f = fx_patterned();
	struct mr_ref ref = ref_of(f, f->mix_key, 4000, 200);
	struct ring_sge s = sge(f->far_key, 0, 100);
	struct verbs_wqe *q = start(f, RING_WR_SEND, &s, 1);
	uint32_t crc = 0;
	uint64_t original;
	enum wc_status why;
	int status;

	ck_assert(!verbs_io_abandon(&f->qp));
	ck_assert_int_eq(verbs_place(&f->w, &f->qp, &ref, f->mix_key, 0, src, 200), VERBS_PENDING);
	ck_assert_int_eq(verbs_gather(&f->w, &f->qp, q, 0, 100, dst, &crc, &why), VERBS_PENDING);
	f->io[0]->user = src;
	memcpy(model_mem, f->mem, FX_MEM);
	ck_assert(verbs_io_abandon(&f->qp));
	ck_assert(!verbs_io_abandon(&f->qp));
	ck_assert_ptr_null(f->qp.io[VERBS_TX]);
	ck_assert_ptr_null(f->qp.io[VERBS_RX]);
	verbs_qp_drop(&f->w, &f->qp);
	memset(&f->qp, 0xa5, sizeof(f->qp)); /* freed, as it were */
	for (int i = 0; i < 2; i++) {
		fx_io_copy(f->io[i]);
		ck_assert_ptr_eq(f->io[i]->user, i ? NULL : src);
		ck_assert_ptr_null(verbs_io_finish(&f->w, f->io[i], &status, &original));
		ck_assert_int_eq(status, 0);
	}
	ck_assert_mem_eq(f->mem, model_mem, FX_MEM);
	for (size_t i = 0; i < sizeof(f->qp); i++)
		ck_assert_uint_eq(((uint8_t *)&f->qp)[i], 0xa5);
	ck_assert(!mr_busy(f->w.mrs, f->mix_key));
	f->qp.wqe_head = NULL;
	fx_free(f);
}
END_TEST

START_TEST(io__none_free)
{
	struct fx *f = fx_new(2, 0, 1, 0);
	struct mr_ref ref = ref_of(f, f->mix_key, 4000, 200), far = ref_of(f, f->far_key, 0, 8);
	struct verbs_qp other = f->qp;
	uint64_t original;
	uint32_t crc = 3;
	int status;

	memset(src, 0x77, 200);
	ck_assert_int_eq(verbs_place(&f->w, &other, &far, f->far_key, 0, src, 8), VERBS_PENDING);
	ck_assert_int_eq(verbs_place(&f->w, &f->qp, &ref, f->mix_key, 0, src, 200), VERBS_AGAIN);
	ck_assert_int_eq(verbs_gather_ref(&f->w, &f->qp, &far, f->far_key, 0, 8, dst, &crc),
			 VERBS_AGAIN);
	ck_assert_int_eq(verbs_atomic(&f->w, &f->qp, &far, f->far_key, true, 0, 1, &original),
			 VERBS_AGAIN);
	ck_assert_uint_eq(crc, 3);
	for (uint32_t i = 0; i < FX_MEM; i++)
		ck_assert_uint_eq(f->mem[i], 0);
	ck_assert_ptr_null(f->qp.io[VERBS_RX]);
	verbs_io_finish(&f->w, f->io[0], &status, &original);
	ck_assert_int_eq(verbs_place(&f->w, &f->qp, &ref, f->mix_key, 0, src, 200), VERBS_PENDING);
	verbs_io_finish(&f->w, f->io[1], &status, &original);
	fx_free(f);
}
END_TEST

START_TEST(ref__gather_and_place_mapped)
{
	struct fx *f = fx_patterned();
	struct mr_ref ref = ref_of(f, f->key, 50, 1000);
	uint32_t crc = 8;

	ck_assert_int_eq(verbs_gather_ref(&f->w, &f->qp, &ref, f->key, 20, 600, dst, &crc),
			 VERBS_DONE);
	ck_assert_mem_eq(dst, f->mem + 70, 600);
	ck_assert_uint_eq(crc, crc32_update(8, f->mem + 70, 600));
	ck_assert_int_eq(verbs_place(&f->w, &f->qp, &ref, f->key, 20, src, 600), VERBS_DONE);
	ck_assert_mem_eq(f->mem + 70, src, 600);
	fx_free(f);
}
END_TEST

/* Regions cut so fine that an access has more foreign pieces than an io: refused, not overrun. */
START_TEST(ref__too_many_pieces)
{
	struct fx *f = fx_patterned();
	struct mr_seg segs[2 * VERBS_IO_PIECES + 2];
	uint32_t key;
	struct mr_ref ref;
	uint32_t crc = 0;

	for (unsigned int i = 0; i < NUM(segs); i++)
		segs[i] = (struct mr_seg){i * 8, 8, i % 2 ? MR_SEG_DIRECT : MR_SEG_FOREIGN,
					  i % 2 ? f->mem + i * 8 : NULL,
					  i % 2 ? 0 : (uintptr_t)f->far + i * 8};
	key = fx_register(f, segs, NUM(segs), NUM(segs) * 8, FX_ALL);
	ref = ref_of(f, key, 0, NUM(segs) * 8);
	memcpy(model_mem, f->mem, FX_MEM);
	ck_assert_int_eq(verbs_place(&f->w, &f->qp, &ref, key, 0, src, NUM(segs) * 8), VERBS_ERROR);
	ck_assert_int_eq(verbs_gather_ref(&f->w, &f->qp, &ref, key, 0, NUM(segs) * 8, dst, &crc),
			 VERBS_ERROR);
	ck_assert_mem_eq(f->mem, model_mem, FX_MEM);
	ck_assert_uint_eq(f->num_io, 0);
	fx_free(f);
}
END_TEST

/* A list over memory of two processes would need two lanes. */
START_TEST(list__two_lanes)
{
	struct fx *f = fx_patterned();
	struct mr_seg seg = {0, FX_MEM, MR_SEG_FOREIGN, NULL, (uintptr_t)f->far};
	struct mr_desc d = {.type = MR_TYPE_REGION, .pd = FX_PD, .access = FX_ALL, .iova = FX_IOVA,
			    .length = FX_MEM, .segs = &seg, .num_segs = 1, .lane = &d};
	enum wc_status why = WC_SUCCESS;
	struct verbs_sge v[2];
	struct ring_sge l[2];
	uint32_t key;

	ck_assert_int_eq(mr_register(f->w.mrs, &d, &key), 0);
	l[0] = sge(f->far_key, 0, 8);
	l[1] = sge(key, 0, 8);
	ck_assert_int_eq(verbs_scatter(&f->w, &f->qp, sgl_of(v, l, 2), 0, src, 16, &why),
			 VERBS_ERROR);
	ck_assert_int_eq(why, WC_LOC_PROT_ERR);
	ck_assert_uint_eq(f->num_io, 0);
	fx_free(f);
}
END_TEST

START_TEST(atomic__mapped_and_far)
{
	for (int far = 0; far < 2; far++) {
		struct fx *f = fx_patterned();
		uint32_t key = far ? f->far_key : f->key;
		uint64_t *word = (uint64_t *)(void *)((far ? f->far : f->mem) + 64);
		static const struct {
			bool cas;
			uint64_t operand, swap, after;
		} steps[] = {
			{true, 100, 200, 200}, {true, 100, 300, 200}, {false, 5, 0, 205},
			{false, UINT64_MAX, 0, 204}, {true, 204, 0, 0},
		};

		*word = 100;
		for (size_t i = 0; i < NUM(steps); i++) {
			struct mr_ref ref = ref_of(f, key, 64, 8);
			uint64_t before = *word, original = 0;
			int status;
			enum verbs_io_result r =
				verbs_atomic(&f->w, &f->qp, &ref, key, steps[i].cas,
					     steps[i].operand, steps[i].swap, &original);

			ck_assert_int_eq(r, far ? VERBS_PENDING : VERBS_DONE);
			if (far) {
				ck_assert_ptr_eq(f->qp.io[VERBS_RX], f->io[i]);
				fx_io_copy(f->io[i]);
				verbs_io_finish(&f->w, f->io[i], &status, &original);
			}
			ck_assert_uint_eq(original, before);
			ck_assert_uint_eq(*word, steps[i].after);
		}
		fx_free(f);
	}
}
END_TEST

/* The iova is aligned, the memory behind it is not, or is in two pieces. */
START_TEST(atomic__unaligned_memory)
{
	struct fx *f = fx_patterned();
	struct mr_seg odd = {0, 64, MR_SEG_DIRECT, f->mem + 4, 0};
	struct mr_seg odd_far = {0, 64, MR_SEG_FOREIGN, NULL, (uintptr_t)f->far + 4};
	struct mr_seg split[2] = {{0, 4, MR_SEG_DIRECT, f->mem, 0},
				  {4, 60, MR_SEG_FOREIGN, NULL, (uintptr_t)f->far}};
	const struct mr_seg *segs[] = {&odd, &odd_far, split};
	uint64_t original;

	for (unsigned int i = 0; i < 3; i++) {
		uint32_t key = fx_register(f, segs[i], i == 2 ? 2 : 1, 64, FX_ALL);
		struct mr_ref ref = ref_of(f, key, 0, 8);

		ck_assert_int_eq(verbs_atomic(&f->w, &f->qp, &ref, key, false, 1, 0, &original),
				 VERBS_ERROR);
	}
	ck_assert_uint_eq(f->num_io, 0);
	fx_free(f);
}
END_TEST

UNIT_MAIN("verbs_copy", gather__one_mapped, gather__inline, gather__keys_refused,
	  gather__wrapping_element, gather__lists_of_all_sorts, gather__empty_elements,
	  scatter__lists_of_all_sorts, scatter__all_or_nothing, scatter__needs_local_write,
	  place__mixed_last_bytes_last, place__mixed_fails_late, io__abandoned, io__none_free,
	  ref__gather_and_place_mapped, ref__too_many_pieces, list__two_lanes,
	  atomic__mapped_and_far, atomic__unaligned_memory)
