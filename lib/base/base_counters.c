/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow side of counters: totals and look-up by name. */
#include <string.h>

#include "base_counters.h"

void
counters_sum(uint64_t *sum, const struct counter *block, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum[i] += counter_read(&block[i]);
}

int
counters_find(const struct counter_desc *table, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(table[i].name, name) == 0)
			return (int)i;
	return -1;
}
