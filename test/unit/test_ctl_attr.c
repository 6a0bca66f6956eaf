/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients are told of the device, its ports and GIDs, and of what an object was granted. */
#include "ctl_nl.h"
#include "ctl_objects.h"

static struct pmd_port *second;

/* As setup(), with two ports. */
static void
two_ports(void)
{
	struct pmd_port_config port = {.ethdev = PMD_PORT_LOOP, .index = 1,
		.num_queues = FX_WORKERS, .rx_pool = fx_pool};
	struct worker_config cfg = fx_config();
	struct pmd_port *ports[2] = {fx_port};
	const char *why = "";

	ck_assert_int_eq(pmd_port_open(&port, &second, &why), 0);
	ports[1] = second;
	cfg.ports = ports;
	cfg.num_ports = 2;
	fx_start(&cfg);
	fx_connect(&cl);
	ck_assert_int_eq(fx_hello(&cl), 0);
}

static void
end(void)
{
	teardown();
	pmd_port_close(second);
}

static struct ring_ctrl_query_device_rep
device(void)
{
	struct ring_ctrl_query_device_rep rep;
	struct ring_ctrl_empty_req req = {0};

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_DEVICE, &req, &rep), 0);
	return rep;
}

static struct ring_ctrl_query_port_rep
port(uint32_t number)
{
	struct ring_ctrl_query_port_req req = {.port = number};
	struct ring_ctrl_query_port_rep rep;

	ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_PORT, &req, &rep), 0);
	return rep;
}

static int
gid(uint32_t number, uint32_t index, struct ring_ctrl_query_gid_rep *rep)
{
	struct ring_ctrl_query_gid_req req = {.port = number, .index = index};

	return fx_call(&cl, RING_CTRL_QUERY_GID, &req, rep);
}

static void
expect_eui64(const uint8_t *guid, const uint8_t *mac)
{
	const uint8_t want[8] = {mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

	ck_assert_mem_eq(guid, want, sizeof(want));
}

/* ---- identity ---------- */

/* B175, B177: EUI-64 of the MAC, another for each port. */
START_TEST(B175_B177__guids)
{
	struct ring_ctrl_query_device_rep d = device();
	struct ring_ctrl_query_gid_rep g[2];

	expect_eui64((const uint8_t *)&d.node_guid, port(1).mac);
	ck_assert_uint_ne(d.sys_image_guid, 0);
	for (uint32_t i = 0; i < 2; i++) {
		static const uint8_t link_local[8] = {0xfe, 0x80};

		ck_assert_int_eq(gid(i + 1, 0, &g[i]), 0);
		ck_assert_mem_eq(g[i].gid.raw, link_local, 8);
		expect_eui64(g[i].gid.raw + 8, port(i + 1).mac);
	}
	ck_assert_mem_ne(g[0].gid.raw, g[1].gid.raw, 16);
}
END_TEST

/* B181: nobody may take us for InfiniBand: all GIDs are of RoCE v2, and GIDs are by IP address. */
START_TEST(B181__roce_v2)
{
	struct ring_ctrl_query_gid_rep g;
	uint32_t used = 0;

	ck_assert_uint_eq(device().transport, RING_TRANSPORT_ROCE);
	ck_assert_uint_ne(port(1).port_cap_flags & 1u << 26, 0);
	for (uint32_t i = 0; i < port(1).gid_tbl_len; i++) {
		if (gid(1, i, &g) < 0)
			continue;
		ck_assert_uint_eq(g.type, 2);
		used++;
	}
	ck_assert_uint_eq(used, 2); /* link-local and 192.0.2.1 */
	ck_assert_int_eq(gid(1, port(1).gid_tbl_len, &g), -EINVAL);
	ck_assert_int_eq(gid(0, 0, &g), -EINVAL);
	ck_assert_int_eq(gid(3, 0, &g), -EINVAL);
}
END_TEST

/* ---- limits ---------- */

/* B160: of what there is no limit is 0. B176: no field says nothing. */
START_TEST(B160_B176__nothing_is_zero)
{
	struct ring_ctrl_query_device_rep d = device();
	const uint32_t limit[] = {d.max_qp, d.max_qp_wr, d.max_sge, d.max_sge_rd, d.max_inline,
		d.max_cq, d.max_cqe, d.max_mr, d.max_pd, d.max_qp_rd_atom, d.max_qp_init_rd_atom,
		d.max_res_rd_atom, d.max_mw, d.max_srq, d.max_srq_wr, d.max_srq_sge, d.max_pkeys,
		d.max_fast_reg, d.num_comp_vectors, d.max_ah, d.max_mcast_grp,
		d.max_mcast_qp_attach, d.max_total_mcast_qp_attach};

	for (size_t i = 0; i < sizeof(limit) / sizeof(limit[0]); i++)
		ck_assert_uint_gt(limit[i], 0);
	ck_assert_uint_gt(d.max_mr_size, UINT64_C(1) << 40);
	ck_assert_uint_ne(d.page_size_cap & 4096, 0);
	ck_assert_uint_ne(d.vendor_id, 0);
	ck_assert_uint_ne(d.vendor_part_id, 0);
	ck_assert_uint_ne(d.hw_ver, 0);
	ck_assert_uint_ne(d.fw_ver[0], 0);
	ck_assert_uint_eq(d.atomic_cap, 1);
	ck_assert_uint_ne(d.completion_timestamp_mask, 0);
	ck_assert_uint_ne(d.hca_core_clock, 0);
	ck_assert_uint_eq(d.num_ports, 2);
	for (uint32_t i = 1; i <= 2; i++) {
		struct ring_ctrl_query_port_rep p = port(i);

		ck_assert_uint_eq(p.state, RING_PORT_ACTIVE);
		ck_assert_uint_ge(p.active_mtu, RING_MTU_256);
		ck_assert_uint_le(p.active_mtu, p.max_mtu);
		ck_assert_uint_le(p.max_mtu, RING_MTU_4096);
		ck_assert_uint_gt(p.gid_tbl_len, 1);
		ck_assert_uint_gt(p.pkey_tbl_len, 0);
		ck_assert_uint_ne(p.netdev[0], 0);
	}
}
END_TEST

/* B174: what is told is what both sides hold to (test_verbs_wqe, test_wire_case). */
START_TEST(B174__max_message)
{
	ck_assert_uint_eq(device().max_msg_size, ROCE_MAX_MSG);
	ck_assert_uint_eq(port(1).max_msg_size, ROCE_MAX_MSG);
}
END_TEST

/* B194: the path MTU fits the link's with the longest headers, and a larger one is refused. */
START_TEST(B194__mtu_of_the_link)
{
	static const struct {
		uint16_t link;
		uint8_t active;
	} t[] = {{576, RING_MTU_256}, {1107, RING_MTU_512}, {1108, RING_MTU_1024},
		{1500, RING_MTU_1024}, {2131, RING_MTU_1024}, {2132, RING_MTU_2048},
		{4179, RING_MTU_2048}, {4180, RING_MTU_4096}, {9000, RING_MTU_4096}};
	uint16_t link = fx_dev->port[0].mtu;
	struct ring_ctrl_qp_attr a;
	struct pair p;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		fx_dev->port[0].mtu = t[i].link;
		ck_assert_uint_eq(port(1).active_mtu, t[i].active);
		ck_assert_uint_eq(port(1).link_mtu, t[i].link);
	}
	fx_dev->port[0].mtu = 1500;
	make_pair(&p);
	ck_assert_int_eq(to_init(p.qpn[0]), 0);
	a = rtr_attr(p.qpn[1], 1);
	a.path_mtu = RING_MTU_4096;
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, NULL), -EINVAL);
	a.path_mtu = RING_MTU_2048;
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, NULL), -EINVAL);
	a.path_mtu = RING_MTU_1024;
	ck_assert_int_eq(modify(p.qpn[0], RTR_MASK, &a, NULL), 0);
	fx_dev->port[0].mtu = link;
}
END_TEST

static int
create_qp(const struct pair *p, struct ring_ctrl_create_qp_req *q,
	struct ring_ctrl_create_qp_rep *rep)
{
	q->type = RING_QPT_RC;
	q->pd = p->pd;
	q->send_cq = q->recv_cq = p->cqn;
	q->srqn = q->xrcd = RING_NO_HANDLE;
	return fx_call(&cl, RING_CTRL_CREATE_QP, q, rep);
}

/* B178: what is granted is never less, and is told; a query says the same. */
START_TEST(B178__caps_as_granted)
{
	static const uint16_t sge[] = {0, 1, 3, 4, RING_MAX_SGE},
			      inlined[] = {0, 1, 33, 200, RING_MAX_INLINE};
	static const uint32_t wr[] = {0, 1, 2, 3, 100, 129};
	struct ring_ctrl_create_qp_rep rep;
	struct ring_ctrl_query_qp_rep q;
	struct pair p;

	make_pair(&p);
	for (int i = 0; i < 6 * 5 * 5; i++) {
		struct ring_ctrl_create_qp_req r = {.max_send_wr = wr[i % 6],
			.max_recv_wr = wr[(i + 1) % 6], .max_send_sge = sge[i / 6 % 5],
			.max_recv_sge = sge[(i / 6 + 1) % 5], .max_inline = inlined[i / 30]};
		struct ring_ctrl_handle_req h = {0};

		ck_assert_int_eq(create_qp(&p, &r, &rep), 0);
		ck_assert_uint_ge(rep.max_send_wr, r.max_send_wr);
		ck_assert_uint_ge(rep.max_recv_wr, r.max_recv_wr);
		ck_assert_uint_ge(rep.max_send_sge, r.max_send_sge);
		ck_assert_uint_ge(rep.max_recv_sge, r.max_recv_sge);
		ck_assert_uint_ge(rep.max_inline, r.max_inline);
		h.handle = rep.qpn;
		ck_assert_int_eq(fx_call(&cl, RING_CTRL_QUERY_QP, &h, &q), 0);
		ck_assert_uint_eq(q.max_send_wr, rep.max_send_wr);
		ck_assert_uint_eq(q.max_recv_wr, rep.max_recv_wr);
		ck_assert_uint_eq(q.max_send_sge, rep.max_send_sge);
		ck_assert_uint_eq(q.max_recv_sge, rep.max_recv_sge);
		ck_assert_uint_eq(q.max_inline, rep.max_inline);
		ck_assert_int_eq(fx_handle(&cl, RING_CTRL_DESTROY_QP, rep.qpn), 0);
	}
}
END_TEST

START_TEST(B178__caps_too_large)
{
	struct ring_ctrl_query_device_rep d = device();
	struct ring_ctrl_create_qp_req most = {.max_send_wr = d.max_qp_wr,
		.max_recv_wr = d.max_qp_wr, .max_send_sge = 1, .max_recv_sge = 1};
	struct ring_ctrl_create_qp_req bad[] = {
		{.max_send_wr = d.max_qp_wr + 1}, {.max_recv_wr = d.max_qp_wr + 1},
		{.max_send_sge = (uint16_t)(d.max_sge + 1)},
		{.max_recv_sge = (uint16_t)(d.max_sge + 1)},
		{.max_inline = (uint16_t)(d.max_inline + 1)}, {.max_inline = UINT16_MAX},
		{.max_send_wr = UINT32_MAX}};
	struct ring_ctrl_create_qp_rep rep;
	struct pair p;

	make_pair(&p);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(create_qp(&p, &bad[i], &rep), -EINVAL);
	ck_assert_int_eq(create_qp(&p, &most, &rep), 0);
}
END_TEST

/* ---- addresses ---------- */

static void
expect_gid(uint32_t index, const char *text, uint16_t vlan)
{
	struct ring_ctrl_query_gid_rep g;
	struct net_ip want;
	uint8_t plen;

	ck_assert_int_eq(net_prefix_parse(text, &want, &plen), 0);
	ck_assert_int_eq(gid(1, index, &g), 0);
	ck_assert_mem_eq(g.gid.raw, want.b, 16);
	ck_assert_uint_eq(g.vlan, vlan);
}

static void
gid_changes(uint32_t n)
{
	fx_step();
	while (fx_recv(&cl))
		;
	for (int i = 0; i < 3; i++)
		fx_recv(&cl);
	ck_assert_uint_eq(cl.num_events, n);
	if (n != 0) {
		ck_assert_uint_eq(cl.event.type, RING_EVENT_GID_CHANGE);
		ck_assert_uint_eq(cl.event.object, RING_EVENT_OF_PORT);
		ck_assert_uint_eq(cl.event.handle, 1);
	}
	cl.num_events = 0;
}

/* B183: the table follows the addresses with an event each, and what stays keeps its index. */
START_TEST(B183__addresses_come_and_go)
{
	struct ring_ctrl_query_gid_rep g;

	expect_gid(1, "192.0.2.1/24", 0);
	gid_changes(0);
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "2001:db8::1/64", 0), 0);
	gid_changes(1);
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "192.0.2.1/24", 7), 0);
	gid_changes(1);
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "192.0.2.1/24", 7), -EEXIST);
	gid_changes(0);
	expect_gid(2, "2001:db8::1/64", 0);
	expect_gid(3, "192.0.2.1/24", 7);
	ck_assert_int_eq(worker_port_addr_del(fx_dev, 0, "192.0.2.1/24", 0), 0);
	gid_changes(1);
	ck_assert_int_eq(gid(1, 1, &g), -ENODATA);
	expect_gid(2, "2001:db8::1/64", 0);
	expect_gid(3, "192.0.2.1/24", 7); /* the VLAN's is another */
	ck_assert_int_eq(worker_port_addr_del(fx_dev, 0, "192.0.2.1/24", 0), -ENOENT);
	gid_changes(0);
	ck_assert_int_eq(worker_port_addr_del(fx_dev, 0, "2001:db8::1/64", 0), 0);
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "198.51.100.1/24", 0), 0);
	gid_changes(2);
	expect_gid(1, "198.51.100.1/24", 0);
	ck_assert_int_eq(gid(1, 2, &g), -ENODATA);
}
END_TEST

/* B183, B187: a path from an address goes with the VLAN that the address is in. */
START_TEST(B187__path_of_a_vlan_address)
{
	struct ring_ctrl_av av = rtr_attr(0, 77).av;
	struct verbs_av out;

	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "192.0.2.2/24", 7), 0);
	av.sl = 5;
	ck_assert_int_eq(ctl_av_resolve(TAILQ_FIRST(&fx_dev->clients), &av, &out), 0);
	ck_assert_uint_eq(out.vlan, 0xffff);
	net_neigh_put(out.neigh);
	av.sgid_index = 2;
	ck_assert_int_eq(ctl_av_resolve(TAILQ_FIRST(&fx_dev->clients), &av, &out), 0);
	ck_assert_uint_eq(out.vlan, 7);
	ck_assert_uint_eq(out.sl, 5);
	net_neigh_put(out.neigh);
}
END_TEST

static int
resolve(const char *dst, uint8_t sgid_index)
{
	struct ring_ctrl_resolve_req req = {.av = {.port = 1, .is_global = 1,
		.sgid_index = sgid_index, .hop_limit = 64}, .timeout_ms = 1};
	struct ring_ctrl_resolve_rep rep;
	struct net_ip to;

	ck_assert_int_eq(net_ip_parse(dst, &to), 0);
	memcpy(req.av.dgid.raw, to.b, 16);
	return fx_call(&cl, RING_CTRL_RESOLVE, &req, &rep);
}

/*
 * B130: what is no address of one host is refused at once, even behind a default route, and is
 * not asked for on the wire; own addresses lead back to us, others are asked for.
 */
START_TEST(B130__what_can_be_resolved)
{
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "2001:db8::1/64", 0), 0);
	ck_assert_int_eq(worker_route_add(fx_dev, 0, "default", "192.0.2.254"), 0);
	ck_assert_int_eq(worker_route_add(fx_dev, 0, "default", "2001:db8::fe"), 0);
	ck_assert_int_eq(resolve("255.255.255.255", 1), -EINVAL);
	ck_assert_int_eq(resolve("192.0.2.255", 1), -EINVAL); /* the subnet's broadcast */
	ck_assert_int_eq(resolve("192.0.2.0", 1), -EINVAL);
	ck_assert_int_eq(resolve("224.0.0.1", 1), -EINVAL);
	ck_assert_int_eq(resolve("240.0.0.1", 1), -EINVAL);
	ck_assert_int_eq(resolve("127.0.0.1", 1), -EINVAL);
	ck_assert_int_eq(resolve("0.0.0.0", 1), -EINVAL);
	ck_assert_int_eq(resolve("::", 2), -EINVAL);
	ck_assert_int_eq(resolve("::1", 2), -EINVAL);
	ck_assert_int_eq(resolve("ff02::1", 2), -EINVAL);
	ck_assert_int_eq(resolve("192.0.2.1", 1), 0);
	ck_assert_int_eq(resolve("2001:db8::1", 2), 0);
	ck_assert_int_eq(resolve("192.0.2.200", 1), -ETIMEDOUT);
	ck_assert_int_eq(resolve("203.0.113.255", 1), -ETIMEDOUT); /* not ours to know */
	ck_assert_int_eq(worker_port_addr_add(fx_dev, 0, "198.51.100.0/31", 0), 0);
	ck_assert_int_eq(resolve("198.51.100.1", 1), -ETIMEDOUT); /* RFC 3021: a host */
}
END_TEST

FX_MAIN("ctl_attr", two_ports, end, B175_B177__guids, B181__roce_v2, B160_B176__nothing_is_zero,
	B174__max_message, B194__mtu_of_the_link, B178__caps_as_granted, B178__caps_too_large,
	B183__addresses_come_and_go, B187__path_of_a_vlan_address, B130__what_can_be_resolved)
