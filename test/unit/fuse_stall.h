/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A FUSE file system of one file, "f", whose pages never come: what touches a mapping of it hangs
 * until fuse_stall_end(). A thread of its own answers everything but READ.
 */
#ifndef FUSE_STALL_H
#define FUSE_STALL_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUSE_STALL_SIZE 65536

struct fuse_stall {
	int fd;
	pthread_t thread;
	_Atomic bool reading; /* somebody waits for a page */
	char dir[32], file[40];
};

static inline struct fuse_attr
fuse_stall_attr(uint64_t node)
{
	bool root = node == FUSE_ROOT_ID;

	return (struct fuse_attr){
		.ino = node,
		.size = root ? 0 : FUSE_STALL_SIZE,
		.mode = root ? S_IFDIR | 0755 : S_IFREG | 0666,
		.nlink = 1,
	};
}

static inline void
fuse_stall_answer(struct fuse_stall *f, const struct fuse_in_header *in)
{
	struct {
		struct fuse_out_header h;
		union {
			struct fuse_init_out init;
			struct fuse_entry_out entry;
			struct fuse_attr_out attr;
			struct fuse_open_out open;
		};
	} out = {.h = {.unique = in->unique}};
	size_t len = 0;

	switch (in->opcode) {
	case FUSE_INIT:
		out.init.major = 7;
		out.init.minor = 31;
		out.init.max_write = 65536;
		len = sizeof(out.init);
		break;
	case FUSE_LOOKUP:
		out.entry.nodeid = 2;
		out.entry.attr_valid = out.entry.entry_valid = 1000;
		out.entry.attr = fuse_stall_attr(2);
		len = sizeof(out.entry);
		break;
	case FUSE_GETATTR:
		out.attr.attr_valid = 1000;
		out.attr.attr = fuse_stall_attr(in->nodeid);
		len = sizeof(out.attr);
		break;
	case FUSE_OPEN:
		len = sizeof(out.open);
		break;
	case FUSE_READ:
		atomic_store(&f->reading, true);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		break;
	default:
		out.h.error = -ENOSYS;
	}
	out.h.len = (uint32_t)(sizeof(out.h) + len);
	(void)!write(f->fd, &out, out.h.len);
}

static inline void *
fuse_stall_main(void *arg)
{
	static _Alignas(8) char buf[128 << 10];
	struct fuse_stall *f = arg;

	while (read(f->fd, buf, sizeof(buf)) > 0)
		fuse_stall_answer(f, (const struct fuse_in_header *)buf);
	return NULL;
}

/** Mount it; f->file is its file. False: this is not possible here. */
static inline bool
fuse_stall_start(struct fuse_stall *f)
{
	char opts[96];

	memset(f, 0, sizeof(*f));
	strcpy(f->dir, "/tmp/rnic-fuse-XXXXXX");
	f->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (f->fd < 0 || mkdtemp(f->dir) == NULL)
		return false;
	snprintf(f->file, sizeof(f->file), "%s/f", f->dir);
	snprintf(opts, sizeof(opts), "fd=%d,rootmode=40000,user_id=0,group_id=0", f->fd);
	if (mount("stall", f->dir, "fuse", MS_NOSUID | MS_NODEV, opts) < 0 ||
		pthread_create(&f->thread, NULL, fuse_stall_main, f) != 0) {
		rmdir(f->dir);
		close(f->fd);
		return false;
	}
	return true;
}

/** Whoever waits for a page gets an error now. */
static inline void
fuse_stall_end(struct fuse_stall *f)
{
	umount2(f->dir, MNT_FORCE | MNT_DETACH); /* forced: the connection is aborted */
	pthread_join(f->thread, NULL);
	close(f->fd);
	rmdir(f->dir);
}

#endif /* FUSE_STALL_H */
