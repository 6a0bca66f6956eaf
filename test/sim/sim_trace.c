/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace: a ring of the newest events in memory, written out when a seed fails or on
 * request, as text (tcpdump's manner, decoded by the engine's codec) or pcap with virtual times.
 * Its hash covers every event of the run and tells whether a replay is the same.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base_crc.h"
#include "roce_hdr.h"

#include "sim.h"

#define TRACE_EVENTS 8192u /* a power of two */
#define TRACE_SNAP 128

struct trace_event {
	uint64_t now;
	uint32_t len;
	uint8_t ev, src, dst;
	uint8_t data[TRACE_SNAP]; /* frame, or text */
};

static struct trace_event ring[TRACE_EVENTS];
static uint64_t count, hash;

static const char *const ev_name[] = {
	[SIM_EV_TX] = "tx",   [SIM_EV_RX] = "rx",	    [SIM_EV_DROP] = "LOST",
	[SIM_EV_DUP] = "DUP", [SIM_EV_CORRUPT] = "CORRUPT", [SIM_EV_NOTE] = "--",
};

void
sim_trace_reset(void)
{
	count = 0;
	hash = 0;
}

uint64_t
sim_trace_hash(void)
{
	return hash;
}

static struct trace_event *
trace_add(enum sim_ev ev, uint64_t now, unsigned int src, unsigned int dst, const void *data,
	  uint32_t len)
{
	struct trace_event *e = &ring[count++ % TRACE_EVENTS];

	e->now = now;
	e->ev = (uint8_t)ev;
	e->src = (uint8_t)src;
	e->dst = (uint8_t)dst;
	e->len = len;
	memcpy(e->data, data, len < TRACE_SNAP ? len : TRACE_SNAP);
	hash = (hash ^ crc32_update((uint32_t)now, data, len) ^ (uint64_t)ev << 56 ^
		now << 8 ^ (uint64_t)src << 48 ^ dst) * UINT64_C(0x9E3779B97F4A7C15);
	return e;
}

void
sim_trace_packet(enum sim_ev ev, uint64_t now, unsigned int src, unsigned int dst,
		 const uint8_t *data, uint32_t len)
{
	trace_add(ev, now, src, dst, data, len);
}

void
sim_note(const struct sim *s, const char *fmt, ...)
{
	char text[TRACE_SNAP];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(text))
		n = sizeof(text) - 1;
	trace_add(SIM_EV_NOTE, s->now, 0, 0, text, (uint32_t)n + 1);
}

static void
text_aeth(FILE *f, const struct roce_pkt *p)
{
	static const char *const nak[] = {"seq", "invalid", "access", "op", "rd"};
	unsigned int v = p->syndrome & 0x1f;

	if ((p->syndrome & 0xe0) == 0)
		fprintf(f, " ack credit %u", v);
	else if ((p->syndrome & 0xe0) == 0x20)
		fprintf(f, " RNR %u", v);
	else if ((p->syndrome & 0xe0) == 0x60 && v < 5)
		fprintf(f, " NAK-%s", nak[v]);
	else
		fprintf(f, " syndrome %02x", p->syndrome);
	fprintf(f, " msn %u", p->msn);
}

static void
text_packet(FILE *f, const struct trace_event *e)
{
	uint32_t off = sim_frame_bth(e->data);
	struct roce_pkt p;
	uint32_t have = e->len < TRACE_SNAP ? e->len : TRACE_SNAP;

	if (have < off + ROCE_BTH_LEN || roce_parse(e->data + off, have - off, &p) != ROCE_OK) {
		fprintf(f, " len %u (not RoCE)", e->len);
		return;
	}
	fprintf(f, " %-18s qp %06x psn %06x%s%s", roce_opcode_name(p.opcode), p.dest_qpn, p.psn,
		p.ackreq ? " A" : "", p.se ? " SE" : "");
	if (p.info->aeth)
		text_aeth(f, &p);
	if (p.info->reth || p.info->atomiceth)
		fprintf(f, " va %" PRIx64 " rkey %08x", p.va, p.rkey);
	if (p.info->reth)
		fprintf(f, " dmalen %u", p.dma_len);
	if (p.info->atomiceth)
		fprintf(f, " swap/add %" PRIx64 " cmp %" PRIx64, p.swap_add, p.compare);
	if (p.info->atomack)
		fprintf(f, " orig %" PRIx64, p.orig);
	if (p.info->immdt)
		fprintf(f, " imm %08x", be32toh(p.imm_be));
	if (p.info->ieth)
		fprintf(f, " inv %08x", p.inv_rkey);
	fprintf(f, " payload %d", (int)(e->len - off - ROCE_BTH_LEN - p.info->ext_len -
					ROCE_ICRC_LEN - p.pad));
}

static uint64_t
trace_first(void)
{
	return count > TRACE_EVENTS ? count - TRACE_EVENTS : 0;
}

void
sim_trace_text(FILE *f)
{
	if (trace_first())
		fprintf(f, "(%" PRIu64 " earlier events are gone)\n", trace_first());
	for (uint64_t i = trace_first(); i < count; i++) {
		const struct trace_event *e = &ring[i % TRACE_EVENTS];

		fprintf(f, "%10" PRIu64 ".%03u ", e->now / 1000, (unsigned int)(e->now % 1000));
		if (e->ev == SIM_EV_NOTE) {
			fprintf(f, "%s %s\n", ev_name[e->ev], (const char *)e->data);
			continue;
		}
		fprintf(f, "%u>%u %-7s", e->src, e->dst, ev_name[e->ev]);
		text_packet(f, e);
		fputc('\n', f);
	}
}

int
sim_trace_pcap(const char *path)
{
	/* nanoseconds, Ethernet */
	const uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, TRACE_SNAP, 1};
	FILE *f = fopen(path, "w");

	if (f == NULL)
		return -1;
	fwrite(head, sizeof(head), 1, f);
	for (uint64_t i = trace_first(); i < count; i++) {
		const struct trace_event *e = &ring[i % TRACE_EVENTS];
		uint32_t have = e->len < TRACE_SNAP ? e->len : TRACE_SNAP;
		uint32_t rec[4] = {(uint32_t)(e->now / 1000000000), (uint32_t)(e->now % 1000000000),
				   have, e->len};

		if (e->ev != SIM_EV_TX && e->ev != SIM_EV_DUP && e->ev != SIM_EV_CORRUPT)
			continue;
		fwrite(rec, sizeof(rec), 1, f);
		fwrite(e->data, have, 1, f);
	}
	return fclose(f);
}
