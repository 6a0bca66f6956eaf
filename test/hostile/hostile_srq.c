/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks through shared receive queues: indices, entry numbers, entries, sizes under traffic. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "hostile.h"

#define WR 64u

static struct hx_rig rig;

/** A queue and two QPs on it, joined; the rig's own two stay beside. */
static struct srq {
	struct ring_ctrl_create_srq_rep q;
	uint32_t *index;
	uint8_t *slots;
	struct ring_srq_client *client;
	const struct ring_srq_daemon *daemon;
	uint32_t mask, entries, tail;
	struct hx_qp qp[2];
} srq;

static bool
place(struct hostile *t, ring_loc_t index, ring_loc_t slots, uint32_t entries, uint8_t log)
{
	srq.mask = (1u << log) - 1;
	srq.entries = entries;
	srq.index = hx_at(&rig.h, index, sizeof(uint32_t) << log);
	srq.slots = hx_at(&rig.h, slots, (uint64_t)entries * srq.q.slots_per_wr * RING_SLOT_SIZE);
	MUST(t, srq.index && srq.slots, "an SRQ that lies nowhere");
	return srq.index && srq.slots;
}

static bool
users(struct hostile *t)
{
	int ret = 0;

	for (int i = 0; i < 2 && !ret; i++)
		ret = hx_create_qp_srq(&rig.h, rig.pd, rig.cq.cqn, HX_RIG_DEPTH, srq.q.srqn,
				       &srq.qp[i]);
	for (int i = 0; i < 2 && !ret; i++)
		ret = hx_connect_qp(&rig.h, &srq.qp[i], srq.qp[!i].qpn, &rig.av);
	MUST(t, !ret, "no QPs on an SRQ: %s", strerror(-ret));
	return !ret;
}

static bool
start(struct hostile *t)
{
	struct ring_ctrl_create_srq_req req = {.max_wr = WR, .max_sge = 4,
					       .xrcd = RING_NO_HANDLE, .cqn = RING_NO_HANDLE};
	int ret;

	memset(&srq, 0, sizeof(srq));
	if (!hostile_rig(t, &rig))
		return false;
	req.pd = rig.pd;
	ret = hx_call(&rig.h, RING_CTRL_CREATE_SRQ, &req, &srq.q, sizeof(srq.q));
	MUST(t, !ret, "CREATE_SRQ: %s", strerror(-ret));
	if (ret || !place(t, srq.q.index, srq.q.slots, srq.q.max_wr, srq.q.log_index))
		return false;
	srq.client = hx_at(&rig.h, srq.q.client, sizeof(*srq.client));
	srq.daemon = hx_at(&rig.h, srq.q.daemon, sizeof(*srq.daemon));
	MUST(t, srq.client && srq.daemon, "an SRQ without words");
	return srq.client && srq.daemon && users(t);
}

static struct ring_rwqe *
entry(uint32_t n)
{
	return (void *)(srq.slots + (size_t)n * srq.q.slots_per_wr * RING_SLOT_SIZE);
}

static void
post(uint32_t n)
{
	*entry(n) = (struct ring_rwqe){
		.num_slots = 1, .num_sge = 1,
		.sge[0] = {(uintptr_t)rig.mem + HX_RIG_BYTES - 16384, 16384, rig.key},
	};
	srq.index[srq.tail & srq.mask] = n;
	atomic_store_explicit(&srq.client->tail, ++srq.tail, memory_order_release);
}

/** SENDs to and fro; what comes of them is polled and thrown away. */
static void
sends(struct hostile *t, int n)
{
	struct ring_cqe c;

	for (int i = 0; i < n; i++) {
		struct ring_wqe w = hx_write(&rig, 0, 0, hostile_below(t, 3000));

		w.opcode = RING_WR_SEND;
		hx_post(&rig, &srq.qp[i & 1], &w);
		if (i % 8 != 7)
			continue;
		if (hx_poll_wait(&rig.h, &rig.cq, &c, 50) == -ENOTCONN)
			return;
		while (hx_poll(&rig.h, &rig.cq, &c))
			;
	}
}

/** The QPs, then the queue: all must go, whatever was done to it. */
static void
end(struct hostile *t)
{
	for (int i = 0; i < 2; i++)
		MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, srq.qp[i].qpn) == 0,
		     "DESTROY_QP");
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_SRQ, srq.q.srqn) == 0, "DESTROY_SRQ");
	hostile_traffic(t, &rig, 16);
	hostile_alive(t, &rig.h);
	hx_rig_close(&rig);
}

static bool
in_error(const struct hx_qp *q)
{
	uint64_t until = hx_now_ms() + HX_WAIT_MS;

	while (atomic_load(&q->daemon->state) != RING_QPS_ERR && hx_now_ms() < until)
		hx_pass(&rig.h, 1);
	return atomic_load(&q->daemon->state) == RING_QPS_ERR;
}

/* A tail that cannot be breaks the queue, and the QP that needs it; the rig's own go on. */
static void
srq_tail(struct hostile *t)
{
	static const uint32_t jumps[] = {WR + 1, 0x80000000, 0xffffffff, 100000};

	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		struct ring_wqe w;

		if (!start(t))
			return;
		post(0);
		sends(t, 1);
		atomic_store(&srq.client->tail, atomic_load(&srq.daemon->head) + jumps[i]);
		w = hx_write(&rig, 0, 0, 8);
		w.opcode = RING_WR_SEND;
		hx_post(&rig, &srq.qp[0], &w);
		MUST(t, in_error(&srq.qp[1]), "tail + %#x: the QP is in state %u", jumps[i],
		     atomic_load(&srq.qp[1].daemon->state));
		end(t);
	}
}

/* Numbers that are none, twice the same, entries of any bytes. */
static void
srq_entries(struct hostile *t)
{
	for (int round = 0; round < 12; round++) {
		if (!start(t))
			return;
		for (uint32_t i = 0; i < WR; i++) {
			post(hostile_below(t, WR));
			if (hostile_below(t, 4) == 0)
				hostile_mutate(t, entry(srq.index[i]), RING_SLOT_SIZE);
			if (hostile_below(t, 8) == 0)
				srq.index[i] = (uint32_t)hostile_value(t);
		}
		sends(t, 32);
		end(t);
	}
}

static void *
scribbler(void *arg)
{
	struct hostile *t = arg;

	for (;;) {
		uint64_t v = hostile_value(t);

		srq.index[hostile_below(t, srq.mask + 1)] = hostile_below(t, 2 * WR);
		memcpy((uint8_t *)entry(hostile_below(t, WR)) + hostile_below(t, 8) * 8, &v, 8);
		if (hostile_below(t, 64) == 0)
			atomic_store(&srq.client->tail,
				     atomic_load(&srq.daemon->head) + hostile_below(t, WR + 1));
		pthread_testcancel();
	}
	return NULL;
}

/* All of it changes while it is read. */
static void
srq_race(struct hostile *t)
{
	struct hostile other = *t;
	pthread_t thread;

	other.rng ^= 0xaaaa;
	for (int round = 0; round < 5; round++) {
		if (!start(t))
			return;
		pthread_create(&thread, NULL, scribbler, &other);
		sends(t, 48);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		end(t);
	}
}

/* Sizes and limits of any value while messages come, posts go on, and nobody waits for answers. */
static void
srq_resize(struct hostile *t)
{
	if (!start(t))
		return;
	for (int i = 0; i < 120; i++) {
		struct ring_ctrl_modify_srq_req r = {
			.srqn = srq.q.srqn,
			.mask = hostile_below(t, 4),
			.max_wr = hostile_below(t, 3) ? 1 + hostile_below(t, 2048)
						      : (uint32_t)hostile_value(t),
			.limit = hostile_below(t, 3) ? hostile_below(t, WR)
						     : (uint32_t)hostile_value(t),
		};
		struct ring_ctrl_modify_srq_rep rep;
		int ret = 0;

		post(hostile_below(t, WR));
		if (hostile_below(t, 3) == 0)
			ret = hx_request(&rig.h, RING_CTRL_MODIFY_SRQ, 1, &r, NULL);
		else
			ret = hx_call(&rig.h, RING_CTRL_MODIFY_SRQ, &r, &rep, sizeof(rep));
		MUST(t, ret != -ETIMEDOUT && ret != -ENOTCONN, "MODIFY_SRQ: %s", strerror(-ret));
		sends(t, 2);
	}
	if (hostile_below(t, 2))
		return; /* with a resize under way, perhaps */
	end(t);
}

/* Who else's queue, and what must stay while it is used. */
static void
srq_alien(struct hostile *t)
{
	static struct hx_rig other;
	struct ring_ctrl_modify_srq_req m = {.mask = RING_SRQ_LIMIT, .limit = 1};
	struct hx_qp q;

	if (!start(t) || !hostile_rig(t, &other))
		return;
	m.srqn = srq.q.srqn;
	MUST(t, hx_create_qp_srq(&other.h, other.pd, other.cq.cqn, 4, srq.q.srqn, &q) < 0,
	     "a QP on an alien SRQ");
	MUST(t, hx_call(&other.h, RING_CTRL_MODIFY_SRQ, &m, NULL, 0) < 0, "MODIFY_SRQ");
	MUST(t, hx_handle_call(&other.h, RING_CTRL_QUERY_SRQ, srq.q.srqn) < 0, "QUERY_SRQ");
	MUST(t, hx_handle_call(&other.h, RING_CTRL_DESTROY_SRQ, srq.q.srqn) < 0, "DESTROY_SRQ");
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_SRQ, srq.q.srqn) == -EBUSY,
	     "an SRQ with QPs can be destroyed");
	post(0);
	sends(t, 2);
	hx_rig_close(&other);
	end(t);
}

/* ---- XRC ---------- */

/** A domain, an SRQ in it, a target in srq.qp[1] and an initiator of it in srq.qp[0]. */
static bool
xrc_start(struct hostile *t, uint32_t *xrcd)
{
	struct ring_ctrl_alloc_xrcd_req x = {.flags = RING_XRCD_FILE | RING_XRCD_CREATE, .dev = 1,
					     .ino = 2};
	struct ring_ctrl_create_srq_req req = {.max_wr = WR, .max_sge = 4};
	struct ring_ctrl_create_qp_req q = {.type = RING_QPT_XRC_RECV, .pd = RING_NO_HANDLE,
		.send_cq = RING_NO_HANDLE, .recv_cq = RING_NO_HANDLE, .srqn = RING_NO_HANDLE};
	struct ring_ctrl_create_qp_rep qr;
	struct ring_ctrl_handle_rep h;
	struct hx_qp *ini = &srq.qp[0];
	int ret;

	memset(&srq, 0, sizeof(srq));
	if (!hostile_rig(t, &rig))
		return false;
	ret = hx_call(&rig.h, RING_CTRL_ALLOC_XRCD, &x, &h, sizeof(h));
	req.pd = rig.pd;
	req.xrcd = q.xrcd = *xrcd = h.handle;
	req.cqn = rig.cq.cqn;
	if (!ret)
		ret = hx_call(&rig.h, RING_CTRL_CREATE_SRQ, &req, &srq.q, sizeof(srq.q));
	if (!ret)
		ret = hx_call(&rig.h, RING_CTRL_CREATE_QP, &q, &qr, sizeof(qr));
	MUST(t, !ret, "no XRC: %s", strerror(-ret));
	if (ret || !place(t, srq.q.index, srq.q.slots, srq.q.max_wr, srq.q.log_index))
		return false;
	srq.client = hx_at(&rig.h, srq.q.client, sizeof(*srq.client));
	srq.daemon = hx_at(&rig.h, srq.q.daemon, sizeof(*srq.daemon));
	srq.qp[1].qpn = qr.qpn;
	q = (struct ring_ctrl_create_qp_req){.type = RING_QPT_XRC_SEND, .pd = rig.pd,
		.send_cq = rig.cq.cqn, .recv_cq = RING_NO_HANDLE, .srqn = RING_NO_HANDLE,
		.xrcd = RING_NO_HANDLE, .max_send_wr = HX_RIG_DEPTH, .max_send_sge = 2};
	ret = hx_call(&rig.h, RING_CTRL_CREATE_QP, &q, &qr, sizeof(qr));
	if (ret)
		return false;
	ini->qpn = qr.qpn;
	ini->bell = qr.bell;
	ini->client = hx_at(&rig.h, qr.client, sizeof(*ini->client));
	ini->daemon = hx_at(&rig.h, qr.daemon, sizeof(*ini->daemon));
	ini->sq.slots = hx_at(&rig.h, qr.sq, (uint64_t)RING_SLOT_SIZE << qr.log_sq_slots);
	ini->sq.mask = (1u << qr.log_sq_slots) - 1;
	ini->sq.shared_tail = &ini->client->sq_tail;
	return srq.client && srq.daemon && ini->client && ini->sq.slots;
}

static int
xrc_connect(void)
{
	static const uint32_t not_ini = RING_QP_MIN_RNR_TIMER | RING_QP_MAX_DEST_RD_ATOMIC;
	static const uint32_t not_tgt = RING_QP_RETRY_CNT | RING_QP_RNR_RETRY |
					RING_QP_MAX_QP_RD_ATOMIC;
	int ret = 0;

	for (unsigned int s = RING_QPS_INIT; s <= RING_QPS_RTS && !ret; s++)
		for (int i = 0; i < 2 && !ret; i++) {
			struct ring_ctrl_modify_qp_req m =
				hx_modify_req(&srq.qp[i], srq.qp[!i].qpn, &rig.av, s);

			m.mask &= ~(i ? not_tgt : not_ini);
			ret = hx_call(&rig.h, RING_CTRL_MODIFY_QP, &m, NULL, 0);
		}
	return ret;
}

/* Requests for any SRQ, entries of any kind, and an SRQ that goes while messages come for it. */
static void
srq_xrc(struct hostile *t)
{
	uint32_t xrcd = 0;

	for (int round = 0; round < 8; round++) {
		struct ring_ctrl_handle_req del = {0};
		struct ring_cqe c;

		if (!xrc_start(t, &xrcd) || xrc_connect() != 0) {
			FAULT(t, "XRC does not come up");
			return;
		}
		for (uint32_t i = 0; i < WR; i++)
			post(round % 2 ? hostile_below(t, WR) : i);
		for (int i = 0; i < 40; i++) {
			struct ring_wqe w = hx_write(&rig, 0, 65536, hostile_below(t, 3000));

			w.opcode = hostile_below(t, 3) ? RING_WR_SEND : RING_WR_RDMA_WRITE;
			w.srqn = i < 20 || hostile_below(t, 8) ? srq.q.srqn
							       : (uint32_t)hostile_value(t);
			hx_post(&rig, &srq.qp[0], &w);
			if (round % 4 == 2 && i == 30) {
				del.handle = srq.q.srqn;
				hx_request(&rig.h, RING_CTRL_DESTROY_SRQ, 1, &del, NULL);
			}
		}
		while (!hx_poll_wait(&rig.h, &rig.cq, &c, 20))
			;
		if (round == 7)
			return; /* and die with all of it */
		if (round % 4 != 2)
			MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_SRQ, srq.q.srqn) == 0,
			     "DESTROY_SRQ");
		for (int i = 0; i < 2; i++)
			MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, srq.qp[i].qpn) == 0,
			     "DESTROY_QP");
		MUST(t, hx_handle_call(&rig.h, RING_CTRL_DEALLOC_XRCD, xrcd) == 0, "DEALLOC_XRCD");
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

const struct hostile_case hostile_srq_cases[] = {
	{"srq_tail", srq_tail, "tails of a shared queue that cannot be", false},
	{"srq_entries", srq_entries, "entry numbers and entries of any value", false},
	{"srq_race", srq_race, "shared queues that change while they are read", false},
	{"srq_resize", srq_resize, "sizes and limits of any value under traffic", false},
	{"srq_alien", srq_alien, "another session's shared queue", false},
	{"srq_xrc", srq_xrc, "XRC requests for any SRQ, and for one that goes", false},
	{NULL, NULL, NULL, false},
};
