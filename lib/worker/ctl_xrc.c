/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC (IBTA annex A14). A domain lasts as long as anybody's XRCD of it, and so do its target QPs,
 * whoever made them: a client has an opening of a target, not the target. Who closes the last
 * opening by a call ends the QP; a client that dies leaves it to those who may open it still.
 * What a target needs is therefore the domain's, not a client's: its words, and its share of the
 * workers' pools. Domains are shared by the number of a file that processes of a uid agree on, or
 * by a token (ctl_export.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_qp.h"

/* ---- domains ---------- */

/* Salted, so that nobody can have another uid's files found in its way. */
static uint64_t
file_key(const struct worker_device *d, uid_t uid, uint64_t dev, uint64_t ino)
{
	uint64_t key = dev, with[] = {ino, uid, d->xrc_salt};

	for (unsigned int i = 0; i < 3; i++) {
		key = (key ^ with[i]) * UINT64_C(0x9e3779b97f4a7c15);
		key ^= key >> 29;
	}
	return key;
}

static struct ctl_xrc *
xrc_of_file_node(struct ctl_map_node *n)
{
	return (struct ctl_xrc *)((uint8_t *)n - offsetof(struct ctl_xrc, file_node));
}

/* The domain of a file, if it has one; *key: under which it is found, or would be. */
static struct ctl_xrc *
xrc_find(struct worker_device *d, uid_t uid, const struct ring_ctrl_alloc_xrcd_req *r,
	uint64_t *key)
{
	struct ctl_map_node *n;

	*key = file_key(d, uid, r->dev, r->ino);
	while ((n = ctl_map_find(&d->xrc_files, *key)) != NULL) {
		struct ctl_xrc *x = xrc_of_file_node(n);

		if (x->user->uid == uid && x->dev == r->dev && x->ino == r->ino)
			return x;
		++*key;
	}
	return NULL;
}

static struct worker_ctx *
shares_new(uint32_t workers)
{
	struct worker_ctx *ctx = NULL;
	size_t size = RTE_ALIGN_CEIL(sizeof(*ctx) + workers * sizeof(ctx->at[0]), RING_LINE);

	ctx = aligned_alloc(RING_LINE, size);
	if (ctx == NULL)
		return NULL;
	memset(ctx, 0, size);
	ctx->num_workers = workers;
	for (uint32_t w = 0; w < workers; w++)
		ctx->at[w].kick_fd = -1;
	return ctx;
}

static struct ctl_xrc *
xrc_new(struct ctl_client *c)
{
	struct worker_device *d = c->dev;
	struct ctl_xrc *x = calloc(1, sizeof(*x));
	int err = -EEXIST;

	if (x == NULL)
		return NULL;
	x->ctx = shares_new(d->sh.num_workers);
	while (x->ctx != NULL && err == -EEXIST) {
		if (++d->next_domain == RING_NO_HANDLE)
			d->next_domain = 1;
		err = ctl_map_add(&d->xrcs, &x->node, d->next_domain);
	}
	if (x->ctx == NULL || err < 0) {
		free(x->ctx);
		free(x);
		return NULL;
	}
	TAILQ_INIT(&x->targets);
	TAILQ_INSERT_TAIL(&d->xrc_list, x, link);
	x->device = d;
	x->user = c->user;
	x->user->xrcs++;
	return x;
}

static void
xrc_free(struct ctl_xrc *x)
{
	struct worker_device *d = x->device;

	ctl_map_del(&d->xrcs, &x->node);
	TAILQ_REMOVE(&d->xrc_list, x, link);
	x->user->xrcs--;
	ctl_user_free(x->user);
	free(x->ctx);
	free(x);
}

/* One worker after the other has nothing left that counts for the domain. */
static void
shares_replied(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_xrc *x = (struct ctl_xrc *)((uint8_t *)m - offsetof(struct ctl_xrc, msg));

	if (x->told == d->sh.num_workers) {
		xrc_free(x);
		return;
	}
	m->m = (struct worker_msg){.type = WORKER_MSG_CTX_DEL, .ctx = x->ctx};
	m->replied = shares_replied;
	ctl_msg_send(d, x->told++, m);
}

/* A target has gone, or nobody has the domain any more. */
static void
xrc_check(struct ctl_xrc *x)
{
	if (x->users == 0 && !x->held && TAILQ_EMPTY(&x->targets))
		shares_replied(x->device, &x->msg);
}

static void target_end(struct ctl_qp *qp);

static void
xrc_put(struct ctl_xrc *x)
{
	struct ctl_qp *qp, *next;

	if (--x->users > 0)
		return;
	if (x->file)
		ctl_map_del(&x->device->xrc_files, &x->file_node);
	x->held = true;
	for (qp = TAILQ_FIRST(&x->targets); qp != NULL; qp = next) {
		next = TAILQ_NEXT(qp, target_link);
		if (!qp->o.dying)
			target_end(qp);
	}
	x->held = false;
	xrc_check(x);
}

int
ctl_xrcd_new(struct ctl_client *c, struct ctl_xrc *x, uint32_t *handle)
{
	struct ctl_xrcd *xrcd;
	int err = ctl_obj_room(c, CTL_XRCD);

	if (err < 0)
		return err;
	xrcd = calloc(1, sizeof(*xrcd));
	if (xrcd == NULL)
		return -ENOMEM;
	err = ctl_obj_add_numbered(c, &xrcd->o, CTL_XRCD);
	if (err < 0) {
		free(xrcd);
		return err;
	}
	xrcd->xrc = x;
	x->users++;
	*handle = ctl_obj_handle(&xrcd->o);
	return 0;
}

#define XRCD_FLAGS (RING_XRCD_FILE | RING_XRCD_CREATE | RING_XRCD_EXCL)

static bool
alloc_ok(const struct ring_ctrl_alloc_xrcd_req *r)
{
	if ((r->flags & ~(uint32_t)XRCD_FLAGS) != 0 || r->reserved != 0)
		return false;
	if ((r->flags & RING_XRCD_EXCL) && !(r->flags & RING_XRCD_CREATE))
		return false;
	/* without a file there is nothing to be found: it can only be made */
	return (r->flags & RING_XRCD_FILE) ||
		((r->flags & RING_XRCD_CREATE) && r->dev == 0 && r->ino == 0);
}

/* Of nobody yet: to be taken away again if nobody gets it. */
static int
alloc_new(struct ctl_client *c, const struct ring_ctrl_alloc_xrcd_req *r, uint64_t key,
	struct ctl_xrc **out)
{
	struct ctl_xrc *x;
	int err;

	if (!(r->flags & RING_XRCD_CREATE))
		return -ENOENT;
	err = ctl_obj_room(c, CTL_XRCD);
	if (err < 0)
		return err;
	x = xrc_new(c);
	if (x == NULL)
		return -ENOMEM;
	if (r->flags & RING_XRCD_FILE) {
		x->dev = r->dev;
		x->ino = r->ino;
		err = ctl_map_add(&c->dev->xrc_files, &x->file_node, key);
		x->file = err == 0;
	}
	if (err < 0)
		xrc_free(x);
	*out = x;
	return err;
}

int
ctl_op_alloc_xrcd(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_alloc_xrcd_req *r = req;
	struct ring_ctrl_handle_rep *p = rep;
	struct ctl_xrc *x = NULL;
	uint64_t key = 0;
	int err = 0;

	(void)e;
	if (!alloc_ok(r))
		return -EINVAL;
	if (r->flags & RING_XRCD_FILE)
		x = xrc_find(c->dev, c->uid, r, &key);
	if (x != NULL && (r->flags & RING_XRCD_EXCL))
		return -EEXIST;
	if (x == NULL)
		err = alloc_new(c, r, key, &x);
	if (err < 0)
		return err;
	x->users++; /* held: without an XRCD it goes again */
	err = ctl_xrcd_new(c, x, &p->handle);
	xrc_put(x);
	return err;
}

void
ctl_xrcd_destroy(struct ctl_obj *o)
{
	struct ctl_xrcd *xrcd = (struct ctl_xrcd *)o;
	struct ctl_xrc *x = xrcd->xrc;

	ctl_export_end(o->client->dev, &xrcd->export);
	ctl_obj_del(o, 0);
	free(xrcd);
	xrc_put(x);
}

int
ctl_op_dealloc_xrcd(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_xrcd *xrcd = ctl_obj_find(c, CTL_XRCD, r->handle);

	(void)rep;
	(void)e;
	if (xrcd == NULL || r->reserved != 0)
		return -EINVAL;
	if (xrcd->o.refs != 0)
		return -EBUSY;
	ctl_xrcd_destroy(&xrcd->o);
	return 0;
}

/* ---- target QPs ---------- */

static void
target_end(struct ctl_qp *qp)
{
	struct ctl_qp_op *op = qp->end_op;

	qp->o.dying = true;
	qp->end_op = NULL;
	ctl_qp_end(qp, op);
}

void
ctl_target_free(struct ctl_qp *qp)
{
	struct ctl_xrc *x = qp->xrc;
	struct ctl_open *last = qp->last;

	if (qp->neigh != NULL)
		net_neigh_put(qp->neigh);
	roce_qp_free(qp->vqp);
	ctl_qpn_retire(x->device, qp);
	ctl_map_del(&x->device->targets, &qp->o.node);
	TAILQ_REMOVE(&x->targets, qp, target_link);
	x->user->count[CTL_QP]--;
	free(qp->end_op);
	free(qp->words);
	free(qp);
	if (last != NULL) {
		ctl_obj_del(&last->o, 0);
		free(last);
	}
	xrc_check(x);
}

static int
open_new(struct ctl_client *c, struct ctl_xrcd *xrcd, struct ctl_qp *qp, uint64_t user_handle)
{
	struct ctl_open *o = calloc(1, sizeof(*o));
	int err = -ENOMEM;

	if (o != NULL)
		err = ctl_obj_add_numbered(c, &o->o, CTL_OPEN);
	if (err < 0) {
		free(o);
		return err;
	}
	o->o.user_handle = user_handle;
	o->qp = qp;
	o->xrcd = xrcd;
	xrcd->o.refs++;
	TAILQ_INSERT_TAIL(&qp->opens, o, qp_link);
	return 0;
}

static void
open_unlink(struct ctl_open *o)
{
	TAILQ_REMOVE(&o->qp->opens, o, qp_link);
	o->xrcd->o.refs--;
}

void
ctl_open_destroy(struct ctl_obj *o)
{
	struct ctl_open *open = (struct ctl_open *)o;

	open_unlink(open);
	ctl_obj_del(o, 0);
	free(open);
}

static struct ctl_open *
open_of(const struct ctl_client *c, const struct ctl_qp *qp)
{
	struct ctl_open *o;

	TAILQ_FOREACH(o, &qp->opens, qp_link) {
		if (o->o.client == c)
			return o;
	}
	return NULL;
}

int
ctl_target_close(struct ctl_client *c, struct ctl_qp *qp, struct ring_ctrl_done_rep *rep,
	struct ctl_elem e)
{
	struct ctl_open *o = open_of(c, qp);

	open_unlink(o);
	if (!TAILQ_EMPTY(&qp->opens)) {
		rep->events = o->o.events;
		ctl_obj_del(&o->o, 0);
		free(o);
		return 0;
	}
	o->o.destroyer = e;
	ctl_obj_dying(&o->o);
	qp->last = o;
	target_end(qp);
	return CTL_LATER;
}

static struct ctl_qp *
target_of_node(struct ctl_map_node *n)
{
	return (struct ctl_qp *)n; /* an object's node comes first, a QP's object too */
}

struct ctl_qp *
ctl_qp_find(struct ctl_client *c, uint32_t qpn)
{
	struct ctl_qp *qp = ctl_obj_find(c, CTL_QP, qpn);

	if (qp != NULL)
		return qp;
	qp = target_of_node(ctl_map_find(&c->dev->targets, qpn));
	return qp != NULL && !qp->o.dying && open_of(c, qp) != NULL ? qp : NULL;
}

static int
target_engine(struct ctl_qp *qp, uint32_t qpn)
{
	struct roce_qp_init init = {
		.qpn = qpn,
		.type = VERBS_QPT_XRC_RECV,
		.pd = (uint32_t)qp->xrc->node.key,
		.daemon = qp->words,
		.owner = &qp->w,
	};

	qp->vqp = roce_qp_create(&init);
	return qp->vqp != NULL ? 0 : -ENOMEM;
}

static struct ctl_qp *
target_new(struct ctl_xrc *x)
{
	struct ctl_qp *qp = calloc(1, sizeof(*qp));

	if (qp == NULL)
		return NULL;
	qp->dev = x->device;
	qp->xrc = x;
	qp->type = RING_QPT_XRC_RECV;
	qp->bell = RING_NO_HANDLE;
	qp->o.kind = CTL_QP;
	TAILQ_INIT(&qp->ops);
	TAILQ_INIT(&qp->opens);
	qp->end_op = calloc(1, sizeof(*qp->end_op));
	qp->words = aligned_alloc(RING_LINE, sizeof(*qp->words));
	if (qp->end_op == NULL || qp->words == NULL) {
		free(qp->end_op);
		free(qp->words);
		free(qp);
		return NULL;
	}
	memset(qp->words, 0, sizeof(*qp->words));
	return qp;
}

/* With a number, an engine's half and a first opening. */
static int
target_make(struct ctl_client *c, struct ctl_qp *qp, struct ctl_xrcd *xrcd, uint64_t user_handle)
{
	struct worker_device *d = c->dev;
	uint32_t qpn = roce_qpn_alloc(d->sh.qpns);
	int err;

	if (qpn == 0)
		return ctl_total_out(d, CTL_QP);
	err = target_engine(qp, qpn);
	if (err == 0)
		err = ctl_map_add(&d->targets, &qp->o.node, qpn);
	if (err == 0) {
		err = open_new(c, xrcd, qp, user_handle);
		if (err < 0)
			ctl_map_del(&d->targets, &qp->o.node);
	}
	if (err == 0)
		return 0;
	if (qp->vqp != NULL)
		roce_qp_free(qp->vqp);
	roce_qpn_release(d->sh.qpns, qpn);
	return err;
}

int
ctl_target_create(struct ctl_client *c, const struct ring_ctrl_create_qp_req *r,
	struct ring_ctrl_create_qp_rep *p)
{
	struct ctl_xrcd *xrcd = ctl_obj_find(c, CTL_XRCD, r->xrcd);
	struct ctl_qp *qp;
	int err;

	if (xrcd == NULL || r->pd != RING_NO_HANDLE || r->send_cq != RING_NO_HANDLE ||
		r->recv_cq != RING_NO_HANDLE || r->srqn != RING_NO_HANDLE)
		return -EINVAL;
	err = ctl_obj_room(c, CTL_QP);
	if (err == 0)
		err = ctl_obj_room(c, CTL_OPEN);
	if (err < 0)
		return err;
	qp = target_new(xrcd->xrc);
	if (qp == NULL)
		return -ENOMEM;
	err = target_make(c, qp, xrcd, r->user_handle);
	if (err < 0) {
		free(qp->end_op);
		free(qp->words);
		free(qp);
		return err;
	}
	xrcd->xrc->user->count[CTL_QP]++;
	TAILQ_INSERT_TAIL(&xrcd->xrc->targets, qp, target_link);
	p->qpn = ctl_obj_handle(&qp->o);
	p->bell = RING_NO_HANDLE;
	p->sq = p->rq = p->client = p->daemon = RING_NO_LOC;
	return 0;
}

int
ctl_op_open_qp(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_open_qp_req *r = req;
	struct ctl_xrcd *xrcd = ctl_obj_find(c, CTL_XRCD, r->xrcd);
	struct ctl_qp *qp = target_of_node(ctl_map_find(&c->dev->targets, r->qpn));

	(void)rep;
	(void)e;
	if (xrcd == NULL || qp == NULL || qp->xrc != xrcd->xrc || qp->o.dying)
		return -EINVAL;
	if (open_of(c, qp) != NULL)
		return -EBUSY;
	return open_new(c, xrcd, qp, r->user_handle);
}

void
ctl_target_event(struct ctl_qp *qp, unsigned int type)
{
	struct ctl_open *o;

	TAILQ_FOREACH(o, &qp->opens, qp_link)
		ctl_event_of(&o->o, type, RING_EVENT_OF_QP, ctl_obj_handle(&qp->o));
}
