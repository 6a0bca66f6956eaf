/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic_ops: RDMA operations one after the other, each announced, verified on both sides and
 * named with the way it must end. Speaks the protocol of test/interop/peer/guest/peer-qp.c,
 * whose head comment describes it: either program may be the other's peer, in either role.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "rnic_ops.h"

static const char usage_text[] =
	"usage: rnic_ops -s [option...] [op...]       wait for a TCP connection\n"
	"       rnic_ops -c HOST [option...] [op...]  make it\n"
	"\n"
	"The side with operations is the initiator, the other one the responder.\n"
	"\n"
	"  -p PORT   TCP port (18515)           -S PATH   rnicd's socket\n"
	"  -d DEV    device (the first)         -g INDEX  GID index (the first IPv4 address)\n"
	"  -M BYTES  path MTU (1024)            -l BYTES  buffer (1048576)\n"
	"  -R BYTES  receives (65536)           -r N      receives that a responder keeps posted\n"
	"  -t N      local ACK timeout (14)     -y N      retry_cnt (7)\n"
	"  -Y N      rnr_retry (7; rnrfail: 2)  -m N      min_rnr_timer (12)\n"
	"  -a N      max_rd_atomic (4)          -n N      do the list of operations N times\n"
	"  -b        bare: initiator without control lines\n"
	"  -P        buffers in private memory, which the daemon reaches by copying\n"
	"\n"
	"Operations, NAME[:LEN][*COUNT], COUNT requests posted as one list (at most 64):\n"
	"  send sendimm write writeimm read cas casmiss fadd mwwrite sendinv rnr:MS\n"
	"that must fail and end the run:\n"
	"  badkey-write badkey-read badkey-fadd badvar-write badvar-read oob-write oob-read\n"
	"  noperm-write noperm-read noperm-fadd stale-write unaligned toolong rnrfail\n"
	"that may fail and ends the run: badinv\n"
	"mwwrite and sendinv want memory windows at the responder: rxe has them, rnicd not.\n"
	"\n"
	"Exit status: 0 if each ended as its name says and every byte was right.\n";

bool
poll_one(struct end *e, struct rnic_wc *wc, unsigned int ms)
{
	return ms == 0 ? ex_check(rnic_poll_cq(e->cq, 1, wc), "completion queue") > 0
		       : ex_wait(e->cq, 1, wc, (int)ms) > 0;
}

void
post_recv(struct end *e, uint32_t slot)
{
	struct rnic_sge sge = { (uintptr_t)(e->recv + (size_t)slot * e->recvlen), e->recvlen,
				e->recv_mr->lkey };
	struct rnic_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	ex_check(rnic_post_recv(e->qp, &wr, NULL), "post of a receive");
}

static void *
buffer(struct end *e, size_t len)
{
	void *p;

	if (!e->private_memory)
		ex_check(rnic_alloc(e->device.ctx, len, 4096, &p), "memory");
	else if (posix_memalign(&p, 4096, len))
		ex_fail("memory");
	memset(p, 0, len);
	return p;
}

static struct rnic_mr *
reg(struct end *e, void *p, size_t len, unsigned int access)
{
	struct rnic_mr *mr;

	ex_check(rnic_reg_mr(e->device.pd, p, len, RNIC_ACCESS_LOCAL_WRITE | access, &mr),
		 "memory region");
	return mr;
}

static void
make_qp(struct end *e)
{
	struct rnic_cq_attr ca = { .cqe = 4 * MAX_LIST };
	struct rnic_qp_init_attr qa = {
		.cap = { .max_send_wr = MAX_LIST, .max_recv_wr = MAX_LIST,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = RNIC_QPT_RC,
	};

	ex_check(rnic_create_channel(e->device.ctx, &e->channel), "completion channel");
	ca.channel = e->channel;
	ex_check(rnic_create_cq(e->device.ctx, &ca, &e->cq), "completion queue");
	qa.send_cq = qa.recv_cq = e->cq;
	ex_check(rnic_create_qp(e->device.pd, &qa, &e->qp), "queue pair");
	ex_init_qp(&e->device, e->qp, RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ |
		   RNIC_ACCESS_REMOTE_ATOMIC);
}

static void
setup(struct end *e)
{
	unsigned int remote = RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ |
			      RNIC_ACCESS_REMOTE_ATOMIC;

	ex_open(&e->device, e->socket, e->dev, 1, e->gid_index);
	e->buf = buffer(e, e->buflen);
	e->work = buffer(e, e->buflen);
	e->recv = buffer(e, (size_t)MAX_LIST * e->recvlen);
	e->model = calloc(1, e->buflen);
	if (!e->model)
		ex_fail("memory");
	pattern_fill(e->buf, e->buflen, 0);
	pattern_fill(e->model, e->buflen, 0);
	e->mr = reg(e, e->buf, e->buflen, remote | RNIC_ACCESS_MW_BIND);
	e->denied = reg(e, e->buf, e->buflen, 0);
	e->work_mr = reg(e, e->work, e->buflen, 0);
	e->recv_mr = reg(e, e->recv, (size_t)MAX_LIST * e->recvlen, 0);
	make_qp(e);
	for (uint32_t i = 0; i < e->nrecv; i++)
		post_recv(e, i);
}

static void
exchange(struct end *e, bool server)
{
	struct ex_path path = {
		.mtu = ex_mtu(&e->device, e->mtu), .timeout = (uint8_t)e->timeout,
		.retry_cnt = (uint8_t)e->retry, .rnr_retry = (uint8_t)e->rnr_retry,
		.min_rnr_timer = (uint8_t)e->min_rnr, .rd_atomic = (uint8_t)e->rd_atomic,
	};
	struct ex_address peer;
	char line[128];
	unsigned long long addr;

	ex_join(&e->conn, server, &e->device, e->qp, &path, &peer);
	ex_say(&e->conn, "%016llx:%08x:%08x", (unsigned long long)(uintptr_t)e->buf, e->mr->rkey,
	       e->buflen);
	if (!ex_hear(&e->conn, line, sizeof(line)) ||
	    sscanf(line, "%llx:%x:%x", &addr, &e->peer.rkey, &e->peer.len) != 3)
		ex_fail("no buffer from the peer");
	e->peer.addr = addr;
	fflush(stdout);
}

static void
connect_tcp(struct end *e, const char *host)
{
	unsigned int port;
	int listener;

	if (host) {
		ex_dial(&e->conn, host, e->port);
	} else {
		listener = ex_listen(e->port, &port);
		printf("listening on %u\n", port);
		fflush(stdout);
		ex_accept(&e->conn, listener);
	}
	setvbuf(e->conn.in, NULL, _IONBF, 0); /* poll() must see what is not read yet */
}

static void
usage(void)
{
	fputs(usage_text, stderr);
	exit(2);
}

static void
option(struct end *e, int opt, const char *arg)
{
	switch (opt) {
	case 'p': e->port = ex_number("-p", arg, 0, 65535); break;
	case 'S': e->socket = arg; break;
	case 'd': e->dev = arg; break;
	case 'g': e->gid_index = ex_number("-g", arg, 0, 255); break;
	case 'M': e->mtu = ex_number("-M", arg, 256, 4096); break;
	case 'l': e->buflen = ex_size("-l", arg, 4096, 64 << 20); break;
	case 'R': e->recvlen = ex_size("-R", arg, 1, 1 << 20); break;
	case 'r': e->nrecv = ex_number("-r", arg, 0, MAX_LIST); break;
	case 't': e->timeout = ex_number("-t", arg, 0, 31); break;
	case 'y': e->retry = ex_number("-y", arg, 0, 7); break;
	case 'Y': e->rnr_retry = ex_number("-Y", arg, 0, 7); break;
	case 'm': e->min_rnr = ex_number("-m", arg, 0, 31); break;
	case 'a': e->rd_atomic = ex_number("-a", arg, 0, 128); break;
	case 'n': e->repeat = ex_number("-n", arg, 1, UINT32_MAX); break;
	case 'b': e->bare = true; break;
	case 'P': e->private_memory = true; break;
	case 'h': fputs(usage_text, stdout); exit(0);
	default: usage();
	}
}

/* A retry count cannot change once the QP is in RTS. */
static void
look_ahead(struct end *e, char **ops)
{
	struct op op;

	for (; *ops; ops++) {
		if (!op_parse(&op, *ops))
			ex_fail("no op %s", *ops);
		if (e->rnr_retry < 0 && !strcmp(op.def->name, "rnrfail"))
			e->rnr_retry = 2;
	}
	if (e->rnr_retry < 0)
		e->rnr_retry = 7;
}

static const char letters[] = "sc:p:S:d:g:M:l:R:r:t:y:Y:m:a:n:bPh";
static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };

int
main(int argc, char **argv)
{
	struct end e = {
		.port = 18515, .gid_index = -1, .mtu = 1024, .timeout = 14, .retry = 7,
		.rnr_retry = -1, .min_rnr = 12, .rd_atomic = 4, .buflen = 1 << 20,
		.recvlen = 65536, .repeat = 1,
	};
	const char *host = NULL;
	bool server = false;
	int opt, rc;

	ex_program = "rnic_ops";
	while ((opt = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (opt == 's')
			server = true;
		else if (opt == 'c')
			host = optarg;
		else
			option(&e, opt, optarg);
	}
	if (server == (host != NULL) || e.buflen % 8 || e.recvlen >= e.buflen)
		usage();
	look_ahead(&e, argv + optind);
	setup(&e);
	connect_tcp(&e, host);
	exchange(&e, !host);
	rc = optind < argc ? initiator(&e, argv + optind) : responder(&e);
	puts(rc ? "FAILED" : "ok");
	ex_hang_up(&e.conn);
	rnic_close(e.device.ctx); /* with all that is left in it */
	free(e.model);
	if (e.private_memory) { /* not before: the daemon reaches it until then */
		free(e.buf);
		free(e.work);
		free(e.recv);
	}
	return rc;
}
