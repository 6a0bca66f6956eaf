/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the captures of test/captures: classic pcap, Ethernet, either byte
 * order. CAPTURE_DIR comes from meson. Any fault of a file is a test's end.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <dirent.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct capture {
	FILE *file;
	bool swapped;
	unsigned int number;	/* of the frame last read, from 1 as tshark counts */
	uint32_t len;		/* bytes of data */
	uint64_t time_us;
	uint8_t data[65536];
};

static inline uint32_t
capture_u32(const struct capture *c, const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return c->swapped ? __builtin_bswap32(v) : v;
}

static inline void
capture_fault(const char *name, const char *what)
{
	fprintf(stderr, "capture %s: %s\n", name, what);
	abort();
}

/** Opens CAPTURE_DIR/name, or name itself if it is an absolute path. */
static inline struct capture *
capture_open(const char *name)
{
	struct capture *c = calloc(1, sizeof(*c));
	uint8_t hdr[24];
	char path[4096];

	snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : CAPTURE_DIR,
		name[0] == '/' ? "" : "/", name);
	c->file = fopen(path, "rb");
	if (c->file == NULL || fread(hdr, sizeof(hdr), 1, c->file) != 1)
		capture_fault(path, "cannot be read");
	c->swapped = capture_u32(c, hdr) == 0xd4c3b2a1;
	if (capture_u32(c, hdr) != 0xa1b2c3d4 || capture_u32(c, hdr + 20) != 1)
		capture_fault(path, "not a microsecond pcap of Ethernet");
	return c;
}

/** The next frame into c; false at the end. */
static inline bool
capture_next(struct capture *c)
{
	uint8_t hdr[16];

	if (fread(hdr, sizeof(hdr), 1, c->file) != 1)
		return false;
	c->time_us = capture_u32(c, hdr) * UINT64_C(1000000) + capture_u32(c, hdr + 4);
	c->len = capture_u32(c, hdr + 8);
	if (c->len > sizeof(c->data) || fread(c->data, 1, c->len, c->file) != c->len)
		capture_fault("frame", "truncated");
	c->number++;
	return true;
}

static inline void
capture_close(struct capture *c)
{
	fclose(c->file);
	free(c);
}

/**
 * The IP packet of the frame, cut at the IP header's length (short frames are
 * padded), behind VLAN tags if there are any. NULL if it is not IP.
 */
static inline uint8_t *
capture_ip(struct capture *c, size_t *len, bool *v6)
{
	size_t at = 12;
	uint8_t *ip;

	while (at + 4 <= c->len && c->data[at] == 0x81 && c->data[at + 1] == 0x00)
		at += 4;
	ip = c->data + at + 2;
	if (at + 2 + 40 > c->len)
		return NULL;
	if (ip[0] >> 4 == 4)
		*len = ip[2] << 8 | ip[3];
	else if (ip[0] >> 4 == 6)
		*len = 40 + (ip[4] << 8 | ip[5]);
	else
		return NULL;
	*v6 = ip[0] >> 4 == 6;
	return ip + *len <= c->data + c->len ? ip : NULL;
}

/** Calls each(name, arg) for the captures whose name begins with prefix; how many. */
static inline unsigned int
capture_each(const char *prefix, void (*each)(const char *name, void *arg), void *arg)
{
	struct dirent **names;
	const int n = scandir(CAPTURE_DIR, &names, NULL, alphasort);
	unsigned int seen = 0;

	for (int i = 0; i < n; i++) {
		const char *dot = strrchr(names[i]->d_name, '.');

		if (dot != NULL && strcmp(dot, ".pcap") == 0 &&
				strncmp(names[i]->d_name, prefix, strlen(prefix)) == 0) {
			each(names[i]->d_name, arg);
			seen++;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return seen;
}

#endif /* CAPTURE_H */
