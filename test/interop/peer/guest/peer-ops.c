/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-ops - one RDMA operation after the other, for protocol tests.
 *
 * server: peer-ops -s [-u] [-6] [-j] [-p port] [-n connections] [-r receives]
 * client: peer-ops -c address [-u] [-p port] [-m] op...
 *
 * -u uses an unreliable datagram QP; -6 listens on IPv6, not IPv4; -j rejects
 * every connection; -m prints the path MTU.  The server tells the client the
 * address, key and length of its buffer in the private data of the accept; it
 * prints one line for each completion.  The client does the ops in turn, each
 * completed before the next, and checks what a read brings back.  It exits 0 if
 * every op ended as its name says.
 *
 * ops (N: bytes):  send:N sendimm:N write:N writeimm:N read:N   cas fadd
 *     burst:N (8 writes of N bytes, posted together)
 *   that must fail, and end the connection:
 *     badkey-write:N badkey-read:N (wrong rkey)
 *     oob-write:N oob-read:N (from N/2 before the end of the server's buffer)
 *     toolong (send of more than the server's receive holds)
 *     rnr (sends until the server's receives and the RNR retries are used up)
 *   that may fail, and end the connection:
 *     badinv (send-with-invalidate of a bad key)
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>
#include <infiniband/verbs.h>

#define BUFLEN 65536u
#define RECVLEN 8192u
#define GRH 40u

struct info { uint64_t addr; uint32_t rkey, len; } __attribute__((packed));

static unsigned char *buf, *rbuf;
static struct ibv_mr *mr, *rmr;
static struct ibv_cq *cq;
static struct rdma_event_channel *ch;
static int ud, v6, reject, nrecv = 8, pathmtu;

static void die(const char *what)
{
	fprintf(stderr, "peer-ops: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct rdma_cm_event *event(enum rdma_cm_event_type want)
{
	struct rdma_cm_event *ev;

	if (rdma_get_cm_event(ch, &ev))
		die("rdma_get_cm_event");
	printf("cm: %s status %d\n", rdma_event_str(ev->event), ev->status);
	if (ev->event != want) {
		fprintf(stderr, "peer-ops: wanted %s\n", rdma_event_str(want));
		exit(1);
	}
	return ev;
}

static void post_recv(struct rdma_cm_id *id, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)(rbuf + i * (RECVLEN + GRH)),
			       RECVLEN + (ud ? GRH : 0), rmr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(id->qp, &wr, &bad))
		die("ibv_post_recv");
}

static void setup(struct rdma_cm_id *id, int recvs)
{
	struct ibv_qp_init_attr qa = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = ud ? IBV_QPT_UD : IBV_QPT_RC,
	};
	int acc = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	unsigned i;

	if (posix_memalign((void **)&buf, 4096, BUFLEN) ||
	    posix_memalign((void **)&rbuf, 4096, 64 * (RECVLEN + GRH)))
		die("memory");
	for (i = 0; i < BUFLEN; i++)
		buf[i] = i ^ (i >> 8);
	mr = ibv_reg_mr(id->pd, buf, BUFLEN, acc | IBV_ACCESS_REMOTE_ATOMIC);
	if (!mr)
		mr = ibv_reg_mr(id->pd, buf, BUFLEN, acc);
	rmr = ibv_reg_mr(id->pd, rbuf, 64 * (RECVLEN + GRH), IBV_ACCESS_LOCAL_WRITE);
	if (!mr || !rmr)
		die("ibv_reg_mr");
	cq = ibv_create_cq(id->verbs, 128, NULL, NULL, 0);
	if (!cq)
		die("ibv_create_cq");
	qa.send_cq = qa.recv_cq = cq;
	if (rdma_create_qp(id, id->pd, &qa))
		die("rdma_create_qp");
	for (i = 0; i < (unsigned)recvs; i++)
		post_recv(id, i);
}

static void teardown(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(mr);
	ibv_dereg_mr(rmr);
	free(buf);
	free(rbuf);
}

static int server(const char *port, int conns)
{
	/* siw's IPv6 wildcard takes no IPv4 connections, so the family must be chosen */
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(port)) };
	struct rdma_cm_id *lid, *id;

	if (rdma_create_id(ch, &lid, NULL, ud ? RDMA_PS_UDP : RDMA_PS_TCP) ||
	    rdma_bind_addr(lid, v6 ? (struct sockaddr *)&any6 : (struct sockaddr *)&any4) || rdma_listen(lid, 4))
		die("listen");
	printf("listening on %s\n", port);
	fflush(stdout);
	while (conns-- > 0) {
		struct rdma_conn_param cp = { .responder_resources = 4, .initiator_depth = 4, .rnr_retry_count = 3 };
		struct rdma_cm_event *ev;
		struct info in;
		int open = 1;

		do {	/* what is left of the connection before goes by */
			if (rdma_get_cm_event(ch, &ev))
				die("rdma_get_cm_event");
			if (ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
				rdma_ack_cm_event(ev);
			else
				break;
		} while (1);
		id = ev->id;
		printf("connect request, private data %u, device %s\n",
		       (unsigned)(ud ? ev->param.ud.private_data_len : ev->param.conn.private_data_len),
		       ibv_get_device_name(id->verbs->device));
		if (!ud) {
			cp.responder_resources = ev->param.conn.responder_resources;
			cp.initiator_depth = ev->param.conn.initiator_depth;
		}
		rdma_ack_cm_event(ev);
		if (reject) {
			if (rdma_reject(id, "rejected", 8))
				die("rdma_reject");
			rdma_destroy_id(id);
			continue;
		}
		setup(id, nrecv);
		in = (struct info){ htobe64((uintptr_t)buf), htobe32(mr->rkey), htobe32(BUFLEN) };
		cp.private_data = &in;
		cp.private_data_len = sizeof(in);
		cp.qp_num = id->qp->qp_num;
		if (rdma_accept(id, &cp))
			die("rdma_accept");
		if (!ud)
			rdma_ack_cm_event(event(RDMA_CM_EVENT_ESTABLISHED));
		fflush(stdout);
		while (open) {
			struct ibv_wc wc;
			struct pollfd p = { .fd = ch->fd, .events = POLLIN };

			while (ibv_poll_cq(cq, 1, &wc) > 0) {
				printf("wc: %s opcode %d len %u flags %x imm %x first %02x\n",
				       ibv_wc_status_str(wc.status), wc.opcode, wc.byte_len, wc.wc_flags,
				       wc.wc_flags & IBV_WC_WITH_IMM ? ntohl(wc.imm_data) : 0,
				       rbuf[wc.wr_id * (RECVLEN + GRH) + (ud ? GRH : 0)]);
				fflush(stdout);
				/* a datagram connection has no end but the last message, a send of 1 byte */
				if (ud && wc.byte_len == GRH + 1)
					open = 0;
			}
			if (poll(&p, 1, 2) > 0) {
				if (rdma_get_cm_event(ch, &ev))
					die("rdma_get_cm_event");
				printf("cm: %s status %d\n", rdma_event_str(ev->event), ev->status);
				open = ev->event != RDMA_CM_EVENT_DISCONNECTED;
				rdma_ack_cm_event(ev);
			}
		}
		if (!ud)
			rdma_disconnect(id);
		teardown(id);
		rdma_destroy_id(id);
		fflush(stdout);
	}
	rdma_destroy_id(lid);
	return 0;
}

static enum ibv_wc_status complete(int n)
{
	enum ibv_wc_status st = IBV_WC_SUCCESS;
	struct ibv_wc wc;
	int spins = 0;

	while (n > 0) {
		int got = ibv_poll_cq(cq, 1, &wc);

		if (got < 0)
			die("ibv_poll_cq");
		if (!got) {
			if (++spins > 60000) {
				fprintf(stderr, "peer-ops: no completion\n");
				exit(1);
			}
			usleep(500);
			continue;
		}
		if (wc.opcode & IBV_WC_RECV && wc.status == IBV_WC_SUCCESS)
			continue;
		if (st == IBV_WC_SUCCESS)
			st = wc.status;
		n--;
	}
	return st;
}

static int client(const char *addr, const char *port, char **ops)
{
	struct rdma_addrinfo hints = { .ai_port_space = ud ? RDMA_PS_UDP : RDMA_PS_TCP }, *ai;
	struct rdma_conn_param cp = { .responder_resources = 4, .initiator_depth = 4,
				      .retry_count = 7, .rnr_retry_count = 2 };
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	struct ibv_ah *ah = NULL;
	uint32_t rqpn = 0, rqkey = 0;
	struct info in = { 0 };
	int failed = 0, iwarp, gone = 0;

	if (rdma_getaddrinfo(addr, port, &hints, &ai) ||
	    rdma_create_id(ch, &id, NULL, ud ? RDMA_PS_UDP : RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, ai->ai_dst_addr, 5000))
		die("rdma_resolve_addr");
	rdma_ack_cm_event(event(RDMA_CM_EVENT_ADDR_RESOLVED));
	if (rdma_resolve_route(id, 5000))
		die("rdma_resolve_route");
	rdma_ack_cm_event(event(RDMA_CM_EVENT_ROUTE_RESOLVED));
	iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	setup(id, 4);
	cp.private_data = "peer-ops";
	cp.private_data_len = 8;
	cp.qp_num = id->qp->qp_num;
	if (rdma_connect(id, &cp))
		die("rdma_connect");
	ev = event(RDMA_CM_EVENT_ESTABLISHED);
	if (ud) {
		ah = ibv_create_ah(id->pd, &ev->param.ud.ah_attr);
		rqpn = ev->param.ud.qp_num;
		rqkey = ev->param.ud.qkey;
		if (!ah)
			die("ibv_create_ah");
		if (ev->param.ud.private_data_len >= sizeof(in))
			memcpy(&in, ev->param.ud.private_data, sizeof(in));
	} else if (ev->param.conn.private_data_len >= sizeof(in)) {
		memcpy(&in, ev->param.conn.private_data, sizeof(in));
	}
	rdma_ack_cm_event(ev);
	if (!ud && pathmtu) {
		struct ibv_qp_attr a;
		struct ibv_qp_init_attr ia;

		if (!ibv_query_qp(id->qp, &a, IBV_QP_PATH_MTU, &ia))
			printf("path mtu %d\n", 128 << a.path_mtu);
	}
	uint64_t raddr = be64toh(in.addr);
	uint32_t rkey = be32toh(in.rkey), rlen = be32toh(in.len);
	printf("device %s, peer's buffer %llx key %x length %u\n", ibv_get_device_name(id->verbs->device),
	       (unsigned long long)raddr, rkey, rlen);

	for (; *ops && !failed; ops++) {
		char op[32], *colon;
		struct ibv_sge sge = { (uintptr_t)buf, 64, mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED }, *bad;
		int mustfail = 0, count = 1, i;
		enum ibv_wc_status st;

		snprintf(op, sizeof(op), "%s", *ops);
		colon = strchr(op, ':');
		if (colon) {
			*colon = 0;
			sge.length = atoi(colon + 1);
			if (sge.length > BUFLEN) {
				fprintf(stderr, "peer-ops: at most %u bytes\n", BUFLEN);
				return 2;
			}
		}
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = rkey;
		if (!strcmp(op, "send")) {
			wr.opcode = IBV_WR_SEND;
		} else if (!strcmp(op, "sendimm")) {
			wr.opcode = IBV_WR_SEND_WITH_IMM;
			wr.imm_data = htonl(0xcafe0001);
		} else if (!strcmp(op, "write")) {
			wr.opcode = IBV_WR_RDMA_WRITE;
		} else if (!strcmp(op, "burst")) {
			wr.opcode = IBV_WR_RDMA_WRITE;
			count = 8;
		} else if (!strcmp(op, "writeimm")) {
			wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
			wr.imm_data = htonl(0xcafe0002);
		} else if (!strcmp(op, "read")) {
			wr.opcode = IBV_WR_RDMA_READ;
			memset(buf, 0xa5, sge.length);
		} else if (!strcmp(op, "cas") || !strcmp(op, "fadd")) {
			wr.opcode = *op == 'c' ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
			sge.length = 8;
			wr.wr.atomic.remote_addr = raddr + 4096;
			wr.wr.atomic.rkey = rkey;
			wr.wr.atomic.compare_add = 0x1122334455667788;
			wr.wr.atomic.swap = 0x99aabbccddeeff00;
		} else if (!strcmp(op, "badkey-write") || !strcmp(op, "oob-write")) {
			wr.opcode = IBV_WR_RDMA_WRITE;
			mustfail = 1;
		} else if (!strcmp(op, "badkey-read") || !strcmp(op, "oob-read")) {
			wr.opcode = IBV_WR_RDMA_READ;
			mustfail = 1;
		} else if (!strcmp(op, "toolong")) {
			wr.opcode = IBV_WR_SEND;
			sge.length = RECVLEN + 1;
			mustfail = 1;
		} else if (!strcmp(op, "badinv")) {
			wr.opcode = IBV_WR_SEND_WITH_INV;
			wr.invalidate_rkey = 0xdeadbe00;
			mustfail = -1;
		} else if (!strcmp(op, "rnr")) {
			wr.opcode = IBV_WR_SEND;
			mustfail = 1;
			count = 12;
		} else {
			fprintf(stderr, "peer-ops: no op %s\n", op);
			return 2;
		}
		if (!strncmp(op, "badkey", 6))
			wr.wr.rdma.rkey ^= 0x5a5a5a;
		if (!strncmp(op, "oob", 3))
			wr.wr.rdma.remote_addr += rlen - sge.length / 2;
		if (ud) {
			wr.wr.ud.ah = ah;
			wr.wr.ud.remote_qpn = rqpn;
			wr.wr.ud.remote_qkey = rqkey;
		}
		if (!sge.length)
			wr.num_sge = 0;
		for (i = 0; i < count; i++)
			if (ibv_post_send(id->qp, &wr, &bad)) {
				printf("op %s: not posted: %s\n", *ops, strerror(errno));
				failed = 1;
				break;
			}
		st = i ? complete(i) : IBV_WC_SUCCESS;
		printf("op %s: %s", *ops, ibv_wc_status_str(st));
		if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			uint64_t v;

			memcpy(&v, buf, 8);
			printf(" old value %016llx", (unsigned long long)v);
		}
		printf("\n");
		/*
		 * An iWARP send or write is complete once TCP has it; what the other
		 * side finds wrong comes as a Terminate and ends the connection.
		 */
		if (mustfail && iwarp) {
			struct pollfd p = { .fd = ch->fd, .events = POLLIN };

			gone = poll(&p, 1, 5000) > 0;
			if (mustfail > 0 && !gone) {
				printf("  and the connection goes on\n");
				failed = 1;
			}
			break;
		}
		if (mustfail >= 0 && (st != IBV_WC_SUCCESS) != mustfail)
			failed = 1;
		if (!strcmp(op, "read"))
			for (i = 0; i < (int)sge.length; i++)
				if (buf[i] != (unsigned char)(i ^ (i >> 8))) {
					printf("  wrong byte at %d: %02x\n", i, buf[i]);
					failed = 1;
					break;
				}
		if (!strncmp(op, "cas", 3) || !strncmp(op, "fadd", 4))
			for (i = 0; i < 8; i++)
				buf[i] = i;
		if (mustfail)
			break;
	}
	if (ud) {	/* the last message */
		struct ibv_sge sge = { (uintptr_t)buf, 1, mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED }, *bad;

		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = rqpn;
		wr.wr.ud.remote_qkey = rqkey;
		if (!ibv_post_send(id->qp, &wr, &bad))
			complete(1);
		ibv_destroy_ah(ah);
	} else {
		if (!gone)
			rdma_disconnect(id);
		if (!rdma_get_cm_event(ch, &ev)) {
			printf("cm: %s status %d\n", rdma_event_str(ev->event), ev->status);
			rdma_ack_cm_event(ev);
		}
	}
	teardown(id);
	rdma_destroy_id(id);
	rdma_freeaddrinfo(ai);
	printf(failed ? "FAILED\n" : "ok\n");
	return failed;
}

int main(int argc, char **argv)
{
	const char *addr = NULL, *port = "7471";
	int opt, conns = 1, srv = 0;

	while ((opt = getopt(argc, argv, "sc:u6jp:n:r:m")) != -1)
		switch (opt) {
		case 's': srv = 1; break;
		case 'c': addr = optarg; break;
		case 'u': ud = 1; break;
		case '6': v6 = 1; break;
		case 'j': reject = 1; break;
		case 'p': port = optarg; break;
		case 'n': conns = atoi(optarg); break;
		case 'r': nrecv = atoi(optarg); break;
		case 'm': pathmtu = 1; break;
		default: return 2;
		}
	if (srv == !!addr || nrecv > 64) {
		fprintf(stderr, "usage: peer-ops -s | -c address ... (see the source)\n");
		return 2;
	}
	ch = rdma_create_event_channel();
	if (!ch)
		die("rdma_create_event_channel");
	return srv ? server(port, conns) : client(addr, port, argv + optind);
}
