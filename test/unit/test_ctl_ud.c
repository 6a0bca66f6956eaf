/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD by the control thread: address handles and their waits, QPs, groups and their limits; and
 * datagrams between two QPs of a client, by the hairpin and by a group.
 */
#include "ctl_objects.h"
#include "net_group.h"
#include "ring_arm.h"
#include "roce_ah.h"
#include "roce_mcast.h"

#define QKEY 0x1234u
#define GRH 40u

static struct ring_ctrl_av
av_to(const uint8_t *gid)
{
	struct ring_ctrl_av av = {.port = 1, .is_global = 1, .sgid_index = 1, .hop_limit = 64};

	memcpy(av.dgid.raw, gid, 16);
	return av;
}

static const uint8_t own[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
static const uint8_t other[16] = {[10] = 0xff, 0xff, 192, 0, 2, 9};
static const uint8_t group[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};

static int
make_ah(uint32_t pd, const uint8_t *gid, uint32_t *handle)
{
	struct ring_ctrl_create_ah_req req = {.av = av_to(gid), .pd = pd};
	struct ring_ctrl_handle_rep rep = {0};
	int err = fx_call(&cl, RING_CTRL_CREATE_AH, &req, &rep);

	*handle = rep.handle;
	return err;
}

static int
mcast(unsigned int op, uint32_t qpn, const uint8_t *gid)
{
	struct ring_ctrl_mcast_req req = {.qpn = qpn};

	memcpy(req.gid.raw, gid, 16);
	return fx_call(&cl, op, &req, NULL);
}

static void
ud_pair(struct pair *p)
{
	struct ring_ctrl_qp_attr a = {.port = 1, .qkey = QKEY};

	make_pair_of(p, make_pd(), RING_QPT_UD);
	for (int i = 0; i < 2; i++) {
		a.state = RING_QPS_INIT;
		ck_assert_int_eq(modify(p->qpn[i], RING_QP_STATE | RING_QP_PORT |
			RING_QP_PKEY_INDEX | RING_QP_QKEY, &a, NULL), 0);
		a.state = RING_QPS_RTR;
		ck_assert_int_eq(modify(p->qpn[i], RING_QP_STATE, &a, NULL), 0);
		a.state = RING_QPS_RTS;
		ck_assert_int_eq(modify(p->qpn[i], RING_QP_STATE | RING_QP_SQ_PSN, &a, NULL), 0);
	}
}

/* ---- handles ---------- */

START_TEST(ah__made_and_destroyed)
{
	uint32_t pd = make_pd(), a, b, bad;

	ck_assert_int_eq(make_ah(pd, own, &a), 0);
	ck_assert_int_eq(make_ah(pd, group, &b), 0);
	ck_assert_uint_ne(a, b);
	ck_assert_uint_eq(roce_ah_count(fx_dev->sh.ahs), 2);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, pd), -EBUSY);
	ck_assert_int_eq(make_ah(pd + 1000, own, &bad), -EINVAL);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_AH, a), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_AH, a), -EINVAL);
	ck_assert_uint_eq(roce_ah_count(fx_dev->sh.ahs), 1);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_AH, b), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, pd), 0);
}
END_TEST

/* Families that do not fit, and no address at all (B186). */
START_TEST(ah__refused)
{
	static const uint8_t none[16], v6group[16] = {0xff, 0x0e, [15] = 1};
	uint32_t pd = make_pd(), h;

	ck_assert_int_eq(make_ah(pd, none, &h), -EINVAL);
	ck_assert_int_eq(make_ah(pd, v6group, &h), -EINVAL);
	ck_assert_uint_eq(roce_ah_count(fx_dev->sh.ahs), 0);
}
END_TEST

START_TEST(ah__waits_for_the_neighbour)
{
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 9}};
	struct ring_ctrl_create_ah_req req = {.av = av_to(other), .pd = make_pd()};
	struct net_ip ip = net_ip_from_bytes(other);

	ck_assert_int_eq(fx_send(&cl, RING_CTRL_CREATE_AH, 500, &req, 1), 0);
	for (int i = 0; i < 5; i++)
		fx_step();
	ck_assert(!fx_recv(&cl));
	ck_assert_uint_eq(roce_ah_count(fx_dev->sh.ahs), 0);
	net_neigh_set_static(fx_dev->port[0].neighs, &ip, 0, &mac);
	ck_assert(fx_wait(&cl, 500));
	ck_assert_int_eq(*(int32_t *)ring_ctrl_body(cl.buf), 0);
	ck_assert_uint_eq(roce_ah_count(fx_dev->sh.ahs), 1);
	ck_assert_uint_eq(LIST_FIRST(&fx_dev->users)->resolves, 0);
}
END_TEST

/* Its client dies meanwhile, or takes the PD away. */
START_TEST(ah__not_waited_for)
{
	struct ring_ctrl_create_ah_req req = {.av = av_to(other), .pd = make_pd()};
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 9}};
	struct net_ip ip = net_ip_from_bytes(other);

	ck_assert_int_eq(fx_send(&cl, RING_CTRL_CREATE_AH, 500, &req, 1), 0);
	fx_step();
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, req.pd), 0);
	req.pd = make_pd();
	ck_assert_int_eq(fx_send(&cl, RING_CTRL_CREATE_AH, 501, &req, 1), 0);
	fx_step();
	ck_assert_uint_eq(LIST_FIRST(&fx_dev->users)->resolves, 2);
	fx_close(&cl);
	while (fx_dev->num_clients != 0)
		fx_step();
	ck_assert_uint_eq(roce_ah_count(fx_dev->sh.ahs), 0);
	net_neigh_set_static(fx_dev->port[0].neighs, &ip, 0, &mac);
	fx_step();
}
END_TEST

/* Its object cannot be kept: no handle is left behind, nor was there one to be found. */
START_TEST(ah__object_refused)
{
	uint32_t pd = make_pd(), a, b, bad;
	struct ctl_map_node taken;

	ck_assert_int_eq(make_ah(pd, own, &a), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_AH, a), 0);
	ck_assert_int_eq(make_ah(pd, own, &b), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_AH, b), 0);
	/* of the same slot, whose next number is as far off again */
	ck_assert_int_eq(ctl_map_add(&fx_dev->objs[CTL_AH], &taken, b + (b - a)), 0);
	ck_assert_int_eq(make_ah(pd, own, &bad), -EEXIST);
	ctl_map_del(&fx_dev->objs[CTL_AH], &taken);
	ck_assert_uint_eq(roce_ah_count(fx_dev->sh.ahs), 0);
	ck_assert_uint_eq(LIST_FIRST(&fx_dev->users)->resolves, 0);
	ck_assert_int_eq(make_ah(pd, own, &bad), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_AH, bad), 0);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DEALLOC_PD, pd), 0);
}
END_TEST

/* ---- datagrams ---------- */

static void
send_to(struct pair *p, uint32_t index, uint32_t ah, uint32_t qpn)
{
	struct ring_wqe w = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED | RING_WR_INLINE,
		.num_slots = 1, .inline_len = 5, .ah = ah, .remote_qpn = qpn, .qkey = QKEY};

	memcpy(w.data, "hello", 5);
	post_send(p, 0, index, &w);
}

/* All completions that there are after some turns, by a bit a QP of receives; sends add 256. */
static unsigned int
completions(struct pair *p)
{
	struct ring_cq_daemon *cqd = fx_ptr(&cl, p->cq.daemon);
	const struct ring_cqe *e;
	unsigned int sum = 0;

	for (int i = 0; i < 200; i++)
		fx_step();
	for (uint32_t s = 0; s < atomic_load(&cqd->num_sub); s++) {
		e = fx_ptr(&cl, RING_LOC(cqd->sub[s].arena, cqd->sub[s].offset));
		for (; atomic_load(&e->tag) & RING_CQE_PHASE; e++) {
			ck_assert_uint_eq(e->qpn_status >> 24, 0);
			if (!(e->tag & RING_CQE_RECV))
				sum += 256;
			else
				sum += (e->qpn_status & 0xffffff) == p->qpn[0] ? 1 : 16;
			if (e->tag & RING_CQE_RECV)
				ck_assert_uint_eq(e->byte_len, GRH + 5);
		}
	}
	return sum;
}

START_TEST(ud__to_an_own_address)
{
	struct ring_ctrl_reg_mr_rep mr;
	uint8_t *mem = make_mem(4096);
	struct pair p;
	uint32_t ah;

	ud_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, mem, 4096, RING_ACCESS_LOCAL_WRITE, &mr), 0);
	ck_assert_int_eq(make_ah(p.pd, own, &ah), 0);
	post_recv(&p, 1, 0, mem, 512, mr.lkey);
	send_to(&p, 0, ah, p.qpn[1]);
	ck_assert_uint_eq(completions(&p), 256 + 16);
	ck_assert_mem_eq(mem + GRH, "hello", 5);
	ck_assert_mem_eq(mem + 20 + 12, own + 12, 4);
	ck_assert_mem_eq(mem + 20 + 16, own + 12, 4);
}
END_TEST

/*
 * To a group of both QPs: a copy for each, though the port brings the frame back, too (C-65).
 * The QPs may be on two workers.
 */
START_TEST(ROCE_C_65__to_a_group)
{
	struct ring_ctrl_reg_mr_rep mr;
	uint8_t *mem = make_mem(4096);
	struct pair p;
	uint32_t ah;

	ud_pair(&p);
	ck_assert_int_eq(reg_mr(p.pd, mem, 4096, RING_ACCESS_LOCAL_WRITE, &mr), 0);
	ck_assert_int_eq(make_ah(p.pd, group, &ah), 0);
	ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, p.qpn[0], group), 0);
	ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, p.qpn[1], group), 0);
	for (uint32_t i = 0; i < 2; i++) {
		post_recv(&p, (int)i, 0, mem + 1024 * i, 512, mr.lkey);
		post_recv(&p, (int)i, 1, mem + 1024 * i + 512, 512, mr.lkey);
	}
	send_to(&p, 0, ah, 0xffffff);
	ck_assert_uint_eq(completions(&p), 256 + 16 + 1);
	ck_assert_mem_eq(mem + GRH, "hello", 5);
	ck_assert_mem_eq(mem + 1024 + GRH, "hello", 5);
	ck_assert_int_eq(mcast(RING_CTRL_DETACH_MCAST, p.qpn[0], group), 0);
	send_to(&p, 1, ah, 0xffffff);
	ck_assert_uint_eq(completions(&p), 2 * (256 + 16) + 1);
}
END_TEST

/* ---- groups ---------- */

static uint32_t
memberships(void)
{
	return net_groups_list(fx_dev->port[0].groups, NULL, 0);
}

START_TEST(mcast__attached_and_gone)
{
	uint32_t before = memberships();
	struct pair p;

	ud_pair(&p);
	ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, p.qpn[0], group), 0);
	ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, p.qpn[0], group), 0); /* once is enough */
	ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, p.qpn[1], group), 0);
	ck_assert_uint_eq(memberships(), before + 1);
	ck_assert_uint_eq(roce_mcast_groups(fx_dev->sh.mcast), 1);
	ck_assert_int_eq(mcast(RING_CTRL_DETACH_MCAST, p.qpn[0], group), 0);
	ck_assert_int_eq(mcast(RING_CTRL_DETACH_MCAST, p.qpn[0], group), -EINVAL);
	ck_assert_uint_eq(memberships(), before + 1);
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p.qpn[1]), 0);
	ck_assert_uint_eq(memberships(), before);
	ck_assert_uint_eq(roce_mcast_groups(fx_dev->sh.mcast), 0);
	ck_assert_uint_eq(LIST_FIRST(&fx_dev->users)->num_mcasts, 0);
}
END_TEST

START_TEST(mcast__refused)
{
	struct pair rc, p;

	make_pair(&rc);
	ud_pair(&p);
	ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, rc.qpn[0], group), -EINVAL);
	ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, p.qpn[0], own), -EINVAL);
	ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, 0xffffff, group), -EINVAL);
	ck_assert_int_eq(mcast(RING_CTRL_DETACH_MCAST, p.qpn[0], group), -EINVAL);
}
END_TEST

/* What a client may join has an end, and goes with it. */
START_TEST(mcast__limit)
{
	uint32_t before = memberships();
	uint8_t gid[16];
	struct pair p;

	ud_pair(&p);
	memcpy(gid, group, 16);
	for (uint32_t i = 0; i < CTL_MCASTS; i++) {
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, p.qpn[0], gid), 0);
	}
	gid[13] = 77;
	ck_assert_int_eq(mcast(RING_CTRL_ATTACH_MCAST, p.qpn[1], gid), -EDQUOT);
	fx_close(&cl);
	while (fx_dev->num_clients != 0)
		fx_step();
	ck_assert_uint_eq(memberships(), before);
}
END_TEST

/* The attributes of UD alone: no path, and a Q_Key (C-46). */
START_TEST(ROCE_C_46__attributes)
{
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_INIT, .port = 1};
	struct pair p;

	make_pair_of(&p, make_pd(), RING_QPT_UD);
	ck_assert_int_eq(to_init(p.qpn[0]), -EINVAL); /* access flags, no Q_Key */
	ck_assert_int_eq(modify(p.qpn[0], RING_QP_STATE | RING_QP_PORT | RING_QP_PKEY_INDEX, &a,
		NULL), -EINVAL);
	ck_assert_int_eq(modify(p.qpn[0], RING_QP_STATE | RING_QP_PORT | RING_QP_PKEY_INDEX |
		RING_QP_QKEY, &a, NULL), 0);
	a = rtr_attr(1, 1);
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, NULL), -EINVAL);
	ck_assert_int_eq(modify(p.qpn[0], RING_QP_STATE, &a, NULL), 0);
}
END_TEST

/* With QP1's Q_Key a client would be this host's connection manager to its peers. */
START_TEST(qkey__privileged)
{
	const uint32_t mask = RING_QP_STATE | RING_QP_PORT | RING_QP_PKEY_INDEX | RING_QP_QKEY;
	struct ring_ctrl_qp_attr a = {.state = RING_QPS_INIT, .port = 1, .qkey = 0x80010000};
	struct ctl_client *c = TAILQ_FIRST(&fx_dev->clients);
	uid_t uid = c->uid;
	struct pair p;

	make_pair_of(&p, make_pd(), RING_QPT_UD);
	c->uid = 1000;
	ck_assert_int_eq(modify(p.qpn[0], mask, &a, NULL), -EPERM);
	a.qkey = 0x7fffffff;
	ck_assert_int_eq(modify(p.qpn[0], mask, &a, NULL), 0);
	a.qkey = 0x80000000;
	ck_assert_int_eq(modify(p.qpn[0], RING_QP_QKEY, &a, NULL), -EPERM);
	c->uid = 0;
	ck_assert_int_eq(modify(p.qpn[0], RING_QP_QKEY, &a, NULL), 0);
	c->uid = uid;
}
END_TEST

FX_MAIN("ctl_ud", setup, teardown, ah__made_and_destroyed, ah__refused,
	ah__waits_for_the_neighbour, ah__not_waited_for, ah__object_refused, ud__to_an_own_address,
	ROCE_C_65__to_a_group, mcast__attached_and_gone, mcast__refused, mcast__limit,
	ROCE_C_46__attributes, qkey__privileged)
