/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks by the life of a process: death, stop, exec, fork, and the descriptors that it shares. */
#include "hostile_life.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

static struct hx_rig rig;

#define SECRET_ADDR ((void *)0x200000000000)
#define SECRET_SIZE 65536u
#define SECRET_BYTE 0x5e
#define NOBODY 65534

/* Children with sessions and traffic, killed at any moment. */
static void
life_kill(struct hostile *t)
{
	for (int i = 0; i < 6; i++) {
		uint32_t after = hostile_below(t, 60);
		pid_t pid = fork();

		if (pid == 0) {
			if (hostile_rig(t, &rig))
				for (;;)
					hostile_traffic(t, &rig, 8);
			_exit(1);
		}
		poll(NULL, 0, (int)after);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (hostile_rig(t, &rig))
		hostile_traffic(t, &rig, 16);
}

/* Stopped in the middle; its peer in another process must learn of it by itself. */
static void
life_stop(struct hostile *t)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (hostile_rig(t, &rig))
			for (;;)
				hostile_traffic(t, &rig, 8);
		_exit(1);
	}
	poll(NULL, 0, 50 + (int)hostile_below(t, 100));
	kill(pid, SIGSTOP);
	if (hostile_rig(t, &rig)) {
		hostile_traffic(t, &rig, 32);
		hostile_alive(t, &rig.h);
	}
	if (hostile_below(t, 2)) {
		kill(pid, SIGCONT);
		poll(NULL, 0, 20);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Make a CQ with a channel; its pipe is in rig.h.last_fd. */
static bool
with_channel(struct hostile *t, struct hx_cq *cq, struct hx_qp q[2])
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_create_channel_rep rep;
	bool ok = hostile_rig(t, &rig) &&
		  !hx_call(&rig.h, RING_CTRL_CREATE_CHANNEL, &req, &rep, sizeof(rep)) &&
		  !hx_create_cq(&rig.h, 256, rep.handle, cq);

	for (int i = 0; i < 2 && ok; i++)
		ok = !hx_create_qp(&rig.h, rig.pd, cq->cqn, 64, &q[i]);
	for (int i = 0; i < 2 && ok; i++)
		ok = !hx_connect_qp(&rig.h, &q[i], q[!i].qpn, &rig.av);
	MUST(t, ok, "no channel");
	return ok;
}

/* Completions, each with a notification. */
static void
notify_storm(struct hx_cq *cq, struct hx_qp *q, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct ring_wqe w = hx_write(&rig, 0, 65536, 8);
		struct ring_cqe c;

		atomic_store(&cq->client->armed, (i + 1) << 2 | RING_CQ_ARMED_NEXT);
		hx_post(&rig, q, &w);
		if (i % 8 == 7)
			while (!hx_poll_wait(&rig.h, cq, &c, 2))
				;
	}
}

/* The read end closed: a write to it is a signal that nobody wants. */
static void
life_pipe_closed(struct hostile *t)
{
	struct hx_cq cq;
	struct hx_qp q[2];

	if (!with_channel(t, &cq, q))
		return;
	close(rig.h.last_fd);
	rig.h.last_fd = -1;
	notify_storm(&cq, &q[0], 64);
	hostile_alive(t, &rig.h);
}

/* Every descriptor that the daemon shares: made blocking, full, small, asynchronous. */
static void
life_fds(struct hostile *t)
{
	struct hx_cq cq;
	struct hx_qp q[2];
	uint32_t kicks;
	char path[64];
	int other;

	signal(SIGIO, SIG_IGN);
	if (!with_channel(t, &cq, q))
		return;
	for (uint32_t i = 0; i < rig.h.num_kicks; i++) {
		uint64_t full = UINT64_MAX - 1, old;

		fcntl(rig.h.kick[i], F_SETFL, O_NONBLOCK); /* we are not to be blocked */
		if (read(rig.h.kick[i], &old, sizeof(old)) < 0 && errno != EAGAIN)
			continue;
		if (write(rig.h.kick[i], &full, sizeof(full)) < 0)
			continue;
		fcntl(rig.h.kick[i], F_SETFL, O_ASYNC); /* O_NONBLOCK is off with that */
		fcntl(rig.h.kick[i], F_SETOWN, getpid());
	}
	fcntl(rig.h.last_fd, F_SETFL, O_ASYNC);
	fcntl(rig.h.last_fd, F_SETPIPE_SZ, 4096);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", rig.h.last_fd);
	other = open(path, O_WRONLY | O_NONBLOCK); /* the daemon's end, in a way */
	if (other >= 0) {
		static const char bytes[4096];

		while (write(other, bytes, sizeof(bytes)) > 0)
			;
		fcntl(other, F_SETFL, 0);
	}
	kicks = rig.h.num_kicks;
	rig.h.num_kicks = 0; /* a kick would block us now */
	notify_storm(&cq, &q[0], 400);
	rig.h.num_kicks = kicks;
	for (int i = 0; i < 100; i++) {
		uint32_t k = rig.h.num_kicks ? hostile_below(t, rig.h.num_kicks) : 0;
		uint64_t v = 1;

		if (!rig.h.num_kicks)
			break;
		fcntl(rig.h.kick[k], F_SETFL, O_NONBLOCK);
		if ((i & 1 ? write(rig.h.kick[k], &v, 8) : read(rig.h.kick[k], &v, 8)) < 0)
			continue;
	}
	notify_storm(&cq, &q[1], 50);
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, q[0].qpn) == 0, "DESTROY_QP");
	hostile_alive(t, &rig.h);
}

/* Children that go on scribbling over what the parent, now dead, shared with them. */
static void
life_fork(struct hostile *t)
{
	if (!hostile_rig(t, &rig))
		return;
	for (int i = 0; i < 3; i++) {
		if (fork())
			continue;
		t->rng += (uint64_t)i;
		for (uint64_t end = hx_now_ms() + 500; hx_now_ms() < end;) {
			struct hx_arena *a = &rig.h.arena[hostile_below(t, 8)];
			uint64_t v = hostile_value(t);

			if (a->base && a->kind == RING_ARENA_C)
				memcpy(a->base + hostile_rand(t) % (a->size / 8) * 8, &v, 8);
			hx_ring(&rig.h, &rig.qp[i & 1]);
			hostile_traffic(t, &rig, 2);
		}
		_exit(0);
	}
	hostile_traffic(t, &rig, 16);
	if (hostile_below(t, 2))
		_exit(t->faults != 0); /* they keep the socket open */
	while (waitpid(-1, NULL, 0) > 0)
		;
	hostile_alive(t, &rig.h);
}

/* The session handed to another process; its maker dies, its memory with it. */
static void
life_orphan(struct hostile *t)
{
	uint8_t *p = mmap(NULL, SECRET_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	int ready[2];
	pid_t maker;
	char byte;

	if (p == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, ready))
		return;
	memset(p, 0x21, SECRET_SIZE);
	maker = fork();
	if (maker == 0) {
		uint32_t key = 0;

		if (!hostile_rig(t, &rig) ||
		    hx_reg_mr(&rig.h, rig.pd, p, SECRET_SIZE, 0xf, &key, NULL))
			_exit(1);
		if (fork() == 0) { /* the heir */
			if (read(ready[0], &byte, 1) != 1)
				_exit(1);
			for (int i = 0; i < 16; i++) {
				struct ring_wqe w = hx_write(&rig, 0, 65536, 4096);

				w.sge[0].addr = (uintptr_t)p;
				w.sge[0].lkey = key;
				hx_post(&rig, &rig.qp[i & 1], &w);
			}
			/* the first may come to the daemon with the news of the death */
			hx_reg_mr(&rig.h, rig.pd, p, 4096, 0xf, &key, NULL);
			MUST(t, hx_reg_mr(&rig.h, rig.pd, p, 4096, 0xf, &key, NULL) < 0,
			     "the session outlives its maker");
			if (t->faults && write(ready[0], "f", 1) != 1)
				_exit(1);
			_exit(0);
		}
		_exit(0);
	}
	waitpid(maker, NULL, 0);
	if (write(ready[1], "", 1) == 1) {
		close(ready[0]);
		while (read(ready[1], &byte, 1) > 0) /* until the heir is gone */
			t->faults++;
	}
}

/* Many sessions of one uid, made and dropped together. */
static void
life_swarm(struct hostile *t)
{
	pid_t pid[32];

	for (int i = 0; i < 32; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			t->rng += (uint64_t)i * 977;
			if (hx_rig_open(&rig, t->socket) == 0)
				hostile_traffic(t, &rig, 16);
			raise(i & 1 ? SIGKILL : SIGTERM);
		}
	}
	for (int i = 0; i < 32; i++)
		waitpid(pid[i], NULL, 0);
}

static void *
caller(void *arg)
{
	struct hostile *t = arg;
	struct ring_ctrl_empty_req req = {0};

	for (int i = 0; i < 200; i++)
		if (hx_request(&rig.h, hostile_below(t, 2) ? RING_CTRL_ALLOC_PD
							    : RING_CTRL_CREATE_CHANNEL,
			       1, &req, NULL))
			break;
	return NULL;
}

/* Calls of several threads, their replies and descriptors left lying in the socket. */
static void
life_threads(struct hostile *t)
{
	struct hostile each[4];
	pthread_t thread[4];

	if (!hostile_rig(t, &rig))
		return;
	for (uint32_t i = 0; i < 4; i++) {
		each[i] = *t;
		each[i].rng += i;
		pthread_create(&thread[i], NULL, caller, &each[i]);
	}
	for (int i = 0; i < 8; i++)
		hostile_traffic(t, &rig, 4);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

int
hostile_life_secret(int argc, char **argv)
{
	int in = argc > 3 ? atoi(argv[2]) : -1, out = argc > 3 ? atoi(argv[3]) : -1;
	uint8_t *p = mmap(SECRET_ADDR, SECRET_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	char byte = geteuid() == 0 ? 'r' : 'u';

	if (p == MAP_FAILED)
		return 1;
	memset(p, SECRET_BYTE, SECRET_SIZE);
	if (write(out, &byte, 1) != 1)
		return 1;
	if (read(in, &byte, 1) != 1)
		return 0; /* the thief gave up */
	byte = 'k';
	for (uint32_t i = 0; i < SECRET_SIZE; i++)
		if (p[i] != SECRET_BYTE)
			byte = 'c';
	/* this process answers for the thief, too */
	return write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1 || byte != 'k';
}

/* A copy of this program that runs as root, whoever starts it. Its path. */
static bool
make_setuid(const char *self, char *dir, char *path, size_t size)
{
	int from = open(self, O_RDONLY | O_CLOEXEC), to;
	struct stat st;
	off_t at = 0;
	bool ok;

	if (from < 0 || fstat(from, &st) || !mkdtemp(dir))
		return false;
	snprintf(path, size, "%s/secret", dir);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	while (to >= 0 && at < st.st_size && sendfile(to, from, &at, 1 << 20) > 0)
		;
	ok = to >= 0 && at == st.st_size && !fchmod(to, 04755) && !chmod(dir, 0755);
	close(to);
	close(from);
	return ok;
}

/* With the maker's process now a privileged one: read it, write it. */
static void
rob(struct hostile *t, uint32_t key, int from_secret, int to_secret)
{
	struct pollfd p = {.fd = from_secret, .events = POLLIN};
	char byte = 0;

	if (poll(&p, 1, HX_WAIT_MS) <= 0 || read(from_secret, &byte, 1) != 1 || byte != 'r')
		return; /* no setuid there: no attack */
	memset(rig.mem, 0x77, SECRET_SIZE);
	memset(rig.mem + 65536, 0, SECRET_SIZE);
	for (uint32_t i = 0; i < 8; i++) {
		struct hx_qp *q = &rig.qp[i / 4];
		struct ring_wqe w = hx_write(&rig, 0, 65536 + (i & 3) * 4096, 4096);
		struct ring_cqe c;

		w.sge[0].lkey = key;
		w.sge[0].addr = (uintptr_t)SECRET_ADDR;
		if (i & 1) {
			w = hx_write(&rig, 0, 0, 4096);
			w.rkey = key;
			w.remote_addr = (uintptr_t)SECRET_ADDR + 8192;
		}
		hx_post(&rig, q, &w);
		hx_poll_wait(&rig.h, &rig.cq, &c, 1000);
	}
	for (uint32_t i = 0; i < SECRET_SIZE; i++) {
		if (rig.mem[65536 + i] == SECRET_BYTE) {
			FAULT(t, "the memory of a privileged program was read");
			break;
		}
	}
	if (hx_reg_mr(&rig.h, rig.pd, SECRET_ADDR, 4096, 0xf, &key, NULL) == 0)
		FAULT(t, "the memory of a privileged program can be registered");
	if (write(to_secret, "", 1) != 1 || read(from_secret, &byte, 1) != 1)
		return;
	MUST(t, byte == 'k', "the memory of a privileged program was written");
	if (write(to_secret, t->faults ? "f" : "k", 1) != 1)
		return;
}

/* Private memory registered, then exec of something with more rights (design, 2.3). */
static void
life_exec(struct hostile *t)
{
	char dir[] = "/var/tmp/hostile-XXXXXX", path[64], a[16], b[16];
	int to[2], from[2];
	uint32_t key;
	uint8_t *p;
	pid_t pid;
	int status = 0;

	if (!make_setuid(t->self, dir, path, sizeof(path)) || pipe(to) || pipe(from))
		goto end;
	pid = fork();
	if (pid == 0) {
		if (fcntl(from[0], F_SETFD, FD_CLOEXEC) || fcntl(to[1], F_SETFD, FD_CLOEXEC) ||
		    setgid(NOBODY) || setuid(NOBODY) ||
		    access(t->socket, W_OK) < 0)
			_exit(0); /* the socket is not for nobody: no attack */
		prctl(PR_SET_DUMPABLE, 1); /* as any process that was nobody's from its start */
		p = mmap(SECRET_ADDR, SECRET_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (p == MAP_FAILED || !hostile_rig(t, &rig) ||
		    hx_reg_mr(&rig.h, rig.pd, p, SECRET_SIZE, 0xf, &key, NULL))
			_exit(2);
		/* the thief is the parent of the session's process no more, but its heir */
		if (fork() == 0) {
			rob(t, key, from[0], to[1]);
			_exit(t->faults != 0);
		}
		snprintf(a, sizeof(a), "%d", to[0]);
		snprintf(b, sizeof(b), "%d", from[1]);
		execl(path, "secret", "--keep-secret", a, b, (char *)NULL);
		_exit(3);
	}
	close(from[0]);
	close(to[1]);
	waitpid(pid, &status, 0);
	MUST(t, status == 0, "the session's process ended with %#x", status);
end:
	unlink(path);
	rmdir(dir);
}

const struct hostile_case hostile_life_cases[] = {
	{"life_kill", life_kill, "SIGKILL at any moment", false},
	{"life_stop", life_stop, "SIGSTOP under traffic", false},
	{"life_pipe_closed", life_pipe_closed, "a channel's pipe closed by its reader", false},
	{"life_fds", life_fds, "shared descriptors made blocking, full, small", false},
	{"life_fork", life_fork, "children that scribble after the parent's death", false},
	{"life_orphan", life_orphan, "a session whose maker ends, with an heir", false},
	{"life_swarm", life_swarm, "many sessions of one uid, killed together", false},
	{"life_threads", life_threads, "calls of several threads, no reply read", false},
	{"life_exec", life_exec, "exec of a privileged program under registration", true},
	{NULL, NULL, NULL, false},
};
