/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules that a wrong engine can break and still move every byte: looked for in the packets
 * themselves, at the nodes' ports. The waits after RNR NAKs (C-28, C-71), end-to-end credits
 * (C-43), the PSN that a NAK names (C-17). What is not certain from outside is not judged.
 */
#include <string.h>

#include "base_seq.h"
#include "roce_code.h"
#include "roce_hdr.h"

#include "sim.h"

static bool
snoop_parse(const uint8_t *frame, uint32_t len, struct roce_pkt *p)
{
	uint32_t off = sim_frame_bth(frame);

	return len >= off + ROCE_BTH_LEN + ROCE_ICRC_LEN &&
	       roce_parse(frame + off, len - off - ROCE_ICRC_LEN, p) == ROCE_OK;
}

/** The endpoint of this node whose peer has that QPN. */
static struct sim_ep *
snoop_sender(struct sim_node *n, uint32_t dest_qpn)
{
	for (uint32_t i = 0; i < n->s->num_eps; i++) {
		struct sim_ep *ep = n->s->ep[i];

		if (ep->node == n && ep->peer->qpn == dest_qpn)
			return ep;
	}
	return NULL;
}

void
sim_snoop_reset(struct sim_ep *ep)
{
	memset(&ep->snoop, 0, sizeof(ep->snoop));
	ep->snoop.snd_max = ep->snoop.una = ep->psn;
}

/** A request for the first time: one more message, and only one beyond the credits. */
static void
snoop_new_request(struct sim_ep *ep, const struct roce_pkt *p)
{
	struct sim_snoop *o = &ep->snoop;

	if (roce_any(p->info->mask, ROCE_START)) {
		o->ssn = psn_add(o->ssn, 1);
		if (roce_any(p->info->mask, ROCE_SEND) && o->have_lsn &&
		    psn_diff(o->ssn, psn_add(o->lsn, 1)) > 0)
			sim_fail(ep->s, "ep %u: message %u is sent, credits end at %u", ep->id,
				 o->ssn, o->lsn);
	}
	o->snd_max = psn_add(p->psn, 1);
	if (p->opcode == ROCE_RC_READ_REQ) {
		uint32_t psns = (p->dma_len + ep->mtu - 1) / ep->mtu;

		o->snd_max = psn_add(p->psn, psns ? psns : 1);
	}
}

static void
snoop_nak(struct sim_ep *ep, const struct roce_pkt *p)
{
	struct roce_qp_info info;

	if (ep->node->tx_behind || p->syndrome != ROCE_NAK_PSN_SEQ ||
	    ep->qp->state == RING_QPS_ERR)
		return;
	roce_qp_get_info(ep->qp, &info);
	if (info.epsn != p->psn)
		sim_fail(ep->s, "ep %u: a NAK names %06x, expected is %06x", ep->id, p->psn,
			 info.epsn);
}

void
sim_snoop_tx(struct sim_node *n, const uint8_t *frame, uint32_t len)
{
	struct roce_pkt p;
	struct sim_ep *ep;
	struct sim_snoop *o;

	if (!snoop_parse(frame, len, &p))
		sim_fail(n->s, "node %u sent what does not parse", n->id);
	ep = snoop_sender(n, p.dest_qpn);
	if (ep == NULL || ep->qp == NULL || ep->qp->state == RING_QPS_RESET)
		return;
	o = &ep->snoop;
	if (sim_is_uc(n->s) && (p.info->transport != ROCE_TR_UC || p.ackreq))
		sim_fail(ep->s, "ep %u: %s, A %d, of a UC QP", ep->id, roce_opcode_name(p.opcode),
			 p.ackreq);
	if (!roce_any(p.info->mask, ROCE_REQUEST)) {
		if (p.opcode == ROCE_RC_ACK)
			snoop_nak(ep, &p);
		return;
	}
	if (n->s->now < o->rnr_until)
		sim_fail(ep->s, "ep %u: %s psn %06x leaves %u ns too early after an RNR NAK",
			 ep->id, roce_opcode_name(p.opcode), p.psn,
			 (uint32_t)(o->rnr_until - n->s->now));
	if (p.psn == o->rnr_psn)
		o->rnr_told = false;
	if (psn_diff(p.psn, o->snd_max) >= 0)
		snoop_new_request(ep, &p);
}

void
sim_snoop_rx(struct sim_node *n, const uint8_t *frame, uint32_t len)
{
	struct roce_pkt p;
	struct sim_ep *ep;
	struct sim_snoop *o;
	uint32_t credits, lsn;
	struct roce_qp_info info;

	if (n->s->prof->corrupt || !snoop_parse(frame, len, &p) ||
	    !roce_any(p.info->mask, ROCE_RESPONSE))
		return;
	ep = sim_ep_of_qpn(n, p.dest_qpn);
	if (ep == NULL || ep->qp == NULL || psn_diff(p.psn, ep->snoop.snd_max) >= 0)
		return;
	o = &ep->snoop;
	if (!p.info->aeth) { /* the middle of a READ's answer acknowledges all before it, too */
		if (psn_after(p.psn, o->rnr_psn))
			o->rnr_seen = o->rnr_until = 0;
		return;
	}
	if (roce_syn_is(p.syndrome, ROCE_SYN_RNR)) {
		if (n->s->prof->reorder || psn_before(p.psn, o->una) ||
		    (o->rnr_told && p.psn == o->rnr_psn))
			return; /* old, overtaken, or the same refusal told twice */
		o->rnr_told = true;
		roce_qp_get_info(ep->qp, &info);
		o->rnrs = info.rnrs_rcvd;
		o->una = o->rnr_psn = p.psn;
		if (n->tx.n == 0)
			o->rnr_seen = n->s->now + roce_rnr_ns(p.syndrome & ROCE_SYN_VALUE);
		return;
	}
	if (roce_syn_is(p.syndrome, ROCE_SYN_NAK) && psn_after(p.psn, o->rnr_psn))
		o->rnr_seen = o->rnr_until = 0; /* a NAK acknowledges all before it */
	if (!roce_syn_is(p.syndrome, ROCE_SYN_ACK))
		return;
	if (psn_diff(p.psn, o->rnr_psn) >= 0)
		o->rnr_seen = o->rnr_until = 0; /* it was ready after all */
	if (p.opcode == ROCE_RC_ACK && psn_after(psn_add(p.psn, 1), o->una))
		o->una = psn_add(p.psn, 1);
	credits = roce_credit_decode(p.syndrome & ROCE_SYN_VALUE);
	lsn = psn_add(p.msn, credits == ROCE_CREDIT_UNLIMITED ? 1 << 22 : credits);
	if (!o->have_lsn || psn_after(lsn, o->lsn))
		o->lsn = lsn;
	o->have_lsn = true;
}

/** After a step: the engine has seen what came; what the port had not taken is not judged. */
void
sim_snoop_stepped(struct sim_node *n)
{
	struct roce_qp_info info;

	for (uint32_t i = 0; i < n->s->num_eps; i++) {
		struct sim_ep *ep = n->s->ep[i];

		if (ep->node != n || ep->snoop.rnr_seen == 0)
			continue;
		/* behind a READ that lacks its response the refusal counts for nothing */
		if (ep->qp)
			roce_qp_get_info(ep->qp, &info);
		if (ep->qp && info.rnrs_rcvd != ep->snoop.rnrs && n->tx.n == 0 &&
		    n->rx_head == NULL)
			ep->snoop.rnr_until = ep->snoop.rnr_seen;
		ep->snoop.rnr_seen = 0;
	}
	n->tx_behind = n->tx.n != 0;
}
