/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packetdrill's spirit for the RoCE engine: one engine with one QP on virtual time; the test is
 * its client, and its peer by packets made by hand. Nothing here decides what is right.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "mr_table_priv.h"
#include "net_iface.h"
#include "net_neigh.h"
#include "net_parse.h"
#include "net_txbatch.h"
#include "ring_cq.h"
#include "ring_wq.h"
#include "roce.h"
#include "roce_ah.h"
#include "roce_mcast.h"
#include "roce_priv.h"
#include "unit.h"
#include "verbs.h"

#define WIRE_PD 5u
#define WIRE_XRCD 9u
#define WIRE_SRQN 0x778899u
#define WIRE_QPN 0x112233u
#define WIRE_PEER_QPN 0x445566u
#define WIRE_VA 0x100000u
#define WIRE_MEM (256u << 10)
#define WIRE_SLOTS 256u
#define WIRE_CQES 1024u
#define WIRE_OUT 512
#define WIRE_EVENTS 16
#define WIRE_IOS 16
#define WIRE_LOOP 64
#define WIRE_QKEY 0x11111111u

/** What differs from the defaults: RC, PSNs 0x100 (ours) and 0x200 (the peer's), MTU 1024. */
struct wire_params {
	enum verbs_qp_type type; /* 0: RC */
	uint32_t qpn, dest_qpn, sq_psn, rq_psn, mtu, access;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic, dest_rd_atomic;
	uint32_t max_inflight, max_reap, max_rx_held_qp, flow_label;
	uint32_t qkey; /* UD */
	const char *us, *peer; /* addresses */
	bool strict, go_back_n, credits; /* credits: an RQ of its own, else the SRQ's code 31 */
	bool stop_at_rtr;
	bool cc; /* congestion management, of the defaults */
	uint8_t tclass;
};

struct wire {
	uint64_t now;
	struct rte_mempool *pool;
	struct verbs_worker vw;
	struct roce_qpn_table *qpns;
	struct roce *r;
	struct verbs_qp *qp;
	struct net_iface iface;
	struct net_neigh_table *neighs;
	struct net_neigh *neigh;
	struct net_ip us, peer;
	struct net_tx_batch tx, *txs[1];
	struct ring_qp_client client;
	struct ring_qp_daemon daemon;
	uint8_t *sq, *rq;
	uint32_t sq_tail, rq_tail;
	struct verbs_srq srq;
	struct verbs_srq_ring srq_where;
	struct roce_qpn_table *srqns; /* XRC: w->srq is in there */
	struct ring_srq_client srq_client;
	struct ring_srq_daemon srq_daemon;
	_Atomic uint32_t *srq_ring;
	struct verbs_cq *cq;
	struct ring_cq_client cq_client;
	struct ring_cq_daemon cq_daemon;
	struct ring_cqe *cqes;
	struct ring_cq_cons cons;
	uint8_t *mem, *far;
	uint32_t key, far_key;
	struct rte_mbuf *out[WIRE_OUT]; /* sent, not looked at yet */
	unsigned int num_out, next_out;
	enum verbs_event event[WIRE_EVENTS];
	unsigned int num_events;
	struct verbs_io *io[WIRE_IOS];
	unsigned int num_io;
	bool tx_stuck; /* the port takes nothing */
	/* UD */
	struct roce_ah_table *ahs;
	struct roce_mcast_table *mcast;
	_Atomic uint32_t mtu[1];
	uint32_t ah; /* of the peer */
	struct rte_mbuf *loop[WIRE_LOOP]; /* handed to our own worker, by the engine */
	unsigned int num_loop;
	uint8_t rx_tclass; /* of the packets that come */
	struct wire_params params;
};

struct wire *wire_new(const struct wire_params *p);
/** Resets the QP; every buffer, shadow and io must have come back. */
void wire_free(struct wire *w);

/** Run list, timers and flush until nothing moves. */
void wire_go(struct wire *w);
/** The same, at a later time. */
void wire_wait(struct wire *w, uint64_t ns);
int wire_modify(struct wire *w, unsigned int state);
/** From any state through RESET to where wire_new() left the QP. */
void wire_connect_again(struct wire *w);

/** A frame from anywhere. wire_go() follows. */
void wire_frame(struct wire *w, const void *frame, size_t len);
/** The same, without wire_go(): for packets of one burst. */
void wire_frame_only(struct wire *w, const void *frame, size_t len);
/** A packet from the peer: dest_qpn, pkey, pad are filled in. Payload of a known pattern. */
void wire_pkt(struct wire *w, struct roce_pkt p, const void *payload, uint32_t len);
void wire_pkt_only(struct wire *w, struct roce_pkt p, const void *payload, uint32_t len);
/** An acknowledgement from the peer. */
void wire_ack(struct wire *w, uint32_t psn, uint8_t syndrome, uint32_t msn);

/** The next packet that was sent, its ICRC checked; false: none. */
bool wire_sent(struct wire *w, struct roce_pkt *p);
/** The next must be this; fails the test otherwise. */
void wire_expect(struct wire *w, uint8_t opcode, uint32_t psn, struct roce_pkt *p);
void wire_expect_ack(struct wire *w, uint32_t psn, uint8_t syndrome, uint32_t msn);
void wire_expect_none(struct wire *w);
/** The raw frame that wire_sent() gave last. */
struct rte_mbuf *wire_last(struct wire *w);

/** Post a send request of one element at offset off of mem; flags beside SIGNALED. */
void wire_post(struct wire *w, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags,
	       uint64_t raddr, uint32_t rkey);
void wire_post_raw(struct wire *w, const struct ring_wqe *q);
void wire_post_recv(struct wire *w, uint32_t off, uint32_t len);
/** The next completion must have this status. */
struct ring_cqe wire_cqe(struct wire *w, enum wc_status status);
void wire_no_cqe(struct wire *w);
bool wire_event(const struct wire *w, enum verbs_event e);
/** Do what a copier does with the oldest io, or let it fail; wire_go() follows. */
void wire_io(struct wire *w, int status);
uint64_t wire_counter(const struct wire *w, enum roce_counter c);
/** What was sent is of no interest; what was checked of each packet is. */
void wire_forget(struct wire *w);
/** Make w->key one that local and remote invalidate take; its entry. */
struct mr *wire_key_fast(struct wire *w);
/** An address handle of the domain to an address; dead: nobody knows its neighbour. */
uint32_t wire_ah(struct wire *w, const char *to, bool dead);
/** A datagram's request: as wire_post(), to a QP by a handle. */
void wire_post_ud(struct wire *w, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags,
		  uint32_t ah, uint32_t qpn, uint32_t qkey);
/** Put a region of a given key into the table. */
void wire_mr_key(struct wire *w, uint32_t key, uint64_t va, uint8_t *ptr, uint64_t len,
		 uint32_t access);
void wire_pattern(uint8_t *p, size_t n, uint32_t seed);

#endif /* WIRE_H */
