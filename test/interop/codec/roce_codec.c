/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RoCE codec for other programs to judge (check_codec.py):
 *   roce_codec parse FILE.pcap   a JSON object a frame: what roce_parse() says
 *   roce_codec emit FILE.pcap    writes a packet of each opcode over IPv4 and IPv6
 */
#include <inttypes.h>

#include "base_crc.h"
#include "capture.h"
#include "roce_hdr.h"
#include "roce_icrc.h"

#define ETH_LEN 14

static size_t
l3l4_len(bool v6)
{
	return v6 ? ROCE_L3L4_LEN_V6 : ROCE_L3L4_LEN_V4;
}

static void
print_memory(const struct roce_pkt *p)
{
	if (roce_any(p->info->mask, ROCE_RETH))
		printf(", \"reth.va\": %" PRIu64 ", \"reth.r_key\": %u, \"reth.dmalen\": %u", p->va,
			p->rkey, p->dma_len);
	if (roce_any(p->info->mask, ROCE_ATOMICETH))
		printf(", \"reth.va\": %" PRIu64 ", \"reth.r_key\": %u"
			", \"atomiceth.swapdt\": %" PRIu64 ", \"atomiceth.cmpdt\": %" PRIu64,
			p->va, p->rkey, p->swap_add, p->compare);
}

static void
print_ext(const struct roce_pkt *p)
{
	const roce_mask m = p->info->mask;

	print_memory(p);
	if (roce_any(m, ROCE_AETH))
		printf(", \"aeth.syndrome\": %u, \"aeth.msn\": %u", p->syndrome, p->msn);
	if (roce_any(m, ROCE_ATOMACK))
		printf(", \"atomicacketh.origremdt\": %" PRIu64, p->orig);
	if (roce_any(m, ROCE_IMMDT))
		printf(", \"immdt\": %u", be32toh(p->imm_be));
	if (roce_any(m, ROCE_IETH))
		printf(", \"ieth\": %u", p->inv_rkey);
	if (roce_any(m, ROCE_DETH))
		printf(", \"deth.q_key\": %u, \"deth.srcqp\": %u", p->qkey, p->src_qpn);
	if (roce_any(m, ROCE_XRCETH))
		printf(", \"srqn\": %u", p->srqn);
	if (roce_any(m, ROCE_FETH))
		printf(", \"flush\": %u", p->flush_sel << 4 | p->flush_plt);
}

static int
parse_file(const char *path)
{
	struct capture *c = capture_open(path);
	struct roce_pkt p;
	uint8_t *ip;
	size_t len;
	bool v6;

	while (capture_next(c)) {
		ip = capture_ip(c, &len, &v6);
		if (ip == NULL || len < l3l4_len(v6) + ROCE_BTH_LEN + ROCE_ICRC_LEN ||
				roce_parse(ip + l3l4_len(v6), len - l3l4_len(v6) - ROCE_ICRC_LEN,
					&p) != ROCE_OK) {
			printf("{\"frame\": %u}\n", c->number);
			continue;
		}
		printf("{\"frame\": %u, \"name\": \"%s\", \"icrc_ok\": %d, \"payload_len\": %u, "
			"\"bth.opcode\": %u, \"bth.se\": %d, \"bth.m\": %d, \"bth.padcnt\": %u, "
			"\"bth.tver\": %u, \"bth.p_key\": %u, \"bth.destqp\": %u, \"bth.a\": %d, "
			"\"bth.psn\": %u", c->number, roce_opcode_name(p.opcode),
			roce_icrc_check(ip, v6, len), p.payload_len, p.opcode, p.se, p.migreq,
			p.pad, p.tver, p.pkey, p.dest_qpn, p.ackreq, p.psn);
		print_ext(&p);
		puts("}");
	}
	capture_close(c);
	return 0;
}

static uint32_t
payload_len(uint8_t rule)
{
	switch (rule) {
	case ROCE_PAYLOAD_PMTU:
		return 256;
	case ROCE_PAYLOAD_1_PMTU:
		return 5;
	case ROCE_PAYLOAD_0_PMTU:
		return 6;
	case ROCE_PAYLOAD_8:
		return 8;
	default:
		return 0;
	}
}

/* Ethernet, IP and UDP in front of ib_len bytes (ICRC included) at the same place. */
static size_t
emit_l2_to_l4(uint8_t *f, bool v6, size_t ib_len)
{
	static const uint8_t v4[] = {0x45, 0x02, 0, 0, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0,
		192, 0, 2, 1, 192, 0, 2, 2};
	static const uint8_t v6_hdr[40] = {0x60, 0x0f, 0xac, 0xe0, 0, 0, 17, 64, 0xfd, [23] = 1,
		[24] = 0xfd, [39] = 2};
	const size_t udp_len = 8 + ib_len;
	uint8_t *ip = f + ETH_LEN, *udp = ip + (v6 ? 40 : 20);

	memset(f, 0, ETH_LEN + l3l4_len(v6));
	memcpy(f, "\x02\0\0\0\0\2\x02\0\0\0\0\1", 12);
	memcpy(f + 12, v6 ? "\x86\xdd" : "\x08\0", 2);
	memcpy(ip, v6 ? v6_hdr : v4, v6 ? 40 : 20);
	ip[v6 ? 4 : 2] = (v6 ? udp_len : udp_len + 20) >> 8;
	ip[v6 ? 5 : 3] = v6 ? udp_len : udp_len + 20;
	memcpy(udp, "\xc0\x12\x12\xb7", 4);
	udp[4] = udp_len >> 8;
	udp[5] = udp_len;
	return ETH_LEN + l3l4_len(v6);
}

static size_t
emit_frame(uint8_t *f, uint8_t opcode, bool v6)
{
	static const uint8_t payload[256] = {0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8};
	struct roce_pkt p = {
		.opcode = opcode, .payload = payload,
		.payload_len = payload_len(roce_opcodes[opcode].payload),
		.dest_qpn = 0x123456, .psn = 0xabcdef - opcode, .pkey = 0x8765, .se = opcode & 1,
		.migreq = !(opcode & 2), .ackreq = opcode & 4, .becn = opcode == ROCE_CNP,
		.syndrome = 0x62, .msn = 0x345678, .va = 0x0011223344556677, .rkey = 0x8899aabb,
		.dma_len = 0x7fffff01, .swap_add = 0x0102030405060708,
		.compare = 0x1112131415161718, .orig = 0x2122232425262728,
		.imm_be = htobe32(0x31323334), .inv_rkey = 0x41424344, .qkey = 0x11223344,
		.src_qpn = 0x515253, .srqn = 0x616263, .flush_sel = ROCE_FETH_SEL_MR,
		.flush_plt = ROCE_FETH_PLT_PERSISTENT,
	};
	uint8_t ib[512];
	size_t len, at;
	uint32_t state;

	p.pad = roce_pad(p.payload_len);
	len = roce_emit(&p, ib, sizeof(ib));
	at = emit_l2_to_l4(f, v6, len + ROCE_ICRC_LEN);
	memcpy(f + at, ib, len);
	state = roce_icrc_headers(f + ETH_LEN, v6, f + at, len);
	roce_icrc_store(f + at + len, state);
	return at + len + ROCE_ICRC_LEN;
}

static int
emit_file(const char *path)
{
	const uint32_t file_hdr[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};
	uint8_t frame[1024];
	FILE *f = fopen(path, "wb");

	if (f == NULL || fwrite(file_hdr, sizeof(file_hdr), 1, f) != 1)
		return 1;
	for (unsigned int i = 0; i < 512; i++) {
		const uint32_t len = roce_opcode_known(i / 2) ? emit_frame(frame, i / 2, i & 1) : 0;
		const uint32_t hdr[4] = {i, 0, len, len};

		if (len != 0 && (fwrite(hdr, sizeof(hdr), 1, f) != 1 ||
				fwrite(frame, len, 1, f) != 1))
			return 1;
	}
	return fclose(f) != 0;
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "parse") == 0)
		return parse_file(argv[2]);
	if (argc == 3 && strcmp(argv[1], "emit") == 0)
		return emit_file(argv[2]);
	fputs("usage: roce_codec parse|emit FILE.pcap\n", stderr);
	return 2;
}
