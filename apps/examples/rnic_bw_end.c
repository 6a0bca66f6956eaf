/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a test of rnic_bw: queues, memory, and the exchange of where they are. */
#include <stdlib.h>
#include <string.h>

#include "rnic_bw.h"

static const char *const op_names[BW_OPS] = {
	[BW_WRITE] = "write",	      [BW_READ] = "read",	  [BW_SEND] = "send",
	[BW_LAT_WRITE] = "lat-write", [BW_LAT_READ] = "lat-read", [BW_LAT_SEND] = "lat-send",
};

const char *
bw_op_name(enum bw_op op)
{
	return op_names[op];
}

bool
bw_is_latency(enum bw_op op)
{
	return op >= BW_LAT_WRITE;
}

/** Twice what the peer may have outstanding: an acknowledgement may outrun our repost. */
uint32_t
bw_recv_depth(const struct bw_test *t)
{
	return t->op == BW_SEND || t->op == BW_LAT_SEND ? 2 * t->depth : 1;
}

static uint32_t
slots_of(const struct bw_test *t)
{
	return 4 * t->depth;
}

const char *
bw_refuse(const struct bw_test *t)
{
	if (t->qps == 0 || t->qps > BW_MAX_QPS || t->depth == 0 || t->depth > BW_MAX_DEPTH ||
	    t->list == 0 || t->list > t->depth)
		return "QPs, depth or list out of range";
	if (t->size < 8 || t->size > BW_MAX_MEMORY)
		return "a message has 8 bytes at least";
	if ((uint64_t)t->size * slots_of(t) * t->qps > BW_MAX_MEMORY)
		return "size * depth * QPs * 4 is more than 256 MiB: lower the depth";
	return NULL;
}

uint8_t *
bw_slot(const struct bw_end *e, uint32_t qp, uint64_t n)
{
	return (uint8_t *)e->mr->addr + ((size_t)qp * e->slots + n % e->slots) * e->test.size;
}

uint64_t
bw_remote_slot(const struct bw_end *e, uint32_t qp, uint64_t n)
{
	return e->remote_addr + ((uint64_t)qp * e->slots + n % e->slots) * e->test.size;
}

uint64_t
bw_seed(uint32_t qp, uint64_t n)
{
	return (uint64_t)qp << 40 | n;
}

bool
bw_right(struct bw_end *e, uint32_t qp, uint64_t n, uint64_t seed)
{
	if (ex_pattern_check(bw_slot(e, qp, n), e->test.size, seed) == e->test.size)
		return true;
	e->wrong++;
	return false;
}

void
bw_post_recv(struct bw_end *e, uint32_t qp, uint64_t n)
{
	struct rnic_rwqe *w = rnic_rq_get(e->qp[qp], qp, 1);

	if (!w)
		ex_fail("the receive queue is full");
	rnic_prep_recv_sge(e->qp[qp], w, (uintptr_t)bw_slot(e, qp, n), e->test.size, e->mr->lkey);
}

static void
make_queues(struct bw_end *e)
{
	const struct bw_test *t = &e->test;
	struct rnic_cq_attr ca = { .cqe = t->qps * (t->depth + bw_recv_depth(t)),
				   .flags = RNIC_THREAD_UNSAFE };
	struct rnic_qp_init_attr qa = {
		.cap = { .max_send_wr = t->depth, .max_recv_wr = bw_recv_depth(t),
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = RNIC_QPT_RC,
		.flags = RNIC_THREAD_UNSAFE,
	};

	ex_check(rnic_create_channel(e->dev.ctx, &e->channel), "completion channel");
	ca.channel = e->channel;
	ex_check(rnic_create_cq(e->dev.ctx, &ca, &e->cq), "completion queue");
	qa.send_cq = qa.recv_cq = e->cq;
	if (ex_check(rnic_create_qps(e->dev.pd, &qa, e->qp, (int)t->qps), "queue pairs") <
	    (int)t->qps)
		ex_fail("fewer queue pairs than wanted");
	for (uint32_t q = 0; q < t->qps; q++) {
		ex_init_qp(&e->dev, e->qp[q], RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ);
		e->own[q] = ex_own_address(&e->dev, e->qp[q]);
	}
}

/** What a READ fetches stands there from the start. */
static void
fill(struct bw_end *e)
{
	for (uint32_t q = 0; q < e->test.qps; q++)
		for (uint32_t n = 0; n < e->slots; n++)
			ex_pattern(bw_slot(e, q, n), e->test.size, bw_seed(q, n));
}

void
bw_end_open(struct bw_end *e, const struct bw_test *t)
{
	e->test = *t;
	e->slots = slots_of(t);
	e->wrong = 0;
	e->qp = calloc(t->qps, sizeof(struct rnic_qp *));
	e->own = calloc(t->qps, sizeof(*e->own));
	e->posted = calloc(t->qps, sizeof(*e->posted));
	e->done = calloc(t->qps, sizeof(*e->done));
	if (!e->qp || !e->own || !e->posted || !e->done)
		ex_fail("no memory");
	e->mr = ex_memory(&e->dev, (size_t)t->size * e->slots * t->qps,
			  RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ);
	fill(e);
	make_queues(e);
	for (uint32_t q = 0; q < t->qps && bw_recv_depth(t) > 1; q++) {
		for (uint32_t n = 0; n < bw_recv_depth(t); n++)
			bw_post_recv(e, q, n);
		rnic_rq_submit(e->qp[q]);
	}
}

static void
tell(struct bw_end *e)
{
	for (uint32_t q = 0; q < e->test.qps; q++)
		ex_put_address(&e->conn, &e->own[q]);
	ex_say(&e->conn, "%016llx:%08x", (unsigned long long)(uintptr_t)e->mr->addr, e->mr->rkey);
}

static void
learn(struct bw_end *e, struct ex_address *peer)
{
	unsigned long long addr;
	char line[64];

	for (uint32_t q = 0; q < e->test.qps; q++)
		ex_get_address(&e->conn, &peer[q]);
	if (!ex_hear(&e->conn, line, sizeof(line)) || sscanf(line, "%llx:%x", &addr, &e->rkey) != 2)
		ex_fail("the peer's memory makes no sense");
	e->remote_addr = addr;
}

/** With the server's address known to the client, and its port told. */
static void
connect_by_cm(struct bw_end *e, bool server, const struct ex_path *path,
	      const struct ex_address *peer)
{
	struct sockaddr_storage addr;
	unsigned int port;
	char line[16];

	ex_cm_open(&e->cm, &e->dev, e->qp, (int)e->test.qps);
	if (server) {
		ex_cm_gid_address(&e->dev.gid, 0, &addr);
		ex_say(&e->conn, "cm %u", ex_cm_listen(&e->cm, &addr));
		ex_cm_accept(&e->cm, path, e->conn.fd);
		return;
	}
	if (!ex_hear(&e->conn, line, sizeof(line)) || sscanf(line, "cm %u", &port) != 1)
		ex_fail("the server has gone");
	ex_cm_gid_address(&peer->gid, port, &addr);
	ex_cm_connect(&e->cm, &addr, path);
}

static void
connect_by_hand(struct bw_end *e, const struct ex_path *path, const struct ex_address *peer)
{
	for (uint32_t q = 0; q < e->test.qps; q++)
		ex_connect_qp(&e->dev, e->qp[q], path, &e->own[q], &peer[q]);
}

/** Addresses client to server, then server to client, each when its own QPs are ready. */
void
bw_end_join(struct bw_end *e, bool server)
{
	struct ex_address *peer = calloc(e->test.qps, sizeof(*peer));
	struct ex_path path = ex_default_path;
	char line[16];

	if (!peer)
		ex_fail("no memory");
	path.mtu = ex_mtu(&e->dev, e->test.mtu);
	if (!server)
		tell(e);
	learn(e, peer);
	if (!e->test.cm)
		connect_by_hand(e, &path, peer);
	if (server)
		tell(e);
	if (e->test.cm)
		connect_by_cm(e, server, &path, peer);
	if (!server)
		ex_say(&e->conn, "go");
	else if (!ex_hear(&e->conn, line, sizeof(line)) || strcmp(line, "go"))
		ex_fail("the client has gone");
	free(peer);
}

void
bw_end_close(struct bw_end *e)
{
	if (e->test.cm)
		ex_cm_close(&e->cm);
	for (uint32_t q = 0; q < e->test.qps; q++)
		rnic_destroy_qp(e->qp[q]);
	rnic_destroy_cq(e->cq);
	rnic_destroy_channel(e->channel);
	ex_free(&e->dev, e->mr);
	free(e->qp);
	free(e->own);
	free(e->posted);
	free(e->done);
}
