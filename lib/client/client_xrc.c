/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains. Their SRQs are client_srq.c's, their QPs client_qp.c's. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client_priv.h"

static void
xrcd_release(struct client_obj *obj)
{
	struct rnic_xrcd *x = CLIENT_OF(struct rnic_xrcd, obj, obj);

	if (x->fd >= 0)
		close(x->fd);
	free(x);
}

static struct rnic_xrcd *
xrcd_new(struct rnic_context *ctx)
{
	struct rnic_xrcd *x = calloc(1, sizeof(*x));

	if (x) {
		x->context = ctx;
		x->fd = -1;
	}
	return x;
}

/* The file is named by its numbers, which nobody else can get while we hold it. */
static int
file_of(struct rnic_xrcd *x, int fd, struct ring_ctrl_alloc_xrcd_req *req)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	x->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (x->fd < 0)
		return -errno;
	req->flags |= RING_XRCD_FILE;
	req->dev = st.st_dev;
	req->ino = st.st_ino;
	return 0;
}

int
rnic_open_xrcd(struct rnic_context *ctx, int fd, int oflags, struct rnic_xrcd **out)
{
	struct ring_ctrl_alloc_xrcd_req req = {
		.flags = (oflags & O_CREAT ? RING_XRCD_CREATE : 0u) |
			(oflags & O_EXCL ? RING_XRCD_EXCL : 0u),
	};
	struct ring_ctrl_handle_rep rep;
	struct rnic_xrcd *x;
	int rc = client_gate(ctx);

	if (rc)
		return rc;
	if (oflags & ~(O_CREAT | O_EXCL))
		return -EINVAL;
	x = xrcd_new(ctx);
	if (!x)
		return -ENOMEM;
	if (fd >= 0)
		rc = file_of(x, fd, &req);
	if (rc == 0)
		rc = client_call1(ctx, RING_CTRL_ALLOC_XRCD, &req, &rep);
	if (rc) {
		xrcd_release(&x->obj);
		return rc;
	}
	x->handle = rep.handle;
	client_obj_add(ctx, &x->obj, xrcd_release);
	*out = x;
	return 0;
}

int
rnic_close_xrcd(struct rnic_xrcd *x)
{
	struct rnic_context *ctx = x->context;
	int rc = client_destroy_call(ctx, RING_CTRL_DEALLOC_XRCD, x->handle);

	if (rc)
		return rc;
	client_obj_del(ctx, &x->obj);
	xrcd_release(&x->obj);
	return 0;
}

int
rnic_export_xrcd(struct rnic_xrcd *x, struct rnic_token *token)
{
	return client_export(x->context, RING_EXPORT_XRCD, x->handle, token);
}

int
rnic_import_xrcd(struct rnic_context *ctx, const struct rnic_token *token, struct rnic_xrcd **out)
{
	struct ring_ctrl_import_rep rep;
	struct rnic_xrcd *x;
	int rc = client_gate(ctx);

	if (rc)
		return rc;
	x = xrcd_new(ctx);
	if (!x)
		return -ENOMEM;
	rc = client_import(ctx, RING_EXPORT_XRCD, token, &rep);
	if (rc) {
		free(x);
		return rc;
	}
	x->handle = rep.handle;
	client_obj_add(ctx, &x->obj, xrcd_release);
	*out = x;
	return 0;
}
