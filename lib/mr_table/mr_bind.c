/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding memory windows, in two halves around the wait that mr_table.h describes, and what
 * fast registration shares with it: the claim of an entry, and the hold on what lies below it.
 * Rules are those of IBTA 10.6.6.2 and of C10-74, -75.
 */
#include "mr_table_priv.h"

#define MR_REMOTE_RIGHTS \
	(MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC | MR_FLUSH_GLOBAL | \
		MR_FLUSH_PERSISTENT)

/* ---- grace ---------- */

/* Acquire: whoever passed the quiescent point that this token stands for comes before. */
uint64_t
mr_grace(const struct mr_table *t, uint32_t key)
{
	return atomic_load_explicit(&mr_slot(t, key)->grace, memory_order_acquire);
}

void
mr_grace_set(struct mr_table *t, uint32_t key, uint64_t token)
{
	atomic_store_explicit(&mr_slot(t, key)->grace, token, memory_order_release);
}

/* ---- claims ---------- */

/*
 * The hold comes with the claim, so that the entry outlives it. It is taken before the claim can
 * be seen: the control thread, which kills and then asks for holds, meets it in any case.
 */
bool
mr_claim(struct mr *mr, uint64_t *word)
{
	uint64_t claimed = mr_word(
		mr_word_key(*word), 0, mr_word_type(*word), MR_STATE_CLAIMED);

	atomic_fetch_add_explicit(&mr->holds, 1, memory_order_relaxed);
	if (atomic_compare_exchange_strong_explicit(
		    &mr->word, word, claimed, memory_order_acq_rel, memory_order_acquire))
		return true;
	atomic_fetch_sub_explicit(&mr->holds, 1, memory_order_relaxed);
	return false;
}

/* Publishes the fields: pairs with the acquire loads of the word. */
bool
mr_claim_end(struct mr *mr, uint64_t word)
{
	uint64_t now = atomic_load_explicit(&mr->word, memory_order_acquire);

	while (mr_word_state(now) == MR_STATE_CLAIMED)
		if (atomic_compare_exchange_weak_explicit(
			    &mr->word, &now, word, memory_order_acq_rel, memory_order_acquire))
			return true;
	return false;
}

/* Release: all that was done to the entry comes before; pairs with mr_busy(). */
void
mr_claim_drop(struct mr *mr)
{
	atomic_fetch_sub_explicit(&mr->holds, 1, memory_order_release);
}

bool
mr_claim_busy(const struct mr_table *t, uint32_t key)
{
	return atomic_load_explicit(&mr_slot(t, key)->holds, memory_order_acquire) > 1;
}

/* ---- what lies below ---------- */

uint32_t
mr_rights_below(uint32_t access)
{
	uint32_t need = MR_MW_BIND | (access & (MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT));

	if (access & (MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_ATOMIC))
		need |= MR_LOCAL_WRITE; /* C10-75 */
	return need;
}

static enum mr_result
mr_parent_check(const struct mr *r, uint64_t word, uint32_t key, uint32_t pd, uint32_t context,
	uint32_t need)
{
	enum mr_type type = mr_word_type(word);

	if (mr_word_key(word) != key || mr_word_state(word) == MR_STATE_EMPTY ||
		(type != MR_TYPE_REGION && type != MR_TYPE_FAST_REG))
		return MR_NO_KEY;
	if (mr_word_state(word) != MR_STATE_VALID)
		return MR_BAD_STATE;
	/* Another context's would keep its owner, who may end it at any time, from doing so. */
	if (r->pd != pd || r->context != context)
		return MR_BAD_PD;
	return (mr_word_access(word) & need) == need ? MR_OK : MR_BAD_ACCESS;
}

/*
 * Looked at before it is counted, since counting touches it: it may be anybody's. And again
 * after: who takes it out of VALID closes the count first.
 */
enum mr_result
mr_parent_get(struct mr *r, uint32_t key, uint32_t pd, uint32_t context, uint32_t need)
{
	uint64_t word = atomic_load_explicit(&r->word, memory_order_acquire);
	enum mr_result res = mr_parent_check(r, word, key, pd, context, need);

	if (res != MR_OK)
		return res;
	if (!mr_bound_get(r))
		return MR_BAD_STATE;
	word = atomic_load_explicit(&r->word, memory_order_acquire);
	res = mr_parent_check(r, word, key, pd, context, need);
	if (res != MR_OK)
		mr_bound_put(r);
	return res;
}

bool
mr_range_in(const struct mr *r, uint64_t addr, uint64_t len, uint64_t *offset)
{
	*offset = addr - r->iova;
	return addr >= r->iova && *offset <= r->length && len <= r->length - *offset;
}

/* ---- windows ---------- */

/* What of the request can be said without the region. */
static enum mr_result
mr_bind_check(const struct mr *w, uint64_t word, const struct mr_bind *b)
{
	enum mr_type type = mr_word_type(word);
	enum mr_state state = mr_word_state(word);
	uint32_t allowed = MR_REMOTE_RIGHTS | MR_LOCAL_WRITE | MR_OPTIONAL_MASK;

	if (state == MR_STATE_EMPTY || !mr_type_is_window(type) ||
		(mr_word_key(word) ^ b->window) >> MR_VARIANT_BITS != 0 ||
		(b->new_key ^ b->window) >> MR_VARIANT_BITS != 0)
		return MR_NO_KEY;
	/* Type 2 is invalidated first, type 1 bound anew as it is. */
	if (state != MR_STATE_FREE && (state != MR_STATE_VALID || type != MR_TYPE_WINDOW_1))
		return MR_BAD_STATE;
	if (w->pd != b->pd)
		return MR_BAD_PD;
	if (type != MR_TYPE_WINDOW_1)
		allowed |= MR_ZERO_BASED;
	if ((b->access & ~allowed) != 0)
		return MR_BAD_ACCESS;
	return b->length == 0 && type != MR_TYPE_WINDOW_1 ? MR_BAD_RANGE : MR_OK;
}

/* The region: counted when it will do. A window on a zero-based one is refused (10.6.6.2). */
static enum mr_result
mr_bind_below(struct mr_table *t, const struct mr *w, const struct mr_bind *b)
{
	struct mr *r = mr_slot(t, b->region);
	uint64_t offset;
	enum mr_result res;

	if (b->length == 0)
		return MR_OK;
	res = mr_parent_get(r, b->region, b->pd, w->context, mr_rights_below(b->access));
	if (res != MR_OK)
		return res;
	if (mr_word_access(atomic_load_explicit(&r->word, memory_order_relaxed)) & MR_ZERO_BASED)
		res = MR_BAD_ACCESS;
	else if (!mr_range_in(r, b->addr, b->length, &offset))
		res = MR_BAD_RANGE;
	if (res != MR_OK)
		mr_bound_put(r);
	return res;
}

static void
mr_bind_put(struct mr_table *t, const struct mr_bind *b)
{
	if (b->length != 0)
		mr_bound_put(mr_slot(t, b->region));
}

enum mr_result
mr_bind_begin(struct mr_table *t, const struct mr_bind *b)
{
	struct mr *w = mr_slot(t, b->window);
	uint64_t word = atomic_load_explicit(&w->word, memory_order_acquire);
	enum mr_result res = mr_bind_check(w, word, b);

	if (res == MR_OK)
		res = mr_bind_below(t, w, b);
	if (res != MR_OK)
		return res;
	if (!mr_claim(w, &word)) { /* another bind's, or killed */
		mr_bind_put(t, b);
		return MR_BAD_STATE;
	}
	if (mr_word_state(word) == MR_STATE_VALID)
		mr_window_unbound(w);
	return MR_OK;
}

/*
 * Everything but the word, of a window that is claimed and that nobody reads. 2A is good for the
 * QP alone, whose PD is the one here for all its life: that is checked nevertheless, since its
 * number may be another client's one day.
 */
static void
mr_bind_fill(struct mr *w, struct mr *r, enum mr_type type, const struct mr_bind *b)
{
	uint64_t offset = b->addr - r->iova;

	w->iova = (b->access & MR_ZERO_BASED) != 0 ? 0 : b->addr;
	w->length = b->length;
	w->base = r->base != NULL ? r->base + offset : NULL;
	w->pd_mask = UINT32_MAX;
	w->qpn = type == MR_TYPE_WINDOW_1 ? 0 : b->qpn;
	w->qpn_mask = type == MR_TYPE_WINDOW_1 ? 0 : UINT32_MAX;
	w->shift = r->shift + offset;
	w->segs = r->segs;
	w->lane = r->lane;
	w->parent = r;
}

enum mr_result
mr_bind_commit(struct mr_table *t, const struct mr_bind *b)
{
	struct mr *w = mr_slot(t, b->window);
	uint64_t word = atomic_load_explicit(&w->word, memory_order_acquire);
	enum mr_type type = mr_word_type(word);
	uint64_t bound = mr_word(b->new_key, b->access & MR_REMOTE_RIGHTS, type, MR_STATE_VALID);
	enum mr_result res = MR_OK;

	if (b->length == 0)
		bound = mr_word(b->new_key, 0, type, MR_STATE_FREE);
	else if (mr_word_state(word) == MR_STATE_CLAIMED)
		mr_bind_fill(w, mr_slot(t, b->region), type, b);
	if (b->length != 0)
		atomic_store_explicit(&w->grace, 0, memory_order_relaxed);
	if (!mr_claim_end(w, bound)) {
		mr_bind_put(t, b);
		res = MR_BAD_STATE;
	}
	mr_claim_drop(w);
	return res;
}

void
mr_bind_abort(struct mr_table *t, const struct mr_bind *b)
{
	struct mr *w = mr_slot(t, b->window);
	uint64_t word = atomic_load_explicit(&w->word, memory_order_acquire);

	mr_claim_end(w, mr_word_set_state(word, MR_STATE_FREE));
	mr_bind_put(t, b);
	mr_claim_drop(w);
}
