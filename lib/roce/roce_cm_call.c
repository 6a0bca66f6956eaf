/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the owner of a connection asks for. Each call names the states that it is for; in any
 * other it changes nothing.
 */
#include <errno.h>

#include <rte_common.h>

#include "roce_cm_priv.h"
#include "roce_code.h"

#define EXT_XRC 1 /* extended transport type of a REQ */

bool
cm_av_ok(const struct roce_cm_av *av)
{
	return net_ip_is_v4(&av->sgid) == net_ip_is_v4(&av->dgid) &&
	       !net_ip_is_zero(&av->dgid) && !net_ip_is_multicast(&av->dgid);
}

static unsigned int
private_room(uint16_t attr, bool has_ip)
{
	return roce_cm_private_max(attr) - (has_ip ? ROCE_CM_IP_LEN : 0);
}

/* RDMA-CM's header and the data into one buffer. */
static void
private_join(struct roce_cm_msg *m, uint8_t *buf, const struct roce_cm_ip *ip, const void *data,
	     uint8_t len)
{
	uint8_t at = 0;

	if (ip) {
		roce_cm_ip_emit(ip, buf);
		at = ROCE_CM_IP_LEN;
	}
	if (len)
		memcpy(buf + at, data, len);
	m->private_data = buf;
	m->private_len = at + len;
}

static bool
connect_ok(const struct roce_cm_connect *a)
{
	return cm_av_ok(&a->av) && a->private_len <= private_room(ROCE_CM_REQ, a->has_ip) &&
	       cm_qpn_ok(a->qpn) && (a->psn == ROCE_CM_PSN_RANDOM || a->psn <= 0xffffff) &&
	       a->transport != ROCE_CM_RD && roce_mtu_bytes(a->av.mtu) != 0 &&
	       a->av.sl < 8 && a->av.flow_label <= 0xfffff;
}

static uint8_t
or_default(uint8_t v, uint8_t dflt, uint8_t max)
{
	return RTE_MIN(v ? v : dflt, max);
}

static void
connect_fill(struct roce_cm_conn *c, const struct roce_cm_connect *a)
{
	const struct roce_cm *cm = c->cm;
	const uint8_t code = or_default(a->response_timeout, ROCE_CM_RESPONSE_TIMEOUT, 31);

	c->active = true;
	c->transport = (uint8_t)a->transport;
	c->service_id = a->service_id;
	c->tid = (uint64_t)cm->tid_high << 32 | c->local_id;
	c->packet_life = or_default(a->packet_life, ROCE_CM_PACKET_LIFE, 30);
	c->timeout = roce_cm_ack_timeout(cm->cfg.ack_delay, c->packet_life);
	c->interval = 2 * roce_timeout_ns(c->packet_life) +
		      cm_code_ns(code, CM_RESPONSE_CODE_MAX);
	c->max_retries = or_default(a->max_cm_retries, ROCE_CM_MAX_RETRIES, 15);
	c->local_qpn = a->qpn;
	c->rq_psn = a->psn == ROCE_CM_PSN_RANDOM ? roce_cm_draw_psn(c->cm) : a->psn;
	c->path_mtu = a->av.mtu;
	c->initiator_depth = RTE_MIN(a->initiator_depth, cm->cfg.max_rd_atomic);
	c->responder_resources = RTE_MIN(a->responder_resources, cm->cfg.max_rd_atomic);
	c->retry_count = RTE_MIN(a->retry_count, 7);
	c->rnr_retry = RTE_MIN(a->rnr_retry, 7);
	c->flow_control = a->flow_control;
}

static void
req_fill(struct roce_cm_msg *m, const struct roce_cm_conn *c, const struct roce_cm_connect *a)
{
	const uint8_t code = or_default(a->response_timeout, ROCE_CM_RESPONSE_TIMEOUT, 31);
	struct roce_cm_path *p = &m->req.primary;

	*m = (struct roce_cm_msg){
		.attr = ROCE_CM_REQ,
		.tid = c->tid,
		.local_id = c->local_id,
		.req = {
			.service_id = c->service_id,
			.ca_guid = c->cm->cfg.ca_guid,
			.qpn = c->local_qpn,
			.responder_resources = c->responder_resources,
			.initiator_depth = c->initiator_depth,
			.remote_response_timeout = code,
			.local_response_timeout = code,
			.transport = c->transport,
			.ext_transport = c->transport == ROCE_CM_EXTENDED ? EXT_XRC : 0,
			.flow_control = c->flow_control,
			.psn = c->rq_psn,
			.retry_count = c->retry_count,
			.pkey = c->av.pkey,
			.mtu = c->path_mtu,
			.rnr_retry = c->rnr_retry,
			.max_cm_retries = c->max_retries,
			.srq = a->srq,
		},
	};
	memcpy(p->local_gid, c->av.sgid.b, 16);
	memcpy(p->remote_gid, c->av.dgid.b, 16);
	p->flow_label = c->av.flow_label;
	p->tclass = c->av.tclass;
	p->hop_limit = c->av.hop_limit;
	p->sl = c->av.sl;
	p->ack_timeout = c->timeout;
}

int
roce_cm_connect(struct roce_cm *cm, const struct roce_cm_connect *a, void *user, uint64_t now,
		struct roce_cm_conn **out)
{
	uint8_t data[ROCE_CM_REQ_PRIVATE];
	struct roce_cm_conn *c;
	struct roce_cm_msg m;
	int rc;

	if (!connect_ok(a))
		return -EINVAL;
	if (roce_cm_qpn_held(cm, a->qpn))
		return -EBUSY;
	c = cm_conn_create(cm, &a->av, a->quota, false, &rc);
	if (c == NULL)
		return rc;
	c->user = user;
	if (c->av.hop_limit == 0)
		c->av.hop_limit = CM_HOP_LIMIT;
	connect_fill(c, a);
	req_fill(&m, c, a);
	private_join(&m, data, a->has_ip ? &a->ip : NULL, a->private_data, a->private_len);
	rc = cm_keep(c, &m);
	if (rc) {
		c->owned = false;
		cm_reap(c);
		return rc;
	}
	cm_add_local_qpn(c);
	cm_set_state(c, ROCE_CM_REQ_SENT);
	cm_send_first(c, now);
	*out = c;
	return 0;
}

/* ---- passive ---------- */

static int
accept_check(const struct roce_cm_conn *c, const struct roce_cm_accept *a)
{
	if (cm_in(c, S(IDLE)) && !c->active)
		return -ETIMEDOUT;
	if (!cm_in(c, S_REQ_IN) || !cm_qpn_ok(a->qpn) ||
	    (a->psn != ROCE_CM_PSN_RANDOM && a->psn > 0xffffff) ||
	    a->private_len > ROCE_CM_REP_PRIVATE)
		return -EINVAL;
	return roce_cm_qpn_held(c->cm, a->qpn) ? -EBUSY : 0;
}

static void
rep_fill(struct roce_cm_msg *m, const struct roce_cm_conn *c, const struct roce_cm_accept *a)
{
	const bool xrc = c->transport == ROCE_CM_EXTENDED;

	*m = (struct roce_cm_msg){
		.attr = ROCE_CM_REP,
		.tid = c->tid,
		.local_id = c->local_id,
		.remote_id = c->remote_id,
		.rep = {
			.ca_guid = c->cm->cfg.ca_guid,
			.qpn = xrc ? 0 : a->qpn,
			.eecn = xrc ? a->qpn : 0,
			.psn = a->psn == ROCE_CM_PSN_RANDOM ? roce_cm_draw_psn(c->cm) : a->psn,
			.responder_resources = RTE_MIN(a->responder_resources,
						       c->responder_resources),
			.initiator_depth = RTE_MIN(a->initiator_depth, c->initiator_depth),
			.target_ack_delay = c->cm->cfg.ack_delay,
			.failover = c->failover, /* 1: alternate paths are not supported */
			.flow_control = a->flow_control,
			.rnr_retry = RTE_MIN(a->rnr_retry, 7),
			.srq = a->srq || xrc,
		},
		.private_data = a->private_data,
		.private_len = a->private_len,
	};
}

int
roce_cm_accept(struct roce_cm_conn *c, const struct roce_cm_accept *a, uint64_t now)
{
	struct roce_cm_msg m;
	int rc = accept_check(c, a);

	if (rc)
		return rc;
	rep_fill(&m, c, a);
	rc = cm_keep(c, &m);
	if (rc)
		return rc;
	c->local_qpn = a->qpn;
	c->rq_psn = m.rep.psn;
	c->initiator_depth = m.rep.initiator_depth;
	c->responder_resources = m.rep.responder_resources;
	cm_add_local_qpn(c);
	cm_set_state(c, ROCE_CM_REP_SENT);
	cm_send_first(c, now);
	return 0;
}

int
roce_cm_established(struct roce_cm *cm, uint32_t qpn, uint64_t now)
{
	struct roce_cm_conn *c = cm_find_local_qpn(cm, qpn);

	(void)now;
	if (c && cm_in(c, S(ESTABLISHED)))
		return -EISCONN;
	if (c == NULL || !cm_in(c, S_REP_OUT))
		return -ENOTCONN;
	cm_disarm(c);
	cm_mad_drop(c);
	cm_set_state(c, ROCE_CM_ESTABLISHED);
	cm_tell_status(c, ROCE_CM_EV_ESTABLISHED, 0);
	return 0;
}

/* ---- both ---------- */

int
roce_cm_rtu(struct roce_cm_conn *c, const void *data, uint8_t len, uint64_t now)
{
	struct roce_cm_msg m = {
		.attr = ROCE_CM_RTU, .tid = c->tid, .local_id = c->local_id,
		.remote_id = c->remote_id, .private_data = data, .private_len = len,
	};

	(void)now;
	if (len > roce_cm_private_max(ROCE_CM_RTU))
		return -EINVAL;
	if (!cm_in(c, S_REP_IN))
		return cm_in(c, S(IDLE) | S(TIMEWAIT)) ? -ENOTCONN : -EINVAL;
	/* a repeated REP shall get the same: kept only where it says something */
	if (len && cm_keep(c, &m) != 0)
		return -ENOMEM;
	cm_set_state(c, ROCE_CM_ESTABLISHED);
	cm_send_rtu(c);
	return 0;
}

int
roce_cm_reject(struct roce_cm_conn *c, uint16_t reason, const void *info, uint8_t info_len,
	       const void *data, uint8_t len, uint64_t now)
{
	if (len > ROCE_CM_REJ_PRIVATE || info_len > ROCE_CM_INFO_MAX)
		return -EINVAL;
	if (!cm_in(c, S_REQ_IN | S_REP_IN))
		return -ENOTCONN;
	cm_send_rej(c, reason, info, info_len, data, len);
	if (cm_in(c, S_REQ_IN))
		cm_to_idle(c);
	else
		cm_to_timewait(c, now);
	return 0;
}

/* The request lives as long as the peer has now been told that it may take. */
int
roce_cm_mra(struct roce_cm_conn *c, uint8_t timeout, const void *data, uint8_t len, uint64_t now)
{
	if (len > roce_cm_private_max(ROCE_CM_MRA) || timeout > 31)
		return -EINVAL;
	if (!cm_in(c, S_REQ_IN | S_REP_IN))
		return -ENOTCONN;
	cm_send_mra(c, timeout, data, len);
	if (cm_in(c, S_REQ_IN)) {
		cm_set_state(c, ROCE_CM_MRA_REQ_SENT);
		cm_arm(c, now + c->patience + cm_code_ns(timeout, CM_MRA_CODE_MAX));
	} else {
		cm_set_state(c, ROCE_CM_MRA_REP_SENT);
	}
	return 0;
}

/*
 * What the wire needs when a connection ends before it is established (12.9.8): the peer's
 * request is refused, or it learns that its answer comes too late.
 */
static void
abandon(struct roce_cm_conn *c, uint64_t now)
{
	if (cm_in(c, S_REQ_OUT))
		cm_send_rej_timeout(c);
	else
		cm_send_rej(c, ROCE_CM_REJ_CONSUMER, NULL, 0, NULL, 0);
	cm_mad_drop(c);
	if (cm_in(c, S_REQ_IN))
		cm_to_idle(c);
	else
		cm_to_timewait(c, now);
}

int
roce_cm_disconnect(struct roce_cm_conn *c, const void *data, uint8_t len, uint64_t now)
{
	if (len > roce_cm_private_max(ROCE_CM_DREQ))
		return -EINVAL;
	if (cm_in(c, S(ESTABLISHED)))
		cm_send_dreq(c, data, len, now);
	else if (cm_in(c, S_REQ_OUT | S_REQ_IN | S_REP_OUT | S_REP_IN))
		abandon(c, now);
	else
		return -ENOTCONN;
	return 0;
}

int
roce_cm_drep(struct roce_cm_conn *c, const void *data, uint8_t len)
{
	const struct roce_cm_msg m = {
		.attr = ROCE_CM_DREP, .tid = c->tid, .local_id = c->local_id,
		.remote_id = c->remote_id, .private_data = data, .private_len = len,
	};

	return cm_in(c, S(DREQ_RCVD)) ? cm_keep(c, &m) : -ENOTCONN;
}

void
roce_cm_conn_free(struct roce_cm_conn *c, uint64_t now)
{
	if (c == NULL)
		return;
	c->owned = false;
	c->user = NULL;
	if (cm_in(c, S(SIDR_REQ_SENT)))
		cm_to_idle(c);
	else if (cm_in(c, S(SIDR_REQ_RCVD)))
		cm_sidr_refuse(c, now);
	else
		roce_cm_disconnect(c, NULL, 0, now);
	cm_reap(c);
}
