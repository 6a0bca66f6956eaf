/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links and the switch. A link has a rate and a length; so packets arrive in the order in which
 * they left, and a queue is the time until which it is busy. The switch loses, marks as RED does
 * (Kmin, Kmax, Pmax) by the length of the queue that the packet finds, and drops at the limit.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "flow_priv.h"

#define PORT_BACKLOG_NS UINT64_C(4000) /* what a node's port takes beyond what it sends now */
#define FRAME_GAP 24 /* preamble, FCS, gap */
#define L3 14

void
flow_fifo_put(struct flow_fifo *f, struct flow_pkt *p)
{
	p->next = NULL;
	if (f->head)
		f->tail->next = p;
	else
		f->head = p;
	f->tail = p;
}

struct flow_pkt *
flow_fifo_get(struct flow_fifo *f)
{
	struct flow_pkt *p = f->head;

	if (p)
		f->head = p->next;
	return p;
}

bool
flow_wire_room(const struct flow_world *s, uint32_t src)
{
	return s->link[src].up_busy < (s->now + PORT_BACKLOG_NS) * 1000;
}

uint64_t
flow_wire_room_at(const struct flow_world *s, uint32_t src)
{
	return s->link[src].up_busy / 1000 - PORT_BACKLOG_NS + 1;
}

/** When a packet that comes now has left through a port. */
static uint64_t
leave(const struct flow_world *s, uint64_t *busy, uint32_t len)
{
	if (*busy < s->now * 1000)
		*busy = s->now * 1000;
	*busy += (uint64_t)(len + FRAME_GAP) * s->ps_per_byte;
	return *busy / 1000;
}

void
flow_wire_send(struct flow_world *s, uint32_t src, const void *data, uint32_t len)
{
	struct flow_pkt *p = malloc(sizeof(*p) + len);

	if (p == NULL)
		abort();
	memcpy(p->data, data, len);
	p->len = len;
	p->src = (uint8_t)src;
	p->dst = (uint8_t)(p->data[5] - 1); /* last byte of the MAC */
	if (p->dst >= s->num_nodes)
		abort();
	p->at = leave(s, &s->link[src].up_busy, len) + s->hop_ns;
	flow_fifo_put(&s->link[src].up, p);
}

/** Congestion experienced; the header checksum with it (RFC 1624). */
static void
mark(struct flow_pkt *p)
{
	uint8_t *tos = &p->data[L3 + 1];
	uint16_t old, cksum;
	uint32_t sum;

	memcpy(&old, tos - 1, 2);
	*tos |= 3;
	memcpy(&cksum, &p->data[L3 + 10], 2);
	sum = (uint16_t)~rte_be_to_cpu_16(cksum) + (uint32_t)(uint16_t)~rte_be_to_cpu_16(old) +
	      (uint32_t)(p->data[L3] << 8 | *tos);
	sum = (sum & 0xffff) + (sum >> 16);
	cksum = rte_cpu_to_be_16((uint16_t)~((sum & 0xffff) + (sum >> 16)));
	memcpy(&p->data[L3 + 10], &cksum, 2);
}

static bool
marks(struct flow_world *s, const struct flow_pkt *p, uint32_t queue)
{
	const struct flow_params *prm = s->p;

	if (prm->pmax == 0 || queue <= prm->kmin || (p->data[L3 + 1] & 3) == 0)
		return false;
	if (queue >= prm->kmax)
		return true;
	return rng_below(&s->rng, 1000000) <
	       (uint64_t)prm->pmax * (queue - prm->kmin) / (prm->kmax - prm->kmin);
}

static void
through_switch(struct flow_world *s, struct flow_pkt *p)
{
	struct flow_link *out = &s->link[p->dst];
	uint64_t now_ps = s->now * 1000;
	uint32_t queue = 0;

	s->res->packets++;
	if (out->down_busy > now_ps)
		queue = (uint32_t)((out->down_busy - now_ps) / s->ps_per_byte);
	if (s->counting && queue > s->res->queue_max)
		s->res->queue_max = queue;
	if (s->p->loss_in && rng_below(&s->rng, s->p->loss_in) == 0) {
		s->res->lost++;
		free(p);
		return;
	}
	if (queue + p->len > s->p->queue) {
		s->res->dropped++;
		free(p);
		return;
	}
	if (marks(s, p, queue)) {
		s->res->marked++;
		mark(p);
	}
	p->at = leave(s, &out->down_busy, p->len) + s->hop_ns;
	flow_fifo_put(&out->down, p);
}

uint64_t
flow_wire_next(const struct flow_world *s)
{
	uint64_t at = FLOW_NEVER;

	for (uint32_t i = 0; i < s->num_nodes; i++) {
		const struct flow_link *l = &s->link[i];

		if (l->up.head && l->up.head->at < at)
			at = l->up.head->at;
		if (l->down.head && l->down.head->at < at)
			at = l->down.head->at;
	}
	return at;
}

void
flow_wire_run(struct flow_world *s)
{
	for (uint32_t i = 0; i < s->num_nodes; i++)
		while (s->link[i].up.head && s->link[i].up.head->at <= s->now)
			through_switch(s, flow_fifo_get(&s->link[i].up));
	for (uint32_t i = 0; i < s->num_nodes; i++) {
		struct flow_fifo *f = &s->link[i].down;

		while (f->head && f->head->at <= s->now) {
			flow_fifo_put(&s->node[i].rx, flow_fifo_get(f));
			if (s->now < s->node[i].wake)
				s->node[i].wake = s->now;
		}
	}
}

static void
drop_all(struct flow_fifo *f)
{
	struct flow_pkt *p;

	while ((p = flow_fifo_get(f)) != NULL)
		free(p);
}

void
flow_wire_fini(struct flow_world *s)
{
	for (uint32_t i = 0; i < s->num_nodes; i++) {
		drop_all(&s->link[i].up);
		drop_all(&s->link[i].down);
		drop_all(&s->node[i].rx);
	}
}
