/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side of rnic_bw that posts: keeps every QP's queue filled with lists of requests, by
 * librnic's fast face. With verification each message has data of its own, and a WRITE's slot
 * is used again only after the server has compared it.
 */
#include <string.h>

#include "rnic_bw.h"

#define BATCH 32

struct pump {
	struct bw_end *e;
	uint64_t until;	   /* ns; post no more after it */
	uint64_t fence;	   /* verified WRITE: messages a QP that may be posted so far */
	uint64_t outstanding, completed;
	uint32_t next;
};

static void
prep(struct bw_end *e, uint32_t q, uint64_t n)
{
	const struct bw_test *t = &e->test;
	struct rnic_wqe *w = rnic_sq_get(e->qp[q], q, 1);
	uint8_t *at = bw_slot(e, q, n);

	if (!w)
		ex_fail("the send queue is full");
	if (t->op == BW_SEND)
		rnic_prep_send(w, RNIC_SEND_SIGNALED);
	else if (t->op == BW_READ)
		rnic_prep_read(w, bw_remote_slot(e, q, n), e->rkey, RNIC_SEND_SIGNALED);
	else
		rnic_prep_write(w, bw_remote_slot(e, q, n), e->rkey, RNIC_SEND_SIGNALED);
	if (t->verify && t->op == BW_READ)
		memset(at, 0xa5, t->size);
	else if (t->verify)
		ex_pattern(at, t->size, bw_seed(q, n));
	rnic_prep_sge(e->qp[q], w, (uintptr_t)at, t->size, e->mr->lkey);
}

static bool
post_list(struct pump *p, uint32_t q)
{
	struct bw_end *e = p->e;
	uint32_t list = e->test.list;

	if (e->posted[q] - e->done[q] + list > e->test.depth || e->posted[q] + list > p->fence)
		return false;
	for (uint32_t i = 0; i < list; i++)
		prep(e, q, e->posted[q]++);
	rnic_sq_submit(e->qp[q]);
	p->outstanding += list;
	return true;
}

static bool
post_some(struct pump *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->e->test.qps && i < BATCH; i++) {
		any |= post_list(p, p->next);
		p->next = p->next + 1 == p->e->test.qps ? 0 : p->next + 1;
	}
	return any;
}

static void
reap(struct pump *p, bool wait)
{
	struct bw_end *e = p->e;
	struct rnic_wc wc[BATCH];
	int n = wait ? ex_wait(e->cq, BATCH, wc, -1)
		     : ex_check(rnic_poll_cq(e->cq, BATCH, wc), "completion queue");

	for (int i = 0; i < n; i++) {
		uint32_t q = (uint32_t)wc[i].wr_id;
		uint64_t m = e->done[q]++;

		ex_check_wc(&wc[i]);
		if (e->test.op == BW_READ && e->test.verify)
			bw_right(e, q, m, bw_seed(q, m % e->slots));
	}
	p->outstanding -= (uint64_t)n;
	p->completed += (uint64_t)n;
}

/** Have the server compare all that was written since the last time. */
static void
have_checked(struct pump *p)
{
	struct bw_end *e = p->e;
	unsigned long long wrong;
	char line[64];

	ex_say(&e->conn, "check %llu", (unsigned long long)e->posted[0]);
	for (uint32_t q = 1; q < e->test.qps; q++)
		ex_say(&e->conn, "%llu", (unsigned long long)e->posted[q]);
	if (!ex_hear(&e->conn, line, sizeof(line)) || sscanf(line, "wrong %llu", &wrong) != 1)
		ex_fail("the server has gone");
	e->wrong += wrong;
	p->fence += e->slots;
}

/** Nothing can be posted any more before the server has looked. */
static bool
at_fence(const struct pump *p)
{
	for (uint32_t q = 0; q < p->e->test.qps; q++)
		if (p->e->posted[q] + p->e->test.list <= p->fence)
			return false;
	return true;
}

void
bw_pump(struct bw_end *e, double seconds, struct bw_result *r)
{
	bool fenced = e->test.op == BW_WRITE && e->test.verify;
	struct pump p = { .e = e, .fence = fenced ? e->slots : UINT64_MAX };
	uint64_t start = ex_now_ns();

	p.until = start + (uint64_t)(seconds * 1e9);
	while (ex_now_ns() < p.until) {
		bool posted = post_some(&p);

		if (p.outstanding > 0)
			reap(&p, !posted);
		if (fenced && p.outstanding == 0 && at_fence(&p))
			have_checked(&p);
	}
	r->messages = p.completed;
	r->seconds = (double)(ex_now_ns() - start) / 1e9;
	while (p.outstanding > 0)
		reap(&p, true);
	if (fenced)
		have_checked(&p);
	r->wrong = e->wrong;
}
