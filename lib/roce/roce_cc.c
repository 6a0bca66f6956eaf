/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion management of QPs (IBTA A17 17.9.3). Notification point: a packet with CE has a CNP
 * sent, one at most for a QP and interval. Reaction point: a CNP gives its QP a rate, a block of a
 * pool that the worker has for that; its packets are paced by a wheel of their own, and the block
 * goes back when the QP has been at line rate for a while. A QP without one costs a look at a flag.
 * The rates are roce_dcqcn.c's.
 *
 * The machine's timers are lazy: they are caught up with before a packet, at a CNP, and by a look
 * now and then, which tells rnicctl the truth and gives blocks back.
 */
#include <stdlib.h>
#include <string.h>

#include "roce_dcqcn.h"
#include "roce_priv.h"

#define CC_BLOCKS 4096u /* default */
#define CC_LOOK_NS UINT64_C(1000000)
#define CC_QUIET_NS UINT64_C(100000000) /* at line rate for so long: the block goes back */
#define CC_LAG_NS UINT64_C(20000) /* what the wheel and the loop may be late, made up for */

/** A QP's rate. */
struct roce_cc {
	struct wheel_entry timer; /* first: when to send again, or the next look */
	struct roce_qp *qp;
	struct roce_cc *next; /* free */
	uint64_t next_at; /* ns: when the next packet may leave */
	uint64_t cnp_at;  /* ns: of the last one */
	bool waiting;
	struct roce_dcqcn d;
};

struct roce_cc_engine {
	struct wheel wheel;
	struct roce_cc *free;
	uint32_t fresh, size; /* blocks never used; all */
	uint32_t num_ports;
	struct roce_cc *block;
	struct roce_cc_params port[]; /* num_ports */
};

struct roce_cc_engine *
roce_cc_create(uint32_t num_ports, uint32_t blocks, uint64_t now)
{
	struct roce_cc_engine *e = calloc(1, sizeof(*e) + num_ports * sizeof(e->port[0]));

	if (e == NULL)
		return NULL;
	e->num_ports = num_ports;
	e->fresh = e->size = blocks ? blocks : CC_BLOCKS;
	/* Never touched while no mark arrives: the pages of it are not even there. */
	e->block = calloc(e->size, sizeof(*e->block));
	if (e->block == NULL) {
		free(e);
		return NULL;
	}
	wheel_init(&e->wheel, now);
	return e;
}

void
roce_cc_destroy(struct roce_cc_engine *e)
{
	if (e)
		free(e->block);
	free(e);
}

void
roce_cc_set(struct roce *r, uint32_t port, const struct roce_cc_params *p)
{
	if (port < r->cc->num_ports)
		r->cc->port[port] = *p;
}

bool
roce_cc_enabled(const struct roce *r, uint32_t port)
{
	return port < r->cc->num_ports && r->cc->port[port].enabled;
}

static const struct roce_cc_params *
params_of(const struct roce *r, const struct roce_qp *qp)
{
	return &r->cc->port[qp->port];
}

/* ---- notification point ---------- */

/** DSCP and ECT(0) of a CNP in place of the flow's; IPv4's checksum with it (RFC 1624). */
static void
cnp_tclass(const struct roce_out *out, uint8_t dscp)
{
	uint8_t tclass = (uint8_t)(dscp << 2 | ROCE_ECN_ECT0);
	uint16_t was, now, cksum;
	uint32_t sum;

	if (out->v6) {
		out->l3[0] = (uint8_t)((out->l3[0] & 0xf0) | tclass >> 4);
		out->l3[1] = (uint8_t)((out->l3[1] & 0x0f) | tclass << 4);
		return;
	}
	memcpy(&was, out->l3, sizeof(was));
	out->l3[1] = tclass;
	memcpy(&now, out->l3, sizeof(now));
	memcpy(&cksum, out->l3 + 10, sizeof(cksum));
	sum = (uint32_t)(uint16_t)~cksum + (uint16_t)~was + now;
	sum = (sum & 0xffff) + (sum >> 16);
	cksum = (uint16_t)~((sum & 0xffff) + (sum >> 16));
	memcpy(out->l3 + 10, &cksum, sizeof(cksum));
}

/** @return whether it was sent: with no room or no address, the next mark tries again. */
static bool
cnp_send(struct roce *r, struct roce_qp *qp, uint16_t pkey)
{
	uint64_t l2 = net_neigh_use(qp->path.neigh);
	struct roce_out out;

	if (!net_neigh_l2_usable(l2) || !roce_tx_ready(r, qp))
		return false;
	r->l2 = l2;
	roce_tx_open(r, qp, ROCE_CNP, 0, 0, 0, &out);
	cnp_tclass(&out, (uint8_t)params_of(r, qp)->cnp_dscp);
	/* Neither MigReq nor the sender's own P_Key: A17, figure 6 */
	roce_bth_emit(out.bth, ROCE_CNP, 0, pkey, qp->dest_qpn | ROCE_BTH_BECN, 0);
	memset(out.ext, 0, ROCE_CNP_RESV_LEN);
	roce_tx_close(r, qp, &out, NULL);
	return true;
}

void
roce_cc_marked(struct roce *r, struct roce_qp *qp, uint16_t pkey)
{
	struct roce_qp_cold *cold = qp->cold;

	roce_count(r, ROCE_C_ECN_RCVD);
	cold->ecn_marked++;
	if (!qp->ect || r->now < cold->cnp_due || !cnp_send(r, qp, pkey))
		return;
	cold->cnp_due = r->now + params_of(r, qp)->cnp_interval_us * UINT64_C(1000);
	cold->cnps_sent++;
	roce_count(r, ROCE_C_CNP_SENT);
}

/* ---- reaction point ---------- */

static struct roce_cc *
block_get(struct roce *r, struct roce_qp *qp)
{
	struct roce_cc_engine *e = r->cc;
	struct roce_cc *cc = e->free;

	if (cc) {
		e->free = cc->next;
	} else if (e->fresh) {
		cc = &e->block[e->size - e->fresh--];
	} else {
		roce_count(r, ROCE_C_CC_NO_BLOCK);
		return NULL;
	}
	memset(cc, 0, sizeof(*cc));
	cc->qp = qp;
	cc->next_at = r->now;
	dcqcn_init(&cc->d, params_of(r, qp), r->now);
	qp->cold->cc = cc;
	r->cc_used++;
	return cc;
}

void
roce_cc_drop(struct roce *r, struct roce_qp *qp)
{
	struct roce_cc *cc = qp->cold->cc;

	qp->paced = false;
	if (cc == NULL)
		return;
	qp->cold->cc = NULL;
	wheel_cancel(&r->cc->wheel, &cc->timer);
	cc->next = r->cc->free;
	r->cc->free = cc;
	r->cc_used--;
}

static void
look_later(struct roce *r, struct roce_cc *cc)
{
	cc->waiting = false;
	wheel_arm(&r->cc->wheel, &cc->timer, r->now + CC_LOOK_NS);
}

void
roce_cc_notified(struct roce *r, struct roce_qp *qp)
{
	struct roce_cc *cc = qp->cold->cc;

	roce_count(r, ROCE_C_CNP_RCVD);
	qp->cold->cnps_rcvd++;
	if (!qp->ect)
		return;
	if (cc == NULL) {
		cc = block_get(r, qp);
		if (cc == NULL)
			return;
		look_later(r, cc);
	}
	cc->cnp_at = r->now;
	dcqcn_expire(&cc->d, params_of(r, qp), r->now);
	if (dcqcn_cnp(&cc->d, params_of(r, qp), r->now))
		roce_count(r, ROCE_C_CC_CUT);
	qp->paced = dcqcn_limits(&cc->d);
}

bool
roce_cc_may_send(struct roce *r, struct roce_qp *qp)
{
	struct roce_cc *cc = qp->cold->cc;

	if (dcqcn_due(&cc->d, r->now)) {
		dcqcn_expire(&cc->d, params_of(r, qp), r->now);
		qp->paced = dcqcn_limits(&cc->d);
		if (!qp->paced)
			return true;
	}
	if (cc->next_at <= r->now)
		return true;
	if (!cc->waiting) {
		cc->waiting = true;
		wheel_arm(&r->cc->wheel, &cc->timer, cc->next_at);
	}
	return false;
}

void
roce_cc_sent(struct roce *r, struct roce_qp *qp, uint32_t bytes)
{
	struct roce_cc *cc = qp->cold->cc;

	if (cc->next_at + CC_LAG_NS < r->now)
		cc->next_at = r->now - CC_LAG_NS;
	cc->next_at += dcqcn_ns(&cc->d, bytes);
	dcqcn_sent(&cc->d, params_of(r, qp), bytes);
}

static void
cc_expired(struct roce *r, struct roce_cc *cc)
{
	struct roce_qp *qp = cc->qp;

	if (cc->waiting)
		verbs_run_add(r->w, &qp->v);
	dcqcn_expire(&cc->d, params_of(r, qp), r->now);
	qp->paced = dcqcn_limits(&cc->d);
	if (!qp->paced && r->now - cc->cnp_at >= CC_QUIET_NS)
		roce_cc_drop(r, qp);
	else
		look_later(r, cc);
}

unsigned int
roce_cc_timers(struct roce *r)
{
	struct wheel_entry *t;
	unsigned int n = 0;

	for (; (t = wheel_expire(&r->cc->wheel, r->now)) != NULL; n++)
		cc_expired(r, (struct roce_cc *)t);
	return n;
}

uint64_t
roce_cc_next(const struct roce *r)
{
	return wheel_next(&r->cc->wheel);
}

/* ---- looking ---------- */

void
roce_cc_get_info(const struct roce_qp *qp, struct roce_qp_info *info)
{
	const struct roce_cc *cc = qp->cold->cc;

	info->ecn_marked = qp->cold->ecn_marked;
	info->cnps_sent = qp->cold->cnps_sent;
	info->cnps_rcvd = qp->cold->cnps_rcvd;
	if (cc == NULL)
		return; /* line rate */
	info->rate_kbps = cc->d.rate;
	info->target_kbps = cc->d.target;
	info->alpha_ppm = (uint32_t)((uint64_t)cc->d.alpha * 1000000 / DCQCN_ALPHA_ONE);
	info->increases = cc->d.by_time + cc->d.by_bytes;
}
