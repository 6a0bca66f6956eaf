/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory keys of an endpoint. All cover all of its memory, each in its way: in one piece, in
 * pieces of two mappings of the same memory, reached through the host, or mixed.
 */
#include <string.h>

#include "mr_table_priv.h"

#include "sim.h"

#define ALL (MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC)
#define MAX_PIECES 24

/** Cut the memory into pieces, kinds in turn. */
static uint32_t
key_pieces(struct sim_ep *ep, enum sim_key_kind kind, struct mr_seg *seg)
{
	uint32_t off = 0, n = 0, turn = rng_below(&ep->rng, 2);

	while (off < ep->mem_size) {
		uint32_t len = sim_between(&ep->rng, 1, ep->mem_size / 12) & ~7u;

		if (len == 0)
			len = 8;
		if (n == MAX_PIECES - 1 || len > ep->mem_size - off)
			len = ep->mem_size - off;
		seg[n] = (struct mr_seg){.start = off, .length = len};
		if (kind == KEY_FOREIGN || (kind == KEY_MIXED && (n + turn) % 2)) {
			seg[n].kind = MR_SEG_FOREIGN;
			seg[n].remote = (uintptr_t)ep->alias + off;
		} else {
			seg[n].ptr = (kind == KEY_PIECES && (n + turn) % 2 ? ep->alias : ep->mem) +
				     off;
		}
		n++;
		off += len;
	}
	return n;
}

static void
key_register(struct sim_ep *ep, struct sim_key *k)
{
	struct mr_seg seg[MAX_PIECES] = {{.length = ep->mem_size, .ptr = ep->mem}};
	struct mr_desc d = {.type = MR_TYPE_REGION, .pd = ep->pd, .access = k->access,
			    .iova = k->iova, .length = ep->mem_size, .segs = seg, .num_segs = 1,
			    .lane = ep, .owner = ep};
	int ret;

	if (k->kind != KEY_DIRECT)
		d.num_segs = key_pieces(ep, k->kind, seg);
	ret = mr_register(ep->node->mrs, &d, &k->key);
	if (ret)
		sim_fail(ep->s, "mr_register: %d", ret);
	k->alive = true;
	k->killed = false;
}

static enum sim_key_kind
key_kind(struct sim_ep *ep)
{
	if (sim_chance(&ep->rng, ep->s->prof->foreign))
		return rng_below(&ep->rng, 2) ? KEY_FOREIGN : KEY_MIXED;
	return rng_below(&ep->rng, 2) ? KEY_DIRECT : KEY_PIECES;
}

static void
key_make(struct sim_ep *ep, uint32_t access)
{
	struct sim_key *k = &ep->key[ep->num_keys++];

	*k = (struct sim_key){.access = access, .kind = (uint8_t)key_kind(ep)};
	k->iova = (rng_u64(&ep->rng) & 0xfffffffff000ull) << rng_below(&ep->rng, 16);
	if (k->iova + ep->mem_size < k->iova)
		k->iova = 0x1000;
	key_register(ep, k);
}

void
sim_keys_make(struct sim_ep *ep)
{
	uint32_t n = sim_between(&ep->rng, 1, 3);

	ep->num_keys = 0;
	for (uint32_t i = 0; i < n; i++)
		key_make(ep, ALL);
	key_make(ep, MR_LOCAL_WRITE); /* for requests that must fail */
}

/** Kill, and release once no copier holds it. The node has passed a quiescent point. */
static void
key_drop(struct sim_ep *ep, struct sim_key *k)
{
	if (!k->killed) {
		int ret = mr_kill(ep->node->mrs, k->key);

		if (ret)
			sim_fail(ep->s, "mr_kill of %08x: %d", k->key, ret);
		k->alive = false;
		k->killed = true;
	}
	if (mr_busy(ep->node->mrs, k->key))
		sim_fail(ep->s, "key %08x is busy although all is quiet", k->key);
	if (mr_release(ep->node->mrs, k->key) != ep)
		sim_fail(ep->s, "mr_release of %08x", k->key);
}

void
sim_keys_drop(struct sim_ep *ep)
{
	while (ep->num_keys)
		key_drop(ep, &ep->key[--ep->num_keys]);
}

struct sim_key *
sim_key_pick(struct sim_ep *ep, uint32_t access)
{
	uint32_t at = rng_below(&ep->rng, ep->num_keys);

	for (uint32_t i = 0; i < ep->num_keys; i++) {
		struct sim_key *k = &ep->key[(at + i) % ep->num_keys];

		if (k->alive && (k->access & access) == access)
			return k;
	}
	return NULL;
}
