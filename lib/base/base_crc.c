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
