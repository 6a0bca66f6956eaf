/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MADs as we write them, against those of captured peers: the same bytes but for what a sender
 * may choose (IP identification and checksum; MigReq; AckReq, which means nothing to QP1; PSN).
 */
#include "capture.h"
#include "net_path.h"
#include "roce_gsi.h"
#include "roce_priv.h"
#include "unit.h"

#define MAD_AT 62

static unsigned int compared, ipv6;

static void
compare_v4(struct capture *c, const uint8_t *ours, uint32_t len)
{
	static uint8_t theirs[2048];

	memcpy(theirs, c->data, c->len);
	theirs[18] = ours[18]; /* identification */
	theirs[19] = ours[19];
	theirs[24] = ours[24]; /* checksum */
	theirs[25] = ours[25];
	theirs[43] |= ROCE_BTH_MIGREQ;
	theirs[50] &= 0x7f; /* AckReq */
	ck_assert_uint_eq(c->len, len);
	ck_assert_mem_eq(theirs, ours, len - ROCE_ICRC_LEN);
	ck_assert(roce_icrc_check(ours + 14, false, len - 14));
}

static void
compare_v6(struct capture *c, const uint8_t *ours, uint32_t len)
{
	static uint8_t theirs[2048];

	memcpy(theirs, c->data, c->len);
	theirs[63] |= ROCE_BTH_MIGREQ;
	theirs[70] &= 0x7f;
	ck_assert_uint_eq(c->len, len);
	ck_assert_mem_eq(theirs, ours, len - ROCE_ICRC_LEN);
	ck_assert(roce_icrc_check(ours + 14, true, len - 14));
}

static void
emit_again(struct capture *c, bool v6)
{
	uint32_t l4 = v6 ? 54 : 34, bth = l4 + 8;
	struct net_path_params prm = {.vlan_tci = NET_VLAN_NONE,
		.sport = net_udp_sport_ud(ROCE_QPN_GSI), .tclass = v6 ? 0 : c->data[15]};
	uint8_t frame[ROCE_GSI_FRAME_MAX];
	struct rte_ether_addr dmac;
	struct net_path path;
	uint32_t psn, len;

	memcpy(&dmac, c->data, 6);
	memcpy(&prm.smac, c->data + 6, 6);
	if (v6) {
		prm.src = net_ip_from_bytes(c->data + 22);
		prm.dst = net_ip_from_bytes(c->data + 38);
	} else {
		rte_be32_t a[2];

		memcpy(a, c->data + 26, 8);
		prm.src = net_ip_from_v4(a[0]);
		prm.dst = net_ip_from_v4(a[1]);
	}
	psn = (uint32_t)c->data[bth + 9] << 16 | (uint32_t)c->data[bth + 10] << 8 |
	      c->data[bth + 11];
	ck_assert_int_eq(net_path_init(&path, &prm), 0);
	len = roce_gsi_emit(&path, net_neigh_l2_pack(&dmac, NET_NEIGH_REACHABLE), psn,
			    c->data + bth + 20, frame);
	if (v6)
		compare_v6(c, frame, len);
	else
		compare_v4(c, frame, len);
	compared++;
	ipv6 += v6;
}

static void
each(const char *name, void *arg)
{
	struct capture *c = capture_open(name);

	(void)arg;
	while (capture_next(c)) {
		bool v6 = c->data[12] == 0x86;
		uint32_t bth = v6 ? 62 : 42;

		if (c->len > bth + 20 && c->data[bth] == ROCE_UD_SEND_ONLY &&
		    c->data[bth + 7] == ROCE_QPN_GSI)
			emit_again(c, v6);
	}
	capture_close(c);
}

START_TEST(emit__captured_mads)
{
	capture_each("roce-", each, NULL);
	ck_assert_uint_eq(compared, 156); /* all that there are */
	ck_assert_uint_gt(ipv6, 0);
}
END_TEST

/** The kernel's formula, and what the captures show of it. */
START_TEST(sport__of_the_own_qpn)
{
	ck_assert_uint_eq(net_udp_sport_ud(1), 0xd872);
	ck_assert_uint_eq(net_udp_sport_ud(0x17), 0xf241);
}
END_TEST

UNIT_MAIN("roce_gsi", emit__captured_mads, sport__of_the_own_qpn)
