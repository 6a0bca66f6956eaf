/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The admin socket: one JSON object a line, one answer a line, on the control thread, which
 * must not wait: nothing is read from a connection while an answer to it has not left.
 * Open to root and to the daemon's own user.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rnicd_admin_priv.h"

#define MAX_CONNS 16
#define MAX_REQUEST 4096
#define REST_NS 100000000 /* without descriptors, until accept() is tried again */

struct rnicd_admin_conn {
	LIST_ENTRY(rnicd_admin_conn) link;
	struct rnicd_admin *adm;
	int fd; /* -1: closed, kept for an answer that is on its way */
	uint32_t holds;
	bool waiting; /* for the answer of a command that takes time */
	bool running; /* conn_run() is below us on the stack */
	size_t in_len, out_len, out_sent;
	char *out;
	char in[MAX_REQUEST];
};

struct rnicd_admin {
	struct rnicd *r;
	int fd;
	bool resting;
	uint64_t due; /* ns */
	uint32_t num_conns;
	LIST_HEAD(, rnicd_admin_conn) conns;
};

/* ---- connections ---------- */

static void
conn_events(struct rnicd_admin_conn *c)
{
	struct epoll_event ev = {.data.ptr = c};

	if (c->out != NULL)
		ev.events = EPOLLOUT;
	else if (!c->waiting)
		ev.events = EPOLLIN;
	epoll_ctl(c->adm->r->epfd, EPOLL_CTL_MOD, c->fd, &ev);
}

static void
conn_close(struct rnicd_admin_conn *c)
{
	if (c->fd < 0)
		return;
	close(c->fd);
	c->fd = -1;
	LIST_REMOVE(c, link);
	c->adm->num_conns--;
	free(c->out);
	c->out = NULL;
	if (c->holds == 0)
		free(c);
}

void
rnicd_admin_hold(struct rnicd_admin_conn *c)
{
	c->holds++;
	c->waiting = true;
}

void
rnicd_admin_release(struct rnicd_admin_conn *c)
{
	if (--c->holds == 0 && c->fd < 0)
		free(c);
}

/* @return false: closed. */
static bool
conn_flush(struct rnicd_admin_conn *c)
{
	ssize_t n;

	while (c->out != NULL) {
		n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n < 0) {
			conn_close(c);
			return false;
		}
		c->out_sent += (size_t)n;
		if (c->out_sent == c->out_len) {
			free(c->out);
			c->out = NULL;
		}
	}
	return true;
}

/* Puts the line into `out` alone: the caller flushes. */
static void
conn_put(struct rnicd_admin_conn *c, json_t *answer)
{
	char *text = json_dumps(answer, JSON_COMPACT | JSON_ENSURE_ASCII);
	size_t len = text != NULL ? strlen(text) : 0;

	json_decref(answer);
	c->out = malloc(len + 2);
	if (c->out == NULL) {
		free(text);
		return;
	}
	memcpy(c->out, text != NULL ? text : "", len);
	c->out[len] = '\n';
	c->out_len = len + 1;
	c->out_sent = 0;
	free(text);
}

static void
conn_line(struct rnicd_admin_conn *c, const char *line, size_t len)
{
	json_error_t je;
	json_t *request = json_loadb(line, len, 0, &je), *answer;

	if (!json_is_object(request))
		answer = rnicd_admin_error("not a JSON object: %s", request ? "" : je.text);
	else
		answer = rnicd_admin_command(c->adm->r, c, request);
	json_decref(request);
	if (answer != NULL)
		conn_put(c, answer);
}

/* Handle the lines that are there, one answer at a time. */
static void
conn_run(struct rnicd_admin_conn *c)
{
	c->running = true;
	while (c->out == NULL && !c->waiting) {
		char *end = memchr(c->in, '\n', c->in_len);
		size_t used;

		if (end == NULL && c->in_len == sizeof(c->in)) {
			conn_close(c); /* a line without end */
			return;
		}
		if (end == NULL)
			break;
		c->holds++; /* an answer at once does not free it under our feet */
		used = (size_t)(end - c->in) + 1;
		conn_line(c, c->in, used - 1);
		c->in_len -= used;
		memmove(c->in, c->in + used, c->in_len);
		c->holds--;
		if (!conn_flush(c))
			return;
	}
	c->running = false;
	conn_events(c);
}

void
rnicd_admin_answer(struct rnicd_admin_conn *c, json_t *answer)
{
	c->waiting = false;
	if (c->fd < 0) {
		json_decref(answer);
		return;
	}
	conn_put(c, answer);
	if (!c->running && conn_flush(c))
		conn_run(c);
}

static void
conn_ready(struct rnicd_admin_conn *c, uint32_t events)
{
	ssize_t n;

	if (!conn_flush(c))
		return;
	if (c->out == NULL && !c->waiting && (events & EPOLLIN)) {
		n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			conn_close(c);
			return;
		}
		c->in_len += n > 0 ? (size_t)n : 0;
	} else if (events & (EPOLLHUP | EPOLLERR)) {
		conn_close(c);
		return;
	}
	conn_run(c);
}

/* ---- listening ---------- */

static bool
may_use(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       (cred.uid == 0 || cred.uid == geteuid());
}

static void
refuse(int fd, const char *why)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "{\"ok\":false,\"error\":\"%s\"}\n", why);

	if (send(fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		RNICD_LOG(DEBUG, "admin: %s", strerror(errno));
	close(fd);
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void
listen_for(struct rnicd_admin *a, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = a};

	epoll_ctl(a->r->epfd, EPOLL_CTL_MOD, a->fd, &ev);
}

/* Who waits there keeps the socket readable, and the control thread awake, for nothing. */
static void
rest(struct rnicd_admin *a)
{
	if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
		return;
	RNICD_LOG(WARNING, "admin: accept: %s", strerror(errno));
	listen_for(a, 0);
	a->resting = true;
	a->due = now_ns() + REST_NS;
}

void
rnicd_admin_tick(struct rnicd *r)
{
	struct rnicd_admin *a = r->adm;

	if (!a->resting || now_ns() < a->due)
		return;
	a->resting = false;
	listen_for(a, EPOLLIN);
}

/*
 * One a round: between two of them those that have hung up are seen, and do not count against
 * the limit.
 */
void
rnicd_admin_accept(struct rnicd *r)
{
	struct rnicd_admin *a = r->adm;
	int fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct epoll_event ev = {.events = EPOLLIN};
	struct rnicd_admin_conn *c;

	if (fd < 0) {
		rest(a);
		return;
	}
	if (!may_use(fd)) {
		refuse(fd, "only root and the daemon's user may");
		return;
	}
	c = a->num_conns < MAX_CONNS ? calloc(1, sizeof(*c)) : NULL;
	if (c == NULL) {
		refuse(fd, "too many connections");
		return;
	}
	c->adm = a;
	c->fd = fd;
	ev.data.ptr = c;
	LIST_INSERT_HEAD(&a->conns, c, link);
	a->num_conns++;
	if (epoll_ctl(a->r->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		conn_close(c);
}

/* An event of a connection that another event of the same round has closed is left alone. */
void
rnicd_admin_ready(struct rnicd *r, void *source, uint32_t events)
{
	struct rnicd_admin_conn *c;

	LIST_FOREACH(c, &r->adm->conns, link)
		if (c == source) {
			conn_ready(c, events);
			return;
		}
}

int
rnicd_admin_open(struct rnicd *r, struct rnicd_error *err)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct rnicd_admin *a = calloc(1, sizeof(*a));
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = a};

	if (a == NULL)
		return rnicd_fail(err, "no memory");
	r->adm = a;
	a->r = r;
	LIST_INIT(&a->conns);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", r->conf.admin);
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0 || bind(a->fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0 ||
	    chmod(sun.sun_path, 0600) < 0 || listen(a->fd, 128) < 0 ||
	    epoll_ctl(r->epfd, EPOLL_CTL_ADD, a->fd, &ev) < 0)
		return rnicd_fail(err, "cannot listen on %s: %s", r->conf.admin, strerror(errno));
	return 0;
}

void
rnicd_admin_close(struct rnicd *r)
{
	struct rnicd_admin *a = r->adm;
	struct rnicd_admin_conn *c;

	if (a == NULL)
		return;
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
	while ((c = LIST_FIRST(&a->conns)) != NULL) {
		conn_flush(c); /* the answer to `shutdown` */
		if (c == LIST_FIRST(&a->conns))
			conn_close(c);
	}
	/* kept until the process ends: a connection with an answer on its way points to it */
}
