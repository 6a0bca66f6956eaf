/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of a benchmark beside their limits: kept run by run, printed as a table and as JSON. */
#ifndef TESTRNIC_REPORT_H
#define TESTRNIC_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define REPORT_MAX_RUNS 31

/** A figure. Rates are to be at least budget * limit, latencies at most. */
struct figure {
	int row; /* of the table of budgets in docs/design.md */
	char name[48];
	const char *transport, *unit;
	double scale; /* value in `unit` = what was measured * scale */
	bool smaller_is_better;
	double must, stretch;
	unsigned int runs;
	double value[REPORT_MAX_RUNS], limit[REPORT_MAX_RUNS];
	double busy[2][REPORT_MAX_RUNS]; /* share of busy cycles; negative: not known */
	double cycles[REPORT_MAX_RUNS];	 /* busy cycles a message, both cores; 0: not known */
	uint64_t compared, wrong;
	char fault[96]; /* why there is no figure, or "" */
};

void figure_add(struct figure *f, double value, double limit, double busy_a, double busy_b,
		double cycles);
double report_median(const double *v, unsigned int n);

struct report {
	struct figure *figures;
	unsigned int num;
	const char *command; /* as it was called */
	unsigned int runs;
	double window; /* seconds */
	bool huge;
	double tsc_hz;
	const char *void_reason; /* NULL: the run counts */
};

void report_print(const struct report *r);
/** @return 0 or -errno. */
int report_json(const struct report *r, const char *path);
/**
 * Compare with the limits of an earlier run: one under 90 % of it voids this run.
 * @return 0, or -errno when the file is not such a report; *reason is NULL or a sentence.
 */
int report_reference(const struct report *r, const char *path, const char **reason);
/** Whether each figure exists, is right and keeps its `must`. */
bool report_met(const struct report *r);

#endif /* TESTRNIC_REPORT_H */
