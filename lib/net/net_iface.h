/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port is on the network: MAC, MTU, link, own addresses. Readers take
 * the immutable view once a burst. The control thread edits a copy, publishes
 * it, and frees the old one when every worker has been quiescent.
 */
#ifndef NET_IFACE_H
#define NET_IFACE_H

#include <stdatomic.h>

#include "net_addr.h"

#define NET_IFACE_ADDRS 64
#define NET_IFACE_SLOTS 128 /* open addressing, power of two */

struct net_ifaddr {
	struct net_ip ip;
	uint16_t vid; /* 0: untagged */
	uint8_t plen; /* of the subnet, in 128 bits */
};

struct net_iface_view {
	struct rte_ether_addr mac;
	uint16_t port;
	uint16_t mtu; /* of IP packets */
	uint8_t link_up;
	uint8_t n_addr;
	uint32_t link_mbps;
	uint8_t slot[NET_IFACE_SLOTS]; /* index + 1 into addr, 0: free */
	struct net_ifaddr addr[NET_IFACE_ADDRS];
};

struct net_iface {
	_Atomic(const struct net_iface_view *) view;
};

/** Pairs with the release in net_iface_publish(). */
static inline const struct net_iface_view *
net_iface_get(const struct net_iface *iface)
{
	return atomic_load_explicit(&iface->view, memory_order_acquire);
}

/** A view without addresses, link down; NULL without memory. */
struct net_iface_view *net_iface_view_new(const struct rte_ether_addr *mac, uint16_t port,
	uint16_t mtu);
struct net_iface_view *net_iface_view_dup(const struct net_iface_view *v);
void net_iface_view_free(const struct net_iface_view *v);

/** 0, -EEXIST, -ENOSPC, or -EINVAL for an address no host can own. */
int net_iface_view_add(struct net_iface_view *v, const struct net_ip *ip, uint8_t plen,
	uint16_t vid);
/** 0 or -ENOENT. */
int net_iface_view_del(struct net_iface_view *v, const struct net_ip *ip, uint16_t vid);

/** Publishes @v; returns the view it replaces, to be freed after a grace period. */
const struct net_iface_view *net_iface_publish(struct net_iface *iface,
	const struct net_iface_view *v);

/** The address is ours on some VLAN of this port. */
bool net_iface_owns(const struct net_iface_view *v, const struct net_ip *ip);
/** The entry for this address on this VLAN, or NULL. */
const struct net_ifaddr *net_iface_find(const struct net_iface_view *v, const struct net_ip *ip,
	uint16_t vid);
/**
 * The own address to speak to @dst from: the one on the longest common subnet,
 * else the first of the family and VLAN; NULL without any.
 */
const struct net_ifaddr *net_iface_source_for(const struct net_iface_view *v,
	const struct net_ip *dst, uint16_t vid);

/** The frame's destination MAC is ours or a group's. */
static inline bool
net_iface_takes_mac(const struct net_iface_view *v, const struct rte_ether_addr *dst)
{
	return rte_is_multicast_ether_addr(dst) || rte_is_same_ether_addr(dst, &v->mac);
}

#endif /* NET_IFACE_H */
