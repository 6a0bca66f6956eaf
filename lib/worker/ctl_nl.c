/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says of the interfaces that ports stand on. Addresses come from the
 * configuration; here is only checked that the kernel does not have the same one, since it would
 * answer for us with resets and port-unreachables.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "ctl_priv.h"

static bool
same(const struct sockaddr *sa, const struct net_ip *ip)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
		struct net_ip v4 = net_ip_from_v4(in->sin_addr.s_addr);

		return net_ip_eq(&v4, ip);
	}
	if (sa->sa_family == AF_INET6)
		return memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, ip->b, 16) == 0;
	return false;
}

int
ctl_nl_has_addr(const char *netdev, const struct net_ip *ip)
{
	struct ifaddrs *all, *i;
	int err = 0;

	if (netdev[0] == '\0' || getifaddrs(&all) < 0)
		return 0;
	for (i = all; i != NULL; i = i->ifa_next) {
		if (i->ifa_addr != NULL && strcmp(i->ifa_name, netdev) == 0 &&
			same(i->ifa_addr, ip))
			err = -EADDRINUSE;
	}
	freeifaddrs(all);
	return err;
}
