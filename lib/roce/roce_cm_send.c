/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that leave: once, or kept in the record to be sent again; and answers to senders of
 * whom nothing is known. Which state follows is the callers' business.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "roce_cm_priv.h"

bool
cm_send_mad(struct roce_cm *cm, const struct roce_cm_av *av, const uint8_t *mad)
{
	const unsigned int attr = (unsigned int)mad[16] << 8 | mad[17];
	const bool ok = cm->cfg.send_mad(cm->cfg.ctx, av, mad);

	cm_count(cm, ok ? ROCE_CM_C_TX_REQ + (attr - ROCE_CM_ATTR_FIRST) : ROCE_CM_C_TX_BUSY);
	return ok;
}

bool
cm_send(struct roce_cm *cm, const struct roce_cm_av *av, const struct roce_cm_msg *msg)
{
	uint8_t mad[ROCE_MAD_LEN];

	return roce_cm_emit(msg, mad) == 0 && cm_send_mad(cm, av, mad);
}

int
cm_keep(struct roce_cm_conn *c, const struct roce_cm_msg *msg)
{
	uint8_t *mad = malloc(ROCE_MAD_LEN);
	int rc;

	if (mad == NULL)
		return -ENOMEM;
	rc = roce_cm_emit(msg, mad);
	if (rc) {
		free(mad);
		return rc;
	}
	cm_mad_drop(c);
	c->mad = mad;
	return 0;
}

/*
 * When there was no way out, another attempt soon instead of a retry; but not for ever, so that
 * a port that never sends again ends like a peer that never answers.
 */
static void
transmit(struct roce_cm_conn *c, uint64_t now)
{
	const bool ok = cm_send_mad(c->cm, &c->av, c->mad);

	c->mra_seen = false;
	if (ok || ++c->busy >= CM_BUSY_MAX) {
		c->busy = 0;
		cm_arm(c, now + c->interval);
	} else {
		cm_arm(c, now + CM_BUSY_NS);
	}
}

void
cm_send_first(struct roce_cm_conn *c, uint64_t now)
{
	c->retries_left = c->max_retries;
	c->busy = 0;
	transmit(c, now);
}

void
cm_send_again(struct roce_cm_conn *c, uint64_t now)
{
	transmit(c, now);
}

static struct roce_cm_msg
msg_of(const struct roce_cm_conn *c, uint16_t attr, const void *data, uint8_t len)
{
	return (struct roce_cm_msg){
		.attr = attr,
		.tid = c->tid,
		.local_id = c->local_id,
		.remote_id = c->remote_id,
		.private_data = data,
		.private_len = len,
	};
}

/* Which message of the peer a REJ or MRA now is about. */
static uint8_t
about(const struct roce_cm_conn *c)
{
	if (cm_in(c, S_REQ_IN))
		return ROCE_CM_ABOUT_REQ;
	return cm_in(c, S_REP_IN) ? ROCE_CM_ABOUT_REP : ROCE_CM_ABOUT_OTHER;
}

void
cm_send_rej(struct roce_cm_conn *c, uint16_t reason, const void *info, uint8_t info_len,
	    const void *data, uint8_t len)
{
	struct roce_cm_msg m = msg_of(c, ROCE_CM_REJ, data, len);

	m.rej.reason = reason;
	m.rej.about = about(c);
	m.info = info;
	m.info_len = info_len;
	cm_send(c->cm, &c->av, &m);
}

void
cm_send_rej_timeout(struct roce_cm_conn *c)
{
	const rte_be64_t guid = rte_cpu_to_be_64(c->cm->cfg.ca_guid);

	cm_send_rej(c, ROCE_CM_REJ_TIMEOUT, &guid, sizeof(guid), NULL, 0);
}

void
cm_send_mra(struct roce_cm_conn *c, uint8_t timeout, const void *data, uint8_t len)
{
	struct roce_cm_msg m = msg_of(c, ROCE_CM_MRA, data, len);

	m.mra.about = about(c);
	m.mra.timeout = timeout;
	cm_send(c->cm, &c->av, &m);
}

static void
send_kept_or_plain(struct roce_cm_conn *c, uint16_t attr)
{
	const struct roce_cm_msg m = msg_of(c, attr, NULL, 0);

	if (c->mad)
		cm_send_mad(c->cm, &c->av, c->mad);
	else
		cm_send(c->cm, &c->av, &m);
}

void
cm_send_rtu(struct roce_cm_conn *c)
{
	send_kept_or_plain(c, ROCE_CM_RTU);
}

void
cm_send_drep(struct roce_cm_conn *c)
{
	send_kept_or_plain(c, ROCE_CM_DREP);
}

void
cm_send_dreq(struct roce_cm_conn *c, const void *data, uint8_t len, uint64_t now)
{
	struct roce_cm_msg m = msg_of(c, ROCE_CM_DREQ, data, len);

	m.tid = (uint64_t)c->cm->tid_high << 32 | c->local_id;
	m.dreq.qpn = c->dest_qpn;
	if (cm_keep(c, &m) == 0) {
		cm_set_state(c, ROCE_CM_DREQ_SENT);
		cm_send_first(c, now);
	} else {
		cm_send(c->cm, &c->av, &m);
		cm_to_timewait(c, now);
	}
}

/* ---- to senders who are not known ---------- */

struct roce_cm_av
cm_av_back(const struct roce_cm_rx *rx)
{
	return (struct roce_cm_av){
		.sgid = rx->dst,
		.dgid = rx->src,
		.port = rx->port,
		.vlan = rx->vlan,
		.pkey = rx->pkey,
		.sl = rx->sl,
		.tclass = rx->tclass,
		.hop_limit = CM_HOP_LIMIT,
		.mtu = rx->mtu,
	};
}

static struct roce_cm_msg
crossed(const struct roce_cm_msg *to, uint16_t attr)
{
	return (struct roce_cm_msg){
		.attr = attr,
		.tid = to->tid,
		.local_id = to->remote_id,
		.remote_id = to->local_id,
	};
}

static void
reply(struct roce_cm *cm, const struct roce_cm_msg *m, const struct roce_cm_rx *rx)
{
	const struct roce_cm_av av = cm_av_back(rx);

	cm_send(cm, &av, m);
}

void
cm_reply_rej(struct roce_cm *cm, const struct roce_cm_msg *to, const struct roce_cm_rx *rx,
	     uint8_t what, uint16_t reason, const void *info, uint8_t info_len)
{
	struct roce_cm_msg m = crossed(to, ROCE_CM_REJ);

	m.rej.about = what;
	m.rej.reason = reason;
	m.info = info;
	m.info_len = info_len;
	reply(cm, &m, rx);
}

void
cm_reply_drep(struct roce_cm *cm, const struct roce_cm_msg *to, const struct roce_cm_rx *rx)
{
	const struct roce_cm_msg m = crossed(to, ROCE_CM_DREP);

	reply(cm, &m, rx);
}

void
cm_reply_apr(struct roce_cm *cm, const struct roce_cm_msg *to, const struct roce_cm_rx *rx,
	     uint8_t status)
{
	struct roce_cm_msg m = crossed(to, ROCE_CM_APR);

	m.apr.status = status;
	reply(cm, &m, rx);
}

void
cm_reply_sidr(struct roce_cm *cm, const struct roce_cm_msg *to, const struct roce_cm_rx *rx,
	      uint8_t status)
{
	struct roce_cm_msg m = {
		.attr = ROCE_CM_SIDR_REP,
		.tid = to->tid,
		.local_id = to->local_id,
	};

	m.sidr_rep.status = status;
	m.sidr_rep.service_id = to->attr == ROCE_CM_SIDR_REQ ? to->sidr_req.service_id : 0;
	reply(cm, &m, rx);
}
