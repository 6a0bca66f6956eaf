/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of rnic_bw share: a test, one end of it, its result. */
#ifndef RNIC_BW_H
#define RNIC_BW_H

#include "ex_cm.h"

enum bw_op { BW_WRITE, BW_READ, BW_SEND, BW_LAT_WRITE, BW_LAT_READ, BW_LAT_SEND, BW_OPS };
const char *bw_op_name(enum bw_op op);
bool bw_is_latency(enum bw_op op);

struct bw_test {
	enum bw_op op;
	uint32_t size, qps, depth, list;
	uint32_t mtu; /* bytes */
	bool verify;
	bool cm; /* connect by the connection manager */
};

struct bw_result {
	uint64_t messages, wrong;
	double seconds;
	double min_us, p50_us, p99_us, max_us; /* latency: half a round trip, a READ's whole one */
};

/** One end: the queues and the memory of a test. Message n of a QP lies in slot n % slots. */
struct bw_end {
	struct ex_device dev;
	struct ex_conn conn;
	struct bw_test test;
	struct ex_cm cm;
	struct rnic_channel *channel;
	struct rnic_cq *cq;
	struct rnic_qp **qp;
	struct ex_address *own;
	struct rnic_mr *mr;
	uint64_t remote_addr;
	uint32_t rkey, slots;
	uint64_t *posted, *done; /* by QP */
	uint64_t wrong;
};

#define BW_MAX_QPS 1024u
#define BW_MAX_DEPTH 4096u
#define BW_MAX_MEMORY (256u << 20)

/* rnic_bw_end.c */
/** Why a test cannot be, or NULL. */
const char *bw_refuse(const struct bw_test *t);
/** Make queues and memory; the server says the second word in the exchange of addresses. */
void bw_end_open(struct bw_end *e, const struct bw_test *t);
void bw_end_join(struct bw_end *e, bool server);
void bw_end_close(struct bw_end *e);
uint8_t *bw_slot(const struct bw_end *e, uint32_t qp, uint64_t n);
uint64_t bw_remote_slot(const struct bw_end *e, uint32_t qp, uint64_t n);
uint64_t bw_seed(uint32_t qp, uint64_t n);
bool bw_right(struct bw_end *e, uint32_t qp, uint64_t n, uint64_t seed);
void bw_post_recv(struct bw_end *e, uint32_t qp, uint64_t n);
uint32_t bw_recv_depth(const struct bw_test *t);

/* rnic_bw_client.c, rnic_bw_server.c, rnic_bw_latency.c */
void bw_pump(struct bw_end *e, double seconds, struct bw_result *r);
void bw_serve(struct ex_conn *conn, struct ex_device *dev);
void bw_measure_latency(struct bw_end *e, uint32_t rounds, struct bw_result *r);
void bw_answer_latency(struct bw_end *e, uint32_t rounds);

#endif /* RNIC_BW_H */
