/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, hostile values, honest traffic and questions to the daemon. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "hostile.h"

uint64_t
hostile_rand(struct hostile *t)
{
	uint64_t z = t->rng += 0x9e3779b97f4a7c15ull; /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint64_t
hostile_value(struct hostile *t)
{
	static const uint64_t bad[] = {
		0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256,
		0x3ff, 0x400, 0x401, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0xffff, 0x10000,
		0xfffff, 0x100000, 0x100001, 0xffffff, 0x1000000, 0x7fffffff, 0x80000000,
		0xfffffffe, 0xffffffff, 0x100000000, 0x7ffffffff000, 0x800000000000,
		0xffff800000000000, 0x7fffffffffffffff, 0x8000000000000000,
		0xfffffffffffff000, 0xfffffffffffffffe, 0xffffffffffffffff,
	};
	uint32_t kind = hostile_below(t, 8);

	if (kind == 0)
		return hostile_rand(t);
	if (kind == 1)
		return 1ull << hostile_below(t, 64);
	return bad[hostile_below(t, sizeof(bad) / sizeof(bad[0]))];
}

void
hostile_mutate(struct hostile *t, void *p, size_t len)
{
	size_t width = (size_t)1 << hostile_below(t, 4);
	uint64_t v = hostile_value(t);
	uint8_t *b = p;
	size_t at;

	if (hostile_below(t, 5) == 0) {
		b[hostile_below(t, (uint32_t)len)] ^= (uint8_t)(1u << hostile_below(t, 8));
		return;
	}
	while (width > len)
		width /= 2;
	at = hostile_below(t, (uint32_t)(len / width)) * width; /* fields are aligned */
	memcpy(b + at, &v, width);
}

void
hostile_fault(struct hostile *t, const char *func, int line, const char *fmt, ...)
{
	va_list ap;

	t->faults++;
	fflush(stdout);
	fprintf(stderr, "FAULT --seed %llu --number %llu --case %s: %s:%d: ",
		(unsigned long long)t->seed, (unsigned long long)t->number, t->name, func, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

bool
hostile_rig(struct hostile *t, struct hx_rig *r)
{
	uint64_t end = hx_now_ms() + HX_WAIT_MS;
	int ret;

	/* Quotas of the dead are given back a moment after their death. */
	for (;;) {
		ret = hx_rig_open(r, t->socket);
		if (!ret || hx_now_ms() > end)
			break;
		if (ret != -EDQUOT && ret != -EAGAIN && ret != -ENOMEM)
			break;
		hx_rig_close(r);
		hx_pass(NULL, 20);
	}
	MUST(t, !ret, "an honest session does not come up: %s", strerror(-ret));
	return !ret;
}

static struct ring_wqe
some_wqe(struct hostile *t, struct hx_rig *r)
{
	static const uint8_t ops[] = {
		RING_WR_RDMA_WRITE, RING_WR_SEND, RING_WR_RDMA_READ,
		RING_WR_ATOMIC_FETCH_AND_ADD, RING_WR_SEND_WITH_IMM,
		RING_WR_RDMA_WRITE_WITH_IMM,
	};
	uint32_t len = hostile_below(t, 3) ? hostile_below(t, 256) : hostile_below(t, 9000);
	struct ring_wqe w = hx_write(r, hostile_below(t, 4096) * 8,
				     HX_RIG_BYTES / 2 + hostile_below(t, 4096) * 8, len);

	w.opcode = ops[hostile_below(t, sizeof(ops))];
	if (w.opcode == RING_WR_ATOMIC_FETCH_AND_ADD) {
		w.atomic.sge = (struct ring_sge){(uintptr_t)r->mem, 8, r->key};
		w.atomic.compare_add = 1;
		w.atomic.swap = 0;
	}
	return w;
}

void
hostile_traffic(struct hostile *t, struct hx_rig *r, int n)
{
	struct ring_cqe c;

	for (int i = 0; i < n; i++) {
		int k = (int)hostile_below(t, 2);
		struct ring_wqe w = some_wqe(t, r);

		hx_post_recv(r, &r->qp[!k], (uintptr_t)r->mem + HX_RIG_BYTES - 16384, 16384,
			     r->key);
		hx_post(r, &r->qp[k], &w);
		if (i % 8 != 7)
			continue;
		/* What completed frees nothing here: the rings are longer than the burst. */
		if (hx_poll_wait(&r->h, &r->cq, &c, 50) == -ENOTCONN)
			return;
		while (hx_poll(&r->h, &r->cq, &c))
			;
	}
}

void
hostile_alive(struct hostile *t, struct hx *h)
{
	struct hx *other;
	static _Thread_local struct hx fresh;
	uint32_t pd;
	int ret = hx_alloc_pd(h, &pd);

	if (ret == -ETIMEDOUT)
		FAULT(t, "no answer in %d ms", HX_WAIT_MS);
	if (ret != -ENOTCONN && ret != -EBADMSG)
		return;
	other = &fresh;
	ret = hx_open(other, t->socket);
	MUST(t, !ret, "no new session: %s", strerror(-ret));
	hx_close(other);
}
