/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring headers are inline; compiling them here holds their layout assertions to account. */
#include "ring_abi.h"
#include "ring_arm.h"
#include "ring_bell.h"
#include "ring_channel.h"
#include "ring_cq.h"
#include "ring_ctrl.h"
#include "ring_kick.h"
#include "ring_wq.h"

static_assert(offsetof(struct ring_wqe, data) == 32, "ABI: SGEs start in mid-slot");
static_assert(offsetof(struct ring_cqe, tag) == 20, "ABI");
static_assert(sizeof(struct ring_cq_client) == 3 * RING_LINE, "ABI");
static_assert(sizeof(struct ring_cq_client) % RING_LINE == 0, "ABI: no line shared");
static_assert(1 + (RING_MAX_SGE - RING_WQE_SGES + RING_SLOT_SGES - 1) / RING_SLOT_SGES <=
		      RING_MAX_WQE_SLOTS,
	      "a request of RING_MAX_SGE fits");
static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "shared between processes");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the ABI is little-endian");
static_assert(sizeof(((struct ring_ctrl_bells *)0)->chunk_loc) / sizeof(ring_loc_t) ==
		      RING_MAX_WORKERS,
	      "ABI");
