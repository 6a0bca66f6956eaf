/* SPDX-License-Identifier: BSD-3-Clause */
/* The pools give out what was asked for, on lines of their own, and take it back. */
#include "verbs_fixture.h"
#include "verbs_priv.h"

START_TEST(pool__counts_and_lines)
{
	struct verbs_host host = {0};
	struct verbs_worker w;
	uint8_t *end;
	uint32_t n = 0;

	ck_assert_int_eq(verbs_worker_init(&w, 3, NULL, &host, 5, 3, 2), 0);
	ck_assert_uint_eq(w.id, 3);
	end = (uint8_t *)w.memory + w.memory_size;
	for (struct verbs_wqe *q = w.free_wqes; q; q = q->next, n++) {
		ck_assert_uint_eq((uintptr_t)q % RING_LINE, 0);
		ck_assert(q->next == NULL || (uint8_t *)q->next >= (uint8_t *)(q + 1));
	}
	ck_assert_uint_eq(n, 5);
	n = 0;
	for (struct verbs_sgl_block *b = w.free_blocks; b; b = b->next)
		n++;
	ck_assert_uint_eq(n, 3);
	n = 0;
	for (struct verbs_io *io = w.free_ios; io; io = io->next, n++)
		ck_assert((uint8_t *)(io + 1) <= end);
	ck_assert_uint_eq(n, 2);
	verbs_worker_fini(&w);
}
END_TEST

START_TEST(pool__lifo_and_empty)
{
	struct verbs_host host = {0};
	struct verbs_worker w;
	struct verbs_sgl_block *b;
	struct verbs_io *io;

	ck_assert_int_eq(verbs_worker_init(&w, 0, NULL, &host, 0, 1, 1), 0);
	ck_assert_ptr_null(w.free_wqes);
	b = verbs_block_alloc(&w, &w.everyone);
	ck_assert_ptr_null(verbs_block_alloc(&w, &w.everyone));
	ck_assert_uint_eq(w.blocks_used, 1);
	verbs_block_free(&w, b);
	ck_assert_ptr_eq(verbs_block_alloc(&w, &w.everyone), b);
	io = verbs_io_alloc(&w, &w.everyone);
	ck_assert_ptr_null(verbs_io_alloc(&w, &w.everyone));
	verbs_io_free(&w, io);
	ck_assert_uint_eq(w.ios_used, 0);
	verbs_worker_fini(&w);
}
END_TEST

/* One gets half; and whoever comes then, half of the rest, to the last one. */
START_TEST(share__leaves_some_to_others)
{
	struct verbs_share s[3] = {{.used = {0}}};
	struct verbs_host host = {0};
	struct verbs_worker w;
	struct verbs_io *io[64];
	unsigned int n = 0, had = 0;

	ck_assert_int_eq(verbs_worker_init(&w, 0, NULL, &host, 0, 0, 64), 0);
	for (unsigned int i = 0; i < 3; i++) {
		while ((io[n] = verbs_io_alloc(&w, &s[i])) != NULL)
			n++;
		ck_assert_uint_eq(n - had, 32u >> i);
		ck_assert_uint_eq(s[i].used[VERBS_POOL_IO], n - had);
		had = n;
	}
	for (unsigned int i = 0; i < 32; i++)
		verbs_io_free(&w, io[i]);
	ck_assert_uint_eq(s[0].used[VERBS_POOL_IO], 0);
	ck_assert_ptr_nonnull(verbs_io_alloc(&w, &s[2])); /* there is more again */
	verbs_worker_fini(&w);
}
END_TEST

UNIT_MAIN("verbs_pool", pool__counts_and_lines, pool__lifo_and_empty,
	  share__leaves_some_to_others)
