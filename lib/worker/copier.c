/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane: one thread, the memory of its client process (copier_mem.c), a ring of accesses, and
 * messages to send them back with. A client can keep a call waiting for as long as it likes
 * (userfaultfd, FUSE). Then its context is killed: what is queued fails, and the access that
 * hangs is given back as failed too; its thread ends when the call returns, and frees the lane.
 * So everything goes through the lane's own buffer: what is read late must not land in a packet
 * that is reused, and what is written late must not come from one.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_debug.h>
#include <rte_ring.h>

#include "copier.h"
#include "copier_mem.h"
#include "ctl_priv.h"

#define BOUNCE (256u << 10)
#define IOS_WORKER 512 /* no worker has more accesses under way */

/*
 * Who gives the present access back: the thread, or who kills the lane. Only what is in a call can
 * be taken from the thread: there it touches nothing but the lane's own buffer.
 */
enum lane_state {
	LANE_IDLE,
	LANE_BUSY, /* between a ring and the call: soon over, whatever the client does */
	LANE_CALL,
	LANE_ABANDONED, /* by whom has killed it; the thread only ends */
};

struct copier_msg {
	struct worker_msg m; /* first */
	struct copier_lane *lane;
	uint64_t since; /* ns; submitted */
};

struct copier_req {
	struct verbs_io *io;
	uint32_t worker;
};

struct copier_lane {
	struct worker_shared *s;
	pthread_t thread;
	struct copier_who who;
	int mem;  /* of the process */
	int wake; /* eventfd */
	struct ring_sleep sleep;
	_Atomic bool stop, killed;
	_Atomic bool ended;	   /* the thread needs nothing of the device any more */
	_Atomic uint32_t state;	   /* enum lane_state */
	_Atomic uint64_t since;	   /* ns; when the present access, the oldest, was submitted */
	_Atomic uint32_t refs;	   /* the thread, the client */
	sem_t ready;		   /* the thread has its rights, or has failed: */
	int failed;		   /* -errno */
	struct copier_lane *next_ending;
	struct ctl_user *user;	   /* charged with it, since it was put while its call hung */
	struct copier_req current; /* of the access under way */
	struct rte_ring *todo;	   /* struct copier_msg *, many producers: io and worker inside */
	struct rte_ring *free;	   /* struct copier_msg * */
	struct copier_msg *msgs;
	uint8_t *bounce;
};

/* ---- one access ---------- */

/* Bytes of all pieces, or 0 when they are more than a lane's buffer holds. */
static size_t
io_bytes(const struct verbs_io *io)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < io->num; i++)
		total += io->piece[i].len;
	return total <= BOUNCE ? (size_t)total : 0;
}

/* Between the buffer and the pieces; those that are neighbours there in one call. */
static int
io_move(const struct copier_lane *l, const struct verbs_io *io, bool write)
{
	uint8_t *at = l->bounce;
	unsigned int next;

	for (unsigned int i = 0; i < io->num; i = next) {
		uint64_t remote = io->piece[i].remote, len = io->piece[i].len;
		int err;

		for (next = i + 1; next < io->num && io->piece[next].remote == remote + len; next++)
			len += io->piece[next].len;
		err = write ? copier_mem_write(l->mem, remote, at, len)
			    : copier_mem_read(l->mem, remote, at, len);
		if (err < 0)
			return err;
		at += len;
	}
	return 0;
}

/* @return false: the lane was killed. */
static bool
call_begin(struct copier_lane *l)
{
	atomic_store(&l->state, LANE_CALL);
	return !atomic_load(&l->killed);
}

/* @return false: it took too long, and was given back by another meanwhile. */
static bool
call_end(struct copier_lane *l)
{
	uint32_t call = LANE_CALL;

	return atomic_compare_exchange_strong(&l->state, &call, LANE_BUSY);
}

/* A key that was invalidated since the packet was accepted is not written through any more. */
static bool
still_valid(const struct verbs_io *io)
{
	for (unsigned int i = 0; i < io->num; i++) {
		struct mr_ref ref = {.mr = io->piece[i].mr};

		if (ref.mr != NULL && !mr_still_valid(&ref, io->piece[i].key))
			return false;
	}
	return true;
}

/* Before the call: whether it may be, and what is to be written, from where it lies now. */
static int
lane_prepare(const struct copier_lane *l, const struct verbs_io *io)
{
	uint8_t *at = l->bounce;

	if (io->op == VERBS_IO_CMP_SWAP || io->op == VERBS_IO_FETCH_ADD)
		return io->num == 1 && io->piece[0].len == 8 && still_valid(io) ? 0 : -EACCES;
	if (io_bytes(io) == 0)
		return -EMSGSIZE;
	if (io->op != VERBS_IO_WRITE)
		return 0;
	if (!still_valid(io))
		return -EACCES;
	for (unsigned int i = 0; i < io->num; i++) {
		memcpy(at, io->piece[i].local, io->piece[i].len);
		at += io->piece[i].len;
	}
	return 0;
}

/* Atomic with the lane's other accesses, and with nothing else: ATOMIC_HCA. */
static int
lane_atomic(const struct copier_lane *l, const struct verbs_io *io, uint64_t *original)
{
	uint64_t remote = io->piece[0].remote, old, new;
	int err;

	err = copier_mem_read(l->mem, remote, &old, 8);
	if (err < 0)
		return err;
	*original = old;
	if (io->op == VERBS_IO_FETCH_ADD)
		new = old + io->compare_add;
	else if (old == io->compare_add)
		new = io->swap;
	else
		return 0;
	return copier_mem_write(l->mem, remote, &new, 8);
}

static int
lane_call(const struct copier_lane *l, const struct verbs_io *io, uint64_t *original)
{
	switch ((enum verbs_io_op)io->op) {
	case VERBS_IO_READ:
	case VERBS_IO_WRITE:
		return io_move(l, io, io->op == VERBS_IO_WRITE);
	case VERBS_IO_CMP_SWAP:
	case VERBS_IO_FETCH_ADD:
		return lane_atomic(l, io, original);
	}
	return -EINVAL;
}

/* @return false: given back by another. */
static bool
lane_do(struct copier_lane *l, const struct verbs_io *io, int *status, uint64_t *original)
{
	*status = lane_prepare(l, io);
	if (*status < 0)
		return true;
	*status = call_begin(l) ? lane_call(l, io, original) : -ESRCH;
	return call_end(l);
}

/* ---- giving back ---------- */

/* On a worker. */
static void
msg_done(struct worker_msg *m)
{
	struct copier_msg *c = (struct copier_msg *)m;

	rte_ring_enqueue(c->lane->free, c); /* has room for all of them */
}

static struct worker_msg *
msg_back(struct copier_msg *c)
{
	c->m.type = WORKER_MSG_IO_DONE;
	c->m.reply = false;
	c->m.done = msg_done;
	return &c->m;
}

/* On the lane's thread. */
static void
give_back(struct copier_msg *c, uint32_t worker)
{
	struct worker_msg *m = msg_back(c);

	while (!worker_send(c->lane->s->worker[worker], m))
		sched_yield(); /* its mailbox is full, and it is emptying it */
}

/* On the control thread, which waits for no mailbox. */
static void
give_back_failed(struct copier_msg *c, struct verbs_io *io, uint32_t worker, int status)
{
	struct worker_device *d = container_of(c->lane->s, struct worker_device, sh);

	io->status = status;
	c->m.io = io;
	ctl_msg_post(d, worker, msg_back(c));
}

static void
io_fill(struct copier_lane *l, struct verbs_io *io, int status, uint64_t original)
{
	const uint8_t *from = l->bounce;

	io->status = status;
	io->original = original;
	if (status < 0 || io->op != VERBS_IO_READ)
		return;
	for (unsigned int i = 0; i < io->num; i++) {
		memcpy(io->piece[i].local, from, io->piece[i].len);
		from += io->piece[i].len;
	}
}

/* ---- the thread ---------- */

static void
lane_free(struct copier_lane *l)
{
	if (atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	if (l->wake >= 0)
		close(l->wake);
	if (l->mem >= 0)
		close(l->mem);
	free(l->todo);
	free(l->free);
	free(l->msgs);
	free(l->bounce);
	sem_destroy(&l->ready);
	free(l);
}

/* What a lane needs of it, and no more: the rest is the worker's, which writes it meanwhile. */
static void
io_copy(struct verbs_io *to, const struct verbs_io *from)
{
	to->op = from->op;
	to->num = from->num;
	to->compare_add = from->compare_add;
	to->swap = from->swap;
	memcpy(to->piece, from->piece, sizeof(to->piece));
}

static void
lane_take(struct copier_lane *l, const struct copier_msg *c, struct verbs_io *copy)
{
	io_copy(copy, c->m.io); /* the original may be gone when a call has hung */
	l->current = (struct copier_req){c->m.io, (uint32_t)c->m.cookie};
	atomic_store(&l->since, c->since);
	atomic_store(&l->state, LANE_BUSY);
}

/* @return false: the access was given back by another meanwhile, and the lane is at its end. */
static bool
lane_serve(struct copier_lane *l, struct copier_msg *c)
{
	uint32_t worker = (uint32_t)c->m.cookie;
	struct verbs_io copy;
	uint64_t original = 0;
	int status;

	lane_take(l, c, &copy);
	if (!lane_do(l, &copy, &status, &original))
		return false;
	io_fill(l, c->m.io, status, original);
	give_back(c, worker);
	atomic_store(&l->state, LANE_IDLE);
	return true;
}

static void
lane_sleep(struct copier_lane *l)
{
	eventfd_t n;

	ring_sleep_enter(&l->sleep);
	if (rte_ring_empty(l->todo) && !atomic_load(&l->stop))
		(void)eventfd_read(l->wake, &n);
	ring_sleep_leave(&l->sleep);
}

static void *
lane_main(void *arg)
{
	struct copier_lane *l = arg;
	struct copier_msg *c;
	bool ok;

	l->mem = copier_mem_open(&l->who);
	ok = l->mem >= 0;
	l->failed = ok ? 0 : l->mem;
	sem_post(&l->ready);
	while (ok) {
		if (rte_ring_dequeue(l->todo, (void **)&c) == 0) {
			if (!lane_serve(l, c))
				break;
		} else if (atomic_load(&l->stop)) {
			break;
		} else {
			lane_sleep(l);
		}
	}
	atomic_store(&l->ended, true);
	lane_free(l);
	return NULL;
}

/* ---- control thread ---------- */

static struct rte_ring *
ring_new(uint32_t count, unsigned int flags)
{
	struct rte_ring *r = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN_CEIL((size_t)rte_ring_get_memsize(count), (size_t)RTE_CACHE_LINE_SIZE));

	if (r != NULL && rte_ring_init(r, "copier", count, flags) != 0) {
		free(r);
		r = NULL;
	}
	return r;
}

static int
lane_memory(struct copier_lane *l)
{
	uint32_t n = 2 * l->s->num_workers * IOS_WORKER;

	l->todo = ring_new(rte_align32pow2(n + 1), 0);
	l->free = ring_new(rte_align32pow2(n + 1), 0);
	l->msgs = calloc(n, sizeof(*l->msgs));
	l->bounce = malloc(BOUNCE);
	l->wake = eventfd(0, EFD_CLOEXEC);
	if (l->todo == NULL || l->free == NULL || l->msgs == NULL || l->bounce == NULL ||
		l->wake < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		l->msgs[i].lane = l;
		rte_ring_enqueue(l->free, &l->msgs[i]);
	}
	return 0;
}

struct copier_lane *
copier_lane_new(struct worker_shared *s, const struct copier_who *who, int *err)
{
	struct copier_lane *l = aligned_alloc(RING_LINE,
		RTE_ALIGN_CEIL(sizeof(*l), (size_t)RING_LINE));

	*err = -ENOMEM;
	if (l == NULL)
		return NULL;
	memset(l, 0, sizeof(*l));
	l->s = s;
	l->who = *who;
	l->mem = l->wake = -1;
	atomic_store(&l->refs, 1);
	sem_init(&l->ready, 0, 0);
	if (lane_memory(l) < 0)
		goto fail;
	atomic_store(&l->refs, 2);
	if (pthread_create(&l->thread, NULL, lane_main, l) != 0) {
		atomic_store(&l->refs, 1);
		goto fail;
	}
	while (sem_wait(&l->ready) < 0)
		;
	l->who = (struct copier_who){0}; /* the caller's to keep no longer */
	*err = l->failed;
	if (*err == 0)
		return l;
	pthread_join(l->thread, NULL);
fail:
	lane_free(l);
	return NULL;
}

bool
copier_lane_busy(const struct copier_lane *l)
{
	return atomic_load(&l->state) != LANE_IDLE;
}

/*
 * From its submission on: a client whose accesses each stay just below the limit, one after the
 * other, keeps those that wait behind them, and what the workers hold for them.
 */
bool
copier_lane_stuck(const struct copier_lane *l, uint64_t now, uint64_t limit)
{
	return atomic_load(&l->state) == LANE_CALL && now > atomic_load(&l->since) &&
		now - atomic_load(&l->since) > limit;
}

void
copier_lane_kill(struct copier_lane *l)
{
	uint32_t call = LANE_CALL;
	struct copier_msg *c;

	atomic_store(&l->killed, true);
	if (!atomic_compare_exchange_strong(&l->state, &call, LANE_ABANDONED))
		return; /* it goes on, and each access fails at once */
	/* The thread touches no ring any more: its consumer's part is ours. */
	if (rte_ring_dequeue(l->free, (void **)&c) == 0)
		give_back_failed(c, l->current.io, l->current.worker, -ETIMEDOUT);
	copier_lane_drain(l);
}

bool
copier_lane_drain(struct copier_lane *l)
{
	struct copier_msg *c;

	if (atomic_load(&l->state) != LANE_ABANDONED)
		return false;
	while (rte_ring_dequeue(l->todo, (void **)&c) == 0)
		give_back_failed(c, c->m.io, (uint32_t)c->m.cookie, -ESRCH);
	return true;
}

/* What outlives its client stays its uid's. */
static void
lane_charge(struct copier_lane *l, struct ctl_user *u)
{
	l->user = u;
	u->abandoned++;
	u->fds += COPIER_LANE_FDS;
}

static void
lane_uncharge(struct copier_lane *l)
{
	struct ctl_user *u = l->user;

	if (u == NULL)
		return;
	l->user = NULL;
	u->abandoned--;
	ctl_user_fds_put(u, COPIER_LANE_FDS);
	ctl_user_free(u);
}

/* A thread that is not abandoned ends soon, but nobody here waits for that. */
void
copier_lane_put(struct copier_lane *l, struct ctl_user *u)
{
	struct worker_device *d;

	if (l == NULL)
		return;
	d = container_of(l->s, struct worker_device, sh);
	atomic_store(&l->stop, true);
	(void)eventfd_write(l->wake, 1);
	if (atomic_load(&l->state) == LANE_ABANDONED)
		lane_charge(l, u);
	l->next_ending = d->lanes_ending;
	d->lanes_ending = l;
}

bool
copier_lanes_join(struct worker_device *d, bool all)
{
	struct copier_lane **at = &d->lanes_ending, *l;
	bool left = false;

	while ((l = *at) != NULL) {
		bool ended = atomic_load(&l->ended), abandoned = l->user != NULL;

		if (!ended && !all) {
			left |= !abandoned; /* that one takes as long as it likes */
			at = &l->next_ending;
			continue;
		}
		*at = l->next_ending;
		lane_uncharge(l);
		if (abandoned && !ended)
			pthread_detach(l->thread);
		else
			pthread_join(l->thread, NULL);
		lane_free(l);
	}
	return left;
}

/* ---- worker ---------- */

void
copier_submit(void *ctx, uint32_t worker, struct verbs_io *io)
{
	struct copier_lane *l = io->lane;
	struct copier_msg *c;

	(void)ctx;
	/* Twice as many messages as there can be accesses: there is always one. */
	if (rte_ring_dequeue(l->free, (void **)&c) != 0)
		rte_panic("copier: more foreign accesses than there are structures for\n");
	c->m.io = io;
	c->m.cookie = worker;
	c->since = worker_clock_now(&l->s->clock);
	rte_ring_enqueue(l->todo, c);
	if (ring_sleep_kick_needed(&l->sleep))
		(void)eventfd_write(l->wake, 1);
}
