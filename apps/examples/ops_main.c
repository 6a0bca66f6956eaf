/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options, and the conversation over TCP from when both QPs are in RTS. Text lines:
 *
 * 1. Each side sends its buffer, "%016x:%08x:%08x": address, rkey, length. When both lines have
 *    gone over, the initiator starts.
 * 2. For each op, unless bare:
 *      initiator  op NAME LEN COUNT SEED [HOW]  before it posts; HOW: solicited, unsolicited
 *      responder  go ADDR:RKEY:LENGTH           receives are posted; use this key
 *                 no REASON                     cannot do that
 *      initiator  end STATUS                    first ibv_wc_status that is not 0, or 0
 *      responder  ok, or bad REASON             after it has checked all it can see
 *    and "quit" in the end. To close the connection means the same.
 *
 * What is where: byte i of a request is pattern(seed, i); the seed counts requests, from 1. The
 * buffer begins as pattern(0, i). Request j of a list is at offset j * (LEN rounded up to 8);
 * copy's READ j is at twice that and its WRITE behind it. Atomics work on the 8 bytes (in the byte
 * order of the responder's CPU) that begin 64 bytes before its end. An immediate is 0xcafe0000 +
 * seed. cas compares with what is there and swaps in 0x99aabbccddeeff00 + seed; fadd adds
 * 0x0102030405060708.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ops.h"

#define MAX_BUFFER (1u << 30)

const char ops_usage[] =
	"The side with operations is the initiator, the other one the responder.\n"
	"\n"
	"  -p PORT   TCP port (18515)           -d DEV    device (the first)\n"
	"  -g INDEX  GID index (that of the first IPv4 address)\n"
	"  -M BYTES  path MTU (1024)            -l BYTES  buffer (1048576)\n"
	"  -R BYTES  receives (65536)           -r N      receives that a responder keeps posted\n"
	"  -t N      local ACK timeout (14)     -y N      retry_cnt (7)\n"
	"  -Y N      rnr_retry (7; rnrfail: 2)  -m N      min_rnr_timer (12)\n"
	"  -a N      max_rd_atomic (4)          -n N      do the list of operations N times\n"
	"  -b        bare: initiator without control lines\n"
	"\n"
	"Operations, NAME[:LEN][:HOW][*COUNT], COUNT requests posted as one list (at most 64):\n"
	"  send sendimm write writeimm read cas casmiss fadd mwwrite sendinv rnr:MS\n"
	"  copy (a READ, then a fenced WRITE of what it brought)\n"
	"HOW is inline (256 bytes at most); or, with operations that use up a receive, solicited\n"
	"(the last of the list has to wake the responder) or unsolicited (none may).\n"
	"Operations that must fail and end the run:\n"
	"  badkey-write badkey-read badkey-fadd badvar-write badvar-read oob-write oob-read\n"
	"  noperm-write noperm-read noperm-fadd stale-write unaligned toolong rnrfail\n"
	"that may fail and ends the run: badinv\n"
	"mwwrite and sendinv want memory windows at the responder.\n"
	"\n"
	"Exit status: 0 if each ended as its name says and every byte was right.\n";

static uint32_t
number(int letter, const char *text, uint32_t min, uint32_t max)
{
	char *rest;
	unsigned long n = strtoul(text, &rest, 0);

	if (*rest == 'k' || *rest == 'm')
		n <<= *rest++ == 'k' ? 10 : 20;
	if (*text < '0' || *text > '9' || *rest || n < min || n > max)
		ops_die("-%c wants a number from %u to %u, not '%s'", letter, min, max, text);
	return (uint32_t)n;
}

bool
ops_option(struct end *e, int letter, const char *arg)
{
	switch (letter) {
	case 's': e->server = true; break;
	case 'c': e->host = arg; break;
	case 'p': e->port = number(letter, arg, 0, 65535); break;
	case 'd': e->dev = arg; break;
	case 'g': e->gid_index = (int)number(letter, arg, 0, 255); break;
	case 'M': e->mtu = number(letter, arg, 256, 4096); break;
	case 'l': e->buflen = number(letter, arg, 4096, MAX_BUFFER); break;
	case 'R': e->recvlen = number(letter, arg, 1, 1 << 20); break;
	case 'r': e->nrecv = number(letter, arg, 0, MAX_LIST); break;
	case 't': e->timeout = (int)number(letter, arg, 0, 31); break;
	case 'y': e->retry = (int)number(letter, arg, 0, 7); break;
	case 'Y': e->rnr_retry = (int)number(letter, arg, 0, 7); break;
	case 'm': e->min_rnr = (int)number(letter, arg, 0, 31); break;
	case 'a': e->rd_atomic = (int)number(letter, arg, 0, 128); break;
	case 'n': e->repeat = number(letter, arg, 1, UINT32_MAX); break;
	case 'b': e->bare = true; break;
	default: return false;
	}
	return true;
}

/* A retry count cannot change once the QP is in RTS. */
bool
ops_ready(struct end *e, char **ops)
{
	struct op op;

	for (e->ops = ops; *ops; ops++) {
		if (!op_parse(&op, *ops))
			ops_die("no op %s", *ops);
		if (e->rnr_retry < 0 && !strcmp(op.def->name, "rnrfail"))
			e->rnr_retry = 2;
	}
	if (e->rnr_retry < 0)
		e->rnr_retry = 7;
	return e->server == !e->host && e->buflen % 8 == 0 && e->recvlen < e->buflen;
}

void
ops_fill(struct end *e)
{
	e->model = malloc(e->buflen);
	if (!e->model)
		ops_die("no memory");
	pattern_fill(e->buf, e->buflen, 0);
	pattern_fill(e->model, e->buflen, 0);
}

void
ops_say(struct end *e, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || n >= (int)sizeof(line) - 1)
		ops_die("line too long");
	line[n++] = '\n';
	if (send(e->fd, line, (size_t)n, MSG_NOSIGNAL) != n)
		ops_die("the peer has gone");
}

bool
ops_hear(struct end *e, char *line, int size)
{
	if (!fgets(line, size, e->in))
		return false;
	line[strcspn(line, "\n")] = 0;
	return true;
}

static void
tell_buffers(struct end *e)
{
	unsigned long long addr;
	char line[128];

	ops_say(e, "%016llx:%08x:%08x", (unsigned long long)(uintptr_t)e->buf, e->key, e->buflen);
	if (!ops_hear(e, line, sizeof(line)) ||
	    sscanf(line, "%llx:%x:%x", &addr, &e->peer.rkey, &e->peer.len) != 3)
		ops_die("no buffer from the peer");
	e->peer.addr = addr;
	fflush(stdout);
}

int
ops_run(struct end *e)
{
	int rc;

	tell_buffers(e);
	rc = *e->ops ? initiator(e) : responder(e);
	puts(rc ? "FAILED" : "ok");
	free(e->model);
	return rc;
}
