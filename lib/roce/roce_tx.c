/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building packets: buffers taken in bulk, the flow's header template, BTH, and the ICRC, made
 * while the payload is copied or, for short packets, at the burst's end. What is built has room
 * in the batch already; a packet whose payload comes from foreign memory is parked in its QP.
 */
#include <string.h>

#include "base_crc.h"
#include "base_prefetch.h"

#include "roce_priv.h"

#define AHEAD 6 /* buffers whose lines are on their way */
#define LINES 3 /* of data: a packet of 64 bytes and its headers */

/** Where the last core that had the buffer read it, its lines are still: fetched to be written. */
static inline void
tx_prefetch(const struct roce *r, uint32_t i)
{
	const char *m = (const char *)r->mbuf[i];
	const char *data = m + r->tx_data_off; /* not by m's own words, which are not here yet */

	prefetch_write(m);
	for (uint32_t l = 0; l < LINES; l++)
		prefetch_write(data + l * RTE_CACHE_LINE_SIZE);
}

/** Buffers as they lie in the pool: looked at when they are used, not before. */
static bool
tx_refill(struct roce *r)
{
	uint32_t want = ROCE_MBUFS;

	for (; want > 0; want /= 4)
		if (rte_mempool_get_bulk(r->cfg.tx_pool, (void **)r->mbuf, want) == 0)
			break;
	r->num_mbufs = want;
	for (uint32_t i = 0; i < AHEAD && i < want; i++)
		tx_prefetch(r, want - 1 - i);
	if (want == 0)
		roce_count(r, ROCE_C_NO_MBUF);
	return want != 0;
}

/** The next buffer, with all in its first line as a packet without offloads has it. */
static inline struct rte_mbuf *
tx_take(struct roce *r)
{
	struct rte_mbuf *m = r->mbuf[--r->num_mbufs];

	if (r->num_mbufs >= AHEAD)
		tx_prefetch(r, r->num_mbufs - AHEAD);
	m->ol_flags &= RTE_MBUF_F_EXTERNAL;
	m->packet_type = 0;
	m->vlan_tci = 0;
	m->port = RTE_MBUF_PORT_INVALID;
	rte_pktmbuf_reset_headroom(m);
	return m;
}

bool
roce_tx_ready_port(struct roce *r, uint16_t port)
{
	if (unlikely(net_tx_room(r->cfg.tx[port]) == 0))
		return false;
	return likely(r->num_mbufs > 0) || tx_refill(r);
}

static inline void
tx_open(struct roce *r, const struct net_path *path, uint64_t l2, uint8_t opcode, uint8_t se,
	uint32_t dest_qpn, uint32_t psn, uint32_t len, struct roce_out *out)
{
	uint32_t hdr = ROCE_BTH_LEN + roce_opcodes[opcode].ext_len;
	uint32_t udp;
	uint8_t *frame;

	out->m = tx_take(r);
	out->len = len;
	out->pad = roce_pad(len);
	out->v6 = path->v6;
	udp = hdr + len + out->pad + ROCE_ICRC_LEN;
	frame = rte_pktmbuf_mtod(out->m, uint8_t *);
	out->m->data_len = (uint16_t)(path->tmpl_len + udp);
	out->m->pkt_len = path->tmpl_len + udp;
	out->bth = net_path_emit(path, frame, (uint16_t)udp, l2);
	out->l3 = frame + path->l3_off;
	out->ext = out->bth + ROCE_BTH_LEN;
	out->payload = out->bth + hdr;
	roce_bth_emit(out->bth, opcode,
		      (uint8_t)(se | ROCE_BTH_MIGREQ | out->pad << ROCE_BTH_PAD_SHIFT),
		      ROCE_PKEY_DEFAULT, dest_qpn, psn);
}

void
roce_tx_open(struct roce *r, struct roce_qp *qp, uint8_t opcode, uint8_t se, uint32_t psn,
	     uint32_t len, struct roce_out *out)
{
	tx_open(r, &qp->path, r->l2, opcode, se, qp->dest_qpn, psn, len, out);
}

void
roce_tx_open_path(struct roce *r, const struct net_path *path, uint64_t l2, uint8_t opcode,
		  uint8_t se, uint32_t dest_qpn, uint32_t psn, uint32_t len, struct roce_out *out)
{
	tx_open(r, path, l2, opcode, se, dest_qpn, psn, len, out);
}

uint32_t *
roce_tx_crc(const struct roce_out *out, uint32_t *crc)
{
	if (out->len < ROCE_LATE_PAYLOAD)
		return NULL;
	*crc = roce_icrc_headers(out->l3, out->v6, out->bth, (size_t)(out->payload - out->bth));
	return crc;
}

void
roce_tx_finish_late(struct roce *r)
{
	for (uint32_t i = 0; i < r->num_late; i++)
		roce_icrc_write(r->late[i].l3, r->late[i].v6, r->late[i].len);
	r->num_late = 0;
}

static inline void
tx_push(struct roce *r, uint16_t port, struct rte_mbuf *m)
{
	net_tx_push(r->cfg.tx[port], m); /* roce_tx_ready() saw room */
	roce_count(r, ROCE_C_TX_PACKETS);
}

void
roce_tx_push(struct roce *r, uint16_t port, struct rte_mbuf *m)
{
	tx_push(r, port, m);
}

static inline void
tx_seal(struct roce *r, struct roce_out *out, const uint32_t *crc)
{
	uint8_t *end = out->payload + out->len;

	memset(end, 0, ROCE_ICRC_LEN); /* the pad, and what the ICRC will overwrite: no loop */
	if (crc) {
		roce_icrc_store(end + out->pad, crc32_update(*crc, end, out->pad));
	} else {
		if (unlikely(r->num_late == ROCE_LATE))
			roce_tx_finish_late(r);
		r->late[r->num_late++] = (struct roce_late){
			out->l3, (uint32_t)(end - out->l3) + out->pad + ROCE_ICRC_LEN, out->v6};
	}
}

void
roce_tx_seal(struct roce *r, struct roce_out *out, const uint32_t *crc)
{
	tx_seal(r, out, crc);
}

void
roce_tx_seal_now(struct roce_out *out, const uint32_t *crc)
{
	uint8_t *end = out->payload + out->len;

	memset(end, 0, out->pad);
	if (crc)
		roce_icrc_store(end + out->pad, crc32_update(*crc, end, out->pad));
	else
		roce_icrc_write(out->l3, out->v6,
				(size_t)(end - out->l3) + out->pad + ROCE_ICRC_LEN);
}

void
roce_tx_close(struct roce *r, struct roce_qp *qp, struct roce_out *out, const uint32_t *crc)
{
	tx_seal(r, out, crc);
	tx_push(r, qp->port, out->m);
	counter_add(&r->counter[ROCE_C_TX_BYTES], out->len);
}

void
roce_tx_cancel(struct roce *r, struct roce_out *out)
{
	rte_pktmbuf_reset(out->m);
	r->mbuf[r->num_mbufs++] = out->m;
}

void
roce_tx_park(struct roce_qp *qp, const struct roce_out *out, uint32_t psn, bool response)
{
	memset(out->payload + out->len, 0, out->pad);
	qp->v.io[VERBS_TX]->user = out->m;
	qp->parked = out->m;
	qp->parked_psn = psn;
	qp->parked_port = qp->port;
	qp->parked_l3 = (uint8_t)(out->l3 - rte_pktmbuf_mtod(out->m, uint8_t *));
	qp->parked_v6 = out->v6;
	qp->parked_response = response;
	qp->parked_ready = false;
}

bool
roce_tx_unpark(struct roce *r, struct roce_qp *qp)
{
	struct rte_mbuf *m = qp->parked;
	uint32_t off = qp->parked_l3;

	if (net_tx_room(r->cfg.tx[qp->parked_port]) == 0)
		return false;
	roce_icrc_write(rte_pktmbuf_mtod_offset(m, void *, off), qp->parked_v6, m->pkt_len - off);
	qp->parked = NULL;
	/* The peer's time to answer begins when our own memory has come. */
	if (!qp->parked_response && qp->due[ROCE_T_ACK])
		roce_timer_set(r, qp, ROCE_T_ACK, r->now + roce_timeout_ns(qp->timeout));
	tx_push(r, qp->parked_port, m);
	if (unlikely(roce_is_uc(qp)))
		roce_uc_sent(r, qp);
	return true;
}

void
roce_tx_release(struct roce *r)
{
	if (r->num_mbufs)
		rte_mempool_put_bulk(r->cfg.tx_pool, (void **)r->mbuf, r->num_mbufs);
	r->num_mbufs = 0;
}
