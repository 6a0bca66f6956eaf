/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic_bw: bandwidth, message rate and latency between two applications. The client names the
 * tests; the server does what it is asked to, in a process for each client.
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rnic_bw.h"

#define MAX_TESTS 256
#define MAX_LIST 16

struct options {
	const char *host, *socket, *device, *json;
	unsigned int port, mtu, qps, depth, list, rounds;
	int gid_index;
	double seconds;
	bool verify, once, private_memory, cm;
	enum bw_op op[BW_OPS];
	uint32_t size[MAX_LIST];
	unsigned int num_ops, num_sizes;
};

static const char usage_text[] =
	"usage: rnic_bw [option...]        wait for clients\n"
	"       rnic_bw [option...] HOST   measure against the server there\n"
	"\n"
	"  -o, --op=LIST       write,read,send,lat-write,lat-read,lat-send, or all (all)\n"
	"  -s, --size=LIST     bytes a message, as 64,4k,1m (bandwidth 64,64k; latency 64)\n"
	"  -q, --qps=N         queue pairs (1)\n"
	"  -t, --depth=N       requests outstanding, a QP (64)\n"
	"  -l, --list=N        requests a submission (16, at most the depth)\n"
	"  -D, --seconds=S     duration of each bandwidth test (1)\n"
	"  -n, --rounds=N      round trips of each latency test (2000)\n"
	"  -c, --verify        data of its own in each message, every byte compared: slower\n"
	"  -P, --private       buffers in private memory, which the daemon reaches by copying\n"
	"  -R, --rdma-cm       connect the QPs by the connection manager\n"
	"  -m, --mtu=N         path MTU in bytes (what the port has)\n"
	"  -j, --json=FILE     the results, for programs; - is standard output\n"
	"  -p, --port=N        TCP port (18516)\n"
	"  -S, --socket=PATH   rnicd's socket (RNIC_SOCKET, or its default)\n"
	"  -d, --device=NAME   device (the daemon's first)\n"
	"  -g, --gid-idx=N     index of the own GID (the first IPv4 address)\n"
	"  -1, --once          server: end after the first client\n"
	"\n"
	"Exit status: 0 if all tests ran and no data was wrong.\n";

/* ---- results ---------- */

static void
print_head(bool latency, bool verify)
{
	if (latency)
		printf("\n%-10s %8s %9s %9s %9s %9s\n", "latency", "bytes", "min us", "p50 us",
		       "p99 us", "max us");
	else
		printf("\n%-10s %8s %5s %9s %10s %10s  %s\n", verify ? "verified" : "bandwidth",
		       "bytes", "QPs", "Gbit/s", "messages/s", "messages", "");
}

static void
print_result(const struct bw_test *t, const struct bw_result *r)
{
	double rate = (double)r->messages / r->seconds;

	if (bw_is_latency(t->op))
		printf("%-10s %8u %9.2f %9.2f %9.2f %9.2f", bw_op_name(t->op), t->size, r->min_us,
		       r->p50_us, r->p99_us, r->max_us);
	else
		printf("%-10s %8u %5u %9.3f %10.0f %10llu", bw_op_name(t->op), t->size, t->qps,
		       rate * t->size * 8e-9, rate, (unsigned long long)r->messages);
	if (r->wrong)
		printf("  %llu WRONG", (unsigned long long)r->wrong);
	putchar('\n');
	fflush(stdout);
}

static void
json_result(FILE *f, const struct bw_test *t, const struct bw_result *r, bool first)
{
	double rate = (double)r->messages / r->seconds;

	fprintf(f, "%s\n  {\"name\": \"%s\", \"size\": %u, \"qps\": %u, \"depth\": %u, "
		"\"list\": %u, \"verified\": %s, \"wrong\": %llu, \"messages\": %llu, "
		"\"seconds\": %.6f, ", first ? "" : ",", bw_op_name(t->op), t->size, t->qps,
		t->depth, t->list, t->verify ? "true" : "false", (unsigned long long)r->wrong,
		(unsigned long long)r->messages, r->seconds);
	if (bw_is_latency(t->op))
		fprintf(f, "\"unit\": \"us\", \"min\": %.3f, \"p50\": %.3f, \"p99\": %.3f, "
			"\"max\": %.3f}", r->min_us, r->p50_us, r->p99_us, r->max_us);
	else
		fprintf(f, "\"unit\": \"Gbit/s\", \"value\": %.6f, \"messages_per_second\": %.1f}",
			rate * t->size * 8e-9, rate);
}

/* ---- client ---------- */

static void
ask(struct bw_end *e, const struct bw_test *t)
{
	char line[160];

	ex_say(&e->conn, "test %s %u %u %u %u %u %u %u", bw_op_name(t->op), t->size, t->qps,
	       t->depth, t->list, t->mtu, t->verify, t->cm);
	if (!ex_hear(&e->conn, line, sizeof(line)))
		ex_fail("the server has gone");
	if (strcmp(line, "ok"))
		ex_fail("the server refuses: %s", line);
}

static void
run(struct bw_end *e, const struct bw_test *t, const struct options *o, struct bw_result *r)
{
	unsigned long long wrong;
	uint64_t posted = 0;
	char line[64];

	*r = (struct bw_result){ 0 };
	ask(e, t);
	bw_end_open(e, t);
	bw_end_join(e, false);
	if (bw_is_latency(t->op))
		bw_measure_latency(e, o->rounds, r);
	else
		bw_pump(e, o->seconds, r);
	for (uint32_t q = 0; q < t->qps; q++)
		posted += e->posted[q];
	ex_say(&e->conn, "end %llu", (unsigned long long)posted);
	if (!ex_hear(&e->conn, line, sizeof(line)) || sscanf(line, "done %llu", &wrong) != 1)
		ex_fail("the server has gone");
	if (t->op != BW_WRITE) /* what was written wrong is counted already */
		r->wrong += wrong;
	bw_end_close(e);
}

static unsigned int
plan(const struct options *o, const struct ex_device *dev, struct bw_test *tests)
{
	static const uint32_t bulk[] = { 64, 65536 }, small[] = { 64 };
	uint32_t mtu = 128u << ex_mtu(dev, o->mtu);
	unsigned int n = 0;

	for (unsigned int i = 0; i < o->num_ops; i++) {
		bool lat = bw_is_latency(o->op[i]);
		const uint32_t *size = o->num_sizes ? o->size : lat ? small : bulk;
		unsigned int sizes = o->num_sizes ? o->num_sizes : lat ? 1 : 2;

		for (unsigned int k = 0; k < sizes && n < MAX_TESTS; k++)
			tests[n++] = (struct bw_test){
				.op = o->op[i], .size = size[k], .mtu = mtu, .verify = o->verify,
				.qps = lat ? 1 : o->qps, .depth = lat ? 4 : o->depth,
				.list = lat ? 1 : o->list, .cm = o->cm,
			};
	}
	return n;
}

static FILE *
open_json(const char *path)
{
	FILE *f;

	if (!path)
		return NULL;
	f = strcmp(path, "-") ? fopen(path, "w") : stdout;
	if (!f)
		ex_fail("cannot write %s", path);
	fputc('[', f);
	return f;
}

static int
client(const struct options *o)
{
	struct bw_end e = { 0 };
	struct bw_test tests[MAX_TESTS];
	struct bw_result r;
	uint64_t wrong = 0;
	unsigned int n;
	FILE *json;

	ex_dial(&e.conn, o->host, o->port);
	ex_open(&e.dev, o->socket, o->device, 1, o->gid_index);
	e.dev.private_memory = o->private_memory;
	n = plan(o, &e.dev, tests);
	json = open_json(o->json);
	for (unsigned int i = 0; i < n; i++) {
		const char *no = bw_refuse(&tests[i]);
		bool lat = bw_is_latency(tests[i].op);

		if (no)
			ex_fail("%s of %u bytes: %s", bw_op_name(tests[i].op), tests[i].size, no);
		if (json != stdout && (i == 0 || lat != bw_is_latency(tests[i - 1].op)))
			print_head(lat, o->verify);
		run(&e, &tests[i], o, &r);
		wrong += r.wrong;
		if (json != stdout)
			print_result(&tests[i], &r);
		if (json)
			json_result(json, &tests[i], &r, i == 0);
	}
	if (json)
		fputs("\n]\n", json);
	if (json && json != stdout)
		fclose(json);
	ex_say(&e.conn, "quit");
	ex_hang_up(&e.conn);
	ex_close(&e.dev);
	return wrong > 0;
}

/* ---- server ---------- */

static int
attend(const struct options *o, int listener)
{
	struct ex_conn conn;
	struct ex_device dev;

	ex_accept(&conn, listener);
	if (!o->once) {
		pid_t pid = fork();

		if (pid != 0) {
			ex_hang_up(&conn);
			return pid < 0 ? 1 : 0;
		}
	}
	close(listener);
	ex_open(&dev, o->socket, o->device, 1, o->gid_index);
	dev.private_memory = o->private_memory;
	bw_serve(&conn, &dev);
	rnic_close(dev.ctx);
	if (!o->once)
		exit(0);
	return 0;
}

static int
server(const struct options *o)
{
	unsigned int port;
	int listener = ex_listen(o->port, &port), rc;

	signal(SIGCHLD, SIG_IGN);
	printf("listening on port %u\n", port);
	fflush(stdout);
	do
		rc = attend(o, listener);
	while (!o->once && rc == 0);
	return rc;
}

/* ---- options ---------- */

static void
parse_ops(struct options *o, char *text)
{
	char *save, *word;

	o->num_ops = 0;
	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		bool all = !strcmp(word, "all"), any = false;

		for (unsigned int op = 0; op < BW_OPS; op++)
			if ((all || !strcmp(word, bw_op_name(op))) && o->num_ops < BW_OPS) {
				o->op[o->num_ops++] = op;
				any = true;
			}
		if (!any)
			ex_fail("no operation '%s'", word);
	}
}

static void
parse_sizes(struct options *o, char *text)
{
	char *save, *word;

	o->num_sizes = 0;
	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (o->num_sizes == MAX_LIST)
			ex_fail("too many sizes");
		o->size[o->num_sizes++] = ex_size("--size", word, 8, BW_MAX_MEMORY);
	}
}

static double
parse_seconds(const char *text)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end || !(s > 0 && s < 1e6))
		ex_fail("--seconds wants a time, not '%s'", text);
	return s;
}

static const struct option long_options[] = {
	{ "op", 1, NULL, 'o' },	     { "size", 1, NULL, 's' },	  { "qps", 1, NULL, 'q' },
	{ "depth", 1, NULL, 't' },   { "list", 1, NULL, 'l' },	  { "seconds", 1, NULL, 'D' },
	{ "rounds", 1, NULL, 'n' },  { "verify", 0, NULL, 'c' },  { "mtu", 1, NULL, 'm' },
	{ "json", 1, NULL, 'j' },    { "port", 1, NULL, 'p' },	  { "socket", 1, NULL, 'S' },
	{ "device", 1, NULL, 'd' },  { "gid-idx", 1, NULL, 'g' }, { "once", 0, NULL, '1' },
	{ "private", 0, NULL, 'P' },   { "rdma-cm", 0, NULL, 'R' }, { "help", 0, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void
option(struct options *o, int opt, char *arg)
{
	switch (opt) {
	case 'o': parse_ops(o, arg); break;
	case 's': parse_sizes(o, arg); break;
	case 'q': o->qps = ex_number("--qps", arg, 1, BW_MAX_QPS); break;
	case 't': o->depth = ex_number("--depth", arg, 1, BW_MAX_DEPTH); break;
	case 'l': o->list = ex_number("--list", arg, 1, BW_MAX_DEPTH); break;
	case 'D': o->seconds = parse_seconds(arg); break;
	case 'n': o->rounds = ex_number("--rounds", arg, 1, 1u << 24); break;
	case 'c': o->verify = true; break;
	case 'm': o->mtu = ex_number("--mtu", arg, 256, 4096); break;
	case 'j': o->json = arg; break;
	case 'p': o->port = ex_number("--port", arg, 0, 65535); break;
	case 'S': o->socket = arg; break;
	case 'd': o->device = arg; break;
	case 'g': o->gid_index = ex_number("--gid-idx", arg, 0, 255); break;
	case 'P': o->private_memory = true; break;
	case 'R': o->cm = true; break;
	case '1': o->once = true; break;
	case 'h': fputs(usage_text, stdout); exit(0);
	default: fputs(usage_text, stderr); exit(2);
	}
}

int
main(int argc, char **argv)
{
	struct options o = { .port = 18516, .qps = 1, .depth = 64, .list = 16, .rounds = 2000,
			     .gid_index = -1, .seconds = 1 };
	char all[] = "all";
	int opt;

	ex_program = "rnic_bw";
	parse_ops(&o, all);
	while ((opt = getopt_long(argc, argv, "o:s:q:t:l:D:n:cPRm:j:p:S:d:g:1h", long_options,
				  NULL)) != -1)
		option(&o, opt, optarg);
	if (optind < argc)
		o.host = argv[optind++];
	if (optind < argc)
		option(&o, '?', NULL);
	if (o.list > o.depth)
		o.list = o.depth;
	return o.host ? client(&o) : server(&o);
}
