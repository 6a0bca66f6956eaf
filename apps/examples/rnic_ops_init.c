/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator of rnic_ops: posts, waits, compares with its model of the peer. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "rnic_ops.h"

static uint32_t next_seed = 1;
static uint32_t last_window;	/* key that sendinv took away */

/* false with a line printed: the op is refused here or by the responder. */
static bool
announce(struct end *e, const struct op *op, struct region *r)
{
	char line[128];
	unsigned long long addr;

	*r = e->peer;
	if (e->bare)
		return true;
	ex_say(&e->conn, "op %s %u %u %u", op->def->name, op->len, op->count, op->seed);
	if (!ex_hear(&e->conn, line, sizeof(line)) ||
	    sscanf(line, "go %llx:%x:%x", &addr, &r->rkey, &r->len) != 3) {
		printf("op %s: responder says %s\n", op->text, line);
		return false;
	}
	r->addr = addr;
	return true;
}

static bool
fits(const struct end *e, const struct op *op)
{
	uint32_t room = e->buflen < e->peer.len ? e->buflen : e->peer.len;

	if (e->bare && op->def->flags & OP_CONTROL)
		return false;
	if (op->def->flags & OP_HOLD && op->def->flags & OP_CONTROL)
		return true;	/* the length is a time */
	return (uint64_t)op_stride(op) * op->count <= room - ATOMIC_OFF;
}

static void
aim(const struct op *op, const struct region *r, uint32_t j, struct rnic_send_wr *wr)
{
	unsigned int f = op->def->flags;
	uint64_t addr = r->addr + (uint64_t)j * op_stride(op);
	uint32_t key = r->rkey;

	if (f & OP_ATOMIC)
		addr = r->addr + r->len - ATOMIC_OFF;
	if (f & OP_UNALIGNED)
		addr += 4;
	if (f & OP_OOB)
		addr = r->addr + r->len - op->len / 2;
	if (f & OP_BADKEY)
		key ^= 0x5a5a5a00;
	if (f & OP_BADVAR)
		key ^= 1;
	if (f & OP_STALE)
		key = last_window;
	if (f & OP_ATOMIC) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = key;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = key;
	}
	/* Shares its place with imm_data. */
	if (f & OP_INV)
		wr->invalidate_rkey = f & OP_WINDOW ? key : 0xdeadbe00;
}

static uint32_t
wire_len(const struct end *e, const struct op *op)
{
	if (op->def->flags & OP_TOOLONG)
		return e->recvlen + 1;
	if (op->def->flags & OP_HOLD)
		return 64;
	return op->len;
}

/* The whole list by one call of rnic_post_send; returns how many were taken. */
static uint32_t
post(struct end *e, const struct op *op, const struct region *r)
{
	struct rnic_send_wr wr[MAX_LIST];
	const struct rnic_send_wr *bad = NULL;
	struct rnic_sge sge[MAX_LIST];
	uint32_t j, len = wire_len(e, op);
	int rc;

	memset(wr, 0, sizeof(wr));
	for (j = 0; j < op->count; j++) {
		unsigned char *p = e->work + (size_t)j * op_stride(op);

		if (op->def->flags & (OP_READ | OP_ATOMIC))
			memset(p, 0xa5, len);
		else
			pattern_fill(p, len, op->seed + j);
		sge[j] = (struct rnic_sge){ (uintptr_t)p, len, e->work_mr->lkey };
		wr[j].wr_id = j;
		wr[j].sg_list = &sge[j];
		wr[j].num_sge = len > 0;
		wr[j].opcode = op->def->opcode;
		wr[j].send_flags = RNIC_SEND_SIGNALED;
		wr[j].next = j + 1 < op->count ? &wr[j + 1] : NULL;
		if (op->def->flags & OP_IMM)
			wr[j].imm_data = htonl(0xcafe0000 + op->seed + j);
		aim(op, r, j, &wr[j]);
		if (op->def->flags & OP_ATOMIC)
			op_atomic(e, op, j, &wr[j]);
	}
	rc = rnic_post_send(e->qp, wr, &bad);
	if (rc == 0)
		return op->count;
	printf("op %s: %s\n", op->text, rnic_strerror(rc));
	return bad ? (uint32_t)(bad - wr) : 0;
}

/* The first status that is not success; completions have to come in order. */
static int
reap(struct end *e, const struct op *op, uint32_t count)
{
	int first = RNIC_WC_SUCCESS;
	struct rnic_wc wc;
	uint32_t j;

	for (j = 0; j < count; j++) {
		if (!poll_one(e, &wc, 60000)) {
			printf("op %s: no completion of request %u\n", op->text, j);
			return -1;
		}
		if (wc.wr_id != j) {
			printf("op %s: completion of %llu, not %u\n", op->text,
			       (unsigned long long)wc.wr_id, j);
			return -1;
		}
		if (first == RNIC_WC_SUCCESS)
			first = wc.status;
	}
	return first;
}

/* What a read or an atomic brought back. */
static bool
check_back(struct end *e, const struct op *op)
{
	uint32_t j, i;
	uint64_t got, want;

	for (j = 0; j < op->count; j++) {
		const unsigned char *p = e->work + (size_t)j * op_stride(op);
		const unsigned char *m = e->model + (size_t)j * op_stride(op);

		if (op->def->flags & OP_READ && memcmp(p, m, op->len)) {
			for (i = 0; p[i] == m[i]; i++)
				;
			printf("op %s: request %u, byte %u is %02x, not %02x\n", op->text, j, i,
			       p[i], m[i]);
			return false;
		}
		if (!(op->def->flags & OP_ATOMIC))
			continue;
		memcpy(&got, p, 8);
		want = op_atomic_old(e, op, j);
		if (got != want) {
			printf("op %s: request %u brought %016llx, not %016llx\n", op->text, j,
			       (unsigned long long)got, (unsigned long long)want);
			return false;
		}
	}
	return true;
}

static bool
check_peer(struct end *e, const struct op *op, int status)
{
	char line[256] = "(nothing)";

	if (e->bare)
		return true;
	ex_say(&e->conn, "end %d", status);
	if (ex_hear(&e->conn, line, sizeof(line)) && !strcmp(line, "ok"))
		return true;
	printf("op %s: responder says %s\n", op->text, line);
	return false;
}

/* Which failures fit: IBTA classes, and what rxe makes of them. */
static bool
status_fits(const struct op *op, int status)
{
	unsigned int f = op->def->flags;

	if (f & OP_MAYFAIL)
		return status >= 0;
	if (!(f & OP_MUSTFAIL))
		return status == RNIC_WC_SUCCESS;
	if (f & OP_HOLD)
		return status == RNIC_WC_RNR_RETRY_EXC_ERR;
	if (f & (OP_TOOLONG | OP_UNALIGNED))
		return status == RNIC_WC_REM_INV_REQ_ERR || status == RNIC_WC_REM_OP_ERR;
	return status == RNIC_WC_REM_ACCESS_ERR;
}

static bool
run(struct end *e, const struct op *op)
{
	struct region r;
	uint32_t posted;
	bool right;
	int status;

	if (!fits(e, op)) {
		printf("op %s: does not fit\n", op->text);
		return false;
	}
	if (!announce(e, op, &r))
		return false;
	posted = post(e, op, &r);
	if (posted != op->count) {
		printf("op %s: %u of %u requests posted\n", op->text, posted, op->count);
		return false;
	}
	status = reap(e, op, posted);
	right = status_fits(op, status);
	if (right && status == RNIC_WC_SUCCESS && !(op->def->flags & (OP_MUSTFAIL | OP_MAYFAIL))) {
		right = check_back(e, op);
		model_apply(e, op);
	}
	if (status >= 0)
		right &= check_peer(e, op, status);
	if (op->def->flags & OP_WINDOW)
		last_window = r.rkey;
	printf("op %s: %s%s\n", op->text, status < 0 ? "lost" : rnic_wc_status_str(status),
	       right ? "" : " WRONG");
	fflush(stdout);
	return right;
}

int
initiator(struct end *e, char **ops)
{
	struct op op;
	uint32_t i;
	char **p;

	for (i = 0; i < e->repeat; i++)
		for (p = ops; *p; p++) {
			op_parse(&op, *p);
			op.seed = next_seed;
			next_seed += op.count;
			if (!run(e, &op))
				return 1;
			if (op.def->flags & (OP_MUSTFAIL | OP_MAYFAIL))
				goto out;
		}
out:
	if (!e->bare)
		ex_say(&e->conn, "quit");
	return 0;
}
