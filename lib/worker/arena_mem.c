/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of an arena: see arena_mem.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena_mem.h"
#include "base_log.h"

LOG_TYPE_DECLARE(ctl_log);

static _Atomic bool unlocked_told; /* once a process */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif

#define HUGE_PAGE (UINT64_C(2) << 20)
/* A first touch costs 10 us a page: a step is some milliseconds, so that one client's large
 * arena does not keep others waiting. */
#define STEP (UINT64_C(4) << 20)
#define UNMAP_STEP (UINT64_C(64) << 20) /* a multiple of HUGE_PAGE */
#define SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int
mem_try(struct arena_mem *m, uint64_t size, uint64_t page, unsigned int flags)
{
	int err;

	m->page_size = (uint32_t)page;
	m->populated = 0;
	m->size = (size + page - 1) & ~(page - 1);
	m->fd = memfd_create("rnic-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	if (m->fd < 0)
		return -errno;
	if (ftruncate(m->fd, (off_t)m->size) < 0)
		goto fail;
	m->map = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (m->map == MAP_FAILED)
		goto fail;
	/* A fork of the daemon (system(), a crash handler) must not share it. */
	(void)madvise(m->map, m->size, MADV_DONTFORK);
	return 0;
fail:
	err = -errno;
	close(m->fd);
	m->fd = -1;
	m->map = NULL;
	return err;
}

int
arena_mem_create(struct arena_mem *m, uint64_t size, bool huge)
{
	if (huge && size >= HUGE_PAGE &&
		mem_try(m, size, HUGE_PAGE, MFD_HUGETLB | MFD_HUGE_2MB) == 0)
		return 0;
	return mem_try(m, size, (uint64_t)sysconf(_SC_PAGESIZE), 0);
}

int
arena_mem_populate(struct arena_mem *m)
{
	uint64_t n = m->size - m->populated < STEP ? m->size - m->populated : STEP;

	if (n == 0)
		return 0;
	if (madvise(m->map + m->populated, n, MADV_POPULATE_WRITE) < 0)
		return errno == EFAULT ? -ENOMEM : -errno;
	/* Without the right to lock it stays swappable: slower at worst, not wrong. */
	if (mlock(m->map + m->populated, n) < 0 && !atomic_exchange(&unlocked_told, true))
		LOG(ctl_log, WARNING,
			"arenas cannot be locked in memory (%s): workers wait for what is swapped "
			"out; see RLIMIT_MEMLOCK and CAP_IPC_LOCK",
			strerror(errno));
	m->populated += n;
	return m->populated < m->size;
}

int
arena_mem_seal(struct arena_mem *m)
{
	struct stat st;
	int have;

	if (fcntl(m->fd, F_ADD_SEALS, SEALS) < 0)
		return -EPERM;
	have = fcntl(m->fd, F_GET_SEALS);
	if (have < 0 || (have & SEALS) != SEALS)
		return -EPERM;
	if (fstat(m->fd, &st) < 0 || (uint64_t)st.st_size != m->size)
		return -EPERM;
	m->populated = 0; /* holes may have been made before: populate once more */
	return 0;
}

void
arena_mem_close_fd(struct arena_mem *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

bool
arena_mem_unmap(struct arena_mem *m)
{
	uint64_t n = m->size < UNMAP_STEP ? m->size : UNMAP_STEP;

	if (m->map != NULL && n != 0)
		munmap(m->map + m->size - n, n);
	m->size -= n;
	if (m->size == 0)
		m->map = NULL;
	return m->size != 0;
}

void
arena_mem_destroy(struct arena_mem *m)
{
	arena_mem_close_fd(m);
	if (m->map != NULL)
		munmap(m->map, m->size);
	m->map = NULL;
}
