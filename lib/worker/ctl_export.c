/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passing protection domains and regions to other processes of the same uid. The owner asks for a
 * token, 128 random bits, one an object, and hands it over by a way of its own; whoever shows it
 * is given the object. An imported domain is a PD of the importer's own, counted as such, in the
 * same domain, which lasts as long as anybody's PD in it. An imported region is a name: memory
 * and key stay the owner's, who may end both at any time, and nothing is left of an importer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_priv.h"

/* The map's key is the token's first half; both are secret, and a guess needs both. */
static uint64_t
key_of(const uint8_t *token)
{
	uint64_t key;

	memcpy(&key, token, sizeof(key));
	return key;
}

/* Takes as long whatever the first difference. */
static bool
token_equal(const uint8_t *a, const uint8_t *b)
{
	uint8_t differ = 0;

	for (unsigned int i = 0; i < sizeof(((struct ctl_export *)0)->token); i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

static int
export_make(struct worker_device *d, struct ctl_export *x, struct ctl_obj *o)
{
	int err;

	do {
		arc4random_buf(x->token, sizeof(x->token));
		err = ctl_map_add(&d->exports, &x->node, key_of(x->token));
	} while (err == -EEXIST);
	if (err == 0)
		x->obj = o;
	return err;
}

void
ctl_export_end(struct worker_device *d, struct ctl_export *x)
{
	if (x->obj == NULL)
		return;
	ctl_map_del(&d->exports, &x->node);
	explicit_bzero(x->token, sizeof(x->token));
	x->obj = NULL;
}

/* The object of a request, and where its token is. */
static struct ctl_obj *
object_of(struct ctl_client *c, const struct ring_ctrl_export_req *r, struct ctl_export **x)
{
	struct ctl_xrcd *xrcd;
	struct ctl_pd *pd;
	struct ctl_mr *mr;

	if (r->kind == RING_EXPORT_PD) {
		pd = ctl_obj_find(c, CTL_PD, r->handle);
		if (pd == NULL)
			return NULL;
		*x = &pd->export;
		return &pd->o;
	}
	if (r->kind == RING_EXPORT_XRCD) {
		xrcd = ctl_obj_find(c, CTL_XRCD, r->handle);
		if (xrcd == NULL)
			return NULL;
		*x = &xrcd->export;
		return &xrcd->o;
	}
	mr = r->kind == RING_EXPORT_MR ? ctl_obj_find(c, CTL_MR, r->handle) : NULL;
	if (mr == NULL || mr->type != MR_TYPE_REGION || mr->killed)
		return NULL;
	*x = &mr->export;
	return &mr->o;
}

int
ctl_op_export(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	struct ring_ctrl_export_rep *p = rep;
	struct ctl_export *x = NULL;
	struct ctl_obj *o = object_of(c, req, &x);
	int err = 0;

	(void)e;
	if (o == NULL)
		return -EINVAL;
	if (x->obj == NULL)
		err = export_make(c->dev, x, o);
	if (err == 0)
		memcpy(p->token, x->token, sizeof(p->token));
	return err;
}

/* What can be imported; CTL_KINDS: no such. */
static enum ctl_kind
kind_of(uint32_t kind)
{
	switch (kind) {
	case RING_EXPORT_PD:
		return CTL_PD;
	case RING_EXPORT_MR:
		return CTL_MR;
	case RING_EXPORT_XRCD:
		return CTL_XRCD;
	default:
		return CTL_KINDS;
	}
}

/* What a token stands for. Compared in constant time, though the map's look-up is not. */
static int
find(struct ctl_client *c, const struct ring_ctrl_import_req *r, struct ctl_obj **o)
{
	struct ctl_map_node *n = ctl_map_find(&c->dev->exports, key_of(r->token));
	const struct ctl_export *x = (const struct ctl_export *)n; /* the node comes first */

	if (x == NULL || !token_equal(x->token, r->token))
		return -ENOENT;
	*o = x->obj;
	if ((*o)->client->uid != c->uid)
		return -EACCES;
	if ((*o)->dying || (*o)->client->state != CTL_CLIENT_OPEN ||
		(*o)->kind != kind_of(r->kind))
		return -ENOENT;
	return 0;
}

int
ctl_op_import(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_import_req *r = req;
	struct ring_ctrl_import_rep *p = rep;
	const struct ctl_mr *mr;
	struct ctl_obj *o = NULL;
	int err;

	(void)e;
	if (r->reserved != 0 || kind_of(r->kind) == CTL_KINDS)
		return -EINVAL;
	err = find(c, r, &o);
	if (err < 0)
		return err;
	if (r->kind == RING_EXPORT_PD)
		return ctl_pd_new(c, ((struct ctl_pd *)o)->domain, &p->handle);
	if (r->kind == RING_EXPORT_XRCD)
		return ctl_xrcd_new(c, ((struct ctl_xrcd *)o)->xrc, &p->handle);
	mr = (const struct ctl_mr *)o;
	if (mr->killed)
		return -ENOENT;
	p->handle = p->rkey = ctl_obj_handle(o);
	p->access = mr->access;
	p->length = mr->length;
	p->iova = mr->iova;
	return 0;
}
