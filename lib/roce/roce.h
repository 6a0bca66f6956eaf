/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RoCE v2 engine of one worker. It sees the world through parsed packets in, batches of
 * packets out, the verbs objects, and `now` as an argument; it reads no clock, socket or
 * global. The worker loop and the simulator drive it alike:
 *
 *   roce_input()    the burst's packets for UDP port 4791
 *   roce_run()      for each QP of the run list (verbs_run_round())
 *   roce_timers()   what is due
 *   roce_flush()    after these: coalesced acknowledgements, and the ICRCs of short packets
 *                   in the batches, which must not be flushed to a port before this
 */
#ifndef ROCE_H
#define ROCE_H

#include "roce_cc.h"
#include "verbs.h"

struct net_pkt;
struct net_tx_batch;
struct rte_mbuf;
struct rte_mempool;
struct roce;
struct roce_ah_table;
struct roce_mcast_table;
struct roce_pkt;
struct roce_qpn_table;

/* Limits that are advertised. */
#define ROCE_MAX_RD_ATOMIC 128	     /* initiator depth and responder resources of a QP */
#define ROCE_MAX_MSG (1u << 31)	     /* bytes */

/** Counters of an engine: the identifier, the name, what it counts. */
#define ROCE_COUNTERS(X)                                                                   \
	X(RX_PACKETS, "rx_packets", "packets taken for RoCE")                              \
	X(RX_BYTES, "rx_bytes", "payload bytes placed or completed")                       \
	X(TX_PACKETS, "tx_packets", "packets built")                                       \
	X(TX_BYTES, "tx_bytes", "payload bytes sent, retransmissions included")            \
	X(ICRC_ERRORS, "icrc_errors", "packets dropped for a wrong ICRC")                  \
	X(DROP_MALFORMED, "drop_malformed", "headers short, unknown opcode, TVer, pad")    \
	X(DROP_NO_QP, "drop_no_qp", "destination QP unknown")                              \
	X(DROP_QP_TYPE, "drop_qp_type", "opcode class does not fit the QP's type")         \
	X(DROP_QP_STATE, "drop_qp_state", "QP in a state that takes no such packet")       \
	X(DROP_ADDRESS, "drop_address", "addresses are not those of the QP's peer")        \
	X(DROP_PKEY, "bad_pkey", "P_Key mismatch")                                         \
	X(DROP_QKEY, "bad_qkey", "Q_Key mismatch")                                         \
	X(UD_NO_RECV, "ud_no_recv", "datagrams that found no receive request")             \
	X(UD_TOO_LONG, "ud_too_long", "datagrams longer than the receive request")         \
	X(UD_TOO_LONG_SENT, "ud_too_long_sent", "datagrams longer than the port's MTU, not sent") \
	X(UD_BAD_AH, "ud_bad_ah", "requests that named no address handle of their domain") \
	X(UD_NEIGH_DROPPED, "ud_neigh_dropped", "datagrams lost for want of a neighbour")  \
	X(MCAST_RCVD, "mcast_rcvd", "datagrams to groups with members here")               \
	X(MCAST_DELIVERED, "mcast_delivered", "of those, copies given to QPs")             \
	X(MCAST_LOOPED, "mcast_looped", "datagrams to groups that had members here, too")  \
	X(MCAST_DROPPED, "mcast_dropped", "datagrams to groups without, or without a buffer") \
	X(GSI_RCVD, "gsi_rcvd", "management datagrams for QP1")                            \
	X(GSI_BAD, "gsi_malformed", "of those not the CM's, or not of 256 bytes")          \
	X(GSI_DROPPED, "gsi_dropped", "management datagrams that nobody had room for")     \
	X(DROP_SCATTERED, "drop_scattered", "multi-segment packet that could not be joined") \
	X(RX_HANDOFF, "rx_handoff", "packets passed to the QP's worker")                   \
	X(HANDOFF_FULL, "handoff_full", "packets dropped, the other worker's ring is full") \
	X(DUPLICATE, "duplicate_request", "requests seen before")                          \
	X(OUT_OF_SEQUENCE, "out_of_sequence", "requests behind a hole")                    \
	X(OOO_KEPT, "ooo_kept", "out-of-sequence packets kept until the hole fills")       \
	X(OOO_DROPPED, "ooo_dropped", "out-of-sequence packets not kept")                  \
	X(ACK_SENT, "ack_sent", "acknowledgements")                                        \
	X(NAK_SEQ_SENT, "nak_seq_sent", "NAKs for a sequence error")                       \
	X(NAK_INV_SENT, "nak_inv_req_sent", "NAKs for an invalid request")                 \
	X(NAK_ACCESS_SENT, "nak_access_sent", "NAKs for a remote access error")            \
	X(NAK_OP_SENT, "nak_op_sent", "NAKs for a remote operational error")               \
	X(RNR_SENT, "rnr_nak_sent", "RNR NAKs")                                            \
	X(NAK_SEQ_RCVD, "nak_seq_rcvd", "NAKs received for a sequence error")              \
	X(NAK_ERR_RCVD, "nak_error_rcvd", "other NAKs received")                           \
	X(RNR_RCVD, "rnr_nak_rcvd", "RNR NAKs received")                                   \
	X(GHOST_ACK, "ghost_response", "responses to nothing outstanding")                 \
	X(BAD_RESPONSE, "bad_response", "responses that do not fit the request")           \
	X(TIMEOUT, "local_ack_timeout", "response timers that expired")                    \
	X(PROBE, "probe", "packets sent again since nothing came, before the time-out")    \
	X(RETRANSMIT, "retransmit", "packets sent again")                                  \
	X(RETRY_EXCEEDED, "retry_exceeded", "QPs that gave up on retries")                 \
	X(RNR_RETRY_EXCEEDED, "rnr_retry_exceeded", "QPs that gave up on a peer not ready") \
	X(IMPLIED_NAK, "implied_nak_seq", "holes seen in READ or atomic responses")        \
	X(NO_MBUF, "tx_no_mbuf", "times no transmit buffer was free")                      \
	X(RX_HELD, "rx_held", "packets held while the QP waits for foreign memory")        \
	X(RX_HELD_DROPPED, "rx_held_dropped", "packets lost to the cap of held ones")      \
	X(NEIGH_WAIT, "neigh_wait", "times a QP waited for its neighbour's address")       \
	X(CNP_RCVD, "cnp_rcvd", "congestion notifications")                                \
	X(CNP_SENT, "cnp_sent", "congestion notifications sent")                           \
	X(CC_CUT, "cc_cut", "times a QP's rate was cut")                                   \
	X(CC_NO_BLOCK, "cc_no_block", "notifications for which no rate could be kept")     \
	X(ECN_RCVD, "ecn_marked_rcvd", "packets with CE")                                  \
	X(XRC_NO_SRQ, "xrc_no_srq", "XRC requests for an SRQ that is not of the QP's domain") \
	X(UC_DROPPED, "uc_dropped", "UC packets of messages that were lost or refused")     \
	X(UC_UNREACHABLE, "uc_unreachable", "UC packets to a next hop that does not answer") \
	X(SQ_ERRORS, "sq_errors", "send queues in error (SQE), their QPs are not")         \
	X(QP_ERRORS, "qp_errors", "QPs moved to error by the engine")

enum roce_counter {
#define X(id, name, help) ROCE_C_##id,
	ROCE_COUNTERS(X)
#undef X
	ROCE_C_COUNT
};
/** Name and help of a counter. */
const char *roce_counter_name(enum roce_counter c);
const char *roce_counter_help(enum roce_counter c);

/** QP numbers to QPs, shared by all workers; written by the control thread alone. */
struct roce_qpn_table *roce_qpn_table_create(uint32_t capacity);
void roce_qpn_table_free(struct roce_qpn_table *t);
/** A random free QPN above 0xff: drawn from arc4random, 0 when the table is full. */
uint32_t roce_qpn_alloc(struct roce_qpn_table *t);
/** Reserve a given QPN (tests, replay of captures). @return 0, -EBUSY: its slot is taken. */
int roce_qpn_take(struct roce_qpn_table *t, uint32_t qpn);
/** Let packets for the QPN reach the QP on that worker; NULL takes it away again. */
void roce_qpn_set(struct roce_qpn_table *t, uint32_t qpn, struct verbs_qp *qp, uint32_t worker);
/** Whose packets for the QPN are; any worker. UINT32_MAX: nobody's. */
uint32_t roce_qpn_worker(const struct roce_qpn_table *t, uint32_t qpn);
/** The number may be used again (after timewait). */
void roce_qpn_release(struct roce_qpn_table *t, uint32_t qpn);
uint32_t roce_qpn_count(const struct roce_qpn_table *t);
/** The same of a table of SRQ numbers: let XRC requests find it; NULL: not any more. */
void roce_srqn_set(struct roce_qpn_table *t, uint32_t srqn, struct verbs_srq *srq);

struct roce_config {
	struct verbs_worker *verbs;
	struct roce_qpn_table *qpns;
	struct roce_qpn_table *srqns; /* of XRC; NULL: there are none */
	const struct roce_ah_table *ahs;       /* roce_ah.h; NULL: UD cannot send */
	const struct roce_mcast_table *mcast;  /* roce_mcast.h; NULL: no groups */
	const _Atomic uint32_t *mtu; /* of a datagram, by port, bytes; NULL: 4096 */
	struct net_tx_batch **tx; /* one a port, indexed by verbs_av.port */
	uint32_t num_ports;
	struct rte_mempool *tx_pool; /* room for headers and the path MTU in one segment */
	/** Pass a packet to another worker's ring; false: full, and it is dropped. NULL: never. */
	bool (*handoff)(void *ctx, uint32_t worker, struct rte_mbuf *m);
	/**
	 * A packet for QP1, its ICRC and headers right, to be looked at with roce_gsi_take()
	 * (roce_gsi.h); it stays the engine's. false: no room, it is dropped. NULL: no QP1.
	 */
	bool (*mad)(void *ctx, const struct net_pkt *np, const struct roce_pkt *p);
	/**
	 * Begin to wait until every other online worker has passed a quiescent point; and
	 * whether it has, the caller's own among them if that is how it counts: polled from later
	 * turns. NULL, both: there is no other worker.
	 */
	uint64_t (*quiesce_start)(void *ctx);
	bool (*quiesced)(void *ctx, uint64_t token);
	void *ctx;
	uint64_t seed;		  /* of the engine's randomness */
	uint32_t max_rx_held;	  /* receive mbufs that this engine may hold in all */
	uint32_t max_rx_held_qp;  /* and for one QP */
	uint32_t max_inflight;	  /* bytes unacknowledged of one QP; 0: the default */
	uint32_t cc_blocks;	  /* QPs whose rate can be limited at once; 0: 4096 */
	uint32_t max_reap; /* requests that a QP completes in one go; 0: the default, 256 */
	uint32_t strict_responder : 1; /* tests: go-back-N receiver, keeps nothing out of order */
	uint32_t go_back_n : 1;	       /* tests: the sender never resends selectively */
};

/** @return NULL without memory. */
struct roce *roce_create(const struct roce_config *cfg, uint64_t now);
void roce_destroy(struct roce *r);
const uint64_t *roce_counters(const struct roce *r);
/**
 * Congestion management of a port from now on; without it there is none. `enabled` counts for
 * QPs that get their path later, since their packets say so; all else at once.
 */
void roce_cc_set(struct roce *r, uint32_t port, const struct roce_cc_params *p);
/** Receive mbufs held by all QPs now. */
uint32_t roce_rx_held(const struct roce *r);

/* ---- QPs: made, changed and freed by the control thread or, once bound, through messages ---- */

struct roce_qp_init {
	uint32_t qpn;
	enum verbs_qp_type type;
	uint32_t pd; /* XRC_RECV: the domain's number */
	struct verbs_cq *send_cq, *recv_cq; /* XRC_RECV has none; XRC_SEND: twice the same */
	struct verbs_srq *srq;
	struct ring_qp_daemon *daemon;
	const void *sq_slots, *rq_slots; /* NULL: no such queue */
	uint32_t sq_entries, rq_entries; /* slots, powers of two */
	const struct ring_qp_client *client;
	bool sig_all;
	uint16_t max_inline;
	uint8_t max_send_sge, max_recv_sge;
	void *owner;
};

/** A QP in RESET. Heap; any thread. @return NULL without memory. */
struct verbs_qp *roce_qp_create(const struct roce_qp_init *init);
/** Frees it; it must be in RESET, detached, with no pending io (roce_qp_idle()). */
void roce_qp_free(struct verbs_qp *qp);
/** Whether nothing of the QP is under way in the engine (pending foreign access). */
bool roce_qp_idle(const struct verbs_qp *qp);
/**
 * What the control thread must get ready before a modify that names MAX_DEST_RD_ATOMIC:
 * memory of responder resources. The old is returned by roce_qp_take_garbage().
 */
int roce_qp_prepare(struct verbs_qp *qp, const struct verbs_qp_attr *attr, uint32_t mask);
/**
 * Memory that a modify has replaced, for free(); NULL: no more. After the modify was answered.
 * What is not taken stays until the QP is freed.
 */
void *roce_qp_take_garbage(struct verbs_qp *qp);

/**
 * Change a QP. In RESET and INIT on the control thread with r == NULL; from INIT -> RTR (or
 * -> ERR) on, on its worker. The mask was checked by verbs_qp_modify_check(); values are
 * checked here and nothing is changed when one is wrong.
 * @return 0, -EINVAL (a value out of range), -EBUSY (SQD -> RTS before drained).
 */
int roce_qp_modify(struct roce *r, struct verbs_qp *qp, const struct verbs_qp_attr *attr,
		   uint32_t mask, uint64_t now);
/** Present values of all attributes. On the thread that owns the QP. */
void roce_qp_query(const struct verbs_qp *qp, struct verbs_qp_attr *attr);
/**
 * Before the QP leaves its worker: stops timers, drops packets and started requests; it is in
 * RESET then. It may go, and its end be told, once roce_qp_idle(): a copier may still write to
 * the application's memory for it.
 */
void roce_qp_detach(struct roce *r, struct verbs_qp *qp);

/** What rnicctl shows of a QP. */
struct roce_qp_info {
	uint32_t qpn, dest_qpn, epsn, msn, sq_psn, una_psn, inflight_bytes, rx_held;
	uint8_t state, retry_left, rnr_left;
	bool keeps_out_of_order; /* the peer was seen to */
	uint64_t retransmits, timeouts, naks_sent, naks_rcvd, rnrs_sent, rnrs_rcvd;
	/* congestion; rate 0: line rate */
	uint32_t rate_kbps, target_kbps, alpha_ppm, increases;
	uint64_t ecn_marked, cnps_sent, cnps_rcvd;
};
void roce_qp_get_info(const struct verbs_qp *qp, struct roce_qp_info *info);

/* ---- driving ---------- */

/** Take packets: NET_UDP for port 4791, addressed to this host. The engine owns the mbufs. */
void roce_input(struct roce *r, struct net_pkt *pkts, unsigned int n, uint64_t now);
/** Let a QP send: pending responses first, then requests, up to qp->deficit bytes. */
enum verbs_run roce_run(struct roce *r, struct verbs_qp *qp, uint64_t now);
/** A foreign access of the QP has finished (after verbs_io_finish()). */
void roce_io_done(struct roce *r, struct verbs_qp *qp, unsigned int dir, int status,
		  uint64_t original, uint64_t now);
/**
 * verbs_io_finish() returned no QP, the QP having been reset or failed meanwhile: release what
 * the io's `user` (read before that call) kept alive.
 */
void roce_io_orphan(struct roce *r, void *user);
/** Run expired timers. @return how many. */
unsigned int roce_timers(struct roce *r, uint64_t now);
/** Earliest deadline, UINT64_MAX: none. */
uint64_t roce_next_deadline(const struct roce *r);
/** End of a burst: coalesced acknowledgements into the transmit batches. */
void roce_flush(struct roce *r, uint64_t now);
/** A neighbour's address is known, or has changed: its QPs may go on. Cheap when none waits. */
void roce_neigh_resolved(struct roce *r, struct net_neigh *n, uint64_t now);

#endif /* ROCE_H */
