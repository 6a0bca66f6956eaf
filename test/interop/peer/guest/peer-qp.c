/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-qp - RC operations between two QPs that no connection manager joined.
 *
 * usage: peer-qp -s [option...] [op...]      wait for a TCP connection
 *        peer-qp -c HOST [option...] [op...] make it
 * The side with ops is the initiator, the other one the responder. It exits 0
 * if each op ended as its name says and every byte was right, else 1.
 *
 * -p PORT TCP port (18515)      -d DEV  device (the first)   -g INDEX GID index (1)
 * -M BYTES path MTU (1024)      -l BYTES buffer (1048576)    -R BYTES receives (65536)
 * -t N local ACK timeout (14)   -y N retry_cnt (7)           -Y N rnr_retry (7; with rnrfail 2)
 * -m N min_rnr_timer (12)       -a N max_rd_atomic, both directions (4)
 * -n N do the list of ops N times
 * -b   bare: initiator without control lines
 * -r N responder keeps N receives posted (0: just those that an op needs)
 *
 * The TCP conversation, of which either side may be another program:
 *
 * 1. As ibv_rc_pingpong: the client sends "%04x:%06x:%06x:%s" (LID, QPN, first
 *    PSN, GID in 32 hex digits) with its closing zero byte, 52 bytes in all; the
 *    server brings its QP to RTS and answers with its own; the client does
 *    the same and sends "done" and a zero byte.
 * 2. Each side, its QP in RTS, sends its buffer, "%016x:%08x:%08x\n": address,
 *    rkey, length. When both lines have gone over, the initiator starts. Text
 *    lines end with a newline from here on.
 * 3. For each op, unless bare:
 *      initiator  op NAME LEN COUNT SEED     before it posts
 *      responder  go ADDR:RKEY:LENGTH        receives are posted; use this key
 *                 no REASON                  cannot do that
 *      initiator  end STATUS                 first ibv_wc_status that is not 0, or 0
 *      responder  ok, or bad REASON          after it has checked all it can see
 *    and "quit" in the end. To close the connection means the same.
 *
 * What is where: byte i of a request is pattern(seed, i); the seed counts
 * requests, from 1. The buffer begins as pattern(0, i). Request j of a list is
 * at offset j * (LEN rounded up to 8); atomics work on the 8 bytes (in the byte
 * order of the responder's CPU) that begin 64 bytes before its end.
 * An immediate is 0xcafe0000 + seed. cas compares with what is there and swaps in
 * 0x99aabbccddeeff00 + seed; fadd adds 0x0102030405060708.
 *
 * ops, NAME[:LEN][*COUNT], COUNT requests posted as one list (at most 64):
 *   send sendimm write writeimm read cas fadd
 *   casmiss            the comparison fails
 *   mwwrite            by the key of a type 2 memory window
 *   sendinv            send and invalidate that window
 *   rnr:MS             a send whose receive is posted MS milliseconds later
 * that must fail and end the run:
 *   badkey-write badkey-read badkey-fadd   index of the key not known
 *   badvar-write badvar-read               variant of the key wrong
 *   oob-write oob-read                     half of it beyond the buffer's end
 *   noperm-write noperm-read noperm-fadd   key without the right
 *   stale-write        by the window's key after sendinv
 *   unaligned          fadd, 4 bytes off (rxe does not let one post it)
 *   toolong            send of a byte more than the receive holds
 *   rnrfail            send to which no receive is ever posted
 * that may fail and ends the run:
 *   badinv             send-with-invalidate of a key that does not exist
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "peer-qp.h"

#define WIRE_LEN sizeof("0000:000000:000000:00000000000000000000000000000000")

struct address {
	unsigned int lid, qpn, psn;
	union ibv_gid gid;
};

void
die(const char *what)
{
	fprintf(stderr, "peer-qp: %s: %s\n", what, strerror(errno));
	exit(1);
}

void
say(struct end *e, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vdprintf(e->fd, fmt, ap);
	va_end(ap);
	if (n < 0)
		die("control connection");
}

/* A line without its newline; false at the end of the connection. */
bool
hear(struct end *e, char *line, int size)
{
	if (!fgets(line, size, e->in))
		return false;
	line[strcspn(line, "\n")] = 0;
	return true;
}

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

bool
poll_one(struct end *e, struct ibv_wc *wc, unsigned int ms)
{
	uint64_t until = now_ms() + ms;
	int n;

	do {
		n = ibv_poll_cq(e->cq, 1, wc);
		if (n < 0)
			die("ibv_poll_cq");
		if (!n && ms)
			usleep(200);
	} while (!n && now_ms() < until);
	return n > 0;
}

void
post_recv(struct end *e, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)(e->recv + (size_t)slot * e->recvlen), e->recvlen,
			       e->recv_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(e->qp, &wr, &bad))
		die("ibv_post_recv");
}

static void *
buffer(size_t len)
{
	void *p = NULL;

	if (posix_memalign(&p, 4096, len))
		die("memory");
	memset(p, 0, len);
	return p;
}

static struct ibv_mr *
reg(struct end *e, void *p, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, p, len, IBV_ACCESS_LOCAL_WRITE | access);

	if (!mr)
		die("ibv_reg_mr");
	return mr;
}

static void
open_device(struct end *e)
{
	int i, n;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (i = 0; list && i < n; i++)
		if (!e->dev || !strcmp(e->dev, ibv_get_device_name(list[i])))
			break;
	if (!list || i == n) {
		errno = ENODEV;
		die(e->dev ? e->dev : "no device");
	}
	e->verbs = ibv_open_device(list[i]);
	if (!e->verbs)
		die("ibv_open_device");
	ibv_free_device_list(list);
}

static void
make_qp(struct end *e)
{
	struct ibv_qp_init_attr qa = {
		.cap = { .max_send_wr = MAX_LIST, .max_recv_wr = MAX_LIST,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	e->cq = ibv_create_cq(e->verbs, 4 * MAX_LIST, NULL, NULL, 0);
	if (!e->cq)
		die("ibv_create_cq");
	qa.send_cq = qa.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &qa);
	if (!e->qp)
		die("ibv_create_qp");
	if (ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		die("QP to INIT");
}

static void
setup(struct end *e)
{
	uint32_t i;

	open_device(e);
	e->pd = ibv_alloc_pd(e->verbs);
	if (!e->pd)
		die("ibv_alloc_pd");
	e->buf = buffer(e->buflen);
	e->model = buffer(e->buflen);
	e->work = buffer(e->buflen);
	e->recv = buffer((size_t)MAX_LIST * e->recvlen);
	pattern_fill(e->buf, e->buflen, 0);
	pattern_fill(e->model, e->buflen, 0);
	e->mr = reg(e, e->buf, e->buflen, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
	e->denied = reg(e, e->buf, e->buflen, 0);
	e->work_mr = reg(e, e->work, e->buflen, 0);
	e->recv_mr = reg(e, e->recv, (size_t)MAX_LIST * e->recvlen, 0);
	make_qp(e);
	for (i = 0; i < e->nrecv; i++)
		post_recv(e, i);
}

static enum ibv_mtu
mtu_code(int bytes)
{
	int code;

	for (code = IBV_MTU_256; code < IBV_MTU_4096 && 128 << code < bytes; code++)
		;
	return code;
}

static void
connect_qp(struct end *e, const struct address *own, const struct address *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(e->mtu),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = e->rd_atomic,
		.min_rnr_timer = e->min_rnr,
		.ah_attr = { .is_global = 1, .port_num = 1, .dlid = peer->lid,
			     .grh = { .dgid = peer->gid, .sgid_index = e->gid_index,
				      .hop_limit = 64 } },
	};

	if (ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		die("QP to RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = e->timeout;
	a.retry_cnt = e->retry;
	a.rnr_retry = e->rnr_retry;
	a.sq_psn = own->psn;
	a.max_rd_atomic = e->rd_atomic;
	if (ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("QP to RTS");
}

static void
send_bytes(struct end *e, const void *p, size_t len)
{
	if (send(e->fd, p, len, 0) != (ssize_t)len)
		die("control connection");
}

static struct address
own_address(struct end *e)
{
	struct address a = { .qpn = e->qp->qp_num };

	if (getrandom(&a.psn, sizeof(a.psn), 0) != sizeof(a.psn) ||
	    ibv_query_gid(e->verbs, 1, e->gid_index, &a.gid))
		die("own address");
	a.psn &= 0xffffff;
	return a;
}

static void
send_address(struct end *e, const struct address *a)
{
	char msg[WIRE_LEN];
	int n = sprintf(msg, "%04x:%06x:%06x:", a->lid, a->qpn, a->psn), i;

	for (i = 0; i < 16; i++)
		n += sprintf(msg + n, "%02x", a->gid.raw[i]);
	send_bytes(e, msg, sizeof(msg));
}

static void
recv_address(struct end *e, struct address *a)
{
	char msg[WIRE_LEN], gid[33];
	unsigned int byte;
	int i;

	if (fread(msg, 1, sizeof(msg), e->in) != sizeof(msg) || msg[WIRE_LEN - 1] ||
	    sscanf(msg, "%x:%x:%x:%32s", &a->lid, &a->qpn, &a->psn, gid) != 4 ||
	    strlen(gid) != 32)
		die("no address from the peer");
	for (i = 0; i < 16 && sscanf(gid + 2 * i, "%2x", &byte) == 1; i++)
		a->gid.raw[i] = byte;
}

static void
exchange(struct end *e, bool server)
{
	struct address own = own_address(e), peer;
	char line[128], done[sizeof("done")];
	unsigned long long addr = 0;

	if (server) {
		recv_address(e, &peer);
		connect_qp(e, &own, &peer);
		send_address(e, &own);
		if (fread(done, 1, sizeof(done), e->in) != sizeof(done) || strcmp(done, "done"))
			die("no \"done\" from the peer");
	} else {
		send_address(e, &own);
		recv_address(e, &peer);
		connect_qp(e, &own, &peer);
		send_bytes(e, "done", sizeof(done));
	}
	say(e, "%016llx:%08x:%08x\n", (unsigned long long)(uintptr_t)e->buf, e->mr->rkey,
	    e->buflen);
	if (!hear(e, line, sizeof(line)) ||
	    sscanf(line, "%llx:%x:%x", &addr, &e->peer.rkey, &e->peer.len) != 3)
		die("no buffer from the peer");
	e->peer.addr = addr;
	printf("local qpn %06x psn %06x, peer qpn %06x psn %06x, buffer %016llx:%08x:%08x\n",
	       own.qpn, own.psn, peer.qpn, peer.psn, addr, e->peer.rkey, e->peer.len);
	fflush(stdout);
}

static int
tcp(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = host ? 0 : AF_INET6,
				  .ai_flags = host ? 0 : AI_PASSIVE }, *ai;
	int fd, conn, one = 1;

	if (getaddrinfo(host, port, &hints, &ai))
		die("getaddrinfo");
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd < 0)
		die("socket");
	if (host) {
		if (connect(fd, ai->ai_addr, ai->ai_addrlen))
			die("connect");
		conn = fd;
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1))
			die("listen");
		printf("listening on %s\n", port);
		fflush(stdout);
		conn = accept(fd, NULL, NULL);
		if (conn < 0)
			die("accept");
		close(fd);
	}
	freeaddrinfo(ai);
	return conn;
}

static void
usage(void)
{
	fprintf(stderr, "usage: peer-qp -s | -c host [-b] [-p port] [-d dev] [-g gid] [-M mtu] [-l len]\n"
		"\t[-R len] [-r n] [-t n] [-y n] [-Y n] [-m n] [-a n] [-n n] [op...]; see the source\n");
	exit(2);
}

static const char *
options(struct end *e, int argc, char **argv)
{
	const char *host = NULL;
	bool server = false;
	int opt;

	while ((opt = getopt(argc, argv, "sc:p:d:g:M:l:R:r:t:y:Y:m:a:n:b")) != -1)
		switch (opt) {
		case 's': server = true; break;
		case 'c': host = optarg; break;
		case 'p': e->port = optarg; break;
		case 'd': e->dev = optarg; break;
		case 'g': e->gid_index = atoi(optarg); break;
		case 'M': e->mtu = atoi(optarg); break;
		case 'l': e->buflen = strtoul(optarg, NULL, 0); break;
		case 'R': e->recvlen = strtoul(optarg, NULL, 0); break;
		case 'r': e->nrecv = strtoul(optarg, NULL, 0); break;
		case 't': e->timeout = atoi(optarg); break;
		case 'y': e->retry = atoi(optarg); break;
		case 'Y': e->rnr_retry = atoi(optarg); break;
		case 'm': e->min_rnr = atoi(optarg); break;
		case 'a': e->rd_atomic = atoi(optarg); break;
		case 'n': e->repeat = strtoul(optarg, NULL, 0); break;
		case 'b': e->bare = true; break;
		default: usage();
		}
	if (server == !!host || e->nrecv > MAX_LIST || e->buflen < 4096 || e->buflen % 8 ||
	    e->buflen > 64 << 20 || !e->recvlen || e->recvlen >= e->buflen || e->recvlen > 1 << 20)
		usage();
	return host;
}

int
main(int argc, char **argv)
{
	struct end e = {
		.port = "18515", .gid_index = 1, .mtu = 1024, .timeout = 14, .retry = 7,
		.rnr_retry = -1, .min_rnr = 12, .rd_atomic = 4, .buflen = 1 << 20,
		.recvlen = 65536, .repeat = 1,
	};
	const char *host = options(&e, argc, argv);
	struct op op;
	int i, rc;

	for (i = optind; i < argc; i++) {
		if (!op_parse(&op, argv[i])) {
			fprintf(stderr, "peer-qp: no op %s\n", argv[i]);
			return 2;
		}
		/* A retry count cannot change once the QP is in RTS. */
		if (e.rnr_retry < 0 && !strcmp(op.def->name, "rnrfail"))
			e.rnr_retry = 2;
	}
	if (e.rnr_retry < 0)
		e.rnr_retry = 7;
	setup(&e);
	e.fd = tcp(host, e.port);
	e.in = fdopen(e.fd, "r");
	if (!e.in)
		die("fdopen");
	setvbuf(e.in, NULL, _IONBF, 0);	/* poll() must see what is not read yet */
	exchange(&e, !host);
	rc = optind < argc ? initiator(&e, argv + optind) : responder(&e);
	printf(rc ? "FAILED\n" : "ok\n");
	return rc;
}
