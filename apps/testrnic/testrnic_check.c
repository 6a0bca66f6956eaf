/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether what arrived is what was sent. A stamp stands in the last eight bytes of each 4 KiB
 * of a message and names it; the receiving engine stores a packet's last bytes last, so the
 * message is there when its last stamp is.
 */
#include <string.h>

#include "testrnic_load_priv.h"

static uint64_t
block_stamp(uint64_t stamp, uint32_t block)
{
	return (stamp + 1) * 0x9e3779b97f4a7c15ull + block;
}

static uint64_t *
stamp_at(const struct load *l, const uint8_t *message, uint32_t block)
{
	size_t end = ((size_t)block + 1) * LOAD_BLOCK;

	if (end > l->spec.size)
		end = l->spec.size;
	return (uint64_t *)(uintptr_t)(message + end - sizeof(uint64_t));
}

static uint32_t
num_blocks(const struct load *l)
{
	return (l->spec.size + LOAD_BLOCK - 1) / LOAD_BLOCK;
}

void
load_stamp(const struct load *l, uint8_t *message, uint64_t stamp)
{
	for (uint32_t b = 0; b < num_blocks(l); b++)
		*stamp_at(l, message, b) = block_stamp(stamp, b);
}

bool
load_arrived(const struct load *l, const uint8_t *message, uint64_t stamp)
{
	uint32_t last = num_blocks(l) - 1;

	return __atomic_load_n(stamp_at(l, message, last), __ATOMIC_ACQUIRE) ==
	       block_stamp(stamp, last);
}

bool
load_stamped(const struct load *l, const uint8_t *message, uint64_t stamp)
{
	for (uint32_t b = 0; b < num_blocks(l); b++)
		if (*stamp_at(l, message, b) != block_stamp(stamp, b))
			return false;
	return true;
}

bool
load_check(const struct load *l, uint32_t qp, uint64_t n, uint64_t stamp, uint64_t *compared)
{
	const uint8_t *from = load_slot(l, &l->tx, qp, n), *to = load_slot(l, &l->rx, qp, n);
	bool back = l->spec.op == LOAD_READ;

	if (!load_stamped(l, back ? from : to, stamp))
		return false;
	if (n % LOAD_COMPARE != 0)
		return true;
	++*compared;
	return memcmp(from, to, l->spec.size) == 0;
}

bool
load_same(const struct load *l, uint64_t *compared)
{
	for (uint32_t q = 0; q < l->spec.qps; q++) {
		uint64_t end = l->posted[q], n = end - l->base[q];

		for (n = end - (n < l->slots ? n : l->slots); n < end; n++) {
			++*compared;
			if (memcmp(load_slot(l, &l->tx, q, n), load_slot(l, &l->rx, q, n),
				   l->spec.size) != 0)
				return false;
		}
	}
	return true;
}
