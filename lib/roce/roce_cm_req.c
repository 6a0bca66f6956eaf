/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * REQs: a chain of checks, each of which names the reason of the REJ (IBTA 12.6.7.2); then a
 * repeated one, one whose QP is connected here already, or a new connection for a listener.
 */
#include <errno.h>

#include <rte_common.h>

#include "roce_cm_priv.h"
#include "roce_code.h"

#define EXT_XRC 1

struct refusal {
	uint16_t reason; /* 0: none */
	uint8_t info_len;
	uint8_t info[16];
};

static struct refusal
refuse(uint16_t reason)
{
	return (struct refusal){ .reason = reason };
}

/* The GIDs are the packet's addresses: over RoCE v2 nobody else's can work, and answers would go
 * to somebody who has not asked. */
static struct refusal
check_gids(const struct roce_cm_msg *m, const struct roce_cm_rx *rx)
{
	const struct roce_cm_path *p = &m->req.primary;
	struct refusal r = { .reason = ROCE_CM_REJ_GID };

	if (memcmp(p->local_gid, rx->src.b, 16) != 0)
		return r;
	if (memcmp(p->remote_gid, rx->dst.b, 16) == 0)
		return refuse(0);
	r.info_len = 16;
	memcpy(r.info, rx->dst.b, 16);
	return r;
}

/* What must be right before the REQ may say anything about a connection that there is. */
static struct refusal
check_identity(const struct roce_cm_msg *m, const struct roce_cm_rx *rx)
{
	const uint32_t qpn = m->req.qpn;

	if (m->local_id == 0)
		return refuse(ROCE_CM_REJ_COMM_ID);
	if (m->req.transport == ROCE_CM_RD ||
	    (m->req.transport == ROCE_CM_EXTENDED && m->req.ext_transport != EXT_XRC))
		return refuse(ROCE_CM_REJ_TRANSPORT);
	if (!cm_qpn_ok(qpn))
		return refuse(ROCE_CM_REJ_UNSUPPORTED);
	return check_gids(m, rx);
}

static struct refusal
check_mtu(const struct roce_cm_msg *m, const struct roce_cm_rx *rx)
{
	struct refusal r = { .reason = ROCE_CM_REJ_MTU, .info_len = 1, .info = { rx->mtu } };

	return roce_mtu_bytes(m->req.mtu) == 0 || m->req.mtu > rx->mtu ? r : refuse(0);
}

static struct refusal
check_path(const struct roce_cm_msg *m, const struct roce_cm_rx *rx)
{
	if ((m->req.pkey ^ rx->pkey) & 0x7fff)
		return refuse(ROCE_CM_REJ_UNSUPPORTED); /* no reason is the P_Key's */
	if (m->req.primary.sl > 7)
		return refuse(ROCE_CM_REJ_SL); /* A17 17.4.2 */
	return check_mtu(m, rx);
}

static bool
listener_takes(const struct roce_cm_listener *l, uint8_t transport)
{
	switch (transport) {
	case ROCE_CM_RC: return l->l.rc;
	case ROCE_CM_UC: return l->l.uc;
	case ROCE_CM_EXTENDED: return l->l.xrc;
	default: return false;
	}
}

bool
cm_request_header(const struct roce_cm_listener *l, const struct roce_cm_msg *m,
		  const struct roce_cm_rx *rx, struct roce_cm_event *ev)
{
	ev->private_data = m->private_data;
	ev->private_len = m->private_len;
	if (!l->l.ip)
		return true;
	if (roce_cm_ip_parse(m->private_data, &ev->ip) != 0 ||
	    memcmp(ev->ip.src, rx->src.b, 16) != 0 || memcmp(ev->ip.dst, rx->dst.b, 16) != 0)
		return false;
	ev->has_ip = true;
	ev->private_data += ROCE_CM_IP_LEN;
	ev->private_len -= ROCE_CM_IP_LEN;
	return true;
}

static void
reject(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx,
       const struct refusal *r, enum roce_cm_counter why)
{
	cm_count(cm, why);
	cm_reply_rej(cm, m, rx, ROCE_CM_ABOUT_REQ, r->reason, r->info, r->info_len);
}

/* The peer asks again. */
static void
duplicate(struct roce_cm_conn *c, const struct roce_cm_msg *m, const struct roce_cm_rx *rx,
	  uint64_t now)
{
	cm_count(c->cm, ROCE_CM_C_DUPLICATE);
	if (cm_in(c, S(TIMEWAIT))) {
		cm_reply_rej(c->cm, m, rx, ROCE_CM_ABOUT_REQ, ROCE_CM_REJ_STALE, NULL, 0);
	} else if (m->tid != c->tid) {
		/* not the same request at all */
		cm_reply_rej(c->cm, m, rx, ROCE_CM_ABOUT_REQ, ROCE_CM_REJ_DUPLICATE_COMM_ID,
			     NULL, 0);
	} else if (cm_in(c, S_REQ_IN)) {
		roce_cm_mra(c, ROCE_CM_MRA_TIMEOUT, NULL, 0, now);
	} else if (cm_in(c, S_REP_OUT) && !c->busy) {
		cm_send_mad(c->cm, &c->av, c->mad); /* the REP was lost, or is on its way */
	}
}

void
cm_stale(struct roce_cm_conn *c, uint64_t now)
{
	cm_count(c->cm, ROCE_CM_C_STALE);
	if (cm_in(c, S(ESTABLISHED))) {
		cm_send_dreq(c, NULL, 0, now);
		cm_del_remote_qpn(c); /* found once is enough */
		c->told = true;
		cm_tell_status(c, ROCE_CM_EV_DISCONNECTED, -ECONNRESET);
		return;
	}
	if (cm_in(c, S(DREQ_SENT))) {
		cm_del_remote_qpn(c);
		return;
	}
	cm_mad_drop(c);
	if (cm_in(c, S_REQ_IN))
		cm_to_idle(c);
	else
		cm_to_timewait(c, now);
	cm_tell_status(c, ROCE_CM_EV_UNREACHABLE, -ECONNRESET);
}

static bool
names_alternate(const struct roce_cm_req *q)
{
	const struct net_ip gid = net_ip_from_bytes(q->alternate.local_gid);

	return !net_ip_is_zero(&gid) || q->alternate.local_lid != 0;
}

static void
conn_fill(struct roce_cm_conn *c, const struct roce_cm_msg *m)
{
	const struct roce_cm_req *q = &m->req;
	const uint8_t cap = c->cm->cfg.max_rd_atomic;

	c->remote_id = m->local_id;
	c->tid = m->tid;
	c->service_id = q->service_id;
	c->transport = q->transport;
	c->dest_qpn = q->qpn;
	c->sq_psn = q->psn;
	c->path_mtu = q->mtu;
	/* what the peer can serve we may ask for, and the other way round */
	c->initiator_depth = RTE_MIN(q->responder_resources, cap);
	c->responder_resources = RTE_MIN(q->initiator_depth, cap);
	c->retry_count = q->retry_count;
	c->rnr_retry = q->rnr_retry;
	c->flow_control = q->flow_control;
	c->peer_srq = q->srq;
	c->timeout = q->primary.ack_timeout;
	c->packet_life = c->timeout ? c->timeout - 1 : 0;
	c->failover = names_alternate(q);
	c->max_retries = q->max_cm_retries;
	c->interval = cm_code_ns(q->local_response_timeout, CM_REP_CODE_MAX);
	c->interval = RTE_MAX(c->interval, CM_REP_MIN_NS);
	c->patience = (q->max_cm_retries + 1u) *
		      (cm_code_ns(q->remote_response_timeout, CM_RESPONSE_CODE_MAX) +
		       2 * cm_code_ns(c->packet_life, CM_RESPONSE_CODE_MAX));
	c->patience = RTE_MIN(RTE_MAX(c->patience, CM_EXPIRE_MIN), CM_STRANGER_NS);
	c->av.flow_label = q->primary.flow_label;
	c->av.sl = q->primary.sl;
	c->av.tclass = q->primary.tclass;
}

static void
enqueue(struct roce_cm_listener *l, struct roce_cm_conn *c)
{
	c->listener = l;
	l->pending++;
	LIST_INSERT_HEAD(&l->half_open, c, of_listener);
}

static enum roce_cm_counter
no_room(struct roce_cm *cm, const struct roce_cm_listener *l, const struct roce_cm_rx *rx)
{
	const uint32_t scope = cm_scope(&rx->src, rx->port, rx->vlan);
	const struct cm_peer *peer = cm_peer_find(cm, &rx->src, scope);

	if (l->pending >= l->l.backlog)
		return ROCE_CM_C_REJECT_BACKLOG;
	if (peer && peer->half_open >= cm->cfg.max_half_open_peer)
		return ROCE_CM_C_REJECT_PEER;
	return cm_conn_refused(cm, &rx->src, scope, l->l.quota);
}

struct roce_cm_conn *
cm_request_create(struct roce_cm_listener *l, const struct roce_cm_rx *rx, bool sidr)
{
	const struct roce_cm_av av = cm_av_back(rx);
	const enum roce_cm_counter full = no_room(l->cm, l, rx);
	struct roce_cm_conn *c = NULL;
	int err;

	if (full == 0)
		c = cm_conn_create(l->cm, &av, l->l.quota, sidr, &err);
	if (c == NULL) {
		cm_count(l->cm, full ? full : ROCE_CM_C_REJECT_LIMIT);
		return NULL;
	}
	c->user = l->l.user;
	enqueue(l, c);
	return c;
}

static void
admit(struct roce_cm_listener *l, const struct roce_cm_msg *m, const struct roce_cm_rx *rx,
      struct roce_cm_event *ev, uint64_t now)
{
	struct roce_cm_conn *c = cm_request_create(l, rx, false);

	if (c == NULL) {
		cm_reply_rej(l->cm, m, rx, ROCE_CM_ABOUT_REQ, ROCE_CM_REJ_NO_RESOURCES, NULL, 0);
		return;
	}
	conn_fill(c, m);
	cm_add_remote_id(c);
	cm_add_remote_qpn(c);
	cm_set_state(c, ROCE_CM_REQ_RCVD);
	c->stranger_until = now + CM_STRANGER_NS;
	cm_arm(c, now + c->patience);
	ev->type = ROCE_CM_EV_REQ;
	ev->service_id = c->service_id;
	ev->listener = l;
	roce_cm_conn_params(c, &ev->params);
	cm_tell(c, ev);
}

static void
fresh(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx, uint64_t now)
{
	struct roce_cm_listener *l =
		cm_listener_find(cm, m->req.service_id, &rx->dst, rx->port);
	struct roce_cm_event ev = { 0 };
	struct refusal r = refuse(ROCE_CM_REJ_SERVICE_ID);

	if (l == NULL) {
		reject(cm, m, rx, &r, ROCE_CM_C_REJECT_SERVICE);
		return;
	}
	r = refuse(ROCE_CM_REJ_TRANSPORT);
	if (listener_takes(l, m->req.transport))
		r = check_path(m, rx);
	if (r.reason == 0 && !cm_request_header(l, m, rx, &ev))
		r = refuse(ROCE_CM_REJ_CONSUMER); /* as Linux's RDMA-CM, itself a consumer */
	if (r.reason)
		reject(cm, m, rx, &r, ROCE_CM_C_REJECT_INVALID);
	else
		admit(l, m, rx, &ev, now);
}

void
cm_on_req(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx,
	  uint64_t now)
{
	const uint32_t scope = cm_scope(&rx->src, rx->port, rx->vlan);
	const struct refusal r = check_identity(m, rx);
	struct roce_cm_conn *c;

	if (r.reason) {
		reject(cm, m, rx, &r, ROCE_CM_C_REJECT_INVALID);
		return;
	}
	c = cm_find_remote_id(cm, m->local_id, false, &rx->src, scope);
	if (c) {
		duplicate(c, m, rx, now);
		return;
	}
	c = cm_find_remote_qpn(cm, m->req.qpn, &rx->src, scope);
	if (c) {
		cm_reply_rej(cm, m, rx, ROCE_CM_ABOUT_REQ, ROCE_CM_REJ_STALE, NULL, 0);
		cm_stale(c, now);
		return;
	}
	fresh(cm, m, rx, now);
}
