/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys through librnic and a daemon: windows of each type bound, used, ended and bound again; fast
 * registration; memory registered anew and on demand; FLUSH and ATOMIC WRITE by the fast face.
 * Two QPs of one client: `a` is the peer, the memory is `b`'s.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ex.h"

#define LEN 16384u
#define LIMIT_MS 60000
#define REMOTE \
	(RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ | RNIC_ACCESS_REMOTE_ATOMIC | \
	 RNIC_ACCESS_FLUSH_GLOBAL)
#define ALL (RNIC_ACCESS_LOCAL_WRITE | REMOTE | RNIC_ACCESS_MW_BIND)
#define MUST(cond) ((cond) ? (void)0 : ex_fail("line %d: %s", __LINE__, #cond))

struct side {
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	struct ex_address address;
};

static struct ex_device device;
static struct side a, b;
static struct rnic_mr *from; /* a's */

static struct rnic_wc
take(struct side *s)
{
	struct rnic_wc wc;

	if (ex_wait(s->cq, 1, &wc, LIMIT_MS) < 1)
		ex_fail("no completion");
	return wc;
}

static void
done(struct side *s, uint32_t opcode)
{
	struct rnic_wc wc = take(s);

	ex_check_wc(&wc);
	if (wc.opcode != opcode)
		ex_fail("%s completes as %s", rnic_wc_opcode_str(opcode),
			rnic_wc_opcode_str(wc.opcode));
}

static void
post(struct side *s, struct rnic_send_wr *wr)
{
	wr->send_flags |= RNIC_SEND_SIGNALED;
	ex_check(rnic_post_send(s->qp, wr, NULL), "post");
}

/* `a` WRITEs len bytes to an address and key of b's; what it is must be there then. */
static void
write_to(uint64_t addr, uint32_t rkey, const void *at, uint32_t len)
{
	static uint64_t seed = 1;
	struct rnic_sge sge = { (uintptr_t)from->addr, len, from->lkey };
	struct rnic_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = RNIC_WR_RDMA_WRITE };

	ex_pattern(from->addr, len, ++seed);
	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	post(&a, &wr);
	done(&a, RNIC_WC_RDMA_WRITE);
	if (ex_pattern_check(at, len, seed) != len)
		ex_fail("wrong data");
}

static void
make(struct side *s)
{
	struct rnic_cq_attr ca = { .cqe = 64 };
	struct rnic_qp_init_attr qa = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = 8 },
		.qp_type = RNIC_QPT_RC,
	};

	ex_check(rnic_create_channel(device.ctx, &ca.channel), "completion channel");
	ex_check(rnic_create_cq(device.ctx, &ca, &s->cq), "completion queue");
	qa.send_cq = qa.recv_cq = s->cq;
	ex_check(rnic_create_qp(device.pd, &qa, &s->qp), "queue pair");
	ex_init_qp(&device, s->qp, REMOTE);
	s->address = ex_own_address(&device, s->qp);
}

static struct rnic_send_wr
bind_wr(struct rnic_mw *mw, struct rnic_mr *mr, uint32_t off, uint64_t len, uint32_t access)
{
	struct rnic_send_wr wr = { .opcode = RNIC_WR_BIND_MW,
				   .send_flags = RNIC_SEND_SIGNALED };

	wr.wr.bind_mw.mw = mw;
	wr.wr.bind_mw.mr = mr;
	wr.wr.bind_mw.addr = mr->iova + off;
	wr.wr.bind_mw.length = len;
	wr.wr.bind_mw.access = access;
	return wr;
}

/* ---- windows ---------- */

static void
window_1(struct rnic_mr *mr)
{
	struct rnic_send_wr wr;
	struct rnic_mw *mw;
	uint8_t *mem = mr->addr;

	ex_check(rnic_alloc_mw(device.pd, RNIC_MW_TYPE_1, &mw), "window");
	for (uint32_t off = 0; off < 3 * 4096; off += 4096) {
		uint32_t before = mw->rkey;

		wr = bind_wr(mw, mr, off, 100, RNIC_ACCESS_REMOTE_WRITE);
		MUST(rnic_post_send(b.qp, &wr, NULL) == -EINVAL);
		ex_check(rnic_bind_mw(b.qp, mw, &wr), "bind");
		MUST(mw->rkey != before);
		done(&b, RNIC_WC_BIND_MW);
		write_to(mr->iova + off, mw->rkey, mem + off, 100);
	}
	MUST(rnic_dereg_mr(mr) == -EBUSY);
	MUST(rnic_rereg_mr(mr, RNIC_REREG_ACCESS, NULL, NULL, 0, ALL) == -EBUSY);
	wr = bind_wr(mw, mr, 0, 0, 0);
	wr.wr.bind_mw.mr = NULL;
	ex_check(rnic_bind_mw(b.qp, mw, &wr), "unbind");
	done(&b, RNIC_WC_BIND_MW);
	ex_check(rnic_rereg_mr(mr, RNIC_REREG_ACCESS, NULL, NULL, 0, ALL), "access");
	ex_check(rnic_dealloc_mw(mw), "dealloc");
}

/* Ended by the peer, by the owner, and by its deallocation. */
static void
window_2(struct rnic_mr *mr, enum rnic_mw_type type)
{
	struct rnic_send_wr wr, inv = { .opcode = RNIC_WR_SEND_WITH_INV };
	struct rnic_recv_wr recv = { .wr_id = 7 };
	struct rnic_mw *mw;
	struct rnic_wc wc;

	ex_check(rnic_alloc_mw(device.pd, type, &mw), "window");
	for (int i = 0; i < 3; i++) {
		wr = bind_wr(mw, mr, 64, 200, RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_ZERO_BASED);
		wr.wr.bind_mw.rkey = rnic_key_variant(mw->rkey, (uint8_t)(40 + i));
		MUST(rnic_bind_mw(b.qp, mw, &wr) == -EINVAL);
		post(&b, &wr);
		done(&b, RNIC_WC_BIND_MW);
		mw->rkey = wr.wr.bind_mw.rkey;
		write_to(0, mw->rkey, (uint8_t *)mr->addr + 64, 200);
		if (i == 0) {
			ex_check(rnic_post_recv(b.qp, &recv, NULL), "receive");
			inv.invalidate_rkey = mw->rkey;
			post(&a, &inv);
			done(&a, RNIC_WC_SEND);
			wc = take(&b);
			ex_check_wc(&wc);
			MUST(wc.wr_id == 7 && (wc.wc_flags & RNIC_WC_WITH_INV) &&
			     wc.invalidated_rkey == mw->rkey);
		} else if (i == 1) {
			struct rnic_wqe *w = rnic_sq_get(b.qp, 1, 1);

			rnic_prep_local_inv(w, mw->rkey, RNIC_SEND_SIGNALED);
			rnic_sq_submit(b.qp);
			done(&b, RNIC_WC_LOCAL_INV);
		}
	}
	MUST(rnic_dereg_mr(mr) == -EBUSY);
	ex_check(rnic_dealloc_mw(mw), "dealloc");
}

/* ---- fast registration ---------- */

static void
fast_registration(struct rnic_mr *mr)
{
	struct rnic_send_wr wr = { .opcode = RNIC_WR_FAST_REG },
			    inv = { .opcode = RNIC_WR_LOCAL_INV };
	struct rnic_mr *fast, *list;
	struct rnic_sge *sge;
	uint8_t *mem = mr->addr;

	list = ex_memory(&device, 4096, RNIC_ACCESS_LOCAL_WRITE);
	sge = list->addr;
	ex_check(rnic_alloc_fast_mr(device.pd, 4, &fast), "fast registration");
	for (uint32_t i = 0; i < 4; i++) {
		sge[0] = (struct rnic_sge){ mr->iova + 1000 * i, 500, mr->lkey };
		sge[1] = (struct rnic_sge){ mr->iova + 8000, 100, mr->lkey };
		wr.wr.fast_reg.iova = 0x12340000;
		wr.wr.fast_reg.length = 600;
		wr.wr.fast_reg.list_addr = list->iova;
		wr.wr.fast_reg.list_len = 2;
		wr.wr.fast_reg.list_lkey = list->lkey;
		wr.wr.fast_reg.rkey = rnic_key_variant(fast->rkey, (uint8_t)i);
		wr.wr.fast_reg.access = RNIC_ACCESS_LOCAL_WRITE | RNIC_ACCESS_REMOTE_WRITE;
		inv.invalidate_rkey = wr.wr.fast_reg.rkey;
		post(&b, &wr);
		done(&b, RNIC_WC_FAST_REG);
		write_to(0x12340000, wr.wr.fast_reg.rkey, mem + 1000 * i, 500);
		write_to(0x12340000 + 500, wr.wr.fast_reg.rkey, mem + 8000, 100);
		if (i < 3) {
			post(&b, &inv);
			done(&b, RNIC_WC_LOCAL_INV);
		}
	}
	MUST(rnic_dereg_mr(mr) == -EBUSY);
	ex_check(rnic_dereg_mr(fast), "dereg of a valid key");
	ex_free(&device, list);
}

/* ---- annex A19, by the fast face ---------- */

static void
flush_and_atomic_write(struct rnic_mr *mr)
{
	uint64_t word = 0x1122334455667788, *at = mr->addr;
	struct rnic_wqe *w = rnic_sq_get(a.qp, 1, rnic_slots_inline(8));

	MUST(w != NULL);
	rnic_prep_atomic_write(w, mr->iova + 8, mr->rkey, RNIC_SEND_SIGNALED);
	rnic_prep_inline(a.qp, w, &word, 8);
	w = rnic_sq_get(a.qp, 2, 1);
	MUST(w != NULL);
	rnic_prep_flush(w, mr->iova, 4096, mr->rkey, 1, 0, RNIC_SEND_SIGNALED);
	w = rnic_sq_get(a.qp, 3, 1);
	MUST(w != NULL);
	rnic_prep_flush(w, 0, 0, mr->rkey, 1, 1, RNIC_SEND_SIGNALED);
	rnic_sq_submit(a.qp);
	done(&a, RNIC_WC_ATOMIC_WRITE);
	done(&a, RNIC_WC_FLUSH);
	done(&a, RNIC_WC_FLUSH);
	MUST(at[1] == word);
}

/* ---- memory ---------- */

static void
on_demand(void)
{
	const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *p = mmap(NULL, LEN, PROT_NONE, anonymous, -1, 0);
	struct rnic_mr *mr;

	MUST(p != MAP_FAILED);
	ex_check(rnic_reg_mr(device.pd, p, LEN, ALL | RNIC_ACCESS_ON_DEMAND, &mr), "on demand");
	MUST(mmap(p, LEN, PROT_READ | PROT_WRITE, anonymous | MAP_FIXED, -1, 0) == p);
	write_to((uintptr_t)p + 5000, mr->rkey, p + 5000, 3000);
	ex_check(rnic_dereg_mr(mr), "dereg");
	munmap(p, LEN);
}

static void
again(void)
{
	uint8_t *heap = malloc(LEN), *other;
	struct rnic_mr *mr;
	void *arena;

	MUST(heap != NULL);
	ex_check(rnic_alloc(device.ctx, LEN, 0, &arena), "memory");
	other = arena;
	ex_check(rnic_reg_mr(device.pd, heap, LEN, RNIC_ACCESS_LOCAL_WRITE, &mr), "region");
	ex_check(rnic_rereg_mr(mr, RNIC_REREG_TRANSLATION | RNIC_REREG_ACCESS, NULL, other, LEN,
			       ALL | RNIC_ACCESS_ZERO_BASED), "anew");
	free(heap); /* nobody goes by the old memory any more */
	MUST(mr->addr == other && mr->iova == 0);
	write_to(100, mr->rkey, other + 100, 2000);
	MUST(rnic_rereg_mr(mr, RNIC_REREG_ACCESS, NULL, NULL, 0,
			   ALL | RNIC_ACCESS_FLUSH_PERSISTENT) == -EOPNOTSUPP);
	write_to(100, mr->rkey, other + 100, 2000); /* as before */
	ex_check(rnic_dereg_mr(mr), "dereg");
	ex_check(rnic_free(device.ctx, arena), "free");
}

/* A bind that is refused takes its queue pair with it; last. The region is private memory. */
static void
refused(struct rnic_mr *mr)
{
	struct rnic_send_wr wr;
	struct rnic_mw *mw;
	void *p = mr->addr;

	ex_check(rnic_alloc_mw(device.pd, RNIC_MW_TYPE_2, &mw), "window");
	wr = bind_wr(mw, mr, LEN - 8, 16, RNIC_ACCESS_REMOTE_WRITE);
	wr.wr.bind_mw.rkey = mw->rkey;
	post(&b, &wr);
	MUST(take(&b).status == RNIC_WC_MW_BIND_ERR);
	ex_check(rnic_dealloc_mw(mw), "dealloc");
	ex_check(rnic_dereg_mr(mr), "dereg");
	free(p);
}

int
main(int argc, char **argv)
{
	struct rnic_device_attr attr;
	struct rnic_mr *mr;

	ex_program = "keys";
	if (argc > 1)
		ex_fail("%s: no argument is wanted; RNIC_SOCKET in the environment", argv[1]);
	ex_open(&device, NULL, NULL, 1, -1);
	ex_check(rnic_query_device(device.ctx, &attr), "query");
	MUST(attr.max_mw > 0 && attr.max_fast_reg >= 4 && attr.odp_general_caps == 1);
	from = ex_memory(&device, LEN, RNIC_ACCESS_LOCAL_WRITE);
	make(&a);
	make(&b);
	ex_connect_qp(&device, a.qp, &ex_default_path, &a.address, &b.address);
	ex_connect_qp(&device, b.qp, &ex_default_path, &b.address, &a.address);
	for (int private = 0; private < 2; private++) {
		device.private_memory = private;
		mr = ex_memory(&device, LEN, ALL);
		device.private_memory = false;
		window_1(mr);
		window_2(mr, RNIC_MW_TYPE_2);
		window_2(mr, RNIC_MW_TYPE_2A);
		fast_registration(mr);
		flush_and_atomic_write(mr);
		if (private)
			refused(mr); /* and freed */
		else
			ex_free(&device, mr);
		if (!private) {
			on_demand();
			again();
		}
	}
	rnic_close(device.ctx);
	printf("keys: all right\n");
	return 0;
}
