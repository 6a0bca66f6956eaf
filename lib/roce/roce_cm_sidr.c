/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Service ID resolution (12.11): a question and an answer, no connection. The side that answers
 * remembers what it said for a while: a repeated question is the same question.
 */
#include <errno.h>

#include <rte_common.h>

#include "roce_cm_priv.h"

/* ---- the side that asks ---------- */

static uint64_t
sidr_tid(const struct roce_cm_conn *c)
{
	return (uint64_t)c->cm->tid_high << 32 | c->local_id;
}

static int
question_keep(struct roce_cm_conn *c, const struct roce_cm_sidr *s)
{
	uint8_t data[ROCE_CM_SIDR_REQ_PRIVATE];
	const uint8_t at = s->has_ip ? ROCE_CM_IP_LEN : 0;
	struct roce_cm_msg m = {
		.attr = ROCE_CM_SIDR_REQ,
		.tid = c->tid,
		.local_id = c->local_id,
		.sidr_req = { .service_id = s->service_id, .pkey = s->av.pkey },
		.private_data = data,
		.private_len = at + s->private_len,
	};

	if (s->has_ip)
		roce_cm_ip_emit(&s->ip, data);
	if (s->private_len)
		memcpy(data + at, s->private_data, s->private_len);
	return cm_keep(c, &m);
}

int
roce_cm_resolve(struct roce_cm *cm, const struct roce_cm_sidr *s, void *user, uint64_t now,
		struct roce_cm_conn **out)
{
	const unsigned int room = ROCE_CM_SIDR_REQ_PRIVATE - (s->has_ip ? ROCE_CM_IP_LEN : 0);
	struct roce_cm_conn *c;
	int rc;

	if (!cm_av_ok(&s->av) || s->private_len > room)
		return -EINVAL;
	c = cm_conn_create(cm, &s->av, s->quota, true, &rc);
	if (c == NULL)
		return rc;
	c->active = true;
	c->user = user;
	c->service_id = s->service_id;
	c->tid = sidr_tid(c);
	c->interval = cm_code_ns(s->response_timeout ? s->response_timeout :
						       ROCE_CM_RESPONSE_TIMEOUT,
				 CM_RESPONSE_CODE_MAX);
	c->max_retries = s->max_cm_retries ? RTE_MIN(s->max_cm_retries, 15) :
					     ROCE_CM_MAX_RETRIES;
	rc = question_keep(c, s);
	if (rc) {
		c->owned = false;
		cm_reap(c);
		return rc;
	}
	cm_set_state(c, ROCE_CM_SIDR_REQ_SENT);
	cm_send_first(c, now);
	*out = c;
	return 0;
}

void
cm_on_sidr_rep(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx)
{
	struct roce_cm_conn *c = cm_find_local_id(cm, m->local_id);
	struct roce_cm_event ev = {
		.type = ROCE_CM_EV_SIDR_REP,
		.reason = m->sidr_rep.status,
		.qkey = m->sidr_rep.qkey,
		.info = m->info,
		.info_len = m->info_len,
		.private_data = m->private_data,
		.private_len = m->private_len,
	};

	if (c == NULL || !c->sidr || !c->active || !net_ip_eq(&c->av.dgid, &rx->src) ||
	    !net_ip_eq(&c->av.sgid, &rx->dst) || m->sidr_rep.service_id != c->service_id) {
		cm_count(cm, ROCE_CM_C_DROP_UNKNOWN);
		return;
	}
	if (!cm_in(c, S(SIDR_REQ_SENT))) {
		cm_count(cm, ROCE_CM_C_DUPLICATE);
		return;
	}
	c->dest_qpn = m->sidr_rep.qpn;
	cm_to_idle(c);
	roce_cm_conn_params(c, &ev.params);
	cm_tell(c, &ev);
}

/* ---- the side that answers ---------- */

void
cm_resolved_forget(struct roce_cm_conn *c)
{
	TAILQ_REMOVE(&c->cm->resolved, c, resolved);
	cm_to_idle(c);
	cm_reap(c);
}

static void
admit(struct roce_cm_listener *l, const struct roce_cm_msg *m, const struct roce_cm_rx *rx,
      struct roce_cm_event *ev, uint64_t now)
{
	struct roce_cm_conn *c = cm_request_create(l, rx, true);

	if (c == NULL) {
		cm_reply_sidr(l->cm, m, rx, ROCE_CM_SIDR_NO_QP);
		return;
	}
	c->remote_id = m->local_id;
	c->tid = m->tid;
	c->service_id = m->sidr_req.service_id;
	cm_add_remote_id(c);
	cm_set_state(c, ROCE_CM_SIDR_REQ_RCVD);
	cm_arm(c, now + CM_EXPIRE_MIN);
	ev->type = ROCE_CM_EV_SIDR_REQ;
	ev->service_id = c->service_id;
	ev->listener = l;
	roce_cm_conn_params(c, &ev->params);
	cm_tell(c, ev);
}

static void
again(struct roce_cm_conn *c, uint64_t now)
{
	cm_count(c->cm, ROCE_CM_C_DUPLICATE);
	if (cm_in(c, S(SIDR_RESOLVED)))
		cm_send_mad(c->cm, &c->av, c->mad);
	else
		cm_arm(c, now + CM_EXPIRE_MIN);
}

void
cm_on_sidr_req(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx,
	       uint64_t now)
{
	struct roce_cm_conn *c = cm_find_remote_id(cm, m->local_id, true, &rx->src,
						   cm_scope(&rx->src, rx->port, rx->vlan));
	struct roce_cm_event ev = { 0 };
	struct roce_cm_listener *l;

	if (c && c->tid == m->tid && c->service_id == m->sidr_req.service_id) {
		again(c, now);
		return;
	}
	l = cm_listener_find(cm, m->sidr_req.service_id, &rx->dst, rx->port);
	if (l == NULL || !l->l.sidr) {
		cm_count(cm, ROCE_CM_C_REJECT_SERVICE);
		cm_reply_sidr(cm, m, rx, ROCE_CM_SIDR_UNSUPPORTED);
	} else if (((m->sidr_req.pkey ^ rx->pkey) & 0x7fff) ||
		   !cm_request_header(l, m, rx, &ev)) {
		cm_count(cm, ROCE_CM_C_REJECT_INVALID);
		cm_reply_sidr(cm, m, rx, ROCE_CM_SIDR_REJECT);
	} else {
		admit(l, m, rx, &ev, now);
	}
}

static void
linger(struct roce_cm_conn *c, uint64_t now)
{
	struct roce_cm *cm = c->cm;

	cm_set_state(c, ROCE_CM_SIDR_RESOLVED);
	cm_arm(c, now + CM_RESOLVED_NS);
	TAILQ_INSERT_TAIL(&cm->resolved, c, resolved);
	if (cm->sizes.resolved > cm->cfg.max_resolved)
		cm_resolved_forget(TAILQ_FIRST(&cm->resolved));
}

int
roce_cm_sidr_reply(struct roce_cm_conn *c, const struct roce_cm_sidr_reply *r, uint64_t now)
{
	const bool ok = r->status == ROCE_CM_SIDR_OK;
	const struct roce_cm_msg m = {
		.attr = ROCE_CM_SIDR_REP,
		.tid = c->tid,
		.local_id = c->remote_id,
		.sidr_rep = {
			.service_id = c->service_id,
			.qpn = ok ? r->qpn : 0,
			.qkey = ok ? r->qkey : 0,
			.status = r->status,
		},
		.info = r->info,
		.info_len = r->info_len,
		.private_data = r->private_data,
		.private_len = r->private_len,
	};
	int rc;

	if (!cm_in(c, S(SIDR_REQ_RCVD)))
		return -ENOTCONN;
	rc = cm_keep(c, &m);
	if (rc)
		return rc;
	cm_send_mad(c->cm, &c->av, c->mad);
	linger(c, now);
	return 0;
}

void
cm_sidr_refuse(struct roce_cm_conn *c, uint64_t now)
{
	const struct roce_cm_sidr_reply r = { .status = ROCE_CM_SIDR_REJECT };

	if (roce_cm_sidr_reply(c, &r, now) != 0)
		cm_to_idle(c);
}
