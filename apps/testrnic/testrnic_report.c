/* SPDX-License-Identifier: BSD-3-Clause */
/* Medians, ratios and verdicts of a benchmark, for people and for programs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>
#include <rte_version.h>

#include "testrnic_report.h"

#define VOID_BELOW 0.9

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
report_median(const double *v, unsigned int n)
{
	double s[REPORT_MAX_RUNS];

	if (n == 0)
		return NAN;
	memcpy(s, v, n * sizeof(*s));
	qsort(s, n, sizeof(*s), by_value);
	return s[n / 2];
}

void
figure_add(struct figure *f, double value, double limit, double busy_a, double busy_b,
	   double cycles)
{
	if (f->runs == REPORT_MAX_RUNS)
		return;
	f->value[f->runs] = value;
	f->limit[f->runs] = limit;
	f->busy[0][f->runs] = busy_a;
	f->busy[1][f->runs] = busy_b;
	f->cycles[f->runs++] = cycles;
}

/* ---- what is told of a figure ---------- */

struct summary {
	double value, limit, ratio, spread, busy[2], cycles;
	bool met, stretch_met;
};

static double
spread(const double *v, unsigned int n)
{
	double lo = v[0], hi = v[0];

	for (unsigned int i = 1; i < n; i++) {
		lo = fmin(lo, v[i]);
		hi = fmax(hi, v[i]);
	}
	return (hi - lo) / report_median(v, n);
}

/** The ratio is the median of the runs' ratios: value and limit drift together. */
static struct summary
summarise(const struct figure *f)
{
	struct summary s = { 0 };
	double ratio[REPORT_MAX_RUNS];

	if (f->runs == 0)
		return s;
	for (unsigned int i = 0; i < f->runs; i++)
		ratio[i] = f->value[i] / f->limit[i];
	s.value = report_median(f->value, f->runs) * f->scale;
	s.limit = report_median(f->limit, f->runs) * f->scale;
	s.ratio = report_median(ratio, f->runs);
	s.spread = spread(f->value, f->runs);
	s.cycles = report_median(f->cycles, f->runs);
	for (int i = 0; i < 2; i++)
		s.busy[i] = report_median(f->busy[i], f->runs);
	s.met = f->smaller_is_better ? s.ratio <= f->must : s.ratio >= f->must;
	s.stretch_met = f->smaller_is_better ? s.ratio <= f->stretch : s.ratio >= f->stretch;
	s.met = s.met && f->wrong == 0 && f->fault[0] == 0;
	return s;
}

bool
report_met(const struct report *r)
{
	for (unsigned int i = 0; i < r->num; i++)
		if (!summarise(&r->figures[i]).met)
			return false;
	return r->void_reason == NULL;
}

/* ---- table ---------- */

static void
print_ratio(const struct figure *f, double ratio)
{
	if (f->smaller_is_better)
		printf("%7.2fx %5.1fx", ratio, f->must);
	else
		printf("%7.1f%% %5.0f%%", ratio * 100, f->must * 100);
}

static void
print_figure(const struct figure *f)
{
	struct summary s = summarise(f);

	printf("%3d %-32s ", f->row, f->name);
	if (f->runs == 0 || f->fault[0]) {
		printf("%s\n", f->fault[0] ? f->fault : "not measured");
		return;
	}
	printf("%9.3f %9.3f %-5s ", s.value, s.limit, f->unit);
	print_ratio(f, s.ratio);
	printf(" %-6s %5.1f%%", s.stretch_met && s.met ? "better" : s.met ? "met" : "MISSED",
	       s.spread * 100);
	if (s.busy[0] >= 0)
		printf("  %3.0f/%3.0f%%", s.busy[0] * 100, s.busy[1] * 100);
	if (s.cycles > 0)
		printf(" %7.0f", s.cycles);
	if (f->wrong)
		printf("  %llu WRONG", (unsigned long long)f->wrong);
	putchar('\n');
}

void
report_print(const struct report *r)
{
	printf("\n%3s %-32s %9s %9s %-5s %8s %6s %-6s %6s  %8s %7s\n", "row", "figure", "value",
	       "limit", "", "ratio", "must", "", "spread", "busy a/b", "cycles");
	for (unsigned int i = 0; i < r->num; i++)
		print_figure(&r->figures[i]);
	printf("medians of %u interleaved runs of %.2f s; %s pages; cycles: both cores, busy, "
	       "a message\n", r->runs, r->window, r->huge ? "huge" : "4 KiB");
	if (r->void_reason)
		printf("VOID: %s\n", r->void_reason);
}

/* ---- JSON ---------- */

static json_t *
cpu_model(void)
{
	char line[256], *name;
	json_t *j = NULL;
	FILE *f = fopen("/proc/cpuinfo", "r");

	while (f && !j && fgets(line, sizeof(line), f))
		if (!strncmp(line, "model name", 10) && (name = strchr(line, ':'))) {
			name[strcspn(name, "\n")] = 0;
			j = json_string(name + 2);
		}
	if (f)
		fclose(f);
	return j ? j : json_string("unknown");
}

static json_t *
machine(const struct report *r)
{
	struct utsname u;

	uname(&u);
	return json_pack("{s:o, s:I, s:s, s:s, s:b, s:f}", "cpu", cpu_model(), "cpus",
			 (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "arch", u.machine, "kernel",
			 u.release, "huge_pages", r->huge, "tsc_hz", r->tsc_hz);
}

static json_t *
runs_json(const struct figure *f, const double *v)
{
	json_t *a = json_array();

	for (unsigned int i = 0; i < f->runs; i++)
		json_array_append_new(a, json_real(v[i] * f->scale));
	return a;
}

static json_t *
figure_json(const struct figure *f)
{
	struct summary s = summarise(f);
	json_t *j = json_pack("{s:i, s:s, s:s, s:s}", "row", f->row, "name", f->name,
			      "transport", f->transport, "unit", f->unit);

	if (f->runs == 0 || f->fault[0]) {
		json_object_set_new(j, "met", json_false());
		json_object_set_new(j, "fault",
				    json_string(f->fault[0] ? f->fault : "not measured"));
		return j;
	}
	json_object_set_new(j, "value", json_real(s.value));
	json_object_set_new(j, "limit", json_real(s.limit));
	json_object_set_new(j, "ratio", json_real(s.ratio));
	json_object_set_new(j, "budget", json_real(f->must));
	json_object_set_new(j, "stretch", json_real(f->stretch));
	json_object_set_new(j, "met", json_boolean(s.met));
	json_object_set_new(j, "stretch_met", json_boolean(s.met && s.stretch_met));
	json_object_set_new(j, "spread", json_real(s.spread));
	if (s.busy[0] >= 0)
		json_object_set_new(j, "busy", json_pack("[f, f]", s.busy[0], s.busy[1]));
	if (s.cycles > 0)
		json_object_set_new(j, "cycles", json_real(s.cycles));
	json_object_set_new(j, "compared", json_integer((json_int_t)f->compared));
	json_object_set_new(j, "wrong", json_integer((json_int_t)f->wrong));
	json_object_set_new(j, "values", runs_json(f, f->value));
	json_object_set_new(j, "limits", runs_json(f, f->limit));
	return j;
}

int
report_json(const struct report *r, const char *path)
{
	json_t *figures = json_array(), *j;
	int rc;

	for (unsigned int i = 0; i < r->num; i++)
		json_array_append_new(figures, figure_json(&r->figures[i]));
	j = json_pack("{s:o, s:{s:s, s:s, s:s}, s:s, s:i, s:f, s:o}", "machine", machine(r),
		      "versions", "softrnic", SOFTRNIC_VERSION, "dpdk", rte_version(), "compiler",
		      __VERSION__, "command", r->command, "runs", (int)r->runs, "seconds",
		      r->window, "figures", figures);
	if (j == NULL)
		return -ENOMEM;
	if (r->void_reason)
		json_object_set_new(j, "void", json_string(r->void_reason));
	rc = json_dump_file(j, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	json_decref(j);
	return rc == 0 ? 0 : -EIO;
}

/* ---- an earlier run ---------- */

static double
recorded_limit(const json_t *figures, const struct figure *f)
{
	size_t i;
	json_t *j;

	json_array_foreach(figures, i, j) {
		const char *name = json_string_value(json_object_get(j, "name"));

		if (name && !strcmp(name, f->name) &&
		    json_integer_value(json_object_get(j, "row")) == f->row)
			return json_number_value(json_object_get(j, "limit"));
	}
	return 0;
}

int
report_reference(const struct report *r, const char *path, const char **reason)
{
	static char text[160];
	json_t *j = json_load_file(path, 0, NULL), *figures;

	*reason = NULL;
	figures = json_object_get(j, "figures");
	if (!json_is_array(figures)) {
		json_decref(j);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < r->num && !*reason; i++) {
		const struct figure *f = &r->figures[i];
		double old = recorded_limit(figures, f), now = summarise(f).limit;
		bool worse = f->smaller_is_better ? now * VOID_BELOW > old : now < old * VOID_BELOW;

		if (old <= 0 || f->runs == 0 || f->row == 5 || !worse)
			continue; /* row 5's limit is a figure of ours */
		snprintf(text, sizeof(text), "the limit of %s is %.3f %s, that of %s %.3f: the "
			 "machine is busy", f->name, now, f->unit, path, old);
		*reason = text;
	}
	json_decref(j);
	return 0;
}
