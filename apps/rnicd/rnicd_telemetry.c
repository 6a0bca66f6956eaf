/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Totals in DPDK's telemetry. Its thread may not look at what the control thread owns: it
 * leaves a question, kicks the control thread and waits for the answer.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_telemetry.h>

#include "rnicd.h"

struct question {
	struct question *next;
	const char *kind; /* NULL: how many objects of each kind */
	struct rte_tel_data *d;
	int rc;
	bool answered;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct question *first;
	int fd; /* eventfd, in the control thread's epoll set */
	bool open;
} tel = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER, .fd = -1};

/* ---- sums over objects ---------- */

#define MAX_SUMS RTE_TEL_MAX_DICT_ENTRIES

struct sums {
	uint32_t objects, num;
	struct {
		char key[64];
		uint64_t value;
	} sum[MAX_SUMS];
};

static void
sum_begin(void *arg)
{
	((struct sums *)arg)->objects++;
}

static void
sum_str(void *arg, const char *key, const char *value)
{
	(void)arg, (void)key, (void)value;
}

static void
sum_num(void *arg, const char *key, uint64_t value)
{
	struct sums *s = arg;
	uint32_t i;

	for (i = 0; i < s->num && strcmp(s->sum[i].key, key) != 0; i++)
		;
	if (i == MAX_SUMS)
		return;
	if (i == s->num) {
		snprintf(s->sum[i].key, sizeof(s->sum[i].key), "%s", key);
		s->sum[i].value = 0;
		s->num++;
	}
	s->sum[i].value += value;
}

static void
sum_end(void *arg)
{
	(void)arg;
}

static int
sum_kind(struct rnicd *r, const char *kind, struct sums *s)
{
	const struct worker_show out = {sum_begin, sum_str, sum_num, sum_end, s};

	memset(s, 0, sizeof(*s));
	return worker_show(r->dev, kind, 0, UINT32_MAX, &out);
}

/* ---- the control thread's side ---------- */

static int
answer_kind(struct rnicd *r, struct question *q, struct sums *s)
{
	int rc = sum_kind(r, q->kind, s);

	rte_tel_data_start_dict(q->d);
	for (uint32_t i = 0; i < s->num; i++)
		if (strcmp(s->sum[i].key, "worker") != 0)
			rte_tel_data_add_dict_u64(q->d, s->sum[i].key, s->sum[i].value);
	return rc < 0 ? rc : 0;
}

static int
answer_totals(struct rnicd *r, struct question *q, struct sums *s)
{
	const char *const *kind = worker_show_kinds();

	rte_tel_data_start_dict(q->d);
	for (; *kind != NULL; kind++)
		if (sum_kind(r, *kind, s) >= 0)
			rte_tel_data_add_dict_u64(q->d, *kind, s->objects);
	return 0;
}

void
rnicd_telemetry_ready(struct rnicd *r)
{
	static struct sums s; /* large, and there is one control thread */
	struct question *q;
	uint64_t count;

	if (read(tel.fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		RNICD_LOG(WARNING, "telemetry: %s", strerror(errno));
	pthread_mutex_lock(&tel.lock);
	while ((q = tel.first) != NULL) {
		tel.first = q->next;
		q->rc = q->kind != NULL ? answer_kind(r, q, &s) : answer_totals(r, q, &s);
		q->answered = true;
	}
	pthread_cond_broadcast(&tel.answered);
	pthread_mutex_unlock(&tel.lock);
}

/* ---- the telemetry thread's side ---------- */

static int
ask(const char *kind, struct rte_tel_data *d)
{
	struct question q = {.kind = kind, .d = d, .rc = -ESHUTDOWN};

	pthread_mutex_lock(&tel.lock);
	if (tel.open) {
		q.next = tel.first;
		tel.first = &q;
		eventfd_write(tel.fd, 1);
		while (!q.answered)
			pthread_cond_wait(&tel.answered, &tel.lock);
	}
	pthread_mutex_unlock(&tel.lock);
	return q.rc;
}

static int
on_totals(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd, (void)params;
	return ask(NULL, d);
}

static int
on_counters(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd, (void)params;
	return ask("counters", d);
}

static int
on_workers(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd, (void)params;
	return ask("workers", d);
}

static int
on_memory(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd, (void)params;
	return ask("memory", d);
}

static int
on_ports(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd, (void)params;
	return ask("ports", d);
}

int
rnicd_telemetry_open(struct rnicd *r)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &r->epfd};

	tel.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (tel.fd < 0 || epoll_ctl(r->epfd, EPOLL_CTL_ADD, tel.fd, &ev) < 0)
		return -errno;
	tel.open = true;
	if (rte_telemetry_register_cmd("/softrnic/totals", on_totals,
			"Objects of each kind. No parameters.") < 0 ||
	    rte_telemetry_register_cmd("/softrnic/counters", on_counters,
			"Counters, summed over workers. No parameters.") < 0 ||
	    rte_telemetry_register_cmd("/softrnic/workers", on_workers,
			"State of workers, summed. No parameters.") < 0 ||
	    rte_telemetry_register_cmd("/softrnic/memory", on_memory,
			"Memory, summed over its kinds. No parameters.") < 0 ||
	    rte_telemetry_register_cmd("/softrnic/ports", on_ports,
			"Numbers of ports, summed. No parameters.") < 0)
		return -EINVAL;
	return 0;
}

void
rnicd_telemetry_close(struct rnicd *r)
{
	pthread_mutex_lock(&tel.lock);
	tel.open = false;
	pthread_mutex_unlock(&tel.lock);
	if (tel.fd < 0)
		return;
	rnicd_telemetry_ready(r);
	close(tel.fd);
	tel.fd = -1;
}
