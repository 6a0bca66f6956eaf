/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mapping by mapping of /proc/PID/maps, asked for directly where the kernel can (PROCMAP_QUERY,
 * 6.11), else line by line. Whatever the client does meanwhile (unmap, map another file there,
 * exec, die) can only make this fail or name memory that is the client's own: the process is held
 * by a descriptor of its /proc directory and checked by pidfd and uid before and after; a file is
 * opened for path only, compared by device and inode, and opened for access when it is known to
 * be of a memory file system, where opening cannot hang.
 *
 * In maps "w" with "s" is smaps' "sh mw" and more: the kernel gives a shared mapping VM_WRITE, at
 * once or by mprotect, only when its file was opened for writing. A line is older than the path,
 * and the client may have mapped another file there meanwhile, or mounted another file system
 * under the same number: once the path holds inode and device in place, both are looked at again,
 * for a batch of mappings at a time, since each such look may begin at the first of all mappings.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mapmem.h"
#include "mapmem_look.h"

#define TMPFS 0x01021994
#define HUGETLBFS 0x958458f6
#define LINES 512   /* of maps, a step */
#define BATCH 16    /* mappings, each with a descriptor */
#define OTHERS 4    /* descriptors: the process, its maps, again or its mounts, what is opened */
_Static_assert(BATCH + OTHERS == MAPMEM_FDS, "what the uid is charged");
#define MOUNTS 4096 /* of a mount table; what is behind is not looked at */

enum look_phase {
	LOOK_START,
	LOOK_READ,   /* the region's mappings, until a batch is full */
	LOOK_VERIFY, /* that they are still there */
	LOOK_MOUNTS, /* what their files are of */
	LOOK_TAKEN,
};

struct mapmem_look {
	const struct mapmem_req *r;
	enum look_phase phase;
	uint64_t at; /* everything before it was found */
	int proc;
	FILE *maps, *again;
	char *line;
	size_t cap;
	uint32_t lines; /* left in this step */
	bool query;	/* the kernel can be asked for a mapping */
	uint32_t num, verified;
	struct mapmem_found found[BATCH];
};

/* ---- the process ---------- */

/*
 * Alive, so that the pid is still its own, and with its uid: the directory of a process that has
 * executed something privileged belongs to root.
 */
static bool
same_process(const struct mapmem_look *l)
{
	struct pollfd p = {.fd = l->r->pidfd, .events = POLLIN};
	struct stat st;

	return fstat(l->proc, &st) == 0 && st.st_uid == l->r->uid && poll(&p, 1, 0) == 0;
}

static FILE *
proc_open(const struct mapmem_look *l, const char *name)
{
	int fd = openat(l->proc, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (f == NULL && fd >= 0)
		close(fd);
	return f;
}

static bool
parse_line(const char *line, struct mapmem_vma *v)
{
	char perms[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &v->start,
		    &v->end, perms, &v->offset, &v->major, &v->minor, &v->inode) != 7)
		return false;
	v->read = perms[0] == 'r';
	v->write = perms[1] == 'w';
	v->shared = perms[3] == 's';
	return true;
}

/* linux/fs.h, 6.11 */
struct vma_query {
	uint64_t size, query_flags, query_addr;
	uint64_t start, end, flags, page_size, offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};
#define VMA_QUERY _IOWR('f', 17, struct vma_query)
#define VMA_QUERY_OR_NEXT 0x10
#define VMA_READ 0x01
#define VMA_WRITE 0x02
#define VMA_SHARED 0x08

/* 1; 0: there is none at or behind the address; -errno. */
static int
vma_ask(const struct mapmem_look *l, uint64_t addr, struct mapmem_vma *v)
{
	struct vma_query q = {
		.size = sizeof(q),
		.query_flags = VMA_QUERY_OR_NEXT,
		.query_addr = addr,
	};

	if (ioctl(fileno(l->maps), VMA_QUERY, &q) < 0)
		return errno == ENOENT ? 0 : -errno;
	*v = (struct mapmem_vma){
		.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.major = q.major,
		.minor = q.minor,
		.inode = q.inode,
		.read = q.flags & VMA_READ,
		.write = q.flags & VMA_WRITE,
		.shared = q.flags & VMA_SHARED,
	};
	return 1;
}

/* The mapping at or behind `addr`, or, line by line, one before it. -EAGAIN: enough for now. */
static int
vma_next(struct mapmem_look *l, FILE *f, uint64_t addr, struct mapmem_vma *v)
{
	if (l->lines == 0)
		return -EAGAIN;
	l->lines--;
	if (l->query)
		return vma_ask(l, addr, v);
	return getline(&l->line, &l->cap, f) > 0 && parse_line(l->line, v);
}

/* ---- finding ---------- */

/* The mapping's file for path only: no file system is asked to open anything. */
static int
open_path(int proc, const struct mapmem_vma *v)
{
	char name[64];
	struct statx st;
	int fd;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, v->start, v->end);
	fd = openat(proc, name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -1;
	/* Without a synchronisation a remote or FUSE file system is not asked either. */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) == 0 &&
		st.stx_ino == v->inode && st.stx_dev_major == v->major &&
		st.stx_dev_minor == v->minor)
		return fd;
	close(fd);
	return -1;
}

static uint64_t
region_end(const struct mapmem_look *l)
{
	return l->r->addr + l->r->len;
}

static void
found_add(struct mapmem_look *l, const struct mapmem_vma *v)
{
	l->found[l->num++] = (struct mapmem_found){
		.v = *v,
		.at = l->at,
		.end = v->end < region_end(l) ? v->end : region_end(l),
		.path = v->shared && v->inode != 0 ? open_path(l->proc, v) : -1,
	};
	l->at = v->end;
}

static int
look_read(struct mapmem_look *l)
{
	while (l->num < BATCH && l->at < region_end(l)) {
		struct mapmem_vma v;
		int got = vma_next(l, l->maps, l->at, &v);

		if (got == -EAGAIN)
			return 1;
		if (got < 0)
			return got;
		if (got > 0 && v.end <= l->at)
			continue;
		/* the last mapping, a hole, or one without the rights */
		if (got == 0 || v.start > l->at || !v.read || (l->r->write && !v.write))
			return -EFAULT;
		found_add(l, &v);
	}
	l->verified = 0;
	l->again = l->query ? NULL : proc_open(l, "maps");
	if (!l->query && l->again == NULL)
		return -ESRCH;
	l->phase = LOOK_VERIFY;
	return 1;
}

/* ---- verifying ---------- */

static bool
vma_equal(const struct mapmem_vma *a, const struct mapmem_vma *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
		a->major == b->major && a->minor == b->minor && a->inode == b->inode &&
		a->read == b->read && a->write == b->write && a->shared == b->shared;
}

static int
look_verify(struct mapmem_look *l)
{
	while (l->verified < l->num) {
		struct mapmem_found *f = &l->found[l->verified];
		struct mapmem_vma now;
		int got = f->path < 0 ? 0 : vma_next(l, l->again, f->v.start, &now);

		if (got == -EAGAIN)
			return 1;
		if (got > 0 && now.end <= f->v.start)
			continue;
		f->same = got > 0 && vma_equal(&now, &f->v);
		l->verified++;
	}
	if (l->again != NULL)
		fclose(l->again);
	l->again = NULL;
	l->phase = LOOK_MOUNTS;
	return 1;
}

/* The kernel's own instances of memory file systems, known by files that we make. */
static dev_t own_dev[2];

static void
own_devs(void)
{
	static const unsigned int flags[] = {0, MFD_HUGETLB};

	for (int i = 0; i < 2; i++) {
		int fd = memfd_create("rnic-probe", MFD_CLOEXEC | flags[i]);
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0)
			own_dev[i] = st.st_dev;
		if (fd >= 0)
			close(fd);
	}
}

/* A file system of memory that the client's mount table, which the kernel writes, names. */
static void
mount_found(struct mapmem_look *l, const char *line)
{
	const char *type = strstr(line, " - ");
	unsigned int maj, min;

	if (type == NULL || sscanf(line, "%*d %*d %u:%u", &maj, &min) != 2 ||
		(strncmp(type + 3, "tmpfs ", 6) != 0 && strncmp(type + 3, "hugetlbfs ", 10) != 0))
		return;
	for (uint32_t i = 0; i < l->num; i++)
		l->found[i].in_memory |= l->found[i].v.major == maj && l->found[i].v.minor == min;
}

static int
look_mounts(struct mapmem_look *l)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool others = false;
	FILE *f;

	pthread_once(&once, own_devs);
	for (uint32_t i = 0; i < l->num; i++) {
		struct mapmem_found *m = &l->found[i];
		dev_t dev = makedev(m->v.major, m->v.minor);

		m->in_memory = dev != 0 && (dev == own_dev[0] || dev == own_dev[1]);
		others |= m->same && !m->in_memory;
	}
	f = others ? proc_open(l, "mountinfo") : NULL;
	for (int i = 0; f != NULL && i < MOUNTS && getline(&l->line, &l->cap, f) > 0; i++)
		mount_found(l, l->line);
	if (f != NULL)
		fclose(f);
	l->phase = LOOK_TAKEN;
	return MAPMEM_LOOK_FOUND;
}

/* ---- the whole ---------- */

static void
found_drop(struct mapmem_look *l)
{
	for (uint32_t i = 0; i < l->num; i++) {
		if (l->found[i].path >= 0)
			close(l->found[i].path);
	}
	l->num = 0;
}

static int
look_start(struct mapmem_look *l)
{
	struct mapmem_vma v;
	char name[32];

	snprintf(name, sizeof(name), "/proc/%d", (int)l->r->pid);
	l->proc = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (l->proc < 0 || !same_process(l))
		return -ESRCH;
	l->maps = proc_open(l, "maps");
	if (l->maps == NULL)
		return -EPERM;
	l->query = vma_ask(l, 0, &v) >= 0;
	l->phase = LOOK_READ;
	return 1;
}

static int
look_taken(struct mapmem_look *l)
{
	found_drop(l);
	l->phase = LOOK_READ;
	if (l->at < region_end(l))
		return 1;
	return same_process(l) ? 0 : -ESRCH;
}

int
mapmem_look_step(struct mapmem_look *l)
{
	l->lines = LINES;
	switch (l->phase) {
	case LOOK_START:
		return look_start(l);
	case LOOK_READ:
		return look_read(l);
	case LOOK_VERIFY:
		return look_verify(l);
	case LOOK_MOUNTS:
		return look_mounts(l);
	case LOOK_TAKEN:
		break;
	}
	return look_taken(l);
}

const struct mapmem_found *
mapmem_look_found(const struct mapmem_look *l, uint32_t *num)
{
	*num = l->num;
	return l->found;
}

static bool
of_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS || fs.f_type == HUGETLBFS);
}

int
mapmem_look_open(const struct mapmem_found *f, bool write)
{
	char name[64];
	int fd;

	if (f->path < 0 || !f->same || !f->in_memory || (write && !f->v.write))
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", f->path);
	fd = open(name, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && of_memory(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

struct mapmem_look *
mapmem_look_new(const struct mapmem_req *r)
{
	struct mapmem_look *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->r = r;
	l->at = r->addr;
	l->proc = -1;
	return l;
}

void
mapmem_look_free(struct mapmem_look *l)
{
	if (l == NULL)
		return;
	found_drop(l);
	if (l->again != NULL)
		fclose(l->again);
	if (l->maps != NULL)
		fclose(l->maps);
	if (l->proc >= 0)
		close(l->proc);
	free(l->line);
	free(l);
}
