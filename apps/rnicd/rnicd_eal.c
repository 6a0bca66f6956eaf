/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EAL arguments, composed from the configuration. An argument that the user gave after `--`
 * replaces ours: several of EAL's may not be given twice, so ours is left out then.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cpuflags.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "rnicd.h"

#define EAL_MAX_CPU 128 /* RTE_MAX_LCORE of Debian's DPDK; others fall out of the sets */
#define HUGE_DIR "/sys/kernel/mm/hugepages"

/* ---- huge pages ---------- */

/* Bytes that pools and DPDK's own tables take, generously. */
static uint64_t
memory_need(const struct rnicd_conf *c)
{
	uint64_t mbuf = rnicd_port_data_room(c) + sizeof(struct rte_mbuf) + 192;
	uint64_t need = (uint64_t)(rnicd_port_rx_mbufs(c) + rnicd_port_tx_mbufs(c)) * mbuf;

	need += need / 8 + (64ULL << 20);
	need += (uint64_t)c->workers * (32ULL << 20); /* their rings and shadows */
	return need;
}

static uint64_t
read_number(const char *path)
{
	unsigned long long v = 0;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%llu", &v) != 1)
		v = 0;
	fclose(f);
	return v;
}

/* Free bytes of all sizes of huge page; *page_kb: the smallest size that this kernel has. */
static uint64_t
huge_free(uint64_t *page_kb)
{
	DIR *dir = opendir(HUGE_DIR);
	struct dirent *de;
	uint64_t bytes = 0;

	*page_kb = 2048;
	while (dir != NULL && (de = readdir(dir)) != NULL) {
		char path[512];
		unsigned long kb;

		if (sscanf(de->d_name, "hugepages-%lukB", &kb) != 1)
			continue;
		if (kb < *page_kb)
			*page_kb = kb;
		snprintf(path, sizeof(path), HUGE_DIR "/%s/free_hugepages", de->d_name);
		bytes += read_number(path) * kb * 1024;
	}
	if (dir != NULL)
		closedir(dir);
	return bytes;
}

/* Whether a hugetlbfs is mounted where we may write. */
static bool
huge_mounted(void)
{
	FILE *f = fopen("/proc/mounts", "re");
	char line[1024], where[512], type[64];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = sscanf(line, "%*s %511s %63s", where, type) == 2 &&
			strcmp(type, "hugetlbfs") == 0 && access(where, W_OK) == 0;
	if (f != NULL)
		fclose(f);
	return found;
}

static bool
user_has(const struct rnicd_conf *c, const char *const *names)
{
	for (int i = 0; i < c->eal_argc; i++)
		for (const char *const *n = names; *n != NULL; n++) {
			const char *a = c->eal_argv[i];
			size_t len = strlen(*n);

			if (strncmp(a, *n, len) != 0)
				continue;
			/* "--opt", "--opt=value", "-l", "-l2,3" */
			if (a[len] == '\0' || a[len] == '=' || len == 2)
				return true;
		}
	return false;
}
#define USER_HAS(c, ...) user_has(c, (const char *const[]){__VA_ARGS__, NULL})

int
rnicd_huge_decide(struct rnicd *r, struct rnicd_error *err)
{
	const struct rnicd_conf *c = &r->conf;
	uint64_t need = c->memory_mb != 0 ? (uint64_t)c->memory_mb << 20 : memory_need(c);
	uint64_t page_kb, have = huge_free(&page_kb), pages;
	char how[256];

	r->huge = false;
	if (c->huge == RNICD_NO || USER_HAS(c, "--no-huge"))
		return 0;
	pages = (need + (256ULL << 20)) / 1024 / page_kb; /* with room for clients' arenas */
	if (have < need)
		snprintf(how, sizeof(how), "only %llu MB of huge pages are free and %llu are "
			 "needed; do: sysctl -w vm.nr_hugepages=%llu",
			 (unsigned long long)have >> 20, (unsigned long long)need >> 20,
			 (unsigned long long)pages);
	else if (!huge_mounted())
		snprintf(how, sizeof(how), "no hugetlbfs that we may write to is mounted; do: "
			 "mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages");
	else
		r->huge = true;
	if (r->huge)
		return 0;
	if (c->huge == RNICD_YES)
		return rnicd_fail(err, "%s", how);
	RNICD_LOG(NOTICE, "using ordinary pages, huge ones would be faster: %s", how);
	return 0;
}

/* ---- CPUs ---------- */

/* "0-3,7" to a set. @return how many, or -1. */
static int
parse_cpus(const char *text, uint16_t *cpus, int max, struct rnicd_error *err)
{
	int n = 0;

	while (*text != '\0') {
		char *end;
		unsigned long a = strtoul(text, &end, 10), b = a;

		if (!isdigit((unsigned char)*text))
			break;
		if (*end == '-' && isdigit((unsigned char)end[1]))
			b = strtoul(end + 1, &end, 10);
		if (b < a || b >= EAL_MAX_CPU || (*end != '\0' && *end != ','))
			break;
		for (; a <= b; a++) {
			if (n == max)
				return rnicd_fail(err, "--lcores: more than %d CPUs", max);
			cpus[n++] = (uint16_t)a;
		}
		text = *end == ',' ? end + 1 : end;
	}
	if (*text != '\0' || n == 0)
		return rnicd_fail(err, "--lcores: write a list of CPUs below %d, as 2,4-6",
				  EAL_MAX_CPU);
	return n;
}

/* The CPUs that this process may run on, as EAL writes a set. */
static int
allowed_cpus(cpu_set_t *set, char *text, size_t size, struct rnicd_error *err)
{
	size_t n = 0;

	if (sched_getaffinity(0, sizeof(*set), set) < 0)
		return rnicd_fail(err, "sched_getaffinity: %s", strerror(errno));
	for (int i = 0; i < EAL_MAX_CPU && n + 8 < size; i++)
		if (CPU_ISSET(i, set))
			n += (size_t)snprintf(text + n, size - n, "%s%d", n > 0 ? "," : "", i);
	if (n == 0)
		return rnicd_fail(err, "no CPU below %d is ours to run on", EAL_MAX_CPU);
	return 0;
}

/*
 * lcore 0 is the control thread, 1 .. n are workers. Without a list all of them may run on
 * every CPU of the process: two daemons on two cores then share them as the kernel sees fit.
 */
static int
compose_lcores(const struct rnicd_conf *c, char *out, size_t size, struct rnicd_error *err)
{
	uint16_t cpus[RNICD_MAX_WORKERS];
	char all[1024];
	cpu_set_t set;
	size_t len;
	int n;

	if (allowed_cpus(&set, all, sizeof(all), err) < 0)
		return -1;
	if (c->lcores[0] == '\0') {
		snprintf(out, size, "--lcores=(0-%u)@(%s)", c->workers, all);
		return 0;
	}
	n = parse_cpus(c->lcores, cpus, RNICD_MAX_WORKERS, err);
	if (n < 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (!CPU_ISSET(cpus[i], &set))
			return rnicd_fail(err, "--lcores: CPU %u is not there, or not ours to use; "
					  "allowed are %s", cpus[i], all);
	if (c->workers < (uint32_t)n)
		RNICD_LOG(WARNING, "--lcores names %d CPUs and there are %u workers", n,
			  c->workers);
	len = (size_t)snprintf(out, size, "--lcores=0@(%s)", all);
	for (uint32_t i = 0; i < c->workers && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, ",%u@%u", i + 1,
					cpus[i % (uint32_t)n]);
	return 0;
}

/* ---- the arguments ---------- */

struct eal_args {
	int argc;
	bool failed;
	char *argv[96];
};

__attribute__((format(printf, 2, 3))) static void
arg_add(struct eal_args *a, const char *fmt, ...)
{
	va_list ap;

	if (a->argc == (int)(sizeof(a->argv) / sizeof(a->argv[0])) - 1) {
		a->failed = true;
		return;
	}
	va_start(ap, fmt);
	if (vasprintf(&a->argv[a->argc++], fmt, ap) < 0)
		a->argv[--a->argc] = NULL, a->failed = true;
	va_end(ap);
}

/* The same socket gives the same prefix: what a killed daemon left is found and reused. */
static void
arg_file_prefix(struct eal_args *a, const char *socket)
{
	const char *base = strrchr(socket, '/') + 1;
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (const char *s = socket; *s != '\0'; s++)
		hash = (hash ^ (uint8_t)*s) * 16777619u;
	arg_add(a, "--file-prefix=softrnic-%.16s-%08x", base, hash);
}

static void
arg_memory(struct eal_args *a, const struct rnicd *r)
{
	const struct rnicd_conf *c = &r->conf;
	uint64_t mb = c->memory_mb;

	if (r->huge) {
		if (!USER_HAS(c, "--single-file-segments"))
			arg_add(a, "--single-file-segments");
	} else {
		if (!USER_HAS(c, "--no-huge"))
			arg_add(a, "--no-huge");
		if (mb == 0)
			mb = memory_need(c) >> 20;
		if (c->memory_mb == 0 && mb < 512)
			mb = 512;
	}
	if (mb != 0 && !USER_HAS(c, "-m", "--socket-mem"))
		arg_add(a, "-m%llu", (unsigned long long)mb);
}

static void
arg_devices(struct eal_args *a, const struct rnicd_conf *c)
{
	bool pci = USER_HAS(c, "-a", "--allow");

	for (uint32_t i = 0; i < c->num_ports; i++) {
		const struct rnicd_port_conf *p = &c->port[i];

		if (p->kind != RNICD_PORT_PCI)
			continue;
		pci = true;
		arg_add(a, "-a%s%s%s", p->dev, p->devargs[0] != '\0' ? "," : "", p->devargs);
	}
	if (!pci && !USER_HAS(c, "--no-pci"))
		arg_add(a, "--no-pci");
	/* nothing needs physical addresses then, nor the right to read them */
	if (!pci && !USER_HAS(c, "--iova-mode"))
		arg_add(a, "--iova-mode=va");
}

static bool
cpu_has_512(void)
{
#ifdef RTE_ARCH_X86
	return rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX512F) == 1 &&
	       rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX512BW) == 1;
#else
	return false;
#endif
}

static int
compose(struct rnicd *r, struct eal_args *a, struct rnicd_error *err)
{
	const struct rnicd_conf *c = &r->conf;
	char lcores[2048];

	arg_add(a, "rnicd");
	if (!USER_HAS(c, "-l", "-c", "-s", "-S", "--lcores")) {
		if (compose_lcores(c, lcores, sizeof(lcores), err) < 0)
			return -1;
		arg_add(a, "%s", lcores);
		if (!USER_HAS(c, "--main-lcore"))
			arg_add(a, "--main-lcore=0");
	}
	if (!USER_HAS(c, "--file-prefix", "--in-memory"))
		arg_file_prefix(a, c->socket);
	arg_memory(a, r);
	arg_devices(a, c);
	if (cpu_has_512() && !USER_HAS(c, "--force-max-simd-bitwidth"))
		arg_add(a, "--force-max-simd-bitwidth=512");
	if (c->no_telemetry && !USER_HAS(c, "--telemetry", "--no-telemetry"))
		arg_add(a, "--no-telemetry");
	if (!USER_HAS(c, "--log-level")) {
		/* their greetings are not ours */
		arg_add(a, "--log-level=lib.eal:notice");
		arg_add(a, "--log-level=lib.telemetry:warning");
	}
	for (int i = 0; i < c->eal_argc; i++)
		arg_add(a, "%s", c->eal_argv[i]);
	return a->failed ? rnicd_fail(err, "too many EAL arguments") : 0;
}

static void
log_args(const struct eal_args *a)
{
	char line[2048];
	size_t n = 0;

	for (int i = 1; i < a->argc && n < sizeof(line); i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " %s", a->argv[i]);
	RNICD_LOG(DEBUG, "EAL arguments:%s", line);
}

int
rnicd_eal_init(struct rnicd *r, struct rnicd_error *err)
{
	/* EAL keeps pointers into its arguments, and changes their order */
	static struct eal_args a, given;

	if (compose(r, &a, err) < 0)
		return -1;
	log_args(&a);
	r->eal = true;
	given = a;
	if (rte_eal_init(given.argc, given.argv) < 0)
		return rnicd_fail(err, "DPDK does not start (%s); see its messages above",
				  rte_strerror(rte_errno));
	if (rte_lcore_count() < r->conf.workers + 1)
		return rnicd_fail(err, "%u workers need %u lcores and the EAL arguments after -- "
				  "give %u; several may share a CPU: --lcores '(0-%u)@(0,1)'",
				  r->conf.workers, r->conf.workers + 1, rte_lcore_count(),
				  r->conf.workers);
	if (rte_eal_has_hugepages() == 0)
		r->huge = false;
	for (uint32_t i = 0; i < r->conf.num_log_levels; i++)
		if (rnicd_log_level_set(r->conf.log_level[i], err) < 0)
			return -1;
	return 0;
}

/* EAL leaves its runtime directory; nobody will read it any more. */
void
rnicd_eal_cleanup(void)
{
	const char *path = rte_eal_get_runtime_dir();
	char copy[256];
	struct dirent *de;
	DIR *dir;

	snprintf(copy, sizeof(copy), "%s", path != NULL ? path : "");
	rte_eal_cleanup();
	/* only one that is ours by name: the user may have chosen a shared one */
	if (strstr(copy, "/softrnic-") == NULL)
		return;
	dir = opendir(copy);
	while (dir != NULL && (de = readdir(dir)) != NULL)
		if (de->d_name[0] != '.')
			unlinkat(dirfd(dir), de->d_name, 0);
	if (dir != NULL)
		closedir(dir);
	rmdir(copy);
}

/* ---- log levels ---------- */

int
rnicd_log_level_set(const char *text, struct rnicd_error *err)
{
	static const char *const names[] = {
		[RTE_LOG_EMERG] = "emergency",	[RTE_LOG_ALERT] = "alert",
		[RTE_LOG_CRIT] = "critical",	[RTE_LOG_ERR] = "error",
		[RTE_LOG_WARNING] = "warning",	[RTE_LOG_NOTICE] = "notice",
		[RTE_LOG_INFO] = "info",	[RTE_LOG_DEBUG] = "debug",
	};
	const char *colon = strrchr(text, ':');
	const char *name = colon != NULL ? colon + 1 : text;
	char pattern[64];

	for (uint32_t i = RTE_LOG_EMERG; i <= RTE_LOG_DEBUG; i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		snprintf(pattern, sizeof(pattern), "%.*s", colon != NULL ? (int)(colon - text) : 1,
			 colon != NULL ? text : "*");
		if (rte_log_get_global_level() < i)
			rte_log_set_global_level(i);
		if (rte_log_set_level_pattern(pattern, i) != 0)
			return rnicd_fail(err, "'%s' is no pattern of log types", pattern);
		return 0;
	}
	return rnicd_fail(err, "'%s' is no log level; there are emergency, alert, critical, error, "
			  "warning, notice, info and debug, or TYPE:LEVEL as lib.roce:debug",
			  text);
}
