/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management: what its files share. A channel's lock comes before the context's, of
 * two channels that at the lower address comes first; it is held while the daemon is asked for
 * events, so that each byte taken from the pipe stands for one of those that are fetched.
 */
#ifndef CLIENT_CM_PRIV_H
#define CLIENT_CM_PRIV_H

#include "client_priv.h"
#include "rnic_cm.h"

struct client_cm_event {
	struct rnic_cm_event pub;
	struct client_cm_event *next;
	uint8_t private_data[RING_CM_PRIVATE];
};

struct rnic_cm_channel {
	struct rnic_context *context;
	struct rnic_cm_channel *next; /* of the context, under its lock */
	uint32_t handle;
	int pipe;     /* the daemon's bytes, non-blocking */
	int event_fd; /* raised while events wait here, or the daemon is gone */
	int fd;	      /* epoll of the two */
	struct client_obj obj;
	pthread_mutex_t lock;
	uint32_t num_ids; /* under the context's lock */
	bool raised;
	struct client_cm_event *events, **events_end; /* fetched, not told */
};

struct client_cm_id {
	struct rnic_cm_id pub;
	struct client_obj obj; /* its count of events is of those of its channel */
};

static inline struct client_cm_id *
client_cm_id(struct rnic_cm_id *id)
{
	return CLIENT_OF(struct client_cm_id, pub, id);
}

/** An id of that handle, with the channel's and user's as of `like`. */
struct client_cm_id *client_cm_id_new(struct rnic_cm_channel *ch, uint32_t handle);
/** Forget one that nobody was told of; the daemon too. */
void client_cm_id_discard(struct client_cm_id *id);

/** With the channel's lock: events of the id, or requests to it, that were not told. */
struct client_cm_event *client_cm_events_take(struct rnic_cm_channel *ch, struct rnic_cm_id *id);
void client_cm_events_put(struct rnic_cm_channel *ch, struct client_cm_event *list);
/** With the channel's lock: so many bytes stand for events that are no more. */
void client_cm_bytes_drop(struct rnic_cm_channel *ch, uint32_t n);

/* ---- addresses (client_cm_addr.c) -------------------------------------------------------- */

/** NULL is none. 0 or -EAFNOSUPPORT. */
int client_cm_addr_to_ctrl(struct ring_cm_addr *to, const struct sockaddr *from);
void client_cm_addr_from_ctrl(struct sockaddr_storage *to, const struct ring_cm_addr *from);

#endif /* CLIENT_CM_PRIV_H */
