/* SPDX-License-Identifier: BSD-3-Clause */
/* Mailboxes: answers, their order, quiescence, and messages of the worker's own. */
#include "worker_fixture.h"

static struct fx f;

START_TEST(mbox__answers_in_order)
{
	struct worker_msg m[40];

	fx_start(&f, 1);
	memset(m, 0, sizeof(m));
	for (unsigned int i = 0; i < RTE_DIM(m); i++) {
		m[i].type = WORKER_MSG_CQ_DEL;
		ck_assert(worker_send(f.s.worker[0], &m[i]));
	}
	/* Bounded each loop. */
	ck_assert_uint_eq(worker_poll(f.s.worker[0]), WORKER_MAIL_BURST);
	while (worker_poll(f.s.worker[0]) != 0)
		;
	for (unsigned int i = 0; i < RTE_DIM(m); i++) {
		ck_assert_ptr_eq(fx_told(&f), &m[i]);
		ck_assert(m[i].reply);
		ck_assert_int_eq(m[i].status, 0);
	}
	ck_assert_ptr_null(fx_told(&f));
	fx_stop(&f);
}
END_TEST

/** The answer comes after a quiescent point that follows the request. */
START_TEST(mbox__quiesce)
{
	struct worker_msg m = {.type = WORKER_MSG_QUIESCE};
	uint64_t token;

	fx_start(&f, 2);
	ck_assert(worker_send(f.s.worker[0], &m));
	token = rte_rcu_qsbr_start(f.s.qsbr);
	worker_poll(f.s.worker[1]);
	ck_assert_ptr_null(fx_told(&f));
	ck_assert_int_eq(rte_rcu_qsbr_check(f.s.qsbr, token, false), 0);
	worker_poll(f.s.worker[0]);
	ck_assert_ptr_eq(fx_told(&f), &m);
	ck_assert_int_eq(rte_rcu_qsbr_check(f.s.qsbr, token, false), 1);
	fx_stop(&f);
}
END_TEST

/** The control thread's ring is full: nothing is lost, nothing overtakes. */
START_TEST(mbox__outbox_keeps_the_order)
{
	struct verbs_qp qp = {0};
	struct worker_msg m[20];

	fx_init(&f, 1);
	fx_start_ring(&f, 8); /* 7 usable */
	memset(m, 0, sizeof(m));
	for (unsigned int i = 0; i < RTE_DIM(m); i++) {
		m[i].type = WORKER_MSG_CQ_DEL;
		ck_assert(worker_send(f.s.worker[0], &m[i]));
	}
	worker_poll(f.s.worker[0]);
	worker_poll(f.s.worker[0]);
	ck_assert_ptr_eq(fx_told(&f), &m[0]);
	worker_event(f.s.worker[0], VERBS_EVENT_QP_FATAL, &qp); /* there is room again */
	for (unsigned int i = 1; i < RTE_DIM(m); i++) {
		ck_assert_ptr_eq(fx_told(&f), &m[i]);
		worker_poll(f.s.worker[0]);
	}
	ck_assert_int_eq(fx_told(&f)->type, WORKER_MSG_EVENT);
	ck_assert_ptr_null(fx_told(&f));
	fx_stop(&f);
}
END_TEST

/* Take all that was told; of so many different QPs. */
static unsigned int
take_events(void)
{
	struct worker_msg *m;
	unsigned int n = 0;

	for (; (m = fx_told(&f)) != NULL; n++) {
		ck_assert_int_eq(m->type, WORKER_MSG_EVENT);
		ck_assert_int_eq(m->event.event, VERBS_EVENT_QP_FATAL);
		ck_assert_uint_eq(((struct verbs_qp *)m->event.obj)->qpn++, 0);
		m->done(m);
	}
	return n;
}

static void
make_qps(struct verbs_qp *qp, struct worker_qp *owner, int n)
{
	memset(qp, 0, (size_t)n * sizeof(*qp));
	memset(owner, 0, (size_t)n * sizeof(*owner));
	for (int i = 0; i < n; i++)
		qp[i].owner = &owner[i];
}

/** Beyond their share events are late, each told once, and not lost. */
START_TEST(mbox__events_beyond_their_share)
{
	struct worker_qp owner[16];
	struct verbs_qp qp[16];
	uint32_t n = 0;

	make_qps(qp, owner, 16);
	fx_start(&f, 1);
	for (; n < f.s.max_events + 3; n++)
		worker_event(f.s.worker[0], VERBS_EVENT_QP_FATAL, &qp[n]);
	worker_event(f.s.worker[0], VERBS_EVENT_QP_FATAL, &qp[n - 1]); /* the same once more */
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_EVENTS), f.s.max_events);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_EVENTS_LATE), 4);
	worker_poll(f.s.worker[0]);
	ck_assert_uint_eq(take_events(), f.s.max_events);
	worker_poll(f.s.worker[0]);
	ck_assert_uint_eq(take_events(), 3);
	ck_assert(!worker_is_late(f.s.worker[0]));
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_EVENTS_LOST), 0);
	fx_stop(&f);
}
END_TEST

/** An object that goes takes with it what was not told. */
START_TEST(mbox__events_of_the_gone)
{
	struct worker_qp owner[16];
	struct verbs_qp qp[16];
	uint32_t n = 0;

	make_qps(qp, owner, 16);
	fx_start(&f, 1);
	for (; n < f.s.max_events + 2; n++)
		worker_event(f.s.worker[0], VERBS_EVENT_QP_FATAL, &qp[n]);
	worker_late_drop(f.s.worker[0], &owner[0].late); /* told: nothing is to be dropped */
	worker_late_drop(f.s.worker[0], &owner[n - 2].late);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_EVENTS_LOST), 1);
	take_events();
	worker_poll(f.s.worker[0]);
	ck_assert_uint_eq(take_events(), 1);
	ck_assert_uint_eq(qp[n - 2].qpn, 0);
	fx_stop(&f);
}
END_TEST

static int done_calls;

static void
count_done(struct worker_msg *m)
{
	(void)m;
	done_calls++;
}

START_TEST(mbox__control_packet)
{
	struct worker_msg m = {.type = WORKER_MSG_TX, .done = count_done};

	fx_start(&f, 1);
	m.pkt.port = 1;
	m.pkt.m = pool_frame(f.pool, v_arp_rep_us, sizeof(v_arp_rep_us));
	ck_assert(worker_send(f.s.worker[0], &m));
	worker_poll(f.s.worker[0]);
	worker_poll(f.s.worker[0]); /* sent in the iteration after the one that reads the mail */
	ck_assert_int_eq(done_calls, 1);
	ck_assert_uint_eq(f.port[1].q[0].num_tx, 1);
	/* There is no such port: dropped and counted, freed all the same. */
	m.pkt.port = 9;
	m.pkt.m = pool_frame(f.pool, v_arp_rep_us, sizeof(v_arp_rep_us));
	ck_assert(worker_send(f.s.worker[0], &m));
	worker_poll(f.s.worker[0]);
	ck_assert_int_eq(done_calls, 2);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_DROP_TX_CTL), 1);
	ck_assert_ptr_null(fx_told(&f));
	fx_stop(&f);
}
END_TEST

/** What lies in the mailbox when the worker goes is freed. */
START_TEST(mbox__destroy_frees_mail)
{
	struct worker_msg m = {.type = WORKER_MSG_TX, .done = count_done};

	fx_start(&f, 1);
	done_calls = 0;
	m.pkt.m = pool_frame(f.pool, v_arp_rep_us, sizeof(v_arp_rep_us));
	ck_assert(worker_send(f.s.worker[0], &m));
	fx_stop(&f);
	ck_assert_int_eq(done_calls, 1);
}
END_TEST

START_TEST(mbox__first_ring_then_switch)
{
	struct ring_cqe *old = fx_alloc(4 * sizeof(*old)), *new = fx_alloc(8 * sizeof(*new));
	struct verbs_cq *cq = fx_alloc(verbs_cq_size(1));
	struct ring_cq_client *client = fx_alloc(sizeof(*client));
	struct worker_msg m = {.type = WORKER_MSG_CQ_SUB};

	fx_start(&f, 1);
	cq->num_workers = 1;
	verbs_cq_init_ends(cq);
	m.cq.cq = cq;
	m.cq.cons = &client->cons[0];
	m.cq.ring = old;
	m.cq.entries = 4;
	ck_assert_int_eq(fx_call(&f, 0, &m), 0);
	ck_assert_ptr_eq(cq->end[0].prod.ring, old);
	ck_assert_uint_eq(cq->end[0].prod.mask, 3);
	ck_assert_uint_eq(cq->end[0].prod.tail, 0);
	m.cq.ring = new;
	m.cq.entries = 8;
	ck_assert_int_eq(fx_call(&f, 0, &m), 0);
	ck_assert_ptr_eq(cq->end[0].prod.ring, new);
	ck_assert_uint_eq(old[0].tag, RING_CQE_SWITCH | RING_CQE_PHASE);
	fx_stop(&f);
	free(old);
	free(new);
	free(cq);
	free(client);
}
END_TEST

UNIT_MAIN("worker_mbox", mbox__answers_in_order, mbox__quiesce, mbox__outbox_keeps_the_order,
	  mbox__events_beyond_their_share, mbox__events_of_the_gone,
	  mbox__control_packet, mbox__destroy_frees_mail,
	  mbox__first_ring_then_switch)
