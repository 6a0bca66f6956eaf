/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload between packets and registered memory. What is mapped here is copied at once; what
 * is only in the client's process goes to the copiers as one verbs_io an access. Nothing is
 * written before every byte of the access has been checked.
 *
 * Mapped pieces of a mixed write are copied at once too, but for the last piece of all, which
 * waits for the foreign ones: an application polls the last byte.
 */
#include <errno.h>

#include "base_bug.h"
#include "base_copy.h"
#include "base_crc.h"

#include "verbs_priv.h"

/** An access cut into pieces that are contiguous here or in the client's process. */
struct copy_piece {
	uint8_t *here; /* NULL: foreign */
	const uint8_t *src; /* of a write */
	uint64_t remote;
	uint32_t off; /* from the start of the access */
	uint32_t len;
	uint32_t key;
	struct mr_ref ref;
	struct mr *under; /* mr_under() */
};

struct copy_plan {
	uint32_t num, foreign;
	uint32_t fixed; /* pieces that nothing is joined to: of an earlier part of the source */
	void *lane;
	struct copy_piece piece[VERBS_IO_PIECES];
};

static inline void
plan_begin(struct copy_plan *p)
{
	p->num = p->foreign = p->fixed = 0;
}

/** What was planned last is written from here. */
static void
plan_src(struct copy_plan *p, const uint8_t *src)
{
	for (uint32_t i = p->fixed; i < p->num; i++)
		p->piece[i].src = src + p->piece[i].off;
	p->fixed = p->num;
}

/** Add a piece, joined to its neighbour where it goes on in the same region. */
static bool
plan_add(struct copy_plan *p, const struct copy_piece *new)
{
	struct copy_piece *last = p->num > p->fixed ? &p->piece[p->num - 1] : NULL;

	if (last && last->ref.mr == new->ref.mr && last->under == new->under &&
	    (last->here == NULL) == (new->here == NULL) &&
	    (new->here ? last->here + last->len == new->here
		       : last->remote + last->len == new->remote)) {
		last->len += new->len;
		return true;
	}
	if (p->num == VERBS_IO_PIECES)
		return false;
	if (new->here == NULL) {
		void *lane = mr_lane(&new->ref);

		if (p->foreign && lane != p->lane)
			return false; /* two processes' memory in one access */
		p->lane = lane;
		p->foreign++;
	}
	p->piece[p->num++] = *new;
	return true;
}

/** Cut `len` bytes from `off` of a checked access; they are bytes `at` onwards of the whole. */
static bool
plan_ref(struct copy_plan *p, const struct mr_ref *ref, uint32_t key, uint64_t off, uint32_t at,
	 uint32_t len)
{
	while (len > 0) {
		struct copy_piece new = {.off = at, .len = len, .key = key, .ref = *ref};
		uint64_t run = len;

		if (ref->ptr)
			new.here = ref->ptr + off;
		else
			new.here = mr_segment(ref, off, &run, &new.remote);
		if (run == 0)
			return false;
		if (run < new.len)
			new.len = (uint32_t)run;
		new.under = mr_under(ref, off);
		if (!plan_add(p, &new))
			return false;
		off += new.len;
		at += new.len;
		len -= new.len;
	}
	return true;
}

/** Check `len` bytes at `off` of an element. */
static inline bool
sge_check(struct verbs_worker *w, const struct verbs_qp *qp, const struct verbs_sge *sge,
	  uint32_t pd, uint32_t off, uint32_t len, uint32_t access, struct mr_ref *ref)
{
	enum mr_result r;

	if (unlikely(sge->addr + off < sge->addr))
		r = MR_BAD_RANGE;
	else
		r = mr_check(w->mrs, sge->lkey, pd, qp->qpn, sge->addr + off, len, access, ref);
	if (likely(r == MR_OK))
		return true;
	counter_inc(&w->refused[r]);
	return false;
}

/** Check and cut `len` bytes from `off` of a list. */
static enum wc_status
plan_list(struct copy_plan *p, struct verbs_worker *w, const struct verbs_qp *qp,
	  struct verbs_sgl sgl, uint32_t off, uint32_t len, uint32_t access)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < sgl.num && at < len; i++) {
		const struct verbs_sge *sge = &sgl.sge[i];
		struct mr_ref ref;
		uint32_t n;

		if (off >= sge->length) {
			if (!base_bug(BUG_SGE_SKIP))
				off -= sge->length;
			continue;
		}
		n = sge->length - off < len - at ? sge->length - off : len - at;
		if (!sge_check(w, qp, sge, sgl.pd, off, n, access, &ref) ||
		    !plan_ref(p, &ref, sge->lkey, 0, at, n))
			return WC_LOC_PROT_ERR;
		at += n;
		off = 0;
	}
	return at == len ? WC_SUCCESS : WC_LOC_LEN_ERR;
}

enum wc_status
verbs_sgl_check(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_sgl sgl, uint32_t access)
{
	for (uint32_t i = 0; i < sgl.num; i++) {
		const struct verbs_sge *sge = &sgl.sge[i];
		struct mr_ref ref;

		if (sge->length && !sge_check(w, qp, sge, sgl.pd, 0, sge->length, access, &ref))
			return WC_LOC_PROT_ERR;
	}
	return WC_SUCCESS;
}

/* ---- foreign pieces ---------- */

/** An io for this direction of the QP, or NULL: parked already, or none left, it waits for one. */
static struct verbs_io *
io_start(struct verbs_worker *w, struct verbs_qp *qp, enum verbs_dir dir, enum verbs_io_op op,
	 void *lane)
{
	struct verbs_io *io;

	if (qp->io[dir] != NULL)
		return NULL;
	io = verbs_io_alloc(w, qp->share);
	if (unlikely(io == NULL)) {
		verbs_starve(w, qp, VERBS_POOL_IO);
		return NULL;
	}
	io->next = NULL;
	io->qp = qp;
	io->user = NULL;
	io->lane = lane;
	io->op = op;
	io->dir = dir;
	io->num = 0;
	io->status = 0;
	io->compare_add = io->swap = io->original = 0;
	io->late.len = 0;
	return io;
}

static void
io_add(struct verbs_io *io, const struct copy_piece *p, uint8_t *local)
{
	uint32_t i = io->num++;

	io->piece[i].remote = p->remote;
	io->piece[i].local = local;
	io->piece[i].len = p->len;
	io->piece[i].key = p->key;
	io->piece[i].mr = p->ref.mr;
	io->piece[i].under = p->under;
	mr_hold(p->ref.mr, p->under);
}

static enum verbs_io_result
io_submit(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_io *io)
{
	qp->io[io->dir] = io;
	counter_inc(&w->counter[VERBS_C_IO_SUBMIT]);
	w->host.io_submit(w->host.ctx, io);
	return VERBS_PENDING;
}

struct verbs_qp *
verbs_io_finish(struct verbs_worker *w, struct verbs_io *io, int *status, uint64_t *original)
{
	struct verbs_qp *qp = io->qp;

	if (io->status != 0)
		counter_inc(&w->counter[VERBS_C_IO_FAULT]);
	if (io->late.len) {
		/* The QP may have gone or the key been invalidated while the copier worked. */
		if (io->status == 0 && qp && !mr_still_valid(&io->late.ref, io->late.key))
			io->status = -EACCES;
		if (io->status == 0 && qp)
			copy_place(io->late.dst, io->late.src, io->late.len);
		mr_unhold(io->late.ref.mr, io->late.under);
	}
	for (uint32_t i = 0; i < io->num && !base_bug(BUG_HOLD_LEAK); i++)
		mr_unhold(io->piece[i].mr, io->piece[i].under);
	*status = io->status;
	*original = io->original;
	if (qp)
		qp->io[io->dir] = NULL;
	verbs_io_free(w, io);
	return qp;
}

bool
verbs_io_abandon(struct verbs_qp *qp)
{
	bool any = false;

	for (unsigned int d = 0; d < VERBS_DIRS; d++) {
		if (qp->io[d] == NULL)
			continue;
		qp->io[d]->qp = NULL;
		qp->io[d] = NULL;
		any = true;
	}
	return any;
}

/* ---- out of memory ---------- */

static inline void
copy_out(uint32_t *crc, uint8_t *dst, const uint8_t *src, uint32_t len)
{
	if (likely(crc != NULL))
		*crc = crc32_copy(*crc, dst, src, len);
	else
		memcpy(dst, src, len);
}

static enum verbs_io_result
gather_plan(struct verbs_worker *w, struct verbs_qp *qp, const struct copy_plan *p, uint8_t *dst,
	    uint32_t *crc)
{
	struct verbs_io *io = NULL;

	if (p->foreign) {
		io = io_start(w, qp, VERBS_TX, VERBS_IO_READ, p->lane);
		if (io == NULL)
			return VERBS_AGAIN;
		crc = NULL; /* the CRC is made over the copy when all is there */
	}
	for (uint32_t i = 0; i < p->num; i++) {
		const struct copy_piece *c = &p->piece[i];

		if (c->here)
			copy_out(crc, dst + c->off, c->here, c->len);
		else
			io_add(io, c, dst + c->off);
	}
	return io ? io_submit(w, qp, io) : VERBS_DONE;
}

/** Inline payload: 32 bytes in the first slot, then whole slots; it may wrap once. */
static void
gather_inline(const struct verbs_qp *qp, const struct verbs_wqe *wqe, uint32_t off, uint32_t len,
	      uint8_t *dst, uint32_t *crc)
{
	const struct ring_wq_cons *q = &qp->sq;

	off += offsetof(struct ring_wqe, data);
	while (len > 0) {
		uint32_t slot = (wqe->wqe_index + off / RING_SLOT_SIZE) & q->mask;
		uint32_t in = off % RING_SLOT_SIZE;
		uint32_t run = (q->mask + 1 - slot) * RING_SLOT_SIZE - in;

		if (run > len)
			run = len;
		copy_out(crc, dst, q->slots + (size_t)slot * RING_SLOT_SIZE + in, run);
		dst += run;
		off += run;
		len -= run;
	}
}

static enum verbs_io_result
gather_list(struct verbs_worker *w, struct verbs_qp *qp, const struct verbs_wqe *wqe, uint32_t off,
	    uint32_t len, uint8_t *dst, uint32_t *crc, enum wc_status *why)
{
	struct copy_plan p;
	enum wc_status status;

	plan_begin(&p);
	status = plan_list(&p, w, qp, verbs_wqe_sgl(wqe), off, len, 0);
	if (status != WC_SUCCESS) {
		*why = status;
		return VERBS_ERROR;
	}
	return gather_plan(w, qp, &p, dst, crc);
}

enum verbs_io_result
verbs_gather(struct verbs_worker *w, struct verbs_qp *qp, const struct verbs_wqe *wqe, uint32_t off,
	     uint32_t len, uint8_t *dst, uint32_t *crc, enum wc_status *why)
{
	struct mr_ref ref;

	if (unlikely(off > wqe->length || len > wqe->length - off)) {
		*why = WC_LOC_LEN_ERR;
		return VERBS_ERROR;
	}
	if (len == 0)
		return VERBS_DONE;
	if (wqe->flags & RING_WR_INLINE) {
		gather_inline(qp, wqe, off, len, dst, crc);
		return VERBS_DONE;
	}
	if (unlikely(wqe->num_sge != 1))
		return gather_list(w, qp, wqe, off, len, dst, crc, why);
	if (unlikely(!sge_check(w, qp, &wqe->sge[0], wqe->pd, off, len, 0, &ref))) {
		*why = WC_LOC_PROT_ERR;
		return VERBS_ERROR;
	}
	if (unlikely(ref.ptr == NULL)) {
		struct copy_plan p;

		plan_begin(&p);
		if (plan_ref(&p, &ref, wqe->sge[0].lkey, 0, 0, len))
			return gather_plan(w, qp, &p, dst, crc);
		*why = WC_LOC_PROT_ERR;
		return VERBS_ERROR;
	}
	copy_out(crc, dst, ref.ptr, len);
	return VERBS_DONE;
}

enum verbs_io_result
verbs_gather_ref(struct verbs_worker *w, struct verbs_qp *qp, const struct mr_ref *ref,
		 uint32_t key, uint64_t off, uint32_t len, uint8_t *dst, uint32_t *crc)
{
	struct copy_plan p;

	if (likely(ref->ptr != NULL)) {
		copy_out(crc, dst, ref->ptr + off, len);
		return VERBS_DONE;
	}
	plan_begin(&p);
	if (!plan_ref(&p, ref, key, off, 0, len))
		return VERBS_ERROR;
	return gather_plan(w, qp, &p, dst, crc);
}

/* ---- into memory ---------- */

/** Foreign pieces and the last one into an io; the other mapped ones at once. */
static enum verbs_io_result
scatter_mixed(struct verbs_worker *w, struct verbs_qp *qp, const struct copy_plan *p)
{
	struct verbs_io *io = io_start(w, qp, VERBS_RX, VERBS_IO_WRITE, p->lane);

	if (io == NULL)
		return VERBS_AGAIN;
	for (uint32_t i = 0; i < p->num; i++) {
		const struct copy_piece *c = &p->piece[i];

		if (c->here == NULL) {
			/* the copier only reads it: the operation is VERBS_IO_WRITE */
			io_add(io, c, (uint8_t *)(uintptr_t)c->src);
		} else if (i + 1 < p->num) {
			copy_place(c->here, c->src, c->len);
		} else {
			io->late.dst = c->here;
			io->late.src = c->src;
			io->late.len = c->len;
			io->late.key = c->key;
			io->late.ref = c->ref;
			io->late.under = c->under;
			mr_hold(c->ref.mr, c->under);
		}
	}
	io_submit(w, qp, io);
	return base_bug(BUG_FOREIGN_EARLY) ? VERBS_DONE : VERBS_PENDING;
}

static enum verbs_io_result
scatter_plan(struct verbs_worker *w, struct verbs_qp *qp, const struct copy_plan *p)
{
	if (p->foreign)
		return scatter_mixed(w, qp, p);
	for (uint32_t i = 0; i < p->num; i++)
		copy_place(p->piece[i].here, p->piece[i].src, p->piece[i].len);
	return VERBS_DONE;
}

enum verbs_io_result
verbs_scatter(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_sgl sgl, uint32_t off,
	      const uint8_t *src, uint32_t len, enum wc_status *why)
{
	const struct verbs_sge *sge = sgl.sge;
	enum wc_status status;
	struct copy_plan p;
	struct mr_ref ref;

	if (len == 0)
		return VERBS_DONE;
	plan_begin(&p);
	if (likely(sgl.num > 0 && off < sge->length && len <= sge->length - off)) {
		status = sge_check(w, qp, sge, sgl.pd, off, len, MR_LOCAL_WRITE, &ref)
				 ? WC_SUCCESS
				 : WC_LOC_PROT_ERR;
		if (likely(status == WC_SUCCESS && ref.ptr != NULL)) {
			copy_place(ref.ptr, src, len);
			return VERBS_DONE;
		}
		if (status == WC_SUCCESS && !plan_ref(&p, &ref, sge->lkey, 0, 0, len))
			status = WC_LOC_PROT_ERR;
	} else {
		status = plan_list(&p, w, qp, sgl, off, len, MR_LOCAL_WRITE);
	}
	if (unlikely(status != WC_SUCCESS)) {
		*why = status;
		return VERBS_ERROR;
	}
	plan_src(&p, src);
	return scatter_plan(w, qp, &p);
}

enum verbs_io_result
verbs_scatter_parts(struct verbs_worker *w, struct verbs_qp *qp, struct verbs_sgl sgl,
		    const struct verbs_part *part, uint32_t num, enum wc_status *why)
{
	enum wc_status status = WC_SUCCESS;
	struct copy_plan p;
	uint32_t off = 0;

	plan_begin(&p);
	for (uint32_t i = 0; i < num && status == WC_SUCCESS; i++) {
		if (part[i].len == 0)
			continue;
		status = plan_list(&p, w, qp, sgl, off, part[i].len, MR_LOCAL_WRITE);
		plan_src(&p, part[i].src);
		off += part[i].len;
	}
	if (likely(status == WC_SUCCESS))
		return scatter_plan(w, qp, &p);
	*why = status;
	return VERBS_ERROR;
}

enum verbs_io_result
verbs_place(struct verbs_worker *w, struct verbs_qp *qp, const struct mr_ref *ref, uint32_t key,
	    uint64_t off, const uint8_t *src, uint32_t len)
{
	struct copy_plan p;

	if (likely(ref->ptr != NULL)) {
		copy_place(ref->ptr + off, src, len);
		return VERBS_DONE;
	}
	plan_begin(&p);
	if (!plan_ref(&p, ref, key, off, 0, len))
		return VERBS_ERROR;
	plan_src(&p, src);
	return scatter_plan(w, qp, &p);
}

/* ---- atomics ---------- */

/** Eight bytes in one piece, aligned where they lie. */
static bool
plan_word(struct copy_plan *p, const struct mr_ref *ref, uint32_t key)
{
	plan_begin(p);
	if (!plan_ref(p, ref, key, 0, 0, sizeof(uint64_t)) || p->num != 1)
		return false;
	return (p->foreign ? p->piece[0].remote : (uintptr_t)p->piece[0].here) %
		       sizeof(uint64_t) == 0;
}

static uint64_t
atomic_here(uint64_t *p, bool cmp_swap, uint64_t compare_add, uint64_t swap)
{
	if (!cmp_swap)
		return __atomic_fetch_add(p, compare_add, __ATOMIC_SEQ_CST);
	/* leaves the old value in its second argument, equal or not */
	__atomic_compare_exchange_n(p, &compare_add, swap, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return compare_add;
}

enum verbs_io_result
verbs_atomic(struct verbs_worker *w, struct verbs_qp *qp, const struct mr_ref *ref, uint32_t key,
	     bool cmp_swap, uint64_t compare_add, uint64_t swap, uint64_t *original)
{
	struct copy_plan p;
	struct verbs_io *io;

	if (!plan_word(&p, ref, key))
		return VERBS_ERROR;
	if (p.foreign == 0) {
		*original = atomic_here((uint64_t *)(void *)p.piece[0].here, cmp_swap, compare_add,
					swap);
		return VERBS_DONE;
	}
	io = io_start(w, qp, VERBS_RX, cmp_swap ? VERBS_IO_CMP_SWAP : VERBS_IO_FETCH_ADD, p.lane);
	if (io == NULL)
		return VERBS_AGAIN;
	io->compare_add = compare_add;
	io->swap = swap;
	io_add(io, &p.piece[0], NULL);
	return io_submit(w, qp, io);
}

enum verbs_io_result
verbs_atomic_write(struct verbs_worker *w, struct verbs_qp *qp, const struct mr_ref *ref,
		   uint32_t key, const uint8_t *src)
{
	struct copy_plan p;
	uint64_t word;

	if (!plan_word(&p, ref, key))
		return VERBS_ERROR;
	if (p.foreign) {
		plan_src(&p, src);
		return scatter_mixed(w, qp, &p);
	}
	memcpy(&word, src, sizeof(word));
	/* all that came before is seen by whoever sees this */
	__atomic_store_n((uint64_t *)(void *)p.piece[0].here, word, __ATOMIC_RELEASE);
	return VERBS_DONE;
}
