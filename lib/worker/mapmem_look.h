/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A look at the mappings of a client's region, in steps that are bounded whatever it has mapped
 * elsewhere. A helper's work.
 */
#ifndef MAPMEM_LOOK_H
#define MAPMEM_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct mapmem_look;
struct mapmem_req;

struct mapmem_vma {
	uint64_t start, end, offset;
	unsigned int major, minor;
	uint64_t inode;
	bool read, write, shared;
};

/** A mapping that [at, end) of the region lies in. */
struct mapmem_found {
	struct mapmem_vma v;
	uint64_t at, end;
	int path;   /* of its file, opened for path only, or -1 */
	bool same;  /* it was still there when the path was held */
	bool in_memory; /* and its file system was one of memory */
};

/** The request outlives it. NULL: no memory. */
struct mapmem_look *mapmem_look_new(const struct mapmem_req *r);
/** NULL is allowed. */
void mapmem_look_free(struct mapmem_look *l);

#define MAPMEM_LOOK_FOUND 2
/** 1: more to do; MAPMEM_LOOK_FOUND: take what was found, then more; 0: done; -errno. */
int mapmem_look_step(struct mapmem_look *l);
/** After MAPMEM_LOOK_FOUND, until the next step: the next mappings of the region, in order. */
const struct mapmem_found *mapmem_look_found(const struct mapmem_look *l, uint32_t *num);
/** Open a file of memory with these rights. A descriptor, or -1: by copiers then. */
int mapmem_look_open(const struct mapmem_found *f, bool write);

#endif /* MAPMEM_LOOK_H */
