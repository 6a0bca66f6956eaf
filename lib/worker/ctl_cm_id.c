/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids of connection management: made, bound, asked about, ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_cm.h"

static const char *const names[] = {
	[CTL_CM_IDLE] = "idle",
	[CTL_CM_BOUND] = "bound",
	[CTL_CM_ADDR_QUERY] = "addr-query",
	[CTL_CM_ADDR_RESOLVED] = "addr-resolved",
	[CTL_CM_ROUTE_RESOLVED] = "route-resolved",
	[CTL_CM_LISTEN] = "listen",
	[CTL_CM_CONNECT] = "connect",
	[CTL_CM_RESPONSE] = "response",
	[CTL_CM_REQUEST] = "request",
	[CTL_CM_ACCEPT] = "accept",
	[CTL_CM_ESTABLISHED] = "established",
	[CTL_CM_DISCONNECT] = "disconnect",
	[CTL_CM_OVER] = "over",
};
static_assert(sizeof(names) / sizeof(names[0]) == CTL_CM_STATES, "a name each");

const char *
ctl_cm_state_name(unsigned int state)
{
	return state < CTL_CM_STATES ? names[state] : "?";
}

/* ---- making ---------- */

int
ctl_cm_id_new(struct ctl_cm_channel *ch, uint16_t ps, uint8_t qp_type, struct ctl_cm_id **out)
{
	struct ctl_cm_id *id;
	int err = ctl_obj_room(ch->o.client, CTL_CM_ID);

	if (err < 0)
		return err;
	id = calloc(1, sizeof(*id));
	if (id == NULL)
		return -ENOMEM;
	TAILQ_INIT(&id->events);
	LIST_INIT(&id->mcasts);
	id->channel = ch;
	id->ps = ps;
	id->qp_type = qp_type;
	id->path_mtu = 0;
	id->qpn = RING_NO_HANDLE;
	id->worker = RING_NO_HANDLE;
	err = ctl_obj_add_numbered(ch->o.client, &id->o, CTL_CM_ID);
	if (err < 0) {
		free(id);
		return err;
	}
	ch->o.refs++;
	*out = id;
	return 0;
}

static bool
type_ok(uint16_t ps, uint8_t qp_type)
{
	bool connected = qp_type == RING_QPT_RC || qp_type == RING_QPT_UC;

	switch (ps) {
	case RING_CM_PS_TCP:
		return connected;
	case RING_CM_PS_UDP:
		return qp_type == RING_QPT_UD;
	case RING_CM_PS_IB:
		return connected || qp_type == RING_QPT_UD;
	default:
		return false;
	}
}

int
ctl_op_cm_create_id(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_create_id_req *r = req;
	struct ctl_cm_channel *ch = ctl_cm_channel_find(c, r->channel);
	struct ring_ctrl_handle_rep *p = rep;
	struct ctl_cm_id *id;
	int err;

	(void)e;
	if (ch == NULL || r->reserved != 0)
		return -EINVAL;
	if (!type_ok(r->ps, r->qp_type))
		return -EOPNOTSUPP;
	err = ctl_cm_id_new(ch, r->ps, r->qp_type, &id);
	if (err == 0)
		p->handle = ctl_obj_handle(&id->o);
	return err;
}

struct ctl_cm_id *
ctl_cm_id_find(struct ctl_client *c, uint32_t handle, uint32_t states)
{
	struct ctl_cm_id *id = ctl_obj_find(c, CTL_CM_ID, handle);

	return id != NULL && (states & 1u << id->state) != 0 ? id : NULL;
}

/* ---- ending ---------- */

void
ctl_cm_id_end(struct ctl_cm_id *id)
{
	struct ctl_elem accepter = id->accepter;

	while (!TAILQ_EMPTY(&id->events) || id->asked != NULL)
		ctl_cm_events_drop(id); /* of a listener few are left */
	id->accepter.call = NULL;
	ctl_cm_addr_cancel(id);
	ctl_cm_mcast_end(id);
	ctl_cm_qp_unhold(id); /* first: nothing of its end is told any more */
	ctl_cm_roce_end(id);
	ctl_cm_port_release(id);
	free(id->held);
	if (id->neigh != NULL)
		net_neigh_put(id->neigh);
	id->channel->o.refs--;
	ctl_obj_del(&id->o, 0);
	free(id);
	ctl_elem_done(accepter, -ECANCELED);
}

/* Requests that nobody has fetched have ids of their own, which are in the same list to go. */
void
ctl_cm_id_destroy(struct ctl_obj *o)
{
	struct ctl_cm_id *id = (struct ctl_cm_id *)o;

	if (id->unfetched == 0)
		ctl_cm_id_end(id);
}

int
ctl_op_cm_destroy_id(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->handle, UINT32_MAX);
	struct ring_ctrl_cm_moved_rep *p = rep;

	(void)e;
	if (id == NULL || r->reserved != 0)
		return -EINVAL;
	if (id->state == CTL_CM_LISTEN)
		ctl_cm_roce_end(id); /* and no more of them */
	p->waiting += ctl_cm_events_drop(id);
	if (!TAILQ_EMPTY(&id->events))
		return CTL_YIELD;
	p->events = id->fetched;
	ctl_cm_id_end(id);
	return 0;
}

/* ---- addresses and options ---------- */

int
ctl_op_cm_bind(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_addr_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, CTL_CM_IN(IDLE));
	struct ring_ctrl_cm_addr_rep *p = rep;
	int err;

	(void)e;
	if (id == NULL || r->src.version == 0 || !ctl_cm_addr_ok(&r->src) || r->dst.version != 0 ||
		r->timeout_ms != 0)
		return -EINVAL;
	err = ctl_cm_addr_bind(id, &r->src);
	if (err == 0)
		err = ctl_cm_port_take(id);
	if (err < 0) {
		memset(&id->src, 0, sizeof(id->src));
		id->av.port = 0;
		return err;
	}
	id->state = CTL_CM_BOUND;
	p->port = id->av.port;
	p->src = id->src;
	return 0;
}

int
ctl_op_cm_set_option(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_cm_option_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->id, UINT32_MAX);
	bool early = id != NULL && id->state == CTL_CM_IDLE;

	(void)rep;
	(void)e;
	if (id == NULL || r->reserved != 0)
		return -EINVAL;
	switch (r->option) {
	case RING_CM_OPT_TOS:
		if (r->value > UINT8_MAX)
			return -EINVAL;
		id->has_tos = true;
		id->tos = (uint8_t)r->value;
		id->av.traffic_class = id->tos;
		return 0;
	case RING_CM_OPT_REUSEADDR:
		if (r->value > 1 || (!early && id->state != CTL_CM_BOUND))
			return -EINVAL;
		id->reuseaddr = r->value != 0;
		return 0;
	case RING_CM_OPT_AFONLY:
		if (r->value > 1 || !early)
			return -EINVAL;
		id->afonly = r->value != 0;
		return 0;
	case RING_CM_OPT_ACK_TIMEOUT:
		if (r->value > 31)
			return -EINVAL;
		id->has_ack_timeout = true;
		id->ack_timeout = (uint8_t)r->value;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

int
ctl_op_cm_query(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_cm_id *id = ctl_cm_id_find(c, r->handle, UINT32_MAX);
	struct ring_ctrl_cm_query_rep *p = rep;
	struct rte_ether_addr mac;

	(void)e;
	if (id == NULL || r->reserved != 0)
		return -EINVAL;
	p->port = id->av.port;
	p->src = id->src;
	p->dst = id->dst;
	p->av = id->av;
	p->path_mtu = id->path_mtu;
	p->vlan = id->vlan;
	p->node_guid = ctl_node_guid(c->dev);
	if (id->av.port != 0)
		memcpy(p->smac, c->dev->port[id->av.port - 1].mac, sizeof(p->smac));
	if (id->neigh != NULL) {
		mac = net_neigh_l2_mac(atomic_load(&id->neigh->l2));
		memcpy(p->dmac, mac.addr_bytes, sizeof(p->dmac));
	}
	return 0;
}
