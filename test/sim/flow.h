/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Goodput and fairness on virtual time: whole engines around one switch, whose ports have a rate,
 * a queue that marks and a limit. Nothing is random but losses and marks, which a seed draws, so
 * that a run gives the same figures wherever it runs. What is right is rnic-sim's question; this
 * one asks how fast.
 */
#ifndef FLOW_H
#define FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "roce.h"

#define FLOW_NODES 17
#define FLOW_QPS 64
#define FLOW_MS UINT64_C(1000000)

enum flow_op { FLOW_WRITE, FLOW_READ, FLOW_SEND, FLOW_OPS };

/** One way of data: from each sender to node 0. READs are node 0's. */
struct flow_params {
	uint32_t senders, qps; /* qps: of each sender */
	enum flow_op op;
	uint32_t mbps;	  /* of every port */
	uint32_t rtt_us;  /* without queues */
	uint32_t mtu, msg; /* bytes */
	uint32_t odd_msg; /* bytes of messages of every second QP; 0: as the others' */
	uint32_t loss_in; /* one packet in so many is lost; 0: none */
	bool go_back_n;	  /* both ends */
	bool strict_peer; /* the responder alone keeps nothing behind a hole */
	uint32_t queue, kmin, kmax; /* bytes of a switch port: limit, marks from, all from */
	uint32_t pmax;	  /* of a million, at kmax; 0: no marks */
	bool cc;
	struct roce_cc_params ccp;
	uint32_t max_inflight; /* 0: the engine's default */
	uint8_t timeout;  /* local ACK timeout */
	uint64_t warm, run; /* ns */
	uint64_t seed;
	/* One more QP of the first sender that goes nowhere: it must delay nobody. */
	bool deaf;	  /* its peer drops all that it sends */
	bool not_ready;	  /* its peer never posts a receive */
	bool unresolved;  /* its neighbour has no address */
};

struct flow_result {
	uint32_t qps;
	uint64_t bytes[FLOW_QPS]; /* completed in the time that counts */
	uint64_t bits_per_s;
	double jain;
	uint64_t packets, lost, dropped, marked, cnps, retransmits, timeouts, naks, probes;
	uint32_t queue_max;	/* bytes, in the time that counts */
};

/** Once a process. @return 0, or an errno. */
int flow_start(void);
void flow_run(const struct flow_params *p, struct flow_result *r);
void flow_defaults(struct flow_params *p);
const char *flow_op_name(enum flow_op op);

#endif /* FLOW_H */
