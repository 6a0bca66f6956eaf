/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP messages, read and written. */
#include <assert.h>
#include <errno.h>

#include <rte_arp.h>

#include "net_arp.h"
#include "net_priv.h"

static_assert(sizeof(struct rte_arp_hdr) == NET_ARP_LEN, "RFC 826");

int
net_arp_parse(const uint8_t *buf, size_t len, struct net_arp *arp)
{
	struct rte_arp_hdr h;

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, buf, sizeof(h));
	if (h.arp_hardware != RTE_BE16(RTE_ARP_HRD_ETHER) ||
			h.arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
			h.arp_hlen != RTE_ETHER_ADDR_LEN || h.arp_plen != sizeof(rte_be32_t))
		return -EBADMSG;
	arp->op = rte_be_to_cpu_16(h.arp_opcode);
	if (arp->op != RTE_ARP_OP_REQUEST && arp->op != RTE_ARP_OP_REPLY)
		return -EBADMSG;
	arp->sha = h.arp_data.arp_sha;
	arp->tha = h.arp_data.arp_tha;
	arp->spa = net_ip_from_v4(h.arp_data.arp_sip);
	arp->tpa = net_ip_from_v4(h.arp_data.arp_tip);
	return 0;
}

uint16_t
net_arp_emit(const struct net_arp *arp, const struct rte_ether_addr *dst, uint16_t tci,
	uint8_t *frame)
{
	struct rte_arp_hdr h = {
		.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
		.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		.arp_hlen = RTE_ETHER_ADDR_LEN,
		.arp_plen = sizeof(rte_be32_t),
		.arp_opcode = rte_cpu_to_be_16(arp->op),
		.arp_data = {
			.arp_sha = arp->sha,
			.arp_sip = net_ip_v4(&arp->spa),
			.arp_tha = arp->tha,
			.arp_tip = net_ip_v4(&arp->tpa),
		},
	};
	uint16_t len = net_l2_emit(frame, dst, &arp->sha, tci, RTE_ETHER_TYPE_ARP);

	memcpy(frame + len, &h, sizeof(h));
	return (uint16_t)(len + sizeof(h));
}
