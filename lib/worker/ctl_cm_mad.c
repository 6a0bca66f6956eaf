/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MADs of the connection manager that leave: no faster than peers take them in, for whoever loses
 * one waits seconds until it is sent again. What is above the rate waits in a queue, of which
 * answers to what others send may fill a part.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_cm.h"
#include "roce_cm.h"
#include "roce_gsi.h"

#define BURST 256u		      /* at once after a silence; Linux has room for 512 */
#define INTERVAL_NS UINT64_C(15625)   /* and then one in so long: 64 a ms */
#define MAX_QUEUED 4096u
#define MAX_ANSWERS 2048u
#define UNTAGGED 0xffff /* of struct roce_cm_av */

struct ctl_cm_mad {
	STAILQ_ENTRY(ctl_cm_mad) link;
	bool answer;
	struct roce_cm_av av;	/* of one that is no answer */
	struct roce_mad way;	/* an answer's: what it answers; data is the MAD that leaves */
};

/*
 * It answers what is being looked at: by the way that has come, now or later, which needs no state.
 * To ask for the sender's address would give a neighbour to whomever a stranger says that he is.
 */
static bool
is_answer(const struct worker_device *d, const struct roce_cm_av *av)
{
	const struct roce_mad *rx = d->cm.rx;

	return rx != NULL && net_ip_eq(&rx->src, &av->dgid) && net_ip_eq(&rx->dst, &av->sgid);
}

static bool
send_by_route(struct worker_device *d, const struct roce_cm_av *av, const uint8_t *mad)
{
	struct ring_ctrl_av r = {
		.hop_limit = av->hop_limit,
		.traffic_class = av->tclass,
		.sl = av->sl,
		.port = (uint8_t)(av->port + 1),
		.is_global = 1,
	};
	struct verbs_av v;
	int gid, err;

	if (av->port >= d->sh.num_ports)
		return false;
	gid = ctl_net_gid(d, av->port, &av->sgid, av->vlan == UNTAGGED ? 0 : av->vlan);
	if (gid < 0)
		return false; /* the address was taken away */
	r.sgid_index = (uint8_t)gid;
	memcpy(r.dgid.raw, av->dgid.b, sizeof(r.dgid.raw));
	if (ctl_av_resolve_own(d, &r, &v) < 0)
		return false;
	err = ctl_gsi_send(d, 0, &v, mad);
	net_neigh_put(v.neigh);
	return err == 0;
}

/* ---- the rate ---------- */

/* Each takes a step of time, of which a burst may be in hand. */
static bool
may_now(struct ctl_cm *cm, uint64_t now)
{
	uint64_t oldest = now > BURST * INTERVAL_NS ? now - BURST * INTERVAL_NS : 0;

	if (cm->mad_time < oldest)
		cm->mad_time = oldest;
	if (cm->mad_time + INTERVAL_NS > now)
		return false;
	cm->mad_time += INTERVAL_NS;
	return true;
}

static bool
enqueue(struct ctl_cm *cm, const struct roce_cm_av *av, const uint8_t *mad, bool answer)
{
	const uint32_t max = answer ? MAX_ANSWERS : MAX_QUEUED;
	struct ctl_cm_mad *m = cm->num_mads < max ? malloc(sizeof(*m)) : NULL;

	if (m == NULL)
		return false;
	m->answer = answer;
	m->av = *av;
	if (answer)
		m->way = *cm->rx;
	memcpy(m->way.data, mad, sizeof(m->way.data));
	STAILQ_INSERT_TAIL(&cm->mads, m, link);
	cm->num_mads++;
	return true;
}

bool
ctl_cm_mad_send(void *ctx, const struct roce_cm_av *av, const uint8_t *mad)
{
	struct worker_device *d = ctx;
	bool answer = is_answer(d, av);

	if (!STAILQ_EMPTY(&d->cm.mads) || !may_now(&d->cm, ctl_now(d)))
		return enqueue(&d->cm, av, mad, answer);
	return answer ? ctl_gsi_reply(d, d->cm.rx, mad) == 0 : send_by_route(d, av, mad);
}

/* What is lost here is sent again in time. */
static void
send_queued(struct worker_device *d, const struct ctl_cm_mad *m)
{
	if (m->answer)
		ctl_gsi_reply(d, &m->way, m->way.data);
	else
		send_by_route(d, &m->av, m->way.data);
}

void
ctl_cm_mad_run(struct worker_device *d, uint64_t now)
{
	struct ctl_cm_mad *m;

	while ((m = STAILQ_FIRST(&d->cm.mads)) != NULL && may_now(&d->cm, now)) {
		STAILQ_REMOVE_HEAD(&d->cm.mads, link);
		d->cm.num_mads--;
		send_queued(d, m);
		free(m);
	}
}

uint64_t
ctl_cm_mad_due(const struct worker_device *d)
{
	return STAILQ_EMPTY(&d->cm.mads) ? UINT64_MAX : d->cm.mad_time + INTERVAL_NS;
}

void
ctl_cm_mad_fini(struct worker_device *d)
{
	struct ctl_cm_mad *m;

	while ((m = STAILQ_FIRST(&d->cm.mads)) != NULL) {
		STAILQ_REMOVE_HEAD(&d->cm.mads, link);
		free(m);
	}
	d->cm.num_mads = 0;
}
