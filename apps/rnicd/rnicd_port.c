/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports and their memory: DPDK devices from the configuration, addresses and routes on them. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <pmd_glue.h>

#include "rnicd.h"

#define FRAME_OVERHEAD 22	 /* Ethernet header, one VLAN tag, FCS */
#define PACKET_RING_OVERHEAD 128 /* headers of the kernel's packet ring, TPACKET2 */
#define DEFAULT_DESC 1024

static bool
on_netdev(const struct rnicd_port_conf *p)
{
	return p->kind == RNICD_PORT_AF_PACKET || p->kind == RNICD_PORT_AF_XDP;
}

/* ---- sizes ---------- */

static uint32_t
netdev_mtu(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};
	uint32_t mtu = 1500;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%.*s", IFNAMSIZ - 1, name);
	if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &ifr) == 0 && ifr.ifr_mtu > 0)
		mtu = (uint32_t)ifr.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return mtu < 9600 ? mtu : 9600;
}

static uint32_t
port_mtu(const struct rnicd_port_conf *p)
{
	if (p->mtu != 0)
		return p->mtu;
	/* RoCE's largest path MTU fits: what stays in the machine need not be cut smaller */
	if (p->kind == RNICD_PORT_LOOP)
		return 4200;
	return on_netdev(p) ? netdev_mtu(p->dev) : 1500;
}

/* af_packet's ring has frames of a power of two that divide its blocks. */
static uint32_t
packet_frame_size(const struct rnicd_port_conf *p)
{
	uint32_t need = port_mtu(p) + FRAME_OVERHEAD + PACKET_RING_OVERHEAD, size = 2048;

	while (size < need)
		size *= 2;
	return size;
}

uint32_t
rnicd_port_data_room(const struct rnicd_conf *c)
{
	uint32_t room = RTE_MBUF_DEFAULT_DATAROOM;

	for (uint32_t i = 0; i < c->num_ports; i++) {
		const struct rnicd_port_conf *p = &c->port[i];
		uint32_t need = RTE_ALIGN_CEIL(port_mtu(p) + FRAME_OVERHEAD, 64u);

		/* that driver wants a frame of its ring to fit into one mbuf */
		if (p->kind == RNICD_PORT_AF_PACKET)
			need = packet_frame_size(p);
		if (need > room)
			room = need;
	}
	return room + RTE_PKTMBUF_HEADROOM;
}

static uint32_t
rx_desc(const struct rnicd_port_conf *p)
{
	return p->rx_desc != 0 ? p->rx_desc : DEFAULT_DESC;
}

/* The rings hold three quarters at most: the engines may hold the rest. */
uint32_t
rnicd_port_rx_mbufs(const struct rnicd_conf *c)
{
	uint32_t rings = 0, n;

	if (c->rx_mbufs != 0)
		return c->rx_mbufs;
	for (uint32_t i = 0; i < c->num_ports; i++)
		rings += rx_desc(&c->port[i]) * c->workers;
	n = rte_align32pow2(rings + rings / 2 + 2048 * c->workers);
	return (n < 8192 ? 8192 : n) - 1;
}

uint32_t
rnicd_port_tx_mbufs(const struct rnicd_conf *c)
{
	uint32_t n = rte_align32pow2((c->num_ports * DEFAULT_DESC + 4096) * c->workers);

	if (c->tx_mbufs != 0)
		return c->tx_mbufs;
	return (n < 8192 ? 8192 : n) - 1;
}

static int
make_pools(struct rnicd *r, struct rnicd_error *err)
{
	uint32_t room = rnicd_port_data_room(&r->conf);

	r->rx_pool = rte_pktmbuf_pool_create("rnicd_rx", rnicd_port_rx_mbufs(&r->conf), 256, 0,
					     (uint16_t)room, SOCKET_ID_ANY);
	r->tx_pool = rte_pktmbuf_pool_create("rnicd_tx", rnicd_port_tx_mbufs(&r->conf), 256, 0,
					     (uint16_t)room, SOCKET_ID_ANY);
	if (r->rx_pool == NULL || r->tx_pool == NULL)
		return rnicd_fail(err, "no memory for packets (%s); raise --memory, or lower "
				  "rx-mbufs and tx-mbufs in [limits]", rte_strerror(rte_errno));
	return 0;
}

/* ---- addresses that the kernel answers for ---------- */

static bool
same_ip(const struct sockaddr *sa, const char *text)
{
	const struct sockaddr_in *sin = (const void *)sa;
	const struct sockaddr_in6 *sin6 = (const void *)sa;
	char host[64];
	struct in6_addr a;

	snprintf(host, sizeof(host), "%.*s", (int)strcspn(text, "/"), text);
	if (sa->sa_family == AF_INET && inet_pton(AF_INET, host, &a) == 1)
		return memcmp(&sin->sin_addr, &a, 4) == 0;
	if (sa->sa_family == AF_INET6 && inet_pton(AF_INET6, host, &a) == 1)
		return memcmp(&sin6->sin6_addr, &a, 16) == 0;
	return false;
}

static uint32_t
mask_length(const struct sockaddr *sa)
{
	const uint8_t *b;
	uint32_t n = 0;

	if (sa == NULL)
		return 0;
	b = sa->sa_family == AF_INET
		    ? (const void *)&((const struct sockaddr_in *)(const void *)sa)->sin_addr
		    : (const void *)&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	for (uint32_t i = 0; i < (sa->sa_family == AF_INET ? 4u : 16u); i++)
		n += (uint32_t)__builtin_popcount(b[i]);
	return n;
}

static int
conflict_of(const struct rnicd_port_conf *p, const struct ifaddrs *ifa, struct rnicd_error *err)
{
	char host[64];

	if (ifa->ifa_addr == NULL || strcmp(ifa->ifa_name, p->dev) != 0)
		return 0;
	for (uint32_t i = 0; i < p->num_addrs; i++) {
		if (!same_ip(ifa->ifa_addr, p->addr[i].text))
			continue;
		snprintf(host, sizeof(host), "%.*s", (int)strcspn(p->addr[i].text, "/"),
			 p->addr[i].text);
		return rnicd_fail(err, "the kernel has %s on %s, too, and would answer our peers "
				  "with resets; do: ip addr del %s/%u dev %s", host, p->dev, host,
				  mask_length(ifa->ifa_netmask), p->dev);
	}
	return 0;
}

/* Tunnels (tun, WireGuard, GRE) carry IP packets and have no MAC addresses (B188). */
static bool
is_ethernet(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};
	bool other;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%.*s", IFNAMSIZ - 1, name);
	other = fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &ifr) == 0 &&
		ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER &&
		ifr.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK;
	if (fd >= 0)
		close(fd);
	return !other;
}

static int
netdev_fault(const struct rnicd_port_conf *p, struct rnicd_error *err)
{
	if (!on_netdev(p))
		return 0;
	if (if_nametoindex(p->dev) == 0)
		return rnicd_fail(err, "port '%s': there is no network interface '%s'; "
				  "`ip link` lists them", p->name, p->dev);
	if (!is_ethernet(p->dev))
		return rnicd_fail(err, "port '%s': '%s' carries no Ethernet frames; RDMA needs an "
				  "interface with a MAC address, as veth, a bridge or tap",
				  p->name, p->dev);
	return 0;
}

int
rnicd_port_conflicts(const struct rnicd_conf *c, struct rnicd_error *err)
{
	struct ifaddrs *all;
	int rc = 0;

	for (uint32_t i = 0; i < c->num_ports && rc == 0; i++)
		rc = netdev_fault(&c->port[i], err);
	if (rc < 0)
		return rc;
	if (getifaddrs(&all) < 0)
		return rnicd_fail(err, "getifaddrs: %s", strerror(errno));
	for (uint32_t i = 0; i < c->num_ports && rc == 0; i++)
		for (struct ifaddrs *a = all; a != NULL && rc == 0; a = a->ifa_next)
			if (on_netdev(&c->port[i]) || c->port[i].kind == RNICD_PORT_TAP)
				rc = conflict_of(&c->port[i], a, err);
	freeifaddrs(all);
	return rc;
}

/* ---- devices ---------- */

/* DPDK's name and arguments of a virtual device; false: none is to be made. */
static bool
vdev_args(const struct rnicd_conf *c, uint32_t i, char *out, size_t size)
{
	const struct rnicd_port_conf *p = &c->port[i];
	uint32_t frame = packet_frame_size(p);
	int n;

	switch (p->kind) {
	case RNICD_PORT_AF_PACKET:
		n = snprintf(out, size, "net_af_packet%u,iface=%s,qpairs=%u,blocksz=%u,framesz=%u,"
			     "framecnt=%u,qdisc_bypass=1", i, p->dev, c->workers,
			     frame < 4096 ? 4096 : frame, frame, rx_desc(p));
		break;
	case RNICD_PORT_AF_XDP:
		n = snprintf(out, size, "net_af_xdp%u,iface=%s,start_queue=0,queue_count=%u", i,
			     p->dev, c->workers);
		break;
	case RNICD_PORT_TAP:
		n = snprintf(out, size, "net_tap%u,iface=%s", i, p->dev);
		break;
	case RNICD_PORT_VDEV:
		n = snprintf(out, size, "%s", p->dev);
		break;
	default:
		return false;
	}
	if (p->devargs[0] != '\0' && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, ",%s", p->devargs);
	return true;
}

static int
find_ethdev(const struct rnicd_conf *c, uint32_t i, uint16_t *id, struct rnicd_error *err)
{
	const struct rnicd_port_conf *p = &c->port[i];
	char args[384], name[64];
	int rc;

	if (p->kind == RNICD_PORT_LOOP) {
		*id = PMD_PORT_LOOP;
		return 0;
	}
	snprintf(name, sizeof(name), "%s", p->dev);
	if (vdev_args(c, i, args, sizeof(args))) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(args, ","), args);
		rc = rte_dev_probe(args);
		if (rc < 0)
			return rnicd_fail(err, "DPDK cannot make '%s' (%s); see its messages above",
					  args, rte_strerror(-rc));
	}
	if (rte_eth_dev_get_port_by_name(name, id) == 0)
		return 0;
	if (p->kind == RNICD_PORT_PCI)
		return rnicd_fail(err, "no driver of DPDK has taken %s; is it bound to vfio-pci? "
				  "see: dpdk-devbind.py --status", p->dev);
	return rnicd_fail(err, "DPDK has no ethdev '%s'", name);
}

static void
log_port(const struct rnicd *r, uint32_t i)
{
	struct pmd_port_info info;

	pmd_port_get_info(r->port[i], &info);
	RNICD_LOG(INFO, "port %u '%s': %s, mtu %u, MAC %02x:%02x:%02x:%02x:%02x:%02x, link %s", i,
		  r->conf.port[i].name, info.driver, info.mtu, info.mac[0], info.mac[1],
		  info.mac[2], info.mac[3], info.mac[4], info.mac[5],
		  info.link_up ? "up" : "down");
	for (unsigned int o = 0; o < PMD_OFFLOAD_COUNT; o++)
		if (info.why_not[o] != NULL)
			RNICD_LOG(DEBUG, "port %u: no %s: %s", i,
				  pmd_offload_name((enum pmd_offload)o), info.why_not[o]);
}

int
rnicd_ports_open(struct rnicd *r, struct rnicd_error *err)
{
	struct rnicd_conf *c = &r->conf;

	if (make_pools(r, err) < 0)
		return -1;
	for (uint32_t i = 0; i < c->num_ports; i++) {
		struct pmd_port_config pc = {
			.index = (uint16_t)i,
			.num_queues = (uint16_t)c->workers,
			.mtu = c->port[i].kind == RNICD_PORT_LOOP ? port_mtu(&c->port[i])
								  : c->port[i].mtu,
			.rx_desc = c->port[i].rx_desc,
			.tx_desc = c->port[i].tx_desc,
			.rx_pool = r->rx_pool,
			.no_offload = c->port[i].no_offload | c->no_offload,
		};
		const char *why = "no reason given";

		if (find_ethdev(c, i, &pc.ethdev, err) < 0)
			return rnicd_fail_prefix(err, "port '%s': ", c->port[i].name);
		if (pmd_port_open(&pc, &r->port[i], &why) < 0)
			return rnicd_fail(err, "port '%s': %s", c->port[i].name, why);
		r->num_ports++;
		log_port(r, i);
	}
	return 0;
}

void
rnicd_ports_close(struct rnicd *r)
{
	while (r->num_ports > 0)
		pmd_port_close(r->port[--r->num_ports]);
	rte_mempool_free(r->rx_pool);
	rte_mempool_free(r->tx_pool);
}

int
rnicd_port_find(const struct rnicd *r, const char *name, struct rnicd_error *err)
{
	for (uint32_t i = 0; i < r->num_ports; i++)
		if (strcmp(r->conf.port[i].name, name) == 0)
			return (int)i;
	return rnicd_fail(err, "no port is called '%s'; `rnicctl show devices` names them", name);
}
