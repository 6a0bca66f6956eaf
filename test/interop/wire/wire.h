/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of rnic-wire share: one port, one worker, and the control thread's place. */
#ifndef WIRE_H
#define WIRE_H

#include <pthread.h>

#include "net.h"
#include "roce.h"
#include "worker_shared_priv.h"

struct wire {
	struct worker_shared s;
	struct pmd_port_info port;
	struct net_ip gid[4]; /* 0: link-local; then the own addresses */
	int num_gids;
	struct net_neigh_table *neigh;
	pthread_mutex_t lock; /* of neigh and calls */
	pthread_cond_t news;  /* the control thread has looked at something */
	int epoll_fd;

	/* The one context: its bells. */
	struct worker_ctx *ctx;
	struct ring_bell_chunk *bells;
	struct ring_bell_daemon *bell_words;
	int kick_fd;
	uint32_t num_slots;
};

extern struct wire wire;

/** EAL, port 0, worker and control thread. Prints "ready MAC". Ends the program on failure. */
void wire_start(int argc, char **argv, char **addrs, uint16_t mtu);
/** Send a message and wait for the answer. @return its status. */
int wire_call(struct worker_msg *m);
/** Zeroed, on lines of its own. */
void *wire_alloc(size_t size);
/** The next hop's entry, once it is usable; NULL: nobody answers. */
struct net_neigh *wire_resolve(const struct net_ip *ip);

#endif /* WIRE_H */
