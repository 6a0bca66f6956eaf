/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of rnic_rping: its queues and memory, and what it posts. */
#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "rping.h"

#define DEPTH 16

static void
make_queues(struct rping_conn *c)
{
	struct rnic_cq_attr ca = { .cqe = 2 * DEPTH, .channel = c->r->comp, .user_context = c };
	struct rnic_qp_init_attr qa = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 2, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	ex_check(rnic_create_cq(c->r->dev.ctx, &ca, &c->cq), "completion queue");
	qa.send_cq = qa.recv_cq = c->cq;
	ex_check(rnic_cm_create_qp(c->id, c->r->dev.pd, &qa), "queue pair");
}

struct rping_conn *
rping_conn_new(struct rping *r, struct rnic_cm_id *id)
{
	struct rping_conn *c = calloc(1, sizeof(*c));

	if (!c)
		ex_fail("no memory");
	c->r = r;
	c->id = id;
	id->user_context = c;
	c->words = ex_memory(&r->dev, 2 * sizeof(struct rping_info), 0);
	c->data = ex_memory(&r->dev, RPING_MAX_SIZE, RNIC_ACCESS_REMOTE_READ);
	if (r->client)
		c->sink = ex_memory(&r->dev, r->size, RNIC_ACCESS_REMOTE_WRITE);
	make_queues(c);
	rping_post_recv(c);
	ex_check(rnic_req_notify_cq(c->cq, 0), "request of an event");
	return c;
}

void
rping_conn_free(struct rping_conn *c)
{
	rnic_cm_destroy_qp(c->id);
	rnic_destroy_cq(c->cq);
	rnic_cm_destroy_id(c->id);
	ex_free(&c->r->dev, c->words);
	ex_free(&c->r->dev, c->data);
	if (c->sink)
		ex_free(&c->r->dev, c->sink);
	free(c);
}

void
rping_post_recv(struct rping_conn *c)
{
	struct rnic_sge sge = { (uintptr_t)c->words->addr, sizeof(struct rping_info),
				c->words->lkey };
	struct rnic_recv_wr wr = { .wr_id = RPING_WR_RECV, .sg_list = &sge, .num_sge = 1 };

	ex_check(rnic_post_recv(c->id->qp, &wr, NULL), "post of a receive");
}

static void
post(struct rping_conn *c, struct rnic_send_wr *wr, const struct rnic_sge *sge)
{
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->send_flags = RNIC_SEND_SIGNALED;
	ex_check(rnic_post_send(c->id->qp, wr, NULL), "post of a send");
	c->sends++;
}

void
rping_send(struct rping_conn *c, const struct rnic_mr *mr)
{
	struct rping_info *info = (struct rping_info *)c->words->addr + 1;
	struct rnic_sge sge = { (uintptr_t)info, sizeof(*info), c->words->lkey };
	struct rnic_send_wr wr = { .wr_id = RPING_WR_SEND, .opcode = RNIC_WR_SEND };

	info->addr = htobe64((uintptr_t)mr->addr);
	info->rkey = htonl(mr->rkey);
	info->size = htonl(c->r->size);
	post(c, &wr, &sge);
}

void
rping_rdma(struct rping_conn *c, uint32_t opcode, uint32_t len)
{
	struct rnic_sge sge = { (uintptr_t)c->data->addr, len, c->data->lkey };
	struct rnic_send_wr wr = { .wr_id = RPING_WR_RDMA, .opcode = opcode };

	wr.wr.rdma.remote_addr = c->peer.addr;
	wr.wr.rdma.rkey = c->peer.rkey;
	post(c, &wr, &sge);
}

void
rping_received(struct rping_conn *c)
{
	const struct rping_info *info = c->words->addr;

	c->peer = (struct rping_info){
		.addr = be64toh(info->addr), .rkey = ntohl(info->rkey), .size = ntohl(info->size) };
	rping_post_recv(c);
}
