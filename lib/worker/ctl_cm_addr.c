/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of connection management: which own address and port speak to a peer, and the way
 * there. Loopback addresses mean the first own address of the family, on whatever port it is:
 * there is no interface of their own, and packets between own addresses go by the hairpin.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_cm.h"

/* ---- kinds of addresses ---------- */

struct net_ip
ctl_cm_ip(const struct ring_cm_addr *a)
{
	return net_ip_from_bytes(a->ip.raw);
}

bool
ctl_cm_addr_ok(const struct ring_cm_addr *a)
{
	struct net_ip ip = ctl_cm_ip(a);
	static const struct ring_cm_addr none;

	if (a->reserved != 0)
		return false;
	switch (a->version) {
	case 0:
		return memcmp(a, &none, sizeof(none)) == 0;
	case 4:
		return net_ip_is_v4(&ip) && a->scope == 0;
	case 6:
		return !net_ip_is_v4(&ip);
	default:
		return false;
	}
}

static bool
ip_any(const struct net_ip *ip)
{
	return net_ip_is_zero(ip) || (net_ip_is_v4(ip) && net_ip_v4(ip) == 0);
}

bool
ctl_cm_addr_any(const struct ring_cm_addr *a)
{
	struct net_ip ip = ctl_cm_ip(a);

	return ip_any(&ip);
}

static bool
ip_loopback(const struct net_ip *ip)
{
	static const struct net_ip one = {.b = {[15] = 1}};

	return net_ip_is_v4(ip) ? ip->b[12] == 127 : net_ip_eq(ip, &one);
}

/* Everybody on some subnet: no peer to connect to (B130). */
static bool
ip_broadcast(const struct worker_device *d, const struct net_ip *ip)
{
	if (!net_ip_is_v4(ip))
		return false;
	if (net_ip_v4(ip) == RTE_BE32(0xffffffff))
		return true;
	for (uint32_t p = 0; p < d->sh.num_ports; p++) {
		if (ctl_net_broadcast(d, p, -1, ip))
			return true;
	}
	return false;
}

/* ---- own addresses ---------- */

/** An own address. */
struct own {
	uint32_t port;
	const struct net_ifaddr *addr;
};

/* The port that a scope names: one that stands on that interface. */
static bool
scope_fits(const struct worker_device *d, uint32_t port, uint32_t scope)
{
	return scope == 0 || d->port[port].ifindex == scope;
}

static bool
own_find(const struct worker_device *d, const struct net_ip *ip, uint32_t scope, struct own *o)
{
	for (o->port = 0; o->port < d->sh.num_ports; o->port++) {
		const struct net_iface_view *v = net_iface_get(&d->sh.iface[o->port]);

		for (unsigned int i = 0; i < v->n_addr; i++) {
			o->addr = &v->addr[i];
			if (net_ip_eq(&o->addr->ip, ip) && scope_fits(d, o->port, scope))
				return true;
		}
	}
	return false;
}

/* The first of a family, link-local ones last. */
static bool
own_first(const struct worker_device *d, bool v4, struct own *o)
{
	for (int local = 0; local <= !v4; local++) {
		for (o->port = 0; o->port < d->sh.num_ports; o->port++) {
			const struct net_iface_view *v = net_iface_get(&d->sh.iface[o->port]);

			for (unsigned int i = 0; i < v->n_addr; i++) {
				o->addr = &v->addr[i];
				if (net_ip_is_v4(&o->addr->ip) == v4 &&
					net_ip_is_link_local(&o->addr->ip) == local)
					return true;
			}
		}
	}
	return false;
}

/* On whose subnet the peer is; of several the first, as of routes with the same prefix. */
static bool
own_on_link(const struct worker_device *d, const struct net_ip *dst, struct own *o)
{
	for (o->port = 0; o->port < d->sh.num_ports; o->port++) {
		const struct net_iface_view *v = net_iface_get(&d->sh.iface[o->port]);

		for (unsigned int i = 0; i < v->n_addr; i++) {
			o->addr = &v->addr[i];
			if (net_ip_is_v4(&o->addr->ip) == net_ip_is_v4(dst) &&
				net_ip_in_prefix(dst, &o->addr->ip, o->addr->plen))
				return true;
		}
	}
	return false;
}

static bool
own_by_route(const struct worker_device *d, const struct net_ip *dst, struct own *o)
{
	const struct net_iface_view *v;
	struct net_route_hop hop;

	if (net_route_lookup(net_route_get(&d->routes), dst, &hop) < 0 ||
		hop.port >= d->sh.num_ports)
		return false;
	o->port = hop.port;
	v = net_iface_get(&d->sh.iface[hop.port]);
	o->addr = net_ip_is_zero(&hop.src) ? NULL : net_iface_find(v, &hop.src, hop.vid);
	if (o->addr == NULL)
		o->addr = net_iface_source_for(v, &hop.nexthop, hop.vid);
	return o->addr != NULL && net_ip_is_v4(&o->addr->ip) == net_ip_is_v4(dst);
}

/* Link-local peers, and groups, are on the port that the scope says, else on the first. */
static bool
own_on_port(const struct worker_device *d, const struct net_ip *dst, uint32_t scope, struct own *o)
{
	for (o->port = 0; o->port < d->sh.num_ports; o->port++) {
		const struct net_iface_view *v = net_iface_get(&d->sh.iface[o->port]);

		o->addr = net_iface_source_for(v, dst, 0);
		if (o->addr != NULL && scope_fits(d, o->port, scope))
			return true;
	}
	return false;
}

static void
use_own(struct ctl_cm_id *id, const struct own *o)
{
	struct worker_device *d = id->o.client->dev;
	int gid = ctl_net_gid(d, o->port, &o->addr->ip, o->addr->vid);

	memcpy(id->src.ip.raw, o->addr->ip.b, sizeof(id->src.ip.raw));
	id->src.version = net_ip_is_v4(&o->addr->ip) ? 4 : 6;
	id->vlan = o->addr->vid;
	id->av.port = (uint8_t)(o->port + 1);
	id->av.sgid_index = gid >= 0 ? (uint8_t)gid : 0;
	id->av.is_global = 1;
	id->av.hop_limit = 64;
	id->av.traffic_class = id->tos;
}

int
ctl_cm_addr_bind(struct ctl_cm_id *id, const struct ring_cm_addr *a)
{
	struct worker_device *d = id->o.client->dev;
	struct net_ip ip = ctl_cm_ip(a);
	struct own o;

	id->src = *a;
	if (a->version == 4)
		id->afonly = true;
	if (ip_any(&ip))
		return 0;
	id->loopback = ip_loopback(&ip);
	if (id->loopback ? !own_first(d, net_ip_is_v4(&ip), &o)
			 : !own_find(d, &ip, a->scope, &o))
		return -EADDRNOTAVAIL;
	use_own(id, &o);
	return 0;
}

/* ---- RESOLVE_ADDR ---------- */

/* Whom we speak as: the address it is bound to, else the one that is nearest to the peer. */
static int
choose_source(struct ctl_cm_id *id, const struct net_ip *dst)
{
	struct worker_device *d = id->o.client->dev;
	struct own o;
	bool found;

	if (id->av.port != 0)
		return (id->src.version == 4) == net_ip_is_v4(dst) ? 0 : -EAFNOSUPPORT;
	if (own_find(d, dst, id->dst.scope, &o))
		found = true; /* to ourselves: from the same address */
	else if (net_ip_is_link_local(dst))
		found = own_on_port(d, dst, id->dst.scope, &o);
	else
		found = own_on_link(d, dst, &o) || own_by_route(d, dst, &o);
	if (!found && net_ip_is_multicast(dst))
		found = own_on_port(d, dst, id->dst.scope, &o);
	if (!found)
		return -ENETUNREACH;
	use_own(id, &o);
	return 0;
}

/* Peers that have other names: this host. */
static int
choose_peer(struct ctl_cm_id *id, struct net_ip *dst)
{
	struct worker_device *d = id->o.client->dev;
	bool v4 = id->dst.version == 4;
	struct own o;

	*dst = ctl_cm_ip(&id->dst);
	if (ip_broadcast(d, dst))
		return -ENETUNREACH;
	if (!ip_any(dst) && !ip_loopback(dst))
		return 0;
	if (id->av.port != 0) {
		*dst = ctl_cm_ip(&id->src);
	} else {
		if (!own_first(d, v4, &o))
			return -ENETUNREACH;
		*dst = o.addr->ip;
	}
	memcpy(id->dst.ip.raw, dst->b, sizeof(id->dst.ip.raw));
	return 0;
}

static void
untimed(struct ctl_cm_id *id)
{
	if (id->timed)
		id->o.client->user->resolves--;
	id->timed = false;
}

static void
resolve_end(struct ctl_cm_id *id, int status)
{
	untimed(id);
	if (status == 0) {
		id->state = CTL_CM_ADDR_RESOLVED;
		ctl_cm_tell(id, RING_CM_ADDR_RESOLVED, 0);
		return;
	}
	id->state = CTL_CM_BOUND;
	if (id->bound == NULL) {
		id->state = CTL_CM_IDLE;
		memset(&id->src, 0, sizeof(id->src));
		id->av.port = 0;
	}
	memset(&id->dst, 0, sizeof(id->dst));
	ctl_cm_tell(id, RING_CM_ADDR_ERROR, status);
}

/* 0, -errno, or -EINPROGRESS: the wait's function goes on with it. */
static int
neighbour(struct ctl_cm_id *id)
{
	struct ctl_client *c = id->o.client;
	struct net_ip dst = ctl_cm_ip(&id->dst);
	struct verbs_av av;
	int err;

	if (net_ip_is_multicast(&dst))
		return 0;
	err = ctl_av_resolve(c, &id->av, &av);
	if (err == -EAGAIN)
		return ctl_neigh_line(c, &id->wait);
	if (err < 0)
		return err;
	if (id->neigh != NULL)
		net_neigh_put(id->neigh);
	id->neigh = av.neigh;
	return ctl_neigh_wait(c, av.neigh, &id->wait);
}

static void
neighbour_resolved(struct ctl_neigh_wait *w, int status)
{
	struct ctl_cm_id *id =
		(struct ctl_cm_id *)((uint8_t *)w - offsetof(struct ctl_cm_id, wait));

	if (status == -EAGAIN)
		status = neighbour(id); /* it is its turn */
	if (status != -EINPROGRESS)
		resolve_end(id, status);
}

/* What can be said at once is said at once; the way there is told of by an event. */
static int
resolve_begin(struct ctl_cm_id *id, const struct ring_ctrl_cm_addr_req *r)
{
	struct net_ip dst;
	int err = 0;

	if (id->state == CTL_CM_IDLE && r->src.version != 0)
		err = ctl_cm_addr_bind(id, &r->src);
	if (err < 0)
		return err;
	id->dst = r->dst;
	err = choose_peer(id, &dst);
	if (err == 0)
		err = choose_source(id, &dst);
	if (err == -EAFNOSUPPORT)
		return -EINVAL;
	id->state = CTL_CM_ADDR_QUERY;
	if (err == 0) {
		memcpy(id->av.dgid.raw, dst.b, sizeof(id->av.dgid.raw));
		if (id->bound == NULL)
			err = ctl_cm_port_take(id);
	}
	if (err == 0)
		err = neighbour(id);
	if (err != -EINPROGRESS)
		resolve_end(id, err);
	return 0;
}

/* Of a uid: time limits are gone through one by one. More wait as long as the neighbour table. */
#define MAX_TIMED 4096
#define TIMEOUT_MS 2000 /* of who names none */

int
ctl_op_cm_resolve_addr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_addr_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, CTL_CM_IN(IDLE) | CTL_CM_IN(BOUND));
	int err;

	(void)rep;
	(void)e;
	if (id == NULL || !ctl_cm_addr_ok(&r->src) || r->dst.version == 0 ||
		!ctl_cm_addr_ok(&r->dst) || id->waiting >= CTL_CM_MAX_EVENTS ||
		(r->src.version != 0 && r->src.version != r->dst.version))
		return -EINVAL;
	id->wait.resolved = neighbour_resolved;
	id->wait.due = 0;
	if (c->user->resolves < MAX_TIMED) {
		c->user->resolves++;
		id->timed = true;
		id->wait.due = ctl_now(c->dev) +
			(r->timeout_ms != 0 ? r->timeout_ms : TIMEOUT_MS) * UINT64_C(1000000);
	}
	err = resolve_begin(id, r);
	if (err < 0)
		untimed(id);
	return err;
}

void
ctl_cm_addr_cancel(struct ctl_cm_id *id)
{
	if (id->wait.list != NULL)
		ctl_neigh_cancel(id->o.client->dev, &id->wait);
	untimed(id);
}

/* ---- RESOLVE_ROUTE ---------- */

int
ctl_op_cm_resolve_route(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_arg_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, CTL_CM_IN(ADDR_RESOLVED));

	(void)rep;
	(void)e;
	if (id == NULL)
		return -EINVAL;
	/* The way is known with the address; what is left is how large packets may be. */
	id->path_mtu = (uint8_t)ctl_mtu_of(c->dev->port[id->av.port - 1].mtu);
	id->state = CTL_CM_ROUTE_RESOLVED;
	ctl_cm_tell(id, RING_CM_ROUTE_RESOLVED, 0);
	return 0;
}

/* ---- who has come to us ---------- */

void
ctl_cm_addr_from_peer(struct ctl_cm_id *id, uint32_t port, const struct net_ip *own,
	const struct net_ip *peer)
{
	struct worker_device *d = id->o.client->dev;
	struct own o;

	if (own_find(d, own, d->port[port].ifindex, &o))
		use_own(id, &o);
	memcpy(id->av.dgid.raw, peer->b, sizeof(id->av.dgid.raw));
	id->path_mtu = (uint8_t)ctl_mtu_of(d->port[port].mtu);
}
