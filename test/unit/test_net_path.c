/* SPDX-License-Identifier: BSD-3-Clause */
/* Emitted headers byte for byte as scapy's; source ports as Linux's (captures). */
#include "capture.h"
#include "net_test.h"

static struct net_path_params
params(bool v6)
{
	return (struct net_path_params){
		.src = ip(v6 ? "2001:db8::2" : "192.0.2.2"),
		.dst = ip(v6 ? "2001:db8::3" : "192.0.2.3"),
		.smac = test_us,
		.vlan_tci = NET_VLAN_NONE,
		.sport = 0xe123,
	};
}

/* Exactly the header's bytes are written, in a buffer of exactly that length. */
static void
check_udp(const struct net_path_params *prm, const uint8_t *want, size_t len)
{
	uint64_t l2 = net_neigh_l2_pack(&test_peer, NET_NEIGH_REACHABLE);
	size_t hdr = len - 16;
	uint8_t *buf = malloc(hdr);
	struct net_path p;

	ck_assert_int_eq(net_path_init(&p, prm), 0);
	ck_assert_uint_eq(p.tmpl_len, hdr);
	memset(buf, 0xa5, hdr);
	ck_assert_ptr_eq(net_path_emit(&p, buf, 16, l2), buf + hdr);
	ck_assert_mem_eq(buf, want, hdr);
	free(buf);
}

START_TEST(path__udp)
{
	struct net_path_params prm = params(false);

	prm.tclass = 0x68;
	prm.hop_limit = 9;
	check_udp(&prm, v_out4, sizeof(v_out4));
	prm = params(false);
	prm.vlan_tci = net_vlan_tci(5, 3);
	check_udp(&prm, v_out4_tagged, sizeof(v_out4_tagged));
	prm = params(true);
	prm.tclass = 0x6a;
	prm.flow_label = 0xabcde;
	check_udp(&prm, v_out6, sizeof(v_out6));
	prm = params(true);
	prm.vlan_tci = net_vlan_tci(5, 3);
	check_udp(&prm, v_out6_tagged, sizeof(v_out6_tagged));
}
END_TEST

static void
check_ip(const struct net_path_params *prm, const uint8_t *want)
{
	uint64_t l2 = net_neigh_l2_pack(&test_peer, NET_NEIGH_STALE);
	struct net_path p;
	uint8_t *buf;

	ck_assert_int_eq(net_path_init(&p, prm), 0);
	buf = malloc(p.tmpl_len);
	net_path_emit_ip(&p, buf, 36, 2, l2);
	ck_assert_mem_eq(buf, want, p.tmpl_len);
	free(buf);
}

START_TEST(path__tcp_with_ecn)
{
	struct net_path_params prm = params(false);

	prm.proto = 6;
	prm.tclass = 0x68 | 3; /* ECN is each packet's */
	check_ip(&prm, v_out4_tcp_ect);
	prm = params(true);
	prm.proto = 6;
	prm.tclass = 0x68;
	prm.vlan_tci = net_vlan_tci(5, 3);
	check_ip(&prm, v_out6_tcp_ect);
}
END_TEST

/* B213: each length sums up: the carries of the incremental checksum. */
START_TEST(path__every_length)
{
	struct net_path_params prm = params(false);
	uint8_t buf[NET_PATH_MAX];
	struct net_path p;

	prm.dst = ip("255.255.255.254");
	ck_assert_int_eq(net_path_init(&p, &prm), 0);
	for (unsigned int len = 0; len <= 65535 - 28; len++) {
		net_path_emit(&p, buf, (uint16_t)len, 0);
		ck_assert_uint_eq(buf[16] << 8 | buf[17], len + 28);
		ck_assert_uint_eq(buf[38] << 8 | buf[39], len + 8);
		if (net_cksum_add(0, buf + 14, 20) != 0xffff)
			ck_abort_msg("length %u", len);
	}
}
END_TEST

START_TEST(path__refused)
{
	struct net_path_params prm = params(false);
	struct net_path p;

	prm.dst = ip("2001:db8::3");
	ck_assert_int_eq(net_path_init(&p, &prm), -EINVAL);
	prm = params(true);
	prm.dst = ip("192.0.2.3");
	ck_assert_int_eq(net_path_init(&p, &prm), -EINVAL);
	prm = params(true);
	prm.flow_label = 0x100000;
	ck_assert_int_eq(net_path_init(&p, &prm), -EINVAL);
	prm = params(true);
	prm.dst = ip("::");
	ck_assert_int_eq(net_path_init(&p, &prm), -EINVAL);
}
END_TEST

/* Ports that Linux 6.1 chose: captures roce-rping #4, roce-rc-pingpong, roce-ud-ops #3. */
START_TEST(sport__as_linux)
{
	uint32_t fl = (56801 * 31 + 7174) & 0xfffff;

	ck_assert_uint_eq(fl, 0xafa45);
	ck_assert_uint_eq(net_udp_sport_hash(fl, 1, 2), 0xfa6e);
	ck_assert_uint_eq(net_udp_sport_hash(0, 0x18, 0x18), 0xc240);
	ck_assert_uint_eq(net_udp_sport_ud(0x17), 0xf241);
	ck_assert_uint_eq(net_udp_sport_ud(1), 0xd872);
	/* Both ends find the same port; all are in the ephemeral range. */
	ck_assert_uint_eq(net_udp_sport_hash(0, 0xffffff, 0x12345),
		net_udp_sport_hash(0, 0x12345, 0xffffff));
	for (uint32_t q = 0; q < 0x1000000; q += 4093) {
		ck_assert_uint_ge(net_udp_sport_ud(q), 0xc000);
		ck_assert_uint_ge(net_udp_sport_hash(0, q, q), 0xc000);
	}
}
END_TEST

/* rxe's own headers, made again from what they say; its IPv4 ids alone differ. */
START_TEST(path__captures)
{
	const char *names[] = { "roce-ucmatose-tos.pcap", "roce-rping-ipv6.pcap",
		"roce-mtu4096-ops.pcap" };
	uint8_t buf[NET_PATH_MAX];
	struct net_path path;
	struct rte_mbuf m;
	struct net_pkt p;

	for (size_t i = 0; i < RTE_DIM(names); i++) {
		struct capture *c = capture_open(names[i]);

		while (capture_next(c)) {
			struct net_path_params prm = { .vlan_tci = NET_VLAN_NONE };
			uint64_t l2 = 0;

			ck_assert_int_eq(frame_parse(&m, &p, c->data, c->len), NET_UDP);
			memcpy(&l2, c->data, 6);
			memcpy(&prm.smac, c->data + 6, 6);
			prm.src = net_pkt_src(&p);
			prm.dst = net_pkt_dst(&p);
			prm.tclass = p.tclass;
			prm.hop_limit = p.hop_limit;
			prm.sport = p.sport;
			ck_assert_int_eq(net_path_init(&path, &prm), 0);
			net_path_emit(&path, buf, p.payload_len, l2);
			if (!p.v6) {
				uint16_t sum, id;

				memcpy(&id, c->data + 18, 2);
				memcpy(&sum, buf + 24, 2);
				sum = net_cksum_update(sum, 0, id);
				memcpy(buf + 24, &sum, 2);
				memcpy(buf + 18, &id, 2);
			}
			ck_assert_mem_eq(buf, c->data, p.payload_off);
			frame_free(&m);
		}
		capture_close(c);
	}
}
END_TEST

UNIT_MAIN("net_path", path__udp, path__tcp_with_ecn, path__every_length, path__refused,
	sport__as_linux, path__captures)
