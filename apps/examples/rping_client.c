/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of rnic_rping: one step after the other. */
#include <stdlib.h>
#include <string.h>

#include "rping.h"

#define RESOLVE_MS 3000

static void
expect(struct rping *r, uint32_t event)
{
	struct rnic_cm_event *e;

	ex_check(rnic_cm_get_event(r->cm, &e), "connection event");
	if (e->event != event)
		ex_fail("connection: %s (%d: %s)", rnic_cm_event_str(e->event), e->status,
			e->status < 0 ? rnic_strerror(e->status) : "the peer's reason");
	rnic_cm_ack_event(e);
}

/** Until the server has answered and everything posted is done. */
static void
await_answer(struct rping_conn *c)
{
	struct rnic_wc wc[4];

	while (!c->heard || c->sends > 0) {
		int n = ex_wait(c->cq, 4, wc, -1);

		for (int i = 0; i < n; i++) {
			ex_check_wc(&wc[i]);
			if (wc[i].wr_id != RPING_WR_RECV) {
				c->sends--;
				continue;
			}
			rping_received(c);
			c->heard = true;
		}
	}
	c->heard = false;
}

/** As rping has it: a number, then letters that begin elsewhere each time. */
static void
fill(struct rping_conn *c, uint64_t ping)
{
	char *p = c->data->addr;
	int n = snprintf(p, c->r->size, "rdma-ping-%llu: ", (unsigned long long)ping);

	for (uint32_t i = (uint32_t)n, ch = 65 + ping % 58; i < c->r->size; i++, ch++)
		p[i] = (char)(ch > 122 ? ch = 65 : ch);
	p[c->r->size - 1] = 0;
	memset(c->sink->addr, 0xa5, c->r->size);
}

static void
ping(struct rping_conn *c, uint64_t number)
{
	fill(c, number);
	rping_send(c, c->data);
	await_answer(c);
	rping_send(c, c->sink);
	await_answer(c);
	if (c->r->validate && memcmp(c->data->addr, c->sink->addr, c->r->size))
		ex_fail("ping %llu came back wrong", (unsigned long long)number);
	if (c->r->verbose)
		printf("ping data: %s\n", (const char *)c->sink->addr);
}

static struct rping_conn *
dial(struct rping *r)
{
	struct rnic_cm_param param = { .responder_resources = 1, .initiator_depth = 1,
				       .retry_count = 7, .rnr_retry_count = 7 };
	struct sockaddr_storage addr;
	struct rnic_cm_id *id;
	struct rping_conn *c;

	ex_cm_address(r->host, r->port, &addr);
	ex_check(rnic_cm_create_id(r->cm, RNIC_PS_TCP, RNIC_QPT_RC, NULL, &id), "connection id");
	ex_check(rnic_cm_resolve_addr(id, NULL, (struct sockaddr *)&addr, RESOLVE_MS), "address");
	expect(r, RNIC_CM_EVENT_ADDR_RESOLVED);
	ex_check(rnic_cm_resolve_route(id, RESOLVE_MS), "route");
	expect(r, RNIC_CM_EVENT_ROUTE_RESOLVED);
	c = rping_conn_new(r, id);
	ex_check(rnic_cm_connect(id, &param), "connect");
	expect(r, RNIC_CM_EVENT_ESTABLISHED);
	return c;
}

void
rping_ask(struct rping *r)
{
	struct rping_conn *c = dial(r);
	uint64_t start = ex_now_ns();

	for (uint64_t n = 0; r->count == 0 || n < r->count; n++)
		ping(c, n);
	printf("%llu pings of %u bytes in %.3f seconds%s\n", (unsigned long long)r->count, r->size,
	       (double)(ex_now_ns() - start) / 1e9, r->validate ? ", all right" : "");
	ex_check(rnic_cm_disconnect(c->id), "disconnect");
	expect(r, RNIC_CM_EVENT_DISCONNECTED);
	rping_conn_free(c);
}
