/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: its making and its loop. The loop is bounded and takes no lock, allocates nothing
 * and makes no system call but notifications; control messages and sleeping are in files of
 * their own.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_rcu_qsbr.h>

#include "worker_priv.h"

void
worker_clock_init(struct worker_clock *c)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	c->tsc0 = rte_rdtsc();
	c->ns0 = (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
	c->mult = (UINT64_C(1000000000) << 32) / rte_get_tsc_hz();
}

/* ---- the loop ---------- */

static enum verbs_run
run_qp(void *arg, struct verbs_qp *qp)
{
	struct worker *w = arg;

	return roce_run(w->roce, qp, w->now);
}

static inline unsigned int
rx_all(struct worker *w)
{
	unsigned int did = worker_rx_handover(w);

	for (uint32_t i = 0; i < w->s->num_ports; i++)
		did += worker_rx_port(w, i);
	return did;
}

static inline void
tx_all(struct worker *w)
{
	for (uint32_t i = 0; i < w->num_tx; i++)
		net_tx_flush(&w->batch[i]);
}

/**
 * Receives last: an application that shares the core looks between two calls, sees what has
 * come at once, and its answer leaves in one burst with the acknowledgement.
 */
unsigned int
worker_poll(struct worker *w)
{
	unsigned int did;

	w->now = worker_clock_now(&w->s->clock);
	w->verbs.now = w->now;
	did = worker_bells(w);
	if (w->verbs.run_head != NULL)
		did += verbs_run_round(&w->verbs, WORKER_QUANTUM, run_qp, w);
	did += roce_timers(w->roce, w->now);
	roce_flush(w->roce, w->now);
	tx_all(w);
	did += worker_mail(w); /* a QP may go once it has said what it received, not before */
	did += rx_all(w);
	verbs_cq_burst_end(&w->verbs);
	worker_mbox_flush(w);
	rte_rcu_qsbr_quiescent(w->s->qsbr, w->id);
	if (unlikely(w->quiescing != NULL))
		worker_mail_quiesced(w);
	worker_count(w, WORKER_C_LOOPS, 1);
	worker_count(w, WORKER_C_BUSY, did != 0);
	return did;
}

/*
 * Between work and sleep the worker polls. Who shares its CPU may be the one whose next request is
 * waited for, so it is offered the CPU every few microseconds then, not when the scheduler's slice
 * is over; a worker that has work to do never offers it. Who does not give it back at once has work
 * of another kind, and takes its share anyway: it is offered nothing for a while.
 */
static void
offer_cpu(struct worker *w, uint32_t *hold)
{
	if (*hold > 0) {
		(*hold)--;
		return;
	}
	sched_yield();
	if (worker_clock_now(&w->s->clock) - w->now > WORKER_YIELD_LOST_NS)
		*hold = WORKER_YIELD_HOLD;
}

void
worker_main(struct worker *w)
{
	uint64_t idle_ns = (uint64_t)w->s->idle_us * 1000, last = 0, nap = 0;
	uint32_t empty = 0, hold = 0;

	prctl(PR_SET_TIMERSLACK, 1000UL); /* ns; the default of 50 us is more than a short nap */
	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		if (worker_poll(w) != 0 || last == 0) {
			last = w->now;
			nap = 0;
			empty = 0;
		} else if (idle_ns != 0 && w->now - last >= idle_ns && worker_sleep(w, &nap)) {
			empty = 0;
		} else if (++empty % WORKER_YIELD_LOOPS == 0) {
			offer_cpu(w, &hold);
		}
	}
}

void
worker_stop(struct worker *w)
{
	atomic_store_explicit(&w->stop, true, memory_order_relaxed);
	worker_kick(w);
}

/* ---- making ---------- */

static uint16_t
port_burst(void *ctx, struct rte_mbuf **m, uint16_t n)
{
	struct worker_tx_port *t = ctx;

	return pmd_tx_burst(t->port, t->queue, m, n);
}

static void
create_tx(struct worker *w)
{
	uint32_t i;

	for (i = 0; i < w->s->num_ports; i++) {
		w->tx_port[i] = (struct worker_tx_port){w->s->port[i], (uint16_t)w->id};
		net_tx_init(&w->batch[i], port_burst, &w->tx_port[i]);
		w->tx[i] = &w->batch[i];
	}
	net_tx_init(&w->batch[i], worker_hairpin_burst, w);
	w->tx[i] = &w->batch[i];
	w->num_tx = i + 1;
}

/**
 * An invalidate's wait for the other workers. Our own quiescent point counts as well: it is the
 * end of this loop, and accesses of this very burst may still use the key.
 */
static uint64_t
quiesce_start(void *ctx)
{
	const struct worker *w = ctx;

	return rte_rcu_qsbr_start(w->s->qsbr);
}

static bool
quiesced(void *ctx, uint64_t token)
{
	const struct worker *w = ctx;

	return rte_rcu_qsbr_check(w->s->qsbr, token, false) == 1;
}

static int
create_engines(struct worker *w)
{
	const struct worker_shared *s = w->s;
	const struct verbs_host host = {worker_notify, worker_event, worker_io_submit, w};
	struct roce_config cfg = {
		.verbs = &w->verbs,
		.qpns = s->qpns,
		.srqns = s->srqns,
		.ahs = s->ahs,
		.mcast = s->mcast,
		.mtu = s->mtu,
		.tx = w->tx,
		.num_ports = w->num_tx,
		.tx_pool = s->tx_pool,
		.handoff = worker_hand_over,
		.mad = worker_gsi_rx,
		.quiesce_start = s->num_workers > 1 ? quiesce_start : NULL,
		.quiesced = s->num_workers > 1 ? quiesced : NULL,
		.ctx = w,
		.seed = s->seed + w->id,
		.max_rx_held = s->rx_pool_size / 4 / s->num_workers,
	};
	int rc;

	cfg.max_rx_held_qp = cfg.max_rx_held / 4 + 1;
	rc = verbs_worker_init(&w->verbs, w->id, s->mrs, &host,
			       s->shadows ? s->shadows : WORKER_SHADOWS, WORKER_BLOCKS, WORKER_IOS);
	if (rc != 0)
		return rc;
	w->roce = roce_create(&cfg, worker_clock_now(&s->clock));
	return w->roce != NULL ? 0 : -ENOMEM;
}

struct worker *
worker_create(struct worker_shared *s, uint32_t index, const char **why)
{
	struct worker *w = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*w),
					 (size_t)RTE_CACHE_LINE_SIZE));

	*why = "no memory for a worker";
	if (w == NULL)
		return NULL;
	memset(w, 0, sizeof(*w));
	w->s = s;
	w->id = index;
	w->rx_data_off = sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(s->tx_pool) +
			 RTE_PKTMBUF_HEADROOM;
	w->kick_fd = w->epoll_fd = -1;
	TAILQ_INIT(&w->late);
	TAILQ_INIT(&w->due);
	create_tx(w);
	s->worker[index] = w;
	if (worker_mbox_create(w) != 0 || worker_gsi_create(w) != 0 || create_engines(w) != 0) {
		worker_destroy(w);
		return NULL;
	}
	if (worker_sleep_create(w) != 0) {
		*why = "a worker cannot watch its descriptors (too many open files?)";
		worker_destroy(w);
		return NULL;
	}
	rte_rcu_qsbr_thread_register(s->qsbr, index);
	rte_rcu_qsbr_thread_online(s->qsbr, index);
	*why = NULL;
	return w;
}

void
worker_destroy(struct worker *w)
{
	rte_rcu_qsbr_thread_offline(w->s->qsbr, w->id);
	rte_rcu_qsbr_thread_unregister(w->s->qsbr, w->id);
	if (w->roce != NULL)
		roce_destroy(w->roce);
	for (uint32_t i = 0; i < w->num_tx; i++)
		net_tx_purge(&w->batch[i]);
	verbs_worker_fini(&w->verbs);
	worker_mbox_destroy(w);
	worker_gsi_destroy(w);
	worker_sleep_destroy(w);
	w->s->worker[w->id] = NULL;
	free(w);
}
