/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of 2^31 bytes, the longest there are: a WRITE and a READ between two QPs of one
 * client, each byte compared, and one of a byte more, which must be refused. At a path MTU of 256
 * such a READ has a PSN too many to tell old ones from new (docs/wire.md), and is a packet shorter.
 *
 * The source is a memfd of a prime number of pages, mapped again and again: a region of 2 GiB in
 * 64 MiB of memory, whose data is the same at no two offsets that differ by a power of two.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ex.h"

#define LEN (1ull << 31)
#define PAGE 4096ull
#define SOURCE (16411 * PAGE)
#define ROOM (LEN + PAGE)
#define MOST_PSNS ((1ull << 23) - 1) /* of a READ */
#define LIMIT_MS 600000
#define REMOTE (RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ)

struct side {
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	struct ex_address address;
};

static struct ex_device device;
static struct rnic_mr *from, *to;

static int
memory(size_t len)
{
	int fd = memfd_create("big_message", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)len) != 0)
		ex_fail("no memfd of %zu bytes", len);
	return fd;
}

static uint8_t *
map(void *where, size_t len, int fd)
{
	int flags = MAP_SHARED | (where ? MAP_FIXED : 0);
	void *p = mmap(where, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		ex_fail("mmap of %zu bytes", len);
	return p;
}

/* ROOM bytes of address space over SOURCE bytes of memory. */
static uint8_t *
source(void)
{
	int fd = memory(SOURCE);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	uint8_t *p = mmap(NULL, ROOM, PROT_NONE, flags, -1, 0);

	if (p == MAP_FAILED)
		ex_fail("no address space");
	for (uint64_t at = 0; at < ROOM; at += SOURCE)
		map(p + at, ROOM - at < SOURCE ? ROOM - at : SOURCE, fd);
	ex_pattern(p, SOURCE, 1);
	close(fd);
	return p;
}

static struct rnic_mr *
reg(void *p, unsigned int access)
{
	struct rnic_mr *mr;

	ex_check(rnic_reg_mr(device.pd, p, ROOM, RNIC_ACCESS_LOCAL_WRITE | access, &mr),
		 "memory region");
	return mr;
}

static void
make(struct side *s)
{
	struct rnic_cq_attr ca = { .cqe = 16 };
	struct rnic_qp_init_attr qa = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 1 },
		.qp_type = RNIC_QPT_RC,
	};

	ex_check(rnic_create_channel(device.ctx, &ca.channel), "completion channel");
	ex_check(rnic_create_cq(device.ctx, &ca, &s->cq), "completion queue");
	qa.send_cq = qa.recv_cq = s->cq;
	ex_check(rnic_create_qp(device.pd, &qa, &s->qp), "queue pair");
	ex_init_qp(&device, s->qp, REMOTE);
	s->address = ex_own_address(&device, s->qp);
}

/* A request of the first len bytes of a region, and how it ended. */
static uint32_t
transfer(struct side *s, uint32_t opcode, struct rnic_mr *local, struct rnic_mr *remote,
	 uint64_t len)
{
	uint32_t more = len > LEN ? (uint32_t)(len - LEN) : 0;
	struct rnic_sge sge[2] = { { (uintptr_t)local->addr, (uint32_t)(len - more), local->lkey },
				   { (uintptr_t)local->addr + LEN, more, local->lkey } };
	struct rnic_send_wr wr = { .sg_list = sge, .num_sge = 1 + (more > 0), .opcode = opcode,
				   .send_flags = RNIC_SEND_SIGNALED };
	uint64_t start = ex_now_ns();
	struct rnic_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)remote->addr;
	wr.wr.rdma.rkey = remote->rkey;
	ex_check(rnic_post_send(s->qp, &wr, NULL), "post");
	if (ex_wait(s->cq, 1, &wc, LIMIT_MS) < 1)
		ex_fail("no completion");
	printf("%s of %llu bytes: %s, %.1f s\n", opcode == RNIC_WR_RDMA_READ ? "READ" : "WRITE",
	       (unsigned long long)len, rnic_wc_status_str(wc.status),
	       (double)(ex_now_ns() - start) / 1e9);
	fflush(stdout);
	return wc.status;
}

static void
whole(struct side *s, uint32_t opcode, uint64_t len)
{
	struct rnic_mr *local = opcode == RNIC_WR_RDMA_READ ? to : from;
	uint8_t *got = to->addr;

	memset(got, 0xa5, ROOM);
	if (transfer(s, opcode, local, local == to ? from : to, len) != RNIC_WC_SUCCESS)
		ex_fail("it should have succeeded");
	if (memcmp(got, from->addr, len) != 0 ||
	    ex_pattern_check(from->addr, SOURCE, 1) != SOURCE)
		ex_fail("wrong data");
	for (uint64_t i = len; i < ROOM; i++)
		if (got[i] != 0xa5)
			ex_fail("it wrote beyond its end");
}

int
main(int argc, char **argv)
{
	struct ex_path path = ex_default_path;
	struct side a, b;
	uint64_t most;

	ex_program = "big_message";
	if (argc > 2)
		ex_fail("usage: big_message [MTU], and RNIC_SOCKET in the environment");
	ex_open(&device, NULL, NULL, 1, -1);
	path.mtu = device.port.active_mtu;
	if (argc > 1)
		path.mtu = ex_mtu(&device, (unsigned int)ex_number("MTU", argv[1], 256, 4096));
	from = reg(source(), REMOTE);
	to = reg(map(NULL, ROOM, memory(ROOM)), REMOTE);
	make(&a);
	make(&b);
	ex_connect_qp(&device, a.qp, &path, &a.address, &b.address);
	ex_connect_qp(&device, b.qp, &path, &b.address, &a.address);
	most = MOST_PSNS * (128u << path.mtu);
	whole(&a, RNIC_WR_RDMA_WRITE, LEN);
	whole(&a, RNIC_WR_RDMA_READ, most < LEN ? most : LEN);
	if (transfer(&a, RNIC_WR_RDMA_WRITE, from, to, LEN + 1) != RNIC_WC_LOC_LEN_ERR)
		ex_fail("it should have been refused as too long");
	rnic_close(device.ctx);
	return 0;
}
