/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our connection manager in the place of either side of each capture of the kernel's. It gets
 * what the other side sent; its application does what the kernel's did, when it did it; and each
 * message must be the kernel's, byte by byte, but for what docs/wire.md lists. Nothing is
 * masked that can be given: ids, the GUID, QPNs and PSNs are drawn as the kernel drew them.
 */
#include "cm_fixture.h"
#include "roce_cm_capture.h"

#define CAPTURED_MADS 156
#define KERNEL_AGENT 4 /* upper half of the transaction ids that the kernel makes */

struct golden {
	struct cm_fix *f;
	const char *name;
	uint8_t us[16]; /* the side that we are */
	uint32_t next_id;
	bool created;
	struct roce_cm_conn *conn[8];
	uint32_t their_id[8]; /* the peer's id of it, or of its REQ */
	unsigned int conns;
	unsigned int compared;
	/* DREQs that cross were received later than the captures, taken at one end, have them */
	uint8_t dreq[ROCE_MAD_LEN];
	bool dreq_waits;
};

static unsigned int compared_in_all;

/* The ids of the kernel, in its order; the first draws are the engine's own seeds. */
static void
drawn(void *ctx, void *buf, uint32_t len)
{
	struct golden *g = ctx;
	const uint32_t agent = KERNEL_AGENT;

	memset(buf, 0, len);
	if (len == sizeof(uint32_t))
		memcpy(buf, g->created ? &g->next_id : &agent, len);
}

static bool
golden_send(void *ctx, const struct roce_cm_av *av, const uint8_t *mad)
{
	return cm_fix_send(((struct golden *)ctx)->f, av, mad);
}

static void
golden_event(void *ctx, struct roce_cm_conn *conn, void *user, const struct roce_cm_event *ev)
{
	struct golden *g = ctx;

	(void)user;
	if (ev->type == ROCE_CM_EV_REQ || ev->type == ROCE_CM_EV_SIDR_REQ) {
		ck_assert_uint_lt(g->conns, 8);
		g->their_id[g->conns] = conn->remote_id;
		g->conn[g->conns++] = conn;
	}
}

static void
golden_qpn_free(void *ctx, uint32_t qpn)
{
	(void)ctx;
	(void)qpn;
}

static bool
ours(const struct golden *g, const struct cm_capture *m)
{
	return memcmp(m->src, g->us, 16) == 0;
}

static struct roce_cm_conn *
conn_of(struct golden *g, uint32_t local_id)
{
	for (unsigned int i = 0; i < g->conns; i++)
		if (g->conn[i]->local_id == local_id)
			return g->conn[i];
	ck_abort_msg("%s: no connection %#x", g->name, local_id);
}

/* A request's, which has got the kernel's id by being drawn from next_id. */
static struct roce_cm_conn *
conn_of_theirs(struct golden *g, uint32_t their_id)
{
	for (unsigned int i = 0; i < g->conns; i++)
		if (g->their_id[i] == their_id)
			return g->conn[i];
	ck_abort_msg("%s: no request %#x", g->name, their_id);
}

/* ---- what the kernel's application did ---------- */

static struct roce_cm_av
av_of(const struct cm_capture *f, const struct roce_cm_path *p, uint8_t mtu)
{
	struct roce_cm_av av = { .vlan = 0xffff, .pkey = 0xffff, .tclass = f->tclass, .mtu = mtu };

	memcpy(av.sgid.b, f->src, 16);
	memcpy(av.dgid.b, f->dst, 16);
	if (p) {
		av.flow_label = p->flow_label;
		av.tclass = p->tclass;
		av.hop_limit = p->hop_limit;
	}
	return av;
}

static void
do_connect(struct golden *g, const struct cm_capture *f, const struct roce_cm_msg *m)
{
	struct roce_cm_connect a = {
		.av = av_of(f, &m->req.primary, m->req.mtu),
		.service_id = m->req.service_id,
		.has_ip = true,
		.qpn = m->req.qpn,
		.psn = m->req.psn,
		.initiator_depth = m->req.initiator_depth,
		.responder_resources = m->req.responder_resources,
		.retry_count = m->req.retry_count,
		.rnr_retry = m->req.rnr_retry,
		.flow_control = m->req.flow_control,
		.srq = m->req.srq,
		.private_data = m->private_data + ROCE_CM_IP_LEN,
		.private_len = ROCE_CM_IP_REQ_PRIVATE,
	};

	memcpy(a.ip.src, f->src, 16);
	memcpy(a.ip.dst, f->dst, 16);
	a.ip.sport = (uint16_t)(m->private_data[2] << 8 | m->private_data[3]);
	a.av.flow_label = roce_cm_flow_label(a.ip.sport, roce_cm_service_port(a.service_id));
	g->next_id = m->local_id;
	ck_assert_int_eq(roce_cm_connect(g->f->cm, &a, NULL, g->f->now, &g->conn[g->conns]), 0);
	g->conns++;
}

static void
do_accept(struct golden *g, const struct roce_cm_msg *m)
{
	const struct roce_cm_accept a = {
		.qpn = m->rep.qpn,
		.psn = m->rep.psn,
		.initiator_depth = m->rep.initiator_depth,
		.responder_resources = m->rep.responder_resources,
		.rnr_retry = m->rep.rnr_retry,
		.flow_control = m->rep.flow_control,
		.srq = m->rep.srq,
		.private_data = m->private_data,
		.private_len = ROCE_CM_REP_PRIVATE,
	};

	ck_assert_int_eq(roce_cm_accept(conn_of_theirs(g, m->remote_id), &a, g->f->now), 0);
}

static void
do_resolve(struct golden *g, const struct cm_capture *f, const struct roce_cm_msg *m)
{
	struct roce_cm_sidr s = {
		.av = av_of(f, NULL, 3),
		.service_id = m->sidr_req.service_id,
		.has_ip = true,
		.private_data = m->private_data + ROCE_CM_IP_LEN,
		.private_len = ROCE_CM_IP_SIDR_PRIVATE,
	};

	ck_assert_int_eq(roce_cm_ip_parse(m->private_data, &s.ip), 0);
	g->next_id = m->local_id;
	ck_assert_int_eq(roce_cm_resolve(g->f->cm, &s, NULL, g->f->now, &g->conn[g->conns]), 0);
	g->conns++;
}

static void
do_sidr_reply(struct golden *g, const struct roce_cm_msg *m)
{
	const struct roce_cm_sidr_reply r = {
		.status = m->sidr_rep.status,
		.qpn = m->sidr_rep.qpn,
		.qkey = m->sidr_rep.qkey,
		.private_data = m->private_data,
		.private_len = ROCE_CM_SIDR_REP_PRIVATE,
	};

	ck_assert_int_eq(roce_cm_sidr_reply(conn_of_theirs(g, m->local_id), &r, g->f->now), 0);
}

static void
do_disconnect(struct golden *g, struct roce_cm_conn *c)
{
	if (roce_cm_conn_state(c) == ROCE_CM_REP_RCVD) {
		/* the RTU, which was lost before the capture */
		ck_assert_int_eq(roce_cm_rtu(c, NULL, 0, g->f->now), 0);
		cm_sent(g->f, ROCE_CM_RTU);
	}
	ck_assert_int_eq(roce_cm_disconnect(c, NULL, 0, g->f->now), 0);
}

static void
do_like_the_kernel(struct golden *g, const struct cm_capture *f, const struct roce_cm_msg *m)
{
	switch (m->attr) {
	case ROCE_CM_REQ: do_connect(g, f, m); break;
	case ROCE_CM_REP: do_accept(g, m); break;
	case ROCE_CM_RTU:
		ck_assert_int_eq(roce_cm_rtu(conn_of(g, m->local_id), NULL, 0, g->f->now), 0);
		break;
	case ROCE_CM_REJ:
		if (m->rej.reason == ROCE_CM_REJ_CONSUMER)
			roce_cm_reject(conn_of_theirs(g, m->remote_id), 28, NULL, 0,
				m->private_data, ROCE_CM_REJ_PRIVATE, g->f->now);
		break;
	case ROCE_CM_DREQ: do_disconnect(g, conn_of(g, m->local_id)); break;
	case ROCE_CM_SIDR_REQ: do_resolve(g, f, m); break;
	case ROCE_CM_SIDR_REP: do_sidr_reply(g, m); break;
	default: break; /* MRA, DREP: of themselves */
	}
}

/* ---- the comparison ---------- */

static bool
free_byte(const struct roce_cm_msg *m, unsigned int i)
{
	/* the id in a transaction id of one's own: the kernel has it in the other byte order */
	if (i >= 12 && i < 16)
		return (uint32_t)m->tid == __builtin_bswap32(m->local_id);
	/* LIDs mean nothing here: 0 (A17 CA17-34), the kernel has ffff */
	return m->attr == ROCE_CM_REQ && i >= 24 + 52 && i < 24 + 56;
}

static void
compare(struct golden *g, const struct cm_capture *f, const struct roce_cm_msg *m)
{
	struct cm_sent *s = cm_sent(g->f, m->attr);

	for (unsigned int i = 0; i < ROCE_MAD_LEN; i++)
		ck_assert_msg(s->mad[i] == f->mad[i] || free_byte(m, i),
			"%s #%u %s: byte %u is %02x, the kernel's %02x", g->name, f->c->number,
			roce_cm_attr_name(m->attr), i, s->mad[i], f->mad[i]);
	ck_assert_mem_eq(s->av.sgid.b, f->src, 16);
	ck_assert_mem_eq(s->av.dgid.b, f->dst, 16);
	ck_assert_uint_eq(s->av.tclass, f->tclass);
	g->compared++;
}

/* ---- a capture, as one of its sides ---------- */

static void
feed(struct golden *g, const uint8_t *mad, const uint8_t *from, const uint8_t *to, uint8_t tclass)
{
	struct roce_cm_rx rx = { .vlan = 0xffff, .pkey = 0xffff, .tclass = tclass, .mtu = 5 };

	memcpy(rx.src.b, from, 16);
	memcpy(rx.dst.b, to, 16);
	roce_cm_input(g->f->cm, mad, ROCE_MAD_LEN, &rx, g->f->now);
}

/* A DREQ of the peer waits for what answers it. */
static void
theirs(struct golden *g, const struct cm_capture *f, const struct roce_cm_msg *m)
{
	if (m->attr != ROCE_CM_DREQ) {
		feed(g, f->mad, f->src, f->dst, f->tclass);
		return;
	}
	/* data came before the RTU, which is not in the capture */
	roce_cm_established(g->f->cm, m->dreq.qpn, g->f->now);
	memcpy(g->dreq, f->mad, ROCE_MAD_LEN);
	g->dreq_waits = true;
}

static void
listen_like_the_kernel(struct golden *g, const struct roce_cm_msg *req)
{
	struct roce_cm_listen l = { .port = ROCE_CM_ANY_PORT, .ip = true };
	struct roce_cm_listener *ignored;

	l.service_id = req->attr == ROCE_CM_REQ ? req->req.service_id : req->sidr_req.service_id;
	l.rc = l.uc = req->attr == ROCE_CM_REQ;
	l.sidr = !l.rc;
	roce_cm_listen(g->f->cm, &l, &ignored); /* the second time it is there already */
}

/* What of the capture is known before it is played: ids are drawn when a REQ comes. */
static uint32_t
id_that_answers(const char *name, const struct roce_cm_msg *req, bool *refused)
{
	struct cm_capture f = { .c = capture_open(name) };
	struct roce_cm_msg m;
	uint32_t id = 1;

	*refused = false;
	while (cm_capture_next(&f)) {
		roce_cm_parse(f.mad, ROCE_MAD_LEN, &m);
		if ((m.attr == ROCE_CM_REP || m.attr == ROCE_CM_REJ) &&
		    m.remote_id == req->local_id && m.local_id != 0)
			id = m.local_id;
		if (m.attr == ROCE_CM_REJ && m.rej.reason == ROCE_CM_REJ_SERVICE_ID)
			*refused = true;
	}
	capture_close(f.c);
	return id;
}

static uint64_t
guid_of(const char *name, const uint8_t *us)
{
	struct cm_capture f = { .c = capture_open(name) };
	struct roce_cm_msg m;
	uint64_t guid = 0;

	while (cm_capture_next(&f)) {
		roce_cm_parse(f.mad, ROCE_MAD_LEN, &m);
		if (memcmp(f.src, us, 16) == 0 && m.attr == ROCE_CM_REQ)
			guid = m.req.ca_guid;
		if (memcmp(f.src, us, 16) == 0 && m.attr == ROCE_CM_REP)
			guid = m.rep.ca_guid;
	}
	capture_close(f.c);
	return guid;
}

static void
golden_open(struct golden *g)
{
	struct roce_cm_config cfg = { .send_mad = golden_send, .event = golden_event,
		.qpn_free = golden_qpn_free, .random = drawn, .ctx = g };

	g->f = cm_fix_new(NULL);
	roce_cm_free(g->f->cm);
	cfg.ca_guid = guid_of(g->name, g->us);
	g->f->cm = roce_cm_create(&cfg, g->f->now);
	g->created = true;
}

static void
play(struct golden *g)
{
	struct cm_capture f = { .c = capture_open(g->name) };
	const uint64_t start = g->f->now;
	uint64_t first_us = 0;
	struct roce_cm_msg m;
	bool refused;

	while (cm_capture_next(&f)) {
		ck_assert_int_eq(roce_cm_parse(f.mad, ROCE_MAD_LEN, &m), 0);
		first_us = first_us ? first_us : f.c->time_us;
		cm_until(g->f, start + (f.c->time_us - first_us) * 1000);
		if (ours(g, &f) && m.attr == ROCE_CM_REQ && g->next_id == m.local_id)
			continue; /* netem's copy: the network's, not the kernel's */
		if (ours(g, &f)) {
			if (m.attr == ROCE_CM_DREP && g->dreq_waits)
				feed(g, g->dreq, f.dst, f.src, f.tclass);
			do_like_the_kernel(g, &f, &m);
			compare(g, &f, &m);
			continue;
		}
		if (m.attr == ROCE_CM_REQ || m.attr == ROCE_CM_SIDR_REQ) {
			g->next_id = id_that_answers(g->name, &m, &refused);
			if (!refused)
				listen_like_the_kernel(g, &m);
		}
		theirs(g, &f, &m);
	}
	cm_silent(g->f);
	capture_close(f.c);
}

static void
play_as(const char *name, const uint8_t *us)
{
	struct golden g = { .name = name };

	memcpy(g.us, us, 16);
	golden_open(&g);
	play(&g);
	compared_in_all += g.compared;
	for (unsigned int i = 0; i < g.conns; i++)
		roce_cm_conn_free(g.conn[i], g.f->now);
	g.f->out_tail = g.f->out_head;
	cm_pass(g.f, 400 * CM_SEC);
	cm_fix_end(g.f);
}

static void
each_file(const char *name, void *arg)
{
	struct cm_capture f = { .c = capture_open(name) };
	uint8_t a[16], b[16];
	bool any = cm_capture_next(&f);

	(void)arg;
	memcpy(a, f.src, 16);
	memcpy(b, f.dst, 16);
	capture_close(f.c);
	if (!any)
		return;
	play_as(name, a); /* the active side */
	play_as(name, b);
}

START_TEST(golden__either_side_of_each_capture)
{
	capture_each("roce-", each_file, NULL);
	/* each message of the captures was ours to make once, but for a REQ that netem doubled */
	ck_assert_uint_eq(compared_in_all, CAPTURED_MADS - 1);
}
END_TEST

UNIT_MAIN("wire_cm_golden", golden__either_side_of_each_capture)
