/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which UD QPs are attached to which multicast group of which port. The control thread writes,
 * all workers read; what a change replaces is freed when every worker has been quiescent. QPs are
 * named by number, so that one that is destroyed, or not bound yet, is merely not found.
 */
#ifndef ROCE_MCAST_H
#define ROCE_MCAST_H

#include <stdbool.h>
#include <stdint.h>

#include "net_addr.h"

struct roce_mcast_table;

#define ROCE_MCAST_GROUPS 4096 /* of the daemon */
#define ROCE_MCAST_QPS 240     /* of a group */

struct roce_mcast_table *roce_mcast_table_create(void);
void roce_mcast_table_free(struct roce_mcast_table *t);
/**
 * @param garbage out: NULL, or to be passed to free() after a grace period.
 * @return members now; -EEXIST, -ENOSPC (of groups, or members of this one), -ENOMEM.
 */
int roce_mcast_attach(struct roce_mcast_table *t, uint16_t port, const struct net_ip *group,
		      uint32_t qpn, void **garbage);
/** @return members left, or -ENOENT. */
int roce_mcast_detach(struct roce_mcast_table *t, uint16_t port, const struct net_ip *group,
		      uint32_t qpn, void **garbage);
/** Any worker: whether packets to the group, on that port, are for somebody. */
bool roce_mcast_has(const struct roce_mcast_table *t, uint16_t port, const struct net_ip *group);
uint32_t roce_mcast_groups(const struct roce_mcast_table *t);

#endif /* ROCE_MCAST_H */
