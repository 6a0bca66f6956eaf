/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side of rnic_bw that is called: sets up what a test needs, receives SENDs, compares what
 * was written when the client asks, and otherwise sleeps until the client speaks.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "rnic_bw.h"

#define BATCH 32
#define SPINS 2000

static void
received(struct bw_end *e, const struct rnic_wc *wc)
{
	uint32_t q = (uint32_t)wc->wr_id;
	uint64_t n = e->done[q]++;

	ex_check_wc(wc);
	if (wc->byte_len != e->test.size)
		e->wrong++;
	else if (e->test.verify)
		bw_right(e, q, n, bw_seed(q, n));
	bw_post_recv(e, q, n + bw_recv_depth(&e->test));
	rnic_rq_submit(e->qp[q]);
}

static int
reap(struct bw_end *e)
{
	struct rnic_wc wc[BATCH];
	int n = ex_check(rnic_poll_cq(e->cq, BATCH, wc), "completion queue");

	for (int i = 0; i < n; i++)
		received(e, &wc[i]);
	return n;
}

/** Sleep until a completion comes or the client speaks. @return whether it speaks. */
static bool
sleep_for_either(struct bw_end *e)
{
	struct pollfd p[2] = { { .fd = e->conn.fd, .events = POLLIN },
			       { .fd = rnic_channel_fd(e->channel), .events = POLLIN } };
	struct rnic_cq *cq;

	ex_check(rnic_req_notify_cq(e->cq, 0), "request of an event");
	if (reap(e) > 0)
		return false;
	if (poll(p, 2, -1) < 0 && errno != EINTR)
		ex_fail("poll: %s", strerror(errno));
	if (p[1].revents) {
		ex_check(rnic_get_cq_event(e->channel, &cq), "completion event");
		rnic_ack_cq_events(cq, 1);
	}
	return p[0].revents != 0;
}

/** All sends that the client will have sent before its next line. */
static void
receive_until_spoken_to(struct bw_end *e)
{
	int idle = 0;

	for (;;) {
		idle = reap(e) > 0 ? 0 : idle + 1;
		if (idle > SPINS) {
			if (sleep_for_either(e))
				return;
			idle = 0;
		}
	}
}

/** The rest: acknowledged to the client, so in our queue at any moment. */
static void
receive_until(struct bw_end *e, uint64_t total)
{
	uint64_t sum;

	do {
		reap(e);
		sum = 0;
		for (uint32_t q = 0; q < e->test.qps; q++)
			sum += e->done[q];
	} while (sum < total);
}

static void
compare_writes(struct bw_end *e, const char *first)
{
	uint64_t before = e->wrong;
	char line[64];

	for (uint32_t q = 0; q < e->test.qps; q++) {
		uint64_t upto;

		if (q > 0 && !ex_hear(&e->conn, line, sizeof(line)))
			ex_fail("the client has gone");
		upto = strtoull(q > 0 ? line : first, NULL, 10);
		if (upto - e->done[q] > e->slots)
			ex_fail("the client asks for what is overwritten");
		for (; e->done[q] < upto; e->done[q]++)
			bw_right(e, q, e->done[q], bw_seed(q, e->done[q]));
	}
	ex_say(&e->conn, "wrong %llu", (unsigned long long)(e->wrong - before));
}

/** From "go" to "end". */
static void
attend(struct bw_end *e)
{
	unsigned long long total;
	char line[64];

	for (;;) {
		if (e->test.op == BW_SEND)
			receive_until_spoken_to(e);
		if (!ex_hear(&e->conn, line, sizeof(line)))
			ex_fail("the client has gone");
		if (!strncmp(line, "check ", 6)) {
			compare_writes(e, line + 6);
		} else if (!strncmp(line, "rounds ", 7)) {
			bw_answer_latency(e, (uint32_t)strtoul(line + 7, NULL, 10));
		} else if (sscanf(line, "end %llu", &total) == 1) {
			if (e->test.op == BW_SEND)
				receive_until(e, total);
			ex_say(&e->conn, "done %llu", (unsigned long long)e->wrong);
			return;
		} else {
			ex_fail("the client says '%s'", line);
		}
	}
}

static bool
parse(const char *line, struct bw_test *t)
{
	char name[16];
	unsigned int verify, cm, op;

	if (sscanf(line, "test %15s %u %u %u %u %u %u %u", name, &t->size, &t->qps, &t->depth,
		   &t->list, &t->mtu, &verify, &cm) != 8)
		return false;
	for (op = 0; op < BW_OPS && strcmp(name, bw_op_name(op)); op++)
		;
	t->op = op;
	t->verify = verify != 0;
	t->cm = cm != 0;
	return op < BW_OPS;
}

void
bw_serve(struct ex_conn *conn, struct ex_device *dev)
{
	struct bw_end e = { .conn = *conn, .dev = *dev };
	char line[128];

	while (ex_hear(&e.conn, line, sizeof(line)) && strcmp(line, "quit")) {
		struct bw_test t;
		const char *no = parse(line, &t) ? bw_refuse(&t) : "no such test";

		if (no) {
			ex_say(&e.conn, "no %s", no);
			continue;
		}
		ex_say(&e.conn, "ok");
		bw_end_open(&e, &t);
		bw_end_join(&e, true);
		attend(&e);
		bw_end_close(&e);
	}
}
