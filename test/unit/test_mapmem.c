/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which memory of a client is mapped here, with which rights, and what happens when it is
 * truncated under us. The source is included for what stands between a check and its use.
 */
#include <sys/resource.h>
#include <sys/syscall.h>

#include "ctl_objects.h"
#include "mapmem_look.c"

static uint64_t page_said; /* by a file system of huge pages, that others are then */

int
fstatfs(int fd, struct statfs *fs)
{
	long err = syscall(SYS_fstatfs, fd, fs);

	if (page_said != 0) {
		fs->f_type = HUGETLBFS;
		fs->f_bsize = (__typeof__(fs->f_bsize))page_said;
	}
	return (int)err;
}

#define RW (RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ)
#define RO RING_ACCESS_REMOTE_READ
#define LEN 8192
#define NOBODY 65534

static struct fx_proc proc;

static void
end(void)
{
	if (proc.pid > 0)
		fx_proc_end(&proc);
	proc.pid = 0;
	teardown();
}

static bool
root(const char *test)
{
	if (geteuid() != 0)
		printf("%s: skipped, needs root\n", test);
	return geteuid() == 0;
}

static uint8_t *
map_fd(int fd, int prot, int flags)
{
	void *p = mmap(NULL, LEN, prot, flags, fd, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

/* How it is registered, or -errno. */
static int
how(const void *p, uint32_t access)
{
	struct ring_ctrl_reg_mr_rep rep;
	int err = reg_mr(make_pd(), p, LEN, access, &rep);

	if (err == 0)
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, rep.lkey), 0);
	return err < 0 ? err : (int)rep.how;
}

/* ---- rights ---------- */

static char path[64];
static uint8_t *there; /* in the other process */

static void
map_read_only(void *arg)
{
	int fd = open(path, O_RDONLY);

	(void)arg;
	if (mmap(there, LEN, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != there)
		_exit(1);
	if (mprotect(there, LEN, PROT_READ | PROT_WRITE) == 0 || open(path, O_RDWR) >= 0)
		_exit(2); /* it may not, and we must not for it */
	close(fd);
}

/* Whether a mapping of that file is open for writing in this process. */
static bool
writable_here(ino_t inode)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	bool yes = false;
	struct mapmem_vma v;

	while (fgets(line, sizeof(line), f) != NULL)
		yes |= parse_line(line, &v) && v.inode == inode && v.write;
	fclose(f);
	return yes;
}

START_TEST(unprivileged__file_it_may_only_read)
{
	struct ring_ctrl_reg_mr_rep rep;
	struct stat st;
	int fd;

	if (!root("unprivileged__file_it_may_only_read"))
		return;
	snprintf(path, sizeof(path), "/dev/shm/rnic-ro-%d", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, LEN) | fstat(fd, &st), 0);
	there = map_fd(-1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
	fx_close(&cl);
	fx_proc_start(&proc, &cl, NOBODY, map_read_only, NULL);
	fx_proc_do(&proc);
	ck_assert_int_eq(how(there, RW), -EFAULT);
	ck_assert_int_eq(reg_mr(make_pd(), there, LEN, RO, &rep), 0);
	ck_assert_uint_eq(rep.how, RING_MR_MAPPED);
	ck_assert(!writable_here(st.st_ino));
	munmap(there, LEN);
	unlink(path);
	close(fd);
}
END_TEST

START_TEST(protected__not_written)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	uint8_t *p;

	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	mprotect(p, LEN, PROT_READ);
	ck_assert_int_eq(how(p, RW), -EFAULT);
	mprotect(p, LEN, PROT_NONE);
	ck_assert_int_eq(how(p, RO), -EFAULT);
	munmap(p, LEN);
	close(fd);
}
END_TEST

START_TEST(private__copied)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	uint8_t *p;

	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	ck_assert_int_eq(how(p, RW), RING_MR_COPIED);
	ck_assert_int_eq(how(p, RO), RING_MR_COPIED);
	munmap(p, LEN);
	close(fd);
}
END_TEST

/* B073: what cannot be mapped is reached by copiers, and is not refused. */
START_TEST(disk_file__copied)
{
	char name[] = "rnic-mapmem-XXXXXX";
	int fd = mkstemp(name);
	struct statfs fs;
	uint8_t *p;

	ck_assert_int_ge(fd, 0);
	unlink(name);
	ck_assert_int_eq(ftruncate(fd, LEN) | fstatfs(fd, &fs), 0);
	if (fs.f_type == TMPFS) {
		printf("disk_file__copied: skipped, the directory is a tmpfs\n");
	} else {
		p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
		ck_assert_int_eq(how(p, RW), RING_MR_COPIED);
		munmap(p, LEN);
	}
	close(fd);
}
END_TEST

/* Its maker lets nobody map it writable any more; the one mapping that it kept is copied to. */
START_TEST(sealed)
{
	int fd = memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t *p;

	if (!root("sealed"))
		return;
	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK), 0);
	ck_assert_int_eq(how(p, RW), RING_MR_COPIED);
	ck_assert_int_eq(how(p, RO), RING_MR_MAPPED);
	munmap(p, LEN);
	close(fd);
}
END_TEST

/* B069 */
START_TEST(huge_pages)
{
	int fd = memfd_create("t", MFD_CLOEXEC | MFD_HUGETLB);
	struct ring_ctrl_reg_mr_rep rep;
	uint8_t *p = MAP_FAILED;
	const size_t size = 2 << 20;

	if (fd >= 0 && ftruncate(fd, size) == 0)
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || !root("huge_pages")) {
		printf("huge_pages: skipped, there are none\n");
	} else {
		/* Not from the page's beginning, and not to its end. */
		ck_assert_int_eq(reg_mr(make_pd(), p + 4096, LEN, RW, &rep), 0);
		ck_assert_uint_eq(rep.how, RING_MR_MAPPED);
		ck_assert_uint_eq(atomic_load(&LIST_FIRST(&fx_dev->users)->mapped), size);
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, rep.lkey), 0);
		munmap(p, size);
	}
	if (fd >= 0)
		close(fd);
}
END_TEST

/* No zero pages could take the place of a gigabyte one when it is truncated. */
START_TEST(gigabyte_pages__copied)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	uint8_t *p;

	if (!root("gigabyte_pages"))
		return;
	ck_assert_int_eq(ftruncate(fd, 2 << 20), 0);
	p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	page_said = 2 << 20;
	ck_assert_int_eq(how(p, RW), RING_MR_MAPPED);
	page_said = 1 << 30;
	ck_assert_int_eq(how(p, RW), RING_MR_COPIED);
	page_said = 0;
	munmap(p, LEN);
	close(fd);
}
END_TEST

/* ---- between the check and the open ---------- */

/* A look at `p` that stands where its path is held and nothing is verified yet. */
static struct mapmem_look *
look_to_path(const struct mapmem_req *r, bool lines)
{
	struct mapmem_look *l = mapmem_look_new(r);

	ck_assert_int_eq(mapmem_look_step(l), 1);
	l->query &= !lines;
	while (l->phase == LOOK_READ)
		ck_assert_int_eq(mapmem_look_step(l), 1);
	ck_assert_int_eq(l->phase, LOOK_VERIFY);
	ck_assert_uint_eq(l->num, 1);
	ck_assert_int_ge(l->found[0].path, 0);
	return l;
}

/* Go on: whether the file can be opened for writing then. */
static bool
look_opens(struct mapmem_look *l)
{
	int got, fd;

	while ((got = mapmem_look_step(l)) == 1)
		;
	ck_assert_int_eq(got, MAPMEM_LOOK_FOUND);
	fd = mapmem_look_open(&l->found[0], true);
	if (fd >= 0)
		close(fd);
	ck_assert_int_eq(mapmem_look_step(l), 0);
	mapmem_look_free(l);
	return fd >= 0;
}

static void
remapped(bool lines)
{
	int rw = memfd_create("t", MFD_CLOEXEC), other = memfd_create("u", MFD_CLOEXEC), ro;
	struct mapmem_req r = {.pid = getpid(), .pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0),
		.uid = geteuid(), .write = true, .len = LEN};
	struct mapmem_look *l;
	char name[64];
	uint8_t *p;

	ck_assert_int_eq(ftruncate(rw, LEN) | ftruncate(other, LEN), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", rw);
	ro = open(name, O_RDONLY | O_CLOEXEC);
	p = map_fd(rw, PROT_READ | PROT_WRITE, MAP_SHARED);
	r.addr = (uintptr_t)p;
	ck_assert(look_opens(look_to_path(&r, lines)));
	/* The same file, now only readable: the line read before does not say so. */
	l = look_to_path(&r, lines);
	ck_assert_ptr_eq(mmap(p, LEN, PROT_READ, MAP_SHARED | MAP_FIXED, ro, 0), p);
	ck_assert(!look_opens(l));
	/* Another file. */
	ck_assert_ptr_eq(mmap(p, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, rw, 0), p);
	l = look_to_path(&r, lines);
	ck_assert_ptr_eq(mmap(p, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, other, 0), p);
	ck_assert(!look_opens(l));
	l = look_to_path(&r, lines);
	munmap(p, LEN);
	ck_assert(!look_opens(l));
	close(r.pidfd);
	close(ro);
	close(rw);
	close(other);
}

START_TEST(remapped_meanwhile__not_opened)
{
	if (!root("remapped_meanwhile__not_opened"))
		return;
	remapped(false);
	remapped(true);
}
END_TEST

static uint8_t *
map_many(uint32_t pages);

/* As many steps, and lines in all, as there are mappings and batches: none is of any length. */
static void
count_steps(const uint8_t *p, uint32_t pages, bool lines, uint32_t below)
{
	struct mapmem_req r = {.pid = getpid(), .pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0),
		.uid = geteuid(), .addr = (uintptr_t)p, .len = pages * 4096};
	struct mapmem_look *l = mapmem_look_new(&r);
	uint32_t steps = 0, found = 0, num;
	int got = mapmem_look_step(l);

	l->query &= !lines;
	while (got > 0) {
		got = mapmem_look_step(l);
		if (got == MAPMEM_LOOK_FOUND) {
			mapmem_look_found(l, &num);
			ck_assert_uint_le(num, BATCH);
			found += num;
		}
		steps++;
	}
	ck_assert_int_eq(got, 0);
	ck_assert_uint_eq(found, pages);
	ck_assert_uint_le(steps, pages / BATCH * (4 + (below + pages) / LINES + 1) +
			(below + pages) / LINES + 5);
	if (lines) /* and it did stop on the way */
		ck_assert_uint_ge(steps, pages / BATCH * (below / LINES));
	mapmem_look_free(l);
	close(r.pidfd);
}

START_TEST(many_mappings__bounded_steps)
{
	const uint32_t pages = 4 * BATCH, below = 8 * LINES;
	uint8_t *low, *p;

	if (!root("many_mappings__bounded_steps"))
		return;
	p = map_many(below + pages); /* in one piece: what is below is below */
	low = p;
	p += (size_t)below * 4096;
	count_steps(p, pages, false, below);
	count_steps(p, pages, true, below);
	munmap(low, (size_t)(below + pages) * 4096);
}
END_TEST

/* ---- quota ---------- */

START_TEST(quota__of_its_own)
{
	struct ring_ctrl_reg_mr_rep rep;
	uint8_t *p = map_fd(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	uint64_t arenas = u->bytes;

	if (!root("quota__of_its_own"))
		return;
	fx_dev->cfg.quota_mr_bytes = LEN + 4096;
	ck_assert_int_eq(reg_mr(make_pd(), p, LEN, RW, &rep), 0);
	ck_assert_uint_eq(atomic_load(&u->mapped), LEN);
	ck_assert_uint_eq(u->bytes, arenas);
	ck_assert_int_eq(how(p, RW), -EDQUOT);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, rep.lkey), 0);
	ck_assert_uint_eq(atomic_load(&u->mapped), 0);
	ck_assert_int_eq(how(p, RW), RING_MR_MAPPED);
	munmap(p, LEN);
}
END_TEST

/* Pages of two files in turn, which no kernel merges: each costs a mapping here. */
static uint8_t *
map_many(uint32_t pages)
{
	const size_t size = pages * 4096;
	uint8_t *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = memfd_create("t", MFD_CLOEXEC);
		ck_assert_int_eq(ftruncate(fd[i], (off_t)size), 0);
	}
	for (uint32_t i = 0; i < pages; i++) {
		uint8_t *at = p + (size_t)i * 4096;

		ck_assert_ptr_eq(mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			fd[i % 2], (off_t)i * 4096), at);
	}
	close(fd[0]);
	close(fd[1]);
	return p;
}

static void
over_the_limit(const uint8_t *p, struct mapmem_share *s)
{
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	struct ring_ctrl_reg_mr_rep rep;
	uint32_t limit = s->limit;

	s->limit = 5;
	ck_assert_int_eq(reg_mr(make_pd(), p, 8 * 4096, RW, &rep), 0);
	ck_assert_uint_eq(rep.how, RING_MR_COPIED); /* the last three */
	ck_assert_uint_eq(atomic_load(&u->maps.used), 5);
	ck_assert_uint_eq(atomic_load(&fx_dev->maps.used), 5);
	ck_assert_int_eq(how(p, RW), RING_MR_COPIED);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, rep.lkey), 0);
	ck_assert_uint_eq(atomic_load(&u->maps.used), 0);
	ck_assert_uint_eq(atomic_load(&fx_dev->maps.used), 0);
	ck_assert_int_eq(how(p, RW), RING_MR_MAPPED);
	s->limit = limit;
}

START_TEST(many_mappings__the_rest_by_copiers)
{
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	uint8_t *p;

	if (!root("many_mappings__the_rest_by_copiers"))
		return;
	ck_assert_uint_gt(u->maps.limit, 0);
	ck_assert_uint_le(u->maps.limit, fx_dev->maps.limit / 4);
	p = map_many(8);
	over_the_limit(p, &u->maps);
	over_the_limit(p, &fx_dev->maps);
	munmap(p, 8 * 4096);
}
END_TEST

START_TEST(remap__refused)
{
	struct ring_ctrl_reg_mr_req req = {.addr = 4096, .length = 4096, .pd = make_pd(),
		.access = RW, .flags = RING_MR_REMAP};

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REG_MR, &req, NULL), -EOPNOTSUPP);
}
END_TEST

/* ---- truncated under us ---------- */

static uint32_t
write_once(struct pair *p, uint32_t index, uint8_t *from, uint32_t lkey, uint8_t *to, uint32_t rkey)
{
	struct ring_wqe w = {.opcode = RING_WR_RDMA_WRITE, .flags = RING_WR_SIGNALED,
		.num_slots = 1, .num_sge = 1, .rkey = rkey, .remote_addr = (uintptr_t)to};

	w.sge[0] = (struct ring_sge){.addr = (uintptr_t)from, .length = 64, .lkey = lkey};
	post_send(p, 0, index, &w);
	return wait_cqes(p, index + 1)->qpn_status >> 24;
}

START_TEST(truncated__dead_and_refused)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	struct ring_ctrl_reg_mr_rep local, mr;
	uint8_t *p, *from;
	struct pair pair;

	if (!root("truncated__dead_and_refused"))
		return;
	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	make_pair(&pair);
	connect_pair(&pair);
	from = make_mem(64);
	ck_assert_int_eq(reg_mr(pair.pd, from, 64, RW, &local), 0);
	ck_assert_int_eq(reg_mr(pair.pd, p, LEN, RW, &mr), 0);
	ck_assert_uint_eq(mr.how, RING_MR_MAPPED);
	ck_assert_uint_eq(write_once(&pair, 0, from, local.lkey, p + 4096, mr.rkey), 0);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	write_once(&pair, 1, from, local.lkey, p + 4096, mr.rkey); /* it lands nowhere */
	fx_step();
	ck_assert_uint_ne(write_once(&pair, 2, from, local.lkey, p, mr.rkey), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, mr.lkey), 0);
	munmap(p, LEN);
	close(fd);
}
END_TEST

/* A region that died is told by its mapping, whatever else is registered, and only it. */
START_TEST(truncated__others_are_well)
{
	int fd[2] = {memfd_create("t", MFD_CLOEXEC), memfd_create("u", MFD_CLOEXEC)};
	struct ring_ctrl_reg_mr_rep local, mr[2];
	struct pair pair;
	uint8_t *p[2], *from;

	if (!root("truncated__others_are_well"))
		return;
	make_pair(&pair);
	connect_pair(&pair);
	from = make_mem(64);
	ck_assert_int_eq(reg_mr(pair.pd, from, 64, RW, &local), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(ftruncate(fd[i], LEN), 0);
		p[i] = map_fd(fd[i], PROT_READ | PROT_WRITE, MAP_SHARED);
		ck_assert_int_eq(reg_mr(pair.pd, p[i], LEN, RW, &mr[i]), 0);
	}
	ck_assert_int_eq(ftruncate(fd[0], 0), 0);
	write_once(&pair, 0, from, local.lkey, p[0], mr[0].rkey);
	fx_step();
	ck_assert(((struct ctl_mr *)ctl_obj_find(TAILQ_FIRST(&fx_dev->clients), CTL_MR,
		mr[0].lkey))->killed);
	ck_assert_uint_eq(write_once(&pair, 1, from, local.lkey, p[1], mr[1].rkey), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, mr[i].lkey), 0);
		munmap(p[i], LEN);
		close(fd[i]);
	}
}
END_TEST

/* ---- guards ---------- */

static void
count_death(void *arg, void *owner)
{
	ck_assert_ptr_eq(owner, arg);
	++*(int *)arg;
}

static const size_t big = 8 << 20;

/* A memfd of which only the first half is left, guarded. */
static int
guard_half(volatile uint8_t **p, void *const *owner, struct mapmem_deaths *deaths)
{
	int fd = memfd_create("t", MFD_CLOEXEC), guard;

	ck_assert_int_eq(ftruncate(fd, (off_t)big), 0);
	*p = mmap(NULL, big, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne((void *)(uintptr_t)*p, MAP_FAILED);
	**p = 0x5a;
	guard = mapmem_guard_add((void *)(uintptr_t)*p, big, 4096, owner, deaths);
	ck_assert_int_ge(guard, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)big / 2), 0);
	close(fd);
	return guard;
}

/* Not the whole is replaced, and however many accesses it takes, it is told once. */
START_TEST(guard__a_step_stands_in)
{
	struct mapmem_deaths deaths = {.wake = -1};
	int died = 0, guard;
	volatile uint8_t *p;
	void *owner = &died;

	guard = guard_half(&p, &owner, &deaths);
	ck_assert_uint_eq(p[big / 8 * 5], 0);
	ck_assert_uint_eq(p[0], 0x5a);
	p[big - 1] = 1;
	ck_assert_uint_eq(p[big - 1], 1);
	ck_assert_uint_eq(p[0], 0x5a);
	mapmem_deaths_take(&deaths, count_death, &died);
	mapmem_deaths_take(&deaths, count_death, &died);
	ck_assert_int_eq(died, 1);
	mapmem_guard_del(guard);
	munmap((void *)(uintptr_t)p, big);
}
END_TEST

/* The lowest free number is taken, so that the handler has few to look at. */
START_TEST(guard__numbers)
{
	struct mapmem_deaths deaths = {.wake = -1};
	void *owner = NULL;
	uint8_t mem[4];
	int g[4];

	for (int i = 0; i < 4; i++)
		g[i] = mapmem_guard_add(&mem[i], 1, 4096, &owner, &deaths);
	ck_assert_int_eq(g[3], g[0] + 3);
	mapmem_guard_del(g[2]);
	mapmem_guard_del(g[1]);
	ck_assert_int_eq(mapmem_guard_add(&mem[1], 1, 4096, &owner, &deaths), g[1]);
	ck_assert_int_eq(mapmem_guard_add(&mem[2], 1, 4096, &owner, &deaths), g[2]);
	for (int i = 0; i < 4; i++)
		mapmem_guard_del(g[i]);
}
END_TEST

/* Its owner goes before the death was seen: nobody is told, and the number is free then. */
START_TEST(guard__deleted_before_it_was_told)
{
	struct mapmem_deaths deaths = {.wake = -1};
	int died = 0, guard, other;
	volatile uint8_t *p;
	void *owner = &died;

	guard = guard_half(&p, &owner, &deaths);
	ck_assert_uint_eq(p[big - 1], 0);
	mapmem_guard_del(guard);
	owner = NULL;
	other = mapmem_guard_add(&other, 1, 4096, &owner, &deaths);
	ck_assert_int_ne(other, guard);
	mapmem_guard_del(other);
	mapmem_deaths_take(&deaths, count_death, &died);
	ck_assert_int_eq(died, 0);
	other = mapmem_guard_add(&other, 1, 4096, &owner, &deaths);
	ck_assert_int_eq(other, guard);
	mapmem_guard_del(other);
	munmap((void *)(uintptr_t)p, big);
}
END_TEST

/*
 * The kernel gives no new private memory (here by a limit; with vm.overcommit_memory=2 at its
 * own): there are zero pages for the access all the same, and again after the next turn.
 */
START_TEST(truncated__no_memory_left)
{
	struct mapmem_deaths deaths = {.wake = -1};
	struct rlimit old, none = {.rlim_cur = 4096};
	void *owner = NULL;

	getrlimit(RLIMIT_DATA, &old);
	none.rlim_max = old.rlim_max;
	for (int i = 0; i < 40; i++) {
		int fd = memfd_create("t", MFD_CLOEXEC), guard;
		volatile uint8_t *p;
		uint8_t was;

		ck_assert_int_eq(ftruncate(fd, LEN), 0);
		p = map_fd(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
		p[100] = 5;
		guard = mapmem_guard_add((void *)(uintptr_t)p, LEN, 4096, &owner, &deaths);
		ck_assert_int_ge(guard, 0);
		ck_assert_int_eq(ftruncate(fd, 0), 0);
		setrlimit(RLIMIT_DATA, &none);
		was = p[100];
		p[4097] = 7;
		setrlimit(RLIMIT_DATA, &old);
		ck_assert_uint_eq(was, 0);
		ck_assert_uint_eq(p[4097], 7);
		ck_assert_uint_ne(atomic_load(&deaths.first), 0);
		mapmem_deaths_take(&deaths, NULL, NULL);
		mapmem_guard_del(guard);
		munmap((void *)(uintptr_t)p, LEN);
		close(fd);
	}
}
END_TEST

/* A fault that is not a client's doing ends the process. */
START_TEST(other_fault__ends_us)
{
	int fd = memfd_create("t", MFD_CLOEXEC), status;
	volatile uint8_t *p = map_fd(fd, PROT_READ, MAP_SHARED);
	pid_t pid = fork();

	if (pid == 0)
		_exit(p[0]);
	waitpid(pid, &status, 0);
	ck_assert(WIFSIGNALED(status));
	/* The address sanitizer's own handler, which ours passes it on to, aborts. */
	ck_assert(WTERMSIG(status) == SIGBUS || WTERMSIG(status) == SIGABRT);
	munmap((void *)(uintptr_t)p, LEN);
	close(fd);
}
END_TEST

FX_MAIN("mapmem", setup, end, unprivileged__file_it_may_only_read, protected__not_written,
	private__copied, disk_file__copied, sealed, huge_pages, gigabyte_pages__copied,
	remapped_meanwhile__not_opened,
	many_mappings__bounded_steps, quota__of_its_own, many_mappings__the_rest_by_copiers,
	remap__refused, truncated__dead_and_refused, truncated__no_memory_left,
	truncated__others_are_well, guard__a_step_stands_in, guard__numbers,
	guard__deleted_before_it_was_told, other_fault__ends_us)
