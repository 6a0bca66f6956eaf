/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the RoCE engine: a worker's engine, a QP, and what its files call of one another.
 * All of it belongs to one worker; the QPN table alone is shared.
 *
 * A request of ours has the PSNs first_psn .. last_psn. una is the oldest PSN that nothing has
 * acknowledged, snd_max follows the newest one sent, nxt_psn the newest one given to a request;
 * req_psn is what to send next, behind snd_max only while something is sent again.
 */
#ifndef ROCE_PRIV_H
#define ROCE_PRIV_H

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "base_bug.h"
#include "base_counters.h"
#include "base_rng.h"
#include "base_seq.h"
#include "base_wheel.h"
#include "net_neigh.h"
#include "net_parse.h"
#include "net_path.h"
#include "net_txbatch.h"
#include "roce.h"
#include "roce_code.h"
#include "roce_hdr.h"
#include "roce_icrc.h"

#define ROCE_BURST 32		       /* packets looked at together */
#define ROCE_MBUFS 32		       /* transmit buffers taken at once */
#define ROCE_LATE 128		       /* packets whose ICRC is written at the burst's end */
#define ROCE_LATE_PAYLOAD 1024	       /* longer payloads are summed as they are copied */
#define ROCE_INFLIGHT (512u << 10)     /* bytes, default */
#define ROCE_ACK_EVERY 32	       /* packets without AckReq, at most */
#define ROCE_RESP_BURST 32	       /* responses before requests have a turn */
#define ROCE_PKT_COST 64u /* bytes that a packet counts for beside its payload */
#define ROCE_KEPT_MOST 448u /* packets behind a hole that a peer of ours surely keeps */
#define ROCE_PSN_WINDOW ((1u << 23) - 1) /* PSNs outstanding: they must stay comparable */
#define ROCE_FLUSH_CQES 64	       /* completions of one turn in ERR */
#define ROCE_REAP 256u		       /* default of max_reap */
#define ROCE_LOCAL_POLL_NS UINT64_C(20000)
#define ROCE_UD_MTU_MAX 4096u
#define ROCE_UD_WAIT 256u    /* datagrams that wait for a neighbour */
#define ROCE_UD_WAIT_PDS 64u /* domains are told apart so far in that */
#define ROCE_NEIGH_RETRY_NS UINT64_C(10000000)
#define ROCE_ECN_ECT0 2u
#define ROCE_ECN_CE 3u
#define ROCE_RETRY_FOREVER 7	       /* of rnr_retry; 7 of retry_cnt means seven */

/** Rules of each in roce_timer.c. */
enum roce_timer {
	ROCE_T_ACK,
	ROCE_T_RNR,
	ROCE_T_NEIGH,
	ROCE_T_PROBE,
	ROCE_T_LOCAL,
	ROCE_T_COUNT
};

/** The transport's state of a send request (verbs_wqe.tstate). */
enum roce_wqe_state {
	ROCE_WQE_NEW,	 /* has PSNs; fence, credit and depth may still hold it back */
	ROCE_WQE_OPEN,	 /* may be sent, or has been */
	ROCE_WQE_FENCED, /* has no packets and waits for all before it */
	ROCE_WQE_LOCAL,	 /* has no packets and waits for other workers and copiers */
	ROCE_WQE_DONE,	 /* has no packets and may complete in its turn */
	ROCE_WQE_FAILED, /* completes with wqe->status in its turn, then the QP fails */
};

/** What is known of the peer's receiver (roce_recovery.c). */
enum roce_keeps {
	ROCE_KEEPS_UNKNOWN,
	ROCE_KEEPS_YES,
	ROCE_KEEPS_NO,
};

/** What to say once all responses before it have left. Later kinds replace earlier ones. */
enum roce_say {
	ROCE_SAY_NOTHING,
	ROCE_SAY_ACK,
	ROCE_SAY_NAK,	/* sequence error or RNR: the QP goes on */
	ROCE_SAY_FATAL, /* the QP fails once it is said */
};

enum roce_res_type {
	ROCE_RES_NONE,
	ROCE_RES_READ,
	ROCE_RES_ATOMIC,
	ROCE_RES_NOTE, /* FLUSH, ATOMIC WRITE: a READ response without data says that it is done */
};

/** Responder resource: a READ or atomic that was executed (IBTA 9.7.5.1.1). */
struct roce_res {
	uint8_t type; /* enum roce_res_type */
	bool pending; /* cur_psn .. end_psn are to be sent */
	bool replay;  /* again: whatever goes wrong is not answered */
	uint32_t first_psn, last_psn;
	uint32_t cur_psn, end_psn;
	uint32_t start_psn; /* of this answer: it begins with First or Only */
	uint32_t msn;
	uint32_t pd; /* READ */
	uint32_t rkey;
	uint64_t va;
	union {
		struct {
			uint32_t length; /* READ */
			uint32_t upto;	 /* end of this answer, from va */
		};
		uint64_t orig; /* atomic */
	};
};

struct roce_res_ring {
	struct roce_res_ring *next; /* to be freed */
	uint32_t size; /* a power of two */
	uint32_t depth; /* as asked */
	struct roce_res e[];
};

/**
 * Received packets that are kept: chained by mbuf->next and, backwards, mbuf->tx_offload, which
 * means nothing in them; PSN and offset in mbuf->hash.
 */
struct roce_pktq {
	struct rte_mbuf *head, *tail;
};

struct roce_qp {
	struct verbs_qp v; /* first */

	/* Set by modify, read by all. */
	struct net_path path;
	uint32_t dest_qpn;
	uint16_t port;
	uint8_t mtu_shift;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic;
	uint16_t ack_every; /* packets */
	/* Of `parked`: a modify may change the path meanwhile. */
	uint8_t parked_l3; /* offset */
	bool parked_v6;
	uint32_t max_inflight; /* bytes */
	uint16_t parked_port;
	bool rx_again; /* the head of `waiting` is to be tried again, from the run list */
	uint8_t piece_shift; /* a READ's pieces: 2^ that many PSNs */

	/* Requester. */
	struct verbs_wqe *req_wqe; /* that req_psn belongs to; NULL: start another */
	struct verbs_wqe *rd_head, *rd_tail; /* READs and atomics outstanding */
	uint32_t req_psn, snd_max, nxt_psn, una;
	uint32_t inflight; /* payload bytes sent or asked for, not acknowledged */
	uint32_t ssn, lsn; /* of the newest request; limit of the credits */
	uint32_t ack_max;  /* one past the newest PSN that an ACK has named */
	uint32_t since_ackreq; /* packets */
	uint8_t rd_out;	       /* READs, pieces of one, and atomics outstanding */
	uint8_t retry_left, rnr_left;
	bool credit_unlimited;
	bool req_stopped; /* a request failed: start no other */
	bool stalled;	  /* progress should put it on the run list */
	bool rnr_wait, neigh_wait;
	bool drain_event, drained; /* SQD */
	/* Recovery. */
	uint8_t keeps; /* enum roce_keeps */
	bool recovering;
	bool charged; /* this round has cost a retry */
	bool resend; /* sel_psn .. sel_end alone */
	uint8_t hole_steps, probes;
	uint32_t nak_psn; /* the hole being filled */
	uint32_t rtt_psn; /* being timed, when rtt_at != 0 */
	/* Of its type, at all times (roce_qp.c). */
	uint8_t op_base; /* bits 7:5 of its opcodes: RC's, or-ed with these, are its own */
	bool acked;	 /* its requests ask for acknowledgements */
	bool sq_flush;	 /* in SQE, or just back from it: what is posted is flushed */
	uint64_t rtt_at, srtt;
	/* A packet whose payload is being fetched, or that waits for room. */
	struct rte_mbuf *parked;
	uint32_t parked_psn;
	bool parked_response, parked_ready;

	/* Responder. */
	uint8_t say; /* enum roce_say */
	uint8_t syndrome;
	uint8_t msg; /* 0: none open; ROCE_B_SEND or ROCE_B_WRITE */
	bool rwqe_used;
	bool nak_sent, resp_closed;
	uint8_t comm_est; /* enum roce_est */
	bool on_ack_list;
	bool last_wqe; /* the event is due, once the receive in use is flushed */
	bool inv_wait; /* `placing` waits for other workers to forget a key */
	uint32_t epsn, msn;
	uint32_t say_psn;
	uint32_t msg_left; /* WRITE: bytes to come */
	uint32_t msg_done; /* bytes placed */
	union {
		uint32_t msg_rkey;
		uint32_t qkey; /* UD, which has no WRITE */
	};
	uint64_t msg_va;
	struct roce_res_ring *res;
	uint32_t res_tail;    /* index of the next resource, free running */
	uint32_t res_pending; /* how many are pending */
	uint32_t rx_held;
	uint8_t resp_burst; /* responses since requests had a turn, up to ROCE_RESP_BURST */
	bool ect;   /* congestion management is on: packets say so, marks are answered */
	bool paced; /* its rate is limited: roce_cc_may_send() */
	struct roce_qp *ack_next, *neigh_next;
	struct roce_pktq behind_hole; /* requests, in PSN order */
	struct roce_pktq early;	      /* responses behind a hole, in PSN order */
	struct roce_pktq waiting;     /* all that came while a placement is pending, in order */
	struct rte_mbuf *placing;     /* the packet whose payload is being placed */

	/* Timers: 0 is none. */
	struct wheel_entry timer;
	uint64_t due[ROCE_T_COUNT];

	/* Cold. */
	struct verbs_rwqe rwqe;
	struct roce_qp_cold *cold;
};
static_assert(sizeof(struct roce_qp) <= 768, "budget of an idle QP");

/** What only control operations and listings read, and recovery. */
struct roce_qp_cold {
	uint32_t rec_end; /* recovery ends when this is acknowledged */
	uint32_t sel_psn, sel_end;
	uint32_t asked_end; /* responses before it have come or been asked for again */
	uint32_t rec_window; /* bytes: that may be in flight while a hole is filled */
	uint32_t loss_psn; /* holes are counted from here */
	uint16_t holes;
	bool probed; /* una was sent again unasked */
	uint32_t rnr_psn;
	uint32_t flush_to; /* of sq_flush, out of SQE: the send queue's tail then */
	uint32_t xrc_srqn; /* of the message that is received, as the next */
	uint64_t xrc_serial;
	struct verbs_av av;
	struct roce_res_ring *res_new; /* prepared */
	struct roce_res_ring *res_old; /* to be freed, but not by a worker */
	uint64_t local_token; /* of ROCE_WQE_LOCAL */
	uint64_t inv_token;   /* of inv_wait */
	struct rte_mbuf *hold_last; /* kept last, of hold_queue; NULL: none */
	struct roce_pktq *hold_queue;
	uint32_t rq_psn, sq_psn;
	uint16_t pkey_index;
	uint8_t max_dest_rd_atomic;
	struct roce_cc *cc; /* NULL: no mark has come, or long ago */
	uint64_t cnp_due; /* ns: no CNP for a mark before */
	uint64_t ecn_marked, cnps_sent, cnps_rcvd;
	uint64_t retransmits, timeouts, naks_sent, naks_rcvd, rnrs_sent, rnrs_rcvd;
};

/** A packet short enough that its ICRC is cheaper later, when its stores are done. */
struct roce_late {
	uint8_t *l3;
	uint32_t len;
	bool v6;
};

/** Datagrams that wait for a neighbour, chained by mbuf->next (roce_ud_wait.c). */
struct roce_ud_wait {
	struct rte_mbuf *head, *tail;
	uint32_t num;
	uint32_t of_pd[ROCE_UD_WAIT_PDS];
	struct wheel_entry timer;
};

struct roce {
	struct verbs_worker *w;
	struct roce_config cfg;
	uint64_t now;
	uint64_t l2; /* of the QP at hand: net_neigh_use() */
	struct counter counter[ROCE_C_COUNT];
	struct roce_qp *ack_list;
	struct roce_qp *neigh_list;
	uint32_t rx_held;
	uint32_t num_mbufs, num_late;
	uint32_t cc_used; /* QPs that have a rate */
	struct roce_cc_engine *cc;
	uint32_t tx_data_off; /* from a transmit buffer's mbuf to its packet */
	uint64_t tx_at_flush; /* packets built when roce_flush() ran last */
	struct rng rng;
	struct rte_mbuf *mbuf[ROCE_MBUFS];
	struct roce_late late[ROCE_LATE];
	struct wheel wheel;
	struct roce_ud_wait ud_wait;
	uint64_t checked; /* mbuf flag: another worker has checked it and told all others */
};

/** A received packet on its way through the engine. */
struct roce_rx {
	struct rte_mbuf *m;
	struct roce_qp *qp;
	uint32_t bth_off;
	uint8_t ecn;
	struct roce_pkt p;
};

/** Who owns the mbuf afterwards. */
enum roce_rx_result {
	ROCE_RX_FREE, /* the caller, who frees it */
	ROCE_RX_KEPT, /* the QP */
};

/** What became of a packet to be sent. */
enum roce_tx_result {
	ROCE_TX_SENT,
	ROCE_TX_PARKED, /* built, waits for foreign memory */
	ROCE_TX_FULL,	/* no room in the batch, or no mbuf */
	ROCE_TX_WAIT,	/* nothing was done, try again after an event */
	ROCE_TX_ERROR,
};

static inline void
roce_count(struct roce *r, enum roce_counter c)
{
	counter_inc(&r->counter[c]);
}

/** P_Keys match in their low 15 bits, and one end at least is a full member: we are. */
static inline bool
roce_pkey_ok(uint16_t pkey)
{
	return (pkey & 0x7fff) == (ROCE_PKEY_DEFAULT & 0x7fff);
}

static inline uint32_t
roce_mtu(const struct roce_qp *qp)
{
	return 1u << qp->mtu_shift;
}

/** Nobody tells what became of a request: it completes when it has left (IBTA 9.8). */
static inline bool
roce_is_uc(const struct roce_qp *qp)
{
	return qp->v.type == VERBS_QPT_UC;
}

/** Whether requests are flushed, not sent. */
static inline bool
roce_sq_dead(const struct roce_qp *qp)
{
	return qp->v.state >= RING_QPS_SQE;
}

/** PSNs of a message: at least one (section 7 of docs/wire.md). */
static inline uint32_t
roce_num_psns(const struct roce_qp *qp, uint32_t length)
{
	uint64_t n = ((uint64_t)length + roce_mtu(qp) - 1) >> qp->mtu_shift;

	return n ? (uint32_t)n : 1;
}

static inline bool
roce_wqe_has_response(const struct verbs_wqe *wqe)
{
	const uint64_t with = 1ull << RING_WR_RDMA_READ | 1ull << RING_WR_ATOMIC_CMP_AND_SWP |
			      1ull << RING_WR_ATOMIC_FETCH_AND_ADD | 1ull << RING_WR_FLUSH |
			      1ull << RING_WR_ATOMIC_WRITE;

	return with >> (wqe->opcode & 63) & 1;
}

/** Its response says that it is done, and no more: counted in flight without its bytes. */
static inline bool
roce_wqe_is_note(const struct verbs_wqe *wqe)
{
	return wqe->opcode == RING_WR_FLUSH || wqe->opcode == RING_WR_ATOMIC_WRITE;
}

/** Whether it has no packets (roce_local.c). */
static inline bool
roce_wqe_is_local(const struct verbs_wqe *wqe)
{
	const uint64_t local = 1ull << RING_WR_LOCAL_INV | 1ull << RING_WR_BIND_MW |
			       1ull << RING_WR_FAST_REG;

	return local >> (wqe->opcode & 63) & 1;
}

static inline bool
roce_wqe_has_psns(const struct verbs_wqe *wqe)
{
	return wqe->tstate == ROCE_WQE_NEW || wqe->tstate == ROCE_WQE_OPEN;
}

/** Whether psn is one of the request's. */
static inline bool
roce_wqe_holds(const struct verbs_wqe *wqe, uint32_t psn)
{
	return psn_sub(psn, wqe->first_psn) <= psn_sub(wqe->last_psn, wqe->first_psn);
}

/** PSNs of a piece of a READ: each is one to the peer (roce_req.c). */
static inline uint32_t
roce_piece(const struct roce_qp *qp)
{
	return 1u << qp->piece_shift;
}

/** What a QP may have in flight at most. */
static inline uint32_t
roce_inflight_cap(const struct roce *r)
{
	return r && r->cfg.max_inflight ? r->cfg.max_inflight : ROCE_INFLIGHT;
}

/** Bytes in flight from now on; four acknowledgements are asked for in each window. */
static inline void
roce_set_inflight(struct roce_qp *qp, uint32_t bytes)
{
	uint32_t every = (bytes >> qp->mtu_shift) / 4;

	qp->max_inflight = bytes;
	qp->ack_every = (uint16_t)(every < 1 ? 1 : every > ROCE_ACK_EVERY ? ROCE_ACK_EVERY : every);
}

/** Put it on the run list if something held it back. */
static inline void
roce_wake(struct roce *r, struct roce_qp *qp)
{
	if (qp->stalled) {
		qp->stalled = false;
		verbs_run_add(r->w, &qp->v);
	}
}

/** Whether a request is under way or posted. */
static inline bool
roce_req_has_work(struct roce_qp *qp)
{
	return qp->v.wqe_head != NULL || verbs_sq_has_work(&qp->v);
}

/** What a message tells with its last packet; all of it is placed. */
static inline void
roce_recv_fill(const struct roce_qp *qp, const struct roce_pkt *p, struct verbs_recv_done *d)
{
	roce_mask m = p->info->mask;

	d->status = WC_SUCCESS;
	d->opcode = roce_any(m, ROCE_SEND) ? RING_WC_RECV : RING_WC_RECV_RDMA_WITH_IMM;
	d->byte_len = qp->msg_done;
	d->imm = roce_any(m, ROCE_INV) ? p->inv_rkey : p->imm_be;
	d->src_qpn = qp->dest_qpn;
	d->cqe_flags = 0;
	if (roce_any(m, ROCE_IMM))
		d->cqe_flags |= RING_CQE_WITH_IMM;
	if (roce_any(m, ROCE_INV))
		d->cqe_flags |= RING_CQE_WITH_INV;
	if (p->se)
		d->cqe_flags |= RING_CQE_SOLICITED;
}

/** What is known of the peer's first packet. */
enum roce_est {
	ROCE_EST_NONE, /* it has not come: COMM_EST in RTR alone */
	ROCE_EST_TELL, /* COMM_EST in RTS, too */
	ROCE_EST_TOLD,
};

/** A packet of the peer has come: the first one raises COMM_EST, in RTR, or when asked for. */
static inline void
roce_contact(struct roce *r, struct roce_qp *qp)
{
	bool tell = qp->v.state == RING_QPS_RTR || qp->comm_est == ROCE_EST_TELL;

	if (likely(qp->comm_est == ROCE_EST_TOLD))
		return;
	qp->comm_est = ROCE_EST_TOLD;
	if (tell)
		r->w->host.event(r->w->host.ctx, VERBS_EVENT_COMM_EST, &qp->v);
}

/** The frame's Ethertype: IPv4 or IPv6, behind a tag or not. */
static inline bool
roce_rx_is_v6(const struct roce_rx *rx)
{
	const uint8_t *type = rte_pktmbuf_mtod_offset(rx->m, const uint8_t *, 12);

	return type[0] == 0x81 ? type[4] == 0x86 : type[0] == 0x86;
}

/* roce_qpn.c */
struct verbs_qp *roce_qpn_lookup(const struct roce_qpn_table *t, uint32_t qpn, uint32_t *worker);

/* roce_engine.c */
/** The receive in use, if any, completes as flushed: an SRQ's slot comes back no other way. */
void roce_rwqe_flush(struct roce *r, struct roce_qp *qp);

/* roce_qp.c */
void roce_qp_set_state(struct roce_qp *qp, unsigned int state);
/** To ERR: packets dropped, timers stopped; completions follow from roce_run(). */
void roce_qp_fail(struct roce *r, struct roce_qp *qp);
/** A request of a UC QP has failed and is completed: RTS or SQD to SQE (IBTA 10.3.1.6). */
void roce_qp_send_error(struct roce *r, struct roce_qp *qp);
/** After completing: a CQ that overran takes the QP with it. */
void roce_qp_check_cqs(struct roce *r, struct roce_qp *qp);
void roce_qp_check_drained(struct roce *r, struct roce_qp *qp);
/** Set the neighbour's word for sending; false: the QP waits for its address. */
bool roce_qp_reachable(struct roce *r, struct roce_qp *qp);
void roce_neigh_unlink(struct roce *r, struct roce_qp *qp);
void roce_ack_unlink(struct roce *r, struct roce_qp *qp);

/* roce_hold.c */
bool roce_hold_append(struct roce *r, struct roce_qp *qp, struct roce_pktq *q,
		      const struct roce_rx *rx);
/** In PSN order; false: one of that PSN is there, or there is no room. */
bool roce_hold_insert(struct roce *r, struct roce_qp *qp, struct roce_pktq *q,
		      const struct roce_rx *rx);
/** Take the first out and parse it again. */
void roce_hold_pop(struct roce *r, struct roce_qp *qp, struct roce_pktq *q, struct roce_rx *rx);
uint32_t roce_hold_psn(const struct roce_pktq *q);
void roce_hold_drop(struct roce *r, struct roce_qp *qp, struct roce_pktq *q);
/**
 * It cannot be handled now: it is the first to be handled when the QP has its turn on the run
 * list, before all that came after it. false: no room, it counts as lost.
 */
bool roce_hold_again(struct roce *r, struct roce_qp *qp, const struct roce_rx *rx);
/** The packet being placed stays until its io is done; always succeeds. */
void roce_hold_placing(struct roce *r, struct roce_qp *qp, const struct roce_rx *rx);
struct rte_mbuf *roce_unhold_placing(struct roce *r, struct roce_qp *qp);
void roce_rx_reparse(struct roce_rx *rx, struct roce_qp *qp, struct rte_mbuf *m);

/* roce_input.c */
enum roce_rx_result roce_rx_dispatch(struct roce *r, struct roce_rx *rx);
/** The packet that roce_hold_placing() kept is placed, or could not be (status). */
enum roce_rx_result roce_rx_placed(struct roce *r, struct roce_rx *rx, int status,
				   uint64_t original);
/** Type, state, P_Key: what a datagram must fulfil wherever it comes from. Counted if not. */
bool roce_rx_admit(struct roce *r, const struct roce_rx *rx);
/** An admitted packet: now, or behind those that wait. */
enum roce_rx_result roce_rx_take(struct roce *r, struct roce_rx *rx);
/** Go on with what waited, for a placement or a turn. @return whether it wants another turn. */
bool roce_rx_resume(struct roce *r, struct roce_qp *qp);

/* roce_tx.c */
struct roce_out {
	struct rte_mbuf *m;
	uint8_t *l3, *bth, *ext, *payload;
	uint32_t len, pad; /* of the payload */
	bool v6;
};
/** Room in the batch and a buffer at hand. */
bool roce_tx_ready_port(struct roce *r, uint16_t port);
static inline bool
roce_tx_ready(struct roce *r, const struct roce_qp *qp)
{
	return roce_tx_ready_port(r, qp->port);
}
/** Begin a packet, after roce_tx_ready(): headers through BTH; psn may carry ROCE_BTH_ACKREQ. */
void roce_tx_open(struct roce *r, struct roce_qp *qp, uint8_t opcode, uint8_t se, uint32_t psn,
		  uint32_t len, struct roce_out *out);
/** The same by a path, with the neighbour's word, to a QP that is not the path's own. */
void roce_tx_open_path(struct roce *r, const struct net_path *path, uint64_t l2, uint8_t opcode,
		       uint8_t se, uint32_t dest_qpn, uint32_t psn, uint32_t len,
		       struct roce_out *out);
/** CRC state before the payload, when it is to be summed while copied; NULL: later. */
uint32_t *roce_tx_crc(const struct roce_out *out, uint32_t *crc);
void roce_tx_close(struct roce *r, struct roce_qp *qp, struct roce_out *out, const uint32_t *crc);
/** The parts of roce_tx_close(): pad and ICRC, this one perhaps not before roce_flush(); off. */
void roce_tx_seal(struct roce *r, struct roce_out *out, const uint32_t *crc);
void roce_tx_push(struct roce *r, uint16_t port, struct rte_mbuf *m);
/** Pad and ICRC at once, for what does not leave in this burst. */
void roce_tx_seal_now(struct roce_out *out, const uint32_t *crc);
void roce_tx_cancel(struct roce *r, struct roce_out *out);
void roce_tx_park(struct roce_qp *qp, const struct roce_out *out, uint32_t psn, bool response);
/** Send a parked packet whose payload has come. */
bool roce_tx_unpark(struct roce *r, struct roce_qp *qp);
void roce_tx_finish_late(struct roce *r);
void roce_tx_release(struct roce *r);

/* roce_req.c */
enum verbs_run roce_req_run(struct roce *r, struct roce_qp *qp);
struct verbs_wqe *roce_wqe_find(const struct roce_qp *qp, uint32_t psn);
void roce_req_set(struct roce_qp *qp, uint32_t psn);
/** The request cannot go on: it fails when all before it have completed. */
void roce_req_fail(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe,
		   enum wc_status status);

/* roce_local.c */
/** Begin one, which is the newest request. @return false: the queue stops here. */
bool roce_local_start(struct roce *r, struct roce_qp *qp, struct verbs_wqe *wqe);
/** Whether the newest request is one that still waits; it is looked at again. */
bool roce_local_waits(struct roce *r, struct roce_qp *qp);
/** The QP leaves or fails: what one has claimed is let go of. */
void roce_local_abort(struct roce *r, struct roce_qp *qp);
/** What to wait for after a key has left VALID, or before it is given another meaning. */
uint64_t roce_local_grace(struct roce *r, uint32_t key);
bool roce_local_passed(const struct roce *r, uint64_t token);

/* roce_comp.c */
enum roce_rx_result roce_comp_packet(struct roce *r, struct roce_rx *rx);
/** Complete what has been acknowledged, in order. */
void roce_comp_reap(struct roce *r, struct roce_qp *qp);
/** The oldest request fails with this status, and the QP with it. */
void roce_comp_fatal(struct roce *r, struct roce_qp *qp, enum wc_status status);
/** Go on with what an acknowledgement has told before. */
void roce_comp_resume(struct roce *r, struct roce_qp *qp);
/** What came early and is in order now. Stops at the next hole, which is asked for at once. */
void roce_comp_drain(struct roce *r, struct roce_qp *qp);
enum roce_rx_result roce_comp_placed(struct roce *r, struct roce_rx *rx, int status);

/* roce_recovery.c */
void roce_recovery_nak(struct roce *r, struct roce_qp *qp, uint32_t psn);
/** Responses from una to before `upto` did not come; kept: that of `upto` did and stays here. */
void roce_recovery_missing(struct roce *r, struct roce_qp *qp, uint32_t upto, bool kept);
void roce_recovery_progress(struct roce *r, struct roce_qp *qp, uint32_t old_una);
void roce_recovery_timeout(struct roce *r, struct roce_qp *qp);
/** late: ns since it was due. */
void roce_recovery_probe(struct roce *r, struct roce_qp *qp, uint64_t late);
/** When to look whether the tail is lost: ns, from the last progress; 0: nothing is known. */
uint64_t roce_recovery_tail(const struct roce_qp *qp);
/** An ACK has moved una while a hole is being filled. */
void roce_recovery_acked(struct roce *r, struct roce_qp *qp);
/** A round trip without a hole. */
void roce_recovery_widen(const struct roce *r, struct roce_qp *qp);
void roce_recovery_go_back(struct roce *r, struct roce_qp *qp, uint32_t psn);

/* roce_resp.c */
enum roce_rx_result roce_resp_packet(struct roce *r, struct roce_rx *rx);
enum roce_rx_result roce_resp_placed(struct roce *r, struct roce_rx *rx, int status,
				     uint64_t original);
/** Whether the key that a packet ended is forgotten everywhere; then the packet completes. */
void roce_resp_inv_poll(struct roce *r, struct roce_qp *qp);
/** The hole may be filled: handle what was kept behind it. */
void roce_resp_drain(struct roce *r, struct roce_qp *qp);

/* roce_uc.c */
enum roce_rx_result roce_uc_packet(struct roce *r, struct roce_rx *rx);
enum roce_rx_result roce_uc_placed(struct roce *r, struct roce_rx *rx, int status);
/** All up to snd_max is in the transmit batch. */
void roce_uc_sent(struct roce *r, struct roce_qp *qp);

/* roce_ud.c */
enum roce_rx_result roce_ud_packet(struct roce *r, struct roce_rx *rx);
enum roce_rx_result roce_ud_placed(struct roce *r, struct roce_rx *rx, int status);

/* roce_flush.c */
/** Rights that a FLUSH needs; 0: it makes no sense. */
uint32_t roce_flush_rights(const struct roce_pkt *p);
/** Length and alignment of a FLUSH or an ATOMIC WRITE. */
bool roce_note_len_ok(const struct roce_pkt *p);
enum mr_result roce_flush_check(struct roce *r, struct roce_qp *qp, const struct roce_pkt *p,
				struct mr_ref *ref);
void roce_flush_done(void);

/* roce_xrc.c */
/** The SRQ that a request in its turn names, and its whole message; NULL: none of the domain. */
struct verbs_srq *roce_xrc_request(struct roce *r, struct roce_qp *qp, const struct roce_pkt *p);
/** That of the message under way; NULL: it is gone. */
struct verbs_srq *roce_xrc_message(const struct roce *r, const struct roce_qp *qp);
/** Complete the receive in use, to wherever it belongs. */
void roce_recv_complete(struct roce *r, struct roce_qp *qp, const struct verbs_recv_done *d);

/* roce_resp_tx.c */
uint8_t roce_resp_credits(struct roce_qp *qp);
enum verbs_run roce_resp_run(struct roce *r, struct roce_qp *qp);
void roce_resp_say(struct roce *r, struct roce_qp *qp, enum roce_say say, uint8_t syndrome,
		   uint32_t psn);
void roce_ack_enqueue(struct roce *r, struct roce_qp *qp);
/** The memory of the parked READ response could not be read. */
void roce_resp_parked_failed(struct roce *r, struct roce_qp *qp);
/** Say it now, if nothing is due before; false: no room. */
bool roce_resp_speak(struct roce *r, struct roce_qp *qp);
/** Whether another READ or atomic keeps to the depth that was agreed upon. */
bool roce_res_room(struct roce_qp *qp);
struct roce_res *roce_res_new(struct roce_qp *qp);
struct roce_res *roce_res_find(struct roce_qp *qp, uint32_t psn);
/** The newest PSN up to which a repeated SEND or WRITE may be acknowledged. */
uint32_t roce_res_ack_limit(struct roce_qp *qp, uint32_t psn);

/* roce_cc.c */
struct roce_cc_engine *roce_cc_create(uint32_t num_ports, uint32_t blocks, uint64_t now);
void roce_cc_destroy(struct roce_cc_engine *e);
bool roce_cc_enabled(const struct roce *r, uint32_t port);
/** A packet of the QP came with CE. */
void roce_cc_marked(struct roce *r, struct roce_qp *qp, uint16_t pkey);
/** A CNP came for the QP. */
void roce_cc_notified(struct roce *r, struct roce_qp *qp);
/** Of a QP that is `paced`; false: its turn comes by itself. */
bool roce_cc_may_send(struct roce *r, struct roce_qp *qp);
/** So many bytes of it leave. */
void roce_cc_sent(struct roce *r, struct roce_qp *qp, uint32_t bytes);
/** It goes at line rate; its block is free. */
void roce_cc_drop(struct roce *r, struct roce_qp *qp);
/** With cc_used != 0 only. */
unsigned int roce_cc_timers(struct roce *r);
uint64_t roce_cc_next(const struct roce *r);
void roce_cc_get_info(const struct roce_qp *qp, struct roce_qp_info *info);

/* roce_timer.c */
void roce_timer_set(struct roce *r, struct roce_qp *qp, enum roce_timer t, uint64_t when);
static inline void
roce_timer_stop(struct roce_qp *qp, enum roce_timer t)
{
	qp->due[t] = 0;
}
/** Something was sent that wants an answer. */
void roce_timer_sent(struct roce *r, struct roce_qp *qp);
/** una has moved, or a new round of sending begins. */
void roce_timer_progress(struct roce *r, struct roce_qp *qp);

/* roce_error.c: pure */
enum wc_status roce_status_of_syndrome(uint8_t syndrome);
enum roce_counter roce_counter_of_syndrome(uint8_t syndrome);
enum verbs_event roce_event_of_syndrome(uint8_t syndrome);

#endif /* ROCE_PRIV_H */
