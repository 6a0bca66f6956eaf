#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The long tier: 10,000 seeds, all profiles in turn, those that fail counted and named.
# usage: test/sim/long.sh RNIC-SIM [SEEDS]
set -uo pipefail
sim=${1:?usage: long.sh RNIC-SIM [SEEDS]}
exec "$sim" --quiet --keep-going --seeds "1..${2:-10000}"
