/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that work requests bind: memory windows, and fast registrations. The control thread makes
 * and ends them; what they are bound to is the workers' business, in the key table alone. Both
 * are of kind CTL_MR, counted and ended like regions (ctl_mr.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "ctl_priv.h"

static enum mr_type
type_of(uint32_t type)
{
	switch (type) {
	case RING_MW_TYPE_1:
		return MR_TYPE_WINDOW_1;
	case RING_MW_TYPE_2:
		return MR_TYPE_WINDOW_2B;
	case RING_MW_TYPE_2A:
		return MR_TYPE_WINDOW_2A;
	default:
		return MR_TYPE_NONE;
	}
}

/* Takes nothing over when it fails. */
static int
key_new(struct ctl_client *c, struct ctl_pd *pd, const struct mr_desc *desc, uint64_t charge,
	struct ctl_mr **out)
{
	struct ctl_mr *mr = calloc(1, sizeof(*mr));
	int err = mr != NULL ? ctl_user_charge(c->dev, c->user, charge) : -ENOMEM;

	if (err < 0) {
		free(mr);
		return err;
	}
	mr->pd = pd;
	mr->type = (uint8_t)desc->type;
	mr->charged = charge;
	err = ctl_mr_enter(c, mr, desc);
	if (err < 0) {
		ctl_user_uncharge(c->user, charge);
		free(mr);
		return err;
	}
	*out = mr;
	return 0;
}

int
ctl_op_alloc_mw(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_alloc_mw_req *r = req;
	const struct mr_desc desc = {.type = type_of(r->type)};
	struct ring_ctrl_alloc_mw_rep *p = rep;
	struct ctl_pd *pd = ctl_obj_find(c, CTL_PD, r->pd);
	struct ctl_mr *mr;
	int err;

	(void)e;
	if (pd == NULL || desc.type == MR_TYPE_NONE)
		return -EINVAL;
	err = key_new(c, pd, &desc, 0, &mr);
	if (err == 0)
		p->handle = p->rkey = ctl_obj_handle(&mr->o);
	return err;
}

int
ctl_op_dealloc_mw(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	(void)rep;
	return ctl_mr_dereg(c, req, e, true);
}

/* Its runs are memory of ours, made now since workers make none: charged like an arena's. */
int
ctl_op_alloc_fast_mr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_alloc_fast_mr_req *r = req;
	const struct mr_desc desc = {.type = MR_TYPE_FAST_REG, .max_segs = r->max_segs};
	struct ring_ctrl_reg_mr_rep *p = rep;
	struct ctl_pd *pd = ctl_obj_find(c, CTL_PD, r->pd);
	struct ctl_mr *mr;
	int err;

	(void)e;
	if (pd == NULL || r->max_segs == 0 || r->max_segs > RING_MAX_FAST_REG)
		return -EINVAL;
	err = key_new(c, pd, &desc, r->max_segs * (sizeof(struct mr_seg) + sizeof(void *)), &mr);
	if (err == 0)
		p->lkey = p->rkey = ctl_obj_handle(&mr->o);
	return err;
}
