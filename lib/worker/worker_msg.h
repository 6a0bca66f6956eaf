/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the control thread and the workers: all that crosses that border. A worker's
 * mailbox is an rte_ring of pointers to these; replies come back the same way on the control
 * thread's ring, the same structure with `status` filled in. Whoever enqueues towards a worker
 * does: enqueue, fence, if (sleeping) kick (ring_kick.h). The sender owns the memory again when
 * the reply is there; messages without reply are freed by the receiver's side through `done`.
 */
#ifndef WORKER_MSG_H
#define WORKER_MSG_H

#include <sys/queue.h>

#include "ring_abi.h"
#include "ring_bell.h"
#include "ring_channel.h"
#include "roce_cc.h"
#include "verbs.h"

struct roce_ah;
struct roce_mad;
struct rte_mbuf;
struct worker_ctx;

enum worker_msg_type {
	/* control -> worker, each answered with the same message */
	WORKER_MSG_CTX_ADD,	/* a context: its bells and words */
	WORKER_MSG_CTX_DEL,	/* forget it; answered when nothing counts for it */
	WORKER_MSG_BELL_CHUNK,	/* a further chunk of its bells */
	WORKER_MSG_QP_BIND,	/* the QP is this worker's from now on; then as QP_MODIFY */
	WORKER_MSG_QP_MODIFY,
	WORKER_MSG_QP_QUERY,
	WORKER_MSG_QP_UNBIND,	/* detach; answered when nothing of it is under way */
	WORKER_MSG_CQ_SUB,	/* this worker's end of a CQ is ready, or a resize */
	WORKER_MSG_CQ_DEL,	/* drop it from lists */
	WORKER_MSG_SRQ_DEL,	/* nothing of it is under way here any more */
	WORKER_MSG_NEIGH,	/* a neighbour was resolved or changed */
	WORKER_MSG_AH_FORGET,	/* drop the packets that wait by an address handle */
	WORKER_MSG_QUIESCE,	/* answered after the next quiescent point */
	/* control -> worker, not answered */
	WORKER_MSG_TX,		/* send this finished packet */
	WORKER_MSG_CC,		/* congestion management of a port */
	WORKER_MSG_STOP,
	/* copier -> worker */
	WORKER_MSG_IO_DONE,
	/* worker -> control, not answered */
	WORKER_MSG_EVENT,	/* asynchronous event */
	WORKER_MSG_RX_CTL,	/* a packet for the control thread: ARP, ND, ICMP errors */
	WORKER_MSG_RX_GSI,	/* a MAD that came to QP1; held until it is looked at */
	WORKER_MSG_NOTIFY,	/* wake a channel: the worker's own cap was reached */
};

struct worker_msg {
	struct worker_msg *next; /* the receiver's, while it holds the message */
	uint8_t type; /* enum worker_msg_type */
	bool reply;   /* travels back */
	int status;
	uint64_t cookie; /* the sender's */
	void (*done)(struct worker_msg *m); /* how to free it, where no reply is made */
	union {
		struct worker_ctx *ctx;
		struct {
			struct worker_ctx *ctx;
			struct ring_bell_chunk *chunk;
			struct verbs_qp **slots; /* RING_BELL_SLOTS of them, zeroed */
			uint32_t number;
		} bell;
		struct {
			struct worker_ctx *ctx;
			struct verbs_qp *qp;
			uint32_t bell_slot; /* in ctx, over all its chunks:
					     * chunk number * RING_BELL_SLOTS + slot;
					     * UINT32_MAX: none */
			uint32_t mask;
			struct verbs_qp_attr attr; /* in; QUERY: out */
		} qp;
		struct {
			struct verbs_cq *cq;
			struct ring_cqe *ring;
			const _Atomic uint32_t *cons;
			uint32_t entries;
			uint32_t start; /* out: index of the first entry of this ring */
		} cq;
		struct verbs_srq *srq;
		struct {
			struct net_neigh *neigh;
		} neigh;
		struct {
			uint16_t port;
			struct rte_mbuf *m;
		} pkt; /* TX, RX_CTL */
		const struct roce_ah *ah; /* AH_FORGET */
		const struct roce_mad *mad; /* RX_GSI; the worker's, until done() */
		struct {
			enum verbs_event event;
			void *obj;
		} event;
		struct {
			uint32_t port;
			struct roce_cc_params params;
		} cc;
		struct verbs_io *io;
		struct verbs_cq *notify;
	};
};

/**
 * A context as its workers know it. Made by the control thread, one for all workers; each
 * worker has its own element of at[] and alone touches it between CTX_ADD and the reply to
 * CTX_DEL. Before CTX_ADD the control thread sets daemon, kick_fd and, if there is a first
 * chunk, chunk[0], slots[0] and num_chunks.
 */
struct worker_ctx {
	uint32_t id;
	uint32_t num_workers;
	struct worker_ctx_at {
		_Alignas(RING_LINE)
		struct ring_bell_chunk *chunk[RING_BELL_CHUNKS];
		/* bell slot -> QP; the memory is the control thread's, zeroed, lazily mapped */
		struct verbs_qp **slots[RING_BELL_CHUNKS];
		struct ring_bell_scan scan[RING_BELL_CHUNKS]; /* zeroed */
		struct ring_bell_daemon *daemon; /* need_kick */
		/* Slots below this have had a QP. A client may ring others: those are not even
		 * looked at, since the memory behind them is not there yet. */
		uint32_t slots_used[RING_BELL_CHUNKS];
		uint32_t num_chunks;
		int kick_fd;		 /* eventfd; watched edge-triggered, never read */
		bool idle;		 /* not on the poll list: a kick wakes it */
		_Atomic bool kicked;	 /* the control thread saw kick_fd: worker_ctx_kick() */
		uint64_t last_bell;	 /* ns */
		struct worker_ctx *next; /* on the worker's list, polled or idle */
		struct verbs_share share; /* of the worker's pools, for the context's QPs */
	} at[];
};

/**
 * A completion channel as those who write to it know it. One byte a notification, EAGAIN means
 * that it is readable already. Lives until every CQ of it has had its CQ_DEL answered.
 */
struct worker_channel {
	int wr_fd; /* of a pipe, O_NONBLOCK; never leaves the daemon */
	/* by worker id; [num_workers] is the control thread's */
	struct ring_channel_sub *sub[RING_MAX_WORKERS + 1];
	/** A worker's: bytes of it are still to be written. */
	struct worker_channel_at {
		TAILQ_ENTRY(worker_channel_at) link;
		struct worker_channel *due; /* this one; NULL: none are */
		uint32_t owed;		    /* bytes, if it is due */
	} at[RING_MAX_WORKERS];
};

/** Of an object: events of it that could not be told at once. */
struct worker_late {
	TAILQ_ENTRY(worker_late) link;
	void *obj;	 /* NULL: there are none */
	uint32_t events; /* a bit each, of enum verbs_event */
};

/** What verbs_qp.owner points to, as the next. */
struct worker_qp {
	struct worker_late late;
};

/** What verbs_cq.owner points to: the head of the control thread's object of a CQ. */
struct worker_cq {
	struct worker_channel *channel; /* NULL: none. Constant while the CQ exists */
	struct worker_late late;		/* of the worker that saw it overrun */
};

/**
 * What verbs_srq.owner points to: several workers may have an event of it to tell at a time. One
 * that is late stands for those of armings that follow before it is told.
 */
struct worker_srq {
	uint32_t num_workers;
	struct worker_late late[]; /* by worker id */
};

#endif /* WORKER_MSG_H */
