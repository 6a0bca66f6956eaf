/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A daemon for tests of librnic: a thread answers the control protocol at the other end of a
 * socket pair, with arenas in memfds; the test itself plays the worker in them.
 */
#ifndef CLIENT_FAKE_H
#define CLIENT_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring_abi.h"
#include "ring_arm.h"
#include "ring_bell.h"
#include "ring_channel.h"
#include "ring_cq.h"
#include "ring_ctrl.h"
#include "rnic.h"
#include "unit.h"

#define FAKE_ARENA (8u << 20)
#define FAKE_WORKERS 2
#define FAKE_MAX 1200

struct fake_cq {
	struct ring_cq_client *client;
	struct ring_cq_daemon *daemon;
	struct ring_cq_prod prod[FAKE_WORKERS];
	uint32_t entries;
};

struct fake_qp {
	struct ring_qp_client *client;
	struct ring_qp_daemon *daemon;
	struct ring_wq_cons sq, rq;
	uint32_t log;
};

struct fake_srq {
	struct ring_srq_client *client;
	struct ring_srq_daemon *daemon;
	uint32_t *index;
	uint8_t *slots;
	uint32_t entries, log_index;
	ring_loc_t index_loc, slots_loc;
};

struct fake {
	int sock;   /* the daemon's end */
	int client; /* the client's */
	pthread_t thread;
	uint8_t *arena[2]; /* RING_ARENA_C, then D */
	uint64_t used[2];
	int memfd[2];
	struct ring_bell_chunk *chunk[FAKE_WORKERS];
	struct ring_bell_daemon *bell[FAKE_WORKERS];
	int kick[FAKE_WORKERS];
	struct ring_channel_sub *channel; /* of the last channel made */
	int pipe;
	uint32_t hello_id;
	uint32_t mapped;
	uint32_t pushes;
	_Atomic uint32_t calls[RING_CTRL_OP_COUNT];
	uint32_t num_cq, num_qp, next_handle;
	struct fake_cq cq[16];
	struct fake_qp qp[FAKE_MAX];
	struct fake_srq srq;
	uint8_t log_sq, log_rq; /* slots of QPs to be made */
	uint32_t first_tail;	/* of QPs to be made */
	uint8_t buf[RING_CTRL_MAX_LEN] __attribute__((aligned(8)));
	uint8_t out[RING_CTRL_MAX_LEN] __attribute__((aligned(8)));
	/* spoil a reply or push before it is sent; its new length, 0: swallow it, -1: die */
	int (*spoil)(struct fake *f, struct ring_ctrl_hdr *h, int len);
	uint32_t arg;
};

static uint64_t fake_lacks; /* capabilities (IBV_DEVICE_*) that the device has not got */

#define FAKE_QPN(i) (0x123400u + (i))
#define FAKE_CQN(i) (700u + (i))
#define FAKE_SRQN 900u

static inline ring_loc_t
fake_place(struct fake *f, uint32_t kind, uint64_t size)
{
	uint32_t a = kind == RING_ARENA_C ? 0 : 1;
	uint64_t at = f->used[a];

	f->used[a] += (size + 63) & ~63ull;
	ck_assert_uint_le(f->used[a], FAKE_ARENA);
	return RING_LOC(a, at);
}

static inline void *
fake_at(struct fake *f, ring_loc_t loc)
{
	return f->arena[RING_LOC_ARENA(loc)] + RING_LOC_OFFSET(loc);
}

static inline void
fake_send(struct fake *f, struct ring_ctrl_hdr *h, const int *fds, unsigned int num_fds)
{
	int len = (int)ring_ctrl_size(h->op, h->count, false);
	int rc;

	h->num_fds = (uint16_t)num_fds;
	if (f->spoil)
		len = f->spoil(f, h, len);
	if (len == 0)
		return;
	if (len < 0) {
		shutdown(f->sock, SHUT_RDWR);
		return;
	}
	if (h->num_fds > num_fds)
		fds = f->kick; /* descriptors that nobody asked for */
	while ((rc = ring_ctrl_send(f->sock, h, (size_t)len, fds)) == -EAGAIN) {
		struct pollfd p = {.fd = f->sock, .events = POLLOUT};

		poll(&p, 1, -1);
	}
	if (rc)
		shutdown(f->sock, SHUT_RDWR);
}

static inline void
fake_push(struct fake *f, unsigned int op, const void *body, size_t size, int fd)
{
	struct {
		struct ring_ctrl_hdr h;
		uint8_t body[1024];
	} m;

	ring_ctrl_hdr_init(&m.h, op, RING_CTRL_PUSH, f->pushes++, 1);
	memcpy(m.body, body, size);
	fake_send(f, &m.h, &fd, fd >= 0);
}

static inline void
fake_arena_push(struct fake *f, uint32_t arena)
{
	struct ring_ctrl_arena a = {
		.arena = arena,
		.kind = arena == 0 ? RING_ARENA_C : RING_ARENA_D,
		.size = FAKE_ARENA,
		.page_size = 4096,
	};

	fake_push(f, RING_CTRL_ARENA, &a, sizeof(a), f->memfd[arena]);
}

static inline void
fake_hello_reply(struct fake *f)
{
	struct ring_ctrl_bells b = {.num_workers = FAKE_WORKERS};
	struct {
		struct ring_ctrl_hdr h;
		struct ring_ctrl_hello_rep r;
	} m = {.r = {.context = 1, .device = "fake0", .num_workers = FAKE_WORKERS}};

	for (uint32_t w = 0; w < FAKE_WORKERS; w++) {
		b.chunk_loc[w] = fake_place(f, RING_ARENA_C, sizeof(struct ring_bell_chunk));
		b.daemon_loc[w] = fake_place(f, RING_ARENA_D, sizeof(struct ring_bell_daemon));
		f->chunk[w] = fake_at(f, b.chunk_loc[w]);
		f->bell[w] = fake_at(f, b.daemon_loc[w]);
	}
	fake_push(f, RING_CTRL_BELLS, &b, sizeof(b), -1);
	ring_ctrl_hdr_init(&m.h, RING_CTRL_HELLO, RING_CTRL_REPLY, f->hello_id, 1);
	m.r.num_comp_vectors = FAKE_WORKERS;
	fake_send(f, &m.h, f->kick, FAKE_WORKERS);
}

static inline void
fake_create_cq(
	struct fake *f, const struct ring_ctrl_create_cq_req *q, struct ring_ctrl_create_cq_rep *r)
{
	struct fake_cq *cq = &f->cq[f->num_cq];

	r->cqn = FAKE_CQN(f->num_cq++);
	for (r->entries = 2; r->entries < q->entries + 1; r->entries *= 2)
		;
	r->client = fake_place(f, RING_ARENA_C, sizeof(*cq->client));
	r->daemon = fake_place(f, RING_ARENA_D, sizeof(*cq->daemon));
	cq->client = fake_at(f, r->client);
	cq->daemon = fake_at(f, r->daemon);
	cq->entries = r->entries;
}

static inline void
fake_create_qp(struct fake *f, struct ring_ctrl_create_qp_rep *r)
{
	struct fake_qp *qp = &f->qp[f->num_qp];

	r->qpn = FAKE_QPN(f->num_qp);
	r->bell = f->num_qp++;
	r->max_send_wr = 1u << f->log_sq;
	r->max_recv_wr = 1u << f->log_rq;
	r->max_inline = 200;
	r->max_send_sge = 12;
	r->max_recv_sge = 11;
	r->log_sq_slots = f->log_sq;
	r->log_rq_slots = f->log_rq;
	r->sq = fake_place(f, RING_ARENA_C, RING_SLOT_SIZE << f->log_sq);
	r->rq = fake_place(f, RING_ARENA_C, RING_SLOT_SIZE << f->log_rq);
	r->client = fake_place(f, RING_ARENA_C, sizeof(*qp->client));
	r->daemon = fake_place(f, RING_ARENA_D, sizeof(*qp->daemon));
	qp->client = fake_at(f, r->client);
	qp->daemon = fake_at(f, r->daemon);
	qp->daemon->worker = RING_NO_HANDLE;
	qp->sq = (struct ring_wq_cons){
		.slots = fake_at(f, r->sq),
		.shared_tail = &qp->client->sq_tail,
		.mask = (1u << f->log_sq) - 1,
	};
	qp->rq = (struct ring_wq_cons){
		.slots = fake_at(f, r->rq),
		.shared_tail = &qp->client->rq_tail,
		.mask = (1u << f->log_rq) - 1,
	};
}

static inline void
fake_create_srq(struct fake *f, struct ring_ctrl_create_srq_rep *r)
{
	*r = (struct ring_ctrl_create_srq_rep){
		.srqn = FAKE_SRQN,
		.max_wr = 4,
		.max_sge = 5,
		.log_index = 2,
		.slots_per_wr = 2,
		.index = fake_place(f, RING_ARENA_C, 16),
		.slots = fake_place(f, RING_ARENA_C, 4 * 2 * RING_SLOT_SIZE),
		.client = fake_place(f, RING_ARENA_C, sizeof(struct ring_srq_client)),
		.daemon = fake_place(f, RING_ARENA_D, sizeof(struct ring_srq_daemon)),
	};
	f->srq = (struct fake_srq){
		.client = fake_at(f, r->client),
		.daemon = fake_at(f, r->daemon),
		.index = fake_at(f, r->index),
		.slots = fake_at(f, r->slots),
		.entries = 4,
		.log_index = 2,
		.index_loc = r->index,
		.slots_loc = r->slots,
	};
}

/* To another place, with what is posted. */
static inline void
fake_srq_move(struct fake *f, uint32_t entries)
{
	struct fake_srq *s = &f->srq, old = *s;
	uint32_t mask = (1u << old.log_index) - 1;
	uint32_t head = atomic_load(&s->daemon->head);

	while (1u << s->log_index < entries)
		s->log_index++;
	s->entries = entries;
	s->index_loc = fake_place(f, RING_ARENA_C, sizeof(uint32_t) << s->log_index);
	s->slots_loc = fake_place(f, RING_ARENA_C, (uint64_t)entries * 2 * RING_SLOT_SIZE);
	s->index = fake_at(f, s->index_loc);
	s->slots = fake_at(f, s->slots_loc);
	for (uint32_t i = head; i - head <= mask; i++)
		s->index[i & ((1u << s->log_index) - 1)] = old.index[i & mask];
	memcpy(s->slots, old.slots, (size_t)old.entries * 2 * RING_SLOT_SIZE);
}

static inline void
fake_modify_srq(struct fake *f, const struct ring_ctrl_modify_srq_req *q,
	struct ring_ctrl_modify_srq_rep *r)
{
	if (q->max_wr == 0 && (q->mask & RING_SRQ_MAX_WR)) {
		r->status = -EINVAL;
		return;
	}
	if ((q->mask & RING_SRQ_MAX_WR) && q->max_wr > f->srq.entries)
		fake_srq_move(f, q->max_wr);
	r->max_wr = (q->mask & RING_SRQ_MAX_WR) ? q->max_wr : f->srq.entries;
	r->entries = f->srq.entries;
	r->log_index = (uint8_t)f->srq.log_index;
	r->index = f->srq.index_loc;
	r->slots = f->srq.slots_loc;
}

static inline void
fake_modify_qp(
	struct fake *f, const struct ring_ctrl_modify_qp_req *q, struct ring_ctrl_modify_qp_rep *r)
{
	struct fake_qp *qp = &f->qp[q->qpn - FAKE_QPN(0)];

	if (q->mask & RING_QP_STATE) {
		qp->daemon->state = q->attr.state;
		if (q->attr.state >= RING_QPS_RTR)
			qp->daemon->worker = 0;
	}
	r->state = qp->daemon->state;
}

static inline void
fake_create_channel(struct fake *f, struct ring_ctrl_create_channel_rep *r, int *fd)
{
	int p[2];

	ck_assert_int_eq(pipe2(p, O_NONBLOCK | O_CLOEXEC), 0);
	f->pipe = p[1];
	*fd = p[0];
	r->handle = 55;
	r->num_subs = FAKE_WORKERS + 1;
	r->subs = fake_place(f, RING_ARENA_D, r->num_subs * sizeof(struct ring_channel_sub));
	f->channel = fake_at(f, r->subs);
}

/* Element i of a request. */
static inline void
fake_element(struct fake *f, unsigned int op, const void *q, void *r, int *fd)
{
	switch (op) {
	case RING_CTRL_CREATE_CQ:
		fake_create_cq(f, q, r);
		break;
	case RING_CTRL_CREATE_QP:
		fake_create_qp(f, r);
		break;
	case RING_CTRL_CREATE_SRQ:
		fake_create_srq(f, r);
		break;
	case RING_CTRL_MODIFY_SRQ:
		fake_modify_srq(f, q, r);
		break;
	case RING_CTRL_MODIFY_QP:
		fake_modify_qp(f, q, r);
		break;
	case RING_CTRL_CREATE_CHANNEL:
		fake_create_channel(f, r, fd);
		break;
	case RING_CTRL_ALLOC_MEM: {
		struct ring_ctrl_alloc_mem_rep *a = r;

		a->size = ((const struct ring_ctrl_alloc_mem_req *)q)->size;
		a->loc = fake_place(f, RING_ARENA_C, a->size);
		break;
	}
	case RING_CTRL_REG_MR:
	case RING_CTRL_REREG_MR:
	case RING_CTRL_ALLOC_MW: {
		struct ring_ctrl_reg_mr_rep *m = r; /* ALLOC_MW: handle and key in its places */

		m->lkey = ++f->next_handle << 8;
		m->rkey = m->lkey | 0xff;
		break;
	}
	case RING_CTRL_QUERY_DEVICE:
		((struct ring_ctrl_query_device_rep *)r)->device_cap_flags = ~fake_lacks;
		break;
	case RING_CTRL_RESIZE_CQ:
		((struct ring_ctrl_resize_cq_rep *)r)->entries =
			((const struct ring_ctrl_resize_cq_req *)q)->entries;
		break;
	case RING_CTRL_ALLOC_PD:
	case RING_CTRL_CREATE_AH:
		((struct ring_ctrl_handle_rep *)r)->handle = ++f->next_handle;
		break;
	default:
		break;
	}
}

static inline void
fake_answer(struct fake *f)
{
	struct ring_ctrl_hdr *h = (struct ring_ctrl_hdr *)(void *)f->buf;
	struct ring_ctrl_hdr *o = (struct ring_ctrl_hdr *)(void *)f->out;
	const struct ring_ctrl_info *info = ring_ctrl_info(h->op);
	int fd = -1;

	atomic_fetch_add(&f->calls[h->op], 1);
	if (h->op == RING_CTRL_ARENA_MAPPED) {
		if (++f->mapped == 2)
			fake_hello_reply(f);
		return;
	}
	if (h->op == RING_CTRL_HELLO) {
		f->hello_id = h->id;
		fake_arena_push(f, 0);
		fake_arena_push(f, 1);
		return;
	}
	memset(f->out, 0, ring_ctrl_size(h->op, h->count, false));
	ring_ctrl_hdr_init(o, h->op, RING_CTRL_REPLY, h->id, h->count);
	for (uint32_t i = 0; i < h->count; i++)
		fake_element(f, h->op, (uint8_t *)ring_ctrl_body(h) + i * info->request_size,
			(uint8_t *)ring_ctrl_body(o) + i * info->reply_size, &fd);
	fake_send(f, o, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
}

static inline void *
fake_main(void *arg)
{
	struct fake *f = arg;
	struct pollfd p = {.fd = f->sock, .events = POLLIN};

	for (;;) {
		ptrdiff_t n = ring_ctrl_recv(f->sock, f->buf, sizeof(f->buf), NULL, 0);

		if (n == -EAGAIN)
			poll(&p, 1, -1);
		else if (n <= 0)
			return NULL;
		else if (ring_ctrl_check(f->buf, (size_t)n, true))
			abort();
		else
			fake_answer(f);
	}
}

static inline void
fake_start(struct fake *f)
{
	int sv[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	f->client = sv[0];
	f->sock = sv[1];
	f->pipe = -1;
	for (int i = 0; i < 2; i++) {
		f->memfd[i] = memfd_create("fake", MFD_CLOEXEC);
		ck_assert_int_eq(ftruncate(f->memfd[i], FAKE_ARENA), 0);
		f->arena[i] = mmap(
			NULL, FAKE_ARENA, PROT_READ | PROT_WRITE, MAP_SHARED, f->memfd[i], 0);
		ck_assert_ptr_ne(f->arena[i], MAP_FAILED);
	}
	for (int w = 0; w < FAKE_WORKERS; w++)
		f->kick[w] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!f->log_sq)
		f->log_sq = f->log_rq = 4;
	ck_assert_int_eq(pthread_create(&f->thread, NULL, fake_main, f), 0);
}

/* The daemon dies: its ends of everything close. */
static inline void
fake_die(struct fake *f)
{
	shutdown(f->sock, SHUT_RDWR);
	pthread_join(f->thread, NULL);
	close(f->sock);
	if (f->pipe >= 0)
		close(f->pipe);
	f->sock = -1;
	f->pipe = -1;
}

static inline void
fake_stop(struct fake *f)
{
	if (f->sock >= 0)
		fake_die(f);
	for (int i = 0; i < 2; i++) {
		munmap(f->arena[i], FAKE_ARENA);
		close(f->memfd[i]);
	}
	for (int w = 0; w < FAKE_WORKERS; w++)
		close(f->kick[w]);
}

static inline struct fake *
fake_new(void)
{
	struct fake *f;

	ck_assert_int_eq(posix_memalign((void **)&f, 64, sizeof(*f)), 0);
	memset(f, 0, sizeof(*f));
	return f;
}

/* ---- the worker's side, called by the test ---- */

/* A place in the D arena for a sub-ring: these tests know that nobody else allocates then. */
static inline struct ring_cqe *
fake_ring(struct fake *f, uint32_t entries, struct ring_cq_sub *s)
{
	ring_loc_t loc = fake_place(f, RING_ARENA_D, entries * sizeof(struct ring_cqe));

	s->arena = RING_LOC_ARENA(loc);
	s->offset = RING_LOC_OFFSET(loc);
	s->log_entries = (uint32_t)__builtin_ctz(entries);
	return fake_at(f, loc);
}

static inline void
fake_sub(struct fake *f, uint32_t cq, uint32_t worker)
{
	struct fake_cq *c = &f->cq[cq];
	uint32_t i = c->daemon->num_sub;

	c->prod[i] = (struct ring_cq_prod){
		.ring = fake_ring(f, c->entries, &c->daemon->sub[i]),
		.cons = &c->client->cons[worker],
		.mask = c->entries - 1,
	};
	c->daemon->sub[i].worker = worker;
	atomic_store_explicit(&c->daemon->num_sub, i + 1, memory_order_release);
}

static inline bool
fake_cqe(struct fake *f, uint32_t cq, uint32_t sub, const struct ring_cqe *e, uint32_t flags)
{
	struct ring_cqe *to = ring_cq_reserve(&f->cq[cq].prod[sub]);

	if (!to)
		return false;
	memcpy((void *)to, (const void *)e, offsetof(struct ring_cqe, tag));
	to->timestamp = e->timestamp;
	ring_cq_commit(&f->cq[cq].prod[sub], flags);
	return true;
}

/* A completion of a QP's request. */
static inline bool
fake_done(struct fake *f, uint32_t cq, uint32_t sub, uint32_t qp, uint32_t index, uint32_t flags)
{
	struct ring_cqe e = {
		.wqe_index = index,
		.qpn_status = FAKE_QPN(qp),
		.byte_len = 64,
		.src_opcode = (flags & RING_CQE_RECV ? 128u : 0u) << 24,
	};

	return fake_cqe(f, cq, sub, &e, flags);
}

/* ---- what most tests begin with ---- */

struct fake_set {
	struct fake *f;
	struct rnic_context *ctx;
	struct rnic_pd *pd;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
};

static inline void
fake_to_state(struct rnic_qp *qp, uint32_t state)
{
	struct rnic_qp_attr attr = {.qp_state = state};

	ck_assert_int_eq(rnic_modify_qp(qp, &attr, RNIC_QP_STATE), 0);
}

static inline struct rnic_qp *
fake_qp_in(struct fake_set *s, uint32_t type, struct rnic_srq *srq)
{
	struct rnic_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = srq,
		.cap = {4, 4, 4, 4, 100},
		.qp_type = type,
	};
	struct rnic_qp *qp;

	ck_assert_int_eq(rnic_create_qp(s->pd, &attr, &qp), 0);
	fake_to_state(qp, RNIC_QPS_INIT);
	fake_to_state(qp, RNIC_QPS_RTR);
	fake_to_state(qp, RNIC_QPS_RTS);
	return qp;
}

/* Everything up to one RC QP in RTS, with 2^log slots a queue and a CQ of 15 completions. */
static inline struct fake_set
fake_setup(uint8_t log)
{
	struct rnic_cq_attr attr = {.cqe = 15};
	struct fake_set s = {.f = fake_new()};

	s.f->log_sq = s.f->log_rq = log;
	fake_start(s.f);
	ck_assert_int_eq(rnic_open_fd(s.f->client, NULL, &s.ctx), 0);
	ck_assert_int_eq(rnic_alloc_pd(s.ctx, &s.pd), 0);
	ck_assert_int_eq(rnic_create_cq(s.ctx, &attr, &s.cq), 0);
	fake_sub(s.f, 0, 0);
	s.qp = fake_qp_in(&s, RNIC_QPT_RC, NULL);
	return s;
}

static inline void
fake_teardown(struct fake_set *s)
{
	ck_assert_int_eq(rnic_close(s->ctx), 0);
	fake_stop(s->f);
	free(s->f);
}

#endif /* CLIENT_FAKE_H */
