/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbour table of one port: IP and VLAN to MAC, by ARP and ND.
 *
 * The control thread owns the table. Workers read `l2` of entries that a QP or
 * connection holds by a reference, mark their use, and hand ARP and ND packets
 * to the control thread. Entries never move; one without references may come
 * to stand for another address.
 *
 * NONE -> INCOMPLETE (3 solicits, 1 s apart) -> REACHABLE (30 s) -> STALE;
 * used while STALE: 3 unicast then 3 multicast probes; unanswered: FAILED;
 * used while FAILED: again INCOMPLETE, once a second at most.
 */
#ifndef NET_NEIGH_H
#define NET_NEIGH_H

#include <stdatomic.h>

#include "base_counters.h"
#include "net_addr.h"

struct net_iface;
struct net_neigh_table;
struct net_pkt;
struct rte_mbuf;

enum net_neigh_state {
	NET_NEIGH_NONE,
	NET_NEIGH_INCOMPLETE,
	NET_NEIGH_REACHABLE,
	NET_NEIGH_STALE, /* the MAC is usable, and probed when used */
	NET_NEIGH_FAILED,
	NET_NEIGH_STATE_COUNT
};

enum net_neigh_event {
	NET_NEIGH_RESOLVED, /* the MAC became usable */
	NET_NEIGH_CHANGED,  /* another MAC than before */
	NET_NEIGH_LOST,	    /* resolution or probing failed */
	NET_NEIGH_CONFLICT  /* somebody else uses our address: entry NULL */
};

#define NET_NEIGH_SOLICITS 3
#define NET_NEIGH_RETRANS_NS UINT64_C(1000000000)
#define NET_NEIGH_REACHABLE_NS UINT64_C(30000000000)
#define NET_NEIGH_PENDING 4
#define NET_NEIGH_MAC_MASK UINT64_C(0xffffffffffff)

struct net_neigh {
	/* Read by workers. MAC in memory order in the low 48 bits, state above. */
	_Atomic uint64_t l2;
	/* Set by workers: 0, 1 used while not REACHABLE, 2 suspected dead. */
	_Atomic uint8_t hint;
	/* The rest is the control thread's; constant while references exist. */
	uint16_t vid;
	uint16_t port;
	struct net_ip ip;
	struct net_neigh_table *table;
};

struct net_neigh_ops {
	/** Send a built ARP or ND frame; tag included. May drop it. */
	void (*send)(void *ctx, uint16_t port, const uint8_t *frame, uint16_t len);
	/** Packets that waited, MAC filled in; the callee owns them. */
	void (*release)(void *ctx, uint16_t port, struct rte_mbuf **m, uint16_t n);
	/** @ip and @mac are those concerned; @n is NULL on CONFLICT. */
	void (*event)(void *ctx, enum net_neigh_event ev, struct net_neigh *n,
		const struct net_ip *ip, const struct rte_ether_addr *mac);
	void *ctx;
};

#define NET_NEIGH_COUNTERS(X) \
	X(NET_NEIGH_N_SOLICITS, "neigh_solicits", "requests sent") \
	X(NET_NEIGH_N_REPLIES, "neigh_replies", "answers sent") \
	X(NET_NEIGH_N_RESOLVED, "neigh_resolved", "MAC became known") \
	X(NET_NEIGH_N_FAILED, "neigh_failed", "nobody answered") \
	X(NET_NEIGH_N_MAC_CHANGES, "neigh_mac_changes", "another MAC for the same address") \
	X(NET_NEIGH_N_CONFLICTS, "neigh_conflicts", "others that use our address") \
	X(NET_NEIGH_N_RECYCLED, "neigh_recycled", \
		"unreferenced entries given to another address") \
	X(NET_NEIGH_N_DROP_FULL, "neigh_drop_full", "no entry to be had") \
	X(NET_NEIGH_N_DROP_INCOMPLETE, "neigh_drop_incomplete", "too many unresolved at a time") \
	X(NET_NEIGH_N_DROP_PENDING, "neigh_drop_pending", \
		"packets that waited in vain or too many") \
	X(NET_NEIGH_N_DROP_MALFORMED, "neigh_drop_malformed", "ARP and ND that break a rule") \
	X(NET_NEIGH_N_IGNORED, "neigh_ignored", "ARP and ND that do not concern us")
COUNTERS_ENUM(net_neigh_counter, NET_NEIGH_COUNTERS, NET_NEIGH_COUNTER_COUNT);
extern const struct counter_desc net_neigh_counter_desc[NET_NEIGH_COUNTER_COUNT];

static inline enum net_neigh_state
net_neigh_l2_state(uint64_t l2)
{
	return (enum net_neigh_state)(l2 >> 48);
}

static inline bool
net_neigh_l2_usable(uint64_t l2)
{
	uint64_t s = l2 >> 48;

	return s == NET_NEIGH_REACHABLE || s == NET_NEIGH_STALE;
}

static inline uint64_t
net_neigh_l2_pack(const struct rte_ether_addr *mac, enum net_neigh_state state)
{
	uint64_t l2 = 0;

	memcpy(&l2, mac->addr_bytes, RTE_ETHER_ADDR_LEN);
	return l2 | (uint64_t)state << 48;
}

static inline struct rte_ether_addr
net_neigh_l2_mac(uint64_t l2)
{
	struct rte_ether_addr mac;

	memcpy(mac.addr_bytes, &l2, RTE_ETHER_ADDR_LEN);
	return mac;
}

void net_neigh_mark(struct net_neigh *n, uint8_t hint);

/**
 * Worker: the word to send with. Relaxed: the word is whole in itself. Anything
 * but REACHABLE leaves a mark that makes the control thread resolve or probe.
 */
static inline uint64_t
net_neigh_use(struct net_neigh *n)
{
	uint64_t l2 = atomic_load_explicit(&n->l2, memory_order_relaxed);

	if (__builtin_expect(net_neigh_l2_state(l2) != NET_NEIGH_REACHABLE, 0))
		net_neigh_mark(n, 1);
	return l2;
}

/** Worker: retransmissions go unanswered; ask again at once, by multicast. */
static inline void
net_neigh_suspect(struct net_neigh *n)
{
	net_neigh_mark(n, 2);
}

/** @capacity entries, a quarter of which may be INCOMPLETE; NULL without memory. */
struct net_neigh_table *net_neigh_table_new(const struct net_iface *iface, uint32_t capacity,
	const struct net_neigh_ops *ops);
/** Frees what waits; every reference must be gone. */
void net_neigh_table_free(struct net_neigh_table *t);

/**
 * The entry of a next hop, with one more reference, being resolved unless it
 * is usable. NULL when the table is full of referenced or too many INCOMPLETE
 * entries. Multicast addresses get their MAC at once.
 */
struct net_neigh *net_neigh_get(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid,
	uint64_t now_ns);
/** The entry as it is, no reference taken, or NULL. */
struct net_neigh *net_neigh_find(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid);
void net_neigh_ref(struct net_neigh *n);
void net_neigh_put(struct net_neigh *n);

/** An entry from the configuration: never probed nor changed. 0 or -ENOSPC. */
int net_neigh_set_static(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid,
	const struct rte_ether_addr *mac);

/** Queue a finished frame until the MAC is known, or release it at once. Takes @m. */
void net_neigh_queue(struct net_neigh *n, struct rte_mbuf *m);

/** A received NET_ARP or NET_ND packet; the mbuf stays the caller's. */
void net_neigh_input(struct net_neigh_table *t, const struct net_pkt *p, uint64_t now_ns);

/** Say that @ip is here: gratuitous ARP (RFC 5227 2.3) or unsolicited NA. */
void net_neigh_announce(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid);

/** Marks, retransmissions and expiries due at @now_ns. */
void net_neigh_tick(struct net_neigh_table *t, uint64_t now_ns);
/** When to call net_neigh_tick() next; UINT64_MAX for an empty table. */
uint64_t net_neigh_next_deadline(const struct net_neigh_table *t, uint64_t now_ns);

/** NET_NEIGH_COUNTER_COUNT counters, which the control thread writes. */
const struct counter *net_neigh_counters(const struct net_neigh_table *t);
const char *net_neigh_state_name(unsigned int state);

/** Calls @fn for every entry in use, for listings. */
void net_neigh_walk(const struct net_neigh_table *t,
	void (*fn)(void *arg, const struct net_neigh *n, uint32_t refs), void *arg);

#endif /* NET_NEIGH_H */
