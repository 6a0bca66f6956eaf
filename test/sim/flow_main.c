/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic-flow: what the engine reaches on lossy and on crowded networks, on virtual time. Tables of
 * docs/performance.md come from here; --check makes it a test.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "flow.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char usage[] =
	"usage: rnic-flow loss|strict|incast|fair|one [OPTION...]\n"
	"  loss      goodput at losses of 1/4096, 1/1000, 1/100 against none: RTT 20 and 200 us,\n"
	"            1 and 16 QPs, WRITE, READ, SEND; go-back-N beside\n"
	"  strict    the same with 5 % lost, against a responder that keeps nothing\n"
	"  incast    16 senders into one port through a queue that marks, and without marks\n"
	"  fair      QPs of large and of small messages, and beside one that goes nowhere\n"
	"  one       one run of the options below\n"
	"  --check   exit status 1 when a figure is under what docs/design.md section 7 demands\n"
	"  --quick   short runs, and of `loss` the cells at the edge alone\n"
	"  --json    a line a run\n"
	"  --op write|read|send  --rtt US  --qps N  --senders N  --loss-in N  --msg BYTES\n"
	"  --mtu BYTES  --mbps N  --ms N  --warm-ms N  --inflight BYTES  --seed N  --go-back-n\n"
	"  --strict-peer  --cc  --set NAME=VALUE (of congestion control)\n";

static bool check, quick, json, failed;
static struct flow_params base;

static void
print_json(const char *what, const struct flow_params *p, const struct flow_result *r,
	   double share)
{
	printf("{\"run\": \"%s\", \"op\": \"%s\", \"rtt_us\": %u, \"qps\": %u, \"loss_in\": %u, "
	       "\"go_back_n\": %s, \"gbps\": %.3f, \"share\": %.4f, \"jain\": %.4f, "
	       "\"packets\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"dropped\": %" PRIu64
	       ", \"marked\": %" PRIu64 ", \"cnps\": %" PRIu64 ", \"retransmits\": %" PRIu64
	       ", \"timeouts\": %" PRIu64 ", \"probes\": %" PRIu64 ", \"naks\": %" PRIu64
	       ", \"queue_max\": %u}\n",
	       what, flow_op_name(p->op), p->rtt_us, r->qps, p->loss_in,
	       p->go_back_n ? "true" : "false", (double)r->bits_per_s / 1e9, share, r->jain,
	       r->packets, r->lost, r->dropped, r->marked, r->cnps, r->retransmits, r->timeouts,
	       r->probes, r->naks, r->queue_max);
}

static void
must(bool ok, const char *what)
{
	if (ok)
		return;
	failed = true;
	if (check)
		fprintf(stderr, "rnic-flow: %s: under what it must reach\n", what);
}

/* ---- loss ---------- */

struct loss_cell {
	uint32_t in, must; /* one in so many; percent of the goodput without loss */
};

static const struct loss_cell losses[] = {{4096, 95}, {1000, 90}, {100, 60}};

static void
loss_row(enum flow_op op, uint32_t rtt, uint32_t qps)
{
	struct flow_params p = base;
	struct flow_result none, r;
	char name[64];

	p.op = op;
	p.rtt_us = rtt;
	p.qps = qps;
	flow_run(&p, &none);
	if (!json)
		printf("%-5s %4u %3u  %6.2f", flow_op_name(op), rtt, qps,
		       (double)none.bits_per_s / 1e9);
	for (unsigned int i = 0; i < 2 * COUNT(losses); i++) {
		const struct loss_cell *c = &losses[i % COUNT(losses)];
		double share;

		p.go_back_n = i >= COUNT(losses);
		if (quick && p.go_back_n)
			break;
		p.loss_in = c->in;
		flow_run(&p, &r);
		share = (double)r.bits_per_s / (double)none.bits_per_s;
		snprintf(name, sizeof(name), "%s, RTT %u us, %u QPs, loss 1/%u",
			 flow_op_name(op), rtt, qps, c->in);
		if (!p.go_back_n)
			must(share * 100 >= c->must, name);
		if (json)
			print_json("loss", &p, &r, share);
		else
			printf("  %5.1f%%%c", share * 100,
			       !p.go_back_n && share * 100 < c->must ? '!' : ' ');
		if (!json && r.timeouts)
			printf("(%" PRIu64 ")", r.timeouts);
	}
	if (!json)
		printf("\n");
	fflush(stdout);
}

static void
run_loss(void)
{
	static const uint32_t rtts[] = {20, 200}, counts[] = {1, 16};

	if (!json)
		printf("                    goodput of that without loss; in brackets: time-outs\n"
		       "op    RTT  QPs  Gb/s   1/4096  1/1000   1/100   go-back-N: the same\n");
	for (unsigned int op = 0; op < FLOW_OPS; op++)
		for (unsigned int i = 0; i < COUNT(rtts); i++)
			for (unsigned int k = 0; k < COUNT(counts); k++)
				if (!quick || (i == 1 && k == 0))
					loss_row(op, rtts[i], counts[k]);
}

/* ---- a standard peer ---------- */

/** Whether our sender is slower than one that goes back N, with a peer that keeps nothing. */
static void
run_strict(void)
{
	if (!json)
		printf("a peer that keeps nothing, 5 %% lost: Gb/s\n"
		       "op    RTT  QPs    ours  go-back-N\n");
	for (unsigned int op = 0; op < FLOW_OPS; op++) {
		struct flow_params p = base;
		struct flow_result ours, theirs;

		p.op = op;
		p.timeout = 10; /* 4 ms */
		p.warm = 20 * FLOW_MS;
		p.run = (quick ? 100 : 400) * FLOW_MS;
		p.loss_in = 20;
		p.strict_peer = true;
		flow_run(&p, &ours);
		p.go_back_n = true;
		flow_run(&p, &theirs);
		must(ours.bits_per_s * 100 >= theirs.bits_per_s * 90, "a strict peer, 5 % lost");
		if (json) {
			print_json("strict", &p, &theirs, 1);
			p.go_back_n = false;
			print_json("strict", &p, &ours, 1);
		} else {
			printf("%-5s %4u %3u  %6.3f  %6.3f\n", flow_op_name(op), p.rtt_us, p.qps,
			       (double)ours.bits_per_s / 1e9, (double)theirs.bits_per_s / 1e9);
		}
	}
}

/* ---- incast ---------- */

static void
incast_line(const char *what, const struct flow_params *p, const struct flow_result *r)
{
	if (json) {
		print_json(what, p, r, 0);
		return;
	}
	printf("%-14s %-5s  %6.2f  %.4f  %8" PRIu64 "  %7" PRIu64 "  %7" PRIu64 "  %7" PRIu64
	       "  %6" PRIu64 "  %5u\n",
	       what, flow_op_name(p->op), (double)r->bits_per_s / 1e9, r->jain, r->marked, r->cnps,
	       r->dropped, r->retransmits, r->timeouts, r->queue_max >> 10);
}

static void
run_incast(void)
{
	if (!json)
		printf("16 into 1              Gb/s    Jain    marked     CNPs  dropped   resent  "
		       "t-outs  queue max, KiB\n");
	for (unsigned int i = 0; i < (quick ? 1u : 2u * FLOW_OPS); i++) {
		struct flow_params p = base;
		struct flow_result r;

		p.op = i % FLOW_OPS;
		p.senders = 16;
		p.warm = 50 * FLOW_MS;
		p.run = quick ? 20 * FLOW_MS : 100 * FLOW_MS;
		p.queue = 2u << 20;
		p.cc = i < FLOW_OPS;
		if (!p.cc)
			p.pmax = 0;
		flow_run(&p, &r);
		incast_line(p.cc ? "DCQCN" : "window alone", &p, &r);
		if (p.cc)
			must(r.jain >= 0.95 && r.timeouts == 0, "16 into 1");
		fflush(stdout);
	}
}

/* ---- one and the other ---------- */

static void
fair_line(const char *what, const struct flow_params *p, double want)
{
	struct flow_result r;

	flow_run(p, &r);
	must(r.jain >= want, what);
	if (json)
		print_json(what, p, &r, 0);
	else
		printf("%-44s %6.2f  %.4f\n", what, (double)r.bits_per_s / 1e9, r.jain);
}

static void
run_fair(void)
{
	struct flow_params p = base;
	struct flow_result alone, beside;
	static const char *const names[] = {"beside one whose peer is deaf",
					    "beside one whose peer has no receives",
					    "beside one whose neighbour is unknown"};

	p.qps = 8;
	p.run = 10 * FLOW_MS;
	if (!json)
		printf("%-44s   Gb/s    Jain\n", "8 QPs of one sender");
	fair_line("all of 64 KiB", &p, 0.98);
	p.odd_msg = 4096;
	fair_line("every second one of 4 KiB", &p, 0.98);
	p.odd_msg = 0;
	flow_run(&p, &alone);
	for (unsigned int i = 0; i < COUNT(names); i++) {
		p.deaf = i == 0;
		p.not_ready = i == 1;
		p.unresolved = i == 2;
		fair_line(names[i], &p, 0.98);
		flow_run(&p, &beside);
		must(beside.bits_per_s * 100 >= alone.bits_per_s * 97, names[i]);
	}
}

static void
run_one(void)
{
	struct flow_result r;

	flow_run(&base, &r);
	print_json("one", &base, &r, 0);
	for (uint32_t i = 0; i < r.qps && r.qps > 1; i++)
		printf("%s%.2f%s", i ? " " : "QPs, Gb/s: ",
		       (double)r.bytes[i] * 8 / (double)base.run, i + 1 == r.qps ? "\n" : "");
}

/* ---- command line ---------- */

static const struct option options[] = {
	{"check", no_argument, NULL, 'C'},	{"quick", no_argument, NULL, 'Q'},
	{"json", no_argument, NULL, 'j'},	{"op", required_argument, NULL, 'o'},
	{"rtt", required_argument, NULL, 'r'},	{"qps", required_argument, NULL, 'q'},
	{"senders", required_argument, NULL, 'n'}, {"loss-in", required_argument, NULL, 'l'},
	{"msg", required_argument, NULL, 'm'},	{"mtu", required_argument, NULL, 'u'},
	{"mbps", required_argument, NULL, 'b'},	{"ms", required_argument, NULL, 't'},
	{"warm-ms", required_argument, NULL, 'w'}, {"seed", required_argument, NULL, 's'},
	{"inflight", required_argument, NULL, 'i'}, {"go-back-n", no_argument, NULL, 'g'},
	{"strict-peer", no_argument, NULL, 'p'}, {"cc", no_argument, NULL, 'c'},
	{"set", required_argument, NULL, 'S'},	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static void
die(const char *what, const char *arg)
{
	fprintf(stderr, "rnic-flow: %s '%s'\n", what, arg);
	exit(2);
}

static void
parse_op(const char *arg)
{
	for (unsigned int op = 0; op < FLOW_OPS; op++) {
		if (strcasecmp(arg, flow_op_name(op)) == 0) {
			base.op = op;
			return;
		}
	}
	die("no such operation", arg);
}

static void
parse_set(char *arg)
{
	char *value = strchr(arg, '=');

	if (value == NULL)
		die("not NAME=VALUE", arg);
	*value++ = '\0';
	if (roce_cc_param_set(&base.ccp, arg, strtoull(value, NULL, 0)))
		die("no such parameter, or out of range", arg);
}

static void
parse_number(int o, uint32_t n)
{
	switch (o) {
	case 'r': base.rtt_us = n; break;
	case 'q': base.qps = n; break;
	case 'n': base.senders = n; break;
	case 'l': base.loss_in = n; break;
	case 'm': base.msg = n; break;
	case 'u': base.mtu = n; break;
	case 'b': base.mbps = n; break;
	case 't': base.run = n * FLOW_MS; break;
	case 'w': base.warm = n * FLOW_MS; break;
	case 's': base.seed = n; break;
	case 'i': base.max_inflight = n; break;
	default: exit(2);
	}
}

static void
parse_option(int o, char *arg)
{
	switch (o) {
	case 'C': check = true; break;
	case 'Q': quick = true; break;
	case 'j': json = true; break;
	case 'o': parse_op(arg); break;
	case 'g': base.go_back_n = true; break;
	case 'p': base.strict_peer = true; break;
	case 'c': base.cc = true; break;
	case 'S': parse_set(arg); break;
	case 'h': fputs(usage, stdout); exit(0);
	case '?': fputs(usage, stderr); exit(2);
	default: parse_number(o, (uint32_t)strtoul(arg, NULL, 0)); break;
	}
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {{"loss", run_loss}, {"strict", run_strict}, {"incast", run_incast},
		     {"fair", run_fair}, {"one", run_one}};
	int o;

	flow_defaults(&base);
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		parse_option(o, optarg);
	base.ccp.line_mbps = base.mbps;
	if (base.senders == 0 || base.senders >= FLOW_NODES || base.qps == 0 ||
	    base.senders * base.qps > FLOW_QPS)
		die("too many senders or QPs", "");
	if (optind != argc - 1 || flow_start()) {
		fputs(usage, stderr);
		return 2;
	}
	for (unsigned int i = 0; i < COUNT(modes); i++) {
		if (strcmp(modes[i].name, argv[optind]) == 0) {
			modes[i].run();
			return check && failed;
		}
	}
	die("no such mode", argv[optind]);
	return 2;
}
