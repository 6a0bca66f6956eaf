/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids of connection management: making, moving and ending them, their addresses and queue pairs. */
#include <stdlib.h>

#include "client_cm_priv.h"

/* ---- making ---- */

static void
id_release(struct client_obj *obj)
{
	free(CLIENT_OF(struct client_cm_id, obj, obj));
}

struct client_cm_id *
client_cm_id_new(struct rnic_cm_channel *ch, uint32_t handle)
{
	struct rnic_context *ctx = ch->context;
	struct client_cm_id *id = calloc(1, sizeof(*id));
	int rc;

	if (!id)
		return NULL;
	id->pub.context = ctx;
	id->pub.channel = ch;
	id->pub.handle = handle;
	pthread_mutex_lock(&ctx->lock);
	rc = client_map_put(&ctx->cm_ids, handle, id);
	if (rc == 0)
		ch->num_ids++;
	pthread_mutex_unlock(&ctx->lock);
	if (rc) {
		free(id);
		return NULL;
	}
	client_obj_add(ctx, &id->obj, id_release);
	return id;
}

/* No event names it any more. */
static void
id_end(struct client_cm_id *id)
{
	struct rnic_context *ctx = id->pub.context;

	pthread_mutex_lock(&ctx->lock);
	client_map_del(&ctx->cm_ids, id->pub.handle);
	id->pub.channel->num_ids--;
	pthread_mutex_unlock(&ctx->lock);
	client_obj_del(ctx, &id->obj);
	id_release(&id->obj);
}

static uint32_t
type_of(uint32_t ps, uint32_t qp_type)
{
	if (qp_type)
		return qp_type;
	return ps == RNIC_PS_UDP ? RNIC_QPT_UD : RNIC_QPT_RC;
}

/* With replies: what the daemon made that has no place here goes again. */
static int
ids_make(struct rnic_cm_channel *ch, const struct ring_ctrl_cm_create_id_req *req,
	const struct ring_ctrl_handle_rep *reps, void *const *user_contexts,
	struct rnic_cm_id **ids, int n)
{
	int made = 0, rc = 0;

	for (int i = 0; i < n; i++) {
		struct client_cm_id *id = NULL;

		if (rc == 0)
			rc = reps[i].status > 0 ? -EPROTO : reps[i].status;
		if (rc == 0) {
			id = client_cm_id_new(ch, reps[i].handle);
			rc = id ? 0 : -ENOMEM;
		}
		if (id) {
			id->pub.ps = req->ps;
			id->pub.qp_type = req->qp_type;
			id->pub.user_context = user_contexts ? user_contexts[i] : NULL;
			ids[made++] = &id->pub;
		} else if (reps[i].status == 0) {
			struct ring_ctrl_handle_req gone = {.handle = reps[i].handle};
			struct ring_ctrl_cm_moved_rep rep;

			client_call1(ch->context, RING_CTRL_CM_DESTROY_ID, &gone, &rep);
		}
	}
	return made ? made : rc;
}

int
rnic_cm_create_ids(struct rnic_cm_channel *ch, uint32_t ps, uint32_t qp_type,
	void *const *user_contexts, struct rnic_cm_id **ids, int n)
{
	struct ring_ctrl_cm_create_id_req req = {
		.channel = ch->handle,
		.ps = (uint16_t)ps,
		.qp_type = (uint8_t)type_of(ps, qp_type),
	};
	unsigned int max = ring_ctrl_info(RING_CTRL_CM_CREATE_ID)->max_count;
	struct ring_ctrl_cm_create_id_req *reqs;
	struct ring_ctrl_handle_rep *reps;
	unsigned int some;
	int made = 0, rc = client_gate(ch->context);

	if (rc == 0 && (n <= 0 || ps > UINT16_MAX || qp_type > UINT8_MAX))
		rc = -EINVAL;
	if (rc)
		return rc;
	some = (unsigned int)n < max ? (unsigned int)n : max;
	reqs = malloc(some * sizeof(*reqs));
	reps = malloc(some * sizeof(*reps));
	if (!reqs || !reps)
		rc = -ENOMEM;
	for (unsigned int i = 0; i < some && rc == 0; i++)
		reqs[i] = req;
	while (rc == 0 && made < n) {
		int want = n - made < (int)some ? n - made : (int)some;

		rc = client_call(
			ch->context, RING_CTRL_CM_CREATE_ID, reqs, reps, (unsigned int)want);
		if (rc)
			break;
		rc = ids_make(ch, &req, reps, user_contexts ? user_contexts + made : NULL,
			ids + made, want);
		if (rc > 0)
			made += rc;
		rc = rc < want ? (rc < 0 ? rc : -ENOMEM) : 0;
	}
	free(reqs);
	free(reps);
	return made ? made : rc;
}

int
rnic_cm_create_id(struct rnic_cm_channel *ch, uint32_t ps, uint32_t qp_type, void *user_context,
	struct rnic_cm_id **id)
{
	int rc = rnic_cm_create_ids(ch, ps, qp_type, &user_context, id, 1);

	return rc < 0 ? rc : 0;
}

/* ---- ending ---- */

static int
destroy_call(struct rnic_context *ctx, uint32_t handle, struct ring_ctrl_cm_moved_rep *rep)
{
	struct ring_ctrl_handle_req req = {.handle = handle};
	int rc;

	memset(rep, 0, sizeof(*rep));
	rc = client_call1(ctx, RING_CTRL_CM_DESTROY_ID, &req, rep);
	/* What the daemon had of it went with the context. */
	return rc != -EPERM && client_gate(ctx) == -ENOTCONN ? 0 : rc;
}

/* With its channel's lock: requests that nobody was told of are refused with their listener. */
static void
events_forget(struct client_cm_id *id)
{
	struct client_cm_event *e = client_cm_events_take(id->pub.channel, &id->pub);

	while (e) {
		struct client_cm_event *next = e->next;
		struct ring_ctrl_cm_moved_rep rep;

		if (e->pub.listen_id == &id->pub &&
			destroy_call(id->pub.context, e->pub.id->handle, &rep) == 0) {
			client_cm_bytes_drop(id->pub.channel, rep.waiting);
			id_end(client_cm_id(e->pub.id));
		}
		free(e);
		e = next;
	}
}

int
rnic_cm_destroy_id(struct rnic_cm_id *pub)
{
	struct client_cm_id *id = client_cm_id(pub);
	struct rnic_cm_channel *ch = pub->channel;
	struct ring_ctrl_cm_moved_rep rep;
	int rc;

	if (client_is_child(pub->context))
		return -EPERM;
	if (pub->qp)
		return -EBUSY;
	pthread_mutex_lock(&ch->lock);
	rc = destroy_call(pub->context, pub->handle, &rep);
	if (rc == 0) {
		client_cm_bytes_drop(ch, rep.waiting);
		events_forget(id);
	}
	pthread_mutex_unlock(&ch->lock);
	if (rc == 0)
		id_end(id);
	return rc;
}

/* ---- moving ---- */

static void
lock_both(struct rnic_cm_channel *a, struct rnic_cm_channel *b)
{
	if ((uintptr_t)a > (uintptr_t)b) {
		struct rnic_cm_channel *t = a;

		a = b;
		b = t;
	}
	pthread_mutex_lock(&a->lock);
	pthread_mutex_lock(&b->lock);
}

/* Requests that wait at a listener have ids of their own, which go along. */
static void
children_move(struct client_cm_event *list, struct rnic_cm_id *id, struct rnic_cm_channel *to)
{
	for (struct client_cm_event *e = list; e; e = e->next) {
		struct ring_ctrl_cm_migrate_req req = {.channel = to->handle};
		struct ring_ctrl_cm_moved_rep rep;

		if (e->pub.listen_id != id)
			continue;
		req.id = e->pub.id->handle;
		if (client_call1(id->context, RING_CTRL_CM_MIGRATE, &req, &rep))
			continue;
		client_cm_bytes_drop(id->channel, rep.waiting);
		pthread_mutex_lock(&id->context->lock);
		e->pub.id->channel->num_ids--;
		e->pub.id->channel = to;
		to->num_ids++;
		pthread_mutex_unlock(&id->context->lock);
	}
}

int
rnic_cm_migrate_id(struct rnic_cm_id *id, struct rnic_cm_channel *to)
{
	struct ring_ctrl_cm_migrate_req req = {.id = id->handle, .channel = to->handle};
	struct rnic_cm_channel *from = id->channel;
	struct ring_ctrl_cm_moved_rep rep;
	struct client_cm_event *list;
	int rc = client_gate(id->context);

	if (rc || from == to)
		return rc;
	if (from->context != to->context)
		return -EINVAL;
	lock_both(from, to);
	rc = client_call1(id->context, RING_CTRL_CM_MIGRATE, &req, &rep);
	if (rc == 0) {
		client_cm_bytes_drop(from, rep.waiting);
		list = client_cm_events_take(from, id);
		children_move(list, id, to);
		client_cm_events_put(to, list);
		pthread_mutex_lock(&id->context->lock);
		from->num_ids--;
		to->num_ids++;
		id->channel = to;
		pthread_mutex_unlock(&id->context->lock);
	}
	pthread_mutex_unlock(&from->lock);
	pthread_mutex_unlock(&to->lock);
	return rc;
}

/* ---- addresses ---- */

int
rnic_cm_set_option(struct rnic_cm_id *id, uint32_t option, uint32_t value)
{
	struct ring_ctrl_cm_option_req req = {
		.id = id->handle, .option = option, .value = value};
	struct ring_ctrl_done_rep rep;

	return client_call1(id->context, RING_CTRL_CM_SET_OPTION, &req, &rep);
}

int
rnic_cm_bind_addr(struct rnic_cm_id *id, const struct sockaddr *addr)
{
	struct ring_ctrl_cm_addr_req req = {.id = id->handle};
	struct ring_ctrl_cm_addr_rep rep;
	int rc = addr ? client_cm_addr_to_ctrl(&req.src, addr) : -EINVAL;

	if (rc == 0)
		rc = client_call1(id->context, RING_CTRL_CM_BIND, &req, &rep);
	if (rc)
		return rc;
	id->port_num = rep.port;
	client_cm_addr_from_ctrl(&id->src_addr, &rep.src);
	return 0;
}

int
rnic_cm_listen(struct rnic_cm_id *id, unsigned int backlog)
{
	struct ring_ctrl_cm_arg_req req = {.id = id->handle, .arg = backlog};
	struct ring_ctrl_done_rep rep;
	int rc = client_call1(id->context, RING_CTRL_CM_LISTEN, &req, &rep);

	/* Who was not bound is now: to any address, and a port that it wants to know. */
	if (rc == 0 && id->src_addr.ss_family == 0) {
		struct ring_ctrl_handle_req which = {.handle = id->handle};
		struct ring_ctrl_cm_query_rep q;

		if (client_call1(id->context, RING_CTRL_CM_QUERY, &which, &q) == 0)
			client_cm_addr_from_ctrl(&id->src_addr, &q.src);
	}
	return rc;
}

int
rnic_cm_query_route(struct rnic_cm_id *id, struct rnic_cm_route *route)
{
	struct ring_ctrl_handle_req req = {.handle = id->handle};
	struct ring_ctrl_cm_query_rep rep;
	int rc = client_call1(id->context, RING_CTRL_CM_QUERY, &req, &rep);

	if (rc)
		return rc;
	memset(route, 0, sizeof(*route));
	client_av_from_ctrl(&route->ah_attr, &rep.av);
	memcpy(route->sgid.raw, rep.src.ip.raw, sizeof(route->sgid.raw));
	route->node_guid = rep.node_guid;
	route->path_mtu = rep.path_mtu;
	route->vlan = rep.vlan;
	memcpy(route->smac, rep.smac, sizeof(route->smac));
	memcpy(route->dmac, rep.dmac, sizeof(route->dmac));
	return 0;
}

/* ---- queue pairs ---- */

int
rnic_cm_init_qp_attr(struct rnic_cm_id *id, struct rnic_qp_attr *attr, unsigned int *mask)
{
	struct ring_ctrl_cm_qp_attr_req req = {.id = id->handle, .state = attr->qp_state};
	struct ring_ctrl_cm_qp_attr_rep rep;
	int rc = client_call1(id->context, RING_CTRL_CM_QP_ATTR, &req, &rep);

	if (rc)
		return rc;
	client_qp_attr_from_ctrl(attr, &rep.attr);
	*mask = rep.mask;
	return 0;
}

/* Attributes of all in one message, then the change in another. */
static int
qps_to(struct rnic_cm_id *const *ids, struct rnic_qp *const *qps, uint32_t state, int n)
{
	struct ring_ctrl_cm_qp_attr_req *reqs = calloc((size_t)n, sizeof(*reqs));
	struct ring_ctrl_cm_qp_attr_rep *reps = calloc((size_t)n, sizeof(*reps));
	struct rnic_qp_attr *attrs = calloc((size_t)n, sizeof(*attrs));
	int rc = reqs && reps && attrs ? 0 : -ENOMEM;

	for (int i = 0; rc == 0 && i < n; i++)
		reqs[i] = (struct ring_ctrl_cm_qp_attr_req){
			.id = ids[i]->handle, .state = state};
	if (rc == 0)
		rc = client_call(
			ids[0]->context, RING_CTRL_CM_QP_ATTR, reqs, reps, (unsigned int)n);
	for (int i = 0; rc == 0 && i < n; i++) {
		rc = reps[i].status > 0 ? -EPROTO : reps[i].status;
		client_qp_attr_from_ctrl(&attrs[i], &reps[i].attr);
	}
	if (rc == 0)
		rc = rnic_modify_qps(qps, attrs, reps[0].mask, NULL, n);
	free(reqs);
	free(reps);
	free(attrs);
	return rc;
}

/* One message's worth. */
static int
qps_some(struct rnic_cm_id *const *ids, struct rnic_pd *pd, struct rnic_qp_init_attr *attr, int n)
{
	struct rnic_qp **qps = calloc((size_t)n, sizeof(struct rnic_qp *));
	int made = qps ? rnic_create_qps(pd, attr, qps, n) : -ENOMEM;
	int rc = made < 0 ? made : made < n ? -ENOMEM : 0;

	if (rc == 0)
		rc = qps_to(ids, qps, RNIC_QPS_INIT, n);
	/* Datagrams have no peer to wait for. */
	for (uint32_t s = RNIC_QPS_RTR;
		rc == 0 && attr->qp_type == RNIC_QPT_UD && s <= RNIC_QPS_RTS; s++)
		rc = qps_to(ids, qps, s, n);
	for (int i = 0; i < made; i++) {
		if (rc)
			rnic_destroy_qp(qps[i]);
		else
			ids[i]->qp = qps[i];
	}
	free(qps);
	return rc;
}

int
rnic_cm_create_qps(struct rnic_cm_id *const *ids, struct rnic_pd *pd,
	struct rnic_qp_init_attr *attr, int n)
{
	int max = (int)ring_ctrl_info(RING_CTRL_CM_QP_ATTR)->max_count;
	struct rnic_qp_cap cap = attr->cap;
	int rc = n > 0 ? client_gate(pd->context) : -EINVAL;

	for (int i = 0; rc == 0 && i < n; i++) {
		if (ids[i]->qp || ids[i]->context != pd->context ||
			ids[i]->qp_type != ids[0]->qp_type ||
			(attr->qp_type && attr->qp_type != ids[0]->qp_type))
			rc = -EINVAL;
	}
	if (rc)
		return rc;
	attr->qp_type = ids[0]->qp_type;
	for (int i = 0; rc == 0 && i < n; i += max) {
		attr->cap = cap;
		rc = qps_some(ids + i, pd, attr, n - i < max ? n - i : max);
		for (int k = 0; rc && k < i; k++)
			rnic_cm_destroy_qp(ids[k]);
	}
	return rc;
}

int
rnic_cm_create_qp(struct rnic_cm_id *id, struct rnic_pd *pd, struct rnic_qp_init_attr *attr)
{
	return rnic_cm_create_qps(&id, pd, attr, 1);
}

int
rnic_cm_set_qp(struct rnic_cm_id *id, struct rnic_qp *qp)
{
	if (qp && (id->qp || qp->context != id->context || qp->qp_type != id->qp_type))
		return -EINVAL;
	id->qp = qp;
	return client_gate(id->context);
}

int
rnic_cm_destroy_qp(struct rnic_cm_id *id)
{
	int rc = id->qp ? rnic_destroy_qp(id->qp) : -EINVAL;

	if (rc == 0)
		id->qp = NULL;
	return rc;
}
