/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mappings of objects that others can truncate, in a table without locks for the SIGBUS handler:
 * it puts zero pages where the access was and lets it go on. Not over the whole mapping, whose
 * size is the client's choice and whose tearing down would be the worker's time: whoever reads
 * on faults again, until the key is killed. Any other address is a fault of our own and ends the
 * process as before.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mapmem.h"

#define STEP MAPMEM_PAGE_MAX
#define WORDS (MAPMEM_GUARDS / 64)

struct guard {
	_Atomic uintptr_t addr; /* 0: free */
	_Atomic uint64_t len;
	_Atomic uint64_t step; /* a power of two, no less than a page of the mapping */
	_Atomic bool dead;
	_Atomic uint32_t next; /* of the dead, plus one */
	struct mapmem_deaths *_Atomic deaths;
	/* under the lock */
	void *const *owner;
	bool told;     /* its death was taken */
	bool released; /* deleted before that, which frees it */
};

static struct guard guards[MAPMEM_GUARDS];
static _Atomic uint32_t guards_used; /* none is in use from here on */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* not the handler's */
static uint64_t taken[WORDS];
static uint32_t first_word; /* all before it are full */
static struct sigaction before;

#define RESERVED 16
static _Atomic uintptr_t reserve[RESERVED]; /* STEP bytes each, or 0 */
static _Atomic bool reserve_short;

/* ---- the handler, on the thread that touched it ---------- */

static struct guard *
guard_of(uintptr_t addr)
{
	uint32_t n = atomic_load_explicit(&guards_used, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++) {
		struct guard *g = &guards[i];
		uintptr_t start = atomic_load_explicit(&g->addr, memory_order_acquire);

		if (start != 0 && addr >= start &&
			addr - start < atomic_load_explicit(&g->len, memory_order_relaxed))
			return g;
	}
	return NULL;
}

static void
died(struct guard *g)
{
	struct mapmem_deaths *d = atomic_load(&g->deaths);
	uint32_t first = atomic_load(&d->first);
	uint64_t one = 1;

	if (atomic_exchange(&g->dead, true))
		return;
	do
		atomic_store(&g->next, first);
	while (!atomic_compare_exchange_weak(&d->first, &first, (uint32_t)(g - guards) + 1));
	if (d->wake >= 0)
		(void)!write(d->wake, &one, sizeof(one));
}

/*
 * Zero pages of a reserve. Linux ignores MAP_NORESERVE with vm.overcommit_memory=2: at the commit
 * limit there are no new ones to be had then. These are committed, not present, and moving them
 * costs nothing. The control thread makes new ones.
 */
static bool
zero_reserved(uintptr_t start, uintptr_t end)
{
	for (int i = 0; i < RESERVED && end - start <= STEP; i++) {
		uintptr_t p = atomic_exchange(&reserve[i], 0);

		if (p == 0)
			continue;
		atomic_store(&reserve_short, true);
		if (end - start < STEP)
			munmap((void *)(p + (end - start)), STEP - (end - start));
		return mremap((void *)p, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED,
			       (void *)start) != MAP_FAILED;
	}
	return false;
}

static bool
zero(uintptr_t start, uintptr_t end)
{
	return mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
		       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		       0) != MAP_FAILED;
}

/*
 * Each piece splits a mapping of the kernel's, of which there may be no more to be had: then the
 * whole, which takes none.
 */
static bool
stand_in(const struct guard *g, uintptr_t addr)
{
	uintptr_t start = atomic_load(&g->addr), end = start + atomic_load(&g->len);
	uint64_t step = atomic_load(&g->step);
	uintptr_t from = addr & ~(step - 1), to = from + step;

	from = from > start ? from : start;
	to = to < end ? to : end;
	return zero(from, to) || zero(start, end) || zero_reserved(from, to);
}

static void
handler(int sig, siginfo_t *info, void *context)
{
	struct guard *g = guard_of((uintptr_t)info->si_addr);
	int err = errno;

	(void)context;
	if (g != NULL && stand_in(g, (uintptr_t)info->si_addr))
		died(g);
	else
		sigaction(sig, &before, NULL); /* the access faults again, and is not ours */
	errno = err;
}

/* What of it was used. On the control thread. */
static void
reserve_fill(void)
{
	bool left = false;

	pthread_mutex_lock(&lock);
	atomic_store(&reserve_short, false);
	for (int i = 0; i < RESERVED && !left; i++) {
		void *p;

		if (atomic_load(&reserve[i]) != 0)
			continue;
		p = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		left = p == MAP_FAILED; /* at the limit still: at another turn */
		if (!left)
			atomic_store(&reserve[i], (uintptr_t)p);
	}
	if (left)
		atomic_store(&reserve_short, true);
	pthread_mutex_unlock(&lock);
}

int
mapmem_sigbus_install(void)
{
	static _Atomic bool installed;
	struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_NODEFER};

	if (atomic_exchange(&installed, true))
		return 0;
	reserve_fill();
	sa.sa_sigaction = handler;
	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, &before) < 0 ? -errno : 0;
}

/* ---- the table ---------- */

/* The lowest that is free, so that the handler has few to look at. */
static int
slot_take(void)
{
	uint32_t i;

	while (first_word < WORDS && taken[first_word] == UINT64_MAX)
		first_word++;
	if (first_word == WORDS)
		return -ENOMEM;
	i = first_word * 64 + (uint32_t)__builtin_ctzll(~taken[first_word]);
	taken[i / 64] |= UINT64_C(1) << i % 64;
	if (i >= atomic_load(&guards_used))
		atomic_store_explicit(&guards_used, i + 1, memory_order_release);
	return (int)i;
}

static void
slot_free(uint32_t i)
{
	uint32_t used = atomic_load(&guards_used);

	taken[i / 64] &= ~(UINT64_C(1) << i % 64);
	if (i / 64 < first_word)
		first_word = i / 64;
	while (used > 0 && !(taken[(used - 1) / 64] >> (used - 1) % 64 & 1))
		used--;
	atomic_store(&guards_used, used);
}

int
mapmem_guard_add(void *addr, uint64_t len, uint64_t page, void *const *owner,
	struct mapmem_deaths *deaths)
{
	int i;

	pthread_mutex_lock(&lock);
	i = slot_take();
	if (i >= 0) {
		struct guard *g = &guards[i];

		atomic_store(&g->dead, false);
		g->owner = owner;
		g->told = g->released = false;
		atomic_store(&g->deaths, deaths);
		atomic_store(&g->len, len);
		atomic_store(&g->step, page > STEP ? page : STEP);
		atomic_store_explicit(&g->addr, (uintptr_t)addr, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return i;
}

void
mapmem_guard_del(int i)
{
	struct guard *g = &guards[i];

	pthread_mutex_lock(&lock);
	atomic_store_explicit(&g->addr, 0, memory_order_release);
	/* On the list of the dead it stays until it is taken off there. */
	if (atomic_load(&g->dead) && !g->told)
		g->released = true;
	else
		slot_free((uint32_t)i);
	pthread_mutex_unlock(&lock);
}

/* @return its owner, or NULL: it has none any more, or none yet. */
static void *
death_take(struct guard *g, uint32_t *next)
{
	void *owner = NULL;

	pthread_mutex_lock(&lock);
	*next = atomic_load(&g->next);
	g->told = true;
	if (g->released)
		slot_free((uint32_t)(g - guards));
	else
		owner = *g->owner;
	pthread_mutex_unlock(&lock);
	return owner;
}

void
mapmem_deaths_take(struct mapmem_deaths *d, void (*died_fn)(void *arg, void *owner), void *arg)
{
	uint32_t i = atomic_load_explicit(&d->first, memory_order_relaxed) != 0
		? atomic_exchange(&d->first, 0)
		: 0;

	if (atomic_load_explicit(&reserve_short, memory_order_relaxed))
		reserve_fill();
	while (i != 0) {
		void *owner = death_take(&guards[i - 1], &i);

		if (owner != NULL)
			died_fn(arg, owner);
	}
}
