/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN's rate machine of one flow, in integers, apart from packets and timers: it is told what
 * has happened and when. Private to lib/roce.
 */
#ifndef ROCE_DCQCN_H
#define ROCE_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#include "roce_cc.h"

#define DCQCN_ALPHA_ONE (1u << 30)
#define DCQCN_COST_SHIFT 20

struct roce_dcqcn {
	uint32_t rate, target;	/* kb/s: Rc, Rt */
	uint32_t line, least;	/* kb/s: their bounds */
	uint32_t alpha;		/* of DCQCN_ALPHA_ONE */
	uint32_t by_time, by_bytes; /* increases since the cut */
	uint64_t cost;		/* ns << DCQCN_COST_SHIFT that a byte takes at `rate` */
	int64_t bytes_left;	/* until the next increase by bytes */
	uint64_t alpha_at, increase_at; /* ns: timers */
	uint64_t cut_at;	/* ns: of the last cut */
};

/** A flow that goes at line rate until now. */
void dcqcn_init(struct roce_dcqcn *d, const struct roce_cc_params *p, uint64_t now);
/** A CNP has come. @return whether it cut the rate: not when one did just before. */
bool dcqcn_cnp(struct roce_dcqcn *d, const struct roce_cc_params *p, uint64_t now);
/** Timers that have expired by now. */
void dcqcn_expire(struct roce_dcqcn *d, const struct roce_cc_params *p, uint64_t now);
/** So many bytes have left. */
void dcqcn_sent(struct roce_dcqcn *d, const struct roce_cc_params *p, uint32_t bytes);

static inline bool
dcqcn_due(const struct roce_dcqcn *d, uint64_t now)
{
	return d->alpha_at <= now || d->increase_at <= now;
}

/** ns that so many bytes take. */
static inline uint64_t
dcqcn_ns(const struct roce_dcqcn *d, uint32_t bytes)
{
	return bytes * d->cost >> DCQCN_COST_SHIFT;
}

static inline bool
dcqcn_limits(const struct roce_dcqcn *d)
{
	return d->rate < d->line;
}

#endif /* ROCE_DCQCN_H */
