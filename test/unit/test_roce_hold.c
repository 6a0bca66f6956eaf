/* SPDX-License-Identifier: BSD-3-Clause */
/* Kept packets: their order, what an insertion may cost, and that nobody takes all the room. */
#include <stdlib.h>

#include "roce_priv.h"
#include "unit.h"

#define MBUFS 1024
#define BASE 0xffff00u /* PSNs wrap */

static struct rte_mbuf *mbufs;
static unsigned int num_mbufs;
static struct roce *r;

static void
setup(uint32_t max, uint32_t max_qp)
{
	r = calloc(1, sizeof(*r));
	mbufs = calloc(MBUFS, sizeof(*mbufs));
	ck_assert(r != NULL && mbufs != NULL);
	num_mbufs = 0;
	r->cfg.max_rx_held = max;
	r->cfg.max_rx_held_qp = max_qp;
}

static void
teardown(void)
{
	free(r);
	free(mbufs);
}

static bool
insert(struct roce_qp *qp, uint32_t i)
{
	struct roce_rx rx = {.m = &mbufs[num_mbufs], .qp = qp};

	rx.p.psn = psn_add(BASE, i);
	if (!roce_hold_insert(r, qp, &qp->early, &rx))
		return false;
	num_mbufs++;
	return true;
}

/** Ascending, both chains alike. @return how many. */
static unsigned int
check(const struct roce_qp *qp)
{
	struct rte_mbuf *prev = NULL;
	unsigned int n = 0;

	for (struct rte_mbuf *m = qp->early.head; m; prev = m, m = m->next, n++) {
		ck_assert_ptr_eq((void *)(uintptr_t)m->tx_offload, prev);
		ck_assert(prev == NULL || psn_after(m->hash.fdir.lo, prev->hash.fdir.lo));
	}
	ck_assert_ptr_eq(qp->early.tail, prev);
	ck_assert_uint_eq(qp->rx_held, n);
	return n;
}

START_TEST(hold__any_order)
{
	struct roce_qp_cold cold = {.hold_last = NULL};
	struct roce_qp qp = {.cold = &cold};
	struct rng rng;
	unsigned int n = 0;

	setup(MBUFS, MBUFS);
	rng_seed(&rng, 7);
	for (int i = 0; i < 2000; i++)
		n += insert(&qp, rng_below(&rng, 60)); /* near enough to be found */
	ck_assert_uint_eq(n, 60); /* each once */
	ck_assert_uint_eq(check(&qp), 60);
	teardown();
}
END_TEST

/* Every second one, then those between: near the newest one, however many there are. */
START_TEST(hold__between_others)
{
	struct roce_qp_cold cold = {.hold_last = NULL};
	struct roce_qp qp = {.cold = &cold};

	setup(MBUFS, MBUFS);
	for (uint32_t i = 0; i < 800; i += 2)
		ck_assert(insert(&qp, i));
	for (uint32_t i = 1; i < 100; i += 2)
		ck_assert(insert(&qp, i));
	for (uint32_t i = 799; i > 700; i -= 2)
		ck_assert(insert(&qp, i));
	ck_assert_uint_eq(check(&qp), 400 + 50 + 50);
	teardown();
}
END_TEST

/* A peer may not have us walk over hundreds of packets with each of its own. */
START_TEST(hold__far_from_all_is_not_looked_for)
{
	struct roce_qp_cold cold = {.hold_last = NULL};
	struct roce_qp qp = {.cold = &cold};

	setup(MBUFS, MBUFS);
	for (uint32_t i = 0; i < 800; i += 2)
		ck_assert(insert(&qp, i));
	ck_assert(!insert(&qp, 401));
	ck_assert(!insert(&qp, 101));
	ck_assert(!insert(&qp, 701));
	ck_assert(insert(&qp, 41));
	ck_assert(insert(&qp, 99)); /* near that one */
	ck_assert_uint_eq(check(&qp), 402);
	teardown();
}
END_TEST

/* Four QPs of a quarter each left nothing to a fifth. */
START_TEST(hold__leaves_room_for_others)
{
	struct roce_qp_cold cold[6] = {{.hold_last = NULL}};
	struct roce_qp qp[6] = {{.rx_held = 0}};

	setup(256, 256 / 4 + 1);
	for (int q = 0; q < 6; q++) {
		uint32_t i = 0;

		qp[q].cold = &cold[q];
		while (insert(&qp[q], i))
			i++;
		ck_assert_uint_ge(check(&qp[q]), 8);
		ck_assert_uint_le(i, 65);
	}
	ck_assert_uint_lt(r->rx_held, 256);
	teardown();
}
END_TEST

UNIT_MAIN("roce_hold", hold__any_order, hold__between_others,
	  hold__far_from_all_is_not_looked_for, hold__leaves_room_for_others)
