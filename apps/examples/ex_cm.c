/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting by address: all QPs of one end at once. Which QP a request is for its private data
 * says, a number of 4 bytes in network order.
 */
#include "ex_cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS 3000

void
ex_cm_address(const char *host, unsigned int port, struct sockaddr_storage *to)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	char service[8];
	int rc;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc != 0)
		ex_fail("%s: %s", host, gai_strerror(rc));
	memset(to, 0, sizeof(*to));
	memcpy(to, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
}

void
ex_cm_gid_address(const union rnic_gid *gid, unsigned int port, struct sockaddr_storage *to)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };

	memset(to, 0, sizeof(*to));
	if (memcmp(gid->raw, mapped, sizeof(mapped)) == 0) {
		memcpy(&a4.sin_addr, gid->raw + 12, 4);
		memcpy(to, &a4, sizeof(a4));
	} else {
		memcpy(&a6.sin6_addr, gid->raw, 16);
		memcpy(to, &a6, sizeof(a6));
	}
}

void
ex_cm_open(struct ex_cm *cm, struct ex_device *dev, struct rnic_qp *const *qp, int n)
{
	*cm = (struct ex_cm){ .dev = dev, .qp = qp, .n = n };
	cm->id = calloc((size_t)n, sizeof(struct rnic_cm_id *));
	if (!cm->id)
		ex_fail("no memory");
	ex_check(rnic_cm_create_channel(dev->ctx, &cm->channel), "event channel");
}

static struct rnic_cm_event *
next_event(struct ex_cm *cm)
{
	struct rnic_cm_event *e;

	ex_check(rnic_cm_get_event(cm->channel, &e), "connection event");
	return e;
}

static void
unexpected(const struct rnic_cm_event *e)
{
	if (e->event == RNIC_CM_EVENT_REJECTED && e->status == 8)
		ex_fail("nobody listens there");
	ex_fail("connection: %s (%d: %s)", rnic_cm_event_str(e->event), e->status,
		e->status < 0 ? rnic_strerror(e->status) : "the peer's reason");
}

/** One of each id. */
static void
expect(struct ex_cm *cm, uint32_t event)
{
	for (int i = 0; i < cm->n; i++) {
		struct rnic_cm_event *e = next_event(cm);

		if (e->event != event)
			unexpected(e);
		rnic_cm_ack_event(e);
	}
}

static struct rnic_cm_param
param_of(const struct ex_path *path, const uint32_t *number)
{
	return (struct rnic_cm_param){
		.private_data = number,
		.private_data_len = number ? sizeof(*number) : 0,
		.responder_resources = path->rd_atomic,
		.initiator_depth = path->rd_atomic,
		.retry_count = path->retry_cnt,
		.rnr_retry_count = path->rnr_retry,
	};
}

static void
set_timeout(struct rnic_cm_id *id, const struct ex_path *path)
{
	ex_check(rnic_cm_set_option(id, RNIC_CM_OPTION_ACK_TIMEOUT, path->timeout), "ACK timeout");
}

void
ex_cm_connect(struct ex_cm *cm, const struct sockaddr_storage *addr, const struct ex_path *path)
{
	struct rnic_cm_param *params = calloc((size_t)cm->n, sizeof(*params));
	uint32_t *number = calloc((size_t)cm->n, sizeof(*number));

	if (!params || !number)
		ex_fail("no memory");
	if (ex_check(rnic_cm_create_ids(cm->channel, RNIC_PS_TCP, cm->qp[0]->qp_type, NULL,
					cm->id, cm->n), "connection ids") < cm->n)
		ex_fail("fewer connection ids than wanted");
	ex_check(rnic_cm_resolve_addrs(cm->id, NULL, (const struct sockaddr *)addr, RESOLVE_MS,
				       NULL, cm->n), "address");
	expect(cm, RNIC_CM_EVENT_ADDR_RESOLVED);
	ex_check(rnic_cm_resolve_routes(cm->id, RESOLVE_MS, NULL, cm->n), "route");
	expect(cm, RNIC_CM_EVENT_ROUTE_RESOLVED);
	for (int i = 0; i < cm->n; i++) {
		number[i] = htonl((uint32_t)i);
		params[i] = param_of(path, &number[i]);
		set_timeout(cm->id[i], path);
		ex_check(rnic_cm_set_qp(cm->id[i], cm->qp[i]), "queue pair of a connection");
	}
	ex_check(rnic_cm_connects(cm->id, params, NULL, cm->n), "connect");
	expect(cm, RNIC_CM_EVENT_ESTABLISHED);
	free(params);
	free(number);
}

unsigned int
ex_cm_listen(struct ex_cm *cm, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *a;

	ex_check(rnic_cm_create_id(cm->channel, RNIC_PS_TCP, cm->qp[0]->qp_type, NULL,
				   &cm->listener), "listening id");
	ex_check(rnic_cm_bind_addr(cm->listener, (const struct sockaddr *)addr), "bind");
	ex_check(rnic_cm_listen(cm->listener, 0), "listen");
	/* the port is at the same place in both families */
	a = (const struct sockaddr_in6 *)&cm->listener->src_addr;
	return ntohs(a->sin6_port);
}

static void
accept_one(struct ex_cm *cm, struct rnic_cm_event *e, const struct ex_path *path)
{
	struct rnic_cm_param param = param_of(path, NULL);
	uint32_t number;

	if (e->param.private_data_len < sizeof(number))
		ex_fail("a request without a number");
	memcpy(&number, e->param.private_data, sizeof(number));
	number = ntohl(number);
	if (number >= (uint32_t)cm->n || cm->id[number])
		ex_fail("a request for a queue pair that there is not");
	cm->id[number] = e->id;
	set_timeout(e->id, path);
	ex_check(rnic_cm_set_qp(e->id, cm->qp[number]), "queue pair of a connection");
	ex_check(rnic_cm_accept(e->id, &param), "accept");
}

void
ex_cm_accept(struct ex_cm *cm, const struct ex_path *path, int watch)
{
	struct pollfd p[2] = { { .fd = rnic_cm_channel_fd(cm->channel), .events = POLLIN },
			       { .fd = watch, .events = POLLRDHUP } };

	for (int up = 0; up < cm->n;) {
		struct rnic_cm_event *e;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			ex_fail("poll: %s", strerror(errno));
		if (!p[0].revents && p[1].revents)
			ex_fail("the peer has gone");
		if (!p[0].revents)
			continue;
		e = next_event(cm);
		if (e->event == RNIC_CM_EVENT_CONNECT_REQUEST)
			accept_one(cm, e, path);
		else if (e->event == RNIC_CM_EVENT_ESTABLISHED)
			up++;
		else
			unexpected(e);
		rnic_cm_ack_event(e);
	}
}

void
ex_cm_close(struct ex_cm *cm)
{
	int n = 0;

	while (n < cm->n && cm->id[n])
		n++;
	if (n > 0)
		rnic_cm_disconnects(cm->id, NULL, n);
	for (int i = 0; i < n; i++) {
		rnic_cm_set_qp(cm->id[i], NULL);
		rnic_cm_destroy_id(cm->id[i]);
	}
	if (cm->listener)
		rnic_cm_destroy_id(cm->listener);
	rnic_cm_destroy_channel(cm->channel);
	free(cm->id);
}
