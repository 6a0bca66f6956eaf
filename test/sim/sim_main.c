/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the simulator. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base_bug.h"

#include "sim.h"

static const struct option options[] = {
	{"transport", required_argument, NULL, 'T'}, {"seeds", required_argument, NULL, 'S'},
	{"seed", required_argument, NULL, 's'},	     {"profile", required_argument, NULL, 'p'},
	{"fresh", required_argument, NULL, 'f'},     {"trace", required_argument, NULL, 't'},
	{"pcap", required_argument, NULL, 'c'},	     {"stats", no_argument, NULL, 'v'},
	{"json", no_argument, NULL, 'j'},	     {"ops", required_argument, NULL, 'o'},
	{"shrink", no_argument, NULL, 'k'},	     {"bug", required_argument, NULL, 'b'},
	{"list-bugs", no_argument, NULL, 'B'},	     {"list-profiles", no_argument, NULL, 'P'},
	{"keep-going", no_argument, NULL, 'g'},	     {"twice", no_argument, NULL, '2'},
	{"quiet", no_argument, NULL, 'q'},	     {"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"usage: rnic-sim [OPTION...]\n"
	"  --transport NAME  rc (default) or uc\n"
	"  --seed N          one seed\n"
	"  --seeds A..B      these, both included; default 1..100\n"
	"  --fresh N         N seeds that nobody has tried; tells the first\n"
	"  --profile NAME    what the runs are like; without it, all in turn by seed\n"
	"  --list-profiles   their names\n"
	"  --trace FILE      the newest events as text (-: stdout), when a seed fails or ends\n"
	"  --pcap FILE       the packets among them\n"
	"  --stats, --json   a line a seed\n"
	"  --ops N           at most N requests an endpoint\n"
	"  --shrink          the fewest requests with which the seed fails\n"
	"  --keep-going      go on after a failing seed; the end tells how many failed\n"
	"  --twice           run each seed twice, the traces must be the same\n"
	"  --bug N           with a seeded bug (a build with -Dseeded_bugs=true)\n"
	"  --list-bugs       number and text of each\n"
	"  --quiet           failures in one line\n";

struct cli {
	struct sim_opts opts;
	const struct sim_profile *prof;
	uint64_t first, last;
	bool shrink, keep_going, twice;
	unsigned int bug;
	const char *transport;
	char extra[64];
};

static char crash_text[320];

/** A crash names its seed, too. */
static void
crashed(int sig)
{
	ssize_t n = write(STDERR_FILENO, crash_text, strlen(crash_text));

	(void)n;
	signal(sig, SIG_DFL);
	raise(sig);
}

static void
die(const char *what, const char *arg)
{
	fprintf(stderr, "rnic-sim: %s '%s'\n", what, arg);
	exit(2);
}

static void
start(void)
{
	if (sim_start()) {
		fprintf(stderr, "rnic-sim: no EAL\n");
		exit(2);
	}
	signal(SIGSEGV, crashed);
	signal(SIGABRT, crashed);
	signal(SIGBUS, crashed);
}

static const struct sim_profile *
profile_of(const struct cli *c, uint64_t seed)
{
	return c->prof ? c->prof : sim_profile_at((unsigned int)(seed % sim_profile_count()));
}

static void
run_seed(const struct cli *c, uint64_t seed)
{
	const struct sim_profile *p = profile_of(c, seed);
	uint64_t hash;

	snprintf(crash_text, sizeof(crash_text),
		 "CRASHED seed %" PRIu64
		 " profile %s\nreplay: rnic-sim --profile %s --seed %" PRIu64 "%s\n",
		 seed, p->name, p->name, seed, c->extra);
	sim_run(&c->opts, p, seed);
	if (!c->twice)
		return;
	hash = sim_trace_hash();
	sim_run(&c->opts, p, seed);
	if (hash != sim_trace_hash()) {
		fprintf(stderr, "FAILED seed %" PRIu64 " profile %s: two runs differ\n", seed,
			p->name);
		exit(1);
	}
}

/**
 * Seeds from `first` on in a process of its own, until one fails.
 * @return the failed one, or last + 1.
 */
static uint64_t
run_apart(const struct cli *c, uint64_t first, uint64_t last)
{
	static uint64_t *at;
	pid_t pid;
	int status;

	if (at == NULL) {
		at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			  0);
		if (at == MAP_FAILED)
			die("memory", "mmap");
	}
	fflush(stdout);
	fflush(stderr);
	*at = first;
	pid = fork();
	if (pid < 0)
		die("process", "fork");
	if (pid == 0) {
		start(); /* not before: EAL's memory is shared with children */
		for (; *at <= last; ++*at)
			run_seed(c, *at);
		fflush(stdout);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? last + 1 : *at;
}

static int
keep_going(const struct cli *c)
{
	uint64_t failed = 0, at = c->first;

	while ((at = run_apart(c, at, c->last)) <= c->last) {
		failed++;
		at++;
		if (at > c->last)
			break;
	}
	printf("%" PRIu64 " of %" PRIu64 " seeds failed\n", failed, c->last - c->first + 1);
	return failed != 0;
}

/** The fewest requests that still fail. Failing is not monotonic; small steps down are tried. */
static int
shrink(struct cli *c)
{
	uint32_t best = profile_of(c, c->first)->ops, step;
	const struct sim_opts opts = c->opts;

	c->opts.trace = c->opts.pcap = NULL;
	if (opts.max_ops)
		best = opts.max_ops;
	for (step = best / 2; step > 0; step = best > step ? step / 2 : step) {
		while (best > step) {
			c->opts.max_ops = best - step;
			if (run_apart(c, c->first, c->first) > c->first)
				break;
			best -= step;
		}
		if (step == 1)
			break;
	}
	c->opts = opts;
	c->opts.max_ops = best;
	snprintf(c->extra, sizeof(c->extra), "%s%s --ops %u", c->transport ? " --transport " : "",
		 c->transport ? c->transport : "", best);
	printf("fails with --ops %u:\n", best);
	return run_apart(c, c->first, c->first) > c->first ? 2 : 1;
}

static void
list_profiles(void)
{
	for (unsigned int i = 0; i < sim_profile_count(); i++)
		printf("%-10s %s\n", sim_profile_at(i)->name, sim_profile_at(i)->what);
}

static void
list_bugs(void)
{
	for (unsigned int i = 1; i < BUG_COUNT; i++)
		printf("%2u %s\n", i, base_bug_name(i));
}

static void
set_bug(unsigned int bug)
{
#ifdef SEEDED_BUGS
	base_bug_selected = bug;
#else
	if (bug) {
		fprintf(stderr, "rnic-sim: built without -Dseeded_bugs=true\n");
		exit(2);
	}
#endif
}

static void
parse_seeds(struct cli *c, const char *arg)
{
	if (sscanf(arg, "%" SCNu64 "..%" SCNu64, &c->first, &c->last) != 2 || c->last < c->first)
		die("seeds", arg);
}

static void
parse_transport(struct cli *c, const char *arg)
{
	static const struct {
		const char *name;
		enum verbs_qp_type type;
	} known[] = {{"rc", VERBS_QPT_RC}, {"uc", VERBS_QPT_UC}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(arg, known[i].name) == 0) {
			c->opts.type = known[i].type;
			c->transport = known[i].name;
			return;
		}
	die("transport", arg);
}

static void
parse_fresh(struct cli *c, const char *arg)
{
	c->first = (uint64_t)time(NULL) * 100000 + (uint64_t)getpid() % 100000;
	c->last = c->first + strtoull(arg, NULL, 0) - 1;
	printf("fresh seeds: --seeds %" PRIu64 "..%" PRIu64 "\n", c->first, c->last);
}

static void
parse_option(struct cli *c, int o, const char *arg)
{
	switch (o) {
	case 'T':
		parse_transport(c, arg);
		break;
	case 'S':
		parse_seeds(c, arg);
		break;
	case 's':
		c->first = c->last = strtoull(arg, NULL, 0);
		break;
	case 'f':
		parse_fresh(c, arg);
		break;
	case 'p':
		c->prof = sim_profile_find(arg);
		if (c->prof == NULL)
			die("profile", arg);
		break;
	case 't':
		c->opts.trace = arg;
		break;
	case 'c':
		c->opts.pcap = arg;
		break;
	case 'o':
		c->opts.max_ops = (uint32_t)strtoul(arg, NULL, 0);
		break;
	case 'b':
		c->bug = (unsigned int)strtoul(arg, NULL, 0);
		break;
	case 'P':
		list_profiles();
		exit(0);
	case 'B':
		list_bugs();
		exit(0);
	case 'h':
		fputs(usage, stdout);
		exit(0);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

static bool
parse_flag(struct cli *c, int o)
{
	switch (o) {
	case 'v':
		c->opts.stats = true;
		return true;
	case 'j':
		c->opts.json = true;
		return true;
	case 'q':
		c->opts.quiet = true;
		return true;
	case 'k':
		c->shrink = true;
		return true;
	case 'g':
		c->keep_going = true;
		return true;
	case '2':
		c->twice = true;
		return true;
	default:
		return false;
	}
}

int
main(int argc, char **argv)
{
	struct cli c = {.first = 1, .last = 100, .opts.type = VERBS_QPT_RC};
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!parse_flag(&c, o))
			parse_option(&c, o, optarg);
	if (c.transport)
		snprintf(c.extra, sizeof(c.extra), " --transport %s", c.transport);
	if (c.opts.max_ops)
		snprintf(c.extra + strlen(c.extra), sizeof(c.extra) - strlen(c.extra), " --ops %u",
			 c.opts.max_ops);
	if (c.bug)
		snprintf(c.extra + strlen(c.extra), sizeof(c.extra) - strlen(c.extra), " --bug %u",
			 c.bug);
	c.opts.extra = c.extra;
	set_bug(c.bug);
	if (c.shrink)
		return shrink(&c);
	if (c.keep_going)
		return keep_going(&c);
	start();
	for (uint64_t i = c.first; i <= c.last; i++)
		run_seed(&c, i);
	printf("%" PRIu64 " seeds passed\n", c.last - c.first + 1);
	return 0;
}
