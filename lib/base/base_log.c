/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limiter of packet-caused log lines. It counts events and reads no clock, so
 * the number of lines is bounded by the number of events' logarithm at any rate.
 */
#include "base_log.h"

bool
log_limit_pass(struct log_limit *l, uint64_t *suppressed)
{
	uint64_t n = __atomic_add_fetch(&l->seen, 1, __ATOMIC_RELAXED), before;

	if (n > LOG_LIMIT_BURST && (n & (n - 1)) != 0)
		return false;
	before = __atomic_exchange_n(&l->told, n, __ATOMIC_RELAXED);
	*suppressed = n > before ? n - before - 1 : 0;
	return true;
}
