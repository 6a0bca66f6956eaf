/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Group membership of one port, a host's side: which groups it is a member of, on each VLAN where
 * it has an address of the family, told to routers and switches by IGMPv3 and MLDv2, or older
 * versions while a querier speaks one (RFC 3376, 3810; sources are not filtered). The control
 * thread owns it. Time and randomness are arguments, or drawn from a seed.
 *
 *   join, leave   told at once, and again (robustness - 1 times) within a second each
 *   query         answered after a random delay of its maximum at most
 */
#ifndef NET_GROUP_H
#define NET_GROUP_H

#include "base_counters.h"
#include "net_addr.h"

struct net_groups;
struct net_iface;
struct net_pkt;

#define NET_GROUP_ROBUSTNESS 2

struct net_group_ops {
	/** Send a built frame, tag included. May drop it. */
	void (*send)(void *ctx, uint16_t port, const uint8_t *frame, uint16_t len);
	void *ctx;
};

#define NET_GROUP_COUNTERS(X) \
	X(NET_GROUP_N_REPORTS, "group_reports", "membership reports sent") \
	X(NET_GROUP_N_LEAVES, "group_leaves", "of those, that a group was left") \
	X(NET_GROUP_N_QUERIES, "group_queries", "membership queries answered, or to be") \
	X(NET_GROUP_N_OLD_QUERIES, "group_old_queries", "of those, of an older version") \
	X(NET_GROUP_N_SUPPRESSED, "group_suppressed", "answers that another member gave") \
	X(NET_GROUP_N_IGNORED, "group_ignored", "membership messages not for us, or not right")
COUNTERS_ENUM(net_group_counter, NET_GROUP_COUNTERS, NET_GROUP_COUNTER_COUNT);
extern const struct counter_desc net_group_counter_desc[NET_GROUP_COUNTER_COUNT];

/** NULL without memory. */
struct net_groups *net_groups_new(const struct net_iface *iface, uint16_t port, uint64_t seed,
	const struct net_group_ops *ops);
/** Says nothing; net_groups_leave_all() does. */
void net_groups_free(struct net_groups *t);

/** Joins are counted: the first one is told. 1: it was that, 0, -EINVAL: no group, -ENOMEM. */
int net_group_join(struct net_groups *t, const struct net_ip *ip, uint64_t now_ns);
/** The last leave is told. 1: it was that, 0, -ENOENT. */
int net_group_leave(struct net_groups *t, const struct net_ip *ip, uint64_t now_ns);
/** Groups that are joined, at most `max` of them; how many there are. For the port's filter. */
uint32_t net_groups_list(const struct net_groups *t, struct net_ip *ips, uint32_t max);
/** The port has got another address: what it is a member of is told there too. */
void net_groups_readdress(struct net_groups *t, uint64_t now_ns);

/** A received NET_GROUP packet; the mbuf stays the caller's. */
void net_group_input(struct net_groups *t, const struct net_pkt *p, uint64_t now_ns);
/** What is due. */
void net_groups_tick(struct net_groups *t, uint64_t now_ns);
/** When to call net_groups_tick() next; UINT64_MAX: nothing is to come. */
uint64_t net_groups_next_deadline(const struct net_groups *t);

/** NET_GROUP_COUNTER_COUNT counters, which the control thread writes. */
const struct counter *net_groups_counters(const struct net_groups *t);

#endif /* NET_GROUP_H */
