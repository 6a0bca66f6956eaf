/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement copy, see base_copy.h for what an application may rely on. */
#include <stdint.h>
#include <string.h>

#include <rte_atomic.h>

#include "base_copy.h"

void
copy_place(void *dst, const void *src, size_t n)
{
	size_t last = n < 64 ? n : 64;
	memcpy(dst, src, n - last);
	rte_smp_wmb();
	memcpy((char *)dst + n - last, (const char *)src + n - last, last);
}
