/* SPDX-License-Identifier: BSD-3-Clause */
/* Waking clients: so many writes a loop, so many by the control thread, the rest later. */
#include <fcntl.h>
#include <unistd.h>

#include "ring_channel.h"
#include "worker_fixture.h"

#define CHANNELS 100
#define LATE (CHANNELS - WORKER_NOTIFY_CAP - WORKER_NOTIFIES)

static struct fx f;
static struct worker *w;
static struct worker_channel ch[CHANNELS];
static struct worker_cq owner[CHANNELS];
static struct verbs_cq *cq[CHANNELS];
static struct ring_channel_sub *sub;
static int rd[CHANNELS];

static void
start(void)
{
	fx_start(&f, 1);
	w = f.s.worker[0];
	sub = fx_alloc(CHANNELS * sizeof(*sub));
	memset(ch, 0, sizeof(ch));
	memset(owner, 0, sizeof(owner));
	for (int i = 0; i < CHANNELS; i++) {
		int fd[2];

		ck_assert_int_eq(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
		rd[i] = fd[0];
		ch[i].wr_fd = fd[1];
		ch[i].sub[0] = &sub[i];
		owner[i].channel = &ch[i];
		cq[i] = fx_alloc(verbs_cq_size(1));
		cq[i]->num_workers = 1;
		cq[i]->owner = &owner[i];
		verbs_cq_init_ends(cq[i]);
	}
}

static void
stop(void)
{
	struct worker_msg *m;

	while ((m = fx_told(&f)) != NULL)
		if (m->done != NULL)
			m->done(m);
	for (int i = 0; i < CHANNELS; i++) {
		close(rd[i]);
		close(ch[i].wr_fd);
		free(cq[i]);
	}
	free(sub);
	fx_stop(&f);
}

/** Bytes that can be read of all channels. */
static unsigned int
bytes(void)
{
	unsigned int n = 0;
	char b;

	for (int i = 0; i < CHANNELS; i++)
		while (read(rd[i], &b, 1) == 1)
			n++;
	return n;
}

static void
notify_all(void)
{
	for (int i = 0; i < CHANNELS; i++)
		worker_notify(w, cq[i]);
}

START_TEST(notify__a_share_a_loop)
{
	start();
	notify_all();
	ck_assert_uint_eq(bytes(), WORKER_NOTIFY_CAP);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_NOTIFY_DEFERRED), WORKER_NOTIFIES);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_NOTIFY_LATE), LATE);
	for (unsigned int left = LATE; left > 0;) {
		unsigned int now = RTE_MIN(left, (unsigned int)WORKER_NOTIFY_CAP);

		ck_assert(worker_is_late(w));
		worker_poll(w);
		ck_assert_uint_eq(bytes(), now);
		left -= now;
	}
	ck_assert(!worker_is_late(w));
	stop();
}
END_TEST

/** A reader trades each byte for one number: as many bytes as numbers, in one write. */
START_TEST(notify__a_byte_a_number)
{
	uint64_t before;

	start();
	notify_all();
	bytes();
	worker_notify(w, cq[CHANNELS - 1]);
	worker_notify(w, cq[CHANNELS - 1]);
	before = fx_count(&f, 0, WORKER_C_NOTIFY);
	while (worker_is_late(w))
		worker_poll(w);
	ck_assert_uint_eq(bytes(), LATE + 2);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_NOTIFY), before + LATE);
	ck_assert_uint_eq(atomic_load(&sub[CHANNELS - 1].tail), 3);
	stop();
}
END_TEST

/** More than a write holds takes several loops; more than matters is not owed. */
START_TEST(notify__many_owed)
{
	const unsigned int n = WORKER_NOTIFY_OWED + 9;
	unsigned int got, first;

	start();
	notify_all();
	while (worker_is_late(w))
		worker_poll(w);
	bytes();
	for (unsigned int i = 0; i < WORKER_NOTIFY_CAP; i++)
		worker_notify(w, cq[0]);
	bytes();
	for (unsigned int i = 0; i < n + WORKER_NOTIFIES; i++)
		worker_notify(w, cq[0]);
	ck_assert_uint_eq(ch[0].at[0].owed, WORKER_NOTIFY_OWED);
	worker_poll(w);
	first = got = bytes();
	ck_assert_uint_le(first, WORKER_NOTIFY_CAP * WORKER_NOTIFY_BYTES);
	while (worker_is_late(w)) {
		worker_poll(w);
		got += bytes();
	}
	ck_assert_uint_eq(got, WORKER_NOTIFY_OWED);
	ck_assert_ptr_null(ch[0].at[0].due);
	stop();
}
END_TEST

/** Nobody reads: a pipe that is full settles what is owed. */
START_TEST(notify__full_pipe)
{
	start();
	notify_all();
	while (write(ch[CHANNELS - 1].wr_fd, "", 1) == 1)
		;
	worker_notify(w, cq[CHANNELS - 1]);
	for (unsigned int left = LATE; left > 0; left -= RTE_MIN(left, WORKER_NOTIFY_CAP))
		worker_poll(w);
	ck_assert(!worker_is_late(w));
	stop();
}
END_TEST

/** What is late counts against the next loop. */
START_TEST(notify__late_at_the_next_loops_expense)
{
	start();
	notify_all();
	bytes();
	worker_poll(w);
	ck_assert_uint_eq(bytes(), WORKER_NOTIFY_CAP);
	worker_notify(w, cq[0]);
	ck_assert_uint_eq(bytes(), 0);
	stop();
}
END_TEST

/** Nothing points to a channel whose CQs are gone. */
START_TEST(notify__cq_goes)
{
	struct worker_msg m = {.type = WORKER_MSG_CQ_DEL};
	uint64_t before;

	start();
	notify_all();
	bytes();
	m.cq.cq = cq[CHANNELS - 1];
	for (int i = 0; i < WORKER_NOTIFY_BYTES; i++) /* one more than a write holds */
		worker_notify(w, cq[CHANNELS - 1]);
	ck_assert_ptr_nonnull(ch[CHANNELS - 1].at[0].due);
	ck_assert(worker_send(w, &m));
	before = fx_count(&f, 0, WORKER_C_NOTIFY);
	worker_mail(w);
	ck_assert_ptr_null(ch[CHANNELS - 1].at[0].due);
	ck_assert_uint_eq(fx_count(&f, 0, WORKER_C_NOTIFY), before + 2);
	ck_assert_uint_eq(bytes(), WORKER_NOTIFY_BYTES + 1);
	stop();
}
END_TEST

UNIT_MAIN("worker_notify", notify__a_share_a_loop, notify__a_byte_a_number, notify__many_owed,
	  notify__full_pipe, notify__late_at_the_next_loops_expense, notify__cq_goes)
