/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables. Columns are the members of the objects in the order of their first appearance. */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rnicctl.h"

#define MAX_COLUMNS 512
#define WIDE 20 /* members from which an object is a column and not a line */
#define CELL 64

struct column {
	const char *key; /* of an object that outlives us */
	bool right;	 /* numbers */
	size_t width;
};

static bool
ends_with(const char *s, const char *end)
{
	size_t a = strlen(s), b = strlen(end);

	return a >= b && strcmp(s + a - b, end) == 0;
}

static bool
is_size(const char *key)
{
	return ends_with(key, "bytes") || ends_with(key, "size") || ends_with(key, "length") ||
	       ends_with(key, "limit");
}

static void
put_scaled(char *out, size_t size, uint64_t v)
{
	static const char units[] = "KMGTPE";
	double d = (double)v;
	int u = -1;

	while (d >= 1024 && u < (int)sizeof(units) - 2) {
		d /= 1024;
		u++;
	}
	snprintf(out, size, d < 10 ? "%.1f%c" : "%.0f%c", d, units[u]);
}

/* Text of a value; control characters of names that others chose do not reach the terminal. */
static const char *
cell(const json_t *v, const char *key, const struct rnicctl_style *style, char *out, size_t size)
{
	if (json_is_integer(v)) {
		uint64_t n = (uint64_t)json_integer_value(v);

		if (is_size(key) && !style->exact && n >= 1024)
			put_scaled(out, size, n);
		else
			snprintf(out, size, "%" PRIu64, n);
	} else if (json_is_string(v)) {
		snprintf(out, size, "%s", json_string_value(v));
		for (char *s = out; *s != '\0'; s++)
			if ((unsigned char)*s < ' ' || *s == 0x7f)
				*s = '?';
	} else if (json_is_boolean(v)) {
		snprintf(out, size, "%s", json_is_true(v) ? "yes" : "no");
	} else {
		snprintf(out, size, "-");
	}
	return out;
}

static size_t
find_columns(const json_t *objects, struct column *col)
{
	const json_t *o, *v;
	const char *key;
	size_t i, c, n = 0;

	json_array_foreach((json_t *)(uintptr_t)objects, i, o)
		json_object_foreach((json_t *)(uintptr_t)o, key, v) {
			for (c = 0; c < n && strcmp(col[c].key, key) != 0; c++)
				;
			if (c == n && n < MAX_COLUMNS)
				col[n++] = (struct column){key, json_is_integer(v), strlen(key)};
		}
	return n;
}

static bool
all_zero(const json_t *objects, const char *key)
{
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)objects, i, o) {
		const json_t *v = json_object_get(o, key);

		if (v != NULL && !(json_is_integer(v) && json_integer_value(v) == 0))
			return false;
	}
	return true;
}

static void
put_cell(FILE *out, const char *text, size_t width, bool right, bool last)
{
	if (right)
		fprintf(out, "%*s", (int)width, text);
	else if (last)
		fprintf(out, "%s", text);
	else
		fprintf(out, "%-*s", (int)width, text);
	fputs(last ? "\n" : "  ", out);
}

static void
print_lines(FILE *out, const json_t *objects, struct column *col, size_t n,
	    const struct rnicctl_style *style)
{
	const json_t *o;
	char text[CELL * 4];
	size_t i, c;

	json_array_foreach((json_t *)(uintptr_t)objects, i, o)
		for (c = 0; c < n; c++) {
			size_t len = strlen(cell(json_object_get(o, col[c].key), col[c].key,
						 style, text, sizeof(text)));

			if (len > col[c].width)
				col[c].width = len;
		}
	for (c = 0; c < n; c++)
		put_cell(out, col[c].key, col[c].width, col[c].right, c == n - 1);
	json_array_foreach((json_t *)(uintptr_t)objects, i, o)
		for (c = 0; c < n; c++)
			put_cell(out, cell(json_object_get(o, col[c].key), col[c].key, style, text,
					   sizeof(text)),
				 col[c].width, col[c].right, c == n - 1);
}

/* Each object a column. Lines that are zero everywhere say nothing. */
static void
print_columns(FILE *out, const json_t *objects, const struct column *col, size_t n,
	      const struct rnicctl_style *style)
{
	const json_t *o;
	char text[CELL * 4];
	size_t i, c, width = 0, total = json_array_size(objects);

	for (c = 0; c < n; c++)
		if (col[c].width > width)
			width = col[c].width;
	for (c = 0; c < n; c++) {
		if (!style->all && c > 0 && all_zero(objects, col[c].key))
			continue;
		put_cell(out, col[c].key, width, false, false);
		json_array_foreach((json_t *)(uintptr_t)objects, i, o)
			put_cell(out, cell(json_object_get(o, col[c].key), col[c].key, style, text,
					   sizeof(text)),
				 total > 1 ? 14 : 0, total > 1, i == total - 1);
	}
}

void
rnicctl_table_print(FILE *out, const json_t *objects, const struct rnicctl_style *style)
{
	static struct column col[MAX_COLUMNS];
	size_t n = find_columns(objects, col), rows = json_array_size(objects);

	if (rows == 0)
		fprintf(out, "none\n");
	else if (n > WIDE && rows <= 32)
		print_columns(out, objects, col, n, style);
	else
		print_lines(out, objects, col, n, style);
}
