/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_table.h"
