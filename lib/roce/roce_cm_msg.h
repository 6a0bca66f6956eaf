/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the connection manager: MADs of class 7, version 2 (IBTA 12.6), and the header
 * that RDMA-CM puts before the private data (annex A11). Parse and emit between 256 bytes and
 * structs; one table of fields, no policy, no state.
 */
#ifndef ROCE_CM_MSG_H
#define ROCE_CM_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCE_MAD_LEN 256	 /* always: shorter ones are refused */
#define ROCE_MAD_HDR_LEN 24
#define ROCE_MAD_CLASS_CM 7
#define ROCE_MAD_CM_VERSION 2	 /* of the class */
#define ROCE_MAD_METHOD_SEND 3	 /* the only one that CM messages have */

#define ROCE_CM_PRIVATE_MAX 224	 /* RTU's and DREP's, the longest */
#define ROCE_CM_REQ_PRIVATE 92
#define ROCE_CM_REP_PRIVATE 196
#define ROCE_CM_REJ_PRIVATE 148
#define ROCE_CM_SIDR_REQ_PRIVATE 216
#define ROCE_CM_SIDR_REP_PRIVATE 136
#define ROCE_CM_INFO_MAX 72	 /* additional reject information and its like */

/** Messages, by attribute id. If you add one: its row and its fields in roce_cm_msg.c. */
enum roce_cm_attr {
	ROCE_CM_REQ = 0x10,
	ROCE_CM_MRA = 0x11,
	ROCE_CM_REJ = 0x12,
	ROCE_CM_REP = 0x13,
	ROCE_CM_RTU = 0x14,
	ROCE_CM_DREQ = 0x15,
	ROCE_CM_DREP = 0x16,
	ROCE_CM_SIDR_REQ = 0x17,
	ROCE_CM_SIDR_REP = 0x18,
	ROCE_CM_LAP = 0x19,
	ROCE_CM_APR = 0x1a,
	ROCE_CM_ATTR_END
};
#define ROCE_CM_ATTR_FIRST ROCE_CM_REQ
#define ROCE_CM_ATTRS (ROCE_CM_ATTR_END - ROCE_CM_ATTR_FIRST)

/** Which message an MRA or a REJ is about. */
enum roce_cm_about {
	ROCE_CM_ABOUT_REQ = 0,
	ROCE_CM_ABOUT_REP = 1,
	ROCE_CM_ABOUT_OTHER = 2, /* REJ: none of these; MRA: a LAP */
};

/** Reasons of a REJ (IBTA 12.6.7.2). */
enum roce_cm_reason {
	ROCE_CM_REJ_NO_QP = 1,
	ROCE_CM_REJ_NO_EEC = 2,
	ROCE_CM_REJ_NO_RESOURCES = 3,
	ROCE_CM_REJ_TIMEOUT = 4, /* info: the sender's CA GUID */
	ROCE_CM_REJ_UNSUPPORTED = 5,
	ROCE_CM_REJ_COMM_ID = 6,
	ROCE_CM_REJ_COMM_INSTANCE = 7,
	ROCE_CM_REJ_SERVICE_ID = 8,
	ROCE_CM_REJ_TRANSPORT = 9,
	ROCE_CM_REJ_STALE = 10,
	ROCE_CM_REJ_RDC = 11,
	ROCE_CM_REJ_GID = 12, /* info: a GID that would do */
	ROCE_CM_REJ_LID = 13,	  /* never sent over RoCE v2 (A17 CA17-35), as 19 */
	ROCE_CM_REJ_SL = 14,
	ROCE_CM_REJ_TRAFFIC_CLASS = 15,
	ROCE_CM_REJ_HOP_LIMIT = 16,
	ROCE_CM_REJ_PACKET_RATE = 17,
	ROCE_CM_REJ_ALT_GID = 18,
	ROCE_CM_REJ_ALT_LID = 19,
	ROCE_CM_REJ_ALT_SL = 20,
	ROCE_CM_REJ_ALT_TRAFFIC_CLASS = 21,
	ROCE_CM_REJ_ALT_HOP_LIMIT = 22,
	ROCE_CM_REJ_ALT_PACKET_RATE = 23,
	ROCE_CM_REJ_CM_REDIRECT = 24,
	ROCE_CM_REJ_PORT_REDIRECT = 25,
	ROCE_CM_REJ_MTU = 26, /* info: the largest MTU code that would do */
	ROCE_CM_REJ_RESPONDER_RESOURCES = 27,
	ROCE_CM_REJ_CONSUMER = 28,
	ROCE_CM_REJ_RNR_RETRY = 29,
	ROCE_CM_REJ_DUPLICATE_COMM_ID = 30,
	ROCE_CM_REJ_CLASS_VERSION = 31,
	ROCE_CM_REJ_FLOW_LABEL = 32,
	ROCE_CM_REJ_ALT_FLOW_LABEL = 33,
	ROCE_CM_REJ_VENDOR_OPTION = 35,
};

/** Status of a SIDR_REP. */
enum roce_cm_sidr_status {
	ROCE_CM_SIDR_OK = 0,
	ROCE_CM_SIDR_UNSUPPORTED = 1, /* no such service */
	ROCE_CM_SIDR_REJECT = 2,
	ROCE_CM_SIDR_NO_QP = 3,
	ROCE_CM_SIDR_REDIRECT = 4,
	ROCE_CM_SIDR_VERSION = 5,
};

/** Status of an APR. */
enum roce_cm_apr_status {
	ROCE_CM_APR_OK = 0,
	ROCE_CM_APR_COMM_ID = 1,
	ROCE_CM_APR_UNSUPPORTED = 2,
	ROCE_CM_APR_REJECT = 3,
};

/** Transport service type of a REQ. */
enum roce_cm_transport {
	ROCE_CM_RC = 0,
	ROCE_CM_UC = 1,
	ROCE_CM_RD = 2,
	ROCE_CM_EXTENDED = 3, /* ext_transport 1: XRC */
};

/** A path inside a REQ or a LAP. */
struct roce_cm_path {
	uint8_t local_gid[16], remote_gid[16]; /* the sender's, the receiver's */
	uint16_t local_lid, remote_lid;	       /* mean nothing in RoCE (A17 CA17-34) */
	uint32_t flow_label;
	uint8_t tclass, hop_limit, rate, sl;
	uint8_t ack_timeout; /* code: 4.096 us * 2^code */
	bool subnet_local;
};

/** "Responder resources", "depth", "starting PSN": as the sender of the message sees them. */
struct roce_cm_req {
	uint64_t service_id, ca_guid;
	uint32_t qkey, qpn, eecn, remote_eecn, psn;
	uint16_t pkey;
	uint8_t responder_resources, initiator_depth;
	uint8_t remote_response_timeout; /* code: how fast the receiver shall answer */
	uint8_t local_response_timeout;	 /* code: how fast the sender answers */
	uint8_t transport, ext_transport;
	uint8_t retry_count, rnr_retry, max_cm_retries, mtu;
	bool flow_control, rdc_exists, srq;
	struct roce_cm_path primary, alternate;
};

struct roce_cm_rep {
	uint64_t ca_guid;
	uint32_t qkey, qpn, eecn, psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t target_ack_delay; /* code */
	uint8_t failover;	  /* 0 accepted, 1 not supported, 2 rejected */
	uint8_t rnr_retry;
	bool flow_control, srq;
};

struct roce_cm_lap {
	uint32_t qpn; /* of the receiver */
	uint8_t response_timeout;
	struct roce_cm_path path;
};

/** A message, host order. Fields that the message lacks are 0 after a parse. */
struct roce_cm_msg {
	uint16_t attr; /* enum roce_cm_attr */
	uint64_t tid;
	uint32_t local_id;  /* the sender's; SIDR: the request id */
	uint32_t remote_id; /* the receiver's */
	union {
		struct roce_cm_req req;
		struct {
			uint8_t about; /* enum roce_cm_about */
			uint8_t timeout;
		} mra;
		struct {
			uint16_t reason; /* enum roce_cm_reason */
			uint8_t about;
		} rej;
		struct roce_cm_rep rep;
		struct {
			uint32_t qpn; /* of the receiver */
		} dreq;
		struct {
			uint64_t service_id;
			uint16_t pkey;
		} sidr_req;
		struct {
			uint64_t service_id;
			uint32_t qpn, qkey;
			uint8_t status; /* enum roce_cm_sidr_status */
		} sidr_rep;
		struct roce_cm_lap lap;
		struct {
			uint8_t status; /* enum roce_cm_apr_status */
		} apr;
	};
	/*
	 * REJ's, SIDR_REP's and APR's additional information. A parse cuts a length that is too
	 * long. Both pointers go into the MAD that was parsed.
	 */
	const uint8_t *info;
	uint8_t info_len;
	const uint8_t *private_data; /* after a parse, the whole field */
	uint8_t private_len;
};

/** Why roce_cm_parse() refuses a MAD. */
enum roce_cm_parse {
	ROCE_CM_PARSE_OK = 0,
	ROCE_CM_PARSE_SHORT = -1,   /* not 256 bytes */
	ROCE_CM_PARSE_CLASS = -2,   /* of another class, or not the base version 1 */
	ROCE_CM_PARSE_VERSION = -3, /* another version of the class */
	ROCE_CM_PARSE_METHOD = -4,  /* not a Send, or with an error status */
	ROCE_CM_PARSE_ATTR = -5,    /* no message of the connection manager */
};

/**
 * Parse. Reserved bits are not looked at. With ROCE_CM_PARSE_VERSION attr, tid and local_id are
 * set, so that a REQ can be refused; with the others nothing is.
 */
int roce_cm_parse(const void *mad, size_t len, struct roce_cm_msg *msg);

/**
 * Emit 256 bytes; what is not named is 0. Values are cut to their fields' widths.
 * @return 0, or -EINVAL: no such message, private data or information too long.
 */
int roce_cm_emit(const struct roce_cm_msg *msg, void *mad);

/** "REQ" and so on; "?" for another id. */
const char *roce_cm_attr_name(unsigned int attr);
/** Private data that a message has room for, bytes; 0 for another id. */
unsigned int roce_cm_private_max(unsigned int attr);
/** What a REJ's reason means; never NULL. */
const char *roce_cm_reason_name(unsigned int reason);

/* ---- RDMA-CM: IP addresses over IB CM ---------- */

#define ROCE_CM_IP_LEN 36 /* before the private data of REQ and SIDR_REQ */
#define ROCE_CM_IP_REQ_PRIVATE (ROCE_CM_REQ_PRIVATE - ROCE_CM_IP_LEN)
#define ROCE_CM_IP_SIDR_PRIVATE (ROCE_CM_SIDR_REQ_PRIVATE - ROCE_CM_IP_LEN)
#define ROCE_CM_UDP_QKEY 0x01234567u /* of UD QPs that RDMA-CM connects */

/** Port spaces; with the port behind them they are the service id (annex A11). */
enum roce_cm_ps {
	ROCE_CM_PS_IPOIB = 0x0002,
	ROCE_CM_PS_TCP = 0x0106,
	ROCE_CM_PS_UDP = 0x0111,
	ROCE_CM_PS_IB = 0x013f,
};

static inline uint64_t
roce_cm_service_id(enum roce_cm_ps ps, uint16_t port)
{
	return (uint64_t)ps << 16 | port;
}

static inline uint16_t
roce_cm_service_port(uint64_t service_id)
{
	return (uint16_t)service_id;
}

/** The flow label of a connection between two ports, as the Linux RDMA core has it. */
static inline uint32_t
roce_cm_flow_label(uint16_t sport, uint16_t dport)
{
	return (sport * UINT32_C(31) + dport) & 0xfffff;
}

/** Addresses as GIDs have them: IPv4 as ::ffff:a.b.c.d. Both of one family. */
struct roce_cm_ip {
	uint8_t src[16], dst[16]; /* of the REQ's sender, of its receiver */
	uint16_t sport;
};

/** Emits ROCE_CM_IP_LEN bytes. */
void roce_cm_ip_emit(const struct roce_cm_ip *ip, void *buf);
/** @return 0, -EINVAL: another version, or neither IPv4 nor IPv6. */
int roce_cm_ip_parse(const void *buf, struct roce_cm_ip *ip);

#endif /* ROCE_CM_MSG_H */
