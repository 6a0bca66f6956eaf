/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a client process, opened with no more rights than the client has itself. */
#ifndef COPIER_MEM_H
#define COPIER_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** A process and its rights, as the kernel said when it connected. */
struct copier_who {
	pid_t pid;
	int pidfd; /* of it; the caller's */
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* the caller's */
	uint32_t num_groups;
};

/**
 * Open the memory that this process has now: what it executes later is another memory. Changes
 * the calling thread's file-system ids, groups and capabilities for good: for a thread of its
 * own. @return a descriptor; -EPERM or -EACCES: privileged or not dumpable; -ESRCH.
 */
int copier_mem_open(const struct copier_who *who);
/** 0; -EFAULT: not all of it is there; -ESRCH: the process or its memory is gone. */
int copier_mem_read(int mem, uint64_t addr, void *to, size_t len);
int copier_mem_write(int mem, uint64_t addr, const void *from, size_t len);

#endif /* COPIER_MEM_H */
