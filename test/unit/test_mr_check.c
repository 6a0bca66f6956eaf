/* SPDX-License-Identifier: BSD-3-Clause */
/* The access check: each refusal alone, their order, every edge, and a naive model beside it. */
#include <errno.h>

#include "base_rng.h"
#include "mr_fixture.h"

static uint8_t bytes[4096];

START_TEST(result_name__all)
{
	for (int r = 0; r < MR_RESULT_COUNT; r++) {
		ck_assert_ptr_nonnull(mr_result_name(r));
		for (int other = 0; other < r; other++)
			ck_assert_str_ne(mr_result_name(r), mr_result_name(other));
	}
	ck_assert_str_eq(mr_result_name(MR_BAD_RANGE), "bad_range");
	ck_assert_str_eq(mr_result_name(MR_RESULT_COUNT), "unknown");
	ck_assert_str_eq(mr_result_name((enum mr_result) - 1), "unknown");
}
END_TEST

START_TEST(check__gives_the_address)
{
	struct mr_table *t = fix_table(16);
	uint32_t key = fix_region(t, 0x1000, 64, MR_REMOTE_READ, bytes);
	struct mr_ref ref = {0};

	ck_assert_int_eq(mr_check(t, key, PD, 0, 0x1010, 16, MR_REMOTE_READ, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 16);
	ck_assert_uint_eq(ref.offset, 16);
	ck_assert(mr_still_valid(&ref, key));
	mr_prefetch(t, key);
	mr_prefetch(t, ~key);
	mr_table_free(t);
}
END_TEST

START_TEST(check__every_bit_of_the_key)
{
	struct mr_table *t = fix_table(1);
	uint32_t key = fix_region(t, 0, 64, 0, bytes);

	ck_assert_int_eq(fix_check(t, key, 0, 64, 0), MR_OK);
	for (int bit = 0; bit < 32; bit++)
		ck_assert_int_eq(fix_check(t, key ^ 1u << bit, 0, 64, 0), MR_NO_KEY);
	for (uint32_t variant = 0; variant < 256; variant++)
		ck_assert_int_eq(fix_check(t, (key & ~0xffu) | variant, 0, 64, 0),
			variant == (key & 0xff) ? MR_OK : MR_NO_KEY);
	mr_table_free(t);
}
END_TEST

START_TEST(check__refusals_and_their_order)
{
	struct mr_table *t = fix_table(16);
	uint32_t key = fix_region(t, 0x1000, 64, MR_LOCAL_WRITE, bytes);
	uint32_t dead = fix_region(t, 0x1000, 64, MR_LOCAL_WRITE, bytes);
	struct mr_ref ref = {.offset = 77}, before = ref;

	ck_assert_int_eq(mr_kill(t, dead), 0);
	/* All that can be wrong is; then one thing less with each line. */
	ck_assert_int_eq(mr_check(t, dead ^ 1, OTHER_PD, 0, 0, 1, MR_REMOTE_READ, &ref), MR_NO_KEY);
	ck_assert_int_eq(mr_check(t, dead, OTHER_PD, 0, 0, 1, MR_REMOTE_READ, &ref), MR_BAD_STATE);
	ck_assert_int_eq(mr_check(t, key, OTHER_PD, 0, 0, 1, MR_REMOTE_READ, &ref), MR_BAD_PD);
	ck_assert_int_eq(mr_check(t, key, PD, 0, 0, 1, MR_REMOTE_READ, &ref), MR_BAD_ACCESS);
	ck_assert_int_eq(mr_check(t, key, PD, 0, 0, 1, MR_LOCAL_WRITE, &ref), MR_BAD_RANGE);
	ck_assert_int_eq(mr_check(t, key, OTHER_PD, 0, 0, 1, 0, &ref), MR_BAD_PD);
	ck_assert_mem_eq(&ref, &before, sizeof(ref));
	ck_assert_int_eq(mr_check(t, key, PD, 0, 0x1000, 1, MR_LOCAL_WRITE, &ref), MR_OK);
	mr_table_free(t);
}
END_TEST

/* All needed rights, for all sets of granted and needed ones. */
START_TEST(check__rights)
{
	struct mr_table *t = fix_table(1024);

	for (uint32_t granted = 0; granted < 1024; granted++) {
		uint32_t key;

		if (fix_try(t, 0, 64, granted, bytes, &key) == -EINVAL) {
			ck_assert(!mr_access_valid(granted));
			continue;
		}
		for (uint32_t need = 0; need < 1024; need++)
			FIX_REQUIRE(fix_check(t, key, 0, 1, need) ==
				((need & ~granted) == 0 ? MR_OK : MR_BAD_ACCESS));
		/* Asking for nothing but a hint is a local read. */
		ck_assert_int_eq(fix_check(t, key, 0, 1, MR_RELAXED_ORDERING), MR_OK);
		fix_deregister(t, key);
	}
	mr_table_free(t);
}
END_TEST

START_TEST(check__pd_every_bit)
{
	struct mr_table *t = fix_table(4);
	uint32_t key = fix_region(t, 0, 64, 0, bytes);
	struct mr_ref ref;

	for (int bit = 0; bit < 32; bit++)
		ck_assert_int_eq(mr_check(t, key, PD ^ 1u << bit, QPN, 0, 1, 0, &ref), MR_BAD_PD);
	/* A region asks for no QP. */
	ck_assert_int_eq(mr_check(t, key, PD, OTHER_QPN, 0, 1, 0, &ref), MR_OK);
	mr_table_free(t);
}
END_TEST

static enum mr_result
model_range(uint64_t iova, uint64_t length, uint64_t addr, uint64_t len)
{
	unsigned __int128 end = (unsigned __int128)addr + len;

	if (addr < iova || end > (unsigned __int128)iova + length)
		return MR_BAD_RANGE;
	return MR_OK;
}

/* Each edge of region and address space, one byte either side, against 128-bit arithmetic. */
static void
check_edges(struct mr_table *t, uint32_t key, uint64_t iova, uint64_t length)
{
	const uint64_t addrs[] = {0, iova, iova + length, iova + length / 2, UINT64_MAX,
		UINT64_MAX - length, 0 - length, UINT64_C(1) << 48, UINT64_C(1) << 63};
	const uint64_t lens[] = {0, length, length / 2, UINT64_MAX, UINT64_MAX - iova, 0 - iova,
		0 - length, UINT64_C(1) << 32, UINT64_C(1) << 48, UINT64_C(1) << 63};

	for (size_t i = 0; i < 3 * sizeof(addrs) / sizeof(addrs[0]); i++) {
		for (size_t k = 0; k < 3 * sizeof(lens) / sizeof(lens[0]); k++) {
			uint64_t addr = addrs[i / 3] + i % 3 - 1, len = lens[k / 3] + k % 3 - 1;
			enum mr_result want = model_range(iova, length, addr, len);

			if (fix_check(t, key, addr, len, 0) != want)
				ck_abort_msg("[%#lx, +%#lx): %#lx, +%#lx is not %s", iova, length,
					addr, len, mr_result_name(want));
		}
	}
}

START_TEST(check__range_edges)
{
	static const uint64_t most = UINT64_C(1) << 48;
	static const uint64_t region[][2] = {{0, 1}, {0, 64}, {1, 64}, {0x1000, 1}, {0x1000, 64},
		{0x1000, 0}, {0, 0}, {0, most}, {1, most}, {most - 1, most}, {0 - most, most},
		{0 - most - 1, most}, {UINT64_MAX, 1}, {UINT64_MAX - 1, 1}, {UINT64_MAX, 0},
		{UINT64_C(0x7fffffffffffffff), 4096}, {0xfffffff0, 64}};
	struct mr_table *t = fix_table(64);

	for (size_t i = 0; i < sizeof(region) / sizeof(region[0]); i++) {
		uint32_t key = fix_region(t, region[i][0], region[i][1], 0, bytes);

		check_edges(t, key, region[i][0], region[i][1]);
		/* Zero based, the same length begins at 0. */
		key = fix_region(t, region[i][0], region[i][1], MR_ZERO_BASED, bytes);
		check_edges(t, key, 0, region[i][1]);
	}
	mr_table_free(t);
}
END_TEST

START_TEST(check__zero_based_address)
{
	struct mr_table *t = fix_table(4);
	uint32_t key = fix_region(t, 0x7000, 64, MR_ZERO_BASED, bytes);
	struct mr_ref ref;

	ck_assert_int_eq(mr_check(t, key, PD, QPN, 60, 4, 0, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 60);
	ck_assert_int_eq(fix_check(t, key, 60, 5, 0), MR_BAD_RANGE);
	ck_assert_int_eq(fix_check(t, key, 0x7000, 4, 0), MR_BAD_RANGE);
	mr_table_free(t);
}
END_TEST

/* Random registration, kill, release and fast-register life beside a list of records. */
struct record {
	enum mr_state state;
	enum mr_type type;
	uint32_t key;
	uint32_t pd;
	uint32_t access;
	uint64_t iova;
	uint64_t length;
};
enum { RECORDS = 48 };

static enum mr_result
model_check(const struct record *r, uint32_t key, uint32_t pd, uint64_t addr, uint64_t len,
	uint32_t need)
{
	for (int i = 0; i < RECORDS; i++) {
		if (r[i].state == MR_STATE_EMPTY || r[i].key != key)
			continue;
		if (r[i].state != MR_STATE_VALID)
			return MR_BAD_STATE;
		if (r[i].pd != pd)
			return MR_BAD_PD;
		for (int bit = 0; bit < 16; bit++) {
			if ((need >> bit & 1) != 0 && (r[i].access >> bit & 1) == 0)
				return MR_BAD_ACCESS;
		}
		return model_range(r[i].iova, r[i].length, addr, len);
	}
	return MR_NO_KEY;
}

static uint64_t
rng_length(struct rng *rng)
{
	return rng_u64(rng) >> (16 + rng_below(rng, 48));
}

static void
model_register(struct mr_table *t, struct rng *rng, struct record *r)
{
	uint32_t access = rng_u32(rng) & 0x3ff & ~MR_ZERO_BASED;
	struct mr_seg seg = {.kind = MR_SEG_DIRECT, .ptr = bytes};
	struct mr_desc d = {.type = MR_TYPE_REGION, .segs = &seg, .owner = t};

	r->access = access | MR_LOCAL_WRITE;
	r->type = rng_below(rng, 4) == 0 ? MR_TYPE_FAST_REG : MR_TYPE_REGION;
	r->pd = d.pd = rng_below(rng, 3);
	r->length = d.length = seg.length = rng_length(rng);
	r->iova = d.iova = rng_below(rng, 4) == 0 ? 0 - r->length : rng_u64(rng) >> 20;
	d.access = r->access;
	d.num_segs = d.length > 0;
	if (r->type == MR_TYPE_FAST_REG)
		d = (struct mr_desc){.type = MR_TYPE_FAST_REG, .pd = r->pd, .owner = t};
	ck_assert_int_eq(mr_register(t, &d, &r->key), 0);
	r->state = MR_STATE_VALID;
	if (r->type == MR_TYPE_FAST_REG)
		r->key = fix_fast_reg(
			t, r->key, (uint8_t)rng_u32(rng), r->iova, r->length, r->access, bytes);
}

static void
model_step(struct mr_table *t, struct rng *rng, struct record *r)
{
	if (r->state == MR_STATE_EMPTY) {
		model_register(t, rng, r);
	} else if (r->state == MR_STATE_DYING) {
		ck_assert_ptr_eq(mr_release(t, r->key), t);
		r->state = MR_STATE_EMPTY;
	} else if (rng_below(rng, 2) == 0) {
		ck_assert_int_eq(mr_kill(t, r->key), 0);
		r->state = MR_STATE_DYING;
	} else {
		enum mr_result want = r->state != MR_STATE_VALID ? MR_BAD_STATE
			: r->type != MR_TYPE_FAST_REG		 ? MR_BAD_ACCESS
								 : MR_OK;

		ck_assert_int_eq(mr_invalidate(t, r->key, r->pd, 0), want);
		if (want == MR_OK)
			r->state = MR_STATE_FREE;
	}
}

static void
model_probe(struct mr_table *t, struct rng *rng, const struct record *all, unsigned int *seen)
{
	const struct record *r = &all[rng_below(rng, RECORDS)];
	uint32_t key = rng_below(rng, 16) == 0 ? r->key ^ 1u << rng_below(rng, 32) : r->key;
	uint32_t pd = rng_below(rng, 8) == 0 ? rng_below(rng, 3) : r->pd;
	uint32_t need = rng_below(rng, 4) == 0 ? 1u << rng_below(rng, 10)
					       : r->access & rng_u32(rng);
	uint64_t at = rng_below(rng, 2) == 0 ? r->length : rng_length(rng);
	uint64_t addr = r->iova + at + rng_below(rng, 3) - 1 - (rng_below(rng, 2) ? r->length : 0);
	uint64_t len = rng_below(rng, 2) == 0 ? r->length : rng_length(rng);
	enum mr_result want = model_check(all, key, pd, addr, len, need);
	struct mr_ref ref;
	enum mr_result got = mr_check(t, key, pd, QPN, addr, len, need, &ref);

	if (got != want)
		ck_abort_msg("key %#x pd %u addr %#lx len %#lx need %#x: %s, not %s", key, pd, addr,
			len, need, mr_result_name(got), mr_result_name(want));
	if (got == MR_OK && r->key == key)
		FIX_REQUIRE(ref.offset == addr - r->iova);
	seen[got]++;
}

START_TEST(check__as_the_model)
{
	struct rng rng;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct record all[RECORDS] = {0};
		unsigned int seen[MR_RESULT_COUNT] = {0};
		struct mr_table *t = fix_table(64);
		uint32_t keys = 0;

		rng_seed(&rng, seed);
		for (int step = 0; step < 2000; step++) {
			model_step(t, &rng, &all[rng_below(&rng, RECORDS)]);
			for (int probe = 0; probe < 20; probe++)
				model_probe(t, &rng, all, seen);
		}
		for (int i = 0; i < RECORDS; i++)
			keys += all[i].state != MR_STATE_EMPTY;
		ck_assert_uint_eq(mr_table_count(t), keys);
		for (int r = 0; r < MR_RESULT_COUNT; r++)
			ck_assert_uint_gt(seen[r], 100); /* the probes reach every answer */
		mr_table_free(t);
	}
}
END_TEST

UNIT_MAIN("mr_check", result_name__all, check__gives_the_address, check__every_bit_of_the_key,
	check__refusals_and_their_order, check__rights, check__pd_every_bit, check__range_edges,
	check__zero_based_address, check__as_the_model)
