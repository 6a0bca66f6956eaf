/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic_pingpong: two programs send one message to and fro. Speaks as ibv_rc_pingpong does, with
 * -u as ibv_uc_pingpong, with -U as ibv_ud_pingpong, with their options, so that either may be
 * the other's peer. The client's data is echoed: with -c it changes each time and every byte that
 * comes back is compared.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "ex_cm.h"

enum { WR_RECV = 1, WR_SEND = 2 };

#define LOST_MS 10000 /* without acknowledgements: a message that has not come by then is lost */

struct pingpong {
	struct ex_device dev;
	struct ex_conn conn;
	struct rnic_cq *cq;
	struct rnic_channel *channel;
	struct rnic_qp *qp;
	struct rnic_mr *send, *recv;
	struct rnic_ah *ah; /* UD: the peer's */
	uint32_t peer_qpn;
	/* options */
	const char *host, *socket, *device;
	unsigned int tcp_port, ib_port, mtu, size, rx_depth, iters, sl, timeout;
	int gid_index;
	bool events, check, cm;
	struct ex_cm by_cm;
	uint32_t type; /* enum rnic_qp_type */
	/* progress */
	unsigned int sent, received, posted, pending;
};

static const char usage_text[] =
	"usage: rnic_pingpong [option...]        wait for a client\n"
	"       rnic_pingpong [option...] HOST   be that client\n"
	"\n"
	"  -p, --port=N       TCP port of the exchange (18515)\n"
	"  -S, --socket=PATH  rnicd's socket (RNIC_SOCKET, or its default)\n"
	"  -d, --ib-dev=NAME  device (the daemon's first)\n"
	"  -i, --ib-port=N    its port (1)\n"
	"  -s, --size=N       bytes of the message (4096)\n"
	"  -m, --mtu=N        path MTU in bytes (1024)\n"
	"  -r, --rx-depth=N   receives posted at once (500)\n"
	"  -n, --iters=N      exchanges (1000)\n"
	"  -l, --sl=N         service level (0)\n"
	"  -t, --timeout=N    local ACK timeout, 4.096 us * 2^N; 0: none (14)\n"
	"  -e, --events       sleep on completion events instead of polling\n"
	"  -g, --gid-idx=N    index of the own GID (the first IPv4 address)\n"
	"  -c, --chk          compare all data\n"
	"  -u, --uc           unreliable connection: what is lost is not sent again\n"
	"  -U, --ud           datagrams, which may be lost too\n"
	"  -R, --rdma-cm      connect by address with the connection manager: -p is a port of its\n"
	"                     own, and HOST is an address of the peer's device; no TCP is used\n"
	"\n"
	"The peer may be ibv_rc_pingpong, with -u ibv_uc_pingpong, with -U ibv_ud_pingpong; but\n"
	"with -R it is this program.\n"
	"Exit status: 0 if all went well and all was right.\n";

/** What comes before the data in a receive buffer: the network header of a datagram. */
static uint32_t
grh_len(const struct pingpong *p)
{
	return p->type == RNIC_QPT_UD ? EX_GRH_LEN : 0;
}

static uint8_t *
received_data(const struct pingpong *p)
{
	return (uint8_t *)p->recv->addr + grh_len(p);
}

static void
post_recvs(struct pingpong *p, unsigned int n)
{
	struct rnic_sge sge = { (uintptr_t)p->recv->addr, p->size + grh_len(p), p->recv->lkey };
	struct rnic_recv_wr wr = { .wr_id = WR_RECV, .sg_list = &sge, .num_sge = 1 };

	for (unsigned int i = 0; i < n; i++)
		ex_check(rnic_post_recv(p->qp, &wr, NULL), "post of a receive");
	p->posted += n;
}

/** The server sends what it received; the client something new each time, if it compares. */
static void
post_send(struct pingpong *p)
{
	struct rnic_mr *from = p->host ? p->send : p->recv;
	const void *at = p->host ? p->send->addr : received_data(p);
	struct rnic_sge sge = { (uintptr_t)at, p->size, from->lkey };
	struct rnic_send_wr wr = { .wr_id = WR_SEND, .sg_list = &sge, .num_sge = 1,
				   .opcode = RNIC_WR_SEND, .send_flags = RNIC_SEND_SIGNALED };

	if (p->host && p->check)
		ex_pattern(p->send->addr, p->size, p->sent);
	if (p->type == RNIC_QPT_UD) {
		wr.wr.ud.ah = p->ah;
		wr.wr.ud.remote_qpn = p->peer_qpn;
		wr.wr.ud.remote_qkey = EX_QKEY;
	}
	ex_check(rnic_post_send(p->qp, &wr, NULL), "post of a send");
	p->pending |= WR_SEND;
}

static void
check_data(struct pingpong *p)
{
	size_t at;

	if (!p->host) /* the server only echoes: it cannot know whose data this is */
		return;
	at = ex_pattern_check(received_data(p), p->size, p->received - 1);
	if (at < p->size)
		ex_fail("message %u came back wrong at byte %zu", p->received - 1, at);
	memset(received_data(p), 0xa5, p->size); /* so that the next one cannot be this one */
}

static void
complete(struct pingpong *p, const struct rnic_wc *wc)
{
	ex_check_wc(wc);
	if (wc->wr_id == WR_SEND) {
		p->sent++;
		p->pending &= ~WR_SEND;
	} else {
		p->received++;
		if (wc->byte_len != p->size + grh_len(p))
			ex_fail("%u bytes came, not %u", wc->byte_len, p->size + grh_len(p));
		if (p->check)
			check_data(p);
		if (--p->posted <= 1)
			post_recvs(p, p->rx_depth - p->posted);
		p->pending &= ~WR_RECV;
	}
	if (p->pending == 0 && p->sent < p->iters) {
		p->pending = WR_RECV;
		post_send(p);
	}
}

static int
await(struct pingpong *p, struct rnic_wc *wc)
{
	int limit = p->type == RNIC_QPT_RC ? -1 : LOST_MS;
	int n = p->events ? ex_check(rnic_wait_cq(p->cq, 2, wc, limit), "completion queue")
			  : ex_wait(p->cq, 2, wc, limit);

	if (n == 0)
		ex_fail("message %u is lost", p->received);
	return n;
}

static void
exchange_messages(struct pingpong *p)
{
	uint64_t start = ex_now_ns();
	struct rnic_wc wc[2];
	double s;

	p->pending = WR_RECV;
	if (p->host)
		post_send(p);
	while (p->sent < p->iters || p->received < p->iters) {
		int n = await(p, wc);

		for (int i = 0; i < n; i++)
			complete(p, &wc[i]);
	}
	s = (double)(ex_now_ns() - start) / 1e9;
	printf("%llu bytes in %.2f seconds = %.2f Mbit/sec\n",
	       (unsigned long long)p->size * p->iters * 2, s,
	       (double)p->size * p->iters * 16 / s / 1e6);
	printf("%u iters in %.2f seconds = %.2f usec/iter\n", p->iters, s, s * 1e6 / p->iters);
}

static void
set_up(struct pingpong *p)
{
	struct rnic_cq_attr ca = { .cqe = p->rx_depth + 1 };
	struct rnic_qp_init_attr qa = {
		.cap = { .max_send_wr = 1, .max_recv_wr = p->rx_depth, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = p->type,
	};

	ex_open(&p->dev, p->socket, p->device, p->ib_port, p->gid_index);
	p->send = ex_memory(&p->dev, p->size, 0);
	p->recv = ex_memory(&p->dev, p->size + grh_len(p), 0);
	memset(p->send->addr, 0x7b, p->size);
	ex_check(rnic_create_channel(p->dev.ctx, &p->channel), "completion channel");
	ca.channel = p->channel;
	ex_check(rnic_create_cq(p->dev.ctx, &ca, &p->cq), "completion queue");
	qa.send_cq = qa.recv_cq = p->cq;
	ex_check(rnic_create_qp(p->dev.pd, &qa, &p->qp), "queue pair");
	ex_init_qp(&p->dev, p->qp, 0);
	post_recvs(p, p->rx_depth);
}

static void
tear_down(struct pingpong *p)
{
	if (p->cm)
		ex_cm_close(&p->by_cm);
	else
		ex_hang_up(&p->conn);
	if (p->ah)
		rnic_destroy_ah(p->ah);
	rnic_destroy_qp(p->qp);
	rnic_destroy_cq(p->cq);
	rnic_destroy_channel(p->channel);
	ex_free(&p->dev, p->send);
	ex_free(&p->dev, p->recv);
	ex_close(&p->dev);
}

static void
join_by_cm(struct pingpong *p, const struct ex_path *path)
{
	struct sockaddr_storage addr;

	ex_cm_open(&p->by_cm, &p->dev, &p->qp, 1);
	ex_cm_address(p->host ? p->host : "0.0.0.0", p->tcp_port, &addr);
	if (p->host) {
		ex_cm_connect(&p->by_cm, &addr, path);
		return;
	}
	printf("listening on port %u\n", ex_cm_listen(&p->by_cm, &addr));
	fflush(stdout);
	ex_cm_accept(&p->by_cm, path, -1);
}

static void
join(struct pingpong *p)
{
	struct ex_path path = ex_default_path;
	const unsigned int most = 128u << p->dev.port.active_mtu;
	struct ex_address peer;
	unsigned int port;

	if (p->type == RNIC_QPT_UD && p->size > most)
		ex_fail("a datagram has %u bytes at most on this port", most);

	path.mtu = ex_mtu(&p->dev, p->mtu);
	path.sl = (uint8_t)p->sl;
	path.timeout = (uint8_t)p->timeout;
	if (p->cm) {
		join_by_cm(p, &path);
		return;
	}
	if (p->host) {
		ex_dial(&p->conn, p->host, p->tcp_port);
	} else {
		int listener = ex_listen(p->tcp_port, &port);

		printf("listening on port %u\n", port);
		fflush(stdout);
		ex_accept(&p->conn, listener);
	}
	ex_join(&p->conn, !p->host, &p->dev, p->qp, &path, &peer);
	if (p->type == RNIC_QPT_UD)
		p->ah = ex_ah(&p->dev, &path, &peer);
	p->peer_qpn = peer.qpn;
	fflush(stdout);
}

static const struct option long_options[] = {
	{ "port", 1, NULL, 'p' },     { "socket", 1, NULL, 'S' }, { "ib-dev", 1, NULL, 'd' },
	{ "ib-port", 1, NULL, 'i' },  { "size", 1, NULL, 's' },	  { "mtu", 1, NULL, 'm' },
	{ "rx-depth", 1, NULL, 'r' }, { "iters", 1, NULL, 'n' },  { "sl", 1, NULL, 'l' },
	{ "events", 0, NULL, 'e' },   { "gid-idx", 1, NULL, 'g' }, { "chk", 0, NULL, 'c' },
	{ "timeout", 1, NULL, 't' },  { "uc", 0, NULL, 'u' },	   { "ud", 0, NULL, 'U' },
	{ "rdma-cm", 0, NULL, 'R' },  { "help", 0, NULL, 'h' },	   { NULL, 0, NULL, 0 },
};

static void
option(struct pingpong *p, int opt, const char *arg)
{
	switch (opt) {
	case 'p': p->tcp_port = ex_number("--port", arg, 0, 65535); break;
	case 'S': p->socket = arg; break;
	case 'd': p->device = arg; break;
	case 'i': p->ib_port = ex_number("--ib-port", arg, 1, 255); break;
	case 's': p->size = ex_size("--size", arg, 0, 1u << 30); break;
	case 'm': p->mtu = ex_number("--mtu", arg, 256, 4096); break;
	case 'r': p->rx_depth = ex_number("--rx-depth", arg, 2, 16384); break;
	case 'n': p->iters = ex_number("--iters", arg, 1, UINT32_MAX); break;
	case 'l': p->sl = ex_number("--sl", arg, 0, 15); break;
	case 't': p->timeout = ex_number("--timeout", arg, 0, 31); break;
	case 'e': p->events = true; break;
	case 'g': p->gid_index = ex_number("--gid-idx", arg, 0, 255); break;
	case 'c': p->check = true; break;
	case 'u': p->type = RNIC_QPT_UC; break;
	case 'U': p->type = RNIC_QPT_UD; break;
	case 'R': p->cm = true; break;
	case 'h': fputs(usage_text, stdout); exit(0);
	default: fputs(usage_text, stderr); exit(2);
	}
}

int
main(int argc, char **argv)
{
	struct pingpong p = { .tcp_port = 18515, .ib_port = 1, .mtu = 1024, .size = 4096,
			      .rx_depth = 500, .iters = 1000, .timeout = 14, .gid_index = -1,
			      .type = RNIC_QPT_RC };
	int opt;

	ex_program = "rnic_pingpong";
	while ((opt = getopt_long(argc, argv, "p:S:d:i:s:m:r:n:l:t:eg:cuURh", long_options,
				  NULL)) != -1)
		option(&p, opt, optarg);
	if (optind < argc)
		p.host = argv[optind++];
	if (optind < argc)
		option(&p, '?', NULL);
	if (p.cm && p.type == RNIC_QPT_UD)
		ex_fail("datagrams are not connected: -R goes with -U not");
	if (p.size == 0)
		ex_fail("--size wants a byte at least");
	set_up(&p);
	join(&p);
	exchange_messages(&p);
	tear_down(&p);
	return 0;
}
