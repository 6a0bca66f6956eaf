/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm_fixture.h"

/* B123: no way out for a while: soon again, and no retry is used up. */
START_TEST(busy__is_tried_again_soon)
{
	struct cm_fix *f = cm_fix_new(NULL);
	const struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_conn *c;

	f->busy = true;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	cm_pass(f, 5 * CM_BUSY_NS + 50000);
	ck_assert_uint_eq(f->lost, 6);
	cm_count_is(f, ROCE_CM_C_TX_BUSY, 6);
	f->busy = false;
	cm_pass(f, CM_BUSY_NS);
	cm_sent(f, ROCE_CM_REQ);
	cm_silent(f);
	ck_assert_uint_eq(c->retries_left, 15);
	cm_pass(f, c->interval + 10000);
	cm_sent(f, ROCE_CM_REQ);
	ck_assert_uint_eq(c->retries_left, 14);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* For good: it ends like a peer that never answers. */
START_TEST(busy__for_ever_ends_too)
{
	struct cm_fix *f = cm_fix_new(NULL);
	const struct roce_cm_connect a = cm_connect_default(f);
	struct roce_cm_conn *c;

	f->busy = true;
	ck_assert_int_eq(roce_cm_connect(f->cm, &a, NULL, f->now, &c), 0);
	cm_pass(f, 200 * CM_SEC);
	ck_assert_int_eq(cm_told(f, ROCE_CM_EV_UNREACHABLE)->ev.status, -ETIMEDOUT);
	roce_cm_conn_free(c, f->now);
	f->busy = false;
	cm_fix_end(f);
}
END_TEST

/* An answer that could not leave is the peer's to ask for again. */
START_TEST(busy__lost_rtu_comes_with_the_next_rep)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_replied(f);
	const struct roce_cm_msg m = cm_msg_rep(c->local_id);

	f->busy = true;
	ck_assert_int_eq(roce_cm_rtu(c, NULL, 0, f->now), 0);
	ck_assert_uint_eq(f->lost, 1);
	f->busy = false;
	cm_in_mad(f, &m);
	cm_sent(f, ROCE_CM_RTU);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* An established connection keeps no message; one that has said something in its RTU does. */
START_TEST(kept__only_what_is_needed)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_conn *c = cm_connected(f);

	ck_assert_ptr_null(c->mad);
	cm_let_go(f, c);
	c = cm_accepted(f);
	ck_assert_ptr_null(c->mad);
	cm_let_go(f, c);
	c = cm_replied(f);
	ck_assert_int_eq(roce_cm_rtu(c, "x", 1, f->now), 0);
	ck_assert_ptr_nonnull(c->mad);
	cm_let_go(f, c);
	cm_fix_end(f);
}
END_TEST

/* To who is not known: ids crossed, the transaction's id, where it came from. */
START_TEST(reply__crosses_the_ids)
{
	struct cm_fix *f = cm_fix_new(NULL);
	struct roce_cm_msg m = cm_msg(ROCE_CM_LAP, 0x55);
	struct cm_sent *s;

	f->rx.tclass = 0x68;
	f->rx.vlan = 7;
	f->rx.port = 3;
	cm_in_mad(f, &m);
	s = cm_sent(f, ROCE_CM_APR);
	ck_assert_uint_eq(s->m.local_id, 0x55);
	ck_assert_uint_eq(s->m.remote_id, CM_PEER_ID);
	ck_assert_uint_eq(s->m.tid, CM_TID);
	ck_assert_uint_eq(s->m.apr.status, ROCE_CM_APR_COMM_ID);
	ck_assert_uint_eq(s->av.tclass, 0x68);
	ck_assert_uint_eq(s->av.vlan, 7);
	ck_assert_uint_eq(s->av.port, 3);
	ck_assert_uint_eq(s->av.hop_limit, 64);
	cm_fix_end(f);
}
END_TEST

UNIT_MAIN("roce_cm_send",
	busy__is_tried_again_soon,
	busy__for_ever_ends_too,
	busy__lost_rtu_comes_with_the_next_rep,
	kept__only_what_is_needed,
	reply__crosses_the_ids)
