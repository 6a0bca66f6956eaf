/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains and regions that processes of a uid share: tokens, lives, and who is refused. */
#include "ctl_objects.h"

#define RW (RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE)
#define NOBODY 65534

static struct fx_client other;

/* The helpers of ctl_objects.h speak as `cl`. */
static void
change_places(void)
{
	static struct fx_client tmp;

	memcpy(&tmp, &cl, sizeof(tmp));
	memcpy(&cl, &other, sizeof(tmp));
	memcpy(&other, &tmp, sizeof(tmp));
}

static int
export(uint32_t kind, uint32_t handle, uint8_t token[16])
{
	struct ring_ctrl_export_req req = {.kind = kind, .handle = handle};
	struct ring_ctrl_export_rep rep;
	int err = fx_call(&cl, RING_CTRL_EXPORT, &req, &rep);

	if (err == 0)
		memcpy(token, rep.token, 16);
	return err;
}

static int
import(struct fx_client *c, uint32_t kind, const uint8_t token[16],
	struct ring_ctrl_import_rep *rep)
{
	struct ring_ctrl_import_req req = {.kind = kind};

	memcpy(req.token, token, 16);
	return fx_call(c, RING_CTRL_IMPORT, &req, rep);
}

/* cl's domain and region, by their tokens, at a second client. */
struct shared {
	uint32_t pd;
	uint8_t *mem;
	struct ring_ctrl_reg_mr_rep mr;
	uint8_t pd_token[16], mr_token[16];
	struct ring_ctrl_import_rep pd2, mr2;
};

static void
share(struct shared *s)
{
	s->pd = make_pd();
	s->mem = make_mem(128);
	ck_assert_int_eq(reg_mr(s->pd, s->mem, 128, RW, &s->mr), 0);
	ck_assert_int_eq(export(RING_EXPORT_PD, s->pd, s->pd_token), 0);
	ck_assert_int_eq(export(RING_EXPORT_MR, s->mr.lkey, s->mr_token), 0);
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	ck_assert_int_eq(import(&other, RING_EXPORT_PD, s->pd_token, &s->pd2), 0);
	ck_assert_int_eq(import(&other, RING_EXPORT_MR, s->mr_token, &s->mr2), 0);
}

/* A write within cl's memory, by a QP of its own pair; the completion's status. */
static uint32_t
write_there(struct pair *p, uint32_t index, const struct shared *s)
{
	struct ring_wqe w = {
		.opcode = RING_WR_RDMA_WRITE,
		.flags = RING_WR_SIGNALED,
		.num_slots = 1,
		.num_sge = 1,
		.rkey = s->mr2.rkey,
		.remote_addr = s->mr2.iova + 64,
	};

	w.sge[0] = (struct ring_sge){.addr = s->mr2.iova, .length = 64, .lkey = s->mr2.handle};
	post_send(p, 0, index, &w);
	return wait_cqes(p, index + 1)->qpn_status >> 24;
}

START_TEST(share__memory_and_domain)
{
	struct shared s;
	struct pair p;

	share(&s);
	ck_assert_uint_ne(s.pd2.handle, s.pd);
	ck_assert_uint_eq(s.mr2.handle, s.mr.lkey);
	ck_assert_uint_eq(s.mr2.rkey, s.mr.rkey);
	ck_assert_uint_eq(s.mr2.length, 128);
	ck_assert_uint_eq(s.mr2.iova, (uintptr_t)s.mem);
	ck_assert_uint_eq(s.mr2.access, RW);
	memset(s.mem, 0x5a, 64);
	change_places();
	make_pair_in(&p, s.pd2.handle);
	connect_pair(&p);
	ck_assert_uint_eq(write_there(&p, 0, &s), 0);
	ck_assert_uint_eq(s.mem[127], 0x5a);
	/* what is not one's own cannot be ended */
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, s.mr.lkey), -EINVAL);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, s.pd), -EINVAL);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, s.pd2.handle), -EBUSY);
	/* the owner takes its memory back, whoever uses it */
	change_places();
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, s.mr.lkey), 0);
	change_places();
	ck_assert_uint_ne(write_there(&p, 1, &s), 0);
	fx_close(&other);
}
END_TEST

/* The same with a domain of its own: its key is no good there. */
START_TEST(not_imported__no_access)
{
	struct shared s;
	struct pair p;

	share(&s);
	change_places();
	make_pair(&p);
	connect_pair(&p);
	ck_assert_uint_eq(write_there(&p, 0, &s), 4); /* LOC_PROT_ERR */
	fx_close(&other);
}
END_TEST

START_TEST(exporter_ends__domain_stays)
{
	struct ring_ctrl_import_rep rep;
	struct ring_ctrl_reg_mr_rep mr;
	struct shared s;
	struct pair p;

	share(&s);
	change_places();
	make_pair_in(&p, s.pd2.handle);
	connect_pair(&p);
	fx_close(&other);
	fx_settle(1);
	ck_assert_int_eq(import(&cl, RING_EXPORT_PD, s.pd_token, &rep), -ENOENT);
	ck_assert_int_eq(import(&cl, RING_EXPORT_MR, s.mr_token, &rep), -ENOENT);
	ck_assert_uint_eq(fx_dev->domains.count, 1);
	s.mem = make_mem(128);
	ck_assert_int_eq(reg_mr(s.pd2.handle, s.mem, 128, RW, &mr), 0);
	s.mr2.handle = s.mr2.rkey = mr.lkey;
	s.mr2.iova = (uintptr_t)s.mem;
	ck_assert_uint_eq(write_there(&p, 0, &s), 0);
	/* a number that somebody still has is given to nobody else */
	fx_dev->next_domain = 0;
	make_pd();
	ck_assert_uint_eq(fx_dev->domains.count, 2);
	ck_assert_uint_eq(fx_dev->next_domain, 2);
}
END_TEST

START_TEST(importer_ends__nothing_left)
{
	struct shared s;
	struct pair p;

	share(&s);
	change_places();
	make_pair_in(&p, s.pd2.handle);
	fx_close(&cl);
	change_places();
	fx_settle(1);
	ck_assert_uint_eq(fx_dev->domains.count, 1);
	ck_assert_uint_eq(fx_dev->objs[CTL_PD].count, 1);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, s.mr.lkey), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, s.pd), 0);
	ck_assert_uint_eq(fx_dev->domains.count, 0);
}
END_TEST

START_TEST(token__guessed_or_void)
{
	struct ring_ctrl_rereg_mr_req rereg = {.what = RING_REREG_ACCESS, .access = RW};
	struct ring_ctrl_reg_mr_rep again;
	struct ring_ctrl_import_rep rep;
	uint8_t token[16];
	struct shared s;

	share(&s);
	ck_assert_int_eq(export(RING_EXPORT_PD, s.pd, token), 0);
	ck_assert_int_eq(memcmp(token, s.pd_token, 16), 0);
	for (int i = 0; i < 128; i++) {
		memcpy(token, s.pd_token, 16);
		token[i / 8] ^= (uint8_t)(1 << i % 8);
		ck_assert_int_eq(import(&other, RING_EXPORT_PD, token, &rep), -ENOENT);
	}
	ck_assert_int_eq(import(&other, RING_EXPORT_MR, s.pd_token, &rep), -ENOENT);
	ck_assert_int_eq(import(&other, RING_EXPORT_PD, s.mr_token, &rep), -ENOENT);
	ck_assert_int_eq(import(&other, 4, s.mr_token, &rep), -EINVAL);
	rereg.lkey = s.mr.lkey;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_REREG_MR, &rereg, &again), 0);
	ck_assert_int_eq(import(&other, RING_EXPORT_MR, s.mr_token, &rep), -ENOENT);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEREG_MR, again.lkey), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, s.pd), 0);
	ck_assert_int_eq(import(&other, RING_EXPORT_PD, s.pd_token, &rep), -ENOENT);
	ck_assert_uint_eq(fx_dev->exports.count, 0);
	fx_close(&other);
}
END_TEST

START_TEST(export__of_what_one_has)
{
	struct ring_ctrl_alloc_mw_req mw = {.type = RING_MW_TYPE_2};
	struct ring_ctrl_alloc_mw_rep mwr;
	uint8_t token[16];
	struct shared s;

	share(&s);
	mw.pd = s.pd;
	ck_assert_int_eq(fx_call(&cl, RING_CTRL_ALLOC_MW, &mw, &mwr), 0);
	ck_assert_int_eq(export(RING_EXPORT_MR, mwr.handle, token), -EINVAL);
	ck_assert_int_eq(export(RING_EXPORT_PD, s.mr.lkey, token), -EINVAL);
	ck_assert_int_eq(export(0, s.pd, token), -EINVAL);
	change_places();
	ck_assert_int_eq(export(RING_EXPORT_PD, s.pd, token), -EINVAL);
	ck_assert_int_eq(export(RING_EXPORT_MR, s.mr.lkey, token), -EINVAL);
	ck_assert_int_eq(export(RING_EXPORT_PD, s.pd2.handle, token), 0); /* passed on */
	change_places();
	fx_close(&other);
}
END_TEST

START_TEST(import__counts_as_a_pd)
{
	struct ring_ctrl_import_rep rep;
	struct shared s;

	share(&s);
	fx_dev->cfg.quota_cqs = 3;
	ck_assert_int_eq(import(&other, RING_EXPORT_PD, s.pd_token, &rep), 0);
	ck_assert_int_eq(import(&other, RING_EXPORT_PD, s.pd_token, &rep), -EDQUOT);
	fx_close(&other);
}
END_TEST

static void
nothing(void *arg)
{
	(void)arg;
}

START_TEST(other_uid__refused)
{
	struct ring_ctrl_import_rep rep;
	struct fx_proc proc;
	struct shared s;

	if (geteuid() != 0) {
		printf("other_uid: skipped, needs root\n");
		return;
	}
	share(&s);
	fx_close(&other);
	fx_proc_start(&proc, &other, NOBODY, nothing, NULL);
	ck_assert_int_eq(import(&other, RING_EXPORT_PD, s.pd_token, &rep), -EACCES);
	ck_assert_int_eq(import(&other, RING_EXPORT_MR, s.mr_token, &rep), -EACCES);
	fx_close(&other);
	fx_proc_end(&proc);
}
END_TEST

FX_MAIN("ctl_export", setup, teardown, share__memory_and_domain, not_imported__no_access,
	exporter_ends__domain_stays, importer_ends__nothing_left, token__guessed_or_void,
	export__of_what_one_has, import__counts_as_a_pd, other_uid__refused)
