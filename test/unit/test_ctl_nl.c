/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port follows the kernel's interface that it stands on: here the loop port, told that it
 * stands on one end of a veth pair in a network namespace of the test's own. Waiting is for what
 * the kernel says, never for time.
 */
#include <stdarg.h>

#include "ctl_nl.h"
#include "ctl_objects.h"

static bool able;

static void
ip(const char *fmt, ...)
{
	char cmd[256] = "ip ";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd + 3, sizeof(cmd) - 3, fmt, ap);
	va_end(ap);
	ck_assert_msg(system(cmd) == 0, "%s", cmd);
}

static void
begin(void)
{
	setup();
	able = geteuid() == 0 && unshare(CLONE_NEWNET) == 0 &&
		system("ip link add rn0 type veth peer name rn1 2>/dev/null") == 0;
	if (!able) {
		printf("ctl_nl: skipped, needs root, network namespaces, veth and ip(8)\n");
		return;
	}
	ip("link set rn1 up");
	ip("link set rn0 up");
	ctl_nl_follow(fx_dev, 0, "rn0");
	ck_assert_uint_ne(fx_dev->port[0].ifindex, 0);
	while (fx_dev->port[0].mtu != 1500 || !fx_dev->port[0].up)
		fx_step();
	fx_recv(&cl);
	while (fx_recv(&cl) || cl.num_events > 0)
		cl.num_events = 0;
}

static void
end(void)
{
	teardown();
	if (able)
		ip("link del rn0");
}

static void
wait_event(unsigned int type)
{
	cl.num_events = 0;
	while (cl.num_events == 0 || cl.event.type != type) {
		fx_step();
		fx_recv(&cl);
	}
	ck_assert_uint_eq(cl.event.object, RING_EVENT_OF_PORT);
	ck_assert_uint_eq(cl.event.handle, 1);
}

static struct ring_ctrl_query_port_rep
query(void)
{
	struct ring_ctrl_query_port_req req = {.port = 1};
	struct ring_ctrl_query_port_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_PORT, &req, &rep), 0);
	return rep;
}

START_TEST(link__events)
{
	if (!able)
		return;
	ip("link set rn1 down");
	wait_event(RING_EVENT_PORT_ERR);
	ck_assert_int_eq(cl.event.cause, -ENETDOWN);
	ck_assert(!net_iface_get(&fx_dev->sh.iface[0])->link_up);
	ip("link set rn1 up");
	wait_event(RING_EVENT_PORT_ACTIVE);
	ck_assert(net_iface_get(&fx_dev->sh.iface[0])->link_up);
	ip("link del rn0");
	wait_event(RING_EVENT_PORT_ERR);
	able = false; /* nothing to take down */
}
END_TEST

/* B102: the link flaps under traffic: two events each time, QPs stay, and nothing fails. */
START_TEST(B102__flapping_link)
{
	struct ring_wqe w = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED, .num_slots = 1};
	struct ring_ctrl_query_qp_rep q;
	struct ring_ctrl_handle_req req = {0};
	struct pair p;

	if (!able)
		return;
	make_pair(&p);
	connect_pair(&p);
	for (uint32_t i = 0; i < 15; i++) {
		post_recv(&p, 1, i, NULL, 0, 0);
		((struct ring_rwqe *)fx_ptr(&cl, p.qp[1].rq))[i].num_sge = 0;
		ip("link set rn1 down");
		post_send(&p, 0, i, &w);
		wait_event(RING_EVENT_PORT_ERR);
		ck_assert_uint_eq(query().state, RING_PORT_DOWN);
		ip("link set rn1 up");
		wait_event(RING_EVENT_PORT_ACTIVE);
		ck_assert_uint_eq(query().state, RING_PORT_ACTIVE);
		ck_assert_uint_eq(wait_cqes(&p, 2 * i + 2)->qpn_status >> 24, 0);
	}
	for (int i = 0; i < 2; i++) {
		req.handle = p.qpn[i];
		ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &req, &q), 0);
		ck_assert_uint_eq(q.attr.state, RING_QPS_RTS);
	}
}
END_TEST

START_TEST(mtu__followed_up_to_the_buffers)
{
	if (!able)
		return;
	ck_assert_uint_eq(query().active_mtu, RING_MTU_1024);
	ip("link set rn0 mtu 700");
	while (fx_dev->port[0].mtu != 700)
		fx_step();
	ck_assert_uint_eq(query().active_mtu, RING_MTU_512);
	ck_assert_uint_eq(net_iface_get(&fx_dev->sh.iface[0])->mtu, 700);
	ip("link set rn0 mtu 65000");
	while (fx_dev->port[0].mtu == 700)
		fx_step();
	ck_assert_uint_eq(fx_dev->port[0].mtu, fx_dev->port[0].max_mtu);
}
END_TEST

START_TEST(mac__gid_change)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 77};
	struct net_ip want;
	struct pair p;

	if (!able)
		return;
	make_pair(&p);
	connect_pair(&p);
	ip("link set rn0 address 02:00:00:00:00:4d");
	wait_event(RING_EVENT_GID_CHANGE);
	ck_assert_mem_eq(fx_dev->port[0].mac, mac, 6);
	ck_assert_mem_eq(net_iface_get(&fx_dev->sh.iface[0])->mac.addr_bytes, mac, 6);
	want = net_ip_link_local(&net_iface_get(&fx_dev->sh.iface[0])->mac);
	ck_assert(net_ip_eq(&fx_dev->port[0].gids[0].ip, &want));
	ck_assert(net_iface_owns(net_iface_get(&fx_dev->sh.iface[0]), &want));
}
END_TEST

static int
lookup(const char *dst, char *via)
{
	struct net_route_hop hop;
	struct net_ip to;
	int err;

	ck_assert_int_eq(net_ip_parse(dst, &to), 0);
	err = net_route_lookup(net_route_get(&fx_dev->routes), &to, &hop);
	if (err == 0)
		net_ip_format(&hop.nexthop, via);
	return err;
}

static void
wait_route(const char *dst, const char *via)
{
	char got[NET_IP_TEXT] = "";

	while (via != NULL ? lookup(dst, got) != 0 || strcmp(got, via) != 0 : lookup(dst, got) == 0)
		fx_step();
}

START_TEST(routes__followed)
{
	char via[NET_IP_TEXT];

	if (!able)
		return;
	ck_assert_int_eq(worker_route_add(fx_dev, 0, "10.9.0.0/16", "192.0.2.9"), 0);
	ip("addr add 192.0.2.50/24 dev rn0");
	ip("route add 10.1.0.0/16 via 192.0.2.7");
	wait_route("10.1.2.3", "192.0.2.7");
	ip("route add 10.1.0.0/16 via 192.0.2.8 metric 5");
	ip("route del 10.1.0.0/16 via 192.0.2.7 metric 0");
	wait_route("10.1.2.3", "192.0.2.8"); /* what stood behind it */
	ip("route add default via 192.0.2.1");
	wait_route("203.0.113.1", "192.0.2.1");
	ip("-6 route add 2001:db8:1::/48 dev rn0");
	wait_route("2001:db8:1::5", "2001:db8:1::5");
	/* Another interface's and another table's are not ours. */
	ip("addr add 198.51.100.1/24 dev rn1");
	ip("route add 10.2.0.0/16 via 198.51.100.2");
	ip("route add 10.3.0.0/16 via 192.0.2.7 table 77");
	ip("route add 10.4.0.0/16 via 192.0.2.7");
	wait_route("10.4.0.1", "192.0.2.7");
	ck_assert_int_eq(lookup("10.2.0.1", via), 0);
	ck_assert_str_eq(via, "192.0.2.1"); /* the default */
	ck_assert_int_eq(lookup("10.3.0.1", via), 0);
	ck_assert_str_eq(via, "192.0.2.1");
	ip("addr del 192.0.2.50/24 dev rn0"); /* takes all of 192.0.2.x with it */
	wait_route("10.4.0.1", NULL);
	wait_route("203.0.113.1", NULL);
	ck_assert_int_eq(lookup("10.9.0.1", via), 0); /* the configuration's stays */
}
END_TEST

START_TEST(own_address_on_the_interface__warned)
{
	if (!able)
		return;
	ip("addr add 192.0.2.77/24 dev rn0"); /* somebody else's */
	ip("addr add 192.0.2.1/24 dev rn0");
	while (fx_dev->addrs_taken == 0)
		fx_step();
	ck_assert_uint_eq(fx_dev->addrs_taken, 1);
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "192.0.2.77/24", 0), -EADDRINUSE);
}
END_TEST

FX_MAIN("ctl_nl", begin, end, link__events, B102__flapping_link,
	mtu__followed_up_to_the_buffers, mac__gid_change, routes__followed,
	own_address_on_the_interface__warned)
