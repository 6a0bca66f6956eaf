/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: making, resizing, arming, ending. Polling is in client_poll.c. */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "client_priv.h"
#include "ring_arm.h"

static void
cq_release(struct client_obj *obj)
{
	struct client_cq *cq = CLIENT_OF(struct client_cq, obj, obj);

	client_map_fini(&cq->qps);
	client_map_fini(&cq->srqs);
	free(cq);
}

/* With the context's lock. */
static int
cq_setup(struct client_cq *cq, const struct ring_ctrl_create_cq_rep *rep)
{
	struct rnic_context *ctx = cq->pub.context;

	cq->client = client_loc(ctx, rep->client, sizeof(*cq->client), RING_LINE, RING_ARENA_C);
	cq->daemon = client_loc(ctx, rep->daemon, sizeof(*cq->daemon), RING_LINE, RING_ARENA_D);
	cq->pub.handle = rep->cqn;
	cq->pub.cqe = rep->entries;
	if (!cq->client || !cq->daemon || client_map_put(&ctx->cqs, rep->cqn, cq))
		return -EPROTO;
	return 0;
}

static int
cq_link(struct client_cq *cq, const struct ring_ctrl_create_cq_rep *rep)
{
	struct rnic_context *ctx = cq->pub.context;
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = cq_setup(cq, rep);
	pthread_mutex_unlock(&ctx->lock);
	if (rc == 0 && cq->pub.channel) {
		rc = client_channel_add(cq->pub.channel, cq);
		if (rc) {
			pthread_mutex_lock(&ctx->lock);
			client_map_del(&ctx->cqs, rep->cqn);
			pthread_mutex_unlock(&ctx->lock);
		}
	}
	if (rc)
		client_destroy_call(ctx, RING_CTRL_DESTROY_CQ, rep->cqn);
	return rc;
}

int
rnic_create_cq(struct rnic_context *ctx, const struct rnic_cq_attr *attr, struct rnic_cq **out)
{
	struct ring_ctrl_create_cq_req req = {
		.entries = attr->cqe,
		.channel = attr->channel ? attr->channel->handle : RING_NO_HANDLE,
		.comp_vector = attr->comp_vector,
	};
	struct ring_ctrl_create_cq_rep rep;
	struct client_cq *cq;
	int rc = client_gate(ctx);

	if (rc)
		return rc;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->pub.context = ctx;
	cq->pub.channel = attr->channel;
	cq->pub.user_context = attr->user_context;
	cq->lock.none = (attr->flags | ctx->flags) & RNIC_THREAD_UNSAFE;
	req.user_handle = (uintptr_t)cq;
	rc = client_call1(ctx, RING_CTRL_CREATE_CQ, &req, &rep);
	if (rc == 0)
		rc = cq_link(cq, &rep);
	if (rc) {
		free(cq);
		return rc;
	}
	client_obj_add(ctx, &cq->obj, cq_release);
	*out = &cq->pub;
	return 0;
}

int
rnic_resize_cq(struct rnic_cq *cq, uint32_t cqe)
{
	struct ring_ctrl_resize_cq_req req = {.cqn = cq->handle, .entries = cqe};
	struct ring_ctrl_resize_cq_rep rep;
	int rc = client_call1(cq->context, RING_CTRL_RESIZE_CQ, &req, &rep);

	if (rc == 0)
		cq->cqe = rep.entries;
	return rc;
}

int
rnic_destroy_cq(struct rnic_cq *pub)
{
	struct client_cq *cq = client_cq(pub);
	struct rnic_context *ctx = pub->context;
	int rc;

	if (client_is_child(ctx))
		return -EPERM;
	if (cq->qps.used || cq->srqs.used)
		return -EBUSY;
	rc = client_destroy_call(ctx, RING_CTRL_DESTROY_CQ, pub->handle);
	if (rc)
		return rc;
	pthread_mutex_lock(&ctx->lock);
	client_map_del(&ctx->cqs, pub->handle);
	pthread_mutex_unlock(&ctx->lock);
	if (pub->channel)
		client_channel_del(pub->channel, cq);
	pthread_mutex_lock(&ctx->lock);
	while (cq->unacked)
		pthread_cond_wait(&ctx->cond, &ctx->lock);
	pthread_mutex_unlock(&ctx->lock);
	client_obj_del(ctx, &cq->obj);
	cq_release(&cq->obj);
	return 0;
}

int
client_cq_attach(struct rnic_cq *pub, struct client_qp *qp)
{
	struct client_cq *cq;
	int rc;

	if (!pub)
		return 0;
	cq = client_cq(pub);
	client_lock(&cq->lock);
	rc = client_map_put(&cq->qps, qp->pub.qp_num, qp);
	client_unlock(&cq->lock);
	return rc;
}

void
client_cq_detach(struct rnic_cq *pub, struct client_qp *qp)
{
	struct client_cq *cq;

	if (!pub)
		return;
	cq = client_cq(pub);
	client_lock(&cq->lock);
	client_cq_clean(cq, qp);
	client_map_del(&cq->qps, qp->pub.qp_num);
	if (cq->last == qp)
		cq->last = NULL;
	client_unlock(&cq->lock);
}

int
client_cq_attach_srq(struct rnic_cq *pub, struct rnic_srq *srq)
{
	struct client_cq *cq = client_cq(pub);
	int rc;

	client_lock(&cq->lock);
	rc = client_map_put(&cq->srqs, srq->srqn, srq);
	client_unlock(&cq->lock);
	return rc;
}

/* Its completions that were not polled are of nothing that is known from here on. */
void
client_cq_detach_srq(struct rnic_cq *pub, struct rnic_srq *srq)
{
	struct client_cq *cq = client_cq(pub);

	client_lock(&cq->lock);
	client_map_del(&cq->srqs, srq->srqn);
	client_unlock(&cq->lock);
}

int
rnic_req_notify_cq(struct rnic_cq *pub, int solicited_only)
{
	struct client_cq *cq = client_cq(pub);
	int rc = client_gate(pub->context);

	if (rc)
		return rc;
	if (!pub->channel)
		return -EINVAL;
	ring_cq_arm(cq->client, cq->daemon,
		solicited_only ? RING_CQ_ARMED_SOLICITED : RING_CQ_ARMED_NEXT);
	return 0;
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/*
 * Until the channel has an event, which is taken. 0: the time is over. Readable is no promise:
 * another thread may have taken it, or its byte belongs to no CQ any more.
 */
static int
wait_event(struct rnic_channel *ch, int64_t deadline)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};
	int64_t left = deadline < 0 ? -1 : deadline - now_ms();
	struct rnic_cq *cq;
	int rc;

	if (deadline >= 0 && left <= 0)
		return 0;
	rc = poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
	if (rc <= 0)
		return rc == 0 ? 0 : errno == EINTR ? 1 : -errno;
	rc = client_channel_take(ch, false, &cq);
	if (rc == 0)
		rnic_ack_cq_events(cq, 1);
	return rc && rc != -EAGAIN ? rc : 1;
}

int
rnic_wait_cq(struct rnic_cq *cq, int n, struct rnic_wc *wc, int timeout_ms)
{
	int64_t deadline = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
	int rc = rnic_poll_cq(cq, n, wc);

	while (rc == 0 && timeout_ms) {
		rc = rnic_req_notify_cq(cq, 0);
		if (rc)
			return rc;
		rc = rnic_poll_cq(cq, n, wc);
		if (rc)
			return rc;
		rc = wait_event(cq->channel, deadline);
		if (rc <= 0)
			return rc;
		rc = rnic_poll_cq(cq, n, wc);
	}
	return rc;
}
