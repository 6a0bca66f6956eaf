/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stddef.h>
#include "mapmem.h"
struct mapmem *mapmem_new(pid_t pid, uint64_t addr, uint64_t len, bool write, uint64_t budget)
{ (void)pid; (void)addr; (void)len; (void)write; (void)budget; return NULL; }
int mapmem_step(struct mapmem *m) { (void)m; return -EOPNOTSUPP; }
void mapmem_free(struct mapmem *m) { (void)m; }
const struct mr_seg *mapmem_segs(const struct mapmem *m, uint32_t *num)
{ (void)m; *num = 0; return NULL; }
uint64_t mapmem_bytes(const struct mapmem *m) { (void)m; return 0; }
bool mapmem_has_foreign(const struct mapmem *m) { (void)m; return false; }
bool mapmem_has_mapped(const struct mapmem *m) { (void)m; return false; }
int mapmem_sigbus_install(void) { return 0; }
