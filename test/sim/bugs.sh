#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds with the seeded bugs and looks for each: it must show within 1,000 seeds.
# usage: test/sim/bugs.sh [BUG...]      prints a table: bug, first failing seed, how it showed
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
dir=${BUGS_BUILD:-build-bugs}
limit=${BUGS_SEEDS:-1000}

if [ ! -f "$dir/build.ninja" ]; then
	meson setup "$dir" -Dseeded_bugs=true >/dev/null || exit 2
fi
ninja -C "$dir" -j "${JOBS:-2}" test/sim/rnic-sim >/dev/null || exit 2
sim=$dir/test/sim/rnic-sim

# Without a bug nothing may show: else all that follows means nothing.
if ! out=$(timeout 600 "$sim" --quiet --seeds 1..64 2>&1); then
	echo "without a bug: $out"
	exit 2
fi

missed=0
while read -r number text; do
	if [ $# -gt 0 ] && [[ " $* " != *" $number "* ]]; then
		continue
	fi
	out=$(timeout 900 "$sim" --quiet --bug "$number" --seeds "1..$limit" 2>&1)
	rc=$?
	line=$(grep -m 1 -E '^(FAILED|CRASHED)' <<<"$out" | cut -c 1-110)
	if [ $rc = 0 ]; then
		line="NOT FOUND in $limit seeds"
		missed=$((missed + 1))
	elif [ -z "$line" ]; then
		line="rc $rc: $(tail -1 <<<"$out" | cut -c 1-90)"
	fi
	printf '%2s  %-66s %s\n' "$number" "$text" "$line"
done < <("$sim" --list-bugs)
echo "$missed not found"
[ $missed = 0 ]
