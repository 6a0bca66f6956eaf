/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator: posts, waits, compares with its model of the peer. */
#include <string.h>

#include "ops.h"

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
	ops_say(e, "op %s %u %u %u %s", op->def->name, op->len, op->count, op->seed,
		op_how_name(op));
	if (!ops_hear(e, line, sizeof(line)) ||
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
	return op_span(op) <= room - ATOMIC_OFF;
}

/* Where request j goes; block is its place in the peer's buffer. */
static void
aim(const struct op *op, const struct region *r, uint32_t block, struct request *q)
{
	unsigned int f = op->def->flags;

	q->remote_addr = r->addr + (uint64_t)block * op_stride(op);
	q->rkey = r->rkey;
	if (f & OP_ATOMIC)
		q->remote_addr = r->addr + r->len - ATOMIC_OFF;
	if (f & OP_UNALIGNED)
		q->remote_addr += 4;
	if (f & OP_OOB)
		q->remote_addr = r->addr + r->len - op->len / 2;
	if (f & OP_BADKEY)
		q->rkey ^= 0x5a5a5a00;
	if (f & OP_BADVAR)
		q->rkey ^= 1;
	if (f & OP_STALE)
		q->rkey = last_window;
	q->invalidate = f & OP_WINDOW ? q->rkey : 0xdeadbe00;
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

static void
atomic_operands(const struct end *e, const struct op *op, uint32_t j, struct request *q)
{
	uint64_t old = op_atomic_old(e, op, j);

	if (op->def->opcode == OPS_FADD) {
		q->compare_add = FADD_ADD;
	} else {
		q->compare_add = op->def->flags & OP_MISS ? ~old : old;
		q->swap = CAS_SWAP + op->seed + j;
	}
}

static void
build(struct end *e, const struct op *op, const struct region *r, uint32_t j, struct request *q)
{
	unsigned int f = op->def->flags;

	*q = (struct request){ .opcode = op->def->opcode, .len = wire_len(e, op) };
	q->p = e->work + (size_t)j * op_stride(op);
	if (f & (OP_READ | OP_ATOMIC))
		memset(q->p, 0xa5, q->len);
	else
		pattern_fill(q->p, q->len, op->seed + j);
	q->imm = 0xcafe0000 + op->seed + j;
	q->inlined = op->how & HOW_INLINE;
	q->solicited = op->how & HOW_SOLICITED && j + 1 == op->count;
	aim(op, r, f & OP_COPY ? 2 * j : j, q);
	if (f & OP_ATOMIC)
		atomic_operands(e, op, j, q);
}

/* The WRITE of what the READ before it brings: right only if it waits for that. */
static void
build_copy(const struct op *op, const struct request *read, struct request *q)
{
	*q = *read;
	q->opcode = OPS_WRITE;
	q->remote_addr += op_stride(op);
	q->fence = true;
}

static uint32_t
requests(const struct op *op)
{
	return op->def->flags & OP_COPY ? 2 * op->count : op->count;
}

/* The whole list by one call; returns whether it was taken. */
static bool
post(struct end *e, const struct op *op, const struct region *r)
{
	struct request q[MAX_LIST], *next = q;
	uint32_t n = requests(op), taken;

	for (uint32_t j = 0; j < op->count; j++) {
		build(e, op, r, j, next++);
		if (op->def->flags & OP_COPY) {
			build_copy(op, next - 1, next);
			next++;
		}
	}
	taken = ops_post(e, q, n);
	if (taken != n)
		printf("op %s: %u of %u requests posted\n", op->text, taken, n);
	return taken == n;
}

/* The first status that is not success; completions have to come in order. */
static int
reap(struct end *e, const struct op *op)
{
	int first = OPS_SUCCESS;
	struct completion c;
	uint32_t j;

	for (j = 0; j < requests(op); j++) {
		if (!ops_poll(e, &c, 60000)) {
			printf("op %s: no completion of request %u\n", op->text, j);
			return -1;
		}
		if (c.wr_id != j) {
			printf("op %s: completion of %llu, not %u\n", op->text,
			       (unsigned long long)c.wr_id, j);
			return -1;
		}
		if (first == OPS_SUCCESS)
			first = c.status;
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
		const unsigned char *m = e->model + (op->def->flags & OP_COPY ? 2 : 1) *
						    (size_t)j * op_stride(op);

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
	ops_say(e, "end %d", status);
	if (ops_hear(e, line, sizeof(line)) && !strcmp(line, "ok"))
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
		return status == OPS_SUCCESS;
	if (f & OP_HOLD)
		return status == OPS_RNR_RETRY_EXC_ERR;
	if (f & (OP_TOOLONG | OP_UNALIGNED))
		return status == OPS_REM_INV_REQ_ERR || status == OPS_REM_OP_ERR;
	return status == OPS_REM_ACCESS_ERR;
}

static bool
run(struct end *e, const struct op *op)
{
	struct region r;
	bool right;
	int status;

	if (!fits(e, op)) {
		printf("op %s: does not fit\n", op->text);
		return false;
	}
	if (!announce(e, op, &r))
		return false;
	if (!post(e, op, &r))
		return false;
	status = reap(e, op);
	right = status_fits(op, status);
	if (right && status == OPS_SUCCESS && !(op->def->flags & (OP_MUSTFAIL | OP_MAYFAIL))) {
		right = check_back(e, op);
		model_apply(e, op);
	}
	if (status >= 0)
		right &= check_peer(e, op, status);
	if (op->def->flags & OP_WINDOW)
		last_window = r.rkey;
	printf("op %s: %s%s\n", op->text, status < 0 ? "lost" : ops_status_name(status),
	       right ? "" : " WRONG");
	fflush(stdout);
	return right;
}

int
initiator(struct end *e)
{
	struct op op;
	uint32_t i;
	char **p;

	for (i = 0; i < e->repeat; i++)
		for (p = e->ops; *p; p++) {
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
		ops_say(e, "quit");
	return 0;
}
