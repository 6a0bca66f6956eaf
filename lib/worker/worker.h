/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dataplane as a library: workers that poll, and the control thread that owns every
 * object and talks to clients. rnicd is a main() around it; testrnic and the tests run the
 * same code in their own process, with clients joined by a socketpair.
 *
 * Threads: one control thread (worker_ctl_*), N workers (worker_poll, worker_main), helper
 * and copier threads that it makes itself. Nothing is shared but what worker_msg.h passes.
 */
#ifndef WORKER_H
#define WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pmd_port;
struct rte_mempool;
struct worker;
struct worker_device;

/** What a device is made of. Strings and arrays are copied. */
struct worker_config {
	const char *name;	     /* device name that clients see, as "rnic0" */
	uint32_t num_workers;	     /* 1 .. RING_MAX_WORKERS */
	struct pmd_port **ports;     /* opened with num_workers queues each */
	uint32_t num_ports;
	struct rte_mempool *rx_pool; /* of the ports */
	struct rte_mempool *tx_pool; /* of the engines */
	bool huge_arenas;	     /* arenas on huge pages, when there are any */
	uint32_t max_qps, max_mrs, max_cqs, max_srqs; /* 0: defaults */
	uint32_t shadows;	     /* send requests in flight, a worker */
	uint64_t quota_arena_bytes;  /* of one uid; 0: default */
	uint64_t quota_mr_bytes;
	/* Of one uid; 0: half of what the device has, so that nobody has all of it. Windows count
	 * as regions. Descriptors: of those that the process may have open. */
	uint32_t quota_qps, quota_mrs, quota_cqs, quota_srqs, quota_fds;
	uint32_t idle_us;	     /* a worker sleeps after so long without work; 0: never */
	uint64_t seed;		     /* 0: from arc4random */
};

/**
 * NULL and a sentence in *why when it cannot be made. The process handles SIGBUS from here on, and
 * ignores SIGPIPE unless it has a handler.
 */
struct worker_device *worker_device_create(const struct worker_config *cfg, const char **why);
/** All clients are cut off (fatal event), all threads joined; workers must have stopped. */
void worker_device_destroy(struct worker_device *d);

/* ---- configuration of a port, control thread ---------- */

/** Add or take away an own address, text as "192.0.2.1/24". @return 0 or -errno. */
int worker_port_addr_add(struct worker_device *d, uint32_t port, const char *addr, uint16_t vlan);
int worker_port_addr_del(struct worker_device *d, uint32_t port, const char *addr, uint16_t vlan);
/** Add a route: prefix as "10.0.0.0/8" or "default", gateway text or NULL. */
int worker_route_add(struct worker_device *d, uint32_t port, const char *prefix,
		     const char *gateway);

/**
 * Set a parameter of a port's congestion management by its name, as "cc-min-rate". "cc" (0 or 1)
 * counts for connections made later, all others at once. @return 0, -ENODEV, -ENOENT (no such
 * name), -ERANGE.
 */
int worker_port_cc_set(struct worker_device *d, uint32_t port, const char *name, uint64_t value);
/** Whether that could be set. @return 0, -ENOENT, -ERANGE. */
int worker_cc_check(const char *name, uint64_t value);

/* ---- workers ---------- */

struct worker *worker_get(struct worker_device *d, uint32_t index);
/** One iteration of the loop, bounded. @return work done (0: idle). On one thread always. */
unsigned int worker_poll(struct worker *w);
/** Poll, and sleep when idle, until worker_stop(). */
void worker_main(struct worker *w);
void worker_stop(struct worker *w);

/* ---- control thread ---------- */

/** Listen for clients on this path (mode 0666 unless the configuration says otherwise). */
int worker_ctl_listen(struct worker_device *d, const char *path);
/** Take a connected SOCK_SEQPACKET socket as a client: for clients in the same process. */
int worker_ctl_attach(struct worker_device *d, int fd);
/** The control thread's epoll fd, for a surrounding loop. */
int worker_ctl_fd(struct worker_device *d);
/** Handle what is ready, waiting at most timeout_ms (-1: for ever). @return events handled. */
int worker_ctl_poll(struct worker_device *d, int timeout_ms);
/**
 * Have worker_ctl_poll() call ready(arg) while fd is readable: for admin sockets and signals of
 * the program around it. Stays until the device is destroyed. @return 0 or -errno.
 */
int worker_ctl_watch(struct worker_device *d, int fd, void (*ready)(void *arg), void *arg);
/**
 * Ask a worker for a sign of life: done(arg, ns) is called on the control thread with the time
 * that the question took through its mailbox and loop. @return 0 or -errno.
 */
int worker_ping(struct worker_device *d, uint32_t worker, void (*done)(void *arg, uint64_t ns),
		void *arg);

/* ---- what rnicctl and telemetry show ---------- */

/**
 * Walk objects of a kind ("contexts", "pds", "mrs", "cqs", "qps", "srqs", "ports", "workers",
 * "counters", "memory", "neighbours", "routes", "cc", "cc-qps", "ids", "listeners",
 * "connections", "cm"), from the `skip`th, at most `max`. Each is given as name/value pairs
 * through emit(); begin and end mark an object. Control thread.
 * @return objects given, or -ENOENT for an unknown kind.
 */
struct worker_show {
	void (*begin)(void *arg);
	void (*str)(void *arg, const char *key, const char *value);
	void (*num)(void *arg, const char *key, uint64_t value);
	void (*end)(void *arg);
	void *arg;
};
int worker_show(struct worker_device *d, const char *kind, uint32_t skip, uint32_t max,
		const struct worker_show *out);
/** Kinds that worker_show() knows, NULL-terminated. */
const char *const *worker_show_kinds(void);

#endif /* WORKER_H */
