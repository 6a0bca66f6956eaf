/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping without losing a wake-up (ring_kick.h, right column): say so, fence, run the loop
 * once more, and only if that finds nothing wait in epoll, until the next deadline at most. Where
 * a port has no receive interrupt the wait is a nap, from 10 us to 1 ms the longer nothing comes.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_rcu_qsbr.h>

#include "worker_priv.h"

#define SLEEP_EVENTS 64

void
worker_write_eventfd(int fd)
{
	const uint64_t one = 1;
	ssize_t rc;

	do
		rc = write(fd, &one, sizeof(one)); /* EAGAIN: 2^64 - 2 kicks, it is readable */
	while (rc < 0 && errno == EINTR);
}

void
worker_kick(struct worker *w)
{
	worker_write_eventfd(w->kick_fd);
}

static int
watch(struct worker *w, int fd, uint32_t how)
{
	struct epoll_event ev = {.events = EPOLLIN | how, .data.ptr = NULL};

	return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/** @return whether its receive interrupt can be waited for. */
static bool
watch_port(struct worker *w, struct pmd_port *p)
{
	uint16_t queue = (uint16_t)w->id;
	int fd = pmd_rx_intr_fd(p, queue);

	if (fd < 0 || pmd_rx_intr_enable(p, queue) != 0)
		return false;
	pmd_rx_intr_disable(p, queue);
	return watch(w, fd, 0) == 0;
}

int
worker_sleep_create(struct worker *w)
{
	w->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->kick_fd < 0 || w->epoll_fd < 0 || watch(w, w->kick_fd, EPOLLET) != 0)
		return -errno;
	for (uint32_t i = 0; i < w->s->num_ports; i++) {
		struct pmd_port_info info;

		pmd_port_get_info(w->s->port[i], &info);
		if (!info.builtin && !watch_port(w, w->s->port[i]))
			w->napping = true;
	}
	return 0;
}

void
worker_sleep_destroy(struct worker *w)
{
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->kick_fd >= 0)
		close(w->kick_fd);
}

static void
interrupts(struct worker *w, int (*set)(struct pmd_port *p, uint16_t queue))
{
	for (uint32_t i = 0; i < w->s->num_ports; i++)
		set(w->s->port[i], (uint16_t)w->id);
}

/** How long to wait, ns: to the next deadline, a nap's length, or for ever. */
static uint64_t
wait_ns(struct worker *w, uint64_t *nap)
{
	uint64_t next = roce_next_deadline(w->roce);
	uint64_t wait = UINT64_MAX;

	if (next != UINT64_MAX)
		wait = next > w->now ? next - w->now : 0;
	if (!w->napping)
		return wait;
	*nap = *nap == 0 ? WORKER_NAP_MIN_NS : RTE_MIN(*nap * 2, WORKER_NAP_MAX_NS);
	return RTE_MIN(wait, *nap);
}

static void
wait_for_events(struct worker *w, uint64_t ns)
{
	const struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
				   .tv_nsec = (long)(ns % 1000000000)};
	struct epoll_event ev[SLEEP_EVENTS];
	int n;

	rte_rcu_qsbr_thread_offline(w->s->qsbr, w->id);
	n = epoll_pwait2(w->epoll_fd, ev, SLEEP_EVENTS, ns == UINT64_MAX ? NULL : &t, NULL);
	rte_rcu_qsbr_thread_online(w->s->qsbr, w->id);
	w->now = worker_clock_now(&w->s->clock);
	for (int i = 0; i < n; i++)
		if (ev[i].data.ptr != NULL)
			worker_ctx_wake(w, ev[i].data.ptr);
	worker_count(w, WORKER_C_WOKEN, n > 0);
	worker_count(w, w->napping ? WORKER_C_NAPS : WORKER_C_SLEEPS, 1);
}

/** Nothing that only this thread would go on with. */
static bool
may_sleep(const struct worker *w)
{
	if (w->polled != NULL || w->verbs.run_head != NULL || w->outbox.head != NULL ||
	    worker_is_late(w))
		return false;
	for (uint32_t i = 0; i < w->num_tx; i++)
		if (w->batch[i].n != 0)
			return false;
	return true;
}

bool
worker_sleep(struct worker *w, uint64_t *nap)
{
	bool waits;

	if (!may_sleep(w))
		return false;
	ring_sleep_enter(&w->sleep);
	if (!w->napping)
		interrupts(w, pmd_rx_intr_enable);
	waits = worker_poll(w) == 0 && may_sleep(w) &&
		!atomic_load_explicit(&w->stop, memory_order_relaxed);
	if (waits)
		wait_for_events(w, wait_ns(w, nap));
	ring_sleep_leave(&w->sleep);
	if (!w->napping)
		interrupts(w, pmd_rx_intr_disable);
	return waits;
}
