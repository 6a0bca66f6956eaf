/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's memory as segments: what is found (mapmem_look.c) is mapped here where it can be, and
 * made present; the rest is for the copiers. On demand nothing is looked for: a page is there when
 * a copier asks for it, or that access fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mapmem.h"
#include "mapmem_look.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#define HUGETLBFS 0x958458f6
#define STEP (UINT64_C(4) << 20)
#define UNMAP_STEP (UINT64_C(64) << 20)
#define MAX_SEGS 4096

struct mapping {
	uint8_t *map;
	uint64_t len;
	uint64_t page, populated;
	int guard;
	bool write;
};

struct mapmem {
	struct mapmem_req r;
	struct mapmem_look *look; /* NULL: it is over */
	uint32_t num_segs, num_maps, populating;
	struct mr_seg *segs;
	struct mapping *maps;
	bool foreign;
	void *owner;
};

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
	mapmem_look_free(m->look);
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

bool
mapmem_has_foreign(const struct mapmem *m)
{
	return m->foreign;
}

void
mapmem_set_owner(struct mapmem *m, void *owner)
{
	m->owner = owner;
}

/* ---- mapped segments ---------- */

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

/* Map [at, end) of the client's mapping here; its address, or NULL: by copiers then. */
static uint8_t *
map_range(struct mapmem *m, int fd, const struct mapmem_found *f, int *err)
{
	uint64_t offset = f->v.offset + (f->at - f->v.start), page, len, skip;
	int prot = PROT_READ | (m->r.write ? PROT_WRITE : 0);
	struct statfs fs;
	struct stat st;
	uint8_t *map;

	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return NULL;
	page = fs.f_type == HUGETLBFS ? (uint64_t)fs.f_bsize : (uint64_t)sysconf(_SC_PAGESIZE);
	if (page > MAPMEM_PAGE_MAX)
		return NULL;
	skip = offset & (page - 1);
	len = (skip + (f->end - f->at) + page - 1) & ~(page - 1);
	if ((uint64_t)st.st_size < offset + (f->end - f->at)) {
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

struct mapmem *
mapmem_new(const struct mapmem_req *r)
{
	struct mapmem *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->r = *r;
	if (r->on_demand) {
		if (seg_add(m, r->addr, r->addr + r->len, NULL) == 0)
			return m;
		free(m);
		return NULL;
	}
	m->look = mapmem_look_new(&m->r);
	if (m->look == NULL) {
		free(m);
		return NULL;
	}
	return m;
}

/* Map what is of the region in that mapping of the client's; NULL: by copiers then. */
static uint8_t *
found_map(struct mapmem *m, const struct mapmem_found *f, int *err)
{
	uint8_t *ptr = NULL;
	int fd;

	if (f->path < 0 || !share_take(m))
		return NULL;
	fd = mapmem_look_open(f, m->r.write);
	if (fd >= 0) {
		ptr = map_range(m, fd, f, err);
		close(fd);
	}
	if (ptr == NULL)
		share_put(m, 1);
	return ptr;
}

static int
found_take(struct mapmem *m)
{
	uint32_t num;
	const struct mapmem_found *f = mapmem_look_found(m->look, &num);
	int err = 0;

	for (uint32_t i = 0; i < num && err == 0; i++) {
		uint8_t *ptr = found_map(m, &f[i], &err);

		if (err == 0)
			err = seg_add(m, f[i].at, f[i].end, ptr);
	}
	return err < 0 ? err : 1;
}

static int
look(struct mapmem *m)
{
	int err = mapmem_look_step(m->look);

	if (err == MAPMEM_LOOK_FOUND)
		err = found_take(m);
	if (err > 0)
		return err;
	mapmem_look_free(m->look);
	m->look = NULL;
	return err < 0 ? err : 1;
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
	if (m->look != NULL)
		return look(m);
	return m->populating < m->num_maps ? populate(m) : 0;
}
