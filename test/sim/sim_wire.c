/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire: every node has a port of some rate, behind it a network that delays, and as the
 * profile says loses, doubles, overtakes and corrupts. Frames are copied, so that what an engine
 * does to its mbufs later cannot be seen here. Bits flip behind the Ethernet header and tag only:
 * there the frame check sequence would see it, and there is none here.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>

#include "roce_code.h"
#include "roce_hdr.h"
#include "roce_icrc.h"

#include "sim.h"

#define WIRE_BACKLOG (100 * SIM_US) /* what a port's queue holds */

static bool
pkt_before(const struct sim_pkt *a, const struct sim_pkt *b)
{
	return a->at != b->at ? a->at < b->at : a->id < b->id;
}

static void
heap_push(struct sim_wire *w, struct sim_pkt *p)
{
	uint32_t i = w->num++;

	if (w->num > w->room) {
		w->room = w->room ? 2 * w->room : 1024;
		w->heap = realloc(w->heap, w->room * sizeof(struct sim_pkt *));
		if (w->heap == NULL)
			abort();
	}
	for (; i > 0 && pkt_before(p, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = p;
}

static struct sim_pkt *
heap_pop(struct sim_wire *w)
{
	struct sim_pkt *top = w->heap[0], *last = w->heap[--w->num];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= w->num)
			break;
		if (child + 1 < w->num && pkt_before(w->heap[child + 1], w->heap[child]))
			child++;
		if (!pkt_before(w->heap[child], last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return top;
}

void
sim_wire_init(struct sim *s)
{
	static const uint32_t rate[] = {8000, 800, 320, 80}; /* 1, 10, 25, 100 Gb/s */
	static const uint32_t delay[] = {500, 2000, 10000, 100000};
	struct sim_wire *w = &s->wire;

	memset(w, 0, sizeof(*w));
	rng_seed(&w->rng, s->seed ^ UINT64_C(0x7769726500000000));
	w->ps_per_byte = rate[rng_below(&w->rng, 4)];
	w->delay = delay[rng_below(&w->rng, 4)];
	w->jitter = rng_below(&w->rng, 2) ? w->delay / 4 : 0;
}

void
sim_wire_fini(struct sim *s)
{
	struct sim_wire *w = &s->wire;

	while (w->num)
		free(heap_pop(w));
	free(w->heap);
	w->heap = NULL;
}

uint64_t
sim_wire_next(const struct sim *s)
{
	return s->wire.num ? s->wire.heap[0]->at : SIM_NEVER;
}

uint64_t
sim_wire_lifetime(const struct sim *s)
{
	return WIRE_BACKLOG + 20 * (s->wire.delay + s->wire.jitter) + 200 * SIM_US;
}

bool
sim_wire_room(const struct sim *s, unsigned int src)
{
	return s->wire.busy[src] < s->now + WIRE_BACKLOG;
}

/** Whether this one does not arrive. */
static bool
wire_loses(struct sim *s, unsigned int src, unsigned int dst)
{
	struct sim_wire *w = &s->wire;
	const struct sim_profile *p = s->prof;

	if (sim_chance(&w->rng, p->blackout))
		w->dark_until[src][dst] = s->now + rng_below(&w->rng, 30000) * SIM_US;
	if (s->now < w->dark_until[src][dst])
		return true;
	if (w->burst_left[src][dst] == 0 && sim_chance(&w->rng, p->burst))
		w->burst_left[src][dst] = sim_between(&w->rng, 2, 40);
	if (w->burst_left[src][dst]) {
		w->burst_left[src][dst]--;
		return true;
	}
	return sim_chance(&w->rng, p->loss);
}

/** Flip bits: one, a few near another, or far apart. */
static void
wire_corrupt(struct sim *s, struct sim_pkt *p)
{
	struct sim_wire *w = &s->wire;
	uint32_t l3 = sim_frame_l3(p->data), bits = (p->len - l3) * 8;
	uint32_t at = rng_below(&w->rng, bits);
	uint32_t n = sim_between(&w->rng, 1, 3);

	for (uint32_t i = 0; i < n; i++) {
		p->data[l3 + at / 8] ^= (uint8_t)(1u << (at % 8));
		at = (at + 1 + rng_below(&w->rng, 31)) % bits;
	}
	w->corrupted++;
	sim_trace_packet(SIM_EV_CORRUPT, s->now, p->src, p->dst, p->data, p->len);
}

/**
 * Cut four bytes of payload off the last packet of a WRITE and make all else right again. Who
 * takes it for the whole message has placed too little.
 */
static void
wire_mutate(struct sim *s, struct sim_pkt *p)
{
	bool v6 = sim_frame_v6(p->data);
	uint32_t l3 = sim_frame_l3(p->data), l4 = l3 + (v6 ? 40 : 20);
	uint8_t *bth = p->data + l4 + 8;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(p->data + l3);
	struct sim_ep *ep = sim_ep_of_qpn(&s->node[p->dst], roce_bth_qpn((const void *)bth));
	uint16_t len;

	if (ep == NULL ||
	    ((bth[0] & 0x1f) != ROCE_RC_WRITE_LAST && (bth[0] & 0x1f) != ROCE_RC_WRITE_ONLY) ||
	    p->len < l4 + 8 + ROCE_BTH_LEN + 16 + 8 + ROCE_ICRC_LEN)
		return;
	p->len -= 4;
	len = htobe16((uint16_t)(p->len - l4));
	memcpy(p->data + l4 + 4, &len, 2);
	len = htobe16((uint16_t)(p->len - (v6 ? l4 : l3)));
	memcpy(p->data + l3 + (v6 ? 4 : 2), &len, 2);
	if (!v6) {
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	}
	roce_icrc_write(p->data + l3, v6, p->len - l3);
	ep->causes |= CAUSE_BAD_RECV | CAUSE_MUTATED;
	ep->peer->causes |= CAUSE_BAD_RECV | CAUSE_MUTATED;
	sim_trace_packet(SIM_EV_CORRUPT, s->now, p->src, p->dst, p->data, p->len);
}

/** When a packet that leaves at `out` arrives. */
static uint64_t
wire_arrival(struct sim *s, unsigned int src, unsigned int dst, uint64_t out)
{
	struct sim_wire *w = &s->wire;
	uint64_t at = out + w->delay + (w->jitter ? rng_below(&w->rng, (uint32_t)w->jitter) : 0);

	if (sim_chance(&w->rng, s->prof->reorder)) {
		w->reordered++;
		return at + rng_below(&w->rng, (uint32_t)(4 * w->delay) + 20000);
	}
	if (at <= w->last[src][dst])
		at = w->last[src][dst] + 1;
	w->last[src][dst] = at;
	return at;
}

static void
wire_put(struct sim *s, unsigned int src, unsigned int dst, uint64_t out, const uint8_t *data,
	 uint32_t len)
{
	struct sim_pkt *p = malloc(sizeof(*p) + len);

	if (p == NULL)
		abort();
	p->len = len;
	p->src = (uint8_t)src;
	p->dst = (uint8_t)dst;
	p->id = s->wire.next_id++;
	p->next = NULL;
	memcpy(p->data, data, len);
	if (sim_chance(&s->wire.rng, s->prof->corrupt))
		wire_corrupt(s, p);
	if (sim_chance(&s->wire.rng, s->prof->mutate))
		wire_mutate(s, p);
	p->at = wire_arrival(s, src, dst, out);
	heap_push(&s->wire, p);
}

/** As rxe does: behind an RNR NAK a sequence NAK of the same PSN, which must not cut the wait. */
static void
wire_echo_rnr(struct sim *s, unsigned int src, unsigned int dst, uint64_t out,
	      const uint8_t *data, uint32_t len)
{
	uint32_t l3 = sim_frame_l3(data), bth = sim_frame_bth(data);
	uint8_t copy[128];

	if (len > sizeof(copy) || data[bth] != ROCE_RC_ACK ||
	    !roce_syn_is(data[bth + ROCE_BTH_LEN], ROCE_SYN_RNR))
		return;
	memcpy(copy, data, len);
	copy[bth + ROCE_BTH_LEN] = ROCE_NAK_PSN_SEQ;
	roce_icrc_write(copy + l3, sim_frame_v6(data), len - l3);
	sim_trace_packet(SIM_EV_DUP, s->now, src, dst, copy, len);
	wire_put(s, src, dst, out, copy, len);
}

void
sim_wire_send(struct sim *s, unsigned int src, const uint8_t *data, uint32_t len)
{
	struct sim_wire *w = &s->wire;
	unsigned int dst = data[5] - 1u; /* last byte of the MAC */
	uint64_t start = w->busy[src] > s->now ? w->busy[src] : s->now;
	uint64_t out = start + (uint64_t)(len + 24) * w->ps_per_byte / 1000;

	if (dst >= s->num_nodes || data[0] != 2)
		sim_fail(s, "node %u sent a frame to nobody's MAC", src);
	w->busy[src] = out;
	w->sent++;
	sim_trace_packet(SIM_EV_TX, s->now, src, dst, data, len);
	if (wire_loses(s, src, dst)) {
		w->lost++;
		sim_trace_packet(SIM_EV_DROP, s->now, src, dst, data, len);
		return;
	}
	wire_put(s, src, dst, out, data, len);
	if (s->prof->rnr_echo)
		wire_echo_rnr(s, src, dst, out, data, len);
	if (sim_chance(&w->rng, s->prof->dup)) {
		w->doubled++;
		sim_trace_packet(SIM_EV_DUP, s->now, src, dst, data, len);
		wire_put(s, src, dst, out + rng_below(&w->rng, 30000), data, len);
	}
}

void
sim_wire_deliver(struct sim *s)
{
	struct sim_wire *w = &s->wire;

	while (w->num && w->heap[0]->at <= s->now) {
		struct sim_pkt *p = heap_pop(w);
		struct sim_node *n = &s->node[p->dst];

		sim_trace_packet(SIM_EV_RX, s->now, p->src, p->dst, p->data, p->len);
		if (n->dead) {
			free(p);
			continue;
		}
		if (n->rx_head)
			n->rx_tail->next = p;
		else
			n->rx_head = p;
		n->rx_tail = p;
		n->rx_count++;
		sim_node_wake(n, s->now);
	}
}
