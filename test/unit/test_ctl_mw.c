/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that work requests bind, as the control thread sees them: made, kept from going, gone with
 * their client; and regions that are registered anew, or on demand.
 */
#include <signal.h>

#include "ctl_objects.h"

#define RW \
	(RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ | \
		RING_ACCESS_MW_BIND)
#define LEN 8192

static uint32_t
dereg(uint32_t lkey)
{
	return (uint32_t)fx_handle(&cl, RING_CTRL_DEREG_MR, lkey);
}

static uint32_t
alloc_mw(uint32_t pd, uint32_t type)
{
	struct ring_ctrl_alloc_mw_req req = {.pd = pd, .type = type};
	struct ring_ctrl_alloc_mw_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MW, &req, &rep), 0);
	ck_assert_uint_eq(rep.handle, rep.rkey);
	return rep.handle;
}

static int
alloc_fast(uint32_t pd, uint32_t max, struct ring_ctrl_reg_mr_rep *rep)
{
	struct ring_ctrl_alloc_fast_mr_req req = {.pd = pd, .max_segs = max};

	return fx_call(&cl, RING_CTRL_ALLOC_FAST_MR, &req, rep);
}

static uint32_t
status(struct pair *p, uint32_t index, const struct ring_wqe *w)
{
	post_send(p, 0, index, w);
	return wait_cqes(p, index + 1)->qpn_status >> 24;
}

static struct ring_wqe
bind_wqe(uint32_t window, const uint8_t *at, uint64_t len, uint32_t lkey)
{
	return (struct ring_wqe){.opcode = RING_WR_BIND_MW, .flags = RING_WR_SIGNALED,
		.num_slots = 1, .rkey = (window & ~0xffu) | 9, .remote_addr = (uintptr_t)at,
		.bind = {.length = len, .mr_lkey = lkey, .access = RING_ACCESS_REMOTE_WRITE,
			.mw_key = window}};
}

static struct ring_wqe
write_wqe(const uint8_t *from, uint32_t lkey, const uint8_t *to, uint32_t rkey, uint32_t len)
{
	struct ring_wqe w = {.opcode = RING_WR_RDMA_WRITE, .flags = RING_WR_SIGNALED,
		.num_slots = 1, .num_sge = 1, .rkey = rkey, .remote_addr = (uintptr_t)to};

	w.sge[0] = (struct ring_sge){.addr = (uintptr_t)from, .length = len, .lkey = lkey};
	return w;
}

/* Bound, used by the other end, in the way of its region's end; invalidated, it is not. */
START_TEST(window__keeps_its_region)
{
	struct ring_ctrl_rereg_mr_req re = {.what = RING_REREG_ACCESS, .access = RW};
	struct ring_ctrl_reg_mr_rep mr;
	struct ring_wqe w;
	struct pair p;
	uint8_t *mem = make_mem(LEN);
	uint32_t window;

	make_pair(&p);
	connect_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, mem, LEN, RW, &mr), 0);
	window = alloc_mw(p.pd, RING_MW_TYPE_1);
	w = bind_wqe(window, mem + 4096, 64, mr.lkey);
	ck_assert_uint_eq(status(&p, 0, &w), 0);
	memset(mem, 0x5a, 64);
	w = write_wqe(mem, mr.lkey, mem + 4096, w.rkey, 64);
	ck_assert_uint_eq(status(&p, 1, &w), 0);
	ck_assert_mem_eq(mem, mem + 4096, 64);
	ck_assert_uint_eq(dereg(mr.lkey), (uint32_t)-EBUSY);
	re.lkey = mr.lkey;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &re, NULL), -EBUSY);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, p.pd), -EBUSY);
	w = write_wqe(mem, mr.lkey, mem + 4096, mr.rkey, 64); /* as before */
	ck_assert_uint_eq(status(&p, 2, &w), 0);
	/* By its handle, though its key is another now. */
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_MW, window), 0);
	ck_assert_uint_eq(dereg(mr.lkey), 0);
}
END_TEST

START_TEST(fast__kinds_and_limits)
{
	struct ring_ctrl_reg_mr_rep rep;
	struct ring_ctrl_rereg_mr_req re = {.what = RING_REREG_ACCESS};
	struct ring_ctrl_export_req ex = {.kind = RING_EXPORT_MR};
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	uint32_t pd = make_pd();
	uint64_t before = u->bytes, quota = fx_dev->cfg.quota_arena_bytes;

	ck_assert_int_eq(alloc_fast(pd, 0, &rep), -EINVAL);
	ck_assert_int_eq(alloc_fast(pd, RING_MAX_FAST_REG + 1, &rep), -EINVAL);
	ck_assert_int_eq(alloc_fast(pd + 77, 1, &rep), -EINVAL);
	ck_assert_int_eq(alloc_fast(pd, RING_MAX_FAST_REG, &rep), 0);
	ck_assert_uint_eq(rep.lkey, rep.rkey);
	ck_assert_uint_ge(u->bytes, before + RING_MAX_FAST_REG * sizeof(struct mr_seg));
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_MW, rep.lkey), -EINVAL);
	re.lkey = ex.handle = rep.lkey;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &re, NULL), -EINVAL);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_EXPORT, &ex, NULL), -EINVAL);
	ck_assert_uint_eq(dereg(rep.lkey), 0);
	ck_assert_uint_eq(u->bytes, before);
	fx_dev->cfg.quota_arena_bytes = before;
	ck_assert_int_eq(alloc_fast(pd, 1, &rep), -EDQUOT);
	fx_dev->cfg.quota_arena_bytes = quota;
}
END_TEST

START_TEST(fast__registers_a_list)
{
	struct ring_ctrl_reg_mr_rep mr, fast;
	struct ring_wqe w = {.opcode = RING_WR_FAST_REG, .flags = RING_WR_SIGNALED,
		.num_slots = 1, .remote_addr = 0x40000};
	struct pair p;
	uint8_t *mem = make_mem(LEN);
	struct ring_sge *list = (struct ring_sge *)(void *)mem;

	make_pair(&p);
	connect_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, mem, LEN, RW, &mr), 0);
	ck_assert_int_eq(alloc_fast(p.pd, 2, &fast), 0);
	list[0] = (struct ring_sge){(uintptr_t)mem + 5000, 24, mr.lkey};
	list[1] = (struct ring_sge){(uintptr_t)mem + 4096, 40, mr.lkey};
	w.rkey = (fast.lkey & ~0xffu) | 1;
	w.fast_reg.length = 64;
	w.fast_reg.access = RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE;
	w.fast_reg.list_lkey = mr.lkey;
	w.fast_reg.list_addr = (uintptr_t)mem;
	w.fast_reg.list_len = 2;
	ck_assert_uint_eq(status(&p, 0, &w), 0);
	memset(mem + 64, 0x77, 64);
	w = write_wqe(mem + 64, mr.lkey, (uint8_t *)0x40000, w.rkey, 64);
	ck_assert_uint_eq(status(&p, 1, &w), 0);
	ck_assert_mem_eq(mem + 5000, mem + 64, 24);
	ck_assert_mem_eq(mem + 4096, mem + 64, 40);
	ck_assert_uint_eq(dereg(mr.lkey), (uint32_t)-EBUSY);
	ck_assert_uint_eq(dereg(fast.lkey), 0);
	ck_assert_uint_eq(dereg(mr.lkey), 0);
}
END_TEST

/* A client with bound windows and keys goes: teardown() finds nothing left. */
START_TEST(death__with_windows)
{
	struct ring_ctrl_reg_mr_rep mr, fast;
	struct ring_wqe w;
	struct pair p;
	uint8_t *mem = make_mem(LEN);

	make_pair(&p);
	connect_pair(&p);
	for (uint32_t i = 0; i < 6; i++) { /* a region before and behind each window */
		ck_assert_int_eq(reg_mr(p.pd, mem, LEN, RW, &mr), 0);
		w = bind_wqe(alloc_mw(p.pd, 1 + i % 3), mem, 64, mr.lkey);
		ck_assert_uint_eq(status(&p, i, &w), 0);
	}
	ck_assert_int_eq(alloc_fast(p.pd, 2, &fast), 0);
}
END_TEST

/* Another context of the domain may use a region, but not keep it from its owner by a window. */
START_TEST(import__no_window_on_it)
{
	struct ring_ctrl_export_req ex = {.kind = RING_EXPORT_PD, .handle = make_pd()};
	struct ring_ctrl_import_req im = {.kind = RING_EXPORT_PD};
	static struct fx_client other, tmp;
	struct ring_ctrl_export_rep token;
	struct ring_ctrl_import_rep rep;
	struct ring_ctrl_reg_mr_rep mr;
	struct ring_wqe w;
	struct pair p;
	uint8_t *mem = make_mem(64);

	ck_assert_int_eq(reg_mr(ex.handle, mem, 64, RW, &mr), 0);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_EXPORT, &ex, &token), 0);
	memcpy(im.token, token.token, sizeof(im.token));
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	ck_assert_int_eq(fx_call(&other, RING_CTRL_IMPORT, &im, &rep), 0);
	memcpy(&tmp, &cl, sizeof(tmp)); /* the helpers speak as `cl` */
	memcpy(&cl, &other, sizeof(tmp));
	make_pair_in(&p, rep.handle);
	connect_pair(&p);
	w = bind_wqe(alloc_mw(p.pd, RING_MW_TYPE_2), mem, 64, mr.lkey);
	ck_assert_uint_eq(status(&p, 0, &w), 6 /* MW_BIND_ERR */);
	fx_close(&cl);
	memcpy(&cl, &tmp, sizeof(tmp));
	ck_assert_uint_eq(dereg(mr.lkey), 0);
}
END_TEST

/* ---- registered anew ---------- */

/* The answer comes when the old key is gone from the table, of whatever memory. */
static void
rereg(uint8_t *old, uint8_t *new, uint32_t how)
{
	struct ring_ctrl_rereg_mr_req req = {
		.what = RING_REREG_TRANSLATION | RING_REREG_PD | RING_REREG_ACCESS,
		.addr = (uintptr_t)new, .length = LEN / 2, .iova = 0,
		.access = RING_ACCESS_LOCAL_WRITE | RING_ACCESS_ZERO_BASED};
	struct ring_ctrl_reg_mr_rep mr, again;
	uint32_t pd = make_pd(), before;

	ck_assert_int_eq(reg_mr(pd, old, LEN, RW, &mr), 0);
	before = mr_table_count(fx_dev->sh.mrs);
	req.lkey = mr.lkey;
	req.pd = make_pd();
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, &again), 0);
	ck_assert_uint_eq(mr_table_count(fx_dev->sh.mrs), before);
	ck_assert_uint_eq(again.how, how);
	ck_assert_uint_eq(again.lkey, again.rkey);
	ck_assert_uint_ne(again.lkey, mr.lkey);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, pd), 0); /* it is in the other */
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, req.pd), -EBUSY);
	ck_assert_uint_eq(dereg(mr.lkey), (uint32_t)-EINVAL);
	ck_assert_uint_eq(dereg(again.lkey), 0);
}

START_TEST(rereg__answered_when_the_old_is_gone)
{
	uint8_t *heap = malloc(LEN), *arena = make_mem(LEN);

	rereg(arena, arena + 64, RING_MR_ARENA);
	rereg(heap, heap + 64, RING_MR_COPIED);
	rereg(heap, arena, RING_MR_ARENA);
	rereg(arena, heap, RING_MR_COPIED);
	free(heap);
}
END_TEST

START_TEST(rereg__one_thing_at_a_time)
{
	struct ring_ctrl_rereg_mr_req req = {.what = RING_REREG_TRANSLATION};
	struct ring_ctrl_reg_mr_rep mr;
	struct ring_ctrl_export_req ex = {.kind = RING_EXPORT_MR};
	struct ring_ctrl_export_rep token;
	struct ring_ctrl_import_req im = {.kind = RING_EXPORT_MR};
	struct ring_ctrl_import_rep got;
	uint8_t *mem = make_mem(LEN);
	uint32_t pd = make_pd();

	ck_assert_int_eq(reg_mr(pd, mem, LEN, RW, &mr), 0);
	req.lkey = mr.lkey;
	req.addr = (uintptr_t)mem + 4096;
	req.length = 64;
	req.iova = 0x1000;
	req.access = RING_ACCESS_REMOTE_WRITE; /* not meant, so not looked at */
	req.pd = 12345;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, &mr), 0);
	ex.handle = mr.lkey;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_EXPORT, &ex, &token), 0);
	memcpy(im.token, token.token, sizeof(im.token));
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_IMPORT, &im, &got), 0);
	ck_assert_uint_eq(got.length, 64);
	ck_assert_uint_eq(got.iova, 0x1000);
	ck_assert_uint_eq(got.access, RW);
	req.lkey = mr.lkey;
	req.what = RING_REREG_PD;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, NULL), -EINVAL);
	req.what = 0;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, NULL), -EINVAL);
	req.what = 8;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, NULL), -EINVAL);
	req.what = RING_REREG_ACCESS;
	req.access = RING_ACCESS_ZERO_BASED; /* it has an iova */
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, NULL), -EINVAL);
	/* and the token of the old one means nothing any more */
	req.access = RW;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, &mr), 0);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_IMPORT, &im, &got), -ENOENT);
	ck_assert_uint_eq(dereg(mr.lkey), 0);
}
END_TEST

/* ---- on demand ---------- */

/* Registered before there is memory; what is there when it is accessed counts. */
START_TEST(on_demand__memory_that_comes_later)
{
	const uint32_t access = RW | RING_ACCESS_ON_DEMAND;
	struct ring_ctrl_reg_mr_rep far, near;
	struct ring_wqe w;
	struct pair p;
	uint8_t *mem = make_mem(64);
	uint8_t *at = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	make_pair(&p);
	connect_pair(&p);
	munmap(at, LEN);
	ck_assert_int_eq(reg_mr(p.pd, at, LEN, RW, &far), -EFAULT);
	ck_assert_int_eq(reg_mr(p.pd, at, LEN, access, &far), 0);
	ck_assert_uint_eq(far.how, RING_MR_COPIED);
	ck_assert_int_eq(reg_mr(p.pd, mem, 64, access, &near), 0);
	ck_assert_uint_eq(near.how, RING_MR_ARENA);
	ck_assert_ptr_eq(mmap(at, LEN, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), at);
	memset(mem, 0x33, 64);
	w = write_wqe(mem, near.lkey, at + 100, far.rkey, 64);
	ck_assert_uint_eq(status(&p, 0, &w), 0);
	ck_assert_mem_eq(at + 100, mem, 64);
	munmap(at, LEN);
	ck_assert_uint_ne(status(&p, 1, &w), 0);
	ck_assert_uint_eq(dereg(far.lkey), 0);
}
END_TEST

START_TEST(access__what_is_refused)
{
	struct ring_ctrl_reg_mr_req req = {.pd = make_pd(), .access = RW | RING_ACCESS_ON_DEMAND};
	struct ring_ctrl_rereg_mr_req re = {.what = RING_REREG_ACCESS,
		.access = RW | RING_ACCESS_FLUSH_PERSISTENT};
	struct ring_ctrl_reg_mr_rep mr;
	uint8_t *mem = make_mem(64);

	/* all of the address space is not offered, nor memory that outlives the power */
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REG_MR, &req, NULL), -EOPNOTSUPP);
	ck_assert_int_eq(
		reg_mr(req.pd, mem, 64, RW | RING_ACCESS_FLUSH_PERSISTENT, &mr), -EOPNOTSUPP);
	ck_assert_int_eq(reg_mr(req.pd, mem, 64, RW | RING_ACCESS_FLUSH_GLOBAL, &mr), 0);
	re.lkey = mr.lkey;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &re, NULL), -EOPNOTSUPP);
	ck_assert_uint_eq(dereg(mr.lkey), 0);
}
END_TEST

FX_MAIN("ctl_mw", setup, teardown, window__keeps_its_region, fast__kinds_and_limits,
	fast__registers_a_list, death__with_windows, import__no_window_on_it,
	rereg__answered_when_the_old_is_gone, rereg__one_thing_at_a_time,
	on_demand__memory_that_comes_later, access__what_is_refused)
