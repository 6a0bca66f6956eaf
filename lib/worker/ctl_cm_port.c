/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Port numbers. Each port space has its own; several ids may have the same when their addresses
 * differ, when both say so and neither listens, or when both only connect and their peers differ.
 */
#include <bsd/stdlib.h>
#include <errno.h>
#include <stdlib.h>

#include "ctl_cm.h"

#define PRIVILEGED 1024u
/* Free ones are looked for here: what Linux has by default. */
#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT 28232u
#define TRIES 512u /* for one of its own, by whoever may share */
#define TRIES_UNIT 256u /* of such looks a unit of the client's turn */

static uint64_t
key_of(const struct ctl_cm_id *id, uint32_t port)
{
	return (uint64_t)id->ps << 16 | port;
}

static bool
same_ip(const struct ring_cm_addr *a, const struct ring_cm_addr *b)
{
	return memcmp(a->ip.raw, b->ip.raw, sizeof(a->ip.raw)) == 0 &&
		(a->scope == b->scope || a->scope == 0 || b->scope == 0);
}

/* Only one of the two can have what comes to the port. */
static bool
overlap(const struct ctl_cm_id *a, const struct ctl_cm_id *b)
{
	bool any_a = ctl_cm_addr_any(&a->src), any_b = ctl_cm_addr_any(&b->src);

	/* IPv6's any takes IPv4 too, unless it said that it does not. */
	if (a->src.version != b->src.version)
		return (any_a && a->src.version == 6 && !a->afonly) ||
			(any_b && b->src.version == 6 && !b->afonly);
	return any_a || any_b || same_ip(&a->src, &b->src);
}

/* Both know their peer, and it is not the same one. */
static bool
peers_differ(const struct ctl_cm_id *a, const struct ctl_cm_id *b)
{
	return a->dst.version != 0 && b->dst.version != 0 &&
		(a->dst.port != b->dst.port || !same_ip(&a->dst, &b->dst));
}

static bool
conflict(const struct ctl_cm_id *id, const struct ctl_cm_port *p)
{
	const struct ctl_cm_id *o;

	LIST_FOREACH(o, &p->ids, bound_link) {
		if (!overlap(id, o) || peers_differ(id, o))
			continue;
		if (!id->reuseaddr || !o->reuseaddr || o->state == CTL_CM_LISTEN)
			return true;
	}
	return false;
}

static int
take(struct ctl_cm_id *id, uint32_t port)
{
	struct ctl_cm *cm = &id->o.client->dev->cm;
	struct ctl_cm_port *p = (struct ctl_cm_port *)ctl_map_find(&cm->ports, key_of(id, port));

	if (p != NULL && conflict(id, p))
		return -EADDRINUSE;
	if (p == NULL) {
		p = calloc(1, sizeof(*p));
		if (p == NULL || ctl_map_add(&cm->ports, &p->node, key_of(id, port)) < 0) {
			free(p);
			return -ENOMEM;
		}
		LIST_INIT(&p->ids);
	}
	LIST_INSERT_HEAD(&p->ids, id, bound_link);
	id->bound = p;
	id->src.port = (uint16_t)port;
	return 0;
}

/* A number that nobody has; or, whoever knows its peer, one that others use with other peers. */
static int
take_free(struct ctl_cm_id *id)
{
	struct ctl_cm *cm = &id->o.client->dev->cm;
	uint32_t start = arc4random_uniform(EPHEMERAL_COUNT);
	bool peer = id->dst.version != 0;

	for (uint32_t i = 0; i < EPHEMERAL_COUNT + (peer ? TRIES : 0); i++) {
		uint32_t port = EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT;
		bool may_share = peer && i >= TRIES;

		if (i % TRIES_UNIT == TRIES_UNIT - 1)
			id->o.client->spent++;
		if (!may_share && ctl_map_find(&cm->ports, key_of(id, port)) != NULL)
			continue;
		if (take(id, port) == 0)
			return 0;
	}
	return -EADDRNOTAVAIL;
}

int
ctl_cm_port_take(struct ctl_cm_id *id)
{
	if (id->src.port == 0)
		return take_free(id);
	if (id->src.port < PRIVILEGED && id->o.client->uid != 0 && id->ps != RING_CM_PS_IB)
		return -EACCES;
	return take(id, id->src.port);
}

int
ctl_cm_port_listen(struct ctl_cm_id *id)
{
	const struct ctl_cm_id *o;

	/* Who shares the number by consent may not once one of them listens. */
	LIST_FOREACH(o, &id->bound->ids, bound_link) {
		if (o != id && overlap(id, o) && o->dst.version == 0)
			return -EADDRINUSE;
	}
	return 0;
}

void
ctl_cm_port_release(struct ctl_cm_id *id)
{
	struct ctl_cm_port *p = id->bound;

	if (p == NULL)
		return;
	LIST_REMOVE(id, bound_link);
	id->bound = NULL;
	if (!LIST_EMPTY(&p->ids))
		return;
	ctl_map_del(&id->o.client->dev->cm.ports, &p->node);
	free(p);
}
