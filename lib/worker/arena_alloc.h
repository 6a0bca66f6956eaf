/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Giving out parts of an arena. What is free and what is not is written down in the daemon's
 * own memory: the client can write to arenas. Not thread-safe: the control thread's.
 */
#ifndef ARENA_ALLOC_H
#define ARENA_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define ARENA_ALIGN 64 /* of every block: a cache line has one writer */
#define ARENA_BINS 48  /* by log2 of the size */

struct arena_space;

/** A run of an arena, given out or free. Runs tile the arena in order of offset. */
struct arena_block {
	struct arena_space *space;
	uint64_t offset; /* bytes, as the next */
	uint64_t size;
	bool free;
	bool dirty; /* was given out before: not zero any more */
	TAILQ_ENTRY(arena_block) order;
	LIST_ENTRY(arena_block) bin; /* of free ones */
};

struct arena_space {
	uint64_t size;
	uint64_t used;
	void *owner;
	TAILQ_HEAD(arena_order, arena_block) blocks;
	LIST_HEAD(, arena_block) bins[ARENA_BINS];
};

/** All of it free and zero. 0 or -ENOMEM. */
int arena_space_init(struct arena_space *s, uint64_t size, void *owner);
/** Forgets everything, given out or not. */
void arena_space_fini(struct arena_space *s);
/**
 * A block of at least `size` bytes at a multiple of `align`, a power of two. Its size is `size`
 * rounded up to ARENA_ALIGN. NULL: no room, or no memory for the book-keeping.
 */
struct arena_block *arena_space_alloc(struct arena_space *s, uint64_t size, uint64_t align);
void arena_space_free(struct arena_block *b);

#endif /* ARENA_ALLOC_H */
