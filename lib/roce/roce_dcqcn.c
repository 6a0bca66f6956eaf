/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN, the reaction point. A CNP: the target is the rate reached, the rate falls by alpha / 2,
 * alpha rises towards 1, and the way up begins anew. Alpha falls with each period without a CNP.
 * The rate rises by time and by bytes alike: halfway to the target each time (fast recovery, the
 * first F events), then with the target raised by R_AI (additive), and by more and more once
 * both have passed F (hyper). Divisions are made when the rate changes, none for a packet.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "roce_dcqcn.h"

#define MBPS 1000u /* kb/s */
/* Periods caught up at once: who looks that late has been away, and nothing was sent. */
#define STEPS_MAX 64

const struct roce_cc_params roce_cc_defaults = {
#define X(member, name, min, max, def, help) .member = def,
	ROCE_CC_PARAMS(X)
#undef X
};

const struct roce_cc_desc roce_cc_desc[] = {
#define X(member, name, min, max, def, help) {name, help, min, max},
	ROCE_CC_PARAMS(X)
#undef X
};

int
roce_cc_param_set(struct roce_cc_params *p, const char *name, uint64_t value)
{
	for (unsigned int i = 0; i < ROCE_CC_NUM_PARAMS; i++) {
		if (strcmp(roce_cc_desc[i].name, name) != 0)
			continue;
		if (value < roce_cc_desc[i].min || value > roce_cc_desc[i].max)
			return -ERANGE;
		((uint32_t *)p)[i] = (uint32_t)value;
		return 0;
	}
	return -ENOENT;
}

static uint32_t
at_most(uint64_t v, uint32_t max)
{
	return v < max ? (uint32_t)v : max;
}

/** Its bounds may have changed meanwhile: the link's speed, a setting. */
static void
bound(struct roce_dcqcn *d, const struct roce_cc_params *p)
{
	d->line = (p->line_mbps ? p->line_mbps : ROCE_CC_LINE_MBPS) * MBPS;
	d->least = at_most((uint64_t)p->min_mbps * MBPS, d->line);
}

static void
set_rate(struct roce_dcqcn *d, uint64_t rate)
{
	d->rate = at_most(rate < d->least ? d->least : rate, d->line);
	/* 8 bits a byte, and 10^6 ns in a ms, of which the rate is bits */
	d->cost = (UINT64_C(8000000) << DCQCN_COST_SHIFT) / d->rate;
}

static void
restart(struct roce_dcqcn *d, const struct roce_cc_params *p, uint64_t now)
{
	d->by_time = d->by_bytes = 0;
	d->bytes_left = (int64_t)p->increase_kb * 1000;
	d->alpha_at = now + p->alpha_us * UINT64_C(1000);
	d->increase_at = now + p->increase_us * UINT64_C(1000);
}

void
dcqcn_init(struct roce_dcqcn *d, const struct roce_cc_params *p, uint64_t now)
{
	memset(d, 0, sizeof(*d));
	bound(d, p);
	d->target = d->line;
	d->alpha = DCQCN_ALPHA_ONE;
	set_rate(d, d->line);
	restart(d, p, now);
}

bool
dcqcn_cnp(struct roce_dcqcn *d, const struct roce_cc_params *p, uint64_t now)
{
	if (d->cut_at != 0 && now - d->cut_at < p->cut_interval_us * UINT64_C(1000))
		return false;
	bound(d, p);
	d->cut_at = now;
	d->target = d->rate;
	set_rate(d, d->rate - ((uint64_t)d->rate * d->alpha >> 31));
	d->alpha += (DCQCN_ALPHA_ONE - d->alpha) >> p->alpha_shift;
	restart(d, p, now);
	return true;
}

static void
increase(struct roce_dcqcn *d, const struct roce_cc_params *p)
{
	uint32_t more = d->by_time > d->by_bytes ? d->by_time : d->by_bytes;
	uint32_t less = d->by_time > d->by_bytes ? d->by_bytes : d->by_time;

	if (less >= p->fast_steps)
		d->target = at_most(d->target + (uint64_t)(less - p->fast_steps + 1) *
				    p->hai_mbps * MBPS, d->line);
	else if (more >= p->fast_steps)
		d->target = at_most(d->target + (uint64_t)p->ai_mbps * MBPS, d->line);
	/* The last kb/s would take for ever. */
	set_rate(d, d->target - d->rate < MBPS ? d->target
					       : ((uint64_t)d->target + d->rate) / 2);
}

void
dcqcn_expire(struct roce_dcqcn *d, const struct roce_cc_params *p, uint64_t now)
{
	unsigned int steps = 0;

	bound(d, p);
	d->target = at_most(d->target, d->line);
	for (; d->alpha_at <= now && steps < STEPS_MAX; steps++) {
		d->alpha -= d->alpha >> p->alpha_shift;
		d->alpha_at += p->alpha_us * UINT64_C(1000);
	}
	for (; d->increase_at <= now && steps < 2 * STEPS_MAX; steps++) {
		increase(d, p);
		d->by_time++;
		d->increase_at += p->increase_us * UINT64_C(1000);
	}
	if (d->alpha_at <= now)
		d->alpha_at = now + p->alpha_us * UINT64_C(1000);
	if (d->increase_at <= now)
		d->increase_at = now + p->increase_us * UINT64_C(1000);
}

void
dcqcn_sent(struct roce_dcqcn *d, const struct roce_cc_params *p, uint32_t bytes)
{
	d->bytes_left -= bytes;
	if (d->bytes_left > 0)
		return;
	increase(d, p);
	d->by_bytes++;
	d->bytes_left += (int64_t)p->increase_kb * 1000;
}
