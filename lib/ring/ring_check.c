/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring headers are inline; compiling them here holds their layout assertions to account. */
#include "ring_abi.h"
#include "ring_bell.h"
#include "ring_cq.h"
#include "ring_wq.h"

static_assert(offsetof(struct ring_wqe, data) == 32, "ABI: SGEs start in mid-slot");
static_assert(offsetof(struct ring_cqe, tag) == 20, "ABI");
static_assert(sizeof(struct ring_cq_client) == 3 * RING_LINE, "ABI");
