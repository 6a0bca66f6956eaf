/* SPDX-License-Identifier: BSD-3-Clause */
/* A full fence. ThreadSanitizer knows none, so it gets a locked operation in its place. */
#ifndef RING_FENCE_H
#define RING_FENCE_H

#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__)
#define RING_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RING_TSAN 1
#endif
#endif

#ifdef RING_TSAN
static inline void
ring_fence(void)
{
	static _Atomic int order;

	atomic_fetch_add_explicit(&order, 1, memory_order_seq_cst);
}
#else
static inline void
ring_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}
#endif

#endif /* RING_FENCE_H */
