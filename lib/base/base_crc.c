/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the CRC implementation once, before main(). Computes nothing itself. */
#include <string.h>

#include "base_crc_priv.h"

struct crc_impl crc_impl_now;

/* Best first. The last one works everywhere. */
static const struct crc_impl *(*const candidates[])(void) = {
	crc_vpclmul,
	crc_pclmul,
	crc_portable,
};

__attribute__((constructor)) void
crc_init(void)
{
	if (crc_impl_now.name != NULL)
		return;
	crc_tables_init();
	for (unsigned int i = 0; crc_impl_now.name == NULL; i++) {
		const struct crc_impl *impl = candidates[i]();

		if (impl != NULL)
			crc_impl_now = *impl;
	}
}

uint32_t
crc32_or_buffered(uint32_t state, const void *p, size_t n, const uint8_t *ones)
{
	const size_t first = n < CRC_OR_LEN ? n : CRC_OR_LEN;
	uint8_t buf[CRC_OR_LEN];

	if (n == 0)
		return state;
	for (size_t i = 0; i < first; i++)
		buf[i] = ((const uint8_t *)p)[i] | ones[i];
	state = crc32_update(state, buf, first);
	return n > first ? crc32_update(state, (const uint8_t *)p + first, n - first) : state;
}

const char *
crc_impl_name(void)
{
	return crc_impl_now.name;
}

bool
crc_select(const char *name)
{
	crc_init();
	for (unsigned int i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		const struct crc_impl *impl = candidates[i]();

		if (impl != NULL && strcmp(impl->name, name) == 0) {
			crc_impl_now = *impl;
			return true;
		}
	}
	return false;
}
