/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One worker, one QP with its rings, one CQ with its client's end, some memory that is mapped and
 * some that only the fake host's copier reaches. Slots are allocated to the byte, so that ASan
 * sees a step beside them.
 */
#ifndef VERBS_FIXTURE_H
#define VERBS_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "ring_arm.h"
#include "ring_wq.h"
#include "unit.h"
#include "verbs.h"

#define FX_PD 7u
#define FX_QPN 0x123456u
#define FX_SLOTS 16u
#define FX_CQES 64u
#define FX_MEM 16384u
#define FX_ALL (MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC)
#define FX_MAX 64

struct fx {
	struct verbs_worker w;
	struct verbs_qp qp;
	struct ring_qp_client client;
	struct ring_qp_daemon daemon;
	uint8_t *sq, *rq;
	uint32_t sq_tail, rq_tail; /* what the client has prepared */
	struct verbs_cq *cq;
	struct ring_cq_client cq_client;
	struct ring_cq_daemon cq_daemon;
	struct ring_cqe *cqes;
	struct ring_cq_cons cons;
	struct verbs_io *io[FX_MAX];
	unsigned int num_io, num_notify, num_event;
	enum verbs_event event[FX_MAX];
	void *event_obj[FX_MAX];
	uint8_t *mem;	/* mapped */
	uint8_t *far;	/* the client's process */
	uint32_t key;	/* all of mem, iova = FX_IOVA */
	uint32_t far_key; /* all of far, the same iova */
	uint32_t mix_key; /* pages far, mem, far, mem of 4096 bytes, the same iova */
};
#define FX_IOVA 0x10000u

static inline void
fx_notify(void *ctx, struct verbs_cq *cq)
{
	struct fx *f = ctx;

	ck_assert_ptr_eq(cq, f->cq);
	f->num_notify++;
}

static inline void
fx_event(void *ctx, enum verbs_event event, void *obj)
{
	struct fx *f = ctx;

	ck_assert_uint_lt(f->num_event, FX_MAX);
	f->event_obj[f->num_event] = obj;
	f->event[f->num_event++] = event;
}

static inline void
fx_io_submit(void *ctx, struct verbs_io *io)
{
	struct fx *f = ctx;

	ck_assert_uint_lt(f->num_io, FX_MAX);
	f->io[f->num_io++] = io;
}

/** What a copier does. */
static inline void
fx_io_copy(struct verbs_io *io)
{
	for (unsigned int i = 0; i < io->num; i++) {
		uint8_t *remote = (uint8_t *)(uintptr_t)io->piece[i].remote;
		uint64_t *word = (uint64_t *)(void *)remote;

		switch (io->op) {
		case VERBS_IO_READ:
			memcpy(io->piece[i].local, remote, io->piece[i].len);
			break;
		case VERBS_IO_WRITE:
			memcpy(remote, io->piece[i].local, io->piece[i].len);
			break;
		case VERBS_IO_CMP_SWAP:
			io->original = *word;
			if (*word == io->compare_add)
				*word = io->swap;
			break;
		case VERBS_IO_FETCH_ADD:
			io->original = *word;
			*word += io->compare_add;
			break;
		}
	}
}

static inline uint32_t
fx_register(struct fx *f, const struct mr_seg *segs, uint32_t num, uint64_t length, uint32_t access)
{
	struct mr_desc d = {.type = MR_TYPE_REGION, .pd = FX_PD, .access = access, .iova = FX_IOVA,
			    .length = length, .segs = segs, .num_segs = num, .lane = f};
	uint32_t key = 0;

	ck_assert_int_eq(mr_register(f->w.mrs, &d, &key), 0);
	return key;
}

static inline void
fx_memory(struct fx *f)
{
	struct mr_seg mem = {0, FX_MEM, MR_SEG_DIRECT, f->mem, 0};
	struct mr_seg far = {0, FX_MEM, MR_SEG_FOREIGN, NULL, (uintptr_t)f->far};
	struct mr_seg mix[4];

	for (unsigned int i = 0; i < 4; i++)
		mix[i] = (struct mr_seg){i * 4096, 4096,
					 i % 2 ? MR_SEG_DIRECT : MR_SEG_FOREIGN,
					 i % 2 ? f->mem + i * 4096 : NULL,
					 i % 2 ? 0 : (uintptr_t)f->far + i * 4096};
	f->key = fx_register(f, &mem, 1, FX_MEM, FX_ALL);
	f->far_key = fx_register(f, &far, 1, FX_MEM, FX_ALL);
	f->mix_key = fx_register(f, mix, 4, FX_MEM, FX_ALL);
}

static inline void *
fx_aligned(size_t n)
{
	void *p = NULL;

	ck_assert_int_eq(posix_memalign(&p, RING_LINE, n), 0);
	memset(p, 0, n);
	return p;
}

static inline void
fx_cq(struct fx *f)
{
	f->cq = fx_aligned(verbs_cq_size(1));
	f->cqes = fx_aligned(FX_CQES * sizeof(struct ring_cqe));
	f->cq->num_workers = 1;
	f->cq->daemon = &f->cq_daemon;
	f->cq->client = &f->cq_client;
	verbs_cq_init_ends(f->cq);
	f->cq->end[0].prod.ring = f->cqes;
	f->cq->end[0].prod.cons = &f->cq_client.cons[0];
	f->cq->end[0].prod.mask = FX_CQES - 1;
	f->cons.ring = f->cqes;
	f->cons.shared = &f->cq_client.cons[0];
	f->cons.mask = FX_CQES - 1;
}

/** A pool of which one context can have n. */
static inline uint32_t
fx_pool(uint32_t n)
{
	return n ? 2 * n - 1 : 0;
}

/** Shadows, blocks and ios that the QP can have, and where the indices of the queues start. */
static inline struct fx *
fx_new(uint32_t shadows, uint32_t blocks, uint32_t ios, uint32_t start)
{
	struct fx *f = fx_aligned(sizeof(*f));
	struct verbs_host host = {fx_notify, fx_event, fx_io_submit, f};
	struct mr_table *mrs = mr_table_create(64);

	ck_assert_ptr_nonnull(mrs);
	ck_assert_int_eq(verbs_worker_init(&f->w, 0, mrs, &host, fx_pool(shadows),
					   fx_pool(blocks), fx_pool(ios)), 0);
	f->w.now = 1000;
	f->sq = fx_aligned(FX_SLOTS * RING_SLOT_SIZE);
	f->rq = fx_aligned(FX_SLOTS * RING_SLOT_SIZE);
	f->mem = fx_aligned(FX_MEM);
	f->far = fx_aligned(FX_MEM);
	fx_memory(f);
	fx_cq(f);
	f->sq_tail = f->rq_tail = start;
	f->client.sq_tail = f->client.rq_tail = start;
	f->qp = (struct verbs_qp){
		.qpn = FX_QPN, .type = VERBS_QPT_RC, .state = RING_QPS_RTS, .pd = FX_PD,
		.send_cq = f->cq, .recv_cq = f->cq, .daemon = &f->daemon,
		.sq = {f->sq, &f->client.sq_tail, FX_SLOTS - 1, start, start},
		.rq = {f->rq, &f->client.rq_tail, FX_SLOTS - 1, start, start},
		.max_inline = 400, .max_send_sge = RING_MAX_SGE, .max_recv_sge = RING_MAX_SGE,
		.rq_counted = start, .share = &f->w.everyone,
	};
	return f;
}

/** Everything must have come back to the pools, or the test says so before. */
static inline void
fx_free(struct fx *f)
{
	ck_assert_uint_eq(f->w.shadows_used, 0);
	ck_assert_uint_eq(f->w.blocks_used, 0);
	ck_assert_uint_eq(f->w.ios_used, 0);
	ck_assert_ptr_null(f->qp.wqe_head);
	mr_table_free(f->w.mrs);
	verbs_worker_fini(&f->w);
	free(f->sq);
	free(f->rq);
	free(f->mem);
	free(f->far);
	free(f->cq);
	free(f->cqes);
	free(f);
}

/* ---- the client ---------- */

static inline uint8_t *
fx_slot(uint8_t *base, uint32_t index)
{
	return base + (index & (FX_SLOTS - 1)) * RING_SLOT_SIZE;
}

/** Write a request of several slots into a ring at its tail, wrapping; publish it. */
static inline void
fx_put(uint8_t *base, uint32_t *tail, _Atomic uint32_t *shared, const void *req, uint32_t slots)
{
	for (uint32_t i = 0; i < slots; i++)
		memcpy(fx_slot(base, *tail + i), (const uint8_t *)req + i * RING_SLOT_SIZE,
		       RING_SLOT_SIZE);
	*tail += slots;
	atomic_store_explicit(shared, *tail, memory_order_release);
}

static inline void
fx_post(struct fx *f, const void *req, uint32_t slots)
{
	fx_put(f->sq, &f->sq_tail, &f->client.sq_tail, req, slots);
}

static inline void
fx_post_recv(struct fx *f, const void *req, uint32_t slots)
{
	fx_put(f->rq, &f->rq_tail, &f->client.rq_tail, req, slots);
}

/** A send request of these elements in a buffer of RING_MAX_WQE_SLOTS slots. */
static inline struct ring_wqe *
fx_wqe(void *buf, uint8_t opcode, const struct ring_sge *sge, uint8_t num)
{
	struct ring_wqe *r = buf;
	uint8_t *tail = (uint8_t *)buf + RING_SLOT_SIZE;

	memset(buf, 0, RING_MAX_WQE_SLOTS * RING_SLOT_SIZE);
	r->opcode = opcode;
	r->flags = RING_WR_SIGNALED;
	r->num_sge = num;
	r->num_slots = (uint8_t)ring_wqe_slots_sge(num);
	r->imm = 0x11223344;
	r->rkey = 0x55667788;
	r->remote_addr = 0x1122334455667788;
	for (uint32_t i = 0; i < num; i++) {
		if (i < RING_WQE_SGES)
			r->sge[i] = sge[i];
		else
			memcpy(tail + (i - RING_WQE_SGES) * sizeof(*sge), &sge[i], sizeof(*sge));
	}
	return r;
}

static inline struct ring_rwqe *
fx_rwqe(void *buf, const struct ring_sge *sge, uint8_t num)
{
	struct ring_rwqe *r = buf;
	uint8_t *tail = (uint8_t *)buf + RING_SLOT_SIZE;

	memset(buf, 0, RING_MAX_WQE_SLOTS * RING_SLOT_SIZE);
	r->num_sge = num;
	r->num_slots = (uint8_t)ring_rwqe_slots(num);
	for (uint32_t i = 0; i < num; i++) {
		if (i < RING_RWQE_SGES)
			r->sge[i] = sge[i];
		else
			memcpy(tail + (i - RING_RWQE_SGES) * sizeof(*sge), &sge[i], sizeof(*sge));
	}
	return r;
}

/** The next completion, copied; false: none. */
static inline bool
fx_poll(struct fx *f, struct ring_cqe *out)
{
	const struct ring_cqe *e = ring_cq_peek(&f->cons);

	if (e == NULL)
		return false;
	memcpy(out, e, sizeof(*out));
	ring_cq_advance(&f->cons);
	ring_cq_release(&f->cons);
	return true;
}

/** xorshift64*: the same on every machine. */
static inline uint64_t
fx_random(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 2685821657736338717ull;
}

static inline void
fx_pattern(uint8_t *p, size_t n, uint8_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8) * 13);
}

#endif /* VERBS_FIXTURE_H */
