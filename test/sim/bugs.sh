#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds with the seeded bugs and looks for each: it must show within 1,000 seeds, in none of
# which anything shows without a bug.
# usage: test/sim/bugs.sh [BUG...]      prints a table: bug, first failing seed, how it showed
#   BUGS_BUILD  where to build (build-bugs)        BUGS_SEEDS  how many seeds (1000)
#   JOBS        of the build (2)                   BUGS_LIMIT  seconds for one bug (3600)
#   BUGS_SIM    a simulator that is built
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
dir=${BUGS_BUILD:-build-bugs}
seeds=1..${BUGS_SEEDS:-1000}
limit=${BUGS_LIMIT:-3600}

sim=${BUGS_SIM:-$dir/test/sim/rnic-sim}
if [ -z "${BUGS_SIM:-}" ]; then
	if [ ! -f "$dir/build.ninja" ]; then
		meson setup "$dir" -Dseeded_bugs=true >/dev/null || exit 2
	fi
	ninja -C "$dir" -j "${JOBS:-2}" test/sim/rnic-sim >/dev/null || exit 2
fi

# judge RC OUTPUT: sets `verdict` and returns 0 if it says that a seed failed. Only a failure that
# names its seed is a find: a time-out, a wrong option or no memory is none.
judge() {
	local rc=$1 line
	line=$(grep -m 1 -E '^(FAILED|CRASHED) seed' <<<"$2" | cut -c 1-110)
	verdict=$line
	case $rc in
	1) [ -n "$line" ] && return 0 ;;
	134 | 135 | 139) [[ $line = CRASHED* ]] && return 0 ;;
	0) verdict="NOT FOUND in seeds $seeds" && return 1 ;;
	124 | 137) verdict="NOT FOUND in $limit s" && return 1 ;;
	esac
	verdict="NO VERDICT, exit status $rc: $(tail -n 1 <<<"$2" | cut -c 1-80)"
	return 1
}

# Without a bug nothing may show: else all that follows means nothing.
for transport in rc uc; do
	rc=0
	out=$(timeout "$limit" "$sim" --transport $transport --quiet --seeds "$seeds" 2>&1) || rc=$?
	if [ $rc != 0 ]; then
		judge $rc "$out"
		echo "without a bug, $transport, seeds $seeds: $verdict"
		exit 2
	fi
	echo "without a bug, $transport, seeds $seeds: $out"
done

tried=0
missed=0
while read -r number text; do
	if [ $# -gt 0 ] && [[ " $* " != *" $number "* ]]; then
		continue
	fi
	tried=$((tried + 1))
	rc=0
	transport=rc
	[[ $text = UC:* ]] && transport=uc
	out=$(timeout "$limit" "$sim" --transport $transport --quiet --bug "$number" \
		--seeds "$seeds" 2>&1) || rc=$?
	judge $rc "$out" || missed=$((missed + 1))
	printf '%2s  %-66s %s\n' "$number" "$text" "$verdict"
done < <("$sim" --list-bugs)
echo "$tried bugs, $missed not found"
[ $tried -gt 0 ] && [ $missed = 0 ]
