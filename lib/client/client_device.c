/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of device, ports and addresses, and address handles. */
#include <stdlib.h>

#include "client_priv.h"

#define COPY(field) attr->field = rep.field

int
rnic_query_device(struct rnic_context *ctx, struct rnic_device_attr *attr)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_query_device_rep rep;
	int rc = client_call1(ctx, RING_CTRL_QUERY_DEVICE, &req, &rep);

	if (rc)
		return rc;
	memset(attr, 0, sizeof(*attr));
	memcpy(attr->name, ctx->device, sizeof(attr->name));
	memcpy(attr->fw_ver, rep.fw_ver, sizeof(attr->fw_ver) - 1);
	COPY(node_guid);
	COPY(sys_image_guid);
	COPY(device_cap_flags);
	COPY(max_mr_size);
	COPY(page_size_cap);
	COPY(max_dm_size);
	COPY(completion_timestamp_mask);
	COPY(hca_core_clock);
	COPY(max_msg_size);
	COPY(transport);
	COPY(vendor_id);
	COPY(vendor_part_id);
	COPY(hw_ver);
	COPY(atomic_cap);
	COPY(max_qp);
	COPY(max_qp_wr);
	COPY(max_sge);
	COPY(max_sge_rd);
	COPY(max_inline);
	COPY(max_cq);
	COPY(max_cqe);
	COPY(max_mr);
	COPY(max_pd);
	COPY(max_qp_rd_atom);
	COPY(max_qp_init_rd_atom);
	COPY(max_res_rd_atom);
	COPY(max_mw);
	COPY(max_mcast_grp);
	COPY(max_mcast_qp_attach);
	COPY(max_total_mcast_qp_attach);
	COPY(max_ah);
	COPY(max_srq);
	COPY(max_srq_wr);
	COPY(max_srq_sge);
	COPY(max_pkeys);
	COPY(num_ports);
	COPY(num_comp_vectors);
	COPY(local_ca_ack_delay);
	COPY(odp_general_caps);
	COPY(odp_rc_caps);
	COPY(odp_uc_caps);
	COPY(odp_ud_caps);
	COPY(odp_xrc_caps);
	COPY(max_fast_reg);
	return 0;
}

int
rnic_query_port(struct rnic_context *ctx, unsigned int port, struct rnic_port_attr *attr)
{
	struct ring_ctrl_query_port_req req = {.port = port};
	struct ring_ctrl_query_port_rep rep;
	int rc = client_call1(ctx, RING_CTRL_QUERY_PORT, &req, &rep);

	if (rc)
		return rc;
	memset(attr, 0, sizeof(*attr));
	COPY(state);
	COPY(max_mtu);
	COPY(active_mtu);
	COPY(link_mtu);
	COPY(speed);
	COPY(gid_tbl_len);
	COPY(pkey_tbl_len);
	COPY(port_cap_flags);
	COPY(vlan);
	COPY(max_msg_size);
	memcpy(attr->mac, rep.mac, sizeof(attr->mac));
	memcpy(attr->netdev, rep.netdev, sizeof(attr->netdev) - 1);
	return 0;
}

int
rnic_query_gid(struct rnic_context *ctx, unsigned int port, unsigned int index,
	struct rnic_gid_entry *entry)
{
	struct ring_ctrl_query_gid_req req = {.port = port, .index = index};
	struct ring_ctrl_query_gid_rep rep;
	int rc = client_call1(ctx, RING_CTRL_QUERY_GID, &req, &rep);

	if (rc)
		return rc;
	memcpy(entry->gid.raw, rep.gid.raw, sizeof(entry->gid.raw));
	entry->type = rep.type;
	entry->ndev_ifindex = rep.ndev_ifindex;
	entry->vlan = rep.vlan;
	return 0;
}

void
client_av_to_ctrl(struct ring_ctrl_av *av, const struct rnic_ah_attr *attr)
{
	*av = (struct ring_ctrl_av){
		.flow_label = attr->flow_label,
		.sgid_index = attr->sgid_index,
		.hop_limit = attr->hop_limit,
		.traffic_class = attr->traffic_class,
		.sl = attr->sl,
		.port = attr->port_num,
		.is_global = attr->is_global,
		.static_rate = attr->static_rate,
		.src_path_bits = attr->src_path_bits,
		.dlid = attr->dlid,
	};
	memcpy(av->dgid.raw, attr->dgid.raw, sizeof(av->dgid.raw));
}

void
client_av_from_ctrl(struct rnic_ah_attr *attr, const struct ring_ctrl_av *av)
{
	*attr = (struct rnic_ah_attr){
		.flow_label = av->flow_label,
		.sgid_index = av->sgid_index,
		.hop_limit = av->hop_limit,
		.traffic_class = av->traffic_class,
		.sl = av->sl,
		.port_num = av->port,
		.is_global = av->is_global,
		.static_rate = av->static_rate,
		.src_path_bits = av->src_path_bits,
		.dlid = av->dlid,
	};
	memcpy(attr->dgid.raw, av->dgid.raw, sizeof(attr->dgid.raw));
}

int
rnic_resolve(struct rnic_context *ctx, const struct rnic_ah_attr *attr, unsigned int timeout_ms,
	uint32_t *path_mtu, uint8_t dmac[6])
{
	struct ring_ctrl_resolve_req req = {.timeout_ms = timeout_ms};
	struct ring_ctrl_resolve_rep rep;
	int rc;

	client_av_to_ctrl(&req.av, attr);
	rc = client_call1(ctx, RING_CTRL_RESOLVE, &req, &rep);
	if (rc)
		return rc;
	if (path_mtu)
		*path_mtu = rep.path_mtu;
	if (dmac)
		memcpy(dmac, rep.dmac, sizeof(rep.dmac));
	return 0;
}

struct client_ah {
	struct rnic_ah pub;
	struct client_obj obj;
};

static void
ah_release(struct client_obj *obj)
{
	free(CLIENT_OF(struct client_ah, obj, obj));
}

int
rnic_create_ah(struct rnic_pd *pd, const struct rnic_ah_attr *attr, struct rnic_ah **out)
{
	struct ring_ctrl_create_ah_req req = {0};
	struct rnic_context *ctx = pd->context;
	struct ring_ctrl_handle_rep rep;
	struct client_ah *ah;
	int rc = client_gate(ctx);

	if (rc)
		return rc;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	client_av_to_ctrl(&req.av, attr);
	req.pd = pd->handle;
	rc = client_call1(ctx, RING_CTRL_CREATE_AH, &req, &rep);
	if (rc) {
		free(ah);
		return rc;
	}
	ah->pub = (struct rnic_ah){.context = ctx, .pd = pd, .handle = rep.handle};
	client_obj_add(ctx, &ah->obj, ah_release);
	*out = &ah->pub;
	return 0;
}

int
rnic_destroy_ah(struct rnic_ah *pub)
{
	struct client_ah *ah = CLIENT_OF(struct client_ah, pub, pub);
	int rc = client_destroy_call(pub->context, RING_CTRL_DESTROY_AH, pub->handle);

	if (rc)
		return rc;
	client_obj_del(pub->context, &ah->obj);
	free(ah);
	return 0;
}
