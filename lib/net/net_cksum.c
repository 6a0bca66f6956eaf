/* SPDX-License-Identifier: BSD-3-Clause */
/* Internet checksum over buffers, pseudo-headers and whole packets. */
#include "net_cksum.h"
#include "net_parse.h"
#include "net_priv.h"

/* Ones' complement addition of 64-bit words folds to the same 16 bits (RFC 1071 2). */
static inline uint64_t
add64(uint64_t sum, uint64_t w)
{
	sum += w;
	return sum + (sum < w);
}

static inline uint16_t
fold64(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	return net_cksum_fold((uint32_t)sum);
}

uint16_t
net_cksum_add(uint16_t sum, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	uint64_t acc = sum, w;

	for (; len >= sizeof(w); len -= sizeof(w), p += sizeof(w)) {
		memcpy(&w, p, sizeof(w));
		acc = add64(acc, w);
	}
	if (len != 0) {
		w = 0;
		memcpy(&w, p, len);
		acc = add64(acc, w);
	}
	return fold64(acc);
}

uint16_t
net_cksum_pseudo(const struct net_ip *src, const struct net_ip *dst, uint8_t proto,
	uint32_t l4_len)
{
	uint64_t acc = rte_cpu_to_be_32(l4_len);

	acc += (uint32_t)rte_cpu_to_be_16(proto);
	if (net_ip_is_v4(src))
		return fold64(acc + net_ip_v4(src) + net_ip_v4(dst));
	acc = add64(acc, net_ip_word(src, 0));
	acc = add64(acc, net_ip_word(src, 1));
	acc = add64(acc, net_ip_word(dst, 0));
	return fold64(add64(acc, net_ip_word(dst, 1)));
}

bool
net_cksum_ipv4_ok(const void *hdr)
{
	uint64_t a, b;
	uint32_t c;

	memcpy(&a, hdr, sizeof(a));
	memcpy(&b, (const uint8_t *)hdr + 8, sizeof(b));
	memcpy(&c, (const uint8_t *)hdr + 16, sizeof(c));
	return fold64(add64(add64(a, b), c)) == 0xffff;
}

/* A chain's bytes; a segment that starts at an odd offset sums byte-swapped. */
static uint16_t
cksum_mbuf(uint16_t sum, const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	uint32_t done = 0, n;
	uint16_t part;

	/* Parsed headers lie in the first segment, and so does @off. */
	for (; m != NULL && done < len; m = m->next, off = 0) {
		n = RTE_MIN(len - done, m->data_len - off);
		part = net_cksum_add(0, rte_pktmbuf_mtod_offset(m, const uint8_t *, off), n);
		sum = net_cksum_fold((uint32_t)sum + ((done & 1) ? rte_bswap16(part) : part));
		done += n;
	}
	return sum;
}

bool
net_l4_cksum_ok(const struct net_pkt *p)
{
	uint32_t len = p->payload_len + (uint32_t)(p->payload_off - p->l4_off);
	struct net_ip src, dst;
	uint16_t sum = 0;

	if (p->kind == NET_UDP) {
		const struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(p->m,
			const struct rte_udp_hdr *, p->l4_off);

		if (udp->dgram_cksum == 0)
			return true;
	}
	if ((p->kind == NET_UDP || p->kind == NET_TCP) &&
			(p->m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) ==
			RTE_MBUF_F_RX_L4_CKSUM_GOOD)
		return true;
	if (p->proto != IPPROTO_ICMP) { /* the only one without a pseudo-header */
		src = net_pkt_src(p);
		dst = net_pkt_dst(p);
		sum = net_cksum_pseudo(&src, &dst, p->proto, len);
	}
	return cksum_mbuf(sum, p->m, p->l4_off, len) == 0xffff;
}
