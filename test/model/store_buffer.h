/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Weak memory for spin: each process has a store buffer, and what it stores reaches memory
 * later. Entries leave the buffer in any order but that of one address, except that a release
 * store waits for all before it (so this is weaker than x86, as ARM's stores are). A process
 * sees its own stores at once. seq_cst stores and read-modify-writes drain the buffer first and
 * act on memory: what an x86 or ARM processor makes of the C11 operations. Loads are in program
 * order, as acquire and seq_cst loads are.
 *
 * The includer defines NPROC (processes with a buffer), NVAR (addresses) and NBUF (entries).
 */
typedef sbuf {
	byte n;
	byte addr[NBUF];
	byte val[NBUF];
	bit rel[NBUF];
}
sbuf sb[NPROC];
byte mem[NVAR];
byte i_, j_; /* scratch of d_steps */

inline put_(p, x, v, r) {
	atomic {
		sb[p].n < NBUF;
		sb[p].addr[sb[p].n] = x;
		sb[p].val[sb[p].n] = v;
		sb[p].rel[sb[p].n] = r;
		sb[p].n++
	}
}

#define STORE(p, x, v) put_(p, x, v, 0)
#define STORE_REL(p, x, v) put_(p, x, v, 1)
#define DRAINED(p) (sb[p].n == 0)
#define FENCE(p) DRAINED(p)
#define STORE_SC(p, x, v) atomic { DRAINED(p); mem[x] = v }
#define XCHG(p, x, v, old) atomic { DRAINED(p); old = mem[x]; mem[x] = v }
#define FETCH_OR(p, x, v) atomic { DRAINED(p); mem[x] = mem[x] | (v) }

inline LOAD(p, x, dst) {
	d_step {
		dst = mem[x];
		i_ = 0;
		do
		:: i_ < sb[p].n ->
			if
			:: sb[p].addr[i_] == x -> dst = sb[p].val[i_]
			:: else
			fi;
			i_++
		:: else -> break
		od;
		i_ = 0
	}
}

/* Entry k of buffer p may reach memory: nothing before it of its address, or it is a release. */
inline flush_(p, k) {
	d_step {
		mem[sb[p].addr[k]] = sb[p].val[k];
		i_ = k;
		do
		:: i_ + 1 < sb[p].n ->
			sb[p].addr[i_] = sb[p].addr[i_ + 1];
			sb[p].val[i_] = sb[p].val[i_ + 1];
			sb[p].rel[i_] = sb[p].rel[i_ + 1];
			i_++
		:: else -> break
		od;
		sb[p].n--;
		sb[p].addr[sb[p].n] = 0;
		sb[p].val[sb[p].n] = 0;
		sb[p].rel[sb[p].n] = 0;
		i_ = 0
	}
}

#define SECOND_MAY(p) (sb[p].n > 1 && !sb[p].rel[1] && sb[p].addr[1] != sb[p].addr[0])
#define THIRD_MAY(p) \
	(sb[p].n > 2 && !sb[p].rel[2] && sb[p].addr[2] != sb[p].addr[0] && \
	 sb[p].addr[2] != sb[p].addr[1])

active [NPROC] proctype memory()
{
end:	do
	:: atomic { sb[_pid].n > 0 -> flush_(_pid, 0) }
	:: atomic { SECOND_MAY(_pid) -> flush_(_pid, 1) }
#if NBUF > 2
	:: atomic { THIRD_MAY(_pid) -> flush_(_pid, 2) }
#endif
	od
}
