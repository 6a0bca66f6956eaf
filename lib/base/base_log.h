/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines by registered type, over rte_log. For slow paths only; what a packet
 * can cause goes through LOG_LIMITED besides, so that a flood of bad packets
 * writes a handful of lines and the counters tell the rest.
 *
 *	LOG_TYPE_DECLARE(roce_log);			(private header)
 *	LOG_TYPE_DEFINE(roce_log, lib.roce, NOTICE);	(one .c)
 *	LOG(roce_log, ERR, "qp %u: no memory", qpn);
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_log.h>

#define LOG_TYPE_DECLARE(type) extern int type
#define LOG_TYPE_DEFINE(type, name, level) RTE_LOG_REGISTER(type, name, level)

/** One line; the newline is added. */
#define LOG(type, level, fmt, ...) \
	rte_log(RTE_LOG_##level, (uint32_t)(type), fmt "\n", ##__VA_ARGS__)

/** Zeroed at start; one per message and owner, or shared by threads. */
struct log_limit {
	uint64_t seen; /* events */
	uint64_t told; /* number of the last one that was logged */
};

#define LOG_LIMIT_BURST 8

/**
 * Count an event. True when it may be logged: the first few, then each time that
 * their number has doubled. `suppressed` is how many kept silent since then.
 */
bool log_limit_pass(struct log_limit *l, uint64_t *suppressed);

#define LOG_LIMITED(limit, type, level, fmt, ...) \
	do { \
		uint64_t log_suppressed_; \
		if (log_limit_pass(limit, &log_suppressed_)) \
			LOG(type, level, fmt " (%llu like it suppressed)", ##__VA_ARGS__, \
				(unsigned long long)log_suppressed_); \
	} while (0)

#endif /* BASE_LOG_H */
