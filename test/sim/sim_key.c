/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory keys of an endpoint. All cover all of its memory, each in its way: in one piece, in
 * pieces of two mappings of the same memory, reached through the host, or mixed.
 */
#include <string.h>

#include "mr_table_priv.h"

#include "sim.h"

#define REMOTE \
	(MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_FLUSH_GLOBAL)
#define ALL (MR_LOCAL_WRITE | REMOTE | MR_MW_BIND)
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

/** Where the lists of fast registrations lie: memory that no request of a peer names. */
static void
list_register(struct sim_ep *ep)
{
	const struct mr_seg seg = {.length = sizeof(ep->list), .ptr = (uint8_t *)ep->list};
	const struct mr_desc d = {.type = MR_TYPE_REGION, .pd = ep->pd,
				  .iova = (uintptr_t)ep->list, .length = sizeof(ep->list),
				  .segs = &seg, .num_segs = 1, .owner = ep};

	if (mr_register(ep->node->mrs, &d, &ep->list_key))
		sim_fail(ep->s, "mr_register of a list");
}

void
sim_keys_make(struct sim_ep *ep)
{
	uint32_t n = sim_between(&ep->rng, 1, 3);

	ep->num_keys = 0;
	list_register(ep);
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
	struct sim_key list = {.key = ep->list_key};

	while (ep->num_keys)
		key_drop(ep, &ep->key[--ep->num_keys]); /* windows before their region */
	key_drop(ep, &list);
}

void
sim_windows_drop(struct sim_ep *ep)
{
	while (ep->key[ep->num_keys - 1].kind >= KEY_WINDOW)
		key_drop(ep, &ep->key[--ep->num_keys]);
	ep->list_busy = false;
}

/** A copier must not be at work on a key that is not busy. */
static void
check_no_copier(const struct sim_ep *ep, uint32_t key)
{
	for (const struct sim_io *e = ep->node->ios; e; e = e->next)
		for (uint32_t i = 0; i < e->io->num; i++)
			if (e->io->piece[i].key == key)
				sim_fail(ep->s, "key %08x is not busy, but a copier uses it", key);
}

void
sim_keys_disturb(struct sim_ep *ep)
{
	struct sim_key *k = &ep->key[1];

	if (k->access == MR_LOCAL_WRITE || k->kind >= KEY_WINDOW)
		return;
	if (k->killed) {
		if (ep->node->steps == ep->killed_step || mr_busy(ep->node->mrs, k->key))
			return;
		check_no_copier(ep, k->key);
		key_drop(ep, k);
		key_register(ep, k);
		return;
	}
	if (ep->kill_at > ep->s->now)
		return;
	if (ep->kill_at) {
		sim_note(ep->s, "ep %u: key %08x is taken away", ep->id, k->key);
		ep->causes |= CAUSE_MEMORY;
		ep->peer->causes |= CAUSE_MEMORY;
		if (mr_kill(ep->node->mrs, k->key))
			sim_fail(ep->s, "mr_kill of %08x", k->key);
		k->alive = false;
		k->killed = true;
		ep->killed_step = ep->node->steps;
	}
	ep->kill_at = ep->s->now + rng_below(&ep->rng, 20000) * SIM_US;
}

/* ---- bound by requests ---------- */

/** Whether a request of the peer's is out that names it: it may come again, so the key stays. */
static bool
key_is_named(const struct sim_ep *ep, const struct sim_key *k)
{
	const struct sim_ep *peer = ep->peer;

	for (uint32_t i = peer->op_head; i != peer->op_tail; i++)
		if (peer->op[i % SIM_OPS].rkey == k->key)
			return true;
	return false;
}

static struct sim_key *
key_unbound_new(struct sim_ep *ep)
{
	static const enum mr_type types[] = {MR_TYPE_WINDOW_1, MR_TYPE_WINDOW_2A,
					     MR_TYPE_WINDOW_2B, MR_TYPE_FAST_REG};
	struct mr_desc d = {.type = types[rng_below(&ep->rng, 4)], .pd = ep->pd, .owner = ep,
			    .max_segs = SIM_LIST * MAX_PIECES};
	struct sim_key *k = &ep->key[ep->num_keys];

	if (ep->num_keys == SIM_KEYS)
		return NULL;
	*k = (struct sim_key){.kind = d.type == MR_TYPE_FAST_REG ? KEY_FAST : KEY_WINDOW,
			      .type = (uint8_t)d.type};
	if (mr_register(ep->node->mrs, &d, &k->key))
		sim_fail(ep->s, "mr_register of a key to be bound");
	ep->num_keys++;
	return k;
}

struct sim_key *
sim_key_unbound(struct sim_ep *ep)
{
	for (uint32_t i = 0; i < ep->num_keys; i++) {
		struct sim_key *k = &ep->key[i];

		if (k->kind < KEY_WINDOW || k->busy || rng_below(&ep->rng, 2) ||
		    (k->alive && k->type != MR_TYPE_WINDOW_1) || key_is_named(ep, k))
			continue;
		return k;
	}
	return key_unbound_new(ep);
}

struct sim_key *
sim_key_bound(struct sim_ep *ep)
{
	uint32_t at = rng_below(&ep->rng, ep->num_keys);

	for (uint32_t i = 0; i < ep->num_keys; i++) {
		struct sim_key *k = &ep->key[(at + i) % ep->num_keys];

		if (k->kind >= KEY_WINDOW && k->alive && !k->busy &&
		    k->type != MR_TYPE_WINDOW_1 && !key_is_named(ep, k))
			return k;
	}
	return NULL;
}

/** The second is taken away now and then, the last lacks rights. */
const struct sim_key *
sim_key_below(struct sim_ep *ep)
{
	return ep->num_keys > 3 && ep->key[2].access == ALL && ep->key[2].kind < KEY_WINDOW &&
			       rng_below(&ep->rng, 2)
		       ? &ep->key[2]
		       : &ep->key[0];
}

const struct sim_key *
sim_key_of(const struct sim_ep *ep, uint32_t key)
{
	for (uint32_t i = 0; i < ep->num_keys; i++)
		if (ep->key[i].key == key)
			return &ep->key[i];
	return NULL;
}

struct sim_key *
sim_key_pick(struct sim_ep *ep, uint32_t access)
{
	uint32_t at = rng_below(&ep->rng, ep->num_keys);

	for (uint32_t i = 0; i < ep->num_keys; i++) {
		struct sim_key *k = &ep->key[(at + i) % ep->num_keys];

		/* what is bound is for peers */
		if (k->kind >= KEY_WINDOW && !(access & REMOTE))
			continue;
		if (k->alive && !k->busy && (k->access & access) == access)
			return k;
	}
	return NULL;
}
