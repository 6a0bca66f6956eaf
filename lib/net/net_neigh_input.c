/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received ARP and ND: answers for our addresses, knowledge about others'.
 * Routers' messages and redirects are not believed.
 */
#include <errno.h>

#include <rte_arp.h>
#include <rte_mbuf.h>

#include "net_arp.h"
#include "net_nd.h"
#include "net_neigh_priv.h"
#include "net_parse.h"

#define ND_MAX 256 /* a solicitation with all the options that exist is shorter */
#define DEFENCE_NS UINT64_C(10000000000) /* DEFEND_INTERVAL, RFC 5227 2.4 */

struct seen {
	struct net_neigh_table *t;
	const struct net_iface_view *v;
	uint16_t vid;
	struct rte_ether_addr from; /* source MAC of the frame */
	uint64_t now;
};

/* Two defences in a row would only make two hosts fight. */
static void
conflict(const struct seen *s, const struct net_ip *ip, const struct rte_ether_addr *mac)
{
	struct net_neigh_table *t = s->t;

	neigh_count(t, NET_NEIGH_N_CONFLICTS);
	if (t->last_defence == 0 || s->now - t->last_defence >= DEFENCE_NS) {
		t->last_defence = s->now;
		net_neigh_announce(t, ip, s->vid);
	}
	t->ops.event(t->ops.ctx, NET_NEIGH_CONFLICT, NULL, ip, mac);
}

static struct neigh_entry *
entry_for(const struct seen *s, const struct net_ip *ip)
{
	struct net_neigh *n = net_neigh_find(s->t, ip, s->vid);

	return n == NULL ? NULL : neigh_entry_of(n);
}

static bool
mac_differs(const struct neigh_entry *e, const struct rte_ether_addr *mac)
{
	return ((net_neigh_l2_pack(mac, NET_NEIGH_NONE) ^ neigh_l2(e)) & NET_NEIGH_MAC_MASK) != 0;
}

/* Unasked news: a new MAC is used at once, and verified when used (RFC 4861 7.2.3). */
static void
hearsay(const struct seen *s, struct neigh_entry *e, const struct rte_ether_addr *mac)
{
	if (!net_neigh_l2_usable(neigh_l2(e)) || mac_differs(e, mac))
		net_neigh_learn(e, mac, NET_NEIGH_STALE, s->now);
}

/* Somebody asks us: we shall probably have to answer them. */
static void
hearsay_new(const struct seen *s, const struct net_ip *ip, const struct rte_ether_addr *mac)
{
	struct neigh_entry *e = entry_for(s, ip);

	if (e == NULL)
		e = net_neigh_create(s->t, ip, s->vid);
	if (e != NULL && !e->fixed)
		hearsay(s, e, mac);
}

static void
arp_reply(const struct seen *s, const struct net_arp *req)
{
	struct net_arp arp = {
		.op = RTE_ARP_OP_REPLY,
		.sha = s->v->mac,
		.tha = req->sha,
		.spa = req->tpa,
		.tpa = req->spa,
	};
	uint8_t frame[NET_ARP_FRAME_MAX];
	uint16_t len = net_arp_emit(&arp, &req->sha, net_vlan_tci(s->vid, 0), frame);

	neigh_count(s->t, NET_NEIGH_N_REPLIES);
	s->t->ops.send(s->t->ops.ctx, s->v->port, frame, len);
}

/* RFC 826's algorithm, with states: an answer that we asked for is proof. */
static void
arp_learn(const struct seen *s, const struct net_arp *arp, bool for_us)
{
	struct neigh_entry *e = entry_for(s, &arp->spa);

	if (e == NULL) {
		if (for_us && arp->op == RTE_ARP_OP_REQUEST)
			hearsay_new(s, &arp->spa, &arp->sha);
		return;
	}
	if (e->fixed)
		return;
	if (arp->op == RTE_ARP_OP_REPLY && for_us && e->list == NEIGH_RETRANS &&
			neigh_state(e) != NET_NEIGH_FAILED)
		net_neigh_learn(e, &arp->sha, NET_NEIGH_REACHABLE, s->now);
	else
		hearsay(s, e, &arp->sha);
}

static bool
v4_host(const struct net_ip *ip)
{
	uint32_t a = rte_be_to_cpu_32(net_ip_v4(ip));

	return a >> 24 != 0 && a >> 24 != 127 && a < 0xe0000000;
}

static void
input_arp(const struct seen *s, const struct net_pkt *p)
{
	uint8_t copy[NET_ARP_LEN];
	const uint8_t *buf = rte_pktmbuf_read(p->m, p->l3_off, sizeof(copy), copy);
	struct net_arp arp;
	bool for_us;

	if (buf == NULL || net_arp_parse(buf, NET_ARP_LEN, &arp) != 0 ||
			!rte_is_valid_assigned_ether_addr(&arp.sha)) {
		neigh_count(s->t, NET_NEIGH_N_DROP_MALFORMED);
		return;
	}
	if (rte_is_same_ether_addr(&arp.sha, &s->v->mac))
		return; /* our own, come back */
	if (net_iface_find(s->v, &arp.spa, s->vid) != NULL) {
		conflict(s, &arp.spa, &arp.sha);
		return;
	}
	for_us = net_iface_find(s->v, &arp.tpa, s->vid) != NULL;
	if (for_us && arp.op == RTE_ARP_OP_REQUEST)
		arp_reply(s, &arp);
	if (v4_host(&arp.spa)) /* 0.0.0.0 asks whether an address is free (RFC 5227) */
		arp_learn(s, &arp, for_us);
	else if (!for_us)
		neigh_count(s->t, NET_NEIGH_N_IGNORED);
}

/* To the asker, or to all when the asker has no address yet (RFC 4861 7.2.4). */
static void
advertise(const struct seen *s, const struct net_nd *ns)
{
	bool dad = net_ip_is_zero(&ns->src);
	const struct rte_ether_addr *dmac = ns->has_mac ? &ns->mac : &s->from;
	struct net_nd nd = {
		.type = NET_ND_NA,
		.flags = NET_ND_SOLICITED | NET_ND_OVERRIDE,
		.has_mac = true,
		.mac = s->v->mac,
		.src = ns->target,
		.dst = ns->src,
		.target = ns->target,
	};
	uint8_t frame[NET_ND_FRAME_MAX];
	uint16_t len;

	neigh_count(s->t, NET_NEIGH_N_REPLIES);
	if (dad) {
		net_neigh_announce(s->t, &ns->target, s->vid);
		return;
	}
	len = net_nd_emit(&nd, &s->v->mac, dmac, net_vlan_tci(s->vid, 0), frame);
	s->t->ops.send(s->t->ops.ctx, s->v->port, frame, len);
}

static void
input_ns(const struct seen *s, const struct net_nd *nd)
{
	if (net_iface_find(s->v, &nd->target, s->vid) == NULL ||
			net_iface_find(s->v, &nd->src, s->vid) != NULL) {
		neigh_count(s->t, NET_NEIGH_N_IGNORED);
		return;
	}
	if (nd->has_mac && !net_ip_is_multicast(&nd->src))
		hearsay_new(s, &nd->src, &nd->mac);
	advertise(s, nd);
}

/* RFC 4861 7.2.5, appendix C. */
static void
input_na(const struct seen *s, const struct net_nd *nd)
{
	struct neigh_entry *e = entry_for(s, &nd->target);
	struct rte_ether_addr mac = nd->mac;
	bool solicited = nd->flags & NET_ND_SOLICITED, usable, differs;

	if (net_iface_find(s->v, &nd->target, s->vid) != NULL) {
		conflict(s, &nd->target, nd->has_mac ? &nd->mac : &s->from);
		return;
	}
	if (e == NULL || e->fixed) {
		neigh_count(s->t, NET_NEIGH_N_IGNORED);
		return;
	}
	usable = net_neigh_l2_usable(neigh_l2(e));
	if (!nd->has_mac) {
		if (!usable)
			return;
		mac = net_neigh_l2_mac(neigh_l2(e));
	}
	differs = usable && mac_differs(e, &mac);
	if (differs && !(nd->flags & NET_ND_OVERRIDE)) {
		if (neigh_state(e) == NET_NEIGH_REACHABLE) {
			mac = net_neigh_l2_mac(neigh_l2(e));
			net_neigh_learn(e, &mac, NET_NEIGH_STALE, s->now);
		}
		return;
	}
	if (solicited)
		net_neigh_learn(e, &mac, NET_NEIGH_REACHABLE, s->now);
	else
		hearsay(s, e, &mac);
}

static void
input_nd(const struct seen *s, const struct net_pkt *p)
{
	uint32_t len = rte_pktmbuf_pkt_len(p->m) - p->l3_off;
	uint8_t copy[ND_MAX];
	struct net_nd nd;
	const uint8_t *buf;
	int rc = -1;

	buf = len > sizeof(copy) ? NULL : rte_pktmbuf_read(p->m, p->l3_off, len, copy);
	if (buf != NULL)
		rc = net_nd_parse(buf, len, &nd);
	if (rc != 0) {
		if (rc == -EPROTONOSUPPORT)
			neigh_count(s->t, NET_NEIGH_N_IGNORED);
		else
			neigh_count(s->t, NET_NEIGH_N_DROP_MALFORMED);
		return;
	}
	if (rte_is_same_ether_addr(&s->from, &s->v->mac))
		return; /* our own, come back */
	if (nd.type == NET_ND_NS)
		input_ns(s, &nd);
	else
		input_na(s, &nd);
}

void
net_neigh_input(struct net_neigh_table *t, const struct net_pkt *p, uint64_t now_ns)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(p->m, const struct rte_ether_hdr *);
	struct seen s = {
		.t = t,
		.v = net_iface_get(t->iface),
		.vid = net_vlan_id(p->vlan_tci),
		.from = eth->src_addr,
		.now = now_ns,
	};

	if (p->kind == NET_ARP)
		input_arp(&s, p);
	else if (p->kind == NET_ND)
		input_nd(&s, p);
}
