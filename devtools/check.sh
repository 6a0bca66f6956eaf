#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fast static checks; exits nonzero on a fault.
set -euo pipefail
cd "$(dirname "$0")/.."
! git -c safe.directory="$PWD" grep -nIE '[[:space:]]+$' -- '*.[ch]' '*.build' '*.sh' '*.py'
