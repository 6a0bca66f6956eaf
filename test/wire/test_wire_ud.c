/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD: what a datagram's receiver sees, what is dropped, how requests name their destinations, and
 * how unknown neighbours are dealt with.
 */
#include "wire_ud.h"

static const struct wire_params ud_srq = {.type = VERBS_QPT_UD};
static const struct wire_params ud_v6 = {.type = VERBS_QPT_UD, .credits = true,
					 .us = "2001:db8::2", .peer = "2001:db8::3"};

/* ---- receiving ---------- */

/** B016: 40 bytes before the payload, of which IPv4 has the last 20. */
START_TEST(ROCE_C_49__ipv4_header_in_the_second_half)
{
	struct wire *w = wire_new(&ud);
	static const uint8_t zero[20];
	struct ring_cqe e;

	memset(w->mem, 0xee, 1024);
	wire_post_recv(w, 0, RECV_LEN);
	datagram(w, (struct roce_pkt){.psn = 99}, 100);
	e = wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.byte_len, GRH + 100);
	ck_assert_uint_eq(e.src_opcode & 0xffffff, WIRE_PEER_QPN);
	ck_assert_uint_eq(e.src_opcode >> 24, RING_WC_RECV);
	ck_assert_uint_eq(e.qpn_status & 0xffffff, WIRE_QPN);
	ck_assert(e.tag & RING_CQE_GRH);
	ck_assert(!(e.tag & (RING_CQE_WITH_IMM | RING_CQE_SOLICITED)));
	ck_assert_mem_eq(w->mem, zero, 20);
	ck_assert_uint_eq(w->mem[20], 0x45);
	ck_assert_mem_eq(w->mem + 20 + 12, w->peer.b + 12, 4);
	ck_assert_mem_eq(w->mem + 20 + 16, w->us.b + 12, 4);
	expect_body(w, 0, 100);
	ck_assert_uint_eq(w->mem[GRH + 100], 0xee);
	wire_expect_none(w); /* nothing is answered */
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_49__ipv6_header)
{
	struct wire *w = wire_new(&ud_v6);
	struct ring_cqe e;

	wire_post_recv(w, 0, RECV_LEN);
	datagram(w, (struct roce_pkt){.opcode = ROCE_UD_SEND_ONLY_IMM, .imm_be = 0xaabbccdd,
				      .se = true}, 1);
	e = wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.byte_len, GRH + 1);
	ck_assert(e.tag & RING_CQE_GRH);
	ck_assert(e.tag & RING_CQE_WITH_IMM);
	ck_assert(e.tag & RING_CQE_SOLICITED);
	ck_assert_uint_eq(e.imm, 0xaabbccdd);
	ck_assert_uint_eq(w->mem[0] >> 4, 6);
	ck_assert_mem_eq(w->mem + 8, w->peer.b, 16);
	ck_assert_mem_eq(w->mem + 24, w->us.b, 16);
	expect_body(w, 0, 1);
	wire_free(w);
}
END_TEST

/** A datagram may be empty: the header is all there is. */
START_TEST(ROCE_C_49__of_no_bytes)
{
	struct wire *w = wire_new(&ud);

	wire_post_recv(w, 0, GRH);
	datagram(w, (struct roce_pkt){0}, 0);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, GRH);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_50__keys)
{
	struct wire *w = wire_new(&ud);

	wire_post_recv(w, 0, RECV_LEN);
	datagram(w, (struct roce_pkt){.qkey = WIRE_QKEY + 1}, 10);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_QKEY), 1);
	datagram(w, (struct roce_pkt){.pkey = 0xfffe}, 10);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_PKEY), 1);
	wire_no_cqe(w);
	datagram(w, (struct roce_pkt){.pkey = 0x7fff}, 10); /* a limited member, we are full */
	wire_cqe(w, WC_SUCCESS);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/** Packets of other classes (C-8), of any address: that is no connection. */
START_TEST(ROCE_C_8__classes)
{
	struct wire *w = wire_new(&ud);

	wire_post_recv(w, 0, RECV_LEN);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_SEND_ONLY, .ackreq = true}, NULL, 0);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_UC_SEND_ONLY}, NULL, 0);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_QP_TYPE), 2);
	wire_expect_none(w);
	ck_assert_int_eq(net_ip_parse("192.0.2.77", &w->peer), 0);
	datagram(w, (struct roce_pkt){0}, 10);
	wire_cqe(w, WC_SUCCESS);
	wire_free(w);
}
END_TEST

START_TEST(recv__none_is_a_drop)
{
	struct wire *w = wire_new(&ud);

	datagram(w, (struct roce_pkt){0}, 10);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UD_NO_RECV), 1);
	wire_no_cqe(w);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/** What does not fit is dropped, and its receive request is the next datagram's (class D). */
START_TEST(recv__too_long)
{
	struct wire *w = wire_new(&ud);
	struct ring_cqe e;

	wire_post_recv(w, 0, GRH + 9);
	datagram(w, (struct roce_pkt){0}, 10);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UD_TOO_LONG), 1);
	wire_no_cqe(w);
	datagram(w, (struct roce_pkt){0}, 9);
	e = wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(e.wqe_index, 0);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	wire_free(w);
}
END_TEST

/** One of a shared queue would be lost: it completes in error (class E), and the QP goes on. */
START_TEST(recv__too_long_of_an_srq)
{
	struct wire *w = wire_new(&ud_srq);

	wire_post_recv(w, 0, GRH + 9);
	datagram(w, (struct roce_pkt){0}, 10);
	wire_cqe(w, WC_LOC_LEN_ERR);
	wire_post_recv(w, 0, RECV_LEN);
	datagram(w, (struct roce_pkt){0}, 10);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, GRH + 10);
	wire_free(w);
}
END_TEST

/** A receive request that names no memory fails, and its QP. */
START_TEST(recv__bad_key)
{
	struct wire *w = wire_new(&ud);

	w->key ^= 0x5500;
	wire_post_recv(w, 0, RECV_LEN);
	w->key ^= 0x5500;
	datagram(w, (struct roce_pkt){0}, 10);
	wire_cqe(w, WC_LOC_PROT_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	wire_free(w);
}
END_TEST

/** Memory that a copier reaches: one access for header and payload; others wait their turn. */
START_TEST(recv__foreign)
{
	struct wire *w = wire_new(&ud);
	uint32_t near = w->key;

	w->key = w->far_key;
	wire_post_recv(w, 0, RECV_LEN);
	w->key = near;
	wire_post_recv(w, 4096, RECV_LEN);
	datagram(w, (struct roce_pkt){0}, 600);
	ck_assert_uint_eq(w->num_io, 1);
	datagram(w, (struct roce_pkt){0}, 20);
	wire_no_cqe(w);
	wire_io(w, 0);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, GRH + 600);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, GRH + 20);
	ck_assert_uint_eq(w->far[20], 0x45);
	expect_body(w, 4096, 20);
	memcpy(w->mem, w->far, RECV_LEN);
	expect_body(w, 0, 600);
	wire_free(w);
}
END_TEST

START_TEST(recv__foreign_fails)
{
	struct wire *w = wire_new(&ud);
	uint32_t near = w->key;

	w->key = w->far_key;
	wire_post_recv(w, 0, RECV_LEN);
	w->key = near;
	datagram(w, (struct roce_pkt){0}, 600);
	wire_io(w, -EFAULT);
	wire_cqe(w, WC_LOC_PROT_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	wire_free(w);
}
END_TEST

START_TEST(recv__states)
{
	struct wire_params p = ud;
	struct wire *w;

	p.stop_at_rtr = true;
	w = wire_new(&p);
	wire_post_recv(w, 0, RECV_LEN);
	datagram(w, (struct roce_pkt){0}, 10);
	wire_cqe(w, WC_SUCCESS);
	ck_assert(wire_event(w, VERBS_EVENT_COMM_EST));
	wire_post_recv(w, 0, RECV_LEN);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	datagram(w, (struct roce_pkt){0}, 10);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_QP_STATE), 1);
	wire_free(w);
}
END_TEST

/* ---- sending ---------- */

START_TEST(send__headers)
{
	struct wire *w = wire_new(&ud);
	struct roce_pkt p;
	struct net_pkt np;

	wire_pattern(w->mem, 64, 1);
	wire_post_ud(w, RING_WR_SEND, 0, 13, 0, w->ah, 0x1234, 0x42);
	wire_cqe(w, WC_SUCCESS); /* the batch has it */
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x100, &p);
	ck_assert_uint_eq(p.dest_qpn, 0x1234);
	ck_assert_uint_eq(p.qkey, 0x42);
	ck_assert_uint_eq(p.src_qpn, WIRE_QPN);
	ck_assert(!p.ackreq && !p.se);
	ck_assert_uint_eq(p.pad, 3);
	ck_assert_uint_eq(p.payload_len, 13);
	ck_assert_mem_eq(p.payload, w->mem, 13);
	ck_assert_int_eq(net_parse(wire_last(w), &np), NET_UDP);
	ck_assert_uint_eq(np.sport, net_udp_sport_ud(WIRE_QPN));
	ck_assert_uint_eq(np.hop_limit, 64);
	wire_post_ud(w, RING_WR_SEND_WITH_IMM, 0, 0, RING_WR_SOLICITED, w->ah, 0xffffff,
		     0x80000000);
	wire_cqe(w, WC_SUCCESS);
	wire_expect(w, ROCE_UD_SEND_ONLY_IMM, 0x101, &p);
	ck_assert(p.se);
	ck_assert_uint_eq(p.imm_be, 0x11223344);
	ck_assert_uint_eq(p.qkey, WIRE_QKEY); /* the QP's, for one with the high bit */
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_51__longer_than_the_mtu)
{
	struct wire *w = wire_new(&ud);

	wire_post_ud(w, RING_WR_SEND, 0, 1025, 0, w->ah, 0x1234, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_expect_none(w);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UD_TOO_LONG_SENT), 1);
	wire_post_ud(w, RING_WR_SEND, 0, 1024, 0, w->ah, 0x1234, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x100, NULL);
	wire_free(w);
}
END_TEST

/** Numbers that a client makes up: of nobody, of another domain, of a handle that was. */
START_TEST(ah__hostile_numbers)
{
	struct wire *w = wire_new(&ud);
	uint32_t other, gone, bad[5];
	struct verbs_av av = {.vlan = 0xffff, .neigh = w->neigh};

	memcpy(av.dgid, w->peer.b, 16);
	memcpy(av.sgid, w->us.b, 16);
	ck_assert_int_eq(roce_ah_add(w->ahs, WIRE_PD + 1, &av, 0, &other), 0);
	gone = wire_ah(w, "192.0.2.9", false);
	roce_ah_free(roce_ah_remove(w->ahs, gone));
	bad[0] = 0;
	bad[1] = UINT32_MAX;
	bad[2] = other;
	bad[3] = gone;
	bad[4] = w->ah ^ 0x10000;
	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct verbs_qp_attr a = {.state = RING_QPS_RTS};

		wire_post_ud(w, RING_WR_SEND, 0, 8, 0, bad[i], 1, 1);
		wire_cqe(w, WC_LOC_QP_OP_ERR);
		ck_assert_uint_eq(w->qp->state, RING_QPS_SQE);
		ck_assert_int_eq(roce_qp_modify(w->r, w->qp, &a, VERBS_QP_STATE, w->now), 0);
	}
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UD_BAD_AH), RTE_DIM(bad));
	/* a QPN of more than 24 bits */
	wire_post_ud(w, RING_WR_SEND, 0, 8, 0, w->ah, 0x1000000, 1);
	wire_cqe(w, WC_LOC_QP_OP_ERR);
	wire_expect_none(w);
	ck_assert_uint_eq(roce_ah_count(w->ahs), 2);
	wire_free(w);
}
END_TEST

/** Its slot's next handle has another number; and a table has an end. */
START_TEST(ah__table)
{
	struct wire *w = wire_new(&ud);
	struct verbs_av av = {.vlan = 0xffff, .neigh = w->neigh};
	uint32_t n[32], again;

	memcpy(av.dgid, w->peer.b, 16);
	memcpy(av.sgid, w->us.b, 16);
	for (unsigned int i = 0; i < 31; i++)
		ck_assert_int_eq(roce_ah_add(w->ahs, WIRE_PD, &av, 0, &n[i]), 0);
	ck_assert_int_eq(roce_ah_add(w->ahs, WIRE_PD, &av, 0, &again), -ENOSPC);
	roce_ah_free(roce_ah_remove(w->ahs, n[7]));
	ck_assert_ptr_null(roce_ah_remove(w->ahs, n[7]));
	ck_assert_int_eq(roce_ah_add(w->ahs, WIRE_PD, &av, 0, &again), 0);
	ck_assert_uint_ne(again, n[7]);
	ck_assert_ptr_null(roce_ah_lookup(w->ahs, n[7], WIRE_PD));
	ck_assert_ptr_nonnull(roce_ah_lookup(w->ahs, again, WIRE_PD));
	av.sl = 8;
	roce_ah_free(roce_ah_remove(w->ahs, again));
	ck_assert_int_eq(roce_ah_add(w->ahs, WIRE_PD, &av, 0, &again), -EINVAL);
	wire_free(w);
}
END_TEST

/** One that is made is nobody's to find until it is entered: its maker may give it up. */
START_TEST(ah__entered_last)
{
	struct wire *w = wire_new(&ud);
	struct verbs_av av = {.vlan = 0xffff, .neigh = w->neigh};
	uint32_t before = roce_ah_count(w->ahs), n, again;
	struct roce_ah *ah;

	memcpy(av.dgid, w->peer.b, 16);
	memcpy(av.sgid, w->us.b, 16);
	ck_assert_int_eq(roce_ah_make(w->ahs, WIRE_PD, &av, 0, &ah, &n), 0);
	ck_assert_ptr_null(roce_ah_lookup(w->ahs, n, WIRE_PD));
	ck_assert_uint_eq(roce_ah_count(w->ahs), before + 1);
	roce_ah_unmake(w->ahs, ah);
	ck_assert_uint_eq(roce_ah_count(w->ahs), before);
	ck_assert_int_eq(roce_ah_make(w->ahs, WIRE_PD, &av, 0, &ah, &again), 0);
	ck_assert_uint_ne(again, n);
	roce_ah_enter(w->ahs, ah);
	ck_assert_ptr_eq(roce_ah_lookup(w->ahs, again, WIRE_PD), ah);
	wire_free(w);
}
END_TEST

/** A local fault stops sending, not receiving: SQE, out of which a modify leads. */
START_TEST(sqe__receives_go_on)
{
	struct verbs_qp_attr a = {.state = RING_QPS_RTS};
	struct wire *w = wire_new(&ud);

	w->key ^= 0x5500;
	wire_post_ud(w, RING_WR_SEND, 0, 8, 0, w->ah, 1, 1);
	wire_cqe(w, WC_LOC_PROT_ERR);
	w->key ^= 0x5500;
	ck_assert_uint_eq(w->qp->state, RING_QPS_SQE);
	wire_post_ud(w, RING_WR_SEND, 0, 8, 0, w->ah, 1, 1);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	wire_post_recv(w, 0, RECV_LEN);
	datagram(w, (struct roce_pkt){0}, 10);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_int_eq(roce_qp_modify(w->r, w->qp, &a, VERBS_QP_STATE, w->now), 0);
	wire_post_ud(w, RING_WR_SEND, 0, 8, 0, w->ah, 1, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x100, NULL);
	wire_free(w);
}
END_TEST

START_TEST(send__foreign)
{
	struct wire *w = wire_new(&ud);
	uint32_t near = w->key;
	struct roce_pkt p;

	wire_pattern(w->far, 1024, 3);
	w->key = w->far_key;
	wire_post_ud(w, RING_WR_SEND, 0, 700, 0, w->ah, 5, 1);
	w->key = near;
	wire_post_ud(w, RING_WR_SEND, 0, 8, 0, w->ah, 6, 1);
	wire_no_cqe(w);
	wire_expect_none(w);
	wire_io(w, 0);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_SUCCESS);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x100, &p);
	ck_assert_mem_eq(p.payload, w->far, 700);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x101, &p);
	ck_assert_uint_eq(p.dest_qpn, 6);
	wire_free(w);
}
END_TEST

/** The memory cannot be read; or the handle goes while it is being. */
START_TEST(send__foreign_fails)
{
	struct verbs_qp_attr a = {.state = RING_QPS_RTS};
	struct wire *w = wire_new(&ud);

	w->key = w->far_key;
	wire_post_ud(w, RING_WR_SEND, 0, 700, 0, w->ah, 5, 1);
	wire_io(w, -EFAULT);
	wire_cqe(w, WC_LOC_PROT_ERR);
	ck_assert_int_eq(roce_qp_modify(w->r, w->qp, &a, VERBS_QP_STATE, w->now), 0);
	wire_post_ud(w, RING_WR_SEND, 0, 700, 0, w->ah, 5, 1);
	roce_ah_free(roce_ah_remove(w->ahs, w->ah));
	wire_io(w, 0);
	wire_cqe(w, WC_LOC_QP_OP_ERR);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/** The QP is reset while a copier reads for it: the packet goes with the io. */
START_TEST(send__foreign_and_reset)
{
	struct wire *w = wire_new(&ud);

	w->key = w->far_key;
	wire_post_ud(w, RING_WR_SEND, 0, 700, 0, w->ah, 5, 1);
	wire_connect_again(w);
	wire_io(w, 0);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

START_TEST(send__port_full)
{
	struct wire *w = wire_new(&ud);
	unsigned int n = NET_TX_BATCH + 20;

	w->tx_stuck = true;
	for (unsigned int i = 0; i < n; i++)
		wire_post_ud(w, RING_WR_SEND, 0, 8, 0, w->ah, 5, 1);
	for (unsigned int i = 0; i < NET_TX_BATCH; i++)
		wire_cqe(w, WC_SUCCESS);
	wire_no_cqe(w);
	w->tx_stuck = false;
	wire_go(w);
	for (unsigned int i = 0; i < n; i++)
		wire_expect(w, ROCE_UD_SEND_ONLY, 0x100 + i, NULL);
	wire_free(w);
}
END_TEST

START_TEST(ROCE_C_44__drain)
{
	struct wire *w = wire_new(&ud);

	w->key = w->far_key;
	wire_post_ud(w, RING_WR_SEND, 0, 700, 0, w->ah, 5, 1);
	ck_assert_int_eq(wire_modify(w, RING_QPS_SQD), 0);
	ck_assert(!wire_event(w, VERBS_EVENT_SQ_DRAINED));
	wire_post_ud(w, RING_WR_SEND, 0, 700, 0, w->ah, 5, 1);
	wire_io(w, 0);
	wire_cqe(w, WC_SUCCESS);
	wire_no_cqe(w);
	ck_assert(wire_event(w, VERBS_EVENT_SQ_DRAINED));
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	wire_free(w);
}
END_TEST

/* ---- neighbours ---------- */

/** One that nobody knows holds up no other: what is for it waits, bounded, and goes when it may. */
START_TEST(neighbour__no_head_of_line)
{
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 9}};
	struct wire *w = wire_new(&ud);
	uint32_t dead = wire_ah(w, "192.0.2.9", true);
	struct net_ip ip;
	struct roce_pkt p;

	for (unsigned int i = 0; i < 12; i++)
		wire_post_ud(w, RING_WR_SEND, 0, 8, 0, dead, 0x900 + i, 1);
	wire_post_ud(w, RING_WR_SEND, 0, 8, 0, w->ah, 0x300, 1);
	for (unsigned int i = 0; i < 13; i++)
		wire_cqe(w, WC_SUCCESS);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x100 + 12, &p);
	ck_assert_uint_eq(p.dest_qpn, 0x300);
	wire_expect_none(w);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UD_NEIGH_DROPPED), 4);
	ck_assert_int_eq(net_ip_parse("192.0.2.9", &ip), 0);
	net_neigh_set_static(w->neighs, &ip, 0, &mac);
	roce_neigh_resolved(w->r, net_neigh_find(w->neighs, &ip, 0), w->now);
	wire_go(w);
	for (unsigned int i = 0; i < 8; i++) {
		wire_expect(w, ROCE_UD_SEND_ONLY, 0x100 + i, &p);
		ck_assert_uint_eq(p.dest_qpn, 0x900 + i);
		ck_assert_mem_eq(rte_pktmbuf_mtod(wire_last(w), void *), &mac, 6);
	}
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/** Known, but the engine has not been told: what waits for it goes before what is posted now. */
START_TEST(neighbour__no_overtaking)
{
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 9}};
	struct wire *w = wire_new(&ud);
	uint32_t ah = wire_ah(w, "192.0.2.9", true);
	struct net_ip ip;

	for (unsigned int i = 0; i < 3; i++)
		wire_post_ud(w, RING_WR_SEND, 0, 8, 0, ah, 1, 1);
	wire_expect_none(w);
	ck_assert_int_eq(net_ip_parse("192.0.2.9", &ip), 0);
	net_neigh_set_static(w->neighs, &ip, 0, &mac);
	for (unsigned int i = 3; i < 6; i++)
		wire_post_ud(w, RING_WR_SEND, 0, 8, 0, ah, 1, 1);
	for (unsigned int i = 0; i < 6; i++) {
		wire_expect(w, ROCE_UD_SEND_ONLY, 0x100 + i, NULL);
		ck_assert_mem_eq(rte_pktmbuf_mtod(wire_last(w), void *), &mac, 6);
	}
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/** The same for one whose payload a copier has read meanwhile. */
START_TEST(neighbour__no_overtaking_by_a_parked_one)
{
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 9}};
	struct wire *w = wire_new(&ud);
	uint32_t ah = wire_ah(w, "192.0.2.9", true);
	struct net_ip ip;

	wire_post_ud(w, RING_WR_SEND, 0, 8, 0, ah, 1, 1);
	w->key = w->far_key;
	wire_post_ud(w, RING_WR_SEND, 0, 700, 0, ah, 1, 1);
	ck_assert_int_eq(net_ip_parse("192.0.2.9", &ip), 0);
	net_neigh_set_static(w->neighs, &ip, 0, &mac);
	wire_io(w, 0);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x100, NULL);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x101, NULL);
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/** Nobody tells, as when a message is lost: it is looked at again. Nobody answers: given up. */
START_TEST(neighbour__looked_at_again)
{
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 9}};
	struct wire *w = wire_new(&ud);
	uint32_t dead = wire_ah(w, "192.0.2.9", true);
	struct net_ip ip;

	wire_post_ud(w, RING_WR_SEND, 0, 8, 0, dead, 1, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_wait(w, 50000000);
	wire_expect_none(w);
	ck_assert_int_eq(net_ip_parse("192.0.2.9", &ip), 0);
	net_neigh_set_static(w->neighs, &ip, 0, &mac);
	wire_wait(w, 50000000);
	wire_expect(w, ROCE_UD_SEND_ONLY, 0x100, NULL);
	dead = wire_ah(w, "192.0.2.10", true);
	wire_post_ud(w, RING_WR_SEND, 0, 8, 0, dead, 1, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_wait(w, UINT64_C(2900000000));
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UD_NEIGH_DROPPED), 0);
	wire_wait(w, UINT64_C(200000000));
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UD_NEIGH_DROPPED), 1);
	ck_assert_uint_eq(roce_next_deadline(w->r), UINT64_MAX);
	wire_free(w);
}
END_TEST

/** A handle that is destroyed takes what waits by it along. */
START_TEST(neighbour__handle_goes)
{
	struct wire *w = wire_new(&ud);
	uint32_t a = wire_ah(w, "192.0.2.9", true), b = wire_ah(w, "192.0.2.10", true);
	struct roce_ah *ah;

	for (unsigned int i = 0; i < 3; i++) {
		wire_post_ud(w, RING_WR_SEND, 0, 8, 0, a, 1, 1);
		wire_post_ud(w, RING_WR_SEND, 0, 8, 0, b, 1, 1);
	}
	for (unsigned int i = 0; i < 6; i++)
		wire_cqe(w, WC_SUCCESS);
	ah = roce_ah_remove(w->ahs, a);
	ck_assert(roce_ah_waits(ah));
	roce_ah_forget(w->r, ah);
	ck_assert(!roce_ah_waits(ah));
	roce_ah_free(ah);
	ah = roce_ah_remove(w->ahs, b);
	ck_assert(roce_ah_waits(ah));
	roce_ah_forget(w->r, ah);
	roce_ah_free(ah);
	ck_assert_uint_eq(roce_next_deadline(w->r), UINT64_MAX);
	wire_free(w);
}
END_TEST

/** However many handles a domain has, what it has waiting leaves room for others. */
START_TEST(neighbour__shares)
{
	struct wire *w = wire_new(&ud);
	uint32_t ah[20], sent = 0;

	for (unsigned int i = 0; i < RTE_DIM(ah); i++)
		ah[i] = wire_ah(w, "192.0.2.9", true);
	/* of 256 places a domain alone gets half */
	for (unsigned int i = 0; i < RTE_DIM(ah) * 10; i++, sent++)
		wire_post_ud(w, RING_WR_SEND, 0, 8, 0, ah[i % RTE_DIM(ah)], 1, 1);
	for (unsigned int i = 0; i < sent; i++)
		wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_NEIGH_WAIT), ROCE_UD_WAIT / 2);
	ck_assert_uint_eq(w->r->ud_wait.num, ROCE_UD_WAIT / 2);
	wire_wait(w, UINT64_C(4000000000));
	ck_assert_uint_eq(wire_counter(w, ROCE_C_UD_NEIGH_DROPPED), sent);
	wire_free(w);
}
END_TEST

UNIT_MAIN("wire_ud", ROCE_C_49__ipv4_header_in_the_second_half, ROCE_C_49__ipv6_header,
	  ROCE_C_49__of_no_bytes, ROCE_C_50__keys, ROCE_C_8__classes, recv__none_is_a_drop,
	  recv__too_long, recv__too_long_of_an_srq, recv__bad_key, recv__foreign,
	  recv__foreign_fails, recv__states, send__headers, ROCE_C_51__longer_than_the_mtu,
	  ah__hostile_numbers, ah__table, ah__entered_last,
	  sqe__receives_go_on, send__foreign, send__foreign_fails, send__foreign_and_reset,
	  send__port_full, ROCE_C_44__drain, neighbour__no_head_of_line, neighbour__no_overtaking,
	  neighbour__no_overtaking_by_a_parked_one, neighbour__looked_at_again,
	  neighbour__handle_goes, neighbour__shares)
