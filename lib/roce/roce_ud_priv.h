/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the engine: what the files of UD share, and an address handle as workers see it. */
#ifndef ROCE_UD_PRIV_H
#define ROCE_UD_PRIV_H

#include "roce_ah.h"
#include "roce_mcast.h"
#include "roce_priv.h"

struct roce_ah {
	struct net_path path; /* its source port is the sending QP's to fill in */
	uint32_t number, pd;
	uint16_t port; /* that packets leave by */
	uint16_t home; /* whose MTU counts, and whose members get copies */
	bool group;
	struct net_neigh group_neigh; /* the path's, if so: known, of no table */
	/* Packets that wait for the neighbour, in all engines. Each counts its own. */
	_Atomic uint32_t waiting;
};

/** The handle, if there is one of that number in that domain. Any worker; until it is quiescent. */
struct roce_ah *roce_ah_lookup(const struct roce_ah_table *t, uint32_t number, uint32_t pd);

/** Longest message by this handle: the port's MTU. */
uint32_t roce_ah_mtu(const struct roce *r, const struct roce_ah *ah);

/* roce_ud.c */
#define ROCE_UD_GRH_LEN 40u
enum verbs_run roce_ud_run(struct roce *r, struct roce_qp *qp);
/** The payload of the parked packet could not be read. */
void roce_ud_parked_failed(struct roce *r, struct roce_qp *qp);

/* roce_ud_wait.c: datagrams whose neighbour has no MAC */
/** Takes m, which is finished but for the destination's MAC. */
void roce_ud_wait(struct roce *r, struct roce_ah *ah, struct rte_mbuf *m);
/** Whether datagrams of this handle wait in this engine. */
bool roce_ud_waits_here(const struct roce *r, const struct roce_ah *ah);
static inline bool
roce_ud_waits(const struct roce *r, const struct roce_ah *ah)
{
	return atomic_load_explicit(&ah->waiting, memory_order_relaxed) != 0 &&
	       roce_ud_waits_here(r, ah);
}
/** MACs may have become known, or it is time to give up. */
void roce_ud_wait_run(struct roce *r);
void roce_ud_wait_drop(struct roce *r);

/* roce_mcast.c */
/** A packet whose DestQP is that of groups: to each member of this worker, and to their workers. */
void roce_mcast_input(struct roce *r, struct net_pkt *np, const struct roce_rx *rx);

#endif /* ROCE_UD_PRIV_H */
