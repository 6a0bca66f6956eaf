/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE's connection manager (roce_cm.h) and the ids: its events become theirs, MADs go and come by
 * QP1. A request is answered by the way it came, which needs no state here.
 */
#include <bsd/stdlib.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_cm.h"
#include "ctl_qp.h"
#include "roce_cm.h"
#include "roce_gsi.h"

#define TIMERS_TURN 256u /* timers that are run in a turn */
#define UNTAGGED 0xffff	 /* of struct roce_cm_av */

static_assert(RING_CM_PS_TCP == (int)ROCE_CM_PS_TCP && RING_CM_PS_UDP == (int)ROCE_CM_PS_UDP &&
	RING_CM_PS_IB == (int)ROCE_CM_PS_IB, "numbered alike");

/* ---- MADs ---------- */

static void
mad_received(struct worker_device *d, const struct roce_mad *mad)
{
	int owner = ctl_net_owner(d, &mad->dst);
	struct roce_cm_rx rx = {
		.src = mad->src,
		.dst = mad->dst,
		.vlan = mad->vlan_tci == NET_VLAN_NONE || net_vlan_id(mad->vlan_tci) == 0
			? UNTAGGED
			: net_vlan_id(mad->vlan_tci),
		.pkey = mad->pkey,
		.tclass = mad->tclass,
	};

	if (owner < 0)
		return; /* not ours any more */
	/* The hairpin's is the port whose address it went to. */
	rx.port = mad->port < d->sh.num_ports ? mad->port : (uint16_t)owner;
	rx.mtu = (uint8_t)ctl_mtu_of(d->port[rx.port].mtu);
	if (mad->port >= d->sh.num_ports) /* sent untagged, whatever the address says */
		rx.vlan = UNTAGGED;
	d->cm.rx = mad;
	roce_cm_input(d->cm.roce, mad->data, ROCE_MAD_LEN, &rx, ctl_now(d));
	d->cm.rx = NULL;
}

/* ---- what clients say ---------- */

/* What is on the wire, timewait too, is bounded for each uid; -ENOMEM. */
static int
quota_get(struct ctl_cm_id *id, struct roce_cm_quota **q)
{
	struct ctl_user *u = id->o.client->user;

	if (u->cm_quota == NULL)
		u->cm_quota = roce_cm_quota_create(ctl_quota(id->o.client->dev, CTL_CM_ID));
	*q = u->cm_quota;
	return *q != NULL ? 0 : -ENOMEM;
}

int
ctl_cm_roce_listen(struct ctl_cm_id *id)
{
	struct roce_cm_listen l = {
		.service_id = roce_cm_service_id((enum roce_cm_ps)id->ps, id->src.port),
		.port = id->av.port != 0 && !id->loopback ? (uint16_t)(id->av.port - 1)
							   : ROCE_CM_ANY_PORT,
		.ip = true,
		.rc = id->qp_type == RING_QPT_RC,
		.uc = id->qp_type == RING_QPT_UC,
		.sidr = id->qp_type == RING_QPT_UD,
		.backlog = UINT32_MAX, /* unanswered ones are bounded by the uid's quota */
		.user = id,
	};
	int err;

	if (!ctl_cm_addr_any(&id->src)) {
		l.addr = ctl_cm_ip(&id->src);
		/* an own address may be reached by any port; link-local ones are each one's */
		if (!net_ip_is_link_local(&l.addr))
			l.port = ROCE_CM_ANY_PORT;
	} else {
		l.port = ROCE_CM_ANY_PORT;
		l.v4_only = id->src.version == 4;
		l.v6_only = id->src.version == 6 && id->afonly;
	}
	err = quota_get(id, &l.quota);
	return err < 0 ? err : roce_cm_listen(id->o.client->dev->cm.roce, &l, &id->listener);
}

/* The way to the peer, as the engine has it. */
static void
av_fill(const struct ctl_cm_id *id, struct roce_cm_av *av)
{
	*av = (struct roce_cm_av){
		.sgid = ctl_cm_ip(&id->src),
		.dgid = net_ip_from_bytes(id->av.dgid.raw),
		.port = (uint16_t)(id->av.port - 1),
		.vlan = id->vlan != 0 ? id->vlan : UNTAGGED,
		.pkey = 0xffff,
		.flow_label = roce_cm_flow_label(id->src.port, id->dst.port),
		.sl = id->av.sl,
		.tclass = id->av.traffic_class,
		.hop_limit = id->av.hop_limit,
		.mtu = id->path_mtu,
	};
}

static void
ip_fill(const struct ctl_cm_id *id, struct roce_cm_ip *ip)
{
	memcpy(ip->src, id->src.ip.raw, sizeof(ip->src));
	memcpy(ip->dst, id->dst.ip.raw, sizeof(ip->dst));
	ip->sport = id->src.port;
}

static uint64_t
service_of(const struct ctl_cm_id *id)
{
	return roce_cm_service_id((enum roce_cm_ps)id->ps, id->dst.port);
}

static int
resolve(struct ctl_cm_id *id, const struct ring_ctrl_cm_conn_req *r)
{
	struct worker_device *d = id->o.client->dev;
	struct roce_cm_sidr s = {
		.service_id = service_of(id),
		.has_ip = true,
		.private_data = r->private_data,
		.private_len = (uint8_t)r->private_len,
	};

	if (r->private_len > ROCE_CM_IP_SIDR_PRIVATE)
		return -EINVAL;
	if (quota_get(id, &s.quota) < 0)
		return -ENOMEM;
	av_fill(id, &s.av);
	ip_fill(id, &s.ip);
	return roce_cm_resolve(d->cm.roce, &s, id, ctl_now(d), &id->conn);
}

int
ctl_cm_roce_connect(struct ctl_cm_id *id, const struct ring_ctrl_cm_conn_req *r)
{
	struct worker_device *d = id->o.client->dev;
	struct roce_cm_connect c = {
		.service_id = service_of(id),
		.transport = id->qp_type == RING_QPT_UC ? ROCE_CM_UC : ROCE_CM_RC,
		.has_ip = true,
		.qpn = r->qpn,
		.initiator_depth = r->initiator_depth,
		.responder_resources = r->responder_resources,
		.retry_count = r->retry_count,
		.rnr_retry = r->rnr_retry_count,
		.flow_control = r->flow_control != 0,
		.srq = r->srq != 0,
		.private_data = r->private_data,
		.private_len = (uint8_t)r->private_len,
	};

	if (id->qp_type == RING_QPT_UD)
		return resolve(id, r);
	if (r->private_len > ROCE_CM_IP_REQ_PRIVATE)
		return -EINVAL;
	/* Local ACK timeout is packet life and one more, as rdma_cm has it. */
	if (id->has_ack_timeout && id->ack_timeout > 1)
		c.packet_life = (uint8_t)(id->ack_timeout - 1);
	if (quota_get(id, &c.quota) < 0)
		return -ENOMEM;
	id->psn = roce_cm_draw_psn(d->cm.roce);
	c.psn = id->psn;
	av_fill(id, &c.av);
	ip_fill(id, &c.ip);
	return roce_cm_connect(d->cm.roce, &c, id, ctl_now(d), &id->conn);
}

static int
sidr_reply(struct ctl_cm_id *id, uint8_t status, const struct ring_ctrl_cm_conn_req *r,
	const void *data, uint16_t len)
{
	struct roce_cm_sidr_reply s = {
		.status = status,
		.private_data = data,
		.private_len = (uint8_t)len,
	};
	int err;

	if (len > ROCE_CM_SIDR_REP_PRIVATE)
		return -EINVAL;
	if (r != NULL) {
		s.qpn = r->qpn;
		s.qkey = r->qkey != 0 ? r->qkey : ROCE_CM_UDP_QKEY;
	}
	err = roce_cm_sidr_reply(id->conn, &s, ctl_now(id->o.client->dev));
	if (err == -EINVAL)
		return err;
	roce_cm_conn_free(id->conn, ctl_now(id->o.client->dev));
	id->conn = NULL;
	return err;
}

int
ctl_cm_roce_accept(struct ctl_cm_id *id, const struct ring_ctrl_cm_conn_req *r)
{
	struct roce_cm_accept a = {
		.qpn = r->qpn,
		.psn = id->psn,
		.initiator_depth = r->initiator_depth,
		.responder_resources = r->responder_resources,
		.rnr_retry = r->rnr_retry_count,
		.flow_control = r->flow_control != 0,
		.srq = r->srq != 0,
		.private_data = r->private_data,
		.private_len = (uint8_t)r->private_len,
	};

	if (id->conn == NULL)
		return -ENOTCONN;
	if (id->qp_type == RING_QPT_UD)
		return sidr_reply(id, ROCE_CM_SIDR_OK, r, r->private_data, r->private_len);
	if (r->private_len > ROCE_CM_REP_PRIVATE)
		return -EINVAL;
	return roce_cm_accept(id->conn, &a, ctl_now(id->o.client->dev));
}

int
ctl_cm_roce_reject(struct ctl_cm_id *id, const struct ring_ctrl_cm_reject_req *r)
{
	uint16_t reason = r->reason != 0 ? r->reason : ROCE_CM_REJ_CONSUMER;

	if (id->conn == NULL)
		return -ENOTCONN;
	if (id->qp_type == RING_QPT_UD)
		return sidr_reply(id, r->reason != 0 ? (uint8_t)r->reason : ROCE_CM_SIDR_REJECT,
			NULL, r->private_data, r->private_len);
	if (r->private_len > ROCE_CM_REJ_PRIVATE)
		return -EINVAL;
	return roce_cm_reject(id->conn, reason, NULL, 0, r->private_data,
		(uint8_t)r->private_len, ctl_now(id->o.client->dev));
}

int
ctl_cm_roce_confirm(struct ctl_cm_id *id)
{
	if (id->conn == NULL)
		return -ENOTCONN;
	return roce_cm_rtu(id->conn, NULL, 0, ctl_now(id->o.client->dev));
}

int
ctl_cm_roce_disconnect(struct ctl_cm_id *id)
{
	if (id->conn == NULL)
		return -ENOTCONN;
	return roce_cm_disconnect(id->conn, NULL, 0, ctl_now(id->o.client->dev));
}

int
ctl_cm_roce_notify(struct worker_device *d, uint32_t qpn)
{
	return roce_cm_established(d->cm.roce, qpn, ctl_now(d));
}

void
ctl_cm_roce_end(struct ctl_cm_id *id)
{
	if (id->listener != NULL)
		roce_cm_listener_free(id->listener);
	id->listener = NULL;
	if (id->conn != NULL)
		roce_cm_conn_free(id->conn, ctl_now(id->o.client->dev));
	id->conn = NULL;
}

/* What both have of something, if the acceptor has said how much: else what the request offers. */
static uint8_t
least(uint8_t offered, uint8_t said)
{
	return said < offered ? said : offered;
}

void
ctl_cm_roce_qp_attr(struct ctl_cm_id *id, struct ring_ctrl_qp_attr *a)
{
	bool accepting = id->accepter.call != NULL;
	struct roce_cm_params p;

	if (id->conn == NULL)
		return;
	roce_cm_conn_params(id->conn, &p);
	a->av = id->av;
	a->av.flow_label = p.av.flow_label;
	a->av.traffic_class = p.av.tclass;
	a->av.sl = p.av.sl;
	a->path_mtu = p.path_mtu;
	a->dest_qpn = p.dest_qpn;
	a->rq_psn = id->psn;
	a->sq_psn = p.sq_psn;
	a->timeout = p.timeout;
	a->retry_cnt = p.retry_count;
	a->rnr_retry = p.rnr_retry;
	a->max_rd_atomic = p.initiator_depth;
	a->max_dest_rd_atomic = p.responder_resources;
	if (accepting) { /* what the engine is told after the QP is in place */
		a->max_rd_atomic = least(p.initiator_depth, id->accept.initiator_depth);
		a->max_dest_rd_atomic =
			least(p.responder_resources, id->accept.responder_resources);
	}
}

/* ---- what the wire says ---------- */

static void
param_fill(struct ctl_cm_event *e, const struct roce_cm_params *p)
{
	e->rep.qpn = p->dest_qpn;
	e->rep.responder_resources = p->responder_resources;
	e->rep.initiator_depth = p->initiator_depth;
	e->rep.flow_control = p->flow_control;
	e->rep.retry_count = p->retry_count;
	e->rep.rnr_retry_count = p->rnr_retry;
	e->rep.srq = p->peer_srq;
}

static struct ctl_cm_event *
event_of(struct ctl_cm_id *id, unsigned int event, int result, const struct roce_cm_event *ev)
{
	struct ctl_cm_event *e =
		ctl_cm_event_new(id, event, result, ev->private_data, ev->private_len);

	if (e != NULL)
		param_fill(e, &ev->params);
	return e;
}

/* A request that nobody is told of. */
static void
refuse(struct worker_device *d, struct roce_cm_conn *conn, const struct roce_cm_event *ev,
	uint16_t reason)
{
	struct roce_cm_sidr_reply no = {
		.status = reason == ROCE_CM_REJ_SERVICE_ID ? ROCE_CM_SIDR_UNSUPPORTED
							   : ROCE_CM_SIDR_REJECT};

	if (ev->type == ROCE_CM_EV_SIDR_REQ)
		roce_cm_sidr_reply(conn, &no, ctl_now(d));
	else
		roce_cm_reject(conn, reason, NULL, 0, NULL, 0, ctl_now(d));
	roce_cm_conn_free(conn, ctl_now(d));
	d->cm.requests_refused++;
}

static void
peer_fill(struct ctl_cm_id *id, const struct ctl_cm_id *listener, const struct roce_cm_event *ev)
{
	struct net_ip own = net_ip_from_bytes(ev->ip.dst);

	ctl_cm_addr_from_peer(id, ev->params.av.port, &ev->params.av.sgid, &ev->params.av.dgid);
	id->src.version = id->dst.version = net_ip_is_v4(&own) ? 4 : 6;
	memcpy(id->src.ip.raw, ev->ip.dst, sizeof(id->src.ip.raw));
	memcpy(id->dst.ip.raw, ev->ip.src, sizeof(id->dst.ip.raw));
	id->src.port = listener->src.port;
	id->dst.port = ev->ip.sport;
	id->tos = listener->has_tos ? listener->tos : ev->params.av.tclass;
	id->av.traffic_class = id->tos;
	id->has_ack_timeout = listener->has_ack_timeout;
	id->ack_timeout = listener->ack_timeout;
	id->worker = listener->o.client->dev->cm.rx != NULL
		? listener->o.client->dev->cm.rx->worker
		: RING_NO_HANDLE;
}

/* Whether its listener takes it: 0, or the reason of a refusal. */
static uint16_t
request_ok(const struct ctl_cm_id *listener, const struct roce_cm_event *ev)
{
	struct worker_device *d = listener->o.client->dev;

	if (listener->o.client->state != CTL_CLIENT_OPEN || listener->o.dying ||
		(listener->loopback && ctl_net_owner(d, &ev->params.av.dgid) < 0))
		return ROCE_CM_REJ_SERVICE_ID;
	return listener->unfetched >= listener->backlog ? ROCE_CM_REJ_NO_RESOURCES : 0;
}

static void
on_request(struct worker_device *d, struct roce_cm_conn *conn, struct ctl_cm_id *listener,
	const struct roce_cm_event *ev)
{
	uint16_t reason = request_ok(listener, ev);
	struct ctl_cm_event *e;
	struct ctl_cm_id *id;

	if (reason == 0 &&
		ctl_cm_id_new(listener->channel, listener->ps, listener->qp_type, &id) < 0)
		reason = ROCE_CM_REJ_NO_RESOURCES;
	if (reason != 0) {
		refuse(d, conn, ev, reason);
		return;
	}
	peer_fill(id, listener, ev);
	id->conn = conn;
	id->state = CTL_CM_REQUEST;
	id->psn = roce_cm_draw_psn(d->cm.roce);
	roce_cm_conn_set_user(conn, id);
	e = event_of(id, RING_CM_CONNECT_REQUEST, 0, ev);
	if (e == NULL)
		return; /* its client is dying, and ends it */
	e->listener = listener;
	e->rep.listen = ctl_obj_handle(&listener->o);
	ctl_cm_event_send(e);
}

static void
on_sidr_answer(struct ctl_cm_id *id, const struct roce_cm_event *ev)
{
	struct worker_device *d = id->o.client->dev;
	bool ok = ev->status == 0 && ev->reason == ROCE_CM_SIDR_OK;
	struct ctl_cm_event *e = event_of(id, ok ? RING_CM_ESTABLISHED : RING_CM_UNREACHABLE,
		ev->status != 0 ? ev->status : ev->reason, ev);

	roce_cm_conn_free(id->conn, ctl_now(d));
	id->conn = NULL;
	id->state = ok ? CTL_CM_ESTABLISHED : CTL_CM_OVER;
	if (e == NULL)
		return;
	e->rep.qkey = ev->qkey;
	e->rep.av = id->av;
	ctl_cm_event_send(e);
}

static void
on_connection(struct ctl_cm_id *id, const struct roce_cm_event *ev)
{
	struct ctl_cm_event *e;

	switch (ev->type) {
	case ROCE_CM_EV_REP:
		e = event_of(id, RING_CM_CONNECT_RESPONSE, 0, ev);
		if (e != NULL)
			ctl_cm_conn_response(id, e);
		break;
	case ROCE_CM_EV_ESTABLISHED:
		e = event_of(id, RING_CM_ESTABLISHED, 0, ev);
		if (e != NULL)
			ctl_cm_conn_established(id, e);
		break;
	case ROCE_CM_EV_REJECTED:
		ctl_cm_conn_over(id, event_of(id, RING_CM_REJECTED, ev->reason, ev));
		break;
	case ROCE_CM_EV_UNREACHABLE:
		ctl_cm_conn_over(id, event_of(id, RING_CM_UNREACHABLE, -ETIMEDOUT, ev));
		break;
	case ROCE_CM_EV_DISCONNECTED:
		ctl_cm_conn_over(id, event_of(id, RING_CM_DISCONNECTED, ev->status, ev));
		break;
	default:
		break; /* an MRA: nothing to do */
	}
}

static void
cm_event(void *ctx, struct roce_cm_conn *conn, void *user, const struct roce_cm_event *ev)
{
	struct worker_device *d = ctx;

	if (ev->type == ROCE_CM_EV_REQ || ev->type == ROCE_CM_EV_SIDR_REQ)
		on_request(d, conn, user, ev);
	else if (ev->type == ROCE_CM_EV_SIDR_REP)
		on_sidr_answer(user, ev);
	else
		on_connection(user, ev);
}

/* Its timewait is over; or the connection never came to be. */
static void
qpn_free(void *ctx, uint32_t qpn)
{
	struct worker_device *d = ctx;
	struct ctl_map_node *n = ctl_map_find(&d->cm.by_qpn, qpn);
	struct ctl_cm_id *id;

	if (n == NULL)
		return;
	id = (struct ctl_cm_id *)((uint8_t *)n - offsetof(struct ctl_cm_id, qpn_node));
	if (id->state == CTL_CM_OVER && id->connected)
		ctl_cm_tell(id, RING_CM_TIMEWAIT_EXIT, 0);
	if (id->state == CTL_CM_OVER)
		ctl_cm_qp_unhold(id);
}

static void
cm_random(void *ctx, void *buf, uint32_t len)
{
	(void)ctx;
	arc4random_buf(buf, len);
}

/* ---- the device's part ---------- */

int
ctl_cm_init(struct worker_device *d)
{
	struct roce_cm_config cfg = {
		.send_mad = ctl_cm_mad_send,
		.event = cm_event,
		.qpn_free = qpn_free,
		.random = cm_random,
		.ctx = d,
		.max_conns = d->cfg.max_qps,
		.ca_guid = rte_be_to_cpu_64(ctl_node_guid(d)),
	};

	STAILQ_INIT(&d->cm.mads);
	d->cm.roce = roce_cm_create(&cfg, ctl_now(d));
	if (d->cm.roce == NULL)
		return -ENOMEM;
	d->gsi_rx = mad_received;
	return 0;
}

void
ctl_cm_fini(struct worker_device *d)
{
	d->gsi_rx = NULL;
	ctl_cm_mad_fini(d);
	if (d->cm.roce != NULL)
		roce_cm_free(d->cm.roce);
	d->cm.roce = NULL;
	ctl_map_fini(&d->cm.ports);
	ctl_map_fini(&d->cm.by_qpn);
}

void
ctl_cm_tick(struct worker_device *d, uint64_t now)
{
	roce_cm_timers(d->cm.roce, now, TIMERS_TURN);
	ctl_cm_mad_run(d, now);
}

uint64_t
ctl_cm_deadline(const struct worker_device *d)
{
	uint64_t due = roce_cm_next_deadline(d->cm.roce), mad = ctl_cm_mad_due(d);

	return mad < due ? mad : due;
}

void
ctl_cm_qp_established(struct worker_device *d, uint32_t qpn)
{
	ctl_cm_roce_notify(d, qpn);
}

bool
ctl_cm_qpn_held(const struct worker_device *d, uint32_t qpn)
{
	return d->cm.roce != NULL && roce_cm_qpn_held(d->cm.roce, qpn);
}
