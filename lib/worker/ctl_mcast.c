/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups: UD QPs attached to them, the ports' memberships (net_group.h) and filters. A
 * group is that of a port: the QP's. Solicited-node groups of own IPv6 addresses are members too,
 * or neighbours would not find us where switches or ports filter.
 */
#include <errno.h>
#include <stdlib.h>

#include "ctl_priv.h"
#include "ctl_qp.h"
#include "net_group.h"
#include "pmd_glue.h"
#include "roce_mcast.h"

#define FILTER 128u /* groups that a port's filter is asked for: else it takes all */

/* ---- filters ---------- */

static int
mac_cmp(const void *a, const void *b)
{
	return memcmp(a, b, RTE_ETHER_ADDR_LEN);
}

static uint32_t
unique(struct rte_ether_addr *mac, uint32_t n)
{
	uint32_t kept = 0;

	qsort(mac, n, sizeof(*mac), mac_cmp);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || !rte_is_same_ether_addr(&mac[i], &mac[kept - 1]))
			mac[kept++] = mac[i];
	return kept;
}

/* Several groups have a MAC in common: the whole list is said anew at each change. */
static void
filter(struct worker_device *d, uint32_t port)
{
	struct net_ip *ip = calloc(FILTER, sizeof(*ip));
	struct rte_ether_addr *mac = calloc(FILTER, sizeof(*mac));
	uint32_t n = FILTER + 1;

	if (ip != NULL && mac != NULL)
		n = net_groups_list(d->port[port].groups, ip, FILTER);
	for (uint32_t i = 0; i < n && n <= FILTER; i++)
		mac[i] = net_ip_multicast_mac(&ip[i]);
	if (n <= FILTER)
		n = unique(mac, n);
	/* more than anybody's filter has: all groups */
	pmd_port_set_groups(d->port[port].pmd, mac, n <= FILTER ? n : UINT32_MAX);
	free(ip);
	free(mac);
}

static int
member(struct worker_device *d, uint32_t port, const struct net_ip *ip, bool join)
{
	struct net_groups *t = d->port[port].groups;
	uint64_t now = ctl_now(d);
	int err = join ? net_group_join(t, ip, now) : net_group_leave(t, ip, now);

	if (err == 1) /* the first join, the last leave */
		filter(d, port);
	return err < 0 ? err : 0;
}

/* ---- own addresses ---------- */

void
ctl_mcast_start(struct worker_device *d)
{
	const struct net_ip all[] = {
		net_ip_from_v4(RTE_BE32(0xe0000001)), {{0xff, 2, [15] = 1}}};

	for (uint32_t i = 0; i < d->sh.num_ports; i++) {
		const struct net_iface_view *v = net_iface_get(&d->sh.iface[i]);

		member(d, i, &all[0], true);
		member(d, i, &all[1], true);
		for (unsigned int k = 0; k < v->n_addr; k++)
			ctl_mcast_addr(d, i, &v->addr[k].ip, true);
	}
}

void
ctl_mcast_addr(struct worker_device *d, uint32_t port, const struct net_ip *ip, bool added)
{
	struct net_ip node = net_ip_solicited_node(ip);

	if (added)
		net_groups_readdress(d->port[port].groups, ctl_now(d));
	if (!net_ip_is_v4(ip))
		member(d, port, &node, added);
}

/* ---- attaching ---------- */

struct ctl_mcast {
	LIST_ENTRY(ctl_mcast) link, of_user; /* of its QP, of its uid */
	struct net_ip ip;
	uint16_t port;
};

struct garbage {
	struct ctl_grace grace;
	void *memory;
};

static void
garbage_passed(struct worker_device *d, struct ctl_grace *g)
{
	struct garbage *x = (struct garbage *)g;

	(void)d;
	free(x->memory);
	free(x);
}

/* x: made before what made the garbage, so that there is always one. */
static void
garbage_free(struct worker_device *d, struct garbage *x, void *memory)
{
	if (memory == NULL) {
		free(x);
		return;
	}
	x->memory = memory;
	x->grace.passed = garbage_passed;
	ctl_grace_add(d, &x->grace);
}

static struct ctl_mcast *
mcast_find(const struct ctl_qp *qp, const struct net_ip *ip)
{
	struct ctl_mcast *m;

	LIST_FOREACH(m, &qp->mcasts, link) {
		if (net_ip_eq(&m->ip, ip))
			return m;
	}
	return NULL;
}

static int
attach_room(const struct ctl_client *c, uint16_t port, const struct net_ip *ip)
{
	const struct ctl_mcast *m;
	uint32_t n = 0;

	LIST_FOREACH(m, &c->user->mcasts, of_user)
		n += m->port == port && net_ip_eq(&m->ip, ip);
	return c->user->num_mcasts < CTL_MCASTS && n < CTL_MCAST_QPS ? 0 : -EDQUOT;
}

static int
attach(struct ctl_client *c, struct ctl_qp *qp, uint16_t port, const struct net_ip *ip)
{
	struct worker_device *d = c->dev;
	struct ctl_mcast *m = calloc(1, sizeof(*m));
	struct garbage *x = calloc(1, sizeof(*x));
	void *old = NULL;
	int err = m != NULL && x != NULL ? member(d, port, ip, true) : -ENOMEM;

	if (err == 0) {
		err = roce_mcast_attach(d->sh.mcast, port, ip, ctl_obj_handle(&qp->o), &old);
		if (err < 0)
			member(d, port, ip, false);
	}
	if (err < 0) {
		free(m);
		free(x);
		return err == -ENOSPC ? -ENOMEM : err;
	}
	garbage_free(d, x, old);
	m->ip = *ip;
	m->port = port;
	LIST_INSERT_HEAD(&qp->mcasts, m, link);
	LIST_INSERT_HEAD(&c->user->mcasts, m, of_user);
	c->user->num_mcasts++;
	return 0;
}

static void
detach(struct ctl_qp *qp, struct ctl_mcast *m)
{
	struct ctl_client *c = qp->o.client;
	struct worker_device *d = c->dev;
	struct garbage *x = calloc(1, sizeof(*x));
	void *old = NULL;

	roce_mcast_detach(d->sh.mcast, m->port, &m->ip, ctl_obj_handle(&qp->o), &old);
	member(d, m->port, &m->ip, false);
	if (x != NULL)
		garbage_free(d, x, old); /* else a few bytes are lost: none are read freed */
	LIST_REMOVE(m, link);
	LIST_REMOVE(m, of_user);
	c->user->num_mcasts--;
	free(m);
}

void
ctl_mcast_qp_gone(struct ctl_qp *qp)
{
	struct ctl_mcast *m;

	while ((m = LIST_FIRST(&qp->mcasts)) != NULL)
		detach(qp, m);
}

/* ---- operations ---------- */

/* Group GIDs are ff.., or ::ffff:224.0.0.0/4 and alike. */
static struct ctl_qp *
mcast_qp(struct ctl_client *c, const struct ring_ctrl_mcast_req *r, struct net_ip *ip)
{
	struct ctl_qp *qp = ctl_obj_find(c, CTL_QP, r->qpn);

	*ip = net_ip_from_bytes(r->gid.raw);
	return qp != NULL && qp->type == RING_QPT_UD && r->flags == 0 && net_ip_is_multicast(ip)
		? qp
		: NULL;
}

int
ctl_op_attach_mcast(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	struct net_ip ip;
	struct ctl_qp *qp = mcast_qp(c, req, &ip);
	uint16_t port;
	int err;

	(void)rep;
	(void)e;
	if (qp == NULL)
		return -EINVAL;
	if (mcast_find(qp, &ip) != NULL)
		return 0; /* as ibv_attach_mcast() on what hardware there is */
	if (qp->attr.port == 0 && c->dev->sh.num_ports > 1)
		return -EINVAL; /* in RESET it has no port yet */
	port = qp->attr.port != 0 ? qp->attr.port - 1u : 0;
	err = attach_room(c, port, &ip);
	return err == 0 ? attach(c, qp, port, &ip) : err;
}

int
ctl_op_detach_mcast(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	struct net_ip ip;
	struct ctl_qp *qp = mcast_qp(c, req, &ip);
	struct ctl_mcast *m = qp != NULL ? mcast_find(qp, &ip) : NULL;

	(void)rep;
	(void)e;
	if (m == NULL)
		return -EINVAL;
	detach(qp, m);
	return 0;
}
