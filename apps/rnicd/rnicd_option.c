/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options, in one table that the command line, the file and --help share. The command line
 * is read twice: for --config alone, then over what the file said.
 */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

#include "rnicd_conf.h"

enum option_type {
	OPT_STRING,  /* max: size of the array */
	OPT_U32,
	OPT_U64,
	OPT_SIZE,    /* bytes with a unit */
	OPT_TRI,     /* yes, no, auto */
	OPT_BOOL,
	OPT_SET_YES, /* command line alone: an option without argument */
	OPT_SET_NO,
	OPT_OFFLOAD,
	OPT_LOG,
	OPT_PORT,
	OPT_CONFIG,
	OPT_HELP,
	OPT_VERSION,
};

struct option_def {
	const char *name;
	const char *arg;     /* its name in --help; NULL: has none */
	const char *section; /* of the file; NULL: command line alone */
	uint8_t type;
	bool file_only;
	uint16_t offset;
	uint64_t min, max;
	const char *help;
};

#define AT(field) .offset = offsetof(struct rnicd_conf, field)
#define TEXT(field) AT(field), .max = sizeof(((struct rnicd_conf *)NULL)->field)

static const struct option_def defs[] = {
	{"config", "FILE", NULL, OPT_CONFIG, TEXT(config),
	 .help = "read this file first; options win over it"},
	{"name", "NAME", "device", OPT_STRING, TEXT(name),
	 .help = "the device's name, as clients see it (rnic0)"},
	{"socket", "PATH", "device", OPT_STRING, TEXT(socket),
	 .help = "where clients connect (" RNICD_RUN_DIR "/NAME.sock)"},
	{"admin", "PATH", "device", OPT_STRING, TEXT(admin),
	 .help = "where rnicctl connects (the socket's path with .admin)"},
	{"pidfile", "PATH", "device", OPT_STRING, TEXT(pidfile),
	 .help = "file with the process id, locked (the socket's path with .pid)"},
	{"port", "SPEC", NULL, OPT_PORT,
	 .help = "a port, several times: KIND:DEVICE[,key=value...]; see below"},
	{"workers", "N", "device", OPT_U32, AT(workers), .min = 1, .max = RNICD_MAX_WORKERS,
	 .help = "threads that poll (1)"},
	{"lcores", "LIST", "device", OPT_STRING, TEXT(lcores),
	 .help = "CPUs to pin the workers to, as 2,4-6 (not pinned)"},
	{"huge", NULL, NULL, OPT_SET_YES, AT(huge),
	 .help = "refuse to start without huge pages"},
	{"no-huge", NULL, NULL, OPT_SET_NO, AT(huge),
	 .help = "use ordinary pages even where there are huge ones"},
	{"huge-pages", "auto|yes|no", "device", OPT_TRI, AT(huge), .file_only = true},
	{"memory", "MB", "device", OPT_U32, AT(memory_mb), .min = 64, .max = 1 << 20,
	 .help = "memory for packets and tables (as much as is needed)"},
	{"idle-us", "US", "device", OPT_U32, AT(idle_us), .max = 1000000000,
	 .help = "a worker sleeps after so long without work; 0: never (100)"},
	{"seed", "N", "device", OPT_U64, AT(seed), .max = UINT64_MAX,
	 .help = "seed for tests that must repeat; 0: random (0)"},
	{"no-offload", "NAME", "device", OPT_OFFLOAD, AT(no_offload),
	 .help = "do in software what the NIC could, on every port; several times"},
	{"user", "NAME", "device", OPT_STRING, TEXT(user),
	 .help = "change to this user once ports are open"},
	{"log-level", "[TYPE:]LEVEL", "device", OPT_LOG,
	 .help = "as info or lib.roce:debug; several times"},
	{"foreground", NULL, NULL, OPT_SET_NO, AT(daemonize),
	 .help = "stay attached to the terminal (default)"},
	{"daemonize", NULL, NULL, OPT_SET_YES, AT(daemonize),
	 .help = "go to the background once clients can connect; log to syslog"},
	{"no-telemetry", NULL, NULL, OPT_SET_YES, AT(no_telemetry),
	 .help = "no DPDK telemetry socket"},
	{"telemetry", "yes|no", "device", OPT_BOOL, AT(no_telemetry), .file_only = true},
	{"max-qps", "N", "limits", OPT_U32, AT(max_qps), .min = 1, .max = 1 << 24,
	 .help = "queue pairs of the device"},
	{"max-mrs", "N", "limits", OPT_U32, AT(max_mrs), .min = 1, .max = 1 << 24,
	 .help = "memory regions of the device"},
	{"max-cqs", "N", "limits", OPT_U32, AT(max_cqs), .min = 1, .max = 1 << 24,
	 .help = "completion queues of the device"},
	{"max-srqs", "N", "limits", OPT_U32, AT(max_srqs), .min = 1, .max = 1 << 24,
	 .help = "shared receive queues of the device"},
	{"shadows", "N", "limits", OPT_U32, AT(shadows), .min = 64, .max = 1 << 22,
	 .help = "send requests in flight, a worker"},
	{"quota-qps", "N", "limits", OPT_U32, AT(quota_qps), .min = 1, .max = 1 << 24,
	 .help = "queue pairs of one user (half of the device's)"},
	{"quota-mrs", "N", "limits", OPT_U32, AT(quota_mrs), .min = 1, .max = 1 << 24,
	 .help = "memory regions and windows of one user (half)"},
	{"quota-cqs", "N", "limits", OPT_U32, AT(quota_cqs), .min = 1, .max = 1 << 24,
	 .help = "completion queues of one user (half)"},
	{"quota-srqs", "N", "limits", OPT_U32, AT(quota_srqs), .min = 1, .max = 1 << 24,
	 .help = "shared receive queues of one user (half)"},
	{"quota-files", "N", "limits", OPT_U32, AT(quota_files), .min = 16, .max = 1 << 24,
	 .help = "file descriptors that one user costs the daemon (half)"},
	{"quota-arena", "SIZE", "limits", OPT_SIZE, AT(quota_arena_bytes),
	 .help = "shared memory of one user, as 2G"},
	{"quota-mr", "SIZE", "limits", OPT_SIZE, AT(quota_mr_bytes),
	 .help = "registered memory of one user, as 16G"},
	{"rx-mbufs", "N", "limits", OPT_U32, AT(rx_mbufs), .min = 512, .max = 1 << 22,
	 .help = "packets that can be received and not yet handled"},
	{"tx-mbufs", "N", "limits", OPT_U32, AT(tx_mbufs), .min = 512, .max = 1 << 22,
	 .help = "packets that can be under way to the NIC"},
	{"help", NULL, NULL, OPT_HELP, .help = "this text"},
	{"version", NULL, NULL, OPT_VERSION, .help = "version of this program and of DPDK"},
};
#define NUM_DEFS (sizeof(defs) / sizeof(defs[0]))

static void
print_help(void)
{
	char left[64];

	printf("usage: rnicd [OPTION...] [-- EAL-ARGUMENT...]\n\n"
	       "SoftRNIC daemon: makes an RDMA NIC out of the Ethernet ports it is given.\n\n");
	for (size_t i = 0; i < NUM_DEFS; i++) {
		if (defs[i].file_only)
			continue;
		snprintf(left, sizeof(left), "--%s%s%s", defs[i].name,
			 defs[i].arg != NULL ? " " : "", defs[i].arg != NULL ? defs[i].arg : "");
		printf("  %-26s %s\n", left, defs[i].help);
	}
	printf("\nPorts:\n"
	       "  af_packet:NETDEV   a kernel interface, as veth0; it must not carry the address\n"
	       "  af_xdp:NETDEV      the same, faster\n"
	       "  tap:NAME           an interface that the daemon makes\n"
	       "  pci:ADDRESS        a NIC that a DPDK driver owns, as 0000:03:00.0\n"
	       "  vdev:ARGUMENTS     any other virtual device, in DPDK's words\n"
	       "  ethdev:NAME        a device that arguments after -- made\n"
	       "  loop               what is sent comes back; taken when no port is named\n"
	       "with ip=ADDR/LEN[@VLAN] and route=PREFIX[>GATEWAY] as often as needed, "
	       "gw=GATEWAY,\n"
	       "mtu=, vlan=, name=, no-offload=, rx-desc=, tx-desc=; others go to the driver.\n\n"
	       "  rnicd --port af_packet:veth0,ip=192.0.2.1/24,mtu=4200\n"
	       "  rnicd --config /etc/softrnic/rnicd.conf --workers 2 -- --telemetry\n\n"
	       "See rnicd(8), rnicd.conf(5), rnicctl(8).\n");
}

static int
set_tri(enum rnicd_tri *t, const char *v, struct rnicd_error *err)
{
	if (strcmp(v, "yes") == 0)
		*t = RNICD_YES;
	else if (strcmp(v, "no") == 0)
		*t = RNICD_NO;
	else if (strcmp(v, "auto") == 0)
		*t = RNICD_AUTO;
	else
		return rnicd_fail(err, "'%s' is none of auto, yes and no", v);
	return 0;
}

static int
set_string(char *out, const char *v, uint64_t size, struct rnicd_error *err)
{
	if (*v == '\0')
		return rnicd_fail(err, "the value is empty");
	if (strlen(v) >= size)
		return rnicd_fail(err, "'%.40s...' is longer than %llu characters", v,
				  (unsigned long long)size - 1);
	strcpy(out, v);
	return 0;
}

static int
add_log_level(struct rnicd_conf *c, const char *v, struct rnicd_error *err)
{
	if (c->num_log_levels == RNICD_MAX_LOG_LEVELS)
		return rnicd_fail(err, "more than %d log levels", RNICD_MAX_LOG_LEVELS);
	return set_string(c->log_level[c->num_log_levels++], v, sizeof(c->log_level[0]), err);
}

static int
add_port(struct rnicd_conf *c, const char *v, struct rnicd_error *err)
{
	if (c->num_ports == RNICD_MAX_PORTS)
		return rnicd_fail(err, "more than %d ports", RNICD_MAX_PORTS);
	if (rnicd_port_spec_parse(&c->port[c->num_ports], v, err) < 0)
		return -1;
	c->num_ports++;
	return 0;
}

static int
set_flag(const struct option_def *d, void *field, bool yes)
{
	if (d->offset == offsetof(struct rnicd_conf, huge))
		*(enum rnicd_tri *)field = yes ? RNICD_YES : RNICD_NO;
	else
		*(bool *)field = yes;
	return 0;
}

static int
set_value(struct rnicd_conf *c, const struct option_def *d, const char *v,
	  struct rnicd_error *err)
{
	void *field = (char *)c + d->offset;
	enum rnicd_tri t = RNICD_AUTO;
	uint64_t n;

	switch (d->type) {
	case OPT_CONFIG:
	case OPT_STRING:
		return set_string(field, v, d->max, err);
	case OPT_U32:
		if (rnicd_number_parse(&n, v, d->min, d->max, err) < 0)
			return -1;
		*(uint32_t *)field = (uint32_t)n;
		return 0;
	case OPT_U64:
		return rnicd_number_parse(field, v, d->min, d->max, err);
	case OPT_SIZE:
		return rnicd_size_parse(field, v, err);
	case OPT_TRI:
		return set_tri(field, v, err);
	case OPT_BOOL: /* the one there is stands for its contrary */
		if (set_tri(&t, v, err) < 0)
			return -1;
		*(bool *)field = t == RNICD_NO;
		return 0;
	case OPT_SET_YES:
	case OPT_SET_NO:
		return set_flag(d, field, d->type == OPT_SET_YES);
	case OPT_OFFLOAD:
		n = rnicd_offload_bit(v, err);
		*(uint64_t *)field |= n;
		return n != 0 ? 0 : -1;
	case OPT_LOG:
		return add_log_level(c, v, err);
	case OPT_PORT:
		return add_port(c, v, err);
	default:
		return 0;
	}
}

int
rnicd_option_set(struct rnicd_conf *c, const char *section, const char *name,
		 const char *value, struct rnicd_error *err)
{
	for (size_t i = 0; i < NUM_DEFS; i++) {
		if (defs[i].section == NULL || strcmp(defs[i].section, section) != 0 ||
		    strcmp(defs[i].name, name) != 0)
			continue;
		if (set_value(c, &defs[i], value, err) < 0)
			return rnicd_fail_prefix(err, "%s: ", name);
		return 0;
	}
	return rnicd_fail(err, "section [%s] has no option '%s'; see rnicd.conf(5)", section,
			  name);
}

/* One pass over the command line; `config_only` looks for --config, --help, --version. */
static enum rnicd_options_result
command_line(struct rnicd_conf *c, int argc, char **argv, bool config_only,
	     struct rnicd_error *err)
{
	struct option lopts[NUM_DEFS + 1] = {0};
	int i, o;

	for (size_t d = 0; d < NUM_DEFS; d++) {
		/* a name that only the file has cannot be typed: it holds a blank */
		lopts[d].name = defs[d].file_only ? " " : defs[d].name;
		lopts[d].has_arg = defs[d].arg != NULL ? required_argument : no_argument;
		lopts[d].val = 256 + (int)d;
	}
	optind = 0; /* glibc: start over */
	while ((o = getopt_long(argc, argv, "+:hV", lopts, &i)) != -1) {
		if (o == 'h' || (o >= 256 && defs[o - 256].type == OPT_HELP)) {
			print_help();
			return RNICD_OPTIONS_DONE;
		}
		if (o == 'V' || (o >= 256 && defs[o - 256].type == OPT_VERSION)) {
			printf("rnicd %s, %s\n", SOFTRNIC_VERSION, rte_version());
			return RNICD_OPTIONS_DONE;
		}
		if (o < 256) {
			rnicd_fail(err, "option '%s' %s; rnicd --help lists what there is",
				   argv[optind - 1], o == ':' ? "needs a value" : "is unknown");
			return RNICD_OPTIONS_BAD;
		}
		if (config_only != (defs[o - 256].type == OPT_CONFIG))
			continue;
		if (set_value(c, &defs[o - 256], optarg, err) < 0) {
			rnicd_fail_prefix(err, "--%s: ", defs[o - 256].name);
			return RNICD_OPTIONS_BAD;
		}
	}
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0) {
		rnicd_fail(err, "'%s' is not an option; rnicd --help lists what there is",
			   argv[optind]);
		return RNICD_OPTIONS_BAD;
	}
	c->eal_argv = argv + optind;
	c->eal_argc = argc - optind;
	return RNICD_OPTIONS_RUN;
}

/* The socket's path with another ending. */
static void
derive_path(char *out, size_t size, const char *socket, const char *ending)
{
	size_t len = strlen(socket);

	if (len > 5 && strcmp(socket + len - 5, ".sock") == 0)
		len -= 5;
	snprintf(out, size, "%.*s%s", (int)len, socket, ending);
}

static int
make_absolute(char *path, size_t size, struct rnicd_error *err)
{
	char cwd[256], full[512];

	if (path[0] == '/' || path[0] == '\0')
		return 0;
	if (getcwd(cwd, sizeof(cwd)) == NULL)
		return rnicd_fail(err, "the working directory has no name; give absolute paths");
	snprintf(full, sizeof(full), "%s/%s", cwd, path);
	if (strlen(full) >= size)
		return rnicd_fail(err, "path %.300s is longer than the %zu characters that a "
				  "socket's may have", full, size - 1);
	strcpy(path, full);
	return 0;
}

static int
finish(struct rnicd_conf *c, struct rnicd_error *err)
{
	if (strchr(c->name, '/') != NULL || c->name[0] == '.')
		return rnicd_fail(err, "a device's name is no path: '%s'", c->name);
	if (c->socket[0] == '\0')
		snprintf(c->socket, sizeof(c->socket), RNICD_RUN_DIR "/%s.sock", c->name);
	if (make_absolute(c->socket, sizeof(c->socket) - 8, err) < 0)
		return -1;
	if (c->admin[0] == '\0')
		derive_path(c->admin, sizeof(c->admin), c->socket, ".admin");
	if (c->pidfile[0] == '\0')
		derive_path(c->pidfile, sizeof(c->pidfile), c->socket, ".pid");
	if (make_absolute(c->admin, sizeof(c->admin), err) < 0 ||
	    make_absolute(c->pidfile, sizeof(c->pidfile), err) < 0 ||
	    make_absolute(c->config, sizeof(c->config), err) < 0)
		return -1;
	if (strcmp(c->socket, c->admin) == 0 || strcmp(c->socket, c->pidfile) == 0 ||
	    strcmp(c->admin, c->pidfile) == 0)
		return rnicd_fail(err, "socket, admin and pidfile are three paths, not one");
	if (c->num_ports == 0 && rnicd_port_spec_parse(&c->port[c->num_ports++], "loop", err) < 0)
		return -1;
	for (uint32_t i = 0; i < c->num_ports; i++)
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(c->port[i].name, c->port[j].name) == 0)
				return rnicd_fail(err, "two ports are called '%s'; give one of "
						  "them a name=", c->port[i].name);
	return 0;
}

enum rnicd_options_result
rnicd_options_parse(struct rnicd_conf *c, int argc, char **argv, struct rnicd_error *err)
{
	enum rnicd_options_result r;

	memset(c, 0, sizeof(*c));
	strcpy(c->name, "rnic0");
	c->workers = 1;
	c->idle_us = 100;
	r = command_line(c, argc, argv, true, err);
	if (r != RNICD_OPTIONS_RUN)
		return r;
	if (c->config[0] != '\0' && rnicd_config_load(c, c->config, err) < 0)
		return RNICD_OPTIONS_BAD;
	r = command_line(c, argc, argv, false, err);
	if (r == RNICD_OPTIONS_RUN && finish(c, err) < 0)
		r = RNICD_OPTIONS_BAD;
	return r;
}
