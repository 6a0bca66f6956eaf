/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of RoCE v2 (A17 section 17.3.3): CRC-32 over eight bytes of
 * ones, the IP header, UDP, BTH, extension headers, payload and pad, with the
 * fields that a router may change taken as ones. On the wire least significant
 * byte first.
 *
 * A state is the raw CRC register, as crc32_update() takes and returns it.
 * All addresses may be unaligned. l3 points at an IPv4 header without options
 * or an IPv6 header without extension headers, with the UDP header right behind.
 */
#ifndef ROCE_ICRC_H
#define ROCE_ICRC_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * The state after the eight bytes of ones, and also the state after any message
 * followed by its own CRC: the residue.
 */
#define ROCE_ICRC_SEED 0xdebb20e3u
#define ROCE_ICRC_RESIDUE 0xdebb20e3u

/* IP and UDP. */
#define ROCE_L3L4_LEN_V4 28
#define ROCE_L3L4_LEN_V6 48

/** A piece of a packet. */
struct roce_seg {
	const void *data;
	size_t len;
};

/**
 * Compute and write the ICRC of a packet that lies in one piece and is ready but
 * for it (and for IP and UDP checksums, which it does not cover). len counts from
 * l3 through the ICRC. To be called for all packets of a burst once the last is
 * written: the CRC's wide loads wait for narrow stores that are still under way,
 * so that a 64-byte SEND costs less than half of headers and copy summed as they
 * are written (bench_icrc). From about 1 KiB of payload on that is the better way.
 */
void roce_icrc_write(void *l3, bool v6, size_t len);

/**
 * State after IP, UDP and the bth_len bytes at bth: BTH and extension headers,
 * and whatever follows them there. bth_len >= 12. Cheaper when bth lies right
 * behind UDP. Go on with crc32_update() or
 * crc32_copy() over payload and pad, then roce_icrc_store().
 */
uint32_t roce_icrc_headers(const void *l3, bool v6, const void *bth, size_t bth_len);

/** Write the ICRC of a state behind the last pad byte. */
static inline void
roce_icrc_store(void *at, uint32_t state)
{
	uint32_t le = htole32(~state);

	memcpy(at, &le, sizeof(le));
}

/** Whether a state that has taken in the received ICRC too says that it was right. */
static inline bool
roce_icrc_residue_ok(uint32_t state)
{
	return state == ROCE_ICRC_RESIDUE;
}

/**
 * Whether the packet's ICRC is right. len counts from l3 through the ICRC. False
 * for a packet too short to have a BTH and an ICRC.
 */
bool roce_icrc_check(const void *l3, bool v6, size_t len);

/**
 * The same for a packet in pieces, which may be cut anywhere (in the headers
 * and in the ICRC, too). The first piece begins with the IP header, the last
 * ends with the ICRC.
 */
bool roce_icrc_check_chain(const struct roce_seg *segs, unsigned int count, bool v6);

#endif /* ROCE_ICRC_H */
