/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every transport shares: queue pairs and their state table, completion queues, the
 * shadow copies of work requests, moving payload between packets and registered memory, and
 * the run list. One struct verbs_worker a worker; nothing here is shared between workers but
 * the key table, and nothing reads a clock.
 *
 * Objects are made and freed by the control thread, which hands them to the worker by
 * message; from then on only that worker touches them.
 */
#ifndef VERBS_H
#define VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base_counters.h"
#include "base_status.h"
#include "mr_table.h"
#include "ring_abi.h"
#include "ring_cq.h"
#include "ring_wq.h"

struct net_neigh;
struct verbs_qp;
struct verbs_worker;

/** QP types, as enum ibv_qp_type. */
enum verbs_qp_type {
	VERBS_QPT_GSI = 1,
	VERBS_QPT_RC = 2,
	VERBS_QPT_UC = 3,
	VERBS_QPT_UD = 4,
	VERBS_QPT_XRC_SEND = 9,
	VERBS_QPT_XRC_RECV = 10,
};

/** Asynchronous events, as enum ibv_event_type. */
enum verbs_event {
	VERBS_EVENT_CQ_ERR = 0,
	VERBS_EVENT_QP_FATAL = 1,
	VERBS_EVENT_QP_REQ_ERR = 2,
	VERBS_EVENT_QP_ACCESS_ERR = 3,
	VERBS_EVENT_COMM_EST = 4,
	VERBS_EVENT_SQ_DRAINED = 5,
	VERBS_EVENT_SRQ_ERR = 14,
	VERBS_EVENT_SRQ_LIMIT_REACHED = 15,
	VERBS_EVENT_QP_LAST_WQE_REACHED = 16,
};

/* ---- completion queues ---------- */

/** One worker's end of a CQ, on lines of its own: workers do not share them. */
struct verbs_cq_end {
	_Alignas(RING_LINE)
	struct ring_cq_prod prod; /* prod.ring == NULL: this worker has no sub-ring yet, and
				   * no QP of the CQ may be bound to it */
	struct verbs_cq *cq;
	struct verbs_cq_end *dirty_next; /* on the worker's list of CQs completed to this burst */
	bool dirty;
	bool solicited; /* since the last look at `armed` */
	bool late;	/* the host's: an event of the CQ waits here to be told */
};

struct verbs_cq {
	uint32_t cqn;
	uint32_t num_workers;
	struct ring_cq_daemon *daemon;
	const struct ring_cq_client *client;
	void *owner;  /* the control thread's object */
	/* Completions were lost, VERBS_EVENT_CQ_ERR has been sent, none is written any more.
	 * The transport looks at it after completing to the CQ and moves the QP to error; other
	 * QPs of the CQ find out at their next completion. */
	_Atomic bool overrun;
	struct verbs_cq_end end[]; /* by worker id */
};

/* ---- shares of a worker's pools ---------- */

enum verbs_pool {
	VERBS_POOL_WQE,	  /* started send requests */
	VERBS_POOL_BLOCK, /* long lists */
	VERBS_POOL_IO,	  /* foreign accesses */
	VERBS_POOLS
};

/**
 * What a context has of one worker's pools. It may take another one while it has fewer than are
 * left: alone it gets half of a pool, and each of n that want more than there is gets one in
 * n + 1, so that there is always some left for those who have less.
 */
struct verbs_share {
	uint32_t used[VERBS_POOLS];
	/* QPs that got none and wait for their turn, by run_next and run_prev */
	struct verbs_qp *wait_head, *wait_tail;
	uint8_t wants; /* VERBS_QP_WANTS() that any of them has had since there are some */
	TAILQ_ENTRY(verbs_share) link; /* on the worker's list, while QPs wait */
	struct counter refused[VERBS_POOLS];
};

/* ---- shadows of work requests ---------- */

struct verbs_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

#define VERBS_WQE_SGES 4 /* in the shadow itself; more live in a block of their own */

struct verbs_sgl_block {
	struct verbs_sgl_block *next;
	struct verbs_share *share; /* that it counts for */
	struct verbs_sge sge[RING_MAX_SGE];
};

/** A gather or scatter list; `sge` points into the shadow or to a block. */
struct verbs_sgl {
	const struct verbs_sge *sge;
	uint32_t num;
	uint32_t pd; /* that its keys must belong to: the QP's, or the SRQ's */
};

/** What BIND_MW and FAST_REG say, in the place of the list they do not have. */
struct verbs_bind {
	uint64_t length; /* remote_addr: the window's start, rkey: its new key */
	uint32_t mr_lkey;
	uint32_t access;
	uint32_t mw_key;
};
struct verbs_fast_reg {
	uint64_t length; /* remote_addr: the iova, rkey: the new key */
	uint64_t list_addr;
	uint32_t list_len;
	uint32_t list_lkey;
	uint32_t access;
};

/**
 * A send request, copied out of shared memory once and checked. Lives from being started to
 * its completion. The transport's own words are at its disposal.
 */
struct verbs_wqe {
	struct verbs_wqe *next; /* the QP's started requests, oldest first */
	uint32_t wqe_index;
	uint8_t opcode; /* enum ring_wr_opcode */
	uint8_t flags;	/* enum ring_wr_flag */
	uint8_t num_sge;
	uint8_t num_slots;
	uint32_t length; /* bytes of the message; FLUSH: of the range */
	uint32_t imm;	 /* network order, or key to invalidate */
	union {
		uint32_t rkey;
		uint32_t qkey; /* UD */
	};
	uint32_t flush;
	union {
		uint64_t remote_addr;
		struct {
			uint32_t ah; /* UD: the address handle's number, to be checked */
			uint32_t remote_qpn;
		};
	};
	/* transport's */
	uint32_t first_psn, last_psn;
	uint32_t ssn;	/* send sequence number: for end-to-end credits */
	uint32_t done;	/* bytes (READ: received so far) */
	uint8_t tstate; /* transport's state of this request */
	uint8_t status; /* enum wc_status to complete with, when it is its turn */
	uint16_t reserved;
	uint32_t srqn; /* XRC: the remote SRQ */
	/* second line */
	struct verbs_sgl_block *block; /* when num_sge > VERBS_WQE_SGES */
	uint64_t compare_add;
	uint64_t swap;
	uint32_t pd; /* of the QP */
	struct verbs_wqe *link; /* transport's */
	union {
		struct verbs_sge sge[VERBS_WQE_SGES];
		struct verbs_bind bind;
		struct verbs_fast_reg fast_reg;
	};
};
static_assert(offsetof(struct verbs_wqe, block) == RING_LINE, "what retransmission reads: a line");
static_assert(offsetof(struct verbs_wqe, sge[1]) <= 2 * RING_LINE, "one element: two lines");

/** A receive request, copied out once. */
struct verbs_rwqe {
	uint32_t wqe_index;
	uint32_t length; /* sum of the SGEs */
	uint8_t num_sge;
	uint8_t num_slots;
	bool valid;
	uint32_t pd; /* of the QP or SRQ */
	struct verbs_sgl_block *block;
	struct verbs_sge sge[VERBS_WQE_SGES];
};

/* ---- queue pairs ---------- */

enum verbs_dir {
	VERBS_TX, /* gathering for packets to be sent */
	VERBS_RX, /* placing what was received, and atomics */
	VERBS_DIRS
};

#define VERBS_QP_SIG_ALL 1u
#define VERBS_QP_WANTS(pool) (2u << (pool)) /* it got none from there when it ran last */
#define VERBS_QP_WANTS_ANY (VERBS_QP_WANTS(VERBS_POOLS) - 2u)
#define VERBS_QP_STARVED 0x80u /* it waits in its share's list */

/** The part of a QP that all transports share; a transport's QP starts with it. */
struct verbs_qp {
	uint32_t qpn;
	uint8_t type;	     /* enum verbs_qp_type */
	uint8_t state;	     /* enum ring_qp_state; the worker's copy is the truth once bound */
	uint8_t flags;	     /* VERBS_QP_* */
	bool on_run_list;
	union {
		uint32_t pd;
		uint32_t xrcd; /* XRC_RECV: its domain; keys go by the PD of a request's SRQ */
	};
	uint32_t access;     /* rights granted to the peer: MR_REMOTE_* */
	struct verbs_cq *send_cq;
	struct verbs_cq *recv_cq;
	struct verbs_srq *srq;
	struct ring_qp_daemon *daemon;
	struct verbs_qp *run_next; /* on the run list, or its share's */
	void *owner; /* the control thread's object */
	struct ring_wq_cons sq;
	struct ring_wq_cons rq;
	struct verbs_wqe *wqe_head, *wqe_tail; /* started, not completed */
	struct verbs_io *io[VERBS_DIRS]; /* foreign access: that direction is parked */
	int32_t deficit; /* bytes it may send in this round; the transport subtracts */
	uint32_t rq_counted; /* slots up to here are in rq_posted (verbs_rq_count()) */
	uint32_t rq_posted;
	uint16_t max_inline;
	uint8_t max_send_sge, max_recv_sge;
	struct verbs_share *share; /* of its worker's pools; set when it is bound */
	struct verbs_qp *run_prev; /* but of the first */
};

/** Where the entries of an SRQ lie. A resize replaces it as a whole. */
struct verbs_srq_ring {
	const uint8_t *slots;
	const _Atomic uint32_t *index; /* entry numbers, client-written */
	uint32_t mask;		       /* of the index */
	uint32_t entries;	       /* numbers below this are good */
};

/**
 * Shared receive queue: entries of `stride` bytes, one request each, and a ring of the numbers
 * of posted ones. Shared by the workers that have QPs of it.
 */
struct verbs_srq {
	uint32_t srqn;
	uint32_t pd;
	/* Of a resize: the same entries at the same indices in both, and the old one stays until
	 * every worker has passed a quiescent point. */
	_Atomic(const struct verbs_srq_ring *) ring;
	struct ring_srq_daemon *daemon; /* head, moved by compare-and-swap */
	const struct ring_srq_client *client;
	uint32_t stride; /* bytes: RING_SLOT_SIZE * ring_rwqe_slots(max_sge) */
	uint8_t max_sge;
	/* Its indices were incredible: VERBS_EVENT_SRQ_ERR has been sent, nothing is taken any
	 * more, and who would take something fails. */
	_Atomic bool broken;
	_Atomic uint64_t limit; /* VERBS_SRQ_LIMIT() of the last arming, see verbs_srq_arm() */
	void *owner;
	/* XRC: where completions go, the domain's number, and one that no other SRQ has had.
	 * Constant. */
	struct verbs_cq *cq;
	uint32_t xrcd;
	uint64_t serial;
};

/** Requests posted and not taken; UINT32_MAX: the indices are incredible. */
uint32_t verbs_srq_count(struct verbs_srq *srq);
/**
 * Control thread: arm the limit anew, 0: disarm. VERBS_EVENT_SRQ_LIMIT_REACHED comes once for it,
 * from whichever worker leaves fewer in the queue.
 */
void verbs_srq_arm(struct verbs_srq *srq, uint32_t limit);
/** The limit while it is armed, else 0. */
static inline uint32_t
verbs_srq_armed(const struct verbs_srq *srq)
{
	return (uint32_t)atomic_load_explicit(&srq->limit, memory_order_relaxed);
}
/** Whether there are fewer than the limit, of which nobody has been told: the caller tells. */
bool verbs_srq_reached(struct verbs_srq *srq);

/* ---- foreign memory ---------- */

enum verbs_io_op {
	VERBS_IO_READ,	/* remote -> local */
	VERBS_IO_WRITE, /* local -> remote, ascending, the last piece last */
	VERBS_IO_CMP_SWAP,
	VERBS_IO_FETCH_ADD,
};

/* Neighbours are joined, so that more than one of an element need a whole mapped page between */
#define VERBS_IO_PIECES (RING_MAX_SGE + 8)

/**
 * An access to memory that the worker does not touch itself. Given to host->io_submit();
 * comes back through verbs_io_finish() on the same worker, exactly once, in lane order.
 */
struct verbs_io {
	struct verbs_io *next;
	struct verbs_qp *qp; /* NULL: the QP has gone, finish quietly */
	void *user; /* the transport's: what must live until it finishes (the packet), set after
		     * VERBS_PENDING; to be read before verbs_io_finish(), QP gone or not */
	void *lane; /* of all its pieces */
	struct verbs_share *share; /* that it counts for */
	uint8_t op;	     /* enum verbs_io_op */
	uint8_t dir;	     /* enum verbs_dir */
	uint16_t num;
	int status;	     /* out: 0, or -EFAULT and the like */
	uint64_t compare_add, swap, original; /* host order */
	struct {
		uint64_t remote;
		uint8_t *local;
		uint32_t len;
		uint32_t key;
		struct mr *mr, *under; /* held (mr_hold()) */
	} piece[VERBS_IO_PIECES];
	/* A write whose last bytes are mapped: verbs_io_finish() places them, after the rest */
	struct {
		uint8_t *dst;
		const uint8_t *src;
		uint32_t len; /* 0: none */
		uint32_t key;
		struct mr_ref ref; /* held, as is the next */
		struct mr *under;
	} late;
};

enum verbs_io_result {
	VERBS_DONE,
	VERBS_PENDING, /* qp->io[dir] is set; the transport parks that direction */
	VERBS_ERROR,   /* *why tells */
	/* Nothing was done: that direction is parked, or its share has no io left. Then the QP
	 * waits for one, and is put on the run list in its turn. */
	VERBS_AGAIN,
};

/* ---- the worker's side of it all ---------- */

/** What the surroundings (worker loop, simulator) do for verbs. Slow paths only. */
struct verbs_host {
	/** A CQ that was armed has completions: wake its client. */
	void (*notify)(void *ctx, struct verbs_cq *cq);
	/** Tell the control thread. obj is the verbs_qp, verbs_cq or verbs_srq. */
	void (*event)(void *ctx, enum verbs_event event, void *obj);
	/** Start a foreign access. */
	void (*io_submit)(void *ctx, struct verbs_io *io);
	void *ctx;
};

/** A worker's counters: the identifier, the name, what it counts. */
#define VERBS_COUNTERS(X)                                                            \
	X(VERBS_C_WQE_STARTED, "wqe_started", "send requests taken")                 \
	X(VERBS_C_WQE_BAD, "wqe_malformed", "malformed work requests")               \
	X(VERBS_C_TAIL_BAD, "queue_index_bad", "incredible queue indices")           \
	X(VERBS_C_SHADOW_EMPTY, "shadow_empty", "requests that waited for the pools") \
	X(VERBS_C_IO_EMPTY, "io_empty", "accesses that waited for their share")      \
	X(VERBS_C_SRQ, "srq_taken", "receive requests taken from shared queues")     \
	X(VERBS_C_SRQ_EMPTY, "srq_empty", "times that a shared queue had none")      \
	X(VERBS_C_SRQ_LIMIT, "srq_limit", "shared queues that fell below their limit") \
	X(VERBS_C_SRQ_ERR, "srq_error", "shared queues with incredible indices")     \
	X(VERBS_C_CQE, "cqe", "completions written")                                 \
	X(VERBS_C_CQ_OVERRUN, "cq_overrun", "completions lost to a full CQ")         \
	X(VERBS_C_NOTIFY, "notify", "clients woken for a completion")                \
	X(VERBS_C_IO_SUBMIT, "io_submit", "accesses given to the copiers")           \
	X(VERBS_C_IO_FAULT, "io_fault", "of those, the ones that failed")
COUNTERS_ENUM(verbs_counter, VERBS_COUNTERS, VERBS_C_COUNT);
extern const struct counter_desc verbs_counter_desc[]; /* by enum verbs_counter */

struct verbs_worker {
	uint32_t id;
	uint32_t run_count;
	uint64_t now; /* ns; set by the worker once a burst, stamped into completions */
	struct mr_table *mrs;
	struct verbs_host host;
	struct verbs_qp *run_head, *run_tail;
	struct verbs_qp *run_last; /* the last one of the round under way */
	bool run_resume;	   /* the head has had its share for this turn (VERBS_RUN_FULL) */
	struct verbs_cq_end *dirty;
	struct verbs_wqe *free_wqes;
	struct verbs_sgl_block *free_blocks;
	struct verbs_io *free_ios;
	uint32_t shadows, blocks, ios; /* in all */
	uint32_t num_starved;
	TAILQ_HEAD(, verbs_share) starved; /* shares with QPs that wait */
	struct verbs_share everyone;	   /* of QPs without a context */
	struct counter refused[MR_RESULT_COUNT]; /* by the access check, by reason */
	struct counter counter[VERBS_C_COUNT];
	uint32_t shadows_used, blocks_used, ios_used; /* 0 when every QP is idle */
	void *memory; /* the pools */
	size_t memory_size;
};

/**
 * Make a worker's pools: `shadows` send requests in flight at once, `blocks` long lists,
 * `ios` foreign accesses. @return 0 or -ENOMEM. Not thread-safe.
 */
int verbs_worker_init(struct verbs_worker *w, uint32_t id, struct mr_table *mrs,
		      const struct verbs_host *host, uint32_t shadows, uint32_t blocks,
		      uint32_t ios);
void verbs_worker_fini(struct verbs_worker *w);

/* ---- state table (verbs_qp_state.c), pure ---------- */

/** Attribute mask bits, as enum ibv_qp_attr_mask. */
enum verbs_qp_attr_mask {
	VERBS_QP_STATE = 1 << 0,
	VERBS_QP_CUR_STATE = 1 << 1,
	VERBS_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	VERBS_QP_ACCESS_FLAGS = 1 << 3,
	VERBS_QP_PKEY_INDEX = 1 << 4,
	VERBS_QP_PORT = 1 << 5,
	VERBS_QP_QKEY = 1 << 6,
	VERBS_QP_AV = 1 << 7,
	VERBS_QP_PATH_MTU = 1 << 8,
	VERBS_QP_TIMEOUT = 1 << 9,
	VERBS_QP_RETRY_CNT = 1 << 10,
	VERBS_QP_RNR_RETRY = 1 << 11,
	VERBS_QP_RQ_PSN = 1 << 12,
	VERBS_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	VERBS_QP_ALT_PATH = 1 << 14,
	VERBS_QP_MIN_RNR_TIMER = 1 << 15,
	VERBS_QP_SQ_PSN = 1 << 16,
	VERBS_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	VERBS_QP_PATH_MIG_STATE = 1 << 18,
	VERBS_QP_CAP = 1 << 19,
	VERBS_QP_DEST_QPN = 1 << 20,
	VERBS_QP_RATE_LIMIT = 1 << 25,
};

/**
 * May a QP of this type go from cur to next with exactly these attributes? VERBS_QP_STATE in
 * the mask is implied. With VERBS_QP_CUR_STATE the caller also compares the attribute with cur.
 * @return 0, or -EINVAL: nothing may be changed then (IBTA 10.3.1, C-46 of docs/wire.md).
 */
int verbs_qp_modify_check(enum verbs_qp_type type, unsigned int cur, unsigned int next,
			  uint32_t mask);
const char *verbs_qp_state_name(unsigned int state);
const char *verbs_qp_type_name(unsigned int type);
/** Which states take posts and packets. */
bool verbs_qp_may_receive(unsigned int state); /* RTR, RTS, SQD, SQE */

/** Address vector, resolved by the control thread. */
struct verbs_av {
	uint8_t dgid[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t sgid[16];
	uint8_t smac[6];
	uint16_t vlan;	  /* VLAN id, 0xffff: untagged */
	uint16_t port;	  /* port index in the daemon */
	uint8_t sl, tclass, hop_limit;
	uint32_t flow_label;
	struct net_neigh *neigh; /* next hop, referenced */
};

/** Values for a modify, host order; which count is told by the mask. */
struct verbs_qp_attr {
	uint8_t state, cur_state;
	bool en_sqd_async_notify;
	uint16_t pkey_index;
	uint32_t access, qkey, dest_qpn, rq_psn, sq_psn;
	uint32_t path_mtu; /* bytes */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	bool tell_est; /* the peer's first packet raises COMM_EST, in RTS as well as in RTR */
	struct verbs_av av;
};

/* ---- work requests (verbs_wqe.c, verbs_srq.c) ---------- */

/**
 * Take the next send request: copy, check, append to the QP's started requests.
 * @return 1 (*out set; out->status != WC_SUCCESS: malformed, complete it with that status
 * and go to error), 0: none posted, -EAGAIN: its share has no shadow left, the QP waits for one
 * and is put on the run list in its turn, -EBADMSG: indices or slot counts are incredible, the
 * QP cannot go on.
 */
int verbs_sq_fetch(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_wqe **out);
/** Whether a post waits to be started, or the tail is not credible. Plain look, no fence. */
bool verbs_sq_has_work(struct verbs_qp *qp);
/**
 * Take the next receive request of the RQ or SRQ.
 * @return 1, 0: none (receiver not ready), -EAGAIN: no block free (treat as not ready),
 * -EBADMSG as above. Malformed ones: 1 with out->valid false and no elements. A list may be
 * longer than any message: length is cut to 2^31.
 */
int verbs_rq_fetch(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_rwqe *out);
/** The same from an SRQ that need not be the QP's. */
int verbs_srq_fetch(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_srq *srq,
		    struct verbs_rwqe *out);
/**
 * Receive requests posted and not taken, for end-to-end credits. Of requests of several slots
 * it is a hint, since the client may change them until they are taken; 0 with an SRQ.
 */
uint32_t verbs_rq_count(struct verbs_qp *qp);
void verbs_rwqe_release(struct verbs_worker *w, struct verbs_rwqe *r);
static inline struct verbs_sgl
verbs_wqe_sgl(const struct verbs_wqe *q)
{
	return (struct verbs_sgl){q->block ? q->block->sge : q->sge, q->num_sge, q->pd};
}
static inline struct verbs_sgl
verbs_rwqe_sgl(const struct verbs_rwqe *r)
{
	return (struct verbs_sgl){r->block ? r->block->sge : r->sge, r->num_sge, r->pd};
}

/* ---- payload (verbs_copy.c) ---------- */

/**
 * Check a whole list before the first packet: what a READ or an atomic will scatter into.
 * @param access as mr_check() takes it. @return WC_SUCCESS or WC_LOC_PROT_ERR.
 */
enum wc_status verbs_sgl_check(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_sgl sgl,
			       uint32_t access);
/**
 * Gather `len` bytes from `off` of a send request's message into dst. Each source word is
 * loaded once and the value goes both to dst and into *crc (CRC-32 state, continued; NULL:
 * only copy). Elements of no bytes are not looked up.
 * @param why out on VERBS_ERROR: the local status (LOC_PROT_ERR; LOC_LEN_ERR beyond the end).
 * On VERBS_PENDING dst must stay valid until verbs_io_finish(), and *crc was not touched.
 */
enum verbs_io_result verbs_gather(struct verbs_worker *w, struct verbs_qp *qp,
				  const struct verbs_wqe *wqe, uint32_t off, uint32_t len,
				  uint8_t *dst, uint32_t *crc, enum wc_status *why);
/**
 * Gather from a region, for READ responses; ref comes from a fresh mr_check() that covers
 * off + len. VERBS_ERROR (also of the next two): more foreign pieces than an io has.
 */
enum verbs_io_result verbs_gather_ref(struct verbs_worker *w, struct verbs_qp *qp,
				      const struct mr_ref *ref, uint32_t key, uint64_t off,
				      uint32_t len, uint8_t *dst, uint32_t *crc);
/**
 * Scatter into a list, from `off` of it: SEND payload and READ responses. Needs local write.
 * Ascending; the last bytes last. src must stay valid until finished when PENDING.
 */
enum verbs_io_result verbs_scatter(struct verbs_worker *w, struct verbs_qp *qp,
				   struct verbs_sgl sgl, uint32_t off, const uint8_t *src,
				   uint32_t len, enum wc_status *why);
/** A piece of what is scattered. */
struct verbs_part {
	const uint8_t *src;
	uint32_t len;
};
/**
 * Scatter parts into a list from its start, one behind the other, as one access: a datagram's
 * headers and payload. As verbs_scatter().
 */
enum verbs_io_result verbs_scatter_parts(struct verbs_worker *w, struct verbs_qp *qp,
					 struct verbs_sgl sgl, const struct verbs_part *part,
					 uint32_t num, enum wc_status *why);
/** Place into a region: WRITE payload. As verbs_scatter() and verbs_gather_ref(). */
enum verbs_io_result verbs_place(struct verbs_worker *w, struct verbs_qp *qp,
				 const struct mr_ref *ref, uint32_t key, uint64_t off,
				 const uint8_t *src, uint32_t len);
/**
 * Remote atomic on 8 aligned bytes; host-order operands. On VERBS_DONE *original is set;
 * when PENDING it is in the finished io. VERBS_ERROR: the bytes are not aligned where they lie
 * (the iova may be, the mapping not), so no CPU could do it atomically.
 */
enum verbs_io_result verbs_atomic(struct verbs_worker *w, struct verbs_qp *qp,
				  const struct mr_ref *ref, uint32_t key, bool cmp_swap,
				  uint64_t compare_add, uint64_t swap, uint64_t *original);
/** ATOMIC WRITE: eight bytes, as they came, by one store. As verbs_atomic(). */
enum verbs_io_result verbs_atomic_write(struct verbs_worker *w, struct verbs_qp *qp,
					const struct mr_ref *ref, uint32_t key,
					const uint8_t *src);
/**
 * The surroundings return an io. Clears qp->io[dir] and gives the structure back to its pool;
 * the caller then lets the transport go on, unless qp was NULL. Status and original are
 * copied out first; *original is meaningful for atomics.
 */
struct verbs_qp *verbs_io_finish(struct verbs_worker *w, struct verbs_io *io, int *status,
				 uint64_t *original);
/** The QP dies or resets: what is pending finishes quietly. Returns true if something is. */
bool verbs_io_abandon(struct verbs_qp *qp);

/* ---- completions (verbs_cq.c) ---------- */

/** Bytes of a CQ for so many workers; to be aligned to RING_LINE. */
size_t verbs_cq_size(uint32_t num_workers);
/** Set the pointers inside a zeroed CQ of verbs_cq_size(cq->num_workers) bytes. */
void verbs_cq_init_ends(struct verbs_cq *cq);
/** Resize: leave a SWITCH in this worker's ring and go on in another (ring_cq_switch()). */
void verbs_cq_switch(struct verbs_worker *w, struct verbs_cq *cq, struct ring_cqe *ring,
		     uint32_t mask);
/**
 * Complete the QP's oldest started send request, which must be `wqe`: a CQE if it was
 * signalled or failed, then the shadow is free.
 */
void verbs_complete_send(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_wqe *wqe,
			 enum wc_status status);
struct verbs_recv_done {
	enum wc_status status;
	uint8_t opcode;	    /* enum ring_wc_opcode */
	uint32_t cqe_flags; /* RING_CQE_WITH_IMM, _WITH_INV, _GRH, _SOLICITED */
	uint32_t byte_len;
	uint32_t imm;
	uint32_t src_qpn;
};
/** Complete a receive request and release it. */
void verbs_complete_recv(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_rwqe *r,
			 const struct verbs_recv_done *d);
/** The same of an XRC SRQ, to its CQ. */
void verbs_complete_xrc(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_srq *srq,
			struct verbs_rwqe *r, const struct verbs_recv_done *d);
/**
 * After a burst: one look at `armed` for each CQ completed to; wakes clients. QPs that waited
 * for what has come back to the pools are put on the run list.
 */
void verbs_cq_burst_end(struct verbs_worker *w);
/**
 * In ERR: complete all started, all posted sends and all posted receives with WR_FLUSH_ERR,
 * in order (SRQ entries stay). Bounded by `max` completions. A queue whose indices or slot
 * counts are incredible counts as empty. The transport first completes what it knows a better
 * status for, and the receive request that it holds.
 * @return true when nothing is left at this moment.
 */
bool verbs_qp_flush(struct verbs_worker *w, struct verbs_qp *qp, unsigned int max);
/**
 * In SQE: all started and all posted sends, as verbs_qp_flush() does; receives stay. With `upto`
 * only those before that index. @return true when nothing is left at this moment.
 */
bool verbs_sq_flush(struct verbs_worker *w, struct verbs_qp *qp, unsigned int max,
		    const uint32_t *upto);
/**
 * RESET: drop all without completions. The queues' indices run on: both ends go on from the
 * client's tails.
 */
void verbs_qp_drop(struct verbs_worker *w, struct verbs_qp *qp);
/**
 * RESET to INIT: what the client posted after verbs_qp_drop() and before it was told of RESET is
 * gone for it, too. In no other state has it posted anything that it does not know of.
 */
void verbs_qp_skip(struct verbs_qp *qp);

/* ---- run list (verbs_run.c): deficit round robin ---------- */

enum verbs_run {
	VERBS_RUN_MORE, /* has used its share and could go on */
	VERBS_RUN_IDLE, /* nothing left to start: fetch returned 0, or flush true */
	VERBS_RUN_WAIT, /* an event (acknowledgement, timer, io, neighbour) will add it again */
	VERBS_RUN_FULL, /* the transmit batch is full: ends the round, keeps its turn */
};
/** Put a QP that may have something to do on the list; idempotent. Sets `active`. */
void verbs_run_add(struct verbs_worker *w, struct verbs_qp *qp);
/** Take a QP off, wherever it stands or waits (destroy, reset). */
void verbs_run_remove(struct verbs_worker *w, struct verbs_qp *qp);
/**
 * Give each QP on the list (once, as it stood) a share of `quantum` bytes.
 * step() runs the transport, which takes off qp->deficit what it sends; it may add and remove
 * any QP, its own too. @return QPs that did something: sent, or could go on.
 */
unsigned int verbs_run_round(struct verbs_worker *w, uint32_t quantum,
			     enum verbs_run (*step)(void *arg, struct verbs_qp *qp), void *arg);

#endif /* VERBS_H */
