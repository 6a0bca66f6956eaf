/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic-hostile: a client that means harm. It runs cases, by name or drawn by a seed, each in a
 * process of its own, and after each asks the daemon for a session and a PD, and checks that the
 * bytes and the connection of a second, honest session of its own are as they were.
 * The same seed draws the same cases with the same values; `--number` goes to one of them.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"
#include "hostile_life.h"

#define MAX_CASES 128
#define CASE_MS 90000 /* then a case counts as hung */

static const struct hostile_case *const tables[] = {
	hostile_sock_cases, hostile_arena_cases, hostile_object_cases, hostile_ring_cases,
	hostile_srq_cases,  hostile_ud_cases,	 hostile_wqe_cases,    hostile_mem_cases,
	hostile_block_cases, hostile_life_cases, hostile_key_cases,
};
static const struct hostile_case *cases[MAX_CASES];
static unsigned int num_cases;
static unsigned int num_skipped; /* wanted, but for root alone */

struct options {
	const char *socket;
	const char *only; /* comma-separated names or prefixes */
	uint64_t seed;
	uint64_t number; /* UINT64_MAX: all */
	uint64_t count;	 /* 0: each case once */
	unsigned int seconds;
	bool verbose;
};

static uint64_t slowest_ms;

static bool
wanted(const char *name, const char *only)
{
	if (!only)
		return true;
	while (*only) {
		size_t n = strcspn(only, ",");

		if (n && !strncmp(name, only, n))
			return true;
		only += n + (only[n] == ',');
	}
	return false;
}

static void
collect(const char *only)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		for (const struct hostile_case *c = tables[i]; c->name; c++) {
			if (!wanted(c->name, only))
				continue;
			if (c->needs_root && geteuid() != 0) {
				printf("skipped, wants root: %s\n", c->name);
				num_skipped++;
			} else if (num_cases < MAX_CASES) {
				cases[num_cases++] = c;
			}
		}
	}
}

/* The process of one case. */
static int
run_case(const struct hostile_case *c, struct hostile *t)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	setpgid(0, 0);
	signal(SIGPIPE, SIG_IGN);
	c->run(t);
	return t->faults ? 1 : 0;
}

/* Wait for a child with a time limit, then kill its whole group. Its status; -1: it hung. */
static int
reap(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int status = -1;
	bool hung = fd < 0 || poll(&p, 1, CASE_MS) <= 0;

	kill(-pid, SIGKILL); /* and whoever it left behind */
	if (hung)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (fd >= 0)
		close(fd);
	return hung ? -1 : status;
}

/* A question to the daemon from outside, timed. */
static void
ask(struct hostile *t)
{
	static struct hx h;
	uint64_t start = hx_now_ms(), attempt;
	uint32_t pd;
	int ret;

	for (;;) {
		attempt = hx_now_ms();
		ret = hx_open(&h, t->socket);
		if (!ret)
			ret = hx_alloc_pd(&h, &pd);
		hx_close(&h);
		if (hx_now_ms() - attempt > slowest_ms)
			slowest_ms = hx_now_ms() - attempt;
		/* The daemon may count the case that just died still. */
		if ((ret != -EDQUOT && ret != -EAGAIN && ret != -ENOMEM) ||
		    hx_now_ms() - start > HX_WAIT_MS)
			break;
		hx_pass(NULL, 10);
	}
	MUST(t, !ret, "the daemon gives no session and PD any more: %s", strerror(-ret));
}

/* The honest session beside: its memory holds a pattern, and its QPs still carry it. */
static struct hx_rig bystander;

static void
bystander_open(struct hostile *t)
{
	if (!hostile_rig(t, &bystander))
		return;
	for (uint32_t i = 0; i < HX_RIG_BYTES; i++)
		bystander.mem[i] = (uint8_t)(i * 167 + i / 256);
}

static void
bystander_check(struct hostile *t)
{
	struct ring_wqe w = hx_write(&bystander, 0, HX_RIG_BYTES - 4096, 4096);
	struct hx_qp *q = &bystander.qp[t->number & 1];
	struct ring_cqe c;
	int ret;

	for (uint32_t i = 0; i < HX_RIG_BYTES - 4096; i++) {
		if (bystander.mem[i] != (uint8_t)(i * 167 + i / 256)) {
			FAULT(t, "byte %u of the session beside has changed", i);
			break;
		}
	}
	memset(bystander.mem + HX_RIG_BYTES - 4096, 0, 4096);
	hx_post(&bystander, q, &w);
	ret = hx_poll_wait(&bystander.h, &bystander.cq, &c, HX_WAIT_MS);
	MUST(t, !ret, "the session beside got no completion: %s", strerror(-ret));
	if (ret)
		return;
	MUST(t, hx_cqe_status(&c) == 0, "the session beside: completion in error %u",
	     hx_cqe_status(&c));
	MUST(t, !memcmp(bystander.mem, bystander.mem + HX_RIG_BYTES - 4096, 4096),
	     "the session beside: other bytes arrived");
}

/* One case with its number. False: the daemon is not to be asked any further. */
static bool
one(const struct options *o, const struct hostile_case *c, uint64_t number, int *faults)
{
	struct hostile t = {
		.socket = o->socket,
		.self = "/proc/self/exe",
		.name = c->name,
		.seed = o->seed,
		.number = number,
		.rng = o->seed * 0x2545f4914f6cdd1dull + number,
		.verbose = o->verbose,
	};
	uint64_t start = hx_now_ms();
	pid_t pid;
	int status;

	printf("seed %llu number %llu case %s\n", (unsigned long long)t.seed,
	       (unsigned long long)t.number, t.name);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(run_case(c, &t));
	status = reap(pid);
	if (status == -1)
		FAULT(&t, "the case hung");
	else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		t.faults++; /* told already */
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		FAULT(&t, "the case died by signal %d", WTERMSIG(status));
	ask(&t);
	bystander_check(&t);
	if (o->verbose)
		printf("  %llu ms\n", (unsigned long long)(hx_now_ms() - start));
	*faults += t.faults;
	return access(o->socket, F_OK) == 0;
}

static int
run_all(const struct options *o)
{
	struct hostile t = {.socket = o->socket, .name = "bystander", .seed = o->seed};
	struct hostile draw = {.rng = o->seed};
	uint64_t end = o->seconds ? hx_now_ms() + o->seconds * 1000ull : UINT64_MAX;
	uint64_t count = o->count ? o->count : o->seconds ? UINT64_MAX : num_cases;
	uint64_t n, done = 0;
	int faults = 0;

	bystander_open(&t);
	if (t.faults)
		return 1;
	for (n = 0; n < count && hx_now_ms() < end; n++) {
		/* every case once, then drawn */
		uint32_t k = n < num_cases ? (uint32_t)n : hostile_below(&draw, num_cases);

		if (o->number != UINT64_MAX && n < o->number)
			continue;
		if (n > o->number)
			break;
		done++;
		if (!one(o, cases[k], n, &faults) || faults > 10)
			break;
	}
	hx_rig_close(&bystander);
	printf("hostile: seed %llu, %llu cases, %d faults, slowest answer %llu ms\n",
	       (unsigned long long)o->seed, (unsigned long long)done, faults,
	       (unsigned long long)slowest_ms);
	if (num_skipped)
		printf("hostile: %u cases were skipped, they want root\n", num_skipped);
	return faults ? 1 : num_skipped ? 77 : 0; /* 77: what meson takes for skipped */
}

static const char usage[] =
	"usage: rnic-hostile --socket PATH [OPTION...]\n\n"
	"Attacks a SoftRNIC daemon as a client can, and checks that it bears it.\n\n"
	"  --socket PATH   the daemon's socket\n"
	"  --case NAMES    only these cases (prefixes, comma-separated)\n"
	"  --seed N        what the values and the order come from (1)\n"
	"  --count N       so many cases; without it and --seconds, each one once\n"
	"  --seconds N     for so long\n"
	"  --number N      only the Nth case of that seed, with the same --case\n"
	"  --verbose       times\n"
	"  --list          names of the cases, and what they do\n";

static int
list(void)
{
	for (unsigned int i = 0; i < num_cases; i++)
		printf("%-18s %s\n", cases[i]->name, cases[i]->what);
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"socket", 1, NULL, 's'}, {"case", 1, NULL, 'c'},    {"seed", 1, NULL, 'S'},
		{"count", 1, NULL, 'n'},  {"seconds", 1, NULL, 't'}, {"number", 1, NULL, 'N'},
		{"verbose", 0, NULL, 'v'}, {"list", 0, NULL, 'l'},   {"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.seed = 1, .number = UINT64_MAX};
	bool listing = false;
	int opt;

	if (argc > 1 && !strcmp(argv[1], "--keep-secret"))
		return hostile_life_secret(argc, argv);
	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 's': o.socket = optarg; break;
		case 'c': o.only = optarg; break;
		case 'S': o.seed = strtoull(optarg, NULL, 0); break;
		case 'n': o.count = strtoull(optarg, NULL, 0); break;
		case 't': o.seconds = (unsigned int)strtoul(optarg, NULL, 0); break;
		case 'N': o.number = strtoull(optarg, NULL, 0); break;
		case 'v': o.verbose = true; break;
		case 'l': listing = true; break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	if (o.number != UINT64_MAX && !o.count)
		o.count = o.number + 1;
	collect(o.only);
	if (listing)
		return list();
	if (!o.socket || !num_cases) {
		fputs(o.socket ? "rnic-hostile: no such case; see --list\n" : usage, stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	return run_all(&o);
}
