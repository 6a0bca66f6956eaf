/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: text, prefixes, derived ones (values of RFC 4291, RFC 1112, RFC 2464). */
#include "net_test.h"

static void
check_format(const char *in, const char *out)
{
	struct net_ip a = ip(in);
	char buf[NET_IP_TEXT];

	ck_assert_str_eq(net_ip_format(&a, buf), out);
}

START_TEST(ip__text)
{
	const char *bad[] = { "", "192.0.2", "192.0.2.256", "2001:db8", "::g", "192.0.2.1 ",
		"localhost" };
	struct net_ip a;

	check_format("192.0.2.1", "192.0.2.1");
	check_format("::ffff:192.0.2.1", "192.0.2.1");
	check_format("2001:DB8:0::2", "2001:db8::2");
	check_format("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	for (size_t i = 0; i < RTE_DIM(bad); i++)
		ck_assert_int_ne(net_ip_parse(bad[i], &a), 0);
}
END_TEST

START_TEST(ip__v4_is_mapped)
{
	const uint8_t gid[16] = { [10] = 0xff, 0xff, 192, 0, 2, 3 };
	struct net_ip a = ip("192.0.2.3"), b = ip("::192.0.2.3");

	ck_assert_mem_eq(a.b, gid, 16);
	ck_assert(net_ip_is_v4(&a));
	ck_assert(!net_ip_is_v4(&b));
	ck_assert(!net_ip_eq(&a, &b));
	ck_assert_uint_eq(net_ip_v4(&a), RTE_BE32(0xc0000203));
	b = net_ip_from_v4(RTE_BE32(0xc0000203));
	ck_assert(net_ip_eq(&a, &b));
}
END_TEST

static bool
multicast(const char *text)
{
	struct net_ip a = ip(text);

	return net_ip_is_multicast(&a);
}

START_TEST(ip__classes)
{
	struct net_ip a = ip("fe80::1"), b = ip("febf::1"), c = ip("fec0::1"), z = ip("::");

	ck_assert(multicast("224.0.0.1") && multicast("239.255.255.255") && multicast("ff02::1"));
	ck_assert(!multicast("223.255.255.255") && !multicast("240.0.0.1"));
	ck_assert(!multicast("fe80::1"));
	ck_assert(!multicast("e000::1"));
	ck_assert(net_ip_is_link_local(&a) && net_ip_is_link_local(&b));
	ck_assert(!net_ip_is_link_local(&c));
	ck_assert(net_ip_is_zero(&z) && !net_ip_is_zero(&a));
}
END_TEST

START_TEST(ip__hosts)
{
	static const char *const host[] = {"1.0.0.1", "126.255.255.255", "128.0.0.1",
		"223.255.255.255", "fe80::1", "2001:db8::1", "::2", "0:0:0:1::1"};
	static const char *const none[] = {"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.255",
		"224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "ff02::1"};
	struct net_ip a;

	for (size_t i = 0; i < RTE_DIM(host); i++) {
		a = ip(host[i]);
		ck_assert_msg(net_ip_is_host(&a), "%s", host[i]);
	}
	for (size_t i = 0; i < RTE_DIM(none); i++) {
		a = ip(none[i]);
		ck_assert_msg(!net_ip_is_host(&a), "%s", none[i]);
	}
}
END_TEST

static int
prefix(const char *text, const char *addr, uint8_t want)
{
	struct net_ip a, b;
	uint8_t plen;

	if (net_prefix_parse(text, &a, &plen) != 0)
		return -1;
	b = ip(addr);
	ck_assert(net_ip_eq(&a, &b));
	ck_assert_uint_eq(plen, want);
	return 0;
}

START_TEST(prefix__text)
{
	ck_assert_int_eq(prefix("192.0.2.0/24", "192.0.2.0", 120), 0);
	ck_assert_int_eq(prefix("0.0.0.0/0", "0.0.0.0", 96), 0);
	ck_assert_int_eq(prefix("192.0.2.1", "192.0.2.1", 128), 0);
	ck_assert_int_eq(prefix("2001:db8::/32", "2001:db8::", 32), 0);
	ck_assert_int_eq(prefix("::/0", "::", 0), 0);
	ck_assert_int_eq(prefix("192.0.2.0/33", "192.0.2.0", 0), -1);
	ck_assert_int_eq(prefix("::/129", "::", 0), -1);
	ck_assert_int_eq(prefix("192.0.2.0/", "192.0.2.0", 0), -1);
	ck_assert_int_eq(prefix("192.0.2.0/-1", "192.0.2.0", 0), -1);
	ck_assert_int_eq(prefix("192.0.2.0/24x", "192.0.2.0", 0), -1);
}
END_TEST

static bool
in_prefix(const char *addr, const char *text)
{
	struct net_ip a = ip(addr), p;
	uint8_t plen;

	ck_assert_int_eq(net_prefix_parse(text, &p, &plen), 0);
	return net_ip_in_prefix(&a, &p, plen);
}

START_TEST(prefix__match)
{
	ck_assert(in_prefix("192.0.2.255", "192.0.2.0/24"));
	ck_assert(!in_prefix("192.0.3.0", "192.0.2.0/24"));
	ck_assert(in_prefix("192.0.3.0", "192.0.2.0/23"));
	ck_assert(!in_prefix("192.0.4.0", "192.0.2.0/23"));
	ck_assert(in_prefix("203.0.113.1", "0.0.0.0/0"));
	ck_assert(!in_prefix("2001:db8::1", "0.0.0.0/0"));
	ck_assert(in_prefix("2001:db8::1", "2001:db8::1/128"));
	ck_assert(!in_prefix("2001:db8::1", "2001:db8::/128"));
	ck_assert(in_prefix("2001:db8::1", "::/0"));
}
END_TEST

START_TEST(ip__derived)
{
	const uint8_t guid[8] = { 0x50, 0x54, 0, 0xff, 0xfe, 0, 0, 3 }; /* capture roce-rping #1 */
	const struct rte_ether_addr v4_group = { { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 } };
	const struct rte_ether_addr v6_group = { { 0x33, 0x33, 0xff, 0x28, 0x9c, 0x5a } };
	struct rte_ether_addr mac;
	struct net_ip a, b;
	uint8_t eui[8];

	net_eui64(&test_peer, eui);
	ck_assert_mem_eq(eui, guid, 8);
	a = net_ip_link_local(&test_peer);
	b = ip("fe80::5054:ff:fe00:3");
	ck_assert(net_ip_eq(&a, &b));
	/* The example of RFC 4291 2.7.1, with a last byte of our own. */
	a = ip("4037::01:800:200e:8c6c");
	a = net_ip_solicited_node(&a);
	b = ip("ff02::1:ff0e:8c6c");
	ck_assert(net_ip_eq(&a, &b));
	a = ip("239.129.2.3"); /* bit 23 is not in the MAC */
	mac = net_ip_multicast_mac(&a);
	ck_assert(rte_is_same_ether_addr(&mac, &v4_group));
	a = ip("ff02::1:ff28:9c5a");
	mac = net_ip_multicast_mac(&a);
	ck_assert(rte_is_same_ether_addr(&mac, &v6_group));
}
END_TEST

START_TEST(vlan__tci)
{
	ck_assert_uint_eq(net_vlan_id(NET_VLAN_NONE), 0);
	ck_assert_uint_eq(net_vlan_id(0xe000), 0);
	ck_assert_uint_eq(net_vlan_id(0xeffe), 0xffe);
	ck_assert_uint_eq(net_vlan_tci(5, 3), 0x6005);
	ck_assert_uint_eq(net_vlan_tci(0, 3), NET_VLAN_NONE);
}
END_TEST

/* Addresses of one bucket, found under one key, say nothing about another. */
START_TEST(hash__is_keyed)
{
	static const uint64_t zero[2], keys[2][2] = { { 1, 0 }, { 0, 1 } };
	struct net_ip ip = net_ip_from_v4(0), same[64];
	uint32_t n = 0, still = 0;

	for (uint32_t i = 0; n < 64; i++) {
		memcpy(ip.b, &i, sizeof(i));
		if (net_ip_hash(&ip, 1) % 1024 == 0)
			same[n++] = ip;
	}
	for (uint32_t k = 0; k < 2; k++) {
		net_ip_hash_key(keys[k]);
		for (uint32_t i = 0; i < n; i++)
			still += net_ip_hash(&same[i], 1) % 1024 == net_ip_hash(&same[0], 1) % 1024;
		ck_assert_uint_ne(net_ip_hash(&same[0], 1), net_ip_hash(&same[0], 2));
	}
	net_ip_hash_key(zero);
	ck_assert_uint_le(still, 2 + 4);
}
END_TEST

UNIT_MAIN("net_addr", ip__text, ip__v4_is_mapped, ip__classes, ip__hosts, prefix__text,
	prefix__match, ip__derived, vlan__tci, hash__is_keyed)
