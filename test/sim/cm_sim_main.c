/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the simulator of connection managers, its profiles, and the storm. */
#include <getopt.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cm_sim.h"

static const struct sim_profile cm_profiles[] = {
	{ .name = "clean", .nodes = 2, .connects = 60 },
	{ .name = "whims", .nodes = 3, .connects = 80, .whims = 300, .think = 100 },
	{ .name = "loss10", .nodes = 2, .connects = 60, .loss = 100, .whims = 50, .think = 30 },
	{ .name = "loss60", .nodes = 3, .connects = 60, .loss = 600, .whims = 50 },
	{ .name = "twice", .nodes = 3, .connects = 60, .twice = 500, .slow = 300, .whims = 50 },
	{ .name = "slow", .nodes = 2, .connects = 60, .slow = 700, .think = 300, .whims = 100 },
	{ .name = "busy", .nodes = 2, .connects = 60, .busy = 400, .loss = 50 },
	{ .name = "crash", .nodes = 3, .connects = 90, .crashes = 6, .loss = 50, .whims = 50 },
	{ .name = "backlog", .nodes = 2, .connects = 120, .backlog = 4, .think = 500,
	  .max_conns = 80 },
	{ .name = "chaos", .nodes = 4, .connects = 150, .loss = 200, .twice = 200, .slow = 200,
	  .busy = 100, .think = 200, .whims = 250, .crashes = 3, .backlog = 16 },
};
#define PROFILES (sizeof(cm_profiles) / sizeof(cm_profiles[0]))

static void
plan(struct sim *s)
{
	for (unsigned int i = 0; i < s->p->connects; i++)
		sim_at(s, s->now + rng_below(&s->rng, 20000) * SIM_MS,
			(struct sim_event){ .what = SIM_CONNECT,
				.from = s->node[rng_below(&s->rng, s->p->nodes)] });
	for (unsigned int i = 0; i < s->p->crashes; i++)
		sim_at(s, s->now + rng_below(&s->rng, 25000) * SIM_MS,
			(struct sim_event){ .what = SIM_CRASH,
				.from = s->node[rng_below(&s->rng, s->p->nodes)] });
}

/* Of all that is random, so that a seed that runs twice can be seen to be the same. */
static uint64_t
digest(const struct sim *s)
{
	uint64_t d = s->now ^ s->order << 32;

	for (unsigned int i = 0; i < s->p->nodes; i++)
		for (unsigned int c = 0; c < ROCE_CM_C_COUNT; c++)
			d = d * UINT64_C(0x9E3779B97F4A7C15) +
			    roce_cm_counters(s->node[i]->cm)[c];
	return d;
}

static bool
run_seed(const struct sim_profile *p, uint64_t seed, FILE *trace, bool stats, uint64_t *d)
{
	struct sim *s = sim_new(p, seed, trace);
	bool ok;

	plan(s);
	if (sim_run(s)) {
		app_check_pairs(s);
		app_free_all(s);
		s->calm = true;
		if (sim_run(s))
			app_check_empty(s);
	}
	if (stats)
		printf("%s seed %" PRIu64 ": %u connects, %u questions, %u up, %u rejected, "
			"%u unreachable, %u ends, %u orphans, %.1f s\n", p->name, seed, s->connects,
			s->asked, s->ups, s->rejected, s->unreachable, s->ends, s->orphans,
			(double)s->now / 1e9);
	ok = s->fault_count == 0;
	*d = digest(s);
	sim_free(s);
	return ok;
}

/* ---- the storm: so many at once, through one listener ---------- */

struct storm {
	struct sim_node *n[2];
	struct roce_cm *cm[2];
	struct roce_cm_listener *listener;
	uint8_t *mad; /* in flight, a queue */
	uint8_t *to;
	uint64_t head, tail, room, now;
	uint32_t next_qpn, up, told, rejected, freed;
	struct roce_cm_conn **later; /* the application looks at them when all have come; or NULL */
};

static struct storm *storm;

static bool
storm_send(void *ctx, const struct roce_cm_av *av, const uint8_t *mad)
{
	const unsigned int from = (unsigned int)(uintptr_t)ctx;

	(void)av;
	if (storm->head - storm->tail == storm->room)
		return false;
	memcpy(storm->mad + storm->head % storm->room * ROCE_MAD_LEN, mad, ROCE_MAD_LEN);
	storm->to[storm->head++ % storm->room] = !from;
	return true;
}

static void
storm_accept(struct roce_cm_conn *c)
{
	const struct roce_cm_accept a = { .qpn = storm->next_qpn++, .psn = ROCE_CM_PSN_RANDOM };

	if (roce_cm_accept(c, &a, storm->now) != 0)
		abort();
}

static void
storm_event(void *ctx, struct roce_cm_conn *c, void *user, const struct roce_cm_event *ev)
{
	(void)ctx;
	(void)user;
	switch (ev->type) {
	case ROCE_CM_EV_REQ:
		if (storm->later)
			storm->later[storm->told] = c;
		else
			storm_accept(c);
		storm->told++;
		break;
	case ROCE_CM_EV_REP: roce_cm_rtu(c, NULL, 0, storm->now); break;
	case ROCE_CM_EV_ESTABLISHED: storm->up++; break;
	case ROCE_CM_EV_REJECTED: storm->rejected++; /* fall through */
	default: roce_cm_conn_free(c, storm->now); break;
	}
}

static void
storm_qpn_free(void *ctx, uint32_t qpn)
{
	(void)ctx;
	(void)qpn;
	storm->freed++;
}

static void
storm_random(void *ctx, void *buf, uint32_t len)
{
	static struct rng rng;
	static bool seeded;
	uint8_t *b = buf;

	(void)ctx;
	if (!seeded)
		rng_seed(&rng, 1);
	seeded = true;
	while (len--)
		*b++ = (uint8_t)rng_u32(&rng);
}

static struct net_ip
storm_ip(unsigned int i)
{
	return (struct net_ip){ .b = { [10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1) } };
}

static void
storm_deliver(void)
{
	while (storm->tail != storm->head) {
		const uint64_t i = storm->tail++ % storm->room;
		const unsigned int to = storm->to[i];
		const struct roce_cm_rx rx = { .src = storm_ip(!to), .dst = storm_ip(to),
			.vlan = 0xffff, .pkey = 0xffff, .mtu = 5 };
		uint8_t mad[ROCE_MAD_LEN];

		memcpy(mad, storm->mad + i * ROCE_MAD_LEN, sizeof(mad));
		roce_cm_input(storm->cm[to], mad, sizeof(mad), &rx, storm->now);
	}
}

/* Messages first, then the application, then timers, until nothing is left. */
static void
storm_run(void)
{
	for (;;) {
		uint64_t next;

		storm_deliver();
		for (uint32_t i = 0; storm->later && i < storm->told; i++)
			storm_accept(storm->later[i]);
		free(storm->later);
		storm->later = NULL;
		storm_deliver();
		next = roce_cm_next_deadline(storm->cm[0]);
		if (roce_cm_next_deadline(storm->cm[1]) < next)
			next = roce_cm_next_deadline(storm->cm[1]);
		if (next == UINT64_MAX)
			return;
		storm->now = next > storm->now ? next : storm->now;
		roce_cm_timers(storm->cm[0], storm->now, 64);
		roce_cm_timers(storm->cm[1], storm->now, 64);
	}
}

static void
storm_connect(unsigned int i)
{
	const struct roce_cm_connect a = {
		.av = { .sgid = storm_ip(0), .dgid = storm_ip(1), .vlan = 0xffff, .pkey = 0xffff,
			.mtu = 3 },
		.service_id = 1, .qpn = 0x100 + i, .psn = ROCE_CM_PSN_RANDOM,
	};
	struct roce_cm_conn *c;

	if (roce_cm_connect(storm->cm[0], &a, NULL, storm->now, &c) != 0)
		abort();
}

/* Each one decided, by the backlog alone; what there is memory for is bounded. */
static int
storm_check(unsigned int n, uint32_t backlog, bool think, size_t bytes)
{
	const unsigned int want = think && backlog < n ? backlog : n;
	struct roce_cm_sizes s;
	int rc = 0;

	roce_cm_sizes(storm->cm[1], &s);
	printf("storm of %u, backlog %u, room for %u messages on the wire: %u up, %u rejected, "
		"%u told, %.0f bytes a side and connection at most\n", n, backlog,
		(unsigned int)storm->room, storm->up, storm->rejected, storm->told,
		(double)bytes / n / 2);
	if (storm->up != want || storm->rejected != n - want || storm->told != want ||
	    s.half_open != 0)
		rc = 1;
	if (bytes > (size_t)n * 2 * 1024)
		rc = 1;
	if (rc)
		fputs("storm: connections lost, or too much memory\n", stderr);
	return rc;
}

static int
run_storm(unsigned int n, uint32_t backlog, uint32_t room, bool think)
{
	const struct roce_cm_listen l = { .service_id = 1, .port = ROCE_CM_ANY_PORT, .rc = true,
		.backlog = backlog };
	struct roce_cm_config cfg = { .send_mad = storm_send, .event = storm_event,
		.qpn_free = storm_qpn_free, .random = storm_random, .max_half_open_peer = 1 << 17 };
	struct storm st = { .now = SIM_SEC, .next_qpn = 0x100, .room = room };
	size_t before, most;
	int rc;

	storm = &st;
	st.mad = malloc((size_t)room * ROCE_MAD_LEN);
	st.to = malloc(room);
	st.later = think ? malloc(n * sizeof(*st.later)) : NULL;
	if (st.mad == NULL || st.to == NULL || think != (st.later != NULL))
		abort();
	for (unsigned int i = 0; i < 2; i++) {
		cfg.ctx = (void *)(uintptr_t)i;
		st.cm[i] = roce_cm_create(&cfg, st.now);
	}
	if (roce_cm_listen(st.cm[1], &l, &st.listener) != 0)
		abort();
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (unsigned int i = 0; i < n; i++)
		storm_connect(i);
	most = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	storm_run();
	most += mallinfo2().uordblks + mallinfo2().hblkhd - before;
	rc = storm_check(n, backlog, think, most);
	roce_cm_free(st.cm[0]);
	roce_cm_free(st.cm[1]);
	free(st.mad);
	free(st.to);
	return rc;
}

/* ---- command line ---------- */

static const char usage[] =
	"usage: rnic-cm-sim [OPTION...]\n"
	"  --seeds A..B      these, both included; default 1..100\n"
	"  --seed N          one seed\n"
	"  --fresh N         N seeds that nobody has tried; tells the first\n"
	"  --profile NAME    what the runs are like; without it, all in turn by seed\n"
	"  --list-profiles   their names\n"
	"  --trace           what happens, as text\n"
	"  --stats           a line a seed\n"
	"  --twice           run each seed twice, the same must happen\n"
	"  --storm N         N connections at once instead\n";

static const struct option options[] = {
	{ "seeds", required_argument, NULL, 'S' }, { "seed", required_argument, NULL, 's' },
	{ "fresh", required_argument, NULL, 'f' }, { "profile", required_argument, NULL, 'p' },
	{ "list-profiles", no_argument, NULL, 'P' }, { "trace", no_argument, NULL, 't' },
	{ "stats", no_argument, NULL, 'v' }, { "twice", no_argument, NULL, '2' },
	{ "storm", required_argument, NULL, 'n' }, { "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct cli {
	uint64_t first, last;
	const struct sim_profile *profile;
	bool trace, stats, twice;
	unsigned int storm;
};

static const struct sim_profile *
profile_named(const char *name)
{
	for (unsigned int i = 0; i < PROFILES; i++)
		if (strcmp(cm_profiles[i].name, name) == 0)
			return &cm_profiles[i];
	fprintf(stderr, "no profile %s\n", name);
	exit(2);
}

static void
option(struct cli *c, int o)
{
	char *rest;

	switch (o) {
	case 'S':
		c->first = strtoull(optarg, &rest, 0);
		c->last = strncmp(rest, "..", 2) == 0 ? strtoull(rest + 2, NULL, 0) : c->first;
		break;
	case 's': c->first = c->last = strtoull(optarg, NULL, 0); break;
	case 'f':
		c->first = (uint64_t)time(NULL) << 20;
		c->last = c->first + strtoull(optarg, NULL, 0) - 1;
		printf("seeds from %" PRIu64 "\n", c->first);
		break;
	case 'p': c->profile = profile_named(optarg); break;
	case 'P':
		for (unsigned int i = 0; i < PROFILES; i++)
			puts(cm_profiles[i].name);
		exit(0);
	case 't': c->trace = true; break;
	case 'v': c->stats = true; break;
	case '2': c->twice = true; break;
	case 'n': c->storm = (unsigned int)strtoul(optarg, NULL, 0); break;
	case 'h': fputs(usage, stdout); exit(0);
	default: fputs(usage, stderr); exit(2);
	}
}

int
main(int argc, char **argv)
{
	struct cli c = { .first = 1, .last = 100 };
	unsigned int bad = 0;
	int o;

	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1)
		option(&c, o);
	if (c.storm)
		return run_storm(c.storm, c.storm, 4 * c.storm, true) |
		       run_storm(c.storm, 1000, 4 * c.storm, true) |
		       run_storm(c.storm, c.storm, 4096, false);
	for (uint64_t seed = c.first; seed <= c.last; seed++) {
		const struct sim_profile *p = c.profile ? c.profile : &cm_profiles[seed % PROFILES];
		uint64_t d, again;
		bool ok = run_seed(p, seed, c.trace ? stdout : NULL, c.stats, &d);

		if (ok && c.twice && run_seed(p, seed, NULL, false, &again) && again != d) {
			fprintf(stderr, "%s seed %" PRIu64 " differs from itself\n", p->name, seed);
			ok = false;
		}
		bad += !ok;
	}
	printf("%" PRIu64 " seeds, %u failed\n", c.last - c.first + 1, bad);
	return bad != 0;
}
