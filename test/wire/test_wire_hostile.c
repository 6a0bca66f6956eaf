/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that means harm: packets with the right addresses and ICRC, and random opcodes, PSNs,
 * lengths, keys and addresses, drawn near what the engine expects so that they get far. It may
 * write what its keys allow and nothing else, and nothing may leak. WIRE_PACKETS says how many.
 */
#include <errno.h>

#include "base_rng.h"
#include "wire.h"

#define PACKETS 60000
#define OPEN_OFF (64u << 10) /* what the peer may write: a quarter of the memory */
#define OPEN_LEN (64u << 10)
#define RECV_OFF 0u /* where receives lie: the first quarter */
#define OPEN_KEY 0x33445502u
#define READ_KEY 0x33445603u

struct hostile {
	struct wire *w;
	struct rng rng;
	uint8_t *copy; /* of the memory when it was looked at last */
	uint8_t payload[4096];
	bool dead; /* the open key, for the moment */
	uint32_t resets;
};

static uint32_t
below(struct hostile *h, uint32_t n)
{
	return (uint32_t)rng_below(&h->rng, n);
}

static uint32_t
any32(struct hostile *h)
{
	return below(h, 1u << 16) << 16 | below(h, 1u << 16);
}

static struct mr *
open_mr(struct hostile *h)
{
	return mr_slot(h->w->vw.mrs, OPEN_KEY);
}

static void
set_open(struct hostile *h, bool dead)
{
	uint64_t word = atomic_load(&open_mr(h)->word);

	atomic_store(&open_mr(h)->word,
		     mr_word_set_state(word, dead ? MR_STATE_DYING : MR_STATE_VALID));
	h->dead = dead;
}

static struct hostile *
hostile_new(uint64_t seed)
{
	struct hostile *h = calloc(1, sizeof(*h));
	struct wire_params p = {.timeout = 4, .retry_cnt = 2, .rnr_retry = 3, .min_rnr_timer = 1,
				.credits = seed & 1, .mtu = 256, .max_rx_held_qp = 16,
				.sq_psn = 0xffff80, .rq_psn = 0xfffff0};

	rng_seed(&h->rng, seed);
	h->w = wire_new(&p);
	wire_pattern(h->w->mem, WIRE_MEM, (uint32_t)seed);
	wire_pattern(h->payload, sizeof(h->payload), 0x5a);
	h->copy = malloc(WIRE_MEM);
	wire_mr_key(h->w, OPEN_KEY, WIRE_VA + OPEN_OFF, h->w->mem + OPEN_OFF, OPEN_LEN,
		    MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC);
	wire_mr_key(h->w, READ_KEY, WIRE_VA, h->w->mem, WIRE_MEM, MR_REMOTE_READ);
	memcpy(h->copy, h->w->mem, WIRE_MEM);
	return h;
}

/** Only what the peer may write has changed. */
static void
hostile_look(struct hostile *h)
{
	const uint8_t *mem = h->w->mem, *copy = h->copy;
	uint32_t end = OPEN_OFF + OPEN_LEN, half = end + (WIRE_MEM - end) / 2;

	ck_assert_mem_eq(mem + end, copy + end, half - end);
	if (h->dead)
		ck_assert_mem_eq(mem + OPEN_OFF, copy + OPEN_OFF, OPEN_LEN);
	ck_assert_uint_le(roce_rx_held(h->w->r), 17);
}

/* ---- packets ---------- */

static uint32_t
pick_len(struct hostile *h)
{
	static const uint32_t len[] = {0, 1, 8, 255, 256, 257, 512, 1024, 5000, OPEN_LEN,
				       OPEN_LEN + 1, 1u << 31, (1u << 31) + 1, UINT32_MAX};

	return len[below(h, below(h, 4) ? 9 : RTE_DIM(len))];
}

static uint64_t
pick_va(struct hostile *h, uint32_t len)
{
	switch (below(h, 16)) {
	case 0:
		return UINT64_MAX - below(h, 4096);
	case 1:
		return WIRE_VA + OPEN_OFF + OPEN_LEN - len + 1;
	case 2:
		return WIRE_VA + OPEN_OFF - 1;
	case 3:
		return (uint64_t)any32(h) << 32 | any32(h);
	default:
		return WIRE_VA + OPEN_OFF + (below(h, OPEN_LEN) & ~7u);
	}
}

static uint32_t
pick_key(struct hostile *h)
{
	switch (below(h, 24)) {
	case 0:
		return any32(h);
	case 1:
		return READ_KEY;
	case 2:
		return h->w->far_key;
	case 3:
		return OPEN_KEY ^ (1u << below(h, 32));
	default:
		return OPEN_KEY;
	}
}

static uint32_t
pick_psn(struct hostile *h, uint32_t next)
{
	switch (below(h, 10)) {
	case 0:
		return any32(h) & PSN_MASK;
	case 1:
	case 2:
		return psn_add(psn_sub(next, 40), below(h, 40));
	case 3:
		return psn_add(next, below(h, 20));
	default:
		return next;
	}
}

static const struct roce_qp *
engine_qp(const struct hostile *h)
{
	return (const struct roce_qp *)h->w->qp;
}

/** An opcode, often one that goes on with what is open. */
static uint8_t
pick_opcode(struct hostile *h)
{
	const struct roce_qp *qp = engine_qp(h);
	bool send = qp->msg == ROCE_B_SEND;

	if (below(h, 8) == 0)
		return (uint8_t)below(h, 0x20);
	if (qp->msg && below(h, 3))
		return send ? ROCE_RC_SEND_MIDDLE : ROCE_RC_WRITE_MIDDLE;
	if (qp->msg)
		return send ? ROCE_RC_SEND_LAST : ROCE_RC_WRITE_LAST;
	return (uint8_t)below(h, 0x18);
}

/** A payload that fits the opcode, mostly. */
static uint32_t
pick_payload(struct hostile *h, const struct roce_pkt *p)
{
	const struct roce_opcode_info *info = &roce_opcodes[p->opcode];
	uint32_t left = engine_qp(h)->msg_left;

	if (below(h, 12) == 0)
		return below(h, 300);
	switch (info->payload) {
	case ROCE_PAYLOAD_PMTU:
		return 256;
	case ROCE_PAYLOAD_1_PMTU:
		return p->opcode == ROCE_RC_WRITE_LAST && left && left <= 256 ? left
									      : 1 + below(h, 256);
	case ROCE_PAYLOAD_0_PMTU:
		return info->reth && p->dma_len <= 256 ? p->dma_len : below(h, 257);
	case ROCE_PAYLOAD_8:
		return 8;
	default:
		return 0;
	}
}

static void
hostile_packet(struct hostile *h)
{
	const struct roce_qp *qp = engine_qp(h);
	struct roce_pkt p = {.opcode = pick_opcode(h), .ackreq = below(h, 2), .se = below(h, 2),
			     .dma_len = pick_len(h), .rkey = pick_key(h),
			     .inv_rkey = pick_key(h), .syndrome = (uint8_t)any32(h),
			     .msn = any32(h) & PSN_MASK, .compare = any32(h),
			     .swap_add = any32(h), .orig = any32(h)};
	uint32_t out = psn_sub(qp->snd_max, qp->una);

	if (roce_any(roce_opcodes[p.opcode].mask, ROCE_RESPONSE)) {
		p.psn = pick_psn(h, out ? psn_add(qp->una, below(h, out)) : qp->una);
		if (below(h, 4))
			p.syndrome = roce_syn_ack(ROCE_CREDIT_CODE_NONE);
	} else {
		p.psn = pick_psn(h, qp->epsn);
	}
	p.va = pick_va(h, p.dma_len);
	if (roce_opcodes[p.opcode].transport == ROCE_TR_NONE)
		return;
	if (below(h, 4))
		wire_pkt(h->w, p, h->payload, pick_payload(h, &p));
	else /* together with the next */
		wire_pkt_only(h->w, p, h->payload, pick_payload(h, &p));
}

/* ---- the client beside it ---------- */

static void
hostile_client(struct hostile *h)
{
	static const uint8_t op[] = {RING_WR_SEND, RING_WR_RDMA_WRITE, RING_WR_RDMA_READ,
				     RING_WR_ATOMIC_FETCH_AND_ADD};
	uint8_t opcode = op[below(h, RTE_DIM(op))];
	uint32_t lkey = below(h, 8) ? h->w->key : h->w->far_key;
	struct ring_wqe q = {.opcode = opcode, .flags = RING_WR_SIGNALED, .num_slots = 1,
			     .num_sge = 1, .rkey = 1, .remote_addr = 4096,
			     .sge = {{WIRE_VA + RECV_OFF, below(h, 3000), lkey}}};

	if (opcode == RING_WR_ATOMIC_FETCH_AND_ADD) {
		q.remote_addr = 64;
		q.atomic.sge = (struct ring_sge){WIRE_VA + RECV_OFF, 8, lkey};
	}
	if (h->w->sq_tail - h->w->qp->sq.head < 20)
		wire_post_raw(h->w, &q);
	if (h->w->rq_tail - atomic_load(&h->w->srq_daemon.head) < 50 &&
	    h->w->rq_tail - h->w->qp->rq.head < 50)
		wire_post_recv(h->w, RECV_OFF + below(h, 1000), below(h, 4000));
	wire_go(h->w);
}

static void
hostile_reap(struct hostile *h)
{
	while (ring_cq_peek(&h->w->cons) != NULL) {
		ring_cq_advance(&h->w->cons);
		ring_cq_release(&h->w->cons);
	}
	h->w->num_events = 0;
	wire_forget(h->w);
}

static void
hostile_step(struct hostile *h)
{
	hostile_packet(h);
	if (below(h, 6) == 0)
		hostile_client(h);
	if (h->w->num_io && below(h, 3) == 0)
		wire_io(h->w, below(h, 8) ? 0 : -EFAULT);
	if (below(h, 50) == 0)
		wire_wait(h->w, below(h, 300000));
	hostile_reap(h);
	hostile_look(h);
	if (below(h, 100) == 0) {
		set_open(h, !h->dead);
		memcpy(h->copy, h->w->mem, WIRE_MEM);
	}
	if (h->w->qp->state == RING_QPS_ERR && h->w->num_io == 0) {
		wire_connect_again(h->w);
		h->resets++;
	}
}

static void
hostile_run(uint64_t seed, unsigned long packets)
{
	struct hostile *h = hostile_new(seed);
	uint64_t written;

	for (unsigned long i = 0; i < packets; i++)
		hostile_step(h);
	written = roce_counters(h->w->r)[ROCE_C_RX_BYTES];
	ck_assert_uint_gt(written, 0); /* it did get far */
	ck_assert_uint_gt(h->resets, 0);
	while (h->w->num_io)
		wire_io(h->w, 0);
	wire_free(h->w);
	free(h->copy);
	free(h);
}

START_TEST(B021__random_packets_do_no_harm)
{
	const char *n = getenv("WIRE_PACKETS");

	hostile_run((uint64_t)_i + 1, n ? strtoul(n, NULL, 0) / 4 : PACKETS / 4);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_hostile");
	TCase *c = tcase_create("peer");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, B021__random_packets_do_no_harm, 0, 4);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
