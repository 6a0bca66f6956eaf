/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains. */
#include <errno.h>
#include <stdlib.h>

#include "ctl_priv.h"

int
ctl_op_alloc_pd(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_empty_req *r = req;
	struct ring_ctrl_handle_rep *p = rep;
	struct ctl_pd *pd;
	int err;

	(void)e;
	if (r->reserved != 0)
		return -EINVAL;
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL)
		return -ENOMEM;
	err = ctl_obj_add_numbered(c, &pd->o, CTL_PD);
	if (err < 0) {
		free(pd);
		return err;
	}
	p->handle = ctl_obj_handle(&pd->o);
	return 0;
}

void
ctl_pd_destroy(struct ctl_obj *o)
{
	ctl_obj_del(o, 0);
	free(o);
}

int
ctl_op_dealloc_pd(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_pd *pd = ctl_obj_find(c, CTL_PD, r->handle);

	(void)rep;
	(void)e;
	if (pd == NULL || r->reserved != 0)
		return -EINVAL;
	if (pd->o.refs != 0)
		return -EBUSY;
	ctl_pd_destroy(&pd->o);
	return 0;
}
