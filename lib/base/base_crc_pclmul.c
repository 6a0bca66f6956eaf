/* SPDX-License-Identifier: BSD-3-Clause */
#include "base_crc_priv.h"

const struct crc_impl *
crc_pclmul(void)
{
	return NULL;
}
