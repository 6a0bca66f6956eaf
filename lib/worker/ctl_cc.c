/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion management of ports: what is set, and that all workers know. */
#include <errno.h>

#include "ctl_priv.h"

/* Who gets a rate begins at the line's: the link's speed, unless one was set. */
static bool
push_to(struct worker_device *d, uint32_t port, uint32_t worker)
{
	struct worker_msg *m = ctl_msg_get(d, WORKER_MSG_CC);

	if (m == NULL)
		return false;
	m->cc.port = port;
	m->cc.params = d->port[port].cc;
	if (m->cc.params.line_mbps == 0)
		m->cc.params.line_mbps = d->port[port].mbps;
	ctl_msg_post(d, worker, m);
	return true;
}

void
ctl_cc_push(struct worker_device *d, uint32_t port)
{
	d->port[port].cc_late = false;
	for (uint32_t i = 0; i < d->sh.num_workers; i++)
		if (!push_to(d, port, i))
			d->port[port].cc_late = true; /* all of it again, at the next tick */
}

void
ctl_cc_init(struct worker_device *d)
{
	for (uint32_t i = 0; i < d->sh.num_ports; i++) {
		d->port[i].cc = roce_cc_defaults;
		ctl_cc_push(d, i);
	}
}

int
worker_port_cc_set(struct worker_device *d, uint32_t port, const char *name, uint64_t value)
{
	int rc;

	if (port >= d->sh.num_ports)
		return -ENODEV;
	rc = roce_cc_param_set(&d->port[port].cc, name, value);
	if (rc == 0)
		ctl_cc_push(d, port);
	return rc;
}

int
worker_cc_check(const char *name, uint64_t value)
{
	struct roce_cc_params scratch;

	return roce_cc_param_set(&scratch, name, value);
}
