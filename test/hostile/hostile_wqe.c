/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks by work requests: their fields, and the memory of others that they name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"

static struct hx_rig rig, alien;

/* One hostile field in a request that would work; a new pair when the QP is in error. */
static void
wqe_field(struct hostile *t)
{
	static const uint8_t ops[] = {
		RING_WR_RDMA_WRITE, RING_WR_RDMA_WRITE_WITH_IMM, RING_WR_SEND,
		RING_WR_SEND_WITH_IMM, RING_WR_RDMA_READ, RING_WR_ATOMIC_CMP_AND_SWP,
		RING_WR_ATOMIC_FETCH_AND_ADD, RING_WR_LOCAL_INV, RING_WR_BIND_MW,
		RING_WR_SEND_WITH_INV, RING_WR_FLUSH, RING_WR_ATOMIC_WRITE, RING_WR_FAST_REG,
	};

	for (int i = 0; i < 30; i++) {
		if (!hostile_rig(t, &rig))
			return;
		for (int k = 0; k < 6; k++) {
			struct hx_qp *q = &rig.qp[k & 1];
			struct ring_wqe w = hx_write(&rig, 0, 65536, 1000);

			w.opcode = ops[hostile_below(t, sizeof(ops))];
			hx_post_recv(&rig, &rig.qp[!(k & 1)], (uintptr_t)rig.mem, 4096, rig.key);
			hostile_mutate(t, &w, sizeof(w));
			hx_post(&rig, q, &w);
		}
		hx_pass(&rig.h, 2);
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

static void
wqe_random(struct hostile *t)
{
	for (int i = 0; i < 10; i++) {
		struct hx_qp *q;

		if (!hostile_rig(t, &rig))
			return;
		for (int k = 0; k < 2; k++) {
			q = &rig.qp[k];
			for (uint32_t b = 0; b < (q->sq.mask + 1) * RING_SLOT_SIZE / 8; b++) {
				uint64_t v = hostile_value(t);

				memcpy(q->sq.slots + b * 8, &v, 8);
			}
			for (uint32_t b = 0; b < (q->rq.mask + 1) * RING_SLOT_SIZE / 8; b++) {
				uint64_t v = hostile_value(t);

				memcpy(q->rq.slots + b * 8, &v, 8);
			}
			q->rq.tail += q->rq.mask + 1;
			ring_wq_publish(&q->rq);
			q->sq.tail += q->sq.mask + 1;
			ring_wq_publish(&q->sq);
			hx_ring(&rig.h, q);
		}
		hx_pass(&rig.h, 5);
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

/* Receives of hostile form under honest SENDs. */
static void
wqe_recv(struct hostile *t)
{
	for (int i = 0; i < 30; i++) {
		struct hx_qp *q;

		if (!hostile_rig(t, &rig))
			return;
		q = &rig.qp[1];
		for (int k = 0; k < 4; k++) {
			struct ring_rwqe r = {.num_slots = 1, .num_sge = 1};
			struct ring_wqe w = hx_write(&rig, 0, 0, hostile_below(t, 5000));

			r.sge[0] = (struct ring_sge){(uintptr_t)rig.mem, 4096, rig.key};
			hostile_mutate(t, &r, sizeof(r));
			memcpy(ring_wq_slot(&q->rq, q->rq.tail), &r, sizeof(r));
			q->rq.tail++;
			ring_wq_publish(&q->rq);
			w.opcode = RING_WR_SEND;
			hx_post(&rig, &rig.qp[0], &w);
		}
		hx_pass(&rig.h, 2);
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

/* Post one request of the first QP and tell the status of its completion. */
static int
outcome(struct hostile *t, const struct ring_wqe *w)
{
	struct ring_cqe c;
	int ret;

	hx_post(&rig, &rig.qp[0], w);
	ret = hx_poll_wait(&rig.h, &rig.cq, &c, HX_WAIT_MS);
	MUST(t, !ret, "no completion: %s", strerror(-ret));
	return ret ? ret : (int)hx_cqe_status(&c);
}

/* One's own QPs, another session's memory: keys of its PD are no keys here. */
static void
wqe_alien(struct hostile *t)
{
	for (int i = 0; i < 6; i++) {
		struct ring_wqe w;
		uint8_t before[4096];

		if (!hostile_rig(t, &alien) || !hostile_rig(t, &rig))
			return;
		for (uint32_t k = 0; k < HX_RIG_BYTES; k++)
			alien.mem[k] = (uint8_t)k;
		memset(rig.mem, 0xee, HX_RIG_BYTES);
		memcpy(before, rig.mem + 65536, sizeof(before));
		w = hx_write(&rig, 0, 65536, 4096);
		if (i < 3) { /* remote: WRITE, READ, atomic */
			w.rkey = alien.key;
			w.remote_addr = (uintptr_t)alien.mem;
			w.opcode = i == 0 ? RING_WR_RDMA_WRITE
				 : i == 1 ? RING_WR_RDMA_READ : RING_WR_ATOMIC_FETCH_AND_ADD;
			if (i == 2) {
				w.atomic.sge = (struct ring_sge){(uintptr_t)rig.mem, 8, rig.key};
				w.atomic.compare_add = 1;
			}
		} else { /* local: gather from, scatter into */
			w.sge[0].lkey = alien.key;
			w.sge[0].addr = (uintptr_t)alien.mem;
			w.opcode = i == 3 ? RING_WR_RDMA_WRITE
				 : i == 4 ? RING_WR_RDMA_READ : RING_WR_SEND;
		}
		MUST(t, outcome(t, &w) != 0, "attack %d on another session's memory: success", i);
		for (uint32_t k = 0; k < HX_RIG_BYTES; k++) {
			if (alien.mem[k] != (uint8_t)k) {
				FAULT(t, "attack %d: byte %u of another session has changed", i, k);
				break;
			}
		}
		MUST(t, !memcmp(before, rig.mem + 65536, sizeof(before)),
		     "attack %d: bytes of another session arrived", i);
		hx_rig_close(&rig);
		hx_rig_close(&alien);
	}
}

/* A QP joined to another session's QP that never asked for it. */
static void
wqe_wrong_peer(struct hostile *t)
{
	struct hx_qp q;
	struct ring_cqe c;
	struct ring_wqe w;

	if (!hostile_rig(t, &alien) || !hostile_rig(t, &rig) ||
	    hx_create_qp(&rig.h, rig.pd, rig.cq.cqn, 16, &q))
		return;
	for (uint32_t k = 0; k < HX_RIG_BYTES; k++)
		alien.mem[k] = (uint8_t)k;
	if (hx_connect_qp(&rig.h, &q, alien.qp[0].qpn, &rig.av)) {
		FAULT(t, "a QP does not come up");
		return;
	}
	w = hx_write(&rig, 0, 65536, 4096);
	w.rkey = alien.key;
	w.remote_addr = (uintptr_t)alien.mem;
	hx_post(&rig, &q, &w);
	MUST(t, !hx_poll_wait(&rig.h, &rig.cq, &c, HX_WAIT_MS) && hx_cqe_status(&c),
	     "a WRITE into a QP joined to another one succeeds");
	for (uint32_t k = 0; k < HX_RIG_BYTES; k++) {
		if (alien.mem[k] != (uint8_t)k) {
			FAULT(t, "byte %u of another session has changed", k);
			break;
		}
	}
	/* and the two that belong together are as they were */
	hostile_traffic(t, &alien, 8);
	MUST(t, hx_query_state(&alien.h, alien.qp[0].qpn) == RING_QPS_RTS,
	     "the QP that was attacked has left RTS");
}

/* Ranges at the edges of an MR, and keys with one wrong bit. */
static void
wqe_bounds(struct hostile *t)
{
	static const struct {
		int64_t at;
		uint32_t len;
	} edges[] = {
		{-1, 1}, {-4096, 8192}, {HX_RIG_BYTES, 1}, {HX_RIG_BYTES - 1, 2},
		{0, 0xffffffff}, {HX_RIG_BYTES - 4096, 0xfffff000}, {INT64_MIN, 4096},
	};

	for (uint32_t i = 0; i < 2 * sizeof(edges) / sizeof(edges[0]); i++) {
		struct ring_wqe w;
		uint64_t at = (uint64_t)edges[i / 2].at;

		if (!hostile_rig(t, &rig))
			return;
		w = hx_write(&rig, 0, 0, 64);
		if (i & 1) {
			w.sge[0].addr = (uintptr_t)rig.mem + at;
			w.sge[0].length = edges[i / 2].len;
		} else {
			w.remote_addr = (uintptr_t)rig.mem + at;
			w.sge[0].length = edges[i / 2].len > HX_RIG_BYTES ? 64 : edges[i / 2].len;
			if (edges[i / 2].len > HX_RIG_BYTES)
				w.remote_addr += HX_RIG_BYTES - 32 - at;
		}
		MUST(t, outcome(t, &w) != 0, "edge %u: success", i);
		hx_rig_close(&rig);
	}
	for (int i = 0; i < 8; i++) {
		struct ring_wqe w;

		if (!hostile_rig(t, &rig))
			return;
		w = hx_write(&rig, 0, 65536, 64);
		w.rkey ^= 1u << hostile_below(t, 32);
		MUST(t, outcome(t, &w) != 0, "a key with a wrong bit: success");
		hx_rig_close(&rig);
	}
}

/* Memory whose registration ends while it is used. */
static void
wqe_dereg(struct hostile *t)
{
	for (int i = 0; i < 20; i++) {
		uint32_t key;

		if (!hostile_rig(t, &rig) ||
		    hx_reg_mr(&rig.h, rig.pd, rig.mem, HX_RIG_BYTES, 7, &key, NULL))
			return;
		for (int k = 0; k < 16; k++) {
			struct ring_wqe w = hx_write(&rig, 0, 65536, 60000);

			if (k & 1)
				w.rkey = key;
			else
				w.sge[0].lkey = key;
			hx_post(&rig, &rig.qp[k & 1], &w);
		}
		MUST(t, hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, key) == 0,
		     "DEREG_MR under traffic");
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

const struct hostile_case hostile_wqe_cases[] = {
	{"wqe_field", wqe_field, "send requests with one hostile field", false},
	{"wqe_random", wqe_random, "whole rings of random bytes", false},
	{"wqe_recv", wqe_recv, "receive requests with one hostile field", false},
	{"wqe_alien", wqe_alien, "memory of another session, by its keys", false},
	{"wqe_wrong_peer", wqe_wrong_peer, "a QP joined to another session's", false},
	{"wqe_bounds", wqe_bounds, "ranges over the edge, keys with a wrong bit", false},
	{"wqe_dereg", wqe_dereg, "deregistration under traffic", false},
	{NULL, NULL, NULL, false},
};
