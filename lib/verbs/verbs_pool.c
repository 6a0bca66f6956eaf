/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's pools: one allocation at the start, free lists from then on; and its counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

COUNTERS_TABLE(verbs_counter_desc, VERBS_COUNTERS);

static size_t
pool_round(size_t n)
{
	return (n + RING_LINE - 1) & ~(size_t)(RING_LINE - 1);
}

int
verbs_worker_init(struct verbs_worker *w, uint32_t id, struct mr_table *mrs,
		  const struct verbs_host *host, uint32_t shadows, uint32_t blocks, uint32_t ios)
{
	size_t wqe_size = pool_round(sizeof(struct verbs_wqe));
	size_t block_size = pool_round(sizeof(struct verbs_sgl_block));
	size_t io_size = pool_round(sizeof(struct verbs_io));
	size_t total = wqe_size * shadows + block_size * blocks + io_size * ios;
	uint8_t *p;

	memset(w, 0, sizeof(*w));
	p = aligned_alloc(RING_LINE, total ? total : RING_LINE);
	if (p == NULL)
		return -ENOMEM;
	memset(p, 0, total); /* touched here, not on the hot path */
	w->id = id;
	w->mrs = mrs;
	w->host = *host;
	w->memory = p;
	w->memory_size = total;
	w->shadows = shadows;
	w->blocks = blocks;
	w->ios = ios;
	TAILQ_INIT(&w->starved);
	/* backwards, so that the free lists hand out ascending addresses */
	for (uint32_t i = shadows; i-- > 0;) {
		struct verbs_wqe *q = (void *)(p + wqe_size * i);

		q->next = w->free_wqes;
		w->free_wqes = q;
	}
	p += wqe_size * shadows;
	for (uint32_t i = blocks; i-- > 0;) {
		struct verbs_sgl_block *b = (void *)(p + block_size * i);

		b->next = w->free_blocks;
		w->free_blocks = b;
	}
	p += block_size * blocks;
	for (uint32_t i = ios; i-- > 0;) {
		struct verbs_io *io = (void *)(p + io_size * i);

		io->next = w->free_ios;
		w->free_ios = io;
	}
	return 0;
}

void
verbs_worker_fini(struct verbs_worker *w)
{
	free(w->memory);
	memset(w, 0, sizeof(*w));
}
