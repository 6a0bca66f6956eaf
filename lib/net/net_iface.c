/* SPDX-License-Identifier: BSD-3-Clause */
/* Views of a port: made, edited, searched. */
#include <errno.h>
#include <stdlib.h>

#include "net_iface.h"

struct net_iface_view *
net_iface_view_new(const struct rte_ether_addr *mac, uint16_t port, uint16_t mtu)
{
	struct net_iface_view *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->mac = *mac;
	v->port = port;
	v->mtu = mtu;
	return v;
}

struct net_iface_view *
net_iface_view_dup(const struct net_iface_view *v)
{
	struct net_iface_view *d = malloc(sizeof(*d));

	if (d != NULL)
		memcpy(d, v, sizeof(*d));
	return d;
}

void
net_iface_view_free(const struct net_iface_view *v)
{
	free((void *)(uintptr_t)v);
}

/* Each packet asks, and who sets our addresses is no adversary: no keyed hash. */
static uint32_t
own_hash(const struct net_ip *ip)
{
	uint64_t h = net_ip_word(ip, 0) * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ (h >> 29) ^ net_ip_word(ip, 1)) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ (h >> 32)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(h >> 32);
}

/* At most half of the slots are taken, so that a search ends. */
static void
slot_insert(struct net_iface_view *v, unsigned int i)
{
	uint32_t h = own_hash(&v->addr[i].ip);

	while (v->slot[h % NET_IFACE_SLOTS] != 0)
		h++;
	v->slot[h % NET_IFACE_SLOTS] = (uint8_t)(i + 1);
}

static void
slots_rebuild(struct net_iface_view *v)
{
	unsigned int i;

	memset(v->slot, 0, sizeof(v->slot));
	for (i = 0; i < v->n_addr; i++)
		slot_insert(v, i);
}

bool
net_iface_owns(const struct net_iface_view *v, const struct net_ip *ip)
{
	uint32_t h = own_hash(ip);
	uint8_t i;

	for (; (i = v->slot[h % NET_IFACE_SLOTS]) != 0; h++)
		if (net_ip_eq(&v->addr[i - 1].ip, ip))
			return true;
	return false;
}

const struct net_ifaddr *
net_iface_find(const struct net_iface_view *v, const struct net_ip *ip, uint16_t vid)
{
	uint32_t h = own_hash(ip);
	uint8_t i;

	for (; (i = v->slot[h % NET_IFACE_SLOTS]) != 0; h++)
		if (v->addr[i - 1].vid == vid && net_ip_eq(&v->addr[i - 1].ip, ip))
			return &v->addr[i - 1];
	return NULL;
}

static bool
ownable(const struct net_ip *ip, uint8_t plen, uint16_t vid)
{
	return net_ip_is_host(ip) && vid < 0xfff && plen <= 128 &&
	       plen >= (net_ip_is_v4(ip) ? NET_PREFIX_V4 : 0);
}

int
net_iface_view_add(struct net_iface_view *v, const struct net_ip *ip, uint8_t plen, uint16_t vid)
{
	if (!ownable(ip, plen, vid))
		return -EINVAL;
	if (net_iface_find(v, ip, vid) != NULL)
		return -EEXIST;
	if (v->n_addr == NET_IFACE_ADDRS)
		return -ENOSPC;
	v->addr[v->n_addr] = (struct net_ifaddr){ .ip = *ip, .vid = vid, .plen = plen };
	slot_insert(v, v->n_addr++);
	return 0;
}

int
net_iface_view_del(struct net_iface_view *v, const struct net_ip *ip, uint16_t vid)
{
	const struct net_ifaddr *a = net_iface_find(v, ip, vid);
	size_t i;

	if (a == NULL)
		return -ENOENT;
	i = (size_t)(a - v->addr);
	v->n_addr--;
	/* The order is that of the GID table: keep it. */
	memmove(v->addr + i, v->addr + i + 1, (v->n_addr - i) * sizeof(v->addr[0]));
	slots_rebuild(v);
	return 0;
}

const struct net_iface_view *
net_iface_publish(struct net_iface *iface, const struct net_iface_view *v)
{
	const struct net_iface_view *old;

	old = atomic_load_explicit(&iface->view, memory_order_relaxed);
	atomic_store_explicit(&iface->view, v, memory_order_release);
	return old;
}

const struct net_ifaddr *
net_iface_source_for(const struct net_iface_view *v, const struct net_ip *dst, uint16_t vid)
{
	const struct net_ifaddr *a, *best = NULL;
	int best_plen = -1, plen;

	for (a = v->addr; a < v->addr + v->n_addr; a++) {
		if (a->vid != vid || net_ip_is_v4(&a->ip) != net_ip_is_v4(dst))
			continue;
		plen = net_ip_in_prefix(dst, &a->ip, a->plen) ? a->plen : 0;
		if (plen > best_plen) {
			best = a;
			best_plen = plen;
		}
	}
	return best;
}
