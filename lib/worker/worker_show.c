/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of objects that can be listed. */
#include "worker.h"

static const char *const kinds[] = {
	"contexts", "pds",     "mrs",	    "cqs",    "qps",	    "srqs",
	"ports",    "workers", "counters", "memory", "neighbours", "routes",
	"cc",	    "cc-qps",  "ids", "listeners",
	"connections", "cm", NULL,
};

const char *const *
worker_show_kinds(void)
{
	return kinds;
}
