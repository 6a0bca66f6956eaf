/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The few calls of verbs that peer-qp makes, on the engine's own objects: what librnic and the
 * control thread do between them, with rings in plain memory.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "wire.h"

#define PD 1
#define DEPTH 256 /* slots of each queue */
#define INLINE 32u /* bytes inline: what fits into a request's one slot */

struct ibv_device {
	const char *name;
};

struct ibv_context {
	int unused;
};

struct ibv_pd {
	uint32_t number;
};

struct wire_qp {
	struct ibv_qp ibv; /* first */
	struct verbs_qp *qp;
	struct ring_qp_client *client;
	struct ring_qp_daemon *daemon;
	struct ring_wq_prod sq, rq;
	uint64_t sq_id[DEPTH], rq_id[DEPTH];
	uint32_t bell_slot;
	struct ibv_cq *cq;
};

struct ibv_cq {
	struct verbs_cq *cq;
	struct ring_cq_client *client;
	struct ring_cq_cons cons;
	struct wire_qp *qp; /* the only one */
};

static struct ibv_device device = {"rnic0"};
static struct ibv_context context;
static struct ibv_pd pd = {PD};

struct ibv_device **
ibv_get_device_list(int *num)
{
	static struct ibv_device *list[] = {&device, NULL};

	*num = 1;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

const char *
ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

struct ibv_context *
ibv_open_device(struct ibv_device *dev)
{
	(void)dev;
	return &context;
}

int
ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	(void)ctx;
	(void)port;
	if (index < 0 || index >= wire.num_gids)
		return -1;
	memcpy(gid->raw, wire.gid[index].b, sizeof(gid->raw));
	return 0;
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *ctx)
{
	(void)ctx;
	return &pd;
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *p, void *addr, uint64_t len, int access)
{
	const struct mr_seg seg = {.length = len, .kind = MR_SEG_DIRECT, .ptr = addr};
	const struct mr_desc d = {.type = MR_TYPE_REGION, .pd = p->number,
		.access = (uint32_t)access, .iova = (uintptr_t)addr, .length = len,
		.segs = &seg, .num_segs = 1};
	struct ibv_mr *mr = wire_alloc(sizeof(*mr));
	int rc = mr_register(wire.s.mrs, &d, &mr->lkey);

	errno = -rc;
	mr->rkey = mr->lkey;
	return rc == 0 ? mr : NULL;
}

struct ibv_mw *
ibv_alloc_mw(struct ibv_pd *p, enum ibv_mw_type type)
{
	(void)p;
	(void)type;
	return NULL; /* the engine's next issue */
}

int
ibv_dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return 0;
}

/* ---- completions ---------- */

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *ctx)
{
	(void)ctx;
	return NULL;
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user)
{
	(void)channel;
	(void)cq;
	(void)user;
	return -1;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

int
ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)cq;
	(void)solicited_only;
	return ENOTSUP;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *ctx, int cqe, void *user, struct ibv_comp_channel *channel,
	      int vector)
{
	uint32_t entries = rte_align32pow2((uint32_t)cqe + 1);
	struct ring_cqe *ring = wire_alloc(entries * sizeof(*ring));
	struct worker_msg m = {.type = WORKER_MSG_CQ_SUB};
	struct ibv_cq *c = wire_alloc(sizeof(*c));

	(void)ctx;
	(void)user;
	(void)channel;
	(void)vector;
	c->client = wire_alloc(sizeof(*c->client));
	c->cq = wire_alloc(verbs_cq_size(1));
	c->cq->cqn = 1;
	c->cq->num_workers = 1;
	c->cq->daemon = wire_alloc(sizeof(*c->cq->daemon));
	c->cq->client = c->client;
	verbs_cq_init_ends(c->cq);
	c->cons = (struct ring_cq_cons){ring, &c->client->cons[0], entries - 1, 0};
	m.cq.cq = c->cq;
	m.cq.ring = ring;
	m.cq.cons = &c->client->cons[0];
	m.cq.entries = entries;
	return wire_call(&m) == 0 ? c : NULL;
}

static void
take(struct ibv_cq *cq, const struct ring_cqe *e, struct ibv_wc *wc)
{
	uint32_t tag = atomic_load_explicit(&e->tag, memory_order_relaxed);
	bool recv = tag & RING_CQE_RECV;
	struct ring_wq_prod *q = recv ? &cq->qp->rq : &cq->qp->sq;

	wc->wr_id = (recv ? cq->qp->rq_id : cq->qp->sq_id)[e->wqe_index & q->mask];
	wc->status = (enum ibv_wc_status)(e->qpn_status >> 24);
	wc->opcode = (enum ibv_wc_opcode)(e->src_opcode >> 24);
	wc->byte_len = e->byte_len;
	wc->imm_data = e->imm;
	wc->wc_flags = ((tag & RING_CQE_WITH_IMM) ? IBV_WC_WITH_IMM : 0u) |
		       ((tag & RING_CQE_WITH_INV) ? IBV_WC_WITH_INV : 0u);
	q->head = e->wqe_index + 1;
}

int
ibv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	const struct ring_cqe *e;
	int i;

	for (i = 0; i < n && (e = ring_cq_peek(&cq->cons)) != NULL; i++) {
		take(cq, e, &wc[i]);
		ring_cq_advance(&cq->cons);
	}
	if (i > 0)
		ring_cq_release(&cq->cons);
	return i;
}

const char *
ibv_wc_status_str(enum ibv_wc_status status)
{
	return wc_status_name(status);
}

/* ---- queue pairs ---------- */

struct ibv_qp *
ibv_create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *init)
{
	struct wire_qp *q = wire_alloc(sizeof(*q));
	struct roce_qp_init ri = {
		.qpn = roce_qpn_alloc(wire.s.qpns), .type = VERBS_QPT_RC, .pd = p->number,
		.send_cq = init->send_cq->cq, .recv_cq = init->recv_cq->cq,
		.sq_entries = DEPTH, .rq_entries = DEPTH, .max_send_sge = 1, .max_recv_sge = 1,
		.max_inline = INLINE,
	};

	q->client = wire_alloc(sizeof(*q->client));
	q->daemon = wire_alloc(sizeof(*q->daemon));
	q->sq = (struct ring_wq_prod){wire_alloc(DEPTH * RING_SLOT_SIZE), &q->client->sq_tail,
				      DEPTH - 1, 0, 0};
	q->rq = (struct ring_wq_prod){wire_alloc(DEPTH * RING_SLOT_SIZE), &q->client->rq_tail,
				      DEPTH - 1, 0, 0};
	ri.client = q->client;
	ri.daemon = q->daemon;
	ri.sq_slots = q->sq.slots;
	ri.rq_slots = q->rq.slots;
	q->qp = roce_qp_create(&ri);
	q->ibv.qp_num = ri.qpn;
	q->bell_slot = wire.num_slots++;
	q->cq = init->send_cq;
	q->cq->qp = q;
	return q->qp != NULL ? &q->ibv : NULL;
}

/** Address vector of a peer on the same link, or of one of our own addresses. */
static int
resolve(const struct ibv_qp_attr *in, struct verbs_av *av)
{
	struct net_ip dst = net_ip_from_bytes(in->ah_attr.grh.dgid.raw);

	if (in->ah_attr.grh.sgid_index >= wire.num_gids)
		return -EINVAL;
	memcpy(av->dgid, dst.b, sizeof(av->dgid));
	memcpy(av->sgid, wire.gid[in->ah_attr.grh.sgid_index].b, sizeof(av->sgid));
	memcpy(av->smac, wire.port.mac, sizeof(av->smac));
	av->vlan = NET_VLAN_NONE;
	av->hop_limit = in->ah_attr.grh.hop_limit;
	av->neigh = wire_resolve(&dst);
	return av->neigh != NULL ? 0 : -EHOSTUNREACH;
}

static int
attr_of(const struct ibv_qp_attr *in, int mask, struct verbs_qp_attr *out)
{
	*out = (struct verbs_qp_attr){
		.state = (uint8_t)in->qp_state, .access = in->qp_access_flags,
		.dest_qpn = in->dest_qp_num, .rq_psn = in->rq_psn, .sq_psn = in->sq_psn,
		.path_mtu = 128u << in->path_mtu, .timeout = in->timeout,
		.retry_cnt = in->retry_cnt, .rnr_retry = in->rnr_retry,
		.min_rnr_timer = in->min_rnr_timer, .max_rd_atomic = in->max_rd_atomic,
		.max_dest_rd_atomic = in->max_dest_rd_atomic,
	};
	return (mask & IBV_QP_AV) ? resolve(in, &out->av) : 0;
}

static int
modify(struct wire_qp *q, const struct verbs_qp_attr *a, uint32_t mask)
{
	struct worker_msg m = {.type = WORKER_MSG_QP_MODIFY};
	int rc = verbs_qp_modify_check(VERBS_QPT_RC, atomic_load(&q->daemon->state), a->state,
				       mask);

	if (rc != 0)
		return rc;
	if (a->state == RING_QPS_INIT)
		return roce_qp_modify(NULL, q->qp, a, mask, 0);
	if (a->state == RING_QPS_RTR) {
		m.type = WORKER_MSG_QP_BIND;
		roce_qpn_set(wire.s.qpns, q->ibv.qp_num, q->qp, 0);
	}
	rc = roce_qp_prepare(q->qp, a, mask);
	m.qp.ctx = wire.ctx;
	m.qp.qp = q->qp;
	m.qp.bell_slot = q->bell_slot;
	m.qp.mask = mask;
	m.qp.attr = *a;
	return rc == 0 ? wire_call(&m) : rc;
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct verbs_qp_attr a;
	int rc = attr_of(attr, mask, &a);

	if (rc == 0)
		rc = modify((struct wire_qp *)qp, &a, (uint32_t)mask);
	errno = -rc;
	return errno;
}

/* ---- posting ---------- */

static void
ring(struct wire_qp *q)
{
	const uint64_t one = 1;

	ring_bell_set(wire.bells, q->bell_slot);
	if (ring_kick_needed(wire.bell_words) && write(wire.kick_fd, &one, sizeof(one)) < 0)
		perror("kick");
}

static void
fill(struct ring_wqe *e, const struct ibv_send_wr *wr)
{
	struct ring_sge *sge = &e->sge[0];

	memset(e, 0, sizeof(*e));
	e->opcode = (uint8_t)wr->opcode;
	e->flags = (uint8_t)wr->send_flags;
	e->num_slots = 1;
	e->num_sge = (uint8_t)wr->num_sge;
	e->imm = wr->imm_data;
	e->rkey = wr->wr.rdma.rkey;
	e->remote_addr = wr->wr.rdma.remote_addr;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		e->rkey = wr->wr.atomic.rkey;
		e->remote_addr = wr->wr.atomic.remote_addr;
		e->atomic.compare_add = wr->wr.atomic.compare_add;
		e->atomic.swap = wr->wr.atomic.swap;
		sge = &e->atomic.sge;
	}
	if (wr->send_flags & IBV_SEND_INLINE) {
		e->num_sge = 0;
		e->inline_len = wr->num_sge > 0 ? wr->sg_list->length : 0;
		memcpy(e->data, (const void *)(uintptr_t)wr->sg_list->addr, e->inline_len);
	} else if (wr->num_sge > 0) {
		*sge = (struct ring_sge){wr->sg_list->addr, wr->sg_list->length, wr->sg_list->lkey};
	}
}

static bool
fits(const struct wire_qp *q, const struct ibv_send_wr *wr)
{
	return ring_wq_free(&q->sq) > 0 && wr->num_sge <= 1 &&
	       (!(wr->send_flags & IBV_SEND_INLINE) || wr->num_sge == 0 ||
		       wr->sg_list->length <= INLINE);
}

int
ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct wire_qp *q = (struct wire_qp *)qp;
	int rc = 0;

	for (; wr != NULL; wr = wr->next) {
		if (!fits(q, wr)) {
			*bad = wr;
			rc = ENOMEM;
			break;
		}
		fill(ring_wq_slot(&q->sq, q->sq.tail), wr);
		q->sq_id[q->sq.tail++ & q->sq.mask] = wr->wr_id;
	}
	ring_wq_publish(&q->sq);
	if (ring_bell_needed(q->daemon))
		ring(q);
	return rc;
}

int
ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct wire_qp *q = (struct wire_qp *)qp;
	int rc = 0;

	for (; wr != NULL; wr = wr->next) {
		struct ring_rwqe *e = ring_wq_slot(&q->rq, q->rq.tail);

		if (ring_wq_free(&q->rq) == 0 || wr->num_sge > 1) {
			*bad = wr;
			rc = ENOMEM;
			break;
		}
		memset(e, 0, sizeof(*e));
		e->num_slots = 1;
		e->num_sge = (uint8_t)wr->num_sge;
		if (wr->num_sge > 0)
			e->sge[0] = (struct ring_sge){wr->sg_list->addr, wr->sg_list->length,
						      wr->sg_list->lkey};
		q->rq_id[q->rq.tail++ & q->rq.mask] = wr->wr_id;
	}
	ring_wq_publish(&q->rq);
	if (ring_bell_needed_recv(q->daemon))
		ring(q);
	return rc;
}
