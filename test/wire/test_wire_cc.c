/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion management, both ends: what a mark has sent, what a CNP does, and that neither does
 * harm (IBTA A17 17.9.3). The rates themselves are unit/test_roce_dcqcn's.
 */
#include "wire_req.h"

#define CE 3u
#define ECT0 2u
#define US UINT64_C(1000)
#define LINE (ROCE_CC_LINE_MBPS * 1000) /* kb/s, of a port that knows none */

static uint8_t body[8];

static struct wire *
start(bool cc)
{
	return wire_req_start((struct wire_params){.cc = cc, .timeout = 14, .retry_cnt = 7});
}

/** The peer's next request, with that traffic class. */
static void
request(struct wire *w, uint32_t psn, uint8_t tclass)
{
	w->rx_tclass = tclass;
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_WRITE_ONLY, .psn = psn, .ackreq = true,
				      .va = WIRE_VA + 8192, .rkey = w->key, .dma_len = 8},
		 body, sizeof(body));
}

static struct roce_qp_info
info_of(const struct wire *w)
{
	struct roce_qp_info info;

	roce_qp_get_info(w->qp, &info);
	return info;
}

/** A CNP as the peer sends it, or nearly: the 16 bytes are `fill`, `len` of them are there. */
static void
cnp_as(struct wire *w, uint32_t qpn, const char *from, uint8_t fill, uint32_t len)
{
	struct net_path_params prm = {.src = w->peer, .dst = w->us, .vlan_tci = NET_VLAN_NONE,
				      .smac = {{0x52, 0x54, 0, 0, 0, 3}}, .tclass = 0xc2};
	const struct rte_ether_addr us = {{0x52, 0x54, 0, 0, 0, 2}};
	struct net_path path;
	uint8_t frame[512], *bth;

	if (from)
		ck_assert_int_eq(net_ip_parse(from, &prm.src), 0);
	ck_assert_int_eq(net_path_init(&path, &prm), 0);
	bth = net_path_emit(&path, frame, (uint16_t)(ROCE_BTH_LEN + len + ROCE_ICRC_LEN),
			    net_neigh_l2_pack(&us, NET_NEIGH_REACHABLE));
	roce_bth_emit(bth, ROCE_CNP, 0, ROCE_PKEY_DEFAULT, qpn | ROCE_BTH_BECN, 0);
	memset(bth + ROCE_BTH_LEN, fill, len);
	len += (uint32_t)(bth - frame) + ROCE_BTH_LEN + ROCE_ICRC_LEN;
	roce_icrc_write(frame + path.l3_off, path.v6, len - path.l3_off);
	wire_frame(w, frame, len);
}

static void
cnp(struct wire *w)
{
	cnp_as(w, WIRE_QPN, NULL, 0, ROCE_CNP_RESV_LEN);
}

static uint8_t
last_tos(struct wire *w)
{
	return rte_pktmbuf_mtod(wire_last(w), const uint8_t *)[15];
}

/* ---- notification point ---------- */

START_TEST(ROCE_C_62__cnp_for_a_mark)
{
	struct wire *w = start(true);
	struct roce_pkt p;

	request(w, 0x200, CE);
	wire_expect(w, ROCE_CNP, 0, &p);
	ck_assert_uint_eq(p.dest_qpn, WIRE_PEER_QPN);
	ck_assert(p.becn && !p.fecn && !p.se && !p.ackreq && !p.migreq);
	ck_assert_uint_eq(p.pad, 0);
	ck_assert_uint_eq(last_tos(w), 48 << 2 | ECT0); /* vector F's */
	ck_assert_uint_eq(wire_last(w)->pkt_len, 14 + 60);
	wire_expect_ack(w, 0x200, ACK31, 1);
	ck_assert_uint_eq(info_of(w).ecn_marked, 1);
	ck_assert_uint_eq(info_of(w).cnps_sent, 1);
	wire_free(w);
}
END_TEST

/* Vector D, from the UDP header to the ICRC, which does not cover what differs before. */
START_TEST(ROCE_C_62__vector_d)
{
	static const char hex[] = "c00012b7002800008100ffff4000001200000000"
				  "000000000000000000000000000000007a6fd95d";
	struct wire *w = wire_req_start((struct wire_params){
		.cc = true, .us = "10.0.0.1", .peer = "10.0.0.2", .dest_qpn = 0x12,
		.flow_label = 0x4001 /* source port 0xc000 */});
	const uint8_t *got;
	char text[3];

	request(w, 0x200, CE);
	wire_expect(w, ROCE_CNP, 0, NULL);
	got = rte_pktmbuf_mtod_offset(wire_last(w), const uint8_t *, 34);
	for (unsigned int i = 0; i < sizeof(hex) / 2; i++) {
		snprintf(text, sizeof(text), "%02x", got[i]);
		ck_assert_msg(memcmp(text, hex + 2 * i, 2) == 0, "byte %u: %s", i, text);
	}
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_62__over_ipv6)
{
	struct wire *w = wire_req_start((struct wire_params){
		.cc = true, .us = "fd00::2", .peer = "fd00::3", .tclass = 0x28});
	const uint8_t *l3;

	request(w, 0x200, CE);
	wire_expect(w, ROCE_CNP, 0, NULL);
	l3 = rte_pktmbuf_mtod_offset(wire_last(w), const uint8_t *, 14);
	ck_assert_uint_eq((l3[0] & 15) << 4 | l3[1] >> 4, 48 << 2 | ECT0);
	wire_expect_ack(w, 0x200, ACK31, 1);
	l3 = rte_pktmbuf_mtod_offset(wire_last(w), const uint8_t *, 14);
	ck_assert_uint_eq((l3[0] & 15) << 4 | l3[1] >> 4, 0x28 | ECT0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_62__one_in_50_us)
{
	struct wire *w = start(true);

	request(w, 0x200, CE);
	wire_expect(w, ROCE_CNP, 0, NULL);
	wire_expect_ack(w, 0x200, ACK31, 1);
	wire_wait(w, 50 * US - 1);
	request(w, 0x201, CE);
	wire_expect_ack(w, 0x201, ACK31, 2);
	wire_expect_none(w);
	wire_wait(w, 1);
	request(w, 0x202, CE);
	wire_expect(w, ROCE_CNP, 0, NULL);
	wire_expect_ack(w, 0x202, ACK31, 3);
	ck_assert_uint_eq(info_of(w).ecn_marked, 3);
	ck_assert_uint_eq(info_of(w).cnps_sent, 2);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_62__no_mark_no_cnp)
{
	struct wire *w = start(true);

	request(w, 0x200, ECT0);
	wire_expect_ack(w, 0x200, ACK31, 1);
	request(w, 0x201, 1);
	wire_expect_ack(w, 0x201, ACK31, 2);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/* No room for it: nothing is lost but this one, and the next mark has its CNP. */
START_TEST(cnp__full_batch)
{
	struct wire *w = start(true);

	w->tx_stuck = true;
	while (w->tx.n < NET_TX_BATCH) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);

		rte_pktmbuf_append(m, 60);
		net_tx_push(&w->tx, m);
	}
	request(w, 0x200, CE);
	ck_assert_uint_eq(info_of(w).cnps_sent, 0);
	net_tx_purge(&w->tx);
	w->tx_stuck = false;
	wire_go(w);
	wire_expect_ack(w, 0x200, ACK31, 1);
	request(w, 0x201, CE);
	wire_expect(w, ROCE_CNP, 0, NULL);
	wire_free(w);
}
END_TEST

/* ---- codepoints ---------- */

START_TEST(ecn__of_what_is_sent)
{
	for (int cc = 0; cc < 2; cc++) {
		struct wire *w = wire_req_start((struct wire_params){
			.cc = cc, .timeout = 14, .retry_cnt = 7, .tclass = 0x2b});

		wire_post(w, RING_WR_RDMA_WRITE, 0, 8, 0, RADDR, RKEY);
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101, NULL);
		ck_assert_uint_eq(last_tos(w), cc ? 0x2a : 0x28); /* A17 CA17-5, -14 */
		request(w, 0x200, 0);
		wire_expect_ack(w, 0x200, ACK31, 1);
		ck_assert_uint_eq(last_tos(w), cc ? 0x2a : 0x28);
		wire_free(w);
	}
}
END_TEST

START_TEST(cc__off_is_off)
{
	struct wire *w = start(false);

	request(w, 0x200, CE);
	wire_expect_ack(w, 0x200, ACK31, 1);
	cnp(w);
	wire_expect_none(w);
	ck_assert_uint_eq(info_of(w).rate_kbps, 0);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_ECN_RCVD), 1);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_CNP_RCVD), 1);
	wire_free(w);
}
END_TEST

/* ---- reaction point ---------- */

static unsigned int
count_sent(struct wire *w, uint8_t first, uint8_t last)
{
	struct roce_pkt p;
	unsigned int n = 0;

	while (wire_sent(w, &p))
		n += p.opcode >= first && p.opcode <= last;
	return n;
}

START_TEST(ROCE_C_63__cnp_slows_its_qp)
{
	struct wire *w = start(true);
	unsigned int n;

	for (int i = 0; i < 4; i++) { /* to a sixteenth: 625 Mb/s, 13.9 us a packet */
		cnp(w);
		wire_wait(w, 4 * US);
	}
	ck_assert_uint_eq(info_of(w).rate_kbps, LINE / 16);
	ck_assert_uint_eq(info_of(w).target_kbps, LINE / 8);
	ck_assert_uint_eq(info_of(w).cnps_rcvd, 4);
	wire_post(w, RING_WR_RDMA_WRITE, 0, 65536, 0, RADDR, RKEY);
	n = count_sent(w, ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_LAST);
	ck_assert_uint_le(n, 3); /* what it might have sent meanwhile, and one */
	ck_assert_uint_ge(n, 1);
	wire_wait(w, 40 * US);
	n = count_sent(w, ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_LAST);
	ck_assert_uint_ge(n, 2);
	ck_assert_uint_le(n, 4);
	request(w, 0x200, 0); /* acknowledgements do not wait */
	wire_expect_ack(w, 0x200, ACK31, 1);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_63__five_steps_halve_the_gap)
{
	struct wire *w = start(true);
	uint32_t gap = LINE / 2;

	cnp(w);
	ck_assert_uint_eq(info_of(w).rate_kbps, LINE / 2);
	wire_wait(w, 5 * 55 * US + 1000 * US);
	gap >>= 5;
	ck_assert_uint_gt(info_of(w).rate_kbps, LINE - gap);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_63__read_responses_too)
{
	struct wire *w = start(true);
	unsigned int n;

	for (int i = 0; i < 4; i++) {
		cnp(w);
		wire_wait(w, 4 * US);
	}
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_REQ, .psn = 0x200, .ackreq = true,
				      .va = WIRE_VA, .rkey = w->key, .dma_len = 16384}, NULL, 0);
	n = count_sent(w, ROCE_RC_READ_RESP_FIRST, ROCE_RC_READ_RESP_ONLY);
	ck_assert_uint_ge(n, 1);
	ck_assert_uint_le(n, 3);
	wire_wait(w, 400 * US);
	n += count_sent(w, ROCE_RC_READ_RESP_FIRST, ROCE_RC_READ_RESP_ONLY);
	ck_assert_uint_eq(n, 16); /* all of them, in time */
	wire_free(w);
}
END_TEST

/* The block goes back after a while at line rate, and no timer is left. */
START_TEST(cc__ends)
{
	struct wire *w = start(true);

	cnp(w);
	ck_assert_uint_ne(roce_next_deadline(w->r), UINT64_MAX);
	wire_wait(w, 200000 * US);
	ck_assert_uint_eq(info_of(w).rate_kbps, 0);
	ck_assert_uint_eq(roce_next_deadline(w->r), UINT64_MAX);
	cnp(w); /* and again */
	ck_assert_uint_eq(info_of(w).rate_kbps, LINE / 2);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	ck_assert_uint_eq(info_of(w).rate_kbps, 0);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_64__does_no_harm)
{
	struct wire *w = start(true);
	uint32_t epsn = info_of(w).epsn;

	cnp_as(w, 0x777777, NULL, 0, ROCE_CNP_RESV_LEN); /* nobody's */
	cnp_as(w, WIRE_QPN, "192.0.2.77", 0, ROCE_CNP_RESV_LEN); /* not the peer's */
	cnp_as(w, WIRE_QPN, NULL, 0, ROCE_CNP_RESV_LEN - 4); /* too short */
	cnp_as(w, WIRE_QPN, NULL, 0, 0);
	ck_assert_uint_eq(info_of(w).rate_kbps, 0);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_CNP_RCVD), 0);
	cnp_as(w, WIRE_QPN, NULL, 0xee, ROCE_CNP_RESV_LEN); /* garbage: a CNP like another */
	ck_assert_uint_eq(info_of(w).rate_kbps, LINE / 2);
	cnp_as(w, WIRE_QPN, NULL, 0xff, 400);
	wire_expect_none(w);
	ck_assert_uint_eq(info_of(w).epsn, epsn);
	request(w, 0x200, 0);
	wire_expect_ack(w, 0x200, ACK31, 1);
	wire_free(w);
}
END_TEST

UNIT_MAIN("wire_cc", ROCE_C_62__cnp_for_a_mark, ROCE_C_62__vector_d, ROCE_C_62__over_ipv6,
	  ROCE_C_62__one_in_50_us, ROCE_C_62__no_mark_no_cnp, cnp__full_batch, ecn__of_what_is_sent,
	  cc__off_is_off, ROCE_C_63__cnp_slows_its_qp, ROCE_C_63__five_steps_halve_the_gap,
	  ROCE_C_63__read_responses_too, cc__ends, ROCE_C_64__does_no_harm)
