/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's network interface under a port (af_packet, af_xdp, tap, bifurcated drivers). */
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_devargs.h>

#include "pmd_priv.h"

/*
 * What the kernel puts before a frame in a slot of a TPACKET_V2 ring: the header, a socket
 * address, alignment, and room for a VLAN tag that the PMD puts back.
 */
#define AFPACKET_OVERHEAD 96
#define AFPACKET_FRAMESZ 2048 /* the PMD's default */

void
pmd_netdev_name(const struct rte_eth_dev_info *info, char name[16])
{
	char buf[IF_NAMESIZE];

	name[0] = '\0';
	if (info->if_index > 0 && if_indextoname(info->if_index, buf) != NULL)
		memcpy(name, buf, sizeof(buf));
}

/* 0, or -1: no such interface, or no interface at all. */
static int
netdev_ask(const char *name, unsigned long what, struct ifreq *req)
{
	int fd, rc;

	if (name[0] == '\0')
		return -1;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	memset(req, 0, sizeof(*req));
	strncpy(req->ifr_name, name, sizeof(req->ifr_name) - 1);
	rc = ioctl(fd, what, req);
	close(fd);
	return rc;
}

uint32_t
pmd_netdev_mtu(const char *name)
{
	struct ifreq req;

	return netdev_ask(name, SIOCGIFMTU, &req) == 0 && req.ifr_mtu > 0 ? (uint32_t)req.ifr_mtu
									   : 0;
}

bool
pmd_netdev_down(const char *name)
{
	struct ifreq req;

	return netdev_ask(name, SIOCGIFFLAGS, &req) == 0 &&
	       (req.ifr_flags & (IFF_UP | IFF_RUNNING)) != (IFF_UP | IFF_RUNNING);
}

uint32_t
pmd_afpacket_mtu(const struct rte_eth_dev_info *info)
{
	const struct rte_devargs *args = info->device ? rte_dev_devargs(info->device) : NULL;
	const char *at = args != NULL && args->args != NULL ? strstr(args->args, "framesz=") : NULL;
	unsigned long size = at != NULL ? strtoul(at + strlen("framesz="), NULL, 0) : 0;

	if (info->driver_name == NULL || strcmp(info->driver_name, "net_af_packet") != 0)
		return 0;
	if (size < AFPACKET_OVERHEAD + RTE_ETHER_HDR_LEN + RTE_ETHER_MIN_MTU || size > 1u << 20)
		size = AFPACKET_FRAMESZ;
	size -= AFPACKET_OVERHEAD + RTE_ETHER_HDR_LEN;
	return size < UINT16_MAX ? (uint32_t)size : UINT16_MAX;
}
