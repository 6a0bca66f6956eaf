/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups of UD QPs on one host, and captured datagrams of rdma_rxe, which are received,
 * and sent again byte for byte.
 */
#include "wire_ud.h"

#define GROUP "239.1.2.3"

/** A further UD QP on the wire, with a receive queue of its own. */
struct member {
	struct verbs_qp *qp;
	struct ring_qp_client client;
	struct ring_qp_daemon daemon;
	uint8_t rq[16 * RING_SLOT_SIZE];
	uint32_t tail;
};

static void
member_recv(struct wire *w, struct member *m, uint32_t off, uint32_t key)
{
	struct ring_rwqe q = {.num_slots = 1, .num_sge = 1,
			      .sge = {{WIRE_VA + off, RECV_LEN, key}}};

	(void)w;
	memcpy(m->rq + (m->tail++ & 15) * RING_SLOT_SIZE, &q, sizeof(q));
	atomic_store(&m->client.rq_tail, m->tail);
}

static void
member_new(struct wire *w, struct member *m, uint32_t qpn, uint32_t qkey)
{
	struct verbs_qp_attr a = {.state = RING_QPS_INIT, .qkey = qkey};
	struct roce_qp_init init = {
		.qpn = qpn, .type = VERBS_QPT_UD, .pd = WIRE_PD, .send_cq = w->cq,
		.recv_cq = w->cq, .daemon = &m->daemon, .client = &m->client, .rq_slots = m->rq,
		.rq_entries = 16, .max_recv_sge = RING_RWQE_SGES,
	};

	memset(m, 0, sizeof(*m));
	m->qp = roce_qp_create(&init);
	ck_assert_int_eq(roce_qpn_take(w->qpns, qpn), 0);
	roce_qpn_set(w->qpns, qpn, m->qp, 0);
	ck_assert_int_eq(roce_qp_modify(w->r, m->qp, &a, VERBS_QP_STATE | VERBS_QP_QKEY, w->now),
			 0);
	a.state = RING_QPS_RTR;
	ck_assert_int_eq(roce_qp_modify(w->r, m->qp, &a, VERBS_QP_STATE, w->now), 0);
}

static void
member_free(struct wire *w, struct member *m)
{
	roce_qpn_release(w->qpns, m->qp->qpn);
	roce_qp_detach(w->r, m->qp);
	ck_assert(roce_qp_idle(m->qp));
	roce_qp_free(m->qp);
}

static void
join(struct wire *w, uint32_t qpn, const char *group)
{
	struct net_ip ip;
	void *old;

	ck_assert_int_eq(net_ip_parse(group, &ip), 0);
	ck_assert_int_gt(roce_mcast_attach(w->mcast, 0, &ip, qpn, &old), 0);
	free(old);
}

static int
leave(struct wire *w, uint32_t qpn, const char *group)
{
	struct net_ip ip;
	void *old;
	int left;

	ck_assert_int_eq(net_ip_parse(group, &ip), 0);
	left = roce_mcast_detach(w->mcast, 0, &ip, qpn, &old);
	free(old);
	return left;
}

/** From the peer to a group. */
static void
to_group(struct wire *w, const char *group, uint32_t len)
{
	struct net_ip us = w->us;

	ck_assert_int_eq(net_ip_parse(group, &w->us), 0);
	datagram(w, (struct roce_pkt){.dest_qpn = ROCE_QPN_MCAST}, len);
	w->us = us;
}

/** Each member once, nobody else; keys count as ever (B007). */
START_TEST(ROCE_C_65__each_member_once)
{
	struct wire *w = wire_new(&ud);
	static struct member a, b, c;
	uint32_t qpns = 0;

	member_new(w, &a, 0x200001, WIRE_QKEY);
	member_new(w, &b, 0x200002, WIRE_QKEY);
	member_new(w, &c, 0x200003, WIRE_QKEY + 1);
	join(w, WIRE_QPN, GROUP);
	join(w, 0x200001, GROUP);
	join(w, 0x200003, GROUP);
	join(w, 0x200009, GROUP); /* not bound yet, or gone */
	wire_post_recv(w, 0, RECV_LEN);
	member_recv(w, &a, 4096, w->key);
	member_recv(w, &b, 8192, w->key);
	member_recv(w, &c, 12288, w->key);
	to_group(w, GROUP, 77);
	for (unsigned int i = 0; i < 2; i++) {
		struct ring_cqe e = wire_cqe(w, WC_SUCCESS);

		ck_assert_uint_eq(e.byte_len, GRH + 77);
		qpns += e.qpn_status & 0xffffff;
	}
	ck_assert_uint_eq(qpns, WIRE_QPN + 0x200001);
	wire_no_cqe(w);
	expect_body(w, 0, 77);
	expect_body(w, 4096, 77);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_QKEY), 1);
	to_group(w, "239.9.9.9", 77);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_MCAST_DROPPED), 1);
	ck_assert_int_eq(leave(w, WIRE_QPN, GROUP), 3);
	ck_assert_int_eq(leave(w, WIRE_QPN, GROUP), -ENOENT);
	wire_post_recv(w, 0, RECV_LEN);
	member_recv(w, &a, 4096, w->key);
	to_group(w, GROUP, 5);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).qpn_status & 0xffffff, 0x200001);
	wire_no_cqe(w);
	wire_expect_none(w);
	member_free(w, &a);
	member_free(w, &b);
	member_free(w, &c);
	wire_free(w);
}
END_TEST

/** The number of groups with an address of one host: for nobody. And a group of another port. */
START_TEST(ROCE_C_65__not_by_the_number_alone)
{
	struct wire *w = wire_new(&ud);
	struct net_ip ip;
	void *old;

	wire_post_recv(w, 0, RECV_LEN);
	ck_assert_int_eq(net_ip_parse(GROUP, &ip), 0);
	ck_assert_int_eq(roce_mcast_attach(w->mcast, 1, &ip, WIRE_QPN, &old), 1);
	to_group(w, GROUP, 5);
	datagram(w, (struct roce_pkt){.dest_qpn = ROCE_QPN_MCAST}, 5);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_MCAST_DROPPED), 2);
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

/** Members whose memory is slow keep the same bytes; each its own reference. */
START_TEST(ROCE_C_65__slow_members)
{
	struct wire *w = wire_new(&ud);
	static struct member a, b;
	uint32_t near = w->key;

	member_new(w, &a, 0x200001, WIRE_QKEY);
	member_new(w, &b, 0x200002, WIRE_QKEY);
	join(w, WIRE_QPN, GROUP);
	join(w, 0x200001, GROUP);
	join(w, 0x200002, GROUP);
	w->key = w->far_key;
	wire_post_recv(w, 0, RECV_LEN);
	w->key = near;
	member_recv(w, &a, 4096, w->far_key);
	member_recv(w, &b, 8192, w->key);
	to_group(w, GROUP, 500);
	ck_assert_uint_eq(w->num_io, 2);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).qpn_status & 0xffffff, 0x200002);
	wire_io(w, 0);
	wire_io(w, 0);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_SUCCESS);
	memcpy(w->mem, w->far, 8192);
	expect_body(w, 0, 500);
	expect_body(w, 4096, 500);
	expect_body(w, 8192, 500);
	member_free(w, &a);
	member_free(w, &b);
	wire_free(w);
}
END_TEST

/** B008: who sends to a group gets a copy if it is a member, so do others; the wire gets one. */
START_TEST(ROCE_C_65__own_copies)
{
	struct wire *w = wire_new(&ud);
	static const uint8_t mac[6] = {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03};
	uint32_t ah = wire_ah(w, GROUP, false);
	static struct member a;
	struct roce_pkt p;

	member_new(w, &a, 0x200001, WIRE_QKEY);
	wire_pattern(w->mem + 20000, 100, 7);
	wire_post_ud(w, RING_WR_SEND, 20000, 100, 0, ah, ROCE_QPN_MCAST, WIRE_QKEY);
	wire_cqe(w, WC_SUCCESS);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x100, &p);
	ck_assert_uint_eq(p.dest_qpn, ROCE_QPN_MCAST);
	ck_assert_mem_eq(rte_pktmbuf_mtod(wire_last(w), void *), mac, 6);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_MCAST_LOOPED), 0);
	join(w, WIRE_QPN, GROUP);
	join(w, 0x200001, GROUP);
	wire_post_recv(w, 0, RECV_LEN);
	member_recv(w, &a, 4096, w->key);
	wire_post_ud(w, RING_WR_SEND, 20000, 100, 0, ah, ROCE_QPN_MCAST, WIRE_QKEY);
	for (unsigned int i = 0; i < 3; i++)
		wire_cqe(w, WC_SUCCESS);
	wire_no_cqe(w);
	expect_body(w, 0, 100);
	expect_body(w, 4096, 100);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x101, NULL);
	wire_expect_none(w);
	member_free(w, &a);
	wire_free(w);
}
END_TEST

START_TEST(mcast__table)
{
	struct roce_mcast_table *t = roce_mcast_table_create();
	struct net_ip ip;
	void *old;

	ck_assert_int_eq(net_ip_parse("ff0e::1", &ip), 0);
	for (uint32_t i = 1; i <= ROCE_MCAST_QPS; i++) {
		ck_assert_int_eq(roce_mcast_attach(t, 0, &ip, i, &old), (int)i);
		free(old);
	}
	ck_assert_int_eq(roce_mcast_attach(t, 0, &ip, 7, &old), -EEXIST);
	ck_assert_int_eq(roce_mcast_attach(t, 0, &ip, 1000, &old), -ENOSPC);
	for (uint32_t i = ROCE_MCAST_QPS; i >= 1; i--) {
		ck_assert(roce_mcast_has(t, 0, &ip));
		ck_assert_int_eq(roce_mcast_detach(t, 0, &ip, i, &old), (int)i - 1);
		free(old);
	}
	ck_assert(!roce_mcast_has(t, 0, &ip));
	for (uint32_t i = 0; i < ROCE_MCAST_GROUPS; i++) {
		memcpy(ip.b + 12, &i, 4);
		ck_assert_int_eq(roce_mcast_attach(t, 0, &ip, 1, &old), 1);
	}
	ip.b[8] = 1;
	ck_assert_int_eq(roce_mcast_attach(t, 0, &ip, 1, &old), -ENOSPC);
	ck_assert_uint_eq(roce_mcast_groups(t), ROCE_MCAST_GROUPS);
	roce_mcast_table_free(t);
}
END_TEST

/* ---- captured datagrams ---------- */

static const struct golden {
	const char *file;
	uint32_t qpn, qkey;
	uint8_t from; /* whose datagrams: the last byte of 192.0.2.x */
} golden[] = {
	{"roce-ud-ops.pcap", 0x17, 0x01234567, 3},
	{"roce-ud-pingpong.pcap", 0x1a, 0x11111111, 3},
	{"roce-ud-pingpong.pcap", 0x1a, 0x11111111, 2},
};

#define BTH_AT 42

static bool
golden_next(struct capture *c, const struct golden *g, struct roce_pkt *p)
{
	while (capture_next(c)) {
		uint32_t len = (uint32_t)(c->data[16] << 8 | c->data[17]) + 14;

		if (c->data[29] != g->from ||
		    roce_parse(c->data + BTH_AT, len - BTH_AT - ROCE_ICRC_LEN, p) != ROCE_OK ||
		    p->dest_qpn != g->qpn)
			continue;
		c->len = len; /* no Ethernet padding */
		return true;
	}
	return false;
}

/** Every byte of theirs arrives, with their IP header before it. */
START_TEST(golden__received)
{
	const struct golden *g = &golden[_i];
	struct wire_params prm = {.type = VERBS_QPT_UD, .credits = true, .qpn = g->qpn,
				  .qkey = g->qkey,
				  .us = g->from == 3 ? "192.0.2.2" : "192.0.2.3"};
	struct capture *c = capture_open(g->file);
	struct wire *w = wire_new(&prm);
	unsigned int n = 0;
	struct roce_pkt p;

	while (golden_next(c, g, &p)) {
		struct ring_cqe e;

		wire_post_recv(w, 0, RECV_LEN);
		wire_frame(w, c->data, c->len);
		e = wire_cqe(w, WC_SUCCESS);
		ck_assert_uint_eq(e.byte_len, GRH + p.payload_len);
		ck_assert_uint_eq(e.src_opcode & 0xffffff, p.src_qpn);
		ck_assert_uint_eq(!!(e.tag & RING_CQE_WITH_IMM),
				  p.opcode == ROCE_UD_SEND_ONLY_IMM);
		ck_assert_uint_eq(e.imm, p.imm_be);
		ck_assert_mem_eq(w->mem + 20, c->data + 14, 20);
		ck_assert_mem_eq(w->mem + GRH, p.payload, p.payload_len);
		n++;
	}
	ck_assert_uint_eq(n, 4);
	wire_expect_none(w);
	capture_close(c);
	wire_free(w);
}
END_TEST

/** The same requests give the same packets, but for what is a sender's to choose. */
START_TEST(golden__sent)
{
	const struct golden *g = &golden[_i];
	struct wire_params prm = {.type = VERBS_QPT_UD, .credits = true, .qpn = g->qpn,
				  .qkey = g->qkey, .peer = g->from == 3 ? "192.0.2.2" : "192.0.2.3",
				  .us = g->from == 3 ? "192.0.2.3" : "192.0.2.2"};
	struct capture *c = capture_open(g->file);
	struct wire *w = NULL;
	unsigned int n = 0;
	struct roce_pkt p, ours;

	while (golden_next(c, g, &p)) {
		bool imm = p.opcode == ROCE_UD_SEND_ONLY_IMM;
		const uint8_t *frame;

		prm.sq_psn = p.psn;
		if (w == NULL)
			w = wire_new(&prm);
		if (n == 0 && p.psn == 0) {
			struct roce_qp *qp = (struct roce_qp *)w->qp;

			qp->snd_max = 0; /* wire_new() takes 0 for its default */
		}
		memcpy(w->mem, p.payload, p.payload_len);
		w->params.sq_psn = p.psn;
		wire_post_ud(w, imm ? RING_WR_SEND_WITH_IMM : RING_WR_SEND, 0, p.payload_len, 0,
			     w->ah, p.dest_qpn, 0x80000000);
		wire_cqe(w, WC_SUCCESS);
		ck_assert(wire_sent(w, &ours));
		frame = rte_pktmbuf_mtod(wire_last(w), const uint8_t *);
		ck_assert_uint_eq(wire_last(w)->pkt_len, c->len);
		c->data[18] = frame[18]; /* identification, checksum */
		c->data[19] = frame[19];
		c->data[24] = frame[24];
		c->data[25] = frame[25];
		c->data[BTH_AT + 1] |= ROCE_BTH_MIGREQ;
		if (imm)
			memcpy(c->data + BTH_AT + 20, frame + BTH_AT + 20, 4);
		ck_assert_mem_eq(frame + 14, c->data + 14, c->len - 14 - ROCE_ICRC_LEN);
		n++;
	}
	ck_assert_uint_eq(n, 4);
	capture_close(c);
	wire_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_ud_group");
	TCase *c = tcase_create("ud_group");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_test(c, ROCE_C_65__each_member_once);
	tcase_add_test(c, ROCE_C_65__not_by_the_number_alone);
	tcase_add_test(c, ROCE_C_65__slow_members);
	tcase_add_test(c, ROCE_C_65__own_copies);
	tcase_add_test(c, mcast__table);
	tcase_add_loop_test(c, golden__received, 0, RTE_DIM(golden));
	tcase_add_loop_test(c, golden__sent, 0, RTE_DIM(golden));
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
