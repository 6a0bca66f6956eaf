/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE packets from outside, IP header to ICRC, with what is in them. A to E
 * were computed with scapy and zlib, F was captured from a ConnectX-4 Lx, G and
 * H are scapy's own test packet over both IP versions, the others are frames of
 * test/captures. The P_Key is 0xffff in all.
 */
#ifndef ROCE_VECTORS_H
#define ROCE_VECTORS_H

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce_code.h"
#include "roce_hdr.h"

/* htobe32() of a constant, for initialisers. */
#if __BYTE_ORDER == __LITTLE_ENDIAN
#define IMM(host) __builtin_bswap32(host)
#else
#define IMM(host) (host)
#endif

struct roce_vector {
	const char *name;
	const char *hex;
	struct roce_pkt want; /* info and payload not set */
};

static const struct roce_vector roce_vectors[] = {
	{ "A",
		"4500003000004000401126bb0a0000010a000002c00012b7001c00000410ffff0000001280000100"
		"61626300f9daccb0",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_SEND_ONLY, .dest_qpn = 0x12, .psn = 0x100, .ackreq = true,
		.pad = 1,
		.payload_len = 3 } },
	{ "B",
		"60000000001c1140fd000000000000000000000000000001fd000000000000000000000000000002"
		"c00012b7001c00000410ffff000000128000010061626300ce1fa717",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_SEND_ONLY, .dest_qpn = 0x12, .psn = 0x100, .ackreq = true,
		.pad = 1,
		.payload_len = 3 } },
	{ "C",
		"4500003000004000401126bb0a0000020a000001c00012b7001c00001100ffff0000003400000100"
		"1f000001e1c581a3",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_ACK, .dest_qpn = 0x34, .psn = 0x100, .syndrome = 0x1f,
		.msn = 1 } },
	{ "D",
		"4500003c00004000401126af0a0000010a000002c00012b7002800008100ffff4000001200000000"
		"000000000000000000000000000000007a6fd95d",
		{ .pkey = 0xffff, .opcode = ROCE_CNP, .dest_qpn = 0x12, .becn = true } },
	{ "E",
		"4500004400004000401126a70a0000010a000002c00012b7003000000a00ffff0000001280000101"
		"0000000000001000000020010000000800010203040506078f5c6d80",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_WRITE_ONLY, .dest_qpn = 0x12, .psn = 0x101, .ackreq = true,
		.va = 0x1000, .rkey = 0x2001, .dma_len = 8, .payload_len = 8 } },
	{ "F",
		"45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000"
		"0000000000000000000000000000000082fd002a",
		{ .pkey = 0xffff, .opcode = ROCE_CNP, .dest_qpn = 0x118, .becn = true } },
	{ "G",
		"45010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff000000d300cf1710"
		"4630818be28935d90e9a95505401be885e50000078f353f3",
		{ .pkey = 0xffff,
		.opcode = ROCE_UC_SEND_ONLY, .dest_qpn = 0xd3, .psn = 0xcf1710, .migreq = true,
		.pad = 2,
		.payload_len = 18 } },
	{ "H",
		"6e21face002c11ff2022000000000000000000000000102320230000000000000000000000001024"
		"c00012b7002ce7c52460ffff000000d300cf17104630818be28935d90e9a95505401be885e500000"
		"3e5b743b",
		{ .pkey = 0xffff,
		.opcode = ROCE_UC_SEND_ONLY, .dest_qpn = 0xd3, .psn = 0xcf1710, .migreq = true,
		.pad = 2,
		.payload_len = 18 } },
	{ "roce-rc-ops-single #7",
		"45000030a074400040111643c0000202c0000203e2e712b7001c00001100ffff0000001400bf6fb4"
		"1f0000020f83d267",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_ACK, .dest_qpn = 0x14, .psn = 0xbf6fb4, .syndrome = 0x1f,
		.msn = 2 } },
	{ "roce-rc-ops-single #10",
		"450000504a8f400040116c08c0000203c0000202e2e712b7003c00000500ffff0000001480bf6fb6"
		"cafe0001000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f767a7e60",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_SEND_ONLY_IMM, .dest_qpn = 0x14, .psn = 0xbf6fb6,
		.ackreq = true,
		.imm_be = IMM(0xcafe0001), .payload_len = 32 } },
	{ "roce-rc-ops-single #16",
		"450000404a92400040116c15c0000203c0000202e2e712b7002c00000a10ffff0000001480bf6fb9"
		"000055b86517a000000009fd00000003000102005da5c1d2",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_WRITE_ONLY, .dest_qpn = 0x14, .psn = 0xbf6fb9, .ackreq = true,
		.pad = 1,
		.va = 0x55b86517a000, .rkey = 0x9fd, .dma_len = 3, .payload_len = 3 } },
	{ "roce-rc-ops-single #20",
		"4500003c4a94400040116c17c0000203c0000202e2e712b7002800000c00ffff0000001480bf6fbb"
		"000055b86517a000000009fd000000c8bd3f9fa5",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_READ_REQ, .dest_qpn = 0x14, .psn = 0xbf6fbb, .ackreq = true,
		.va = 0x55b86517a000, .rkey = 0x9fd, .dma_len = 200 } },
	{ "roce-rc-ops-single #24",
		"450000484a96400040116c09c0000203c0000202e2e712b7003400001300ffff0000001480bf6fbd"
		"000055b86517b000000009fd99aabbccddeeff001122334455667788a19e813d",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_CMP_SWAP, .dest_qpn = 0x14, .psn = 0xbf6fbd, .ackreq = true,
		.va = 0x55b86517b000, .rkey = 0x9fd, .swap_add = 0x99aabbccddeeff00,
		.compare = 0x1122334455667788 } },
	{ "roce-rc-ops-single #25",
		"45000038a07e400040111631c0000202c0000203e2e712b7002400001200ffff0000001400bf6fbd"
		"1f00000b1716151413121110f4b67b0b",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_ATOMIC_ACK, .dest_qpn = 0x14, .psn = 0xbf6fbd,
		.syndrome = 0x1f, .msn = 11,
		.orig = 0x1716151413121110 } },
	{ "roce-rc-ops-single #26",
		"450000484a97400040116c08c0000203c0000202e2e712b7003400001400ffff0000001480bf6fbe"
		"000055b86517b000000009fd1122334455667788112233445566778809031255",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_FETCH_ADD, .dest_qpn = 0x14, .psn = 0xbf6fbe, .ackreq = true,
		.va = 0x55b86517b000, .rkey = 0x9fd, .swap_add = 0x1122334455667788,
		.compare = 0x1122334455667788 /* stale */ } },
	{ "roce-err-rnr #18",
		"45000030bb9640004011fb20c0000202c0000203cb7312b7001c00001100ffff0000002f0066f890"
		"200000025cd78a18",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_ACK, .dest_qpn = 0x2f, .psn = 0x66f890, .syndrome = 0x20,
		.msn = 2 } },
	{ "roce-err-toolong #15",
		"45000030b98740004011fd2fc0000202c0000203d1ed12b7001c00001100ffff0000002d006ddfd6"
		"63000001a219c682",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_ACK, .dest_qpn = 0x2d, .psn = 0x6ddfd6,
		.syndrome = ROCE_NAK_REM_OP, .msn = 1 } },
	{ "roce-err-badinv #6",
		"450000706470400040115207c0000203c0000202e0f112b7005c00001700ffff0000002e80a3912d"
		"deadbe00000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223"
		"2425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f7efbdbd0",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_SEND_ONLY_INV, .dest_qpn = 0x2e, .psn = 0xa3912d,
		.ackreq = true,
		.inv_rkey = 0xdeadbe00, .payload_len = 64 } },
	{ "roce-ud-ops #6",
		"450000384d1440004011699bc0000203c0000202f24112b7002400006430ffff0000001700000003"
		"012345670000001700000000a97743be",
		{ .pkey = 0xffff,
		.opcode = ROCE_UD_SEND_ONLY, .dest_qpn = 0x17, .psn = 3, .pad = 3,
		.qkey = 0x01234567,
		.src_qpn = 0x17, .payload_len = 1 } },
	{ "roce-rping-ipv6 #5",
		"60000000001c114020010db800000000000000000000000220010db8000000000000000000000003"
		"fed812b7001c00001100ffff0000001200f2111d1f000001a413947d",
		{ .pkey = 0xffff,
		.opcode = ROCE_RC_ACK, .dest_qpn = 0x12, .psn = 0xf2111d, .syndrome = 0x1f,
		.msn = 1 } },
	{ "roce-rping #1",
		"45000134491b400040116c98c0000203c0000202d87212b7012000006400ffff0000000180000000"
		"80010000000000010107020300000000000000048428cbae0010000000000000aecb288400000000"
		"0000000001061c06505400fffe00000300000000000000000000110100000001000000a07fe152a7"
		"ffff37f0ffffffff00000000000000000000ffffc000020300000000000000000000ffffc0000202"
		"afa45000004000980000000000000000000000000000000000000000000000000000000000000000"
		"0000000000000000000000000040dde1000000000000000000000000c00002030000000000000000"
		"00000000c00002020000000000000000000000000000000000000000000000000000000000000000"
		"0000000000000000000000000000000000000000000000006cbb6dda",
		{ .pkey = 0xffff, .opcode = ROCE_UD_SEND_ONLY, .dest_qpn = 1, .psn = 0,
		.ackreq = true,
		.qkey = ROCE_QKEY_GSI, .src_qpn = 1, .payload_len = 256 } },
	{ "roce-rping #2",
		"450001349e8940004011172ac0000202c0000203d87212b7012000006400ffff0000000180000000"
		"80010000000000010107020300000000000000048428cbae00130000000000005ae18ec6aecb2884"
		"00000000000011000000000020a6c700010178e0505400fffe000002000000000000000000000000"
		"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000026f3281f",
		{ .pkey = 0xffff, .opcode = ROCE_UD_SEND_ONLY, .dest_qpn = 1, .psn = 0,
		.ackreq = true,
		.qkey = ROCE_QKEY_GSI, .src_qpn = 1, .payload_len = 256 } },
	{ "roce-cm-reject-user #2",
		"45000134bdfc40004011f7b6c0000202c0000203d87212b7012000006400ffff0000000180000034"
		"80010000000000010107020300000000000000048428cbb400120000000000006ee18ec6b4cb2884"
		"0000001c000000000000000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000000000000000000000000000072656a65"
		"63746564000000000000000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000037171c19",
		{ .pkey = 0xffff,
		.opcode = ROCE_UD_SEND_ONLY, .dest_qpn = 1, .psn = 0x34, .ackreq = true,
		.qkey = ROCE_QKEY_GSI, .src_qpn = 1, .payload_len = 256 } },
};

#define ROCE_VECTORS (sizeof(roce_vectors) / sizeof(roce_vectors[0]))

/** Bytes of a vector into buf, which must hold 512; returns how many. */
static inline size_t
roce_vector_bytes(const struct roce_vector *v, uint8_t *buf)
{
	size_t n;

	for (n = 0; v->hex[2 * n] != '\0'; n++)
		if (sscanf(v->hex + 2 * n, "%2hhx", &buf[n]) != 1)
			abort();
	return n;
}

static inline bool
roce_vector_v6(const struct roce_vector *v)
{
	return v->hex[0] == '6';
}

#endif /* ROCE_VECTORS_H */
