/* SPDX-License-Identifier: BSD-3-Clause */
/* Building a flow's header template. */
#include <errno.h>

#include "net_cksum.h"
#include "net_path.h"
#include "net_priv.h"

static uint16_t
emit_ipv4(struct net_path *p, uint8_t *l3)
{
	struct rte_ipv4_hdr ip = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.type_of_service = p->tclass,
		.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = p->hop_limit,
		.next_proto_id = p->proto,
		.src_addr = net_ip_v4(&p->src),
		.dst_addr = net_ip_v4(&p->dst),
	};

	p->cksum = net_cksum_add(0, &ip, sizeof(ip));
	p->len_off = (uint8_t)(p->l3_off + offsetof(struct rte_ipv4_hdr, total_length));
	p->len_base = sizeof(ip);
	memcpy(l3, &ip, sizeof(ip));
	return sizeof(ip);
}

static uint16_t
emit_ipv6(struct net_path *p, uint8_t *l3)
{
	struct rte_ipv6_hdr ip6 = {
		.vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)p->tclass << 20 |
			p->flow_label),
		.proto = p->proto,
		.hop_limits = p->hop_limit,
	};

	memcpy(ip6.src_addr, p->src.b, sizeof(ip6.src_addr));
	memcpy(ip6.dst_addr, p->dst.b, sizeof(ip6.dst_addr));
	p->len_off = (uint8_t)(p->l3_off + offsetof(struct rte_ipv6_hdr, payload_len));
	memcpy(l3, &ip6, sizeof(ip6));
	return sizeof(ip6);
}

int
net_path_init(struct net_path *p, const struct net_path_params *prm)
{
	const struct rte_ether_addr unresolved = { { 0 } };
	bool v4 = net_ip_is_v4(&prm->src);
	struct rte_udp_hdr udp;
	uint16_t len;

	if (v4 != net_ip_is_v4(&prm->dst) || prm->flow_label > 0xfffff ||
			net_ip_is_zero(&prm->dst))
		return -EINVAL;
	*p = (struct net_path){
		.v6 = !v4,
		.proto = prm->proto != 0 ? prm->proto : IPPROTO_UDP,
		.neigh = prm->neigh,
		.flow_label = prm->flow_label,
		.src = prm->src,
		.dst = prm->dst,
		.udp_sport = prm->sport,
		.vlan_tci = prm->vlan_tci,
		.tclass = prm->tclass,
		.hop_limit = prm->hop_limit != 0 ? prm->hop_limit : NET_HOP_LIMIT,
	};
	if (p->proto != IPPROTO_UDP)
		p->tclass &= 0xfc; /* net_path_emit_ip() says ECN for each packet */
	len = net_l2_emit(p->tmpl, &unresolved, &prm->smac, prm->vlan_tci,
		v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	p->l3_off = (uint8_t)len;
	len += v4 ? emit_ipv4(p, p->tmpl + len) : emit_ipv6(p, p->tmpl + len);
	if (p->proto == IPPROTO_UDP) {
		udp = (struct rte_udp_hdr){
			.src_port = rte_cpu_to_be_16(prm->sport),
			.dst_port = rte_cpu_to_be_16(prm->dport != 0 ? prm->dport : NET_ROCE_PORT),
		};
		memcpy(p->tmpl + len, &udp, sizeof(udp));
		len += sizeof(udp);
	}
	p->tmpl_len = (uint8_t)len;
	return 0;
}
