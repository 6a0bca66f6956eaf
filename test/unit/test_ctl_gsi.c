/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP1 through the whole device: MADs that the control thread sends to an own address, and into the
 * port, come back to it by the workers; how many it looks at in a turn; answers.
 */
#include "ctl_objects.h"
#include "net_path.h"
#include "roce_gsi.h"
#include "worker_priv.h"

static struct roce_mad got[512];
static unsigned int num_got, turn_got, most_in_a_turn;

static void
look(struct worker_device *d, const struct roce_mad *mad)
{
	(void)d;
	ck_assert_uint_lt(num_got, RTE_DIM(got));
	got[num_got++] = *mad;
	turn_got++;
}

static void
steps(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		turn_got = 0;
		fx_step();
		if (turn_got > most_in_a_turn)
			most_in_a_turn = turn_got;
	}
}

static void
begin(void)
{
	setup();
	num_got = most_in_a_turn = 0;
	fx_dev->gsi_rx = look;
}

static void
make(uint8_t *mad, uint8_t n)
{
	memset(mad, n, ROCE_MAD_LEN);
	mad[0] = ROCE_MAD_BASE_VERSION;
	mad[1] = ROCE_MAD_CLASS_CM;
}

/** To that host of the port's subnet; .1 is ourselves. */
static struct verbs_av
av_to(uint8_t last_byte)
{
	struct ring_ctrl_av av = rtr_attr(0, last_byte).av;
	struct ctl_client *c = TAILQ_FIRST(&fx_dev->clients);
	struct verbs_av out;

	ck_assert_int_eq(ctl_av_resolve(c, &av, &out), 0);
	return out;
}

START_TEST(gsi__to_an_own_address)
{
	struct verbs_av av = av_to(1);
	uint8_t mad[ROCE_MAD_LEN];

	for (uint32_t w = 0; w < FX_WORKERS; w++) {
		make(mad, (uint8_t)w);
		ck_assert_int_eq(ctl_gsi_send(fx_dev, w, &av, mad), 0);
	}
	steps(8);
	ck_assert_uint_eq(num_got, FX_WORKERS);
	for (uint32_t w = 0; w < FX_WORKERS; w++) {
		ck_assert_mem_eq(&got[w].src, &got[w].dst, sizeof(got[w].src));
		ck_assert_uint_eq(got[w].port, fx_dev->sh.num_ports);
		ck_assert_uint_eq(got[w].data[100], got[w].worker);
		ck_assert_uint_eq(got[w].src_qpn, 1);
	}
	ck_assert_uint_ne(got[0].psn, got[1].psn);
	net_neigh_put(av.neigh);
}
END_TEST

START_TEST(gsi__reply_goes_back)
{
	struct verbs_av av = av_to(1);
	uint8_t mad[ROCE_MAD_LEN];

	make(mad, 1);
	ck_assert_int_eq(ctl_gsi_send(fx_dev, 0, &av, mad), 0);
	steps(8);
	ck_assert_uint_eq(num_got, 1);
	make(mad, 2);
	ck_assert_int_eq(ctl_gsi_reply(fx_dev, &got[0], mad), 0);
	steps(8);
	ck_assert_uint_eq(num_got, 2);
	ck_assert_uint_eq(got[1].data[200], 2);
	net_neigh_put(av.neigh);
}
END_TEST

/** Frames that the port brought back and that were to another station. */
static uint64_t
for_others(void)
{
	uint64_t n = 0;

	for (uint32_t w = 0; w < FX_WORKERS; w++)
		n += counter_read(&worker_get(fx_dev, w)->counter[WORKER_C_DROP_MAC]);
	return n;
}

/** What is sent to a host that is not known yet waits for its MAC. */
START_TEST(gsi__waits_for_the_neighbour)
{
	const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 9}};
	struct verbs_av av = av_to(9);
	uint8_t mad[ROCE_MAD_LEN];
	struct net_ip ip;

	make(mad, 1);
	steps(2); /* the request has left */
	ck_assert_int_eq(ctl_gsi_send(fx_dev, 1, &av, mad), 0);
	steps(4);
	ck_assert_uint_eq(for_others(), 0);
	ip = net_ip_from_bytes(av.dgid);
	ck_assert_int_eq(net_neigh_set_static(fx_dev->port[0].neighs, &ip, 0, &mac), 0);
	steps(4);
	ck_assert_uint_eq(for_others(), 1);
	net_neigh_put(av.neigh);
}
END_TEST

/** However many come at once, a turn looks at CTL_GSI_TURN, and none that had a place is lost. */
START_TEST(gsi__a_turn_is_bounded)
{
	struct verbs_av av = av_to(1);
	uint8_t mad[ROCE_MAD_LEN];
	unsigned int n = 100; /* of one source, and fewer than half of the places */

	make(mad, 0);
	for (unsigned int i = 0; i < n; i++)
		ck_assert_int_eq(ctl_gsi_send(fx_dev, 0, &av, mad), 0);
	for (unsigned int i = 0; i < 32; i++) /* all into the control thread's ring */
		for (uint32_t w = 0; w < FX_WORKERS; w++)
			worker_poll(worker_get(fx_dev, w));
	steps(4);
	ck_assert_uint_eq(num_got, n);
	ck_assert_uint_eq(most_in_a_turn, CTL_GSI_TURN);
	ck_assert_uint_eq(fx_dev->gsi_shown, n);
	net_neigh_put(av.neigh);
}
END_TEST

static void
done(struct worker_msg *m)
{
	(void)m;
}

/** From a wire nobody speaks in our name: what is to be trusted of our own comes by the hairpin. */
START_TEST(gsi__forged)
{
	struct roce_mad mad = {.port = 0};
	struct worker_msg m = {.mad = &mad, .done = done};

	ck_assert_int_eq(net_ip_parse("192.0.2.1", &mad.src), 0);
	mad.dst = mad.src;
	make(mad.data, 1);
	ctl_gsi_queue(fx_dev, &m);
	ctl_gsi_run(fx_dev);
	ck_assert_uint_eq(num_got, 0);
	ck_assert_uint_eq(fx_dev->gsi_forged, 1);
	mad.port = (uint16_t)fx_dev->sh.num_ports;
	ctl_gsi_queue(fx_dev, &m);
	ctl_gsi_run(fx_dev);
	ck_assert_uint_eq(num_got, 1);
	mad.port = 0;
	ck_assert_int_eq(net_ip_parse("192.0.2.9", &mad.src), 0);
	ctl_gsi_queue(fx_dev, &m);
	ctl_gsi_run(fx_dev);
	ck_assert_uint_eq(num_got, 2);
	ck_assert_uint_eq(fx_dev->gsi_forged, 1);
}
END_TEST

FX_MAIN("ctl_gsi", begin, teardown, gsi__to_an_own_address, gsi__reply_goes_back,
	gsi__waits_for_the_neighbour, gsi__a_turn_is_bounded, gsi__forged)
