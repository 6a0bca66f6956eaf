/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of a client that lies outside its arenas, as segments of an MR. Shared mappings of
 * tmpfs, hugetlbfs and memfds are mapped here as well, everything else is reached by copiers
 * (docs/design.md, 2.3). Reading /proc and mapping may take long: a helper's work.
 */
#ifndef MAPMEM_H
#define MAPMEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mr_table.h"

struct mapmem;

/**
 * Prepare to look at [addr, addr + len) of a process of that uid, whose pidfd stays the
 * caller's and open. `budget` limits the bytes that may be mapped and locked. NULL: no memory.
 */
struct mapmem *mapmem_new(pid_t pid, int pidfd, uid_t uid, uint64_t addr, uint64_t len, bool write,
			  uint64_t budget);
/** A step of the work, on a helper thread. 1: more to do, 0: done, -errno. */
int mapmem_step(struct mapmem *m);
void mapmem_free(struct mapmem *m);

/** After the last step. */
const struct mr_seg *mapmem_segs(const struct mapmem *m, uint32_t *num);
uint64_t mapmem_bytes(const struct mapmem *m); /* mapped and locked here */
bool mapmem_has_foreign(const struct mapmem *m);
bool mapmem_has_mapped(const struct mapmem *m);

/** The SIGBUS handler of the process, for objects that are truncated under us. Once. */
int mapmem_sigbus_install(void);
/** Watch a mapping of ours. 0 or -ENOMEM. Any thread. */
int mapmem_guard_add(void *addr, uint64_t len);
/** Before it is unmapped. @return whether it had been truncated. */
bool mapmem_guard_del(void *addr);

#endif /* MAPMEM_H */
