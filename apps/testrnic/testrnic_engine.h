/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine in this process: a device with one worker, its control thread, its port, and a
 * client context joined to it by a socketpair. The worker is polled on an lcore, together with
 * the step function of the application that shares that core.
 */
#ifndef TESTRNIC_ENGINE_H
#define TESTRNIC_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pmd_port;
struct rnic_context;
struct rte_mempool;
struct worker;
struct worker_device;

struct engine_config {
	const char *name;
	unsigned int lcore;
	uint16_t ethdev;     /* or PMD_PORT_LOOP */
	uint16_t mtu;	     /* of the port; 0: as it is */
	const char *address; /* "192.0.2.1/24" */
	const char *listen;  /* path for other clients, or NULL */
	int client_fd;	     /* the daemon's end of one more client's socket; 0: none */
	bool huge;	     /* arenas on huge pages */
	uint64_t seed;
};

struct engine {
	struct engine_config cfg;
	struct pmd_port *port;
	struct rte_mempool *rx_pool, *tx_pool;
	struct worker_device *dev;
	struct worker *worker;
	pthread_t control;
	bool control_runs;
	_Atomic bool control_stop;
	struct rnic_context *ctx;

	/* a call for the control thread (engine_ask) */
	pthread_mutex_t lock;
	pthread_cond_t answered;
	void (*ask)(struct engine *e, void *arg);
	void *ask_arg;

	/* the application on the lcore */
	unsigned int (*step)(void *arg);
	void *step_arg;
	bool running;
	_Alignas(64) _Atomic bool stop;
	_Alignas(64) uint64_t busy, total; /* cycles since engine_run() */
};

/** Two ethdevs over a pair of rings, each other's peer. @return 0 or -errno. */
int engine_ring_pair(const char *name, uint16_t ethdev[2]);

/** @return 0, or -errno and a sentence in *why. */
int engine_open(struct engine *e, const struct engine_config *cfg, const char **why);
void engine_close(struct engine *e);

/** Poll worker and step (may be NULL) on the engine's lcore until engine_halt(). */
void engine_run(struct engine *e, unsigned int (*step)(void *arg), void *arg);
void engine_halt(struct engine *e);
/** Wait without spinning: the main lcore floats over the CPUs of those that are measured. */
int engine_wait_lcore(unsigned int lcore);
/** Have the control thread call this and wait for it: what belongs to it may be asked there. */
void engine_ask(struct engine *e, void (*fn)(struct engine *e, void *arg), void *arg);
/** Share of cycles since engine_run() in iterations that did something. After engine_halt(). */
double engine_busy(const struct engine *e);

#endif /* TESTRNIC_ENGINE_H */
