/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attacks on arenas: what a client does to a memfd between its arrival and the seal, answers
 * that it owes, and rights that it must not have afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile.h"

static struct hx session;

/* How to answer an arena. */
enum answer {
	ANSWER_TRUNCATE,     /* cut to nothing, then say that it is mapped */
	ANSWER_SHRINK,	     /* cut by a page */
	ANSWER_REGROW,	     /* cut and grown again: the pages are new */
	ANSWER_GROW,
	ANSWER_PUNCH,	     /* holes in it */
	ANSWER_SEAL,	     /* F_SEAL_SEAL: the daemon can seal no more */
	ANSWER_SEAL_WRITE,
	ANSWER_TWICE,
	ANSWER_NEVER,
	ANSWER_REFUSE,	     /* status */
	ANSWER_STATUS,	     /* a positive or odd status */
	ANSWER_NUMBER,	     /* of another arena */
	ANSWER_ADDRESS,	     /* a hostile one */
	ANSWER_LATER,	     /* after the next, out of order */
	ANSWER_COUNT,
};

struct script {
	struct hostile *t;
	enum answer how;
	uint32_t at; /* which arena of the session */
	uint32_t seen;
	uint32_t held; /* arena whose answer waits */
	void *held_addr;
	bool holding;
};

static void
spoil(struct script *s, const struct ring_ctrl_arena *a, int fd)
{
	off_t size = (off_t)a->size;

	switch (s->how) {
	case ANSWER_TRUNCATE:
		if (ftruncate(fd, 0))
			break;
		break;
	case ANSWER_SHRINK:
		if (ftruncate(fd, size - 4096))
			break;
		break;
	case ANSWER_REGROW:
		if (!ftruncate(fd, 0) && ftruncate(fd, size))
			break;
		break;
	case ANSWER_GROW:
		if (ftruncate(fd, size + 4096))
			break;
		break;
	case ANSWER_PUNCH:
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size);
		break;
	case ANSWER_SEAL:
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
		break;
	case ANSWER_SEAL_WRITE:
		fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
		break;
	default:
		break;
	}
}

static void
answer(struct hx *h, struct script *s, const struct ring_ctrl_arena *a, void *p)
{
	uint32_t n = a->arena;

	switch (s->how) {
	case ANSWER_NEVER:
		return;
	case ANSWER_REFUSE:
		hx_arena_mapped(h, n, -ENOMEM, NULL);
		return;
	case ANSWER_STATUS:
		hx_arena_mapped(h, n, (int)hostile_value(s->t), p);
		return;
	case ANSWER_NUMBER:
		hx_arena_mapped(h, (uint32_t)hostile_value(s->t), 0, p);
		hx_arena_mapped(h, n + 1, 0, p);
		break;
	case ANSWER_ADDRESS:
		hx_arena_mapped(h, n, 0, (void *)(uintptr_t)hostile_value(s->t));
		return;
	case ANSWER_TWICE:
		hx_arena_mapped(h, n, 0, p);
		hx_arena_mapped(h, n, -ENOMEM, p);
		break;
	case ANSWER_LATER:
		s->held = n;
		s->held_addr = p;
		s->holding = true;
		return;
	default:
		break;
	}
	hx_arena_mapped(h, n, 0, p);
}

static void
hook(struct hx *h, const struct ring_ctrl_arena *a, int fd, void *arg)
{
	struct script *s = arg;
	int prot = a->kind == RING_ARENA_C ? PROT_READ | PROT_WRITE : PROT_READ;
	void *p = mmap(NULL, a->size, prot, MAP_SHARED, fd, 0);
	bool here = s->seen++ == s->at || s->at == UINT32_MAX;

	if (p == MAP_FAILED || a->arena >= HX_ARENAS) {
		close(fd);
		return;
	}
	if (here)
		spoil(s, a, fd);
	close(fd);
	h->arena[a->arena] = (struct hx_arena){.base = p, .size = a->size, .kind = a->kind};
	if (here)
		answer(h, s, a, p);
	else
		hx_arena_mapped(h, a->arena, 0, p);
	if (s->holding && s->held != a->arena) {
		s->holding = false;
		hx_arena_mapped(h, s->held, 0, s->held_addr);
	}
}

/* Build up a session whose answers are spoiled; nothing is expected of it but an end. */
static void
build(struct hostile *t, struct script *s)
{
	struct ring_ctrl_hello_req hello = {0};
	struct ring_ctrl_alloc_mem_req mem = {.size = 1 << 20, .align = 64};
	struct ring_ctrl_create_cq_req cq = {.entries = 64, .channel = RING_NO_HANDLE};
	struct ring_ctrl_empty_req pd = {0};
	struct ring_ctrl_hdr hdr;
	uint64_t end;

	if (hx_connect(&session, t->socket)) {
		FAULT(t, "no connection");
		return;
	}
	session.arena_hook = hook;
	session.hook_arg = s;
	hx_request(&session, RING_CTRL_HELLO, 1, &hello, NULL);
	end = hx_now_ms() + 300;
	while (hx_now_ms() < end && hx_receive(&session, &hdr, 100) == 1)
		;
	for (int i = 0; i < 3; i++) {
		hx_request(&session, RING_CTRL_ALLOC_MEM, 1, &mem, NULL);
		hx_request(&session, RING_CTRL_CREATE_CQ, 1, &cq, NULL);
		hx_request(&session, RING_CTRL_ALLOC_PD, 1, &pd, NULL);
	}
	end = hx_now_ms() + 300;
	while (hx_now_ms() < end) {
		int ret = hx_receive(&session, &hdr, 50);

		if (ret < 0)
			break;
		if (ret == 0 && hdr.op == RING_CTRL_HELLO && hdr.status == 0)
			session.num_workers = 1;
	}
}

static void
arena_answer(struct hostile *t)
{
	for (uint32_t i = 0; i < 6; i++) {
		struct script s = {
			.t = t,
			.how = (enum answer)hostile_below(t, ANSWER_COUNT),
			.at = hostile_below(t, 5),
		};

		if (s.at == 4)
			s.at = UINT32_MAX;
		build(t, &s);
		hx_close(&session);
	}
}

/* A C arena that is cut before it is sealed, then used: the daemon must not touch it. */
static void
arena_cut(struct hostile *t)
{
	for (enum answer how = ANSWER_TRUNCATE; how <= ANSWER_SEAL_WRITE; how++) {
		struct script s = {.t = t, .how = how, .at = UINT32_MAX};
		struct ring_ctrl_hello_req hello = {0};

		if (hx_connect(&session, t->socket)) {
			FAULT(t, "no connection");
			return;
		}
		session.arena_hook = hook;
		session.hook_arg = &s;
		if (hx_call(&session, RING_CTRL_HELLO, &hello, NULL, 0) == -ETIMEDOUT)
			FAULT(t, "HELLO over a spoiled arena (%d): neither reply nor end", how);
		hx_close(&session);
	}
}

/* Notices about arenas that never were, at any time. */
static void
arena_unasked(struct hostile *t)
{
	struct hx_rig *r = malloc(sizeof(*r));

	if (!r || !hostile_rig(t, r))
		return;
	for (int i = 0; i < 64; i++) {
		if (hx_arena_mapped(&r->h, hostile_below(t, 2) ? (uint32_t)hostile_value(t)
							       : hostile_below(t, 4),
				    hostile_below(t, 2) ? 0 : (int)hostile_value(t),
				    (void *)(uintptr_t)hostile_value(t)))
			break;
	}
	hostile_traffic(t, r, 24);
	hostile_alive(t, &r->h);
}

static void
try_rights(struct hostile *t, struct hx *h, uint32_t n)
{
	struct hx_arena *a = &h->arena[n];
	bool d = a->kind == RING_ARENA_D;
	int fd = h->arena_fd[n], again;
	char path[64];
	void *p;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR);
	MUST(t, ftruncate(fd, 0) < 0 && ftruncate(fd, (off_t)a->size * 2) < 0,
	     "arena %u can be resized", n);
	MUST(t, again < 0 || (ftruncate(again, 4096) < 0 && ftruncate(again, 1 << 30) < 0),
	     "arena %u can be resized through /proc", n);
	MUST(t, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0,
	     "arena %u can be punched", n);
	MUST(t, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0, "arena %u can be sealed further", n);
	MUST(t, pwrite(fd, "x", 1, 0) < 0, "arena %u can be written", n);
	p = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(t, p == MAP_FAILED, "arena %u can be mapped writable after the seal", n);
	if (again >= 0) {
		p = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
		MUST(t, p == MAP_FAILED, "arena %u can be mapped writable through /proc", n);
		close(again);
	}
	if (d)
		MUST(t, mprotect(a->base, a->size, PROT_READ | PROT_WRITE) < 0,
		     "D arena %u can be made writable", n);
	if (madvise(a->base, a->size, MADV_REMOVE) == 0)
		FAULT(t, "arena %u can be punched by madvise", n);
}

/* DESIGN 2.1: nobody shrinks an arena, and a client cannot write a D arena. */
static void
arena_rights(struct hostile *t)
{
	struct hx_rig *r = malloc(sizeof(*r));
	struct ring_ctrl_hello_req hello = {0};
	uint32_t pd;
	bool any = false;

	if (!r || hx_connect(&r->h, t->socket))
		return;
	r->h.keep_fds = true;
	if (hx_call(&r->h, RING_CTRL_HELLO, &hello, NULL, 0) || hx_alloc_pd(&r->h, &pd) ||
	    hx_create_cq(&r->h, 64, RING_NO_HANDLE, &r->cq)) {
		FAULT(t, "an honest session does not come up");
		return;
	}
	for (uint32_t n = 0; n < HX_ARENAS; n++) {
		if (r->h.arena_fd[n] < 0)
			continue;
		any = true;
		try_rights(t, &r->h, n);
	}
	MUST(t, any, "a session without an arena");
	hostile_alive(t, &r->h);
	hx_close(&r->h);
}

/* D arenas as memory to be written by work requests: rings would be forged that way. */
static void
arena_as_mr(struct hostile *t)
{
	struct hx_rig *r = malloc(sizeof(*r));

	if (!r || !hostile_rig(t, r))
		return;
	for (uint32_t n = 0; n < HX_ARENAS; n++) {
		struct hx_arena *a = &r->h.arena[n];
		uint32_t key;

		if (!a->base || a->kind != RING_ARENA_D)
			continue;
		MUST(t, hx_reg_mr(&r->h, r->pd, a->base, 4096, RING_ACCESS_LOCAL_WRITE, &key,
				  NULL) < 0,
		     "D arena %u can be registered for writing", n);
		/* a lie about where it lies must not help */
		hx_arena_mapped(&r->h, n, 0, r->mem);
		hx_arena_mapped(&r->h, n, 0, a->base);
		MUST(t, hx_reg_mr(&r->h, r->pd, a->base, 4096, RING_ACCESS_LOCAL_WRITE, &key,
				  NULL) < 0,
		     "D arena %u can be registered for writing after a second notice", n);
	}
	hostile_alive(t, &r->h);
}

const struct hostile_case hostile_arena_cases[] = {
	{"arena_answer", arena_answer, "dishonest answers to arenas", false},
	{"arena_cut", arena_cut, "arenas cut, punched or sealed before their answer", false},
	{"arena_unasked", arena_unasked, "answers about arenas that never were", false},
	{"arena_rights", arena_rights, "writing, resizing and punching sealed arenas", false},
	{"arena_as_mr", arena_as_mr, "the daemon's arenas registered for writing", false},
	{NULL, NULL, NULL, false},
};
