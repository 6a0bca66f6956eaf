/* SPDX-License-Identifier: BSD-3-Clause */
/* Time, the wire and the nodes of the simulator of connection managers. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"

#define ROUNDS_MAX 4000000u

void
sim_fault(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	s->fault_count++;
	if (s->fault_count > 10)
		return;
	fprintf(stderr, "%s seed %" PRIu64 " at %.6f s: ", s->p->name, s->seed,
		(double)s->now / 1e9);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void
sim_trace(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->trace == NULL)
		return;
	fprintf(s->trace, "%12.6f ", (double)s->now / 1e9);
	va_start(ap, fmt);
	vfprintf(s->trace, fmt, ap);
	va_end(ap);
	fputc('\n', s->trace);
}

/* ---- what is to happen: a heap, earliest first, equals in their order ---------- */

static bool
before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void
swap(struct sim_event *a, struct sim_event *b)
{
	const struct sim_event t = *a;

	*a = *b;
	*b = t;
}

void
sim_at(struct sim *s, uint64_t at, struct sim_event e)
{
	unsigned int i = s->num_events++;

	if (s->num_events > s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->heap = realloc(s->heap, s->room * sizeof(*s->heap));
		if (s->heap == NULL)
			abort();
	}
	e.at = at;
	e.order = s->order++;
	s->heap[i] = e;
	for (; i > 0 && before(&s->heap[i], &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&s->heap[i], &s->heap[(i - 1) / 2]);
}

static struct sim_event
take_first(struct sim *s)
{
	const struct sim_event first = s->heap[0];
	unsigned int i = 0;

	s->heap[0] = s->heap[--s->num_events];
	for (;;) {
		unsigned int child = 2 * i + 1;

		if (child >= s->num_events)
			return first;
		if (child + 1 < s->num_events && before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!before(&s->heap[child], &s->heap[i]))
			return first;
		swap(&s->heap[child], &s->heap[i]);
		i = child;
	}
}

/* ---- the wire ---------- */

static struct sim_node *
node_of(struct sim *s, const struct net_ip *ip)
{
	for (unsigned int i = 0; i < s->p->nodes; i++)
		if (net_ip_eq(&s->node[i]->ip, ip))
			return s->node[i];
	return NULL;
}

static uint64_t
delay(struct sim *s)
{
	const uint64_t usual = 20000 + rng_below(&s->rng, 30000);

	return sim_chance(s, s->p->slow) ? usual + rng_below(&s->rng, (uint32_t)SIM_LIFE) : usual;
}

static void
onto_wire(struct sim *s, struct sim_event e, const uint8_t *mad)
{
	unsigned int copies = 1;

	if (!s->calm && sim_chance(s, s->p->loss))
		copies = 0;
	else if (sim_chance(s, s->p->twice))
		copies = 2;
	if (copies == 0)
		sim_trace(s, "%u>%u lost", e.from->index, e.to->index);
	while (copies-- > 0) {
		if (mad) {
			e.mad = malloc(ROCE_MAD_LEN);
			if (e.mad == NULL)
				abort();
			memcpy(e.mad, mad, ROCE_MAD_LEN);
		}
		sim_at(s, s->now + delay(s), e);
	}
}

static bool
net_send(void *ctx, const struct roce_cm_av *av, const uint8_t *mad)
{
	struct sim_node *n = ctx;
	struct sim *s = n->sim;
	struct sim_event e = { .what = SIM_MAD, .from = n, .to = node_of(s, &av->dgid),
		.tclass = av->tclass };
	struct roce_cm_msg m;

	if (!s->calm && sim_chance(s, s->p->busy))
		return false;
	if (roce_cm_parse(mad, ROCE_MAD_LEN, &m) != 0 || e.to == NULL) {
		sim_fault(s, "node %u sent what is no message, or to nobody", n->index);
		return true;
	}
	sim_trace(s, "%u>%u %s %08x %08x", n->index, e.to->index, roce_cm_attr_name(m.attr),
		m.local_id, m.remote_id);
	onto_wire(s, e, mad);
	return true;
}

/* The first request of a side: counts as its RTU where that was lost. */
void
sim_data(struct sim_conn *c)
{
	struct sim_node *n = c->node;
	const struct sim_event e = { .what = SIM_DATA, .from = n,
		.to = node_of(n->sim, &c->params.av.dgid), .qpn = c->params.dest_qpn };

	if (e.to)
		onto_wire(n->sim, e, NULL);
}

/* ---- nodes ---------- */

static void
net_random(void *ctx, void *buf, uint32_t len)
{
	struct sim_node *n = ctx;
	uint8_t *b = buf;

	while (len--)
		*b++ = (uint8_t)rng_u32(&n->sim->rng);
}

static void
node_boot(struct sim_node *n)
{
	const struct roce_cm_config cfg = {
		.send_mad = net_send,
		.event = app_event,
		.qpn_free = app_qpn_free,
		.random = net_random,
		.ctx = n,
		.ca_guid = 0x1000 + n->index,
		.max_conns = n->sim->p->max_conns,
	};

	n->cm = roce_cm_create(&cfg, n->sim->now);
	if (n->cm == NULL)
		abort();
	app_listen(n);
}

struct sim *
sim_new(const struct sim_profile *p, uint64_t seed, FILE *trace)
{
	struct sim *s = calloc(1, sizeof(*s));

	if (s == NULL)
		abort();
	s->p = p;
	s->seed = seed;
	s->trace = trace;
	s->now = SIM_SEC;
	rng_seed(&s->rng, seed);
	for (unsigned int i = 0; i < p->nodes; i++) {
		struct sim_node *n = calloc(1, sizeof(*n));

		if (n == NULL)
			abort();
		n->sim = s;
		n->index = i;
		n->ip = (struct net_ip){ .b = { [10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1) } };
		n->next_qpn = 0x100;
		s->node[i] = n;
		node_boot(n);
	}
	return s;
}

void
sim_free(struct sim *s)
{
	for (unsigned int i = 0; i < s->p->nodes; i++) {
		roce_cm_free(s->node[i]->cm);
		free(s->node[i]);
	}
	for (unsigned int i = 0; i < s->num_events; i++)
		free(s->heap[i].mad);
	free(s->heap);
	free(s);
}

static void
node_crash(struct sim_node *n)
{
	sim_trace(n->sim, "node %u crashes", n->index);
	roce_cm_free(n->cm);
	app_crash(n);
	node_boot(n);
}

static void
node_input(struct sim_node *n, const struct sim_event *e)
{
	const struct roce_cm_rx rx = { .src = e->from->ip, .dst = n->ip, .vlan = 0xffff,
		.pkey = 0xffff, .tclass = e->tclass, .mtu = 5 };

	roce_cm_input(n->cm, e->mad, ROCE_MAD_LEN, &rx, n->sim->now);
}

static void
happen(struct sim *s, struct sim_event e)
{
	switch (e.what) {
	case SIM_MAD: node_input(e.to, &e); break;
	case SIM_DATA: roce_cm_established(e.to->cm, e.qpn, s->now); break;
	case SIM_APP: app_act(e.conn); break;
	case SIM_CONNECT: app_connect(e.from); break;
	case SIM_CRASH: node_crash(e.from); break;
	}
	free(e.mad);
}

static uint64_t
first_deadline(const struct sim *s, unsigned int *which)
{
	uint64_t first = UINT64_MAX;

	for (unsigned int i = 0; i < s->p->nodes; i++) {
		const uint64_t t = roce_cm_next_deadline(s->node[i]->cm);

		if (t < first) {
			first = t;
			*which = i;
		}
	}
	return first;
}

bool
sim_run(struct sim *s)
{
	for (unsigned int round = 0; round < ROUNDS_MAX; round++) {
		unsigned int which = 0;
		const uint64_t timer = first_deadline(s, &which);
		const uint64_t event = s->num_events ? s->heap[0].at : UINT64_MAX;

		if (timer == UINT64_MAX && event == UINT64_MAX)
			return true;
		if (event <= timer) {
			s->now = event > s->now ? event : s->now;
			happen(s, take_first(s));
		} else {
			s->now = timer > s->now ? timer : s->now;
			roce_cm_timers(s->node[which]->cm, s->now, 16);
		}
	}
	sim_fault(s, "it does not end");
	return false;
}
