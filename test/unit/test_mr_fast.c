/* SPDX-License-Identifier: BSD-3-Clause */
/* Fast registration: lists, what they may name, and how long that stays. */
#include <errno.h>

#include "mr_fixture.h"

static uint8_t bytes[4096], more[4096];
static int lane, other_lane;

struct world {
	struct mr_table *t;
	uint32_t a, b; /* regions at 0x1000 and 0x5000, of 4096 bytes each */
	uint32_t far;  /* 64 bytes that a copier reaches, between two that are mapped: at 0x9000 */
	uint32_t fast; /* of four runs */
};

static uint32_t
far_region(struct mr_table *t, void *its_lane)
{
	const struct mr_seg segs[] = {
		{.start = 0, .length = 64, .kind = MR_SEG_DIRECT, .ptr = bytes + 512},
		{.start = 64, .length = 64, .kind = MR_SEG_FOREIGN, .remote = 0x7000},
		{.start = 128, .length = 64, .kind = MR_SEG_DIRECT, .ptr = bytes + 1024},
	};
	const struct mr_desc d = {.type = MR_TYPE_REGION, .pd = PD, .access = ALL_RIGHTS,
		.iova = 0x9000, .length = 192, .segs = segs, .num_segs = 3, .lane = its_lane,
		.owner = t};
	uint32_t key;

	ck_assert_int_eq(mr_register(t, &d, &key), 0);
	return key;
}

static uint32_t
fast_key(struct mr_table *t, uint32_t max)
{
	struct mr_desc d = {.type = MR_TYPE_FAST_REG, .pd = PD, .owner = t, .max_segs = max};
	uint32_t key;

	ck_assert_int_eq(mr_register(t, &d, &key), 0);
	return key;
}

static struct world
world(void)
{
	struct world x = {.t = fix_table(64)};

	x.a = fix_region(x.t, 0x1000, sizeof(bytes), ALL_RIGHTS, bytes);
	x.b = fix_region(x.t, 0x5000, sizeof(more), ALL_RIGHTS, more);
	x.far = far_region(x.t, &lane);
	x.fast = fast_key(x.t, 4);
	return x;
}

static struct mr_fast_req
req(const struct world *x, const struct mr_elem *list, uint32_t num)
{
	struct mr_fast_req f = {.key = (x->fast & ~0xffu) | 3, .pd = PD,
		.access = MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ, .num = num,
		.iova = 0x100000, .list = list};

	for (uint32_t i = 0; i < num; i++)
		f.length += list[i].length;
	return f;
}

static enum mr_result
reg(struct mr_table *t, const struct mr_fast_req *f)
{
	enum mr_result res = mr_fast_begin(t, f->key, f->pd);

	return res == MR_OK ? mr_fast_commit(t, f) : res;
}

static uint32_t
bound(const struct world *x, uint32_t key)
{
	return atomic_load(&mr_slot(x->t, key)->bound);
}

START_TEST(list__another_name_for_its_bytes)
{
	struct world x = world();
	const struct mr_elem list[] = {
		{0x5100, 100, x.b}, {0, 0, 12345}, {0x1010, 28, x.a}, {0x5000, 8, x.b}};
	struct mr_fast_req f = req(&x, list, 4);
	struct mr_ref ref;
	uint64_t run, remote;

	ck_assert_int_eq(reg(x.t, &f), MR_OK);
	ck_assert_uint_eq(bound(&x, x.a), 1);
	ck_assert_uint_eq(bound(&x, x.b), 2);
	ck_assert_int_eq(mr_check(x.t, f.key, PD, OTHER_QPN, 0x100000, 136, MR_REMOTE_WRITE, &ref),
		MR_OK);
	ck_assert_ptr_null(ref.ptr);
	ck_assert_ptr_eq(mr_segment(&ref, 0, &run, &remote), more + 0x100);
	ck_assert_uint_eq(run, 100);
	ck_assert_ptr_eq(mr_segment(&ref, 100, &run, &remote), bytes + 0x10);
	ck_assert_uint_eq(run, 28);
	ck_assert_ptr_eq(mr_segment(&ref, 130, &run, &remote), more + 2);
	ck_assert_ptr_eq(mr_under(&ref, 0), mr_slot(x.t, x.b));
	ck_assert_ptr_eq(mr_under(&ref, 127), mr_slot(x.t, x.a));
	ck_assert_int_eq(mr_check(x.t, f.key, PD, QPN, 0x100000 + 100, 28, 0, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 0x10);
	ck_assert_int_eq(fix_check(x.t, f.key, 0x100000, 137, 0), MR_BAD_RANGE);
	ck_assert_int_eq(mr_check(x.t, f.key, OTHER_PD, QPN, 0x100000, 8, 0, &ref), MR_BAD_PD);
	/* They stay until it is invalidated. */
	ck_assert_int_eq(mr_kill(x.t, x.a), -EBUSY);
	ck_assert_int_eq(mr_kill(x.t, x.b), -EBUSY);
	ck_assert_int_eq(reg(x.t, &f), MR_BAD_STATE);
	ck_assert_int_eq(mr_invalidate_remote(x.t, f.key, PD, QPN), MR_OK);
	ck_assert_uint_eq(bound(&x, x.a) + bound(&x, x.b), 0);
	ck_assert_int_eq(fix_check(x.t, f.key, 0x100000, 8, 0), MR_BAD_STATE);
	mr_table_free(x.t);
}
END_TEST

/* An element may have more runs than one, which count; a copier's memory is under its lane. */
START_TEST(list__runs_of_a_region)
{
	struct world x = world();
	const struct mr_elem list[] = {{0x9000 + 32, 128, x.far}, {0x1000, 8, x.a}};
	struct mr_fast_req f = req(&x, list, 2);
	struct mr_ref ref;
	uint64_t run, remote;

	f.access |= MR_ZERO_BASED;
	f.iova = 0;
	ck_assert_int_eq(reg(x.t, &f), MR_OK);
	ck_assert_int_eq(mr_check(x.t, f.key, PD, QPN, 0, 136, MR_REMOTE_READ, &ref), MR_OK);
	ck_assert_ptr_eq(mr_lane(&ref), &lane);
	ck_assert_ptr_eq(mr_segment(&ref, 0, &run, &remote), bytes + 512 + 32);
	ck_assert_uint_eq(run, 32);
	ck_assert_ptr_null(mr_segment(&ref, 32, &run, &remote));
	ck_assert_uint_eq(run, 64);
	ck_assert_uint_eq(remote, 0x7000);
	ck_assert_ptr_eq(mr_segment(&ref, 96, &run, &remote), bytes + 1024);
	ck_assert_ptr_eq(mr_segment(&ref, 128, &run, &remote), bytes);
	ck_assert_ptr_eq(mr_under(&ref, 32), mr_slot(x.t, x.far));
	ck_assert_uint_eq(bound(&x, x.far), 3);
	mr_table_free(x.t);
}
END_TEST

START_TEST(list__refused)
{
	struct world x = world();
	uint32_t no_bind = fix_region(x.t, 0x1000, 64, ALL_RIGHTS & ~MR_MW_BIND, bytes);
	uint32_t no_write = fix_region(x.t, 0x1000, 64, MR_MW_BIND | MR_REMOTE_READ, bytes);
	uint32_t elsewhere = far_region(x.t, &other_lane);
	uint32_t window = fix_bind(x.t, fix_free_key(x.t, MR_TYPE_WINDOW_1), x.a, 1, 0, 64, 0);
	const struct mr_elem good[] = {{0x1000, 64, x.a}, {0x5000, 64, x.b}};
	uint32_t before = bound(&x, x.a);

#define REFUSED(want, ...) \
	do { \
		struct mr_elem l[8] = {good[0], good[1]}; \
		struct mr_fast_req f = req(&x, l, 2); \
		__VA_ARGS__; \
		ck_assert_int_eq(reg(x.t, &f), want); \
		ck_assert_uint_eq(bound(&x, x.a), before); \
		ck_assert_uint_eq(bound(&x, x.b), 0); \
	} while (0)
	REFUSED(MR_NO_KEY, l[1].lkey ^= 1);
	REFUSED(MR_NO_KEY, l[1].lkey = window);
	REFUSED(MR_BAD_ACCESS, l[1] = l[0]; l[1].lkey = no_bind);
	REFUSED(MR_BAD_ACCESS, l[1] = l[0]; l[1].lkey = no_write);
	REFUSED(MR_BAD_RANGE, l[1].addr = 0x5000 + 4096 - 63);
	REFUSED(MR_BAD_RANGE, l[1].addr = 0x4fff);
	REFUSED(MR_BAD_RANGE, l[1].length = UINT32_MAX);
	REFUSED(MR_BAD_RANGE, f.length++); /* not their sum */
	REFUSED(MR_BAD_RANGE, f.length = 0; f.num = 0);
	REFUSED(MR_BAD_RANGE, f.num = 5);	/* more than it was made for */
	REFUSED(MR_BAD_RANGE, f.iova = UINT64_MAX - 126);
	REFUSED(MR_BAD_RANGE, f.access |= MR_ZERO_BASED); /* and an iova */
	REFUSED(MR_BAD_ACCESS, f.access = MR_REMOTE_WRITE); /* C10-74 */
	REFUSED(MR_BAD_ACCESS, f.access |= MR_FLUSH_GLOBAL);
	REFUSED(MR_BAD_PD, f.pd = OTHER_PD);
	REFUSED(MR_NO_KEY, f.key ^= 0x100);
	REFUSED(MR_NO_KEY, f.key = x.a);
	REFUSED(MR_BAD_RANGE, l[0] = (struct mr_elem){0x9000, 128, x.far};
		l[1] = (struct mr_elem){0x9000, 192, x.far}; f.length = 320); /* five runs */
	REFUSED(MR_BAD_RANGE, l[0] = (struct mr_elem){0x9040, 8, x.far};
		l[1] = (struct mr_elem){0x9040, 8, elsewhere}; f.length = 16); /* two processes */
#undef REFUSED
	ck_assert_uint_eq(bound(&x, x.far) + bound(&x, elsewhere), 0);
	mr_table_free(x.t);
}
END_TEST

/* Not of another fast registration: nothing is more than two steps from its bytes. */
START_TEST(list__not_of_fast_registrations)
{
	struct world x = world();
	const struct mr_elem one[] = {{0x1000, 64, x.a}};
	struct mr_fast_req f = req(&x, one, 1);
	struct mr_elem two[1];

	f.access |= MR_MW_BIND;
	ck_assert_int_eq(reg(x.t, &f), MR_OK);
	two[0] = (struct mr_elem){0x100000, 8, f.key};
	x.fast = fast_key(x.t, 4);
	f = req(&x, two, 1);
	ck_assert_int_eq(reg(x.t, &f), MR_BAD_ACCESS);
	mr_table_free(x.t);
}
END_TEST

/* A window on a fast registration holds what is under both. */
START_TEST(window__on_a_fast_registration)
{
	struct world x = world();
	const struct mr_elem list[] = {{0x1000, 64, x.a}, {0x5000, 64, x.b}};
	struct mr_fast_req f = req(&x, list, 2);
	struct mr_bind b = {.window = fix_free_key(x.t, MR_TYPE_WINDOW_2B), .region = f.key,
		.access = MR_REMOTE_WRITE, .addr = 0x100000 + 32, .length = 64, .pd = PD,
		.qpn = QPN};
	struct mr_ref ref;

	b.new_key = b.window;
	f.access |= MR_MW_BIND;
	ck_assert_int_eq(reg(x.t, &f), MR_OK);
	ck_assert_int_eq(mr_bind_begin(x.t, &b), MR_OK);
	ck_assert_int_eq(mr_bind_commit(x.t, &b), MR_OK);
	ck_assert_int_eq(mr_check(x.t, b.new_key, PD, QPN, 0x100000 + 32, 64, MR_REMOTE_WRITE,
				 &ref), MR_OK);
	ck_assert_ptr_eq(mr_under(&ref, 0), mr_slot(x.t, x.a));
	ck_assert_ptr_eq(mr_under(&ref, 32), mr_slot(x.t, x.b));
	ck_assert_int_eq(mr_invalidate(x.t, f.key, PD, QPN), MR_BAD_STATE);
	ck_assert_int_eq(mr_kill(x.t, x.fast), -EBUSY);
	ck_assert_int_eq(mr_invalidate(x.t, b.new_key, PD, QPN), MR_OK);
	ck_assert_int_eq(mr_invalidate(x.t, f.key, PD, QPN), MR_OK);
	mr_table_free(x.t);
}
END_TEST

START_TEST(kill__valid_or_claimed)
{
	for (int how = 0; how < 4; how++) {
		struct world x = world();
		const struct mr_elem list[] = {{0x1000, 64, x.a}};
		struct mr_fast_req f = req(&x, list, 1);

		ck_assert_int_eq(mr_fast_begin(x.t, f.key, PD), MR_OK);
		ck_assert_int_eq(mr_fast_begin(x.t, f.key, PD), MR_BAD_STATE);
		if (how == 0)
			ck_assert_int_eq(mr_fast_commit(x.t, &f), MR_OK);
		ck_assert_int_eq(mr_kill(x.t, x.fast), 0);
		ck_assert_int_eq(mr_busy(x.t, x.fast), how != 0);
		if (how == 1)
			ck_assert_int_eq(mr_fast_commit(x.t, &f), MR_BAD_STATE);
		else if (how == 2)
			mr_fast_abort(x.t, f.key);
		if (how != 3)
			ck_assert_ptr_eq(mr_release(x.t, x.fast), x.t);
		ck_assert_uint_eq(bound(&x, x.a), 0);
		mr_table_free(x.t); /* and with one that nobody released */
	}
}
END_TEST

UNIT_MAIN("mr_fast", list__another_name_for_its_bytes, list__runs_of_a_region, list__refused,
	list__not_of_fast_registrations, window__on_a_fast_registration, kill__valid_or_claimed)
