/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From an address vector to a path: own address, route, next hop, and waiting until its MAC is
 * known. Own addresses lead to the hairpin.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_priv.h"

/* The port that owns an address, or -1. */
static int
owner_port(const struct worker_device *d, const struct net_ip *ip)
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

int
ctl_av_resolve(struct worker_device *d, const struct ring_ctrl_av *av, struct verbs_av *out)
{
	struct net_ip dst = net_ip_from_bytes(av->dgid.raw), hop;
	const struct ctl_gid *g;
	uint32_t port;
	int owner, err;

	memset(out, 0, sizeof(*out));
	if (!av_ok(d, av))
		return -EINVAL;
	port = av->port - 1u;
	g = &d->port[port].gids[av->sgid_index];
	if (net_ip_is_v4(&g->ip) != net_ip_is_v4(&dst) || net_ip_is_multicast(&dst) ||
		net_ip_is_zero(&dst))
		return -EINVAL; /* B186 */
	memcpy(out->dgid, dst.b, sizeof(out->dgid));
	memcpy(out->sgid, g->ip.b, sizeof(out->sgid));
	memcpy(out->smac, d->port[port].mac, sizeof(out->smac));
	out->sl = av->sl & 7;
	out->tclass = av->traffic_class;
	out->hop_limit = av->hop_limit != 0 ? av->hop_limit : 64;
	out->flow_label = av->flow_label;
	owner = owner_port(d, &dst);
	if (owner >= 0)
		return hairpin(d, (uint32_t)owner, &dst, out);
	err = next_hop(d, port, g->vid, &dst, &hop);
	if (err < 0)
		return err;
	out->port = (uint16_t)port;
	out->vlan = g->vid != 0 ? g->vid : 0xffff;
	out->neigh = net_neigh_get(d->port[port].neighs, &hop, g->vid, ctl_now(d));
	return out->neigh != NULL ? 0 : -ENOMEM;
}

/* ---- waiting for a neighbour ---------- */

static const char *
unreachable(const struct net_neigh *n, char *buf)
{
	return net_ip_format(&n->ip, buf);
}

int
ctl_neigh_wait(struct worker_device *d, struct net_neigh *n, struct ctl_neigh_wait *w)
{
	uint64_t l2 = atomic_load_explicit(&n->l2, memory_order_relaxed);
	char text[NET_IP_TEXT];

	w->neigh = NULL;
	if (net_neigh_l2_usable(l2))
		return 0;
	if (net_neigh_l2_state(l2) == NET_NEIGH_FAILED) {
		LOG_LIMITED(&d->unreachable_told, ctl_log, NOTICE,
			"no host answers for %s on port %u (neighbour FAILED)",
			unreachable(n, text), n->port);
		return -EHOSTUNREACH;
	}
	net_neigh_ref(n);
	w->neigh = n;
	w->status = -EINPROGRESS;
	if (w->due != 0 && w->due < d->neigh_due)
		d->neigh_due = w->due;
	LIST_INSERT_HEAD(&d->neigh_waits, w, link);
	return -EINPROGRESS;
}

void
ctl_neigh_cancel(struct ctl_neigh_wait *w)
{
	LIST_REMOVE(w, link);
	net_neigh_put(w->neigh);
	w->neigh = NULL;
}

/*
 * From inside the neighbour table, which must not be entered again: only marked, and told by
 * ctl_neigh_tell().
 */
void
ctl_neigh_event(struct worker_device *d, const struct net_neigh *n, int status)
{
	struct ctl_neigh_wait *w;

	LIST_FOREACH(w, &d->neigh_waits, link) {
		if (w->neigh == n)
			w->status = status;
	}
	d->neigh_told = false;
}

uint64_t
ctl_neigh_expire(struct worker_device *d, uint64_t now)
{
	struct ctl_neigh_wait *w;
	uint64_t next = UINT64_MAX;

	LIST_FOREACH(w, &d->neigh_waits, link) {
		if (w->due == 0 || w->status != -EINPROGRESS)
			continue;
		if (w->due <= now) {
			w->status = -ETIMEDOUT;
			d->neigh_told = false;
		} else if (w->due < next) {
			next = w->due;
		}
	}
	return next;
}

void
ctl_neigh_tell(struct worker_device *d)
{
	struct ctl_neigh_wait *w;
	char text[NET_IP_TEXT];

	while (!d->neigh_told) {
		d->neigh_told = true;
		LIST_FOREACH(w, &d->neigh_waits, link) {
			int status = w->status;

			if (status == -EINPROGRESS)
				continue;
			if (status == -EHOSTUNREACH)
				LOG_LIMITED(&d->unreachable_told, ctl_log, NOTICE,
					"no host answers for %s on port %u (neighbour %s)",
					unreachable(w->neigh, text), w->neigh->port,
					net_neigh_state_name(net_neigh_l2_state(
						atomic_load(&w->neigh->l2))));
			ctl_neigh_cancel(w);
			d->neigh_told = false; /* the list may change under us: look again */
			w->resolved(w, status);
			break;
		}
	}
}

/* ---- RESOLVE ---------- */

struct resolve {
	struct ctl_neigh_wait wait;
	struct ctl_elem e;
	struct net_neigh *neigh;
	unsigned int mtu;
};

static void
resolve_fill(void *rep, const struct net_neigh *n, unsigned int mtu)
{
	struct ring_ctrl_resolve_rep *p = rep;
	struct rte_ether_addr mac = net_neigh_l2_mac(atomic_load(&n->l2));

	p->path_mtu = mtu;
	memcpy(p->dmac, mac.addr_bytes, sizeof(p->dmac));
}

static void
resolve_done(struct ctl_neigh_wait *w, int status)
{
	struct resolve *s = (struct resolve *)w;

	if (status == 0)
		resolve_fill(ctl_elem_rep(s->e), s->neigh, s->mtu);
	net_neigh_put(s->neigh);
	ctl_elem_done(s->e, status);
	free(s);
}

int
ctl_op_resolve(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_resolve_req *r = req;
	struct worker_device *d = c->dev;
	struct verbs_av av;
	struct resolve *s;
	int err;

	if (r->reserved != 0)
		return -EINVAL;
	err = ctl_av_resolve(d, &r->av, &av);
	if (err < 0)
		return err;
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		net_neigh_put(av.neigh);
		return -ENOMEM;
	}
	s->wait.resolved = resolve_done;
	if (r->timeout_ms != 0)
		s->wait.due = ctl_now(d) + r->timeout_ms * UINT64_C(1000000);
	s->e = e;
	s->neigh = av.neigh;
	s->mtu = ctl_mtu_of(d->port[r->av.port - 1].mtu);
	err = ctl_neigh_wait(d, av.neigh, &s->wait);
	if (err == -EINPROGRESS)
		return CTL_LATER;
	if (err == 0)
		resolve_fill(rep, s->neigh, s->mtu);
	net_neigh_put(s->neigh);
	free(s);
	return err;
}
