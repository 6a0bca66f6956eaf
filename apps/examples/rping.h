/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two sides of rnic_rping share: a connection, its memory, the words of the protocol. */
#ifndef RPING_H
#define RPING_H

#include "ex_cm.h"

#define RPING_MIN_SIZE 24u
#define RPING_MAX_SIZE (64u << 10)

/** What both sides send: where memory lies; network order. Its content matters to servers alone. */
struct rping_info {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size;
};

struct rping {
	bool server, client, validate, verbose, persistent;
	const char *host, *socket, *device;
	unsigned int port;
	uint64_t count;
	uint32_t size;
	struct ex_device dev;
	struct rnic_cm_channel *cm;
	struct rnic_channel *comp;
	unsigned int open; /* connections of a server */
	bool served;
};

/** What it waits for: of a server, in this order. */
enum rping_state { RPING_SOURCE, RPING_READ, RPING_SINK, RPING_WRITE };

struct rping_conn {
	struct rping *r;
	struct rnic_cm_id *id;
	struct rnic_cq *cq;
	struct rnic_mr *words; /* two of struct rping_info: received, sent */
	struct rnic_mr *data, *sink; /* sink: a client's */
	enum rping_state state;
	struct rping_info peer; /* host order */
	unsigned int sends;	/* outstanding */
	bool heard;		/* a client's: the server has answered */
	uint64_t pings;
};

/* Work requests, by wr_id. */
enum { RPING_WR_RECV = 1, RPING_WR_SEND, RPING_WR_RDMA };

/* rping_conn.c */
struct rping_conn *rping_conn_new(struct rping *r, struct rnic_cm_id *id);
void rping_conn_free(struct rping_conn *c);
void rping_post_recv(struct rping_conn *c);
/** Tell the peer of a region. */
void rping_send(struct rping_conn *c, const struct rnic_mr *mr);
/** READ from or WRITE to where the peer has said. */
void rping_rdma(struct rping_conn *c, uint32_t opcode, uint32_t len);
/** A message has come: into c->peer. */
void rping_received(struct rping_conn *c);

/* rping_server.c, rping_client.c */
void rping_serve(struct rping *r);
void rping_ask(struct rping *r);

#endif /* RPING_H */
