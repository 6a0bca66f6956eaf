/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The captured clients of rdma_rxe talk to our responder: QPNs, PSNs, key and memory are those
 * of the captured connection (its CM messages tell them), and what we answer is what the kernel
 * answered, byte for byte from the BTH to the payload's end. The differences allowed are the
 * numbered ones of docs/wire.md; how many of each a capture shows is written here.
 * Each capture is replayed twice: by a responder that keeps nothing behind a hole, as the kernel's,
 * and by the one that ships. Where requests were lost the latter acknowledges what it kept when the
 * hole fills, so there the answers are not compared one by one but by what they say (kept_compare).
 */
#include "wire.h"

#define REQ_AT 86 /* Ethernet, IPv4, UDP, BTH, DETH, MAD header */
#define SERVER_LAST_BYTE 2
#define RECV_LEN 8192u
#define MEM_LEN 65536u
#define RECVS 12 /* of RECV_LEN that fit behind */

enum difference {
	DIFF_RESUMED_READ, /* 2: a resumed READ begins with First or Only */
	DIFF_TOO_LONG,	   /* 3: a SEND too long is an invalid request */
	DIFF_BAD_INV,	   /* 4: a SEND that ends a bad key is refused */
	DIFF_AFTER_RNR,	   /* 5: an RNR NAK is the only NAK of its hole */
	DIFFS
};

static const struct golden {
	const char *file;
	uint32_t mtu;
	unsigned int recvs;
	unsigned int diff[DIFFS];
	unsigned int lost; /* answers that netem dropped before the recording point */
	bool holes; /* requests are missing or refused, and others come behind */
} golden[] = {
	{"roce-rc-ops-single.pcap", 1024, RECVS, {0}},
	{"roce-rc-ops-multi.pcap", 1024, RECVS, {0}},
	{"roce-rc-burst.pcap", 1024, 32, {0}},
	{"roce-mtu4096-ops.pcap", 4096, RECVS, {0}},
	{"roce-err-badkey-read.pcap", 1024, RECVS, {0}},
	{"roce-err-badkey-write.pcap", 1024, RECVS, {0}},
	{"roce-err-oob-read.pcap", 1024, RECVS, {0}},
	{"roce-err-oob-write.pcap", 1024, RECVS, {0}},
	{"roce-err-rnr.pcap", 1024, 2, {[DIFF_AFTER_RNR] = 4}, .holes = true},
	{"roce-err-toolong.pcap", 1024, RECVS, {[DIFF_TOO_LONG] = 1}},
	{"roce-err-badinv.pcap", 1024, RECVS, {[DIFF_BAD_INV] = 1}},
	{"roce-loss-requests.pcap", 1024, 32, {0}, .holes = true},
	{"roce-loss-responses.pcap", 1024, RECVS, {[DIFF_RESUMED_READ] = 2}, 6},
	{"roce-duplicate-reorder.pcap", 1024, RECVS, {0}, .holes = true},
};

/** What the CM messages say. */
struct connection {
	uint32_t client_qpn, server_qpn, rq_psn, flow_label, key, len;
	uint64_t va;
};

/** Answers, BTH to the end of the payload and pad. */
struct answers {
	unsigned int num;
	struct {
		uint8_t *bytes;
		uint32_t len;
		unsigned int step; /* requests fed before */
	} at[256];
};

/** The PSNs of the requests, in the order of the capture. */
struct requests {
	unsigned int num;
	struct {
		uint32_t psn, psns;
	} at[512];
};

/** A connection's requests, and what both servers say to them. */
struct replay {
	struct requests fed;
	struct answers ours, theirs;
};

static uint32_t
be32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return be32toh(v);
}

static uint64_t
be64(const uint8_t *at)
{
	return (uint64_t)be32(at) << 32 | be32(at + 4);
}

static struct connection
connection_read(const char *file)
{
	struct capture *c = capture_open(file);
	struct connection k = {0};

	while (capture_next(c)) {
		const uint8_t *mad = c->data + REQ_AT;

		if (c->len < REQ_AT + 36 + 16 || c->data[42] != ROCE_UD_SEND_ONLY)
			continue;
		if (mad[-8] == 0 && mad[-7] == 0x10) { /* attribute id: REQ */
			k.client_qpn = be32(mad + 32) >> 8;
			k.flow_label = be32(mad + 88) >> 12;
		} else if (mad[-8] == 0 && mad[-7] == 0x13) {
			k.server_qpn = be32(mad + 12) >> 8;
			k.rq_psn = be32(mad + 20) >> 8;
			k.va = be64(mad + 36);
			k.key = be32(mad + 44);
			k.len = be32(mad + 48);
		}
	}
	capture_close(c);
	ck_assert_uint_eq(k.len, MEM_LEN);
	return k;
}

static void
answers_add(struct answers *a, unsigned int step, const uint8_t *bth, uint32_t len)
{
	ck_assert_uint_lt(a->num, 256);
	a->at[a->num].step = step;
	a->at[a->num].bytes = malloc(len);
	memcpy(a->at[a->num].bytes, bth, len);
	a->at[a->num].bytes[1] &= (uint8_t)~ROCE_BTH_MIGREQ; /* difference 1 */
	a->at[a->num++].len = len;
}

static void
answers_take(struct wire *w, struct replay *r)
{
	struct roce_pkt p;

	while (wire_sent(w, &p)) {
		struct rte_mbuf *m = wire_last(w);
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

		answers_add(&r->ours, r->fed.num, frame + 42, m->pkt_len - 42 - ROCE_ICRC_LEN);
	}
}

static void
requests_add(struct requests *q, const struct golden *g, const uint8_t *bth, uint32_t len)
{
	struct roce_pkt p;

	ck_assert_uint_lt(q->num, 512);
	ck_assert_int_eq(roce_parse(bth, len, &p), ROCE_OK);
	q->at[q->num].psn = p.psn;
	q->at[q->num].psns = 1;
	if (p.opcode == ROCE_RC_READ_REQ && p.dma_len > g->mtu)
		q->at[q->num].psns = (p.dma_len + g->mtu - 1) / g->mtu;
	q->num++;
}

/** Feed the client's requests, one burst each; collect both servers' answers. */
static void
golden_replay(struct wire *w, const struct golden *g, struct replay *r)
{
	struct capture *c = capture_open(g->file);

	while (capture_next(c)) {
		const uint8_t *ip = c->data + 14;
		uint32_t len = (uint32_t)(ip[2] << 8 | ip[3]);

		if (roce_opcodes[ip[28]].transport != ROCE_TR_RC)
			continue;
		if (ip[15] == SERVER_LAST_BYTE) {
			answers_add(&r->theirs, r->fed.num, ip + 28, len - 28 - ROCE_ICRC_LEN);
			/* the UDP source port is the flow's, on both sides (C-10) */
			continue;
		}
		requests_add(&r->fed, g, ip + 28, len - 28 - ROCE_ICRC_LEN);
		wire_frame(w, c->data, c->len);
		answers_take(w, r);
	}
	capture_close(c);
}

static const uint8_t *
answer_payload(const uint8_t *bytes)
{
	return bytes + ROCE_BTH_LEN + roce_opcodes[bytes[0]].ext_len;
}

static bool
is_read_response(const uint8_t *bytes)
{
	return roce_any(roce_opcodes[bytes[0]].mask, ROCE_READ_RESP);
}

/** Which allowed difference lies between our answer and theirs; DIFFS: none. */
static enum difference
answer_difference(const uint8_t *us, uint32_t us_len, const uint8_t *them, uint32_t them_len)
{
	uint32_t n = (uint32_t)(us + us_len - answer_payload(us));

	if (is_read_response(us) && is_read_response(them) &&
	    memcmp(us + 8, them + 8, 4) == 0 &&
	    them_len - (uint32_t)(answer_payload(them) - them) == n &&
	    memcmp(answer_payload(us), answer_payload(them), n) == 0)
		return DIFF_RESUMED_READ;
	if (us[0] != ROCE_RC_ACK || them[0] != ROCE_RC_ACK || memcmp(us, them, 12) != 0)
		return DIFFS;
	if (us[12] == ROCE_NAK_INVALID_REQ && them[12] == ROCE_NAK_REM_OP)
		return DIFF_TOO_LONG;
	if (us[12] == ROCE_NAK_REM_ACCESS && them[12] == roce_syn_ack(ROCE_CREDIT_CODE_NONE))
		return DIFF_BAD_INV;
	return DIFFS;
}

/** A sequence NAK of the PSN that the RNR NAK before it named. */
static bool
nak_after_rnr(const struct answers *a, unsigned int i)
{
	return i > 0 && a->at[i].bytes[0] == ROCE_RC_ACK &&
	       a->at[i].bytes[12] == ROCE_NAK_PSN_SEQ &&
	       roce_syn_is(a->at[i - 1].bytes[12], ROCE_SYN_RNR) &&
	       memcmp(a->at[i].bytes + 8, a->at[i - 1].bytes + 8, 4) == 0;
}

static void
answers_compare(const struct golden *g, const struct answers *ours, const struct answers *theirs)
{
	unsigned int seen[DIFFS + 1] = {0}, u = 0, lost = 0;

	for (unsigned int t = 0; t < theirs->num; t++) {
		const uint8_t *us, *them = theirs->at[t].bytes;

		if (nak_after_rnr(theirs, t)) {
			seen[DIFF_AFTER_RNR]++;
			continue;
		}
		ck_assert_msg(u < ours->num, "%s: answer %u (%s %#x) is missing", g->file, t,
			      roce_opcode_name(them[0]), be32(them + 8) & PSN_MASK);
		while (lost < g->lost && u < ours->num &&
		       memcmp(ours->at[u].bytes + 8, them + 8, 4) != 0) {
			lost++;
			u++;
		}
		ck_assert_uint_lt(u, ours->num);
		us = ours->at[u].bytes;
		if (ours->at[u].len != theirs->at[t].len ||
		    memcmp(us, them, ours->at[u].len) != 0) {
			enum difference d = answer_difference(us, ours->at[u].len, them,
							      theirs->at[t].len);

			ck_assert_msg(d != DIFFS,
				      "%s: answer %u: ours %s %#x %#x/%u, theirs %s %#x %#x/%u",
				      g->file, t, roce_opcode_name(us[0]), be32(us + 8),
				      be32(us + 12), ours->at[u].len, roce_opcode_name(them[0]),
				      be32(them + 8), be32(them + 12), theirs->at[t].len);
			seen[d]++;
		}
		u++;
	}
	for (; lost < g->lost && u < ours->num; u++)
		lost++;
	ck_assert_msg(lost == g->lost, "%s: %u lost", g->file, lost);
	ck_assert_msg(u == ours->num, "%s: %u answers, %u expected", g->file, ours->num, u);
	for (unsigned int d = 0; d < DIFFS; d++)
		ck_assert_msg(seen[d] == g->diff[d], "%s: %u times difference %u, not %u", g->file,
			      seen[d], d + 2, g->diff[d]);
}

/* ---- what the answers say, when a run is acknowledged as one ---------- */

static uint32_t
answer_psn(const struct answers *a, unsigned int i)
{
	return be32(a->at[i].bytes + 8) & PSN_MASK;
}

static bool
answer_is(const struct answers *a, unsigned int i, uint8_t syndrome_kind)
{
	const uint8_t *b = a->at[i].bytes;

	return b[0] == ROCE_RC_ACK && roce_syn_is(b[12], syndrome_kind);
}

/** The first PSN that is not acknowledged by our answers up to a step. */
static uint32_t
acked_through(const struct answers *ours, unsigned int step, uint32_t psn)
{
	for (unsigned int i = 0; i < ours->num && ours->at[i].step <= step; i++) {
		/* a NAK and an RNR NAK acknowledge all before */
		bool all = is_read_response(ours->at[i].bytes) ||
			   ours->at[i].bytes[0] != ROCE_RC_ACK ||
			   answer_is(ours, i, ROCE_SYN_ACK);
		uint32_t next = psn_add(answer_psn(ours, i), all);

		if (psn_after(next, psn))
			psn = next;
	}
	return psn;
}

/** The first PSN that had not come, or was refused for want of a receive, before a step. */
static uint32_t
hole_at(const struct replay *r, unsigned int step, uint32_t psn)
{
	for (unsigned int i = 0; i < step; i++) {
		bool refused = false;

		for (unsigned int k = 0; k < r->ours.num; k++)
			if (r->ours.at[k].step == i + 1 && answer_is(&r->ours, k, ROCE_SYN_RNR) &&
			    answer_psn(&r->ours, k) == r->fed.at[i].psn)
				refused = true;
		if (!refused && r->fed.at[i].psn == psn) {
			psn = psn_add(psn, r->fed.at[i].psns);
			i = (unsigned int)-1; /* what was kept comes now */
		}
	}
	return psn;
}

/** Our answer of that kind and PSN; ours->num: none. */
static unsigned int
answer_like(const struct answers *ours, const struct answers *theirs, unsigned int t)
{
	const uint8_t *them = theirs->at[t].bytes;
	unsigned int u;

	for (u = 0; u < ours->num; u++) {
		const uint8_t *us = ours->at[u].bytes;

		if (answer_psn(ours, u) == answer_psn(theirs, t) && us[0] == them[0] &&
		    (us[0] != ROCE_RC_ACK || (us[12] & 0xe0) == (them[12] & 0xe0)))
			break;
	}
	return u;
}

/**
 * Every answer of theirs is there, byte for byte, or what it acknowledges was acknowledged by an
 * answer of ours, then or before (9.7.5.1.2); every sequence NAK of ours names a hole.
 */
static void
kept_compare(const struct golden *g, const struct replay *r, uint32_t first)
{
	const struct answers *us = &r->ours, *them = &r->theirs;

	for (unsigned int t = 0; t < them->num; t++) {
		unsigned int u = answer_like(us, them, t);
		uint32_t psn = answer_psn(them, t);
		bool nak = answer_is(them, t, ROCE_SYN_NAK) || answer_is(them, t, ROCE_SYN_RNR);
		uint32_t acked = acked_through(us, them->at[t].step, first);

		if (u < us->num && us->at[u].len == them->at[t].len &&
		    memcmp(us->at[u].bytes, them->at[t].bytes, us->at[u].len) == 0)
			continue;
		ck_assert_msg(them->at[t].bytes[0] == ROCE_RC_ACK && u == us->num,
			      "%s: answer %u (%s %#x) is missing or another", g->file, t,
			      roce_opcode_name(them->at[t].bytes[0]), psn);
		ck_assert_msg(psn_diff(acked, psn_add(psn, !nak)) >= 0,
			      "%s: answer %u acknowledges %#x, ours %#x", g->file, t, psn, acked);
	}
	for (unsigned int u = 0; u < us->num; u++)
		if (us->at[u].bytes[0] == ROCE_RC_ACK && us->at[u].bytes[12] == ROCE_NAK_PSN_SEQ)
			ck_assert_msg(answer_psn(us, u) == hole_at(r, us->at[u].step, first),
				      "%s: a NAK of %#x, the hole is %#x", g->file,
				      answer_psn(us, u), hole_at(r, us->at[u].step, first));
	ck_assert_uint_eq(acked_through(us, r->fed.num, first),
			  acked_through(them, r->fed.num, first));
}

static void
answers_free(struct answers *a)
{
	for (unsigned int i = 0; i < a->num; i++)
		free(a->at[i].bytes);
}

static void
golden_run(const struct golden *g, bool strict)
{
	struct connection k = connection_read(g->file);
	struct wire_params p = {.qpn = k.server_qpn, .dest_qpn = k.client_qpn, .rq_psn = k.rq_psn,
				.mtu = g->mtu, .flow_label = k.flow_label, .strict = strict};
	struct replay *r = calloc(1, sizeof(*r));
	struct wire *w = wire_new(&p);

	for (uint32_t i = 0; i < MEM_LEN; i++)
		w->mem[i] = (uint8_t)(i ^ (i >> 8));
	wire_mr_key(w, k.key, k.va, w->mem, MEM_LEN,
		    MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC);
	for (unsigned int i = 0; i < g->recvs; i++)
		wire_post_recv(w, MEM_LEN + (i % RECVS) * RECV_LEN, RECV_LEN);
	golden_replay(w, g, r);
	ck_assert_uint_gt(r->theirs.num, 0);
	if (g->holes && !strict)
		kept_compare(g, r, k.rq_psn);
	else
		answers_compare(g, &r->ours, &r->theirs);
	answers_free(&r->ours);
	answers_free(&r->theirs);
	free(r);
	wire_free(w);
}

START_TEST(golden__answers)
{
	golden_run(&golden[_i], true);
}
END_TEST

START_TEST(golden__answers_of_the_shipped_responder)
{
	golden_run(&golden[_i], false);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("wire_golden");
	TCase *c = tcase_create("golden");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, golden__answers, 0, sizeof(golden) / sizeof(golden[0]));
	tcase_add_loop_test(c, golden__answers_of_the_shipped_responder, 0,
			    sizeof(golden) / sizeof(golden[0]));
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
