/* SPDX-License-Identifier: BSD-3-Clause */
/* Unknown neighbours: a uid's share of what is resolved at a time, and who waits for what. */
#include <sys/epoll.h>

#include "ctl_objects.h"

static int sleeps_ms; /* that the control thread would have, the last time */

int
epoll_wait(int epfd, struct epoll_event *ev, int n, int timeout)
{
	if (fx_dev != NULL && epfd == fx_dev->epfd) /* not EAL's thread */
		sleeps_ms = timeout;
	return epoll_pwait(epfd, ev, n, timeout, NULL);
}

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
	ck_assert(!TAILQ_EMPTY(&user()->line.all));
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
	ck_assert_ptr_eq(TAILQ_FIRST(&user()->line.all),
		TAILQ_LAST(&user()->line.all, ctl_neigh_wait_list));
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
	ck_assert(TAILQ_EMPTY(&user()->line.all));
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

static void
resolve_many(uint8_t last_byte, uint32_t n)
{
	uint32_t before = user()->resolves;

	for (uint32_t i = 0; i < n; i++)
		resolve(&cl, 1000 + i, last_byte, 0);
	while (user()->resolves != before + n)
		fx_step();
}

/* However many wait for one neighbour: others have their turn between them. */
START_TEST(told__a_turn_at_a_time)
{
	resolve_many(60, 2 * CTL_NEIGH_TURN + 10);
	answer(60);
	worker_ctl_poll(fx_dev, 0);
	ck_assert_uint_eq(user()->resolves, CTL_NEIGH_TURN + 10);
	ck_assert(ctl_neigh_untold(fx_dev));
	worker_ctl_poll(fx_dev, -1);
	ck_assert_int_eq(sleeps_ms, 0);
	ck_assert_uint_eq(user()->resolves, 10);
	worker_ctl_poll(fx_dev, 0);
	ck_assert_uint_eq(user()->resolves, 0);
	worker_ctl_poll(fx_dev, 0);
	ck_assert(!ctl_neigh_untold(fx_dev));
	for (uint32_t i = 0; i < 2 * CTL_NEIGH_TURN + 10; i++)
		expect_reply(&cl, 1000 + i, 0);
}
END_TEST

/* Whose turn has come and who goes without using it does not keep it. */
START_TEST(line__turn_of_one_that_goes)
{
	fx_dev->neigh_share = 1;
	fx_connect(&other);
	ck_assert_int_eq(fx_hello(&other), 0);
	resolve_many(70, CTL_NEIGH_TURN + 10);
	resolve(&other, 100, 71, 0);
	resolve(&cl, 101, 72, 0);
	answer(70);
	worker_ctl_poll(fx_dev, 0);
	ck_assert_uint_eq(user()->woken, 1);
	ctl_resolves_cancel(TAILQ_LAST(&fx_dev->clients, ctl_client_list));
	ck_assert_uint_eq(user()->woken, 1);
	worker_ctl_poll(fx_dev, 0);
	ck_assert_uint_eq(user()->woken, 0);
	ck_assert(!asked_for(71) && asked_for(72));
	answer(72);
	expect_reply(&cl, 101, 0);
	fx_close(&other);
	fx_settle(1);
}
END_TEST

FX_MAIN("ctl_neigh", setup, teardown, share__the_rest_stands_in_line,
	share__outlives_a_time_limit, share__modify_in_line, share__death_in_line,
	share__outlives_its_clients, told__a_turn_at_a_time, line__turn_of_one_that_goes)
