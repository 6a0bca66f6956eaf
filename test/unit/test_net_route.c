/* SPDX-License-Identifier: BSD-3-Clause */
/* Longest prefix, metrics, families, limits; a random table against a plain search. */
#include "net_test.h"

static struct net_route
route(const char *prefix, const char *gateway, uint16_t port, uint32_t metric)
{
	struct net_route r = { .port = port, .metric = metric };

	ck_assert_int_eq(net_prefix_parse(prefix, &r.prefix, &r.plen), 0);
	if (gateway != NULL)
		r.gateway = ip(gateway);
	return r;
}

static int
add(struct net_route_view *v, const char *prefix, const char *gateway, uint16_t port,
	uint32_t metric)
{
	struct net_route r = route(prefix, gateway, port, metric);

	return net_route_view_add(v, &r);
}

static void
check(const struct net_route_view *v, const char *dst, const char *nexthop, uint16_t port)
{
	struct net_ip d = ip(dst), n;
	struct net_route_hop hop;

	if (nexthop == NULL) {
		ck_assert_int_eq(net_route_lookup(v, &d, &hop), -ENETUNREACH);
		return;
	}
	n = ip(nexthop);
	ck_assert_int_eq(net_route_lookup(v, &d, &hop), 0);
	ck_assert(net_ip_eq(&hop.nexthop, &n));
	ck_assert_uint_eq(hop.port, port);
}

START_TEST(route__lookup)
{
	struct net_route_view *v = net_route_view_new(NULL);
	struct net_route gone = route("0.0.0.0/0", "192.0.2.254", 1, 10);

	check(NULL, "192.0.2.1", NULL, 0);
	check(v, "192.0.2.1", NULL, 0);
	ck_assert_int_eq(add(v, "0.0.0.0/0", "192.0.2.253", 2, 20), 0);
	ck_assert_int_eq(net_route_view_add(v, &gone), 0);
	ck_assert_int_eq(add(v, "192.0.2.0/24", NULL, 1, 0), 0);
	ck_assert_int_eq(add(v, "192.0.2.128/25", NULL, 3, 0), 0);
	ck_assert_int_eq(add(v, "192.0.2.7", "192.0.2.9", 1, 0), 0);
	check(v, "192.0.2.1", "192.0.2.1", 1);
	check(v, "192.0.2.200", "192.0.2.200", 3);
	check(v, "192.0.2.7", "192.0.2.9", 1);
	check(v, "203.0.113.1", "192.0.2.254", 1);
	check(v, "2001:db8::1", NULL, 0);
	ck_assert_int_eq(net_route_view_del(v, &gone), 0);
	ck_assert_int_eq(net_route_view_del(v, &gone), -ENOENT);
	check(v, "203.0.113.1", "192.0.2.253", 2);
	net_route_view_free(v);
}
END_TEST

/* ::/0 is no way for IPv4, though it covers ::ffff:0:0/96 bit by bit. */
START_TEST(route__families)
{
	struct net_route_view *v = net_route_view_new(NULL);

	ck_assert_int_eq(add(v, "::/0", "fe80::1", 1, 0), 0);
	check(v, "2001:db8::1", "fe80::1", 1);
	check(v, "192.0.2.1", NULL, 0);
	ck_assert_int_eq(add(v, "0.0.0.0/0", "fe80::1", 1, 0), -EINVAL);
	ck_assert_int_eq(add(v, "2001:db8::/32", "192.0.2.1", 1, 0), -EINVAL);
	ck_assert_int_eq(add(v, "::/0", "192.0.2.1", 1, 1), -EINVAL);
	net_route_view_free(v);
}
END_TEST

START_TEST(route__refused)
{
	struct net_route_view *v = net_route_view_new(NULL);

	ck_assert_int_eq(add(v, "192.0.2.1/24", NULL, 1, 0), -EINVAL);
	ck_assert_int_eq(add(v, "192.0.2.64/25", NULL, 1, 0), -EINVAL);
	ck_assert_int_eq(add(v, "192.0.2.0/24", "224.0.0.1", 1, 0), -EINVAL);
	ck_assert_int_eq(add(v, "192.0.2.0/24", NULL, 1, 0), 0);
	ck_assert_int_eq(add(v, "192.0.2.0/24", NULL, 1, 0), -EEXIST);
	ck_assert_int_eq(add(v, "192.0.2.0/24", NULL, 2, 0), 0);
	net_route_view_free(v);
}
END_TEST

/* Against the definition: of all that match, the longest. */
START_TEST(route__full_table)
{
	struct net_route_view *v = net_route_view_new(NULL), *copy;
	struct net_route_hop hop;
	uint32_t seed = 1;

	while (net_route_count(v) < NET_ROUTES_MAX) {
		struct net_route r = { .port = (uint16_t)net_route_count(v) };
		uint32_t len = (seed = seed * 1103515245 + 12345) >> 16 & 7, bits;

		seed = seed * 1103515245 + 12345;
		bits = (0x0a000000 | (seed >> 8 & 0xffff)) & ~0u << (8 + len);
		r.prefix = net_ip_from_v4(rte_cpu_to_be_32(bits));
		r.plen = (uint8_t)(120 - len);
		r.metric = seed >> 28;
		net_route_view_add(v, &r);
	}
	ck_assert_int_eq(add(v, "192.0.2.0/24", NULL, 1, 0), -ENOSPC);
	copy = net_route_view_new(v);
	for (uint32_t a = 0x0a000000; a < 0x0a010000; a += 61) {
		struct net_ip d = net_ip_from_v4(rte_cpu_to_be_32(a));
		const struct net_route *best = NULL;

		for (uint32_t i = 0; i < NET_ROUTES_MAX; i++) {
			const struct net_route *r = net_route_at(v, NET_ROUTES_MAX - 1 - i);

			if (net_ip_in_prefix(&d, &r->prefix, r->plen) && (best == NULL ||
					r->plen > best->plen || (r->plen == best->plen &&
					r->metric <= best->metric)))
				best = r;
		}
		ck_assert_int_eq(net_route_lookup(copy, &d, &hop), best ? 0 : -ENETUNREACH);
		if (best != NULL)
			ck_assert_uint_eq(hop.port, best->port);
	}
	net_route_view_free(v);
	net_route_view_free(copy);
}
END_TEST

START_TEST(route__publish)
{
	struct net_route_view *v = net_route_view_new(NULL);
	struct net_route_table t = { NULL };

	ck_assert_ptr_null(net_route_publish(&t, v));
	ck_assert_ptr_eq(net_route_get(&t), v);
	ck_assert_ptr_eq(net_route_publish(&t, NULL), v);
	net_route_view_free(v);
}
END_TEST

UNIT_MAIN("net_route", route__lookup, route__families, route__refused, route__full_table,
	route__publish)
