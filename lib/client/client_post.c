/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: requests are checked, written into the ring's slots, published once a list, and the
 * worker woken if it does not look by itself. Nothing here waits or makes a system call, but
 * the kick of an idle worker.
 */
#include <unistd.h>

#include "client_priv.h"
#include "ring_bell.h"
#include "ring_kick.h"

/* The inline face in rnic.h has layouts of its own, which are the ABI's. */
static_assert(sizeof(struct rnic_wqe) == sizeof(struct ring_wqe), "slot");
static_assert(sizeof(struct rnic_rwqe) == sizeof(struct ring_rwqe), "slot");
static_assert(sizeof(struct rnic_sge) == sizeof(struct ring_sge), "SGE");
static_assert(offsetof(struct rnic_wqe, u.remote_addr) == offsetof(struct ring_wqe, remote_addr),
	"remote address");
static_assert(offsetof(struct rnic_wqe, key) == offsetof(struct ring_wqe, rkey), "key");
static_assert(offsetof(struct rnic_wqe, len) == offsetof(struct ring_wqe, inline_len), "length");
static_assert(offsetof(struct rnic_wqe, d) == offsetof(struct ring_wqe, sge), "SGEs");
static_assert(
	offsetof(struct rnic_wqe, d.atomic.sge) == offsetof(struct ring_wqe, atomic.sge), "result");
static_assert(offsetof(struct rnic_rwqe, sge) == offsetof(struct ring_rwqe, sge), "SGEs");
static_assert(offsetof(struct rnic_wq, head) % 64 == 0, "the poller's line");

#define OP(name) (1ull << RNIC_WR_##name)
#define FLAGS (RNIC_SEND_FENCE | RNIC_SEND_SIGNALED | RNIC_SEND_SOLICITED | RNIC_SEND_INLINE)

static const uint64_t may_inline = OP(SEND) | OP(SEND_WITH_IMM) | OP(SEND_WITH_INV) |
	OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM) | OP(ATOMIC_WRITE);
static const uint64_t takes_sges = OP(SEND) | OP(SEND_WITH_IMM) | OP(SEND_WITH_INV) |
	OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM) | OP(RDMA_READ) | OP(ATOMIC_WRITE);
static const uint64_t atomics = OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD);

void
rnic_qp_ring(struct rnic_qp *pub)
{
	struct client_qp *qp = client_qp(pub);
	struct rnic_context *ctx = pub->context;
	uint32_t w = ring_bell_worker(qp->daemon);
	struct ring_bell_chunk *chunk;

	/* Bound to none: its worker looks at the tail when it gets the QP. */
	if (w >= ctx->num_workers || client_gate(ctx))
		return;
	chunk = ctx->chunks[qp->bell_chunk][w];
	if (!chunk)
		return;
	ring_bell_set(chunk, qp->bell_slot);
	if (ring_kick_needed(ctx->bell_daemon[w])) {
		uint64_t one = 1;
		ssize_t n = write(ctx->kick_fds[w], &one, sizeof(one));

		(void)n; /* a counter that is full is as good as a kick */
	}
}

/* The lowest state that may post: what the last modify said, or what the daemon did since. */
static inline bool
state_ok(const struct client_qp *qp, uint32_t least)
{
	return (qp->daemon &&
		       atomic_load_explicit(&qp->daemon->state, memory_order_relaxed) >= least) ||
		atomic_load_explicit(&qp->state, memory_order_relaxed) >= least;
}

/* Bytes behind a request's first slot may be at the ring's beginning. */
static inline void
copy_into(struct rnic_wq *q, const void *first, size_t off, const void *src, size_t len)
{
	uint8_t *to = rnic_wq_at(q, first, off);
	size_t room = (size_t)(q->slots + ((size_t)q->mask + 1) * RING_SLOT_SIZE - to);
	size_t n = len < room ? len : room;

	memcpy(to, src, n);
	if (n < len)
		memcpy(q->slots, (const uint8_t *)src + n, len - n);
}

/* Length of the inline data, or -EINVAL. */
static int64_t
inline_len(const struct rnic_wq *q, const struct rnic_send_wr *wr)
{
	uint64_t len = 0;

	if (!(may_inline & 1ull << wr->opcode))
		return -EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len <= q->max_inline ? (int64_t)len : -EINVAL;
}

/* Slots that the request takes, -EINVAL or -EOPNOTSUPP: the daemon would fail the whole QP. */
static int
send_check(const struct client_qp *qp, const struct rnic_send_wr *wr, uint32_t *inlined)
{
	const struct rnic_wq *q = &qp->pub.sq;
	uint64_t op;
	int64_t len;

	if (wr->opcode >= 64 || (wr->send_flags & ~FLAGS) || wr->num_sge < 0)
		return -EINVAL;
	op = 1ull << wr->opcode;
	if (!(qp->opcodes & op))
		return -EINVAL;
	if (qp->lacking & op)
		return -EOPNOTSUPP;
	*inlined = 0;
	if (wr->send_flags & RNIC_SEND_INLINE) {
		len = inline_len(q, wr);
		if (len < 0)
			return -EINVAL;
		*inlined = (uint32_t)len;
		return (int)ring_wqe_slots_inline(*inlined);
	}
	if (atomics & op)
		return wr->num_sge == 1 ? 1 : -EINVAL;
	if (!(takes_sges & op))
		return 1;
	if (wr->num_sge > q->max_sge)
		return -EINVAL;
	return (int)ring_wqe_slots_sge((uint32_t)wr->num_sge);
}

static void
put_payload(struct rnic_wq *q, struct ring_wqe *w, const struct rnic_send_wr *wr)
{
	size_t off = offsetof(struct ring_wqe, data);

	if (wr->send_flags & RNIC_SEND_INLINE) {
		for (int i = 0; i < wr->num_sge; i++) {
			const struct rnic_sge *s = &wr->sg_list[i];

			copy_into(q, w, off, (const void *)(uintptr_t)s->addr, s->length);
			off += s->length;
		}
		return;
	}
	w->num_sge = (uint8_t)wr->num_sge;
	if (wr->num_sge == 1)
		memcpy(&w->sge[0], wr->sg_list, sizeof(w->sge[0]));
	else if (wr->num_sge)
		copy_into(q, w, off, wr->sg_list, (size_t)wr->num_sge * sizeof(struct ring_sge));
}

static void
put_atomic(struct ring_wqe *w, const struct rnic_send_wr *wr)
{
	w->rkey = wr->wr.atomic.rkey;
	w->remote_addr = wr->wr.atomic.remote_addr;
	w->atomic.compare_add = wr->wr.atomic.compare_add;
	w->atomic.swap = wr->wr.atomic.swap;
	memcpy(&w->atomic.sge, wr->sg_list, sizeof(w->atomic.sge));
	w->num_sge = 1;
}

static void
put_bind(struct ring_wqe *w, const struct rnic_send_wr *wr)
{
	w->rkey = wr->wr.bind_mw.rkey;
	w->remote_addr = wr->wr.bind_mw.addr;
	w->bind.length = wr->wr.bind_mw.length;
	w->bind.mr_lkey = wr->wr.bind_mw.mr ? wr->wr.bind_mw.mr->lkey : 0;
	w->bind.access = wr->wr.bind_mw.access;
	w->bind.mw_key = wr->wr.bind_mw.mw->rkey;
	memset(w->bind.reserved, 0, sizeof(w->bind.reserved));
}

static void
put_fast_reg(struct ring_wqe *w, const struct rnic_send_wr *wr)
{
	w->rkey = wr->wr.fast_reg.rkey;
	w->remote_addr = wr->wr.fast_reg.iova;
	w->fast_reg.length = wr->wr.fast_reg.length;
	w->fast_reg.access = wr->wr.fast_reg.access;
	w->fast_reg.list_lkey = wr->wr.fast_reg.list_lkey;
	w->fast_reg.list_addr = wr->wr.fast_reg.list_addr;
	w->fast_reg.list_len = wr->wr.fast_reg.list_len;
	w->fast_reg.reserved = 0;
}

static void
put_flush(struct ring_wqe *w, const struct rnic_send_wr *wr)
{
	w->rkey = wr->wr.flush.rkey;
	w->remote_addr = wr->wr.flush.remote_addr;
	w->flush_len = wr->wr.flush.length;
	w->flush = (wr->wr.flush.type & 15) | (wr->wr.flush.level & 3) << 4;
}

/* Only the union's member that the opcode stands for is looked at (B024). */
static void
put_request(const struct client_qp *qp, struct rnic_wq *q, struct ring_wqe *w,
	const struct rnic_send_wr *wr)
{
	switch (wr->opcode) {
	case RNIC_WR_SEND:
	case RNIC_WR_SEND_WITH_IMM:
	case RNIC_WR_SEND_WITH_INV:
		if (qp->pub.qp_type == RNIC_QPT_UD) {
			w->qkey = wr->wr.ud.remote_qkey;
			w->ah = wr->wr.ud.ah->handle;
			w->remote_qpn = wr->wr.ud.remote_qpn;
		}
		put_payload(q, w, wr);
		break;
	case RNIC_WR_RDMA_WRITE:
	case RNIC_WR_RDMA_WRITE_WITH_IMM:
	case RNIC_WR_RDMA_READ:
	case RNIC_WR_ATOMIC_WRITE:
		w->rkey = wr->wr.rdma.rkey;
		w->remote_addr = wr->wr.rdma.remote_addr;
		put_payload(q, w, wr);
		break;
	case RNIC_WR_ATOMIC_CMP_AND_SWP:
	case RNIC_WR_ATOMIC_FETCH_AND_ADD:
		put_atomic(w, wr);
		break;
	case RNIC_WR_BIND_MW:
		put_bind(w, wr);
		break;
	case RNIC_WR_FAST_REG:
		put_fast_reg(w, wr);
		break;
	case RNIC_WR_FLUSH:
		put_flush(w, wr);
		break;
	default: /* LOCAL_INV: the key is in imm */
		break;
	}
}

static int
send_one(struct client_qp *qp, const struct rnic_send_wr *wr)
{
	struct rnic_wq *q = &qp->pub.sq;
	uint32_t inlined;
	struct ring_wqe *w;
	int n = send_check(qp, wr, &inlined);

	if (n < 0)
		return n;
	w = rnic_wq_get(q, wr->wr_id, (uint32_t)n);
	if (!w)
		return q->capacity ? -ENOMEM : -EINVAL;
	memset(w, 0, offsetof(struct ring_wqe, sge));
	w->opcode = (uint8_t)wr->opcode;
	w->flags = (uint8_t)wr->send_flags;
	w->num_slots = (uint8_t)n;
	w->imm = wr->imm_data;
	w->srqn = qp->pub.qp_type == RNIC_QPT_XRC_SEND ? wr->srqn : 0;
	w->inline_len = inlined;
	put_request(qp, q, w, wr);
	return 0;
}

/* A type 1 window's key changes with rnic_bind_mw() only, and it alone may be bound to nothing. */
static bool
bind_ok(const struct rnic_send_wr *wr, bool type_1)
{
	const struct rnic_mw *mw;

	if (wr->opcode != RNIC_WR_BIND_MW)
		return true;
	mw = wr->wr.bind_mw.mw;
	return mw && (mw->type == RNIC_MW_TYPE_1) == type_1 &&
		(wr->wr.bind_mw.length ? wr->wr.bind_mw.mr != NULL : type_1);
}

static int
send_list(struct client_qp *qp, const struct rnic_send_wr *wr, const struct rnic_send_wr **bad,
	bool type_1)
{
	uint32_t before;
	int rc = 0;

	client_lock(&qp->sq_lock);
	before = qp->pub.sq.tail;
	if (!state_ok(qp, RING_QPS_RTS))
		rc = -EINVAL;
	for (; wr && rc == 0; wr = wr->next) {
		rc = !bind_ok(wr, type_1) ? -EINVAL : send_one(qp, wr);
		if (rc)
			break;
	}
	if (qp->pub.sq.tail != before)
		rnic_sq_submit(&qp->pub);
	client_unlock(&qp->sq_lock);
	if (rc && bad)
		*bad = wr;
	return rc;
}

int
rnic_post_send(struct rnic_qp *pub, const struct rnic_send_wr *wr, const struct rnic_send_wr **bad)
{
	struct client_qp *qp = client_qp(pub);
	int rc = client_gate(pub->context);

	if (rc == 0)
		return send_list(qp, wr, bad, false);
	if (bad)
		*bad = wr;
	return rc;
}

int
rnic_bind_mw(struct rnic_qp *pub, struct rnic_mw *mw, const struct rnic_send_wr *bind)
{
	struct client_mw *own = CLIENT_OF(struct client_mw, pub, mw);
	struct rnic_send_wr wr = *bind;
	int rc = client_gate(pub->context);

	if (rc)
		return rc;
	if (mw->type != RNIC_MW_TYPE_1)
		return -EINVAL;
	wr.next = NULL;
	wr.opcode = RNIC_WR_BIND_MW;
	wr.num_sge = 0;
	wr.wr.bind_mw.mw = mw;
	client_lock(&own->lock); /* each bind has a key of its own, on whatever QP */
	wr.wr.bind_mw.rkey = (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
	rc = send_list(client_qp(pub), &wr, NULL, true);
	if (rc == 0)
		mw->rkey = wr.wr.bind_mw.rkey;
	client_unlock(&own->lock);
	return rc;
}

static int
recv_one(struct rnic_wq *q, const struct rnic_recv_wr *wr)
{
	struct ring_rwqe *w;
	uint32_t n;

	if (wr->num_sge < 0 || wr->num_sge > q->max_sge || !q->capacity)
		return -EINVAL;
	n = ring_rwqe_slots((uint32_t)wr->num_sge);
	w = rnic_wq_get(q, wr->wr_id, n);
	if (!w)
		return -ENOMEM;
	memset(w, 0, offsetof(struct ring_rwqe, sge));
	w->num_slots = (uint8_t)n;
	w->num_sge = (uint8_t)wr->num_sge;
	if (wr->num_sge)
		copy_into(q, w, offsetof(struct ring_rwqe, sge), wr->sg_list,
			(size_t)wr->num_sge * sizeof(struct ring_sge));
	return 0;
}

/* Only in ERR is there somebody to wake: the flush. */
void
rnic_rq_submit(struct rnic_qp *pub)
{
	struct client_qp *qp = client_qp(pub);

	if (client_gate(pub->context))
		return;
	__atomic_exchange_n(pub->rq.shared_tail, pub->rq.tail, __ATOMIC_SEQ_CST);
	if (ring_bell_needed_recv(qp->daemon))
		rnic_qp_ring(pub);
}

int
rnic_post_recv(struct rnic_qp *pub, const struct rnic_recv_wr *wr, const struct rnic_recv_wr **bad)
{
	struct client_qp *qp = client_qp(pub);
	uint32_t before;
	int rc = client_gate(pub->context);

	if (rc)
		goto out;
	client_lock(&qp->rq_lock);
	before = pub->rq.tail;
	if (!state_ok(qp, RING_QPS_INIT))
		rc = -EINVAL;
	for (; wr && rc == 0; wr = wr->next) {
		rc = recv_one(&pub->rq, wr);
		if (rc)
			break;
	}
	if (pub->rq.tail != before)
		rnic_rq_submit(pub);
	client_unlock(&qp->rq_lock);
out:
	if (rc && bad)
		*bad = wr;
	return rc;
}
