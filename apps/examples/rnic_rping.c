/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnic_rping: rping's protocol over the connection manager, both sides, so that either may be the
 * other's peer. The client says where its data lies; the server READs it, says so, is told where
 * it shall go, and WRITEs it there; the client compares.
 *
 * A server (with -P for ever) serves its connections one beside the other, from one thread that
 * sleeps on the two channels' descriptors.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "ex_cm.h"
#include "rping.h"

static const char usage_text[] =
	"usage: rnic_rping -s [option...]   serve\n"
	"       rnic_rping -c [option...]   be the client\n"
	"\n"
	"  -a ADDRESS   of the peer; serving, of our own (any)\n"
	"  -p PORT      number in the TCP port space (7174)\n"
	"  -C N         pings; 0: for ever (0)\n"
	"  -S N         bytes of a ping (64)\n"
	"  -V           compare what comes back\n"
	"  -v           print what is sent and what comes\n"
	"  -P           serve one client after the other, and several at once\n"
	"  -u PATH      rnicd's socket (RNIC_SOCKET, or its default)\n"
	"  -d NAME      device (the daemon's first)\n"
	"\n"
	"The peer may be rping. Exit status: 0 if all went well and all was right.\n";

static void
option(struct rping *r, int opt, const char *arg)
{
	switch (opt) {
	case 's': r->server = true; break;
	case 'c': r->client = true; break;
	case 'a': r->host = arg; break;
	case 'p': r->port = (unsigned int)ex_number("-p", arg, 0, 65535); break;
	case 'C': r->count = ex_number("-C", arg, 0, UINT32_MAX); break;
	case 'S': r->size = (uint32_t)ex_size("-S", arg, RPING_MIN_SIZE, RPING_MAX_SIZE); break;
	case 'V': r->validate = true; break;
	case 'v': r->verbose = true; break;
	case 'P': r->persistent = true; break;
	case 'u': r->socket = arg; break;
	case 'd': r->device = arg; break;
	case 'h': fputs(usage_text, stdout); exit(0);
	default: fputs(usage_text, stderr); exit(2);
	}
}

static void
open_all(struct rping *r)
{
	ex_open(&r->dev, r->socket, r->device, 1, -1);
	ex_check(rnic_cm_create_channel(r->dev.ctx, &r->cm), "event channel");
	ex_check(rnic_create_channel(r->dev.ctx, &r->comp), "completion channel");
}

static void
close_all(struct rping *r)
{
	rnic_destroy_channel(r->comp);
	rnic_cm_destroy_channel(r->cm);
	ex_close(&r->dev);
}

int
main(int argc, char **argv)
{
	struct rping r = { .port = 7174, .size = 64 };
	int opt;

	ex_program = "rnic_rping";
	while ((opt = getopt(argc, argv, "sca:p:C:S:VvPu:d:h")) != -1)
		option(&r, opt, optarg);
	if (optind < argc || r.server == r.client || (r.client && !r.host))
		option(&r, '?', NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_all(&r);
	if (r.server)
		rping_serve(&r);
	else
		rping_ask(&r);
	close_all(&r);
	return 0;
}
