/* SPDX-License-Identifier: BSD-3-Clause */
/* The CM messages of the captures. */
#ifndef ROCE_CM_CAPTURE_H
#define ROCE_CM_CAPTURE_H

#include <stdlib.h>

#include "capture.h"
#include "roce_hdr.h"

struct cm_capture {
	struct capture *c;
	const uint8_t *ip, *mad; /* of the frame last found */
	bool v6;
	uint8_t src[16], dst[16], tclass;
};

static inline void
cm_capture_addresses(struct cm_capture *m)
{
	static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };
	const unsigned int at = m->v6 ? 8 : 12, len = m->v6 ? 16 : 4;

	memcpy(m->src, v4_prefix, 12);
	memcpy(m->dst, v4_prefix, 12);
	memcpy(m->src + 16 - len, m->ip + at, len);
	memcpy(m->dst + 16 - len, m->ip + at + len, len);
	m->tclass = m->v6 ? (uint8_t)(m->ip[0] << 4 | m->ip[1] >> 4) : m->ip[1];
}

/** The next message to QP1; false at the end. */
static inline bool
cm_capture_next(struct cm_capture *m)
{
	while (capture_next(m->c)) {
		struct roce_pkt p;
		size_t len, skip;
		bool v6;
		const uint8_t *ip = capture_ip(m->c, &len, &v6);

		skip = v6 ? 48 : 28;
		if (ip == NULL || len < skip + ROCE_BTH_LEN + ROCE_ICRC_LEN ||
		    roce_parse(ip + skip, len - skip - ROCE_ICRC_LEN, &p) != ROCE_OK ||
		    p.dest_qpn != 1)
			continue;
		if (p.payload_len != 256 || p.qkey != 0x80010000 || p.src_qpn != 1)
			capture_fault("frame", "not a MAD of QP1");
		m->ip = ip;
		m->mad = p.payload;
		m->v6 = v6;
		cm_capture_addresses(m);
		return true;
	}
	return false;
}

/** The frame of this number, which must be a MAD: opened, to be closed with capture_close(). */
static inline struct cm_capture
cm_capture_frame(const char *file, unsigned int number)
{
	struct cm_capture m = { .c = capture_open(file) };

	while (cm_capture_next(&m))
		if (m.c->number == number)
			return m;
	capture_fault(file, "no such MAD");
	abort();
}

#endif /* ROCE_CM_CAPTURE_H */
