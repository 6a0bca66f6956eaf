/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the rows: two engines joined by rings, an application on the core of each, and in each
 * round every limit and every figure once, so that drift of the machine meets all alike.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "pmd_glue.h"
#include "testrnic_bench.h"
#include "testrnic_limit.h"
#include "testrnic_report.h"

#define MIB (1ull << 20)
#define MEMORY (64 * MIB) /* that each side's buffers cycle through, at most */
#define PING_ROUNDS 200000
#define GIVE_UP_SECONDS 5

enum limit_kind { LIMIT_64, LIMIT_4096, LIMIT_PING, LIMIT_ROW1, LIMIT_COUNT };

/** A line of the table. */
struct definition {
	int row;
	enum limit_kind limit;
	double must, stretch;
	struct load_spec load;
};

#define SMALL(op_, qps_, list_) \
	{ .op = (op_), .size = 64, .qps = (qps_), .depth = 128, .list = (list_), .mtu = 1024, \
	  .working_set = 512 << 10 }
#define LARGE(op_) \
	{ .op = (op_), .size = 64 << 10, .qps = 1, .depth = 128, .list = 1, .mtu = 4096, \
	  .working_set = MEMORY, .stamps = true }

static const struct definition table[] = {
	{ 1, LIMIT_64, 0.50, 0.65, SMALL(LOAD_WRITE, 1, 32) }, /* first: the limit of row 5 */
	{ 1, LIMIT_64, 0.50, 0.65, SMALL(LOAD_WRITE, 64, 32) },
	{ 1, LIMIT_64, 0.50, 0.65, SMALL(LOAD_SEND, 1, 32) },
	{ 1, LIMIT_64, 0.50, 0.65, SMALL(LOAD_SEND, 64, 32) },
	{ 1, LIMIT_64, 0.30, 0.45, SMALL(LOAD_WRITE, 1, 1) },
	{ 1, LIMIT_64, 0.30, 0.45, SMALL(LOAD_WRITE, 64, 1) },
	{ 1, LIMIT_64, 0.30, 0.45, SMALL(LOAD_SEND, 1, 1) },
	{ 1, LIMIT_64, 0.30, 0.45, SMALL(LOAD_SEND, 64, 1) },
	{ 2, LIMIT_4096, 0.80, 0.90, LARGE(LOAD_WRITE) },
	{ 2, LIMIT_4096, 0.80, 0.90, LARGE(LOAD_READ) },
	{ 2, LIMIT_4096, 0.80, 0.90, LARGE(LOAD_SEND) },
	{ 4, LIMIT_PING, 2.0, 1.5,
	  { .op = LOAD_PING, .size = 64, .qps = 1, .depth = 8, .list = 1, .mtu = 1024,
	    .working_set = 4096, .stamps = true } },
	{ 5, LIMIT_ROW1, 0.45, 0.50, SMALL(LOAD_WRITE, 1, 32) },
};
#define FIGURES (sizeof(table) / sizeof(table[0]))

struct bench {
	struct bench_config cfg;
	struct engine a, b, hairpin;
	struct load_end end_a, end_b;
	struct pmd_port *ping[2];
	struct load *load[FIGURES];
	struct figure figure[FIGURES];
	double limit[LIMIT_COUNT];
	uint64_t hz, warm, window;
};

static volatile sig_atomic_t stopped;

void
bench_stop(void)
{
	stopped = 1;
}

unsigned int
bench_parse_rows(const char *text)
{
	unsigned int rows = 0;

	if (!strcmp(text, "all"))
		return BENCH_ROWS;
	while (*text) {
		char *end;
		unsigned long row = strtoul(text, &end, 10);

		if (end == text || row > 9 || !(BENCH_ROWS & 1u << row) || (*end && *end != ','))
			return 0;
		rows |= 1u << row;
		text = *end ? end + 1 : end;
	}
	return rows;
}

static bool
wanted(const struct bench *b, const struct definition *d)
{
	/* row 5 stands beside the first figure of row 1 */
	return b->cfg.rows & 1u << d->row || (d == table && b->cfg.rows & 1u << 5);
}

/* ---- limits ---------- */

static double
measure_limit(struct bench *b, enum limit_kind kind)
{
	static const struct limit_row rows[] = {
		[LIMIT_64] = { .size = 64, .working_set = 512 << 10, .crc = true },
		[LIMIT_4096] = { .size = 4096, .working_set = 64 << 20, .crc = true },
	};
	unsigned int samples = (unsigned int)(b->cfg.window / 0.05) | 1;

	if (kind == LIMIT_ROW1)
		return b->figure[0].runs ? b->figure[0].value[b->figure[0].runs - 1] : NAN;
	if (kind == LIMIT_PING)
		return limit_ping(b->cfg.lcore[0], b->cfg.lcore[1], b->ping[0], b->ping[1],
				  PING_ROUNDS);
	return limit_touch(b->cfg.lcore[0], b->cfg.lcore[1], &rows[kind], samples) *
	       (kind == LIMIT_4096 ? 4096 : 1);
}

static double
limit_of_round(struct bench *b, enum limit_kind kind)
{
	if (kind == LIMIT_ROW1 || b->limit[kind] == 0)
		b->limit[kind] = measure_limit(b, kind);
	return b->limit[kind];
}

/* ---- figures ---------- */

static void
pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/** Wait on the main lcore, which has no work and shares its CPU with nobody in earnest. */
static bool
wait_finished(const struct bench *b, const struct load *l)
{
	uint64_t until = rte_rdtsc() + b->warm + b->window + GIVE_UP_SECONDS * b->hz;

	while (!load_finished(l) && rte_rdtsc() < until)
		pause_ms(10);
	return load_finished(l);
}

static double
value_of(const struct bench *b, const struct definition *d, const struct load_result *r)
{
	double seconds = (double)r->cycles / b->hz;

	if (d->load.op == LOAD_PING)
		return r->p50 * 1e9 / b->hz;
	return (double)r->messages / seconds * (d->load.size >= 4096 ? d->load.size : 1);
}

static void
record(struct bench *b, unsigned int i, const struct load_result *r, bool finished, double busy_a,
       double busy_b)
{
	const struct definition *d = &table[i];
	struct figure *f = &b->figure[i];
	double messages = (double)r->messages;

	f->compared += r->compared;
	f->wrong += r->wrong;
	if (r->error)
		snprintf(f->fault, sizeof(f->fault), "%s", rnic_strerror(r->error));
	else if (r->status)
		snprintf(f->fault, sizeof(f->fault), "%s", rnic_wc_status_str(r->status));
	else if (!finished)
		snprintf(f->fault, sizeof(f->fault), "stuck after %llu messages",
			 (unsigned long long)r->messages);
	else
		figure_add(f, value_of(b, d, r), limit_of_round(b, d->limit), busy_a, busy_b,
			   busy_a < 0 || d->load.op == LOAD_PING
				   ? 0
				   : (busy_a + busy_b) * (double)r->cycles / messages);
}

static void
measure(struct bench *b, unsigned int i)
{
	struct load_result r;
	bool finished;

	load_start(b->load[i], b->warm, b->window);
	engine_run(&b->b, load_recv_step, b->load[i]);
	engine_run(&b->a, load_send_step, b->load[i]);
	finished = wait_finished(b, b->load[i]);
	engine_halt(&b->a);
	engine_halt(&b->b);
	load_result(b->load[i], &r);
	record(b, i, &r, finished, engine_busy(&b->a), engine_busy(&b->b));
}

/**
 * The CPU that an lcore runs on. rte_lcore_to_cpu_id() is that of the CPU with the lcore's
 * number, whatever --lcores says.
 */
static int
cpu_of(unsigned int lcore)
{
	rte_cpuset_t set = rte_lcore_cpuset(lcore);

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			return cpu;
	return 0;
}

static void
measure_hairpin(struct bench *b, unsigned int i)
{
	struct load_result r = { 0 };
	int rc;

	engine_run(&b->hairpin, NULL, NULL);
	rc = client_run(b->cfg.client, &table[i].load, cpu_of(b->cfg.lcore[0]), b->hz, b->warm,
			b->window, &r);
	engine_halt(&b->hairpin);
	if (rc < 0 && rc != -ETIMEDOUT && r.error == 0)
		r.error = rc;
	record(b, i, &r, rc == 0, 1, engine_busy(&b->hairpin));
}

static void
round_of_all(struct bench *b)
{
	memset(b->limit, 0, sizeof(b->limit));
	for (unsigned int i = 0; i < FIGURES && !stopped; i++) {
		if (!wanted(b, &table[i]) || b->figure[i].fault[0])
			continue;
		if (isnan(limit_of_round(b, table[i].limit)))
			snprintf(b->figure[i].fault, sizeof(b->figure[i].fault),
				 "row 1 has no figure");
		else if (table[i].row == 5)
			measure_hairpin(b, i);
		else
			measure(b, i);
	}
}

/* ---- set-up ---------- */

static void
describe(struct figure *f, const struct definition *d)
{
	const struct load_spec *s = &d->load;

	f->row = d->row;
	f->transport = "roce";
	f->must = d->must;
	f->stretch = d->stretch;
	f->scale = s->size >= 4096 ? 8e-9 : 1e-6;
	f->unit = s->size >= 4096 ? "Gb/s" : "M/s";
	if (d->row == 4) {
		f->scale = 1;
		f->unit = "ns";
		f->smaller_is_better = true;
		snprintf(f->name, sizeof(f->name), "64 B WRITE half round trip p50");
	} else if (d->row == 5) {
		snprintf(f->name, sizeof(f->name), "64 B WRITE two processes hairpin");
	} else if (s->size >= 4096) {
		snprintf(f->name, sizeof(f->name), "64 KiB %s", load_op_name(s->op));
	} else {
		snprintf(f->name, sizeof(f->name), "64 B %s %u QP%s lists of %u",
			 load_op_name(s->op), s->qps, s->qps > 1 ? "s" : "", s->list);
	}
}

static int
open_pair(struct bench *b, const char **why)
{
	struct engine_config ca = { .name = "bench_a", .lcore = b->cfg.lcore[0], .mtu = 4200,
				    .address = "192.0.2.1/24", .huge = b->cfg.huge, .seed = 1 };
	struct engine_config cb = ca;
	uint16_t ethdev[2];
	int rc = engine_ring_pair("bench", ethdev);

	if (rc < 0) {
		*why = "no pair of ring ports";
		return rc;
	}
	ca.ethdev = ethdev[0];
	cb.ethdev = ethdev[1];
	cb.name = "bench_b";
	cb.lcore = b->cfg.lcore[1];
	cb.address = "192.0.2.2/24";
	cb.seed = 2;
	rc = engine_open(&b->a, &ca, why);
	return rc < 0 ? rc : engine_open(&b->b, &cb, why);
}

/** Another pair of ports for the bare ping: these have no engine. */
static int
open_ping(struct bench *b, const char **why)
{
	struct pmd_port_config pc = { .num_queues = 1, .rx_pool = b->a.rx_pool };
	uint16_t ethdev[2];
	int rc = engine_ring_pair("ping", ethdev);

	*why = "no pair of ring ports";
	for (int i = 0; rc == 0 && i < 2; i++) {
		pc.ethdev = ethdev[i];
		rc = pmd_port_open(&pc, &b->ping[i], why);
	}
	return rc;
}

static int
open_hairpin(struct bench *b, const char **why)
{
	struct engine_config c = { .name = "bench_h", .lcore = b->cfg.lcore[1],
				   .ethdev = PMD_PORT_LOOP, .address = "192.0.2.3/24",
				   .client_fd = b->cfg.client->daemon_fd, .huge = b->cfg.huge,
				   .seed = 3 };

	return engine_open(&b->hairpin, &c, why);
}

/** Connecting asks the workers: they run meanwhile, with no application beside. */
static int
open_loads(struct bench *b, const char **why)
{
	int rc;

	*why = "memory or queues were refused";
	engine_run(&b->a, NULL, NULL);
	engine_run(&b->b, NULL, NULL);
	rc = load_end_open(&b->end_a, b->a.ctx, MEMORY);
	if (rc == 0)
		rc = load_end_open(&b->end_b, b->b.ctx, MEMORY);
	for (unsigned int i = 0; rc == 0 && i < FIGURES; i++)
		if (wanted(b, &table[i]) && table[i].row != 5) {
			rc = load_open(&table[i].load, &b->end_a, &b->end_b, &b->load[i]);
			if (rc < 0)
				*why = rnic_strerror(rc);
		}
	engine_halt(&b->a);
	engine_halt(&b->b);
	return rc;
}

static void
close_all(struct bench *b)
{
	engine_close(&b->hairpin); /* before the others run: it shares b's lcore */
	if (b->a.worker && b->b.worker) {
		engine_run(&b->a, NULL, NULL);
		engine_run(&b->b, NULL, NULL);
	}
	for (unsigned int i = 0; i < FIGURES; i++)
		if (b->load[i])
			load_close(b->load[i]);
	load_end_close(&b->end_a);
	load_end_close(&b->end_b);
	for (int i = 0; i < 2; i++)
		if (b->ping[i])
			pmd_port_close(b->ping[i]);
	engine_close(&b->a);
	engine_close(&b->b);
	limit_fini();
}

static int
open_all(struct bench *b, const char **why)
{
	int rc = limit_init();

	*why = "no memory for the limit loops: reserve huge pages, or give more with -m";
	if (rc == 0)
		rc = open_pair(b, why);
	if (rc == 0)
		rc = open_loads(b, why);
	if (rc == 0 && b->cfg.rows & 1u << 4)
		rc = open_ping(b, why);
	if (rc == 0 && b->cfg.rows & 1u << 5)
		rc = open_hairpin(b, why);
	return rc;
}

static int
conclude(struct bench *b)
{
	struct figure chosen[FIGURES];
	struct report r = { .figures = chosen, .command = b->cfg.command, .runs = b->cfg.runs,
			    .window = b->cfg.window, .huge = b->cfg.huge, .tsc_hz = b->hz };

	for (unsigned int i = 0; i < FIGURES; i++)
		if (wanted(b, &table[i]))
			chosen[r.num++] = b->figure[i];
	if (stopped)
		r.void_reason = "interrupted";
	else if (b->cfg.reference && report_reference(&r, b->cfg.reference, &r.void_reason) < 0)
		r.void_reason = "the reference is no report of this program";
	report_print(&r);
	if (b->cfg.json && report_json(&r, b->cfg.json) < 0) {
		fprintf(stderr, "testrnic: cannot write %s\n", b->cfg.json);
		return 2;
	}
	return r.void_reason ? 2 : report_met(&r) ? 0 : 1;
}

int
bench_run(const struct bench_config *cfg)
{
	struct bench *b = aligned_alloc(64, sizeof(*b));
	const char *why = "no memory";
	int rc = 2;

	if (b == NULL)
		return rc;
	memset(b, 0, sizeof(*b));
	b->cfg = *cfg;
	b->hz = rte_get_tsc_hz();
	b->warm = (uint64_t)(cfg->warm * (double)b->hz);
	b->window = (uint64_t)(cfg->window * (double)b->hz);
	for (unsigned int i = 0; i < FIGURES; i++)
		describe(&b->figure[i], &table[i]);
	if (open_all(b, &why) < 0) {
		fprintf(stderr, "testrnic: %s\n", why);
	} else {
		for (unsigned int i = 0; i < cfg->runs && !stopped; i++)
			round_of_all(b);
		rc = conclude(b);
	}
	close_all(b);
	free(b);
	return rc;
}
