/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Internet checksum (RFC 1071) and its incremental update (RFC 1624).
 * Sums are in memory order: what they yield is stored as it is.
 */
#ifndef NET_CKSUM_H
#define NET_CKSUM_H

#include <stdbool.h>
#include <stdint.h>

#include "net_addr.h"

struct net_pkt;

static inline uint16_t
net_cksum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/** RFC 1624 equation 3, for one 16-bit word that changed. */
static inline uint16_t
net_cksum_update(uint16_t cksum, uint16_t was, uint16_t is)
{
	return (uint16_t)~net_cksum_fold((uint16_t)~cksum + (uint32_t)(uint16_t)~was + is);
}

/** Folded sum, not complemented, of @len bytes added to @sum. */
uint16_t net_cksum_add(uint16_t sum, const void *buf, size_t len);
/** Folded sum of the pseudo-header of either family (RFC 793, RFC 8200 8.1). */
uint16_t net_cksum_pseudo(const struct net_ip *src, const struct net_ip *dst, uint8_t proto,
	uint32_t l4_len);
/** A whole IPv4 header of 20 bytes sums up. */
bool net_cksum_ipv4_ok(const void *hdr);

/**
 * The checksum of the UDP, TCP or ICMP of a parsed packet is right, or is a
 * UDP checksum of zero (RoCE v2 sends that over both families), or the PMD
 * says GOOD.
 */
bool net_l4_cksum_ok(const struct net_pkt *p);

#endif /* NET_CKSUM_H */
