/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's memory, mapping by mapping of /proc/PID/maps. Whatever the client does meanwhile
 * (unmap, map another file there, exec, die) can only make this fail or name memory that is the
 * client's own: the process is held by a descriptor of its /proc directory and checked by pidfd
 * and uid before and after, a file is opened for path only, compared by device and inode, and
 * opened for access when it is known to be of a memory file system, where opening cannot hang.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mapmem.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#define TMPFS 0x01021994
#define HUGETLBFS 0x958458f6
#define STEP (UINT64_C(4) << 20)
#define UNMAP_STEP (UINT64_C(64) << 20)
#define MAX_SEGS 4096

struct vma {
	uint64_t start, end, offset;
	unsigned int major, minor;
	uint64_t inode;
	bool read, write, shared;
};

struct mapping {
	uint8_t *map;
	uint64_t len;
	uint64_t page, populated;
	int guard;
	bool write;
};

struct mapmem {
	struct mapmem_req r;
	uint64_t bytes;
	bool parsed;
	uint32_t num_segs, num_maps, populating;
	struct mr_seg *segs;
	struct mapping *maps;
	bool foreign;
	void *owner;
};

struct mapmem *
mapmem_new(const struct mapmem_req *r)
{
	struct mapmem *m = calloc(1, sizeof(*m));

	if (m != NULL)
		m->r = *r;
	return m;
}

/* ---- shares ---------- */

#define MAP_COUNT "/proc/sys/vm/max_map_count"
#define MAP_COUNT_DEFAULT 65530

uint32_t
mapmem_share_max(void)
{
	unsigned int max = MAP_COUNT_DEFAULT;
	FILE *f = fopen(MAP_COUNT, "re");

	if (f != NULL) {
		if (fscanf(f, "%u", &max) != 1)
			max = MAP_COUNT_DEFAULT;
		fclose(f);
	}
	return max / 2 < MAPMEM_GUARDS ? max / 2 : MAPMEM_GUARDS;
}

static void
share_put(const struct mapmem *m, uint32_t n)
{
	for (int i = 0; i < 2; i++)
		atomic_fetch_sub(&m->r.share[i]->used, n);
}

/* Another mapping, if neither the uid nor all together have too many. */
static bool
share_take(const struct mapmem *m)
{
	bool room = true;

	for (int i = 0; i < 2; i++)
		room &= atomic_fetch_add(&m->r.share[i]->used, 1) < m->r.share[i]->limit;
	if (!room)
		share_put(m, 1);
	return room;
}

/* From the end of the last mapping, whose beginning is where it was then. */
static void
unmap_step(struct mapmem *m)
{
	struct mapping *p = &m->maps[m->num_maps - 1];
	uint64_t n = p->page > UNMAP_STEP ? p->page : UNMAP_STEP;

	if (p->guard >= 0)
		mapmem_guard_del(p->guard);
	p->guard = -1;
	n = p->len < n ? p->len : n;
	p->len -= n;
	munmap(p->map + p->len, n);
	m->bytes -= n;
	atomic_fetch_sub(m->r.used, n);
	if (p->len == 0) {
		m->num_maps--;
		share_put(m, 1);
	}
}

bool
mapmem_free_step(struct mapmem *m)
{
	if (m->num_maps != 0) {
		unmap_step(m);
		return true;
	}
	free(m->maps);
	free(m->segs);
	free(m);
	return false;
}

const struct mr_seg *
mapmem_segs(const struct mapmem *m, uint32_t *num)
{
	*num = m->num_segs;
	return m->segs;
}

uint64_t
mapmem_bytes(const struct mapmem *m)
{
	return m->bytes;
}

bool
mapmem_has_foreign(const struct mapmem *m)
{
	return m->foreign;
}

bool
mapmem_has_mapped(const struct mapmem *m)
{
	return m->num_maps > 0;
}

void
mapmem_set_owner(struct mapmem *m, void *owner)
{
	m->owner = owner;
}

/* ---- the process ---------- */

/*
 * Alive, so that the pid is still its own, and with its uid: the directory of a process that has
 * executed something privileged belongs to root.
 */
static bool
same_process(const struct mapmem *m, int proc)
{
	struct pollfd p = {.fd = m->r.pidfd, .events = POLLIN};
	struct stat st;

	return fstat(proc, &st) == 0 && st.st_uid == m->r.uid && poll(&p, 1, 0) == 0;
}

static bool
parse_line(const char *line, struct vma *v)
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

/* ---- mapped segments ---------- */

static bool
in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS || fs.f_type == HUGETLBFS);
}

/* The mapping's file for path only: no file system is asked to open anything. */
static int
open_path(int proc, const struct vma *v)
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

/*
 * Devices of memory file systems: the kernel's own instances, known by files that we make, and
 * what the client's mount table, which the kernel writes, calls tmpfs or hugetlbfs.
 */
static bool
own_instance(unsigned int flags, const struct vma *v)
{
	struct stat st = {0};
	int fd = memfd_create("rnic-probe", MFD_CLOEXEC | flags);

	if (fd < 0)
		return false;
	fstat(fd, &st);
	close(fd);
	return major(st.st_dev) == v->major && minor(st.st_dev) == v->minor;
}

static bool
mounted_in_memory(int proc, const struct vma *v)
{
	int fd = openat(proc, "mountinfo", O_RDONLY | O_CLOEXEC);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	char *line = NULL;
	size_t cap = 0;
	bool yes = false;

	while (f != NULL && !yes && getline(&line, &cap, f) > 0) {
		unsigned int maj, min;
		const char *type = strstr(line, " - ");

		if (type != NULL && sscanf(line, "%*d %*d %u:%u", &maj, &min) == 2 &&
			maj == v->major && min == v->minor)
			yes = strncmp(type + 3, "tmpfs ", 6) == 0 ||
				strncmp(type + 3, "hugetlbfs ", 10) == 0;
	}
	free(line);
	if (f != NULL)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return yes;
}

static bool
may_map(int proc, const struct vma *v)
{
	return v->shared && v->inode != 0 &&
		(own_instance(0, v) || own_instance(MFD_HUGETLB, v) || mounted_in_memory(proc, v));
}

/* Whether the mapping is still what its line said. */
static bool
still_mapped(int proc, const struct vma *v)
{
	int fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	struct vma now = {0};
	char *line = NULL;
	size_t cap = 0;
	bool same;

	while (f != NULL && now.end <= v->start && getline(&line, &cap, f) > 0) {
		if (!parse_line(line, &now))
			break;
	}
	same = now.start == v->start && now.end == v->end && now.offset == v->offset &&
		now.major == v->major && now.minor == v->minor && now.inode == v->inode &&
		now.read == v->read && now.write == v->write && now.shared == v->shared;
	free(line);
	if (f != NULL)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return same;
}

/*
 * A file of a memory file system, with the rights that the client has it mapped with. In maps
 * "w" with "s" is smaps' "sh mw" and more: the kernel gives a shared mapping VM_WRITE, at once or
 * by mprotect, only when its file was opened for writing. The line is older than the path, and
 * the client may have mapped another file there meanwhile, or mounted another file system under
 * the same number: once the path holds inode and device in place, both are looked at again.
 */
static int
open_file(int proc, const struct vma *v, bool write)
{
	char name[64];
	int path = open_path(proc, v), fd;

	if (path < 0)
		return -1;
	if (!still_mapped(proc, v) || !may_map(proc, v) || (write && !v->write)) {
		close(path);
		return -1;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path);
	fd = open(name, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(path);
	if (fd >= 0 && in_memory(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int
map_enter(struct mapmem *m, uint8_t *map, uint64_t len, uint64_t page)
{
	struct mapping *more = realloc(m->maps, (m->num_maps + 1) * sizeof(*more));
	int guard;

	if (more == NULL)
		return -ENOMEM;
	m->maps = more;
	guard = mapmem_guard_add(map, len, page, &m->owner, m->r.deaths);
	if (guard < 0)
		return -ENOMEM;
	m->maps[m->num_maps++] = (struct mapping){
		.map = map,
		.len = len,
		.page = page,
		.guard = guard,
		.write = m->r.write,
	};
	m->bytes += len;
	return 0;
}

/* Charge the uid, whose other registrations may run at the same time. */
static bool
charge(struct mapmem *m, uint64_t len)
{
	uint64_t before = atomic_fetch_add(m->r.used, len);

	if (before <= m->r.quota && len <= m->r.quota - before)
		return true;
	atomic_fetch_sub(m->r.used, len);
	return false;
}

/* Map [start, end) of the client's mapping here; its address, or NULL: by copiers then. */
static uint8_t *
map_range(struct mapmem *m, int fd, const struct vma *v, uint64_t start, uint64_t end, int *err)
{
	uint64_t offset = v->offset + (start - v->start), page, len, skip;
	int prot = PROT_READ | (m->r.write ? PROT_WRITE : 0);
	struct statfs fs;
	struct stat st;
	uint8_t *map;

	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return NULL;
	page = fs.f_type == HUGETLBFS ? (uint64_t)fs.f_bsize : (uint64_t)sysconf(_SC_PAGESIZE);
	skip = offset & (page - 1);
	len = (skip + (end - start) + page - 1) & ~(page - 1);
	if ((uint64_t)st.st_size < offset + (end - start)) {
		*err = -EFAULT; /* behind the object's end there is no memory */
		return NULL;
	}
	map = mmap(NULL, len, prot, MAP_SHARED, fd, (off_t)(offset - skip));
	if (map == MAP_FAILED)
		return NULL; /* sealed against writing, as our own arenas are */
	(void)madvise(map, len, MADV_DONTFORK);
	*err = charge(m, len) ? map_enter(m, map, len, page) : -EDQUOT;
	if (*err == -ENOMEM)
		atomic_fetch_sub(m->r.used, len);
	if (*err < 0) {
		munmap(map, len);
		return NULL;
	}
	return map + skip;
}

/* ---- segments ---------- */

static int
seg_add(struct mapmem *m, uint64_t start, uint64_t end, uint8_t *ptr)
{
	struct mr_seg *s;

	if (ptr == NULL && m->num_segs > 0) {
		s = &m->segs[m->num_segs - 1];
		if (s->kind == MR_SEG_FOREIGN) { /* neighbours, whatever their mappings */
			s->length += end - start;
			return 0;
		}
	}
	if (m->num_segs == MAX_SEGS)
		return -ENOMEM;
	if (m->num_segs % 64 == 0) {
		s = realloc(m->segs, (m->num_segs + 64) * sizeof(*s));
		if (s == NULL)
			return -ENOMEM;
		m->segs = s;
	}
	s = &m->segs[m->num_segs++];
	*s = (struct mr_seg){
		.start = start - m->r.addr,
		.length = end - start,
		.kind = ptr != NULL ? MR_SEG_DIRECT : MR_SEG_FOREIGN,
		.ptr = ptr,
		.remote = ptr != NULL ? 0 : start,
	};
	m->foreign |= ptr == NULL;
	return 0;
}

/* Map what is of the region in that mapping of the client's; NULL: by copiers then. */
static uint8_t *
vma_map(struct mapmem *m, int proc, const struct vma *v, uint64_t at, uint64_t end, int *err)
{
	uint8_t *ptr = NULL;
	int fd;

	if (!may_map(proc, v) || !share_take(m))
		return NULL;
	fd = open_file(proc, v, m->r.write);
	if (fd >= 0) {
		ptr = map_range(m, fd, v, at, end, err);
		close(fd);
	}
	if (ptr == NULL)
		share_put(m, 1);
	return ptr;
}

static int
vma_take(struct mapmem *m, int proc, const struct vma *v, uint64_t at)
{
	uint64_t end = m->r.addr + m->r.len < v->end ? m->r.addr + m->r.len : v->end;
	uint8_t *ptr;
	int err = 0;

	if (!v->read || (m->r.write && !v->write))
		return -EFAULT;
	ptr = vma_map(m, proc, v, at, end, &err);
	return err < 0 ? err : seg_add(m, at, end, ptr);
}

static int
parse(struct mapmem *m, int proc)
{
	int fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC), err = 0;
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	uint64_t at = m->r.addr;
	char *line = NULL;
	size_t cap = 0;
	struct vma v;

	if (f == NULL) {
		if (fd >= 0)
			close(fd);
		return -EPERM;
	}
	while (err == 0 && at < m->r.addr + m->r.len && getline(&line, &cap, f) > 0) {
		if (!parse_line(line, &v) || v.end <= at)
			continue;
		if (v.start > at)
			break;
		err = vma_take(m, proc, &v, at);
		at = v.end;
	}
	free(line);
	fclose(f);
	if (err < 0)
		return err;
	return at >= m->r.addr + m->r.len ? 0 : -EFAULT; /* a hole, or behind the last mapping */
}

static int
look(struct mapmem *m)
{
	char name[32];
	int proc, err;

	snprintf(name, sizeof(name), "/proc/%d", (int)m->r.pid);
	proc = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -ESRCH;
	err = same_process(m, proc) ? parse(m, proc) : -ESRCH;
	if (err == 0 && !same_process(m, proc))
		err = -ESRCH;
	close(proc);
	return err;
}

/* Make some more of the mappings present and locked. */
static int
populate(struct mapmem *m)
{
	struct mapping *p = &m->maps[m->populating];
	uint64_t n = p->len - p->populated < STEP ? p->len - p->populated : STEP;

	if (n == 0) {
		m->populating++;
		return 1;
	}
	if (madvise(p->map + p->populated, n,
		    p->write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) < 0)
		return errno == ENOMEM ? -ENOMEM : -EFAULT;
	(void)mlock(p->map + p->populated, n);
	p->populated += n;
	return 1;
}

int
mapmem_step(struct mapmem *m)
{
	if (!m->parsed) {
		int err = look(m);

		m->parsed = true;
		return err < 0 ? err : 1;
	}
	return m->populating < m->num_maps ? populate(m) : 0;
}
