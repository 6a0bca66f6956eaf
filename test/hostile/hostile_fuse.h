/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file on a FUSE mount of our own, in a mount namespace of our own, whose reads are never
 * answered: whoever touches a page of its mapping waits until this process group ends.
 */
#ifndef HOSTILE_FUSE_H
#define HOSTILE_FUSE_H

/** An open descriptor of it, 1 MiB long, or -1 where that cannot be had (no root, no FUSE). */
int hostile_fuse_open(void);

#endif /* HOSTILE_FUSE_H */
