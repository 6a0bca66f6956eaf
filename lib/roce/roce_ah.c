/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of address handles. A number is a slot and, above it, how often the slot was used, so
 * that a number kept too long misses. Readers: one load with acquire, then the handle itself,
 * which is constant but for the count of waiting packets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "roce_ah.h"
#include "roce_ud_priv.h"

#define AH_MAX 65536u

struct roce_ah_table {
	_Atomic(struct roce_ah *) *slot;
	uint16_t *uses; /* of a slot */
	uint32_t *free; /* stack of slots */
	uint32_t mask, num_free;
};

struct roce_ah_table *
roce_ah_table_create(uint32_t capacity)
{
	struct roce_ah_table *t = calloc(1, sizeof(*t));
	uint32_t n = rte_align32pow2(RTE_MIN(RTE_MAX(capacity, 16u), AH_MAX));

	if (t == NULL)
		return NULL;
	t->mask = n - 1;
	t->slot = calloc(n, sizeof(t->slot[0]));
	t->uses = calloc(n, sizeof(t->uses[0]));
	t->free = calloc(n, sizeof(t->free[0]));
	if (t->slot == NULL || t->uses == NULL || t->free == NULL) {
		roce_ah_table_free(t);
		return NULL;
	}
	while (t->num_free < n) {
		t->free[t->num_free] = t->num_free;
		t->num_free++;
	}
	return t;
}

void
roce_ah_table_free(struct roce_ah_table *t)
{
	if (t == NULL)
		return;
	for (uint32_t i = 0; t->slot && i <= t->mask; i++)
		free(atomic_load_explicit(&t->slot[i], memory_order_relaxed));
	free(t->slot);
	free(t->uses);
	free(t->free);
	free(t);
}

/** A group's MAC follows from its address: its neighbour takes no place among those of hosts. */
static struct net_neigh *
ah_group_neigh(struct roce_ah *ah, const struct net_ip *group)
{
	struct rte_ether_addr mac = net_ip_multicast_mac(group);

	ah->group_neigh.ip = *group;
	atomic_init(&ah->group_neigh.l2, net_neigh_l2_pack(&mac, NET_NEIGH_REACHABLE));
	return &ah->group_neigh;
}

static int
ah_fill(struct roce_ah *ah, const struct verbs_av *av)
{
	struct net_path_params prm = {
		.neigh = av->neigh,
		.src = net_ip_from_bytes(av->sgid),
		.dst = net_ip_from_bytes(av->dgid),
		.vlan_tci = av->vlan == 0xffff ? NET_VLAN_NONE : net_vlan_tci(av->vlan, av->sl),
		.flow_label = av->flow_label,
		.tclass = av->tclass & 0xfc, /* ECN 00 (A17 CA17-5) */
		.hop_limit = av->hop_limit,
	};

	ah->group = net_ip_is_multicast(&prm.dst);
	if (ah->group)
		prm.neigh = ah_group_neigh(ah, &prm.dst);
	if (av->sl > 7 || prm.neigh == NULL || (av->vlan != 0xffff && av->vlan >= 4095))
		return -EINVAL;
	memcpy(prm.smac.addr_bytes, av->smac, sizeof(av->smac));
	ah->port = av->port;
	return net_path_init(&ah->path, &prm);
}

int
roce_ah_make(struct roce_ah_table *t, uint32_t pd, const struct verbs_av *av, uint16_t home,
	     struct roce_ah **made, uint32_t *number)
{
	size_t size = RTE_ALIGN_CEIL(sizeof(struct roce_ah), RTE_CACHE_LINE_SIZE);
	struct roce_ah *ah;
	uint32_t i;

	if (t->num_free == 0)
		return -ENOSPC;
	ah = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (ah == NULL)
		return -ENOMEM;
	memset(ah, 0, size);
	if (ah_fill(ah, av) < 0) {
		free(ah);
		return -EINVAL;
	}
	i = t->free[--t->num_free];
	if (++t->uses[i] >= UINT16_MAX) /* neither number 0 nor one of all ones */
		t->uses[i] = 1;
	ah->number = *number = (uint32_t)t->uses[i] * (t->mask + 1) + i;
	ah->pd = pd;
	ah->home = home;
	*made = ah;
	return 0;
}

void
roce_ah_enter(struct roce_ah_table *t, struct roce_ah *ah)
{
	/* pairs with the acquire in roce_ah_lookup() */
	atomic_store_explicit(&t->slot[ah->number & t->mask], ah, memory_order_release);
}

void
roce_ah_unmake(struct roce_ah_table *t, struct roce_ah *ah)
{
	t->free[t->num_free++] = ah->number & t->mask;
	free(ah);
}

int
roce_ah_add(struct roce_ah_table *t, uint32_t pd, const struct verbs_av *av, uint16_t home,
	    uint32_t *number)
{
	struct roce_ah *ah;
	int err = roce_ah_make(t, pd, av, home, &ah, number);

	if (err == 0)
		roce_ah_enter(t, ah);
	return err;
}

struct roce_ah *
roce_ah_remove(struct roce_ah_table *t, uint32_t number)
{
	uint32_t i = number & t->mask;
	struct roce_ah *ah = atomic_load_explicit(&t->slot[i], memory_order_relaxed);

	if (ah == NULL || ah->number != number)
		return NULL;
	atomic_store_explicit(&t->slot[i], NULL, memory_order_release);
	t->free[t->num_free++] = i;
	return ah;
}

struct roce_ah *
roce_ah_lookup(const struct roce_ah_table *t, uint32_t number, uint32_t pd)
{
	struct roce_ah *ah;

	if (t == NULL)
		return NULL;
	ah = atomic_load_explicit(&t->slot[number & t->mask], memory_order_acquire);
	return ah != NULL && ah->number == number && ah->pd == pd ? ah : NULL;
}

bool
roce_ah_waits(const struct roce_ah *ah)
{
	return atomic_load_explicit(&ah->waiting, memory_order_acquire) != 0;
}

void
roce_ah_free(struct roce_ah *ah)
{
	free(ah);
}

uint32_t
roce_ah_count(const struct roce_ah_table *t)
{
	return t->mask + 1 - t->num_free;
}
