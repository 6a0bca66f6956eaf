/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of an arena: a memfd, mapped writable here, populated and locked, and sealed so
 * that a client can neither shrink it under a worker nor write to what the daemon writes
 * (docs/design.md, 2.1). No thread of its own; arena_mem_populate() is for a helper thread.
 */
#ifndef ARENA_MEM_H
#define ARENA_MEM_H

#include <stdbool.h>
#include <stdint.h>

struct arena_mem {
	int fd;
	uint8_t *map;
	uint64_t size;	    /* bytes, a multiple of the page size */
	uint32_t page_size; /* bytes */
	uint64_t populated; /* bytes from the start */
};

/**
 * Make and map one of at least `size` bytes; on huge pages if wanted and there are enough.
 * 0 or -errno.
 */
int arena_mem_create(struct arena_mem *m, uint64_t size, bool huge);
/** Make one more step present and locked. 1: more to do, 0: all done, -errno. */
int arena_mem_populate(struct arena_mem *m);
/**
 * From here on nobody maps it writable anew, changes its size or its seals, or makes holes.
 * 0; -EPERM when its holder was faster with seals or another size: it is not to be used.
 */
int arena_mem_seal(struct arena_mem *m);
/** The descriptor is of no use any more. */
void arena_mem_close_fd(struct arena_mem *m);
void arena_mem_destroy(struct arena_mem *m);
/** The same in steps, for a helper thread. @return whether more is left. */
bool arena_mem_unmap(struct arena_mem *m);

#endif /* ARENA_MEM_H */
