/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's connection, from accept to the last of its objects. Everything that it sends is
 * hostile until checked: whoever sends nonsense, does not read, or queues without end is cut off,
 * alone. What it had is taken down in the order QPs, MRs, SRQs, CQs, the rest, context, arenas;
 * each step waits for workers without making anybody else wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "copier.h"
#include "ctl_call.h"

#define READS 16			  /* messages of a client before the others' turn */
#define MAX_QUEUE (16u << 20)		  /* bytes of requests that wait for memory */
#define MAX_ELEMS 16384			  /* elements under way before it is read on */
#define MAX_OUT (4u << 20)		  /* bytes that it has not read */
#define PAUSE_OUT (256u << 10)		  /* with so many its requests are not read */
#define MAX_CLIENTS_UID 1024

/* ---- sending ---------- */

static void
want(struct ctl_client *c)
{
	uint32_t events = 0;

	if (c->state == CTL_CLIENT_DYING)
		return;
	/* While a request waits for the answer to an arena, that answer must be read. */
	if (c->out_bytes < PAUSE_OUT && !c->ready && (c->stalled || c->num_elems < MAX_ELEMS))
		events |= EPOLLIN;
	if (!STAILQ_EMPTY(&c->out))
		events |= EPOLLOUT;
	if (events != c->wanted)
		ctl_source_mod(c->dev, &c->sock, events);
	c->wanted = events;
}

static void
out_free(struct ctl_client *c, struct ctl_out *o)
{
	for (uint32_t i = 0; i < o->num_fds; i++)
		close(o->fds[i]);
	ctl_user_fds_put(c->user, o->num_fds);
	free(o);
}

/* The message's descriptors, until it can be sent. */
static bool
out_fds(struct ctl_client *c, struct ctl_out *o, const int *fds, uint32_t n)
{
	for (o->num_fds = 0; o->num_fds < n; o->num_fds++) {
		if (ctl_user_fds(c->dev, c->user, 1) < 0)
			return false;
		o->fds[o->num_fds] = fcntl(fds[o->num_fds], F_DUPFD_CLOEXEC, 0);
		if (o->fds[o->num_fds] < 0) {
			ctl_user_fds_put(c->user, 1);
			return false;
		}
	}
	return true;
}

static void
out_queue(struct ctl_client *c, const void *msg, size_t len, const int *fds)
{
	const struct ring_ctrl_hdr *h = msg;
	struct ctl_out *o;

	if (c->out_bytes + len > MAX_OUT) {
		ctl_client_kill(c, "does not read its socket");
		return;
	}
	o = malloc(sizeof(*o) + len);
	if (o == NULL) {
		ctl_client_kill(c, "no memory for its messages");
		return;
	}
	o->len = (uint32_t)len;
	memcpy(o->data, msg, len);
	if (!out_fds(c, o, fds, h->num_fds)) {
		out_free(c, o);
		ctl_client_kill(c, "no file descriptors left");
		return;
	}
	STAILQ_INSERT_TAIL(&c->out, o, link);
	c->out_bytes += len;
}

void
ctl_client_send(struct ctl_client *c, const void *msg, size_t len, const int *fds)
{
	int err = -EAGAIN;

	if (c->state == CTL_CLIENT_DYING)
		return;
	if (STAILQ_EMPTY(&c->out))
		err = ring_ctrl_send(c->sock.fd, msg, len, fds);
	if (err == -EAGAIN)
		out_queue(c, msg, len, fds);
	else if (err < 0)
		ctl_client_kill(c, "closed its socket");
	want(c);
}

void
ctl_client_push(struct ctl_client *c, unsigned int op, const void *body, const int *fd)
{
	struct {
		struct ring_ctrl_hdr h;
		uint8_t body[sizeof(struct ring_ctrl_bells)]; /* the largest push */
	} msg;
	size_t len = ring_ctrl_size(op, 1, false);

	ring_ctrl_hdr_init(&msg.h, op, RING_CTRL_PUSH, c->push_id++, 1);
	msg.h.num_fds = fd != NULL;
	memcpy(msg.body, body, ring_ctrl_info(op)->reply_size);
	ctl_client_send(c, &msg, len, fd);
}

static void
out_flush(struct ctl_client *c)
{
	struct ctl_out *o;

	while ((o = STAILQ_FIRST(&c->out)) != NULL) {
		int err = ring_ctrl_send(c->sock.fd, o->data, o->len, o->fds);

		if (err == -EAGAIN)
			break;
		if (err < 0) {
			ctl_client_kill(c, "closed its socket");
			return;
		}
		STAILQ_REMOVE_HEAD(&c->out, link);
		c->out_bytes -= o->len;
		out_free(c, o);
	}
	want(c);
}

/* ---- receiving ---------- */

/* A refusal of the whole request: a header alone. */
static void
refuse(struct ctl_client *c, const struct ring_ctrl_hdr *h, int status)
{
	struct ring_ctrl_hdr r;

	ring_ctrl_hdr_init(&r, h->op, RING_CTRL_REPLY, h->id, 0);
	r.status = status;
	ctl_client_send(c, &r, sizeof(r), NULL);
}

static bool
may_now(const struct ctl_client *c, unsigned int op)
{
	if (op == RING_CTRL_LIST_DEVICE)
		return true;
	if (op == RING_CTRL_HELLO)
		return c->state == CTL_CLIENT_NEW;
	return c->state == CTL_CLIENT_OPEN;
}

static void
take(struct ctl_client *c, void *msg, size_t len)
{
	const struct ring_ctrl_hdr *h = msg;
	int err = ring_ctrl_check(msg, len, true);

	if (err == -EPROTONOSUPPORT) {
		refuse(c, h, err);
		ctl_client_kill(c, "speaks another version of the protocol");
	} else if (err == -EOPNOTSUPP) {
		refuse(c, h, err);
	} else if (err < 0) {
		ctl_client_kill(c, "sent a malformed message");
	} else if (h->op == RING_CTRL_ARENA_MAPPED) {
		ctl_arena_mapped(c, ring_ctrl_body(msg));
	} else if (!ctl_op_known(h->op)) {
		refuse(c, h, -EOPNOTSUPP);
	} else if (!may_now(c, h->op)) {
		ctl_client_kill(c, "sent a request out of turn");
	} else if (c->queue_bytes > MAX_QUEUE) {
		ctl_client_kill(c, "queues requests without end");
	} else if (ctl_call_new(c, h, ring_ctrl_body(msg)) == NULL) {
		refuse(c, h, -ENOMEM);
	} else {
		if (h->op == RING_CTRL_HELLO)
			c->state = CTL_CLIENT_HELLO;
		ctl_client_run(c);
	}
}

static void
client_ready(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	struct ctl_client *c = (struct ctl_client *)s;

	if (events & EPOLLOUT)
		out_flush(c);
	c->spent = c->ready ? c->spent : 0;
	for (int i = 0; i < READS && c->state != CTL_CLIENT_DYING && (c->wanted & EPOLLIN) &&
		!ctl_client_spent(c); i++) {
		/* No request carries descriptors: with room for none they are all closed. */
		ptrdiff_t n = ring_ctrl_recv(c->sock.fd, d->rx_buf, RING_CTRL_MAX_LEN, NULL, 0);

		if (n == -EAGAIN)
			break;
		c->spent += 1 + (n > 0 ? (uint32_t)n / CTL_CLEAR_UNIT : 0);
		if (n > 0)
			take(c, d->rx_buf, (size_t)n);
		else
			ctl_client_kill(c, n == -EBADMSG ? "sent a malformed message" : NULL);
		want(c);
	}
	if ((events & (EPOLLHUP | EPOLLERR)) && !(events & EPOLLIN))
		ctl_client_kill(c, NULL);
}

static void
turn_over(struct ctl_client *c)
{
	if (!c->ready)
		return;
	TAILQ_REMOVE(&c->dev->ready, c, ready_link);
	c->dev->num_ready--;
	c->ready = false;
}

/* Each once: who is not done then is behind the others again. */
void
ctl_clients_run(struct worker_device *d)
{
	struct ctl_client *c;

	for (uint32_t n = d->num_ready; n > 0 && (c = TAILQ_FIRST(&d->ready)) != NULL; n--) {
		turn_over(c);
		c->spent = 0;
		ctl_client_run(c);
		want(c);
	}
}

/*
 * The session is the process's that connected: whoever else holds the socket, a forked child above
 * all, does not keep it alive.
 */
static void
proc_ready(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	(void)d;
	(void)events;
	ctl_client_kill((struct ctl_client *)((uint8_t *)s - offsetof(struct ctl_client, proc)),
		NULL);
}

/* ---- birth ---------- */

#define GROUPS 65536 /* NGROUPS_MAX of the kernel */

static int
identify_groups(struct ctl_client *c, int fd)
{
	socklen_t len = GROUPS * sizeof(gid_t);

	c->groups = malloc(len);
	if (c->groups == NULL)
		return -ENOMEM;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, c->groups, &len) < 0)
		return -errno;
	c->num_groups = len / sizeof(gid_t);
	return 0;
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/*
 * Of the process that connected, or -errno. By its number alone it may be another's already that
 * has the number now.
 */
static int
peer_pidfd(int fd, pid_t pid)
{
	socklen_t len = sizeof(int);
	int pidfd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
	if (errno == ENOPROTOOPT)
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	else if (errno == EINVAL)
		errno = ESRCH; /* how 6.5 says that it is no more */
	return pidfd >= 0 ? pidfd : -errno;
}

/* Who it is, as the kernel says. A pid of 0 is one that has no name in our pid namespace. */
static int
identify(struct ctl_client *c, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	c->pid = cred.pid > 0 ? cred.pid : 0;
	c->uid = cred.uid;
	c->gid = cred.gid;
	if (c->pid != 0)
		c->pidfd = peer_pidfd(fd, c->pid);
	if (c->pidfd == -ESRCH)
		return -ESRCH; /* it is no more */
	if (c->pidfd < 0) {
		c->pid = 0;
		c->pidfd = -1;
	}
	c->proc.fd = c->pidfd;
	c->proc.ready = proc_ready;
	return identify_groups(c, fd);
}

/* What every client has open here: socket, pidfd, a lane's two, an eventfd a worker. */
static uint32_t
own_fds(const struct worker_device *d)
{
	return 4 + d->sh.num_workers;
}

/* Its uid's share of clients and of what each of them has open. */
static int
admit(struct worker_device *d, struct ctl_client *c)
{
	int err = c->user->clients > MAX_CLIENTS_UID ? -EDQUOT
						      : ctl_user_fds(d, c->user, own_fds(d));

	if (err < 0)
		return err;
	err = ctl_source_add(d, &c->sock, EPOLLIN);
	if (err < 0)
		ctl_user_fds_put(c->user, own_fds(d));
	return err;
}

int
ctl_client_new(struct worker_device *d, int fd)
{
	struct ctl_client *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	if (c == NULL)
		goto close_fd;
	c->dev = d;
	c->sock.fd = fd;
	c->sock.ready = client_ready;
	c->stall.resume = ctl_client_resume;
	TAILQ_INIT(&c->queue);
	TAILQ_INIT(&c->calls);
	STAILQ_INIT(&c->out);
	TAILQ_INIT(&c->waits);
	for (int i = 0; i < CTL_KINDS; i++) {
		TAILQ_INIT(&c->objs[i]);
		TAILQ_INIT(&c->dying[i]);
	}
	c->pidfd = -1;
	err = identify(c, fd);
	if (err < 0)
		goto close_pidfd;
	c->user = ctl_user_get(d, c->uid);
	err = -ENOMEM;
	if (c->user == NULL)
		goto close_pidfd;
	err = admit(d, c);
	if (err < 0)
		goto put_user;
	err = c->proc.fd >= 0 ? ctl_source_add(d, &c->proc, EPOLLIN) : 0;
	if (err < 0)
		goto del_sock;
	c->wanted = EPOLLIN;
	c->id = d->next_ctx++;
	TAILQ_INSERT_TAIL(&d->clients, c, link);
	d->num_clients++;
	return 0;
del_sock:
	ctl_source_del(d, &c->sock);
	ctl_user_fds_put(c->user, own_fds(d));
put_user:
	ctl_user_put(c->user);
close_pidfd:
	if (c->pidfd >= 0)
		close(c->pidfd);
	free(c->groups);
	free(c);
close_fd:
	close(fd);
	return err;
}

/* ---- death ---------- */

void
ctl_client_reap(struct ctl_client *c)
{
	if (c->state == CTL_CLIENT_DYING && !c->reap) {
		c->reap = true;
		TAILQ_INSERT_TAIL(&c->dev->reap, c, reap_link);
	}
}

void
ctl_client_kill(struct ctl_client *c, const char *why)
{
	struct ctl_out *o;

	if (c->state == CTL_CLIENT_DYING)
		return;
	if (why != NULL) {
		c->dev->cut_off++;
		LOG_LIMITED(&c->dev->cut_off_told, ctl_log, NOTICE,
			"context %u (pid %d, uid %u) is cut off: it %s", c->id, (int)c->pid,
			(unsigned int)c->uid, why);
	}
	c->why = why;
	turn_over(c);
	c->state = CTL_CLIENT_DYING;
	c->user->dying++;
	ctl_source_del(c->dev, &c->sock);
	if (c->proc.fd >= 0)
		ctl_source_del(c->dev, &c->proc);
	close(c->sock.fd);
	c->sock.fd = -1;
	while ((o = STAILQ_FIRST(&c->out)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->out, link);
		out_free(c, o);
	}
	c->out_bytes = 0;
	ctl_client_reap(c);
}

/*
 * Destroy some of a kind: a turn's worth, and while not too many are on their way, since others'
 * messages to the workers would queue behind them. Who would not go yet (a region under windows)
 * is last again; when none would, the next that is gone makes us look.
 * @return whether some are left for the moment.
 */
static bool
reap_kind(struct ctl_client *c, enum ctl_kind kind, void (*destroy)(struct ctl_obj *))
{
	struct ctl_obj_list *all = &c->objs[kind];
	struct ctl_obj *o;

	for (uint32_t n = 0; n < CTL_REAP_TURN && c->num_dying[kind] < CTL_REAP_UNDERWAY &&
		c->reap_vain < c->num_objs[kind]; n++) {
		o = TAILQ_FIRST(all);
		TAILQ_REMOVE(all, o, link);
		TAILQ_INSERT_TAIL(all, o, link);
		c->reap_vain++;
		destroy(o);
	}
	if (c->reap_vain < c->num_objs[kind] && c->num_dying[kind] < CTL_REAP_UNDERWAY)
		ctl_client_reap(c); /* there is more to begin */
	return c->num_objs[kind] + c->num_dying[kind] != 0;
}

/* @return true: nothing is left, the client is freed. */
static bool
reap_step(struct ctl_client *c)
{
	ctl_client_drop_queue(c);
	ctl_wait_wake(c, -ECONNRESET);
	ctl_resolves_cancel(c);
	ctl_ahs_cancel(c);
	/* Peers are told before the QPs go. */
	if (reap_kind(c, CTL_CM_ID, ctl_cm_id_destroy) ||
		reap_kind(c, CTL_CM_CHANNEL, ctl_cm_channel_destroy))
		return false;
	if (reap_kind(c, CTL_QP, ctl_qp_destroy) || reap_kind(c, CTL_OPEN, ctl_open_destroy) ||
		reap_kind(c, CTL_AH, ctl_ah_destroy))
		return false;
	/* The helper's jobs hold regions and PDs, by references that this does not ask for. */
	if (c->jobs != 0)
		return false;
	if (reap_kind(c, CTL_MR, ctl_mr_destroy))
		return false;
	if (reap_kind(c, CTL_SRQ, ctl_srq_destroy))
		return false;
	if (reap_kind(c, CTL_CQ, ctl_cq_destroy))
		return false;
	if (reap_kind(c, CTL_CHANNEL, ctl_channel_destroy) ||
		reap_kind(c, CTL_MEM, ctl_mem_destroy) || reap_kind(c, CTL_PD, ctl_pd_destroy) ||
		reap_kind(c, CTL_XRCD, ctl_xrcd_destroy))
		return false;
	if (c->ctx != NULL) {
		ctl_context_del(c);
		return false;
	}
	return TAILQ_EMPTY(&c->calls) && ctl_arenas_free(c);
}

/* What its uid has is less again: who was short of it may try again. */
static void
user_relieved(struct worker_device *d, struct ctl_user *u)
{
	struct ctl_client *c;

	if (!u->waits)
		return;
	u->waits = false;
	TAILQ_FOREACH(c, &d->clients, link) {
		if (c->user == u && c->state != CTL_CLIENT_DYING)
			ctl_wait_wake(c, 0);
	}
}

/* It is no longer one whose going its uid may wait for. */
static void
undying(struct ctl_client *c)
{
	if (!c->hangs)
		c->user->dying--;
	c->hangs = true;
	user_relieved(c->dev, c->user);
}

/* Nobody can say when it goes, if ever: who waits for what it has is refused. */
void
ctl_client_hangs(struct ctl_client *c, const char *why)
{
	ctl_client_kill(c, why);
	if (!c->hangs)
		undying(c);
}

static void
client_free(struct ctl_client *c)
{
	struct worker_device *d = c->dev;

	if (c->reap)
		TAILQ_REMOVE(&d->reap, c, reap_link);
	TAILQ_REMOVE(&d->clients, c, link);
	d->num_clients--;
	d->accept_due = 0; /* there are descriptors again */
	copier_lane_put(c->lane, c->user);
	ctl_map_fini(&c->mems);
	ctl_user_fds_put(c->user, own_fds(d));
	undying(c);
	ctl_user_put(c->user);
	if (c->pidfd >= 0)
		close(c->pidfd);
	free(c->groups);
	free(c->bell_free);
	free(c);
}

void
ctl_clients_reap(struct worker_device *d)
{
	struct ctl_reap_list all = TAILQ_HEAD_INITIALIZER(all);
	struct ctl_client *c;

	TAILQ_CONCAT(&all, &d->reap, reap_link);
	while ((c = TAILQ_FIRST(&all)) != NULL) {
		TAILQ_REMOVE(&all, c, reap_link);
		c->reap = false;
		if (reap_step(c))
			client_free(c);
	}
}
