/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An idle context and a sleeping worker: lib/ring/ring_kick.h, docs/abi.md "Sleep".
 *
 * A client rings bells and kicks its eventfd if told so; another thread of the daemon fills the
 * worker's mailbox and kicks it if it sleeps; the control thread watches the eventfd for a
 * worker that is awake. The worker drops the context from its poll list and goes to sleep when
 * there is nothing. At the end nothing may lie unseen (else the worker sleeps for ever: an
 * invalid end state).
 *
 * Must fail: WEAK_KICK (need_kick = 1 not seq_cst), NO_BELL_LOOK (no look at the bells after
 * it), WEAK_SLEEP (no fence after sleeping = 1), NO_SLEEP_LOOK (no look at the mailbox after
 * it), WEAK_ENQUEUE (no fence between the enqueue and the look at sleeping), KICK_FIRST (the
 * client looks at need_kick before it rings), NO_WATCH (nobody watches for an awake worker).
 */
#define NPROC 4
#define NVAR 5
#define NBUF 2
#include "store_buffer.h"

#define BELL 0
#define NEED_KICK 1
#define MAIL 2 /* enqueued so far */
#define SLEEPING 3
#define FORWARD 4 /* the control thread's mail: poll the context again */
#define CL 0
#define PR 1
#define CT 2
#define W 3
#ifndef EACH
#define EACH 2
#endif

bit event[2];	 /* edges of the eventfd in the worker's epoll and in the control thread's */
bit wake;	 /* of the worker's own eventfd */
byte rung, seen; /* posts by the client; taken by the worker */
byte done;

proctype client()
{
	byte k, need;

	for (k : 1 .. EACH) {
#ifdef KICK_FIRST
		LOAD(CL, NEED_KICK, need);
#endif
		atomic { DRAINED(CL); mem[BELL] = 1; rung++ };
#ifndef KICK_FIRST
		LOAD(CL, NEED_KICK, need);
#endif
		if
		:: need -> d_step { event[0] = 1; event[1] = 1 }
		:: else
		fi;
		need = 0
	}
	done++
}

inline enqueue(p, x, v) {
	STORE_REL(p, x, v);
#ifndef WEAK_ENQUEUE
	FENCE(p);
#endif
	LOAD(p, SLEEPING, s);
	if
	:: s -> wake = 1
	:: else
	fi;
	s = 0
}

proctype producer()
{
	byte k, s;

	for (k : 1 .. EACH) {
		enqueue(PR, MAIL, k)
	}
	DRAINED(PR);
	done++
}

/* epoll_wait: it watches always, since the worker may have been awake when the edge came. */
proctype control()
{
	byte s, k;

end:	do
	:: atomic { event[1] -> event[1] = 0 };
		k++;
		enqueue(CT, FORWARD, k)
	od
}

#define ALL_SEEN (done == 2 && seen == rung && mail == EACH)

proctype worker()
{
	byte mail, fwd, m, f, b;
	bool polled = true; /* the context is on the poll list */

	do
	:: true ->
		/* mailbox */
		LOAD(W, MAIL, m);
		mail = m;
		LOAD(W, FORWARD, f);
		if
		:: f != fwd -> fwd = f; polled = true; STORE(W, NEED_KICK, 0)
		:: else
		fi;
		/* bells */
		if
		:: polled ->
			atomic {
				DRAINED(W);
				b = mem[BELL];
				mem[BELL] = 0;
				seen = (b -> rung : seen)
			};
			if
			:: b == 0 -> /* idle */
#ifdef WEAK_KICK
				STORE(W, NEED_KICK, 1);
#else
				STORE_SC(W, NEED_KICK, 1);
#endif
#ifdef NO_BELL_LOOK
				b = 0;
#else
				LOAD(W, BELL, b);
#endif
				if
				:: b -> STORE(W, NEED_KICK, 0)
				:: else -> polled = false
				fi
			:: else
			fi
		:: else
		fi;
		b = 0; m = 0; f = 0;
		if
		:: ALL_SEEN -> break
		:: else
		fi;
		/* sleep */
		if
		:: !polled ->
			STORE(W, SLEEPING, 1);
#ifndef WEAK_SLEEP
			FENCE(W);
#endif
#ifndef NO_SLEEP_LOOK
			LOAD(W, MAIL, m);
			LOAD(W, FORWARD, f);
#else
			m = mail;
			f = fwd;
#endif
			if
			:: m != mail || f != fwd
			:: else ->
				atomic {
					event[0] || wake || ALL_SEEN -> /* the last: the model is over */
					if
					:: event[0] -> polled = true
					:: else
					fi;
					event[0] = 0;
					wake = 0
				};
				if
				:: polled -> STORE(W, NEED_KICK, 0)
				:: else
				fi
			fi;
			STORE(W, SLEEPING, 0);
			m = 0; f = 0
		:: else
		fi
	od
}

init
{
	atomic {
		run client();
		run producer();
		run control();
		run worker()
	}
}
