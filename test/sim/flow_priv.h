/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the flow simulator: the world. */
#ifndef FLOW_PRIV_H
#define FLOW_PRIV_H

#include "base_rng.h"
#include "mr_table.h"
#include "net_neigh.h"
#include "net_txbatch.h"
#include "ring_abi.h"
#include "ring_bell.h"
#include "ring_cq.h"
#include "ring_wq.h"
#include "verbs.h"

#include "flow.h"

#define FLOW_NEVER UINT64_MAX

struct flow_pkt {
	struct flow_pkt *next;
	uint64_t at; /* ns */
	uint32_t len;
	uint8_t src, dst;
	uint8_t data[];
};

/** Packets of one link, in the order of their arrival. */
struct flow_fifo {
	struct flow_pkt *head, *tail;
};

/** A node's link to the switch, and the switch's to it. Times in ps: no rounding adds up. */
struct flow_link {
	struct flow_fifo up, down;
	uint64_t up_busy, down_busy;
};

struct flow_end {
	struct flow_node *node;
	struct flow_end *peer;
	struct verbs_qp *qp;
	uint32_t qpn, key, depth, msg;
	struct ring_qp_client client;
	struct ring_qp_daemon daemon;
	struct ring_wq_prod sq, rq;
	uint8_t *mem, *rq_slots;
	uint32_t out;	/* requests posted and not completed */
	bool posts;	/* it is the requester */
	bool odd;	/* the one that goes nowhere */
	uint64_t bytes;
	struct flow_end *next; /* of the node */
};

struct flow_node {
	struct flow_world *s;
	uint32_t id;
	struct verbs_worker verbs;
	struct verbs_share share;
	struct mr_table *mrs;
	struct roce_qpn_table *qpns;
	struct roce *roce;
	struct net_tx_batch tx, *tx_list[1];
	struct net_neigh neigh[FLOW_NODES + 1];
	struct verbs_cq *cq;
	struct ring_cqe *ring;
	struct ring_cq_client cq_client;
	struct ring_cq_daemon cq_daemon;
	struct ring_cq_cons cons;
	struct flow_fifo rx;
	struct flow_end *ends;
	uint64_t wake;
};

struct flow_world {
	const struct flow_params *p;
	struct flow_result *res;
	uint64_t now;
	bool counting;
	struct rng rng;
	uint32_t ps_per_byte;
	uint64_t hop_ns;
	uint32_t num_nodes, num_ends;
	struct flow_link link[FLOW_NODES];
	struct flow_node node[FLOW_NODES];
	struct flow_end *end[2 * (FLOW_QPS + 1)];
};

/* flow_wire.c */
bool flow_wire_room(const struct flow_world *s, uint32_t src);
/** When the port will take another packet. */
uint64_t flow_wire_room_at(const struct flow_world *s, uint32_t src);
void flow_wire_send(struct flow_world *s, uint32_t src, const void *data, uint32_t len);
uint64_t flow_wire_next(const struct flow_world *s);
/** What has reached the switch or a node by now goes on. */
void flow_wire_run(struct flow_world *s);
void flow_wire_fini(struct flow_world *s);
void flow_fifo_put(struct flow_fifo *f, struct flow_pkt *p);
struct flow_pkt *flow_fifo_get(struct flow_fifo *f);

/* flow_node.c */
int flow_node_pools(void);
void flow_node_init(struct flow_world *s, uint32_t id);
void flow_node_fini(struct flow_node *n);
void flow_node_step(struct flow_node *n);
/** A connection on which `from` posts; odd: the one that goes nowhere. */
void flow_pair(struct flow_world *s, struct flow_node *from, struct flow_node *to, bool odd);

#endif /* FLOW_PRIV_H */
