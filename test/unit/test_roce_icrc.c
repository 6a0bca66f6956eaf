/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ICRC against packets from outside, and against a second computation of
 * it: bit by bit, over a masked copy, from the eight bytes of ones on.
 */
#include <check.h>
#include <stdlib.h>

#include "base_crc.h"
#include "capture.h"
#include "roce_icrc.h"
#include "roce_vectors.h"

#define CAPTURED_FILES 31
#define CAPTURED_PACKETS 1097

static size_t
bth_offset(bool v6)
{
	return v6 ? ROCE_L3L4_LEN_V6 : ROCE_L3L4_LEN_V4;
}

/* Whether the ICRC leaves the byte at this offset out, wholly (0xff) or in part. */
static uint8_t
masked_bits(size_t at, bool v6)
{
	static const uint8_t v4_bytes[] = {1, 8, 10, 11, 26, 27, 32};
	static const uint8_t v6_bytes[] = {1, 2, 3, 7, 46, 47, 52};

	if (v6 && at == 0)
		return 0x0f;
	for (size_t i = 0; i < sizeof(v4_bytes); i++)
		if (at == (v6 ? v6_bytes : v4_bytes)[i])
			return 0xff;
	return 0;
}

static uint32_t
reference_icrc(const uint8_t *ip, bool v6, size_t len)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < len + 8; i++) {
		crc ^= i < 8 ? 0xff : ip[i - 8] | masked_bits(i - 8, v6);
		for (unsigned int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

/* As transmit does it: headers, payload, store. */
static void
transmit_icrc(const uint8_t *ip, bool v6, size_t len, uint8_t *icrc)
{
	const uint8_t *bth = ip + bth_offset(v6);
	const size_t hdr = ROCE_BTH_LEN + roce_opcodes[bth[0]].ext_len;
	uint32_t state = roce_icrc_headers(ip, v6, bth, hdr);

	state = crc32_update(state, bth + hdr, ip + len - (bth + hdr));
	roce_icrc_store(icrc, state);
}

/* The other two ways: in one go, and with the headers apart from IP and UDP. */
static void
check_other_ways(const uint8_t *ip, bool v6, size_t len)
{
	uint8_t *copy = malloc(len), icrc[ROCE_ICRC_LEN];
	const size_t bth = bth_offset(v6);
	uint32_t state;

	memcpy(copy, ip, len - ROCE_ICRC_LEN);
	roce_icrc_write(copy, v6, len);
	ck_assert_mem_eq(copy, ip, len);
	memmove(copy, copy + bth, len - bth);
	state = roce_icrc_headers(ip, v6, copy, len - bth - ROCE_ICRC_LEN);
	roce_icrc_store(icrc, state);
	ck_assert_mem_eq(icrc, ip + len - ROCE_ICRC_LEN, ROCE_ICRC_LEN);
	free(copy);
}

static void
check_packet(uint8_t *ip, bool v6, size_t len, const char *name, unsigned int number)
{
	uint8_t icrc[ROCE_ICRC_LEN];

	ck_assert_msg(roce_icrc_check(ip, v6, len), "%s #%u", name, number);
	check_other_ways(ip, v6, len);
	transmit_icrc(ip, v6, len - ROCE_ICRC_LEN, icrc);
	ck_assert_msg(memcmp(icrc, ip + len - ROCE_ICRC_LEN, ROCE_ICRC_LEN) == 0, "%s #%u", name,
		number);
}

/* B002: the four bytes in wire order, which an ICRC kept in host order gets wrong. */
START_TEST(ROCE_C_1_B002__vector_bytes_in_wire_order)
{
	uint8_t bytes[512], icrc[4] = {0};
	const size_t len = roce_vector_bytes(&roce_vectors[_i], bytes) - ROCE_ICRC_LEN;
	const bool v6 = roce_vector_v6(&roce_vectors[_i]);
	const uint32_t ref = reference_icrc(bytes, v6, len);

	check_packet(bytes, v6, len + ROCE_ICRC_LEN, roce_vectors[_i].name, 0);
	transmit_icrc(bytes, v6, len, icrc);
	for (unsigned int i = 0; i < 4; i++)
		ck_assert_uint_eq(icrc[i], ref >> 8 * i & 0xff);
}
END_TEST

START_TEST(B002__store_is_little_endian)
{
	uint8_t at[6] = {0xaa, 0, 0, 0, 0, 0xaa};

	roce_icrc_store(at + 1, ~0x01020304u);
	ck_assert_mem_eq(at, ((const uint8_t[]){0xaa, 4, 3, 2, 1, 0xaa}), 6);
}
END_TEST

static void
each_captured(const char *name, void *arg)
{
	struct capture *c = capture_open(name);
	unsigned int *packets = arg;
	uint8_t *ip;
	size_t len;
	bool v6;

	while (capture_next(c)) {
		ip = capture_ip(c, &len, &v6);
		ck_assert_msg(ip != NULL, "%s #%u", name, c->number);
		check_packet(ip, v6, len, name, c->number);
		++*packets;
	}
	capture_close(c);
}

START_TEST(ROCE_C_1__every_captured_packet)
{
	unsigned int packets = 0;

	ck_assert_uint_eq(capture_each("roce-", each_captured, &packets), CAPTURED_FILES);
	ck_assert_uint_eq(packets, CAPTURED_PACKETS);
}
END_TEST

/* Each bit of each packet, one at a time: what is masked may change, no other. */
static void
flip_each_bit(uint8_t *ip, bool v6, size_t len)
{
	for (size_t at = 0; at < len; at++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			const bool free_bit = masked_bits(at, v6) >> bit & 1;

			ip[at] ^= 1u << bit;
			ck_assert_msg(roce_icrc_check(ip, v6, len) == free_bit, "byte %zu", at);
			ip[at] ^= 1u << bit;
		}
}

START_TEST(ROCE_C_2_C_3__vector_covered_and_masked_bits)
{
	uint8_t bytes[512];
	const size_t len = roce_vector_bytes(&roce_vectors[_i], bytes);

	flip_each_bit(bytes, roce_vector_v6(&roce_vectors[_i]), len);
}
END_TEST

/* A covered byte of each captured packet, whose place goes through the packet. */
static void
each_corrupted(const char *name, void *arg)
{
	struct capture *c = capture_open(name);
	uint8_t *ip;
	size_t len;
	bool v6;

	(void)arg;
	while (capture_next(c)) {
		ip = capture_ip(c, &len, &v6);
		ck_assert(ip != NULL);
		for (size_t at = 0; at < len; at += at < 64 || at + 8 > len ? 1 : 61) {
			const uint8_t keep = masked_bits(at, v6);

			ip[at] ^= 0xff;
			ck_assert_msg(roce_icrc_check(ip, v6, len) == (keep == 0xff),
				"%s #%u byte %zu", name, c->number, at);
			ip[at] ^= 0xff;
		}
	}
	capture_close(c);
}

START_TEST(ROCE_C_2_C_3_C_4__captured_packets_corrupted)
{
	ck_assert_uint_eq(capture_each("roce-", each_corrupted, NULL), CAPTURED_FILES);
}
END_TEST

START_TEST(B025__zero_icrc_is_refused)
{
	uint8_t bytes[512];
	const size_t len = roce_vector_bytes(&roce_vectors[_i], bytes);

	memset(bytes + len - ROCE_ICRC_LEN, 0, ROCE_ICRC_LEN);
	ck_assert(!roce_icrc_check(bytes, roce_vector_v6(&roce_vectors[_i]), len));
	/* Nor one that was stored most significant byte first (B002). */
	roce_vector_bytes(&roce_vectors[_i], bytes);
	for (unsigned int i = 0; i < 2; i++) {
		const uint8_t b = bytes[len - 1 - i];

		bytes[len - 1 - i] = bytes[len - 4 + i];
		bytes[len - 4 + i] = b;
	}
	ck_assert(!roce_icrc_check(bytes, roce_vector_v6(&roce_vectors[_i]), len));
}
END_TEST

START_TEST(check__truncated_at_every_length)
{
	uint8_t bytes[512];
	const size_t len = roce_vector_bytes(&roce_vectors[_i], bytes);
	const bool v6 = roce_vector_v6(&roce_vectors[_i]);

	for (size_t cut = 0; cut < len; cut++) {
		/* From the heap, so that a sanitizer sees a byte too many. */
		uint8_t *copy = malloc(cut + 1);
		struct roce_seg seg = {copy, cut};

		memcpy(copy, bytes, cut);
		copy = realloc(copy, cut ? cut : 1);
		seg.data = copy;
		ck_assert(!roce_icrc_check(copy, v6, cut));
		ck_assert(!roce_icrc_check_chain(&seg, 1, v6));
		free(copy);
	}
}
END_TEST

/* Cut in two and three at every place, headers and ICRC included, empty pieces too. */
START_TEST(chain__cut_anywhere)
{
	uint8_t bytes[512];
	const size_t len = roce_vector_bytes(&roce_vectors[_i], bytes);
	const bool v6 = roce_vector_v6(&roce_vectors[_i]);

	for (size_t a = 0; a <= len; a++)
		for (size_t b = a; b <= len; b += len > 70 ? 11 : 1) {
			const struct roce_seg segs[] = {
				{bytes, a}, {bytes + a, b - a}, {NULL, 0}, {bytes + b, len - b},
			};

			ck_assert(roce_icrc_check_chain(segs, 4, v6));
			bytes[len / 2 + a % 8] ^= 0x10;
			ck_assert(roce_icrc_check_chain(segs, 4, v6) ==
				(masked_bits(len / 2 + a % 8, v6) != 0));
			bytes[len / 2 + a % 8] ^= 0x10;
		}
	ck_assert(!roce_icrc_check_chain(NULL, 0, v6));
}
END_TEST

/*
 * Too short for a BTH and an ICRC, yet its last four bytes are the ICRC of the
 * rest: not refused for the sum.
 */
START_TEST(check__short_packet_with_a_right_sum)
{
	uint8_t bytes[64] = {0x45};
	struct roce_seg segs[2] = {{bytes, 0}, {bytes, 0}};

	for (size_t len = 37; len <= 44; len++) {
		roce_icrc_write(bytes, false, len);
		segs[0].len = len;
		ck_assert(roce_icrc_check(bytes, false, len) == (len == 44));
		ck_assert(roce_icrc_check_chain(segs, 1, false) == (len == 44));
		segs[0].len = 20;
		segs[1] = (struct roce_seg){bytes + 20, len - 20};
		ck_assert(roce_icrc_check_chain(segs, 2, false) == (len == 44));
	}
}
END_TEST

START_TEST(residue__all_bits_count)
{
	ck_assert(roce_icrc_residue_ok(ROCE_ICRC_RESIDUE));
	for (unsigned int bit = 0; bit < 32; bit++)
		ck_assert(!roce_icrc_residue_ok(ROCE_ICRC_RESIDUE ^ 1u << bit));
}
END_TEST

/* Headers longer than the stack buffer go on in the packet. */
START_TEST(headers__any_length_of_bth_part)
{
	uint8_t bytes[48 + 300];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i * 7 + 1;
	for (unsigned int v6 = 0; v6 < 2; v6++)
		for (size_t n = ROCE_BTH_LEN; n <= 300; n++) {
			const uint8_t *bth = bytes + bth_offset(v6);

			ck_assert_uint_eq(~roce_icrc_headers(bytes, v6, bth, n),
				reference_icrc(bytes, v6, bth_offset(v6) + n));
		}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("roce_icrc");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, ROCE_C_1_B002__vector_bytes_in_wire_order, 0, ROCE_VECTORS);
	tcase_add_test(tc, B002__store_is_little_endian);
	tcase_add_test(tc, ROCE_C_1__every_captured_packet);
	tcase_add_loop_test(tc, ROCE_C_2_C_3__vector_covered_and_masked_bits, 0, ROCE_VECTORS);
	tcase_add_test(tc, ROCE_C_2_C_3_C_4__captured_packets_corrupted);
	tcase_add_loop_test(tc, B025__zero_icrc_is_refused, 0, ROCE_VECTORS);
	tcase_add_loop_test(tc, check__truncated_at_every_length, 0, ROCE_VECTORS);
	tcase_add_loop_test(tc, chain__cut_anywhere, 0, ROCE_VECTORS);
	tcase_add_test(tc, check__short_packet_with_a_right_sum);
	tcase_add_test(tc, residue__all_bits_count);
	tcase_add_test(tc, headers__any_length_of_bth_part);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
