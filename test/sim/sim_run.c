/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run: a world drawn from a seed, the loop that moves virtual time from event to event, and
 * what must hold at the end. All randomness comes from the seed, keys and QPNs too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#include "eal_start.h"
#include "sim.h"

#define STALL (40000 * SIM_MS) /* no completion for so long */
#define MAX_STEPS 20000000u

static struct sim world;
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
sim_start(void)
{
	char *argv[] = {(char[]){"rnic-sim"}, (char[]){"--no-huge"}, (char[]){"--no-pci"},
			(char[]){"--no-shconf"}, (char[]){"--no-telemetry"}, (char[]){"-m"},
			(char[]){"256"}, (char[]){"--lcores=0"}, (char[]){"--log-level=critical"},
			NULL};

	return eal_start(9, argv) < 0 ? EIO : 0;
}

/* ---- failing ---------- */

static void
show_ep(FILE *f, const struct sim_ep *ep)
{
	struct roce_qp_info i;

	fprintf(f,
		"  ep %u node %u qp %06x peer %u phase %d: ops left %u, out %u, receives out %u, "
		"messages untold %u, completed %" PRIu64 ", causes %x\n",
		ep->id, ep->node->id, ep->qpn, ep->peer->id, ep->phase, ep->ops_left,
		ep->op_tail - ep->op_head, ep->recv_tail - ep->recv_head,
		ep->msg_tail - ep->msg_head, ep->completed, ep->causes);
	if (ep->qp == NULL)
		return;
	roce_qp_get_info(ep->qp, &i);
	fprintf(f,
		"    state %s epsn %06x msn %u sq_psn %06x una %06x inflight %u held %u retry %u "
		"rnr %u keeps %d retransmits %" PRIu64 " timeouts %" PRIu64
		" active %u onlist %d\n",
		verbs_qp_state_name(i.state), i.epsn, i.msn, i.sq_psn, i.una_psn, i.inflight_bytes,
		i.rx_held, i.retry_left, i.rnr_left, i.keeps_out_of_order, i.retransmits,
		i.timeouts, atomic_load(&ep->daemon.active), ep->qp->on_run_list);
}

static void
dump(const struct sim *s)
{
	if (s->opts->trace) {
		FILE *f = strcmp(s->opts->trace, "-") ? fopen(s->opts->trace, "w") : stdout;

		if (f) {
			sim_trace_text(f);
			fflush(f);
		}
	}
	if (s->opts->pcap)
		sim_trace_pcap(s->opts->pcap);
}

void
sim_fail(const struct sim *s, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "FAILED seed %" PRIu64 " profile %s at %" PRIu64 " ns: ", s->seed,
		s->prof->name, s->now);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	if (!s->opts->quiet) {
		for (uint32_t i = 0; i < s->num_eps; i++)
			show_ep(stderr, s->ep[i]);
		fprintf(stderr, "replay: %s\n", s->replay);
	}
	dump(s);
	fflush(stderr);
	_exit(1);
}

/* ---- making the world ---------- */

static void
make_world(struct sim *s)
{
	uint32_t pairs = sim_between(&s->rng, 1, s->prof->pairs);

	s->num_nodes = sim_between(&s->rng, 2, s->prof->nodes);
	s->v6 = rng_below(&s->rng, 3) == 0;
	s->vlan = rng_below(&s->rng, 4) == 0 ? (uint16_t)sim_between(&s->rng, 1, 4094) : 0xffff;
	s->sl = (uint8_t)rng_below(&s->rng, 8);
	sim_wire_init(s);
	for (uint32_t i = 0; i < s->num_nodes; i++)
		sim_node_init(s, i);
	for (uint32_t i = 0; i < pairs; i++) {
		uint32_t a = rng_below(&s->rng, s->num_nodes);
		uint32_t b = (a + 1 + rng_below(&s->rng, s->num_nodes - 1)) % s->num_nodes;

		sim_pair_new(s, &s->node[a], &s->node[b]);
	}
}

/* ---- the loop ---------- */

static uint64_t
next_event(const struct sim *s, uint64_t life)
{
	uint64_t at = sim_wire_next(s);

	if (life < at)
		at = life;
	for (uint32_t i = 0; i < s->num_nodes; i++) {
		const struct sim_node *n = &s->node[i];
		uint64_t t = n->dead ? n->dead_until : n->wake_at;

		if (t < at)
			at = t;
	}
	return at;
}

static void
run_nodes(struct sim *s)
{
	for (uint32_t i = 0; i < s->num_nodes; i++) {
		struct sim_node *n = &s->node[i];

		if (n->dead && n->dead_until <= s->now) {
			n->dead = false;
			sim_note(s, "node %u goes on", n->id);
			s->progress_at = s->now;
			n->wake_at = s->now;
		}
		if (!n->dead && n->wake_at <= s->now) {
			sim_node_step(n);
			s->steps++;
		}
	}
}

static uint64_t
run_life(struct sim *s)
{
	uint64_t next = SIM_NEVER;

	for (uint32_t i = 0; i < s->num_eps; i += 2) {
		uint64_t at = sim_life_run(s, s->ep[i]);

		if (at < next)
			next = at;
	}
	return next;
}

/** Whether anything is still under way once all connections have ended. */
static bool
quiet(const struct sim *s)
{
	if (s->wire.num)
		return false;
	for (uint32_t i = 0; i < s->num_nodes; i++)
		if (s->node[i].ios || s->node[i].rx_head || s->node[i].tx.n)
			return false;
	return true;
}

static void
run_world(struct sim *s)
{
	uint64_t life = s->now;

	while (!sim_life_done(s) || !quiet(s)) {
		uint64_t at = next_event(s, life);

		if (at == SIM_NEVER)
			sim_fail(s, "deadlock: nothing is left to happen");
		if (at > s->now)
			s->now = at;
		if (s->now > s->progress_at + STALL)
			sim_fail(s, "stall: no completion for %" PRIu64 " ms", STALL / SIM_MS);
		if (s->steps > MAX_STEPS)
			sim_fail(s, "no end after %" PRIu64 " steps", s->steps);
		sim_wire_deliver(s);
		run_nodes(s);
		life = run_life(s);
	}
}

static uint64_t
counter_sum(const struct sim *s, enum roce_counter c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->num_nodes; i++)
		sum += roce_counters(s->node[i].roce)[c];
	return sum;
}

/** Without a fault of the network there is no hole, and nothing that does not fit. */
static void
check_counters(const struct sim *s)
{
	const struct sim_profile *p = s->prof;

	if (!p->corrupt && !p->mutate &&
	    counter_sum(s, ROCE_C_ICRC_ERRORS) + counter_sum(s, ROCE_C_DROP_MALFORMED))
		sim_fail(s, "bad packets, although the network corrupts none");
	if (p->loss || p->burst || p->reorder || p->dup || p->corrupt || p->blackout ||
	    p->mutate || p->squeeze || p->death)
		return;
	if (counter_sum(s, ROCE_C_IMPLIED_NAK))
		sim_fail(s, "a response is missing, although the network loses none");
	if (!p->life && counter_sum(s, ROCE_C_BAD_RESPONSE))
		sim_fail(s, "a response fits no request, although the network is faultless");
}

static void
end_world(struct sim *s)
{
	check_counters(s);
	for (uint32_t i = 0; i < s->num_eps; i++)
		sim_check_memory(s->ep[i], "when all is over");
	for (uint32_t i = 0; i < s->num_eps; i++)
		sim_ep_free(s->ep[i]);
	for (uint32_t i = 0; i < s->num_nodes; i++)
		sim_node_fini(&s->node[i]);
	sim_wire_fini(s);
}

static void
show_stats(const struct sim *s)
{
	printf("seed %" PRIu64 " %s: %u nodes, %u connections, mtu %u, %" PRIu64 " ops, %" PRIu64
	       " failed, %" PRIu64 " bytes, %" PRIu64 " packets (%" PRIu64 " lost, %" PRIu64
	       " corrupted, %" PRIu64 " reordered, %" PRIu64 " doubled), %" PRIu64
	       " retransmitted, %" PRIu64 " timeouts, %" PRIu64 " rnr, %" PRIu64
	       " steps, %" PRIu64 " us\n",
	       s->seed, s->prof->name, s->num_nodes, s->num_eps / 2, s->ep[0]->mtu, s->ops_done,
	       s->ops_failed, s->bytes_done, s->wire.sent, s->wire.lost, s->wire.corrupted,
	       s->wire.reordered, s->wire.doubled, counter_sum(s, ROCE_C_RETRANSMIT),
	       counter_sum(s, ROCE_C_TIMEOUT), counter_sum(s, ROCE_C_RNR_SENT), s->steps,
	       s->now / 1000);
}

static void
show_json(const struct sim *s)
{
	printf("{\"seed\": %" PRIu64 ", \"profile\": \"%s\", \"ops\": %" PRIu64 ", \"failed\": %"
	       PRIu64 ", \"bytes\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"lost\": %" PRIu64
	       ", \"virtual_us\": %" PRIu64 ", \"hash\": \"%016" PRIx64 "\"}\n",
	       s->seed, s->prof->name, s->ops_done, s->ops_failed, s->bytes_done, s->wire.sent,
	       s->wire.lost, s->now / 1000, sim_trace_hash());
}

void
sim_run(const struct sim_opts *opts, const struct sim_profile *prof, uint64_t seed)
{
	struct sim *s = &world;

	memset(s, 0, sizeof(*s));
	s->opts = opts;
	s->prof = prof;
	s->seed = seed;
	s->now = s->progress_at = SIM_MS;
	rng_seed(&s->rng, seed * 64 + (uint64_t)prof->name[0] + (uint64_t)prof->name[1] * 7);
	rng_seed(&arc, seed ^ UINT64_C(0x6172633472616e64));
	snprintf(s->replay, sizeof(s->replay), "rnic-sim --profile %s --seed %" PRIu64 "%s",
		 prof->name, seed, opts->extra ? opts->extra : "");
	sim_trace_reset();
	make_world(s);
	run_world(s);
	if (opts->stats)
		show_stats(s);
	if (opts->json)
		show_json(s);
	end_world(s);
	dump(s);
}
