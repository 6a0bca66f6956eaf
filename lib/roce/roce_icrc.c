/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICRC. The masked headers are built in a buffer on the stack, not in the
 * packet: the real fields are wanted afterwards (ECN above all), and on transmit
 * the checksum may be filled in later. One CRC call takes all headers, since
 * the fixed cost of a call outweighs that of a few bytes more.
 */
#include <assert.h>

#include "base_crc.h"
#include "roce_hdr.h"
#include "roce_icrc.h"

#define PREFIX_MAX (ROCE_L3L4_LEN_V6 + ROCE_BTH_LEN)
#define BUF_LEN 96
static_assert(BUF_LEN >= ROCE_L3L4_LEN_V6 + ROCE_HDR_MAX, "all headers in one buffer");

static inline size_t
l3l4_len(bool v6)
{
	return v6 ? ROCE_L3L4_LEN_V6 : ROCE_L3L4_LEN_V4;
}

/* Set the fields that may change on the way to ones; buf holds IP, UDP, BTH. */
static inline void
mask_v4(uint8_t *buf)
{
	buf[1] = 0xff;			/* TOS */
	buf[8] = 0xff;			/* TTL */
	memset(buf + 10, 0xff, 2);	/* header checksum */
	memset(buf + 26, 0xff, 2);	/* UDP checksum */
	buf[ROCE_L3L4_LEN_V4 + 4] = 0xff;	/* BTH: FECN, BECN, reserved */
}

static inline void
mask_v6(uint8_t *buf)
{
	buf[0] |= 0x0f;			/* traffic class, flow label */
	memset(buf + 1, 0xff, 3);
	buf[7] = 0xff;			/* hop limit */
	memset(buf + 46, 0xff, 2);	/* UDP checksum */
	buf[ROCE_L3L4_LEN_V6 + 4] = 0xff;
}

static inline void
mask(uint8_t *buf, bool v6)
{
	if (v6)
		mask_v6(buf);
	else
		mask_v4(buf);
}

uint32_t
roce_icrc_headers(const void *l3, bool v6, const void *bth, size_t bth_len)
{
	const size_t l34 = l3l4_len(v6);
	const size_t in_buf = bth_len < BUF_LEN - l34 ? bth_len : BUF_LEN - l34;
	uint8_t buf[BUF_LEN];
	uint32_t state;

	memcpy(buf, l3, l34);
	memcpy(buf + l34, bth, in_buf);
	mask(buf, v6);
	state = crc32_update(ROCE_ICRC_SEED, buf, l34 + in_buf);
	if (in_buf < bth_len)
		state = crc32_update(state, (const uint8_t *)bth + in_buf, bth_len - in_buf);
	return state;
}

bool
roce_icrc_check(const void *l3, bool v6, size_t len)
{
	const size_t l34 = l3l4_len(v6);

	if (len < l34 + ROCE_BTH_LEN + ROCE_ICRC_LEN)
		return false;
	return roce_icrc_residue_ok(
		roce_icrc_headers(l3, v6, (const uint8_t *)l3 + l34, len - l34));
}

bool
roce_icrc_check_chain(const struct roce_seg *segs, unsigned int count, bool v6)
{
	const size_t want = l3l4_len(v6) + ROCE_BTH_LEN;
	uint8_t buf[PREFIX_MAX];
	size_t have = 0, behind = 0, from = 0;
	uint32_t state;
	unsigned int i;

	/* Gather the masked part, however it is cut. */
	for (i = 0; i < count; i++) {
		from = segs[i].len < want - have ? segs[i].len : want - have;
		if (from != 0)
			memcpy(buf + have, segs[i].data, from);
		have += from;
		if (have == want)
			break;
	}
	if (i == count)
		return false;
	mask(buf, v6);
	state = crc32_update(ROCE_ICRC_SEED, buf, want);
	for (; i < count; i++, from = 0) {
		if (segs[i].len == from)
			continue;
		state = crc32_update(state, (const uint8_t *)segs[i].data + from,
			segs[i].len - from);
		behind += segs[i].len - from;
	}
	return behind >= ROCE_ICRC_LEN && roce_icrc_residue_ok(state);
}
