/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse and emit of CM messages. A field is a row: where it begins in the MAD, how many bits it
 * has, and where its value lies in struct roce_cm_msg. Rows of one message stand together.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "roce_cm_msg.h"

/* Bytes count from the MAD's start; the tables of IBTA 12.6 count from behind its header. */
#define HDR_BASE_VERSION 0
#define HDR_CLASS 1
#define HDR_CLASS_VERSION 2
#define HDR_METHOD 3
#define HDR_STATUS 4 /* 2 bytes */
#define HDR_TID 8
#define HDR_ATTR 16

#define KIND_BYTES 0 /* `width` bytes, as they lie; others are a number of 1, 2, 4 or 8 bytes */

struct cm_field {
	uint16_t bit;	/* of the MAD, 0 is the first byte's MSB */
	uint16_t width; /* bits, or bytes for KIND_BYTES */
	uint16_t at;	/* in struct roce_cm_msg */
	uint8_t kind;	/* sizeof the number there */
};

/* Byte and bit behind the MAD header, as the standard's tables have them. */
#define BIT(byte, bit) ((ROCE_MAD_HDR_LEN + (byte)) * 8 + (bit))
#define FIELD(member, byte, first, bits)                                                  \
	{ BIT(byte, first), bits, offsetof(struct roce_cm_msg, member),                   \
	  sizeof(((struct roce_cm_msg *)0)->member) }
#define BYTES(member, byte, len)                                                          \
	{ BIT(byte, 0), len, offsetof(struct roce_cm_msg, member), KIND_BYTES }
/* A path of a REQ, 44 bytes. */
#define REQ_PATH(path, byte)                                                              \
	FIELD(path.local_lid, byte, 0, 16), FIELD(path.remote_lid, (byte) + 2, 0, 16),    \
	BYTES(path.local_gid, (byte) + 4, 16), BYTES(path.remote_gid, (byte) + 20, 16),   \
	FIELD(path.flow_label, (byte) + 36, 0, 20), FIELD(path.rate, (byte) + 39, 2, 6),  \
	FIELD(path.tclass, (byte) + 40, 0, 8), FIELD(path.hop_limit, (byte) + 41, 0, 8),  \
	FIELD(path.sl, (byte) + 42, 0, 4), FIELD(path.subnet_local, (byte) + 42, 4, 1),   \
	FIELD(path.ack_timeout, (byte) + 43, 0, 5)

static const struct cm_field fields_req[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(req.service_id, 8, 0, 64),
	FIELD(req.ca_guid, 16, 0, 64),
	FIELD(req.qkey, 28, 0, 32),
	FIELD(req.qpn, 32, 0, 24),
	FIELD(req.responder_resources, 35, 0, 8),
	FIELD(req.eecn, 36, 0, 24),
	FIELD(req.initiator_depth, 39, 0, 8),
	FIELD(req.remote_eecn, 40, 0, 24),
	FIELD(req.remote_response_timeout, 43, 0, 5),
	FIELD(req.transport, 43, 5, 2),
	FIELD(req.flow_control, 43, 7, 1),
	FIELD(req.psn, 44, 0, 24),
	FIELD(req.local_response_timeout, 47, 0, 5),
	FIELD(req.retry_count, 47, 5, 3),
	FIELD(req.pkey, 48, 0, 16),
	FIELD(req.mtu, 50, 0, 4),
	FIELD(req.rdc_exists, 50, 4, 1),
	FIELD(req.rnr_retry, 50, 5, 3),
	FIELD(req.max_cm_retries, 51, 0, 4),
	FIELD(req.srq, 51, 4, 1),
	FIELD(req.ext_transport, 51, 5, 3),
	REQ_PATH(req.primary, 52),
	REQ_PATH(req.alternate, 96),
};

static const struct cm_field fields_mra[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(remote_id, 4, 0, 32),
	FIELD(mra.about, 8, 0, 2),
	FIELD(mra.timeout, 9, 0, 5),
};

static const struct cm_field fields_rej[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(remote_id, 4, 0, 32),
	FIELD(rej.about, 8, 0, 2),
	FIELD(info_len, 9, 0, 7),
	FIELD(rej.reason, 10, 0, 16),
};

static const struct cm_field fields_rep[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(remote_id, 4, 0, 32),
	FIELD(rep.qkey, 8, 0, 32),
	FIELD(rep.qpn, 12, 0, 24),
	FIELD(rep.eecn, 16, 0, 24),
	FIELD(rep.psn, 20, 0, 24),
	FIELD(rep.responder_resources, 24, 0, 8),
	FIELD(rep.initiator_depth, 25, 0, 8),
	FIELD(rep.target_ack_delay, 26, 0, 5),
	FIELD(rep.failover, 26, 5, 2),
	FIELD(rep.flow_control, 26, 7, 1),
	FIELD(rep.rnr_retry, 27, 0, 3),
	FIELD(rep.srq, 27, 3, 1),
	FIELD(rep.ca_guid, 28, 0, 64),
};

/* RTU and DREP */
static const struct cm_field fields_ids[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(remote_id, 4, 0, 32),
};

static const struct cm_field fields_dreq[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(remote_id, 4, 0, 32),
	FIELD(dreq.qpn, 8, 0, 24),
};

static const struct cm_field fields_sidr_req[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(sidr_req.pkey, 4, 0, 16),
	FIELD(sidr_req.service_id, 8, 0, 64),
};

static const struct cm_field fields_sidr_rep[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(sidr_rep.status, 4, 0, 8),
	FIELD(info_len, 5, 0, 8),
	FIELD(sidr_rep.qpn, 8, 0, 24),
	FIELD(sidr_rep.service_id, 12, 0, 64),
	FIELD(sidr_rep.qkey, 20, 0, 32),
};

static const struct cm_field fields_lap[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(remote_id, 4, 0, 32),
	FIELD(lap.qpn, 12, 0, 24),
	FIELD(lap.response_timeout, 15, 0, 5),
	FIELD(lap.path.local_lid, 20, 0, 16),
	FIELD(lap.path.remote_lid, 22, 0, 16),
	BYTES(lap.path.local_gid, 24, 16),
	BYTES(lap.path.remote_gid, 40, 16),
	FIELD(lap.path.flow_label, 56, 0, 20),
	FIELD(lap.path.tclass, 59, 0, 8),
	FIELD(lap.path.hop_limit, 60, 0, 8),
	FIELD(lap.path.rate, 61, 2, 6),
	FIELD(lap.path.sl, 62, 0, 4),
	FIELD(lap.path.subnet_local, 62, 4, 1),
	FIELD(lap.path.ack_timeout, 63, 0, 5),
};

static const struct cm_field fields_apr[] = {
	FIELD(local_id, 0, 0, 32),
	FIELD(remote_id, 4, 0, 32),
	FIELD(info_len, 8, 0, 8),
	FIELD(apr.status, 9, 0, 8),
};

struct cm_layout {
	const char *name;
	const struct cm_field *fields;
	uint8_t num_fields;
	uint8_t info_at;    /* behind the MAD header; 0: none */
	uint8_t private_at; /* to the MAD's end */
};

#define LAYOUT(id, list, info, private)                                                   \
	[ROCE_CM_##id - ROCE_CM_ATTR_FIRST] = { #id, list, RTE_DIM(list), info, private }
static const struct cm_layout layouts[] = {
	LAYOUT(REQ, fields_req, 0, 140),
	LAYOUT(MRA, fields_mra, 0, 10),
	LAYOUT(REJ, fields_rej, 12, 84),
	LAYOUT(REP, fields_rep, 0, 36),
	LAYOUT(RTU, fields_ids, 0, 8),
	LAYOUT(DREQ, fields_dreq, 0, 12),
	LAYOUT(DREP, fields_ids, 0, 8),
	LAYOUT(SIDR_REQ, fields_sidr_req, 0, 16),
	LAYOUT(SIDR_REP, fields_sidr_rep, 24, 96),
	LAYOUT(LAP, fields_lap, 0, 64),
	LAYOUT(APR, fields_apr, 12, 84),
};
static_assert(RTE_DIM(layouts) == ROCE_CM_ATTRS, "one a message");

static const struct cm_layout *
cm_layout(unsigned int attr)
{
	return attr >= ROCE_CM_ATTR_FIRST && attr < ROCE_CM_ATTR_END ?
		       &layouts[attr - ROCE_CM_ATTR_FIRST] : NULL;
}

static uint64_t
get_bits(const uint8_t *mad, unsigned int bit, unsigned int width)
{
	const unsigned int last = bit + width;
	uint64_t v = 0;

	for (unsigned int b = bit; b < last; ) {
		const unsigned int in = b & 7, n = RTE_MIN(8 - in, last - b);

		v = v << n | (mad[b >> 3] >> (8 - in - n) & ((1u << n) - 1));
		b += n;
	}
	return v;
}

/* Onto zeros. */
static void
put_bits(uint8_t *mad, unsigned int bit, unsigned int width, uint64_t v)
{
	for (unsigned int b = bit + width; b > bit; ) {
		const unsigned int in = (b - 1) & 7, n = RTE_MIN(in + 1, b - bit);

		mad[(b - 1) >> 3] |= (uint8_t)((v & ((1u << n) - 1)) << (7 - in));
		v >>= n;
		b -= n;
	}
}

static void
field_parse(const struct cm_field *f, const uint8_t *mad, struct roce_cm_msg *msg)
{
	uint8_t *at = (uint8_t *)msg + f->at;
	uint64_t v;

	if (f->kind == KIND_BYTES) {
		memcpy(at, mad + f->bit / 8, f->width);
		return;
	}
	v = get_bits(mad, f->bit, f->width);
	switch (f->kind) {
	case 1: *at = (uint8_t)v; break;
	case 2: *(uint16_t *)(void *)at = (uint16_t)v; break;
	case 4: *(uint32_t *)(void *)at = (uint32_t)v; break;
	default: *(uint64_t *)(void *)at = v; break;
	}
}

static void
field_emit(const struct cm_field *f, const struct roce_cm_msg *msg, uint8_t *mad)
{
	const uint8_t *at = (const uint8_t *)msg + f->at;
	uint64_t v;

	switch (f->kind) {
	case KIND_BYTES: memcpy(mad + f->bit / 8, at, f->width); return;
	case 1: v = *at; break;
	case 2: v = *(const uint16_t *)(const void *)at; break;
	case 4: v = *(const uint32_t *)(const void *)at; break;
	default: v = *(const uint64_t *)(const void *)at; break;
	}
	put_bits(mad, f->bit, f->width, v);
}

static void
header_parse(const uint8_t *mad, struct roce_cm_msg *msg)
{
	msg->attr = (uint16_t)get_bits(mad, HDR_ATTR * 8, 16);
	msg->tid = get_bits(mad, HDR_TID * 8, 64);
}

int
roce_cm_parse(const void *data, size_t len, struct roce_cm_msg *msg)
{
	const uint8_t *mad = data;
	const struct cm_layout *l;

	memset(msg, 0, sizeof(*msg));
	if (len != ROCE_MAD_LEN)
		return ROCE_CM_PARSE_SHORT;
	if (mad[HDR_BASE_VERSION] != 1 || mad[HDR_CLASS] != ROCE_MAD_CLASS_CM)
		return ROCE_CM_PARSE_CLASS;
	if (mad[HDR_METHOD] != ROCE_MAD_METHOD_SEND || mad[HDR_STATUS] || mad[HDR_STATUS + 1])
		return ROCE_CM_PARSE_METHOD;
	l = cm_layout((unsigned int)get_bits(mad, HDR_ATTR * 8, 16));
	if (l == NULL)
		return ROCE_CM_PARSE_ATTR;
	header_parse(mad, msg);
	if (mad[HDR_CLASS_VERSION] != ROCE_MAD_CM_VERSION) {
		msg->local_id = (uint32_t)get_bits(mad, BIT(0, 0), 32);
		return ROCE_CM_PARSE_VERSION;
	}
	for (unsigned int i = 0; i < l->num_fields; i++)
		field_parse(&l->fields[i], mad, msg);
	if (l->info_at) {
		msg->info = mad + ROCE_MAD_HDR_LEN + l->info_at;
		msg->info_len = RTE_MIN(msg->info_len, ROCE_CM_INFO_MAX);
	}
	msg->private_data = mad + ROCE_MAD_HDR_LEN + l->private_at;
	msg->private_len = (uint8_t)roce_cm_private_max(msg->attr);
	return ROCE_CM_PARSE_OK;
}

int
roce_cm_emit(const struct roce_cm_msg *msg, void *data)
{
	const struct cm_layout *l = cm_layout(msg->attr);
	uint8_t *mad = data;

	if (l == NULL || msg->private_len > roce_cm_private_max(msg->attr) ||
	    msg->info_len > (l->info_at ? ROCE_CM_INFO_MAX : 0))
		return -EINVAL;
	memset(mad, 0, ROCE_MAD_LEN);
	mad[HDR_BASE_VERSION] = 1;
	mad[HDR_CLASS] = ROCE_MAD_CLASS_CM;
	mad[HDR_CLASS_VERSION] = ROCE_MAD_CM_VERSION;
	mad[HDR_METHOD] = ROCE_MAD_METHOD_SEND;
	put_bits(mad, HDR_TID * 8, 64, msg->tid);
	put_bits(mad, HDR_ATTR * 8, 16, msg->attr);
	for (unsigned int i = 0; i < l->num_fields; i++)
		field_emit(&l->fields[i], msg, mad);
	if (msg->info_len)
		memcpy(mad + ROCE_MAD_HDR_LEN + l->info_at, msg->info, msg->info_len);
	if (msg->private_len)
		memcpy(mad + ROCE_MAD_HDR_LEN + l->private_at, msg->private_data,
		       msg->private_len);
	return 0;
}

const char *
roce_cm_attr_name(unsigned int attr)
{
	const struct cm_layout *l = cm_layout(attr);

	return l ? l->name : "?";
}

unsigned int
roce_cm_private_max(unsigned int attr)
{
	const struct cm_layout *l = cm_layout(attr);

	return l ? ROCE_MAD_LEN - ROCE_MAD_HDR_LEN - l->private_at : 0;
}

static const char *const reason_names[] = {
	[ROCE_CM_REJ_NO_QP] = "no QP",
	[ROCE_CM_REJ_NO_EEC] = "no EE context",
	[ROCE_CM_REJ_NO_RESOURCES] = "no resources",
	[ROCE_CM_REJ_TIMEOUT] = "timeout",
	[ROCE_CM_REJ_UNSUPPORTED] = "unsupported request",
	[ROCE_CM_REJ_COMM_ID] = "invalid communication ID",
	[ROCE_CM_REJ_COMM_INSTANCE] = "invalid communication instance",
	[ROCE_CM_REJ_SERVICE_ID] = "no such service",
	[ROCE_CM_REJ_TRANSPORT] = "invalid transport",
	[ROCE_CM_REJ_STALE] = "stale connection",
	[ROCE_CM_REJ_RDC] = "no reliable datagram channel",
	[ROCE_CM_REJ_GID] = "invalid GID",
	[ROCE_CM_REJ_LID] = "invalid LID",
	[ROCE_CM_REJ_SL] = "invalid service level",
	[ROCE_CM_REJ_TRAFFIC_CLASS] = "invalid traffic class",
	[ROCE_CM_REJ_HOP_LIMIT] = "invalid hop limit",
	[ROCE_CM_REJ_PACKET_RATE] = "invalid packet rate",
	[ROCE_CM_REJ_ALT_GID] = "invalid alternate GID",
	[ROCE_CM_REJ_ALT_LID] = "invalid alternate LID",
	[ROCE_CM_REJ_ALT_SL] = "invalid alternate service level",
	[ROCE_CM_REJ_ALT_TRAFFIC_CLASS] = "invalid alternate traffic class",
	[ROCE_CM_REJ_ALT_HOP_LIMIT] = "invalid alternate hop limit",
	[ROCE_CM_REJ_ALT_PACKET_RATE] = "invalid alternate packet rate",
	[ROCE_CM_REJ_CM_REDIRECT] = "redirected to another port and CM",
	[ROCE_CM_REJ_PORT_REDIRECT] = "redirected to another port",
	[ROCE_CM_REJ_MTU] = "invalid path MTU",
	[ROCE_CM_REJ_RESPONDER_RESOURCES] = "insufficient responder resources",
	[ROCE_CM_REJ_CONSUMER] = "rejected by the application",
	[ROCE_CM_REJ_RNR_RETRY] = "invalid RNR retry count",
	[ROCE_CM_REJ_DUPLICATE_COMM_ID] = "duplicate communication ID",
	[ROCE_CM_REJ_CLASS_VERSION] = "unsupported class version",
	[ROCE_CM_REJ_FLOW_LABEL] = "invalid flow label",
	[ROCE_CM_REJ_ALT_FLOW_LABEL] = "invalid alternate flow label",
	[ROCE_CM_REJ_VENDOR_OPTION] = "vendor option not supported",
};

const char *
roce_cm_reason_name(unsigned int reason)
{
	return reason < RTE_DIM(reason_names) && reason_names[reason] ? reason_names[reason] :
									 "unknown reason";
}

/*
 * RDMA-CM's header: version 0.0, the IP version in the upper nibble of byte 1, the port, two
 * addresses of 16 bytes of which IPv4 fills the last four.
 */
static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };

void
roce_cm_ip_emit(const struct roce_cm_ip *ip, void *buf)
{
	const bool v4 = memcmp(ip->dst, v4_prefix, sizeof(v4_prefix)) == 0;
	const unsigned int skip = v4 ? sizeof(v4_prefix) : 0;
	uint8_t *b = buf;

	memset(b, 0, ROCE_CM_IP_LEN);
	b[1] = v4 ? 0x40 : 0x60;
	b[2] = (uint8_t)(ip->sport >> 8);
	b[3] = (uint8_t)ip->sport;
	memcpy(b + 4 + skip, ip->src + skip, 16 - skip);
	memcpy(b + 20 + skip, ip->dst + skip, 16 - skip);
}

int
roce_cm_ip_parse(const void *buf, struct roce_cm_ip *ip)
{
	const uint8_t *b = buf;
	const unsigned int version = b[1] >> 4;

	memset(ip, 0, sizeof(*ip));
	if (b[0] != 0 || (version != 4 && version != 6))
		return -EINVAL;
	ip->sport = (uint16_t)(b[2] << 8 | b[3]);
	memcpy(ip->src, b + 4, 16);
	memcpy(ip->dst, b + 20, 16);
	if (version == 4) { /* what lies before the four bytes is not looked at */
		memcpy(ip->src, v4_prefix, sizeof(v4_prefix));
		memcpy(ip->dst, v4_prefix, sizeof(v4_prefix));
	}
	return 0;
}
