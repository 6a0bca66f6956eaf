/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Own addresses and routes: given to the device at the start and, on SIGHUP, brought in line
 * with the file. What came over the admin socket is left alone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rnicd.h"

static uint16_t
vlan_of(const struct rnicd_port_conf *p, const struct rnicd_addr *a)
{
	return a->vlan != 0 ? a->vlan : p->vlan;
}

static bool
has_addr(const struct rnicd_port_conf *p, const char *text, uint16_t vlan)
{
	for (uint32_t i = 0; i < p->num_addrs; i++)
		if (strcmp(p->addr[i].text, text) == 0 && vlan_of(p, &p->addr[i]) == vlan)
			return true;
	return false;
}

static bool
has_route(const struct rnicd_port_conf *p, const struct rnicd_route *t)
{
	for (uint32_t i = 0; i < p->num_routes; i++)
		if (strcmp(p->route[i].prefix, t->prefix) == 0 &&
		    strcmp(p->route[i].gateway, t->gateway) == 0)
			return true;
	return false;
}

/* From what `have` says to what `want` says, on the port of that number. */
static int
change_port(struct rnicd *r, uint32_t port, const struct rnicd_port_conf *have,
	    const struct rnicd_port_conf *want, struct rnicd_error *err)
{
	int rc, failed = 0;

	for (uint32_t i = 0; i < have->num_addrs; i++) {
		const struct rnicd_addr *a = &have->addr[i];

		if (has_addr(want, a->text, vlan_of(have, a)))
			continue;
		rc = worker_port_addr_del(r->dev, port, a->text, vlan_of(have, a));
		RNICD_LOG(NOTICE, "port '%s': address %s taken away%s", want->name, a->text,
			  rc < 0 ? " before" : "");
	}
	for (uint32_t i = 0; i < want->num_addrs; i++) {
		const struct rnicd_addr *a = &want->addr[i];

		if (has_addr(have, a->text, vlan_of(want, a)))
			continue;
		rc = worker_port_addr_add(r->dev, port, a->text, vlan_of(want, a));
		if (rc < 0 && rc != -EEXIST)
			failed = rnicd_fail(err, "port '%s': address %s: %s", want->name, a->text,
					    strerror(-rc));
	}
	for (uint32_t i = 0; i < want->num_routes; i++) {
		const struct rnicd_route *t = &want->route[i];

		if (has_route(have, t))
			continue;
		rc = worker_route_add(r->dev, port, t->prefix,
				      t->gateway[0] != '\0' ? t->gateway : NULL);
		if (rc < 0 && rc != -EEXIST)
			failed = rnicd_fail(err, "port '%s': route %s: %s", want->name, t->prefix,
					    strerror(-rc));
	}
	for (uint32_t i = 0; i < want->num_cc; i++) {
		rc = worker_port_cc_set(r->dev, port, want->cc[i].name, want->cc[i].value);
		if (rc < 0)
			failed = rnicd_fail(err, "port '%s': %s: %s", want->name, want->cc[i].name,
					    strerror(-rc));
	}
	for (uint32_t i = 0; i < have->num_routes; i++)
		if (!has_route(want, &have->route[i]))
			RNICD_LOG(WARNING, "port '%s': route %s stays until the next start",
				  want->name, have->route[i].prefix);
	return failed;
}

static const struct rnicd_port_conf *
port_of(const struct rnicd_conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->num_ports; i++)
		if (strcmp(c->port[i].name, name) == 0)
			return &c->port[i];
	return NULL;
}

int
rnicd_addrs_apply(struct rnicd *r, struct rnicd_error *err)
{
	struct rnicd_port_conf none;

	rnicd_port_init(&none);
	for (uint32_t i = 0; i < r->conf.num_ports; i++)
		if (change_port(r, i, &none, &r->conf.port[i], err) < 0)
			return -1;
	r->applied = r->conf;
	return 0;
}

int
rnicd_addrs_reload(struct rnicd *r, struct rnicd_error *err)
{
	static struct rnicd_conf fresh; /* large, and there is one control thread */
	int rc = 0;

	if (r->conf.config[0] == '\0')
		return rnicd_fail(err, "started without --config: there is no file to read again");
	memset(&fresh, 0, sizeof(fresh));
	if (rnicd_config_load(&fresh, r->conf.config, err) < 0)
		return -1;
	if (rnicd_port_conflicts(&fresh, err) < 0)
		return -1;
	for (uint32_t i = 0; i < r->applied.num_ports; i++) {
		struct rnicd_port_conf *have = &r->applied.port[i];
		const struct rnicd_port_conf *want = port_of(&fresh, have->name);

		if (want == NULL)
			continue; /* from the command line, or a removal that needs a restart */
		if (change_port(r, i, have, want, err) < 0) {
			rc = -1;
			continue;
		}
		*have = *want;
	}
	for (uint32_t i = 0; i < fresh.num_ports; i++)
		if (port_of(&r->applied, fresh.port[i].name) == NULL)
			RNICD_LOG(WARNING, "port '%s' is new: it needs a restart",
				  fresh.port[i].name);
	return rc;
}
