/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding windows: what is refused, and what a claim keeps from happening meanwhile. */
#include <errno.h>

#include "mr_fixture.h"

static uint8_t bytes[4096];

struct world {
	struct mr_table *t;
	uint32_t region; /* 0x1000 .. 0x1040, all rights */
	uint32_t w;	 /* a window of type 2B */
};

static struct world
world(void)
{
	struct world x = {.t = fix_table(64)};

	x.region = fix_region(x.t, 0x1000, 64, ALL_RIGHTS, bytes);
	x.w = fix_free_key(x.t, MR_TYPE_WINDOW_2B);
	return x;
}

static struct mr_bind
bind_of(const struct world *x, uint32_t window)
{
	return (struct mr_bind){.window = window, .new_key = (window & ~0xffu) | 0x5a,
		.region = x->region, .access = MR_REMOTE_READ | MR_REMOTE_WRITE, .addr = 0x1010,
		.length = 8, .pd = PD, .qpn = QPN};
}

static enum mr_result
bind(struct mr_table *t, const struct mr_bind *b)
{
	enum mr_result res = mr_bind_begin(t, b);

	if (res != MR_OK)
		return res;
	ck_assert(!mr_claim_busy(t, b->window));
	return mr_bind_commit(t, b);
}

static uint32_t
bound(const struct world *x, uint32_t key)
{
	return atomic_load(&mr_slot(x->t, key)->bound);
}

START_TEST(bind__opens_its_bytes)
{
	struct world x = world();
	struct mr_bind b = bind_of(&x, x.w);
	struct mr_ref ref;

	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	ck_assert_uint_eq(bound(&x, x.region), 1);
	ck_assert_int_eq(
		mr_check(x.t, b.new_key, PD, QPN, 0x1010, 8, MR_REMOTE_WRITE, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 16);
	ck_assert_ptr_eq(mr_under(&ref, 0), mr_slot(x.t, x.region));
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0x100f, 1, MR_REMOTE_READ), MR_BAD_RANGE);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0x1018, 1, MR_REMOTE_READ), MR_BAD_RANGE);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0x1010, 8, MR_REMOTE_ATOMIC), MR_BAD_ACCESS);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0x1010, 8, MR_LOCAL_WRITE), MR_BAD_ACCESS);
	if (b.new_key != x.w)
		ck_assert_int_eq(fix_check(x.t, x.w, 0x1010, 8, MR_REMOTE_READ), MR_NO_KEY);
	/* Bound, it is not bound anew: invalidate first. */
	ck_assert_int_eq(bind(x.t, &b), MR_BAD_STATE);
	ck_assert_int_eq(mr_kill(x.t, x.region), -EBUSY);
	ck_assert_int_eq(mr_invalidate(x.t, b.new_key, PD, QPN), MR_OK);
	ck_assert_uint_eq(bound(&x, x.region), 0);
	/* B059: with the same variant again. */
	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	mr_table_free(x.t);
}
END_TEST

START_TEST(bind__zero_based_window)
{
	struct world x = world();
	struct mr_bind b = bind_of(&x, x.w);
	struct mr_ref ref;

	b.access |= MR_ZERO_BASED;
	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	ck_assert_int_eq(mr_check(x.t, b.new_key, PD, QPN, 0, 8, MR_REMOTE_WRITE, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 16);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 1, 8, MR_REMOTE_READ), MR_BAD_RANGE);
	mr_table_free(x.t);
}
END_TEST

/* Each wrong by one thing; nothing has changed after any. */
START_TEST(bind__refused)
{
	struct world x = world();
	uint32_t zero, no_bind, read_only, type1;
	const struct mr_bind good = bind_of(&x, x.w);
	uint64_t word = atomic_load(&mr_slot(x.t, x.w)->word);

	ck_assert_int_eq(fix_try(x.t, 0, 64, ALL_RIGHTS | MR_ZERO_BASED, bytes, &zero), 0);
	no_bind = fix_region(x.t, 0x1000, 64, ALL_RIGHTS & ~MR_MW_BIND, bytes);
	read_only = fix_region(x.t, 0x1000, 64, MR_MW_BIND | MR_REMOTE_READ, bytes);
	type1 = fix_free_key(x.t, MR_TYPE_WINDOW_1);
#define REFUSED(want, ...) \
	do { \
		struct mr_bind b = good; \
		__VA_ARGS__; \
		ck_assert_int_eq(mr_bind_begin(x.t, &b), want); \
	} while (0)
	REFUSED(MR_NO_KEY, b.window ^= 0x100);
	REFUSED(MR_NO_KEY, b.window = b.new_key = x.region);
	REFUSED(MR_NO_KEY, b.new_key ^= 0x100);
	REFUSED(MR_NO_KEY, b.region ^= 1);
	REFUSED(MR_NO_KEY, b.region = x.w);
	REFUSED(MR_BAD_PD, b.pd = OTHER_PD);
	REFUSED(MR_BAD_ACCESS, b.region = no_bind);
	REFUSED(MR_BAD_ACCESS, b.region = zero; b.addr = 0);
	REFUSED(MR_BAD_ACCESS, b.region = read_only); /* C10-75: writing needs local write */
	REFUSED(MR_BAD_ACCESS, b.access = MR_MW_BIND);
	REFUSED(MR_BAD_ACCESS, b.access = MR_ON_DEMAND);
	REFUSED(MR_BAD_ACCESS, b.access = MR_FLUSH_GLOBAL); /* the region has not got it */
	REFUSED(MR_BAD_ACCESS, b.window = b.new_key = type1; b.access |= MR_ZERO_BASED);
	REFUSED(MR_BAD_RANGE, b.length = 0);
	REFUSED(MR_BAD_RANGE, b.addr = 0xfff);
	REFUSED(MR_BAD_RANGE, b.addr = 0x1039);
	REFUSED(MR_BAD_RANGE, b.length = UINT64_MAX);
#undef REFUSED
	ck_assert_uint_eq(atomic_load(&mr_slot(x.t, x.w)->word), word);
	ck_assert_uint_eq(bound(&x, x.region) + bound(&x, no_bind) + bound(&x, zero) +
			bound(&x, read_only), 0);
	mr_table_free(x.t);
}
END_TEST

/* Reading needs nothing more of the region, and hints are nobody's concern. */
START_TEST(bind__read_of_a_read_only_region)
{
	struct world x = world();
	struct mr_bind b = bind_of(&x, x.w);

	b.region = fix_region(x.t, 0x1000, 64, MR_MW_BIND, bytes);
	b.access = MR_REMOTE_READ | MR_RELAXED_ORDERING;
	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0x1010, 8, MR_REMOTE_READ), MR_OK);
	mr_table_free(x.t);
}
END_TEST

/* Another context of the same PD may use the region's key, but not keep it from its owner. */
START_TEST(bind__within_a_context)
{
	struct world x = world();
	struct mr_desc d = {.type = MR_TYPE_WINDOW_2B, .pd = PD, .context = 9, .owner = x.t};
	struct mr_bind b = bind_of(&x, x.w);

	ck_assert_int_eq(mr_register(x.t, &d, &b.window), 0);
	b.new_key = b.window;
	ck_assert_int_eq(mr_bind_begin(x.t, &b), MR_BAD_PD);
	ck_assert_int_eq(mr_kill(x.t, x.region), 0);
	mr_table_free(x.t);
}
END_TEST

START_TEST(bind__scopes)
{
	static const enum mr_type types[] = {
		MR_TYPE_WINDOW_1, MR_TYPE_WINDOW_2A, MR_TYPE_WINDOW_2B};
	struct world x = world();

	for (int i = 0; i < 3; i++) {
		struct mr_bind b = bind_of(&x, fix_free_key(x.t, types[i]));
		struct mr_ref ref;

		ck_assert_int_eq(bind(x.t, &b), MR_OK);
		ck_assert_int_eq(mr_check(x.t, b.new_key, PD, OTHER_QPN, 0x1010, 8,
					 MR_REMOTE_READ, &ref),
			i == 0 ? MR_OK : MR_BAD_PD);
		ck_assert_int_eq(mr_check(x.t, b.new_key, OTHER_PD, QPN, 0x1010, 8,
					 MR_REMOTE_READ, &ref),
			MR_BAD_PD); /* 2A: the QP's number is another client's now */
		/* and so far may a peer's SEND reach */
		ck_assert_int_eq(mr_invalidate_remote(x.t, b.new_key, PD, OTHER_QPN),
			i == 0 ? MR_BAD_ACCESS : MR_BAD_PD);
		ck_assert_int_eq(mr_invalidate_remote(x.t, b.new_key, OTHER_PD, QPN), MR_BAD_PD);
		ck_assert_int_eq(mr_invalidate_remote(x.t, b.new_key, PD, QPN),
			i == 0 ? MR_BAD_ACCESS : MR_OK);
	}
	mr_table_free(x.t);
}
END_TEST

START_TEST(type_1__bound_anew_and_to_nothing)
{
	struct world x = world();
	uint32_t other = fix_region(x.t, 0x8000, 64, ALL_RIGHTS, bytes + 1024);
	struct mr_bind b = bind_of(&x, fix_free_key(x.t, MR_TYPE_WINDOW_1));
	uint32_t first = b.new_key;

	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	b.new_key ^= 1;
	b.region = other;
	b.addr = 0x8000;
	ck_assert_int_eq(bind(x.t, &b), MR_OK); /* named by a key that it had long ago */
	ck_assert_uint_eq(bound(&x, x.region), 0);
	ck_assert_uint_eq(bound(&x, other), 1);
	ck_assert_int_eq(fix_check(x.t, first, 0x1010, 8, MR_REMOTE_READ), MR_NO_KEY);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0x8000, 8, MR_REMOTE_READ), MR_OK);
	b.length = 0;
	b.region = 0;
	b.new_key ^= 2;
	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	ck_assert_uint_eq(bound(&x, other), 0);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0x8000, 8, MR_REMOTE_READ), MR_BAD_STATE);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0, 0, MR_REMOTE_READ), MR_BAD_STATE);
	/* Killed by its handle, whatever its key is now. */
	fix_deregister(x.t, b.window);
	mr_table_free(x.t);
}
END_TEST

/* Between the halves the old key opens nothing, and the region cannot go. */
START_TEST(claim__between_the_halves)
{
	struct world x = world();
	struct mr_bind b = bind_of(&x, fix_free_key(x.t, MR_TYPE_WINDOW_1)), again;

	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	again = b;
	again.new_key ^= 1;
	ck_assert_int_eq(mr_bind_begin(x.t, &again), MR_OK);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0x1010, 8, MR_REMOTE_READ), MR_BAD_STATE);
	ck_assert_int_eq(fix_check(x.t, again.new_key, 0x1010, 8, MR_REMOTE_READ), MR_NO_KEY);
	ck_assert_int_eq(mr_kill(x.t, x.region), -EBUSY);
	ck_assert_int_eq(mr_bind_begin(x.t, &b), MR_BAD_STATE); /* another QP's */
	ck_assert_uint_eq(bound(&x, x.region), 1);
	mr_bind_abort(x.t, &again);
	ck_assert_uint_eq(bound(&x, x.region), 0);
	ck_assert_int_eq(fix_check(x.t, b.new_key, 0x1010, 8, MR_REMOTE_READ), MR_BAD_STATE);
	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	mr_table_free(x.t);
}
END_TEST

/* Deallocated between the halves: it stays until the bind has seen it, and gets no bytes. */
START_TEST(claim__killed)
{
	for (int commit = 0; commit < 2; commit++) {
		struct world x = world();
		struct mr_bind b = bind_of(&x, x.w);

		ck_assert_int_eq(mr_bind_begin(x.t, &b), MR_OK);
		ck_assert_int_eq(mr_kill(x.t, x.w), 0);
		ck_assert(mr_busy(x.t, x.w));
		ck_assert_ptr_null(mr_release(x.t, x.w));
		if (commit)
			ck_assert_int_eq(mr_bind_commit(x.t, &b), MR_BAD_STATE);
		else
			mr_bind_abort(x.t, &b);
		ck_assert_uint_eq(bound(&x, x.region), 0);
		ck_assert_int_eq(fix_check(x.t, b.new_key, 0x1010, 8, MR_REMOTE_READ),
			b.new_key == x.w ? MR_BAD_STATE : MR_NO_KEY);
		ck_assert(!mr_busy(x.t, x.w));
		ck_assert_ptr_eq(mr_release(x.t, x.w), x.t);
		mr_table_free(x.t);
	}
}
END_TEST

/* A copier that came through the old binding is waited for, beside the claim's own hold. */
START_TEST(claim__waits_for_copiers)
{
	struct world x = world();
	struct mr_bind b = bind_of(&x, x.w);
	struct mr_ref ref;
	struct mr *under;

	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	ck_assert_int_eq(mr_check(x.t, b.new_key, PD, QPN, 0x1010, 8, MR_REMOTE_READ, &ref), MR_OK);
	under = mr_under(&ref, 0);
	mr_hold(ref.mr, under);
	ck_assert_int_eq(mr_invalidate(x.t, b.new_key, PD, QPN), MR_OK);
	ck_assert_int_eq(mr_bind_begin(x.t, &b), MR_OK);
	ck_assert(mr_claim_busy(x.t, x.w));
	mr_unhold(ref.mr, under);
	ck_assert(!mr_claim_busy(x.t, x.w));
	ck_assert_int_eq(mr_bind_commit(x.t, &b), MR_OK);
	ck_assert_uint_eq(atomic_load(&mr_slot(x.t, x.region)->holds), 0);
	mr_table_free(x.t);
}
END_TEST

/* The token is that of whoever took it out of VALID last, and a new binding forgets it. */
START_TEST(grace__of_the_last_life)
{
	struct world x = world();
	struct mr_bind b = bind_of(&x, x.w);

	ck_assert_uint_eq(mr_grace(x.t, x.w), MR_GRACE_NONE);
	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	ck_assert_uint_eq(mr_grace(x.t, x.w), 0);
	ck_assert_int_eq(mr_invalidate(x.t, b.new_key, PD, QPN), MR_OK);
	ck_assert_uint_eq(mr_grace(x.t, x.w), 0); /* not started yet: a bind starts its own */
	mr_grace_set(x.t, b.new_key, 77);
	ck_assert_int_eq(mr_bind_begin(x.t, &b), MR_OK);
	ck_assert_uint_eq(mr_grace(x.t, x.w), 77);
	mr_bind_abort(x.t, &b);
	ck_assert_uint_eq(mr_grace(x.t, x.w), 77); /* nobody can have got in since */
	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	ck_assert_uint_eq(mr_grace(x.t, x.w), 0);
	mr_table_free(x.t);
}
END_TEST

START_TEST(whole__rights_without_a_range)
{
	struct world x = world();
	struct mr_bind b = bind_of(&x, x.w);
	struct mr_ref ref;

	ck_assert_int_eq(bind(x.t, &b), MR_OK);
	ck_assert_int_eq(mr_check_whole(x.t, b.new_key, PD, QPN, MR_REMOTE_READ, &ref), MR_OK);
	ck_assert_ptr_eq(ref.ptr, bytes + 16);
	ck_assert_int_eq(mr_check_whole(x.t, b.new_key, PD, QPN, MR_FLUSH_GLOBAL, &ref),
		MR_BAD_ACCESS);
	ck_assert_int_eq(mr_check_whole(x.t, b.new_key, PD, OTHER_QPN, MR_REMOTE_READ, &ref),
		MR_BAD_PD);
	ck_assert_int_eq(mr_check_whole(x.t, b.new_key ^ 1, PD, QPN, MR_REMOTE_READ, &ref),
		MR_NO_KEY);
	mr_table_free(x.t);
}
END_TEST

UNIT_MAIN("mr_bind", bind__opens_its_bytes, bind__zero_based_window, bind__refused,
	bind__read_of_a_read_only_region, bind__within_a_context, bind__scopes,
	type_1__bound_anew_and_to_nothing, claim__between_the_halves, claim__killed,
	claim__waits_for_copiers, grace__of_the_last_life, whole__rights_without_a_range)
