/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: memory, rings, and the QP through its states, as the control thread does it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_byteorder.h>

#include "base_seq.h"
#include "verbs.h"

#include "sim.h"

#define RIGHTS (MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_FLUSH_GLOBAL)

static void *
zalloc(size_t n)
{
	void *p = aligned_alloc(RING_LINE, (n + RING_LINE - 1) & ~(size_t)(RING_LINE - 1));

	if (p == NULL)
		abort();
	memset(p, 0, n);
	return p;
}

/** The same memory twice, so that a region can lie in pieces that are not adjacent. */
static void
ep_memory(struct sim_ep *ep)
{
	const int flags = MAP_SHARED | MAP_POPULATE;
	int fd = memfd_create("sim", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, ep->mem_size) < 0)
		sim_fail(ep->s, "no memory for an endpoint");
	ep->mem = mmap(NULL, ep->mem_size, PROT_READ | PROT_WRITE, flags, fd, 0);
	ep->alias = mmap(NULL, ep->mem_size, PROT_READ | PROT_WRITE, flags, fd, 0);
	close(fd);
	if (ep->mem == MAP_FAILED || ep->alias == MAP_FAILED)
		sim_fail(ep->s, "no memory for an endpoint");
	ep->model = zalloc(ep->mem_size);
	ep->taint = zalloc(ep->mem_size);
	ep->busy = zalloc(ep->mem_size / SIM_BLOCK);
	sim_pattern(rng_u64(&ep->rng), ep->model, ep->mem_size);
	memcpy(ep->mem, ep->model, ep->mem_size);
}

static void
ep_rings(struct sim_ep *ep)
{
	uint32_t sq = 32u << rng_below(&ep->rng, 4), rq = 16u << rng_below(&ep->rng, 4);

	ep->sq_slots = zalloc(sq * RING_SLOT_SIZE);
	ep->rq_slots = zalloc(rq * RING_SLOT_SIZE);
	ep->sq = (struct ring_wq_prod){ep->sq_slots, &ep->client.sq_tail, sq - 1, 0, 0};
	ep->rq = (struct ring_wq_prod){ep->rq_slots, &ep->client.rq_tail, rq - 1, 0, 0};
}

static uint32_t
ep_recv_max(struct sim_ep *ep)
{
	uint32_t max[] = {64, ep->mtu, 3 * ep->mtu, 20000, 66000};
	uint32_t n = max[rng_below(&ep->rng, 5)];

	return n < ep->part_size / 4 ? n : ep->part_size / 4;
}

static struct sim_ep *
ep_new(struct sim *s, struct sim_node *n)
{
	struct sim_ep *ep = zalloc(sizeof(*ep));

	ep->s = s;
	ep->node = n;
	ep->id = s->num_eps;
	ep->slot = ep->id * 67; /* over several words of the bells */
	rng_seed(&ep->rng, rng_u64(&s->rng));
	ep->pd = 1 + rng_below(&ep->rng, 3);
	s->ep[s->num_eps++] = ep;
	ep->send_cq = n->cq[rng_below(&ep->rng, SIM_CQS)].cq;
	ep->recv_cq = n->cq[rng_below(&ep->rng, SIM_CQS)].cq;
	return ep;
}

static void
ep_draw(struct sim_ep *ep, uint32_t mtu, uint32_t part)
{
	const struct sim_profile *p = ep->s->prof;
	uint32_t ops = ep->s->opts->max_ops ? ep->s->opts->max_ops : p->ops;

	ep->mtu = mtu;
	ep->part_size = part;
	ep->mem_size = PARTS * part;
	ep->recv_max = ep_recv_max(ep);
	ep->recv_depth = sim_between(&ep->rng, 1, 24);
	ep->ops_left = sim_between(&ep->rng, 1, ops);
	ep->sig_all = rng_below(&ep->rng, 4) == 0;
	ep->max_inline = (uint16_t)rng_below(&ep->rng, 401);
	ep->timeout = (uint8_t)sim_between(&ep->rng, 8, 13);
	ep->retry_cnt = 7;
	ep->rnr_retry = 7;
	ep->min_rnr_timer = (uint8_t)sim_between(&ep->rng, 1, 14);
	ep->rd_atomic = (uint8_t)sim_between(&ep->rng, 1, 16);
	ep->dest_rd_atomic = ep->rd_atomic;
	ep->same_qpn = rng_below(&ep->rng, 2);
	if (p->exhaust)
		ep->causes |= CAUSE_RETRY;
}

void
sim_pair_new(struct sim *s, struct sim_node *a, struct sim_node *b)
{
	static const uint32_t parts[] = {32768, 65536, 131072};
	struct sim_ep *x = ep_new(s, a), *y = ep_new(s, b);
	uint32_t mtu = 256u << rng_below(&s->rng, 5);
	uint32_t part = parts[rng_below(&s->rng, 3)];

	if (s->prof->big && rng_below(&s->rng, 4) == 0)
		part = 4 * SIM_MAX_LEN;
	x->peer = y;
	y->peer = x;
	ep_draw(x, mtu, part);
	ep_draw(y, mtu, part);
	x->dest_rd_atomic = y->rd_atomic;
	y->dest_rd_atomic = x->rd_atomic;
	x->reconnects = s->prof->life || s->prof->bad || s->prof->inval || s->prof->mutate ? 3 : 1;
	for (struct sim_ep *ep = x;; ep = y) {
		ep_memory(ep);
		ep_rings(ep);
		sim_srq_new(ep);
		sim_keys_make(ep);
		if (ep == y)
			break;
	}
	sim_ep_qp_create(x);
	sim_ep_qp_create(y);
	sim_ep_connect(x);
	sim_ep_connect(y);
}

void
sim_ep_qp_create(struct sim_ep *ep)
{
	struct roce_qp_init init = {
		.type = ep->s->opts->type, .pd = ep->pd, .send_cq = ep->send_cq,
		.recv_cq = ep->recv_cq, .daemon = &ep->daemon, .sq_slots = ep->sq_slots,
		.rq_slots = ep->rq_slots, .sq_entries = ep->sq.mask + 1,
		.rq_entries = ep->rq.mask + 1, .client = &ep->client, .sig_all = ep->sig_all,
		.max_inline = ep->max_inline, .max_send_sge = RING_MAX_SGE,
		.max_recv_sge = RING_MAX_SGE, .srq = sim_srq_verbs(ep), .owner = ep,
	};

	if (ep->srq)
		init.rq_slots = NULL;
	ep->qpn = roce_qpn_alloc(ep->node->qpns);
	if (ep->qpn == 0)
		sim_fail(ep->s, "no QPN");
	init.qpn = ep->qpn;
	ep->qp = roce_qp_create(&init);
	if (ep->qp == NULL)
		sim_fail(ep->s, "roce_qp_create");
	ep->qp->share = &ep->node->share[ep->id / 2 % 2];
	/* a fresh QP's rings begin at zero */
	memset(&ep->client, 0, sizeof(ep->client));
	memset(&ep->daemon, 0, sizeof(ep->daemon));
	ep->sq.head = ep->sq.tail = ep->rq.head = ep->rq.tail = 0;
}

void
sim_ep_qp_destroy(struct sim_ep *ep)
{
	roce_qpn_set(ep->node->qpns, ep->qpn, NULL, 0);
	roce_qp_free(ep->qp);
	ep->qp = NULL;
	roce_qpn_release(ep->node->qpns, ep->qpn);
	ep->qpn = 0;
}

/* What only a QP that is acknowledged has. */
#define ACKED_ATTRS \
	(VERBS_QP_TIMEOUT | VERBS_QP_RETRY_CNT | VERBS_QP_RNR_RETRY | VERBS_QP_MIN_RNR_TIMER | \
	 VERBS_QP_MAX_QP_RD_ATOMIC | VERBS_QP_MAX_DEST_RD_ATOMIC)

static void
ep_modify(struct sim_ep *ep, struct verbs_qp_attr *attr, unsigned int state, uint32_t mask,
	  bool bound)
{
	struct roce *r = bound ? ep->node->roce : NULL;
	int ret;

	if (sim_is_uc(ep->s))
		mask &= ~(uint32_t)ACKED_ATTRS;
	ret = verbs_qp_modify_check(ep->qp->type, ep->qp->state, state, mask);
	if (ret)
		sim_fail(ep->s, "ep %u: modify check %u -> %u: %d", ep->id, ep->qp->state, state,
			 ret);
	attr->state = (uint8_t)state;
	ret = roce_qp_prepare(ep->qp, attr, mask | VERBS_QP_STATE);
	if (ret == 0)
		ret = roce_qp_modify(r, ep->qp, attr, mask | VERBS_QP_STATE, ep->s->now);
	if (ret)
		sim_fail(ep->s, "ep %u: modify to %s: %d", ep->id, verbs_qp_state_name(state), ret);
	if (ep->qp->state != state)
		sim_fail(ep->s, "ep %u: in %s after a modify to %s", ep->id,
			 verbs_qp_state_name(ep->qp->state), verbs_qp_state_name(state));
}

static void
ep_av(struct sim_ep *ep, struct verbs_av *av)
{
	const struct sim *s = ep->s;

	*av = (struct verbs_av){.vlan = s->vlan, .sl = s->sl, .hop_limit = 64,
				.neigh = &ep->node->neigh[ep->peer->node->id]};
	sim_node_ip(s, ep->node->id, av->sgid);
	sim_node_ip(s, ep->peer->node->id, av->dgid);
	av->smac[0] = 2;
	av->smac[5] = (uint8_t)(ep->node->id + 1);
}

/** RESET to RTS. The PSNs of both directions are the even endpoint's to draw. */
void
sim_ep_connect(struct sim_ep *ep)
{
	struct verbs_qp_attr a = {.access = RIGHTS};

	if (!(ep->id & 1)) {
		for (unsigned int i = 0; i < 2; i++)
			(i ? ep->peer : ep)->psn =
				(rng_below(&ep->rng, 2) ? rng_u32(&ep->rng)
							: 0xfffff0 + rng_below(&ep->rng, 32)) &
				PSN_MASK;
	}
	ep->sq_failed = ep->rq_failed = ep->drained = ep->in_sqd = false;
	ep->causes &= CAUSE_RETRY;
	sim_srq_connect(ep);
	sim_snoop_reset(ep);
	ep_modify(ep, &a, RING_QPS_INIT,
		  VERBS_QP_PKEY_INDEX | VERBS_QP_PORT | VERBS_QP_ACCESS_FLAGS, false);
	ep_av(ep, &a.av);
	a.path_mtu = ep->mtu;
	a.dest_qpn = ep->peer->qpn;
	a.rq_psn = ep->peer->psn;
	a.max_dest_rd_atomic = ep->dest_rd_atomic;
	a.min_rnr_timer = ep->min_rnr_timer;
	ep_modify(ep, &a, RING_QPS_RTR,
		  VERBS_QP_AV | VERBS_QP_PATH_MTU | VERBS_QP_DEST_QPN | VERBS_QP_RQ_PSN |
			  VERBS_QP_MAX_DEST_RD_ATOMIC | VERBS_QP_MIN_RNR_TIMER,
		  true);
	roce_qpn_set(ep->node->qpns, ep->qpn, ep->qp, 0);
	a.timeout = ep->timeout;
	a.retry_cnt = (uint8_t)ep->retry_cnt;
	a.rnr_retry = (uint8_t)ep->rnr_retry;
	a.sq_psn = ep->psn;
	a.max_rd_atomic = ep->rd_atomic;
	ep_modify(ep, &a, RING_QPS_RTS,
		  VERBS_QP_TIMEOUT | VERBS_QP_RETRY_CNT | VERBS_QP_RNR_RETRY | VERBS_QP_SQ_PSN |
			  VERBS_QP_MAX_QP_RD_ATOMIC,
		  true);
	verbs_run_add(&ep->node->verbs, ep->qp); /* posts rang at no worker before */
	sim_node_wake(ep->node, ep->s->now);
}

/** To ERR, RESET, SQD or back: states that need no attributes. */
void
sim_ep_modify(struct sim_ep *ep, unsigned int state)
{
	struct verbs_qp_attr a = {0};
	uint32_t mask = 0;

	sim_note(ep->s, "ep %u qp %06x: to state %u", ep->id, ep->qpn, state);
	if (state == RING_QPS_SQD) {
		a.en_sqd_async_notify = true;
		mask = VERBS_QP_EN_SQD_ASYNC_NOTIFY;
	}
	if (state == RING_QPS_RESET)
		roce_qpn_set(ep->node->qpns, ep->qpn, NULL, 0);
	ep_modify(ep, &a, state, mask, true);
	if (state == RING_QPS_RESET)
		roce_qp_detach(ep->node->roce, ep->qp);
	else
		verbs_run_add(&ep->node->verbs, ep->qp);
	sim_node_wake(ep->node, ep->s->now);
}

void
sim_ep_free(struct sim_ep *ep)
{
	sim_keys_drop(ep);
	munmap(ep->mem, ep->mem_size);
	munmap(ep->alias, ep->mem_size);
	free(ep->model);
	free(ep->taint);
	free(ep->busy);
	free(ep->sq_slots);
	free(ep->rq_slots);
	sim_srq_free(ep);
	free(ep);
}
