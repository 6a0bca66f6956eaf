/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICRC. The fields that count as ones are or-ed in by crc32_or() on the way into
 * the CRC: a masked copy costs more than the CRC of a small packet does, since
 * its wide reload waits for the narrow stores; and in place the real fields are
 * wanted afterwards (ECN above all).
 */
#include <assert.h>

#include "base_crc.h"
#include "roce_hdr.h"
#include "roce_icrc.h"

#define PREFIX_MAX (ROCE_L3L4_LEN_V6 + ROCE_BTH_LEN)
#define BUF_LEN (ROCE_L3L4_LEN_V6 + ROCE_HDR_MAX)
static_assert(PREFIX_MAX <= CRC_OR_LEN, "crc32_or() reaches all masked fields");

/* [v6]: what may change on the way, as bits over IP, UDP and BTH (A17 section 17.3.3). */
static const uint8_t ones[2][CRC_OR_LEN] __attribute__((aligned(CRC_OR_LEN))) = {
	{
		[1] = 0xff,			/* TOS */
		[8] = 0xff,			/* TTL */
		[10] = 0xff, [11] = 0xff,	/* header checksum */
		[26] = 0xff, [27] = 0xff,	/* UDP checksum */
		[ROCE_L3L4_LEN_V4 + 4] = 0xff,	/* FECN, BECN, reserved */
	},
	{
		[0] = 0x0f, [1] = 0xff, [2] = 0xff, [3] = 0xff, /* traffic class, flow label */
		[7] = 0xff,			/* hop limit */
		[46] = 0xff, [47] = 0xff,	/* UDP checksum */
		[ROCE_L3L4_LEN_V6 + 4] = 0xff,	/* FECN, BECN, reserved */
	},
};

static inline size_t
l3l4_len(bool v6)
{
	return v6 ? ROCE_L3L4_LEN_V6 : ROCE_L3L4_LEN_V4;
}

uint32_t
roce_icrc_headers(const void *l3, bool v6, const void *bth, size_t bth_len)
{
	const size_t l34 = l3l4_len(v6);
	const size_t in_buf = bth_len < BUF_LEN - l34 ? bth_len : BUF_LEN - l34;
	uint8_t buf[BUF_LEN];
	uint32_t state;

	if ((const uint8_t *)l3 + l34 == bth)
		return crc32_or(ROCE_ICRC_SEED, l3, l34 + bth_len, ones[v6]);
	memcpy(buf, l3, l34);
	memcpy(buf + l34, bth, in_buf);
	state = crc32_or(ROCE_ICRC_SEED, buf, l34 + in_buf, ones[v6]);
	if (in_buf < bth_len)
		state = crc32_update(state, (const uint8_t *)bth + in_buf, bth_len - in_buf);
	return state;
}

void
roce_icrc_write(void *l3, bool v6, size_t len)
{
	const uint32_t state = crc32_or(ROCE_ICRC_SEED, l3, len - ROCE_ICRC_LEN, ones[v6]);

	roce_icrc_store((uint8_t *)l3 + len - ROCE_ICRC_LEN, state);
}

bool
roce_icrc_check(const void *l3, bool v6, size_t len)
{
	return len >= l3l4_len(v6) + ROCE_BTH_LEN + ROCE_ICRC_LEN &&
		roce_icrc_residue_ok(crc32_or(ROCE_ICRC_SEED, l3, len, ones[v6]));
}

/* The masked part, however it is cut: its state; *i and *from tell where it ends. */
static uint32_t
chain_prefix(const struct roce_seg *segs, unsigned int count, bool v6, unsigned int *i,
	size_t *from)
{
	const size_t want = l3l4_len(v6) + ROCE_BTH_LEN;
	uint8_t buf[PREFIX_MAX];
	size_t have = 0;

	for (*i = 0; *i < count; ++*i) {
		*from = segs[*i].len < want - have ? segs[*i].len : want - have;
		if (*from != 0)
			memcpy(buf + have, segs[*i].data, *from);
		have += *from;
		if (have == want)
			return crc32_or(ROCE_ICRC_SEED, buf, want, ones[v6]);
	}
	return 0;
}

bool
roce_icrc_check_chain(const struct roce_seg *segs, unsigned int count, bool v6)
{
	size_t behind = 0, from = 0;
	unsigned int i = 0;
	uint32_t state;

	if (count > 0 && segs[0].len >= l3l4_len(v6) + ROCE_BTH_LEN) {
		from = segs[0].len;
		behind = from - l3l4_len(v6) - ROCE_BTH_LEN;
		state = crc32_or(ROCE_ICRC_SEED, segs[0].data, from, ones[v6]);
	} else {
		state = chain_prefix(segs, count, v6, &i, &from);
	}
	for (; i < count; i++, from = 0) {
		if (segs[i].len == from)
			continue;
		state = crc32_update(state, (const uint8_t *)segs[i].data + from,
			segs[i].len - from);
		behind += segs[i].len - from;
	}
	return behind >= ROCE_ICRC_LEN && roce_icrc_residue_ok(state);
}
