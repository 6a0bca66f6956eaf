/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper thread: does what may take long, one step of each job in turn. The control thread
 * hands jobs over and takes them back under a mutex that nobody holds for longer than that.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ctl_priv.h"

struct ctl_helper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	STAILQ_HEAD(jobs, ctl_job) todo, done;
	bool stop;
};

static void *
helper_main(void *arg)
{
	struct worker_device *d = arg;
	struct ctl_helper *h = d->helper;
	struct ctl_job *j;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		bool more;

		while ((j = STAILQ_FIRST(&h->todo)) == NULL && !h->stop)
			pthread_cond_wait(&h->wake, &h->lock);
		if (j == NULL)
			break;
		STAILQ_REMOVE_HEAD(&h->todo, link);
		pthread_mutex_unlock(&h->lock);
		more = j->step(j);
		pthread_mutex_lock(&h->lock);
		if (more) {
			STAILQ_INSERT_TAIL(&h->todo, j, link);
		} else {
			STAILQ_INSERT_TAIL(&h->done, j, link);
			(void)eventfd_write(d->helper_src.fd, 1);
		}
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

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

int
ctl_helper_start(struct worker_device *d)
{
	struct ctl_helper *h = calloc(1, sizeof(*h));
	int err;

	if (h == NULL)
		return -ENOMEM;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->wake, NULL);
	STAILQ_INIT(&h->todo);
	STAILQ_INIT(&h->done);
	d->helper_src.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->helper_src.ready = helper_ready;
	err = d->helper_src.fd < 0 ? -errno : ctl_source_add(d, &d->helper_src, EPOLLIN);
	if (err < 0) {
		free(h);
		return err;
	}
	d->helper = h;
	err = -pthread_create(&h->thread, NULL, helper_main, d);
	if (err < 0) {
		d->helper = NULL;
		free(h);
	}
	return err;
}

void
ctl_helper_stop(struct worker_device *d)
{
	struct ctl_helper *h = d->helper;

	if (h != NULL) {
		pthread_mutex_lock(&h->lock);
		h->stop = true;
		pthread_cond_signal(&h->wake);
		pthread_mutex_unlock(&h->lock);
		pthread_join(h->thread, NULL);
		helper_ready(d, &d->helper_src, 0);
		pthread_cond_destroy(&h->wake);
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

	pthread_mutex_lock(&h->lock);
	STAILQ_INSERT_TAIL(&h->todo, j, link);
	pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->lock);
}
