/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base_siphash.h"
#include "unit.h"

/* The authors' test: key and message count up from 0. 1-3 and not 2-4: as Rust and OpenSSL have it
 * ("openssl mac -macopt c-rounds:1 -macopt d-rounds:3 -macopt size:8 ... SIPHASH"). */
static const struct {
	unsigned int words;
	uint64_t hash;
} vectors[] = {
	{ 0, UINT64_C(0xabac0158050fc4dc) },
	{ 1, UINT64_C(0x369095118d299a8e) },
	{ 2, UINT64_C(0xcc4fdd1a7d908b66) },
	{ 3, UINT64_C(0xf464aeb267349c8c) },
	{ 4, UINT64_C(0x81157b6c16a7b60d) },
	{ 8, UINT64_C(0xf17997ec4b4a6065) },
	{ 31, UINT64_C(0x7de72d367555788a) },
	{ 32, UINT64_C(0x75b3e64e167de370) },
};

START_TEST(vectors__of_the_reference)
{
	uint64_t key[2], w[32];
	uint8_t bytes[sizeof(w)];

	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	memcpy(key, bytes, sizeof(key));
	memcpy(w, bytes, sizeof(w));
	for (unsigned int i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		ck_assert_uint_eq(siphash_words(key, w, vectors[i].words), vectors[i].hash);
}
END_TEST

START_TEST(key__both_halves_count)
{
	const uint64_t w[3] = { 1, 2, 3 };
	uint64_t key[2] = { 0 }, zero = siphash_words(key, w, 3);

	key[0] = 1;
	ck_assert_uint_ne(siphash_words(key, w, 3), zero);
	key[0] = 0;
	key[1] = 1;
	ck_assert_uint_ne(siphash_words(key, w, 3), zero);
}
END_TEST

UNIT_MAIN("base_siphash",
	vectors__of_the_reference,
	key__both_halves_count)
