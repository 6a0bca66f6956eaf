#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a test of the long tier and keeps what it says, with commit and machine, in
# docs/evidence/NAME-DATE.log. A log without a last line "result:" is of a run that was cut off.
# usage: test/long.sh NAME COMMAND [ARGUMENT...]
set -uo pipefail
name=${1:?usage: long.sh NAME COMMAND [ARGUMENT...]}
shift
top=$(cd "$(dirname "$0")/.." && pwd)
log=$top/docs/evidence/$name-$(date -u +%Y-%m-%d).log

# Evidence tells nothing of where the tree lies or what the host is called.
scrub() {
	sed -u -E -e "s#$top/?##g" -e 's#/(tmp|var/tmp|home|root)/[^ :",]*#TMP#g' \
		-e "s#\b$(uname -n)\b#HOST#g"
}

mkdir -p "$top/docs/evidence"
started=$SECONDS
{
	echo "test:    $name"
	echo "commit:  $(git -C "$top" -c safe.directory="$top" describe --always --dirty --abbrev=40 2>/dev/null || echo unknown)"
	echo "machine: $(uname -srm), $(nproc) CPUs, $(sed -n 's/^model name.*: //p;T;q' /proc/cpuinfo)"
	echo "command: $*"
	echo "started: $(date -u), load $(cut -d ' ' -f 1-3 /proc/loadavg)"
	echo
	rc=0
	"$@" 2>&1 || rc=$?
	echo
	case $rc in
	0) result=passed ;;
	77) result=skipped ;;
	*) result="failed, exit status $rc" ;;
	esac
	echo "result:  $result after $((SECONDS - started)) s"
	exit $rc
} </dev/null | scrub | tee "$log"
exit "${PIPESTATUS[0]}"
