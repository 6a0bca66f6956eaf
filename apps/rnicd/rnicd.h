/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's parts, in the order in which main() brings them up. */
#ifndef RNICD_H
#define RNICD_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <rte_log.h>

#include <worker.h>

#include "rnicd_conf.h"

struct pidfh;
struct pmd_port;
struct rte_mempool;
struct rnicd_admin;

extern int rnicd_logtype;
/** One line of the log; also on stderr while there is a terminal. */
#define RNICD_LOG(level, fmt, ...) \
	rte_log(RTE_LOG_##level, (uint32_t)rnicd_logtype, "rnicd: " fmt "\n", ##__VA_ARGS__)

struct rnicd {
	struct rnicd_conf conf;
	struct rnicd_conf applied; /* ports' addresses and routes that are in force */
	struct pidfh *pidfh;
	int ready_fd; /* the parent waits here for a byte when daemonizing; else -1 */
	bool huge;
	bool eal; /* DPDK was started, successfully or not */
	bool unlink_sockets; /* they are ours */
	time_t started;
	uint64_t kept_caps;
	struct rte_mempool *rx_pool, *tx_pool;
	struct pmd_port *port[RNICD_MAX_PORTS];
	uint32_t num_ports;
	struct worker_device *dev;
	uint32_t workers_running;
	int epfd; /* ours, watched by the control thread */
	int signal_fd;
	struct rnicd_admin *adm;
	bool stop;
};

/* ---- files (rnicd_file.c) ---------- */

/** Directories, then the lock. Says who holds it. @return 0 or -1. */
int rnicd_files_open(struct rnicd *r, struct rnicd_error *err);
/** Remove sockets that a dead daemon left; refuse those that somebody listens on. */
int rnicd_files_unlink_stale(struct rnicd *r, struct rnicd_error *err);
void rnicd_files_close(struct rnicd *r);
/** Fork; the parent exits when the child is ready or dead. In the child: 0 or -1. */
int rnicd_daemonize(struct rnicd *r, struct rnicd_error *err);
/** Clients can connect: let the parent go, tell the service manager. */
void rnicd_ready(struct rnicd *r);
/** After a second signal: unlink and leave. Safe in a handler. */
void rnicd_force_exit(int sig);
void rnicd_force_prepare(const struct rnicd *r);

/* ---- privileges (rnicd_priv.c) ---------- */

/** Warn about what will not work, refuse what cannot. @return 0 or -1. */
int rnicd_priv_check(const struct rnicd_conf *c, struct rnicd_error *err);
/** Give the directories that were made to the user of --user. */
int rnicd_priv_own(const struct rnicd_conf *c, const char *path, struct rnicd_error *err);
/** Keep what the control thread needs, in all threads. @return 0 or -1. */
int rnicd_priv_drop(struct rnicd *r, struct rnicd_error *err);
/** The calling thread needs nothing. */
void rnicd_priv_drop_thread(void);
/** Names of the bits of a mask, in `text`. */
void rnicd_priv_names(uint64_t caps, char *text, size_t size);

/* ---- DPDK (rnicd_eal.c) ---------- */

/** Whether huge pages will do; a sentence in the log when not. @return 0 or -1. */
int rnicd_huge_decide(struct rnicd *r, struct rnicd_error *err);
int rnicd_eal_init(struct rnicd *r, struct rnicd_error *err);
void rnicd_eal_cleanup(void);
/** "LEVEL" or "PATTERN:LEVEL". @return 0 or -1. */
int rnicd_log_level_set(const char *text, struct rnicd_error *err);

/* ---- ports (rnicd_port.c) ---------- */

/** Payload room of an mbuf: the largest frame in one piece. */
uint32_t rnicd_port_data_room(const struct rnicd_conf *c);
uint32_t rnicd_port_rx_mbufs(const struct rnicd_conf *c);
uint32_t rnicd_port_tx_mbufs(const struct rnicd_conf *c);
/** Refuse addresses that the kernel has on the same interface. @return 0 or -1. */
int rnicd_port_conflicts(const struct rnicd_conf *c, struct rnicd_error *err);
int rnicd_ports_open(struct rnicd *r, struct rnicd_error *err);
void rnicd_ports_close(struct rnicd *r);
/** Addresses and routes of the configuration to the device. @return 0 or -1. */
int rnicd_addrs_apply(struct rnicd *r, struct rnicd_error *err);
/** Read the file again; what changed in addresses and routes is applied. */
int rnicd_addrs_reload(struct rnicd *r, struct rnicd_error *err);
/** Index of the port with that name; -1 and a sentence. */
int rnicd_port_find(const struct rnicd *r, const char *name, struct rnicd_error *err);

/* ---- admin socket (rnicd_admin.c, rnicd_admin_cmd.c) ---------- */

int rnicd_admin_open(struct rnicd *r, struct rnicd_error *err);
void rnicd_admin_close(struct rnicd *r);
/** Events of the epoll set that rnicd_admin_open() added to; r->adm is the listening socket. */
void rnicd_admin_accept(struct rnicd *r);
/** Between rounds: listen again after a rest for want of descriptors. */
void rnicd_admin_tick(struct rnicd *r);
void rnicd_admin_ready(struct rnicd *r, void *source, uint32_t events);

/* ---- telemetry (rnicd_telemetry.c) ---------- */

int rnicd_telemetry_open(struct rnicd *r);
/** Commands that wait are answered, later ones refused. */
void rnicd_telemetry_close(struct rnicd *r);
void rnicd_telemetry_ready(struct rnicd *r);

#endif /* RNICD_H */
