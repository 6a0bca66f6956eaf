/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CRCs against published vectors, zlib and a CRC made bit by bit, in every
 * implementation that this CPU can run.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#include "base_crc.h"
#include "base_rng.h"
#include "unit.h"

#define SIZE 5000
#define SLACK 64

static const char *const impls[] = {"portable", "pclmul", "vpclmul"};
#define FOREACH_IMPL(i) \
	for (size_t i = 0; i < sizeof(impls) / sizeof(impls[0]); i++) \
		if (crc_select(impls[i]))

static uint8_t data[SIZE + SLACK], copy[SIZE + 2 * SLACK];

static uint32_t
by_bits(uint32_t poly, uint32_t state, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		state ^= p[i];
		for (int k = 0; k < 8; k++)
			state = (state >> 1) ^ (poly & -(state & 1));
	}
	return state;
}

static void
fill(struct rng *r)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)rng_u32(r);
}

START_TEST(crc__check_values)
{
	FOREACH_IMPL(i)
	{
		ck_assert_str_eq(crc_impl_name(), impls[i]);
		ck_assert_uint_eq(~crc32_update(CRC_INIT, "123456789", 9), 0xCBF43926);
		ck_assert_uint_eq(~crc32c_update(CRC_INIT, "123456789", 9), 0xE3069283);
		ck_assert_uint_eq(
			crc32_update(CRC_INIT, "\xff\xff\xff\xff\xff\xff\xff\xff", 8), 0xDEBB20E3);
		ck_assert_uint_eq(CRC_ICRC_INIT, 0xDEBB20E3);
		ck_assert_uint_eq(crc32_update(12345, NULL, 0), 12345);
		ck_assert_uint_eq(crc32c_update(12345, NULL, 0), 12345);
	}
}
END_TEST

/* RFC 3720 B.4, whose bytes are the wire's: low byte of the CRC first. */
START_TEST(crc32c__rfc3720)
{
	static const uint8_t read10[48] = {
		0x01,
		0xc0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0x14,
		0,
		0,
		0,
		0,
		0,
		0x04,
		0,
		0,
		0,
		0,
		0x14,
		0,
		0,
		0,
		0x18,
		0x28,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0x02,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
	};
	uint8_t zeros[32] = {0}, ones[32], up[32], down[32];

	memset(ones, 0xFF, sizeof(ones));
	for (int i = 0; i < 32; i++) {
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	FOREACH_IMPL(i)
	{
		ck_assert_uint_eq(~crc32c_update(CRC_INIT, zeros, 32), 0x8A9136AA);
		ck_assert_uint_eq(~crc32c_update(CRC_INIT, ones, 32), 0x62A8AB43);
		ck_assert_uint_eq(~crc32c_update(CRC_INIT, up, 32), 0x46DD794E);
		ck_assert_uint_eq(~crc32c_update(CRC_INIT, down, 32), 0x113FDB5C);
		ck_assert_uint_eq(~crc32c_update(CRC_INIT, read10, 48), 0xD9963A56);
	}
}
END_TEST

static void
check_one(uint32_t state, const uint8_t *p, size_t n)
{
	uint32_t eth = by_bits(UINT32_C(0xEDB88320), state, p, n);
	uint32_t cast = by_bits(UINT32_C(0x82F63B78), state, p, n);

	FOREACH_IMPL(i)
	{
		ck_assert_msg(crc32_update(state, p, n) == eth, "crc32 %s %zu", impls[i], n);
		ck_assert_msg(crc32c_update(state, p, n) == cast, "crc32c %s %zu", impls[i], n);
	}
#ifdef HAVE_ZLIB
	ck_assert_uint_eq(~(uint32_t)crc32(~state, p, (uInt)n), eth);
#endif
}

START_TEST(crc__every_short_length)
{
	struct rng r;

	rng_seed(&r, 1);
	fill(&r);
	for (size_t n = 0; n <= 1200; n++)
		check_one(rng_u32(&r), data + rng_below(&r, SLACK), n);
}
END_TEST

START_TEST(crc__random)
{
	struct rng r;

	rng_seed(&r, 2);
	for (int i = 0; i < 500; i++) {
		fill(&r);
		check_one(rng_u32(&r), data + rng_below(&r, SLACK), rng_below(&r, SIZE + 1));
	}
}
END_TEST

START_TEST(crc__chains)
{
	struct rng r;

	rng_seed(&r, 3);
	for (int i = 0; i < 500; i++) {
		size_t n = rng_below(&r, SIZE + 1), most = 1 + rng_below(&r, 600);
		uint32_t state = rng_u32(&r), eth, cast;

		fill(&r);
		eth = by_bits(UINT32_C(0xEDB88320), state, data, n);
		cast = by_bits(UINT32_C(0x82F63B78), state, data, n);
		FOREACH_IMPL(k)
		{
			uint32_t s = state, sc = state;

			for (size_t at = 0, piece; at < n; at += piece) {
				piece = rng_below(&r, (uint32_t)most + 1);
				if (piece > n - at)
					piece = n - at;
				s = crc32_update(s, data + at, piece);
				sc = crc32c_copy(sc, copy + at, data + at, piece);
			}
			ck_assert_uint_eq(s, eth);
			ck_assert_uint_eq(sc, cast);
			ck_assert_mem_eq(copy, data, n);
		}
	}
}
END_TEST

typedef uint32_t (*copy_fn)(uint32_t state, void *dst, const void *src, size_t n);

static void
check_copy(copy_fn fn, uint32_t poly, uint32_t state, size_t to, size_t from, size_t n)
{
	static uint8_t before[sizeof(copy)];

	memset(before, 0xA5, sizeof(before));
	memset(copy, 0xA5, sizeof(copy));
	ck_assert_uint_eq(
		fn(state, copy + to, data + from, n), by_bits(poly, state, data + from, n));
	ck_assert_mem_eq(copy + to, data + from, n);
	ck_assert_mem_eq(copy, before, to); /* and nothing beside it */
	ck_assert_mem_eq(copy + to + n, before, sizeof(copy) - to - n);
}

START_TEST(crc__copies)
{
	struct rng r;

	rng_seed(&r, 4);
	fill(&r);
	for (size_t i = 0; i < 1000; i++) {
		size_t n = i < 600 ? i : rng_below(&r, SIZE + 1);
		size_t to = rng_below(&r, SLACK), from = rng_below(&r, SLACK);

		FOREACH_IMPL(k)
		{
			check_copy(crc32_copy, UINT32_C(0xEDB88320), rng_u32(&r), to, from, n);
			check_copy(crc32c_copy, UINT32_C(0x82F63B78), rng_u32(&r), to, from, n);
		}
	}
}
END_TEST

/* Nothing outside the buffer is touched: both its ends at the edge of a page. */
START_TEST(crc__stays_inside)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *m = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *mid = m + page;

	ck_assert_ptr_ne(m, MAP_FAILED);
	ck_assert_int_eq(mprotect(mid, page, PROT_READ | PROT_WRITE), 0);
	memset(mid, 0x5A, page);
	for (size_t n = 0; n <= 600; n++) {
		uint8_t *end = mid + page - n;

		FOREACH_IMPL(i)
		{
			ck_assert_uint_eq(crc32_update(1, mid, n), crc32_copy(1, end, mid, n));
			ck_assert_uint_eq(crc32c_update(1, end, n), crc32c_copy(1, mid, end, n));
		}
	}
	munmap(m, 3 * page);
}
END_TEST

static void *
scribble(void *stop)
{
	for (unsigned int i = 0; !__atomic_load_n((int *)stop, __ATOMIC_RELAXED); i++)
		__atomic_store_n(&data[i * 61 % SIZE], (uint8_t)i, __ATOMIC_RELAXED);
	return NULL;
}

/* The CRC is that of the bytes copied, though the source changes. */
START_TEST(crc__copy_of_changing_memory)
{
	pthread_t thread;
	int stop = 0;
	struct rng r;

	rng_seed(&r, 5);
	ck_assert_int_eq(pthread_create(&thread, NULL, scribble, &stop), 0);
	for (int i = 0; i < 3000; i++) {
		size_t n = rng_below(&r, SIZE + 1);

		FOREACH_IMPL(k)
		{
			uint32_t eth = crc32_copy(7, copy, data, n);

			ck_assert_uint_eq(eth, crc32_update(7, copy, n));
			eth = crc32c_copy(7, copy, data, n);
			ck_assert_uint_eq(eth, crc32c_update(7, copy, n));
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}
END_TEST

static void
check_ones(const uint8_t *p, size_t n, unsigned int kind)
{
	uint8_t ones[CRC_OR_LEN], masked[600];

	for (size_t i = 0; i < CRC_OR_LEN; i++)
		ones[i] = kind == 0 ? 0xFF : kind == 1 ? 0 : (uint8_t)(i * 37);
	memcpy(masked, p, n);
	for (size_t i = 0; i < n && i < CRC_OR_LEN; i++)
		masked[i] |= ones[i];
	ck_assert_uint_eq(crc32_or(0x12345678, p, n, ones), crc32_update(0x12345678, masked, n));
}

/* Against a masked copy: every length around the vectors, every place, three masks. */
START_TEST(crc__ones_over_the_first_bytes)
{
	FOREACH_IMPL(k)
	{
		for (size_t n = 0; n < 3 * 600; n++)
			check_ones(data + n % 67, n / 3, (unsigned int)n % 3);
	}
}
END_TEST

START_TEST(crc__select)
{
	ck_assert(!crc_select("abacus"));
	ck_assert(crc_select("portable"));
	crc_init(); /* does not undo the choice */
	ck_assert_str_eq(crc_impl_name(), "portable");
}
END_TEST

UNIT_MAIN("base_crc", crc__check_values, crc32c__rfc3720, crc__every_short_length, crc__random,
	crc__chains, crc__copies, crc__stays_inside, crc__copy_of_changing_memory,
	crc__ones_over_the_first_bytes, crc__select)
