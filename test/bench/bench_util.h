/* SPDX-License-Identifier: BSD-3-Clause */
/* Timing of small functions: the best of several runs, in nanoseconds a call. */
#ifndef BENCH_UTIL_H
#define BENCH_UTIL_H

#include <stdint.h>
#include <time.h>

static inline double
bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#define BENCH_NS 2e7 /* a run */
#define BENCH_RUNS 7

/* Evaluates `call` over and over; `best` gets the ns for one. */
#define BENCH(best, call) \
	do { \
		unsigned int n_ = 64; \
		(best) = 1e30; \
		for (int run_ = 0; run_ < BENCH_RUNS; run_++) { \
			double t_ = bench_now(); \
			for (unsigned int i_ = 0; i_ < n_; i_++) \
				call; \
			t_ = bench_now() - t_; \
			if (t_ < BENCH_NS) { \
				n_ *= 2; \
				run_--; \
				continue; \
			} \
			if (t_ / n_ < (best)) \
				(best) = t_ / n_; \
		} \
	} while (0)

#endif /* BENCH_UTIL_H */
