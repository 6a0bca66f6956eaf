/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC, the requester: a request is done when its last packet has left, and one that fails stops
 * the send queue alone (SQE). And both sides of a captured ibv_uc_pingpong: what the kernel's
 * rdma_rxe sent we take, and send alike.
 */
#include <errno.h>

#include "wire.h"

#define RADDR 0x7000000u
#define RKEY 0x1234u

static uint8_t data[8192];

static struct wire *
start(struct wire_params p)
{
	struct wire *w;

	p.type = VERBS_QPT_UC;
	wire_pattern(data, sizeof(data), 5);
	w = wire_new(&p);
	memcpy(w->mem, data, sizeof(data));
	return w;
}

static void
end(struct wire *w)
{
	wire_expect_none(w);
	wire_no_cqe(w);
	wire_free(w);
}

static void
post(struct wire *w, uint8_t opcode, uint32_t len)
{
	wire_post(w, opcode, 0, len, 0, RADDR, RKEY);
}

/** A SEND whose key is none. */
static void
post_bad(struct wire *w)
{
	struct ring_wqe q = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = 1, .sge = {{WIRE_VA, 8, w->key ^ 1}}};

	wire_post_raw(w, &q);
}

static void
post_inline(struct wire *w, uint8_t flags)
{
	struct ring_wqe q = {.opcode = RING_WR_SEND, .flags = flags | RING_WR_INLINE,
			     .num_slots = 1, .inline_len = 4};

	wire_post_raw(w, &q);
}

/** The next packet, with A = 0. */
static struct roce_pkt
expect(struct wire *w, uint8_t opcode, uint32_t psn, uint32_t len)
{
	struct roce_pkt p;

	wire_expect(w, opcode, psn, &p);
	ck_assert(!p.ackreq);
	ck_assert_uint_eq(p.payload_len, len);
	return p;
}

/* ---- packets ---------- */

/* Each opcode, over the PSNs' end, complete without a word from the peer. */
START_TEST(ROCE_C_14__packets)
{
	struct wire *w = start((struct wire_params){.sq_psn = 0xfffffe});
	struct roce_pkt p;

	post(w, RING_WR_SEND, 2055);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).src_opcode, RING_WC_SEND << 24);
	expect(w, ROCE_UC_SEND_FIRST, 0xfffffe, 1024);
	expect(w, ROCE_UC_SEND_MIDDLE, 0xffffff, 1024);
	expect(w, ROCE_UC_SEND_LAST, 0, 7);
	wire_post(w, RING_WR_SEND_WITH_IMM, 0, 1030, RING_WR_SOLICITED, 0, 0);
	expect(w, ROCE_UC_SEND_FIRST, 1, 1024);
	p = expect(w, ROCE_UC_SEND_LAST_IMM, 2, 6);
	ck_assert(p.se);
	ck_assert_uint_eq(p.imm_be, 0x11223344);
	post(w, RING_WR_SEND, 0);
	expect(w, ROCE_UC_SEND_ONLY, 3, 0);
	post(w, RING_WR_SEND_WITH_IMM, 5);
	expect(w, ROCE_UC_SEND_ONLY_IMM, 4, 5);
	post(w, RING_WR_RDMA_WRITE, 3000);
	p = expect(w, ROCE_UC_WRITE_FIRST, 5, 1024);
	ck_assert_uint_eq(p.va, RADDR);
	ck_assert_uint_eq(p.rkey, RKEY);
	ck_assert_uint_eq(p.dma_len, 3000);
	expect(w, ROCE_UC_WRITE_MIDDLE, 6, 1024);
	expect(w, ROCE_UC_WRITE_LAST, 7, 952);
	post(w, RING_WR_RDMA_WRITE_WITH_IMM, 1025);
	expect(w, ROCE_UC_WRITE_FIRST, 8, 1024);
	expect(w, ROCE_UC_WRITE_LAST_IMM, 9, 1);
	post(w, RING_WR_RDMA_WRITE, 8);
	expect(w, ROCE_UC_WRITE_ONLY, 10, 8);
	post(w, RING_WR_RDMA_WRITE_WITH_IMM, 8);
	expect(w, ROCE_UC_WRITE_ONLY_IMM, 11, 8);
	for (int i = 0; i < 7; i++)
		wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(roce_next_deadline(w->r), UINT64_MAX); /* nobody is waited for */
	end(w);
}
END_TEST

/* More than any window of RC, and more PSNs than can be told apart, without a word. */
START_TEST(no_window)
{
	struct wire *w = start((struct wire_params){.max_inflight = 2048, .mtu = 256});
	struct roce_qp *qp = (struct roce_qp *)w->qp;

	for (uint32_t i = 0; i < 300; i++) {
		post_inline(w, i % 16 == 0 ? RING_WR_SIGNALED : 0);
		wire_go(w);
		expect(w, ROCE_UC_SEND_ONLY, 0x100 + i, 4);
	}
	for (uint32_t i = 0; i < 300; i += 16)
		ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).wqe_index, i);
	ck_assert_uint_eq(qp->inflight, 0);
	/* as after half of all PSNs */
	qp->req_psn = qp->nxt_psn = qp->snd_max = psn_add(qp->snd_max, 0x7fffff);
	qp->una = qp->ack_max = qp->snd_max;
	post_inline(w, RING_WR_SIGNALED);
	wire_go(w);
	wire_forget(w);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(qp->ack_max, qp->una);
	end(w);
}
END_TEST

/* It is done when it stands in the batch, and not before. */
START_TEST(port__full_batch)
{
	struct wire *w = start((struct wire_params){0});

	w->tx_stuck = true;
	for (uint32_t i = 0; i < NET_TX_BATCH + 10; i++)
		post_inline(w, RING_WR_SIGNALED);
	for (int i = 0; i < 4; i++)
		wire_go(w);
	for (uint32_t i = 0; i < NET_TX_BATCH; i++)
		wire_cqe(w, WC_SUCCESS);
	wire_no_cqe(w);
	w->tx_stuck = false;
	wire_go(w);
	for (uint32_t i = 0; i < 10; i++)
		wire_cqe(w, WC_SUCCESS);
	for (uint32_t i = 0; i < NET_TX_BATCH + 10; i++)
		expect(w, ROCE_UC_SEND_ONLY, 0x100 + i, 4);
	end(w);
}
END_TEST

/* A message of many turns is complete with its last packet, in its turn. */
START_TEST(long_message__completes_with_its_last)
{
	struct wire *w = start((struct wire_params){0});
	uint32_t len = 100 * 1024;

	w->tx_stuck = true;
	wire_post(w, RING_WR_RDMA_WRITE, 0, len, 0, RADDR, RKEY);
	post_inline(w, RING_WR_SIGNALED);
	wire_no_cqe(w);
	for (int i = 0; i < 10; i++)
		wire_go(w);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).wqe_index, 0);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).wqe_index, 1);
	w->tx_stuck = false;
	wire_go(w);
	wire_forget(w);
	end(w);
}
END_TEST

/* An answer to a UC QP is none: it has no such opcodes, and RC's are another class. */
START_TEST(ROCE_C_8__acknowledgements_mean_nothing)
{
	struct wire *w = start((struct wire_params){0});

	wire_ack(w, 0x100, ROCE_NAK_REM_ACCESS, 0);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_QP_TYPE), 1);
	ck_assert_uint_eq(w->qp->state, RING_QPS_RTS);
	end(w);
}
END_TEST

START_TEST(ROCE_C_10__source_port)
{
	struct wire *w = start((struct wire_params){.qpn = 0x18, .dest_qpn = 0x18,
						    .flow_label = _i ? 0xafa45 : 0});

	for (uint32_t i = 0; i < 3; i++) {
		const uint8_t *udp;

		post(w, RING_WR_SEND, 8);
		expect(w, ROCE_UC_SEND_ONLY, 0x100 + i, 8);
		udp = rte_pktmbuf_mtod_offset(wire_last(w), const uint8_t *, 34);
		ck_assert_uint_eq(udp[0] << 8 | udp[1], _i ? 0xfa6e : 0xc240);
		wire_cqe(w, WC_SUCCESS);
	}
	end(w);
}
END_TEST

/* It waits for the next hop's address, but not for one that does not answer. */
START_TEST(neighbour__unknown_or_dead)
{
	struct wire *w = start((struct wire_params){0});
	uint64_t l2 = atomic_exchange(&w->neigh->l2, (uint64_t)NET_NEIGH_INCOMPLETE << 48);

	post(w, RING_WR_SEND, 1030);
	wire_wait(w, 100000000);
	wire_no_cqe(w);
	if (_i) {
		atomic_store(&w->neigh->l2, (uint64_t)NET_NEIGH_FAILED << 48);
		wire_wait(w, 2 * ROCE_NEIGH_RETRY_NS);
		ck_assert_uint_eq(wire_counter(w, ROCE_C_UC_UNREACHABLE), 2);
	}
	atomic_store(&w->neigh->l2, l2);
	roce_neigh_resolved(w->r, w->neigh, w->now);
	wire_go(w);
	if (!_i) {
		expect(w, ROCE_UC_SEND_FIRST, 0x100, 1024);
		expect(w, ROCE_UC_SEND_LAST, 0x101, 6);
	}
	wire_cqe(w, WC_SUCCESS);
	post(w, RING_WR_SEND, 8);
	expect(w, ROCE_UC_SEND_ONLY, 0x102, 8); /* the lost ones have had theirs */
	wire_cqe(w, WC_SUCCESS);
	end(w);
}
END_TEST

/* ---- foreign memory ---------- */

static void
post_far(struct wire *w, uint32_t len)
{
	struct ring_wqe q = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = 1, .sge = {{WIRE_VA, len, w->far_key}}};

	wire_post_raw(w, &q);
	wire_go(w);
}

START_TEST(foreign__done_when_it_has_left)
{
	struct wire *w = start((struct wire_params){0});

	memcpy(w->far, data, sizeof(data));
	post_far(w, 1030);
	post(w, RING_WR_SEND, 8);
	wire_expect_none(w);
	wire_no_cqe(w);
	wire_io(w, 0);
	expect(w, ROCE_UC_SEND_FIRST, 0x100, 1024);
	wire_no_cqe(w);
	wire_io(w, 0);
	expect(w, ROCE_UC_SEND_LAST, 0x101, 6);
	expect(w, ROCE_UC_SEND_ONLY, 0x102, 8);
	wire_cqe(w, WC_SUCCESS);
	wire_cqe(w, WC_SUCCESS);
	end(w);
}
END_TEST

START_TEST(foreign__fails)
{
	struct wire *w = start((struct wire_params){0});

	post_far(w, 3000);
	post(w, RING_WR_SEND, 8);
	wire_io(w, 0);
	expect(w, ROCE_UC_SEND_FIRST, 0x100, 1024);
	wire_io(w, -EFAULT);
	wire_cqe(w, WC_LOC_PROT_ERR);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_SQE);
	end(w);
}
END_TEST

/* ---- SQE ---------- */

static int
to_rts(struct wire *w)
{
	ck_assert_int_eq(verbs_qp_modify_check(VERBS_QPT_UC, w->qp->state, RING_QPS_RTS,
					       VERBS_QP_STATE), 0);
	return wire_modify(w, RING_QPS_RTS);
}

START_TEST(sqe__send_queue_alone)
{
	struct wire *w = start((struct wire_params){.credits = true});
	uint32_t i;

	wire_post_recv(w, 4096, 64);
	wire_post_recv(w, 8192, 64);
	post_inline(w, 0);
	post_bad(w);
	for (i = 0; i < 100; i++)
		post_inline(w, 0); /* flushed ones are told of, unsignaled too */
	wire_go(w);
	ck_assert_uint_eq(w->qp->state, RING_QPS_SQE);
	ck_assert_uint_eq(atomic_load(&w->daemon.state), RING_QPS_SQE);
	expect(w, ROCE_UC_SEND_ONLY, 0x100, 4);
	ck_assert_uint_eq(wire_cqe(w, WC_LOC_PROT_ERR).wqe_index, 1);
	for (i = 0; i < 100; i++)
		ck_assert_uint_eq(wire_cqe(w, WC_WR_FLUSH_ERR).wqe_index, 2 + i);
	wire_no_cqe(w); /* no receive */
	ck_assert_uint_eq(w->num_events, 0);
	/* what comes is taken, what is posted is flushed */
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_UC_SEND_ONLY, .psn = 0x200}, data, 8);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, 8);
	post(w, RING_WR_SEND, 8);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	/* and again in RTS, with the PSN that comes next */
	ck_assert_int_eq(to_rts(w), 0);
	post(w, RING_WR_SEND, 8);
	expect(w, ROCE_UC_SEND_ONLY, 0x101, 8);
	wire_cqe(w, WC_SUCCESS);
	end(w);
}
END_TEST

/* Inside a message: the PSNs that its rest would have had are the next message's. */
START_TEST(sqe__inside_a_message)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_wqe q = {.opcode = RING_WR_SEND, .flags = RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = 2, .sge = {{WIRE_VA, 2048, w->key}, {WIRE_VA, 1000, 77}}};

	wire_post_raw(w, &q);
	wire_go(w);
	expect(w, ROCE_UC_SEND_FIRST, 0x100, 1024);
	expect(w, ROCE_UC_SEND_MIDDLE, 0x101, 1024);
	wire_cqe(w, WC_LOC_PROT_ERR);
	ck_assert_int_eq(to_rts(w), 0);
	post(w, RING_WR_SEND, 1030);
	expect(w, ROCE_UC_SEND_FIRST, 0x102, 1024);
	expect(w, ROCE_UC_SEND_LAST, 0x103, 6);
	wire_cqe(w, WC_SUCCESS);
	end(w);
}
END_TEST

/* More was posted in SQE than one turn flushes: all of that is, and nothing that came later. */
START_TEST(sqe__back_before_all_is_flushed)
{
	struct wire *w = start((struct wire_params){0});
	struct verbs_qp_attr a = {.state = RING_QPS_RTS};

	post_bad(w);
	wire_go(w);
	wire_cqe(w, WC_LOC_PROT_ERR);
	for (uint32_t i = 0; i < 3 * ROCE_FLUSH_CQES; i++)
		post_inline(w, 0);
	ck_assert_int_eq(roce_qp_modify(w->r, w->qp, &a, VERBS_QP_STATE, w->now), 0);
	for (uint32_t i = 0; i < 3; i++)
		post_inline(w, RING_WR_SIGNALED);
	wire_go(w);
	for (uint32_t i = 0; i < 3 * ROCE_FLUSH_CQES; i++)
		wire_cqe(w, WC_WR_FLUSH_ERR);
	for (uint32_t i = 0; i < 3; i++) {
		wire_cqe(w, WC_SUCCESS);
		expect(w, ROCE_UC_SEND_ONLY, 0x100 + i, 4);
	}
	end(w);
}
END_TEST

/* What UC has not, and what no QP has. */
START_TEST(sqe__other_operations)
{
	static const uint8_t other[] = {RING_WR_RDMA_READ, RING_WR_ATOMIC_CMP_AND_SWP,
					RING_WR_ATOMIC_FETCH_AND_ADD, RING_WR_SEND_WITH_INV,
					RING_WR_ATOMIC_WRITE, RING_WR_FLUSH, 12};
	struct wire *w = start((struct wire_params){0});

	for (unsigned int i = 0; i < sizeof(other); i++) {
		wire_post(w, other[i], 0, 8, 0, RADDR, RKEY);
		wire_cqe(w, WC_LOC_QP_OP_ERR);
		ck_assert_uint_eq(w->qp->state, RING_QPS_SQE);
		ck_assert_int_eq(to_rts(w), 0);
	}
	post(w, RING_WR_SEND, 8);
	expect(w, ROCE_UC_SEND_ONLY, 0x100, 8);
	wire_cqe(w, WC_SUCCESS);
	end(w);
}
END_TEST

/* To ERR from there: receives are flushed now, too. */
START_TEST(sqe__to_error)
{
	struct wire *w = start((struct wire_params){.credits = true});

	wire_post_recv(w, 4096, 64);
	post_bad(w);
	wire_go(w);
	wire_cqe(w, WC_LOC_PROT_ERR);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	post(w, RING_WR_SEND, 8);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	end(w);
}
END_TEST

/* And to RESET, with requests that nothing is heard of any more. */
START_TEST(sqe__to_reset)
{
	struct wire *w = start((struct wire_params){0});

	post_bad(w);
	wire_go(w);
	wire_cqe(w, WC_LOC_PROT_ERR);
	for (uint32_t i = 0; i < 3; i++)
		post_inline(w, RING_WR_SIGNALED);
	wire_connect_again(w);
	wire_no_cqe(w);
	post(w, RING_WR_SEND, 8);
	expect(w, ROCE_UC_SEND_ONLY, 0x100, 8);
	wire_cqe(w, WC_SUCCESS);
	end(w);
}
END_TEST

/* ---- SQD ---------- */

/* What was begun is finished, what was posted waits (C-44). */
START_TEST(ROCE_C_44__drained)
{
	struct wire *w = start((struct wire_params){0});

	post_far(w, 1030);
	ck_assert_int_eq(wire_modify(w, RING_QPS_SQD), 0);
	post(w, RING_WR_SEND, 8);
	ck_assert_uint_eq(w->num_events, 0);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RTS), -EBUSY);
	wire_io(w, 0);
	wire_io(w, 0);
	expect(w, ROCE_UC_SEND_FIRST, 0x100, 1024);
	expect(w, ROCE_UC_SEND_LAST, 0x101, 6);
	wire_cqe(w, WC_SUCCESS);
	wire_expect_none(w);
	ck_assert_uint_eq(w->num_events, 1);
	ck_assert(wire_event(w, VERBS_EVENT_SQ_DRAINED));
	ck_assert_int_eq(wire_modify(w, RING_QPS_RTS), 0);
	expect(w, ROCE_UC_SEND_ONLY, 0x102, 8);
	wire_cqe(w, WC_SUCCESS);
	end(w);
}
END_TEST

START_TEST(sqd__fails)
{
	struct wire *w = start((struct wire_params){0});

	post_far(w, 1030);
	ck_assert_int_eq(wire_modify(w, RING_QPS_SQD), 0);
	post(w, RING_WR_SEND, 8);
	wire_io(w, -EFAULT);
	wire_cqe(w, WC_LOC_PROT_ERR);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_SQE);
	end(w);
}
END_TEST

START_TEST(local_inv__in_its_turn)
{
	struct wire *w = start((struct wire_params){0});
	struct ring_wqe q = {.opcode = RING_WR_LOCAL_INV, .flags = RING_WR_SIGNALED | RING_WR_FENCE,
			     .num_slots = 1};
	struct mr *mr = wire_key_fast(w);

	q.imm = w->key;
	wire_post(w, RING_WR_SEND, 0, 2000, 0, 0, 0);
	wire_post_raw(w, &q);
	post(w, RING_WR_SEND, 8); /* by that key */
	wire_cqe(w, WC_SUCCESS);
	ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).src_opcode, RING_WC_LOCAL_INV << 24);
	wire_cqe(w, WC_LOC_PROT_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_SQE);
	ck_assert_ptr_nonnull(mr);
	wire_forget(w);
	end(w);
}
END_TEST

/* ---- a captured ibv_uc_pingpong ---------- */

#define PINGPONG "roce-uc-pingpong.pcap"
#define PINGPONG_LEN 2100u
#define CLIENT_LAST_BYTE 3

/** The IP packet of the next frame of one side; NULL: no more. */
static const uint8_t *
golden_next(struct capture *c, bool client)
{
	size_t len;
	bool v6;

	while (capture_next(c)) {
		const uint8_t *ip = capture_ip(c, &len, &v6);

		if (roce_opcodes[ip[28]].transport == ROCE_TR_UC &&
		    (ip[15] == CLIENT_LAST_BYTE) == client)
			return ip;
	}
	return NULL;
}

static uint32_t
golden_psn(const uint8_t *bth)
{
	return (uint32_t)(bth[9] << 16 | bth[10] << 8 | bth[11]);
}

static struct wire *
golden_start(bool client, const char *us, const char *peer)
{
	struct wire_params p = {.us = us, .peer = peer};
	struct capture *c = capture_open(PINGPONG);
	const uint8_t *ip = golden_next(c, client);
	uint32_t psn = golden_psn(ip + 28), dest = golden_psn(ip + 24);

	capture_close(c);
	/* each end's QPN is that which the other one's packets name; both PSNs are the first */
	p.qpn = p.dest_qpn = dest;
	p.sq_psn = p.rq_psn = psn;
	return start(p);
}

/* Every message that the kernel's client sent arrives, and nothing is said. */
START_TEST(golden__received)
{
	struct wire *w = golden_start(true, NULL, NULL);
	struct capture *c = capture_open(PINGPONG);
	unsigned int messages = 0;

	for (uint32_t i = 0; i < 4; i++)
		wire_post_recv(w, 4096 * i, PINGPONG_LEN);
	memset(w->mem, 0, WIRE_MEM);
	while (golden_next(c, true))
		wire_frame(w, c->data, c->len);
	capture_close(c);
	for (; messages < 4; messages++) {
		const uint8_t *at = w->mem + 4096 * messages;

		ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, PINGPONG_LEN);
		for (uint32_t i = 0; i < PINGPONG_LEN; i++)
			ck_assert_uint_eq(at[i], 0x7b); /* what that program sends */
	}
	ck_assert_uint_eq(wire_counter(w, ROCE_C_OUT_OF_SEQUENCE), 0);
	end(w);
}
END_TEST

/* And what it sent, we send, byte for byte from UDP's port to the pad, but for MigReq. */
START_TEST(golden__sent)
{
	struct wire *w = golden_start(true, "192.0.2.3", "192.0.2.2");
	struct capture *c = capture_open(PINGPONG);
	struct roce_pkt p;
	const uint8_t *ip;

	memset(w->mem, 0x7b, PINGPONG_LEN);
	for (uint32_t i = 0; i < 4; i++)
		wire_post(w, RING_WR_SEND, 0, PINGPONG_LEN, 0, 0, 0);
	while ((ip = golden_next(c, true)) != NULL) {
		uint32_t len = (uint32_t)(ip[2] << 8 | ip[3]);
		uint8_t *ours;

		ck_assert(wire_sent(w, &p));
		ours = rte_pktmbuf_mtod_offset(wire_last(w), uint8_t *, 14);
		ck_assert_uint_eq(ours[29] & ROCE_BTH_MIGREQ, ROCE_BTH_MIGREQ);
		ours[29] &= (uint8_t)~ROCE_BTH_MIGREQ; /* difference 1 of docs/wire.md */
		ck_assert_uint_eq(wire_last(w)->pkt_len, 14 + len);
		ck_assert_int_eq(memcmp(ours + 20, ip + 20, len - 20 - ROCE_ICRC_LEN), 0);
	}
	capture_close(c);
	for (uint32_t i = 0; i < 4; i++)
		wire_cqe(w, WC_SUCCESS);
	end(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_uc_req");
	TCase *c = tcase_create("requester");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_test(c, ROCE_C_14__packets);
	tcase_add_test(c, no_window);
	tcase_add_test(c, port__full_batch);
	tcase_add_test(c, long_message__completes_with_its_last);
	tcase_add_test(c, ROCE_C_8__acknowledgements_mean_nothing);
	tcase_add_loop_test(c, ROCE_C_10__source_port, 0, 2);
	tcase_add_loop_test(c, neighbour__unknown_or_dead, 0, 2);
	tcase_add_test(c, foreign__done_when_it_has_left);
	tcase_add_test(c, foreign__fails);
	tcase_add_test(c, sqe__send_queue_alone);
	tcase_add_test(c, sqe__inside_a_message);
	tcase_add_test(c, sqe__back_before_all_is_flushed);
	tcase_add_test(c, sqe__other_operations);
	tcase_add_test(c, sqe__to_error);
	tcase_add_test(c, sqe__to_reset);
	tcase_add_test(c, ROCE_C_44__drained);
	tcase_add_test(c, sqd__fails);
	tcase_add_test(c, local_inv__in_its_turn);
	tcase_add_test(c, golden__received);
	tcase_add_test(c, golden__sent);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
