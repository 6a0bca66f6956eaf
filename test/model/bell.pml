/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells against the run list: lib/ring/ring_bell.h, docs/abi.md "Doorbells".
 *
 * Two clients post to two QPs whose bells share summary words; with -DSHARED both post to QP 0,
 * and client 0 may die between any two steps. One worker takes bits, runs QPs and takes them
 * off its run list. At the end everything is consumed whose poster got to the end.
 *
 * Must fail: WEAK_PUBLISH (tail stored, not exchanged), WEAK_LEAVE (active = 0 not seq_cst),
 * NO_RELOAD (leave without a look at the tail), TOP_FIRST (summaries set before the leaf),
 * LEAF_FIRST (leaf cleared before the summaries), SKIP_SET (summaries left out when the leaf
 * bit is set already; only with SHARED).
 */
#define NPROC 3
#define NVAR 8
#define NBUF 2
#include "store_buffer.h"

#define TAIL 0	 /* + q */
#define ACTIVE 2 /* + q */
#define LEAF 4	 /* + q: QPs in different leaf words of one mid word */
#define MID 6
#define TOP 7
#define W 2 /* the worker's buffer */

#define POSTS 2

byte posted[2];	  /* tail of QP q as given out by the clients' lock */
byte must[2];	  /* highest tail of a finished post */
byte consumed[2];
byte done;

#define DIE(c) \
	if \
	:: c == 0 && dies -> goto out \
	:: true \
	fi

inline ring(c, q) {
#ifdef TOP_FIRST
	FETCH_OR(c, TOP, 1);
	FETCH_OR(c, MID, 1 << q);
	FETCH_OR(c, LEAF + q, 1)
#else
	atomic { DRAINED(c); was = mem[LEAF + q]; mem[LEAF + q] = 1 };
	DIE(c);
#ifdef SKIP_SET
	if
	:: !was -> FETCH_OR(c, MID, 1 << q); DIE(c); FETCH_OR(c, TOP, 1)
	:: else
	fi
#else
	FETCH_OR(c, MID, 1 << q);
	DIE(c);
	FETCH_OR(c, TOP, 1)
#endif
#endif
}

proctype client(byte c; byte q; bool dies)
{
	byte k, t, a, was;

	for (k : 1 .. POSTS) {
		/* the QP's send lock: held while slots are written and the tail moves */
		atomic {
			posted[q]++;
			t = posted[q];
#ifdef WEAK_PUBLISH
			put_(c, TAIL + q, t, 0)
#else
			DRAINED(c);
			mem[TAIL + q] = t
#endif
		}
		DIE(c);
		LOAD(c, ACTIVE + q, a);
		if
		:: a == 0 -> ring(c, q)
		:: else
		fi;
		atomic { must[q] = (must[q] > t -> must[q] : t) }
	}
out:	done++
}

inline serve(q) {
	STORE(W, ACTIVE + q, 1);
	do
	:: true ->
		LOAD(W, TAIL + q, t);
		consumed[q] = t;
#ifdef WEAK_LEAVE
		STORE(W, ACTIVE + q, 0);
#else
		STORE_SC(W, ACTIVE + q, 0);
#endif
#ifdef NO_RELOAD
		break;
#endif
		LOAD(W, TAIL + q, t);
		if
		:: t == consumed[q] -> break
		:: else -> STORE(W, ACTIVE + q, 1)
		fi
	od
}

inline leaf(q) {
	XCHG(W, LEAF + q, 0, b);
	if
	:: b -> serve(q)
	:: else
	fi
}

#define QUIET \
	(done == 2 && mem[TOP] == 0 && sb[0].n == 0 && sb[1].n == 0 && sb[2].n == 0)

proctype worker()
{
	byte m, b, t;

	do
	:: mem[TOP] != 0 ->
#ifdef LEAF_FIRST
		XCHG(W, LEAF, 0, b);
		XCHG(W, LEAF + 1, 0, t);
		m = b | (t << 1);
		XCHG(W, MID, 0, b);
		XCHG(W, TOP, 0, b);
		if
		:: m & 1 -> serve(0)
		:: else
		fi;
		if
		:: m & 2 -> serve(1)
		:: else
		fi
#else
		XCHG(W, TOP, 0, b);
		XCHG(W, MID, 0, m);
		if
		:: m & 1 -> leaf(0)
		:: else
		fi;
		if
		:: m & 2 -> leaf(1)
		:: else
		fi
#endif
	:: atomic { QUIET -> assert(consumed[0] >= must[0] && consumed[1] >= must[1]); break }
	od
}

init
{
	atomic {
#ifdef SHARED
		run client(0, 0, true);
		run client(1, 0, false);
#else
		run client(0, 0, false);
		run client(1, 1, false);
#endif
		run worker()
	}
}
