/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: the world made, time moved from event to event, what was reached counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "eal_start.h"
#include "flow_priv.h"

static struct flow_world world;
static struct rng arc;

/* The libraries' secrets, repeatable here: these definitions go before those of libc. */
uint32_t arc4random(void);
uint32_t arc4random_uniform(uint32_t n);
void arc4random_buf(void *buf, size_t n);

uint32_t
arc4random(void)
{
	return rng_u32(&arc);
}

uint32_t
arc4random_uniform(uint32_t n)
{
	return rng_below(&arc, n);
}

void
arc4random_buf(void *buf, size_t n)
{
	uint8_t *p = buf;

	while (n--)
		*p++ = (uint8_t)rng_u32(&arc);
}

int
flow_start(void)
{
	char *argv[] = {(char[]){"rnic-flow"}, (char[]){"--no-huge"}, (char[]){"--no-pci"},
			(char[]){"--no-shconf"}, (char[]){"--no-telemetry"}, (char[]){"-m"},
			(char[]){"128"}, (char[]){"--lcores=0"}, (char[]){"--log-level=critical"},
			NULL};

	if (eal_start(9, argv) < 0)
		return EIO;
	return flow_node_pools() ? ENOMEM : 0;
}

void
flow_defaults(struct flow_params *p)
{
	*p = (struct flow_params){
		.senders = 1, .qps = 1, .op = FLOW_WRITE, .mbps = 25000, .rtt_us = 20, .mtu = 4096,
		.msg = 64u << 10, .queue = 4u << 20, .kmin = 100000, .kmax = 400000, .pmax = 200000,
		.ccp = roce_cc_defaults, .timeout = 14, .warm = 5 * FLOW_MS, .run = 50 * FLOW_MS,
		.seed = 1,
	};
}

const char *
flow_op_name(enum flow_op op)
{
	static const char *const names[FLOW_OPS] = {"WRITE", "READ", "SEND"};

	return names[op];
}

static void
make_world(struct flow_world *s)
{
	const struct flow_params *p = s->p;

	s->num_nodes = p->senders + 1;
	s->ps_per_byte = 8000000 / p->mbps;
	s->hop_ns = (uint64_t)p->rtt_us * 1000 / 4; /* to the switch, to the node, and back */
	for (uint32_t i = 0; i < s->num_nodes; i++)
		flow_node_init(s, i);
	for (uint32_t i = 0; i < p->senders * p->qps; i++) {
		struct flow_node *sender = &s->node[1 + i % p->senders];

		if (p->op == FLOW_READ)
			flow_pair(s, &s->node[0], sender, false);
		else
			flow_pair(s, sender, &s->node[0], false);
	}
	if (p->deaf || p->not_ready || p->unresolved)
		flow_pair(s, &s->node[1], &s->node[0], true);
}

static void
run_until(struct flow_world *s, uint64_t end)
{
	for (;;) {
		uint64_t at = flow_wire_next(s);

		for (uint32_t i = 0; i < s->num_nodes; i++)
			if (s->node[i].wake < at)
				at = s->node[i].wake;
		if (at >= end) {
			s->now = end;
			return;
		}
		if (at > s->now)
			s->now = at;
		flow_wire_run(s);
		for (uint32_t i = 0; i < s->num_nodes; i++)
			if (s->node[i].wake <= s->now)
				flow_node_step(&s->node[i]);
	}
}

static uint64_t
counter_sum(const struct flow_world *s, enum roce_counter c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->num_nodes; i++)
		sum += roce_counters(s->node[i].roce)[c];
	return sum;
}

/** Jain's index of fairness: 1 when all have the same, 1/n when one has all. */
static double
jain(const uint64_t *x, uint32_t n)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += (double)x[i];
		squares += (double)x[i] * (double)x[i];
	}
	return squares > 0 ? sum * sum / (n * squares) : 0;
}

static void
collect(const struct flow_world *s, struct flow_result *r)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->num_ends; i++) {
		if (!s->end[i]->posts || s->end[i]->odd)
			continue;
		r->bytes[r->qps++] = s->end[i]->bytes;
		sum += s->end[i]->bytes;
	}
	r->bits_per_s = (uint64_t)((double)sum * 8e9 / (double)s->p->run);
	r->jain = jain(r->bytes, r->qps);
	r->cnps = counter_sum(s, ROCE_C_CNP_RCVD);
	r->retransmits = counter_sum(s, ROCE_C_RETRANSMIT);
	r->timeouts = counter_sum(s, ROCE_C_TIMEOUT);
	r->probes = counter_sum(s, ROCE_C_PROBE);
	r->naks = counter_sum(s, ROCE_C_NAK_SEQ_SENT);
}

static void
end_world(struct flow_world *s)
{
	for (uint32_t i = 0; i < s->num_ends; i++) {
		struct flow_end *e = s->end[i];

		roce_qpn_set(e->node->qpns, e->qpn, NULL, 0);
		roce_qp_detach(e->node->roce, e->qp);
		roce_qp_free(e->qp);
		mr_kill(e->node->mrs, e->key);
		mr_release(e->node->mrs, e->key);
		free(e->mem);
		free(e->sq.slots);
		free(e->rq.slots);
		free(e);
	}
	flow_wire_fini(s);
	for (uint32_t i = 0; i < s->num_nodes; i++)
		flow_node_fini(&s->node[i]);
}

void
flow_run(const struct flow_params *p, struct flow_result *r)
{
	struct flow_world *s = &world;

	memset(s, 0, sizeof(*s));
	memset(r, 0, sizeof(*r));
	s->p = p;
	s->res = r;
	s->now = FLOW_MS;
	rng_seed(&s->rng, p->seed);
	rng_seed(&arc, p->seed ^ UINT64_C(0x6172633472616e64));
	make_world(s);
	run_until(s, s->now + p->warm);
	s->counting = true;
	run_until(s, s->now + p->run);
	collect(s, r);
	end_world(s);
}
