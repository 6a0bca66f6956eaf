/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of offloads, as --no-offload takes them. */
#include <stddef.h>

#include "pmd_glue.h"

static const char *const names[PMD_OFFLOAD_COUNT] = {
	[PMD_OFFLOAD_RX_IPV4_CKSUM] = "rx-ipv4-cksum",
	[PMD_OFFLOAD_TX_IPV4_CKSUM] = "tx-ipv4-cksum",
	[PMD_OFFLOAD_TX_MULTI_SEGS] = "tx-multi-segs",
	[PMD_OFFLOAD_RX_SCATTER] = "rx-scatter",
	[PMD_OFFLOAD_TX_FAST_FREE] = "tx-fast-free",
	[PMD_OFFLOAD_VLAN_STRIP] = "vlan-strip",
	[PMD_OFFLOAD_RSS] = "rss",
};

const char *
pmd_offload_name(enum pmd_offload o)
{
	return (unsigned int)o < PMD_OFFLOAD_COUNT ? names[o] : NULL;
}
