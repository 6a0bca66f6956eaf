/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread: its device, clients, requests and objects. Everything here is the control
 * thread's alone, but for struct ctl_job while a helper runs it. It never blocks: what may take
 * long goes to a helper (ctl_helper.c), to a worker (ctl_msg.c) or waits (struct ctl_wait).
 */
#ifndef CTL_PRIV_H
#define CTL_PRIV_H

#include <sys/queue.h>
#include <sys/types.h>

#include "arena_alloc.h"
#include "arena_mem.h"
#include "base_log.h"
#include "ctl_map.h"
#include "mapmem.h"
#include "net_neigh.h"
#include "net_route.h"
#include "ring_ctrl.h"
#include "roce.h"
#include "worker_shared_priv.h"

LOG_TYPE_DECLARE(ctl_log);

struct ctl_client;
struct ctl_ah_making;
struct ctl_ctx_msg;
struct ctl_kick;
struct ctl_job;
struct ctl_mcast;
struct ctl_msg;
struct copier_lane;
struct net_groups;
struct roce_ah;
struct ctl_helper;
struct ctl_listener;
struct ctl_neigh_wait;
struct ctl_nl;
struct ctl_watch;
struct roce_cm;
struct roce_cm_quota;
struct roce_mad;

/* ---- event sources ---------- */

/** Something in the epoll set. */
struct ctl_source {
	int fd;
	void (*ready)(struct worker_device *d, struct ctl_source *s, uint32_t events);
};

int ctl_source_add(struct worker_device *d, struct ctl_source *s, uint32_t events);
void ctl_source_mod(struct worker_device *d, struct ctl_source *s, uint32_t events);
void ctl_source_del(struct worker_device *d, struct ctl_source *s);

/* ---- helper threads: turns ---------- */

/** Pools of them: a job of one does not wait for those of another. */
enum ctl_pool {
	CTL_POOL_PROCESS, /* looks at a client's process, which may let it hang */
	CTL_POOL_ARENA,
	CTL_POOLS
};

/** A client's jobs in a pool, which takes one step for it at a time. The pool's. */
struct ctl_work {
	STAILQ_HEAD(, ctl_job) todo; /* but the one whose step is under way */
	TAILQ_ENTRY(ctl_work) link;
	struct ctl_client *client; /* NULL: of nobody in particular */
	struct ctl_turns *turns;
	bool queued, running;
};

/** A uid's clients that have some. The pool's; all zeroes at first. */
struct ctl_turns {
	TAILQ_HEAD(, ctl_work) works; /* queued ones */
	TAILQ_ENTRY(ctl_turns) link;
	uint32_t running; /* steps under way */
	bool queued;
};

/* ---- what a uid may have ---------- */

enum ctl_kind {
	CTL_PD,
	CTL_CHANNEL,
	CTL_CQ,
	CTL_QP,
	CTL_SRQ,
	CTL_OPEN, /* of XRC target QPs */
	CTL_XRCD,
	CTL_MR, /* memory windows too */
	CTL_MEM,
	CTL_AH,
	CTL_CM_CHANNEL,
	CTL_CM_ID,
	CTL_KINDS
};

/** All with the same outcome: -EINPROGRESS as long as there is none. */
struct ctl_neigh_waits {
	TAILQ_HEAD(ctl_neigh_wait_list, ctl_neigh_wait) all;
	int status;
};

#define CTL_ABANDONED_UID 8u /* with so many a uid gets no new lane */

/** One for each uid that has clients; its clients share the limits. */
struct ctl_user {
	LIST_ENTRY(ctl_user) link;
	uid_t uid;
	uint32_t clients, dying; /* its contexts; those of them that are still taken down */
	bool waits;	 /* somebody waits for what they give back */
	uint64_t bytes;		 /* of arenas */
	_Atomic uint64_t mapped; /* of its own memory, mapped and locked here */
	struct mapmem_share maps; /* the mappings that this takes */
	uint32_t fds; /* descriptors that are open for it */
	uint32_t registering; /* regions that the helper looks at the memory of */
	uint32_t abandoned; /* lanes of clients that are gone, whose call hangs; it lives as long */
	uint32_t resolving; /* neighbours: it lives as long as these, too */
	uint32_t xrcs; /* XRC domains, the same */
	uint32_t resolves;  /* RESOLVE and CREATE_AH requests under way */
	uint32_t num_mcasts;
	LIST_HEAD(, ctl_mcast) mcasts; /* attachments to groups */
	struct roce_cm_quota *cm_quota; /* of the connections it has begun; NULL: none yet */
	uint32_t woken; /* of its line, which have not tried again yet */
	struct ctl_neigh_waits line; /* for more of those */
	uint32_t count[CTL_KINDS];
	struct ctl_turns turns[CTL_POOLS];
};

struct ctl_user *ctl_user_get(struct worker_device *d, uid_t uid);
void ctl_user_put(struct ctl_user *u);
/** Nobody has it any more? */
void ctl_user_free(struct ctl_user *u);
/** 0 or -EDQUOT. */
int ctl_user_charge(struct worker_device *d, struct ctl_user *u, uint64_t bytes);
void ctl_user_uncharge(struct ctl_user *u, uint64_t bytes);
/** Descriptors that are to be opened for it: 0 or -EDQUOT. */
int ctl_user_fds(struct worker_device *d, struct ctl_user *u, uint32_t n);
void ctl_user_fds_put(struct ctl_user *u, uint32_t n);
/** Limit of objects of a kind. */
uint32_t ctl_quota(const struct worker_device *d, enum ctl_kind kind);

/* ---- helper threads ---------- */

/** Work that may take long. Embedded in what it is for. */
struct ctl_job {
	STAILQ_ENTRY(ctl_job) link;
	struct ctl_client *client; /* whose turn it takes, and who lives as long; or NULL */
	uint8_t pool;		   /* enum ctl_pool */
	/** On the helper thread: one step. @return true: another is needed. */
	bool (*step)(struct ctl_job *j);
	/** On the control thread, after the last step. */
	void (*done)(struct worker_device *d, struct ctl_job *j);
};

int ctl_helper_start(struct worker_device *d);
/** Jobs that are queued are finished first. */
void ctl_helper_stop(struct worker_device *d);
void ctl_helper_submit(struct worker_device *d, struct ctl_job *j);
/** From time to time: whom to cut off, whether threads are wanted. @return whether any works. */
bool ctl_helper_check(struct worker_device *d, uint64_t now);
/** Whether a step takes longer than the limit: nothing that it may use can be freed. */
bool ctl_helper_hangs(struct worker_device *d);

/* ---- messages to workers ---------- */

/** A message that is answered; `replied` is called on the control thread. */
struct ctl_msg {
	struct worker_msg m;
	void (*replied)(struct worker_device *d, struct ctl_msg *m);
};

/** Send, or keep it until the mailbox has room. */
void ctl_msg_send(struct worker_device *d, uint32_t worker, struct ctl_msg *m);
/** A message for worker_msg.done, from a pool; NULL: none left. */
struct worker_msg *ctl_msg_get(struct worker_device *d, enum worker_msg_type type);
/** The same for a message without reply. */
void ctl_msg_post(struct worker_device *d, uint32_t worker, struct worker_msg *m);
/** Take what workers have sent. @return messages. */
unsigned int ctl_msg_poll(struct worker_device *d);
/** Retry mailboxes that were full. @return whether some still are. */
bool ctl_msg_retry(struct worker_device *d);

/** Called when all workers have passed a quiescent point since ctl_grace_add(). */
struct ctl_grace {
	STAILQ_ENTRY(ctl_grace) link;
	uint64_t token;
	void (*passed)(struct worker_device *d, struct ctl_grace *g);
};
void ctl_grace_add(struct worker_device *d, struct ctl_grace *g);
/** @return whether some wait. */
bool ctl_grace_poll(struct worker_device *d);

/* ---- requests ---------- */

/** What an operation's function returns but 0 and -errno. */
enum ctl_result {
	CTL_LATER = 1, /* ctl_call_done() will be called for it */
	CTL_AGAIN = 2, /* nothing was done: call me again when memory is there */
	CTL_YIELD = 3, /* a part was done: call me again in the client's next turn */
};

/** A request under way. Lives until all its elements are done, client or no client. */
struct ctl_call {
	TAILQ_ENTRY(ctl_call) link;
	struct ctl_client *client;
	uint32_t op, id, count;
	uint32_t begun;	  /* elements begun */
	uint32_t pending; /* elements begun and not done */
	uint32_t num_fds;
	int fds[RING_MAX_WORKERS]; /* to go with the reply; the call's, and counted for its uid */
	uint8_t *req;
	uint8_t *rep; /* a whole message, header first */
};

/** An element of a call, to be finished later. */
struct ctl_elem {
	struct ctl_call *call; /* NULL: nobody asked, as when a client dies */
	uint32_t index;
};

/** Of an operation: 0, -errno or enum ctl_result. `rep` is zeroed; its status is set after. */
typedef int (*ctl_op_fn)(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);

void *ctl_elem_rep(struct ctl_elem e);
const void *ctl_elem_req(struct ctl_elem e);
/** Finish an element that was CTL_LATER. A failed one's other fields are zeroed. */
void ctl_elem_done(struct ctl_elem e, int status);

/* ---- clients ---------- */

/** Something that waits for memory of the client's arenas. */
struct ctl_wait {
	TAILQ_ENTRY(ctl_wait) link;
	/** status: 0, try again; else there will be none. */
	void (*resume)(struct ctl_wait *w, int status);
	bool queued;
};

enum ctl_arena_state {
	CTL_ARENA_POPULATE, /* the helper has it */
	CTL_ARENA_SENT,	    /* the client is to map it */
	CTL_ARENA_SEAL,	    /* sealed; the helper looks for holes */
	CTL_ARENA_READY,
	CTL_ARENA_BAD,
};

struct ctl_arena {
	struct ctl_job job;
	struct ctl_client *client;
	struct arena_mem mem;
	struct arena_space space;
	uint64_t charged; /* when it is unmapped: what the uid gets back then */
	uint32_t number;
	uint8_t kind;  /* enum ring_arena_kind */
	uint8_t state; /* enum ctl_arena_state */
	bool huge;
	int status;	      /* of the helper */
	uint64_t wanted;      /* bytes of the largest request that waits for it */
	uint64_t client_addr; /* where the client has it */
	struct ctl_mem **pages; /* C: block that each 4 KiB belong to; made when needed */
};

enum ctl_client_state {
	CTL_CLIENT_NEW,	   /* no HELLO yet */
	CTL_CLIENT_HELLO,  /* being answered */
	CTL_CLIENT_OPEN,
	CTL_CLIENT_DYING,  /* cut off; objects are being taken down */
};

struct ctl_out {
	STAILQ_ENTRY(ctl_out) link;
	uint32_t len;
	uint32_t num_fds;
	int fds[RING_MAX_WORKERS];
	uint64_t data[]; /* a message, aligned */
};

struct ctl_client {
	struct ctl_source sock;
	struct ctl_source proc; /* its process ends; without descriptor if that is not known */
	TAILQ_ENTRY(ctl_client) link;
	struct worker_device *dev;
	struct ctl_user *user;
	uint32_t id; /* the context's */
	uint8_t state; /* enum ctl_client_state */
	bool reap; /* on the device's list of clients to look at */
	TAILQ_ENTRY(ctl_client) reap_link;
	uint32_t wanted; /* EPOLL* in the set */
	pid_t pid; /* 0: not known (another pid namespace) */
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	uint32_t num_groups;
	int pidfd; /* -1: none */
	const char *why; /* it was cut off */
	struct log_limit logged;

	TAILQ_HEAD(, ctl_call) queue; /* received, not all begun */
	TAILQ_HEAD(, ctl_call) calls; /* all begun, some not done */
	size_t queue_bytes;
	uint32_t num_elems; /* of requests that are not answered */
	bool stalled; /* the first of the queue waits for memory */
	bool ready;   /* on the device's list of clients whose queue goes on by itself */
	TAILQ_ENTRY(ctl_client) ready_link;
	uint32_t spent; /* of its turn's work, see CTL_TURN */
	struct ctl_wait stall;
	int stall_status; /* that it resumed with */
	STAILQ_HEAD(, ctl_out) out;
	size_t out_bytes;
	uint32_t push_id;

	/* Those that are being destroyed leave the first list for the second. */
	TAILQ_HEAD(ctl_obj_list, ctl_obj) objs[CTL_KINDS], dying[CTL_KINDS];
	uint32_t num_objs[CTL_KINDS], num_dying[CTL_KINDS];
	uint32_t reap_vain; /* objects that would not go, since the last that did */
	struct ctl_map mems; /* by location */

	struct ctl_arena **arenas; /* by number */
	uint32_t num_arenas, arenas_left; /* left: not unmapped yet, when it dies */
	bool unmapping;
	uint64_t next_size[3]; /* of the next arena, by kind */
	TAILQ_HEAD(, ctl_wait) waits;
	uint32_t jobs; /* of helpers, under way */
	uint32_t registering; /* of those; while there are any, its uid has MAPMEM_FDS for them */
	bool lane_made; /* the helper's: it takes one step at a time for a client */
	LIST_HEAD(, ctl_resolve) resolves;
	LIST_HEAD(, ctl_ah_making) ahs; /* that wait for their neighbours */
	struct ctl_work work[CTL_POOLS];

	struct worker_ctx *ctx;
	uint32_t ctx_added;   /* workers that know it */
	uint32_t ctx_pending; /* replies to wait for */
	struct ctl_ctx_msg *ctx_msgs; /* by worker */
	struct ctl_elem hello;
	struct ctl_kick *kicks; /* a source for each worker's eventfd */
	struct arena_block *bell_chunk[RING_BELL_CHUNKS][RING_MAX_WORKERS];
	struct arena_block *bell_daemon[RING_MAX_WORKERS];
	struct verbs_qp **bell_slots[RING_BELL_CHUNKS][RING_MAX_WORKERS]; /* the workers' tables */
	uint32_t bell_chunks;
	uint32_t *bell_free; /* stack of slots given back */
	uint32_t num_bell_free, bells_used, cap_bell_free;

	struct copier_lane *lane;
	bool ctx_deleting;
	bool hangs; /* no longer one of its uid's that are soon taken down */
};

/** Taken from listening sockets and worker_ctl_attach(). Takes the fd. 0 or -errno. */
int ctl_client_new(struct worker_device *d, int fd);
/** Cut it off: everything that it has is taken down. Idempotent. */
void ctl_client_kill(struct ctl_client *c, const char *why);
/** The same, and nobody waits for what it has: when its process lets go of it is not known. */
void ctl_client_hangs(struct ctl_client *c, const char *why);
/** Something of a dying client has gone: go on with the rest, from the main loop. */
void ctl_client_reap(struct ctl_client *c);
void ctl_clients_reap(struct worker_device *d);

/** Objects of a dying client that begin to go in a turn, and that may be going at once. */
#define CTL_REAP_TURN 256u
#define CTL_REAP_UNDERWAY 1024u
/** Everything that waits for memory tries again, or fails with this status. */
void ctl_wait_wake(struct ctl_client *c, int status);
/** Begin what was received and may begin now, as far as the client's turn goes. */
void ctl_client_run(struct ctl_client *c);
/** The next turn of clients that had more to do than one holds. */
void ctl_clients_run(struct worker_device *d);

/**
 * What the control thread does for one client before the others' turn: an element, a message and
 * CTL_CLEAR_UNIT bytes cleared are a unit of it each, of some microseconds at most.
 */
#define CTL_TURN 256u
#define CTL_CLEAR_UNIT 8192u

static inline bool
ctl_client_spent(const struct ctl_client *c)
{
	return c->spent >= CTL_TURN;
}
/** Send a message, now or when the socket has room. The fds are dup'ed or the caller's still. */
void ctl_client_send(struct ctl_client *c, const void *msg, size_t len, const int *fds);
/** Cut off whose copier lane hangs, when lanes_due has come; lanes_busy: to be done again then. */
void ctl_lanes_check(struct worker_device *d);
/** Kill regions whose object was truncated under us. */
void ctl_mrs_check(struct worker_device *d);
/** Send a push with one element. */
void ctl_client_push(struct ctl_client *c, unsigned int op, const void *body, const int *fd);

/* ---- the client's shared memory ---------- */

/**
 * A block of an arena of this kind, zeroed if `zero`. -EAGAIN: an arena is on its way, wait
 * with ctl_wait_add(); -EDQUOT, -ENOMEM.
 */
int ctl_mem_alloc(struct ctl_client *c, unsigned int kind, uint64_t size, uint64_t align,
		  bool zero, struct arena_block **out);
void ctl_mem_free(struct arena_block **b);
void ctl_wait_add(struct ctl_client *c, struct ctl_wait *w);
void ctl_wait_del(struct ctl_client *c, struct ctl_wait *w);
/** ARENA_MAPPED has come. */
void ctl_arena_mapped(struct ctl_client *c, const struct ring_ctrl_arena_mapped *m);
/** Have the helper unmap them. @return whether all are gone; else the client is looked at again. */
bool ctl_arenas_free(struct ctl_client *c);

static inline struct ctl_arena *
ctl_block_arena(const struct arena_block *b)
{
	return b->space->owner;
}

static inline void *
ctl_block_ptr(const struct arena_block *b)
{
	return ctl_block_arena(b)->mem.map + b->offset;
}

static inline ring_loc_t
ctl_block_loc(const struct arena_block *b)
{
	return RING_LOC(ctl_block_arena(b)->number, b->offset);
}

/* ---- objects ---------- */

/** Begins every object. */
struct ctl_obj {
	struct ctl_map_node node; /* by handle, in the device's table of the kind */
	TAILQ_ENTRY(ctl_obj) link;
	struct ctl_client *client;
	uint64_t user_handle;
	uint32_t refs;	 /* objects that need this one: -EBUSY */
	uint32_t events; /* asynchronous events sent for it */
	uint8_t kind;	 /* enum ctl_kind */
	bool dying;
	struct ctl_elem destroyer; /* who is told */
};

static inline uint32_t
ctl_obj_handle(const struct ctl_obj *o)
{
	return (uint32_t)o->node.key;
}

/** The device's table of a kind is full, which is an operator's to know: says so. -ENOMEM. */
int ctl_total_out(struct worker_device *d, enum ctl_kind kind);
/** Whether the uid may have one more: 0, -EDQUOT or -ENOMEM. To be asked before anything costly. */
int ctl_obj_room(const struct ctl_client *c, enum ctl_kind kind);
/** Enter an object with this handle, counted against the uid's limit. 0, -EDQUOT, -ENOMEM. */
int ctl_obj_add(struct ctl_client *c, struct ctl_obj *o, enum ctl_kind kind, uint64_t key);
/** The same with a number never used before. */
int ctl_obj_add_numbered(struct ctl_client *c, struct ctl_obj *o, enum ctl_kind kind);
/** The client's object of that handle, or NULL. */
void *ctl_obj_find(struct ctl_client *c, enum ctl_kind kind, uint64_t key);
/** Its destruction has begun: nobody finds it any more. Idempotent. */
void ctl_obj_dying(struct ctl_obj *o);
/** Take it out, tell who destroyed it. Its memory is the caller's to free, before or after. */
void ctl_obj_del(struct ctl_obj *o, int status);
struct ctl_map *ctl_kind_map(struct ctl_client *c, enum ctl_kind kind);
extern const char *const ctl_kind_name[CTL_KINDS];

/** An object's token, by which another process of the same uid is given it. */
struct ctl_export {
	struct ctl_map_node node; /* by the token's first half */
	uint8_t token[16];
	struct ctl_obj *obj; /* NULL: none was asked for */
};

/** The object goes: nobody can be given it any more. */
void ctl_export_end(struct worker_device *d, struct ctl_export *x);

/** What keys and QPs are checked by; PDs of several clients of a uid may share it. */
struct ctl_domain {
	struct ctl_map_node node; /* by number */
	uint32_t pds;
};

struct ctl_pd {
	struct ctl_obj o;
	struct ctl_domain *domain;
	struct ctl_export export;
};

static inline uint32_t
ctl_pd_number(const struct ctl_pd *pd)
{
	return (uint32_t)pd->domain->node.key;
}

/** A PD in a domain, or in one of its own (NULL). 0, -EDQUOT, -ENOMEM. */
int ctl_pd_new(struct ctl_client *c, struct ctl_domain *dom, uint32_t *handle);

struct ctl_channel {
	struct ctl_obj o;
	struct worker_channel ch;
	struct arena_block *subs;
};

struct ctl_cq_sub {
	struct ctl_msg msg;
	struct ctl_cq *cq;
	uint32_t worker;
	uint32_t index; /* in ring_cq_daemon.sub */
	struct arena_block *ring, *old;
	struct arena_block *fresh; /* of a resize that is still getting memory */
	uint32_t start;	     /* index that `ring` begins at, after a resize */
	uint32_t generation;
	uint32_t entries;
	bool made, making, resizing;
};

struct ctl_cq {
	struct worker_cq w; /* verbs_cq.owner points here */
	struct ctl_obj o;
	struct ctl_channel *channel;
	struct verbs_cq *vcq;
	struct arena_block *client_words, *daemon_words;
	uint32_t entries;
	uint32_t comp_vector;
	uint32_t num_subs;
	uint32_t fresh_entries; /* of the rings that a resize has got so far */
	uint32_t pending; /* replies of workers */
	struct ctl_elem resizer;
	struct ctl_wait resize_wait;
	TAILQ_HEAD(, ctl_cq_waiter) waiters;
	struct ctl_cq_sub sub[]; /* by worker */
};

struct ctl_cq *ctl_cq_find(struct ctl_client *c, uint32_t cqn);

/** Waits for a worker's end of a CQ. */
struct ctl_cq_waiter {
	TAILQ_ENTRY(ctl_cq_waiter) link;
	void (*resume)(struct ctl_cq_waiter *w, int status);
};

/**
 * Make the worker's end of a CQ. 0: it is there; -EAGAIN: arenas must grow, wait for memory;
 * -EINPROGRESS: the waiter is resumed; -errno.
 */
int ctl_cq_sub_get(struct ctl_cq *cq, uint32_t worker, struct ctl_cq_waiter *w);
/** The worker that QPs of this CQ should go to. */
uint32_t ctl_worker_for(struct worker_device *d, const struct ctl_cq *cq);
/** This worker, unless another has far fewer QPs. */
uint32_t ctl_worker_near(const struct worker_device *d, uint32_t best);

#define CTL_MAX_SRQ_WR 32768u

struct ctl_srq {
	struct ctl_obj o;
	struct verbs_srq v; /* its owner: w below */
	struct verbs_srq_ring where[2]; /* of v.ring; the other one is a resize's */
	struct ctl_pd *pd;
	struct arena_block *client_words, *daemon_words;
	struct arena_block *entries; /* index and slots */
	struct arena_block *old;     /* of a resize, until no worker can look there */
	struct ctl_xrcd *xrcd; /* XRC, as the next */
	struct ctl_cq *cq;
	struct ctl_cq_waiter cq_wait; /* while it is made: for the workers' ends of the CQ */
	struct ctl_wait mem_wait;
	uint32_t max_wr; /* as asked for; there may be more entries */
	uint32_t home;	 /* worker of its QPs; RING_NO_HANDLE before the first */
	bool making;
	bool resizing;
	struct ctl_elem resizer; /* or maker */
	struct ring_ctrl_modify_srq_req modify; /* what it asked for */
	struct ctl_grace grace;
	struct ctl_msg msg;
	uint32_t told; /* workers that have answered SRQ_DEL */
	struct worker_srq w; /* the last: by worker */
};

static inline struct ctl_srq *
ctl_srq_of_verbs(const struct verbs_srq *srq)
{
	return (struct ctl_srq *)((uint8_t *)srq->owner - offsetof(struct ctl_srq, w));
}

/** The worker of a QP of the SRQ, which completes receives to that CQ. */
uint32_t ctl_srq_worker(struct worker_device *d, struct ctl_srq *srq, const struct ctl_cq *cq);

/** Application memory in a C arena. */
struct ctl_mem {
	struct ctl_obj o; /* refs: MRs on it */
	struct arena_block *block;
	uint64_t size;
};

struct ctl_mr {
	struct ctl_obj o; /* refs: none; windows are counted by the key table */
	struct ctl_pd *pd;
	struct ctl_grace grace;
	uint8_t type; /* enum mr_type */
	uint8_t how;  /* enum ring_mr_how */
	uint32_t access;
	uint64_t addr, length, iova;
	struct ctl_mem *mem;
	struct ctl_export export;
	struct mapmem *map; /* foreign memory */
	struct ctl_job unmap;
	bool killed; /* its memory is gone; deregistration is still to come */
	uint64_t charged;      /* bytes, for its runs */
	struct ctl_elem rereg; /* answered when it is gone: a REREG_MR that replaced it */
};

static inline bool
ctl_mr_is_window(const struct ctl_mr *mr)
{
	return mr->type != MR_TYPE_REGION && mr->type != MR_TYPE_FAST_REG;
}
/** Enter a key for mr->pd: its PD, owner and context are filled in here. 0 or -errno. */
int ctl_mr_enter(struct ctl_client *c, struct ctl_mr *mr, const struct mr_desc *what);
/** DEREG_MR, DEALLOC_MW. */
int ctl_mr_dereg(struct ctl_client *c, const struct ring_ctrl_handle_req *r, struct ctl_elem e,
	bool window);

struct ctl_qp_op;
struct ctl_qp {
	struct ctl_obj o;
	struct worker_qp w; /* verbs_qp.owner points here */
	struct verbs_qp *vqp;
	struct ctl_pd *pd;
	struct worker_device *dev;
	struct ctl_cq *scq, *rcq;
	struct ctl_srq *srq; /* or NULL */
	/* An XRC target: its object is no client's, and in the device's map of targets. */
	struct ctl_xrc *xrc;
	TAILQ_ENTRY(ctl_qp) target_link;
	TAILQ_HEAD(, ctl_open) opens;
	struct ctl_open *last; /* closed: told when the QP is gone */
	struct ctl_qp_op *end_op;
	struct ring_qp_daemon *words; /* in `daemon`, or a target's own */
	struct arena_block *queues; /* client words, SQ, RQ */
	struct arena_block *daemon;
	uint32_t bell;
	uint32_t max_send_wr, max_recv_wr;
	uint32_t sq_slots, rq_slots;
	uint16_t max_inline;
	uint8_t type, max_send_sge, max_recv_sge, flags;
	bool bound;
	bool was_connected; /* left INIT once: the number goes through timewait */
	bool dead;
	uint32_t worker;
	TAILQ_HEAD(ctl_qp_ops, ctl_qp_op) ops; /* the first is under way */
	bool busy;    /* the first operation has begun */
	bool running; /* operations are being begun, further up the stack */
	bool gone;    /* nothing refers to it any more */
	struct ctl_msg msg;
	struct ctl_grace grace;
	struct net_neigh *neigh;   /* of its address vector */
	LIST_HEAD(, ctl_mcast) mcasts;
	struct ring_ctrl_qp_attr attr; /* as set, for queries */
};

/** An XRC domain. */
struct ctl_xrc {
	struct ctl_map_node node; /* by number, of those that PDs' domains have, too */
	struct ctl_map_node file_node;
	TAILQ_ENTRY(ctl_xrc) link;
	struct worker_device *device;
	struct ctl_user *user; /* who made it: all of them are of that uid */
	uint64_t dev, ino;     /* of its file, if it has one */
	bool file;
	bool held; /* its targets are being ended */
	uint32_t users; /* XRCDs */
	TAILQ_HEAD(, ctl_qp) targets;
	struct worker_ctx *ctx; /* shares of the pools, no bells: no worker polls it */
	struct ctl_msg msg;
	uint32_t told; /* workers that were asked to forget the shares */
};

/** A client's hold on a domain. refs: SRQs and openings of targets. */
struct ctl_xrcd {
	struct ctl_obj o;
	struct ctl_xrc *xrc;
	struct ctl_export export;
};

/** A client's hold on a target QP. */
struct ctl_open {
	struct ctl_obj o;
	TAILQ_ENTRY(ctl_open) qp_link;
	struct ctl_qp *qp;
	struct ctl_xrcd *xrcd;
};

/** An XRCD of the domain. 0, -EDQUOT, -ENOMEM. */
int ctl_xrcd_new(struct ctl_client *c, struct ctl_xrc *x, uint32_t *handle);

/** A number that may not be used again yet. */
struct ctl_timewait {
	STAILQ_ENTRY(ctl_timewait) link;
	uint32_t qpn;
	uint64_t due;
};

/* ---- addresses ---------- */

/** Waits for a neighbour. */
struct ctl_neigh_wait {
	TAILQ_ENTRY(ctl_neigh_wait) link;
	LIST_ENTRY(ctl_neigh_wait) timed; /* if due is not 0 */
	struct ctl_neigh_waits *list;	  /* that it is on; NULL: not waiting */
	struct ctl_user *user;
	struct net_neigh *neigh; /* referenced; NULL: it stands in line */
	uint64_t due; /* ns; -ETIMEDOUT then; 0: when the neighbour table gives up */
	/** -EAGAIN: it stood in line, and is to begin anew. */
	void (*resolved)(struct ctl_neigh_wait *w, int status);
};

/**
 * Turn an address vector into what goes into packets, all but the neighbour's MAC. On success
 * out->neigh is referenced. -EINVAL, -ENETUNREACH, -EHOSTUNREACH, -ENOMEM; -EAGAIN: its uid has
 * as many unknown neighbours resolved as it may at a time, ctl_neigh_line().
 */
int ctl_av_resolve(struct ctl_client *c, const struct ring_ctrl_av *av, struct verbs_av *out);
/** The same for a group's address, to which there is no way to be found. @return false: -EINVAL. */
bool ctl_av_group(struct ctl_client *c, const struct ring_ctrl_av *av, struct verbs_av *out);
/** The same for what the daemon says itself, which is no uid's. */
int ctl_av_resolve_own(struct worker_device *d, const struct ring_ctrl_av *av,
		       struct verbs_av *out);
/** net_neigh_get() within the uid's share: 0, -EAGAIN, -ENOMEM. */
int ctl_neigh_get(struct ctl_client *c, struct net_neigh_table *t, const struct net_ip *ip,
		  uint16_t vid, struct net_neigh **out);
/** Wait for the uid's share to have room. -EINPROGRESS. */
int ctl_neigh_line(struct ctl_client *c, struct ctl_neigh_wait *w);
/** 0: usable; -EINPROGRESS: w->resolved() will be called; -EHOSTUNREACH. */
int ctl_neigh_wait(struct ctl_client *c, struct net_neigh *n, struct ctl_neigh_wait *w);
void ctl_neigh_cancel(struct worker_device *d, struct ctl_neigh_wait *w);
/** From the neighbour tables' callbacks; tell() then, outside of them. */
void ctl_neigh_event(struct worker_device *d, const struct net_neigh *n, int status);
void ctl_neigh_tell(struct worker_device *d);
/** Whether some are to be told still: a call tells a turn's worth. */
bool ctl_neigh_untold(const struct worker_device *d);
#define CTL_NEIGH_TURN 256u
/** Waits that are over at `now`; the earliest that is left, or UINT64_MAX. */
uint64_t ctl_neigh_expire(struct worker_device *d, uint64_t now);
void ctl_neigh_waits_init(struct ctl_neigh_waits *l, int status);
void ctl_neigh_init(struct worker_device *d);
/** Before the neighbour tables go. */
void ctl_neigh_fini(struct worker_device *d);
/** End a dying client's RESOLVE requests. */
void ctl_resolves_cancel(struct ctl_client *c);
#define CTL_RESOLVES 4096 /* of a uid: their time limits are gone through one by one */
/** And those of CREATE_AH. */
void ctl_ahs_cancel(struct ctl_client *c);

#define CTL_AHS 65536u	  /* address handles in all */
#define CTL_MCASTS 1024u  /* attachments to groups, of a uid */
#define CTL_MCAST_QPS 64u /* of a uid to one group */
/** Once there are workers: the groups that every port is a member of. */
void ctl_mcast_start(struct worker_device *d);
/** An own address was added, or taken away. */
void ctl_mcast_addr(struct worker_device *d, uint32_t port, const struct net_ip *ip, bool added);
/** A QP goes: it is a member of nothing any more. */
void ctl_mcast_qp_gone(struct ctl_qp *qp);

#define CTL_GIDS NET_IFACE_ADDRS /* entries of a port's GID table */

struct ctl_gid {
	struct net_ip ip;
	uint16_t vid;
	bool used;
};

struct ctl_port {
	struct pmd_port *pmd;
	struct net_neigh_table *neighs; /* one more, the hairpin's, has no pmd */
	struct net_groups *groups;	/* nor these */
	struct ctl_gid gids[CTL_GIDS];	/* an address keeps its index while it is there */
	bool up;
	uint32_t ifindex;
	char netdev[RING_NAME_LEN];
	uint8_t mac[6];
	uint16_t mtu, max_mtu; /* of the interface now; as the port was opened */
	uint32_t mbps;
	struct roce_cc_params cc; /* as it was set */
	bool cc_late; /* workers are still to be told */
};

int ctl_net_init(struct worker_device *d, const char **why);
void ctl_net_fini(struct worker_device *d);
/** Neighbour timers and links. */
void ctl_net_tick(struct worker_device *d, uint64_t now);
uint64_t ctl_net_deadline(struct worker_device *d, uint64_t now);
/** A packet that a worker gave us; the mbuf stays the caller's. */
void ctl_net_rx(struct worker_device *d, uint16_t port, struct rte_mbuf *m);
/** A finished frame leaves through a worker, which owns the queue. 0, or -ENOBUFS: it is freed. */
int ctl_net_transmit(struct worker_device *d, uint32_t worker, uint16_t port, struct rte_mbuf *m);
/** The port that owns an address, or -1. */
int ctl_net_owner(const struct worker_device *d, const struct net_ip *ip);
/**
 * Whether it is the first or last address of a subnet of the port, on that VLAN, or -1: any: the
 * old and the new broadcast.
 */
bool ctl_net_broadcast(const struct worker_device *d, uint32_t port, int vid,
	const struct net_ip *dst);
/** The GID of that address and VLAN on a port, or -1. */
int ctl_net_gid(const struct worker_device *d, uint32_t port, const struct net_ip *ip,
		uint16_t vid);
/** Network order. */
uint64_t ctl_node_guid(const struct worker_device *d);
/** Largest RoCE path MTU, enum ring_mtu, that fits IP packets of so many bytes (B194). */
unsigned int ctl_mtu_of(uint16_t ip_mtu);

/* ---- QP1 (ctl_gsi.c) ---------- */

struct roce_mad;
#define CTL_GSI_TURN 64u /* MADs looked at in a turn: whoever sends many keeps nobody waiting */

/** A worker's message of a MAD: it keeps its place, of few, until ctl_gsi_run() has shown it. */
void ctl_gsi_queue(struct worker_device *d, struct worker_msg *m);
/** Show a turn's worth to d->gsi_rx. */
void ctl_gsi_run(struct worker_device *d);

/**
 * Send a MAD of ROCE_MAD_LEN bytes from QP1 to the QP1 of av->dgid, by worker `worker`'s queue. The
 * AV is one of ctl_av_resolve(); if its neighbour is not known (yet) the MAD waits in the neighbour
 * table's small queue. @return 0, -ENOBUFS; what is sent may be lost all the same.
 */
int ctl_gsi_send(struct worker_device *d, uint32_t worker, const struct verbs_av *av,
		 const uint8_t *mad);
/**
 * Send a MAD to where another came from, by that way: source, destination, MACs and tag are those
 * of the received one, turned round. For answers that are to leave no state behind.
 */
int ctl_gsi_reply(struct worker_device *d, const struct roce_mad *to, const uint8_t *mad);

/* ---- congestion management (ctl_cc.c) ---------- */

/** Congestion management as it is set, and the link's speed, to all workers. */
void ctl_cc_push(struct worker_device *d, uint32_t port);
/** The defaults, on every port. */
void ctl_cc_init(struct worker_device *d);

/* ---- operations, by file ---------- */

int ctl_op_hello(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_list_device(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_query_device(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_query_port(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_query_gid(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_resolve(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_alloc_pd(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_dealloc_pd(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_alloc_mem(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_free_mem(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_reg_mr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_rereg_mr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_dereg_mr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_alloc_fast_mr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_alloc_mw(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_dealloc_mw(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_export(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_import(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_create_channel(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_destroy_channel(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_create_cq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_resize_cq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_destroy_cq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_create_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_modify_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_query_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_destroy_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_create_srq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_modify_srq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_query_srq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_destroy_srq(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_alloc_xrcd(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_dealloc_xrcd(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_open_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_create_ah(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_destroy_ah(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_attach_mcast(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_detach_mcast(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);

int ctl_op_cm_listen(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_connect(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_accept(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_reject(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_establish(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_disconnect(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_get_event(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_create_channel(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_destroy_channel(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_create_id(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_destroy_id(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_migrate(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_bind(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_resolve_addr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_resolve_route(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_notify(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_qp_attr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_query(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_set_option(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_join_mcast(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);
int ctl_op_cm_leave_mcast(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e);

/** Take objects of a dying client down; each ends in ctl_obj_del(). */
void ctl_pd_destroy(struct ctl_obj *o);
void ctl_mem_destroy(struct ctl_obj *o);
void ctl_mr_destroy(struct ctl_obj *o);
void ctl_channel_destroy(struct ctl_obj *o);
void ctl_cq_destroy(struct ctl_obj *o);
void ctl_qp_destroy(struct ctl_obj *o);
void ctl_srq_destroy(struct ctl_obj *o);
void ctl_open_destroy(struct ctl_obj *o);
void ctl_xrcd_destroy(struct ctl_obj *o);
void ctl_ah_destroy(struct ctl_obj *o);
void ctl_cm_channel_destroy(struct ctl_obj *o);
void ctl_cm_id_destroy(struct ctl_obj *o);

/** A bell slot, the same at every worker. As ctl_mem_alloc(). */
int ctl_bell_get(struct ctl_client *c, uint32_t *bell);
void ctl_bell_put(struct ctl_client *c, uint32_t bell);
/** Forget the context at all workers; ctl_client_reap() is called when they have. */
void ctl_context_del(struct ctl_client *c);
void ctl_timewait_poll(struct worker_device *d, uint64_t now);

/** An event of a worker, or of the device. */
void ctl_event_from_worker(struct worker_device *d, const struct worker_msg *m);
void ctl_event_push(struct ctl_client *c, const struct ring_ctrl_event *ev);
/** An event of an object, unless its destruction is being answered. object: RING_EVENT_OF_*. */
void ctl_event_object(struct ctl_obj *o, unsigned int type, unsigned int object);
/** The same by another handle than its own. */
void ctl_event_of(struct ctl_obj *o, unsigned int type, unsigned int object, uint32_t handle);
/** Of a target QP, to all who have it open. */
void ctl_target_event(struct ctl_qp *qp, unsigned int type);
void ctl_event_all(struct worker_device *d, unsigned int type, unsigned int object,
		   uint32_t handle);
void ctl_notify(struct worker_device *d, struct verbs_cq *cq);

/* ---- connection management (ctl_cm.h) ---------- */

/** The device's part of it. */
struct ctl_cm {
	struct ctl_map ports; /* by space and number */
	struct ctl_map by_qpn; /* ids whose connection holds a QPN */
	struct roce_cm *roce;
	const struct roce_mad *rx; /* that is being looked at */
	STAILQ_HEAD(, ctl_cm_mad) mads; /* above the rate */
	uint32_t num_mads;
	uint64_t mad_time; /* up to which the rate is used */
	uint64_t events_sent;
	uint64_t requests_refused; /* beyond a listener's backlog or a uid's quota */
};

int ctl_cm_init(struct worker_device *d);
void ctl_cm_fini(struct worker_device *d);
/** Some of what is due. */
void ctl_cm_tick(struct worker_device *d, uint64_t now);
uint64_t ctl_cm_deadline(const struct worker_device *d);
/** A QP's first packet has come. */
void ctl_cm_qp_established(struct worker_device *d, uint32_t qpn);
/** Whether packets to it may be under way: its number may not be used again yet. */
bool ctl_cm_qpn_held(const struct worker_device *d, uint32_t qpn);

/* ---- the device ---------- */

struct worker_device {
	struct worker_config cfg; /* defaults filled in; ports and name point here */
	char name[RING_NAME_LEN];
	struct pmd_port *ports[PMD_MAX_PORTS];
	struct worker_shared sh;
	struct worker *workers[RING_MAX_WORKERS];
	int epfd;
	struct ctl_source ring_src; /* workers */
	struct ctl_source helper_src;
	LIST_HEAD(, ctl_listener) listeners;
	SLIST_HEAD(, ctl_watch) watches;
	struct log_limit accept_failed;
	bool accept_paused; /* no descriptors are left; tried again at accept_due */
	uint64_t accept_due;
	/* lines that a client can make as many of as it likes */
	struct log_limit cut_off_told, unreachable_told, total_told, fds_told;
	TAILQ_HEAD(ctl_client_list, ctl_client) clients;
	TAILQ_HEAD(ctl_reap_list, ctl_client) reap;
	TAILQ_HEAD(ctl_ready_list, ctl_client) ready;
	uint8_t *rx_buf; /* RING_CTRL_MAX_LEN, aligned */
	uint32_t num_clients, num_ready, next_ctx, next_handle, next_domain;
	LIST_HEAD(, ctl_user) users;
	struct ctl_map objs[CTL_KINDS]; /* CTL_MEM: unused, its handles are a client's */
	struct ctl_map domains, exports;
	struct ctl_map xrcs, xrc_files, targets;
	TAILQ_HEAD(, ctl_xrc) xrc_list;
	uint64_t xrc_salt, next_serial;
	struct ctl_helper *helper;
	struct rte_mempool *msgs;
	struct worker_msg *waiting[RING_MAX_WORKERS], **waiting_tail[RING_MAX_WORKERS];
	STAILQ_HEAD(ctl_grace_list, ctl_grace) graces;
	STAILQ_HEAD(, ctl_timewait) timewait;
	uint32_t num_timewait;
	uint64_t timewait_ns; /* that a QPN stays unused */
	uint32_t qps_on[RING_MAX_WORKERS];
	uint8_t boot_id[16];
	/* Who looks at MADs: valid during the call; it must not block. NULL: they are dropped. */
	void (*gsi_rx)(struct worker_device *d, const struct roce_mad *mad);
	struct worker_msg *gsi_head, *gsi_tail; /* not looked at yet */
	uint32_t gsi_psn;
	uint64_t gsi_shown, gsi_sent, gsi_unsent; /* the last: no buffer or message for them */
	uint64_t gsi_forged; /* dropped: from a wire, with a source address of ours */
	struct ctl_port port[PMD_MAX_PORTS + 1];
	struct ctl_cm cm;
	struct net_route_table routes;
	struct ctl_nl *nl; /* NULL: no port stands on a kernel interface */
	struct ctl_map resolutions; /* under way, by neighbour */
	TAILQ_HEAD(, ctl_resolution) resolving;
	TAILQ_HEAD(, ctl_resolution) resolved; /* their shares are to be given back */
	TAILQ_HEAD(, ctl_resolution) telling;  /* then: who waited is to be told */
	LIST_HEAD(, ctl_neigh_wait) neigh_timed;
	struct ctl_neigh_waits neigh_late, neigh_again; /* to be told: -ETIMEDOUT; -EAGAIN */
	uint64_t neigh_due; /* of the waits with a time limit of their own */
	uint32_t neigh_share; /* resolutions of a uid at a time */
	uint64_t link_due, lanes_due;
	bool lanes_busy; /* when they were looked at */
	struct copier_lane *lanes_ending; /* of clients that are gone */
	uint64_t lane_limit_ns; /* that an access to a client's memory may take */
	struct mapmem_deaths deaths; /* of mappings */
	struct mapmem_share maps; /* of all uids */
	struct log_limit conflicts;
	uint64_t events_lost;
	uint64_t addrs_taken; /* own addresses that the kernel got as well */
	uint64_t cut_off; /* clients that were, for what they did */
};

static inline uint64_t
ctl_now(const struct worker_device *d)
{
	return worker_clock_now(&d->sh.clock);
}

#endif /* CTL_PRIV_H */
