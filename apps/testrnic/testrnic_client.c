/* SPDX-License-Identifier: BSD-3-Clause */
/* The forked application, and the orders that it gets. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "testrnic_client.h"

#define MEMORY (4u << 20)
#define GIVE_UP_SECONDS 10

struct order {
	struct load_spec spec;
	uint64_t hz, warm, window;
	int cpu;
};

struct answer {
	struct load_result result;
	int rc;
};

/** What the child has opened: once, at its first order. */
struct app {
	struct rnic_context *ctx;
	struct load_end from, to;
	struct load *load;
};

static int
app_open(struct app *a, int fd, const struct load_spec *spec)
{
	const struct rnic_open_attr attr = { .flags = RNIC_THREAD_UNSAFE };
	int rc = a->ctx ? 0 : rnic_open_fd(fd, &attr, &a->ctx);

	if (rc == 0 && a->from.buf == NULL)
		rc = load_end_open(&a->from, a->ctx, MEMORY);
	if (rc == 0 && a->to.buf == NULL)
		rc = load_end_open(&a->to, a->ctx, MEMORY);
	if (rc == 0 && a->load == NULL)
		rc = load_open(spec, &a->from, &a->to, &a->load);
	return rc;
}

static int
pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

static void
obey(struct app *a, int fd, const struct order *o, struct answer *answer)
{
	uint64_t until;

	pin(o->cpu);
	answer->rc = app_open(a, fd, &o->spec);
	if (answer->rc < 0)
		return;
	load_start(a->load, o->warm, o->window);
	until = rte_rdtsc() + o->warm + o->window + GIVE_UP_SECONDS * o->hz;
	while (!load_finished(a->load) && rte_rdtsc() < until) {
		load_send_step(a->load);
		load_recv_step(a->load);
	}
	if (!load_finished(a->load))
		answer->rc = -ETIMEDOUT;
	load_result(a->load, &answer->result);
}

static void
child(int orders, int fd)
{
	struct app app = { 0 };
	struct order o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* the parent's business */
	while (recv(orders, &o, sizeof(o), 0) == sizeof(o)) {
		struct answer answer = { 0 };

		obey(&app, fd, &o, &answer);
		if (send(orders, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			break;
	}
	if (app.ctx)
		rnic_close(app.ctx);
	_exit(0);
}

int
client_spawn(struct client *c)
{
	int orders[2], control[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders) != 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) {
		close(orders[0]);
		close(orders[1]);
		return -errno;
	}
	c->pid = fork();
	if (c->pid == 0) {
		close(orders[0]);
		close(control[0]);
		child(orders[1], control[1]);
	}
	close(orders[1]);
	close(control[1]);
	c->orders = orders[0];
	c->daemon_fd = control[0];
	return c->pid < 0 ? -EAGAIN : 0;
}

int
client_run(struct client *c, const struct load_spec *spec, int cpu, uint64_t hz, uint64_t warm,
	   uint64_t window, struct load_result *result)
{
	struct order o = { *spec, hz, warm, window, cpu };
	struct answer answer;

	if (send(c->orders, &o, sizeof(o), MSG_NOSIGNAL) != sizeof(o) ||
	    recv(c->orders, &answer, sizeof(answer), 0) != sizeof(answer))
		return -EPIPE;
	*result = answer.result;
	return answer.rc;
}

void
client_end(struct client *c)
{
	if (c->pid <= 0)
		return;
	close(c->orders);
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
}
