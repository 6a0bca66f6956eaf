/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attacks through keys that work requests bind: windows, fast registrations, their ends, and the
 * operations that need rights of their own. What is another session's stays as it was.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "hostile.h"

#define WINDOWS 3u
#define BINDABLE \
	(RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ | \
	 RING_ACCESS_REMOTE_ATOMIC | RING_ACCESS_MW_BIND | RING_ACCESS_FLUSH_GLOBAL)

static struct hx_rig rig, alien;

/** Windows of each type and a fast key, and a region to bind them to: of a rig. */
static struct keys {
	uint32_t mr, window[WINDOWS], fast;
	uint32_t bound; /* the second window's key, when it is */
} keys, alien_keys;

static bool
make_keys(struct hostile *t, struct hx_rig *r, struct keys *k)
{
	struct ring_ctrl_alloc_fast_mr_req fast = {.pd = r->pd, .max_segs = 8};
	struct ring_ctrl_alloc_mw_req mw = {.pd = r->pd};
	struct ring_ctrl_alloc_mw_rep mwr;
	struct ring_ctrl_reg_mr_rep mrr;
	int ret = hx_reg_mr(&r->h, r->pd, r->mem, HX_RIG_BYTES, BINDABLE, &k->mr, NULL);

	for (uint32_t i = 0; i < WINDOWS && !ret; i++) {
		mw.type = i + 1;
		ret = hx_call(&r->h, RING_CTRL_ALLOC_MW, &mw, &mwr, sizeof(mwr));
		k->window[i] = mwr.rkey;
	}
	if (!ret)
		ret = hx_call(&r->h, RING_CTRL_ALLOC_FAST_MR, &fast, &mrr, sizeof(mrr));
	k->fast = mrr.lkey;
	k->bound = k->window[1] ^ 1;
	MUST(t, !ret, "no keys to bind: %s", strerror(-ret));
	return !ret;
}

static struct ring_wqe
bind_to(const struct hx_rig *r, uint32_t window, uint32_t mr)
{
	return (struct ring_wqe){.opcode = RING_WR_BIND_MW, .flags = RING_WR_SIGNALED,
				 .num_slots = 1, .rkey = window, .remote_addr = (uintptr_t)r->mem,
				 .bind = {.length = 4096, .mr_lkey = mr,
					  .access = RING_ACCESS_REMOTE_WRITE, .mw_key = window}};
}

/** A list of two elements at the beginning of the rig's memory. */
static struct ring_wqe
fast_of(const struct hx_rig *r, uint32_t fast, uint32_t list_lkey, uint32_t mr)
{
	struct ring_sge list[2] = {{(uintptr_t)r->mem + 8192, 2048, mr},
				   {(uintptr_t)r->mem + 4096, 2048, mr}};

	memcpy(r->mem, list, sizeof(list));
	return (struct ring_wqe){.opcode = RING_WR_FAST_REG, .flags = RING_WR_SIGNALED,
				 .num_slots = 1, .rkey = fast, .remote_addr = 0x10000,
				 .fast_reg = {.length = 4096, .list_addr = (uintptr_t)r->mem,
					      .access = RING_ACCESS_LOCAL_WRITE |
							RING_ACCESS_REMOTE_WRITE,
					      .list_lkey = list_lkey, .list_len = 2}};
}

static struct ring_wqe
simple(uint8_t opcode, uint32_t key)
{
	struct ring_wqe w = {.opcode = opcode, .flags = RING_WR_SIGNALED, .num_slots = 1,
			     .imm = key};

	return w;
}

/** Post one request of a QP and tell the status of its completion. */
static int
outcome(struct hostile *t, struct hx_rig *r, int qp, const struct ring_wqe *w)
{
	struct ring_cqe c;
	int ret;

	hx_post(r, &r->qp[qp], w);
	ret = hx_poll_wait(&r->h, &r->cq, &c, HX_WAIT_MS);
	MUST(t, !ret, "no completion: %s", strerror(-ret));
	return ret ? ret : (int)hx_cqe_status(&c);
}

/** Requests that would do, each with one hostile field, on keys of every state. */
static void
key_field(struct hostile *t)
{
	for (int i = 0; i < 25; i++) {
		if (!hostile_rig(t, &rig) || !make_keys(t, &rig, &keys))
			return;
		for (int k = 0; k < 8; k++) {
			uint32_t window = keys.window[hostile_below(t, WINDOWS)];
			struct ring_wqe w = hx_write(&rig, 0, 65536, 8);

			switch (hostile_below(t, 6)) {
			case 0:
				w = bind_to(&rig, window, keys.mr);
				break;
			case 1:
				w = fast_of(&rig, keys.fast, keys.mr, keys.mr);
				break;
			case 2:
				w = simple(RING_WR_LOCAL_INV, window);
				break;
			case 3:
				w = simple(RING_WR_SEND_WITH_INV, keys.fast);
				break;
			case 4:
				w = simple(RING_WR_FLUSH, 0);
				w.rkey = keys.mr;
				w.remote_addr = (uintptr_t)rig.mem;
				w.flush = 1;
				break;
			default:
				w.opcode = RING_WR_ATOMIC_WRITE;
			}
			if (k)
				hostile_mutate(t, &w, sizeof(w));
			hx_post_recv(&rig, &rig.qp[1], (uintptr_t)rig.mem, 4096, rig.key);
			hx_post(&rig, &rig.qp[0], &w);
		}
		hx_pass(&rig.h, 2);
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

/** Attack number i on the other session's keys. */
static struct ring_wqe
alien_attack(int i)
{
	switch (i) {
	case 0: /* a window on its memory */
		return bind_to(&alien, keys.window[1], alien_keys.mr);
	case 1: /* its window, on ours and on its */
		return bind_to(&rig, alien_keys.window[0], keys.mr);
	case 2:
		return bind_to(&alien, alien_keys.window[0], alien_keys.mr);
	case 3: /* its memory in our list, its key for our memory, its memory as the list */
		return fast_of(&rig, keys.fast, keys.mr, alien_keys.mr);
	case 4:
		return fast_of(&rig, alien_keys.fast, keys.mr, keys.mr);
	case 5:
		return fast_of(&rig, keys.fast, alien_keys.mr, keys.mr);
	case 6:
		return simple(RING_WR_LOCAL_INV, alien_keys.bound);
	default:
		return simple(RING_WR_SEND_WITH_INV, alien_keys.bound);
	}
}

static void
key_alien(struct hostile *t)
{
	for (int i = 0; i < 8; i++) {
		struct ring_wqe w;

		if (!hostile_rig(t, &alien) || !make_keys(t, &alien, &alien_keys) ||
		    !hostile_rig(t, &rig) || !make_keys(t, &rig, &keys))
			return;
		w = bind_to(&alien, alien_keys.window[1], alien_keys.mr);
		w.rkey = alien_keys.bound;
		MUST(t, outcome(t, &alien, 0, &w) == 0, "an honest bind fails");
		hx_post_recv(&rig, &rig.qp[1], (uintptr_t)rig.mem, 4096, rig.key);
		w = alien_attack(i);
		MUST(t, outcome(t, &rig, 0, &w) != 0,
		     "attack %d on another session's key: success", i);
		/* It works as before, and nothing keeps it from going. */
		w = hx_write(&alien, 0, 16, 16);
		w.rkey = alien_keys.bound;
		MUST(t, outcome(t, &alien, 1, &w) == 0, "attack %d: the window is not as it was",
		     i);
		MUST(t, hx_handle_call(&alien.h, RING_CTRL_DEREG_MR, alien_keys.mr) == -EBUSY,
		     "attack %d: a region under a window goes", i);
		MUST(t, hx_handle_call(&alien.h, RING_CTRL_DEALLOC_MW, alien_keys.bound) == -EINVAL,
		     "a window goes by a key that is not its handle");
		MUST(t, hx_handle_call(&alien.h, RING_CTRL_DEREG_MR, alien_keys.fast) == 0,
		     "attack %d: a fast key does not go", i);
		hx_rig_close(&rig);
		hx_rig_close(&alien);
	}
}

static _Atomic bool scribbling;

static void *
scribble(void *arg)
{
	struct hostile t = *(struct hostile *)arg;

	while (atomic_load(&scribbling)) {
		struct ring_sge e = {(uintptr_t)rig.mem + hostile_below(&t, HX_RIG_BYTES),
				     hostile_below(&t, 5000), keys.mr};

		if (hostile_below(&t, 3) == 0)
			hostile_mutate(&t, &e, sizeof(e));
		memcpy(rig.mem + 16 * hostile_below(&t, 2), &e, sizeof(e));
	}
	return NULL;
}

/** The list changes while it is read: what was read is what was checked. */
static void
key_list(struct hostile *t)
{
	pthread_t thread;

	for (int i = 0; i < 20; i++) {
		if (!hostile_rig(t, &rig) || !make_keys(t, &rig, &keys))
			return;
		atomic_store(&scribbling, true);
		if (pthread_create(&thread, NULL, scribble, t))
			return;
		for (int k = 0; k < 20; k++) {
			struct ring_wqe w = fast_of(&rig, keys.fast, keys.mr, keys.mr);

			hx_post(&rig, &rig.qp[0], &w);
			w = hx_write(&rig, 0, 65536, 4096);
			w.rkey = keys.fast;
			w.remote_addr = 0x10000;
			hx_post(&rig, &rig.qp[0], &w);
			w = simple(RING_WR_LOCAL_INV, keys.fast);
			hx_post(&rig, &rig.qp[0], &w);
		}
		hx_pass(&rig.h, 2);
		atomic_store(&scribbling, false);
		pthread_join(thread, NULL);
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

/** Keys and regions that go while requests bind them; and a session that dies of it. */
static void
key_dying(struct hostile *t)
{
	for (int i = 0; i < 20; i++) {
		if (!hostile_rig(t, &rig) || !make_keys(t, &rig, &keys))
			return;
		for (int k = 0; k < 24; k++) {
			uint32_t window = keys.window[hostile_below(t, WINDOWS)];
			struct ring_wqe w = bind_to(&rig, window, keys.mr);

			w.rkey = (window & ~0xffu) | hostile_below(t, 256);
			if (k % 3 == 1)
				w = fast_of(&rig, keys.fast, keys.mr, keys.mr);
			else if (k % 3 == 2)
				w = simple(RING_WR_LOCAL_INV, k % 2 ? keys.fast : w.rkey);
			hx_post(&rig, &rig.qp[k & 1], &w);
		}
		hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, keys.mr);
		MUST(t, hx_handle_call(&rig.h, RING_CTRL_DEALLOC_MW, keys.window[i % WINDOWS]) == 0,
		     "a window does not go");
		MUST(t, hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, keys.fast) == 0,
		     "a fast key does not go");
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
	}
}

const struct hostile_case hostile_key_cases[] = {
	{"key_field", key_field, "requests that bind and end keys, with a hostile field", false},
	{"key_alien", key_alien, "keys of another session", false},
	{"key_list", key_list, "a list that changes while it is read", false},
	{"key_dying", key_dying, "keys that go while they are bound", false},
	{NULL, NULL, NULL, false},
};
