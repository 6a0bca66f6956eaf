/* SPDX-License-Identifier: BSD-3-Clause */
/* Route snapshots: a sorted array, most specific and then cheapest first. */
#include <errno.h>
#include <stdlib.h>

#include "net_route.h"

struct net_route_view {
	uint32_t n;
	struct net_route r[NET_ROUTES_MAX];
};

struct net_route_view *
net_route_view_new(const struct net_route_view *from)
{
	struct net_route_view *v = malloc(sizeof(*v));

	if (v == NULL)
		return NULL;
	v->n = 0;
	if (from != NULL) {
		v->n = from->n;
		memcpy(v->r, from->r, from->n * sizeof(from->r[0]));
	}
	return v;
}

void
net_route_view_free(const struct net_route_view *v)
{
	free((void *)(uintptr_t)v);
}

static bool
host_bits_clear(const struct net_ip *ip, uint8_t plen)
{
	unsigned int i = plen / 8;

	if (plen % 8 != 0 && (uint8_t)(ip->b[i++] << (plen % 8)) != 0)
		return false;
	for (; i < sizeof(ip->b); i++)
		if (ip->b[i] != 0)
			return false;
	return true;
}

/* The default routes of the two families differ in length: 96 and 0. */
static bool
is_v4(const struct net_route *r)
{
	return r->plen >= NET_PREFIX_V4 && net_ip_is_v4(&r->prefix);
}

static bool
valid(const struct net_route *r)
{
	if (r->plen > 128 || !host_bits_clear(&r->prefix, r->plen) || r->vid >= 0xfff)
		return false;
	if (!net_ip_is_zero(&r->gateway) && (net_ip_is_v4(&r->gateway) != is_v4(r) ||
			net_ip_is_multicast(&r->gateway)))
		return false;
	return net_ip_is_zero(&r->src) || net_ip_is_v4(&r->src) == is_v4(r);
}

static bool
same(const struct net_route *a, const struct net_route *b)
{
	return a->plen == b->plen && a->metric == b->metric && a->port == b->port &&
		a->vid == b->vid && net_ip_eq(&a->prefix, &b->prefix);
}

static uint32_t
find(const struct net_route_view *v, const struct net_route *r)
{
	uint32_t i;

	for (i = 0; i < v->n && !same(&v->r[i], r); i++)
		;
	return i;
}

int
net_route_view_add(struct net_route_view *v, const struct net_route *r)
{
	uint32_t i;

	if (!valid(r))
		return -EINVAL;
	if (find(v, r) != v->n)
		return -EEXIST;
	if (v->n == NET_ROUTES_MAX)
		return -ENOSPC;
	for (i = v->n; i > 0; i--) {
		const struct net_route *before = &v->r[i - 1];

		if (before->plen > r->plen ||
				(before->plen == r->plen && before->metric <= r->metric))
			break;
		v->r[i] = *before;
	}
	v->r[i] = *r;
	v->n++;
	return 0;
}

int
net_route_view_del(struct net_route_view *v, const struct net_route *r)
{
	uint32_t i = find(v, r);

	if (i == v->n)
		return -ENOENT;
	v->n--;
	memmove(v->r + i, v->r + i + 1, (v->n - i) * sizeof(v->r[0]));
	return 0;
}

const struct net_route_view *
net_route_publish(struct net_route_table *t, const struct net_route_view *v)
{
	const struct net_route_view *old;

	old = atomic_load_explicit(&t->view, memory_order_relaxed);
	atomic_store_explicit(&t->view, v, memory_order_release);
	return old;
}

int
net_route_lookup(const struct net_route_view *v, const struct net_ip *dst,
	struct net_route_hop *hop)
{
	bool v4 = net_ip_is_v4(dst);
	const struct net_route *r;

	if (v == NULL)
		return -ENETUNREACH;
	for (r = v->r; r < v->r + v->n; r++) {
		/* ::/0 holds ::ffff:0:0/96, but is no route for IPv4. */
		if (is_v4(r) != v4 || !net_ip_in_prefix(dst, &r->prefix, r->plen))
			continue;
		hop->nexthop = net_ip_is_zero(&r->gateway) ? *dst : r->gateway;
		hop->src = r->src;
		hop->port = r->port;
		hop->vid = r->vid;
		return 0;
	}
	return -ENETUNREACH;
}

uint32_t
net_route_count(const struct net_route_view *v)
{
	return v == NULL ? 0 : v->n;
}

const struct net_route *
net_route_at(const struct net_route_view *v, uint32_t i)
{
	return &v->r[i];
}
