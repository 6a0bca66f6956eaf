/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arming a CQ and notifying: lib/ring/ring_arm.h, docs/abi.md "Notification".
 *
 * Two workers publish completions into sub-rings of their own, odd ones solicited; a client
 * polls, arms (for solicited ones or any), polls once more, sleeps until the channel's pipe has
 * a byte. It must never sleep over completions that it armed for (then spin finds an invalid
 * end state), and an arming is answered at most once.
 *
 * Must fail: WEAK_ARM (armed stored without order), NO_POLL (sleep without another look),
 * NO_FENCE (look at armed before the completions are visible), NO_SERIAL (numbers compared for
 * equality only), PLAIN_ANSWER (notify_seq stored without compare-and-swap).
 */
#define NPROC 3
#define NVAR 4
#define NBUF 2
#include "store_buffer.h"

#define CQE 0	/* + worker: entries published */
#define ARMED 2 /* sequence << 2 | kind */
#define ANSWERED 3
#define NEXT 1
#define SOLICITED 2
#define CL 2 /* the client's buffer */
#ifndef EACH
#define EACH 2
#endif

byte pipe;    /* bytes in it */
byte written; /* bytes ever */
byte arms;    /* numbers given out */

#ifdef NO_SERIAL
#define LATER(s, a) ((s) != (a))
#else
#define LATER(s, a) ((s) > (a))
#endif

proctype worker(byte w)
{
	byte k, armed, seq, answered;
	bool won;

	for (k : 1 .. EACH) {
		STORE_REL(w, CQE + w, k);
#ifndef NO_FENCE
		FENCE(w);
#endif
		LOAD(w, ARMED, armed);
		seq = armed >> 2;
		if
		:: (armed & 3) == NEXT || ((armed & 3) == SOLICITED && (k & 1)) ->
			LOAD(w, ANSWERED, answered);
			won = false;
			do
			:: !LATER(seq, answered) -> break
			:: LATER(seq, answered) && !won ->
#ifdef PLAIN_ANSWER
				STORE_SC(w, ANSWERED, seq);
				won = true;
				break
#else
				atomic {
					DRAINED(w);
					if
					:: mem[ANSWERED] == answered -> mem[ANSWERED] = seq; won = true
					:: else -> answered = mem[ANSWERED]
					fi
				};
				if
				:: won -> break
				:: else
				fi
#endif
			od;
			if
			:: won -> atomic {
				pipe++;
				written++;
				assert(written <= arms)
			}
			:: else
			fi
		:: else
		fi
		armed = 0; seq = 0; answered = 0; won = false
	}
	DRAINED(w)
}

inline arm(kind) {
	LOAD(CL, ARMED, old);
	do
	:: true ->
		LOAD(CL, ANSWERED, a);
		if
		:: (old >> 2) != a && (old & 3) && (old & 3) <= kind -> new = old
		:: else -> new = (((old >> 2) + 1) << 2) | kind
		fi;
		arms = new >> 2;
#ifdef WEAK_ARM
		STORE(CL, ARMED, new);
#else
		STORE_SC(CL, ARMED, new); /* no other thread arms: the exchange succeeds */
#endif
		break
	od
}

/* What is there: all of it, and whether a completion that `kind` waits for is among it. */
inline poll() {
	found = false;
	LOAD(CL, CQE, n);
	found = found || n > seen[0];
	seen[0] = n;
	LOAD(CL, CQE + 1, n);
	found = found || n > seen[1];
	seen[1] = n;
	n = 0
}

#define ALL (seen[0] == EACH && seen[1] == EACH)
/* With SOLICITED the last completion of a worker, an even one, wakes nobody. */
#define NONE_TO_COME (seen[0] + (kind == SOLICITED && EACH % 2 == 0) >= EACH && \
		      seen[1] + (kind == SOLICITED && EACH % 2 == 0) >= EACH)

proctype client()
{
	byte seen[2];
	byte n, old, new, a, kind;
	bool found;

	do
	:: true ->
		poll();
		if
		:: ALL -> break
		:: else
		fi;
		if
		:: kind = NEXT
		:: kind = SOLICITED
		fi;
		arm(kind);
		if
		:: kind == SOLICITED -> kind = NEXT; arm(kind) /* strengthened */
		:: true
		fi;
#ifndef NO_POLL
		poll();
		if
		:: found || NONE_TO_COME -> goto again
		:: else
		fi;
#endif
		atomic { pipe > 0 -> pipe-- };
again:		old = 0; new = 0; a = 0; kind = 0
	od
}

init
{
	atomic {
		run worker(0);
		run worker(1);
		run client()
	}
}
