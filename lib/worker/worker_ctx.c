/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts: bells of those that ring, kicks of those that have been quiet for a while
 * (ring_kick.h). A context is on one of two lists, polled or idle.
 */
#include <sys/epoll.h>

#include "worker_priv.h"

static void
list_add(struct worker *w, struct worker_ctx **list, struct worker_ctx *ctx)
{
	ctx->at[w->id].next = *list;
	*list = ctx;
}

static void
list_del(struct worker *w, struct worker_ctx **list, struct worker_ctx *ctx)
{
	while (*list != NULL && *list != ctx)
		list = &(*list)->at[w->id].next;
	if (*list == ctx)
		*list = ctx->at[w->id].next;
}

void
worker_ctx_add(struct worker *w, struct worker_ctx *ctx)
{
	struct worker_ctx_at *at = &ctx->at[w->id];
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = ctx};

	at->idle = false;
	at->last_bell = w->now;
	list_add(w, &w->polled, ctx);
	if (at->kick_fd >= 0)
		epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, at->kick_fd, &ev);
}

void
worker_ctx_del(struct worker *w, struct worker_ctx *ctx)
{
	struct worker_ctx_at *at = &ctx->at[w->id];

	list_del(w, at->idle ? &w->idle : &w->polled, ctx);
	if (at->kick_fd >= 0)
		epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, at->kick_fd, NULL);
}

void
worker_ctx_wake(struct worker *w, struct worker_ctx *ctx)
{
	struct worker_ctx_at *at = &ctx->at[w->id];

	if (!at->idle)
		return;
	list_del(w, &w->idle, ctx);
	list_add(w, &w->polled, ctx);
	at->idle = false;
	at->last_bell = w->now;
	ring_kick_awake(at->daemon);
	worker_count(w, WORKER_C_CTX_KICKED, 1);
}

void
worker_ctx_kick(struct worker *w, struct worker_ctx *ctx)
{
	/* The context's mark before the worker's, which takes them in the other order. */
	atomic_store_explicit(&ctx->at[w->id].kicked, true, memory_order_release);
	atomic_store_explicit(&w->kicked, true, memory_order_seq_cst);
	if (ring_sleep_kick_needed(&w->sleep))
		worker_kick(w);
}

/** Some context that the control thread saw kicked. */
static void
wake_kicked(struct worker *w)
{
	struct worker_ctx *ctx = w->idle, *next;

	atomic_exchange_explicit(&w->kicked, false, memory_order_seq_cst);
	for (; ctx != NULL; ctx = next) {
		next = ctx->at[w->id].next;
		if (atomic_exchange_explicit(&ctx->at[w->id].kicked, false, memory_order_acq_rel))
			worker_ctx_wake(w, ctx);
	}
}

struct bell_arg {
	struct worker *w;
	struct verbs_qp **slots;
	uint32_t used;
	unsigned int found;
};

static void
bell_found(void *arg, uint32_t slot)
{
	struct bell_arg *a = arg;
	struct verbs_qp *qp = likely(slot < a->used) ? a->slots[slot] : NULL;

	a->found++;
	if (likely(qp != NULL))
		verbs_run_add(&a->w->verbs, qp);
}

static unsigned int
take_bells(struct worker *w, struct worker_ctx_at *at)
{
	struct bell_arg arg = {.w = w};

	for (uint32_t i = 0; i < at->num_chunks; i++) {
		struct ring_bell_scan *scan = &at->scan[i];

		if (likely(!ring_bell_any(at->chunk[i]) && !scan->top && !scan->mid))
			continue;
		arg.slots = at->slots[i];
		arg.used = at->slots_used[i];
		ring_bell_collect(at->chunk[i], scan, WORKER_BELL_BUDGET, bell_found, &arg);
		arg.found++; /* a summary without a bell is activity as well */
	}
	return arg.found;
}

/**
 * Quiet for long: need_kick, a last look, then off the list. No scan is half done, or there
 * would have been something this time. @return whether it is off.
 */
static bool
try_idle(struct worker *w, struct worker_ctx_at *at)
{
	if (!ring_kick_idle(at->daemon, at->chunk, at->num_chunks))
		return false;
	at->idle = true;
	worker_count(w, WORKER_C_CTX_IDLE, 1);
	return true;
}

unsigned int
worker_bells(struct worker *w)
{
	struct worker_ctx **link = &w->polled, *ctx;
	unsigned int found = 0, n;

	if (unlikely(atomic_load_explicit(&w->kicked, memory_order_relaxed)))
		wake_kicked(w);
	while ((ctx = *link) != NULL) {
		struct worker_ctx_at *at = &ctx->at[w->id];

		n = take_bells(w, at);
		found += n;
		if (n != 0) {
			at->last_bell = w->now;
		} else if (w->now - at->last_bell > WORKER_CTX_IDLE_NS && try_idle(w, at)) {
			*link = at->next;
			list_add(w, &w->idle, ctx);
			continue;
		}
		link = &at->next;
	}
	worker_count(w, WORKER_C_BELLS, found);
	return found;
}
