/* SPDX-License-Identifier: BSD-3-Clause */
/* What the neighbour table sends: solicits and announcements. */
#include <rte_arp.h>

#include "net_arp.h"
#include "net_nd.h"
#include "net_neigh_priv.h"

static const struct rte_ether_addr broadcast = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };
static const struct net_ip all_nodes = { .b = { 0xff, 0x02, [15] = 0x01 } };

static void
arp_request(struct net_neigh_table *t, const struct net_ip *src, const struct net_ip *target,
	const struct rte_ether_addr *dst, uint16_t vid)
{
	const struct net_iface_view *v = net_iface_get(t->iface);
	struct net_arp arp = {
		.op = RTE_ARP_OP_REQUEST,
		.sha = v->mac,
		.spa = *src,
		.tpa = *target,
	};
	uint8_t frame[NET_ARP_FRAME_MAX];
	uint16_t len = net_arp_emit(&arp, dst, net_vlan_tci(vid, 0), frame);

	t->ops.send(t->ops.ctx, v->port, frame, len);
}

static void
neighbour_solicit(struct net_neigh_table *t, const struct net_ip *src,
	const struct net_ip *target, const struct rte_ether_addr *unicast, uint16_t vid)
{
	const struct net_iface_view *v = net_iface_get(t->iface);
	struct net_nd nd = {
		.type = NET_ND_NS,
		.has_mac = true,
		.mac = v->mac,
		.src = *src,
		.dst = unicast != NULL ? *target : net_ip_solicited_node(target),
		.target = *target,
	};
	struct rte_ether_addr dmac = unicast != NULL ? *unicast : net_ip_multicast_mac(&nd.dst);
	uint8_t frame[NET_ND_FRAME_MAX];
	uint16_t len = net_nd_emit(&nd, &v->mac, &dmac, net_vlan_tci(vid, 0), frame);

	t->ops.send(t->ops.ctx, v->port, frame, len);
}

void
net_neigh_solicit(struct neigh_entry *e, bool unicast)
{
	struct net_neigh_table *t = e->n.table;
	const struct net_ifaddr *src = net_iface_source_for(net_iface_get(t->iface), &e->n.ip,
		e->n.vid);
	struct rte_ether_addr mac = net_neigh_l2_mac(neigh_l2(e));

	if (src == NULL)
		return; /* no address to ask from: the entry fails in its time */
	neigh_count(t, NET_NEIGH_N_SOLICITS);
	if (net_ip_is_v4(&e->n.ip))
		arp_request(t, &src->ip, &e->n.ip, unicast ? &mac : &broadcast, e->n.vid);
	else
		neighbour_solicit(t, &src->ip, &e->n.ip, unicast ? &mac : NULL, e->n.vid);
}

void
net_neigh_announce(struct net_neigh_table *t, const struct net_ip *ip, uint16_t vid)
{
	const struct net_iface_view *v = net_iface_get(t->iface);
	struct rte_ether_addr dmac = net_ip_multicast_mac(&all_nodes);
	struct net_nd nd = {
		.type = NET_ND_NA,
		.flags = NET_ND_OVERRIDE,
		.has_mac = true,
		.mac = v->mac,
		.src = *ip,
		.dst = all_nodes,
		.target = *ip,
	};
	uint8_t frame[NET_ND_FRAME_MAX];
	uint16_t len;

	if (net_ip_is_v4(ip)) {
		arp_request(t, ip, ip, &broadcast, vid);
		return;
	}
	len = net_nd_emit(&nd, &v->mac, &dmac, net_vlan_tci(vid, 0), frame);
	t->ops.send(t->ops.ctx, v->port, frame, len);
}
