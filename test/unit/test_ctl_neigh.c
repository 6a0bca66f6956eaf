/* SPDX-License-Identifier: BSD-3-Clause */
/* Unknown neighbours: a uid's share of what is resolved at a time, and who waits for what. */
#include "ctl_objects.h"

static struct fx_client other;

static struct net_ip
ip_of(uint8_t last_byte)
{
	return net_ip_from_bytes(rtr_attr(0, last_byte).av.dgid.raw);
}

static void
resolve(struct fx_client *c, uint32_t id, uint8_t last_byte, uint32_t timeout_ms)
{
	struct ring_ctrl_resolve_req req = {.timeout_ms = timeout_ms};

	req.av = rtr_attr(0, last_byte).av;
	ck_assert_int_eq(fx_send(c, RING_CTRL_RESOLVE, id, &req, 1), 0);
	fx_step();
}

static bool
asked_for(uint8_t last_byte)
{
	struct net_ip ip = ip_of(last_byte);

	return net_neigh_find(fx_dev->port[0].neighs, &ip, 0) != NULL;
}

/* As if the host had answered. */
static void
answer(uint8_t last_byte)
{
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, last_byte}};
	struct net_ip ip = ip_of(last_byte);

	ck_assert_int_eq(net_neigh_set_static(fx_dev->port[0].neighs, &ip, 0, &mac), 0);
}

static void
expect_reply(struct fx_client *c, uint32_t id, int status)
{
	ck_assert(fx_wait(c, id));
	ck_assert_int_eq(*(int32_t *)ring_ctrl_body(c->buf), status);
}

static struct ctl_user *
user(void)
{
	return LIST_FIRST(&fx_dev->users);
}

START_TEST(share__the_rest_stands_in_line)
{
	fx_dev->neigh_share = 2;
	for (uint8_t i = 0; i < 3; i++)
		resolve(&cl, 100 + i, 10 + i, 0);
	resolve(&cl, 103, 10, 0); /* on its way already: no share is needed for it */
	ck_assert_uint_eq(user()->resolving, 2);
	ck_assert(asked_for(10) && asked_for(11) && !asked_for(12));
	ck_assert(!TAILQ_EMPTY(&user()->line));
	answer(10);
	expect_reply(&cl, 100, 0);
	expect_reply(&cl, 103, 0);
	ck_assert(asked_for(12));
	ck_assert_uint_eq(user()->resolving, 2);
	answer(12);
	expect_reply(&cl, 102, 0);
	answer(11);
	expect_reply(&cl, 101, 0);
	ck_assert_uint_eq(user()->resolving, 0);
	ck_assert_uint_eq(user()->resolves, 0);
}
END_TEST

/* Who does not wait to the end has it resolved all the same. */
START_TEST(share__outlives_a_time_limit)
{
	fx_dev->neigh_share = 1;
	resolve(&cl, 100, 20, 1);
	expect_reply(&cl, 100, -ETIMEDOUT);
	ck_assert_uint_eq(user()->resolving, 1);
	resolve(&cl, 101, 21, 1);
	ck_assert(!asked_for(21));
	expect_reply(&cl, 101, -ETIMEDOUT); /* in line, too */
	answer(20);
	fx_step();
	ck_assert_uint_eq(user()->resolving, 0);
}
END_TEST

START_TEST(share__modify_in_line)
{
	struct ring_ctrl_modify_qp_req req = {.mask = RTR_MASK};
	struct pair p;

	make_pair(&p);
	fx_dev->neigh_share = 1;
	resolve(&cl, 100, 30, 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(to_init(p.qpn[i]), 0);
		req.qpn = p.qpn[i];
		req.attr = rtr_attr(1, (uint8_t)(31 + i));
		fx_send(&cl, RING_CTRL_MODIFY_QP, 200 + (uint32_t)i, &req, 1);
	}
	fx_step();
	ck_assert(!asked_for(31) && !asked_for(32));
	ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, p.qpn[1]), 0);
	ck_assert_ptr_eq(TAILQ_FIRST(&user()->line), TAILQ_LAST(&user()->line, ctl_neigh_waits));
	answer(30);
	expect_reply(&cl, 100, 0);
	ck_assert(asked_for(31));
	answer(31);
	expect_reply(&cl, 200, 0);
	ck_assert(!asked_for(32));
}
END_TEST

/* What it has asked for is not waited for; its uid's share is still taken. */
START_TEST(share__death_in_line)
{
	fx_dev->neigh_share = 1;
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	for (uint8_t i = 0; i < 3; i++)
		resolve(&other, 100 + i, 40 + i, 0);
	ck_assert_uint_eq(user()->resolves, 3);
	fx_close(&other);
	while (fx_dev->num_clients != 1)
		fx_step();
	ck_assert_uint_eq(user()->resolves, 0);
	ck_assert_uint_eq(user()->resolving, 1);
	ck_assert(TAILQ_EMPTY(&user()->line));
	ck_assert(asked_for(40) && !asked_for(41));
	answer(40);
	fx_step();
	ck_assert_uint_eq(user()->resolving, 0);
}
END_TEST

/* Nor does it become free by coming again. */
START_TEST(share__outlives_its_clients)
{
	resolve(&cl, 100, 50, 0);
	fx_close(&cl);
	while (fx_dev->num_clients != 0)
		fx_step();
	ck_assert_uint_eq(user()->resolving, 1);
	fx_connect(&cl);
	ck_assert_int_eq(fx_hello(&cl), 0);
	ck_assert_uint_eq(user()->resolving, 1);
	ck_assert_uint_eq(user()->clients, 1);
	answer(50);
}
END_TEST

FX_MAIN("ctl_neigh", setup, teardown, share__the_rest_stands_in_line,
	share__outlives_a_time_limit, share__modify_in_line, share__death_in_line,
	share__outlives_its_clients)
