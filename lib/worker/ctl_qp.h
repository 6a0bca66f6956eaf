/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on QPs: what ctl_qp.c and ctl_qp_modify.c share. */
#ifndef CTL_QP_H
#define CTL_QP_H

#include "ctl_priv.h"

/** An operation on a QP: waits for those before it, and perhaps for much else. */
struct ctl_qp_op {
	TAILQ_ENTRY(ctl_qp_op) link;
	struct ctl_qp *qp;
	struct ctl_elem e;
	void (*begin)(struct ctl_qp_op *op);
	/* modify */
	uint32_t worker; /* to be bound to; RING_NO_HANDLE: any */
	bool tell_est;
	void (*told)(struct ctl_client *c, uint32_t who, int status); /* or NULL */
	uint32_t who;
	uint32_t mask;
	unsigned int next; /* state */
	struct ring_ctrl_qp_attr ring;
	struct verbs_qp_attr attr;
	bool has_neigh; /* attr.av.neigh is referenced, and not the QP's yet */
	struct ctl_neigh_wait neigh_wait;
	struct ctl_wait mem_wait;
	struct ctl_cq_waiter cq_wait;
};

/** Queue an operation; ctl_qp_op_next() begins it when it is its turn. 0 or -ENOMEM. */
int ctl_qp_op_add(struct ctl_qp *qp, struct ctl_elem e, void (*begin)(struct ctl_qp_op *op));
/** The last operation: destroys it. Its memory was got before. May free the QP. */
void ctl_qp_end(struct ctl_qp *qp, struct ctl_qp_op *op);
/** The client's QP of that number, or the target that it has open; NULL: neither. */
struct ctl_qp *ctl_qp_find(struct ctl_client *c, uint32_t qpn);
void ctl_qpn_retire(struct worker_device *d, struct ctl_qp *qp);
/* ctl_xrc.c: the same for targets, as CREATE_QP and DESTROY_QP do it. */
int ctl_target_create(struct ctl_client *c, const struct ring_ctrl_create_qp_req *r,
		      struct ring_ctrl_create_qp_rep *p);
int ctl_target_close(struct ctl_client *c, struct ctl_qp *qp, struct ring_ctrl_done_rep *rep,
		     struct ctl_elem e);
void ctl_target_free(struct ctl_qp *qp);
/** What a MODIFY_QP that is no client's asks for. */
struct ctl_qp_change {
	struct ring_ctrl_qp_attr attr;
	uint32_t mask;
	uint32_t worker; /* to be bound to; RING_NO_HANDLE: any */
	bool tell_est;	 /* as of struct verbs_qp_attr */
	/* Called at its end, with the QP's client, which may be dying; or NULL. */
	void (*told)(struct ctl_client *c, uint32_t who, int status);
	uint32_t who;
};
/** Modify it when it is its turn. May end at once. 0 or -ENOMEM: not told. */
int ctl_qp_modify(struct ctl_qp *qp, const struct ctl_qp_change *change);
/** May free the QP. */
void ctl_qp_op_next(struct ctl_qp *qp);
/** The operation has ended; the next begins. May free the QP, unless called from begin(). */
void ctl_qp_op_done(struct ctl_qp_op *op, int status);
void ctl_qp_send(struct ctl_qp *qp, enum worker_msg_type type,
		 void (*replied)(struct worker_device *d, struct ctl_msg *m));
unsigned int ctl_qp_state(const struct ctl_qp *qp);
/** Its worker has let it go. */
void ctl_qp_unbound(struct ctl_qp *qp);
/** It dies: an operation that waits for a neighbour fails now. */
void ctl_qp_cancel_wait(struct ctl_qp *qp);
void ctl_qp_free(struct ctl_qp *qp);

static inline struct ctl_qp *
ctl_qp_of_msg(struct ctl_msg *m)
{
	return (struct ctl_qp *)((uint8_t *)m - offsetof(struct ctl_qp, msg));
}

#endif /* CTL_QP_H */
