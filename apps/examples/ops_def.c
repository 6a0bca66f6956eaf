/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations, and what each leaves in the responder's buffer. */
#include <stdlib.h>
#include <string.h>

#include "ops.h"

const struct op_def op_defs[] = {
	{ "send", OPS_SEND, OP_RECV },
	{ "sendimm", OPS_SEND_IMM, OP_RECV | OP_IMM },
	{ "sendinv", OPS_SEND_INV, OP_RECV | OP_INV | OP_WINDOW | OP_CONTROL },
	{ "write", OPS_WRITE, OP_WRITE },
	{ "writeimm", OPS_WRITE_IMM, OP_WRITE | OP_RECV | OP_IMM },
	{ "mwwrite", OPS_WRITE, OP_WRITE | OP_WINDOW | OP_CONTROL },
	{ "read", OPS_READ, OP_READ },
	{ "copy", OPS_READ, OP_READ | OP_WRITE | OP_COPY },
	{ "cas", OPS_CAS, OP_ATOMIC },
	{ "casmiss", OPS_CAS, OP_ATOMIC | OP_MISS },
	{ "fadd", OPS_FADD, OP_ATOMIC },
	{ "rnr", OPS_SEND, OP_RECV | OP_HOLD | OP_CONTROL },
	{ "rnrfail", OPS_SEND, OP_RECV | OP_HOLD | OP_MUSTFAIL },
	{ "toolong", OPS_SEND, OP_RECV | OP_TOOLONG | OP_MUSTFAIL },
	{ "badkey-write", OPS_WRITE, OP_WRITE | OP_BADKEY | OP_MUSTFAIL },
	{ "badkey-read", OPS_READ, OP_READ | OP_BADKEY | OP_MUSTFAIL },
	{ "badkey-fadd", OPS_FADD, OP_ATOMIC | OP_BADKEY | OP_MUSTFAIL },
	{ "badvar-write", OPS_WRITE, OP_WRITE | OP_BADVAR | OP_MUSTFAIL },
	{ "badvar-read", OPS_READ, OP_READ | OP_BADVAR | OP_MUSTFAIL },
	{ "oob-write", OPS_WRITE, OP_WRITE | OP_OOB | OP_MUSTFAIL },
	{ "oob-read", OPS_READ, OP_READ | OP_OOB | OP_MUSTFAIL },
	{ "noperm-write", OPS_WRITE, OP_WRITE | OP_NOPERM | OP_MUSTFAIL | OP_CONTROL },
	{ "noperm-read", OPS_READ, OP_READ | OP_NOPERM | OP_MUSTFAIL | OP_CONTROL },
	{ "noperm-fadd", OPS_FADD, OP_ATOMIC | OP_NOPERM | OP_MUSTFAIL | OP_CONTROL },
	{ "stale-write", OPS_WRITE, OP_WRITE | OP_STALE | OP_MUSTFAIL | OP_CONTROL },
	{ "unaligned", OPS_FADD, OP_ATOMIC | OP_UNALIGNED | OP_MUSTFAIL },
	{ "badinv", OPS_SEND_INV, OP_RECV | OP_INV | OP_MAYFAIL },
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

const char *
op_how_name(const struct op *op)
{
	return op->how & HOW_SOLICITED ? "solicited" :
	       op->how & HOW_UNSOLICITED ? "unsolicited" : "";
}

bool
op_how_parse(struct op *op, const char *name)
{
	if (!strcmp(name, "inline"))
		op->how |= HOW_INLINE;
	else if (!strcmp(name, "solicited"))
		op->how |= HOW_SOLICITED;
	else if (!strcmp(name, "unsolicited"))
		op->how |= HOW_UNSOLICITED;
	else
		return !*name;
	return true;
}

/* The next part of the text, up to one of these characters or its end; false: too long. */
static bool
word(const char **p, const char *until, char *to, size_t size)
{
	size_t n = strcspn(*p, until);

	if (n >= size)
		return false;
	memcpy(to, *p, n);
	to[n] = 0;
	*p += n;
	return true;
}

static bool
number(const char *text, uint32_t *n)
{
	char *rest;
	unsigned long v = strtoul(text, &rest, 0);

	if (*text < '0' || *text > '9' || *rest || v > UINT32_MAX)
		return false;
	*n = (uint32_t)v;
	return true;
}

/* What can be asked for together. */
static bool
op_makes_sense(const struct op *op)
{
	unsigned int f = op->def->flags, max = f & OP_COPY ? MAX_LIST / 2 : MAX_LIST;

	/* An op that ends the QP, or that needs one key or wait, stands alone. */
	if (op->count > 1 && f & (OP_MUSTFAIL | OP_MAYFAIL | OP_INV | OP_HOLD))
		return false;
	if (op->how & HOW_INLINE && (op->len > MAX_INLINE || f & (OP_READ | OP_ATOMIC)))
		return false;
	if (op->how & (HOW_SOLICITED | HOW_UNSOLICITED) &&
	    (!(f & OP_RECV) || f & (OP_MUSTFAIL | OP_MAYFAIL | OP_HOLD)))
		return false;
	return op->count && op->count <= max;
}

bool
op_parse(struct op *op, const char *text)
{
	const char *p = text;
	char part[32];

	*op = (struct op){ .text = text, .len = 64, .count = 1 };
	if (!word(&p, ":*", part, sizeof(part)))
		return false;
	op->def = op_find(part);
	if (!op->def)
		return false;
	while (*p == ':') {
		p++;
		if (!word(&p, ":*", part, sizeof(part)) || !*part ||
		    (!number(part, &op->len) && !op_how_parse(op, part)))
			return false;
	}
	if (*p == '*' && !number(p + 1, &op->count))
		return false;
	if (op->def->flags & OP_ATOMIC)
		op->len = 8;
	return op_makes_sense(op);
}

uint32_t
op_stride(const struct op *op)
{
	return (op->len + 7) & ~7u;
}

uint64_t
op_span(const struct op *op)
{
	return (uint64_t)op_stride(op) * op->count * (op->def->flags & OP_COPY ? 2 : 1);
}

unsigned char
pattern(uint32_t seed, uint32_t i)
{
	return (unsigned char)(i ^ i >> 8 ^ i >> 16 ^ i >> 24 ^ seed * 29);
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
	if (op->def->opcode == OPS_FADD)
		return word + j * FADD_ADD;
	if (op->def->flags & OP_MISS || !j)
		return word;
	return CAS_SWAP + op->seed + j - 1;
}

/* The effect of an op that succeeded. */
void
model_apply(struct end *e, const struct op *op)
{
	uint64_t word = op_atomic_old(e, op, op->count);
	unsigned char *p = e->model;
	size_t stride = op_stride(op);

	if (op->def->flags & OP_ATOMIC)
		memcpy(e->model + e->buflen - ATOMIC_OFF, &word, 8);
	for (uint32_t j = 0; j < op->count; j++)
		if (op->def->flags & OP_COPY)
			memcpy(p + (2 * j + 1) * stride, p + 2 * j * stride, op->len);
		else if (op->def->flags & OP_WRITE)
			pattern_fill(p + j * stride, op->len, op->seed + j);
}
