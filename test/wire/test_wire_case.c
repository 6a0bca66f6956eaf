/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that users of other implementations met, as scripts: each is named by its id in
 * docs/cases.md. What the conformance list covers already is tested in its place.
 */
#include <errno.h>

#include "ring_bell.h"
#include "wire_req.h"

static struct wire *
start(struct wire_params p)
{
	if (p.timeout == 0)
		p.timeout = 10;
	return wire_req_start(p);
}

static struct roce_pkt
req(uint8_t opcode, uint32_t psn)
{
	return (struct roce_pkt){.opcode = opcode, .psn = psn, .ackreq = true};
}

static struct roce_pkt
rdma(const struct wire *w, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	struct roce_pkt p = req(opcode, psn);

	p.va = WIRE_VA + off;
	p.rkey = w->key;
	p.dma_len = len;
	return p;
}

static void
post_write(struct wire *w, uint32_t len)
{
	wire_post(w, RING_WR_RDMA_WRITE, 0, len, 0, RADDR, RKEY);
}

/* ---- lengths ---------- */

/* B005: pad is covered by the ICRC, and is no payload. B196: 1444 bytes and more. */
START_TEST(B005__every_length_both_ways)
{
	struct wire *w = start((struct wire_params){.mtu = 4096});
	uint32_t psn = 0x101, msn = 1;
	struct roce_pkt p;

	for (uint32_t len = 1; len <= 1500; len++, psn++, msn++) {
		wire_post(w, RING_WR_SEND, 0, len, 0, 0, 0);
		wire_expect(w, ROCE_RC_SEND_ONLY, psn, &p);
		ck_assert_uint_eq(p.payload_len, len);
		ck_assert_mem_eq(p.payload, data, len);
		wire_ack(w, psn, ACK31, msn + 1);
		wire_cqe(w, WC_SUCCESS);
		memset(w->mem + 8192, 0xee, 1504);
		wire_post_recv(w, 8192, 1504);
		wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x1ff + msn), data + 1, len);
		wire_expect_ack(w, 0x1ff + msn, ACK31, msn);
		ck_assert_uint_eq(wire_cqe(w, WC_SUCCESS).byte_len, len);
		ck_assert_mem_eq(w->mem + 8192, data + 1, len);
		ck_assert_uint_eq(w->mem[8192 + len], 0xee);
		wire_expect_none(w);
	}
	wire_free(w);
}
END_TEST

/* B004: what we send has migrated (wire_sent() looks); of what comes either is taken. */
START_TEST(B004__either_migreq)
{
	struct wire *w = start((struct wire_params){0});

	for (uint32_t i = 0; i < 4; i++) {
		struct roce_pkt p = rdma(w, ROCE_RC_WRITE_ONLY, 0x200 + i, 8 * i, 8);

		p.migreq = i & 1;
		wire_pkt(w, p, data, 8);
		wire_expect_ack(w, 0x200 + i, ACK31, i + 1);
		post_write(w, 8);
		wire_expect(w, ROCE_RC_WRITE_ONLY, 0x101 + i, &p);
		ck_assert(p.migreq);
		wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_ACK, .psn = 0x101 + i, .msn = 2 + i,
					      .syndrome = ACK31, .migreq = i & 1}, NULL, 0);
		wire_cqe(w, WC_SUCCESS);
	}
	wire_free(w);
}
END_TEST

/* B174: a message longer than we say that there are is refused at its first packet. */
START_TEST(B174__longer_than_the_longest)
{
	const uint32_t key = 0x34567890;
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = rdma(w, _i & 1 ? ROCE_RC_READ_REQ : ROCE_RC_WRITE_FIRST, 0x200, 0,
				 ROCE_MAX_MSG + (_i & 2 ? 1 : 0));

	wire_mr_key(w, key, WIRE_VA, w->mem, UINT64_C(1) << 40,
		    MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ);
	p.rkey = key;
	w->tx_stuck = true; /* nobody wants all of that READ */
	wire_pkt(w, p, data, _i & 1 ? 0 : 1024);
	ck_assert_uint_eq(w->qp->state, _i & 2 ? RING_QPS_ERR : RING_QPS_RTS);
	ck_assert_int_eq(wire_modify(w, RING_QPS_RESET), 0);
	w->tx_stuck = false;
	wire_go(w);
	atomic_store(&mr_slot(w->vw.mrs, key)->word, 0);
	wire_free(w);
}
END_TEST

/* ---- retries ---------- */

/*
 * B029: a peer that tries for ever, 10 us apart, costs one answer a try and keeps nothing here.
 * B070: nor does the region that it named: it can be deregistered afterwards.
 */
START_TEST(B029_B070__receiver_not_ready_for_long)
{
	struct wire *w = start((struct wire_params){.min_rnr_timer = 1});
	struct roce_pkt p = _i ? rdma(w, ROCE_RC_WRITE_ONLY_IMM, 0x200, 0, 8)
			       : req(ROCE_RC_SEND_ONLY, 0x200);

	wire_wait(w, 4 * T(10)); /* the timer of what was sent before */
	for (uint32_t i = 0; i < 100000; i++) {
		wire_pkt(w, p, data, 8);
		wire_expect_ack(w, 0x200, roce_syn_rnr(1), 0);
		wire_expect_none(w);
	}
	ck_assert_uint_eq(roce_next_deadline(w->r), UINT64_MAX);
	ck_assert_uint_eq(w->vw.blocks_used, 0);
	ck_assert_uint_eq(roce_rx_held(w->r), 0);
	wire_post_recv(w, 64, 64);
	wire_pkt(w, p, data, 8);
	wire_expect_ack(w, 0x200, ACK31, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_no_cqe(w);
	ck_assert_int_eq(mr_kill(w->vw.mrs, w->key), 0);
	ck_assert(!mr_busy(w->vw.mrs, w->key));
	mr_release(w->vw.mrs, w->key);
	wire_free(w);
}
END_TEST

#define BIG (200u << 10)
#define BIG_PKTS (BIG / 1024)
#define LOST 77u

/* A responder that goes by RETHs and PSNs alone. */
struct sink {
	uint8_t *mem;
	uint64_t va; /* of the last RETH, and its packet */
	uint32_t psn;
};

static void
land(struct sink *s, const struct roce_pkt *p)
{
	uint64_t at;

	if (roce_all(roce_opcodes[p->opcode].mask, ROCE_RETH)) {
		ck_assert_uint_eq(p->va + p->dma_len, RADDR + BIG);
		s->va = p->va;
		s->psn = p->psn;
	}
	at = s->va - RADDR + (uint64_t)(p->psn - s->psn) * 1024;
	ck_assert_uint_le(at + p->payload_len, BIG);
	memcpy(s->mem + at, p->payload, p->payload_len);
}

/* B037: a packet amid a WRITE is lost: what is sent again lands where it belongs. */
START_TEST(B037__lost_middle_as_requester)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 7, .go_back_n = _i & 1});
	struct sink s = {.mem = calloc(1, BIG)};
	struct roce_pkt p;

	wire_pattern(w->mem, BIG, 5);
	post_write(w, BIG);
	for (uint32_t i = 0; i < BIG_PKTS; i++) {
		ck_assert(wire_sent(w, &p));
		ck_assert_uint_eq(p.psn, 0x101 + i);
		if (i < LOST)
			land(&s, &p);
	}
	if (_i & 2)
		wire_wait(w, T(10) + 10000);
	else
		wire_ack(w, 0x101 + LOST, ROCE_NAK_PSN_SEQ, 1);
	for (uint32_t n = 0; wire_sent(w, &p) || n == 0; n++)
		land(&s, &p);
	/* the peer has kept nothing: the rest is sent, too */
	wire_ack(w, 0x101 + LOST, ACK31, 1);
	wire_wait(w, T(10) + 10000);
	while (wire_sent(w, &p))
		land(&s, &p);
	wire_ack(w, 0x100 + BIG_PKTS, ACK31, 2);
	wire_cqe(w, WC_SUCCESS);
	ck_assert_mem_eq(s.mem, w->mem, BIG);
	free(s.mem);
	wire_free(w);
}
END_TEST

static void
send_rest(struct wire *w, const uint8_t *src, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		uint8_t op = i == 0		? ROCE_RC_WRITE_FIRST
			     : i + 1 < BIG_PKTS ? ROCE_RC_WRITE_MIDDLE
						: ROCE_RC_WRITE_LAST;
		struct roce_pkt p = rdma(w, op, 0x200 + i, 0, BIG);

		p.ackreq = i + 1 == BIG_PKTS;
		wire_pkt(w, p, src + i * 1024, 1024);
	}
}

/* B037 from the other side: the peer goes back with a Middle, which has no RETH. */
START_TEST(B037__lost_middle_as_responder)
{
	struct wire *w = start((struct wire_params){.strict = _i});
	uint8_t *src = malloc(BIG);

	wire_pattern(src, BIG, 9);
	send_rest(w, src, 0, LOST);
	send_rest(w, src, LOST + 1, BIG_PKTS);
	wire_expect_ack(w, 0x200 + LOST, ROCE_NAK_PSN_SEQ, 0);
	send_rest(w, src, LOST, BIG_PKTS);
	wire_forget(w);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x200 + BIG_PKTS, BIG, 0), NULL, 0);
	wire_expect_ack(w, 0x200 + BIG_PKTS, ACK31, 2);
	ck_assert_mem_eq(w->mem, src, BIG);
	free(src);
	wire_free(w);
}
END_TEST

/* B038: answers that the port does not take now are sent when it does, not when asked again. */
START_TEST(B038__port_takes_nothing_amid_a_read)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p;

	wire_pattern(w->mem, BIG, 3);
	w->tx_stuck = true;
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x200, 0, BIG), NULL, 0);
	for (int i = 0; i < 100; i++) {
		w->now += 1000000;
		wire_go(w);
	}
	wire_expect_none(w);
	w->tx_stuck = false;
	wire_go(w);
	for (uint32_t i = 0; i < BIG_PKTS; i++) {
		ck_assert(wire_sent(w, &p));
		ck_assert_uint_eq(p.psn, 0x200 + i);
		ck_assert_mem_eq(p.payload, w->mem + i * 1024, 1024);
	}
	wire_expect_none(w);
	wire_free(w);
}
END_TEST

/* B045: that retries ran out is told by completions, and raises no event of the QP. */
START_TEST(B045__exhausted_retries_raise_no_event)
{
	struct wire *w = start((struct wire_params){.credits = true});

	for (int i = 0; i < 3; i++)
		post_write(w, 8);
	if (_i)
		wire_ack(w, 0x101, roce_syn_rnr(1), 1);
	else
		wire_wait(w, 4 * T(10));
	wire_cqe(w, _i ? WC_RNR_RETRY_EXC_ERR : WC_RETRY_EXC_ERR);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	wire_cqe(w, WC_WR_FLUSH_ERR);
	wire_no_cqe(w);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	ck_assert_uint_eq(w->num_events, 0);
	wire_free(w);
}
END_TEST

/* B047: the peer is a black hole until all retries are gone; the QP is good for another. */
START_TEST(B047__connects_again_after_a_black_hole)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 3});

	for (int i = 0; i < 10; i++)
		wire_post(w, _i ? RING_WR_RDMA_READ : RING_WR_RDMA_WRITE, 0, 5000, 0, RADDR, RKEY);
	wire_wait(w, 20 * T(10));
	wire_cqe(w, WC_RETRY_EXC_ERR);
	for (int i = 0; i < 9; i++)
		wire_cqe(w, WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(w->qp->state, RING_QPS_ERR);
	ck_assert_uint_eq(w->vw.shadows_used, 0);
	wire_connect_again(w);
	wire_forget(w);
	/* what the old connection's peer says now is none of the new one's */
	wire_ack(w, 0x130, ACK31, 1);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_ONLY, .psn = 0x120, .msn = 1,
				      .syndrome = ACK31}, data, 8);
	wire_no_cqe(w);
	post_write(w, 8);
	wire_expect(w, ROCE_RC_WRITE_ONLY, 0x100, NULL);
	wire_ack(w, 0x100, ACK31, 1);
	wire_cqe(w, WC_SUCCESS);
	wire_free(w);
}
END_TEST

/* B055: more READs than the depth wait here, not at the peer. */
START_TEST(B055__many_reads_one_at_a_time)
{
	struct wire *w = start((struct wire_params){.rd_atomic = 1, .retry_cnt = 7});

	for (uint32_t i = 0; i < 32; i++)
		wire_post(w, RING_WR_RDMA_READ, 16384 + 8 * i, 8, 0, RADDR, RKEY);
	for (uint32_t i = 0; i < 32; i++) {
		wire_expect(w, ROCE_RC_READ_REQ, 0x101 + i, NULL);
		wire_expect_none(w);
		wire_no_cqe(w);
		wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_ONLY, .psn = 0x101 + i,
					      .syndrome = ACK31, .msn = 2 + i},
			 data + 8 * i, 8);
		wire_cqe(w, WC_SUCCESS);
	}
	ck_assert_mem_eq(w->mem + 16384, data, 32 * 8);
	wire_free(w);
}
END_TEST

/* B093: the link flaps and every answer is lost: an atomic seen again is answered, not done. */
START_TEST(B093__repeated_atomics_after_a_flap)
{
	struct wire *w = start((struct wire_params){.dest_rd_atomic = 4});
	uint64_t word[4] = {100, 200, 300, 400};
	struct roce_pkt p;

	memcpy(w->mem, word, sizeof(word));
	for (uint32_t turn = 0; turn < 3; turn++) {
		for (uint32_t i = 0; i < 4; i++) {
			p = rdma(w, i & 1 ? ROCE_RC_CMP_SWAP : ROCE_RC_FETCH_ADD, 0x200 + i, 8 * i,
				 0);
			p.swap_add = 7;
			p.compare = word[i];
			wire_pkt(w, p, NULL, 0);
		}
		for (uint32_t i = 0; i < 4; i++) {
			wire_expect(w, ROCE_RC_ATOMIC_ACK, 0x200 + i, &p);
			ck_assert_uint_eq(p.orig, word[i]);
			ck_assert_uint_eq(p.msn, i + 1);
		}
		wire_expect_none(w);
		if (turn == 0) { /* the memory goes on, the saved values do not */
			uint64_t now[4];

			memcpy(now, w->mem, sizeof(now));
			for (uint32_t i = 0; i < 4; i++)
				ck_assert_uint_eq(now[i], i & 1 ? 7 : word[i] + 7);
			memset(w->mem, 0, sizeof(word));
		}
	}
	for (uint32_t i = 0; i < sizeof(word); i++)
		ck_assert_uint_eq(w->mem[i], 0);
	wire_free(w);
}
END_TEST

/* ---- keys and memory ---------- */

/* B065: once a region has gone no byte comes through its key, whatever was under way. */
START_TEST(B065__nothing_lands_in_what_has_gone)
{
	struct wire *w = start((struct wire_params){0});
	struct roce_pkt p = rdma(w, ROCE_RC_WRITE_ONLY, 0x200, 0, 64);

	p.rkey = w->far_key;
	wire_pkt(w, p, data, 64);
	ck_assert_int_eq(mr_kill(w->vw.mrs, w->far_key), 0);
	ck_assert(mr_busy(w->vw.mrs, w->far_key)); /* a copier writes: not deregistered yet */
	wire_io(w, 0);
	ck_assert(!mr_busy(w->vw.mrs, w->far_key));
	mr_release(w->vw.mrs, w->far_key);
	wire_expect_ack(w, 0x200, ACK31, 1);
	memset(w->far, 0, 64);
	p.psn = 0x201;
	wire_pkt(w, p, data, 64);
	ck_assert_uint_eq(w->num_io, 0);
	wire_expect_ack(w, 0x201, ROCE_NAK_REM_ACCESS, 1);
	ck_assert_uint_eq(w->far[0], 0);
	wire_free(w);
}
END_TEST

START_TEST(B065__nothing_lands_behind_an_error)
{
	struct wire *w = start((struct wire_params){0});

	wire_pkt(w, rdma(w, ROCE_RC_WRITE_FIRST, 0x200, 16384, 3000), data, 1024);
	wire_pkt(w, req(ROCE_RC_WRITE_LAST, 0x202), data, 952); /* kept, behind a hole */
	wire_forget(w);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	memset(w->mem + 16384, 0, 3000);
	wire_pkt(w, req(ROCE_RC_WRITE_MIDDLE, 0x201), data, 1024);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_ONLY, 0x203, 16384, 8), data, 8);
	wire_expect_none(w);
	for (uint32_t i = 0; i < 3000; i++)
		ck_assert_uint_eq(w->mem[16384 + i], 0);
	wire_free(w);
}
END_TEST

/* B074: the memory that a READ fills needs local write and no remote right. */
START_TEST(B074__read_into_local_memory)
{
	static uint8_t sink[64];
	struct wire *w = start((struct wire_params){0});
	const uint32_t key = 0x23456789;
	struct ring_wqe q = {.opcode = RING_WR_RDMA_READ, .flags = RING_WR_SIGNALED,
			     .num_slots = 1, .num_sge = 1, .rkey = RKEY, .remote_addr = RADDR,
			     .sge = {{0x5000, 64, key}}};

	memset(sink, 0, sizeof(sink));
	wire_mr_key(w, key, 0x5000, sink, sizeof(sink), _i ? 0 : MR_LOCAL_WRITE);
	wire_post_raw(w, &q);
	wire_go(w);
	if (_i == 0) {
		wire_expect(w, ROCE_RC_READ_REQ, 0x101, NULL);
		wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_ONLY, .psn = 0x101,
					      .syndrome = ACK31, .msn = 2}, data, 64);
		wire_cqe(w, WC_SUCCESS);
		ck_assert_mem_eq(sink, data, 64);
	} else {
		wire_forget(w);
		wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_ONLY, .psn = 0x101,
					      .syndrome = ACK31, .msn = 2}, data, 64);
		wire_cqe(w, WC_LOC_PROT_ERR);
		ck_assert_uint_eq(sink[0], 0);
	}
	atomic_store(&mr_slot(w->vw.mrs, key)->word, 0);
	wire_free(w);
}
END_TEST

/* ---- ends ---------- */

/* B080: a request posted in ERR is flushed behind all others; then buffers are the owner's. */
START_TEST(B080__beacon_is_the_last)
{
	struct wire *w = start((struct wire_params){.credits = true, .retry_cnt = 7});
	uint32_t beacon;

	for (int i = 0; i < 3; i++)
		wire_post_recv(w, 32768, 64);
	wire_post(w, RING_WR_RDMA_READ, 16384, 2048, 0, RADDR, RKEY);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_FIRST, .psn = 0x101,
				      .syndrome = ACK31, .msn = 2}, data, 1024);
	post_write(w, 8);
	ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	beacon = w->sq_tail;
	post_write(w, 8);
	wire_post_recv(w, 32768, 64);
	ck_assert(ring_bell_needed_recv(&w->daemon)); /* B081: the library rings, in ERR alone */
	verbs_run_add(&w->vw, w->qp);
	wire_go(w);
	for (uint32_t sent = 1, received = 0; sent <= beacon || received < 4;) {
		struct ring_cqe e = wire_cqe(w, WC_WR_FLUSH_ERR);
		bool recv = (atomic_load(&e.tag) & RING_CQE_RECV) != 0;

		ck_assert_uint_eq(e.wqe_index, recv ? received++ : sent++);
	}
	wire_no_cqe(w);
	wire_forget(w);
	memset(w->mem + 16384, 0, 2048);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_LAST, .psn = 0x102,
				      .syndrome = ACK31, .msn = 2}, data, 1024);
	wire_pkt(w, req(ROCE_RC_SEND_ONLY, 0x200), data, 8);
	wire_expect_none(w);
	for (uint32_t i = 0; i < 2048; i++)
		ck_assert_uint_eq(w->mem[16384 + i], 0);
	wire_free(w);
}
END_TEST

/* B085: each signalled request completes once, however far it had come when the QP failed. */
START_TEST(B085__each_request_completes_once)
{
	struct wire *w = start((struct wire_params){.retry_cnt = 7, .rd_atomic = 2});
	static const uint8_t ops[] = {RING_WR_RDMA_WRITE, RING_WR_SEND, RING_WR_RDMA_READ};
	uint32_t acked = (uint32_t)_i;

	for (uint32_t i = 0; i < 24; i++)
		wire_post(w, ops[i % 3], 0, 8, 0, RADDR, RKEY);
	for (uint32_t i = 0; i < acked; i++) {
		if (i % 3 == 2)
			wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_ONLY,
						      .psn = 0x101 + i, .syndrome = ACK31,
						      .msn = 2 + i}, data, 8);
		else
			wire_ack(w, 0x101 + i, ACK31, 2 + i);
	}
	if (_i & 1)
		ck_assert_int_eq(wire_modify(w, RING_QPS_ERR), 0);
	else
		wire_ack(w, 0x101 + acked, ROCE_NAK_REM_OP, 2 + acked);
	for (uint32_t i = 0; i < 24; i++) {
		enum wc_status s = i < acked			? WC_SUCCESS
				   : i == acked && !(_i & 1)	? WC_REM_OP_ERR
								: WC_WR_FLUSH_ERR;

		ck_assert_uint_eq(wire_cqe(w, s).wqe_index, i + 1);
	}
	wire_no_cqe(w);
	wire_free(w);
}
END_TEST

/* B095: late packets for a QP that was destroyed, whatever its state was, get no answer. */
START_TEST(B095__late_packets)
{
	static const unsigned int to[] = {RING_QPS_RTS, RING_QPS_SQD, RING_QPS_ERR, RING_QPS_RESET};
	struct wire *w = start((struct wire_params){.retry_cnt = 7});

	wire_post(w, RING_WR_RDMA_READ, 16384, 2048, 0, RADDR, RKEY);
	wire_pkt(w, rdma(w, ROCE_RC_WRITE_FIRST, 0x200, 0, 3000), data, 1024);
	wire_pkt(w, req(ROCE_RC_WRITE_LAST, 0x202), data, 952); /* kept */
	if (to[_i] != RING_QPS_RTS)
		ck_assert_int_eq(wire_modify(w, to[_i]), 0);
	roce_qpn_set(w->qpns, WIRE_QPN, NULL, 0);
	wire_forget(w);
	memset(w->mem, 0, 32768);
	wire_pkt(w, req(ROCE_RC_WRITE_MIDDLE, 0x201), data, 1024);
	wire_pkt(w, rdma(w, ROCE_RC_READ_REQ, 0x203, 0, 8), NULL, 0);
	wire_pkt(w, (struct roce_pkt){.opcode = ROCE_RC_READ_RESP_FIRST, .psn = 0x101,
				      .syndrome = ACK31, .msn = 2}, data, 1024);
	wire_ack(w, 0x102, ROCE_NAK_PSN_SEQ, 2);
	wire_expect_none(w);
	ck_assert_uint_eq(wire_counter(w, ROCE_C_DROP_NO_QP), 4);
	for (uint32_t i = 0; i < 32768; i++)
		ck_assert_uint_eq(w->mem[i], 0);
	wire_free(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_case");
	TCase *c = tcase_create("case");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_test(c, B004__either_migreq);
	tcase_add_test(c, B005__every_length_both_ways);
	tcase_add_loop_test(c, B174__longer_than_the_longest, 0, 4);
	tcase_add_loop_test(c, B029_B070__receiver_not_ready_for_long, 0, 2);
	tcase_add_loop_test(c, B037__lost_middle_as_requester, 0, 4);
	tcase_add_loop_test(c, B037__lost_middle_as_responder, 0, 2);
	tcase_add_test(c, B038__port_takes_nothing_amid_a_read);
	tcase_add_loop_test(c, B045__exhausted_retries_raise_no_event, 0, 2);
	tcase_add_loop_test(c, B047__connects_again_after_a_black_hole, 0, 2);
	tcase_add_test(c, B055__many_reads_one_at_a_time);
	tcase_add_test(c, B065__nothing_lands_in_what_has_gone);
	tcase_add_test(c, B065__nothing_lands_behind_an_error);
	tcase_add_loop_test(c, B074__read_into_local_memory, 0, 2);
	tcase_add_test(c, B080__beacon_is_the_last);
	tcase_add_loop_test(c, B085__each_request_completes_once, 0, 25);
	tcase_add_test(c, B093__repeated_atomics_after_a_flap);
	tcase_add_loop_test(c, B095__late_packets, 0, 4);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
