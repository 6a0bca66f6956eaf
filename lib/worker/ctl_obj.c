/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of clients, their handles, and what a uid may have of each. */
#include <errno.h>
#include <stdlib.h>

#include "ctl_priv.h"
#include "roce_cm.h"

const char *const ctl_kind_name[CTL_KINDS] = {
	[CTL_PD] = "pds",
	[CTL_CHANNEL] = "channels",
	[CTL_CQ] = "cqs",
	[CTL_QP] = "qps",
	[CTL_SRQ] = "srqs",
	[CTL_OPEN] = "xrc_openings",
	[CTL_XRCD] = "xrcds",
	[CTL_MR] = "mrs",
	[CTL_MEM] = "blocks",
	[CTL_AH] = "ahs",
	[CTL_CM_CHANNEL] = "cm_channels",
	[CTL_CM_ID] = "cm_ids",
};

/* ---- uids ---------- */

struct ctl_user *
ctl_user_get(struct worker_device *d, uid_t uid)
{
	struct ctl_user *u;

	LIST_FOREACH(u, &d->users, link) {
		if (u->uid == uid)
			break;
	}
	if (u == NULL) {
		u = calloc(1, sizeof(*u));
		if (u == NULL)
			return NULL;
		u->uid = uid;
		u->maps.limit = d->maps.limit / 4;
		ctl_neigh_waits_init(&u->line, -EINPROGRESS);
		LIST_INIT(&u->mcasts);
		LIST_INSERT_HEAD(&d->users, u, link);
	}
	u->clients++;
	return u;
}

void
ctl_user_put(struct ctl_user *u)
{
	u->clients--;
	ctl_user_free(u);
}

void
ctl_user_free(struct ctl_user *u)
{
	if (u->clients == 0 && u->resolving == 0 && u->abandoned == 0 && u->xrcs == 0) {
		LIST_REMOVE(u, link);
		if (u->cm_quota != NULL)
			roce_cm_quota_free(u->cm_quota); /* goes with the last connection */
		free(u);
	}
}

int
ctl_user_charge(struct worker_device *d, struct ctl_user *u, uint64_t bytes)
{
	uint64_t limit = d->cfg.quota_arena_bytes;

	if (u->bytes > limit || bytes > limit - u->bytes)
		return -EDQUOT;
	u->bytes += bytes;
	return 0;
}

void
ctl_user_uncharge(struct ctl_user *u, uint64_t bytes)
{
	u->bytes -= bytes;
}

int
ctl_user_fds(struct worker_device *d, struct ctl_user *u, uint32_t n)
{
	uint32_t limit = d->cfg.quota_fds;

	if (u->fds > limit || n > limit - u->fds) {
		LOG_LIMITED(&d->fds_told, ctl_log, NOTICE,
			"uid %u has as many file descriptors open here as it may (%u)",
			(unsigned int)u->uid, limit);
		return -EDQUOT;
	}
	u->fds += n;
	return 0;
}

void
ctl_user_fds_put(struct ctl_user *u, uint32_t n)
{
	u->fds -= n;
}

uint32_t
ctl_quota(const struct worker_device *d, enum ctl_kind kind)
{
	switch (kind) {
	case CTL_QP:
	case CTL_CM_ID:
		return d->cfg.quota_qps;
	case CTL_CQ:
		return d->cfg.quota_cqs;
	case CTL_SRQ:
		return d->cfg.quota_srqs;
	case CTL_MR:
		return d->cfg.quota_mrs;
	case CTL_MEM:
		return 1u << 20;
	case CTL_AH:
		return CTL_AHS / 2; /* half of what there is, as of the others */
	default:
		return d->cfg.quota_cqs;
	}
}

int
ctl_total_out(struct worker_device *d, enum ctl_kind kind)
{
	LOG_LIMITED(&d->total_told, ctl_log, WARNING,
		"all clients together have as many %s as the device was made for",
		ctl_kind_name[kind]);
	return -ENOMEM;
}

/* ---- handles ---------- */

struct ctl_map *
ctl_kind_map(struct ctl_client *c, enum ctl_kind kind)
{
	return kind == CTL_MEM ? &c->mems : &c->dev->objs[kind];
}

int
ctl_obj_room(const struct ctl_client *c, enum ctl_kind kind)
{
	if (c->user->count[kind] >= ctl_quota(c->dev, kind))
		return -EDQUOT;
	return kind == CTL_CQ && c->dev->objs[kind].count >= c->dev->cfg.max_cqs
		? ctl_total_out(c->dev, kind)
		: 0;
}

int
ctl_obj_add(struct ctl_client *c, struct ctl_obj *o, enum ctl_kind kind, uint64_t key)
{
	int err = ctl_obj_room(c, kind);

	if (err < 0)
		return err;
	err = ctl_map_add(ctl_kind_map(c, kind), &o->node, key);
	if (err < 0)
		return err;
	o->kind = (uint8_t)kind;
	o->client = c;
	c->user->count[kind]++;
	TAILQ_INSERT_TAIL(&c->objs[kind], o, link);
	c->num_objs[kind]++;
	return 0;
}

int
ctl_obj_add_numbered(struct ctl_client *c, struct ctl_obj *o, enum ctl_kind kind)
{
	int err;

	do {
		if (++c->dev->next_handle >= RING_NO_HANDLE)
			c->dev->next_handle = 1;
		err = ctl_obj_add(c, o, kind, c->dev->next_handle);
	} while (err == -EEXIST);
	return err;
}

void *
ctl_obj_find(struct ctl_client *c, enum ctl_kind kind, uint64_t key)
{
	struct ctl_map_node *n = ctl_map_find(ctl_kind_map(c, kind), key);
	struct ctl_obj *o = (struct ctl_obj *)n; /* the node comes first */

	return o != NULL && o->client == c && !o->dying ? o : NULL;
}

void
ctl_obj_dying(struct ctl_obj *o)
{
	struct ctl_client *c = o->client;

	if (o->dying)
		return;
	o->dying = true;
	TAILQ_REMOVE(&c->objs[o->kind], o, link);
	c->num_objs[o->kind]--;
	TAILQ_INSERT_TAIL(&c->dying[o->kind], o, link);
	c->num_dying[o->kind]++;
	c->reap_vain = 0;
}

void
ctl_obj_del(struct ctl_obj *o, int status)
{
	struct ctl_client *c = o->client;
	struct ctl_elem e = o->destroyer;

	ctl_map_del(ctl_kind_map(c, o->kind), &o->node);
	ctl_obj_dying(o);
	TAILQ_REMOVE(&c->dying[o->kind], o, link);
	c->num_dying[o->kind]--;
	c->reap_vain = 0;
	c->user->count[o->kind]--;
	if (e.call != NULL) {
		struct ring_ctrl_done_rep *rep = ctl_elem_rep(e);

		rep->events = o->events;
		o->destroyer.call = NULL;
		ctl_elem_done(e, status);
	}
	ctl_client_reap(c);
}
