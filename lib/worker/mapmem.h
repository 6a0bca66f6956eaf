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
 * How many mappings there may be. Each is one of those that the kernel lets a process have
 * (vm.max_map_count): whoever could fill that would leave nothing for arenas and threads, and
 * the SIGBUS handler could not put anything in a mapping's place.
 */
struct mapmem_share {
	_Atomic uint32_t used;
	uint32_t limit;
};

/** Mappings that have died, from the SIGBUS handler to mapmem_deaths_take(). */
struct mapmem_deaths {
	_Atomic uint32_t first; /* zeroed */
	int wake; /* eventfd that is written then, or -1; not closed before the last mapping went */
};

/** What all clients together may have. */
uint32_t mapmem_share_max(void);

/** Whose memory, and what for. */
struct mapmem_req {
	pid_t pid;
	int pidfd; /* the caller's, open all the time */
	uid_t uid;
	bool write;
	bool on_demand; /* looked at only when it is accessed: all of it is for the copiers */
	uint64_t addr, len;
	_Atomic uint64_t *used; /* bytes mapped and locked for that uid; outlives the mapmem */
	uint64_t quota;		/* of those */
	struct mapmem_share *share[2]; /* the uid's and the device's; outlive the mapmem */
	struct mapmem_deaths *deaths; /* where it is said that a mapping died; outlives it */
};

/** Descriptors that are open between its first step and its last, at most. */
#define MAPMEM_FDS 20u

/** Prepare to look at it. NULL: no memory. */
struct mapmem *mapmem_new(const struct mapmem_req *r);
/** A step of the work, on a helper thread. 1: more to do, 0: done, -errno. */
int mapmem_step(struct mapmem *m);
/** Unmap a step more, on a helper thread. @return false: all of it is gone, and the mapmem. */
bool mapmem_free_step(struct mapmem *m);

/** After the last step. */
const struct mr_seg *mapmem_segs(const struct mapmem *m, uint32_t *num);
bool mapmem_has_foreign(const struct mapmem *m);
/** Who is told when an object is truncated under us, and zero pages stand in. Control thread. */
void mapmem_set_owner(struct mapmem *m, void *owner);
/** Tell the owners of mappings that have died since, each mapping once. Control thread. */
void mapmem_deaths_take(struct mapmem_deaths *d, void (*died)(void *arg, void *owner), void *arg);

/** The SIGBUS handler of the process, for objects that are truncated under us. Once. */
int mapmem_sigbus_install(void);
#define MAPMEM_GUARDS 65536
/** Of larger pages there is no mapping: no reserve of zero pages could take one's place. */
#define MAPMEM_PAGE_MAX (UINT64_C(2) << 20)
/**
 * Watch a mapping of ours, of such pages. Any thread.
 * @param owner where its owner's address, or NULL, stands until it is deleted.
 * @return its number, or -ENOMEM.
 */
int mapmem_guard_add(void *addr, uint64_t len, uint64_t page, void *const *owner,
		     struct mapmem_deaths *deaths);
/** Before it is unmapped. Any thread. */
void mapmem_guard_del(int guard);

#endif /* MAPMEM_H */
