/* SPDX-License-Identifier: BSD-3-Clause */
/* testrnic: engines in a process of their own, for tests and benchmarks. Arguments and start. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "pmd_glue.h"
#include "testrnic_bench.h"
#include "testrnic_traffic.h"

#define MAX_EAL 64
#define NEEDED_HUGE (640u << 20)

static const char usage_text[] =
	"usage: testrnic [EAL option...] -- [option...]\n"
	"\n"
	"Two RDMA engines in one process, joined by a pair of rings or over two ports of any\n"
	"kind, with an application on the core of each. Without EAL options: no PCI, huge pages\n"
	"when enough are free, two CPUs, and the main thread on both of them.\n"
	"\n"
	"benchmark\n"
	"  --bench ROWS     rows 1,2,4,5 of the table of budgets, or all, beside their limits\n"
	"  --json FILE      the figures, for programs\n"
	"  --reference FILE an earlier --json: a limit under 90 % of its own voids the run\n"
	"  --runs N         interleaved runs of which medians are taken (5)\n"
	"  --window S       seconds of each measurement (0.5)\n"
	"traffic (ports: the first two that EAL has; one port: alone with itself; none: rings)\n"
	"  --auto           traffic as set below, then the end\n"
	"  --commands FILE  commands from a file, - for standard input; help lists them\n"
	"  --op OP          write, send, read or ping (write)\n"
	"  --size N         bytes a message (65536)      --qps N    queue pairs (1)\n"
	"  --depth N        outstanding a QP (128)       --list N   requests a submission (1)\n"
	"  --mtu N          path MTU (1024)              --port-mtu N  MTU of the ports\n"
	"  --seconds S      of --auto (until Ctrl-C)     --no-stamps   do not look at the data\n"
	"  --ip-a ADDR/LEN  address of the first engine (192.0.2.1/24), --ip-b of the second\n"
	"  --loop           one engine on the built-in port, no EAL port\n"
	"  --listen PATH    other programs may open the first engine's device there\n"
	"  --seed N         for the engines' random numbers\n"
	"\n"
	"Exit status: 0 all right (and budgets met), 1 something was not, 2 nothing measured.\n";

struct options {
	struct traffic_config traffic;
	struct bench_config bench;
	const char *commands;
	bool automatic, loop;
};

enum {
	OPT_BENCH = 256, OPT_JSON, OPT_REFERENCE, OPT_RUNS, OPT_WINDOW, OPT_AUTO, OPT_COMMANDS,
	OPT_OP, OPT_SIZE, OPT_QPS, OPT_DEPTH, OPT_LIST, OPT_MTU, OPT_PORT_MTU, OPT_SECONDS,
	OPT_NO_STAMPS, OPT_IP_A, OPT_IP_B, OPT_LOOP, OPT_LISTEN, OPT_SEED,
};

static const struct option long_options[] = {
	{ "bench", 1, NULL, OPT_BENCH },     { "json", 1, NULL, OPT_JSON },
	{ "reference", 1, NULL, OPT_REFERENCE }, { "runs", 1, NULL, OPT_RUNS },
	{ "window", 1, NULL, OPT_WINDOW },   { "auto", 0, NULL, OPT_AUTO },
	{ "commands", 1, NULL, OPT_COMMANDS }, { "op", 1, NULL, OPT_OP },
	{ "size", 1, NULL, OPT_SIZE },	     { "qps", 1, NULL, OPT_QPS },
	{ "depth", 1, NULL, OPT_DEPTH },     { "list", 1, NULL, OPT_LIST },
	{ "mtu", 1, NULL, OPT_MTU },	     { "port-mtu", 1, NULL, OPT_PORT_MTU },
	{ "seconds", 1, NULL, OPT_SECONDS }, { "no-stamps", 0, NULL, OPT_NO_STAMPS },
	{ "ip-a", 1, NULL, OPT_IP_A },	     { "ip-b", 1, NULL, OPT_IP_B },
	{ "loop", 0, NULL, OPT_LOOP },	     { "listen", 1, NULL, OPT_LISTEN },
	{ "seed", 1, NULL, OPT_SEED },	     { "help", 0, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void
complain(const char *what, const char *value)
{
	fprintf(stderr, "testrnic: %s '%s'; --help tells more\n", what, value);
	exit(2);
}

static unsigned long
number(const char *name, const char *text, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end || !isdigit((unsigned char)*text) || n < min || n > max) {
		fprintf(stderr, "testrnic: --%s wants a number from %lu to %lu, not '%s'\n", name,
			min, max, text);
		exit(2);
	}
	return n;
}

static double
seconds(const char *text)
{
	char *end;
	double s = strtod(text, &end);

	if (*end || s <= 0 || s > 1e6)
		complain("not a time in seconds:", text);
	return s;
}

static enum load_op
parse_op(const char *text)
{
	for (enum load_op o = LOAD_WRITE; o <= LOAD_PING; o++)
		if (!strcasecmp(text, load_op_name(o)))
			return o;
	complain("no such operation:", text);
	return LOAD_WRITE;
}

static void
bench_option(struct options *o, int opt, const char *arg)
{
	switch (opt) {
	case OPT_BENCH:
		o->bench.rows = bench_parse_rows(arg);
		if (o->bench.rows == 0)
			complain("rows 1, 2, 4, 5 can be measured, not", arg);
		break;
	case OPT_JSON: o->bench.json = arg; break;
	case OPT_REFERENCE: o->bench.reference = arg; break;
	case OPT_RUNS: o->bench.runs = number("runs", arg, 1, 31); break;
	case OPT_WINDOW: o->bench.window = seconds(arg); break;
	}
}

static void
traffic_option(struct options *o, int opt, const char *arg)
{
	struct load_spec *s = &o->traffic.load;

	switch (opt) {
	case OPT_AUTO: o->automatic = true; break;
	case OPT_COMMANDS: o->commands = arg; break;
	case OPT_OP: s->op = parse_op(arg); break;
	case OPT_SIZE: s->size = number("size", arg, 8, 1u << 24); break;
	case OPT_QPS: s->qps = number("qps", arg, 1, 4096); break;
	case OPT_DEPTH: s->depth = number("depth", arg, 1, 4096); break;
	case OPT_LIST: s->list = number("list", arg, 1, 4096); break;
	case OPT_MTU: s->mtu = number("mtu", arg, 256, 4096); break;
	case OPT_PORT_MTU: o->traffic.mtu = number("port-mtu", arg, 576, 9600); break;
	case OPT_SECONDS: o->traffic.seconds = seconds(arg); break;
	case OPT_NO_STAMPS: s->stamps = false; break;
	case OPT_IP_A: o->traffic.address[0] = arg; break;
	case OPT_IP_B: o->traffic.address[1] = arg; break;
	case OPT_LOOP: o->loop = true; break;
	case OPT_LISTEN: o->traffic.listen = arg; break;
	case OPT_SEED: o->traffic.seed = number("seed", arg, 0, UINT32_MAX); break;
	}
}

static void
parse(struct options *o, int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage_text, stdout);
			exit(0);
		}
		if (opt == '?')
			exit(2);
		if (opt >= OPT_BENCH && opt <= OPT_WINDOW)
			bench_option(o, opt, optarg);
		else
			traffic_option(o, opt, optarg);
	}
	if (optind < argc)
		complain("what is", argv[optind]);
	if (o->traffic.load.op == LOAD_PING)
		o->traffic.load.stamps = true;
	if (o->traffic.load.list > o->traffic.load.depth)
		complain("--list is more than --depth:", "list");
}

/* ---- EAL ---------- */

static bool
has(int argc, char **argv, const char *name)
{
	size_t len = strlen(name);

	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], name, len) && (len == 2 || !argv[i][len] ||
						     argv[i][len] == '='))
			return true;
	return false;
}

static uint64_t
free_huge_bytes(void)
{
	unsigned long n = 0;
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");

	if (f && fscanf(f, "%lu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return (uint64_t)n << 21;
}

/** The main thread floats over the CPUs of the two others: it sleeps while these work. */
static void
lcores_argument(char *text, size_t size)
{
	cpu_set_t set;
	int cpu[2] = { 0, 0 }, n = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	if (n < 2)
		cpu[1] = cpu[0]; /* both engines on one: slow, but right */
	snprintf(text, size, "--lcores=0@(%d,%d),1@%d,2@%d", cpu[0], cpu[1], cpu[0], cpu[1]);
}

/** What EAL gets: the user's arguments, and ours where the user has none. */
static int
compose(int argc, char **argv, char **eal, bool *huge)
{
	static char lcores[96], prefix[48], memory[] = "-m", amount[] = "1024",
		no_pci[] = "--no-pci", no_huge[] = "--no-huge", in_memory[] = "--in-memory",
		simd[] = "--force-max-simd-bitwidth=512", quiet[] = "--log-level=lib.eal:error",
		no_telemetry[] = "--no-telemetry";
	int n = 0;

	*huge = !has(argc, argv, "--no-huge") && free_huge_bytes() >= NEEDED_HUGE;
	for (int i = 0; i < argc && n < MAX_EAL - 12; i++)
		eal[n++] = argv[i];
	if (!has(argc, argv, "-a") && !has(argc, argv, "--allow") && !has(argc, argv, "--no-pci"))
		eal[n++] = no_pci;
	if (!has(argc, argv, "-l") && !has(argc, argv, "-c") && !has(argc, argv, "--lcores")) {
		lcores_argument(lcores, sizeof(lcores));
		eal[n++] = lcores;
	}
	if (*huge && !has(argc, argv, "--in-memory"))
		eal[n++] = in_memory;
	if (!*huge && !has(argc, argv, "--no-huge") && !has(argc, argv, "--in-memory"))
		eal[n++] = no_huge;
	if (!*huge && !has(argc, argv, "-m")) {
		eal[n++] = memory;
		eal[n++] = amount;
	}
	if (!has(argc, argv, "--file-prefix") && !*huge) {
		snprintf(prefix, sizeof(prefix), "--file-prefix=testrnic%d", (int)getpid());
		eal[n++] = prefix;
	}
	if (!has(argc, argv, "--force-max-simd-bitwidth"))
		eal[n++] = simd;
	if (!has(argc, argv, "--log-level"))
		eal[n++] = quiet;
	if (!has(argc, argv, "--telemetry"))
		eal[n++] = no_telemetry;
	eal[n] = NULL;
	return n;
}

static bool
two_lcores(unsigned int lcore[2])
{
	unsigned int n = 0, id;

	RTE_LCORE_FOREACH_WORKER(id) {
		if (n < 2)
			lcore[n++] = id;
	}
	return n == 2;
}

/* ---- start ---------- */

static void
on_signal(int sig)
{
	(void)sig;
	bench_stop();
	traffic_interrupt();
}

static void
catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal }; /* no SA_RESTART: reads end */

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static int
choose_ports(struct options *o)
{
	uint16_t n = rte_eth_dev_count_avail();
	uint16_t port, found = 0;

	if (o->loop) {
		o->traffic.ethdev[0] = o->traffic.ethdev[1] = PMD_PORT_LOOP;
		return 0;
	}
	if (n == 0)
		return engine_ring_pair("testrnic", o->traffic.ethdev);
	RTE_ETH_FOREACH_DEV(port) {
		if (found < 2)
			o->traffic.ethdev[found++] = port;
	}
	if (found == 1)
		o->traffic.ethdev[1] = o->traffic.ethdev[0];
	return 0;
}

static int
run_traffic(struct options *o)
{
	int rc;

	if (choose_ports(o) < 0) {
		fprintf(stderr, "testrnic: no pair of ring ports\n");
		return 2;
	}
	if (!o->automatic) {
		bool in = !o->commands || !strcmp(o->commands, "-");

		o->traffic.commands = in ? stdin : fopen(o->commands, "r");
		o->traffic.prompt = in && isatty(STDIN_FILENO);
		if (!o->traffic.commands) {
			fprintf(stderr, "testrnic: %s: %s\n", o->commands, strerror(errno));
			return 2;
		}
	}
	rc = traffic_run(&o->traffic);
	if (o->traffic.commands && o->traffic.commands != stdin)
		fclose(o->traffic.commands);
	return rc;
}

static void
join_words(char *text, size_t size, int argc, char **argv)
{
	size_t used = 0;

	for (int i = 0; i < argc && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "", argv[i]);
}

int
main(int argc, char **argv)
{
	struct options o = {
		.traffic = { .address = { "192.0.2.1/24", "192.0.2.2/24" },
			     .load = { .op = LOAD_WRITE, .size = 65536, .qps = 1, .depth = 128,
				       .list = 1, .mtu = 1024, .working_set = 64u << 20,
				       .stamps = true } },
		.bench = { .runs = 5, .window = 0.5, .warm = 0.1 },
	};
	struct client client = { 0 };
	char command[1024], *eal[MAX_EAL];
	int split = 1, n, rc = 2;
	bool huge;

	join_words(command, sizeof(command), argc, argv);
	while (split < argc && strcmp(argv[split], "--"))
		split++;
	if (has(split, argv, "-h") || has(split, argv, "--help")) {
		fputs(usage_text, stdout);
		return 0;
	}
	parse(&o, split < argc ? argc - split : 1, split < argc ? argv + split : argv);
	if (o.bench.rows & 1u << 5 && client_spawn(&client) < 0) {
		perror("testrnic: fork");
		return 2;
	}
	n = compose(split, argv, eal, &huge);
	if (rte_eal_init(n, eal) < 0 || !two_lcores(o.bench.lcore)) {
		fprintf(stderr, "testrnic: EAL did not start, or has no two lcores beside the main "
				"one (--lcores='0@(0,1),1@0,2@1')\n");
		client_end(&client);
		return 2;
	}
	catch_signals();
	o.traffic.huge = o.bench.huge = huge;
	memcpy(o.traffic.lcore, o.bench.lcore, sizeof(o.bench.lcore));
	o.bench.client = &client;
	o.bench.command = command;
	rc = o.bench.rows ? bench_run(&o.bench) : run_traffic(&o);
	client_end(&client);
	rte_eal_cleanup();
	return rc;
}
