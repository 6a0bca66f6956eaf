/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-qp: RC operations between two QPs that no connection manager joined. The operations and
 * the conversation after the QPs are joined are those of apps/examples/ops*.c, which is compiled
 * in; here is what verbs do for it, and the exchange of addresses as ibv_rc_pingpong makes it:
 *
 * the client sends "%04x:%06x:%06x:%s" (LID, QPN, first PSN, GID in 32 hex digits) with its
 * closing zero byte, 52 bytes in all; the server brings its QP to RTS and answers with its own;
 * the client does the same and sends "done" and a zero byte.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#include "ops.h"

#define WIRE_LEN sizeof("0000:000000:000000:00000000000000000000000000000000")
/* rxe hands the kernel's flag (bit 2) through to user space, where it is bit 3. */
#define WITH_INV (IBV_WC_WITH_INV | 1 << 2)
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct address {
	unsigned int lid, qpn, psn;
	union ibv_gid gid;
};

struct peer {
	struct end e; /* first */
	struct ibv_context *verbs;
	struct ibv_comp_channel *channel; /* NULL: there are no events */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr, *denied, *recv_mr, *work_mr;
	struct ibv_mw *mw;
};

static inline struct peer *
peer_of(struct end *e)
{
	return (struct peer *)e;
}

void
ops_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("peer-qp: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void __attribute__((noreturn))
die(const char *what)
{
	ops_die("%s: %s", what, strerror(errno));
}

/* ---- completions ---------- */

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static void
tell(const struct ibv_wc *wc, struct completion *c)
{
	*c = (struct completion){
		.wr_id = wc->wr_id, .status = wc->status, .byte_len = wc->byte_len,
		.with_imm = wc->wc_flags & IBV_WC_WITH_IMM, .with_inv = wc->wc_flags & WITH_INV,
		.recv = wc->opcode == IBV_WC_RECV || wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM,
		.write = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM,
	};
	if (c->with_imm)
		c->imm = ntohl(wc->imm_data);
	if (c->with_inv)
		c->key = wc->invalidated_rkey;
}

bool
ops_poll(struct end *e, struct completion *c, unsigned int ms)
{
	uint64_t until = now_ms() + ms;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(peer_of(e)->cq, 1, &wc);
		if (n < 0)
			die("ibv_poll_cq");
		if (!n && ms)
			usleep(200);
	} while (!n && now_ms() < until);
	if (n > 0)
		tell(&wc, c);
	return n > 0;
}

bool
ops_woken(struct end *e, unsigned int ms)
{
	struct ibv_comp_channel *channel = peer_of(e)->channel;
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, (int)ms) <= 0)
		return false;
	if (ibv_get_cq_event(channel, &cq, &context))
		die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return true;
}

bool
ops_arm(struct end *e)
{
	if (!peer_of(e)->channel)
		return false;
	while (ops_woken(e, 0))
		;
	return ibv_req_notify_cq(peer_of(e)->cq, 1) == 0;
}

const char *
ops_status_name(int status)
{
	return ibv_wc_status_str((enum ibv_wc_status)status);
}

/* ---- posting ---------- */

void
ops_post_recv(struct end *e, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)(e->recv + (size_t)slot * e->recvlen), e->recvlen,
			       peer_of(e)->recv_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(peer_of(e)->qp, &wr, &bad))
		die("ibv_post_recv");
}

static void
fill(const struct request *r, struct ibv_send_wr *wr, struct ibv_sge *sge, uint32_t lkey)
{
	*sge = (struct ibv_sge){ (uintptr_t)r->p, r->len, lkey };
	*wr = (struct ibv_send_wr){
		.sg_list = sge, .num_sge = r->len > 0, .opcode = (enum ibv_wr_opcode)r->opcode,
		.send_flags = IBV_SEND_SIGNALED | (r->fence ? IBV_SEND_FENCE : 0) |
			      (r->solicited ? IBV_SEND_SOLICITED : 0) |
			      (r->inlined ? IBV_SEND_INLINE : 0),
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
	struct ibv_send_wr wr[MAX_LIST], *bad = NULL;
	struct ibv_sge sge[MAX_LIST];
	uint32_t i;
	int rc;

	for (i = 0; i < n; i++) {
		fill(&r[i], &wr[i], &sge[i], peer_of(e)->work_mr->lkey);
		wr[i].wr_id = i;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	rc = ibv_post_send(peer_of(e)->qp, wr, &bad);
	if (!rc)
		return n;
	printf("post: %s\n", strerror(rc));
	return bad ? (uint32_t)(bad - wr) : 0;
}

/* ---- windows ---------- */

/* The one that is there, if any, is taken by sendinv. */
const char *
ops_window(struct end *e)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct peer *p = peer_of(e);
	struct completion c;

	p->mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	if (!p->mw)
		return "none to be had";
	wr.bind_mw.mw = p->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(p->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ p->mr, (uintptr_t)e->buf, e->buflen,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	if (ibv_post_send(p->qp, &wr, &bad) || !ops_poll(e, &c, 5000))
		return "not bound";
	if (c.status)
		return ops_status_name(c.status);
	e->window = wr.bind_mw.rkey;
	return NULL;
}

void
ops_window_gone(struct end *e)
{
	ibv_dealloc_mw(peer_of(e)->mw);
	e->window = 0;
}

/* ---- setting up ---------- */

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
reg(struct peer *p, void *addr, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(p->pd, addr, len, IBV_ACCESS_LOCAL_WRITE | access);

	if (!mr)
		die("ibv_reg_mr");
	return mr;
}

static void
open_device(struct peer *p)
{
	const char *name = p->e.dev;
	int i, n;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (i = 0; list && i < n; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			break;
	if (!list || i == n)
		ops_die("no device %s", name ? name : "");
	p->verbs = ibv_open_device(list[i]);
	if (!p->verbs)
		die("ibv_open_device");
	ibv_free_device_list(list);
	p->pd = ibv_alloc_pd(p->verbs);
	if (!p->pd)
		die("ibv_alloc_pd");
}

static void
make_qp(struct peer *p)
{
	struct ibv_qp_init_attr qa = {
		.cap = { .max_send_wr = MAX_LIST, .max_recv_wr = MAX_LIST, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = MAX_INLINE },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = REMOTE };

	p->channel = ibv_create_comp_channel(p->verbs);
	p->cq = ibv_create_cq(p->verbs, 4 * MAX_LIST, NULL, p->channel, 0);
	if (!p->cq)
		die("ibv_create_cq");
	qa.send_cq = qa.recv_cq = p->cq;
	p->qp = ibv_create_qp(p->pd, &qa);
	if (!p->qp)
		die("ibv_create_qp");
	if (ibv_modify_qp(p->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		die("QP to INIT");
}

static void
setup(struct peer *p)
{
	struct end *e = &p->e;
	size_t recv = (size_t)MAX_LIST * e->recvlen;
	uint32_t i;

	open_device(p);
	e->buf = buffer(e->buflen);
	e->work = buffer(e->buflen);
	e->recv = buffer(recv);
	ops_fill(e);
	p->mr = reg(p, e->buf, e->buflen, REMOTE | IBV_ACCESS_MW_BIND);
	p->denied = reg(p, e->buf, e->buflen, 0);
	p->work_mr = reg(p, e->work, e->buflen, 0);
	p->recv_mr = reg(p, e->recv, recv, 0);
	e->key = p->mr->rkey;
	e->denied = p->denied->rkey;
	make_qp(p);
	for (i = 0; i < e->nrecv; i++)
		ops_post_recv(e, i);
}

/* ---- connecting ---------- */

static enum ibv_mtu
mtu_code(uint32_t bytes)
{
	unsigned int code;

	for (code = IBV_MTU_256; code < IBV_MTU_4096 && 128u << code < bytes; code++)
		;
	return (enum ibv_mtu)code;
}

static void
connect_qp(struct peer *p, const struct address *own, const struct address *far)
{
	const struct end *e = &p->e;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(e->mtu),
		.dest_qp_num = far->qpn,
		.rq_psn = far->psn,
		.max_dest_rd_atomic = (uint8_t)e->rd_atomic,
		.min_rnr_timer = (uint8_t)e->min_rnr,
		.ah_attr = { .is_global = 1, .port_num = 1, .dlid = (uint16_t)far->lid,
			     .grh = { .dgid = far->gid, .sgid_index = (uint8_t)e->gid_index,
				      .hop_limit = 64 } },
	};

	if (ibv_modify_qp(p->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		die("QP to RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = (uint8_t)e->timeout;
	a.retry_cnt = (uint8_t)e->retry;
	a.rnr_retry = (uint8_t)e->rnr_retry;
	a.sq_psn = own->psn;
	a.max_rd_atomic = (uint8_t)e->rd_atomic;
	if (ibv_modify_qp(p->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("QP to RTS");
}

static void
send_bytes(struct end *e, const void *p, size_t len)
{
	if (send(e->fd, p, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("control connection");
}

static struct address
own_address(struct peer *p)
{
	struct address a = { .qpn = p->qp->qp_num };

	if (getrandom(&a.psn, sizeof(a.psn), 0) != sizeof(a.psn) ||
	    ibv_query_gid(p->verbs, 1, p->e.gid_index, &a.gid))
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
		ops_die("no address from the peer");
	for (i = 0; i < 16 && sscanf(gid + 2 * i, "%2x", &byte) == 1; i++)
		a->gid.raw[i] = (uint8_t)byte;
}

static void
join(struct peer *p)
{
	struct address own = own_address(p), far;
	char done[sizeof("done")];
	struct end *e = &p->e;

	if (e->server) {
		recv_address(e, &far);
		connect_qp(p, &own, &far);
		send_address(e, &own);
		if (fread(done, 1, sizeof(done), e->in) != sizeof(done) || strcmp(done, "done"))
			ops_die("no \"done\" from the peer");
	} else {
		send_address(e, &own);
		recv_address(e, &far);
		connect_qp(p, &own, &far);
		send_bytes(e, "done", sizeof(done));
	}
	printf("local qpn %06x psn %06x, peer qpn %06x psn %06x\n", own.qpn, own.psn, far.qpn,
	       far.psn);
}

static int
serve_tcp(const struct addrinfo *ai, uint32_t port)
{
	int conn, one = 1, fd = socket(ai->ai_family, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1))
		die("listen");
	printf("listening on %u\n", port);
	fflush(stdout);
	conn = accept(fd, NULL, NULL);
	if (conn < 0)
		die("accept");
	close(fd);
	return conn;
}

static void
connect_tcp(struct end *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = e->host ? 0 : AF_INET6,
				  .ai_flags = e->host ? 0 : AI_PASSIVE }, *ai;
	char port[8];

	snprintf(port, sizeof(port), "%u", e->port);
	if (getaddrinfo(e->host, port, &hints, &ai))
		die("getaddrinfo");
	if (e->server) {
		e->fd = serve_tcp(ai, e->port);
	} else {
		e->fd = socket(ai->ai_family, SOCK_STREAM, 0);
		if (e->fd < 0 || connect(e->fd, ai->ai_addr, ai->ai_addrlen))
			die("connect");
	}
	freeaddrinfo(ai);
	e->in = fdopen(e->fd, "r");
	if (!e->in)
		die("fdopen");
	setvbuf(e->in, NULL, _IONBF, 0); /* poll() must see what is not read yet */
}

static void __attribute__((noreturn))
usage(void)
{
	fprintf(stderr, "usage: peer-qp -s | -c HOST [option...] [op...]\n%s", ops_usage);
	exit(2);
}

int
main(int argc, char **argv)
{
	struct peer p = { .e = OPS_END };
	int opt;

	p.e.gid_index = 1;
	while ((opt = getopt(argc, argv, OPS_LETTERS)) != -1)
		if (!ops_option(&p.e, opt, optarg))
			usage();
	if (!ops_ready(&p.e, argv + optind))
		usage();
	setup(&p);
	connect_tcp(&p.e);
	join(&p);
	return ops_run(&p.e);
}
