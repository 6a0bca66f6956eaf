/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, arena memory, regions, windows, and their passing between processes. */
#include <stdlib.h>

#include "client_priv.h"

struct client_mr {
	struct rnic_mr pub;
	uint32_t handle; /* the key as the daemon gave it */
	uint32_t access;
	struct client_obj obj;
};

static void
pd_release(struct client_obj *obj)
{
	free(CLIENT_OF(struct client_pd, obj, obj));
}

static void
mr_release(struct client_obj *obj)
{
	free(CLIENT_OF(struct client_mr, obj, obj));
}

static void
mw_release(struct client_obj *obj)
{
	free(CLIENT_OF(struct client_mw, obj, obj));
}

static int
pd_new(struct rnic_context *ctx, uint32_t handle, struct rnic_pd **out)
{
	struct client_pd *pd = calloc(1, sizeof(*pd));

	if (!pd) {
		client_destroy_call(ctx, RING_CTRL_DEALLOC_PD, handle);
		return -ENOMEM;
	}
	pd->pub = (struct rnic_pd){.context = ctx, .handle = handle};
	client_obj_add(ctx, &pd->obj, pd_release);
	*out = &pd->pub;
	return 0;
}

int
rnic_alloc_pd(struct rnic_context *ctx, struct rnic_pd **pd)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_handle_rep rep;
	int rc = client_call1(ctx, RING_CTRL_ALLOC_PD, &req, &rep);

	return rc ? rc : pd_new(ctx, rep.handle, pd);
}

int
rnic_dealloc_pd(struct rnic_pd *pub)
{
	struct client_pd *pd = CLIENT_OF(struct client_pd, pub, pub);
	int rc = client_destroy_call(pub->context, RING_CTRL_DEALLOC_PD, pub->handle);

	if (rc)
		return rc;
	client_obj_del(pub->context, &pd->obj);
	free(pd);
	return 0;
}

int
rnic_alloc(struct rnic_context *ctx, size_t size, size_t align, void **addr)
{
	struct ring_ctrl_alloc_mem_req req = {.size = size, .align = align ? align : 64};
	struct ring_ctrl_alloc_mem_rep rep;
	int rc = client_call1(ctx, RING_CTRL_ALLOC_MEM, &req, &rep);

	if (rc)
		return rc;
	pthread_mutex_lock(&ctx->lock);
	*addr = client_loc(ctx, rep.loc, size, 1, RING_ARENA_C);
	if (!*addr)
		client_die(ctx, -EPROTO);
	pthread_mutex_unlock(&ctx->lock);
	return *addr ? 0 : -EPROTO;
}

static ring_loc_t
loc_of(struct rnic_context *ctx, const void *addr)
{
	ring_loc_t loc = RING_NO_LOC;

	pthread_mutex_lock(&ctx->lock);
	for (uint32_t i = 0; i < ctx->num_arenas; i++) {
		const struct client_arena *a = &ctx->arenas[i];
		uint64_t off = (uintptr_t)addr - (uintptr_t)a->base;

		if (a->base && a->kind == RING_ARENA_C && off < a->size)
			loc = RING_LOC(i, off);
	}
	pthread_mutex_unlock(&ctx->lock);
	return loc;
}

int
rnic_free(struct rnic_context *ctx, void *addr)
{
	struct ring_ctrl_free_mem_req req;
	struct ring_ctrl_done_rep rep;
	int rc = client_gate(ctx);

	if (rc)
		return rc == -ENOTCONN ? 0 : rc; /* rnic_close() unmaps it */
	req.loc = loc_of(ctx, addr);
	if (req.loc == RING_NO_LOC)
		return -EINVAL;
	return client_call1(ctx, RING_CTRL_FREE_MEM, &req, &rep);
}

/* REG_MR and ALLOC_FAST_MR, whose reply is the same. */
static int
mr_new(struct rnic_pd *pd, unsigned int op, const void *req, const struct client_mr *what,
	struct rnic_mr **out)
{
	struct ring_ctrl_reg_mr_rep rep;
	struct client_mr *mr;
	int rc = client_gate(pd->context);

	if (rc)
		return rc;
	mr = malloc(sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	rc = client_call1(pd->context, op, req, &rep);
	if (rc) {
		free(mr);
		return rc;
	}
	*mr = *what;
	mr->pub.context = pd->context;
	mr->pub.pd = pd;
	mr->pub.lkey = mr->handle = rep.lkey;
	mr->pub.rkey = rep.rkey;
	client_obj_add(pd->context, &mr->obj, mr_release);
	*out = &mr->pub;
	return 0;
}

static int
reg_mr(struct rnic_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
	uint32_t flags, struct rnic_mr **out)
{
	const struct ring_ctrl_reg_mr_req req = {
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = iova,
		.access = access,
		.pd = pd->handle,
		.flags = flags,
	};
	const struct client_mr mr = {
		.pub = {.addr = addr, .length = length, .iova = iova},
		.access = access,
	};

	return mr_new(pd, RING_CTRL_REG_MR, &req, &mr, out);
}

int
rnic_alloc_fast_mr(struct rnic_pd *pd, unsigned int max_segments, struct rnic_mr **out)
{
	const struct ring_ctrl_alloc_fast_mr_req req = {.pd = pd->handle, .max_segs = max_segments};
	const struct client_mr mr = {.access = 0};

	return mr_new(pd, RING_CTRL_ALLOC_FAST_MR, &req, &mr, out);
}

static uint64_t
default_iova(const void *addr, unsigned int access)
{
	return access & RNIC_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
}

int
rnic_reg_mr(struct rnic_pd *pd, void *addr, size_t length, unsigned int access, struct rnic_mr **mr)
{
	return reg_mr(pd, addr, length, default_iova(addr, access), access, 0, mr);
}

int
rnic_reg_mr_iova(struct rnic_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
	struct rnic_mr **mr)
{
	return reg_mr(pd, addr, length, iova, access, 0, mr);
}

int
rnic_reg_mr_remap(struct rnic_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
	struct rnic_mr **mr)
{
	return reg_mr(pd, addr, length, iova, access, RING_MR_REMAP, mr);
}

int
rnic_rereg_mr(struct rnic_mr *pub, unsigned int flags, struct rnic_pd *pd, void *addr,
	size_t length, unsigned int access)
{
	struct client_mr *mr = CLIENT_OF(struct client_mr, pub, pub);
	uint32_t now = flags & RNIC_REREG_ACCESS ? access : mr->access;
	struct ring_ctrl_rereg_mr_req req = {.lkey = mr->handle, .what = flags};
	struct ring_ctrl_reg_mr_rep rep;
	int rc;

	if (!pub->pd)
		return -EINVAL; /* imported */
	if (flags & RNIC_REREG_TRANSLATION) {
		req.addr = (uintptr_t)addr;
		req.length = length;
		req.iova = default_iova(addr, now);
	}
	if (flags & RNIC_REREG_PD)
		req.pd = pd->handle;
	if (flags & RNIC_REREG_ACCESS)
		req.access = access;
	rc = client_call1(pub->context, RING_CTRL_REREG_MR, &req, &rep);
	if (rc)
		return rc;
	pub->lkey = mr->handle = rep.lkey;
	pub->rkey = rep.rkey;
	mr->access = now;
	if (flags & RNIC_REREG_PD)
		pub->pd = pd;
	if (flags & RNIC_REREG_TRANSLATION) {
		pub->addr = addr;
		pub->length = length;
		pub->iova = req.iova;
	}
	return 0;
}

int
rnic_dereg_mr(struct rnic_mr *pub)
{
	struct client_mr *mr = CLIENT_OF(struct client_mr, pub, pub);
	int rc = client_is_child(pub->context) ? -EPERM : 0;

	if (rc == 0 && pub->pd) /* an imported one is but a name */
		rc = client_destroy_call(pub->context, RING_CTRL_DEREG_MR, mr->handle);
	if (rc)
		return rc;
	client_obj_del(pub->context, &mr->obj);
	free(mr);
	return 0;
}

int
rnic_alloc_mw(struct rnic_pd *pd, enum rnic_mw_type type, struct rnic_mw **out)
{
	struct ring_ctrl_alloc_mw_req req = {.pd = pd->handle, .type = (uint32_t)type};
	struct ring_ctrl_alloc_mw_rep rep;
	struct client_mw *mw;
	int rc = client_gate(pd->context);

	if (rc)
		return rc;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	rc = client_call1(pd->context, RING_CTRL_ALLOC_MW, &req, &rep);
	if (rc) {
		free(mw);
		return rc;
	}
	mw->lock.none = pd->context->flags & RNIC_THREAD_UNSAFE;
	mw->pub = (struct rnic_mw){
		.context = pd->context,
		.pd = pd,
		.rkey = rep.rkey,
		.handle = rep.handle,
		.type = (uint32_t)type,
	};
	client_obj_add(pd->context, &mw->obj, mw_release);
	*out = &mw->pub;
	return 0;
}

int
rnic_dealloc_mw(struct rnic_mw *pub)
{
	struct client_mw *mw = CLIENT_OF(struct client_mw, pub, pub);
	int rc = client_destroy_call(pub->context, RING_CTRL_DEALLOC_MW, pub->handle);

	if (rc)
		return rc;
	client_obj_del(pub->context, &mw->obj);
	free(mw);
	return 0;
}

int
client_export(struct rnic_context *ctx, uint32_t kind, uint32_t handle, struct rnic_token *token)
{
	struct ring_ctrl_export_req req = {.kind = kind, .handle = handle};
	struct ring_ctrl_export_rep rep;
	int rc = client_call1(ctx, RING_CTRL_EXPORT, &req, &rep);

	if (rc == 0)
		memcpy(token->bytes, rep.token, sizeof(token->bytes));
	return rc;
}

int
client_import(struct rnic_context *ctx, uint32_t kind, const struct rnic_token *token,
	struct ring_ctrl_import_rep *rep)
{
	struct ring_ctrl_import_req req = {.kind = kind};

	memcpy(req.token, token->bytes, sizeof(req.token));
	return client_call1(ctx, RING_CTRL_IMPORT, &req, rep);
}

int
rnic_export_pd(struct rnic_pd *pd, struct rnic_token *token)
{
	return client_export(pd->context, RING_EXPORT_PD, pd->handle, token);
}

int
rnic_export_mr(struct rnic_mr *mr, struct rnic_token *token)
{
	return client_export(mr->context, RING_EXPORT_MR,
		CLIENT_OF(struct client_mr, pub, mr)->handle, token);
}

int
rnic_import_pd(struct rnic_context *ctx, const struct rnic_token *token, struct rnic_pd **pd)
{
	struct ring_ctrl_import_rep rep;
	int rc = client_import(ctx, RING_EXPORT_PD, token, &rep);

	return rc ? rc : pd_new(ctx, rep.handle, pd);
}

int
rnic_import_mr(struct rnic_context *ctx, const struct rnic_token *token, struct rnic_mr **out)
{
	struct ring_ctrl_import_rep rep;
	struct client_mr *mr;
	int rc = client_gate(ctx);

	if (rc)
		return rc;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	rc = client_import(ctx, RING_EXPORT_MR, token, &rep);
	if (rc) {
		free(mr);
		return rc;
	}
	mr->pub = (struct rnic_mr){
		.context = ctx,
		.length = rep.length,
		.iova = rep.iova,
		.lkey = rep.handle,
		.rkey = rep.rkey,
	};
	mr->handle = rep.handle;
	client_obj_add(ctx, &mr->obj, mr_release);
	*out = &mr->pub;
	return 0;
}
