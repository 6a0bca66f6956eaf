/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic_kv: a key-value store whose server does nothing. Its table is read and written by the
 * clients themselves, with RDMA READ, WRITE and compare-and-swap (kv.h).
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

struct options {
	const char *host, *socket, *device;
	unsigned int port, slots, patience_ms;
	int gid_index;
	bool once;
};

static const char usage_text[] =
	"usage: rnic_kv [option...] serve                     register the table, join clients\n"
	"       rnic_kv [option...] HOST [command [word...]]  be a client\n"
	"\n"
	"commands (without one: lines of commands from standard input)\n"
	"  get KEY             print its value\n"
	"  put KEY VALUE       store it\n"
	"  del KEY             take it away\n"
	"  count KEY N         add one to a decimal value N times, whoever else does so too\n"
	"  bench KEYS SECONDS  nine reads to one write on KEYS keys, all values checked\n"
	"  stats               reads repeated, races lost, locks of dead writers broken\n"
	"\n"
	"  -p, --port=N       TCP port (18517)\n"
	"  -n, --slots=N      slots of the table (65536)\n"
	"  -w, --patience=MS  a slot locked for so long was left by a dead writer (500)\n"
	"  -S, --socket=PATH  rnicd's socket (RNIC_SOCKET, or its default)\n"
	"  -d, --device=NAME  device (the daemon's first)\n"
	"  -g, --gid-idx=N    index of the own GID (the first IPv4 address)\n"
	"  -1, --once         server: end when the last client has gone\n"
	"\n"
	"Keys have up to 64 bytes, values up to 176. Exit status: 0, or 1 if a command failed.\n";

/* ---- commands ---------- */

static int
report(const char *what, int rc)
{
	if (rc == -ENOENT)
		puts("(none)");
	else if (rc < 0)
		fprintf(stderr, "rnic_kv: %s: %s\n", what, rc == -ENOSPC ? "no room for this key"
				: rc == -EINVAL ? "key or value too long" : rnic_strerror(rc));
	return rc < 0;
}

static int
get(struct kv *kv, const char *key)
{
	char value[KV_VALUE_MAX + 1];
	size_t len = 0;
	int rc = kv_get(kv, key, strlen(key), value, &len);

	if (rc < 0)
		return report("get", rc);
	printf("%.*s\n", (int)len, value);
	return 0;
}

static int
add_one(struct kv *kv, const char *key)
{
	char value[KV_VALUE_MAX + 1];
	size_t len;
	int rc = kv_get(kv, key, strlen(key), value, &len);

	if (rc < 0)
		return rc;
	value[len] = 0;
	len = (size_t)snprintf(value, sizeof(value), "%llu", strtoull(value, NULL, 10) + 1);
	return kv_put_unchanged(kv, key, strlen(key), value, len);
}

/** Any number of clients may count the same key: who was late reads again. */
static int
count(struct kv *kv, const char *key, unsigned long n)
{
	while (n > 0) {
		int rc = add_one(kv, key);

		if (rc < 0)
			return report("count", rc);
		n -= rc > 0;
	}
	return get(kv, key);
}

/* ---- bench ---------- */

/** The value names its key, so that any client's value can be checked by all. */
static size_t
make_value(char *value, unsigned int key, uint64_t serial)
{
	size_t len = 16 + serial % (KV_VALUE_MAX - 16);

	snprintf(value, 17, "%08x%08x", key, (unsigned int)serial);
	ex_pattern(value + 16, len - 16, (uint64_t)key << 32 | (uint32_t)serial);
	return len;
}

static bool
value_right(const char *value, size_t len, unsigned int key)
{
	unsigned int k, serial;
	char head[17] = "";

	memcpy(head, value, len < 16 ? len : 16);
	return sscanf(head, "%8x%8x", &k, &serial) == 2 && k == key &&
	       len == 16 + serial % (KV_VALUE_MAX - 16) &&
	       ex_pattern_check(value + 16, len - 16, (uint64_t)k << 32 | serial) == len - 16;
}

static int
bench(struct kv *kv, unsigned int keys, double seconds)
{
	uint64_t start = ex_now_ns(), end = start + (uint64_t)(seconds * 1e9);
	uint64_t gets = 0, puts_ = 0, wrong = 0, rng = start | 1;
	char key[16], value[KV_VALUE_MAX + 1];
	size_t len;
	double s;

	while (ex_now_ns() < end) {
		unsigned int k;
		int n, rc;

		rng = rng * 6364136223846793005ull + 1442695040888963407ull;
		k = (unsigned int)(rng >> 33) % keys;
		n = snprintf(key, sizeof(key), "k%u", k);
		if ((rng >> 20) % 10 == 0) {
			len = make_value(value, k, (uint32_t)(rng >> 32));
			rc = kv_put(kv, key, (size_t)n, value, len);
			puts_++;
		} else {
			rc = kv_get(kv, key, (size_t)n, value, &len);
			wrong += rc == 0 && !value_right(value, len, k);
			gets++;
		}
		if (rc < 0 && rc != -ENOENT)
			return report("bench", rc);
	}
	s = (double)(ex_now_ns() - start) / 1e9;
	printf("%llu gets and %llu puts in %.2f s, %.0f operations/s, %llu wrong\n",
	       (unsigned long long)gets, (unsigned long long)puts_, s, (double)(gets + puts_) / s,
	       (unsigned long long)wrong);
	return wrong > 0;
}

/* ---- client ---------- */

static int
command(struct kv *kv, int words, char **word)
{
	if (words == 0)
		return 0;
	if (!strcmp(word[0], "get") && words == 2)
		return get(kv, word[1]);
	if (!strcmp(word[0], "put") && words == 3)
		return report("put", kv_put(kv, word[1], strlen(word[1]), word[2],
					    strlen(word[2])));
	if (!strcmp(word[0], "del") && words == 2)
		return report("del", kv_delete(kv, word[1], strlen(word[1])));
	if (!strcmp(word[0], "count") && words == 3)
		return count(kv, word[1], ex_number("count", word[2], 1, UINT32_MAX));
	if (!strcmp(word[0], "bench") && words == 3)
		return bench(kv, ex_number("bench", word[1], 1, 1u << 24),
			     strtod(word[2], NULL));
	if (!strcmp(word[0], "stats") && words == 1) {
		printf("torn reads %llu, races lost %llu, locks broken %llu\n",
		       (unsigned long long)kv->torn, (unsigned long long)kv->raced,
		       (unsigned long long)kv->broken);
		return 0;
	}
	fprintf(stderr, "rnic_kv: '%s' with %d words: no such command\n", word[0], words - 1);
	return 1;
}

static int
read_commands(struct kv *kv)
{
	char line[512], *word[4], *save;
	int rc = 0;

	while (fgets(line, sizeof(line), stdin)) {
		int n = 0;

		for (char *p = strtok_r(line, " \t\n", &save); p && n < 4;
		     p = strtok_r(NULL, " \t\n", &save))
			word[n++] = p;
		rc |= command(kv, n, word);
		fflush(stdout);
	}
	return rc;
}

static int
client(const struct options *o, int words, char **word)
{
	struct kv kv = { .patience_ns = (uint64_t)o->patience_ms * 1000000 };
	int rc;

	ex_open(&kv.dev, o->socket, o->device, 1, o->gid_index);
	kv_client_open(&kv, o->host, o->port);
	fflush(stdout);
	rc = words > 0 ? command(&kv, words, word) : read_commands(&kv);
	kv_client_close(&kv);
	ex_close(&kv.dev);
	return rc;
}

static int
server(const struct options *o)
{
	struct ex_device dev;
	unsigned int port;
	int listener;

	ex_open(&dev, o->socket, o->device, 1, o->gid_index);
	listener = ex_listen(o->port, &port);
	printf("listening on port %u\n", port);
	fflush(stdout);
	kv_serve(&dev, listener, o->slots, o->once);
	ex_close(&dev);
	return 0;
}

/* ---- options ---------- */

static const struct option long_options[] = {
	{ "port", 1, NULL, 'p' },   { "slots", 1, NULL, 'n' },	 { "patience", 1, NULL, 'w' },
	{ "socket", 1, NULL, 'S' }, { "device", 1, NULL, 'd' },	 { "gid-idx", 1, NULL, 'g' },
	{ "once", 0, NULL, '1' },   { "help", 0, NULL, 'h' },	 { NULL, 0, NULL, 0 },
};

static void
option(struct options *o, int opt, const char *arg)
{
	switch (opt) {
	case 'p': o->port = ex_number("--port", arg, 0, 65535); break;
	case 'n': o->slots = ex_number("--slots", arg, 1, 1u << 22); break;
	case 'w': o->patience_ms = ex_number("--patience", arg, 1, 3600000); break;
	case 'S': o->socket = arg; break;
	case 'd': o->device = arg; break;
	case 'g': o->gid_index = ex_number("--gid-idx", arg, 0, 255); break;
	case '1': o->once = true; break;
	case 'h': fputs(usage_text, stdout); exit(0);
	default: fputs(usage_text, stderr); exit(2);
	}
}

int
main(int argc, char **argv)
{
	struct options o = { .port = 18517, .slots = 65536, .patience_ms = 500, .gid_index = -1 };
	int opt;

	ex_program = "rnic_kv";
	while ((opt = getopt_long(argc, argv, "+p:n:w:S:d:g:1h", long_options, NULL)) != -1)
		option(&o, opt, optarg);
	if (optind == argc)
		option(&o, '?', NULL);
	o.host = argv[optind++];
	if (!strcmp(o.host, "serve") && optind == argc)
		return server(&o);
	return client(&o, argc - optind, argv + optind);
}
