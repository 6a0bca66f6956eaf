/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all workers of a device see, and how the control thread makes, reaches and stops them.
 * The control thread (or a test in its place) fills a struct worker_shared in, then makes the
 * workers; everything in it but the interfaces' views is constant from then on.
 */
#ifndef WORKER_SHARED_PRIV_H
#define WORKER_SHARED_PRIV_H

#include <rte_cycles.h>

#include "net_iface.h"
#include "pmd_glue.h"
#include "ring_kick.h"
#include "worker.h"
#include "worker_msg.h"

struct roce_ah_table;
struct roce_mcast_table;
struct roce_qpn_table;
struct rte_rcu_qsbr;
struct rte_ring;

/** The device's clock: CLOCK_MONOTONIC at its start, the TSC from then on. */
struct worker_clock {
	uint64_t tsc0;
	uint64_t ns0;
	uint64_t mult; /* ns = ns0 + ((tsc - tsc0) * mult >> 32) */
};

struct worker_shared {
	uint32_t num_workers;
	uint32_t num_ports;
	struct worker *worker[RING_MAX_WORKERS]; /* filled in by worker_create() */
	struct pmd_port *port[PMD_MAX_PORTS];
	/* Own addresses by port. Each has a view from the start; later ones are published, and the
	 * replaced freed after a QUIESCE of every worker. */
	struct net_iface iface[PMD_MAX_PORTS];
	struct rte_mempool *tx_pool;
	struct rte_mempool *rx_pool; /* of the ports; NULL: none */
	uint32_t rx_pool_size; /* mbufs: the engines may hold a quarter of them in all */
	struct mr_table *mrs;
	struct roce_qpn_table *qpns;
	struct roce_qpn_table *srqns; /* numbers of SRQs, drawn as those of QPs */
	struct roce_ah_table *ahs;
	struct roce_mcast_table *mcast;
	_Atomic uint32_t mtu[PMD_MAX_PORTS]; /* of a datagram, bytes */
	/* A worker's thread id is its index. Sleeping workers are offline. The control thread may
	 * poll tokens of its own here instead of sending QUIESCE. */
	struct rte_rcu_qsbr *qsbr;
	struct worker_clock clock;
	uint32_t shadows; /* as in worker_config */
	uint32_t idle_us;
	uint64_t seed;
	uint32_t max_events; /* asynchronous events under way at once, a worker; 0: default */

	/* Towards the control thread: rte_ring of struct worker_msg *, many producers. It is made
	 * with room for all that can be under way, see worker_ctl_ring_size(). */
	struct rte_ring *to_ctl;
	struct ring_sleep ctl_sleep; /* the control thread's; as a worker's */
	int ctl_kick_fd;	     /* eventfd, written when it sleeps */

	/** Start a foreign access; it comes back as WORKER_MSG_IO_DONE. NULL: there are none. */
	void (*io_submit)(void *ctx, uint32_t worker, struct verbs_io *io);
	void *io_ctx;
};

/** Port index of the hairpin: verbs_av.port of a path to an own address on any port. */
static inline uint16_t
worker_hairpin_port(const struct worker_shared *s)
{
	return (uint16_t)s->num_ports;
}

void worker_clock_init(struct worker_clock *c);

static inline uint64_t
worker_clock_ns(const struct worker_clock *c, uint64_t tsc)
{
	return c->ns0 + (uint64_t)(((unsigned __int128)(tsc - c->tsc0) * c->mult) >> 32);
}

static inline uint64_t
worker_clock_now(const struct worker_clock *c)
{
	return worker_clock_ns(c, rte_rdtsc());
}

/** Entries for to_ctl: a power of two. `requests`: messages that await a reply at most. */
uint32_t worker_ctl_ring_size(const struct worker_shared *s, uint32_t requests);

/**
 * Make worker `index`; s->worker[index] is set. All workers are made before one of them runs.
 * @return NULL and a sentence in *why when it cannot be made.
 */
struct worker *worker_create(struct worker_shared *s, uint32_t index, const char **why);
/** It does not run any more, its QPs and contexts are gone. Mailed messages go to done(). */
void worker_destroy(struct worker *w);

/** Any thread: into the worker's mailbox. @return false: it is full, try again later. */
bool worker_send(struct worker *w, struct worker_msg *m);
/** Any thread: wake the worker, as for a context's kick that the control thread took. */
void worker_kick(struct worker *w);

/**
 * Control thread: a context's kick_fd of this worker has become readable (once more). The
 * worker watches it too, but looks there only while it sleeps.
 */
void worker_ctx_kick(struct worker *w, struct worker_ctx *ctx);
/**
 * Bytes into a channel's pipe, WORKER_NOTIFY_BYTES at most: one for each ring_channel_push(), done
 * before (WORKER_MSG_NOTIFY: by the worker). @return false: it is full, or nobody reads.
 */
bool worker_channel_write(const struct worker_channel *ch, uint32_t n);

/** Control thread, before it sleeps: enter, look at to_ctl, epoll, leave (ring_kick.h). */
unsigned int worker_ctl_dequeue(struct worker_shared *s, struct worker_msg **m, unsigned int n);

/** worker_show() of "workers" and "counters". */
int worker_show_workers(struct worker_shared *s, uint32_t skip, uint32_t max,
			const struct worker_show *out);
int worker_show_counters(struct worker_shared *s, uint32_t skip, uint32_t max,
			 const struct worker_show *out);

#endif /* WORKER_SHARED_PRIV_H */
