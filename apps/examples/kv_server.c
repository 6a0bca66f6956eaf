/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server of rnic_kv: registers the table and joins clients' QPs to its own. After that it
 * sleeps; it may even be stopped. A client's QP lives as long as its TCP connection.
 */
#include <poll.h>
#include <stdlib.h>

#include "kv.h"

#define MAX_CLIENTS 256

struct member {
	struct ex_conn conn;
	struct rnic_qp *qp;
};

struct server {
	struct ex_device *dev;
	struct rnic_mr *table;
	struct rnic_cq *cq;
	struct member member[MAX_CLIENTS];
	unsigned int members;
};

static void
admit(struct server *s, int listener, uint32_t slots)
{
	struct rnic_qp_init_attr qa = {
		.send_cq = s->cq, .recv_cq = s->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = RNIC_QPT_RC,
	};
	struct member *m = &s->member[s->members++];
	struct ex_path path = ex_default_path;
	struct ex_address peer;

	path.mtu = RNIC_MTU_1024;
	ex_accept(&m->conn, listener);
	ex_check(rnic_create_qp(s->dev->pd, &qa, &m->qp), "queue pair");
	ex_init_qp(s->dev, m->qp, RNIC_ACCESS_REMOTE_READ | RNIC_ACCESS_REMOTE_WRITE |
		   RNIC_ACCESS_REMOTE_ATOMIC);
	ex_join(&m->conn, true, s->dev, m->qp, &path, &peer);
	ex_say(&m->conn, "table %016llx:%08x:%u", (unsigned long long)(uintptr_t)s->table->addr,
	       s->table->rkey, slots);
	fflush(stdout);
}

static void
dismiss(struct server *s, unsigned int i)
{
	ex_hang_up(&s->member[i].conn);
	rnic_destroy_qp(s->member[i].qp);
	s->member[i] = s->member[--s->members];
}

void
kv_serve(struct ex_device *dev, int listener, uint32_t slots, bool once)
{
	struct server *s = calloc(1, sizeof(*s));
	struct rnic_cq_attr ca = { .cqe = 1 };
	bool left = false;

	if (!s)
		ex_fail("no memory");
	s->dev = dev;
	s->table = ex_memory(dev, (size_t)slots * KV_SLOT, RNIC_ACCESS_REMOTE_READ |
			     RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_ATOMIC);
	ex_check(rnic_create_cq(dev->ctx, &ca, &s->cq), "completion queue");
	while (!(once && left && s->members == 0)) {
		struct pollfd p[MAX_CLIENTS + 1];
		unsigned int n = s->members;

		for (unsigned int i = 0; i < n; i++)
			p[i] = (struct pollfd){ .fd = s->member[i].conn.fd, .events = POLLIN };
		p[n] = (struct pollfd){ .fd = n < MAX_CLIENTS ? listener : -1, .events = POLLIN };
		if (poll(p, n + 1, -1) < 0)
			continue;
		for (unsigned int i = n; i-- > 0;)
			if (p[i].revents) { /* clients say nothing: this is their end */
				dismiss(s, i);
				left = true;
			}
		if (p[n].revents)
			admit(s, listener, slots);
	}
	rnic_destroy_cq(s->cq);
	ex_free(dev, s->table);
	free(s);
}
