/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of one process, moved by others: the owner registers it and exports its protection
 * domain and region; each worker, a process of the same user with a context of its own, imports
 * both and copies a part of it by RDMA. No worker maps the memory. When the owner ends the
 * region, the workers' accesses fail, and nothing else.
 */
#include <getopt.h>
#include <string.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ex.h"

#define PART 65536 /* bytes that a worker copies */
#define MAX_WORKERS 64

/* What the owner tells a worker. */
struct job {
	struct rnic_token pd, mr;
	uint64_t from, to; /* offsets */
};

struct worker {
	pid_t pid;
	int jobs;    /* to it */
	int reports; /* from it: a byte for each job */
};

static void
get(int fd, void *to, size_t len)
{
	if (read(fd, to, len) != (ssize_t)len)
		ex_fail("the other process has gone");
}

static void
put(int fd, const void *from, size_t len)
{
	if (write(fd, from, len) != (ssize_t)len)
		ex_fail("the other process has gone");
}

/* ---- workers ---------- */

static struct rnic_qp *
own_peer(struct ex_device *d, struct rnic_cq *cq)
{
	struct rnic_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = RNIC_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ex_address own;
	struct rnic_qp *qp;

	ex_check(rnic_create_qp(d->pd, &init, &qp), "queue pair");
	ex_init_qp(d, qp, RNIC_ACCESS_REMOTE_WRITE);
	own = ex_own_address(d, qp);
	ex_connect_qp(d, qp, &ex_default_path, &own, &own);
	return qp;
}

static uint32_t
copy(struct rnic_qp *qp, const struct rnic_mr *mr, const struct job *j)
{
	struct rnic_sge sge = { .addr = mr->iova + j->from, .length = PART, .lkey = mr->lkey };
	struct rnic_send_wr wr = {
		.opcode = RNIC_WR_RDMA_WRITE,
		.send_flags = RNIC_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = mr->iova + j->to, .rkey = mr->rkey },
	};
	struct rnic_wc wc;

	ex_check(rnic_post_send(qp, &wr, NULL), "request");
	while (ex_wait(qp->send_cq, 1, &wc, -1) == 0)
		;
	return wc.status;
}

static void
work(const char *socket, int n, int jobs, int reports)
{
	struct rnic_cq_attr ca = { .cqe = 4 };
	struct ex_device d;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	struct rnic_mr *mr;
	struct job j;
	uint32_t status;

	get(jobs, &j, sizeof(j));
	ex_open(&d, socket, NULL, 1, -1);
	ex_check(rnic_dealloc_pd(d.pd), "protection domain");
	ex_check(rnic_import_pd(d.ctx, &j.pd, &d.pd), "import of the domain");
	ex_check(rnic_import_mr(d.ctx, &j.mr, &mr), "import of the region");
	ex_check(rnic_create_channel(d.ctx, &ca.channel), "completion channel");
	ex_check(rnic_create_cq(d.ctx, &ca, &cq), "completion queue");
	qp = own_peer(&d, cq);
	do {
		status = copy(qp, mr, &j);
		printf("worker %d: %llu to %llu: %s\n", n, (unsigned long long)j.from,
		       (unsigned long long)j.to, rnic_wc_status_str(status));
		fflush(stdout);
		put(reports, &(uint8_t){ (uint8_t)status }, 1);
	} while (read(jobs, &j, sizeof(j)) == sizeof(j));
	rnic_dereg_mr(mr);
	rnic_destroy_qp(qp);
	rnic_destroy_cq(cq);
	rnic_destroy_channel(ca.channel);
	ex_close(&d);
}

/* Before anything is opened: a context is of no use in a child of its process. */
static void
hire(struct worker *w, const char *socket, int n)
{
	int jobs[2], reports[2];

	if (pipe(jobs) || pipe(reports))
		ex_fail("no pipe");
	w->pid = fork();
	if (w->pid < 0)
		ex_fail("no process");
	if (w->pid == 0) {
		close(jobs[1]);
		close(reports[0]);
		work(socket, n, jobs[0], reports[1]);
		exit(0);
	}
	close(jobs[0]);
	close(reports[1]);
	w->jobs = jobs[1];
	w->reports = reports[0];
}

/* ---- the owner ---------- */

/** Each worker copies the part before its own. @return how many succeeded. */
static int
round_of(struct worker *w, int n, struct job *j)
{
	int good = 0;

	for (int i = 0; i < n; i++) {
		uint8_t status;

		j->from = (uint64_t)i * PART;
		j->to = j->from + PART;
		put(w[i].jobs, j, sizeof(*j));
		get(w[i].reports, &status, 1);
		good += status == RNIC_WC_SUCCESS;
	}
	return good;
}

static int
own(struct worker *w, int n, const char *socket)
{
	size_t len = (size_t)(n + 1) * PART;
	struct ex_device d;
	struct rnic_mr *mr;
	struct job j;
	uint8_t *mem;
	int good;

	ex_open(&d, socket, NULL, 1, -1);
	mr = ex_memory(&d, len, RNIC_ACCESS_REMOTE_WRITE);
	mem = mr->addr;
	ex_pattern(mem, PART, 1);
	ex_check(rnic_export_pd(d.pd, &j.pd), "export of the domain");
	ex_check(rnic_export_mr(mr, &j.mr), "export of the region");
	good = round_of(w, n, &j);
	for (int i = 1; i <= n; i++)
		if (ex_pattern_check(mem + (size_t)i * PART, PART, 1) != PART)
			ex_fail("part %d is wrong", i);
	if (good != n)
		ex_fail("%d of %d workers failed", n - good, n);
	printf("owner: %d parts of %d bytes, all right\n", n, PART);
	ex_check(rnic_dereg_mr(mr), "end of the region");
	good = round_of(w, n, &j);
	if (good)
		ex_fail("%d workers use a region that has ended", good);
	printf("owner: the region has ended, for all\n");
	rnic_free(d.ctx, mem);
	ex_close(&d);
	return 0;
}

static int
usage(bool asked)
{
	fprintf(asked ? stdout : stderr, "usage: rnic_share [-S socket] [-n workers]\n");
	return asked ? 0 : 2;
}

int
main(int argc, char **argv)
{
	struct worker w[MAX_WORKERS];
	const char *socket = NULL;
	int n = 2, status, bad = 0, opt;

	ex_program = "rnic_share";
	while ((opt = getopt(argc, argv, "S:n:h")) != -1) {
		if (opt == 'S')
			socket = optarg;
		else if (opt == 'n')
			n = (int)ex_number("-n", optarg, 1, MAX_WORKERS);
		else
			return usage(opt == 'h');
	}
	setlinebuf(stdout);
	for (int i = 0; i < n; i++)
		hire(&w[i], socket, i + 1);
	own(w, n, socket);
	for (int i = 0; i < n; i++)
		close(w[i].jobs);
	for (int i = 0; i < n; i++)
		bad |= waitpid(w[i].pid, &status, 0) != w[i].pid || status != 0;
	return bad;
}
