/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of workers: their names, and what rnicctl and telemetry show of them. */
#include <stdio.h>

#include <rte_mempool.h>

#include "worker_priv.h"

COUNTERS_TABLE(worker_counter_desc, WORKER_COUNTERS);

/** Its engines' counters are plain words of one writer: read whole, perhaps a moment old. */
#define peek(v) __atomic_load_n(v, __ATOMIC_RELAXED)

static void
show_tx(const struct worker *w, const struct worker_show *out)
{
	uint64_t packets = 0, bursts = 0, partial = 0;

	for (uint32_t i = 0; i < w->num_tx; i++) {
		packets += peek(&w->batch[i].packets);
		bursts += peek(&w->batch[i].bursts);
		partial += peek(&w->batch[i].partial);
	}
	out->num(out->arg, "tx_packets", packets);
	out->num(out->arg, "tx_bursts", bursts);
	out->num(out->arg, "tx_partial_bursts", partial);
}

static void
show_refusals(const struct worker *w, const struct worker_show *out)
{
	char key[48];

	for (int i = 1; i < MR_RESULT_COUNT; i++) {
		snprintf(key, sizeof(key), "mr_%s", mr_result_name((enum mr_result)i));
		out->num(out->arg, key, counter_read(&w->verbs.refused[i]));
	}
}

static void
show_kinds(const struct worker *w, const struct worker_show *out)
{
	char key[48];

	for (int i = 0; i < NET_KIND_COUNT; i++) {
		snprintf(key, sizeof(key), "net_%s", net_kind_desc[i].name);
		out->num(out->arg, key, counter_read(&w->kind[i]));
	}
}

static void
show_counters(const struct worker *w, const struct worker_show *out)
{
	const uint64_t *roce = roce_counters(w->roce);
	char key[64];

	for (int i = 0; i < WORKER_C_COUNT; i++)
		out->num(out->arg, worker_counter_desc[i].name, counter_read(&w->counter[i]));
	show_tx(w, out);
	show_kinds(w, out);
	for (int i = 0; i < VERBS_C_COUNT; i++)
		out->num(out->arg, verbs_counter_desc[i].name,
			 counter_read(&w->verbs.counter[i]));
	show_refusals(w, out);
	for (int i = 0; i < ROCE_C_COUNT; i++) {
		snprintf(key, sizeof(key), "roce_%s", roce_counter_name((enum roce_counter)i));
		out->num(out->arg, key, peek(&roce[i]));
	}
}

static void
show_worker(const struct worker *w, const struct worker_show *out)
{
	out->num(out->arg, "sleeping",
		 atomic_load_explicit(&w->sleep.sleeping, memory_order_relaxed));
	out->num(out->arg, "loops", counter_read(&w->counter[WORKER_C_LOOPS]));
	out->num(out->arg, "busy_loops", counter_read(&w->counter[WORKER_C_BUSY]));
	out->num(out->arg, "run_list", peek(&w->verbs.run_count));
	out->num(out->arg, "shadows_used", peek(&w->verbs.shadows_used));
	out->num(out->arg, "blocks_used", peek(&w->verbs.blocks_used));
	out->num(out->arg, "ios_used", peek(&w->verbs.ios_used));
	out->num(out->arg, "rx_held", roce_rx_held(w->roce));
	/* of all workers: the pools are shared */
	out->num(out->arg, "tx_mbufs_used", rte_mempool_in_use_count(w->s->tx_pool));
	if (w->s->rx_pool)
		out->num(out->arg, "rx_mbufs_used", rte_mempool_in_use_count(w->s->rx_pool));
}

static int
show_each(struct worker_shared *s, uint32_t skip, uint32_t max, const struct worker_show *out,
	  void (*one)(const struct worker *w, const struct worker_show *out))
{
	int n = 0;

	for (uint32_t i = skip; i < s->num_workers && (uint32_t)n < max; i++, n++) {
		out->begin(out->arg);
		out->num(out->arg, "worker", i);
		one(s->worker[i], out);
		out->end(out->arg);
	}
	return n;
}

int
worker_show_workers(struct worker_shared *s, uint32_t skip, uint32_t max,
		    const struct worker_show *out)
{
	return show_each(s, skip, max, out, show_worker);
}

int
worker_show_counters(struct worker_shared *s, uint32_t skip, uint32_t max,
		     const struct worker_show *out)
{
	return show_each(s, skip, max, out, show_counters);
}
