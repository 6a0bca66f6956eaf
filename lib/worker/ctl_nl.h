/* SPDX-License-Identifier: BSD-3-Clause */
/* Between what the kernel says of interfaces (ctl_nl.c) and ports that follow it (ctl_net.c). */
#ifndef CTL_NL_H
#define CTL_NL_H

#include <stdbool.h>
#include <stdint.h>

#include "net_route.h"

struct worker_device;

/** Whether the kernel's interface carries this address: -EADDRINUSE, else 0. */
int ctl_nl_has_addr(const char *netdev, const struct net_ip *ip);
/** The port stands on this interface, or on none (""): follow it. */
void ctl_nl_follow(struct worker_device *d, uint32_t port, const char *netdev);
void ctl_nl_end(struct worker_device *d);

/** The kernel's view of the link has come. `mtu` 0 and `mac` NULL: not said. */
void ctl_net_link_follow(struct worker_device *d, uint32_t port, bool up, uint32_t mtu,
			 const uint8_t *mac);
/** The kernel has got this address on the interface under the port. */
void ctl_net_addr_taken(struct worker_device *d, uint32_t port, const struct net_ip *ip,
			unsigned int plen);
/**
 * Routes of the kernel: take the known ones away and enter the found ones; those that the
 * configuration has as well are taken out of `found`. 0, or -ENOMEM and nothing is done.
 */
int ctl_net_routes_follow(struct worker_device *d, const struct net_route *known,
			  uint32_t num_known, struct net_route *found, uint32_t *num_found);

#endif /* CTL_NL_H */
