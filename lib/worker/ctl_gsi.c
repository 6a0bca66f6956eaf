/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP1 on the control thread: MADs from the workers, a turn's worth at a time, and MADs to be sent,
 * which leave here as whole packets. What a MAD says is for d->gsi_rx.
 */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include "ctl_priv.h"
#include "net_path.h"
#include "roce_gsi.h"
#include "roce_hdr.h"

#define ECN_MASK 0x03

void
ctl_gsi_queue(struct worker_device *d, struct worker_msg *m)
{
	m->next = NULL;
	if (d->gsi_head == NULL)
		d->gsi_head = m;
	else
		d->gsi_tail->next = m;
	d->gsi_tail = m;
}

/* Ours come by the hairpin: on a wire somebody else says that he is we. */
static bool
gsi_forged(const struct worker_device *d, const struct roce_mad *mad)
{
	return mad->port < d->sh.num_ports && ctl_net_owner(d, &mad->src) >= 0;
}

void
ctl_gsi_run(struct worker_device *d)
{
	struct worker_msg *m;

	for (uint32_t i = 0; i < CTL_GSI_TURN && (m = d->gsi_head) != NULL; i++) {
		d->gsi_head = m->next;
		d->gsi_shown++;
		if (gsi_forged(d, m->mad))
			d->gsi_forged++;
		else if (d->gsi_rx != NULL)
			d->gsi_rx(d, m->mad);
		m->done(m);
	}
}

/** The frame of a MAD in a buffer of its own; NULL: there is none. */
static struct rte_mbuf *
gsi_frame(struct worker_device *d, const struct net_path *path, uint64_t l2, const uint8_t *mad)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(d->sh.tx_pool);
	uint32_t len;

	if (m == NULL || rte_pktmbuf_tailroom(m) < ROCE_GSI_FRAME_MAX) {
		rte_pktmbuf_free(m);
		d->gsi_unsent++;
		return NULL;
	}
	len = roce_gsi_emit(path, l2, d->gsi_psn++, mad, rte_pktmbuf_mtod(m, uint8_t *));
	rte_pktmbuf_append(m, (uint16_t)len);
	return m;
}

static int
gsi_transmit(struct worker_device *d, uint32_t worker, uint16_t port, struct rte_mbuf *m)
{
	int err = ctl_net_transmit(d, worker < d->sh.num_workers ? worker : 0, port, m);

	if (err < 0)
		d->gsi_unsent++;
	else
		d->gsi_sent++;
	return err;
}

int
ctl_gsi_send(struct worker_device *d, uint32_t worker, const struct verbs_av *av,
	const uint8_t *mad)
{
	struct net_path_params prm = {
		.neigh = av->neigh,
		.src = net_ip_from_bytes(av->sgid),
		.dst = net_ip_from_bytes(av->dgid),
		.vlan_tci = av->vlan == 0xffff ? NET_VLAN_NONE : net_vlan_tci(av->vlan, av->sl),
		.sport = net_udp_sport_ud(ROCE_QPN_GSI),
		.flow_label = av->flow_label,
		.tclass = av->tclass & (uint8_t)~ECN_MASK,
		.hop_limit = av->hop_limit,
	};
	struct net_path path;
	struct rte_mbuf *m;
	uint64_t l2;

	memcpy(prm.smac.addr_bytes, av->smac, sizeof(av->smac));
	if (net_path_init(&path, &prm) < 0)
		return -EINVAL;
	l2 = net_neigh_use(av->neigh);
	m = gsi_frame(d, &path, l2, mad);
	if (m == NULL)
		return -ENOBUFS;
	if (net_neigh_l2_usable(l2))
		return gsi_transmit(d, worker, av->port, m);
	net_neigh_queue(av->neigh, m); /* MAC and worker 0 come when it is known */
	d->gsi_sent++;
	return 0;
}

int
ctl_gsi_reply(struct worker_device *d, const struct roce_mad *to, const uint8_t *mad)
{
	struct net_path_params prm = {
		.src = to->dst,
		.dst = to->src,
		.vlan_tci = to->vlan_tci,
		.sport = net_udp_sport_ud(ROCE_QPN_GSI),
		.tclass = to->tclass & (uint8_t)~ECN_MASK,
	};
	uint32_t port = to->port;
	struct net_path path;
	struct rte_mbuf *m;

	if (port > d->sh.num_ports)
		return -EINVAL;
	/* the hairpin has no MAC of its own: what it carried came from a port's */
	memcpy(prm.smac.addr_bytes, d->port[port < d->sh.num_ports ? port : 0].mac,
		sizeof(prm.smac.addr_bytes));
	if (net_path_init(&path, &prm) < 0)
		return -EINVAL;
	m = gsi_frame(d, &path, net_neigh_l2_pack(&to->smac, NET_NEIGH_REACHABLE), mad);
	return m != NULL ? gsi_transmit(d, to->worker, to->port, m) : -ENOBUFS;
}
