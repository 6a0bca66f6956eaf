/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids before they are connected: port numbers, addresses, states, and what hostile clients say. */
#include <bsd/stdlib.h>

#include "ctl_cm_fixture.h"

static struct chan ch;

static void
addr_setup(void)
{
	setup();
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "198.51.100.1/24", 0), 0);
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "2001:db8::1/64", 0), 0);
	ch = make_chan(&cl);
}

static struct ring_cm_addr
v6(const char *text, uint16_t port)
{
	struct ring_cm_addr a = {.port = port, .version = 6};
	struct net_ip ip;

	ck_assert_int_eq(net_ip_parse(text, &ip), 0);
	memcpy(a.ip.raw, ip.b, sizeof(a.ip.raw));
	return a;
}

static uint32_t
tcp_id(void)
{
	return make_id(&ch, RING_CM_PS_TCP, RING_QPT_RC);
}

static int
bind_new(struct ring_cm_addr a)
{
	struct ring_ctrl_cm_addr_rep rep;
	uint32_t id = tcp_id();
	int err = bind_id(&cl, id, a, &rep);

	if (err < 0)
		ck_assert_int_eq(destroy_id(&cl, id, NULL), 0);
	return err;
}

static int
set_option(uint32_t id, uint32_t option, uint32_t value)
{
	struct ring_ctrl_cm_option_req req = {.id = id, .option = option, .value = value};

	return fx_call(&cl, RING_CTRL_CM_SET_OPTION, &req, NULL);
}

/* ---- port numbers ---------- */

START_TEST(bind__free_ports_differ)
{
	struct ring_ctrl_cm_addr_rep a, b;

	ck_assert_int_eq(bind_id(&cl, tcp_id(), own(0), &a), 0);
	ck_assert_int_eq(bind_id(&cl, tcp_id(), own(0), &b), 0);
	ck_assert_uint_ge(a.src.port, 32768);
	ck_assert_uint_lt(a.src.port, 61000);
	ck_assert_uint_ne(a.src.port, b.src.port);
	ck_assert_uint_eq(a.port, 1);
	ck_assert_int_eq(bind_id(&cl, tcp_id(), v4(0, 0, 0, 0, 0), &a), 0);
	ck_assert_uint_eq(a.port, 0); /* any */
}
END_TEST

START_TEST(bind__conflicts)
{
	ck_assert_int_eq(bind_new(own(5000)), 0);
	ck_assert_int_eq(bind_new(own(5000)), -EADDRINUSE);
	ck_assert_int_eq(bind_new(v4(0, 0, 0, 0, 5000)), -EADDRINUSE);
	ck_assert_int_eq(bind_new(v6("::", 5000)), -EADDRINUSE); /* takes IPv4 too */
	ck_assert_int_eq(bind_new(v4(198, 51, 100, 1, 5000)), 0);
	ck_assert_int_eq(bind_new(v6("2001:db8::1", 5000)), 0);
	ck_assert_int_eq(bind_new(v6("::", 5001)), 0);
	ck_assert_int_eq(bind_new(own(5001)), -EADDRINUSE);
}
END_TEST

START_TEST(bind__afonly_leaves_ipv4_alone)
{
	struct ring_ctrl_cm_addr_rep rep;
	uint32_t id = tcp_id();

	ck_assert_int_eq(set_option(id, RING_CM_OPT_AFONLY, 1), 0);
	ck_assert_int_eq(bind_new(v4(0, 0, 0, 0, 5000)), 0);
	ck_assert_int_eq(bind_id(&cl, id, v6("::", 5000), &rep), 0);
	ck_assert_int_eq(set_option(id, RING_CM_OPT_AFONLY, 0), -EINVAL); /* too late */
}
END_TEST

START_TEST(bind__reuseaddr_needs_both_and_nobody_listening)
{
	struct ring_ctrl_cm_addr_rep rep;
	uint32_t id[3];

	for (int i = 0; i < 3; i++)
		id[i] = tcp_id();
	ck_assert_int_eq(set_option(id[0], RING_CM_OPT_REUSEADDR, 1), 0);
	ck_assert_int_eq(set_option(id[1], RING_CM_OPT_REUSEADDR, 1), 0);
	ck_assert_int_eq(bind_id(&cl, id[0], own(5000), &rep), 0);
	ck_assert_int_eq(bind_id(&cl, id[1], own(5000), &rep), 0);
	ck_assert_int_eq(bind_id(&cl, id[2], own(5000), &rep), -EADDRINUSE);
	ck_assert_int_eq(arg_call(&cl, RING_CTRL_CM_LISTEN, id[0], 1), -EADDRINUSE);
	ck_assert_int_eq(destroy_id(&cl, id[1], NULL), 0);
	ck_assert_int_eq(arg_call(&cl, RING_CTRL_CM_LISTEN, id[0], 1), 0);
	ck_assert_int_eq(set_option(id[2], RING_CM_OPT_REUSEADDR, 1), 0);
	ck_assert_int_eq(bind_id(&cl, id[2], own(5000), &rep), -EADDRINUSE);
}
END_TEST

START_TEST(bind__spaces_are_apart)
{
	struct ring_ctrl_cm_addr_rep rep;

	ck_assert_int_eq(bind_new(own(5000)), 0);
	ck_assert_int_eq(
		bind_id(&cl, make_id(&ch, RING_CM_PS_UDP, RING_QPT_UD), own(5000), &rep), 0);
	ck_assert_int_eq(
		bind_id(&cl, make_id(&ch, RING_CM_PS_IB, RING_QPT_RC), own(5000), &rep), 0);
}
END_TEST

START_TEST(bind__privileged_ports)
{
	struct ctl_client *c = TAILQ_FIRST(&fx_dev->clients);
	uid_t uid = c->uid;

	c->uid = 1000;
	ck_assert_int_eq(bind_new(own(1023)), -EACCES);
	ck_assert_int_eq(bind_new(own(1024)), 0);
	c->uid = 0;
	ck_assert_int_eq(bind_new(own(1023)), 0);
	c->uid = uid;
}
END_TEST

START_TEST(bind__own_addresses_alone)
{
	struct ring_cm_addr odd = own(5000);

	ck_assert_int_eq(bind_new(v4(192, 0, 2, 2, 0)), -EADDRNOTAVAIL);
	ck_assert_int_eq(bind_new(v6("2001:db8::2", 0)), -EADDRNOTAVAIL);
	odd.version = 6; /* a mapped address is IPv4's */
	ck_assert_int_eq(bind_new(odd), -EINVAL);
	odd = own(5000);
	odd.reserved = 1;
	ck_assert_int_eq(bind_new(odd), -EINVAL);
	odd = (struct ring_cm_addr){0};
	ck_assert_int_eq(bind_new(odd), -EINVAL);
}
END_TEST

/* B122, B130 */
START_TEST(resolve__special_addresses)
{
	static const struct {
		uint8_t a[4];
		int err;
		uint8_t src[4];
	} rows[] = {
		{{127, 0, 0, 1}, 0, {192, 0, 2, 1}},
		{{0, 0, 0, 0}, 0, {192, 0, 2, 1}},
		{{192, 0, 2, 1}, 0, {192, 0, 2, 1}},
		{{198, 51, 100, 1}, 0, {198, 51, 100, 1}},
		{{255, 255, 255, 255}, -ENETUNREACH, {0}},
		{{192, 0, 2, 255}, -ENETUNREACH, {0}},
		{{203, 0, 113, 1}, -ENETUNREACH, {0}},
		{{239, 1, 2, 3}, 0, {192, 0, 2, 1}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t *a = rows[i].a;
		struct ring_ctrl_cm_event_rep ev;
		uint32_t id = tcp_id();

		ck_assert_int_eq(resolve_to(&cl, id, v4(a[0], a[1], a[2], a[3], 7)), 0);
		ev = next_event(&ch);
		ck_assert_msg(ev.result == rows[i].err, "row %zu: %d", i, ev.result);
		ck_assert_uint_eq(
			ev.event, rows[i].err ? RING_CM_ADDR_ERROR : RING_CM_ADDR_RESOLVED);
		if (rows[i].err)
			continue;
		ck_assert_mem_eq(ev.src.ip.raw + 12, rows[i].src, 4);
		ck_assert_uint_ge(ev.src.port, 32768);
		ck_assert_uint_eq(ev.dst.port, 7);
	}
}
END_TEST

START_TEST(resolve__ipv6)
{
	struct ring_ctrl_cm_event_rep ev;
	uint32_t id = tcp_id();

	ck_assert_int_eq(resolve_to(&cl, id, v6("::1", 7)), 0);
	ev = expect_event(&ch, RING_CM_ADDR_RESOLVED, 0);
	ck_assert_mem_eq(ev.dst.ip.raw, v6("2001:db8::1", 0).ip.raw, 16);
	ck_assert_uint_eq(ev.src.version, 6);
}
END_TEST

/* Nobody answers, and the time limit is told, not the neighbour table's. */
START_TEST(resolve__times_out_and_may_be_tried_again)
{
	uint32_t id = tcp_id();

	ck_assert_int_eq(resolve_to(&cl, id, v4(192, 0, 2, 77, 7)), 0);
	ck_assert_int_eq(resolve_to(&cl, id, v4(192, 0, 2, 77, 7)), -EINVAL); /* under way */
	for (int i = 0; i < 10; i++)
		fx_step();
	fx_dev->sh.clock.ns0 += 1100000000;
	ck_assert_int_lt(expect_event(&ch, RING_CM_ADDR_ERROR, -ETIMEDOUT).result, 0);
	ck_assert_int_eq(resolve_to(&cl, id, own(7)), 0);
	expect_event(&ch, RING_CM_ADDR_RESOLVED, 0);
	/* and one that goes while it waits */
	id = tcp_id();
	ck_assert_int_eq(resolve_to(&cl, id, v4(192, 0, 2, 78, 7)), 0);
	ck_assert_int_eq(destroy_id(&cl, id, NULL), 0);
	ck_assert_uint_eq(TAILQ_FIRST(&fx_dev->clients)->user->resolves, 0);
}
END_TEST

/* Whoever only connects shares a number with those who connect elsewhere. */
START_TEST(resolve__numbers_are_shared_by_peers)
{
	struct ring_ctrl_cm_addr_req req = {.src = own(40000), .timeout_ms = 100};
	uint32_t id[3];

	for (int i = 0; i < 3; i++)
		id[i] = tcp_id();
	req.id = id[0];
	req.dst = own(1);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_RESOLVE_ADDR, &req, NULL), 0);
	expect_event(&ch, RING_CM_ADDR_RESOLVED, 0);
	req.id = id[1];
	req.dst = own(2);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_RESOLVE_ADDR, &req, NULL), 0);
	expect_event(&ch, RING_CM_ADDR_RESOLVED, 0);
	req.id = id[2];
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_RESOLVE_ADDR, &req, NULL), 0);
	expect_event(&ch, RING_CM_ADDR_ERROR, -EADDRINUSE);
}
END_TEST

/* ---- listening ---------- */

START_TEST(listen__unbound_gets_a_number)
{
	struct ring_ctrl_cm_query_rep q;
	struct ring_ctrl_handle_req req;
	uint32_t id = tcp_id();

	ck_assert_int_eq(arg_call(&cl, RING_CTRL_CM_LISTEN, id, 5), 0);
	req = (struct ring_ctrl_handle_req){.handle = id};
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_QUERY, &req, &q), 0);
	ck_assert_uint_eq(q.src.version, 4);
	ck_assert_uint_ge(q.src.port, 32768);
	ck_assert_uint_eq(q.port, 0);
	ck_assert_uint_ne(q.node_guid, 0);
}
END_TEST

/* Whether a request to that address reaches a listener of the channel's. */
static bool
taken(struct ring_cm_addr to)
{
	struct chan mine = make_chan(&cl);
	struct ring_ctrl_cm_conn_req r;
	struct ring_ctrl_cm_event_rep ev;
	bool told = false, refused = false;
	struct pair p;
	uint32_t id;

	make_pair(&p);
	ck_assert_int_eq(to_init(p.qpn[0]), 0);
	id = routed_id(&mine, RING_CM_PS_TCP, RING_QPT_RC, to);
	r = conn_req(id, p.qpn[0]);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), 0);
	while (!told && !refused) {
		told = poll_event(&ch, &ev);
		refused = poll_event(&mine, &ev);
	}
	ck_assert_int_eq(destroy_id(&cl, id, NULL), 0);
	while (told && !poll_event(&ch, &ev))
		; /* that it is over */
	return told;
}

START_TEST(listen__which_address_is_meant)
{
	uint16_t port = 0, p4, any6;

	listener(&ch, own(0), 0, &port);
	ck_assert(taken(own(port)));
	ck_assert(!taken(v4(198, 51, 100, 1, port)));
	listener(&ch, v4(0, 0, 0, 0, 0), 0, &p4);
	ck_assert(taken(v4(198, 51, 100, 1, p4)));
	ck_assert(!taken(v6("2001:db8::1", p4)));
	listener(&ch, v6("::", 0), 0, &any6);
	ck_assert(taken(own(any6)));
	ck_assert(taken(v6("2001:db8::1", any6)));
}
END_TEST

/* A specific address comes before any. */
START_TEST(listen__nearest_address_wins)
{
	struct ring_ctrl_cm_addr_rep rep;
	uint16_t port;
	uint32_t any = listener(&ch, v6("::", 0), 0, &port), id = tcp_id();

	ck_assert_int_eq(bind_id(&cl, id, own(port), &rep), -EADDRINUSE);
	(void)any;
}
END_TEST

/* ---- states ---------- */

/* What each call needs; an id that has gone no way yet is refused everything else. */
START_TEST(state__calls_out_of_turn)
{
	uint32_t id = tcp_id();
	struct ring_ctrl_cm_conn_req r = conn_req(id, 0);
	struct ring_ctrl_cm_reject_req no = {.id = id};
	struct ring_ctrl_cm_notify_req n = {.id = id, .event = RING_EVENT_COMM_EST};

	ck_assert_int_eq(arg_call(&cl, RING_CTRL_CM_RESOLVE_ROUTE, id, 0), -EINVAL);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CONNECT, &r, NULL), -EINVAL);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_ACCEPT, &r, NULL), -EINVAL);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_REJECT, &no, NULL), -EINVAL);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_NOTIFY, &n, NULL), -EINVAL);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_ESTABLISH, id), -EINVAL);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DISCONNECT, id), -EINVAL);
	ck_assert_int_eq(arg_call(&cl, RING_CTRL_CM_LISTEN, id, 0), 0);
	ck_assert_int_eq(arg_call(&cl, RING_CTRL_CM_LISTEN, id, 0), -EINVAL);
	ck_assert_int_eq(resolve_to(&cl, id, own(1)), -EINVAL);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_CM_DISCONNECT, id), -EINVAL);
}
END_TEST

START_TEST(create_id__types)
{
	static const struct {
		uint16_t ps;
		uint8_t type;
		int err;
	} rows[] = {
		{RING_CM_PS_TCP, RING_QPT_UC, 0},
		{RING_CM_PS_TCP, RING_QPT_UD, -EOPNOTSUPP},
		{RING_CM_PS_UDP, RING_QPT_RC, -EOPNOTSUPP},
		{RING_CM_PS_IB, RING_QPT_UD, 0},
		{RING_CM_PS_IPOIB, RING_QPT_UD, -EOPNOTSUPP},
		{0, RING_QPT_RC, -EOPNOTSUPP},
		{RING_CM_PS_TCP, 0, -EOPNOTSUPP},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ring_ctrl_cm_create_id_req req = {
			.channel = ch.handle, .ps = rows[i].ps, .qp_type = rows[i].type};

		ck_assert_int_eq(
			fx_call(&cl, RING_CTRL_CM_CREATE_ID, &req, NULL), rows[i].err);
	}
}
END_TEST

START_TEST(quota__of_ids)
{
	uint32_t quota = fx_dev->cfg.quota_qps;
	struct ring_ctrl_cm_create_id_req req = {
		.channel = ch.handle, .ps = RING_CM_PS_TCP, .qp_type = RING_QPT_RC};

	fx_dev->cfg.quota_qps = 3;
	for (int i = 0; i < 3; i++)
		tcp_id();
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CM_CREATE_ID, &req, NULL), -EDQUOT);
	fx_dev->cfg.quota_qps = quota;
}
END_TEST

/* ---- hostile clients ---------- */

/* Whatever the fields hold, the client is answered, and nothing stays when it goes. */
START_TEST(hostile__random_requests)
{
	static _Alignas(8) uint8_t body[512];
	uint32_t ids[8];

	for (int i = 0; i < 8; i++)
		ids[i] = tcp_id();
	srand(1);
	for (int n = 0; n < 20000; n++) {
		unsigned int op = RING_CTRL_CM_FIRST + (unsigned int)rand() % 0x18;
		const struct ring_ctrl_info *info = ring_ctrl_info(op);
		uint32_t word;

		if (info == NULL || op == RING_CTRL_CM_CREATE_CHANNEL ||
			op == RING_CTRL_CM_DESTROY_CHANNEL)
			continue;
		memset(body, 0, sizeof(body));
		for (int k = rand() % 6; k > 0; k--)
			body[(size_t)rand() % info->request_size] = (uint8_t)rand();
		word = rand() % 4 ? ids[rand() % 8] : ch.handle + (uint32_t)rand() % 64;
		if (op == RING_CTRL_CM_CREATE_ID || op == RING_CTRL_CM_GET_EVENT)
			word = ch.handle;
		memcpy(body, &word, sizeof(word));
		ck_assert_int_ne(fx_call(&cl, op, body, NULL), -ECONNRESET);
	}
}
END_TEST

/* Who does not read its events keeps no more than its ids allow. */
START_TEST(hostile__never_fetches)
{
	struct ctl_client *c = TAILQ_FIRST(&fx_dev->clients);
	struct ring_ctrl_cm_addr_req req = {.timeout_ms = 1, .dst = v4(203, 0, 113, 1, 7)};
	uint32_t refused = 0;

	req.id = tcp_id();
	for (uint32_t i = 0; i < 2 * CTL_CM_MAX_EVENTS; i++)
		refused += fx_call(&cl, RING_CTRL_CM_RESOLVE_ADDR, &req, NULL) == -EINVAL;
	ck_assert_uint_eq(refused, CTL_CM_MAX_EVENTS);
	ck_assert_uint_eq(c->state, CTL_CLIENT_OPEN);
}
END_TEST

FX_MAIN("ctl_cm_addr", addr_setup, cm_teardown, bind__free_ports_differ, bind__conflicts,
	bind__afonly_leaves_ipv4_alone, bind__reuseaddr_needs_both_and_nobody_listening,
	bind__spaces_are_apart, bind__privileged_ports, bind__own_addresses_alone,
	resolve__special_addresses, resolve__ipv6, resolve__times_out_and_may_be_tried_again,
	resolve__numbers_are_shared_by_peers, listen__unbound_gets_a_number,
	listen__which_address_is_meant, listen__nearest_address_wins, state__calls_out_of_turn,
	create_id__types, quota__of_ids, hostile__random_requests, hostile__never_fetches)
