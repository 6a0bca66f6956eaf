/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Group membership messages of both families, wire format alone: IGMPv1 to v3 (RFC 1112, 2236,
 * 3376) and MLDv1 and v2 (RFC 2710, 3810). A version counts as IGMP's: MLDv1 is 2, MLDv2 is 3.
 */
#ifndef NET_IGMP_H
#define NET_IGMP_H

#include "net_addr.h"

struct net_pkt;

/** Records of a version 3 report (RFC 3376 4.2.12). Ours have no sources: all, or none. */
enum net_igmp_record {
	NET_IGMP_IS_EXCLUDE = 2,     /* answer: is a member */
	NET_IGMP_TO_INCLUDE = 3,     /* change: has left */
	NET_IGMP_TO_EXCLUDE = 4,     /* change: has joined */
};

enum net_igmp_what {
	NET_IGMP_QUERY,
	NET_IGMP_REPORT, /* of version 1 or 2, by somebody else */
	NET_IGMP_OTHER,	 /* right, and not for hosts */
};

struct net_igmp {
	enum net_igmp_what what;
	uint8_t version;     /* 1 to 3 */
	struct net_ip group; /* zero: a query about all */
	uint32_t max_resp_ms;
	uint8_t robustness;  /* version 3; 0: not told */
	uint16_t interval_s; /* the querier's; 0: not told */
};

/** A NET_GROUP packet. 0, or -EBADMSG when a check of the RFCs fails: to be ignored. */
int net_igmp_parse(const struct net_pkt *p, struct net_igmp *msg);

/** From where to where, and how; addresses of one family. */
struct net_igmp_head {
	struct net_ip src; /* IPv4: an own address, or 0.0.0.0; IPv6: the link-local one */
	struct rte_ether_addr smac;
	uint16_t vlan_tci;
};

struct net_igmp_group {
	struct net_ip group;
	uint8_t record; /* enum net_igmp_record */
};

#define NET_IGMP_RECORDS 64 /* of a report: 1336 bytes of IPv6 at most */
#define NET_IGMP_FRAME_MAX (14 + 4 + 40 + 8 + 8 + 20 * NET_IGMP_RECORDS)

/** A report of version 3 of 1 to NET_IGMP_RECORDS records. The frame's length. */
uint16_t net_igmp_emit_report(const struct net_igmp_head *h, const struct net_igmp_group *g,
	uint32_t n, uint8_t *frame);
/** A report of version 1 or 2, or (2 alone) that the group was left. The frame's length. */
uint16_t net_igmp_emit_old(const struct net_igmp_head *h, const struct net_ip *group,
	uint8_t version, bool leave, uint8_t *frame);

#endif /* NET_IGMP_H */
