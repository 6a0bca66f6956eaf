/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains. A domain is what keys and QPs are checked by; a PD is one client's hold on
 * it. Domains are shared by passing a PD on (ctl_export.c), and end with the last PD.
 */
#include <errno.h>
#include <stdlib.h>

#include "ctl_priv.h"

static struct ctl_domain *
domain_new(struct worker_device *d)
{
	struct ctl_domain *dom = calloc(1, sizeof(*dom));
	int err = -EEXIST;

	while (dom != NULL && err == -EEXIST) {
		if (++d->next_domain == RING_NO_HANDLE)
			d->next_domain = 1;
		err = ctl_map_add(&d->domains, &dom->node, d->next_domain);
	}
	if (err == 0)
		return dom;
	free(dom);
	return NULL;
}

static void
domain_put(struct worker_device *d, struct ctl_domain *dom)
{
	if (dom->pds != 0)
		return;
	ctl_map_del(&d->domains, &dom->node);
	free(dom);
}

int
ctl_pd_new(struct ctl_client *c, struct ctl_domain *dom, uint32_t *handle)
{
	struct ctl_pd *pd;
	int err = ctl_obj_room(c, CTL_PD);

	if (err < 0)
		return err;
	if (dom == NULL)
		dom = domain_new(c->dev);
	if (dom == NULL)
		return -ENOMEM;
	pd = calloc(1, sizeof(*pd));
	err = pd != NULL ? ctl_obj_add_numbered(c, &pd->o, CTL_PD) : -ENOMEM;
	if (err < 0) {
		free(pd);
		domain_put(c->dev, dom);
		return err;
	}
	pd->domain = dom;
	dom->pds++;
	*handle = ctl_obj_handle(&pd->o);
	return 0;
}

int
ctl_op_alloc_pd(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_empty_req *r = req;
	struct ring_ctrl_handle_rep *p = rep;

	(void)e;
	if (r->reserved != 0)
		return -EINVAL;
	return ctl_pd_new(c, NULL, &p->handle);
}

void
ctl_pd_destroy(struct ctl_obj *o)
{
	struct ctl_pd *pd = (struct ctl_pd *)o;
	struct worker_device *d = o->client->dev;

	ctl_export_end(d, &pd->export);
	pd->domain->pds--;
	domain_put(d, pd->domain);
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
