/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines over any ports (or one alone), an application beside each, and commands that
 * start, stop and show. The lcores poll all the time; commands run on the main thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "pmd_glue.h"
#include "testrnic_engine.h"
#include "testrnic_traffic.h"
#include "worker.h"

#define DRAIN_SECONDS 5
#define MAX_SHOWN 1000

struct traffic {
	struct traffic_config cfg;
	struct engine engine[2];
	unsigned int engines;
	struct load_end end[2];
	struct load *load;	   /* under way, or the last one */
	bool flowing;
	uint64_t began;		   /* TSC */
	uint64_t messages, wrong;  /* of all loads so far */
	unsigned int faults;
	bool quit;
};

static volatile sig_atomic_t interrupted;

void
traffic_interrupt(void)
{
	interrupted = 1;
}

/* ---- the loop on an lcore: whatever load is there ---------- */

/** A lone engine's core has both applications. */
static unsigned int
both_steps(void *load)
{
	return load_send_step(load) + load_recv_step(load);
}

static void
rerun(struct traffic *t, bool with_load)
{
	bool alone = t->engines == 1;

	for (unsigned int i = 0; i < t->engines; i++)
		if (t->engine[i].running)
			engine_halt(&t->engine[i]);
	if (!alone)
		engine_run(&t->engine[1], with_load ? load_recv_step : NULL, t->load);
	engine_run(&t->engine[0], !with_load ? NULL : alone ? both_steps : load_send_step, t->load);
}

static void
fault(struct traffic *t, const char *what, const char *why)
{
	fprintf(stderr, "testrnic: %s: %s\n", what, why);
	t->faults++;
}

/* ---- start, stop ---------- */

static void
start(struct traffic *t, double seconds)
{
	uint64_t hz = rte_get_tsc_hz();
	int rc;

	if (t->flowing) {
		fault(t, "start", "traffic flows already");
		return;
	}
	if (t->load)
		load_close(t->load);
	t->load = NULL;
	rc = load_open(&t->cfg.load, &t->end[0], &t->end[1], &t->load);
	if (rc < 0) {
		fault(t, "start", rnic_strerror(rc));
		return;
	}
	load_start(t->load, 0, seconds > 0 ? (uint64_t)(seconds * (double)hz) : UINT64_MAX);
	t->began = rte_rdtsc();
	t->flowing = true;
	rerun(t, true);
}

static void
print_result(struct traffic *t, const struct load_result *r)
{
	double hz = rte_get_tsc_hz();
	double seconds = (double)r->cycles / hz;
	const struct load_spec *s = &t->cfg.load;

	if (s->op == LOAD_PING)
		printf("PING %u B: half round trip p50 %.0f ns, p99 %.0f ns\n", s->size,
		       r->p50 * 1e9 / hz, r->p99 * 1e9 / hz);
	else if (seconds > 0)
		printf("%s %u B, %u QP(s): %llu messages in %.2f s, %.3f M/s, %.3f Gb/s\n",
		       load_op_name(s->op), s->size, s->qps, (unsigned long long)r->messages,
		       seconds, (double)r->messages / seconds * 1e-6,
		       (double)r->messages * s->size / seconds * 8e-9);
	printf("compared whole %llu, wrong %llu\n", (unsigned long long)r->compared,
	       (unsigned long long)r->wrong);
}

static void
stop(struct traffic *t)
{
	uint64_t until = rte_rdtsc() + DRAIN_SECONDS * rte_get_tsc_hz();
	struct load_result r;

	if (!t->flowing)
		return;
	load_stop(t->load);
	while (!load_finished(t->load) && rte_rdtsc() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	if (!load_finished(t->load))
		fault(t, "stop", "requests stay uncompleted");
	t->flowing = false;
	rerun(t, false);
	load_result(t->load, &r);
	print_result(t, &r);
	t->messages += load_progress(t->load);
	t->wrong += r.wrong;
	if (r.wrong)
		fault(t, "traffic", "wrong data arrived");
	if (r.error)
		fault(t, "traffic", rnic_strerror(r.error));
	else if (r.status)
		fault(t, "traffic", rnic_wc_status_str(r.status));
}

/** Until the load ends by itself, or Ctrl-C. */
static void
wait_load(struct traffic *t)
{
	while (t->flowing && !load_finished(t->load) && !interrupted)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	stop(t);
}

/* ---- show ---------- */

static void
show_ports(struct traffic *t)
{
	for (unsigned int i = 0; i < t->engines; i++) {
		struct pmd_port_info p;

		pmd_port_get_info(t->engine[i].port, &p);
		printf("%s: %s (%s) %02x:%02x:%02x:%02x:%02x:%02x %s MTU %u link %s %u Mb/s\n",
		       t->engine[i].cfg.name, p.name, p.driver, p.mac[0], p.mac[1], p.mac[2],
		       p.mac[3], p.mac[4], p.mac[5], t->engine[i].cfg.address, p.mtu,
		       p.link_up ? "up" : "down", p.link_mbps);
		for (int o = 0; o < PMD_OFFLOAD_COUNT; o++)
			printf("  %-16s %s%s\n", pmd_offload_name(o),
			       p.used & 1ull << o ? "used" : "not used: ",
			       p.used & 1ull << o ? "" : p.why_not[o] ? p.why_not[o] : "");
	}
}

static void
show_stats(struct traffic *t)
{
	for (unsigned int i = 0; i < t->engines; i++) {
		struct pmd_port_stats s;

		pmd_port_get_stats(t->engine[i].port, &s);
		printf("%s: rx %llu packets %llu bytes, tx %llu packets %llu bytes, missed %llu "
		       "errors %llu/%llu no mbuf %llu\n", t->engine[i].cfg.name,
		       (unsigned long long)s.rx_packets, (unsigned long long)s.rx_bytes,
		       (unsigned long long)s.tx_packets, (unsigned long long)s.tx_bytes,
		       (unsigned long long)s.rx_missed, (unsigned long long)s.rx_errors,
		       (unsigned long long)s.tx_errors, (unsigned long long)s.rx_nombuf);
	}
	if (t->flowing)
		printf("flowing: %llu messages in %.2f s\n",
		       (unsigned long long)load_progress(t->load),
		       (double)(rte_rdtsc() - t->began) / rte_get_tsc_hz());
}

static void
emit_str(void *arg, const char *key, const char *value)
{
	(void)arg;
	printf(" %s=%s", key, value);
}

static void
emit_num(void *arg, const char *key, uint64_t value)
{
	(void)arg;
	printf(" %s=%llu", key, (unsigned long long)value);
}

static void
emit_begin(void *arg)
{
	fputs(arg, stdout);
}

static void
emit_end(void *arg)
{
	(void)arg;
	putchar('\n');
}

struct question {
	const char *kind;
	int rc;
};

static void
ask_objects(struct engine *e, void *arg)
{
	struct question *q = arg;
	struct worker_show out = { emit_begin, emit_str, emit_num, emit_end,
				   (void *)(uintptr_t)e->cfg.name };

	q->rc = worker_show(e->dev, q->kind, 0, MAX_SHOWN, &out);
}

static void
show(struct traffic *t, const char *kind)
{
	struct question q = { kind, 0 };

	if (!strcmp(kind, "port"))
		show_ports(t);
	else if (!strcmp(kind, "stats"))
		show_stats(t);
	else
		for (unsigned int i = 0; i < t->engines && q.rc >= 0; i++)
			engine_ask(&t->engine[i], ask_objects, &q);
	if (q.rc < 0)
		fault(t, "show", "what? port, stats, or a kind of object as rnicctl(8) knows");
}

/* ---- commands ---------- */

static bool
set_op(struct load_spec *s, const char *name)
{
	for (enum load_op o = LOAD_WRITE; o <= LOAD_PING; o++)
		if (!strcasecmp(name, load_op_name(o))) {
			s->op = o;
			s->stamps |= o == LOAD_PING;
			return true;
		}
	return false;
}

static void
set(struct traffic *t, const char *name, const char *value)
{
	struct load_spec *s = &t->cfg.load;
	unsigned long n = strtoul(value, NULL, 0);
	uint32_t *field = !strcmp(name, "size")	   ? &s->size
			  : !strcmp(name, "qps")   ? &s->qps
			  : !strcmp(name, "depth") ? &s->depth
			  : !strcmp(name, "list")  ? &s->list
			  : !strcmp(name, "mtu")   ? &s->mtu
						   : NULL;

	if (!strcmp(name, "op") && set_op(s, value))
		return;
	if (!strcmp(name, "stamps"))
		s->stamps = n != 0;
	else if (field && n > 0 && n <= UINT32_MAX)
		*field = (uint32_t)n;
	else
		fault(t, "set", "op|size|qps|depth|list|mtu|stamps VALUE");
}

static void
help(void)
{
	puts("show port|stats|KIND   KIND as rnicctl(8): qps, counters, memory, ...\n"
	     "set op write|send|read|ping\n"
	     "set size|qps|depth|list|mtu|stamps N\n"
	     "start                  traffic as set, until stop\n"
	     "run SECONDS            traffic for that long\n"
	     "stop                   and print what flowed\n"
	     "wait                   until Ctrl-C\n"
	     "quit");
}

static void
command(struct traffic *t, char *line)
{
	char *save, *word = strtok_r(line, " \t\n", &save);
	char *one = word ? strtok_r(NULL, " \t\n", &save) : NULL;
	char *two = one ? strtok_r(NULL, " \t\n", &save) : NULL;

	if (word == NULL || *word == '#')
		return;
	if (!strcmp(word, "show") && one)
		show(t, one);
	else if (!strcmp(word, "set") && two)
		set(t, one, two);
	else if (!strcmp(word, "start"))
		start(t, 0);
	else if (!strcmp(word, "run") && one && strtod(one, NULL) > 0) {
		start(t, strtod(one, NULL));
		wait_load(t);
	} else if (!strcmp(word, "stop"))
		stop(t);
	else if (!strcmp(word, "wait"))
		while (!interrupted)
			nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	else if (!strcmp(word, "quit") || !strcmp(word, "exit"))
		t->quit = true;
	else if (!strcmp(word, "help"))
		help();
	else
		fault(t, word, "no such command; help lists them");
	fflush(stdout);
}

static void
read_commands(struct traffic *t)
{
	char line[256];

	while (!t->quit && !interrupted) {
		if (t->cfg.prompt)
			fputs("testrnic> ", stdout);
		fflush(stdout);
		if (!fgets(line, sizeof(line), t->cfg.commands))
			break;
		command(t, line);
	}
}

/* ---- set-up ---------- */

static int
open_engines(struct traffic *t, const char **why)
{
	static const char *const names[] = { "a", "b" };
	int rc = 0;

	t->engines = t->cfg.ethdev[0] == t->cfg.ethdev[1] ? 1 : 2;
	for (unsigned int i = 0; rc == 0 && i < t->engines; i++) {
		struct engine_config c = {
			.name = names[i], .lcore = t->cfg.lcore[i], .ethdev = t->cfg.ethdev[i],
			.mtu = t->cfg.mtu, .address = t->cfg.address[i], .huge = t->cfg.huge,
			.listen = i == 0 ? t->cfg.listen : NULL,
			.seed = t->cfg.seed ? t->cfg.seed + i : 0,
		};

		rc = engine_open(&t->engine[i], &c, why);
	}
	if (rc < 0)
		return rc;
	rerun(t, false);
	for (unsigned int i = 0; rc == 0 && i < 2; i++) {
		rc = load_end_open(&t->end[i], t->engine[i % t->engines].ctx,
				   t->cfg.load.working_set);
		*why = rnic_strerror(rc);
	}
	return rc;
}

static void
close_engines(struct traffic *t)
{
	if (t->load)
		load_close(t->load);
	for (unsigned int i = 0; i < 2; i++)
		if (t->end[i].ctx)
			load_end_close(&t->end[i]);
	for (unsigned int i = 0; i < t->engines; i++)
		engine_close(&t->engine[i]);
}

int
traffic_run(const struct traffic_config *cfg)
{
	struct traffic *t = aligned_alloc(64, sizeof(*t));
	const char *why = "no memory";
	int failed;

	if (t == NULL)
		return 2;
	memset(t, 0, sizeof(*t));
	t->cfg = *cfg;
	if (open_engines(t, &why) < 0) {
		fault(t, "cannot start", why);
	} else if (cfg->commands) {
		read_commands(t);
		stop(t);
	} else {
		start(t, cfg->seconds);
		wait_load(t);
	}
	if (interrupted || cfg->commands)
		printf("total: %llu messages, %llu wrong\n", (unsigned long long)t->messages,
		       (unsigned long long)t->wrong);
	close_engines(t);
	failed = t->faults > 0;
	free(t);
	return failed;
}
