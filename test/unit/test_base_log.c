/* SPDX-License-Identifier: BSD-3-Clause */
/* Case B021: a flood of bad packets must not flood the log. */
#include <stdio.h>
#include <string.h>

#include "base_log.h"
#include "unit.h"

LOG_TYPE_DEFINE(test_log, test.log, NOTICE);

START_TEST(limit__flood_is_bounded)
{
	struct log_limit l = {0};
	uint64_t lines = 0, silent = 0, suppressed;

	/* 10 kpps of garbage for 60 s */
	for (int i = 0; i < 600000; i++) {
		if (log_limit_pass(&l, &suppressed)) {
			lines++;
			silent += suppressed;
		}
	}
	ck_assert_uint_eq(lines, LOG_LIMIT_BURST + 16);
	/* Every event up to the last line is in some line's number. */
	ck_assert_uint_eq(l.seen, 600000);
	ck_assert_uint_eq(lines + silent, 524288);
}
END_TEST

START_TEST(limit__first_ones_pass)
{
	struct log_limit l = {0};
	uint64_t suppressed = 99;

	for (int i = 0; i < LOG_LIMIT_BURST; i++) {
		ck_assert(log_limit_pass(&l, &suppressed));
		ck_assert_uint_eq(suppressed, 0);
	}
	ck_assert(!log_limit_pass(&l, &suppressed));
}
END_TEST

START_TEST(log__line)
{
	struct log_limit l = {.seen = 15, .told = 8};
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(rte_openlog_stream(f), 0);
	LOG(test_log, NOTICE, "qp %u", 7u);
	LOG(test_log, DEBUG, "below the type's level");
	LOG_LIMITED(&l, test_log, NOTICE, "bad packet, length %d", 3);
	LOG_LIMITED(&l, test_log, NOTICE, "bad packet, length %d", 3);
	rte_openlog_stream(NULL);
	fclose(f);
	ck_assert_str_eq(text,
		"qp 7\n"
		"bad packet, length 3 (7 like it suppressed)\n");
	free(text);
}
END_TEST

UNIT_MAIN("base_log", limit__flood_is_bounded, limit__first_ones_pass, log__line)
