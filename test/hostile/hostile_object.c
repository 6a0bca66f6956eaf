/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks by control calls: values, handles of others and of the dead, quotas, order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hostile.h"

static struct hx_rig rig, alien;

#define BODY 4096

/* An element that would be fine, as far as one message can be, for any operation. */
static size_t
honest_body(unsigned int op, uint8_t *body)
{
	const struct ring_ctrl_info *info = ring_ctrl_info(op);

	memset(body, 0, info->request_size);
	switch (op) {
	case RING_CTRL_CREATE_QP:
		*(struct ring_ctrl_create_qp_req *)body = (struct ring_ctrl_create_qp_req){
			.type = RING_QPT_RC, .pd = rig.pd, .send_cq = rig.cq.cqn,
			.recv_cq = rig.cq.cqn, .srqn = RING_NO_HANDLE, .xrcd = RING_NO_HANDLE,
			.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2,
			.max_recv_sge = 2,
		};
		break;
	case RING_CTRL_CREATE_CQ:
		*(struct ring_ctrl_create_cq_req *)body = (struct ring_ctrl_create_cq_req){
			.entries = 64, .channel = RING_NO_HANDLE};
		break;
	case RING_CTRL_REG_MR:
		*(struct ring_ctrl_reg_mr_req *)body = (struct ring_ctrl_reg_mr_req){
			.addr = (uintptr_t)rig.mem, .length = HX_RIG_BYTES,
			.iova = (uintptr_t)rig.mem, .access = RING_ACCESS_LOCAL_WRITE,
			.pd = rig.pd};
		break;
	case RING_CTRL_REREG_MR:
		*(struct ring_ctrl_rereg_mr_req *)body = (struct ring_ctrl_rereg_mr_req){
			.lkey = rig.key, .what = RING_REREG_ACCESS | RING_REREG_TRANSLATION,
			.addr = (uintptr_t)rig.mem, .length = HX_RIG_BYTES,
			.iova = (uintptr_t)rig.mem, .access = RING_ACCESS_LOCAL_WRITE,
			.pd = rig.pd};
		break;
	case RING_CTRL_MODIFY_QP:
		*(struct ring_ctrl_modify_qp_req *)body =
			hx_modify_req(&rig.qp[0], rig.qp[1].qpn, &rig.av, RING_QPS_RTS);
		break;
	case RING_CTRL_ALLOC_MEM:
		*(struct ring_ctrl_alloc_mem_req *)body =
			(struct ring_ctrl_alloc_mem_req){.size = 4096, .align = 64};
		break;
	case RING_CTRL_RESOLVE:
		((struct ring_ctrl_resolve_req *)body)->av = rig.av;
		break;
	case RING_CTRL_CREATE_AH:
		((struct ring_ctrl_create_ah_req *)body)->av = rig.av;
		((struct ring_ctrl_create_ah_req *)body)->pd = rig.pd;
		break;
	case RING_CTRL_QUERY_PORT:
	case RING_CTRL_QUERY_GID:
		((struct ring_ctrl_query_port_req *)body)->port = 1;
		break;
	case RING_CTRL_RESIZE_CQ:
		*(struct ring_ctrl_resize_cq_req *)body =
			(struct ring_ctrl_resize_cq_req){rig.cq.cqn, 128};
		break;
	case RING_CTRL_QUERY_QP:
		((struct ring_ctrl_handle_req *)body)->handle = rig.qp[0].qpn;
		break;
	case RING_CTRL_ALLOC_XRCD:
		*(struct ring_ctrl_alloc_xrcd_req *)body = (struct ring_ctrl_alloc_xrcd_req){
			.flags = RING_XRCD_FILE | RING_XRCD_CREATE, .dev = 1, .ino = 1};
		break;
	case RING_CTRL_CREATE_SRQ:
		*(struct ring_ctrl_create_srq_req *)body = (struct ring_ctrl_create_srq_req){
			.pd = rig.pd, .max_wr = 64, .max_sge = 2, .xrcd = RING_NO_HANDLE,
			.cqn = RING_NO_HANDLE};
		break;
	default:
		break;
	}
	return info->request_size;
}

static unsigned int
some_op(struct hostile *t)
{
	const struct ring_ctrl_info *info;
	unsigned int op;

	do {
		op = hostile_below(t, RING_CTRL_OP_COUNT);
		info = ring_ctrl_info(op);
	} while (!info || !info->request_size || info->notice || op == RING_CTRL_HELLO);
	return op;
}

/* Every operation in turn with one hostile field; whatever it makes is left. */
static void
object_field(struct hostile *t)
{
	_Alignas(8) uint8_t body[BODY];

	if (!hostile_rig(t, &rig))
		return;
	for (int i = 0; i < 200; i++) {
		unsigned int op = some_op(t);
		size_t size = honest_body(op, body);
		int ret;

		hostile_mutate(t, body, size);
		if (hostile_below(t, 4) == 0)
			hostile_mutate(t, body, size);
		ret = hx_call(&rig.h, op, body, NULL, 0);
		if (ret == -ETIMEDOUT) {
			FAULT(t, "%s: no answer", ring_ctrl_name(op));
			return;
		}
		if (ret == -ENOTCONN || ret == -EBADMSG) {
			FAULT(t, "%s with a hostile field: hung up (%d)", ring_ctrl_name(op), ret);
			return;
		}
		if (i % 32 == 0)
			hostile_traffic(t, &rig, 4);
	}
	hostile_alive(t, &rig.h);
}

/* Full messages of hostile elements, pipelined. */
static void
object_batch(struct hostile *t)
{
	static _Alignas(8) uint8_t body[RING_CTRL_MAX_LEN + BODY];
	uint32_t last = 0;
	int waits = 0;

	if (!hostile_rig(t, &rig))
		return;
	for (int i = 0; i < 12; i++) {
		unsigned int op = some_op(t);
		const struct ring_ctrl_info *info = ring_ctrl_info(op);
		uint32_t n = hostile_below(t, 2) ? info->max_count
						 : 1 + hostile_below(t, info->max_count);

		if (op == RING_CTRL_RESOLVE || op == RING_CTRL_CREATE_AH) {
			/* each waits for a neighbour that is not there, one after another */
			if (++waits > 2)
				continue;
			n = n > 8 ? 8 : n;
		}
		if (op == RING_CTRL_CREATE_CQ || op == RING_CTRL_CREATE_QP ||
		    op == RING_CTRL_CREATE_SRQ || op == RING_CTRL_ALLOC_MEM)
			n = n > 32 ? 32 : n; /* gigabytes; object_quota has that */
		for (uint32_t k = 0; k < n; k++) {
			honest_body(op, body + k * info->request_size);
			if (hostile_below(t, 2))
				hostile_mutate(t, body + k * info->request_size,
					       info->request_size);
		}
		if (t->verbose)
			printf("  %u of %s\n", n, info->name);
		if (hx_request(&rig.h, op, n, body, &last))
			break;
	}
	if (hx_wait(&rig.h, last, NULL, 0) == -ETIMEDOUT)
		FAULT(t, "no answer to the last of the batches");
	hostile_alive(t, &rig.h);
}

/* Everything of another session: named by its handles, it must not exist. */
static void
object_alien(struct hostile *t)
{
	struct ring_ctrl_create_qp_req qp;
	struct ring_ctrl_modify_qp_req m;
	_Alignas(8) uint8_t body[BODY];
	uint32_t key;

	if (!hostile_rig(t, &alien) || !hostile_rig(t, &rig))
		return;
	for (int i = 0; i < 2; i++) {
		uint32_t qpn = alien.qp[i].qpn;

		MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, qpn) < 0, "DESTROY_QP");
		MUST(t, hx_query_state(&rig.h, qpn) < 0, "QUERY_QP");
		m = hx_modify_req(&alien.qp[i], 1, &rig.av, RING_QPS_ERR);
		MUST(t, hx_call(&rig.h, RING_CTRL_MODIFY_QP, &m, NULL, 0) < 0, "MODIFY_QP");
	}
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, alien.key) < 0, "DEREG_MR");
	honest_body(RING_CTRL_REREG_MR, body);
	((struct ring_ctrl_rereg_mr_req *)body)->lkey = alien.key;
	MUST(t, hx_call(&rig.h, RING_CTRL_REREG_MR, body, NULL, 0) < 0, "REREG_MR");
	/* PDs and CQs may be numbered by context: then the number is one's own, or nobody's */
	if (alien.cq.cqn != rig.cq.cqn) {
		honest_body(RING_CTRL_CREATE_QP, (uint8_t *)&qp);
		qp.send_cq = alien.cq.cqn;
		MUST(t, hx_call(&rig.h, RING_CTRL_CREATE_QP, &qp, NULL, 0) < 0,
		     "CREATE_QP on an alien CQ");
		MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_CQ, alien.cq.cqn) < 0,
		     "DESTROY_CQ");
	}
	if (alien.pd != rig.pd) {
		MUST(t, hx_reg_mr(&rig.h, alien.pd, rig.mem, 4096, 1, &key, NULL) < 0,
		     "REG_MR in an alien PD");
		MUST(t, hx_handle_call(&rig.h, RING_CTRL_DEALLOC_PD, alien.pd) < 0, "DEALLOC_PD");
	}
	hostile_traffic(t, &alien, 16);
	MUST(t, hx_query_state(&alien.h, alien.qp[0].qpn) == RING_QPS_RTS,
	     "the alien QP has changed");
}

/* What was destroyed is gone, at once and twice. */
static void
object_stale(struct hostile *t)
{
	uint32_t qpn, key;

	if (!hostile_rig(t, &rig))
		return;
	qpn = rig.qp[0].qpn;
	hostile_traffic(t, &rig, 16);
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, qpn) == 0, "DESTROY_QP");
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, qpn) < 0, "DESTROY_QP twice");
	MUST(t, hx_query_state(&rig.h, qpn) < 0, "QUERY_QP of a destroyed one");
	for (int i = 0; i < 64; i++) {
		struct ring_wqe w = hx_write(&rig, 0, 65536, 64);

		hx_post(&rig, &rig.qp[0], &w); /* into the dead one's ring */
		ring_bell_set(rig.h.bell[hostile_below(t, rig.h.num_workers)], rig.qp[0].bell);
	}
	MUST(t, !hx_reg_mr(&rig.h, rig.pd, rig.mem, 4096, 1, &key, NULL), "REG_MR");
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, key) == 0, "DEREG_MR");
	MUST(t, hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, key) < 0, "DEREG_MR twice");
	hostile_alive(t, &rig.h);
}

static int
destroy(uint32_t what)
{
	switch (what) {
	case 0: return hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, rig.qp[0].qpn);
	case 1: return hx_handle_call(&rig.h, RING_CTRL_DESTROY_QP, rig.qp[1].qpn);
	case 2: return hx_handle_call(&rig.h, RING_CTRL_DESTROY_CQ, rig.cq.cqn);
	case 3: return hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, rig.key);
	case 4: {
		struct ring_ctrl_free_mem_req f = {rig.mem_loc};

		return hx_call(&rig.h, RING_CTRL_FREE_MEM, &f, NULL, 0);
	}
	default: return hx_handle_call(&rig.h, RING_CTRL_DEALLOC_PD, rig.pd);
	}
}

/* Every order of destroying, with traffic under way; parents refuse while they have children. */
static void
object_order(struct hostile *t)
{
	for (int round = 0; round < 4; round++) {
		bool gone[6] = {false};
		uint32_t left = 6;

		if (!hostile_rig(t, &rig))
			return;
		for (int tries = 0; left && tries < 200; tries++) {
			uint32_t k = hostile_below(t, 6);
			bool busy = (k == 2 && !(gone[0] && gone[1])) || (k == 4 && !gone[3]) ||
				    (k == 5 && !(gone[0] && gone[1] && gone[3]));
			int ret;

			if (!gone[4])
				hostile_traffic(t, &rig, 4);
			ret = destroy(k);
			MUST(t, ret != -ETIMEDOUT, "destroying %u: no answer", k);
			MUST(t, ret != 0 || (!gone[k] && !busy), "destroying %u: done, not busy",
			     k);
			MUST(t, ret == 0 || gone[k] || busy, "destroying %u: %s", k,
			     strerror(-ret));
			if (ret == -ENOTCONN || ret == -ETIMEDOUT)
				return;
			if (ret == 0) {
				gone[k] = true;
				left--;
			}
		}
		MUST(t, !left, "%u objects cannot be destroyed", left);
		hx_rig_close(&rig);
	}
}

/* Everything at once, no reply awaited. */
static void
object_pipeline(struct hostile *t)
{
	uint32_t last = 0;

	if (!hostile_rig(t, &rig))
		return;
	for (int i = 0; i < 100; i++) {
		struct ring_ctrl_modify_qp_req m = hx_modify_req(
			&rig.qp[i & 1], rig.qp[!(i & 1)].qpn, &rig.av, hostile_below(t, 8));
		struct ring_ctrl_handle_req r = {.handle = rig.qp[i & 1].qpn};
		struct ring_wqe w = hx_write(&rig, 0, 65536, 4096);

		hx_request(&rig.h, RING_CTRL_MODIFY_QP, 1, &m, &last);
		hx_post(&rig, &rig.qp[i & 1], &w);
		if (hostile_below(t, 4) == 0)
			hx_request(&rig.h, RING_CTRL_QUERY_QP, 1, &r, &last);
		if (i > 60 && hostile_below(t, 8) == 0)
			hx_request(&rig.h, RING_CTRL_DESTROY_QP, 1, &r, &last);
		if (i > 80 && hostile_below(t, 8) == 0) {
			r.handle = rig.cq.cqn;
			hx_request(&rig.h, RING_CTRL_DESTROY_CQ, 1, &r, &last);
		}
	}
	if (hostile_below(t, 2))
		return; /* and die */
	MUST(t, hx_wait(&rig.h, last, NULL, 0) != -ETIMEDOUT, "no answer to the last");
}

/* Every state, mask and attribute. */
static void
object_modify(struct hostile *t)
{
	if (!hostile_rig(t, &rig))
		return;
	for (int i = 0; i < 300; i++) {
		struct hx_qp *q = &rig.qp[i & 1];
		struct ring_ctrl_modify_qp_req m = hx_modify_req(q, rig.qp[!(i & 1)].qpn, &rig.av,
								 hostile_below(t, 8));
		int ret;

		if (hostile_below(t, 2))
			hostile_mutate(t, &m.attr, sizeof(m.attr));
		if (hostile_below(t, 4) == 0)
			m.mask = (uint32_t)hostile_value(t);
		if (!memcmp(&m.attr.av.dgid, &rig.av.dgid, 16)) {
			ret = hx_call(&rig.h, RING_CTRL_MODIFY_QP, &m, NULL, 0);
		} else { /* nobody there: it takes the neighbour's time */
			ret = hx_request(&rig.h, RING_CTRL_MODIFY_QP, 1, &m, NULL);
		}
		if (ret == -ETIMEDOUT || ret == -ENOTCONN) {
			FAULT(t, "MODIFY_QP: %s", strerror(-ret));
			return;
		}
		if (i % 16 == 0)
			hostile_traffic(t, &rig, 2);
	}
	hostile_alive(t, &rig.h);
}

/* As many as there may be, of one kind; then no more. Left for the daemon to tidy. */
static void
object_quota(struct hostile *t)
{
	static const unsigned int ops[] = {RING_CTRL_ALLOC_PD, RING_CTRL_CREATE_CQ,
					   RING_CTRL_CREATE_QP, RING_CTRL_REG_MR,
					   RING_CTRL_ALLOC_MEM, RING_CTRL_ALLOC_MW,
					   RING_CTRL_CREATE_SRQ};
	static _Alignas(8) uint8_t body[RING_CTRL_MAX_LEN + BODY];
	static _Alignas(8) uint8_t rep[RING_CTRL_MAX_LEN];
	unsigned int op = ops[hostile_below(t, sizeof(ops) / sizeof(ops[0]))];
	const struct ring_ctrl_info *info = ring_ctrl_info(op);
	uint64_t end = hx_now_ms() + 8000, made = 0;
	uint32_t n = info->max_count < 256 ? info->max_count : 256;

	if (!hostile_rig(t, &rig))
		return;
	while (hx_now_ms() < end && made < 60000) {
		uint32_t id, good = 0;
		int ret;

		for (uint32_t k = 0; k < n; k++) {
			honest_body(op, body + k * info->request_size);
			if (op == RING_CTRL_ALLOC_MEM)
				((struct ring_ctrl_alloc_mem_req *)(body +
					k * info->request_size))->size = 1 << 20;
		}
		ret = hx_request(&rig.h, op, n, body, &id);
		if (!ret)
			ret = hx_wait(&rig.h, id, rep, sizeof(rep));
		MUST(t, ret != -ETIMEDOUT, "%s: no answer after %llu", info->name,
		     (unsigned long long)made);
		if (ret)
			break;
		for (uint32_t k = 0; k < n; k++) {
			int32_t s;

			memcpy(&s, rep + k * info->reply_size, sizeof(s));
			good += s == 0;
		}
		made += good;
		if (good < n)
			break;
	}
	if (t->verbose)
		printf("  %llu of %s\n", (unsigned long long)made, info->name);
	hostile_traffic(t, &rig, 8);
	hostile_alive(t, &rig.h);
}

static void
object_token(struct hostile *t)
{
	if (!hostile_rig(t, &rig))
		return;
	for (int i = 0; i < 64; i++) {
		struct ring_ctrl_import_req req = {.kind = hostile_below(t, 4)};

		for (size_t k = 0; k < sizeof(req.token); k++)
			req.token[k] = i ? (uint8_t)hostile_rand(t) : 0;
		MUST(t, hx_call(&rig.h, RING_CTRL_IMPORT, &req, NULL, 0) < 0,
		     "a guessed token is good");
	}
	hostile_alive(t, &rig.h);
}

/* Registrations of what one has not, or may not write. */
static void
object_ranges(struct hostile *t)
{
	static const uint64_t wrong[][2] = {
		{0, 4096}, {0x1000, 4096}, {0x7ffffffff000, 0x2000},
		{0xffffffffff600000, 4096}, {0xffff888000000000, 4096}, {0xfffffffffffff000, 4096},
		{0xffffffffffffffff, 1}, {0x800000000000, 4096},
	};
	static const char text[8192] = "constant";
	uint32_t key;

	if (!hostile_rig(t, &rig))
		return;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		MUST(t, hx_reg_mr(&rig.h, rig.pd, (void *)(uintptr_t)wrong[i][0], wrong[i][1],
				  RING_ACCESS_LOCAL_WRITE, &key, NULL) < 0,
		     "%#llx + %#llx can be registered", (unsigned long long)wrong[i][0],
		     (unsigned long long)wrong[i][1]);
	}
	MUST(t, hx_reg_mr(&rig.h, rig.pd, text, sizeof(text), RING_ACCESS_LOCAL_WRITE, &key,
			  NULL) < 0, "constants can be registered for writing");
	MUST(t, hx_reg_mr(&rig.h, rig.pd, rig.mem, UINT64_MAX, 1, &key, NULL) < 0 &&
	     hx_reg_mr(&rig.h, rig.pd, rig.mem, 1ull << 62, 1, &key, NULL) < 0 &&
	     hx_reg_mr(&rig.h, rig.pd, rig.mem, 0, 1, &key, NULL) < 0,
	     "an absurd length can be registered");
	for (int i = 0; i < 60; i++) {
		struct ring_ctrl_reg_mr_req req;

		honest_body(RING_CTRL_REG_MR, (uint8_t *)&req);
		req.addr += hostile_below(t, 2) ? hostile_value(t) : 0;
		req.length = hostile_below(t, 2) ? hostile_value(t) : req.length;
		req.iova = hostile_value(t);
		req.access = hostile_below(t, 2) ? (uint32_t)hostile_value(t) : req.access;
		MUST(t, hx_call(&rig.h, RING_CTRL_REG_MR, &req, NULL, 0) != -ETIMEDOUT,
		     "no answer");
	}
	hostile_alive(t, &rig.h);
}

const struct hostile_case hostile_object_cases[] = {
	{"object_field", object_field, "every operation with one hostile field", false},
	{"object_batch", object_batch, "full messages of hostile elements", false},
	{"object_alien", object_alien, "handles of another session", false},
	{"object_stale", object_stale, "handles of the dead", false},
	{"object_order", object_order, "destroying in every order under traffic", false},
	{"object_pipeline", object_pipeline, "make, change and destroy without waiting", false},
	{"object_modify", object_modify, "states, masks and attributes at random", false},
	{"object_quota", object_quota, "as many objects as there may be", false},
	{"object_token", object_token, "guessed tokens", false},
	{"object_ranges", object_ranges, "registering memory that is not there", false},
	{NULL, NULL, NULL, false},
};
