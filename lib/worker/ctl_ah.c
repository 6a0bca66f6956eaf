/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles: made when the next hop's MAC is known, found by workers in a table of their own
 * (roce_ah.h), freed when no worker can have found them and no packet waits by them.
 */
#include <errno.h>
#include <stdlib.h>

#include "ctl_priv.h"
#include "roce_ah.h"

struct ctl_ah {
	struct ctl_obj o;
	struct ctl_pd *pd;
	struct net_neigh *neigh; /* referenced; NULL: a group's */
	struct roce_ah *removed;
	struct ctl_grace grace;
	struct ctl_msg msg;
	uint32_t worker; /* that is to forget it */
};

/* ---- making ---------- */

/* A request that waits for a neighbour. */
struct ctl_ah_making {
	struct ctl_neigh_wait wait;
	LIST_ENTRY(ctl_ah_making) link;
	struct ctl_client *client;
	struct ctl_elem e;
	struct ctl_ah *ah;
	struct net_neigh *neigh;
	struct verbs_av av;
};

static void
making_free(struct ctl_ah_making *m)
{
	LIST_REMOVE(m, link);
	m->client->user->resolves--;
	if (m->neigh != NULL)
		net_neigh_put(m->neigh);
	free(m->ah);
	free(m);
}

/* All is known: enter it. Takes the neighbour's reference and m->ah on success. */
static int
making_finish(struct ctl_ah_making *m)
{
	const struct ring_ctrl_create_ah_req *r = ctl_elem_req(m->e);
	struct ctl_client *c = m->client;
	struct ctl_pd *pd = ctl_obj_find(c, CTL_PD, r->pd); /* it may have gone meanwhile */
	struct ring_ctrl_handle_rep *p = ctl_elem_rep(m->e);
	struct worker_device *d = c->dev;
	struct roce_ah *made;
	uint32_t number;
	int err = pd != NULL ? ctl_obj_room(c, CTL_AH) : -EINVAL;

	if (err == 0)
		err = roce_ah_make(d->sh.ahs, ctl_pd_number(pd), &m->av, r->av.port - 1u, &made,
			&number);
	if (err == -ENOSPC)
		return ctl_total_out(d, CTL_AH);
	if (err < 0)
		return err;
	err = ctl_obj_add(c, &m->ah->o, CTL_AH, number);
	if (err < 0) {
		roce_ah_unmake(d->sh.ahs, made);
		return err;
	}
	/* last: from here on a number that somebody guesses has packets wait by it */
	roce_ah_enter(d->sh.ahs, made);
	m->ah->pd = pd;
	pd->o.refs++;
	m->ah->neigh = m->neigh;
	p->handle = number;
	m->neigh = NULL;
	m->ah = NULL;
	return 0;
}

/* 0, -errno, or -EINPROGRESS: the wait's function goes on with it. */
static int
making_try(struct ctl_ah_making *m)
{
	const struct ring_ctrl_create_ah_req *r = ctl_elem_req(m->e);
	int err;

	if (ctl_av_group(m->client, &r->av, &m->av))
		return making_finish(m);
	err = ctl_av_resolve(m->client, &r->av, &m->av);
	if (err == -EAGAIN)
		return ctl_neigh_line(m->client, &m->wait);
	if (err < 0)
		return err;
	m->neigh = m->av.neigh;
	err = ctl_neigh_wait(m->client, m->neigh, &m->wait);
	return err == 0 ? making_finish(m) : err;
}

static void
making_end(struct ctl_ah_making *m, int status)
{
	struct ctl_elem e = m->e;

	making_free(m);
	ctl_elem_done(e, status);
}

static void
making_resolved(struct ctl_neigh_wait *w, int status)
{
	struct ctl_ah_making *m = (struct ctl_ah_making *)w;

	if (status == -EAGAIN)
		status = making_try(m); /* it stood in line */
	else if (status == 0)
		status = making_finish(m);
	if (status != -EINPROGRESS)
		making_end(m, status);
}

void
ctl_ahs_cancel(struct ctl_client *c)
{
	struct ctl_ah_making *m;

	while ((m = LIST_FIRST(&c->ahs)) != NULL) {
		ctl_neigh_cancel(c->dev, &m->wait);
		making_end(m, -ECONNRESET);
	}
}

int
ctl_op_create_ah(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_create_ah_req *r = req;
	struct ctl_ah_making *m;
	int err;

	(void)rep;
	if (r->reserved != 0 || ctl_obj_find(c, CTL_PD, r->pd) == NULL)
		return -EINVAL;
	err = ctl_obj_room(c, CTL_AH);
	if (err < 0)
		return err;
	if (c->user->resolves >= CTL_RESOLVES)
		return -EAGAIN;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	m->wait.resolved = making_resolved;
	m->client = c;
	m->e = e;
	LIST_INSERT_HEAD(&c->ahs, m, link);
	c->user->resolves++;
	m->ah = calloc(1, sizeof(*m->ah));
	err = m->ah != NULL ? making_try(m) : -ENOMEM;
	if (err == -EINPROGRESS)
		return CTL_LATER;
	making_free(m);
	return err;
}

/* ---- unmaking ---------- */

static void
ah_end(struct ctl_ah *ah)
{
	roce_ah_free(ah->removed);
	if (ah->neigh != NULL)
		net_neigh_put(ah->neigh);
	ah->pd->o.refs--;
	ctl_obj_del(&ah->o, 0);
	free(ah);
}

/* One worker after the other drops the packets that wait by it. */
static void
ah_forgotten(struct worker_device *d, struct ctl_msg *m)
{
	struct ctl_ah *ah = (struct ctl_ah *)((uint8_t *)m - offsetof(struct ctl_ah, msg));

	if (ah->worker == d->sh.num_workers || !roce_ah_waits(ah->removed)) {
		ah_end(ah);
		return;
	}
	m->m.type = WORKER_MSG_AH_FORGET;
	m->m.ah = ah->removed;
	m->replied = ah_forgotten;
	ctl_msg_send(d, ah->worker++, m);
}

static void
ah_passed(struct worker_device *d, struct ctl_grace *g)
{
	struct ctl_ah *ah = (struct ctl_ah *)((uint8_t *)g - offsetof(struct ctl_ah, grace));

	ah_forgotten(d, &ah->msg);
}

void
ctl_ah_destroy(struct ctl_obj *o)
{
	struct ctl_ah *ah = (struct ctl_ah *)o;
	struct worker_device *d = o->client->dev;

	ctl_obj_dying(o);
	ah->removed = roce_ah_remove(d->sh.ahs, ctl_obj_handle(o));
	ah->grace.passed = ah_passed;
	ctl_grace_add(d, &ah->grace);
}

int
ctl_op_destroy_ah(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_handle_req *r = req;
	struct ctl_obj *o = ctl_obj_find(c, CTL_AH, r->handle);

	(void)rep;
	if (o == NULL || r->reserved != 0)
		return -EINVAL;
	o->destroyer = e;
	ctl_ah_destroy(o);
	return CTL_LATER;
}
