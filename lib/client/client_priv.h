/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of librnic share. Order of locks: a window's, a CQ's, a queue's, the context's; a
 * channel's before the context's; of two CQs or queues never both. In a forked child nothing but
 * the gate is touched, and descriptors by rnic_close(): rings are not mapped there, and mutexes
 * may be held by threads that do not exist.
 */
#ifndef CLIENT_PRIV_H
#define CLIENT_PRIV_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "ring_abi.h"
#include "ring_channel.h"
#include "ring_cq.h"
#include "ring_ctrl.h"
#include "rnic.h"

#define CLIENT_OF(type, member, p) ((type *)(void *)((uint8_t *)(p)-offsetof(type, member)))

/* ---- small tools ------------------------------------------------------------------------- */

/** A lock that thread domains do without. Yields: its holder may have lost its core. */
struct client_lock {
	_Atomic uint32_t held;
	bool none;
};

static inline void
client_lock(struct client_lock *l)
{
	unsigned int spins = 0;

	if (l->none)
		return;
	while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire)) {
		while (atomic_load_explicit(&l->held, memory_order_relaxed)) {
			if (++spins % 64 == 0)
				sched_yield();
		}
	}
}

static inline void
client_unlock(struct client_lock *l)
{
	if (!l->none)
		atomic_store_explicit(&l->held, 0, memory_order_release);
}

/** Numbers to objects: open addressing, linear probing. The owner serialises. */
struct client_map {
	struct client_map_slot {
		uint32_t key;
		void *value; /* NULL: empty */
	} * slots;
	uint32_t mask;
	uint32_t used;
};

int client_map_put(struct client_map *m, uint32_t key, void *value);
void client_map_del(struct client_map *m, uint32_t key);
void client_map_fini(struct client_map *m);

static inline uint32_t
client_map_home(const struct client_map *m, uint32_t key)
{
	return (key * 2654435761u >> 7) & m->mask;
}

static inline void *
client_map_get(const struct client_map *m, uint32_t key)
{
	if (!m->used)
		return NULL;
	for (uint32_t i = client_map_home(m, key);; i = (i + 1) & m->mask) {
		if (!m->slots[i].value || m->slots[i].key == key)
			return m->slots[i].value;
	}
}

/* ---- contexts ---------------------------------------------------------------------------- */

/** What the gate's word says. A forked child finds 0: the kernel wipes the page. */
enum client_gate {
	CLIENT_GATE_CHILD = 0,
	CLIENT_GATE_OPEN = 1,
	CLIENT_GATE_DEAD = 2,
};

/** Begins, or is in, every object. Guarded by the context's lock. */
struct client_obj {
	struct client_obj *next;
	struct client_obj **prev;
	void (*release)(struct client_obj *obj); /* free what the client has of it */
	uint32_t unacked; /* asynchronous events told, not acknowledged yet */
};

/** A request under way. */
struct client_call {
	struct client_call *next;
	void *reps; /* `count` elements */
	int *fds;
	uint32_t id;
	uint16_t op;
	uint16_t count;
	uint16_t max_fds;
	uint16_t num_fds;
	int status;
	bool done;
};

struct client_arena {
	uint8_t *base; /* NULL: no such arena */
	uint64_t size;
	uint32_t kind; /* enum ring_arena_kind */
};

struct client_event {
	struct client_event *next;
	struct client_obj *obj; /* or NULL */
	struct rnic_async_event event;
};

struct rnic_context {
	/* read by the fast path; constant once open */
	uint32_t *gate;
	struct ring_bell_chunk *chunks[RING_BELL_CHUNKS][RING_MAX_WORKERS];
	const struct ring_bell_daemon *bell_daemon[RING_MAX_WORKERS];
	int kick_fds[RING_MAX_WORKERS];
	uint32_t num_workers;
	uint32_t num_comp_vectors;
	uint32_t flags;
	uint64_t opcodes_lacking; /* a bit each that the device cannot do */
	uint8_t boot_id[16];
	char device[RING_NAME_LEN];
	char asked[RING_NAME_LEN]; /* for rnic_reopen(), as the next */
	char *path;
	int sock;
	int event_fd; /* raised while events wait, or the daemon is gone */
	int async_fd; /* epoll of the two */
	_Atomic uint64_t stale;

	/* under the lock */
	pthread_mutex_t lock;
	pthread_cond_t cond; /* a reply, an event, an acknowledgement, the reader's place free */
	bool reading;	     /* some thread waits at the socket for all */
	int dead;	     /* why: -errno; 0 while all is well */
	uint32_t next_id;
	struct client_call *calls;
	uint8_t *rx;
	struct client_arena *arenas;
	uint32_t num_arenas;
	struct ring_ctrl_arena_mapped *owed; /* notices that the socket had no room for */
	uint32_t num_owed;
	struct client_map qps, cqs, srqs, cm_ids;
	struct client_obj *objects;
	struct rnic_channel *channels;
	struct rnic_cm_channel *cm_channels;
	struct client_event *events, **events_end;
	uint32_t num_events;
	uint32_t unacked; /* events of no object */
};

/** 0; -EPERM in a forked child; -ENOTCONN. The first thing of every call. */
static inline int
client_gate(const struct rnic_context *ctx)
{
	uint32_t gate = __atomic_load_n(ctx->gate, __ATOMIC_RELAXED);

	if (gate == CLIENT_GATE_OPEN)
		return 0;
	return gate == CLIENT_GATE_CHILD ? -EPERM : -ENOTCONN;
}

static inline bool
client_is_child(const struct rnic_context *ctx)
{
	return client_gate(ctx) == -EPERM;
}

/** Whether the descriptor is to be waited on. */
bool client_fd_blocks(int fd);
void client_fd_raise(int event_fd);
void client_fd_lower(int event_fd);

/* ---- control calls (client_ctrl.c) ------------------------------------------------------- */

/**
 * `count` elements of `op` to the daemon, and the replies. 0, or -errno for the whole request;
 * each element's own status is its first word.
 */
int client_call(struct rnic_context *ctx, unsigned int op, const void *reqs, void *reps,
	unsigned int count);
/** One element; its own status is the result too. */
int client_call1(struct rnic_context *ctx, unsigned int op, const void *req, void *rep);
/** One element with up to max_fds descriptors in the reply, the caller's on success. */
int client_call_fds(struct rnic_context *ctx, unsigned int op, const void *req, void *rep, int *fds,
	unsigned int max_fds, unsigned int *num_fds);
/** The two halves of a call, for pipelining. `call` is zero but for reps. */
int client_start(struct rnic_context *ctx, struct client_call *call, unsigned int op,
	const void *reqs, unsigned int count);
int client_wait(struct rnic_context *ctx, struct client_call *call);

/** With the lock: the daemon is gone or speaks nonsense. Wakes everybody. */
void client_die(struct rnic_context *ctx, int why);
/** With the lock: take in what the socket has, without waiting. */
void client_drain(struct rnic_context *ctx);
/** With the lock: wait until something may have changed; the first comer waits at the socket. */
void client_wait_step(struct rnic_context *ctx, short events);
/** Without it: look at the socket in passing, for those who never call the daemon. */
void client_look(struct rnic_context *ctx);

/* ---- pushes and places (client_arena.c, client_event.c) ---------------------------------- */

int client_arena_push(struct rnic_context *ctx, const struct ring_ctrl_arena *a, int fd);
int client_bells_push(struct rnic_context *ctx, const struct ring_ctrl_bells *b);
int client_event_push(struct rnic_context *ctx, const struct ring_ctrl_event *e);
int client_notices_send(struct rnic_context *ctx);
void client_arenas_unmap(struct rnic_context *ctx);
/** With the lock: where a place is. NULL unless all of it lies in an arena of that kind. */
void *client_loc(const struct rnic_context *ctx, ring_loc_t loc, uint64_t size, uint32_t align,
	uint32_t kind);
int client_event_queue(
	struct rnic_context *ctx, struct client_obj *obj, const struct rnic_async_event *event);

/* ---- objects (client_object.c) ----------------------------------------------------------- */

void client_obj_add(
	struct rnic_context *ctx, struct client_obj *obj, void (*release)(struct client_obj *));
/** Events of the object that were not told are dropped, those told waited for. Then it is off. */
void client_obj_del(struct rnic_context *ctx, struct client_obj *obj);
/** A destroying call of one handle. 0 too when the daemon is gone. */
int client_destroy_call(struct rnic_context *ctx, unsigned int op, uint32_t handle);

/** The operations, a bit each, that a device of these capabilities (IBV_DEVICE_*) cannot do. */
uint64_t client_opcodes_lacking(uint64_t device_caps);

/* ---- queues ------------------------------------------------------------------------------ */

struct client_sub {
	struct ring_cq_cons cons;
	uint32_t generation;
};

struct client_cq {
	struct rnic_cq pub;
	struct client_lock lock;
	uint32_t num_sub;
	uint32_t next_sub;
	uint32_t idle; /* polls in a row that found nothing */
	uint32_t last_qpn;
	struct client_qp *last;
	struct client_map qps; /* whose completions are taken */
	struct client_map srqs; /* of XRC: the same */
	struct ring_cq_client *client;
	const struct ring_cq_daemon *daemon;
	struct client_sub sub[RING_MAX_WORKERS];
	struct client_obj obj;
	/* under the channel's lock */
	struct client_cq *chan_next; /* of its CQs */
	struct client_cq *fired_next;
	uint32_t fired;	   /* notifications not told yet */
	uint32_t told_seq; /* of notify_seq: armings that notifications were told of */
	uint32_t unacked;  /* notifications told, not acknowledged; under the context's lock */
};

struct client_qp {
	struct rnic_qp pub;
	struct client_lock sq_lock, rq_lock;
	const struct ring_qp_daemon *daemon;
	uint64_t opcodes;	/* a bit each that its type allows */
	uint64_t lacking;	/* and that the device cannot do */
	_Atomic uint32_t state; /* as the last modify had it */
	uint32_t bell_chunk;
	uint32_t bell_slot;
	bool sig_all;
	struct client_obj obj;
};

#define CLIENT_SRQ_END UINT32_MAX	 /* the last free slot */
#define CLIENT_SRQ_POSTED (UINT32_MAX - 1) /* the slot is with the daemon */

struct rnic_srq {
	struct rnic_context *context;
	void *user_context;
	struct rnic_pd *pd;
	struct client_lock lock;
	uint32_t srqn;
	struct rnic_xrcd *xrcd; /* XRC, as the next */
	struct rnic_cq *cq;
	uint32_t max_sge;
	uint32_t slots_per_wr;
	/* under its lock, as a resize is */
	uint32_t max_wr; /* that may be posted and not completed */
	uint32_t in_use; /* that are */
	uint32_t entries; /* slots that there are: max_wr or more */
	uint32_t index_mask;
	uint32_t tail;
	uint32_t free_head;
	uint32_t *free_next; /* of each slot: the next free one, or CLIENT_SRQ_* */
	uint64_t *wr_ids;
	uint32_t *index;
	uint8_t *slots;
	struct ring_srq_client *client;
	struct client_obj obj;
};

struct rnic_xrcd {
	struct rnic_context *context;
	uint32_t handle;
	int fd; /* of the file, so that its number stays its own; -1 */
	struct client_obj obj;
};

struct client_pd {
	struct rnic_pd pub;
	struct client_obj obj;
};

struct client_mw {
	struct rnic_mw pub;
	struct client_lock lock; /* of the key, while it is bound anew */
	struct client_obj obj;
};

static inline struct client_cq *
client_cq(struct rnic_cq *cq)
{
	return CLIENT_OF(struct client_cq, pub, cq);
}

static inline struct client_qp *
client_qp(struct rnic_qp *qp)
{
	return CLIENT_OF(struct client_qp, pub, qp);
}

/** Give a slot of an SRQ back; false if it was not posted. */
bool client_srq_complete(struct rnic_srq *srq, uint32_t slot, uint64_t *wr_id);
/** The QP's completions in the CQ, which are not to be told, give their SRQ's slots back. */
void client_cq_clean(struct client_cq *cq, struct client_qp *qp);
int client_cq_attach(struct rnic_cq *cq, struct client_qp *qp);
/** The same of an XRC SRQ. */
int client_cq_attach_srq(struct rnic_cq *cq, struct rnic_srq *srq);
void client_cq_detach_srq(struct rnic_cq *cq, struct rnic_srq *srq);
/** Tokens (client_mem.c). */
int client_export(struct rnic_context *ctx, uint32_t kind, uint32_t handle,
	struct rnic_token *token);
int client_import(struct rnic_context *ctx, uint32_t kind, const struct rnic_token *token,
	struct ring_ctrl_import_rep *rep);
void client_cq_detach(struct rnic_cq *cq, struct client_qp *qp);

struct rnic_channel {
	struct rnic_context *context;
	struct rnic_channel *next; /* of the context, under its lock */
	uint32_t handle;
	int pipe;     /* the daemon's bytes, non-blocking */
	int event_fd; /* raised while CQs wait that no byte stands for, or the daemon is gone */
	int fd;	      /* epoll of the two */
	uint32_t num_subs;
	const struct ring_channel_sub *subs;
	struct client_obj obj;
	pthread_mutex_t lock;
	uint32_t next_sub;
	bool raised;
	struct ring_channel_reader readers[RING_MAX_WORKERS + 1];
	struct client_map map; /* CQs by number */
	struct client_cq *cqs;
	struct client_cq *fired, **fired_end;
};

/** The next CQ that fired. -EAGAIN: none has and it may not wait; -ENOTCONN, -errno. */
int client_channel_take(struct rnic_channel *ch, bool may_wait, struct rnic_cq **cq);
int client_channel_add(struct rnic_channel *ch, struct client_cq *cq);
void client_channel_del(struct rnic_channel *ch, struct client_cq *cq);

void client_av_to_ctrl(struct ring_ctrl_av *av, const struct rnic_ah_attr *attr);
void client_av_from_ctrl(struct rnic_ah_attr *attr, const struct ring_ctrl_av *av);
void client_qp_attr_from_ctrl(struct rnic_qp_attr *attr, const struct ring_ctrl_qp_attr *a);
/** With the context's lock, the daemon is gone: whoever waits for such events wakes. */
void client_cm_die(struct rnic_context *ctx);
/** In a forked child: close what it inherited of such channels. */
void client_cm_child_close(struct rnic_context *ctx);

#endif /* CLIENT_PRIV_H */
