/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of bytes: what is refused, merged and found, over every border. */
#include <errno.h>

#include "mr_fixture.h"

static uint8_t bytes[4096];
static int lane;

#define DIRECT(at, len, p) \
	{ \
		.start = (at), .length = (len), .kind = MR_SEG_DIRECT, .ptr = (p) \
	}
#define FOREIGN(at, len, r) \
	{ \
		.start = (at), .length = (len), .kind = MR_SEG_FOREIGN, .remote = (r) \
	}

static int
try_segs(struct mr_table *t, const struct mr_seg *segs, uint32_t num, uint64_t length, void *to,
	uint32_t *key)
{
	struct mr_desc d = {.type = MR_TYPE_REGION,
		.pd = PD,
		.iova = 0x10000,
		.access = ALL_RIGHTS,
		.length = length,
		.segs = segs,
		.num_segs = num,
		.lane = to,
		.owner = t};

	return mr_register(t, &d, key);
}

static bool
valid(struct mr_seg a, struct mr_seg b, void *to)
{
	struct mr_seg segs[] = {a, b};
	struct mr_desc d = {.length = 100, .segs = segs, .num_segs = 2, .lane = to};

	return mr_segs_valid(&d);
}

START_TEST(valid__cover)
{
	struct mr_seg a = DIRECT(0, 60, bytes), b = DIRECT(60, 40, bytes + 100), x;

	ck_assert(valid(a, b, NULL));
	ck_assert(!valid(b, a, NULL));
#define REFUSED(from, field, value) \
	x = from; \
	x.field = value; \
	ck_assert(from.start == 0 ? !valid(x, b, NULL) : !valid(a, x, NULL))
	REFUSED(a, start, 1);
	REFUSED(a, length, 59);
	REFUSED(a, length, 61);
	REFUSED(a, ptr, NULL);
	REFUSED(a, kind, 2);
	REFUSED(b, start, 59);
	REFUSED(b, start, 61);
	REFUSED(b, length, 39);
	REFUSED(b, length, 41);
	REFUSED(b, length, 0);
	REFUSED(b, length, UINT64_MAX - 60);
	REFUSED(b, length, UINT64_MAX);
	REFUSED(b, ptr, (uint8_t *)UINTPTR_MAX - 38);
#undef REFUSED
	b.ptr = (uint8_t *)UINTPTR_MAX - 39;
	ck_assert(valid(a, b, NULL));
}
END_TEST

START_TEST(valid__empty_run)
{
	struct mr_seg a = DIRECT(0, 100, bytes), b = DIRECT(100, 0, bytes);

	ck_assert(!valid(a, b, NULL));
	b = (struct mr_seg)FOREIGN(100, 0, 0);
	ck_assert(!valid(a, b, &lane));
}
END_TEST

/* Lengths whose sum goes once around and ends where it should: by one run, by many. */
START_TEST(valid__sum_wraps)
{
	enum { MANY = 1 << 16 };
	const struct mr_seg one[] = {
		FOREIGN(0, 60, 0), FOREIGN(60, UINT64_MAX - 59, 0), DIRECT(0, 100, bytes)};
	struct mr_desc d = {.length = 100, .segs = one, .num_segs = 3, .lane = &lane};
	struct mr_seg *many = calloc(MANY + 1, sizeof(*many));

	ck_assert(!mr_segs_valid(&d));
	for (uint64_t i = 0; i < MANY; i++)
		many[i] = (struct mr_seg)FOREIGN(i << 48, MR_MAX_LENGTH, 0);
	many[MANY] = (struct mr_seg)DIRECT(0, 100, bytes);
	d.segs = many;
	d.num_segs = MANY + 1;
	ck_assert(!mr_segs_valid(&d));
	free(many);
}
END_TEST

START_TEST(valid__foreign)
{
	struct mr_seg a = DIRECT(0, 60, bytes), b = FOREIGN(60, 40, 0);

	ck_assert(valid(a, b, &lane));
	ck_assert(!valid(a, b, NULL));
	b.remote = UINT64_MAX - 39;
	ck_assert(valid(a, b, &lane));
	b.remote = UINT64_MAX - 38;
	ck_assert(!valid(a, b, &lane));
}
END_TEST

START_TEST(build__merges_neighbours)
{
	const struct mr_seg in[] = {
		DIRECT(0, 10, bytes),
		DIRECT(10, 10, bytes + 10), /* goes on */
		DIRECT(20, 10, bytes + 30), /* a hole */
		{.start = 30,
			.length = 10,
			.kind = MR_SEG_FOREIGN,
			.remote = 0x1000,
			.ptr = bytes + 40},  /* another kind, whatever the pointer says */
		FOREIGN(40, 10, 0x100a),     /* goes on */
		FOREIGN(50, 10, 0x1013),     /* one short */
		DIRECT(60, 10, bytes + 100), /* back */
		DIRECT(70, 10, bytes + 110),
		DIRECT(80, 10, bytes + 120),
	};
	static const uint64_t start[] = {0, 20, 30, 50, 60}, length[] = {20, 10, 20, 10, 30};
	struct mr_segs *out = mr_segs_build(in, 9);

	ck_assert_uint_eq(out->num, 5);
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(out->seg[i].start, start[i]);
		ck_assert_uint_eq(out->seg[i].length, length[i]);
	}
	ck_assert_ptr_eq(out->seg[4].ptr, bytes + 100);
	ck_assert_uint_eq(out->seg[2].remote, 0x1000);
	free(out);
}
END_TEST

START_TEST(build__whole_again)
{
	const struct mr_seg in[] = {DIRECT(0, 10, bytes), DIRECT(10, 10, bytes + 10)};
	struct mr_table *t = fix_table(4);
	struct mr_ref ref;
	uint32_t key;

	ck_assert_int_eq(try_segs(t, in, 2, 20, NULL, &key), 0);
	ck_assert_int_eq(mr_check(t, key, PD, QPN, 0x10005, 15, 0, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 5);
	ck_assert_ptr_eq(ref.mr->base, bytes);
	mr_table_free(t);
}
END_TEST

START_TEST(find__every_byte)
{
	for (uint32_t num = 1; num <= 17; num++) {
		struct mr_seg in[17];
		struct mr_segs *segs;
		uint64_t at = 0;

		for (uint32_t i = 0; i < num; i++) {
			uint64_t len = 1 + i * 7 % 5;

			in[i] = (struct mr_seg)DIRECT(at, len, bytes + 20 * i);
			at += len;
		}
		segs = mr_segs_build(in, num);
		ck_assert_uint_eq(segs->num, num);
		for (uint32_t i = 0; i < num; i++) {
			for (uint64_t k = 0; k < in[i].length; k++)
				ck_assert_ptr_eq(
					mr_segs_find(segs, in[i].start + k), &segs->seg[i]);
		}
		ck_assert_ptr_eq(mr_segs_find(segs, at), &segs->seg[num - 1]);
		free(segs);
	}
}
END_TEST

/* A region of 24 bytes: direct 8, foreign 5, foreign elsewhere 3, direct 8. */
static const struct mr_seg mix[] = {
	DIRECT(0, 8, bytes),
	FOREIGN(8, 5, 0x7000),
	FOREIGN(13, 3, 0x9000),
	DIRECT(16, 8, bytes + 256),
};

/* Where byte `off` of that region is: an address here or there. */
static uint64_t
mix_at(uint64_t off, bool *foreign)
{
	const struct mr_seg *s = &mix[off < 8 ? 0 : off < 13 ? 1 : off < 16 ? 2 : 3];

	*foreign = s->kind == MR_SEG_FOREIGN;
	return (*foreign ? s->remote : (uintptr_t)s->ptr) + (off - s->start);
}

/* Walk an access byte by byte and compare. */
static void
walk(const struct mr_ref *ref, uint64_t first, uint64_t len)
{
	for (uint64_t off = 0; off < len;) {
		uint64_t run, remote;
		uint8_t *p = mr_segment(ref, off, &run, &remote);

		ck_assert_uint_gt(run, 0);
		for (uint64_t k = 0; k < run && off < len; k++, off++) {
			bool foreign;
			uint64_t at = mix_at(first + off, &foreign);

			ck_assert_int_eq(foreign, p == NULL);
			ck_assert_uint_eq(foreign ? remote + k : (uintptr_t)p + k, at);
		}
	}
}

START_TEST(segment__every_access_of_a_mix)
{
	struct mr_table *t = fix_table(4);
	uint32_t key;

	ck_assert_int_eq(try_segs(t, mix, 4, 24, &lane, &key), 0);
	for (uint64_t first = 0; first <= 24; first++) {
		for (uint64_t len = 0; first + len <= 24; len++) {
			bool whole = first + len <= 8 || first >= 16;
			struct mr_ref ref;
			bool foreign;

			ck_assert_int_eq(
				mr_check(t, key, PD, QPN, 0x10000 + first, len, 0, &ref), MR_OK);
			ck_assert_uint_eq(ref.offset, first);
			ck_assert_ptr_eq(mr_lane(&ref), &lane);
			if (len > 0)
				ck_assert_int_eq(ref.ptr != NULL, whole);
			if (len > 0 && whole)
				ck_assert_uint_eq((uintptr_t)ref.ptr, mix_at(first, &foreign));
			walk(&ref, first, len);
		}
		ck_assert_int_eq(fix_check(t, key, 0x10000 + first, 25 - first, 0), MR_BAD_RANGE);
	}
	mr_table_free(t);
}
END_TEST

START_TEST(segment__ends)
{
	struct mr_table *t = fix_table(4);
	uint64_t run = 77, remote = 77;
	struct mr_ref ref;
	uint32_t key;

	ck_assert_int_eq(try_segs(t, mix, 4, 24, &lane, &key), 0);
	ck_assert_int_eq(mr_check(t, key, PD, QPN, 0x10008, 16, 0, &ref), MR_OK);
	/* The run goes on behind the access, to the end of the segment, not of the region. */
	ck_assert_ptr_null(mr_segment(&ref, 0, &run, &remote));
	ck_assert_uint_eq(run, 5);
	ck_assert_uint_eq(remote, 0x7000);
	ck_assert_ptr_eq(mr_segment(&ref, 15, &run, &remote), bytes + 256 + 7);
	ck_assert_uint_eq(run, 1);
	/* Behind the region nothing. */
	ck_assert_ptr_null(mr_segment(&ref, 16, &run, &remote));
	ck_assert_uint_eq(run, 0);
	ck_assert_ptr_null(mr_segment(&ref, UINT64_MAX / 2, &run, &remote));
	ck_assert_uint_eq(run, 0);
	/* A region in one piece and one without bytes answer too. */
	key = fix_region(t, 0, 64, 0, bytes);
	ck_assert_int_eq(mr_check(t, key, PD, QPN, 4, 8, 0, &ref), MR_OK);
	ck_assert_ptr_eq(mr_segment(&ref, 3, &run, &remote), bytes + 7);
	ck_assert_uint_eq(run, 57);
	key = fix_region(t, 5, 0, 0, NULL);
	ck_assert_int_eq(mr_check(t, key, PD, QPN, 5, 0, 0, &ref), MR_OK);
	ck_assert_ptr_null(ref.ptr);
	ck_assert_ptr_null(mr_segment(&ref, 0, &run, &remote));
	ck_assert_uint_eq(run, 0);
	mr_table_free(t);
}
END_TEST

/* What the pointer of a foreign run holds does not count. */
START_TEST(segment__foreign_has_no_address)
{
	const struct mr_seg in[] = {
		{.length = 8, .kind = MR_SEG_FOREIGN, .remote = 0x7000, .ptr = bytes}};
	struct mr_table *t = fix_table(4);
	struct mr_ref ref;
	uint32_t key;

	ck_assert_int_eq(try_segs(t, in, 1, 8, &lane, &key), 0);
	ck_assert_int_eq(mr_check(t, key, PD, QPN, 0x10000, 8, 0, &ref), MR_OK);
	ck_assert_ptr_null(ref.ptr);
	mr_table_free(t);
}
END_TEST

/* The caller's array is its own again after mr_register(). */
START_TEST(register__copies)
{
	struct mr_seg in[] = {DIRECT(0, 8, bytes), DIRECT(8, 8, bytes + 100)};
	struct mr_table *t = fix_table(4);
	struct mr_ref ref;
	uint32_t key;

	ck_assert_int_eq(try_segs(t, in, 2, 16, NULL, &key), 0);
	memset(in, 0xff, sizeof(in));
	ck_assert_int_eq(mr_check(t, key, PD, QPN, 0x10008, 8, 0, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 100);
	fix_deregister(t, key);
	mr_table_free(t);
}
END_TEST

UNIT_MAIN("mr_segs", valid__cover, valid__empty_run, valid__sum_wraps, valid__foreign,
	build__merges_neighbours, build__whole_again, find__every_byte,
	segment__every_access_of_a_mix, segment__ends, segment__foreign_has_no_address,
	register__copies)
