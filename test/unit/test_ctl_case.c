/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that users of other implementations met, through a client's socket: each is named by its
 * id in docs/cases.md. What belongs to one source file is tested beside it.
 */
#include "ctl_objects.h"

#define RW (RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ)
#define LEN 4096u

static struct ring_ctrl_reg_mr_rep
region(uint32_t pd, const uint8_t *mem, uint32_t access)
{
	struct ring_ctrl_reg_mr_rep rep;

	ck_assert_int_eq(reg_mr(pd, mem, LEN, access, &rep), 0);
	return rep;
}

/* A WRITE of 64 bytes by the pair's first QP; its status. */
static unsigned int
write_64(struct pair *p, uint32_t index, const uint8_t *from, uint32_t lkey, const uint8_t *to,
	uint32_t rkey)
{
	struct ring_wqe w = {.opcode = RING_WR_RDMA_WRITE, .flags = RING_WR_SIGNALED,
		.num_slots = 1, .num_sge = 1, .rkey = rkey, .remote_addr = (uintptr_t)to,
		.sge = {{(uintptr_t)from, 64, lkey}}};

	post_send(p, 0, index, &w);
	return wait_cqes(p, index + 1)->qpn_status >> 24;
}

static void
destroy_pair(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p->qpn[i]), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_CQ, p->cqn), 0);
}

/* ---- regions ---------- */

static struct ring_ctrl_reg_mr_rep
rereg(const struct ring_ctrl_reg_mr_rep *old, struct ring_ctrl_rereg_mr_req req)
{
	struct ring_ctrl_reg_mr_rep rep;

	req.lkey = old->lkey;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, &rep), 0);
	return rep;
}

/* B076: a region of another PD, or with fewer rights, fails the traffic that was fine before. */
START_TEST(B076__rereg_is_felt_by_traffic)
{
	uint8_t *mem = make_mem(4 * LEN), *to = mem + LEN;
	uint32_t pd[2] = {make_pd(), make_pd()};
	struct ring_ctrl_reg_mr_rep from = region(pd[0], mem, 0), mr = region(pd[0], to, RW);
	struct pair p;

	make_pair_in(&p, pd[0]);
	connect_pair(&p);
	ck_assert_uint_eq(write_64(&p, 0, mem, from.lkey, to, mr.rkey), WC_SUCCESS);
	if (_i == 0)
		mr = rereg(&mr, (struct ring_ctrl_rereg_mr_req){
			.what = RING_REREG_PD, .pd = pd[1]});
	else if (_i == 1)
		mr = rereg(&mr, (struct ring_ctrl_rereg_mr_req){
			.what = RING_REREG_ACCESS,
			.access = RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_READ});
	else
		mr = rereg(&mr, (struct ring_ctrl_rereg_mr_req){.what = RING_REREG_TRANSLATION,
			.addr = (uintptr_t)to + LEN, .iova = (uintptr_t)to + LEN, .length = LEN});
	if (_i == 2)
		ck_assert_uint_eq(write_64(&p, 1, mem, from.lkey, to + LEN, mr.rkey), WC_SUCCESS);
	memset(to, 0xee, 64);
	ck_assert_uint_eq(write_64(&p, _i == 2 ? 2 : 1, mem, from.lkey, to, mr.rkey),
		WC_REM_ACCESS_ERR);
	ck_assert_uint_eq(to[0], 0xee);
	destroy_pair(&p);
	if (_i == 0) { /* and in the new PD it is as good as it was in the old */
		from = rereg(&from, (struct ring_ctrl_rereg_mr_req){
			.what = RING_REREG_PD, .pd = pd[1]});
		make_pair_in(&p, pd[1]);
		connect_pair(&p);
		ck_assert_uint_eq(write_64(&p, 0, mem, from.lkey, to, mr.rkey), WC_SUCCESS);
	}
}
END_TEST

/* B071: of two that ask at the same time for more than half, one has it; nothing stays counted. */
START_TEST(B071__half_and_a_page_each)
{
	const size_t half = 64 * LEN, size = half + LEN;
	uint8_t *mem = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		0);
	struct ring_ctrl_reg_mr_req req[2] = {{.pd = make_pd(), .length = size, .access = RW}};
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	uint32_t granted = 0;

	ck_assert_ptr_ne(mem, MAP_FAILED);
	if (geteuid() != 0) { /* what copiers reach is not locked, and not counted */
		printf("B071: skipped, needs root\n");
		munmap(mem, 2 * size);
		return;
	}
	fx_dev->cfg.quota_mr_bytes = 2 * half;
	for (int turn = 0; turn < 20; turn++) {
		uint32_t key[2];

		req[1] = req[0];
		req[0].addr = req[0].iova = (uintptr_t)mem;
		req[1].addr = req[1].iova = (uintptr_t)mem + size;
		ck_assert_int_eq(fx_send(&cl, RING_CTRL_REG_MR, 500, req, 2), 0);
		ck_assert(fx_wait(&cl, 500));
		granted = 0;
		for (int i = 0; i < 2; i++) {
			const struct ring_ctrl_reg_mr_rep *r = ring_ctrl_body(cl.buf);

			if (r[i].status == 0 && r[i].how == RING_MR_MAPPED)
				key[granted++] = r[i].lkey;
			else
				ck_assert_int_eq(r[i].status, -EDQUOT);
		}
		ck_assert_uint_eq(granted, 1);
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, key[0]), 0);
		ck_assert_uint_eq(atomic_load(&u->mapped), 0);
	}
	munmap(mem, 2 * size);
}
END_TEST

/* ---- connections ---------- */

/*
 * B096: what was made, used and destroyed leaves nothing; so often that a line of memory left each
 * time fills an arena. teardown() looks at the rest.
 */
START_TEST(B096__many_connections)
{
	uint8_t *mem = make_mem(LEN);
	uint32_t pd = make_pd();
	struct ring_ctrl_reg_mr_rep mr = region(pd, mem, RW);
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	uint32_t mrs = mr_table_count(fx_dev->sh.mrs);
	uint64_t bytes = 0;

	for (int i = 0; i < 20000; i++) {
		struct pair p;

		make_pair_in(&p, pd);
		connect_pair(&p);
		ck_assert_uint_eq(write_64(&p, 0, mem, mr.lkey, mem + 64, mr.rkey), WC_SUCCESS);
		destroy_pair(&p);
		ck_assert_uint_eq(u->count[CTL_QP], 0);
		ck_assert_uint_eq(u->count[CTL_CQ], 0);
		ck_assert_uint_eq(mr_table_count(fx_dev->sh.mrs), mrs);
		ck_assert_uint_eq(rte_mempool_in_use_count(fx_pool), 0);
		if (i == 10)
			bytes = u->bytes;
		if (i > 10)
			ck_assert_uint_eq(u->bytes, bytes);
	}
}
END_TEST

/* B131: after an error there is at once room for another QP, though the old number waits. */
START_TEST(B131__again_at_once)
{
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_ERR};

	fx_dev->timewait_ns = UINT64_C(60) * 1000000000;
	fx_dev->cfg.quota_qps = 2;
	for (int i = 0; i < 100; i++) {
		struct pair p;

		make_pair(&p);
		connect_pair(&p);
		for (int j = 0; j < 2; j++)
			ck_assert_int_eq(modify(p.qpn[j], RING_QP_STATE, &a, NULL), 0);
		destroy_pair(&p);
		ck_assert_uint_eq(fx_dev->num_timewait, 2 * (uint32_t)(i + 1));
	}
	ctl_timewait_poll(fx_dev, UINT64_MAX);
}
END_TEST

/* B098: in each state a query tells what was set so far, and zero for the rest. */
START_TEST(B098__query_in_each_state)
{
	static const unsigned int state[] = {RING_QPS_RESET, RING_QPS_INIT, RING_QPS_RTR,
		RING_QPS_RTS, RING_QPS_SQD, RING_QPS_ERR, RING_QPS_RESET};
	struct ring_ctrl_qp_attr a = {0};
	struct ring_ctrl_handle_req req = {0};
	struct ring_ctrl_query_qp_rep q;
	struct pair p;

	make_pair(&p);
	req.handle = p.qpn[0];
	for (size_t i = 0; i < sizeof(state) / sizeof(state[0]); i++) {
		if (i == 1) {
			ck_assert_int_eq(to_init(p.qpn[0]), 0);
		} else if (i == 2) {
			a = rtr_attr(p.qpn[1], 1);
			ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, NULL), 0);
		} else if (i == 3) {
			ck_assert_int_eq(to_rts(p.qpn[0]), 0);
		} else if (i > 3) {
			a.state = (uint8_t)state[i];
			ck_assert_int_eq(modify(p.qpn[0], RING_QP_STATE, &a, NULL), 0);
		}
		ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &req, &q), 0);
		ck_assert_uint_eq(q.attr.state, state[i]);
		ck_assert_uint_eq(q.attr.cur_state, state[i]);
		if (i == 6) { /* as it was made */
			const struct ring_ctrl_qp_attr none = {.state = RING_QPS_RESET,
				.cur_state = RING_QPS_RESET};

			ck_assert_mem_eq(&q.attr, &none, sizeof(none));
			continue;
		}
		ck_assert_uint_eq(q.attr.port, i >= 1 ? 1 : 0);
		ck_assert_uint_eq(q.attr.path_mtu, i >= 2 ? RING_MTU_1024 : 0);
		ck_assert_uint_eq(q.attr.rq_psn, i >= 2 ? 100 : 0);
		ck_assert_uint_eq(q.attr.retry_cnt, i >= 3 ? 7 : 0);
		ck_assert_uint_eq(q.attr.sq_psn, i >= 3 ? 100 : 0);
		ck_assert_uint_eq(q.max_send_wr, p.qp[0].max_send_wr);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ctl_case");
	TCase *c = tcase_create("case");
	SRunner *r;
	int failed;

	fx_eal();
	tcase_set_timeout(c, 0);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, B076__rereg_is_felt_by_traffic, 0, 3);
	tcase_add_test(c, B071__half_and_a_page_each);
	tcase_add_test(c, B096__many_connections);
	tcase_add_test(c, B131__again_at_once);
	tcase_add_test(c, B098__query_in_each_state);
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
