/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 1 of the receive path: what a packet is, whether it is for us, and who gets it. RoCE
 * goes to the engine, echo requests are answered in place, ARP, ND and ICMP errors go to the
 * control thread through a bounded ring; everything else is dropped with a counter.
 */
#include <rte_prefetch.h>
#include <rte_ring.h>

#include "net_icmp.h"
#include "net_path.h"
#include "roce_mcast.h"
#include "worker_priv.h"

#define PREFETCH_GUESS 4 /* packets */
#define PREFETCH_BYTES (3 * RTE_CACHE_LINE_SIZE)

/** What becomes of a packet. Those of drop are counters. */
enum verdict {
	RX_ROCE = -4,
	RX_CTL,
	RX_ECHO,
	RX_DROP, /* counted by its kind */
};

/** The packets of a burst that are for the engine, and those for nobody. */
struct rx_burst {
	uint16_t num_roce, num_drop;
	struct net_pkt roce[WORKER_BURST];
	struct rte_mbuf *drop[WORKER_BURST];
};

static bool
owned(const struct net_iface_view *v, const struct net_pkt *p)
{
	struct net_ip dst = net_pkt_dst(p);

	return net_iface_find(v, &dst, net_vlan_id(p->vlan_tci)) != NULL;
}

static bool
on_vlan(const struct net_iface_view *v, uint16_t vid)
{
	for (unsigned int i = 0; i < v->n_addr; i++)
		if (v->addr[i].vid == vid)
			return true;
	return false;
}

/**
 * To a group: for its members. What we have sent ourselves comes back from some ports and
 * switches; members here had their copy when it left.
 */
static int
judge_group(const struct worker *w, const struct net_iface_view *v, const struct net_pkt *p,
	    const struct net_ip *dst, enum net_kind kind)
{
	struct net_ip src = net_pkt_src(p);

	if (kind != NET_UDP || p->dport != NET_ROCE_PORT)
		return kind == NET_UDP ? WORKER_C_DROP_UDP : WORKER_C_DROP_OTHER;
	if (!roce_mcast_has(w->s->mcast, p->port, dst) || net_iface_owns(v, &src) ||
	    !on_vlan(v, net_vlan_id(p->vlan_tci)))
		return WORKER_C_DROP_ADDRESS;
	return RX_ROCE;
}

static int
judge_ip(const struct worker *w, const struct net_iface_view *v, const struct net_pkt *p,
	 enum net_kind kind)
{
	if (unlikely(!owned(v, p))) {
		struct net_ip dst = net_pkt_dst(p);

		return net_ip_is_multicast(&dst) ? judge_group(w, v, p, &dst, kind)
						 : WORKER_C_DROP_ADDRESS;
	}
	switch (kind) {
	case NET_UDP:
		return p->dport == NET_ROCE_PORT ? RX_ROCE : WORKER_C_DROP_UDP;
	case NET_TCP:
		return WORKER_C_DROP_TCP;
	case NET_ICMP_ECHO:
		return RX_ECHO;
	case NET_ICMP_ERROR:
		return RX_CTL;
	default:
		return WORKER_C_DROP_OTHER;
	}
}

/** @return enum verdict, or the counter of a drop. */
static inline int
judge(const struct worker *w, const struct net_iface_view *v, const struct net_pkt *p,
      enum net_kind kind)
{
	const struct rte_ether_hdr *eth;

	if (unlikely(net_kind_is_drop(kind)))
		return RX_DROP;
	eth = rte_pktmbuf_mtod(p->m, const struct rte_ether_hdr *);
	if (unlikely(!net_iface_takes_mac(v, &eth->dst_addr)))
		return WORKER_C_DROP_MAC;
	if (unlikely(kind == NET_ARP || kind == NET_ND || kind == NET_GROUP))
		return RX_CTL; /* their tables have their own rules on addresses */
	if (unlikely(kind == NET_OTHER))
		return WORKER_C_DROP_OTHER;
	return judge_ip(w, v, p, kind);
}

static void
to_control(struct worker *w, struct rx_burst *b, struct net_pkt *p)
{
	struct worker_msg *m = worker_own_get(w, WORKER_OWN_RX_CTL);

	if (m == NULL) {
		worker_count(w, WORKER_C_DROP_CTL_FULL, 1);
		b->drop[b->num_drop++] = p->m;
		return;
	}
	m->type = WORKER_MSG_RX_CTL;
	m->pkt.port = p->port;
	m->pkt.m = p->m;
	worker_count(w, WORKER_C_RX_CTL, 1);
	worker_tell(w, m);
}

static void
echo(struct worker *w, struct rx_burst *b, const struct net_iface_view *v, struct net_pkt *p)
{
	if (net_icmp_echo_reply(p, &v->mac) == 0 && net_tx_push(w->tx[p->port], p->m)) {
		worker_count(w, WORKER_C_RX_ECHO, 1);
		return;
	}
	worker_count(w, WORKER_C_DROP_ECHO, 1);
	b->drop[b->num_drop++] = p->m;
}

/** A packet that is not for the engine: the slow part. */
static void
deliver_slow(struct worker *w, struct rx_burst *b, const struct net_iface_view *v,
	     struct net_pkt *p, int verdict)
{
	switch (verdict) {
	case RX_CTL:
		to_control(w, b, p);
		return;
	case RX_ECHO:
		echo(w, b, v, p);
		return;
	case RX_DROP:
		break;
	default:
		worker_count(w, (enum worker_counter)verdict, 1);
	}
	b->drop[b->num_drop++] = p->m;
}

/** What the ICRC will read beside the first line; behind that the CPU sees a stream. */
static inline void
prefetch_rest(const char *data, unsigned int len)
{
	for (unsigned int l = RTE_CACHE_LINE_SIZE; l < len && l < PREFETCH_BYTES;
	     l += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(data + l);
}

/**
 * In a short burst nothing hides the wait for an mbuf's own words: the data is guessed to lie
 * where it does in a fresh buffer. In a long one first lines come first, the others one packet
 * at a time, or all would wait for all.
 */
static inline void
prefetch_some(const struct worker *w, struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; n <= PREFETCH_GUESS && i < n; i++) {
		const char *data = (const char *)m[i] + w->rx_data_off;

		rte_prefetch0(m[i]);
		rte_prefetch0(data);
		prefetch_rest(data, PREFETCH_BYTES);
	}
	for (uint16_t i = 0; n > PREFETCH_GUESS && i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
}

static inline void
prefetch_packet(const struct rte_mbuf *m)
{
	prefetch_rest(rte_pktmbuf_mtod(m, const char *), m->data_len);
}

static void
burst_end(struct worker *w, struct rx_burst *b)
{
	if (b->num_roce != 0)
		roce_input(w->roce, b->roce, b->num_roce, w->now);
	if (b->num_drop != 0)
		rte_pktmbuf_free_bulk(b->drop, b->num_drop);
	worker_count(w, WORKER_C_RX_ROCE, b->num_roce);
}

unsigned int
worker_rx_port(struct worker *w, uint32_t port)
{
	struct rte_mbuf *m[WORKER_BURST];
	const struct net_iface_view *v;
	struct rx_burst b;
	uint16_t n;

	n = pmd_rx_burst(w->s->port[port], (uint16_t)w->id, m, WORKER_BURST);
	if (n == 0)
		return 0;
	b.num_roce = b.num_drop = 0;
	v = net_iface_get(&w->s->iface[port]);
	prefetch_some(w, m, n);
	for (uint16_t i = 0; i < n; i++) {
		struct net_pkt *p = &b.roce[b.num_roce];
		enum net_kind kind = net_parse(m[i], p);
		int verdict = judge(w, v, p, kind);

		prefetch_packet(m[i]);
		counter_inc(&w->kind[kind]);
		if (likely(verdict == RX_ROCE))
			b.num_roce++;
		else
			deliver_slow(w, &b, v, p, verdict);
	}
	worker_count(w, WORKER_C_RX, n);
	burst_end(w, &b);
	return n;
}

/**
 * Packets from the hairpin and from other workers. Whose they are was settled where they came
 * from: by the path's addresses, or by that worker's stage 1.
 */
unsigned int
worker_rx_handover(struct worker *w)
{
	struct rte_mbuf *m[WORKER_BURST];
	struct rx_burst b;
	unsigned int n = rte_ring_dequeue_burst(w->handover, (void **)m, WORKER_BURST, NULL);

	if (n == 0)
		return 0;
	b.num_roce = b.num_drop = 0;
	prefetch_some(w, m, (uint16_t)n);
	for (unsigned int i = 0; i < n; i++) {
		struct net_pkt *p = &b.roce[b.num_roce];
		enum net_kind kind = net_parse(m[i], p);

		if (likely(kind == NET_UDP && p->dport == NET_ROCE_PORT))
			b.num_roce++;
		else
			deliver_slow(w, &b, NULL, p, net_kind_is_drop(kind) ? RX_DROP :
				     WORKER_C_DROP_OTHER);
		prefetch_packet(m[i]);
		counter_inc(&w->kind[kind]);
	}
	worker_count(w, WORKER_C_HANDOVER_RX, n);
	burst_end(w, &b);
	return n;
}
