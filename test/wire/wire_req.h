/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the requester's scripts begin. */
#ifndef WIRE_REQ_H
#define WIRE_REQ_H

#include "wire.h"

#define ACK31 roce_syn_ack(ROCE_CREDIT_CODE_NONE)
#define RADDR 0x7000000u
#define RKEY 0x1234u
#define T(code) (UINT64_C(4096) << (code))

static uint8_t data[8192];

/** RTS, credits unlimited by a first acknowledged WRITE at PSN 0x100; the next is 0x101. */
static inline struct wire *
wire_req_start(struct wire_params p)
{
	struct wire *w;

	wire_pattern(data, sizeof(data), 5);
	w = wire_new(&p);
	memcpy(w->mem, data, sizeof(data));
	wire_post(w, RING_WR_RDMA_WRITE, 0, 8, 0, RADDR, RKEY);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x100, NULL);
	wire_ack(w, 0x100, ACK31, 1);
	wire_cqe(w, WC_SUCCESS);
	return w;
}

#endif /* WIRE_REQ_H */
