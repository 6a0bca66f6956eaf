/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attacks that make a touch, a read or a close wait for as long as the client likes: pages of
 * userfaultfd and FUSE, descriptors in flight whose last close lingers. The one that waits may be
 * a copier's lane of this process; nobody else.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"
#include "hostile_fuse.h"

static struct hx_rig rig;

#define SIZE (1u << 20)
/* How long one session may be kept from an answer by what another one does. */
#define FAIR_MS 5000

/* A process beside with private memory of its own: its registration and traffic must go on. */
static int
neighbour(struct hostile *t)
{
	static struct hx_rig r;
	uint64_t start;
	uint32_t key;
	uint8_t *p;
	int ret;

	if (!hostile_rig(t, &r))
		return 1;
	p = malloc(SIZE);
	if (!p)
		return 1;
	memset(p, 0x42, SIZE);
	start = hx_now_ms();
	ret = hx_reg_mr(&r.h, r.pd, p, SIZE, 0xf, &key, NULL);
	if (ret) {
		FAULT(t, "a neighbour cannot register private memory: %s", strerror(-ret));
		return 1;
	}
	for (uint32_t i = 0; i < 32; i++) {
		struct ring_wqe w = hx_write(&r, 0, 65536, 4096);
		struct ring_cqe c;

		w.sge[0].addr = (uintptr_t)p + i * 4096;
		w.sge[0].lkey = key;
		hx_post(&r, &r.qp[i & 1], &w);
		ret = hx_poll_wait(&r.h, &r.cq, &c, HX_WAIT_MS);
		if (ret || hx_cqe_status(&c)) {
			FAULT(t, "a neighbour's WRITE %u from private memory: %s, status %u", i,
			      strerror(-ret), ret ? 0 : hx_cqe_status(&c));
			return 1;
		}
		if (memcmp(r.mem + 65536, p, 4096)) {
			FAULT(t, "a neighbour's bytes are not its own");
			return 1;
		}
	}
	MUST(t, hx_now_ms() - start < FAIR_MS, "a neighbour waited %llu ms",
	     (unsigned long long)(hx_now_ms() - start));
	return t->faults != 0;
}

static void
ask_neighbour(struct hostile *t)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		t->faults = 0;
		_exit(neighbour(t));
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		t->faults++;
}

/* A process that asks a neighbour for us, while we cannot fork. */
struct asker {
	int ask, answer;
};

static void
asker_main(struct hostile *t, int ask, int answer)
{
	char c;

	while (read(ask, &c, 1) == 1) {
		t->faults = 0;
		ask_neighbour(t);
		c = t->faults != 0;
		if (write(answer, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static bool
asker_start(struct hostile *t, struct asker *a)
{
	int ask[2], answer[2];
	pid_t pid;

	if (pipe2(ask, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		close(ask[1]);
		close(answer[0]);
		asker_main(t, ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	*a = (struct asker){ask[1], answer[0]};
	return pid > 0;
}

static void
asker_ask(struct hostile *t, const struct asker *a)
{
	char c = 1;

	if (write(a->ask, &c, 1) != 1 || read(a->answer, &c, 1) != 1 || c)
		t->faults++;
}

/*
 * Work requests of all kinds on memory whose pages do not come. A copier that waits for one may
 * hold the lock of this process's address space (/proc/PID/mem, and the page of a file). So from
 * the first of them on this process maps nothing and does not fork: it would wait for itself.
 */
static void
block_on(struct hostile *t, uint8_t *p)
{
	static const uint8_t ops[] = {RING_WR_RDMA_WRITE, RING_WR_RDMA_READ, RING_WR_SEND};
	struct asker asker;
	uint32_t keys[8], pd;
	int n = 0, ret;

	if (!asker_start(t, &asker) || !hostile_rig(t, &rig))
		return;
	while (n < 8) {
		ret = hx_reg_mr(&rig.h, rig.pd, p + n * 65536, 65536, n & 1 ? 0 : 0xf, &keys[n],
				NULL);
		MUST(t, ret != -ETIMEDOUT, "REG_MR of pages that do not come: no answer");
		if (ret)
			break;
		n++;
	}
	for (int i = 0; i < n; i++) {
		struct ring_wqe w = hx_write(&rig, 0, 65536, 4096);

		w.opcode = ops[i % 3];
		w.sge[0].addr = (uintptr_t)p + (unsigned int)i * 65536;
		w.sge[0].lkey = keys[i];
		hx_post_recv(&rig, &rig.qp[!(i & 1)], (uintptr_t)p + (unsigned int)i * 65536, 8192,
			     keys[i]);
		hx_post(&rig, &rig.qp[i & 1], &w);
	}
	asker_ask(t, &asker);
	/* calls of the blocked session itself: an answer or its end, in time */
	ret = hx_alloc_pd(&rig.h, &pd);
	MUST(t, ret != -ETIMEDOUT, "no answer in %d ms", HX_WAIT_MS);
	if (n) {
		ret = hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, rig.qp[0].qpn);

		MUST(t, ret == 0 || ret == -ENOTCONN || ret == -EBADMSG,
		     "destroying a QP that waits: %s", strerror(-ret));
	}
	asker_ask(t, &asker);
}

static int
open_uffd(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void
block_uffd(struct hostile *t)
{
	bool shared = hostile_below(t, 2);
	int fd = open_uffd();
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	uint8_t *p;

	if (fd < 0)
		return; /* not for us: no attack */
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		 (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (uintptr_t)p;
	reg.range.len = SIZE;
	if (p == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &reg) < 0)
		return;
	block_on(t, p);
}

static void
block_fuse(struct hostile *t)
{
	int fd = hostile_fuse_open();
	uint8_t *p;

	if (fd < 0)
		return;
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, hostile_below(t, 2) ? MAP_SHARED : MAP_PRIVATE,
		 fd, 0);
	if (p != MAP_FAILED)
		block_on(t, p);
}

/* Death with a copier's lane blocked: kill the session at once and leave. */
static void
block_die(struct hostile *t)
{
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	uint32_t key;
	int fd = open_uffd();
	uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	reg.range.start = (uintptr_t)p;
	reg.range.len = SIZE;
	if (fd < 0 || p == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &reg) < 0 ||
	    !hostile_rig(t, &rig) || hx_reg_mr(&rig.h, rig.pd, p, SIZE, 0xf, &key, NULL))
		return;
	for (int i = 0; i < 16; i++) {
		struct ring_wqe w = hx_write(&rig, 0, 65536, 4096);

		w.sge[0].addr = (uintptr_t)p + (unsigned int)i * 4096;
		w.sge[0].lkey = key;
		hx_post(&rig, &rig.qp[i & 1], &w);
	}
	hx_pass(&rig.h, (int)hostile_below(t, 20));
	if (hostile_below(t, 2)) {
		hx_rig_close(&rig); /* the process lives, its pages stay away */
		ask_neighbour(t);
	}
}

/* A TCP socket whose close lingers: bytes that nobody takes, and hours to wait for it. */
static int
lingering_socket(int *peer)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger l = {1, 3600};
	socklen_t len = sizeof(sa);
	static char bytes[65536];
	int ls = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (ls < 0 || s < 0 || bind(ls, (struct sockaddr *)&sa, len) || listen(ls, 1) ||
	    getsockname(ls, (struct sockaddr *)&sa, &len) ||
	    connect(s, (struct sockaddr *)&sa, len))
		return -1;
	*peer = accept(ls, NULL, NULL);
	close(ls);
	while (send(s, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	return s;
}

/*
 * Descriptors in flight are closed by whoever takes the message off the queue, and by whoever
 * closes the socket with the message in it: a close that lingers must not hold the daemon up.
 */
static void
block_linger(struct hostile *t)
{
	for (int i = 0; i < 2; i++) {
		static struct hx h;
		struct ring_ctrl_empty_req body = {0};
		struct {
			struct ring_ctrl_hdr hdr;
			struct ring_ctrl_empty_req req;
		} m;
		uint64_t start;
		int peer = -1, s = lingering_socket(&peer);

		if (s < 0 || hx_open(&h, t->socket))
			return;
		ring_ctrl_hdr_init(&m.hdr, RING_CTRL_ALLOC_PD, 0, 1, 1);
		m.req = body;
		if (hx_send_raw(&h, &m, sizeof(m), &s, 1)) { /* refused: ours is the last close */
			struct linger no = {0, 0};

			setsockopt(s, SOL_SOCKET, SO_LINGER, &no, sizeof(no));
		}
		close(s);
		if (i)
			hx_close(&h);
		start = hx_now_ms();
		ask_neighbour(t);
		MUST(t, hx_now_ms() - start < 2 * FAIR_MS, "a lingering close took %llu ms",
		     (unsigned long long)(hx_now_ms() - start));
		close(peer);
		if (!i)
			hx_close(&h);
	}
}

/* A FUSE file in flight, with FLUSH unanswered. */
static void
block_fuse_fd(struct hostile *t)
{
	static struct hx h;
	struct {
		struct ring_ctrl_hdr hdr;
		struct ring_ctrl_empty_req req;
	} m = {0};
	int fd = hostile_fuse_open();

	if (fd < 0 || hx_open(&h, t->socket))
		return;
	ring_ctrl_hdr_init(&m.hdr, RING_CTRL_ALLOC_PD, 0, 1, 1);
	hx_send_raw(&h, &m, sizeof(m), &fd, 1);
	ask_neighbour(t);
}

/* Many registrations over FUSE files at once: helpers that open and look at them may wait. */
static void
block_reg_storm(struct hostile *t)
{
	int fd = hostile_fuse_open();
	uint8_t *p;

	if (fd < 0)
		return;
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || !hostile_rig(t, &rig))
		return;
	for (uint32_t i = 0; i < 200; i++) {
		struct ring_ctrl_reg_mr_req req = {
			.addr = (uintptr_t)p + (i % 200) * 4096,
			.length = 4096,
			.iova = (uintptr_t)p,
			.access = i & 0xf,
			.pd = rig.pd,
			.flags = i & 16 ? RING_MR_REMAP : 0,
		};

		if (hx_request(&rig.h, RING_CTRL_REG_MR, 1, &req, NULL))
			break;
	}
	ask_neighbour(t);
	hostile_alive(t, &rig.h);
}

/* Files under a lease, which whoever opens them waits for: 45 s, by the kernel's default. */
static void
block_lease(struct hostile *t)
{
	if (!hostile_rig(t, &rig))
		return;
	for (uint32_t i = 0; i < 40; i++) {
		int fd = memfd_create("leased", MFD_CLOEXEC);
		struct ring_ctrl_reg_mr_req req = {
			.length = 4096,
			.access = 0xf,
			.pd = rig.pd,
		};
		void *p;

		if (fd < 0 || ftruncate(fd, 4096))
			return;
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED || fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
			return;
		req.addr = req.iova = (uintptr_t)p;
		if (hx_request(&rig.h, RING_CTRL_REG_MR, 1, &req, NULL))
			break;
	}
	ask_neighbour(t);
	hostile_alive(t, &rig.h);
}

const struct hostile_case hostile_block_cases[] = {
	{"block_uffd", block_uffd, "pages behind a userfaultfd that nobody serves", false},
	{"block_fuse", block_fuse, "pages of a FUSE file that nobody serves", true},
	{"block_die", block_die, "death and goodbye while a copier waits", false},
	{"block_linger", block_linger, "descriptors in flight whose close lingers", false},
	{"block_fuse_fd", block_fuse_fd, "a FUSE file in flight", true},
	{"block_lease", block_lease, "registrations of files under a lease", false},
	{"block_reg_storm", block_reg_storm, "registrations over FUSE by the hundred", true},
	{NULL, NULL, NULL, false},
};
