/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of a QP; one wheel entry at the earliest, none for an idle QP. A deadline is a word;
 * moving it later does not touch the wheel, which looks again when the old time comes.
 *
 * ACK    runs while PSNs are outstanding, 4.096 us * 2^timeout (0: never); restarted by every
 *        progress and by sending again. Expiry: the oldest PSN is sent again, retry_cnt times.
 * RNR    after an RNR NAK: nothing is sent before it expires, whatever else comes (C-71).
 * NEIGH  while the next hop has no address: looks again, in case nobody told.
 * PROBE  while a hole is being filled: what was sent into it may be lost, too. Without a hole,
 *        while PSNs are outstanding: when long since nothing has come, the newest packets may be
 *        lost, or a NAK. Far shorter than ACK, whose time it leaves as it is. Uses no retry.
 * LOCAL  while an invalidate, bind or fast registration waits for other workers and for copiers.
 *
 * One of the engine's own: datagrams that wait for neighbours are looked at (roce_ud_wait.c).
 */
#include "roce_ud_priv.h"


void
roce_timer_set(struct roce *r, struct roce_qp *qp, enum roce_timer t, uint64_t when)
{
	qp->due[t] = when;
	if (!wheel_armed(&qp->timer) || when < qp->timer.deadline)
		wheel_arm(&r->wheel, &qp->timer, when);
}

static void
timer_tail_start(struct roce *r, struct roce_qp *qp)
{
	uint64_t tail = roce_recovery_tail(qp);

	if (tail)
		roce_timer_set(r, qp, ROCE_T_PROBE, r->now + tail);
}

static void
timer_ack_start(struct roce *r, struct roce_qp *qp)
{
	if (qp->timeout)
		roce_timer_set(r, qp, ROCE_T_ACK, r->now + roce_timeout_ns(qp->timeout));
	if (!qp->recovering)
		timer_tail_start(r, qp);
}

void
roce_timer_sent(struct roce *r, struct roce_qp *qp)
{
	if (qp->due[ROCE_T_ACK] == 0)
		timer_ack_start(r, qp);
}

static void
timer_answered(struct roce_qp *qp)
{
	roce_timer_stop(qp, ROCE_T_ACK);
	if (!qp->recovering)
		roce_timer_stop(qp, ROCE_T_PROBE);
}

void
roce_timer_progress(struct roce *r, struct roce_qp *qp)
{
	if (qp->una == qp->snd_max || qp->rnr_wait || base_bug(BUG_LOST_REARM))
		timer_answered(qp);
	else
		timer_ack_start(r, qp);
}

static void
timer_neigh(struct roce *r, struct roce_qp *qp)
{
	if (!qp->neigh_wait)
		return;
	verbs_run_add(r->w, &qp->v);
	roce_timer_set(r, qp, ROCE_T_NEIGH, r->now + ROCE_NEIGH_RETRY_NS);
}

static void
timer_fire(struct roce *r, struct roce_qp *qp, enum roce_timer t, uint64_t late)
{
	switch (t) {
	case ROCE_T_ACK:
		roce_recovery_timeout(r, qp);
		break;
	case ROCE_T_RNR:
		qp->rnr_wait = false;
		verbs_run_add(r->w, &qp->v);
		break;
	case ROCE_T_NEIGH:
		timer_neigh(r, qp);
		break;
	case ROCE_T_PROBE:
		roce_recovery_probe(r, qp, late);
		break;
	case ROCE_T_LOCAL:
		verbs_run_add(r->w, &qp->v);
		break;
	case ROCE_T_COUNT:
		break;
	}
}

/** Run what is due, then arm for the earliest that is left. */
static void
timer_expired(struct roce *r, struct roce_qp *qp)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int t = 0; t < ROCE_T_COUNT; t++) {
		uint64_t due = qp->due[t];

		if (due == 0 || due > r->now)
			continue;
		qp->due[t] = 0;
		timer_fire(r, qp, t, r->now - due);
	}
	for (unsigned int t = 0; t < ROCE_T_COUNT; t++)
		if (qp->due[t] && qp->due[t] < next)
			next = qp->due[t];
	if (next != UINT64_MAX)
		wheel_arm(&r->wheel, &qp->timer, next);
}

unsigned int
roce_timers(struct roce *r, uint64_t now)
{
	struct wheel_entry *e;
	unsigned int n = 0;

	r->now = now;
	while ((e = wheel_expire(&r->wheel, now)) != NULL) {
		n++;
		if (unlikely(e == &r->ud_wait.timer)) {
			roce_ud_wait_run(r);
			continue;
		}
		timer_expired(r, (struct roce_qp *)((char *)e - offsetof(struct roce_qp, timer)));
	}
	if (unlikely(r->cc_used != 0))
		n += roce_cc_timers(r);
	return n;
}

uint64_t
roce_next_deadline(const struct roce *r)
{
	uint64_t due = wheel_next(&r->wheel), cc;

	if (likely(r->cc_used == 0))
		return due;
	cc = roce_cc_next(r);
	return due < cc ? due : cc;
}
