/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B014: must compile as it is and must not with TRAP set, which asks an opcode
 * for mask bits. See meson.build.
 */
#include "roce_opcode.h"

bool roce_mask_trap(uint8_t opcode);

bool
roce_mask_trap(uint8_t opcode)
{
#if TRAP == 1
	return roce_any(opcode, ROCE_FIRST);
#elif TRAP == 2
	return roce_any(roce_opcodes[opcode].mask, ROCE_RC_SEND_MIDDLE);
#elif TRAP == 3
	return opcode & ROCE_FIRST;
#else
	return roce_any(roce_opcodes[opcode].mask, ROCE_FIRST);
#endif
}
