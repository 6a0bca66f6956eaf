/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports on the network: own addresses and GIDs, routes, neighbours, links. Views that workers
 * read are replaced whole and freed when no worker can look at the old one any more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "ctl_nl.h"
#include "ctl_priv.h"
#include "net_group.h"
#include "net_icmp.h"
#include "net_parse.h"
#include "net_txbatch.h"
#include "pmd_glue.h"

#define NEIGHBOURS 4096
#define LINK_POLL_NS UINT64_C(200000000)

/* ---- old views ---------- */

struct old_view {
	struct ctl_grace grace;
	const struct net_iface_view *iface;
	const struct net_route_view *routes;
};

static void
old_passed(struct worker_device *d, struct ctl_grace *g)
{
	struct old_view *o = (struct old_view *)g;

	(void)d;
	net_iface_view_free(o->iface);
	net_route_view_free(o->routes);
	free(o);
}

static int
iface_publish(struct worker_device *d, uint32_t port, struct net_iface_view *v)
{
	struct old_view *o = calloc(1, sizeof(*o));

	if (o == NULL) {
		net_iface_view_free(v);
		return -ENOMEM;
	}
	o->iface = net_iface_publish(&d->sh.iface[port], v);
	o->grace.passed = old_passed;
	ctl_grace_add(d, &o->grace);
	return 0;
}

/* Routes are looked up by the control thread alone: the old view goes at once. */
static void
routes_publish(struct worker_device *d, struct net_route_view *v)
{
	net_route_view_free(net_route_publish(&d->routes, v));
}

/* ---- GIDs ---------- */

static struct ctl_gid *
gid_find(struct ctl_port *p, const struct net_ip *ip, uint16_t vid)
{
	for (unsigned int i = 0; i < CTL_GIDS; i++) {
		struct ctl_gid *g = &p->gids[i];

		if (g->used && g->vid == vid && net_ip_eq(&g->ip, ip))
			return g;
	}
	return NULL;
}

int
ctl_net_gid(const struct worker_device *d, uint32_t port, const struct net_ip *ip, uint16_t vid)
{
	const struct ctl_port *p = &d->port[port];

	for (int i = 0; i < CTL_GIDS; i++) {
		if (p->gids[i].used && p->gids[i].vid == vid && net_ip_eq(&p->gids[i].ip, ip))
			return i;
	}
	return -1;
}

static void
gid_add(struct worker_device *d, uint32_t port, const struct net_ip *ip, uint16_t vid)
{
	struct ctl_port *p = &d->port[port];

	for (unsigned int i = 0; i < CTL_GIDS; i++) {
		if (p->gids[i].used)
			continue;
		p->gids[i] = (struct ctl_gid){*ip, vid, true};
		ctl_event_all(d, RING_EVENT_GID_CHANGE, RING_EVENT_OF_PORT, port + 1);
		return;
	}
}

/* ---- addresses ---------- */

static int
addr_parse(const struct worker_device *d, uint32_t port, const char *text, uint16_t vlan,
	struct net_ip *ip, uint8_t *plen)
{
	if (port >= d->sh.num_ports || vlan >= 4095)
		return -EINVAL;
	return net_prefix_parse(text, ip, plen);
}

static int
addr_enter(struct worker_device *d, uint32_t port, const struct net_ip *ip, uint8_t plen,
	uint16_t vlan)
{
	struct net_iface_view *v = net_iface_view_dup(net_iface_get(&d->sh.iface[port]));
	int err;

	if (v == NULL)
		return -ENOMEM;
	err = net_iface_view_add(v, ip, plen, vlan);
	if (err < 0) {
		net_iface_view_free(v);
		return err;
	}
	err = iface_publish(d, port, v);
	if (err < 0)
		return err;
	gid_add(d, port, ip, vlan);
	ctl_mcast_addr(d, port, ip, true);
	return 0;
}

int
worker_port_addr_add(struct worker_device *d, uint32_t port, const char *addr, uint16_t vlan)
{
	struct net_ip ip;
	uint8_t plen;
	int err = addr_parse(d, port, addr, vlan, &ip, &plen);

	if (err < 0)
		return err;
	if (vlan == 0)
		err = ctl_nl_has_addr(d->port[port].netdev, &ip);
	if (err < 0) {
		LOG(ctl_log, ERR,
			"%s is an address of %s: the kernel would answer for us; take it away "
			"with: ip addr del %s dev %s",
			addr, d->port[port].netdev, addr, d->port[port].netdev);
		return err;
	}
	err = addr_enter(d, port, &ip, plen, vlan);
	if (err == 0)
		net_neigh_announce(d->port[port].neighs, &ip, vlan);
	return err;
}

int
worker_port_addr_del(struct worker_device *d, uint32_t port, const char *addr, uint16_t vlan)
{
	struct net_iface_view *v;
	struct ctl_gid *g;
	struct net_ip ip;
	uint8_t plen;
	int err = addr_parse(d, port, addr, vlan, &ip, &plen);

	if (err < 0)
		return err;
	v = net_iface_view_dup(net_iface_get(&d->sh.iface[port]));
	if (v == NULL)
		return -ENOMEM;
	err = net_iface_view_del(v, &ip, vlan);
	if (err < 0) {
		net_iface_view_free(v);
		return err;
	}
	err = iface_publish(d, port, v);
	g = err == 0 ? gid_find(&d->port[port], &ip, vlan) : NULL;
	if (g != NULL) {
		g->used = false;
		ctl_event_all(d, RING_EVENT_GID_CHANGE, RING_EVENT_OF_PORT, port + 1);
		ctl_mcast_addr(d, port, &ip, false);
	}
	return err;
}

static int
route_parse(const char *prefix, const char *gateway, struct net_route *r)
{
	bool any = strcmp(prefix, "default") == 0;
	int err = any ? 0 : net_prefix_parse(prefix, &r->prefix, &r->plen);

	if (err == 0 && gateway != NULL)
		err = net_ip_parse(gateway, &r->gateway);
	if (err < 0)
		return err;
	if (any && gateway == NULL)
		return -EINVAL;
	if (any && net_ip_is_v4(&r->gateway)) {
		r->prefix = net_ip_from_v4(0);
		r->plen = NET_PREFIX_V4;
	}
	return 0;
}

int
worker_route_add(struct worker_device *d, uint32_t port, const char *prefix, const char *gateway)
{
	struct net_route r = {.port = (uint16_t)port};
	struct net_route_view *v;
	int err = port < d->sh.num_ports ? route_parse(prefix, gateway, &r) : -EINVAL;

	if (err < 0)
		return err;
	v = net_route_view_new(net_route_get(&d->routes));
	if (v == NULL)
		return -ENOMEM;
	err = net_route_view_add(v, &r);
	if (err < 0)
		net_route_view_free(v);
	else
		routes_publish(d, v);
	return err;
}

/* ---- neighbours ---------- */

int
ctl_net_transmit(struct worker_device *d, uint32_t worker, uint16_t port, struct rte_mbuf *m)
{
	struct worker_msg *msg = NULL;

	if (port <= d->sh.num_ports) /* the hairpin, too */
		msg = ctl_msg_get(d, WORKER_MSG_TX);
	if (msg == NULL) {
		rte_pktmbuf_free(m);
		return -ENOBUFS;
	}
	msg->pkt.port = port;
	msg->pkt.m = m;
	ctl_msg_post(d, worker, msg);
	return 0;
}

static void
transmit(struct worker_device *d, uint16_t port, struct rte_mbuf *m)
{
	ctl_net_transmit(d, 0, port, m);
}

static void
neigh_send(void *ctx, uint16_t port, const uint8_t *frame, uint16_t len)
{
	struct worker_device *d = ctx;
	struct rte_mbuf *m = rte_pktmbuf_alloc(d->sh.tx_pool);
	char *p = m != NULL ? rte_pktmbuf_append(m, len) : NULL;

	if (p == NULL) {
		rte_pktmbuf_free(m);
		return;
	}
	memcpy(p, frame, len);
	transmit(d, port, m);
}

static void
neigh_release(void *ctx, uint16_t port, struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		transmit(ctx, port, m[i]);
}

/* Tell each worker; the entry is held until all have answered. */
struct neigh_msg {
	struct ctl_msg msg;
	struct net_neigh *neigh;
};

static void
neigh_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct neigh_msg *n = (struct neigh_msg *)m;

	(void)d;
	net_neigh_put(n->neigh);
	free(n);
}

static void
tell_workers(struct worker_device *d, struct net_neigh *n)
{
	for (uint32_t w = 0; w < d->sh.num_workers; w++) {
		struct neigh_msg *m = calloc(1, sizeof(*m));

		if (m == NULL)
			return; /* its QPs ask again by a timer of their own */
		net_neigh_ref(n);
		m->neigh = n;
		m->msg.m.type = WORKER_MSG_NEIGH;
		m->msg.m.neigh.neigh = n;
		m->msg.replied = neigh_replied;
		ctl_msg_send(d, w, &m->msg);
	}
}

static void
neigh_event(void *ctx, enum net_neigh_event ev, struct net_neigh *n, const struct net_ip *ip,
	const struct rte_ether_addr *mac)
{
	struct worker_device *d = ctx;
	char text[NET_IP_TEXT];

	switch (ev) {
	case NET_NEIGH_RESOLVED:
	case NET_NEIGH_CHANGED:
		tell_workers(d, n);
		ctl_neigh_event(d, n, 0);
		break;
	case NET_NEIGH_LOST:
		ctl_neigh_event(d, n, -EHOSTUNREACH);
		break;
	case NET_NEIGH_CONFLICT:
		LOG_LIMITED(&d->conflicts, ctl_log, WARNING,
			"address conflict: " RTE_ETHER_ADDR_PRT_FMT " uses our %s",
			RTE_ETHER_ADDR_BYTES(mac), net_ip_format(ip, text));
		break;
	}
}

void
ctl_net_rx(struct worker_device *d, uint16_t port, struct rte_mbuf *m)
{
	struct net_pkt pkt;
	enum net_kind kind;

	if (port >= d->sh.num_ports)
		return;
	kind = net_parse(m, &pkt);
	if (kind == NET_ARP || kind == NET_ND)
		net_neigh_input(d->port[port].neighs, &pkt, ctl_now(d));
	else if (kind == NET_GROUP)
		net_group_input(d->port[port].groups, &pkt, ctl_now(d));
}

/* ---- links ---------- */

static void
port_info(struct ctl_port *p)
{
	struct pmd_port_info info;

	pmd_port_get_info(p->pmd, &info);
	memcpy(p->mac, info.mac, sizeof(p->mac));
	p->mtu = info.mtu;
	p->max_mtu = info.mtu;
	p->up = info.link_up;
	p->mbps = info.link_mbps;
	snprintf(p->netdev, sizeof(p->netdev), "%.31s",
		info.netdev[0] != 0 ? info.netdev : info.name);
}

/* The longest datagram, for workers. */
static void
mtu_publish(struct worker_device *d, uint32_t port)
{
	atomic_store_explicit(&d->sh.mtu[port], 128u << ctl_mtu_of(d->port[port].mtu),
		memory_order_relaxed);
}

static void
port_view(struct worker_device *d, uint32_t port)
{
	struct net_iface_view *v = net_iface_view_dup(net_iface_get(&d->sh.iface[port]));
	const struct ctl_port *p = &d->port[port];

	if (v == NULL)
		return; /* the next look tries again */
	mtu_publish(d, port);
	v->mtu = p->mtu;
	v->link_up = p->up;
	v->link_mbps = p->mbps;
	iface_publish(d, port, v);
}

static void
link_tell(struct worker_device *d, uint32_t port, bool up)
{
	LOG(ctl_log, NOTICE, "port %u: link %s", port + 1, up ? "up" : "down");
	ctl_event_all(d, up ? RING_EVENT_PORT_ACTIVE : RING_EVENT_PORT_ERR, RING_EVENT_OF_PORT,
		port + 1);
}

static void
link_poll(struct worker_device *d, uint32_t port)
{
	struct ctl_port *p = &d->port[port];
	bool was = p->up, up;

	/* A driver on a kernel interface knows less of it than the kernel says (ctl_nl.c). */
	if (p->ifindex != 0 || !pmd_port_poll_link(p->pmd, &up))
		return;
	port_info(p);
	ctl_cc_push(d, port);
	p->up = up;
	port_view(d, port);
	if (was != up)
		link_tell(d, port, up);
}

/* ---- following the kernel ---------- */

/* The link-local address is made of the MAC, and what was told of our MAC must be told anew. */
static int
mac_change(struct worker_device *d, uint32_t port, const uint8_t *bytes)
{
	struct net_iface_view *v = net_iface_view_dup(net_iface_get(&d->sh.iface[port]));
	struct net_neigh_table *hairpin = d->port[d->sh.num_ports].neighs;
	struct ctl_port *p = &d->port[port];
	struct net_ip before, after;
	struct rte_ether_addr mac;
	struct ctl_gid *g;

	if (v == NULL)
		return -ENOMEM;
	before = net_ip_link_local(&v->mac);
	memcpy(mac.addr_bytes, bytes, sizeof(mac.addr_bytes));
	after = net_ip_link_local(&mac);
	v->mac = mac;
	net_iface_view_del(v, &before, 0);
	net_iface_view_add(v, &after, 64, 0);
	if (iface_publish(d, port, v) < 0)
		return -ENOMEM;
	memcpy(p->mac, bytes, sizeof(p->mac));
	ctl_mcast_addr(d, port, &after, true);
	ctl_mcast_addr(d, port, &before, false);
	g = gid_find(p, &before, 0);
	if (g != NULL)
		g->ip = after;
	for (unsigned int i = 0; i < CTL_GIDS; i++) {
		g = &p->gids[i];
		if (!g->used)
			continue;
		if (net_neigh_find(hairpin, &g->ip, 0) != NULL)
			net_neigh_set_static(hairpin, &g->ip, 0, &mac);
		net_neigh_announce(p->neighs, &g->ip, g->vid);
	}
	LOG(ctl_log, NOTICE, "port %u: MAC address now " RTE_ETHER_ADDR_PRT_FMT, port + 1,
		RTE_ETHER_ADDR_BYTES(&mac));
	ctl_event_all(d, RING_EVENT_GID_CHANGE, RING_EVENT_OF_PORT, port + 1);
	return 0;
}

void
ctl_net_link_follow(struct worker_device *d, uint32_t port, bool up, uint32_t mtu,
	const uint8_t *mac)
{
	struct ctl_port *p = &d->port[port];
	bool was = p->up;

	/* More than the port was opened for does not fit its buffers. */
	if (mtu > p->max_mtu)
		mtu = p->max_mtu;
	if (mtu != 0 && mtu != p->mtu)
		LOG(ctl_log, NOTICE, "port %u: MTU now %u", port + 1, mtu);
	if (up != was || (mtu != 0 && mtu != p->mtu)) {
		p->mtu = mtu != 0 ? (uint16_t)mtu : p->mtu;
		p->up = up;
		port_view(d, port);
	}
	if (mac != NULL && memcmp(mac, p->mac, sizeof(p->mac)) != 0)
		mac_change(d, port, mac);
	if (up != was)
		link_tell(d, port, up);
}

void
ctl_net_addr_taken(struct worker_device *d, uint32_t port, const struct net_ip *ip,
	unsigned int plen)
{
	const struct net_iface_view *v = net_iface_get(&d->sh.iface[port]);
	struct net_ip own = net_ip_link_local(&v->mac);
	char text[NET_IP_TEXT];

	/* The link-local address of the same MAC is the kernel's as a rule; it stays silent. */
	if (!net_iface_owns(v, ip) || net_ip_eq(ip, &own))
		return;
	net_ip_format(ip, text);
	d->addrs_taken++;
	LOG(ctl_log, WARNING,
		"%s is now an address of %s too: the kernel answers for us; take it away with: ip "
		"addr del %s/%u dev %s",
		text, d->port[port].netdev, text, plen, d->port[port].netdev);
}

int
ctl_net_routes_follow(struct worker_device *d, const struct net_route *known, uint32_t num_known,
	struct net_route *found, uint32_t *num_found)
{
	struct net_route_view *v = net_route_view_new(net_route_get(&d->routes));
	uint32_t kept = 0;

	if (v == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < num_known; i++)
		net_route_view_del(v, &known[i]);
	for (uint32_t i = 0; i < *num_found; i++) {
		int err = net_route_view_add(v, &found[i]);

		if (err == 0)
			found[kept++] = found[i];
		else if (err == -ENOSPC)
			LOG_LIMITED(&d->conflicts, ctl_log, WARNING,
				"no room for all routes of %s", d->port[found[i].port].netdev);
	}
	*num_found = kept;
	routes_publish(d, v);
	return 0;
}

void
ctl_net_tick(struct worker_device *d, uint64_t now)
{
	for (uint32_t i = 0; i < d->sh.num_ports; i++) {
		net_neigh_tick(d->port[i].neighs, now);
		net_groups_tick(d->port[i].groups, now);
		if (now >= d->link_due)
			link_poll(d, i);
		if (d->port[i].cc_late)
			ctl_cc_push(d, i);
	}
	if (now >= d->link_due)
		d->link_due = now + LINK_POLL_NS;
	if (now >= d->neigh_due)
		d->neigh_due = ctl_neigh_expire(d, now);
	ctl_neigh_tell(d);
}

uint64_t
ctl_net_deadline(struct worker_device *d, uint64_t now)
{
	uint64_t due = d->neigh_due < d->link_due ? d->neigh_due : d->link_due;

	for (uint32_t i = 0; i < d->sh.num_ports; i++) {
		uint64_t t = net_neigh_next_deadline(d->port[i].neighs, now);

		due = t < due ? t : due;
		t = net_groups_next_deadline(d->port[i].groups);
		due = t < due ? t : due;
	}
	return due;
}

/* ---- beginning and end ---------- */

static int
port_init(struct worker_device *d, uint32_t port)
{
	struct net_neigh_ops ops = {neigh_send, neigh_release, neigh_event, d};
	struct net_group_ops gops = {neigh_send, d};
	struct ctl_port *p = &d->port[port];
	bool real = port < d->sh.num_ports;
	struct pmd_port_info info;
	struct net_iface_view *v;
	struct rte_ether_addr mac;
	struct net_ip ip;

	if (real) {
		p->pmd = d->ports[port];
		port_info(p);
		mtu_publish(d, port);
		memcpy(mac.addr_bytes, p->mac, sizeof(mac.addr_bytes));
		v = net_iface_view_new(&mac, (uint16_t)port, p->mtu);
		if (v == NULL)
			return -ENOMEM;
		v->link_up = p->up;
		v->link_mbps = p->mbps;
		ip = net_ip_link_local(&mac);
		net_iface_view_add(v, &ip, 64, 0);
		gid_add(d, port, &ip, 0);
		net_iface_publish(&d->sh.iface[port], v);
	}
	/* The hairpin has no interface of its own and needs none: all its entries are static. */
	if (real) {
		p->groups = net_groups_new(&d->sh.iface[port], (uint16_t)port, d->sh.seed + port,
			&gops);
		if (p->groups == NULL)
			return -ENOMEM;
	}
	p->neighs = net_neigh_table_new(&d->sh.iface[real ? port : 0], NEIGHBOURS, &ops);
	if (p->neighs == NULL)
		return -ENOMEM;
	if (real) {
		pmd_port_get_info(p->pmd, &info);
		ctl_nl_follow(d, port, info.netdev);
	}
	return 0;
}

int
ctl_net_init(struct worker_device *d, const char **why)
{
	/* A quarter of a table may be unresolved, and a quarter of that for one uid. */
	d->neigh_share = NEIGHBOURS / 4 / 4;
	for (uint32_t i = 0; i <= d->sh.num_ports; i++) {
		if (port_init(d, i) < 0) {
			*why = "no memory for the neighbour tables";
			return -ENOMEM;
		}
	}
	return 0;
}

void
ctl_net_fini(struct worker_device *d)
{
	ctl_nl_end(d);
	ctl_neigh_fini(d);
	for (uint32_t i = 0; i <= d->sh.num_ports; i++) {
		if (d->port[i].neighs != NULL)
			net_neigh_table_free(d->port[i].neighs);
		net_groups_free(d->port[i].groups);
		if (i < d->sh.num_ports)
			net_iface_view_free(net_iface_get(&d->sh.iface[i]));
	}
	net_route_view_free(net_route_get(&d->routes));
}
