/* SPDX-License-Identifier: BSD-3-Clause */
/* Address text, prefixes and the addresses derived from others. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "base_siphash.h"
#include "net_addr.h"

static uint64_t hash_key[2];

void
net_ip_hash_key(const uint64_t key[2])
{
	memcpy(hash_key, key, sizeof(hash_key));
}

uint32_t
net_ip_hash(const struct net_ip *ip, uint16_t vid)
{
	const uint64_t w[3] = { net_ip_word(ip, 0), net_ip_word(ip, 1), vid };

	return (uint32_t)siphash_words(hash_key, w, 3);
}

bool
net_ip_is_host(const struct net_ip *ip)
{
	const uint64_t loopback = rte_cpu_to_be_64(1);

	if (net_ip_is_multicast(ip))
		return false;
	if (net_ip_is_v4(ip))
		return ip->b[12] != 0 && ip->b[12] != 127 && ip->b[12] < 240;
	return net_ip_word(ip, 0) != 0 ||
	       (net_ip_word(ip, 1) != 0 && net_ip_word(ip, 1) != loopback);
}

bool
net_ip_in_prefix(const struct net_ip *ip, const struct net_ip *prefix, uint8_t plen)
{
	unsigned int whole = plen / 8;
	uint8_t mask = (uint8_t)(0xff00 >> (plen % 8));

	if (memcmp(ip->b, prefix->b, whole) != 0)
		return false;
	return mask == 0 || ((ip->b[whole] ^ prefix->b[whole]) & mask) == 0;
}

int
net_ip_parse(const char *text, struct net_ip *ip)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		*ip = net_ip_from_v4(v4.s_addr);
		return 0;
	}
	return inet_pton(AF_INET6, text, ip->b) == 1 ? 0 : -EINVAL;
}

int
net_prefix_parse(const char *text, struct net_ip *ip, uint8_t *plen)
{
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	char addr[NET_IP_TEXT];
	unsigned long bits, max;
	char *end;

	if (len >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, text, len);
	addr[len] = '\0';
	if (net_ip_parse(addr, ip) != 0)
		return -EINVAL;
	/* ::ffff:a.b.c.d counts in 128 bits, as it is written. */
	max = strchr(addr, ':') != NULL ? 128 : 32;
	*plen = 128;
	if (slash == NULL)
		return 0;
	if (slash[1] < '0' || slash[1] > '9')
		return -EINVAL;
	bits = strtoul(slash + 1, &end, 10);
	if (*end != '\0' || bits > max)
		return -EINVAL;
	*plen = (uint8_t)(128 - max + bits);
	return 0;
}

const char *
net_ip_format(const struct net_ip *ip, char *buf)
{
	bool v4 = net_ip_is_v4(ip);

	return inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip->b + 12 : ip->b, buf, NET_IP_TEXT);
}

void
net_eui64(const struct rte_ether_addr *mac, uint8_t *eui)
{
	const uint8_t *a = mac->addr_bytes;

	memcpy(eui, a, 3);
	eui[0] ^= 0x02;
	eui[3] = 0xff;
	eui[4] = 0xfe;
	memcpy(eui + 5, a + 3, 3);
}

struct net_ip
net_ip_link_local(const struct rte_ether_addr *mac)
{
	struct net_ip ip = { .b = { 0xfe, 0x80 } };

	net_eui64(mac, ip.b + 8);
	return ip;
}

struct net_ip
net_ip_solicited_node(const struct net_ip *ip)
{
	struct net_ip group = { .b = { 0xff, 0x02, [11] = 0x01, [12] = 0xff } };

	memcpy(group.b + 13, ip->b + 13, 3);
	return group;
}

struct rte_ether_addr
net_ip_multicast_mac(const struct net_ip *group)
{
	struct rte_ether_addr mac = { { 0x33, 0x33 } };

	memcpy(mac.addr_bytes + 2, group->b + 12, 4);
	if (net_ip_is_v4(group)) {
		mac.addr_bytes[0] = 0x01;
		mac.addr_bytes[1] = 0x00;
		mac.addr_bytes[2] = 0x5e;
		mac.addr_bytes[3] &= 0x7f;
	}
	return mac;
}
