/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of CM messages for tshark to judge (check_cm.py):
 *   cm_codec parse FILE.pcap        a JSON object a MAD: what roce_cm_parse() says
 *   cm_codec emit FILE.pcap SEED    writes frames of random messages
 * Names are tshark's; reserved fields that it prints are left out.
 */
#include <inttypes.h>

#include "base_rng.h"
#include "roce_cm_capture.h"
#include "roce_cm_msg.h"
#include "roce_icrc.h"

#define FRAMES 200

static void
print_gid(const char *name, const uint8_t *gid)
{
	printf(", \"%s\": \"", name);
	for (unsigned int i = 0; i < 16; i++)
		printf("%02x", gid[i]);
	putchar('"');
}

static void
print_req(const struct roce_cm_req *q)
{
	printf(", \"req.serviceid\": %" PRIu64 ", \"req.localcaguid\": %" PRIu64
		", \"req.localqkey\": %u, \"req.localqpn\": %u, \"req.responderres\": %u"
		", \"req.localeecn\": %u, \"req.initdepth\": %u, \"req.remoteeecn\": %u"
		", \"req.remoteresptout\": %u, \"req.transpsvctype\": %u, \"req.e2eflowctrl\": %u"
		", \"req.startpsn\": %u, \"req.localresptout\": %u, \"req.retrcount\": %u",
		q->service_id, q->ca_guid, q->qkey, q->qpn, q->responder_resources, q->eecn,
		q->initiator_depth, q->remote_eecn, q->remote_response_timeout, q->transport,
		q->flow_control, q->psn, q->local_response_timeout, q->retry_count);
	printf(", \"req.pkey\": %u, \"req.pppmtu\": %u, \"req.rdcexist\": %u"
		", \"req.rnrretrcount\": %u, \"req.maxcmretr\": %u, \"req.srq\": %u"
		", \"req.ext_transport\": %u", q->pkey, q->mtu, q->rdc_exists, q->rnr_retry,
		q->max_cm_retries, q->srq, q->ext_transport);
	printf(", \"req.prim_locallid\": %u, \"req.prim_remotelid\": %u"
		", \"req.prim_tfcclass\": %u, \"req.prim_hoplim\": %u, \"req.prim_sl\": %u"
		", \"req.prim_subnetlocal\": %u, \"req.prim_localacktout\": %u",
		q->primary.local_lid, q->primary.remote_lid, q->primary.tclass,
		q->primary.hop_limit, q->primary.sl, q->primary.subnet_local,
		q->primary.ack_timeout);
	printf(", \"req.alt_locallid\": %u, \"req.alt_remotelid\": %u, \"req.alt_tfcclass\": %u"
		", \"req.alt_hoplim\": %u, \"req.alt_sl\": %u, \"req.alt_subnetlocal\": %u"
		", \"req.alt_localacktout\": %u", q->alternate.local_lid, q->alternate.remote_lid,
		q->alternate.tclass, q->alternate.hop_limit, q->alternate.sl,
		q->alternate.subnet_local, q->alternate.ack_timeout);
	print_gid("req.alt_localgid", q->alternate.local_gid);
	print_gid("req.alt_remotegid", q->alternate.remote_gid);
}

static void
print_rep(const struct roce_cm_rep *p)
{
	printf(", \"rep.localqkey\": %u, \"rep.localqpn\": %u, \"rep.localeecn\": %u"
		", \"rep.startpsn\": %u, \"rep.respres\": %u, \"rep.initdepth\": %u"
		", \"rep.tgtackdelay\": %u, \"rep.failoveracc\": %u, \"rep.e2eflowctrl\": %u"
		", \"rep.rnrretrcount\": %u, \"rep.srq\": %u, \"rep.localcaguid\": %" PRIu64,
		p->qkey, p->qpn, p->eecn, p->psn, p->responder_resources, p->initiator_depth,
		p->target_ack_delay, p->failover, p->flow_control, p->rnr_retry, p->srq,
		p->ca_guid);
}

static void
print_ids(const char *name, const struct roce_cm_msg *m)
{
	printf(", \"%s.localcommid\": %u, \"%s.remotecommid\": %u", name, m->local_id, name,
		m->remote_id);
}

static void
print_message(unsigned int frame, const struct roce_cm_msg *m)
{
	printf("{\"frame\": %u, \"attr\": %u, \"tid\": %" PRIu64, frame, m->attr, m->tid);
	switch (m->attr) {
	case ROCE_CM_REQ:
		printf(", \"req\": %u", m->local_id);
		print_req(&m->req);
		break;
	case ROCE_CM_REP:
		printf(", \"rep\": %u, \"rep.remotecommid\": %u", m->local_id, m->remote_id);
		print_rep(&m->rep);
		break;
	case ROCE_CM_RTU: print_ids("rtu", m); break;
	case ROCE_CM_REJ:
		print_ids("rej", m);
		printf(", \"rej.msgrej\": %u, \"rej.rejinfolen\": %u, \"rej.reason\": %u",
			m->rej.about, m->info_len, m->rej.reason);
		break;
	case ROCE_CM_DREQ:
		print_ids("dreq", m);
		printf(", \"req.remoteqpneecn\": %u", m->dreq.qpn);
		break;
	case ROCE_CM_DREP: print_ids("drsp", m); break;
	default: break; /* tshark 4.0 has the names of the others alone */
	}
	puts("}");
}

static int
parse_file(const char *path)
{
	struct cm_capture f = { .c = capture_open(path) };
	struct roce_cm_msg m;

	while (cm_capture_next(&f)) {
		if (roce_cm_parse(f.mad, ROCE_MAD_LEN, &m) != 0)
			return 1;
		print_message(f.c->number, &m);
	}
	capture_close(f.c);
	return 0;
}

/* Random fields: random bytes, read and written again, so that reserved bits are as we send. */
static void
random_mad(struct rng *rng, unsigned int i, uint8_t *mad)
{
	uint8_t bytes[ROCE_MAD_LEN];
	struct roce_cm_msg m;

	for (unsigned int b = 0; b < sizeof(bytes); b++)
		bytes[b] = (uint8_t)rng_u32(rng);
	memcpy(bytes, "\1\7\2\3\0\0\0\0", 8);
	memcpy(bytes + 16, (const uint8_t[4]){ 0, (uint8_t)(ROCE_CM_REQ + i % ROCE_CM_ATTRS) }, 4);
	if (roce_cm_parse(bytes, sizeof(bytes), &m) != 0 || roce_cm_emit(&m, mad) != 0)
		abort();
}

static size_t
frame_of(const uint8_t *mad, uint8_t *f)
{
	const struct roce_pkt p = { .opcode = 0x64, .dest_qpn = 1, .pkey = 0xffff,
		.qkey = 0x80010000, .src_qpn = 1, .payload = mad, .payload_len = ROCE_MAD_LEN };
	static const uint8_t head[42] = { 2, [5] = 2, 2, [11] = 1, 8, 0, 0x45, 0, 1, 0x34, 1, 0,
		0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0xd8, 0x72, 0x12, 0xb7, 1, 0x20,
		0, 0 };
	const size_t len = roce_emit(&p, f + sizeof(head), 300);

	memcpy(f, head, sizeof(head));
	roce_icrc_store(f + sizeof(head) + len,
		roce_icrc_headers(f + 14, false, f + sizeof(head), len));
	return sizeof(head) + len + ROCE_ICRC_LEN;
}

static int
emit_file(const char *path, uint64_t seed)
{
	const uint32_t file_hdr[6] = { 0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1 };
	uint8_t mad[ROCE_MAD_LEN], frame[512];
	FILE *f = fopen(path, "wb");
	struct rng rng;

	rng_seed(&rng, seed);
	if (f == NULL || fwrite(file_hdr, sizeof(file_hdr), 1, f) != 1)
		return 1;
	for (unsigned int i = 0; i < FRAMES; i++) {
		uint32_t hdr[4] = { i, 0, 0, 0 };

		random_mad(&rng, i, mad);
		hdr[2] = hdr[3] = (uint32_t)frame_of(mad, frame);
		if (fwrite(hdr, sizeof(hdr), 1, f) != 1 || fwrite(frame, hdr[2], 1, f) != 1)
			return 1;
	}
	return fclose(f) != 0;
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "parse") == 0)
		return parse_file(argv[2]);
	if (argc == 4 && strcmp(argv[1], "emit") == 0)
		return emit_file(argv[2], strtoull(argv[3], NULL, 0));
	fputs("usage: cm_codec parse FILE.pcap | emit FILE.pcap SEED\n", stderr);
	return 2;
}
