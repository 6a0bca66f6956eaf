/* SPDX-License-Identifier: BSD-3-Clause */
/* rnicctl: looks into a running rnicd and changes what may change while it runs. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "rnicctl.h"

#define RUN_DIR "/run/softrnic"
#define PAGE 500

static struct rnicctl_style style;
static double watch_s;

static void
print_help(void)
{
	printf("usage: rnicctl [OPTION...] COMMAND\n\n"
	       "Looks into a running rnicd, and changes what may change while it runs.\n\n"
	       "  -d, --device NAME     the daemon with that name (rnic0)\n"
	       "  -s, --socket PATH     its admin socket (" RUN_DIR "/NAME.admin); the\n"
	       "                        clients' socket will do, too: NAME.sock\n"
	       "  -j, --json            answers as JSON\n"
	       "  -a, --all             counters that are zero, too\n"
	       "  -x, --exact           sizes in bytes, not in K, M, G\n"
	       "  -w, --watch SECONDS   again and again\n"
	       "  -h, --help            this text\n"
	       "  -V, --version         version of this program\n\n"
	       "Commands:\n"
	       "  show KIND             devices, ports, contexts, pds, mrs, cqs, qps, counters,\n"
	       "                        memory, neighbours, routes, workers, cc, cc-qps; of\n"
	       "                        connection management ids, listeners, connections, cm\n"
	       "  ping                  whether it is well, and the latency of its workers\n"
	       "  addr add|del PORT ADDRESS/LEN[@VLAN]\n"
	       "  route add PORT PREFIX|default [GATEWAY]\n"
	       "  cc PORT NAME=VALUE... congestion management, as cc=off cc-min-rate=200\n"
	       "  log [TYPE:]LEVEL      as info or lib.roce:debug\n"
	       "  reload                read addresses and routes of its file again\n"
	       "  version               of the daemon\n"
	       "  shutdown              end it; its clients get a fatal event\n\n"
	       "Exit status: 0 done, 1 refused, 2 wrong usage, 3 no daemon there.\n"
	       "See rnicctl(8).\n");
}

static int
usage(const char *what)
{
	fprintf(stderr, "rnicctl: %s; rnicctl --help lists what there is\n", what);
	return RNICCTL_USAGE;
}

/* ---- answers ---------- */

/* Says why when the answer is no. Drops the reference of a refusal. */
static int
check(json_t *answer)
{
	const char *why;

	if (answer == NULL)
		return RNICCTL_UNREACHABLE;
	if (json_is_true(json_object_get(answer, "ok")))
		return RNICCTL_OK;
	why = json_string_value(json_object_get(answer, "error"));
	fprintf(stderr, "rnicctl: %s\n", why != NULL ? why : "refused");
	json_decref(answer);
	return RNICCTL_REFUSED;
}

static void
print_json(FILE *out, const json_t *v)
{
	json_dumpf(v, out, JSON_INDENT(2));
	fputc('\n', out);
}

/* ---- output that may be longer than the screen ---------- */

static FILE *
pager_open(size_t lines)
{
	const char *pager = getenv("PAGER");
	struct winsize ws;

	if (watch_s > 0 || !isatty(STDOUT_FILENO) ||
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) < 0 || lines + 1 < ws.ws_row)
		return stdout;
	signal(SIGPIPE, SIG_IGN); /* the reader may leave early */
	setenv("LESS", "FRSX", 0);
	fflush(stdout);
	return popen(pager != NULL && *pager != '\0' ? pager : "less", "w") ?: stdout;
}

static void
pager_close(FILE *out)
{
	if (out != stdout)
		pclose(out);
	else
		fflush(out);
}

/* ---- commands ---------- */

/* All pages of a kind. */
static int
fetch(const char *kind, json_t *objects)
{
	json_t *answer;
	bool more = true;
	int rc;

	while (more) {
		answer = rnicctl_ask(json_pack("{s:s, s:s, s:I, s:i}", "cmd", "show", "kind", kind,
					       "skip", (json_int_t)json_array_size(objects),
					       "max", PAGE));
		rc = check(answer);
		if (rc != RNICCTL_OK)
			return rc;
		more = json_is_true(json_object_get(answer, "more"));
		json_array_extend(objects, json_object_get(answer, "objects"));
		json_decref(answer);
	}
	return RNICCTL_OK;
}

static int
cmd_show(int argc, char **argv)
{
	json_t *objects;
	FILE *out;
	int rc;

	if (argc != 1)
		return usage("show takes one kind, as qps");
	objects = json_array();
	rc = fetch(argv[0], objects);
	if (rc == RNICCTL_OK) {
		out = pager_open(style.json ? SIZE_MAX - 1 : json_array_size(objects));
		if (style.json)
			print_json(out, objects);
		else
			rnicctl_table_print(out, objects, &style);
		pager_close(out);
	}
	json_decref(objects);
	return rc;
}

/* A request whose answer is `ok`, or a list under that key, or members to print. */
static int
simple(json_t *request, const char *list)
{
	json_t *answer = rnicctl_ask(request), *one;
	int rc = check(answer);

	if (rc != RNICCTL_OK)
		return rc;
	if (style.json) {
		print_json(stdout, answer);
	} else if (list != NULL) {
		rnicctl_table_print(stdout, json_object_get(answer, list), &style);
	} else {
		json_object_del(answer, "ok");
		one = json_pack("[O]", answer);
		if (json_object_size(answer) > 0)
			rnicctl_table_print(stdout, one, &style);
		json_decref(one);
	}
	json_decref(answer);
	return rc;
}

static int
cmd_plain(int argc, char **argv)
{
	if (argc != 0)
		return usage("this command takes nothing behind it");
	return simple(json_pack("{s:s}", "cmd", argv[-1]), NULL);
}

static int
cmd_ping(int argc, char **argv)
{
	(void)argv;
	if (argc != 0)
		return usage("ping takes nothing behind it");
	return simple(json_pack("{s:s}", "cmd", "ping"), "workers");
}

static int
cmd_addr(int argc, char **argv)
{
	if (argc != 3 || (strcmp(argv[0], "add") != 0 && strcmp(argv[0], "del") != 0))
		return usage("write as: addr add|del PORT ADDRESS/LEN[@VLAN]");
	return simple(json_pack("{s:s, s:s, s:s, s:s}", "cmd", "addr", "op", argv[0], "port",
				argv[1], "addr", argv[2]), NULL);
}

static int
cmd_route(int argc, char **argv)
{
	if (argc < 3 || argc > 4 || strcmp(argv[0], "add") != 0)
		return usage("write as: route add PORT PREFIX|default [GATEWAY]");
	return simple(json_pack("{s:s, s:s, s:s, s:s, s:s*}", "cmd", "route", "op", "add", "port",
				argv[1], "prefix", argv[2], "gateway", argc == 4 ? argv[3] : NULL),
		      NULL);
}

static int
cmd_cc(int argc, char **argv)
{
	json_t *set = json_object();

	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value != NULL) {
			*value++ = '\0';
			json_object_set_new(set, argv[i], json_string(value));
		} else {
			argc = 0;
		}
	}
	if (argc < 2) {
		json_decref(set);
		return usage("write as: cc PORT NAME=VALUE...; show cc has the names");
	}
	return simple(json_pack("{s:s, s:s, s:o}", "cmd", "cc", "port", argv[0], "set", set), NULL);
}

static int
cmd_log(int argc, char **argv)
{
	if (argc != 1)
		return usage("write as: log [TYPE:]LEVEL");
	return simple(json_pack("{s:s, s:s}", "cmd", "log", "level", argv[0]), NULL);
}

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[-1] is the command itself */
	bool may_watch;
} commands[] = {
	{"show", cmd_show, true},     {"ping", cmd_ping, true},	  {"addr", cmd_addr, false},
	{"route", cmd_route, false},  {"log", cmd_log, false},	  {"cc", cmd_cc, false},
	{"reload", cmd_plain, false},
	{"version", cmd_plain, true}, {"shutdown", cmd_plain, false},
};

/* ---- main ---------- */

static int
run(const struct command *c, int argc, char **argv)
{
	struct timespec t = {.tv_sec = (time_t)watch_s,
			     .tv_nsec = (long)((watch_s - (double)(time_t)watch_s) * 1e9)};
	int rc;

	if (watch_s > 0 && !c->may_watch)
		return usage("--watch is for show, ping and version");
	do {
		if (watch_s > 0 && isatty(STDOUT_FILENO))
			printf("\033[H\033[2J");
		rc = c->run(argc, argv);
		fflush(stdout);
	} while (watch_s > 0 && rc == RNICCTL_OK && !ferror(stdout) &&
		 clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL) == 0);
	return rc;
}

/* The admin socket that belongs to what the user gave. */
static const char *
admin_path(const char *given, const char *device, char *out, size_t size)
{
	size_t len = strlen(given);

	if (len > 5 && strcmp(given + len - 5, ".sock") == 0)
		snprintf(out, size, "%.*s.admin", (int)len - 5, given);
	else if (len > 0)
		snprintf(out, size, "%s", given);
	else
		snprintf(out, size, RUN_DIR "/%s.admin", device);
	return out;
}

static bool
parse_seconds(const char *text)
{
	char *end;

	watch_s = strtod(text, &end);
	return *end == '\0' && end != text && watch_s >= 0.1 && watch_s <= 86400;
}

int
main(int argc, char **argv)
{
	static const struct option lopts[] = {
		{"device", required_argument, NULL, 'd'}, {"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},	  {"all", no_argument, NULL, 'a'},
		{"exact", no_argument, NULL, 'x'},	  {"watch", required_argument, NULL, 'w'},
		{"help", no_argument, NULL, 'h'},	  {"version", no_argument, NULL, 'V'},
		{0},
	};
	const char *socket = getenv("SOFTRNIC_ADMIN") ?: "", *device = "rnic0";
	char path[4096];
	int o, rc;

	while ((o = getopt_long(argc, argv, "+d:s:jaxw:hV", lopts, NULL)) != -1) {
		switch (o) {
		case 'd': device = optarg; socket = ""; break;
		case 's': socket = optarg; break;
		case 'j': style.json = true; break;
		case 'a': style.all = true; break;
		case 'x': style.exact = true; break;
		case 'w':
			if (!parse_seconds(optarg))
				return usage("--watch takes seconds from 0.1 to 86400");
			break;
		case 'h': print_help(); return RNICCTL_OK;
		case 'V': printf("rnicctl %s\n", SOFTRNIC_VERSION); return RNICCTL_OK;
		default: return usage("wrong option");
		}
	}
	if (optind == argc)
		return usage("no command given");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, argv[optind]) != 0)
			continue;
		rc = rnicctl_connect(admin_path(socket, device, path, sizeof(path)));
		if (rc != RNICCTL_OK)
			return rc;
		return run(&commands[i], argc - optind - 1, argv + optind + 1);
	}
	return usage("unknown command");
}
