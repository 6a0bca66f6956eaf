/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device and the control thread's loop: sockets, workers' messages, helpers and timers, all
 * in one epoll set. It sleeps by the protocol of ring_kick.h, so that workers need no system call
 * to reach it while it is awake.
 */
#include <bsd/stdlib.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "copier.h"
#include "ctl_priv.h"
#include "mapmem.h"
#include "pmd_glue.h"
#include "roce_ah.h"
#include "roce_mcast.h"

LOG_TYPE_DEFINE(ctl_log, lib.worker.ctl, NOTICE);

#define EVENTS 64
#define ACCEPTS 16 /* a turn */
#define POLL_NS UINT64_C(1000000)	  /* while something is polled for */
#define TIMEWAIT_NS UINT64_C(4000000000)  /* a QPN's: longer than packets live */
#define ACCEPT_NS UINT64_C(100000000)	  /* without descriptors, until accept() is tried again */
#define LANE_LIMIT_NS UINT64_C(3000000000)
#define MSGS 2047
#define REQUESTS 65536 /* messages that await a worker's answer */

/* ---- epoll ---------- */

int
ctl_source_add(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	return epoll_ctl(d->epfd, EPOLL_CTL_ADD, s->fd, &ev) < 0 ? -errno : 0;
}

void
ctl_source_mod(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	epoll_ctl(d->epfd, EPOLL_CTL_MOD, s->fd, &ev);
}

/* Events of this turn may still name it: it is not freed before the turn's end. */
void
ctl_source_del(struct worker_device *d, struct ctl_source *s)
{
	epoll_ctl(d->epfd, EPOLL_CTL_DEL, s->fd, NULL);
}

/* ---- listening ---------- */

struct ctl_listener {
	struct ctl_source src;
	LIST_ENTRY(ctl_listener) link;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static void
listener_ready(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	int fd = 0;

	(void)events;
	for (int i = 0; i < ACCEPTS && fd >= 0; i++) {
		fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			ctl_client_new(d, fd);
	}
	/* Who waits there still is told of in the next turn. */
	if (fd >= 0 || errno == EAGAIN || errno == ECONNABORTED)
		return;
	LOG_LIMITED(&d->accept_failed, ctl_log, WARNING, "accept: %s", strerror(errno));
	/* Who waits there keeps the socket readable, and us awake, until there is a descriptor. */
	ctl_source_mod(d, s, 0);
	d->accept_paused = true;
	d->accept_due = ctl_now(d) + ACCEPT_NS;
}

/* After a time, or when a client has gone with its descriptors. */
static void
listeners_resume(struct worker_device *d, uint64_t now)
{
	struct ctl_listener *l;

	if (!d->accept_paused || now < d->accept_due)
		return;
	d->accept_paused = false;
	LIST_FOREACH(l, &d->listeners, link)
		ctl_source_mod(d, &l->src, EPOLLIN);
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

/*
 * Clients send no descriptors, and none may even be queued: the last close of one in flight is
 * the receiver's, or that of whoever closes the socket with the message in it, and it can take
 * hours (a TCP socket with SO_LINGER). Accepted sockets inherit this from before they exist.
 */
static void
refuse_rights(int fd)
{
	int no = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no)) < 0)
		LOG(ctl_log, WARNING,
			"this kernel cannot refuse descriptors (Linux 6.16 can): a client may hold "
			"up the control thread with one whose close lingers");
}

/* A socket that nobody listens on any more is in the way of the next daemon. */
static int
clear_stale(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	/* A listener whose backlog is full has somebody too. */
	if (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 || errno == EAGAIN)
		err = -EADDRINUSE;
	else if (errno == ECONNREFUSED)
		unlink(sa->sun_path);
	close(fd);
	return err;
}

int
worker_ctl_listen(struct worker_device *d, const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct ctl_listener *l;
	int err;

	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	strcpy(sa.sun_path, path);
	err = clear_stale(&sa);
	if (err < 0)
		return err;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	strcpy(l->path, path);
	l->src.ready = listener_ready;
	l->src.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->src.fd >= 0)
		refuse_rights(l->src.fd);
	if (l->src.fd < 0 || bind(l->src.fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		err = -errno;
		goto close_fd;
	}
	if (chmod(path, 0666) < 0 || listen(l->src.fd, 128) < 0)
		err = -errno;
	else
		err = ctl_source_add(d, &l->src, EPOLLIN);
	if (err < 0)
		goto unlink_path;
	LIST_INSERT_HEAD(&d->listeners, l, link);
	return 0;
unlink_path:
	unlink(path);
close_fd:
	if (l->src.fd >= 0)
		close(l->src.fd);
	free(l);
	return err;
}

int
worker_ctl_attach(struct worker_device *d, int fd)
{
	return ctl_client_new(d, fd);
}

/* ---- other programs' descriptors ---------- */

struct ctl_watch {
	struct ctl_source src;
	SLIST_ENTRY(ctl_watch) link;
	void (*fn)(void *arg);
	void *arg;
};

static void
watch_ready(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	struct ctl_watch *w = (struct ctl_watch *)s;

	(void)d;
	(void)events;
	w->fn(w->arg);
}

int
worker_ctl_watch(struct worker_device *d, int fd, void (*ready)(void *arg), void *arg)
{
	struct ctl_watch *w = calloc(1, sizeof(*w));
	int err;

	if (w == NULL)
		return -ENOMEM;
	w->src.fd = fd;
	w->src.ready = watch_ready;
	w->fn = ready;
	w->arg = arg;
	err = ctl_source_add(d, &w->src, EPOLLIN);
	if (err < 0)
		free(w);
	else
		SLIST_INSERT_HEAD(&d->watches, w, link);
	return err;
}

/* ---- a sign of life ---------- */

struct ctl_ping {
	struct ctl_msg msg;
	uint64_t sent;
	void (*fn)(void *arg, uint64_t ns);
	void *arg;
};

static void
ping_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_ping *p = (struct ctl_ping *)m;

	p->fn(p->arg, ctl_now(d) - p->sent);
	free(p);
}

int
worker_ping(struct worker_device *d, uint32_t worker, void (*done)(void *arg, uint64_t ns),
	void *arg)
{
	struct ctl_ping *p;

	if (worker >= d->sh.num_workers)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	p->msg.m.type = WORKER_MSG_QUIESCE;
	p->msg.replied = ping_replied;
	p->sent = ctl_now(d);
	p->fn = done;
	p->arg = arg;
	ctl_msg_send(d, worker, &p->msg);
	return 0;
}

/* ---- the loop ---------- */

int
worker_ctl_fd(struct worker_device *d)
{
	return d->epfd;
}

static void
ring_ready(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	eventfd_t n;

	(void)d;
	(void)events;
	(void)eventfd_read(s->fd, &n); /* what it is about is taken in every turn */
}

static int
wait_ms(struct worker_device *d, int timeout_ms, bool polling)
{
	uint64_t now = ctl_now(d);
	uint64_t due = ctl_net_deadline(d, now), ms;
	struct ctl_timewait *t = STAILQ_FIRST(&d->timewait);

	uint64_t cm = ctl_cm_deadline(d);

	if (t != NULL && t->due < due)
		due = t->due;
	if (cm < due)
		due = cm;
	if (d->accept_paused && d->accept_due < due)
		due = d->accept_due;
	if (d->lanes_busy && d->lanes_due < due)
		due = d->lanes_due;
	if (polling && now + POLL_NS < due)
		due = now + POLL_NS;
	if (!TAILQ_EMPTY(&d->reap) || !TAILQ_EMPTY(&d->ready) || ctl_neigh_untold(d) ||
		d->gsi_head != NULL)
		return 0;
	ms = due <= now ? 0 : (due - now + 999999) / 1000000;
	return timeout_ms < 0 || ms < (uint64_t)timeout_ms ? (int)(ms < 1000 ? ms : 1000)
							    : timeout_ms;
}

static int
wait_events(struct worker_device *d, int timeout_ms, bool polling, struct epoll_event *ev)
{
	int n;

	ring_sleep_enter(&d->sh.ctl_sleep);
	if (!rte_ring_empty(d->sh.to_ctl))
		timeout_ms = 0;
	n = epoll_wait(d->epfd, ev, EVENTS, wait_ms(d, timeout_ms, polling));
	ring_sleep_leave(&d->sh.ctl_sleep);
	return n;
}

int
worker_ctl_poll(struct worker_device *d, int timeout_ms)
{
	struct epoll_event ev[EVENTS];
	bool polling = ctl_grace_poll(d);
	unsigned int done = 0, got;
	uint64_t now;
	int n;

	ctl_clients_run(d);
	/* Each has its work to do, whatever the others say. */
	polling = ctl_msg_retry(d) || polling;
	ctl_lanes_check(d);
	n = wait_events(d, timeout_ms, polling, ev);
	for (int i = 0; i < n; i++) {
		struct ctl_source *s = ev[i].data.ptr;

		s->ready(d, s, ev[i].events);
	}
	/* A turn is bounded; what is left keeps the next one from sleeping. */
	for (int i = 0; i < 64 && (got = ctl_msg_poll(d)) > 0; i++)
		done += got;
	now = ctl_now(d);
	ctl_mrs_check(d);
	ctl_gsi_run(d);
	ctl_net_tick(d, now);
	ctl_cm_tick(d, now);
	ctl_grace_poll(d);
	ctl_timewait_poll(d, now);
	ctl_clients_reap(d);
	listeners_resume(d, now);
	return (n > 0 ? n : 0) + (int)done;
}

/* ---- making a device ---------- */

#define DEFAULT(field, value) \
	do { \
		if (cfg->field == 0) \
			cfg->field = (value); \
	} while (0)

/* A uid's share of a total. */
static void
share(uint32_t *quota, uint32_t total)
{
	if (*quota == 0)
		*quota = total - total / 2;
	if (*quota > total)
		*quota = total;
}

static uint32_t
files_max(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur > INT32_MAX)
		return INT32_MAX;
	return (uint32_t)lim.rlim_cur;
}

static void
defaults(struct worker_config *cfg)
{
	DEFAULT(max_qps, 1u << 20);
	DEFAULT(max_mrs, 1u << 16);
	DEFAULT(max_cqs, 1u << 16);
	DEFAULT(max_srqs, 1u << 16);
	DEFAULT(quota_arena_bytes, UINT64_C(4) << 30);
	DEFAULT(quota_mr_bytes, cfg->quota_arena_bytes);
	share(&cfg->quota_qps, cfg->max_qps);
	share(&cfg->quota_mrs, cfg->max_mrs);
	share(&cfg->quota_cqs, cfg->max_cqs);
	share(&cfg->quota_srqs, cfg->max_srqs);
	share(&cfg->quota_fds, files_max());
}

static struct rte_ring *
new_ring(uint32_t count)
{
	struct rte_ring *r = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN_CEIL((size_t)rte_ring_get_memsize(count), (size_t)RTE_CACHE_LINE_SIZE));

	if (r != NULL && rte_ring_init(r, "to_ctl", count, RING_F_SC_DEQ) != 0) {
		free(r);
		r = NULL;
	}
	return r;
}

static struct rte_rcu_qsbr *
new_qsbr(uint32_t workers)
{
	size_t size = rte_rcu_qsbr_get_memsize(workers);
	struct rte_rcu_qsbr *q = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(size, (size_t)RTE_CACHE_LINE_SIZE));

	if (q != NULL && rte_rcu_qsbr_init(q, workers) != 0) {
		free(q);
		q = NULL;
	}
	return q;
}

/* The key of hashed addresses is the process's: drawn before the first device has a table. */
static void
draw_hash_key(void)
{
	static bool drawn;
	uint64_t key[2];

	if (drawn)
		return;
	drawn = true;
	arc4random_buf(key, sizeof(key));
	net_ip_hash_key(key);
}

static int
shared_init(struct worker_device *d, const char **why)
{
	struct worker_shared *s = &d->sh;

	worker_clock_init(&s->clock);
	s->num_workers = d->cfg.num_workers;
	s->num_ports = d->cfg.num_ports;
	memcpy(s->port, d->ports, sizeof(d->ports));
	s->tx_pool = d->cfg.tx_pool;
	s->rx_pool = d->cfg.rx_pool;
	s->rx_pool_size = d->cfg.rx_pool != NULL ? d->cfg.rx_pool->size : d->cfg.tx_pool->size;
	s->shadows = d->cfg.shadows;
	s->idle_us = d->cfg.idle_us;
	s->seed = d->cfg.seed;
	draw_hash_key();
	if (s->seed == 0)
		arc4random_buf(&s->seed, sizeof(s->seed));
	s->io_submit = copier_submit;
	s->io_ctx = s;
	d->deaths.wake = -1;
	*why = "no memory for the device's tables";
	s->mrs = mr_table_create(d->cfg.max_mrs);
	s->qpns = roce_qpn_table_create(d->cfg.max_qps);
	s->srqns = roce_qpn_table_create(d->cfg.max_srqs);
	s->ahs = roce_ah_table_create(CTL_AHS);
	s->mcast = roce_mcast_table_create();
	s->qsbr = new_qsbr(s->num_workers);
	s->to_ctl = new_ring(worker_ctl_ring_size(s, REQUESTS));
	s->ctl_kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->deaths.wake = s->ctl_kick_fd;
	if (s->mrs == NULL || s->qpns == NULL || s->srqns == NULL || s->ahs == NULL ||
		s->mcast == NULL || s->qsbr == NULL || s->to_ctl == NULL || s->ctl_kick_fd < 0)
		return -ENOMEM;
	d->ring_src.fd = s->ctl_kick_fd;
	d->ring_src.ready = ring_ready;
	return ctl_source_add(d, &d->ring_src, EPOLLIN);
}

static int
pools_init(struct worker_device *d, const char **why)
{
	static _Atomic uint32_t number;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "ctl_msgs_%u", number++);
	d->msgs = rte_mempool_create(name, MSGS, sizeof(struct worker_msg), 0, 0, NULL, NULL, NULL,
		NULL, SOCKET_ID_ANY, 0);
	d->rx_buf = aligned_alloc(8, RING_CTRL_MAX_LEN);
	if (d->msgs == NULL || d->rx_buf == NULL) {
		*why = "no memory for the control thread's messages";
		return -ENOMEM;
	}
	return 0;
}

static int
workers_init(struct worker_device *d, const char **why)
{
	for (uint32_t i = 0; i < d->sh.num_workers; i++) {
		d->workers[i] = worker_create(&d->sh, i, why);
		if (d->workers[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int
check_config(const struct worker_config *cfg, const char **why)
{
	*why = "a device needs 1 to 32 workers";
	if (cfg->num_workers == 0 || cfg->num_workers > RING_MAX_WORKERS)
		return -EINVAL;
	*why = "a device needs 1 to 16 ports";
	if (cfg->num_ports == 0 || cfg->num_ports > PMD_MAX_PORTS || cfg->ports == NULL)
		return -EINVAL;
	*why = "a device needs a name of 1 to 31 bytes and a transmit pool";
	return cfg->name == NULL || cfg->name[0] == '\0' || strlen(cfg->name) >= RING_NAME_LEN ||
			cfg->tx_pool == NULL
		? -EINVAL
		: 0;
}

static void
device_lists(struct worker_device *d)
{
	LIST_INIT(&d->listeners);
	SLIST_INIT(&d->watches);
	TAILQ_INIT(&d->clients);
	TAILQ_INIT(&d->reap);
	TAILQ_INIT(&d->ready);
	TAILQ_INIT(&d->xrc_list);
	LIST_INIT(&d->users);
	STAILQ_INIT(&d->graces);
	STAILQ_INIT(&d->timewait);
	ctl_neigh_init(d);
	d->helper_src.fd = d->sh.ctl_kick_fd = -1;
}

/* A client that closes its end of a channel must not end us; a handler of the program's stays. */
static void
ignore_sigpipe(void)
{
	struct sigaction now;

	if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
}

struct worker_device *
worker_device_create(const struct worker_config *cfg, const char **why)
{
	struct worker_device *d;

	if (check_config(cfg, why) < 0)
		return NULL;
	d = aligned_alloc(RING_LINE, RTE_ALIGN_CEIL(sizeof(*d), (size_t)RING_LINE));
	*why = "no memory for the device";
	if (d == NULL)
		return NULL;
	memset(d, 0, sizeof(*d));
	device_lists(d);
	ignore_sigpipe();
	d->cfg = *cfg;
	defaults(&d->cfg);
	strcpy(d->name, cfg->name);
	memcpy(d->ports, cfg->ports, cfg->num_ports * sizeof(d->ports[0]));
	d->cfg.name = d->name;
	d->cfg.ports = d->ports;
	d->timewait_ns = TIMEWAIT_NS;
	d->lane_limit_ns = LANE_LIMIT_NS;
	d->maps.limit = mapmem_share_max();
	arc4random_buf(d->boot_id, sizeof(d->boot_id));
	arc4random_buf(&d->xrc_salt, sizeof(d->xrc_salt));
	d->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (d->epfd < 0 || shared_init(d, why) < 0 || pools_init(d, why) < 0 ||
		ctl_helper_start(d) < 0 || mapmem_sigbus_install() < 0 ||
		ctl_net_init(d, why) < 0 || workers_init(d, why) < 0 ||
		ctl_cm_init(d) < 0) {
		worker_device_destroy(d);
		return NULL;
	}
	ctl_mcast_start(d);
	ctl_cc_init(d);
	return d;
}

/* ---- the end ---------- */

/*
 * The workers have stopped: what clients have is taken down by running them from here.
 * @return false: a helper hangs on one of them, and everything must stay.
 */
static bool
clients_end(struct worker_device *d)
{
	struct ctl_client *c;

	ctl_event_all(d, RING_EVENT_DEVICE_FATAL, RING_EVENT_OF_DEVICE, 0);
	TAILQ_FOREACH(c, &d->clients, link)
		ctl_client_kill(c, NULL);
	while (!TAILQ_EMPTY(&d->clients) || !STAILQ_EMPTY(&d->graces) ||
		!TAILQ_EMPTY(&d->xrc_list)) {
		for (uint32_t i = 0; i < d->sh.num_workers; i++)
			worker_poll(d->workers[i]);
		worker_ctl_poll(d, 1);
		if (ctl_helper_hangs(d)) {
			LOG(ctl_log, NOTICE,
				"a look at a client's memory hangs: the device is left as it is");
			return false;
		}
	}
	return true;
}

/* What the workers' mailboxes had no room for. Requests are their senders' to free. */
static void
messages_end(struct worker_device *d)
{
	for (uint32_t i = 0; i < d->sh.num_workers; i++) {
		struct worker_msg *m;

		while ((m = d->waiting[i]) != NULL) {
			d->waiting[i] = m->next;
			if (m->type == WORKER_MSG_TX)
				rte_pktmbuf_free(m->pkt.m);
			if (m->done != NULL)
				m->done(m);
		}
	}
}

static void
sources_end(struct worker_device *d)
{
	struct ctl_listener *l;
	struct ctl_watch *w;

	while ((l = LIST_FIRST(&d->listeners)) != NULL) {
		LIST_REMOVE(l, link);
		close(l->src.fd);
		unlink(l->path);
		free(l);
	}
	while ((w = SLIST_FIRST(&d->watches)) != NULL) {
		SLIST_REMOVE_HEAD(&d->watches, link);
		free(w);
	}
}

void
worker_device_destroy(struct worker_device *d)
{
	uint32_t n = d->sh.num_workers;

	sources_end(d);
	if (n != 0 && d->workers[n - 1] != NULL && !clients_end(d))
		return; /* its thread goes on in it, should it ever come back */
	ctl_helper_stop(d);
	ctl_mrs_check(d); /* gives back what went before its death was seen */
	copier_lanes_join(d, true);
	if (d->sh.qpns != NULL)
		ctl_timewait_poll(d, UINT64_MAX);
	for (uint32_t i = 0; i < n; i++) {
		if (d->workers[i] != NULL)
			worker_destroy(d->workers[i]);
	}
	messages_end(d);
	ctl_cm_fini(d);
	ctl_net_fini(d);
	for (int i = 0; i < CTL_KINDS; i++)
		ctl_map_fini(&d->objs[i]);
	ctl_map_fini(&d->domains);
	ctl_map_fini(&d->exports);
	ctl_map_fini(&d->xrcs);
	ctl_map_fini(&d->xrc_files);
	ctl_map_fini(&d->targets);
	if (d->sh.mrs != NULL)
		mr_table_free(d->sh.mrs);
	if (d->sh.qpns != NULL)
		roce_qpn_table_free(d->sh.qpns);
	roce_qpn_table_free(d->sh.srqns);
	roce_ah_table_free(d->sh.ahs);
	roce_mcast_table_free(d->sh.mcast);
	free(d->sh.qsbr);
	free(d->sh.to_ctl);
	rte_mempool_free(d->msgs);
	free(d->rx_buf);
	if (d->sh.ctl_kick_fd >= 0)
		close(d->sh.ctl_kick_fd);
	if (d->epfd >= 0)
		close(d->epfd);
	free(d);
}

struct worker *
worker_get(struct worker_device *d, uint32_t index)
{
	return index < d->sh.num_workers ? d->workers[index] : NULL;
}
