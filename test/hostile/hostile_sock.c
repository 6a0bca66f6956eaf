/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks on the socket: frames, versions, descriptors, floods, ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"

static struct hx session;

static bool
open_session(struct hostile *t, struct hx *h)
{
	int ret = hx_open(h, t->socket);

	MUST(t, !ret, "no session: %s", strerror(-ret));
	return !ret;
}

/* Read until the daemon hangs up or has nothing more to say. True: it hung up. */
static bool
drain(struct hx *h, int timeout_ms)
{
	struct ring_ctrl_hdr hdr;
	int ret;

	do
		ret = hx_receive(h, &hdr, timeout_ms);
	while (ret >= 0);
	return ret == -ENOTCONN;
}

/* A well-formed request of any operation, its fields zero; its length. */
static size_t
some_request(struct hostile *t, uint8_t *msg, unsigned int *op)
{
	const struct ring_ctrl_info *info;
	uint32_t count;

	do {
		*op = hostile_below(t, RING_CTRL_OP_COUNT);
		info = ring_ctrl_info(*op);
	} while (!info || !info->request_size);
	count = 1 + hostile_below(t, hostile_below(t, 4) ? 1 : info->max_count);
	ring_ctrl_hdr_init((struct ring_ctrl_hdr *)msg, *op, 0, (uint32_t)hostile_rand(t), count);
	memset(msg + sizeof(struct ring_ctrl_hdr), 0, count * info->request_size);
	return ring_ctrl_size(*op, count, true);
}

static _Alignas(8) uint8_t msg[2 * RING_CTRL_MAX_LEN];

static void
sock_garbage(struct hostile *t)
{
	for (int round = 0; round < 8; round++) {
		if (round & 1 ? hx_open(&session, t->socket) : hx_connect(&session, t->socket)) {
			FAULT(t, "no connection");
			return;
		}
		for (int i = 0; i < 16; i++) {
			size_t len = hostile_below(t, i % 4 ? 200 : sizeof(msg));

			for (size_t k = 0; k < len && k < 4096; k += 8) {
				uint64_t v = hostile_rand(t);

				memcpy(msg + k, &v, 8);
			}
			if (hx_send_raw(&session, msg, len, NULL, 0) == -EPIPE)
				break;
		}
		MUST(t, drain(&session, HX_WAIT_MS), "garbage, and no hang-up");
		hx_close(&session);
	}
}

static void
sock_header(struct hostile *t)
{
	for (int i = 0; i < 24; i++) {
		unsigned int op;
		size_t len;

		if (!open_session(t, &session))
			return;
		len = some_request(t, msg, &op);
		hostile_mutate(t, msg, sizeof(struct ring_ctrl_hdr));
		hx_send_raw(&session, msg, len, NULL, 0);
		hostile_alive(t, &session);
		hx_close(&session);
	}
}

static void
sock_version(struct hostile *t)
{
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)msg;
	struct ring_ctrl_hdr hdr;

	for (int i = 0; i < 4; i++) {
		int ret;

		if (hx_connect(&session, t->socket)) {
			FAULT(t, "no connection");
			return;
		}
		ring_ctrl_hdr_init(h, i < 2 ? (uint32_t)RING_CTRL_HELLO : hostile_below(t, 0xffff),
				   0, 7, 1);
		h->major = (uint16_t)(RING_ABI_MAJOR + 1 + hostile_below(t, 1000));
		hx_send_raw(&session, msg, sizeof(*h) + hostile_below(t, 300), NULL, 0);
		/* hx_receive() refuses another major: a refusal has the daemon's own */
		ret = hx_receive(&session, &hdr, HX_WAIT_MS);
		MUST(t, ret == 0 && hdr.status == -EPROTONOSUPPORT && hdr.id == 7,
		     "another major: answer %d, status %d", ret, ret == 0 ? hdr.status : 0);
		MUST(t, drain(&session, HX_WAIT_MS), "another major, and no hang-up");
		hx_close(&session);
	}
}

static void
sock_truncate(struct hostile *t)
{
	for (int i = 0; i < 24; i++) {
		unsigned int op;
		size_t len, cut;

		if (!open_session(t, &session))
			return;
		len = some_request(t, msg, &op);
		cut = hostile_below(t, 2) ? hostile_below(t, (uint32_t)len)
					  : len + 1 + hostile_below(t, 64);
		hx_send_raw(&session, msg, cut, NULL, 0);
		MUST(t, drain(&session, HX_WAIT_MS) || cut > sizeof(msg),
		     "%s of %zu bytes in place of %zu: no hang-up", ring_ctrl_name(op), cut, len);
		hx_close(&session);
	}
}

static void
sock_early(struct hostile *t)
{
	for (unsigned int op = 0; op < RING_CTRL_OP_COUNT; op++) {
		const struct ring_ctrl_info *info = ring_ctrl_info(op);
		struct ring_ctrl_hdr hdr;
		int ret;

		if (!info || !info->request_size || op == RING_CTRL_HELLO ||
		    op == RING_CTRL_LIST_DEVICE)
			continue;
		if (hx_connect(&session, t->socket)) {
			FAULT(t, "no connection");
			return;
		}
		ring_ctrl_hdr_init((struct ring_ctrl_hdr *)msg, op, 0, 1, 1);
		memset(msg + sizeof(hdr), 0, info->request_size);
		hx_send_raw(&session, msg, ring_ctrl_size(op, 1, true), NULL, 0);
		ret = hx_receive(&session, &hdr, HX_WAIT_MS);
		MUST(t, ret != 0 || hdr.status < 0, "%s before HELLO is served", info->name);
		MUST(t, ret != -EAGAIN, "%s before HELLO: silence", info->name);
		hx_close(&session);
	}
}

static void
sock_hello(struct hostile *t)
{
	struct ring_ctrl_hello_req req;

	for (int i = 0; i < 8; i++) {
		memset(&req, 0, sizeof(req));
		if (i == 1)
			memset(req.device, 'A', sizeof(req.device)); /* no NUL */
		if (i > 1)
			hostile_mutate(t, &req, sizeof(req));
		if (hx_connect(&session, t->socket)) {
			FAULT(t, "no connection");
			return;
		}
		for (int k = 0; k < 3; k++) /* pipelined twins */
			hx_request(&session, RING_CTRL_HELLO, 1, &req, NULL);
		drain(&session, 200);
		hx_close(&session);
	}
	if (!open_session(t, &session))
		return;
	memset(&req, 0, sizeof(req));
	MUST(t, hx_call(&session, RING_CTRL_HELLO, &req, NULL, 0) < 0, "a second HELLO is served");
	hostile_alive(t, &session);
}

/* B170: descriptors that nobody asked for are not kept. */
static void
sock_fds(struct hostile *t)
{
	static const unsigned int numbers[] = {1, 2, 31, 32, 33, 252, 253};
	int fds[253];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		unsigned int op;
		int pipefd[2];
		size_t len;

		if (!open_session(t, &session) || pipe(pipefd))
			return;
		for (unsigned int k = 0; k < numbers[i]; k++)
			fds[k] = pipefd[1];
		len = some_request(t, msg, &op);
		if (i & 1)
			((struct ring_ctrl_hdr *)msg)->num_fds = (uint16_t)numbers[i];
		/* refused by the kernel in the daemon's name, or the end of the session */
		if (hx_send_raw(&session, msg, len, fds, numbers[i]) == 0)
			MUST(t, drain(&session, HX_WAIT_MS), "%u descriptors: no hang-up",
			     numbers[i]);
		/* Had the daemon one of them, the pipe would not end. */
		close(pipefd[1]);
		fcntl(pipefd[0], F_SETFL, O_NONBLOCK);
		MUST(t, read(pipefd[0], msg, 1) == 0, "%u descriptors: the daemon keeps some",
		     numbers[i]);
		close(pipefd[0]);
		hx_close(&session);
	}
}

/* Requests without end, no reply read: memory is bounded and nobody waits. */
static void
sock_flood(struct hostile *t)
{
	unsigned int op = RING_CTRL_QUERY_DEVICE;
	uint64_t end = hx_now_ms() + 1500;
	size_t len = ring_ctrl_size(op, 400, true);
	int full = 0;

	if (!open_session(t, &session))
		return;
	ring_ctrl_hdr_init((struct ring_ctrl_hdr *)msg, op, 0, 1, 400);
	memset(msg + sizeof(struct ring_ctrl_hdr), 0, len);
	while (hx_now_ms() < end && full < 100) {
		int ret = hx_send_raw(&session, msg, len, NULL, 0);

		if (ret == -EPIPE)
			break;
		if (ret == -EAGAIN) {
			full++;
			poll(NULL, 0, 1);
		}
	}
	if (hostile_below(t, 2))
		raise(SIGKILL);
	hx_close(&session);
}

static void
sock_half_close(struct hostile *t)
{
	for (int i = 0; i < 9; i++) {
		unsigned int op;

		if (!open_session(t, &session))
			return;
		for (int k = 0; k < 4; k++)
			hx_send_raw(&session, msg, some_request(t, msg, &op), NULL, 0);
		shutdown(session.sock, i % 3 == 0 ? SHUT_WR : i % 3 == 1 ? SHUT_RD : SHUT_RDWR);
		if (hostile_below(t, 2))
			drain(&session, 100);
		hx_close(&session);
	}
}

/* Connections that say nothing, and ones that stop in the middle of HELLO. */
static void
sock_many(struct hostile *t)
{
	static struct hx h;
	int socks[200], n = 0;

	while (n < 200) {
		struct ring_ctrl_hello_req req = {.pid = 1};

		if (hx_connect(&h, t->socket))
			break;
		if (n & 1)
			hx_request(&h, RING_CTRL_HELLO, 1, &req, NULL);
		socks[n++] = h.sock;
	}
	if (hostile_below(t, 2))
		raise(SIGKILL);
	while (n > 0)
		close(socks[--n]);
}

/* Frames with the flags and ids of another direction; replies of the daemon's own sent back. */
static void
sock_replay(struct hostile *t)
{
	static const unsigned int ops[] = {RING_CTRL_ARENA, RING_CTRL_BELLS, RING_CTRL_EVENT,
					   RING_CTRL_HELLO, RING_CTRL_CREATE_QP};

	for (int i = 0; i < 15; i++) {
		unsigned int op = ops[(uint32_t)i % (sizeof(ops) / sizeof(ops[0]))];

		if (!open_session(t, &session))
			return;
		ring_ctrl_hdr_init((struct ring_ctrl_hdr *)msg, op, (unsigned int)(i % 4), 1, 1);
		memset(msg + sizeof(struct ring_ctrl_hdr), 0, 1024);
		hx_send_raw(&session, msg, ring_ctrl_size(op, 1, false), NULL, 0);
		hostile_alive(t, &session);
		hx_close(&session);
	}
}

/* Many threads' worth of ids: all the same, answered all the same. */
static void
sock_same_id(struct hostile *t)
{
	struct ring_ctrl_empty_req req[64] = {0};
	struct ring_ctrl_hdr hdr;
	int replies = 0;

	if (!open_session(t, &session))
		return;
	for (int i = 0; i < 64; i++) {
		session.next_id = 5;
		if (hx_request(&session, RING_CTRL_ALLOC_PD, 1 + hostile_below(t, 64), req, NULL))
			break;
	}
	while (replies < 64) {
		int ret = hx_receive(&session, &hdr, HX_WAIT_MS);

		if (ret < 0) {
			FAULT(t, "%d of 64 replies, then %d", replies, ret);
			break;
		}
		replies += ret == 0;
	}
	hx_close(&session);
}

const struct hostile_case hostile_sock_cases[] = {
	{"sock_garbage", sock_garbage, "random bytes as datagrams", false},
	{"sock_header", sock_header, "one hostile field in a header", false},
	{"sock_version", sock_version, "another major version", false},
	{"sock_truncate", sock_truncate, "messages too short or too long", false},
	{"sock_early", sock_early, "every operation before HELLO", false},
	{"sock_hello", sock_hello, "hostile, pipelined and second HELLOs", false},
	{"sock_fds", sock_fds, "descriptors that nobody asked for", false},
	{"sock_flood", sock_flood, "requests without reading replies", false},
	{"sock_half_close", sock_half_close, "half of the socket closed", false},
	{"sock_many", sock_many, "connections that say little", false},
	{"sock_replay", sock_replay, "the daemon's own frames sent back", false},
	{"sock_same_id", sock_same_id, "one id for all requests", false},
	{NULL, NULL, NULL, false},
};
