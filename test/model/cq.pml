/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CQ's sub-ring and its resize: lib/ring/ring_cq.h, docs/abi.md "Completion queues".
 *
 * A producer publishes up to MAX completions and resizes twice at any point, from OLD entries
 * to NEW and back into the first place; when full it overruns (stops) or finds room later. The
 * consumer takes them and publishes its index whenever it likes. Indices are bytes, START makes
 * them wrap. Every completion published is taken, once, in order, whole.
 *
 * Must fail: WEAK_TAG (tag stored without release), FULL_RING (no entry kept for the SWITCH),
 * NO_ALIGN (the new ring begins at the next index), RESTART (the new ring begins at index 0),
 * EARLY_RESIZE (again before the client is past the SWITCH).
 */
#define NPROC 2
#define NVAR 17
#define NBUF 2
#include "store_buffer.h"

#ifndef OLD
#define OLD 2
#endif
#ifndef NEW
#define NEW 4
#endif
#ifndef START
#define START 248
#endif
#ifndef MAX
#define MAX 6
#endif

#define P 0
#define C 1
#define CONS 0
#define DATA(g, i) (1 + (g) * 8 + ((i) & (size(g) - 1)))
#define TAG(g, i) (DATA(g, i) + 4)
#define size(g) ((g) -> NEW : OLD)
#define SWITCH 2
#define PHASE(g, i) (((i) & size(g)) -> 0 : 1)
#define U8(x) ((x) & 255)
#define BEGIN(g, i) U8(((i) + 2 * size(g)) & ~(2 * size(g) - 1))
#ifdef FULL_RING
#define ROOM(g) (size(g))
#else
#define ROOM(g) (size(g) - 1)
#endif

byte published;
bool finished;

#ifdef WEAK_TAG
#define STORE_TAG STORE
#else
#define STORE_TAG STORE_REL
#endif

inline begin(idx, at) {
#ifdef NO_ALIGN
	idx = U8(at + 1)
#else
#ifdef RESTART
	idx = 0
#else
	idx = BEGIN(g, at)
#endif
#endif
}

/* The control thread zeroes the place, then the worker's message comes: all after the drain. */
inline zero_place() {
	atomic {
		DRAINED(P);
		k = 1 + g * 8;
		do
		:: k < 9 + g * 8 -> mem[k] = 0; k++
		:: else -> break
		od;
		k = 0
	}
}

proctype producer()
{
	byte tail = START, cache = START, start = START, cons, g, k, resizes;
	byte old;

	do
	:: published < MAX ->
		if
		:: U8(tail - cache) >= ROOM(g) ->
			LOAD(P, CONS, cons);
			if
			:: U8(tail - cons) <= ROOM(g) -> cache = cons
			:: else
			fi
		:: else
		fi;
		if
		:: U8(tail - cache) < ROOM(g) ->
			STORE(P, DATA(g, tail), published + 1);
			atomic { STORE_TAG(P, TAG(g, tail), PHASE(g, tail)); published++ };
			tail = U8(tail + 1)
		:: else -> /* finds room later, or overruns */
			if
			:: true
			:: break
			fi
		fi
	:: resizes < 2 ->
		LOAD(P, CONS, cons);
		if
#ifdef EARLY_RESIZE
		:: true ->
#else
		:: U8(cons - start) < 128 ->
#endif
			resizes++;
			old = tail;
			g = 1 - g;
			zero_place();
			begin(tail, old);
			STORE_TAG(P, TAG(1 - g, old), PHASE(1 - g, old) | SWITCH);
			start = tail;
			cache = tail
		:: else
		fi
	:: break
	od;
	DRAINED(P);
	finished = true
}

proctype consumer()
{
	byte head = START, g, tag, data, taken;
	bool was, told = true;

	do
	:: true ->
		was = finished;
		LOAD(C, TAG(g, head), tag);
		if
		:: (tag & 1) == PHASE(g, head) && (tag & SWITCH) ->
			g = 1 - g;
			begin(head, head);
			STORE_REL(C, CONS, head);
			told = true
		:: (tag & 1) == PHASE(g, head) && !(tag & SWITCH) ->
			LOAD(C, DATA(g, head), data);
			taken++;
			assert(data == taken);
			head = U8(head + 1);
			if
			:: STORE_REL(C, CONS, head); told = true
			:: told = false
			fi
		:: (tag & 1) != PHASE(g, head) ->
			if
			:: was -> break
			:: !was && !told -> STORE_REL(C, CONS, head); told = true
			:: !was && told
			fi
		fi
	od;
	assert(taken == published)
}

init
{
	atomic {
		mem[CONS] = START;
		run producer();
		run consumer()
	}
}
