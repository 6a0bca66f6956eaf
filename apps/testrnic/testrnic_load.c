/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of a load: post lists, poll completions, check, repost receives. A step does a
 * bounded piece of work and never waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "testrnic_load_priv.h"

static const char *const op_names[] = {
	[LOAD_WRITE] = "WRITE", [LOAD_SEND] = "SEND", [LOAD_READ] = "READ", [LOAD_PING] = "PING",
};

const char *
load_op_name(enum load_op op)
{
	return op_names[op];
}

/* ---- the side that posts ---------- */

/** Whether message n of a QP may be posted: its slot at the receiver has been looked at. */
static bool
may_post(const struct load *l, uint32_t qp, uint64_t n)
{
	if (!l->spec.stamps || l->spec.op == LOAD_READ)
		return n - l->done[qp] < l->slots;
	return n - atomic_load_explicit(&l->checked[qp], memory_order_acquire) < l->slots;
}

static uint64_t
stamp_of(const struct load *l, uint64_t n)
{
	return l->spec.op == LOAD_READ ? n % l->slots : n; /* what is read was stamped once */
}

static bool
prep_send(struct load *l, uint32_t qp, uint64_t n)
{
	struct rnic_qp *q = l->tx.qp[qp];
	uint8_t *at = load_slot(l, &l->tx, qp, n);
	uint64_t remote = (uintptr_t)load_slot(l, &l->rx, qp, n);
	struct rnic_wqe *w = rnic_sq_get(q, qp, 1);

	if (w == NULL)
		return false;
	if (l->spec.op == LOAD_SEND)
		rnic_prep_send(w, RNIC_SEND_SIGNALED);
	else if (l->spec.op == LOAD_READ)
		rnic_prep_read(w, remote, l->rx.end->mr->rkey, RNIC_SEND_SIGNALED);
	else
		rnic_prep_write(w, remote, l->rx.end->mr->rkey, RNIC_SEND_SIGNALED);
	if (l->spec.stamps)
		load_stamp(l, at, l->spec.op == LOAD_READ ? ~0ull : n);
	rnic_prep_sge(q, w, (uintptr_t)at, l->spec.size, l->tx.end->mr->lkey);
	return true;
}

static uint32_t
post_list(struct load *l, uint32_t qp)
{
	uint32_t i;

	if (l->posted[qp] - l->done[qp] + l->spec.list > l->spec.depth ||
	    !may_post(l, qp, l->posted[qp] + l->spec.list - 1))
		return 0;
	for (i = 0; i < l->spec.list; i++)
		if (!prep_send(l, qp, l->posted[qp] + i))
			break;
	if (i < l->spec.list)
		l->error = -ENOMEM;
	rnic_sq_submit(l->tx.qp[qp]);
	l->posted[qp] += i;
	l->outstanding += i;
	return i;
}

/** About one burst a step, and no long search for a QP with room. */
static uint32_t
post_some(struct load *l)
{
	uint32_t n = 0;

	for (int tries = 0; tries < LOAD_BATCH && n < LOAD_BATCH; tries++) {
		uint32_t posted = post_list(l, l->next);

		n += posted;
		if (++l->next == l->spec.qps)
			l->next = 0;
		if (posted == 0 && (l->spec.qps == 1 || tries >= 4))
			break;
	}
	return n;
}

static void
complete(struct load *l, const struct rnic_wc *wc)
{
	uint32_t qp = (uint32_t)wc->wr_id;
	uint64_t n = l->done[qp]++;

	l->outstanding--;
	l->completed++;
	l->total++;
	if (wc->status != 0) {
		if (l->status == 0)
			l->status = wc->status;
		return;
	}
	if (l->spec.op == LOAD_READ && l->spec.stamps &&
	    !load_check(l, qp, n, stamp_of(l, n), &l->tx_compared))
		l->tx_wrong++;
}

static int
reap(struct load *l)
{
	struct rnic_wc wc[LOAD_BATCH];
	int n;

	if (l->outstanding == 0)
		return 0;
	n = rnic_poll_cq(l->tx.cq, LOAD_BATCH, wc);
	if (n < 0)
		l->error = n;
	for (int i = 0; i < n; i++)
		complete(l, &wc[i]);
	atomic_store_explicit(&l->progress, l->total, memory_order_relaxed);
	return n > 0 ? n : 0;
}

/** Everything posted is completed, and seen at the other side where it looks. */
static bool
drained(const struct load *l)
{
	bool looks = l->spec.op == LOAD_SEND || (l->spec.op == LOAD_WRITE && l->spec.stamps);

	if (l->outstanding != 0 || l->sent_at != 0)
		return false;
	for (uint32_t q = 0; looks && q < l->spec.qps; q++)
		if (atomic_load_explicit(&l->checked[q], memory_order_acquire) != l->posted[q])
			return false;
	return true;
}

/** Open and close the window. */
static void
watch(struct load *l)
{
	uint64_t now = rte_rdtsc();

	if (l->began == 0)
		l->began = now;
	if (!l->measuring && !l->closing && now - l->began >= l->warm) {
		l->measuring = true;
		l->opened = now;
		l->completed = 0;
		l->num_pings = 0;
	} else if (l->measuring && ((now - l->opened >= l->window && l->completed != 0) ||
				    atomic_load_explicit(&l->asked_to_close,
							 memory_order_relaxed))) {
		l->measuring = false;
		l->closing = true;
		l->messages = l->completed;
		l->cycles = now - l->opened;
	}
	if (l->error != 0 || l->status != 0)
		l->closing = true;
	if ((l->closing && drained(l)) || l->error != 0 || l->status != 0)
		atomic_store_explicit(&l->finished, true, memory_order_release);
}

/** From slot `from` of one side to slot `to` of the other. */
static bool
throw_ball(struct load *l, struct load_queues *q, uint32_t from, struct load_queues *peer,
	   uint32_t to, uint64_t n)
{
	struct rnic_wqe *w = rnic_sq_get(q->qp[0], 0, 1);
	uint8_t *at = load_slot(l, q, 0, from);

	if (w == NULL)
		return false;
	load_stamp(l, at, n);
	rnic_prep_write(w, (uintptr_t)load_slot(l, peer, 0, to), peer->end->mr->rkey,
			RNIC_SEND_SIGNALED);
	rnic_prep_sge(q->qp[0], w, (uintptr_t)at, l->spec.size, q->end->mr->lkey);
	rnic_sq_submit(q->qp[0]);
	return true;
}

/** One ball in the air: it goes out from slot 0 and comes back into slot 1. */
static unsigned int
ping_step(struct load *l)
{
	uint64_t n = l->posted[0], now;

	if (l->sent_at != 0) {
		if (!load_arrived(l, load_slot(l, &l->tx, 0, 1), n - 1))
			return 0;
		now = rte_rdtsc();
		if (l->measuring && l->num_pings < LOAD_PINGS)
			l->pings[l->num_pings++] = (uint32_t)(now - l->sent_at) / 2;
		l->sent_at = 0;
	}
	if (l->closing || l->error != 0 || n - l->done[0] >= l->spec.depth)
		return 0; /* done, or completions are behind */
	now = rte_rdtsc();
	if (!throw_ball(l, &l->tx, 0, &l->rx, 0, n))
		return 0;
	l->sent_at = now;
	l->posted[0]++;
	l->outstanding++;
	return 1;
}

unsigned int
load_send_step(void *load)
{
	struct load *l = load;
	unsigned int work = (unsigned int)reap(l);

	if (l->spec.op == LOAD_PING)
		work += ping_step(l);
	else if (!l->closing && l->error == 0)
		work += post_some(l);
	watch(l);
	return work;
}

/* ---- the side that receives ---------- */

static void
saw(struct load *l, uint32_t qp)
{
	if (l->spec.stamps && !load_check(l, qp, l->seen[qp], l->seen[qp], &l->rx_compared))
		l->rx_wrong++;
	l->seen[qp]++;
	atomic_store_explicit(&l->checked[qp], l->seen[qp], memory_order_release);
}

static unsigned int
recv_sends(struct load *l)
{
	struct rnic_wc wc[LOAD_BATCH];
	int n = rnic_poll_cq(l->rx.cq, LOAD_BATCH, wc);

	if (n < 0)
		l->rx_error = n;
	for (int i = 0; i < n; i++) {
		uint32_t qp = (uint32_t)wc[i].wr_id;

		if (wc[i].status != 0) {
			l->rx_status = wc[i].status;
			return (unsigned int)n;
		}
		saw(l, qp);
		if (!load_prep_recv(l, qp, l->seen[qp] - 1 + load_recv_depth(l)))
			l->rx_error = -ENOMEM;
		/* once a run of the same QP */
		if (i + 1 == n || (uint32_t)wc[i + 1].wr_id != qp)
			rnic_rq_submit(l->rx.qp[qp]);
	}
	return n > 0 ? (unsigned int)n : 0;
}

static unsigned int
recv_writes(struct load *l)
{
	unsigned int n = 0;

	for (uint32_t q = 0; q < l->spec.qps; q++)
		while (n < LOAD_BATCH &&
		       load_arrived(l, load_slot(l, &l->rx, q, l->seen[q]), l->seen[q])) {
			saw(l, q);
			n++;
		}
	return n;
}

static unsigned int
return_ping(struct load *l)
{
	uint64_t n = l->seen[0];
	struct rnic_wc wc;

	if (l->owed && rnic_poll_cq(l->rx.cq, 1, &wc) == 1) {
		l->owed--;
		if (wc.status != 0)
			l->rx_status = wc.status;
	}
	if (l->owed >= l->spec.depth || !load_arrived(l, load_slot(l, &l->rx, 0, 0), n) ||
	    !throw_ball(l, &l->rx, 2, &l->tx, 1, n))
		return 0;
	l->seen[0]++;
	l->owed++;
	return 1;
}

unsigned int
load_recv_step(void *load)
{
	struct load *l = load;

	if (l->spec.op == LOAD_SEND)
		return recv_sends(l);
	if (l->spec.op == LOAD_PING)
		return return_ping(l);
	return l->spec.op == LOAD_WRITE && l->spec.stamps ? recv_writes(l) : 0;
}

/* ---- a load as a whole ---------- */

static void
fill(struct load *l)
{
	struct load_queues *src = l->spec.op == LOAD_READ ? &l->rx : &l->tx;
	struct load_queues *dst = l->spec.op == LOAD_READ ? &l->tx : &l->rx;
	uint32_t used = l->slots * l->spec.qps;

	for (size_t i = 0; i < (size_t)used * l->spec.size; i++)
		src->end->buf[i] = (uint8_t)(i * 131 + (i >> 8) * 7 + 1);
	memset(dst->end->buf, 0, (size_t)used * l->spec.size);
	for (uint32_t q = 0; l->spec.op == LOAD_READ && l->spec.stamps && q < l->spec.qps; q++)
		for (uint32_t n = 0; n < l->slots; n++)
			load_stamp(l, load_slot(l, src, q, n), n);
}

static int
allocate(struct load *l)
{
	uint32_t n = l->spec.qps;

	l->posted = calloc(n, sizeof(*l->posted));
	l->done = calloc(n, sizeof(*l->done));
	l->base = calloc(n, sizeof(*l->base));
	l->seen = calloc(n, sizeof(*l->seen));
	l->checked = calloc(n, sizeof(*l->checked));
	l->pings = l->spec.op == LOAD_PING ? calloc(LOAD_PINGS, sizeof(*l->pings)) : NULL;
	if (!l->posted || !l->done || !l->base || !l->seen || !l->checked ||
	    (l->spec.op == LOAD_PING && !l->pings))
		return -ENOMEM;
	return 0;
}

int
load_open(const struct load_spec *spec, struct load_end *from, struct load_end *to,
	  struct load **out)
{
	struct load *l = aligned_alloc(64, sizeof(*l));
	int rc;

	if (l == NULL)
		return -ENOMEM;
	memset(l, 0, sizeof(*l));
	l->spec = *spec;
	l->tx.end = from;
	l->rx.end = to;
	l->slots = (uint32_t)(spec->working_set / spec->size / spec->qps);
	rc = l->slots < spec->list || l->slots < 3 || spec->working_set > from->len ||
			     spec->working_set > to->len || spec->size < sizeof(uint64_t)
		     ? -EINVAL
		     : allocate(l);
	if (rc == 0)
		rc = load_queues_open(l);
	if (rc < 0) {
		load_close(l);
		return rc;
	}
	*out = l;
	return 0;
}

void
load_close(struct load *l)
{
	load_queues_close(l);
	free(l->posted);
	free(l->done);
	free(l->base);
	free(l->seen);
	free(l->checked);
	free(l->pings);
	free(l);
}

void
load_start(struct load *l, uint64_t warm, uint64_t window)
{
	fill(l);
	memcpy(l->base, l->posted, l->spec.qps * sizeof(*l->base));
	l->warm = warm;
	l->window = window;
	l->began = l->sent_at = 0;
	l->measuring = l->closing = false;
	l->status = l->rx_status = 0;
	l->error = l->rx_error = 0;
	l->tx_compared = l->tx_wrong = l->rx_compared = l->rx_wrong = 0;
	l->messages = l->cycles = l->total = 0;
	atomic_store(&l->progress, 0);
	atomic_store(&l->asked_to_close, false);
	atomic_store(&l->finished, false);
}

bool
load_finished(const struct load *l)
{
	return atomic_load_explicit(&l->finished, memory_order_acquire);
}

void
load_stop(struct load *l)
{
	atomic_store_explicit(&l->asked_to_close, true, memory_order_relaxed);
}

uint64_t
load_progress(const struct load *l)
{
	return atomic_load_explicit(&l->progress, memory_order_relaxed);
}

static int
by_cycles(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void
load_result(struct load *l, struct load_result *r)
{
	*r = (struct load_result){
		.messages = l->messages,
		.cycles = l->cycles,
		.compared = l->tx_compared + l->rx_compared,
		.wrong = l->tx_wrong + l->rx_wrong,
		.status = l->status ? l->status : l->rx_status,
		.error = l->error ? l->error : l->rx_error,
	};
	if (l->num_pings > 0) {
		qsort(l->pings, l->num_pings, sizeof(*l->pings), by_cycles);
		r->p50 = l->pings[l->num_pings / 2];
		r->p99 = l->pings[(uint64_t)l->num_pings * 99 / 100];
	}
	if (l->spec.op != LOAD_PING && !l->spec.stamps && !load_same(l, &r->compared))
		r->wrong++;
}
