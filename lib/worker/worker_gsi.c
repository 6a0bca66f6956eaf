/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MADs on their way to the control thread: copied out of their packets into a fixed number of
 * places, so that whoever sends many holds no receive buffer, and shared between sources, so that
 * one of them does not take the places of all. What finds none is dropped: the CM sends again.
 */
#include <errno.h>
#include <stdlib.h>

#include "roce_gsi.h"
#include "worker_priv.h"

struct gsi_slot {
	struct roce_mad mad; /* first */
	struct gsi_slot *next;
	uint8_t source;
};

struct worker_gsi {
	struct gsi_slot *free;
	uint32_t num_free;
	uint32_t key; /* sources fall together by it, which they do not know */
	uint32_t used[WORKER_GSI_SOURCES];
	struct gsi_slot slot[WORKER_GSI];
};

int
worker_gsi_create(struct worker *w)
{
	struct worker_gsi *g = calloc(1, sizeof(*g));

	w->gsi = g;
	if (g == NULL)
		return -ENOMEM;
	g->key = (uint32_t)(w->s->seed ^ w->s->seed >> 32);
	for (uint32_t i = 0; i < WORKER_GSI; i++) {
		g->slot[i].next = g->free;
		g->free = &g->slot[i];
	}
	g->num_free = WORKER_GSI;
	return 0;
}

void
worker_gsi_destroy(struct worker *w)
{
	free(w->gsi);
}

static uint8_t
gsi_source(const struct worker_gsi *g, const struct net_ip *ip)
{
	return (uint8_t)((net_ip_hash(ip, (uint16_t)g->key) ^ g->key >> 16) %
			 WORKER_GSI_SOURCES);
}

/** Another one while it has fewer than are left: alone it gets half of them. */
static bool
gsi_may(const struct worker_gsi *g, uint8_t source)
{
	return g->used[source] < g->num_free;
}

bool
worker_gsi_rx(void *ctx, const struct net_pkt *np, const struct roce_pkt *p)
{
	struct net_ip src = net_pkt_src(np);
	struct worker *w = ctx;
	struct worker_gsi *g = w->gsi;
	uint8_t source = gsi_source(g, &src);
	struct worker_msg *m;
	struct gsi_slot *s;

	if (!gsi_may(g, source))
		worker_own_reclaim(w);
	if (!gsi_may(g, source)) {
		worker_count(w, g->num_free ? WORKER_C_DROP_GSI_SHARE : WORKER_C_DROP_GSI_FULL, 1);
		return false;
	}
	m = worker_own_get(w, WORKER_OWN_GSI); /* one for each place */
	s = g->free;
	if (m == NULL)
		return false;
	if (!roce_gsi_take(w->roce, np, p, &s->mad)) {
		worker_own_put(w, m);
		return true; /* and counted by what is wrong with it */
	}
	g->free = s->next;
	g->num_free--;
	g->used[source]++;
	s->source = source;
	m->type = WORKER_MSG_RX_GSI;
	m->mad = &s->mad;
	worker_count(w, WORKER_C_RX_GSI, 1);
	worker_tell(w, m);
	return true;
}

void
worker_gsi_back(struct worker *w, const struct roce_mad *mad)
{
	size_t i = (size_t)((const struct gsi_slot *)mad - w->gsi->slot);
	struct gsi_slot *s = &w->gsi->slot[i];

	w->gsi->used[s->source]--;
	w->gsi->num_free++;
	s->next = w->gsi->free;
	w->gsi->free = s;
}
