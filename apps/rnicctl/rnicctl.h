/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of rnicctl. */
#ifndef RNICCTL_H
#define RNICCTL_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/** Exit statuses, also of rnicctl(8). */
enum { RNICCTL_OK = 0, RNICCTL_REFUSED = 1, RNICCTL_USAGE = 2, RNICCTL_UNREACHABLE = 3 };

/** How values are printed. */
struct rnicctl_style {
	bool json;
	bool all;   /* counters that are zero, too */
	bool exact; /* no K, M, G */
};

/* ---- rnicctl_conn.c ---------- */

/** Connect to an admin socket, or say on stderr why not. @return 0 or an exit status. */
int rnicctl_connect(const char *path);
/** One request and its answer; takes the reference. NULL: said on stderr why. */
json_t *rnicctl_ask(json_t *request);

/* ---- rnicctl_table.c ---------- */

/** Objects as an aligned table: one a line, or one a column when they have many members. */
void rnicctl_table_print(FILE *out, const json_t *objects, const struct rnicctl_style *style);

#endif /* RNICCTL_H */
