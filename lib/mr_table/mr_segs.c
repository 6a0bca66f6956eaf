/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runs of bytes that make up a region: checked and copied when it is registered, searched
 * when an access does not lie in one piece. Nothing here knows keys or rights.
 */
#include <stdlib.h>

#include "mr_table_priv.h"

static bool
mr_seg_valid(const struct mr_seg *s, uint64_t start, const void *lane)
{
	if (s->start != start || s->length == 0 || s->length > MR_MAX_LENGTH)
		return false;
	switch (s->kind) {
	case MR_SEG_DIRECT:
		return s->ptr != NULL && (uintptr_t)s->ptr <= UINTPTR_MAX - (s->length - 1);
	case MR_SEG_FOREIGN:
		return lane != NULL && s->remote <= UINT64_MAX - (s->length - 1);
	}
	return false;
}

bool
mr_segs_valid(const struct mr_desc *d)
{
	uint64_t end = 0;
	uint32_t i;

	for (i = 0; i < d->num_segs; i++) {
		if (!mr_seg_valid(&d->segs[i], end, d->lane))
			return false;
		/* Both are at most 2^48, so the sum does not wrap before it is compared. */
		end += d->segs[i].length;
		if (end > d->length)
			return false;
	}
	return end == d->length;
}

/* Whether b goes on in memory where a ends. */
static bool
mr_seg_adjoins(const struct mr_seg *a, const struct mr_seg *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == MR_SEG_DIRECT)
		return a->ptr + a->length == b->ptr;
	return a->remote + a->length == b->remote;
}

struct mr_segs *
mr_segs_build(const struct mr_seg *seg, uint32_t num)
{
	struct mr_segs *segs = malloc(sizeof(*segs) + (size_t)num * sizeof(*seg));
	struct mr_segs *fit;
	uint32_t i;

	if (segs == NULL)
		return NULL;
	segs->num = 0;
	for (i = 0; i < num; i++) {
		struct mr_seg *last = &segs->seg[segs->num - 1];

		if (i > 0 && mr_seg_adjoins(last, &seg[i]))
			last->length += seg[i].length;
		else
			segs->seg[segs->num++] = seg[i];
	}
	fit = realloc(segs, sizeof(*segs) + (size_t)segs->num * sizeof(*seg));
	return fit != NULL ? fit : segs;
}

const struct mr_seg *
mr_segs_find(const struct mr_segs *segs, uint64_t offset)
{
	uint32_t lo = 0;
	uint32_t hi = segs->num;

	/* The last run that starts at or before the offset; run 0 starts at 0. */
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (segs->seg[mid].start <= offset)
			lo = mid;
		else
			hi = mid;
	}
	return &segs->seg[lo];
}

uint8_t *
mr_segment(const struct mr_ref *ref, uint64_t off, uint64_t *run, uint64_t *remote)
{
	const struct mr_segs *segs = ref->mr->segs;
	uint64_t offset = ref->offset + off;
	const struct mr_seg *s;
	uint64_t into;

	*run = 0;
	*remote = 0;
	if (segs == NULL)
		return NULL;
	s = mr_segs_find(segs, offset);
	into = offset - s->start;
	if (into >= s->length)
		return NULL; /* behind the region's end */
	*run = s->length - into;
	if (s->kind == MR_SEG_DIRECT)
		return s->ptr + into;
	*remote = s->remote + into;
	return NULL;
}
