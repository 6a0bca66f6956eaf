/* SPDX-License-Identifier: BSD-3-Clause */
/* Control calls: life of all objects, batches, threads, spoilt replies, death, fork. */
#include <sys/wait.h>

#include "client_fake.h"

static uint8_t memory[4096];

START_TEST(life__all_objects)
{
	struct fake_set s = fake_setup(4);
	struct rnic_device_attr dev;
	struct rnic_port_attr port;
	struct rnic_gid_entry gid;
	struct rnic_ah_attr aa = {.is_global = 1, .sgid_index = 3};
	struct rnic_qp_attr qa;
	struct rnic_qp_init_attr qi;
	struct rnic_token token;
	struct rnic_pd *pd2;
	struct rnic_mr *mr, *mr2;
	struct rnic_mw *mw;
	struct rnic_ah *ah;
	union rnic_gid g = {{1}};
	uint8_t mac[6];
	void *p;

	ck_assert_str_eq(rnic_device_name(s.ctx), "fake0");
	ck_assert_uint_eq(rnic_num_workers(s.ctx), FAKE_WORKERS);
	ck_assert_int_eq(rnic_query_device(s.ctx, &dev), 0);
	ck_assert_int_eq(rnic_query_port(s.ctx, 1, &port), 0);
	ck_assert_int_eq(rnic_query_gid(s.ctx, 1, 0, &gid), 0);
	ck_assert_int_eq(rnic_resolve(s.ctx, &aa, 10, NULL, mac), 0);
	ck_assert_int_eq(rnic_alloc(s.ctx, 1000, 0, &p), 0);
	memset(p, 0xee, 1000);
	ck_assert_uint_eq(s.f->arena[0][s.f->used[0] - 1024], 0xee);
	ck_assert_int_eq(rnic_reg_mr(s.pd, memory, sizeof(memory), 1, &mr), 0);
	ck_assert_uint_eq(mr->iova, (uintptr_t)memory);
	ck_assert_int_eq(rnic_rereg_mr(mr, RNIC_REREG_TRANSLATION | RNIC_REREG_ACCESS, NULL,
				 memory + 64, 64, RNIC_ACCESS_ZERO_BASED),
		0);
	ck_assert_uint_eq(mr->iova, 0);
	ck_assert_ptr_eq(mr->addr, memory + 64);
	ck_assert_int_eq(rnic_export_mr(mr, &token), 0);
	ck_assert_int_eq(rnic_import_mr(s.ctx, &token, &mr2), 0);
	ck_assert_int_eq(rnic_rereg_mr(mr2, RNIC_REREG_ACCESS, NULL, NULL, 0, 1), -EINVAL);
	ck_assert_int_eq(rnic_export_pd(s.pd, &token), 0);
	ck_assert_int_eq(rnic_import_pd(s.ctx, &token, &pd2), 0);
	ck_assert_int_eq(rnic_alloc_mw(s.pd, RNIC_MW_TYPE_2, &mw), 0);
	ck_assert_int_eq(rnic_create_ah(s.pd, &aa, &ah), 0);
	ck_assert_int_eq(rnic_attach_mcast(s.qp, &g), 0);
	ck_assert_int_eq(rnic_detach_mcast(s.qp, &g), 0);
	ck_assert_int_eq(rnic_query_qp(s.qp, &qa, &qi), 0);
	ck_assert_ptr_eq(qi.send_cq, s.cq);
	ck_assert_int_eq(rnic_resize_cq(s.cq, 64), 0);
	ck_assert_uint_eq(s.cq->cqe, 64);

	ck_assert_int_eq(rnic_destroy_cq(s.cq), -EBUSY);
	ck_assert_int_eq(rnic_destroy_qp(s.qp), 0);
	ck_assert_int_eq(rnic_destroy_cq(s.cq), 0);
	ck_assert_int_eq(rnic_destroy_ah(ah), 0);
	ck_assert_int_eq(rnic_dealloc_mw(mw), 0);
	ck_assert_int_eq(rnic_dereg_mr(mr), 0);
	ck_assert_int_eq(rnic_dereg_mr(mr2), 0);
	ck_assert_int_eq(rnic_free(s.ctx, p), 0);
	ck_assert_int_eq(rnic_free(s.ctx, memory), -EINVAL);
	ck_assert_int_eq(rnic_dealloc_pd(pd2), 0);
	ck_assert_int_eq(rnic_dealloc_pd(s.pd), 0);
	/* the imported one is but a name */
	ck_assert_uint_eq(atomic_load(&s.f->calls[RING_CTRL_DEREG_MR]), 1);
	fake_teardown(&s);
}
END_TEST

/* More than a message holds: all are asked for before the first answer. */
START_TEST(qps__batches)
{
	struct fake_set s = fake_setup(0);
	struct rnic_qp_init_attr attr = {
		.send_cq = s.cq,
		.recv_cq = s.cq,
		.qp_type = RNIC_QPT_RC,
	};
	static struct rnic_qp *qps[1100];
	static struct rnic_qp_attr attrs[1100];
	static int status[1100];

	ck_assert_int_eq(rnic_create_qps(s.pd, &attr, qps, 1100), 1100);
	ck_assert_uint_eq(atomic_load(&s.f->calls[RING_CTRL_CREATE_QP]), 3); /* one of setup */
	ck_assert_uint_eq(qps[1099]->qp_num, FAKE_QPN(1100));
	for (int i = 0; i < 1100; i++)
		attrs[i].qp_state = RNIC_QPS_INIT;
	ck_assert_int_eq(rnic_modify_qps(qps, attrs, RNIC_QP_STATE, status, 1100), 0);
	ck_assert_uint_eq(s.f->qp[1100].daemon->state, RING_QPS_INIT);
	ck_assert_int_eq(rnic_create_qps(s.pd, &attr, qps, 0), -EINVAL);
	attr.cap.max_send_sge = 100000;
	ck_assert_int_eq(rnic_create_qps(s.pd, &attr, qps, 1), -EINVAL);
	fake_teardown(&s);
}
END_TEST

static int
fail_third(struct fake *f, struct ring_ctrl_hdr *h, int len)
{
	struct ring_ctrl_create_qp_rep *r = ring_ctrl_body(h);

	(void)f;
	if (h->op == RING_CTRL_CREATE_QP && h->count > 3)
		r[2] = (struct ring_ctrl_create_qp_rep){.status = -EDQUOT};
	return len;
}

START_TEST(qps__hole_in_batch)
{
	struct fake_set s = fake_setup(2);
	struct rnic_qp_init_attr attr = {
		.send_cq = s.cq,
		.recv_cq = s.cq,
		.qp_type = RNIC_QPT_RC,
	};
	struct rnic_qp *qps[5];

	s.f->spoil = fail_third;
	ck_assert_int_eq(rnic_create_qps(s.pd, &attr, qps, 5), 2);
	ck_assert_uint_eq(atomic_load(&s.f->calls[RING_CTRL_DESTROY_QP]), 2);
	fake_teardown(&s);
}
END_TEST

static void *
caller(void *arg)
{
	struct fake_set *s = arg;

	for (int i = 0; i < 200; i++) {
		struct rnic_mr *mr;

		if (rnic_reg_mr(s->pd, memory, 64, 1, &mr) || rnic_dereg_mr(mr))
			return s;
	}
	return NULL;
}

START_TEST(threads__share_the_socket)
{
	struct fake_set s = fake_setup(2);
	pthread_t t[4];
	void *failed;

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, caller, &s);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &failed);
		ck_assert_ptr_null(failed);
	}
	ck_assert_uint_eq(atomic_load(&s.f->calls[RING_CTRL_DEREG_MR]), 800);
	fake_teardown(&s);
}
END_TEST

/* ---- replies that make no sense ---- */

static int
spoil_header(struct fake *f, struct ring_ctrl_hdr *h, int len)
{
	if (h->op != RING_CTRL_REG_MR)
		return len;
	switch (f->arg) {
	case 0:
		h->id++;
		break;
	case 1:
		h->op = RING_CTRL_REREG_MR;
		break;
	case 2:
		h->count = 2;
		break;
	case 3:
		h->magic++;
		break;
	case 4:
		h->major++;
		break;
	case 5:
		h->flags = RING_CTRL_PUSH;
		break;
	case 6:
		return len - 1;
	case 7:
		h->num_fds = 1;
		break;
	case 8:
		h->status = 5;
		break;
	default:
		return -1;
	}
	return len;
}

START_TEST(hostile__headers)
{
	for (uint32_t i = 0; i < 10; i++) {
		struct fake_set s = fake_setup(2);
		struct rnic_async_event ev;
		struct rnic_mr *mr;

		s.f->spoil = spoil_header;
		s.f->arg = i;
		ck_assert_int_lt(rnic_reg_mr(s.pd, memory, 64, 1, &mr), 0);
		ck_assert_int_eq(rnic_status(s.ctx), -ENOTCONN);
		ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), 0);
		ck_assert_uint_eq(ev.event_type, RNIC_EVENT_DEVICE_FATAL);
		ck_assert_int_eq(rnic_get_async_event(s.ctx, &ev), -ENOTCONN);
		fake_teardown(&s);
	}
}
END_TEST

/* Each 8-byte word of a reply in turn is replaced by nonsense. */
static int
spoil_word(struct fake *f, struct ring_ctrl_hdr *h, int len)
{
	uint8_t *body = ring_ctrl_body(h);
	uint32_t op = f->arg >> 16;
	uint32_t at = 8 * (f->arg >> 4 & 0xff);
	static const uint64_t nonsense[] = {
		UINT64_MAX,
		1ull << 63,
		0x0001000000000001,
		0xffffffff00000000,
		(uint64_t)FAKE_ARENA,
		0x7fffffff7fffffff,
		0xff00ff00ff00ff00,
		0x0101010101010101,
	};

	if (h->op == op && sizeof(*h) + at + 8 <= (size_t)len)
		memcpy(body + at, &nonsense[f->arg & 7], 8);
	return len;
}

/* Whatever the daemon answers: an error or an object, but no crash and no hang. */
static void
use_all(struct fake_set *s)
{
	struct rnic_qp_init_attr qi = {.send_cq = s->cq, .recv_cq = s->cq, .qp_type = RNIC_QPT_RC};
	struct rnic_srq_init_attr si = {.attr = {4, 5, 0}};
	struct rnic_cq_attr ci = {.cqe = 8};
	struct rnic_recv_wr rwr = {.wr_id = 1};
	struct rnic_send_wr swr = {.wr_id = 1, .opcode = RNIC_WR_SEND};
	struct rnic_qp_attr qa = {.qp_state = RNIC_QPS_RTS};
	struct rnic_channel *ch;
	struct rnic_srq *srq;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	struct rnic_wc wc[4];
	void *p;

	if (rnic_alloc(s->ctx, 64, 0, &p) == 0)
		memset(p, 1, 64);
	if (rnic_create_channel(s->ctx, &ch) == 0)
		rnic_destroy_channel(ch);
	if (rnic_create_cq(s->ctx, &ci, &cq) == 0) {
		rnic_poll_cq(cq, 4, wc);
		rnic_destroy_cq(cq);
	}
	if (rnic_create_srq(s->pd, &si, &srq) == 0) {
		for (int i = 0; i < 6; i++)
			rnic_post_srq_recv(srq, &rwr, NULL);
		rnic_destroy_srq(srq);
	}
	if (rnic_create_qp(s->pd, &qi, &qp) == 0) {
		rnic_modify_qp(qp, &qa, RNIC_QP_STATE);
		for (int i = 0; i < 20; i++) {
			rnic_post_send(qp, &swr, NULL);
			rnic_post_recv(qp, &rwr, NULL);
		}
		rnic_destroy_qp(qp);
	}
}

START_TEST(hostile__bodies)
{
	static const uint32_t ops[] = {RING_CTRL_ALLOC_MEM, RING_CTRL_CREATE_CHANNEL,
		RING_CTRL_CREATE_CQ, RING_CTRL_CREATE_SRQ, RING_CTRL_CREATE_QP, RING_CTRL_MODIFY_QP,
		RING_CTRL_DESTROY_QP};

	for (uint32_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
		uint32_t words = ring_ctrl_info(ops[o])->reply_size / 8;

		for (uint32_t i = 0; i < words * 8; i++) {
			struct fake_set s = fake_setup(2);

			s.f->arg = ops[o] << 16 | (i / 8) << 4 | i % 8;
			s.f->spoil = spoil_word;
			use_all(&s);
			fake_teardown(&s);
		}
	}
}
END_TEST

static int
open_fake(struct fake *f, struct rnic_context **ctx)
{
	int rc;

	fake_start(f);
	rc = rnic_open_fd(f->client, NULL, ctx);
	if (rc) {
		close(f->client);
		fake_stop(f);
	}
	return rc;
}

/* The greeting: hello, arenas and bells spoilt; a failed open leaves the socket to the caller. */
START_TEST(hostile__greeting)
{
	static const uint32_t ops[] = {RING_CTRL_HELLO, RING_CTRL_ARENA, RING_CTRL_BELLS};

	for (uint32_t o = 0; o < 3; o++) {
		uint32_t words = o == 2 ? 4 : ring_ctrl_info(ops[o])->reply_size / 8;

		for (uint32_t i = 0; i < words * 8; i++) {
			struct fake *f = fake_new();
			struct rnic_context *ctx;

			f->arg = ops[o] << 16 | (i / 8) << 4 | i % 8;
			f->spoil = spoil_word;
			if (o == 1 && i / 8 == 0 && i % 8 == 0)
				f->spoil = NULL; /* one that succeeds, for comparison */
			if (open_fake(f, &ctx) == 0) {
				ck_assert_int_eq(rnic_close(ctx), 0);
				fake_stop(f);
			} else {
				ck_assert(f->spoil);
			}
			free(f);
		}
	}
}
END_TEST

static int
other_major(struct fake *f, struct ring_ctrl_hdr *h, int len)
{
	(void)f;
	h->major++;
	return len;
}

static int
refuse(struct fake *f, struct ring_ctrl_hdr *h, int len)
{
	(void)f;
	if (h->op != RING_CTRL_HELLO)
		return len;
	h->status = -EACCES;
	h->count = 0;
	h->num_fds = 0;
	return sizeof(*h);
}

START_TEST(open__refused)
{
	struct rnic_open_attr attr = {.device = "a name that is longer than any may be"};
	struct rnic_context *ctx;
	struct fake *f = fake_new();

	f->spoil = other_major;
	ck_assert_int_eq(open_fake(f, &ctx), -EPROTONOSUPPORT);
	ck_assert_int_eq(rnic_open("/nowhere/at/all", NULL, &ctx), -ENOENT);
	ck_assert_int_eq(rnic_open_fd(0, &attr, &ctx), -ENODEV);
	free(f);
	f = fake_new();
	f->spoil = refuse;
	ck_assert_int_eq(open_fake(f, &ctx), -EACCES);
	free(f);
}
END_TEST

/* ---- death and fork ---- */

START_TEST(death__every_call_ends)
{
	struct fake_set s = fake_setup(2);
	struct rnic_send_wr wr = {.wr_id = 5, .opcode = RNIC_WR_SEND};
	const struct rnic_send_wr *bad = NULL;
	struct rnic_context *again;
	struct rnic_mr *mr;
	struct rnic_wc wc;
	int n = 0;

	ck_assert_int_eq(rnic_reg_mr(s.pd, memory, 64, 1, &mr), 0);
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, NULL), 0);
	ck_assert(fake_done(s.f, 0, 0, 0, 0, 0));
	fake_die(s.f);
	ck_assert_int_eq(rnic_poll_cq(s.cq, 1, &wc), 1); /* what was done is told */
	ck_assert_uint_eq(wc.wr_id, 5);
	for (int i = 0; i < 100000 && n == 0; i++) /* those who only poll learn it too */
		n = rnic_poll_cq(s.cq, 1, &wc);
	ck_assert_int_eq(n, -ENOTCONN);
	ck_assert_int_eq(rnic_post_send(s.qp, &wr, &bad), -ENOTCONN);
	ck_assert_ptr_eq(bad, &wr);
	ck_assert_ptr_null(rnic_sq_get(s.qp, 1, 1));
	ck_assert_int_eq(rnic_reg_mr(s.pd, memory, 64, 1, &mr), -ENOTCONN);
	ck_assert_int_eq(rnic_reopen(s.ctx, &again), -ENOENT);
	ck_assert_int_eq(rnic_dereg_mr(mr), 0);
	ck_assert_int_eq(rnic_destroy_qp(s.qp), 0);
	ck_assert_int_eq(rnic_destroy_cq(s.cq), 0);
	ck_assert_int_eq(rnic_dealloc_pd(s.pd), 0);
	fake_teardown(&s);
}
END_TEST

static int
swallow_reg(struct fake *f, struct ring_ctrl_hdr *h, int len)
{
	(void)f;
	return h->op == RING_CTRL_REG_MR ? -1 : len;
}

START_TEST(death__during_a_call)
{
	struct fake_set s = fake_setup(2);
	struct rnic_mr *mr;

	s.f->spoil = swallow_reg;
	ck_assert_int_eq(rnic_reg_mr(s.pd, memory, 64, 1, &mr), -ENOTCONN);
	fake_teardown(&s);
}
END_TEST

/* In a child nothing works, nothing is sent, and nothing is touched that is not mapped. */
static struct rnic_channel *channel;

static int
is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* The descriptors go, once; whoever gets one of the numbers next keeps it. */
static int
child_close(struct fake_set *s)
{
	int async = rnic_async_fd(s->ctx);
	int chan = rnic_channel_fd(channel);
	int bad = !is_open(s->f->client) || !is_open(async) || !is_open(chan);
	int fd[16];

	bad |= rnic_close(s->ctx) != 0;
	bad |= is_open(s->f->client) || is_open(async) || is_open(chan);
	for (int i = 0; i < 16; i++)
		fd[i] = dup(0);
	bad |= rnic_close(s->ctx) != 0;
	for (int i = 0; i < 16; i++)
		bad |= !is_open(fd[i]);
	return bad;
}

static int
child(struct fake_set *s)
{
	struct rnic_send_wr wr = {.opcode = RNIC_WR_SEND};
	struct rnic_recv_wr rwr = {.wr_id = 1};
	struct rnic_async_event ev;
	struct rnic_pd *pd;
	unsigned char page;
	struct rnic_wc wc;
	int bad = 0;

	bad |= rnic_post_send(s->qp, &wr, NULL) != -EPERM;
	bad |= (rnic_post_recv(s->qp, &rwr, NULL) != -EPERM) << 1;
	bad |= (rnic_poll_cq(s->cq, 1, &wc) != -EPERM) << 2;
	bad |= (rnic_alloc_pd(s->ctx, &pd) != -EPERM) << 3;
	bad |= (rnic_destroy_qp(s->qp) != -EPERM) << 4;
	bad |= (rnic_get_async_event(s->ctx, &ev) != -EPERM) << 6;
	bad |= (rnic_sq_get(s->qp, 1, 1) != NULL) << 7;
	rnic_sq_submit(s->qp); /* of what the loop above it got; a fault ends this process */
	rnic_rq_submit(s->qp);
	bad |= child_close(s) << 5;
	/* nor could a stray store reach the parent's rings */
	if (mincore((void *)((uintptr_t)s->qp->sq.slots & ~4095ul), 4096, &page) == 0)
		bad = 255;
	return bad;
}

START_TEST(fork__no_op_in_child)
{
	struct fake_set s = fake_setup(2);
	struct rnic_pd *pd;
	int status;
	pid_t pid;

	ck_assert_int_eq(rnic_create_channel(s.ctx, &channel), 0);
	pid = fork();
	if (pid == 0)
		_exit(child(&s));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	ck_assert_int_eq(rnic_alloc_pd(s.ctx, &pd), 0); /* the parent goes on */
	ck_assert_uint_eq(atomic_load(&s.f->calls[RING_CTRL_DESTROY_QP]), 0);
	fake_teardown(&s);
}
END_TEST

UNIT_MAIN("client_ctrl", life__all_objects, qps__batches, qps__hole_in_batch,
	threads__share_the_socket, hostile__headers, hostile__bodies, hostile__greeting,
	open__refused, death__every_call_ends, death__during_a_call, fork__no_op_in_child)
