/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From an address vector to a path: own address, route, next hop. Own addresses lead to the
 * hairpin. Waiting until the next hop's MAC is known is in ctl_neigh.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_priv.h"

int
ctl_net_owner(const struct worker_device *d, const struct net_ip *ip)
{
	for (uint32_t i = 0; i < d->sh.num_ports; i++) {
		if (net_iface_owns(net_iface_get(&d->sh.iface[i]), ip))
			return (int)i;
	}
	return -1;
}

static int
hairpin(struct worker_device *d, uint32_t owner, const struct net_ip *dst, struct verbs_av *out)
{
	struct net_neigh_table *t = d->port[d->sh.num_ports].neighs;
	struct rte_ether_addr mac = net_iface_get(&d->sh.iface[owner])->mac;

	if (net_neigh_find(t, dst, 0) == NULL && net_neigh_set_static(t, dst, 0, &mac) < 0)
		return -ENOMEM;
	out->port = worker_hairpin_port(&d->sh);
	out->vlan = 0xffff;
	out->neigh = net_neigh_get(t, dst, 0, ctl_now(d));
	return out->neigh != NULL ? 0 : -ENOMEM;
}

bool
ctl_net_broadcast(const struct worker_device *d, uint32_t port, int vid, const struct net_ip *dst)
{
	const struct net_iface_view *v = net_iface_get(&d->sh.iface[port]);

	if (!net_ip_is_v4(dst))
		return false;
	for (unsigned int i = 0; i < v->n_addr; i++) {
		const struct net_ifaddr *a = &v->addr[i];
		uint32_t host, of_dst;

		if (!net_ip_is_v4(&a->ip) || a->plen >= 127)
			continue; /* 31 and 32 bits leave no room for them (RFC 3021) */
		host = UINT32_MAX >> (a->plen - NET_PREFIX_V4);
		of_dst = rte_be_to_cpu_32(net_ip_v4(dst)) & host;
		if ((vid < 0 || a->vid == vid) && net_ip_in_prefix(dst, &a->ip, a->plen) &&
			(of_dst == 0 || of_dst == host))
			return true;
	}
	return false;
}

/* On a subnet of the port (and VLAN), or behind a gateway that a route of the port names. */
static int
next_hop(struct worker_device *d, uint32_t port, uint16_t vid, const struct net_ip *dst,
	struct net_ip *hop)
{
	const struct net_iface_view *v = net_iface_get(&d->sh.iface[port]);
	struct net_route_hop r;

	*hop = *dst;
	if (net_ip_is_link_local(dst))
		return 0;
	for (unsigned int i = 0; i < v->n_addr; i++) {
		const struct net_ifaddr *a = &v->addr[i];

		if (a->vid == vid && net_ip_in_prefix(dst, &a->ip, a->plen) &&
			net_ip_is_v4(&a->ip) == net_ip_is_v4(dst))
			return 0;
	}
	if (net_route_lookup(net_route_get(&d->routes), dst, &r) < 0 || r.port != port ||
		r.vid != vid)
		return -ENETUNREACH;
	*hop = r.nexthop;
	return 0;
}

static bool
av_ok(const struct worker_device *d, const struct ring_ctrl_av *av)
{
	return av->is_global == 1 && av->port >= 1 && av->port <= d->sh.num_ports &&
		av->flow_label < 1u << 20 && av->sl < 16 && av->reserved == 0 &&
		av->sgid_index < CTL_GIDS && d->port[av->port - 1].gids[av->sgid_index].used;
}

/* What an address vector says of itself; the own address that it names, or NULL. */
static const struct ctl_gid *
av_fields(struct worker_device *d, const struct ring_ctrl_av *av, const struct net_ip *dst,
	struct verbs_av *out)
{
	const struct ctl_port *p;
	const struct ctl_gid *g;

	memset(out, 0, sizeof(*out));
	if (!av_ok(d, av))
		return NULL;
	p = &d->port[av->port - 1u];
	g = &p->gids[av->sgid_index];
	if (net_ip_is_v4(&g->ip) != net_ip_is_v4(dst) || net_ip_is_zero(dst))
		return NULL; /* B186 */
	memcpy(out->dgid, dst->b, sizeof(out->dgid));
	memcpy(out->sgid, g->ip.b, sizeof(out->sgid));
	memcpy(out->smac, p->mac, sizeof(out->smac));
	out->port = (uint16_t)(av->port - 1u);
	out->vlan = g->vid != 0 ? g->vid : 0xffff;
	out->sl = av->sl & 7;
	out->tclass = av->traffic_class;
	out->hop_limit = av->hop_limit != 0 ? av->hop_limit : 64;
	out->flow_label = av->flow_label;
	return g;
}

/* Without a client the neighbour is nobody's share: for what the transports say themselves. */
static int
path_resolve(struct worker_device *d, struct ctl_client *c, const struct ring_ctrl_av *av,
	struct verbs_av *out)
{
	struct net_ip dst = net_ip_from_bytes(av->dgid.raw), hop;
	const struct ctl_gid *g = av_fields(d, av, &dst, out);
	int owner, err;

	if (g == NULL || !net_ip_is_host(&dst)) /* B130 */
		return -EINVAL;
	owner = ctl_net_owner(d, &dst);
	if (owner >= 0)
		return hairpin(d, (uint32_t)owner, &dst, out);
	if (ctl_net_broadcast(d, out->port, g->vid, &dst))
		return -EINVAL;
	err = next_hop(d, out->port, g->vid, &dst, &hop);
	if (err < 0)
		return err;
	if (c != NULL)
		return ctl_neigh_get(c, d->port[out->port].neighs, &hop, g->vid, &out->neigh);
	out->neigh = net_neigh_get(d->port[out->port].neighs, &hop, g->vid, ctl_now(d));
	return out->neigh != NULL ? 0 : -ENOMEM;
}

int
ctl_av_resolve(struct ctl_client *c, const struct ring_ctrl_av *av, struct verbs_av *out)
{
	return path_resolve(c->dev, c, av, out);
}

int
ctl_av_resolve_own(struct worker_device *d, const struct ring_ctrl_av *av, struct verbs_av *out)
{
	return path_resolve(d, NULL, av, out);
}

bool
ctl_av_group(struct ctl_client *c, const struct ring_ctrl_av *av, struct verbs_av *out)
{
	struct net_ip dst = net_ip_from_bytes(av->dgid.raw);

	return net_ip_is_multicast(&dst) && av_fields(c->dev, av, &dst, out) != NULL;
}

/* ---- RESOLVE ---------- */

struct ctl_resolve {
	struct ctl_neigh_wait wait;
	LIST_ENTRY(ctl_resolve) link;
	struct ctl_client *client;
	struct ctl_elem e;
	struct net_neigh *neigh;
	unsigned int mtu;
};

static void
resolve_fill(struct ctl_resolve *s)
{
	struct ring_ctrl_resolve_rep *p = ctl_elem_rep(s->e);
	struct rte_ether_addr mac = net_neigh_l2_mac(atomic_load(&s->neigh->l2));

	p->path_mtu = s->mtu;
	memcpy(p->dmac, mac.addr_bytes, sizeof(p->dmac));
}

/* 0, -errno, or -EINPROGRESS: the wait's function goes on with it. */
static int
resolve_try(struct ctl_resolve *s)
{
	const struct ring_ctrl_resolve_req *r = ctl_elem_req(s->e);
	struct verbs_av av;
	int err = ctl_av_resolve(s->client, &r->av, &av);

	if (err == -EAGAIN)
		return ctl_neigh_line(s->client, &s->wait);
	if (err < 0)
		return err;
	s->neigh = av.neigh;
	s->mtu = ctl_mtu_of(s->client->dev->port[r->av.port - 1].mtu);
	return ctl_neigh_wait(s->client, av.neigh, &s->wait);
}

static void
resolve_free(struct ctl_resolve *s)
{
	LIST_REMOVE(s, link);
	s->client->user->resolves--;
	if (s->neigh != NULL)
		net_neigh_put(s->neigh);
	free(s);
}

static void
resolve_end(struct ctl_resolve *s, int status)
{
	struct ctl_elem e = s->e;

	if (status == 0)
		resolve_fill(s);
	resolve_free(s);
	ctl_elem_done(e, status);
}

static void
resolve_done(struct ctl_neigh_wait *w, int status)
{
	struct ctl_resolve *s = (struct ctl_resolve *)w;

	if (status == -EAGAIN)
		status = resolve_try(s); /* it is its turn */
	if (status != -EINPROGRESS)
		resolve_end(s, status);
}

void
ctl_resolves_cancel(struct ctl_client *c)
{
	struct ctl_resolve *s;

	while ((s = LIST_FIRST(&c->resolves)) != NULL) {
		ctl_neigh_cancel(c->dev, &s->wait);
		resolve_end(s, -ECONNRESET);
	}
}

int
ctl_op_resolve(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_resolve_req *r = req;
	struct ctl_resolve *s;
	int err;

	(void)rep;
	if (r->reserved != 0)
		return -EINVAL;
	if (c->user->resolves >= CTL_RESOLVES)
		return -EAGAIN;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->wait.resolved = resolve_done;
	if (r->timeout_ms != 0)
		s->wait.due = ctl_now(c->dev) + r->timeout_ms * UINT64_C(1000000);
	s->client = c;
	s->e = e;
	LIST_INSERT_HEAD(&c->resolves, s, link);
	c->user->resolves++;
	err = resolve_try(s);
	if (err == -EINPROGRESS)
		return CTL_LATER;
	if (err == 0)
		resolve_fill(s);
	resolve_free(s);
	return err;
}
