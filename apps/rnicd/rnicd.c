/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnicd: the daemon around lib/worker. Brings everything up in order, hands the control thread
 * its loop, takes everything down in the reverse order. Exit status 0 after a clean shutdown,
 * 1 when it could not start, 2 for a command line or file that is wrong.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "rnicd.h"

RTE_LOG_REGISTER(rnicd_logtype, rnicd, INFO);

enum { EXIT_START = 1, EXIT_USAGE = 2 };

/* ---- signals ---------- */

/* Blocked in all threads, read by the control thread. */
static int
block_signals(struct rnicd *r, struct rnicd_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return r->signal_fd >= 0 ? 0 : rnicd_fail(err, "signalfd: %s", strerror(errno));
}

/*
 * Clients cost several descriptors each; the soft limit of a shell would be theirs to fill. EAL
 * raises it as well, for its own files and without saying so in its interface.
 */
static void
raise_files(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur == lim.rlim_max)
		return;
	lim.rlim_cur = lim.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &lim) < 0)
		RNICD_LOG(WARNING, "cannot raise the limit of open files: %s", strerror(errno));
}

/* From the first signal on, a second one does not wait for anything. */
static void
arm_second_signal(const struct rnicd *r)
{
	sigset_t set;

	rnicd_force_prepare(r);
	signal(SIGINT, rnicd_force_exit);
	signal(SIGTERM, rnicd_force_exit);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void
read_signals(struct rnicd *r)
{
	struct signalfd_siginfo si;
	struct rnicd_error err;

	while (!r->stop && read(r->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGHUP) {
			if (rnicd_addrs_reload(r, &err) < 0)
				RNICD_LOG(ERR, "reload: %s", err.text);
			else
				RNICD_LOG(NOTICE, "addresses and routes read again");
			continue;
		}
		RNICD_LOG(NOTICE, "stopping: %s", strsignal((int)si.ssi_signo));
		r->stop = true;
	}
}

/* ---- the control thread ---------- */

/*
 * What is ready in the epoll set that the control thread watches for us: all of it, and new
 * connections last, when those that have hung up do not count any more.
 */
static void
on_ready(void *arg)
{
	struct epoll_event ev[32];
	struct rnicd *r = arg;
	int n = epoll_wait(r->epfd, ev, 32, 0);
	bool knocks = false;

	for (int i = 0; i < n; i++) {
		if (ev[i].data.ptr == &r->signal_fd)
			read_signals(r);
		else if (ev[i].data.ptr == &r->epfd)
			rnicd_telemetry_ready(r);
		else if (ev[i].data.ptr == r->adm)
			knocks = true;
		else
			rnicd_admin_ready(r, ev[i].data.ptr, ev[i].events);
	}
	if (knocks)
		rnicd_admin_accept(r);
}

static int
watch(struct rnicd *r, struct rnicd_error *err)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &r->signal_fd};
	int rc;

	r->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epfd < 0 || epoll_ctl(r->epfd, EPOLL_CTL_ADD, r->signal_fd, &ev) < 0)
		return rnicd_fail(err, "epoll: %s", strerror(errno));
	rc = worker_ctl_watch(r->dev, r->epfd, on_ready, r);
	return rc == 0 ? 0 : rnicd_fail(err, "control thread: %s", strerror(-rc));
}

static int
device_open(struct rnicd *r, struct rnicd_error *err)
{
	const struct rnicd_conf *c = &r->conf;
	struct worker_config wc = {
		.name = c->name,
		.num_workers = c->workers,
		.ports = r->port,
		.num_ports = r->num_ports,
		.rx_pool = r->rx_pool,
		.tx_pool = r->tx_pool,
		.huge_arenas = r->huge,
		.max_qps = c->max_qps,
		.max_mrs = c->max_mrs,
		.max_cqs = c->max_cqs,
		.max_srqs = c->max_srqs,
		.shadows = c->shadows,
		.quota_arena_bytes = c->quota_arena_bytes,
		.quota_mr_bytes = c->quota_mr_bytes,
		.quota_qps = c->quota_qps,
		.quota_mrs = c->quota_mrs,
		.quota_cqs = c->quota_cqs,
		.quota_srqs = c->quota_srqs,
		.quota_fds = c->quota_files,
		.idle_us = c->idle_us,
		.seed = c->seed,
	};
	const char *why = "no reason given";
	int rc;

	r->dev = worker_device_create(&wc, &why);
	if (r->dev == NULL)
		return rnicd_fail(err, "device '%s': %s", c->name, why);
	if (rnicd_addrs_apply(r, err) < 0)
		return -1;
	rc = worker_ctl_listen(r->dev, c->socket);
	if (rc < 0)
		return rnicd_fail(err, "cannot listen on %s: %s", c->socket, strerror(-rc));
	return 0;
}

/* ---- workers ---------- */

static int
worker_thread(void *arg)
{
	rnicd_priv_drop_thread();
	worker_main(arg);
	return 0;
}

static int
workers_start(struct rnicd *r, struct rnicd_error *err)
{
	unsigned int lcore;

	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (r->workers_running == r->conf.workers)
			break;
		if (rte_eal_remote_launch(worker_thread, worker_get(r->dev, r->workers_running),
					  lcore) < 0)
			return rnicd_fail(err, "lcore %u does not take a worker", lcore);
		r->workers_running++;
	}
	return 0;
}

static void
workers_stop(struct rnicd *r)
{
	for (uint32_t i = 0; i < r->workers_running; i++)
		worker_stop(worker_get(r->dev, i));
	rte_eal_mp_wait_lcore();
	r->workers_running = 0;
}

/* ---- life ---------- */

static int
start(struct rnicd *r, struct rnicd_error *err)
{
	if (rnicd_files_unlink_stale(r, err) < 0 || rnicd_port_conflicts(&r->conf, err) < 0 ||
	    rnicd_priv_check(&r->conf, err) < 0 || rnicd_huge_decide(r, err) < 0 ||
	    rnicd_eal_init(r, err) < 0)
		return -1;
	if (rnicd_ports_open(r, err) < 0 || rnicd_priv_drop(r, err) < 0)
		return -1;
	if (device_open(r, err) < 0 || watch(r, err) < 0 || rnicd_admin_open(r, err) < 0)
		return -1;
	if (rnicd_telemetry_open(r) < 0)
		RNICD_LOG(WARNING, "no telemetry");
	return workers_start(r, err);
}

static void
stop(struct rnicd *r)
{
	rnicd_telemetry_close(r);
	rnicd_admin_close(r);
	if (r->unlink_sockets) {
		/* nobody finds us any more; those that are connected get a fatal event */
		unlink(r->conf.socket);
		unlink(r->conf.admin);
	}
	if (r->dev != NULL) {
		workers_stop(r);
		worker_device_destroy(r->dev);
	}
	rnicd_ports_close(r);
	rnicd_files_close(r);
}

static void
run(struct rnicd *r)
{
	RNICD_LOG(NOTICE, "device '%s' is ready: clients at %s, rnicctl at %s", r->conf.name,
		  r->conf.socket, r->conf.admin);
	rnicd_ready(r);
	while (!r->stop) {
		worker_ctl_poll(r->dev, -1); /* for a second at most */
		rnicd_admin_tick(r);
	}
	arm_second_signal(r);
}

int
main(int argc, char **argv)
{
	static struct rnicd r = {.ready_fd = -1, .epfd = -1, .signal_fd = -1};
	struct rnicd_error err = {""};
	int rc = 0;

	switch (rnicd_options_parse(&r.conf, argc, argv, &err)) {
	case RNICD_OPTIONS_DONE:
		return 0;
	case RNICD_OPTIONS_BAD:
		fprintf(stderr, "rnicd: %s\n", err.text);
		return EXIT_USAGE;
	default:
		break;
	}
	r.started = time(NULL);
	raise_files();
	if (block_signals(&r, &err) < 0 || rnicd_files_open(&r, &err) < 0 ||
	    rnicd_daemonize(&r, &err) < 0 || start(&r, &err) < 0) {
		fprintf(stderr, "rnicd: %s\n", err.text);
		rc = EXIT_START;
	} else {
		run(&r);
	}
	stop(&r);
	if (r.eal)
		rnicd_eal_cleanup();
	return rc;
}
