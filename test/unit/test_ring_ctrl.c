/* SPDX-License-Identifier: BSD-3-Clause */
/* The control protocol: sizes, the check of a message's form, descriptors. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring_ctrl.h"

static _Alignas(8) uint8_t buf[RING_CTRL_MAX_LEN + 64];

static size_t
message(unsigned int op, unsigned int flags, unsigned int count, bool from_client)
{
	memset(buf, 0, sizeof(buf));
	ring_ctrl_hdr_init((struct ring_ctrl_hdr *)buf, op, flags, 7, count);
	return ring_ctrl_size(op, count, from_client);
}

/* Every operation, at its least and its most: accepted from its side, refused from the other. */
START_TEST(check__all_ops)
{
	const struct ring_ctrl_info *info = ring_ctrl_info((unsigned int)_i);
	unsigned int reply, counts[2];
	size_t len;

	if (!info) {
		len = message((unsigned int)_i, 0, 1, true);
		ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EOPNOTSUPP);
		return;
	}
	ck_assert_str_ne(info->name, "UNKNOWN");
	ck_assert_uint_ge(info->max_count, 1);
	ck_assert_uint_le(info->max_count, RING_CTRL_MAX_BATCH);
	ck_assert(info->push || info->request_size);
	ck_assert(info->notice || info->reply_size);
	reply = info->push ? RING_CTRL_PUSH : RING_CTRL_REPLY;
	counts[0] = 1;
	counts[1] = info->max_count;
	for (int i = 0; i < 2; i++) {
		len = message((unsigned int)_i, 0, counts[i], true);
		ck_assert_uint_le(len, RING_CTRL_MAX_LEN);
		ck_assert_int_eq(ring_ctrl_check(buf, len, true), info->push ? -EBADMSG : 0);
		ck_assert_int_eq(ring_ctrl_check(buf, len, false), -EBADMSG);
		ck_assert_int_eq(ring_ctrl_check(buf, len + 1, true), -EBADMSG);
		ck_assert_int_eq(ring_ctrl_check(buf, len - 1, true), -EBADMSG);
		len = message((unsigned int)_i, reply, counts[i], false);
		ck_assert_uint_le(len, RING_CTRL_MAX_LEN);
		ck_assert_int_eq(ring_ctrl_check(buf, len, false), info->notice ? -EBADMSG : 0);
		ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EBADMSG);
		ck_assert_int_eq(ring_ctrl_check(buf, len + 8, false), -EBADMSG);
	}
	len = message((unsigned int)_i, 0, info->max_count + 1u, true);
	ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EBADMSG);
	len = message((unsigned int)_i, 0, 0, true);
	ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EBADMSG);
}
END_TEST

START_TEST(check__header)
{
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)buf;
	size_t len = message(RING_CTRL_CREATE_CQ, 0, 1, true);

	ck_assert_int_eq(ring_ctrl_check(buf, len, true), 0);
	for (size_t n = 0; n < sizeof(*h); n++)
		ck_assert_int_eq(ring_ctrl_check(buf, n, true), -EBADMSG);
	ck_assert_int_eq(ring_ctrl_check(buf, RING_CTRL_MAX_LEN + 1, true), -EBADMSG);
	h->magic++;
	ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EBADMSG);
	h->magic--;
	h->major++;
	ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EPROTONOSUPPORT);
	h->major--;
	h->minor = 0xffff; /* a later minor is served */
	ck_assert_int_eq(ring_ctrl_check(buf, len, true), 0);
	h->op = 0xffff;
	ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EOPNOTSUPP);
	h->op = RING_CTRL_CM_LAST; /* reserved */
	ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EOPNOTSUPP);
	h->op = RING_CTRL_CREATE_CQ;
	for (unsigned int f = 1; f < 0x10000; f <<= 1) {
		h->flags = (uint16_t)f;
		ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EBADMSG);
	}
	h->flags = 0;
	h->status = -1;
	ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EBADMSG);
	h->status = 0;
	h->num_fds = 1; /* clients pass none */
	ck_assert_int_eq(ring_ctrl_check(buf, len, true), -EBADMSG);
}
END_TEST

START_TEST(check__refusal)
{
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)buf;

	message(RING_CTRL_CM_LAST, RING_CTRL_REPLY, 0, false);
	h->status = -EOPNOTSUPP;
	ck_assert_int_eq(ring_ctrl_check(buf, sizeof(*h), false), 0);
	ck_assert_int_eq(ring_ctrl_check(buf, sizeof(*h) + 8, false), -EBADMSG);
	ck_assert_int_eq(ring_ctrl_check(buf, sizeof(*h), true), -EOPNOTSUPP);
	h->op = RING_CTRL_HELLO;
	h->status = 5; /* positive is no status */
	ck_assert_int_eq(ring_ctrl_check(buf, sizeof(*h), false), -EBADMSG);
}
END_TEST

/* A thousand QPs go in one message (docs/abi.md). */
START_TEST(check__batches)
{
	static const unsigned int ops[] = {RING_CTRL_CREATE_QP, RING_CTRL_MODIFY_QP,
					   RING_CTRL_DESTROY_QP, RING_CTRL_QUERY_QP};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		ck_assert_uint_ge(ring_ctrl_info(ops[i])->max_count, 1000);
}
END_TEST

/* Random bytes: any answer but a crash or an acceptance of a wrong length. */
START_TEST(check__noise)
{
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)buf;
	uint32_t x = 12345;

	for (int i = 0; i < 200000; i++) {
		size_t len;

		for (size_t j = 0; j < sizeof(*h); j++) {
			x = x * 1664525 + 1013904223;
			buf[j] = (uint8_t)(x >> 24);
		}
		h->magic = RING_MAGIC;
		h->major = RING_ABI_MAJOR;
		h->op &= 0xff;
		h->count &= 0x7ff;
		if (i & 1)
			h->flags &= 3;
		x = x * 1664525 + 1013904223;
		len = (x >> 8) % 4096;
		if (ring_ctrl_check(buf, len, i & 2) == 0) {
			ck_assert_ptr_nonnull(ring_ctrl_info(h->op));
			if (h->count)
				ck_assert_uint_eq(len, ring_ctrl_size(h->op, h->count, i & 2));
		}
	}
}
END_TEST

static int sock[2];

static void
setup(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
}

static void
teardown(void)
{
	close(sock[0]);
	close(sock[1]);
}

static int
open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Send a message with `n` copies of a descriptor, which says `claimed`. */
static void
send_raw(size_t len, int n, uint16_t claimed)
{
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)buf;
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * 253)];
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	memset(control, 0, sizeof(control));
	h->num_fds = claimed;
	if (n) {
		struct cmsghdr *c;

		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n);
		for (int i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * (int)sizeof(int), &sock[0], sizeof(int));
	}
	ck_assert_int_eq(sendmsg(sock[0], &mh, MSG_NOSIGNAL), (ssize_t)len);
}

START_TEST(socket__passes_fds)
{
	size_t len = message(RING_CTRL_HELLO, RING_CTRL_REPLY, 1, false);
	int fds[RING_CTRL_MAX_FDS], got[RING_CTRL_MAX_FDS];
	int before = open_fds();

	((struct ring_ctrl_hdr *)buf)->num_fds = RING_CTRL_MAX_FDS;
	for (int i = 0; i < RING_CTRL_MAX_FDS; i++)
		fds[i] = sock[i & 1];
	ck_assert_int_eq(ring_ctrl_send(sock[0], buf, len, fds), 0);
	memset(buf, 0, sizeof(buf));
	ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, sizeof(buf), got, RING_CTRL_MAX_FDS),
			 (ptrdiff_t)len);
	ck_assert_int_eq(ring_ctrl_check(buf, len, false), 0);
	ck_assert_int_eq(open_fds(), before + RING_CTRL_MAX_FDS);
	for (int i = 0; i < RING_CTRL_MAX_FDS; i++) {
		ck_assert_int_eq(fcntl(got[i], F_GETFD), FD_CLOEXEC);
		close(got[i]);
	}
	ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, sizeof(buf), got, 1), -EAGAIN);
}
END_TEST

/* B170: descriptors nobody asked for, up to the most the kernel passes, are closed. */
START_TEST(socket__unexpected_fds)
{
	static const int num[] = {1, 2, 32, 33, 100, 253};
	static const uint16_t claimed[] = {0, 1, 253};
	int before = open_fds();
	int got[4];

	for (size_t i = 0; i < sizeof(num) / sizeof(num[0]); i++) {
		for (size_t j = 0; j < 3; j++) {
			/* room for some, for none; claimed right or wrong */
			for (unsigned int room = 0; room <= 4; room += 4) {
				if (num[i] == claimed[j] && (unsigned int)num[i] <= room)
					continue; /* that one is right */
				send_raw(message(RING_CTRL_ALLOC_PD, 0, 1, true), num[i],
					 claimed[j]);
				ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, sizeof(buf), got,
								room),
						 -EBADMSG);
				ck_assert_int_eq(open_fds(), before);
			}
		}
	}
}
END_TEST

/* A message of no bytes but with a descriptor is no end of the stream. */
START_TEST(socket__empty_with_fd)
{
	int before = open_fds();
	int got[1];

	for (unsigned int room = 0; room <= 1; room++) {
		message(RING_CTRL_ALLOC_PD, 0, 1, true);
		send_raw(0, 1, 1);
		ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, sizeof(buf), got, room), -EBADMSG);
		ck_assert_int_eq(open_fds(), before);
	}
}
END_TEST

/* Fewer than it says; too short for a header; longer than the buffer: nothing stays open. */
START_TEST(socket__wrong_messages)
{
	int before = open_fds();
	int got[4];
	size_t len = message(RING_CTRL_ALLOC_PD, 0, 1, true);

	send_raw(len, 1, 2);
	ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, sizeof(buf), got, 4), -EBADMSG);
	send_raw(len, 0, 1);
	ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, sizeof(buf), got, 4), -EBADMSG);
	send_raw(8, 1, 1);
	ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, sizeof(buf), got, 4), -EBADMSG);
	len = message(RING_CTRL_CREATE_CQ, 0, 4, true);
	send_raw(len, 1, 1);
	ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, len - 1, got, 4), -EBADMSG);
	ck_assert_int_eq(open_fds(), before);
}
END_TEST

START_TEST(socket__full_and_closed)
{
	size_t len = message(RING_CTRL_CREATE_CQ, 0, 1000, true);
	int n = 0, rc, got[1];

	while ((rc = ring_ctrl_send(sock[0], buf, len, NULL)) == 0)
		ck_assert_int_lt(n++, 100000);
	ck_assert_int_eq(rc, -EAGAIN);
	while (n--)
		ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, sizeof(buf), got, 0),
				 (ptrdiff_t)len);
	close(sock[0]);
	ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, sizeof(buf), got, 0), 0);
	ck_assert_int_eq(ring_ctrl_send(sock[1], buf, len, NULL), -EPIPE); /* and no SIGPIPE */
	sock[0] = -1;
}
END_TEST

/* The largest message passes a socket of default size. */
START_TEST(socket__largest)
{
	unsigned int max = ring_ctrl_info(RING_CTRL_MODIFY_QP)->max_count;
	size_t len = message(RING_CTRL_MODIFY_QP, 0, max, true);

	ck_assert_int_eq(ring_ctrl_send(sock[0], buf, len, NULL), 0);
	ck_assert_int_eq(ring_ctrl_recv(sock[1], buf, RING_CTRL_MAX_LEN, NULL, 0),
			 (ptrdiff_t)len);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ring_ctrl");
	TCase *tc = tcase_create("ctrl");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, check__all_ops, 0, RING_CTRL_OP_COUNT);
	tcase_add_test(tc, check__header);
	tcase_add_test(tc, check__refusal);
	tcase_add_test(tc, check__batches);
	tcase_add_test(tc, check__noise);
	tcase_add_test(tc, socket__passes_fds);
	tcase_add_test(tc, socket__unexpected_fds);
	tcase_add_test(tc, socket__empty_with_fd);
	tcase_add_test(tc, socket__wrong_messages);
	tcase_add_test(tc, socket__full_and_closed);
	tcase_add_test(tc, socket__largest);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
