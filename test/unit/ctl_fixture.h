/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device on the built-in loop port and clients that speak the raw protocol, all in one thread:
 * fx_step() runs the worker and the control thread once. Only the helper thread is another, so
 * waiting means stepping until something has happened.
 */
#ifndef CTL_FIXTURE_H
#define CTL_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "ctl_priv.h"
#include "pmd_glue.h"
#include "unit.h"
#include "worker.h"

#define FX_WORKERS 2
#define FX_ARENAS 64

static struct rte_mempool *fx_pool;
static struct pmd_port *fx_port;
static struct worker_device *fx_dev;

static inline void
fx_eal(void)
{
	static char argv0[] = "test", a1[] = "--no-pci", a2[] = "--no-huge", a3[] = "-m",
		    a4[] = "256", a5[] = "--no-shconf", a6[] = "--log-level=4", a7[] = "-l",
		    a8[] = "0", a9[] = "--no-telemetry"; /* its socket's place is everyone's */
	static char *argv[] = {argv0, a1, a2, a3, a4, a5, a6, a7, a8, a9, NULL};
	const char *why = NULL;
	struct pmd_port_config cfg = {.ethdev = PMD_PORT_LOOP, .num_queues = FX_WORKERS};

	/* Not in a test yet: no ck_assert. */
	if (rte_eal_init(10, argv) < 0)
		exit(EXIT_FAILURE);
	fx_pool = rte_pktmbuf_pool_create("fx", 8191, 0, 0, 4608, SOCKET_ID_ANY);
	cfg.rx_pool = fx_pool;
	if (fx_pool == NULL || pmd_port_open(&cfg, &fx_port, &why) != 0)
		exit(EXIT_FAILURE);
}

/** As unit_run(), with EAL, and in one process: EAL's threads do not survive a fork. */
static inline int
fx_run(const char *name, const TTest *const *tests, size_t count, void (*setup)(void),
	void (*teardown)(void))
{
	Suite *s = suite_create(name);
	TCase *c = tcase_create(name);
	SRunner *r;
	int failed;

	fx_eal();
	tcase_set_timeout(c, 0);
	tcase_add_checked_fixture(c, setup, teardown);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_set_fork_status(r, CK_NOFORK);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	pmd_port_close(fx_port);
	rte_mempool_free(fx_pool);
	rte_eal_cleanup();
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define FX_MAIN(name, setup, teardown, ...) \
	int main(void) \
	{ \
		const TTest *const tests[] = {__VA_ARGS__}; \
		return fx_run(name, tests, sizeof(tests) / sizeof(tests[0]), setup, teardown); \
	}

static struct worker_config
fx_config(void)
{
	return (struct worker_config){
		.name = "rnic0",
		.num_workers = FX_WORKERS,
		.ports = &fx_port,
		.num_ports = 1,
		.rx_pool = fx_pool,
		.tx_pool = fx_pool,
		.max_qps = 4096,
		.max_mrs = 4096,
		.max_cqs = 4096,
		.shadows = 1024,
		.quota_arena_bytes = 64 << 20,
		.seed = 1,
	};
}

static void
fx_start(const struct worker_config *cfg)
{
	const char *why = "";

	fx_dev = worker_device_create(cfg, &why);
	ck_assert_msg(fx_dev != NULL, "%s", why);
	fx_dev->timewait_ns = 0;
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "192.0.2.1/24", 0), 0);
}

static bool fx_threads; /* workers and control thread run by themselves */

static void
fx_step(void)
{
	if (fx_threads) {
		sched_yield();
		return;
	}
	for (uint32_t i = 0; i < fx_dev->sh.num_workers; i++)
		worker_poll(worker_get(fx_dev, i));
	worker_ctl_poll(fx_dev, 0);
}

/* ---- a client ---------- */

struct fx_client {
	int fd;
	bool dead; /* the daemon has hung up */
	struct {
		uint8_t *map;
		uint64_t size;
		uint32_t kind;
		int fd; /* kept open, with keep_fds */
	} arena[FX_ARENAS];
	uint32_t num_arenas;
	struct ring_ctrl_bells bells;
	uint32_t num_bells, num_events;
	struct ring_ctrl_event event;
	struct ring_ctrl_hello_rep hello;
	int fds[RING_CTRL_MAX_FDS];
	uint32_t num_fds;
	bool keep_fds, no_ack;
	uint32_t next_id;
	_Alignas(8) uint8_t buf[RING_CTRL_MAX_LEN];
};

static void
fx_connect(struct fx_client *c)
{
	int sv[2];

	memset(c, 0, offsetof(struct fx_client, buf));
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	c->fd = sv[0];
	ck_assert_int_eq(worker_ctl_attach(fx_dev, sv[1]), 0);
}

static void
fx_close(struct fx_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	for (uint32_t i = 0; i < c->num_arenas; i++) {
		if (c->arena[i].map != NULL)
			munmap(c->arena[i].map, c->arena[i].size);
		if (c->arena[i].fd >= 0)
			close(c->arena[i].fd);
	}
	for (uint32_t i = 0; i < c->num_fds; i++)
		close(c->fds[i]);
	c->num_arenas = c->num_fds = 0;
}

static int
fx_send(struct fx_client *c, unsigned int op, uint32_t id, const void *body, unsigned int count)
{
	struct {
		struct ring_ctrl_hdr h;
		uint8_t body[8192];
	} msg;
	size_t len = ring_ctrl_size(op, count, true);

	ck_assert_uint_le(len, sizeof(msg));
	ring_ctrl_hdr_init(&msg.h, op, 0, id, count);
	memcpy(msg.body, body, len - sizeof(msg.h));
	return ring_ctrl_send(c->fd, &msg, len, NULL);
}

static void
fx_map_arena(struct fx_client *c, const struct ring_ctrl_arena *a, int fd)
{
	struct ring_ctrl_arena_mapped ack = {.arena = a->arena};
	int prot = a->kind == RING_ARENA_C ? PROT_READ | PROT_WRITE : PROT_READ;
	void *p = mmap(NULL, a->size, prot, MAP_SHARED, fd, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_uint_eq(a->arena, c->num_arenas);
	ck_assert_uint_lt(a->arena, FX_ARENAS);
	c->arena[a->arena].map = p;
	c->arena[a->arena].size = a->size;
	c->arena[a->arena].kind = a->kind;
	c->arena[a->arena].fd = c->keep_fds ? fd : -1;
	c->num_arenas++;
	ack.addr = (uintptr_t)p;
	if (!c->keep_fds)
		close(fd);
	if (!c->no_ack)
		fx_send(c, RING_CTRL_ARENA_MAPPED, 0, &ack, 1);
}

static void
fx_push(struct fx_client *c, const struct ring_ctrl_hdr *h, int *fds)
{
	if (h->op == RING_CTRL_ARENA) {
		fx_map_arena(c, ring_ctrl_body(c->buf), fds[0]);
	} else if (h->op == RING_CTRL_BELLS) {
		memcpy(&c->bells, ring_ctrl_body(c->buf), sizeof(c->bells));
		c->num_bells++;
	} else if (h->op == RING_CTRL_EVENT) {
		memcpy(&c->event, ring_ctrl_body(c->buf), sizeof(c->event));
		c->num_events++;
	}
}

/** One message if there is one; pushes are served. @return whether it is a reply, in c->buf. */
static bool
fx_recv(struct fx_client *c)
{
	const struct ring_ctrl_hdr *h = (const struct ring_ctrl_hdr *)c->buf;
	int fds[RING_CTRL_MAX_FDS];
	ptrdiff_t n;

	if (c->dead)
		return false;
	n = ring_ctrl_recv(c->fd, c->buf, sizeof(c->buf), fds, RING_CTRL_MAX_FDS);
	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		c->dead = true;
		return false;
	}
	ck_assert_int_eq(ring_ctrl_check(c->buf, (size_t)n, false), 0);
	if (h->flags == RING_CTRL_PUSH) {
		fx_push(c, h, fds);
		return false;
	}
	for (unsigned int i = 0; i < h->num_fds; i++)
		c->fds[c->num_fds++] = fds[i];
	return true;
}

/** Step until the reply to `id` is in c->buf. False: the daemon hung up. */
static bool
fx_wait(struct fx_client *c, uint32_t id)
{
	while (!c->dead) {
		fx_step();
		if (fx_recv(c) && ((struct ring_ctrl_hdr *)c->buf)->id == id)
			return true;
	}
	return false;
}

/** A request of one element and its reply; the reply's status, or -ECONNRESET. */
static int
fx_call(struct fx_client *c, unsigned int op, const void *req, void *rep)
{
	uint32_t id = ++c->next_id;
	const struct ring_ctrl_hdr *h = (const struct ring_ctrl_hdr *)c->buf;

	fx_send(c, op, id, req, 1);
	if (!fx_wait(c, id))
		return -ECONNRESET;
	if (h->status < 0)
		return h->status;
	if (rep != NULL)
		memcpy(rep, ring_ctrl_body(c->buf), ring_ctrl_info(op)->reply_size);
	return *(int32_t *)ring_ctrl_body(c->buf);
}

static int
fx_hello(struct fx_client *c)
{
	struct ring_ctrl_hello_req req = {.pid = getpid()};

	return fx_call(c, RING_CTRL_HELLO, &req, &c->hello);
}

static void *
fx_ptr(struct fx_client *c, ring_loc_t loc)
{
	ck_assert_uint_lt(RING_LOC_ARENA(loc), c->num_arenas);
	ck_assert_uint_lt(RING_LOC_OFFSET(loc), c->arena[RING_LOC_ARENA(loc)].size);
	return c->arena[RING_LOC_ARENA(loc)].map + RING_LOC_OFFSET(loc);
}

static inline int
fx_handle(struct fx_client *c, unsigned int op, uint32_t handle)
{
	struct ring_ctrl_handle_req req = {.handle = handle};

	return fx_call(c, op, &req, NULL);
}

/* ---- clients that are other processes ---------- */

static inline int
fx_send_fd(int via, int fd)
{
	char b = 0, control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&b, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(int));
	return sendmsg(via, &m, 0) == 1 ? 0 : -errno;
}

static inline int
fx_recv_fd(int via)
{
	char b, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {&b, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control)};
	int fd = -1;

	if (recvmsg(via, &m, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&m) != NULL)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

#define FX_GROUPS 1000
static uint32_t fx_groups = 1; /* of a process with another uid */

/** A process that only is: its memory is what ours was when it was made. */
struct fx_proc {
	pid_t pid;
	int go;	  /* write a byte: it runs `then` */
	int said; /* read a byte: it has */
};

static inline int
fx_listen_connect(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(sa.sun_path, path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		_exit(2);
	return fd;
}

static inline void
fx_proc_main(uid_t uid, const char *path, int via, int go, int said, void (*then)(void *),
	void *arg)
{
	static gid_t group[FX_GROUPS];
	char b = 0;
	int fd;

	for (uint32_t i = 0; i < fx_groups; i++)
		group[i] = i == 0 ? uid : 4000000000u + i;
	if (uid != geteuid() && (setgroups(fx_groups, group) < 0 || setresgid(uid, uid, uid) < 0 ||
				setresuid(uid, uid, uid) < 0))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1); /* as after an exec */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = fx_listen_connect(path);
	if (fx_send_fd(via, fd) < 0)
		_exit(3);
	close(fd);
	while (read(go, &b, 1) == 1) {
		then(arg);
		(void)!write(said, &b, 1);
	}
	_exit(0);
}

/**
 * Fork a process of that uid that connects; the connection is ours to speak on. Each fx_proc_do()
 * runs `then` in it.
 */
static inline void
fx_proc_start(struct fx_proc *p, struct fx_client *c, uid_t uid, void (*then)(void *), void *arg)
{
	static int number;
	char path[64];
	int go[2], said[2], via[2];

	snprintf(path, sizeof(path), "/tmp/fx-%d-%d.sock", (int)getpid(), number++);
	ck_assert_int_eq(worker_ctl_listen(fx_dev, path), 0);
	ck_assert_int_eq(pipe2(go, O_CLOEXEC) | pipe2(said, O_CLOEXEC), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, via), 0);
	p->pid = fork();
	ck_assert_int_ge(p->pid, 0);
	if (p->pid == 0) {
		close(go[1]);
		close(said[0]);
		fx_proc_main(uid, path, via[1], go[0], said[1], then, arg);
	}
	close(go[0]);
	close(said[1]);
	close(via[1]);
	p->go = go[1];
	p->said = said[0];
	memset(c, 0, offsetof(struct fx_client, buf));
	c->fd = fx_recv_fd(via[0]);
	ck_assert_int_ge(c->fd, 0);
	close(via[0]);
	unlink(path);
	ck_assert_int_eq(fx_hello(c), 0);
}

static inline void
fx_proc_do(struct fx_proc *p)
{
	char b = 0;

	ck_assert_int_eq(write(p->go, &b, 1), 1);
	ck_assert_int_eq(read(p->said, &b, 1), 1);
}

static inline void
fx_proc_end(struct fx_proc *p)
{
	close(p->go);
	close(p->said);
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
}

/** Step until nothing is left of clients that are gone. */
static void
fx_settle(uint32_t clients)
{
	while (fx_dev->num_clients != clients || !STAILQ_EMPTY(&fx_dev->graces) ||
		fx_dev->num_timewait != 0 || fx_dev->resolutions.count != 0 ||
		fx_dev->xrcs.count != (clients != 0 ? fx_dev->xrcs.count : 0))
		fx_step();
}

/** Memberships are told at times of their own: such a packet may be on its way. */
static inline void
fx_expect_no_packet(void)
{
	for (int i = 0; i < 1000 && rte_mempool_in_use_count(fx_pool) != 0; i++)
		fx_step();
	ck_assert_uint_eq(rte_mempool_in_use_count(fx_pool), 0);
}

#endif /* CTL_FIXTURE_H */
