/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Privileges. Everything that DPDK and ports need at the start is done before the drop. Then
 * the control thread, and the helpers and copiers that it makes afterwards, keep the few
 * capabilities that reaching clients' memory takes (docs/man/rnicd.8 lists them); workers and
 * EAL's own threads keep none. capset() speaks for the calling thread alone, so that each
 * thread is made to call it by a signal, as libcap's libpsx does.
 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rnicd.h"

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif
#define CAP_BIT(c) (1ULL << (c))

static const struct cap_use {
	uint8_t cap;
	bool ports_only; /* kept where a port stands on a kernel interface */
	const char *name;
	const char *without; /* what does not work */
} uses[] = {
	{CAP_SYS_PTRACE, false, "sys_ptrace", "memory of other users' programs"},
	{CAP_CHECKPOINT_RESTORE, false, "checkpoint_restore", "zero copy of shared mappings"},
	{CAP_SYS_ADMIN, false, "sys_admin", "zero copy of shared mappings"},
	{CAP_DAC_OVERRIDE, false, "dac_override", "shared files of other users"},
	{CAP_IPC_LOCK, false, "ipc_lock", "locking memory beyond RLIMIT_MEMLOCK"},
	{CAP_SETUID, false, "setuid", "copying from and to other users' memory"},
	{CAP_SETGID, false, "setgid", "copying from and to other users' memory"},
	{CAP_NET_ADMIN, true, "net_admin", "tap and af_xdp ports, and setting an MTU"},
	{CAP_NET_RAW, true, "net_raw", "af_packet and af_xdp ports"},
};
#define NUM_USES (sizeof(uses) / sizeof(uses[0]))

/* /proc/PID/map_files wants one of two; the narrow one where this kernel has it. */
static bool
is_needed(const struct cap_use *u, bool kernel_ports)
{
	bool narrow = prctl(PR_CAPBSET_READ, CAP_CHECKPOINT_RESTORE, 0, 0, 0) == 1;

	if (u->cap == CAP_CHECKPOINT_RESTORE)
		return narrow;
	if (u->cap == CAP_SYS_ADMIN)
		return !narrow;
	return kernel_ports || !u->ports_only;
}

static uint64_t
effective(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {0};

	if (syscall(SYS_capget, &h, d) < 0)
		return 0;
	return d[0].effective | (uint64_t)d[1].effective << 32;
}

static long
set_caps(uint64_t caps)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {
		{(uint32_t)caps, (uint32_t)caps, 0},
		{(uint32_t)(caps >> 32), (uint32_t)(caps >> 32), 0},
	};

	return syscall(SYS_capset, &h, d);
}

void
rnicd_priv_drop_thread(void)
{
	set_caps(0);
}

void
rnicd_priv_names(uint64_t caps, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < NUM_USES && n < size; i++)
		if (caps & CAP_BIT(uses[i].cap))
			n += (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? "," : "",
					      uses[i].name);
}

static bool
port_needs(const struct rnicd_port_conf *p, uint8_t cap)
{
	switch (p->kind) {
	case RNICD_PORT_AF_PACKET:
		return cap == CAP_NET_RAW;
	case RNICD_PORT_AF_XDP:
		return cap == CAP_NET_RAW || cap == CAP_NET_ADMIN;
	case RNICD_PORT_TAP:
		return cap == CAP_NET_ADMIN;
	default:
		return false;
	}
}

static bool
on_kernel(const struct rnicd_conf *c)
{
	for (uint32_t i = 0; i < c->num_ports; i++)
		if (port_needs(&c->port[i], CAP_NET_RAW) || port_needs(&c->port[i], CAP_NET_ADMIN))
			return true;
	return false;
}

static int
check_ports(const struct rnicd_conf *c, uint64_t have, struct rnicd_error *err)
{
	for (uint32_t i = 0; i < c->num_ports; i++)
		for (size_t u = 0; u < NUM_USES; u++) {
			if (!port_needs(&c->port[i], uses[u].cap) ||
			    (have & CAP_BIT(uses[u].cap)) != 0)
				continue;
			return rnicd_fail(err, "port '%s' (%s) needs the capability cap_%s: run "
					  "rnicd as root, or do: setcap "
					  "cap_net_admin,cap_net_raw+ep on the program",
					  c->port[i].name,
					  rnicd_port_kind_name(c->port[i].kind), uses[u].name);
		}
	return 0;
}

int
rnicd_priv_check(const struct rnicd_conf *c, struct rnicd_error *err)
{
	uint64_t have = effective();

	if (check_ports(c, have, err) < 0)
		return -1;
	if (c->user[0] != '\0' && geteuid() != 0)
		return rnicd_fail(err, "--user needs root");
	if (c->user[0] != '\0' && getpwnam(c->user) == NULL)
		return rnicd_fail(err, "--user: there is no user '%s'", c->user);
	for (size_t u = 0; u < NUM_USES; u++)
		if (is_needed(&uses[u], false) && (have & CAP_BIT(uses[u].cap)) == 0)
			RNICD_LOG(WARNING, "without cap_%s there is no %s", uses[u].name,
				  uses[u].without);
	return 0;
}

int
rnicd_priv_own(const struct rnicd_conf *c, const char *path, struct rnicd_error *err)
{
	const struct passwd *pw = c->user[0] != '\0' ? getpwnam(c->user) : NULL;

	if (pw != NULL && chown(path, pw->pw_uid, pw->pw_gid) < 0)
		return rnicd_fail(err, "chown %s to %s: %s", path, c->user, strerror(errno));
	return 0;
}

/* ---- all threads ---------- */

static _Atomic int acks;

static void
on_drop_signal(int sig)
{
	int saved = errno;

	(void)sig;
	set_caps(0);
	atomic_fetch_add(&acks, 1);
	errno = saved;
}

/* Signal each other thread. @return how many. */
static int
signal_threads(int sig)
{
	DIR *dir = opendir("/proc/self/task");
	pid_t me = (pid_t)syscall(SYS_gettid);
	struct dirent *de;
	int n = 0;

	while (dir != NULL && (de = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)atoi(de->d_name);

		if (tid > 0 && tid != me && syscall(SYS_tgkill, getpid(), tid, sig) == 0)
			n++;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

static int
drop_other_threads(struct rnicd_error *err)
{
	struct sigaction sa = {.sa_handler = on_drop_signal, .sa_flags = SA_RESTART}, old;
	const struct timespec ms = {.tv_nsec = 1000000};
	int sig = SIGRTMAX - 1, n;

	atomic_store(&acks, 0);
	sigemptyset(&sa.sa_mask);
	if (sigaction(sig, &sa, &old) < 0)
		return rnicd_fail(err, "sigaction: %s", strerror(errno));
	n = signal_threads(sig);
	for (int i = 0; i < 2000 && atomic_load(&acks) < n; i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
	sigaction(sig, &old, NULL);
	if (atomic_load(&acks) < n)
		return rnicd_fail(err, "%d of DPDK's %d threads keep their privileges",
				  n - atomic_load(&acks), n);
	return 0;
}

/* glibc changes the ids of all threads; only this one keeps capabilities over it. */
static int
change_user(const struct rnicd_conf *c, struct rnicd_error *err)
{
	const struct passwd *pw = getpwnam(c->user);

	if (pw == NULL)
		return rnicd_fail(err, "--user: there is no user '%s'", c->user);
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || initgroups(c->user, pw->pw_gid) < 0 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
		return rnicd_fail(err, "cannot become user '%s': %s", c->user, strerror(errno));
	return 0;
}

int
rnicd_priv_drop(struct rnicd *r, struct rnicd_error *err)
{
	uint64_t keep = 0, have = effective();
	bool kernel_ports = on_kernel(&r->conf);
	char names[256];

	for (size_t u = 0; u < NUM_USES; u++)
		if (is_needed(&uses[u], kernel_ports))
			keep |= CAP_BIT(uses[u].cap) & have;
	if (r->conf.user[0] != '\0' && change_user(&r->conf, err) < 0)
		return -1;
	if (drop_other_threads(err) < 0)
		return -1;
	if (set_caps(keep) < 0)
		return rnicd_fail(err, "capset: %s", strerror(errno));
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	r->kept_caps = keep;
	rnicd_priv_names(keep, names, sizeof(names));
	RNICD_LOG(INFO, "capabilities: %s", keep != 0 ? names : "none");
	return 0;
}
