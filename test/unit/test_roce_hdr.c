/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse and emit against packets from outside: the vectors, and every frame of
 * the RoCE captures. Hostile input lies at the end of its page, so that one
 * byte read too many is a fault even without a sanitizer.
 */
#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture.h"
#include "roce_icrc.h"
#include "roce_vectors.h"

#define CAPTURED_FILES 31
#define CAPTURED_PACKETS 1097

/* Last bytes before a page that cannot be read. */
static uint8_t *fence;

static void
fence_setup(void)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(p != MAP_FAILED);
	ck_assert_int_eq(mprotect(p + 2 * page, page, PROT_NONE), 0);
	fence = p + 2 * page;
}

static void
fence_teardown(void)
{
	const size_t page = sysconf(_SC_PAGESIZE);

	munmap(fence - 2 * page, 3 * page);
}

/* Parse len bytes put right before the fence. */
static int
parse_fenced(const uint8_t *bytes, size_t len, struct roce_pkt *pkt)
{
	memcpy(fence - len, bytes, len);
	return roce_parse(fence - len, len, pkt);
}

static size_t
bth_offset(bool v6)
{
	return v6 ? ROCE_L3L4_LEN_V6 : ROCE_L3L4_LEN_V4;
}

static void
check_same(const struct roce_pkt *got, const struct roce_pkt *want)
{
#define SAME(field) ck_assert_msg(got->field == want->field, #field ": %#llx, not %#llx", \
	(unsigned long long)got->field, (unsigned long long)want->field)
	SAME(opcode); SAME(se); SAME(migreq); SAME(pad); SAME(tver); SAME(pkey);
	SAME(fecn); SAME(becn); SAME(dest_qpn); SAME(ackreq); SAME(psn);
	SAME(syndrome); SAME(msn); SAME(va); SAME(rkey); SAME(dma_len);
	SAME(swap_add); SAME(compare); SAME(orig); SAME(imm_be); SAME(inv_rkey);
	SAME(qkey); SAME(src_qpn); SAME(srqn); SAME(flush_sel); SAME(flush_plt);
	SAME(payload_len);
#undef SAME
}

START_TEST(ROCE_C_72__vector_is_parsed_and_emitted)
{
	const struct roce_vector *v = &roce_vectors[_i];
	uint8_t bytes[512], out[512];
	struct roce_pkt pkt;
	size_t len = roce_vector_bytes(v, bytes);
	const size_t bth = bth_offset(roce_vector_v6(v));

	len -= bth + ROCE_ICRC_LEN;
	ck_assert_int_eq(parse_fenced(bytes + bth, len, &pkt), ROCE_OK);
	check_same(&pkt, &v->want);
	ck_assert_ptr_eq(pkt.info, &roce_opcodes[pkt.opcode]);
	ck_assert_ptr_eq(pkt.payload, fence - pkt.pad - pkt.payload_len);
	memset(out, 0xa5, sizeof(out));
	ck_assert_uint_eq(roce_emit(&pkt, out, len), len);
	ck_assert_mem_eq(out, bytes + bth, len);
	ck_assert_uint_eq(out[len], 0xa5);
	ck_assert_uint_eq(roce_emit(&pkt, out, len - 1), 0);
}
END_TEST

static void
each_captured(const char *name, void *arg)
{
	struct capture *c = capture_open(name);
	unsigned int *packets = arg;
	struct roce_pkt pkt;
	uint8_t out[8192];
	uint8_t *ip;
	size_t len;
	bool v6;

	while (capture_next(c)) {
		ip = capture_ip(c, &len, &v6);
		ck_assert_msg(ip != NULL, "%s #%u", name, c->number);
		ip += bth_offset(v6);
		len -= bth_offset(v6) + ROCE_ICRC_LEN;
		ck_assert_msg(parse_fenced(ip, len, &pkt) == ROCE_OK, "%s #%u", name, c->number);
		ck_assert_uint_eq(pkt.pad, roce_pad(pkt.payload_len));
		ck_assert_msg(roce_payload_ok(pkt.info, pkt.payload_len, pkt.pad,
			strstr(name, "mtu4096") != NULL ? 4096 : 1024), "%s #%u", name, c->number);
		ck_assert_uint_eq(roce_emit(&pkt, out, sizeof(out)), len);
		ck_assert_msg(memcmp(out, ip, len) == 0, "%s #%u", name, c->number);
		++*packets;
	}
	capture_close(c);
}

START_TEST(ROCE_C_72__every_captured_packet_is_parsed_and_emitted)
{
	unsigned int packets = 0;

	ck_assert_uint_eq(capture_each("roce-", each_captured, &packets), CAPTURED_FILES);
	ck_assert_uint_eq(packets, CAPTURED_PACKETS);
}
END_TEST

/* A packet of each opcode with every field set, there and back. */
static void
round_trip(uint8_t opcode)
{
	static const uint8_t payload[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct roce_pkt pkt = {
		.opcode = opcode, .payload = payload, .payload_len = 5, .dest_qpn = 0xabcdef,
		.psn = 0xfedcba, .pkey = 0x8001, .pad = 3, .se = true, .migreq = true,
		.fecn = true, .becn = true, .ackreq = true,
	};
	uint8_t out[128];
	struct roce_pkt got;
	size_t len;

	if (!roce_opcode_known(opcode)) {
		ck_assert_uint_eq(roce_emit(&pkt, out, sizeof(out)), 0);
		return;
	}
	if (roce_opcodes[opcode].reth != 0 || roce_opcodes[opcode].atomiceth != 0) {
		pkt.va = 0x0123456789abcdef;
		pkt.rkey = 0xdeadbeef;
	}
	if (roce_opcodes[opcode].reth != 0)
		pkt.dma_len = 0x80000001;
	if (roce_opcodes[opcode].atomiceth != 0) {
		pkt.swap_add = 0x1122334455667788;
		pkt.compare = 0x99aabbccddeeff00;
	}
	if (roce_opcodes[opcode].aeth != 0) {
		pkt.syndrome = 0x62;
		pkt.msn = 0x123456;
	}
	pkt.orig = roce_opcodes[opcode].atomack != 0 ? 0xf0e1d2c3b4a59687 : 0;
	pkt.imm_be = roce_opcodes[opcode].immdt != 0 ? IMM(0x01020304) : 0;
	pkt.inv_rkey = roce_opcodes[opcode].ieth != 0 ? 0xcafebabe : 0;
	pkt.qkey = roce_opcodes[opcode].deth != 0 ? 0x80010000 : 0;
	pkt.src_qpn = roce_opcodes[opcode].deth != 0 ? 0x765432 : 0;
	pkt.srqn = roce_opcodes[opcode].xrceth != 0 ? 0x654321 : 0;
	pkt.flush_sel = roce_opcodes[opcode].feth != 0 ? ROCE_FETH_SEL_MR : 0;
	pkt.flush_plt = roce_opcodes[opcode].feth != 0 ?
		ROCE_FETH_PLT_GLOBAL | ROCE_FETH_PLT_PERSISTENT : 0;
	len = roce_emit(&pkt, out, sizeof(out));
	ck_assert_uint_eq(len, ROCE_BTH_LEN + roce_opcodes[opcode].ext_len + 8);
	ck_assert_int_eq(parse_fenced(out, len, &got), ROCE_OK);
	check_same(&got, &pkt);
	ck_assert_mem_eq(got.payload, payload, 5);
}

START_TEST(emit__each_opcode_round_trip)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++)
		round_trip(opcode);
}
END_TEST

/* Headers that no capture has, byte by byte: XRC, flush, atomic write. */
START_TEST(emit__uncaptured_headers_byte_by_byte)
{
	static const uint8_t xrc[] = {
		0xab, 0x00, 0xff, 0xff, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0x11, 0x22, 0x33,
		0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0xca, 0xfe, 0, 1,
	};
	static const uint8_t flush[] = {
		0x1c, 0x00, 0xff, 0xff, 0, 0, 0, 2, 0x80, 0, 0, 3, 0, 0, 0, 0x13,
		0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0, 9,
	};
	struct roce_pkt pkt;
	uint8_t out[64];

	ck_assert_int_eq(parse_fenced(xrc, sizeof(xrc), &pkt), ROCE_OK);
	ck_assert_uint_eq(pkt.srqn, 0x112233);
	ck_assert_uint_eq(pkt.va, 0x1000);
	ck_assert_uint_eq(pkt.rkey, 0x2000);
	ck_assert_uint_eq(pkt.imm_be, IMM(0xcafe0001));
	ck_assert_uint_eq(roce_emit(&pkt, out, sizeof(out)), sizeof(xrc));
	ck_assert_mem_eq(out, xrc, sizeof(xrc));

	ck_assert_int_eq(parse_fenced(flush, sizeof(flush), &pkt), ROCE_OK);
	ck_assert_uint_eq(pkt.flush_sel, ROCE_FETH_SEL_MR);
	ck_assert_uint_eq(pkt.flush_plt, ROCE_FETH_PLT_GLOBAL | ROCE_FETH_PLT_PERSISTENT);
	ck_assert_uint_eq(pkt.dma_len, 9);
	ck_assert_uint_eq(roce_emit(&pkt, out, sizeof(out)), sizeof(flush));
	ck_assert_mem_eq(out, flush, sizeof(flush));
}
END_TEST

static void
short_at_every_length(uint8_t opcode)
{
	const size_t hdr = ROCE_BTH_LEN + roce_opcodes[opcode].ext_len;
	uint8_t bytes[128] = {opcode, [7] = 1};
	struct roce_pkt pkt;

	for (size_t len = 0; len <= hdr + 4; len++)
		ck_assert_int_eq(parse_fenced(bytes, len, &pkt),
			len < hdr ? ROCE_DROP_SHORT : ROCE_OK);
	ck_assert_uint_eq(pkt.payload_len, 4);
}

START_TEST(emit__room_is_kept)
{
	struct roce_pkt pkt = {.opcode = ROCE_RC_SEND_ONLY, .pad = 3, .payload = fence - 5};
	uint8_t out[32];

	for (pkt.payload_len = 0; pkt.payload_len <= 5; pkt.payload_len += 5)
		for (size_t room = 0; room < sizeof(out); room++) {
			const size_t len = ROCE_BTH_LEN + pkt.payload_len + 3;

			memset(out, 0xa5, sizeof(out));
			ck_assert_uint_eq(roce_emit(&pkt, out, room), room < len ? 0 : len);
			for (size_t i = room; i < sizeof(out); i++)
				ck_assert_uint_eq(out[i], 0xa5);
		}
}
END_TEST

START_TEST(parse__short_at_every_length)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++)
		if (roce_opcode_known(opcode))
			short_at_every_length(opcode);
}
END_TEST

START_TEST(parse__pad_larger_than_what_is_there)
{
	uint8_t bytes[16] = {ROCE_RC_SEND_ONLY, [7] = 1};
	struct roce_pkt pkt;

	for (unsigned int pad = 0; pad < 4; pad++)
		for (unsigned int behind = 0; behind < 4; behind++) {
			bytes[1] = pad << ROCE_BTH_PAD_SHIFT;
			ck_assert_int_eq(parse_fenced(bytes, ROCE_BTH_LEN + behind, &pkt),
				pad > behind ? ROCE_DROP_PAD : ROCE_OK);
			if (pad <= behind)
				ck_assert_uint_eq(pkt.payload_len, behind - pad);
		}
}
END_TEST

START_TEST(ROCE_C_6__tver_must_be_0)
{
	uint8_t bytes[12] = {ROCE_RC_SEND_ONLY, [7] = 1};
	struct roce_pkt pkt;

	for (unsigned int tver = 0; tver < 16; tver++) {
		bytes[1] = tver;
		ck_assert_int_eq(parse_fenced(bytes, 12, &pkt), tver ? ROCE_DROP_TVER : ROCE_OK);
		ck_assert_uint_eq(pkt.tver, tver);
	}
}
END_TEST

START_TEST(ROCE_C_7__qp0_is_dropped)
{
	/* FECN, BECN and the reserved bits do not make it another QP. */
	const uint8_t bytes[12] = {ROCE_RC_SEND_ONLY, [4] = 0xff};
	struct roce_pkt pkt;

	ck_assert_int_eq(parse_fenced(bytes, 12, &pkt), ROCE_DROP_QP0);
}
END_TEST

START_TEST(parse__unknown_opcodes_are_dropped)
{
	uint8_t bytes[64] = {[7] = 1};
	struct roce_pkt pkt;

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		bytes[0] = opcode;
		ck_assert_int_eq(parse_fenced(bytes, sizeof(bytes), &pkt),
			roce_opcode_known(opcode) ? ROCE_OK : ROCE_DROP_OPCODE);
	}
}
END_TEST

START_TEST(parse__reserved_bits_are_ignored)
{
	uint8_t bytes[20] = {ROCE_UD_SEND_ONLY, [7] = 1, [11] = 2, [19] = 3};
	struct roce_pkt pkt;

	bytes[4] = 0x3f;
	bytes[8] = 0x7f;
	bytes[16] = 0xff;
	ck_assert_int_eq(parse_fenced(bytes, 20, &pkt), ROCE_OK);
	ck_assert(!pkt.fecn && !pkt.becn && !pkt.ackreq);
	ck_assert_uint_eq(pkt.dest_qpn, 1);
	ck_assert_uint_eq(pkt.psn, 2);
	ck_assert_uint_eq(pkt.src_qpn, 3);
}
END_TEST

static uint64_t
random_next(uint64_t *s) /* xorshift64 */
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* Garbage of any length: never a fault, and what is accepted stays inside. */
START_TEST(parse__garbage)
{
	uint64_t seed = 0x5eed0001;
	unsigned int accepted = 0;
	uint8_t bytes[80];
	struct roce_pkt pkt;

	for (unsigned int n = 0; n < 200000; n++) {
		const size_t len = random_next(&seed) % sizeof(bytes);

		for (size_t i = 0; i < len; i++)
			bytes[i] = random_next(&seed) >> 32;
		if (len > 1 && n % 2)
			bytes[1] &= 0xf0;
		if (parse_fenced(bytes, len, &pkt) != ROCE_OK)
			continue;
		accepted++;
		ck_assert(pkt.payload >= fence - len + ROCE_BTH_LEN);
		ck_assert_ptr_eq(pkt.payload + pkt.payload_len + pkt.pad, fence);
	}
	ck_assert_uint_gt(accepted, 1000);
}
END_TEST

START_TEST(names__drops)
{
	ck_assert_str_eq(roce_drop_name(ROCE_OK), "ok");
	ck_assert_str_eq(roce_drop_name(ROCE_DROP_QP0), "qp0");
	ck_assert_str_eq(roce_drop_name(ROCE_DROP_QP0 - 1), "unknown");
	ck_assert_str_eq(roce_drop_name(1), "unknown");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("roce_hdr");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, fence_setup, fence_teardown);
	tcase_add_loop_test(tc, ROCE_C_72__vector_is_parsed_and_emitted, 0, ROCE_VECTORS);
	tcase_add_test(tc, ROCE_C_72__every_captured_packet_is_parsed_and_emitted);
	tcase_add_test(tc, emit__each_opcode_round_trip);
	tcase_add_test(tc, emit__uncaptured_headers_byte_by_byte);
	tcase_add_test(tc, emit__room_is_kept);
	tcase_add_test(tc, parse__short_at_every_length);
	tcase_add_test(tc, parse__pad_larger_than_what_is_there);
	tcase_add_test(tc, ROCE_C_6__tver_must_be_0);
	tcase_add_test(tc, ROCE_C_7__qp0_is_dropped);
	tcase_add_test(tc, parse__unknown_opcodes_are_dropped);
	tcase_add_test(tc, parse__reserved_bits_are_ignored);
	tcase_add_test(tc, parse__garbage);
	tcase_add_test(tc, names__drops);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
