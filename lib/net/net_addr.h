/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses. An IP address is always 16 bytes, IPv4 as ::ffff:a.b.c.d, so that
 * a RoCE v2 GID is a net_ip (IBTA A17 17.4.1) and one table serves both
 * families. Prefix lengths count in those 128 bits: an IPv4 /24 is 120.
 */
#ifndef NET_ADDR_H
#define NET_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

#define NET_VLAN_NONE 0xffff /* a TCI that says "no tag" */
#define NET_IP_TEXT 46	     /* longest text of an address, with its NUL */
#define NET_PREFIX_V4 96     /* prefix length of 0.0.0.0/0 */

struct net_ip {
	uint8_t b[16];
};

static inline uint64_t
net_ip_word(const struct net_ip *ip, unsigned int i)
{
	uint64_t w;

	memcpy(&w, ip->b + 8 * i, sizeof(w));
	return w;
}

static inline bool
net_ip_eq(const struct net_ip *a, const struct net_ip *b)
{
	return ((net_ip_word(a, 0) ^ net_ip_word(b, 0)) |
		(net_ip_word(a, 1) ^ net_ip_word(b, 1))) == 0;
}

static inline bool
net_ip_is_v4(const struct net_ip *ip)
{
	uint32_t mid;

	memcpy(&mid, ip->b + 8, sizeof(mid));
	return net_ip_word(ip, 0) == 0 && mid == RTE_BE32(0x0000ffff);
}

static inline bool
net_ip_is_zero(const struct net_ip *ip)
{
	return (net_ip_word(ip, 0) | net_ip_word(ip, 1)) == 0;
}

/** From an IPv4 address in network order. */
static inline struct net_ip
net_ip_from_v4(rte_be32_t v4)
{
	struct net_ip ip = { .b = { [10] = 0xff, [11] = 0xff } };

	memcpy(ip.b + 12, &v4, sizeof(v4));
	return ip;
}

static inline struct net_ip
net_ip_from_bytes(const void *b16)
{
	struct net_ip ip;

	memcpy(ip.b, b16, sizeof(ip.b));
	return ip;
}

/** The IPv4 address in network order; meaningful when net_ip_is_v4(). */
static inline rte_be32_t
net_ip_v4(const struct net_ip *ip)
{
	rte_be32_t v4;

	memcpy(&v4, ip->b + 12, sizeof(v4));
	return v4;
}

/** 224.0.0.0/4 or ff00::/8. */
static inline bool
net_ip_is_multicast(const struct net_ip *ip)
{
	return net_ip_is_v4(ip) ? (ip->b[12] & 0xf0) == 0xe0 : ip->b[0] == 0xff;
}

/** Not multicast, unspecified, loopback, 0.0.0.0/8 or 240.0.0.0/4 (RFC 1122 3.2.1.3). */
bool net_ip_is_host(const struct net_ip *ip);

/** fe80::/10. */
static inline bool
net_ip_is_link_local(const struct net_ip *ip)
{
	return ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80;
}

/** A tag's VLAN id. 0 is untagged: no tag, or a priority tag (802.1Q). */
static inline uint16_t
net_vlan_id(uint16_t tci)
{
	return tci == NET_VLAN_NONE ? 0 : tci & 0xfff;
}

/** The TCI to send: none for VLAN 0, whatever the priority. */
static inline uint16_t
net_vlan_tci(uint16_t vid, uint8_t pcp)
{
	return vid == 0 ? NET_VLAN_NONE : (uint16_t)((pcp & 7) << 13 | (vid & 0xfff));
}

/**
 * For tables of addresses that others choose: SipHash with the process's key. A process draws one
 * before its first table, or has that of all zeros, the same each time.
 */
uint32_t net_ip_hash(const struct net_ip *ip, uint16_t vid);
void net_ip_hash_key(const uint64_t key[2]);

/** True when the first @plen (0..128) bits agree. */
bool net_ip_in_prefix(const struct net_ip *ip, const struct net_ip *prefix, uint8_t plen);

/** "192.0.2.1", "2001:db8::1" or "::ffff:192.0.2.1". 0 or -EINVAL. */
int net_ip_parse(const char *text, struct net_ip *ip);
/** "192.0.2.0/24" or "2001:db8::/32"; without a length, a host's. */
int net_prefix_parse(const char *text, struct net_ip *ip, uint8_t *plen);
/** IPv4 in dotted form. Returns @buf, which has NET_IP_TEXT bytes. */
const char *net_ip_format(const struct net_ip *ip, char *buf);

/** The EUI-64 of a MAC (RFC 4291 A), also the node GUID; 8 bytes. */
void net_eui64(const struct rte_ether_addr *mac, uint8_t *eui);
/** fe80:: and the EUI-64. */
struct net_ip net_ip_link_local(const struct rte_ether_addr *mac);
/** ff02::1:ffXX:XXXX (RFC 4291 2.7.1). */
struct net_ip net_ip_solicited_node(const struct net_ip *ip);
/** 01:00:5e + low 23 bits (RFC 1112), or 33:33 + low 32 bits (RFC 2464). */
struct rte_ether_addr net_ip_multicast_mac(const struct net_ip *group);

#endif /* NET_ADDR_H */
