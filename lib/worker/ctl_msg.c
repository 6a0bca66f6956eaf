/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to and from the workers, and waiting for all of them to pass a quiescent point. A
 * mailbox that is full keeps nobody waiting: what does not fit is sent at a later turn, in order.
 */
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_rcu_qsbr.h>

#include "ctl_priv.h"

#define BURST 64

static void
send_or_keep(struct worker_device *d, uint32_t worker, struct worker_msg *m)
{
	m->next = NULL;
	if (d->waiting[worker] == NULL && worker_send(d->workers[worker], m))
		return;
	if (d->waiting[worker] == NULL)
		d->waiting_tail[worker] = &d->waiting[worker];
	*d->waiting_tail[worker] = m;
	d->waiting_tail[worker] = &m->next;
}

void
ctl_msg_send(struct worker_device *d, uint32_t worker, struct ctl_msg *m)
{
	m->m.reply = true;
	m->m.status = 0;
	m->m.cookie = (uintptr_t)m;
	send_or_keep(d, worker, &m->m);
}

bool
ctl_msg_retry(struct worker_device *d)
{
	bool left = false;

	for (uint32_t i = 0; i < d->sh.num_workers; i++) {
		struct worker_msg *m;

		while ((m = d->waiting[i]) != NULL) {
			struct worker_msg *next = m->next;

			if (!worker_send(d->workers[i], m))
				break;
			d->waiting[i] = next;
		}
		left |= d->waiting[i] != NULL;
	}
	return left;
}

/* Called by workers, which give nothing back to the heap. */
static void
pool_put(struct worker_msg *m)
{
	rte_mempool_put(rte_mempool_from_obj(m), m);
}

struct worker_msg *
ctl_msg_get(struct worker_device *d, enum worker_msg_type type)
{
	void *m;

	if (rte_mempool_get(d->msgs, &m) < 0)
		return NULL;
	memset(m, 0, sizeof(struct worker_msg));
	((struct worker_msg *)m)->type = (uint8_t)type;
	((struct worker_msg *)m)->done = pool_put;
	return m;
}

void
ctl_msg_post(struct worker_device *d, uint32_t worker, struct worker_msg *m)
{
	send_or_keep(d, worker, m);
}

static void
received(struct worker_device *d, struct worker_msg *m)
{
	if (m->reply) {
		struct ctl_msg *mine = (struct ctl_msg *)(uintptr_t)m->cookie;

		mine->replied(d, mine);
		return;
	}
	switch ((enum worker_msg_type)m->type) {
	case WORKER_MSG_EVENT:
		ctl_event_from_worker(d, m);
		break;
	case WORKER_MSG_RX_CTL:
		ctl_net_rx(d, m->pkt.port, m->pkt.m);
		rte_pktmbuf_free(m->pkt.m);
		break;
	case WORKER_MSG_RX_GSI:
		ctl_gsi_queue(d, m);
		return;
	case WORKER_MSG_NOTIFY:
		ctl_notify(d, m->notify);
		break;
	default:
		LOG(ctl_log, ERR, "worker message of unknown type %u", m->type);
		break;
	}
	if (m->done != NULL)
		m->done(m);
}

unsigned int
ctl_msg_poll(struct worker_device *d)
{
	struct worker_msg *m[BURST];
	unsigned int n = worker_ctl_dequeue(&d->sh, m, BURST);

	for (unsigned int i = 0; i < n; i++)
		received(d, m[i]);
	return n;
}

/* ---- grace periods ---------- */

void
ctl_grace_add(struct worker_device *d, struct ctl_grace *g)
{
	g->token = rte_rcu_qsbr_start(d->sh.qsbr);
	STAILQ_INSERT_TAIL(&d->graces, g, link);
}

bool
ctl_grace_poll(struct worker_device *d)
{
	struct ctl_grace_list now = STAILQ_HEAD_INITIALIZER(now);
	struct ctl_grace *g;

	STAILQ_CONCAT(&now, &d->graces); /* what is added meanwhile is for the next turn */
	/* In order of their tokens: the first that has not passed ends it. */
	while ((g = STAILQ_FIRST(&now)) != NULL &&
	       rte_rcu_qsbr_check(d->sh.qsbr, g->token, false) == 1) {
		STAILQ_REMOVE_HEAD(&now, link);
		g->passed(d, g);
	}
	STAILQ_CONCAT(&now, &d->graces);
	STAILQ_CONCAT(&d->graces, &now);
	return !STAILQ_EMPTY(&d->graces);
}
