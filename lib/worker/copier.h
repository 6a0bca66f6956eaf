/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copiers: threads that read and write memory of client processes, where a worker must not wait
 * (docs/design.md, 2.3). A lane is one client process: its accesses are done in order, by one
 * thread, with what the client's own rights reach.
 */
#ifndef COPIER_H
#define COPIER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "verbs.h"

/** Descriptors that each lane has open. */
#define COPIER_LANE_FDS 2

struct copier_lane;
struct ctl_user;
struct worker_device;
struct worker_shared;

struct copier_who;

/**
 * A lane to this process; `s` is a worker_device's. Accesses return to their workers by
 * WORKER_MSG_IO_DONE. NULL and -errno in *err. May wait for the process for a moment: a
 * helper's work.
 */
struct copier_lane *copier_lane_new(struct worker_shared *s, const struct copier_who *who,
				    int *err);
/* Control thread, the rest. */
/**
 * No access is under way or will come. NULL is allowed. A lane whose call still hangs is charged to
 * the uid, in fds and abandoned, until its thread has ended.
 */
void copier_lane_put(struct copier_lane *l, struct ctl_user *u);
/**
 * Join threads of lanes that were put. all: wait for those that end by themselves, and leave those
 * whose call hangs. @return whether some are left that end soon.
 */
bool copier_lanes_join(struct worker_device *d, bool all);
/** Whether an access has waited and taken longer than `limit` ns: no honest one does. */
bool copier_lane_stuck(const struct copier_lane *l, uint64_t now, uint64_t limit);
/** Whether an access is under way. Killing may have to be repeated while one is. */
bool copier_lane_busy(const struct copier_lane *l);
/** Its client is cut off: what is queued fails, and a call that hangs is no longer awaited. */
void copier_lane_kill(struct copier_lane *l);
/** Fail what came to a lane whose thread hangs since the kill. @return whether it does. */
bool copier_lane_drain(struct copier_lane *l);

/** Worker: host.io_submit. */
void copier_submit(void *ctx, uint32_t worker, struct verbs_io *io);

#endif /* COPIER_H */
