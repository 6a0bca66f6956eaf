/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the admin socket's transport and its commands. */
#ifndef RNICD_ADMIN_PRIV_H
#define RNICD_ADMIN_PRIV_H

#include <jansson.h>

#include "rnicd.h"

struct rnicd_admin_conn;

/** Objects in one answer at most: it is made while the control thread does nothing else. */
#define RNICD_ADMIN_MAX_PAGE 500

/** A command. @return the answer, or NULL: it comes later by rnicd_admin_answer(). */
json_t *rnicd_admin_command(struct rnicd *r, struct rnicd_admin_conn *c, const json_t *request);
/** An answer that says no. */
json_t *rnicd_admin_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** Send an answer; takes the reference. */
void rnicd_admin_answer(struct rnicd_admin_conn *c, json_t *answer);
/** The connection is kept in memory while an answer to it is on its way. */
void rnicd_admin_hold(struct rnicd_admin_conn *c);
void rnicd_admin_release(struct rnicd_admin_conn *c);

#endif /* RNICD_ADMIN_PRIV_H */
