/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of the table of budgets (docs/design.md, 7), each beside its limit of the same run. */
#ifndef TESTRNIC_BENCH_H
#define TESTRNIC_BENCH_H

#include <stdbool.h>

#include "testrnic_client.h"
#include "testrnic_engine.h"

struct bench_config {
	unsigned int lcore[2];
	unsigned int rows; /* bit n: row n */
	unsigned int runs;
	double window, warm; /* seconds a measurement */
	bool huge;
	struct client *client; /* row 5 */
	const char *command, *json, *reference;
};

#define BENCH_ROWS (1u << 1 | 1u << 2 | 1u << 4 | 1u << 5)

/** "1,2,4,5" or "all". @return the bits, or 0. */
unsigned int bench_parse_rows(const char *text);
/** @return 0: all budgets met; 1: not all; 2: the run is void or could not be made. */
int bench_run(const struct bench_config *cfg);
/** Ctrl-C: end after the measurement under way. */
void bench_stop(void);

#endif /* TESTRNIC_BENCH_H */
