/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rig: a session with a PD, a CQ, arena memory under an MR and two RC QPs joined to each
 * other over the device's own address. From here attacks start.
 */
#ifndef HX_RIG_H
#define HX_RIG_H

#include "hx.h"

#define HX_RIG_BYTES (256u * 1024)
#define HX_RIG_DEPTH 64

struct hx_cq {
	uint32_t cqn;
	struct ring_cq_client *client;
	const struct ring_cq_daemon *daemon;
	uint32_t num_sub; /* known */
	struct ring_cq_cons sub[RING_MAX_WORKERS];
};

struct hx_qp {
	uint32_t qpn;
	uint32_t bell;
	struct ring_qp_client *client;
	const struct ring_qp_daemon *daemon;
	struct ring_wq_prod sq;
	struct ring_wq_prod rq;
};

struct hx_rig {
	struct hx h;
	uint32_t pd;
	uint32_t channel; /* RING_NO_HANDLE: none */
	struct hx_cq cq;
	struct hx_qp qp[2];
	uint8_t *mem; /* HX_RIG_BYTES of a C arena */
	ring_loc_t mem_loc;
	uint32_t key; /* of all of it, all rights */
	struct ring_ctrl_av av; /* of the device itself */
};

/** Every part in turn; 0 or -errno. */
int hx_rig_open(struct hx_rig *r, const char *path);
/** Without the QPs. */
int hx_rig_open_bare(struct hx_rig *r, const char *path);
void hx_rig_close(struct hx_rig *r);

int hx_alloc_pd(struct hx *h, uint32_t *pd);
int hx_alloc_mem(struct hx *h, uint64_t size, ring_loc_t *loc, void **addr);
/** How the daemon reaches it (enum ring_mr_how) in *how unless NULL. */
int hx_reg_mr(struct hx *h, uint32_t pd, const void *addr, uint64_t length, uint32_t access,
	      uint32_t *key, uint32_t *how);
int hx_create_cq(struct hx *h, uint32_t entries, uint32_t channel, struct hx_cq *cq);
int hx_create_qp(struct hx *h, uint32_t pd, uint32_t cqn, uint32_t depth, struct hx_qp *qp);
/** On a shared receive queue, or RING_NO_HANDLE. */
int hx_create_qp_srq(struct hx *h, uint32_t pd, uint32_t cqn, uint32_t depth, uint32_t srqn,
		     struct hx_qp *qp);
/** Of any type. */
int hx_create_qp_type(struct hx *h, uint8_t type, uint32_t pd, uint32_t cqn, uint32_t depth,
		      uint32_t srqn, struct hx_qp *qp);
/** The device's own address, as peers name it. */
int hx_find_av(struct hx *h, struct ring_ctrl_av *av);
/** The request that brings a QP from RESET to the next state (INIT, RTR, RTS). */
struct ring_ctrl_modify_qp_req hx_modify_req(const struct hx_qp *qp, uint32_t peer,
					     const struct ring_ctrl_av *av, unsigned int state);
/** RESET to RTS. */
int hx_connect_qp(struct hx *h, struct hx_qp *qp, uint32_t peer, const struct ring_ctrl_av *av);
int hx_query_state(struct hx *h, uint32_t qpn);

/** Put a request into the send queue and publish it; what is in it is the caller's business. */
void hx_post(struct hx_rig *r, struct hx_qp *qp, const struct ring_wqe *w);
void hx_post_recv(struct hx_rig *r, struct hx_qp *qp, uint64_t addr, uint32_t len, uint32_t key);
/** Ring the bell of a QP, whatever the daemon wants. */
void hx_ring(struct hx *h, const struct hx_qp *qp);
/** A WRITE of `len` bytes inside the rig's memory, signalled. */
struct ring_wqe hx_write(const struct hx_rig *r, uint32_t from, uint32_t to, uint32_t len);

/** The next completion; 0: none. */
int hx_poll(struct hx *h, struct hx_cq *cq, struct ring_cqe *out);
/** Wait for one, serving pushes meanwhile. 0, -ETIMEDOUT or -ENOTCONN. */
int hx_poll_wait(struct hx *h, struct hx_cq *cq, struct ring_cqe *out, int timeout_ms);
static inline unsigned int
hx_cqe_status(const struct ring_cqe *c)
{
	return c->qpn_status >> 24;
}

#endif /* HX_RIG_H */
