/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management by raw messages: both ends are ids of one device, which finds itself by
 * the hairpin. Time is moved by the clock's offset.
 */
#ifndef CTL_CM_FIXTURE_H
#define CTL_CM_FIXTURE_H

#include "ctl_cm.h"
#include "ctl_objects.h"
#include "roce_cm.h"

struct chan {
	struct fx_client *c;
	uint32_t handle;
	int pipe;
};

static inline uint32_t
jump_seconds(uint32_t s)
{
	fx_dev->sh.clock.ns0 += s * UINT64_C(1000000000);
	return s;
}

static inline struct chan
make_chan(struct fx_client *c)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_cm_create_channel_rep rep;
	struct chan ch = {.c = c};

	ck_assert_int_eq(fx_call(c, RING_CTRL_CM_CREATE_CHANNEL, &req, &rep), 0);
	ch.handle = rep.handle;
	ch.pipe = c->fds[c->num_fds - 1];
	return ch;
}

static inline uint32_t
make_id(const struct chan *ch, uint16_t ps, uint8_t type)
{
	struct ring_ctrl_cm_create_id_req req = {.channel = ch->handle, .ps = ps, .qp_type = type};
	struct ring_ctrl_handle_rep rep;

	ck_assert_int_eq(fx_call(ch->c, RING_CTRL_CM_CREATE_ID, &req, &rep), 0);
	return rep.handle;
}

static inline struct ring_cm_addr
v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port)
{
	return (struct ring_cm_addr){
		.ip.raw = {[10] = 0xff, 0xff, a, b, c, d}, .port = port, .version = 4};
}

static inline struct ring_cm_addr
own(uint16_t port)
{
	return v4(192, 0, 2, 1, port);
}

static inline int
bind_id(struct fx_client *c, uint32_t id, struct ring_cm_addr a, struct ring_ctrl_cm_addr_rep *rep)
{
	struct ring_ctrl_cm_addr_req req = {.id = id, .src = a};

	return fx_call(c, RING_CTRL_CM_BIND, &req, rep);
}

static inline int
arg_call(struct fx_client *c, unsigned int op, uint32_t id, uint32_t arg)
{
	struct ring_ctrl_cm_arg_req req = {.id = id, .arg = arg};

	return fx_call(c, op, &req, NULL);
}

static inline int
resolve_to(struct fx_client *c, uint32_t id, struct ring_cm_addr dst)
{
	struct ring_ctrl_cm_addr_req req = {.id = id, .timeout_ms = 1000, .dst = dst};

	return fx_call(c, RING_CTRL_CM_RESOLVE_ADDR, &req, NULL);
}

/** An event if one waits: a byte in the pipe stands for each. */
static inline bool
poll_event(const struct chan *ch, struct ring_ctrl_cm_event_rep *ev)
{
	struct ring_ctrl_cm_get_event_req req = {.channel = ch->handle};
	char b;

	fx_step();
	if (read(ch->pipe, &b, 1) != 1)
		return false;
	ck_assert_int_eq(fx_call(ch->c, RING_CTRL_CM_GET_EVENT, &req, ev), 0);
	return true;
}

static inline struct ring_ctrl_cm_event_rep
next_event(const struct chan *ch)
{
	struct ring_ctrl_cm_event_rep ev;

	while (!poll_event(ch, &ev))
		;
	return ev;
}

static inline struct ring_ctrl_cm_event_rep
expect_event(const struct chan *ch, unsigned int event, int result)
{
	struct ring_ctrl_cm_event_rep ev = next_event(ch);

	ck_assert_msg(ev.event == event && ev.result == result,
		"event %u (%d), and not %u (%d)", ev.event, ev.result, event, result);
	return ev;
}

static inline void
expect_none(const struct chan *ch)
{
	struct ring_ctrl_cm_event_rep ev;

	for (int i = 0; i < 50; i++)
		fx_step();
	ck_assert(!poll_event(ch, &ev));
}

/** An id that is ready to connect. */
static inline uint32_t
routed_id(const struct chan *ch, uint16_t ps, uint8_t type, struct ring_cm_addr dst)
{
	uint32_t id = make_id(ch, ps, type);

	ck_assert_int_eq(resolve_to(ch->c, id, dst), 0);
	ck_assert_uint_eq(expect_event(ch, RING_CM_ADDR_RESOLVED, 0).id, id);
	ck_assert_int_eq(arg_call(ch->c, RING_CTRL_CM_RESOLVE_ROUTE, id, 1000), 0);
	ck_assert_uint_eq(expect_event(ch, RING_CM_ROUTE_RESOLVED, 0).id, id);
	return id;
}

static inline uint32_t
listener(const struct chan *ch, struct ring_cm_addr a, uint32_t backlog, uint16_t *port)
{
	uint32_t id = make_id(ch, RING_CM_PS_TCP, RING_QPT_RC);
	struct ring_ctrl_cm_addr_rep rep;

	ck_assert_int_eq(bind_id(ch->c, id, a, &rep), 0);
	*port = rep.src.port;
	ck_assert_int_eq(arg_call(ch->c, RING_CTRL_CM_LISTEN, id, backlog), 0);
	return id;
}

static inline struct ring_ctrl_cm_conn_req
conn_req(uint32_t id, uint32_t qpn)
{
	return (struct ring_ctrl_cm_conn_req){
		.id = id,
		.qpn = qpn,
		.flags = RING_CM_MOVE_QP,
		.responder_resources = 4,
		.initiator_depth = 3,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static inline unsigned int
qp_state(uint32_t qpn)
{
	struct ring_ctrl_handle_req req = {.handle = qpn};
	struct ring_ctrl_query_qp_rep q;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &req, &q), 0);
	return q.attr.state;
}

static inline int
destroy_id(struct fx_client *c, uint32_t id, struct ring_ctrl_cm_moved_rep *rep)
{
	struct ring_ctrl_handle_req req = {.handle = id};

	return fx_call(c, RING_CTRL_CM_DESTROY_ID, &req, rep);
}

/** Nothing of it is left, timewait and all. */
static inline void
expect_cm_clean(void)
{
	struct roce_cm_sizes s;

	for (int i = 0; i < 40; i++) {
		jump_seconds(10);
		for (int k = 0; k < 20; k++)
			fx_step();
	}
	roce_cm_sizes(fx_dev->cm.roce, &s);
	ck_assert_uint_eq(s.conns, 0);
	ck_assert_uint_eq(s.listeners, 0);
	ck_assert_uint_eq(s.half_open, 0);
	ck_assert_uint_eq(fx_dev->cm.ports.count, 0);
	ck_assert_uint_eq(fx_dev->cm.by_qpn.count, 0);
}

static inline void
cm_teardown(void)
{
	fx_close(&cl);
	while (fx_dev->num_clients != 0)
		fx_step();
	expect_cm_clean();
	expect_clean();
	worker_device_destroy(fx_dev);
}

#endif /* CTL_CM_FIXTURE_H */
