/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: gets ready for what the initiator announces and then
 * compares its whole buffer, and each receive, with what the op must have left.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "ops.h"

static char reason[200];
#define BAD(...) (snprintf(reason, sizeof(reason), __VA_ARGS__), false)

static bool
ready(struct end *e, const struct op *op)
{
	unsigned int f = op->def->flags;
	const char *why;
	uint32_t j;

	if (f & OP_HOLD && e->nrecv)
		return BAD("receives are posted");
	why = f & OP_WINDOW && !e->window ? ops_window(e) : NULL;
	if (why)
		return BAD("no memory window: %s", why);
	if (f & OP_RECV && !(f & OP_HOLD) && !e->nrecv) {
		if (!(f & OP_WRITE) && op->len > e->recvlen)
			return BAD("receives have %u bytes", e->recvlen);
		for (j = 0; j < op->count; j++)
			ops_post_recv(e, j);
	}
	e->armed = op->how & (HOW_SOLICITED | HOW_UNSOLICITED);
	return !e->armed || ops_arm(e) || BAD("no completion events");
}

static void
go(struct end *e, const struct op *op)
{
	uint32_t key = e->key;

	if (op->def->flags & OP_WINDOW)
		key = e->window;
	if (op->def->flags & OP_NOPERM)
		key = e->denied;
	ops_say(e, "go %016llx:%08x:%08x", (unsigned long long)(uintptr_t)e->buf, key, e->buflen);
	if (op->def->flags & OP_HOLD && !(op->def->flags & OP_MUSTFAIL)) {
		usleep(op->len * 1000);
		ops_post_recv(e, 0);
	}
}

static bool
check_recv(struct end *e, const struct op *op, const struct completion *c, uint32_t j)
{
	unsigned int f = op->def->flags;
	uint32_t at, len = f & OP_HOLD ? 64 : op->len, imm = 0xcafe0000 + op->seed + j;

	if (c->status != OPS_SUCCESS)
		return BAD("receive %u: %s", j, ops_status_name(c->status));
	if (c->byte_len != len)
		return BAD("receive %u: %u bytes, not %u", j, c->byte_len, len);
	if (c->with_imm != !!(f & OP_IMM) || (c->with_imm && c->imm != imm))
		return BAD("receive %u: immediate %d %x", j, c->with_imm, c->imm);
	if (c->with_inv != !!(f & OP_INV) || (c->with_inv && c->key != e->window))
		return BAD("receive %u: invalidated %d %x", j, c->with_inv, c->key);
	if (!c->recv || c->write != !!(f & OP_WRITE))
		return BAD("receive %u: of another opcode", j);
	if (!c->write && !pattern_check(e->recv + c->wr_id * e->recvlen, len, op->seed + j, &at))
		return BAD("receive %u: wrong byte at %u", j, at);
	return true;
}

/* Asleep until the last of the list wakes us; then all of it is there. */
static bool
check_recvs(struct end *e, const struct op *op)
{
	struct completion c;
	uint32_t j;

	if (op->how & HOW_SOLICITED && !ops_woken(e, 5000))
		return BAD("no event for the solicited one");
	for (j = 0; j < op->count; j++) {
		if (!ops_poll(e, &c, op->how & HOW_SOLICITED ? 0 : 5000))
			return BAD("receive %u: no completion", j);
		if (!check_recv(e, op, &c, j))
			return false;
		if (e->nrecv)
			ops_post_recv(e, (uint32_t)c.wr_id);
	}
	if (op->how & (HOW_SOLICITED | HOW_UNSOLICITED) && ops_woken(e, 0))
		return BAD("an event that nobody solicited");
	return true;
}

static bool
check(struct end *e, const struct op *op, int status)
{
	unsigned int f = op->def->flags;
	struct completion c;
	uint32_t i;

	if (!status && !(f & (OP_MUSTFAIL | OP_MAYFAIL))) {
		if (f & OP_RECV && !check_recvs(e, op))
			return false;
		model_apply(e, op);
	}
	if (f & OP_MUSTFAIL && f & OP_RECV && !(f & OP_HOLD) && !e->nrecv &&
	    (!ops_poll(e, &c, 5000) || c.status == OPS_SUCCESS))
		return BAD("the receive did not fail");
	if (!(f & OP_MAYFAIL) && !e->nrecv && ops_poll(e, &c, 0))
		return BAD("completion too many: %s", ops_status_name(c.status));
	for (i = 0; i < e->buflen; i++)
		if (e->buf[i] != e->model[i])
			return BAD("byte %u is %02x, not %02x", i, e->buf[i], e->model[i]);
	if (f & OP_INV && f & OP_WINDOW)
		ops_window_gone(e);
	return true;
}

/* "op NAME LEN COUNT SEED [HOW]" */
static bool
understand(const struct end *e, const char *line, struct op *op)
{
	char name[32], how[32] = "";

	*op = (struct op){ 0 };
	if (sscanf(line, "op %31s %u %u %u %31s", name, &op->len, &op->count, &op->seed, how) < 4)
		return false;
	op->def = op_find(name);
	if (!op->def || !op_how_parse(op, how) || !op->count || op->count > MAX_LIST)
		return false;
	return op->def->flags & OP_HOLD ||
	       (op->len <= e->buflen && op_span(op) <= e->buflen - ATOMIC_OFF);
}

/* One op from its "op" line to the answer to its "end" line. */
static bool
serve(struct end *e, const char *line)
{
	char end[64];
	struct op op;
	int status;

	if (!understand(e, line, &op)) {
		ops_say(e, "no such op");
		printf("not understood: %s\n", line);
		return false;
	}
	if (!ready(e, &op)) {
		ops_say(e, "no %s", reason);
		printf("op %s:%u*%u: %s\n", op.def->name, op.len, op.count, reason);
		return false;
	}
	go(e, &op);
	if (!ops_hear(e, end, sizeof(end)) || sscanf(end, "end %d", &status) != 1) {
		printf("op %s:%u*%u: the initiator has gone\n", op.def->name, op.len, op.count);
		return false;
	}
	if (check(e, &op, status)) {
		ops_say(e, "ok");
		printf("op %s:%u*%u: ok\n", op.def->name, op.len, op.count);
		fflush(stdout);
		return true;
	}
	ops_say(e, "bad %s", reason);
	printf("op %s:%u*%u: WRONG: %s\n", op.def->name, op.len, op.count, reason);
	return false;
}

/* An initiator without control lines: say what arrives, keep receives posted. */
static void
watch(struct end *e)
{
	struct pollfd p = { .fd = e->fd, .events = POLLIN };
	struct completion c;

	while (poll(&p, 1, 5) == 0)
		while (e->nrecv && ops_poll(e, &c, 0)) {
			printf("receive: %s len %u imm %x first %02x\n", ops_status_name(c.status),
			       c.byte_len, c.with_imm ? c.imm : 0, e->recv[c.wr_id * e->recvlen]);
			fflush(stdout);
			if (c.status == OPS_SUCCESS)
				ops_post_recv(e, (uint32_t)c.wr_id);
		}
}

int
responder(struct end *e)
{
	char line[128];

	watch(e);
	while (ops_hear(e, line, sizeof(line)) && strcmp(line, "quit"))
		if (!serve(e, line))
			return 1;
	return 0;
}
