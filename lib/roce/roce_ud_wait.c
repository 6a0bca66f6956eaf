/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams whose next hop has no MAC. They are done as far as their senders are concerned and
 * wait here, a few for each handle and many in all, so that an unknown neighbour holds up no other
 * destination of the same QP. In order for each handle. What does not fit, or has waited as long
 * as a resolution takes, is lost, as datagrams may be.
 */
#include "roce_ud_priv.h"

#define WAIT_OF_AH 8u
#define WAIT_NS (NET_NEIGH_SOLICITS * NET_NEIGH_RETRANS_NS)

static struct roce_ah *
wait_ah(const struct rte_mbuf *m)
{
	return (struct roce_ah *)(uintptr_t)m->tx_offload;
}

static uint64_t
wait_until(const struct rte_mbuf *m)
{
	return (uint64_t)m->hash.fdir.hi << 32 | m->hash.fdir.lo;
}

static uint32_t *
wait_of_pd(struct roce *r, const struct roce_ah *ah)
{
	return &r->ud_wait.of_pd[ah->pd % ROCE_UD_WAIT_PDS];
}

/** Of a domain, another one while it has fewer than there is room for. */
static bool
wait_room(struct roce *r, const struct roce_ah *ah)
{
	return atomic_load_explicit(&ah->waiting, memory_order_relaxed) < WAIT_OF_AH &&
	       *wait_of_pd(r, ah) < ROCE_UD_WAIT - r->ud_wait.num;
}

static void
wait_arm(struct roce *r)
{
	wheel_arm(&r->wheel, &r->ud_wait.timer, r->now + ROCE_NEIGH_RETRY_NS);
}

void
roce_ud_wait(struct roce *r, struct roce_ah *ah, struct rte_mbuf *m)
{
	struct roce_ud_wait *q = &r->ud_wait;
	uint64_t until = r->now + WAIT_NS;

	if (!wait_room(r, ah)) {
		roce_count(r, ROCE_C_UD_NEIGH_DROPPED);
		rte_pktmbuf_free(m);
		return;
	}
	roce_count(r, ROCE_C_NEIGH_WAIT);
	atomic_fetch_add_explicit(&ah->waiting, 1, memory_order_relaxed);
	(*wait_of_pd(r, ah))++;
	m->tx_offload = (uintptr_t)ah;
	m->hash.fdir.lo = (uint32_t)until;
	m->hash.fdir.hi = (uint32_t)(until >> 32);
	m->next = NULL;
	if (q->head)
		q->tail->next = m;
	else
		q->head = m;
	q->tail = m;
	q->num++;
	if (!wheel_armed(&q->timer))
		wait_arm(r);
}

bool
roce_ud_waits_here(const struct roce *r, const struct roce_ah *ah)
{
	for (const struct rte_mbuf *m = r->ud_wait.head; m != NULL; m = m->next)
		if (wait_ah(m) == ah)
			return true;
	return false;
}

/** Take the packet out that *at points to; prev is the one before. */
static struct rte_mbuf *
wait_unlink(struct roce *r, struct rte_mbuf **at, struct rte_mbuf *prev)
{
	struct roce_ud_wait *q = &r->ud_wait;
	struct rte_mbuf *m = *at;
	struct roce_ah *ah = wait_ah(m);

	*at = m->next;
	if (q->tail == m)
		q->tail = prev;
	q->num--;
	(*wait_of_pd(r, ah))--;
	m->next = NULL;
	m->tx_offload = 0;
	/* pairs with the acquire in roce_ah_waits() */
	atomic_fetch_sub_explicit(&ah->waiting, 1, memory_order_release);
	return m;
}

static void
wait_lose(struct roce *r, struct rte_mbuf *m)
{
	roce_count(r, ROCE_C_UD_NEIGH_DROPPED);
	rte_pktmbuf_free(m);
}

void
roce_ud_wait_run(struct roce *r)
{
	struct rte_mbuf **at = &r->ud_wait.head, *prev = NULL, *m;

	while ((m = *at) != NULL) {
		struct roce_ah *ah = wait_ah(m);
		uint64_t l2 = net_neigh_use(ah->path.neigh);

		if (net_neigh_l2_usable(l2) && net_tx_room(r->cfg.tx[ah->port]) > 0) {
			struct rte_ether_addr mac = net_neigh_l2_mac(l2);
			uint16_t port = ah->port;

			wait_unlink(r, at, prev); /* the handle may be gone now */
			rte_ether_addr_copy(&mac, rte_pktmbuf_mtod(m, struct rte_ether_addr *));
			roce_tx_push(r, port, m);
		} else if (wait_until(m) <= r->now) {
			wait_lose(r, wait_unlink(r, at, prev));
		} else {
			prev = m;
			at = &m->next;
		}
	}
	if (r->ud_wait.num == 0)
		wheel_cancel(&r->wheel, &r->ud_wait.timer);
	else if (!wheel_armed(&r->ud_wait.timer))
		wait_arm(r);
}

void
roce_ah_forget(struct roce *r, const struct roce_ah *ah)
{
	struct rte_mbuf **at = &r->ud_wait.head, *prev = NULL;

	while (*at != NULL) {
		if (wait_ah(*at) == ah) {
			wait_lose(r, wait_unlink(r, at, prev));
		} else {
			prev = *at;
			at = &prev->next;
		}
	}
	if (r->ud_wait.num == 0)
		wheel_cancel(&r->wheel, &r->ud_wait.timer);
}

void
roce_ud_wait_drop(struct roce *r)
{
	while (r->ud_wait.head != NULL)
		wait_lose(r, wait_unlink(r, &r->ud_wait.head, NULL));
	wheel_cancel(&r->wheel, &r->ud_wait.timer);
}
