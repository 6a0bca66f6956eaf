/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why not process_vm_readv: it asks for the caller's real uid, and a thread of ours whose real
 * uid is a client's can be killed by that client, and the whole daemon with it (kill(2),
 * prlimit(2) and others compare with the target's real and saved ids). Opening /proc/PID/mem
 * asks for the file-system uid, which gives nobody a hold on us, and asks once: the descriptor
 * stays with the memory that was opened, so that whatever the client executes is out of reach.
 * Its price: while an access waits for a page of a file, the kernel keeps the lock of that
 * address space (process_vm lets go of it), so the client's own mmap and fork wait as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "copier_mem.h"

/*
 * Uids and permitted capabilities, from one text: the kernel makes all of it at the first read.
 * Up to 65536 groups stand between the two. @return 0; -EPERM: the uids are others.
 */
static int
status_parse(FILE *f, uid_t uid, uint64_t *caps)
{
	char *line = NULL;
	size_t cap = 0;
	unsigned int u[4];
	int err = -ESRCH, found = 0;

	while (found != 2 && getline(&line, &cap, f) > 0) {
		if (sscanf(line, "Uid: %u %u %u %u", &u[0], &u[1], &u[2], &u[3]) == 4)
			found = 1;
		else if (found == 1 && sscanf(line, "CapPrm: %" SCNx64, caps) == 1)
			found = 2;
	}
	free(line);
	if (found == 2) /* others: it has executed something, or is changing its uid */
		err = u[0] == uid && u[1] == uid && u[2] == uid ? 0 : -EPERM;
	return err;
}

static int
status_read(int proc, uid_t uid, uint64_t *caps)
{
	int fd = openat(proc, "status", O_RDONLY | O_CLOEXEC), err;
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (f == NULL) {
		if (fd >= 0)
			close(fd);
		return -ESRCH;
	}
	err = status_parse(f, uid, caps);
	fclose(f);
	return err;
}

/* Effective capabilities: those of ours that are in the set. */
static int
caps_limit(uint64_t set)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;
	d[0].effective = d[0].permitted & (uint32_t)set;
	d[1].effective = d[1].permitted & (uint32_t)(set >> 32);
	return syscall(SYS_capset, &h, d) < 0 ? -errno : 0;
}

/*
 * Of this thread alone: raw calls, since libc's change all threads. Real and saved ids stay. The
 * kernel wants us to have every capability of the process's, so those are kept; CAP_SYS_PTRACE,
 * which passes every check, only towards uid 0, which owns it.
 */
static int
wear(const struct copier_who *w, uint64_t caps)
{
	if (w->uid != 0)
		caps &= ~(UINT64_C(1) << CAP_SYS_PTRACE);
	if (syscall(SYS_setgroups, w->num_groups, w->groups) < 0 && w->uid != geteuid())
		return -errno;
	setfsgid(w->gid);
	setfsuid(w->uid);
	if ((uid_t)setfsuid((uid_t)-1) != w->uid || (gid_t)setfsgid((gid_t)-1) != w->gid)
		return -EPERM;
	return caps_limit(caps);
}

/* Whether the pid still names that process; it does while its pidfd is not readable. */
static bool
alive(const struct copier_who *w)
{
	struct pollfd p = {.fd = w->pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

int
copier_mem_open(const struct copier_who *w)
{
	uint64_t caps;
	char name[32];
	int proc, fd, err;

	snprintf(name, sizeof(name), "/proc/%d", (int)w->pid);
	proc = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -ESRCH;
	err = alive(w) ? status_read(proc, w->uid, &caps) : -ESRCH;
	if (err == 0)
		err = wear(w, caps);
	fd = err == 0 ? openat(proc, "mem", O_RDWR | O_CLOEXEC) : err;
	if (err == 0 && fd < 0)
		fd = errno == ENOENT ? -ESRCH : -errno;
	close(proc);
	return fd;
}

static int
all_moved(ssize_t n, size_t want)
{
	if (n < 0)
		return errno == EIO ? -EFAULT : -errno;
	if (n == 0)
		return -ESRCH; /* that memory has ended */
	return (size_t)n == want ? 0 : -EFAULT; /* a short count: the rest is not there */
}

int
copier_mem_read(int mem, uint64_t addr, void *to, size_t len)
{
	return all_moved(pread(mem, to, len, (off_t)addr), len);
}

int
copier_mem_write(int mem, uint64_t addr, const void *from, size_t len)
{
	return all_moved(pwrite(mem, from, len, (off_t)addr), len);
}
