/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic_ops: RDMA operations one after the other, each announced, verified on both sides and
 * named with the way it must end. The operations and the conversation are ops.h's; the peer may
 * be test/interop/peer/guest/peer-qp.c, in either role. Here is what librnic does for it.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ex.h"
#include "ops.h"

#define REMOTE                                                                                     \
	(RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ | RNIC_ACCESS_REMOTE_ATOMIC |          \
		RNIC_ACCESS_MW_BIND)

_Static_assert((int)OPS_READ == RNIC_WR_RDMA_READ &&
		       (int)OPS_FADD == RNIC_WR_ATOMIC_FETCH_AND_ADD &&
		       (int)OPS_SEND_INV == RNIC_WR_SEND_WITH_INV,
	       "the opcodes are those of verbs");
_Static_assert((int)OPS_RNR_RETRY_EXC_ERR == RNIC_WC_RNR_RETRY_EXC_ERR,
	       "the statuses are those of verbs");

/* Where the buffers are. */
enum memory {
	ARENA,	/* rnic_alloc(): the daemon's own */
	SHARED, /* a memfd, which the daemon maps */
	PRIVATE /* the heap, which it reaches by copying */
};

struct rnic_end {
	struct end e; /* first */
	const char *socket;
	enum memory memory;
	struct ex_conn conn;
	struct ex_device device;
	struct rnic_channel *channel;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	struct rnic_mr *mr, *denied, *recv_mr, *work_mr;
	struct rnic_mw *mw;
};

static const char usage_text[] =
	"usage: rnic_ops -s [option...] [op...]       wait for a TCP connection\n"
	"       rnic_ops -c HOST [option...] [op...]  make it\n"
	"\n"
	"  -S PATH   rnicd's socket\n"
	"  -P        buffers in private memory, which the daemon reaches by copying\n"
	"  -F        buffers in a memfd, which the daemon maps\n"
	"\n";

static inline struct rnic_end *
rnic_end(struct end *e)
{
	return (struct rnic_end *)e;
}

void
ops_die(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ex_fail("%s", text);
}

/* ---- completions ---------- */

/* Without sleeping on the queue, which would arm it in another way. */
static bool
look(struct rnic_cq *cq, struct rnic_wc *wc, unsigned int ms)
{
	const struct timespec nap = { .tv_nsec = 200000 };
	uint64_t until = ex_now_ns() + ms * 1000000ull;

	while (ex_check(rnic_poll_cq(cq, 1, wc), "completion queue") == 0) {
		if (ex_now_ns() >= until)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

bool
ops_poll(struct end *e, struct completion *c, unsigned int ms)
{
	struct rnic_cq *cq = rnic_end(e)->cq;
	struct rnic_wc wc;

	if (ms == 0 || e->armed ? !look(cq, &wc, ms) : ex_wait(cq, 1, &wc, (int)ms) <= 0)
		return false;
	*c = (struct completion){
		.wr_id = wc.wr_id, .status = (int)wc.status, .byte_len = wc.byte_len,
		.with_imm = wc.wc_flags & RNIC_WC_WITH_IMM,
		.with_inv = wc.wc_flags & RNIC_WC_WITH_INV,
		.recv = wc.opcode == RNIC_WC_RECV || wc.opcode == RNIC_WC_RECV_RDMA_WITH_IMM,
		.write = wc.opcode == RNIC_WC_RECV_RDMA_WITH_IMM,
	};
	if (c->with_imm)
		c->imm = ntohl(wc.imm_data);
	if (c->with_inv)
		c->key = wc.invalidated_rkey;
	return true;
}

bool
ops_woken(struct end *e, unsigned int ms)
{
	struct rnic_channel *channel = rnic_end(e)->channel;
	struct pollfd p = { .fd = rnic_channel_fd(channel), .events = POLLIN };
	struct rnic_cq *cq;

	if (poll(&p, 1, (int)ms) <= 0)
		return false;
	ex_check(rnic_get_cq_event(channel, &cq), "event");
	rnic_ack_cq_events(cq, 1);
	return true;
}

bool
ops_arm(struct end *e)
{
	while (ops_woken(e, 0))
		;
	return rnic_req_notify_cq(rnic_end(e)->cq, 1) == 0;
}

const char *
ops_status_name(int status)
{
	return rnic_wc_status_str((uint32_t)status);
}

/* ---- posting ---------- */

void
ops_post_recv(struct end *e, uint32_t slot)
{
	struct rnic_sge sge = { (uintptr_t)(e->recv + (size_t)slot * e->recvlen), e->recvlen,
				rnic_end(e)->recv_mr->lkey };
	struct rnic_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	ex_check(rnic_post_recv(rnic_end(e)->qp, &wr, NULL), "post of a receive");
}

static void
fill(const struct request *r, struct rnic_send_wr *wr, struct rnic_sge *sge, uint32_t lkey)
{
	*sge = (struct rnic_sge){ (uintptr_t)r->p, r->len, lkey };
	*wr = (struct rnic_send_wr){
		.sg_list = sge, .num_sge = r->len > 0, .opcode = r->opcode,
		.send_flags = RNIC_SEND_SIGNALED | (r->fence ? RNIC_SEND_FENCE : 0) |
			      (r->solicited ? RNIC_SEND_SOLICITED : 0) |
			      (r->inlined ? RNIC_SEND_INLINE : 0),
	};
	if (r->opcode == OPS_SEND_INV)
		wr->invalidate_rkey = r->invalidate;
	else
		wr->imm_data = htonl(r->imm);
	if (r->opcode == OPS_CAS || r->opcode == OPS_FADD) {
		wr->wr.atomic.remote_addr = r->remote_addr;
		wr->wr.atomic.rkey = r->rkey;
		wr->wr.atomic.compare_add = r->compare_add;
		wr->wr.atomic.swap = r->swap;
	} else {
		wr->wr.rdma.remote_addr = r->remote_addr;
		wr->wr.rdma.rkey = r->rkey;
	}
}

uint32_t
ops_post(struct end *e, const struct request *r, uint32_t n)
{
	struct rnic_send_wr wr[MAX_LIST];
	const struct rnic_send_wr *bad = NULL;
	struct rnic_sge sge[MAX_LIST];
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		fill(&r[i], &wr[i], &sge[i], rnic_end(e)->work_mr->lkey);
		wr[i].wr_id = i;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	rc = rnic_post_send(rnic_end(e)->qp, wr, &bad);
	if (rc == 0)
		return n;
	printf("post: %s\n", rnic_strerror(rc));
	return bad ? (uint32_t)(bad - wr) : 0;
}

/* ---- windows ---------- */

/* The one that is there, if any, is taken by sendinv. */
const char *
ops_window(struct end *e)
{
	struct rnic_end *r = rnic_end(e);
	struct rnic_send_wr wr = { .opcode = RNIC_WR_BIND_MW, .send_flags = RNIC_SEND_SIGNALED };
	struct completion c;
	int rc = rnic_alloc_mw(r->device.pd, RNIC_MW_TYPE_2, &r->mw);

	if (rc < 0)
		return rnic_strerror(rc);
	wr.wr.bind_mw.mw = r->mw;
	wr.wr.bind_mw.mr = r->mr;
	wr.wr.bind_mw.addr = (uintptr_t)e->buf;
	wr.wr.bind_mw.length = e->buflen;
	wr.wr.bind_mw.access = RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ;
	/* another variant, the low byte, of the same index */
	wr.wr.bind_mw.rkey = (r->mw->rkey & ~0xffu) | ((r->mw->rkey + 1) & 0xff);
	rc = rnic_post_send(r->qp, &wr, NULL);
	if (rc < 0)
		return rnic_strerror(rc);
	if (!ops_poll(e, &c, 5000))
		return "not bound";
	if (c.status != OPS_SUCCESS)
		return ops_status_name(c.status);
	e->window = wr.wr.bind_mw.rkey;
	return NULL;
}

void
ops_window_gone(struct end *e)
{
	rnic_dealloc_mw(rnic_end(e)->mw);
	e->window = 0;
}

/* ---- setting up ---------- */

/* Memory of the daemon goes with the context, shared mappings with the process. */
static void *
buffer(struct rnic_end *r, size_t len)
{
	void *p = NULL;
	int fd;

	switch (r->memory) {
	case ARENA:
		ex_check(rnic_alloc(r->device.ctx, len, 4096, &p), "memory");
		break;
	case SHARED:
		fd = memfd_create("rnic_ops", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)len) != 0)
			ex_fail("no memfd");
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		break;
	case PRIVATE:
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		break;
	}
	if (p == MAP_FAILED)
		ex_fail("no memory");
	memset(p, 0, len);
	return p;
}

static struct rnic_mr *
reg(struct rnic_end *r, void *p, size_t len, unsigned int access)
{
	struct rnic_mr *mr;

	ex_check(rnic_reg_mr(r->device.pd, p, len, RNIC_ACCESS_LOCAL_WRITE | access, &mr),
		 "memory region");
	return mr;
}

static void
make_qp(struct rnic_end *r)
{
	struct rnic_cq_attr ca = { .cqe = 4 * MAX_LIST };
	struct rnic_qp_init_attr qa = {
		.cap = { .max_send_wr = MAX_LIST, .max_recv_wr = MAX_LIST, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = MAX_INLINE },
		.qp_type = RNIC_QPT_RC,
	};

	ex_check(rnic_create_channel(r->device.ctx, &r->channel), "completion channel");
	ca.channel = r->channel;
	ex_check(rnic_create_cq(r->device.ctx, &ca, &r->cq), "completion queue");
	qa.send_cq = qa.recv_cq = r->cq;
	ex_check(rnic_create_qp(r->device.pd, &qa, &r->qp), "queue pair");
	ex_init_qp(&r->device, r->qp, REMOTE & ~RNIC_ACCESS_MW_BIND);
}

static void
setup(struct rnic_end *r)
{
	struct end *e = &r->e;
	size_t recv = (size_t)MAX_LIST * e->recvlen;

	ex_open(&r->device, r->socket, e->dev, 1, e->gid_index);
	e->buf = buffer(r, e->buflen);
	e->work = buffer(r, e->buflen);
	e->recv = buffer(r, recv);
	ops_fill(e);
	r->mr = reg(r, e->buf, e->buflen, REMOTE);
	r->denied = reg(r, e->buf, e->buflen, 0);
	r->work_mr = reg(r, e->work, e->buflen, 0);
	r->recv_mr = reg(r, e->recv, recv, 0);
	e->key = r->mr->rkey;
	e->denied = r->denied->rkey;
	make_qp(r);
	for (uint32_t i = 0; i < e->nrecv; i++)
		ops_post_recv(e, i);
}

static void
join(struct rnic_end *r)
{
	const struct end *e = &r->e;
	struct ex_path path = {
		.mtu = ex_mtu(&r->device, e->mtu), .timeout = (uint8_t)e->timeout,
		.retry_cnt = (uint8_t)e->retry, .rnr_retry = (uint8_t)e->rnr_retry,
		.min_rnr_timer = (uint8_t)e->min_rnr, .rd_atomic = (uint8_t)e->rd_atomic,
	};
	struct ex_address peer;
	unsigned int port;
	int listener;

	if (e->server) {
		listener = ex_listen(e->port, &port);
		printf("listening on %u\n", port);
		fflush(stdout);
		ex_accept(&r->conn, listener);
	} else {
		ex_dial(&r->conn, e->host, e->port);
	}
	r->e.fd = r->conn.fd;
	r->e.in = r->conn.in;
	setvbuf(r->e.in, NULL, _IONBF, 0); /* poll() must see what is not read yet */
	ex_join(&r->conn, e->server, &r->device, r->qp, &path, &peer);
}

static void __attribute__((noreturn))
usage(FILE *to, int status)
{
	fprintf(to, "%s%s", usage_text, ops_usage);
	exit(status);
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	struct rnic_end r = { .e = OPS_END };
	int opt, rc;

	ex_program = "rnic_ops";
	while ((opt = getopt_long(argc, argv, OPS_LETTERS "S:PFh", longs, NULL)) != -1)
		switch (opt) {
		case 'S': r.socket = optarg; break;
		case 'P': r.memory = PRIVATE; break;
		case 'F': r.memory = SHARED; break;
		case 'h': usage(stdout, 0);
		default:
			if (!ops_option(&r.e, opt, optarg))
				usage(stderr, 2);
		}
	if (!ops_ready(&r.e, argv + optind))
		usage(stderr, 2);
	setup(&r);
	join(&r);
	rc = ops_run(&r.e);
	ex_hang_up(&r.conn);
	rnic_close(r.device.ctx); /* with all that is left in it */
	return rc;
}
