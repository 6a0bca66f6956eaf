/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one timer of a record, by state:
 *
 *   REQ_SENT, REP_SENT, DREQ_SENT, SIDR_REQ_SENT   the message again, after the last retry the
 *     and the states after an MRA                   end; an MRA moves it once a transmission
 *   REQ_RCVD, MRA_REQ_SENT, SIDR_REQ_RCVD           the peer no longer waits: the end
 *     but SIDR_REQ_RCVD, and REP_SENT               and two minutes after the REQ anyway
 *   TIMEWAIT                                        packets are gone: the QPN is free
 *   SIDR_RESOLVED                                   no repeated question any more
 *   IDLE, REP_RCVD, MRA_REP_SENT, ESTABLISHED       none: the owner, or the QP, will tell
 *
 * Linux rounds 4.096 us * 2^code down to 2^(code - 8) ms; here it is what the code says.
 */
#include <errno.h>

#include <rte_common.h>

#include "roce_cm_priv.h"
#include "roce_code.h"

bool
cm_is_stranger(const struct roce_cm_conn *c)
{
	return !c->active && !c->sidr && cm_in(c, S_REQ_IN | S(REP_SENT));
}

void
cm_arm(struct roce_cm_conn *c, uint64_t deadline)
{
	if (cm_is_stranger(c))
		deadline = RTE_MIN(deadline, c->stranger_until);
	wheel_arm(&c->cm->wheel, &c->timer, deadline);
}

void
cm_disarm(struct roce_cm_conn *c)
{
	wheel_cancel(&c->cm->wheel, &c->timer);
}

uint64_t
cm_code_ns(unsigned int code, unsigned int max)
{
	return roce_timeout_ns((uint8_t)RTE_MAX(RTE_MIN(code, max), (unsigned int)CM_CODE_MIN));
}

/* The wait becomes what the MRA asks for, and the way there and back; never shorter. */
void
cm_extend(struct roce_cm_conn *c, unsigned int code, uint64_t now)
{
	const uint64_t until = now + cm_code_ns(code, CM_MRA_CODE_MAX) +
			       2 * cm_code_ns(c->packet_life, CM_RESPONSE_CODE_MAX);

	if (!c->mra_seen && wheel_armed(&c->timer) && until > c->timer.deadline)
		cm_arm(c, until);
	c->mra_seen = true;
}

/* No answer, and none is waited for any longer. */
static void
give_up(struct roce_cm_conn *c, uint64_t now)
{
	const bool dreq = cm_in(c, S(DREQ_SENT)), sidr = cm_in(c, S(SIDR_REQ_SENT));
	const bool told = c->told;

	cm_count(c->cm, ROCE_CM_C_RETRY_EXCEEDED);
	cm_mad_drop(c);
	if (sidr) {
		cm_to_idle(c);
		cm_tell_status(c, ROCE_CM_EV_SIDR_REP, -ETIMEDOUT);
		return;
	}
	if (!dreq)
		cm_send_rej_timeout(c); /* a peer that hears without being heard */
	cm_to_timewait(c, now);
	c->told = true;
	if (!told)
		cm_tell_status(c, dreq ? ROCE_CM_EV_DISCONNECTED : ROCE_CM_EV_UNREACHABLE,
			       -ETIMEDOUT);
}

static void
repeat(struct roce_cm_conn *c, uint64_t now)
{
	if (cm_is_stranger(c) && now >= c->stranger_until) {
		give_up(c, now);
		return;
	}
	if (c->busy) { /* it never went out */
		cm_send_again(c, now);
		return;
	}
	if (c->retries_left == 0) {
		give_up(c, now);
		return;
	}
	c->retries_left--;
	cm_count(c->cm, ROCE_CM_C_RETRY);
	cm_send_again(c, now);
}

static void
expire(struct roce_cm_conn *c)
{
	cm_count(c->cm, ROCE_CM_C_EXPIRED);
	cm_to_idle(c);
	cm_tell_status(c, ROCE_CM_EV_UNREACHABLE, -ECANCELED);
}

static void
fire(struct roce_cm_conn *c, uint64_t now)
{
	if (cm_in(c, S_REPEATED)) {
		repeat(c, now);
	} else if (cm_in(c, S_HALF_OPEN)) {
		expire(c);
	} else if (cm_in(c, S(SIDR_RESOLVED))) {
		cm_resolved_forget(c);
	} else if (cm_in(c, S(TIMEWAIT))) {
		cm_to_idle(c);
		cm_reap(c);
	}
}

unsigned int
roce_cm_timers(struct roce_cm *cm, uint64_t now, unsigned int max)
{
	struct wheel_entry *e;
	unsigned int n = 0;

	while (n < max && (e = wheel_expire(&cm->wheel, now)) != NULL) {
		fire((struct roce_cm_conn *)e, now);
		n++;
	}
	return n;
}

uint64_t
roce_cm_next_deadline(const struct roce_cm *cm)
{
	return wheel_next(&cm->wheel);
}
