/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MADs that come: for each message a row with the states that take it and what it does there.
 * What no row wants is answered where the standard says so and counted, never more. REQs and
 * SIDR have files of their own.
 */
#include <errno.h>

#include <rte_common.h>

#include "roce_cm_priv.h"

struct input {
	struct roce_cm *cm;
	const struct roce_cm_msg *m;
	const struct roce_cm_rx *rx;
	uint64_t now;
};

struct rule {
	uint16_t states;
	void (*action)(struct roce_cm_conn *c, const struct input *in);
};

static void
tell_data(struct roce_cm_conn *c, const struct input *in, enum roce_cm_event_type type)
{
	struct roce_cm_event ev = {
		.type = type,
		.info = in->m->info,
		.info_len = in->m->info_len,
		.private_data = in->m->private_data,
		.private_len = in->m->private_len,
	};

	if (in->m->attr == ROCE_CM_REJ)
		ev.reason = in->m->rej.reason;
	roce_cm_conn_params(c, &ev.params);
	cm_tell(c, &ev);
}

/* ---- REP ---------- */

/* The peer's QP is connected already: what is there ends, and so does this attempt. */
static void
rep_stale(struct roce_cm_conn *c, struct roce_cm_conn *old, const struct input *in)
{
	struct roce_cm_event ev = { .type = ROCE_CM_EV_REJECTED, .reason = ROCE_CM_REJ_STALE };
	const uint32_t id = c->local_id;

	cm_reply_rej(in->cm, in->m, in->rx, ROCE_CM_ABOUT_REP, ROCE_CM_REJ_STALE, NULL, 0);
	cm_stale(old, in->now);
	if (cm_find_local_id(in->cm, id) != c || !cm_in(c, S_REQ_OUT))
		return; /* ended by who was told of the old one */
	cm_mad_drop(c);
	cm_to_timewait(c, in->now);
	cm_tell(c, &ev);
}

static void
rep_fill(struct roce_cm_conn *c, const struct roce_cm_msg *m)
{
	const struct roce_cm_rep *p = &m->rep;

	c->remote_id = m->local_id;
	c->dest_qpn = c->transport == ROCE_CM_EXTENDED ? p->eecn : p->qpn;
	c->sq_psn = p->psn;
	c->initiator_depth = RTE_MIN(c->initiator_depth, p->responder_resources);
	c->responder_resources = RTE_MIN(c->responder_resources, p->initiator_depth);
	c->rnr_retry = p->rnr_retry;
	c->flow_control = p->flow_control;
	c->peer_srq = p->srq;
	c->timeout = roce_cm_ack_timeout(p->target_ack_delay, c->packet_life);
}

static void
on_rep(struct roce_cm_conn *c, const struct input *in)
{
	const struct roce_cm_msg *m = in->m;
	const uint32_t qpn = c->transport == ROCE_CM_EXTENDED ? m->rep.eecn : m->rep.qpn;
	struct roce_cm_conn *old =
		cm_find_remote_qpn(in->cm, qpn, &c->peer->addr, c->peer->scope);

	if (m->local_id == 0 || !cm_qpn_ok(qpn)) {
		cm_count(in->cm, ROCE_CM_C_REJECT_INVALID);
		cm_reply_rej(in->cm, m, in->rx, ROCE_CM_ABOUT_REP,
			     m->local_id ? ROCE_CM_REJ_UNSUPPORTED : ROCE_CM_REJ_COMM_ID, NULL, 0);
		return;
	}
	if (old) {
		rep_stale(c, old, in);
		return;
	}
	cm_disarm(c);
	cm_mad_drop(c);
	rep_fill(c, m);
	cm_add_remote_id(c);
	cm_add_remote_qpn(c);
	cm_set_state(c, ROCE_CM_REP_RCVD);
	tell_data(c, in, ROCE_CM_EV_REP);
}

static void
on_rep_again(struct roce_cm_conn *c, const struct input *in)
{
	cm_count(in->cm, ROCE_CM_C_DUPLICATE);
	if (cm_in(c, S(ESTABLISHED)))
		cm_send_rtu(c);
	else
		roce_cm_mra(c, ROCE_CM_MRA_TIMEOUT, NULL, 0, in->now);
}

/* ---- the others ---------- */

static void
on_mra(struct roce_cm_conn *c, const struct input *in)
{
	if (c->mra_seen)
		cm_count(in->cm, ROCE_CM_C_DUPLICATE);
	cm_extend(c, in->m->mra.timeout, in->now);
	cm_set_state(c, cm_in(c, S_REQ_OUT) ? ROCE_CM_MRA_REQ_RCVD : ROCE_CM_MRA_REP_RCVD);
	tell_data(c, in, ROCE_CM_EV_MRA);
}

/* Nothing can be on its way from a peer that has refused the REQ, unless it holds it for an old
 * one; nor before a QPN was lent. */
static void
on_rej(struct roce_cm_conn *c, const struct input *in)
{
	const bool clean = cm_in(c, S_REQ_IN) ||
			   (cm_in(c, S_REQ_OUT) && in->m->rej.reason != ROCE_CM_REJ_STALE);
	const bool leaving = cm_in(c, S(DREQ_SENT)), told = c->told;

	cm_mad_drop(c);
	if (clean)
		cm_to_idle(c);
	else
		cm_to_timewait(c, in->now);
	c->told = true;
	/* to who is disconnecting it is the end, as the DREP would be */
	if (!told)
		tell_data(c, in, leaving ? ROCE_CM_EV_DISCONNECTED : ROCE_CM_EV_REJECTED);
}

static void
on_rtu(struct roce_cm_conn *c, const struct input *in)
{
	cm_disarm(c);
	cm_mad_drop(c);
	cm_set_state(c, ROCE_CM_ESTABLISHED);
	tell_data(c, in, ROCE_CM_EV_ESTABLISHED);
}

static void
on_rtu_again(struct roce_cm_conn *c, const struct input *in)
{
	(void)c;
	cm_count(in->cm, ROCE_CM_C_DUPLICATE);
}

/* The DREP leaves at once: the peer does not wait for our application. */
static void
on_dreq(struct roce_cm_conn *c, const struct input *in)
{
	const bool told = c->told;

	cm_disarm(c);
	cm_mad_drop(c);
	c->tid = in->m->tid;
	c->told = true;
	cm_set_state(c, ROCE_CM_DREQ_RCVD);
	/* without an end in IDLE the record outlives the callback */
	if (!told)
		tell_data(c, in, ROCE_CM_EV_DISCONNECTED);
	cm_send_drep(c);
	cm_to_timewait(c, in->now);
}

static void
on_dreq_again(struct roce_cm_conn *c, const struct input *in)
{
	cm_count(in->cm, ROCE_CM_C_DUPLICATE);
	if (c->mad == NULL)
		c->tid = in->m->tid;
	cm_send_drep(c);
}

static void
on_drep(struct roce_cm_conn *c, const struct input *in)
{
	const bool told = c->told;

	cm_mad_drop(c);
	cm_to_timewait(c, in->now);
	c->told = true;
	if (!told)
		tell_data(c, in, ROCE_CM_EV_DISCONNECTED);
}

static void
on_lap(struct roce_cm_conn *c, const struct input *in)
{
	(void)c;
	cm_reply_apr(in->cm, in->m, in->rx, ROCE_CM_APR_UNSUPPORTED);
}

/* ---- rows ---------- */

static const struct rule rules_mra[] = {
	{ S_REQ_OUT | S_REP_OUT, on_mra },
	{ 0 },
};
static const struct rule rules_rej[] = {
	{ S_REQ_OUT | S_REP_OUT | S_REQ_IN | S_REP_IN | S(ESTABLISHED) | S(DREQ_SENT), on_rej },
	{ 0 },
};
static const struct rule rules_rep[] = {
	{ S_REQ_OUT, on_rep },
	{ S_REP_IN | S(ESTABLISHED), on_rep_again },
	{ 0 },
};
static const struct rule rules_rtu[] = {
	{ S_REP_OUT, on_rtu },
	{ S(ESTABLISHED) | S(DREQ_SENT) | S(TIMEWAIT), on_rtu_again },
	{ 0 },
};
static const struct rule rules_dreq[] = {
	{ S_REP_OUT | S_REP_IN | S(ESTABLISHED) | S(DREQ_SENT), on_dreq },
	{ S(TIMEWAIT), on_dreq_again },
	{ 0 },
};
static const struct rule rules_drep[] = {
	{ S(DREQ_SENT), on_drep },
	{ 0 },
};
static const struct rule rules_lap[] = {
	{ S(ESTABLISHED), on_lap },
	{ 0 },
};
static const struct rule rules_none[] = { { 0 } };

static const struct rule *const rules[ROCE_CM_ATTRS] = {
#define RULES(id, list) [ROCE_CM_##id - ROCE_CM_ATTR_FIRST] = list
	RULES(REQ, rules_none),
	RULES(MRA, rules_mra),
	RULES(REJ, rules_rej),
	RULES(REP, rules_rep),
	RULES(RTU, rules_rtu),
	RULES(DREQ, rules_dreq),
	RULES(DREP, rules_drep),
	RULES(SIDR_REQ, rules_none),
	RULES(SIDR_REP, rules_none),
	RULES(LAP, rules_lap),
	RULES(APR, rules_none),
#undef RULES
};

static void
run_rules(struct roce_cm_conn *c, const struct input *in)
{
	for (const struct rule *r = rules[in->m->attr - ROCE_CM_ATTR_FIRST]; r->action; r++)
		if (cm_in(c, r->states)) {
			r->action(c, in);
			return;
		}
	cm_count(in->cm, ROCE_CM_C_DROP_STATE);
}

/* ---- whose message it is ---------- */

/* A message to us from the address that the connection is with. */
static bool
from_peer(const struct roce_cm_conn *c, const struct roce_cm_rx *rx)
{
	return net_ip_eq(&c->av.dgid, &rx->src) && net_ip_eq(&c->av.sgid, &rx->dst) &&
	       c->peer->scope == cm_scope(&rx->src, rx->port, rx->vlan);
}

/* Before its REP we do not know the peer's id: only these may say one, or none. */
static bool
may_be_first(const struct roce_cm_msg *m)
{
	return m->attr == ROCE_CM_REP ||
	       (m->attr == ROCE_CM_MRA && m->mra.about == ROCE_CM_ABOUT_REQ) ||
	       (m->attr == ROCE_CM_REJ && m->rej.about == ROCE_CM_ABOUT_REQ);
}

static bool
ids_match(const struct roce_cm_conn *c, const struct roce_cm_msg *m)
{
	if (c->remote_id == 0)
		return may_be_first(m);
	/* a late answer to our REQ means nothing once the REP has come */
	if (m->attr != ROCE_CM_REP && may_be_first(m))
		return false;
	return c->remote_id == m->local_id;
}

static struct roce_cm_conn *
find(const struct input *in)
{
	const struct roce_cm_msg *m = in->m;
	struct roce_cm_conn *c;

	if (m->attr == ROCE_CM_REJ && m->rej.reason == ROCE_CM_REJ_TIMEOUT && m->remote_id == 0) {
		/* a REQ is taken back by who never got an answer, nor our id */
		c = cm_find_remote_id(in->cm, m->local_id, false, &in->rx->src,
				      cm_scope(&in->rx->src, in->rx->port, in->rx->vlan));
		return c && cm_in(c, S_REQ_IN | S_REP_OUT) ? c : NULL;
	}
	c = cm_find_local_id(in->cm, m->remote_id);
	return c && !c->sidr && from_peer(c, in->rx) && ids_match(c, m) ? c : NULL;
}

/* Nobody's: the peer shall not wait. */
static void
unknown(const struct input *in)
{
	switch (in->m->attr) {
	case ROCE_CM_DREQ: /* C-60 */
		cm_reply_drep(in->cm, in->m, in->rx);
		break;
	case ROCE_CM_REP:
		cm_reply_rej(in->cm, in->m, in->rx, ROCE_CM_ABOUT_REP, ROCE_CM_REJ_COMM_ID, NULL,
			     0);
		break;
	case ROCE_CM_LAP:
		cm_reply_apr(in->cm, in->m, in->rx, ROCE_CM_APR_COMM_ID);
		break;
	default:
		break;
	}
	cm_count(in->cm, ROCE_CM_C_DROP_UNKNOWN);
}

static bool
dreq_names_qp(const struct roce_cm_conn *c, const struct roce_cm_msg *m)
{
	return m->attr != ROCE_CM_DREQ || m->dreq.qpn == c->local_qpn;
}

static void
of_connection(const struct input *in)
{
	struct roce_cm_conn *c = find(in);

	if (c == NULL)
		unknown(in);
	else if (!dreq_names_qp(c, in->m))
		cm_count(in->cm, ROCE_CM_C_DROP_STATE);
	else
		run_rules(c, in);
}

/* Another version of the class: the sender is told which one would do (12.6.7.2). */
static void
wrong_version(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx)
{
	static const uint8_t version = ROCE_MAD_CM_VERSION;

	cm_count(cm, ROCE_CM_C_REJECT_INVALID);
	if (m->attr == ROCE_CM_REQ)
		cm_reply_rej(cm, m, rx, ROCE_CM_ABOUT_REQ, ROCE_CM_REJ_CLASS_VERSION, &version, 1);
	else if (m->attr == ROCE_CM_SIDR_REQ)
		cm_reply_sidr(cm, m, rx, ROCE_CM_SIDR_VERSION);
}

void
roce_cm_input(struct roce_cm *cm, const void *mad, uint32_t len, const struct roce_cm_rx *rx,
	      uint64_t now)
{
	struct roce_cm_msg m;
	const struct input in = { cm, &m, rx, now };
	const int rc = roce_cm_parse(mad, len, &m);

	if (rc == ROCE_CM_PARSE_VERSION) {
		wrong_version(cm, &m, rx);
		return;
	}
	if (rc != ROCE_CM_PARSE_OK) {
		cm_count(cm, ROCE_CM_C_DROP_MALFORMED);
		return;
	}
	cm_count(cm, ROCE_CM_C_RX_REQ + (m.attr - ROCE_CM_ATTR_FIRST));
	switch (m.attr) {
	case ROCE_CM_REQ: cm_on_req(cm, &m, rx, now); break;
	case ROCE_CM_SIDR_REQ: cm_on_sidr_req(cm, &m, rx, now); break;
	case ROCE_CM_SIDR_REP: cm_on_sidr_rep(cm, &m, rx); break;
	default: of_connection(&in); break;
	}
}
