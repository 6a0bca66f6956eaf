/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segregated fits: free blocks in bins by the power of two below their size, neighbours joined
 * when they are freed. A search looks at a few blocks of the bin that may fit and then takes the
 * first of a bin where all do, so that its time does not grow with the number of blocks.
 */
#include <errno.h>
#include <stdlib.h>

#include "arena_alloc.h"

#define TRIES 16 /* blocks looked at in the bin where some do not fit */

static unsigned int
bin_of(uint64_t size)
{
	unsigned int log = 63 - (unsigned int)__builtin_clzll(size | 1);

	return log < ARENA_BINS ? log : ARENA_BINS - 1;
}

static void
block_put(struct arena_block *b)
{
	b->free = true;
	LIST_INSERT_HEAD(&b->space->bins[bin_of(b->size)], b, bin);
}

static void
block_take(struct arena_block *b)
{
	b->free = false;
	LIST_REMOVE(b, bin);
}

static struct arena_block *
block_new(struct arena_space *s, uint64_t offset, uint64_t size, bool dirty)
{
	struct arena_block *b = malloc(sizeof(*b));

	if (b != NULL)
		*b = (struct arena_block){
			.space = s, .offset = offset, .size = size, .dirty = dirty};
	return b;
}

int
arena_space_init(struct arena_space *s, uint64_t size, void *owner)
{
	struct arena_block *b;

	s->size = size;
	s->used = 0;
	s->owner = owner;
	TAILQ_INIT(&s->blocks);
	for (unsigned int i = 0; i < ARENA_BINS; i++)
		LIST_INIT(&s->bins[i]);
	b = block_new(s, 0, size, false);
	if (b == NULL)
		return -ENOMEM;
	TAILQ_INSERT_HEAD(&s->blocks, b, order);
	block_put(b);
	return 0;
}

void
arena_space_fini(struct arena_space *s)
{
	struct arena_block *b;

	while ((b = TAILQ_FIRST(&s->blocks)) != NULL) {
		TAILQ_REMOVE(&s->blocks, b, order);
		free(b);
	}
}

static bool
fits(const struct arena_block *b, uint64_t size, uint64_t align)
{
	uint64_t start = (b->offset + align - 1) & ~(align - 1);

	return start - b->offset <= b->size && b->size - (start - b->offset) >= size;
}

static struct arena_block *
find(struct arena_space *s, uint64_t size, uint64_t align)
{
	for (unsigned int i = bin_of(size); i < ARENA_BINS; i++) {
		struct arena_block *b;
		unsigned int tries = TRIES;

		LIST_FOREACH(b, &s->bins[i], bin) {
			if (fits(b, size, align))
				return b;
			if (tries-- == 0)
				break;
		}
	}
	return NULL;
}

/* Cut a free block's first `size` bytes off as a free block of their own. */
static struct arena_block *
cut_front(struct arena_block *b, uint64_t size)
{
	struct arena_block *front = block_new(b->space, b->offset, size, b->dirty);

	if (front == NULL)
		return NULL;
	block_take(b);
	b->offset += size;
	b->size -= size;
	TAILQ_INSERT_BEFORE(b, front, order);
	block_put(front);
	block_put(b);
	return front;
}

struct arena_block *
arena_space_alloc(struct arena_space *s, uint64_t size, uint64_t align)
{
	struct arena_block *b;
	uint64_t skip;

	if (size == 0 || size > s->size)
		return NULL;
	size = (size + ARENA_ALIGN - 1) & ~(uint64_t)(ARENA_ALIGN - 1);
	if (align < ARENA_ALIGN)
		align = ARENA_ALIGN;
	b = find(s, size, align);
	if (b == NULL)
		return NULL;
	skip = ((b->offset + align - 1) & ~(align - 1)) - b->offset;
	if (skip != 0 && cut_front(b, skip) == NULL)
		return NULL;
	if (b->size > size) {
		b = cut_front(b, size);
		if (b == NULL)
			return NULL;
	}
	block_take(b);
	s->used += b->size;
	return b;
}

/* `b` swallows its free right neighbour. */
static void
join(struct arena_block *b, struct arena_block *right)
{
	struct arena_space *s = b->space;

	LIST_REMOVE(right, bin);
	TAILQ_REMOVE(&s->blocks, right, order);
	b->size += right->size;
	b->dirty |= right->dirty;
	free(right);
}

void
arena_space_free(struct arena_block *b)
{
	struct arena_space *s = b->space;
	struct arena_block *next = TAILQ_NEXT(b, order);
	struct arena_block *prev;

	s->used -= b->size;
	b->dirty = true;
	if (next != NULL && next->free)
		join(b, next);
	prev = TAILQ_PREV(b, arena_order, order);
	if (prev != NULL && prev->free) {
		block_take(prev);
		b->free = true;
		LIST_INSERT_HEAD(&s->bins[0], b, bin); /* join() takes it out again */
		join(prev, b);
		b = prev;
	}
	block_put(b);
}
