/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement of received payload into application memory, which the application
 * may poll: it sees the last byte of a message change and then reads the rest.
 */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stddef.h>

/**
 * Copy ascending with ordinary stores: the last 64 bytes become visible after all
 * others and the last byte after all of those; an aligned 8-byte word is written
 * by one instruction that does not split it. The areas do not overlap.
 */
void copy_place(void *dst, const void *src, size_t n);

#endif /* BASE_COPY_H */
