/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder of rnic_ops: gets ready for what the initiator announces and then
 * compares its whole buffer, and each receive, with what the op must have left.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "rnic_ops.h"

static char reason[200];
#define BAD(...) (snprintf(reason, sizeof(reason), __VA_ARGS__), false)

/* Binds a new type 2 window over the buffer; sendinv takes the one that is there. */
static bool
window(struct end *e)
{
	struct rnic_send_wr wr = {.opcode = RNIC_WR_BIND_MW, .send_flags = RNIC_SEND_SIGNALED};
	struct rnic_wc wc;
	int rc = rnic_alloc_mw(e->device.pd, RNIC_MW_TYPE_2, &e->mw);

	if (rc < 0)
		return BAD("no memory window: %s", rnic_strerror(rc));
	wr.wr.bind_mw.mw = e->mw;
	wr.wr.bind_mw.mr = e->mr;
	wr.wr.bind_mw.addr = (uintptr_t)e->buf;
	wr.wr.bind_mw.length = e->buflen;
	wr.wr.bind_mw.access = RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ;
	/* another variant, the low byte, of the same index */
	wr.wr.bind_mw.rkey = (e->mw->rkey & ~0xffu) | ((e->mw->rkey + 1) & 0xff);
	if (rnic_post_send(e->qp, &wr, NULL) < 0 || !poll_one(e, &wc, 5000))
		return BAD("window not bound");
	if (wc.status != RNIC_WC_SUCCESS)
		return BAD("bind: %s", rnic_wc_status_str(wc.status));
	e->mw->rkey = wr.wr.bind_mw.rkey;
	return true;
}

static bool
ready(struct end *e, const struct op *op)
{
	unsigned int f = op->def->flags;
	uint32_t j;

	if (f & OP_HOLD && e->nrecv)
		return BAD("receives are posted");
	if (f & OP_WINDOW && !e->mw && !window(e))
		return false;
	if (f & OP_RECV && !(f & OP_HOLD) && !e->nrecv) {
		if (!(f & OP_WRITE) && op->len > e->recvlen)
			return BAD("receives have %u bytes", e->recvlen);
		for (j = 0; j < op->count; j++)
			post_recv(e, j);
	}
	return true;
}

static void
go(struct end *e, const struct op *op)
{
	uint32_t key = e->mr->rkey;

	if (op->def->flags & OP_WINDOW)
		key = e->mw->rkey;
	if (op->def->flags & OP_NOPERM)
		key = e->denied->rkey;
	ex_say(&e->conn, "go %016llx:%08x:%08x", (unsigned long long)(uintptr_t)e->buf, key,
		e->buflen);
	if (op->def->flags & OP_HOLD && !(op->def->flags & OP_MUSTFAIL)) {
		usleep(op->len * 1000);
		post_recv(e, 0);
	}
}

static bool
check_recv(struct end *e, const struct op *op, const struct rnic_wc *wc, uint32_t j)
{
	unsigned int f = op->def->flags;
	uint32_t at, len = f & OP_HOLD ? 64 : op->len, imm = 0xcafe0000 + op->seed + j;

	if (wc->status != RNIC_WC_SUCCESS)
		return BAD("receive %u: %s", j, rnic_wc_status_str(wc->status));
	if (wc->byte_len != len)
		return BAD("receive %u: %u bytes, not %u", j, wc->byte_len, len);
	if (!(wc->wc_flags & RNIC_WC_WITH_IMM) != !(f & OP_IMM) ||
		(f & OP_IMM && ntohl(wc->imm_data) != imm))
		return BAD(
			"receive %u: flags %x immediate %x", j, wc->wc_flags, ntohl(wc->imm_data));
	if (!(wc->wc_flags & RNIC_WC_WITH_INV) != !(f & OP_INV) ||
		(f & OP_INV && wc->invalidated_rkey != e->mw->rkey))
		return BAD("receive %u: flags %x key %x", j, wc->wc_flags, wc->invalidated_rkey);
	if (wc->opcode != (f & OP_WRITE ? RNIC_WC_RECV_RDMA_WITH_IMM : RNIC_WC_RECV))
		return BAD("receive %u: opcode %d", j, wc->opcode);
	if (!(f & OP_WRITE) &&
		!pattern_check(e->recv + wc->wr_id * e->recvlen, len, op->seed + j, &at))
		return BAD("receive %u: wrong byte at %u", j, at);
	return true;
}

static bool
check_recvs(struct end *e, const struct op *op)
{
	struct rnic_wc wc;
	uint32_t j;

	for (j = 0; j < op->count; j++) {
		if (!poll_one(e, &wc, 5000))
			return BAD("receive %u: no completion", j);
		if (!check_recv(e, op, &wc, j))
			return false;
		if (e->nrecv)
			post_recv(e, wc.wr_id);
	}
	return true;
}

static bool
check(struct end *e, const struct op *op, int status)
{
	unsigned int f = op->def->flags;
	struct rnic_wc wc;
	uint32_t i;

	if (!status && !(f & (OP_MUSTFAIL | OP_MAYFAIL))) {
		if (f & OP_RECV && !check_recvs(e, op))
			return false;
		model_apply(e, op);
	}
	if (f & OP_MUSTFAIL && f & OP_RECV && !(f & OP_HOLD) && !e->nrecv &&
		(!poll_one(e, &wc, 5000) || wc.status == RNIC_WC_SUCCESS))
		return BAD("the receive did not fail");
	if (!(f & OP_MAYFAIL) && !e->nrecv && poll_one(e, &wc, 0))
		return BAD("completion too many: %s opcode %d", rnic_wc_status_str(wc.status),
			wc.opcode);
	for (i = 0; i < e->buflen; i++)
		if (e->buf[i] != e->model[i])
			return BAD("byte %u is %02x, not %02x", i, e->buf[i], e->model[i]);
	if (f & OP_INV && f & OP_WINDOW) {
		rnic_dealloc_mw(e->mw);
		e->mw = NULL;
	}
	return true;
}

/* One op from its "op" line to the answer to its "end" line. */
static bool
serve(struct end *e, const char *line)
{
	char name[32], end[64];
	struct op op = {0};
	int status;

	if (sscanf(line, "op %31s %u %u %u", name, &op.len, &op.count, &op.seed) != 4 ||
		!(op.def = op_find(name)) || !op.count || op.count > MAX_LIST ||
		(!(op.def->flags & OP_HOLD) &&
			(op.len > e->buflen ||
				(uint64_t)op_stride(&op) * op.count > e->buflen - ATOMIC_OFF))) {
		ex_say(&e->conn, "no such op");
		printf("not understood: %s\n", line);
		return false;
	}
	if (!ready(e, &op)) {
		ex_say(&e->conn, "no %s", reason);
		printf("op %s:%u*%u: %s\n", name, op.len, op.count, reason);
		return false;
	}
	go(e, &op);
	if (!ex_hear(&e->conn, end, sizeof(end)) || sscanf(end, "end %d", &status) != 1) {
		printf("op %s:%u*%u: the initiator has gone\n", name, op.len, op.count);
		return false;
	}
	if (check(e, &op, status)) {
		ex_say(&e->conn, "ok");
		printf("op %s:%u*%u: ok\n", name, op.len, op.count);
		fflush(stdout);
		return true;
	}
	ex_say(&e->conn, "bad %s", reason);
	printf("op %s:%u*%u: WRONG: %s\n", name, op.len, op.count, reason);
	return false;
}

/* An initiator without control lines: say what arrives, keep receives posted. */
static void
watch(struct end *e)
{
	struct pollfd p = {.fd = e->conn.fd, .events = POLLIN};
	struct rnic_wc wc;

	while (poll(&p, 1, 5) == 0)
		while (e->nrecv && poll_one(e, &wc, 0)) {
			printf("receive: %s opcode %d len %u flags %x imm %x first %02x\n",
				rnic_wc_status_str(wc.status), wc.opcode, wc.byte_len, wc.wc_flags,
				wc.wc_flags & RNIC_WC_WITH_IMM ? ntohl(wc.imm_data) : 0,
				e->recv[wc.wr_id * e->recvlen]);
			fflush(stdout);
			if (wc.status == RNIC_WC_SUCCESS)
				post_recv(e, wc.wr_id);
		}
}

int
responder(struct end *e)
{
	char line[128];

	watch(e);
	while (ex_hear(&e->conn, line, sizeof(line)) && strcmp(line, "quit"))
		if (!serve(e, line))
			return 1;
	return 0;
}
