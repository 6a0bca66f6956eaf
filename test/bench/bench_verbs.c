/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What verbs costs a message, hot: taking a request, gathering, placing, completing, and all of a
 * send's part together. The client's posting is in the figures that say so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_util.h"
#include "ring_wq.h"
#include "verbs.h"

#define SLOTS 256u
#define CQES 512u
#define MEM (1u << 16)

static struct verbs_worker w;
static struct verbs_qp qp;
static struct ring_qp_client client;
static struct ring_qp_daemon daemon_words;
static struct ring_cq_client cq_client;
static struct ring_cq_daemon cq_daemon;
static struct verbs_cq *cq;
static _Alignas(64) struct ring_wqe sq[SLOTS];
static _Alignas(64) struct ring_rwqe rq[SLOTS];
static _Alignas(64) uint8_t mem[MEM], packet[8192];
static uint32_t key;

static void
notify(void *ctx, struct verbs_cq *c)
{
	(void)ctx;
	(void)c;
}

static void
event(void *ctx, enum verbs_event e, void *obj)
{
	(void)ctx;
	(void)obj;
	fprintf(stderr, "event %d\n", e);
	exit(1);
}

static void
setup(void)
{
	struct verbs_host host = {.notify = notify, .event = event};
	struct mr_seg seg = {0, MEM, MR_SEG_DIRECT, mem, 0};
	struct mr_desc d = {.type = MR_TYPE_REGION, .pd = 1, .access = MR_LOCAL_WRITE,
			    .iova = (uintptr_t)mem, .length = MEM, .segs = &seg, .num_segs = 1};
	struct mr_table *mrs = mr_table_create(1024);

	cq = aligned_alloc(64, verbs_cq_size(1));
	if (!mrs || !cq || mr_register(mrs, &d, &key) ||
	    verbs_worker_init(&w, 0, mrs, &host, 1024, 16, 16))
		exit(1);
	memset(cq, 0, verbs_cq_size(1));
	cq->num_workers = 1;
	cq->daemon = &cq_daemon;
	cq->client = &cq_client;
	verbs_cq_init_ends(cq);
	cq->end[0].prod.ring = aligned_alloc(64, CQES * sizeof(struct ring_cqe));
	cq->end[0].prod.cons = &cq_client.cons[0];
	cq->end[0].prod.mask = CQES - 1;
	memset(cq->end[0].prod.ring, 0, CQES * sizeof(struct ring_cqe));
	qp = (struct verbs_qp){.qpn = 5, .type = VERBS_QPT_RC, .state = RING_QPS_RTS, .pd = 1,
			       .share = &w.everyone,
			       .send_cq = cq, .recv_cq = cq, .daemon = &daemon_words,
			       .sq = {(uint8_t *)sq, &client.sq_tail, SLOTS - 1, 0, 0},
			       .rq = {(uint8_t *)rq, &client.rq_tail, SLOTS - 1, 0, 0},
			       .max_inline = 128, .max_send_sge = 4, .max_recv_sge = 3};
	for (uint32_t i = 0; i < SLOTS; i++) {
		sq[i] = (struct ring_wqe){.opcode = RING_WR_RDMA_WRITE, .flags = RING_WR_SIGNALED,
					  .num_slots = 1, .num_sge = 1, .remote_addr = 4096,
					  .sge[0] = {(uintptr_t)mem + i * 64, 64, key}};
		rq[i] = (struct ring_rwqe){.num_slots = 1, .num_sge = 1,
					   .sge[0] = {(uintptr_t)mem + i * 64, 64, key}};
	}
}

/** Post a burst of 32 without touching its slots. */
static void
post(_Atomic uint32_t *tail)
{
	atomic_store_explicit(tail, atomic_load_explicit(tail, memory_order_relaxed) + 32,
			      memory_order_release);
}

/** The consumer keeps up without costing anything. */
static void
consume(void)
{
	atomic_store_explicit(&cq_client.cons[0], cq->end[0].prod.tail, memory_order_release);
}

static void
burst_fetch(struct verbs_wqe **q)
{
	post(&client.sq_tail);
	for (int i = 0; i < 32; i++)
		if (verbs_sq_fetch(&w, &qp, &q[i]) != 1)
			exit(1);
}

static void
fetch_and_drop(void)
{
	struct verbs_wqe *q[32];

	burst_fetch(q);
	verbs_qp_drop(&w, &qp);
}

static void
fetch_and_complete(void)
{
	struct verbs_wqe *q[32];

	burst_fetch(q);
	for (int i = 0; i < 32; i++)
		verbs_complete_send(&w, &qp, q[i], WC_SUCCESS);
	verbs_cq_burst_end(&w);
	consume();
}

static void
send_all(void)
{
	struct verbs_wqe *q[32];
	enum wc_status why;
	uint32_t crc = 1;

	burst_fetch(q);
	for (int i = 0; i < 32; i++)
		verbs_gather(&w, &qp, q[i], 0, 64, packet + i * 64, &crc, &why);
	for (int i = 0; i < 32; i++)
		verbs_complete_send(&w, &qp, q[i], WC_SUCCESS);
	verbs_cq_burst_end(&w);
	consume();
}

static void
recv_all(void)
{
	struct verbs_recv_done d = {WC_SUCCESS, RING_WC_RECV, 0, 64, 0, 0};
	struct verbs_rwqe r;
	enum wc_status why;

	post(&client.rq_tail);
	for (int i = 0; i < 32; i++) {
		if (verbs_rq_fetch(&w, &qp, &r) != 1 ||
		    verbs_scatter(&w, &qp, verbs_rwqe_sgl(&r), 0, packet, 64, &why) != VERBS_DONE)
			exit(1);
		verbs_complete_recv(&w, &qp, &r, &d);
	}
	verbs_cq_burst_end(&w);
	consume();
}

int
main(void)
{
	static const uint32_t sizes[] = {64, 256, 1024, 4096};
	struct verbs_wqe wqe = {.num_sge = 1, .length = MEM, .pd = 1};
	double fetch, both, all, recv, gather, plain, scatter;
	enum wc_status why;
	uint32_t crc = 1;

	setup();
	wqe.sge[0] = (struct verbs_sge){(uintptr_t)mem, MEM, key};
	BENCH(fetch, fetch_and_drop());
	BENCH(both, fetch_and_complete());
	BENCH(all, send_all());
	BENCH(recv, recv_all());
	printf("64 B, bursts of 32, ns a message: fetch %.1f, fetch+complete %.1f, "
	       "fetch+gather+complete %.1f, receive %.1f\n",
	       fetch / 32, both / 32, all / 32, recv / 32);
	for (unsigned int i = 0; i < 4; i++) {
		struct verbs_sgl sgl = {wqe.sge, 1, 1};

		BENCH(gather, verbs_gather(&w, &qp, &wqe, 64, sizes[i], packet, &crc, &why));
		BENCH(plain, verbs_gather(&w, &qp, &wqe, 64, sizes[i], packet, NULL, &why));
		BENCH(scatter, verbs_scatter(&w, &qp, sgl, 64, packet, sizes[i], &why));
		printf("%4u B, ns: gather with CRC %.1f, without %.1f, scatter %.1f\n", sizes[i],
		       gather, plain, scatter);
	}
	return 0;
}
