/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An entry of the key table and its state word.
 *
 * Who writes what: the control thread fills an EMPTY entry and publishes it by a release
 * store of the word. From then on the plain fields are constant; the word changes by
 * compare-and-swap alone. A reader trusts the plain fields only when its acquire load of the
 * word showed the key it looks for in state VALID, and no longer than until its next quiescent
 * point: nobody writes them again (release, another bind) before all readers passed one. But pd,
 * context, fast and owner never change between registration and release.
 * A worker that binds writes the other fields of an entry in state CLAIMED: it alone, since the
 * claim was a compare-and-swap, and the control thread waits for its hold before a release.
 */
#ifndef MR_TABLE_PRIV_H
#define MR_TABLE_PRIV_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mr_table.h"

#define MR_CACHE_LINE 64
#define MR_INDEX_BITS 24
#define MR_VARIANT_BITS 8
#define MR_INDEX_MAX ((1u << MR_INDEX_BITS) - 1)
#define MR_MAX_LENGTH (UINT64_C(1) << 48)

/*
 * The state word: key 32 | rights 16 | type 8 | state 8. Everything that decides whether a key
 * may be used changes together, and one masked comparison answers for key, state and rights.
 */
#define MR_WORD_KEY_SHIFT 32
#define MR_WORD_ACCESS_SHIFT 16
#define MR_WORD_TYPE_SHIFT 8
#define MR_WORD_KEY (UINT64_C(0xffffffff) << MR_WORD_KEY_SHIFT)
#define MR_WORD_STATE UINT64_C(0xff)

/*
 * A right of our own, in a bit that verbs leave unused: local read. Every region grants it,
 * windows do not, since their keys are for peers alone (there is no lkey of a window).
 */
#define MR_LOCAL_READ (1u << 15)

/** Set in `bound` when no more windows may be bound to the region. */
#define MR_BOUND_CLOSED (1u << 31)

/** The bytes of a region: runs in ascending order, without gap; neighbours merged. */
struct mr_segs {
	uint32_t num;
	struct mr_seg seg[];
};

/** A fast registration's own: room for its runs, and the region that each is of. */
struct mr_fast {
	uint32_t max;
	struct mr_segs *segs; /* behind `owner`, in the same block */
	struct mr *owner[];   /* by run; each is counted in its `bound` while VALID */
};

struct mr {
	/* Line 0: all that mr_check() of a region in one piece reads. */
	alignas(MR_CACHE_LINE) _Atomic uint64_t word;
	uint64_t iova;	 /* address of the first byte; 0 when zero based */
	uint64_t length; /* bytes */
	uint8_t *base;	 /* first byte, when all of it is one direct run; else NULL */
	uint32_t pd;
	uint32_t pd_mask; /* ~0: the PD must match; 0: it does not matter */
	uint32_t qpn;
	uint32_t qpn_mask;	    /* ~0: window of type 2, bound to this QP; else 0 */
	uint64_t shift;		    /* windows: where they begin in the parent; regions: 0 */
	const struct mr_segs *segs; /* regions: own; windows: the parent's; NULL: no bytes */

	/* Line 1: copiers, windows, the control thread. */
	alignas(MR_CACHE_LINE) _Atomic uint32_t holds; /* copiers at work, mr_hold() */
	_Atomic uint32_t bound; /* windows bound to this region, or MR_BOUND_CLOSED */
	struct mr *parent;	/* windows: their region, when VALID */
	void *lane;		/* copier lane of foreign segments */
	void *owner;		/* the control thread's object */
	_Atomic uint64_t grace; /* mr_grace() */
	struct mr_fast *fast;	/* fast registrations; else NULL */
	uint32_t context;	/* of regions and windows */
};
_Static_assert(sizeof(struct mr) == 2 * MR_CACHE_LINE, "an entry is two cache lines");
_Static_assert(offsetof(struct mr, holds) == MR_CACHE_LINE, "copiers write outside the hot line");

struct mr_table {
	/* Read by everyone, constant after creation. */
	struct mr *slots;
	uint32_t mask;	   /* slots - 1 */
	uint32_t bits;	   /* log2 of the number of slots */
	uint32_t first;	   /* slots below it and their mirror at the end are never used */
	uint32_t capacity; /* slots that are handed out */
	size_t bytes;	   /* of the mapping behind slots */
	/* Control thread. The list's free part is in random order; see mr_slot_take(). */
	alignas(MR_CACHE_LINE) uint32_t *free_list; /* `capacity` of them */
	uint32_t num_free;
	_Atomic uint32_t count; /* keys in use; read by any thread */
};

static inline uint64_t
mr_word(uint32_t key, uint32_t access, enum mr_type type, enum mr_state state)
{
	return (uint64_t)key << MR_WORD_KEY_SHIFT |
		(uint64_t)(access & MR_ACCESS_MASK) << MR_WORD_ACCESS_SHIFT |
		(uint64_t)type << MR_WORD_TYPE_SHIFT | (uint64_t)state;
}

static inline uint32_t
mr_word_key(uint64_t word)
{
	return (uint32_t)(word >> MR_WORD_KEY_SHIFT);
}

static inline uint32_t
mr_word_access(uint64_t word)
{
	return (uint32_t)(word >> MR_WORD_ACCESS_SHIFT) & MR_ACCESS_MASK;
}

static inline enum mr_type
mr_word_type(uint64_t word)
{
	return (enum mr_type)((word >> MR_WORD_TYPE_SHIFT) & 0xff);
}

static inline enum mr_state
mr_word_state(uint64_t word)
{
	return (enum mr_state)(word & MR_WORD_STATE);
}

static inline uint64_t
mr_word_set_state(uint64_t word, enum mr_state state)
{
	return (word & ~MR_WORD_STATE) | (uint64_t)state;
}

/** The entry that a key would be in, whoever is there. */
static inline struct mr *
mr_slot(const struct mr_table *t, uint32_t key)
{
	return &t->slots[(key >> MR_VARIANT_BITS) & t->mask];
}

/** Whether PD or QP differ from what the entry wants. Only of an entry seen VALID. */
static inline bool
mr_scope_differs(const struct mr *mr, uint32_t pd, uint32_t qpn)
{
	return (((mr->pd ^ pd) & mr->pd_mask) | ((mr->qpn ^ qpn) & mr->qpn_mask)) != 0;
}

/** Types that the consumer can invalidate. */
bool mr_type_is_consumers(enum mr_type type);
static inline bool
mr_type_is_window(enum mr_type type)
{
	return type == MR_TYPE_WINDOW_1 || type == MR_TYPE_WINDOW_2A || type == MR_TYPE_WINDOW_2B;
}

/**
 * The key of a slot, from 32 random bits.
 * @param last the key that the slot had before; its index is not given again.
 * @return the key; 0: these bits will not do, draw others.
 */
uint32_t mr_key_make(const struct mr_table *t, uint32_t slot, uint32_t last, uint32_t random);

/** Whether the runs cover [0, length) in order and can be reached. */
bool mr_segs_valid(const struct mr_desc *d);
/** A copy with adjoining runs merged. @return NULL without memory. */
struct mr_segs *mr_segs_build(const struct mr_seg *seg, uint32_t num);
/** The run that holds the byte at `offset`, which lies within the region. */
const struct mr_seg *mr_segs_find(const struct mr_segs *segs, uint64_t offset);

/** Count a window bound to the region. @return false: the region is on its way out. */
bool mr_bound_get(struct mr *mr);
void mr_bound_put(struct mr *mr);
/** No more windows from now on. @return false, changing nothing: some are bound. */
bool mr_bound_close(struct mr *mr);
/**
 * A window or fast registration has left VALID (once a bind, by whoever changed the word): its
 * regions forget it.
 */
void mr_window_unbound(struct mr *mr);

/** Rights that a region must grant so that a window or fast registration on it may have these. */
uint32_t mr_rights_below(uint32_t access);
/**
 * Whether the region is what `key` names, VALID, and grants `need` to entries of this PD and
 * context. Another is as good as none. @return MR_OK: and it is counted as bound once more.
 */
enum mr_result mr_parent_get(struct mr *r, uint32_t key, uint32_t pd, uint32_t context,
	uint32_t need);
/** Whether [addr, addr + len) lies within a region; *offset is from its first byte. */
bool mr_range_in(const struct mr *r, uint64_t addr, uint64_t len, uint64_t *offset);

/** To CLAIMED by compare-and-swap, from `word`; false: it is another now. */
bool mr_claim(struct mr *mr, uint64_t *word);
/** From CLAIMED to another word; false: it was killed. The claim's hold is dropped last. */
bool mr_claim_end(struct mr *mr, uint64_t word);
void mr_claim_drop(struct mr *mr);

/** NULL without memory. */
struct mr_fast *mr_fast_new(uint32_t max_segs);

#endif /* MR_TABLE_PRIV_H */
