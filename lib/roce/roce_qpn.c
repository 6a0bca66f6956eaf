/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP numbers to QPs. A number's low bits are its slot, the rest random, so that a guess misses.
 * The control thread writes; workers read while it does: the QP's pointer is stored last on the
 * way in and first on the way out, and what it points to stays until all workers were quiescent.
 */
#include <bsd/stdlib.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rte_common.h>

#include "roce_priv.h"

#define QPN_BITS 24
#define QPN_FIRST 0x100u /* below: QP0, QP1 and what people type by mistake */

struct qpn_slot {
	_Atomic(struct verbs_qp *) qp;
	_Atomic uint32_t qpn; /* 0: free */
	_Atomic uint32_t worker;
};

struct roce_qpn_table {
	struct qpn_slot *slots;
	uint32_t mask, count;
};

struct roce_qpn_table *
roce_qpn_table_create(uint32_t capacity)
{
	struct roce_qpn_table *t = calloc(1, sizeof(*t));
	uint32_t n;

	if (t == NULL || capacity > 1u << QPN_BITS) {
		free(t);
		return NULL;
	}
	n = rte_align32pow2(capacity < 16 ? 16 : capacity);
	t->mask = n - 1;
	t->slots = calloc(n, sizeof(*t->slots));
	if (t->slots == NULL) {
		free(t);
		return NULL;
	}
	return t;
}

void
roce_qpn_table_free(struct roce_qpn_table *t)
{
	if (t)
		free(t->slots);
	free(t);
}

static struct qpn_slot *
qpn_slot(const struct roce_qpn_table *t, uint32_t qpn)
{
	return &t->slots[qpn & t->mask];
}

static uint32_t
slot_qpn(const struct qpn_slot *s)
{
	return atomic_load_explicit(&s->qpn, memory_order_relaxed);
}

/** Random upper bits for a free slot; a few tries suffice unless the table is the space. */
static uint32_t
qpn_draw(uint32_t slot, uint32_t mask)
{
	for (unsigned int i = 0; i < 64; i++) {
		uint32_t qpn = ((arc4random() & ~mask) | slot) & ROCE_QPN_MASK;

		if (qpn >= QPN_FIRST && qpn != ROCE_QPN_MCAST)
			return qpn;
	}
	return 0;
}

uint32_t
roce_qpn_alloc(struct roce_qpn_table *t)
{
	uint32_t slot = arc4random() & t->mask;

	if (t->count > t->mask)
		return 0;
	for (uint32_t i = 0; i <= t->mask; i++, slot = (slot + 1) & t->mask) {
		uint32_t qpn;

		if (slot_qpn(&t->slots[slot]) != 0)
			continue;
		qpn = qpn_draw(slot, t->mask);
		if (qpn == 0)
			continue;
		atomic_store_explicit(&t->slots[slot].qpn, qpn, memory_order_relaxed);
		t->count++;
		return qpn;
	}
	return 0;
}

int
roce_qpn_take(struct roce_qpn_table *t, uint32_t qpn)
{
	struct qpn_slot *s = qpn_slot(t, qpn);

	if (qpn == 0 || qpn >= ROCE_QPN_MCAST || slot_qpn(s) != 0)
		return -EBUSY;
	atomic_store_explicit(&s->qpn, qpn, memory_order_relaxed);
	t->count++;
	return 0;
}

void
roce_qpn_set(struct roce_qpn_table *t, uint32_t qpn, struct verbs_qp *qp, uint32_t worker)
{
	struct qpn_slot *s = qpn_slot(t, qpn);

	if (slot_qpn(s) != qpn)
		return;
	atomic_store_explicit(&s->worker, worker, memory_order_relaxed);
	/* pairs with the acquire in roce_qpn_lookup() */
	atomic_store_explicit(&s->qp, qp, memory_order_release);
}

void
roce_qpn_release(struct roce_qpn_table *t, uint32_t qpn)
{
	struct qpn_slot *s = qpn_slot(t, qpn);

	if (qpn == 0 || slot_qpn(s) != qpn)
		return;
	atomic_store_explicit(&s->qp, NULL, memory_order_release);
	atomic_store_explicit(&s->qpn, 0, memory_order_relaxed);
	t->count--;
}

uint32_t
roce_qpn_count(const struct roce_qpn_table *t)
{
	return t->count;
}

struct verbs_qp *
roce_qpn_lookup(const struct roce_qpn_table *t, uint32_t qpn, uint32_t *worker)
{
	const struct qpn_slot *s = qpn_slot(t, qpn);
	struct verbs_qp *qp = atomic_load_explicit(&s->qp, memory_order_acquire);

	if (qp == NULL || slot_qpn(s) != qpn)
		return NULL;
	*worker = atomic_load_explicit(&s->worker, memory_order_relaxed);
	return qp;
}

uint32_t
roce_qpn_worker(const struct roce_qpn_table *t, uint32_t qpn)
{
	uint32_t worker;

	return roce_qpn_lookup(t, qpn, &worker) != NULL ? worker : UINT32_MAX;
}
