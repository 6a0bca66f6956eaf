/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory keys, regions and windows: one table for all workers, one access check, and the
 * translation from an application's address to bytes. The control thread registers and
 * releases; workers check, and change a key's state by compare-and-swap on one word.
 *
 * A key is a 24-bit random index and an 8-bit variant (the low byte). The index's low bits
 * name the table's slot, the rest is a secret that the slot remembers. No key below 256 and
 * none from 0xffffff00 on is ever given, so that 0, small constants and -1 name nothing.
 */
#ifndef MR_TABLE_H
#define MR_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Access rights, numbered as enum ibv_access_flags. */
enum mr_access {
	MR_LOCAL_WRITE = 1,
	MR_REMOTE_WRITE = 1 << 1,
	MR_REMOTE_READ = 1 << 2,
	MR_REMOTE_ATOMIC = 1 << 3,
	MR_MW_BIND = 1 << 4,
	MR_ZERO_BASED = 1 << 5,
	MR_ON_DEMAND = 1 << 6,
	MR_HUGETLB = 1 << 7,
	MR_FLUSH_GLOBAL = 1 << 8,
	MR_FLUSH_PERSISTENT = 1 << 9,
	MR_ACCESS_MASK = 0xffff,
	MR_RELAXED_ORDERING = 1 << 20, /* and the rest of the optional range: accepted, ignored */
	MR_OPTIONAL_MASK = 0x3ff << 20,
};

/** Outcome of a check, in the order of checking; callers count each refusal of its own. */
enum mr_result {
	MR_OK = 0,
	MR_NO_KEY,     /* no such index, another variant, or released */
	MR_BAD_STATE,  /* invalidated, not yet bound, or being deregistered */
	MR_BAD_PD,     /* another protection domain, or a window bound to another QP */
	MR_BAD_ACCESS, /* right not granted */
	MR_BAD_RANGE,  /* outside the region, or wraps */
	MR_RESULT_COUNT
};
/** Its name in counters and traces: "bad_range". Never NULL. */
const char *mr_result_name(enum mr_result r);

enum mr_type {
	MR_TYPE_NONE = 0,
	MR_TYPE_REGION,
	MR_TYPE_WINDOW_1,
	MR_TYPE_WINDOW_2A,
	MR_TYPE_WINDOW_2B,
	MR_TYPE_FAST_REG,
};

enum mr_state {
	MR_STATE_EMPTY = 0, /* slot unused */
	MR_STATE_FREE,	    /* key exists, invalidated or not yet bound */
	MR_STATE_VALID,
	MR_STATE_DYING, /* being deregistered: waits for workers and copiers */
	MR_STATE_CLAIMED, /* a BIND_MW or FAST_REG waits to give it other bytes */
};

/** How the bytes of a segment are reached (docs/design.md, memory). */
enum mr_seg_kind {
	MR_SEG_DIRECT,	/* mapped here: ptr */
	MR_SEG_FOREIGN, /* in the client's process only: remote, through a copier */
};

/** A run of bytes of a region. Segments are sorted by start and leave no gap. */
struct mr_seg {
	uint64_t start;	 /* offset from the region's beginning */
	uint64_t length; /* bytes */
	enum mr_seg_kind kind;
	uint8_t *ptr;	 /* MR_SEG_DIRECT: address in this process */
	uint64_t remote; /* MR_SEG_FOREIGN: address in the client's process */
};

/**
 * What the control thread says of a key to be registered. A region starts VALID. Windows and
 * fast-register keys start FREE, with a PD and no bytes, rights or address: binding gives those.
 */
struct mr_desc {
	enum mr_type type;
	uint32_t pd;		   /* protection domain's number */
	uint32_t access;	   /* enum mr_access, validated by mr_access_valid() */
	uint64_t iova;		   /* address of the first byte as work requests and peers name it;
			  * ignored with MR_ZERO_BASED, where addresses are offsets */
	uint64_t length;	   /* bytes, up to 2^48; 0: only accesses of no bytes succeed */
	const struct mr_seg *segs; /* copied */
	uint32_t num_segs;
	void *lane;  /* copier lane of foreign segments, opaque here; NULL if there are none */
	void *owner; /* opaque to this library: the control thread's object */
	uint32_t context;  /* whose it is: windows and fast registration stay within one */
	uint32_t max_segs; /* MR_TYPE_FAST_REG: runs of bytes that it may ever have */
};

struct mr_table;
struct mr; /* an entry; fields are in mr_table_priv.h */

/** A checked access: valid until the worker's next quiescent point. */
struct mr_ref {
	struct mr *mr;
	uint64_t offset; /* of the access within the region */
	uint8_t *ptr;	 /* the whole access is contiguous here; NULL: use mr_segment(). With an
			  * access of no bytes it may point just behind the region */
};

/**
 * Create a table for up to `capacity` keys (rounded up to a power of two, at most 2^24). The
 * fuller the index space, the fewer bits of a key are secret: 2^16 keys leave 16 of 32.
 * @return NULL without memory. Not thread-safe; the table is then read by any thread.
 */
struct mr_table *mr_table_create(uint32_t capacity);
void mr_table_free(struct mr_table *t);
/** Keys in use, of any state. Any thread. */
uint32_t mr_table_count(const struct mr_table *t);

/**
 * Whether this combination of rights is allowed: no unknown bit outside the optional range, and
 * C10-74: remote write or atomic needs local write.
 */
bool mr_access_valid(uint32_t access);

/**
 * Register. Control thread only.
 * @param key out: lkey and rkey.
 * @return 0; -EINVAL (type, range wraps, segments do not cover, foreign segments without a lane,
 * rights), -ENOMEM, -ENOSPC (table full). On failure the table and *key are as before.
 */
int mr_register(struct mr_table *t, const struct mr_desc *d, uint32_t *key);

/**
 * First half of deregistration: from now on every new check fails. The caller then waits
 * until all workers passed a quiescent point and after that until mr_busy() is false, and calls
 * mr_release(). Control thread only, like the two that follow. Here windows and fast-register
 * keys are named by their index alone, since consumers change the variant.
 * @return 0, -ENOENT (or killed already), -EBUSY (windows are bound to it; nothing changed).
 */
int mr_kill(struct mr_table *t, uint32_t key);
/** Whether copiers, or one who binds it, still hold references to a killed or invalidated key. */
bool mr_busy(const struct mr_table *t, uint32_t key);
/**
 * Second half: the slot is free again and gets another index.
 * @return the owner; NULL, and nothing done, when the key is not killed or still busy.
 */
void *mr_release(struct mr_table *t, uint32_t key);

/**
 * The one access check: key, variant, state, PD (or bound QP), right, range without overflow.
 * Any worker; the result is good until its next quiescent point. Accesses of no bytes are
 * checked like others: protocols that exempt them (C9-88, RFC 5041 section 5.2) do not call this.
 * @param qpn the QP that asks, for windows of type 2.
 * @param access needed rights, all of them; 0: a local read, which regions grant and windows don't.
 * @param out written only with MR_OK.
 */
enum mr_result mr_check(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t addr,
	uint64_t len, uint32_t access, struct mr_ref *out);

/** The same for all of its bytes, whatever they are: out covers them from the first. */
enum mr_result mr_check_whole(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn,
	uint32_t access, struct mr_ref *out);

/** Fetch the entry of a key that will be checked soon. Any key, any thread. */
void mr_prefetch(const struct mr_table *t, uint32_t key);

/**
 * The run of bytes at a reference: for accesses whose ptr is NULL.
 * @param off from the start of the access.
 * @param run out: bytes contiguous from there, perhaps more than the access has left: the caller
 * takes the smaller. 0 behind the region's end.
 * @param remote out: the client's address, for foreign segments.
 * @return the address here, or NULL: foreign.
 */
uint8_t *mr_segment(const struct mr_ref *ref, uint64_t off, uint64_t *run, uint64_t *remote);

/** The lane of foreign segments. */
void *mr_lane(const struct mr_ref *ref);
/**
 * Whose bytes they are that lie `off` bytes into an access, when that is another entry: those of
 * a window and of a fast registration are a region's. NULL: the reference's own.
 */
struct mr *mr_under(const struct mr_ref *ref, uint64_t off);
/**
 * Hold an entry, and what is under the bytes in question, while a copier works on them: either may
 * be killed meanwhile, but is not released, nor given other bytes.
 * Taken by the worker before its next quiescent point; dropped by any thread.
 */
void mr_hold(struct mr *mr, struct mr *under);
void mr_unhold(struct mr *mr, struct mr *under);
/** Whether a held reference may still be used to write: false once killed or invalidated. */
bool mr_still_valid(const struct mr_ref *ref, uint32_t key);

/**
 * LOCAL_INV: VALID -> FREE by compare-and-swap. Any worker. Complete, in the sense of the work
 * request, when every other online worker has passed a quiescent point and mr_busy() is false.
 * Regions of mr_register() and windows of type 1 are not invalidatable: MR_BAD_ACCESS.
 * A key that windows are bound to: MR_BAD_STATE.
 */
enum mr_result mr_invalidate(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn);
/**
 * For SEND with invalidate. A peer may end what was given to peers: windows of type 2 that it
 * reaches (2A: bound to this QP; 2B: and of its PD), fast registrations with a remote right.
 */
enum mr_result mr_invalidate_remote(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn);

/*
 * Binding and fast registration, in two halves, on a worker: begin claims the entry, which no
 * check finds from then on, and commit gives it other bytes. Between the two the caller waits
 * until all workers have passed a quiescent point since the entry was VALID last, and until
 * mr_claim_busy() is false. Then it commits, or gives up by mr_claim_abort(); the entry is not
 * released before.
 *
 * The quiescent point to wait for: whoever takes an entry out of VALID starts a token of
 * its own and leaves it by mr_grace_set(), before its own next quiescent point. mr_grace() is 0
 * when there is none (yet): start one. MR_GRACE_NONE: nobody can be in there.
 */
#define MR_GRACE_NONE UINT64_C(1)
uint64_t mr_grace(const struct mr_table *t, uint32_t key);
void mr_grace_set(struct mr_table *t, uint32_t key, uint64_t token);
/** Whether copiers still work through an entry that this caller has claimed. */
bool mr_claim_busy(const struct mr_table *t, uint32_t key);

/** What a BIND_MW says. */
struct mr_bind {
	uint32_t window;  /* named by its index: what its last key was matters to nobody */
	uint32_t new_key; /* of the same index; the variant is the consumer's choice */
	uint32_t region;  /* lkey of the region, or fast registration, below */
	uint32_t access;  /* remote rights; MR_ZERO_BASED for type 2 */
	uint64_t addr;	  /* first byte, as the region's addresses count */
	uint64_t length;  /* bytes; 0 unbinds a window of type 1 */
	uint32_t pd, qpn; /* of the QP that asks */
};
/** MR_OK: claimed, and the region stays while it is. Else nothing has changed. */
enum mr_result mr_bind_begin(struct mr_table *t, const struct mr_bind *b);
/** MR_OK: bound. MR_BAD_STATE: the window was killed meanwhile. Either way it is over. */
enum mr_result mr_bind_commit(struct mr_table *t, const struct mr_bind *b);
void mr_bind_abort(struct mr_table *t, const struct mr_bind *b);

/** What a FAST_REG says. */
struct mr_fast_req {
	uint32_t key; /* the new one: any variant of an entry of MR_TYPE_FAST_REG */
	uint32_t pd;
	uint32_t access;
	uint32_t num;	  /* elements of the list */
	uint64_t iova;	  /* 0 with MR_ZERO_BASED */
	uint64_t length;  /* bytes: the sum of the elements' */
	const void *list; /* struct mr_elem, each read once: others may be writing them */
};
/** An element of the list: bytes of a region of the same PD and context. */
struct mr_elem {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};
enum mr_result mr_fast_begin(struct mr_table *t, uint32_t key, uint32_t pd);
/**
 * MR_OK: valid. Regions in the list must grant MR_MW_BIND, and local write if this is to be
 * written; they stay until it is invalidated. Else the entry is FREE again.
 */
enum mr_result mr_fast_commit(struct mr_table *t, const struct mr_fast_req *f);
void mr_fast_abort(struct mr_table *t, uint32_t key);

#endif /* MR_TABLE_H */
