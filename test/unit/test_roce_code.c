/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce_code.h"
#include "unit.h"

/* The standard's table in milliseconds, times 100. */
static const uint32_t rnr_ms100[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

START_TEST(credit__table)
{
	static const uint32_t want[31] = {
		0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
		1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
	};

	for (unsigned int code = 0; code < 31; code++)
		ck_assert_uint_eq(roce_credit_decode(code), want[code]);
	ck_assert_uint_eq(roce_credit_decode(31), ROCE_CREDIT_UNLIMITED);
}
END_TEST

/* The largest code that promises no more than is there, for every count. */
START_TEST(credit__encode_never_promises_too_much)
{
	for (uint32_t n = 0; n < 70000; n++) {
		const uint8_t code = roce_credit_encode(n);

		ck_assert_uint_le(code, 30);
		ck_assert_uint_le(roce_credit_decode(code), n);
		if (code < 30)
			ck_assert_uint_gt(roce_credit_decode(code + 1), n);
	}
	ck_assert_uint_eq(roce_credit_encode(UINT32_MAX), 30);
}
END_TEST

START_TEST(rnr__table)
{
	for (unsigned int code = 0; code < 32; code++)
		ck_assert_uint_eq(roce_rnr_ns(code), rnr_ms100[code] * UINT64_C(10000));
	ck_assert_uint_eq(roce_rnr_ns(25), 61440000); /* not rxe's 61.41 ms */
}
END_TEST

START_TEST(rnr__code_is_the_shortest_that_suffices)
{
	ck_assert_uint_eq(roce_rnr_code(0), 1);
	for (unsigned int code = 1; code < 32; code++) {
		ck_assert_uint_eq(roce_rnr_code(roce_rnr_ns(code)), code);
		ck_assert_uint_eq(roce_rnr_code(roce_rnr_ns(code) + 1), (code + 1) % 32);
	}
	ck_assert_uint_eq(roce_rnr_code(UINT64_MAX), 0);
}
END_TEST

START_TEST(timeout__power_of_two_of_4096_ns)
{
	ck_assert_uint_eq(roce_timeout_ns(0), 0);
	ck_assert_uint_eq(roce_timeout_ns(1), 8192);
	ck_assert_uint_eq(roce_timeout_ns(14), 67108864);
	ck_assert_uint_eq(roce_timeout_ns(31), UINT64_C(8796093022208));
	ck_assert_uint_eq(roce_timeout_code(0), 1);
	for (unsigned int code = 1; code < 32; code++) {
		ck_assert_uint_eq(roce_timeout_code(roce_timeout_ns(code)), code);
		ck_assert_uint_eq(roce_timeout_code(roce_timeout_ns(code) + 1),
			code < 31 ? code + 1 : 31);
	}
}
END_TEST

START_TEST(mtu__codes)
{
	static const uint32_t bytes[] = {0, 256, 512, 1024, 2048, 4096, 0};

	for (unsigned int code = 0; code < 7; code++)
		ck_assert_uint_eq(roce_mtu_bytes(code), bytes[code]);
	ck_assert_uint_eq(roce_mtu_bytes(255), 0);
	ck_assert_uint_eq(roce_mtu_code(0), 0);
	ck_assert_uint_eq(roce_mtu_code(255), 0);
	for (unsigned int code = 1; code <= 5; code++) {
		ck_assert_uint_eq(roce_mtu_code(bytes[code]), code);
		ck_assert_uint_eq(roce_mtu_code(bytes[code] - 1), code - 1);
		ck_assert_uint_eq(roce_mtu_code(bytes[code] + 1), code);
	}
	ck_assert_uint_eq(roce_mtu_code(UINT32_MAX), 5);
}
END_TEST

START_TEST(syndrome__types)
{
	ck_assert_uint_eq(roce_syn_ack(31), 0x1f);
	ck_assert_uint_eq(roce_syn_rnr(0), 0x20);
	ck_assert_uint_eq(roce_syn_rnr(31), 0x3f);
	ck_assert(roce_syn_is(0x1f, ROCE_SYN_ACK));
	ck_assert(roce_syn_is(0x20, ROCE_SYN_RNR));
	ck_assert(roce_syn_is(ROCE_NAK_PSN_SEQ, ROCE_SYN_NAK));
	/* Reserved: type 10, and anything with bit 7. */
	for (unsigned int syn = 0; syn < 256; syn++)
		ck_assert((syn >= 0x80 || (syn >= 0x40 && syn < 0x60)) ==
			!(roce_syn_is(syn, ROCE_SYN_ACK) || roce_syn_is(syn, ROCE_SYN_RNR) ||
				roce_syn_is(syn, ROCE_SYN_NAK)));
}
END_TEST

UNIT_MAIN("roce_code",
	credit__table,
	credit__encode_never_promises_too_much,
	rnr__table,
	rnr__code_is_the_shortest_that_suffices,
	timeout__power_of_two_of_4096_ns,
	mtu__codes,
	syndrome__types)
