/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many connections by the connection manager, against one daemon or two: both ends in this
 * process, a context each. Rounds of connecting and disconnecting as many at once as asked; prints
 * connections a second, and fails when one is lost.
 *
 *   cm_storm SERVER_SOCKET CLIENT_SOCKET ADDRESS TOTAL AT_ONCE
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "ex_cm.h"

struct end {
	struct ex_device dev;
	struct rnic_cm_channel *ch;
	struct rnic_cq *cq;
	struct rnic_qp_init_attr qa;
	struct rnic_cm_id **id;
	uint32_t num, up, over, timewait;
};

static struct end server, client;
static uint32_t at_once;

static void
end_open(struct end *e, const char *socket)
{
	struct rnic_cq_attr ca = { .cqe = 1024 };

	ex_open(&e->dev, socket, NULL, 1, -1);
	ex_check(rnic_cm_create_channel(e->dev.ctx, &e->ch), "event channel");
	ex_check(rnic_create_cq(e->dev.ctx, &ca, &e->cq), "completion queue");
	e->qa = (struct rnic_qp_init_attr){
		.send_cq = e->cq, .recv_cq = e->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	e->id = calloc(at_once, sizeof(struct rnic_cm_id *));
	if (!e->id)
		ex_fail("no memory");
}

static void
take_request(struct end *e, struct rnic_cm_id *id)
{
	if (e->num == at_once)
		ex_fail("more requests than were made");
	ex_check(rnic_cm_create_qp(id, e->dev.pd, &e->qa), "queue pair");
	ex_check(rnic_cm_accept(id, NULL), "accept");
	e->id[e->num++] = id;
}

static void
take(struct end *e, const struct rnic_cm_event *ev)
{
	switch (ev->event) {
	case RNIC_CM_EVENT_CONNECT_REQUEST:
		take_request(e, ev->id);
		break;
	case RNIC_CM_EVENT_ESTABLISHED:
		e->up++;
		break;
	case RNIC_CM_EVENT_DISCONNECTED:
		if (ev->status)
			ex_fail("disconnected: %s", rnic_strerror(ev->status));
		e->over++;
		break;
	case RNIC_CM_EVENT_ADDR_RESOLVED:
	case RNIC_CM_EVENT_ROUTE_RESOLVED:
		e->num++;
		break;
	case RNIC_CM_EVENT_TIMEWAIT_EXIT:
		e->timewait++;
		break;
	default:
		ex_fail("%s (%d)", rnic_cm_event_str(ev->event), ev->status);
	}
}

/** One event of either end. */
static void
pump(void)
{
	struct end *ends[2] = { &server, &client };
	struct pollfd p[2];

	for (int i = 0; i < 2; i++)
		p[i] = (struct pollfd){ .fd = rnic_cm_channel_fd(ends[i]->ch), .events = POLLIN };
	if (poll(p, 2, 30000) == 0)
		ex_fail("no event for 30 s: %u and %u up, %u and %u over", server.up, client.up,
			server.over, client.over);
	for (int i = 0; i < 2; i++) {
		struct rnic_cm_event *ev;

		if (!p[i].revents)
			continue;
		ex_check(rnic_cm_get_event(ends[i]->ch, &ev), "connection event");
		take(ends[i], ev);
		rnic_cm_ack_event(ev);
	}
}

static void
connect_all(const struct sockaddr_storage *to)
{
	struct rnic_cm_param *params = calloc(at_once, sizeof(*params));
	int n = (int)at_once;

	if (!params)
		ex_fail("no memory");
	if (ex_check(rnic_cm_create_ids(client.ch, RNIC_PS_TCP, 0, NULL, client.id, n), "ids") < n)
		ex_fail("fewer ids than wanted");
	client.num = 0;
	ex_check(rnic_cm_resolve_addrs(client.id, NULL, (const struct sockaddr *)to, 3000, NULL, n),
		 "addresses");
	while (client.num < at_once)
		pump();
	client.num = 0;
	ex_check(rnic_cm_resolve_routes(client.id, 3000, NULL, n), "routes");
	while (client.num < at_once)
		pump();
	ex_check(rnic_cm_create_qps(client.id, client.dev.pd, &client.qa, n), "queue pairs");
	for (int i = 0; i < n; i++)
		params[i] = (struct rnic_cm_param){ .retry_count = 7, .rnr_retry_count = 7 };
	ex_check(rnic_cm_connects(client.id, params, NULL, n), "connects");
	while (client.up < at_once || server.up < at_once)
		pump();
	free(params);
}

static void
disconnect_all(void)
{
	ex_check(rnic_cm_disconnects(client.id, NULL, (int)at_once), "disconnects");
	while (client.over < at_once || server.over < at_once)
		pump();
}

static void
forget(struct end *e)
{
	for (uint32_t i = 0; i < at_once; i++) {
		ex_check(rnic_cm_destroy_qp(e->id[i]), "end of a queue pair");
		ex_check(rnic_cm_destroy_id(e->id[i]), "end of an id");
	}
	e->num = e->up = e->over = 0;
}

int
main(int argc, char **argv)
{
	struct sockaddr_storage addr;
	struct rnic_cm_id *listener;
	uint64_t spent = 0, start;
	uint32_t total, done = 0;

	ex_program = "cm_storm";
	if (argc != 6)
		ex_fail("SERVER_SOCKET CLIENT_SOCKET ADDRESS TOTAL AT_ONCE");
	total = (uint32_t)ex_number("TOTAL", argv[4], 1, 1u << 24);
	at_once = (uint32_t)ex_number("AT_ONCE", argv[5], 1, 1u << 16);
	end_open(&server, argv[1]);
	end_open(&client, argv[2]);
	ex_cm_address(argv[3], 0, &addr);
	ex_check(rnic_cm_create_id(server.ch, RNIC_PS_TCP, 0, NULL, &listener), "listener");
	ex_check(rnic_cm_bind_addr(listener, (struct sockaddr *)&addr), "bind");
	ex_check(rnic_cm_listen(listener, 0), "listen");
	for (; done < total; done += at_once) {
		start = ex_now_ns();
		connect_all(&listener->src_addr);
		spent += ex_now_ns() - start;
		disconnect_all();
		forget(&server);
		forget(&client);
	}
	printf("%u connections, %.0f a second, %u at once\n", done,
	       (double)done / ((double)spent / 1e9), at_once);
	ex_check(rnic_cm_destroy_id(listener), "end of the listener");
	rnic_close(server.dev.ctx);
	rnic_close(client.dev.ctx);
	return 0;
}
