/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: nodes with whole engines, joined by a virtual wire, on virtual time, in one
 * process, all drawn from one seed. An endpoint is one end of a connection: a QP, its rings, its
 * memory, and a model of what that memory and the completions must be. README.md tells how to
 * read a failure.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base_rng.h"
#include "mr_table.h"
#include "net_neigh.h"
#include "net_txbatch.h"
#include "ring_abi.h"
#include "ring_bell.h"
#include "ring_cq.h"
#include "ring_wq.h"
#include "roce.h"
#include "verbs.h"

#define SIM_NODES 17
#define SIM_EPS 64
#define SIM_OPS 128	 /* send requests of an endpoint under way; a power of two */
#define SIM_RECVS 128	 /* receive requests */
#define SIM_KEYS 10	 /* memory keys of an endpoint */
#define SIM_BLOCK 64	 /* granule of local memory */
#define SIM_WORDS 64	 /* atomic words at the beginning of PART_TGT */
#define SIM_MAX_LEN (1u << 20)
#define SIM_WRITES 256	 /* that the model of UC remembers, of an endpoint */
#define SIM_US UINT64_C(1000)
#define SIM_MS UINT64_C(1000000)
#define SIM_NEVER UINT64_MAX
#define PPM 1000000u

struct sim;
struct sim_ep;
struct sim_node;
struct sim_srq;

/* ---- what a run is like ---------- */

/** Rates are per million. */
struct sim_profile {
	const char *name, *what;
	uint16_t ops; /* of an endpoint, at most */
	uint8_t nodes, pairs; /* at most */
	uint32_t loss, burst, reorder, dup, corrupt, blackout;
	uint32_t foreign; /* keys whose memory only the host reaches */
	uint32_t io_fault;
	uint32_t bad;	    /* operations that must fail */
	uint32_t late_recv; /* chance that receives are posted late */
	uint32_t big;	    /* messages up to SIM_MAX_LEN */
	uint32_t life;	    /* chance of a disturbance, a round of the application */
	uint32_t inval;	    /* windows, and local invalidates */
	uint32_t mutate;    /* last packets that lie about their length, with a right ICRC */
	bool strict_responder, go_back_n; /* of the engine */
	bool gbn_peer;	    /* every second node is such an engine, the others are whole */
	bool rnr_echo;	    /* a sequence NAK follows every RNR NAK, as from rxe */
	bool squeeze;	    /* few buffers, shadows, ios; the port takes a part */
	bool overrun;	    /* CQs that are too small */
	bool death;	    /* a node stops */
	bool exhaust;	    /* retries may run out */
};

const struct sim_profile *sim_profile_find(const char *name);
/** The i-th of those that go round when none is named; NULL behind the last. */
const struct sim_profile *sim_profile_at(unsigned int i);
unsigned int sim_profile_count(void);

struct sim_opts {
	const char *trace, *pcap; /* files, or NULL */
	uint32_t max_ops;	  /* 0: as the profile says */
	const char *extra;	  /* more of the command line that replays */
	uint8_t type;		  /* enum verbs_qp_type of all QPs */
	bool stats, json, quiet;
};

/* ---- trace (sim_trace.c) ---------- */

enum sim_ev {
	SIM_EV_TX,
	SIM_EV_RX,
	SIM_EV_DROP,
	SIM_EV_DUP,
	SIM_EV_CORRUPT,
	SIM_EV_NOTE,
};

void sim_trace_reset(void);
void sim_trace_packet(enum sim_ev ev, uint64_t now, unsigned int src, unsigned int dst,
		      const uint8_t *data, uint32_t len);
void sim_note(const struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint64_t sim_trace_hash(void);
/** All that the memory ring still has. */
void sim_trace_text(FILE *f);
int sim_trace_pcap(const char *path);

/* ---- wire (sim_wire.c) ---------- */

struct sim_pkt {
	uint64_t at, id;
	struct sim_pkt *next;
	uint32_t len;
	uint8_t src, dst;
	uint8_t data[];
};

struct sim_wire {
	struct rng rng;
	struct sim_pkt **heap;
	uint32_t num, room;
	uint64_t next_id;
	uint64_t busy[SIM_NODES];		  /* until then a node's port sends */
	uint64_t last[SIM_NODES][SIM_NODES];	  /* arrival of the newest packet in order */
	uint64_t dark_until[SIM_NODES][SIM_NODES];
	uint32_t burst_left[SIM_NODES][SIM_NODES];
	uint64_t delay, jitter;			  /* ns */
	uint32_t ps_per_byte;
	uint64_t sent, lost, corrupted, reordered, doubled;
};

void sim_wire_init(struct sim *s);
void sim_wire_fini(struct sim *s);
uint64_t sim_wire_next(const struct sim *s);
/** Take what has arrived by now to its node. */
void sim_wire_deliver(struct sim *s);
void sim_wire_send(struct sim *s, unsigned int src, const uint8_t *data, uint32_t len);
/** No packet is under way longer than that. */
uint64_t sim_wire_lifetime(const struct sim *s);
/** Whether the port takes another packet now. */
bool sim_wire_room(const struct sim *s, unsigned int src);

/* ---- endpoints ---------- */

enum sim_part { PART_SRC, PART_SINK, PART_RCV, PART_TGT, PARTS };

/* From KEY_WINDOW on they are bound, and ended, by work requests. */
enum sim_key_kind { KEY_DIRECT, KEY_PIECES, KEY_FOREIGN, KEY_MIXED, KEY_WINDOW, KEY_FAST };
#define SIM_LIST 8 /* elements of a fast registration's list */

struct sim_key {
	uint32_t key;
	uint32_t access;
	uint64_t iova;
	uint8_t kind; /* enum sim_key_kind */
	uint8_t type; /* enum mr_type of those that are bound */
	bool busy;    /* a request that binds or ends it is under way */
	bool alive;   /* may be named by new requests */
	bool killed;  /* registered still, being taken away */
	bool gone;    /* invalidated: naming it must fail */
};

struct sim_range {
	uint32_t off, len;
};

/** Why an endpoint may fail. */
enum sim_cause {
	CAUSE_LOCAL = 1,     /* moved to ERR here */
	CAUSE_PEER = 2,	     /* the peer is in error, or gone */
	CAUSE_BAD_POST = 4,  /* it has posted what must fail */
	CAUSE_BAD_RECV = 8,  /* its peer has */
	CAUSE_MEMORY = 16,   /* foreign memory failed, or a key was taken away */
	CAUSE_RETRY = 32,    /* the network may eat all retries */
	CAUSE_RNR = 64,
	CAUSE_CQ = 128,	     /* a CQ overran */
	CAUSE_MUTATED = 256, /* a packet of it was falsified */
};

struct sim_op {
	uint32_t index; /* of its first slot */
	uint32_t slots;
	uint64_t seed; /* of its payload */
	uint32_t len;
	uint8_t opcode, flags;
	uint8_t num;	 /* ranges */
	bool consumes;	 /* a receive request */
	bool has_target; /* bytes of the peer change */
	bool unsure;	 /* what it reads is not known */
	bool lost;	 /* UC: the peer drops it */
	uint32_t bad;	 /* statuses that it must end with, as bits; 0: success */
	uint32_t imm;
	uint32_t target;   /* offset in the peer's memory */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap, compare_add;
	uint64_t original; /* atomics: expected */
	uint8_t *expect;   /* READ: expected */
	struct sim_key *inval; /* window or fast registration that it ends */
	struct sim_key *binds; /* that it binds */
	uint64_t new_iova;     /* of that one, then */
	uint32_t flush;	       /* FLUSH: as the request has it */
	struct sim_range range[RING_MAX_SGE];
};

struct sim_recv {
	uint32_t index, slots;
	uint32_t len; /* of all ranges */
	uint8_t num;
	struct sim_range range[RING_MAX_SGE];
};

/** What the peer has sent and a receive request will tell of. */
struct sim_msg {
	uint64_t seed;
	uint32_t len, imm;
	uint8_t opcode, flags;
	bool bad, told;
};

/** A WRITE that may have reached the peer's memory, or some of it (UC). */
struct sim_write {
	uint64_t seed;
	uint32_t off, len;
};

/** What the wire has shown of an endpoint (sim_snoop.c). */
struct sim_snoop {
	uint32_t snd_max, una, ssn, lsn, rnr_psn;
	bool have_lsn, rnr_told;
	uint64_t rnr_seen, rnr_until; /* ns */
	uint64_t rnrs;
};

enum sim_phase {
	PHASE_UP,
	PHASE_BROKEN,	/* one end has failed; both go to ERR */
	PHASE_FLUSH,	/* until all requests have completed */
	PHASE_QUIET,	/* in RESET; until copiers are done and old packets gone */
	PHASE_DONE,
};

struct sim_ep {
	struct sim *s;
	struct sim_node *node;
	struct sim_ep *peer;
	uint32_t id, slot; /* slot: of the bell */
	uint32_t pd;
	/* The connection; phase and its times are the even endpoint's. */
	enum sim_phase phase;
	uint64_t phase_at, rest_at; /* when to act; when the phase began to be left */
	uint32_t reconnects;
	uint32_t mtu, retry_cnt, rnr_retry;
	uint8_t timeout, min_rnr_timer, rd_atomic, dest_rd_atomic;
	bool same_qpn;
	/* The QP. */
	struct verbs_qp *qp;
	uint32_t qpn, psn;
	uint8_t *sq_slots, *rq_slots;
	struct ring_qp_client client;
	struct ring_qp_daemon daemon;
	struct ring_wq_prod sq, rq;
	struct sim_srq *srq; /* in the place of rq; NULL: there is none */
	struct verbs_cq *send_cq, *recv_cq;
	uint16_t max_inline;
	bool sig_all;
	uint32_t causes; /* enum sim_cause */
	bool sq_failed, rq_failed;
	bool drained;	 /* the event has come */
	bool in_sqd;
	bool late_copier; /* was at work when the QP was reset */
	uint64_t sqd_until;
	/* UC: the send queue has failed; requests up to there are flushed yet. */
	bool in_sqe;
	uint64_t sqe_until;
	uint32_t flush_upto, num_writes;
	struct sim_write write[SIM_WRITES];
	/* Memory: four parts, each of part_size bytes. */
	uint8_t *mem, *alias, *model, *taint, *busy; /* alias: the same memory again */
	uint32_t part_size, mem_size;
	struct sim_key key[SIM_KEYS];
	uint32_t num_keys;
	struct ring_sge list[SIM_LIST]; /* of the fast registration under way */
	uint32_t list_key;
	bool list_busy;
	uint64_t io_last; /* lane order */
	/* The application. */
	struct rng rng;
	uint32_t ops_left;
	uint64_t post_at, recv_at;
	uint32_t recv_max; /* the longest message that it takes */
	uint32_t recv_depth, recv_more;
	struct sim_op op[SIM_OPS];
	uint32_t op_head, op_tail;
	struct sim_recv recv[SIM_RECVS];
	uint32_t recv_head, recv_tail;
	struct sim_msg msg[SIM_OPS]; /* sent by it, not yet told by the peer's CQ */
	uint32_t msg_head, msg_tail;
	uint64_t disturb_at, kill_at, killed_step;
	uint64_t completed, failed, received;
	struct sim_snoop snoop;
};

struct sim_io {
	struct sim_io *next;
	struct verbs_io *io;
	uint64_t at;
	int status;
};

/** A CQ and what its client knows of it. */
struct sim_cq {
	struct sim_node *node;
	struct verbs_cq *cq;
	struct ring_cqe *ring;
	struct ring_cq_client client;
	struct ring_cq_daemon daemon;
	struct ring_cq_cons cons;
	bool sleepy;   /* waits for notifications */
	bool notified, asleep;
};
#define SIM_CQS 3

struct sim_node {
	struct sim *s;
	uint32_t id;
	bool dead;
	struct verbs_worker verbs;
	struct verbs_share share[2]; /* contexts */
	struct mr_table *mrs;
	struct roce_qpn_table *qpns;
	struct roce *roce;
	struct net_tx_batch tx;
	struct net_tx_batch *tx_list[1];
	struct net_neigh neigh[SIM_NODES];
	struct rte_mempool *tx_pool, *rx_pool;
	struct rte_mbuf *stolen[4096]; /* taken out of the pools to make them small */
	uint32_t num_stolen;
	struct ring_bell_chunk *bell;
	struct ring_bell_scan scan;
	struct sim_cq cq[SIM_CQS];
	struct sim_pkt *rx_head, *rx_tail;
	uint32_t rx_count;
	struct sim_io *ios; /* by time */
	uint64_t wake_at, dead_until;
	uint64_t steps, rx_no_mbuf;
	uint32_t quantum;
	bool tx_behind; /* the last step left packets for the port */
};

struct sim {
	const struct sim_opts *opts;
	const struct sim_profile *prof;
	uint64_t seed;
	struct rng rng;
	uint64_t now, progress_at;
	bool v6;
	uint16_t vlan; /* 0xffff: untagged */
	uint8_t sl;
	struct sim_node node[SIM_NODES];
	uint32_t num_nodes;
	struct sim_ep *ep[SIM_EPS];
	uint32_t num_eps;
	struct sim_wire wire;
	uint64_t steps, ops_done, bytes_done, ops_failed;
	char replay[256];
};

static inline bool
sim_is_uc(const struct sim *s)
{
	return s->opts->type == VERBS_QPT_UC;
}

/** Report, dump the trace, and leave the process. */
void sim_fail(const struct sim *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

static inline bool
sim_chance(struct rng *r, uint32_t ppm)
{
	return ppm && rng_below(r, PPM) < ppm;
}

static inline uint32_t
sim_between(struct rng *r, uint32_t lo, uint32_t hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

/** Where a frame's IP header begins, behind a tag if there is one; FCS covers what is before. */
static inline uint32_t
sim_frame_l3(const uint8_t *frame)
{
	return frame[12] == 0x81 ? 18 : 14;
}

static inline bool
sim_frame_v6(const uint8_t *frame)
{
	return frame[sim_frame_l3(frame) - 2] == 0x86;
}

static inline uint32_t
sim_frame_bth(const uint8_t *frame)
{
	return sim_frame_l3(frame) + (sim_frame_v6(frame) ? 48 : 28);
}

/* sim_run.c */
/** Once a process. 0, or an errno. */
int sim_start(void);
void sim_run(const struct sim_opts *opts, const struct sim_profile *prof, uint64_t seed);

/* sim_node.c */
void sim_node_init(struct sim *s, uint32_t id);
void sim_node_fini(struct sim_node *n);
void sim_node_step(struct sim_node *n);
int sim_node_pools(void);
struct rte_mempool *sim_pool(uint32_t node, bool rx);
void sim_node_wake(struct sim_node *n, uint64_t at);
void sim_node_ip(const struct sim *s, uint32_t id, uint8_t *ip);
struct sim_ep *sim_ep_of_qpn(struct sim_node *n, uint32_t qpn);

/* sim_ep.c */
void sim_pair_new(struct sim *s, struct sim_node *a, struct sim_node *b);
void sim_ep_connect(struct sim_ep *ep);
void sim_ep_modify(struct sim_ep *ep, unsigned int state);
void sim_ep_free(struct sim_ep *ep);
void sim_ep_qp_create(struct sim_ep *ep);
void sim_ep_qp_destroy(struct sim_ep *ep);

/* sim_key.c */
void sim_keys_make(struct sim_ep *ep);
void sim_keys_drop(struct sim_ep *ep);
void sim_windows_drop(struct sim_ep *ep);
struct sim_key *sim_key_pick(struct sim_ep *ep, uint32_t access);
/** Take a key away under traffic, or finish taking it away. */
void sim_keys_disturb(struct sim_ep *ep);
/** Bind a window of ep's memory to its QP; NULL: no room for one. */
/** A key that a request may bind now: made if there is room; NULL: none. */
struct sim_key *sim_key_unbound(struct sim_ep *ep);
/** One that a request may end now, of a type that may be; NULL: none. */
struct sim_key *sim_key_bound(struct sim_ep *ep);
const struct sim_key *sim_key_of(const struct sim_ep *ep, uint32_t key);
/** A region that stays, for what is bound to lie on. */
const struct sim_key *sim_key_below(struct sim_ep *ep);

/* sim_life.c */
/** Move a connection on; the earliest time that it wants to be looked at again. */
uint64_t sim_life_run(struct sim *s, struct sim_ep *even);
/** Whether the host still reaches for an endpoint's memory. */
bool sim_copier_at_work(const struct sim_ep *ep);
void sim_life_break(struct sim_ep *ep, uint32_t cause, const char *why);
bool sim_life_done(const struct sim *s);

/* sim_app.c */
/** Post; in a step of its node. @return when it wants to be called again. */
uint64_t sim_app_run(struct sim_ep *ep);
/** Post right when the worker thinks that there is nothing more. */
void sim_app_race(struct sim_ep *ep);

/* sim_model.c */
bool sim_alloc(struct sim_ep *ep, enum sim_part part, uint32_t len, struct sim_range *r);
void sim_free(struct sim_ep *ep, const struct sim_range *r);
void sim_pattern(uint64_t seed, uint8_t *to, uint32_t len);
uint8_t *sim_scratch(void);
/** What memory is, is right from now on. */
void sim_adopt(struct sim_ep *ep, uint32_t off, uint32_t len);
void sim_taint(struct sim_ep *ep, uint32_t off, uint32_t len);
void sim_complete(struct sim_ep *ep, const struct ring_cqe *e);
/** Requests that will not complete, since the QP was reset. */
void sim_forget(struct sim_ep *ep);
/** An SRQ's receives that no QP will take any more: the client has them back. */
void sim_forget_srq(struct sim_ep *ep);
/** In ERR, all flushed: the last ones may have succeeded, unsignalled. */
void sim_flush_silent(struct sim_ep *ep);
void sim_check_memory(struct sim_ep *ep, const char *when);
/** Take completions, if the client looks; `force`: it looks. */
void sim_cq_poll(struct sim_cq *cq, bool force);
void sim_range_gather(const struct sim_ep *ep, const uint8_t *mem, const struct sim_range *r,
		      uint32_t num, uint8_t *to);
void sim_range_scatter(const struct sim_ep *ep, uint8_t *mem, const struct sim_range *r,
		       uint32_t num, const uint8_t *from, uint32_t len);

/* sim_srq.c */
/** One for the endpoint, perhaps. */
void sim_srq_new(struct sim_ep *ep);
void sim_srq_free(struct sim_ep *ep);
struct verbs_srq *sim_srq_verbs(const struct sim_ep *ep);
bool sim_srq_room(const struct sim_ep *ep);
/** Into an entry, whose number is r->index then; `more`: what lies behind the first slot. */
void sim_srq_post(struct sim_ep *ep, struct sim_recv *r, const struct ring_rwqe *head,
		  const struct ring_sge *more, uint32_t bytes);
void sim_srq_publish(struct sim_ep *ep);
void sim_srq_event(struct verbs_srq *v, enum verbs_event event);
void sim_srq_connect(struct sim_ep *ep);
void sim_srq_last_wqe(struct sim_ep *ep);
void sim_srq_done(struct sim_ep *ep, uint32_t entry);
uint32_t sim_srq_taken(const struct sim_ep *ep);
bool sim_srq_take_back(struct sim_ep *ep, struct sim_recv *r);
bool sim_srq_flushed(struct sim_ep *ep);

/* sim_uc.c: in the place of what sim_model.c expects of an acknowledged transport */
void sim_uc_reset(struct sim_ep *ep);
/** A WRITE is posted. */
void sim_uc_write(struct sim_ep *ep, const struct sim_op *op);
bool sim_uc_flushes(const struct sim_ep *ep);
/** Statuses that a request may fail with, as bits. */
uint32_t sim_uc_statuses(const struct sim_ep *ep, const struct sim_op *op);
void sim_uc_failed(struct sim_ep *ep, unsigned int status);
/** To RTS, when it is time; @return when it is. */
uint64_t sim_uc_resume(struct sim_ep *ep);
void sim_uc_received(struct sim_ep *ep, struct sim_recv *r, const struct ring_cqe *e);
bool sim_uc_ended(struct sim_ep *even, uint64_t *at);
void sim_uc_check_end(struct sim_ep *ep);
void sim_uc_check_memory(struct sim_ep *ep, const char *when);

/* sim_snoop.c */
void sim_snoop_reset(struct sim_ep *ep);
void sim_snoop_tx(struct sim_node *n, const uint8_t *frame, uint32_t len);
void sim_snoop_rx(struct sim_node *n, const uint8_t *frame, uint32_t len);
void sim_snoop_stepped(struct sim_node *n);

#endif /* SIM_H */
