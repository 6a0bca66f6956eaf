/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage 1 of receiving: who gets which packet, and what is dropped by which name. */
#include "worker_fixture.h"

static struct fx f;

#define RECEIVE(v) fx_receive(&f, 0, 0, v, sizeof(v))

/** The packet's only effect is this counter. */
#define EXPECT_DROP(v, counter) \
	do { \
		uint64_t before_ = fx_count(&f, 0, counter); \
		RECEIVE(v); \
		ck_assert_uint_eq(worker_poll(f.s.worker[0]), 1); \
		ck_assert_uint_eq(fx_count(&f, 0, counter), before_ + 1); \
		ck_assert_ptr_null(fx_told(&f)); \
		ck_assert_uint_eq(f.port[0].q[0].num_tx, 0); \
	} while (0)

static void
change(uint8_t *copy, const uint8_t *frame, size_t len, size_t at, uint8_t to)
{
	memcpy(copy, frame, len);
	copy[at] = to;
}

START_TEST(rx__roce_for_us)
{
	fx_start(&f, 1);
	RECEIVE(v_udp4);
	RECEIVE(v_udp6);
	ck_assert_uint_eq(worker_poll(f.s.worker[0]), 2);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_RX_ROCE), 2);
	/* They have no right ICRC: it is the engine that says so. */
	ck_assert_uint_eq(roce_counters(f.s.worker[0]->roce)[ROCE_C_ICRC_ERRORS], 2);
	ck_assert_uint_eq(worker_poll(f.s.worker[0]), 0);
	fx_stop(&f);
}
END_TEST

START_TEST(rx__not_for_us)
{
	uint8_t frame[sizeof(v_udp6)];

	fx_start(&f, 1);
	change(frame, v_udp4, sizeof(v_udp4), 5, 9);
	fx_receive(&f, 0, 0, frame, sizeof(v_udp4));
	worker_poll(f.s.worker[0]);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_DROP_MAC), 1);
	change(frame, v_udp6, sizeof(v_udp6), 14 + 39, 9);
	fx_receive(&f, 0, 0, frame, sizeof(v_udp6));
	worker_poll(f.s.worker[0]);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_DROP_ADDRESS), 1);
	/* Our address, but not on that VLAN. */
	EXPECT_DROP(v_udp4_tagged, WORKER_C_DROP_ADDRESS);
	EXPECT_DROP(v_tcp4, WORKER_C_DROP_TCP);
	EXPECT_DROP(v_udp4_cksum, WORKER_C_DROP_UDP);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_RX_ROCE), 0);
	fx_stop(&f);
}
END_TEST

START_TEST(rx__priority_tag_is_no_vlan)
{
	fx_start(&f, 1);
	RECEIVE(v_udp4_prio);
	worker_poll(f.s.worker[0]);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_RX_ROCE), 1);
	fx_stop(&f);
}
END_TEST

START_TEST(rx__malformed_is_counted_by_kind)
{
	fx_start(&f, 1);
	RECEIVE(v_ip_cksum);
	RECEIVE(v_udp_len_long);
	RECEIVE(v_frag4_first);
	ck_assert_uint_eq(worker_poll(f.s.worker[0]), 3);
	ck_assert_uint_eq(counter_read(&f.s.worker[0]->kind[NET_DROP_IP_CKSUM]), 1);
	ck_assert_uint_eq(counter_read(&f.s.worker[0]->kind[NET_DROP_UDP_LEN]), 1);
	ck_assert_uint_eq(counter_read(&f.s.worker[0]->kind[NET_DROP_IP_FRAGMENT]), 1);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_RX_ROCE), 0);
	fx_stop(&f);
}
END_TEST

START_TEST(rx__echo_goes_back_where_it_came_from)
{
	fx_start(&f, 1);
	fx_receive(&f, 1, 0, v_echo4, sizeof(v_echo4));
	fx_receive(&f, 0, 0, v_echo6, sizeof(v_echo6));
	ck_assert_uint_eq(worker_poll(f.s.worker[0]), 2);
	ck_assert_uint_eq(worker_poll(f.s.worker[0]), 0); /* receives are last, sending is before */
	ck_assert_uint_eq(f.port[1].q[0].num_tx, 1);
	ck_assert_uint_eq(f.port[0].q[0].num_tx, 1);
	ck_assert_mem_eq(rte_pktmbuf_mtod(f.port[1].q[0].tx[0], void *), v_echo4_reply,
			 sizeof(v_echo4_reply));
	ck_assert_mem_eq(rte_pktmbuf_mtod(f.port[0].q[0].tx[0], void *), v_echo6_reply,
			 sizeof(v_echo6_reply));
	fx_stop(&f);
}
END_TEST

/** Control packets go whole, with the port's number, and their messages come back. */
START_TEST(rx__control_packets)
{
	const struct {
		const uint8_t *frame;
		size_t len;
	} sent[] = {{v_arp_req_us, sizeof(v_arp_req_us)}, {v_ns_us, sizeof(v_ns_us)},
		    {v_port_unreachable, sizeof(v_port_unreachable)}};
	struct worker_msg *m;

	fx_start(&f, 1);
	for (size_t i = 0; i < RTE_DIM(sent); i++) {
		fx_receive(&f, 1, 0, sent[i].frame, sent[i].len);
		worker_poll(f.s.worker[0]);
		m = fx_told(&f);
		ck_assert_ptr_nonnull(m);
		ck_assert_int_eq(m->type, WORKER_MSG_RX_CTL);
		ck_assert(!m->reply);
		ck_assert_uint_eq(m->pkt.port, 1);
		ck_assert_mem_eq(rte_pktmbuf_mtod(m->pkt.m, void *), sent[i].frame, 14);
		rte_pktmbuf_free(m->pkt.m);
		m->done(m);
	}
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_RX_CTL), RTE_DIM(sent));
	fx_stop(&f);
}
END_TEST

/** A flood is bounded, and what came before it can still be told when it is over. */
START_TEST(rx__control_flood)
{
	struct verbs_qp qp = {0};
	struct worker_msg *m;
	unsigned int n = 0;

	fx_start(&f, 1);
	for (unsigned int i = 0; i < WORKER_RX_CTL + 50; i++) {
		RECEIVE(v_arp_req_us);
		worker_poll(f.s.worker[0]);
	}
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_RX_CTL), WORKER_RX_CTL);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_DROP_CTL_FULL), 50);
	/* Events have a share of their own. */
	worker_event(f.s.worker[0], VERBS_EVENT_QP_FATAL, &qp);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_EVENTS), 1);
	while ((m = fx_told(&f)) != NULL) {
		if (m->type == WORKER_MSG_RX_CTL)
			rte_pktmbuf_free(m->pkt.m);
		m->done(m);
		n++;
	}
	ck_assert_uint_eq(n, WORKER_RX_CTL + 1);
	RECEIVE(v_arp_req_us);
	worker_poll(f.s.worker[0]);
	m = fx_told(&f);
	ck_assert_ptr_nonnull(m);
	rte_pktmbuf_free(m->pkt.m);
	fx_stop(&f);
}
END_TEST

/** A batch without room: the reply is dropped, not kept, and nothing leaks. */
START_TEST(rx__echo_flood_on_a_stuck_port)
{
	fx_start(&f, 1);
	f.port[0].takes = 0;
	for (int i = 0; i < NET_TX_BATCH + 10; i++) {
		RECEIVE(v_echo4);
		worker_poll(f.s.worker[0]);
	}
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_RX_ECHO), NET_TX_BATCH);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_DROP_ECHO), 10);
	fx_stop(&f);
}
END_TEST

UNIT_MAIN("worker_rx", rx__roce_for_us, rx__not_for_us, rx__priority_tag_is_no_vlan,
	  rx__malformed_is_counted_by_kind, rx__echo_goes_back_where_it_came_from,
	  rx__control_packets, rx__control_flood, rx__echo_flood_on_a_stuck_port)
