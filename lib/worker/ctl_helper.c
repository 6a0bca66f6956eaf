/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helper threads: they do what may take long, in steps. Two pools, so that no arena waits behind
 * a registration. In each the uids take turns, a uid's clients theirs, a step a turn; a client's
 * jobs are done one after another, so that what a job holds while it is under way is held once a
 * client. A step that looks at a client's process may hang for as long as that process
 * likes (it can keep its mmap lock): another thread is started then, and after the limit the
 * client is cut off; the thread ends when the step returns. The control thread hands jobs over
 * and takes them back under a mutex that nobody holds for longer than that.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ctl_priv.h"

#define THREADS 64   /* of a pool */
#define THREADS_UID 8 /* that a uid's steps may keep, while few hang */
#define SLOW_NS UINT64_C(100000000) /* no step takes so long unless somebody wants it to */

enum helper_state {
	HELPER_NONE,
	HELPER_RUNS,
	HELPER_ENDED, /* to be joined */
};

struct pool;

struct helper_thread {
	struct pool *pool;
	pthread_t thread;
	uint8_t state; /* enum helper_state */
	bool slow;     /* counted out: another has its place */
	struct ctl_work *at; /* whose step is under way */
	uint64_t since;
};

struct pool {
	struct ctl_helper *h;
	pthread_cond_t wake;
	TAILQ_HEAD(, ctl_turns) turns; /* of uids with something to do */
	struct helper_thread thread[THREADS];
	uint32_t prompt; /* threads that are not slow */
	uint32_t slow;
	struct ctl_work work; /* of nobody in particular */
	struct ctl_turns own;
};

struct ctl_helper {
	struct worker_device *d;
	pthread_mutex_t lock;
	struct pool pool[CTL_POOLS];
	STAILQ_HEAD(jobs, ctl_job) done;
	bool stop;
};

/* ---- turns; all with the lock ---------- */

static void
turns_add(struct pool *p, struct ctl_turns *u)
{
	if (u->queued || TAILQ_EMPTY(&u->works))
		return;
	u->queued = true;
	TAILQ_INSERT_TAIL(&p->turns, u, link);
}

static void
work_add(struct pool *p, struct ctl_work *w)
{
	struct ctl_turns *u = w->turns;

	if (w->queued || w->running || STAILQ_EMPTY(&w->todo))
		return;
	if (TAILQ_EMPTY(&u->works))
		TAILQ_INIT(&u->works); /* it may be all zeroes yet */
	w->queued = true;
	TAILQ_INSERT_TAIL(&u->works, w, link);
	turns_add(p, u);
}

static void
job_add(struct ctl_work *w, struct ctl_job *j, bool begun)
{
	if (STAILQ_EMPTY(&w->todo))
		STAILQ_INIT(&w->todo);
	if (begun)
		STAILQ_INSERT_HEAD(&w->todo, j, link);
	else
		STAILQ_INSERT_TAIL(&w->todo, j, link);
}

/* A quarter of what does not hang: the last threads are for uids that have none at all. */
static uint32_t
uid_share(const struct pool *p)
{
	uint32_t n = p->slow < THREADS ? (THREADS - p->slow) / 4 : 0;

	return n == 0 ? 1 : n < THREADS_UID ? n : THREADS_UID;
}

/* The next job, taken out, and whose it is. */
static struct ctl_job *
job_next(struct pool *p, struct ctl_work **whose)
{
	struct ctl_turns *u;
	struct ctl_work *w;
	struct ctl_job *j;

	TAILQ_FOREACH(u, &p->turns, link) {
		if (u->running < uid_share(p))
			break;
	}
	if (u == NULL)
		return NULL;
	TAILQ_REMOVE(&p->turns, u, link);
	u->queued = false;
	w = TAILQ_FIRST(&u->works);
	TAILQ_REMOVE(&u->works, w, link);
	w->queued = false;
	turns_add(p, u);
	j = STAILQ_FIRST(&w->todo);
	STAILQ_REMOVE_HEAD(&w->todo, link);
	w->running = true;
	u->running++;
	*whose = w;
	return j;
}

/* ---- the threads ---------- */

/* A step of it. @return false: this thread's place was taken meanwhile. */
static bool
job_run(struct helper_thread *t, struct ctl_job *j, struct ctl_work *w)
{
	struct pool *p = t->pool;
	struct ctl_helper *h = p->h;
	bool more;

	t->at = w;
	t->since = ctl_now(h->d);
	pthread_mutex_unlock(&h->lock);
	more = j->step(j);
	pthread_mutex_lock(&h->lock);
	t->at = NULL;
	w->running = false;
	w->turns->running--;
	if (more)
		job_add(w, j, true);
	work_add(p, w);
	if (!more) {
		STAILQ_INSERT_TAIL(&h->done, j, link);
		(void)eventfd_write(h->d->helper_src.fd, 1);
	}
	if (!t->slow)
		return true;
	t->slow = false;
	p->slow--;
	if (p->prompt != 0) {
		pthread_cond_signal(&p->wake); /* what its uid was kept from, another does */
		return false;
	}
	p->prompt++;
	return true;
}

static void *
helper_main(void *arg)
{
	struct helper_thread *t = arg;
	struct pool *p = t->pool;
	struct ctl_helper *h = p->h;
	struct ctl_work *w = NULL;
	struct ctl_job *j;

	pthread_mutex_lock(&h->lock);
	do {
		while ((j = job_next(p, &w)) == NULL && !h->stop)
			pthread_cond_wait(&p->wake, &h->lock);
	} while (j != NULL && job_run(t, j, w));
	t->state = HELPER_ENDED;
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* With the lock. */
static int
thread_start(struct pool *p)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		struct helper_thread *t = &p->thread[i];
		int err;

		if (t->state == HELPER_RUNS)
			continue;
		if (t->state == HELPER_ENDED)
			pthread_join(t->thread, NULL); /* it only returns */
		t->state = HELPER_NONE;
		t->pool = p;
		t->slow = false;
		err = pthread_create(&t->thread, NULL, helper_main, t);
		if (err != 0)
			return -err;
		t->state = HELPER_RUNS;
		p->prompt++;
		return 0;
	}
	return -EAGAIN;
}

/* ---- control thread ---------- */

static void
helper_ready(struct worker_device *d, struct ctl_source *s, uint32_t events)
{
	struct ctl_helper *h = d->helper;
	struct jobs done = STAILQ_HEAD_INITIALIZER(done);
	struct ctl_job *j;
	eventfd_t n;

	(void)events;
	(void)eventfd_read(s->fd, &n);
	pthread_mutex_lock(&h->lock);
	STAILQ_CONCAT(&done, &h->done);
	pthread_mutex_unlock(&h->lock);
	while ((j = STAILQ_FIRST(&done)) != NULL) {
		STAILQ_REMOVE_HEAD(&done, link);
		j->done(d, j);
	}
}

/* A thread's step, looked at from time to time. @return a client to be cut off, or NULL. */
static struct ctl_client *
thread_check(struct helper_thread *t, uint64_t now, uint64_t limit)
{
	uint64_t age = t->at != NULL && now > t->since ? now - t->since : 0;

	if (age > SLOW_NS && !t->slow) {
		t->slow = true;
		t->pool->slow++;
		t->pool->prompt--;
	}
	return age > limit ? t->at->client : NULL;
}

static bool
pool_check(struct pool *p, uint64_t now, uint64_t limit)
{
	struct ctl_client *hung[THREADS];
	unsigned int n = 0;
	bool busy = false;

	pthread_mutex_lock(&p->h->lock);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct ctl_client *c = thread_check(&p->thread[i], now, limit);

		busy |= p->thread[i].at != NULL;
		if (c != NULL)
			hung[n++] = c;
	}
	if (p->prompt == 0 && !TAILQ_EMPTY(&p->turns))
		(void)thread_start(p); /* tried again if it fails */
	pthread_mutex_unlock(&p->h->lock);
	for (unsigned int i = 0; i < n; i++)
		ctl_client_hangs(hung[i], "lets a look at its memory hang");
	return busy;
}

/* Of arenas no step hangs: it looks at no process, and one thread does. */
bool
ctl_helper_check(struct worker_device *d, uint64_t now)
{
	return pool_check(&d->helper->pool[CTL_POOL_PROCESS], now, d->lane_limit_ns);
}

bool
ctl_helper_hangs(struct worker_device *d)
{
	const struct pool *p = &d->helper->pool[CTL_POOL_PROCESS];
	uint64_t now = ctl_now(d);
	bool hangs = false;

	pthread_mutex_lock(&d->helper->lock);
	for (int i = 0; i < THREADS; i++) {
		const struct helper_thread *t = &p->thread[i];

		hangs |= t->at != NULL && now > t->since && now - t->since > d->lane_limit_ns;
	}
	pthread_mutex_unlock(&d->helper->lock);
	return hangs;
}

static void
pool_init(struct pool *p, struct ctl_helper *h)
{
	p->h = h;
	pthread_cond_init(&p->wake, NULL);
	TAILQ_INIT(&p->turns);
	p->work.turns = &p->own;
}

static int
helper_new(struct worker_device *d)
{
	struct ctl_helper *h = calloc(1, sizeof(*h));
	int err = 0;

	if (h == NULL)
		return -ENOMEM;
	h->d = d;
	pthread_mutex_init(&h->lock, NULL);
	STAILQ_INIT(&h->done);
	for (int i = 0; i < CTL_POOLS; i++)
		pool_init(&h->pool[i], h);
	d->helper = h;
	pthread_mutex_lock(&h->lock);
	for (int i = 0; i < CTL_POOLS && err == 0; i++)
		err = thread_start(&h->pool[i]);
	pthread_mutex_unlock(&h->lock);
	return err; /* ctl_helper_stop() ends what there is */
}

int
ctl_helper_start(struct worker_device *d)
{
	int err;

	d->helper_src.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->helper_src.ready = helper_ready;
	err = d->helper_src.fd < 0 ? -errno : ctl_source_add(d, &d->helper_src, EPOLLIN);
	return err < 0 ? err : helper_new(d);
}

static void
pool_stop(struct pool *p)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		bool made;

		pthread_mutex_lock(&p->h->lock);
		made = p->thread[i].state != HELPER_NONE;
		pthread_mutex_unlock(&p->h->lock);
		if (made)
			pthread_join(p->thread[i].thread, NULL);
	}
	pthread_cond_destroy(&p->wake);
}

void
ctl_helper_stop(struct worker_device *d)
{
	struct ctl_helper *h = d->helper;

	if (h != NULL) {
		pthread_mutex_lock(&h->lock);
		h->stop = true;
		for (int i = 0; i < CTL_POOLS; i++)
			pthread_cond_broadcast(&h->pool[i].wake);
		pthread_mutex_unlock(&h->lock);
		for (int i = 0; i < CTL_POOLS; i++)
			pool_stop(&h->pool[i]);
		helper_ready(d, &d->helper_src, 0);
		pthread_mutex_destroy(&h->lock);
		free(h);
		d->helper = NULL;
	}
	if (d->helper_src.fd >= 0)
		close(d->helper_src.fd);
	d->helper_src.fd = -1;
}

void
ctl_helper_submit(struct worker_device *d, struct ctl_job *j)
{
	struct ctl_helper *h = d->helper;
	struct pool *p = &h->pool[j->pool];
	struct ctl_work *w = &p->work;

	pthread_mutex_lock(&h->lock);
	if (j->client != NULL) {
		w = &j->client->work[j->pool];
		w->client = j->client;
		w->turns = &j->client->user->turns[j->pool];
	}
	job_add(w, j, false);
	work_add(p, w);
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&h->lock);
}
