/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What BTH, payload copy and ICRC of a packet cost, in cache and in bursts: transmit
 * (copy and CRC fused; or copies first and the ICRCs at the end of the burst) and
 * receive (check), beside the bare CRC of as many bytes.
 */
#include <stdio.h>
#include <string.h>

#include "base_crc.h"
#include "bench_util.h"
#include "roce_hdr.h"
#include "roce_icrc.h"

#define BURST 32
#define ROOM 4352

static uint8_t packets[BURST][ROOM] __attribute__((aligned(64)));
static uint8_t source[BURST][ROOM] __attribute__((aligned(64)));

#define L3(i) (packets[i] + 14) /* as behind an Ethernet header */

/* Headers, then copy and CRC of the payload at once, packet by packet. */
static uint32_t
transmit_fused(bool v6, size_t hdr, size_t len)
{
	uint32_t state = 0;

	for (unsigned int i = 0; i < BURST; i++) {
		uint8_t *bth = L3(i) + (v6 ? ROCE_L3L4_LEN_V6 : ROCE_L3L4_LEN_V4);

		roce_bth_emit(bth, ROCE_RC_SEND_ONLY, 0, ROCE_PKEY_DEFAULT, i, i);
		state = roce_icrc_headers(L3(i), v6, bth, hdr);
		state = crc32_copy(state, bth + hdr, source[i] + 16, len);
		roce_icrc_store(bth + hdr + len, state);
	}
	return state;
}

/* Copies first, all ICRCs at the burst's end. */
static uint32_t
transmit_late(bool v6, size_t total, size_t len)
{
	for (unsigned int i = 0; i < BURST; i++) {
		uint8_t *bth = L3(i) + (v6 ? ROCE_L3L4_LEN_V6 : ROCE_L3L4_LEN_V4);

		roce_bth_emit(bth, ROCE_RC_SEND_ONLY, 0, ROCE_PKEY_DEFAULT, i, i);
		memcpy(L3(i) + total - ROCE_ICRC_LEN - len, source[i] + 16, len);
	}
	for (unsigned int i = 0; i < BURST; i++)
		roce_icrc_write(L3(i), v6, total);
	return 0;
}

static uint32_t
receive(bool v6, size_t total)
{
	uint32_t good = 0;

	for (unsigned int i = 0; i < BURST; i++)
		good += roce_icrc_check(L3(i), v6, total);
	return good;
}

static uint32_t
bare(size_t total)
{
	uint32_t state = 0;

	for (unsigned int i = 0; i < BURST; i++)
		state ^= crc32_update(1, L3(i), total);
	return state;
}

static void
measure(const char *what, bool v6, size_t ext, size_t len)
{
	const size_t l34 = v6 ? ROCE_L3L4_LEN_V6 : ROCE_L3L4_LEN_V4;
	const size_t total = l34 + ROCE_BTH_LEN + ext + len + ROCE_ICRC_LEN;
	double fused, late, rx, plain;
	volatile uint32_t sink;

	BENCH(fused, sink = transmit_fused(v6, ROCE_BTH_LEN + ext, len));
	BENCH(late, sink = transmit_late(v6, total, len));
	BENCH(rx, sink = receive(v6, total));
	BENCH(plain, sink = bare(total));
	printf("%-10s %s %5zu B  tx fused %6.1f ns  tx late %6.1f ns  rx %6.1f ns  "
		"bare CRC %6.1f ns\n", what, v6 ? "v6" : "v4", total, fused / BURST,
		late / BURST, rx / BURST, plain / BURST);
	(void)sink;
}

int
main(int argc, char **argv)
{
	if (argc > 1 && !crc_select(argv[1]))
		return 1;
	printf("%s\n", crc_impl_name());
	memset(packets, 0x45, sizeof(packets));
	for (unsigned int v6 = 0; v6 < 2; v6++) {
		measure("ack", v6, 4, 0);
		measure("send", v6, 0, 64);
		measure("write", v6, 16, 64);
		measure("write 256", v6, 16, 256);
		measure("write 4096", v6, 16, 4096);
	}
	return 0;
}
