/* SPDX-License-Identifier: BSD-3-Clause */
/* The session of a client without librnic: frames, arenas, calls. */
#include "hx.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

uint64_t
hx_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void
hx_pass(struct hx *h, int ms)
{
	struct pollfd p = {.fd = h ? h->sock : -1, .events = POLLIN};

	poll(&p, 1, ms);
}

int
hx_connect(struct hx *h, const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	memset(h, 0, sizeof(*h));
	h->last_fd = -1;
	memset(h->arena_fd, 0xff, sizeof(h->arena_fd));
	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	strcpy(sa.sun_path, path);
	h->sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (h->sock < 0)
		return -errno;
	if (connect(h->sock, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		int err = errno;

		close(h->sock);
		h->sock = -1;
		return -err;
	}
	return 0;
}

int
hx_send_raw(struct hx *h, const void *msg, size_t len, const int *fds, unsigned int num_fds)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * 253)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	memcpy(&iov.iov_base, &msg, sizeof(msg));
	if (num_fds) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		mh.msg_control = control.space;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * num_fds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * num_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * num_fds);
	}
	return sendmsg(h->sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int
hx_request(struct hx *h, unsigned int op, unsigned int count, const void *body, uint32_t *id)
{
	_Alignas(8) static _Thread_local uint8_t msg[RING_CTRL_MAX_LEN];
	size_t len = ring_ctrl_size(op, count, true);
	uint64_t end = hx_now_ms() + HX_WAIT_MS;
	int ret;

	if (len > sizeof(msg))
		return -EMSGSIZE;
	ring_ctrl_hdr_init((struct ring_ctrl_hdr *)msg, op, 0, h->next_id, count);
	memcpy(msg + sizeof(struct ring_ctrl_hdr), body, len - sizeof(struct ring_ctrl_hdr));
	if (id)
		*id = h->next_id;
	h->next_id++;
	while ((ret = hx_send_raw(h, msg, len, NULL, 0)) == -EAGAIN && hx_now_ms() < end) {
		struct pollfd p = {.fd = h->sock, .events = POLLOUT};

		poll(&p, 1, HX_WAIT_MS);
	}
	return ret == -EPIPE || ret == -ECONNRESET ? -ENOTCONN : ret;
}

int
hx_arena_mapped(struct hx *h, uint32_t arena, int status, const void *addr)
{
	struct ring_ctrl_arena_mapped m = {
		.arena = arena,
		.status = status,
		.addr = (uintptr_t)addr,
	};

	return hx_request(h, RING_CTRL_ARENA_MAPPED, 1, &m, NULL);
}

static void
take_arena(struct hx *h, const struct ring_ctrl_arena *a, int fd)
{
	int prot = a->kind == RING_ARENA_C ? PROT_READ | PROT_WRITE : PROT_READ;
	void *p;

	if (h->arena_hook) {
		h->arena_hook(h, a, fd, h->hook_arg);
		return;
	}
	if (a->arena >= HX_ARENAS) {
		hx_arena_mapped(h, a->arena, -ENOMEM, NULL);
		close(fd);
		return;
	}
	p = mmap(NULL, a->size, prot, MAP_SHARED, fd, 0);
	if (h->keep_fds)
		h->arena_fd[a->arena] = fd;
	else
		close(fd);
	if (p == MAP_FAILED) {
		hx_arena_mapped(h, a->arena, -ENOMEM, NULL);
		return;
	}
	h->arena[a->arena] = (struct hx_arena){.base = p, .size = a->size, .kind = a->kind};
	hx_arena_mapped(h, a->arena, 0, p);
}

void *
hx_at(struct hx *h, ring_loc_t loc, uint64_t size)
{
	uint32_t n = RING_LOC_ARENA(loc);
	uint64_t off = RING_LOC_OFFSET(loc);

	if (n >= HX_ARENAS || !h->arena[n].base || off > h->arena[n].size ||
	    size > h->arena[n].size - off)
		return NULL;
	return h->arena[n].base + off;
}

static void
take_bells(struct hx *h, const struct ring_ctrl_bells *b)
{
	for (uint32_t i = 0; b->chunk == 0 && i < b->num_workers && i < RING_MAX_WORKERS; i++) {
		h->bell[i] = hx_at(h, b->chunk_loc[i], sizeof(struct ring_bell_chunk));
		h->bell_daemon[i] = hx_at(h, b->daemon_loc[i], sizeof(struct ring_bell_daemon));
	}
}

static void
take_push(struct hx *h, const struct ring_ctrl_hdr *hdr, const int *fds)
{
	const void *body = h->buf + sizeof(*hdr);
	_Alignas(8) uint8_t copy[sizeof(struct ring_ctrl_bells)]; /* hooks use the buffer */

	memcpy(copy, body, ring_ctrl_size(hdr->op, 1, false) - sizeof(*hdr));
	if (hdr->op == RING_CTRL_ARENA)
		take_arena(h, (const struct ring_ctrl_arena *)copy, fds[0]);
	else if (hdr->op == RING_CTRL_BELLS)
		take_bells(h, (const struct ring_ctrl_bells *)copy);
	else if (hdr->op == RING_CTRL_EVENT) {
		h->num_events++;
		memcpy(&h->last_event, copy, sizeof(h->last_event));
	}
}

/* A reply's descriptors: HELLO's are the kicks, those of others the last one's. */
static void
take_reply_fds(struct hx *h, const struct ring_ctrl_hdr *hdr, const int *fds)
{
	for (unsigned int i = 0; i < hdr->num_fds; i++) {
		if (hdr->op == RING_CTRL_HELLO && h->num_kicks < RING_MAX_WORKERS) {
			h->kick[h->num_kicks++] = fds[i];
			continue;
		}
		if (h->last_fd >= 0)
			close(h->last_fd);
		h->last_fd = fds[i];
	}
}

int
hx_receive(struct hx *h, struct ring_ctrl_hdr *hdr, int timeout_ms)
{
	struct pollfd p = {.fd = h->sock, .events = POLLIN};
	int fds[RING_CTRL_MAX_FDS];
	ptrdiff_t n;
	int ret;

	ret = poll(&p, 1, timeout_ms);
	if (ret <= 0)
		return -EAGAIN;
	n = ring_ctrl_recv(h->sock, h->buf, sizeof(h->buf), fds, RING_CTRL_MAX_FDS);
	if (n == -EAGAIN || n == -EBADMSG)
		return (int)n;
	if (n <= 0)
		return -ENOTCONN;
	memcpy(hdr, h->buf, sizeof(*hdr));
	if (ring_ctrl_check(h->buf, (size_t)n, false))
		return -EBADMSG;
	if (hdr->flags & RING_CTRL_PUSH) {
		take_push(h, hdr, fds);
		return 1;
	}
	take_reply_fds(h, hdr, fds);
	return 0;
}

int
hx_wait(struct hx *h, uint32_t id, void *rep, size_t size)
{
	uint64_t end = hx_now_ms() + HX_WAIT_MS;

	for (;;) {
		struct ring_ctrl_hdr hdr;
		uint64_t now = hx_now_ms();
		int ret = now < end ? hx_receive(h, &hdr, (int)(end - now)) : -ETIMEDOUT;

		if (ret == -EAGAIN)
			continue;
		if (ret < 0)
			return ret;
		if (ret == 1 || hdr.id != id)
			continue;
		if (hdr.status < 0)
			return hdr.status;
		if (rep) {
			size_t have = ring_ctrl_size(hdr.op, hdr.count, false) - sizeof(hdr);

			memcpy(rep, h->buf + sizeof(hdr), have < size ? have : size);
		}
		return 0;
	}
}

int
hx_call(struct hx *h, unsigned int op, const void *req, void *rep, size_t rep_size)
{
	_Alignas(8) uint8_t dummy[512];
	uint32_t id;
	int32_t status = 0;
	int ret = hx_request(h, op, 1, req, &id);

	if (!rep) {
		rep = dummy;
		rep_size = sizeof(dummy);
	}
	if (!ret)
		ret = hx_wait(h, id, rep, rep_size);
	if (ret)
		return ret;
	memcpy(&status, rep, sizeof(status));
	return status;
}

int
hx_handle_call(struct hx *h, unsigned int op, uint32_t handle)
{
	struct ring_ctrl_handle_req r = {.handle = handle};

	return hx_call(h, op, &r, NULL, 0);
}

int
hx_open(struct hx *h, const char *path)
{
	struct ring_ctrl_hello_req req = {.pid = getpid()};
	struct ring_ctrl_hello_rep rep;
	int ret = hx_connect(h, path);

	if (ret)
		return ret;
	ret = hx_call(h, RING_CTRL_HELLO, &req, &rep, sizeof(rep));
	if (ret)
		return ret;
	h->num_workers = rep.num_workers;
	h->num_ports = rep.num_ports;
	return 0;
}

void
hx_close(struct hx *h)
{
	if (h->sock >= 0)
		close(h->sock);
	for (uint32_t i = 0; i < h->num_kicks; i++)
		close(h->kick[i]);
	if (h->last_fd >= 0)
		close(h->last_fd);
	for (uint32_t i = 0; i < HX_ARENAS; i++) {
		if (h->arena[i].base)
			munmap(h->arena[i].base, h->arena[i].size);
		if (h->arena_fd[i] >= 0)
			close(h->arena_fd[i]);
	}
	h->sock = -1;
}
