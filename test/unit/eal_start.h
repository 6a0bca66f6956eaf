/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL for a test that needs no lcore of its own. */
#ifndef EAL_START_H
#define EAL_START_H

#include <sched.h>

#include <rte_eal.h>

/** rte_eal_init(), which binds the calling thread to one CPU: not a test beside others. */
static inline int
eal_start(int argc, char **argv)
{
	cpu_set_t all;
	int known = sched_getaffinity(0, sizeof(all), &all);
	int rc = rte_eal_init(argc, argv);

	if (known == 0)
		sched_setaffinity(0, sizeof(all), &all);
	return rc;
}

#endif /* EAL_START_H */
