/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetching cache lines that are about to be written. */
#ifndef BASE_PREFETCH_H
#define BASE_PREFETCH_H

/**
 * Fetch the line of `p` to write to it: owned, so that no other core must be asked again. By
 * name, since compilers give an ordinary prefetch instead unless told of a newer CPU; where it
 * is unknown, it does nothing.
 */
static inline void
prefetch_write(const void *p)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1, 3);
#endif
}

#endif /* BASE_PREFETCH_H */
