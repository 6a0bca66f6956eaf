/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole daemon with threads of its own: two workers that sleep and wake, the control thread,
 * helper and copiers, and four clients that make, use and destroy objects at the same time. What
 * it finds are races, under TSan (B089).
 */
#include <pthread.h>

#include "ctl_objects.h"

#define CLIENTS 4
#define ROUNDS 6
#define WRITES 8
#define RW (RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ)
#define LEN 4096

static _Atomic bool stop;
static _Atomic uint32_t good; /* rounds that ended well */

static void *
control(void *arg)
{
	while (!atomic_load(&stop))
		worker_ctl_poll(fx_dev, 1);
	return arg;
}

static void *
work(void *arg)
{
	worker_main(arg);
	return NULL;
}

static void
one_round(bool private)
{
	uint8_t *from = make_mem(LEN), *to = private ? calloc(1, LEN) : make_mem(LEN);
	struct ring_wqe w = {.opcode = RING_WR_RDMA_WRITE, .flags = RING_WR_SIGNALED,
		.num_slots = 1, .num_sge = 1};
	struct ring_ctrl_reg_mr_rep a, b;
	struct pair p;

	make_pair(&p);
	connect_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, from, LEN, RW, &a), 0);
	ck_assert_int_eq(reg_mr(p.pd, to, LEN, RW, &b), 0);
	memset(from, 0x5a, LEN);
	w.rkey = b.rkey;
	w.remote_addr = (uintptr_t)to;
	w.sge[0] = (struct ring_sge){.addr = (uintptr_t)from, .length = LEN, .lkey = a.lkey};
	for (uint32_t i = 0; i < WRITES; i++) {
		post_send(&p, 0, i, &w);
		ck_assert_uint_eq(wait_cqes(&p, i + 1)->qpn_status >> 24, 0);
	}
	if (private)
		ck_assert_uint_eq(to[LEN - 1], 0x5a); /* the copier is done with it */
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p.qpn[i]), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, a.lkey), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, b.lkey), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_CQ, p.cqn), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, p.pd), 0);
	if (private)
		free(to);
	atomic_fetch_add(&good, 1);
}

static void *
client(void *arg)
{
	const struct fx_client *mine = arg;

	memcpy(&cl, mine, sizeof(cl));
	ck_assert_int_eq(fx_hello(&cl), 0);
	for (int i = 0; i < ROUNDS; i++)
		one_round(i % 2 != 0);
	fx_close(&cl);
	return NULL;
}

START_TEST(clients_at_the_same_time)
{
	static struct fx_client c[CLIENTS];
	pthread_t ctl, worker[FX_WORKERS], t[CLIENTS];

	for (int i = 0; i < CLIENTS; i++)
		fx_connect(&c[i]);
	fx_threads = true;
	pthread_create(&ctl, NULL, control, NULL);
	for (uint32_t i = 0; i < FX_WORKERS; i++)
		pthread_create(&worker[i], NULL, work, worker_get(fx_dev, i));
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&t[i], NULL, client, &c[i]);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(t[i], NULL);
	for (uint32_t i = 0; i < FX_WORKERS; i++)
		worker_stop(worker_get(fx_dev, i));
	for (uint32_t i = 0; i < FX_WORKERS; i++)
		pthread_join(worker[i], NULL);
	atomic_store(&stop, true);
	pthread_join(ctl, NULL);
	fx_threads = false;
	ck_assert_uint_eq(atomic_load(&good), CLIENTS * ROUNDS);
}
END_TEST

static void
begin(void)
{
	struct worker_config cfg = fx_config();

	cfg.idle_us = 50;
	fx_start(&cfg);
	cl.fd = -1;
}

FX_MAIN("ctl_threads", begin, teardown, clients_at_the_same_time)
