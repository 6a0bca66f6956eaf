/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of rnic_rping: each connection goes its way by what completes on it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "rping.h"

/* ---- what completes ---------- */

static void
on_message(struct rping_conn *c)
{
	rping_received(c);
	if (c->peer.size == 0 || c->peer.size > RPING_MAX_SIZE)
		ex_fail("the client's ping has %u bytes", c->peer.size);
	if (c->state == RPING_SOURCE) {
		c->state = RPING_READ;
		rping_rdma(c, RNIC_WR_RDMA_READ, c->peer.size);
	} else if (c->state == RPING_SINK) {
		c->state = RPING_WRITE;
		rping_rdma(c, RNIC_WR_RDMA_WRITE, c->peer.size);
	} else {
		ex_fail("the client speaks out of turn");
	}
}

static void
on_rdma(struct rping_conn *c)
{
	if (c->state == RPING_READ) {
		if (c->r->verbose)
			printf("server ping data: %.*s\n", (int)c->peer.size,
			       (const char *)c->data->addr);
		c->state = RPING_SINK;
	} else {
		c->state = RPING_SOURCE;
		c->pings++;
	}
	rping_send(c, c->data); /* "go on" */
}

/** @return false: the connection is at its end. */
static bool
on_completions(struct rping_conn *c)
{
	struct rnic_wc wc;

	while (rnic_poll_cq(c->cq, 1, &wc) > 0) {
		if (wc.status != RNIC_WC_SUCCESS) {
			if (c->r->verbose)
				printf("server: %s\n", rnic_wc_status_str(wc.status));
			return false; /* the client has gone, as an event says or will say */
		}
		if (wc.wr_id == RPING_WR_RECV)
			on_message(c);
		else if (wc.wr_id == RPING_WR_RDMA)
			on_rdma(c);
	}
	return true;
}

static void
completions(struct rping *r)
{
	struct rping_conn *c;
	struct rnic_cq *cq;

	int rc = rnic_get_cq_event(r->comp, &cq);

	if (rc == -EAGAIN)
		return; /* it was of a queue that is no more */
	ex_check(rc, "completion event");
	rnic_ack_cq_events(cq, 1);
	c = cq->user_context;
	if (!on_completions(c))
		return;
	ex_check(rnic_req_notify_cq(cq, 0), "request of an event");
	on_completions(c); /* what came before that */
}

/* ---- connections ---------- */

static void
accept_one(struct rping *r, struct rnic_cm_event *e)
{
	struct rnic_cm_param param = {
		.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7 };
	struct rping_conn *c;
	int rc;

	if (!r->persistent && r->served) {
		rnic_cm_reject(e->id, NULL, 0);
		rnic_cm_destroy_id(e->id);
		return;
	}
	c = rping_conn_new(r, e->id);
	rc = rnic_cm_accept(e->id, &param);
	if (rc < 0) {
		rping_conn_free(c); /* the client has given up */
		return;
	}
	r->served = true;
	r->open++;
}

static void
close_one(struct rping *r, struct rping_conn *c)
{
	if (r->verbose)
		printf("server: %llu pings\n", (unsigned long long)c->pings);
	rnic_cm_disconnect(c->id);
	rping_conn_free(c);
	r->open--;
}

static void
connections(struct rping *r)
{
	struct rnic_cm_event *e;
	struct rping_conn *end = NULL;
	int rc = rnic_cm_get_event(r->cm, &e);

	if (rc == -EAGAIN)
		return;
	ex_check(rc, "connection event");
	if (r->verbose)
		printf("server: %s\n", rnic_cm_event_str(e->event));
	switch (e->event) {
	case RNIC_CM_EVENT_CONNECT_REQUEST:
		accept_one(r, e);
		break;
	case RNIC_CM_EVENT_ESTABLISHED:
	case RNIC_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RNIC_CM_EVENT_DISCONNECTED:
	case RNIC_CM_EVENT_REJECTED:
	case RNIC_CM_EVENT_UNREACHABLE:
	case RNIC_CM_EVENT_CONNECT_ERROR:
		end = e->id->user_context;
		break;
	default:
		ex_fail("connection: %s (%d)", rnic_cm_event_str(e->event), e->status);
	}
	rnic_cm_ack_event(e);
	if (end)
		close_one(r, end);
}

/** Whoever waits for several things blocks at none of them. */
static int
no_blocking(int fd)
{
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		ex_fail("fcntl: %s", strerror(errno));
	return fd;
}

void
rping_serve(struct rping *r)
{
	struct sockaddr_storage addr;
	struct rnic_cm_id *listener;
	struct pollfd p[2];

	ex_cm_address(r->host ? r->host : "0.0.0.0", r->port, &addr);
	ex_check(rnic_cm_create_id(r->cm, RNIC_PS_TCP, RNIC_QPT_RC, NULL, &listener),
		 "listening id");
	ex_check(rnic_cm_bind_addr(listener, (struct sockaddr *)&addr), "bind");
	ex_check(rnic_cm_listen(listener, 16), "listen");
	printf("listening on port %u\n",
	       ntohs(((struct sockaddr_in *)&listener->src_addr)->sin_port));
	p[0] = (struct pollfd){ .fd = no_blocking(rnic_cm_channel_fd(r->cm)), .events = POLLIN };
	p[1] = (struct pollfd){ .fd = no_blocking(rnic_channel_fd(r->comp)), .events = POLLIN };
	while (r->persistent || !r->served || r->open > 0) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			ex_fail("poll: %s", strerror(errno));
		/* What came before the end of a connection comes before it here. */
		if (p[1].revents)
			completions(r);
		else if (p[0].revents)
			connections(r);
	}
	rnic_cm_destroy_id(listener);
}
