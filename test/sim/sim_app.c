/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The application of an endpoint: posts random requests through the client's side of the rings.
 * What a request must do to memory is entered into the model as it is posted.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/** A request being made. */
struct draft {
	struct sim_op op;
	struct ring_wqe head;
	struct ring_sge sge[RING_MAX_SGE];
	uint8_t data[RING_MAX_INLINE];
	uint32_t inline_len;
	uint32_t below, access; /* of a bind */
};

static uint8_t
draw_opcode(struct sim_ep *ep)
{
	static const uint8_t often[] = {
		RING_WR_SEND, RING_WR_SEND, RING_WR_SEND, RING_WR_SEND_WITH_IMM,
		RING_WR_RDMA_WRITE, RING_WR_RDMA_WRITE, RING_WR_RDMA_WRITE, RING_WR_RDMA_WRITE,
		RING_WR_RDMA_WRITE_WITH_IMM, RING_WR_RDMA_READ, RING_WR_RDMA_READ,
		RING_WR_RDMA_READ, RING_WR_ATOMIC_CMP_AND_SWP, RING_WR_ATOMIC_FETCH_AND_ADD,
		RING_WR_ATOMIC_WRITE, RING_WR_FLUSH,
	};

	uint8_t op = often[rng_below(&ep->rng, sizeof(often))];

	/* what UC has not stands behind what it has */
	return sim_is_uc(ep->s) ? often[rng_below(&ep->rng, 9)] : op;
}

/** Lengths near the borders of packets more often than others. */
static uint32_t
draw_len(struct sim_ep *ep, uint32_t max)
{
	const uint32_t mtu = ep->mtu;
	const uint32_t edge[] = {0, 1, 7, 8, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu,
				 2 * mtu + 1, 3 * mtu + 5, 4 * mtu};
	uint32_t len;

	switch (rng_below(&ep->rng, 8)) {
	case 0:
	case 1:
	case 2:
		len = edge[rng_below(&ep->rng, 12)];
		break;
	case 3:
	case 4:
		len = rng_below(&ep->rng, 200);
		break;
	case 5:
	case 6:
		len = rng_below(&ep->rng, 6 * mtu);
		break;
	default:
		len = rng_below(&ep->rng, 70000);
	}
	if (sim_chance(&ep->rng, ep->s->prof->big))
		len = rng_below(&ep->rng, SIM_MAX_LEN + 1);
	return len <= max ? len : rng_below(&ep->rng, max + 1);
}

/** Ranges of a part that have `len` bytes in all; false: no room now. */
static bool
draw_ranges(struct sim_ep *ep, enum sim_part part, uint32_t len, uint32_t most,
	    struct sim_range *r, uint8_t *num)
{
	uint32_t n = rng_below(&ep->rng, 3) ? 1 : sim_between(&ep->rng, 1, most);

	if (len == 0)
		n = rng_below(&ep->rng, 3);
	*num = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t cut = len;

		if (i + 1 < n && rng_below(&ep->rng, 6))
			cut = rng_below(&ep->rng, len + 1);
		else if (i + 1 < n)
			cut = 0;
		if (!sim_alloc(ep, part, cut, &r[i]))
			break;
		(*num)++;
		len -= cut;
	}
	if (len == 0)
		return true;
	while (*num)
		sim_free(ep, &r[--*num]);
	return false;
}

/** Name ranges by keys; elements of no bytes may name anything. */
static void
name_ranges(struct sim_ep *ep, const struct sim_range *r, uint32_t num, uint32_t access,
	    struct ring_sge *sge)
{
	for (uint32_t i = 0; i < num; i++) {
		const struct sim_key *k = sim_key_pick(ep, access);

		sge[i] = (struct ring_sge){k->iova + r[i].off, r[i].len, k->key};
		if (r[i].len == 0 && rng_below(&ep->rng, 2))
			sge[i] = (struct ring_sge){rng_u64(&ep->rng), 0, rng_u32(&ep->rng)};
	}
}

/* ---- parts of a request ---------- */

/** Payload out of memory of the endpoint, or inline. */
static bool
draft_payload(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	op->seed = rng_u64(&ep->rng);
	sim_pattern(op->seed, sim_scratch(), op->len);
	if (op->len <= ep->max_inline && rng_below(&ep->rng, 3) == 0) {
		op->flags |= RING_WR_INLINE;
		memcpy(d->data, sim_scratch(), op->len);
		d->inline_len = op->len;
		return true;
	}
	if (!draw_ranges(ep, PART_SRC, op->len, RING_MAX_SGE, op->range, &op->num))
		return false;
	sim_range_scatter(ep, ep->mem, op->range, op->num, sim_scratch(), op->len);
	sim_range_scatter(ep, ep->model, op->range, op->num, sim_scratch(), op->len);
	name_ranges(ep, op->range, op->num, 0, d->sge);
	return true;
}

static bool
draft_sink(struct sim_ep *ep, struct draft *d, uint32_t most)
{
	struct sim_op *op = &d->op;

	if (!draw_ranges(ep, PART_SINK, op->len, most, op->range, &op->num))
		return false;
	if (most == 1 && op->num != 1)
		return false;
	name_ranges(ep, op->range, op->num, MR_LOCAL_WRITE, d->sge);
	return true;
}

static bool
overlaps(uint32_t a, uint32_t alen, uint32_t b, uint32_t blen)
{
	return a < b + blen && b < a + alen;
}

/** Whether a READ is out whose bytes a WRITE would change: it may be read again. */
static bool
read_is_out(const struct sim_ep *ep, uint32_t off, uint32_t len)
{
	for (uint32_t i = ep->op_head; i != ep->op_tail; i++) {
		const struct sim_op *op = &ep->op[i % SIM_OPS];

		if (op->opcode == RING_WR_RDMA_READ && overlaps(off, len, op->target, op->len))
			return true;
	}
	return false;
}

/** A range of the peer's memory and a name for it. */
static bool
draft_target(struct sim_ep *ep, struct draft *d, uint32_t access)
{
	struct sim_ep *peer = ep->peer;
	uint32_t first = PART_TGT * peer->part_size + SIM_WORDS * 8;
	uint32_t room = peer->part_size - SIM_WORDS * 8;
	const struct sim_key *k = sim_key_pick(peer, access);

	if (k == NULL)
		return false;
	d->op.target = first + rng_below(&ep->rng, room - d->op.len + 1);
	d->op.raddr = k->iova + d->op.target;
	d->op.rkey = k->key;
	if (d->op.len == 0 && rng_below(&ep->rng, 2)) {
		d->op.raddr = rng_u64(&ep->rng); /* not looked at (C-16) */
		d->op.rkey = rng_u32(&ep->rng);
	}
	return true;
}

static bool
draft_message(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	op->consumes = true;
	op->imm = rng_u32(&ep->rng);
	if (rng_below(&ep->rng, 4) == 0)
		op->flags |= RING_WR_SOLICITED;
	if (op->opcode == RING_WR_RDMA_WRITE_WITH_IMM)
		return true;
	op->len = draw_len(ep, ep->peer->recv_max);
	return draft_payload(ep, d);
}

static bool
draft_write(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	op->len = draw_len(ep, ep->part_size / 4);
	if (!draft_target(ep, d, MR_REMOTE_WRITE) || !draft_payload(ep, d))
		return false;
	op->has_target = op->len > 0;
	if (read_is_out(ep, op->target, op->len))
		op->flags |= RING_WR_FENCE;
	return true;
}

static bool
draft_read(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	op->len = draw_len(ep, ep->part_size / 4);
	if (!draft_target(ep, d, MR_REMOTE_READ) || !draft_sink(ep, d, RING_MAX_SGE))
		return false;
	op->unsure = memchr(ep->peer->taint + op->target, 1, op->len) != NULL;
	op->expect = malloc(op->len + 1);
	if (op->expect == NULL)
		abort();
	memcpy(op->expect, ep->peer->model + op->target, op->len);
	return true;
}

static bool
draft_atomic(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;
	const struct sim_key *k = sim_key_pick(ep->peer, MR_REMOTE_ATOMIC);
	uint64_t word;

	op->len = 8;
	if (k == NULL || !draft_sink(ep, d, 1))
		return false;
	op->target = PART_TGT * ep->peer->part_size + 8 * rng_below(&ep->rng, SIM_WORDS);
	op->raddr = k->iova + op->target;
	op->rkey = k->key;
	op->has_target = true;
	op->unsure = memchr(ep->peer->taint + op->target, 1, 8) != NULL;
	memcpy(&word, ep->peer->model + op->target, 8);
	op->original = word;
	op->compare_add = rng_u64(&ep->rng);
	op->swap = rng_u64(&ep->rng);
	if (op->opcode == RING_WR_ATOMIC_CMP_AND_SWP && rng_below(&ep->rng, 2))
		op->compare_add = word;
	return true;
}

/** One of the words that atomics are done on. */
static bool
draft_atomic_write(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;
	const struct sim_key *k = sim_key_pick(ep->peer, MR_REMOTE_WRITE);

	op->len = 8;
	if (k == NULL || !draft_payload(ep, d))
		return false;
	if (!(op->flags & RING_WR_INLINE) && op->num != 1)
		return false;
	op->target = PART_TGT * ep->peer->part_size + 8 * rng_below(&ep->rng, SIM_WORDS);
	op->raddr = k->iova + op->target;
	op->rkey = k->key;
	op->has_target = true;
	return true;
}

static bool
draft_flush(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;
	const struct sim_key *k = sim_key_pick(ep->peer, MR_FLUSH_GLOBAL);

	if (k == NULL)
		return false;
	op->len = draw_len(ep, ep->peer->mem_size);
	op->target = rng_below(&ep->rng, ep->peer->mem_size - op->len + 1);
	op->raddr = k->iova + op->target;
	op->rkey = k->key;
	op->flush = 1;
	if (rng_below(&ep->rng, 4) == 0) { /* all of it */
		op->flush |= 1 << 4;
		op->raddr = rng_u64(&ep->rng);
	}
	return true;
}

/** All of a region below it, at an address of its own where it may have one. */
static bool
draft_bind(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;
	const struct sim_key *below = sim_key_below(ep);
	struct sim_key *k = sim_key_unbound(ep);
	uint32_t access;

	if (k == NULL || (k->kind == KEY_FAST && ep->list_busy))
		return false;
	op->opcode = k->kind == KEY_FAST ? RING_WR_FAST_REG : RING_WR_BIND_MW;
	op->binds = k;
	access = MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_FLUSH_GLOBAL;
	op->new_iova = below->iova;
	op->rkey = (k->key & ~0xffu) | rng_below(&ep->rng, 256);
	if (k->type != MR_TYPE_WINDOW_1 && rng_below(&ep->rng, 4) == 0) {
		access |= MR_ZERO_BASED;
		op->new_iova = 0;
	}
	d->below = below->key;
	d->access = access;
	op->raddr = k->kind == KEY_FAST ? op->new_iova : below->iova;
	k->busy = true;
	k->alive = k->gone = false;
	k->access = access & ~(uint32_t)MR_ZERO_BASED;
	ep->list_busy |= k->kind == KEY_FAST;
	return true;
}

/** Pieces of a region in their order, so that the new name is for all of the memory. */
static uint32_t
draw_list(struct sim_ep *ep, uint64_t iova, uint32_t lkey)
{
	uint32_t n = 0, off = 0;

	while (off < ep->mem_size) {
		uint32_t len = sim_between(&ep->rng, 8, ep->mem_size) & ~7u;

		if (n == SIM_LIST - 1 || len > ep->mem_size - off)
			len = ep->mem_size - off;
		ep->list[n++] = (struct ring_sge){iova + off, len, lkey};
		off += len;
	}
	return n;
}

/** End a key: by the peer's SEND, or a local invalidate. */
static bool
draft_invalidate(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;
	bool local = rng_below(&ep->rng, 2) || sim_is_uc(ep->s);
	struct sim_ep *owner = local ? ep : ep->peer;
	struct sim_key *k = sim_key_bound(owner);

	if (k == NULL)
		return draft_bind(ep, d);
	op->inval = k;
	op->opcode = local ? RING_WR_LOCAL_INV : RING_WR_SEND_WITH_INV;
	if (!local) {
		op->consumes = true;
		op->len = draw_len(ep, ep->peer->recv_max);
		if (!draft_payload(ep, d))
			return false;
		k->gone = true; /* for all that is posted behind it */
	}
	k->busy = true;
	k->alive = false;
	op->imm = k->key;
	return true;
}

static bool
draft_good(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	if (sim_chance(&ep->rng, ep->s->prof->inval))
		return rng_below(&ep->rng, 3) ? draft_invalidate(ep, d) : draft_bind(ep, d);
	op->opcode = draw_opcode(ep);
	switch (op->opcode) {
	case RING_WR_RDMA_WRITE:
		return draft_write(ep, d);
	case RING_WR_RDMA_WRITE_WITH_IMM:
		return draft_message(ep, d) && draft_write(ep, d);
	case RING_WR_RDMA_READ:
		return draft_read(ep, d);
	case RING_WR_ATOMIC_CMP_AND_SWP:
	case RING_WR_ATOMIC_FETCH_AND_ADD:
		return draft_atomic(ep, d);
	case RING_WR_ATOMIC_WRITE:
		return draft_atomic_write(ep, d);
	case RING_WR_FLUSH:
		return draft_flush(ep, d);
	default:
		return draft_message(ep, d);
	}
}

/* ---- requests that must fail ---------- */

/** What the peer will not execute: an error of it, or on UC nothing that anybody hears of. */
static void
refused(const struct sim_ep *ep, struct draft *d, uint32_t statuses)
{
	if (sim_is_uc(ep->s))
		d->op.lost = true;
	else
		d->op.bad = statuses;
}

/** A name of the peer's memory that must be refused. */
static void
spoil_target(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;
	const struct sim_ep *peer = ep->peer;
	const struct sim_key *k = &peer->key[0];

	switch (rng_below(&ep->rng, 4)) {
	case 0:
		op->rkey ^= 1u << rng_below(&ep->rng, 32);
		break;
	case 1: /* over the end */
		op->rkey = k->key;
		op->raddr = k->iova + peer->mem_size - op->len + 1 + rng_below(&ep->rng, 64);
		break;
	case 2: /* before the beginning, or far away */
		op->rkey = k->key;
		op->raddr = k->iova - 1 - rng_below(&ep->rng, 64);
		break;
	default: /* lacks all rights */
		for (uint32_t i = 0; i < peer->num_keys; i++)
			if (!(peer->key[i].access & MR_REMOTE_READ) && peer->key[i].alive) {
				op->rkey = peer->key[i].key;
				op->raddr = peer->key[i].iova + op->target;
				return;
			}
		op->rkey = 0;
	}
}

static bool
draft_bad_rdma(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	op->opcode = rng_below(&ep->rng, 2) || sim_is_uc(ep->s) ? RING_WR_RDMA_WRITE
								: RING_WR_RDMA_READ;
	if (!(op->opcode == RING_WR_RDMA_WRITE ? draft_write(ep, d) : draft_read(ep, d)))
		return false;
	if (op->len == 0)
		return false;
	spoil_target(ep, d);
	op->has_target = false;
	refused(ep, d, 1u << WC_REM_ACCESS_ERR);
	return true;
}

static bool
draft_bad_atomic(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	op->opcode = rng_below(&ep->rng, 2) ? RING_WR_ATOMIC_CMP_AND_SWP
					    : RING_WR_ATOMIC_FETCH_AND_ADD;
	if (!draft_atomic(ep, d))
		return false;
	op->has_target = false;
	if (rng_below(&ep->rng, 2)) {
		op->raddr += sim_between(&ep->rng, 1, 7);
		op->bad = 1u << WC_REM_INV_REQ_ERR; /* C-37 */
	} else {
		op->rkey ^= 1u << rng_below(&ep->rng, 32);
		op->bad = 1u << WC_REM_ACCESS_ERR;
	}
	return true;
}

/** A local key that is none, or a memory that may not be written. */
static bool
draft_bad_local(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;
	bool read = rng_below(&ep->rng, 2) && !sim_is_uc(ep->s);
	uint32_t i;

	op->opcode = read ? RING_WR_RDMA_READ : RING_WR_RDMA_WRITE;
	if (!(read ? draft_read(ep, d) : draft_write(ep, d)))
		return false;
	if (op->len == 0 || (op->flags & RING_WR_INLINE))
		return false;
	for (i = 0; op->range[i].len == 0; i++)
		;
	d->sge[i].lkey ^= 1u << rng_below(&ep->rng, 32);
	op->bad = 1u << WC_LOC_PROT_ERR;
	return true;
}

static bool
draft_too_long(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	op->opcode = RING_WR_SEND;
	op->consumes = true;
	op->len = ep->peer->recv_max + 65 + rng_below(&ep->rng, 3 * ep->mtu);
	refused(ep, d, 1u << WC_REM_INV_REQ_ERR);
	return draft_payload(ep, d);
}

static bool
draft_malformed(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	op->opcode = 12;
	if (sim_is_uc(ep->s) && rng_below(&ep->rng, 2))
		op->opcode = RING_WR_RDMA_READ; /* not of this type */
	op->bad = 1u << WC_LOC_QP_OP_ERR;
	return true;
}

static bool
draft_bad(struct sim_ep *ep, struct draft *d)
{
	switch (rng_below(&ep->rng, 5)) {
	case 0:
		return draft_bad_rdma(ep, d);
	case 1:
		if (!sim_is_uc(ep->s))
			return draft_bad_atomic(ep, d);
		/* fall through */
	case 2:
		return draft_bad_local(ep, d);
	case 3:
		return draft_too_long(ep, d);
	default:
		return draft_malformed(ep, d);
	}
}

/** Name a key that has been invalidated. */
static bool
draft_gone(struct sim_ep *ep, struct draft *d)
{
	for (uint32_t i = 0; i < ep->peer->num_keys; i++) {
		const struct sim_key *k = &ep->peer->key[i];

		if (k->kind < KEY_WINDOW || !k->gone)
			continue;
		d->op.opcode = RING_WR_RDMA_WRITE;
		if (!draft_write(ep, d) || d->op.len == 0)
			return false;
		d->op.rkey = k->key;
		d->op.raddr = k->iova + d->op.target;
		d->op.has_target = false;
		refused(ep, d, 1u << WC_REM_ACCESS_ERR);
		return true;
	}
	return false;
}

/* ---- into the ring ---------- */

static uint32_t
draft_slots(const struct draft *d)
{
	if (d->op.flags & RING_WR_INLINE)
		return ring_wqe_slots_inline(d->inline_len);
	if (d->op.opcode == RING_WR_ATOMIC_CMP_AND_SWP ||
	    d->op.opcode == RING_WR_ATOMIC_FETCH_AND_ADD)
		return 1;
	return ring_wqe_slots_sge(d->op.num);
}

static void
put_bytes(struct ring_wq_prod *q, uint32_t at, const uint8_t *from, uint32_t len)
{
	for (uint32_t i = 0; len > 0; i++) {
		uint32_t n = len < RING_SLOT_SIZE ? len : RING_SLOT_SIZE;

		memcpy(ring_wq_slot(q, at + i), from, n);
		from += n;
		len -= n;
	}
}

static void
put_request(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;
	struct ring_wqe *h = &d->head;
	uint32_t more = op->num > RING_WQE_SGES ? op->num - RING_WQE_SGES : 0;
	uint32_t first = d->inline_len < 32 ? d->inline_len : 32;
	struct sim_key *k = op->binds;

	*h = (struct ring_wqe){.opcode = op->opcode, .flags = op->flags,
			       .num_slots = (uint8_t)op->slots, .num_sge = op->num,
			       .imm = op->imm, .rkey = op->rkey, .remote_addr = op->raddr};
	if (op->flags & RING_WR_INLINE) {
		h->inline_len = d->inline_len;
		memcpy(h->data, d->data, first);
		put_bytes(&ep->sq, ep->sq.tail + 1, d->data + first, d->inline_len - first);
	} else if (op->opcode == RING_WR_ATOMIC_CMP_AND_SWP ||
		   op->opcode == RING_WR_ATOMIC_FETCH_AND_ADD) {
		h->atomic.compare_add = op->compare_add;
		h->atomic.swap = op->swap;
		h->atomic.sge = d->sge[0];
	} else if (op->opcode == RING_WR_BIND_MW) {
		h->bind.length = ep->mem_size;
		h->bind.mr_lkey = d->below;
		h->bind.access = d->access;
		h->bind.mw_key = k->key;
	} else if (op->opcode == RING_WR_FAST_REG) {
		h->fast_reg.length = ep->mem_size;
		h->fast_reg.access = d->access | MR_LOCAL_WRITE;
		h->fast_reg.list_lkey = ep->list_key;
		h->fast_reg.list_addr = (uintptr_t)ep->list;
		h->fast_reg.list_len = draw_list(ep, sim_key_of(ep, d->below)->iova, d->below);
	} else if (op->opcode == RING_WR_FLUSH) {
		h->flush_len = op->len;
		h->flush = op->flush;
	} else {
		memcpy(h->sge, d->sge, (op->num - more) * sizeof(d->sge[0]));
		put_bytes(&ep->sq, ep->sq.tail + 1, (const uint8_t *)&d->sge[RING_WQE_SGES],
			  more * (uint32_t)sizeof(d->sge[0]));
	}
	memcpy(ring_wq_slot(&ep->sq, ep->sq.tail), h, sizeof(*h));
}

/** What the request does when it is executed. */
static void
model_request(struct sim_ep *ep, const struct sim_op *op)
{
	uint8_t *at = ep->peer->model + op->target;
	uint64_t word;

	if (op->has_target && sim_is_uc(ep->s)) {
		sim_uc_write(ep, op);
		return;
	}
	if (!op->has_target || op->bad)
		return;
	if (op->opcode == RING_WR_RDMA_WRITE || op->opcode == RING_WR_RDMA_WRITE_WITH_IMM ||
	    op->opcode == RING_WR_ATOMIC_WRITE) {
		sim_pattern(op->seed, at, op->len);
		return;
	}
	memcpy(&word, at, 8);
	if (op->opcode == RING_WR_ATOMIC_FETCH_AND_ADD)
		word += op->compare_add;
	else if (word == op->compare_add)
		word = op->swap;
	memcpy(at, &word, 8);
}

static void
draft_release(struct sim_ep *ep, struct draft *d)
{
	for (uint32_t i = 0; i < d->op.num; i++)
		sim_free(ep, &d->op.range[i]);
	free(d->op.expect);
	if (d->op.inval) {
		d->op.inval->alive = true;
		d->op.inval->busy = d->op.inval->gone = false;
	}
	if (d->op.binds) { /* as unbound as it was; of type 1 the old binding is not used again */
		d->op.binds->busy = false;
		ep->list_busy &= d->op.binds->kind != KEY_FAST;
	}
}

static bool
draft_fits(const struct sim_ep *ep, struct draft *d)
{
	d->op.slots = draft_slots(d);
	if (ep->op_tail - ep->op_head >= SIM_OPS - 1 || ep->msg_tail - ep->msg_head >= SIM_OPS - 1)
		return false;
	return d->op.slots <= ring_wq_free(&ep->sq);
}

static void
enter_request(struct sim_ep *ep, struct draft *d)
{
	struct sim_op *op = &d->op;

	op->index = ep->sq.tail;
	if (op->bad) {
		ep->causes |= CAUSE_BAD_POST;
		if (!sim_is_uc(ep->s))
			ep->peer->causes |= CAUSE_BAD_RECV;
	}
	model_request(ep, op);
	if (op->consumes)
		ep->msg[ep->msg_tail++ % SIM_OPS] =
			(struct sim_msg){op->seed, op->len, op->imm, op->opcode, op->flags,
					 op->bad != 0 || op->lost, false};
	ep->sq.tail += op->slots;
	ep->op[ep->op_tail++ % SIM_OPS] = *op;
	sim_note(ep->s, "ep %u qp %06x: post %u opcode %u len %u flags %x sges %u%s", ep->id,
		 ep->qpn, op->index, op->opcode, op->len, op->flags, op->num,
		 op->bad ? " (bad)" : "");
}

static bool
post_draft(struct sim_ep *ep, struct draft *d)
{
	if (!draft_fits(ep, d)) {
		draft_release(ep, d);
		return false;
	}
	put_request(ep, d);
	enter_request(ep, d);
	return true;
}

/** @return false: no room for the present. */
static bool
post_one(struct sim_ep *ep)
{
	const struct sim_profile *p = ep->s->prof;
	struct draft d;
	bool ok;

	memset(&d.op, 0, sizeof(d.op));
	d.inline_len = 0;
	if (ep->op_tail - ep->op_head >= SIM_OPS - 1 || ring_wq_free(&ep->sq) < 10)
		return false;
	if (rng_below(&ep->rng, 3) == 0)
		d.op.flags |= RING_WR_SIGNALED;
	if (rng_below(&ep->rng, 12) == 0)
		d.op.flags |= RING_WR_FENCE;
	if (sim_chance(&ep->rng, p->bad))
		ok = draft_bad(ep, &d);
	else if (sim_chance(&ep->rng, p->inval / 8))
		ok = draft_gone(ep, &d);
	else
		ok = draft_good(ep, &d);
	if (!ok) {
		draft_release(ep, &d);
		return true; /* another time, something else */
	}
	ep->ops_left--;
	return post_draft(ep, &d);
}

/** The last request is signalled, so that all are heard of. */
static void
post_last(struct sim_ep *ep)
{
	struct draft d;

	memset(&d.op, 0, sizeof(d.op));
	d.inline_len = 0;
	d.op.opcode = RING_WR_RDMA_WRITE;
	d.op.flags = RING_WR_SIGNALED;
	post_draft(ep, &d);
}

static void
ring_send(struct sim_ep *ep)
{
	ring_wq_publish(&ep->sq);
	if (ring_bell_needed(&ep->daemon)) {
		ring_bell_set(ep->node->bell, ep->slot);
		sim_node_wake(ep->node, ep->s->now + 100);
	}
}

static bool
tail_is_signalled(const struct sim_ep *ep)
{
	return ep->op_head == ep->op_tail || ep->sig_all ||
	       (ep->op[(ep->op_tail - 1) % SIM_OPS].flags & RING_WR_SIGNALED);
}

/** @return whether it may post again without waiting for completions. */
static bool
post_batch(struct sim_ep *ep)
{
	uint32_t n = rng_below(&ep->rng, 3) ? 1 : sim_between(&ep->rng, 1, 16);
	uint32_t before = ep->op_tail;
	bool room = true;

	while (n-- && ep->ops_left && room)
		room = post_one(ep);
	if ((!room || ep->ops_left == 0) && !tail_is_signalled(ep))
		post_last(ep);
	if (ep->op_tail != before)
		ring_send(ep);
	return room;
}

/* ---- receives ---------- */

static bool
post_recv(struct sim_ep *ep)
{
	struct sim_recv *r = &ep->recv[ep->recv_tail % SIM_RECVS];
	struct ring_sge sge[RING_MAX_SGE];
	struct ring_rwqe head = {0};
	uint32_t first;

	r->len = ep->recv_max + rng_below(&ep->rng, 65);
	if ((ep->srq ? !sim_srq_room(ep) : ring_wq_free(&ep->rq) < 10) ||
	    !draw_ranges(ep, PART_RCV, r->len, RING_MAX_SGE, r->range, &r->num))
		return false;
	r->slots = ring_rwqe_slots(r->num);
	r->index = ep->rq.tail;
	sim_pattern(rng_u64(&ep->rng), sim_scratch(), r->len);
	sim_range_scatter(ep, ep->mem, r->range, r->num, sim_scratch(), r->len);
	sim_range_scatter(ep, ep->model, r->range, r->num, sim_scratch(), r->len);
	name_ranges(ep, r->range, r->num, MR_LOCAL_WRITE, sge);
	head.num_slots = (uint8_t)r->slots;
	head.num_sge = r->num;
	first = r->num < RING_RWQE_SGES ? r->num : RING_RWQE_SGES;
	memcpy(head.sge, sge, first * sizeof(sge[0]));
	ep->recv_tail++;
	if (ep->srq) {
		sim_srq_post(ep, r, &head, &sge[first],
			     (r->num - first) * (uint32_t)sizeof(sge[0]));
		return true;
	}
	memcpy(ring_wq_slot(&ep->rq, ep->rq.tail), &head, sizeof(head));
	put_bytes(&ep->rq, ep->rq.tail + 1, (const uint8_t *)&sge[first],
		  (r->num - first) * (uint32_t)sizeof(sge[0]));
	ep->rq.tail += r->slots;
	return true;
}

static void
post_recvs(struct sim_ep *ep)
{
	uint32_t tail = ep->recv_tail;

	while (ep->recv_tail - ep->recv_head < ep->recv_depth && post_recv(ep))
		;
	if (tail == ep->recv_tail)
		return;
	sim_note(ep->s, "ep %u qp %06x: %u receives", ep->id, ep->qpn, ep->recv_tail - tail);
	if (ep->srq) {
		sim_srq_publish(ep);
		return;
	}
	atomic_exchange_explicit(ep->rq.shared_tail, ep->rq.tail, memory_order_seq_cst);
	if (ring_bell_needed_recv(&ep->daemon)) {
		ring_bell_set(ep->node->bell, ep->slot);
		sim_node_wake(ep->node, ep->s->now + 100);
	}
}

static void
run_recvs(struct sim_ep *ep)
{
	if (ep->recv_tail - ep->recv_head > ep->recv_depth / 2)
		return;
	if (ep->recv_at == SIM_NEVER)
		ep->recv_at = ep->s->now + (sim_chance(&ep->rng, ep->s->prof->late_recv)
						    ? rng_below(&ep->rng, 2000) * SIM_US
						    : 0);
	if (ep->recv_at > ep->s->now)
		return;
	ep->recv_at = SIM_NEVER;
	post_recvs(ep);
}

static enum sim_phase
phase_of(const struct sim_ep *ep)
{
	return (ep->id & 1) ? ep->peer->phase : ep->phase;
}

static bool
may_post(const struct sim_ep *ep)
{
	enum sim_phase p = phase_of(ep);

	if (ep->qp && ep->qp->state == RING_QPS_RESET)
		return false;
	return p == PHASE_UP || p == PHASE_BROKEN;
}

uint64_t
sim_app_run(struct sim_ep *ep)
{
	uint64_t now = ep->s->now;

	if (!may_post(ep))
		return SIM_NEVER;
	run_recvs(ep);
	if (ep->ops_left && ep->post_at <= now) {
		ep->post_at = now + (rng_below(&ep->rng, 3)
					     ? rng_below(&ep->rng, 3000)
					     : rng_below(&ep->rng, 200) * SIM_US);
		if (!post_batch(ep)) {
			ep->post_at = now + 20 * SIM_US;
			return ep->recv_at; /* a completion will call again */
		}
	}
	if (ep->ops_left && ep->post_at < ep->recv_at)
		return ep->post_at;
	return ep->recv_at;
}

void
sim_app_race(struct sim_ep *ep)
{
	if (may_post(ep) && ep->ops_left && rng_below(&ep->rng, 8) == 0)
		post_batch(ep);
}
