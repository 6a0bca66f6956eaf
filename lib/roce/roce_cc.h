/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion management of a port (IBTA A17 17.9.3; DCQCN, Zhu et al., SIGCOMM 2015): what can be
 * set. One table serves the configuration file, rnicctl and the engine.
 */
#ifndef ROCE_CC_H
#define ROCE_CC_H

#include <stdbool.h>
#include <stdint.h>

/* The member, the name where it is set, least, most, default, what it is. */
#define ROCE_CC_PARAMS(X)                                                                        \
	X(enabled, "cc", 0, 1, 1, "ECT(0) on packets, CNPs sent and obeyed")                     \
	X(cnp_dscp, "cc-cnp-dscp", 0, 63, 48, "DSCP of the CNPs sent")                           \
	X(cnp_interval_us, "cc-cnp-interval", 1, 1000000, 50, "us between two CNPs of a QP")     \
	X(line_mbps, "cc-line-rate", 0, 4000000, 0, "Mb/s; 0: the link's speed")                 \
	X(min_mbps, "cc-min-rate", 1, 4000000, 100, "Mb/s below which no QP is slowed")          \
	X(cut_interval_us, "cc-cut-interval", 0, 1000000, 4, "us between two cuts of a QP")      \
	X(alpha_shift, "cc-alpha-shift", 1, 16, 8, "g, the weight of a CNP in alpha, is 2^-this") \
	X(alpha_us, "cc-alpha-timer", 1, 1000000, 55, "us without a CNP after which alpha falls") \
	X(increase_us, "cc-increase-timer", 1, 1000000, 55, "us between increases by time")      \
	X(increase_kb, "cc-increase-kbytes", 1, 1000000, 10000, "KB between increases by bytes") \
	X(fast_steps, "cc-fast-steps", 1, 100, 5, "increases of fast recovery")                  \
	X(ai_mbps, "cc-additive-rate", 1, 1000000, 5, "Mb/s, of an additive increase")           \
	X(hai_mbps, "cc-hyper-rate", 1, 1000000, 50, "Mb/s, of a hyper increase")

/** What a port does; each member a number, so that a table can name it. */
struct roce_cc_params {
#define X(member, name, min, max, def, help) uint32_t member;
	ROCE_CC_PARAMS(X)
#undef X
};

#define ROCE_CC_NUM_PARAMS ((unsigned int)(sizeof(struct roce_cc_params) / sizeof(uint32_t)))
#define ROCE_CC_LINE_MBPS 10000u /* of a link whose speed nobody knows */

extern const struct roce_cc_params roce_cc_defaults;

struct roce_cc_desc {
	const char *name, *help;
	uint32_t min, max;
};
extern const struct roce_cc_desc roce_cc_desc[];

/** The i-th parameter, in the order of roce_cc_desc[]. */
static inline uint32_t
roce_cc_param(const struct roce_cc_params *p, unsigned int i)
{
	return ((const uint32_t *)p)[i];
}
/** @return 0, -ENOENT: no such name, -ERANGE. */
int roce_cc_param_set(struct roce_cc_params *p, const char *name, uint64_t value);

#endif /* ROCE_CC_H */
