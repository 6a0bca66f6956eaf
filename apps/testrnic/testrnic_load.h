/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic between two applications, by librnic's fast face: who posts, who receives, and the
 * check of what arrived. Knows nothing of engines: each side's step function is called from
 * whatever loop drives it, in this process or in another one.
 */
#ifndef TESTRNIC_LOAD_H
#define TESTRNIC_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rnic.h"

enum load_op { LOAD_WRITE, LOAD_SEND, LOAD_READ, LOAD_PING };
const char *load_op_name(enum load_op op);

/** What is to flow. */
struct load_spec {
	enum load_op op;
	uint32_t size;	 /* bytes a message */
	uint32_t qps;
	uint32_t depth;	 /* requests outstanding, a QP */
	uint32_t list;	 /* requests a submission */
	uint32_t mtu;	 /* path MTU, bytes */
	size_t working_set; /* bytes that each side's buffer cycles through, over all QPs */
	bool stamps;	 /* stamps in each 4 KiB checked always, 1 % of messages compared whole */
};

/** An application: memory and address of one context. */
struct load_end {
	struct rnic_context *ctx;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	uint8_t *buf;
	size_t len;
	union rnic_gid gid;
	uint8_t gid_index;
};

int load_end_open(struct load_end *e, struct rnic_context *ctx, size_t len);
void load_end_close(struct load_end *e);

struct load;

/** Queues on both ends, connected. Both ends' buffers must lie in this process. */
int load_open(const struct load_spec *spec, struct load_end *from, struct load_end *to,
	      struct load **out);
void load_close(struct load *l);

/** Forget the counts; measure for `window` cycles after `warm` cycles, then post no more. */
void load_start(struct load *l, uint64_t warm, uint64_t window);
/** One step of the side that posts, and of the side that receives. @return work done. */
unsigned int load_send_step(void *load);
unsigned int load_recv_step(void *load);
/** The window is over and nothing is outstanding, or something failed. */
bool load_finished(const struct load *l);

/** From any thread: end the window now; how many messages have been completed. */
void load_stop(struct load *l);
uint64_t load_progress(const struct load *l);

/** What was measured. */
struct load_result {
	uint64_t messages, cycles; /* of the window */
	uint64_t compared;	   /* messages compared whole since load_start() */
	uint64_t wrong;		   /* messages that were not what was sent */
	uint32_t p50, p99;	   /* PING: cycles of half a round trip */
	uint32_t status;	   /* enum rnic_wc_status that ended it, or 0 */
	int error;		   /* negative errno that ended it, or 0 */
};
void load_result(struct load *l, struct load_result *r);

#endif /* TESTRNIC_LOAD_H */
