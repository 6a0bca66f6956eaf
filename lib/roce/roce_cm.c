/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager itself: its making, its records from first to last, and what can be
 * asked about them. What calls do is in roce_cm_call.c, what messages do in roce_cm_input.c,
 * what time does in roce_cm_timer.c.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "roce.h"
#include "roce_cm_priv.h"

#define MAX_CONNS_DEFAULT (256u << 10)
#define MAX_HALF_OPEN_DEFAULT (64u << 10)
#define MAX_RESOLVED_DEFAULT 1024u
#define ACK_DELAY_DEFAULT 15 /* 134 ms, as rxe says */

static const struct {
	const char *name, *help;
} counter_desc[] = {
#define X(id, name, help) [ROCE_CM_C_##id] = {name, help},
	ROCE_CM_COUNTERS(X)
#undef X
};
static_assert(RTE_DIM(counter_desc) == ROCE_CM_C_COUNT, "one a counter");

const char *
roce_cm_counter_name(enum roce_cm_counter c)
{
	return counter_desc[c].name;
}

const char *
roce_cm_counter_help(enum roce_cm_counter c)
{
	return counter_desc[c].help;
}

static const char *const state_names[] = {
	[ROCE_CM_IDLE] = "IDLE",
	[ROCE_CM_REQ_SENT] = "REQ_SENT",
	[ROCE_CM_MRA_REQ_RCVD] = "MRA_REQ_RCVD",
	[ROCE_CM_REP_RCVD] = "REP_RCVD",
	[ROCE_CM_MRA_REP_SENT] = "MRA_REP_SENT",
	[ROCE_CM_REQ_RCVD] = "REQ_RCVD",
	[ROCE_CM_MRA_REQ_SENT] = "MRA_REQ_SENT",
	[ROCE_CM_REP_SENT] = "REP_SENT",
	[ROCE_CM_MRA_REP_RCVD] = "MRA_REP_RCVD",
	[ROCE_CM_ESTABLISHED] = "ESTABLISHED",
	[ROCE_CM_DREQ_SENT] = "DREQ_SENT",
	[ROCE_CM_DREQ_RCVD] = "DREQ_RCVD",
	[ROCE_CM_TIMEWAIT] = "TIMEWAIT",
	[ROCE_CM_SIDR_REQ_SENT] = "SIDR_REQ_SENT",
	[ROCE_CM_SIDR_REQ_RCVD] = "SIDR_REQ_RCVD",
	[ROCE_CM_SIDR_RESOLVED] = "SIDR_RESOLVED",
};
static_assert(RTE_DIM(state_names) == ROCE_CM_STATES, "one a state");

const char *
roce_cm_state_name(enum roce_cm_state s)
{
	return (unsigned int)s < ROCE_CM_STATES ? state_names[s] : "?";
}

static void
set_defaults(struct roce_cm_config *cfg)
{
	if (cfg->ack_delay == 0)
		cfg->ack_delay = ACK_DELAY_DEFAULT;
	if (cfg->max_rd_atomic == 0)
		cfg->max_rd_atomic = ROCE_MAX_RD_ATOMIC;
	if (cfg->max_conns == 0)
		cfg->max_conns = MAX_CONNS_DEFAULT;
	if (cfg->max_half_open_peer == 0)
		cfg->max_half_open_peer = MAX_HALF_OPEN_DEFAULT;
	if (cfg->max_conns_peer == 0)
		cfg->max_conns_peer = cfg->max_conns;
	if (cfg->max_resolved == 0)
		cfg->max_resolved = MAX_RESOLVED_DEFAULT;
}

struct roce_cm *
roce_cm_create(const struct roce_cm_config *cfg, uint64_t now)
{
	struct roce_cm *cm = calloc(1, sizeof(*cm));

	if (cm == NULL)
		return NULL;
	cm->cfg = *cfg;
	set_defaults(&cm->cfg);
	if (cm_tables_create(cm) != 0) {
		free(cm);
		return NULL;
	}
	cfg->random(cfg->ctx, cm->seed, sizeof(cm->seed));
	cfg->random(cfg->ctx, &cm->tid_high, sizeof(cm->tid_high));
	TAILQ_INIT(&cm->resolved);
	wheel_init(&cm->wheel, now);
	return cm;
}

/* ---- records ---------- */

enum roce_cm_counter
cm_conn_refused(struct roce_cm *cm, const struct net_ip *addr, uint32_t scope,
		const struct roce_cm_quota *quota)
{
	const struct cm_peer *peer;

	/* answers that merely linger give way, and their peers with them */
	if (cm->sizes.conns >= cm->cfg.max_conns && !TAILQ_EMPTY(&cm->resolved))
		cm_resolved_forget(TAILQ_FIRST(&cm->resolved));
	if (cm->sizes.conns >= cm->cfg.max_conns || (quota && quota->used >= quota->max))
		return ROCE_CM_C_REJECT_LIMIT;
	peer = cm_peer_find(cm, addr, scope);
	if (peer && peer->conns >= cm->cfg.max_conns_peer)
		return ROCE_CM_C_REJECT_PEER;
	return 0;
}

static void
conn_release(struct roce_cm_conn *c)
{
	struct roce_cm *cm = c->cm;

	cm_disarm(c);
	cm_mad_drop(c);
	cm_del_local_id(c);
	cm_del_remote_id(c);
	cm_del_remote_qpn(c);
	cm_del_local_qpn(c);
	cm_peer_put(cm, c->peer);
	if (c->quota)
		c->quota->used--;
	cm_quota_reap(c->quota);
	cm->sizes.conns--;
	free(c);
}

struct roce_cm_conn *
cm_conn_create(struct roce_cm *cm, const struct roce_cm_av *av, struct roce_cm_quota *quota,
	       bool sidr, int *err)
{
	const uint32_t scope = cm_scope(&av->dgid, av->port, av->vlan);
	struct roce_cm_conn *c;

	*err = cm_conn_refused(cm, &av->dgid, scope, quota) ? -ENOBUFS : -ENOMEM;
	if (*err == -ENOBUFS)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->cm = cm;
	c->peer = cm_peer_get(cm, &av->dgid, scope);
	if (c->peer == NULL) {
		free(c);
		return NULL;
	}
	c->av = *av;
	c->sidr = sidr;
	c->owned = true;
	c->quota = quota;
	if (quota)
		quota->used++;
	cm->sizes.conns++;
	cm_add_local_id(c);
	return c;
}

/* What a state counts as; `by` is 1 or -1. */
static void
state_weigh(struct roce_cm_conn *c, uint32_t by)
{
	struct roce_cm_sizes *s = &c->cm->sizes;

	if (cm_in(c, S_HALF_OPEN)) {
		s->half_open += by;
		c->peer->half_open += by;
	}
	if (cm_in(c, S(TIMEWAIT)))
		s->timewait += by;
	if (cm_in(c, S(SIDR_RESOLVED)))
		s->resolved += by;
}

void
cm_set_state(struct roce_cm_conn *c, enum roce_cm_state state)
{
	state_weigh(c, -1);
	c->state = (uint8_t)state;
	state_weigh(c, 1);
	if (c->listener && !cm_in(c, S_HALF_OPEN)) {
		LIST_REMOVE(c, of_listener);
		c->listener->pending--;
		c->listener = NULL;
	}
}

static void
qpn_give_back(struct roce_cm_conn *c)
{
	if (!c->in_local_qpn)
		return;
	cm_del_local_qpn(c);
	c->cm->cfg.qpn_free(c->cm->cfg.ctx, c->local_qpn);
}

void
cm_to_idle(struct roce_cm_conn *c)
{
	cm_disarm(c);
	cm_mad_drop(c);
	cm_set_state(c, ROCE_CM_IDLE);
	cm_del_remote_id(c);
	cm_del_remote_qpn(c);
	qpn_give_back(c);
}

void
cm_reap(struct roce_cm_conn *c)
{
	if (!c->owned && cm_in(c, S(IDLE)))
		conn_release(c);
}

/*
 * The peer's QPN is its own to use again, so it is forgotten here (as Linux does); its
 * communication id is not: a REQ with it is an old one.
 */
void
cm_to_timewait(struct roce_cm_conn *c, uint64_t now)
{
	cm_set_state(c, ROCE_CM_TIMEWAIT);
	cm_del_remote_qpn(c);
	cm_arm(c, now + cm_code_ns(c->timeout, CM_TIMEWAIT_CODE_MAX));
}

void
cm_mad_drop(struct roce_cm_conn *c)
{
	free(c->mad);
	c->mad = NULL;
}

void
cm_tell(struct roce_cm_conn *c, struct roce_cm_event *ev)
{
	struct roce_cm *cm = c->cm;

	if (c->owned)
		cm->cfg.event(cm->cfg.ctx, c, c->user, ev);
	else
		cm_reap(c);
}

void
cm_tell_status(struct roce_cm_conn *c, enum roce_cm_event_type type, int status)
{
	struct roce_cm_event ev = { .type = type, .status = status };

	cm_tell(c, &ev);
}

void
roce_cm_free(struct roce_cm *cm)
{
	struct roce_cm_listener *l;
	struct roce_cm_conn *c;

	if (cm == NULL)
		return;
	for (uint32_t i = 0; i < CM_LISTENER_BUCKETS; i++)
		while ((l = LIST_FIRST(&cm->listeners[i])) != NULL)
			roce_cm_listener_free(l);
	for (uint32_t i = 0; i <= cm->mask; i++)
		while ((c = LIST_FIRST(&cm->local_ids[i])) != NULL)
			conn_release(c);
	cm_tables_free(cm);
	free(cm);
}

/* ---- questions ---------- */

void
roce_cm_conn_set_user(struct roce_cm_conn *c, void *user)
{
	c->user = user;
}

void *
roce_cm_conn_user(const struct roce_cm_conn *c)
{
	return c->user;
}

enum roce_cm_state
roce_cm_conn_state(const struct roce_cm_conn *c)
{
	return c->state;
}

/*
 * Responder resources are rounded up to a power of two: Linux's rxe rounds its depth up and
 * may have as many requests under way. The wire has the exact number.
 */
static uint8_t
resources_round(const struct roce_cm *cm, uint8_t n)
{
	uint32_t most = RTE_MAX(cm->cfg.max_rd_atomic, n);

	return (uint8_t)RTE_MIN(rte_align32pow2(n), most);
}

void
roce_cm_conn_params(const struct roce_cm_conn *c, struct roce_cm_params *p)
{
	*p = (struct roce_cm_params){
		.av = c->av,
		.transport = c->transport,
		.local_qpn = c->local_qpn,
		.dest_qpn = c->dest_qpn,
		.rq_psn = c->rq_psn,
		.sq_psn = c->sq_psn,
		.path_mtu = c->path_mtu,
		.initiator_depth = c->initiator_depth,
		.responder_resources = resources_round(c->cm, c->responder_resources),
		.timeout = c->timeout,
		.retry_count = c->retry_count,
		.rnr_retry = c->rnr_retry,
		.flow_control = c->flow_control,
		.peer_srq = c->peer_srq,
	};
}

bool
roce_cm_qpn_held(const struct roce_cm *cm, uint32_t qpn)
{
	return cm_find_local_qpn(cm, qpn) != NULL;
}

const uint64_t *
roce_cm_counters(const struct roce_cm *cm)
{
	return cm->counters;
}

void
roce_cm_conn_info(const struct roce_cm_conn *c, struct roce_cm_info *info)
{
	*info = (struct roce_cm_info){
		.state = c->state,
		.active = c->active,
		.owned = c->owned,
		.local_id = c->local_id,
		.remote_id = c->remote_id,
		.service_id = c->service_id,
		.retries_left = c->retries_left,
		.deadline = wheel_armed(&c->timer) ? c->timer.deadline : UINT64_MAX,
	};
	roce_cm_conn_params(c, &info->params);
}

void
roce_cm_walk(const struct roce_cm *cm, void (*each)(void *arg, const struct roce_cm_info *info),
	     void *arg)
{
	const struct roce_cm_conn *c;
	struct roce_cm_info info;

	for (uint32_t i = 0; i <= cm->mask; i++)
		LIST_FOREACH(c, &cm->local_ids[i], by_local_id) {
			roce_cm_conn_info(c, &info);
			each(arg, &info);
		}
}

void
roce_cm_sizes(const struct roce_cm *cm, struct roce_cm_sizes *sizes)
{
	*sizes = cm->sizes;
}

uint32_t
roce_cm_draw_psn(struct roce_cm *cm)
{
	uint32_t psn;

	cm->cfg.random(cm->cfg.ctx, &psn, sizeof(psn));
	return psn & 0xffffff;
}

/*
 * 4.096 us * 2^code shall be twice the packet life and the delay. A code more doubles the time:
 * the larger of the two, and one more only when the other is at least half of it.
 */
uint8_t
roce_cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life)
{
	const unsigned int trip = packet_life + 1u;
	const unsigned int max = RTE_MAX(trip, ack_delay), min = RTE_MIN(trip, ack_delay);

	return (uint8_t)RTE_MIN(max + (min + 1 >= max), 31u);
}
