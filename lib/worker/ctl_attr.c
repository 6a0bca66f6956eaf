/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device, its ports and its GIDs are, for the query calls. */
#include <errno.h>
#include <string.h>

#include "ctl_priv.h"

/* IBV_DEVICE_*, as in verbs.h. */
#define CAP_CURR_QP_STATE_MOD (1ull << 7)
#define CAP_PORT_ACTIVE_EVENT (1ull << 10)
#define CAP_SYS_IMAGE_GUID (1ull << 11)
#define CAP_RC_RNR_NAK_GEN (1ull << 12)
#define CAP_SRQ_RESIZE (1ull << 13)
#define CAP_MEM_WINDOW (1ull << 17)
#define CAP_XRC (1ull << 20)
#define CAP_MEM_MGT_EXTENSIONS (1ull << 21) /* LOCAL_INV, SEND with invalidate, FAST_REG */
#define CAP_MEM_WINDOW_TYPE_2B (1ull << 24)
#define CAP_ON_DEMAND_PAGING (1ull << 31)
#define CAP_FLUSH_GLOBAL (1ull << 38)
#define CAP_ATOMIC_WRITE (1ull << 40)
/* enum ibv_odp_general_caps, ibv_odp_transport_cap_bits */
#define ODP_SUPPORT 1
#define ODP_SEND 1
#define ODP_RECV 2
#define ODP_WRITE 4
#define ODP_READ 8
#define ODP_ATOMIC 16
#define ODP_SRQ_RECV 32
#define ATOMIC_HCA 1
#define GID_TYPE_ROCE_V2 2
#define VENDOR_NONE 0xffffffu /* no OUI is ours; 0 is taken for a driver's fault (B176) */
#define PORT_CAP_IP_BASED_GIDS (1u << 26)

#define HDR_IPV6_UDP 48		/* the longest in front of a BTH */
#define HDR_BTH_MAX (12 + 16 + 4 + 4) /* BTH, RETH, immediate, ICRC */

unsigned int
ctl_mtu_of(uint16_t ip_mtu)
{
	unsigned int mtu = RING_MTU_4096;

	while (mtu > RING_MTU_256 && (128u << mtu) + HDR_IPV6_UDP + HDR_BTH_MAX > ip_mtu)
		mtu--;
	return mtu;
}

static uint64_t
guid_of(const uint8_t *mac6)
{
	struct rte_ether_addr mac;
	uint64_t guid;

	memcpy(mac.addr_bytes, mac6, sizeof(mac.addr_bytes));
	net_eui64(&mac, (uint8_t *)&guid);
	return guid;
}

uint64_t
ctl_node_guid(const struct worker_device *d)
{
	return guid_of(d->port[0].mac);
}

int
ctl_op_query_device(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_empty_req *r = req;
	const struct worker_config *cfg = &c->dev->cfg;
	struct ring_ctrl_query_device_rep *p = rep;

	(void)e;
	if (r->reserved != 0)
		return -EINVAL;
	p->transport = RING_TRANSPORT_ROCE;
	p->node_guid = p->sys_image_guid = ctl_node_guid(c->dev);
	p->device_cap_flags = CAP_CURR_QP_STATE_MOD | CAP_PORT_ACTIVE_EVENT | CAP_SYS_IMAGE_GUID |
		CAP_RC_RNR_NAK_GEN | CAP_SRQ_RESIZE | CAP_MEM_WINDOW |
		CAP_MEM_MGT_EXTENSIONS | CAP_MEM_WINDOW_TYPE_2B | CAP_ON_DEMAND_PAGING |
		CAP_FLUSH_GLOBAL | CAP_ATOMIC_WRITE | CAP_XRC; /* no memory is persistent */
	p->max_mr_size = UINT64_C(1) << 48;
	p->page_size_cap = UINT64_C(0xfffff000);
	p->completion_timestamp_mask = UINT64_MAX;
	p->hca_core_clock = 1000000; /* timestamps are in ns */
	p->max_msg_size = ROCE_MAX_MSG;
	strcpy(p->fw_ver, "0.1.0");
	p->vendor_id = VENDOR_NONE;
	p->vendor_part_id = p->hw_ver = 1;
	p->atomic_cap = ATOMIC_HCA;
	p->max_qp = ctl_quota(c->dev, CTL_QP); /* the rest is others' */
	p->max_qp_wr = 32768;
	p->max_ah = ctl_quota(c->dev, CTL_AH);
	p->max_mcast_grp = CTL_MCASTS;
	p->max_mcast_qp_attach = CTL_MCAST_QPS;
	p->max_total_mcast_qp_attach = CTL_MCASTS;
	p->max_sge = RING_MAX_SGE;
	p->max_sge_rd = RING_MAX_SGE;
	p->max_inline = RING_MAX_INLINE;
	p->max_cq = ctl_quota(c->dev, CTL_CQ);
	p->max_cqe = (1u << 18) - 1;
	p->max_mr = ctl_quota(c->dev, CTL_MR);
	p->max_mw = ctl_quota(c->dev, CTL_MR); /* together */
	p->max_fast_reg = RING_MAX_FAST_REG;
	p->max_pd = ctl_quota(c->dev, CTL_PD);
	p->max_srq = ctl_quota(c->dev, CTL_SRQ);
	p->max_srq_wr = CTL_MAX_SRQ_WR;
	p->max_srq_sge = RING_MAX_SGE;
	p->max_qp_rd_atom = ROCE_MAX_RD_ATOMIC;
	p->max_qp_init_rd_atom = ROCE_MAX_RD_ATOMIC;
	p->max_res_rd_atom = ROCE_MAX_RD_ATOMIC * (cfg->max_qps < 1u << 24 ? cfg->max_qps : 1u);
	p->max_pkeys = 1;
	p->num_ports = c->dev->sh.num_ports;
	p->num_comp_vectors = c->dev->sh.num_workers;
	p->local_ca_ack_delay = 15;
	p->odp_general_caps = ODP_SUPPORT;
	p->odp_rc_caps = ODP_SEND | ODP_RECV | ODP_WRITE | ODP_READ | ODP_ATOMIC |
		ODP_SRQ_RECV;
	return 0;
}

int
ctl_op_query_port(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_query_port_req *r = req;
	struct ring_ctrl_query_port_rep *p = rep;
	const struct ctl_port *port;

	(void)e;
	if (r->reserved != 0 || r->port == 0 || r->port > c->dev->sh.num_ports)
		return -EINVAL;
	port = &c->dev->port[r->port - 1];
	p->state = port->up ? RING_PORT_ACTIVE : RING_PORT_DOWN;
	p->max_mtu = RING_MTU_4096;
	p->active_mtu = ctl_mtu_of(port->mtu);
	p->link_mtu = port->mtu;
	p->speed = port->mbps;
	p->gid_tbl_len = CTL_GIDS;
	p->pkey_tbl_len = 1;
	p->port_cap_flags = PORT_CAP_IP_BASED_GIDS;
	p->max_msg_size = ROCE_MAX_MSG;
	memcpy(p->mac, port->mac, sizeof(p->mac));
	memcpy(p->netdev, port->netdev, sizeof(p->netdev));
	return 0;
}

int
ctl_op_query_gid(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_query_gid_req *r = req;
	struct ring_ctrl_query_gid_rep *p = rep;
	const struct ctl_port *port;
	const struct ctl_gid *g;

	(void)e;
	if (r->port == 0 || r->port > c->dev->sh.num_ports || r->index >= CTL_GIDS)
		return -EINVAL;
	port = &c->dev->port[r->port - 1];
	g = &port->gids[r->index];
	if (!g->used)
		return -ENODATA;
	p->type = GID_TYPE_ROCE_V2;
	memcpy(p->gid.raw, g->ip.b, sizeof(p->gid.raw));
	p->ndev_ifindex = port->ifindex;
	p->vlan = g->vid;
	return 0;
}
