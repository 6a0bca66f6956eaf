/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applications of the simulator, and the model that watches their handles: which event may come
 * when, and what must be true when nothing is left to happen.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"

#define SERVICE UINT64_C(0x1061c06)

static const char *const stage_names[] = { "none", "waiting", "offered", "replied", "up",
	"closing", "over", "asked" };

void
app_listen(struct sim_node *n)
{
	const struct roce_cm_listen l = { .service_id = SERVICE, .port = ROCE_CM_ANY_PORT,
		.rc = true, .sidr = true, .backlog = n->sim->p->backlog };

	if (roce_cm_listen(n->cm, &l, &n->listener) != 0)
		abort();
}

static struct sim_conn *
conn_new(struct sim_node *n, enum sim_stage stage)
{
	struct sim_conn *c;

	if (n->num_conns == SIM_CONNS)
		return NULL;
	c = &n->conns[n->num_conns++];
	*c = (struct sim_conn){ .node = n, .stage = stage };
	return c;
}

/* QPNs go round, so that one is used again late; and a crashed node begins anew. */
static uint32_t
qpn_take(struct sim_node *n)
{
	for (unsigned int i = 0; i < SIM_QPNS; i++) {
		const uint32_t q = n->next_qpn;

		n->next_qpn = q + 1 < 0x100 + SIM_QPNS ? q + 1 : 0x100;
		if (!n->held[q - 0x100]) {
			n->held[q - 0x100] = true;
			return q;
		}
	}
	return 0;
}

void
app_qpn_free(void *ctx, uint32_t qpn)
{
	struct sim_node *n = ctx;

	if (!n->held[qpn - 0x100])
		sim_fault(n->sim, "node %u: QPN %#x given back twice", n->index, qpn);
	n->held[qpn - 0x100] = false;
	/* the newest of this number is the one */
	for (unsigned int i = n->num_conns; i-- > 0;)
		if (n->conns[i].qpn == qpn) {
			const struct sim_conn *c = &n->conns[i];

			if (c->was_up && n->sim->now < c->down_at + 2 * SIM_LIFE)
				sim_fault(n->sim, "node %u: QPN %#x free while packets may come",
					n->index, qpn);
			return;
		}
}

/* How long an application takes. */
static uint64_t
think(struct sim *s)
{
	if (sim_chance(s, s->p->think))
		return (uint64_t)rng_below(&s->rng, 40000) * SIM_MS;
	return sim_chance(s, 300) ? 0 : rng_below(&s->rng, 2000000);
}

static void
act_later(struct sim_conn *c, uint64_t after)
{
	struct sim *s = c->node->sim;

	sim_at(s, s->now + after, (struct sim_event){ .what = SIM_APP, .conn = c });
}

static void
let_go(struct sim_conn *c)
{
	struct roce_cm_conn *conn = c->conn;

	sim_trace(c->node->sim, "node %u frees %08x (%s)", c->node->index, c->local_id,
		stage_names[c->stage]);
	c->conn = NULL;
	c->spoilt |= c->stage == SIM_WAIT || c->stage == SIM_OFFERED || c->stage == SIM_REPLIED;
	if (c->stage == SIM_UP) {
		c->down_at = c->node->sim->now;
		c->closed = true;
	}
	c->stage = SIM_OVER;
	roce_cm_conn_free(conn, c->node->sim->now);
}

/* ---- the active side begins ---------- */

static struct roce_cm_av
av_to(const struct sim_node *n, const struct sim_node *to)
{
	return (struct roce_cm_av){ .sgid = n->ip, .dgid = to->ip, .vlan = 0xffff,
		.pkey = 0xffff, .hop_limit = 64, .mtu = 3,
		.flow_label = rng_below(&n->sim->rng, 1 << 20) };
}

static void
app_ask(struct sim_node *n, const struct sim_node *to)
{
	const struct roce_cm_sidr q = { .av = av_to(n, to), .service_id = SERVICE };
	struct sim_conn *c = conn_new(n, SIM_ASKED);

	if (c == NULL)
		return;
	c->active = c->sidr = true;
	if (roce_cm_resolve(n->cm, &q, c, n->sim->now, &c->conn) != 0)
		c->stage = SIM_OVER;
	n->sim->asked++;
}

static void
remember(struct sim_conn *c)
{
	struct roce_cm_info info;

	roce_cm_conn_info(c->conn, &info);
	c->local_id = info.local_id;
	c->remote_id = info.remote_id;
	c->params = info.params;
}

/* One that another connection holds, or its timewait, is nobody's to use. */
static void
try_held_qpn(struct sim_node *n, const struct roce_cm_connect *good)
{
	const uint32_t qpn = 0x100 + rng_below(&n->sim->rng, 64);
	struct roce_cm_connect a = *good;
	struct roce_cm_conn *c;

	a.qpn = qpn;
	if (n->held[qpn - 0x100] && qpn != good->qpn && roce_cm_qpn_held(n->cm, qpn) &&
		roce_cm_connect(n->cm, &a, NULL, n->sim->now, &c) != -EBUSY)
		sim_fault(n->sim, "node %u: QPN %#x lent twice", n->index, qpn);
}

void
app_connect(struct sim_node *n)
{
	struct sim *s = n->sim;
	const struct sim_node *to = s->node[rng_below(&s->rng, s->p->nodes)];
	struct roce_cm_connect a = {
		.av = av_to(n, to), /* to itself, too */
		.service_id = SERVICE + sim_chance(s, 20),
		.psn = ROCE_CM_PSN_RANDOM,
		.initiator_depth = (uint8_t)rng_below(&s->rng, 130),
		.responder_resources = (uint8_t)rng_below(&s->rng, 130),
		.retry_count = 7,
		.rnr_retry = 7,
	};
	struct sim_conn *c;
	int rc;

	if (sim_chance(s, 100)) {
		app_ask(n, to);
		return;
	}
	c = conn_new(n, SIM_WAIT);
	a.qpn = qpn_take(n);
	if (c == NULL || a.qpn == 0)
		return;
	c->active = true;
	c->qpn = a.qpn;
	c->spoilt = a.service_id != SERVICE;
	try_held_qpn(n, &a);
	rc = roce_cm_connect(n->cm, &a, c, s->now, &c->conn);
	if (rc != 0) {
		if (rc != -ENOBUFS)
			sim_fault(s, "connect: %d", rc);
		c->stage = SIM_OVER;
		n->held[a.qpn - 0x100] = false;
		return;
	}
	s->connects++;
	remember(c);
	if (sim_chance(s, s->p->whims / 4))
		act_later(c, think(s)); /* and gives up */
}

/* ---- what is done when it has been thought about ---------- */

static void
answer_request(struct sim_conn *c)
{
	struct sim *s = c->node->sim;
	struct roce_cm_accept a = { .psn = ROCE_CM_PSN_RANDOM, .rnr_retry = 7,
		.initiator_depth = UINT8_MAX, .responder_resources = UINT8_MAX };
	int rc;

	if (sim_chance(s, s->p->whims)) {
		switch (rng_below(&s->rng, 4)) {
		case 0: let_go(c); return;
		case 1: roce_cm_mra(c->conn, 21, NULL, 0, s->now); break;
		case 2: c->spoilt = true; return; /* never answers: it expires */
		default:
			c->stage = SIM_OVER;
			c->spoilt = true;
			roce_cm_reject(c->conn, 28, NULL, 0, "no", 2, s->now);
			return;
		}
	}
	a.qpn = qpn_take(c->node);
	rc = roce_cm_accept(c->conn, &a, s->now);
	if (rc != 0) {
		sim_fault(s, "accept: %d", rc);
		return;
	}
	c->qpn = a.qpn;
	c->stage = SIM_OFFERED;
	roce_cm_conn_params(c->conn, &c->params);
}

static void
come_up(struct sim_conn *c)
{
	struct sim *s = c->node->sim;

	c->stage = SIM_UP;
	c->was_up = true;
	s->ups++;
	if (c->active)
		sim_data(c);
	if (sim_chance(s, 500))
		act_later(c, think(s) + rng_below(&s->rng, 2000) * SIM_MS); /* the end */
}

static void
answer_reply(struct sim_conn *c)
{
	struct sim *s = c->node->sim;

	if (sim_chance(s, s->p->whims)) {
		let_go(c);
		return;
	}
	if (roce_cm_rtu(c->conn, NULL, 0, s->now) != 0)
		sim_fault(s, "RTU refused");
	come_up(c);
}

static void
answer_question(struct sim_conn *c)
{
	const struct roce_cm_sidr_reply r = { .qpn = 0x77, .qkey = ROCE_CM_UDP_QKEY };

	if (c->active) {
		let_go(c);
		return;
	}
	if (!sim_chance(c->node->sim, c->node->sim->p->whims))
		roce_cm_sidr_reply(c->conn, &r, c->node->sim->now);
	let_go(c);
}

void
app_act(struct sim_conn *c)
{
	struct sim *s = c->node->sim;

	if (c->conn == NULL)
		return;
	switch (c->stage) {
	case SIM_WAIT:
		if (c->active)
			let_go(c);
		else
			answer_request(c);
		break;
	case SIM_REPLIED: answer_reply(c); break;
	case SIM_ASKED: answer_question(c); break;
	case SIM_UP:
		c->stage = SIM_CLOSING;
		c->down_at = s->now;
		c->closed = true;
		if (sim_chance(s, 300))
			let_go(c);
		else if (roce_cm_disconnect(c->conn, NULL, 0, s->now) != 0)
			sim_fault(s, "disconnect refused");
		break;
	case SIM_OVER:
		if (c->conn)
			let_go(c);
		break;
	default: break;
	}
}

/* ---- events ---------- */

static void
check_limits(const struct sim_node *n)
{
	const struct sim_profile *p = n->sim->p;
	struct roce_cm_sizes s;

	roce_cm_sizes(n->cm, &s);
	if ((p->backlog && s.half_open > p->backlog) || (p->max_conns && s.conns > p->max_conns))
		sim_fault(n->sim, "node %u: %u requests, %u records", n->index, s.half_open,
			s.conns);
}

static void
on_request(struct sim_node *n, struct roce_cm_conn *conn, const struct roce_cm_event *ev)
{
	const bool sidr = ev->type == ROCE_CM_EV_SIDR_REQ;
	struct sim_conn *c = conn_new(n, sidr ? SIM_ASKED : SIM_WAIT);

	check_limits(n);
	if (c == NULL) {
		roce_cm_conn_free(conn, n->sim->now);
		return;
	}
	c->sidr = sidr;
	c->conn = conn;
	remember(c);
	roce_cm_conn_set_user(conn, c);
	if (sim_chance(n->sim, 300))
		app_act(c); /* from within */
	else
		act_later(c, think(n->sim));
}

static bool
allowed(const struct sim_conn *c, enum roce_cm_event_type type)
{
	const bool end = type == ROCE_CM_EV_REJECTED || type == ROCE_CM_EV_DISCONNECTED ||
			 type == ROCE_CM_EV_UNREACHABLE;

	switch (c->stage) {
	case SIM_WAIT:
		return type == ROCE_CM_EV_REJECTED || type == ROCE_CM_EV_UNREACHABLE ||
		       (c->active && (type == ROCE_CM_EV_REP || type == ROCE_CM_EV_MRA));
	case SIM_OFFERED: return end || type == ROCE_CM_EV_ESTABLISHED || type == ROCE_CM_EV_MRA;
	case SIM_REPLIED: return end;
	case SIM_UP: return type == ROCE_CM_EV_REJECTED || type == ROCE_CM_EV_DISCONNECTED;
	case SIM_CLOSING: return type == ROCE_CM_EV_DISCONNECTED;
	case SIM_ASKED:
		return c->active ? type == ROCE_CM_EV_SIDR_REP : type == ROCE_CM_EV_UNREACHABLE;
	default: return false;
	}
}

/* The other side's record of it: the ids crossed, or the id of a REQ that was not answered. */
static struct sim_conn *
counterpart(const struct sim_conn *c)
{
	const struct sim *s = c->node->sim;

	for (unsigned int i = 0; i < s->p->nodes; i++) {
		struct sim_node *n = s->node[i];

		if (!net_ip_eq(&n->ip, &c->params.av.dgid))
			continue;
		for (unsigned int j = 0; j < n->num_conns; j++) {
			struct sim_conn *o = &n->conns[j];

			if (o->sidr || o->active == c->active)
				continue;
			if (c->active ? o->remote_id == c->local_id : o->local_id == c->remote_id)
				return o;
		}
	}
	return NULL;
}

/* An end must have a cause at the other side, and be heard of where little is lost. */
static void
check_end(const struct sim_conn *c, const struct roce_cm_event *ev)
{
	struct sim *s = c->node->sim;
	const struct sim_conn *o = counterpart(c);

	if (s->p->loss > SIM_LOSS_BORNE)
		return;
	if (ev->type == ROCE_CM_EV_DISCONNECTED && ev->status == -ETIMEDOUT)
		sim_fault(s, "node %u: no DREP for %08x", c->node->index, c->local_id);
	if (c->stage == SIM_UP && s->p->crashes == 0 && o && o->stage == SIM_UP && o->conn)
		sim_fault(s, "node %u: %08x ends, the other side is up", c->node->index,
			c->local_id);
}

static void
on_end(struct sim_conn *c, const struct roce_cm_event *ev)
{
	struct sim *s = c->node->sim;

	s->rejected += ev->type == ROCE_CM_EV_REJECTED;
	s->unreachable += ev->type == ROCE_CM_EV_UNREACHABLE;
	s->ends += ev->type == ROCE_CM_EV_DISCONNECTED;
	check_end(c, ev);
	if (c->stage == SIM_UP)
		c->down_at = s->now;
	c->stage = SIM_OVER;
	if (sim_chance(s, 500))
		let_go(c);
	else
		act_later(c, think(s));
}

static void
on_reply(struct sim_conn *c, const struct roce_cm_event *ev)
{
	(void)ev;
	remember(c);
	c->stage = SIM_REPLIED;
	if (sim_chance(c->node->sim, 300))
		app_act(c);
	else
		act_later(c, think(c->node->sim));
}

void
app_event(void *ctx, struct roce_cm_conn *conn, void *user, const struct roce_cm_event *ev)
{
	struct sim_node *n = ctx;
	struct sim_conn *c = user;

	if (ev->type == ROCE_CM_EV_REQ || ev->type == ROCE_CM_EV_SIDR_REQ) {
		on_request(n, conn, ev);
		return;
	}
	sim_trace(n->sim, "node %u told %d of %08x (%s)", n->index, ev->type, c->local_id,
		stage_names[c->stage]);
	if (c->conn != conn || !allowed(c, ev->type)) {
		sim_fault(n->sim, "node %u: event %d for a handle that is %s", n->index, ev->type,
			stage_names[c->stage]);
		return;
	}
	switch (ev->type) {
	case ROCE_CM_EV_MRA: break;
	case ROCE_CM_EV_REP: on_reply(c, ev); break;
	case ROCE_CM_EV_ESTABLISHED: come_up(c); break;
	default: on_end(c, ev); break;
	}
}

void
app_crash(struct sim_node *n)
{
	for (unsigned int i = 0; i < n->num_conns; i++) {
		if (n->conns[i].conn)
			n->conns[i].lost = true;
		n->conns[i].conn = NULL;
		n->conns[i].stage = SIM_OVER;
	}
	memset(n->held, 0, sizeof(n->held));
	n->next_qpn = 0x100; /* as kernels do: its QPNs come again soon */
}

/* ---- when all is quiet ---------- */

static void
check_agreement(struct sim *s, const struct sim_conn *a, const struct sim_conn *b)
{
	const struct roce_cm_params *p = &a->params, *q = &b->params;

	if (p->local_qpn != q->dest_qpn || q->local_qpn != p->dest_qpn ||
	    p->sq_psn != q->rq_psn || q->sq_psn != p->rq_psn || p->path_mtu != q->path_mtu ||
	    p->av.flow_label != q->av.flow_label ||
	    p->initiator_depth > q->responder_resources ||
	    q->initiator_depth > p->responder_resources)
		sim_fault(s, "two sides of %08x/%08x differ", a->local_id, b->local_id);
}

static void
check_handle(struct sim *s, struct sim_conn *c)
{
	const struct sim_conn *other;

	if (c->conn == NULL || c->sidr)
		return;
	if (c->stage != SIM_UP && c->stage != SIM_OVER) {
		sim_fault(s, "node %u: %08x stays %s", c->node->index, c->local_id,
			stage_names[c->stage]);
		return;
	}
	if (c->stage != SIM_UP)
		return;
	other = counterpart(c);
	if (other && other->stage == SIM_UP && other->conn) {
		check_agreement(s, c, other);
		return;
	}
	/*
	 * The other side has given up without being heard. Its QP is gone: ours will find out at
	 * its first request. It may only be so where messages get lost.
	 */
	s->orphans++;
	if (other == NULL && s->p->crashes == 0)
		sim_fault(s, "node %u: %08x is up with nobody", c->node->index, c->local_id);
	if (s->p->loss == 0 && s->p->crashes == 0 && s->p->whims == 0)
		sim_fault(s, "node %u: %08x is up, the other side is %s", c->node->index,
			c->local_id, other ? stage_names[other->stage] : "nowhere");
}

/* What nobody has spoilt must have come up, at both sides. */
static void
check_came_up(struct sim *s, const struct sim_conn *c)
{
	const struct sim_conn *o;

	if (!c->active || c->sidr || c->local_id == 0 || c->spoilt || s->p->crashes ||
		s->p->backlog || s->p->max_conns || s->p->loss > SIM_LOSS_BORNE)
		return;
	o = counterpart(c);
	/* the DREQ of who has closed at once may overtake the RTU */
	if (o == NULL || (!o->spoilt && !(c->was_up && (o->was_up || c->closed))))
		sim_fault(s, "node %u: %08x did not come up", c->node->index, c->local_id);
}

/* A QP of the peer's is connected once. */
static void
check_once(struct sim *s, const struct sim_conn *c)
{
	for (const struct sim_conn *o = c->node->conns; o < c; o++)
		if (o->conn && o->stage == SIM_UP && c->conn && c->stage == SIM_UP &&
			o->params.dest_qpn == c->params.dest_qpn &&
			net_ip_eq(&o->params.av.dgid, &c->params.av.dgid))
			sim_fault(s, "node %u: two connections with QP %#x", c->node->index,
				c->params.dest_qpn);
}

void
app_check_pairs(struct sim *s)
{
	for (unsigned int i = 0; i < s->p->nodes; i++)
		for (unsigned int j = 0; j < s->node[i]->num_conns; j++) {
			check_handle(s, &s->node[i]->conns[j]);
			check_came_up(s, &s->node[i]->conns[j]);
			check_once(s, &s->node[i]->conns[j]);
		}
}

void
app_free_all(struct sim *s)
{
	for (unsigned int i = 0; i < s->p->nodes; i++)
		for (unsigned int j = 0; j < s->node[i]->num_conns; j++)
			if (s->node[i]->conns[j].conn)
				let_go(&s->node[i]->conns[j]);
}

void
app_check_empty(struct sim *s)
{
	static const struct roce_cm_sizes none = { .listeners = 1 };
	struct roce_cm_sizes sizes;

	for (unsigned int i = 0; i < s->p->nodes; i++) {
		roce_cm_sizes(s->node[i]->cm, &sizes);
		if (memcmp(&sizes, &none, sizeof(sizes)) != 0)
			sim_fault(s, "node %u: %u records, %u peers left", i, sizes.conns,
				sizes.peers);
		for (unsigned int q = 0; q < SIM_QPNS; q++)
			if (s->node[i]->held[q])
				sim_fault(s, "node %u: QPN %#x never given back", i, q + 0x100);
	}
}
