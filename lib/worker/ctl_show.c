/* SPDX-License-Identifier: BSD-3-Clause */
/* What rnicctl and telemetry see of the control thread's objects. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl_cm.h"
#include "ctl_qp.h"
#include "roce_cm.h"

struct show {
	struct worker_device *d;
	const struct worker_show *out;
	uint32_t skip, max, given;
};

/* Begin the next object: false, it is one to be left out. */
static bool
show_begin(struct show *s)
{
	if (s->skip > 0) {
		s->skip--;
		return false;
	}
	if (s->given >= s->max)
		return false;
	s->given++;
	s->out->begin(s->out->arg);
	return true;
}

static void
num(struct show *s, const char *key, uint64_t value)
{
	s->out->num(s->out->arg, key, value);
}

static void
str(struct show *s, const char *key, const char *value)
{
	s->out->str(s->out->arg, key, value);
}

static void
end(struct show *s)
{
	s->out->end(s->out->arg);
}

/* How often its QPs got nothing from the workers' pools, having their share. */
static uint64_t
pool_refusals(const struct worker_ctx *ctx)
{
	uint64_t n = 0;

	for (uint32_t w = 0; ctx != NULL && w < ctx->num_workers; w++)
		for (int p = 0; p < VERBS_POOLS; p++)
			n += counter_read(&ctx->at[w].share.refused[p]);
	return n;
}

static void
show_contexts(struct show *s)
{
	static const char *const names[] = {
		[CTL_CLIENT_NEW] = "new",
		[CTL_CLIENT_HELLO] = "hello",
		[CTL_CLIENT_OPEN] = "open",
		[CTL_CLIENT_DYING] = "dying",
	};
	struct ctl_client *c;

	TAILQ_FOREACH(c, &s->d->clients, link) {
		if (!show_begin(s))
			continue;
		num(s, "context", c->id);
		num(s, "pid", (uint64_t)c->pid);
		num(s, "uid", c->uid);
		str(s, "state", names[c->state]);
		num(s, "arenas", c->num_arenas);
		num(s, "bells", c->bells_used - c->num_bell_free);
		num(s, "unsent_bytes", c->out_bytes);
		num(s, "pool_refusals", pool_refusals(c->ctx));
		end(s);
	}
}

static void
show_list(struct show *s, const struct ctl_obj_list *list,
	void (*fill)(struct show *s, struct ctl_obj *o))
{
	struct ctl_obj *o;

	TAILQ_FOREACH(o, list, link) {
		if (!show_begin(s))
			continue;
		num(s, "context", o->client->id);
		fill(s, o);
		end(s);
	}
}

/* Each object of a kind, client by client. */
static void
show_objects(struct show *s, enum ctl_kind kind, void (*fill)(struct show *s, struct ctl_obj *o))
{
	struct ctl_client *c;

	TAILQ_FOREACH(c, &s->d->clients, link) {
		show_list(s, &c->objs[kind], fill);
		show_list(s, &c->dying[kind], fill);
	}
}

static void
fill_pd(struct show *s, struct ctl_obj *o)
{
	num(s, "pd", ctl_obj_handle(o));
	num(s, "users", o->refs);
}

static void
fill_mr(struct show *s, struct ctl_obj *o)
{
	static const char *const how[] = {
		[RING_MR_ARENA] = "arena",
		[RING_MR_MAPPED] = "mapped",
		[RING_MR_COPIED] = "copied",
	};
	static const char *const type[] = {
		[MR_TYPE_REGION] = "region",
		[MR_TYPE_WINDOW_1] = "window",
		[MR_TYPE_WINDOW_2A] = "window 2a",
		[MR_TYPE_WINDOW_2B] = "window 2b",
		[MR_TYPE_FAST_REG] = "fast",
	};
	const struct ctl_mr *m = (const struct ctl_mr *)o;

	/* The secret part of the key is of no use to an operator. */
	num(s, "index", ctl_obj_handle(o) >> 8);
	num(s, "pd", ctl_obj_handle(&m->pd->o));
	str(s, "type", type[m->type]);
	if (m->type != MR_TYPE_REGION)
		return;
	num(s, "address", m->addr);
	num(s, "length", m->length);
	num(s, "iova", m->iova);
	num(s, "access", m->access);
	str(s, "memory", how[m->how]);
}

static void
fill_cq(struct show *s, struct ctl_obj *o)
{
	const struct ctl_cq *cq =
		(const struct ctl_cq *)((const uint8_t *)o - offsetof(struct ctl_cq, o));

	num(s, "cqn", ctl_obj_handle(o));
	num(s, "entries", cq->entries);
	num(s, "rings", cq->num_subs);
	num(s, "users", o->refs);
	num(s, "overrun", atomic_load(&cq->vcq->overrun));
}

static void
fill_srq(struct show *s, struct ctl_obj *o)
{
	struct ctl_srq *srq = (struct ctl_srq *)o;
	uint32_t posted = verbs_srq_count(&srq->v);

	num(s, "srqn", ctl_obj_handle(o));
	num(s, "pd", ctl_obj_handle(&srq->pd->o));
	num(s, "max_wr", srq->max_wr);
	num(s, "max_sge", srq->v.max_sge);
	num(s, "posted", posted != UINT32_MAX ? posted : 0);
	num(s, "limit", verbs_srq_armed(&srq->v));
	num(s, "users", o->refs);
	if (srq->xrcd != NULL)
		num(s, "xrc_domain", srq->v.xrcd);
	if (srq->home != RING_NO_HANDLE)
		num(s, "home", srq->home);
	num(s, "broken", atomic_load(&srq->v.broken));
}

static void
fill_qp(struct show *s, struct ctl_obj *o)
{
	const struct ctl_qp *qp = (const struct ctl_qp *)o;
	char text[NET_IP_TEXT];
	struct net_ip peer = net_ip_from_bytes(qp->attr.av.dgid.raw);
	struct roce_qp_info info;

	num(s, "qpn", ctl_obj_handle(o));
	str(s, "type", verbs_qp_type_name(qp->type));
	str(s, "state", verbs_qp_state_name(ctl_qp_state(qp)));
	if (qp->xrc != NULL)
		num(s, "xrc_domain", qp->xrc->node.key);
	else
		num(s, "pd", ctl_obj_handle(&qp->pd->o));
	if (qp->srq != NULL)
		num(s, "srqn", ctl_obj_handle(&qp->srq->o));
	if (!qp->bound)
		return;
	/* Numbers that the worker changes meanwhile: each is whole, together they may not fit. */
	roce_qp_get_info(qp->vqp, &info);
	num(s, "worker", qp->worker);
	str(s, "peer", net_ip_format(&peer, text));
	num(s, "dest_qpn", info.dest_qpn);
	num(s, "epsn", info.epsn);
	num(s, "sq_psn", info.sq_psn);
	num(s, "una_psn", info.una_psn);
	num(s, "inflight_bytes", info.inflight_bytes);
	num(s, "retransmits", info.retransmits);
	num(s, "timeouts", info.timeouts);
	num(s, "naks_sent", info.naks_sent);
	num(s, "naks_rcvd", info.naks_rcvd);
	num(s, "rnrs_sent", info.rnrs_sent);
	num(s, "rnrs_rcvd", info.rnrs_rcvd);
}

/* Targets are their domain's, and nobody's in particular. */
static void
show_qps(struct show *s)
{
	struct ctl_xrc *x;
	struct ctl_qp *qp;

	show_objects(s, CTL_QP, fill_qp);
	TAILQ_FOREACH(x, &s->d->xrc_list, link) {
		TAILQ_FOREACH(qp, &x->targets, target_link) {
			if (!show_begin(s))
				continue;
			fill_qp(s, &qp->o);
			end(s);
		}
	}
}

/* A key each, with the index that programs use: a key that comes twice shows the last one. */
static void
show_gids(struct show *s, const struct ctl_port *p)
{
	char key[16], text[NET_IP_TEXT + 8];

	for (uint32_t g = 0; g < CTL_GIDS; g++) {
		if (!p->gids[g].used)
			continue;
		snprintf(key, sizeof(key), "gid%u", g);
		net_ip_format(&p->gids[g].ip, text);
		if (p->gids[g].vid != 0)
			snprintf(text + strlen(text), 8, "@%u", p->gids[g].vid);
		str(s, key, text);
	}
}

static void
show_ports(struct show *s)
{
	for (uint32_t i = 0; i < s->d->sh.num_ports; i++) {
		const struct ctl_port *p = &s->d->port[i];

		if (!show_begin(s))
			continue;
		num(s, "port", i + 1);
		str(s, "name", p->netdev);
		str(s, "link", p->up ? "up" : "down");
		num(s, "mbps", p->mbps);
		num(s, "mtu", p->mtu);
		num(s, "path_mtu", 128u << ctl_mtu_of(p->mtu));
		show_gids(s, p);
		end(s);
	}
}

/* What is set of congestion management, as rnicctl sets it. */
static void
show_cc(struct show *s)
{
	for (uint32_t i = 0; i < s->d->sh.num_ports; i++) {
		const struct ctl_port *p = &s->d->port[i];

		if (!show_begin(s))
			continue;
		num(s, "port", i + 1);
		str(s, "name", p->netdev);
		num(s, "link_mbps", p->mbps);
		for (unsigned int k = 0; k < ROCE_CC_NUM_PARAMS; k++)
			num(s, roce_cc_desc[k].name, roce_cc_param(&p->cc, k));
		end(s);
	}
}

/* A QP without a rate goes at that of the line. */
static void
fill_cc_qp(struct show *s, struct ctl_obj *o)
{
	const struct ctl_qp *qp = (const struct ctl_qp *)o;
	struct net_ip peer = net_ip_from_bytes(qp->attr.av.dgid.raw);
	char text[NET_IP_TEXT];
	struct roce_qp_info info;

	num(s, "qpn", ctl_obj_handle(o));
	str(s, "state", verbs_qp_state_name(ctl_qp_state(qp)));
	if (!qp->bound)
		return;
	roce_qp_get_info(qp->vqp, &info); /* as fill_qp() */
	str(s, "peer", net_ip_format(&peer, text));
	num(s, "ecn_marked", info.ecn_marked);
	num(s, "cnps_sent", info.cnps_sent);
	num(s, "cnps_rcvd", info.cnps_rcvd);
	if (info.rate_kbps == 0)
		return;
	num(s, "rate_kbps", info.rate_kbps);
	num(s, "target_kbps", info.target_kbps);
	num(s, "alpha_ppm", info.alpha_ppm);
	num(s, "increases", info.increases);
}

static void
show_memory(struct show *s)
{
	struct ctl_user *u;

	LIST_FOREACH(u, &s->d->users, link) {
		if (!show_begin(s))
			continue;
		num(s, "uid", u->uid);
		num(s, "contexts", u->clients);
		num(s, "bytes", u->bytes);
		num(s, "limit", s->d->cfg.quota_arena_bytes);
		for (int k = 0; k < CTL_KINDS; k++)
			num(s, ctl_kind_name[k], u->count[k]);
		end(s);
	}
}

static void
show_neigh(void *arg, const struct net_neigh *n, uint32_t refs)
{
	struct show *s = arg;
	char text[NET_IP_TEXT], mac[RTE_ETHER_ADDR_FMT_SIZE];
	uint64_t l2 = atomic_load_explicit(&n->l2, memory_order_relaxed);
	struct rte_ether_addr addr = net_neigh_l2_mac(l2);

	if (!show_begin(s))
		return;
	rte_ether_format_addr(mac, sizeof(mac), &addr);
	num(s, "port", n->port + 1u);
	str(s, "address", net_ip_format(&n->ip, text));
	num(s, "vlan", n->vid);
	str(s, "state", net_neigh_state_name(net_neigh_l2_state(l2)));
	str(s, "mac", mac);
	num(s, "users", refs);
	end(s);
}

static void
show_neighbours(struct show *s)
{
	for (uint32_t i = 0; i < s->d->sh.num_ports; i++)
		net_neigh_walk(s->d->port[i].neighs, show_neigh, s);
}

static void
show_routes(struct show *s)
{
	const struct net_route_view *v = net_route_get(&s->d->routes);
	char text[NET_IP_TEXT];

	for (uint32_t i = 0; v != NULL && i < net_route_count(v); i++) {
		const struct net_route *r = net_route_at(v, i);

		if (!show_begin(s))
			continue;
		str(s, "prefix", net_ip_format(&r->prefix, text));
		num(s, "length", net_ip_is_v4(&r->prefix) && r->plen >= NET_PREFIX_V4
					 ? r->plen - NET_PREFIX_V4
					 : r->plen);
		if (!net_ip_is_zero(&r->gateway))
			str(s, "gateway", net_ip_format(&r->gateway, text));
		num(s, "port", r->port + 1u);
		end(s);
	}
}

/* ---- connection management ---------- */

static void
endpoint(struct show *s, const char *key, const struct ring_cm_addr *a)
{
	struct net_ip ip = ctl_cm_ip(a);
	char text[NET_IP_TEXT + 16], addr[NET_IP_TEXT];

	net_ip_format(&ip, addr);
	if (a->version == 0)
		strcpy(text, "-");
	else if (a->version == 4)
		snprintf(text, sizeof(text), "%s:%u", addr, a->port);
	else
		snprintf(text, sizeof(text), "[%s]:%u", addr, a->port);
	str(s, key, text);
}

static const char *
space_name(unsigned int ps)
{
	return ps == RING_CM_PS_TCP ? "tcp" : ps == RING_CM_PS_UDP ? "udp" : "ib";
}

static void
fill_id(struct show *s, struct ctl_obj *o)
{
	const struct ctl_cm_id *id = (const struct ctl_cm_id *)o;

	num(s, "id", ctl_obj_handle(o));
	str(s, "space", space_name(id->ps));
	str(s, "state", ctl_cm_state_name(id->state));
	endpoint(s, "local", &id->src);
	endpoint(s, "peer", &id->dst);
	num(s, "qpn", id->by_qpn ? id->qpn : 0);
	num(s, "events", id->waiting);
}

static void
show_listeners(struct show *s)
{
	struct ctl_client *c;
	struct ctl_obj *o;

	TAILQ_FOREACH(c, &s->d->clients, link) {
		TAILQ_FOREACH(o, &c->objs[CTL_CM_ID], link) {
			const struct ctl_cm_id *id = (const struct ctl_cm_id *)o;

			if (id->state != CTL_CM_LISTEN || !show_begin(s))
				continue;
			num(s, "context", c->id);
			num(s, "id", ctl_obj_handle(o));
			str(s, "space", space_name(id->ps));
			endpoint(s, "local", &id->src);
			num(s, "unfetched", id->unfetched);
			num(s, "backlog", id->backlog);
			end(s);
		}
	}
}

/* What the transport has: timewait, and connections of clients that are gone, among it. */
static void
show_connection(void *arg, const struct roce_cm_info *info)
{
	struct show *s = arg;
	char text[NET_IP_TEXT];

	if (!show_begin(s))
		return;
	num(s, "local_id", info->local_id);
	num(s, "remote_id", info->remote_id);
	str(s, "state", roce_cm_state_name(info->state));
	str(s, "side", info->active ? "active" : "passive");
	num(s, "service", info->service_id);
	str(s, "peer", net_ip_format(&info->params.av.dgid, text));
	num(s, "qpn", info->params.local_qpn);
	num(s, "dest_qpn", info->params.dest_qpn);
	num(s, "retries_left", info->retries_left);
	end(s);
}

static void
show_cm_counters(struct show *s)
{
	const uint64_t *count = roce_cm_counters(s->d->cm.roce);

	if (!show_begin(s))
		return;
	for (unsigned int i = 0; i < ROCE_CM_C_COUNT; i++)
		num(s, roce_cm_counter_name((enum roce_cm_counter)i), count[i]);
	num(s, "events", s->d->cm.events_sent);
	num(s, "requests_refused", s->d->cm.requests_refused);
	end(s);
}

int
worker_show(struct worker_device *d, const char *kind, uint32_t skip, uint32_t max,
	const struct worker_show *out)
{
	struct show s = {.d = d, .out = out, .skip = skip, .max = max};

	if (strcmp(kind, "workers") == 0)
		return worker_show_workers(&d->sh, skip, max, out);
	if (strcmp(kind, "counters") == 0)
		return worker_show_counters(&d->sh, skip, max, out);
	if (strcmp(kind, "contexts") == 0)
		show_contexts(&s);
	else if (strcmp(kind, "pds") == 0)
		show_objects(&s, CTL_PD, fill_pd);
	else if (strcmp(kind, "mrs") == 0)
		show_objects(&s, CTL_MR, fill_mr);
	else if (strcmp(kind, "cqs") == 0)
		show_objects(&s, CTL_CQ, fill_cq);
	else if (strcmp(kind, "qps") == 0)
		show_qps(&s);
	else if (strcmp(kind, "srqs") == 0)
		show_objects(&s, CTL_SRQ, fill_srq);
	else if (strcmp(kind, "ports") == 0)
		show_ports(&s);
	else if (strcmp(kind, "memory") == 0)
		show_memory(&s);
	else if (strcmp(kind, "neighbours") == 0)
		show_neighbours(&s);
	else if (strcmp(kind, "routes") == 0)
		show_routes(&s);
	else if (strcmp(kind, "cc") == 0)
		show_cc(&s);
	else if (strcmp(kind, "cc-qps") == 0)
		show_objects(&s, CTL_QP, fill_cc_qp);
	else if (strcmp(kind, "ids") == 0)
		show_objects(&s, CTL_CM_ID, fill_id);
	else if (strcmp(kind, "listeners") == 0)
		show_listeners(&s);
	else if (strcmp(kind, "connections") == 0)
		roce_cm_walk(d->cm.roce, show_connection, &s);
	else if (strcmp(kind, "cm") == 0)
		show_cm_counters(&s);
	else
		return -ENOENT;
	return (int)s.given;
}
