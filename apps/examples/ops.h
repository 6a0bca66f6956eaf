/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on a queue pair, one after the other, verified on both sides: what rnic_ops and
 * the interoperability tests' peer-qp share. The operations, the patterns, the protocol and
 * both roles are here and know no verbs; a program brings the calls of its library at the end
 * of this page. The numbers of opcodes and statuses are those of verbs.
 */
#ifndef OPS_H
#define OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_LIST 64u	/* requests in one list: the depth of both queues */
#define MAX_INLINE 256u /* bytes that a request carries itself */
#define ATOMIC_OFF 64u	/* the atomics' word, from the end of the buffer */
#define CAS_SWAP 0x99aabbccddeeff00ull
#define FADD_ADD 0x0102030405060708ull

enum ops_opcode {
	OPS_WRITE = 0,
	OPS_WRITE_IMM = 1,
	OPS_SEND = 2,
	OPS_SEND_IMM = 3,
	OPS_READ = 4,
	OPS_CAS = 5,
	OPS_FADD = 6,
	OPS_SEND_INV = 9,
};

enum ops_status {
	OPS_SUCCESS = 0,
	OPS_REM_INV_REQ_ERR = 9,
	OPS_REM_ACCESS_ERR = 10,
	OPS_REM_OP_ERR = 11,
	OPS_RNR_RETRY_EXC_ERR = 13,
};

enum op_flags {
	OP_RECV = 1 << 0,  /* uses up a receive of the responder */
	OP_WRITE = 1 << 1, /* changes the responder's buffer */
	OP_READ = 1 << 2,
	OP_ATOMIC = 1 << 3,
	OP_IMM = 1 << 4,
	OP_INV = 1 << 5,
	OP_MUSTFAIL = 1 << 6,
	OP_MAYFAIL = 1 << 7,
	OP_CONTROL = 1 << 8, /* only with the control lines */
	OP_BADKEY = 1 << 9,  /* another index in the key */
	OP_BADVAR = 1 << 10, /* another variant (low byte) in the key */
	OP_OOB = 1 << 11,    /* half of it beyond the buffer */
	OP_NOPERM = 1 << 12, /* by a key that gives no remote right */
	OP_WINDOW = 1 << 13, /* by the key of a memory window */
	OP_MISS = 1 << 14,   /* the comparison fails */
	OP_UNALIGNED = 1 << 15,
	OP_STALE = 1 << 16, /* by the key that was invalidated last */
	OP_HOLD = 1 << 17,  /* the receive is posted late, or never */
	OP_TOOLONG = 1 << 18,
	OP_COPY = 1 << 19, /* each READ is followed by a fenced WRITE of what it brought */
};

struct op_def {
	const char *name;
	enum ops_opcode opcode;
	unsigned int flags;
};

enum op_how {
	HOW_INLINE = 1 << 0,
	HOW_SOLICITED = 1 << 1,	  /* the last of the list wakes the responder, which sleeps */
	HOW_UNSOLICITED = 1 << 2, /* none does, though it would be woken */
};

/* One operation: NAME[:LEN][:HOW]...[*COUNT]; seed is that of its first request. */
struct op {
	const struct op_def *def;
	const char *text;
	unsigned int how;
	uint32_t len, count, seed;
};

struct region {
	uint64_t addr;
	uint32_t rkey, len;
};

/* One side. The program fills in the second part, and makes it the head of its own struct. */
struct end {
	/* options */
	const char *dev, *host; /* host NULL: be the TCP server */
	int gid_index, timeout, retry, rnr_retry, min_rnr, rd_atomic;
	uint32_t port, mtu, buflen, recvlen, nrecv, repeat;
	bool server, bare;
	char **ops; /* none: the responder */
	/* what the program made */
	int fd;		      /* of the control connection */
	FILE *in;	      /* unbuffered */
	unsigned char *buf;   /* what the peer writes to and reads from */
	unsigned char *recv;  /* receive slots of recvlen bytes */
	unsigned char *work;  /* initiator: what is sent and what came back */
	uint32_t key, denied; /* of buf, with all remote rights and with none */
	/* the protocol's */
	struct region peer;
	unsigned char *model; /* what must be there (initiator: in the peer's buf) */
	uint32_t window;      /* key of the window, while there is one; else 0 */
	bool armed;	      /* for solicited completions: do not sleep on the queue now */
};

/* ---- ops_main.c ---------- */

#define OPS_LETTERS "sc:p:d:g:M:l:R:r:t:y:Y:m:a:n:b"
#define OPS_END                                                                                    \
	{.port = 18515, .gid_index = -1, .mtu = 1024, .timeout = 14, .retry = 7, .rnr_retry = -1,  \
		.min_rnr = 12, .rd_atomic = 4, .buflen = 1 << 20, .recvlen = 65536, .repeat = 1}

extern const char ops_usage[];

/** One of OPS_LETTERS. @return false: not understood. */
bool ops_option(struct end *e, int letter, const char *arg);
/** After the options, with the operations. @return false: something does not fit. */
bool ops_ready(struct end *e, char **ops);
/** The model, and the patterns that the buffers begin with. */
void ops_fill(struct end *e);
/** Both QPs are in RTS: tell the buffers, then do the operations. @return exit status. */
int ops_run(struct end *e);
/** A line with its newline; one without (false: the peer has gone). */
void ops_say(struct end *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool ops_hear(struct end *e, char *line, int size);

/* ---- ops_def.c ---------- */

bool op_parse(struct op *op, const char *text);
const struct op_def *op_find(const char *name);
/** "solicited", "unsolicited" or "": what the responder has to know of it. */
const char *op_how_name(const struct op *op);
bool op_how_parse(struct op *op, const char *name);
/** Bytes from one request's place to the next one's, in the buffer and in the work area. */
uint32_t op_stride(const struct op *op);
/** Bytes of the buffer that it takes. */
uint64_t op_span(const struct op *op);
uint64_t op_atomic_old(const struct end *e, const struct op *op, uint32_t j);

unsigned char pattern(uint32_t seed, uint32_t i);
void pattern_fill(unsigned char *p, uint32_t len, uint32_t seed);
bool pattern_check(const unsigned char *p, uint32_t len, uint32_t seed, uint32_t *at);
void model_apply(struct end *e, const struct op *op);

/* ---- ops_init.c, ops_resp.c ---------- */

int initiator(struct end *e);
int responder(struct end *e);

/* ---- what the program brings ---------- */

struct request {
	enum ops_opcode opcode;
	bool fence, solicited, inlined;
	unsigned char *p; /* in the work area */
	uint32_t len;
	uint64_t remote_addr, compare_add, swap;
	uint32_t rkey, imm, invalidate;
};

struct completion {
	uint64_t wr_id; /* of a send: its place in the list; of a receive: its slot */
	int status;
	uint32_t byte_len, imm, key;	    /* imm in the CPU's order; key: invalidated */
	bool with_imm, with_inv, recv, write; /* write: a receive used up by WRITE with immediate */
};

/** All of it by one call, each signalled. @return how many were taken. */
uint32_t ops_post(struct end *e, const struct request *r, uint32_t n);
void ops_post_recv(struct end *e, uint32_t slot);
/** @return false: none came in this time. */
bool ops_poll(struct end *e, struct completion *c, unsigned int ms);
/** Ask for an event at the next solicited completion, forget older ones. false: cannot. */
bool ops_arm(struct end *e);
/** @return whether the event came in this time; it is taken. */
bool ops_woken(struct end *e, unsigned int ms);
/** Bind a type 2 window over buf. @return NULL, or what went wrong. */
const char *ops_window(struct end *e);
void ops_window_gone(struct end *e);
const char *ops_status_name(int status);
void ops_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif /* OPS_H */
