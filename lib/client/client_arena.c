/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arenas as the daemon pushes them, and where things lie in them. Places come from the daemon
 * but are checked all the same: a wrong one ends the context, not the process.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client_priv.h"

static void *
arena_map(const struct ring_ctrl_arena *a, int fd)
{
	int prot = a->kind == RING_ARENA_C ? PROT_READ | PROT_WRITE : PROT_READ;
	struct stat st;
	void *p;

	/* Beyond its end an access would be a SIGBUS. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < a->size)
		return MAP_FAILED;
	p = mmap(NULL, a->size, prot, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED && madvise(p, a->size, MADV_DONTFORK)) {
		munmap(p, a->size);
		return MAP_FAILED;
	}
	return p;
}

static int
arenas_grow(struct rnic_context *ctx, uint32_t num)
{
	struct client_arena *more;

	if (num <= ctx->num_arenas)
		return 0;
	more = realloc(ctx->arenas, num * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + ctx->num_arenas, 0, (num - ctx->num_arenas) * sizeof(*more));
	ctx->arenas = more;
	ctx->num_arenas = num;
	return 0;
}

/* Not to wait here: this runs while the socket is read. What does not fit is owed. */
static int
arena_answer(struct rnic_context *ctx, uint32_t arena, int status, const void *addr)
{
	struct ring_ctrl_arena_mapped *more;

	more = realloc(ctx->owed, (ctx->num_owed + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	ctx->owed = more;
	ctx->owed[ctx->num_owed++] = (struct ring_ctrl_arena_mapped){
		.arena = arena,
		.status = status,
		.addr = (uintptr_t)addr,
	};
	return client_notices_send(ctx);
}

int
client_notices_send(struct rnic_context *ctx)
{
	struct {
		struct ring_ctrl_hdr h;
		struct ring_ctrl_arena_mapped m;
	} msg;
	uint32_t n;
	int rc = 0;

	for (n = 0; n < ctx->num_owed; n++) {
		ring_ctrl_hdr_init(&msg.h, RING_CTRL_ARENA_MAPPED, 0, ctx->next_id++, 1);
		msg.m = ctx->owed[n];
		rc = ring_ctrl_send(ctx->sock, &msg, sizeof(msg), NULL);
		if (rc)
			break;
	}
	ctx->num_owed -= n;
	if (ctx->num_owed)
		memmove(ctx->owed, ctx->owed + n, ctx->num_owed * sizeof(*ctx->owed));
	if (rc == -EAGAIN || rc == -ENOBUFS)
		return 0;
	return rc == -EPIPE || rc == -ECONNRESET ? -ENOTCONN : rc;
}

int
client_arena_push(struct rnic_context *ctx, const struct ring_ctrl_arena *a, int fd)
{
	int rc = -EPROTO;
	void *p;

	if (a->arena > UINT16_MAX || (a->kind != RING_ARENA_C && a->kind != RING_ARENA_D) ||
		!a->size || (a->arena < ctx->num_arenas && ctx->arenas[a->arena].base))
		goto out;
	rc = arenas_grow(ctx, a->arena + 1);
	if (rc)
		goto out;
	p = arena_map(a, fd);
	if (p == MAP_FAILED) {
		rc = arena_answer(ctx, a->arena, -ENOMEM, NULL);
		goto out;
	}
	ctx->arenas[a->arena] = (struct client_arena){.base = p, .size = a->size, .kind = a->kind};
	rc = arena_answer(ctx, a->arena, 0, p);
out:
	close(fd);
	return rc;
}

void
client_arenas_unmap(struct rnic_context *ctx)
{
	for (uint32_t i = 0; i < ctx->num_arenas; i++) {
		if (ctx->arenas[i].base)
			munmap(ctx->arenas[i].base, ctx->arenas[i].size);
	}
	free(ctx->arenas);
	free(ctx->owed);
	ctx->arenas = NULL;
	ctx->num_arenas = 0;
}

void *
client_loc(const struct rnic_context *ctx, ring_loc_t loc, uint64_t size, uint32_t align,
	uint32_t kind)
{
	uint32_t n = RING_LOC_ARENA(loc);
	uint64_t off = RING_LOC_OFFSET(loc);
	const struct client_arena *a;

	if (n >= ctx->num_arenas)
		return NULL;
	a = &ctx->arenas[n];
	if (!a->base || a->kind != kind || off % align || off > a->size || size > a->size - off)
		return NULL;
	return a->base + off;
}

int
client_bells_push(struct rnic_context *ctx, const struct ring_ctrl_bells *b)
{
	if (b->chunk >= RING_BELL_CHUNKS || b->num_workers > RING_MAX_WORKERS)
		return -EPROTO;
	for (uint32_t w = 0; w < b->num_workers; w++) {
		struct ring_bell_chunk *c = client_loc(
			ctx, b->chunk_loc[w], sizeof(*c), RING_LINE, RING_ARENA_C);
		struct ring_bell_daemon *d = client_loc(
			ctx, b->daemon_loc[w], sizeof(*d), RING_LINE, RING_ARENA_D);

		if (!c || !d || (ctx->chunks[b->chunk][w] && ctx->chunks[b->chunk][w] != c))
			return -EPROTO;
		ctx->chunks[b->chunk][w] = c;
		ctx->bell_daemon[w] = d;
	}
	return 0;
}
