/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that only copiers reach: with which rights, and what a client can do about it. The QPs
 * are of `cl`, which here is the connection of another process; its memory is checked there.
 */
#include <dirent.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "copier.h"
#include "ctl_objects.h"
#include "fuse_stall.h"

#define RW (RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ | \
	RING_ACCESS_REMOTE_ATOMIC)
#define LEN 8192
#define NOBODY 65534

static struct fx_proc proc;
static uint8_t *mem; /* private, at the same address in both */
static struct shared {
	int result;
	uint8_t seen[LEN];
	pid_t tids[64];
	uint32_t num_tids;
} *sh;

/* Every test makes `cl` itself. */
static void
start(void)
{
	struct worker_config cfg = fx_config();

	fx_start(&cfg);
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(mem != MAP_FAILED && sh != MAP_FAILED);
	memset(mem, 0, LEN);
	cl.fd = -1;
}

static void
end(void)
{
	if (proc.pid > 0)
		fx_proc_end(&proc);
	proc.pid = 0;
	fx_close(&cl);
	expect_clean();
	worker_device_destroy(fx_dev);
	munmap(mem, LEN);
	munmap(sh, sizeof(*sh));
}

static bool
root(const char *test)
{
	if (geteuid() != 0)
		printf("%s: skipped, needs root\n", test);
	return geteuid() == 0;
}

static void
look(void *arg)
{
	(void)arg;
	memcpy(sh->seen, mem, LEN);
}

/* WRITE `len` bytes of an arena to memory of the other process. */
static void
write_to(struct pair *p, uint32_t index, uint8_t *to, uint32_t len, uint32_t rkey)
{
	struct ring_wqe w = {.opcode = RING_WR_RDMA_WRITE, .flags = RING_WR_SIGNALED,
		.num_slots = 1, .num_sge = 1};
	uint8_t *from = make_mem(len);
	struct ring_ctrl_reg_mr_rep mr;

	for (uint32_t i = 0; i < len; i++)
		from[i] = (uint8_t)(i * 7 + 1);
	ck_assert_int_eq(reg_mr(p->pd, from, len, RW, &mr), 0);
	w.rkey = rkey;
	w.remote_addr = (uintptr_t)to;
	w.sge[0] = (struct ring_sge){.addr = (uintptr_t)from, .length = len, .lkey = mr.lkey};
	post_send(p, 0, index, &w);
}

static uint32_t
written(struct pair *p, uint32_t index, uint8_t *to, uint32_t len, uint32_t rkey)
{
	write_to(p, index, to, len, rkey);
	return wait_cqes(p, index + 1)->qpn_status >> 24;
}

static void
expect_written(uid_t uid)
{
	struct ring_ctrl_reg_mr_rep mr;
	struct pair p;

	fx_proc_start(&proc, &cl, uid, look, NULL);
	make_pair(&p);
	connect_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, mem, LEN, RW, &mr), 0);
	ck_assert_uint_eq(mr.how, RING_MR_COPIED);
	ck_assert_uint_eq(written(&p, 0, mem + 100, 3000, mr.rkey), 0);
	fx_proc_do(&proc);
	for (uint32_t i = 0; i < 3000; i++)
		ck_assert_uint_eq(sh->seen[100 + i], (uint8_t)(i * 7 + 1));
	ck_assert_uint_eq(mem[100], 0); /* ours is another memory */
}

START_TEST(same_uid)
{
	expect_written(geteuid());
}
END_TEST

START_TEST(other_uid)
{
	if (root("other_uid"))
		expect_written(NOBODY);
}
END_TEST

/* Its status says so in 11 KB, and its capabilities behind that. */
START_TEST(many_groups)
{
	if (!root("many_groups"))
		return;
	fx_groups = FX_GROUPS;
	expect_written(NOBODY);
	fx_groups = 1;
}
END_TEST

static void
protect(void *arg)
{
	(void)arg;
	sh->result = mprotect(mem, LEN, PROT_READ);
}

/*
 * Taken write permission from after its registration: as a NIC's writes into pinned pages do, the
 * copiers' pass what holds for the process's own instructions. A kernel may have been told to
 * refuse that (proc_mem.force_override). Its own private copy is all that can change.
 */
START_TEST(protected_later__written_or_refused)
{
	struct ring_ctrl_reg_mr_rep mr;
	uint32_t status;
	struct pair p;
	int fd = memfd_create("t", MFD_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	ck_assert_ptr_eq(mmap(mem, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0),
		mem);
	fx_proc_start(&proc, &cl, geteuid(), protect, NULL);
	make_pair(&p);
	connect_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, mem, LEN, RW, &mr), 0);
	ck_assert_uint_eq(mr.how, RING_MR_COPIED);
	fx_proc_do(&proc);
	ck_assert_int_eq(sh->result, 0);
	status = written(&p, 0, mem, 64, mr.rkey);
	ck_assert_int_eq(pread(fd, sh->seen, 64, 0), 64);
	for (int i = 0; i < 64; i++)
		ck_assert_uint_eq(sh->seen[i], 0); /* the file below is as it was */
	if (status != 0)
		printf("protected_later: this kernel refuses it\n");
	close(fd);
}
END_TEST

/* A mapping without the right is not registered for it in the first place. */
START_TEST(protected_before__refused)
{
	struct ring_ctrl_reg_mr_rep mr;

	mprotect(mem, LEN, PROT_READ);
	fx_connect(&cl);
	ck_assert_int_eq(fx_hello(&cl), 0);
	ck_assert_int_eq(reg_mr(make_pd(), mem, LEN, RW, &mr), -EFAULT);
	mprotect(mem, LEN, PROT_READ | PROT_WRITE);
}
END_TEST

/* ---- no hold on the daemon ---------- */

static void
try_signals(void *arg)
{
	pid_t daemon = getppid();

	(void)arg;
	sh->result = 0;
	for (uint32_t i = 0; i < sh->num_tids; i++) {
		struct rlimit64_ {
			uint64_t cur, max;
		} lim;

		if (syscall(SYS_tgkill, daemon, sh->tids[i], 0) == 0 || kill(sh->tids[i], 0) == 0)
			sh->result |= 1;
		if (syscall(SYS_prlimit64, sh->tids[i], 7, NULL, &lim) == 0)
			sh->result |= 2;
	}
}

/* Threads of ours, the lane's among them, are not the client's to kill or to limit. */
START_TEST(other_uid__no_hold_on_lane)
{
	struct ring_ctrl_reg_mr_rep mr;
	struct dirent *e;
	DIR *d;

	if (!root("other_uid__no_hold_on_lane"))
		return;
	fx_proc_start(&proc, &cl, NOBODY, try_signals, NULL);
	ck_assert_int_eq(reg_mr(make_pd(), mem, LEN, RW, &mr), 0);
	d = opendir("/proc/self/task");
	while ((e = readdir(d)) != NULL && sh->num_tids < 64) {
		if (atoi(e->d_name) > 0)
			sh->tids[sh->num_tids++] = atoi(e->d_name);
	}
	closedir(d);
	ck_assert_uint_ge(sh->num_tids, 3); /* ours, the helper's, the lane's */
	fx_proc_do(&proc);
	ck_assert_int_eq(sh->result, 0);
}
END_TEST

/* ---- what is out of reach ---------- */

static void
undump(void *arg)
{
	(void)arg;
	prctl(PR_SET_DUMPABLE, 0);
}

/* As a program that has more rights than who runs it. */
START_TEST(not_dumpable__refused)
{
	struct ring_ctrl_reg_mr_rep mr;

	if (!root("not_dumpable__refused"))
		return;
	fx_proc_start(&proc, &cl, NOBODY, undump, NULL);
	fx_proc_do(&proc);
	ck_assert_int_lt(reg_mr(make_pd(), mem, LEN, RW, &mr), 0);
}
END_TEST

static void
exec_sleep(void *arg)
{
	char b = 0;

	(void)!write(*(int *)arg, &b, 1);
	execl("/bin/sleep", "sleep", "1000", NULL);
	_exit(9);
}

/* What a process executes is not the memory that was registered. */
START_TEST(exec__out_of_reach)
{
	struct ring_ctrl_reg_mr_rep mr;
	struct pair p;
	char b;
	int fd[2];

	ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0); /* closed by the exec */
	fx_proc_start(&proc, &cl, geteuid(), exec_sleep, &fd[1]);
	close(fd[1]);
	make_pair(&p);
	connect_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, mem, LEN, RW, &mr), 0);
	ck_assert_int_eq(write(proc.go, &b, 1), 1);
	while (read(fd[0], &b, 1) == 1)
		;
	close(fd[0]);
	ck_assert_uint_ne(written(&p, 0, mem, 64, mr.rkey), 0);
}
END_TEST

static void
nothing(void *arg)
{
	(void)arg;
}

/* A pid namespace that the daemon cannot see into: there is no name to reach it by. */
START_TEST(no_pid__refused)
{
	struct ring_ctrl_reg_mr_rep mr;
	struct ctl_client *c;

	fx_proc_start(&proc, &cl, geteuid(), nothing, NULL);
	c = TAILQ_FIRST(&fx_dev->clients);
	c->pid = 0; /* what SO_PEERCRED gives then */
	ck_assert_int_eq(reg_mr(make_pd(), mem, LEN, RW, &mr), -EOPNOTSUPP);
	ck_assert_int_eq(reg_mr(make_pd(), make_mem(64), 64, RW, &mr), 0);
}
END_TEST

/* ---- a call that hangs ---------- */

static struct fuse_stall stall;

static void
map_stalling(void *arg)
{
	int fd = open(stall.file, O_RDWR);

	(void)arg;
	sh->result = mmap(mem, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == mem;
	close(fd);
}

/* Nobody serves the page: the context is cut off when the limit is over, and nobody waits. */
static void
hang(uint8_t opcode)
{
	struct ring_wqe w = {.opcode = opcode, .flags = RING_WR_SIGNALED, .num_slots = 1,
		.num_sge = 1};
	struct ring_ctrl_query_port_req req = {.port = 1};
	struct ring_ctrl_query_port_rep rep;
	struct ring_ctrl_reg_mr_rep mr, local;
	static struct fx_client other;
	struct ctl_user *u;
	struct pair p;
	uint8_t *from;
	uint32_t fds;

	if (!fuse_stall_start(&stall)) {
		printf("hanging call: skipped, FUSE cannot be mounted here\n");
		return;
	}
	fx_proc_start(&proc, &cl, geteuid(), map_stalling, NULL);
	fx_proc_do(&proc);
	ck_assert_int_eq(sh->result, 1);
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	make_pair(&p);
	connect_pair(&p);
	from = make_mem(64);
	ck_assert_int_eq(reg_mr(p.pd, from, 64, RW, &local), 0);
	ck_assert_int_eq(reg_mr(p.pd, mem, LEN, RW, &mr), 0);
	ck_assert_uint_eq(mr.how, RING_MR_COPIED);
	w.rkey = mr.rkey;
	w.remote_addr = (uintptr_t)mem;
	w.sge[0] = (struct ring_sge){.addr = (uintptr_t)from, .length = 64, .lkey = local.lkey};
	post_send(&p, 0, 0, &w);
	while (!atomic_load(&stall.reading))
		fx_step();
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_PORT, &req, &rep), 0); /* not yet */
	fx_dev->lane_limit_ns = 0;
	fx_dev->lanes_due = 0;
	while (!cl.dead) {
		fx_step();
		fx_recv(&cl);
	}
	ck_assert_uint_eq(fx_dev->cut_off, 1);
	fx_settle(1); /* while the call still hangs */
	ck_assert_int_eq(fx_call(&other, RING_CTRL_QUERY_PORT, &req, &rep), 0);
	fx_expect_no_packet();
	ck_assert_uint_eq(mr_table_count(fx_dev->sh.mrs), 0);
	u = TAILQ_FIRST(&fx_dev->clients)->user;
	fds = u->fds;
	ck_assert_uint_eq(u->abandoned, 1);
	fuse_stall_end(&stall); /* the call returns, and its thread ends */
	while (u->abandoned != 0) {
		fx_dev->lanes_due = 0;
		fx_step();
	}
	ck_assert_uint_eq(u->fds, fds - COPIER_LANE_FDS);
	fx_close(&other);
}

/* Who has left so many behind gets no more of them; what needs none is as ever. */
START_TEST(too_many_hang__no_lane)
{
	void *private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	struct ring_ctrl_reg_mr_rep mr;
	struct ctl_user *u;
	uint32_t pd;

	fx_connect(&cl);
	ck_assert_int_eq(fx_hello(&cl), 0);
	pd = make_pd();
	u = TAILQ_FIRST(&fx_dev->clients)->user;
	u->abandoned = CTL_ABANDONED_UID;
	ck_assert_int_eq(reg_mr(pd, private, 4096, RW, &mr), -EAGAIN);
	ck_assert_ptr_null(TAILQ_FIRST(&fx_dev->clients)->lane);
	ck_assert_int_eq(reg_mr(pd, make_mem(64), 64, RW, &mr), 0);
	u->abandoned = CTL_ABANDONED_UID - 1;
	ck_assert_int_eq(reg_mr(pd, private, 4096, RW, &mr), 0);
	ck_assert_uint_eq(mr.how, RING_MR_COPIED);
	u->abandoned = CTL_ABANDONED_UID; /* it has its lane */
	ck_assert_int_eq(reg_mr(pd, private, 4096, RW, &mr), 0);
	u->abandoned = 0;
	munmap(private, 4096);
}
END_TEST

/* ---- a lock that is kept ---------- */

static void *
touch(void *arg)
{
	int fd = open("/proc/self/mem", O_RDONLY);
	char b;

	(void)!pread(fd, &b, 1, (off_t)(uintptr_t)arg);
	return NULL;
}

/* The state of this process's thread `n`, from the last: 'S' and 'D' wait for something. */
static char
thread_state(pid_t tid)
{
	char name[64], text[512], *at = NULL;
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)tid);
	fd = open(name, O_RDONLY);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n > 0) {
		text[n] = '\0';
		at = strrchr(text, ')');
	}
	return at != NULL ? at[2] : '?';
}

static pid_t writer_tid;

static void *
map_another(void *arg)
{
	(void)arg;
	while (!*(volatile uint8_t *)&sh->seen[0]) /* set by the other side: somebody reads */
		sched_yield();
	writer_tid = (pid_t)syscall(SYS_gettid);
	__atomic_store_n(&sh->result, 2, __ATOMIC_SEQ_CST);
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return NULL;
}

/*
 * One thread reads a page that does not come and keeps the lock of the address space, a second
 * waits to write it: from then on whoever would read it waits behind the second.
 */
static void
keep_mmap_lock(void *arg)
{
	pthread_t t[2];
	int fd = open(stall.file, O_RDWR);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	(void)arg;
	close(fd);
	pthread_create(&t[1], NULL, map_another, NULL); /* first: it maps a stack */
	pthread_create(&t[0], NULL, touch, page);
	while (__atomic_load_n(&sh->result, __ATOMIC_SEQ_CST) != 2 ||
		(thread_state(writer_tid) != 'D' && thread_state(writer_tid) != 'S'))
		sched_yield();
}

static void *
tell_reading(void *arg)
{
	(void)arg;
	while (!atomic_load(&stall.reading))
		sched_yield();
	*(volatile uint8_t *)&sh->seen[0] = 1;
	return NULL;
}

/* Nobody else waits for it, and a registration that does ends with its client. */
START_TEST(kept_mmap_lock__others_go_on)
{
	static struct fx_client other;
	struct ring_ctrl_reg_mr_req req = {.length = 4096, .access = RW, .iova = 0};
	struct ring_ctrl_reg_mr_rep rep;
	int fd = memfd_create("t", MFD_CLOEXEC);
	uint8_t *shared;
	pthread_t t;

	if (!root("kept_mmap_lock__others_go_on") || !fuse_stall_start(&stall)) {
		printf("kept_mmap_lock__others_go_on: skipped, FUSE cannot be mounted here\n");
		close(fd);
		return;
	}
	ck_assert_int_eq(ftruncate(fd, 4096), 0);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(sh, 0, sizeof(*sh));
	fx_proc_start(&proc, &cl, geteuid(), keep_mmap_lock, NULL);
	req.pd = make_pd();
	pthread_create(&t, NULL, tell_reading, NULL);
	fx_proc_do(&proc);
	pthread_join(t, NULL);
	req.addr = req.iova = (uintptr_t)shared;
	fx_send(&cl, RING_CTRL_REG_MR, 1000, &req, 1); /* its file is looked up under that lock */
	fx_step();
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	req.addr = (uintptr_t)mem;
	req.pd = 0;
	{
		struct ring_ctrl_empty_req none = {0};
		struct ring_ctrl_handle_rep pd;

		ck_assert_int_eq(fx_call(&other, RING_CTRL_ALLOC_PD, &none, &pd), 0);
		req.pd = pd.handle;
	}
	ck_assert_int_eq(fx_call(&other, RING_CTRL_REG_MR, &req, &rep), 0);
	ck_assert_uint_eq(rep.how, RING_MR_COPIED);
	fx_dev->lane_limit_ns = 0;
	while (!cl.dead) {
		fx_step();
		if (fx_recv(&cl)) {
			printf("kept_mmap_lock: no registration waits for it on this kernel\n");
			break;
		}
	}
	if (cl.dead)
		ck_assert_uint_eq(fx_dev->cut_off, 1);
	fuse_stall_end(&stall);
	fx_close(&other);
	munmap(shared, 4096);
	close(fd);
}
END_TEST

/* A page that userfaultfd withholds is refused: this way into memory does not wait for it. */
START_TEST(withheld_page__error)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {
		.range = {(uintptr_t)page, 4096},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct ring_ctrl_reg_mr_rep mr;
	struct pair p;

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &reg) < 0) {
		printf("withheld_page__error: skipped, userfaultfd: %s\n", strerror(errno));
		return;
	}
	fx_connect(&cl);
	ck_assert_int_eq(fx_hello(&cl), 0);
	make_pair(&p);
	connect_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, page, 4096, RW, &mr), 0);
	ck_assert_uint_ne(written(&p, 0, page, 64, mr.rkey), 0);
	close(fd);
	munmap(page, 4096);
}
END_TEST

START_TEST(hanging_write__cut_off)
{
	hang(RING_WR_RDMA_WRITE);
}
END_TEST

START_TEST(hanging_read__cut_off)
{
	hang(RING_WR_RDMA_READ);
}
END_TEST

FX_MAIN("ctl_copier", start, end, same_uid, other_uid, many_groups,
	protected_later__written_or_refused, protected_before__refused,
	other_uid__no_hold_on_lane,
	not_dumpable__refused, exec__out_of_reach, no_pid__refused,
	withheld_page__error, kept_mmap_lock__others_go_on, hanging_write__cut_off,
	hanging_read__cut_off, too_many_hang__no_lane)
