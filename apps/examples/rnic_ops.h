/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of rnic_ops share: the endpoint, the operations, the pattern. */
#ifndef RNIC_OPS_H
#define RNIC_OPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ex.h"

#define MAX_LIST 64u	/* requests in one list: the depth of both queues */
#define ATOMIC_OFF 64u	/* the atomics' word, from the end of the buffer */

struct region {
	uint64_t addr;
	uint32_t rkey, len;
};

enum op_flags {
	OP_RECV = 1 << 0,	/* uses up a receive of the responder */
	OP_WRITE = 1 << 1,	/* changes the responder's buffer */
	OP_READ = 1 << 2,
	OP_ATOMIC = 1 << 3,
	OP_IMM = 1 << 4,
	OP_INV = 1 << 5,
	OP_MUSTFAIL = 1 << 6,
	OP_MAYFAIL = 1 << 7,
	OP_CONTROL = 1 << 8,	/* only with the control lines */
	OP_BADKEY = 1 << 9,	/* another index in the key */
	OP_BADVAR = 1 << 10,	/* another variant (low byte) in the key */
	OP_OOB = 1 << 11,	/* half of it beyond the buffer */
	OP_NOPERM = 1 << 12,	/* by a key that gives no remote right */
	OP_WINDOW = 1 << 13,	/* by the key of a memory window */
	OP_MISS = 1 << 14,	/* the comparison fails */
	OP_UNALIGNED = 1 << 15,
	OP_STALE = 1 << 16,	/* by the key that was invalidated last */
	OP_HOLD = 1 << 17,	/* the receive is posted late, or never */
	OP_TOOLONG = 1 << 18,
};

struct op_def {
	const char *name;
	uint32_t opcode; /* enum rnic_wr_opcode */
	unsigned int flags;
};

/* One operation: NAME[:LEN][*COUNT]; seed is that of its first request. */
struct op {
	const struct op_def *def;
	const char *text;
	uint32_t len, count, seed;
};

struct end {
	/* options */
	const char *socket, *dev;
	unsigned int port;
	int gid_index, timeout, retry, rnr_retry, min_rnr, rd_atomic;
	uint32_t buflen, recvlen, nrecv, repeat, mtu;
	bool bare, private_memory;
	/* the connection */
	struct ex_conn conn;
	struct region peer;
	/* the device */
	struct ex_device device;
	struct rnic_channel *channel;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	struct rnic_mr *mr, *denied, *recv_mr, *work_mr;
	struct rnic_mw *mw;
	unsigned char *buf;	/* what the peer writes to and reads from */
	unsigned char *model;	/* what must be there (initiator: in the peer's) */
	unsigned char *recv;	/* receive slots of recvlen bytes */
	unsigned char *work;	/* initiator: what is sent and what came back */
};

extern const struct op_def op_defs[];

bool op_parse(struct op *op, const char *text);
const struct op_def *op_find(const char *name);
uint32_t op_stride(const struct op *op);
uint64_t op_atomic_old(const struct end *e, const struct op *op, uint32_t j);
void op_atomic(const struct end *e, const struct op *op, uint32_t j, struct rnic_send_wr *wr);

unsigned char pattern(uint32_t seed, uint32_t i);
void pattern_fill(unsigned char *p, uint32_t len, uint32_t seed);
bool pattern_check(const unsigned char *p, uint32_t len, uint32_t seed, uint32_t *at);
void model_apply(struct end *e, const struct op *op);

bool poll_one(struct end *e, struct rnic_wc *wc, unsigned int ms);
void post_recv(struct end *e, uint32_t slot);

int initiator(struct end *e, char **ops);
int responder(struct end *e);

#endif
