/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks through registered memory that is no arena: files that shrink, mappings that change. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"

static struct hx_rig rig;

#define SIZE (1u << 20)

static int
make_file(size_t size, unsigned int flags)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | flags);

	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Our own touches of what we cut off. */
static void
ignore_sigbus(void)
{
	signal(SIGBUS, SIG_IGN); /* a real fault kills all the same: then that is the attack */
}

/* Use an MR at `addr` on both sides, both directions; what comes of it is not our concern. */
static void
use(struct hostile *t, const void *addr, uint32_t key, int n)
{
	for (int i = 0; i < n; i++) {
		struct hx_qp *q = &rig.qp[i & 1];
		uint64_t at = (uintptr_t)addr + hostile_below(t, SIZE / 2);
		struct ring_wqe w = hx_write(&rig, 0, 65536, hostile_below(t, 60000));
		struct ring_cqe c;

		switch (hostile_below(t, 4)) {
		case 0: /* gathered from */
			w.sge[0].addr = at;
			w.sge[0].lkey = key;
			break;
		case 1: /* scattered into */
			w.opcode = RING_WR_RDMA_READ;
			w.sge[0].addr = at;
			w.sge[0].lkey = key;
			break;
		case 2: /* written by the peer */
			w.remote_addr = at;
			w.rkey = key;
			break;
		default: /* read by the peer */
			w.opcode = RING_WR_RDMA_READ;
			w.remote_addr = at;
			w.rkey = key;
			break;
		}
		hx_post(&rig, q, &w);
		if (i % 8 == 7)
			while (!hx_poll_wait(&rig.h, &rig.cq, &c, 2))
				;
	}
}

static bool
registered(struct hostile *t, const void *addr, size_t size, uint32_t *key)
{
	int ret = hx_reg_mr(&rig.h, rig.pd, addr, size, 0xf, key, NULL);

	MUST(t, ret != -ETIMEDOUT, "REG_MR: no answer");
	if (ret && t->verbose)
		printf("  REG_MR: %s\n", strerror(-ret));
	return !ret;
}

/* A mapped object cut, grown and punched under traffic (SIGBUS in the daemon). */
static void
mem_truncate(struct hostile *t)
{
	ignore_sigbus();
	for (int i = 0; i < 8; i++) {
		int fd = make_file(SIZE, 0);
		void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		uint32_t key;

		if (fd < 0 || p == MAP_FAILED || !hostile_rig(t, &rig))
			return;
		if (!registered(t, p, SIZE, &key)) {
			FAULT(t, "a memfd cannot be registered");
			return;
		}
		use(t, p, key, 16);
		if (ftruncate(fd, hostile_below(t, 2) ? 0 : hostile_below(t, SIZE)))
			return;
		use(t, p, key, 24);
		if (hostile_below(t, 2) && ftruncate(fd, SIZE))
			return;
		if (hostile_below(t, 2))
			fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE);
		use(t, p, key, 8);
		hostile_alive(t, &rig.h);
		if (hostile_below(t, 2))
			hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, key);
		hx_rig_close(&rig);
		munmap(p, SIZE);
		close(fd);
	}
}

static int truncate_fd;

static void *
truncater(void *arg)
{
	struct hostile *t = arg;

	for (;;) {
		if (ftruncate(truncate_fd, hostile_below(t, SIZE)) ||
		    ftruncate(truncate_fd, SIZE))
			break;
		pthread_testcancel();
	}
	return NULL;
}

/* Cut and grown all the time, with REG_MR and traffic meanwhile. */
static void
mem_truncate_race(struct hostile *t)
{
	struct hostile other = *t;
	pthread_t thread;
	void *p;

	ignore_sigbus();
	truncate_fd = make_file(SIZE, 0);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, truncate_fd, 0);
	if (p == MAP_FAILED || !hostile_rig(t, &rig))
		return;
	other.rng ^= 0x77;
	pthread_create(&thread, NULL, truncater, &other);
	for (int i = 0; i < 12; i++) {
		uint32_t key;

		if (!registered(t, p, SIZE, &key))
			continue;
		use(t, p, key, 16);
		if (i & 1)
			hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, key);
	}
	hostile_alive(t, &rig.h);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

/* A file that the client may only read: no registration makes it writable (design, 2.3). */
static void
mem_readonly(struct hostile *t)
{
	int rw = make_file(SIZE, 0), ro;
	char path[64];
	uint32_t key;
	char *p, *mine;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", rw);
	ro = open(path, O_RDONLY);
	mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, rw, 0);
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, ro, 0);
	if (p == MAP_FAILED || mine == MAP_FAILED || !hostile_rig(t, &rig))
		return;
	memset(mine, 0x33, SIZE);
	for (uint32_t access = 1; access < 16; access++) {
		struct ring_wqe w = hx_write(&rig, 0, 65536, 4096);

		if (hx_reg_mr(&rig.h, rig.pd, p, SIZE, access, &key, NULL))
			continue;
		MUST(t, !(access & (RING_ACCESS_LOCAL_WRITE | RING_ACCESS_REMOTE_WRITE |
				    RING_ACCESS_REMOTE_ATOMIC)),
		     "a file opened for reading can be registered with access %#x", access);
		w.remote_addr = (uintptr_t)p;
		w.rkey = key;
		hx_post(&rig, &rig.qp[access & 1], &w);
		hx_pass(&rig.h, 5);
		hx_rig_close(&rig);
		if (!hostile_rig(t, &rig))
			return;
	}
	for (uint32_t i = 0; i < SIZE; i++) {
		if (mine[i] != 0x33) {
			FAULT(t, "byte %u of a file that the client may only read has changed", i);
			break;
		}
	}
}

/* Sealed against writing after the registration, or before. */
static void
mem_sealed(struct hostile *t)
{
	static const int seals[] = {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, F_SEAL_SHRINK, F_SEAL_SEAL};

	for (size_t i = 0; i < 8; i++) {
		int fd = make_file(SIZE, MFD_ALLOW_SEALING);
		uint32_t key;
		void *p;

		if (!hostile_rig(t, &rig))
			return;
		if (i & 1)
			fcntl(fd, F_ADD_SEALS, seals[i / 2]);
		p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED && registered(t, p, SIZE, &key)) {
			fcntl(fd, F_ADD_SEALS, seals[i / 2]);
			use(t, p, key, 8);
		}
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
		close(fd);
	}
}

/* What lies at a registered address becomes something else. */
static void
mem_swap(struct hostile *t)
{
	for (int i = 0; i < 10; i++) {
		bool shared = hostile_below(t, 2);
		int fd = make_file(SIZE, 0);
		void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			       shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
			       shared ? fd : -1, 0);
		uint32_t key;

		if (p == MAP_FAILED || !hostile_rig(t, &rig))
			return;
		if (!registered(t, p, SIZE, &key)) {
			FAULT(t, "%s memory cannot be registered", shared ? "shared" : "private");
			return;
		}
		use(t, p, key, 8);
		switch (hostile_below(t, 5)) {
		case 0: munmap(p, SIZE); break;
		case 1: mprotect(p, SIZE, PROT_NONE); break;
		case 2: mprotect(p, SIZE, PROT_READ); break;
		case 3:
			if (mmap(p, SIZE, PROT_READ, MAP_PRIVATE | MAP_FIXED,
				 open("/proc/self/exe", O_RDONLY | O_CLOEXEC), 0) == MAP_FAILED)
				munmap(p, SIZE);
			break;
		default: madvise(p, SIZE, MADV_DONTNEED); break;
		}
		use(t, p, key, 16);
		hostile_alive(t, &rig.h);
		hx_rig_close(&rig);
		munmap(p, SIZE);
		close(fd);
	}
}

static void *
mapper(void *arg)
{
	struct hostile *t = ((void **)arg)[0];
	uint8_t *p = ((void **)arg)[1];
	int fd = make_file(SIZE, 0);

	for (;;) {
		uint32_t at = hostile_below(t, SIZE / 4096) * 4096;

		switch (hostile_below(t, 4)) {
		case 0: munmap(p + at, 4096); break;
		case 1:
			mmap(p + at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			     (off_t)at);
			break;
		default:
			mmap(p + at, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
		}
		pthread_testcancel();
	}
	return NULL;
}

/* Registering while another thread changes the address space. */
static void
mem_maps_race(struct hostile *t)
{
	struct hostile other = *t;
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *args[2] = {&other, p};
	uint64_t end = hx_now_ms() + 1500;
	pthread_t thread;

	ignore_sigbus();
	if (p == MAP_FAILED || !hostile_rig(t, &rig))
		return;
	other.rng ^= 0x99;
	pthread_create(&thread, NULL, mapper, args);
	while (hx_now_ms() < end) {
		uint32_t key;

		if (!registered(t, p, SIZE, &key))
			continue;
		use(t, p, key, 4);
		hx_handle_call(&rig.h, RING_CTRL_DEREG_MR, key);
		if (rig.h.sock < 0)
			break;
	}
	hostile_alive(t, &rig.h);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

/* One region over thousands of mappings. */
static void
mem_many_maps(struct hostile *t)
{
	size_t pages = 8000;
	uint8_t *p = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = make_file(pages * 4096, 0);
	uint32_t key, how = 0;

	if (p == MAP_FAILED || !hostile_rig(t, &rig))
		return;
	for (size_t i = 0; i < pages; i += 2)
		if (mmap(p + i * 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 (off_t)(pages - i - 1) * 4096) == MAP_FAILED)
			break;
	for (int i = 0; i < 2; i++) {
		int ret = hx_reg_mr(&rig.h, rig.pd, p, pages * 4096, 0xf, &key, &how);

		MUST(t, ret != -ETIMEDOUT, "REG_MR over %zu mappings: no answer", pages);
		if (!ret)
			use(t, p, key, 16);
	}
	hostile_alive(t, &rig.h);
}

/* Mappings of all kinds that a process has or can make. */
static void
mem_special(struct hostile *t)
{
	FILE *maps;
	char line[512];

	if (!hostile_rig(t, &rig))
		return;
	mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, open("/dev/zero", O_RDWR), 0);
	mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	mmap(NULL, 1ul << 40, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mmap(NULL, 4096, PROT_READ, MAP_SHARED, open("/dev/mem", O_RDONLY), 0);
	mmap(NULL, 4096, PROT_READ, MAP_SHARED, open("/etc/passwd", O_RDONLY), 0);
	maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		uint32_t key;

		if (sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		for (uint32_t access = 0; access < 2; access++) {
			/* reading any of them is fine; writing one's own stack is not: skip it */
			if (hx_reg_mr(&rig.h, rig.pd, (void *)from, to - from, access * 0xf,
				      &key, NULL))
				continue;
			if (access == 0) {
				struct ring_wqe w = hx_write(&rig, 0, 65536, 64);
				struct ring_cqe c;

				w.sge[0].addr = from;
				w.sge[0].lkey = key;
				hx_post(&rig, &rig.qp[0], &w);
				hx_poll_wait(&rig.h, &rig.cq, &c, 200);
			}
		}
		if (hx_query_state(&rig.h, rig.qp[0].qpn) != RING_QPS_RTS) {
			hx_rig_close(&rig);
			if (!hostile_rig(t, &rig))
				break;
		}
	}
	if (maps)
		fclose(maps);
	hostile_alive(t, &rig.h);
}

/* Rings registered as memory, and overwritten by one's own work requests. */
static void
mem_own_rings(struct hostile *t)
{
	struct hx_arena *a = NULL;
	uint32_t key;

	if (!hostile_rig(t, &rig))
		return;
	for (uint32_t n = 0; n < HX_ARENAS; n++) {
		a = &rig.h.arena[n];
		if (!a->base || a->kind != RING_ARENA_C ||
		    hx_reg_mr(&rig.h, rig.pd, a->base, a->size, 0xf, &key, NULL))
			continue;
		for (int i = 0; i < 60; i++) {
			uint64_t off = hostile_rand(t) % (a->size - 4096);
			struct ring_wqe w = hx_write(&rig, 0, 0, 4096);

			for (int k = 0; k < 512; k++) {
				uint64_t v = hostile_value(t);

				memcpy(rig.mem + k * 8, &v, 8);
			}
			w.remote_addr = (uintptr_t)a->base +
					(hostile_below(t, 2) ? off : off % 65536);
			w.rkey = key;
			hx_post(&rig, &rig.qp[i & 1], &w);
		}
		hx_pass(&rig.h, 20);
	}
	hostile_alive(t, &rig.h);
}

/* Death with registrations and their replacements half way. */
static void
mem_reg_die(struct hostile *t)
{
	uint8_t *p = mmap(NULL, 16 * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			  0);

	for (int i = 0; i < 12 && p != MAP_FAILED; i++) {
		uint32_t key;

		if (!hostile_rig(t, &rig) || !registered(t, p, 4096, &key))
			return;
		for (uint32_t k = 0; k < 8; k++) {
			struct ring_ctrl_reg_mr_req reg = {
				.addr = (uintptr_t)p,
				.length = 16 * SIZE - k * 4096,
				.access = 0xf,
				.pd = rig.pd,
			};
			struct ring_ctrl_rereg_mr_req again = {
				.lkey = key,
				.what = RING_REREG_TRANSLATION,
				.addr = (uintptr_t)p,
				.length = 8 * SIZE,
			};

			if (hx_request(&rig.h, RING_CTRL_REG_MR, 1, &reg, NULL) ||
			    hx_request(&rig.h, RING_CTRL_REREG_MR, 1, &again, NULL))
				break;
		}
		if (hostile_below(t, 2))
			hx_handle_call(&rig.h, RING_CTRL_DEALLOC_PD, rig.pd);
		hx_rig_close(&rig); /* at once: the helper has hardly begun */
	}
}

const struct hostile_case hostile_mem_cases[] = {
	{"mem_truncate", mem_truncate, "files cut under their registration", false},
	{"mem_truncate_race", mem_truncate_race, "files cut all the time", false},
	{"mem_readonly", mem_readonly, "files that may only be read", false},
	{"mem_sealed", mem_sealed, "files sealed against writing", false},
	{"mem_swap", mem_swap, "other mappings at a registered address", false},
	{"mem_maps_race", mem_maps_race, "mappings that change during registration", false},
	{"mem_many_maps", mem_many_maps, "one region over thousands of mappings", false},
	{"mem_special", mem_special, "every kind of mapping registered", false},
	{"mem_reg_die", mem_reg_die, "death with registrations half way", false},
	{"mem_own_rings", mem_own_rings, "rings overwritten by RDMA", false},
	{NULL, NULL, NULL, false},
};
