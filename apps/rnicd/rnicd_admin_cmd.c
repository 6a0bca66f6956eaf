/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of the admin socket. A request is {"cmd": NAME, ...}, an answer {"ok": true, ...} or
 * {"ok": false, "error": SENTENCE}. rnicctl(8) is written on these; docs/man/rnicctl.8 has the
 * list.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

#include "rnicd_admin_priv.h"

json_t *
rnicd_admin_error(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return json_pack("{s:b, s:s}", "ok", 0, "error", text);
}

static json_t *
ok(void)
{
	return json_pack("{s:b}", "ok", 1);
}

static json_t *
result(int rc, const char *what)
{
	return rc < 0 ? rnicd_admin_error("%s: %s", what, strerror(-rc)) : ok();
}

/* A member that must be text, or NULL. */
static const char *
text_of(const json_t *request, const char *key)
{
	return json_string_value(json_object_get(request, key));
}

/* A member that is a number from 0 to max, `otherwise` when it is absent. @return false: not. */
static bool
number_of(const json_t *request, const char *key, json_int_t max, json_int_t otherwise,
	  json_int_t *out)
{
	const json_t *v = json_object_get(request, key);

	*out = v != NULL ? json_integer_value(v) : otherwise;
	return (v == NULL || json_is_integer(v)) && *out >= 0 && *out <= max;
}

/* ---- show ---------- */

struct page {
	json_t *objects, *object;
};

static void
page_begin(void *arg)
{
	((struct page *)arg)->object = json_object();
}

static void
page_str(void *arg, const char *key, const char *value)
{
	json_object_set_new(((struct page *)arg)->object, key, json_string(value));
}

static void
page_num(void *arg, const char *key, uint64_t value)
{
	json_object_set_new(((struct page *)arg)->object, key, json_integer((json_int_t)value));
}

static void
page_end(void *arg)
{
	struct page *p = arg;

	json_array_append_new(p->objects, p->object);
	p->object = NULL;
}

static json_t *
device_object(const struct rnicd *r)
{
	const struct rnicd_conf *c = &r->conf;
	char caps[256], ports[1024];
	size_t n = 0;

	rnicd_priv_names(r->kept_caps, caps, sizeof(caps));
	for (uint32_t i = 0; i < c->num_ports && n < sizeof(ports); i++)
		n += (size_t)snprintf(ports + n, sizeof(ports) - n, "%s%s", i > 0 ? "," : "",
				      c->port[i].name);
	return json_pack("{s:s, s:s, s:s, s:i, s:I, s:i, s:s, s:s, s:s, s:s, s:s}",
			 "name", c->name, "version", SOFTRNIC_VERSION, "dpdk", rte_version(),
			 "pid", (int)getpid(), "uptime_s", (json_int_t)(time(NULL) - r->started),
			 "workers", (int)c->workers, "pages", r->huge ? "huge" : "ordinary",
			 "ports", ports, "capabilities", caps, "socket", c->socket,
			 "config", c->config);
}

static json_t *
cmd_show(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	const char *kind = text_of(request, "kind");
	struct page p = {json_array(), NULL};
	const struct worker_show out = {page_begin, page_str, page_num, page_end, &p};
	json_int_t skip, max;
	int n;

	(void)conn;
	if (kind == NULL || !number_of(request, "skip", UINT32_MAX, 0, &skip) ||
	    !number_of(request, "max", UINT32_MAX, RNICD_ADMIN_MAX_PAGE, &max) || max == 0) {
		json_decref(p.objects);
		return rnicd_admin_error("show: kind is text, skip and max are numbers");
	}
	if (max > RNICD_ADMIN_MAX_PAGE)
		max = RNICD_ADMIN_MAX_PAGE;
	if (strcmp(kind, "devices") == 0) {
		if (skip == 0)
			json_array_append_new(p.objects, device_object(r));
		n = skip == 0;
	} else {
		n = worker_show(r->dev, kind, (uint32_t)skip, (uint32_t)max, &out);
	}
	if (n < 0) {
		json_decref(p.objects);
		return rnicd_admin_error("show: no kind is called '%s'", kind);
	}
	return json_pack("{s:b, s:s, s:I, s:b, s:o}", "ok", 1, "kind", kind, "skip", skip,
			 "more", n == (int)max, "objects", p.objects);
}

static json_t *
cmd_kinds(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	json_t *kinds = json_array();

	(void)r, (void)conn, (void)request;
	json_array_append_new(kinds, json_string("devices"));
	for (const char *const *k = worker_show_kinds(); *k != NULL; k++)
		json_array_append_new(kinds, json_string(*k));
	return json_pack("{s:b, s:o}", "ok", 1, "kinds", kinds);
}

/* ---- ping ---------- */

/* Questions to workers that are under way. */
struct ping {
	struct rnicd_admin_conn *conn;
	uint32_t left;
	int failed; /* errno of a worker that could not be asked */
	json_t *workers;
};

struct ping_one {
	struct ping *ping;
	uint32_t worker;
};

/* One question less; the last one's answer is the command's. */
static void
ping_put(struct ping *p)
{
	if (--p->left > 0)
		return;
	rnicd_admin_answer(p->conn, p->failed == 0
		? json_pack("{s:b, s:O}", "ok", 1, "workers", p->workers)
		: rnicd_admin_error("ping: %s", strerror(p->failed)));
	rnicd_admin_release(p->conn);
	json_decref(p->workers);
	free(p);
}

static void
ping_done(void *arg, uint64_t ns)
{
	struct ping_one *one = arg;
	struct ping *p = one->ping;

	json_array_append_new(p->workers,
			      json_pack("{s:i, s:I}", "worker", (int)one->worker, "latency_ns",
					(json_int_t)ns));
	free(one);
	ping_put(p);
}

static json_t *
cmd_ping(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	struct ping *p = calloc(1, sizeof(*p));

	(void)request;
	if (p == NULL)
		return rnicd_admin_error("ping: no memory");
	p->conn = conn;
	p->workers = json_array();
	p->left = 1; /* ours: no answer before all have been asked */
	rnicd_admin_hold(conn);
	for (uint32_t i = 0; i < r->conf.workers && p->failed == 0; i++) {
		struct ping_one *one = malloc(sizeof(*one));

		if (one == NULL) {
			p->failed = ENOMEM;
			break;
		}
		*one = (struct ping_one){p, i};
		p->left++;
		p->failed = -worker_ping(r->dev, i, ping_done, one);
		if (p->failed != 0) {
			p->left--;
			free(one);
		}
	}
	ping_put(p);
	return NULL;
}

/* ---- changes ---------- */

static json_t *
cmd_addr(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	const char *op = text_of(request, "op"), *port = text_of(request, "port");
	const char *addr = text_of(request, "addr");
	struct rnicd_error err;
	struct rnicd_addr a;
	int i, rc;

	(void)conn;
	if (op == NULL || port == NULL || addr == NULL)
		return rnicd_admin_error("addr: op, port and addr are text");
	i = rnicd_port_find(r, port, &err);
	if (i < 0 || rnicd_addr_parse(&a, addr, &err) < 0)
		return rnicd_admin_error("addr: %s", err.text);
	if (strcmp(op, "add") == 0) {
		struct rnicd_conf *c = malloc(sizeof(*c)); /* what it would then be */

		if (c == NULL)
			return rnicd_admin_error("addr: no memory");
		*c = r->conf;
		c->port[i].addr[0] = a;
		c->port[i].num_addrs = 1;
		rc = rnicd_port_conflicts(c, &err);
		free(c);
		if (rc < 0)
			return rnicd_admin_error("addr: %s", err.text);
		return result(worker_port_addr_add(r->dev, (uint32_t)i, a.text, a.vlan), addr);
	}
	if (strcmp(op, "del") == 0)
		return result(worker_port_addr_del(r->dev, (uint32_t)i, a.text, a.vlan), addr);
	return rnicd_admin_error("addr: op is add or del, not '%s'", op);
}

static json_t *
cmd_route(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	const char *op = text_of(request, "op"), *port = text_of(request, "port");
	const char *prefix = text_of(request, "prefix"), *gw = text_of(request, "gateway");
	struct rnicd_error err;
	int i;

	(void)conn;
	if (op == NULL || strcmp(op, "add") != 0 || port == NULL || prefix == NULL)
		return rnicd_admin_error("route: op is add; port, prefix and gateway are text");
	i = rnicd_port_find(r, port, &err);
	if (i < 0)
		return rnicd_admin_error("route: %s", err.text);
	return result(worker_route_add(r->dev, (uint32_t)i, prefix, gw), prefix);
}

/* All of them are looked at before the first is set. */
static json_t *
cmd_cc(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	const char *port = text_of(request, "port");
	json_t *set = json_object_get(request, "set"), *v;
	struct rnicd_error err;
	struct rnicd_cc cc;
	const char *name;
	int i;

	(void)conn;
	if (port == NULL || !json_is_object(set))
		return rnicd_admin_error("cc: port is text, set an object of texts");
	i = rnicd_port_find(r, port, &err);
	if (i < 0)
		return rnicd_admin_error("cc: %s", err.text);
	json_object_foreach(set, name, v)
		if (!json_is_string(v) ||
		    rnicd_cc_parse(&cc, name, json_string_value(v), &err) < 0)
			return rnicd_admin_error("cc: %s", json_is_string(v) ? err.text
							: "a value is text, as \"on\"");
	json_object_foreach(set, name, v) {
		rnicd_cc_parse(&cc, name, json_string_value(v), &err);
		worker_port_cc_set(r->dev, (uint32_t)i, cc.name, cc.value);
	}
	return ok();
}

static json_t *
cmd_log(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	const char *level = text_of(request, "level");
	struct rnicd_error err;

	(void)r, (void)conn;
	if (level == NULL)
		return rnicd_admin_error("log: level is text");
	if (rnicd_log_level_set(level, &err) < 0)
		return rnicd_admin_error("log: %s", err.text);
	return ok();
}

static json_t *
cmd_reload(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	struct rnicd_error err;

	(void)conn, (void)request;
	if (rnicd_addrs_reload(r, &err) < 0)
		return rnicd_admin_error("reload: %s", err.text);
	return ok();
}

static json_t *
cmd_version(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	(void)conn, (void)request;
	return json_pack("{s:b, s:s, s:s, s:s}", "ok", 1, "name", r->conf.name, "version",
			 SOFTRNIC_VERSION, "dpdk", rte_version());
}

static json_t *
cmd_shutdown(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request)
{
	(void)conn, (void)request;
	RNICD_LOG(NOTICE, "stopping: asked to over the admin socket");
	r->stop = true;
	return ok();
}

static const struct command {
	const char *name;
	json_t *(*run)(struct rnicd *r, struct rnicd_admin_conn *conn, const json_t *request);
} commands[] = {
	{"show", cmd_show},	  {"kinds", cmd_kinds},	  {"ping", cmd_ping},
	{"addr", cmd_addr},	  {"route", cmd_route},	  {"log", cmd_log},	{"cc", cmd_cc},
	{"reload", cmd_reload},	  {"version", cmd_version}, {"shutdown", cmd_shutdown},
};

json_t *
rnicd_admin_command(struct rnicd *r, struct rnicd_admin_conn *c, const json_t *request)
{
	const char *name = text_of(request, "cmd");

	for (size_t i = 0; name != NULL && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].run(r, c, request);
	return rnicd_admin_error("no command is called '%s'", name != NULL ? name : "");
}
