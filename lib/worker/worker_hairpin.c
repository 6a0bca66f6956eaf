/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hand-over rings: packets from own to own addresses (the hairpin, a transmit batch without a
 * port), and packets that a port's RSS gave to another worker than the QP's. The packet crosses
 * as it would cross a wire, ICRC and all.
 */
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_ring.h>
#include <rte_udp.h>

#include "worker_priv.h"

/**
 * Destination QPN of a RoCE packet that an engine of ours has built: one tag at most, no IP
 * options, headers in the first segment.
 */
static uint32_t
dest_qpn(const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t off = 2 * RTE_ETHER_ADDR_LEN;
	rte_be32_t qpn;

	if (p[off] == 0x81 && p[off + 1] == 0x00)
		off += RTE_VLAN_HLEN;
	off += 2;
	off += (p[off] >> 4) == 4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	off += sizeof(struct rte_udp_hdr) + 4;
	if (off + sizeof(qpn) > rte_pktmbuf_data_len(m))
		return 0;
	memcpy(&qpn, p + off, sizeof(qpn));
	return rte_be_to_cpu_32(qpn) & 0xffffff;
}

/** Who is to have it. A QPN that is unknown is the receiving engine's to count: ours. */
static uint32_t
dest_worker(const struct worker *w, const struct rte_mbuf *m)
{
	uint32_t to;

	if (w->s->num_workers == 1)
		return w->id;
	to = roce_qpn_worker(w->s->qpns, dest_qpn(m));
	return to < w->s->num_workers ? to : w->id;
}

uint16_t
worker_hairpin_burst(void *ctx, struct rte_mbuf **m, uint16_t n)
{
	struct worker *w = ctx;
	uint16_t i;

	for (i = 0; i < n; i++) {
		uint32_t to = dest_worker(w, m[i]);

		m[i]->port = worker_hairpin_port(w->s);
		m[i]->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD; /* our own arithmetic */
		if (!worker_hand_over(w, to, m[i])) {
			worker_count(w, WORKER_C_HAIRPIN_FULL, 1);
			break;
		}
	}
	worker_count(w, WORKER_C_HAIRPIN, i);
	return i;
}

bool
worker_hand_over(void *ctx, uint32_t to, struct rte_mbuf *m)
{
	struct worker *w = ctx;

	if (rte_ring_enqueue(w->s->worker[to]->handover, m) != 0)
		return false;
	w->handed |= 1u << to; /* its kick, if it sleeps, follows at the end of the loop */
	return true;
}
