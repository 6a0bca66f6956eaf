/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side channel: a TCP connection over which two programs tell each other their QPs. The
 * address line is that of ibv_rc_pingpong, its closing zero byte included:
 *
 *   client -> server  LID:QPN:PSN:GID
 *   server -> client  its own, when its QP is in RTS
 *   client -> server  "done" and a zero byte, when its QP is in RTS
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ex.h"

static void
set_up(struct ex_conn *c, int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->fd = fd;
	c->in = fdopen(dup(fd), "r");
	if (!c->in)
		ex_fail("connection: %s", strerror(errno));
}

/** Both families on one socket, where the machine has IPv6. */
int
ex_listen(unsigned int port, unsigned int *bound)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int one = 1, off = 0, rc;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		rc = bind(fd, (struct sockaddr *)&a6, sizeof(a6));
	} else {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		rc = bind(fd, (struct sockaddr *)&a4, sizeof(a4));
	}
	if (rc != 0 || listen(fd, 64) != 0 || getsockname(fd, (struct sockaddr *)&name, &len) != 0)
		ex_fail("cannot listen on port %u: %s", port, strerror(errno));
	/* the port is at the same place in both families */
	if (bound)
		*bound = ntohs(((struct sockaddr_in *)&name)->sin_port);
	return fd;
}

void
ex_accept(struct ex_conn *c, int listener)
{
	int fd;

	do
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		ex_fail("accept: %s", strerror(errno));
	set_up(c, fd);
}

void
ex_dial(struct ex_conn *c, const char *host, unsigned int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *ai;
	char service[8];
	int rc, fd = -1;

	snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(host, service, &hints, &list);
	if (rc != 0)
		ex_fail("%s: %s", host, gai_strerror(rc));
	for (ai = list; ai; ai = ai->ai_next) {
		fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, ai->ai_protocol);
		if (fd >= 0 && connect(fd, ai->ai_addr, ai->ai_addrlen) == 0)
			break;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		ex_fail("no connection to %s port %u: %s", host, port, strerror(errno));
	set_up(c, fd);
}

void
ex_hang_up(struct ex_conn *c)
{
	if (c->in)
		fclose(c->in);
	if (c->fd > 0)
		close(c->fd);
	*c = (struct ex_conn){ 0 };
}

static void
put_bytes(struct ex_conn *c, const void *p, size_t len)
{
	if (send(c->fd, p, len, MSG_NOSIGNAL) != (ssize_t)len)
		ex_fail("the peer has gone");
}

void
ex_put_address(struct ex_conn *c, const struct ex_address *a)
{
	char msg[EX_ADDRESS_LEN];
	int n = snprintf(msg, sizeof(msg), "%04x:%06x:%06x:", a->lid, a->qpn, a->psn);

	for (int i = 0; i < 16; i++)
		n += snprintf(msg + n, sizeof(msg) - (size_t)n, "%02x", a->gid.raw[i]);
	put_bytes(c, msg, sizeof(msg));
}

void
ex_get_address(struct ex_conn *c, struct ex_address *a)
{
	char msg[EX_ADDRESS_LEN], gid[33];
	unsigned int byte;

	if (fread(msg, 1, sizeof(msg), c->in) != sizeof(msg))
		ex_fail("the peer has gone");
	if (msg[EX_ADDRESS_LEN - 1] ||
	    sscanf(msg, "%x:%x:%x:%32s", &a->lid, &a->qpn, &a->psn, gid) != 4 ||
	    strspn(gid, "0123456789abcdefABCDEF") != 32)
		ex_fail("the peer's address makes no sense");
	for (int i = 0; i < 16 && sscanf(gid + 2 * i, "%2x", &byte) == 1; i++)
		a->gid.raw[i] = (uint8_t)byte;
}

void
ex_join(struct ex_conn *c, bool server, struct ex_device *d, struct rnic_qp *qp,
	const struct ex_path *path, struct ex_address *peer)
{
	struct ex_address own = ex_own_address(d, qp);
	char done[sizeof("done")];

	ex_print_address("local", &own);
	if (server) {
		ex_get_address(c, peer);
		ex_connect_qp(d, qp, path, &own, peer);
		ex_put_address(c, &own);
		if (fread(done, 1, sizeof(done), c->in) != sizeof(done))
			ex_fail("the peer has gone");
	} else {
		ex_put_address(c, &own);
		ex_get_address(c, peer);
		ex_connect_qp(d, qp, path, &own, peer);
		put_bytes(c, "done", sizeof(done));
	}
	ex_print_address("remote", peer);
}

void
ex_say(struct ex_conn *c, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || n >= (int)sizeof(line) - 1)
		ex_fail("line too long");
	line[n++] = '\n';
	put_bytes(c, line, (size_t)n);
}

bool
ex_hear(struct ex_conn *c, char *line, size_t size)
{
	if (!fgets(line, (int)size, c->in))
		return false;
	line[strcspn(line, "\n")] = 0;
	return true;
}
