#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: check_headers.sh DIR FLAG...
# Compiles each header of DIR as a file of its own, twice included, so that a
# missing include or guard shows. @dpdk stands for DPDK's own flags.
set -euo pipefail

dir=$1
shift
flags=()
for f; do
	if [ "$f" = @dpdk ]; then
		read -ra more < <(pkg-config --cflags libdpdk)
		flags+=("${more[@]/#-I/-isystem}") # warnings are for our own
	else
		flags+=("$f")
	fi
done
read -ra cc <<<"${CC:-cc}"

rc=0
n=0
for h in "$dir"/*.h; do
	[ -e "$h" ] || continue
	n=$((n + 1))
	printf '#include "%s"\n#include "%s"\n' "$h" "$h" |
		"${cc[@]}" -x c -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
			"${flags[@]}" -fsyntax-only - || {
		echo "does not compile alone: $h"
		rc=1
	}
done
echo "$n headers of $dir"
exit $rc
