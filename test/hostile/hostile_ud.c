/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks through datagrams: numbers of address handles, groups, and what is made of both. */
#include <errno.h>
#include <string.h>

#include "hostile.h"

#define QKEY 0x1234u
#define MCAST_QPN 0xffffffu

static struct hx_rig rig, alien;
static struct hx_qp ud[2];

static int
ud_modify(struct hx *h, const struct hx_qp *q, uint32_t mask, uint8_t state)
{
	struct ring_ctrl_modify_qp_req req = {.qpn = q->qpn, .mask = RING_QP_STATE | mask};
	struct ring_ctrl_modify_qp_rep rep;

	req.attr.state = state;
	req.attr.port = 1;
	req.attr.qkey = QKEY;
	return hx_call(h, RING_CTRL_MODIFY_QP, &req, &rep, sizeof(rep));
}

static int
ud_qp(struct hx_rig *r, struct hx_qp *q)
{
	int ret = hx_create_qp_type(&r->h, RING_QPT_UD, r->pd, r->cq.cqn, HX_RIG_DEPTH,
				    RING_NO_HANDLE, q);

	if (!ret)
		ret = ud_modify(&r->h, q, RING_QP_PKEY_INDEX | RING_QP_PORT | RING_QP_QKEY,
				RING_QPS_INIT);
	if (!ret)
		ret = ud_modify(&r->h, q, 0, RING_QPS_RTR);
	return ret ? ret : ud_modify(&r->h, q, RING_QP_SQ_PSN, RING_QPS_RTS);
}

static int
make_ah(struct hx_rig *r, const struct ring_ctrl_av *av, uint32_t *ah)
{
	struct ring_ctrl_create_ah_req req = {.av = *av, .pd = r->pd};
	struct ring_ctrl_handle_rep rep;
	int ret = hx_call(&r->h, RING_CTRL_CREATE_AH, &req, &rep, sizeof(rep));

	*ah = ret ? 0 : rep.handle;
	return ret;
}

/** A bare rig with two UD QPs and a handle to the device itself. */
static bool
start(struct hostile *t, uint32_t *ah)
{
	int ret = hx_rig_open_bare(&rig, t->socket);

	for (int i = 0; i < 2 && !ret; i++)
		ret = ud_qp(&rig, &ud[i]);
	if (!ret)
		ret = make_ah(&rig, &rig.av, ah);
	MUST(t, !ret, "no UD QPs: %s", strerror(-ret));
	return !ret;
}

static struct ring_wqe
datagram(uint32_t ah, uint32_t qpn, uint32_t len)
{
	struct ring_wqe w = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = 1, .ah = ah, .remote_qpn = qpn, .qkey = QKEY};

	w.sge[0] = (struct ring_sge){(uintptr_t)rig.mem, len, rig.key};
	return w;
}

static union ring_gid
group_gid(uint32_t n)
{
	union ring_gid g = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239}};

	memcpy(g.raw + 13, &n, 3);
	return g;
}

static int
mcast(struct hx *h, unsigned int op, uint32_t qpn, uint32_t n)
{
	struct ring_ctrl_mcast_req req = {.gid = group_gid(n), .qpn = qpn};
	struct ring_ctrl_done_rep rep;

	return hx_call(h, op, &req, &rep, sizeof(rep));
}

/* One hostile field in a request that would work, and receives of all kinds. */
static void
ud_field(struct hostile *t)
{
	uint32_t ah;

	for (int i = 0; i < 30; i++) {
		if (!start(t, &ah))
			return;
		for (int k = 0; k < 8; k++) {
			struct ring_wqe w = datagram(ah, ud[!(k & 1)].qpn, 100);

			hx_post_recv(&rig, &ud[!(k & 1)], (uintptr_t)rig.mem,
				     hostile_below(t, 300), rig.key);
			hostile_mutate(t, &w, sizeof(w));
			hx_post(&rig, &ud[k & 1], &w);
		}
		hx_pass(&rig.h, 2);
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

static int
outcome(struct hostile *t, const struct ring_wqe *w)
{
	struct ring_cqe c;
	int ret;

	hx_post(&rig, &ud[0], w);
	ret = hx_poll_wait(&rig.h, &rig.cq, &c, HX_WAIT_MS);
	MUST(t, !ret, "no completion: %s", strerror(-ret));
	return ret ? ret : (int)hx_cqe_status(&c);
}

/* Numbers of handles: of another session, destroyed, made up. None of them sends. */
static void
ud_handles(struct hostile *t)
{
	uint32_t ah, other, gone;

	if (!hostile_rig(t, &alien) || make_ah(&alien, &alien.av, &other) || !start(t, &ah) ||
	    make_ah(&rig, &rig.av, &gone))
		return;
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_AH, gone) == 0, "DESTROY_AH");
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_AH, other) == -EINVAL,
	     "another session's handle can be destroyed");
	for (int i = 0; i < 40; i++) {
		uint32_t n = i == 0 ? other : i == 1 ? gone : (uint32_t)hostile_value(t);
		struct ring_wqe w = datagram(n, ud[1].qpn, 8);

		if (n == ah)
			continue;
		MUST(t, outcome(t, &w) != 0, "a datagram by handle %#x, which is not ours", n);
		if (ud_modify(&rig.h, &ud[0], 0, RING_QPS_RTS)) {
			FAULT(t, "the QP does not come back from SQE");
			return;
		}
	}
	hx_post_recv(&rig, &ud[1], (uintptr_t)rig.mem + 4096, 512, rig.key);
	MUST(t, outcome(t, &(struct ring_wqe){.num_slots = 1}) != 0, "a WRITE of a datagram's QP");
	hostile_alive(t, &rig.h);
}

/* As many handles as there are, and death with them; and some destroyed under traffic. */
static void
ud_many_handles(struct hostile *t)
{
	uint32_t ah, last = 0;

	if (!start(t, &ah))
		return;
	for (int i = 0; i < 3000; i++) {
		struct ring_wqe w = datagram(last ? last : ah, ud[1].qpn, 64);

		if (make_ah(&rig, &rig.av, &ah))
			break;
		if (i % 7 == 0)
			hx_post(&rig, &ud[0], &w);
		if (i % 3 == 0 && last)
			MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_AH, last) == 0,
			     "DESTROY_AH under traffic");
		last = ah;
	}
	hostile_alive(t, &rig.h);
}

/* More groups than may be joined, members that go, and datagrams to them meanwhile. */
static void
ud_groups(struct hostile *t)
{
	struct ring_ctrl_av av;
	uint32_t ah, n = 0;
	int ret = 0;

	if (!start(t, &ah))
		return;
	while (!ret && n < 5000)
		ret = mcast(&rig.h, RING_CTRL_ATTACH_MCAST, ud[n & 1].qpn, n / 2), n++;
	MUST(t, ret == -EDQUOT, "%u groups joined, then %s", n, strerror(-ret));
	MUST(t, mcast(&rig.h, RING_CTRL_ATTACH_MCAST, 0x123456, 1) == -EINVAL,
	     "a QP of nobody joins a group");
	av = rig.av;
	av.dgid = group_gid(0);
	/* the address of the device may be of the other family */
	if (make_ah(&rig, &av, &ah) == 0) {
		for (int i = 0; i < 40; i++) {
			struct ring_wqe w = datagram(ah, MCAST_QPN, 64);

			hx_post(&rig, &ud[0], &w);
			if (i == 20)
				mcast(&rig.h, RING_CTRL_DETACH_MCAST, ud[1].qpn, 0);
		}
	}
	hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, ud[1].qpn);
	hostile_alive(t, &rig.h);
}

const struct hostile_case hostile_ud_cases[] = {
	{"ud_field", ud_field, "datagrams' requests with one hostile field", false},
	{"ud_handles", ud_handles, "numbers of address handles that are not ours", false},
	{"ud_many_handles", ud_many_handles, "handles made and destroyed under traffic", false},
	{"ud_groups", ud_groups, "more groups than may be joined", false},
	{NULL, NULL, NULL, false},
};
