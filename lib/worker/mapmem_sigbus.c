/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mappings of objects that others can truncate, in a table without locks for the SIGBUS handler:
 * it puts zero pages over the whole mapping and lets the access go on. Any other address is a
 * fault of our own and ends the process as before.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mapmem.h"

struct guard {
	_Atomic uintptr_t addr; /* 0: free; 1: being written */
	_Atomic uint64_t len;
	_Atomic bool dead;
	_Atomic int wake; /* eventfd, or -1 */
};

static struct guard guards[MAPMEM_GUARDS];
static _Atomic uint32_t guards_used; /* none is in use from here on */
static _Atomic uint32_t deaths;
static struct sigaction before;

static struct guard *
guard_of(uintptr_t addr)
{
	uint32_t n = atomic_load_explicit(&guards_used, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++) {
		struct guard *g = &guards[i];
		uintptr_t start = atomic_load_explicit(&g->addr, memory_order_acquire);

		if (start > 1 && addr >= start &&
			addr - start < atomic_load_explicit(&g->len, memory_order_relaxed))
			return g;
	}
	return NULL;
}

/* On the thread that has touched it. */
static void
died(struct guard *g)
{
	uint64_t one = 1;
	int fd = atomic_load(&g->wake);

	atomic_store(&g->dead, true);
	atomic_fetch_add(&deaths, 1);
	if (fd >= 0)
		(void)!write(fd, &one, sizeof(one));
}

static void
handler(int sig, siginfo_t *info, void *context)
{
	struct guard *g = guard_of((uintptr_t)info->si_addr);
	int err = errno;
	void *p = MAP_FAILED;

	(void)context;
	if (g != NULL)
		p = mmap((void *)atomic_load(&g->addr), atomic_load(&g->len),
			PROT_READ | PROT_WRITE,
			MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		sigaction(sig, &before, NULL); /* the access faults again, and is not ours */
	else
		died(g);
	errno = err;
}

int
mapmem_sigbus_install(void)
{
	static _Atomic bool installed;
	struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_NODEFER};

	if (atomic_exchange(&installed, true))
		return 0;
	sa.sa_sigaction = handler;
	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, &before) < 0 ? -errno : 0;
}

int
mapmem_guard_add(void *addr, uint64_t len, int wake)
{
	for (uint32_t i = 0; i < MAPMEM_GUARDS; i++) {
		struct guard *g = &guards[i];
		uintptr_t none = 0;
		uint32_t used;

		if (!atomic_compare_exchange_strong(&g->addr, &none, 1))
			continue;
		atomic_store(&g->dead, false);
		atomic_store(&g->wake, wake);
		atomic_store(&g->len, len);
		atomic_store_explicit(&g->addr, (uintptr_t)addr, memory_order_release);
		used = atomic_load(&guards_used);
		while (used < i + 1 && !atomic_compare_exchange_weak(&guards_used, &used, i + 1))
			;
		return 0;
	}
	return -ENOMEM;
}

bool
mapmem_guard_dead(const void *addr)
{
	struct guard *g = guard_of((uintptr_t)addr);

	return g != NULL && atomic_load(&g->dead);
}

void
mapmem_guard_del(void *addr)
{
	struct guard *g = guard_of((uintptr_t)addr);

	if (g != NULL)
		atomic_store_explicit(&g->addr, 0, memory_order_release);
}

uint32_t
mapmem_deaths(void)
{
	return atomic_load(&deaths);
}
