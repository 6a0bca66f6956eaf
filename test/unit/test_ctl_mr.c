/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions of every kind of memory, and what is refused. */
#include "ctl_objects.h"

#define RW (RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE | RING_ACCESS_REMOTE_READ)
#define LEN 8192

static uint32_t
dereg(uint32_t lkey)
{
	return (uint32_t)fx_handle(&cl, RING_CTRL_DEREG_MR, lkey);
}

/* A WRITE of one byte more than a packet from `from` to `to`, by keys. */
static void
write_and_check(struct pair *p, uint8_t *from, uint32_t lkey, uint8_t *to, uint32_t rkey)
{
	struct ring_wqe w = {.opcode = RING_WR_RDMA_WRITE, .flags = RING_WR_SIGNALED,
		.num_slots = 1, .num_sge = 1};
	const uint32_t len = 1025;

	for (uint32_t i = 0; i < len; i++)
		from[i] = (uint8_t)(i * 7 + 1);
	w.rkey = rkey;
	w.remote_addr = (uintptr_t)to;
	w.sge[0] = (struct ring_sge){.addr = (uintptr_t)from, .length = len, .lkey = lkey};
	post_send(p, 0, 0, &w);
	ck_assert_uint_eq(wait_cqes(p, 1)->qpn_status >> 24, 0);
	ck_assert_mem_eq(from, to, len);
}

static void
round_trip(uint8_t *mem, uint32_t how)
{
	struct ring_ctrl_reg_mr_rep a, b;
	struct pair p;

	make_pair(&p);
	connect_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, mem, LEN, RW, &a), 0);
	ck_assert_uint_eq(a.how, how);
	ck_assert_int_eq(reg_mr(p.pd, mem + LEN / 2, LEN / 2, RW, &b), 0);
	write_and_check(&p, mem, a.lkey, mem + LEN / 2, b.rkey);
	ck_assert_uint_eq(dereg(a.lkey), 0);
	ck_assert_uint_eq(dereg(b.lkey), 0);
}

START_TEST(arena)
{
	round_trip(make_mem(LEN), RING_MR_ARENA);
}
END_TEST

/* Mapped through map_files, which takes CAP_CHECKPOINT_RESTORE or root. */
START_TEST(memfd)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	uint8_t *p;

	if (geteuid() != 0) {
		printf("memfd: skipped, needs root\n");
		close(fd);
		return;
	}
	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	round_trip(p, RING_MR_MAPPED);
	munmap(p, LEN);
	close(fd);
}
END_TEST

START_TEST(shared_anonymous)
{
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	round_trip(p, geteuid() == 0 ? RING_MR_MAPPED : RING_MR_COPIED);
	munmap(p, LEN);
}
END_TEST

START_TEST(heap__by_copiers)
{
	uint8_t *p = malloc(LEN);

	round_trip(p, RING_MR_COPIED);
	free(p);
}
END_TEST

/* A memfd that the client may only read gives no way to write it. */
START_TEST(read_only__no_write)
{
	struct ring_ctrl_reg_mr_rep rep;
	int fd = memfd_create("t", MFD_CLOEXEC), ro;
	uint32_t pd = make_pd();
	char name[64];
	void *p;

	ck_assert_int_eq(ftruncate(fd, LEN), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ro = open(name, O_RDONLY);
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, ro, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(reg_mr(pd, p, LEN, RW, &rep), -EFAULT);
	ck_assert_int_eq(reg_mr(pd, p, LEN, RING_ACCESS_REMOTE_READ, &rep), 0);
	ck_assert_uint_eq(dereg(rep.lkey), 0);
	munmap(p, LEN);
	close(ro);
	close(fd);
}
END_TEST

START_TEST(holes__refused)
{
	struct ring_ctrl_reg_mr_rep rep;
	uint32_t pd = make_pd();
	uint8_t *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);

	munmap(p + 4096, 4096);
	ck_assert_int_eq(reg_mr(pd, p, 3 * 4096, RW, &rep), -EFAULT);
	ck_assert_int_eq(reg_mr(pd, (void *)64, 4096, RW, &rep), -EFAULT);
	ck_assert_int_eq(reg_mr(pd, (void *)-4096L, 8192, RW, &rep), -EINVAL); /* wraps */
	ck_assert_int_eq(reg_mr(pd, p, 0, RW, &rep), -EINVAL);
	ck_assert_int_eq(reg_mr(pd, p, 4096, RING_ACCESS_REMOTE_WRITE, &rep), -EINVAL); /* C10-74 */
	ck_assert_int_eq(reg_mr(pd, p, 4096, 1 << 14, &rep), -EINVAL);
	munmap(p, 4096);
	munmap(p + 2 * 4096, 4096);
}
END_TEST

/* B077: hints are accepted. */
START_TEST(relaxed_ordering__accepted)
{
	struct ring_ctrl_reg_mr_rep rep;
	uint32_t pd = make_pd();

	ck_assert_int_eq(reg_mr(pd, make_mem(64), 64, RW | 1 << 20, &rep), 0);
}
END_TEST

/* B173: nothing is taken away under what still uses it. */
START_TEST(memory__busy_while_registered)
{
	struct ring_ctrl_alloc_mem_req mem = {.size = 100, .align = 64};
	struct ring_ctrl_alloc_mem_rep memr;
	struct ring_ctrl_free_mem_req fr;
	struct ring_ctrl_reg_mr_rep rep;
	uint32_t pd = make_pd();

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MEM, &mem, &memr), 0);
	fr.loc = memr.loc;
	ck_assert_int_eq(reg_mr(pd, fx_ptr(&cl, memr.loc), 100, RW, &rep), 0);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_FREE_MEM, &fr, NULL), -EBUSY);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, pd), -EBUSY);
	ck_assert_uint_eq(dereg(rep.lkey), 0);
	ck_assert_uint_eq(dereg(rep.lkey), (uint32_t)-EINVAL);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_FREE_MEM, &fr, NULL), 0);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_FREE_MEM, &fr, NULL), -EINVAL);
}
END_TEST

START_TEST(rereg__new_key_or_as_before)
{
	struct ring_ctrl_rereg_mr_req req = {.what = RING_REREG_ACCESS};
	struct ring_ctrl_reg_mr_rep rep, again;
	uint32_t pd = make_pd();

	ck_assert_int_eq(reg_mr(pd, make_mem(4096), 4096, RW, &rep), 0);
	req.lkey = rep.lkey;
	req.access = RING_ACCESS_REMOTE_WRITE; /* without local write: refused */
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, &again), -EINVAL);
	req.access = RING_ACCESS_REMOTE_READ;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, &again), 0);
	ck_assert_uint_ne(again.lkey, rep.lkey);
	ck_assert_uint_eq(dereg(rep.lkey), (uint32_t)-EINVAL);
	ck_assert_uint_eq(dereg(again.lkey), 0);
}
END_TEST

/* No room for the new region: the old one stays, and can be deregistered. */
static void
rereg_at_quota(uint8_t *mem)
{
	struct ring_ctrl_rereg_mr_req req = {.what = RING_REREG_ACCESS,
		.access = RING_ACCESS_REMOTE_READ};
	struct ring_ctrl_reg_mr_rep rep, again;
	uint32_t quota = fx_dev->cfg.quota_mrs;

	ck_assert_int_eq(reg_mr(make_pd(), mem, 4096, RW, &rep), 0);
	req.lkey = rep.lkey;
	fx_dev->cfg.quota_mrs = 1;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &req, &again), -EDQUOT);
	fx_dev->cfg.quota_mrs = quota;
	ck_assert_uint_eq(dereg(rep.lkey), 0);
}

START_TEST(rereg__over_quota)
{
	uint8_t *heap = malloc(4096);

	rereg_at_quota(make_mem(4096));
	rereg_at_quota(heap);
	free(heap);
}
END_TEST

START_TEST(windows)
{
	struct ring_ctrl_alloc_mw_req req = {.pd = make_pd(), .type = RING_MW_TYPE_2};
	struct ring_ctrl_alloc_mw_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MW, &req, &rep), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, rep.handle), -EINVAL);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_MW, rep.handle), 0);
	req.type = RING_MW_TYPE_2A;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MW, &req, &rep), 0);
	req.type = 4;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MW, &req, &rep), -EINVAL);
	req.type = 0;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MW, &req, &rep), -EINVAL);
}
END_TEST

/* A uid's share is half of what there is when nothing else was said, windows included. */
START_TEST(quota__half_by_default)
{
	struct ring_ctrl_alloc_mw_req req = {.pd = make_pd(), .type = RING_MW_TYPE_2};
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	struct ring_ctrl_query_device_rep dev;
	struct ring_ctrl_empty_req none = {0};
	uint32_t count = u->count[CTL_MR];

	ck_assert_uint_eq(cl.hello.quota_mr, 2048);
	ck_assert_uint_eq(cl.hello.quota_qp, 2048);
	ck_assert_uint_eq(cl.hello.quota_cq, 2048);
	ck_assert_uint_eq(cl.hello.quota_pd, 2048);
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_DEVICE, &none, &dev), 0);
	ck_assert_uint_eq(dev.max_mr, 2048);
	u->count[CTL_MR] = 2048;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MW, &req, NULL), -EDQUOT);
	u->count[CTL_MR] = count;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MW, &req, NULL), 0);
}
END_TEST

#define PENDING 64

static void
send_many(const struct ring_ctrl_reg_mr_req *req)
{
	struct ring_ctrl_reg_mr_req all[PENDING];

	for (int i = 0; i < PENDING; i++)
		all[i] = *req;
	ck_assert_int_eq(fx_send(&cl, RING_CTRL_REG_MR, 77, all, PENDING), 0);
	worker_ctl_poll(fx_dev, 0); /* what the helper has done is seen in the next */
}

/* Regions whose memory is still looked at count, and so does what looking has open: once. */
START_TEST(pending__counted)
{
	uint8_t *p = malloc(LEN);
	struct ring_ctrl_reg_mr_req req = {.pd = make_pd(), .addr = (uintptr_t)p,
		.iova = (uintptr_t)p, .length = LEN, .access = RW};
	struct ctl_user *u = LIST_FIRST(&fx_dev->users);
	uint32_t alone = u->fds, keys[10];

	fx_dev->cfg.quota_mrs = u->count[CTL_MR] + 10;
	send_many(&req);
	ck_assert_uint_eq(u->registering, 10);
	ck_assert_uint_eq(u->fds, alone + MAPMEM_FDS);
	ck_assert(fx_wait(&cl, 77));
	for (int i = 0; i < PENDING; i++) {
		const struct ring_ctrl_reg_mr_rep *r = ring_ctrl_body(cl.buf);

		ck_assert_int_eq(r[i].status, i < 10 ? 0 : -EDQUOT);
		if (i < 10)
			keys[i] = r[i].lkey;
	}
	ck_assert_uint_eq(u->registering, 0);
	ck_assert_uint_eq(u->fds, alone);
	ck_assert(TAILQ_FIRST(&fx_dev->clients)->lane != NULL);
	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(dereg(keys[i]), 0);
	fx_dev->cfg.quota_fds = alone + MAPMEM_FDS - 1;
	ck_assert_int_eq(reg_mr(req.pd, p, LEN, RW, NULL), -EDQUOT);
	ck_assert_uint_eq(u->registering, 0);
	ck_assert_uint_eq(u->fds, alone);
	free(p);
}
END_TEST

FX_MAIN("ctl_mr", setup, teardown, arena, memfd, shared_anonymous, heap__by_copiers,
	read_only__no_write, holes__refused, relaxed_ordering__accepted,
	memory__busy_while_registered, rereg__new_key_or_as_before, rereg__over_quota,
	windows, quota__half_by_default, pending__counted)
