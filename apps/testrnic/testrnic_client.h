/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An application in a process of its own, forked before EAL starts: it reaches an engine of
 * this process as any client does, by a socket and shared memory, from another core.
 */
#ifndef TESTRNIC_CLIENT_H
#define TESTRNIC_CLIENT_H

#include <sys/types.h>

#include "testrnic_load.h"

struct client {
	pid_t pid;
	int orders;    /* our end of the orders' socket */
	int daemon_fd; /* the daemon's end of the client's control socket */
};

/** @return 0 or -errno. Before rte_eal_init(). */
int client_spawn(struct client *c);
/** Have it run a load between two QPs of its own, pinned to a CPU. @return 0 or -errno. */
int client_run(struct client *c, const struct load_spec *spec, int cpu, uint64_t hz,
	       uint64_t warm, uint64_t window, struct load_result *result);
void client_end(struct client *c);

#endif /* TESTRNIC_CLIENT_H */
