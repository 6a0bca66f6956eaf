/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs that the connection manager connects: for examples that have one to talk to. */
#ifndef EX_CM_H
#define EX_CM_H

#include "ex.h"
#include "rnic_cm.h"

/** Connections of a number of QPs, all to one peer. */
struct ex_cm {
	struct ex_device *dev;
	struct rnic_cm_channel *channel;
	struct rnic_cm_id *listener; /* or NULL */
	struct rnic_cm_id **id;
	struct rnic_qp *const *qp;
	int n;
};

/** The address of a host and port, as getaddrinfo() has it. */
void ex_cm_address(const char *host, unsigned int port, struct sockaddr_storage *to);
/** The same of a GID. */
void ex_cm_gid_address(const union rnic_gid *gid, unsigned int port, struct sockaddr_storage *to);

/** QPs in INIT are to be connected. */
void ex_cm_open(struct ex_cm *cm, struct ex_device *dev, struct rnic_qp *const *qp, int n);
/** @return the port number. `addr`: with port 0, a free one. */
unsigned int ex_cm_listen(struct ex_cm *cm, const struct sockaddr_storage *addr);
/** Accept so many; ends the program when the peer closes `watch` (a socket; -1: none) first. */
void ex_cm_accept(struct ex_cm *cm, const struct ex_path *path, int watch);
void ex_cm_connect(struct ex_cm *cm, const struct sockaddr_storage *addr,
		   const struct ex_path *path);
/** Disconnects; the QPs stay. */
void ex_cm_close(struct ex_cm *cm);

#endif /* EX_CM_H */
