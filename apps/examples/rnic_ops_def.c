/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of rnic_ops, and what each leaves in the responder's buffer. */
#include <stdlib.h>
#include <string.h>

#include "rnic_ops.h"

#define CAS_SWAP 0x99aabbccddeeff00ull
#define FADD_ADD 0x0102030405060708ull

const struct op_def op_defs[] = {
	{ "send", RNIC_WR_SEND, OP_RECV },
	{ "sendimm", RNIC_WR_SEND_WITH_IMM, OP_RECV | OP_IMM },
	{ "sendinv", RNIC_WR_SEND_WITH_INV, OP_RECV | OP_INV | OP_WINDOW | OP_CONTROL },
	{ "write", RNIC_WR_RDMA_WRITE, OP_WRITE },
	{ "writeimm", RNIC_WR_RDMA_WRITE_WITH_IMM, OP_WRITE | OP_RECV | OP_IMM },
	{ "mwwrite", RNIC_WR_RDMA_WRITE, OP_WRITE | OP_WINDOW | OP_CONTROL },
	{ "read", RNIC_WR_RDMA_READ, OP_READ },
	{ "cas", RNIC_WR_ATOMIC_CMP_AND_SWP, OP_ATOMIC },
	{ "casmiss", RNIC_WR_ATOMIC_CMP_AND_SWP, OP_ATOMIC | OP_MISS },
	{ "fadd", RNIC_WR_ATOMIC_FETCH_AND_ADD, OP_ATOMIC },
	{ "rnr", RNIC_WR_SEND, OP_RECV | OP_HOLD | OP_CONTROL },
	{ "rnrfail", RNIC_WR_SEND, OP_RECV | OP_HOLD | OP_MUSTFAIL },
	{ "toolong", RNIC_WR_SEND, OP_RECV | OP_TOOLONG | OP_MUSTFAIL },
	{ "badkey-write", RNIC_WR_RDMA_WRITE, OP_WRITE | OP_BADKEY | OP_MUSTFAIL },
	{ "badkey-read", RNIC_WR_RDMA_READ, OP_READ | OP_BADKEY | OP_MUSTFAIL },
	{ "badkey-fadd", RNIC_WR_ATOMIC_FETCH_AND_ADD, OP_ATOMIC | OP_BADKEY | OP_MUSTFAIL },
	{ "badvar-write", RNIC_WR_RDMA_WRITE, OP_WRITE | OP_BADVAR | OP_MUSTFAIL },
	{ "badvar-read", RNIC_WR_RDMA_READ, OP_READ | OP_BADVAR | OP_MUSTFAIL },
	{ "oob-write", RNIC_WR_RDMA_WRITE, OP_WRITE | OP_OOB | OP_MUSTFAIL },
	{ "oob-read", RNIC_WR_RDMA_READ, OP_READ | OP_OOB | OP_MUSTFAIL },
	{ "noperm-write", RNIC_WR_RDMA_WRITE, OP_WRITE | OP_NOPERM | OP_MUSTFAIL | OP_CONTROL },
	{ "noperm-read", RNIC_WR_RDMA_READ, OP_READ | OP_NOPERM | OP_MUSTFAIL | OP_CONTROL },
	{ "noperm-fadd", RNIC_WR_ATOMIC_FETCH_AND_ADD,
	  OP_ATOMIC | OP_NOPERM | OP_MUSTFAIL | OP_CONTROL },
	{ "stale-write", RNIC_WR_RDMA_WRITE, OP_WRITE | OP_STALE | OP_MUSTFAIL | OP_CONTROL },
	{ "unaligned", RNIC_WR_ATOMIC_FETCH_AND_ADD, OP_ATOMIC | OP_UNALIGNED | OP_MUSTFAIL },
	{ "badinv", RNIC_WR_SEND_WITH_INV, OP_RECV | OP_INV | OP_MAYFAIL },
	{ 0 },
};

const struct op_def *
op_find(const char *name)
{
	const struct op_def *d;

	for (d = op_defs; d->name && strcmp(d->name, name); d++)
		;
	return d->name ? d : NULL;
}

bool
op_parse(struct op *op, const char *text)
{
	char name[32];
	const char *p = text + strcspn(text, ":*");
	char *rest;

	*op = (struct op){ .text = text, .len = 64, .count = 1 };
	if ((size_t)(p - text) >= sizeof(name))
		return false;
	memcpy(name, text, p - text);
	name[p - text] = 0;
	op->def = op_find(name);
	if (!op->def)
		return false;
	if (*p == ':') {
		op->len = strtoul(p + 1, &rest, 0);
		p = rest;
	}
	if (*p == '*') {
		op->count = strtoul(p + 1, &rest, 0);
		p = rest;
	}
	if (op->def->flags & OP_ATOMIC)
		op->len = 8;
	/* An op that ends the QP, or that needs one key or wait, stands alone. */
	if (op->count > 1 && op->def->flags & (OP_MUSTFAIL | OP_MAYFAIL | OP_INV | OP_HOLD))
		return false;
	return !*p && op->count && op->count <= MAX_LIST;
}

uint32_t
op_stride(const struct op *op)
{
	return (op->len + 7) & ~7u;
}

unsigned char
pattern(uint32_t seed, uint32_t i)
{
	return i ^ i >> 8 ^ i >> 16 ^ seed * 29;
}

void
pattern_fill(unsigned char *p, uint32_t len, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		p[i] = pattern(seed, i);
}

bool
pattern_check(const unsigned char *p, uint32_t len, uint32_t seed, uint32_t *at)
{
	for (*at = 0; *at < len; ++*at)
		if (p[*at] != pattern(seed, *at))
			return false;
	return true;
}

/* What request j of an atomic list finds; the model does not have the list yet. */
uint64_t
op_atomic_old(const struct end *e, const struct op *op, uint32_t j)
{
	uint64_t word;

	memcpy(&word, e->model + e->buflen - ATOMIC_OFF, 8);
	if (op->def->opcode == RNIC_WR_ATOMIC_FETCH_AND_ADD)
		return word + j * FADD_ADD;
	if (op->def->flags & OP_MISS || !j)
		return word;
	return CAS_SWAP + op->seed + j - 1;
}

void
op_atomic(const struct end *e, const struct op *op, uint32_t j, struct rnic_send_wr *wr)
{
	uint64_t old = op_atomic_old(e, op, j);

	if (op->def->opcode == RNIC_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.compare_add = FADD_ADD;
	} else {
		wr->wr.atomic.compare_add = op->def->flags & OP_MISS ? ~old : old;
		wr->wr.atomic.swap = CAS_SWAP + op->seed + j;
	}
}

/* The effect of an op that succeeded. */
void
model_apply(struct end *e, const struct op *op)
{
	uint64_t word = op_atomic_old(e, op, op->count);
	uint32_t j;

	if (op->def->flags & OP_ATOMIC)
		memcpy(e->model + e->buflen - ATOMIC_OFF, &word, 8);
	if (op->def->flags & OP_WRITE)
		for (j = 0; j < op->count; j++)
			pattern_fill(e->model + (size_t)j * op_stride(op), op->len, op->seed + j);
}
