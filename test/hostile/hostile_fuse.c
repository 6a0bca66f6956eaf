/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's FUSE protocol, as much of it as a file that nobody can read needs. */
#include "hostile_fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_INO 2
#define FILE_SIZE (1u << 20)

static void
reply(int dev, uint64_t unique, int error, void *body, size_t len)
{
	struct fuse_out_header h = {
		.len = (uint32_t)(sizeof(h) + len),
		.error = error,
		.unique = unique,
	};
	struct iovec iov[2] = {{&h, sizeof(h)}, {body, len}};

	if (writev(dev, iov, len ? 2 : 1) < 0)
		return; /* the request was given up */
}

static struct fuse_attr
attr_of(uint64_t ino)
{
	return (struct fuse_attr){
		.ino = ino,
		.size = ino == FILE_INO ? FILE_SIZE : 0,
		.mode = ino == FILE_INO ? S_IFREG | 0666 : S_IFDIR | 0777,
		.nlink = 1,
		.blksize = 4096,
	};
}

static void
serve(int dev, const struct fuse_in_header *in, const void *arg)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_write = 65536};
	struct fuse_entry_out entry = {.nodeid = FILE_INO, .attr_valid = 3600,
				       .entry_valid = 3600, .attr = attr_of(FILE_INO)};
	struct fuse_attr_out attr = {.attr_valid = 3600, .attr = attr_of(in->nodeid)};
	struct fuse_open_out opened = {.fh = 1};

	(void)arg;
	switch (in->opcode) {
	case FUSE_INIT: reply(dev, in->unique, 0, &init, sizeof(init)); break;
	case FUSE_LOOKUP: reply(dev, in->unique, 0, &entry, sizeof(entry)); break;
	case FUSE_GETATTR: reply(dev, in->unique, 0, &attr, sizeof(attr)); break;
	case FUSE_OPEN:
	case FUSE_OPENDIR: reply(dev, in->unique, 0, &opened, sizeof(opened)); break;
	case FUSE_READ: break; /* never */
	case FUSE_FLUSH: /* nor another's close; we want to end ourselves */
		if (getpgid((pid_t)in->pid) == getpgrp())
			reply(dev, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break;
	case FUSE_ACCESS:
	case FUSE_RELEASE: reply(dev, in->unique, 0, NULL, 0); break;
	default: reply(dev, in->unique, -ENOSYS, NULL, 0); break;
	}
}

static void
serve_for_ever(int dev)
{
	static _Alignas(8) char buf[1 << 18];

	for (;;) {
		ssize_t n = read(dev, buf, sizeof(buf));

		if (n < 0 && errno != EINTR && errno != EAGAIN && errno != ENOENT)
			_exit(0);
		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			serve(dev, (const void *)buf, buf + sizeof(struct fuse_in_header));
	}
}

int
hostile_fuse_open(void)
{
	char options[128];
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (dev < 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		if (dev >= 0)
			close(dev);
		return -1;
	}
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", dev);
	if (mount("hostile", "/mnt", "fuse.hostile", MS_NOSUID | MS_NODEV, options) < 0) {
		close(dev);
		return -1;
	}
	if (fork() == 0)
		serve_for_ever(dev);
	close(dev);
	return open("/mnt/file", O_RDWR | O_CLOEXEC);
}
