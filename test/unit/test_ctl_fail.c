/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B094: each allocation of the control thread fails once, in the making of each kind of object.
 * The call fails with a clean -errno or goes without, nothing is left, and again it works.
 * The linker turns our libraries' calls of the allocator to those here (--wrap).
 */
#include "ctl_objects.h"

static long until; /* allocations of the control thread until one fails; 0: none does */
static long fails; /* that failed */
static _Thread_local bool inside;

static bool
inject(void)
{
	if (!inside || until == 0 || --until != 0)
		return false;
	fails++;
	return true;
}

int __real_worker_ctl_poll(struct worker_device *d, int timeout_ms);
int __wrap_worker_ctl_poll(struct worker_device *d, int timeout_ms);

/* The test's own allocations do not fail. */
int
__wrap_worker_ctl_poll(struct worker_device *d, int timeout_ms)
{
	int n;

	inside = true;
	n = __real_worker_ctl_poll(d, timeout_ms);
	inside = false;
	return n;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

void *
__wrap_malloc(size_t n)
{
	return inject() ? NULL : __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return inject() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
	return inject() ? NULL : __real_realloc(p, n);
}

void *
__wrap_aligned_alloc(size_t align, size_t n)
{
	return inject() ? NULL : __real_aligned_alloc(align, n);
}

/* ---- what is made ---------- */

static uint32_t pd, cqn, srqn, channel, peer;
static uint8_t *heap;

struct made {
	uint32_t handle;
};

static int
make_pd_once(struct made *m)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_handle_rep rep;
	int err = fx_call(&cl, RING_CTRL_ALLOC_PD, &req, &rep);

	m->handle = rep.handle;
	return err;
}

static int
make_channel(struct made *m)
{
	struct ring_ctrl_empty_req req = {0};
	struct ring_ctrl_create_channel_rep rep;
	int err = fx_call(&cl, RING_CTRL_CREATE_CHANNEL, &req, &rep);

	m->handle = rep.handle;
	return err;
}

static int
make_cq(struct made *m)
{
	struct ring_ctrl_create_cq_req req = {.entries = 64, .channel = channel};
	struct ring_ctrl_create_cq_rep rep;
	int err = fx_call(&cl, RING_CTRL_CREATE_CQ, &req, &rep);

	m->handle = rep.cqn;
	return err;
}

static int
make_srq(struct made *m)
{
	struct ring_ctrl_create_srq_req req = {.pd = pd, .max_wr = 100, .max_sge = 3,
		.xrcd = RING_NO_HANDLE, .cqn = RING_NO_HANDLE};
	struct ring_ctrl_create_srq_rep rep;
	int err = fx_call(&cl, RING_CTRL_CREATE_SRQ, &req, &rep);

	m->handle = rep.srqn;
	return err;
}

static int
make_mr(struct made *m)
{
	struct ring_ctrl_reg_mr_rep rep;
	int err = reg_mr(pd, heap, 8192, RING_ACCESS_LOCAL_WRITE, &rep);

	m->handle = rep.lkey;
	return err;
}

static int
make_mw(struct made *m)
{
	struct ring_ctrl_alloc_mw_req req = {.pd = pd, .type = RING_MW_TYPE_2};
	struct ring_ctrl_alloc_mw_rep rep;
	int err = fx_call(&cl, RING_CTRL_ALLOC_MW, &req, &rep);

	m->handle = rep.handle;
	return err;
}

static int
make_ah(struct made *m)
{
	struct ring_ctrl_create_ah_req req = {.av = rtr_attr(0, 1).av, .pd = pd};
	struct ring_ctrl_handle_rep rep;
	int err = fx_call(&cl, RING_CTRL_CREATE_AH, &req, &rep);

	m->handle = rep.handle;
	return err;
}

static int
make_qp_on(uint32_t of_srq, struct made *m)
{
	struct ring_ctrl_create_qp_req req = {.type = RING_QPT_RC, .pd = pd, .send_cq = cqn,
		.recv_cq = cqn, .srqn = of_srq, .xrcd = RING_NO_HANDLE, .max_send_wr = 16,
		.max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1};
	struct ring_ctrl_create_qp_rep rep;
	int err = fx_call(&cl, RING_CTRL_CREATE_QP, &req, &rep);

	m->handle = rep.qpn;
	return err;
}

static int
make_qp(struct made *m)
{
	return make_qp_on(RING_NO_HANDLE, m);
}

static int
make_srq_qp(struct made *m)
{
	return make_qp_on(srqn, m);
}

/* From INIT to RTR, which binds it to its worker. */
static int
connect_qp(struct made *m)
{
	struct ring_ctrl_qp_attr a = rtr_attr(0x445566, 1);

	m->handle = peer;
	return modify(peer, RTR_MASK, &a, NULL);
}

/* Back to INIT, by RESET. */
static int
disconnect_qp(void)
{
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_RESET};
	int err = modify(peer, RING_QP_STATE, &a, NULL);

	return err == 0 ? to_init(peer) : err;
}

static const struct kind {
	const char *name;
	int (*make)(struct made *m);
	unsigned int destroy; /* 0: disconnect_qp() */
} kinds[] = {
	{"pd", make_pd_once, RING_CTRL_DEALLOC_PD},
	{"channel", make_channel, RING_CTRL_DESTROY_CHANNEL},
	{"cq", make_cq, RING_CTRL_DESTROY_CQ},
	{"srq", make_srq, RING_CTRL_DESTROY_SRQ},
	{"mr", make_mr, RING_CTRL_DEREG_MR},
	{"mw", make_mw, RING_CTRL_DEALLOC_MW},
	{"ah", make_ah, RING_CTRL_DESTROY_AH},
	{"qp", make_qp, RING_CTRL_DESTROY_QP},
	{"qp of an srq", make_srq_qp, RING_CTRL_DESTROY_QP},
	{"connected qp", connect_qp, 0},
};

static void
destroy(const struct kind *k, const struct made *m)
{
	ck_assert_int_eq(k->destroy != 0 ? fx_handle(&cl, k->destroy, m->handle) : disconnect_qp(),
		0);
}

/* Not the bytes of arenas: one that was made stays, for what comes next. */
struct counts {
	uint32_t objs[CTL_KINDS], of_user[CTL_KINDS], keys, qpns, fds;
};

static struct counts
count(void)
{
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	struct counts c;

	memset(&c, 0, sizeof(c));
	for (int i = 0; i < CTL_KINDS; i++) {
		c.objs[i] = fx_dev->objs[i].count;
		c.of_user[i] = u->count[i];
	}
	c.keys = mr_table_count(fx_dev->sh.mrs);
	c.qpns = roce_qpn_count(fx_dev->sh.qpns) + roce_qpn_count(fx_dev->sh.srqns);
	c.fds = u->fds;
	return c;
}

static void
surroundings(void)
{
	struct made m;

	heap = malloc(8192);
	pd = make_pd();
	channel = RING_NO_HANDLE;
	ck_assert_int_eq(make_cq(&m), 0);
	cqn = m.handle;
	ck_assert_int_eq(make_channel(&m), 0);
	channel = m.handle;
	ck_assert_int_eq(make_srq(&m), 0);
	srqn = m.handle;
	ck_assert_int_eq(make_qp(&m), 0);
	peer = m.handle;
	ck_assert_int_eq(to_init(peer), 0);
}

START_TEST(B094__each_allocation_fails_once)
{
	const struct kind *k = &kinds[_i];
	struct counts before;
	struct made m;
	long n;

	surroundings();
	/* Once for what is made on the way, and stays: arenas, bells, lanes. */
	ck_assert_int_eq(k->make(&m), 0);
	destroy(k, &m);
	fx_settle(1);
	before = count();
	for (n = 1; n < 1000; n++) {
		long failed = fails;
		int err;

		until = n;
		err = k->make(&m);
		until = 0;
		ck_assert_msg(!cl.dead, "%s, allocation %ld: cut off", k->name, n);
		ck_assert_msg(err == 0 || err == -ENOMEM, "%s, allocation %ld: %d", k->name, n,
			err);
		if (err != 0) {
			struct counts now;

			fx_settle(1);
			now = count();
			ck_assert_msg(memcmp(&now, &before, sizeof(now)) == 0,
				"%s, allocation %ld: something is left", k->name, n);
			ck_assert_int_eq(k->make(&m), 0);
		}
		destroy(k, &m);
		fx_settle(1);
		if (failed == fails)
			break;
	}
	ck_assert_int_gt(n, 1);
	ck_assert_int_lt(n, 1000);
	free(heap);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ctl_fail");
	TCase *c = tcase_create("fail");
	SRunner *r;
	int failed;

	fx_eal();
	tcase_set_timeout(c, 0);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, B094__each_allocation_fails_once, 0,
		(int)(sizeof(kinds) / sizeof(kinds[0])));
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_set_fork_status(r, CK_NOFORK);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	pmd_port_close(fx_port);
	rte_mempool_free(fx_pool);
	rte_eal_cleanup();
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
