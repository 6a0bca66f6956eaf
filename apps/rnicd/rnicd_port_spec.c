/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port as the user writes it: "KIND:DEVICE,key=value,...", or a section of the file with the
 * same keys. A key that is not ours goes to DPDK's driver as it stands.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rnicd_conf.h"
#include "worker.h"

static const char *const kinds[RNICD_PORT_KINDS] = {
	[RNICD_PORT_LOOP] = "loop",
	[RNICD_PORT_AF_PACKET] = "af_packet",
	[RNICD_PORT_AF_XDP] = "af_xdp",
	[RNICD_PORT_TAP] = "tap",
	[RNICD_PORT_PCI] = "pci",
	[RNICD_PORT_VDEV] = "vdev",
	[RNICD_PORT_ETHDEV] = "ethdev",
};

const char *
rnicd_port_kind_name(enum rnicd_port_kind kind)
{
	return kinds[kind];
}

void
rnicd_port_init(struct rnicd_port_conf *p)
{
	memset(p, 0, sizeof(*p));
	p->no_device = true;
}

static int
set_name(struct rnicd_port_conf *p, const char *v, struct rnicd_error *err)
{
	if (*v == '\0' || strlen(v) >= sizeof(p->name))
		return rnicd_fail(err, "a port's name has 1 to %zu characters",
				  sizeof(p->name) - 1);
	strcpy(p->name, v);
	return 0;
}

/* Words of a list, separated by blanks; `set` for each. */
static int
each_word(struct rnicd_port_conf *p, const char *v, struct rnicd_error *err,
	  int (*set)(struct rnicd_port_conf *, const char *, struct rnicd_error *))
{
	char copy[256], *save, *word;

	if (strlen(v) >= sizeof(copy))
		return rnicd_fail(err, "the list is too long; write the key twice");
	strcpy(copy, v);
	for (word = strtok_r(copy, " \t", &save); word != NULL;
	     word = strtok_r(NULL, " \t", &save))
		if (set(p, word, err) < 0)
			return -1;
	return 0;
}

static int
add_addr(struct rnicd_port_conf *p, const char *v, struct rnicd_error *err)
{
	struct rnicd_addr a;

	if (rnicd_addr_parse(&a, v, err) < 0)
		return -1;
	for (uint32_t i = 0; i < p->num_addrs; i++)
		if (strcmp(p->addr[i].text, a.text) == 0 && p->addr[i].vlan == a.vlan)
			return rnicd_fail(err, "address %s stands there twice", v);
	if (p->num_addrs == RNICD_MAX_ADDRS)
		return rnicd_fail(err, "more than %d addresses", RNICD_MAX_ADDRS);
	p->addr[p->num_addrs++] = a;
	return 0;
}

static int
check_gateway(const char *v, struct rnicd_error *err)
{
	struct in6_addr a;

	if (inet_pton(AF_INET, v, &a) != 1 && inet_pton(AF_INET6, v, &a) != 1)
		return rnicd_fail(err, "gateway '%s' is no IPv4 or IPv6 address", v);
	return 0;
}

/* "PREFIX" or "PREFIX>GATEWAY". */
static int
add_route(struct rnicd_port_conf *p, const char *v, struct rnicd_error *err)
{
	const char *gw = strchr(v, '>');
	struct rnicd_addr a = {0};
	struct rnicd_route *r;
	size_t len = gw != NULL ? (size_t)(gw - v) : strlen(v);

	if (p->num_routes == RNICD_MAX_ROUTES)
		return rnicd_fail(err, "more than %d routes", RNICD_MAX_ROUTES);
	r = &p->route[p->num_routes];
	memset(r, 0, sizeof(*r));
	if (len >= sizeof(r->prefix) || (gw != NULL && strlen(gw + 1) >= sizeof(r->gateway)))
		return rnicd_fail(err, "route '%.80s' is too long", v);
	memcpy(r->prefix, v, len);
	if (strcmp(r->prefix, "default") != 0 && rnicd_addr_parse(&a, r->prefix, err) < 0)
		return rnicd_fail_prefix(err, "route '%s': ", v);
	if (a.vlan != 0)
		return rnicd_fail(err, "route '%s': a route has no VLAN of its own", v);
	if (gw != NULL) {
		strcpy(r->gateway, gw + 1);
		if (check_gateway(r->gateway, err) < 0)
			return -1;
	} else if (strcmp(r->prefix, "default") == 0) {
		return rnicd_fail(err, "the default route needs a gateway: default>192.0.2.254");
	}
	p->num_routes++;
	return 0;
}

static int
add_gateway(struct rnicd_port_conf *p, const char *v, struct rnicd_error *err)
{
	char route[80];

	if (check_gateway(v, err) < 0)
		return -1;
	snprintf(route, sizeof(route), "default>%.60s", v);
	return add_route(p, route, err);
}

static int
add_no_offload(struct rnicd_port_conf *p, const char *v, struct rnicd_error *err)
{
	uint64_t bit = rnicd_offload_bit(v, err);

	p->no_offload |= bit;
	return bit != 0 ? 0 : -1;
}

static int
set_u16(uint16_t *out, const char *v, uint64_t min, uint64_t max, struct rnicd_error *err)
{
	uint64_t n;

	if (rnicd_number_parse(&n, v, min, max, err) < 0)
		return -1;
	*out = (uint16_t)n;
	return 0;
}

static int
add_devarg(struct rnicd_port_conf *p, const char *key, const char *v, struct rnicd_error *err)
{
	size_t have = strlen(p->devargs);
	int n;

	n = snprintf(p->devargs + have, sizeof(p->devargs) - have, "%s%s%s%s",
		     have > 0 ? "," : "", key, v != NULL ? "=" : "", v != NULL ? v : "");
	if (n < 0 || (size_t)n >= sizeof(p->devargs) - have)
		return rnicd_fail(err, "the driver's arguments are too long");
	return 0;
}

int
rnicd_cc_parse(struct rnicd_cc *cc, const char *name, const char *value, struct rnicd_error *err)
{
	memset(cc, 0, sizeof(*cc));
	if (strlen(name) >= sizeof(cc->name) || worker_cc_check(name, 0) == -ENOENT)
		return rnicd_fail(err, "congestion management knows no '%.40s'; `rnicctl show cc` "
				  "names what there is", name);
	strcpy(cc->name, name);
	if (strcmp(value, "on") == 0)
		cc->value = 1;
	else if (strcmp(value, "off") != 0 &&
		 rnicd_number_parse(&cc->value, value, 0, UINT32_MAX, err) < 0)
		return -1;
	if (worker_cc_check(name, cc->value) < 0)
		return rnicd_fail(err, "%s = %.20s: out of range", name, value);
	return 0;
}

static int
set_cc(struct rnicd_port_conf *p, const char *name, const char *v, struct rnicd_error *err)
{
	struct rnicd_cc cc;

	if (rnicd_cc_parse(&cc, name, v, err) < 0)
		return -1;
	if (p->num_cc == RNICD_MAX_CC)
		return rnicd_fail(err, "more than %d parameters of congestion management",
				  RNICD_MAX_CC);
	p->cc[p->num_cc++] = cc;
	return 0;
}

static int
set_device(struct rnicd_port_conf *p, const char *v, struct rnicd_error *err)
{
	size_t kind_len = strcspn(v, ":");
	const char *dev = v[kind_len] == ':' ? v + kind_len + 1 : "";
	unsigned int k;

	for (k = 0; k < RNICD_PORT_KINDS; k++)
		if (strlen(kinds[k]) == kind_len && strncmp(kinds[k], v, kind_len) == 0)
			break;
	if (k == RNICD_PORT_KINDS)
		return rnicd_fail(err, "'%.80s' is no kind of port: use af_packet:NETDEV, "
				  "af_xdp:NETDEV, tap:NAME, pci:ADDRESS, vdev:ARGS, ethdev:NAME "
				  "or loop", v);
	if (k != RNICD_PORT_LOOP && *dev == '\0')
		return rnicd_fail(err, "port '%s' names no device; write as %s:NAME", v, kinds[k]);
	if (strlen(dev) >= sizeof(p->dev))
		return rnicd_fail(err, "device name '%.80s' is too long", dev);
	p->kind = (enum rnicd_port_kind)k;
	strcpy(p->dev, dev);
	p->no_device = false;
	return 0;
}

int
rnicd_port_set(struct rnicd_port_conf *p, const char *key, const char *value,
	       struct rnicd_error *err)
{
	if (strcmp(key, "device") == 0) {
		/* in the file a device may carry its driver's arguments, too */
		char copy[256], *rest;

		snprintf(copy, sizeof(copy), "%s", value);
		rest = strchr(copy, ',');
		if (rest != NULL)
			*rest++ = '\0';
		if (set_device(p, copy, err) < 0)
			return -1;
		return rest != NULL ? add_devarg(p, rest, NULL, err) : 0;
	}
	if (strcmp(key, "name") == 0)
		return set_name(p, value, err);
	if (strcmp(key, "ip") == 0)
		return each_word(p, value, err, add_addr);
	if (strcmp(key, "route") == 0)
		return each_word(p, value, err, add_route);
	if (strcmp(key, "gw") == 0 || strcmp(key, "gateway") == 0)
		return each_word(p, value, err, add_gateway);
	if (strcmp(key, "no-offload") == 0)
		return each_word(p, value, err, add_no_offload);
	if (strcmp(key, "mtu") == 0)
		return set_u16(&p->mtu, value, 576, 9600, err);
	if (strcmp(key, "vlan") == 0)
		return set_u16(&p->vlan, value, 1, 4094, err);
	if (strcmp(key, "rx-desc") == 0)
		return set_u16(&p->rx_desc, value, 32, 32768, err);
	if (strcmp(key, "tx-desc") == 0)
		return set_u16(&p->tx_desc, value, 32, 32768, err);
	if (strcmp(key, "cc") == 0 || strncmp(key, "cc-", 3) == 0)
		return set_cc(p, key, value, err);
	if (p->kind == RNICD_PORT_LOOP || p->kind == RNICD_PORT_ETHDEV)
		return rnicd_fail(err, "a port knows no '%s'; it knows name, ip, gw, route, mtu, "
				  "vlan, no-offload, rx-desc, tx-desc, cc and cc-*", key);
	return add_devarg(p, key, value, err);
}

int
rnicd_port_spec_parse(struct rnicd_port_conf *p, const char *spec, struct rnicd_error *err)
{
	char copy[512], *save, *item, *value;

	rnicd_port_init(p);
	if (strlen(spec) >= sizeof(copy))
		return rnicd_fail(err, "a port's description is too long; use the file");
	strcpy(copy, spec);
	item = strtok_r(copy, ",", &save);
	if (set_device(p, item != NULL ? item : "", err) < 0)
		return -1;
	while ((item = strtok_r(NULL, ",", &save)) != NULL) {
		value = strchr(item, '=');
		if (value == NULL && p->kind != RNICD_PORT_VDEV)
			return rnicd_fail(err, "'%s' in port '%s' is not key=value", item, spec);
		if (value == NULL) {
			if (add_devarg(p, item, NULL, err) < 0)
				return -1;
			continue;
		}
		*value++ = '\0';
		if (rnicd_port_set(p, item, value, err) < 0)
			return rnicd_fail_prefix(err, "port '%s': ", spec);
	}
	if (p->name[0] == '\0')
		snprintf(p->name, sizeof(p->name), "%s",
			 p->dev[0] != '\0' ? p->dev : kinds[p->kind]);
	return 0;
}
