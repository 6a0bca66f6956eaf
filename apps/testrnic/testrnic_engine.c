/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines: making them, running them on an lcore, taking them down. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "pmd_glue.h"
#include "rnic.h"
#include "testrnic_engine.h"
#include "worker.h"

#define RING_SIZE 2048
#define POOL_SIZE 16383
#define POOL_CACHE 256
#define ROOM (4096 + 256 + RTE_PKTMBUF_HEADROOM) /* a path MTU of 4096 with all headers */
#define CONTROL_MS 100 /* how soon the control thread sees what is asked of it, or its end */

int
engine_ring_pair(const char *name, uint16_t ethdev[2])
{
	struct rte_ring *r[2];
	char text[RTE_RING_NAMESIZE];

	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "%s_%d", name, i);
		r[i] = rte_ring_create(text, RING_SIZE, SOCKET_ID_ANY,
				       RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (r[i] == NULL)
			return -rte_errno;
	}
	for (int i = 0; i < 2; i++) {
		int port;

		snprintf(text, sizeof(text), "%s_%d", name, i);
		port = rte_eth_from_rings(text, &r[i], 1, &r[!i], 1, 0);
		if (port < 0)
			return -EIO;
		ethdev[i] = (uint16_t)port;
	}
	return 0;
}

static void *
control_main(void *arg)
{
	struct engine *e = arg;

	while (!atomic_load_explicit(&e->control_stop, memory_order_acquire)) {
		worker_ctl_poll(e->dev, CONTROL_MS);
		pthread_mutex_lock(&e->lock);
		if (e->ask) {
			e->ask(e, e->ask_arg);
			e->ask = NULL;
			pthread_cond_signal(&e->answered);
		}
		pthread_mutex_unlock(&e->lock);
	}
	return NULL;
}

void
engine_ask(struct engine *e, void (*fn)(struct engine *e, void *arg), void *arg)
{
	pthread_mutex_lock(&e->lock);
	e->ask = fn;
	e->ask_arg = arg;
	while (e->ask)
		pthread_cond_wait(&e->answered, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

static int
make_pools(struct engine *e)
{
	char text[RTE_MEMPOOL_NAMESIZE];

	snprintf(text, sizeof(text), "%s_rx", e->cfg.name);
	e->rx_pool = rte_pktmbuf_pool_create(text, POOL_SIZE, POOL_CACHE, 0, ROOM, SOCKET_ID_ANY);
	snprintf(text, sizeof(text), "%s_tx", e->cfg.name);
	e->tx_pool = rte_pktmbuf_pool_create(text, POOL_SIZE, POOL_CACHE, 0, ROOM, SOCKET_ID_ANY);
	return e->rx_pool && e->tx_pool ? 0 : -ENOMEM;
}

static int
make_device(struct engine *e, const char **why)
{
	struct worker_config wc = {
		.name = e->cfg.name, .num_workers = 1, .ports = &e->port, .num_ports = 1,
		.rx_pool = e->rx_pool, .tx_pool = e->tx_pool, .huge_arenas = e->cfg.huge,
		.quota_arena_bytes = 4ull << 30, .quota_mr_bytes = 4ull << 30,
		.seed = e->cfg.seed,
	};
	int rc;

	e->dev = worker_device_create(&wc, why);
	if (e->dev == NULL)
		return -EIO;
	e->worker = worker_get(e->dev, 0);
	rc = worker_port_addr_add(e->dev, 0, e->cfg.address, 0);
	if (rc < 0)
		*why = "the address was refused";
	return rc;
}

/** A client of this process: the near end of its socket. */
static int
attach_client(struct engine *e)
{
	int fd[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return -errno;
	rc = worker_ctl_attach(e->dev, fd[1]);
	if (rc < 0) {
		close(fd[0]);
		close(fd[1]);
		return rc;
	}
	return fd[0];
}

/** What is the control thread's business is done before that thread runs. */
static int
start_control(struct engine *e, const char **why)
{
	int rc = 0;

	if (e->cfg.client_fd > 0)
		rc = worker_ctl_attach(e->dev, e->cfg.client_fd);
	if (rc == 0 && e->cfg.listen)
		rc = worker_ctl_listen(e->dev, e->cfg.listen);
	if (rc < 0) {
		*why = "the path to listen at cannot be used";
		return rc;
	}
	rc = pthread_create(&e->control, NULL, control_main, e);
	e->control_runs = rc == 0;
	return -rc;
}

static int
join_client(struct engine *e, const char **why)
{
	const struct rnic_open_attr attr = { .flags = RNIC_THREAD_UNSAFE };
	int fd, rc;

	fd = attach_client(e);
	if (fd < 0)
		return fd;
	rc = start_control(e, why);
	if (rc == 0) {
		*why = "the client could not open the device";
		engine_run(e, NULL, NULL);
		rc = rnic_open_fd(fd, &attr, &e->ctx);
		engine_halt(e);
	}
	if (rc < 0)
		close(fd);
	return rc;
}

int
engine_open(struct engine *e, const struct engine_config *cfg, const char **why)
{
	struct pmd_port_config pc = { .ethdev = cfg->ethdev, .num_queues = 1, .mtu = cfg->mtu };
	int rc;

	memset(e, 0, sizeof(*e));
	e->cfg = *cfg;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->answered, NULL);
	*why = "not enough memory: reserve huge pages, or give more with -m";
	rc = make_pools(e);
	if (rc == 0) {
		pc.rx_pool = e->rx_pool;
		rc = pmd_port_open(&pc, &e->port, why);
	}
	if (rc == 0)
		rc = make_device(e, why);
	if (rc == 0)
		rc = join_client(e, why);
	if (rc < 0)
		engine_close(e);
	return rc;
}

void
engine_close(struct engine *e)
{
	if (e->running)
		engine_halt(e);
	if (e->ctx) {
		engine_run(e, NULL, NULL); /* the worker lets go of what the client leaves */
		rnic_close(e->ctx);
		engine_halt(e);
	}
	if (e->control_runs) {
		atomic_store_explicit(&e->control_stop, true, memory_order_release);
		pthread_join(e->control, NULL);
	}
	if (e->dev)
		worker_device_destroy(e->dev);
	if (e->port)
		pmd_port_close(e->port);
	rte_mempool_free(e->rx_pool);
	rte_mempool_free(e->tx_pool);
	memset(e, 0, sizeof(*e));
}

static int
engine_main(void *arg)
{
	struct engine *e = arg;
	uint64_t begin = rte_rdtsc(), last = begin, busy = 0;

	while (!atomic_load_explicit(&e->stop, memory_order_relaxed)) {
		unsigned int work = e->step ? e->step(e->step_arg) : 0;
		uint64_t now;

		work += worker_poll(e->worker);
		now = rte_rdtsc();
		if (work > 0)
			busy += now - last;
		last = now;
	}
	e->busy = busy;
	e->total = last - begin;
	return 0;
}

void
engine_run(struct engine *e, unsigned int (*step)(void *arg), void *arg)
{
	e->step = step;
	e->step_arg = arg;
	atomic_store(&e->stop, false);
	e->running = rte_eal_remote_launch(engine_main, e, e->cfg.lcore) == 0;
}

int
engine_wait_lcore(unsigned int lcore)
{
	while (rte_eal_get_lcore_state(lcore) == RUNNING)
		nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	return rte_eal_wait_lcore(lcore);
}

void
engine_halt(struct engine *e)
{
	atomic_store_explicit(&e->stop, true, memory_order_relaxed);
	engine_wait_lcore(e->cfg.lcore);
	e->running = false;
}

double
engine_busy(const struct engine *e)
{
	return e->total ? (double)e->busy / (double)e->total : 0;
}
