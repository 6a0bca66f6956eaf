/* SPDX-License-Identifier: BSD-3-Clause */
/* The other side of the exec attack: rnic-hostile --keep-secret, run with more rights. */
#ifndef HOSTILE_LIFE_H
#define HOSTILE_LIFE_H

int hostile_life_secret(int argc, char **argv);

#endif /* HOSTILE_LIFE_H */
