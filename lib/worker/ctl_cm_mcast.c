/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of ids. */
#include <errno.h>
#include <stdlib.h>

#include "ctl_cm.h"

int
ctl_op_cm_join_mcast(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	(void)c;
	(void)req;
	(void)rep;
	(void)e;
	return -EOPNOTSUPP;
}

int
ctl_op_cm_leave_mcast(struct ctl_client *c, const void *req, void *rep, struct ctl_elem e)
{
	(void)c;
	(void)req;
	(void)rep;
	(void)e;
	return -EOPNOTSUPP;
}

void
ctl_cm_mcast_end(struct ctl_cm_id *id)
{
	(void)id;
}
