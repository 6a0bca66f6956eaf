/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile and dying clients: cut off alone, and nothing of them is left. */
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/resource.h>

#include "base_rng.h"
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "ctl_objects.h"

static int epoll_fails; /* the how manieth call from now on; 0: none */

int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	if (epoll_fails != 0 && --epoll_fails == 0) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, ev);
}

#define PEERPIDFD 77
static int peer_err; /* what asking for a peer's pidfd fails with */
static int peer_got; /* what it gave */

int
getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	int err;

	if (name == PEERPIDFD && peer_err != 0) {
		errno = peer_err;
		return -1;
	}
	err = (int)syscall(SYS_getsockopt, fd, level, name, val, len);
	if (name == PEERPIDFD)
		peer_got = err == 0 ? *(int *)val : -1;
	return err;
}

static void
expect_cut(struct fx_client *c)
{
	for (int i = 0; i < 1000 && !c->dead; i++) {
		fx_step();
		fx_recv(c);
	}
	ck_assert(c->dead);
}

/* The client of the fixture is as well as before. */
static void
expect_well(void)
{
	struct ring_ctrl_query_port_req req = {.port = 1};
	struct ring_ctrl_query_port_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_PORT, &req, &rep), 0);
	ck_assert_uint_eq(rep.max_mtu, RING_MTU_4096);
}

static struct fx_client bad;

/* Each operation with bodies of the wrong length, and with random ones of the right length. */
START_TEST(fuzz__every_operation)
{
	struct rng rng;

	rng_seed(&rng, 42);
	for (unsigned int op = 0; op <= RING_CTRL_OP_COUNT; op++) {
		for (int round = 0; round < 12; round++) {
			_Alignas(8) uint8_t msg[2048];
			size_t len = ring_ctrl_size(op, 1, true);

			fx_connect(&bad);
			if (round % 2)
				fx_hello(&bad);
			for (size_t i = 0; i < sizeof(msg); i++)
				msg[i] = round < 8 ? (uint8_t)rng_u32(&rng) : 0;
			ring_ctrl_hdr_init((struct ring_ctrl_hdr *)msg, op, 0, 7, 1);
			if (round == 2)
				len -= len > 24;
			if (round == 4)
				len += 8;
			if (round == 6)
				((struct ring_ctrl_hdr *)msg)->count = 1000;
			if (len <= sizeof(msg))
				(void)!send(bad.fd, msg, len, MSG_DONTWAIT | MSG_NOSIGNAL);
			for (int i = 0; i < 20; i++) {
				fx_step();
				fx_recv(&bad);
			}
			fx_close(&bad);
		}
		expect_well();
	}
	fx_settle(1);
}
END_TEST

START_TEST(nonsense__cut_off)
{
	for (int i = 0; i < 5; i++) {
		struct ring_ctrl_hdr h;

		fx_connect(&bad);
		ring_ctrl_hdr_init(&h, RING_CTRL_ALLOC_PD, 0, 1, 1);
		if (i == 0)
			h.magic = 0;
		if (i == 1)
			h.major++;
		if (i == 2)
			h.flags = RING_CTRL_REPLY;
		/* 3: no body; 4: a byte alone */
		(void)!send(bad.fd, &h, i == 4 ? 1 : sizeof(h), MSG_NOSIGNAL);
		expect_cut(&bad);
		fx_close(&bad);
		expect_well();
	}
	fx_settle(1);
}
END_TEST

static int
count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* B170: descriptors that nobody asked for are closed, and the client with them. */
START_TEST(descriptors__closed)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * 253)];
		struct cmsghdr align;
	} control;

	for (int num = 1; num <= 253; num += 36) {
		struct ring_ctrl_query_port_req body = {.port = 1};
		uint8_t msg[64];
		struct iovec iov = {msg, ring_ctrl_size(RING_CTRL_QUERY_PORT, 1, true)};
		struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = control.space,
			.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)num)};
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		int before;

		fx_connect(&bad);
		before = count_fds();
		ring_ctrl_hdr_init((struct ring_ctrl_hdr *)msg, RING_CTRL_QUERY_PORT, 0, 1, 1);
		memcpy(msg + sizeof(struct ring_ctrl_hdr), &body, sizeof(body));
		memset(&control, 0, sizeof(control));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)num);
		for (int i = 0; i < num; i++)
			memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &bad.fd, sizeof(int));
		ck_assert_int_gt(sendmsg(bad.fd, &mh, MSG_NOSIGNAL), 0);
		expect_cut(&bad);
		ck_assert_int_eq(count_fds(), before - 2); /* the socket and the pidfd */
		fx_close(&bad);
	}
	fx_settle(1);
}
END_TEST

/* DESIGN 2.1, B167: the daemon's arenas cannot be written, none can be resized or have holes. */
START_TEST(arenas__sealed)
{
	bool seen_c = false, seen_d = false;

	fx_connect(&bad);
	bad.keep_fds = true;
	ck_assert_int_eq(fx_hello(&bad), 0);
	for (uint32_t i = 0; i < bad.num_arenas; i++) {
		int fd = bad.arena[i].fd;
		uint64_t size = bad.arena[i].size;
		void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		ck_assert_ptr_eq(p, MAP_FAILED); /* C as well, once it is sealed */
		ck_assert_int_lt(ftruncate(fd, 0), 0);
		ck_assert_int_lt(ftruncate(fd, (off_t)size * 2), 0);
		ck_assert_int_lt(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
			0);
		ck_assert_int_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
		ck_assert_int_lt(pwrite(fd, "x", 1, 0), 0);
		if (bad.arena[i].kind == RING_ARENA_D)
			ck_assert_int_lt(mprotect(bad.arena[i].map, size, PROT_WRITE), 0);
		seen_c |= bad.arena[i].kind == RING_ARENA_C;
		seen_d |= bad.arena[i].kind == RING_ARENA_D;
	}
	ck_assert(seen_c && seen_d);
	fx_close(&bad);
	fx_settle(1);
}
END_TEST

/* An arena that the client seals or shrinks before it says that it has mapped it. */
START_TEST(arena__spoilt_by_its_client)
{
	for (int how = 0; how < 2; how++) {
		struct ring_ctrl_hello_req req = {.pid = getpid()};
		struct ring_ctrl_arena_mapped ack = {0};

		fx_connect(&bad);
		bad.keep_fds = bad.no_ack = true;
		fx_send(&bad, RING_CTRL_HELLO, 1, &req, 1);
		while (bad.num_arenas == 0) {
			fx_step();
			fx_recv(&bad);
		}
		ck_assert_uint_eq(bad.arena[0].kind, RING_ARENA_C);
		if (how == 0)
			ck_assert_int_eq(fcntl(bad.arena[0].fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
		else
			ck_assert_int_eq(ftruncate(bad.arena[0].fd, 4096), 0);
		ack.addr = (uintptr_t)bad.arena[0].map;
		fx_send(&bad, RING_CTRL_ARENA_MAPPED, 0, &ack, 1);
		expect_cut(&bad);
		fx_close(&bad);
		expect_well();
	}
	fx_settle(1);
}
END_TEST

START_TEST(quota__memory)
{
	struct ring_ctrl_alloc_mem_req req = {.size = 16 << 20, .align = 64};
	struct ring_ctrl_alloc_mem_rep rep;
	int err = 0, n = 0;

	for (; err == 0 && n < 10; n++)
		err = fx_call(&cl, RING_CTRL_ALLOC_MEM, &req, &rep);
	ck_assert_int_eq(err, -EDQUOT);
	ck_assert_int_le(n, 4);
	req.size = UINT64_MAX;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MEM, &req, &rep), -EINVAL);
	/* More than there ever is: not waited for, whoever is being taken down. */
	req.size = 64 << 20;
	req.align = 2 << 20;
	LIST_FIRST(&fx_dev->users)->dying++;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MEM, &req, &rep), -EDQUOT);
	LIST_FIRST(&fx_dev->users)->dying--;
	expect_well();
}
END_TEST

/* A client dies after each of its steps; the table counts are checked by the teardown. */
START_TEST(death__after_each_step)
{
	for (int step = 0; step < 9; step++) {
		struct ring_wqe w = {.opcode = RING_WR_SEND, .num_slots = 1,
			.flags = RING_WR_SIGNALED};
		struct ring_ctrl_reg_mr_rep mr;
		struct ring_ctrl_qp_attr a;
		struct pair p;
		static uint8_t heap[4096];

		if (step >= 1)
			make_pair(&p);
		if (step >= 2)
			ck_assert_int_eq(reg_mr(p.pd, make_mem(4096), 4096, 1, &mr), 0);
		if (step >= 3)
			ck_assert_int_eq(reg_mr(p.pd, heap, 4096, 1, &mr), 0);
		if (step == 4) {
			struct ring_ctrl_modify_qp_req req = {.qpn = p.qpn[0], .mask = RTR_MASK};

			ck_assert_int_eq(to_init(p.qpn[0]), 0);
			req.attr = rtr_attr(1, 200); /* waits for a neighbour when it dies */
			fx_send(&cl, RING_CTRL_MODIFY_QP, 99, &req, 1);
			fx_step();
		}
		if (step >= 5)
			connect_pair(&p);
		if (step >= 6)
			post_send(&p, 0, 0, &w); /* no receive is posted: it is retried */
		if (step >= 7) {
			a = (struct ring_ctrl_qp_attr){.state = RING_QPS_ERR};
			ck_assert_int_eq(modify(p.qpn[1], RING_QP_STATE, &a, NULL), 0);
		}
		if (step == 8) { /* half a request for an arena */
			struct ring_ctrl_alloc_mem_req req = {.size = 8 << 20, .align = 64};

			fx_send(&cl, RING_CTRL_ALLOC_MEM, 98, &req, 1);
			fx_step();
		}
		fx_close(&cl);
		fx_settle(0);
		expect_clean();
		fx_connect(&cl);
		ck_assert_int_eq(fx_hello(&cl), 0);
	}
}
END_TEST

/* It never reads: its requests are not read on either, and nobody else notices. */
START_TEST(deaf_client__stopped)
{
	struct ring_ctrl_query_port_req req[64];

	memset(req, 0, sizeof(req));
	for (int i = 0; i < 64; i++)
		req[i].port = 1;
	fx_connect(&bad);
	ck_assert_int_eq(fx_hello(&bad), 0);
	for (int i = 0; i < 20000; i++) {
		if (fx_send(&bad, RING_CTRL_QUERY_PORT, 1, req, 64) < 0 && i > 10000)
			break;
		fx_step();
	}
	expect_well();
	fx_close(&bad);
	fx_settle(1);
}
END_TEST

/* ---- no descriptors left ---------- */

static int
knock(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(sa.sun_path, path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void
set_nofile(rlim_t soft)
{
	struct rlimit lim;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = soft;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
}

START_TEST(no_descriptors__listener_rests)
{
	char path[64];
	struct rlimit before;
	struct fx_client other;
	int fd;

	snprintf(path, sizeof(path), "/tmp/rnic-accept-%d", (int)getpid());
	ck_assert_int_eq(worker_ctl_listen(fx_dev, path), 0);
	fx_connect(&other);
	fd = knock(path);
	getrlimit(RLIMIT_NOFILE, &before);
	set_nofile(1);
	fx_step();
	ck_assert(fx_dev->accept_paused);
	ck_assert_uint_eq(fx_dev->num_clients, 2);
	fx_dev->accept_due = UINT64_MAX; /* not by time: by the client that goes */
	ck_assert_int_eq(worker_ctl_poll(fx_dev, 0), 0); /* it would sleep */
	fx_close(&other);
	for (int i = 0; fx_dev->accept_due != 0 && i < 1000; i++)
		fx_step();
	set_nofile(before.rlim_cur);
	for (int i = 0; fx_dev->num_clients < 2 && i < 1000; i++)
		fx_step();
	ck_assert_uint_eq(fx_dev->num_clients, 2);
	ck_assert(!fx_dev->accept_paused);
	close(fd);
	fx_settle(1);
}
END_TEST

/* Whoever connects and goes without end: the others have their turn between. */
START_TEST(accept__some_a_turn)
{
	char path[64];
	int fd[40];

	snprintf(path, sizeof(path), "/tmp/rnic-accept-%d", (int)getpid());
	ck_assert_int_eq(worker_ctl_listen(fx_dev, path), 0);
	for (int i = 0; i < 40; i++)
		fd[i] = knock(path);
	worker_ctl_poll(fx_dev, 0);
	ck_assert_uint_eq(fx_dev->num_clients, 1 + 16);
	worker_ctl_poll(fx_dev, 0);
	worker_ctl_poll(fx_dev, 0);
	ck_assert_uint_eq(fx_dev->num_clients, 1 + 40);
	ck_assert(!fx_dev->accept_paused);
	for (int i = 0; i < 40; i++)
		close(fd[i]);
	fx_settle(1);
}
END_TEST

static int
attach(void)
{
	int sv[2], err;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	err = worker_ctl_attach(fx_dev, sv[1]);
	close(sv[0]);
	return err;
}

START_TEST(attach__failed_leaves_nothing)
{
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	uint32_t fds = u->fds;

	for (int i = 1; i <= 2; i++) {
		epoll_fails = i;
		ck_assert_int_eq(attach(), -ENOSPC);
		ck_assert_uint_eq(u->fds, fds);
		ck_assert_uint_eq(u->clients, 1);
	}
	expect_well();
}
END_TEST

/* Its process is asked for by its socket, and by its number only where that cannot be. */
START_TEST(process__by_its_socket)
{
	const struct ctl_client *c;

	for (int i = 0; i < 2; i++) {
		peer_err = i == 0 ? 0 : ENOPROTOOPT;
		peer_got = -1;
		fx_connect(&bad);
		c = TAILQ_LAST(&fx_dev->clients, ctl_client_list);
		ck_assert_int_ge(c->pidfd, 0);
		ck_assert_int_eq(c->pid, getpid());
		if (peer_got >= 0)
			ck_assert_int_eq(c->pidfd, peer_got);
		fx_close(&bad);
		fx_settle(1);
	}
	peer_err = ESRCH;
	ck_assert_int_eq(attach(), -ESRCH);
	peer_err = EINVAL;
	ck_assert_int_eq(attach(), -ESRCH);
	peer_err = 0;
}
END_TEST

/* What is open for a uid is counted, and given back to the last. */
START_TEST(descriptors__quota)
{
	struct ring_ctrl_alloc_mem_req mem = {.size = 1 << 20, .align = 64};
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	struct ring_ctrl_create_channel_rep rep;
	struct ring_ctrl_empty_req req = {0};
	uint32_t alone = u->fds;
	int sv[2];

	ck_assert_uint_eq(alone, 4 + FX_WORKERS); /* none of arenas or replies */
	fx_dev->cfg.quota_fds = 2 * alone + 2; /* a second client, a channel and its reply */
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CHANNEL, &req, &rep), 0);
	ck_assert_uint_eq(u->fds, alone + 1);
	fx_connect(&bad);
	ck_assert_uint_eq(u->fds, 2 * alone + 1);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CHANNEL, &req, NULL), -EDQUOT);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	ck_assert_int_eq(worker_ctl_attach(fx_dev, sv[1]), -EDQUOT);
	close(sv[0]);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MEM, &mem, NULL), 0);
	fx_dev->cfg.quota_fds = u->fds;
	mem.size = 32 << 20; /* for another arena */
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MEM, &mem, NULL), -EDQUOT);
	fx_close(&bad);
	fx_settle(1);
	ck_assert_uint_eq(u->fds, alone + 1);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_CHANNEL, rep.handle), 0);
	ck_assert_uint_eq(u->fds, alone);
}
END_TEST

static void
nothing(void *arg)
{
	(void)arg;
}

/* The socket is still open, with us, as with a child that was forked without exec. */
START_TEST(process_ends__session_too)
{
	struct fx_proc proc;

	fx_proc_start(&proc, &bad, geteuid(), nothing, NULL);
	ck_assert_uint_eq(fx_dev->num_clients, 2);
	fx_proc_end(&proc);
	fx_settle(1);
	expect_cut(&bad);
	fx_close(&bad);
	expect_well();
}
END_TEST

/* Nobody's session: its process is gone before it was accepted, the socket is not. */
START_TEST(process_gone__refused)
{
	char path[64];
	int via[2], fd;
	pid_t pid;

	snprintf(path, sizeof(path), "/tmp/fx-gone-%d.sock", (int)getpid());
	ck_assert_int_eq(worker_ctl_listen(fx_dev, path), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, via), 0);
	pid = fork();
	if (pid == 0)
		_exit(fx_send_fd(via[1], fx_listen_connect(path)) < 0);
	fd = fx_recv_fd(via[0]);
	waitpid(pid, NULL, 0);
	ck_assert_int_ge(fd, 0);
	memset(&bad, 0, offsetof(struct fx_client, buf));
	bad.fd = fd;
	expect_cut(&bad);
	ck_assert_uint_eq(fx_dev->num_clients, 1);
	fx_close(&bad);
	close(via[0]);
	close(via[1]);
	expect_well();
}
END_TEST

/* ---- the socket's file ---------- */

static void
socket_path(char *path, size_t size, struct sockaddr_un *sa)
{
	snprintf(path, size, "/tmp/rnic-listen-%d", (int)getpid());
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	strcpy(sa->sun_path, path);
}

START_TEST(listen__failed_leaves_nothing)
{
	int epfd = fx_dev->epfd;
	struct sockaddr_un sa;
	char path[64];

	socket_path(path, sizeof(path), &sa);
	fx_dev->epfd = -1;
	ck_assert_int_eq(worker_ctl_listen(fx_dev, path), -EBADF);
	fx_dev->epfd = epfd;
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_int_eq(worker_ctl_listen(fx_dev, path), 0);
}
END_TEST

/* A listener that takes nobody any more is one all the same, and is not waited for. */
START_TEST(listen__busy_listener)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), knocks[8], n = 0;
	struct sockaddr_un sa;
	char path[64];

	socket_path(path, sizeof(path), &sa);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)) | listen(fd, 0), 0);
	for (int rc = 0; rc == 0 && n < 8; n++) {
		knocks[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		rc = connect(knocks[n], (struct sockaddr *)&sa, sizeof(sa));
	}
	ck_assert_int_lt(n, 8);
	ck_assert_int_eq(worker_ctl_listen(fx_dev, path), -EADDRINUSE);
	ck_assert_int_eq(access(path, F_OK), 0);
	while (n > 0)
		close(knocks[--n]);
	close(fd);
	unlink(path);
}
END_TEST

/* ---- odds and ends ---------- */

/* The reader of a channel is gone: writing to it does not end us. */
START_TEST(channel__without_reader)
{
	struct ring_ctrl_create_channel_rep rep;
	struct ring_ctrl_empty_req req = {0};
	struct ctl_channel *ch;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_CREATE_CHANNEL, &req, &rep), 0);
	ch = ctl_obj_find(TAILQ_FIRST(&fx_dev->clients), CTL_CHANNEL, rep.handle);
	while (cl.num_fds > 0)
		close(cl.fds[--cl.num_fds]);
	worker_channel_write(&ch->ch, 1);
	expect_well();
}
END_TEST

/* What no mailbox had room for is freed with the device. */
START_TEST(destroy__mail_without_room)
{
	struct worker_msg *m;

	fx_close(&cl);
	expect_clean();
	m = ctl_msg_get(fx_dev, WORKER_MSG_TX);
	m->pkt.m = rte_pktmbuf_alloc(fx_pool);
	fx_dev->waiting[1] = m;
	worker_device_destroy(fx_dev);
	ck_assert_uint_eq(rte_mempool_in_use_count(fx_pool), 0);
	setup();
}
END_TEST

FX_MAIN("ctl_client", setup, teardown, fuzz__every_operation, nonsense__cut_off,
	descriptors__closed, arenas__sealed, arena__spoilt_by_its_client, quota__memory,
	death__after_each_step, process_ends__session_too, process_gone__refused,
	deaf_client__stopped, no_descriptors__listener_rests, descriptors__quota,
	accept__some_a_turn, attach__failed_leaves_nothing, process__by_its_socket,
	listen__failed_leaves_nothing, listen__busy_listener,
	channel__without_reader, destroy__mail_without_room)
