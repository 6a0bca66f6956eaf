/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Longest-prefix routes over all ports, an immutable snapshot. Looked up when
 * a path is set up, not per packet; so a sorted array serves.
 */
#ifndef NET_ROUTE_H
#define NET_ROUTE_H

#include <stdatomic.h>

#include "net_addr.h"

#define NET_ROUTES_MAX 1024

struct net_route {
	struct net_ip prefix;
	struct net_ip gateway; /* all zero: on link */
	struct net_ip src;     /* preferred source, all zero: none */
	uint32_t metric;       /* lower wins among equal prefixes */
	uint16_t port;
	uint16_t vid; /* 0: untagged */
	uint8_t plen; /* in 128 bits; 96 and more for IPv4 */
};

struct net_route_hop {
	struct net_ip nexthop; /* whom to ask for a MAC */
	struct net_ip src;     /* hint, all zero: the interface chooses */
	uint16_t port;
	uint16_t vid;
};

struct net_route_view;

struct net_route_table {
	_Atomic(const struct net_route_view *) view;
};

/** Pairs with the release in net_route_publish(). */
static inline const struct net_route_view *
net_route_get(const struct net_route_table *t)
{
	return atomic_load_explicit(&t->view, memory_order_acquire);
}

/** An empty view when @from is NULL, else a copy; NULL without memory. */
struct net_route_view *net_route_view_new(const struct net_route_view *from);
void net_route_view_free(const struct net_route_view *v);

/** 0, -EINVAL (families differ, host bits set, bad length), -EEXIST, -ENOSPC. */
int net_route_view_add(struct net_route_view *v, const struct net_route *r);
/** Removes the route of this prefix, port, VLAN and metric. 0 or -ENOENT. */
int net_route_view_del(struct net_route_view *v, const struct net_route *r);

/** Publishes @v; returns the view it replaces, to be freed after a grace period. */
const struct net_route_view *net_route_publish(struct net_route_table *t,
	const struct net_route_view *v);

/** 0 or -ENETUNREACH. A NULL view has no routes. */
int net_route_lookup(const struct net_route_view *v, const struct net_ip *dst,
	struct net_route_hop *hop);

uint32_t net_route_count(const struct net_route_view *v);
/** The i-th route, most specific first. */
const struct net_route *net_route_at(const struct net_route_view *v, uint32_t i);

#endif /* NET_ROUTE_H */
