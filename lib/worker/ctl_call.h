/* SPDX-License-Identifier: BSD-3-Clause */
/* Between a client's socket (ctl_client.c) and its requests (ctl_call.c). */
#ifndef CTL_CALL_H
#define CTL_CALL_H

#include "ctl_priv.h"

bool ctl_op_known(unsigned int op);
/** Queue a well-formed request of a known operation; NULL without memory. */
struct ctl_call *ctl_call_new(struct ctl_client *c, const struct ring_ctrl_hdr *h,
			      const void *body);
void ctl_client_resume(struct ctl_wait *w, int status);
void ctl_client_drop_queue(struct ctl_client *c);

#endif /* CTL_CALL_H */
