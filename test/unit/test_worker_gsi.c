/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP1 on the receive path: the MADs of captured peers reach the control thread whole, what is no
 * MAD for us does not (C-52, B023), and a flood takes neither all places nor buffers.
 */
#include "capture.h"
#include "net_path.h"
#include "roce_gsi.h"
#include "roce_hdr.h"
#include "roce_icrc.h"
#include "worker_fixture.h"

#define BTH_AT 42 /* Ethernet, IPv4, UDP */
#define DETH_AT (BTH_AT + 12)
#define MAD_AT (DETH_AT + 8)

static struct fx f;
static uint8_t frame[ROCE_GSI_FRAME_MAX];
static uint32_t frame_len;

static uint64_t
roce(enum roce_counter c)
{
	return roce_counters(f.s.worker[0]->roce)[c];
}

/** A MAD from QP1 of a peer, as we write them. */
static void
make_mad(const char *from, const char *to, uint8_t fill)
{
	struct net_path_params prm = {.src = ip(from), .dst = ip(to), .smac = test_peer,
		.vlan_tci = NET_VLAN_NONE, .sport = net_udp_sport_ud(ROCE_QPN_GSI)};
	uint8_t mad[ROCE_MAD_LEN] = {ROCE_MAD_BASE_VERSION, ROCE_MAD_CLASS_CM, 2, 3};
	struct net_path path;

	memset(mad + 24, fill, sizeof(mad) - 24);
	ck_assert_int_eq(net_path_init(&path, &prm), 0);
	frame_len = roce_gsi_emit(&path, net_neigh_l2_pack(&test_us, NET_NEIGH_REACHABLE), 7, mad,
				  frame);
}

static void
receive(void)
{
	fx_receive(&f, 0, 0, frame, frame_len);
	ck_assert_uint_eq(worker_poll(f.s.worker[0]), 1);
}

static void
icrc_again(void)
{
	roce_icrc_write(frame + 14, false, frame_len - 14);
}

/** Nothing reaches the control thread, and this counter tells why. */
static void
refused(enum roce_counter why)
{
	uint64_t before = roce(why);

	icrc_again();
	receive();
	ck_assert_uint_eq(roce(why), before + 1);
	ck_assert_ptr_null(fx_told(&f));
}

static unsigned int num_captured;

/** Every MAD that the capture shows on its way to 192.0.2.2. */
static void
replay(const char *name, void *arg)
{
	struct capture *c = capture_open(name);

	(void)arg;
	while (capture_next(c)) {
		struct worker_msg *m;

		if (c->data[13] != 0 || c->data[BTH_AT] != ROCE_UD_SEND_ONLY ||
		    c->data[BTH_AT + 7] != ROCE_QPN_GSI || c->data[33] != 2)
			continue;
		fx_receive(&f, 0, 0, c->data, c->len);
		ck_assert_uint_eq(worker_poll(f.s.worker[0]), 1);
		m = fx_told(&f);
		ck_assert_msg(m != NULL, "%s #%u", name, c->number);
		ck_assert_int_eq(m->type, WORKER_MSG_RX_GSI);
		ck_assert_mem_eq(m->mad->data, c->data + MAD_AT, ROCE_MAD_LEN);
		ck_assert_mem_eq(&m->mad->src, ip("192.0.2.3").b, 16);
		ck_assert_uint_eq(m->mad->src_qpn, ROCE_QPN_GSI);
		ck_assert(rte_is_same_ether_addr(&m->mad->smac, &test_peer));
		ck_assert_uint_eq(m->mad->tclass, c->data[15]);
		m->done(m);
		num_captured++;
	}
	capture_close(c);
}

START_TEST(ROCE_C_52__captured_mads)
{
	fx_start(&f, 1);
	capture_each("roce-", replay, NULL);
	ck_assert_uint_gt(num_captured, 50);
	ck_assert_uint_eq(roce(ROCE_C_GSI_RCVD), num_captured);
	fx_stop(&f);
}
END_TEST

START_TEST(gsi__own_mads_arrive)
{
	struct worker_msg *m;

	fx_start(&f, 1);
	make_mad("192.0.2.3", "192.0.2.2", 0x5a);
	receive();
	m = fx_told(&f);
	ck_assert_ptr_nonnull(m);
	ck_assert_uint_eq(m->mad->psn, 7);
	ck_assert_uint_eq(m->mad->data[255], 0x5a);
	ck_assert_uint_eq(m->mad->vlan_tci, NET_VLAN_NONE);
	m->done(m);
	make_mad("2001:db8::3", "2001:db8::2", 1);
	receive();
	m = fx_told(&f);
	ck_assert_ptr_nonnull(m);
	ck_assert_mem_eq(&m->mad->src, ip("2001:db8::3").b, 16);
	m->done(m);
	fx_stop(&f);
}
END_TEST

START_TEST(ROCE_C_52__refused)
{
	struct worker_msg *m;

	fx_start(&f, 1);
	make_mad("192.0.2.3", "192.0.2.2", 0);
	frame[DETH_AT] = 0;
	refused(ROCE_C_DROP_QKEY);
	make_mad("192.0.2.3", "192.0.2.2", 0);
	frame[BTH_AT + 3] = 0xfe;
	refused(ROCE_C_DROP_PKEY);
	make_mad("192.0.2.3", "192.0.2.2", 0);
	frame[BTH_AT + 2] = 0x7f; /* a limited member: we are a full one */
	icrc_again();
	receive();
	ck_assert_uint_eq(roce(ROCE_C_GSI_RCVD), 1);
	m = fx_told(&f);
	ck_assert_ptr_nonnull(m);
	m->done(m);
	fx_stop(&f);
}
END_TEST

/** Other classes, versions, opcodes: nobody behind QP1 is bothered (B023). */
START_TEST(B023__other_classes)
{
	fx_start(&f, 1);
	make_mad("192.0.2.3", "192.0.2.2", 0);
	frame[MAD_AT] = 2;
	refused(ROCE_C_GSI_BAD);
	make_mad("192.0.2.3", "192.0.2.2", 0);
	frame[MAD_AT + 1] = 3; /* subnet administration, which has RMPP */
	refused(ROCE_C_GSI_BAD);
	make_mad("192.0.2.3", "192.0.2.2", 0);
	frame[BTH_AT] = ROCE_UD_SEND_ONLY_IMM;
	refused(ROCE_C_GSI_BAD);
	make_mad("192.0.2.3", "192.0.2.2", 0);
	frame[BTH_AT] = ROCE_RC_SEND_ONLY;
	refused(ROCE_C_DROP_QP_TYPE);
	make_mad("192.0.2.3", "192.0.2.2", 0);
	frame[BTH_AT + 1] |= 1 << 4; /* a pad byte: 255 bytes are no MAD */
	refused(ROCE_C_GSI_BAD);
	ck_assert_uint_eq(roce(ROCE_C_GSI_RCVD), 0);
	fx_stop(&f);
}
END_TEST

static unsigned int
flood(const char *from, unsigned int n, struct worker_msg **kept)
{
	unsigned int got = 0;

	make_mad(from, "192.0.2.2", 0);
	for (unsigned int i = 0; i < n; i++) {
		struct worker_msg *m;

		receive();
		m = fx_told(&f);
		if (m != NULL)
			kept[got++] = m;
	}
	return got;
}

/** A source alone gets half of the places; the next one half of the rest, and so on. */
START_TEST(gsi__flood_leaves_room)
{
	static struct worker_msg *a[2 * WORKER_GSI], *b[8], *c[8];
	unsigned int first, n;

	fx_start(&f, 1);
	first = flood("192.0.2.3", 2 * WORKER_GSI, a);
	ck_assert_uint_eq(first, WORKER_GSI / 2);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_DROP_GSI_SHARE), 2 * WORKER_GSI - first);
	ck_assert_uint_eq(roce(ROCE_C_GSI_DROPPED), 2 * WORKER_GSI - first);
	ck_assert_uint_eq(rte_mempool_avail_count(f.pool), f.pool_full); /* no buffer is held */
	n = flood("192.0.2.9", 3, b);
	ck_assert_uint_eq(n, 3);
	/* ARP and the like have places of their own. */
	fx_receive(&f, 0, 0, v_arp_req_us, sizeof(v_arp_req_us));
	worker_poll(f.s.worker[0]);
	b[n] = fx_told(&f);
	ck_assert_int_eq(b[n]->type, WORKER_MSG_RX_CTL);
	rte_pktmbuf_free(b[n]->pkt.m);
	b[n]->done(b[n]);
	for (unsigned int i = 0; i < n; i++)
		b[i]->done(b[i]);
	for (unsigned int i = 0; i < first; i++)
		a[i]->done(a[i]);
	ck_assert_uint_eq(flood("192.0.2.3", 1, c), 1);
	c[0]->done(c[0]);
	fx_stop(&f);
}
END_TEST

UNIT_MAIN("worker_gsi", ROCE_C_52__captured_mads, gsi__own_mads_arrive, ROCE_C_52__refused,
	  B023__other_classes, gsi__flood_leaves_room)
