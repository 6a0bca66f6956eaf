/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions. A region in an arena is there at once; anything else is looked at
 * by the helper first. A deregistration is answered when no worker and no copier can touch the
 * memory any more: key killed, all workers through a quiescent point, nothing held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "copier.h"
#include "copier_mem.h"
#include "ctl_priv.h"
#include "mapmem.h"

#define PAGE UINT64_C(4096)
#define LANES_NS UINT64_C(50000000) /* between looks at the copiers */

struct reg_job {
	struct ctl_job job;
	struct ctl_client *client;
	struct ctl_elem e;
	struct ctl_mr *mr;	/* to be entered */
	struct ctl_mr *replaces; /* REREG_MR */
	struct mapmem *map;
	struct copier_lane *lane; /* made for this */
	bool no_lane;		  /* its uid may have no more */
	bool unmap;		  /* it has failed: give the mappings back */
	bool entered;		  /* reg_enter() was there */
	int status;
};

/* ---- where the memory is ---------- */

/* The application's memory in a C arena that a client address lies in. */
static struct ctl_mem *
mem_at(struct ctl_client *c, uint64_t addr, uint64_t len, uint8_t **ptr)
{
	for (uint32_t i = 0; i < c->num_arenas; i++) {
		struct ctl_arena *a = c->arenas[i];
		uint64_t off = addr - a->client_addr;
		struct ctl_mem *m;

		if (a->state != CTL_ARENA_READY || a->pages == NULL || addr < a->client_addr ||
			off >= a->mem.size || len > a->mem.size - off)
			continue;
		m = a->pages[off / PAGE];
		if (m == NULL || m->o.dying || off - m->block->offset > m->size ||
			len > m->size - (off - m->block->offset))
			return NULL;
		*ptr = a->mem.map + off;
		return m;
	}
	return NULL;
}

/* ---- entering a region ---------- */

int
ctl_mr_enter(struct ctl_client *c, struct ctl_mr *mr, const struct mr_desc *what)
{
	struct mr_desc desc = *what;
	struct mr_table *t = c->dev->sh.mrs;
	uint32_t key;
	int err = ctl_obj_room(c, CTL_MR); /* before an index is looked for */

	if (err < 0)
		return err;
	desc.pd = ctl_pd_number(mr->pd);
	desc.owner = mr;
	desc.context = c->id;
	err = mr_register(t, &desc, &key);
	if (err < 0)
		return err == -ENOSPC ? ctl_total_out(c->dev, CTL_MR) : err;
	/* A window's and a fast-register key's variant is the consumer's: known by the index. */
	err = ctl_obj_add(c, &mr->o, CTL_MR, key);
	if (err < 0) {
		/* No worker can have seen a key that nobody was told. */
		mr_kill(t, key);
		mr_release(t, key);
		return err;
	}
	mr->pd->o.refs++;
	if (mr->mem != NULL)
		mr->mem->o.refs++;
	return 0;
}

static struct mr_desc
reg_desc(const struct ctl_mr *mr)
{
	return (struct mr_desc){
		.type = MR_TYPE_REGION,
		.access = mr->access,
		.iova = mr->iova,
		.length = mr->length,
	};
}

static void
reg_reply(const struct ctl_mr *mr, void *rep)
{
	struct ring_ctrl_reg_mr_rep *p = rep;

	p->lkey = p->rkey = ctl_obj_handle(&mr->o);
	p->how = mr->how;
}

static int
mr_begin_kill(struct ctl_mr *mr);

/*
 * Enter the region. With REREG_MR its predecessor, which reg_start() has held, is let go of in
 * every case and goes when this succeeds; the answer waits for its end, when nobody uses the old
 * memory or goes by the old rights any more. 0, CTL_LATER or -errno.
 */
static int
reg_finish(struct ctl_client *c, struct ctl_mr *mr, struct ctl_mr *replaces,
	const struct mr_desc *desc, struct ctl_elem e)
{
	int err = ctl_mr_enter(c, mr, desc);

	if (err == 0)
		reg_reply(mr, ctl_elem_rep(e));
	if (replaces == NULL)
		return err;
	replaces->o.refs--;
	if (err < 0)
		return err;
	err = mr_begin_kill(replaces);
	if (err < 0) {
		ctl_mr_destroy(&mr->o); /* it frees itself, later */
		return err;
	}
	replaces->rereg = e;
	return CTL_LATER;
}

/* ---- foreign memory ---------- */

/* On the helper thread; nothing of this changes while the client lives. */
static struct copier_lane *
reg_lane(const struct ctl_client *c, int *err)
{
	const struct copier_who who = {
		.pid = c->pid,
		.pidfd = c->pidfd,
		.uid = c->uid,
		.gid = c->gid,
		.groups = c->groups,
		.num_groups = c->num_groups,
	};

	return copier_lane_new(&c->dev->sh, &who, err);
}

static bool
reg_step(struct ctl_job *j)
{
	struct reg_job *r = (struct reg_job *)j;

	/* What fails has its mappings taken away here as well: that may take as long. */
	if (r->unmap) {
		if (!mapmem_free_step(r->map))
			r->map = NULL;
		return r->map != NULL;
	}
	r->status = mapmem_step(r->map);
	if (r->status == 0 && mapmem_has_foreign(r->map) && !r->client->lane_made) {
		if (r->no_lane)
			r->status = -EAGAIN;
		else
			r->lane = reg_lane(r->client, &r->status);
		r->client->lane_made = r->lane != NULL;
	}
	r->unmap = r->status < 0;
	return r->status == 1 || r->unmap;
}

static int
reg_foreign(struct ctl_client *c, struct reg_job *r)
{
	bool foreign = mapmem_has_foreign(r->map);
	struct mr_desc desc = reg_desc(r->mr);
	int err;

	r->mr->how = foreign ? RING_MR_COPIED : RING_MR_MAPPED;
	desc.segs = mapmem_segs(r->map, &desc.num_segs);
	desc.lane = foreign ? c->lane : NULL;
	err = reg_finish(c, r->mr, r->replaces, &desc, r->e);
	if (r->mr->o.client != NULL) {
		r->mr->map = r->map; /* its mappings live as long as the region */
		mapmem_set_owner(r->map, r->mr);
		r->map = NULL;
	}
	return err;
}

/*
 * One more to be looked at. It may be many steps until it is entered, and as many as the uid may
 * have regions can be on their way: each is counted from here on.
 */
static int
reg_get(struct ctl_client *c)
{
	int err = c->registering == 0 ? ctl_user_fds(c->dev, c->user, MAPMEM_FDS) : 0;

	if (err < 0)
		return err;
	c->registering++;
	c->user->registering++;
	return 0;
}

static void
reg_put(struct ctl_client *c)
{
	c->user->registering--;
	if (--c->registering == 0)
		ctl_user_fds_put(c->user, MAPMEM_FDS);
}

static void
reg_enter(struct ctl_client *c, struct reg_job *r)
{
	r->entered = true;
	reg_put(c);
	if (r->lane != NULL)
		c->lane = r->lane; /* the next ones' too, whatever becomes of this one */
	r->mr->pd->o.refs--; /* held for the job */
	if (c->state == CTL_CLIENT_DYING)
		r->status = -ECONNRESET;
	if (r->status == 0)
		r->status = reg_foreign(c, r);
	else if (r->replaces != NULL)
		r->replaces->o.refs--;
	if (r->mr->o.client == NULL)
		free(r->mr);
}

static void
reg_done(struct worker_device *d, struct ctl_job *j)
{
	struct reg_job *r = (struct reg_job *)j;
	struct ctl_client *c = r->client;
	int err;

	if (!r->entered)
		reg_enter(c, r);
	if (r->map != NULL) { /* it was looked at in vain */
		r->unmap = true;
		ctl_helper_submit(d, j);
		return;
	}
	c->jobs--;
	err = r->status;
	if (err == -EPERM || err == -EACCES)
		LOG_LIMITED(&c->logged, ctl_log, NOTICE,
			"context %u: memory of process %d cannot be opened as uid %u: it is "
			"privileged, not dumpable, or Yama wants prctl(PR_SET_PTRACER)",
			c->id, (int)c->pid, (unsigned int)c->uid);
	if (err != CTL_LATER)
		ctl_elem_done(r->e, err);
	ctl_client_reap(c);
	free(r);
}

static int
reg_submit(struct ctl_client *c, struct ctl_mr *mr, struct ctl_mr *replaces, struct ctl_elem e)
{
	bool write = (mr->access & (MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_ATOMIC)) != 0;
	struct mapmem_req req = {
		.pid = c->pid,
		.pidfd = c->pidfd,
		.uid = c->uid,
		.write = write,
		.on_demand = (mr->access & MR_ON_DEMAND) != 0,
		.addr = mr->addr,
		.len = mr->length,
		.used = &c->user->mapped,
		.quota = c->dev->cfg.quota_mr_bytes,
		.share = {&c->user->maps, &c->dev->maps},
		.deaths = &c->dev->deaths,
	};
	struct reg_job *r;
	int err;

	if (c->pid == 0) {
		LOG_LIMITED(&c->logged, ctl_log, NOTICE,
			"context %u: its process has no name in this pid namespace, so its own "
			"memory cannot be registered; use rnic_alloc()",
			c->id);
		return -EOPNOTSUPP;
	}
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->map = mapmem_new(&req);
	err = r->map != NULL ? reg_get(c) : -ENOMEM;
	if (err < 0) {
		if (r->map != NULL)
			mapmem_free_step(r->map); /* nothing is mapped yet: all of it */
		free(r);
		return err;
	}
	r->job.client = c;
	r->job.step = reg_step;
	r->job.done = reg_done;
	r->client = c;
	r->no_lane = c->user->abandoned >= CTL_ABANDONED_UID;
	r->mr = mr;
	r->replaces = replaces;
	r->e = e;
	mr->pd->o.refs++;
	c->jobs++;
	ctl_helper_submit(c->dev, &r->job);
	return CTL_LATER;
}

/* ---- REG_MR ---------- */

static bool
range_ok(uint64_t addr, uint64_t length, uint64_t iova, uint32_t access)
{
	if (length == 0 || length > UINT64_C(1) << 48 || addr + length < addr)
		return false;
	return (access & MR_ZERO_BASED) ? iova == 0 : iova + length >= iova;
}

/* Those that are still looked at are as good as there. */
static int
reg_room(const struct ctl_client *c)
{
	const struct ctl_user *u = c->user;

	if ((uint64_t)u->count[CTL_MR] + u->registering >= ctl_quota(c->dev, CTL_MR))
		return -EDQUOT;
	return ctl_obj_room(c, CTL_MR);
}

/*
 * Whether what the client may register it for can be kept: no memory here outlives the power, so
 * that nothing is persistent.
 */
static int
reg_access(uint32_t access)
{
	if (!mr_access_valid(access))
		return -EINVAL;
	return (access & MR_FLUSH_PERSISTENT) != 0 ? -EOPNOTSUPP : 0;
}

/* Takes the region over in every case. 0, -errno or CTL_LATER. */
static int
reg_start(struct ctl_client *c, struct ctl_mr *mr, struct ctl_mr *replaces, struct ctl_elem e)
{
	struct mr_seg seg = {.length = mr->length, .kind = MR_SEG_DIRECT};
	struct mr_desc desc = reg_desc(mr);
	int err = reg_room(c);

	if (err < 0) {
		free(mr);
		return err;
	}
	if (replaces != NULL)
		replaces->o.refs++; /* not deregistered while this is under way */
	mr->mem = mem_at(c, mr->addr, mr->length, &seg.ptr);
	if (mr->mem == NULL) {
		err = reg_submit(c, mr, replaces, e);
	} else {
		mr->how = RING_MR_ARENA;
		desc.segs = &seg;
		desc.num_segs = 1;
		err = reg_finish(c, mr, replaces, &desc, e);
		if (mr->o.client == NULL)
			free(mr);
		return err;
	}
	if (err < 0) {
		if (replaces != NULL)
			replaces->o.refs--;
		free(mr);
	}
	return err;
}

int
ctl_op_reg_mr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_reg_mr_req *r = req;
	struct ctl_pd *pd = ctl_obj_find(c, CTL_PD, r->pd);
	struct ctl_mr *mr;
	int err;

	(void)rep;
	if (pd == NULL || r->reserved != 0 || (r->flags & ~RING_MR_REMAP) != 0)
		return -EINVAL;
	err = reg_access(r->access);
	if (err < 0)
		return err;
	if (r->flags & RING_MR_REMAP)
		return -EOPNOTSUPP;
	if (r->length == 0 && (r->access & MR_ON_DEMAND))
		return -EOPNOTSUPP; /* implicit regions are not offered (odp capabilities) */
	if (!range_ok(r->addr, r->length, r->iova, r->access))
		return -EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return -ENOMEM;
	mr->type = MR_TYPE_REGION;
	mr->pd = pd;
	mr->access = r->access;
	mr->addr = r->addr;
	mr->length = r->length;
	mr->iova = r->iova;
	return reg_start(c, mr, NULL, e);
}

#define REREG_ALL (RING_REREG_TRANSLATION | RING_REREG_PD | RING_REREG_ACCESS)

/* What the region will be: as it was, but for what the request names. */
static int
rereg_fill(struct ctl_client *c, const struct ring_ctrl_rereg_mr_req *r, const struct ctl_mr *old,
	struct ctl_mr *mr)
{
	mr->type = MR_TYPE_REGION;
	mr->pd = (r->what & RING_REREG_PD) ? ctl_obj_find(c, CTL_PD, r->pd) : old->pd;
	mr->access = (r->what & RING_REREG_ACCESS) ? r->access : old->access;
	mr->addr = old->addr;
	mr->length = old->length;
	mr->iova = old->iova;
	if (r->what & RING_REREG_TRANSLATION) {
		mr->addr = r->addr;
		mr->length = r->length;
		mr->iova = r->iova;
	}
	if (mr->pd == NULL || !range_ok(mr->addr, mr->length, mr->iova, mr->access))
		return -EINVAL;
	return reg_access(mr->access);
}

int
ctl_op_rereg_mr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	const struct ring_ctrl_rereg_mr_req *r = req;
	struct ctl_mr *old = ctl_obj_find(c, CTL_MR, r->lkey);
	struct ctl_mr *mr;
	int err;

	(void)rep;
	if (old == NULL || old->type != MR_TYPE_REGION || r->what == 0 ||
		(r->what & ~(uint32_t)REREG_ALL) != 0 || r->reserved != 0 ||
		(r->flags & ~RING_MR_REMAP) != 0)
		return -EINVAL;
	if (r->flags & RING_MR_REMAP)
		return -EOPNOTSUPP;
	if (old->killed)
		return -EFAULT;
	if (old->o.refs != 0)
		return -EBUSY;
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return -ENOMEM;
	err = rereg_fill(c, r, old, mr);
	if (err < 0) {
		free(mr);
		return err;
	}
	return reg_start(c, mr, old, e);
}

/* ---- deregistration ---------- */

static void
mr_gone(struct ctl_mr *mr)
{
	struct ctl_elem rereg = mr->rereg;

	if (mr->mem != NULL)
		mr->mem->o.refs--;
	mr->pd->o.refs--;
	ctl_user_uncharge(mr->o.client->user, mr->charged);
	ctl_obj_del(&mr->o, 0);
	free(mr);
	ctl_elem_done(rereg, 0);
}

static bool
unmap_step(struct ctl_job *j)
{
	struct ctl_mr *mr = (struct ctl_mr *)((uint8_t *)j - offsetof(struct ctl_mr, unmap));

	return mapmem_free_step(mr->map);
}

static void
unmap_done(struct worker_device *d, struct ctl_job *j)
{
	(void)d;
	mr_gone((struct ctl_mr *)((uint8_t *)j - offsetof(struct ctl_mr, unmap)));
}

/* The helper takes its mappings away; only then is it gone, and what it was charged is free. */
static void
mr_unmap(struct worker_device *d, struct ctl_mr *mr)
{
	if (mr->map == NULL) {
		mr_gone(mr);
		return;
	}
	mapmem_set_owner(mr->map, NULL);
	mr->unmap.client = mr->o.client;
	mr->unmap.pool = CTL_POOL_ARENA; /* it looks at no process */
	mr->unmap.step = unmap_step;
	mr->unmap.done = unmap_done;
	ctl_helper_submit(d, &mr->unmap);
}

static void
mr_passed(struct worker_device *d, struct ctl_grace *g)
{
	struct ctl_mr *mr = (struct ctl_mr *)((uint8_t *)g - offsetof(struct ctl_mr, grace));

	/* A copier still works on it: it is looked at again after another period. */
	if (mr_release(d->sh.mrs, ctl_obj_handle(&mr->o)) == NULL)
		ctl_grace_add(d, g);
	else
		mr_unmap(d, mr);
}

static int
mr_begin_kill(struct ctl_mr *mr)
{
	struct worker_device *d = mr->o.client->dev;
	int err = mr->killed ? 0 : mr_kill(d->sh.mrs, ctl_obj_handle(&mr->o));

	if (err < 0)
		return err;
	ctl_obj_dying(&mr->o);
	ctl_export_end(d, &mr->export);
	mr->grace.passed = mr_passed;
	ctl_grace_add(d, &mr->grace);
	return 0;
}

void
ctl_mr_destroy(struct ctl_obj *o)
{
	/* -EBUSY: its windows go first, and each of them makes us look again. */
	mr_begin_kill((struct ctl_mr *)o);
}

int
ctl_mr_dereg(struct ctl_client *c, const struct ring_ctrl_handle_req *r, struct ctl_elem e,
	bool window)
{
	struct ctl_mr *mr = ctl_obj_find(c, CTL_MR, r->handle);
	int err;

	if (mr == NULL || r->reserved != 0 || ctl_mr_is_window(mr) != window)
		return -EINVAL;
	if (mr->o.refs != 0)
		return -EBUSY;
	err = mr_begin_kill(mr);
	if (err < 0)
		return err;
	mr->o.destroyer = e;
	return CTL_LATER;
}

int
ctl_op_dereg_mr(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	(void)rep;
	return ctl_mr_dereg(c, req, e, false);
}

/* ---- truncated objects ---------- */

static void
mr_died(void *arg, void *owner)
{
	struct ctl_mr *mr = owner;
	struct worker_device *d = arg;
	struct ctl_client *c = mr->o.client;

	if (mr->killed || mr->o.dying)
		return;
	LOG_LIMITED(&c->logged, ctl_log, NOTICE,
		"context %u: the object under MR %#x was truncated; it is no longer valid", c->id,
		ctl_obj_handle(&mr->o));
	mr->killed = mr_kill(d->sh.mrs, ctl_obj_handle(&mr->o)) == 0;
	if (!mr->killed) /* windows are open on it, which we cannot close */
		ctl_client_kill(c, "has truncated memory under a memory window");
}

void
ctl_mrs_check(struct worker_device *d)
{
	mapmem_deaths_take(&d->deaths, mr_died, d);
}

/* ---- lanes ---------- */

void
ctl_lanes_check(struct worker_device *d)
{
	struct ctl_client *c;
	uint64_t now = ctl_now(d);
	bool any = false;

	if (now < d->lanes_due)
		return;
	any = ctl_helper_check(d, now);
	any |= copier_lanes_join(d, false);
	TAILQ_FOREACH(c, &d->clients, link) {
		if (c->lane == NULL)
			continue;
		if (copier_lane_stuck(c->lane, now, d->lane_limit_ns)) {
			copier_lane_kill(c->lane);
			ctl_client_hangs(c, "lets accesses to its memory hang");
		}
		any |= copier_lane_drain(c->lane);
	}
	d->lanes_due = now + LANES_NS;
	d->lanes_busy = any;
}
