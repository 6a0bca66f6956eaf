/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CM messages against bytes from outside: all that the captures have, and for what they lack
 * bytes set by hand from the standard's tables.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base_rng.h"
#include "roce_cm_capture.h"
#include "roce_cm_msg.h"
#include "unit.h"

#define CAPTURED_MADS 156

static unsigned int seen[ROCE_CM_ATTR_END];

/* What Linux leaves between the fields is zero: so emitting what was parsed gives its bytes. */
static void
each_file(const char *name, void *arg)
{
	struct cm_capture m = { .c = capture_open(name) };
	unsigned int *mads = arg;
	struct roce_cm_msg msg;
	uint8_t out[ROCE_MAD_LEN];

	while (cm_capture_next(&m)) {
		ck_assert_msg(roce_cm_parse(m.mad, 256, &msg) == 0, "%s #%u", name, m.c->number);
		ck_assert_int_eq(roce_cm_emit(&msg, out), 0);
		for (unsigned int i = 0; i < sizeof(out); i++)
			ck_assert_msg(out[i] == m.mad[i], "%s #%u: byte %u is %02x, not %02x", name,
				m.c->number, i, out[i], m.mad[i]);
		seen[msg.attr]++;
		(*mads)++;
	}
	capture_close(m.c);
}

START_TEST(ROCE_C_53__captures_are_emitted_bit_exactly)
{
	unsigned int mads = 0;

	capture_each("roce-", each_file, &mads);
	ck_assert_uint_eq(mads, CAPTURED_MADS);
	ck_assert_uint_eq(seen[ROCE_CM_REQ], 32);
	ck_assert_uint_eq(seen[ROCE_CM_REP], 29);
	for (unsigned int a = ROCE_CM_REQ; a <= ROCE_CM_SIDR_REP; a++)
		ck_assert_msg(seen[a] > 0, "no %s captured", roce_cm_attr_name(a));
}
END_TEST

/* roce-rping #1, as docs of the captures and tshark read it. */
START_TEST(ROCE_C_53__req)
{
	static const uint8_t local[16] = { [10] = 0xff, 0xff, 192, 0, 2, 3 };
	static const uint8_t remote[16] = { [10] = 0xff, 0xff, 192, 0, 2, 2 };
	struct cm_capture f = cm_capture_frame("roce-rping.pcap", 1);
	struct roce_cm_msg m;

	ck_assert_int_eq(roce_cm_parse(f.mad, 256, &m), 0);
	ck_assert_uint_eq(m.attr, ROCE_CM_REQ);
	ck_assert_uint_eq(m.tid, 0x48428cbae);
	ck_assert_uint_eq(m.local_id, 0xaecb2884);
	ck_assert_uint_eq(m.remote_id, 0);
	ck_assert_uint_eq(m.req.service_id, 0x1061c06);
	ck_assert_uint_eq(m.req.ca_guid, 0x505400fffe000003);
	ck_assert_uint_eq(m.req.qkey, 0);
	ck_assert_uint_eq(m.req.qpn, 0x11);
	ck_assert_uint_eq(m.req.responder_resources, 1);
	ck_assert_uint_eq(m.req.initiator_depth, 1);
	ck_assert_uint_eq(m.req.remote_response_timeout, 20);
	ck_assert_uint_eq(m.req.local_response_timeout, 20);
	ck_assert_uint_eq(m.req.transport, ROCE_CM_RC);
	ck_assert_uint_eq(m.req.psn, 0x7fe152);
	ck_assert_uint_eq(m.req.retry_count, 7);
	ck_assert_uint_eq(m.req.rnr_retry, 7);
	ck_assert_uint_eq(m.req.pkey, 0xffff);
	ck_assert_uint_eq(m.req.mtu, 3);
	ck_assert_uint_eq(m.req.max_cm_retries, 15);
	ck_assert(!m.req.srq && !m.req.flow_control && !m.req.rdc_exists);
	ck_assert_uint_eq(m.req.primary.local_lid, 0xffff);
	ck_assert_mem_eq(m.req.primary.local_gid, local, 16);
	ck_assert_mem_eq(m.req.primary.remote_gid, remote, 16);
	ck_assert_uint_eq(m.req.primary.flow_label, 0xafa45);
	ck_assert_uint_eq(m.req.primary.tclass, 0);
	ck_assert_uint_eq(m.req.primary.hop_limit, 64);
	ck_assert_uint_eq(m.req.primary.ack_timeout, 19);
	ck_assert_uint_eq(m.private_len, 92);
	capture_close(f.c);
}
END_TEST

START_TEST(ROCE_C_53__rep_rej_mra)
{
	struct cm_capture f = cm_capture_frame("roce-rping.pcap", 2);
	struct roce_cm_msg m;

	ck_assert_int_eq(roce_cm_parse(f.mad, 256, &m), 0);
	ck_assert_uint_eq(m.attr, ROCE_CM_REP);
	ck_assert_uint_eq(m.local_id, 0x5ae18ec6);
	ck_assert_uint_eq(m.remote_id, 0xaecb2884);
	ck_assert_uint_eq(m.rep.qpn, 0x11);
	ck_assert_uint_eq(m.rep.psn, 0x20a6c7);
	ck_assert_uint_eq(m.rep.target_ack_delay, 15);
	ck_assert_uint_eq(m.rep.rnr_retry, 7);
	ck_assert_uint_eq(m.rep.ca_guid, 0x505400fffe000002);
	capture_close(f.c);

	f = cm_capture_frame("roce-cm-reject-user.pcap", 2);
	ck_assert_int_eq(roce_cm_parse(f.mad, 256, &m), 0);
	ck_assert_uint_eq(m.rej.reason, ROCE_CM_REJ_CONSUMER);
	ck_assert_uint_eq(m.rej.about, ROCE_CM_ABOUT_REQ);
	ck_assert_mem_eq(m.private_data, "rejected", 8);
	capture_close(f.c);

	f = cm_capture_frame("roce-duplicate-reorder.pcap", 3);
	ck_assert_int_eq(roce_cm_parse(f.mad, 256, &m), 0);
	ck_assert_uint_eq(m.attr, ROCE_CM_MRA);
	ck_assert_uint_eq(m.mra.about, ROCE_CM_ABOUT_REQ);
	ck_assert_uint_eq(m.mra.timeout, 24);
	capture_close(f.c);
}
END_TEST

START_TEST(ROCE_C_53__sidr)
{
	struct cm_capture f = cm_capture_frame("roce-ud-ops.pcap", 2);
	struct roce_cm_msg m;

	ck_assert_int_eq(roce_cm_parse(f.mad, 256, &m), 0);
	ck_assert_uint_eq(m.attr, ROCE_CM_SIDR_REP);
	ck_assert_uint_eq(m.sidr_rep.status, ROCE_CM_SIDR_OK);
	ck_assert_uint_eq(m.sidr_rep.qkey, ROCE_CM_UDP_QKEY);
	ck_assert_uint_eq(m.sidr_rep.qpn, 0x17);
	ck_assert_uint_eq(m.sidr_rep.service_id, 0x1111d2f);
	capture_close(f.c);

	f = cm_capture_frame("roce-ud-cm-reject.pcap", 2);
	ck_assert_int_eq(roce_cm_parse(f.mad, 256, &m), 0);
	ck_assert_uint_eq(m.sidr_rep.status, ROCE_CM_SIDR_REJECT);
	ck_assert_uint_eq(m.sidr_rep.qpn, 0);
	capture_close(f.c);
}
END_TEST

/* LAP and APR by hand: no capture has one. */
static const struct {
	uint8_t at, value; /* behind the MAD header */
} lap_bytes[] = {
	{ 0, 0x11 }, { 3, 0x12 }, { 4, 0x21 }, { 7, 0x22 },	/* ids */
	{ 12, 0xab }, { 13, 0xcd }, { 14, 0xef }, { 15, 0xa0 }, /* QPN; response timeout 20 */
	{ 20, 0x31 }, { 23, 0x32 },				/* LIDs 3100, 0032 */
	{ 24, 0x41 }, { 39, 0x42 }, { 40, 0x51 }, { 55, 0x52 }, /* GIDs */
	{ 56, 0x12 }, { 57, 0x34 }, { 58, 0x50 }, { 59, 0x68 }, /* flow label; traffic class */
	{ 60, 64 }, { 61, 0x05 }, { 62, 0x38 }, { 63, 0x98 },	/* hop, rate, SL 3 + local, 19 */
	{ 64, 0x99 },						/* private data */
};

START_TEST(lap__apr_by_hand)
{
	uint8_t mad[256] = { 1, 7, 2, 3, [17] = 0x19 }, out[256];
	const uint8_t info[3] = { 7, 8, 9 };
	struct roce_cm_msg m;

	for (unsigned int i = 0; i < sizeof(lap_bytes) / sizeof(lap_bytes[0]); i++)
		mad[24 + lap_bytes[i].at] = lap_bytes[i].value;
	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), 0);
	ck_assert_uint_eq(m.local_id, 0x11000012);
	ck_assert_uint_eq(m.remote_id, 0x21000022);
	ck_assert_uint_eq(m.lap.qpn, 0xabcdef);
	ck_assert_uint_eq(m.lap.response_timeout, 20);
	ck_assert_uint_eq(m.lap.path.local_lid, 0x3100);
	ck_assert_uint_eq(m.lap.path.remote_lid, 0x0032);
	ck_assert_uint_eq(m.lap.path.local_gid[15], 0x42);
	ck_assert_uint_eq(m.lap.path.remote_gid[0], 0x51);
	ck_assert_uint_eq(m.lap.path.flow_label, 0x12345);
	ck_assert_uint_eq(m.lap.path.tclass, 0x68);
	ck_assert_uint_eq(m.lap.path.hop_limit, 64);
	ck_assert_uint_eq(m.lap.path.rate, 5);
	ck_assert_uint_eq(m.lap.path.sl, 3);
	ck_assert(m.lap.path.subnet_local);
	ck_assert_uint_eq(m.lap.path.ack_timeout, 19);
	ck_assert_uint_eq(m.private_data[0], 0x99);
	ck_assert_int_eq(roce_cm_emit(&m, out), 0);
	ck_assert_mem_eq(out, mad, 256);

	m = (struct roce_cm_msg){ .attr = ROCE_CM_APR, .local_id = 1, .remote_id = 2,
		.apr = { .status = ROCE_CM_APR_UNSUPPORTED }, .info = info, .info_len = 3,
		.private_data = info, .private_len = 1 };
	ck_assert_int_eq(roce_cm_emit(&m, out), 0);
	ck_assert_uint_eq(out[17], 0x1a);
	ck_assert_uint_eq(out[24 + 8], 3);
	ck_assert_uint_eq(out[24 + 9], 2);
	ck_assert_mem_eq(out + 24 + 12, info, 3);
	ck_assert_uint_eq(out[24 + 84], 7);
}
END_TEST

/* Bits that no capture has set: one at a time, from the standard's tables. */
START_TEST(ROCE_C_53__bits_by_hand)
{
	static const struct {
		uint8_t attr, byte, bits, at, size; /* byte: behind the MAD header */
		uint32_t value;
	} rows[] = {
#define ROW(attr, byte, bits, field, value) { attr, byte, bits, \
	offsetof(struct roce_cm_msg, field), sizeof(((struct roce_cm_msg *)0)->field), value }
		ROW(ROCE_CM_REQ, 43, 0x01, req.flow_control, 1),
		ROW(ROCE_CM_REQ, 43, 0x06, req.transport, 3),
		ROW(ROCE_CM_REQ, 43, 0xf8, req.remote_response_timeout, 31),
		ROW(ROCE_CM_REQ, 47, 0xf8, req.local_response_timeout, 31),
		ROW(ROCE_CM_REQ, 47, 0x07, req.retry_count, 7),
		ROW(ROCE_CM_REQ, 50, 0xf0, req.mtu, 15),
		ROW(ROCE_CM_REQ, 50, 0x08, req.rdc_exists, 1),
		ROW(ROCE_CM_REQ, 50, 0x07, req.rnr_retry, 7),
		ROW(ROCE_CM_REQ, 51, 0xf0, req.max_cm_retries, 15),
		ROW(ROCE_CM_REQ, 51, 0x08, req.srq, 1),
		ROW(ROCE_CM_REQ, 51, 0x07, req.ext_transport, 7),
		ROW(ROCE_CM_REQ, 38, 0x80, req.eecn, 0x80),
		ROW(ROCE_CM_REQ, 42, 0x01, req.remote_eecn, 1),
		ROW(ROCE_CM_REQ, 31, 0x42, req.qkey, 0x42),
		ROW(ROCE_CM_REQ, 91, 0x3f, req.primary.rate, 63),
		ROW(ROCE_CM_REQ, 94, 0xf0, req.primary.sl, 15),
		ROW(ROCE_CM_REQ, 94, 0x08, req.primary.subnet_local, 1),
		ROW(ROCE_CM_REQ, 95, 0xf8, req.primary.ack_timeout, 31),
		ROW(ROCE_CM_REQ, 97, 0x11, req.alternate.local_lid, 0x11),
		ROW(ROCE_CM_REQ, 99, 0x12, req.alternate.remote_lid, 0x12),
		ROW(ROCE_CM_REQ, 134, 0xf0, req.alternate.flow_label, 15),
		ROW(ROCE_CM_REQ, 135, 0x3f, req.alternate.rate, 63),
		ROW(ROCE_CM_REQ, 136, 0x13, req.alternate.tclass, 0x13),
		ROW(ROCE_CM_REQ, 137, 0x14, req.alternate.hop_limit, 0x14),
		ROW(ROCE_CM_REQ, 138, 0xf0, req.alternate.sl, 15),
		ROW(ROCE_CM_REQ, 139, 0xf8, req.alternate.ack_timeout, 31),
		ROW(ROCE_CM_REP, 11, 0x42, rep.qkey, 0x42),
		ROW(ROCE_CM_REP, 18, 0x43, rep.eecn, 0x43),
		ROW(ROCE_CM_REP, 26, 0x01, rep.flow_control, 1),
		ROW(ROCE_CM_REP, 26, 0x06, rep.failover, 3),
		ROW(ROCE_CM_REP, 26, 0xf8, rep.target_ack_delay, 31),
		ROW(ROCE_CM_REP, 27, 0x10, rep.srq, 1),
		ROW(ROCE_CM_REP, 27, 0xe0, rep.rnr_retry, 7),
		ROW(ROCE_CM_MRA, 8, 0xc0, mra.about, 3),
		ROW(ROCE_CM_MRA, 9, 0xf8, mra.timeout, 31),
		ROW(ROCE_CM_REJ, 8, 0xc0, rej.about, 3),
		ROW(ROCE_CM_REJ, 9, 0x0e, info_len, 7),
		ROW(ROCE_CM_REJ, 10, 0x01, rej.reason, 256),
		ROW(ROCE_CM_SIDR_REP, 4, 0x05, sidr_rep.status, 5),
		ROW(ROCE_CM_SIDR_REP, 5, 0x05, info_len, 5),
#undef ROW
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t mad[256] = { 1, 7, 2, 3, [17] = rows[i].attr }, out[256];
		struct roce_cm_msg m;
		uint32_t v = 0;

		mad[24 + rows[i].byte] = rows[i].bits;
		ck_assert_int_eq(roce_cm_parse(mad, 256, &m), 0);
		memcpy(&v, (const uint8_t *)&m + rows[i].at, rows[i].size);
		ck_assert_msg(v == rows[i].value, "row %u: %u, not %u", i, v, rows[i].value);
		ck_assert_int_eq(roce_cm_emit(&m, out), 0);
		ck_assert_mem_eq(out, mad, 256);
	}
}
END_TEST

START_TEST(parse__refusals)
{
	uint8_t mad[256] = { 1, 7, 2, 3, [17] = 0x10, [24] = 9, [27] = 1 };
	struct roce_cm_msg m;

	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), ROCE_CM_PARSE_OK);
	ck_assert_int_eq(roce_cm_parse(mad, 255, &m), ROCE_CM_PARSE_SHORT);
	ck_assert_int_eq(roce_cm_parse(mad, 257, &m), ROCE_CM_PARSE_SHORT);
	ck_assert_int_eq(roce_cm_parse(mad, 0, &m), ROCE_CM_PARSE_SHORT);
	mad[0] = 2;
	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), ROCE_CM_PARSE_CLASS);
	mad[0] = 1, mad[1] = 6;
	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), ROCE_CM_PARSE_CLASS);
	mad[1] = 7, mad[3] = 1;
	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), ROCE_CM_PARSE_METHOD);
	mad[3] = 3, mad[5] = 4;
	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), ROCE_CM_PARSE_METHOD);
	mad[5] = 0, mad[17] = 0x1b;
	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), ROCE_CM_PARSE_ATTR);
	mad[17] = 0x0f;
	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), ROCE_CM_PARSE_ATTR);
	mad[16] = 1, mad[17] = 0x10;
	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), ROCE_CM_PARSE_ATTR);
	mad[16] = 0, mad[2] = 1;
	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), ROCE_CM_PARSE_VERSION);
	ck_assert_uint_eq(m.attr, ROCE_CM_REQ);
	ck_assert_uint_eq(m.local_id, 0x09000001);
}
END_TEST

/* A length that is too long ends with the field; too long data to emit is refused. */
START_TEST(info__bounds)
{
	uint8_t mad[256] = { 1, 7, 2, 3, [17] = 0x12, [24 + 9] = 0xfe }, data[256] = { 0 };
	struct roce_cm_msg m;

	ck_assert_int_eq(roce_cm_parse(mad, 256, &m), 0);
	ck_assert_uint_eq(m.info_len, ROCE_CM_INFO_MAX);
	ck_assert_ptr_eq(m.info, mad + 24 + 12);
	ck_assert_uint_eq(m.private_len, ROCE_CM_REJ_PRIVATE);
	ck_assert_ptr_eq(m.private_data + m.private_len, mad + 256);
	for (unsigned int a = ROCE_CM_REQ; a < ROCE_CM_ATTR_END; a++) {
		m = (struct roce_cm_msg){ .attr = (uint16_t)a, .private_data = data,
			.private_len = (uint8_t)roce_cm_private_max(a) };
		ck_assert_int_eq(roce_cm_emit(&m, mad), 0);
		m.private_len++;
		ck_assert_int_eq(roce_cm_emit(&m, mad), -EINVAL);
		m.private_len = 0, m.info = data, m.info_len = 1;
		ck_assert_int_eq(roce_cm_emit(&m, mad), a == ROCE_CM_REJ ||
			a == ROCE_CM_SIDR_REP || a == ROCE_CM_APR ? 0 : -EINVAL);
		m.info_len = ROCE_CM_INFO_MAX + 1;
		ck_assert_int_eq(roce_cm_emit(&m, mad), -EINVAL);
	}
	m = (struct roce_cm_msg){ .attr = 0x1b };
	ck_assert_int_eq(roce_cm_emit(&m, mad), -EINVAL);
}
END_TEST

/* A value wider than its field leaves its neighbours alone. */
START_TEST(emit__cuts_values)
{
	struct roce_cm_msg m = { .attr = ROCE_CM_REQ };
	uint8_t mad[256], zero[256] = { 0 };

	m.req.transport = 0xff;
	m.req.qpn = 0xff000000;
	m.req.mtu = 0xf0;
	m.req.primary.flow_label = 0xfff00000;
	ck_assert_int_eq(roce_cm_emit(&m, mad), 0);
	ck_assert_uint_eq(mad[24 + 43], 0x06);
	mad[24 + 43] = 0;
	ck_assert_mem_eq(mad + 24, zero, 232);
}
END_TEST

START_TEST(ROCE_C_54__ip_header)
{
	struct cm_capture f = cm_capture_frame("roce-rping.pcap", 1);
	uint8_t out[ROCE_CM_IP_LEN], bad[ROCE_CM_IP_LEN];
	struct roce_cm_msg m;
	struct roce_cm_ip ip;

	roce_cm_parse(f.mad, 256, &m);
	ck_assert_int_eq(roce_cm_ip_parse(m.private_data, &ip), 0);
	ck_assert_uint_eq(ip.sport, 56801);
	ck_assert_mem_eq(ip.src, f.src, 16);
	ck_assert_mem_eq(ip.dst, f.dst, 16);
	roce_cm_ip_emit(&ip, out);
	ck_assert_mem_eq(out, m.private_data, sizeof(out));
	/* the flow label of the REQ comes from the two ports */
	ck_assert_uint_eq(roce_cm_flow_label(ip.sport, roce_cm_service_port(m.req.service_id)),
		m.req.primary.flow_label);
	memcpy(bad, out, sizeof(bad));
	bad[0] = 0x10;
	ck_assert_int_eq(roce_cm_ip_parse(bad, &ip), -EINVAL);
	bad[0] = 0, bad[1] = 0x50;
	ck_assert_int_eq(roce_cm_ip_parse(bad, &ip), -EINVAL);
	capture_close(f.c);

	f = cm_capture_frame("roce-rping-ipv6.pcap", 1);
	roce_cm_parse(f.mad, 256, &m);
	ck_assert_int_eq(roce_cm_ip_parse(m.private_data, &ip), 0);
	ck_assert_mem_eq(ip.src, f.src, 16);
	ck_assert_mem_eq(ip.dst, f.dst, 16);
	roce_cm_ip_emit(&ip, out);
	ck_assert_mem_eq(out, m.private_data, sizeof(out));
	capture_close(f.c);
}
END_TEST

START_TEST(ROCE_C_55__service_ids)
{
	ck_assert_uint_eq(roce_cm_service_id(ROCE_CM_PS_TCP, 18515), 0x1064853);
	ck_assert_uint_eq(roce_cm_service_id(ROCE_CM_PS_UDP, 7471), 0x1111d2f);
	ck_assert_uint_eq(roce_cm_service_id(ROCE_CM_PS_IB, 0xffff), 0x13fffff);
	ck_assert_uint_eq(roce_cm_service_id(ROCE_CM_PS_IPOIB, 1), 0x20001);
	ck_assert_uint_eq(roce_cm_service_port(0x1064853), 18515);
}
END_TEST

START_TEST(names__are_there)
{
	ck_assert_str_eq(roce_cm_attr_name(ROCE_CM_REQ), "REQ");
	ck_assert_str_eq(roce_cm_attr_name(ROCE_CM_APR), "APR");
	ck_assert_str_eq(roce_cm_attr_name(0x1b), "?");
	ck_assert_str_eq(roce_cm_attr_name(0), "?");
	ck_assert_uint_eq(roce_cm_private_max(0), 0);
	for (unsigned int r = 0; r < 300; r++)
		ck_assert_ptr_nonnull(roce_cm_reason_name(r));
	ck_assert_str_eq(roce_cm_reason_name(34), "unknown reason");
	ck_assert_str_eq(roce_cm_reason_name(10), "stale connection");
}
END_TEST

/* Anything of any length, at the end of a page: no byte behind it is read. */
START_TEST(fuzz__parse_reads_no_further)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0), *end = p + page, *mad = end - 256, out[256];
	struct roce_cm_msg m, back;
	struct roce_cm_ip ip;
	struct rng rng;

	ck_assert(p != MAP_FAILED);
	ck_assert_int_eq(mprotect(end, page, PROT_NONE), 0);
	rng_seed(&rng, 1);
	for (unsigned int n = 0; n < 20000; n++) {
		const unsigned int len = n % 8 ? 256 : rng_below(&rng, 256);

		for (unsigned int i = 0; i < 256; i++)
			mad[i] = (uint8_t)rng_u32(&rng);
		if (len == 256) {
			memcpy(mad, "\1\7\2\3\0\0", 6);
			mad[16] = 0, mad[17] = 0x10 + n % 12;
		}
		if (roce_cm_parse(end - len, len, &m) != 0)
			continue;
		ck_assert_int_eq(roce_cm_emit(&m, out), 0);
		/* what was read, reserved bits aside, is what is written */
		ck_assert_int_eq(roce_cm_parse(out, 256, &back), 0);
		ck_assert_uint_eq(back.local_id, m.local_id);
		ck_assert_mem_eq(&back.req, &m.req, sizeof(m.req));
	}
	roce_cm_ip_parse(end - ROCE_CM_IP_LEN, &ip);
	munmap(p, 2 * page);
}
END_TEST

UNIT_MAIN("roce_cm_msg",
	ROCE_C_53__captures_are_emitted_bit_exactly,
	ROCE_C_53__req,
	ROCE_C_53__rep_rej_mra,
	ROCE_C_53__sidr,
	lap__apr_by_hand,
	ROCE_C_53__bits_by_hand,
	parse__refusals,
	info__bounds,
	emit__cuts_values,
	ROCE_C_54__ip_header,
	ROCE_C_55__service_ids,
	names__are_there,
	fuzz__parse_reads_no_further)
