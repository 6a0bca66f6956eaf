/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An honest application beside hostile ones, on librnic: WRITEs between two QPs, its own or one
 * of another victim (--peer), each verified, with a line about every interval:
 *
 *   me QPN RKEY ADDR GID   --peer: what the other one needs, whose line is read from stdin
 *   joined                 --peer: connected; traffic begins at the next line of stdin
 *   rate WRITES NS CPU WORKER PAUSE
 *                          of the interval that ended at NS of the monotonic clock; the CPU time
 *                          that this process and the worker got until now (ns, cumulative), and
 *                          the longest pause between completions in the interval (us)
 *   error STATUS SINCE AT NS WORKER
 *                          --peer: a completion in error, made by the device at AT; at SINCE its
 *                          WRITE was posted and the one before complete; now, and the worker's
 *                          CPU time (all ns of the monotonic clock)
 *   fatal                  the daemon is gone (asynchronous event, or an error that says so)
 *   reconnected            --reopen: a new session stands, traffic goes on
 *
 * The worker's CPU time is the first number of the file --watch (/proc/PID/task/TID/schedstat). A
 * pause is counted in time that both got, the worker and this process: who waits for a core does
 * not count.
 * SIGTERM ends it well, as --seconds. Every wait has an end: a hang shows as "hang" and exit
 * status 3. Exit status 0 after --seconds, or at an error with --peer; 1 when bytes were wrong or
 * something failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rnic.h"

#define SIZE 4096u
#define DEPTH 16u
#define HANG_MS 30000
#define PAUSE_MS 2 /* from then on a pause is measured */

struct end {
	struct rnic_qp *qp;
	struct rnic_ah_attr path;
	uint32_t peer_qpn;
	uint32_t peer_rkey;
	uint64_t peer_addr;
};

struct victim {
	struct rnic_context *ctx;
	struct rnic_pd *pd;
	struct rnic_cq *cq;
	struct rnic_mr *mr;
	uint8_t *mem; /* DEPTH sources, DEPTH targets */
	struct rnic_ah_attr path;
	struct end end[2];
	uint32_t num_ends;
	bool peer;
	uint64_t posted;
	uint64_t done;
	uint64_t last_good; /* ms */
	uint64_t last_stamp; /* device's ns */
	uint64_t ahead; /* of the device's clock, the monotonic one; by the fastest completion */
	uint64_t posted_at[DEPTH]; /* monotonic ns */
	uint64_t interval;   /* ms */
	uint8_t ack; /* local ACK timeout: 4.096 us * 2^ack */
	int watch;	     /* file, or -1 */
	uint64_t pause_cpu, pause_worker; /* when the present pause was noticed; 0: none */
	uint64_t longest;		  /* us */
	bool busy[DEPTH]; /* slots under way: the two queues complete in no order */
	bool wrong;
};

static volatile sig_atomic_t ended; /* by SIGTERM: with every object destroyed */

static void
end_well(int sig)
{
	(void)sig;
	ended = 1;
}

static uint64_t
now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t
now_ms(void)
{
	return now_ns(CLOCK_MONOTONIC) / 1000000;
}

/* CPU time of the worker; without --watch, our own. */
static uint64_t
worker_ns(const struct victim *v)
{
	char text[64] = "";

	if (v->watch < 0)
		return now_ns(CLOCK_PROCESS_CPUTIME_ID);
	return pread(v->watch, text, sizeof(text) - 1, 0) > 0 ? strtoull(text, NULL, 10) : 0;
}

static int
fail(const char *what, int err)
{
	printf("failed %s: %s\n", what, strerror(-err));
	fflush(stdout);
	return err;
}

/* The device's last address: the configured ones come after the link-local one. */
static int
own_path(struct victim *v)
{
	struct rnic_gid_entry e;
	int ret = -ENODATA;

	for (unsigned int i = 0; i < 16; i++) {
		if (rnic_query_gid(v->ctx, 1, i, &e))
			continue;
		v->path = (struct rnic_ah_attr){
			.dgid = e.gid,
			.sgid_index = (uint8_t)i,
			.port_num = 1,
			.is_global = 1,
			.hop_limit = 64,
		};
		ret = 0;
	}
	return ret;
}

static int
make(struct victim *v)
{
	struct rnic_cq_attr cq = {.cqe = 4 * DEPTH};
	struct rnic_qp_init_attr init;
	void *mem;
	int ret;

	if ((ret = rnic_alloc_pd(v->ctx, &v->pd)) != 0)
		return fail("PD", ret);
	if ((ret = rnic_create_cq(v->ctx, &cq, &v->cq)) != 0)
		return fail("CQ", ret);
	if ((ret = rnic_alloc(v->ctx, 4 * DEPTH * SIZE, 4096, &mem)) != 0)
		return fail("memory", ret);
	v->mem = mem;
	ret = rnic_reg_mr(v->pd, mem, 4 * DEPTH * SIZE,
			  RNIC_ACCESS_LOCAL_WRITE | RNIC_ACCESS_REMOTE_WRITE |
				  RNIC_ACCESS_REMOTE_READ,
			  &v->mr);
	if (ret)
		return fail("MR", ret);
	v->num_ends = v->peer ? 1 : 2;
	for (uint32_t i = 0; i < v->num_ends; i++) {
		init = (struct rnic_qp_init_attr){
			.send_cq = v->cq,
			.recv_cq = v->cq,
			.cap = {DEPTH, 1, 1, 1, 0},
			.qp_type = RNIC_QPT_RC,
		};
		if ((ret = rnic_create_qp(v->pd, &init, &v->end[i].qp)) != 0)
			return fail("QP", ret);
	}
	return own_path(v);
}

/* T and three retries: a dead peer is known within (3 + 1) * 4 * T (IBTA, C9-141). */
static int
join(const struct victim *v, struct end *e)
{
	struct rnic_qp_attr a = {
		.qp_state = RNIC_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ,
		.ah_attr = e->path,
		.path_mtu = RNIC_MTU_1024,
		.dest_qp_num = e->peer_qpn,
		.rq_psn = e->peer_qpn & 0xffffff,
		.sq_psn = e->qp->qp_num & 0xffffff,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = v->ack,
		.retry_cnt = 3,
		.rnr_retry = 3,
	};
	int ret = rnic_modify_qp(e->qp, &a, RNIC_QP_STATE | RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
						    RNIC_QP_ACCESS_FLAGS);

	a.qp_state = RNIC_QPS_RTR;
	if (!ret)
		ret = rnic_modify_qp(e->qp, &a,
				     RNIC_QP_STATE | RNIC_QP_AV | RNIC_QP_PATH_MTU |
					     RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN |
					     RNIC_QP_MAX_DEST_RD_ATOMIC |
					     RNIC_QP_MIN_RNR_TIMER);
	a.qp_state = RNIC_QPS_RTS;
	if (!ret)
		ret = rnic_modify_qp(e->qp, &a,
				     RNIC_QP_STATE | RNIC_QP_TIMEOUT | RNIC_QP_RETRY_CNT |
					     RNIC_QP_RNR_RETRY | RNIC_QP_SQ_PSN |
					     RNIC_QP_MAX_QP_RD_ATOMIC);
	return ret ? fail("connecting", ret) : 0;
}

static int
connect_ends(struct victim *v)
{
	struct end *e = v->end;
	unsigned long long addr;
	char line[128], gid[40];
	int ret;

	if (!v->peer) {
		for (uint32_t i = 0; i < 2; i++) {
			e[i].path = v->path;
			e[i].peer_qpn = e[!i].qp->qp_num;
			e[i].peer_rkey = v->mr->rkey;
			e[i].peer_addr = (uintptr_t)v->mem + DEPTH * SIZE;
			if ((ret = join(v, &e[i])) != 0)
				return ret;
		}
		return 0;
	}
	for (unsigned int i = 0; i < 16; i++)
		sprintf(gid + 2 * i, "%02x", v->path.dgid.raw[i]);
	printf("me %u %u %llu %s\n", e->qp->qp_num, v->mr->rkey,
	       (unsigned long long)(uintptr_t)(v->mem + 2 * DEPTH * SIZE), gid);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) ||
	    sscanf(line, "%u %u %llu %32s", &e->peer_qpn, &e->peer_rkey, &addr, gid) != 4)
		return fail("the peer's line", -EPROTO);
	e->peer_addr = addr;
	e->path = v->path;
	for (unsigned int i = 0; i < 16; i++)
		if (sscanf(gid + 2 * i, "%2hhx", &e->path.dgid.raw[i]) != 1)
			return fail("the peer's address", -EPROTO);
	ret = join(v, e);
	if (ret)
		return ret;
	/* who sends to a QP that is not ready yet uses up its retries */
	printf("joined\n");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) ? 0 : fail("the word to go", -EPROTO);
}

/* Sources and targets are the slot's; the stamp is the request's number over all of it. */
static void
fill(uint8_t *p, uint64_t n)
{
	for (uint32_t i = 0; i < SIZE; i += 8) {
		uint64_t word = n * 0x9e3779b97f4a7c15ull + i;

		memcpy(p + i, &word, 8);
	}
}

static int
post(struct victim *v)
{
	uint32_t slot = (uint32_t)(v->posted % DEPTH);
	uint8_t *src = v->mem + slot * SIZE;
	struct end *e = &v->end[v->num_ends > 1 ? v->posted % 2 : 0];
	struct rnic_sge sge = {(uintptr_t)src, SIZE, v->mr->lkey};
	struct rnic_send_wr wr = {
		.wr_id = v->posted,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = RNIC_WR_RDMA_WRITE,
		.send_flags = RNIC_SEND_SIGNALED,
	};
	const struct rnic_send_wr *bad;
	int ret;

	wr.wr.rdma.remote_addr = e->peer_addr + slot * SIZE;
	wr.wr.rdma.rkey = e->peer_rkey;
	fill(src, v->posted);
	v->posted_at[slot] = now_ns(CLOCK_MONOTONIC); /* not behind it: we may lose the CPU */
	ret = rnic_post_send(e->qp, &wr, &bad);
	if (!ret) {
		v->busy[slot] = true;
		v->posted++;
	}
	return ret;
}

static void
verify(struct victim *v, const struct rnic_wc *wc)
{
	uint8_t want[SIZE];
	const uint8_t *got = v->mem + (DEPTH + wc->wr_id % DEPTH) * SIZE;

	if (v->peer)
		return; /* the bytes lie with the other one */
	fill(want, wc->wr_id);
	if (memcmp(want, got, SIZE)) {
		printf("wrong bytes in WRITE %llu\n", (unsigned long long)wc->wr_id);
		fflush(stdout);
		v->wrong = true;
	}
}

/* A pause ends: how long the worker and this process both ran in it, but for its beginning. */
static void
pause_end(struct victim *v)
{
	uint64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - v->pause_cpu;
	uint64_t worker = worker_ns(v) - v->pause_worker;
	uint64_t us = (cpu < worker ? cpu : worker) / 1000 + PAUSE_MS * 1000;

	if (us > v->longest)
		v->longest = us;
	v->pause_cpu = 0;
}

static void
pause_look(struct victim *v, uint64_t now, bool progress)
{
	if (progress && v->pause_cpu)
		pause_end(v);
	if (!progress && !v->pause_cpu && now - v->last_good >= PAUSE_MS) {
		v->pause_cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		v->pause_worker = worker_ns(v);
	}
}

enum outcome { GO_ON, PEER_ERROR, GONE, BROKEN };

static void
tell_error(const struct victim *v, const struct rnic_wc *wc)
{
	uint64_t since = v->posted_at[wc->wr_id % DEPTH] - v->ahead;

	if (since < v->last_stamp)
		since = v->last_stamp;
	printf("error %u %llu %llu %llu %llu\n", wc->status,
	       (unsigned long long)(since + v->ahead),
	       (unsigned long long)(wc->timestamp + v->ahead),
	       (unsigned long long)now_ns(CLOCK_MONOTONIC), (unsigned long long)worker_ns(v));
	fflush(stdout);
}

static void
good(struct victim *v, const struct rnic_wc *wc)
{
	uint64_t ahead = now_ns(CLOCK_MONOTONIC) - wc->timestamp;

	if (v->last_stamp == 0 || (int64_t)(ahead - v->ahead) < 0)
		v->ahead = ahead;
	v->busy[wc->wr_id % DEPTH] = false;
	v->done++;
	v->last_good = now_ms();
	v->last_stamp = wc->timestamp;
}

/* Fill the queue in order, take what there is. */
static enum outcome
turn(struct victim *v)
{
	struct rnic_wc wc[DEPTH];
	int n;

	while (!v->busy[v->posted % DEPTH]) {
		int ret = post(v);

		if (ret == -ENOTCONN)
			return GONE;
		if (ret)
			break;
	}
	n = rnic_poll_cq(v->cq, DEPTH, wc);
	if (n == -ENOTCONN)
		return GONE;
	for (int i = 0; i < n; i++) {
		if (wc[i].status != RNIC_WC_SUCCESS) {
			if (!v->peer)
				return BROKEN;
			tell_error(v, &wc[i]);
			return PEER_ERROR;
		}
		verify(v, &wc[i]);
		good(v, &wc[i]);
	}
	pause_look(v, now_ms(), n > 0);
	return v->wrong ? BROKEN : GO_ON;
}

/* The event of the daemon's death, without waiting longer than it may take. */
static bool
told_fatal(struct victim *v, int timeout_ms)
{
	struct pollfd p = {.fd = rnic_async_fd(v->ctx), .events = POLLIN};
	struct rnic_async_event ev;
	int flags = fcntl(p.fd, F_GETFL);

	fcntl(p.fd, F_SETFL, flags | O_NONBLOCK);
	while (poll(&p, 1, timeout_ms) > 0) {
		int ret = rnic_get_async_event(v->ctx, &ev);

		if (ret == -EAGAIN)
			continue;
		if (ret)
			return false;
		rnic_ack_async_event(v->ctx, &ev);
		if (ev.event_type == RNIC_EVENT_DEVICE_FATAL)
			return true;
	}
	return false;
}

/* Traffic until `end`, the daemon's death, or an error. */
static enum outcome
run(struct victim *v, uint64_t end)
{
	uint64_t interval = now_ms() + v->interval, before = v->done;

	v->last_good = now_ms();
	while (now_ms() < end && !ended) {
		enum outcome o = turn(v);
		uint64_t now = now_ms();

		if (o != GO_ON)
			return o;
		if (now < interval)
			continue;
		printf("rate %llu %llu %llu %llu %llu\n", (unsigned long long)(v->done - before),
		       (unsigned long long)now_ns(CLOCK_MONOTONIC),
		       (unsigned long long)now_ns(CLOCK_PROCESS_CPUTIME_ID),
		       (unsigned long long)worker_ns(v), (unsigned long long)v->longest);
		fflush(stdout);
		before = v->done;
		v->longest = 0;
		interval = now + v->interval;
		if (told_fatal(v, 0))
			return GONE;
		if (now - v->last_good > HANG_MS) {
			printf("hang\n");
			exit(3);
		}
	}
	return GO_ON;
}

/* Open again, for as long as a new daemon may need to start. */
static int
reopen(struct victim *v)
{
	uint64_t end = now_ms() + HANG_MS;
	struct rnic_context *ctx = NULL;
	int ret;

	while ((ret = rnic_reopen(v->ctx, &ctx)) != 0 && now_ms() < end)
		poll(NULL, 0, 20);
	if (ret)
		return fail("reopening", ret);
	rnic_destroy_qp(v->end[0].qp);
	if (v->num_ends > 1)
		rnic_destroy_qp(v->end[1].qp);
	rnic_dereg_mr(v->mr);
	rnic_close(v->ctx);
	memset(v->end, 0, sizeof(v->end));
	memset(v->busy, 0, sizeof(v->busy));
	v->ctx = ctx;
	v->posted = v->done = 0;
	return 0;
}

static const char usage[] =
	"usage: victim --socket PATH [--seconds N] [--interval MS] [--watch FILE]\n"
	"              [--peer] [--reopen] [--ack TIMEOUT]\n"
	"An honest application with verified traffic; see the head of victim.c.\n";

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"socket", 1, NULL, 's'}, {"seconds", 1, NULL, 't'}, {"peer", 0, NULL, 'p'},
		{"reopen", 0, NULL, 'r'}, {"interval", 1, NULL, 'i'}, {"watch", 1, NULL, 'w'},
		{"ack", 1, NULL, 'a'},
		{"help", 0, NULL, 'h'},	  {NULL, 0, NULL, 0},
	};
	struct victim v = {.interval = 100, .watch = -1, .ack = 10};
	const char *path = NULL;
	unsigned int seconds = 10;
	bool again = false;
	enum outcome o;
	int opt, ret;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 's': path = optarg; break;
		case 't': seconds = (unsigned int)strtoul(optarg, NULL, 0); break;
		case 'p': v.peer = true; break;
		case 'r': again = true; break;
		case 'a': v.ack = (uint8_t)(strtoul(optarg, NULL, 0) & 31); break;
		case 'i': v.interval = strtoull(optarg, NULL, 0); break;
		case 'w': v.watch = open(optarg, O_RDONLY | O_CLOEXEC); break;
		case 'h': fputs(usage, stdout); return 0;
		default: fputs(usage, stderr); return 2;
		}
	}
	signal(SIGTERM, end_well);
	if ((ret = rnic_open(path, NULL, &v.ctx)) != 0)
		return fail("opening", ret) ? 1 : 0;
	for (;;) {
		if (make(&v) || connect_ends(&v))
			return 1;
		o = run(&v, now_ms() + seconds * 1000ull);
		if (o != GONE)
			break;
		if (!told_fatal(&v, HANG_MS) && rnic_status(v.ctx) != -ENOTCONN)
			return fail("the fatal event", -ETIMEDOUT) ? 1 : 0;
		printf("fatal\n");
		fflush(stdout);
		if (!again)
			return 0;
		if (reopen(&v))
			return 1;
		printf("reconnected\n");
		fflush(stdout);
		again = false;
	}
	if (o == BROKEN)
		printf("broken\n");
	rnic_close(v.ctx);
	return o == BROKEN;
}
