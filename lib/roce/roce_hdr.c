/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE headers, parse and emit. Where a header lies is the opcode table's
 * knowledge; here each header is read and written once.
 */
#include <string.h>

#include "roce_hdr.h"

static const char *const drop_names[] = {
	[-ROCE_OK] = "ok",
	[-ROCE_DROP_SHORT] = "short",
	[-ROCE_DROP_TVER] = "tver",
	[-ROCE_DROP_OPCODE] = "opcode",
	[-ROCE_DROP_PAD] = "pad",
	[-ROCE_DROP_QP0] = "qp0",
};

const char *
roce_drop_name(int drop)
{
	const unsigned int i = -(unsigned int)drop;

	return i < sizeof(drop_names) / sizeof(drop_names[0]) ? drop_names[i] : "unknown";
}

static void
parse_bth(const struct roce_bth *bth, struct roce_pkt *pkt)
{
	const uint32_t qpn = be32toh(bth->qpn);
	const uint32_t apsn = be32toh(bth->apsn);

	pkt->opcode = bth->opcode;
	pkt->se = bth->flags & ROCE_BTH_SE;
	pkt->migreq = bth->flags & ROCE_BTH_MIGREQ;
	pkt->pad = roce_bth_pad(bth);
	pkt->tver = bth->flags & ROCE_BTH_TVER_MASK;
	pkt->pkey = be16toh(bth->pkey);
	pkt->fecn = qpn & ROCE_BTH_FECN;
	pkt->becn = qpn & ROCE_BTH_BECN;
	pkt->dest_qpn = qpn & ROCE_QPN_MASK;
	pkt->ackreq = apsn & ROCE_BTH_ACKREQ;
	pkt->psn = apsn & ROCE_PSN_MASK;
}

/* Headers of requests that name memory. */
static void
parse_memory(const uint8_t *p, struct roce_pkt *pkt)
{
	const struct roce_opcode_info *info = pkt->info;

	if (info->reth != 0) {
		const struct roce_reth *h = (const void *)(p + info->reth);

		pkt->va = be64toh(h->va);
		pkt->rkey = be32toh(h->rkey);
		pkt->dma_len = be32toh(h->dma_len);
	}
	if (info->atomiceth != 0) {
		const struct roce_atomiceth *h = (const void *)(p + info->atomiceth);

		pkt->va = be64toh(h->va);
		pkt->rkey = be32toh(h->rkey);
		pkt->swap_add = be64toh(h->swap_add);
		pkt->compare = be64toh(h->compare);
	}
	if (info->feth != 0) {
		const struct roce_feth *h = (const void *)(p + info->feth);
		const uint32_t word = be32toh(h->word);

		pkt->flush_sel = word >> 4 & 3;
		pkt->flush_plt = word & 15;
	}
}

/* Headers of responses. */
static void
parse_ack(const uint8_t *p, struct roce_pkt *pkt)
{
	const struct roce_opcode_info *info = pkt->info;

	if (info->aeth != 0) {
		const struct roce_aeth *h = (const void *)(p + info->aeth);
		const uint32_t word = be32toh(h->word);

		pkt->syndrome = word >> 24;
		pkt->msn = word & ROCE_PSN_MASK;
	}
	if (info->atomack != 0) {
		const struct roce_atomack *h = (const void *)(p + info->atomack);

		pkt->orig = be64toh(h->orig);
	}
}

/* Headers that go with a message: immediate, key to invalidate, addressing. */
static void
parse_message(const uint8_t *p, struct roce_pkt *pkt)
{
	const struct roce_opcode_info *info = pkt->info;

	if (info->immdt != 0)
		pkt->imm_be = ((const struct roce_immdt *)(p + info->immdt))->imm;
	if (info->ieth != 0)
		pkt->inv_rkey = be32toh(((const struct roce_ieth *)(p + info->ieth))->rkey);
	if (info->deth != 0) {
		const struct roce_deth *h = (const void *)(p + info->deth);

		pkt->qkey = be32toh(h->qkey);
		pkt->src_qpn = be32toh(h->src_qpn) & ROCE_QPN_MASK;
	}
	if (info->xrceth != 0) {
		const struct roce_xrceth *h = (const void *)(p + info->xrceth);

		pkt->srqn = be32toh(h->srqn) & ROCE_QPN_MASK;
	}
}

int
roce_parse(const void *bth, size_t len, struct roce_pkt *pkt)
{
	const uint8_t *p = bth;
	size_t hdr_len;

	if (len < ROCE_BTH_LEN)
		return ROCE_DROP_SHORT;
	*pkt = (struct roce_pkt){.info = &roce_opcodes[p[0]], .payload = p + ROCE_BTH_LEN};
	parse_bth(bth, pkt);
	if (pkt->tver != 0)
		return ROCE_DROP_TVER;
	if (pkt->info->transport == ROCE_TR_NONE)
		return ROCE_DROP_OPCODE;
	if (pkt->dest_qpn == 0)
		return ROCE_DROP_QP0;
	hdr_len = ROCE_BTH_LEN + pkt->info->ext_len;
	if (len < hdr_len)
		return ROCE_DROP_SHORT;
	if (len - hdr_len < pkt->pad)
		return ROCE_DROP_PAD;
	pkt->payload = p + hdr_len;
	pkt->payload_len = len - hdr_len - pkt->pad;
	if (pkt->info->ext_len == 0)
		return ROCE_OK;
	if (roce_any(pkt->info->mask, ROCE_RESPONSE)) {
		parse_ack(p, pkt);
		return ROCE_OK;
	}
	parse_memory(p, pkt);
	parse_message(p, pkt);
	return ROCE_OK;
}

static void
emit_bth(const struct roce_pkt *pkt, uint8_t *p)
{
	const uint8_t flags = (pkt->se ? ROCE_BTH_SE : 0) | (pkt->migreq ? ROCE_BTH_MIGREQ : 0) |
		(pkt->pad << ROCE_BTH_PAD_SHIFT & ROCE_BTH_PAD_MASK) |
		(pkt->tver & ROCE_BTH_TVER_MASK);

	roce_bth_emit(p, pkt->opcode, flags, pkt->pkey,
		(pkt->dest_qpn & ROCE_QPN_MASK) | (pkt->fecn ? ROCE_BTH_FECN : 0) |
			(pkt->becn ? ROCE_BTH_BECN : 0),
		(pkt->psn & ROCE_PSN_MASK) | (pkt->ackreq ? ROCE_BTH_ACKREQ : 0));
}

static void
emit_ext(const struct roce_opcode_info *info, const struct roce_pkt *pkt, uint8_t *p)
{
	if (info->reth != 0)
		roce_reth_emit(p + info->reth, pkt->va, pkt->rkey, pkt->dma_len);
	if (info->aeth != 0)
		roce_aeth_emit(p + info->aeth, pkt->syndrome, pkt->msn);
	if (info->atomiceth != 0)
		roce_atomiceth_emit(p + info->atomiceth, pkt->va, pkt->rkey, pkt->swap_add,
			pkt->compare);
	if (info->atomack != 0)
		roce_atomack_emit(p + info->atomack, pkt->orig);
	if (info->immdt != 0)
		roce_immdt_emit(p + info->immdt, pkt->imm_be);
	if (info->ieth != 0)
		roce_ieth_emit(p + info->ieth, pkt->inv_rkey);
	if (info->deth != 0)
		roce_deth_emit(p + info->deth, pkt->qkey, pkt->src_qpn);
	if (info->xrceth != 0)
		roce_xrceth_emit(p + info->xrceth, pkt->srqn);
	if (info->feth != 0)
		roce_feth_emit(p + info->feth, pkt->flush_sel, pkt->flush_plt);
	if (info->transport == ROCE_TR_CNP)
		memset(p + ROCE_BTH_LEN, 0, ROCE_CNP_RESV_LEN);
}

size_t
roce_emit_headers(const struct roce_pkt *pkt, void *buf, size_t room)
{
	const struct roce_opcode_info *info = &roce_opcodes[pkt->opcode];
	const size_t len = ROCE_BTH_LEN + info->ext_len;

	if (info->transport == ROCE_TR_NONE || room < len)
		return 0;
	emit_bth(pkt, buf);
	emit_ext(info, pkt, buf);
	return len;
}

size_t
roce_emit(const struct roce_pkt *pkt, void *buf, size_t room)
{
	const size_t hdr_len = roce_emit_headers(pkt, buf, room);
	const size_t pad = pkt->pad & 3;
	uint8_t *at = (uint8_t *)buf + hdr_len;

	if (hdr_len == 0 || room - hdr_len < pad || room - hdr_len - pad < pkt->payload_len)
		return 0;
	if (pkt->payload_len != 0)
		memcpy(at, pkt->payload, pkt->payload_len);
	memset(at + pkt->payload_len, 0, pad);
	return hdr_len + pkt->payload_len + pad;
}
