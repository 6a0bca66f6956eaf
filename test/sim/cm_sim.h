/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection managers joined by a wire that loses, doubles and delays, on virtual time in one
 * process, seeded. Applications connect, think, refuse, vanish; a model watches each handle. In
 * the end both sides of each connection agree, and every table is as it was.
 */
#ifndef CM_SIM_H
#define CM_SIM_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base_rng.h"
#include "roce_cm.h"

#define SIM_NODES 4
#define SIM_CONNS 4096	 /* a node, in a run */
#define SIM_QPNS 8192
#define SIM_MS UINT64_C(1000000)
#define SIM_SEC UINT64_C(1000000000)
/* A packet's life: timewait is for those that take so long. */
#define SIM_LIFE (UINT64_C(4096) << 17)
#define SIM_LOSS_BORNE 200 /* of 1000: 16 attempts do not all fail in a million runs */

struct sim;

/* If you add one: cm_profiles in cm_sim_main.c. Probabilities are in 1/1000. */
struct sim_profile {
	const char *name;
	unsigned int nodes, connects;
	unsigned int loss, twice, slow; /* of a message; slow: up to a packet's life */
	unsigned int busy;		/* no way out when one is to be sent */
	unsigned int think;		/* applications that take long */
	unsigned int whims;		/* that do something else than what is expected */
	unsigned int crashes;		/* of nodes, in a run */
	uint32_t backlog, max_conns;
};

/* What the model knows of a handle. */
enum sim_stage {
	SIM_NONE,
	SIM_WAIT,    /* active: connecting; passive: to be answered */
	SIM_OFFERED, /* passive: accepted */
	SIM_REPLIED, /* active: REP, no RTU yet */
	SIM_UP,
	SIM_CLOSING, /* disconnected by us */
	SIM_OVER,
	SIM_ASKED, /* SIDR, either side */
};

struct sim_conn {
	struct roce_cm_conn *conn; /* NULL: freed, or died with its node */
	struct sim_node *node;
	enum sim_stage stage;
	bool active, sidr, was_up, lost; /* lost: its node has crashed */
	bool spoilt; /* an application has done what ends it before it is up */
	bool closed; /* we have ended it when it was up */
	uint64_t down_at; /* when it was no longer up */
	uint32_t qpn;
	uint32_t local_id, remote_id;
	struct roce_cm_params params;
};

struct sim_node {
	struct sim *sim;
	unsigned int index;
	struct roce_cm *cm;
	struct roce_cm_listener *listener;
	struct net_ip ip;
	struct sim_conn conns[SIM_CONNS];
	unsigned int num_conns;
	bool held[SIM_QPNS];
	uint32_t next_qpn;
};

enum sim_what { SIM_MAD, SIM_DATA, SIM_APP, SIM_CONNECT, SIM_CRASH };

struct sim_event {
	uint64_t at, order;
	enum sim_what what;
	struct sim_node *from, *to;
	struct sim_conn *conn; /* SIM_APP */
	uint32_t qpn;	       /* SIM_DATA */
	uint8_t tclass;
	uint8_t *mad;
};

struct sim {
	const struct sim_profile *p;
	uint64_t seed, now, order;
	struct rng rng;
	struct sim_node *node[SIM_NODES];
	struct sim_event *heap;
	unsigned int num_events, room;
	bool calm; /* nothing is lost any more */
	FILE *trace;
	uint64_t fault_count;
	/* what has happened, for the line of a seed */
	unsigned int connects, ups, rejected, unreachable, ends, orphans, asked;
};

/** A fault of the engine, or of the model: told, counted. */
void sim_fault(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline bool
sim_chance(struct sim *s, unsigned int of_1000)
{
	return rng_below(&s->rng, 1000) < of_1000;
}

/* ---- cm_sim_net.c: time, the wire, the nodes ---------- */

struct sim *sim_new(const struct sim_profile *p, uint64_t seed, FILE *trace);
void sim_free(struct sim *s);
void sim_at(struct sim *s, uint64_t at, struct sim_event e);
/** Until nothing is left to happen; false: it does not end. */
bool sim_run(struct sim *s);
void sim_data(struct sim_conn *c);

/* ---- cm_sim_app.c: applications, and the model of them ---------- */

void app_connect(struct sim_node *n);
void app_act(struct sim_conn *c);
void app_crash(struct sim_node *n);
void app_listen(struct sim_node *n);
void app_event(void *ctx, struct roce_cm_conn *conn, void *user, const struct roce_cm_event *ev);
void app_qpn_free(void *ctx, uint32_t qpn);
/** All is quiet: both sides of each connection agree. */
void app_check_pairs(struct sim *s);
void app_free_all(struct sim *s);
/** And nothing is left. */
void app_check_empty(struct sim *s);

#endif /* CM_SIM_H */
