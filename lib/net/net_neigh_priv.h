/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the neighbour table (net_neigh.c) and its packets (net_neigh_input.c). */
#ifndef NET_NEIGH_PRIV_H
#define NET_NEIGH_PRIV_H

#include <sys/queue.h>

#include "net_iface.h"
#include "net_neigh.h"

/*
 * An entry in use is on one of these. The lists with a deadline have one
 * waiting time each, so that appending keeps them sorted.
 */
enum net_neigh_list {
	NEIGH_FREE,
	NEIGH_RETRANS, /* INCOMPLETE, STALE being probed, FAILED and held down */
	NEIGH_REACH,   /* REACHABLE */
	NEIGH_IDLE,    /* STALE, FAILED, fixed */
	NEIGH_LISTS
};

struct neigh_entry {
	struct net_neigh n; /* first: the public face */
	uint32_t refs;
	uint8_t list;
	uint8_t solicits;  /* sent in this round */
	bool fixed;	   /* static or multicast: no state machine */
	uint8_t n_pending;
	uint64_t deadline; /* ns; on RETRANS and REACH */
	uint64_t last_solicit;
	struct rte_mbuf *pending[NET_NEIGH_PENDING];
	TAILQ_ENTRY(neigh_entry) on_list;
	TAILQ_ENTRY(neigh_entry) unref; /* in use without references, oldest first */
	LIST_ENTRY(neigh_entry) hash;
};

TAILQ_HEAD(neigh_tailq, neigh_entry);
LIST_HEAD(neigh_bucket, neigh_entry);

struct net_neigh_table {
	const struct net_iface *iface;
	struct net_neigh_ops ops;
	_Atomic uint8_t attention; /* workers: some entry has a new hint */
	uint32_t capacity;
	uint32_t n_incomplete;
	uint32_t n_referenced;
	uint32_t bucket_mask;
	uint64_t last_defence;
	struct counter counter[NET_NEIGH_COUNTER_COUNT];
	struct neigh_tailq list[NEIGH_LISTS];
	struct neigh_tailq unref;
	struct neigh_bucket *bucket;
	struct neigh_entry *entry;
};

static inline struct neigh_entry *
neigh_entry_of(struct net_neigh *n)
{
	return (struct neigh_entry *)n;
}

static inline uint64_t
neigh_l2(const struct neigh_entry *e)
{
	return atomic_load_explicit(&e->n.l2, memory_order_relaxed);
}

static inline enum net_neigh_state
neigh_state(const struct neigh_entry *e)
{
	return net_neigh_l2_state(neigh_l2(e));
}

static inline void
neigh_count(struct net_neigh_table *t, enum net_neigh_counter c)
{
	counter_inc(&t->counter[c]);
}

/** An entry for a new address, NONE and unreferenced, or NULL when none is to be had. */
struct neigh_entry *net_neigh_create(struct net_neigh_table *t, const struct net_ip *ip,
	uint16_t vid);
/** The MAC is known: REACHABLE or STALE; events and waiting packets follow. */
void net_neigh_learn(struct neigh_entry *e, const struct rte_ether_addr *mac,
	enum net_neigh_state state, uint64_t now_ns);
/** Ask for the MAC: to the MAC that we have, or to all. */
void net_neigh_solicit(struct neigh_entry *e, bool unicast);

#endif /* NET_NEIGH_PRIV_H */
