/* SPDX-License-Identifier: BSD-3-Clause */
/* Own addresses: add, delete, find, and which one to speak from. */
#include "net_test.h"

static int
add(struct net_iface_view *v, const char *text, uint16_t vid)
{
	struct net_ip a;
	uint8_t plen;

	ck_assert_int_eq(net_prefix_parse(text, &a, &plen), 0);
	return net_iface_view_add(v, &a, plen, vid);
}

static bool
owns(const struct net_iface_view *v, const char *text)
{
	struct net_ip a = ip(text);

	return net_iface_owns(v, &a);
}

START_TEST(iface__addresses)
{
	struct net_iface_view *v = net_iface_view_new(&test_us, 3, 1500);
	struct net_ip a = ip("192.0.2.2");

	ck_assert_int_eq(add(v, "192.0.2.2/24", 0), 0);
	ck_assert_int_eq(add(v, "192.0.2.2/25", 0), -EEXIST);
	ck_assert_int_eq(add(v, "192.0.2.2/24", 5), 0);
	ck_assert_int_eq(add(v, "2001:db8::2/64", 0), 0);
	ck_assert(owns(v, "192.0.2.2") && owns(v, "2001:db8::2"));
	ck_assert(!owns(v, "192.0.2.3") && !owns(v, "::192.0.2.2"));
	ck_assert_ptr_nonnull(net_iface_find(v, &a, 5));
	ck_assert_ptr_null(net_iface_find(v, &a, 6));
	ck_assert_int_eq(net_iface_view_del(v, &a, 0), 0);
	ck_assert_int_eq(net_iface_view_del(v, &a, 0), -ENOENT);
	ck_assert(owns(v, "192.0.2.2"));
	ck_assert_int_eq(net_iface_view_del(v, &a, 5), 0);
	ck_assert(!owns(v, "192.0.2.2") && owns(v, "2001:db8::2"));
	net_iface_view_free(v);
}
END_TEST

START_TEST(iface__not_ownable)
{
	const char *bad[] = { "224.0.0.1", "255.255.255.255", "127.0.0.1", "0.0.0.0", "0.1.2.3",
		"ff02::1", "::", "::1", "240.0.0.1" };
	struct net_iface_view *v = net_iface_view_new(&test_us, 0, 1500);

	for (size_t i = 0; i < RTE_DIM(bad); i++)
		ck_assert_int_eq(add(v, bad[i], 0), -EINVAL);
	ck_assert_int_eq(add(v, "192.0.2.1/24", 4095), -EINVAL);
	net_iface_view_free(v);
}
END_TEST

/* A full table: every address found, no other, in every order of deletion. */
START_TEST(iface__full)
{
	struct net_iface_view *v = net_iface_view_new(&test_us, 0, 1500), *d;
	struct net_ip a;

	for (uint32_t i = 0; i < NET_IFACE_ADDRS; i++) {
		a = net_ip_from_v4(rte_cpu_to_be_32(0x0a000001 + i * 256));
		ck_assert_int_eq(net_iface_view_add(v, &a, 120, 0), 0);
	}
	ck_assert_int_eq(add(v, "192.0.2.1/24", 0), -ENOSPC);
	d = net_iface_view_dup(v);
	for (uint32_t i = 0; i < NET_IFACE_ADDRS; i++) {
		uint32_t k = i * 37 % NET_IFACE_ADDRS;

		a = net_ip_from_v4(rte_cpu_to_be_32(0x0a000001 + k * 256));
		ck_assert(net_iface_owns(d, &a));
		ck_assert_int_eq(net_iface_view_del(d, &a, 0), 0);
		ck_assert(!net_iface_owns(d, &a));
		ck_assert(net_iface_owns(v, &a));
	}
	ck_assert_uint_eq(d->n_addr, 0);
	net_iface_view_free(v);
	net_iface_view_free(d);
}
END_TEST

static void
check_source(const struct net_iface_view *v, const char *dst, uint16_t vid, const char *want)
{
	struct net_ip d = ip(dst), w;
	const struct net_ifaddr *a = net_iface_source_for(v, &d, vid);

	if (want == NULL) {
		ck_assert_ptr_null(a);
		return;
	}
	w = ip(want);
	ck_assert(net_ip_eq(&a->ip, &w));
}

START_TEST(iface__source)
{
	struct net_iface_view *v = net_iface_view_new(&test_us, 0, 1500);

	ck_assert_int_eq(add(v, "192.0.2.2/24", 0), 0);
	ck_assert_int_eq(add(v, "192.0.2.130/25", 0), 0);
	ck_assert_int_eq(add(v, "198.51.100.2/24", 5), 0);
	ck_assert_int_eq(add(v, "fe80::2/64", 0), 0);
	ck_assert_int_eq(add(v, "2001:db8::2/64", 0), 0);
	check_source(v, "192.0.2.9", 0, "192.0.2.2");
	check_source(v, "192.0.2.200", 0, "192.0.2.130");
	check_source(v, "203.0.113.1", 0, "192.0.2.2");
	check_source(v, "192.0.2.9", 5, "198.51.100.2");
	check_source(v, "192.0.2.9", 6, NULL);
	check_source(v, "2001:db8::9", 0, "2001:db8::2");
	check_source(v, "fe80::9", 0, "fe80::2");
	check_source(v, "2001:db8::9", 5, NULL);
	net_iface_view_free(v);
}
END_TEST

START_TEST(iface__publish)
{
	struct net_iface_view *a = net_iface_view_new(&test_us, 0, 1500);
	struct net_iface_view *b = net_iface_view_dup(a);
	struct net_iface iface = { NULL };
	const struct rte_ether_addr group = { { 0x33, 0x33, 0, 0, 0, 1 } };

	ck_assert_ptr_null(net_iface_publish(&iface, a));
	ck_assert_ptr_eq(net_iface_get(&iface), a);
	ck_assert_ptr_eq(net_iface_publish(&iface, b), a);
	ck_assert_ptr_eq(net_iface_get(&iface), b);
	ck_assert(net_iface_takes_mac(b, &test_us) && net_iface_takes_mac(b, &group));
	ck_assert(!net_iface_takes_mac(b, &test_peer));
	net_iface_view_free(a);
	net_iface_view_free(b);
}
END_TEST

UNIT_MAIN("net_iface", iface__addresses, iface__not_ownable, iface__full, iface__source,
	iface__publish)
