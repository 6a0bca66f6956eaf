/* SPDX-License-Identifier: BSD-3-Clause */
/* What the scripts of UD share: a wire whose QP is UD, and datagrams from the peer. */
#ifndef WIRE_UD_H
#define WIRE_UD_H

#include "roce_ud_priv.h"
#include "wire.h"

#define GRH 40u
#define RECV_LEN 2048u

static const struct wire_params ud = {.type = VERBS_QPT_UD, .credits = true};

/** A datagram from the peer's QP. */
static inline void
datagram(struct wire *w, struct roce_pkt p, uint32_t len)
{
	uint8_t body[4096];

	wire_pattern(body, len, 7);
	if (p.opcode == 0)
		p.opcode = ROCE_UD_SEND_ONLY;
	if (p.qkey == 0)
		p.qkey = WIRE_QKEY;
	p.src_qpn = WIRE_PEER_QPN;
	wire_pkt(w, p, body, len);
}

static inline void
expect_body(struct wire *w, uint32_t off, uint32_t len)
{
	uint8_t body[4096];

	wire_pattern(body, len, 7);
	ck_assert_mem_eq(w->mem + off + GRH, body, len);
}

#endif /* WIRE_UD_H */
